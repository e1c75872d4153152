/* Quotas of forges in appDB, and the thread that extends the seats of transfers. */
#include "archive/quota.h"

#include "archive/scripts.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/vec.h"
#include "coord/limit.h"
#include "os/loop.h"

#include <stdlib.h>

enum { QUOTA_WORDS_MAX = 256, QUOTA_JITTER_MS = 10 * MS_PER_S, QUOTA_STATE_FIELDS = 6 };

/* A seat for a transfer. A transfer may last for hours, so the keeper, a thread of this module,
 * extends the seat again and again. */
struct quota_held {
    char *key; /* owned: the key of the host's seats */
    char id[QUOTA_SEAT_LEN + 1];
};

struct quota {
    struct store *app;
    unsigned rate; /* most requests a second with one token */
    const struct log *log;
    struct mutex lock; /* class "archive.quota"; guards `held` */
    VEC(struct quota_held) held;
    struct loop keeper;
};

static const struct {
    const char *name;
    int seats;
    int64_t ms; /* how long a seat lasts unless it is extended */
} quota_sides[] = {
    [QUOTA_API] = {"api", QUOTA_API_SEATS, QUOTA_SEAT_MS},
    [QUOTA_GIT] = {"git", QUOTA_GIT_SEATS, QUOTA_GIT_SEAT_MS},
};

/* --- keys --- */

static struct str quota_key(struct arena *a, const char *prefix, struct str host, struct str rest)
{
    struct buf key = {0};

    buf_append_z(&key, prefix);
    store_key_part(&key, host);
    if (rest.len) {
        buf_append_char(&key, ':');
        store_key_part(&key, rest);
    }
    struct str out = arena_str(a, buf_str(&key));
    buf_release(&key);
    return out;
}

static struct str quota_host_key(struct arena *a, struct str host)
{
    return quota_key(a, "w:archive:host:", host, STR_EMPTY);
}

static struct str quota_token_key(struct arena *a, struct str host, struct str token)
{
    return quota_key(a, "w:archive:token:", host, token);
}

static struct str quota_seats_key(struct arena *a, struct str host, enum quota_side side)
{
    return quota_key(a, "w:archive:seats:", host, str_z(quota_sides[side].name));
}

static struct str quota_number(struct arena *a, int64_t n)
{
    return arena_fmt(a, "%lld", (long long)n);
}

/* --- the keeper of seats --- */

static int quota_keep(struct quota *q, struct err *err)
{
    struct arena a = {0};
    struct reply *reply;
    int code = 0;

    mutex_lock(&q->lock);
    size_t count = 1 + 2 * q->held.len;
    struct str *args = arena_array(&a, count, sizeof(*args));
    for (size_t i = 0; args && i < q->held.len; i++) {
        args[1 + 2 * i] = arena_str(&a, str_z(q->held.items[i].key));
        args[2 + 2 * i] = arena_str(&a, str_z(q->held.items[i].id));
    }
    mutex_unlock(&q->lock);
    if (args)
        args[0] = quota_number(&a, QUOTA_GIT_SEAT_MS);
    code = arena_error(&a);
    if (code == 0 && count > 1)
        code = archive_eval(q->app, &a, &reply, SCRIPT_quota_keep, args, count, err);
    arena_release(&a);
    return code;
}

static struct loop_sleep quota_keeper_step(void *ctx)
{
    struct quota *q = ctx;
    struct err err = {0};

    if (quota_keep(q, &err) < 0)
        log_warn(q->log, "archive.seats_not_kept", log_z("error", err.text));
    return loop_sleep_ms(QUOTA_GIT_SEAT_MS / 4);
}

int quota_open(struct quota **out, struct store *app, unsigned rate, const struct log *log,
               struct err *err)
{
    struct quota *q = xzalloc(sizeof(*q));

    q->app = app;
    q->rate = rate ? rate : QUOTA_RATE_PER_S;
    q->log = log;
    mutex_init(&q->lock, "archive.quota");
    int code = loop_start(&q->keeper,
                          &(struct loop_options){.name = "archive-seats",
                                                 .step = quota_keeper_step,
                                                 .ctx = q,
                                                 .first = loop_sleep_ms(QUOTA_GIT_SEAT_MS / 4)},
                          err);
    if (code < 0)
        quota_close(q);
    else
        *out = q;
    return code;
}

void quota_close(struct quota *q)
{
    if (!q)
        return;
    loop_stop(&q->keeper);
    vec_each (&q->held, struct quota_held *, h)
        free(h->key);
    vec_release(&q->held);
    mutex_release(&q->lock);
    free(q);
}

static void quota_hold(struct quota *q, struct str key, const char *id)
{
    struct quota_held held = {.key = str_dup(key)};

    memcpy(held.id, id, sizeof(held.id));
    mutex_lock(&q->lock);
    vec_push(&q->held, held);
    mutex_unlock(&q->lock);
}

static void quota_unhold(struct quota *q, const char *id)
{
    char *key = NULL;

    mutex_lock(&q->lock);
    for (size_t i = 0; !key && i < q->held.len; i++)
        if (strcmp(q->held.items[i].id, id) == 0) {
            key = q->held.items[i].key;
            vec_remove(&q->held, i);
        }
    mutex_unlock(&q->lock);
    free(key);
}

/* --- requests --- */

static int quota_read_take(struct quota_take *out, const struct reply *reply, size_t tokens,
                           struct err *err)
{
    int code = reply_expect(reply, REPLY_ARRAY, err);

    if (code == 0 && (reply->count != 4 || reply->items[0].integer < 0 ||
                      (size_t)reply->items[0].integer > tokens))
        code = err_set(err, ERR_TYPE, "the script quota_take answers something else");
    if (code < 0)
        return code;
    int64_t rest = reply->items[2].integer;
    out->token = reply->items[0].integer > 0 ? (size_t)reply->items[0].integer - 1 : 0;
    out->wait_ms = (uint64_t)reply->items[1].integer;
    out->until_ms = rest > 0 ? clock_wall_ms() + rest : 0;
    out->all_dead = reply->items[3].integer != 0;
    return 0;
}

/* Takes a seat, and chooses a token. */
static int quota_take_seat(struct quota *q, struct arena *a, struct str host, enum quota_side side,
                           const struct str *tokens, size_t count, struct quota_take *out,
                           struct err *err)
{
    struct str *args = arena_array(a, 5 + count, sizeof(*args));
    struct reply *reply;

    if (!args)
        return err_code(err, ERR_NO_MEMORY);
    args[0] = quota_host_key(a, host);
    args[1] = quota_seats_key(a, host, side);
    args[2] = quota_number(a, quota_sides[side].seats);
    args[3] = str_z(out->seat);
    args[4] = quota_number(a, quota_sides[side].ms);
    for (size_t i = 0; i < count; i++)
        args[5 + i] = quota_token_key(a, host, tokens[i]);
    int code = arena_error(a);
    if (code == 0)
        code = archive_eval(q->app, a, &reply, SCRIPT_quota_take, args, 5 + count, err);
    return code == 0 ? quota_read_take(out, reply, count, err) : code;
}

int quota_take(struct quota *q, struct str host, enum quota_side side, const struct str *tokens,
               size_t count, struct quota_take *out, struct err *err)
{
    struct arena a = {0};

    *out = (struct quota_take){0};
    id_hex(out->seat);
    int code = quota_take_seat(q, &a, host, side, tokens, count, out, err);
    bool taken = code == 0 && !out->wait_ms && !out->until_ms && !out->all_dead;
    if (taken && side == QUOTA_GIT)
        quota_hold(q, quota_seats_key(&a, host, side), out->seat);
    if (taken && count) {
        struct str name =
            arena_fmt(&a, STR_FMT ":" STR_FMT, STR_ARG(host), STR_ARG(tokens[out->token]));
        code = limit_take(q->app, name, LIMIT_FORGE, q->rate, 1, &out->wait_ms, err);
        if (code < 0 || out->wait_ms)
            quota_give(q, host, side, out->seat);
    }
    arena_release(&a);
    return code;
}

void quota_give(struct quota *q, struct str host, enum quota_side side, const char *seat)
{
    struct arena a = {0};
    struct reply *reply;
    struct err err = {0};

    if (side == QUOTA_GIT)
        quota_unhold(q, seat);
    if (store_call(q->app, &a, &reply, &err, STR("ZREM"), quota_seats_key(&a, host, side),
                   str_z(seat)) < 0) /* if this fails, the seat expires */
        log_warn(q->log, "archive.seat_not_given_back", log_s("host", host),
                 log_z("error", err.text));
    arena_release(&a);
}

/* --- notes --- */

/* Runs a script whose answer is an integer. */
static int quota_run(struct quota *q, struct arena *a, enum archive_script script,
                     const struct str *args, size_t count, int64_t *answer, struct err *err)
{
    struct reply *reply;
    int code = arena_error(a);

    if (code == 0)
        code = archive_eval(q->app, a, &reply, script, args, count, err);
    if (code == 0)
        code = reply_expect(reply, REPLY_INTEGER, err);
    if (code == 0)
        *answer = reply->integer;
    return code;
}

int quota_note(struct quota *q, struct str host, struct str token, const struct quota_note *n,
               struct err *err)
{
    struct arena a = {0};
    int64_t reset_s = n->reset_in_s < 0 ? 0 : n->reset_in_s, ignored;

    if (n->remaining < 0 || n->limit < 0)
        return 0;
    if (reset_s > QUOTA_REST_MAX_S)
        reset_s = QUOTA_REST_MAX_S;
    const struct str args[] = {quota_token_key(&a, host, token), quota_number(&a, n->limit),
                               quota_number(&a, n->remaining), quota_number(&a, reset_s * MS_PER_S),
                               quota_number(&a, (int64_t)random_below(QUOTA_JITTER_MS))};
    int code = quota_run(q, &a, SCRIPT_quota_note, args, ARRAY_SIZE(args), &ignored, err);
    arena_release(&a);
    return code;
}

int quota_rest(struct quota *q, struct str host, struct str token, int64_t rest_s, struct str words,
               int64_t *until_ms, struct err *err)
{
    struct arena a = {0};
    struct str key = token.len ? quota_token_key(&a, host, token) : quota_host_key(&a, host);
    int64_t rest = 0;

    if (rest_s > QUOTA_REST_MAX_S)
        rest_s = QUOTA_REST_MAX_S;
    const struct str args[] = {key,
                               quota_number(&a, rest_s < 0 ? 0 : rest_s * MS_PER_S),
                               quota_number(&a, QUOTA_REST_FIRST_S * MS_PER_S),
                               quota_number(&a, QUOTA_REST_DOUBLED_MAX_S * MS_PER_S),
                               quota_number(&a, (int64_t)QUOTA_REST_MAX_S * MS_PER_S),
                               str_head(words, QUOTA_WORDS_MAX)};
    int code = quota_run(q, &a, SCRIPT_quota_rest, args, ARRAY_SIZE(args), &rest, err);
    if (code == 0)
        *until_ms = clock_wall_ms() + rest;
    arena_release(&a);
    return code;
}

int quota_set_dead(struct quota *q, struct str host, struct str token, struct str words,
                   struct err *err)
{
    struct arena a = {0};
    int64_t ignored;
    const struct str args[] = {quota_token_key(&a, host, token), str_head(words, QUOTA_WORDS_MAX)};

    int code = quota_run(q, &a, SCRIPT_quota_dead, args, ARRAY_SIZE(args), &ignored, err);
    arena_release(&a);
    return code;
}

int quota_forget(struct quota *q, struct str host, struct str token, struct err *err)
{
    struct arena a = {0};
    struct reply *reply;
    struct str key = quota_token_key(&a, host, token);

    int code = store_call(q->app, &a, &reply, err, STR("DEL"), key);
    arena_release(&a);
    return code;
}

/* --- reading --- */

static int64_t quota_field(const struct reply *r, int64_t fallback)
{
    int64_t value;

    return r->type == REPLY_BULK && str_i64(r->str, &value) == 0 ? value : fallback;
}

/* Reads one state. `skew` is added to a time of the store's clock to get a time of this process's
 * clock. */
static int quota_read_state(struct quota_state *out, const struct reply *r, int64_t skew,
                            struct err *err)
{
    int code = reply_expect(r, REPLY_ARRAY, err);
    int64_t now = clock_wall_ms();

    if (code == 0 && r->count != QUOTA_STATE_FIELDS)
        code = err_set(err, ERR_TYPE, "the script quota_read answers something else");
    if (code < 0)
        return code;
    int64_t reset = quota_field(&r->items[2], 0), until = quota_field(&r->items[3], 0);
    int64_t dead = quota_field(&r->items[4], 0);
    out->limit = quota_field(&r->items[0], -1);
    out->remaining = quota_field(&r->items[1], -1);
    out->reset_ms = reset ? reset + skew : 0;
    if (out->reset_ms && out->reset_ms <= now) /* since then the forge counts anew */
        out->remaining = out->limit;
    if (out->remaining < -1)
        out->remaining = 0;
    out->until_ms = until + skew > now ? until + skew : 0;
    out->dead_ms = dead ? dead + skew : 0;
    out->words = (out->until_ms || out->dead_ms) && r->items[5].type == REPLY_BULK ? r->items[5].str
                                                                                   : STR_EMPTY;
    return 0;
}

int quota_read(struct quota *q, struct arena *a, struct str host, const struct str *tokens,
               size_t count, struct quota_state *host_state, struct quota_state *out,
               struct err *err)
{
    struct str *keys = arena_array(a, count + 1, sizeof(*keys));
    struct reply *reply;

    if (!keys)
        return err_code(err, ERR_NO_MEMORY);
    keys[0] = quota_host_key(a, host);
    for (size_t i = 0; i < count; i++)
        keys[1 + i] = quota_token_key(a, host, tokens[i]);
    int code = archive_eval(q->app, a, &reply, SCRIPT_quota_read, keys, count + 1, err);
    if (code == 0)
        code = reply_expect(reply, REPLY_ARRAY, err);
    if (code == 0 && reply->count != count + 2)
        code = err_set(err, ERR_TYPE, "the script quota_read answers something else");
    if (code < 0)
        return code;
    int64_t skew = clock_wall_ms() - quota_field(&reply->items[0], clock_wall_ms());
    code = quota_read_state(host_state, &reply->items[1], skew, err);
    for (size_t i = 0; code == 0 && i < count; i++) {
        out[i].id = tokens[i];
        code = quota_read_state(&out[i], &reply->items[2 + i], skew, err);
    }
    return code;
}
