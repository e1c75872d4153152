/* Clients at work while their bucket is split, merged and disabled, and while images of its folder
 * are taken, on which another start must find every answered change.
 *
 * Each key has one writer, who numbers its changes. So a read is right if and only if it shows a
 * change that is not older than the last one that was answered or read before the read began, and
 * not newer than the last one that was begun before the read ended. */
#include "base/clock.h"
#include "unit/shard/move_lab.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    STRESS_WRITERS = 3,
    STRESS_READERS = 2,
    STRESS_KEYS = 24, /* that change */
    STRESS_FIXED = 100,
    STRESS_CHANGES = 1 << 16,
    STRESS_SEEDS = 5,
    STRESS_ROUNDS = 12,
    STRESS_WINDOW = 16,
};
/* How long a move may take. Beside clients and on a busy machine, moves take tens of seconds. */
#define PATIENCE_NS (120 * NS_PER_S)

struct stress_key {
    char name[24];
    _Atomic(uint32_t) begun, known; /* the last change begun; the last that was answered or read */
    /* Whether the change was a removal. A change that was refused counts as none. */
    _Atomic(bool) *removal;
};

struct stress {
    struct move_lab l;
    struct stress_key keys[STRESS_KEYS];
    _Atomic(bool) stop;
    _Atomic(uint64_t) operations;
    uint64_t seed;
};

struct stress_client {
    struct stress *s;
    unsigned number;
    uint64_t random;
};

static uint64_t stress_random(uint64_t *r, uint64_t below)
{
    *r = *r * 6364136223846793005u + 1442695040888963407u;
    return (*r >> 33) % below;
}

static void known_raise(struct stress_key *k, uint32_t to)
{
    uint32_t now = atomic_load(&k->known);

    while (now < to && !atomic_compare_exchange_weak(&k->known, &now, to))
        ;
}

/* --- reading --- */

/* Checks that a key may be absent: some removal is between the two, or nothing was ever put. */
static uint32_t check_absent(struct stress_key *k, uint32_t from, uint32_t to)
{
    if (from == 0)
        return 0;
    for (uint32_t i = from; i <= to; i++)
        if (atomic_load(&k->removal[i]))
            return i;
    test_fail(__FILE__, __LINE__, "%s is absent between its changes %u and %u", k->name, from, to);
}

static uint32_t read_change(struct bucket *b, struct stress_key *k, bool *there)
{
    struct arena a = {0};
    struct get_result r = {0};
    struct buf body = BUF_INIT(KIB);
    struct err err = {0};
    uint64_t change = 0;
    int code = b->ops->get(b, &a, str_z(k->name), STR_EMPTY, NULL, NULL, &r, &err);

    *there = code == 0;
    if (code == 0) {
        CHECK_OK(reader_read_all(r.body, &body, &err));
        reader_close(r.body);
        CHECK_INT(str_u64(buf_str(&body), &change), 0);
    } else {
        CHECK_ERR(code, ERR_NOT_FOUND);
    }
    buf_release(&body);
    arena_release(&a);
    return (uint32_t)change;
}

static void check_read(struct bucket *b, struct stress_key *k)
{
    bool there;
    uint32_t from = atomic_load(&k->known);
    uint32_t change = read_change(b, k, &there);
    uint32_t to = atomic_load(&k->begun);

    if (!there)
        change = check_absent(k, from, to);
    else if (change < from || change > to)
        test_fail(__FILE__, __LINE__, "%s has change %u, not one between %u and %u", k->name,
                  change, from, to);
    known_raise(k, change);
}

/* Walks over the whole bucket: keys ascend, and the fixed ones are all there once. */
static void check_walk(struct bucket *b, uint64_t *random)
{
    struct arena a = {0};
    struct list_options o = {.limit = 5 + stress_random(random, 90)};
    struct list_result page = {.more = true};
    struct str last = STR_EMPTY;
    unsigned fixed = 0;
    struct err err = {0};

    while (page.more) {
        CHECK_OK(b->ops->list(b, &a, &o, &page, &err));
        for (size_t i = 0; i < page.count; i++) {
            struct str key = page.entries[i].info.key;
            CHECK(str_cmp(last, key) < 0);
            last = key;
            fixed += str_ends(key, STR("fixed"));
        }
        o.after = page.next;
    }
    CHECK_INT(fixed, STRESS_FIXED);
    arena_release(&a);
}

/* --- writing --- */

static void write_put(struct bucket *b, struct stress_key *k, uint32_t change, bool only_new)
{
    struct arena a = {0};
    char text[16];
    struct str_reader body;
    struct put_options o = {.conditions.if_none_match = only_new ? STR("*") : STR_EMPTY};
    struct put_result r;
    struct err err = {0};

    snprintf(text, sizeof(text), "%u", change);
    str_reader_init(&body, str_z(text));
    CHECK_OK(b->ops->put(b, &a, str_z(k->name), &body.reader, strlen(text), &o, &r, &err));
    arena_release(&a);
}

static void write_upload(struct bucket *b, struct stress_key *k, uint32_t change)
{
    struct arena a = {0};
    char text[16];
    struct put_options o = {0};
    struct put_result r;
    struct err err = {0};

    snprintf(text, sizeof(text), "%u", change);
    struct upload_info u = lab_upload(b, &a, k->name);
    struct upload_part p = lab_part(b, &a, &u, 1, str_z(text));
    CHECK_OK(b->ops->upload_finish(b, &a, &u, &p, 1, &o, &r, &err));
    arena_release(&a);
}

/* Makes the next change of a key that this client alone changes. */
static void write_change(struct stress_client *c, struct stress_key *k)
{
    struct bucket *b = c->s->l.bucket;
    struct arena a = {0};
    uint32_t before = atomic_load(&k->begun), change = before + 1;
    bool absent = before == 0 || atomic_load(&k->removal[before]);
    uint64_t what = stress_random(&c->random, 10);

    if (change == STRESS_CHANGES)
        return;
    if (what == 0 && !absent) { /* refused, because it is there */
        struct put_options o = {.conditions.if_none_match = STR("*")};
        struct put_result r;
        struct str_reader body;
        struct err err = {0};
        str_reader_init(&body, STR("x"));
        CHECK_ERR(b->ops->put(b, &a, str_z(k->name), &body.reader, 1, &o, &r, &err),
                  ERR_PRECONDITION);
        arena_release(&a);
        return;
    }
    atomic_store(&k->removal[change], what >= 7);
    atomic_store(&k->begun, change);
    if (what >= 7)
        lab_remove(b, &a, k->name, STR_EMPTY);
    else if (what == 6)
        write_upload(b, k, change);
    else
        write_put(b, k, change, absent && what == 1);
    known_raise(k, change);
    arena_release(&a);
}

/* --- clients --- */

static void run_writer(void *ctx)
{
    struct stress_client *c = ctx;

    while (!atomic_load(&c->s->stop)) {
        size_t i = stress_random(&c->random, STRESS_KEYS / STRESS_WRITERS);
        write_change(c, &c->s->keys[i * STRESS_WRITERS + c->number]);
        check_read(c->s->l.bucket, &c->s->keys[stress_random(&c->random, STRESS_KEYS)]);
        atomic_fetch_add(&c->s->operations, 2);
    }
}

static void run_reader(void *ctx)
{
    struct stress_client *c = ctx;

    while (!atomic_load(&c->s->stop)) {
        for (int i = 0; i < 20; i++)
            check_read(c->s->l.bucket, &c->s->keys[stress_random(&c->random, STRESS_KEYS)]);
        check_walk(c->s->l.bucket, &c->random);
        atomic_fetch_add(&c->s->operations, 21);
    }
}

/* --- moves and images --- */

/* Takes an image, and starts on it: each key is there as it was at one moment in between. */
static void stress_image(struct stress *s, uint64_t *random)
{
    uint32_t from[STRESS_KEYS], to[STRESS_KEYS];
    struct move_lab l;

    for (size_t i = 0; i < STRESS_KEYS; i++)
        from[i] = atomic_load(&s->keys[i].known);
    move_lab_image(&s->l, "image");
    for (size_t i = 0; i < STRESS_KEYS; i++)
        to[i] = atomic_load(&s->keys[i].begun);
    move_lab_open(&l, "image");
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < STRESS_KEYS; i++) {
            bool there;
            uint32_t change = read_change(l.bucket, &s->keys[i], &there);
            if (!there)
                check_absent(&s->keys[i], from[i], to[i]);
            else
                CHECK(change >= from[i] && change <= to[i]);
        }
        check_walk(l.bucket, random);
        if (l.sharded)
            move_lab_run(&l, STRESS_WINDOW); /* what was under way goes on to its end */
    }
    move_lab_check(&l, NULL);
    move_lab_close(&l);
}

static void stress_move(struct stress *s, uint64_t *random)
{
    struct move_request q = {.hurry = stress_random(random, 2) == 0};
    struct err err = {0};
    int code = 0;

    switch (stress_random(random, 10)) {
    case 0:
        code = mover_cancel(s->l.mover, s->l.sharded, &err);
        CHECK(code == 0 || code == ERR_NOT_FOUND);
        return;
    case 1:
        CHECK_ERR(mover_remove(s->l.mover, s->l.sharded, STR("alice"), &err), ERR_CONFLICT);
        return;
    case 2:
        stress_image(s, random);
        return;
    case 3:
    case 4:
        q.kind = SHARD_MERGE;
        break;
    case 5:
        q.kind = SHARD_SPLIT;
        break;
    default:
        q.kind = SHARD_SPLIT;
        q.at = str_z(s->keys[stress_random(random, STRESS_KEYS)].name);
        break;
    }
    code = mover_begin(s->l.mover, s->l.sharded, &q, &err);
    CHECK(code == 0 || code == ERR_BUSY || code == ERR_EXISTS || code == ERR_NOT_FOUND);
    if (stress_random(random, 3))
        CHECK_OK(mover_wait(s->l.mover, s->l.sharded, clock_mono_ns() + PATIENCE_NS, &err));
}

/* --- a run --- */

static void stress_open(struct stress *s, uint64_t seed)
{
    struct arena a = {0};
    char name[32];

    *s = (struct stress){.seed = seed};
    snprintf(name, sizeof(name), "weir-%u", (unsigned)seed);
    move_lab_open(&s->l, name);
    move_lab_make(&s->l, false);
    for (unsigned i = 0; i < STRESS_KEYS; i++) {
        snprintf(s->keys[i].name, sizeof(s->keys[i].name), "k/%03u", i * 4);
        s->keys[i].removal = xcalloc(STRESS_CHANGES, sizeof(*s->keys[i].removal));
    }
    for (unsigned i = 0; i < STRESS_FIXED; i++) {
        snprintf(name, sizeof(name), "k/%03u/fixed", i);
        lab_put(s->l.bucket, &a, name, STR("fixed"));
    }
    s->l.mover->window_keys = STRESS_WINDOW;
    arena_release(&a);
}

static void stress_close(struct stress *s)
{
    for (unsigned i = 0; i < STRESS_KEYS; i++)
        free(s->keys[i].removal);
    move_lab_close(&s->l);
}

/* Disables the bucket under the clients' hands. */
static void stress_disable(struct stress *s)
{
    struct move_request q = {.kind = SHARD_DISABLE, .hurry = true};
    struct err err = {0};

    CHECK_OK(mover_wait(s->l.mover, s->l.sharded, clock_mono_ns() + PATIENCE_NS, &err));
    CHECK_OK(mover_begin(s->l.mover, s->l.sharded, &q, &err));
    CHECK_OK(mover_wait(s->l.mover, s->l.sharded, clock_mono_ns() + PATIENCE_NS, &err));
    CHECK_INT(s->l.gone, 1);
}

static void stress_run(uint64_t seed, uint64_t *operations, uint64_t *hand_overs)
{
    struct stress s;
    struct stress_client clients[STRESS_WRITERS + STRESS_READERS];
    struct thread threads[ARRAY_SIZE(clients)] = {0};
    struct mover_stats stats;
    uint64_t random = seed * 0x9e3779b97f4a7c15u;
    struct err err = {0};

    stress_open(&s, seed);
    CHECK_OK(mover_start(s.l.mover, &err));
    for (unsigned i = 0; i < ARRAY_SIZE(clients); i++) {
        clients[i] = (struct stress_client){&s, i, (seed * 100 + i) * 0x9e3779b97f4a7c15u};
        CHECK_OK(thread_start(&threads[i], "client", 0,
                              i < STRESS_WRITERS ? run_writer : run_reader, &clients[i], &err));
    }
    for (int i = 0; i < STRESS_ROUNDS; i++)
        stress_move(&s, &random);
    stress_image(&s, &random);
    if (seed % 2)
        stress_disable(&s);
    atomic_store(&s.stop, true);
    for (unsigned i = 0; i < ARRAY_SIZE(clients); i++)
        thread_join(&threads[i]);
    CHECK_OK(mover_wait(s.l.mover, s.l.sharded, clock_mono_ns() + PATIENCE_NS, &err));
    mover_stop(s.l.mover);
    mover_stats(s.l.mover, &stats);
    *operations += atomic_load(&s.operations);
    *hand_overs += stats.hand_overs;
    for (size_t i = 0; i < STRESS_KEYS; i++)
        check_read(s.l.bucket, &s.keys[i]);
    if (!s.l.gone)
        move_lab_check(&s.l, NULL);
    stress_close(&s);
}

static void stress_seeds(uint64_t first)
{
    uint64_t operations = 0, hand_overs = 0;

    for (uint64_t seed = first; seed < first + STRESS_SEEDS; seed++)
        stress_run(seed, &operations, &hand_overs);
    CHECK(operations > 1000);
    CHECK(hand_overs > 20);
}

/* Several tests, which run beside each other. */
#define STRESS(part)                                                                               \
    TEST_TIMEOUT(shard_move_stress,                                                                \
                 clients_see_one_bucket_while_it_is_split_merged_killed_and_disabled_##part, 300)  \
    {                                                                                              \
        stress_seeds(part *STRESS_SEEDS);                                                          \
    }

STRESS(1)
STRESS(2)
STRESS(3)
STRESS(4)

/* --- removal --- */

struct removal_client {
    struct stress *s;
    char key[8];
    bool there; /* after its last change that was answered */
};

/* Puts and removes a key until the bucket is gone. */
static void run_removal_client(void *ctx)
{
    struct removal_client *c = ctx;
    struct bucket *b = c->s->l.bucket;
    int code = 0;

    while (code == 0) {
        struct arena a = {0};
        struct str_reader body;
        struct put_options o = {0};
        struct put_result put;
        struct remove_options plain = {0};
        struct remove_result removed;
        struct err err = {0};
        str_reader_init(&body, STR("x"));
        code = c->there ? b->ops->remove(b, &a, str_z(c->key), &plain, &removed, &err)
                        : b->ops->put(b, &a, str_z(c->key), &body.reader, 1, &o, &put, &err);
        if (code == 0)
            c->there = !c->there;
        else
            CHECK(code == ERR_NO_BUCKET || code == ERR_CONFLICT);
        arena_release(&a);
    }
}

TEST(shard_move_stress, a_bucket_is_removed_only_when_no_answered_object_is_in_it)
{
    struct stress s = {0};
    struct removal_client clients[3];
    struct thread threads[ARRAY_SIZE(clients)] = {0};
    struct err err = {0};
    int code = ERR_CONFLICT;

    move_lab_open(&s.l, "weir");
    move_lab_make(&s.l, false);
    move_lab_do(&s.l, SHARD_SPLIT, "b", 1000);
    move_lab_do(&s.l, SHARD_SPLIT, "c", 1000);
    for (unsigned i = 0; i < ARRAY_SIZE(clients); i++) {
        clients[i] = (struct removal_client){.s = &s};
        snprintf(clients[i].key, sizeof(clients[i].key), "%c", 'b' + i);
        CHECK_OK(thread_start(&threads[i], "client", 0, run_removal_client, &clients[i], &err));
    }
    while (code == ERR_CONFLICT || code == ERR_BUSY)
        code = mover_remove(s.l.mover, s.l.sharded, STR("alice"), &err);
    CHECK_INT(code, 0);
    for (unsigned i = 0; i < ARRAY_SIZE(clients); i++)
        thread_join(&threads[i]);
    for (unsigned i = 0; i < ARRAY_SIZE(clients); i++)
        CHECK(!clients[i].there);
    CHECK_INT(s.l.gone, 1);
    move_lab_close(&s.l);
}
