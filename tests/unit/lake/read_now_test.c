/* Objects of a repository that are read without waiting (docs/lake-s3.md, S7). */
#include "unit/lake/front_lab.h"
#include "unit/lake/hand.h"
#include "unit/lake/kv_spy.h"

#include "lake/change.h"

#include <stdio.h>

static bool front_at_hand(const struct front_lab *f)
{
    return f->lake.lake->kv->can & KV_AT_HAND;
}

/* Reads the key by get_now(). The body must be `want`. */
static int now_read(struct bucket *b, const char *key, const char *want)
{
    struct arena a = {0};
    struct buf body = BUF_INIT(MIB);
    struct get_result got = {0};
    struct err err = {0};
    int code = b->ops->get_now(b, &a, str_z(key), STR_EMPTY, NULL, NULL, &got, &err);

    if (code == 0) {
        CHECK_OK(reader_read_all(got.body, &body, &err));
        CHECK_STR(buf_str(&body), str_z(want));
    }
    reader_close(got.body);
    buf_release(&body);
    arena_release(&a);
    return code;
}

static void now_put(struct bucket *b, const char *key, const char *body)
{
    struct arena a = {0};

    lab_put(b, &a, key, str_z(body));
    arena_release(&a);
}

/* The head of main, in hex. */
static struct str now_head(struct front_lab *f)
{
    struct lake_branch branch;
    struct err err = {0};

    CHECK_OK(
        lake_branch_get(f->lake.lake, &f->lake.arena, &f->lake.repo, STR("main"), &branch, &err));
    return branch.commit_id;
}

FRONT_TEST(lake_read_now, what_is_at_hand_is_read_at_every_kind_of_ref)
{
    struct bucket *b = front_lab_bucket(f);
    char by_id[LAKE_ID_LEN + sizeof("/kept")];

    now_put(b, "main/kept", "old");
    now_put(b, "main/gone", "x");
    front_lab_commit(f, "main");
    front_lab_tag(f, "v1", "main");
    struct str id = now_head(f);
    memcpy(by_id, id.p, id.len);
    memcpy(by_id + id.len, "/kept", sizeof("/kept"));
    now_put(b, "main/fresh", "new");
    lab_remove(b, &f->lake.arena, "main/gone", STR_EMPTY);
    lab_expect(b, "main/kept", STR_EMPTY, STR("old")); /* the tree is in memory now */

    const struct {
        const char *key, *body;
        int code;
    } cases[] = {
        {"main/kept", "old", 0},
        {"main/fresh", "new", 0},
        {"main/gone", "", ERR_NOT_FOUND},
        {"main/never", "", ERR_NOT_FOUND},
        {"main@/kept", "old", 0},
        {"main@/fresh", "", ERR_NOT_FOUND},
        {"main$/fresh", "new", 0},
        {"v1/kept", "old", 0},
        {"v1/gone", "x", 0},
        {by_id, "old", 0},
        {"nowhere/kept", "", ERR_NOT_FOUND},
        {"main", "", ERR_NOT_FOUND},
        {"main~1/kept", "", ERR_AGAIN},
        {"main^/kept", "", ERR_AGAIN},
    };
    for (int round = 0; round < 2; round++) /* in the second one the branch is known */
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
            CHECK_INT(now_read(b, cases[i].key, cases[i].body),
                      front_at_hand(f) || strcmp(cases[i].key, "main") == 0 ? cases[i].code
                                                                            : ERR_AGAIN);
    b->ops->unref(b);
}

static int now_stat(struct hand *h, const char *path)
{
    struct lake_object found;

    return lake_stat_now(h->lake, &h->arena, &h->repo, STR("main"), str_z(path), &found, &h->err);
}

LAKE_LAB_TEST(lake_read_now, a_node_that_is_not_in_memory_is_not_waited_for)
{
    struct hand h = hand_of(lab), other = hand_second(lab); /* with a cache of its own */
    int code = lake_kv(h.lake)->can & KV_AT_HAND ? 0 : ERR_AGAIN;

    hand_put(&h, "main", "committed", "c");
    hand_commit(&h, "main", "m");
    hand_put(&h, "main", "staged", "s");
    hand_expect(&other, "main", "staged", "s"); /* the branch is known, its tree is not */
    CHECK_INT(now_stat(&other, "staged"), code);
    CHECK_INT(now_stat(&other, "committed"), ERR_AGAIN);
    hand_expect(&other, "main", "committed", "c");
    CHECK_INT(now_stat(&other, "committed"), code);
    hand_release(&other);
    hand_release(&h);
}

static void now_notices(void *ctx)
{
    *(bool *)ctx = true;
}

FRONT_TEST(lake_read_now, a_store_that_is_a_server_is_not_asked)
{
    struct bucket *b = front_lab_bucket(f);
    struct get_result got;
    struct err err = {0};
    bool was_asked = false;

    now_put(b, "main/a", "body");
    lab_expect(b, "main/a", STR_EMPTY, STR("body"));
    kv_spy_begin(f->lake.lake);
    kv_spy_plan(KV_SPY_GET, 1, now_notices, &was_asked);
    int code = now_read(b, "main/a", "body");
    kv_spy_happened();
    CHECK_INT(was_asked, front_at_hand(f));
    CHECK_INT(code, front_at_hand(f) ? 0 : ERR_AGAIN);
    code = b->ops->head_now(b, &f->lake.arena, STR("main/a"), STR_EMPTY, NULL, &got, &err);
    CHECK_INT(code, front_at_hand(f) ? 0 : ERR_AGAIN);
    kv_spy_end(f->lake.lake);
    b->ops->unref(b);
}

FRONT_TEST(lake_read_now, a_branch_that_is_known_asks_the_store_once)
{
    struct bucket *b = front_lab_bucket(f);
    bool asked_twice = false;

    now_put(b, "main/a", "body");
    lab_expect(b, "main/a", STR_EMPTY, STR("body"));
    kv_spy_begin(f->lake.lake);
    kv_spy_plan(KV_SPY_GET, 2, now_notices, &asked_twice);
    lab_expect(b, "main/a", STR_EMPTY, STR("body"));
    kv_spy_end(f->lake.lake);
    CHECK(!asked_twice || front_at_hand(f)); /* lab_expect() reads in both ways */
    b->ops->unref(b);
}

FRONT_TEST(lake_read_now, a_branch_that_is_known_is_not_believed)
{
    struct lake *l = f->lake.lake;
    struct arena *a = &f->lake.arena;
    struct bucket *b = front_lab_bucket(f);
    struct get_result got;
    struct err err = {0};
    int gone = front_at_hand(f) ? ERR_NOT_FOUND : ERR_AGAIN;

    now_put(b, "main/a", "committed");
    front_lab_commit(f, "main");
    front_lab_branch(f, "work", false);
    now_put(b, "work/a", "staged");
    lab_expect(b, "work/a", STR_EMPTY, STR("staged"));
    CHECK_OK(lake_reset(l, a, &f->lake.repo, STR("work"), LAKE_RESET_ALL, STR_EMPTY, false, &err));
    CHECK(now_read(b, "work/a", "committed") != ERR_NOT_FOUND);
    lab_expect(b, "work/a", STR_EMPTY, STR("committed"));
    CHECK_OK(lake_branch_delete(l, a, &f->lake.repo, STR("work"), false, &err));
    CHECK_INT(now_read(b, "work/a", ""), gone);
    front_lab_tag(f, "work", "main"); /* the name means another thing now */
    lab_expect(b, "work/a", STR_EMPTY, STR("committed"));
    CHECK_OK(lake_repo_delete(l, a, STR("repo"), false, false, &err));
    static const char *const keys[] = {"main/a", "main@/a", "work/a"};
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        CHECK_INT(now_read(b, keys[i], ""), front_at_hand(f) ? ERR_NO_BUCKET : ERR_AGAIN);
        CHECK_INT(b->ops->head(b, a, str_z(keys[i]), STR_EMPTY, NULL, &got, &err), ERR_NO_BUCKET);
    }
    b->ops->unref(b);
}

FRONT_TEST(lake_read_now, a_branch_with_many_sealed_tokens_is_read_by_threads_that_may_wait)
{
    enum { TOKENS = 20 };
    struct bucket *b = front_lab_bucket(f);
    struct lake_branch branch;
    struct lake_repo repo;
    struct err err = {0};
    char key[16];

    loop_stop(&f->lake.lake->cleaner); /* it would make one token of them */
    for (int i = 0; i < TOKENS; i++) {
        snprintf(key, sizeof(key), "main/%02d", i);
        now_put(b, key, "body");
        CHECK_OK(lake_seal(f->lake.lake, &f->lake.arena, &f->lake.repo, STR("main"), &repo, &branch,
                           &err));
    }
    CHECK_INT(branch.sealed_count, TOKENS);
    CHECK_INT(now_read(b, "main/00", "body"), ERR_AGAIN);
    lab_expect(b, "main/00", STR_EMPTY, STR("body"));
    b->ops->unref(b);
}

/* Puts an object of two parts into the bucket of the namespace, and stages an entry that leads
 * there, as an import does. */
static void now_import_parts(struct front_lab *f, struct bucket *b)
{
    struct arena *a = &f->lake.arena;
    struct lake_entry entry = {.address = STR("s3://" LAKE_LAB_BUCKET "/outside"),
                               .address_type = LAKE_FULL,
                               .size = LAKE_LAB_PART_MIN + 1};
    struct lake_put put = {STR("imported"), &entry};
    struct bucket *from = NULL;
    struct put_options o = {0};
    struct put_result done;
    struct err err = {0};

    CHECK_OK(storage_open_bucket(&from, f->lake.storage, STR(LAKE_LAB_OWNER), STR(LAKE_LAB_BUCKET),
                                 &err));
    struct upload_info u = lab_upload(from, a, "outside");
    struct upload_part parts[] = {lab_part(from, a, &u, 1, lab_bytes(LAKE_LAB_PART_MIN, 1)),
                                  lab_part(from, a, &u, 2, STR("x"))};
    CHECK_OK(from->ops->upload_finish(from, a, &u, parts, ARRAY_SIZE(parts), &o, &done, &err));
    CHECK_OK(lake_stage(f->lake.lake, a, &f->lake.repo, STR("main"), &put, 1, NULL, &err));
    from->ops->unref(from);
}

FRONT_TEST(lake_read_now, a_body_in_parts_of_which_the_entry_knows_nothing_is_read_by_others)
{
    struct bucket *b = front_lab_bucket(f);
    struct get_result got;
    struct err err = {0};

    now_import_parts(f, b);
    CHECK_INT(now_read(b, "main/imported", ""), ERR_AGAIN);
    CHECK_OK(
        b->ops->get(b, &f->lake.arena, STR("main/imported"), STR_EMPTY, NULL, NULL, &got, &err));
    CHECK_INT(got.len, LAKE_LAB_PART_MIN + 1);
    reader_close(got.body);
    b->ops->unref(b);
}
