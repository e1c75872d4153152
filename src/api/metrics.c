/* The table of metrics of the gateway and of the program itself. */
#include "api/metrics.h"
#include "base/clock.h"
#include "base/vec.h"
#include "os/process.h"

/* The kinds of structs from which rows read their numbers. Several structs of one kind differ in
 * their label. */
enum {
    FROM_PROCESS,
    FROM_DB,
    FROM_POOL,
    FROM_SERVER,
    FROM_LIFECYCLE,
    FROM_NOTIFY,
    FROM_ACCESS_LOG,
    FROM_WORKER,
    FROM_QUEUE,
    FROM_PART
};

struct process_numbers {
    struct process_use use;
    uint64_t uptime_ms, started_ms, auth_failures, one;
};

struct part_numbers {
    uint64_t ready;
};

#define PROCESS(member)    METRIC_ONE(FROM_PROCESS, struct process_numbers, member)
#define PART(member)       METRIC_ONE(FROM_PART, struct part_numbers, member)
#define DB(member)         METRIC_ONE(FROM_DB, struct db_stats, member)
#define POOL(member)       METRIC_ONE(FROM_POOL, struct pool_stats, member)
#define SERVER(member)     METRIC_ONE(FROM_SERVER, struct http_server_stats, member)
#define LIFECYCLE(member)  METRIC_ONE(FROM_LIFECYCLE, struct lifecycle_stats, member)
#define NOTIFY(member)     METRIC_ONE(FROM_NOTIFY, struct notify_stats, member)
#define ACCESS_LOG(member) METRIC_ONE(FROM_ACCESS_LOG, struct access_log_stats, member)
#define WORKER(member)     METRIC_ONE(FROM_WORKER, struct worker_stats, member)
#define QUEUE(member)      METRIC_ONE(FROM_QUEUE, struct queue_stats, member)

_Static_assert(sizeof(size_t) == sizeof(uint64_t),
               "pool_stats and worker_stats are read as uint64_t");

/* --- series of metrics that have several samples --- */

static const struct metric_series build[] = {
    {"version=\"" WEIR_VERSION "\"", offsetof(struct process_numbers, one)},
};

#define CLASS(n) "class=\"" #n "xx\"", offsetof(struct http_server_stats, status[n])
static const struct metric_series responses[] = {
    {CLASS(1)}, {CLASS(2)}, {CLASS(3)}, {CLASS(4)}, {CLASS(5)}};

#define TASKS(name, state) "state=\"" name "\"", offsetof(struct queue_stats, size[TASK_##state])
static const struct metric_series tasks[] = {
    {TASKS("pending", PENDING)}, {TASKS("active", ACTIVE)},     {TASKS("scheduled", SCHEDULED)},
    {TASKS("retry", RETRY)},     {TASKS("archived", ARCHIVED)}, {TASKS("completed", COMPLETED)},
};

/* --- the table --- */

static const struct metric metrics[] = {
    {"weir_build_info", METRIC_GAUGE, "Which weir this is.", METRIC_SEVERAL(FROM_PROCESS, build)},
    {"weir_uptime_seconds", METRIC_GAUGE, "Since the start.", PROCESS(uptime_ms),
     .divisor = MS_PER_S},
    {"process_start_time_seconds", METRIC_GAUGE, "When it was started, since 1970.",
     PROCESS(started_ms), .divisor = MS_PER_S},
    {"process_cpu_seconds_total", METRIC_COUNTER, "User and system time.", PROCESS(use.cpu_ms),
     .divisor = MS_PER_S},
    {"process_resident_memory_bytes", METRIC_GAUGE, "Resident memory.", PROCESS(use.rss_bytes)},
    {"process_open_fds", METRIC_GAUGE, "Descriptors open.", PROCESS(use.files)},
    {"process_threads", METRIC_GAUGE, "Threads.", PROCESS(use.threads)},
    {"weir_ready", METRIC_GAUGE, "1 when the part answered its last check.", PART(ready)},
    {"weir_api_auth_failures_total", METRIC_COUNTER, "API calls with wrong keys.",
     PROCESS(auth_failures)},
    {"weir_http_connections", METRIC_GAUGE, "Connections open.", SERVER(connections)},
    {"weir_http_accepted_total", METRIC_COUNTER, "Connections accepted.", SERVER(accepted)},
    {"weir_http_refused_total", METRIC_COUNTER,
     "Connections over a cap, and requests without a seat.", SERVER(refused)},
    {"weir_http_requests_total", METRIC_COUNTER, "Requests answered.", SERVER(requests)},
    {"weir_http_bad_requests_total", METRIC_COUNTER, "Requests refused by the parser or a limit.",
     SERVER(bad_requests)},
    {"weir_http_timeouts_total", METRIC_COUNTER, "Connections dropped for being slow.",
     SERVER(timeouts)},
    {"weir_http_responses_total", METRIC_COUNTER, "Responses by class of status.",
     METRIC_SEVERAL(FROM_SERVER, responses)},
    {"weir_http_received_bytes_total", METRIC_COUNTER, "Bytes received.", SERVER(bytes_in)},
    {"weir_http_sent_bytes_total", METRIC_COUNTER, "Bytes sent.", SERVER(bytes_out)},
    {"weir_pool_threads", METRIC_GAUGE, "Threads for requests that wait.", POOL(threads)},
    {"weir_pool_busy", METRIC_GAUGE, "Of these, how many work.", POOL(busy)},
    {"weir_pool_aside", METRIC_GAUGE, "Of these, how many wait for a peer's bytes.", POOL(aside)},
    {"weir_pool_waiting", METRIC_GAUGE, "Requests waiting for one.", POOL(waiting)},
    {"weir_db_changes_total", METRIC_COUNTER, "Changes committed.", DB(changes)},
    {"weir_db_groups_total", METRIC_COUNTER, "Groups of changes written at once.", DB(groups)},
    {"weir_db_syncs_total", METRIC_COUNTER, "Times the log was synced to disk.", DB(syncs)},
    {"weir_db_failed_total", METRIC_COUNTER, "Changes undone by their own error.", DB(failed)},
    {"weir_db_memory_bytes", METRIC_GAUGE, "Cache, write buffers and table readers.",
     DB(memory_bytes)},
    {"weir_db_disk_bytes", METRIC_GAUGE, "Size of the files.", DB(disk_bytes)},
    {"weir_notify_pending", METRIC_GAUGE, "Events that wait for their webhook.", NOTIFY(pending)},
    {"weir_notify_oldest_seconds", METRIC_GAUGE, "Age of the oldest.", NOTIFY(oldest_ms),
     .divisor = MS_PER_S},
    {"weir_notify_delivered_total", METRIC_COUNTER, "Events delivered.", NOTIFY(delivered)},
    {"weir_notify_failed_total", METRIC_COUNTER, "Calls of webhooks that were not taken.",
     NOTIFY(failed)},
    {"weir_notify_dropped_total", METRIC_COUNTER, "Events given up.", NOTIFY(dropped)},
    {"weir_access_log_records_total", METRIC_COUNTER, "Requests recorded in buckets' logs.",
     ACCESS_LOG(records)},
    {"weir_access_log_delivered_total", METRIC_COUNTER, "Records delivered to their target.",
     ACCESS_LOG(delivered)},
    {"weir_access_log_objects_total", METRIC_COUNTER, "Log objects made.", ACCESS_LOG(objects)},
    {"weir_access_log_failed_total", METRIC_COUNTER, "Deliveries put off.", ACCESS_LOG(failed)},
    {"weir_access_log_dropped_total", METRIC_COUNTER, "Records given up.", ACCESS_LOG(dropped)},
    {"weir_queue_tasks", METRIC_GAUGE, "Tasks of background work, by queue and state.",
     METRIC_SEVERAL(FROM_QUEUE, tasks)},
    {"weir_queue_processed_total", METRIC_COUNTER,
     "Runs of tasks that came to an end, failed or not.", QUEUE(processed)},
    {"weir_queue_failed_total", METRIC_COUNTER, "Runs of tasks that failed.", QUEUE(failed)},
    {"weir_queue_latency_seconds", METRIC_GAUGE, "Age of the oldest task that waits for a worker.",
     QUEUE(latency_ms), .divisor = MS_PER_S},
    {"weir_worker_threads", METRIC_GAUGE, "Threads that run tasks.", WORKER(threads)},
    {"weir_worker_busy", METRIC_GAUGE, "Of these, how many run one.", WORKER(busy)},
    {"weir_worker_done_total", METRIC_COUNTER, "Tasks done by this weir.", WORKER(done)},
    {"weir_worker_failed_total", METRIC_COUNTER, "Tries that failed here.", WORKER(failed)},
    {"weir_worker_put_back_total", METRIC_COUNTER, "Tasks put back here without using a try.",
     WORKER(put_back)},
#define X(name, help)                                                                              \
    {"weir_lifecycle_" #name "_total", METRIC_COUNTER, help, LIFECYCLE(counts.name)},
    LIFECYCLE_COUNTS(X)
#undef X
        {"weir_lifecycle_sweeps_total", METRIC_COUNTER,
         "Sweeps over all buckets that came to their end.", LIFECYCLE(sweeps)},
    {"weir_lifecycle_buckets_total", METRIC_COUNTER, "Buckets swept to their end.",
     LIFECYCLE(buckets)},
    {"weir_lifecycle_failures_total", METRIC_COUNTER, "Buckets given up until the next interval.",
     LIFECYCLE(failures)},
    {"weir_lifecycle_running", METRIC_GAUGE, "1 while a sweep is under way.", LIFECYCLE(running)},
    {"weir_lifecycle_last_sweep_seconds", METRIC_GAUGE, "When the last sweep ended, since 1970.",
     LIFECYCLE(last_ms), .divisor = MS_PER_S},
    {"weir_lifecycle_last_sweep_duration_seconds", METRIC_GAUGE,
     "How long it took, its waits included.", LIFECYCLE(last_took_ms), .divisor = MS_PER_S},
};

enum { MAX_SERVERS = SERVICES_SERVERS_MAX + 1, MAX_QUEUES = 32 };

void metrics_write(const struct metrics_input *in, struct buf *out)
{
    struct process_numbers process = {
        .uptime_ms = clock_mono_ms() - in->started_mono_ms,
        .started_ms = (uint64_t)in->started_wall_ms,
        .auth_failures = atomic_load(&in->auth->guesses.failures),
        .one = 1,
    };
    struct pool_stats pool = pool_stats(in->pool);
    struct db_stats db;
    struct lifecycle_stats lifecycle;
    struct notify_stats notify;
    struct access_log_stats access_log;
    struct worker_stats worker;
    struct http_server_stats servers[MAX_SERVERS];
    struct ready_state states[READY_MAX_PARTS];
    struct part_numbers ready[READY_MAX_PARTS];
    struct metric_numbers numbers = {0};

    BUG_ON(in->server_count > MAX_SERVERS);
    process_use(&process.use);
    db_stats(in->db, &db);
    ready_last(in->ready, states);
    notify_stats(in->notify, &notify);
    metric_numbers_add(&numbers, FROM_PROCESS, &process);
    metric_numbers_add(&numbers, FROM_DB, &db);
    metric_numbers_add(&numbers, FROM_POOL, &pool);
    metric_numbers_add(&numbers, FROM_NOTIFY, &notify);
    if (in->lifecycle) {
        lifecycle_worker_stats(in->lifecycle, &lifecycle);
        metric_numbers_add(&numbers, FROM_LIFECYCLE, &lifecycle);
    }
    if (in->access_log) {
        access_log_stats(in->access_log, &access_log);
        metric_numbers_add(&numbers, FROM_ACCESS_LOG, &access_log);
    }
    if (in->worker) {
        worker_stats(in->worker, &worker);
        metric_numbers_add(&numbers, FROM_WORKER, &worker);
    }
    for (size_t i = 0; i < size_min(in->queue_count, MAX_QUEUES); i++)
        metric_numbers_add_labelled(&numbers, FROM_QUEUE, "queue", in->queues[i].name,
                                    &in->queues[i]);
    for (size_t i = 0; i < in->server_count; i++) {
        http_server_stats(in->servers[i].server, &servers[i]);
        metric_numbers_add_labelled(&numbers, FROM_SERVER, "server", str_z(in->servers[i].name),
                                    &servers[i]);
    }
    for (size_t i = 0; i < in->ready->count; i++) {
        ready[i].ready = states[i].code == 0;
        metric_numbers_add_labelled(&numbers, FROM_PART, "part", str_z(in->ready->parts[i].name),
                                    &ready[i]);
    }
    metrics_text(out, metrics, ARRAY_SIZE(metrics), &numbers);
    metric_numbers_release(&numbers);
}
