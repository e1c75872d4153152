/* Progress of syncs. In the hash of progress.h, a field's value is "<started> <total> <done>
 * <failed> <bytes> <worker>". */
#include "archive/progress.h"

#include "base/clock.h"

#define PROGRESS_KEY STR("w:archive:running")

static void progress_write(struct archive *x, const struct schedule_claim *c, struct sync_scope *s)
{
    struct arena a = {0};
    struct reply *reply;
    struct str value = arena_fmt(&a, "%lld %llu %llu %llu %llu %s", (long long)s->now_ms,
                                 (unsigned long long)atomic_load(&s->total),
                                 (unsigned long long)atomic_load(&s->done),
                                 (unsigned long long)atomic_load(&s->failed),
                                 (unsigned long long)atomic_load(&s->bytes), x->worker);
    struct err err = {0};

    if (store_call(x->app, &a, &reply, &err, STR("HSET"), PROGRESS_KEY, c->member, value) < 0)
        log_debug(x->log, "archive.progress", log_z("why", err.text));
    arena_release(&a);
}

void progress_begin(struct archive *x, const struct schedule_claim *c, struct sync_scope *s)
{
    atomic_store(&s->noted_ms, (int64_t)clock_mono_ms());
    progress_write(x, c, s);
}

void progress_note(struct archive *x, const struct schedule_claim *c, struct sync_scope *s)
{
    int64_t now = (int64_t)clock_mono_ms(), last = atomic_load(&s->noted_ms);

    if (now - last >= PROGRESS_EVERY_MS && atomic_compare_exchange_strong(&s->noted_ms, &last, now))
        progress_write(x, c, s);
}

void progress_end(struct archive *x, const struct schedule_claim *c)
{
    struct arena a = {0};
    struct reply *reply;
    struct err err = {0};

    if (store_call(x->app, &a, &reply, &err, STR("HDEL"), PROGRESS_KEY, c->member) < 0)
        log_debug(x->log, "archive.progress", log_z("why", err.text));
    arena_release(&a);
}

static bool progress_number(struct str *rest, uint64_t *out)
{
    struct str word;

    str_cut(*rest, ' ', &word, rest);
    return str_u64(word, out) == 0;
}

static bool progress_read(struct progress *p, struct str member, struct str value)
{
    uint64_t started;

    *p = (struct progress){.member = member};
    bool ok = progress_number(&value, &started) && progress_number(&value, &p->total) &&
              progress_number(&value, &p->done) && progress_number(&value, &p->failed) &&
              progress_number(&value, &p->bytes);
    p->started_ms = (int64_t)started;
    p->worker = value;
    return ok;
}

/* Whether the account is locked, so that a sync of it may still be running. */
static int progress_is_live(struct archive *x, struct arena *a, struct str member, bool *live,
                            struct err *err)
{
    struct archive_account c;
    struct reply *reply;

    *live = false;
    if (archive_account_read(&c, a, member, err) < 0)
        return 0;
    int code = store_call(x->app, a, &reply, err, STR("EXISTS"), archive_account_lock(&c, a));
    *live = code == 0 && reply->type == REPLY_INTEGER && reply->integer > 0;
    return code;
}

int progress_list(struct archive *x, struct arena *a, struct progress **out, size_t *count,
                  struct err *err)
{
    struct reply *all;
    bool live;
    int code = store_call(x->app, a, &all, err, STR("HGETALL"), PROGRESS_KEY);

    *count = 0;
    if (code < 0)
        return code;
    *out = arena_array(a, all->count / 2 + 1, sizeof(**out));
    if (!*out)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i + 1 < all->count && code == 0; i += 2) {
        if (!progress_read(&(*out)[*count], all->items[i].str, all->items[i + 1].str))
            continue;
        code = progress_is_live(x, a, all->items[i].str, &live, err);
        *count += live;
    }
    return code;
}
