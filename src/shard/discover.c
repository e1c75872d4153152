/* Finds sharded buckets by the names of buckets. */
#include "shard/discover.h"

#include "base/map.h"
#include "base/vec.h"
#include "object/local/local.h"
#include "object/part_names.h"
#include "shard/log.h"
#include "shard/names.h"

int discover_open_log(struct bucket **out, struct storage *home, struct str name, struct err *err)
{
    struct arena a = ARENA_INIT(0);
    int code = home->ops->open_bucket(out, home, STR_EMPTY, shard_map_name(&a, name), err);

    if (code == 0)
        local_untap(*out);
    arena_release(&a);
    return code;
}

/* --- one bucket --- */

static int serve_recovered(struct shards *s, struct sharded *x, bool *found, struct err *err)
{
    const struct shards_options *o = shards_settings(s);
    bool serves = true;
    int code = o->recover ? o->recover(o->ctx, x, &serves, err) : 0;

    if (code == 0 && serves)
        shards_serve(s, x);
    else if (code == 0)
        shards_forget(s, x->home, x->name);
    *found = code == 0 && serves;
    return code;
}

/* Checks that the map is of the bucket in whose map bucket it was found. */
static int map_belongs(const struct shard_map *m, const struct storage *home, struct str name,
                       struct err *err)
{
    if (str_eq(m->home, home->name) && str_eq(m->bucket, name))
        return 0;
    return err_set(err, ERR_CORRUPT,
                   "the map of bucket " STR_FMT " is that of bucket " STR_FMT
                   " on storage " STR_FMT,
                   STR_ARG(name), STR_ARG(m->bucket), STR_ARG(m->home));
}

/* Serves the bucket by the newest map of its log. ERR_NOT_FOUND: the log is empty. */
static int serve_by_log(struct shards *s, struct storage *home, struct str name, struct bucket *log,
                        bool *found, struct err *err)
{
    struct shard_map *head = NULL;
    int code = log_head(log, &head, err);

    if (code == 0)
        code = map_belongs(head, home, name, err);
    if (code == 0) {
        struct sharded *x =
            sharded_new(shards_settings(s)->routes, home, log->ops->ref(log), map_ref(head));
        code = serve_recovered(s, x, found, err);
        sharded_unref(x);
    }
    map_unref(head);
    return code;
}

int discover_bucket(struct shards *s, struct storage *home, struct str name, bool *found,
                    struct err *err)
{
    struct bucket *log = NULL;
    int code = discover_open_log(&log, home, name, err);

    *found = false;
    if (code == 0)
        code = serve_by_log(s, home, name, log, found, err);
    if (log)
        log->ops->unref(log);
    return code;
}

/* --- all buckets of a storage --- */

/* The buckets of a storage: those that clients see, and the names of parts. */
struct survey {
    struct arena a;
    VEC(struct str) plain, parts;
};

static int survey_make(struct survey *v, struct storage *home, struct err *err)
{
    struct bucket_info *page = NULL;
    struct str after = STR_EMPTY;
    size_t count = OBJECT_LIST_MAX;
    int code = 0;

    *v = (struct survey){.a = ARENA_INIT(0)};
    while (code == 0 && count == OBJECT_LIST_MAX) {
        code = home->ops->list_buckets(home, &v->a, STR_EMPTY, after, OBJECT_LIST_MAX, &page,
                                       &count, err);
        for (size_t i = 0; code == 0 && i < count; i++) {
            after = page[i].name;
            if (bucket_name_is_part(after))
                vec_push(&v->parts, after);
            else
                vec_push(&v->plain, after);
        }
    }
    return code;
}

static void survey_release(struct survey *v)
{
    vec_release(&v->plain);
    vec_release(&v->parts);
    arena_release(&v->a);
}

/* Returns the hash in the name of a part: the characters behind the last "-weir-". */
static struct str part_hash(struct str part)
{
    size_t at = part.len;

    while (at >= 6 && !str_eq(str_n(part.p + at - 6, 6), STR("-weir-")))
        at--;
    return str_n(part.p + at, size_min(SHARD_HASH_LEN, part.len - at));
}

static void survey_note(struct shards *s, struct storage *home, struct str name, int code,
                        const struct err *err)
{
    const struct log *log = shards_settings(s)->log;
    struct err why = {0};

    if (code == 0 || code == ERR_NO_BUCKET)
        return;
    if (code == ERR_OFFLINE)
        err_set(&why, ERR_OFFLINE, "%s", err->text);
    else
        err_set(&why, ERR_UNAVAILABLE, "the map of the sharded bucket " STR_FMT ": %s",
                STR_ARG(name), err->text);
    shards_break(s, home, name, &why);
    log_error(log, "shard.broken", log_s("storage", home->name), log_s("bucket", name),
              log_z("error", why.text));
}

/* Looks at a bucket of which there are parts. */
static int survey_look(struct shards *s, struct storage *home, struct survey *v, struct str name,
                       struct err *err)
{
    struct str mark;
    uint32_t number;
    bool found = false, any = false;
    int code = discover_bucket(s, home, name, &found, err);

    if (code == ERR_NOT_FOUND || code == ERR_NO_BUCKET) {
        vec_each (&v->parts, struct str *, part)
            any |= shard_name_parse(*part, name, &mark, &number);
        code = any ? err_set(err, ERR_UNAVAILABLE,
                             "it was destroyed, but there are shards; `weir shard rebuild " STR_FMT
                             " --from-contents` makes it anew",
                             STR_ARG(name))
                   : ERR_NO_BUCKET;
    }
    return code;
}

/* Looks at map buckets whose bucket does not exist (any more): the name is in the log. */
static int survey_look_gone(struct shards *s, struct storage *home, struct str part,
                            struct err *err)
{
    struct shard_map *head = NULL;
    struct bucket *log = NULL;
    bool found = false;
    int code = str_ends(part, STR("-map"))
                   ? home->ops->open_bucket(&log, home, STR_EMPTY, part, err)
                   : ERR_NO_BUCKET;

    if (code == 0)
        local_untap(log);
    if (code == 0)
        code = log_head(log, &head, err);
    if (code == 0)
        code = serve_by_log(s, home, head->bucket, log, &found, err);
    if (code == 0 && found) {
        code = err_set(err, ERR_UNAVAILABLE, "the bucket is missing");
        shards_break(s, home, head->bucket, err);
    }
    map_unref(head);
    if (log)
        log->ops->unref(log);
    return code == ERR_NO_BUCKET || code == ERR_NOT_FOUND ? 0 : code;
}

int discover_storage(struct shards *s, struct storage *home, struct err *err)
{
    struct map hashes;
    struct survey v;
    bool offline = false;
    int code = survey_make(&v, home, err);

    map_init(&hashes);
    vec_each (&v.parts, struct str *, part)
        map_put(&hashes, part_hash(*part), part);
    for (size_t i = 0; code == 0 && v.parts.len && i < v.plain.len; i++) {
        struct str name = v.plain.items[i], hash = part_hash(shard_map_name(&v.a, name));
        struct err why = {0};
        if (!map_get(&hashes, hash))
            continue;
        map_remove(&hashes, hash);
        if (shards_state(s, home, name, NULL) == SHARDS_SERVED)
            continue;
        int looked = survey_look(s, home, &v, name, &why);
        offline |= looked == ERR_OFFLINE;
        survey_note(s, home, name, looked, &why);
    }
    for (size_t i = 0; code == 0 && i < v.parts.len; i++) {
        struct err why = {0};
        if (map_get(&hashes, part_hash(v.parts.items[i])) &&
            survey_look_gone(s, home, v.parts.items[i], &why) < 0)
            log_error(shards_settings(s)->log, "shard.left", log_s("storage", home->name),
                      log_s("bucket", v.parts.items[i]), log_z("error", why.text));
    }
    map_release(&hashes);
    survey_release(&v);
    return code == 0 && offline ? err_code(err, ERR_OFFLINE) : code;
}

int discover_shards(struct storage *home, struct arena *a, struct str name,
                    struct found_shard **out, size_t *count, struct err *err)
{
    struct survey v;
    int code = survey_make(&v, home, err);

    *count = 0;
    *out = arena_array(a, v.parts.len + 1, sizeof(**out));
    if (code == 0 && !*out)
        code = err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; code == 0 && i < v.parts.len; i++) {
        struct found_shard f = {0};
        if (!shard_name_parse(v.parts.items[i], name, &f.mark, &f.number))
            continue;
        f.mark = arena_str(a, f.mark);
        f.name = arena_str(a, v.parts.items[i]);
        (*out)[(*count)++] = f;
    }
    survey_release(&v);
    return code == 0 && arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : code;
}
