/* The forges that weir knows: opens, finds and lists them, and reads their states. */
#include "archive/forges.h"
#include "archive/forge_int.h"

#include "base/clock.h"
#include "conf/conf.h"

#include <stdlib.h>

enum {
    FORGES_CONNECT_MS = 10 * MS_PER_S,
    FORGES_CALL_MS = 60 * MS_PER_S,
    FORGES_LOOK_MS = MS_PER_S, /* an answer of forges_rests() may be this old */
};

/* --- entries --- */

struct forge_entry *forge_entry_new(const struct forge *f)
{
    struct forge_entry *e = xzalloc(sizeof(*e));

    atomic_init(&e->refs, 1);
    e->forge = *f;
    e->forge.host = arena_str(&e->arena, f->host);
    e->forge.api = arena_str(&e->arena, f->api);
    e->forge.git = arena_str(&e->arena, f->git);
    e->forge.bucket = arena_str(&e->arena, f->bucket);
    e->forge.sees_pushes = forge_row(f->kind)->sees_pushes;
    e->forge.tokens = 0;
    return e;
}

bool forge_entry_add_token(struct forge_entry *e, struct str id, struct str secret)
{
    vec_each (&e->tokens, struct forge_token *, t)
        if (str_eq(t->id, id))
            return true;
    if (e->tokens.len == FORGE_TOKENS_MAX)
        return false;
    vec_push(&e->tokens, ((struct forge_token){.id = arena_str(&e->arena, id),
                                               .secret = arena_str(&e->arena, secret)}));
    e->forge.tokens = e->tokens.len;
    return true;
}

void forge_entry_unref(struct forge_entry *e)
{
    if (!e || atomic_fetch_sub(&e->refs, 1) != 1)
        return;
    vec_each (&e->tokens, struct forge_token *, t)
        secure_zero((char *)t->secret.p, t->secret.len);
    vec_release(&e->tokens);
    arena_release(&e->arena);
    free(e);
}

/* --- opening --- */

void forges_begin(struct forges *f)
{
    mutex_lock(&f->lock);
    while (f->busy)
        cond_wait(&f->idle, &f->lock);
    f->busy = true;
    mutex_unlock(&f->lock);
}

void forges_end(struct forges *f)
{
    mutex_lock(&f->lock);
    f->busy = false;
    cond_broadcast(&f->idle);
    mutex_unlock(&f->lock);
}

static int forges_load_now(void *ctx, struct err *err)
{
    struct forges *f = ctx;

    forges_begin(f);
    int code = forges_load(f, err);
    forges_end(f);
    return code;
}

/* Opens everything except the forges of the store. */
static int forges_prepare(struct forges *f, const struct forges_options *o, struct err *err)
{
    bool made;
    int code = seal_key_open(&f->key, o->key_file, &made, err);
    bool is_short = o->timeout_ms > 0 && o->timeout_ms < FORGES_CALL_MS;

    if (code == 0)
        code = quota_open(&f->quota, o->app, o->rate, o->log, err);
    if (code == 0)
        code = forges_add_fixed(f, o->conf, err);
    f->client =
        client_new(&(struct client_options){.ca_file = o->ca_file,
                                            .direct = true,
                                            .user_agent = "weir-archive",
                                            .connect_timeout_ms = FORGES_CONNECT_MS,
                                            .timeout_ms = is_short ? o->timeout_ms : FORGES_CALL_MS,
                                            .max_attempts = 1});
    return code;
}

int forges_open(struct forges **out, const struct forges_options *o, struct err *err)
{
    struct forges *f = xzalloc(sizeof(*f));

    f->config = o->config;
    f->log = o->log;
    mutex_init(&f->lock, "archive.forges");
    cond_init(&f->idle);
    int code = forges_prepare(f, o, err);
    if (code == 0)
        code = reload_open(&f->reload,
                           &(struct reload_options){.store = o->config,
                                                    .channel = FORGES_CHANNEL,
                                                    .load = forges_load_now,
                                                    .ctx = f,
                                                    .log = o->log,
                                                    .failed = "archive.forges_not_loaded",
                                                    .done = "archive.forges_loaded",
                                                    .fatal = RELOAD_CORRUPT},
                           err);
    if (code < 0)
        forges_close(f);
    else
        *out = f;
    return code;
}

void forges_close(struct forges *f)
{
    if (!f)
        return;
    reload_close(&f->reload);
    while (f->fixed.len)
        forge_entry_unref(vec_pop(&f->fixed));
    while (f->stored.len)
        forge_entry_unref(vec_pop(&f->stored));
    vec_release(&f->fixed);
    vec_release(&f->stored);
    client_free(f->client);
    quota_close(f->quota);
    seal_key_release(&f->key);
    cond_release(&f->idle);
    mutex_release(&f->lock);
    free(f);
}

int forges_reload(struct forges *f, struct err *err)
{
    return reload_now(&f->reload, err);
}

struct quota *forges_quota(struct forges *f)
{
    return f->quota;
}

/* --- finding --- */

struct forge_entry *forge_entry_among(struct forge_entry *const *items, size_t count,
                                      struct str host)
{
    for (size_t i = 0; i < count; i++)
        if (str_ieq(items[i]->forge.host, host))
            return items[i];
    return NULL;
}

/* An entry of the configuration file comes first, then one of the store, then the built-in one. */
struct forge_entry *forges_get_locked(struct forges *f, struct str host)
{
    struct forge_entry *fixed = forge_entry_among(f->fixed.items, f->fixed.len, host);
    struct forge_entry *stored = forge_entry_among(f->stored.items, f->stored.len, host);

    if (stored && stored->shares_bucket)
        stored = NULL;
    return !fixed || (stored && fixed->forge.source == FORGE_BUILT_IN) ? stored : fixed;
}

struct forge_entry *forges_get(struct forges *f, struct str host)
{
    mutex_lock(&f->lock);
    struct forge_entry *e = forges_get_locked(f, host);
    if (e)
        atomic_fetch_add(&e->refs, 1);
    mutex_unlock(&f->lock);
    return e;
}

/* Copies a forge for a caller. The tokens are not copied. */
static struct forge forge_copy(struct arena *a, const struct forge *f)
{
    struct forge out = *f;

    out.host = arena_str(a, f->host);
    out.api = arena_str(a, f->api);
    out.git = arena_str(a, f->git);
    out.bucket = arena_str(a, f->bucket);
    return out;
}

int forges_find(struct forges *f, struct arena *a, struct str host, struct forge *out,
                struct err *err)
{
    struct forge_entry *e = forges_get(f, host);

    if (!e)
        return err_set(err, ERR_NOT_FOUND, "there is no forge " STR_FMT, STR_ARG(host));
    *out = forge_copy(a, &e->forge);
    forge_entry_unref(e);
    return arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

static int forge_order(const void *a, const void *b)
{
    return str_cmp(((const struct forge *)a)->host, ((const struct forge *)b)->host);
}

int forges_list(struct forges *f, struct arena *a, struct forge **out, size_t *count,
                struct err *err)
{
    size_t n = 0;

    mutex_lock(&f->lock);
    struct forge *list = arena_array(a, f->fixed.len + f->stored.len, sizeof(*list));
    for (size_t i = 0; list && i < f->fixed.len + f->stored.len; i++) {
        struct forge_entry *e =
            i < f->fixed.len ? f->fixed.items[i] : f->stored.items[i - f->fixed.len];
        if (forges_get_locked(f, e->forge.host) == e)
            list[n++] = forge_copy(a, &e->forge);
    }
    mutex_unlock(&f->lock);
    if (!list || arena_error(a) < 0)
        return err_code(err, ERR_NO_MEMORY);
    qsort(list, n, sizeof(*list), forge_order);
    *out = list;
    *count = n;
    return 0;
}

/* --- how they stand --- */

/* Computes the time at which the next request can be sent. */
static int64_t forge_state_until(const struct forge_state *s)
{
    int64_t soonest = INT64_MAX;

    for (size_t i = 0; i < s->token_count; i++)
        if (!s->tokens[i].dead_ms && s->tokens[i].until_ms < soonest)
            soonest = s->tokens[i].until_ms;
    if (soonest == INT64_MAX)
        soonest = 0;
    return s->host.until_ms > soonest ? s->host.until_ms : soonest;
}

static int forge_entry_state(struct forges *f, struct arena *a, const struct forge_entry *e,
                             struct forge_state *out, struct err *err)
{
    size_t count = e->tokens.len, alive = 0;
    struct str *ids = arena_array(a, count + 1, sizeof(*ids));

    *out = (struct forge_state){0};
    out->tokens = arena_array(a, count + 1, sizeof(*out->tokens));
    if (!ids || !out->tokens)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < count; i++)
        ids[i] = arena_str(a, e->tokens.items[i].id);
    ids[count] = QUOTA_NO_TOKEN;
    int code = quota_read(f->quota, a, arena_str(a, e->forge.host), ids, count + 1, &out->host,
                          out->tokens, err);
    if (code < 0)
        return code;
    for (size_t i = 0; i < count; i++)
        alive += !out->tokens[i].dead_ms;
    out->token_count = count + (alive == 0);
    out->until_ms = forge_state_until(out);
    return 0;
}

int forges_state(struct forges *f, struct arena *a, struct str host, struct forge_state *out,
                 struct err *err)
{
    struct forge_entry *e = forges_get(f, host);

    if (!e)
        return err_set(err, ERR_NOT_FOUND, "there is no forge " STR_FMT, STR_ARG(host));
    int code = forge_entry_state(f, a, e, out, err);
    forge_entry_unref(e);
    return code;
}

int forges_rests(struct forges *f, struct str host, int64_t *until_ms, struct err *err)
{
    struct forge_entry *e = forges_get(f, host);
    uint64_t now = clock_mono_ms();
    int code = 0;

    if (!e)
        return err_set(err, ERR_NOT_FOUND, "there is no forge " STR_FMT, STR_ARG(host));
    uint64_t asked = atomic_load(&e->asked_ms);
    if (!asked || now - asked >= FORGES_LOOK_MS) {
        struct arena a = {0};
        struct forge_state state;
        code = forge_entry_state(f, &a, e, &state, err);
        if (code == 0) {
            atomic_store(&e->rests_until_ms, state.until_ms);
            atomic_store(&e->asked_ms, now ? now : 1);
        }
        arena_release(&a);
    }
    *until_ms = atomic_load(&e->rests_until_ms);
    forge_entry_unref(e);
    return code;
}
