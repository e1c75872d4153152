/* Private trackers under kill -9: chaos_invariants_I1_I8.
 *
 * One run: some processes on one real Redis, or one process of some threads on the embedded store,
 * announce at random, reap, and remove and add torrents and users, all at once. At random moments
 * they are killed with SIGKILL (on Redis another comes in place of the killed). Then
 *   1. the check finds nothing that I1 to I8 forbid;
 *   2. the feed has all that was counted: of a peer that stays, the sum of its records is what it
 *      has uploaded; of a user that stays, its snatches are the records that say so (I5);
 *   3. what was answered is there: a peer that stays has at least what it told last.
 * That a check finds something at all is proved first, with a store that was broken by hand.
 *
 *     swarm_crash [--runs N] [--seed S]; the last line is "N passed, N failed". */
#include "base/clock.h"
#include "base/ids.h"
#include "crash/harness.h"
#include "db/db.h"
#include "os/file.h"
#include "os/thread.h"
#include "swarm/feed.h"
#include "unit/store/redis_server.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WORKERS = 3,
    USERS = 4, /* user 0 and torrent 0 stay, the others come and go */
    TORRENTS = 4,
    PEERS = 8,   /* of each worker */
    STAYING = 2, /* peers of each worker that never stop */
    KILLS = 2,   /* in one run on Redis */
    KILL_FROM_MS = 20,
    KILL_WITHIN_MS = 120,
    REAP_LONG_S = 100000,
    FEED_PAGE = 5000,
    SWARM_DB = 4,
};

struct shared {
    uint64_t told[WORKERS][STAYING]; /* uploaded, as of the last announce that was answered */
    uint64_t announces;
    char problem[256];
};

struct worker {
    struct cache *cache;
    struct shared *sh;
    unsigned id;
    struct crash random;
    struct thread thread;
};

static void name_user(char out[PASSKEY_LEN + 1], unsigned n)
{
    snprintf(out, PASSKEY_LEN + 1, "%0*u", PASSKEY_LEN, n);
}

static void name_torrent(uint8_t out[INFO_HASH_LEN], unsigned n)
{
    memset(out, (int)('a' + n), INFO_HASH_LEN);
}

static void name_peer(uint8_t out[PEER_ID_LEN], unsigned worker, unsigned n)
{
    memset(out, ':', PEER_ID_LEN);
    out[3] = (uint8_t)worker;
    out[7] = (uint8_t)n;
}

/* --- what is done --- */

static void add(struct cache *c, unsigned user, unsigned torrent)
{
    struct swarm_user u = {.up_multiplier = 1, .down_multiplier = 1, .slots = user % 2 ? 3 : -1};
    struct torrent t = {.active = true, .up_multiplier = 1, .down_multiplier = 1};
    struct err err = {0};

    name_user(u.passkey, user);
    name_torrent(t.info_hash, torrent);
    must(cache_add_user(c, &u, &err), &err);
    must(cache_add_torrent(c, &t, &err), &err);
}

static int announce(struct worker *w, const struct announce *a)
{
    uint8_t room4[60 * COMPACT4_LEN], room6[60 * COMPACT6_LEN];
    struct announce_answer out = {.peers4 = {.at = room4, .max = 60},
                                  .peers6 = {.at = room6, .max = 60}};
    struct err err = {0};

    must(cache_announce(w->cache, a, &out, &err), &err);
    __atomic_add_fetch(&w->sh->announces, 1, __ATOMIC_RELAXED);
    return out.failure;
}

/* One that stays goes on from what it told last, or a killed one before it may have. */
static void announce_staying(struct worker *w, unsigned n)
{
    uint8_t hash[INFO_HASH_LEN], id[PEER_ID_LEN];
    char passkey[PASSKEY_LEN + 1];
    uint64_t up = w->sh->told[w->id][n];
    struct announce a = {.info_hash = hash, .peer_id = id, .numwant = 10, .uploaded = up + 1};

    name_torrent(hash, 0);
    name_peer(id, w->id, n);
    name_user(passkey, 0);
    a.passkey = str_z(passkey);
    a.addr = (struct peer_addr){.ip = {10, 0, (uint8_t)w->id, (uint8_t)n}, .port = {1, 1}};
    if (announce(w, &a) == SWARM_NONE)
        w->sh->told[w->id][n] = up + 1;
}

static void announce_any(struct worker *w)
{
    static const enum announce_event events[] = {EVENT_NONE, EVENT_STARTED, EVENT_COMPLETED,
                                                 EVENT_STOPPED, EVENT_PAUSED};
    uint8_t hash[INFO_HASH_LEN], id[PEER_ID_LEN];
    char passkey[PASSKEY_LEN + 1];
    unsigned n = STAYING + (unsigned)(next_random(&w->random) % (PEERS - STAYING));
    struct announce a = {.info_hash = hash, .peer_id = id, .numwant = 5};

    name_torrent(hash, (unsigned)(next_random(&w->random) % TORRENTS));
    /* Other workers' peers too: what races is one peer at two trackers. */
    name_peer(id, (unsigned)(next_random(&w->random) % WORKERS), n);
    name_user(passkey, (unsigned)(next_random(&w->random) % USERS));
    a.passkey = str_z(passkey);
    a.left = next_random(&w->random) % 2 * 10;
    a.uploaded = next_random(&w->random);
    a.event = events[next_random(&w->random) % ARRAY_SIZE(events)];
    a.addr.v6 = next_random(&w->random) % 4 == 0;
    a.addr.ip[0] = 10;
    a.addr.ip[3] = (uint8_t)next_random(&w->random);
    a.addr.port[1] = 9;
    announce(w, &a);
}

/* Not by announce: the seed's calls. */
static void put_any(struct worker *w)
{
    struct swarm_user u;
    struct torrent t = {0};
    struct peer p = {.addr = {.ip = {10}, .port = {0, 7}}};
    char passkey[PASSKEY_LEN + 1];
    struct err err = {0};
    bool moved;

    name_user(passkey, (unsigned)(next_random(&w->random) % USERS));
    name_torrent(t.info_hash, 1);
    name_peer(p.id, w->id, PEERS);
    if (cache_find_user(w->cache, str_z(passkey), &u, &err) < 0)
        return;
    p.user_id = u.id;
    int code = next_random(&w->random) % 2 ? cache_leecher_finished(w->cache, &t, &p, &moved, &err)
                                           : cache_add_leecher(w->cache, &t, &p, &err);
    if (code < 0 && code != ERR_NOT_FOUND)
        must(code, &err);
}

static void disturb(struct worker *w)
{
    unsigned n = 1 + (unsigned)(next_random(&w->random) % (TORRENTS - 1));
    uint8_t hash[INFO_HASH_LEN];
    char passkey[PASSKEY_LEN + 1];
    struct err err = {0};
    size_t gone;
    int code = 0;

    name_torrent(hash, n);
    name_user(passkey, n);
    switch (next_random(&w->random) % 4) {
    case 0:
        code = cache_remove_torrent(w->cache, hash, &err);
        break;
    case 1:
        code = cache_remove_user(w->cache, str_z(passkey), &err);
        break;
    case 2:
        code = cache_reap(w->cache, REAP_LONG_S, 10, &gone, &err);
        break;
    default:
        add(w->cache, n, n);
    }
    if (code < 0 && code != ERR_NOT_FOUND)
        must(code, &err);
}

static void work(void *ctx)
{
    struct worker *w = ctx;

    for (;;) {
        announce_staying(w, (unsigned)(next_random(&w->random) % STAYING));
        for (unsigned i = next_random(&w->random) % 8; i > 0; i--)
            announce_any(w);
        put_any(w);
        if (next_random(&w->random) % 4 == 0)
            disturb(w);
    }
}

/* --- what must be --- */

static void found(void *ctx, const char *invariant, struct str key)
{
    struct shared *sh = ctx;

    if (!sh->problem[0])
        snprintf(sh->problem, sizeof(sh->problem), "%s: " STR_FMT, invariant, STR_ARG(key));
}

static void problem(struct shared *sh, const char *what, uint64_t got, uint64_t want)
{
    if (!sh->problem[0])
        snprintf(sh->problem, sizeof(sh->problem), "%s: %llu, not %llu", what,
                 (unsigned long long)got, (unsigned long long)want);
}

struct totals {
    uint64_t uploaded[WORKERS][STAYING], records[WORKERS][STAYING];
    uint64_t snatches;
};

static void count_record(struct totals *sum, const struct delta *d, uint64_t user)
{
    unsigned worker = d->peer_id[3], peer = d->peer_id[7];

    if (d->user_id != user)
        return;
    sum->snatches += d->snatched;
    if (worker < WORKERS && peer < STAYING) {
        sum->uploaded[worker][peer] += d->raw_uploaded;
        sum->records[worker][peer]++;
    }
}

static void read_feed(struct cache *c, struct shared *sh, uint64_t user, struct totals *sum)
{
    uint64_t last = 0;
    size_t count;

    do {
        struct arena a = {0};
        struct err err = {0};
        struct delta *d;
        must(feed_read(c, &a, STR("site"), (struct feed_page){0, FEED_PAGE}, &d, &count, &err),
             &err);
        for (size_t i = 0; i < count; i++) {
            if (d[i].number != last + 1)
                problem(sh, "a record's number", d[i].number, last + 1);
            last = d[i].number;
            count_record(sum, &d[i], user);
        }
        if (count)
            must(feed_acknowledge(c, STR("site"), last, &err), &err);
        arena_release(&a);
    } while (count);
}

/* 2 and 3. The first record of a peer counts nothing: it began with 1. */
static void check_peer(struct shared *sh, const struct peer *p, const struct totals *sum)
{
    unsigned worker = p->id[3], n = p->id[7];

    if (worker >= WORKERS || n >= STAYING)
        return;
    if (p->uploaded != sum->uploaded[worker][n] + 1)
        problem(sh, "uploaded of a peer that stays", p->uploaded, sum->uploaded[worker][n] + 1);
    if (p->uploaded < sh->told[worker][n])
        problem(sh, "what a peer was answered is lost", p->uploaded, sh->told[worker][n]);
}

static void check(struct cache *c, struct shared *sh)
{
    struct arena a = {0};
    struct err err = {0};
    struct totals sum = {0};
    struct torrent_peers t;
    struct swarm_user u;
    char passkey[PASSKEY_LEN + 1];
    uint8_t hash[INFO_HASH_LEN];

    name_user(passkey, 0);
    name_torrent(hash, 0);
    must(cache_check(c, found, sh, &err), &err);
    must(cache_find_user(c, str_z(passkey), &u, &err), &err);
    read_feed(c, sh, u.id, &sum);
    if (u.snatches != sum.snatches)
        problem(sh, "snatches of a user that stays", u.snatches, sum.snatches);
    must(cache_find_torrent(c, &a, hash, &t, &err), &err);
    for (size_t i = 0; i < t.seeder_count; i++)
        check_peer(sh, &t.seeders[i], &sum);
    arena_release(&a);
}

/* --- processes --- */

struct place {
    struct redis_server *server; /* NULL: the embedded store */
    const char *folder;
};

static struct cache *open_cache(const struct place *p)
{
    struct store *store;
    struct cache *c;
    struct err err = {0};

    if (p->server) {
        struct store_redis_options o = {
            .url = str_z(p->server->unix_url), .number = SWARM_DB, .timeout_ms = 30000};
        must(store_open_redis(&store, &o, &err), &err);
    } else {
        struct db_options o = {
            .path = p->folder, .cfs = store_cf_specs(), .cf_count = STORE_DATABASES};
        struct db *db;
        must(db_open(&db, &o, &err), &err);
        must(store_open_embedded(&store, db, SWARM_DB, STORE_DURABLE, NULL, &err), &err);
    }
    must(cache_open(&c, &(struct cache_options){.store = store, .feed = true}, &err), &err);
    return c;
}

static void prepare(const struct place *p, struct shared *sh)
{
    struct cache *c = open_cache(p);
    struct err err = {0};

    for (unsigned i = 0; i < USERS; i++)
        add(c, i, i);
    must(feed_add_consumer(c, STR("site"), &err), &err);
}

static void check_all(const struct place *p, struct shared *sh)
{
    check(open_cache(p), sh);
}

/* The check must be able to fail. */
static void check_broken(const struct place *p, struct shared *sh)
{
    struct cache *c = open_cache(p);
    struct worker w = {.cache = c, .sh = sh, .random = {.random = 1}};
    struct swarm_user u = {0};
    struct err err = {0};

    for (int i = 0; i < 20; i++)
        announce_any(&w);
    name_user(u.passkey, 0);
    must(cache_increment_slots(c, &u, &err), &err); /* a slot without a leecher: I4 */
    check(c, sh);
    if (strncmp(sh->problem, "I4", 2) != 0)
        _exit(4);
    sh->problem[0] = 0;
}

typedef void child_fn(const struct place *p, struct shared *sh);

static bool in_child(child_fn *fn, const struct place *p, struct shared *sh)
{
    int status;

    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        fn(p, sh);
        _exit(0); /* RocksDB is not closed: as if killed */
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static pid_t start_worker(const struct place *p, struct shared *sh, unsigned id, uint64_t seed)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        struct worker w = {.cache = open_cache(p), .sh = sh, .id = id, .random = {.random = seed}};
        work(&w);
    }
    return pid;
}

static pid_t start_threads(const struct place *p, struct shared *sh, uint64_t seed)
{
    static struct worker workers[WORKERS];
    struct err err = {0};

    fflush(NULL);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    struct cache *c = open_cache(p);
    for (unsigned i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.cache = c, .sh = sh, .id = i, .random = {.random = seed + i}};
        must(thread_start(&workers[i].thread, "worker", 0, work, &workers[i], &err), &err);
    }
    for (;;)
        pause();
}

static bool kill_worker(pid_t pid, struct shared *sh)
{
    int status;

    kill(pid, SIGKILL);
    if (waitpid(pid, &status, 0) == pid && WIFSIGNALED(status))
        return true;
    problem(sh, "a worker ended by itself", (uint64_t)status, 9);
    return false;
}

static void wait_random(struct crash *random)
{
    unsigned ms = KILL_FROM_MS + (unsigned)(next_random(random) % (KILL_WITHIN_MS - KILL_FROM_MS));
    usleep(ms * 1000); /* a moment of no meaning: what is tested holds at any */
}

static void chaos_redis(const struct place *p, struct shared *sh, struct crash *random)
{
    pid_t pids[WORKERS];
    bool good = true;

    for (unsigned i = 0; i < WORKERS; i++)
        pids[i] = start_worker(p, sh, i, next_random(random));
    for (int k = 0; k < KILLS && good; k++) {
        unsigned victim = (unsigned)(next_random(random) % WORKERS);
        wait_random(random);
        good = kill_worker(pids[victim], sh);
        pids[victim] = start_worker(p, sh, victim, next_random(random));
    }
    wait_random(random);
    for (unsigned i = 0; i < WORKERS; i++)
        kill_worker(pids[i], sh);
}

static void chaos_embedded(const struct place *p, struct shared *sh, struct crash *random)
{
    pid_t pid = start_threads(p, sh, next_random(random));

    for (int i = 0; i < KILLS; i++) /* it opens a database first */
        wait_random(random);
    kill_worker(pid, sh);
}

/* --- runs --- */

static bool one_run(bool redis, const char *folder, struct shared *sh, struct crash *random)
{
    struct redis_server server = {.dir = folder};
    char path[128];
    struct place p = {.folder = path};
    struct err err = {0};

    snprintf(path, sizeof(path), "%s/db", folder);
    memset(sh->told, 0, sizeof(sh->told));
    if (redis) {
        p.server = &server;
        if (!redis_server_start(&server))
            return false;
    }
    bool good = in_child(prepare, &p, sh);
    if (good && redis)
        chaos_redis(&p, sh, random);
    else if (good)
        chaos_embedded(&p, sh, random);
    good = good && !sh->problem[0] && in_child(check_all, &p, sh) && !sh->problem[0];
    good = good && in_child(check_broken, &p, sh);
    if (redis)
        redis_server_kill(&server);
    else if (good)
        must(dir_remove_tree(path, &err), &err);
    return good;
}

int main(int argc, char **argv)
{
    struct shared *sh = shared_memory(sizeof(*sh));
    char folder[] = "/tmp/swarm_crash.XXXXXX";
    uint64_t runs = 200, seed = (uint64_t)clock_wall_ms(), passed = 0, failed = 0;
    struct err err = {0};

    for (int i = 1; i + 1 < argc; i++)
        if ((strcmp(argv[i], "--runs") == 0 && str_u64(str_z(argv[i + 1]), &runs) < 0) ||
            (strcmp(argv[i], "--seed") == 0 && str_u64(str_z(argv[i + 1]), &seed) < 0))
            return 2;
    if (!mkdtemp(folder))
        return 2;
    struct crash random = {.random = seed};
    for (uint64_t i = 0; i < runs && failed == 0; i++) {
        if (one_run(i % 2 == 0, folder, sh, &random)) {
            passed++;
            continue;
        }
        failed++;
        printf("run %llu: %s; again: --seed %llu (folder kept: %s)\n", (unsigned long long)i,
               sh->problem, (unsigned long long)seed, folder);
    }
    if (!failed)
        must(dir_remove_tree(folder, &err), &err);
    printf("seed %llu, %llu announces\n", (unsigned long long)seed,
           (unsigned long long)sh->announces);
    printf("%llu passed, %llu failed\n", (unsigned long long)passed, (unsigned long long)failed);
    return failed > 0;
}
