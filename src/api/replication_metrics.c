/* The metrics of replications. */
#include "api/replications.h"

static int read_one(struct replication_look *l, const struct replication_id *id,
                    struct metrics_replication *out)
{
    struct replication_status s;
    struct buf text = {0};
    int64_t lag;
    int code = api_look(l, id, &s, &lag, NULL);

    if (code < 0)
        return code;
    replication_id_write(&text, id);
    *out = (struct metrics_replication){
        .id = arena_str(l->a, buf_str(&text)),
        .objects = (uint64_t)s.listed,
        .objects_done = (uint64_t)s.done,
        .objects_failed = (uint64_t)s.failed,
        .bytes = (uint64_t)s.bytes_listed,
        .bytes_done = (uint64_t)s.bytes_done,
        .lag = (uint64_t)lag,
    };
    buf_release(&text);
    return arena_error(l->a);
}

void api_count_replications(struct api *api, struct http_request *req, struct metrics_input *in)
{
    struct arena *a = http_request_arena(req);
    struct metrics_replications *sum = arena_new(a, struct metrics_replications);
    struct metrics_replication *rows = arena_array(a, METRICS_REPLICATIONS_MAX, sizeof(*rows));
    const struct replication *const *all;
    struct replication_view *view = NULL;
    bool each = api_is_admin(api, req);
    struct replication_look look = {0};

    if (arena_error(a) < 0 || replications_view(api->o.replications, &view, NULL) < 0)
        return;
    bool can = each && api_look_begin(&look, api, a, NULL) == 0;
    size_t count = replication_view_all(view, &all);
    for (size_t i = 0; i < count; i++) {
        if (!all[i]->id.bucket.len || all[i]->archived)
            continue;
        sum->count++;
        sum->paused += all[i]->paused;
        if (can && in->replication_count < METRICS_REPLICATIONS_MAX &&
            read_one(&look, &all[i]->id, &rows[in->replication_count]) == 0)
            in->replication_count++;
    }
    if (each)
        api_look_end(&look);
    in->replications = sum;
    in->each_replication = rows;
    replication_view_unref(view);
}
