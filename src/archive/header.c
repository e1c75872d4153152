/* Headers of bundles, with the history of refs. */
#include "archive/header.h"

#include "base/hex.h"

#include <inttypes.h>

static const char point_prefix[] = "refs/weir/";

void bundle_header_init(struct bundle_header *h, bool is_sha256)
{
    *h = (struct bundle_header){0};
    git_refs_init(&h->refs, is_sha256);
    h->refs.max = HEADER_BYTES_MAX;
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

static const struct str header_heads = {"refs/heads/", 11};

static void text_add_ref(struct header_text *t, const struct git_ref *ref)
{
    header_line(&t->line, git_ref_id(ref), git_id_len(t->header->refs.is_sha256),
                git_ref_name(ref));
}

/* Adds the branch of HEAD behind the last branch. */
static void text_end_branches(struct header_text *t, bool is_head)
{
    if (t->was_head && !is_head && t->last)
        text_add_ref(t, t->last);
    t->was_head = is_head;
}

static void text_add_point(struct header_text *t, const struct header_point *p)
{
    buf_append_hex(&t->line, git_ref_id(&p->ref), git_id_len(t->header->refs.is_sha256));
    buf_appendf(&t->line, " %s%" PRId64 "/%s/" STR_FMT "\n", point_prefix, p->at_s,
                p->is_new ? "new" : "was", STR_ARG(str_skip(git_ref_name(&p->ref), 5)));
}

/* Makes the next lines. Returns false at the end of the text. */
static bool text_step(struct header_text *t)
{
    const struct bundle_header *h = t->header;
    size_t i = t->step++, refs = h->refs.list.len, points = h->points.len;

    if (i == 0) {
        buf_append_z(&t->line, h->refs.is_sha256 ? "# v3 git bundle\n@object-format=sha256\n"
                                                 : "# v2 git bundle\n");
        if (h->refs.has_head)
            header_line(&t->line, h->refs.head, git_id_len(h->refs.is_sha256), STR("HEAD"));
    } else if (i <= refs) {
        const struct git_ref *ref = &h->refs.list.items[i - 1];
        text_end_branches(t, str_starts(git_ref_name(ref), header_heads));
        if (ref != t->last)
            text_add_ref(t, ref);
    } else if (i <= refs + points) {
        text_end_branches(t, false);
        text_add_point(t, &h->points.items[i - 1 - refs]);
    } else if (i == refs + points + 1) {
        text_end_branches(t, false);
        buf_append_char(&t->line, '\n');
        buf_append_str(&t->line, t->tail);
    } else {
        return false;
    }
    return true;
}

static int text_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct header_text *t = container_of(r, struct header_text, reader);

    (void)err;
    for (*got = 0; *got < len;) {
        if (t->taken == t->line.len) {
            buf_reset(&t->line);
            t->taken = 0;
            if (!text_step(t))
                break;
        }
        size_t n = size_min(len - *got, t->line.len - t->taken);
        memcpy((char *)to + *got, t->line.p + t->taken, n);
        t->taken += n;
        *got += n;
    }
    return 0;
}

void header_text_rewind(struct header_text *t)
{
    buf_reset(&t->line);
    t->taken = t->step = 0;
    t->was_head = false;
}

void header_text_init(struct header_text *t, const struct bundle_header *h, struct str tail)
{
    static const struct reader_ops ops = {.read = text_read};
    const struct git_ref *last = git_refs_find(&h->refs, h->refs.head_target);

    *t = (struct header_text){.reader = {&ops}, .header = h, .tail = tail};
    if (last && str_starts(git_ref_name(last), header_heads))
        t->last = last;
}

void header_text_release(struct header_text *t)
{
    buf_release(&t->line);
    *t = (struct header_text){0};
}

void bundle_header_write(struct buf *out, const struct bundle_header *h)
{
    struct header_text t;

    header_text_init(&t, h, STR_EMPTY);
    while (text_step(&t)) {
        buf_append_str(out, buf_str(&t.line));
        buf_reset(&t.line);
    }
    header_text_release(&t);
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
    struct buf full = BUF_INIT(GIT_REF_NAME_MAX + 64);
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
    buf_append_z(&full, "refs/");
    buf_append_str(&full, name);
    int code = git_ref_name_ok(buf_str(&full))
                   ? git_refs_store(&p.ref, &h->refs, id, buf_str(&full), sizeof(p), err)
                   : header_bad(err, "a line of history has no name");
    buf_release(&full);
    if (code == 0)
        vec_push(&h->points, p);
    return code;
}

/* The writer puts the branch that HEAD names after the other branches. So if the last branch of the
 * header (`last`) has HEAD's id, it is the branch of HEAD. git assumes the same. */
static void header_find_head(struct bundle_header *h, struct str last)
{
    const struct git_ref *ref = last.len ? git_refs_find(&h->refs, last) : NULL;

    if (ref && h->refs.has_head &&
        memcmp(git_ref_id(ref), h->refs.head, git_id_len(h->refs.is_sha256)) == 0)
        h->refs.head_target = git_ref_name(ref);
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
            str_starts(git_ref_name(vec_last(&h->refs.list)), header_heads))
            last = git_ref_name(vec_last(&h->refs.list));
    }
    buf_release(&line);
    if (code == 0 && git_refs_sort(&h->refs, err) < 0)
        code = err_wrap(err, ERR_CORRUPT, "the bundle's header is damaged");
    if (code == 0)
        header_find_head(h, last);
    return code;
}

/* --- history --- */

/* Bytes that a ref takes in the memory of a header that was read; `in_list` are those of its item
 * in the list. */
static size_t header_ref_bytes(const struct git_refs *r, const struct git_ref *ref, size_t in_list)
{
    return 2 + git_ref_name(ref).len + git_id_len(r->is_sha256) + in_list;
}

/* Counts the memory that a later sync needs to read the header. The refs that a server has sent fit
 * into it. Together with a long history they may not, and another try would fail too. */
static int header_count_bytes(struct bundle_header *next, size_t bytes, struct err *err)
{
    next->bytes += bytes;
    return next->bytes <= HEADER_BYTES_MAX
               ? 0
               : err_set(err, ERR_UNSUPPORTED,
                         "the names of the refs and of the history take more than %d MiB of memory",
                         HEADER_BYTES_MAX / (int)MIB);
}

static int header_push_point(struct bundle_header *next, const struct header_point *p,
                             struct err *err)
{
    if (next->points.len == HEADER_POINTS_MAX)
        return err_set(err, ERR_UNSUPPORTED,
                       "the bundle has %d lines of history, and no room for more",
                       HEADER_POINTS_MAX);
    vec_push(&next->points, *p);
    return header_count_bytes(next, header_ref_bytes(&next->refs, &p->ref, sizeof(*p)), err);
}

static int header_push_ref(struct bundle_header *next, const struct git_ref *ref, bool is_new,
                           int64_t now_s, struct err *err)
{
    struct header_point p = {.at_s = now_s, .is_new = is_new, .ref = *ref};

    return header_push_point(next, &p, err);
}

/* Adds the points (lines of history) of this sync. It compares the old refs with the refs that were
 * found; both lists are sorted. */
static int header_compare(struct bundle_header *next, const struct git_refs *old,
                          const struct git_refs *found, int64_t now_s, struct err *err)
{
    size_t i = 0, j = 0, id_len = git_id_len(found->is_sha256);
    int code = 0;

    while (code == 0 && (i < old->list.len || j < found->list.len)) {
        const struct git_ref *was = i < old->list.len ? &old->list.items[i] : NULL;
        const struct git_ref *is = j < found->list.len ? &found->list.items[j] : NULL;
        int order = i >= old->list.len     ? 1
                    : j >= found->list.len ? -1
                                           : str_cmp(git_ref_name(was), git_ref_name(is));
        i += order <= 0;
        j += order >= 0;
        if (order > 0)
            code = header_push_ref(next, is, true, now_s, err);
        else if (order < 0 || memcmp(git_ref_id(was), git_ref_id(is), id_len) != 0)
            code = header_push_ref(next, was, false, now_s, err);
    }
    return code;
}

static int header_borrow_refs(struct bundle_header *next, const struct git_refs *from,
                              struct err *err)
{
    struct git_refs *to = &next->refs;
    size_t bytes = 0;

    to->has_head = from->has_head;
    memcpy(to->head, from->head, sizeof(to->head));
    to->head_target = from->head_target;
    vec_grow(&to->list, from->list.len);
    vec_each (&from->list, const struct git_ref *, ref) {
        vec_push(&to->list, *ref);
        bytes += header_ref_bytes(to, ref, sizeof(*ref));
    }
    return header_count_bytes(next, bytes, err);
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

int bundle_header_follow(struct bundle_header *next, const struct bundle_header *old,
                         const struct git_refs *found, const struct header_time *t, struct err *err)
{
    int code = header_borrow_refs(next, found, err);

    if (!old || code < 0)
        return code;
    next->points_s = header_second(old, t);
    for (size_t i = 0; i < old->points.len && code == 0; i++)
        code = header_push_point(next, &old->points.items[i], err);
    return code < 0 ? code : header_compare(next, &old->refs, found, next->points_s, err);
}

static int point_order(const void *a, const void *b)
{
    const struct header_point *l = *(const struct header_point *const *)a;
    const struct header_point *r = *(const struct header_point *const *)b;
    int order = str_cmp(git_ref_name(&l->ref), git_ref_name(&r->ref));

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
        if (i == 0 || !str_eq(git_ref_name(&list[i]->ref), git_ref_name(&list[i - 1]->ref)))
            list[kept++] = list[i];
    *count = kept;
    return list;
}

/* The first point of a ref after that time decides. A `was` point has the tip that the ref had. A
 * `new` point means that the ref did not exist yet. A ref without such a point had its present
 * tip. */
void bundle_header_at(struct git_refs *out, const struct bundle_header *h, int64_t at_s)
{
    size_t i = 0, j = 0, count;
    const struct header_point **points = points_after(h, at_s, &count);

    while (i < h->refs.list.len || j < count) {
        const struct git_ref *ref = i < h->refs.list.len ? &h->refs.list.items[i] : NULL;
        const struct header_point *p = j < count ? points[j] : NULL;
        int order = i >= h->refs.list.len ? 1
                    : j >= count          ? -1
                                          : str_cmp(git_ref_name(ref), git_ref_name(&p->ref));
        i += order <= 0;
        j += order >= 0;
        if (order < 0)
            vec_push(&out->list, *ref);
        else if (!p->is_new)
            vec_push(&out->list, p->ref);
    }
    free(points);
    out->head_target = h->refs.head_target;
    const struct git_ref *head = git_refs_find(out, out->head_target);
    out->has_head = h->refs.has_head && head;
    if (out->has_head)
        memcpy(out->head, git_ref_id(head), git_id_len(out->is_sha256));
}
