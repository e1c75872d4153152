/* The redis engine: calls become round trips on pooled connections. docs/store-redis.md says what
 * each error code promises, and has the invariants R1 to R10. */
#include "store/redis_int.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

enum { DEFAULT_CONNECTIONS = 32, DEFAULT_TIMEOUT_MS = 2000, MAX_TIMEOUT_MS = MS_PER_HOUR };

/* A round trip of more bytes than this is refused before it is sent. Redis accepts no string of
 * more than 512 MiB. */
#define MAX_WIRE ((size_t)RESP_MAX_BULK + 16 * MIB)

struct redis {
    struct store store;
    struct redis_target target;
    struct redis_endpoint endpoint; /* its TLS context and master are owned by this struct */
    uint64_t timeout_ns;
    struct redis_pool pool;
    struct redis_groups groups;
    struct redis_subs subs;
};

/* One round trip: the bytes to send, and the replies to receive. */
struct trip {
    struct buf wire;
    /* Redis runs no command of the trip before the trip's last byte has arrived
     * (docs/store-redis.md, R3). */
    bool whole;
    struct reply *replies;
    size_t count;
};

/* The first words of error replies by which Redis refuses to run a command although the command
 * itself may be right. A command with such a reply did not run (docs/store-redis.md, R5). The same
 * holds for a script, because such an error comes before the script's first write. */
static const struct {
    const char *word;
    int code;
} refusals[] = {
    {"ASK", ERR_UNSUPPORTED},
    {"BUSY", ERR_UNAVAILABLE},
    {"CLUSTERDOWN", ERR_UNAVAILABLE},
    {"CROSSSLOT", ERR_UNSUPPORTED},
    {"DENIED", ERR_DENIED},
    {"LOADING", ERR_UNAVAILABLE},
    {"MASTERDOWN", ERR_UNAVAILABLE},
    {"MISCONF", ERR_UNAVAILABLE},
    {"MOVED", ERR_UNSUPPORTED},
    {"NOAUTH", ERR_DENIED},
    {"NOPERM", ERR_DENIED},
    {"NOREPLICAS", ERR_UNAVAILABLE},
    {"OOM", ERR_NO_SPACE},
    {"READONLY", ERR_UNAVAILABLE},
    {"TRYAGAIN", ERR_UNAVAILABLE},
    {"WRONGPASS", ERR_DENIED},
};

/* Commands that this engine refuses, because they would change a pooled connection for its next
 * user, or wait inside Redis. */
static const char *const not_pooled[] = {
    "ASKING",       "AUTH",       "BLMOVE",    "BLMPOP",       "BLPOP",      "BRPOP",
    "BRPOPLPUSH",   "BZMPOP",     "BZPOPMAX",  "BZPOPMIN",     "CLIENT",     "DISCARD",
    "EXEC",         "HELLO",      "MONITOR",   "MULTI",        "PSUBSCRIBE", "PSYNC",
    "PUNSUBSCRIBE", "QUIT",       "READONLY",  "READWRITE",    "RESET",      "SELECT",
    "SHUTDOWN",     "SSUBSCRIBE", "SUBSCRIBE", "SUNSUBSCRIBE", "SYNC",       "UNSUBSCRIBE",
    "UNWATCH",      "WAIT",       "WATCH",
};

/* Returns the refusal inside the error of a script. Redis 6 wraps the refusal of a script's
 * command: "ERR Error running script (call to f_...): @user_script:1: @user_script: 1: -OOM command
 * not allowed". Ordinary error replies of commands have no '-' there. */
static struct str unwrapped(struct str text)
{
    static const struct str mark = STR(": -");
    ptrdiff_t at = str_starts(text, STR("ERR Error running script")) ? str_find(text, mark) : -1;

    return at < 0 ? text : str_skip(text, (size_t)at + mark.len);
}

/* Returns the index of the row of `refusals` for an error text; -1: it is not a refusal. */
static int refusal_row(struct str text)
{
    struct str word, rest;

    str_cut(unwrapped(text), ' ', &word, &rest);
    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++)
        if (str_eq(word, str_z(refusals[i].word)))
            return (int)i;
    return -1;
}

int redis_refusal(struct str text)
{
    int row = refusal_row(text);

    return row < 0 ? 0 : refusals[row].code;
}

/* The prefix before Redis's own words in the text of an error; store_refusal() looks for it. */
static const struct str said = STR("redis: ");

static int redis_refused(const struct reply *r, struct err *err)
{
    int code = r->type == REPLY_ERROR ? redis_refusal(r->str) : 0;

    return code ? err_set(err, code, STR_FMT STR_FMT, STR_ARG(said), STR_ARG(r->str)) : 0;
}

const char *store_refusal(const struct err *err)
{
    struct str text = str_z(err->text);
    ptrdiff_t at = str_find(text, said);
    int row = at < 0 ? -1 : refusal_row(str_skip(text, (size_t)at + said.len));

    return row < 0 ? NULL : refusals[row].word;
}

static int check_command(const struct str *argv, size_t argc, struct err *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(not_pooled); i++)
        if (str_ieq(argv[0], str_z(not_pooled[i])))
            return err_set(err, ERR_UNSUPPORTED, "%s cannot be used on a pooled connection",
                           not_pooled[i]);
    for (size_t i = 0; i < argc; i++)
        if (argv[i].len > RESP_MAX_BULK)
            return err_set(err, ERR_TOO_LARGE, "an argument of %zu bytes", argv[i].len);
    return 0;
}

static uint64_t deadline_of(const struct redis *r)
{
    return clock_mono_ns() + r->timeout_ns;
}

static int receive_all(struct redis_conn *c, struct arena *arena, struct trip *trip,
                       uint64_t deadline_ns, struct err *err)
{
    for (size_t i = 0; i < trip->count; i++) {
        struct reply *reply;
        int rc = redis_conn_receive(c, arena, &reply, deadline_ns, err);
        if (rc < 0)
            return rc;
        trip->replies[i] = *reply;
    }
    return 0;
}

bool redis_is_replica(const struct reply *r)
{
    return reply_is_error(r, "READONLY") || reply_is_error(r, "MASTERDOWN");
}

/* Whether the server said that it is a replica; the connection must then not be used again. */
static bool turned_away(const struct trip *trip)
{
    for (size_t i = 0; i < trip->count; i++)
        if (redis_is_replica(&trip->replies[i]))
            return true;
    return false;
}

/* Makes a round trip: sends trip->wire, and receives trip->count replies into the arena. Releases
 * trip->wire. */
static int make_trip(struct redis *r, struct arena *arena, struct trip *trip, uint64_t deadline_ns,
                     struct err *err)
{
    struct redis_conn *c = NULL;
    int rc = buf_error(&trip->wire);

    if (rc < 0) {
        err_set(err, rc, "a command of more than %zu bytes", MAX_WIRE);
        goto out;
    }
    trip->replies = arena_array(arena, trip->count, sizeof(*trip->replies));
    if (!trip->replies) {
        rc = err_code(err, ERR_NO_MEMORY);
        goto out;
    }
    rc = redis_pool_send(&r->pool, &c, buf_str(&trip->wire), trip->whole, deadline_ns, err);
    if (rc < 0)
        goto out;
    BUG_ON(!c);
    rc = receive_all(c, arena, trip, deadline_ns, err);
    redis_pool_end(&r->pool, c, rc < 0 || turned_away(trip));
out:
    buf_release(&trip->wire);
    return rc;
}

static int redis_command(struct store *s, struct arena *arena, struct reply **out,
                         const struct str *argv, size_t argc, struct err *err)
{
    struct redis *r = container_of(s, struct redis, store);
    struct trip trip = {.wire = BUF_INIT(MAX_WIRE), .whole = true, .count = 1};
    int rc = check_command(argv, argc, err);

    if (rc < 0)
        return rc;
    resp_write(&trip.wire, argv, argc);
    rc = make_trip(r, arena, &trip, deadline_of(r), err);
    if (rc == 0)
        rc = redis_refused(&trip.replies[0], err);
    if (rc == 0)
        *out = trip.replies;
    return rc;
}

static int array_of(struct reply **out, struct arena *arena, struct reply *items, size_t count,
                    struct err *err)
{
    struct reply *array = arena_new(arena, struct reply);

    if (!array)
        return err_code(err, ERR_NO_MEMORY);
    *array = (struct reply){.type = REPLY_ARRAY, .items = items, .count = count};
    *out = array;
    return 0;
}

/* Returns the code for the refused commands of a pipeline; 0: none was refused. ERR_UNAVAILABLE
 * says that nothing ran, so it is not returned for a pipeline that was refused in part
 * (docs/store-redis.md, R5). */
static int pipeline_refused(const struct trip *trip, struct err *err)
{
    size_t count = 0;
    int rc = 0;

    for (size_t i = trip->count; i-- > 0;) {
        int code = redis_refused(&trip->replies[i], err);
        rc = code ? code : rc;
        count += code != 0;
    }
    if (rc == ERR_UNAVAILABLE && count < trip->count)
        return err_wrap(err, ERR_PEER, "%zu of %zu commands refused", count, trip->count);
    return rc;
}

static int redis_pipeline(struct redis *r, struct arena *arena, struct reply **out,
                          const struct store_args *commands, size_t count, struct err *err)
{
    struct trip trip = {.wire = BUF_INIT(MAX_WIRE), .whole = count == 1, .count = count};
    int rc;

    for (size_t i = 0; i < count; i++)
        resp_write(&trip.wire, commands[i].argv, commands[i].argc);
    rc = make_trip(r, arena, &trip, deadline_of(r), err);
    if (rc == 0)
        rc = pipeline_refused(&trip, err);
    if (rc == 0)
        rc = array_of(out, arena, trip.replies, count, err);
    return rc;
}

/* Answers a transaction whose EXEC was refused, so that nothing ran. `queued` has the replies to
 * its commands: QUEUED, or the error because of which the transaction was discarded. */
static int aborted(struct reply **out, struct arena *arena, struct reply *queued, size_t count,
                   const struct reply *exec, struct err *err)
{
    static const struct str discarded =
        STR("EXECABORT Transaction discarded because of previous errors.");
    static const struct str because = STR("EXECABORT Transaction discarded because of: ");
    int code = redis_refused(exec, err);

    if (!code && str_starts(exec->str, because))
        code = redis_refused(
            &(struct reply){.type = REPLY_ERROR, .str = str_skip(exec->str, because.len)}, err);
    for (size_t i = 0; i < count && !code; i++)
        code = redis_refused(&queued[i], err);
    if (code)
        return code;
    if (!reply_is_error(exec, "EXECABORT"))
        return err_set(err, ERR_PEER, "redis: EXEC: " STR_FMT, STR_ARG(exec->str));
    for (size_t i = 0; i < count; i++)
        if (queued[i].type != REPLY_ERROR)
            queued[i] = (struct reply){.type = REPLY_ERROR, .str = discarded};
    return array_of(out, arena, queued, count, err);
}

static int redis_atomic(struct redis *r, struct arena *arena, struct reply **out,
                        const struct store_args *commands, size_t count, struct err *err)
{
    struct trip trip = {.wire = BUF_INIT(MAX_WIRE), .whole = true, .count = count + 2};
    struct reply *exec;
    int rc;

    resp_write(&trip.wire, (struct str[]){STR("MULTI")}, 1);
    for (size_t i = 0; i < count; i++)
        resp_write(&trip.wire, commands[i].argv, commands[i].argc);
    resp_write(&trip.wire, (struct str[]){STR("EXEC")}, 1);
    rc = make_trip(r, arena, &trip, deadline_of(r), err);
    if (rc < 0)
        return rc;
    rc = redis_refused(&trip.replies[0], err);
    if (rc < 0)
        return rc;
    exec = &trip.replies[count + 1];
    if (exec->type == REPLY_ERROR)
        return aborted(out, arena, trip.replies + 1, count, exec, err);
    if (exec->type != REPLY_ARRAY || exec->count != count)
        return err_set(err, ERR_PEER, "redis: EXEC answered something else");
    *out = exec;
    return 0;
}

static int redis_batch(struct store *s, struct arena *arena, struct reply **out,
                       const struct batch *b, struct err *err)
{
    struct redis *r = container_of(s, struct redis, store);

    for (size_t i = 0; i < b->count; i++) {
        int rc = check_command(b->commands[i].argv, b->commands[i].argc, err);
        if (rc < 0)
            return rc;
    }
    return b->atomic ? redis_atomic(r, arena, out, b->commands, b->count, err)
                     : redis_pipeline(r, arena, out, b->commands, b->count, err);
}

static void write_evalsha(struct buf *wire, const struct script_run *run)
{
    const struct store_args *keys = &run->keys, *args = &run->args;
    size_t count = 3 + keys->argc + args->argc;
    struct str *argv = xcalloc(count, sizeof(*argv));
    char number[24];

    snprintf(number, sizeof(number), "%zu", keys->argc);
    argv[0] = STR("EVALSHA");
    argv[1] = str_z(run->script->sha1);
    argv[2] = str_z(number);
    if (keys->argc)
        memcpy(argv + 3, keys->argv, keys->argc * sizeof(*argv));
    if (args->argc)
        memcpy(argv + 3 + keys->argc, args->argv, args->argc * sizeof(*argv));
    resp_write(wire, argv, count);
    free(argv);
}

/* Runs a script by its digest. */
static int eval_by_digest(struct redis *r, struct arena *arena, struct reply **out,
                          const struct script_run *run, uint64_t deadline_ns, struct err *err)
{
    struct trip trip = {.wire = BUF_INIT(MAX_WIRE), .whole = true, .count = 1};
    int rc;

    write_evalsha(&trip.wire, run);
    if (run->script->grouped && buf_error(&trip.wire) == 0) {
        rc = redis_group_call(&r->groups, arena, out, buf_str(&trip.wire), deadline_ns, err);
        buf_release(&trip.wire);
        return rc;
    }
    rc = make_trip(r, arena, &trip, deadline_ns, err);
    if (rc == 0)
        *out = trip.replies;
    return rc;
}

/* Loads the script and runs it, in one write. */
static int eval_by_source(struct redis *r, struct arena *arena, struct reply **out,
                          const struct script_run *run, uint64_t deadline_ns, struct err *err)
{
    struct trip trip = {.wire = BUF_INIT(MAX_WIRE), .whole = true, .count = 2};
    int rc;

    resp_write(&trip.wire, (struct str[]){STR("SCRIPT"), STR("LOAD"), run->script->source}, 3);
    write_evalsha(&trip.wire, run);
    rc = make_trip(r, arena, &trip, deadline_ns, err);
    if (rc < 0)
        return rc;
    /* An error of the first reply says that the script does not compile. */
    *out = trip.replies + (trip.replies[0].type != REPLY_ERROR);
    return reply_is_error(*out, "NOSCRIPT")
               ? err_set(err, ERR_UNAVAILABLE, "redis forgets scripts as soon as they are loaded")
               : 0;
}

/* Runs a script by its digest. If Redis does not know the script (first use, restarted, flushed),
 * the script did not run. Then SCRIPT LOAD and the run are sent together in one write, perhaps on
 * another connection (docs/store-redis.md, R7). */
static int redis_eval(struct store *s, struct arena *arena, struct reply **out,
                      const struct script_run *run, struct err *err)
{
    struct redis *r = container_of(s, struct redis, store);
    uint64_t deadline_ns = deadline_of(r);
    struct reply *reply = NULL;
    int rc = eval_by_digest(r, arena, &reply, run, deadline_ns, err);

    if (rc == 0 && reply_is_error(reply, "NOSCRIPT"))
        rc = eval_by_source(r, arena, &reply, run, deadline_ns, err);
    if (rc == 0)
        rc = redis_refused(reply, err);
    if (rc == 0)
        *out = reply;
    return rc;
}

static int redis_subscribe_to(struct store_subscription **out, struct store *s, struct str channel,
                              store_message_fn *fn, void *ctx, struct err *err)
{
    return redis_subscribe(out, &container_of(s, struct redis, store)->subs, channel, fn, ctx, err);
}

static void redis_unsubscribe_from(struct store_subscription *sub)
{
    redis_unsubscribe(&container_of(sub->store, struct redis, store)->subs, sub);
}

static void redis_free(struct redis *r)
{
    redis_master_unref(r->endpoint.master);
    tls_context_unref(r->endpoint.tls);
    redis_target_release(&r->target);
    free(r);
}

static void redis_close(struct store *s)
{
    struct redis *r = container_of(s, struct redis, store);

    redis_subs_release(&r->subs);
    redis_groups_release(&r->groups);
    redis_pool_release(&r->pool);
    redis_free(r);
}

static int redis_join(struct store *const *stores, size_t count, struct err *err)
{
    for (size_t i = 1; i < count; i++)
        if (!redis_target_is_same(&container_of(stores[i], struct redis, store)->target,
                                  &container_of(stores[0], struct redis, store)->target))
            return err_set(err, ERR_INVALID, "the databases are on two Redis servers");
    return 0;
}

static const struct store_engine redis_engine = {
    .name = "redis",
    .command = redis_command,
    .batch = redis_batch,
    .eval = redis_eval,
    .subscribe = redis_subscribe_to,
    .unsubscribe = redis_unsubscribe_from,
    .join = redis_join,
    .close = redis_close,
};

/* Finds or makes the store's redis_master, which asks the sentinels. Stores on the same master
 * share it. */
static int open_master(struct redis *r, const struct store_redis_options *o, struct err *err)
{
    struct redis *beside = o->beside && o->beside->engine == &redis_engine
                               ? container_of(o->beside, struct redis, store)
                               : NULL;
    struct redis_target target;
    int rc;

    if (beside && redis_target_is_same(&beside->target, &r->target)) {
        r->endpoint.master = redis_master_ref(beside->endpoint.master);
        return 0;
    }
    rc = redis_target_parse(&target, o->url, o->number, err);
    if (rc == 0)
        r->endpoint.master = redis_master_new(&target, r->endpoint.tls, r->timeout_ns, o->log);
    return rc;
}

static int open_endpoint(struct redis *r, const struct store_redis_options *o, struct err *err)
{
    struct tls_client_options options = {.ca_file = o->ca_file, .insecure = o->tls_insecure};
    int rc = redis_target_parse(&r->target, o->url, o->number, err);

    r->endpoint.target = &r->target;
    if (rc == 0 && r->target.tls)
        rc = tls_client_context(&r->endpoint.tls, &options, err);
    if (rc == 0 && r->target.master)
        rc = open_master(r, o, err);
    return rc;
}

int store_open_redis(struct store **out, const struct store_redis_options *o, struct err *err)
{
    uint64_t timeout_ms = o->timeout_ms ? o->timeout_ms : DEFAULT_TIMEOUT_MS;
    struct redis *r = xcalloc(1, sizeof(*r));
    int rc;

    r->timeout_ns = size_min(timeout_ms, MAX_TIMEOUT_MS) * NS_PER_MS;
    rc = open_endpoint(r, o, err);
    if (rc < 0) {
        redis_free(r);
        return rc;
    }
    r->store.engine = &redis_engine;
    r->store.number = r->target.database;
    r->store.timeout_ns = r->timeout_ns;
    redis_pool_init(&r->pool, &r->endpoint,
                    o->max_connections ? o->max_connections : DEFAULT_CONNECTIONS, o->log);
    redis_groups_init(&r->groups, &r->pool);
    redis_subs_init(&r->subs, &r->store, &r->endpoint, o->log);
    r->subs.timeout_ns = r->timeout_ns;
    r->subs.pool = &r->pool;
    *out = &r->store;
    return 0;
}
