/* Staging, reading and listing a branch: staged rows over sealed rows over the tree of its head. */
#include "unit/lake/hand.h"
#include "unit/lake/kv_spy.h"
#include "unit/lake/steps.h"

#include "lake/change.h"

#include <stdio.h>

/* The cases of lakeFS's own suite for staging, and the tests that have them here. A suite that runs
 * on every driver is named without it: lake_stage is lake_stage_embedded, _redis and _postgres.
 *   SetGet: lake_stage.an_object_that_was_staged_is_read
 *   MultiToken:
 *     lake_stage.branches_do_not_see_each_other
 *     lake_stage.the_newest_layer_decides
 *   Drop: lake_clean.tokens_are_dropped_after_their_commit
 *   DropAsync: lake_clean.a_token_of_the_list_is_dropped_at_the_start
 *   DropByPrefix: lake_reset.a_prefix_is_undone_and_the_rest_stays
 *   DropPrefixBytes (0xff): lake_layers.the_end_of_a_prefix_leaves_bytes_of_0xff_out
 *   List: lake_list.random_layers_are_listed_as_a_model_says
 *   Seek: lake_layers.a_walk_is_sought_forward_and_back
 *   NilValue: lake_stage.a_removal_leaves_a_tombstone_only_where_something_is_below
 *   NilIdentity: lake_stage.an_empty_object_is_an_object
 *   DeleteAndTombstone:
 *     lake_stage.a_removal_leaves_a_tombstone_only_where_something_is_below
 *     lake_layers.the_newest_row_of_a_path_decides
 *   Update (CAS): lake_stage.a_condition_is_judged_in_the_step_of_the_write */

/* A branch with all layers: the tree has a, b, c; a sealed token has b (another content), c
 * (removed), d; the staging token has d (removed), e. */
static void fill_layers(struct hand *h)
{
    struct lake_branch b;
    struct lake_repo repo;

    hand_put(h, "main", "a", "a1");
    hand_put(h, "main", "b", "b1");
    hand_put(h, "main", "c", "c1");
    hand_commit(h, "main", "first");
    hand_put(h, "main", "b", "b2");
    hand_remove(h, "main", "c");
    hand_put(h, "main", "d", "d2");
    CHECK_INT(lake_seal(h->lake, &h->arena, &h->repo, STR("main"), &repo, &b, &h->err), 0);
    CHECK_INT(b.sealed_count, 1);
    hand_remove(h, "main", "d");
    hand_put(h, "main", "e", "e3");
}

/* --- staging --- */

LAKE_LAB_TEST(lake_stage, an_object_that_was_staged_is_read)
{
    struct hand h = hand_of(lab);
    struct lake_object o;

    hand_put(&h, "main", "dir/a", "one");
    CHECK_INT(lake_stat(h.lake, &h.arena, &h.repo, STR("main"), STR("dir/a"), &o, &h.err), 0);
    CHECK_STR(o.path, STR("dir/a"));
    CHECK_STR(o.entry.etag, STR("one"));
    CHECK_INT(o.entry.size, 3);
    CHECK_STR(o.entry.content_type, STR("text/plain"));
    CHECK_INT(o.identity.len, LAKE_IDENTITY_LEN);
    hand_expect(&h, "main", "dir", NULL);
    hand_expect(&h, "main", "dir/ab", NULL);
    hand_expect(&h, "main@", "dir/a", NULL);
    hand_expect(&h, "main$", "dir/a", "one");
    hand_put(&h, "main", "dir/a", "two");
    hand_expect(&h, "main", "dir/a", "two");
    hand_release(&h);
}

LAKE_LAB_TEST(lake_stage, an_empty_object_is_an_object)
{
    struct hand h = hand_of(lab);

    hand_put(&h, "main", "empty", "");
    hand_expect(&h, "main", "empty", "");
    hand_commit(&h, "main", "c");
    hand_expect(&h, "main@", "empty", "");
    hand_release(&h);
}

LAKE_LAB_TEST(lake_stage, branches_do_not_see_each_other)
{
    struct hand h = hand_of(lab);

    hand_put(&h, "main", "a", "main");
    hand_branch(&h, "other", "main");
    hand_put(&h, "other", "a", "other");
    hand_put(&h, "other", "b", "other");
    hand_expect(&h, "main", "a", "main");
    hand_expect(&h, "main", "b", NULL);
    hand_expect_list(&h, "main", "a");
    hand_expect_list(&h, "other", "a b");
    hand_release(&h);
}

LAKE_LAB_TEST(lake_stage, the_newest_layer_decides)
{
    struct hand h = hand_of(lab);

    fill_layers(&h);
    hand_expect(&h, "main", "a", "a1");
    hand_expect(&h, "main", "b", "b2");
    hand_expect(&h, "main", "c", NULL);
    hand_expect(&h, "main", "d", NULL);
    hand_expect(&h, "main", "e", "e3");
    hand_expect_list(&h, "main", "a b e");
    hand_expect_list(&h, "main@", "a b c");
    hand_expect_diff(&h, "main", "~b -c +e");
    hand_commit(&h, "main", "second");
    hand_expect_list(&h, "main@", "a b e");
    hand_expect(&h, "main@", "b", "b2");
    hand_expect_diff(&h, "main", "");
    hand_release(&h);
}

/* K5: which row a removal leaves. */
LAKE_LAB_TEST(lake_stage, a_removal_leaves_a_tombstone_only_where_something_is_below)
{
    struct hand h = hand_of(lab);
    struct lake_branch b;

    fill_layers(&h);
    b = hand_read_branch(&h, "main");
    CHECK_INT(hand_count_rows(&h, b.staging), 2);
    hand_remove(&h, "main", "e"); /* in the staging token alone */
    CHECK_INT(hand_count_rows(&h, b.staging), 1);
    hand_remove(&h, "main", "nowhere");
    hand_remove(&h, "main", "c"); /* the sealed token has its tombstone */
    hand_remove(&h, "main", "d"); /* the staging token has its tombstone */
    CHECK_INT(hand_count_rows(&h, b.staging), 1);
    hand_remove(&h, "main", "a"); /* in the tree */
    hand_remove(&h, "main", "b"); /* in the sealed token and in the tree */
    CHECK_INT(hand_count_rows(&h, b.staging), 3);
    hand_expect_list(&h, "main", "");
    hand_put(&h, "main", "b", "again");
    hand_remove(&h, "main", "b");
    hand_expect(&h, "main", "b", NULL);
    hand_expect_diff(&h, "main", "-a -b -c");
    hand_release(&h);
}

static size_t stage_batch(struct hand *h, const struct lake_put *puts, size_t count)
{
    size_t removed = 99;
    struct lake_stage_options o = {.removed = &removed};

    CHECK_INT(lake_stage(h->lake, &h->arena, &h->repo, STR("main"), puts, count, &o, &h->err), 0);
    return removed;
}

LAKE_LAB_TEST(lake_stage, a_batch_is_staged_as_a_whole)
{
    struct hand h = hand_of(lab);
    struct lake_entry one = hand_entry(&h, "one"), two = hand_entry(&h, "two");

    fill_layers(&h);
    struct lake_put puts[] = {{STR("z"), &one}, {STR("a"), NULL},       {STR("b"), NULL},
                              {STR("c"), NULL}, {STR("nowhere"), NULL}, {STR("z"), &two},
                              {STR("e"), NULL}};
    CHECK_INT(stage_batch(&h, puts, ARRAY_SIZE(puts)), 3);
    hand_expect_list(&h, "main", "z");
    hand_expect(&h, "main", "z", "two");
    hand_release(&h);
}

LAKE_LAB_TEST(lake_stage, a_batch_has_at_most_1000_paths)
{
    struct hand h = hand_of(lab);
    struct lake_entry e = hand_entry(&h, "x");
    struct lake_put *puts = arena_array(&h.arena, LAKE_BATCH_MAX + 1, sizeof(*puts));

    for (size_t i = 0; i <= LAKE_BATCH_MAX; i++)
        puts[i] = (struct lake_put){arena_fmt(&h.arena, "p%04zu", i), &e};
    CHECK_INT(
        lake_stage(h.lake, &h.arena, &h.repo, STR("main"), puts, LAKE_BATCH_MAX + 1, NULL, &h.err),
        ERR_INVALID);
    CHECK_INT(stage_batch(&h, puts, LAKE_BATCH_MAX), 0);
    for (size_t i = 0; i < LAKE_BATCH_MAX; i++)
        puts[i].entry = NULL;
    CHECK_INT(stage_batch(&h, puts + 1, LAKE_BATCH_MAX - 1), LAKE_BATCH_MAX - 1);
    hand_expect_list(&h, "main", "p0000");
    hand_release(&h);
}

/* Many sealed tokens and many paths: the reads do not fit into one round trip. */
LAKE_LAB_TEST(lake_stage, removals_read_through_many_sealed_tokens)
{
    struct hand h = hand_of(lab);
    struct lake_entry e = hand_entry(&h, "x");
    struct lake_put *puts = arena_array(&h.arena, LAKE_BATCH_MAX, sizeof(*puts));
    struct lake_branch b;
    struct lake_repo repo;

    for (size_t i = 0; i < LAKE_BATCH_MAX; i++)
        puts[i] = (struct lake_put){arena_fmt(&h.arena, "p%04zu", i), &e};
    for (size_t token = 0; token < 4; token++) {
        CHECK_INT(stage_batch(&h, puts + 250 * token, 250), 0);
        CHECK_INT(lake_seal(h.lake, &h.arena, &h.repo, STR("main"), &repo, &b, &h.err), 0);
    }
    CHECK_INT(b.sealed_count, 4);
    for (size_t i = 0; i < LAKE_BATCH_MAX; i++)
        puts[i].entry = NULL;
    CHECK_INT(stage_batch(&h, puts, LAKE_BATCH_MAX), LAKE_BATCH_MAX);
    hand_expect_list(&h, "main", "");
    hand_release(&h);
}

LAKE_LAB_TEST(lake_stage, bad_names_and_unknown_branches_are_refused)
{
    struct hand h = hand_of(lab);

    CHECK_INT(hand_try_put(&h, "main", "", "x"), ERR_INVALID);
    CHECK_INT(hand_try_put(&h, "main", "\xff\xfe", "x"), ERR_INVALID);
    CHECK_INT(hand_try_put(&h, "no$branch", "a", "x"), ERR_INVALID);
    CHECK_INT(hand_try_put(&h, "unknown", "a", "x"), ERR_NOT_FOUND);
    CHECK_STR(str_z(h.err.text), STR("branch not found"));
    h.repo.token = STR("other");
    CHECK_INT(hand_try_put(&h, "main", "a", "x"), ERR_NOT_FOUND);
    CHECK_STR(str_z(h.err.text), STR("repository not found"));
    hand_release(&h);
}

/* --- conditions --- */

struct expectation {
    const char *etag; /* of the present object; NULL: there is none */
    unsigned calls;
};

static int judge_etag(void *ctx, struct str path, const struct lake_object *present,
                      struct err *err)
{
    struct expectation *e = ctx;
    struct str want = str_z(e->etag), got = present ? present->entry.etag : STR_EMPTY;

    e->calls++;
    return (present != NULL) == (e->etag != NULL) && str_eq(want, got)
               ? 0
               : err_set(err, ERR_PRECONDITION, "another object is there");
}

static int put_if(struct hand *h, const char *path, const char *content, const char *present)
{
    struct expectation e = {.etag = present};
    struct lake_stage_options o = {.judge = judge_etag, .ctx = &e};
    struct lake_entry entry = hand_entry(h, content ? content : "");
    struct lake_put put = {str_z(path), content ? &entry : NULL};
    int code = lake_stage(h->lake, &h->arena, &h->repo, STR("main"), &put, 1, &o, &h->err);

    CHECK_INT(e.calls, 1);
    return code;
}

LAKE_LAB_TEST(lake_stage, conditions_see_every_layer)
{
    struct hand h = hand_of(lab);

    fill_layers(&h);
    CHECK_INT(put_if(&h, "a", "x", NULL), ERR_PRECONDITION);
    CHECK_INT(put_if(&h, "a", "x", "other"), ERR_PRECONDITION);
    CHECK_INT(put_if(&h, "a", "a4", "a1"), 0);
    CHECK_INT(put_if(&h, "b", "b4", "b1"), ERR_PRECONDITION);
    CHECK_INT(put_if(&h, "b", "b4", "b2"), 0);
    CHECK_INT(put_if(&h, "c", "c4", "c1"), ERR_PRECONDITION);
    CHECK_INT(put_if(&h, "c", "c4", NULL), 0);
    CHECK_INT(put_if(&h, "d", "d4", "d2"), ERR_PRECONDITION);
    CHECK_INT(put_if(&h, "d", "d4", NULL), 0);
    CHECK_INT(put_if(&h, "e", NULL, "other"), ERR_PRECONDITION);
    CHECK_INT(put_if(&h, "e", NULL, "e3"), 0);
    CHECK_INT(put_if(&h, "e", NULL, NULL), 0); /* nothing is there, and nothing is removed */
    CHECK_INT(put_if(&h, "f", "f4", NULL), 0);
    hand_expect_list(&h, "main", "a b c d f");
    hand_expect(&h, "main", "a", "a4");
    hand_release(&h);
}

struct other_write {
    struct hand *hand;
    const char *path, *content;
};

static void write_other(void *ctx)
{
    struct other_write *w = ctx;

    hand_put(w->hand, "main", w->path, w->content);
}

LAKE_LAB_TEST(lake_stage, a_condition_is_judged_in_the_step_of_the_write)
{
    struct hand h = hand_of(lab), other = hand_second(lab);
    struct other_write w = {&other, "a", "theirs"};

    steps_plan(STEPS_BEFORE, "lake.stage", 1, write_other, &w);
    CHECK_INT(hand_try_add(&h, "main", "a", "mine"), ERR_PRECONDITION);
    CHECK(steps_happened());
    hand_expect(&h, "main", "a", "theirs");
    hand_release(&other);
    hand_release(&h);
}

/* --- records that a stage has in memory (K1) --- */

static void note_call(void *ctx)
{
    *(bool *)ctx = true;
}

LAKE_LAB_TEST(lake_stage, a_further_stage_is_one_round_trip)
{
    struct hand h = hand_of(lab);
    bool has_read = false;

    hand_put(&h, "main", "a", "x");
    kv_spy_begin(h.lake);
    kv_spy_plan(KV_SPY_GET, 1, note_call, &has_read);
    hand_put(&h, "main", "b", "x");
    CHECK(!kv_spy_happened());
    CHECK(!has_read);
    kv_spy_end(h.lake);
    hand_expect_list(&h, "main", "a b");
    hand_release(&h);
}

LAKE_LAB_TEST(lake_stage, records_in_memory_that_are_old_are_read_again)
{
    struct hand h = hand_of(lab), other = hand_second(lab);

    hand_put(&h, "main", "a", "x");
    hand_commit(&other, "main", "of another process");
    hand_put(&h, "main", "b", "x");
    hand_expect_diff(&h, "main", "+b");
    hand_expect_list(&h, "main@", "a");
    hand_branch(&h, "short", "main");
    hand_put(&h, "short", "c", "x");
    CHECK_INT(
        lake_branch_delete(other.lake, &other.arena, &other.repo, STR("short"), false, &other.err),
        0);
    CHECK_INT(hand_try_put(&h, "short", "d", "x"), ERR_NOT_FOUND);
    CHECK_INT(hand_try_put(&h, "short", "d", "x"), ERR_NOT_FOUND);
    hand_branch(&other, "short", "main");
    hand_put(&h, "short", "e", "x");
    hand_expect_diff(&other, "short", "+e");
    hand_release(&other);
    hand_release(&h);
}

/* The token of an old record may have been dropped for good, so a row there would stay for ever. */
LAKE_LAB_TEST(lake_stage, no_row_goes_to_the_token_of_a_record_that_is_old)
{
    struct hand h = hand_of(lab), other = hand_second(lab);
    struct kv_value row;

    hand_put(&h, "main", "a", "x");
    struct lake_branch before = hand_read_branch(&h, "main");
    hand_commit(&other, "main", "of another process");
    hand_put(&h, "main", "b", "x");
    CHECK_INT(kv_get(lake_kv(h.lake), NULL, &h.arena,
                     lake_key_staged(&h.arena, before.staging, STR("b")), &row, &h.err),
              ERR_NOT_FOUND);
    hand_expect_list(&h, "main", "a b");
    hand_release(&other);
    hand_release(&h);
}

LAKE_LAB_TEST(lake_stage, rules_that_another_process_sets_hold_at_once)
{
    struct hand h = hand_of(lab), other = hand_second(lab);
    struct lake_protection_rule rule = {STR("main"), LAKE_PROTECT_STAGING};
    struct lake_protection rules = {.rules = &rule, .count = 1}, none = {0};

    hand_put(&h, "main", "a", "x");
    for (int i = 0; i < 2; i++) {
        CHECK_INT(
            lake_protection_set(other.lake, &other.arena, &other.repo, &rules, NULL, &other.err),
            0);
        CHECK_INT(hand_try_put(&h, "main", "b", "x"), ERR_DENIED);
        CHECK_INT(hand_try_put(&h, "main", "b", "x"), ERR_DENIED);
        CHECK_INT(
            lake_protection_set(other.lake, &other.arena, &other.repo, &none, NULL, &other.err), 0);
        hand_put(&h, "main", "c", "x");
    }
    hand_expect_list(&h, "main", "a c");
    hand_release(&other);
    hand_release(&h);
}

/* --- protection and the read-only flag --- */

static void protect(struct hand *h, const char *pattern, unsigned what)
{
    struct lake_protection_rule rule = {str_z(pattern), what};
    struct lake_protection rules = {.rules = &rule, .count = 1};

    CHECK_INT(lake_protection_set(h->lake, &h->arena, &h->repo, &rules, NULL, &h->err), 0);
}

LAKE_LAB_TEST(lake_stage, a_protected_branch_takes_no_writes)
{
    struct hand h = hand_of(lab);

    hand_branch(&h, "release-1", "main");
    hand_put(&h, "release-1", "a", "x");
    protect(&h, "release-*", LAKE_PROTECT_STAGING | LAKE_PROTECT_COMMIT);
    hand_put(&h, "main", "a", "x");
    CHECK_INT(hand_try_put(&h, "release-1", "a", "y"), ERR_DENIED);
    CHECK_INT(hand_try_commit(&h, "release-1", "no"), ERR_DENIED);
    CHECK_INT(lake_reset(h.lake, &h.arena, &h.repo, STR("release-1"), LAKE_RESET_ALL, STR_EMPTY,
                         false, &h.err),
              ERR_DENIED);
    CHECK_INT(
        lake_hard_reset(h.lake, &h.arena, &h.repo, STR("release-1"), STR("main"), false, &h.err),
        ERR_DENIED);
    protect(&h, "releas?-1", LAKE_PROTECT_COMMIT);
    hand_put(&h, "release-1", "a", "y");
    CHECK_INT(hand_try_commit(&h, "release-1", "no"), ERR_DENIED);
    protect(&h, "*-2", LAKE_PROTECT_STAGING | LAKE_PROTECT_COMMIT);
    hand_commit(&h, "release-1", "yes");
    hand_release(&h);
}

LAKE_LAB_TEST(lake_stage, a_read_only_repository_takes_writes_by_force_alone)
{
    struct hand h = hand_of(lab);
    struct lake_repo_options o = {.id = STR("fixed"),
                                  .space = STR("s3://lake-data/fixed"),
                                  .owner = STR(LAKE_LAB_OWNER),
                                  .read_only = true,
                                  .claimed = true};
    struct lake_entry e = hand_entry(&h, "x");
    struct lake_put put = {STR("a"), &e};
    struct lake_stage_options forced = {.force = true};
    struct lake_commit_options by_force = {.message = STR("m"), .force = true};
    struct lake_commit c;

    CHECK_INT(lake_repo_create(h.lake, &h.arena, &o, &h.repo, &h.err), 0);
    CHECK_INT(hand_try_put(&h, "main", "a", "x"), ERR_DENIED);
    CHECK_STR(str_z(h.err.text), STR("read-only repository"));
    CHECK_INT(lake_stage(h.lake, &h.arena, &h.repo, STR("main"), &put, 1, &forced, &h.err), 0);
    CHECK_INT(hand_try_commit(&h, "main", "no"), ERR_DENIED);
    CHECK_INT(lake_commit(h.lake, &h.arena, &h.repo, STR("main"), &by_force, &c, &h.err), 0);
    hand_release(&h);
}

/* --- listing --- */

static void expect_pages(struct hand *h, const char *ref, struct lake_list_options o,
                         const char *want)
{
    struct buf got = {0};
    struct lake_objects page;

    do {
        CHECK_INT(lake_list(h->lake, &h->arena, &h->repo, str_z(ref), &o, &page, &h->err), 0);
        CHECK(page.count <= o.limit);
        CHECK(!page.more || page.count == o.limit);
        for (size_t i = 0; i < page.count; i++) {
            const struct lake_object *item = &page.items[i];
            buf_appendf(&got, "%s" STR_FMT, got.len ? " " : "", STR_ARG(item->path));
            CHECK(item->is_prefix == (item->entry.etag.len == 0));
        }
        o.after = page.next;
    } while (page.more);
    CHECK_STR(buf_str(&got), str_z(want));
    buf_release(&got);
}

LAKE_LAB_TEST(lake_list, pages_fold_and_begin_behind_after)
{
    struct hand h = hand_of(lab);
    static const char *const paths[] = {"a",   "a/1", "a/2",   "a/b/1", "b",
                                        "c/1", "c/2", "c\xff", "d/1",   "\xf4\x8f\xbf\xbf/1"};

    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        if (strcmp(paths[i], "c\xff") == 0)
            continue; /* it is no UTF-8 */
        hand_put(&h, "main", paths[i], "x");
        if (i == 3 || i == 6)
            hand_commit(&h, "main", "c");
    }
    for (size_t limit = 1; limit < 12; limit++) {
        struct lake_list_options all = {.limit = limit};
        struct lake_list_options folded = {.delimiter = STR("/"), .limit = limit};
        struct lake_list_options in_a = {
            .prefix = STR("a/"), .delimiter = STR("/"), .limit = limit};
        struct lake_list_options behind = {.after = STR("a/2"), .limit = limit};
        struct lake_list_options inside = {
            .after = STR("a/1"), .delimiter = STR("/"), .limit = limit};
        expect_pages(&h, "main", all, "a a/1 a/2 a/b/1 b c/1 c/2 d/1 \xf4\x8f\xbf\xbf/1");
        expect_pages(&h, "main", folded, "a a/ b c/ d/ \xf4\x8f\xbf\xbf/");
        expect_pages(&h, "main", in_a, "a/1 a/2 a/b/");
        expect_pages(&h, "main", behind, "a/b/1 b c/1 c/2 d/1 \xf4\x8f\xbf\xbf/1");
        expect_pages(&h, "main", inside, "a/ b c/ d/ \xf4\x8f\xbf\xbf/");
        expect_pages(&h, "main@", in_a, "a/1 a/2 a/b/");
    }
    hand_release(&h);
}

LAKE_LAB_TEST(lake_list, a_prefix_whose_objects_are_all_removed_is_not_listed)
{
    struct hand h = hand_of(lab);
    struct lake_list_options folded = {.delimiter = STR("/"), .limit = 10};

    hand_put(&h, "main", "gone/1", "x");
    hand_put(&h, "main", "gone/2", "x");
    hand_put(&h, "main", "here/1", "x");
    hand_commit(&h, "main", "c");
    hand_remove(&h, "main", "gone/1");
    hand_remove(&h, "main", "gone/2");
    expect_pages(&h, "main", folded, "here/");
    expect_pages(&h, "main@", folded, "gone/ here/");
    hand_release(&h);
}

/* Folding is what the flat listing would show, over random layers. */
LAKE_LAB_TEST(lake_list, random_layers_are_listed_as_a_model_says)
{
    struct hand h = hand_of(lab);
    bool model[64] = {0};
    unsigned seed = 12345;

    for (unsigned i = 0; i < 400; i++) {
        char path[16];
        seed = seed * 1103515245 + 12345;
        unsigned n = (seed >> 16) % 64;
        snprintf(path, sizeof(path), "%c/%c/%c", 'a' + n / 16, 'a' + n / 4 % 4, 'a' + n % 4);
        if ((seed >> 24) % 3) {
            hand_put(&h, "main", path, "x");
            model[n] = true;
        } else {
            hand_remove(&h, "main", path);
            model[n] = false;
        }
        if (i % 97 == 96)
            hand_commit(&h, "main", "c");
    }
    struct buf flat = {0}, folded = {0};
    for (unsigned n = 0; n < 64; n++)
        if (model[n])
            buf_appendf(&flat, "%s%c/%c/%c", flat.len ? " " : "", 'a' + n / 16, 'a' + n / 4 % 4,
                        'a' + n % 4);
    for (unsigned top = 0; top < 4; top++)
        for (unsigned n = 0; n < 16; n++)
            if (model[16 * top + n]) {
                buf_appendf(&folded, "%s%c/", folded.len ? " " : "", 'a' + top);
                break;
            }
    buf_append_char(&flat, '\0');
    buf_append_char(&folded, '\0');
    expect_pages(&h, "main", (struct lake_list_options){.limit = 7}, flat.p);
    expect_pages(&h, "main", (struct lake_list_options){.limit = 1, .delimiter = STR("/")},
                 folded.p);
    buf_release(&flat);
    buf_release(&folded);
    hand_release(&h);
}
