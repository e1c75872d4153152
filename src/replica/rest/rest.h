/* Declarations that the files in replica/rest/ share. */
#ifndef REPLICA_REST_REST_H
#define REPLICA_REST_REST_H

#include "coord/replication.h"
#include "replica/room.h"
#include "replica/tap/unrecorded.h"
#include "route/users.h"

/* The function `needs` of REST routes about replications. ERR_UNSUPPORTED: replication is off. */
rest_fn replica_needs;

/* These two write and read the id of a replication as text: "user:bucket:from:to[:to bucket]". Each
 * part is escaped as in keys of the store. The bucket of a user's policy is empty. ERR_NOT_FOUND:
 * the text cannot be an id. */
void replication_id_write(struct buf *out, const struct replication_id *id);
int replication_id_read(struct replication_id *out, struct arena *a, struct str text,
                        struct err *err) MUST_CHECK;

/* Sets *out to the replication whose id, as text, is `text`. Its strings are in the arena.
 * ERR_NOT_FOUND: there is no such replication. */
int replication_by_text(const struct replica_room *room, struct arena *a, struct str text,
                        struct replication *out, struct err *err) MUST_CHECK;

/* Members of a replication in an answer of the API; replication_write() writes them. A user's
 * policy has only the members up to `state`. */
#define REPLICATION_FIELDS                                                                         \
    {"id", "The replication's id."}, {"user", "The user's name; empty: the user was removed."},    \
        {"user_id", "The user's id."},                                                             \
        {"bucket", "The bucket; empty: a policy for all buckets of the user."},                    \
        {"from", "The storage that changes come from."},                                           \
        {"to", "The storage that they are copied to."},                                            \
        {"to_bucket", "The bucket there, if it has another name; else empty."},                    \
        {"priority", "0 to 5; changes of a higher priority are copied sooner.", REST_INTEGER},     \
        {"notify", "Where the source reports changes that go past weir; empty: nowhere."},         \
        {"switch", "Is there a switch of the bucket?", REST_BOOLEAN},                              \
        {"state", "\"policy\", \"listing\", \"copying\", \"behind\", \"in sync\", \"paused\", "    \
                  "\"misrouted\" or \"archived\"."},                                               \
        {"created", "When it was added.", REST_TIME, .sometimes = true},                           \
        {"paused", "Is it paused?", REST_BOOLEAN, .sometimes = true},                              \
        {"archived", "Has it ended with a switch?", REST_BOOLEAN, .sometimes = true},              \
        {"listed_all", "Have all objects been listed?", REST_BOOLEAN, .sometimes = true},          \
        {"init_done", "Is the initial copy complete?", REST_BOOLEAN, .sometimes = true},           \
        {"init_done_at", "When it was complete.", REST_TIME, .sometimes = true},                   \
        {"objects", "Objects listed for the initial copy.", REST_INTEGER, .sometimes = true},      \
        {"objects_done", "Those of them that are copied.", REST_INTEGER, .sometimes = true},       \
        {"objects_failed", "Those of them that failed.", REST_INTEGER, .sometimes = true},         \
        {"bytes", "Bytes listed for the initial copy.", REST_INTEGER, .sometimes = true},          \
        {"bytes_done", "Those of them that are copied.", REST_INTEGER, .sometimes = true},         \
        {"objects_per_s", "Pace of the initial copy.", REST_NUMBER, .sometimes = true},            \
        {"bytes_per_s", "Pace of the initial copy.", REST_NUMBER, .sometimes = true},              \
        {"left_s", "Seconds until the initial copy is complete; null: not known.", REST_INTEGER,   \
         .sometimes = true, .nullable = true},                                                     \
        {"events", "Changes since the replication was added.", REST_INTEGER, .sometimes = true},   \
        {"events_done", "Those of them that are copied.", REST_INTEGER, .sometimes = true},        \
        {"lag", "Changes that the destination lacks.", REST_INTEGER, .sometimes = true},           \
        {"last_change", "When a change was last recorded.", REST_TIME, .sometimes = true},         \
    {                                                                                              \
        "last_done", "When a change was last copied.", REST_TIME, .sometimes = true                \
    }

/* The state for questions about how far replications are. The answers include every change that a
 * client got an answer for before the look began, even if the change is not recorded yet. The
 * caller calls replication_look_end() after an error too. */
struct replication_look {
    const struct replica_room *room; /* borrowed */
    struct arena *a;                 /* borrowed */
    struct unrecorded unrecorded;
};
int replication_look_begin(struct replication_look *l, const struct replica_room *room,
                           struct arena *a, struct err *err) MUST_CHECK;
/* Sets *out to the replication's status, and *lag to the number of changes that the destination
 * lacks. ERR_NOT_FOUND: the replication was removed. */
int replication_look_at(struct replication_look *l, const struct replication_id *id,
                        struct replication_status *out, int64_t *lag, struct err *err) MUST_CHECK;
void replication_look_end(struct replication_look *l);

/* Writes the members REPLICATION_FIELDS of a replication. ERR_NOT_FOUND: the replication was
 * removed. */
int replication_write(struct json_out *w, struct replication_look *l, const struct replication *p,
                      struct err *err) MUST_CHECK;
/* Like replication_write(), but makes a replication_look for this call alone. */
int replication_write_one(struct json_out *w, const struct replica_room *room, struct arena *a,
                          const struct replication *p, struct err *err) MUST_CHECK;

/* Ends the source's notifications, unless another replication from the same bucket needs them. If
 * the source cannot be reached, the failure is only logged. */
void replication_end_notices(const struct replica_room *room, const struct replication *p);

#endif
