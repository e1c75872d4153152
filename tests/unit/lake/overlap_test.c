/* Namespaces that overlap, and addresses that belong to another repository. */
#include "lake/claim.h"
#include "lake/gc.h"
#include "lake/import.h"
#include "lake/overlap.h"
#include "unit/lake/gc_lab.h"

static int try_create(struct lake_lab *lab, const char *id, const char *space, bool bare)
{
    struct lake_repo_options o = {.id = str_z(id),
                                  .owner = STR(LAKE_LAB_OWNER),
                                  .space =
                                      arena_fmt(&lab->arena, "s3://" LAKE_LAB_BUCKET "%s", space),
                                  .bare = bare};
    struct lake_repo repo;
    struct err err = {0};

    return lake_repo_create(lab->lake, &lab->arena, &o, &repo, &err);
}

GC_PLACES_TEST(lake_overlap, a_namespace_inside_or_above_another_is_refused)
{
    static const char *const overlapping[] = {
        "",        "/repo",    "/repo/data", "/repo/data/x",
        "/repo/x", "/deep/er", "/deep",      "/deep/er/data/x"};

    CHECK_INT(try_create(lab, "deep", "/deep/er", false), 0);
    for (size_t i = 0; i < ARRAY_SIZE(overlapping); i++) {
        CHECK_INT(try_create(lab, "plain", overlapping[i], false), ERR_IN_USE);
        CHECK_INT(try_create(lab, "bare", overlapping[i], true), ERR_IN_USE);
    }
    CHECK_INT(try_create(lab, "repo2", "/repo2", false), 0); /* only the names begin alike */
    CHECK_INT(try_create(lab, "beside", "/deep/err", false), 0);
}

/* A process died while it made a repository there; its row must not stand in the way for ever. */
GC_LAB_TEST(lake_overlap, a_claim_that_was_left_behind_does_not_refuse)
{
    struct err err = {0};

    CHECK_OK(kv_set(lab->lake->kv, lake_key_claim(&lab->arena, STR("dead-1")),
                    STR("s3://" LAKE_LAB_BUCKET "/left/data"), &err));
    CHECK_INT(try_create(lab, "left", "/left", false), 0);
}

/* --- two at once --- */

struct maker {
    struct hand hand;
    struct thread thread;
    const char *id, *below; /* the name, and what its namespace has behind "/r<n>" */
    unsigned n;
    int code;
};

static void maker_main(void *ctx)
{
    struct maker *m = ctx;
    struct lake_repo_options o = {
        .id = arena_fmt(&m->hand.arena, "%s%u", m->id, m->n),
        .owner = STR(LAKE_LAB_OWNER),
        .space = arena_fmt(&m->hand.arena, "s3://" LAKE_LAB_BUCKET "/r%u%s", m->n, m->below),
        .bare = true};
    struct lake_repo repo;
    struct err err = {0};

    m->code = lake_repo_create(m->hand.lake, &m->hand.arena, &o, &repo, &err);
}

GC_LAB_TEST(lake_overlap, of_two_that_overlap_and_are_made_at_once_at_most_one_is_made)
{
    for (unsigned n = 0; n < 20; n++) {
        struct maker makers[] = {{.hand = hand_of(lab), .id = "outer", .below = "", .n = n},
                                 {.hand = hand_of(lab), .id = "inner", .below = "/data/x", .n = n}};
        struct err err = {0};
        for (size_t i = 0; i < ARRAY_SIZE(makers); i++)
            CHECK_OK(thread_start(&makers[i].thread, "maker", 0, maker_main, &makers[i], &err));
        for (size_t i = 0; i < ARRAY_SIZE(makers); i++) {
            thread_join(&makers[i].thread);
            hand_release(&makers[i].hand);
            CHECK(makers[i].code == 0 || makers[i].code == ERR_IN_USE);
        }
        CHECK(makers[0].code < 0 || makers[1].code < 0);
    }
}

/* --- addresses --- */

static int try_import(struct hand *h, const char *source, bool is_object)
{
    struct lake_import_path path = {
        .source = str_z(source), .destination = STR("in/x"), .is_object = is_object};
    struct lake_import_options o = {.branch = STR("main"), .paths = &path, .count = 1};
    struct str id;

    h->err = (struct err){0};
    return lake_import_start(h->lake, &h->arena, &h->repo, &o, &id, &h->err);
}

GC_LAB_TEST(lake_overlap, objects_of_another_repository_cannot_be_imported)
{
    struct hand h = hand_of(lab);

    lake_lab_repo(lab, "other");
    CHECK_INT(try_import(&h, "s3://" LAKE_LAB_BUCKET "/other/data/hour/1", true), ERR_INVALID);
    CHECK(strstr(h.err.text, "repository other"));
    CHECK_INT(try_import(&h, "s3://" LAKE_LAB_BUCKET "/other/_lakefs/x", true), ERR_INVALID);
    CHECK_INT(try_import(&h, "s3://" LAKE_LAB_BUCKET "/other/data/", false), ERR_INVALID);
    CHECK_INT(try_import(&h, "s3://" LAKE_LAB_BUCKET "/oth", false), ERR_INVALID);
    CHECK_INT(try_import(&h, "s3://" LAKE_LAB_BUCKET "/other/mine/", false), 0);
    CHECK_INT(try_import(&h, "s3://" LAKE_LAB_BUCKET "/other.csv", true), 0);
    hand_release(&h);
}
