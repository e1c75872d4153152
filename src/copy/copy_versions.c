/* Copies all versions of a key in their order.
 *
 * Both sides list the versions of the key. The destination's versions are matched with the source's
 * from the oldest on: a marker with a marker, bytes by size and ETag. A version can only be added
 * as the newest. So from the first missing version on, every version is written again, in order.
 * After that, the destination's versions without a match are removed. So at no time does an
 * older version replace the destination's current version. */
#include "copy/copy_int.h"

#include "base/vec.h"
#include "copy/same.h"

enum { VERSIONS_LIMIT = 100000 };

struct history {
    VEC(struct object_info) v; /* oldest first, once all are read */
};

static void reverse(struct history *h)
{
    for (size_t i = 0; i < h->v.len / 2; i++) {
        struct object_info t = h->v.items[i];
        h->v.items[i] = h->v.items[h->v.len - 1 - i];
        h->v.items[h->v.len - 1 - i] = t;
    }
}

/* Lists the versions of the key, the oldest first. A bucket that does not exist has no versions. */
static int read_history(struct history *h, struct arena *a, struct bucket *b, struct str key,
                        struct err *err)
{
    struct list_options o = {.prefix = key, .limit = OBJECT_LIST_MAX};
    struct list_result page = {.more = true};
    bool past = false;
    int code = 0;

    while (code == 0 && page.more && !past && h->v.len < VERSIONS_LIMIT) {
        code = b->ops->list_versions(b, a, &o, &page, err);
        for (size_t i = 0; code == 0 && i < page.count && !past; i++) {
            past = !str_eq(page.entries[i].info.key, key);
            if (!past)
                vec_push(&h->v, page.entries[i].info);
        }
        o.after = page.next;
        o.after_version = page.next_version;
    }
    if (code == 0 && h->v.len >= VERSIONS_LIMIT)
        code = err_set(err, ERR_UNSUPPORTED, "more than %d versions of one key", VERSIONS_LIMIT);
    reverse(h);
    return code;
}

static int add_marker(const struct copy *c, struct arena *a, struct err *err)
{
    struct remove_options o = {0};
    struct remove_result made;

    return c->to->ops->remove(c->to, a, c->key, &o, &made, err);
}

/* Copies a version to the destination without comparing it with the destination's current version.
 * copy_object() compares, and would leave out a version that equals the version before it. */
static int add_version(const struct copy *c, struct arena *a, const struct object_info *v,
                       uint64_t *bytes, struct err *err)
{
    struct copy one = *c;
    struct copy_result made;

    one.version = v->version;
    int code = copy_anew(&made, a, &one, err);
    if (code == 0 && made.outcome == COPY_ABSENT)
        code = err_set(err, ERR_CONFLICT, "a version of the source went away");
    *bytes += code == 0 ? made.bytes : 0;
    return code;
}

static int history_remove(const struct copy *c, struct arena *a, const struct object_info *v,
                          struct err *err)
{
    struct remove_options o = {.version = v->version};
    struct remove_result gone;

    return c->to->ops->remove(c->to, a, c->key, &o, &gone, err);
}

/* How the destination's versions match the source's. */
struct matched {
    size_t from;   /* index of the first version of the source that the destination lacks */
    size_t to;     /* index of the destination's first version after the last match */
    bool *matched; /* for each of the destination's versions: whether it has a match */
};

static int history_match(struct matched *m, struct arena *a, const struct history *from,
                         const struct history *to, struct err *err)
{
    *m = (struct matched){.matched = arena_array(a, to->v.len + 1, sizeof(bool))};
    if (!m->matched)
        return err_code(err, ERR_NO_MEMORY);
    for (; m->from < from->v.len; m->from++) {
        size_t i = m->to;
        while (i < to->v.len && !same_bytes(&from->v.items[m->from], &to->v.items[i]))
            i++;
        if (i == to->v.len)
            break;
        m->matched[i] = true;
        m->to = i + 1;
    }
    return 0;
}

static int history_bring(struct copy_result *out, struct arena *a, const struct copy *c,
                         const struct history *from, const struct history *to, struct err *err)
{
    struct copying w = {.c = c};
    struct matched m;
    int code = history_match(&m, a, from, to, err);

    if (c->o)
        w.o = *c->o;
    for (size_t i = m.from; code == 0 && i < from->v.len; i++) {
        const struct object_info *v = &from->v.items[i];
        code = copy_watch(&w, 0, err);
        if (code == 0)
            code = v->is_marker ? add_marker(c, a, err) : add_version(c, a, v, &out->bytes, err);
        out->outcome = COPY_MADE;
    }
    for (size_t i = 0; code == 0 && i < to->v.len; i++) {
        if (m.matched[i])
            continue;
        code = copy_watch(&w, 0, err);
        if (code == 0)
            code = history_remove(c, a, &to->v.items[i], err);
        if (out->outcome == COPY_SAME)
            out->outcome = from->v.len ? COPY_MADE : COPY_REMOVED;
    }
    return code;
}

/* Checks with a HEAD request that the source does not have the key, because a listing that lacks
 * the key is no proof (docs/replication.md, C5). */
static int check_gone(const struct copy *c, struct arena *a, struct err *err)
{
    struct get_result got = {0};
    int code = c->from->ops->head(c->from, a, c->key, STR_EMPTY, NULL, &got, err);

    if (code == 0)
        return err_set(err, ERR_CONFLICT, "the source has it, and did not list it");
    return code == ERR_NOT_FOUND ? 0 : code;
}

int copy_versions(struct copy_result *out, struct arena *a, const struct copy *c, struct err *err)
{
    struct history from = {0}, to = {0};
    int code = read_history(&from, a, c->from, c->key, err);

    *out = (struct copy_result){.outcome = COPY_SAME};
    if (code == 0)
        code = read_history(&to, a, c->to, c->key, err);
    if (code == 0 && !from.v.len && to.v.len)
        code = check_gone(c, a, err);
    if (code == 0)
        code = history_bring(out, a, c, &from, &to, err);
    if (code == 0 && from.v.len)
        out->source = from.v.items[from.v.len - 1];
    else if (code == 0 && out->outcome == COPY_SAME)
        out->outcome = COPY_ABSENT;
    vec_release(&from.v);
    vec_release(&to.v);
    return code;
}
