/* Lists of a forge as JSON lines: issues, pull requests, releases.
 *
 * New items are first written into a scratch file. If there are any, weir compares hashes of the
 * new lines with hashes of the lines in the stored object, so that no line is stored twice. It then
 * puts the object again, with the new lines after the old ones. Only after that the checkpoint of
 * the list changes. So a crash repeats work and loses nothing. */
#include "archive/extras_int.h"
#include "archive/link.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "os/file.h"
#include "os/scratch.h"

#include <stdlib.h>

enum {
    /* The checkpoint is this much earlier than the answer, because replicas of the forge may lag
     * behind. */
    LISTS_OVERLAP_MS = MS_PER_MINUTE,
    LISTS_HASHES_MAX = 2 * 1000 * 1000,
    LISTS_PIECE = 64 * 1024,
};

/* New lines of one list, collected in a scratch file. */
struct extra_spool {
    struct extras *x;
    const struct extra_list *list;
    struct str since; /* the checkpoint; empty: weir asks for all items */
    int fd;
    uint64_t size;         /* bytes in the scratch file */
    uint64_t count;        /* lines */
    int64_t date_ms;       /* the server's time in its first answer about the list */
    uint64_t digest;       /* hash of all lines, for lists without a checkpoint */
    VEC(uint64_t) hashes;  /* sorted hashes of the lines in the stored object */
    size_t hashes_reached; /* bytes that x->hold has paid for */
};

/* --- gathering --- */

struct extra_item {
    struct str updated_at;
};
static const struct forge_field extra_item_rows[] = {
    {"updated_at", FORGE_FIELD_TEXT, offsetof(struct extra_item, updated_at)},
};
static const struct forge_fields extra_item_fields = FORGE_FIELDS(extra_item_rows);

/* Whether the item was changed before the checkpoint. */
static bool extra_is_old(const struct extra_spool *l, struct str raw)
{
    struct arena a = ARENA_INIT(64 * KIB);
    struct extra_item item = {0};
    struct scan s;

    scan_init(&s, raw);
    forge_read_object(&s, &a, &extra_item_fields, &item);
    int64_t changed, since;
    bool old = clock_parse_iso(item.updated_at, &changed) == 0 &&
               clock_parse_iso(l->since, &since) == 0 && changed < since;
    arena_release(&a);
    return old;
}

/* The hash of a line. The hash leaves out counts of downloads. Otherwise each download of a
 * release's file would add a line. */
static uint64_t extra_line_hash(struct str line, uint64_t seed)
{
    struct str mark = STR("\"download_count\":");
    ptrdiff_t at;

    while ((at = str_find(line, mark)) >= 0) {
        seed = hash_xxh3(str_head(line, (size_t)at), seed);
        line = str_skip(line, (size_t)at + mark.len);
        while (line.len && memchr(" 0123456789", line.p[0], 11))
            line = str_skip(line, 1);
    }
    return hash_xxh3(line, seed);
}

/* Writes one line into the scratch file. Newlines become blanks; this is safe, because JSON has
 * newlines only between tokens. */
static int extra_write_line(struct extra_spool *l, const char *type, struct str raw,
                            struct err *err)
{
    struct buf line = BUF_INIT(EXTRA_LINE_MAX + 256);

    if (raw.len > EXTRA_LINE_MAX) {
        l->x->left_out++;
        return 0;
    }
    int code = extras_text(l->x, raw.len, err);
    if (code < 0)
        return code;
    buf_appendf(&line, "{\"type\":\"%s\",\"data\":", type);
    size_t begin = line.len;
    buf_append_str(&line, raw);
    for (size_t i = begin; i < line.len; i++)
        if (line.p[i] == '\n' || line.p[i] == '\r')
            line.p[i] = ' ';
    buf_append_z(&line, "}\n");
    code = buf_error(&line);
    if (code == 0 && l->size + line.len > l->x->scratch_max)
        code = err_set(err, ERR_TOO_LARGE, "the list of %s is larger than archive.scratch",
                       l->list->name);
    if (code == 0)
        code = file_write_all(l->fd, line.p, line.len, err);
    l->size += line.len;
    l->count++;
    l->digest = extra_line_hash(buf_str(&line), l->digest);
    buf_release(&line);
    return code;
}

/* Writes the items of a page into the scratch file. *done is set if the rest of the list is older
 * than the checkpoint. */
static int extra_take_page(struct extra_spool *l, const struct extra_source *source,
                           struct str body, bool *done, struct forge_fault *fault, struct err *err)
{
    struct scan s;
    int code = 0;

    scan_init(&s, body);
    scan_open(&s, '[');
    while (code == 0 && scan_more(&s)) {
        struct str raw = STR_EMPTY;
        if (scan_peek(&s) != SCAN_OBJECT)
            scan_fail(&s, "an item is not an object");
        scan_skip(&s, &raw);
        if (s.wrong)
            break;
        if (source->newest_first && extra_is_old(l, raw))
            *done = true;
        else if (!*done)
            code = extra_write_line(l, source->type, raw, err);
    }
    if (code < 0)
        return extras_storage(fault, code, err);
    return scan_end(&s, err) < 0 ? forge_malformed(fault, ERR_PARSE, err) : 0;
}

static struct str extra_first_url(const struct extra_spool *l, const struct extra_source *source)
{
    struct str path = extras_path(l->x, source->path, l->x->id);
    struct buf out = {0};

    buf_append_str(&out, path);
    if (source->since && l->since.len) {
        buf_appendf(&out, "%c%s=", str_chr(path, '?') < 0 ? '?' : '&', source->since);
        url_encode(&out, l->since, false);
    }
    struct str url = arena_str(l->x->arena, buf_str(&out));
    buf_release(&out);
    return url;
}

/* Reads one list of the forge to its end. A list of a feature that is switched off counts as
 * empty. */
static int extra_gather(struct extra_spool *l, const struct extra_source *source,
                        struct forge_fault *fault, struct err *err)
{
    struct buf body = BUF_INIT(FORGE_PAGE_BYTES_MAX);
    struct forge_walk w;
    bool done = false;
    int code = 0;

    forge_walk_init(&w, l->x->session, l->x->arena, extra_first_url(l, source));
    while (code == 0 && w.next.len && !done) {
        struct forge_page page;
        code = forge_walk_step(&w, NULL, STR_EMPTY, &body, &page, fault, err);
        if (code == ERR_NOT_FOUND && extras_is_absent(fault)) {
            code = 0;
            break;
        }
        if (code == 0)
            code = extra_take_page(l, source, buf_str(&body), &done, fault, err);
    }
    if (w.date_ms && (!l->date_ms || w.date_ms < l->date_ms))
        l->date_ms = w.date_ms;
    forge_walk_release(&w);
    buf_release(&body);
    return code;
}

/* --- lines --- */

typedef int extra_line_fn(struct extra_spool *l, void *ctx, struct str line, struct err *err);

/* Calls each() for every line of a reader, without the newline. ERR_CORRUPT: a line is longer than
 * any line that weir writes. */
static int extra_each_line(struct extra_spool *l, struct reader *from, extra_line_fn *each,
                           void *ctx, struct err *err)
{
    struct buf text = BUF_INIT(EXTRA_LINE_MAX + LISTS_PIECE + 256);
    size_t got = 1;
    int code = 0;

    while (code == 0 && got) {
        char *room = buf_reserve(&text, LISTS_PIECE);
        if (!room) {
            code = err_set(err, ERR_CORRUPT, "a line of the list is too long");
            break;
        }
        code = reader_read(from, room, LISTS_PIECE, &got, err);
        if (code < 0)
            break;
        buf_commit(&text, got);
        code = extras_text(l->x, text.cap, err);
        if (code < 0)
            break;
        struct str rest = buf_str(&text), line;
        while (code == 0 && str_chr(rest, '\n') >= 0) {
            str_cut(rest, '\n', &line, &rest);
            code = each(l, ctx, line, err);
        }
        buf_consume(&text, text.len - rest.len);
    }
    buf_release(&text);
    return code;
}

static int extra_hash_line(struct extra_spool *l, void *ctx, struct str line, struct err *err)
{
    (void)ctx;
    if (l->hashes.len == LISTS_HASHES_MAX)
        return 0;
    vec_push(&l->hashes, extra_line_hash(line, 0));
    return large_reach(l->x->hold, &l->hashes_reached, l->hashes.len * sizeof(uint64_t), err);
}

static int extra_hash_order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static bool extra_is_stored(const struct extra_spool *l, struct str line)
{
    uint64_t hash = extra_line_hash(line, 0);

    return l->hashes.len &&
           bsearch(&hash, l->hashes.items, l->hashes.len, sizeof(hash), extra_hash_order) != NULL;
}

/* Writes a line that the object does not have yet to the file that is put. `ctx` is the descriptor
 * of that file. */
static int extra_copy_line(struct extra_spool *l, void *ctx, struct str line, struct err *err)
{
    if (extra_is_stored(l, line))
        return 0;
    l->count++;
    l->size += line.len + 1;
    int code = file_write_all(*(int *)ctx, line.p, line.len, err);
    return code == 0 ? file_write_all(*(int *)ctx, "\n", 1, err) : code;
}

/* Removes the lines that the object already has from the scratch file. */
static int extra_filter(struct extra_spool *l, struct err *err)
{
    struct file_reader from;
    int fd = -1, code;

    qsort(l->hashes.items, l->hashes.len, sizeof(*l->hashes.items), extra_hash_order);
    code = scratch_file(&fd, l->x->scratch, err);
    if (code < 0)
        return code;
    file_reader_init(&from, (struct file_range){l->fd, 0, l->size}, false);
    l->size = l->count = 0;
    code = extra_each_line(l, &from.reader, extra_copy_line, &fd, err);
    fd_close(&l->fd);
    l->fd = fd;
    return code;
}

/* --- storing --- */

/* A reader that returns the bytes of one reader, and after its end the bytes of another. */
struct extra_joined {
    struct reader reader;
    struct reader *first, *second;
};

static int extra_joined_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct extra_joined *j = (struct extra_joined *)r;
    int code = 0;

    *got = 0;
    if (j->first)
        code = reader_read(j->first, to, len, got, err);
    if (code < 0 || *got)
        return code;
    j->first = NULL;
    return reader_read(j->second, to, len, got, err);
}

static const struct reader_ops extra_joined_ops = {.read = extra_joined_read};

/* Puts the object: its old lines, followed by the new ones. */
static int extra_put(struct extra_spool *l, struct str key, const struct object_info *old,
                     struct err *err)
{
    struct shelf_body body = {0};
    struct file_reader added;
    struct http_header headers[] = {{STR("content-type"), STR("application/x-ndjson")},
                                    shelf_mtime(l->x->arena, l->x->now_ms)};
    struct put_options o = {.meta = {.headers = headers, .header_count = ARRAY_SIZE(headers)}};
    struct put_result result;
    int code = 0;

    if (old)
        code = shelf_get_if(l->x->shelf, l->x->arena, old, NULL, &body, err);
    if (code < 0)
        return code;
    if (old)
        o.conditions.if_match = arena_fmt(l->x->arena, "\"" STR_FMT "\"", STR_ARG(old->etag));
    else
        o.conditions.if_none_match = STR("*");
    file_reader_init(&added, (struct file_range){l->fd, 0, l->size}, false);
    struct extra_joined joined = {{&extra_joined_ops}, body.body, &added.reader};
    code = shelf_put(l->x->shelf, l->x->arena, key, &joined.reader, (old ? old->size : 0) + l->size,
                     &o, &result, err);
    shelf_body_close(&body);
    return code;
}

/* Adds the collected lines to the list's object. */
static int extra_store(struct extra_spool *l, struct err *err)
{
    struct str key = extras_key(l->x, arena_fmt(l->x->arena, "%s.ndjson", l->list->name));
    struct shelf_body body = {0};
    int code = shelf_get(l->x->shelf, l->x->arena, key, NULL, &body, err);
    bool there = code == 0;

    if (code == ERR_NOT_FOUND)
        code = 0;
    if (there) {
        code = extra_each_line(l, body.body, extra_hash_line, NULL, err);
        shelf_body_close(&body);
        if (code == 0)
            code = extra_filter(l, err);
    }
    if (code == 0 && l->count) {
        code = extra_put(l, key, there ? &body.info : NULL, err);
        if (code == 0) {
            l->x->lines += l->count;
            l->x->bytes += l->size;
        }
    }
    return code;
}

/* --- files of releases --- */

struct extra_release {
    struct forge_fault *fault;
};

static int extra_line_assets(struct extra_spool *l, void *ctx, struct str line, struct err *err)
{
    struct extra_release *r = ctx;
    struct str data = STR_EMPTY;
    struct scan s;
    char key[8];

    scan_init(&s, line);
    scan_open(&s, '{');
    while (scan_key(&s, key, sizeof(key)))
        scan_skip(&s, strcmp(key, "data") == 0 ? &data : NULL);
    if (scan_end(&s, err) < 0)
        return forge_malformed(r->fault, ERR_PARSE, err);
    return extras_assets(l->x, data, r->fault, err);
}

/* Stores the files of all releases in the list, including unchanged releases: if a file failed in
 * an earlier sync, it is tried again. */
static int extra_store_assets(struct extra_spool *l, struct forge_fault *fault, struct err *err)
{
    struct extra_release ctx = {fault};
    struct file_reader from;

    file_reader_init(&from, (struct file_range){l->fd, 0, l->size}, false);
    return extra_each_line(l, &from.reader, extra_line_assets, &ctx, err);
}

/* --- the list --- */

/* The checkpoint for the next sync. A list without a checkpoint gets a digest of its lines
 * instead. */
static struct str extra_checkpoint(const struct extra_spool *l)
{
    char text[CLOCK_ISO_LEN + 1];

    if (!l->list->sources[0].since && !l->list->sources[0].newest_first)
        return arena_fmt(l->x->arena, "%016llx", (unsigned long long)l->digest);
    if (!l->date_ms)
        return l->since;
    clock_iso((l->date_ms - LISTS_OVERLAP_MS) / MS_PER_S * MS_PER_S, text);
    return arena_fmt(l->x->arena, "%.19sZ", text); /* GitHub's form has no fractions */
}

static int extra_list_run(struct extra_spool *l, struct str *state, struct forge_fault *fault,
                          struct err *err)
{
    bool whole = !l->list->sources[0].since && !l->list->sources[0].newest_first;
    int code = 0;

    for (size_t i = 0; code == 0 && i < ARRAY_SIZE(l->list->sources); i++)
        if (l->list->sources[i].type)
            code = extra_gather(l, &l->list->sources[i], fault, err);
    if (code < 0)
        return code;
    struct str next = extra_checkpoint(l);
    if (whole && str_eq(next, *state))
        return 0;
    if (whole)
        code = extra_store_assets(l, fault, err);
    if (code == 0 && l->count) {
        code = extra_store(l, err);
        if (code < 0)
            return extras_storage(fault, code, err);
    }
    if (code == 0 && !(whole && (l->x->too_big[0] || l->x->tries_again)))
        *state = next;
    return code;
}

static int extra_list_save(struct extras *x, const struct extra_list *list, struct str *state,
                           struct forge_fault *fault, struct err *err)
{
    struct extra_spool l = {.x = x, .list = list, .fd = -1};
    int code = scratch_file(&l.fd, x->scratch, err);

    if (list->sources[0].since || list->sources[0].newest_first)
        l.since = *state;
    if (code < 0)
        return extras_storage(fault, code, err);
    code = extra_list_run(&l, state, fault, err);
    fd_close(&l.fd);
    vec_release(&l.hashes);
    return code;
}

int extras_lists(struct extras *x, const struct forge_wants *wants, struct extras_state *state,
                 struct forge_fault *fault, struct err *err)
{
    const struct forge_kind_row *row = x->session->row;
    const struct {
        const char *name;
        bool wanted;
        struct str *state;
    } lists[] = {{"issues", wants->issues, &state->issues},
                 {"pulls", wants->pulls, &state->pulls},
                 {"releases", wants->releases, &state->releases}};
    int code = 0;

    *fault = (struct forge_fault){0};
    for (size_t i = 0; code == 0 && i < row->list_count; i++)
        for (size_t k = 0; code == 0 && k < ARRAY_SIZE(lists); k++)
            if (lists[k].wanted && strcmp(lists[k].name, row->lists[i].name) == 0)
                code = extra_list_save(x, &row->lists[i], lists[k].state, fault, err);
    return code;
}
