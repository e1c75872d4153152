/* Fetches a repository as the archive does, without the archive around it, and writes a bundle into
 * a file: what test_archive_fetch.py drives against servers of all kinds.
 *
 *     git_fetch URL OUT [name=value...]
 *
 * The names are in the table below. The pack is checked as it flows. `old` names a bundle whose
 * refs are haves. When there are more wants than one request may have, OUT has the refs of the
 * first part, and OUT.pack has the rest. The last line of the output is a JSON object about what
 * happened. */
#include "archive/fetch.h"
#include "archive/header.h"
#include "archive/pack.h"
#include "base/json.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PIECE = 64 * 1024 };

struct run {
    struct git_remote_options o;
    struct fetch_fault fault;
    struct pack_result pack;
    const char *old, *ca;
    uint64_t depth, pause_ms, refs, fetches, refreshes, no_check;
    bool is_v2, is_sha256;
    char url[2048];
};

static void run_set(struct run *r, struct str name, const char *value)
{
    struct fetch_limits *l = &r->o.limits;
    const struct {
        const char *name;
        uint64_t *number;
    } numbers[] = {
        {"idle_ms", &l->idle_ms},   {"pack_idle_ms", &l->pack_idle_ms},
        {"slow_ms", &l->slow_ms},   {"slow_bytes_per_s", &l->slow_bytes_per_s},
        {"total_ms", &l->total_ms}, {"pack_max", &l->pack_max},
        {"depth", &r->depth},       {"pause_ms", &r->pause_ms},
        {"no_check", &r->no_check},
    };
    const struct {
        const char *name;
        struct str *text;
    } texts[] = {
        {"user", &r->o.token_user}, {"token", &r->o.token}, {"same_host", &r->o.same_host}};

    if (str_eq(name, STR("private")))
        r->o.allow_private = true;
    else if (str_eq(name, STR("old")))
        r->old = value;
    else if (str_eq(name, STR("ca")))
        r->ca = value;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        if (str_eq(name, str_z(texts[i].name)))
            *texts[i].text = str_z(value);
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        if (str_eq(name, str_z(numbers[i].name)))
            BUG_ON(str_u64(str_z(value), numbers[i].number) < 0);
}

static bool ids_have(const unsigned char *ids, size_t count, const unsigned char *id, size_t len)
{
    for (size_t i = 0; i < count; i++)
        if (memcmp(ids + i * len, id, len) == 0)
            return true;
    return false;
}

/* The distinct tips of sorted refs. A list of many refs has distinct tips in these tests. */
static unsigned char *tips_of(const struct git_refs *refs, const struct git_fetch *known,
                              size_t *count)
{
    size_t len = git_id_len(refs->is_sha256);
    unsigned char *ids = xzalloc((refs->list.len + 2) * len);

    *count = 0;
    if (refs->has_head)
        memcpy(ids + len * (*count)++, refs->head, len);
    vec_each (&refs->list, const struct git_ref *, ref)
        if ((refs->list.len > 1000 || !ids_have(ids, *count, git_ref_id(ref), len)) &&
            !(known && ids_have(known->haves, known->have_count, git_ref_id(ref), len)))
            memcpy(ids + len * (*count)++, git_ref_id(ref), len);
    return ids;
}

static int file_write(int fd, const void *p, size_t len, struct err *err)
{
    return write(fd, p, len) == (ssize_t)len ? 0 : err_set(err, ERR_IO, "cannot write");
}

/* Moves the pack into the file; every piece is checked before it is written. */
static int run_pack(struct run *r, struct reader *pack, int fd, struct err *err)
{
    struct pack_options o = {
        .is_sha256 = r->is_sha256, .walk = true, .limits = {64 * GIB, 32 * GIB, 64 * GIB, 200}};
    struct pack_check *check = pack_check_new(&o);
    char *piece = xzalloc(PIECE);
    size_t got = 1;
    int code = 0;

    while (code == 0 && got) {
        code = reader_read(pack, piece, PIECE, &got, err);
        if (code == 0 && got && !r->no_check)
            code = pack_check_add(check, str_n(piece, got), err);
        if (code == 0 && got)
            code = file_write(fd, piece, got, err);
        if (r->pause_ms)
            poll(NULL, 0, (int)r->pause_ms);
    }
    if (code == 0 && !r->no_check)
        code = pack_check_end(check, &r->pack, err);
    pack_check_free(check);
    free(piece);
    return code;
}

static int run_fetch(struct run *r, struct git_remote *remote, const struct git_fetch *f, int fd,
                     struct err *err)
{
    struct reader *pack;
    int code = git_remote_fetch(remote, f, &pack, &r->fault, err);

    if (code < 0)
        return code;
    r->fetches++;
    code = run_pack(r, pack, fd, err);
    if (code < 0 && git_remote_fault(remote))
        r->fault = *git_remote_fault(remote);
    else if (code < 0)
        r->fault.code = ARCHIVE_CORRUPT;
    reader_close(pack);
    return code;
}

/* Writes the bundle of the refs that the first fetch has, and the pack of the others. */
static int run_store(struct run *r, struct git_remote *remote, struct git_fetch *f, const char *out,
                     struct err *err)
{
    struct bundle_header h;
    struct buf text = BUF_INIT(256 * MIB);
    char rest[1024];
    int fd = open(out, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);

    struct git_fetch first = *f;
    first.want_count = size_min(f->want_count, GIT_WANTS_MAX);
    bundle_header_init(&h, r->is_sha256);
    h.refs = *git_remote_refs(remote); /* borrowed */
    if (f->want_count > GIT_WANTS_MAX) /* then every ref has a tip of its own, behind HEAD's */
        h.refs.list.len = GIT_WANTS_MAX - h.refs.has_head;
    bundle_header_write(&text, &h);
    int code = file_write(fd, text.p, text.len, err);
    if (code == 0)
        code = run_fetch(r, remote, &first, fd, err);
    close(fd);
    if (code == 0 && f->want_count > GIT_WANTS_MAX) {
        size_t len = git_id_len(r->is_sha256);
        struct git_fetch more = {f->wants + GIT_WANTS_MAX * len, f->want_count - GIT_WANTS_MAX,
                                 f->wants, GIT_WANTS_MAX, 0};
        snprintf(rest, sizeof(rest), "%s.pack", out);
        fd = open(rest, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
        code = run_fetch(r, remote, &more, fd, err);
        close(fd);
    }
    if (code < 0)
        unlink(out);
    buf_release(&text);
    return code;
}

static int run_haves(struct run *r, struct git_fetch *f, struct err *err)
{
    struct bundle_header h;
    struct file_reader from;
    size_t count = 0;

    if (!r->old)
        return 0;
    int fd = open(r->old, O_RDONLY | O_CLOEXEC);
    file_reader_init(&from, (struct file_range){fd, 0, 16 * MIB}, true);
    bundle_header_init(&h, false);
    int code = bundle_header_read(&h, &from.reader, err);
    if (code == 0)
        f->haves = tips_of(&h.refs, NULL, &count);
    f->have_count = count;
    bundle_header_release(&h);
    reader_close(&from.reader);
    return code;
}

static int run_once(struct run *r, struct git_remote *remote, const char *out, struct err *err)
{
    struct git_fetch f = {.depth = (unsigned)r->depth};
    size_t count = 0;
    int code = run_haves(r, &f, err);

    f.wants = tips_of(git_remote_refs(remote), &f, &count);
    f.want_count = r->depth ? 1 : count;
    r->refs = git_remote_refs(remote)->list.len;
    r->is_sha256 = git_remote_refs(remote)->is_sha256;
    if (code == 0 && f.want_count)
        code = run_store(r, remote, &f, out, err);
    free((void *)(uintptr_t)f.wants);
    free((void *)(uintptr_t)f.haves);
    return code;
}

static int run_all(struct run *r, const char *out, struct err *err)
{
    struct git_remote *remote = NULL;
    int code = git_remote_open(&remote, &r->o, &r->fault, err);

    if (code < 0)
        return code;
    r->is_v2 = git_remote_is_v2(remote);
    snprintf(r->url, sizeof(r->url), STR_FMT, STR_ARG(git_remote_url(remote)));
    code = run_once(r, remote, out, err);
    for (int i = 0; code == ERR_CONFLICT && i < GIT_REFRESH_MAX; i++) {
        r->refreshes++;
        code = git_remote_refresh(remote, &r->fault, err);
        if (code == 0)
            code = run_once(r, remote, out, err);
    }
    git_remote_close(remote);
    return code;
}

static void run_report(const struct run *r, int code, const struct err *err)
{
    struct rusage use;
    struct json_out w;
    struct buf out = {0};

    getrusage(RUSAGE_SELF, &use);
    json_out_init(&w, &out);
    json_out_open(&w, '{');
    json_out_member_str(&w, "error", code < 0 ? str_z(err_name(code)) : STR(""));
    json_out_member_str(&w, "text", code < 0 ? str_z(err->text) : STR(""));
    json_out_member_str(&w, "code", str_z(archive_codes[r->fault.code].name));
    json_out_member_i64(&w, "status", r->fault.http_status);
    json_out_member_i64(&w, "retry_after", r->fault.retry_after_s);
    json_out_member_str(&w, "words", str_z(r->fault.words));
    json_out_member_str(&w, "url", str_z(r->url));
    json_out_member_bool(&w, "v2", r->is_v2);
    json_out_member_u64(&w, "refs", r->refs);
    json_out_member_u64(&w, "fetches", r->fetches);
    json_out_member_u64(&w, "refreshes", r->refreshes);
    json_out_member_u64(&w, "objects", r->pack.objects);
    json_out_member_u64(&w, "bytes", r->pack.bytes);
    json_out_member_u64(&w, "ref_deltas", r->pack.by_type[PACK_REF_DELTA]);
    json_out_member_u64(&w, "rss", (uint64_t)use.ru_maxrss * KIB);
    json_out_close(&w, '}');
    puts(out.p);
    buf_release(&out);
}

int main(int argc, char **argv)
{
    struct run r = {0};
    struct err err = {0};

    if (argc < 3)
        return 2;
    r.o.url = argv[1];
    for (int i = 3; i < argc; i++) {
        struct str name, value;
        str_cut(str_z(argv[i]), '=', &name, &value);
        run_set(&r, name, value.p ? value.p : "");
    }
    r.o.client = client_new(&(struct client_options){.direct = true, .ca_file = r.ca});
    int code = run_all(&r, argv[2], &err);
    run_report(&r, code, &err);
    client_free(r.o.client);
    return 0;
}
