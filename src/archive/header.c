/* Headers of bundles, with the history of refs. */
#include "archive/header.h"

#include "base/hex.h"

#include <inttypes.h>

static const char point_prefix[] = "refs/weir/";

void bundle_header_init(struct bundle_header *h, bool is_sha256)
{
    *h = (struct bundle_header){0};
    git_refs_init(&h->refs, is_sha256);
}

void bundle_header_release(struct bundle_header *h)
{
    git_refs_release(&h->refs);
    vec_release(&h->points);
    *h = (struct bundle_header){0};
}

/* --- writing --- */

static void header_line(struct buf *out, const unsigned char *id, size_t id_len, struct str name)
{
    buf_append_hex(out, id, id_len);
    buf_append_char(out, ' ');
    buf_append_str(out, name);
    buf_append_char(out, '\n');
}

static void header_write_refs(struct buf *out, const struct git_refs *r)
{
    static const struct str heads = {"refs/heads/", 11};
    size_t id_len = git_id_len(r->is_sha256);
    const struct git_ref *last = git_refs_find(r, r->head_target);
    bool was_head = false;

    if (last && !str_starts(last->name, heads))
        last = NULL;
    if (r->has_head)
        header_line(out, r->head, id_len, STR("HEAD"));
    vec_each (&r->list, const struct git_ref *, ref) {
        bool is_head = str_starts(ref->name, heads);
        if (was_head && !is_head && last)
            header_line(out, last->id, id_len, last->name);
        was_head = is_head;
        if (ref != last)
            header_line(out, ref->id, id_len, ref->name);
    }
    if (was_head && last)
        header_line(out, last->id, id_len, last->name);
}

void bundle_header_write(struct buf *out, const struct bundle_header *h)
{
    size_t id_len = git_id_len(h->refs.is_sha256);

    buf_append_z(out, h->refs.is_sha256 ? "# v3 git bundle\n@object-format=sha256\n"
                                        : "# v2 git bundle\n");
    header_write_refs(out, &h->refs);
    vec_each (&h->points, const struct header_point *, p) {
        buf_append_hex(out, p->id, id_len);
        buf_appendf(out, " %s%" PRId64 "/%s/" STR_FMT "\n", point_prefix, p->at_s,
                    p->is_new ? "new" : "was", STR_ARG(str_skip(p->name, 5)));
    }
    buf_append_char(out, '\n');
}

/* --- reading --- */

static int header_bad(struct err *err, const char *what)
{
    return err_set(err, ERR_CORRUPT, "the bundle's header is damaged: %s", what);
}

/* Reads a line. Its newline is counted but not kept. */
static int header_read_line(struct bundle_header *h, struct reader *from, struct buf *line,
                            struct err *err)
{
    buf_reset(line);
    for (;;) {
        size_t got;
        char c;
        int code = reader_read(from, &c, 1, &got, err);
        if (code < 0)
            return code;
        if (got == 0)
            return header_bad(err, "it ends too early");
        h->pack_at++;
        if (c == '\n')
            return 0;
        buf_append_char(line, c);
        if (buf_error(line) < 0)
            return header_bad(err, "a line is too long");
    }
}

/* Adds a point (a line of history); `text` is `<seconds>/was/<name>` or `<seconds>/new/<name>`. */
static int header_add_point(struct bundle_header *h, const unsigned char *id, struct str text,
                            struct err *err)
{
    struct header_point p = {0};
    struct str seconds, kind, name;

    str_cut(text, '/', &seconds, &text);
    str_cut(text, '/', &kind, &name);
    p.is_new = str_eq(kind, STR("new"));
    if (str_i64(seconds, &p.at_s) < 0 || p.at_s < 0 || (!p.is_new && !str_eq(kind, STR("was"))))
        return header_bad(err, "a line of history cannot be read");
    if (h->points.len == HEADER_POINTS_MAX)
        return err_set(err, ERR_TOO_LARGE, "the bundle has more than %d lines of history",
                       HEADER_POINTS_MAX);
    if (h->points.len && vec_last(&h->points)->at_s > p.at_s)
        return header_bad(err, "its lines of history are not in order");
    p.name = arena_fmt(&h->refs.arena, "refs/" STR_FMT, STR_ARG(name));
    if (arena_error(&h->refs.arena) < 0 || !git_ref_name_ok(p.name))
        return header_bad(err, "a line of history has no name");
    memcpy(p.id, id, sizeof(p.id));
    vec_push(&h->points, p);
    return 0;
}

/* The writer puts the branch that HEAD names after the other branches. So if the last branch of the
 * header (`last`) has HEAD's id, it is the branch of HEAD. git assumes the same. */
static void header_find_head(struct bundle_header *h, struct str last)
{
    const struct git_ref *ref = last.len ? git_refs_find(&h->refs, last) : NULL;

    if (ref && h->refs.has_head && memcmp(ref->id, h->refs.head, sizeof(ref->id)) == 0)
        h->refs.head_target = ref->name;
}

static int header_add_line(struct bundle_header *h, struct str line, struct err *err)
{
    static const struct str point = {point_prefix, sizeof(point_prefix) - 1};
    unsigned char id[GIT_ID_MAX] = {0};
    struct str hex, name;
    uint64_t left_out = h->refs.left_out;

    if (line.p[0] == '-')
        return header_bad(err, "it needs objects of another bundle");
    if (!str_cut(line, ' ', &hex, &name) || !hex_parse(hex, id, git_id_len(h->refs.is_sha256)))
        return header_bad(err, "a line has no id");
    if (str_starts(name, point))
        return header_add_point(h, id, str_skip(name, point.len), err);
    int code = git_refs_add(&h->refs, hex, name, err);
    if (code == 0 && h->refs.left_out > left_out)
        return header_bad(err, "it has a ref that weir does not write");
    return code;
}

static int header_signature(struct bundle_header *h, struct reader *from, struct buf *line,
                            struct err *err)
{
    int code = header_read_line(h, from, line, err);

    if (code < 0)
        return code;
    if (str_eq(buf_str(line), STR("# v2 git bundle")))
        return 0;
    if (!str_eq(buf_str(line), STR("# v3 git bundle")))
        return header_bad(err, "it is not a bundle");
    code = header_read_line(h, from, line, err);
    h->refs.is_sha256 = str_eq(buf_str(line), STR("@object-format=sha256"));
    if (code == 0 && !h->refs.is_sha256)
        return header_bad(err, "it has an unknown kind of ids");
    return code;
}

int bundle_header_read(struct bundle_header *h, struct reader *from, struct err *err)
{
    struct buf line = BUF_INIT(HEADER_LINE_MAX);
    struct str last = STR_EMPTY; /* the last branch */
    int code = header_signature(h, from, &line, err);

    while (code == 0 && (code = header_read_line(h, from, &line, err)) == 0 && line.len) {
        code = header_add_line(h, buf_str(&line), err);
        if (code == 0 && h->refs.list.len &&
            str_starts(vec_last(&h->refs.list)->name, STR("refs/heads/")))
            last = vec_last(&h->refs.list)->name;
    }
    buf_release(&line);
    if (code == 0 && git_refs_sort(&h->refs, err) < 0)
        code = err_wrap(err, ERR_CORRUPT, "the bundle's header is damaged");
    if (code == 0)
        header_find_head(h, last);
    return code;
}

/* --- history --- */

static int header_push_point(struct bundle_header *next, struct header_point p, struct err *err)
{
    if (next->points.len == HEADER_POINTS_MAX)
        return err_set(err, ERR_UNSUPPORTED,
                       "the bundle has %d lines of history, and no room for more",
                       HEADER_POINTS_MAX);
    p.name = arena_str(&next->refs.arena, p.name);
    vec_push(&next->points, p);
    return 0;
}

static int header_push_ref(struct bundle_header *next, const struct git_ref *ref, bool is_new,
                           int64_t now_s, struct err *err)
{
    struct header_point p = {.at_s = now_s, .is_new = is_new, .name = ref->name};

    memcpy(p.id, ref->id, sizeof(p.id));
    return header_push_point(next, p, err);
}

/* Adds the points (lines of history) of this sync. It compares the old refs with the refs that were
 * found; both lists are sorted. */
static int header_compare(struct bundle_header *next, const struct git_refs *old,
                          const struct git_refs *found, int64_t now_s, struct err *err)
{
    size_t i = 0, j = 0;
    int code = 0;

    while (code == 0 && (i < old->list.len || j < found->list.len)) {
        const struct git_ref *was = i < old->list.len ? &old->list.items[i] : NULL;
        const struct git_ref *is = j < found->list.len ? &found->list.items[j] : NULL;
        int order = i >= old->list.len     ? 1
                    : j >= found->list.len ? -1
                                           : str_cmp(was->name, is->name);
        i += order <= 0;
        j += order >= 0;
        if (order > 0)
            code = header_push_ref(next, is, true, now_s, err);
        else if (order < 0 || memcmp(was->id, is->id, sizeof(was->id)) != 0)
            code = header_push_ref(next, was, false, now_s, err);
    }
    return code;
}

static void git_refs_copy(struct git_refs *to, const struct git_refs *from)
{
    to->has_head = from->has_head;
    memcpy(to->head, from->head, sizeof(to->head));
    to->head_target = arena_str(&to->arena, from->head_target);
    vec_each (&from->list, const struct git_ref *, ref) {
        struct git_ref copy = *ref;
        copy.name = arena_str(&to->arena, ref->name);
        vec_push(&to->list, copy);
    }
}

/* Returns the time, in seconds, of the points of this sync. It is later than that of any earlier
 * sync, even if the clock has not advanced or was set back. If two syncs had the same time, the
 * lines `<second>/was/heads/a` and `<second>/was/heads/a/b` could both exist, and git accepts only
 * one of them: a ref cannot be a folder too. Within one sync such names do not occur. */
static int64_t header_second(const struct bundle_header *old, const struct header_time *t)
{
    int64_t last = old->points.len ? old->points.items[old->points.len - 1].at_s : -1;

    if (t->same_sync_s && t->same_sync_s >= last)
        return t->same_sync_s;
    return t->now_s > last ? t->now_s : last + 1;
}

/* The names of the refs and of the lines of history share the memory of one arena. Refs that a
 * server has sent fit into it. Together with a long history they may not, and another try would
 * fail too. */
static int header_check_memory(const struct bundle_header *next, struct err *err)
{
    return arena_error(&next->refs.arena) < 0
               ? err_set(err, ERR_UNSUPPORTED,
                         "the names of the refs and of the history take more than %d MiB of memory",
                         GIT_REFS_BYTES_MAX / (int)MIB)
               : 0;
}

int bundle_header_follow(struct bundle_header *next, const struct bundle_header *old,
                         const struct git_refs *found, const struct header_time *t, struct err *err)
{
    int code = 0;

    git_refs_copy(&next->refs, found);
    if (!old)
        return arena_error(&next->refs.arena) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
    next->points_s = header_second(old, t);
    for (size_t i = 0; i < old->points.len && code == 0; i++)
        code = header_push_point(next, old->points.items[i], err);
    if (code == 0)
        code = header_compare(next, &old->refs, found, next->points_s, err);
    return code < 0 ? code : header_check_memory(next, err);
}

static int point_order(const void *a, const void *b)
{
    const struct header_point *l = *(const struct header_point *const *)a;
    const struct header_point *r = *(const struct header_point *const *)b;
    int order = str_cmp(l->name, r->name);

    return order ? order : (l > r) - (l < r);
}

/* Returns the first point of each ref after `at_s`, sorted by name. The caller frees the list. */
static const struct header_point **points_after(const struct bundle_header *h, int64_t at_s,
                                                size_t *count)
{
    const struct header_point **list = xzalloc((h->points.len + 1) * sizeof(struct header_point *));
    size_t n = 0, kept = 0;

    vec_each (&h->points, const struct header_point *, p)
        if (p->at_s > at_s)
            list[n++] = p;
    qsort(list, n, sizeof(struct header_point *), point_order);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || !str_eq(list[i]->name, list[i - 1]->name))
            list[kept++] = list[i];
    *count = kept;
    return list;
}

static void refs_push(struct git_refs *r, struct str name, const unsigned char *id)
{
    struct git_ref ref = {.name = arena_str(&r->arena, name)};

    memcpy(ref.id, id, sizeof(ref.id));
    vec_push(&r->list, ref);
}

/* The first point of a ref after that time decides. A `was` point has the tip that the ref had. A
 * `new` point means that the ref did not exist yet. A ref without such a point had its present
 * tip. */
int bundle_header_at(struct git_refs *out, const struct bundle_header *h, int64_t at_s,
                     struct err *err)
{
    size_t i = 0, j = 0, count;
    const struct header_point **points = points_after(h, at_s, &count);

    while (i < h->refs.list.len || j < count) {
        const struct git_ref *ref = i < h->refs.list.len ? &h->refs.list.items[i] : NULL;
        const struct header_point *p = j < count ? points[j] : NULL;
        int order = i >= h->refs.list.len ? 1 : j >= count ? -1 : str_cmp(ref->name, p->name);
        i += order <= 0;
        j += order >= 0;
        if (order < 0)
            refs_push(out, ref->name, ref->id);
        else if (!p->is_new)
            refs_push(out, p->name, p->id);
    }
    free(points);
    out->head_target = arena_str(&out->arena, h->refs.head_target);
    const struct git_ref *head = git_refs_find(out, out->head_target);
    out->has_head = h->refs.has_head && head;
    if (out->has_head)
        memcpy(out->head, head->id, sizeof(out->head));
    return arena_error(&out->arena) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}
