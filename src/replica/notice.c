/* Parses the notifications that storages send about changes, and records the changes
 * (replica/notice.h). */
#include "replica/notice.h"

#include "base/json.h"
#include "replica/tap/tap_int.h"

/* Prefixes of event names, after "s3:", and the things that these events change. */
static const struct {
    const char *prefix;
    unsigned changes;
} events[] = {
    {"ObjectCreated:", THINGS_OF_OBJECT}, /* also MinIO's ObjectCreated:PutTagging and the like */
    {"ObjectRemoved:", THING_OBJECT},
    {"ObjectTagging:", THING_OBJECT_TAGS},
    {"ObjectAcl:", THING_OBJECT_ACL},
    {"LifecycleExpiration:", THING_OBJECT},
    {"ObjectLifecycle:Expiration:", THING_OBJECT}, /* sent by Ceph */
    {"ObjectSynced:", THINGS_OF_OBJECT},           /* sent by Ceph for objects from another zone */
};

/* --- reading --- */

static unsigned event_changes(struct str event)
{
    if (str_starts(event, STR("s3:")))
        event = str_skip(event, 3);
    for (size_t i = 0; i < ARRAY_SIZE(events); i++)
        if (str_starts(event, str_z(events[i].prefix)))
            return events[i].changes;
    return 0;
}

static void notice_add_key(struct notice *n, struct arena *a, struct str key)
{
    bool fits = key.len > 0 && key.len <= OBJECT_KEY_MAX && str_is_utf8(key) &&
                !memchr(key.p, '\0', key.len);

    if (fits && !(n->key_count && str_eq(n->keys[0], key)))
        n->keys[n->key_count++] = arena_str(a, key);
}

static void record_read_keys(struct notice *n, struct arena *a, struct str key)
{
    struct buf plain = BUF_INIT(NOTICE_BODY_MAX);

    notice_add_key(n, a, key);
    if (url_decode(&plain, key, true) == 0 && buf_error(&plain) == 0)
        notice_add_key(n, a, buf_str(&plain));
    buf_release(&plain);
}

static void notice_read_record(struct notices *out, struct arena *a, const json_t *record)
{
    const json_t *s3 = json_object_get(record, "s3");
    const json_t *bucket = json_object_get(s3, "bucket"), *object = json_object_get(s3, "object");
    struct str event = json_get_str(record, "eventName", STR_EMPTY);
    struct notice n = {.bucket = arena_str(a, json_get_str(bucket, "name", STR_EMPTY)),
                       .changes = event_changes(event)};

    if (event.len && !n.changes) {
        out->other++;
        return;
    }
    record_read_keys(&n, a, json_get_str(object, "key", STR_EMPTY));
    if (event.len && n.bucket.len && n.key_count)
        out->list[out->count++] = n;
    else
        out->unclear++;
}

static int notice_read_records(struct notices *out, struct arena *a, const json_t *body,
                               struct err *err)
{
    const json_t *records = json_object_get(body, "Records"), *record;
    size_t i;

    if (!json_is_object(body) || (records && !json_is_array(records)))
        return err_set(err, ERR_INVALID, "the body is no notification: there are no Records");
    out->list = arena_array(a, json_array_size(records) + 1, sizeof(*out->list));
    if (!out->list)
        return err_code(err, ERR_NO_MEMORY);
    json_array_foreach(records, i, record) notice_read_record(out, a, record);
    return arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

int notices_read(struct notices *out, struct arena *a, struct str body, struct err *err)
{
    json_t *json = NULL;
    int code = body.len > NOTICE_BODY_MAX ? err_code(err, ERR_TOO_LARGE) : 0;

    *out = (struct notices){0};
    if (code == 0)
        code = json_read(&json, body, err);
    if (code == 0)
        code = notice_read_records(out, a, json, err);
    json_decref(json);
    return code;
}

/* --- recording --- */

/* Collects the changes of one call, and records them whenever a record is full. */
struct recording {
    struct replications *r;
    struct replication_view *view;
    struct str storage;
    struct arena a;
    struct changes_out out;
    bool fresh; /* this call has read the policies again */
};

static int flush(struct recording *w, struct err *err)
{
    struct record rec = {.changes = w->out.items, .count = w->out.count};
    int code = arena_error(&w->a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;

    if (code == 0 && rec.count)
        code = replication_record(w->r, &rec, err);
    w->out.count = 0;
    return code;
}

static bool is_from(const struct recording *w, struct str bucket)
{
    const struct replication *const *found;

    return replication_view_from(w->view, w->storage, bucket, &found) > 0;
}

/* Sets *out to whether the bucket is replicated. A process with old policies may not know of a
 * replication, and must not acknowledge a notice that it would drop. So before *out is set to
 * false, the process reads the policies again. */
static int notice_is_replicated(struct recording *w, struct str bucket, bool *out, struct err *err)
{
    int code = 0;

    *out = is_from(w, bucket);
    if (*out || w->fresh)
        return 0;
    code = replications_refresh(w->r, err);
    replication_view_unref(w->view);
    w->view = NULL;
    if (code == 0)
        code = replications_view(w->r, &w->view, err);
    w->fresh = code == 0;
    *out = code == 0 && is_from(w, bucket);
    return code;
}

static int record_one(struct recording *w, const struct notice *n, size_t *recorded,
                      struct err *err)
{
    bool replicated = false;
    int code = notice_is_replicated(w, n->bucket, &replicated, err);

    if (code < 0 || !replicated)
        return code;
    if (w->out.count + (size_t)TAP_PER_CHANGE * NOTICE_KEYS > QUEUE_BATCH_MAX)
        code = flush(w, err);
    for (size_t i = 0; i < n->key_count; i++)
        changes_add(&w->out, n->changes, w->storage, n->bucket, n->keys[i], 0);
    ++*recorded;
    return code;
}

int notices_record(struct replications *r, struct str storage, const struct notices *n,
                   size_t *recorded, struct err *err)
{
    struct recording w = {.r = r, .storage = storage, .a = ARENA_INIT(0)};
    int code = replications_view(r, &w.view, err);

    *recorded = 0;
    if (code == 0)
        code = changes_out_init(&w.out, &w.a, err);
    for (size_t i = 0; code == 0 && i < n->count; i++)
        code = record_one(&w, &n->list[i], recorded, err);
    if (code == 0)
        code = flush(&w, err);
    replication_view_unref(w.view);
    arena_release(&w.a);
    return code;
}
