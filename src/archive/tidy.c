/* Tidying: lets git pack a bundle anew. */
#include "archive/audit_int.h"

#include "base/hex.h"
#include "object/digest.h"
#include "os/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

enum { TIDY_PIECE = 256 * 1024 };

/* --- the new pack --- */

/* Finds the only pack that `git repack` has left; `out` becomes its name without `.pack`. */
static int tidy_find_pack(struct audit_work *w, struct buf *out, struct err *err)
{
    struct buf folder = BUF_INIT(PATH_MAX);
    size_t count = 0;

    buf_appendf(&folder, "%s/objects/pack", w->folder);
    DIR *d = opendir(folder.p);
    int code = d ? 0 : err_errno(err, errno, "cannot read %s", folder.p);
    for (struct dirent *e; d && (e = readdir(d));) {
        struct str name = str_z(e->d_name);
        if (!str_ends(name, STR(".pack")))
            continue;
        buf_reset(out);
        buf_appendf(out, "objects/pack/" STR_FMT, STR_ARG(str_head(name, name.len - 5)));
        count++;
    }
    if (d)
        closedir(d);
    buf_release(&folder);
    if (code == 0 && count != 1)
        return err_set(err, ERR_PEER, "git left %zu packs after repacking", count);
    return code;
}

static int tidy_repack(struct audit_work *w, struct buf *name, struct err *err)
{
    static const char *const args[] = {
        "-c", "pack.threads=1", "-c", "repack.writeBitmaps=false", "repack", "-a", "-d", "-f", "-q",
        NULL};
    struct buf idx = BUF_INIT(PATH_MAX);
    uint64_t objects = 0, doubles = 0;
    bool fine = false;
    int code = audit_git(w, args, err);

    if (code == 0 && w->said.status)
        code = err_set(err, ERR_IO, "git repack ended with status %d", w->said.status);
    if (code == 0)
        code = tidy_find_pack(w, name, err);
    if (code == 0) {
        buf_appendf(&idx, "%s.idx", name->p);
        code = audit_count(w, idx.p, &objects, &doubles, err);
    }
    if (code == 0)
        code = audit_has_tips(w, idx.p, err);
    if (code == 0)
        code = audit_connected(w, &fine, err);
    if (code == 0 && (!fine || doubles))
        code = err_set(err, ERR_PEER, "git repacked the bundle with a loss");
    if (code == 0) {
        w->verdict.objects = objects;
        w->verdict.doubles = 0;
    }
    buf_release(&idx);
    return code;
}

/* Checks the entries of the new pack. Its trailer and count become metadata of the bundle. */
static int tidy_check(struct audit_work *w, int fd, struct pack_result *out, struct err *err)
{
    struct pack_options o = {.is_sha256 = w->old.header.refs.is_sha256,
                             .walk = true,
                             .limits = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};
    struct pack_check *check = pack_check_new(&o);
    struct file_reader r;
    char *piece = xrealloc(NULL, TIDY_PIECE);
    struct stat st;
    size_t got = 1;
    int code = fstat(fd, &st) < 0 ? err_errno(err, errno, "reading the new pack") : 0;

    file_reader_init(&r, (struct file_range){fd, 0, code == 0 ? (uint64_t)st.st_size : 0}, false);
    while (code == 0 && got) {
        code = reader_read(&r.reader, piece, TIDY_PIECE, &got, err);
        if (code == 0)
            code = pack_check_add(check, str_n(piece, got), err);
    }
    if (code == 0)
        code = pack_check_end(check, out, err);
    pack_check_free(check);
    free(piece);
    if (code == 0 && out->by_type[PACK_REF_DELTA])
        return err_set(err, ERR_PEER, "git made a pack with deltas by id");
    return code;
}

/* --- the new bundle --- */

/* A reader of the header, then of the pack. */
struct bundle_text {
    struct reader reader;
    struct str head;
    struct file_reader pack;
};

static int bundle_text_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct bundle_text *t = container_of(r, struct bundle_text, reader);

    if (t->head.len == 0)
        return reader_read(&t->pack.reader, to, len, got, err);
    *got = size_min(len, t->head.len);
    memcpy(to, t->head.p, *got);
    t->head = str_skip(t->head, *got);
    return 0;
}

static struct bundle_meta tidy_meta(const struct audit_work *w, struct str header,
                                    const struct pack_result *pack)
{
    struct bundle_meta m = w->old.meta;
    struct digest_value sum;

    snprintf(m.format, sizeof(m.format), "%s", w->old.header.refs.is_sha256 ? "sha256" : "sha1");
    snprintf(m.refs_digest, sizeof(m.refs_digest), "%s", w->old.refs_digest);
    digest_of(DIGEST_SHA256, header, &sum);
    hex_write(m.header_sum, sum.bytes, sum.len);
    hex_write(m.pack_sum, pack->trailer, pack->trailer_len);
    m.pack_offset = header.len;
    m.objects = pack->objects;
    m.appends = 0;
    m.ref_deltas = REF_DELTAS_NONE;
    return m;
}

static int tidy_put(struct audit_work *w, int fd, const struct pack_result *pack, struct str header,
                    struct put_result *out, struct err *err)
{
    static const struct reader_ops ops = {.read = bundle_text_read};
    const struct audit_job *job = w->job;
    struct bundle_meta meta = tidy_meta(w, header, pack);
    struct http_header headers[BUNDLE_HEADERS_MAX];
    struct put_options o = {.meta = {.headers = headers}};
    struct bundle_text text = {.reader = {&ops}, .head = header};

    o.meta.header_count = bundle_meta_headers(headers, job->arena, &meta);
    o.conditions.if_match = arena_fmt(job->arena, "\"" STR_FMT "\"", STR_ARG(w->old.info.etag));
    file_reader_init(&text.pack, (struct file_range){fd, 0, pack->bytes}, false);
    return job->bucket->ops->put(job->bucket, job->arena, job->key, &text.reader,
                                 header.len + pack->bytes, &o, out, err);
}

/* Stores the new pack behind the old header, if the new pack is smaller or better. */
static int tidy_store(struct audit_work *w, int fd, struct tidy_result *out, struct err *err)
{
    struct buf header = BUF_INIT(GIB);
    struct pack_result pack;
    struct put_result put;
    int code = tidy_check(w, fd, &pack, err);

    bundle_header_write(&header, &w->old.header);
    if (code == 0)
        code = buf_error(&header) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
    out->after = code == 0 ? header.len + pack.bytes : 0;
    /* A pack that was appended to is always replaced, even if the new one is not smaller. The new
     * pack has no object twice, so it can be served to git clients. */
    out->changed = out->after < out->before || !w->old.has_meta || w->old.meta.appends ||
                   w->old.meta.ref_deltas == REF_DELTAS_SOME;
    if (code == 0 && out->changed)
        code = tidy_put(w, fd, &pack, buf_str(&header), &put, err);
    if (code == 0 && out->changed) {
        snprintf(w->verdict.etag, sizeof(w->verdict.etag), STR_FMT, STR_ARG(put.etag));
        w->verdict.bytes = out->after;
    }
    if (!out->changed)
        out->after = out->before;
    w->verdict.tidied_bytes = out->after;
    buf_release(&header);
    return code;
}

static int tidy_work(struct audit_work *w, struct tidy_result *out, struct err *err)
{
    struct buf name = BUF_INIT(PATH_MAX), path = BUF_INIT(PATH_MAX);
    int fd = -1, code = tidy_repack(w, &name, err);

    if (code == 0) {
        buf_appendf(&path, "%s/%s.pack", w->folder, name.p);
        fd = open(path.p, O_RDONLY | O_CLOEXEC);
        code = fd < 0 ? err_errno(err, errno, "cannot open %s", path.p) : 0;
    }
    if (code == 0)
        code = tidy_store(w, fd, out, err);
    fd_close(&fd);
    buf_release(&name);
    buf_release(&path);
    return code;
}

int tidy_run(struct tidy_result *out, const struct audit_job *job, struct err *err)
{
    struct audit_work w;
    int code = audit_work_init(&w, job, err);

    *out = (struct tidy_result){.before = w.old.info.size, .after = w.old.info.size};
    if (code == 0 && w.verdict.ok && w.verdict.objects)
        code = tidy_work(&w, out, err);
    if (code == 0)
        code = audit_store(&w, err);
    if (code == 0 && !w.verdict.ok)
        code = err_set(err, ERR_CORRUPT, "%s", w.verdict.words);
    audit_work_release(&w);
    return code;
}
