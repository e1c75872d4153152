/* Routes that show sharded buckets and move their keys. */
#include "shard/rest/rest.h"

#include "base/clock.h"
#include "shard/enable.h"

static const char *const state_texts[] = {
    [SHARD_ACTIVE] = "active", [SHARD_DELETING] = "deleting", [SHARD_PLAIN] = "plain"};

/* --- writing --- */

static void counts_add(struct bucket_usage *sum, const struct bucket_usage *u)
{
    sum->objects += u->objects;
    sum->bytes += u->bytes;
    sum->old_versions += u->old_versions;
    sum->old_bytes += u->old_bytes;
}

static void counts_write(struct json_out *w, const struct bucket_usage *u)
{
    json_out_member_u64(w, "objects", u->objects);
    json_out_member_u64(w, "bytes", u->bytes);
    json_out_member_u64(w, "old_versions", u->old_versions);
    json_out_member_u64(w, "old_bytes", u->old_bytes);
}

/* Writes a bucket that is not served as a sharded bucket because something is wrong with it. */
static void bucket_write_broken(struct rest_call *c, const struct shards_item *item)
{
    json_out_member_str(c->w, "bucket", item->name);
    json_out_member_str(c->w, "storage", item->home->name);
    json_out_member_str(c->w, "state", item->plain ? STR("plain") : STR("broken"));
    json_out_member_str(c->w, "error", str_z(item->why.text));
    json_out_member_u64(c->w, "map", 0);
    json_out_member_u64(c->w, "threshold", 0);
    json_out_member_bool(c->w, "own_threshold", false);
    json_out_member_u64(c->w, "shard_count", 0);
    json_out_member_u64(c->w, "segment_count", 0);
    json_out_member_str(c->w, "moving", STR_EMPTY);
    counts_write(c->w, &(struct bucket_usage){0});
}

/* Writes the members of SHARD_FIELDS. `counts` has the usage of each of the `count` shards. */
static int bucket_write(struct rest_call *c, struct sharded *x, const struct shard_map *m,
                        struct shard_count **counts, size_t *count, struct err *err)
{
    const struct shard_room *r = c->ctx;
    struct bucket_usage sum = {0};
    struct err why = {0};
    int code = shard_counts(x, c->arena, counts, count, err);

    if (code < 0)
        return code;
    for (size_t i = 0; i < *count; i++)
        counts_add(&sum, &(*counts)[i].usage);
    json_out_member_str(c->w, "bucket", x->name);
    json_out_member_str(c->w, "storage", x->home->name);
    json_out_member_str(c->w, "state", str_z(state_texts[m->state]));
    (void)shards_state(r->shards, x->home, x->name, &why);
    json_out_member_str(c->w, "error", str_z(why.text));
    json_out_member_u64(c->w, "map", m->number);
    json_out_member_u64(c->w, "threshold",
                        m->threshold ? m->threshold : atomic_load(&r->threshold));
    json_out_member_bool(c->w, "own_threshold", m->threshold != 0);
    json_out_member_u64(c->w, "shard_count", m->place_count);
    json_out_member_u64(c->w, "segment_count", m->segment_count);
    json_out_member_str(c->w, "moving",
                        m->move.id.len ? str_z(move_kind_text(m->move.kind)) : STR_EMPTY);
    counts_write(c->w, &sum);
    return 0;
}

static void segments_write(struct json_out *w, const struct shard_map *m)
{
    json_out_key(w, "segments");
    json_out_open(w, '[');
    for (size_t i = 0; i < m->segment_count; i++) {
        struct shard_window window = map_window(m, i);
        json_out_open(w, '{');
        shard_rest_key(w, "after", window.after);
        shard_rest_key(w, "upto", window.upto);
        json_out_member_u64(w, "shard", map_place_at(m, i)->number);
        json_out_member_str(w, "bucket", map_place_at(m, i)->bucket);
        json_out_close(w, '}');
    }
    json_out_close(w, ']');
}

static void place_write(struct json_out *w, const struct shard_map *m, size_t i,
                        const struct bucket_usage *usage)
{
    const struct shard_place *p = &m->places[i];
    uint64_t segments = 0;

    for (size_t k = 0; k < m->segment_count; k++)
        segments += m->segments[k].place == i;
    json_out_open(w, '{');
    json_out_member_u64(w, "shard", p->number);
    json_out_member_str(w, "bucket", p->bucket);
    json_out_member_str(w, "storage", p->storage);
    json_out_member_u64(w, "segments", segments);
    json_out_member_u64(w, "unclean", p->unclean_count);
    counts_write(w, usage);
    json_out_close(w, '}');
}

static void places_write(struct json_out *w, const struct shard_map *m,
                         const struct shard_count *counts, size_t count)
{
    json_out_key(w, "shards");
    json_out_open(w, '[');
    for (size_t i = 0; i < m->place_count; i++) {
        struct bucket_usage usage = {0};
        for (size_t k = 0; k < count; k++)
            if (counts[k].place == m->places[i].number)
                usage = counts[k].usage;
        place_write(w, m, i, &usage);
    }
    json_out_close(w, ']');
}

static void move_write(struct json_out *w, const struct move_progress *p)
{
    json_out_key(w, "move");
    if (p->phase == MOVE_NONE) {
        json_out_null(w);
        return;
    }
    json_out_open(w, '{');
    json_out_member_str(w, "kind", str_z(move_kind_text(p->kind)));
    json_out_member_str(w, "phase", str_z(move_phase_text(p->phase)));
    json_out_member_u64(w, "from", p->from);
    json_out_member_u64(w, "to", p->to);
    shard_rest_key(w, "after", p->window.after);
    shard_rest_key(w, "upto", p->window.upto);
    rest_time(w, "started", p->started_ms);
    json_out_member_u64(w, "keys", p->keys);
    json_out_member_u64(w, "keys_moved", p->keys_moved);
    json_out_member_u64(w, "keys_per_second", p->keys_per_second);
    rest_known_i64(w, "seconds_left", p->seconds_left != UINT64_MAX, (int64_t)p->seconds_left);
    json_out_member_str(w, "waits", p->waits);
    json_out_close(w, '}');
}

static void last_write(struct json_out *w, const struct move_last *last)
{
    json_out_key(w, "last_move");
    if (last->ended_ms == 0) {
        json_out_null(w);
        return;
    }
    json_out_open(w, '{');
    json_out_member_str(w, "kind", str_z(move_kind_text(last->kind)));
    json_out_member_bool(w, "whole", last->whole);
    json_out_member_u64(w, "keys_moved", last->keys_moved);
    json_out_member_u64(w, "seconds", last->seconds);
    rest_time(w, "ended", last->ended_ms);
    json_out_close(w, '}');
}

/* Writes the members of SHOW_FIELDS. */
static int bucket_show(struct rest_call *c, struct sharded *x, struct err *err)
{
    struct shard_room *r = c->ctx;
    struct shard_map *m = table_map(x->table);
    struct shard_count *counts = NULL;
    struct move_progress p = {0};
    size_t count = 0;
    int code = bucket_write(c, x, m, &counts, &count, err);

    if (code == 0) {
        mover_progress(r->mover, x, c->arena, &p);
        segments_write(c->w, m);
        places_write(c->w, m, counts, count);
        move_write(c->w, &p);
        last_write(c->w, &p.last);
        json_out_member_str(c->w, "why", plan_why(r->plan, x, c->arena));
        json_out_member_str(c->w, "last_error", p.error);
        rest_time(c->w, "last_error_at", p.error.len ? p.error_ms : 0);
    }
    map_unref(m);
    return code;
}

/* --- the calls --- */

int shard_list_run(struct rest_call *c, struct err *err)
{
    struct shard_room *r = c->ctx;
    struct shards_item *list;
    struct shard_count *counts;
    size_t count = shards_list(r->shards, &list), n;
    int code = 0;

    for (size_t i = 0; i < count && code == 0 && !rest_full(c); i++) {
        if (!rest_item(c, STR_EMPTY))
            continue;
        if (list[i].sharded) {
            struct shard_map *m = table_map(list[i].sharded->table);
            code = bucket_write(c, list[i].sharded, m, &counts, &n, err);
            map_unref(m);
        } else {
            bucket_write_broken(c, &list[i]);
        }
        rest_item_end(c);
    }
    shards_list_free(list, count);
    return code;
}

int shard_show_run(struct rest_call *c, struct err *err)
{
    struct sharded *x = NULL;
    int code = shard_rest_bucket(c, &x, err);

    if (code == 0)
        code = bucket_show(c, x, err);
    sharded_unref(x);
    return code;
}

int shard_enable_run(struct rest_call *c, struct err *err)
{
    struct shard_room *r = c->ctx;
    struct storage *home = NULL;
    struct sharded *x = NULL;
    int64_t threshold =
        rest_given(c, "threshold") ? rest_integer(c, "threshold") : SHARD_THRESHOLD_KEEP;
    int code = shard_rest_home(c, &home, err);

    if (code == 0 && threshold > 0 && threshold < SHARD_THRESHOLD_MIN)
        code = err_set(err, ERR_INVALID, "a threshold is at least %d objects", SHARD_THRESHOLD_MIN);
    if (code == 0)
        code = shard_enable(r->shards, home, rest_text(c, "bucket"), threshold, err);
    if (code == 0)
        code = shard_rest_bucket(c, &x, err);
    if (code == 0) {
        plan_wake(r->plan);
        code = bucket_show(c, x, err);
    }
    sharded_unref(x);
    return code;
}

static int move_begin(struct rest_call *c, const struct move_request *q, struct err *err)
{
    struct shard_room *r = c->ctx;
    struct sharded *x = NULL;
    int code = shard_rest_bucket(c, &x, err);

    if (code == 0)
        code = mover_begin(r->mover, x, q, err);
    if (code == 0)
        code = bucket_show(c, x, err);
    sharded_unref(x);
    return code;
}

int shard_disable_run(struct rest_call *c, struct err *err)
{
    struct move_request q = {.kind = SHARD_DISABLE, .hurry = rest_bool(c, "full_speed")};

    return move_begin(c, &q, err);
}

int shard_split_run(struct rest_call *c, struct err *err)
{
    struct move_request q = {
        .kind = SHARD_SPLIT, .at = rest_text(c, "at"), .hurry = rest_bool(c, "full_speed")};

    return move_begin(c, &q, err);
}

int shard_merge_run(struct rest_call *c, struct err *err)
{
    struct move_request q = {
        .kind = SHARD_MERGE, .at = rest_text(c, "at"), .hurry = rest_bool(c, "full_speed")};

    return move_begin(c, &q, err);
}

int shard_cancel_run(struct rest_call *c, struct err *err)
{
    struct shard_room *r = c->ctx;
    struct sharded *x = NULL;
    int code = shard_rest_bucket(c, &x, err);

    if (code == 0)
        code = mover_cancel(r->mover, x, err);
    if (code == 0)
        code = bucket_show(c, x, err);
    sharded_unref(x);
    return code;
}
