/* Two processes that serve one bucket agree on its maps by a real Redis, and one of them hands a
 * window over. tests/crash/shard_sim.c has the bad days. */
#include "shard/agree.h"
#include "base/clock.h"
#include "coord/installation.h"
#include "shard/carry.h"
#include "shard/log.h"
#include "unit/object/local_lab.h"
#include "unit/shard/map_lab.h"
#include "unit/store/four.h"

#include <stdio.h>

/* One of the processes. */
struct member {
    struct installation *installation;
    struct agree *agree;
    struct sharded *sharded; /* NULL: it does not serve the bucket */
    struct shards_memory memory;
};

struct agree_lab {
    struct four four;
    struct local_lab local;
    struct bucket *log;
    struct storage home; /* its name alone is used */
    struct member one, two;
    struct carry carry; /* of `one` */
    int copies, cleans; /* calls */
    int copy_code;      /* what copying answers */
    struct err err;
};

static void member_memory(void *ctx, struct shards_memory *out)
{
    *out = ((struct member *)ctx)->memory;
}

static struct sharded *agree_lab_load(struct agree_lab *l)
{
    struct shard_map *head = NULL;

    CHECK_ERR(log_head(l->log, &head, &l->err), 0);
    return sharded_new(NULL, &l->home, l->log->ops->ref(l->log), head);
}

static void member_serve(struct agree_lab *l, struct member *m)
{
    m->sharded = agree_lab_load(l);
    CHECK_ERR(agree_add(m->agree, m->sharded, &l->err), 0);
}

static void member_open(struct agree_lab *l, struct member *m, const char *id)
{
    struct store *config = l->four.stores[DB_CONFIG];
    struct installation_options o = {.config = config, .folder = test_dir()};

    CHECK_ERR(installation_open(&m->installation, &o, &l->err), 0);
    CHECK_ERR(installation_tell(m->installation, str_z(id), 7, &l->err), 0);
    installation_memory(m->installation, &m->memory);
    m->memory.since_ns = 0; /* long ago */
    m->agree = agree_new(&(struct agree_options){
        .config = config, .process = str_z(id), .memory = member_memory, .ctx = m});
    CHECK_ERR(agree_start(m->agree, &l->err), 0);
}

static void member_close(struct member *m)
{
    agree_stop(m->agree);
    if (m->sharded)
        agree_remove(m->agree, m->sharded);
    sharded_unref(m->sharded);
    agree_free(m->agree);
    installation_close(m->installation);
}

/* --- a storage that is asked for nothing --- */

static int lab_make(void *ctx, uint32_t number, struct arena *a, struct str *storage,
                    struct str *bucket, struct err *err)
{
    struct shard_map *m = map_lab_first();

    map_lab_add(m, number);
    const struct shard_place *p = map_place(m, number);
    *storage = arena_str(a, p->storage);
    *bucket = arena_str(a, p->bucket);
    map_unref(m);
    return 0;
}

static int lab_copy(void *ctx, uint32_t to, uint32_t from, const struct shard_window *w,
                    struct err *err)
{
    struct agree_lab *l = ctx;

    l->copies++;
    return l->copy_code < 0 ? err_code(err, l->copy_code) : 0;
}

static int lab_clean(void *ctx, uint32_t shard, const struct shard_window *w, struct err *err)
{
    struct agree_lab *l = ctx;

    CHECK_INT(shard, 0);
    l->cleans++;
    return 0;
}

static const struct carry_ops lab_ops = {lab_make, lab_copy, lab_clean};

/* --- the lab --- */

static void agree_lab_open(struct agree_lab *l)
{
    static const struct storage_ops folder = {.can = STORAGE_FOLDER};
    struct shard_map *first = map_lab_first();

    *l = (struct agree_lab){.home = {.ops = &folder, .name = LAB_HOME}};
    four_open_redis(&l->four);
    local_lab_open(&l->local, NULL);
    l->log = lab_bucket(l->local.lab.storage, "map");
    first->id = 1;
    CHECK_ERR(log_commit(l->log, first, clock_mono_ns() + 60 * NS_PER_S, &l->err), 0);
    map_unref(first);
    member_open(l, &l->one, "one");
    member_open(l, &l->two, "two");
    member_serve(l, &l->one);
    carry_init(&l->carry, l->one.sharded, l->one.agree, &lab_ops, l);
    l->carry.grace_ms = 1;
}

static void agree_lab_close(struct agree_lab *l)
{
    member_close(&l->one);
    member_close(&l->two);
    l->log->ops->unref(l->log);
    local_lab_close(&l->local);
    four_close(&l->four);
}

static uint64_t member_number(const struct member *m)
{
    struct shard_map *map = table_map(m->sharded->table);
    uint64_t number = map->number;

    map_unref(map);
    return number;
}

static uint32_t member_owner(const struct member *m, struct str key)
{
    struct shard_map *map = table_map(m->sharded->table);
    uint32_t owner = map_lab_owner(map, key);

    map_unref(map);
    return owner;
}

TEST(shard_agree, a_window_is_handed_over_when_the_other_process_holds_the_closed_map)
{
    struct agree_lab l;
    struct pass p;

    agree_lab_open(&l);
    member_serve(&l, &l.two);
    CHECK_ERR(carry_begin(&l.carry, WINDOW("a", "m"), 0, &l.err), 0);
    CHECK_ERR(pass_take(l.two.sharded->table, STR("k"), PASS_WRITE, true, &p, &l.err), 0);
    CHECK_ERR(carry_window(&l.carry, &l.err), ERR_BUSY);
    CHECK_INT(member_owner(&l.one, STR("k")), 0);
    pass_leave(&p);
    CHECK_ERR(carry_window(&l.carry, &l.err), 0);
    CHECK_INT(member_owner(&l.one, STR("k")), 1);
    CHECK_INT(l.copies, 2 * CARRY_ROUNDS + 1); /* the first try did not get to its last copy */
    CHECK_SOON(member_owner(&l.two, STR("k")) == 1);
    CHECK_INT(member_owner(&l.two, STR("n")), 0);
    CHECK_ERR(carry_window(&l.carry, &l.err), ERR_CONFLICT);
    CHECK_ERR(carry_clean(&l.carry, &l.err), 0);
    CHECK_INT(l.cleans, 1);
    CHECK_SOON(member_number(&l.two) == member_number(&l.one));
    struct shard_map *m = table_map(l.two.sharded->table);
    CHECK_INT(m->move.id.len, 0);
    CHECK(map_is_clean(m, WINDOW("a", "m"), 0));
    map_unref(m);
    agree_lab_close(&l);
}

TEST(shard_agree, a_process_that_serves_nothing_holds_every_map_and_installs_no_older_one)
{
    struct agree_lab l;

    agree_lab_open(&l);
    struct sharded *old = agree_lab_load(&l);
    CHECK_ERR(carry_begin(&l.carry, WINDOW("a", "m"), 0, &l.err), 0);
    CHECK_ERR(agree_add(l.two.agree, old, &l.err), ERR_AGAIN);
    sharded_unref(old);
    member_serve(&l, &l.two);
    CHECK_INT(member_number(&l.two), member_number(&l.one));
    agree_lab_close(&l);
}

TEST(shard_agree, a_target_is_abandoned_when_the_outcome_of_a_request_is_not_known)
{
    struct agree_lab l;

    agree_lab_open(&l);
    CHECK_ERR(carry_begin(&l.carry, WINDOW("a", "m"), 0, &l.err), 0);
    l.copy_code = ERR_DENIED;
    CHECK_ERR(carry_window(&l.carry, &l.err), ERR_DENIED);
    l.copy_code = ERR_TIMEOUT;
    CHECK_ERR(carry_window(&l.carry, &l.err), ERR_TIMEOUT);
    l.copy_code = 0;
    CHECK_ERR(carry_window(&l.carry, &l.err), ERR_CONFLICT);
    CHECK_ERR(carry_begin(&l.carry, WINDOW("a", "m"), 1, &l.err), 0);
    CHECK_ERR(carry_window(&l.carry, &l.err), 0);
    CHECK_INT(member_owner(&l.one, STR("k")), 2);
    struct shard_map *m = table_map(l.one.sharded->table);
    CHECK(!map_is_clean(m, WINDOW("a", "m"), 1));
    map_unref(m);
    agree_lab_close(&l);
}

TEST(shard_agree, a_store_that_has_just_forgotten_the_asker_tells_nothing)
{
    struct agree_lab l;
    struct arena a = {0};
    struct str busy;

    agree_lab_open(&l);
    uint64_t number = member_number(&l.one), second = NS_PER_S;
    CHECK_ERR(agree_await(l.one.agree, l.one.sharded, number, clock_mono_ns() + 5 * second, &a,
                          &busy, &l.err),
              0);
    l.one.memory.since_ns = clock_boot_ns();
    CHECK_ERR(agree_await(l.one.agree, l.one.sharded, number, clock_mono_ns() + second / 10, &a,
                          &busy, &l.err),
              ERR_BUSY);
    CHECK_ERR(agree_await(l.one.agree, l.one.sharded, number - 1, clock_mono_ns() + second, &a,
                          &busy, &l.err),
              ERR_CONFLICT);
    arena_release(&a);
    agree_lab_close(&l);
}
