/* Finds the sharded buckets of a storage by the names of its buckets. */
#include "shard/discover.h"

#include "base/map.h"
#include "base/vec.h"
#include "object/part_names.h"
#include "shard/log.h"
#include "shard/names.h"

int discover_open_log(struct bucket **out, struct storage *home, struct str name, struct err *err)
{
    struct arena a = ARENA_INIT(0);
    int code = home->ops->open_bucket(out, home, STR_EMPTY, shard_map_name(&a, name), err);

    if (code == 0)
        place_hide(*out);
    arena_release(&a);
    return code;
}

/* --- the buckets of a storage --- */

/* The buckets of a storage: those that clients see, and those with names that are reserved for
 * shards and maps (*parts*, object/part_names.h). */
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

/* Returns the hash in the name of a part: the characters after the last "-weir-". */
static struct str part_hash(struct str part)
{
    size_t at = part.len;

    while (at >= 6 && !str_eq(str_n(part.p + at - 6, 6), STR("-weir-")))
        at--;
    return str_n(part.p + at, size_min(SHARD_HASH_LEN, part.len - at));
}

/* --- one bucket --- */

/* The state of one call of look_at(). The thread has claimed the bucket's name
 * (shards_recover()). */
struct look {
    struct shards *s;
    struct storage *home;
    struct str name;
    const struct survey *survey;
    struct err before; /* the error that the bucket had before this call */
    struct arena a;
    bool exists; /* the bucket itself exists; `owner` and `id` are those of the bucket */
    struct str owner;
    uint64_t id;
    struct bucket *log; /* NULL: there is no map bucket */
    struct shard_map *head;
    bool ignored; /* the map bucket does not belong to this bucket; the error says why */
    bool settled; /* the state of the bucket in the table was set */
};

/* Logs for an administrator what is wrong with a bucket, unless the same was logged before. */
static void look_log(const struct look *k, const char *event, const char *text)
{
    if (strcmp(k->before.text, text) != 0)
        log_error(shards_settings(k->s)->log, event, log_s("storage", k->home->name),
                  log_s("bucket", k->name), log_z("error", text));
}

static int look_ignore(struct look *k, struct err *err, const char *why)
{
    k->ignored = true;
    return err_set(err, ERR_EXISTS,
                   "the bucket " STR_FMT " is not the map bucket of " STR_FMT " and is ignored: %s",
                   STR_ARG(k->log->name), STR_ARG(k->name), why);
}

static int look_open(struct look *k, struct err *err)
{
    struct bucket_info info = {0};
    struct bucket *b = NULL;
    int code = k->home->ops->open_bucket(&b, k->home, STR_EMPTY, k->name, err);

    if (code == 0)
        code = b->ops->info(b, &k->a, &info, err);
    if (code == 0)
        code = place_id(b, &k->id, err);
    if (b)
        b->ops->unref(b);
    k->exists = code == 0;
    k->owner = info.owner;
    if (code == ERR_NO_BUCKET)
        code = 0;
    return code == 0 ? discover_open_log(&k->log, k->home, k->name, err) : code;
}

/* Checks that the map bucket belongs to the bucket's owner, before anything in it is read. The
 * check is needed because every user could make a bucket with that name before weir could shard. If
 * the bucket itself no longer exists, the owner of the map bucket counts as its owner. */
static int look_check_log(struct look *k, struct err *err)
{
    struct bucket_info info = {0};
    int code = k->log->ops->info(k->log, &k->a, &info, err);

    if (code == 0 && k->exists && !str_eq(info.owner, k->owner))
        return look_ignore(k, err, "it has another owner");
    if (code == 0)
        k->owner = info.owner;
    return code;
}

/* Checks one shard of the map. If only some shards are missing, the map is still used, and the keys
 * of the other shards are served. */
static int look_check_place(struct look *k, const struct shard_place *p, struct err *err)
{
    struct str mark;
    uint32_t number;
    uint64_t id = 0;

    if (!str_eq(p->storage, k->home->name))
        return look_ignore(k, err, "its map names a bucket on another storage");
    if (!shard_name_parse(p->bucket, k->name, &mark, &number) || !str_eq(mark, k->head->mark))
        return look_ignore(k, err, "its map names a bucket without the name of a shard");
    int code = sharded_id_now(k->home, p->bucket, &id, err);
    if (code == 0 && id != k->id)
        return look_ignore(k, err, "its map names a bucket that is not a shard of this bucket");
    return code == ERR_NO_BUCKET ? 0 : code;
}

/* Another installation may still serve the bucket, and would not know of the maps of this one. Only
 * an administrator knows whether it does. */
static int look_refuse_house(const struct look *k, struct err *err)
{
    return err_set(err, ERR_UNAVAILABLE,
                   "another installation of weir has written it; if none but this one uses the "
                   "storage any more, `weir shard rebuild " STR_FMT " --take-over` takes it over",
                   STR_ARG(k->name));
}

static int look_check_map(struct look *k, struct err *err)
{
    const struct shard_map *m = k->head;
    int code = 0;

    if (!str_eq(m->home, k->home->name) || !str_eq(m->bucket, k->name))
        return look_ignore(k, err, "its map is that of another bucket");
    if (!str_eq(m->owner, k->owner))
        return look_ignore(k, err, "its map is that of another owner");
    if (!k->exists)
        k->id = m->id;
    if (m->id != k->id)
        return look_ignore(k, err, "its map is that of an earlier bucket of the same name");
    if (k->s && !str_eq(m->house, shards_settings(k->s)->house))
        return look_refuse_house(k, err);
    for (size_t i = 1; i < m->place_count && code == 0; i++)
        code = look_check_place(k, &m->places[i], err);
    return code;
}

/* Whether a bucket exists that is certainly a shard of this bucket. */
static bool look_has_shards(const struct look *k)
{
    struct str mark;
    uint32_t number;
    uint64_t id = 0;
    struct err err;

    vec_each (&k->survey->parts, struct str *, part)
        if (shard_name_parse(*part, k->name, &mark, &number) &&
            sharded_id_now(k->home, *part, &id, &err) == 0 && id == k->id)
            return true;
    return false;
}

static enum shard_state look_state(struct sharded *x)
{
    struct shard_map *m = table_map(x->table);
    enum shard_state state = m->state;

    map_unref(m);
    return state;
}

/* Serves what can be served of a bucket that could not be recovered. */
static void look_serve_partly(struct look *k, struct sharded *x, const struct err *failed)
{
    struct err why = {0};

    bool serves = k->exists && look_state(x) != SHARD_PLAIN;

    if (!serves)
        err_set(&why, ERR_UNAVAILABLE,
                "the bucket is not sharded any more, but shards or maps are left: %s; `weir shard "
                "rebuild " STR_FMT "` and the next start try again to remove them",
                failed->text, STR_ARG(k->name));
    else
        err_set(&why, ERR_UNAVAILABLE,
                "a window or a removal that a stop of weir has interrupted is not repaired: %s; "
                "keys outside of it are served; `weir shard rebuild " STR_FMT "` tries again",
                failed->text, STR_ARG(k->name));
    if (serves)
        shards_serve(k->s, x, &why);
    else
        shards_forget(k->s, k->home, k->name, &why);
    k->settled = true;
    look_log(k, "shard.not_repaired", why.text);
}

/* The map is active, but the bucket itself does not exist: something other than weir has removed
 * it. Its documents and the keys that it had are lost, so only an administrator may decide what
 * becomes of the rest. */
static int look_miss(const struct look *k, struct err *err)
{
    return err_set(err, ERR_UNAVAILABLE,
                   "the bucket itself is missing, and its map names %zu shards; `weir shard "
                   "rebuild " STR_FMT " --remove` removes them and the map, and frees the name",
                   k->head->place_count - 1, STR_ARG(k->name));
}

/* Recovers the bucket and serves it. If the bucket was plain until now, it is first sealed and
 * fenced, as `weir shard enable` does. */
static int look_recover(struct look *k, struct err *err)
{
    const struct shards_options *o = shards_settings(k->s);
    bool serves = true;

    if (!k->exists && k->head->state == SHARD_ACTIVE)
        return look_miss(k, err);
    struct sharded *x = sharded_new(o->routes, k->home, k->log->ops->ref(k->log), map_ref(k->head));
    if (k->head->state != SHARD_PLAIN &&
        shards_state(k->s, k->home, k->name, NULL) == SHARDS_CLAIMED) {
        shards_seal(k->s, k->home, k->name);
        x->place->fence(k->home, k->name);
    }
    int code = o->recover ? o->recover(o->ctx, x, &serves, err) : 0;
    if (code < 0 && code != ERR_OFFLINE) {
        look_serve_partly(k, x, err);
    } else if (code == 0 && !serves) {
        shards_forget(k->s, k->home, k->name, NULL);
        k->settled = true;
    } else if (code == 0) {
        shards_serve(k->s, x, NULL);
        k->settled = true;
    }
    sharded_unref(x);
    return code;
}

static int look_read(struct look *k, struct err *err)
{
    int code = look_open(k, err);

    if (code == 0)
        code = look_check_log(k, err);
    if (code == 0)
        code = log_head(k->log, &k->head, err);
    if (code == 0)
        code = look_check_map(k, err);
    return code;
}

/* Sets the state of a bucket that cannot be served by the maps in its log. */
static int look_settle(struct look *k, int code, struct err *err)
{
    bool no_map = k->ignored || code == ERR_NOT_FOUND || code == ERR_NO_BUCKET;
    struct err why = {0};

    if (no_map && !(k->exists && look_has_shards(k))) {
        shards_forget(k->s, k->home, k->name, k->ignored ? err : NULL);
        if (k->ignored)
            look_log(k, "shard.ignored", err->text);
        return k->ignored ? code : ERR_NO_BUCKET;
    }
    if (no_map)
        err_set(&why, ERR_UNAVAILABLE,
                "the bucket has shards, but no map%s%s; `weir shard rebuild " STR_FMT
                " --from-contents` makes one",
                k->ignored ? ": " : "", k->ignored ? err->text : "", STR_ARG(k->name));
    else if (code == ERR_OFFLINE)
        err_set(&why, ERR_OFFLINE, "%s", err->text);
    else
        err_set(&why, ERR_UNAVAILABLE, "the map of the sharded bucket " STR_FMT ": %s%s",
                STR_ARG(k->name), err->text,
                code == ERR_CORRUPT && k->exists
                    ? "; `weir shard rebuild --from-contents` makes a new one"
                    : "");
    shards_break(k->s, k->home, k->name, &why);
    look_log(k, "shard.broken", why.text);
    return err_set(err, why.code, "%s", why.text);
}

/* Reads the log of a bucket whose name this thread has claimed, and sets the bucket's state.
 * ERR_NO_BUCKET: it is not sharded. */
static int look_at(struct look *k, struct err *err)
{
    k->a = ARENA_INIT(0);
    int code = look_read(k, err);

    if (code == 0)
        code = look_recover(k, err);
    if (!k->settled)
        code = look_settle(k, code, err);
    map_unref(k->head);
    if (k->log)
        k->log->ops->unref(k->log);
    arena_release(&k->a);
    return code;
}

int discover_claimed(struct shards *s, struct storage *home, struct str name,
                     const struct err *before, struct err *err)
{
    struct look k = {.s = s, .home = home, .name = name, .before = *before};
    struct survey v;
    int code = survey_make(&v, home, err);

    k.survey = &v;
    if (code == 0)
        code = look_at(&k, err);
    else
        shards_break(s, home, name, err);
    survey_release(&v);
    return code;
}

int discover_bucket(struct shards *s, struct storage *home, struct str name, struct err *err)
{
    struct err before;

    if (!shards_recover(s, home, name, &before))
        return shards_state(s, home, name, NULL) == SHARDS_SERVED
                   ? 0
                   : err_set(err, ERR_BUSY, "the bucket " STR_FMT " is being changed",
                             STR_ARG(name));
    return discover_claimed(s, home, name, &before, err);
}

int discover_read(struct discovered *out, struct storage *home, struct str name, struct err *err)
{
    struct look k = {.home = home, .name = name, .a = ARENA_INIT(0)};
    int code = look_read(&k, err);

    if (k.ignored)
        code = ERR_NOT_FOUND;
    *out = (struct discovered){.log = k.log, .head = k.head, .exists = k.exists};
    arena_release(&k.a);
    return code;
}

void discovered_release(struct discovered *d)
{
    map_unref(d->head);
    if (d->log)
        d->log->ops->unref(d->log);
}

int discover_check(struct storage *home, struct str name, struct err *err)
{
    struct discovered d;
    int code = discover_read(&d, home, name, err);

    discovered_release(&d);
    return code;
}

/* --- all buckets of a storage --- */

/* Handles a bucket that has a map bucket or shards. Does nothing if the bucket is served, or if
 * another thread has claimed its name. */
static int survey_look(struct shards *s, struct storage *home, const struct survey *v,
                       struct str name)
{
    struct look k = {.s = s, .home = home, .name = name, .survey = v};
    struct err err = {0};

    return shards_recover(s, home, name, &k.before) ? look_at(&k, &err) : 0;
}

/* Handles map buckets whose bucket does not exist (any more). The map in the log has the name of
 * that bucket. */
static int survey_look_gone(struct shards *s, struct storage *home, const struct survey *v,
                            struct str part, struct err *err)
{
    struct arena a = ARENA_INIT(0);
    struct shard_map *head = NULL;
    struct bucket *log = NULL;
    int code = str_ends(part, STR("-map"))
                   ? home->ops->open_bucket(&log, home, STR_EMPTY, part, err)
                   : ERR_NO_BUCKET;

    if (code == 0)
        code = log_head(log, &head, err);
    if (code == 0 && !str_eq(shard_map_name(&a, head->bucket), part))
        code =
            err_set(err, ERR_INVALID, "it is ignored: its map is that of another bucket, " STR_FMT,
                    STR_ARG(head->bucket));
    if (code == 0)
        (void)survey_look(s, home, v, head->bucket);
    map_unref(head);
    if (log)
        log->ops->unref(log);
    arena_release(&a);
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
        if (!map_get(&hashes, hash))
            continue;
        map_remove(&hashes, hash);
        offline |= survey_look(s, home, &v, name) == ERR_OFFLINE;
    }
    for (size_t i = 0; code == 0 && i < v.parts.len; i++) {
        struct err why = {0};
        if (map_get(&hashes, part_hash(v.parts.items[i])) &&
            survey_look_gone(s, home, &v, v.parts.items[i], &why) < 0)
            log_error(shards_settings(s)->log, "shard.left", log_s("storage", home->name),
                      log_s("bucket", v.parts.items[i]), log_z("error", why.text));
    }
    map_release(&hashes);
    survey_release(&v);
    return code == 0 && offline ? err_code(err, ERR_OFFLINE) : code;
}

/* Finds the buckets that have the name of a shard of this bucket and belong to this bucket by their
 * id. */
int discover_shards(struct storage *home, struct arena *a, struct str name,
                    struct found_shard **out, size_t *count, struct err *err)
{
    struct survey v;
    uint64_t of = 0, id = 0;
    int code = survey_make(&v, home, err);

    *count = 0;
    *out = arena_array(a, v.parts.len + 1, sizeof(**out));
    if (code == 0 && !*out)
        code = err_code(err, ERR_NO_MEMORY);
    if (code == 0)
        code = sharded_id_now(home, name, &of, err);
    for (size_t i = 0; code == 0 && i < v.parts.len; i++) {
        struct found_shard f = {0};
        if (!shard_name_parse(v.parts.items[i], name, &f.mark, &f.number))
            continue;
        code = sharded_id_now(home, v.parts.items[i], &id, err);
        if (code == ERR_NO_BUCKET) /* the shard was removed meanwhile */
            code = 0;
        else if (code == 0 && id == of) {
            f.mark = arena_str(a, f.mark);
            f.name = arena_str(a, v.parts.items[i]);
            (*out)[(*count)++] = f;
        }
    }
    survey_release(&v);
    return code == 0 && arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : code;
}
