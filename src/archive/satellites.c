/* The satellites: their users, their buckets, and the table that this process uses. */
#include "archive/satellites_int.h"

#include "object/overlay.h"
#include "s3/gateway/bucket_name.h"
#include "store/reply.h"
#include "store/store.h"

#include <stdlib.h>

/* The newest epoch (number of a table of slots) that any process uses. The key is a sorted set with
 * one member, because ZADD GT never lowers a score. */
#define EPOCH_KEY    STR("w:archive:epoch")
#define EPOCH_MEMBER STR("map")

enum {
    EPOCH_ARENA_MAX = 64 * 1024,
    PROBE_MS = 5 * 1000, /* pause between two requests to a satellite that is down */
};

/* --- opening --- */

/* Reads the table again if the last reading failed, for example because the store was away when
 * the process started. A process without runners does not read it by itself. */
static void satellites_read_again(struct satellites *s)
{
    struct err err;

    mutex_lock(&s->lock);
    bool failed = s->fault.code < 0;
    mutex_unlock(&s->lock);
    if (failed && satellites_reload(s, &err) < 0)
        log_debug(s->o.log, "archive.table", log_z("error", err.text));
}

/* Asks the satellites that are down for their table; the first time, asks all satellites. Runners
 * claim no accounts of a satellite that is down, so only this function notices when it is up
 * again. */
static struct loop_sleep satellites_probe(void *ctx)
{
    struct satellites *s = ctx;
    struct slots *tables = xcalloc(2, sizeof(*tables)), *t = &tables[0];

    satellites_read_again(s);
    satellites_table(s, t);
    for (size_t i = 0; i < t->count && !loop_is_stopping(&s->prober); i++) {
        struct str name = str_z(t->names[i]);
        if (!s->probed || !satellites_is_up(s, name))
            satellites_note(s, name, satellite_map_newest(s, name, &tables[1], NULL));
    }
    s->probed |= t->count > 0;
    free(tables);
    return loop_sleep_ms(PROBE_MS);
}

int satellites_open(struct satellites **out, const struct satellites_options *o, struct err *err)
{
    struct satellites *s = xcalloc(1, sizeof(*s));
    struct buf first = {0};

    s->o = *o;
    if (o->first)
        buf_append_z(&first, o->first);
    s->first = buf_take(&first);
    s->o.first = s->first;
    mutex_init(&s->lock, "archive.table");
    cond_init(&s->settled);
    struct err late = {0};
    if (satellites_reload(s, &late) < 0)
        log_warn(o->log, "archive.table", log_z("error", late.text));
    int code = locks_open(&s->locks, &(struct locks_options){.store = o->app, .log = o->log}, err);
    if (code == 0)
        code = loop_start(
            &s->prober,
            &(struct loop_options){.name = "archive-probe", .step = satellites_probe, .ctx = s},
            err);
    if (code < 0)
        satellites_close(s);
    else
        *out = s;
    return code;
}

void satellites_close(struct satellites *s)
{
    if (!s)
        return;
    loop_stop(&s->prober);
    if (s->locks)
        locks_close(s->locks);
    cond_release(&s->settled);
    mutex_release(&s->lock);
    free(s->first);
    free(s);
}

/* --- the table --- */

void satellites_table(struct satellites *s, struct slots *out)
{
    mutex_lock(&s->lock);
    *out = s->table;
    mutex_unlock(&s->lock);
}

/* Checks that each satellite of the table has its user. */
static int satellites_check_users(struct satellites *s, struct err *err)
{
    struct arena a = ARENA_INIT(EPOCH_ARENA_MAX);
    struct slots *t = xzalloc(sizeof(*t));
    struct str id;
    int code = 0;

    satellites_table(s, t);
    for (size_t i = 0; i < t->count && code == 0; i++)
        code = satellites_user(s, &a, str_z(t->names[i]), &id, err);
    free(t);
    arena_release(&a);
    return code;
}

/* Whether the users, among whom the satellites are looked for, were loaded. */
static bool satellites_know_users(struct satellites *s)
{
    struct arena a = ARENA_INIT(EPOCH_ARENA_MAX);
    struct user user;
    struct err err;
    bool known = users_by_name(s->o.users, &a, STR("satellite"), &user, &err) != ERR_UNAVAILABLE;

    arena_release(&a);
    return known;
}

int satellites_ready(struct satellites *s, struct err *err)
{
    mutex_lock(&s->lock);
    struct err fault = s->fault;
    bool has_table = s->table.epoch > 0;
    mutex_unlock(&s->lock);
    /* A process that has no users yet, and has seen no table, cannot say whether there is an
     * archive. It serves what else it can. */
    if (fault.code == ERR_UNAVAILABLE && !has_table && !satellites_know_users(s))
        return 0;
    return fault.code < 0 ? err_set(err, fault.code, "%s", fault.text)
                          : satellites_check_users(s, err);
}

bool satellites_is_up(struct satellites *s, struct str name)
{
    mutex_lock(&s->lock);
    int i = slots_find(&s->table, name);
    bool is = i >= 0 && s->up[i];
    mutex_unlock(&s->lock);
    return is;
}

const struct move_stats *satellites_moves(const struct satellites *s)
{
    return &s->moved;
}

/* Whether an error code means that the satellite did not answer. */
static bool satellite_is_down(int code)
{
    return code == ERR_UNAVAILABLE || code == ERR_OFFLINE || code == ERR_TIMEOUT ||
           code == ERR_CLOSED || code == ERR_PEER || code == ERR_DENIED;
}

void satellites_note(struct satellites *s, struct str name, int code)
{
    mutex_lock(&s->lock);
    int i = slots_find(&s->table, name);
    if (i >= 0)
        s->up[i] = !satellite_is_down(code);
    mutex_unlock(&s->lock);
}

int satellites_reload(struct satellites *s, struct err *err)
{
    struct err fault = {0};
    struct slots table;
    int code = satellites_agree(s, false, &table, &fault);

    if (code == 0 && table.epoch)
        code = satellites_adopt(s, &table, &fault);
    mutex_lock(&s->lock);
    s->fault = fault;
    s->fault.code = code;
    mutex_unlock(&s->lock);
    return code < 0 ? err_set(err, code, "%s", fault.text) : 0;
}

/* Asks the store for the newest epoch in use; 0: the store does not have it. */
static int epoch_ask(struct satellites *s, uint32_t *out, struct err *err)
{
    struct arena a = ARENA_INIT(EPOCH_ARENA_MAX);
    struct reply *reply;
    uint64_t epoch = 0;
    int code = store_call(s->o.app, &a, &reply, err, STR("ZSCORE"), EPOCH_KEY, EPOCH_MEMBER);

    if (code == 0 && reply->type != REPLY_NIL &&
        (str_u64(reply->str, &epoch) < 0 || epoch > UINT32_MAX))
        code = err_set(err, ERR_TYPE, "the key w:archive:epoch of the store is not a number");
    *out = (uint32_t)epoch;
    arena_release(&a);
    return code;
}

static int epoch_tell(struct satellites *s, uint32_t epoch, struct err *err)
{
    struct arena a = ARENA_INIT(EPOCH_ARENA_MAX);
    struct reply *reply;
    int code = store_call(s->o.app, &a, &reply, err, STR("ZADD"), EPOCH_KEY, STR("GT"),
                          arena_fmt(&a, "%u", epoch), EPOCH_MEMBER);

    if (code == 0)
        code = reply_expect(reply, REPLY_INTEGER, err);
    arena_release(&a);
    return code;
}

int satellites_adopt(struct satellites *s, const struct slots *t, struct err *err)
{
    int code = epoch_tell(s, t->epoch, err);

    if (code < 0)
        return err_wrap(err, code, "the store");
    mutex_lock(&s->lock);
    bool newer = t->epoch > s->table.epoch;
    if (newer) {
        bool up[SATELLITES_MAX] = {0};
        for (size_t i = 0; i < t->count; i++) {
            int was = slots_find(&s->table, str_z(t->names[i]));
            up[i] = was < 0 || s->up[was];
        }
        memcpy(s->up, up, t->count * sizeof(up[0]));
        s->table = *t;
    }
    mutex_unlock(&s->lock);
    if (newer && s->o.changed)
        s->o.changed(s->o.ctx, t);
    return 0;
}

/* Checks that the table that was read is at least as new as `used`, the newest epoch that a process
 * uses. */
static int table_check_epoch(const struct slots *t, uint32_t used, struct err *err)
{
    return t->epoch >= used
               ? 0
               : err_set(err, ERR_UNAVAILABLE,
                         "other processes use the table of slots of epoch %u, and no satellite "
                         "that answers here has a newer one than that of epoch %u",
                         used, t->epoch);
}

int satellites_current(struct satellites *s, struct slots *out, bool make, struct err *err)
{
    uint32_t used = 0;
    int code = epoch_ask(s, &used, err);

    if (code < 0)
        return err_wrap(err, code, "the store");
    mutex_lock(&s->lock);
    *out = s->table;
    bool fresh = out->epoch && out->epoch == used && s->fault.code == 0;
    mutex_unlock(&s->lock);
    if (fresh)
        return 0;
    code = satellites_reload(s, err);
    satellites_table(s, out);
    if (code == 0 && out->epoch == 0 && used == 0 && make) {
        code = satellites_begin(s, err);
        satellites_table(s, out);
    }
    return code < 0 ? code : table_check_epoch(out, used, err);
}

/* --- users and buckets --- */

/* A missing user is not ERR_NOT_FOUND: that would mean that the satellite does not have the object
 * that the caller looks for. */
int satellites_user(struct satellites *s, struct arena *a, struct str name, struct str *id,
                    struct err *err)
{
    struct user user = {0};
    int code = users_by_name(s->o.users, a, name, &user, err);

    *id = user.id;
    if (code == ERR_NOT_FOUND)
        code = err_set(err, ERR_UNAVAILABLE,
                       "the satellite " STR_FMT " has no user; `weir archive satellite add " STR_FMT
                       "` makes it again",
                       STR_ARG(name), STR_ARG(name));
    if (code < 0)
        satellites_note(s, name, code);
    return code;
}

static int user_needed(const struct user *user, struct err *err)
{
    return err_set(err, ERR_CONFLICT,
                   "the user " STR_FMT " owns the archive's buckets on the satellite " STR_FMT
                   "; it can be removed when the storage is no satellite any more (weir archive "
                   "satellite drain " STR_FMT ")",
                   STR_ARG(user->name), STR_ARG(user->name), STR_ARG(user->name));
}

int satellites_user_needed(struct satellites *s, const struct user *user, struct err *err)
{
    struct slots t;

    satellites_table(s, &t);
    if (slots_find(&t, user->name) >= 0)
        return user_needed(user, err);
    if (!routes_storage(s->o.env.routes, user->name))
        return 0;
    /* The name is that of a storage, so a table that this process does not know may have it. */
    int code = satellites_current(s, &t, false, err);
    if (code < 0)
        return err_wrap(err, code, "whether the user " STR_FMT " is that of a satellite",
                        STR_ARG(user->name));
    return slots_find(&t, user->name) >= 0 ? user_needed(user, err) : 0;
}

int satellites_bucket(struct satellites *s, struct arena *a, struct str host, struct str *out,
                      struct err *err)
{
    struct err why = {0};
    int code = s->o.bucket ? s->o.bucket(s->o.ctx, a, host, out, err) : 0;

    if (code < 0)
        return code;
    if (!s->o.bucket)
        *out = archive_host_bucket(host, a);
    return bucket_name_check(*out, &why) < 0
               ? err_set(err, ERR_INVALID,
                         "'" STR_FMT "' cannot be the bucket of the forge " STR_FMT
                         ": choose another one with `weir archive forge add " STR_FMT
                         " --bucket NAME`",
                         STR_ARG(str_head(*out, S3_BUCKET_MAX)), STR_ARG(host), STR_ARG(host))
               : 0;
}

/* The host of a bucket: that of a forge, or the bucket's own name. */
static struct satellite_host host_of_bucket(const struct satellite_host *known, size_t count,
                                            struct str bucket)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(known[i].bucket, bucket))
            return (struct satellite_host){known[i].host, bucket, true};
    return (struct satellite_host){bucket, bucket, false};
}

int satellites_forge_hosts(struct satellites *s, struct arena *a, struct satellite_host **out,
                           size_t *count, struct err *err)
{
    struct str one = SATELLITES_MAP_HOST, *hosts = &one;
    int code = 0;

    *count = 1;
    if (s->o.hosts)
        code = s->o.hosts(s->o.ctx, a, &hosts, count, err);
    if (code < 0)
        return code;
    *out = arena_alloc(a, (*count + 1) * sizeof(**out));
    if (!*out)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < *count && code == 0; i++) {
        (*out)[i].host = hosts[i];
        code = satellites_bucket(s, a, hosts[i], &(*out)[i].bucket, err);
    }
    return code;
}

int satellites_hosts(struct satellites *s, struct arena *a, struct str name,
                     struct satellite_host **out, size_t *count, struct err *err)
{
    struct satellite_host *known = NULL;
    struct bucket_info *buckets = NULL;
    struct storage *at = NULL;
    struct str user;
    size_t n = 0, known_count = 0;
    int code = satellites_user(s, a, name, &user, err);

    if (code == 0)
        code = satellites_forge_hosts(s, a, &known, &known_count, err);
    if (code == 0)
        code = route_storage(s->o.env.routes, user, STR_EMPTY, &at, err);
    if (code == 0)
        code = storage_list_buckets(at, a, user, STR_EMPTY, OBJECT_LIST_MAX, &buckets, &n, err);
    if (code < 0)
        return code;
    *out = arena_alloc(a, (n + 1) * sizeof(**out));
    if (!*out)
        return err_code(err, ERR_NO_MEMORY);
    *count = n;
    for (size_t i = 0; i < n; i++)
        (*out)[i] = host_of_bucket(known, known_count, buckets[i].name);
    return 0;
}

int satellites_make_bucket(struct satellites *s, struct str name, struct str bucket, bool *made,
                           struct err *err)
{
    struct arena a = ARENA_INIT(EPOCH_ARENA_MAX);
    struct satellite_site site;
    struct storage *at = NULL;
    struct object_place p;
    int code = satellite_site_find(&site, s, &a, name, bucket, err);

    if (code == 0)
        code = route_storage(s->o.env.routes, site.user, bucket, &at, err);
    if (code == 0)
        code = storage_create_bucket(at, &(struct bucket_info){.name = bucket, .owner = site.user},
                                     err);
    if (code == 0 && made)
        *made = true;
    if (code == ERR_EXISTS && satellite_site_open(&p, s, &a, &site, bucket, PLACE_READ, err) == 0)
        code = object_place_end(&p, 0, err);
    else if (code == ERR_EXISTS && at)
        err_set(err, code,
                "the bucket " STR_FMT " on storage " STR_FMT " belongs to somebody else than the "
                "user " STR_FMT "; choose another one with `weir archive forge add HOST --bucket "
                "NAME`",
                STR_ARG(bucket), STR_ARG(at->name), STR_ARG(name));
    arena_release(&a);
    return code;
}

/* --- sites --- */

int satellite_site_find(struct satellite_site *out, struct satellites *s, struct arena *a,
                        struct str name, struct str bucket, struct err *err)
{
    *out = (struct satellite_site){.name = arena_str(a, name), .bucket = arena_str(a, bucket)};
    return satellites_user(s, a, name, &out->user, err);
}

/* Checks that the bucket belongs to the site's user. Routing may have found a bucket of the same
 * name on another satellite (docs/forward.md, rules 4 and 5). */
static int site_check(const struct object_place *p, struct satellites *s,
                      const struct satellite_site *site, struct err *err)
{
    struct storage *leads = NULL;
    struct bucket_info info;
    int code;
    bool own;

    if (p->target.sides.route)
        return 0; /* the bucket is being switched, so the rules for its owner do not apply now */
    if (!bucket_can(p->bucket, STORAGE_CREDENTIALS)) { /* weir stores the bucket's owner */
        code = p->bucket->ops->info(p->bucket, p->arena, &info, err);
        own = code == 0 && str_eq(info.owner, site->user);
    } else {
        code = route_storage(s->o.env.routes, site->user, site->bucket, &leads, err);
        own = code == 0 && leads == p->target.storage;
    }
    return code == 0 && !own ? err_code(err, ERR_NO_BUCKET) : code;
}

int satellite_site_open(struct object_place *p, struct satellites *s, struct arena *a,
                        const struct satellite_site *site, struct str key, enum place_use use,
                        struct err *err)
{
    struct place_name name = {site->user, site->bucket, key};
    struct err ignored = {0};
    int code = object_place_open(p, &s->o.env, a, name, use, err);

    if (code == 0) {
        code = site_check(p, s, site, err);
        /* object_place_open() has announced a change. Nothing was changed, so it is ended as
         * refused. */
        if (code < 0 && object_place_end(p, ERR_PRECONDITION, &ignored) < 0)
            (void)ignored;
    }
    satellites_note(s, site->name, code);
    return code;
}

int satellite_site_open_put(struct object_place *p, struct satellites *s, struct arena *a,
                            const struct satellite_site *site, struct str key, struct err *err)
{
    int code = satellite_site_open(p, s, a, site, key, PLACE_PUT, err);

    if (code != ERR_NO_BUCKET)
        return code;
    code = satellites_make_bucket(s, site->name, site->bucket, NULL, err);
    return code < 0 ? code : satellite_site_open(p, s, a, site, key, PLACE_PUT, err);
}

/* --- listing --- */

int satellites_list_uploads(struct satellites *s, struct arena *a, struct str name,
                            struct str bucket, const struct list_options *o,
                            struct upload_list *out, struct err *err)
{
    struct satellite_site site;
    struct object_place p;
    int code = satellite_site_find(&site, s, a, name, bucket, err);

    *out = (struct upload_list){0};
    if (code == 0)
        code = satellite_site_open(&p, s, a, &site, bucket, PLACE_READ, err);
    if (code == 0) {
        code = p.bucket->ops->list_uploads(p.bucket, a, o, out, err);
        satellites_note(s, site.name, code);
        code = object_place_end(&p, code, err);
    }
    return code == ERR_NO_BUCKET ? 0 : code;
}

/* Whether the bucket has any object on the satellite. */
static int satellite_uses_bucket(struct satellites *s, struct arena *a, struct str name,
                                 struct str bucket, bool *used, struct err *err)
{
    struct list_options o = {.limit = 1};
    struct list_result page = {0};
    struct satellite_site site;
    struct object_place p;
    int code = satellite_site_find(&site, s, a, name, bucket, err);

    if (code == 0)
        code = satellite_site_open(&p, s, a, &site, bucket, PLACE_READ, err);
    if (code == 0) {
        code = p.bucket->ops->list(p.bucket, a, &o, &page, err);
        satellites_note(s, site.name, code);
        code = object_place_end(&p, code, err);
    }
    *used |= page.count > 0;
    return code == ERR_NO_BUCKET ? 0 : code;
}

int satellites_bucket_used(struct satellites *s, struct arena *a, struct str bucket, bool *used,
                           struct err *err)
{
    struct slots *t = arena_new(a, struct slots);
    int code = t ? satellites_current(s, t, false, err) : err_code(err, ERR_NO_MEMORY);

    *used = false;
    for (size_t i = 0; code == 0 && i < t->count && !*used; i++)
        code = satellite_uses_bucket(s, a, str_z(t->names[i]), bucket, used, err);
    return code;
}

int satellites_list_slot(struct satellites *s, struct arena *a, const struct slot_ask *ask,
                         struct list_result *out, struct err *err)
{
    struct list_options o = {.prefix = arena_fmt(a, "%02x/", ask->slot),
                             .after = ask->after,
                             .limit = ask->limit ? ask->limit : OBJECT_LIST_MAX};
    struct satellite_site site;
    struct object_place p;
    struct str bucket = ask->bucket;
    int code = bucket.len ? 0 : satellites_bucket(s, a, ask->host, &bucket, err);

    *out = (struct list_result){0};
    if (code == 0)
        code = satellite_site_find(&site, s, a, ask->satellite, bucket, err);
    if (code == 0)
        code = satellite_site_open(&p, s, a, &site, o.prefix, PLACE_READ, err);
    if (code == 0) {
        code = p.bucket->ops->list(p.bucket, a, &o, out, err);
        satellites_note(s, site.name, code);
        code = object_place_end(&p, code, err);
    }
    return code == ERR_NO_BUCKET ? 0 : code;
}
