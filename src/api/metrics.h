/* Prometheus metrics of the gateway and of the program: one table, written as text. */
#ifndef API_METRICS_H
#define API_METRICS_H

#include "api/auth.h"
#include "room/metrics.h"
#include "room/services.h"
#include "base/buf.h"
#include "coord/worker.h"
#include "db/db.h"
#include "http/server.h"
#include "s3/log/access_log.h"
#include "s3/lifecycle/lifecycle_worker.h"
#include "s3/notify/notify.h"

/* The sources of the numbers; all borrowed. */
struct metrics_input {
    struct db *db;
    struct pool *pool;
    struct auth *auth;
    struct ready *ready;
    struct notify *notify;
    struct access_log *access_log; /* NULL: there is none */
    const struct named_server *servers;
    size_t server_count;
    struct lifecycle_worker *lifecycle; /* NULL: not running in this process */
    struct worker *worker;              /* NULL: not running in this process */
    const struct queue_stats *queues;   /* the first 32 are shown */
    size_t queue_count;
    uint64_t started_mono_ms;
    int64_t started_wall_ms;
};

void metrics_write(const struct metrics_input *in, struct buf *out);

#endif
