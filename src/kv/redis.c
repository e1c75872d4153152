/* The redis driver: through store/, on any Redis that is not a cluster and evicts nothing.
 *
 * The rows of a partition are a hash kv:<partition>:h, key to value, and a sorted set
 * kv:<partition>:z of the keys. All scores are 0, so the set orders the keys by their bytes.
 * docs/kv.md has the rest. */
#include "kv/kv_int.h"
#include "kv/paged.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define SCRIPT(name, flags) extern const char lua_##name[];
#include "kv/scripts.def"
#undef SCRIPT

enum kv_script {
#define SCRIPT(name, flags) SCRIPT_##name,
#include "kv/scripts.def"
#undef SCRIPT
    KV_SCRIPTS
};

enum { WRITE_FLIGHTS = 4 }; /* most writes with the same checks that are sent at the same time */

struct redis_kv {
    struct kv kv;
    struct store *store; /* borrowed */
};

static struct script scripts[KV_SCRIPTS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void kv_scripts_init(void)
{
    static const struct script_row rows[] = {
#define SCRIPT(name, flags) {#name, lua_##name, flags},
#include "kv/scripts.def"
#undef SCRIPT
    };

    scripts_init(scripts, rows, KV_SCRIPTS);
}

static struct store *store_of(struct kv *kv)
{
    return container_of(kv, struct redis_kv, kv)->store;
}

/* --- codes --- */

/* Translates the code of a failed read. The codes of store/ that mean "the command may have run"
 * become ERR_UNAVAILABLE, because a read changes nothing. */
static int read_code(int code, struct err *err)
{
    if (code == ERR_CLOSED || code == ERR_PEER || code == ERR_TIMEOUT)
        return err_wrap(err, ERR_UNAVAILABLE, "a read of the key-value store");
    return code;
}

static int write_code(int code, struct err *err)
{
    /* ERR_INVALID: a Redis key holds a value of another type. The script may have changed other
     * rows before it came to that key. */
    if (code == ERR_CLOSED || code == ERR_PEER || code == ERR_NO_MEMORY || code == ERR_INVALID)
        return err_wrap(err, ERR_TIMEOUT, "a write to the key-value store may have run");
    return code;
}

static int answer_check(bool fits, struct err *err)
{
    return fits ? 0 : err_set(err, ERR_CORRUPT, "Redis holds something else than the rows of kv/");
}

/* --- reading --- */

static int redis_view_open(struct kv_view **out, struct kv *kv, struct err *err)
{
    *out = NULL; /* reads show the newest state */
    return 0;
}

static void redis_view_close(struct kv *kv, struct kv_view *view)
{
    BUG_ON(view);
}

/* Makes the names of Redis keys in an arena. Successive rows are mostly in one partition, so the
 * escaped name of the last partition is kept for the next row. */
struct key_namer {
    struct arena *a;
    struct str partition, escaped;
};

/* Returns the partition with the bytes that separate the parts of a Redis key escaped. */
static struct str namer_escape(struct key_namer *n, struct str partition)
{
    struct buf text = BUF_INIT(0);

    if (n->escaped.p && str_eq(n->partition, partition))
        return n->escaped;
    store_key_part(&text, partition);
    n->partition = partition;
    n->escaped = arena_str(n->a, buf_str(&text));
    buf_release(&text);
    return n->escaped;
}

/* Returns the Redis key of a partition: suffix 'h' for the hash, 'z' for the sorted set. Returns
 * the empty string when the arena is full. */
static struct str namer_key(struct key_namer *n, struct str partition, char suffix)
{
    struct str p = namer_escape(n, partition);
    char *key = arena_alloc(n->a, p.len + 5);

    if (!key)
        return STR_EMPTY;
    memcpy(key, "kv:", 3);
    if (p.len > 0)
        memcpy(key + 3, p.p, p.len);
    key[3 + p.len] = ':';
    key[4 + p.len] = suffix;
    return str_n(key, p.len + 5);
}

static int value_take(struct kv_value *out, const struct reply *r, struct err *err)
{
    *out = (struct kv_value){0};
    if (r->type == REPLY_NIL)
        return 0;
    int code = reply_expect(r, REPLY_BULK, err);
    if (code == 0)
        out->bytes = out->stamp = r->str.p ? r->str : STR("");
    return code;
}

static int values_take(struct kv_value *out, const struct reply *items, size_t count,
                       struct err *err)
{
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++)
        code = value_take(&out[i], &items[i], err);
    return code;
}

static int redis_get(struct kv *kv, struct kv_view *view, struct arena *a,
                     const struct kv_name *names, size_t count, struct kv_value *out,
                     struct err *err)
{
    struct arena scratch = {0};
    struct key_namer namer = {.a = &scratch};
    struct store_args *commands = arena_array(&scratch, count, sizeof(*commands));
    struct str *argv = arena_array(&scratch, 3 * count, sizeof(*argv));
    struct reply *reply;

    for (size_t i = 0; i < count && arena_error(&scratch) == 0; i++, argv += 3) {
        argv[0] = STR("HGET");
        argv[1] = namer_key(&namer, names[i].partition, 'h');
        argv[2] = names[i].key;
        commands[i] = (struct store_args){argv, 3};
    }
    int code = arena_error(&scratch);
    if (code == 0)
        code = store_pipeline(store_of(kv), a, &reply, commands, count, err);
    if (code == 0)
        code = values_take(out, reply->items, count, err);
    arena_release(&scratch);
    return read_code(code, err);
}

static int page_take(struct page *out, const struct reply *r, struct err *err)
{
    int code = answer_check(r->type == REPLY_ARRAY && r->count % 2 == 1, err);

    if (code < 0)
        return code;
    out->count = r->count / 2;
    out->last = r->items[0].integer != 0;
    out->rows = arena_array(&out->arena, out->count + 1, sizeof(*out->rows));
    if (!out->rows)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < out->count && code == 0; i++) {
        const struct reply *pair = &r->items[1 + 2 * i];
        code = answer_check(pair[0].type == REPLY_BULK && pair[1].type == REPLY_BULK, err);
        out->rows[i] = (struct page_row){pair[0].str, pair[1].str.p ? pair[1].str : STR("")};
    }
    return code;
}

/* Returns an end of a range for ZRANGEBYLEX: a letter, then the key. */
static struct str lex_bound(struct arena *a, char letter, struct str key)
{
    char *text = arena_alloc(a, key.len + 1);

    if (!text)
        return STR_EMPTY;
    text[0] = letter;
    if (key.len > 0)
        memcpy(text + 1, key.p, key.len);
    return str_n(text, key.len + 1);
}

static int redis_page(struct page *out, struct kv *kv, const struct page_range *range,
                      struct err *err)
{
    struct arena *a = &out->arena;
    struct key_namer namer = {.a = a};
    struct str argv[] = {
        namer_escape(&namer, range->partition),
        range->from.len ? lex_bound(a, '[', range->from) : STR("-"),
        range->to.len ? lex_bound(a, '(', range->to) : STR("+"),
        arena_fmt(a, "%zu", range->rows),
        arena_fmt(a, "%d", (int)PAGE_BYTES),
    };
    struct script_run run = {.script = &scripts[SCRIPT_kv_page], .args = {argv, ARRAY_SIZE(argv)}};
    struct reply *reply;
    int code = arena_error(a);

    if (code == 0)
        code = script_eval(store_of(kv), a, &reply, &run, err);
    if (code == 0)
        code = page_take(out, reply, err);
    return read_code(code, err);
}

static int redis_scan_open(struct kv_scan **out, struct kv *kv, struct kv_view *view,
                           struct str partition, const struct kv_range *range, struct err *err)
{
    return paged_open(out, kv, redis_page, partition, range);
}

/* --- writing --- */

/* Returns the kind of a change as kv_write.lua reads it. */
static struct str change_kind(const struct kv_change *c)
{
    static const struct str kinds[][KV_SAME + 1] = {
        [KV_PUT] = {STR("p"), STR("pa"), STR("pe"), STR("ps")},
        [KV_REMOVE] = {STR("r"), STR_EMPTY, STR("re"), STR("rs")},
        [KV_CHECK] = {STR_EMPTY, STR_EMPTY, STR("ce"), STR("cs")},
        /* A glance is made as a check: Redis runs one script at a time, so a check costs no
         * more. */
        [KV_GLANCE] = {STR_EMPTY, STR_EMPTY, STR_EMPTY, STR("cs")},
    };

    return kinds[c->what][c->when];
}

struct script_args {
    struct str *argv;
    size_t argc;
};

static void args_add(struct script_args *args, struct str s)
{
    args->argv[args->argc++] = s;
}

static void args_add_change(struct script_args *args, struct key_namer *namer,
                            const struct kv_change *c)
{
    args_add(args, change_kind(c));
    args_add(args, namer_escape(namer, c->name.partition));
    args_add(args, c->name.key);
    if (c->what == KV_PUT)
        args_add(args, c->value);
    if (c->when == KV_SAME)
        args_add(args, c->stamp);
}

static int write_answer(const struct reply *r, size_t *failed, size_t name_count,
                        struct kv_value *out, struct err *err)
{
    int code = answer_check(r->type == REPLY_ARRAY && r->count > 0, err);

    if (code == 0 && r->items[0].integer > 0) {
        *failed = (size_t)r->items[0].integer - 1;
        return err_code(err, ERR_PRECONDITION);
    }
    if (code == 0)
        code = answer_check(r->count == name_count + 1, err);
    if (code == 0)
        code = values_take(out, r->items + 1, name_count, err);
    return code < 0 ? kv_made_unread(err) : 0;
}

/* Runs the script. If Redis is full and all puts of the write are part of a removal (`frees`), runs
 * the script once more with the mark "+", with which it may use the room for removals (K11). The
 * first run has changed nothing. */
static int redis_write_run(struct kv *kv, struct arena *a, struct reply **reply,
                           struct script_args *args, bool frees, struct err *err)
{
    struct script_run run = {.script = &scripts[SCRIPT_kv_write], .args = {args->argv, args->argc}};
    int code = script_eval(store_of(kv), a, reply, &run, err);

    if (code == ERR_NO_SPACE && frees) {
        args->argv[0] = arena_fmt(a, "+" STR_FMT, STR_ARG(args->argv[0]));
        code = args->argv[0].p ? script_eval(store_of(kv), a, reply, &run, err) : code;
    }
    return write_code(code, err);
}

static int redis_write(struct kv *kv, const struct kv_change *changes, size_t count, size_t *failed,
                       struct arena *a, const struct kv_name *names, size_t name_count,
                       struct kv_value *out, struct err *err)
{
    struct arena scratch = {0};
    struct key_namer namer = {.a = &scratch};
    struct script_args args = {
        arena_array(&scratch, 1 + 5 * count + 2 * name_count, sizeof(struct str))};
    struct reply *reply;

    /* The arena is large enough for as many arguments as the limits of kv.h allow. */
    BUG_ON(!args.argv);
    args_add(&args, arena_fmt(&scratch, "%zu", count));
    for (size_t i = 0; i < count; i++)
        args_add_change(&args, &namer, &changes[i]);
    for (size_t i = 0; i < name_count; i++) {
        args_add(&args, namer_escape(&namer, names[i].partition));
        args_add(&args, names[i].key);
    }
    int code = arena_error(&scratch);
    if (code == 0)
        code = redis_write_run(kv, name_count ? a : &scratch, &reply, &args,
                               kv_changes_free(changes, count), err);
    if (code == 0)
        code = write_answer(reply, failed, name_count, out, err);
    arena_release(&scratch);
    return code;
}

static int redis_drop(struct kv *kv, struct str partition, struct err *err)
{
    struct arena a = {0};
    struct key_namer namer = {.a = &a};
    struct reply *reply;
    int code = store_call(store_of(kv), &a, &reply, err, STR("UNLINK"),
                          namer_key(&namer, partition, 'h'), namer_key(&namer, partition, 'z'));

    if (code == 0)
        code = reply_expect(reply, REPLY_INTEGER, err);
    arena_release(&a);
    return write_code(code, err);
}

/* --- opening --- */

/* Finds the value of a field in an answer of INFO, which has lines "field:value". */
static struct str info_field(struct str info, struct str field)
{
    struct str line;

    while (str_token(&info, "\r\n", &line))
        if (str_starts(line, field) && line.len > field.len && line.p[field.len] == ':')
            return str_skip(line, field.len + 1);
    return STR_EMPTY;
}

static int redis_info(struct store *s, struct arena *a, struct str section, struct str field,
                      struct str *out, struct err *err)
{
    struct reply *reply;
    int code = store_call(s, a, &reply, err, STR("INFO"), section);

    if (code == 0)
        code = reply_expect(reply, REPLY_BULK, err);
    if (code == 0)
        *out = info_field(reply->str, field);
    return read_code(code, err);
}

/* Refuses a cluster and a server that evicts. A cluster would keep the keys of one script on
 * several servers; a server that evicts would remove rows that were acknowledged. */
static int server_check(struct store *s, struct err *err)
{
    struct arena a = ARENA_INIT(256 * KIB);
    struct str cluster = STR_EMPTY, policy = STR_EMPTY;
    int code = redis_info(s, &a, STR("cluster"), STR("cluster_enabled"), &cluster, err);

    if (code == 0)
        code = redis_info(s, &a, STR("memory"), STR("maxmemory_policy"), &policy, err);
    if (code == 0 && !str_eq(cluster, STR("0")))
        code = err_set(err, ERR_UNSUPPORTED,
                       "the Redis of the key-value store is a cluster; use a single server, or "
                       "one with replicas and Sentinels");
    if (code == 0 && !str_eq(policy, STR("noeviction")))
        code = err_set(err, ERR_UNSUPPORTED,
                       "the Redis of the key-value store evicts keys (maxmemory-policy " STR_FMT
                       "); set maxmemory-policy noeviction",
                       STR_ARG(policy));
    arena_release(&a);
    return code;
}

/* Sets kv->warning if Redis has no append-only file, because a restart may then lose acknowledged
 * rows. Clears kv->warning if Redis has one, or does not say. */
static void server_look(struct kv *kv)
{
    static const char no_aof[] = "the Redis of the key-value store has no append-only file: when "
                                 "it restarts, the lake loses "
                                 "what was written since the last snapshot; set appendonly yes";
    struct arena a = ARENA_INIT(256 * KIB);
    struct str aof = STR_EMPTY;
    struct err ignored = {0};
    int code = redis_info(store_of(kv), &a, STR("persistence"), STR("aof_enabled"), &aof, &ignored);

    atomic_store(&kv->warning, code == 0 && str_eq(aof, STR("0")) ? no_aof : NULL);
    arena_release(&a);
}

static int redis_prepare(struct kv *kv, struct err *err)
{
    int code = server_check(store_of(kv), err);

    if (code == 0)
        server_look(kv);
    return code < 0 ? code : kv_schema_check(kv, err);
}

/* Checks that the server accepts writes. It also checks the eviction policy again, because a
 * running server's policy can be changed. */
static int redis_probe(struct kv *kv, struct err *err)
{
    int code = server_check(store_of(kv), err);

    if (code == 0)
        server_look(kv);
    return code < 0 ? code : store_probe(store_of(kv), err);
}

static int redis_ask(struct kv *kv, struct err *err)
{
    return read_code(store_ping(store_of(kv), err), err);
}

static void redis_kv_close(struct kv *kv)
{
    kv_groups_free(kv->groups);
    free(container_of(kv, struct redis_kv, kv));
}

static const struct kv_ops redis_ops = {
    .prepare = redis_prepare,
    .view_open = redis_view_open,
    .view_close = redis_view_close,
    .get = redis_get,
    .write = redis_write,
    .scan_open = redis_scan_open,
    .scan_next = paged_next,
    .scan_seek = paged_seek,
    .scan_close = paged_close,
    .scan_free = paged_free,
    .drop = redis_drop,
    .probe = redis_probe,
    .ask = redis_ask,
    .close = redis_kv_close,
};

void kv_open_redis_later(struct kv **out, struct store *store)
{
    struct redis_kv *r = xzalloc(sizeof(*r));

    pthread_once(&once, kv_scripts_init);
    r->kv.ops = &redis_ops;
    r->kv.driver = "redis";
    r->kv.can = KV_FENCES | KV_DROPS;
    r->kv.groups = kv_groups_new(WRITE_FLIGHTS);
    r->kv.timeout_ns = store_timeout_ns(store);
    r->store = store;
    *out = &r->kv;
}

int kv_open_redis(struct kv **out, struct store *store, const struct log *log, struct err *err)
{
    struct kv *kv = NULL;

    kv_open_redis_later(&kv, store);
    int code = kv_opened(out, kv, log, err);
    const char *why = code == 0 ? atomic_load(&kv->warning) : NULL;
    if (why)
        log_warn(log, "kv.no_aof", log_z("why", why));
    return code;
}
