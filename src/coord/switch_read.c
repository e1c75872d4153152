/* Reads switches from the store (coord/switch.h). */
#include "base/vec.h"
#include "coord/replication_int.h"
#include "coord/switch.h"
#include "store/fields.h"

#include <stdlib.h>

enum { ID_PARTS = 4 }; /* user, bucket, from, to; a switched bucket keeps its name */

const char *const switch_status_names[SWITCH_STATUSES] = {
    [SWITCH_NOT_STARTED] = "not_started",
    [SWITCH_IN_PROGRESS] = "in_progress",
    [SWITCH_CHECK] = "check_in_progress",
    [SWITCH_DONE] = "done",
    [SWITCH_ERROR] = "error",
    [SWITCH_SKIPPED] = "skipped",
};

bool switch_is_live(const struct bucket_switch *s)
{
    return s->o.multipart_ttl_ns > 0;
}

bool switch_is_open(const struct bucket_switch *s)
{
    return s->status == SWITCH_IN_PROGRESS || s->status == SWITCH_CHECK;
}

/* Fills out->id from out->name. */
static int switch_read_id(struct bucket_switch *out, struct arena *a, struct err *err)
{
    struct str name = out->name;
    struct str *parts[ID_PARTS] = {&out->id.user, &out->id.bucket, &out->id.from, &out->id.to};
    struct buf part = {0};
    int code = 0;

    for (size_t i = 0; i < ID_PARTS && code == 0; i++) {
        struct str head;
        bool more = str_cut(name, ':', &head, &name);
        buf_reset(&part);
        code = more == (i + 1 < ID_PARTS) ? store_key_unescape(&part, head) : ERR_PARSE;
        *parts[i] = arena_str(a, buf_str(&part));
    }
    buf_release(&part);
    return code < 0 ? err_set(err, ERR_CORRUPT, "'" STR_FMT "' does not name a replication",
                              STR_ARG(out->name))
                    : 0;
}

static const struct field_row switch_rows[] = {
#define SWITCH_FIELD(...) FIELD_ROW(struct bucket_switch, __VA_ARGS__)
    SWITCH_FIELD("replicationID", FIELD_TEXT, name),
    SWITCH_FIELD("createdAt", FIELD_TEXT, created_at),
    SWITCH_FIELD("lastStatus", FIELD_WORD, status, .words = switch_status_names,
                 .max = SWITCH_STATUSES),
    SWITCH_FIELD("replPriority", FIELD_INT, priority, .max = PRIORITY_MAX),
    SWITCH_FIELD("createdAt", FIELD_TIME, created_ms),
    SWITCH_FIELD("startedAt", FIELD_TIME, started_ms),
    SWITCH_FIELD("doneAt", FIELD_TIME, done_ms),
    SWITCH_FIELD("abortedAt", FIELD_TIME, aborted_ms),
    SWITCH_FIELD("multipartTTL", FIELD_I64, o.multipart_ttl_ns),
    SWITCH_FIELD("uploadsTTL", FIELD_I64, o.uploads_ttl_ns),
    SWITCH_FIELD("blocked", FIELD_BOOL, blocked),
    SWITCH_FIELD("onInitDone", FIELD_BOOL, o.on_init_done),
    SWITCH_FIELD("cron", FIELD_TEXT, o.cron),
    SWITCH_FIELD("startAt", FIELD_TIME, o.start_at_ms),
    SWITCH_FIELD("maxDuration", FIELD_I64, o.max_duration_ns),
    SWITCH_FIELD("maxEventLag", FIELD_I64, o.max_event_lag),
    SWITCH_FIELD("skipBucketCheck", FIELD_BOOL, o.skip_check),
    SWITCH_FIELD("continueReplication", FIELD_BOOL, o.continue_replication),
#undef SWITCH_FIELD
};
static const struct fields switch_fields = FIELDS(switch_rows);

/* Reads a switch from its hash. ERR_NOT_FOUND: the hash does not exist, or an older weir wrote it
 * without a name or a time. */
static int switch_read_hash(struct bucket_switch *out, struct arena *a, const struct reply *reply,
                            struct err *err)
{
    struct bucket_switch s = {0};
    int code = fields_read(&s, &switch_fields, reply, NULL, err);

    if (code == 0 && (!s.name.len || !s.created_at.len))
        code = err_set(err, ERR_NOT_FOUND, "there is no such switch");
    if (code == 0)
        code = switch_read_id(&s, a, err);
    if (code == 0)
        *out = s;
    return code;
}

static int switch_read_epoch(struct replications *r, struct arena *a, struct bucket_switch *s,
                             struct err *err)
{
    struct reply *reply;
    int code = store_call(r->o.config, a, &reply, err, STR("ZSCORE"), STR("w:epochs"),
                          arena_fmt(a, "n:" STR_FMT, STR_ARG(s->name)));

    if (code == 0 && !reply_is_nil(reply) && str_i64(reply->str, &s->epoch) < 0)
        code = err_set(err, ERR_CORRUPT, "an epoch of w:epochs is no number");
    return code;
}

static int switch_read_key(struct replications *r, struct arena *a, struct str key,
                           struct bucket_switch *out, struct err *err)
{
    struct reply *reply;
    int code = store_call(r->o.config, a, &reply, err, STR("HGETALL"), key);

    if (code == 0)
        code = switch_read_hash(out, a, reply, err);
    return code == 0 ? switch_read_epoch(r, a, out, err) : code;
}

static struct str switch_key(struct arena *a, const char *prefix, struct str user,
                             struct str bucket)
{
    return arena_fmt(a, "%s:" STR_FMT ":" STR_FMT, prefix, STR_ARG(replication_escaped(a, user)),
                     STR_ARG(replication_escaped(a, bucket)));
}

int switch_read(struct replications *r, struct arena *a, struct str user, struct str bucket,
                struct bucket_switch *out, struct err *err)
{
    return switch_read_key(r, a, switch_key(a, "p:switch", user, bucket), out, err);
}

/* --- listing --- */

struct switch_keys {
    VEC(struct str) list; /* keys of switches, in the arena; a key may occur twice */
    struct arena *a;
};

static int switch_note_keys(void *ctx, const struct reply *keys, struct arena *page,
                            struct err *err)
{
    struct switch_keys *out = ctx;

    for (size_t i = 0; i < keys->count; i++)
        vec_push(&out->list, arena_str(out->a, keys->items[i].str));
    return arena_error(out->a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

static int switch_order(const void *one, const void *two)
{
    const struct bucket_switch *a = one, *b = two;
    int order = str_cmp(a->id.user, b->id.user);

    return order ? order : str_cmp(a->id.bucket, b->id.bucket);
}

static size_t switch_drop_twins(struct bucket_switch *list, size_t count)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++)
        if (n == 0 || switch_order(&list[n - 1], &list[i]) != 0)
            list[n++] = list[i];
    return n;
}

int switch_list(struct replications *r, struct arena *a, struct bucket_switch **out, size_t *count,
                struct err *err)
{
    struct bucket_switch *list = NULL;
    struct switch_keys keys = {.a = a};
    size_t n = 0;
    int code = store_scan(r->o.config, STR("p:switch:*"), switch_note_keys, &keys, err);

    if (code == 0)
        list = arena_array(a, keys.list.len + 1, sizeof(*list));
    if (code == 0 && !list)
        code = err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < keys.list.len && code == 0; i++) {
        code = switch_read_key(r, a, keys.list.items[i], &list[n], err);
        n += code == 0;
        code = code == ERR_NOT_FOUND ? 0 : code; /* the switch was removed meanwhile */
    }
    vec_release(&keys.list);
    if (code < 0)
        return code;
    if (n)
        qsort(list, n, sizeof(*list), switch_order);
    *out = list;
    *count = switch_drop_twins(list, n);
    return 0;
}

int switch_history(struct replications *r, struct arena *a, struct str user, struct str bucket,
                   struct str **out, size_t *count, struct err *err)
{
    struct reply *reply;
    int code = store_call(r->o.config, a, &reply, err, STR("LRANGE"),
                          switch_key(a, "p:switch-hist", user, bucket), STR("0"), STR("-1"));

    if (code == 0)
        code = reply_expect(reply, REPLY_ARRAY, err);
    if (code < 0)
        return code;
    struct str *lines = arena_array(a, reply->count + 1, sizeof(*lines));
    if (!lines)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < reply->count; i++)
        lines[i] = reply->items[i].str;
    *out = lines;
    *count = reply->count;
    return 0;
}
