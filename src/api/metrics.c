/* The table of metrics and its text form (Prometheus exposition format 0.0.4). */
#include "api/metrics.h"
#include "base/clock.h"
#include "base/vec.h"
#include "os/process.h"

/* A struct of numbers that rows point into; there may be several of a kind, told apart by label. */
enum source_kind {
    FROM_PROCESS,
    FROM_DB,
    FROM_POOL,
    FROM_SERVER,
    FROM_LIFECYCLE,
    FROM_NOTIFY,
    FROM_ACCESS_LOG,
    FROM_WORKER,
    FROM_QUEUE,
    FROM_REPLICATIONS,
    FROM_REPLICATION,
    FROM_TRACKER,
    FROM_SWARMS,
    FROM_SWARM_STORE,
    FROM_SHARE,
    FROM_PART
};

struct process_numbers {
    struct process_use use;
    uint64_t uptime_ms, started_ms, auth_failures, one;
};

struct part_numbers {
    uint64_t ready;
};

struct source {
    enum source_kind kind;
    const char *label; /* NULL: none */
    struct str label_value;
    const void *numbers;
};

struct sources {
    VEC(struct source) rows;
};

enum metric_type { COUNTER, GAUGE };

struct series {
    const char *labels; /* fixed ones; NULL: none */
    size_t offset;      /* of a uint64_t in the source's numbers */
};

struct metric {
    const char *name;
    enum metric_type type;
    const char *help;
    enum source_kind kind;
    size_t count;
    const struct series *series;
    unsigned divisor; /* 1000: milliseconds to seconds; 0: as it is */
};

#define SEVERAL(from, table) .kind = from, .count = ARRAY_SIZE(table), .series = table
#define ONE(from, type, member)                                                                    \
    .kind = from, .count = 1, .series = (&(const struct series){NULL, offsetof(type, member)})

#define PROCESS(member)      ONE(FROM_PROCESS, struct process_numbers, member)
#define PART(member)         ONE(FROM_PART, struct part_numbers, member)
#define DB(member)           ONE(FROM_DB, struct db_stats, member)
#define POOL(member)         ONE(FROM_POOL, struct pool_stats, member)
#define SERVER(member)       ONE(FROM_SERVER, struct http_server_stats, member)
#define LIFECYCLE(member)    ONE(FROM_LIFECYCLE, struct lifecycle_stats, member)
#define NOTIFY(member)       ONE(FROM_NOTIFY, struct notify_stats, member)
#define ACCESS_LOG(member)   ONE(FROM_ACCESS_LOG, struct access_log_stats, member)
#define WORKER(member)       ONE(FROM_WORKER, struct worker_stats, member)
#define QUEUE(member)        ONE(FROM_QUEUE, struct queue_stats, member)
#define REPLICATIONS(member) ONE(FROM_REPLICATIONS, struct metrics_replications, member)
#define REPLICATION(member)  ONE(FROM_REPLICATION, struct metrics_replication, member)
#define TRACKER(member)      ONE(FROM_TRACKER, struct tracker_stats, member)
#define SWARMS(member)       ONE(FROM_SWARMS, struct tracker_stats, member)
#define SWARM_STORE(member)  ONE(FROM_SWARM_STORE, struct tracker_stats, member)
#define SHARE(member)        ONE(FROM_SHARE, struct tracker_stats, member)

_Static_assert(sizeof(size_t) == sizeof(uint64_t),
               "pool_stats and worker_stats are read as uint64_t");

/* --- what metrics of several samples tell apart --- */

static const struct series build[] = {
    {"version=\"" WEIR_VERSION "\"", offsetof(struct process_numbers, one)},
};

#define CLASS(n) "class=\"" #n "xx\"", offsetof(struct http_server_stats, status[n])
static const struct series responses[] = {
    {CLASS(1)}, {CLASS(2)}, {CLASS(3)}, {CLASS(4)}, {CLASS(5)}};

#define TASKS(name, state) "state=\"" name "\"", offsetof(struct queue_stats, size[TASK_##state])
static const struct series tasks[] = {
    {TASKS("pending", PENDING)}, {TASKS("active", ACTIVE)},     {TASKS("scheduled", SCHEDULED)},
    {TASKS("retry", RETRY)},     {TASKS("archived", ARCHIVED)}, {TASKS("completed", COMPLETED)},
};

#define REQUESTS(labels, protocol, action)                                                         \
    labels, offsetof(struct tracker_stats, counts.requests[TRACKER_##protocol][ACTION_##action])
static const struct series requests[] = {
    {REQUESTS("protocol=\"http\",action=\"announce\"", HTTP, ANNOUNCE)},
    {REQUESTS("protocol=\"http\",action=\"scrape\"", HTTP, SCRAPE)},
    {REQUESTS("protocol=\"http\",action=\"error\"", HTTP, ERROR)},
    {REQUESTS("protocol=\"udp\",action=\"connect\"", UDP, CONNECT)},
    {REQUESTS("protocol=\"udp\",action=\"announce\"", UDP, ANNOUNCE)},
    {REQUESTS("protocol=\"udp\",action=\"scrape\"", UDP, SCRAPE)},
    {REQUESTS("protocol=\"udp\",action=\"error\"", UDP, ERROR)},
};

#define FAILURES(name, failure)                                                                    \
    "reason=\"" name "\"", offsetof(struct tracker_stats, counts.failures[SWARM_##failure])
static const struct series failures[] = {
    {FAILURES("malformed", MALFORMED)},
    {FAILURES("passkey", PASSKEY)},
    {FAILURES("user", USER)},
    {FAILURES("client", CLIENT)},
    {FAILURES("torrent", TORRENT)},
    {FAILURES("pruned", PRUNED)},
    {FAILURES("slots", SLOTS)},
    {FAILURES("peers", PEERS)},
    {FAILURES("port", PORT)},
    {FAILURES("full", FULL)},
    {FAILURES("unavailable", UNAVAILABLE)},
};
_Static_assert(ARRAY_SIZE(failures) == SWARM_FAILURE_COUNT - 1, "each failure has a row");

#define PEERS(labels, member) labels, offsetof(struct tracker_stats, swarms.member)
static const struct series peers[] = {
    {PEERS("family=\"ipv4\",role=\"seeder\"", seeders4)},
    {PEERS("family=\"ipv4\",role=\"leecher\"", leechers4)},
    {PEERS("family=\"ipv6\",role=\"seeder\"", seeders6)},
    {PEERS("family=\"ipv6\",role=\"leecher\"", leechers6)},
};

/* --- the table --- */

static const struct metric metrics[] = {
    {"weir_build_info", GAUGE, "Which weir this is.", SEVERAL(FROM_PROCESS, build)},
    {"weir_uptime_seconds", GAUGE, "Since the start.", PROCESS(uptime_ms), .divisor = 1000},
    {"process_start_time_seconds", GAUGE, "When it was started, since 1970.", PROCESS(started_ms),
     .divisor = 1000},
    {"process_cpu_seconds_total", COUNTER, "User and system time.", PROCESS(use.cpu_ms),
     .divisor = 1000},
    {"process_resident_memory_bytes", GAUGE, "Resident memory.", PROCESS(use.rss_bytes)},
    {"process_open_fds", GAUGE, "Descriptors open.", PROCESS(use.files)},
    {"process_threads", GAUGE, "Threads.", PROCESS(use.threads)},
    {"weir_ready", GAUGE, "1 when the part answered its last check.", PART(ready)},
    {"weir_api_auth_failures_total", COUNTER, "API calls with wrong keys.", PROCESS(auth_failures)},
    {"weir_http_connections", GAUGE, "Connections open.", SERVER(connections)},
    {"weir_http_accepted_total", COUNTER, "Connections accepted.", SERVER(accepted)},
    {"weir_http_refused_total", COUNTER, "Connections over a cap, and requests without a seat.",
     SERVER(refused)},
    {"weir_http_requests_total", COUNTER, "Requests answered.", SERVER(requests)},
    {"weir_http_bad_requests_total", COUNTER, "Requests refused by the parser or a limit.",
     SERVER(bad_requests)},
    {"weir_http_timeouts_total", COUNTER, "Connections dropped for being slow.", SERVER(timeouts)},
    {"weir_http_responses_total", COUNTER, "Responses by class of status.",
     SEVERAL(FROM_SERVER, responses)},
    {"weir_http_received_bytes_total", COUNTER, "Bytes received.", SERVER(bytes_in)},
    {"weir_http_sent_bytes_total", COUNTER, "Bytes sent.", SERVER(bytes_out)},
    {"weir_pool_threads", GAUGE, "Threads for requests that wait.", POOL(threads)},
    {"weir_pool_busy", GAUGE, "Of these, how many work.", POOL(busy)},
    {"weir_pool_aside", GAUGE, "Of these, how many wait for a peer's bytes.", POOL(aside)},
    {"weir_pool_waiting", GAUGE, "Requests waiting for one.", POOL(waiting)},
    {"weir_db_changes_total", COUNTER, "Changes committed.", DB(changes)},
    {"weir_db_groups_total", COUNTER, "Groups of changes written at once.", DB(groups)},
    {"weir_db_syncs_total", COUNTER, "Times the log was synced to disk.", DB(syncs)},
    {"weir_db_failed_total", COUNTER, "Changes undone by their own error.", DB(failed)},
    {"weir_db_memory_bytes", GAUGE, "Cache, write buffers and table readers.", DB(memory_bytes)},
    {"weir_db_disk_bytes", GAUGE, "Size of the files.", DB(disk_bytes)},
    {"weir_notify_pending", GAUGE, "Events that wait for their webhook.", NOTIFY(pending)},
    {"weir_notify_oldest_seconds", GAUGE, "Age of the oldest.", NOTIFY(oldest_ms), .divisor = 1000},
    {"weir_notify_delivered_total", COUNTER, "Events delivered.", NOTIFY(delivered)},
    {"weir_notify_failed_total", COUNTER, "Calls of webhooks that were not taken.", NOTIFY(failed)},
    {"weir_notify_dropped_total", COUNTER, "Events given up.", NOTIFY(dropped)},
    {"weir_access_log_records_total", COUNTER, "Requests recorded in buckets' logs.",
     ACCESS_LOG(records)},
    {"weir_access_log_delivered_total", COUNTER, "Records delivered to their target.",
     ACCESS_LOG(delivered)},
    {"weir_access_log_objects_total", COUNTER, "Log objects made.", ACCESS_LOG(objects)},
    {"weir_access_log_failed_total", COUNTER, "Deliveries put off.", ACCESS_LOG(failed)},
    {"weir_access_log_dropped_total", COUNTER, "Records given up.", ACCESS_LOG(dropped)},
    {"weir_queue_tasks", GAUGE, "Tasks of background work, by queue and state.",
     SEVERAL(FROM_QUEUE, tasks)},
    {"weir_queue_processed_total", COUNTER, "Runs of tasks that came to an end, failed or not.",
     QUEUE(processed)},
    {"weir_queue_failed_total", COUNTER, "Runs of tasks that failed.", QUEUE(failed)},
    {"weir_queue_latency_seconds", GAUGE, "Age of the oldest task that waits for a worker.",
     QUEUE(latency_ms), .divisor = 1000},
    {"weir_worker_threads", GAUGE, "Threads that run tasks.", WORKER(threads)},
    {"weir_worker_busy", GAUGE, "Of these, how many run one.", WORKER(busy)},
    {"weir_worker_done_total", COUNTER, "Tasks done by this weir.", WORKER(done)},
    {"weir_worker_failed_total", COUNTER, "Tries that failed here.", WORKER(failed)},
    {"weir_worker_put_back_total", COUNTER, "Tasks put back here without using a try.",
     WORKER(put_back)},
    {"weir_replications", GAUGE, "Replications of buckets.", REPLICATIONS(count)},
    {"weir_replications_paused", GAUGE, "Of these, paused ones.", REPLICATIONS(paused)},
    {"weir_replication_objects", GAUGE,
     "Objects of the first copy, for administrators alone, as the following ones.",
     REPLICATION(objects)},
    {"weir_replication_objects_done", GAUGE, "Of these, copied ones.", REPLICATION(objects_done)},
    {"weir_replication_objects_failed", GAUGE, "Of these, given up ones.",
     REPLICATION(objects_failed)},
    {"weir_replication_bytes", GAUGE, "Bytes of the first copy.", REPLICATION(bytes)},
    {"weir_replication_bytes_done", GAUGE, "Of these, copied ones.", REPLICATION(bytes_done)},
    {"weir_replication_lag", GAUGE, "Changes that have not reached the destination yet.",
     REPLICATION(lag)},
    {"weir_tracker_requests_total", COUNTER,
     "Requests to the tracker; errors are among the others too.", SEVERAL(FROM_TRACKER, requests)},
    {"weir_tracker_failures_total", COUNTER, "Announces and scrapes refused.",
     SEVERAL(FROM_TRACKER, failures)},
    {"weir_tracker_bad_connection_ids_total", COUNTER,
     "UDP packets whose connection id is not ours.", TRACKER(counts.bad_connection_ids)},
    {"weir_tracker_banned_total", COUNTER, "UDP packets of addresses that are banned.",
     TRACKER(counts.banned)},
    {"weir_tracker_dropped_total", COUNTER, "UDP packets that were not answered.",
     TRACKER(counts.dropped)},
    {"weir_tracker_reaped_total", COUNTER, "Peers that this tracker took out of the store.",
     TRACKER(reaped)},
    {"weir_tracker_torrents", GAUGE, "Torrents in memory (public mode).", SWARMS(swarms.torrents)},
    {"weir_tracker_torrents_added", GAUGE, "Of these, added ones.", SWARMS(swarms.added)},
    {"weir_tracker_peers", GAUGE, "Peers in memory (public mode).", SEVERAL(FROM_SWARMS, peers)},
    {"weir_tracker_snatches_total", COUNTER, "Downloads that were completed.",
     SWARMS(swarms.snatches)},
    {"weir_tracker_evicted_total", COUNTER, "Torrents displaced by others.",
     SWARMS(swarms.evicted)},
    {"weir_tracker_crowded_total", COUNTER,
     "Announces past the bound of peers of an address, answered and not kept.",
     SWARMS(swarms.crowded)},
    {"weir_tracker_memory_bytes", GAUGE, "Memory of torrents and peers.", SWARMS(swarms.bytes)},
    {"weir_tracker_store_torrents", GAUGE, "Torrents in the store (private mode).",
     SWARM_STORE(store.torrents)},
    {"weir_tracker_store_users", GAUGE, "Users in the store.", SWARM_STORE(store.users)},
    {"weir_tracker_store_peers", GAUGE, "Peers in the store.", SWARM_STORE(store.peers)},
    {"weir_tracker_share_waiting", GAUGE, "Changes of peers that wait for the store.",
     SHARE(share.waiting)},
    {"weir_tracker_share_written_total", COUNTER, "Changes written to the store.",
     SHARE(share.written)},
    {"weir_tracker_share_told_total", COUNTER, "Changes told to other trackers.",
     SHARE(share.told)},
    {"weir_tracker_share_applied_total", COUNTER, "Changes that other trackers told of.",
     SHARE(share.applied)},
    {"weir_tracker_share_dropped_total", COUNTER, "Changes that were not told, as too many waited.",
     SHARE(share.dropped)},
    {"weir_tracker_share_refused_total", COUNTER, "Changes that the store refused for good.",
     SHARE(share.refused)},
    {"weir_tracker_share_behind", GAUGE, "1 while the store cannot be asked.", SHARE(share.behind)},
#define X(name, help) {"weir_lifecycle_" #name "_total", COUNTER, help, LIFECYCLE(counts.name)},
    LIFECYCLE_COUNTS(X)
#undef X
        {"weir_lifecycle_sweeps_total", COUNTER, "Sweeps over all buckets that came to their end.",
         LIFECYCLE(sweeps)},
    {"weir_lifecycle_buckets_total", COUNTER, "Buckets swept to their end.", LIFECYCLE(buckets)},
    {"weir_lifecycle_failures_total", COUNTER, "Buckets given up until the next interval.",
     LIFECYCLE(failures)},
    {"weir_lifecycle_running", GAUGE, "1 while a sweep is under way.", LIFECYCLE(running)},
    {"weir_lifecycle_last_sweep_seconds", GAUGE, "When the last sweep ended, since 1970.",
     LIFECYCLE(last_ms), .divisor = 1000},
    {"weir_lifecycle_last_sweep_duration_seconds", GAUGE, "How long it took, its waits included.",
     LIFECYCLE(last_took_ms), .divisor = 1000},
};

static void write_head(struct buf *out, const struct metric *m)
{
    buf_appendf(out, "# HELP %s %s\n# TYPE %s %s\n", m->name, m->help, m->name,
                m->type == COUNTER ? "counter" : "gauge");
}

/* Label values are quoted: what the format escapes is all that may not stand there. */
static void write_label(struct buf *out, const struct source *s)
{
    buf_appendf(out, "%s=\"", s->label);
    for (size_t i = 0; i < s->label_value.len; i++) {
        char c = s->label_value.p[i];
        if (c == '\n')
            buf_append_z(out, "\\n");
        else if (c == '"' || c == '\\')
            buf_appendf(out, "\\%c", c);
        else
            buf_append_char(out, c);
    }
    buf_append_char(out, '"');
}

static void write_sample(struct buf *out, const struct metric *m, const struct series *series,
                         const struct source *s)
{
    const char *labels = series->labels;
    uint64_t value;

    memcpy(&value, (const char *)s->numbers + series->offset, sizeof(value));
    buf_append_z(out, m->name);
    if (s->label || labels)
        buf_append_char(out, '{');
    if (s->label)
        write_label(out, s);
    if (labels)
        buf_appendf(out, "%s%s", s->label ? "," : "", labels);
    if (s->label || labels)
        buf_append_char(out, '}');
    if (m->divisor)
        buf_appendf(out, " %ju.%03ju\n", (uintmax_t)(value / m->divisor),
                    (uintmax_t)(value % m->divisor));
    else
        buf_appendf(out, " %ju\n", (uintmax_t)value);
}

static void write_metric(struct buf *out, const struct metric *m, const struct sources *sources)
{
    write_head(out, m);
    for (size_t i = 0; i < m->count; i++)
        vec_each (&sources->rows, const struct source *, s)
            if (s->kind == m->kind)
                write_sample(out, m, &m->series[i], s);
}

static void add(struct sources *s, enum source_kind kind, const void *numbers)
{
    vec_push(&s->rows, ((struct source){.kind = kind, .numbers = numbers}));
}

static void add_labelled(struct sources *s, enum source_kind kind, const char *label,
                         struct str value, const void *numbers)
{
    vec_push(&s->rows, ((struct source){kind, label, value, numbers}));
}

enum { MAX_SERVERS = 8, MAX_QUEUES = 32 };

static void add_tracker(struct sources *s, struct tracker *t, struct tracker_stats *stats)
{
    tracker_stats(t, stats);
    add(s, FROM_TRACKER, stats);
    add(s, tracker_settings(t)->mode == TRACKER_PUBLIC ? FROM_SWARMS : FROM_SWARM_STORE, stats);
    if (stats->share.on)
        add(s, FROM_SHARE, stats);
}

void metrics_write(const struct metrics_input *in, struct buf *out)
{
    struct process_numbers process = {
        .uptime_ms = clock_mono_ms() - in->started_mono_ms,
        .started_ms = (uint64_t)in->started_wall_ms,
        .auth_failures = atomic_load(&in->auth->failures),
        .one = 1,
    };
    struct pool_stats pool = pool_stats(in->pool);
    struct db_stats db;
    struct lifecycle_stats lifecycle;
    struct notify_stats notify;
    struct access_log_stats access_log;
    struct worker_stats worker;
    struct tracker_stats tracker;
    struct http_server_stats servers[MAX_SERVERS];
    struct ready_state states[READY_MAX_PARTS];
    struct part_numbers ready[READY_MAX_PARTS];
    struct sources sources = {0};

    BUG_ON(in->server_count > MAX_SERVERS);
    process_use(&process.use);
    db_stats(in->db, &db);
    ready_last(in->ready, states);
    notify_stats(in->notify, &notify);
    add(&sources, FROM_PROCESS, &process);
    add(&sources, FROM_DB, &db);
    add(&sources, FROM_POOL, &pool);
    add(&sources, FROM_NOTIFY, &notify);
    if (in->lifecycle) {
        lifecycle_worker_stats(in->lifecycle, &lifecycle);
        add(&sources, FROM_LIFECYCLE, &lifecycle);
    }
    if (in->access_log) {
        access_log_stats(in->access_log, &access_log);
        add(&sources, FROM_ACCESS_LOG, &access_log);
    }
    if (in->worker) {
        worker_stats(in->worker, &worker);
        add(&sources, FROM_WORKER, &worker);
    }
    if (in->tracker)
        add_tracker(&sources, in->tracker, &tracker);
    for (size_t i = 0; i < size_min(in->queue_count, MAX_QUEUES); i++)
        add_labelled(&sources, FROM_QUEUE, "queue", in->queues[i].name, &in->queues[i]);
    if (in->replications)
        add(&sources, FROM_REPLICATIONS, in->replications);
    for (size_t i = 0; i < in->replication_count; i++)
        add_labelled(&sources, FROM_REPLICATION, "replication", in->each_replication[i].id,
                     &in->each_replication[i]);
    for (size_t i = 0; i < in->server_count; i++) {
        if (!in->servers[i].server)
            continue;
        http_server_stats(in->servers[i].server, &servers[i]);
        add_labelled(&sources, FROM_SERVER, "server", str_z(in->servers[i].name), &servers[i]);
    }
    for (size_t i = 0; i < in->ready->count; i++) {
        ready[i].ready = states[i].code == 0;
        add_labelled(&sources, FROM_PART, "part", str_z(in->ready->parts[i].name), &ready[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(metrics); i++)
        write_metric(out, &metrics[i], &sources);
    vec_release(&sources.rows);
}
