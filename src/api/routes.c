/* The routes of the API. */
#include "api/replications.h"
#include "room/room.h"

static route_fn get_health, get_ready, get_metrics, get_routes, get_version, post_backup;

const struct route api_routes[] = {
    {HTTP_GET, "/healthz", get_health, true, "200 as long as the process lives."},
    {HTTP_GET, "/readyz", get_ready, true,
     "200 when every part answers, else 503; names the parts, and to administrators says why one "
     "does not."},
    {HTTP_GET, "/metrics", get_metrics, true, "Metrics for Prometheus."},
    {HTTP_POST, "/notify/{storage}", api_post_notify, true,
     "S3 event notifications of a storage, by its token: changes of replicated buckets there. 200 "
     "when they are recorded."},
    {HTTP_GET, "/api/v1", get_routes, false, "This list."},
    {HTTP_GET, "/api/v1/version", get_version, false, "Name and version of the program."},
    {HTTP_POST, "/api/v1/backup", post_backup, false,
     "Copy all data, as of now, to the new folder {\"dir\": \"/absolute/path\"} of the server."},
    {HTTP_GET, "/api/v1/store", api_get_store, false,
     "Whether the coordination store is the one that this weir knows, and the copy of the "
     "configuration that it keeps."},
    {HTTP_POST, "/api/v1/store/accept", api_post_store_accept, false,
     "Go on with the store as it is: {what: \"empty\" or \"older\"}, or {what: \"other\", "
     "installation: ID}."},
    {HTTP_POST, "/api/v1/store/restore", api_post_store_restore, false,
     "Put the configuration back from the copy in the data folder, or from the file {from}; with "
     "{replace: true} in the place of one that is there."},
    {HTTP_GET, "/api/v1/users", api_get_users, false, "All users, without their secrets."},
    {HTTP_POST, "/api/v1/users", api_post_user, false,
     "Add the user {name, id, display_name, email, admin, access_key, secret_key}; all but the "
     "name "
     "may be left out. The answer is the only one that holds the secret key."},
    {HTTP_GET, "/api/v1/users/{name}", api_get_user, false, "One user."},
    {HTTP_DELETE, "/api/v1/users/{name}", api_delete_user, false,
     "Remove the user; its buckets stay."},
    {HTTP_POST, "/api/v1/users/{name}/keys", api_post_key, false,
     "Add an access key: {access_key, secret_key}, or {} for a new one."},
    {HTTP_DELETE, "/api/v1/users/{name}/keys/{access}", api_delete_key, false,
     "Remove an access key."},
    {HTTP_POST, "/api/v1/users/{name}/route", api_post_user_route, false,
     "Make new buckets of the user on {\"storage\": NAME}; an empty name removes the policy."},
    {HTTP_GET, "/api/v1/storages", api_get_storages, false, "All storages."},
    {HTTP_POST, "/api/v1/storages", api_post_storage, false,
     "Add the storage {name, kind: \"local\", folder: \"/absolute/path\", main}, or {name, kind: "
     "\"remote\", url, region, style, ca, insecure, framing, connect_timeout, response_timeout, "
     "idle_timeout, main, user, access_key, secret_key}, of which all behind folder and url may be "
     "left out; both take requests_per_minute and bytes_per_second."},
    {HTTP_DELETE, "/api/v1/storages/{name}", api_delete_storage, false,
     "Forget a storage; what it holds stays there. A local one that is in use: with ?force=true."},
    {HTTP_POST, "/api/v1/storages/{name}/main", api_post_main, false,
     "Make it the main storage, where buckets without a policy are."},
    {HTTP_POST, "/api/v1/storages/{name}/limits", api_post_limits, false,
     "What replication may ask of it, all workers together: {requests_per_minute, "
     "bytes_per_second}; 0: any number, left out: as it was."},
    {HTTP_POST, "/api/v1/storages/{name}/claim", api_post_claim, false,
     "The name is this weir's folder's from now on, in all replications of the store: of a local "
     "storage, whose folder another one took the place of."},
    {HTTP_GET, "/api/v1/storages/{name}/notify", api_get_notify, false,
     "Where the storage is to send notifications, and the token that it is to show."},
    {HTTP_GET, "/api/v1/storages/{name}/credentials", api_get_credentials, false,
     "The users that have credentials on a remote storage."},
    {HTTP_POST, "/api/v1/storages/{name}/credentials", api_post_credential, false,
     "Set what a user signs with there: {user, access_key, secret_key}."},
    {HTTP_DELETE, "/api/v1/storages/{name}/credentials/{user}", api_delete_credential, false,
     "Remove a user's credentials there."},
    {HTTP_POST, "/api/v1/storages/{name}/test", api_post_test, false,
     "Whether the storage is there and writable."},
    {HTTP_POST, "/api/v1/storages/{name}/scrub", api_post_scrub, false,
     "Read and verify every body of a local storage, and its counts; names what is damaged."},
    {HTTP_GET, "/api/v1/buckets", api_get_buckets, false,
     "Buckets of ?storage=NAME (else the main storage) by name, behind ?after=NAME."},
    {HTTP_GET, "/api/v1/buckets/{name}", api_get_bucket, false,
     "The bucket and what it holds (not told of a remote one), once for each storage that has one "
     "of "
     "the name; unasked: those that could not be asked."},
    {HTTP_GET, "/api/v1/policies", api_get_policies, false,
     "The routing policies of users and buckets, and what is blocked."},
    {HTTP_POST, "/api/v1/buckets/{name}/route", api_post_bucket_route, false,
     "Route {user, storage}: an empty storage removes the policy; without user the bucket's owner. "
     "With blocked: true or false the bucket is refused on the storage, or no longer."},
    {HTTP_GET, "/api/v1/webhooks", api_get_webhooks, false,
     "All webhooks, without their secrets, and what waits for them."},
    {HTTP_POST, "/api/v1/webhooks", api_post_webhook, false,
     "Add or replace the webhook {name, url, secret}; the secret may be left out."},
    {HTTP_DELETE, "/api/v1/webhooks/{name}", api_delete_webhook, false,
     "Remove the webhook; what waits for it is given up."},
    {HTTP_GET, "/api/v1/torrents", api_get_torrents, false,
     "Objects that torrents were made of, by id, behind ?after=ID: state and info hashes."},
    {HTTP_POST, "/api/v1/torrents", api_post_torrent, false,
     "Make a torrent of the object {bucket, key, version, v, passkey}; all but bucket and key may "
     "be "
     "left out. 202: its pieces are being hashed in the background."},
    {HTTP_GET, "/api/v1/torrents/{torrent}", api_get_torrent, false,
     "One, by an info hash or its id, with its magnet link; ?v= 1, 2 or hybrid, ?passkey=."},
    {HTTP_GET, "/api/v1/torrents/{torrent}/file", api_get_torrent_file, false,
     "The torrent file of it; likewise."},
    {HTTP_DELETE, "/api/v1/torrents/{torrent}", api_delete_torrent, false,
     "Forget its hashes and take its torrents off the tracker; the object stays."},
    {HTTP_GET, "/api/v1/queues", api_get_queues, false,
     "The queues of background work: how many tasks are in which state, processed and failed."},
    {HTTP_PUT, "/api/v1/queues/{queue}/pause", api_put_pause_queue, false,
     "Take no more tasks from the queue; those that run go on."},
    {HTTP_PUT, "/api/v1/queues/{queue}/resume", api_put_resume_queue, false,
     "Take tasks from it again."},
    {HTTP_GET, "/api/v1/queues/{queue}/tasks", api_get_tasks, false,
     "Tasks of the queue, ?limit=N (100) of them behind the first ?skip=N, with ?state=STATE only "
     "those that are pending, active, scheduled, retry, archived or completed."},
    {HTTP_GET, "/api/v1/queues/{queue}/tasks/{id}", api_get_task, false, "One task."},
    {HTTP_DELETE, "/api/v1/queues/{queue}/tasks/{id}", api_delete_task, false,
     "Remove a task that is not running."},
    {HTTP_POST, "/api/v1/queues/{queue}/tasks/{id}/run", api_post_run_task, false,
     "Run it now: one that waits for its time or next try, or is archived or completed."},
    {HTTP_POST, "/api/v1/queues/{queue}/tasks/{id}/cancel", api_post_cancel_task, false,
     "Ask whoever runs it to give it up; it is archived then."},
    {HTTP_GET, "/api/v1/replications", api_get_replications, false,
     "Replications and users' policies, how far each is; ?user=, ?bucket=, ?from=, ?to= and "
     "?to_bucket= choose."},
    {HTTP_POST, "/api/v1/replications", api_post_replication, false,
     "Add the replication {user, bucket, from, to, to_bucket, priority, notify}: all but bucket "
     "and "
     "to may be left out. With notify the source is told to tell weir of changes that go past it: "
     "the address of this API as the source reaches it, or the ARN of a target that it has. With a "
     "user and without a bucket: of all buckets that the user has or will "
     "have."},
    {HTTP_GET, "/api/v1/replications/{id}", api_get_replication, false,
     "One, with the objects that could not be replicated and why."},
    {HTTP_DELETE, "/api/v1/replications/{id}", api_delete_replication, false,
     "Remove it and all that is known of it; what was copied stays. ?buckets=true with a user's "
     "policy: also those of its buckets."},
    {HTTP_PUT, "/api/v1/replications/{id}/pause", api_put_pause_replication, false,
     "Copy nothing until it is resumed; changes are still recorded."},
    {HTTP_PUT, "/api/v1/replications/{id}/resume", api_put_resume_replication, false,
     "Go on with it."},
    {HTTP_POST, "/api/v1/replications/{id}/resync", api_post_resync, false,
     "List both sides again and compare every object with its copy, whatever is known of it; what "
     "the source does not have is removed at the destination."},
    {HTTP_GET, "/api/v1/switches", api_get_switches, false,
     "Switches of buckets to another storage, and where each is; ?user= and ?bucket= choose."},
    {HTTP_POST, "/api/v1/switches", api_post_switch, false,
     "Switch the bucket of {replication} to its destination, {multipart_ttl_ms, continue}; with "
     "{downtime: true} also {start_at, cron, on_init_done, max_duration_ms, max_event_lag, "
     "skip_check}. One that is not in progress gets these options. Answers as the next call."},
    {HTTP_GET, "/api/v1/switches/{id}", api_get_switch, false,
     "One, with its history, what it waits for (waits_for), how many uploads are open on the "
     "storage "
     "that is left (uploads; 1000: or more; null: it cannot be asked), the first 100 of them "
     "(open_uploads: key, upload_id, initiated, initiator), and how long they are still waited for "
     "(waits_until, waits_left_ms; null: none is waited for now)."},
    {HTTP_PUT, "/api/v1/switches/{id}", api_put_switch, false,
     "Change {multipart_ttl_ms}, how long open uploads are waited for, also while they are; 0: not "
     "at all."},
    {HTTP_DELETE, "/api/v1/switches/{id}", api_delete_switch, false,
     "Give it up: without downtime it goes back, and loses nothing. One that has not begun or has "
     "ended is forgotten."},
    {HTTP_GET, "/api/v1/diffs", api_get_diffs, false, "Checks of buckets, and how far each is."},
    {HTTP_POST, "/api/v1/diffs", api_post_diff, false,
     "Compare {locations: [\"STORAGE:BUCKET\", ...]}; user, ignore_sizes, ignore_etags, contents "
     "and "
     "last_versions_only may be given. The same locations are the same check."},
    {HTTP_GET, "/api/v1/diffs/{id}", api_get_diff, false, "One, with what it counted."},
    {HTTP_GET, "/api/v1/diffs/{id}/entries", api_get_diff_entries, false,
     "What differs, ?limit= of them from ?skip= on; the first 10,000 are kept."},
    {HTTP_POST, "/api/v1/diffs/{id}/fix", api_post_diff_fix, false,
     "Make all locations equal to {source}, one of them, then check again."},
    {HTTP_POST, "/api/v1/diffs/{id}/restart", api_post_diff_restart, false,
     "Check again from the beginning, whatever it is doing."},
    {HTTP_DELETE, "/api/v1/diffs/{id}", api_delete_diff, false, "Forget it."},
    {HTTP_GET, "/api/v1/swarm/stats", api_get_swarm_stats, false, "The tracker in numbers."},
    {HTTP_GET, "/api/v1/swarm/users", api_get_swarm_users, false,
     "Users of the tracker's private mode, ?limit=N (10000) of them; with ?passkeys=true their "
     "passkeys too."},
    {HTTP_POST, "/api/v1/swarm/users", api_post_swarm_user, false,
     "Add the user {id, passkey, slots, up_multiplier, down_multiplier}, of which all may be left "
     "out; the answer has the passkey. One of a passkey that is known gets slots and multipliers."},
    {HTTP_DELETE, "/api/v1/swarm/users/{id}", api_delete_swarm_user, false,
     "Remove the user, by its id or its passkey, and all of its peers."},
    {HTTP_GET, "/api/v1/swarm/clients", api_get_swarm_clients, false,
     "The approved clients: beginnings of peer ids."},
    {HTTP_POST, "/api/v1/swarm/clients", api_post_swarm_client, false,
     "Approve the clients whose peer id begins with {client}."},
    {HTTP_DELETE, "/api/v1/swarm/clients/{client}", api_delete_swarm_client, false,
     "Approve them no longer."},
    {HTTP_GET, "/api/v1/swarm/torrents", api_get_swarm_torrents, false,
     "Torrents that were added, ?limit=N (10000) of them."},
    {HTTP_POST, "/api/v1/swarm/torrents", api_post_swarm_torrent, false,
     "Add the torrent {torrent, id, up_multiplier, down_multiplier}: 40 or 64 hexadecimal digits "
     "or a magnet link. One that is known gets the multipliers."},
    {HTTP_DELETE, "/api/v1/swarm/torrents/{torrent}", api_delete_swarm_torrent, false,
     "Remove the torrent and all of its peers."},
    {HTTP_POST, "/api/v1/swarm/check", api_post_swarm_check, false,
     "Look for what the tracker's invariants forbid in the store."},
    {HTTP_GET, "/api/v1/swarm/feed", api_get_swarm_feed, false,
     "Consumers of the feed of deltas, and how many records wait for each."},
    {HTTP_POST, "/api/v1/swarm/feed", api_post_swarm_feed, false,
     "Add the consumer {name}: it gets what comes from now on."},
    {HTTP_DELETE, "/api/v1/swarm/feed/{name}", api_delete_swarm_feed, false,
     "Remove a consumer; what waited for it alone goes."},
    {HTTP_GET, "/api/v1/swarm/feed/{name}", api_get_swarm_deltas, false,
     "The first ?max=N (1000) records that the consumer has not acknowledged."},
    {HTTP_POST, "/api/v1/swarm/feed/{name}/acknowledge", api_post_swarm_acknowledge, false,
     "Acknowledge all records up to {number}."},
};

const size_t api_route_count = ARRAY_SIZE(api_routes);

enum { MAX_BODY = 64 * 1024 };

static int get_health(struct http_request *req, const struct route_params *params, void *ctx)
{
    (void)params, (void)ctx;
    return http_send_text(req, 200, STR("text/plain"), STR("ok\n"));
}

/* Why a part is not ready names hosts and folders: for an administrator only. */
static int get_ready(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    const struct ready *ready = api->o.ready;
    struct ready_state states[READY_MAX_PARTS];
    struct api_json j;
    bool all = true, detailed;
    int code = ready_get(api->o.ready, states, http_may_block(req));

    (void)params;
    if (code < 0)
        return code;
    detailed = api_is_admin(api, req);
    for (size_t i = 0; i < ready->count; i++)
        all = all && states[i].code == 0;
    api_json_begin(&j);
    json_out_member_bool(&j.w, "ready", all);
    json_out_key(&j.w, "parts");
    json_out_open(&j.w, '{');
    for (size_t i = 0; i < ready->count; i++)
        json_out_member_str(&j.w, ready->parts[i].name,
                            states[i].code == 0 ? STR("ok")
                            : detailed          ? str_z(states[i].text)
                                                : STR("failed"));
    json_out_close(&j.w, '}');
    return api_json_send(req, all ? 200 : 503, &j);
}

static void write_room_metrics(const struct room_instance *r, struct metric_numbers *numbers,
                               struct buf *out)
{
    metric_numbers_reset(numbers);
    if (r->room->count)
        r->room->count(r->state, numbers);
    metrics_text(out, r->room->metrics, r->room->metric_count, numbers);
}

static int get_metrics(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct metric_numbers numbers = {.arena = http_request_arena(req),
                                     .admin = api_is_admin(api, req)};
    struct named_server servers[SERVICES_SERVERS_MAX + 1] = {{"api", http_request_server(req)}};
    struct metrics_input in = {
        .db = api->o.db,
        .pool = api->o.pool,
        .auth = &api->auth,
        .ready = api->o.ready,
        .notify = api->o.notify,
        .access_log = api->o.access_log,
        .servers = servers,
        .server_count = 1,
        .lifecycle = api->o.lifecycle,
        .worker = api->o.worker,
        .started_mono_ms = api->started_mono_ms,
        .started_wall_ms = api->started_wall_ms,
    };
    struct buf text = {0};
    struct queue_stats *queues = NULL;
    size_t queue_count;
    int code;

    (void)params;
    if (!http_may_block(req)) /* /proc, the database's properties and the store are read */
        return ERR_AGAIN;
    /* A store that is down is told of by weir_ready. */
    if (queue_list(api->o.queue, http_request_arena(req), &queues, &queue_count, NULL) == 0)
        in.queues = queues, in.queue_count = queue_count;
    if (api->o.replications)
        api_count_replications(api, req, &in);
    for (size_t i = 0; api->o.services && i < api->o.services->server_count; i++)
        servers[in.server_count++] = api->o.services->servers[i];
    metrics_write(&in, &text);
    for (size_t i = 0; i < api->o.room_count; i++)
        write_room_metrics(&api->o.rooms[i], &numbers, &text);
    metric_numbers_release(&numbers);
    code =
        http_send_text(req, 200, STR("text/plain; version=0.0.4; charset=utf-8"), buf_str(&text));
    buf_release(&text);
    return code;
}

static int get_routes(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api_json j;

    (void)params, (void)ctx;
    api_json_begin(&j);
    json_out_key(&j.w, "routes");
    json_out_open(&j.w, '[');
    for (size_t i = 0; i < api_route_count; i++) {
        json_out_open(&j.w, '{');
        json_out_member_str(&j.w, "method", str_z(http_method_name(api_routes[i].method)));
        json_out_member_str(&j.w, "path", str_z(api_routes[i].pattern));
        json_out_member_bool(&j.w, "open", api_routes[i].open);
        json_out_member_str(&j.w, "doc", str_z(api_routes[i].doc));
        json_out_close(&j.w, '}');
    }
    json_out_close(&j.w, ']');
    return api_json_send(req, 200, &j);
}

static int get_version(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api_json j;

    (void)params, (void)ctx;
    api_json_begin(&j);
    json_out_member_str(&j.w, "name", STR("weir"));
    json_out_member_str(&j.w, "version", STR(WEIR_VERSION));
    return api_json_send(req, 200, &j);
}

static int read_json(struct http_request *req, json_t **out, struct err *err)
{
    struct str body;
    int code = http_request_read_all(req, MAX_BODY, &body, err);

    if (code == 0)
        code = json_read(out, body, err);
    if (code == 0 && !json_is_object(*out)) {
        json_decref(*out);
        *out = NULL;
        code = err_set(err, ERR_INVALID, "the body must be a JSON object");
    }
    return code;
}

bool api_read_json(struct http_request *req, json_t **out, int *answer)
{
    struct err err = {0};
    int code = http_may_block(req) ? read_json(req, out, &err) : ERR_AGAIN;

    if (code == 0)
        return true;
    /* A peer that is gone or too slow is the server's to answer, if there is anybody left. */
    *answer = code == ERR_AGAIN || code == ERR_CLOSED || code == ERR_TIMEOUT
                  ? code
                  : api_send_failure(req, code, &err);
    return false;
}

int api_check_strings(const json_t *object, const char *const *names, struct err *err)
{
    for (; *names; names++) {
        const json_t *value = json_object_get(object, *names);
        if (value && !json_is_string(value))
            return err_set(err, ERR_INVALID, "%s must be a string", *names);
    }
    return 0;
}

int api_query(struct http_request *req, const char *wanted, struct str *out, struct err *err)
{
    struct str rest = http_request_head(req)->query, name, value;
    struct buf text = BUF_INIT(4096);
    int code = 0;

    *out = STR_EMPTY;
    while (code == 0 && url_query_next(&rest, &name, &value)) {
        if (!str_eq(name, str_z(wanted)))
            continue;
        buf_reset(&text);
        code = url_decode(&text, value, true);
        if (code == 0)
            code = buf_error(&text);
        if (code == 0)
            *out = arena_str(http_request_arena(req), buf_str(&text));
    }
    buf_release(&text);
    return code < 0 ? err_set(err, code, "the query cannot be read") : 0;
}

int api_query_number(struct http_request *req, const char *wanted, size_t fallback, size_t max,
                     size_t *out, struct err *err)
{
    struct str text;
    uint64_t number = fallback;
    int code = api_query(req, wanted, &text, err);

    if (code == 0 && text.len && (str_u64(text, &number) < 0 || number > max))
        code = err_set(err, ERR_INVALID, "%s is a number from 0 to %zu", wanted, max);
    *out = (size_t)number;
    return code;
}

static int post_backup(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api_json j;
    struct err err = {0};
    json_t *object = NULL;
    const char *dir;
    int code;

    (void)params;
    if (!api_read_json(req, &object, &code))
        return code;
    dir = arena_z(http_request_arena(req), json_get_str(object, "dir", STR_EMPTY));
    json_decref(object);
    code = dir ? api_backup(ctx, dir, &err) : ERR_NO_MEMORY;
    if (code == ERR_BUSY)
        return api_send_error(req, 409, "busy", err.text);
    if (code < 0)
        return api_send_failure(req, code, &err);
    log_info(http_request_log(req), "backup.done", log_z("dir", dir));
    api_json_begin(&j);
    json_out_member_str(&j.w, "dir", str_z(dir));
    return api_json_send(req, 200, &j);
}
