/* Writes to remote storages whose intents are entries of the journal (docs/replication.md, "The
 * journal"). */
#include "os/thread.h"
#include "replica/tap/tap_int.h"
#include "replica/tap/unrecorded.h"
#include "unit/replica/tap_lab.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

static struct intended intended(struct tap_lab *l, const struct str *key)
{
    return (struct intended){.storage = &l->far,
                             .bucket = STR("box"),
                             .user = STR("alice"),
                             .changes = THINGS_OF_OBJECT,
                             .keys = key,
                             .key_count = 1};
}

static void begin(struct tap_lab *l, const char *name, struct capture *out)
{
    const struct change_capture *c = taps_capture(l->taps);
    struct str key = str_z(name);
    struct intended i = intended(l, &key);
    struct err err = {0};

    CHECK_OK(c->begin(c->ctx, &i, out, &err));
}

static void end(struct tap_lab *l, struct capture *c, enum outcome outcome)
{
    struct err err = {0};

    CHECK_OK(taps_capture(l->taps)->end(taps_capture(l->taps)->ctx, c, outcome, &err));
}

static void await_recorded(struct tap_lab *l)
{
    struct taps_stats stats;

    do
        taps_stats(l->taps, &stats);
    while (stats.ended);
}

static void count_one(void *ctx, int slot, const struct journal_entry *e)
{
    (void)slot, (void)e;
    ++*(size_t *)ctx;
}

static size_t entries(struct tap_lab *l)
{
    size_t count = 0;

    journal_each(l->taps->journal, count_one, &count);
    return count;
}

/* Intents in the queue: those that are postponed, and those that are left to a worker. */
static size_t intents(struct tap_lab *l)
{
    return tap_lab_tasks(l, "intents", TASK_SCHEDULED, "intent") +
           tap_lab_tasks(l, "intents", TASK_PENDING, "intent");
}

static int64_t version(struct tap_lab *l, const char *key)
{
    return tap_lab_version(l, THING_OBJECT, "box", key, "far");
}

static void check_safe(struct tap_lab *l, const char *key)
{
    CHECK(version(l, key) == 1 || intents(l) > 0);
}

static void open_lab(struct tap_lab *l)
{
    tap_lab_open(l);
    tap_lab_with_journal(l);
    tap_lab_replicate(l, "far", "box");
}

/* While it is broken nothing can be recorded, and no task added. What is tried at the moment of the
 * repair may get a task. */
static void break_store(struct tap_lab *l, bool broken)
{
    struct reply *reply;
    struct err err = {0};

    tap_lab_fault(broken ? FAULT_REFUSE : FAULT_NONE);
    CHECK_OK(store_call(l->stores[1], &l->a, &reply, &err, STR("DEL"), STR("asynq:queues")));
    if (broken)
        CHECK_OK(store_call(l->stores[1], &l->a, &reply, &err, STR("SET"), STR("asynq:queues"),
                            STR("no set")));
}

TEST(note, is_there_before_the_change_and_gone_with_its_record)
{
    struct taps_stats stats;
    struct tap_lab l;
    struct capture c;

    open_lab(&l);
    begin(&l, "k", &c);
    CHECK_INT(entries(&l), 1);
    CHECK_INT(intents(&l), 0);
    taps_stats(l.taps, &stats);
    CHECK_INT(stats.open, 1);
    end(&l, &c, OUTCOME_DONE);
    await_recorded(&l);
    CHECK_INT(entries(&l), 0);
    CHECK_INT(version(&l, "k"), 1);
    begin(&l, "no", &c);
    end(&l, &c, OUTCOME_REFUSED);
    await_recorded(&l);
    CHECK_INT(entries(&l), 0);
    CHECK_INT(version(&l, "no"), 0);
    taps_stats(l.taps, &stats);
    CHECK_INT(stats.open, 0);
    tap_lab_close(&l);
}

/* R4: it is recorded, and looked at again. */
TEST(note, of_an_unknown_outcome_becomes_a_task_that_stays)
{
    struct tap_lab l;
    struct capture c;

    open_lab(&l);
    begin(&l, "k", &c);
    end(&l, &c, OUTCOME_UNKNOWN);
    await_recorded(&l);
    CHECK_INT(entries(&l), 0);
    CHECK_INT(intents(&l), 1);
    CHECK_INT(version(&l, "k"), 1);
    tap_lab_close(&l);
}

/* Also if the entry is too long for a slot. */
TEST(note, that_finds_no_room_is_a_task)
{
    static char key[3000];
    static struct capture all[1024];
    struct tap_lab l;
    struct capture c;

    open_lab(&l);
    memset(key, 'k', sizeof(key) - 1);
    begin(&l, key, &c);
    CHECK_INT(intents(&l), 1);
    end(&l, &c, OUTCOME_DONE);
    await_recorded(&l);
    CHECK_INT(intents(&l), 0);
    CHECK_INT(version(&l, key), 1);
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        begin(&l, "k", &all[i]);
    CHECK_INT(entries(&l), ARRAY_SIZE(all));
    begin(&l, "last", &c);
    CHECK_INT(intents(&l), 1);
    end(&l, &c, OUTCOME_DONE);
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        end(&l, &all[i], OUTCOME_DONE);
    await_recorded(&l);
    CHECK_INT(entries(&l), 0);
    CHECK_INT(intents(&l), 0);
    CHECK_INT(version(&l, "last"), 1);
    tap_lab_close(&l);
}

static void leave_entries(struct tap_lab *l, int count)
{
    struct journal *j = NULL;
    bool kept = false;
    char name[32];
    struct err err = {0};

    CHECK_OK(journal_open(&j, tap_lab_journal(), str_z(l->boot), &kept, &err));
    CHECK(kept);
    journal_begin(j, str_z(l->boot));
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "%d", i);
        struct journal_entry e = {STR("far"), i % 4 ? STR("box") : STR("other"), str_z(name),
                                  THINGS_OF_OBJECT};
        CHECK(journal_add(j, &e) >= 0);
    }
    journal_close(j);
}

/* R4: a process was killed, and nobody knows at which moment. */
TEST(note, left_by_another_process_is_recorded_and_looked_at_again)
{
    struct tap_lab l;
    bool open = false;
    struct err err = {0};

    open_lab(&l);
    tap_lab_taps_close(&l);
    leave_entries(&l, 300);
    tap_lab_taps_open(&l);
    await_recorded(&l);
    CHECK_INT(entries(&l), 0);
    CHECK_INT(intents(&l), 300);
    CHECK_INT(version(&l, "1"), 1);
    CHECK_INT(version(&l, "299"), 1);
    CHECK_INT(version(&l, "296"), 0); /* of a bucket that is not replicated */
    CHECK_OK(taps_intents_open(l.queue, STR("far"), STR("box"), 1, &open, &err));
    CHECK(open); /* a switch must see it, whenever it was planned (S4) */
    tap_lab_close(&l);
}

/* A full disk is no reason not to start. */
TEST(note, left_by_another_process_holds_the_first_epoch_back_until_it_is_recorded)
{
    struct tap_lab l;

    open_lab(&l);
    tap_lab_taps_close(&l);
    leave_entries(&l, 2);
    break_store(&l, true);
    tap_lab_taps_open(&l);
    CHECK_INT(taps_epoch(l.taps), -1);
    CHECK_INT(entries(&l), 2);
    break_store(&l, false);
    tap_lab_await_epoch(&l);
    CHECK_INT(entries(&l), 0);
    CHECK_INT(intents(&l), 2);
    tap_lab_close(&l);
}

/* No other epoch is reached either, while an answered change is not recorded. */
TEST(note, that_is_not_recorded_holds_epochs_back)
{
    struct replication_id id = {STR("alice"), STR("box"), STR("far"), STR("other"), STR_EMPTY};
    struct tap_lab l;
    struct capture c;
    struct err err = {0};

    open_lab(&l);
    begin(&l, "k", &c);
    break_store(&l, true);
    end(&l, &c, OUTCOME_DONE);
    while (!atomic_load(&l.taps->stuck))
        sched_yield();
    int64_t before = taps_epoch(l.taps);
    CHECK_OK(replication_pause(l.replications, &id, true, &err));
    for (unsigned phase = atomic_load(&l.taps->phase); atomic_load(&l.taps->phase) == phase;)
        sched_yield();
    size_t attempts = tap_lab_records();
    while (tap_lab_records() < attempts + 2) /* some ticks of the keeper */
        sched_yield();
    CHECK_INT(taps_epoch(l.taps), before);
    break_store(&l, false);
    tap_lab_await_epoch(&l);
    CHECK(taps_epoch(l.taps) > before);
    tap_lab_close(&l);
}

TEST(note, that_cannot_be_recorded_becomes_a_task)
{
    struct tap_lab l;
    struct capture c;

    open_lab(&l);
    begin(&l, "k", &c);
    tap_lab_fault(FAULT_REFUSE);
    end(&l, &c, OUTCOME_DONE);
    await_recorded(&l);
    CHECK_INT(entries(&l), 0);
    CHECK_INT(intents(&l), 1);
    begin(&l, "no", &c);
    end(&l, &c, OUTCOME_REFUSED);
    await_recorded(&l);
    CHECK_INT(entries(&l), 0);
    CHECK_INT(intents(&l), 1);
    tap_lab_close(&l);
}

/* R5: other writes are refused meanwhile. */
TEST(note, that_can_have_no_task_either_is_tried_until_it_can)
{
    const struct change_capture *capture;
    struct str key = STR("other");
    struct tap_lab l;
    struct capture c, other;
    struct err err = {0};

    open_lab(&l);
    capture = taps_capture(l.taps);
    struct intended i = intended(&l, &key);
    begin(&l, "k", &c);
    break_store(&l, true);
    end(&l, &c, OUTCOME_DONE);
    while (!atomic_load(&l.taps->stuck))
        sched_yield();
    CHECK_INT(entries(&l), 1);
    CHECK_ERR(capture->begin(capture->ctx, &i, &other, &err), ERR_STORE);
    CHECK_INT(entries(&l), 1);
    break_store(&l, false);
    await_recorded(&l);
    CHECK_INT(entries(&l), 0);
    check_safe(&l, "k");
    begin(&l, "other", &c);
    CHECK_INT(entries(&l), 1);
    end(&l, &c, OUTCOME_DONE);
    tap_lab_close(&l);
}

TEST(note, that_the_store_did_not_take_at_the_end_is_found_by_the_next_start)
{
    struct reply *reply;
    struct tap_lab l;
    struct capture c;
    struct err err = {0};

    open_lab(&l);
    begin(&l, "k", &c);
    break_store(&l, true);
    end(&l, &c, OUTCOME_DONE);
    tap_lab_taps_close(&l);
    CHECK_OK(store_call(l.stores[1], &l.a, &reply, &err, STR("HLEN"), STR("w:marks")));
    CHECK_INT(reply->integer, 1); /* the machine may go down now */
    CHECK_INT(version(&l, "k"), 0);
    break_store(&l, false);
    tap_lab_taps_open(&l);
    await_recorded(&l);
    CHECK_INT(version(&l, "k"), 1);
    tap_lab_close(&l);
}

/* For the answer to "in sync". */
TEST(note, that_is_not_recorded_is_told_of)
{
    struct unrecorded u;
    struct tap_lab l;
    struct capture c;
    struct err err = {0};

    open_lab(&l);
    struct unrecorded_options o = {
        .taps = l.taps, .routes = l.routes, .queue = l.queue, .config = l.stores[3]};
    begin(&l, "k", &c);
    break_store(&l, true);
    end(&l, &c, OUTCOME_DONE);
    CHECK_OK(unrecorded_read(&u, &o, &err));
    CHECK(map_get(&u.announced, STR("far\nbox")));
    unrecorded_release(&u);
    break_store(&l, false);
    await_recorded(&l);
    check_safe(&l, "k");
    CHECK_OK(unrecorded_read(&u, &o, &err));
    CHECK(!map_get(&u.announced, STR("far\nbox")) == (intents(&l) == 0));
    unrecorded_release(&u);
    tap_lab_close(&l);
}

/* --- marks that come and go --- */

enum { PUTTERS = 2, PUTS = 200 };

struct putter {
    struct thread thread;
    struct tap_lab *l;
    _Atomic(bool) *stop;
    _Atomic(size_t) *removed; /* how often the mark was removed */
    unsigned index;
};

static bool has_mark(struct tap_lab *l)
{
    struct arena a = ARENA_INIT(0);
    struct reply *reply;
    struct err err = {0};

    CHECK_OK(
        store_call(l->stores[1], &a, &reply, &err, STR("HEXISTS"), STR("w:marks"), STR("far:box")));
    bool has = reply->integer;
    arena_release(&a);
    return has;
}

static void put_main(void *ctx)
{
    struct putter *p = ctx;
    struct capture c;
    struct err err = {0};
    char name[32];

    for (unsigned i = 0; i < PUTS; i++) {
        snprintf(name, sizeof(name), "%u/%u", p->index, i);
        begin(p->l, name, &c);
        CHECK(has_mark(p->l));
        end(p->l, &c, OUTCOME_DONE);
        CHECK_OK(taps_await(p->l->taps, NULL, UINT64_MAX, &err));
        for (int n = 0; n < 200 && has_mark(p->l);
             n++) /* until it is removed; the other thread may hold it */
            sched_yield();
    }
}

static void clear_main(void *ctx)
{
    struct putter *p = ctx;
    struct err err = {0};

    while (!atomic_load(p->stop)) {
        bool had = has_mark(p->l);
        int code = marks_clear_idle(p->l->taps, 0, &err);
        CHECK(code == 0 || code == ERR_BUSY);
        atomic_fetch_add(p->removed, had && code == 0);
    }
}

/* R6: the mark is on disk as long as the journal has an entry of the bucket. */
TEST(note, has_the_mark_of_its_bucket_whoever_takes_marks_away)
{
    struct putter all[PUTTERS], clearer;
    struct tap_lab l;
    _Atomic(bool) stop = false;
    _Atomic(size_t) removed = 0;
    struct err err = {0};
    char name[32];

    open_lab(&l);
    clearer = (struct putter){.l = &l, .stop = &stop, .removed = &removed};
    CHECK_OK(thread_start(&clearer.thread, "clear", 0, clear_main, &clearer, &err));
    for (unsigned i = 0; i < PUTTERS; i++) {
        all[i] = (struct putter){.l = &l, .index = i};
        CHECK_OK(thread_start(&all[i].thread, "put", 0, put_main, &all[i], &err));
    }
    for (unsigned i = 0; i < PUTTERS; i++)
        thread_join(&all[i].thread);
    atomic_store(&stop, true);
    thread_join(&clearer.thread);
    CHECK(removed > 10);
    for (unsigned i = 0; i < PUTTERS; i++) {
        snprintf(name, sizeof(name), "%u/%u", i, PUTS - 1);
        CHECK_INT(version(&l, name), 1);
    }
    CHECK_OK(marks_clear_idle(l.taps, 0, &err));
    CHECK(!has_mark(&l));
    tap_lab_close(&l);
}
