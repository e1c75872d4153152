/* Handing one window over from one shard to another one on the same storage (docs/sharding.md, H8).
 *
 *     choose   the next keys, up to 1,000 or (at full speed) 4,000, below the smallest key of a
 *              long request, and below a key whose rows are too many for one change
 *     clean    rows that the target has in the window are garbage, and are removed (H10)
 *     close    a map that closes the window: new requests wait
 *     drain    wait until the requests that began before have ended
 *     adopt    give() of the storage (place.h): in a folder the rows change their bucket, in one
 *              change of the database for each 1,000 keys
 *     commit   a map that gives the window to the other shard, and opens it
 *
 * If weir is killed before `adopt`, the window is closed and nothing else has changed. If weir is
 * killed between `adopt` and `commit`, the rows are in the target, but the map still gives the
 * window to the source. At the next start move_repair() moves the rows back and opens the window.
 * All rows that the target has in the closed window were moved there: the target owned no key of
 * the window, and was cleaned there before the window was closed. */
#include "base/clock.h"
#include "shard/move_int.h"
#include "shard/state.h"

/* The next window of a move, as chosen before it is closed. */
struct window {
    struct shard_window w;
    uint32_t from, to;
    uint64_t keys; /* number of keys with objects or versions; keys with nothing but uploads are
                      not counted */
    bool empty;
};

/* --- opening and closing --- */

int move_open_place(struct sharded *s, const struct shard_map *m, uint32_t number,
                    struct bucket **out, struct err *err)
{
    const struct shard_place *p = map_place(m, number);

    if (!p)
        return err_set(err, ERR_CORRUPT, "the map has no shard %u", number);
    if (!str_eq(p->storage, m->home))
        return err_set(err, ERR_UNSUPPORTED, "shard %u is not on the storage of its bucket",
                       number);
    return sharded_open_place(s, p, out, err);
}

int move_publish(struct sharded *s, struct shard_map *draft, const char *step, struct err *err)
{
    shard_step_begin(step);
    int code = sharded_publish(s, draft, err);
    if (code == 0)
        shard_step_end(step);
    map_unref(draft);
    return code;
}

/* Opens the two places of a window. The caller calls ends_close(), also after an error. */
struct window_ends {
    struct bucket *from, *to; /* references */
};

static int ends_open(struct window_ends *e, struct sharded *s, const struct shard_map *m,
                     uint32_t from, uint32_t to, struct err *err)
{
    *e = (struct window_ends){0};
    int code = move_open_place(s, m, from, &e->from, err);

    return code < 0 ? code : move_open_place(s, m, to, &e->to, err);
}

static void ends_close(struct window_ends *e)
{
    if (e->from)
        e->from->ops->unref(e->from);
    if (e->to)
        e->to->ops->unref(e->to);
}

/* Gives the keys of the closed window to its target. */
static int window_pass_on(struct sharded *s, const struct shard_map *m, const struct window *x,
                          struct err *err)
{
    struct window_ends e;
    int code = ends_open(&e, s, m, x->from, x->to, err);

    if (code == 0)
        code = s->place->give(e.to, e.from, &x->w, err);
    ends_close(&e);
    return code;
}

/* Brings the keys of a closed window back to the place `from`, which still owns them. */
static int window_take_back(struct sharded *s, const struct shard_map *m, uint32_t from,
                            uint32_t to, const struct shard_window *w, struct err *err)
{
    struct window_ends e;
    int code = ends_open(&e, s, m, from, to, err);

    if (code == 0)
        code = s->place->take_back(e.to, e.from, w, err);
    ends_close(&e);
    return code;
}

/* Brings the keys of the map's closed window back to their owner. */
static int window_give_back(struct sharded *s, const struct shard_map *m, struct err *err)
{
    const struct shard_place *owner = map_place_at(m, map_segment_after(m, m->closed_window.after));

    if (m->move.id.len == 0)
        return err_set(err, ERR_CORRUPT, "the map closes a window without a move");
    if (owner->number == m->move.to)
        return 0;
    return window_take_back(s, m, owner->number, m->move.to, &m->closed_window, err);
}

int move_repair(struct sharded *s, struct err *err)
{
    struct shard_map *m = table_map(s->table);
    int code = 0;

    mutex_assert_held(&s->changes);
    if (m->closed == s->place->closed)
        code = window_give_back(s, m, err);
    else if (m->closed == SHARD_CLOSED_DOCUMENTS)
        code = state_repair(s, m, err);
    if (code == 0 && m->closed != SHARD_OPEN) {
        struct shard_map *draft = map_draft(m);
        map_open(draft);
        code = move_publish(s, draft, "shard.open", err);
    }
    map_unref(m);
    return code;
}

int move_open_map(struct sharded *s, struct shard_map **out, struct err *err)
{
    struct shard_map *m = table_map(s->table);
    int code = 0;

    if (m->state == SHARD_DELETING)
        code = err_set(err, ERR_CONFLICT, "the bucket is being removed");
    else if (m->state == SHARD_PLAIN)
        code = err_set(err, ERR_NO_BUCKET, "the bucket is not sharded any more");
    else if (m->closed != SHARD_OPEN) {
        map_unref(m);
        m = NULL;
        code = move_repair(s, err);
        if (code == 0)
            m = table_map(s->table);
    }
    if (code == 0)
        *out = m;
    else
        map_unref(m);
    return code;
}

/* --- choosing --- */

static struct str least_upto(struct str a, struct str b)
{
    return window_compare_upto(a, b) <= 0 ? a : b;
}

/* Finds the first segment in the move's window that is not yet on the shard to which the move takes
 * it. */
static int window_find(const struct shard_map *m, struct window *out)
{
    const struct shard_window *all = &m->move.window;

    for (size_t i = map_segment_after(m, all->after); i < m->segment_count; i++) {
        struct shard_window w = map_window(m, i);
        if (!window_overlaps(&w, all))
            break;
        if (map_place_at(m, i)->number == m->move.to)
            continue;
        out->from = map_place_at(m, i)->number;
        out->to = m->move.to;
        out->w.after = str_cmp(w.after, all->after) < 0 ? all->after : w.after;
        out->w.upto = least_upto(w.upto, all->upto);
        return 0;
    }
    return ERR_END;
}

/* The keys that a shard has after the beginning of a window. */
struct contents {
    struct str *keys; /* keys of objects and versions, ascending; in the arena */
    size_t count;
    bool more; /* there may be further keys */
    struct upload_list uploads;
};

static void contents_add(struct contents *c, const struct list_result *page)
{
    for (size_t i = 0; i < page->count; i++) {
        struct str key = page->entries[i].info.key;
        if (c->count == 0 || !str_eq(c->keys[c->count - 1], key))
            c->keys[c->count++] = key;
    }
}

/* Reads up to `limit` keys. The page size fits keys that have one version each. */
static int contents_read_keys(struct contents *c, struct bucket *b, const struct shard_window *w,
                              size_t limit, struct arena *a, struct err *err)
{
    struct list_options o = {.after = w->after};
    size_t left = limit;
    int code = 0;

    c->keys = arena_array(a, limit, sizeof(*c->keys));
    if (!c->keys)
        return err_code(err, ERR_NO_MEMORY);
    c->more = true;
    while (code == 0 && c->more && left > 0) {
        struct list_result page = {0};
        o.limit = size_min(left, OBJECT_LIST_MAX);
        code = b->ops->list_versions(b, a, &o, &page, err);
        if (code == 0) {
            contents_add(c, &page);
            c->more = page.more;
            left -= o.limit;
            o.after = page.next;
            o.after_version = page.next_version;
        }
    }
    return code;
}

static int contents_read(struct contents *c, struct bucket *b, const struct shard_window *w,
                         size_t limit, struct arena *a, struct err *err)
{
    struct list_options o = {.after = w->after, .limit = MOVE_OPEN_UPLOADS};
    int code = contents_read_keys(c, b, w, limit, a, err);

    return code < 0 ? code : b->ops->list_uploads(b, a, &o, &c->uploads, err);
}

static bool contents_are_in(const struct contents *c, const struct shard_window *w)
{
    return (c->count && window_has(w, c->keys[0])) ||
           (c->uploads.count && window_has(w, c->uploads.uploads[0].key));
}

/* Ends the window after the last key that was read. */
static void window_end(struct window *x, const struct contents *c)
{
    if (c->more && c->count)
        x->w.upto = least_upto(x->w.upto, c->keys[c->count - 1]);
    if (c->uploads.more && c->uploads.count)
        x->w.upto = least_upto(x->w.upto, c->uploads.uploads[c->uploads.count - 1].key);
}

/* Ends the window below the smallest key for which a request has been under way for long. */
static int window_end_below_busy(struct window *x, const struct contents *c, struct sharded *s,
                                 struct arena *a, struct err *err)
{
    struct str busy = table_smallest_busy(s->table, &x->w, (uint64_t)MOVE_AGE_MS * NS_PER_MS, a);
    size_t i = c->count;

    if (busy.len == 0)
        return 0;
    /* If the window has no key below the busy one, closing it would only make its clients wait: the
     * old request would keep it from being handed over. */
    while (i > 0 && str_cmp(c->keys[i - 1], busy) >= 0)
        i--;
    if (i == 0)
        return err_set(err, ERR_AGAIN, "a request for the key " STR_FMT " is under way",
                       STR_ARG(busy));
    x->w.upto = least_upto(x->w.upto, c->keys[i - 1]);
    return 0;
}

static void window_count(struct window *x, const struct contents *c)
{
    while (x->keys < c->count && window_has(&x->w, c->keys[x->keys]))
        x->keys++;
}

/* Ends the window below the first key that is too large to be handed over. ERR_TOO_LARGE: this is
 * the first key of the window. */
static int window_end_below_large(struct window *x, struct sharded *s, struct bucket *from,
                                  struct hand_over *h, struct arena *a, struct err *err)
{
    struct place_large large = {0};
    int code = s->place->find_large(from, &x->w, a, &large, err);

    if (code < 0 || large.key.len == 0)
        return code;
    if (large.before.len) {
        x->w.upto = large.before;
        return 0;
    }
    h->stuck = true;
    return err_set(err, ERR_TOO_LARGE,
                   "the versions of the key " STR_FMT " have more than %zu MiB, which is more than "
                   "one change of the database takes",
                   STR_ARG(large.key), large.most / (1024 * 1024));
}

/* Chooses the window. Its strings are in the arena or in the map. */
static int window_choose(struct window *x, struct sharded *s, const struct shard_map *m,
                         struct hand_over *h, struct arena *a, struct err *err)
{
    struct contents c = {0};
    struct bucket *from = NULL;
    int code = window_find(m, x);

    if (code < 0)
        return err_code(err, code);
    code = move_open_place(s, m, x->from, &from, err);
    if (code == 0)
        code = contents_read(&c, from, &x->w, h->limit, a, err);
    x->empty = code == 0 && !contents_are_in(&c, &x->w);
    if (code == 0 && !x->empty)
        window_end(x, &c);
    if (code == 0)
        code = window_end_below_busy(x, &c, s, a, err);
    if (code == 0 && !x->empty)
        code = window_end_below_large(x, s, from, h, a, err);
    if (from)
        from->ops->unref(from);
    window_count(x, &c);
    return code < 0 ? code : arena_error(a);
}

/* Checks that a window that was chosen as empty is still empty, after it was closed. */
static int window_check_empty(const struct window *x, struct sharded *s, const struct shard_map *m,
                              struct arena *a, struct err *err)
{
    struct contents c = {0};
    struct bucket *from = NULL;
    int code = move_open_place(s, m, x->from, &from, err);

    if (code == 0)
        code = contents_read(&c, from, &x->w, 1, a, err);
    if (from)
        from->ops->unref(from);
    if (code == 0 && contents_are_in(&c, &x->w))
        code = err_set(err, ERR_AGAIN, "keys were put where there were none");
    return code;
}

/* --- handing over --- */

static int window_close(const struct window *x, struct sharded *s, const struct shard_map *m,
                        struct err *err)
{
    struct shard_map *draft = map_draft(m);

    map_close(draft, x->empty ? SHARD_CLOSED_NONE : s->place->closed, &x->w);
    return move_publish(s, draft, "shard.close", err);
}

/* Gives the keys of the closed window to the target, and publishes the map that gives the window to
 * the target. */
static int window_commit(const struct window *x, struct sharded *s, const struct shard_map *closed,
                         struct arena *a, struct err *err)
{
    int code;

    if (x->empty) {
        code = window_check_empty(x, s, closed, a, err);
    } else {
        shard_step_begin("shard.adopt");
        code = window_pass_on(s, closed, x, err);
        if (code == 0)
            shard_step_end("shard.adopt");
    }
    if (code < 0)
        return code;
    struct shard_map *draft = map_draft(closed);
    map_open(draft);
    map_give(draft, &x->w, x->to);
    return move_publish(s, draft, "shard.commit", err);
}

/* Whether the newest map gives the window to the target. This is possible although the commit has
 * returned an error, because its outcome may have been unknown. */
static bool window_is_given(const struct window *x, struct sharded *s)
{
    struct shard_map *m = table_map(s->table);
    bool given = m->closed == SHARD_OPEN && map_is_on(m, &x->w, x->to);

    map_unref(m);
    return given;
}

/* Brings the keys back after an error, and opens the window. Returns `code`, or the error because
 * of which the window stays closed. */
static int window_undo(const struct window *x, struct sharded *s, const struct shard_map *closed,
                       int code, struct err *err)
{
    struct err worse = {0};
    int undone = x->empty ? 0 : window_take_back(s, closed, x->from, x->to, &x->w, &worse);

    if (undone == 0)
        undone = move_repair(s, &worse);
    if (undone == 0)
        return code;
    *err = worse;
    return undone;
}

/* Waits until the requests in the closed window have ended, and hands the window over. */
static int window_finish(const struct window *x, struct sharded *s, struct hand_over *h,
                         struct arena *a, struct err *err)
{
    struct shard_map *closed = table_map(s->table);
    uint64_t until = clock_mono_ns() + (uint64_t)MOVE_DRAIN_MS * NS_PER_MS;
    int code;

    h->reopened = !table_drain(s->table, closed->number, until);
    if (h->reopened)
        code = err_set(err, ERR_AGAIN, "requests in the window did not end within %d ms",
                       MOVE_DRAIN_MS);
    else
        code = window_commit(x, s, closed, a, err);
    if (code < 0 && window_is_given(x, s))
        code = 0;
    if (code < 0)
        code = window_undo(x, s, closed, code, err);
    map_unref(closed);
    return code;
}

int hand_over_next(struct sharded *s, struct hand_over *h, struct err *err)
{
    struct window x = {0};
    struct shard_map *m = NULL;
    struct arena a = {0};
    struct garbage_removed removed = {0};
    int code = move_open_map(s, &m, err);

    if (code == 0 && m->move.id.len == 0)
        code = err_code(err, ERR_END);
    if (code == 0)
        code = window_choose(&x, s, m, h, &a, err);
    if (code == 0)
        code = move_remove_garbage(s, m, x.to, &x.w, &removed, err);
    h->cleaned = removed.more;
    uint64_t since = clock_mono_ns();
    if (code == 0 && !h->cleaned) {
        code = window_close(&x, s, m, err);
        if (code == 0)
            code = window_finish(&x, s, h, &a, err);
        else
            code = window_undo(&x, s, m, code, err); /* the window may be closed in spite of the
                                                        error */
        h->closed_ms = (clock_mono_ns() - since) / NS_PER_MS;
    }
    if (code == 0 && !h->cleaned)
        h->keys = x.keys;
    map_unref(m);
    arena_release(&a);
    return code;
}
