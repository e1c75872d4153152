/* Flights of calls (os/flight.h). */
#include "os/flight.h"
#include "base/clock.h"
#include "unit/test.h"

#include <sched.h>

enum { CALLS = 8 };

static void flights_open(struct flights *f, size_t max)
{
    mutex_init(&f->lock, "test");
    flights_init(f, max);
}

static uint64_t far_away(void)
{
    return clock_mono_ns() + 600 * NS_PER_S;
}

TEST(flight, a_call_that_waits_too_long_is_not_made)
{
    struct flights f;
    struct flight_call first, late;
    struct flight_call *calls[] = {&first};

    flights_open(&f, 1);
    CHECK_INT(flight_begin(&f, &first, far_away()), FLIGHT_LEADS);
    CHECK_INT(flight_begin(&f, &late, clock_mono_ns()), FLIGHT_WAITS);
    flight_end(&f, calls, 1);
    CHECK_INT(flight_begin(&f, &late, clock_mono_ns()), FLIGHT_LEADS);
    calls[0] = &late;
    flight_end(&f, calls, 1);
    flights_release(&f);
}

struct traveller {
    struct flight_call call;
    struct thread thread;
    struct flights *flights;
    size_t number, room;
    size_t flown; /* calls in the flight that it led */
    enum flight_state state;
    _Atomic(int) *journeys;
    int answer;
};

static bool is_of_kind(void *ctx, struct flight_call *c)
{
    return container_of(c, struct traveller, call)->number % 2 == *(size_t *)ctx;
}

static void traveller_main(void *ctx)
{
    struct traveller *t = ctx;
    struct flight_call *calls[CALLS] = {&t->call};
    size_t kind = t->number % 2;

    t->state = flight_begin(t->flights, &t->call, far_away());
    if (t->state != FLIGHT_LEADS)
        return;
    t->flown = flight_board(t->flights, calls, t->room, is_of_kind, &kind);
    int journey = atomic_fetch_add(t->journeys, 1) + 1;
    for (size_t i = 0; i < t->flown; i++)
        container_of(calls[i], struct traveller, call)->answer = journey;
    flight_end(t->flights, calls, t->flown);
}

static size_t count_waiting(struct flights *f)
{
    size_t count = 0;

    mutex_lock(&f->lock);
    list_each (&f->waiting, struct flight_call, node, c)
        count++;
    mutex_unlock(&f->lock);
    return count;
}

/* Lets CALLS calls wait behind a flight, four of each kind. Returns how many journeys they make. */
static int journeys_of_waiting(size_t room)
{
    struct traveller travellers[CALLS] = {0};
    struct flights f;
    struct flight_call first;
    struct flight_call *calls[] = {&first};
    _Atomic(int) journeys = 0;
    struct err err = {0};

    flights_open(&f, 1);
    CHECK_INT(flight_begin(&f, &first, far_away()), FLIGHT_LEADS);
    for (size_t i = 0; i < CALLS; i++) {
        travellers[i] =
            (struct traveller){.flights = &f, .number = i, .room = room, .journeys = &journeys};
        CHECK_OK(thread_start(&travellers[i].thread, "traveller", 0, traveller_main, &travellers[i],
                              &err));
    }
    while (count_waiting(&f) < CALLS)
        sched_yield();
    flight_end(&f, calls, 1);
    for (size_t i = 0; i < CALLS; i++) {
        thread_join(&travellers[i].thread);
        CHECK(travellers[i].state != FLIGHT_WAITS);
        CHECK(travellers[i].flown <= room);
        CHECK(travellers[i].answer > 0);
    }
    flights_release(&f);
    return atomic_load(&journeys);
}

TEST(flight, calls_that_wait_make_one_journey_with_those_that_fit)
{
    CHECK_INT(journeys_of_waiting(CALLS), 2);
}

TEST(flight, a_flight_takes_no_more_calls_than_it_has_room_for)
{
    CHECK_INT(journeys_of_waiting(2), 4);
    CHECK_INT(journeys_of_waiting(1), CALLS);
}
