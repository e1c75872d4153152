/* Between the files of the API that are about replications. */
#ifndef API_REPLICATIONS_H
#define API_REPLICATIONS_H

#include "api/api_int.h"
#include "coord/replication.h"
#include "replica/tap/unrecorded.h"
#include "route/users.h"

/* An id as text: "user:bucket:from:to[:to bucket]", each part escaped as in keys of the store. The
 * bucket of a user's policy is empty. Reading gives ERR_NOT_FOUND when the text cannot be an id. */
void replication_id_write(struct buf *out, const struct replication_id *id);
int replication_id_read(struct replication_id *out, struct arena *a, struct str text,
                        struct err *err) MUST_CHECK;

/* The replication with this id. ERR_NOT_FOUND. Strings are in the arena. */
int api_find_replication(struct api *api, struct arena *a, struct str text, struct replication *out,
                         struct err *err) MUST_CHECK;

/* Members of a replication in an answer; api_write_replication() writes them. A user's policy has
 * only those up to `state`. */
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

/* A look at how far replications are. Every change that was answered before the look began counts,
 * also when it is not recorded yet. api_look_end() is called also after an error. */
struct replication_look {
    struct api *api; /* borrowed */
    struct arena *a; /* borrowed */
    struct unrecorded unrecorded;
};
int api_look_begin(struct replication_look *l, struct api *api, struct arena *a,
                   struct err *err) MUST_CHECK;
/* *lag: changes that the destination lacks. ERR_NOT_FOUND: the replication is gone. */
int api_look(struct replication_look *l, const struct replication_id *id,
             struct replication_status *out, int64_t *lag, struct err *err) MUST_CHECK;
void api_look_end(struct replication_look *l);

/* Writes the replication's members, with how far it is. ERR_NOT_FOUND: it is gone. */
int api_write_replication(struct json_out *w, struct replication_look *l,
                          const struct replication *p, struct err *err) MUST_CHECK;
/* The same, with a look of its own. */
int api_write_one(struct json_out *w, struct api *api, struct arena *a, const struct replication *p,
                  struct err *err) MUST_CHECK;

/* Ends the source's notifications, unless another replication from the same bucket needs them. A
 * source that cannot be asked is logged. */
void api_notify_undo(struct api *api, const struct replication *p);

/* For the metrics: the number of replications; for an administrator also each of the first ones,
 * whose names of users and buckets nobody else may see. Replications that cannot be read now are
 * left out. */
void api_count_replications(struct api *api, struct http_request *req, struct metrics_input *in);

#endif
