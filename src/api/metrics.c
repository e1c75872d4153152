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

struct metric {
    const char *name;
    enum metric_type type;
    enum source_kind kind;
    size_t offset;      /* of a uint64_t in the source's numbers */
    unsigned divisor;   /* 1000: milliseconds to seconds; 0: as it is */
    const char *labels; /* fixed ones of this row; NULL: none */
    const char *help;
};

#define PROCESS(member)    FROM_PROCESS, offsetof(struct process_numbers, member)
#define DB(member)         FROM_DB, offsetof(struct db_stats, member)
#define POOL(member)       FROM_POOL, offsetof(struct pool_stats, member)
#define SERVER(member)     FROM_SERVER, offsetof(struct http_server_stats, member)
#define LIFECYCLE(member)  FROM_LIFECYCLE, offsetof(struct lifecycle_stats, member)
#define NOTIFY(member)     FROM_NOTIFY, offsetof(struct notify_stats, member)
#define ACCESS_LOG(member) FROM_ACCESS_LOG, offsetof(struct access_log_stats, member)
#define WORKER(member)     FROM_WORKER, offsetof(struct worker_stats, member)
#define QUEUE(member)      FROM_QUEUE, offsetof(struct queue_stats, member)

#define REPLICATIONS(member) FROM_REPLICATIONS, offsetof(struct metrics_replications, member)
#define REPLICATION(member)  FROM_REPLICATION, offsetof(struct metrics_replication, member)

#define TRACKER(member)     FROM_TRACKER, offsetof(struct tracker_stats, member)
#define SWARMS(member)      FROM_SWARMS, offsetof(struct tracker_stats, member)
#define SWARM_STORE(member) FROM_SWARM_STORE, offsetof(struct tracker_stats, member)
#define SHARE(member)       FROM_SHARE, offsetof(struct tracker_stats, member)

_Static_assert(SWARM_FAILURE_COUNT == 12, "each failure has a row");
_Static_assert(sizeof(size_t) == sizeof(uint64_t),
               "pool_stats and worker_stats are read as uint64_t");

/* Rows of one name stand together: HELP and TYPE are written once. */
static const struct metric metrics[] = {
    {"weir_build_info", GAUGE, PROCESS(one), 0, "version=\"" WEIR_VERSION "\"",
     "Which weir this is."},
    {"weir_uptime_seconds", GAUGE, PROCESS(uptime_ms), 1000, NULL, "Since the start."},
    {"process_start_time_seconds", GAUGE, PROCESS(started_ms), 1000, NULL,
     "When it was started, since 1970."},
    {"process_cpu_seconds_total", COUNTER, PROCESS(use.cpu_ms), 1000, NULL,
     "User and system time."},
    {"process_resident_memory_bytes", GAUGE, PROCESS(use.rss_bytes), 0, NULL, "Resident memory."},
    {"process_open_fds", GAUGE, PROCESS(use.files), 0, NULL, "Descriptors open."},
    {"process_threads", GAUGE, PROCESS(use.threads), 0, NULL, "Threads."},
    {"weir_ready", GAUGE, FROM_PART, 0, 0, NULL, "1 when the part answered its last check."},
    {"weir_api_auth_failures_total", COUNTER, PROCESS(auth_failures), 0, NULL,
     "API calls with wrong keys."},
    {"weir_http_connections", GAUGE, SERVER(connections), 0, NULL, "Connections open."},
    {"weir_http_accepted_total", COUNTER, SERVER(accepted), 0, NULL, "Connections accepted."},
    {"weir_http_refused_total", COUNTER, SERVER(refused), 0, NULL, "Connections over a cap."},
    {"weir_http_requests_total", COUNTER, SERVER(requests), 0, NULL, "Requests answered."},
    {"weir_http_bad_requests_total", COUNTER, SERVER(bad_requests), 0, NULL,
     "Requests refused by the parser or a limit."},
    {"weir_http_timeouts_total", COUNTER, SERVER(timeouts), 0, NULL,
     "Connections dropped for being slow."},
    {"weir_http_responses_total", COUNTER, SERVER(status[1]), 0, "class=\"1xx\"",
     "Responses by class of status."},
    {"weir_http_responses_total", COUNTER, SERVER(status[2]), 0, "class=\"2xx\"", NULL},
    {"weir_http_responses_total", COUNTER, SERVER(status[3]), 0, "class=\"3xx\"", NULL},
    {"weir_http_responses_total", COUNTER, SERVER(status[4]), 0, "class=\"4xx\"", NULL},
    {"weir_http_responses_total", COUNTER, SERVER(status[5]), 0, "class=\"5xx\"", NULL},
    {"weir_http_received_bytes_total", COUNTER, SERVER(bytes_in), 0, NULL, "Bytes received."},
    {"weir_http_sent_bytes_total", COUNTER, SERVER(bytes_out), 0, NULL, "Bytes sent."},
    {"weir_pool_threads", GAUGE, POOL(threads), 0, NULL, "Threads for requests that wait."},
    {"weir_pool_busy", GAUGE, POOL(busy), 0, NULL, "Of these, how many work."},
    {"weir_pool_waiting", GAUGE, POOL(waiting), 0, NULL, "Requests waiting for one."},
    {"weir_db_changes_total", COUNTER, DB(changes), 0, NULL, "Changes committed."},
    {"weir_db_groups_total", COUNTER, DB(groups), 0, NULL, "Groups of changes written at once."},
    {"weir_db_syncs_total", COUNTER, DB(syncs), 0, NULL, "Times the log was synced to disk."},
    {"weir_db_failed_total", COUNTER, DB(failed), 0, NULL, "Changes undone by their own error."},
    {"weir_db_memory_bytes", GAUGE, DB(memory_bytes), 0, NULL,
     "Cache, write buffers and table readers."},
    {"weir_db_disk_bytes", GAUGE, DB(disk_bytes), 0, NULL, "Size of the files."},
    {"weir_notify_pending", GAUGE, NOTIFY(pending), 0, NULL, "Events that wait for their webhook."},
    {"weir_notify_oldest_seconds", GAUGE, NOTIFY(oldest_ms), 1000, NULL, "Age of the oldest."},
    {"weir_notify_delivered_total", COUNTER, NOTIFY(delivered), 0, NULL, "Events delivered."},
    {"weir_notify_failed_total", COUNTER, NOTIFY(failed), 0, NULL,
     "Calls of webhooks that were not taken."},
    {"weir_notify_dropped_total", COUNTER, NOTIFY(dropped), 0, NULL, "Events given up."},
    {"weir_access_log_records_total", COUNTER, ACCESS_LOG(records), 0, NULL,
     "Requests recorded in buckets' logs."},
    {"weir_access_log_delivered_total", COUNTER, ACCESS_LOG(delivered), 0, NULL,
     "Records delivered to their target."},
    {"weir_access_log_objects_total", COUNTER, ACCESS_LOG(objects), 0, NULL, "Log objects made."},
    {"weir_access_log_failed_total", COUNTER, ACCESS_LOG(failed), 0, NULL, "Deliveries put off."},
    {"weir_access_log_dropped_total", COUNTER, ACCESS_LOG(dropped), 0, NULL, "Records given up."},
    {"weir_queue_tasks", GAUGE, QUEUE(size[TASK_PENDING]), 0, "state=\"pending\"",
     "Tasks of background work, by queue and state."},
    {"weir_queue_tasks", GAUGE, QUEUE(size[TASK_ACTIVE]), 0, "state=\"active\"", NULL},
    {"weir_queue_tasks", GAUGE, QUEUE(size[TASK_SCHEDULED]), 0, "state=\"scheduled\"", NULL},
    {"weir_queue_tasks", GAUGE, QUEUE(size[TASK_RETRY]), 0, "state=\"retry\"", NULL},
    {"weir_queue_tasks", GAUGE, QUEUE(size[TASK_ARCHIVED]), 0, "state=\"archived\"", NULL},
    {"weir_queue_tasks", GAUGE, QUEUE(size[TASK_COMPLETED]), 0, "state=\"completed\"", NULL},
    {"weir_queue_processed_total", COUNTER, QUEUE(processed), 0, NULL,
     "Runs of tasks that came to an end, failed or not."},
    {"weir_queue_failed_total", COUNTER, QUEUE(failed), 0, NULL, "Runs of tasks that failed."},
    {"weir_queue_latency_seconds", GAUGE, QUEUE(latency_ms), 1000, NULL,
     "Age of the oldest task that waits for a worker."},
    {"weir_worker_threads", GAUGE, WORKER(threads), 0, NULL, "Threads that run tasks."},
    {"weir_worker_busy", GAUGE, WORKER(busy), 0, NULL, "Of these, how many run one."},
    {"weir_worker_done_total", COUNTER, WORKER(done), 0, NULL, "Tasks done by this weir."},
    {"weir_worker_failed_total", COUNTER, WORKER(failed), 0, NULL, "Tries that failed here."},
    {"weir_worker_put_back_total", COUNTER, WORKER(put_back), 0, NULL,
     "Tasks put back here without using a try."},
    {"weir_replications", GAUGE, REPLICATIONS(count), 0, NULL, "Replications of buckets."},
    {"weir_replications_paused", GAUGE, REPLICATIONS(paused), 0, NULL, "Of these, paused ones."},
    {"weir_replication_objects", GAUGE, REPLICATION(objects), 0, NULL,
     "Objects of the first copy, for administrators alone, as the following ones."},
    {"weir_replication_objects_done", GAUGE, REPLICATION(objects_done), 0, NULL,
     "Of these, copied ones."},
    {"weir_replication_objects_failed", GAUGE, REPLICATION(objects_failed), 0, NULL,
     "Of these, given up ones."},
    {"weir_replication_bytes", GAUGE, REPLICATION(bytes), 0, NULL, "Bytes of the first copy."},
    {"weir_replication_bytes_done", GAUGE, REPLICATION(bytes_done), 0, NULL,
     "Of these, copied ones."},
    {"weir_replication_lag", GAUGE, REPLICATION(lag), 0, NULL,
     "Changes that have not reached the destination yet."},
    {"weir_tracker_requests_total", COUNTER,
     TRACKER(counts.requests[TRACKER_HTTP][ACTION_ANNOUNCE]), 0,
     "protocol=\"http\",action=\"announce\"",
     "Requests to the tracker; errors are among the others too."},
    {"weir_tracker_requests_total", COUNTER, TRACKER(counts.requests[TRACKER_HTTP][ACTION_SCRAPE]),
     0, "protocol=\"http\",action=\"scrape\"", NULL},
    {"weir_tracker_requests_total", COUNTER, TRACKER(counts.requests[TRACKER_HTTP][ACTION_ERROR]),
     0, "protocol=\"http\",action=\"error\"", NULL},
    {"weir_tracker_requests_total", COUNTER, TRACKER(counts.requests[TRACKER_UDP][ACTION_CONNECT]),
     0, "protocol=\"udp\",action=\"connect\"", NULL},
    {"weir_tracker_requests_total", COUNTER, TRACKER(counts.requests[TRACKER_UDP][ACTION_ANNOUNCE]),
     0, "protocol=\"udp\",action=\"announce\"", NULL},
    {"weir_tracker_requests_total", COUNTER, TRACKER(counts.requests[TRACKER_UDP][ACTION_SCRAPE]),
     0, "protocol=\"udp\",action=\"scrape\"", NULL},
    {"weir_tracker_requests_total", COUNTER, TRACKER(counts.requests[TRACKER_UDP][ACTION_ERROR]), 0,
     "protocol=\"udp\",action=\"error\"", NULL},
    {"weir_tracker_failures_total", COUNTER, TRACKER(counts.failures[SWARM_MALFORMED]), 0,
     "reason=\"malformed\"", "Announces and scrapes refused."},
    {"weir_tracker_failures_total", COUNTER, TRACKER(counts.failures[SWARM_PASSKEY]), 0,
     "reason=\"passkey\"", NULL},
    {"weir_tracker_failures_total", COUNTER, TRACKER(counts.failures[SWARM_USER]), 0,
     "reason=\"user\"", NULL},
    {"weir_tracker_failures_total", COUNTER, TRACKER(counts.failures[SWARM_CLIENT]), 0,
     "reason=\"client\"", NULL},
    {"weir_tracker_failures_total", COUNTER, TRACKER(counts.failures[SWARM_TORRENT]), 0,
     "reason=\"torrent\"", NULL},
    {"weir_tracker_failures_total", COUNTER, TRACKER(counts.failures[SWARM_PRUNED]), 0,
     "reason=\"pruned\"", NULL},
    {"weir_tracker_failures_total", COUNTER, TRACKER(counts.failures[SWARM_SLOTS]), 0,
     "reason=\"slots\"", NULL},
    {"weir_tracker_failures_total", COUNTER, TRACKER(counts.failures[SWARM_PEERS]), 0,
     "reason=\"peers\"", NULL},
    {"weir_tracker_failures_total", COUNTER, TRACKER(counts.failures[SWARM_PORT]), 0,
     "reason=\"port\"", NULL},
    {"weir_tracker_failures_total", COUNTER, TRACKER(counts.failures[SWARM_FULL]), 0,
     "reason=\"full\"", NULL},
    {"weir_tracker_failures_total", COUNTER, TRACKER(counts.failures[SWARM_UNAVAILABLE]), 0,
     "reason=\"unavailable\"", NULL},
    {"weir_tracker_bad_connection_ids_total", COUNTER, TRACKER(counts.bad_connection_ids), 0, NULL,
     "UDP packets whose connection id is not ours."},
    {"weir_tracker_banned_total", COUNTER, TRACKER(counts.banned), 0, NULL,
     "UDP packets of addresses that are banned."},
    {"weir_tracker_dropped_total", COUNTER, TRACKER(counts.dropped), 0, NULL,
     "UDP packets that were not answered."},
    {"weir_tracker_reaped_total", COUNTER, TRACKER(reaped), 0, NULL,
     "Peers that this tracker took out of the store."},
    {"weir_tracker_torrents", GAUGE, SWARMS(swarms.torrents), 0, NULL,
     "Torrents in memory (public mode)."},
    {"weir_tracker_torrents_added", GAUGE, SWARMS(swarms.added), 0, NULL, "Of these, added ones."},
    {"weir_tracker_peers", GAUGE, SWARMS(swarms.seeders4), 0, "family=\"ipv4\",role=\"seeder\"",
     "Peers in memory (public mode)."},
    {"weir_tracker_peers", GAUGE, SWARMS(swarms.leechers4), 0, "family=\"ipv4\",role=\"leecher\"",
     NULL},
    {"weir_tracker_peers", GAUGE, SWARMS(swarms.seeders6), 0, "family=\"ipv6\",role=\"seeder\"",
     NULL},
    {"weir_tracker_peers", GAUGE, SWARMS(swarms.leechers6), 0, "family=\"ipv6\",role=\"leecher\"",
     NULL},
    {"weir_tracker_snatches_total", COUNTER, SWARMS(swarms.snatches), 0, NULL,
     "Downloads that were completed."},
    {"weir_tracker_evicted_total", COUNTER, SWARMS(swarms.evicted), 0, NULL,
     "Torrents displaced by others."},
    {"weir_tracker_crowded_total", COUNTER, SWARMS(swarms.crowded), 0, NULL,
     "Announces past the bound of peers of an address, answered and not kept."},
    {"weir_tracker_memory_bytes", GAUGE, SWARMS(swarms.bytes), 0, NULL,
     "Memory of torrents and peers."},
    {"weir_tracker_store_torrents", GAUGE, SWARM_STORE(store.torrents), 0, NULL,
     "Torrents in the store (private mode)."},
    {"weir_tracker_store_users", GAUGE, SWARM_STORE(store.users), 0, NULL, "Users in the store."},
    {"weir_tracker_store_peers", GAUGE, SWARM_STORE(store.peers), 0, NULL, "Peers in the store."},
    {"weir_tracker_share_waiting", GAUGE, SHARE(share.waiting), 0, NULL,
     "Changes of peers that wait for the store."},
    {"weir_tracker_share_written_total", COUNTER, SHARE(share.written), 0, NULL,
     "Changes written to the store."},
    {"weir_tracker_share_told_total", COUNTER, SHARE(share.told), 0, NULL,
     "Changes told to other trackers."},
    {"weir_tracker_share_applied_total", COUNTER, SHARE(share.applied), 0, NULL,
     "Changes that other trackers told of."},
    {"weir_tracker_share_dropped_total", COUNTER, SHARE(share.dropped), 0, NULL,
     "Changes that were not told, as too many waited."},
    {"weir_tracker_share_refused_total", COUNTER, SHARE(share.refused), 0, NULL,
     "Changes that the store refused for good."},
    {"weir_tracker_share_behind", GAUGE, SHARE(share.behind), 0, NULL,
     "1 while the store cannot be asked."},
#define X(name, help)                                                                              \
    {"weir_lifecycle_" #name "_total", COUNTER, LIFECYCLE(counts.name), 0, NULL, help},
    LIFECYCLE_COUNTS(X)
#undef X
        {"weir_lifecycle_sweeps_total", COUNTER, LIFECYCLE(sweeps), 0, NULL,
         "Sweeps over all buckets that came to their end."},
    {"weir_lifecycle_buckets_total", COUNTER, LIFECYCLE(buckets), 0, NULL,
     "Buckets swept to their end."},
    {"weir_lifecycle_failures_total", COUNTER, LIFECYCLE(failures), 0, NULL,
     "Buckets given up until the next interval."},
    {"weir_lifecycle_running", GAUGE, LIFECYCLE(running), 0, NULL, "1 while a sweep is under way."},
    {"weir_lifecycle_last_sweep_seconds", GAUGE, LIFECYCLE(last_ms), 1000, NULL,
     "When the last sweep ended, since 1970."},
    {"weir_lifecycle_last_sweep_duration_seconds", GAUGE, LIFECYCLE(last_took_ms), 1000, NULL,
     "How long it took, its waits included."},
};

static void write_head(struct buf *out, const struct metric *m)
{
    if (m > metrics && strcmp(m[-1].name, m->name) == 0)
        return;
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

static void write_sample(struct buf *out, const struct metric *m, const struct source *s)
{
    uint64_t value;

    memcpy(&value, (const char *)s->numbers + m->offset, sizeof(value));
    buf_append_z(out, m->name);
    if (s->label || m->labels)
        buf_append_char(out, '{');
    if (s->label)
        write_label(out, s);
    if (m->labels)
        buf_appendf(out, "%s%s", s->label ? "," : "", m->labels);
    if (s->label || m->labels)
        buf_append_char(out, '}');
    if (m->divisor)
        buf_appendf(out, " %ju.%03ju\n", (uintmax_t)(value / m->divisor),
                    (uintmax_t)(value % m->divisor));
    else
        buf_appendf(out, " %ju\n", (uintmax_t)value);
}

static void write_all(struct buf *out, const struct sources *sources)
{
    for (size_t i = 0; i < ARRAY_SIZE(metrics); i++) {
        write_head(out, &metrics[i]);
        vec_each (&sources->rows, const struct source *, s)
            if (s->kind == metrics[i].kind)
                write_sample(out, &metrics[i], s);
    }
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
    uint64_t ready[READY_MAX_PARTS];
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
        ready[i] = states[i].code == 0;
        add_labelled(&sources, FROM_PART, "part", str_z(in->ready->parts[i].name), &ready[i]);
    }
    write_all(out, &sources);
    vec_release(&sources.rows);
}
