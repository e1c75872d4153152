/* The requests under way in a sharded bucket: one at a time. */
#include "shard/table.h"
#include "base/clock.h"
#include "os/thread.h"
#include "unit/shard/map_lab.h"
#include "unit/test.h"

enum { LONG_MS = 60000 };

/* A table over the shards 0 (all keys up to "m") and 1 (the others). */
struct table_lab {
    struct shard_table *table;
    struct shard_map *map; /* the newest */
    struct err err;
};

static void lab_open_with(struct table_lab *l, table_open_fn *open)
{
    *l = (struct table_lab){.map = map_lab_first()};
    map_lab_add(l->map, 1);
    map_give(l->map, WINDOW("m", ""), 1);
    l->table = table_new(l->map, open, l);
    table_set_times(l->table, LONG_MS, LONG_MS);
}

static void lab_open(struct table_lab *l)
{
    lab_open_with(l, NULL);
}

static void lab_close(struct table_lab *l)
{
    table_free(l->table);
    map_unref(l->map);
}

/* Installs a map that follows, which closes the window (NULL: nothing). */
static uint64_t lab_install(struct table_lab *l, const struct shard_window *closed)
{
    map_lab_next(&l->map);
    map_open(l->map);
    if (closed)
        map_close(l->map, SHARD_CLOSED_COPY, closed);
    CHECK(table_install(l->table, l->map));
    return l->map->number;
}

/* Takes a pass in place. */
#define TAKE(l, name, key, use)                                                                    \
    struct pass name;                                                                              \
    CHECK_ERR(pass_take((l)->table, STR(key), use, false, &name, &(l)->err), 0)

/* A thread that takes one pass, waits in it for its permission, and leaves it. */
struct taker {
    struct table_lab *lab;
    struct str key;
    struct thread thread;
    _Atomic(int) code; /* 1: not known yet */
    _Atomic(bool) may_leave;
    _Atomic(uint64_t) number; /* of the pass's map */
};

static void taker_run(void *ctx)
{
    struct taker *t = ctx;
    struct pass p;
    struct err err = {0};
    int code = pass_take(t->lab->table, t->key, PASS_WRITE, true, &p, &err);

    if (code == 0)
        t->number = p.map->number;
    t->code = code;
    if (code < 0)
        return;
    CHECK_SOON(t->may_leave);
    pass_leave(&p);
}

static void taker_start(struct taker *t, struct table_lab *l, const char *key)
{
    struct err err = {0};

    *t = (struct taker){.lab = l, .key = str_z(key), .code = 1};
    CHECK_OK(thread_start(&t->thread, "taker", 0, taker_run, t, &err));
}

static void taker_end(struct taker *t)
{
    t->may_leave = true;
    thread_join(&t->thread);
}

TEST(shard_table, a_pass_names_the_shard_of_its_key)
{
    struct table_lab l;

    lab_open(&l);
    TAKE(&l, low, "m", PASS_READ);
    TAKE(&l, high, "n", PASS_WRITE);
    CHECK_INT(pass_place(&low)->number, 0);
    CHECK_INT(pass_place(&high)->number, 1);
    pass_leave(&low);
    pass_leave(&low); /* again is fine */
    pass_head(&low);
    pass_leave(&high);
    pass_leave(&(struct pass){0});
    lab_close(&l);
}

TEST(shard_table, a_pass_keeps_the_map_that_it_was_taken_under)
{
    struct table_lab l;

    lab_open(&l);
    TAKE(&l, old, "n", PASS_WRITE);
    map_lab_next(&l.map);
    map_give(l.map, WINDOW("m", ""), 0);
    CHECK(table_install(l.table, l.map));
    TAKE(&l, new, "n", PASS_WRITE);
    CHECK_INT(pass_place(&old)->number, 1);
    CHECK_INT(pass_place(&new)->number, 0);
    pass_leave(&old);
    pass_leave(&new);
    lab_close(&l);
}

TEST(shard_table, an_older_map_is_not_installed)
{
    struct table_lab l;

    lab_open(&l);
    struct shard_map *first = map_ref(l.map), *now;
    CHECK(!table_install(l.table, first));
    lab_install(&l, NULL);
    CHECK(!table_install(l.table, first));
    CHECK(!table_install(l.table, l.map));
    now = table_map(l.table);
    CHECK_INT(now->number, l.map->number);
    map_unref(now);
    map_unref(first);
    lab_close(&l);
}

TEST(shard_table, a_closed_key_waits_until_it_opens)
{
    struct table_lab l;
    struct taker in, at_end, below, above;
    struct pass p;

    lab_open(&l);
    uint64_t closed = lab_install(&l, WINDOW("c", "f"));
    CHECK_ERR(pass_take(l.table, STR("d"), PASS_READ, false, &p, &l.err), ERR_AGAIN);
    pass_leave(&p); /* was not taken */
    taker_start(&in, &l, "d");
    taker_start(&at_end, &l, "f");
    taker_start(&below, &l, "c");
    taker_start(&above, &l, "fa");
    CHECK_SOON(below.code == 0 && above.code == 0);
    CHECK_SOON(table_waiting(l.table) == 2);
    CHECK_INT(in.code, 1);
    CHECK_INT(below.number, closed);
    uint64_t open = lab_install(&l, NULL);
    CHECK_SOON(in.code == 0 && at_end.code == 0);
    CHECK_INT(in.number, open);
    taker_end(&in);
    taker_end(&at_end);
    taker_end(&below);
    taker_end(&above);
    lab_close(&l);
}

TEST(shard_table, a_key_that_stays_closed_waits_through_other_maps)
{
    struct table_lab l;
    struct taker t;

    lab_open(&l);
    lab_install(&l, WINDOW("c", "f"));
    taker_start(&t, &l, "d");
    CHECK_SOON(table_waiting(l.table) == 1);
    for (int i = 0; i < 20; i++)
        lab_install(&l, i % 2 ? WINDOW("c", "f") : WINDOW("", "d"));
    CHECK_INT(t.code, 1);
    CHECK_INT(lab_install(&l, WINDOW("d", "f")), l.map->number);
    CHECK_SOON(t.code == 0);
    taker_end(&t);
    lab_close(&l);
}

TEST(shard_table, a_key_that_does_not_open_is_busy)
{
    struct table_lab l;
    struct pass p;

    lab_open(&l);
    table_set_times(l.table, 20, LONG_MS);
    lab_install(&l, WINDOW("c", "f"));
    uint64_t begin = clock_mono_ns();
    CHECK_ERR(pass_take(l.table, STR("d"), PASS_WRITE, true, &p, &l.err), ERR_BUSY);
    CHECK(clock_mono_ns() - begin >= 20 * NS_PER_MS);
    CHECK_ERR(pass_take_after(l.table, STR("d"), &p, &l.err), ERR_BUSY);
    CHECK_INT(table_waiting(l.table), 0);
    lab_close(&l);
}

TEST(shard_table, buckets_that_are_deleted_or_plain_give_no_pass)
{
    struct table_lab l;
    struct pass p;

    lab_open(&l);
    map_lab_next(&l.map);
    l.map->state = SHARD_DELETING;
    CHECK(table_install(l.table, l.map));
    CHECK_ERR(pass_take(l.table, STR("d"), PASS_READ, true, &p, &l.err), ERR_CONFLICT);
    CHECK_ERR(pass_take_all(l.table, &STR("d"), 1, PASS_READ, &p, &l.err), ERR_CONFLICT);
    map_lab_next(&l.map);
    l.map->state = SHARD_PLAIN;
    CHECK(table_install(l.table, l.map));
    CHECK_ERR(pass_take(l.table, STR("d"), PASS_READ, true, &p, &l.err), ERR_NO_BUCKET);
    CHECK_ERR(pass_take_after(l.table, STR("d"), &p, &l.err), ERR_NO_BUCKET);
    lab_close(&l);
}

TEST(shard_table, a_map_that_changes_the_state_ends_the_waiting)
{
    struct table_lab l;
    struct taker t;

    lab_open(&l);
    map_lab_next(&l.map);
    map_close(l.map, SHARD_CLOSED_ALL, NULL);
    CHECK(table_install(l.table, l.map));
    taker_start(&t, &l, "d");
    CHECK_SOON(table_waiting(l.table) == 1);
    map_lab_next(&l.map);
    l.map->state = SHARD_DELETING;
    CHECK(table_install(l.table, l.map));
    CHECK_SOON(t.code == ERR_CONFLICT);
    taker_end(&t);
    lab_close(&l);
}

TEST(shard_table, writes_drain_when_they_end_and_reads_when_they_have_a_head)
{
    struct table_lab l;

    lab_open(&l);
    TAKE(&l, write, "d", PASS_WRITE);
    TAKE(&l, read, "e", PASS_READ);
    TAKE(&l, outside, "g", PASS_WRITE);
    struct pass list;
    CHECK_ERR(pass_take_after(l.table, STR("e"), &list, &l.err), 0);
    uint64_t n = lab_install(&l, WINDOW("c", "f"));
    CHECK(!table_drained(l.table, n));
    pass_head(&read);
    CHECK(!table_drained(l.table, n));
    pass_head(&write); /* a write that answers may still take effect */
    CHECK(!table_drained(l.table, n));
    pass_leave(&write);
    CHECK(!table_drained(l.table, n));
    pass_head(&list);
    CHECK(table_drained(l.table, n));
    CHECK(!table_drained(l.table, n - 1));
    CHECK(!table_drained(l.table, n + 1));
    pass_leave(&list);
    pass_leave(&read);
    pass_leave(&outside);
    CHECK(table_drained(l.table, n));
    lab_close(&l);
}

TEST(shard_table, a_listing_of_other_keys_does_not_hold_up)
{
    struct table_lab l;
    struct pass before, behind;

    lab_open(&l);
    map_lab_next(&l.map);
    map_give(l.map, WINDOW("", "c"), 1);
    CHECK(table_install(l.table, l.map));
    CHECK_ERR(pass_take_after(l.table, STR("a"), &before, &l.err), 0); /* (a,c] */
    CHECK_ERR(pass_take_after(l.table, STR("f"), &behind, &l.err), 0); /* (f,m] */
    CHECK_STR(before.window.after, STR("a"));
    CHECK_STR(before.window.upto, STR("c"));
    CHECK_STR(behind.window.upto, STR("m"));
    CHECK_INT(pass_place(&before)->number, 1);
    CHECK_INT(pass_place(&behind)->number, 0);
    CHECK(table_drained(l.table, lab_install(&l, WINDOW("c", "f"))));
    pass_leave(&before);
    CHECK_ERR(pass_take_after(l.table, STR("f"), &before, &l.err), 0); /* needs no waiting */
    pass_leave(&before);
    pass_leave(&behind);
    lab_close(&l);
}

TEST(shard_table, requests_under_the_closing_map_do_not_hold_up)
{
    struct table_lab l;

    lab_open(&l);
    uint64_t n = lab_install(&l, WINDOW("c", "f"));
    TAKE(&l, other, "g", PASS_WRITE);
    CHECK(table_drained(l.table, n));
    n = lab_install(&l, WINDOW("c", "h")); /* now that pass is under an older map */
    CHECK(!table_drained(l.table, n));
    pass_leave(&other);
    CHECK(table_drained(l.table, n));
    lab_close(&l);
}

TEST(shard_table, a_map_that_closes_all_waits_for_all)
{
    struct table_lab l;

    lab_open(&l);
    TAKE(&l, low, "d", PASS_WRITE);
    TAKE(&l, high, "z", PASS_READ);
    map_lab_next(&l.map);
    map_close(l.map, SHARD_CLOSED_DOCUMENTS, NULL);
    CHECK(table_install(l.table, l.map));
    CHECK(table_drained(l.table, l.map->number)); /* objects are open */
    map_lab_next(&l.map);
    map_open(l.map);
    map_close(l.map, SHARD_CLOSED_ALL, NULL);
    CHECK(table_install(l.table, l.map));
    CHECK(!table_drained(l.table, l.map->number));
    pass_leave(&low);
    CHECK(!table_drained(l.table, l.map->number));
    pass_leave(&high);
    CHECK(table_drained(l.table, l.map->number));
    lab_close(&l);
}

/* A thread that waits until a map is drained. */
struct drainer {
    struct table_lab *lab;
    uint64_t number, deadline_ns;
    struct thread thread;
    _Atomic(int) result; /* -1: it still waits */
};

static void drainer_run(void *ctx)
{
    struct drainer *d = ctx;

    d->result = table_drain(d->lab->table, d->number, d->deadline_ns);
}

static void drainer_start(struct drainer *d, struct table_lab *l, uint64_t number, uint64_t ms)
{
    struct err err = {0};

    *d = (struct drainer){.lab = l, .number = number, .result = -1};
    d->deadline_ns = clock_mono_ns() + ms * NS_PER_MS;
    CHECK_OK(thread_start(&d->thread, "drainer", 0, drainer_run, d, &err));
}

TEST(shard_table, draining_ends_with_the_last_pass)
{
    struct table_lab l;
    struct drainer d;

    lab_open(&l);
    TAKE(&l, write, "d", PASS_WRITE);
    TAKE(&l, read, "e", PASS_READ);
    drainer_start(&d, &l, lab_install(&l, WINDOW("c", "f")), LONG_MS);
    pass_leave(&write);
    CHECK_INT(d.result, -1);
    pass_head(&read);
    thread_join(&d.thread);
    CHECK_INT(d.result, true);
    pass_leave(&read);
    lab_close(&l);
}

TEST(shard_table, draining_ends_at_its_deadline_and_with_a_newer_map)
{
    struct table_lab l;
    struct drainer d;

    lab_open(&l);
    TAKE(&l, write, "d", PASS_WRITE);
    uint64_t n = lab_install(&l, WINDOW("c", "f"));
    CHECK(!table_drain(l.table, n, clock_mono_ns() + 10 * NS_PER_MS));
    drainer_start(&d, &l, n, LONG_MS);
    lab_install(&l, NULL);
    thread_join(&d.thread);
    CHECK_INT(d.result, false);
    pass_leave(&write);
    CHECK(!table_drain(l.table, n, clock_mono_ns() + LONG_MS * NS_PER_MS));
    lab_close(&l);
}

/* --- opening a window for which nobody comes --- */

static _Atomic(int) opens;
static _Atomic(bool) open_works;

static void open_window(void *ctx, uint64_t number)
{
    struct table_lab *l = ctx;

    CHECK_INT(number, l->map->number);
    opens++;
    if (open_works)
        lab_install(l, NULL);
}

TEST(shard_table, a_request_that_waits_long_opens_the_window)
{
    struct table_lab l;
    struct taker takers[8];

    lab_open_with(&l, open_window);
    opens = 0;
    open_works = true;
    table_set_times(l.table, LONG_MS, 20);
    lab_install(&l, WINDOW("c", "f"));
    for (size_t i = 0; i < ARRAY_SIZE(takers); i++)
        taker_start(&takers[i], &l, "d");
    for (size_t i = 0; i < ARRAY_SIZE(takers); i++) {
        CHECK_SOON(takers[i].code == 0);
        taker_end(&takers[i]);
    }
    CHECK_INT(opens, 1);
    lab_close(&l);
}

TEST(shard_table, opening_is_tried_again)
{
    struct table_lab l;
    struct taker takers[4];

    lab_open_with(&l, open_window);
    opens = 0;
    open_works = false;
    table_set_times(l.table, LONG_MS, 5);
    lab_install(&l, WINDOW("c", "f"));
    for (size_t i = 0; i < ARRAY_SIZE(takers); i++)
        taker_start(&takers[i], &l, "d");
    CHECK_SOON(opens >= 3);
    CHECK_INT(takers[0].code, 1);
    open_works = true;
    for (size_t i = 0; i < ARRAY_SIZE(takers); i++) {
        CHECK_SOON(takers[i].code == 0);
        taker_end(&takers[i]);
    }
    lab_close(&l);
}

/* --- several keys --- */

static _Atomic(int) all_code;

static void take_all_run(void *ctx)
{
    struct table_lab *l = ctx;
    struct str keys[] = {STR("a"), STR("d"), STR("z")};
    struct pass passes[3];
    struct err err = {0};
    int code = pass_take_all(l->table, keys, 3, PASS_WRITE, passes, &err);

    for (int i = 0; i < 3 && code == 0; i++) {
        CHECK_INT(pass_place(&passes[i])->number, i == 2);
        CHECK(passes[i].map == passes[0].map);
        pass_leave(&passes[i]);
    }
    all_code = code;
}

TEST(shard_table, passes_for_several_keys_are_taken_together)
{
    struct table_lab l;
    struct thread thread;

    lab_open(&l);
    all_code = 1;
    lab_install(&l, WINDOW("c", "f"));
    CHECK_ERR(thread_start(&thread, "all", 0, take_all_run, &l, &l.err), 0);
    CHECK_SOON(table_waiting(l.table) == 1);
    /* While it waits for "d" it holds up no mover that closes the others. */
    CHECK(table_drained(l.table, lab_install(&l, WINDOW("", ""))));
    CHECK_INT(all_code, 1);
    lab_install(&l, NULL);
    thread_join(&thread);
    CHECK_INT(all_code, 0);
    CHECK_ERR(pass_take_all(l.table, NULL, 0, PASS_READ, NULL, &l.err), 0);
    lab_close(&l);
}

TEST(shard_table, the_same_key_may_be_taken_twice)
{
    struct table_lab l;
    struct str keys[] = {STR("d"), STR("d")};
    struct pass passes[2];

    lab_open(&l);
    CHECK_ERR(pass_take_all(l.table, keys, 2, PASS_WRITE, passes, &l.err), 0);
    uint64_t n = lab_install(&l, WINDOW("c", "f"));
    pass_leave(&passes[0]);
    CHECK(!table_drained(l.table, n));
    pass_leave(&passes[1]);
    CHECK(table_drained(l.table, n));
    lab_close(&l);
}

/* --- busy keys --- */

static void expect_busy(struct table_lab *l, const struct shard_window *w, struct str want)
{
    struct arena a = {0};

    CHECK_STR(table_smallest_busy(l->table, w, 0, &a), want);
    arena_release(&a);
}

TEST(shard_table, the_smallest_busy_key_is_found)
{
    struct table_lab l;
    struct arena a = {0};
    struct pass list;

    lab_open(&l);
    expect_busy(&l, WINDOW("", ""), STR(""));
    TAKE(&l, third, "h", PASS_WRITE);
    TAKE(&l, second, "f", PASS_READ);
    TAKE(&l, first, "d", PASS_WRITE);
    expect_busy(&l, WINDOW("", ""), STR("d"));
    expect_busy(&l, WINDOW("d", ""), STR("f"));
    expect_busy(&l, WINDOW("a", "c"), STR(""));
    expect_busy(&l, WINDOW("i", ""), STR(""));
    CHECK_INT(table_smallest_busy(l.table, WINDOW("", ""), LONG_MS * NS_PER_MS, &a).len, 0);
    pass_head(&second);
    expect_busy(&l, WINDOW("d", ""), STR("h"));
    CHECK_ERR(pass_take_after(l.table, STR("e"), &list, &l.err), 0); /* keys from "e\0" on */
    expect_busy(&l, WINDOW("d", ""), str_n("e\0", 2));
    expect_busy(&l, WINDOW("ee", "g"), str_n("ee\0", 3));
    expect_busy(&l, WINDOW("", ""), STR("d"));
    pass_head(&list);
    expect_busy(&l, WINDOW("d", ""), STR("h"));
    pass_leave(&list);
    pass_leave(&first);
    pass_leave(&second);
    pass_leave(&third);
    arena_release(&a);
    lab_close(&l);
}

/* --- waiting for a newer map --- */

static void awaiter_run(void *ctx)
{
    struct taker *t = ctx;
    uint64_t number = t->number;

    table_await(t->lab->table, number, clock_mono_ns() + LONG_MS * NS_PER_MS);
    struct shard_map *m = table_map(t->lab->table);
    t->code = m->number > number ? 0 : ERR_TIMEOUT;
    map_unref(m);
}

TEST(shard_table, a_thread_that_waits_for_a_newer_map_goes_on_when_it_is_there)
{
    struct table_lab l;
    struct err err = {0};

    lab_open(&l);
    uint64_t now = clock_mono_ns();
    table_await(l.table, l.map->number + 1, now + LONG_MS * NS_PER_MS); /* another is there */
    table_await(l.table, l.map->number, now + NS_PER_MS);
    CHECK(clock_mono_ns() >= now + NS_PER_MS);
    struct taker t = {.lab = &l, .code = 1, .number = l.map->number};
    CHECK_OK(thread_start(&t.thread, "awaiter", 0, awaiter_run, &t, &err));
    lab_install(&l, NULL);
    CHECK_SOON(t.code != 1);
    CHECK_INT(t.code, 0);
    thread_join(&t.thread);
    lab_close(&l);
}
