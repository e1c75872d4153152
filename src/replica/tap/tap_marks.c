/* Marks of buckets that have intents in the journal (docs/replication.md, R6). They work like the
 * write bitmap of a RAID.
 *
 * The journal's pages, and the end of the store's log with the last records, may be only in the
 * kernel's memory. A kill of weir does not lose them. A crash of the machine does, and so it loses
 * intents of puts that the storage has done. So before its first entry a bucket is marked, by a
 * durable step, with the id of the machine's start (the *boot id*). A start that finds a mark with
 * another boot id copies the bucket again.
 *
 * A mark is removed some time after the last entry. Every entry holds its bucket's mark until the
 * change is recorded, and a held mark is not removed. So in the store's log the removal comes after
 * the records. Only the thread that has the role of the announcer (tap_int.h) adds and removes
 * marks. A mark that is being removed cannot be held; requests wait until it is removed. */
#include "base/clock.h"
#include "replica/first.h"
#include "replica/tap/tap_int.h"

#include <stdlib.h>

enum {
    IDLE_MS = MS_PER_MINUTE,
    REMOVE_MAX = 64, /* most marks that one step removes */
};
#define MARKS_KEY STR("w:marks") /* hash in queueDB, where the intents are */
#define SUSPECT   STR("suspect") /* value in place of a boot id: intents may have been lost */

struct mark {
    struct arena a;
    struct str field, storage, bucket; /* in the arena */
    /* `told`: the failure to copy the bucket was logged; only the announcer uses these two. */
    bool suspect, told;
    /* When the mark was last used. taps.lock guards this member and the two below. */
    uint64_t used_ns;
    size_t held;
    bool going;
};

static void mark_field(struct buf *out, struct str storage, struct str bucket)
{
    store_key_part(out, storage);
    buf_append_char(out, ':');
    store_key_part(out, bucket);
}

static int mark_write(struct taps *t, struct str field, struct str value, struct err *err)
{
    struct arena a = ARENA_INIT(64 * KIB);
    struct store *s = queue_store(t->o.queue);
    struct reply *reply;
    int code = value.len ? store_call(s, &a, &reply, err, STR("HSET"), MARKS_KEY, field, value)
                         : store_call(s, &a, &reply, err, STR("HDEL"), MARKS_KEY, field);

    if (code == 0)
        code = reply_expect(reply, REPLY_INTEGER, err);
    arena_release(&a);
    return code;
}

static struct mark *mark_new(struct taps *t, struct str storage, struct str bucket)
{
    struct mark *m = xcalloc(1, sizeof(*m));
    struct buf field = {0};

    m->a = ARENA_INIT(0);
    m->storage = arena_str(&m->a, storage);
    m->bucket = arena_str(&m->a, bucket);
    mark_field(&field, storage, bucket);
    m->field = arena_str(&m->a, buf_str(&field));
    m->used_ns = clock_mono_ns();
    buf_release(&field);
    mutex_lock(&t->lock);
    map_put(&t->marks, m->field, m);
    mutex_unlock(&t->lock);
    return m;
}

static void mark_free(struct taps *t, struct mark *m)
{
    mutex_lock(&t->lock);
    map_remove(&t->marks, m->field);
    mutex_unlock(&t->lock);
    arena_release(&m->a);
    free(m);
}

static void role_take(struct taps *t)
{
    mutex_lock(&t->lock);
    while (t->announcing)
        cond_wait(&t->announced, &t->lock);
    t->announcing = true;
    mutex_unlock(&t->lock);
}

static void role_give(struct taps *t)
{
    mutex_lock(&t->lock);
    t->announcing = false;
    cond_broadcast(&t->announced);
    mutex_unlock(&t->lock);
}

/* --- holding marks --- */

static struct mark *mark_hold(struct taps *t, struct str field)
{
    mutex_lock(&t->lock);
    struct mark *m = map_get(&t->marks, field);
    if (m && m->going)
        m = NULL;
    if (m) {
        m->held++;
        m->used_ns = clock_mono_ns();
    }
    mutex_unlock(&t->lock);
    return m;
}

/* Writes a mark that does not exist yet, or whose removal has begun and may have failed. Called by
 * the announcer. */
static int mark_again(struct taps *t, struct str storage, struct str bucket, struct str field,
                      struct err *err)
{
    struct mark *m = map_get(&t->marks, field);
    int code = mark_write(t, field, m && m->suspect ? SUSPECT : t->o.boot, err);

    if (code < 0)
        return code;
    if (!m)
        m = mark_new(t, storage, bucket);
    mutex_lock(&t->lock);
    m->going = false;
    mutex_unlock(&t->lock);
    return 0;
}

static int mark_hold_new(struct taps *t, struct str storage, struct str bucket, struct str field,
                         struct mark **out, struct err *err)
{
    int code = 0;

    role_take(t);
    *out = mark_hold(t, field);
    if (!*out)
        code = mark_again(t, storage, bucket, field, err);
    if (code == 0 && !*out)
        *out = mark_hold(t, field);
    role_give(t);
    return code;
}

int marks_hold(struct taps *t, struct str storage, struct str bucket, struct mark **out,
               struct err *err)
{
    struct buf field = {0};
    int code = 0;

    mark_field(&field, storage, bucket);
    *out = mark_hold(t, buf_str(&field));
    if (!*out)
        code = mark_hold_new(t, storage, bucket, buf_str(&field), out, err);
    buf_release(&field);
    return code;
}

void marks_drop(struct taps *t, struct mark *m)
{
    mutex_lock(&t->lock);
    m->held--;
    mutex_unlock(&t->lock);
}

/* --- removing marks --- */

/* Begins to remove a mark. Returns false when the mark is held; then it stays. Called by the
 * announcer. */
static bool mark_begin_removal(struct taps *t, struct mark *m)
{
    mutex_lock(&t->lock);
    m->going = m->held == 0;
    bool is = m->going;
    mutex_unlock(&t->lock);
    return is;
}

/* Removes marks from the store. After a failure the marks still count as being removed, because it
 * is not known whether the store still has them. */
static int marks_remove(struct taps *t, struct mark **some, size_t count, struct err *err)
{
    struct arena a = ARENA_INIT(64 * KIB);
    struct str args[2 + REMOVE_MAX] = {STR("HDEL"), MARKS_KEY};
    struct reply *reply;

    for (size_t i = 0; i < count; i++)
        args[2 + i] = some[i]->field;
    int code = store_command(queue_store(t->o.queue), &a, &reply, args, 2 + count, err);
    if (code == 0)
        code = reply_expect(reply, REPLY_INTEGER, err);
    for (size_t i = 0; i < count && code == 0; i++)
        mark_free(t, some[i]);
    arena_release(&a);
    return code;
}

struct choice {
    bool (*fn)(const struct mark *m, void *ctx);
    void *ctx;
    bool busy; /* some of the chosen marks are held */
};

/* Collects up to REMOVE_MAX of the marks that c->fn chooses, and begins to remove them. Suspect
 * marks and marks that are held are left out. */
static size_t marks_choose(struct taps *t, struct choice *c, struct mark **out)
{
    size_t at = 0, count = 0;
    struct str field;
    void *value;

    c->busy = false;
    while (count < REMOVE_MAX && map_next(&t->marks, &at, &field, &value)) {
        struct mark *m = value;
        mutex_lock(&t->lock);
        bool chosen = !m->suspect && c->fn(m, c->ctx);
        mutex_unlock(&t->lock);
        if (chosen && mark_begin_removal(t, m))
            out[count++] = m;
        else
            c->busy |= chosen;
    }
    return count;
}

/* Removes the marks that `fn` chooses, in several steps. ERR_BUSY: some of them are held. Between
 * two steps another thread may take the role of the announcer, so that requests do not wait
 * long. */
static int marks_clear(struct taps *t, bool (*fn)(const struct mark *m, void *ctx), void *ctx,
                       struct err *err)
{
    struct choice c = {fn, ctx, false};
    struct mark *some[REMOVE_MAX];
    size_t count = REMOVE_MAX;
    int code = 0;

    if (!t->o.boot.len)
        return 0;
    while (count == REMOVE_MAX && code == 0) {
        role_take(t);
        count = marks_choose(t, &c, some);
        if (count)
            code = marks_remove(t, some, count, err);
        role_give(t);
    }
    return code == 0 && c.busy ? ERR_BUSY : code;
}

static bool mark_is_idle(const struct mark *m, void *ctx)
{
    return clock_mono_ns() - m->used_ns >= *(const uint64_t *)ctx;
}

/* Returns whether the mark's bucket, as a source or as a side of a switch, has a switch that is not
 * done. */
static bool mark_has_switch(const struct mark *m, void *ctx)
{
    const struct replication_view *view = ctx;
    const struct replication *const *list = NULL;
    size_t count = replication_view_from(view, m->storage, m->bucket, &list);

    for (size_t i = 0; i < count; i++)
        if (list[i]->has_switch)
            return true;
    return replication_view_switch(view, m->storage, m->bucket);
}

int marks_clear_idle(struct taps *t, uint64_t idle_ns, struct err *err)
{
    return marks_clear(t, mark_is_idle, &idle_ns, err);
}

int marks_clear_switched(struct taps *t, struct err *err)
{
    struct replication_view *view = NULL;
    int code = replications_view(t->o.replications, &view, err);

    if (code == 0)
        code = marks_clear(t, mark_has_switch, view, err);
    replication_view_unref(view);
    return code;
}

/* --- after a crash of the machine --- */

/* Begins the copies of the bucket again. ERR_CONFLICT, a switch is in progress, does not happen
 * here, because a switch begins only when the bucket has no mark. */
static int mark_copy_anew(struct taps *t, struct mark *m, const struct replication_view *view,
                          struct err *err)
{
    const struct replication *const *list = NULL;
    size_t count = replication_view_from(view, m->storage, m->bucket, &list);
    int code = 0;

    for (size_t i = 0; code == 0 && i < count; i++) {
        struct arena a = ARENA_INIT(64 * KIB);
        struct task first = first_task_resync(&a, &list[i]->id);
        code = arena_error(&a) < 0
                   ? err_code(err, ERR_NO_MEMORY)
                   : replication_resync(t->o.replications, &list[i]->id, &first, true, err);
        if (code == ERR_NOT_FOUND)
            code = 0;
        if (code == 0)
            log_warn(t->o.log, "replica.copied_anew", log_s("bucket", m->bucket),
                     log_s("from", m->storage), log_s("to", list[i]->id.to));
        arena_release(&a);
    }
    return code;
}

/* Begins the copies of a suspect bucket again. After that the bucket is not suspect any more.
 * Called by the announcer. */
static void mark_look_into(struct taps *t, struct mark *m, const struct replication_view *view)
{
    struct err err = {0};
    int code = mark_copy_anew(t, m, view, &err);

    if (code == 0 && mark_begin_removal(t, m)) {
        code = marks_remove(t, &m, 1, &err);
        if (code == 0)
            return;
    } else if (code == 0) { /* later entries hold the mark, so it becomes a normal one */
        code = mark_write(t, m->field, t->o.boot, &err);
        m->suspect = code < 0;
    }
    if (code == 0)
        return;
    if (!m->told)
        log_error(t->o.log, "replica.not_copied_anew", log_s("bucket", m->bucket),
                  log_s("from", m->storage), log_z("error", err.text));
    m->told = true;
}

static void marks_look_into(struct taps *t)
{
    struct replication_view *view = NULL;
    size_t at = 0;
    struct str field;
    void *value;

    if (replications_view(t->o.replications, &view, NULL) < 0)
        return;
    role_take(t);
    while (map_next(&t->marks, &at, &field, &value)) {
        struct mark *m = value;
        if (m->suspect)
            mark_look_into(t, m, view);
    }
    role_give(t);
    replication_view_unref(view);
}

void marks_keep(struct taps *t)
{
    struct err err = {0};

    if (!t->o.boot.len)
        return;
    marks_look_into(t);
    uint64_t idle_ms = t->o.mark_idle_ms ? t->o.mark_idle_ms : IDLE_MS;
    int code = marks_clear_idle(t, idle_ms * NS_PER_MS, &err);
    if (code < 0 && code != ERR_BUSY)
        log_warn(t->o.log, "replica.marks_left", log_z("error", err.text));
}

static int mark_load(struct taps *t, struct str field, struct str value, bool kept, struct err *err)
{
    struct buf storage = {0}, bucket = {0};
    struct str first, second;
    int code = 0;

    str_cut(field, ':', &first, &second);
    if (store_key_unescape(&storage, first) < 0 || store_key_unescape(&bucket, second) < 0)
        code =
            err_set(err, ERR_CORRUPT, "'" STR_FMT "' is not the mark of a bucket", STR_ARG(field));
    if (code == 0) {
        struct mark *m = mark_new(t, buf_str(&storage), buf_str(&bucket));
        m->suspect = !kept || !str_eq(value, t->o.boot);
        if (m->suspect)
            code = mark_write(t, m->field, SUSPECT, err);
    }
    buf_release(&storage);
    buf_release(&bucket);
    return code;
}

int marks_load(struct taps *t, bool kept, struct err *err)
{
    struct arena a = ARENA_INIT(0);
    struct reply *reply;

    if (!t->o.boot.len)
        return 0;
    int code = store_call(queue_store(t->o.queue), &a, &reply, err, STR("HGETALL"), MARKS_KEY);
    if (code == 0)
        code = reply_expect(reply, REPLY_ARRAY, err);
    for (size_t i = 0; code == 0 && i + 1 < reply->count; i += 2)
        code = mark_load(t, reply->items[i].str, reply->items[i + 1].str, kept, err);
    arena_release(&a);
    return code;
}

void marks_release(struct taps *t)
{
    size_t at = 0;
    struct str field;
    void *value;
    struct err err = {0};

    if (marks_clear_idle(t, 0, &err) <
        0) /* the marks stay, and are valid until the machine restarts */
        log_info(t->o.log, "replica.marks_left", log_z("error", err.text));
    while (map_next(&t->marks, &at, &field, &value))
        mark_free(t, value);
    map_release(&t->marks);
}

int taps_suspect(struct queue *q, struct str storage, struct str bucket, bool *out, struct err *err)
{
    struct arena a = ARENA_INIT(64 * KIB);
    struct buf field = {0};
    struct reply *reply;

    mark_field(&field, storage, bucket);
    int code = store_call(queue_store(q), &a, &reply, err, STR("HGET"), MARKS_KEY, buf_str(&field));
    if (code == 0 && !reply_is_nil(reply))
        code = reply_expect(reply, REPLY_BULK, err);
    if (code == 0)
        *out = !reply_is_nil(reply) && str_eq(reply->str, SUSPECT);
    buf_release(&field);
    arena_release(&a);
    return code;
}
