/* Checks and fixes of buckets, run by a worker over both engines of the store. */
#include "coord/check.h"

#include "replica/tasks/tasks.h"
#include "unit/replica/sides.h"
#include "unit/store/embedded_test.h"
#include "unit/store/four.h"

#include <stdio.h>

/* Buckets "box" on storages "one" and "two". */
struct rig {
    struct four *f;
    struct sides s;
    struct storage *one, *two;
    struct replications *r;
    struct locks *locks;
    struct tasks *tasks;
    struct worker *w;
    struct checks checks;
    struct check check;
};

static struct storage *find(void *ctx, struct str name)
{
    struct rig *rig = ctx;

    if (str_eq(name, STR("one")))
        return rig->one;
    return str_eq(name, STR("two")) ? rig->two : NULL;
}

static void rig_work(struct rig *rig)
{
    struct task_handler handlers[TASKS_HANDLERS];
    struct worker_options o = {.queue = rig->checks.queue,
                               .queues = tasks_queues,
                               .queue_count = TASKS_QUEUES,
                               .handlers = handlers,
                               .handler_count = tasks_handlers(rig->tasks, handlers),
                               .threads = 4,
                               .grace_ms = 1};
    struct err err = {0};

    CHECK_OK(worker_start(&rig->w, &o, &err));
}

/* `steps` of a walk are done by one task; 0: the default. */
static void rig_tasks(struct rig *rig, uint64_t steps)
{
    struct store **d = rig->f->stores;
    struct tasks_options t = {.replications = rig->r,
                              .app = d[DB_APP],
                              .lock = d[DB_LOCK],
                              .queue = rig->checks.queue,
                              .locks = rig->locks,
                              .find = find,
                              .ctx = rig,
                              .check_steps = steps};

    tasks_free(rig->tasks);
    rig->tasks = tasks_new(&t);
}

static void rig_open(struct rig *rig, struct four *f, enum side_kind to)
{
    struct store **d = f->stores;
    struct replications_options r = {
        .app = d[DB_APP], .queue = d[DB_QUEUE], .config = d[DB_CONFIG]};
    struct locks_options l = {.store = d[DB_LOCK]};
    struct err err = {0};

    *rig = (struct rig){.f = f};
    sides_open(&rig->s, SIDE_LOCAL, to);
    rig->one = rig->s.from->storage;
    rig->two = rig->s.to->storage;
    CHECK_OK(replications_open(&rig->r, &r, &err));
    CHECK_OK(locks_open(&rig->locks, &l, &err));
    rig->checks = (struct checks){d[DB_APP], queue_new(d[DB_QUEUE])};
    rig_tasks(rig, 0);
    rig->check = (struct check){.user = STR("owner"),
                                .locations = {{STR("two"), STR("box")}, {STR("one"), STR("box")}},
                                .count = 2};
}

static void rig_close(struct rig *rig)
{
    worker_stop(rig->w);
    tasks_free(rig->tasks);
    queue_free(rig->checks.queue);
    locks_close(rig->locks);
    replications_close(rig->r);
    sides_close(&rig->s);
}

static void start(struct rig *rig)
{
    struct err err = {0};

    CHECK_OK(check_name(&rig->check, &rig->s.a, &err));
    CHECK_OK(check_start(&rig->checks, &rig->check, &err));
}

static struct check look(struct rig *rig)
{
    struct check c;
    struct err err = {0};

    CHECK_OK(check_read(&rig->checks, &rig->s.a, rig->check.id, &c, &err));
    return c;
}

/* Waits; the test's own time limit bounds it. */
static struct check await_ready(struct rig *rig)
{
    struct arena a = ARENA_INIT(0);
    struct check c = {0};
    struct err err = {0};

    do {
        arena_reset(&a);
        CHECK_OK(check_read(&rig->checks, &a, rig->check.id, &c, &err));
    } while (c.state != CHECK_READY && c.state != CHECK_FAILED);
    arena_release(&a);
    return look(rig);
}

static struct check fix(struct rig *rig, size_t source)
{
    struct err err = {0};

    CHECK_OK(check_fix(&rig->checks, rig->check.id, source, &err));
    return await_ready(rig);
}

static struct str entry(struct rig *rig, size_t i)
{
    struct store_args list = {0};
    struct err err = {0};

    CHECK_OK(check_entries(&rig->checks, &rig->s.a, rig->check.id, i, 1, &list, &err));
    CHECK_INT(list.argc, 1);
    return list.argv[0];
}

static void check_has(struct str text, const char *what)
{
    if (str_find(text, str_z(what)) < 0)
        test_fail(__FILE__, __LINE__, "'" STR_FMT "' has no %s", STR_ARG(text), what);
}

static void put_some(struct rig *rig)
{
    struct sides *s = &rig->s;

    lab_put(s->from, &s->a, "a", STR("same"));
    lab_put(s->to, &s->a, "a", STR("same"));
    lab_put(s->from, &s->a, "b:%/", STR(""));
    lab_put(s->to, &s->a, "c", STR("only there"));
    lab_put(s->from, &s->a, "d", STR("here"));
    lab_put(s->to, &s->a, "d", STR("else"));
}

TEST_FOUR(check, differences_are_found_fixed_and_looked_for_again)
{
    struct rig rig;

    rig_open(&rig, f, SIDE_LOCAL);
    put_some(&rig);
    rig_work(&rig);
    start(&rig);
    CHECK_STR(rig.check.locations[0].storage, STR("one"));
    struct check c = await_ready(&rig);
    CHECK_INT(c.state, CHECK_READY);
    CHECK_INT(c.keys, 4);
    CHECK_INT(c.differences, 3);
    CHECK_INT(c.kept, 3);
    CHECK_INT(c.source, -1);
    CHECK(!c.versioned && c.done_ms && c.created_ms);
    check_has(entry(&rig, 0), "\"object\":\"b:%/\",\"kind\":\"missing\"");
    check_has(entry(&rig, 0), ",null]");
    check_has(entry(&rig, 2), "\"kind\":\"etag\"");
    c = fix(&rig, 0);
    CHECK_INT(c.differences, 0);
    CHECK_INT(c.fix_queued, 3);
    CHECK_INT(c.fix_done, 3);
    CHECK_INT(c.fix_failed, 0);
    CHECK(c.fixed_ms > 0);
    lab_expect(rig.s.to, "b:%/", STR_EMPTY, STR(""));
    lab_expect(rig.s.to, "c", STR_EMPTY, (struct str){0});
    lab_expect(rig.s.to, "d", STR_EMPTY, STR("here"));
    rig_close(&rig);
}

TEST_FOUR(check, the_other_side_may_be_the_source)
{
    struct rig rig;

    rig_open(&rig, f, SIDE_REMOTE);
    put_some(&rig);
    rig_work(&rig);
    start(&rig);
    CHECK_INT(await_ready(&rig).differences, 3);
    CHECK_INT(fix(&rig, 1).differences, 0);
    lab_expect(rig.s.from, "c", STR_EMPTY, STR("only there"));
    lab_expect(rig.s.from, "d", STR_EMPTY, STR("else"));
    lab_expect(rig.s.from, "b:%/", STR_EMPTY, (struct str){0});
    rig_close(&rig);
}

TEST_FOUR(check, versions_are_compared_and_replaced)
{
    struct rig rig;
    struct err err = {0};

    rig_open(&rig, f, SIDE_LOCAL);
    CHECK_OK(rig.s.from->ops->set_versions(rig.s.from, true, &err));
    CHECK_OK(rig.s.to->ops->set_versions(rig.s.to, true, &err));
    lab_put(rig.s.from, &rig.s.a, "k", STR("1"));
    lab_put(rig.s.from, &rig.s.a, "k", STR("2"));
    lab_put(rig.s.to, &rig.s.a, "k", STR("x"));
    lab_put(rig.s.to, &rig.s.a, "k", STR("2"));
    lab_put(rig.s.to, &rig.s.a, "gone", STR("1"));
    rig_work(&rig);
    start(&rig);
    struct check c = await_ready(&rig);
    CHECK(c.versioned);
    CHECK_INT(c.differences, 2);
    check_has(entry(&rig, 1), "\"version_index\":0");
    c = fix(&rig, 0);
    CHECK_INT(c.differences, 0);
    CHECK_INT(c.fix_queued, 2);
    lab_expect_list(rig.s.to, &lab_everything, true, "k* k");
    rig.check.last_only = true;
    start(&rig);
    CHECK(!await_ready(&rig).versioned);
    rig_close(&rig);
}

TEST_FOUR(check, a_check_goes_over_many_pages)
{
    enum { KEYS = 3200 };
    struct rig rig;
    char key[32];

    rig_open(&rig, f, SIDE_LOCAL);
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof(key), "k%05d", i);
        lab_put(rig.s.from, &rig.s.a, key, STR("x"));
    }
    rig_work(&rig);
    start(&rig);
    struct check c = await_ready(&rig);
    CHECK_INT(c.keys, KEYS);
    CHECK_INT(c.differences, KEYS);
    CHECK_INT(c.kept, KEYS);
    check_has(entry(&rig, KEYS - 1), "k03199");
    rig_close(&rig);
}

/* --- pieces: D9 --- */

static struct check_page page_of(const struct check *c, const char *after, const char *last)
{
    static const struct str entries[] = {{"1", 1}, {"2", 1}};

    return (struct check_page){.check = c,
                               .after = str_z(after),
                               .last = str_z(last),
                               .keys = 10,
                               .differences = 5,
                               .entries = entries,
                               .count = 2};
}

TEST_FOUR(check, a_walk_goes_from_task_to_task)
{
    enum { KEYS = 1100 };
    struct rig rig;
    char key[32];

    rig_open(&rig, f, SIDE_LOCAL);
    rig_tasks(&rig, 1);
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof(key), "k%05d", i);
        lab_put(rig.s.from, &rig.s.a, key, STR("x"));
        if (i % 1000 != 7)
            lab_put(rig.s.to, &rig.s.a, key, STR("x"));
    }
    rig_work(&rig);
    start(&rig);
    struct check c = await_ready(&rig);
    CHECK_INT(c.state, CHECK_READY);
    CHECK_INT(c.keys, KEYS);
    CHECK_INT(c.differences, 2);
    CHECK_INT(c.total, KEYS);
    CHECK_INT(look(&rig).piece, 1);
    check_has(entry(&rig, 1), "k01007");
    c = fix(&rig, 0);
    CHECK_INT(c.fix_done, 2);
    CHECK_INT(c.differences, 0);
    CHECK_INT(c.keys, KEYS);
    CHECK_INT(look(&rig).piece, 1);
    rig_close(&rig);
}

static struct task take_walk(struct rig *rig)
{
    struct str queue = CHECK_QUEUE;
    struct task t = {0};
    struct err err = {0};

    CHECK_OK(queue_take(rig->checks.queue, &rig->s.a, &queue, 1, &t, &err));
    return t;
}

/* The worker dies before it has ended its task, and the next piece is queued already: the task that
 * runs again changes nothing. */
TEST_FOUR(check, a_piece_that_is_over_changes_nothing_and_is_not_missed)
{
    struct rig rig;
    struct err err = {0};

    rig_open(&rig, f, SIDE_LOCAL);
    start(&rig);
    struct task walk = take_walk(&rig);
    struct check c = look(&rig), old = c;
    struct check_page first = page_of(&c, "", "m"), again = page_of(&old, "m", "x");
    first.hand_over = true;
    CHECK_OK(check_page(&rig.checks, &first, &err));
    CHECK_ERR(check_page(&rig.checks, &again, &err), ERR_NOT_FOUND);
    CHECK_ERR(check_note(&rig.checks, &old, STR("late"), true, &err), ERR_NOT_FOUND);
    struct task next = take_walk(&rig);
    CHECK(!str_eq(next.id, walk.id));
    CHECK_INT(next.retried, 0);
    CHECK_OK(queue_archive(rig.checks.queue, &walk, STR("its worker died"), &err));
    CHECK_INT(look(&rig).state, CHECK_CHECKING);
    CHECK_INT(look(&rig).piece, 1);
    CHECK_INT(look(&rig).keys, 10);
    CHECK_OK(queue_archive(rig.checks.queue, &next, STR("its worker died"), &err));
    CHECK_INT(look(&rig).state, CHECK_FAILED); /* D8 */
    CHECK_OK(check_restart(&rig.checks, rig.check.id, &err));
    CHECK_INT(look(&rig).piece, 0);
    rig_close(&rig);
}

/* A worker is killed in a piece: what was done before is not done again. */
TEST_FOUR(check, a_worker_that_dies_costs_its_piece_alone)
{
    struct rig rig;
    struct err err = {0};

    rig_open(&rig, f, SIDE_LOCAL);
    put_some(&rig);
    start(&rig);
    struct task walk = take_walk(&rig);
    struct check c = look(&rig);
    struct check_page first = page_of(&c, "", "c");
    first.hand_over = true;
    CHECK_OK(check_page(&rig.checks, &first, &err));
    CHECK_OK(queue_done(rig.checks.queue, &walk, &err));
    struct str cursor = arena_fmt(&rig.s.a, "w:ccv:l:" STR_FMT, STR_ARG(rig.check.id));
    struct reply *ttl;
    CHECK_OK(store_call(f->stores[DB_APP], &rig.s.a, &ttl, &err, STR("TTL"), cursor));
    CHECK(ttl->integer > 29 * 86400); /* long enough for the next worker, whenever it comes */
    rig_work(&rig);
    c = await_ready(&rig);
    CHECK_INT(c.keys, 10 + 1);
    CHECK_INT(c.differences, 5 + 1);
    check_has(entry(&rig, 2), "\"object\":\"d\"");
    rig_close(&rig);
}

/* --- one page after the other, by hand --- */

TEST_FOUR(check, a_page_counts_once_and_for_its_round)
{
    struct rig rig;
    struct err err = {0};

    rig_open(&rig, f, SIDE_LOCAL);
    start(&rig);
    struct check c = look(&rig);
    struct check_page first = page_of(&c, "", "m"), last = page_of(&c, "m", "");
    CHECK_OK(check_page(&rig.checks, &first, &err));
    CHECK_ERR(check_page(&rig.checks, &first, &err), ERR_CONFLICT);
    CHECK_ERR(check_start(&rig.checks, &rig.check, &err), ERR_EXISTS);
    CHECK_ERR(check_fix(&rig.checks, rig.check.id, 0, &err), ERR_EXISTS);
    CHECK_INT(look(&rig).keys, 10);
    CHECK_OK(check_page(&rig.checks, &last, &err));
    CHECK_ERR(check_page(&rig.checks, &last, &err), ERR_NOT_FOUND);
    CHECK_INT(look(&rig).state, CHECK_READY);
    CHECK_INT(look(&rig).differences, 10);
    CHECK_INT(look(&rig).kept, 4);
    /* another round: results of the old one are ignored */
    CHECK_OK(check_restart(&rig.checks, rig.check.id, &err));
    CHECK_ERR(check_page(&rig.checks, &first, &err), ERR_NOT_FOUND);
    CHECK_ERR(check_note(&rig.checks, &c, STR("x"), true, &err), ERR_NOT_FOUND);
    c = look(&rig);
    CHECK_INT(c.kept, 0);
    CHECK_OK(check_note(&rig.checks, &c, STR("it burns"), true, &err));
    CHECK_INT(look(&rig).state, CHECK_FAILED);
    CHECK_STR(look(&rig).error, STR("it burns"));
    rig_close(&rig);
}

TEST_FOUR(check, a_report_keeps_so_many_and_counts_the_rest)
{
    struct rig rig;
    static struct str entries[CHECK_KEPT - 1];
    struct err err = {0};

    rig_open(&rig, f, SIDE_LOCAL);
    start(&rig);
    struct check c = look(&rig);
    for (size_t i = 0; i < ARRAY_SIZE(entries); i++)
        entries[i] = STR("{}");
    struct check_page p = {.check = &c,
                           .last = STR("m"),
                           .differences = 20000,
                           .entries = entries,
                           .count = ARRAY_SIZE(entries)};
    CHECK_OK(check_page(&rig.checks, &p, &err));
    p.after = STR("m");
    p.last = STR_EMPTY;
    CHECK_OK(check_page(&rig.checks, &p, &err));
    c = look(&rig);
    CHECK_INT(c.differences, 40000);
    CHECK_INT(c.kept, CHECK_KEPT);
    rig_close(&rig);
}

TEST_FOUR(check, a_fix_ends_with_its_last_object)
{
    struct rig rig;
    struct err err = {0};

    rig_open(&rig, f, SIDE_LOCAL);
    start(&rig);
    struct check c = look(&rig);
    struct check_page all = page_of(&c, "", "");
    CHECK_OK(check_page(&rig.checks, &all, &err));
    CHECK_OK(check_fix(&rig.checks, rig.check.id, 1, &err));
    c = look(&rig);
    CHECK_INT(c.source, 1);
    struct check_fix_item items[] = {
        {STR("0:a"), {.type = STR("t"), .id = STR("i1"), .queue = CHECK_QUEUE}},
        {STR("0:b"), {.type = STR("t"), .id = STR("i2"), .queue = CHECK_QUEUE}}};
    struct check_fix_page p = {.check = &c, .last = STR("b"), .items = items, .count = 2};
    CHECK_OK(check_fix_page(&rig.checks, &p, &err));
    CHECK_OK(check_fixed(&rig.checks, &c, STR("0:a"), STR_EMPTY, &err));
    CHECK_OK(check_fixed(&rig.checks, &c, STR("0:a"), STR_EMPTY, &err));
    CHECK_INT(look(&rig).fix_done, 1);
    CHECK_OK(check_fixed(&rig.checks, &c, STR("0:b"), STR("no"), &err));
    CHECK_INT(look(&rig).state, CHECK_FIXING); /* the walk goes on */
    p = (struct check_fix_page){.check = &c, .after = STR("b")};
    CHECK_OK(check_fix_page(&rig.checks, &p, &err));
    CHECK_INT(look(&rig).state, CHECK_CHECKING);
    CHECK_INT(look(&rig).fix_failed, 1);
    CHECK_ERR(check_fixed(&rig.checks, &c, STR("0:b"), STR_EMPTY, &err), ERR_NOT_FOUND);
    rig_close(&rig);
}

/* A worker takes the next task and dies on the last try: its lease ends. */
static struct str die(struct rig *rig)
{
    struct str queue = CHECK_QUEUE;
    struct store_args names = {&queue, 1};
    struct task t;
    struct err err = {0};

    for (int tries = 0; tries <= CHECK_TRIES; tries++) {
        size_t moved = 1;
        CHECK_OK(queue_take(rig->checks.queue, &rig->s.a, &queue, 1, &t, &err));
        CHECK_INT(t.retried, tries);
        struct str command = arena_fmt(
            &rig->s.a, "ZADD asynq:{consistency_check}:lease XX 1 " STR_FMT, STR_ARG(t.id));
        check_reply(rig->f->stores[DB_QUEUE], command.p, "0");
        CHECK_OK(queue_recover(rig->checks.queue, &names, &moved, &err));
        CHECK_INT(moved, 1);
        if (tries < CHECK_TRIES)
            CHECK_OK(queue_run_now(rig->checks.queue, queue, t.id, &err));
    }
    return t.id;
}

/* D8 */
TEST_FOUR(check, a_walk_whose_workers_all_died_has_failed_and_begins_again)
{
    struct rig rig;
    struct err err = {0};

    rig_open(&rig, f, SIDE_LOCAL);
    put_some(&rig);
    start(&rig);
    struct str id = die(&rig);
    struct check c = look(&rig);
    CHECK_INT(c.state, CHECK_FAILED);
    check_has(c.error, "given up after the last try");
    CHECK_OK(queue_delete(rig.checks.queue, CHECK_QUEUE, id, &err));
    CHECK_OK(check_fix(&rig.checks, rig.check.id, 0, &err));
    die(&rig);
    c = look(&rig);
    CHECK_INT(c.state, CHECK_FAILED);
    check_has(c.error, "given up after the last try");
    CHECK_OK(check_restart(&rig.checks, rig.check.id, &err));
    rig_work(&rig);
    c = await_ready(&rig);
    CHECK_INT(c.state, CHECK_READY);
    CHECK_INT(c.differences, 3);
    CHECK_INT(fix(&rig, 0).differences, 0);
    rig_close(&rig);
}

TEST_FOUR(check, what_a_fix_can_not_end_counts_as_failed_and_the_check_follows)
{
    struct rig rig;
    struct err err = {0};

    rig_open(&rig, f, SIDE_LOCAL);
    start(&rig);
    struct check c = look(&rig);
    struct check_page all = page_of(&c, "", "");
    CHECK_OK(check_page(&rig.checks, &all, &err));
    struct task walk;
    struct str queue = CHECK_QUEUE;
    CHECK_OK(queue_take(rig.checks.queue, &rig.s.a, &queue, 1, &walk, &err));
    CHECK_OK(queue_done(rig.checks.queue, &walk, &err));
    CHECK_OK(check_fix(&rig.checks, rig.check.id, 1, &err));
    CHECK_OK(queue_take(rig.checks.queue, &rig.s.a, &queue, 1, &walk, &err));
    c = look(&rig);
    struct check_fix_item items[] = {
        {STR("0:a b\n:"),
         {.type = STR("t"), .id = STR("i1"), .queue = queue, .retry_max = CHECK_TRIES}},
        {STR("0:b"), {.type = STR("t"), .id = STR("i2"), .queue = queue}}};
    struct check_fix_page p = {.check = &c, .items = items, .count = 2};
    CHECK_OK(check_fix_page(&rig.checks, &p, &err));
    CHECK_OK(queue_done(rig.checks.queue, &walk, &err));
    CHECK_OK(queue_delete(rig.checks.queue, queue, STR("i2"), &err));
    c = look(&rig);
    CHECK_INT(c.fix_failed, 1);
    CHECK_STR(c.error, STR("b: its task was deleted"));
    CHECK_INT(c.state, CHECK_FIXING);
    CHECK_STR(die(&rig), STR("i1"));
    c = look(&rig);
    CHECK_INT(c.fix_failed, 2);
    CHECK_INT(c.fix_queued, 2);
    CHECK_INT(c.state, CHECK_CHECKING); /* by the task that was kept for it */
    rig_work(&rig);
    CHECK_INT(await_ready(&rig).state, CHECK_READY);
    rig_close(&rig);
}

TEST_FOUR(check, checks_are_listed_and_taken_away)
{
    struct rig rig;
    struct check *list;
    size_t count = 0;
    struct reply *reply;
    struct err err = {0};

    rig_open(&rig, f, SIDE_LOCAL);
    start(&rig);
    rig.check.locations[1].bucket = STR("with:colon%");
    struct str first = rig.check.id;
    start(&rig);
    CHECK(!str_eq(first, rig.check.id));
    CHECK_STR(look(&rig).locations[1].bucket, STR("with:colon%"));
    CHECK_OK(check_list(&rig.checks, &rig.s.a, &list, &count, &err));
    CHECK_INT(count, 2);
    CHECK_OK(check_remove(&rig.checks, first, &err));
    CHECK_ERR(check_remove(&rig.checks, first, &err), ERR_NOT_FOUND);
    CHECK_ERR(check_restart(&rig.checks, first, &err), ERR_NOT_FOUND);
    CHECK_OK(check_remove(&rig.checks, rig.check.id, &err));
    CHECK_OK(store_call(f->stores[DB_APP], &rig.s.a, &reply, &err, STR("DBSIZE")));
    CHECK_INT(reply->integer, 0);
    /* the task of a check that is gone does nothing */
    rig_work(&rig);
    struct queue_page p = {CHECK_QUEUE, TASK_PENDING, 0, 10};
    struct task_info *tasks;
    struct arena a = ARENA_INIT(0);
    do {
        arena_reset(&a);
        CHECK_OK(queue_tasks(rig.checks.queue, &a, &p, &tasks, &count, &err));
    } while (count);
    arena_release(&a);
    rig_close(&rig);
}

TEST_FOUR(check, a_location_that_is_not_there_fails_it)
{
    struct rig rig;
    struct err err = {0};

    rig_open(&rig, f, SIDE_LOCAL);
    rig.check.locations[1].bucket = STR("nothing");
    rig_work(&rig);
    start(&rig);
    struct check c = await_ready(&rig);
    CHECK_INT(c.state, CHECK_FAILED);
    check_has(c.error, "there is no bucket nothing on storage one");
    rig.check.count = 1;
    CHECK_ERR(check_name(&rig.check, &rig.s.a, &err), ERR_INVALID);
    rig.check.count = 2;
    rig.check.locations[0] = rig.check.locations[1];
    CHECK_ERR(check_name(&rig.check, &rig.s.a, &err), ERR_INVALID);
    rig_close(&rig);
}

/* What a fix writes to the source of a replication goes on to its destinations. */
TEST_FOUR(check, a_fixed_source_tells_its_destinations)
{
    struct rig rig;
    struct replication_new n = {
        .id = {STR("owner"), STR("box"), STR("one"), STR("two"), STR("elsewhere")}};
    struct arena a = ARENA_INIT(0);
    struct replication_status s = {0};
    struct err err = {0};

    rig_open(&rig, f, SIDE_LOCAL);
    CHECK_OK(replication_add(rig.r, &n, STR("one"), &err));
    lab_put(rig.s.to, &rig.s.a, "k", STR("x"));
    rig_work(&rig);
    start(&rig);
    await_ready(&rig);
    CHECK_INT(fix(&rig, 1).differences, 0);
    lab_expect(rig.s.from, "k", STR_EMPTY, STR("x"));
    do {
        arena_reset(&a);
        CHECK_OK(replication_read(rig.r, &a, &n.id, &s, &err));
    } while (s.events == 0 || s.events_done < s.events);
    struct bucket *elsewhere = NULL;
    CHECK_OK(rig.two->ops->open_bucket(&elsewhere, rig.two, STR("owner"), STR("elsewhere"), &err));
    lab_expect(elsewhere, "k", STR_EMPTY, STR("x"));
    elsewhere->ops->unref(elsewhere);
    arena_release(&a);
    rig_close(&rig);
}

/* The ETags are equal and the bytes differ: only the contents tell. */
TEST_FOUR(check, damaged_bytes_are_found_and_replaced_by_content)
{
    struct rig rig;
    struct put_options o = {0};
    struct put_result out;
    struct str_reader r;
    struct err err = {0};

    rig_open(&rig, f, SIDE_LOCAL);
    lab_put(rig.s.from, &rig.s.a, "k", STR("good"));
    o.etag = sides_head(&rig.s, rig.s.from, "k").etag;
    str_reader_init(&r, STR("evil"));
    CHECK_OK(rig.s.to->ops->put(rig.s.to, &rig.s.a, STR("k"), &r.reader, 4, &o, &out, &err));
    rig_work(&rig);
    start(&rig);
    CHECK_INT(await_ready(&rig).differences, 0);
    rig.check.contents = true;
    start(&rig);
    struct check c = await_ready(&rig);
    CHECK_INT(c.differences, 1);
    CHECK_INT(c.bytes, 8);
    check_has(entry(&rig, 0), "\"kind\":\"content\"");
    check_has(entry(&rig, 0), "\"sha256\":");
    CHECK_INT(fix(&rig, 0).differences, 0);
    lab_expect(rig.s.to, "k", STR_EMPTY, STR("good"));
    rig_close(&rig);
}
