/* loop: sleeps, wakes that are not lost, retries that wakes do not shorten, and the stop. */
#include "os/loop.h"
#include "unit/test.h"

#include <sched.h>
#include <semaphore.h>

/* A step that counts, tells that it ran, and sleeps as it is told. */
struct stepper {
    struct loop loop;
    struct loop_sleep sleep;
    _Atomic(uint64_t) steps, ran_ns; /* ran_ns: when the last step began */
    sem_t ran;
};

static struct loop_sleep step(void *ctx)
{
    struct stepper *s = ctx;

    atomic_store(&s->ran_ns, clock_mono_ns());
    atomic_fetch_add(&s->steps, 1);
    sem_post(&s->ran);
    return s->sleep;
}

static void stepper_start(struct stepper *s, struct loop_sleep first)
{
    struct err err = {0};

    sem_init(&s->ran, 0, 0);
    CHECK_OK(loop_start(&s->loop, &(struct loop_options){"step", step, s, first}, &err));
}

static void stepper_await(struct stepper *s)
{
    while (sem_wait(&s->ran) != 0)
        ;
}

static void stepper_stop(struct stepper *s)
{
    loop_stop(&s->loop);
    CHECK(loop_is_stopping(&s->loop));
    sem_destroy(&s->ran);
}

TEST(loop, a_step_runs_at_once_and_again_as_often_as_it_asks)
{
    struct stepper s = {.sleep = loop_again()};

    stepper_start(&s, loop_again());
    for (int i = 0; i < 1000; i++)
        stepper_await(&s);
    stepper_stop(&s);
}

TEST(loop, a_step_runs_again_when_its_time_has_come)
{
    struct stepper s = {.sleep = loop_sleep_ms(2)};
    uint64_t began = clock_mono_ns();

    stepper_start(&s, loop_sleep_ms(2));
    for (int i = 0; i < 5; i++)
        stepper_await(&s);
    CHECK(clock_mono_ns() - began >= 10 * NS_PER_MS);
    stepper_stop(&s);
}

TEST(loop, a_wake_ends_a_sleep_of_any_length)
{
    struct stepper s = {.sleep = loop_until_woken()};

    stepper_start(&s, loop_sleep_ms(MS_PER_HOUR));
    for (int i = 0; i < 100; i++) {
        loop_wake(&s.loop);
        stepper_await(&s);
    }
    CHECK_INT(atomic_load(&s.steps), 100);
    stepper_stop(&s);
}

TEST(loop, a_wake_does_not_shorten_the_wait_for_a_retry)
{
    struct stepper s = {.sleep = loop_retry_ms(20)};

    stepper_start(&s, loop_again());
    stepper_await(&s);
    uint64_t first = atomic_load(&s.ran_ns);
    loop_wake(&s.loop);
    stepper_await(&s);
    CHECK(atomic_load(&s.ran_ns) - first >= 20 * NS_PER_MS);
    stepper_stop(&s);
}

TEST(loop, a_stop_ends_every_sleep_and_the_loop_can_be_started_again)
{
    const struct loop_sleep sleeps[] = {loop_until_woken(), loop_sleep_ms(MS_PER_HOUR),
                                        loop_retry_ms(MS_PER_HOUR)};
    struct stepper s = {0};

    loop_wake(&s.loop); /* of a loop that was never started: nothing */
    loop_stop(&s.loop);
    for (size_t i = 0; i < ARRAY_SIZE(sleeps); i++) {
        s.sleep = sleeps[i];
        stepper_start(&s, loop_again());
        CHECK(!loop_is_stopping(&s.loop));
        stepper_await(&s);
        stepper_stop(&s);
    }
    CHECK_INT(atomic_load(&s.steps), ARRAY_SIZE(sleeps));
    loop_wake(&s.loop);
}

/* --- stress: no item is left behind --- */

enum { PRODUCERS = 4, ITEMS = 20000 };

struct belt {
    struct loop loop;
    _Atomic(uint64_t) put, taken;
    sem_t all;
};

static struct loop_sleep belt_take(void *ctx)
{
    struct belt *b = ctx;
    uint64_t put = atomic_load(&b->put);

    atomic_store(&b->taken, put);
    if (put == (uint64_t)PRODUCERS * ITEMS)
        sem_post(&b->all);
    return loop_until_woken();
}

static void belt_put(void *ctx)
{
    struct belt *b = ctx;

    for (int i = 0; i < ITEMS; i++) {
        atomic_fetch_add(&b->put, 1);
        loop_wake(&b->loop);
        if (i % 64 == 0)
            sched_yield();
    }
}

TEST(loop, many_wakers_lose_no_wake)
{
    struct belt b = {0};
    struct thread producers[PRODUCERS] = {0};
    struct err err = {0};

    sem_init(&b.all, 0, 0);
    CHECK_OK(loop_start(&b.loop, &(struct loop_options){"belt", belt_take, &b}, &err));
    for (int i = 0; i < PRODUCERS; i++)
        CHECK_OK(thread_start(&producers[i], "producer", 0, belt_put, &b, &err));
    for (int i = 0; i < PRODUCERS; i++)
        thread_join(&producers[i]);
    while (sem_wait(&b.all) != 0) /* a lost wake would leave us here until the test's limit */
        ;
    CHECK_INT(atomic_load(&b.taken), PRODUCERS * ITEMS);
    loop_stop(&b.loop);
    sem_destroy(&b.all);
}
