/* Changes of the table of slots: satellites are added and removed, and moves of slots end. */
#include "archive/satellites_int.h"

#include "object/remote/remote.h"
#include "route/remotes.h"

#include <stdlib.h>

enum { CHANGE_ARENA_MAX = 16 * 1024 * 1024 };

/* --- users --- */

/* The id of a user that weir makes for a satellite. It is computed from the name. So a user who is
 * removed and made again owns the same buckets. */
static struct str satellite_user_id(struct arena *a, struct str name)
{
    return arena_fmt(a, "satellite-" STR_FMT, STR_ARG(name));
}

static int satellite_find_user(struct satellites *s, struct arena *a, struct str name,
                               struct satellite_made *out, struct err *err)
{
    struct user user = {0}, wanted = {.name = name, .id = satellite_user_id(a, name)};
    int code = users_by_name(s->o.users, a, name, &user, err);

    *out = (struct satellite_made){.name = arena_str(a, name)};
    if (code == ERR_NOT_FOUND) {
        code = users_add(s->o.users, a, &wanted, &user, err);
        if (code == 0 && user.key_count)
            out->key = user.keys[0];
    }
    out->user = user.id;
    return code == 0 && user.admin
               ? err_set(err, ERR_INVALID,
                         "the user " STR_FMT " is an administrator, and cannot be the user of a "
                         "satellite",
                         STR_ARG(name))
               : code;
}

/* Gives the user a policy that leads to the storage, unless the user's policy already does. */
static int satellite_route(struct satellites *s, struct arena *a, const struct satellite_made *m,
                           struct err *err)
{
    struct route_policy *all = NULL;
    size_t count = 0;
    int code = route_list(s->o.env.routes, a, &all, &count, err);

    for (size_t i = 0; i < count && code == 0; i++) {
        if (all[i].blocked || all[i].bucket.len || !str_eq(all[i].user, m->user))
            continue;
        return str_eq(all[i].storage, m->name)
                   ? 0
                   : err_set(err, ERR_CONFLICT,
                             "the user " STR_FMT " has a policy that leads to storage " STR_FMT
                             "; remove it first",
                             STR_ARG(m->name), STR_ARG(all[i].storage));
    }
    return code < 0 ? code : route_set(s->o.env.routes, m->user, STR_EMPTY, m->name, err);
}

/* Gives the user keys on a remote storage. */
static int satellite_credential(struct satellites *s, struct storage *at,
                                const struct satellite_wanted *w, struct str user, struct err *err)
{
    struct remote_credential c = {.user = user, .access = w->access, .secret = w->secret};
    bool remote = storage_can(at, STORAGE_CREDENTIALS);

    if (w->access.len && (!remote || !s->o.remotes))
        return err_set(err, ERR_INVALID,
                       "the storage " STR_FMT " is not remote, and its users need no keys there",
                       STR_ARG(w->name));
    if (w->access.len)
        return remotes_set_credential(s->o.remotes, w->name, &c, err);
    return remote && !remote_has_credential(at, user)
               ? err_set(err, ERR_INVALID,
                         "the user " STR_FMT " has no keys on the storage " STR_FMT
                         "; give them with --access-key and --secret-key",
                         STR_ARG(w->name), STR_ARG(w->name))
               : 0;
}

int satellite_prepare(struct satellites *s, struct arena *a, const struct satellite_wanted *w,
                      struct satellite_made *out, struct err *err)
{
    struct storage *at = routes_storage(s->o.env.routes, w->name);
    struct str bucket;

    if (!satellite_name_ok(w->name))
        return err_set(err, ERR_INVALID,
                       "'" STR_FMT "' cannot be a satellite: a name has 1 to %d small letters, "
                       "digits and '-' between them",
                       STR_ARG(str_head(w->name, SATELLITE_NAME_MAX)), SATELLITE_NAME_MAX);
    if (!at)
        return err_set(err, ERR_NOT_FOUND,
                       "there is no storage " STR_FMT "; add it first with `weir storage add`",
                       STR_ARG(w->name));
    int code = satellite_find_user(s, a, w->name, out, err);
    if (code == 0)
        code = satellite_credential(s, at, w, out->user, err);
    if (code == 0)
        code = satellite_route(s, a, out, err);
    if (code == 0)
        code = satellites_bucket(s, a, SATELLITES_MAP_HOST, &bucket, err);
    if (code == 0)
        code = satellites_make_bucket(s, w->name, bucket, err);
    return code;
}

/* --- the first table --- */

static int begin_with(struct satellites *s, const struct str *names, size_t count, struct err *err)
{
    struct slots none = {0}, first;
    int code = slots_first(&first, names, count, err);

    return code < 0 ? code : satellites_decide(s, &first, &none, err);
}

/* Collects the names of the first satellites, which are those of the configuration or the main
 * storage. */
static size_t begin_names(struct satellites *s, struct str out[SATELLITES_MAX])
{
    struct str rest = str_z(s->first ? s->first : ""), name;
    size_t count = 0;

    while (count < SATELLITES_MAX && str_token(&rest, ",", &name)) {
        name = str_trim(name);
        if (name.len)
            out[count++] = name;
    }
    if (count == 0)
        out[count++] = routes_main_name(s->o.env.routes);
    return count;
}

int satellites_begin(struct satellites *s, struct err *err)
{
    struct arena a = ARENA_INIT(CHANGE_ARENA_MAX);
    struct str names[SATELLITES_MAX];
    struct satellite_made made;
    size_t count = begin_names(s, names);
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++)
        code = satellite_prepare(s, &a, &(struct satellite_wanted){.name = names[i]}, &made, err);
    if (code == 0)
        code = begin_with(s, names, count, err);
    arena_release(&a);
    /* Another process has made the first table, or one of these satellites had a table before. */
    return code == ERR_CONFLICT || code == ERR_EXISTS ? satellites_reload(s, err) : code;
}

/* --- changing --- */

/* Computes the next table from the present one. */
typedef int change_fn(struct satellites *s, struct slots *next, const struct slots *now, void *ctx,
                      struct err *err);

/* Changes the table. fn() computes the change; it is called again if another change was decided
 * first. ERR_NOT_MODIFIED: fn() found nothing to change. */
static int table_change(struct satellites *s, change_fn *fn, void *ctx, struct err *err)
{
    struct slots *tables = xcalloc(2, sizeof(*tables)), *now = &tables[0], *next = &tables[1];
    int code = ERR_CONFLICT;

    for (int i = 0; i < SATELLITES_TRIES && code == ERR_CONFLICT; i++) {
        code = satellites_agree(s, true, now, err);
        if (code == 0 && now->epoch == 0)
            code = err_set(err, ERR_NOT_FOUND, "the archive has no satellites yet");
        if (code == 0)
            code = satellites_adopt(s, now, err);
        if (code == 0)
            code = fn(s, next, now, ctx, err);
        if (code == 0)
            code = satellites_decide(s, next, now, err);
    }
    free(tables);
    return code == ERR_NOT_MODIFIED ? 0 : code;
}

/* --- adding --- */

struct change_add {
    const struct satellite_wanted *wanted;
    size_t count;
};

/* Finds the first key of a bucket that comes after `after`; empty: there is none. */
static int bucket_first_key(struct satellites *s, struct arena *a,
                            const struct satellite_site *site, struct str after, struct str *out,
                            struct err *err)
{
    struct list_options o = {.after = after, .limit = 1};
    struct list_result page = {0};
    struct object_place p;
    int code = satellite_site_open(&p, s, a, site, STR("_"), PLACE_READ, err);

    *out = STR_EMPTY;
    if (code < 0)
        return code == ERR_NO_BUCKET ? 0 : code;
    code = object_place_end(&p, p.bucket->ops->list(p.bucket, a, &o, &page, err), err);
    if (code == 0 && page.count)
        *out = page.entries[0].info.key;
    return code;
}

/* Whether a bucket has no keys except those of tables. */
static int bucket_is_empty(struct satellites *s, struct arena *a, const struct satellite_site *site,
                           bool *out, struct err *err)
{
    struct str key;
    int code = bucket_first_key(s, a, site, STR_EMPTY, &key, err);

    if (code == 0 && str_starts(key, STR("_map/")))
        code = bucket_first_key(s, a, site, STR("_map/\x7f"), &key, err);
    *out = key.len == 0;
    return code;
}

/* Whether no satellite has an object of an account. */
static int archive_is_empty(struct satellites *s, const struct slots *t, bool *out, struct err *err)
{
    struct arena a = ARENA_INIT(CHANGE_ARENA_MAX);
    int code = 0;

    *out = true;
    for (size_t i = 0; i < t->count && code == 0 && *out; i++) {
        struct satellite_host *hosts = NULL;
        struct satellite_site site;
        size_t count = 0;
        code = satellites_hosts(s, &a, str_z(t->names[i]), &hosts, &count, err);
        for (size_t k = 0; k < count && code == 0 && *out; k++) {
            code = satellite_site_find(&site, s, &a, str_z(t->names[i]), hosts[k].bucket, err);
            if (code == 0)
                code = bucket_is_empty(s, &a, &site, out, err);
        }
    }
    arena_release(&a);
    return code;
}

/* Collects the names that the table does not have yet. */
static size_t add_names(const struct change_add *add, const struct slots *now,
                        struct str out[SATELLITES_MAX])
{
    size_t n = 0;

    for (size_t i = 0; i < add->count && n < SATELLITES_MAX; i++)
        if (slots_find(now, add->wanted[i].name) < 0)
            out[n++] = add->wanted[i].name;
    return n;
}

static int add_table(struct satellites *s, struct slots *next, const struct slots *now, void *ctx,
                     struct err *err)
{
    struct str names[SATELLITES_MAX];
    size_t count = add_names(ctx, now, names);
    bool empty = false;

    if (count == 0)
        return ERR_NOT_MODIFIED;
    int code = archive_is_empty(s, now, &empty, err);
    if (code == 0 && !empty && count > 1)
        code = err_set(err, ERR_INVALID,
                       "the archive has objects: add satellites one after another, because the "
                       "slots of each have to move");
    if (code == 0)
        code =
            empty ? slots_split(next, now, names, count, err) : slots_add(next, now, names[0], err);
    for (size_t i = 0; i < count && code == 0; i++)
        code = satellite_map_put(s, names[i], now, NULL, err); /* M3 */
    return code;
}

/* Checks that a new satellite does not have the table of another archive. */
static int newcomer_check(struct satellites *s, struct str name, struct err *err)
{
    struct slots *tables = xcalloc(2, sizeof(*tables)), *now = &tables[0], *own = &tables[1];
    int code = 0;

    satellites_table(s, now);
    if (now->epoch && slots_find(now, name) < 0) {
        code = satellite_map_newest(s, name, own, err);
        if (code == 0 && own->epoch && (slots_find(own, name) >= 0 || own->epoch > now->epoch))
            code = err_set(err, ERR_CONFLICT,
                           "the storage " STR_FMT " has a table of slots already: it belongs to "
                           "another archive, or to another time of this one",
                           STR_ARG(name));
    }
    free(tables);
    return code;
}

/* Prepares a satellite. If the storage has the table of another archive, the user's policy is
 * removed again. */
static int add_prepare(struct satellites *s, struct arena *a, const struct satellite_wanted *w,
                       struct satellite_made *made, struct err *err)
{
    struct err ignored = {0};
    int code = satellite_prepare(s, a, w, made, err);

    if (code < 0)
        return code;
    code = newcomer_check(s, w->name, err);
    if (code == ERR_CONFLICT &&
        route_set(s->o.env.routes, made->user, STR_EMPTY, STR_EMPTY, &ignored) < 0)
        log_warn(s->o.log, "archive.policy_left", log_s("user", w->name),
                 log_z("error", ignored.text));
    return code;
}

int satellites_add(struct satellites *s, struct arena *a, const struct satellite_wanted *wanted,
                   size_t count, struct satellite_made *made, struct err *err)
{
    struct change_add add = {wanted, count};
    struct str names[SATELLITES_MAX];
    struct slots now;

    if (count == 0 || count > SATELLITES_MAX)
        return err_set(err, ERR_INVALID, "give the names of 1 to %d satellites", SATELLITES_MAX);
    int code = satellites_current(s, &now, false, err);
    for (size_t i = 0; i < count && code == 0; i++) {
        names[i] = wanted[i].name;
        code = add_prepare(s, a, &wanted[i], &made[i], err);
    }
    if (code == 0)
        code = satellites_agree(s, false, &now, err);
    if (code < 0)
        return code;
    if (now.epoch == 0)
        code = begin_with(s, names, count, err);
    return code < 0 && code != ERR_CONFLICT ? code : table_change(s, add_table, &add, err);
}

/* --- draining and arriving --- */

static int drain_table(struct satellites *s, struct slots *next, const struct slots *now, void *ctx,
                       struct err *err)
{
    const struct str *name = ctx;

    return slots_drain(next, now, *name, err);
}

/* Ends the moves of several slots; `ctx` has a bool for each slot. */
static int arrive_table(struct satellites *s, struct slots *next, const struct slots *now,
                        void *ctx, struct err *err)
{
    return slots_arrive(next, now, ctx) ? 0 : ERR_NOT_MODIFIED;
}

/* Removes from the table the first satellite that has no slots; *ctx is set when there was one. */
static int drop_table(struct satellites *s, struct slots *next, const struct slots *now, void *ctx,
                      struct err *err)
{
    bool *dropped = ctx;

    *dropped = false;
    for (size_t i = 0; i < now->count && now->count > 1 && !slots_moving(now); i++)
        if (slots_held(now, i) == 0) {
            *dropped = true;
            return slots_drop(next, now, str_z(now->names[i]), err);
        }
    return ERR_NOT_MODIFIED;
}

/* Removes from the table all satellites that have no slots, unless a slot is moving. */
static int satellites_settle(struct satellites *s, struct err *err)
{
    struct slots now;
    int code = 0;

    satellites_table(s, &now);
    bool dropped = slots_moving(&now) == 0;
    while (dropped && code == 0)
        code = table_change(s, drop_table, &dropped, err);
    return code;
}

int satellites_drain(struct satellites *s, struct str name, struct err *err)
{
    struct slots now;
    int code = satellites_current(s, &now, false, err);

    if (code == 0)
        code = table_change(s, drain_table, &name, err);
    return code < 0 ? code : satellites_settle(s, err);
}

/* Waits until no other thread is changing the table. Returns false if another thread has ended the
 * move of the slot meanwhile. Otherwise this thread ends the moves of all slots in `set`, including
 * those for which other threads wait. */
static bool arrive_begin(struct satellites *s, unsigned slot, bool set[SLOT_COUNT])
{
    mutex_lock(&s->lock);
    s->arrived[slot] = true;
    while (s->arriving)
        cond_wait(&s->settled, &s->lock);
    bool turn = s->arrived[slot];
    if (turn) {
        s->arriving = true;
        memcpy(set, s->arrived, sizeof(s->arrived));
    }
    mutex_unlock(&s->lock);
    return turn;
}

/* Lets the other threads continue. If the change failed, each of them tries to end its move
 * itself. */
static void arrive_end(struct satellites *s, unsigned slot, const bool set[SLOT_COUNT], int code)
{
    mutex_lock(&s->lock);
    for (unsigned i = 0; i < SLOT_COUNT; i++)
        if (i == slot || (code == 0 && set[i]))
            s->arrived[i] = false;
    s->arriving = false;
    cond_broadcast(&s->settled);
    mutex_unlock(&s->lock);
}

int satellites_arrive(struct satellites *s, unsigned slot, struct err *err)
{
    bool set[SLOT_COUNT];

    if (!arrive_begin(s, slot, set))
        return 0;
    int code = table_change(s, arrive_table, set, err);
    if (code == 0)
        code = satellites_settle(s, err);
    arrive_end(s, slot, set, code);
    return code;
}
