/* Reads the policies from the store into a view (coord/replication.h). The keys are read one by one
 * while other processes may change them. So the epoch is read first, and the view has at least the
 * changes up to that epoch. */
#include "coord/replication_int.h"
#include "base/clock.h"
#include "store/fields.h"

/* The fields of a status that a view needs. */
struct loaded_status {
    struct str created_at, agent_url;
    bool paused, archived;
};
static const struct field_row status_rows[] = {
    FIELD_ROW(struct loaded_status, "created_at", FIELD_TEXT, created_at),
    FIELD_ROW(struct loaded_status, "paused", FIELD_BOOL, paused),
    FIELD_ROW(struct loaded_status, "archived", FIELD_BOOL, archived),
    FIELD_ROW(struct loaded_status, "agent_url", FIELD_TEXT, agent_url),
};
static const struct fields status_fields = FIELDS(status_rows);

/* The fields of a switch that a view needs. */
struct loaded_switch {
    struct str name, status, ttl, priority, aborted_at;
};
static const struct field_row switch_rows[] = {
    FIELD_ROW(struct loaded_switch, "replicationID", FIELD_TEXT, name),
    FIELD_ROW(struct loaded_switch, "lastStatus", FIELD_TEXT, status),
    FIELD_ROW(struct loaded_switch, "multipartTTL", FIELD_TEXT, ttl),
    FIELD_ROW(struct loaded_switch, "replPriority", FIELD_TEXT, priority),
    FIELD_ROW(struct loaded_switch, "abortedAt", FIELD_TEXT, aborted_at),
};
static const struct fields switch_fields = FIELDS(switch_rows);

/* Loads the value of a key into the view. `rest` is the key without its prefix. */
typedef int load_fn(struct replication_view *view, struct str rest, const struct reply *reply,
                    struct err *err);
static load_fn load_set, load_status, load_switch;

struct policy_kind {
    struct str prefix;
    load_fn *load;
    const struct fields *fields; /* NULL: the key is a sorted set */
};
static const struct policy_kind policy_kinds[] = {
    {{"p:repl:", 7}, load_set, NULL},
    {{"p:repl_st:", 10}, load_status, &status_fields},
    {{"p:switch:", 9}, load_switch, &switch_fields},
};

/* Reads a priority. A text that is not a number gives 0. */
static int priority_of(struct str value)
{
    int64_t n;

    return str_i64(value, &n) < 0 || n < 0 ? 0 : n > PRIORITY_MAX ? PRIORITY_MAX : (int)n;
}

/* Loads a sorted set of policies. `rest` is `<user>[:<bucket>]`. A user's policies get the name
 * `<user>::<from>:<to>`. */
static int load_set(struct replication_view *view, struct str rest, const struct reply *reply,
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
            p->r.priority = priority_of(reply->items[i + 1].str);
        }
    }
    buf_release(&name);
    return code;
}

static int load_status(struct replication_view *view, struct str rest, const struct reply *reply,
                       struct err *err)
{
    struct loaded_status s = {0};
    int code = fields_read_values(&s, &status_fields, reply, NULL, err);
    struct policy *p = code == 0 && s.created_at.p ? replication_view_named(view, rest) : NULL;

    if (!p)
        return code;
    p->created_at = arena_str(&view->arena, s.created_at);
    p->r.paused = s.paused;
    p->r.archived = s.archived;
    p->r.agent_url = arena_str(&view->arena, s.agent_url);
    return 0;
}

/* Loads a switch. A view has switches that are in progress, and switches without downtime that are
 * announced. The sorted set of a bucket has the priorities of its replications. Once a switch
 * without downtime has begun, its replication is not in the set any more, so the priority is read
 * from the switch. */
static int load_switch(struct replication_view *view, struct str rest, const struct reply *reply,
                       struct err *err)
{
    struct loaded_switch s = {0};
    int code = fields_read_values(&s, &switch_fields, reply, NULL, err);
    int64_t ttl;

    (void)rest;
    if (code < 0 || !s.name.p || str_eq(s.status, STR("done")))
        return code;
    bool announced = str_eq(s.status, STR("not_started"));
    bool live = str_i64(s.ttl, &ttl) == 0 && ttl > 0;
    bool open = str_eq(s.status, STR("in_progress")) || str_eq(s.status, STR("check_in_progress"));
    struct policy *p = replication_view_named(view, s.name);
    if (!p)
        return 0;
    p->r.has_switch = true;
    if (!open && !(live && announced))
        return 0;
    p->r.blocked = !live;
    p->r.switching = live;
    p->r.announced = announced;
    p->r.aborted = s.aborted_at.p;
    if (!p->member)
        p->r.priority = priority_of(s.priority);
    return 0;
}

static const struct policy_kind *policy_kind_of(struct str key)
{
    for (size_t i = 0; i < ARRAY_SIZE(policy_kinds); i++)
        if (str_starts(key, policy_kinds[i].prefix))
            return &policy_kinds[i];
    return NULL;
}

static struct store_args set_command(struct arena *a, struct str key)
{
    const struct str argv[] = {STR("ZRANGE"), key, STR("0"), STR("-1"), STR("WITHSCORES")};
    struct str *copy = arena_array(a, ARRAY_SIZE(argv), sizeof(*copy));

    if (!copy)
        return (struct store_args){0};
    memcpy(copy, argv, sizeof(argv));
    return (struct store_args){copy, ARRAY_SIZE(argv)};
}

struct loading {
    struct replications *r;
    struct replication_view *view;
};

/* Loads the values of a page of keys, in one round trip. It does no harm if a key occurs twice. */
static int load_page(void *ctx, const struct reply *keys, struct arena *a, struct err *err)
{
    const struct loading *l = ctx;
    struct store_args *commands = arena_array(a, keys->count + 1, sizeof(*commands));
    struct str *names = arena_array(a, keys->count + 1, sizeof(*names));
    struct reply *reply;
    size_t n = 0;
    int code = 0;

    for (size_t i = 0; commands && names && i < keys->count; i++) {
        struct str key = keys->items[i].str;
        const struct policy_kind *k = policy_kind_of(key);
        if (k) {
            names[n] = key;
            commands[n++] = k->fields ? fields_command(k->fields, a, key) : set_command(a, key);
        }
    }
    if (arena_error(a) < 0)
        return err_code(err, ERR_NO_MEMORY);
    if (n)
        code = store_pipeline(l->r->o.config, a, &reply, commands, n, err);
    for (size_t i = 0; code == 0 && i < n; i++) {
        const struct policy_kind *k = policy_kind_of(names[i]);
        code = k->load(l->view, str_skip(names[i], k->prefix.len), &reply->items[i], err);
    }
    return code;
}

static int view_read_epoch(struct replications *r, int64_t *out, struct err *err)
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

/* --- reading only the policies that changed --- */

enum {
    CHANGES_KEPT_MS = MS_PER_DAY, /* how long `w:epochs` keeps changes, as in part_policy.lua */
    /* Most changed policies that are read one by one; with more, all policies are read. */
    PATCH_MAX = 1000,
    ASKED = 3, /* number of keys that are read for each policy */
};

/* Makes the commands that read one policy: its score in the set, its status, its switch. */
static void policy_ask(struct arena *a, struct str name, struct store_args *commands)
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
    commands[1] =
        fields_command(&status_fields, a, arena_fmt(a, "p:repl_st:" STR_FMT, STR_ARG(name)));
    commands[2] = fields_command(
        &switch_fields, a,
        arena_fmt(a, "p:switch:" STR_FMT ":" STR_FMT, STR_ARG(user), STR_ARG(bucket)));
}

static int policy_read_answers(struct replication_view *view, struct str name,
                               const struct reply *answers, struct err *err)
{
    if (!reply_is_nil(&answers[0])) {
        struct policy *p = replication_view_named(view, name);
        if (!p)
            return 0;
        p->member = true;
        p->r.priority = priority_of(answers[0].str);
    }
    int code = load_status(view, name, &answers[1], err);
    return code == 0 ? load_switch(view, name, &answers[2], err) : code;
}

/* Reads the policies of these names into the view. */
static int view_read_names(struct replications *r, struct arena *a, struct replication_view *view,
                           const struct store_args *names, struct err *err)
{
    struct store_args *commands = arena_array(a, ASKED * names->argc + 1, sizeof(*commands));
    struct reply *reply;
    int code = 0;

    for (size_t i = 0; commands && i < names->argc; i++)
        policy_ask(a, names->argv[i], &commands[ASKED * i]);
    if (arena_error(a) < 0)
        return err_code(err, ERR_NO_MEMORY);
    if (names->argc)
        code = store_pipeline(r->o.config, a, &reply, commands, ASKED * names->argc, err);
    for (size_t i = 0; code == 0 && i < names->argc; i++)
        code = policy_read_answers(view, names->argv[i], &reply->items[ASKED * i], err);
    return code;
}

/* Reads the names of policies that changed after `epoch`, at most PATCH_MAX + 1. */
static int view_read_changed(struct replications *r, struct arena *a, int64_t epoch,
                             struct store_args *out, struct err *err)
{
    struct reply *reply;
    int code = store_call(
        r->o.config, a, &reply, err, STR("ZRANGEBYSCORE"), STR("w:epochs"),
        arena_fmt(a, "(%lld", (long long)epoch), STR("+inf"), STR("LIMIT"), STR("0"),
        queue_number(a, (int64_t)2 * (PATCH_MAX + 1))); /* w:epochs has two entries for a policy */

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

/* Fills the new `view` with the policies of the view `at_hand`, and reads the policies that changed
 * since. ERR_RANGE: too many policies have changed, so all must be read. */
static int view_patch(struct replications *r, const struct replication_view *at_hand,
                      struct replication_view *view, struct err *err)
{
    struct arena a = {0};
    struct store_args names = {0};
    int code = view_read_changed(r, &a, at_hand->epoch, &names, err);

    if (code == 0 && names.argc > PATCH_MAX)
        code = ERR_RANGE;
    if (code == 0) {
        replication_view_copy(view, at_hand, &names);
        code = view_read_names(r, &a, view, &names, err);
    }
    arena_release(&a);
    return code;
}

/* --- loading --- */

static int view_fill(struct replications *r, const struct replication_view *at_hand, bool doubt,
                     struct replication_view *view, struct err *err)
{
    int code = ERR_RANGE;

    if (at_hand && !doubt && at_hand->epoch > 0 && view->epoch > at_hand->epoch &&
        view->epoch - at_hand->epoch < CHANGES_KEPT_MS)
        code = view_patch(r, at_hand, view, err);
    if (code == ERR_RANGE)
        code = store_scan(r->o.config, STR("p:[rs]*"), load_page, &(struct loading){r, view}, err);
    return code == 0 ? replication_view_order(view, err) : code;
}

/* Reads a new view. *out is NULL when the view `at_hand` has the newest epoch already. */
static int view_read(struct replications *r, const struct replication_view *at_hand,
                     struct replication_view **out, struct err *err)
{
    int64_t epoch;
    int code = view_read_epoch(r, &epoch, err);

    *out = NULL;
    if (code < 0)
        return code;
    bool doubt = atomic_exchange(&r->doubt, false);
    if (!doubt && at_hand && at_hand->epoch == epoch)
        return 0;
    struct replication_view *view = replication_view_new(epoch);
    code = view_fill(r, at_hand, doubt, view, err);
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

    int code = view_read(r, r->view, &view, err); /* only the loading thread changes r->view */

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
