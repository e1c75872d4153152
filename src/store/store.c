/* The front of the store: passes calls to the engine, and has the functions that both engines
 * share. */
#include "store/store_int.h"
#include "base/hex.h"

#include <openssl/evp.h>
#include <stdatomic.h>

void store_set_watch(struct store *s, const struct store_watch *w)
{
    s->watch = *w;
}

int store_is_known(struct store *s, struct err *err)
{
    return s && s->watch.check ? s->watch.check(s->watch.ctx, err) : 0;
}

static bool is_halted(const struct store *s)
{
    return s->watch.halted && atomic_load_explicit(s->watch.halted, memory_order_acquire);
}

int store_may_serve(const struct store *s, struct err *err)
{
    return s && is_halted(s) ? s->watch.why(s->watch.ctx, err) : 0;
}

int store_command(struct store *s, struct arena *arena, struct reply **out, const struct str *argv,
                  size_t argc, struct err *err)
{
    if (argc == 0)
        return err_set(err, ERR_INVALID, "a command has at least a name");
    int code = store_may_serve(s, err);
    return code < 0 ? code : s->engine->command(s, arena, out, argv, argc, err);
}

static int run_batch(struct store *s, struct arena *arena, struct reply **out,
                     const struct batch *b, struct err *err)
{
    for (size_t i = 0; i < b->count; i++)
        if (b->commands[i].argc == 0)
            return err_set(err, ERR_INVALID, "a command has at least a name");
    int code = store_may_serve(s, err);
    if (code < 0)
        return code;
    if (b->count == 0) {
        *out = arena_new(arena, struct reply);
        if (!*out)
            return err_code(err, ERR_NO_MEMORY);
        (*out)->type = REPLY_ARRAY;
        return 0;
    }
    return s->engine->batch(s, arena, out, b, err);
}

int store_atomic(struct store *s, struct arena *arena, struct reply **out,
                 const struct store_args *commands, size_t count, struct err *err)
{
    return run_batch(s, arena, out, &(struct batch){commands, count, true}, err);
}

int store_pipeline(struct store *s, struct arena *arena, struct reply **out,
                   const struct store_args *commands, size_t count, struct err *err)
{
    return run_batch(s, arena, out, &(struct batch){commands, count, false}, err);
}

void script_init(struct script *script)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;

    BUG_ON(!EVP_Digest(script->source.p, script->source.len, digest, &len, EVP_sha1(), NULL));
    BUG_ON(len * 2 + 1 != sizeof(script->sha1));
    hex_write(script->sha1, digest, len);
    script->sha1[2 * len] = '\0';
}

void scripts_init(struct script *out, const struct script_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = (struct script){.name = rows[i].name,
                                 .source = str_z(rows[i].source),
                                 .readonly = rows[i].flags & SCRIPT_READS,
                                 .relaxed = rows[i].flags & SCRIPT_RELAXED,
                                 .always = rows[i].flags & SCRIPT_ALWAYS,
                                 .grouped = rows[i].flags & SCRIPT_GROUPED};
        script_init(&out[i]);
    }
}

int store_eval(struct store *s, struct arena *arena, struct reply **out,
               const struct script_run *run, struct err *err)
{
    BUG_ON(!run->script->sha1[0]); /* script_init() was not called */
    int code = run->script->always ? 0 : store_may_serve(s, err);
    return code < 0 ? code : s->engine->eval(s, arena, out, run, err);
}

int script_eval(struct store *s, struct arena *arena, struct reply **out,
                const struct script_run *run, struct err *err)
{
    int code = store_eval(s, arena, out, run, err);

    if (code == 0 && (*out)->type == REPLY_ERROR)
        code = err_set(err, ERR_INVALID, "script %s: " STR_FMT, run->script->name,
                       STR_ARG((*out)->str));
    return code;
}

int store_subscribe(struct store_subscription **out, struct store *s, struct str channel,
                    store_message_fn *fn, void *ctx, struct err *err)
{
    return s->engine->subscribe(out, s, channel, fn, ctx, err);
}

void store_unsubscribe(struct store_subscription *sub)
{
    if (sub)
        sub->store->engine->unsubscribe(sub);
}

void store_close(struct store *s)
{
    if (s)
        s->engine->close(s);
}

int store_join(struct store *const *stores, size_t count, struct err *err)
{
    for (size_t i = 1; i < count; i++)
        if (stores[i]->engine != stores[0]->engine)
            return err_set(err, ERR_INVALID, "databases of two kinds are not of one server");
    return count ? stores[0]->engine->join(stores, count, err) : 0;
}

int store_number(const struct store *s)
{
    return s->number;
}

uint64_t store_timeout_ns(const struct store *s)
{
    return s->timeout_ns;
}

int store_ping(struct store *s, struct err *err)
{
    struct arena arena = ARENA_INIT(4 * KIB);
    struct reply *reply;
    int rc = store_call(s, &arena, &reply, err, STR("PING"));

    if (rc == 0)
        rc = reply_expect(reply, REPLY_STATUS, err);
    arena_release(&arena);
    return rc;
}

int store_probe(struct store *s, struct err *err)
{
    struct script script = {.name = "probe",
                            .source = STR("redis.call('SET', 'w:probe', '', 'PX', '1000')\n"
                                          "return redis.call('DEL', 'w:probe')\n"),
                            .relaxed = true,
                            .always = true};
    struct script_run run = {.script = &script};
    struct arena arena = ARENA_INIT(4 * KIB);
    struct reply *reply;

    script_init(&script);
    int rc = script_eval(s, &arena, &reply, &run, err);
    arena_release(&arena);
    return rc;
}

static int store_scan_page(struct store *s, struct str pattern, struct buf *cursor, struct arena *a,
                           struct reply **keys, struct err *err)
{
    struct reply *reply;
    int code = store_call(s, a, &reply, err, STR("SCAN"), buf_str(cursor), STR("MATCH"), pattern,
                          STR("COUNT"), STR("1000"));

    if (code == 0)
        code = reply_expect(reply, REPLY_ARRAY, err);
    if (code == 0 && reply->count != 2)
        code = err_set(err, ERR_TYPE, "SCAN answered with %zu items", reply->count);
    if (code == 0)
        code = reply_expect(&reply->items[1], REPLY_ARRAY, err);
    if (code < 0)
        return code;
    buf_reset(cursor);
    buf_append_str(cursor, reply->items[0].str);
    *keys = &reply->items[1];
    return 0;
}

int store_scan(struct store *s, struct str pattern, store_scan_fn *fn, void *ctx, struct err *err)
{
    struct buf cursor = {0};
    struct reply *keys;
    int code = 0;

    buf_append_z(&cursor, "0");
    do {
        struct arena a = {0};
        code = store_scan_page(s, pattern, &cursor, &a, &keys, err);
        if (code == 0)
            code = fn(ctx, keys, &a, err);
        arena_release(&a);
    } while (code == 0 && !str_eq(buf_str(&cursor), STR("0")));
    buf_release(&cursor);
    return code;
}

int store_cannot(struct err *err, const char *what, const char *word)
{
    return word ? err_set(err, ERR_STORE, "%s: the coordination store refuses writes (%s).", what,
                          word)
                : err_set(err, ERR_STORE,
                          "%s: the coordination store cannot be asked at the moment.", what);
}

int reply_expect(const struct reply *r, enum reply_type type, struct err *err)
{
    static const char *const names[] = {
        [REPLY_NIL] = "nothing",        [REPLY_STATUS] = "a status", [REPLY_ERROR] = "an error",
        [REPLY_INTEGER] = "an integer", [REPLY_BULK] = "a string",   [REPLY_ARRAY] = "an array",
    };

    if (r->type == type)
        return 0;
    if (r->type == REPLY_ERROR)
        return err_set(err, reply_is_error(r, "WRONGTYPE") ? ERR_TYPE : ERR_INVALID, STR_FMT,
                       STR_ARG(r->str));
    return err_set(err, ERR_TYPE, "the store answered %s, not %s", names[r->type], names[type]);
}

void store_key_part(struct buf *out, struct str part)
{
    for (size_t i = 0; i < part.len; i++) {
        if (part.p[i] == ':')
            buf_append_z(out, "%3A");
        else if (part.p[i] == '%')
            buf_append_z(out, "%25");
        else
            buf_append_char(out, part.p[i]);
    }
}

int store_key_unescape(struct buf *out, struct str part)
{
    while (part.len) {
        if (str_starts(part, STR("%3A")) || str_starts(part, STR("%25"))) {
            buf_append_char(out, part.p[1] == '3' ? ':' : '%');
            part = str_skip(part, 3);
        } else if (part.p[0] == '%' || part.p[0] == ':') {
            return ERR_PARSE; /* store_key_part() never wrote this */
        } else {
            buf_append_char(out, part.p[0]);
            part = str_skip(part, 1);
        }
    }
    return 0;
}

void store_pattern_part(struct buf *out, struct str literal)
{
    for (size_t i = 0; i < literal.len; i++) {
        if (memchr("*?[]\\", literal.p[i], 5))
            buf_append_char(out, '\\');
        buf_append_char(out, literal.p[i]);
    }
}
