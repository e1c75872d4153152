/* What a satellite needs beside its storage: a user, the user's keys there, a policy that leads the
 * user to the storage, and the bucket for the tables. */
#include "archive/satellites_int.h"

#include "object/overlay.h"
#include "object/remote/remote.h"
#include "route/remotes.h"

/* The id of a user that weir makes for a satellite. It is computed from the name. So a user who is
 * removed and made again owns the same buckets. */
static struct str satellite_user_id(struct arena *a, struct str name)
{
    return arena_fmt(a, "satellite-" STR_FMT, STR_ARG(name));
}

/* --- looking, before anything is made --- */

/* What a satellite lacks. */
struct satellite_needs {
    struct storage *at;
    struct str user; /* id of the user, also if the user is still to be made */
    bool no_user, no_policy;
};

static int needs_storage(struct satellite_needs *out, struct satellites *s, struct str name,
                         struct err *err)
{
    if (!satellite_name_ok(name))
        return err_set(err, ERR_INVALID,
                       "'" STR_FMT "' cannot be a satellite: a name has 1 to %d small letters, "
                       "digits and '-' between them",
                       STR_ARG(str_head(name, SATELLITE_NAME_MAX)), SATELLITE_NAME_MAX);
    out->at = routes_storage(s->o.env.routes, name);
    return out->at
               ? 0
               : err_set(err, ERR_NOT_FOUND,
                         "there is no storage " STR_FMT "; add it first with `weir storage add`",
                         STR_ARG(name));
}

static int needs_user(struct satellite_needs *out, struct satellites *s, struct arena *a,
                      struct str name, struct err *err)
{
    struct user user = {0};
    int code = users_by_name(s->o.users, a, name, &user, err);

    out->no_user = code == ERR_NOT_FOUND;
    out->user = out->no_user ? satellite_user_id(a, name) : user.id;
    return code == 0 && user.admin
               ? err_set(err, ERR_INVALID,
                         "the user " STR_FMT " is an administrator, and cannot be the user of a "
                         "satellite",
                         STR_ARG(name))
           : out->no_user ? 0
                          : code;
}

static int needs_keys(const struct satellite_needs *n, struct satellites *s,
                      const struct satellite_wanted *w, struct err *err)
{
    bool remote = storage_can(n->at, STORAGE_CREDENTIALS);

    if (w->access.len && (!remote || !s->o.remotes))
        return err_set(err, ERR_INVALID,
                       "the storage " STR_FMT " is not remote, and its users need no keys there",
                       STR_ARG(w->name));
    return remote && !w->access.len && !remote_has_credential(n->at, n->user)
               ? err_set(err, ERR_INVALID,
                         "the user " STR_FMT " has no keys on the storage " STR_FMT
                         "; give them with --access-key and --secret-key",
                         STR_ARG(w->name), STR_ARG(w->name))
               : 0;
}

/* Finds the storage that the user's policy for all buckets leads to; empty: there is none. */
static int user_policy(struct satellites *s, struct arena *a, struct str user, struct str *out,
                       struct err *err)
{
    struct route_policy *all = NULL;
    size_t count = 0;
    int code = route_list(s->o.env.routes, a, &all, &count, err);

    *out = STR_EMPTY;
    for (size_t i = 0; i < count && code == 0; i++)
        if (!all[i].blocked && all[i].bucket.len == 0 && str_eq(all[i].user, user))
            *out = all[i].storage;
    return code;
}

static int needs_policy(struct satellite_needs *out, struct satellites *s, struct arena *a,
                        struct str name, struct err *err)
{
    struct str leads;
    int code = user_policy(s, a, out->user, &leads, err);

    out->no_policy = leads.len == 0;
    return code == 0 && leads.len && !str_eq(leads, name)
               ? err_set(err, ERR_CONFLICT,
                         "the user " STR_FMT " has a policy that leads to storage " STR_FMT
                         "; remove it first (weir bucket route --user " STR_FMT " --remove)",
                         STR_ARG(name), STR_ARG(leads), STR_ARG(name))
               : code;
}

static int satellite_needs(struct satellite_needs *out, struct satellites *s, struct arena *a,
                           const struct satellite_wanted *w, struct err *err)
{
    *out = (struct satellite_needs){0};
    int code = needs_storage(out, s, w->name, err);

    if (code == 0)
        code = needs_user(out, s, a, w->name, err);
    if (code == 0)
        code = needs_keys(out, s, w, err);
    return code < 0 ? code : needs_policy(out, s, a, w->name, err);
}

int satellites_check(struct satellites *s, struct arena *a, const struct satellite_wanted *w,
                     size_t count, struct err *err)
{
    struct satellite_needs needs;
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++)
        code = satellite_needs(&needs, s, a, &w[i], err);
    return code;
}

bool satellite_lost_user(struct satellites *s, struct arena *a, struct str name)
{
    struct user user;
    struct str leads;

    return users_by_name(s->o.users, a, name, &user, NULL) == ERR_NOT_FOUND &&
           user_policy(s, a, satellite_user_id(a, name), &leads, NULL) == 0 && str_eq(leads, name);
}

/* --- making --- */

static int make_user(struct satellite_prepared *p, struct satellites *s, struct arena *a,
                     struct err *err)
{
    struct user made = {0}, wanted = {.name = p->made.name, .id = p->made.user};
    int code = users_add(s->o.users, a, &wanted, &made, err);

    p->has_made.user |= code == 0;
    if (code == 0 && made.key_count)
        p->made.key = made.keys[0];
    return code;
}

static int make_credential(struct satellite_prepared *p, struct satellites *s, struct storage *at,
                           const struct satellite_wanted *w, struct err *err)
{
    struct remote_credential c = {.user = p->made.user, .access = w->access, .secret = w->secret};
    bool had = remote_has_credential(at, p->made.user);
    int code = remotes_set_credential(s->o.remotes, w->name, &c, err);

    p->has_made.credential |= code == 0 && !had;
    return code;
}

static int make_bucket(struct satellite_prepared *p, struct satellites *s, struct arena *a,
                       struct err *err)
{
    struct str bucket;
    int code = satellites_bucket(s, a, SATELLITES_MAP_HOST, &bucket, err);

    return code < 0 ? code
                    : satellites_make_bucket(s, p->made.name, bucket, &p->has_made.bucket, err);
}

/* `out` may have the result of an earlier call for the same satellite, which is kept. */
static int satellite_prepare(struct satellite_prepared *out, struct satellites *s, struct arena *a,
                             const struct satellite_wanted *w, struct err *err)
{
    struct satellite_needs needs;
    int code = satellite_needs(&needs, s, a, w, err);

    if (code < 0)
        return code;
    out->made.name = arena_str(a, w->name);
    out->made.user = needs.user;
    if (needs.no_user)
        code = make_user(out, s, a, err);
    if (code == 0 && w->access.len)
        code = make_credential(out, s, needs.at, w, err);
    if (code == 0 && needs.no_policy) {
        code = route_set(s->o.env.routes, needs.user, STR_EMPTY, w->name, err);
        out->has_made.policy |= code == 0;
    }
    return code < 0 ? code : make_bucket(out, s, a, err);
}

int satellites_prepare(struct satellites *s, struct arena *a, const struct satellite_wanted *w,
                       size_t count, struct satellite_prepared *out, struct err *err)
{
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++)
        code = satellite_prepare(&out[i], s, a, &w[i], err);
    return code;
}

/* --- removing --- */

static int remove_page(struct bucket *b, struct arena *a, struct list_options *o, bool *more,
                       struct err *err)
{
    struct list_result page = {0};
    struct remove_result removed;
    int code = b->ops->list(b, a, o, &page, err);

    for (size_t i = 0; i < page.count && code == 0; i++)
        code = b->ops->remove(b, a, page.entries[i].info.key, &(struct remove_options){0}, &removed,
                              err);
    *more = code == 0 && page.more;
    o->after = page.next;
    return code;
}

/* Removes a bucket that has nothing but tables of slots. A bucket with other objects stays, without
 * the tables. */
static int remove_bucket(struct storage *at, struct arena *a, struct str user, struct str name,
                         struct err *err)
{
    struct list_options o = {.prefix = STR("_map/"), .limit = OBJECT_LIST_MAX};
    struct bucket_info info = {0};
    struct bucket *b = NULL;
    bool more = true, is_remote = storage_can(at, STORAGE_CREDENTIALS);
    int code = storage_open_bucket(&b, at, user, name, err);

    if (code < 0)
        return code == ERR_NO_BUCKET || code == ERR_DENIED ? 0 : code;
    if (!is_remote) /* weir stores who owns the bucket */
        code = b->ops->info(b, a, &info, err);
    bool own = code == 0 && (is_remote || str_eq(info.owner, user));
    while (own && code == 0 && more)
        code = remove_page(b, a, &o, &more, err);
    b->ops->unref(b);
    if (own && code == 0)
        code = storage_remove_bucket(at, user, name, err);
    return code == ERR_CONFLICT ? 0 : code;
}

static void undo_log(struct satellites *s, struct str name, int code, const struct err *err)
{
    if (code < 0)
        log_warn(s->o.log, "archive.satellite_left", log_s("satellite", name),
                 log_z("error", *err->text ? err->text : err_text(code)));
}

void satellite_undo(struct satellites *s, const struct satellite_prepared *p)
{
    struct remote_credential none = {.user = p->made.user};
    struct storage *at = routes_storage(s->o.env.routes, p->made.name);
    struct arena a = {0};
    struct str bucket;
    struct err err = {0};
    int code = 0;

    if (p->has_made.policy)
        code = route_set(s->o.env.routes, p->made.user, STR_EMPTY, STR_EMPTY, &err);
    if (code == 0 && at && p->has_made.bucket)
        code = satellites_bucket(s, &a, SATELLITES_MAP_HOST, &bucket, &err);
    if (code == 0 && at && p->has_made.bucket)
        code = remove_bucket(at, &a, p->made.user, bucket, &err);
    if (code == 0 && p->has_made.credential)
        code = remotes_set_credential(s->o.remotes, p->made.name, &none, &err);
    if (code == 0 && p->has_made.user)
        code = users_remove(s->o.users, p->made.name, &err);
    undo_log(s, p->made.name, code, &err);
    arena_release(&a);
}

/* --- leaving --- */

/* Whether the user owns a bucket on any storage that can be asked for it. */
static int user_has_buckets(struct satellites *s, struct arena *a, struct str user, bool *out,
                            struct err *err)
{
    struct storage *all[ROUTES_STORAGES_MAX];
    size_t n = routes_storages(s->o.env.routes, all, ARRAY_SIZE(all));
    struct bucket_info *list;
    size_t count = 0;
    int code = 0;

    for (size_t i = 0; i < n && code == 0 && count == 0; i++)
        if (!storage_can(all[i], STORAGE_CREDENTIALS) || remote_has_credential(all[i], user))
            code = storage_list_buckets(all[i], a, user, STR_EMPTY, 1, &list, &count, err);
    *out = count > 0;
    return code;
}

/* Whether somebody has given the bucket settings, such as a default encryption. weir makes its
 * buckets without any. */
static int bucket_has_settings(struct bucket *b, struct arena *a, bool *out, struct err *err)
{
    static const char *const names[] = {"encryption",
                                        "policy",
                                        "acl",
                                        "lifecycle",
                                        "notification",
                                        "replication",
                                        "logging",
                                        "cors",
                                        "tagging",
                                        "object-lock",
                                        "publicAccessBlock",
                                        "website",
                                        "policyBindsOwner",
                                        "requestPayment",
                                        "ownershipControls"};
    struct bucket_info info = {0};
    struct str text;
    int code = b->ops->info(b, a, &info, err), found = ERR_NOT_FOUND;

    for (size_t i = 0; i < ARRAY_SIZE(names) && code == 0 && found == ERR_NOT_FOUND; i++)
        found = b->ops->get_document(b, a, names[i], &text, err);
    *out = found == 0 || info.versions != VERSIONS_NEVER;
    return code < 0 || found == 0 || found == ERR_NOT_FOUND ? code : found;
}

static int leave_bucket(struct storage *at, struct arena *a, struct str user, struct str name,
                        struct err *err)
{
    struct bucket *b = NULL;
    bool has = true;
    int code = storage_open_bucket(&b, at, user, name, err);

    if (code < 0)
        return code == ERR_NO_BUCKET ? 0 : code;
    code = bucket_has_settings(b, a, &has, err);
    b->ops->unref(b);
    return code < 0 || has ? code : remove_bucket(at, a, user, name, err);
}

/* Removes the archive's buckets that have neither objects nor settings any more. The buckets of a
 * remote storage stay: weir cannot tell their settings from those that each bucket has there. */
static int leave_buckets(struct satellites *s, struct arena *a, struct storage *at, struct str user,
                         struct err *err)
{
    struct satellite_host *hosts = NULL;
    size_t count = 0;
    int code = storage_can(at, STORAGE_CREDENTIALS)
                   ? 0
                   : satellites_forge_hosts(s, a, &hosts, &count, err);

    for (size_t i = 0; i < count && code == 0; i++)
        code = leave_bucket(at, a, user, hosts[i].bucket, err);
    return code;
}

/* Removes a user that weir has made, once the user owns nothing. */
static int leave_user(struct satellites *s, struct arena *a, const struct user *user,
                      struct err *err)
{
    bool has = true;
    int code = user_has_buckets(s, a, user->id, &has, err);

    if (code < 0 || has)
        return code;
    /* The user goes last. As long as it exists, another drain can end what was cut off. */
    if (s->o.remotes)
        code = remotes_forget_user(s->o.remotes, user->id, err);
    return code < 0 ? code : users_remove(s->o.users, user->name, err);
}

/* Whether the user, who has no policy, can be removed. Buckets of a remote storage stay, and with
 * them their owner. */
static bool user_can_leave(struct satellites *s, struct arena *a, struct str user, struct str name)
{
    struct storage *at = routes_storage(s->o.env.routes, name);
    bool has = true;
    struct err err;

    return at && (!storage_can(at, STORAGE_CREDENTIALS) ||
                  (user_has_buckets(s, a, user, &has, &err) == 0 && !has));
}

bool satellite_has_left(struct satellites *s, struct str name)
{
    struct arena a = {0};
    struct user user;
    struct str leads;
    struct err err;
    bool has = users_by_name(s->o.users, &a, name, &user, &err) == 0 &&
               str_eq(user.id, satellite_user_id(&a, name)) &&
               user_policy(s, &a, user.id, &leads, &err) == 0 &&
               (leads.len ? str_eq(leads, name) : user_can_leave(s, &a, user.id, name));

    arena_release(&a);
    return has;
}

void satellite_leave(struct satellites *s, struct str name)
{
    struct storage *at = routes_storage(s->o.env.routes, name);
    struct arena a = {0};
    struct user user = {0};
    struct err err = {0};
    int code = users_by_name(s->o.users, &a, name, &user, &err);

    /* The policy goes first. If a replication relies on it, this fails, and everything stays. */
    if (code == 0)
        code = route_set(s->o.env.routes, user.id, STR_EMPTY, STR_EMPTY, &err);
    if (code == 0 && at && str_eq(user.id, satellite_user_id(&a, name))) {
        code = leave_buckets(s, &a, at, user.id, &err);
        if (code == 0)
            code = leave_user(s, &a, &user, &err);
    }
    undo_log(s, name, code == ERR_NOT_FOUND ? 0 : code, &err);
    arena_release(&a);
}
