/* Removing versions, and changing their meta. */
#include "object/condition.h"
#include "object/local/local_int.h"

struct remove_change {
    struct row_change change;
    const struct remove_options *o;
    struct object_record r; /* the version removed or made; only flags and sequence are set */
};

static int guard_ask(const struct row_change *c, const struct object_guard *g,
                     const struct object_record *r, bool is_latest, struct err *err)
{
    struct arena a = ARENA_INIT(0);
    struct object_info info = {.key = c->key, .is_latest = is_latest};
    int code;

    if (!g->fn)
        return 0;
    info.version = version_text(c->b, &a, c->key, r);
    code = record_info(r, &a, true, &info, err);
    if (code == 0)
        code = g->fn(g->ctx, &info, err);
    arena_release(&a);
    return code;
}

/* Checks the conditions of a removal that names no version. The conditions are about the current
 * version, which may be a marker. ERR_NOT_FOUND: there is no current version. */
static int judge_current(struct remove_change *p, const struct stored *current, struct err *err)
{
    struct row_change *c = &p->change;
    struct stored marker = {0};
    const struct object_record *r = &current->r;
    int code = 0;

    if (!p->o->guard.fn && !conditions_given(&p->o->conditions))
        return 0;
    if (r->sequence == 0) {
        code = stored_newest(&marker, c->view, c->b, c->key, err);
        r = &marker.r;
    }
    struct condition_state now = record_state(r);
    if (code == 0)
        code = conditions_judge_removal(&p->o->conditions, &now, err);
    if (code == 0)
        code = guard_ask(c, &p->o->guard, r, true, err);
    stored_release(&marker);
    return code;
}

static int remove_current(struct remove_change *p, struct err *err)
{
    struct row_change *c = &p->change;
    struct stored current = {0};
    int code = change_current(c, &current, err);

    if (code == 0)
        code = judge_current(p, &current, err);
    if (code == ERR_NOT_FOUND && !p->o->guard.fn) {
        stored_release(&current);
        return 0;
    }
    if (code == 0 && c->bucket.info.versions != VERSIONS_NEVER) {
        p->r = (struct object_record){.is_marker = true, .meta.owner = c->bucket.info.owner};
        code = change_install(c, &current, &p->r, err);
        if (code == 0)
            code = change_tell(c, p->o->note, CHANGE_MARKER | THING_OBJECT, &p->r, err);
    } else if (code == 0 && current.r.sequence > 0) {
        code = change_drop(c, &current.r, true, p->o->bypass_governance, err);
        if (code == 0)
            code = change_tell(c, p->o->note, CHANGE_REMOVED | THING_OBJECT, &current.r, err);
    }
    stored_release(&current);
    return code;
}

/* Finds out whether the version's row is of TAG_OBJECT (*in_o), and whether readers of the key see
 * the version. */
static int locate(struct row_change *c, const struct object_record *r, bool *in_o, bool *is_current,
                  struct err *err)
{
    struct stored other = {0};
    int code = change_current(c, &other, err);

    *in_o = code == 0 && other.r.sequence == r->sequence;
    *is_current = *in_o;
    if (code == 0 && other.r.sequence == 0) {
        code = stored_newest(&other, c->view, c->b, c->key, err);
        *is_current = code == 0 && other.r.sequence == r->sequence;
    }
    stored_release(&other);
    return code;
}

static int remove_one_version(struct remove_change *p, struct err *err)
{
    struct row_change *c = &p->change;
    struct stored found = {0};
    bool in_o = false, is_current = false;
    int code = stored_find(&found, c->view, c->b, c->key, p->o->version, err);

    if (code == ERR_NOT_FOUND && !p->o->guard.fn) {
        stored_release(&found);
        return 0;
    }
    struct condition_state now = record_state(&found.r);
    if (code == 0)
        code = conditions_judge_removal(&p->o->conditions, &now, err);
    if (code == 0)
        code = locate(c, &found.r, &in_o, &is_current, err);
    if (code == 0)
        code = guard_ask(c, &p->o->guard, &found.r, is_current, err);
    if (code == 0)
        code = change_drop(c, &found.r, in_o, p->o->bypass_governance, err);
    if (code == 0 && is_current)
        code = change_promote(c, err);
    if (code == 0)
        code = change_tell(c, p->o->note, CHANGE_REMOVED | THING_OBJECT, &found.r, err);
    p->r.is_marker = code == 0 && found.r.is_marker;
    stored_release(&found);
    return code;
}

static int remove_change_run(struct row_change *c, struct err *err)
{
    struct remove_change *p = container_of(c, struct remove_change, change);

    p->r = (struct object_record){0};
    return p->o->version.len ? remove_one_version(p, err) : remove_current(p, err);
}

int local_remove(struct bucket *bucket, struct arena *a, struct str key,
                 const struct remove_options *o, struct remove_result *out, struct err *err)
{
    struct local_bucket *b = local_bucket_of(bucket);
    struct remove_change p = {
        .change = {.b = b, .key = key, .fn = remove_change_run, .frees = true}, .o = o};
    int code = change_key(&p.change, err);

    if (code == 0)
        code = change_apply(&p.change, err);
    if (code < 0)
        return code;
    *out = (struct remove_result){.is_marker = p.r.is_marker};
    if (o->version.len)
        out->version = arena_str(a, o->version);
    else if (p.r.is_marker)
        out->version = version_text(b, a, key, &p.r);
    return arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

/* --- changing the meta of a version --- */

struct meta_change {
    struct row_change change;
    struct str version;
    enum meta_set set;
    const struct object_meta *meta;
    const struct meta_options *o;
};

/* Checks a new retention while the old one is in force. The new retention must not be shorter than
 * the old one, and must have the same mode. With bypass_governance, a governance retention may be
 * changed in any way. */
static int retention_check(const struct meta_change *p, const struct object_meta *old,
                           struct err *err)
{
    const struct object_meta *new = p->meta;
    bool changed = new->retain_until_ms < old->retain_until_ms ||
                   old->retain_compliance != new->retain_compliance;

    if (old->retain_until_ms <= db_tx_now_ms(p->change.tx) || !changed)
        return 0;
    if (old->retain_compliance || !p->o->bypass_governance)
        return err_set(err, ERR_DENIED, "the retention can only be lengthened");
    return 0;
}

static int set_fields(const struct meta_change *p, struct object_meta *m, struct err *err)
{
    int code = p->set & META_RETENTION ? retention_check(p, m, err) : 0;

    if (code < 0)
        return code;
    if (p->set & META_TAGS)
        m->tags = p->meta->tags;
    if (p->set & META_ACL)
        m->acl = p->meta->acl;
    if (p->set & META_RETENTION) {
        m->retain_until_ms = p->meta->retain_until_ms;
        m->retain_compliance = p->meta->retain_compliance;
    }
    if (p->set & META_LEGAL_HOLD)
        m->legal_hold = p->meta->legal_hold;
    if (p->set & META_CLASS)
        m->storage_class = p->meta->storage_class;
    return 0;
}

static int meta_run(struct row_change *c, struct err *err)
{
    struct meta_change *p = container_of(c, struct meta_change, change);
    struct stored found = {0};
    struct buf record = BUF_INIT(0);
    struct row row;
    bool in_o = true, is_current;
    int code = p->version.len ? stored_find(&found, c->view, c->b, c->key, p->version, err)
                              : change_current(c, &found, err);

    if (code == 0 && (found.r.sequence == 0 || found.r.is_marker))
        code = err_code(err, ERR_NOT_FOUND);
    if (code == 0)
        code = locate(c, &found.r, &in_o, &is_current, err);
    if (code == 0)
        code = guard_ask(c, &p->o->guard, &found.r, is_current, err);
    if (code == 0)
        code = set_fields(p, &found.r.meta, err);
    if (code == 0) {
        record_put(&record, &found.r);
        code = buf_error(&record);
    }
    if (code == 0)
        db_tx_put(c->tx, c->b->local->rows,
                  in_o ? row_str(&c->row) : row_version(&row, c->b, c->key, found.r.sequence),
                  buf_str(&record));
    if (code == 0)
        code = change_tell(c, p->o->note, set_things(p->set), &found.r, err);
    buf_release(&record);
    stored_release(&found);
    return code;
}

/* NOLINTNEXTLINE(readability-function-size): bucket.h gives the parameters */
int local_set_meta(struct bucket *bucket, struct arena *a, struct str key, struct str version,
                   enum meta_set set, const struct object_meta *meta, const struct meta_options *o,
                   struct err *err)
{
    static const struct meta_options none;
    struct meta_change p = {
        .change = {.b = local_bucket_of(bucket), .key = key, .set = set, .fn = meta_run},
        .version = version,
        .set = set,
        .meta = meta,
        .o = o ? o : &none,
    };
    int code = change_key(&p.change, err);

    (void)a;
    return code < 0 ? code : change_apply(&p.change, err);
}
