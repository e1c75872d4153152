/* Copies the data that are kept beside the bytes: tags, retention and access control lists of
 * objects; tags, access control lists and settings of buckets. */
#include "copy/copy_int.h"

#include "base/clock.h"
#include "copy/grants.h"
#include "copy/same.h"

/* Returns whether the code says that the storage does not support or does not allow this kind of
 * data. */
static bool copy_is_refused(int code)
{
    return code == ERR_UNSUPPORTED || code == ERR_DENIED || code == ERR_INVALID;
}

static void left_out(const struct log *log, const char *what, const struct bucket *b,
                     const struct err *why)
{
    log_warn(log, "replica.left_out", log_z("what", what), log_s("bucket", b->name),
             log_s("storage", b->storage ? b->storage->name : STR_EMPTY),
             log_z("error", why->text));
}

/* --- tags --- */

static int look_at_both(struct get_result *from, struct get_result *to, struct arena *a,
                        const struct copy *c, struct err *err)
{
    int code = c->from->ops->head(c->from, a, c->key, c->version, NULL, from, err);

    return code < 0 ? code : c->to->ops->head(c->to, a, c->key, STR_EMPTY, NULL, to, err);
}

static int set_there(struct arena *a, const struct copy *c, enum meta_set set,
                     const struct object_meta *meta, struct err *err)
{
    return c->to->ops->set_meta(c->to, a, c->key, STR_EMPTY, set, meta, NULL, err);
}

int copy_tags(struct arena *a, const struct copy *c, struct err *err)
{
    struct get_result from = {0}, to = {0};
    struct err own = {0}, *e = err ? err : &own;
    int code = look_at_both(&from, &to, a, c, e);

    if (code < 0 || same_tags(from.info.meta.tags, to.info.meta.tags))
        return code;
    code = set_there(a, c, META_TAGS, &from.info.meta, e);
    if (code == ERR_UNSUPPORTED) {
        left_out(c->o ? c->o->log : NULL, "tags", c->to, e);
        code = 0;
    }
    return code;
}

int copy_can_lock(struct bucket *b, struct arena *a, bool *can, struct err *err)
{
    struct bucket_info info = {0};
    int code = b->ops->info(b, a, &info, err);

    *can = info.object_lock;
    return code;
}

int copy_retention(struct arena *a, const struct copy *c, struct err *err)
{
    struct get_result from = {0}, to = {0};
    const struct object_meta *x = &from.info.meta, *y = &to.info.meta;
    struct err own = {0}, *e = err ? err : &own;
    int code = look_at_both(&from, &to, a, c, e);
    unsigned set = 0;
    bool can = false;

    /* Retention times are compared in whole seconds, because S3's answers give whole seconds. */
    if (x->retain_until_ms / MS_PER_S > y->retain_until_ms / MS_PER_S)
        set |= META_RETENTION;
    if (x->legal_hold != y->legal_hold)
        set |= META_LEGAL_HOLD;
    if (code < 0 || !set)
        return code;
    code = copy_can_lock(c->to, a, &can, e);
    if (code == 0)
        code = can ? set_there(a, c, (enum meta_set)set, x, e)
                   : err_set(e, ERR_UNSUPPORTED, "the bucket has no object lock");
    if (copy_is_refused(code)) {
        left_out(c->o ? c->o->log : NULL, "retention", c->to, e);
        code = 0;
    }
    return code;
}

/* --- access control lists --- */

/* An access control list that is to be copied. */
struct granting {
    struct grants_of from, to;
    const struct log *log;
    bool fresh; /* the destination's list is known to be private */
};

static int write_mapped(struct arena *a, const struct granting *g, const struct acl *from,
                        struct str owner, bool known_only, struct err *err)
{
    struct acl mapped;
    int code = grants_map(&mapped, a, from, owner, known_only, err);

    return code < 0 ? code : grants_write(a, &g->to, &mapped, err);
}

/* Writes the grants unless the destination has them already. */
static int write_changed(struct arena *a, const struct granting *g, const struct acl *from,
                         const struct acl *to, struct err *err)
{
    struct acl wanted;
    int code = grants_map(&wanted, a, from, to->owner, false, err);

    if (code < 0 || grants_same(&wanted, to))
        return code;
    code = write_mapped(a, g, from, to->owner, false, err);
    if (code == ERR_INVALID || code == ERR_NOT_FOUND) { /* the destination may not know all users */
        left_out(g->log, "acl_of_others", g->to.bucket, err);
        code = write_mapped(a, g, from, to->owner, true, err);
    }
    return code;
}

static int bring_grants(struct arena *a, const struct granting *g, struct err *err)
{
    struct acl from, to;
    int code = grants_read(&from, a, &g->from, err);

    if (copy_is_refused(code)) {
        left_out(g->log, "acl", g->from.bucket, err);
        return 0;
    }
    if (code < 0 || (g->fresh && acl_is_owners_only(&from)))
        return code;
    code = grants_read(&to, a, &g->to, err);
    if (code == 0)
        code = write_changed(a, g, &from, &to, err);
    if (copy_is_refused(code)) {
        left_out(g->log, "acl", g->to.bucket, err);
        code = 0;
    }
    return code;
}

int copy_acl(struct arena *a, const struct copy *c, bool fresh, struct err *err)
{
    struct err own = {0};
    struct granting g = {.from = {c->from, c->key},
                         .to = {c->to, c->key},
                         .log = c->o ? c->o->log : NULL,
                         .fresh = fresh};

    return bring_grants(a, &g, err ? err : &own);
}

/* --- buckets --- */

int copy_bucket_acl(struct arena *a, const struct copy_bucket *c, struct err *err)
{
    struct err own = {0};
    struct granting g = {.from = {c->from, STR_EMPTY}, .to = {c->to, STR_EMPTY}, .log = c->log};

    return bring_grants(a, &g, err ? err : &own);
}

static int bring_document(struct arena *a, const struct copy_bucket *c, const char *name,
                          struct err *err)
{
    struct str from = STR_EMPTY, to = STR_EMPTY;
    int code = c->from->ops->get_document(c->from, a, name, &from, err);

    if (code == ERR_NOT_FOUND || code == ERR_UNSUPPORTED) {
        from = STR_EMPTY;
        code = 0;
    }
    if (code == ERR_DENIED) {
        left_out(c->log, name, c->from, err);
        return 0;
    }
    if (code < 0)
        return code;
    code = c->to->ops->get_document(c->to, a, name, &to, err);
    if (code == ERR_NOT_FOUND || (code == ERR_UNSUPPORTED && !from.len)) {
        to = STR_EMPTY;
        code = 0;
    }
    if (code == 0 && !str_eq(from, to))
        code = c->to->ops->set_document(c->to, name, from, err);
    if (copy_is_refused(code)) {
        left_out(c->log, name, c->to, err);
        code = 0;
    }
    return code;
}

int copy_bucket_tags(struct arena *a, const struct copy_bucket *c, struct err *err)
{
    struct err own = {0};

    return bring_document(a, c, "tagging", err ? err : &own);
}

/* Makes the destination keep versions if the source does, and otherwise suspends the destination's
 * versions. Nothing is done if the source has never kept versions and the destination's are
 * suspended already. */
static int bring_versions(struct arena *a, const struct copy_bucket *c, struct err *err)
{
    struct bucket_info from = {0}, to = {0};
    int code = c->from->ops->info(c->from, a, &from, err);

    if (code == 0)
        code = c->to->ops->info(c->to, a, &to, err);
    if (code < 0 || from.versions == to.versions)
        return code;
    if (from.versions == VERSIONS_NEVER && to.versions == VERSIONS_SUSPENDED)
        return 0;
    code = c->to->ops->set_versions(c->to, from.versions == VERSIONS_ON, err);
    if (copy_is_refused(code) || code == ERR_CONFLICT) {
        left_out(c->log, "versioning", c->to, err);
        code = 0;
    }
    return code;
}

int copy_bucket_settings(struct arena *a, const struct copy_bucket *c, struct err *err)
{
    static const char *const names[] = {"lifecycle", "policy", "cors", "website"};
    struct err own = {0}, *e = err ? err : &own;
    int code = bring_versions(a, c, e);

    for (size_t i = 0; i < ARRAY_SIZE(names) && code == 0; i++)
        code = bring_document(a, c, names[i], e);
    return code;
}
