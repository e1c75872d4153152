/* Copies a bundle to scratch, and lets git check it there. */
#include "archive/audit_int.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/ids.h"
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    AUDIT_PIECE = 256 * 1024,
    AUDIT_ARGS_MAX = 16,
    IDX_FANOUT = 8,              /* offset of the table of counts in a pack index of version 2 */
    IDX_IDS = IDX_FANOUT + 1024, /* offset of the sorted ids */
};

/* The file name of the bundle's pack in the repository ends with these digits. `git repack` removes
 * only packs whose names end with at least as many digits as an id has. */
#define AUDIT_DIGITS "0000000000000000000000000000000000000000000000000000000000000000"
#define AUDIT_PACK   "objects/pack/pack-" AUDIT_DIGITS

struct bundle_job audit_bundle_job(const struct audit_job *job)
{
    return (struct bundle_job){.bucket = job->bucket, .arena = job->arena, .key = job->key};
}

/* --- git --- */

int audit_git(struct audit_work *w, const char *const *args, struct err *err)
{
    const char *argv[AUDIT_ARGS_MAX] = {"git", "-c", "core.hooksPath=/dev/null"};
    struct git_call c = {.folder = w->folder,
                         .argv = argv,
                         .timeout_ms = w->job->timeout_ms,
                         .stop = w->job->stop,
                         .ctx = w->job->ctx};

    for (size_t i = 0; args[i]; i++) {
        BUG_ON(i + 4 >= AUDIT_ARGS_MAX);
        argv[i + 3] = args[i];
    }
    return git_run(&w->said, &c, err);
}

/* Whether git failed for a reason outside of the bundle: it was killed, or the machine has no
 * space. Another try may then succeed. */
static int audit_machine_failed(const struct audit_work *w, struct err *err)
{
    static const char *const words[] = {"No space left", "ut of memory", "annot allocate",
                                        "Input/output error", "Too many open files"};

    if (w->said.status > 128)
        return err_set(err, ERR_IO, "git was ended by signal %d", w->said.status - 128);
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (str_find(buf_str(&w->said.err), str_z(words[i])) >= 0)
            return err_set(err, ERR_NO_SPACE, "git: %s", words[i]);
    return 0;
}

void audit_note(struct audit_work *w, const char *what)
{
    struct buf room = {0};
    struct str words = git_last_words(&w->said, &room);

    w->verdict.ok = false;
    snprintf(w->verdict.words, sizeof(w->verdict.words), "%s%s" STR_FMT, what,
             words.len ? ": " : "", STR_ARG(words));
    buf_release(&room);
}

/* --- copying --- */

static void audit_path(const struct audit_work *w, const char *name, struct buf *out)
{
    buf_reset(out);
    buf_appendf(out, "%s/%s", w->folder, name);
}

/* Copies the pack into the file, and checks its trailer. */
static int audit_copy_bytes(struct audit_work *w, struct reader *body, int fd, struct err *err)
{
    struct pack_options o = {.is_sha256 = w->old.header.refs.is_sha256,
                             .limits = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};
    struct pack_check *check = pack_check_new(&o);
    struct pack_result result;
    char *piece = xrealloc(NULL, AUDIT_PIECE);
    size_t got = 1;
    int code = 0;

    while (code == 0 && got) {
        code = w->job->stop && w->job->stop(w->job->ctx) ? err_code(err, ERR_CANCELED) : 0;
        if (code == 0)
            code = reader_read(body, piece, AUDIT_PIECE, &got, err);
        if (code == 0)
            code = pack_check_add(check, str_n(piece, got), err);
        if (code == 0)
            code = file_write_all(fd, piece, got, err);
    }
    if (code == 0)
        code = pack_check_end(check, &result, err);
    pack_check_free(check);
    free(piece);
    return code;
}

static int audit_copy(struct audit_work *w, struct err *err)
{
    const struct audit_job *job = w->job;
    struct object_conditions same = {
        .if_match = arena_fmt(job->arena, "\"" STR_FMT "\"", STR_ARG(w->old.info.etag))};
    struct object_range range = {RANGE_FROM_TO, w->old.header.pack_at, UINT64_MAX};
    struct get_result got = {0};
    struct buf path = BUF_INIT(PATH_MAX);

    audit_path(w, AUDIT_PACK ".pack", &path);
    int fd = open(path.p, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int code = fd < 0 ? err_errno(err, errno, "cannot make %s", path.p) : 0;
    if (code == 0)
        code = job->bucket->ops->get(job->bucket, job->arena, job->key, STR_EMPTY, &same, &range,
                                     &got, err);
    if (code == 0)
        code = audit_copy_bytes(w, got.body, fd, err);
    reader_close(got.body);
    fd_close(&fd);
    buf_release(&path);
    return code;
}

/* --- judging --- */

static int idx_count(int fd, size_t id_len, uint64_t *objects, uint64_t *doubles, struct err *err)
{
    unsigned char head[8], last[4], *ids = NULL;
    enum { IDS_AT_ONCE = 4096 };
    unsigned char before[GIT_ID_MAX];
    int code = file_pread_full(fd, head, sizeof(head), 0, err);

    if (code == 0 && memcmp(head, "\377tOc\0\0\0\2", 8) != 0)
        code = err_set(err, ERR_CORRUPT, "git wrote an index that weir does not know");
    if (code == 0)
        code = file_pread_full(fd, last, sizeof(last), IDX_FANOUT + 1020, err);
    *objects = code == 0 ? be32_read(last) : 0;
    *doubles = 0;
    ids = xrealloc(NULL, IDS_AT_ONCE * id_len);
    for (uint64_t i = 0; i < *objects && code == 0; i += IDS_AT_ONCE) {
        size_t n = size_min(IDS_AT_ONCE, (size_t)(*objects - i));
        code = file_pread_full(fd, ids, n * id_len, (off_t)(IDX_IDS + i * id_len), err);
        for (size_t k = 0; k < n && code == 0; k++) {
            *doubles += (i || k) && memcmp(before, ids + k * id_len, id_len) == 0;
            memcpy(before, ids + k * id_len, id_len);
        }
    }
    free(ids);
    return code;
}

int audit_count(struct audit_work *w, const char *name, uint64_t *objects, uint64_t *doubles,
                struct err *err)
{
    struct buf path = BUF_INIT(PATH_MAX);

    audit_path(w, name, &path);
    int fd = open(path.p, O_RDONLY | O_CLOEXEC);
    int code = fd < 0 ? err_errno(err, errno, "cannot open %s", path.p) : 0;
    if (code == 0)
        code = idx_count(fd, git_id_len(w->old.header.refs.is_sha256), objects, doubles, err);
    fd_close(&fd);
    buf_release(&path);
    return code;
}

struct idx_file {
    int fd;
    size_t id_len;
    /* For each first byte: the number of ids that begin with this byte or a lower one. */
    unsigned char counts[1024];
};

static int idx_find(const struct idx_file *x, const unsigned char *id, struct err *err)
{
    uint64_t low = id[0] ? be32_read(x->counts + (size_t)(id[0] - 1) * 4) : 0;
    uint64_t high = be32_read(x->counts + (size_t)id[0] * 4);
    unsigned char found[GIT_ID_MAX];

    while (low < high) {
        uint64_t mid = low + (high - low) / 2;
        int code =
            file_pread_full(x->fd, found, x->id_len, (off_t)(IDX_IDS + mid * x->id_len), err);
        if (code < 0)
            return code;
        int order = memcmp(id, found, x->id_len);
        if (order == 0)
            return 0;
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return err_set(err, ERR_PEER, "git repacked the bundle without a tip of its header");
}

int audit_has_tips(struct audit_work *w, const char *name, struct err *err)
{
    const struct bundle_header *h = &w->old.header;
    struct idx_file x = {.id_len = git_id_len(h->refs.is_sha256)};
    struct buf path = BUF_INIT(PATH_MAX);

    audit_path(w, name, &path);
    x.fd = open(path.p, O_RDONLY | O_CLOEXEC);
    int code = x.fd < 0 ? err_errno(err, errno, "cannot open %s", path.p) : 0;
    if (code == 0)
        code = file_pread_full(x.fd, x.counts, sizeof(x.counts), IDX_FANOUT, err);
    if (code == 0 && h->refs.has_head)
        code = idx_find(&x, h->refs.head, err);
    for (size_t i = 0; i < h->refs.list.len && code == 0; i++)
        code = idx_find(&x, git_ref_id(&h->refs.list.items[i]), err);
    for (size_t i = 0; i < h->points.len && code == 0; i++)
        code = idx_find(&x, git_ref_id(&h->points.items[i].ref), err);
    fd_close(&x.fd);
    buf_release(&path);
    return code;
}

int audit_connected(struct audit_work *w, bool *fine, struct err *err)
{
    static const char *const args[] = {"fsck",         "--connectivity-only", "--no-dangling",
                                       "--no-reflogs", "--no-progress",       NULL};
    int code = audit_git(w, args, err);

    if (code == 0 && w->said.status)
        code = audit_machine_failed(w, err);
    *fine = code == 0 && w->said.status == 0;
    return code;
}

static int audit_judge(struct audit_work *w, struct err *err)
{
    static const char *const args[] = {"index-pack", "--threads=1", AUDIT_PACK ".pack", NULL};
    struct audit_verdict *v = &w->verdict;
    bool fine;
    int code = audit_git(w, args, err);

    if (code == 0 && w->said.status) {
        code = audit_machine_failed(w, err);
        audit_note(w, "git cannot index the pack");
        return code;
    }
    if (code == 0)
        code = audit_count(w, AUDIT_PACK ".idx", &v->objects, &v->doubles, err);
    if (code == 0)
        code = git_write_refs(w->folder, &w->old.header.refs, &w->old.header, GIT_REFS_WITH_POINTS,
                              err);
    if (code == 0)
        code = audit_connected(w, &fine, err);
    if (code == 0 && !fine)
        audit_note(w, "objects are missing");
    else if (code == 0)
        v->ok = true;
    return code;
}

/* --- the whole --- */

/* Turns an error that the bundle caused into a verdict. ERR_PARSE comes from the checks of the
 * header and the pack. ERR_CORRUPT comes from these checks too, or from a storage whose own data
 * are damaged. All other codes, such as that of a broken connection, say nothing about the
 * bundle. */
static int audit_blame(struct audit_work *w, int code, struct err *err)
{
    if (code != ERR_CORRUPT && code != ERR_PARSE)
        return code;
    w->verdict.ok = false;
    snprintf(w->verdict.words, sizeof(w->verdict.words), "%.*s", AUDIT_WORDS_MAX,
             err ? err->text : "");
    return 0;
}

static int audit_make_folder(struct audit_work *w, struct err *err)
{
    char id[ID_HEX_LEN + 1];
    struct buf path = BUF_INIT(PATH_MAX);

    id_hex(id);
    buf_appendf(&path, "%s/audit-%s", w->job->scratch, id);
    w->folder = buf_take(&path);
    return git_make_bare(w->folder, w->old.header.refs.is_sha256, err);
}

static int audit_open(struct audit_work *w, struct err *err)
{
    struct bundle_job job = audit_bundle_job(w->job);
    struct get_result got = {0};
    int code = bundle_open(&w->old, &job, err);

    /* A bundle whose header cannot be read gets a verdict too. bundle_open() gave no ETag then, so
     * the ETag is read from the object itself. */
    if (code == ERR_CORRUPT || code == ERR_PARSE) {
        struct err other = {0};
        int head = w->job->bucket->ops->head(w->job->bucket, w->job->arena, w->job->key, STR_EMPTY,
                                             NULL, &got, &other);
        if (head < 0)
            return err_set(err, head, "%s", other.text);
        w->old.info = got.info;
    }
    snprintf(w->verdict.etag, sizeof(w->verdict.etag), STR_FMT, STR_ARG(w->old.info.etag));
    w->verdict.bytes = w->old.info.size;
    if (code == 0 && w->job->scratch_max && w->old.info.size > w->job->scratch_max)
        return err_set(err, ERR_TOO_LARGE, "the bundle has %" PRIu64 " bytes, more than scratch",
                       w->old.info.size);
    return code;
}

/* Copies the size at the last tidying from the old verdict to the new one. */
static void audit_remember(struct audit_work *w)
{
    struct audit_verdict before;

    if (audit_look(&before, w->job, NULL) == 0)
        w->verdict.tidied_bytes = before.tidied_bytes;
}

int audit_work_init(struct audit_work *w, const struct audit_job *job, struct err *err)
{
    *w = (struct audit_work){.job = job, .verdict.at_ms = clock_wall_ms()};
    int code = audit_open(w, err);

    if (code < 0)
        return audit_blame(w, code, err);
    audit_remember(w);
    code = audit_make_folder(w, err);
    if (code < 0)
        return code;
    code = audit_copy(w, err);
    if (code < 0)
        return audit_blame(w, code, err);
    return audit_judge(w, err);
}

void audit_work_release(struct audit_work *w)
{
    struct err err = {0};

    /* If the folder cannot be removed now, the next start of weir removes it, because it is in the
     * scratch folder. */
    if (w->folder && dir_remove_tree(w->folder, &err) < 0)
        err = (struct err){0};
    free(w->folder);
    bundle_old_release(&w->old);
    git_said_release(&w->said);
}
