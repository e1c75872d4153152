/* One sharded bucket: publishing maps, and opening shards. */
#include "shard/sharded.h"
#include "base/clock.h"
#include "object/local/local_adopt.h"
#include "shard/log.h"
#include "shard/names.h"
#include "unit/object/local_lab.h"
#include "unit/shard/lossy.h"
#include "unit/shard/map_lab.h"
#include "unit/test.h"

struct sharded_lab {
    struct local_lab local;
    struct bucket *log;
    struct lossy lossy; /* in front of the log */
    enum lossy_fault put, get;
    struct sharded *sharded;
};

static enum lossy_fault lab_fault(void *ctx, const char *call)
{
    const struct sharded_lab *l = ctx;

    return call[0] == 'p' ? l->put : call[0] == 'g' ? l->get : LOSSY_NONE;
}

static void sharded_lab_open(struct sharded_lab *l)
{
    struct err err = {0};
    struct shard_map *first =
        map_first(STR("test"), LAB_BUCKET, STR("owner"), STR("house"), LAB_MARK, 1000);

    *l = (struct sharded_lab){0};
    first->id = 7;
    local_lab_open(&l->local, NULL);
    l->log = lab_bucket(l->local.lab.storage, "map");
    lossy_init(&l->lossy, l->log, lab_fault, l);
    CHECK_OK(log_commit(l->log, first, UINT64_MAX, &err));
    l->sharded = sharded_new(NULL, l->local.lab.storage, &l->lossy.bucket, first);
}

static void sharded_lab_close(struct sharded_lab *l)
{
    sharded_unref(l->sharded);
    l->log->ops->unref(l->log);
    local_lab_close(&l->local);
}

static uint64_t lab_number(struct sharded_lab *l)
{
    struct shard_map *m = table_map(l->sharded->table);
    uint64_t number = m->number;

    map_unref(m);
    return number;
}

/* Publishes a draft that follows; `close` may be NULL. */
static int lab_publish(struct sharded_lab *l, enum shard_closed how, const struct shard_window *w)
{
    struct err err = {0};

    mutex_lock(&l->sharded->changes);
    struct shard_map *now = table_map(l->sharded->table), *next = map_draft(now);
    map_open(next);
    if (how != SHARD_OPEN)
        map_close(next, how, w);
    int code = sharded_publish(l->sharded, next, &err);
    mutex_unlock(&l->sharded->changes);
    map_unref(now);
    map_unref(next);
    return code;
}

TEST(shard_sharded, what_is_published_is_the_head_and_is_obeyed)
{
    struct sharded_lab l;
    struct err err = {0};
    bool is_head = false;

    sharded_lab_open(&l);
    for (uint64_t number = 1001; number < 1050; number++) {
        CHECK_ERR(lab_publish(&l, SHARD_OPEN, NULL), 0);
        CHECK_INT(lab_number(&l), number);
        CHECK_OK(log_is_head(l.log, number, &is_head, &err));
        CHECK(is_head);
    }
    CHECK_STR(l.sharded->name, LAB_BUCKET);
    CHECK_STR(l.sharded->owner, STR("owner"));
    CHECK_STR(l.sharded->house, STR("house"));
    sharded_unref(sharded_ref(l.sharded));
    sharded_unref(NULL);
    sharded_lab_close(&l);
}

TEST(shard_sharded, old_maps_do_not_pile_up)
{
    struct sharded_lab l;
    struct arena a = {0};
    struct list_options o = {.limit = OBJECT_LIST_MAX};
    struct list_result page = {0};
    struct err err = {0};

    sharded_lab_open(&l);
    for (int i = 0; i < 100; i++)
        CHECK_ERR(lab_publish(&l, SHARD_OPEN, NULL), 0);
    CHECK_OK(l.log->ops->list(l.log, &a, &o, &page, &err));
    CHECK(page.count <= LOG_KEPT + 8);
    arena_release(&a);
    sharded_lab_close(&l);
}

TEST(shard_sharded, the_map_of_another_writer_is_installed_instead)
{
    struct sharded_lab l;
    struct err err = {0};

    sharded_lab_open(&l);
    struct shard_map *now = table_map(l.sharded->table), *other = map_draft(now);
    struct shard_map *further = map_draft(other);
    CHECK_OK(log_commit(l.log, other, UINT64_MAX, &err));
    CHECK_OK(log_commit(l.log, further, UINT64_MAX, &err));
    CHECK_ERR(lab_publish(&l, SHARD_OPEN, NULL), ERR_CONFLICT);
    struct shard_map *installed = table_map(l.sharded->table);
    CHECK_STR(installed->by, further->by);
    map_unref(installed);
    map_unref(further);
    map_unref(other);
    map_unref(now);
    sharded_lab_close(&l);
}

TEST(shard_sharded, a_map_that_was_refused_is_not_obeyed)
{
    struct sharded_lab l;

    sharded_lab_open(&l);
    l.put = LOSSY_REFUSED;
    CHECK_ERR(lab_publish(&l, SHARD_OPEN, NULL), ERR_DENIED);
    CHECK_INT(lab_number(&l), 1000);
    l.sharded->commit_ms = 50;
    l.put = LOSSY_AFTER; /* each answer is lost, but the map is found in the log */
    CHECK_ERR(lab_publish(&l, SHARD_OPEN, NULL), ERR_TIMEOUT);
    CHECK_INT(lab_number(&l), 1001);
    sharded_lab_close(&l);
}

TEST(shard_sharded, a_request_opens_a_window_that_stays_closed)
{
    static const enum shard_closed kinds[] = {SHARD_CLOSED_COPY, SHARD_CLOSED_NONE};
    struct sharded_lab l;
    struct pass p;
    struct err err = {0};

    sharded_lab_open(&l);
    table_set_times(l.sharded->table, 60000, 5);
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        CHECK_ERR(lab_publish(&l, kinds[i], WINDOW("b", "d")), 0);
        uint64_t closed = lab_number(&l);
        CHECK_OK(pass_take(l.sharded->table, STR("c"), PASS_WRITE, true, &p, &err));
        CHECK_INT(p.map->number, closed + 1);
        CHECK_INT(p.map->closed, SHARD_OPEN);
        pass_leave(&p);
    }
    sharded_lab_close(&l);
}

TEST(shard_sharded, a_request_does_not_open_a_window_whose_rows_may_have_moved)
{
    struct sharded_lab l;
    struct pass p;
    struct err err = {0};

    sharded_lab_open(&l);
    table_set_times(l.sharded->table, 60, 5);
    CHECK_ERR(lab_publish(&l, SHARD_CLOSED_ADOPT, WINDOW("b", "d")), 0);
    CHECK_ERR(pass_take(l.sharded->table, STR("c"), PASS_WRITE, true, &p, &err), ERR_BUSY);
    CHECK_ERR(lab_publish(&l, SHARD_CLOSED_ALL, NULL), 0);
    CHECK_ERR(pass_take(l.sharded->table, STR("c"), PASS_WRITE, true, &p, &err), ERR_BUSY);
    CHECK_INT(lab_number(&l), 1002);
    sharded_lab_close(&l);
}

TEST(shard_sharded, shards_are_opened_on_their_storage)
{
    struct sharded_lab l;
    struct arena a = {0};
    struct bucket *b = NULL;
    struct err err = {0};

    sharded_lab_open(&l);
    struct shard_place place = {
        .number = 1,
        .storage = STR("test"),
        .bucket = shard_bucket_name(&a, LAB_BUCKET, LAB_MARK, 1),
    };
    CHECK_ERR(sharded_open_place(l.sharded, &place, &b, &err), ERR_CORRUPT);
    struct bucket *logical = lab_bucket(l.local.lab.storage, "photos");
    CHECK_OK(local_make_shard(logical, place.bucket, &err));
    CHECK_ERR(sharded_open_place(l.sharded, &place, &b, &err), ERR_CORRUPT); /* of another bucket */
    CHECK_OK(local_bucket_id(logical, &l.sharded->id, &err));
    CHECK_OK(sharded_open_place(l.sharded, &place, &b, &err));
    CHECK_STR(b->name, place.bucket);
    b->ops->unref(b);
    logical->ops->unref(logical);
    place.storage = STR("elsewhere");
    CHECK_ERR(sharded_open_place(l.sharded, &place, &b, &err), ERR_OFFLINE);
    arena_release(&a);
    sharded_lab_close(&l);
}
