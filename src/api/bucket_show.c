/* Shows a bucket by its name, on every storage that has a bucket with that name, local or remote.
 */
#include "api/api_int.h"
#include "object/bucket.h"
#include "object/overlay.h"
#include "object/remote/remote.h"
#include "route/route.h"
#include "s3/lifecycle/lifecycle_sweep.h"

static rest_fn bucket_show;

#define COUNT_FIELD(name, help) {#name, "In the last whole sweep: " help, REST_INTEGER},

static const struct rest_row bucket_show_rows[] = {
    {HTTP_GET, "/api/v1/buckets/{name}", REST_ADMIN,
     "A bucket, once for each storage that has one of the name.", bucket_show,
     .in_path = REST_FIELDS({"name", "The bucket's name."}),
     .answer = REST_FIELDS(
         {"buckets", "The buckets of that name.", REST_OBJECTS,
          .members = REST_FIELDS(
              BUCKET_FIELDS,
              {"sharded", "May it be split over several buckets (`weir shard`)?", REST_BOOLEAN},
              {"objects", "Objects that it holds; absent: the storage is remote.", REST_INTEGER,
               .sometimes = true},
              {"bytes", "Bytes of these; likewise.", REST_INTEGER, .sometimes = true},
              {"old_versions", "Versions that are not the latest; likewise.", REST_INTEGER,
               .sometimes = true},
              {"old_bytes", "Bytes of these; likewise.", REST_INTEGER, .sometimes = true},
              {"counted_versions",
               "Objects and old versions by the remote storage's own count; absent: it gives none, "
               "or the bucket is local.",
               REST_INTEGER, .sometimes = true},
              {"counted_bytes", "Bytes of these; likewise.", REST_INTEGER, .sometimes = true},
              LIFECYCLE_COUNTS(COUNT_FIELD){
                  "lifecycle", "\"none\", \"idle\", \"sweeping\", or \"remote\": the storage's "
                               "own business."},
              {"swept", "When the last whole sweep ended.", REST_TIME})},
         {"unasked", "Storages that could not be asked.", REST_OBJECTS,
          .members = REST_FIELDS({"storage", "The storage's name."},
                                 {"error", "Why it could not be asked."})})},
};
const struct rest_table api_bucket_show_rows = {REST_ROWS(bucket_show_rows)};

/* The state while the bucket is searched on all storages: the answer, and the storages that could
 * not be asked. */
struct shown {
    struct api *api;
    struct arena *a;
    struct str name;
    struct json_out *w; /* its array of buckets is open */
    size_t found;
    struct {
        struct str storage, error;
    } unasked[ROUTES_STORAGES_MAX];
    size_t unasked_count;
};

static void shown_write_sweep(struct json_out *w, const char *state,
                              const struct lifecycle_progress *p)
{
    json_out_member_str(w, "lifecycle", str_z(state));
    rest_time(w, "swept", p->finished_ms);
#define X(name, help) json_out_member_u64(w, #name, p->last.name);
    LIFECYCLE_COUNTS(X)
#undef X
}

/* Writes whether the bucket has lifecycle rules, and the results of their last complete sweep. */
static int shown_write_lifecycle(struct json_out *w, struct bucket *b, struct arena *a,
                                 struct err *err)
{
    struct lifecycle_progress p = {0};
    struct str text;
    int code = b->ops->get_document(b, a, "lifecycle", &text, err);
    const char *state = code == ERR_NOT_FOUND ? "none" : "idle";

    if (code == 0 || code == ERR_NOT_FOUND)
        code = lifecycle_progress_read(&p, b, a, err);
    if (code == 0)
        shown_write_sweep(w, p.slot_ms && !p.done ? "sweeping" : state, &p);
    return code;
}

static int shown_write_usage(struct json_out *w, struct bucket *b, struct err *err)
{
    struct bucket_usage u;
    int code = b->ops->usage(b, &u, err);

    if (code < 0)
        return code;
    json_out_member_u64(w, "objects", u.objects);
    json_out_member_u64(w, "bytes", u.bytes);
    json_out_member_u64(w, "old_versions", u.old_versions);
    json_out_member_u64(w, "old_bytes", u.old_bytes);
    return 0;
}

static int shown_add_local(struct shown *s, struct storage *storage, struct err *err)
{
    struct bucket_info info;
    struct bucket *b = NULL;
    int code = storage_open_bucket(&b, storage, STR_EMPTY, s->name, err);

    if (code == 0)
        code = b->ops->info(b, s->a, &info, err);
    if (code == 0) {
        info.name = s->name;
        json_out_open(s->w, '{');
        api_write_bucket(s->w, &info, storage->name);
        json_out_member_bool(s->w, "sharded", bucket_can(b, STORAGE_PARTS));
        code = shown_write_usage(s->w, b, err);
        if (code == 0)
            code = shown_write_lifecycle(s->w, b, s->a, err);
        json_out_close(s->w, '}');
        s->found++;
    }
    if (b)
        b->ops->unref(b);
    return code == ERR_NO_BUCKET ? 0 : code;
}

/* What a remote storage says of a bucket. */
struct remote_shown {
    struct bucket_info info;
    struct remote_count count;
    bool counted; /* the storage has given a count */
};

/* Writes a remote bucket, without lifecycle: weir does not run the rules of a remote bucket. Its
 * size is written only if the storage itself has counted it, because weir would have to list the
 * bucket. */
static void shown_write_remote(struct shown *s, const struct remote_shown *r, struct str storage)
{
    json_out_open(s->w, '{');
    api_write_bucket(s->w, &r->info, storage);
    json_out_member_bool(s->w, "sharded", false);
    if (r->counted) {
        json_out_member_u64(s->w, "counted_versions", r->count.versions);
        json_out_member_u64(s->w, "counted_bytes", r->count.bytes);
    }
    shown_write_sweep(s->w, "remote", &(struct lifecycle_progress){0});
    json_out_close(s->w, '}');
    s->found++;
}

/* Asks the storage for its own count of the bucket. It is no error if the storage has none, or does
 * not tell it this user. */
static int shown_count(struct bucket *b, struct remote_shown *out, struct err *err)
{
    int code = remote_count(b, &out->count, err);

    out->counted = code == 0;
    return code == ERR_UNSUPPORTED || code == ERR_DENIED ? 0 : code;
}

/* Asks for the bucket with the keys of one user. ERR_NO_BUCKET, ERR_DENIED: the user does not see
 * the bucket. */
static int shown_look(struct shown *s, struct storage *storage, struct str user,
                      struct remote_shown *out, struct err *err)
{
    struct bucket *b = NULL;
    int code = storage_open_bucket(&b, storage, user, s->name, err);

    *out = (struct remote_shown){0};
    if (code == 0)
        code = b->ops->info(b, s->a, &out->info, err);
    if (code == 0)
        code = shown_count(b, out, err);
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
    struct remote_shown shown, seen = {0};
    size_t before = s->found;
    bool anyone = false;
    int code = services_find_remote(s->api->o.services, s->a, storage->name, &e, err);

    for (size_t i = 0; i < e.user_count && code == 0; i++) {
        code = shown_look(s, storage, e.users[i], &shown, err);
        if (code == 0 && shown.info.owner.len)
            shown_write_remote(s, &shown, storage->name);
        else if (code == 0)
            seen = shown, anyone = true;
        else if (code == ERR_NO_BUCKET || code == ERR_DENIED)
            code = 0;
    }
    if (code == 0 && s->found == before && anyone)
        shown_write_remote(s, &seen, storage->name);
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

static void shown_write_unasked(const struct shown *s)
{
    json_out_key(s->w, "unasked");
    json_out_open(s->w, '[');
    for (size_t i = 0; i < s->unasked_count; i++) {
        json_out_open(s->w, '{');
        json_out_member_str(s->w, "storage", s->unasked[i].storage);
        json_out_member_str(s->w, "error", s->unasked[i].error);
        json_out_close(s->w, '}');
    }
    json_out_close(s->w, ']');
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
    *s = (struct shown){.api = c->ctx, .a = c->arena, .name = rest_text(c, "name"), .w = c->w};
    json_out_key(c->w, "buckets");
    json_out_open(c->w, '[');
    for (size_t i = 0, n = routes_storages(s->api->o.routes, all, ARRAY_SIZE(all));
         i < n && code == 0; i++)
        code = shown_add(s, all[i], err);
    json_out_close(c->w, ']');
    shown_write_unasked(s);
    return code == 0 && s->found == 0 ? shown_nothing(s, err) : code;
}
