/* Migration from the tables of an old lakeFS, on a real PostgreSQL. */
#include "lake/migrate.h"

#include "base/clock.h"
#include "base/hex.h"
#include "lake/delete.h"
#include "lake/iter.h"
#include "lake/mover.h"
#include "lake/node.h"
#include "unit/kv/cut_proxy.h"
#include "unit/kv/postgres_server.h"
#include "unit/kv/postgres_shared.h"
#include "unit/lake/moves_lab.h"
#include "unit/lake/sst_file.h"
#include "unit/lake/steps.h"

#include <stdio.h>

/* The tables of lakeFS as its last version with SQL had them. */
static const char tables[] =
    "CREATE TABLE graveler_repositories (id text PRIMARY KEY, storage_namespace text NOT NULL, "
    "creation_date timestamptz NOT NULL, default_branch text NOT NULL);"
    "CREATE TABLE graveler_branches (repository_id text NOT NULL, id text NOT NULL, staging_token "
    "text, commit_id text, PRIMARY KEY (repository_id, id));"
    "CREATE TABLE graveler_commits (repository_id text NOT NULL, id text NOT NULL, committer text "
    "NOT NULL, message text NOT NULL, creation_date timestamptz NOT NULL, meta_range_id text NOT "
    "NULL, metadata jsonb, parents text[], version int NOT NULL DEFAULT 0, generation int, PRIMARY "
    "KEY (repository_id, id));"
    "CREATE TABLE graveler_tags (repository_id text NOT NULL, id text NOT NULL, commit_id text, "
    "PRIMARY KEY (repository_id, id));"
    "CREATE TABLE graveler_staging_kv (staging_token varchar NOT NULL, key bytea NOT NULL, "
    "identity "
    "bytea, data bytea, UNIQUE (staging_token, key)) PARTITION BY HASH (staging_token);"
    "CREATE TABLE graveler_staging_kv_p0 PARTITION OF graveler_staging_kv FOR VALUES WITH (MODULUS "
    "2, REMAINDER 0);"
    "CREATE TABLE graveler_staging_kv_p1 PARTITION OF graveler_staging_kv FOR VALUES WITH (MODULUS "
    "2, REMAINDER 1);"
    "CREATE TABLE gateway_multiparts (upload_id varchar PRIMARY KEY, path varchar NOT NULL, "
    "creation_date timestamptz DEFAULT now(), physical_address varchar, metadata jsonb, "
    "content_type text);";

/* --- the source --- */

struct old_lake {
    struct lake_lab *lab;
    struct hand hand; /* of the repository "old" once it is migrated */
    const char *url;
    struct str root, left, right, merge; /* commits of "old" */
    struct str tree;                     /* of the merge: one range with the path old/path */
    /* What the migration has told. */
    struct lake_migrate_repo last;
    char error[512];
    unsigned done, present, failed;
};

PRINTF_LIKE(2, 3)
static void old_sql(struct old_lake *o, const char *fmt, ...)
{
    struct buf sql = {0};
    va_list args;

    va_start(args, fmt);
    buf_vappendf(&sql, fmt, args);
    va_end(args);
    CHECK(postgres_run(o->url, sql.p));
    buf_release(&sql);
}

/* Puts a commit into the source, with the id that lakeFS gives to it. SQL's text of metadata and
 * generation is given apart. */
static struct str old_commit(struct old_lake *o, const char *repo, struct lake_commit *c,
                             const char *metadata, const char *generation)
{
    struct arena *a = &o->lab->arena;
    char id[LAKE_ID_LEN + 1];
    struct buf parents = {0};

    c->committer = STR("tester");
    c->created_ms = 1600000000123;
    lake_commit_id(id, c);
    c->id = arena_str(a, str_z(id));
    for (size_t i = 0; i < c->parent_count; i++)
        buf_appendf(&parents, "%s'" STR_FMT "'", i ? "," : "", STR_ARG(c->parents[i]));
    old_sql(o,
            "INSERT INTO graveler_commits VALUES ('%s', '%s', 'tester', '" STR_FMT
            "', to_timestamp(1600000000.123), '" STR_FMT "', %s, %s%s%s, %d, %s)",
            repo, id, STR_ARG(c->message), STR_ARG(c->tree), metadata,
            c->parent_count ? "ARRAY[" : "NULL", c->parent_count ? parents.p : "",
            c->parent_count ? "]" : "", c->version, generation);
    buf_release(&parents);
    return c->id;
}

/* A history of version 0, whose first parents are last, without generations or with wrong ones. */
static void old_commits(struct old_lake *o)
{
    struct str_pair pairs[] = {{STR("key"), STR("value")}, {STR("\xc3\xa4"), STR("")}};
    struct lake_commit root = {.message = STR("root")}, left = {.message = STR("left")},
                       right = {.message = STR("right")}, merge = {.message = STR("merge")};

    o->root = old_commit(o, "old", &root, "NULL", "NULL");
    left.parents = &o->root;
    left.parent_count = 1;
    o->left = old_commit(o, "old", &left, "'null'", "1");
    right.parents = &o->left;
    right.parent_count = 1;
    right.version = 1;
    right.metadata = (struct str_pairs){pairs, 2};
    o->right = old_commit(o, "old", &right, "'{\"\xc3\xa4\": \"\", \"key\": \"value\"}'", "NULL");
    struct str parents[] = {o->right, o->left};
    merge.parents = parents;
    merge.parent_count = 2;
    merge.tree = o->tree;
    o->merge = old_commit(o, "old", &merge, "'{}'", "2");
}

static void old_staged(struct old_lake *o, const char *token, const char *path_hex,
                       const char *content)
{
    struct lake_entry e = hand_entry(&o->hand, content ? content : "");
    struct buf data = {0};
    char *hex;

    lake_entry_write(&data, &e);
    hex = arena_alloc(&o->lab->arena, 2 * data.len + 1);
    hex_write(hex, data.p, data.len);
    if (content)
        old_sql(o, "INSERT INTO graveler_staging_kv VALUES ('%s', '\\x%s', '\\x01%s', '\\x%s')",
                token, path_hex, path_hex, hex);
    else
        old_sql(o, "INSERT INTO graveler_staging_kv VALUES ('%s', '\\x%s', NULL, NULL)", token,
                path_hex);
    buf_release(&data);
}

/* Every oddity that the tables allow. */
static void old_fill(struct old_lake *o)
{
    old_sql(o, "INSERT INTO graveler_repositories VALUES ('old', 's3://" LAKE_LAB_BUCKET
               "/old', '2021-02-03 04:05:06.789+00', 'main')");
    old_commits(o);
    old_sql(o,
            "INSERT INTO graveler_branches VALUES ('old', 'main', 'old-main:token', '" STR_FMT
            "'), ('old', 'empty', NULL, NULL), ('old', 'work', 'old-work:token', '" STR_FMT "')",
            STR_ARG(o->merge), STR_ARG(o->left));
    old_sql(o,
            "INSERT INTO graveler_tags VALUES ('old', 'v1', '" STR_FMT "'), ('old', 'none', NULL)",
            STR_ARG(o->root));
    old_staged(o, "old-main:token", "61", "staged a");         /* a */
    old_staged(o, "old-main:token", "6f6c642f70617468", NULL); /* removes old/path */
    old_staged(o, "old-main:token", "ff00fe", "binary");       /* not UTF-8 */
    old_staged(o, "old-main:token", "", "no path");            /* left behind */
    old_staged(o, "old-work:token", "62", "staged b");         /* b */
    old_staged(o, "old-gone:token", "63", "orphan");
    old_staged(o, "old-gone:token", "64", "orphan");
    old_sql(o, "INSERT INTO graveler_branches VALUES ('gone', 'main', NULL, NULL)");
    old_sql(o, "INSERT INTO gateway_multiparts VALUES ('upload-1', 'a/b', '2021-01-01Z', 'data/x', "
               "'{\"m\": \"n\"}', 'text/plain'), ('upload-2', 'c', NULL, NULL, NULL, NULL)");
}

/* Puts a range and a metarange of lakeFS with one object into the namespace of "old". */
static void old_trees(struct old_lake *o)
{
    struct lake_entry e = hand_entry(&o->hand, "old");
    struct moves_tree t = {.count = 1};
    struct buf data = {0};

    e.address = STR("data/old");
    gc_lab_put_foreign(&o->hand, e.address, STR("old"));
    lake_entry_write(&data, &e);
    t.records[0] = (struct tree_record){STR("old/path"), STR("an identity of lakeFS"),
                                        arena_str(&o->hand.arena, buf_str(&data))};
    buf_release(&data);
    o->tree = moves_put_tables(&o->hand, &t);
}

static void old_open(struct old_lake *o, struct lake_lab *lab)
{
    *o = (struct old_lake){.lab = lab, .hand = hand_of(lab)};
    o->url = lab->kv_lab->driver == KV_LAB_POSTGRES ? lab->kv_lab->url : postgres_shared_url();
    o->hand.repo.id = STR("old");
    o->hand.repo.space = STR("s3://" LAKE_LAB_BUCKET "/old");
    old_sql(o, "%s", tables);
    old_trees(o);
    old_fill(o);
}

static void old_close(struct old_lake *o)
{
    hand_release(&o->hand);
    if (o->lab->kv_lab->driver != KV_LAB_POSTGRES)
        postgres_shared_drop();
}

static void old_told(void *ctx, const struct lake_migrate_repo *r)
{
    struct old_lake *o = ctx;

    o->last = *r;
    o->done += r->state == LAKE_MIGRATE_DONE;
    o->present += r->state == LAKE_MIGRATE_PRESENT;
    o->failed += r->state == LAKE_MIGRATE_FAILED;
    if (r->state == LAKE_MIGRATE_FAILED)
        snprintf(o->error, sizeof(o->error), STR_FMT, STR_ARG(r->error));
}

static int old_try(struct old_lake *o, const struct lake_progress *p,
                   struct lake_migrate_totals *out)
{
    struct lake_migrate_options options = {
        .url = o->url, .owner = STR(LAKE_LAB_OWNER), .progress = p, .told = old_told, .ctx = o};

    o->done = o->present = o->failed = 0;
    o->hand.err = (struct err){0};
    return lake_migrate(o->lab->lake, &options, out, &o->hand.err);
}

/* The repository "old" has everything that the source has. */
static void old_check(struct old_lake *o)
{
    struct hand *h = &o->hand;
    struct lake_commit c;
    struct lake_tag tag;
    struct err err = {0};

    CHECK_OK(lake_repo_get(h->lake, &h->arena, STR("old"), &h->repo, &err));
    CHECK_STR(h->repo.default_branch, STR("main"));
    CHECK_INT(h->repo.created_ms, 1612325106789);
    hand_expect_list(h, "main@", "old/path");
    hand_expect(h, "main@", "old/path", "old");
    hand_expect(h, "main", "a", "staged a");
    hand_expect(h, "main", "old/path", NULL);
    hand_expect(h, "work", "b", "staged b");
    hand_expect_list(h, "empty", "");
    CHECK(!str_eq(hand_read_branch(h, "main").staging, STR("old-main:token")));
    CHECK(str_starts(hand_read_branch(h, "empty").staging, STR("old-empty:")));
    CHECK_INT(hand_read_branch(h, "empty").commit_id.len, 0);
    CHECK(hand_read_branch(h, "empty").epoch > 0); /* it is random */
    CHECK_OK(lake_commit_get(h->lake, &h->arena, &h->repo, o->merge, &c, &err));
    CHECK_INT(c.generation, 4);
    CHECK_INT(c.created_ms, 1600000000123);
    CHECK_STR(lake_commit_first_parent(&c), o->left);
    CHECK_OK(lake_commit_get(h->lake, &h->arena, &h->repo, o->right, &c, &err));
    CHECK_INT(c.metadata.count, 2);
    CHECK_OK(lake_tag_get(h->lake, &h->arena, &h->repo, STR("v1"), &tag, &err));
    CHECK_STR(tag.commit_id, o->root);
    CHECK_OK(lake_tag_get(h->lake, &h->arena, &h->repo, STR("none"), &tag, &err));
    CHECK_INT(tag.commit_id.len, 0);
}

/* --- tests --- */

GC_LAB_TEST(lake_migrate, every_oddity_of_the_tables_is_moved)
{
    struct lake_migrate_totals totals;
    struct old_lake o;
    struct kv_value row;
    struct err err = {0};

    old_open(&o, lab);
    CHECK_INT(old_try(&o, NULL, &totals), 0);
    CHECK_INT(o.done, 1);
    CHECK_INT(o.last.commits, 4);
    CHECK_INT(o.last.branches, 3);
    CHECK_INT(o.last.tags, 2);
    CHECK_INT(o.last.staged, 5);
    CHECK_INT(o.last.left, 1);
    CHECK_INT(totals.uploads, 2);
    CHECK_INT(totals.orphan_tokens, 1);
    CHECK_INT(totals.orphan_rows, 2);
    CHECK_INT(totals.homeless, 1);
    old_check(&o);
    CHECK_INT(hand_count_rows(&o.hand, STR("old-gone:token")), 0);
    CHECK_INT(hand_count_rows(&o.hand, STR("old-main:token")), 0); /* D10 */
    struct str token = hand_read_branch(&o.hand, "main").staging;
    CHECK_INT(hand_count_rows(&o.hand, token), 3);
    CHECK_OK(
        kv_get(lab->lake->kv, NULL, &lab->arena, KV_NAME("multiparts", "upload-1"), &row, &err));
    CHECK_OK(kv_get(lab->lake->kv, NULL, &lab->arena,
                    (struct kv_name){token, STR("key/\xff\x00\xfe")}, &row, &err));
    old_close(&o);
}

/* Values of no bytes where others have NULL, NULL in one column alone, and a history that begins
 * with an empty array of parents. */
GC_LAB_TEST(lake_migrate, empty_values_are_moved_like_null)
{
    struct str_pair pair = {STR("none"), STR("")};
    struct lake_commit c = {.message = STR(""), .metadata = {&pair, 1}};
    struct lake_migrate_totals totals;
    struct lake_commit moved;
    struct lake_tag tag;
    struct old_lake o;

    old_open(&o, lab);
    old_sql(&o, "INSERT INTO graveler_repositories VALUES ('odd', 's3://" LAKE_LAB_BUCKET
                "/odd', '1969-12-31 23:59:59.5+00', 'main')");
    struct str id = old_commit(&o, "odd", &c, "'{\"none\": null}'", "0");
    old_sql(&o, "UPDATE graveler_commits SET parents = '{}' WHERE repository_id = 'odd'");
    old_sql(&o,
            "INSERT INTO graveler_branches VALUES ('odd', 'main', 'odd-main:token', '" STR_FMT
            "'), ('odd', 'bare', '', '')",
            STR_ARG(id));
    old_sql(&o, "INSERT INTO graveler_tags VALUES ('odd', 'none', '')");
    old_sql(&o, "INSERT INTO graveler_staging_kv VALUES ('odd-main:token', 'gone', NULL, 'data'), "
                "('odd-main:token', 'bare', 'identity', NULL), ('', 'nobody', 'i', 'd')");
    old_staged(&o, "odd-main:token", "2f", "a slash");
    CHECK_INT(old_try(&o, NULL, &totals), 0);
    CHECK_INT(o.done, 2);
    CHECK_INT(totals.orphan_rows, 3); /* an empty token is none, so nobody has that row */
    struct hand h = o.hand;
    struct err err = {0};
    CHECK_OK(lake_repo_get(h.lake, &h.arena, STR("odd"), &h.repo, &err));
    CHECK_INT(h.repo.created_ms, -500);
    CHECK_OK(lake_commit_get(h.lake, &h.arena, &h.repo, id, &moved, &err));
    CHECK_INT(moved.parent_count, 0);
    CHECK_INT(moved.generation, 1);
    CHECK_INT(moved.metadata.count, 1);
    CHECK_OK(lake_tag_get(h.lake, &h.arena, &h.repo, STR("none"), &tag, &err));
    CHECK_INT(tag.commit_id.len, 0);
    hand_expect(&h, "main", "/", "a slash");
    hand_expect(&h, "main", "gone", NULL);
    hand_expect_list(&h, "main", "/ bare");
    hand_expect_list(&h, "bare", "");
    o.hand = h;
    old_close(&o);
}

GC_LAB_TEST(lake_migrate, a_second_run_finds_all_present)
{
    struct lake_migrate_totals totals;
    struct old_lake o;

    old_open(&o, lab);
    CHECK_INT(old_try(&o, NULL, &totals), 0);
    old_check(&o);
    hand_put(&o.hand, "main", "new", "new"); /* the repository is in use now */
    CHECK_INT(old_try(&o, NULL, &totals), 0);
    CHECK_INT(o.done + o.failed, 0);
    CHECK_INT(o.present, 1);
    hand_expect(&o.hand, "main", "new", "new");
    old_close(&o);
}

GC_LAB_TEST(lake_migrate, a_migrated_repository_is_committed_merged_and_collected)
{
    struct lake_migrate_totals totals;
    struct old_lake o;

    old_open(&o, lab);
    CHECK_INT(old_try(&o, NULL, &totals), 0);
    old_check(&o);
    hand_commit(&o.hand, "work", "what was staged");
    hand_expect_list(&o.hand, "work@", "b");
    CHECK_INT(hand_try_commit(&o.hand, "main", "what was staged"), 0);
    hand_expect(&o.hand, "main@", "a", "staged a");
    hand_expect(&o.hand, "main@", "old/path", NULL);
    hand_merge(&o.hand, "work", "main");
    hand_expect(&o.hand, "main", "b", "staged b");
    hand_expect(&o.hand, "main~2", "old/path", "old");
    CHECK_INT(gc_lab_collect(&o.hand, false).stage, LAKE_GC_DONE);
    old_close(&o);
}

/* The server ends all connections to the source. */
static void old_cut(void *ctx)
{
    struct old_lake *o = ctx;

    CHECK(postgres_run(o->url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                               "application_name = 'weir lake migrate' AND datname = "
                               "current_database()"));
}

GC_LAB_TEST(lake_migrate, a_migration_whose_source_goes_away_goes_on_later)
{
    struct lake_migrate_totals totals;
    struct old_lake o;
    unsigned cut = 0;
    int code = ERR_UNAVAILABLE;

    old_open(&o, lab);
    for (unsigned n = 1; code < 0 && n < 20; n++) {
        steps_plan(n % 2 ? STEPS_BEFORE : STEPS_AFTER, "lake.migrate_row", 4, old_cut, &o);
        code = old_try(&o, NULL, &totals);
        cut += steps_happened() && code < 0;
        if (code < 0)
            CHECK_INT(code, ERR_UNAVAILABLE);
    }
    if (code < 0)
        CHECK_INT(old_try(&o, NULL, &totals), 0);
    CHECK(cut >= 3);
    old_check(&o);
    old_close(&o);
}

/* The source changes between a run that was stopped and the next one. */
GC_LAB_TEST(lake_migrate, a_source_that_changed_meanwhile_is_copied_anew)
{
    struct lake_migrate_totals totals;
    struct old_lake o;

    old_open(&o, lab);
    steps_plan(STEPS_AFTER, "lake.migrate_row", 5, old_cut, &o); /* uploads, mark, commits, tags */
    CHECK_ERR(old_try(&o, NULL, &totals), ERR_UNAVAILABLE);
    CHECK(steps_happened());
    old_sql(&o, "DELETE FROM graveler_tags WHERE id = 'none'");
    CHECK_INT(old_try(&o, NULL, &totals), 0);
    CHECK_INT(o.failed, 1);
    CHECK(str_find(str_z(o.error), STR("run the migration again")) >= 0);
    old_sql(&o, "INSERT INTO graveler_tags VALUES ('old', 'none', NULL)");
    CHECK_INT(old_try(&o, NULL, &totals), 0);
    CHECK_INT(o.done, 1);
    old_check(&o);
    old_close(&o);
}

/* A repository that cannot be moved does not hold up the others. */
GC_LAB_TEST(lake_migrate, repositories_that_cannot_be_moved_are_told)
{
    static const struct {
        const char *sql, *undo, *text;
    } cases[] = {
        {"INSERT INTO graveler_repositories VALUES ('bad', 'gs://x/y', now(), 'main')", "",
         "storage namespace"},
        {"UPDATE graveler_repositories SET storage_namespace = 's3://absent/x' WHERE id = 'bad'",
         "", "absent"},
        {"UPDATE graveler_repositories SET storage_namespace = 's3://" LAKE_LAB_BUCKET
         "/bad', default_branch = 'ma in' WHERE id = 'bad'",
         "UPDATE graveler_repositories SET default_branch = 'main' WHERE id = 'bad'",
         "branch's name"},
        {"INSERT INTO graveler_branches VALUES ('bad', 'main', NULL, repeat('0', 64))",
         "DELETE FROM graveler_branches WHERE repository_id = 'bad'", "is missing"},
        {"INSERT INTO graveler_tags VALUES ('bad', 'a b', NULL)",
         "DELETE FROM graveler_tags WHERE repository_id = 'bad'", "tag's name"},
        {"INSERT INTO graveler_commits VALUES ('bad', repeat('0', 64), 'x', 'y', now(), '', NULL, "
         "NULL, 1, 1)",
         "DELETE FROM graveler_commits WHERE repository_id = 'bad'", "its id says"},
    };
    struct lake_migrate_totals totals;
    struct old_lake o;

    old_open(&o, lab);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        old_sql(&o, "%s", cases[i].sql);
        CHECK_INT(old_try(&o, NULL, &totals), 0);
        CHECK_INT(o.failed, 1);
        CHECK(str_find(str_z(o.error), str_z(cases[i].text)) >= 0);
        CHECK_INT(o.done + o.present, 1);
        if (*cases[i].undo)
            old_sql(&o, "%s", cases[i].undo);
    }
    CHECK_INT(old_try(&o, NULL, &totals), 0);
    CHECK_INT(o.failed, 0);
    old_check(&o);
    old_close(&o);
}

GC_LAB_TEST(lake_migrate, a_name_that_is_taken_is_refused)
{
    struct lake_migrate_totals totals;
    struct old_lake o;

    old_open(&o, lab);
    old_sql(&o, "UPDATE graveler_repositories SET id = 'repo'");
    CHECK_INT(old_try(&o, NULL, &totals), 0);
    CHECK_INT(o.failed, 1);
    CHECK(str_find(str_z(o.error), STR("another repository of this name")) >= 0);
    old_close(&o);
}

static bool old_goes_on(void *ctx, uint64_t rows)
{
    return false;
}

GC_LAB_TEST(lake_migrate, a_migration_is_stopped_by_its_caller)
{
    struct lake_migrate_totals totals;
    struct lake_progress p = {old_goes_on, NULL};
    struct old_lake o;

    old_open(&o, lab);
    CHECK_ERR(old_try(&o, &p, &totals), ERR_CANCELED);
    CHECK_INT(old_try(&o, NULL, &totals), 0);
    old_check(&o);
    old_close(&o);
}

/* --- a source that does not answer --- */

/* A call that waits for the source's time-outs, 10 s and 10 minutes, takes longer. */
enum { PROMPTLY_MS = 8000 };

/* A server that accepts connections and never says a word. */
static bool mover_is_running(struct lake_mover *mover)
{
    struct arena a = {0};
    struct lake_mover_status status;
    struct err err = {0};

    CHECK_OK(lake_mover_status(mover, &a, &status, &err));
    arena_release(&a);
    return status.is_running;
}

GC_LAB_TEST(lake_migrate, a_source_that_never_answers_does_not_hold_up_the_end)
{
    struct lake_mover *mover = lake_mover_new(lab->lake);
    struct lake_mover_status status;
    struct cut_proxy proxy;
    struct err err = {0};
    char url[80];

    cut_proxy_start(&proxy, NULL);
    snprintf(url, sizeof(url), "postgres://weir:hidden@127.0.0.1:%d/none", proxy.port);
    CHECK_OK(lake_mover_start(mover, str_z(url), STR(LAKE_LAB_OWNER), &err));
    CHECK_SOON(proxy.met == 1);
    uint64_t began = clock_mono_ms();
    lake_mover_stop(mover);
    CHECK_SOON(!mover_is_running(mover));
    CHECK_OK(lake_mover_status(mover, &lab->arena, &status, &err));
    CHECK(str_find(status.error, STR("was stopped")) >= 0);
    CHECK_OK(lake_mover_start(mover, str_z(url), STR(LAKE_LAB_OWNER), &err));
    CHECK_SOON(proxy.met == 2);
    lake_mover_free(mover);
    CHECK(clock_mono_ms() - began < PROMPTLY_MS);
    cut_proxy_stop(&proxy);
}

struct held_source {
    struct old_lake *old;
    struct cut_proxy proxy;
    struct thread thread;
    _Atomic(bool) canceled;
    bool cancels;
};

static void held_cancel(void *ctx)
{
    struct held_source *h = ctx;

    CHECK_SOON(h->proxy.asked);
    h->canceled = h->cancels;
}

static void held_begin(void *ctx)
{
    struct held_source *h = ctx;
    struct err err = {0};

    h->proxy.moment = CUT_HOLD;
    CHECK_OK(thread_start(&h->thread, "cancel", 0, held_cancel, h, &err));
}

/* Migrates through a proxy that lets nothing pass behind the n-th write. */
static int held_try(struct held_source *h, struct lake_migrate_options *o, unsigned n)
{
    struct lake_migrate_totals totals;

    h->canceled = h->proxy.asked = false;
    h->old->hand.err = (struct err){0};
    steps_plan(STEPS_AFTER, "lake.migrate_row", n, held_begin, h);
    int code = lake_migrate(h->old->lab->lake, o, &totals, &h->old->hand.err);
    CHECK(steps_happened());
    thread_join(&h->thread);
    h->thread = (struct thread){0};
    h->proxy.moment = CUT_NOTHING;
    return code;
}

GC_LAB_TEST(lake_migrate, a_source_that_stops_answering_is_given_up_and_goes_on_later)
{
    struct lake_migrate_totals totals;
    struct old_lake old;
    struct held_source h = {.old = &old};
    char url[512];

    old_open(&old, lab);
    cut_proxy_start_postgres(&h.proxy, old.url, url, sizeof(url));
    struct lake_migrate_options o = {.url = url,
                                     .owner = STR(LAKE_LAB_OWNER),
                                     .canceled = &h.canceled,
                                     .told = old_told,
                                     .ctx = &old};
    h.cancels = true;
    uint64_t began = clock_mono_ms();
    CHECK_ERR(held_try(&h, &o, 4), ERR_CANCELED); /* uploads, mark, commits */
    CHECK(clock_mono_ms() - began < PROMPTLY_MS);
    h.cancels = false;
    o.timeout_ms = 1000;
    CHECK_ERR(held_try(&h, &o, 3), ERR_UNAVAILABLE); /* uploads, tags */
    CHECK(str_find(str_z(old.hand.err.text), STR("has not answered a statement for 1 s")) >= 0);
    steps_plan(STEPS_AFTER, "lake.migrate_row", 100, NULL, NULL);
    CHECK_INT(old_try(&old, NULL, &totals), 0);
    CHECK_INT(steps_count("lake.migrate_row"), 8);
    CHECK(!steps_happened());
    old_check(&old);
    cut_proxy_stop(&h.proxy);
    old_close(&old);
}

GC_LAB_TEST(lake_migrate, a_database_without_the_tables_is_refused)
{
    struct lake_migrate_totals totals;
    struct old_lake o = {.lab = lab, .hand = hand_of(lab)};

    o.url = lab->kv_lab->driver == KV_LAB_POSTGRES ? lab->kv_lab->url : postgres_shared_url();
    CHECK_ERR(old_try(&o, NULL, &totals), ERR_INVALID);
    CHECK(str_find(str_z(o.hand.err.text), STR("graveler_repositories")) >= 0);
    const char *url = o.url;
    o.url = "postgres://user:hidden@127.0.0.1:1/none";
    CHECK_ERR(old_try(&o, NULL, &totals), ERR_UNAVAILABLE);
    CHECK(str_find(str_z(o.hand.err.text), STR("hidden")) < 0);
    o.url = "nonsense";
    CHECK_ERR(old_try(&o, NULL, &totals), ERR_INVALID);
    o.url = url;
    old_close(&o);
}

/* --- tokens (D10) --- */

GC_LAB_TEST(lake_migrate, a_token_that_names_another_partition_does_not_reach_it)
{
    struct lake_migrate_totals totals;
    struct old_lake o;
    struct hand *h = &o.hand;
    struct err err = {0};
    struct lake_repo other;

    old_open(&o, lab);
    old_sql(&o, "UPDATE graveler_staging_kv SET staging_token = 'graveler' WHERE staging_token = "
                "'old-main:token'");
    old_sql(&o, "UPDATE graveler_branches SET staging_token = 'graveler' WHERE staging_token = "
                "'old-main:token'");
    CHECK_INT(old_try(&o, NULL, &totals), 0);
    old_check(&o);
    CHECK_OK(lake_reset(h->lake, &h->arena, &h->repo, STR("main"), LAKE_RESET_ALL, STR_EMPTY, false,
                        &err));
    CHECK_OK(lake_clean(h->lake, &err));
    CHECK_OK(lake_repo_get(h->lake, &h->arena, STR("old"), &other, &err));
    CHECK_OK(lake_repo_get(h->lake, &h->arena, lab->repo.id, &other, &err));
    old_close(&o);
}

/* The token of the first migration is dropped a second time while the repository is there again. */
GC_LAB_TEST(lake_migrate, a_repository_that_was_deleted_is_moved_again)
{
    struct lake_migrate_totals totals;
    struct old_lake o;
    struct hand *h = &o.hand;
    struct err err = {0};

    old_open(&o, lab);
    lab->lake->claim_fresh_ms = 0;
    hand_drop_again(h, MS_PER_DAY);
    CHECK_INT(old_try(&o, NULL, &totals), 0);
    old_check(&o);
    CHECK_OK(lake_repo_delete(h->lake, &h->arena, STR("old"), true, false, &err));
    CHECK_OK(lake_delete_work(h->lake, NULL, NULL, &err));
    CHECK_OK(lake_clean(h->lake, &err));
    CHECK_INT(old_try(&o, NULL, &totals), 0);
    hand_drop_again(h, 0);
    CHECK_OK(lake_clean(h->lake, &err));
    old_check(&o);
    old_close(&o);
}
