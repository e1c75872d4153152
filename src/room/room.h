/* A room is a feature of weir beside the gateway, such as replica and swarm. Its code is a folder
 * of src/. The rest of the program uses that folder only through one struct room: main.c lists the
 * rooms, and server, worker, API, command line and metrics read the list. No file except main.c
 * names a room. docs/rooms.md says how to add a room.
 *
 * A room keeps no globals. For each room the server makes a zeroed struct of `state_size` bytes,
 * and passes it to every function of the room as `state`. */
#ifndef ROOM_ROOM_H
#define ROOM_ROOM_H

#include "base/vec.h"
#include "command/command.h"
#include "coord/worker.h"
#include "rest/rest.h"
#include "room/metrics.h"
#include "room/services.h"

#include <stdio.h>

/* The stage of the start at which a part starts. Within a stage the parts start in the order of the
 * rooms in main.c, and the parts of one room in the order of its table. Parts stop in the reverse
 * order of their start. */
enum room_stage {
    /* Users, storages and routes have been loaded. The lease of the process starts next; no object
     * is changed before that. */
    ROOM_STORAGES,
    ROOM_WORK,   /* lifecycle rules and logs run; the worker starts next */
    ROOM_LISTEN, /* the worker runs and the pool of threads is there; S3 and the API start next */
};

struct room_part {
    enum room_stage stage;
    /* Starts the part. A part that fails undoes what it began, and its `stop` is not called. The
     * error's text is one line, which is printed to the person who starts weir. */
    int (*start)(void *state, struct services *s, struct err *err);
    /* Stops the part. Returns false if at s->deadline_ns requests still run that use memory of this
     * part; then no other part is stopped, and the process ends. NULL: there is nothing to stop. */
    bool (*stop)(void *state, struct services *s);
};

/* An address that the room listens on in a process that has the room's role. When weir starts, it
 * tries to listen on all addresses before it creates anything. */
struct room_port {
    const char *key; /* the configuration key whose value is the address */
    bool udp;        /* false: TCP */
};

typedef VEC(struct task_handler) room_tasks;

struct room {
    const char *name; /* such as "swarm" */
    const char *role; /* the role's name for `weir serve --only`; NULL: the room needs no role */
    size_t state_size;

    const struct room_part *parts;
    size_t part_count;
    const struct room_port *ports;
    size_t port_count;

    /* The queues that the room puts tasks on. No two rooms share a queue. */
    const struct queue_weight *queues;
    size_t queue_count;
    /* Appends the handlers of tasks that this process can run. Called once, between ROOM_WORK and
     * ROOM_LISTEN, in a process with the role "worker". */
    void (*tasks)(void *state, room_tasks *out);

    /* The room's REST routes: tables of rest/rest.h, ended by NULL. The `ctx` of a call is the
     * room's state. */
    const struct rest_table *const *routes;

    /* The room's commands: tables of command/command.h, ended by NULL. Each table ends with a row
     * without a name. */
    const struct command *const *commands;

    const struct metric *metrics;
    size_t metric_count;
    /* Adds the numbers that the metrics show. Any thread may call it, from ROOM_LISTEN until the
     * parts of that stage stop. */
    void (*count)(void *state, struct metric_numbers *out);

    /* Called when the configuration is reloaded. `check` returns an error if the room cannot use
     * the new configuration. If no room has returned an error, `reload` makes the room use it.
     * Either may be NULL. */
    int (*check)(void *state, const struct conf *next, struct err *err);
    void (*reload)(void *state, const struct conf *next);

    /* Prints the lines of the greeting that say where the room listens. May be NULL. */
    void (*greet)(void *state, FILE *out);
};

/* For the initializer of a struct room: ROOM_ROWS(part, swarm_parts) sets .parts and .part_count.
 */
#define ROOM_ROWS(noun, table) .noun##s = (table), .noun##_count = ARRAY_SIZE(table)

/* A room of a running weir. */
struct room_instance {
    const struct room *room;
    void *state;
};

#endif
