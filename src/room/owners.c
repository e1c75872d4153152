/* Finds the owner of a bucket, for calls that name no user (docs/replication.md, "Whose bucket").
 */
#include "room/owners.h"
#include "object/overlay.h"
#include "base/buf.h"
#include "object/bucket.h"
#include "route/remotes.h"
#include "route/route.h"
#include "route/users.h"

enum {
    ASKED_MAX = 1000, /* most users whose keys are tried on one storage in a call */
    TEXT_MAX = 400,   /* most bytes of a list of users in a message */
};

/* The state of a search for owners. */
struct search {
    const struct services *services;
    struct arena *a;
    const struct owner_of *of;
    struct owner *list;
    size_t count, room, asked;
    size_t owning; /* number of entries of `list` whose `owns` is true */
};

static int owner_add(struct search *s, struct str user, struct str storage, bool owns,
                     struct err *err)
{
    if (s->count == s->room) {
        size_t room = s->room ? 2 * s->room : 8;
        struct owner *larger = arena_array(s->a, room, sizeof(*larger));
        if (!larger)
            return err_code(err, ERR_NO_MEMORY);
        if (s->count)
            memcpy(larger, s->list, s->count * sizeof(*larger));
        s->list = larger;
        s->room = room;
    }
    s->list[s->count++] = (struct owner){arena_str(s->a, user), arena_str(s->a, storage), owns};
    s->owning += owns;
    return 0;
}

struct str owners_user_name(const struct services *services, struct arena *a, struct str id)
{
    struct user user = {0};

    return users_by_id(services->users, a, id, &user, NULL) == 0 ? user.name : id;
}

/* Opens the bucket as `user` and gets its owner; *owner is empty when the storage does not say who
 * the owner is. ERR_NO_BUCKET: the user sees no such bucket there. */
static int owner_look(struct search *s, struct storage *storage, struct str user, struct str *owner,
                      struct err *err)
{
    struct bucket_info info = {0};
    struct bucket *b = NULL;
    int code = storage_open_bucket(&b, storage, user, s->of->bucket, err);

    if (code == 0)
        code = b->ops->info(b, s->a, &info, err);
    if (b)
        b->ops->unref(b);
    *owner = info.owner;
    return code;
}

static int search_local(struct search *s, struct storage *storage, struct err *err)
{
    struct str owner = STR_EMPTY;
    int code = owner_look(s, storage, STR_EMPTY, &owner, err);

    if (code == ERR_NO_BUCKET)
        return 0;
    return code < 0 ? err_wrap(err, code, "storage " STR_FMT, STR_ARG(storage->name))
                    : owner_add(s, owner, storage->name, true, err);
}

/* Whether the user's route for the bucket leads to that storage, even if the bucket is blocked
 * there. */
static bool owner_is_routed(struct search *s, const struct storage *storage, struct str user)
{
    struct storage *at = NULL;
    int code = route_storage(s->services->routes, user, s->of->bucket, &at, NULL);

    return (code == 0 || code == ERR_DENIED || code == ERR_BUSY) && at == storage;
}

/* Asks a storage with the user's keys for the bucket. If the storage refuses the keys, the user
 * counts as having no such bucket. */
static int ask_as(struct search *s, struct storage *storage, struct str user, struct err *err)
{
    struct str owner = STR_EMPTY;

    if (++s->asked > ASKED_MAX)
        return err_set(err, ERR_INVALID,
                       "more than %d users have keys on storages that may have bucket " STR_FMT
                       "; name the user",
                       ASKED_MAX, STR_ARG(s->of->bucket));
    int code = owner_look(s, storage, user, &owner, err);
    if (code == ERR_NO_BUCKET || code == ERR_DENIED)
        return 0;
    if (code < 0)
        return err_wrap(err, code,
                        "the owner of bucket " STR_FMT " is not known, because storage " STR_FMT
                        " cannot be asked with the keys of user " STR_FMT "; name the user",
                        STR_ARG(s->of->bucket), STR_ARG(storage->name),
                        STR_ARG(owners_user_name(s->services, s->a, user)));
    return owner_add(s, user, storage->name, owner.len > 0, err);
}

static int search_remote(struct search *s, struct storage *storage, struct err *err)
{
    struct remote_entry e = {0};
    int code = services_find_remote(s->services, s->a, storage->name, &e, err);

    for (size_t i = 0; i < e.user_count && code == 0; i++)
        if (!s->of->routed || owner_is_routed(s, storage, e.users[i]))
            code = ask_as(s, storage, e.users[i], err);
    return code == ERR_NOT_FOUND ? 0 : code; /* the storage was removed meanwhile */
}

int owners_find(const struct services *services, struct arena *a, const struct owner_of *of,
                struct owners *out, struct err *err)
{
    struct storage *all[ROUTES_STORAGES_MAX];
    struct search s = {.services = services, .a = a, .of = of};
    size_t n = routes_storages(services->routes, all, ARRAY_SIZE(all)), kept = 0;
    int code = 0;

    for (size_t i = 0; i < n && code == 0; i++) {
        if (of->storage.len && !str_eq(of->storage, all[i]->name))
            continue;
        code = storage_can(all[i], STORAGE_CREDENTIALS) ? search_remote(&s, all[i], err)
                                                        : search_local(&s, all[i], err);
    }
    /* If no user owns the bucket, the users who see it are used. */
    for (size_t i = 0; i < s.count; i++)
        if (s.list[i].owns || !s.owning)
            s.list[kept++] = s.list[i];
    *out = (struct owners){s.list, kept};
    return code;
}

/* --- choosing one owner --- */

static bool is_among(const struct owners *o, struct str user, size_t before)
{
    for (size_t i = 0; i < before; i++)
        if (str_eq(o->list[i].user, user))
            return true;
    return false;
}

void owners_meet(struct owners *of, const struct owners *with)
{
    size_t kept = 0;

    for (size_t i = 0; i < of->count; i++)
        if (is_among(with, of->list[i].user, with->count))
            of->list[kept++] = of->list[i];
    of->count = kept;
}

/* Keeps only owners whose bucket is on that storage; if there is no such owner, keeps all
 * owners. */
static void owners_prefer(struct owners *o, struct str storage)
{
    size_t kept = 0;

    for (size_t i = 0; i < o->count; i++)
        if (str_eq(o->list[i].storage, storage))
            o->list[kept++] = o->list[i];
    if (kept)
        o->count = kept;
}

int owners_one(const struct services *services, struct arena *a, struct str bucket,
               const struct owners *o, struct str *out, struct err *err)
{
    struct buf names = BUF_INIT(TEXT_MAX);
    size_t users = 0;

    for (size_t i = 0; i < o->count; i++) {
        users += !is_among(o, o->list[i].user, i);
        buf_appendf(&names, "%s" STR_FMT " (storage " STR_FMT ")", i ? ", " : "",
                    STR_ARG(owners_user_name(services, a, o->list[i].user)),
                    STR_ARG(o->list[i].storage));
    }
    int code = 0;
    if (users == 1)
        *out = o->list[0].user;
    else if (users == 0)
        code = err_set(err, ERR_NO_BUCKET,
                       "there is no bucket " STR_FMT
                       "; for a bucket that is yet to be made, name the user",
                       STR_ARG(bucket));
    else
        code = err_set(err, ERR_CONFLICT,
                       "%zu users have a bucket " STR_FMT ": " STR_FMT "; name the user", users,
                       STR_ARG(bucket), STR_ARG(buf_str(&names)));
    buf_release(&names);
    return code;
}

int owners_user_id(const struct services *services, struct arena *a, struct str name,
                   const struct owner_of *of, struct str *out, struct err *err)
{
    struct owners owners = {0};
    struct user user;
    int code;

    if (name.len) {
        code = users_by_name(services->users, a, name, &user, err);
        if (code == 0)
            *out = user.id;
        return code == ERR_NOT_FOUND
                   ? err_set(err, code, "there is no user " STR_FMT, STR_ARG(name))
                   : code;
    }
    code = owners_find(services, a, of, &owners, err);
    if (code == 0)
        owners_prefer(&owners, of->prefer);
    return code < 0 ? code : owners_one(services, a, of->bucket, &owners, out, err);
}
