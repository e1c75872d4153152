/* The processes of the simulation of sharding: each is a weir with a lease, the agreement, clients
 * and a mover, and each may be killed, stopped and cut off (shard_sim.h). */
#include "base/ids.h"
#include "coord/gateways.h"
#include "coord/lease.h"
#include "coord/scripts.h"
#include "crash/shard_sim.h"
#include "shard/access.h"
#include "shard/agree.h"
#include "shard/carry.h"
#include "shard/log.h"
#include "shard/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIM_BUCKET STR("photos")
#define SIM_HOME   STR("home")
#define SIM_MARK   STR("ab27")

enum {
    SIM_PROCESSES = 3,
    SIM_CLIENTS = 2, /* of a process */
    SIM_KEYS = 2,
    SIM_GRACE_MS = 1500,
    CLIENT_PAUSE_MS = 350,
    MOVER_PAUSE_MS = 3000,
    LOCK_LOST_PERCENT = 1, /* a second mover is at work at once */
    READ_TRIES = 4,
};

static const struct str keys[SIM_KEYS] = {{"k1", 2}, {"k2", 2}};
static const struct shard_window windows[] = {
    {{"a", 1}, {"z", 1}}, {{"a", 1}, {"k1", 2}}, {{"k1", 2}, {"z", 1}}};

struct sim_process {
    struct sim_machine machine;
    char id[ID_HEX_LEN + 1];
    uint64_t cut_off_until_ns;
    struct lease *lease;
    struct agree *agree;
    struct shards_memory memory;
    /* What the process serves of the bucket; NULL: nothing. */
    struct sharded *sharded;
    struct shard_proof proof;
    struct access_rules rules;
    unsigned users; /* requests and moves that use `sharded` */
    bool leaves;    /* no more users may come: the process is about to forget the bucket */
};

static const struct storage_ops folder = {.can = STORAGE_FOLDER};
static struct storage home = {.ops = &folder, .name = {"home", 4}};

bool process_is_cut_off(void)
{
    struct sim_machine *m = sim_machine();

    return m && container_of(m, struct sim_process, machine)->cut_off_until_ns > sim_now();
}

static uint64_t sim_ms(uint64_t below)
{
    return (1 + sim_random(below)) * NS_PER_MS;
}

/* --- words --- */

static int process_word(struct sim_process *p)
{
    struct arena a = {0};
    char fresh[ID_HEX_LEN + 1], life[16];
    struct reply *reply = NULL;
    struct err err = {0};
    uint64_t sent = clock_boot_ns();

    id_hex(fresh);
    snprintf(life, sizeof(life), "%d", GATEWAY_LIFE_S);
    const struct str args[] = {STR_EMPTY,   STR_EMPTY,    STR("3"),    str_z(p->id), STR("1"),
                               str_z(life), str_z(p->id), STR_EMPTY,   STR("0"),     STR("1"),
                               STR_EMPTY,   STR("0"),     str_z(fresh)};
    int code =
        coord_eval(store_handle(), &a, &reply, SCRIPT_store_word, args, ARRAY_SIZE(args), &err);
    if (code == 0 && reply->count == 10) {
        shards_memory_took(&p->memory, reply->items[8].str, reply->items[9].str,
                           reply->items[7].str, clock_boot_ns());
        lease_heard(p->lease, sent);
    }
    arena_release(&a);
    return code;
}

static void process_words(void *ctx)
{
    struct sim_process *p = ctx;

    for (;;) {
        (void)process_word(p);
        sim_sleep(NS_PER_S);
    }
}

static void process_memory(void *ctx, struct shards_memory *out)
{
    struct sim_process *p = ctx;

    *out = p->memory;
    if (world.without == RULE_MEMORY)
        out->since_ns = 0;
}

/* --- the bucket --- */

static struct bucket *process_log(void)
{
    struct arena a = {0};
    struct bucket *b = storage_bucket(shard_map_name(&a, SIM_BUCKET));

    arena_release(&a);
    return b;
}

static void process_agree(struct sim_process *p)
{
    struct err err = {0};
    struct agree_options o = {
        .config = store_handle(), .process = str_z(p->id), .memory = process_memory, .ctx = p};

    p->agree = agree_new(&o);
    BUG_ON(agree_start(p->agree, &err) < 0);
}

/* Begins to serve the bucket, under the map that the log has. */
static void process_load(struct sim_process *p)
{
    struct shard_map *head = NULL;
    struct err err = {0};

    if (log_head(process_log(), &head, &err) < 0)
        return;
    sim_sleep(sim_ms(sim_chance(50) ? 10 : 800)); /* the process may be slow */
    struct sharded *s = sharded_new(NULL, &home, process_log(), head);
    if (!p->agree)
        process_agree(p);
    if (agree_add(p->agree, s, &err) < 0) {
        sharded_unref(s);
        return;
    }
    proof_init(&p->proof, s->log);
    p->rules = (struct access_rules){s, p->lease, &p->proof};
    p->sharded = s;
    sim_trace("%.4s loads map %llu", p->id, (unsigned long long)head->number);
}

static void process_unload(struct sim_process *p)
{
    p->leaves = true;
    while (p->users)
        sim_sleep(10 * NS_PER_MS);
    agree_remove(p->agree, p->sharded);
    sharded_unref(p->sharded);
    p->sharded = NULL;
    p->leaves = false;
    if (world.without == RULE_LEAST)
        p->agree = NULL; /* it goes on saying that it holds every map, but what it has said is not
                            remembered when the bucket is loaded again */
}

/* Serves the bucket, and now and then forgets it, as a process does that is asked for it later. */
static void process_serve(void *ctx)
{
    struct sim_process *p = ctx;

    for (;;) {
        sim_sleep(sim_ms(2000));
        if (!p->sharded)
            process_load(p);
        if (!p->sharded)
            continue;
        sim_sleep(sim_ms(40000));
        if (!world.calm && sim_chance(60))
            process_unload(p);
    }
}

static bool process_enter(struct sim_process *p)
{
    if (!p->sharded || p->leaves)
        return false;
    p->users++;
    return true;
}

/* --- clients --- */

static size_t op_begin(uint32_t key, enum linear_kind kind, uint64_t value)
{
    struct sim_op op = {.op = {.key = key,
                               .kind = kind,
                               .outcome = LINEAR_UNKNOWN,
                               .value = value,
                               .expected = LINEAR_ABSENT,
                               .begin_ns = sim_now()}};

    sim_trace("request %zu begins: key %u, kind %d, value %llu", world.ops.len, key, kind,
              (unsigned long long)value);
    vec_push(&world.ops, op);
    return world.ops.len - 1;
}

static void op_end(size_t at, enum linear_outcome outcome)
{
    struct linear_op *op = &world.ops.items[at].op;

    op->outcome = outcome;
    op->end_ns = sim_now();
    sim_trace("request %zu ends: value %llu, outcome %d", at, (unsigned long long)op->value,
              outcome);
}

static void op_done_read(uint32_t key, uint64_t value, uint64_t began)
{
    size_t at = op_begin(key, LINEAR_READ, value);

    world.ops.items[at].op.begin_ns = began;
    op_end(at, LINEAR_DONE);
}

/* Sends a get to the shard that has the key under the pass, or under the newest map. */
static int client_get(struct sim_process *p, struct access *x, struct str key, uint64_t *value,
                      struct err *err)
{
    if (world.without != RULE_READS_CLOSED)
        return storage_get(pass_place(&x->pass)->bucket, key, value, err);
    struct shard_map *m = table_map(p->sharded->table);
    int code = storage_get(map_place_at(m, map_segment_of(m, key))->bucket, key, value, err);
    map_unref(m);
    return code;
}

/* Begins a read that takes no pass, but needs the lease all the same. */
static int client_begin_open(struct access *x, const struct access_rules *r, struct err *err)
{
    *x = (struct access){.rules = r};
    int code = lease_take(r->lease, &x->lease, err);
    x->leased = code == 0;
    return code;
}

static int client_head(struct sim_process *p, struct access *x, struct err *err)
{
    uint64_t lease = 0;
    bool over = lease_take(p->lease, &lease, err) < 0;

    if (world.without == RULE_READS_CLOSED)
        return lease_check(p->lease, x->lease, err);
    if (world.without == RULE_SECOND_LOOK && over) {
        pass_head(&x->pass);
        return 0;
    }
    world.proved += over;
    return access_head(x, err);
}

/* Looks at the log before the read, which is not enough. */
static int client_look_before(struct sim_process *p, struct err *err)
{
    uint64_t number = 0, lease = 0;

    if (world.without != RULE_SECOND_LOOK || lease_take(p->lease, &lease, err) == 0)
        return 0;
    int code = agree_read_heads(p->agree, err);
    return code < 0 ? code : proof_look(&p->proof, &number, err);
}

static int client_read_once(struct sim_process *p, struct str key, uint64_t *value)
{
    struct access_rules rules = p->rules;
    struct access x = {0};
    struct err err = {0};
    int code = client_look_before(p, &err);

    if (world.without == RULE_READS_LEASE)
        rules.lease = NULL;
    if (code == 0 && world.without == RULE_READS_CLOSED)
        code = client_begin_open(&x, &rules, &err);
    else if (code == 0)
        code = access_begin(&x, &rules, key, PASS_READ, &err);
    if (code == 0)
        code = client_get(p, &x, key, value, &err);
    if (code == 0)
        code = client_head(p, &x, &err);
    access_end(&x);
    return code;
}

static void client_read(struct sim_process *p)
{
    uint32_t key = (uint32_t)sim_random(SIM_KEYS);
    size_t at = op_begin(key, LINEAR_READ, 0);
    uint64_t value = 0;
    int code = ERR_AGAIN;

    world.ops.items[at].dropped = true;
    for (int i = 0; i < READ_TRIES && code == ERR_AGAIN; i++)
        code = client_read_once(p, keys[key], &value);
    if (code < 0)
        return;
    world.ops.items[at].op.value = value;
    world.ops.items[at].dropped = false;
    op_end(at, LINEAR_DONE);
}

/* One call of a listing: of the shard that has the first keys above `after`. Sets *upto to the end
 * of what it covers. */
static int client_list_once(struct sim_process *p, struct str after, char upto[8])
{
    struct access_rules rules = p->rules;
    struct access x = {0};
    struct err err = {0};
    uint64_t values[SIM_KEYS], began = sim_now();

    if (world.without == RULE_READS_LEASE)
        rules.lease = NULL;
    int code = client_look_before(p, &err);
    if (code == 0)
        code = access_begin_after(&x, &rules, after, &err);
    if (code == 0)
        code = storage_list(pass_place(&x.pass)->bucket, keys, SIM_KEYS, values, &err);
    if (code == 0)
        code = client_head(p, &x, &err);
    for (uint32_t i = 0; i < SIM_KEYS && code == 0; i++)
        if (window_has(&x.pass.window, keys[i]))
            op_done_read(i, values[i], began);
    if (code == 0)
        snprintf(upto, 8, STR_FMT, STR_ARG(x.pass.window.upto));
    access_end(&x);
    return code;
}

/* Lists the whole bucket, a shard after the other. Each call is a read of the keys that its part
 * covers. */
static void client_list(struct sim_process *p)
{
    char after[8] = "a", upto[8] = "";
    int code = 0;

    while (code == 0 && after[0] && strcmp(after, "z") < 0) {
        code = ERR_AGAIN;
        for (int i = 0; i < READ_TRIES && code == ERR_AGAIN; i++)
            code = client_list_once(p, str_z(after), upto);
        memcpy(after, upto, sizeof(after));
    }
    world.lists += code == 0;
}

static int client_send(const struct access *x, struct str key, enum linear_kind kind,
                       uint64_t value, struct err *err)
{
    struct str bucket = pass_place(&x->pass)->bucket;

    if (value == LINEAR_ABSENT)
        return storage_remove(bucket, key, err);
    return storage_put(bucket, key, value, kind == LINEAR_SWAP, err);
}

static void client_write(struct sim_process *p)
{
    uint32_t key = (uint32_t)sim_random(SIM_KEYS);
    enum linear_kind kind = sim_chance(25) ? LINEAR_SWAP : LINEAR_WRITE;
    uint64_t value =
        kind == LINEAR_WRITE && sim_chance(world.remove_percent) ? LINEAR_ABSENT : ++world.values;
    struct access x = {0};
    struct err err = {0};

    if (access_begin(&x, &p->rules, keys[key], PASS_WRITE, &err) == 0) {
        size_t at = op_begin(key, kind, value);
        int code = client_send(&x, keys[key], kind, value, &err);
        bool answered = code == 0 || code == ERR_PRECONDITION;
        if (answered && access_wrote(&x, &err) == 0)
            op_end(at, code == 0 ? LINEAR_DONE : LINEAR_REFUSED);
        else if (code == ERR_PRECONDITION)
            world.ops.items[at].dropped = true;
    }
    access_end(&x);
}

static void process_client(void *ctx)
{
    struct sim_process *p = ctx;

    for (;; sim_sleep(sim_ms(CLIENT_PAUSE_MS))) {
        if (!process_enter(p))
            continue;
        if (world.without != RULE_READS_CLOSED && sim_chance(15))
            client_list(p);
        else if (sim_chance(world.read_percent))
            client_read(p);
        else
            client_write(p);
        p->users--;
    }
}

/* --- the mover --- */

/* The outcome of a get need not be known. */
static int mover_get(const struct shard_place *place, struct str key, uint64_t *value,
                     struct err *err)
{
    int code = storage_get(place->bucket, key, value, err);

    return code < 0 ? err_code(err, ERR_UNAVAILABLE) : 0;
}

/* Without the rule, a request whose outcome is not known counts as one that failed. */
static int mover_outcome(int code, struct err *err)
{
    return code == ERR_TIMEOUT && world.without == RULE_ABANDONED ? err_code(err, ERR_UNAVAILABLE)
                                                                  : code;
}

static int mover_set(const struct shard_place *place, struct str key, uint64_t value,
                     struct err *err)
{
    int code = value ? storage_put(place->bucket, key, value, false, err)
                     : storage_remove(place->bucket, key, err);

    return mover_outcome(code, err);
}

static int mover_copy(void *ctx, uint32_t to, uint32_t from, const struct shard_window *w,
                      struct err *err)
{
    struct sim_process *p = ctx;
    struct shard_map *m = table_map(p->sharded->table);
    const struct shard_place *source = map_place(m, from), *target = map_place(m, to);
    int code = source && target ? 0 : err_code(err, ERR_CONFLICT);

    sim_trace("%.4s copies %u to %u under map %llu closed %d", p->id, from, to,
              (unsigned long long)m->number, m->closed);
    for (size_t i = 0; i < SIM_KEYS && code == 0; i++) {
        if (!window_has(w, keys[i]))
            continue;
        uint64_t wanted = 0, there = 0;
        code = mover_get(source, keys[i], &wanted, err);
        if (code == 0)
            code = mover_get(target, keys[i], &there, err);
        if (code == 0 && wanted != there)
            code = mover_set(target, keys[i], wanted, err);
    }
    map_unref(m);
    return code;
}

static int mover_clean(void *ctx, uint32_t shard, const struct shard_window *w, struct err *err)
{
    struct sim_process *p = ctx;
    struct shard_map *m = table_map(p->sharded->table);
    const struct shard_place *place = map_place(m, shard);
    int code = place ? 0 : err_code(err, ERR_CONFLICT);

    sim_trace("%.4s cleans %u under map %llu", p->id, shard, (unsigned long long)m->number);
    for (size_t i = 0; i < SIM_KEYS && code == 0; i++)
        if (window_has(w, keys[i]))
            code = mover_set(place, keys[i], 0, err);
    map_unref(m);
    return code;
}

static int mover_make(void *ctx, uint32_t number, struct arena *a, struct str *storage,
                      struct str *bucket, struct err *err)
{
    *storage = SIM_HOME;
    *bucket = shard_bucket_name(a, SIM_BUCKET, SIM_MARK, number);
    return 0;
}

static const struct carry_ops mover_ops = {mover_make, mover_copy, mover_clean};

/* Without the rule, a mover goes on with the target of the move that it finds. */
static bool mover_goes_on(struct sim_process *p, struct carry *c)
{
    struct shard_map *m = table_map(p->sharded->table);
    bool found = world.without == RULE_ABANDONED && m->move.id.len == SHARD_BY_LEN;

    if (found)
        memcpy(c->move, m->move.id.p, SHARD_BY_LEN);
    map_unref(m);
    return found;
}

static uint32_t mover_target(struct sim_process *p)
{
    struct shard_map *m = table_map(p->sharded->table);
    uint32_t to = m->places[sim_random(m->place_count)].number;

    map_unref(m);
    return to;
}

static void mover_move(struct sim_process *p)
{
    struct carry c;
    struct err err = {0};
    int code = 0;

    carry_init(&c, p->sharded, p->agree, &mover_ops, p);
    c.grace_ms = SIM_GRACE_MS;
    if (!mover_goes_on(p, &c))
        code = carry_begin(&c, &windows[sim_random(ARRAY_SIZE(windows))], mover_target(p), &err);
    sim_trace("%.4s begins a move: %d %s", p->id, code, code ? err.text : "");
    if (code == 0)
        code = ERR_BUSY;
    for (int i = 0; i < 4 && (code == ERR_BUSY || code == ERR_UNAVAILABLE); i++) {
        code = carry_window(&c, &err);
        if (code < 0)
            sim_sleep(sim_ms(500));
    }
    sim_trace("%.4s hand over: %d %s", p->id, code, code ? err.text : "");
    world.hand_overs += code == 0;
    if (code == 0 || code == ERR_CONFLICT)
        (void)!carry_clean(&c, &err);
}

/* The lock of a process that does not refresh it is lost. */
static bool mover_is_locked(void)
{
    const struct sim_process *p = world.mover;

    return p && !p->machine.dead && p->machine.stopped_until_ns <= sim_now() &&
           p->cut_off_until_ns <= sim_now();
}

static void process_mover(void *ctx)
{
    struct sim_process *p = ctx;

    for (;; sim_sleep(sim_ms(MOVER_PAUSE_MS))) {
        bool locked = mover_is_locked() && !sim_chance(LOCK_LOST_PERCENT);
        if (world.calm || locked || !process_enter(p))
            continue;
        world.mover = p;
        mover_move(p);
        if (world.mover == p)
            world.mover = NULL;
        p->users--;
    }
}

/* --- life --- */

static struct sim_process *process_start(void)
{
    struct sim_process *p = xzalloc(sizeof(*p));

    id_hex(p->id);
    sim_start(&p->machine, process_words, p);
    sim_start(&p->machine, process_serve, p);
    sim_start(&p->machine, process_mover, p);
    for (int i = 0; i < SIM_CLIENTS; i++)
        sim_start(&p->machine, process_client, p);
    return p;
}

/* The first task of a process: the rest needs a lease and the agreement. */
static int process_read_heads(void *ctx, struct err *err)
{
    struct sim_process *p = ctx;

    return p->agree ? agree_read_heads(p->agree, err) : 0;
}

static void process_boot(void *ctx)
{
    struct sim_process *p = ctx;
    struct err err = {0};

    p->lease = lease_new(&(struct lease_options){.config = store_handle(), .needed = true});
    process_agree(p);
    lease_read_first(p->lease, process_read_heads, p);
    BUG_ON(lease_start(p->lease, &err) < 0);
}

static struct sim_process *process_new(void)
{
    struct sim_process *p = process_start();

    sim_start(&p->machine, process_boot, p);
    return p;
}

/* --- faults --- */

static struct sim_process *fault_process(size_t *at)
{
    *at = sim_random(world.processes.len);
    return world.processes.items[*at];
}

static void fault_kill(void)
{
    size_t at;

    fault_process(&at)->machine.dead = true;
    sim_trace("KILL %zu", at);
    world.processes.items[at] = process_new();
}

static void fault_stop(void)
{
    size_t at;

    fault_process(&at)->machine.stopped_until_ns =
        sim_now() + sim_ms(sim_chance(50) ? 40000 : 3000);
    sim_trace("STOP %zu", at);
}

static void fault_cut_off(void)
{
    size_t at;

    fault_process(&at)->cut_off_until_ns = sim_now() + 5 * NS_PER_S + sim_ms(50000);
    sim_trace("CUT OFF %zu until %.3f", at,
              (double)(world.processes.items[at]->cut_off_until_ns - 3600 * NS_PER_S) / NS_PER_S);
}

/* Of the faults of a run some are more frequent than others. */
static void world_faults(void *ctx)
{
    static void (*const faults[])(void) = {fault_kill, fault_stop, fault_cut_off, store_flush,
                                           store_go_back};
    unsigned favourite = (unsigned)sim_random(ARRAY_SIZE(faults) + 2);

    while (!world.calm) {
        sim_sleep(sim_ms(15000));
        size_t which = favourite < ARRAY_SIZE(faults) && sim_chance(60)
                           ? favourite
                           : sim_random(ARRAY_SIZE(faults));
        if (favourite <= ARRAY_SIZE(faults)) /* else: none, and only late requests */
            faults[which]();
    }
}

static void world_calm(void *ctx)
{
    world.calm = true;
}

static void world_first_map(void)
{
    struct shard_map *m =
        map_first(SIM_HOME, SIM_BUCKET, STR("alice"), STR("house"), SIM_MARK, 1000000);
    struct err err = {0};

    m->id = 1;
    while (log_commit(process_log(), m, clock_mono_ns() + 600 * NS_PER_S, &err) < 0)
        ;
    map_unref(m);
}

void world_begin(void *seconds)
{
    enum sim_rule without = world.without;

    world.processes.len = 0;
    world.ops.len = 0;
    world.without = without;
    world.values = 0;
    world.mover = NULL;
    world.read_percent = sim_chance(50) ? 50 : 95;
    world.remove_percent = sim_chance(50) ? 35 : 1;
    world.calm = false;
    storage_reset();
    store_reset();
    world_first_map();
    for (int i = 0; i < SIM_PROCESSES; i++)
        vec_push(&world.processes, process_new());
    sim_start(NULL, world_faults, NULL);
    sim_at(sim_now() + (uint64_t)(uintptr_t)seconds * NS_PER_S * 4 / 5, world_calm, NULL);
}
