/* Readiness: rounds are shared, one at a time, and fast threads never wait for one. */
#include "room/ready.h"
#include "unit/test.h"

struct probe {
    _Atomic(int) calls;
    int answer;
    struct mutex gate; /* held by the test to keep a round running */
};

static int check(void *ctx, struct err *err)
{
    struct probe *p = ctx;

    atomic_fetch_add(&p->calls, 1);
    mutex_lock(&p->gate);
    mutex_unlock(&p->gate);
    return p->answer ? err_set(err, p->answer, "out of order") : 0;
}

static void probe_init(struct probe *p, struct ready *r, const char *name, int answer)
{
    memset(p, 0, sizeof(*p));
    p->answer = answer;
    mutex_init(&p->gate, "gate");
    ready_add(r, (struct ready_part){name, check, p});
}

TEST(ready, a_part_that_fails_is_told_with_its_text)
{
    struct ready r;
    struct probe good, bad;
    struct ready_state states[READY_MAX_PARTS];

    ready_init(&r);
    probe_init(&good, &r, "good", 0);
    probe_init(&bad, &r, "bad", ERR_IO);
    CHECK_ERR(ready_get(&r, states, false), ERR_AGAIN);
    CHECK_INT(atomic_load(&good.calls), 0);
    CHECK_ERR(ready_get(&r, states, true), 0);
    CHECK_INT(states[0].code, 0);
    CHECK_INT(states[1].code, ERR_IO);
    CHECK_STR(str_z(states[1].text), STR("out of order"));
    ready_release(&r);
    mutex_release(&good.gate);
    mutex_release(&bad.gate);
}

static void ask(void *ctx)
{
    struct ready_state states[READY_MAX_PARTS];
    CHECK_ERR(ready_get(ctx, states, true), 0);
}

TEST(ready, parts_are_checked_beside_each_other)
{
    struct ready r;
    struct probe one, two;
    struct thread thread;
    struct err err = {0};

    ready_init(&r);
    probe_init(&one, &r, "one", 0);
    probe_init(&two, &r, "two", 0);
    mutex_lock(&one.gate);
    mutex_lock(&two.gate);
    CHECK_OK(thread_start(&thread, "ask", 0, ask, &r, &err));
    while (atomic_load(&one.calls) + atomic_load(&two.calls) < 2)
        ;
    mutex_unlock(&one.gate);
    mutex_unlock(&two.gate);
    thread_join(&thread);
    ready_release(&r);
    mutex_release(&one.gate);
    mutex_release(&two.gate);
}

TEST(ready, callers_of_the_first_round_share_it)
{
    struct ready r;
    struct probe p;
    struct thread threads[4];
    struct err err = {0};

    ready_init(&r);
    probe_init(&p, &r, "part", 0);
    mutex_lock(&p.gate);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        CHECK_OK(thread_start(&threads[i], "ask", 0, ask, &r, &err));
    while (atomic_load(&p.calls) < 1)
        ;
    mutex_lock(&r.lock);
    CHECK(r.running);
    CHECK_INT(r.checked_ms, 0);
    mutex_unlock(&r.lock);
    mutex_unlock(&p.gate);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        thread_join(&threads[i]);
    ready_release(&r);
    mutex_release(&p.gate);
}

TEST(ready, a_stale_answer_is_given_while_a_round_runs)
{
    struct ready r;
    struct probe p;
    struct ready_state states[READY_MAX_PARTS];
    struct thread t;
    struct err err = {0};

    ready_init(&r);
    probe_init(&p, &r, "part", 0);
    CHECK_ERR(ready_get(&r, states, true), 0);
    mutex_lock(&r.lock);
    r.checked_ms = 1; /* long ago */
    mutex_unlock(&r.lock);
    mutex_lock(&p.gate);
    CHECK_OK(thread_start(&t, "round", 0, ask, &r, &err));
    while (atomic_load(&p.calls) < 2)
        ;
    CHECK_ERR(ready_get(&r, states, false), ERR_AGAIN);
    CHECK_ERR(ready_get(&r, states, true), 0); /* would hang if it waited for the round */
    CHECK_INT(states[0].code, 0);
    CHECK_INT(atomic_load(&p.calls), 2);
    mutex_unlock(&p.gate);
    thread_join(&t);
    ready_release(&r);
    mutex_release(&p.gate);
}
