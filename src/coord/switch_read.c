/* Switches as they are stored. */
#include "base/clock.h"
#include "base/vec.h"
#include "coord/replication_int.h"
#include "coord/switch.h"

#include <stddef.h>
#include <stdlib.h>

enum { ID_PARTS = 4 }; /* of a replication with the same name on both sides */

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

static int read_id(struct arena *a, struct str name, struct bucket_switch *out)
{
    struct str *parts[ID_PARTS] = {&out->id.user, &out->id.bucket, &out->id.from, &out->id.to};
    struct buf part = {0};
    int code = 0;

    out->name = name;
    for (size_t i = 0; i < ID_PARTS && code == 0; i++) {
        struct str head;
        bool more = str_cut(name, ':', &head, &name);
        buf_reset(&part);
        code = more == (i + 1 < ID_PARTS) ? store_key_unescape(&part, head) : ERR_PARSE;
        *parts[i] = arena_str(a, buf_str(&part));
    }
    buf_release(&part);
    return code;
}

static int read_status(struct str value, enum switch_status *out)
{
    for (size_t i = 0; i < SWITCH_STATUSES; i++)
        if (str_eq(value, str_z(switch_status_names[i]))) {
            *out = (enum switch_status)i;
            return 0;
        }
    return ERR_PARSE;
}

static int read_priority(struct str value, int *out)
{
    int64_t n;

    if (str_i64(value, &n) < 0 || n < 0 || n > PRIORITY_MAX)
        return ERR_PARSE;
    *out = (int)n;
    return 0;
}

enum field_type {
    FIELD_ID,
    FIELD_STATUS,
    FIELD_PRIORITY,
    FIELD_TEXT,
    FIELD_TIME,
    FIELD_NUMBER,
    FIELD_BOOL
};

static const struct field {
    const char *name;
    enum field_type type;
    size_t at; /* in struct bucket_switch */
} fields[] = {
#define FIELD(name, type, member)                                                                  \
    {                                                                                              \
        name, type, offsetof(struct bucket_switch, member)                                         \
    }
    FIELD("replicationID", FIELD_ID, id),
    FIELD("lastStatus", FIELD_STATUS, status),
    FIELD("replPriority", FIELD_PRIORITY, priority),
    FIELD("createdAt", FIELD_TIME, created_ms),
    FIELD("startedAt", FIELD_TIME, started_ms),
    FIELD("doneAt", FIELD_TIME, done_ms),
    FIELD("abortedAt", FIELD_TIME, aborted_ms),
    FIELD("multipartTTL", FIELD_NUMBER, o.multipart_ttl_ns),
    FIELD("uploadsTTL", FIELD_NUMBER, o.uploads_ttl_ns),
    FIELD("blocked", FIELD_BOOL, blocked),
    FIELD("onInitDone", FIELD_BOOL, o.on_init_done),
    FIELD("cron", FIELD_TEXT, o.cron),
    FIELD("startAt", FIELD_TIME, o.start_at_ms),
    FIELD("maxDuration", FIELD_NUMBER, o.max_duration_ns),
    FIELD("maxEventLag", FIELD_NUMBER, o.max_event_lag),
    FIELD("skipBucketCheck", FIELD_BOOL, o.skip_check),
    FIELD("continueReplication", FIELD_BOOL, o.continue_replication),
#undef FIELD
};

static int read_value(struct arena *a, const struct field *f, struct str value,
                      struct bucket_switch *out)
{
    void *at = (char *)out + f->at;

    switch (f->type) {
    case FIELD_ID:
        return read_id(a, value, out);
    case FIELD_STATUS:
        return read_status(value, at);
    case FIELD_PRIORITY:
        return read_priority(value, at);
    case FIELD_TEXT:
        *(struct str *)at = value;
        return 0;
    case FIELD_TIME:
        return clock_parse_iso(value, at);
    case FIELD_NUMBER:
        return str_i64(value, at);
    case FIELD_BOOL:
        *(bool *)at = str_eq(value, STR("1"));
        return 0;
    }
    return 0;
}

static int read_field(struct arena *a, struct str name, struct str value, struct bucket_switch *out,
                      struct err *err)
{
    if (str_eq(name, STR("createdAt")))
        out->created_at = value;
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        if (str_eq(str_z(fields[i].name), name) && read_value(a, &fields[i], value, out) < 0)
            return err_set(err, ERR_CORRUPT, "'" STR_FMT "' is no " STR_FMT, STR_ARG(value),
                           STR_ARG(name));
    return 0;
}

/* One whose hash has no status is of an older kind, or none. */
static int read_row(struct arena *a, const struct reply *reply, struct bucket_switch *out,
                    struct err *err)
{
    struct bucket_switch s = {0};
    int code = reply_expect(reply, REPLY_ARRAY, err);

    for (size_t i = 0; code == 0 && i + 1 < reply->count; i += 2)
        code = read_field(a, reply->items[i].str, reply->items[i + 1].str, &s, err);
    if (code == 0 && (!s.name.len || !s.created_at.len))
        code = err_set(err, ERR_NOT_FOUND, "there is no such switch");
    if (code == 0)
        *out = s;
    return code;
}

static int read_epoch(struct replications *r, struct arena *a, struct bucket_switch *s,
                      struct err *err)
{
    struct reply *reply;
    int code = store_call(r->o.config, a, &reply, err, STR("ZSCORE"), STR("w:epochs"),
                          arena_fmt(a, "n:" STR_FMT, STR_ARG(s->name)));

    if (code == 0 && !reply_is_nil(reply) && str_i64(reply->str, &s->epoch) < 0)
        code = err_set(err, ERR_CORRUPT, "an epoch of w:epochs is no number");
    return code;
}

static int read_key(struct replications *r, struct arena *a, struct str key,
                    struct bucket_switch *out, struct err *err)
{
    struct reply *reply;
    int code = store_call(r->o.config, a, &reply, err, STR("HGETALL"), key);

    if (code == 0)
        code = read_row(a, reply, out, err);
    return code == 0 ? read_epoch(r, a, out, err) : code;
}

static struct str key_of(struct arena *a, const char *prefix, struct str user, struct str bucket)
{
    return arena_fmt(a, "%s:" STR_FMT ":" STR_FMT, prefix, STR_ARG(replication_escaped(a, user)),
                     STR_ARG(replication_escaped(a, bucket)));
}

int switch_read(struct replications *r, struct arena *a, struct str user, struct str bucket,
                struct bucket_switch *out, struct err *err)
{
    return read_key(r, a, key_of(a, "p:switch", user, bucket), out, err);
}

/* --- listing --- */

struct keys {
    VEC(struct str) list; /* in the arena of the call; a key may be there twice */
};

static int scan_keys(struct replications *r, struct arena *a, struct keys *out, struct err *err)
{
    struct str cursor = STR("0");
    int code = 0;

    do {
        struct reply *reply;
        code = store_call(r->o.config, a, &reply, err, STR("SCAN"), cursor, STR("MATCH"),
                          STR("p:switch:*"), STR("COUNT"), STR("1000"));
        if (code == 0)
            code = reply_expect(reply, REPLY_ARRAY, err);
        if (code == 0 && reply->count != 2)
            code = err_code(err, ERR_TYPE);
        if (code < 0)
            break;
        cursor = reply->items[0].str;
        for (size_t i = 0; i < reply->items[1].count; i++)
            vec_push(&out->list, reply->items[1].items[i].str);
    } while (!str_eq(cursor, STR("0")));
    return code;
}

static int by_bucket(const void *one, const void *two)
{
    const struct bucket_switch *a = one, *b = two;
    int order = str_cmp(a->id.user, b->id.user);

    return order ? order : str_cmp(a->id.bucket, b->id.bucket);
}

static size_t without_twins(struct bucket_switch *list, size_t count)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++)
        if (n == 0 || by_bucket(&list[n - 1], &list[i]) != 0)
            list[n++] = list[i];
    return n;
}

int switch_list(struct replications *r, struct arena *a, struct bucket_switch **out, size_t *count,
                struct err *err)
{
    struct bucket_switch *list = NULL;
    struct keys keys = {0};
    size_t n = 0;
    int code = scan_keys(r, a, &keys, err);

    if (code == 0)
        list = arena_array(a, keys.list.len + 1, sizeof(*list));
    if (code == 0 && !list)
        code = err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < keys.list.len && code == 0; i++) {
        code = read_key(r, a, keys.list.items[i], &list[n], err);
        n += code == 0;
        code = code == ERR_NOT_FOUND ? 0 : code; /* it is gone by now */
    }
    vec_release(&keys.list);
    if (code < 0)
        return code;
    if (n)
        qsort(list, n, sizeof(*list), by_bucket);
    *out = list;
    *count = without_twins(list, n);
    return 0;
}

int switch_history(struct replications *r, struct arena *a, struct str user, struct str bucket,
                   struct str **out, size_t *count, struct err *err)
{
    struct reply *reply;
    int code = store_call(r->o.config, a, &reply, err, STR("LRANGE"),
                          key_of(a, "p:switch-hist", user, bucket), STR("0"), STR("-1"));

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
