/* Reading all policies. The keys are read one by one, which others may change meanwhile: the view's
 * epoch is the one before. */
#include "coord/replication_int.h"

/* Where policies are found, and what is asked of each key. */
typedef int read_fn(struct replication_view *view, struct str rest, const struct reply *reply,
                    struct err *err);
static read_fn read_set, read_status, read_switch;

struct kind {
    struct str prefix;
    read_fn *read;
    const char *command[8]; /* the key goes behind the first; the last is NULL */
};
static const struct kind kinds[] = {
    {{"p:repl:", 7}, read_set, {"ZRANGE", "0", "-1", "WITHSCORES"}},
    {{"p:repl_st:", 10}, read_status, {"HMGET", "created_at", "paused", "archived", "agent_url"}},
    {{"p:switch:", 9},
     read_switch,
     {"HMGET", "replicationID", "lastStatus", "multipartTTL", "replPriority", "abortedAt"}},
};

static bool is_one(const struct reply *r)
{
    return str_eq(r->str, STR("1"));
}

static int number_of(const struct reply *r)
{
    int64_t n;

    return str_i64(r->str, &n) < 0 || n < 0 ? 0 : n > PRIORITY_MAX ? PRIORITY_MAX : (int)n;
}

/* `rest`: <user>[:<bucket>]; a user's policies get the name <user>::<from>:<to>. */
static int read_set(struct replication_view *view, struct str rest, const struct reply *reply,
                    struct err *err)
{
    struct buf name = {0};
    int code = reply_expect(reply, REPLY_ARRAY, err);

    for (size_t i = 0; code == 0 && i + 1 < reply->count; i += 2) {
        buf_reset(&name);
        buf_append_str(&name, rest);
        buf_append_z(&name, str_chr(rest, ':') < 0 ? "::" : ":");
        buf_append_str(&name, reply->items[i].str);
        struct policy *p = replication_view_named(view, buf_str(&name));
        if (p) {
            p->member = true;
            p->r.priority = number_of(&reply->items[i + 1]);
        }
    }
    buf_release(&name);
    return code;
}

static int expect_fields(const struct reply *reply, size_t count, struct err *err)
{
    int code = reply_expect(reply, REPLY_ARRAY, err);

    return code == 0 && reply->count != count ? err_code(err, ERR_TYPE) : code;
}

static int read_status(struct replication_view *view, struct str rest, const struct reply *reply,
                       struct err *err)
{
    int code = expect_fields(reply, 4, err);
    struct policy *p =
        code == 0 && !reply_is_nil(&reply->items[0]) ? replication_view_named(view, rest) : NULL;

    if (!p)
        return code;
    p->created_at = arena_str(&view->arena, reply->items[0].str);
    p->r.paused = is_one(&reply->items[1]);
    p->r.archived = is_one(&reply->items[2]);
    p->r.agent_url = arena_str(&view->arena, reply->items[3].str);
    return 0;
}

/* One that is at work, or without downtime announced. Once that has begun its replication is no
 * member any more, so that the priority is in the switch. */
static int read_switch(struct replication_view *view, struct str rest, const struct reply *reply,
                       struct err *err)
{
    int code = expect_fields(reply, 5, err);
    int64_t ttl;

    (void)rest;
    if (code < 0 || reply_is_nil(&reply->items[0]))
        return code;
    bool announced = str_eq(reply->items[1].str, STR("not_started"));
    bool live = str_i64(reply->items[2].str, &ttl) == 0 && ttl > 0;
    bool open = str_eq(reply->items[1].str, STR("in_progress")) ||
                str_eq(reply->items[1].str, STR("check_in_progress"));
    if (str_eq(reply->items[1].str, STR("done")))
        return 0;
    struct policy *p = replication_view_named(view, reply->items[0].str);
    if (!p)
        return 0;
    p->r.has_switch = true;
    if (!open && !(live && announced))
        return 0;
    p->r.blocked = !live;
    p->r.switching = live;
    p->r.announced = announced;
    p->r.aborted = !reply_is_nil(&reply->items[4]);
    if (!p->member)
        p->r.priority = number_of(&reply->items[3]);
    return 0;
}

static const struct kind *kind_of(struct str key)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (str_starts(key, kinds[i].prefix))
            return &kinds[i];
    return NULL;
}

static struct store_args command_of(struct arena *a, const struct kind *k, struct str key)
{
    struct str *argv = arena_array(a, ARRAY_SIZE(k->command) + 1, sizeof(*argv));
    size_t argc = 0;

    if (!argv)
        return (struct store_args){0};
    argv[argc++] = str_z(k->command[0]);
    argv[argc++] = key;
    for (size_t i = 1; k->command[i]; i++)
        argv[argc++] = str_z(k->command[i]);
    return (struct store_args){argv, argc};
}

/* What is behind a page of keys, in one round trip. */
static int read_keys(struct replications *r, struct replication_view *view, struct arena *a,
                     const struct reply *keys, struct err *err)
{
    struct store_args *commands = arena_array(a, keys->count + 1, sizeof(*commands));
    struct str *names = arena_array(a, keys->count + 1, sizeof(*names));
    struct reply *reply;
    size_t n = 0;
    int code = 0;

    for (size_t i = 0; commands && names && i < keys->count; i++) {
        const struct kind *k = kind_of(keys->items[i].str);
        if (k) {
            names[n] = keys->items[i].str;
            commands[n++] = command_of(a, k, keys->items[i].str);
        }
    }
    if (arena_error(a) < 0)
        return err_code(err, ERR_NO_MEMORY);
    if (n)
        code = store_pipeline(r->o.config, a, &reply, commands, n, err);
    for (size_t i = 0; code == 0 && i < n; i++) {
        const struct kind *k = kind_of(names[i]);
        code = k->read(view, str_skip(names[i], k->prefix.len), &reply->items[i], err);
    }
    return code;
}

/* A key may come twice; that changes nothing. */
static int read_all(struct replications *r, struct replication_view *view, struct err *err)
{
    struct buf cursor = {0};
    int code = 0;

    buf_append_z(&cursor, "0");
    do {
        struct arena a = {0};
        struct reply *reply;
        code = store_call(r->o.config, &a, &reply, err, STR("SCAN"), buf_str(&cursor), STR("MATCH"),
                          STR("p:[rs]*"), STR("COUNT"), STR("1000"));
        if (code == 0)
            code = expect_fields(reply, 2, err);
        if (code == 0) {
            buf_reset(&cursor);
            buf_append_str(&cursor, reply->items[0].str);
            code = read_keys(r, view, &a, &reply->items[1], err);
        }
        arena_release(&a);
    } while (code == 0 && !str_eq(buf_str(&cursor), STR("0")));
    buf_release(&cursor);
    return code;
}

static int read_epoch(struct replications *r, int64_t *out, struct err *err)
{
    struct arena a = ARENA_INIT(64 * KIB);
    struct reply *reply;
    int code = store_call(r->o.config, &a, &reply, err, STR("GET"), STR("w:epoch"));

    *out = 0;
    if (code == 0 && !reply_is_nil(reply)) {
        code = reply_expect(reply, REPLY_BULK, err);
        if (code == 0 && str_i64(reply->str, out) < 0)
            code = err_set(err, ERR_CORRUPT, "w:epoch is no number");
    }
    arena_release(&a);
    return code;
}

/* --- reading what changed --- */

enum {
    CHANGES_KEPT_MS = 86400000, /* as in part_policy.lua */
    PATCH_MAX = 1000,           /* changes; with more all is read */
    ASKED = 3,                  /* keys for one name */
};

/* What is known of one policy, in the order of `kinds`: its place in the set, status, switch. */
static void ask_for(struct arena *a, struct str name, struct store_args *commands)
{
    struct str user, bucket, member;

    str_cut(name, ':', &user, &member);
    str_cut(member, ':', &bucket, &member);
    struct str set = arena_fmt(a, "p:repl:" STR_FMT "%s" STR_FMT, STR_ARG(user),
                               bucket.len ? ":" : "", STR_ARG(bucket));
    struct str *argv = arena_array(a, 3, sizeof(*argv));
    if (!argv)
        return;
    argv[0] = STR("ZSCORE"), argv[1] = set, argv[2] = member;
    commands[0] = (struct store_args){argv, 3};
    commands[1] = command_of(a, &kinds[1], arena_fmt(a, "p:repl_st:" STR_FMT, STR_ARG(name)));
    commands[2] =
        command_of(a, &kinds[2],
                   arena_fmt(a, "p:switch:" STR_FMT ":" STR_FMT, STR_ARG(user), STR_ARG(bucket)));
}

static int read_answers(struct replication_view *view, struct str name, const struct reply *answers,
                        struct err *err)
{
    if (!reply_is_nil(&answers[0])) {
        struct policy *p = replication_view_named(view, name);
        if (!p)
            return 0;
        p->member = true;
        p->r.priority = number_of(&answers[0]);
    }
    int code = read_status(view, name, &answers[1], err);
    return code == 0 ? read_switch(view, name, &answers[2], err) : code;
}

/* Those of `names` anew; the others are as they were. */
static int read_names(struct replications *r, struct arena *a, struct replication_view *view,
                      const struct store_args *names, struct err *err)
{
    struct store_args *commands = arena_array(a, ASKED * names->argc + 1, sizeof(*commands));
    struct reply *reply;
    int code = 0;

    for (size_t i = 0; commands && i < names->argc; i++)
        ask_for(a, names->argv[i], &commands[ASKED * i]);
    if (arena_error(a) < 0)
        return err_code(err, ERR_NO_MEMORY);
    if (names->argc)
        code = store_pipeline(r->o.config, a, &reply, commands, ASKED * names->argc, err);
    for (size_t i = 0; code == 0 && i < names->argc; i++)
        code = read_answers(view, names->argv[i], &reply->items[ASKED * i], err);
    return code;
}

/* The names that changed after the epoch, at most PATCH_MAX + 1. */
static int read_changed(struct replications *r, struct arena *a, int64_t epoch,
                        struct store_args *out, struct err *err)
{
    struct reply *reply;
    int code =
        store_call(r->o.config, a, &reply, err, STR("ZRANGEBYSCORE"), STR("w:epochs"),
                   arena_fmt(a, "(%lld", (long long)epoch), STR("+inf"), STR("LIMIT"), STR("0"),
                   queue_number(a, (int64_t)2 * (PATCH_MAX + 1))); /* each has a source beside it */

    if (code == 0)
        code = reply_expect(reply, REPLY_ARRAY, err);
    if (code < 0)
        return code;
    struct str *names = arena_array(a, reply->count + 1, sizeof(*names));
    if (!names)
        return err_code(err, ERR_NO_MEMORY);
    *out = (struct store_args){names, 0};
    for (size_t i = 0; i < reply->count; i++)
        if (str_starts(reply->items[i].str, STR("n:")))
            names[out->argc++] = str_skip(reply->items[i].str, 2);
    return 0;
}

/* ERR_RANGE: there are too many; all is to be read. */
static int patch(struct replications *r, const struct replication_view *at_hand,
                 struct replication_view *view, struct err *err)
{
    struct arena a = {0};
    struct store_args names = {0};
    int code = read_changed(r, &a, at_hand->epoch, &names, err);

    if (code == 0 && names.argc > PATCH_MAX)
        code = ERR_RANGE;
    if (code == 0) {
        replication_view_copy(view, at_hand, &names);
        code = read_names(r, &a, view, &names, err);
    }
    arena_release(&a);
    return code;
}

/* --- loading --- */

static int fill(struct replications *r, const struct replication_view *at_hand, bool doubt,
                struct replication_view *view, struct err *err)
{
    int code = ERR_RANGE;

    if (at_hand && !doubt && at_hand->epoch > 0 && view->epoch > at_hand->epoch &&
        view->epoch - at_hand->epoch < CHANGES_KEPT_MS)
        code = patch(r, at_hand, view, err);
    if (code == ERR_RANGE)
        code = read_all(r, view, err);
    return code == 0 ? replication_view_order(view, err) : code;
}

/* *out NULL: those at hand are the newest. */
static int read_view(struct replications *r, const struct replication_view *at_hand,
                     struct replication_view **out, struct err *err)
{
    int64_t epoch;
    int code = read_epoch(r, &epoch, err);

    *out = NULL;
    if (code < 0)
        return code;
    bool doubt = atomic_exchange(&r->doubt, false);
    if (!doubt && at_hand && at_hand->epoch == epoch)
        return 0;
    struct replication_view *view = replication_view_new(epoch);
    code = fill(r, at_hand, doubt, view, err);
    if (code == 0)
        code = store_is_known(r->o.config, err);
    if (code == 0) {
        *out = view;
    } else {
        replication_view_unref(view);
        atomic_store(&r->doubt, true);
    }
    return code;
}

int replications_load(struct replications *r, struct err *err)
{
    struct replication_view *view, *old = NULL;

    mutex_lock(&r->lock);
    while (r->loading)
        cond_wait(&r->loaded, &r->lock);
    r->loading = true;
    mutex_unlock(&r->lock);

    int code = read_view(r, r->view, &view, err); /* only who loads changes r->view */

    mutex_lock(&r->lock);
    if (code == 0 && view) {
        old = r->view;
        r->view = view;
    }
    r->loading = false;
    cond_broadcast(&r->loaded);
    mutex_unlock(&r->lock);
    replication_view_unref(old);
    return code;
}
