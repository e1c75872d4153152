/* The seed's table: its fourteen calls through swarm/cache.h, each beside a PING of the same store.
 *
 *     bench_swarm_cache redis:URL|volatile:DIR|durable:DIR CALLS
 *
 * Each name has a torrent of its own with 4 seeders and 2 leechers; what sets a call up is not
 * timed. Prints <name>_p50_us, <name>_p99_us, <name>_vs_ping (ratio of the medians) and, on Redis,
 * <name>_trips: how often the server read from us for one call. */
#include "db/db.h"
#include "load.h"
#include "swarm/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDERS = 4, LEECHERS = 2, WARM = 20 };

struct bench {
    struct store *store;
    struct db *db;
    struct cache *cache;
    struct arena arena;
    struct swarm_user user;
    struct torrent torrent;
    struct peer seeder, leecher, fresh;
    uint64_t serial; /* makes peers differ */
    struct err err;
};

typedef int call_fn(struct bench *b);

/* One name: `before` and `after` are not timed, may be NULL. */
struct row {
    const char *name;
    call_fn *before, *call, *after;
    int calls; /* of the interface, in one of these */
};

static void must(const struct bench *b, int code, const char *what)
{
    if (code >= 0)
        return;
    fprintf(stderr, "%s: %s\n", what, b->err.text);
    exit(2);
}

/* --- the calls --- */

static struct peer make_peer(struct bench *b, uint64_t left)
{
    struct peer p = {.user_id = b->user.id, .torrent_id = b->torrent.id, .left = left};
    uint64_t n = ++b->serial;

    memcpy(p.id, "-WB0001-", 8);
    memcpy(p.id + 8, &n, 8);
    memcpy(p.addr.ip, (uint8_t[]){10, (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n}, 4);
    memcpy(p.addr.port, (uint8_t[]){0x1a, 0xe1}, 2);
    p.uploaded = 1 << 20;
    p.downloaded = 5 << 20;
    return p;
}

static int expect(int code, bool holds)
{
    return code < 0 ? code : holds ? 0 : ERR_CORRUPT;
}

static int absent(int code)
{
    return code == ERR_NOT_FOUND ? 0 : ERR_CORRUPT;
}

static int find_user(struct bench *b)
{
    struct swarm_user u;
    int code = cache_find_user(b->cache, str_z(b->user.passkey), &u, &b->err);
    return expect(code, code == 0 && u.id == b->user.id);
}

static int find_no_user(struct bench *b)
{
    struct swarm_user u;
    return absent(cache_find_user(b->cache, STR("nobodynobodynobodynobodynobodyno"), &u, &b->err));
}

static int find_torrent(struct bench *b)
{
    struct torrent_peers t = {0};
    int code;

    arena_reset(&b->arena);
    code = cache_find_torrent(b->cache, &b->arena, b->torrent.info_hash, &t, &b->err);
    return expect(code, t.seeder_count == SEEDERS && t.leecher_count == LEECHERS);
}

static int find_no_torrent(struct bench *b)
{
    struct torrent_peers t;

    arena_reset(&b->arena);
    return absent(cache_find_torrent(b->cache, &b->arena, (const uint8_t *)"a torrent not there.",
                                     &t, &b->err));
}

static int whitelisted(struct bench *b)
{
    bool is = false;
    int code = cache_client_whitelisted(b->cache, STR("-WB0001-"), &is, &b->err);
    return expect(code, is);
}

static int not_whitelisted(struct bench *b)
{
    bool is = true;
    int code = cache_client_whitelisted(b->cache, STR("-XX0001-"), &is, &b->err);
    return expect(code, !is);
}

static int record_snatch(struct bench *b)
{
    return cache_record_snatch(b->cache, &b->user, &b->torrent, &b->err);
}

static int mark_active(struct bench *b)
{
    return cache_mark_active(b->cache, &b->torrent, &b->err);
}

static int fresh_seeder(struct bench *b)
{
    b->fresh = make_peer(b, 0);
    return 0;
}

static int add_seeder(struct bench *b)
{
    return cache_add_seeder(b->cache, &b->torrent, &b->fresh, &b->err);
}

static int add_first_seeder(struct bench *b)
{
    return cache_add_seeder(b->cache, &b->torrent, &b->seeder, &b->err);
}

static int remove_seeder(struct bench *b)
{
    return cache_remove_seeder(b->cache, &b->torrent, &b->seeder, &b->err);
}

static int set_seeder(struct bench *b)
{
    b->seeder.uploaded++;
    return cache_set_seeder(b->cache, &b->torrent, &b->seeder, &b->err);
}

static int increment_slots(struct bench *b)
{
    return cache_increment_slots(b->cache, &b->user, &b->err);
}

static int fresh_leecher(struct bench *b)
{
    b->fresh = make_peer(b, 1 << 20);
    return cache_add_leecher(b->cache, &b->torrent, &b->fresh, &b->err);
}

static int leecher_finished(struct bench *b)
{
    bool moved = false;

    b->fresh.left = 0;
    int code = cache_leecher_finished(b->cache, &b->torrent, &b->fresh, &moved, &b->err);
    return expect(code, moved);
}

static int remove_leecher_add_seeder(struct bench *b)
{
    int code = cache_remove_leecher(b->cache, &b->torrent, &b->fresh, &b->err);

    b->fresh.left = 0;
    return code < 0 ? code : cache_add_seeder(b->cache, &b->torrent, &b->fresh, &b->err);
}

/* The names of the seed, in its order. */
static const struct row rows[] = {
    {"SuccessfulFindUser", NULL, find_user, NULL, 1},
    {"FailedFindUser", NULL, find_no_user, NULL, 1},
    {"SuccessfulFindTorrent", NULL, find_torrent, NULL, 1},
    {"FailFindTorrent", NULL, find_no_torrent, NULL, 1},
    {"SuccessfulClientWhitelisted", NULL, whitelisted, NULL, 1},
    {"FailClientWhitelisted", NULL, not_whitelisted, NULL, 1},
    {"RecordSnatch", NULL, record_snatch, NULL, 1},
    {"MarkActive", NULL, mark_active, NULL, 1},
    {"AddSeeder", fresh_seeder, add_seeder, NULL, 1},
    {"RemoveSeeder", NULL, remove_seeder, add_first_seeder, 1},
    {"SetSeeder", NULL, set_seeder, NULL, 1},
    {"IncrementSlots", NULL, increment_slots, NULL, 1},
    {"LeecherFinished", fresh_leecher, leecher_finished, NULL, 1},
    {"RemoveLeecherAddSeeder", fresh_leecher, remove_leecher_add_seeder, NULL, 2},
};

/* --- measuring --- */

/* A torrent of its own with its peers, and a user. */
static void prepare(struct bench *b, size_t row)
{
    b->torrent =
        (struct torrent){.active = true, .up_multiplier = 1, .down_multiplier = 1, .id = 0};
    memset(b->torrent.info_hash, 'A' + (int)row, INFO_HASH_LEN);
    must(b, cache_add_torrent(b->cache, &b->torrent, &b->err), "add_torrent");
    for (int i = 0; i < SEEDERS; i++) {
        b->seeder = make_peer(b, 0);
        must(b, cache_add_seeder(b->cache, &b->torrent, &b->seeder, &b->err), "add_seeder");
    }
    for (int i = 0; i < LEECHERS; i++) {
        b->leecher = make_peer(b, 1 << 20);
        must(b, cache_add_leecher(b->cache, &b->torrent, &b->leecher, &b->err), "add_leecher");
    }
}

/* Times that Redis read from a client so far; -1 on the embedded store, which has no wire. */
static long reads_so_far(struct bench *b)
{
    struct reply *r = NULL;
    char text[8192] = "";

    if (b->db)
        return -1;
    arena_reset(&b->arena);
    must(b, store_call(b->store, &b->arena, &r, &b->err, STR("INFO"), STR("stats")), "INFO");
    memcpy(text, r->str.p, r->str.len < sizeof(text) - 1 ? r->str.len : sizeof(text) - 1);
    const char *at = strstr(text, "total_reads_processed:");
    if (!at)
        load_fail("INFO stats");
    return strtol(at + strlen("total_reads_processed:"), NULL, 10);
}

static uint64_t timed(struct bench *b, const struct row *row)
{
    if (row->before)
        must(b, row->before(b), row->name);
    uint64_t began = load_now_ns();
    must(b, row->call(b), row->name);
    uint64_t ended = load_now_ns();
    if (row->after)
        must(b, row->after(b), row->name);
    return ended - began;
}

static uint64_t timed_ping(struct bench *b)
{
    uint64_t began = load_now_ns();
    must(b, store_ping(b->store, &b->err), "PING");
    return load_now_ns() - began;
}

/* One call between two looks; the second look is a read itself. */
static long trips(struct bench *b, const struct row *row)
{
    if (row->before)
        must(b, row->before(b), row->name);
    long before = reads_so_far(b);
    must(b, row->call(b), row->name);
    long after = reads_so_far(b);
    if (row->after)
        must(b, row->after(b), row->name);
    return after - before - 1;
}

static void measure(struct bench *b, size_t index, int calls)
{
    const struct row *row = &rows[index];
    struct load_times *times = calloc(2, sizeof(*times));

    prepare(b, index);
    for (int i = 0; i < WARM; i++) {
        timed(b, row);
        timed_ping(b);
    }
    for (int i = 0; i < calls; i++) {
        load_times_add(&times[0], timed(b, row));
        load_times_add(&times[1], timed_ping(b));
    }
    double p50 = load_times_us(&times[0], .5), ping = load_times_us(&times[1], .5);
    printf("%s_p50_us %.2f\n%s_p99_us %.2f\n%s_vs_ping %.3f\n", row->name, p50, row->name,
           load_times_us(&times[0], .99), row->name, ping > 0 ? p50 / ping : 0);
    if (!b->db)
        printf("%s_trips %g\n", row->name, (double)trips(b, row) / row->calls);
    free(times);
    must(b, cache_remove_torrent(b->cache, b->torrent.info_hash, &b->err), "remove_torrent");
}

static void open_store(struct bench *b, const char *target)
{
    const char *place = strchr(target, ':');
    int code;

    if (!place)
        exit(2);
    place++;
    if (strncmp(target, "redis:", 6) == 0) {
        struct store_redis_options o = {.url = str_z(place), .max_connections = 1};
        code = store_open_redis(&b->store, &o, &b->err);
    } else {
        struct db_options o = {.path = place, .cfs = store_cf_specs(), .cf_count = STORE_DATABASES};
        must(b, db_open(&b->db, &o, &b->err), "db_open");
        bool durable = strncmp(target, "durable:", 8) == 0;
        code = store_open_embedded(&b->store, b->db, 0, durable ? STORE_DURABLE : STORE_VOLATILE,
                                   NULL, &b->err);
    }
    must(b, code, "store_open");
}

int main(int argc, char **argv)
{
    struct bench b = {.user = {.up_multiplier = 1, .down_multiplier = 1, .slots = -1}};

    if (argc != 3)
        return 2;
    open_store(&b, argv[1]);
    struct cache_options o = {.store = b.store, .prefix = STR("bench:")};
    must(&b, cache_open(&b.cache, &o, &b.err), "cache_open");
    memset(b.user.passkey, 'p', PASSKEY_LEN);
    must(&b, cache_add_user(b.cache, &b.user, &b.err), "add_user");
    must(&b, cache_whitelist_client(b.cache, STR("-WB0001-"), &b.err), "whitelist_client");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        measure(&b, i, atoi(argv[2]));
    must(&b, cache_remove_user(b.cache, str_z(b.user.passkey), &b.err), "remove_user");
    cache_close(b.cache);
    store_close(b.store);
    if (b.db)
        db_close(b.db);
    arena_release(&b.arena);
    return 0;
}
