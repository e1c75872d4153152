/* The REST routes of sharding. */
#include "shard/rest/rest.h"

#include "http/wire.h"
#include "object/overlay.h"
#include "object/part_names.h"
#include "route/route.h"

#define IN_PATH REST_FIELDS({"bucket", "The bucket's name."})
#define IN_FULL_SPEED                                                                              \
    {                                                                                              \
        "full_speed",                                                                              \
            "Work without pauses, at the expense of clients; else for an eighth of the "           \
            "time.",                                                                               \
            REST_BOOLEAN                                                                           \
    }
#define IN_STORAGE                                                                                 \
    {                                                                                              \
        "storage", "The storage that has it; left out: weir finds it."                             \
    }
#define SHARD_COUNTS                                                                               \
    {"objects", "Objects.", REST_INTEGER}, {"bytes", "Bytes of these.", REST_INTEGER},             \
        {"old_versions", "Versions that are not the latest.", REST_INTEGER},                       \
    {                                                                                              \
        "old_bytes", "Bytes of these.", REST_INTEGER                                               \
    }
#define SHARD_FIELDS                                                                               \
    {"bucket", "The bucket's name."}, {"storage", "The storage that has it."},                     \
        {"state", "\"active\", \"deleting\", \"plain\" or \"broken\"."},                           \
        {"error", "What is wrong with the bucket, and what to do; empty: nothing."},               \
        {"map", "The number of the newest map.", REST_INTEGER},                                    \
        {"threshold", "Objects of a shard beyond which it is split.", REST_INTEGER},               \
        {"own_threshold", "Does the bucket have a threshold of its own?", REST_BOOLEAN},           \
        {"shard_count", "How many shards there are.", REST_INTEGER},                               \
        {"segment_count", "How many segments there are.", REST_INTEGER},                           \
        {"moving", "What is being moved: \"split\", \"merge\", \"disable\" or \"\"."},             \
        SHARD_COUNTS
#define MOVE_FIELDS                                                                                \
    {"kind", "\"split\", \"merge\" or \"disable\"."},                                              \
        {"phase", "\"looking\", \"moving\" or \"cleaning\"."},                                     \
        {"from", "The number of the shard that keys leave.", REST_INTEGER},                        \
        {"to", "The number of the shard that gets them.", REST_INTEGER},                           \
        {"after", "The keys above this one are moved."},                                           \
        {"upto", "The last key that is moved; empty: there is no end."},                           \
        {"started", "When this process began or took over the move.", REST_TIME},                  \
        {"keys", "Keys to move; 0: not counted yet.", REST_INTEGER},                               \
        {"keys_moved", "Keys that were moved.", REST_INTEGER},                                     \
        {"keys_per_second", "How fast.", REST_INTEGER},                                            \
        {"seconds_left", "Until the move ends; null: not known.", REST_INTEGER, .nullable = true}, \
    {                                                                                              \
        "waits", "Why the move waits; empty: it does not."                                         \
    }
#define SHOW_FIELDS                                                                                \
    SHARD_FIELDS,                                                                                  \
        {"segments", "The segments, in the order of the keys.", REST_OBJECTS,                      \
         .members = REST_FIELDS({"after", "The segment has the keys above this one."},             \
                                {"upto", "Its last key; empty: there is no end."},                 \
                                {"shard", "The number of its shard.", REST_INTEGER},               \
                                {"bucket", "The shard's bucket."})},                               \
        {"shards", "The shards.", REST_OBJECTS,                                                    \
         .members = REST_FIELDS(                                                                   \
             {"shard", "The number.", REST_INTEGER}, {"bucket", "The bucket."},                    \
             {"storage", "Its storage."}, {"segments", "How many segments it has.", REST_INTEGER}, \
             {"unclean", "Windows in which it may have garbage.", REST_INTEGER}, SHARD_COUNTS)},   \
        {"move", "The move that is under way; null: there is none.", REST_OBJECT,                  \
         .nullable = true, .members = REST_FIELDS(MOVE_FIELDS)},                                   \
        {"last_move", "The last move that has ended since weir was started; null: none has.",      \
         REST_OBJECT, .nullable = true,                                                            \
         .members = REST_FIELDS(                                                                   \
             {"kind", "\"split\", \"merge\" or \"disable\"."},                                     \
             {"whole", "Has it moved all keys? If not, it was cancelled or gave up.",              \
              REST_BOOLEAN},                                                                       \
             {"keys_moved", "Keys that it has moved.", REST_INTEGER},                              \
             {"seconds", "How long it took.", REST_INTEGER}, {"ended", "When.", REST_TIME})},      \
        {"why", "Why the bucket is not split at the moment; empty: it is, or need not be."},       \
        {"last_error", "Why the last move failed or paused; empty: it did not."},                  \
    {                                                                                              \
        "last_error_at", "When that was.", REST_TIME                                               \
    }

static const struct rest_row shard_rows[] = {
    {HTTP_GET, "/api/v1/shards", REST_ADMIN, "The sharded buckets of this weir.", shard_list_run,
     .list = "buckets", .by_place = true, .items = REST_FIELDS(SHARD_FIELDS)},
    {HTTP_POST, "/api/v1/shards", REST_ADMIN,
     "Make a bucket a sharded one, or change the threshold of one that is.", shard_enable_run,
     .body = REST_FIELDS({"bucket", "The bucket's name.", .required = true}, IN_STORAGE,
                         {"threshold",
                          "Objects of a shard beyond which it is split; 0: the configured number. "
                          "Left out: a sharded bucket keeps its own, and a new one has the "
                          "configured number.",
                          REST_INTEGER, .min = 0, .max = INT64_MAX}),
     .answer = REST_FIELDS(SHOW_FIELDS)},
    {HTTP_GET, "/api/v1/shards/{bucket}", REST_ADMIN, "One sharded bucket.", shard_show_run,
     .in_path = IN_PATH, .query = REST_FIELDS(IN_STORAGE), .answer = REST_FIELDS(SHOW_FIELDS)},
    {HTTP_DELETE, "/api/v1/shards/{bucket}", REST_ADMIN,
     "Begin to move everything back to the bucket itself, which is then a plain one.",
     shard_disable_run, .status = 202, .in_path = IN_PATH,
     .query = REST_FIELDS(IN_STORAGE, IN_FULL_SPEED), .answer = REST_FIELDS(SHOW_FIELDS)},
    {HTTP_POST, "/api/v1/shards/{bucket}/split", REST_ADMIN, "Begin to split a shard.",
     shard_split_run, .status = 202, .in_path = IN_PATH,
     .body = REST_FIELDS(IN_STORAGE,
                         {"at",
                          "The new boundary: the last key of the lower part; left out: the "
                          "median of the greatest segment.",
                          .max = OBJECT_KEY_MAX},
                         IN_FULL_SPEED),
     .answer = REST_FIELDS(SHOW_FIELDS)},
    {HTTP_POST, "/api/v1/shards/{bucket}/merge", REST_ADMIN, "Begin to merge two neighbours.",
     shard_merge_run, .status = 202, .in_path = IN_PATH,
     .body = REST_FIELDS(IN_STORAGE,
                         {"at",
                          "The boundary that goes; left out: that of the two neighbours with "
                          "the fewest keys.",
                          .max = OBJECT_KEY_MAX},
                         IN_FULL_SPEED),
     .answer = REST_FIELDS(SHOW_FIELDS)},
    {HTTP_POST, "/api/v1/shards/{bucket}/cancel", REST_ADMIN,
     "End the move that is under way. What was moved stays where it is.", shard_cancel_run,
     .in_path = IN_PATH, .body = REST_FIELDS(IN_STORAGE), .answer = REST_FIELDS(SHOW_FIELDS)},
    {HTTP_POST, "/api/v1/shards/{bucket}/verify", REST_ADMIN,
     "Compare the log of maps with the buckets.", shard_verify_run, .in_path = IN_PATH,
     .body = REST_FIELDS(IN_STORAGE, {"clean", "Remove garbage first.", REST_BOOLEAN}),
     .answer = REST_FIELDS(
         {"bucket", "The bucket's name."},
         {"removed", "How many versions were removed as garbage.", REST_INTEGER},
         {"count", "How many findings there are.", REST_INTEGER},
         {"findings", "The findings.", REST_OBJECTS,
          .members = REST_FIELDS(
              {"finding", "What is wrong: \"no map\", \"another map\", \"missing\", \"stray\", "
                          "\"garbage\", \"closed\", \"state\" or \"trouble\"."},
              {"shard", "The bucket of the shard."}, {"text", "The same in words."},
              {"after", "The window begins above this key."},
              {"upto", "The last key of the window; empty: there is no end."},
              {"keys", "How many keys there are that are garbage.", REST_INTEGER},
              {"key", "The first of them."},
              {"known", "Does the map know of the garbage?", REST_BOOLEAN})})},
    {HTTP_POST, "/api/v1/shards/{bucket}/rebuild", REST_ADMIN,
     "Read the log of maps anew, make a map from the keys in the shards, or remove what is left.",
     shard_rebuild_run, .in_path = IN_PATH,
     .body = REST_FIELDS(
         IN_STORAGE,
         {"from_contents", "Make a map from the keys; there must be none.", REST_BOOLEAN},
         {"newest",
          "A key that two shards have is in the one whose version is "
          "newer. Without this the call fails and names such keys.",
          REST_BOOLEAN},
         {"remove",
          "Remove the map and the shards, with the keys in them, of a bucket that itself does not "
          "exist any more.",
          REST_BOOLEAN},
         {"take_over",
          "Take over a bucket whose map another installation of weir has written; none but this "
          "one "
          "may use the storage any more.",
          REST_BOOLEAN}),
     .answer = REST_FIELDS({"bucket", "The bucket's name."},
                           {"map", "The number of its map; 0: it was removed.", REST_INTEGER},
                           {"shard_count", "How many shards it has.", REST_INTEGER},
                           {"segment_count", "How many segments it has.", REST_INTEGER},
                           {"keys", "Keys that were found in the shards.", REST_INTEGER},
                           {"twice", "How many keys were in two shards.", REST_INTEGER},
                           {"examples", "The first of them.", REST_STRINGS})},
};
const struct rest_table shard_routes = {REST_ROWS(shard_rows)};

/* --- what the files share --- */

/* How well a storage with a bucket of this name matches a call. */
enum home_fit { HOME_NONE, HOME_OTHER, HOME_FITS };

/* Returns how well the storage's bucket of this name matches the call. If the call shards a bucket
 * (`makes`), every bucket matches except one that a replication has copied there. In all other
 * calls only a sharded bucket matches. */
static enum home_fit home_fit(struct shard_room *r, struct storage *s, struct str name, bool makes)
{
    bool plain = shards_state(r->shards, s, name, NULL) == SHARDS_PLAIN;
    struct bucket *b = NULL;

    if (plain && storage_open_bucket(&b, s, STR_EMPTY, name, NULL) < 0)
        return HOME_NONE;
    if (b)
        b->ops->unref(b);
    if (makes)
        plain = route_is_copy(r->services->routes, s->name, name, STR_EMPTY);
    return plain ? HOME_OTHER : HOME_FITS;
}

static int home_named(struct shard_room *r, struct str storage, struct storage **home,
                      struct err *err)
{
    *home = routes_storage(r->services->routes, storage);
    return *home ? 0
                 : err_set(err, ERR_NOT_FOUND, "there is no storage " STR_FMT, STR_ARG(storage));
}

int shard_rest_home(const struct rest_call *c, struct storage **home, struct err *err)
{
    struct shard_room *r = c->ctx;
    struct str name = rest_text(c, "bucket");
    struct storage *all[ROUTES_STORAGES_MAX], *twin = NULL; /* twin: another storage that matches
                                                               as well as *home */
    size_t count = routes_storages(r->services->routes, all, ARRAY_SIZE(all));
    enum home_fit best = HOME_NONE;

    *home = NULL;
    if (rest_text(c, "storage").len)
        return home_named(r, rest_text(c, "storage"), home, err);
    for (size_t i = 0; i < count; i++) {
        if (!place_of(all[i]) || bucket_name_is_part(name))
            continue;
        enum home_fit fit = home_fit(r, all[i], name, c->row->run == shard_enable_run);
        if (fit == HOME_NONE || fit < best)
            continue;
        twin = fit == best ? all[i] : NULL;
        if (!twin)
            *home = all[i];
        best = fit;
    }
    if (!*home)
        return err_set(err, ERR_NO_BUCKET, "no folder of this weir has a bucket " STR_FMT "%s",
                       STR_ARG(name),
                       routes_any_remote(r->services->routes)
                           ? "; buckets on remote storages cannot be sharded"
                           : "");
    if (twin)
        return err_set(err, ERR_INVALID,
                       "the storages " STR_FMT " and " STR_FMT " have a bucket " STR_FMT
                       "; name one of them",
                       STR_ARG((*home)->name), STR_ARG(twin->name), STR_ARG(name));
    return 0;
}

int shard_rest_bucket(const struct rest_call *c, struct sharded **out, struct err *err)
{
    struct shard_room *r = c->ctx;
    struct str name = rest_text(c, "bucket");
    struct storage *home = NULL;
    struct err why = {0};
    int code = shard_rest_home(c, &home, err);

    if (code < 0)
        return code;
    *out = shards_find(r->shards, home, name);
    if (*out)
        return 0;
    enum shards_state state = shards_state(r->shards, home, name, &why);
    if (state == SHARDS_BROKEN || state == SHARDS_RECOVERING)
        return err_set(err, why.code, "%s", why.text);
    return err_set(err, ERR_NOT_FOUND, "the bucket " STR_FMT " is not sharded%s%s", STR_ARG(name),
                   why.code < 0 ? ": " : "", why.code < 0 ? why.text : "");
}

void shard_rest_key(struct json_out *w, const char *name, struct str key)
{
    struct buf text = BUF_INIT(0);

    if (!str_is_utf8(key))
        url_encode(&text, key, true);
    json_out_member_str(w, name, text.len ? buf_str(&text) : key);
    buf_release(&text);
}
