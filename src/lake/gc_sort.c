/* Sorts strings that do not fit into memory. When the strings in memory reach the limit, they are
 * sorted and written to a file, which is called a run here. Reading merges the runs. The files have
 * no names, so a process that dies leaves none behind. */
#include "lake/gc_int.h"

#include "base/ids.h"
#include "base/vec.h"
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { RUN_BUFFER = 64 << 10, RUN_LENGTH = 2 /* bytes of a string's length */ };

/* A run, which is a sorted file, and the reader's position in it. */
struct sort_run {
    int fd;
    /* size of the file; offset of the first byte that is not in the buffer yet */
    uint64_t size, at;
    struct buf buffer; /* bytes that were read; those from `used` on were not returned yet */
    size_t used;
    struct str text; /* the present string */
    bool is_at_end;
};

struct gc_sorter {
    char *folder;
    size_t max_bytes;
    char *bytes; /* strings in memory */
    size_t len;
    VEC(struct str) texts;
    VEC(struct sort_run *) runs;
    size_t next;     /* when there are no runs: index of the next string in memory */
    struct buf last; /* the string that was returned last */
    bool has_last;
    bool has_ended; /* gc_sorter_has() has skipped all strings */
};

/* --- runs --- */

static void sort_run_free(struct sort_run *r)
{
    fd_close(&r->fd);
    buf_release(&r->buffer);
    free(r);
}

static int sort_run_open(struct sort_run **out, const char *folder, struct err *err)
{
    char id[ID_HEX_LEN + 1];
    struct buf path = {0};

    id_hex(id);
    buf_appendf(&path, "%s/gc-%s", folder, id);
    int fd = open(path.p, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int code = fd < 0 ? err_errno(err, errno, "cannot make %s", path.p) : 0;
    if (code == 0) {
        unlink(path.p);
        *out = xzalloc(sizeof(**out));
        (*out)->fd = fd;
    }
    buf_release(&path);
    return code;
}

static int sort_run_flush(struct sort_run *r, struct err *err)
{
    int code = file_write_all(r->fd, r->buffer.p, r->buffer.len, err);

    r->size += r->buffer.len;
    buf_reset(&r->buffer);
    return code;
}

static int sort_run_add(struct sort_run *r, struct str text, struct err *err)
{
    buf_append_le16(&r->buffer, (uint16_t)text.len);
    buf_append_str(&r->buffer, text);
    return r->buffer.len >= RUN_BUFFER ? sort_run_flush(r, err) : 0;
}

/* Moves the unread bytes to the front of the buffer, and reads more bytes after them. */
static int sort_run_fill(struct sort_run *r, struct err *err)
{
    buf_consume(&r->buffer, r->used);
    r->used = 0;
    size_t len = (size_t)(r->size - r->at < RUN_BUFFER ? r->size - r->at : RUN_BUFFER);
    char *room = buf_reserve(&r->buffer, len + 1);
    int code =
        room ? file_pread_full(r->fd, room, len, (off_t)r->at, err) : err_code(err, ERR_NO_MEMORY);
    if (code == 0) {
        buf_commit(&r->buffer, len);
        r->at += len;
    }
    return code;
}

/* Moves to the next string. After the last string sets is_at_end. */
static int sort_run_next(struct sort_run *r, struct err *err)
{
    int code = 0;

    if (r->buffer.len - r->used < RUN_LENGTH + GC_STRING_MAX && r->at < r->size)
        code = sort_run_fill(r, err);
    if (code < 0)
        return code;
    struct str rest = str_skip(buf_str(&r->buffer), r->used);
    r->is_at_end = rest.len == 0;
    if (r->is_at_end)
        return 0;
    size_t len = (unsigned char)rest.p[0] | (size_t)(unsigned char)rest.p[1] << 8;
    r->text = str_head(str_skip(rest, RUN_LENGTH), len);
    r->used += RUN_LENGTH + len;
    return 0;
}

/* --- collecting --- */

int gc_sorter_open(struct gc_sorter **out, const char *folder, size_t memory_bytes, struct err *err)
{
    int code = folder ? dir_make(folder, 0700, err)
                      : err_set(err, ERR_UNAVAILABLE, "the lake has no folder to sort in");

    if (code < 0)
        return code;
    struct gc_sorter *s = xzalloc(sizeof(*s));
    s->folder = str_dup(str_z(folder));
    s->max_bytes = size_max(memory_bytes, 2 * GC_STRING_MAX);
    s->bytes = xzalloc(s->max_bytes);
    *out = s;
    return 0;
}

void gc_sorter_close(struct gc_sorter *s)
{
    if (!s)
        return;
    vec_each (&s->runs, struct sort_run **, r)
        sort_run_free(*r);
    vec_release(&s->runs);
    vec_release(&s->texts);
    buf_release(&s->last);
    free(s->bytes);
    free(s->folder);
    free(s);
}

static int sort_text_order(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static void sorter_sort_memory(struct gc_sorter *s)
{
    if (s->texts.len)
        qsort(s->texts.items, s->texts.len, sizeof(*s->texts.items), sort_text_order);
}

static int sorter_begin_run(struct sort_run *r, struct err *err)
{
    int code = sort_run_flush(r, err);

    return code < 0 ? code : sort_run_next(r, err);
}

/* Merges all runs into one, so that their number stays bounded. */
static int sorter_merge(struct gc_sorter *s, struct err *err)
{
    struct sort_run *one = NULL;
    struct str text;
    int code = sort_run_open(&one, s->folder, err);

    while (code == 0 && (code = gc_sorter_next(s, &text, err)) == 0)
        code = sort_run_add(one, text, err);
    if (code == ERR_END && one)
        code = sorter_begin_run(one, err);
    vec_each (&s->runs, struct sort_run **, r)
        sort_run_free(*r);
    s->runs.len = 0;
    s->has_last = false;
    if (one)
        vec_push(&s->runs, one);
    return code;
}

/* Writes the strings in memory to a new run. */
static int sorter_spill(struct gc_sorter *s, struct err *err)
{
    struct sort_run *run = NULL;
    int code = sort_run_open(&run, s->folder, err);

    sorter_sort_memory(s);
    for (size_t i = 0; i < s->texts.len && code == 0; i++)
        if (i == 0 || !str_eq(s->texts.items[i], s->texts.items[i - 1]))
            code = sort_run_add(run, s->texts.items[i], err);
    if (code == 0)
        code = sorter_begin_run(run, err);
    if (run)
        vec_push(&s->runs, run);
    s->texts.len = 0;
    s->len = 0;
    return code == 0 && s->runs.len >= GC_SORT_RUNS ? sorter_merge(s, err) : code;
}

int gc_sorter_add(struct gc_sorter *s, struct str text, struct err *err)
{
    int code = text.len > GC_STRING_MAX ? err_code(err, ERR_TOO_LARGE) : 0;

    /* The limit includes the memory of the array `texts`. */
    if (code == 0 && s->len + text.len + (s->texts.len + 1) * sizeof(text) > s->max_bytes)
        code = sorter_spill(s, err);
    if (code < 0 || text.len == 0)
        return code;
    memcpy(s->bytes + s->len, text.p, text.len);
    vec_push(&s->texts, str_n(s->bytes + s->len, text.len));
    s->len += text.len;
    return 0;
}

/* --- reading --- */

int gc_sorter_sort(struct gc_sorter *s, struct err *err)
{
    sorter_sort_memory(s);
    return s->runs.len && s->texts.len ? sorter_spill(s, err) : 0;
}

/* Takes the smallest string of all runs. */
static int sorter_take(struct gc_sorter *s, struct buf *out, struct err *err)
{
    struct sort_run *least = NULL;

    vec_each (&s->runs, struct sort_run **, r)
        if (!(*r)->is_at_end && (!least || str_cmp((*r)->text, least->text) < 0))
            least = *r;
    if (!least)
        return ERR_END;
    buf_reset(out);
    buf_append_str(out, least->text);
    return sort_run_next(least, err);
}

static int sorter_take_memory(struct gc_sorter *s, struct buf *out)
{
    if (s->next == s->texts.len)
        return ERR_END;
    buf_reset(out);
    buf_append_str(out, s->texts.items[s->next++]);
    return 0;
}

int gc_sorter_next(struct gc_sorter *s, struct str *out, struct err *err)
{
    struct buf next = {0};
    int code;

    do
        code = s->runs.len ? sorter_take(s, &next, err) : sorter_take_memory(s, &next);
    while (code == 0 && s->has_last && str_eq(buf_str(&next), buf_str(&s->last)));
    if (code == 0) {
        struct buf old = s->last;
        s->last = next;
        next = old;
        s->has_last = true;
        *out = buf_str(&s->last);
    }
    buf_release(&next);
    return code;
}

int gc_sorter_has(struct gc_sorter *s, struct str text, bool *out, struct err *err)
{
    struct str next;
    int code = 0;

    while (code == 0 && !s->has_ended && (!s->has_last || str_cmp(buf_str(&s->last), text) < 0)) {
        code = gc_sorter_next(s, &next, err);
        s->has_ended = code == ERR_END;
        code = code == ERR_END ? 0 : code;
    }
    *out = code == 0 && !s->has_ended && str_eq(buf_str(&s->last), text);
    return code;
}

int gc_sorter_rewind(struct gc_sorter *s, struct err *err)
{
    int code = 0;

    s->next = 0;
    s->has_last = s->has_ended = false;
    for (size_t i = 0; i < s->runs.len && code == 0; i++) {
        struct sort_run *r = s->runs.items[i];
        buf_reset(&r->buffer);
        r->at = r->used = 0;
        code = sort_run_next(r, err);
    }
    return code;
}
