/* Carries a window to another shard by copies (shard/carry.h). */
#include "shard/carry.h"
#include "base/clock.h"
#include "shard/step.h"

void carry_init(struct carry *c, struct sharded *s, struct agree *agree,
                const struct carry_ops *ops, void *ctx)
{
    *c = (struct carry){
        .bucket = s, .agree = agree, .ops = ops, .ctx = ctx, .grace_ms = CARRY_GRACE_MS};
}

/* --- maps; under bucket->changes --- */

/* Publishes the draft, and releases it. After an error this run does not go on with its move. */
static int carry_publish(struct carry *c, struct shard_map *draft, struct err *err)
{
    int code = sharded_publish(c->bucket, draft, err);

    if (code < 0)
        c->move[0] = '\0';
    map_unref(draft);
    return code;
}

/* Waits until every process holds map `number`. ERR_CONFLICT: there is a newer one. */
static int carry_await(struct carry *c, uint64_t number, uint64_t ms, struct err *err)
{
    struct arena a = {0};
    struct str busy;
    int code =
        agree_await(c->agree, c->bucket, number, clock_mono_ns() + ms * NS_PER_MS, &a, &busy, err);

    arena_release(&a);
    return code;
}

/* Opens what the newest map has closed (H11). *out: a reference to a map in which nothing is
 * closed, the newest one that this process knows. */
static int carry_open_map(struct carry *c, struct shard_map **out, struct err *err)
{
    struct shard_map *m = table_map(c->bucket->table);
    int code = 0;

    if (m->state != SHARD_ACTIVE)
        code = err_set(err, ERR_CONFLICT, "the bucket is not sharded any more");
    if (code == 0 && m->closed != SHARD_OPEN) {
        struct shard_map *draft = map_draft(m);
        map_open(draft);
        map_unref(m);
        m = map_ref(draft);
        code = carry_publish(c, draft, err);
    }
    if (code == 0)
        *out = m;
    else
        map_unref(m);
    return code;
}

/* --- beginning --- */

/* Whether the window may be given to this shard (H9). */
static bool carry_may_take(const struct shard_map *m, const struct shard_window *w, uint32_t to)
{
    return map_place(m, to) && map_is_clean(m, w, to);
}

/* Makes a shard with the next number. */
static int carry_make(struct carry *c, struct shard_map *draft, uint32_t *to, struct err *err)
{
    struct arena a = {0};
    struct str storage, bucket;

    *to = draft->last_number + 1;
    int code = c->ops->make(c->ctx, *to, &a, &storage, &bucket, err);
    if (code == 0)
        map_add_place(draft, *to, storage, bucket);
    arena_release(&a);
    return code;
}

static int carry_note(struct carry *c, const struct shard_map *m, const struct shard_window *w,
                      uint32_t to, struct err *err)
{
    uint32_t from = map_place_at(m, map_segment_after(m, w->after))->number;
    if (!map_is_on(m, w, from))
        return err_set(err, ERR_INVALID, "the window is not on one shard");
    struct shard_map *draft = map_draft(m);
    int code = 0;

    if (draft->move.id.len)
        map_end_move(draft);
    if (to == from || !carry_may_take(m, w, to))
        code = carry_make(c, draft, &to, err);
    if (code < 0) {
        map_unref(draft);
        return code;
    }
    map_set_unclean(draft, to, w);
    map_begin_move(draft, SHARD_MOVE, from, to, w);
    char id[SHARD_BY_LEN + 1] = {0};
    memcpy(id, draft->move.id.p, size_min(draft->move.id.len, SHARD_BY_LEN));
    code = carry_publish(c, draft, err);
    if (code == 0)
        memcpy(c->move, id, sizeof(id));
    return code;
}

int carry_begin(struct carry *c, const struct shard_window *w, uint32_t to, struct err *err)
{
    struct shard_map *m = NULL;

    mutex_lock(&c->bucket->changes);
    c->move[0] = '\0';
    int code = carry_open_map(c, &m, err);
    if (code == 0)
        code = carry_note(c, m, w, to, err);
    if (code == 0)
        code = carry_await(c, m->number + 1, CARRY_SETTLE_MS, err);
    mutex_unlock(&c->bucket->changes);
    map_unref(m);
    return code;
}

/* --- handing over --- */

/* Copies, and gives up the target if the outcome of a request is not known. */
static int carry_copy(struct carry *c, const struct shard_map *m, struct err *err)
{
    int code = c->ops->copy(c->ctx, m->move.to, m->move.from, &m->move.window, err);

    if (code == ERR_TIMEOUT)
        c->move[0] = '\0';
    return code;
}

static int carry_check(const struct carry *c, const struct shard_map *m, struct err *err)
{
    if (c->move[0] && str_eq(m->move.id, str_z(c->move)))
        return 0;
    return err_set(err, ERR_CONFLICT, "the map has another move than that of this run");
}

/* Whether the window of the move was handed over already. */
static bool carry_is_given(const struct shard_map *m)
{
    return map_is_on(m, &m->move.window, m->move.to);
}

/* Closes the window. *out: a reference to the map that does. Another process may have opened it
 * again already, so this need not be the newest map. */
static int carry_close(struct carry *c, const struct shard_map *m, struct shard_map **out,
                       struct err *err)
{
    struct shard_map *draft = map_draft(m);

    shard_step_begin("shard.close");
    map_close(draft, SHARD_CLOSED_COPY, &m->move.window);
    *out = map_ref(draft);
    int code = carry_publish(c, draft, err);
    if (code == 0)
        shard_step_end("shard.close");
    return code;
}

static int carry_commit(struct carry *c, const struct shard_map *closed, struct err *err)
{
    struct shard_map *draft = map_draft(closed);

    shard_step_begin("shard.commit");
    map_open(draft);
    map_give(draft, &closed->move.window, closed->move.to);
    map_set_unclean(draft, closed->move.from, &closed->move.window);
    int code = carry_publish(c, draft, err);
    if (code == 0)
        shard_step_end("shard.commit");
    return code;
}

/* Hands over the window, which this map has closed. The window is open afterwards, unless that
 * fails too: then a request that waits for it opens it. */
static int carry_finish(struct carry *c, const struct shard_map *closed, struct err *err)
{
    struct shard_map *open = NULL;
    struct err ignored = {0};
    int code = carry_await(c, closed->number, CARRY_HOLD_MS, err);

    if (code == 0)
        code = carry_copy(c, closed, err);
    if (code == 0)
        code = carry_commit(c, closed, err);
    if (code < 0 && carry_open_map(c, &open, &ignored) == 0)
        map_unref(open);
    return code;
}

int carry_window(struct carry *c, struct err *err)
{
    struct shard_map *m = NULL, *closed = NULL;

    mutex_lock(&c->bucket->changes);
    int code = carry_open_map(c, &m, err);
    if (code == 0)
        code = carry_check(c, m, err);
    if (code == 0 && carry_is_given(m))
        code = err_set(err, ERR_CONFLICT, "the window was handed over already");
    for (int i = 0; i < CARRY_ROUNDS && code == 0; i++)
        code = carry_copy(c, m, err);
    if (code == 0)
        code = carry_close(c, m, &closed, err);
    if (code == 0)
        code = carry_finish(c, closed, err);
    mutex_unlock(&c->bucket->changes);
    map_unref(closed);
    map_unref(m);
    return code;
}

/* --- cleaning --- */

int carry_clean(struct carry *c, struct err *err)
{
    struct shard_map *m = NULL;

    mutex_lock(&c->bucket->changes);
    int code = carry_open_map(c, &m, err);
    if (code == 0)
        code = carry_check(c, m, err);
    if (code == 0 && !carry_is_given(m))
        code = err_set(err, ERR_CONFLICT, "the window was not handed over yet");
    if (code == 0)
        code = carry_await(c, m->number, CARRY_SETTLE_MS, err);
    if (code == 0) {
        table_await(c->bucket->table, m->number, clock_mono_ns() + c->grace_ms * NS_PER_MS);
        code = c->ops->clean(c->ctx, m->move.from, &m->move.window, err);
        if (code == ERR_TIMEOUT)
            c->move[0] = '\0';
    }
    if (code == 0) {
        struct shard_map *draft = map_draft(m);
        map_set_clean(draft, m->move.from, &m->move.window);
        map_end_move(draft);
        code = carry_publish(c, draft, err);
        c->move[0] = '\0';
    }
    mutex_unlock(&c->bucket->changes);
    map_unref(m);
    return code;
}
