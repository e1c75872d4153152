/* The requests under way in a sharded bucket: many of them, while windows go from shard to shard.
 *
 * The shards are arrays of counters. A request adds to the counter of its key on the shard that its
 * pass names, or reads it. The mover closes a window, waits until it is drained, moves the counters
 * and poisons those that it leaves behind. So a request that acts on the wrong shard, or while its
 * window is handed over, sees poison or loses its addition. */
#include "base/clock.h"
#include "base/ids.h"
#include "os/thread.h"
#include "shard/table.h"
#include "unit/shard/map_lab.h"
#include "unit/test.h"

enum { KEYS = 12, SHARDS = 4, CLIENTS = 6, ROUNDS = 5000 };

#define POISON (INT64_MAX / 2)

static const char *const keys[KEYS] = {"b", "d", "f", "h", "j", "l", "n", "p", "r", "t", "v", "x"};

struct stress {
    struct shard_table *table;
    struct shard_map *map; /* the mover's */
    _Atomic(int64_t) counters[SHARDS][KEYS];
    /* The number of the newest map that closed the key and was drained. */
    _Atomic(uint64_t) fenced[KEYS];
    _Atomic(int64_t) added[KEYS];
    _Atomic(bool) stop;
};

static void expect_not_fenced(struct stress *s, const struct pass *p, size_t key)
{
    CHECK(s->fenced[key] <= p->map->number);
}

static void client_write(struct stress *s, struct pass *p, size_t key)
{
    _Atomic(int64_t) *counter = &s->counters[pass_place(p)->number][key];

    CHECK(*counter < POISON);
    (*counter)++;
    s->added[key]++;
    expect_not_fenced(s, p, key);
    CHECK(*counter < POISON);
}

static void client_read(struct stress *s, struct pass *p, size_t key)
{
    CHECK(s->counters[pass_place(p)->number][key] < POISON);
    expect_not_fenced(s, p, key);
    pass_head(p);
}

static void client_list(struct stress *s, struct str after)
{
    struct pass p;
    struct err err = {0};

    CHECK_OK(pass_take_after(s->table, after, &p, &err));
    for (size_t key = 0; key < KEYS; key++) {
        if (!window_has(&p.window, str_z(keys[key])))
            continue;
        CHECK(s->counters[pass_place(&p)->number][key] < POISON);
        expect_not_fenced(s, &p, key);
    }
    pass_head(&p);
    pass_leave(&p);
}

static void client_write_several(struct stress *s)
{
    struct pass passes[3];
    struct str names[3];
    size_t chosen[3];
    struct err err = {0};

    for (int i = 0; i < 3; i++) {
        chosen[i] = random_below(KEYS);
        names[i] = str_z(keys[chosen[i]]);
    }
    CHECK_OK(pass_take_all(s->table, names, 3, PASS_WRITE, passes, &err));
    for (int i = 0; i < 3; i++) {
        CHECK(passes[i].map == passes[0].map);
        client_write(s, &passes[i], chosen[i]);
    }
    for (int i = 0; i < 3; i++)
        pass_leave(&passes[i]);
}

static void client_run(void *ctx)
{
    struct stress *s = ctx;
    struct err err = {0};
    struct pass p;

    while (!s->stop) {
        size_t key = random_below(KEYS);
        uint64_t what = random_below(10);
        if (what == 0) {
            client_list(s, random_below(4) ? str_z(keys[key]) : STR(""));
        } else if (what == 1) {
            client_write_several(s);
        } else if (what < 5) {
            CHECK_OK(pass_take(s->table, str_z(keys[key]), PASS_READ, true, &p, &err));
            client_read(s, &p, key);
            pass_leave(&p);
        } else {
            bool may_wait = what < 9;
            int code = pass_take(s->table, str_z(keys[key]), PASS_WRITE, may_wait, &p, &err);
            CHECK(code == 0 || (code == ERR_AGAIN && !may_wait));
            if (code == 0)
                client_write(s, &p, key);
            pass_leave(&p);
        }
    }
}

static void mover_install(struct stress *s)
{
    struct err err = {0};

    CHECK_OK(map_check(s->map, &err));
    CHECK(table_install(s->table, s->map));
    map_lab_next(&s->map);
}

/* Moves the counters of the window, whose keys are on one shard or on several. */
static void mover_move(struct stress *s, const struct shard_window *w, uint32_t to)
{
    for (size_t key = 0; key < KEYS; key++) {
        uint32_t from = map_lab_owner(s->map, str_z(keys[key]));
        if (!window_has(w, str_z(keys[key])))
            continue;
        s->fenced[key] = s->map->number - 1; /* of the closed map; s->map is the next one */
        if (from == to)
            continue;
        s->counters[to][key] = s->counters[from][key];
        s->counters[from][key] = POISON;
    }
}

static void mover_round(struct stress *s)
{
    size_t from = random_below(KEYS), upto = from + random_below(KEYS - from + 1);
    /* Boundaries on keys, and the ends of the key space. */
    struct shard_window w = {from ? str_z(keys[from]) : STR(""),
                             upto < KEYS ? str_z(keys[upto]) : STR("")};
    uint32_t to = (uint32_t)random_below(SHARDS);

    if (window_is_empty(&w))
        return;
    map_close(s->map, SHARD_CLOSED_ADOPT, &w);
    uint64_t number = s->map->number;
    mover_install(s);
    if (random_below(10)) {
        CHECK(table_drain(s->table, number, clock_mono_ns() + 60 * NS_PER_S));
        mover_move(s, &w, to);
        map_give(s->map, &w, to);
    } /* else it gives up */
    map_open(s->map);
    mover_install(s);
}

TEST(shard_table, no_request_acts_in_a_window_that_is_handed_over)
{
    struct stress s = {.map = map_lab_first()};
    struct thread clients[CLIENTS];
    struct err err = {0};

    for (uint32_t shard = 1; shard < SHARDS; shard++) {
        map_lab_add(s.map, shard);
        for (size_t key = 0; key < KEYS; key++)
            s.counters[shard][key] = POISON;
    }
    s.table = table_new(s.map, NULL, NULL);
    table_set_times(s.table, 60000, 60000);
    map_lab_next(&s.map);
    for (int i = 0; i < CLIENTS; i++)
        CHECK_OK(thread_start(&clients[i], "client", 0, client_run, &s, &err));
    for (int round = 0; round < ROUNDS; round++)
        mover_round(&s);
    s.stop = true;
    for (int i = 0; i < CLIENTS; i++)
        thread_join(&clients[i]);
    for (size_t key = 0; key < KEYS; key++) {
        uint32_t owner = map_lab_owner(s.map, str_z(keys[key]));
        CHECK_INT(s.counters[owner][key], s.added[key]);
    }
    table_free(s.table);
    map_unref(s.map);
}
