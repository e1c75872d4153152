/* Shows a bucket by its name, on every storage that has a bucket with that name, local or remote.
 */
#include "api/api_int.h"
#include "object/bucket.h"
#include "object/overlay.h"
#include "object/remote/remote.h"
#include "route/route.h"

static rest_fn bucket_show;

#define COUNT_FIELD(name, help)                                                                    \
    {#name, "In the last whole sweep: " help, REST_INTEGER,                                        \
     REST_AT(struct bucket_view, swept.name)},

static const struct rest_field shown_fields[] = {
    BUCKET_FIELDS,
    {"sharded", "May it be split over several buckets (`weir shard`)?", REST_BOOLEAN,
     REST_AT(struct bucket_view, sharded)},
    {"objects", "Objects that it holds; absent: the storage is remote.", REST_INTEGER,
     .sometimes = true, REST_AT(struct bucket_view, objects)},
    {"bytes", "Bytes of these; likewise.", REST_INTEGER, .sometimes = true,
     REST_AT(struct bucket_view, bytes)},
    {"old_versions", "Versions that are not the latest; likewise.", REST_INTEGER, .sometimes = true,
     REST_AT(struct bucket_view, old_versions)},
    {"old_bytes", "Bytes of these; likewise.", REST_INTEGER, .sometimes = true,
     REST_AT(struct bucket_view, old_bytes)},
    {"counted_versions",
     "Objects and old versions by the remote storage's own count; absent: it gives none, or the "
     "bucket is local.",
     REST_INTEGER, .sometimes = true, REST_AT(struct bucket_view, counted_versions)},
    {"counted_bytes", "Bytes of these; likewise.", REST_INTEGER, .sometimes = true,
     REST_AT(struct bucket_view, counted_bytes)},
    {"lifecycle", "\"none\", \"idle\", \"sweeping\", or \"remote\": the storage's own business.",
     REST_AT(struct bucket_view, lifecycle)},
    {"swept", "When the last whole sweep ended.", REST_TIME, REST_AT(struct bucket_view, swept_ms)},
    LIFECYCLE_COUNTS(COUNT_FIELD){0},
};

struct unasked {
    struct str storage, error;
};

/* The answer: the buckets, and the storages that could not be asked. */
struct shown_answer {
    struct bucket_view *buckets;
    size_t count;
    struct unasked *unasked;
    size_t unasked_count;
};

static const struct rest_row bucket_show_rows[] = {
    {HTTP_GET, "/api/v1/buckets/{name}", REST_ADMIN,
     "A bucket, once for each storage that has one of the name.", bucket_show,
     .in_path = REST_FIELDS({"name", "The bucket's name."}), .out = sizeof(struct shown_answer),
     .answer =
         REST_FIELDS({"buckets", "The buckets of that name.", REST_OBJECTS, .members = shown_fields,
                      REST_ITEMS(struct shown_answer, buckets, count)},
                     {"unasked", "Storages that could not be asked.", REST_OBJECTS,
                      .members = REST_FIELDS(
                          {"storage", "The storage's name.", REST_AT(struct unasked, storage)},
                          {"error", "Why it could not be asked.", REST_AT(struct unasked, error)}),
                      REST_ITEMS(struct shown_answer, unasked, unasked_count)})},
};
const struct rest_table api_bucket_show_rows = {REST_ROWS(bucket_show_rows)};

/* The state while the bucket is searched on all storages. */
struct shown {
    struct api *api;
    struct arena *a;
    struct str name;
    VEC(struct bucket_view) found;
    struct unasked unasked[ROUTES_STORAGES_MAX];
    size_t unasked_count;
};

static struct rest_known shown_number(uint64_t number)
{
    return (struct rest_known){true, (int64_t)number};
}

/* Reads whether the bucket has lifecycle rules, and the results of their last complete sweep. */
static int shown_read_lifecycle(struct bucket_view *out, struct bucket *b, struct arena *a,
                                struct err *err)
{
    struct lifecycle_progress p = {0};
    struct str text;
    int code = b->ops->get_document(b, a, "lifecycle", &text, err);

    out->lifecycle = code == ERR_NOT_FOUND ? "none" : "idle";
    if (code == 0 || code == ERR_NOT_FOUND)
        code = lifecycle_progress_read(&p, b, a, err);
    if (p.slot_ms && !p.done)
        out->lifecycle = "sweeping";
    out->swept = p.last;
    out->swept_ms = p.finished_ms;
    return code;
}

static int shown_read_usage(struct bucket_view *out, struct bucket *b, struct err *err)
{
    struct bucket_usage u;
    int code = b->ops->usage(b, &u, err);

    if (code < 0)
        return code;
    out->objects = shown_number(u.objects);
    out->bytes = shown_number(u.bytes);
    out->old_versions = shown_number(u.old_versions);
    out->old_bytes = shown_number(u.old_bytes);
    return 0;
}

static int shown_add_local(struct shown *s, struct storage *storage, struct err *err)
{
    struct bucket_view view = {.storage = storage->name};
    struct bucket *b = NULL;
    int code = storage_open_bucket(&b, storage, STR_EMPTY, s->name, err);

    if (code == 0)
        code = b->ops->info(b, s->a, &view.info, err);
    if (code == 0)
        code = shown_read_usage(&view, b, err);
    if (code == 0)
        code = shown_read_lifecycle(&view, b, s->a, err);
    if (code == 0) {
        view.info.name = s->name;
        view.sharded = bucket_can(b, STORAGE_PARTS);
        vec_push(&s->found, view);
    }
    if (b)
        b->ops->unref(b);
    return code == ERR_NO_BUCKET ? 0 : code;
}

/* Asks the storage for its own count of the bucket, because weir would have to list the bucket. It
 * is no error if the storage has none, or does not tell it this user. */
static int shown_read_count(struct bucket_view *out, struct bucket *b, struct err *err)
{
    struct remote_count count;
    int code = remote_count(b, &count, err);

    if (code == 0) {
        out->counted_versions = shown_number(count.versions);
        out->counted_bytes = shown_number(count.bytes);
    }
    return code == ERR_UNSUPPORTED || code == ERR_DENIED ? 0 : code;
}

/* Asks for the bucket with the keys of one user. ERR_NO_BUCKET, ERR_DENIED: the user does not see
 * the bucket. */
static int shown_look(struct shown *s, struct storage *storage, struct str user,
                      struct bucket_view *out, struct err *err)
{
    struct bucket *b = NULL;
    int code = storage_open_bucket(&b, storage, user, s->name, err);

    /* The rules of lifecycle are the storage's own business. */
    *out = (struct bucket_view){.storage = storage->name, .lifecycle = "remote"};
    if (code == 0)
        code = b->ops->info(b, s->a, &out->info, err);
    if (code == 0)
        code = shown_read_count(out, b, err);
    if (b)
        b->ops->unref(b);
    return code;
}

/* Adds the buckets of a remote storage, which is asked with the keys of each user. All buckets that
 * a user owns are shown; a storage with tenants may have several of the same name. If no user owns
 * such a bucket, a bucket that a user can see is shown. */
static int shown_add_remote(struct shown *s, struct storage *storage, struct err *err)
{
    struct remote_entry e = {0};
    struct bucket_view view, seen = {0};
    size_t before = s->found.len;
    bool anyone = false;
    int code = services_find_remote(s->api->o.services, s->a, storage->name, &e, err);

    for (size_t i = 0; i < e.user_count && code == 0; i++) {
        code = shown_look(s, storage, e.users[i], &view, err);
        if (code == 0 && view.info.owner.len)
            vec_push(&s->found, view);
        else if (code == 0)
            seen = view, anyone = true;
        else if (code == ERR_NO_BUCKET || code == ERR_DENIED)
            code = 0;
    }
    if (code == 0 && s->found.len == before && anyone)
        vec_push(&s->found, seen);
    return code;
}

/* Adds the buckets of one storage. If that storage cannot be asked, the buckets of other storages
 * are still shown. */
static int shown_add(struct shown *s, struct storage *storage, struct err *err)
{
    int code;

    if (!storage_can(storage, STORAGE_CREDENTIALS))
        return shown_add_local(s, storage, err);
    code = shown_add_remote(s, storage, err);
    if (code < 0) {
        s->unasked[s->unasked_count].storage = storage->name;
        s->unasked[s->unasked_count++].error = arena_str(s->a, str_z(err->text));
    }
    return arena_error(s->a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

/* Sets the error for the case that no bucket was found. It is "does not exist" only if every
 * storage has answered so. */
static int shown_nothing(const struct shown *s, struct err *err)
{
    if (s->unasked_count)
        return err_set(err, ERR_UNAVAILABLE, "storage " STR_FMT " cannot be asked: " STR_FMT,
                       STR_ARG(s->unasked[0].storage), STR_ARG(s->unasked[0].error));
    return err_set(err, ERR_NO_BUCKET, "there is no bucket " STR_FMT, STR_ARG(s->name));
}

static int bucket_show(struct rest_call *c, struct err *err)
{
    struct storage *all[ROUTES_STORAGES_MAX];
    struct shown *s = arena_new(c->arena, struct shown);
    int code = 0;

    if (!s)
        return err_code(err, ERR_NO_MEMORY);
    *s = (struct shown){.api = c->ctx, .a = c->arena, .name = rest_text(c, "name")};
    for (size_t i = 0, n = routes_storages(s->api->o.routes, all, ARRAY_SIZE(all));
         i < n && code == 0; i++)
        code = shown_add(s, all[i], err);
    if (code == 0 && s->found.len == 0)
        code = shown_nothing(s, err);
    if (code == 0)
        code = rest_give(c, (&(struct shown_answer){s->found.items, s->found.len, s->unasked,
                                                    s->unasked_count}));
    vec_release(&s->found);
    return code;
}
