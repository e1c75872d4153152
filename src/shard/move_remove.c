/* DeleteBucket of a sharded bucket (docs/sharding.md, "DeleteBucket").
 *
 *     look        all segments must be empty; nothing is closed, and most refusals end here
 *     garbage     remove the rows that the bucket itself has outside of its segments
 *     close       every key, and wait for requests under way
 *     look again  every segment must be empty
 *     deleting    the map says so, and every request is refused from now on
 *     remove      the bucket itself: this decides
 *     clean       the shards, then the map bucket
 *
 * Until the bucket itself is removed, any error brings back the state before the removal. If weir
 * is killed, the next start continues the removal if the map says `deleting`, and otherwise opens
 * what was closed. The bucket is recognized by its id, so a later bucket with its name is not
 * touched. If the cleaning fails, the name stays in use, and the mover's thread tries again. */
#include "base/clock.h"
#include "shard/move_int.h"

enum { REMOVE_DRAIN_MS = 1000 };

/* Checks that a shard has no object, no version, no marker and no upload in a window that it owns.
 * What it has elsewhere is garbage (H10), and keeps no bucket from being removed. */
static int segment_check_empty(struct bucket *b, const struct shard_window *w, struct err *err)
{
    struct arena a = {0};
    struct list_options o = {.after = w->after, .limit = 1};
    struct list_result versions = {0};
    struct upload_list uploads = {0};
    int code = b->ops->list_versions(b, &a, &o, &versions, err);

    if (code == 0)
        code = b->ops->list_uploads(b, &a, &o, &uploads, err);
    if (code == 0 && ((versions.count && window_has(w, versions.entries[0].info.key)) ||
                      (uploads.count && window_has(w, uploads.uploads[0].key))))
        code = err_set(err, ERR_CONFLICT, "the bucket is not empty");
    arena_release(&a);
    return code;
}

static int remove_check_empty(struct sharded *s, struct err *err)
{
    struct shard_map *m = table_map(s->table);
    int code = 0;

    for (size_t i = 0; i < m->segment_count && code == 0; i++) {
        struct shard_window w = map_window(m, i);
        struct bucket *b = NULL;
        code = move_open_place(s, m, map_place_at(m, i)->number, &b, err);
        if (code == 0)
            code = segment_check_empty(b, &w, err);
        if (b)
            b->ops->unref(b);
    }
    map_unref(m);
    return code;
}

/* Removes the garbage of the bucket itself, which must have no row when it is removed. The garbage
 * of the shards goes with them. Nothing is closed yet, so no request waits for this. Until the
 * bucket is removed, s->changes is held and no window moves, so no garbage is added. */
static int remove_garbage(struct sharded *s, struct err *err)
{
    struct shard_map *m = NULL;
    int code = move_open_map(s, &m, err);

    for (size_t i = 0; code == 0 && i < m->segment_count; i++) {
        struct shard_window w = map_window(m, i);
        struct garbage_removed removed = {.more = map_place_at(m, i)->number != 0};
        while (code == 0 && removed.more)
            code = move_remove_garbage(s, m, 0, &w, &removed, err);
    }
    map_unref(m);
    return code;
}

static int remove_close(struct sharded *s, struct err *err)
{
    struct shard_map *m = NULL;
    int code = move_open_map(s, &m, err);

    if (code == 0) {
        struct shard_map *draft = map_draft(m);
        map_close(draft, SHARD_CLOSED_ALL, NULL);
        code = move_publish(s, draft, "shard.all", err);
    }
    map_unref(m);
    return code;
}

static int remove_drain(struct sharded *s, struct err *err)
{
    struct shard_map *m = table_map(s->table);
    uint64_t until = clock_mono_ns() + (uint64_t)REMOVE_DRAIN_MS * NS_PER_MS;
    bool drained = table_drain(s->table, m->number, until);

    map_unref(m);
    return drained ? 0
                   : err_set(err, ERR_BUSY, "requests to the bucket did not end within %d ms",
                             REMOVE_DRAIN_MS);
}

/* Writes into the map that the bucket is being removed. A move in the map ends. */
static int remove_say(struct sharded *s, struct err *err)
{
    struct shard_map *m = table_map(s->table), *draft = map_draft(m);

    map_unref(m);
    map_open(draft);
    if (draft->move.id.len)
        map_end_move(draft);
    draft->state = SHARD_DELETING;
    return move_publish(s, draft, "shard.deleting", err);
}

/* Brings back the state before the removal. Returns `code`, the error that ended the removal, or
 * the error because of which the bucket stays closed. */
static int remove_undo(struct sharded *s, int code, struct err *err)
{
    struct shard_map *m = table_map(s->table);
    struct err worse = {0};
    int undone = 0;

    if (m->state == SHARD_DELETING) {
        struct shard_map *draft = map_draft(m);
        draft->state = SHARD_ACTIVE;
        undone = move_publish(s, draft, "shard.open", &worse);
    } else if (m->state == SHARD_ACTIVE) {
        undone = move_repair(s, &worse);
    }
    map_unref(m);
    if (undone == 0)
        return code;
    *err = worse;
    return undone;
}

/* Removes the bucket itself; the map already says that it is being removed. After an error the
 * state before the removal comes back, except after ERR_NO_BUCKET: then the bucket was removed
 * already. */
static int remove_itself(struct sharded *s, struct err *err)
{
    struct bucket *home = NULL;
    int code = sharded_open_home(s, &home, err);

    if (code == 0) {
        shard_step_begin("shard.remove");
        code = s->place->remove_home(home, err);
        if (code == 0)
            shard_step_end("shard.remove");
    }
    return code == 0 || code == ERR_NO_BUCKET ? code : remove_undo(s, code, err);
}

static bool sharded_is_deleting(struct sharded *s)
{
    struct shard_map *m = table_map(s->table);
    bool deleting = m->state == SHARD_DELETING;

    map_unref(m);
    return deleting;
}

/* Removes the bucket itself. *gone: the bucket itself does not exist any more. */
static int remove_decide(struct sharded *s, bool *gone, struct err *err)
{
    int code = 0;

    if (!sharded_is_deleting(s)) { /* otherwise an earlier error could not bring back the state,
                                      and the bucket is still in it */
        code = remove_garbage(s, err);
        if (code == 0)
            code = remove_close(s, err);
        if (code == 0)
            code = remove_drain(s, err);
        if (code == 0)
            code = remove_check_empty(s, err);
        if (code == 0)
            code = remove_say(s, err);
        if (code < 0)
            return remove_undo(s, code, err);
    }
    code = remove_itself(s, err);
    *gone = code == 0 || code == ERR_NO_BUCKET;
    return code;
}

/* Removes what is left of a bucket that was removed. After an error the mover's thread tries again,
 * and the name stays in use until it has succeeded. */
static void remove_rest(struct mover *m, struct sharded *s)
{
    struct err err = {0};
    int code = move_clean_up(s, &err);

    if (code < 0)
        log_warn(m->o.log, "shard.not_tidied", log_s("bucket", s->name), log_z("error", err.text));
    move_forget(m, s);
    if (code < 0)
        move_clean_later(m, s, &err);
    else if (m->o.gone)
        m->o.gone(m->o.ctx, s);
}

int mover_remove(struct mover *m, struct sharded *s, struct str user, struct err *err)
{
    int code = sharded_is_deleting(s) ? 0 : remove_check_empty(s, err);
    bool gone = false;

    (void)user; /* the caller has checked that the user may delete the bucket */
    if (code < 0)
        return code;
    mutex_lock(&s->changes);
    code = remove_decide(s, &gone, err);
    mutex_unlock(&s->changes);
    if (gone)
        remove_rest(m, s);
    return code;
}

/* --- after a kill --- */

static int recover_active(struct mover *m, struct sharded *s, struct err *err)
{
    struct err stays = {0};
    int code = move_repair(s, &stays);
    struct shard_map *now = table_map(s->table);

    if (code == ERR_CONFLICT && now->closed == s->place->closed) {
        /* The window stays closed, and the mover tries again. The rest of the bucket is served. */
        log_warn(m->o.log, "shard.window_stays_closed", log_s("bucket", s->name),
                 log_z("error", stays.text));
        code = 0;
    } else if (code < 0) {
        *err = stays;
    }
    if (code == 0)
        code = move_tidy(s, now, err);
    if (code == 0 && now->move.id.len)
        move_take_over(m, s);
    map_unref(now);
    return code;
}

/* Removes everything that sharding made for a bucket that is now plain or removed. If that fails,
 * the next start tries again. The error is only noted, because the bucket that has the name now
 * must be served. */
static void recover_rest(struct mover *m, struct sharded *s)
{
    struct err err = {0};

    if (move_clean_up(s, &err) < 0)
        log_warn(m->o.log, "shard.not_tidied", log_s("bucket", s->name), log_z("error", err.text));
}

static int recover_state(struct mover *m, struct sharded *s, bool *serves, struct err *err)
{
    struct shard_map *now = table_map(s->table);
    enum shard_state state = now->state;
    int code = 0;

    map_unref(now);
    *serves = state == SHARD_ACTIVE;
    if (state == SHARD_DELETING) {
        code = remove_itself(s, err);
        *serves = code == ERR_CONFLICT; /* the bucket was not empty, and is active again */
        if (code == ERR_CONFLICT || code == ERR_NO_BUCKET)
            code = 0;
    }
    if (code == 0 && *serves)
        return recover_active(m, s, err);
    if (code == 0)
        recover_rest(m, s);
    return code;
}

int mover_recover(struct mover *m, struct sharded *s, bool *serves, struct err *err)
{
    mutex_lock(&s->changes);
    int code = recover_state(m, s, serves, err);
    mutex_unlock(&s->changes);
    return code;
}
