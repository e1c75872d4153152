/* The log of a bucket's maps, in a folder and on a remote storage. */
#include "shard/log.h"
#include "base/clock.h"
#include "base/ids.h"
#include "os/thread.h"
#include "shard/enable.h"
#include "unit/object/local_lab.h"
#include "unit/s3/remote_lab.h"
#include "unit/shard/lossy.h"
#include "unit/shard/map_lab.h"
#include "unit/test.h"

#include <stdio.h>

enum { SCRIPT_MAX = 8 };

/* Faults of the next calls, one after the other; then there are none. */
struct script {
    struct {
        const char *call;
        enum lossy_fault fault;
    } steps[SCRIPT_MAX];
    size_t next;
    enum lossy_fault always_put; /* a fault of each put behind the steps */
};

struct log_lab {
    struct bucket *bucket; /* the map bucket */
    struct lossy lossy;    /* in front of it */
    struct script script;
    struct shard_map *map; /* a draft that follows the head */
};

static enum lossy_fault script_fault(void *ctx, const char *call)
{
    struct script *s = ctx;

    if (s->next < SCRIPT_MAX && s->steps[s->next].call && strcmp(s->steps[s->next].call, call) == 0)
        return s->steps[s->next++].fault;
    return call[0] == 'p' ? s->always_put : LOSSY_NONE;
}

static uint64_t deadline_in(uint64_t ms)
{
    return clock_mono_ns() + ms * NS_PER_MS;
}

static void log_lab_open(struct log_lab *l, struct storage *home)
{
    static int opened; /* each lab has a bucket of its own */
    char name[16];
    struct err err = {0};

    *l = (struct log_lab){.map = map_lab_first()};
    snprintf(name, sizeof(name), "map-%d", opened++);
    l->bucket = lab_bucket(home, name);
    lossy_init(&l->lossy, l->bucket, script_fault, &l->script);
    CHECK_OK(log_commit(l->bucket, l->map, deadline_in(60000), &err));
    map_lab_next(&l->map);
}

static void log_lab_close(struct log_lab *l)
{
    map_unref(l->map);
    l->bucket->ops->unref(l->bucket);
}

/* --- storages --- */

static void with_folder(void (*fn)(struct storage *home))
{
    struct local_lab l;

    local_lab_open(&l, NULL);
    fn(l.lab.storage);
    local_lab_close(&l);
}

static void with_remote(void (*fn)(struct storage *home))
{
    struct remote_lab *l = remote_lab_start();

    fn(remote_lab_storage(l));
    remote_lab_stop(l);
}

/* A test that runs in a folder and on a remote storage. */
#define LOG_TEST(name)                                                                             \
    static void log_##name(struct storage *home);                                                  \
    TEST(shard_log, name)                                                                          \
    {                                                                                              \
        with_folder(log_##name);                                                                   \
    }                                                                                              \
    TEST(shard_log_remote, name)                                                                   \
    {                                                                                              \
        with_remote(log_##name);                                                                   \
    }                                                                                              \
    static void log_##name(struct storage *home)

/* --- helpers --- */

static void expect_head(struct log_lab *l, uint64_t number, struct str by)
{
    struct shard_map *head = NULL;
    struct err err = {0};
    bool is_head = false;

    CHECK_OK(log_head(l->bucket, &head, &err));
    CHECK_INT(head->number, number);
    CHECK_STR(head->by, by);
    CHECK_OK(log_is_head(l->bucket, number, &is_head, &err));
    CHECK(is_head);
    CHECK_OK(log_is_head(l->bucket, number + 1, &is_head, &err));
    CHECK(!is_head);
    map_unref(head);
}

/* Writes any object into the map bucket. */
static void put_raw(struct log_lab *l, const char *key, struct str text)
{
    struct arena a = {0};

    lab_put(l->bucket, &a, key, text);
    arena_release(&a);
}

/* Commits `count` maps, one after the other. */
static void commit_many(struct log_lab *l, int count)
{
    struct err err = {0};

    for (int i = 0; i < count; i++) {
        CHECK_OK(log_commit(l->bucket, l->map, deadline_in(60000), &err));
        map_lab_next(&l->map);
    }
}

static size_t log_length(struct log_lab *l)
{
    struct arena a = {0};
    struct list_options o = {.limit = OBJECT_LIST_MAX};
    struct list_result page = {0};
    struct err err = {0};

    CHECK_OK(l->bucket->ops->list(l->bucket, &a, &o, &page, &err));
    arena_release(&a);
    return page.count;
}

LOG_TEST(an_empty_bucket_has_no_head)
{
    struct shard_map *head = NULL;
    struct err err = {0};
    bool is_head = true;

    struct bucket *b = lab_bucket(home, "map");
    CHECK_ERR(log_head(b, &head, &err), ERR_NOT_FOUND);
    CHECK_OK(log_is_head(b, 1, &is_head, &err));
    CHECK(!is_head);
    b->ops->unref(b);
}

LOG_TEST(the_newest_map_is_the_head)
{
    struct log_lab l;
    struct err err = {0};

    log_lab_open(&l, home);
    for (int i = 0; i < 30; i++) {
        CHECK_OK(log_commit(l.bucket, l.map, deadline_in(60000), &err));
        expect_head(&l, l.map->number, l.map->by);
        map_lab_next(&l.map);
    }
    log_lab_close(&l);
}

LOG_TEST(numbers_of_any_size_are_in_order)
{
    static const uint64_t numbers[] = {1, 2, 10, 1753000000000, 1753000000001, INT64_MAX};
    struct bucket *b = lab_bucket(home, "map");
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        struct shard_map *m = map_lab_first(), *head = NULL;
        m->number = numbers[i];
        CHECK_OK(log_commit(b, m, deadline_in(60000), &err));
        CHECK_OK(log_head(b, &head, &err));
        CHECK_INT(head->number, numbers[i]);
        map_unref(head);
        map_unref(m);
    }
    b->ops->unref(b);
}

LOG_TEST(a_number_that_is_taken_is_a_conflict)
{
    struct log_lab l;
    struct err err = {0};

    log_lab_open(&l, home);
    struct shard_map *other = map_lab_first();
    map_lab_next(&other);
    CHECK_OK(log_commit(l.bucket, other, deadline_in(60000), &err));
    CHECK_ERR(log_commit(l.bucket, l.map, deadline_in(60000), &err), ERR_CONFLICT);
    expect_head(&l, other->number, other->by);
    map_unref(other);
    log_lab_close(&l);
}

LOG_TEST(committing_the_same_map_again_is_no_conflict)
{
    struct log_lab l;
    struct err err = {0};

    log_lab_open(&l, home);
    for (int i = 0; i < 3; i++)
        CHECK_OK(log_commit(l.bucket, l.map, deadline_in(60000), &err));
    expect_head(&l, l.map->number, l.map->by);
    log_lab_close(&l);
}

/* The commit of the lab's map, with these faults, must end with `want`. */
static void with_faults(struct storage *home, struct script script, int want)
{
    struct log_lab l;
    struct err err = {0};

    log_lab_open(&l, home);
    l.script = script;
    CHECK_ERR(log_commit(&l.lossy.bucket, l.map, deadline_in(60000), &err), want);
    if (want == 0)
        expect_head(&l, l.map->number, l.map->by);
    log_lab_close(&l);
}

LOG_TEST(an_outcome_that_was_lost_is_found_out)
{
    for (int fault = LOSSY_BEFORE; fault <= LOSSY_ERROR; fault++) {
        enum lossy_fault f = (enum lossy_fault)fault;
        with_faults(home, (struct script){{{"put", f}}}, 0);
        with_faults(home, (struct script){{{"put", f}, {"put", f}, {"put", f}}}, 0);
        with_faults(home, (struct script){{{"put", LOSSY_AFTER}, {"put", f}, {"get", f}}}, 0);
        with_faults(home, (struct script){{{"put", LOSSY_AFTER}, {"get", f}, {"get", f}}}, 0);
        with_faults(home, (struct script){{{"list", f}, {"put", f}, {"get", f}, {"list", f}}}, 0);
    }
    with_faults(home, (struct script){{{"put", LOSSY_BUSY}, {"put", LOSSY_BUSY}}}, 0);
    with_faults(home, (struct script){{{"put", LOSSY_AFTER}, {"get", LOSSY_SILENT}}}, 0);
    with_faults(home, (struct script){{{"list", LOSSY_SILENT}, {"list", LOSSY_SILENT}}}, 0);
}

LOG_TEST(a_refusal_is_certain_only_if_no_try_before_it_was_lost)
{
    with_faults(home, (struct script){{{"put", LOSSY_REFUSED}}}, ERR_DENIED);
    with_faults(home, (struct script){{{"put", LOSSY_BUSY}, {"put", LOSSY_REFUSED}}}, ERR_DENIED);
    with_faults(home, (struct script){{{"put", LOSSY_BEFORE}, {"put", LOSSY_REFUSED}}},
                ERR_TIMEOUT);
    with_faults(home, (struct script){{{"put", LOSSY_AFTER}, {"put", LOSSY_REFUSED}}}, ERR_TIMEOUT);
}

LOG_TEST(a_storage_that_stays_away_leaves_the_outcome_open)
{
    static const enum lossy_fault faults[] = {LOSSY_BEFORE, LOSSY_ERROR, LOSSY_AFTER, LOSSY_BUSY};
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
        struct log_lab l;
        log_lab_open(&l, home);
        l.script.always_put = faults[i];
        CHECK_ERR(log_commit(&l.lossy.bucket, l.map, deadline_in(50), &err), ERR_TIMEOUT);
        l.script.always_put = LOSSY_NONE; /* the storage is back, and the same map can be written */
        CHECK_OK(log_commit(&l.lossy.bucket, l.map, deadline_in(60000), &err));
        expect_head(&l, l.map->number, l.map->by);
        log_lab_close(&l);
    }
}

LOG_TEST(a_lost_commit_of_another_writer_is_a_conflict)
{
    struct log_lab l;
    struct err err = {0};

    log_lab_open(&l, home);
    struct shard_map *other = map_lab_first();
    map_lab_next(&other);
    l.script = (struct script){{{"put", LOSSY_AFTER}}};
    CHECK_ERR(log_commit(&l.lossy.bucket, other, 0, &err), ERR_TIMEOUT);
    l.script = (struct script){{{"put", LOSSY_BEFORE}}};
    CHECK_ERR(log_commit(&l.lossy.bucket, l.map, deadline_in(60000), &err), ERR_CONFLICT);
    expect_head(&l, other->number, other->by);
    map_unref(other);
    log_lab_close(&l);
}

LOG_TEST(old_maps_are_removed)
{
    struct log_lab l;
    struct err err = {0};

    log_lab_open(&l, home);
    commit_many(&l, LOG_KEPT + 20);
    uint64_t newest = l.map->number - 1;
    CHECK_OK(log_prune(l.bucket, newest, &err));
    CHECK_INT(log_length(&l), LOG_KEPT);
    CHECK_OK(log_prune(l.bucket, newest, &err));
    CHECK_OK(log_prune(l.bucket, 3, &err));
    CHECK_INT(log_length(&l), LOG_KEPT);
    struct shard_map *head = NULL;
    CHECK_OK(log_head(l.bucket, &head, &err));
    CHECK_INT(head->number, newest);
    map_unref(head);
    log_lab_close(&l);
}

LOG_TEST(a_writer_that_slept_long_does_not_write_a_removed_number_again)
{
    struct log_lab l;
    struct err err = {0};

    log_lab_open(&l, home);
    struct shard_map *late = map_lab_first();
    map_lab_next(&late); /* knows map 1000 */
    commit_many(&l, LOG_KEPT * 2);
    uint64_t newest = l.map->number - 1;
    CHECK_OK(log_prune(l.bucket, newest, &err));
    CHECK_ERR(log_commit(l.bucket, late, deadline_in(60000), &err), ERR_TIMEOUT);
    struct shard_map *head = NULL;
    CHECK_OK(log_head(l.bucket, &head, &err));
    CHECK_INT(head->number, newest);
    map_unref(head);
    map_unref(late);
    log_lab_close(&l);
}

LOG_TEST(a_head_that_is_removed_while_it_is_read_is_looked_for_again)
{
    struct log_lab l;
    struct shard_map *head = NULL;
    struct err err = {0};

    log_lab_open(&l, home);
    l.script = (struct script){{{"get", LOSSY_SILENT}, {"get", LOSSY_SILENT}}};
    CHECK_OK(log_head(&l.lossy.bucket, &head, &err));
    CHECK_INT(head->number, 1000);
    map_unref(head);
    l.script = (struct script){{{"get", LOSSY_ERROR}}};
    CHECK_ERR(log_head(&l.lossy.bucket, &head, &err), ERR_UNAVAILABLE);
    l.script = (struct script){{{"list", LOSSY_BEFORE}}};
    CHECK_ERR(log_head(&l.lossy.bucket, &head, &err), ERR_TIMEOUT);
    log_lab_close(&l);
}

LOG_TEST(things_that_are_no_maps_are_damage)
{
    struct log_lab l;
    struct shard_map *head = NULL;
    struct err err = {0};
    struct buf text = {0};

    log_lab_open(&l, home);
    put_raw(&l, "times/3/1", STR("beside the log"));
    CHECK_OK(log_head(l.bucket, &head, &err));
    map_unref(head);
    map_write(l.map, &text);
    put_raw(&l, "map/9999999999999998000", buf_str(&text)); /* has the number 1001 in its text */
    CHECK_ERR(log_head(l.bucket, &head, &err), ERR_CORRUPT);
    put_raw(&l, "map/9999999999999997000", STR("no map"));
    CHECK_ERR(log_head(l.bucket, &head, &err), ERR_CORRUPT);
    put_raw(&l, "map/!", STR("a key"));
    CHECK_ERR(log_head(l.bucket, &head, &err), ERR_CORRUPT);
    buf_release(&text);
    log_lab_close(&l);
}

/* --- races --- */

enum { RACERS = 16, RACES = 20, LOSSY_RACES = 2 };

struct racer {
    struct bucket *bucket;
    struct lossy lossy;
    struct shard_map *map;
    struct thread thread;
    bool faults;
    int code;
};

/* Loses something in half of all calls. */
static enum lossy_fault race_fault(void *ctx, const char *call)
{
    const struct racer *r = ctx;

    if (!r->faults || random_below(2))
        return LOSSY_NONE;
    return (enum lossy_fault)(LOSSY_BEFORE + random_below(3));
}

static void racer_run(void *ctx)
{
    struct racer *r = ctx;
    struct err err = {0};

    r->code = log_commit(&r->lossy.bucket, r->map, deadline_in(60000), &err);
}

static void race(struct log_lab *l, bool faults)
{
    struct racer racers[RACERS];
    struct err err = {0};
    int winner = -1;

    for (int i = 0; i < RACERS; i++) {
        struct racer *r = &racers[i];
        *r = (struct racer){.map = map_draft(l->map), .faults = faults};
        lossy_init(&r->lossy, l->bucket, race_fault, r);
    }
    for (int i = 0; i < RACERS; i++)
        CHECK_OK(thread_start(&racers[i].thread, "racer", 0, racer_run, &racers[i], &err));
    for (int i = 0; i < RACERS; i++) {
        thread_join(&racers[i].thread);
        if (racers[i].code == 0) {
            CHECK_INT(winner, -1);
            winner = i;
        } else {
            CHECK_ERR(racers[i].code, ERR_CONFLICT);
        }
    }
    CHECK(winner >= 0);
    expect_head(l, racers[winner].map->number, racers[winner].map->by);
    for (int i = 0; i < RACERS; i++)
        map_unref(racers[i].map);
}

LOG_TEST(of_many_writers_of_a_number_one_wins)
{
    struct log_lab l;

    log_lab_open(&l, home);
    for (int i = 0; i < RACES; i++) {
        race(&l, false);
        map_lab_next(&l.map);
    }
    log_lab_close(&l);
}

LOG_TEST(one_writer_wins_also_when_requests_and_answers_are_lost)
{
    struct log_lab l;

    log_lab_open(&l, home);
    for (int i = 0; i < LOSSY_RACES; i++) {
        race(&l, true);
        map_lab_next(&l.map);
    }
    log_lab_close(&l);
}

/* --- probing --- */

LOG_TEST(a_probe_passes_and_leaves_nothing)
{
    struct bucket *b = lab_bucket(home, "probed");
    struct err err = {0};

    CHECK_OK(shard_probe(b, &err));
    lab_expect_list(b, &lab_everything, false, "");
    b->ops->unref(b);
}
