/* Flights: many threads call one server, and several of these calls share one request.
 *
 * A *flight* is one request to the server and its answer. A thread that calls while fewer than
 * `max` flights are on their way begins its own flight at once. Otherwise it waits. When a flight
 * ends, the thread that has waited longest leads the next flight, and its request takes other
 * waiting calls along. So calls are combined only while they would have to wait anyway, and no call
 * waits while a flight could begin. */
#ifndef OS_FLIGHT_H
#define OS_FLIGHT_H

#include "os/thread.h"

#include <semaphore.h>

struct flights {
    struct mutex lock;   /* the owner initialises it with its own class; guards the members below */
    struct list waiting; /* calls, the oldest first */
    size_t count, max;   /* flights that are on their way, and the most that may be */
};

/* A call. It is on the stack of the thread that makes it. From when a leader takes it along until
 * flight_end(), it belongs to the leader. */
struct flight_call {
    struct list node; /* in the list `waiting` */
    enum flight_state {
        FLIGHT_WAITS,
        FLIGHT_LEADS, /* this thread makes the request */
        FLIGHT_TAKEN, /* another thread has made the request for it */
    } state;
    sem_t woken; /* posted when the call leads, and when a flight that took it along has ended */
};

/* The caller must have initialised `lock`. */
void flights_init(struct flights *f, size_t max);
void flights_release(struct flights *f); /* no call may be running */

/* Waits until the call leads a flight (FLIGHT_LEADS; flight_end() must follow), or until a flight
 * that took it along has ended (FLIGHT_TAKEN). FLIGHT_WAITS: `deadline_ns` passed first, and the
 * call was not made. */
enum flight_state flight_begin(struct flights *f, struct flight_call *c, uint64_t deadline_ns);
/* Takes along those waiting calls for which `fits` is true, the oldest first. calls[0] is the
 * leader. Returns the number of calls in the flight, at most `room`. */
size_t flight_board(struct flights *f, struct flight_call **calls, size_t room,
                    bool (*fits)(void *ctx, struct flight_call *c), void *ctx);
/* Ends the flight: wakes the next leader, and then the calls that were taken along. The answers of
 * these calls must be stored before. */
void flight_end(struct flights *f, struct flight_call *const *calls, size_t count);

#endif
