/* Groups of writes (docs/kv.md, "Groups"), on every driver.
 *
 * A gate stands between the groups and the driver. It holds the first writes until all other calls
 * wait. A call begins when the calls before it are held or wait, so the test knows which calls are
 * made together, and in which order. */
#include "kv/kv_int.h"
#include "os/thread.h"
#include "unit/kv/kv_lab.h"

#include <sched.h>

enum { CALLS = 16 };

static struct {
    const struct kv_ops *real;
    struct kv_ops ops;
    struct kv_groups *groups; /* of the driver */
    _Atomic(size_t) writes;   /* that came to the driver */
    _Atomic(bool) is_open;    /* no write is held */
    int answer;               /* of the writes that come later; 0: the driver's */
    _Atomic(bool) is_mixed;   /* a write had puts of removals and other puts */
} gate;

static size_t calls_waiting(struct kv_groups *g)
{
    size_t count = 0;

    for (size_t i = 0; i < KV_GROUP_PLACES; i++) {
        mutex_lock(&g->places[i].lock);
        list_each (&g->places[i].waiting, struct flight_call, node, c)
            count++;
        mutex_unlock(&g->places[i].lock);
    }
    return count;
}

static int gate_write(struct kv *kv, const struct kv_change *changes, size_t count, size_t *failed,
                      struct arena *a, const struct kv_name *names, size_t name_count,
                      struct kv_value *out, struct err *err)
{
    bool was_held = !atomic_load(&gate.is_open);

    atomic_fetch_add(&gate.writes, 1);
    while (!atomic_load(&gate.is_open))
        sched_yield();
    for (size_t i = 2; i < count; i++)
        if (changes[i].frees != changes[1].frees)
            atomic_store(&gate.is_mixed, true);
    int code = gate.real->write(kv, changes, count, failed, a, names, name_count, out, err);
    return code == 0 && !was_held && gate.answer ? err_set(err, gate.answer, "by the gate") : code;
}

static void gate_begin(struct kv *kv, bool holds, int answer)
{
    gate.real = kv->ops;
    gate.ops = *kv->ops;
    gate.ops.write = gate_write;
    gate.groups = kv->groups;
    atomic_store(&gate.is_open, !holds);
    gate.answer = answer;
    atomic_store(&gate.writes, 0);
    atomic_store(&gate.is_mixed, false);
    kv->ops = &gate.ops;
    kv->groups = kv_groups_new(1);
}

static void gate_end(struct kv *kv)
{
    kv_groups_free(kv->groups);
    kv->groups = gate.groups;
    kv->ops = gate.real;
}

/* A thread that makes one write: a check of the guard, and a put. */
struct caller {
    struct thread thread;
    struct kv *kv;
    struct arena arena;
    struct kv_change changes[2];
    struct kv_value guard; /* read behind the put */
    char key[2];
    size_t failed;
    int code;
    struct err err;
};

static void caller_main(void *ctx)
{
    struct caller *c = ctx;
    struct kv_name guard = KV_NAME("p", "guard");

    c->code =
        kv_write_get(c->kv, c->changes, 2, &c->failed, &c->arena, &guard, 1, &c->guard, &c->err);
}

/* Prepares CALLS callers, whose rows are named by letters. */
static void callers_init(struct caller callers[CALLS], struct kv *kv, enum kv_what what)
{
    kv_lab_set(kv, "p", "guard", "open");
    for (size_t i = 0; i < CALLS; i++) {
        struct caller *c = &callers[i];
        *c = (struct caller){.kv = kv, .key = {(char)('a' + i)}, .failed = 99};
        c->changes[0] = (struct kv_change){
            .what = what, .name = KV_NAME("p", "guard"), .when = KV_SAME, .stamp = STR("open")};
        c->changes[1] = (struct kv_change){
            .what = KV_PUT, .name = {STR("rows"), str_n(c->key, 1)}, .value = str_n(c->key, 1)};
    }
}

static void callers_run(struct caller callers[CALLS])
{
    struct err err = {0};

    for (size_t i = 0; i < CALLS; i++) {
        CHECK_OK(thread_start(&callers[i].thread, "caller", 0, caller_main, &callers[i], &err));
        CHECK_SOON(atomic_load(&gate.is_open) ||
                   atomic_load(&gate.writes) + calls_waiting(callers[i].kv->groups) == i + 1);
    }
    atomic_store(&gate.is_open, true);
    for (size_t i = 0; i < CALLS; i++)
        thread_join(&callers[i].thread);
}

static void callers_release(struct caller callers[CALLS])
{
    for (size_t i = 0; i < CALLS; i++)
        arena_release(&callers[i].arena);
}

static void group_is_one_write(struct kv_lab *lab, enum kv_what what)
{
    struct caller callers[CALLS];

    callers_init(callers, lab->kv, what);
    gate_begin(lab->kv, true, 0);
    callers_run(callers);
    gate_end(lab->kv);
    CHECK_INT(atomic_load(&gate.writes), 2);
    for (size_t i = 0; i < CALLS; i++) {
        CHECK_INT(callers[i].code, 0);
        CHECK_STR(callers[i].guard.bytes, STR("open"));
    }
    kv_lab_expect_keys(lab->kv, "rows", NULL, "a b c d e f g h i j k l m n o p");
    kv_lab_expect(lab->kv, "rows", "p", "p");
    callers_release(callers);
}

KV_LAB_TEST(kv_group, calls_with_the_same_check_are_one_write)
{
    group_is_one_write(lab, KV_CHECK);
}

KV_LAB_TEST(kv_group, calls_with_the_same_glance_are_one_write)
{
    group_is_one_write(lab, KV_GLANCE);
}

/* Every third call has read an old guard. */
static void stale_calls_fail_alone(struct kv_lab *lab, enum kv_what what)
{
    struct caller callers[CALLS];

    callers_init(callers, lab->kv, what);
    for (size_t i = 0; i < CALLS; i += 3)
        callers[i].changes[0].stamp = STR("older");
    gate_begin(lab->kv, true, 0);
    callers_run(callers);
    gate_end(lab->kv);
    CHECK(atomic_load(&gate.writes) <= 4);
    for (size_t i = 0; i < CALLS; i++) {
        CHECK_INT(callers[i].code, i % 3 == 0 ? ERR_PRECONDITION : 0);
        CHECK_INT(callers[i].failed, i % 3 == 0 ? 0 : 99);
    }
    kv_lab_expect_keys(lab->kv, "rows", NULL, "b c e f h i k l n o");
    callers_release(callers);
}

KV_LAB_TEST(kv_group, a_call_whose_check_fails_fails_alone)
{
    stale_calls_fail_alone(lab, KV_CHECK);
}

KV_LAB_TEST(kv_group, a_call_whose_glance_fails_fails_alone)
{
    stale_calls_fail_alone(lab, KV_GLANCE);
}

KV_LAB_TEST(kv_group, of_calls_that_put_one_row_the_last_counts)
{
    struct caller callers[CALLS];

    callers_init(callers, lab->kv, KV_CHECK);
    for (size_t i = 0; i < CALLS; i++)
        callers[i].changes[1].name.key = STR("same");
    gate_begin(lab->kv, true, 0);
    callers_run(callers);
    gate_end(lab->kv);
    CHECK_INT(atomic_load(&gate.writes), 2);
    for (size_t i = 0; i < CALLS; i++)
        CHECK_INT(callers[i].code, 0);
    kv_lab_expect(lab->kv, "rows", "same", "p");
    kv_lab_expect_keys(lab->kv, "rows", NULL, "same");
    callers_release(callers);
}

/* K6: whose answer was lost is not known, so every call of the group is told so. */
KV_LAB_TEST(kv_group, a_lost_answer_is_lost_for_the_whole_group)
{
    struct caller callers[CALLS];
    size_t lost = 0;

    callers_init(callers, lab->kv, KV_CHECK);
    gate_begin(lab->kv, true, ERR_TIMEOUT);
    callers_run(callers);
    gate_end(lab->kv);
    for (size_t i = 0; i < CALLS; i++)
        if (callers[i].code == ERR_TIMEOUT) {
            CHECK_STR(str_z(callers[i].err.text), STR("by the gate"));
            lost++;
        }
    CHECK_INT(lost, CALLS - 1);
    callers_release(callers);
}

/* A put with a condition would fail the others, so it goes alone. */
KV_LAB_TEST(kv_group, calls_with_a_condition_of_their_own_are_not_put_together)
{
    struct caller callers[CALLS];

    callers_init(callers, lab->kv, KV_CHECK);
    for (size_t i = 0; i < CALLS; i++)
        callers[i].changes[1].when = i % 2 ? KV_ABSENT : KV_EXISTS;
    gate_begin(lab->kv, false, 0);
    callers_run(callers);
    gate_end(lab->kv);
    CHECK_INT(atomic_load(&gate.writes), CALLS);
    for (size_t i = 0; i < CALLS; i++)
        CHECK_INT(callers[i].code, i % 2 ? 0 : ERR_PRECONDITION);
    kv_lab_expect_keys(lab->kv, "rows", NULL, "b d f h j l n p");
    callers_release(callers);
}

/* K11: a removal beside other writes could not use the room that is kept for removals. */
KV_LAB_TEST(kv_group, removals_are_not_put_together_with_other_writes)
{
    struct caller callers[CALLS];

    callers_init(callers, lab->kv, KV_CHECK);
    for (size_t i = 0; i < CALLS; i += 2)
        callers[i].changes[1].frees = true;
    gate_begin(lab->kv, true, 0);
    callers_run(callers);
    gate_end(lab->kv);
    CHECK_INT(atomic_load(&gate.writes), 3);
    CHECK(!atomic_load(&gate.is_mixed));
    for (size_t i = 0; i < CALLS; i++)
        CHECK_INT(callers[i].code, 0);
    callers_release(callers);
}

/* Half of the callers have a full arena. The second caller is one of them, and leads the group. */
KV_LAB_TEST(kv_group, a_full_arena_fails_its_own_call_alone)
{
    struct caller callers[CALLS];

    callers_init(callers, lab->kv, KV_CHECK);
    for (size_t i = 1; i < CALLS; i += 2)
        callers[i].arena = (struct arena)ARENA_INIT(1);
    gate_begin(lab->kv, true, 0);
    callers_run(callers);
    gate_end(lab->kv);
    CHECK_INT(atomic_load(&gate.writes), 2);
    for (size_t i = 0; i < CALLS; i++)
        CHECK_INT(callers[i].code, i % 2 ? ERR_TIMEOUT : 0);
    kv_lab_expect_keys(lab->kv, "rows", NULL, "a b c d e f g h i j k l m n o p");
    callers_release(callers);
}
