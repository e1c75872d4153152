/* Writes to remote storages whose intents are entries of the journal (docs/replication.md, "The
 * journal"). */
#include "os/thread.h"
#include "replica/tap_int.h"
#include "replica/unrecorded.h"
#include "unit/replica/tap_lab.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

static struct intended intended(struct tap_lab *l, const struct str *key)
{
    return (struct intended){.storage = &l->far,
                             .bucket = STR("box"),
                             .user = STR("alice"),
                             .changes = CHANGES_NEW_OBJECT,
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

static size_t intents(struct tap_lab *l)
{
    return tap_lab_tasks(l, "intents", TASK_SCHEDULED, "intent");
}

static int64_t version(struct tap_lab *l, const char *key)
{
    return tap_lab_version(l, THING_OBJECT, "box", key, "far");
}

static void open_lab(struct tap_lab *l)
{
    tap_lab_open(l);
    tap_lab_with_journal(l);
    tap_lab_replicate(l, "far", "box");
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

/* Also what is too long for an entry. */
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
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "%d", i);
        struct journal_entry e = {STR("far"), i % 4 ? STR("box") : STR("other"), str_z(name),
                                  CHANGES_NEW_OBJECT};
        CHECK(journal_add(j, &e) >= 0);
    }
    journal_close(j);
}

/* R4: by a process that was killed, who knows at which moment. */
TEST(note, left_by_another_process_is_recorded_and_looked_at_again)
{
    struct tap_lab l;

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
    tap_lab_close(&l);
}

/* A full disk is no reason not to start. */
TEST(note, left_by_another_process_holds_the_first_epoch_back_until_it_is_recorded)
{
    struct tap_lab l;

    open_lab(&l);
    tap_lab_taps_close(&l);
    leave_entries(&l, 2);
    tap_lab_fault(FAULT_REFUSE);
    size_t before = tap_lab_records();
    tap_lab_taps_open(&l);
    while (tap_lab_records() < before + 3)
        sched_yield();
    CHECK_INT(taps_epoch(l.taps), -1);
    CHECK_INT(entries(&l), 2);
    tap_lab_fault(FAULT_NONE);
    tap_lab_await_epoch(&l);
    CHECK_INT(entries(&l), 0);
    CHECK_INT(version(&l, "1"), 1);
    tap_lab_close(&l);
}

/* R5: while it cannot be recorded, others go by the store. */
TEST(note, that_cannot_be_recorded_is_tried_until_it_can)
{
    struct tap_lab l;
    struct capture c;

    open_lab(&l);
    begin(&l, "k", &c);
    tap_lab_fault(FAULT_REFUSE);
    size_t before = tap_lab_records();
    end(&l, &c, OUTCOME_DONE);
    while (tap_lab_records() < before + 3)
        sched_yield();
    CHECK_INT(entries(&l), 1);
    begin(&l, "other", &c);
    CHECK_INT(entries(&l), 1);
    CHECK_INT(intents(&l), 1);
    tap_lab_fault(FAULT_NONE);
    end(&l, &c, OUTCOME_DONE);
    await_recorded(&l);
    CHECK_INT(entries(&l), 0);
    CHECK_INT(intents(&l), 0);
    CHECK_INT(version(&l, "k"), 1);
    CHECK_INT(version(&l, "other"), 1);
    begin(&l, "k", &c);
    CHECK_INT(entries(&l), 1);
    end(&l, &c, OUTCOME_DONE);
    tap_lab_close(&l);
}

TEST(note, that_could_not_be_recorded_at_the_end_is_found_by_the_next_start)
{
    struct reply *reply;
    struct tap_lab l;
    struct capture c;
    struct err err = {0};

    open_lab(&l);
    begin(&l, "k", &c);
    tap_lab_fault(FAULT_REFUSE);
    end(&l, &c, OUTCOME_DONE);
    tap_lab_taps_close(&l);
    CHECK_OK(store_call(l.stores[1], &l.a, &reply, &err, STR("HLEN"), STR("w:marks")));
    CHECK_INT(reply->integer, 1); /* the machine may go down now */
    CHECK_INT(version(&l, "k"), 0);
    tap_lab_fault(FAULT_NONE);
    tap_lab_taps_open(&l);
    await_recorded(&l);
    CHECK_INT(version(&l, "k"), 1);
    tap_lab_close(&l);
}

/* Whoever asks how far a replication is. */
TEST(note, that_is_not_recorded_is_told_of)
{
    struct unrecorded u;
    struct tap_lab l;
    struct capture c;
    uint64_t count = 0;
    struct err err = {0};

    open_lab(&l);
    struct unrecorded_options o = {
        .taps = l.taps, .routes = l.routes, .queue = l.queue, .config = l.stores[3]};
    tap_lab_fault(FAULT_REFUSE);
    begin(&l, "k", &c);
    end(&l, &c, OUTCOME_DONE);
    CHECK_OK(unrecorded_read(&u, &o, &err));
    CHECK_OK(unrecorded_of(&u, STR("local"), STR("box"), &count, &err));
    CHECK_INT(count, 0);
    struct announced {
        struct str key;
        uint64_t count;
    } *far = map_get(&u.announced, STR("far\nbox"));
    CHECK(far && far->count == 1);
    unrecorded_release(&u);
    tap_lab_fault(FAULT_NONE);
    await_recorded(&l);
    CHECK_OK(unrecorded_read(&u, &o, &err));
    CHECK(!map_get(&u.announced, STR("far\nbox")));
    unrecorded_release(&u);
    tap_lab_close(&l);
}

/* --- marks that come and go --- */

enum { PUTTERS = 4, PUTS = 300 };

struct putter {
    struct thread thread;
    struct tap_lab *l;
    _Atomic(bool) *stop;
    unsigned index;
};

static void put_main(void *ctx)
{
    struct putter *p = ctx;
    struct arena a = ARENA_INIT(0);
    struct reply *reply;
    struct capture c;
    struct err err = {0};
    char name[32];

    for (unsigned i = 0; i < PUTS; i++) {
        snprintf(name, sizeof(name), "%u/%u", p->index, i);
        begin(p->l, name, &c);
        CHECK_OK(store_call(p->l->stores[1], &a, &reply, &err, STR("HEXISTS"), STR("w:marks"),
                            STR("far:box")));
        CHECK_INT(reply->integer, 1);
        end(p->l, &c, OUTCOME_DONE);
        arena_reset(&a);
    }
    arena_release(&a);
}

static void clear_main(void *ctx)
{
    struct putter *p = ctx;
    struct err err = {0};

    while (!atomic_load(p->stop)) {
        int code = marks_clear_idle(p->l->taps, 0, &err);
        CHECK(code == 0 || code == ERR_BUSY);
        sched_yield();
    }
}

/* R6: the mark is on disk as long as an entry of the bucket is there. */
TEST(note, has_the_mark_of_its_bucket_whoever_takes_marks_away)
{
    struct putter all[PUTTERS], clearer;
    struct tap_lab l;
    _Atomic(bool) stop = false;
    struct err err = {0};
    char name[32];

    open_lab(&l);
    clearer = (struct putter){.l = &l, .stop = &stop};
    CHECK_OK(thread_start(&clearer.thread, "clear", 0, clear_main, &clearer, &err));
    for (unsigned i = 0; i < PUTTERS; i++) {
        all[i] = (struct putter){.l = &l, .index = i};
        CHECK_OK(thread_start(&all[i].thread, "put", 0, put_main, &all[i], &err));
    }
    for (unsigned i = 0; i < PUTTERS; i++)
        thread_join(&all[i].thread);
    atomic_store(&stop, true);
    thread_join(&clearer.thread);
    await_recorded(&l);
    for (unsigned i = 0; i < PUTTERS; i++) {
        snprintf(name, sizeof(name), "%u/%u", i, PUTS - 1);
        CHECK_INT(version(&l, name), 1);
    }
    CHECK_OK(marks_clear_idle(l.taps, 0, &err));
    tap_lab_close(&l);
}
