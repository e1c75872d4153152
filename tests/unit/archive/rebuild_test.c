/* The rebuild of the schedule from listings, over both engines. The names of the scenarios are
 * those of the archive's fact sheet. The buckets are sorted lists of keys in memory. */
#include "archive/rebuild.h"
#include "base/vec.h"
#include "coord/queue.h"
#include "unit/archive/schedule_lab.h"

#include <stdio.h>

#include <stdlib.h>

struct fake_key {
    struct str host, satellite, key;
    int64_t modified_ms;
};

struct rebuild_lab {
    struct schedule_lab lab;
    struct rebuild *r;
    struct queue *queue;
    VEC(struct fake_key) keys;
    const char *down;                       /* a satellite that cannot be asked */
    bool forgets;                           /* the forges cannot be read */
    size_t lists;                           /* calls of the listing */
    void (*between)(struct rebuild_lab *l); /* called once, after the next page */
};

static int fake_key_order(const void *a, const void *b)
{
    return str_cmp(((const struct fake_key *)a)->key, ((const struct fake_key *)b)->key);
}

static int fake_list(void *ctx, struct arena *a, const struct schedule_set *where,
                     const struct list_options *o, struct list_result *out, struct err *err)
{
    struct rebuild_lab *l = ctx;

    l->lists++;
    if (l->down && str_eq(where->satellite, str_z(l->down)))
        return err_set(err, ERR_UNAVAILABLE, "%s is down", l->down);
    out->entries = arena_array(a, o->limit, sizeof(*out->entries));
    vec_each (&l->keys, struct fake_key *, k) {
        if (!str_eq(k->host, where->host) || !str_eq(k->satellite, where->satellite) ||
            !str_starts(k->key, o->prefix) || str_cmp(k->key, o->after) <= 0)
            continue;
        out->more = out->count == o->limit;
        if (out->more)
            break;
        out->entries[out->count].info.key = k->key;
        out->entries[out->count++].info.modified_ms = k->modified_ms;
        out->next = k->key;
    }
    if (l->between) {
        void (*between)(struct rebuild_lab *) = l->between;
        l->between = NULL;
        between(l);
    }
    return 0;
}

static int fake_hosts(void *ctx, struct arena *a, struct str **out, size_t *count, struct err *err)
{
    if (((struct rebuild_lab *)ctx)->forgets)
        return err_set(err, ERR_UNAVAILABLE, "the store is halted");
    *out = arena_array(a, 2, sizeof(**out));
    (*out)[0] = STR("github.com");
    (*out)[1] = STR("git.test:8443");
    *count = 2;
    return 0;
}

static void fake_table(void *ctx, struct slots *out)
{
    *out = ((struct rebuild_lab *)ctx)->lab.table;
}

static void rebuild_lab_open(struct rebuild_lab *l, struct four *f)
{
    struct err err = {0};

    *l = (struct rebuild_lab){0};
    schedule_lab_open(&l->lab, f, 0);
    l->lab.a.max = (size_t)1024 * 1024 * 1024;
    l->queue = queue_new(f->stores[DB_QUEUE]);
    struct rebuild_options o = {.schedule = l->lab.s,
                                .queue = l->queue,
                                .list = fake_list,
                                .hosts = fake_hosts,
                                .table = fake_table,
                                .ctx = l};
    CHECK_OK(rebuild_open(&l->r, &o, &err));
}

static void rebuild_lab_close(struct rebuild_lab *l)
{
    rebuild_close(l->r);
    queue_free(l->queue);
    vec_release(&l->keys);
    schedule_lab_close(&l->lab);
}

/* Puts an object of an account on a satellite; NULL: the satellite of its slot. */
static void put_on(struct rebuild_lab *l, const char *satellite, const char *member,
                   enum archive_kind kind, const char *repo, int64_t modified_ms)
{
    struct archive_account c = schedule_lab_account(&l->lab, member);
    struct fake_key k = {
        .host = c.host,
        .satellite = str_z(satellite ? satellite : l->lab.table.names[l->lab.table.of[c.hash[0]]]),
        .key = archive_key(&c, &l->lab.a, kind, str_z(repo)),
        .modified_ms = modified_ms,
    };

    vec_push(&l->keys, k);
}

static void put(struct rebuild_lab *l, const char *member, enum archive_kind kind, const char *repo,
                int64_t modified_ms)
{
    put_on(l, NULL, member, kind, repo, modified_ms);
}

static void sort_keys(struct rebuild_lab *l)
{
    qsort(l->keys.items, l->keys.len, sizeof(l->keys.items[0]), fake_key_order);
}

/* Rebuilds all slots that can be; returns how many could not. */
static size_t rebuild_each(struct rebuild_lab *l)
{
    size_t failed = 0;
    uint64_t accounts;
    struct err err = {0};

    sort_keys(l);
    for (unsigned slot = 0; slot < SLOT_COUNT; slot++)
        failed += rebuild_slot(l->r, slot, NULL, &accounts, &err) < 0;
    return failed;
}

static struct str tracked_text(struct rebuild_lab *l)
{
    return schedule_lab_ask(&l->lab, "ZRANGE", "tracked", "0", "-1", "WITHSCORES", NULL);
}

TEST_FOUR(archive_rebuild, rebuild_from_bucket_equals_before)
{
    struct rebuild_lab l;
    char member[48];

    rebuild_lab_open(&l, f);
    for (int i = 0; i < 300; i++) {
        snprintf(member, sizeof(member), "%s/u%d", i % 3 ? "github.com" : "git.test:8443", i);
        if (i % 5)
            put(&l, member, ARCHIVE_RECORD, "", 1000 + i);
        else
            put(&l, member, ARCHIVE_ADDED, "", 7);
        if (i % 2)
            put(&l, member, ARCHIVE_BUNDLE, "a.zip", 9999);
        if (i % 7 == 0)
            put(&l, member, ARCHIVE_ACCOUNT_ERROR, "", 9999);
    }
    CHECK_INT(rebuild_each(&l), 0);
    struct str before = tracked_text(&l);
    CHECK_STR(schedule_lab_ask(&l.lab, "ZCARD", "tracked", NULL), STR("300"));
    CHECK_STR(schedule_lab_ask(&l.lab, "ZSCORE", "tracked", "github.com/u1", NULL),
              STR("\"1001\""));
    CHECK_STR(schedule_lab_ask(&l.lab, "ZSCORE", "tracked", "github.com/u5", NULL), STR("\"-1\""));
    schedule_lab_ask(&l.lab, "FLUSHDB", NULL);
    CHECK_INT(rebuild_each(&l), 0);
    CHECK_STR(tracked_text(&l), before);
    CHECK_INT(rebuild_each(&l), 0); /* once more by command: nothing changes */
    CHECK_STR(tracked_text(&l), before);
    schedule_lab_check(&l.lab);
    rebuild_lab_close(&l);
}

/* A folder without a record was not synced in full yet. */
TEST_FOUR(archive_rebuild, rebuild_missing_record)
{
    struct rebuild_lab l;

    rebuild_lab_open(&l, f);
    put(&l, "github.com/octocat", ARCHIVE_BUNDLE, "Hello-World", 5000);
    put(&l, "github.com/octocat", ARCHIVE_EXTRA, "Hello-World@wiki.bundle", 5000);
    put(&l, "git.test:8443/group/sub", ARCHIVE_ZIP, "x", 5000);
    CHECK_INT(rebuild_each(&l), 0);
    CHECK_STR(tracked_text(&l),
              STR("[\"git.test:8443/group/sub\", \"-1\", \"github.com/octocat\", \"-1\"]"));
    rebuild_lab_close(&l);
}

TEST_FOUR(archive_rebuild, zero_repo_user_survives)
{
    struct rebuild_lab l;

    rebuild_lab_open(&l, f);
    put(&l, "github.com/empty", ARCHIVE_RECORD, "", 5000);
    put(&l, "github.com/added", ARCHIVE_ADDED, "", 5000);
    CHECK_INT(rebuild_each(&l), 0);
    CHECK_STR(tracked_text(&l),
              STR("[\"github.com/added\", \"-1\", \"github.com/empty\", \"5000\"]"));
    rebuild_lab_close(&l);
}

TEST_FOUR(archive_rebuild, removed_accounts_and_strange_keys_are_left_out)
{
    struct rebuild_lab l;

    rebuild_lab_open(&l, f);
    put(&l, "github.com/octocat", ARCHIVE_RECORD, "", 5000);
    put(&l, "github.com/octocat", ARCHIVE_REMOVED, "", 6000);
    put(&l, "github.com/octocat", ARCHIVE_BUNDLE, "Hello-World", 5000);
    put(&l, "github.com/mojombo", ARCHIVE_RECORD, "", 5000);
    put(&l, "github.com/mojombo", ARCHIVE_OPTIONS, "", 9000);
    put(&l, "github.com/nobody", ARCHIVE_OPTIONS, "", 5000);
    vec_push(&l.keys, ((struct fake_key){STR("github.com"), STR("europe-west-1"),
                                         STR("a6/65/81/57/other.json"), 1}));
    vec_push(&l.keys,
             ((struct fake_key){STR("github.com"), STR("europe-west-1"), STR("a6/readme.txt"), 1}));
    CHECK_INT(rebuild_each(&l), 0);
    CHECK_STR(tracked_text(&l), STR("[\"github.com/mojombo\", \"5000\"]"));
    rebuild_lab_close(&l);
}

TEST_FOUR(archive_rebuild, rebuild_satellite_down)
{
    struct rebuild_lab l;
    struct schedule_claim c;
    struct schedule_counts counts;
    struct err err = {0};

    rebuild_lab_open(&l, f);
    put(&l, "github.com/octocat", ARCHIVE_RECORD, "", 5000); /* a6: europe-west-1 */
    put(&l, "github.com/mojombo", ARCHIVE_RECORD, "", 5000); /* 2a: asia-east-1 */
    l.down = "europe-west-1";
    CHECK_INT(rebuild_each(&l), 85);
    /* The others' users are served at once. */
    schedule_lab_claim_this(&l.lab, &c, "github.com/mojombo");
    schedule_leave(&c);
    CHECK(!schedule_lab_claim(&l.lab, &c, NULL));
    CHECK_OK(schedule_counts(l.lab.s, false, 0, &counts, &err));
    CHECK_INT(counts.built, 171);
    l.down = NULL;
    CHECK_INT(rebuild_each(&l), 0);
    schedule_lab_claim_this(&l.lab, &c, "github.com/octocat");
    schedule_leave(&c);
    rebuild_lab_close(&l);
}

/* A slot that was rebuilt while a forge was not known would lack the forge's accounts for good. */
TEST_FOUR(archive_rebuild, a_slot_is_not_built_while_the_forges_cannot_be_read)
{
    struct rebuild_lab l;
    bool lacks[SLOT_COUNT];
    uint64_t accounts;
    struct err err = {0};

    rebuild_lab_open(&l, f);
    put(&l, "git.test:8443/octocat", ARCHIVE_RECORD, "", 5000);
    l.forgets = true;
    CHECK_ERR(rebuild_slot(l.r, 0xa6, NULL, &accounts, &err), ERR_UNAVAILABLE);
    CHECK_OK(schedule_lacks(l.lab.s, lacks, &err));
    CHECK(lacks[0xa6]);
    l.forgets = false;
    CHECK_INT(rebuild_each(&l), 0);
    CHECK_STR(tracked_text(&l), STR("[\"git.test:8443/octocat\", \"5000\"]"));
    rebuild_lab_close(&l);
}

/* 20,000 repositories are 20 pages; one page shows that they are there. */
TEST_FOUR(archive_rebuild, a_large_account_is_skipped)
{
    struct rebuild_lab l;
    char repo[32];
    uint64_t accounts;
    struct err err = {0};

    rebuild_lab_open(&l, f);
    for (int i = 0; i < 20000; i++) {
        snprintf(repo, sizeof(repo), "r%05d", i);
        put(&l, "github.com/octocat", ARCHIVE_BUNDLE, repo, 1);
    }
    put(&l, "github.com/octocat", ARCHIVE_RECORD, "", 5000);
    vec_push(&l.keys,
             ((struct fake_key){STR("github.com"), STR("europe-west-1"), STR("a6/ff/strange"), 1}));
    sort_keys(&l);
    l.lists = 0;
    CHECK_OK(rebuild_slot(l.r, 0xa6, NULL, &accounts, &err));
    CHECK_INT(accounts, 1);
    CHECK_INT(l.lists, 3); /* two of github.com, one of the other host */
    CHECK_STR(tracked_text(&l), STR("[\"github.com/octocat\", \"5000\"]"));
    rebuild_lab_close(&l);
}

/* While a slot moves, its accounts are on either satellite. */
TEST_FOUR(archive_rebuild, a_moving_slot_is_listed_on_both_satellites)
{
    struct rebuild_lab l;
    struct slots next;
    struct err err = {0};
    const char *moved[2] = {NULL, NULL};
    char names[300][24];
    size_t n = 0;

    rebuild_lab_open(&l, f);
    CHECK_OK(slots_add(&next, &l.lab.table, STR("zz-new"), &err));
    for (int i = 0; i < 300 && n < 2; i++) {
        snprintf(names[i], sizeof(names[i]), "github.com/u%d", i);
        if (slots_moves(&next, schedule_lab_account(&l.lab, names[i]).hash[0]))
            moved[n++] = names[i];
    }
    CHECK_INT(n, 2);
    put(&l, moved[0], ARCHIVE_RECORD, "", 11); /* still on the satellite that its slot leaves */
    put_on(&l, "zz-new", moved[1], ARCHIVE_RECORD, "", 22);
    put(&l, moved[1], ARCHIVE_BUNDLE, "late", 22);
    l.lab.table = next;
    CHECK_OK(schedule_map(l.lab.s, &next, &err));
    CHECK_INT(rebuild_each(&l), 0);
    CHECK_INT(schedule_lab_find(&l.lab, moved[0]).score_ms, 11);
    CHECK_INT(schedule_lab_find(&l.lab, moved[1]).score_ms, 22);
    schedule_lab_check(&l.lab);
    rebuild_lab_close(&l);
}

static void empty_the_store(struct rebuild_lab *l)
{
    schedule_lab_ask(&l->lab, "FLUSHDB", NULL);
}

static void begin_a_move(struct rebuild_lab *l)
{
    struct slots next;
    struct err err = {0};

    CHECK_OK(slots_drain(&next, &l->lab.table, STR("europe-west-1"), &err));
    l->lab.table = next;
}

TEST_FOUR(archive_rebuild, a_slot_whose_store_or_table_changes_is_listed_again)
{
    struct rebuild_lab l;
    uint64_t accounts;
    bool lacks[SLOT_COUNT];
    struct err err = {0};

    rebuild_lab_open(&l, f);
    put(&l, "github.com/octocat", ARCHIVE_RECORD, "", 5000);
    l.between = empty_the_store;
    CHECK_ERR(rebuild_slot(l.r, 0xa6, NULL, &accounts, &err), ERR_AGAIN);
    l.between = begin_a_move;
    CHECK_ERR(rebuild_slot(l.r, 0xa6, NULL, &accounts, &err), ERR_AGAIN);
    CHECK_OK(schedule_lacks(l.lab.s, lacks, &err));
    CHECK(lacks[0xa6]);
    CHECK_OK(rebuild_slot(l.r, 0xa6, NULL, &accounts, &err));
    CHECK_OK(schedule_lacks(l.lab.s, lacks, &err));
    CHECK(!lacks[0xa6]);
    CHECK_INT(schedule_lab_find(&l.lab, "github.com/octocat").score_ms, 5000);
    rebuild_lab_close(&l);
}

/* A task for each slot that is not built, and never two. */
TEST_FOUR(archive_rebuild, missing_slots_get_tasks)
{
    struct rebuild_lab l;
    uint64_t accounts;
    size_t added;
    struct err err = {0};

    rebuild_lab_open(&l, f);
    CHECK_OK(rebuild_slot(l.r, 3, NULL, &accounts, &err));
    CHECK_OK(rebuild_missing(l.r, &added, &err));
    CHECK_INT(added, 255);
    CHECK_OK(rebuild_missing(l.r, &added, &err));
    CHECK_INT(added, 0);
    CHECK_OK(rebuild_all(l.r, &err));
    CHECK_OK(rebuild_missing(l.r, &added, &err));
    CHECK_INT(added, 0);
    struct queue_stats *stats;
    size_t count;
    CHECK_OK(queue_list(l.queue, &l.lab.a, &stats, &count, &err));
    CHECK_INT(count, 1);
    CHECK_STR(stats[0].name, STR("archive"));
    CHECK_INT(stats[0].size[TASK_PENDING], 256);
    rebuild_lab_close(&l);
}

/* The worker runs the tasks; the satellite that is down delays its own slots alone. */
TEST_FOUR(archive_rebuild, tasks_rebuild_everything)
{
    static const struct queue_weight queues[] = {{ARCHIVE_QUEUE, ARCHIVE_QUEUE_WEIGHT}};
    struct rebuild_lab l;
    struct worker *w;
    struct schedule_counts counts;
    struct err err = {0};

    rebuild_lab_open(&l, f);
    put(&l, "github.com/octocat", ARCHIVE_RECORD, "", 5000);
    put(&l, "github.com/mojombo", ARCHIVE_RECORD, "", 5000);
    sort_keys(&l);
    struct task_handler handler = {REBUILD_TASK_TYPE, rebuild_handle, l.r};
    CHECK_OK(rebuild_missing(l.r, NULL, &err));
    CHECK_OK(worker_start(&w,
                          &(struct worker_options){.queue = l.queue,
                                                   .queues = queues,
                                                   .queue_count = 1,
                                                   .handlers = &handler,
                                                   .handler_count = 1,
                                                   .threads = 1},
                          &err));
    do
        CHECK_OK(schedule_counts(l.lab.s, false, 0, &counts, &err));
    while (counts.built < SLOT_COUNT);
    worker_stop(w);
    CHECK_INT(counts.tracked, 2);
    rebuild_lab_close(&l);
}
