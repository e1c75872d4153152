/* Keeps bundles of git repositories of this machine, without a forge or HTTP: `git upload-pack` is
 * asked over pipes, in the words that a git server would hear. For tests.
 *
 *     bundle_sync DATA [OPTION=VALUE...]
 *
 * DATA is a folder of its own for a local storage. Options: url, access, secret (an S3 endpoint in
 * place of the local storage), bucket (its name), small, lead, part, copy (struct bundle_sizes),
 * walk=0 (only hashes are checked), max_wants. Commands come as lines on stdin; each is answered by
 * lines on stdout, the last of which begins with "ok" or "error".
 *
 *     sync KEY NOW REPOSITORY VERSION   one sync: what happened, and its numbers; VERSION is 0 or 2
 *     get KEY FILE                      the object's bytes
 *     meta KEY                          its headers, one a line
 *     at KEY TIME                       the refs at that time: `<id> <name>`, then `HEAD <name>`
 *     flip KEY OFFSET                   changes one bit of the stored object
 *     fault N KIND                      call N of the next sync has a fault (watched_bucket.h)
 *     uploads                           how many uploads are unfinished
 *     abort                             aborts them */
#include "archive/bundle.h"
#include "base/hex.h"
#include "object/local/local.h"
#include "object/overlay.h"
#include "object/remote/remote.h"
#include "unit/archive/watched_bucket.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct keeper {
    struct db *db;
    struct storage *storage;
    struct bucket *bucket;
    struct watched_bucket watched;
    struct bundle_sizes sizes;
    struct bundle_job job;
    struct arena arena;
    char request[4096]; /* the file that holds what git is asked */
    size_t max_wants;
};

/* --- asking git --- */

struct git_pipe {
    struct reader reader;
    FILE *pipe;
};

static int git_pipe_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct git_pipe *g = container_of(r, struct git_pipe, reader);
    ssize_t n = read(fileno(g->pipe), to, len);

    if (n < 0)
        return err_errno(err, errno, "git");
    *got = (size_t)n;
    return 0;
}

static int git_run(struct git_pipe *out, const struct keeper *k, const char *repository,
                   const char *options, bool is_v2, struct err *err)
{
    static const struct reader_ops ops = {.read = git_pipe_read};
    char command[9000];

    snprintf(command, sizeof(command), "GIT_PROTOCOL=version=%d git upload-pack %s '%s' < '%s'",
             is_v2 ? 2 : 0, options, repository, k->request);
    *out = (struct git_pipe){.reader = {&ops}, .pipe = popen(command, "r")};
    return out->pipe ? 0 : err_errno(err, errno, "git");
}

static int git_ask(struct git_pipe *out, const struct keeper *k, const char *repository,
                   const char *options, bool is_v2, struct str body, struct err *err)
{
    FILE *f = fopen(k->request, "w");

    if (!f || fwrite(body.p ? body.p : "", 1, body.len, f) != body.len || fclose(f) != 0)
        return err_errno(err, errno, "%s", k->request);
    return git_run(out, k, repository, options, is_v2, err);
}

static int remote_refs(struct git_refs *refs, struct git_advert *v, const struct keeper *k,
                       const char *repository, bool is_v2, struct err *err)
{
    struct buf body = {0};
    struct git_pipe g;
    struct pkt_in in;
    int code =
        git_ask(&g, k, repository, "--stateless-rpc --advertise-refs", is_v2, STR_EMPTY, err);

    if (code < 0)
        return code;
    pkt_in_init(&in, &g.reader);
    code = git_advert_read(v, &in, refs, err);
    pkt_in_release(&in);
    pclose(g.pipe);
    if (code == 0 && v->is_v2) {
        git_ls_refs_ask(&body, v);
        code = git_ask(&g, k, repository, "--stateless-rpc", is_v2, buf_str(&body), err);
        if (code == 0) {
            pkt_in_init(&in, &g.reader);
            code = git_ls_refs_read(refs, &in, err);
            pkt_in_release(&in);
            pclose(g.pipe);
        }
    }
    buf_release(&body);
    return code < 0 ? code : git_refs_sort(refs, err);
}

/* --- syncing --- */

struct sync_state {
    struct keeper *k;
    const char *repository;
    struct git_advert advert;
    struct git_refs refs;
    struct bundle_old old;
    bool has_old;
    const char *what;
    struct bundle_result out;
    uint64_t pack_bytes, sent, copied;
};

static int sync_store(struct sync_state *s, const struct bundle_wants *w, struct reader *pack,
                      struct err *err)
{
    const struct bundle_job *job = &s->k->job;
    int code = s->has_old ? bundle_append(job, &s->old, w->refs, pack, &s->out, err)
                          : bundle_put_full(job, w->refs, pack, STR_EMPTY, &s->out, err);

    s->what = !s->has_old ? "stored" : pack ? "appended" : "header";
    s->pack_bytes += s->out.pack_bytes;
    s->sent += s->out.sent;
    s->copied += s->out.copied;
    return code;
}

static int sync_fetch(struct sync_state *s, const struct bundle_wants *w, struct err *err)
{
    struct buf body = BUF_INIT(256 * 1024 * 1024);
    struct band_reader band;
    struct git_pipe g;
    struct pkt_in in;

    git_fetch_ask(&body, &s->advert, &w->fetch);
    int code =
        git_ask(&g, s->k, s->repository, "--stateless-rpc", s->advert.is_v2, buf_str(&body), err);
    buf_release(&body);
    if (code < 0)
        return code;
    pkt_in_init(&in, &g.reader);
    code = git_fetch_begin(&in, &s->advert, &w->fetch, err);
    band_reader_init(&band, &in, 0);
    if (code == 0)
        code = sync_store(s, w, &band.reader, err);
    pkt_in_release(&in);
    pclose(g.pipe);
    return code;
}

/* One request and one write. */
static int sync_round(struct sync_state *s, bool *more, struct err *err)
{
    char digest[GIT_DIGEST_LEN + 1];
    struct bundle_wants w;

    *more = false;
    int code = bundle_open(&s->old, &s->k->job, err);
    if (code < 0 && code != ERR_NOT_FOUND)
        return code;
    s->has_old = code == 0;
    git_refs_digest(digest, &s->refs);
    if (s->has_old && strcmp(digest, s->old.meta.refs_digest) == 0) {
        bundle_old_release(&s->old);
        return 0;
    }
    bundle_wants_init(&w, s->has_old ? &s->old : NULL, &s->refs, s->k->max_wants);
    code = w.fetch.want_count ? sync_fetch(s, &w, err) : sync_store(s, &w, NULL, err);
    *more = w.more;
    bundle_wants_release(&w);
    bundle_old_release(&s->old);
    return code;
}

static int do_sync(struct keeper *k, char **args, struct err *err)
{
    struct sync_state s = {.k = k, .repository = args[3], .what = "unchanged"};
    bool more = true;

    k->job.key = str_z(args[1]);
    k->job.now_s = strtoll(args[2], NULL, 10);
    git_refs_init(&s.refs, false);
    int code = remote_refs(&s.refs, &s.advert, k, args[3], args[4][0] == '2', err);
    k->watched.calls = 0;
    k->watched.read = 0;
    k->job.points_s = 0;
    while (code == 0 && more) {
        code = sync_round(&s, &more, err);
        k->job.points_s = s.out.points_s; /* later rounds belong to the same sync */
    }
    git_refs_release(&s.refs);
    k->watched.fail_at = 0;
    if (code == 0)
        printf("ok %s pack=%" PRIu64 " sent=%" PRIu64 " copied=%" PRIu64 " read=%" PRIu64
               " header=%" PRIu64 " appends=%u size=%" PRIu64 " calls=%u\n",
               s.what, s.pack_bytes, s.sent, s.copied, k->watched.read, s.out.meta.pack_offset,
               s.out.meta.appends, s.out.put.size, k->watched.calls);
    return code;
}

/* --- other commands --- */

static int object_open(struct keeper *k, const char *key, struct get_result *out, struct err *err)
{
    return k->bucket->ops->get(k->bucket, &k->arena, str_z(key), STR_EMPTY, NULL, NULL, out, err);
}

static int do_get(struct keeper *k, char **args, struct err *err)
{
    static char bytes[1 << 16];
    struct get_result got;
    size_t n = 1;
    int code = object_open(k, args[1], &got, err);

    if (code < 0)
        return code;
    FILE *f = fopen(args[2], "w");
    while (code == 0 && n) {
        code = reader_read(got.body, bytes, sizeof(bytes), &n, err);
        if (code == 0 && fwrite(bytes, 1, n, f) != n)
            code = err_errno(err, errno, "%s", args[2]);
    }
    fclose(f);
    reader_close(got.body);
    if (code == 0)
        printf("ok %" PRIu64 "\n", got.info.size);
    return code;
}

static int do_meta(struct keeper *k, char **args, struct err *err)
{
    struct get_result got;
    int code =
        k->bucket->ops->head(k->bucket, &k->arena, str_z(args[1]), STR_EMPTY, NULL, &got, err);

    for (size_t i = 0; code == 0 && i < got.info.meta.header_count; i++)
        printf(STR_FMT ": " STR_FMT "\n", STR_ARG(got.info.meta.headers[i].name),
               STR_ARG(got.info.meta.headers[i].value));
    if (code == 0)
        printf("ok parts=%u\n", got.info.part_count);
    return code;
}

static int do_at(struct keeper *k, char **args, struct err *err)
{
    struct bundle_old old;
    struct git_refs refs;
    char hex[2 * GIT_ID_MAX + 1] = "";

    k->job.key = str_z(args[1]);
    int code = bundle_open(&old, &k->job, err);
    if (code < 0)
        return code;
    git_refs_init(&refs, old.header.refs.is_sha256);
    bundle_header_at(&refs, &old.header, strtoll(args[2], NULL, 10));
    vec_each (&refs.list, const struct git_ref *, ref) {
        hex_write(hex, git_ref_id(ref), git_id_len(refs.is_sha256));
        printf("%s " STR_FMT "\n", hex, STR_ARG(git_ref_name(ref)));
    }
    printf("HEAD " STR_FMT "\nok\n", STR_ARG(refs.head_target));
    git_refs_release(&refs);
    bundle_old_release(&old);
    return code;
}

static int do_flip(struct keeper *k, char **args, struct err *err)
{
    struct buf all = BUF_INIT(1024 * 1024 * 1024);
    struct put_result put;
    struct get_result got;
    struct str_reader from;
    size_t at = strtoull(args[2], NULL, 10);
    int code = object_open(k, args[1], &got, err);

    if (code < 0)
        return code;
    code = reader_read_all(got.body, &all, err);
    reader_close(got.body);
    if (code == 0) {
        struct put_options o = {.meta.headers = got.info.meta.headers,
                                .meta.header_count = got.info.meta.header_count};
        all.p[at % all.len] ^= 16;
        str_reader_init(&from, buf_str(&all));
        code = k->bucket->ops->put(k->bucket, &k->arena, str_z(args[1]), &from.reader, all.len, &o,
                                   &put, err);
    }
    buf_release(&all);
    if (code == 0)
        printf("ok\n");
    return code;
}

static int do_fault(struct keeper *k, char **args, struct err *err)
{
    (void)err;
    k->watched.fail_at = (unsigned)strtoul(args[1], NULL, 10);
    k->watched.fault = (enum watched_fault)strtoul(args[2], NULL, 10);
    printf("ok\n");
    return 0;
}

static int each_upload(struct keeper *k, bool abort_them, struct err *err)
{
    struct list_options all = {.limit = OBJECT_LIST_MAX};
    struct upload_list list;
    int code = k->bucket->ops->list_uploads(k->bucket, &k->arena, &all, &list, err);

    for (size_t i = 0; code == 0 && abort_them && i < list.count; i++)
        code = k->bucket->ops->upload_abort(k->bucket, &list.uploads[i], err);
    if (code == 0)
        printf("ok %zu\n", list.count);
    return code;
}

static int do_uploads(struct keeper *k, char **args, struct err *err)
{
    (void)args;
    return each_upload(k, false, err);
}

static int do_abort(struct keeper *k, char **args, struct err *err)
{
    (void)args;
    return each_upload(k, true, err);
}

static const struct tool_command {
    const char *name;
    int args;
    int (*run)(struct keeper *k, char **args, struct err *err);
} tool_commands[] = {
    {"sync", 4, do_sync},       {"get", 2, do_get},     {"meta", 1, do_meta},
    {"at", 2, do_at},           {"flip", 2, do_flip},   {"fault", 2, do_fault},
    {"uploads", 0, do_uploads}, {"abort", 0, do_abort},
};

static int command_run(struct keeper *k, char **args, int count, struct err *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(tool_commands); i++)
        if (strcmp(args[0], tool_commands[i].name) == 0 && tool_commands[i].args == count - 1)
            return tool_commands[i].run(k, args, err);
    return err_set(err, ERR_INVALID, "no such command: %s", args[0]);
}

/* --- opening --- */

struct tool_options {
    const char *url, *access, *secret, *bucket;
    uint64_t small, lead, part, copy, walk, max_wants;
};

static void options_read(struct tool_options *o, char **args)
{
    const struct {
        const char *name;
        const char **text;
        uint64_t *number;
    } rows[] = {{"url", &o->url, NULL},       {"access", &o->access, NULL},
                {"secret", &o->secret, NULL}, {"bucket", &o->bucket, NULL},
                {"small", NULL, &o->small},   {"lead", NULL, &o->lead},
                {"part", NULL, &o->part},     {"copy", NULL, &o->copy},
                {"walk", NULL, &o->walk},     {"max_wants", NULL, &o->max_wants}};

    for (; *args; args++)
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
            size_t len = strlen(rows[i].name);
            if (strncmp(*args, rows[i].name, len) != 0 || (*args)[len] != '=')
                continue;
            if (rows[i].text)
                *rows[i].text = *args + len + 1;
            else
                *rows[i].number = strtoull(*args + len + 1, NULL, 10);
        }
}

static int local_begin(struct keeper *k, const char *data, const struct tool_options *o,
                       struct err *err)
{
    char path[4096], folder[4096];

    snprintf(path, sizeof(path), "%s/db", data);
    snprintf(folder, sizeof(folder), "%s/objects", data);
    struct db_options d = {.path = path, .cfs = local_cf_specs(), .cf_count = LOCAL_FAMILIES};
    int code = db_open(&k->db, &d, err);
    struct local_options l = {.name = "local",
                              .folder = folder,
                              .db = k->db,
                              .id = 1,
                              .inline_max = 1,
                              .reserve_bytes = 1,
                              .part_min = o->lead};
    return code < 0 ? code : local_open(&k->storage, &l, err);
}

static int remote_begin(struct keeper *k, const struct tool_options *o, struct err *err)
{
    struct remote_options r = {.name = STR("far"), .url = str_z(o->url)};
    struct remote_credential c = {STR("owner"), str_z(o->access), str_z(o->secret)};
    int code = remote_open(&k->storage, &r, err);

    return code < 0 ? code : remote_set_credential(k->storage, &c, err);
}

static int keeper_open(struct keeper *k, const char *data, const struct tool_options *o,
                       struct err *err)
{
    struct bucket_info info = {.name = str_z(o->bucket), .owner = STR("owner")};
    int code = o->url ? remote_begin(k, o, err) : local_begin(k, data, o, err);

    if (code == 0)
        code = storage_create_bucket(k->storage, &info, err);
    if (code == 0 || code == ERR_EXISTS)
        code = storage_open_bucket(&k->bucket, k->storage, info.owner, info.name, err);
    if (code < 0)
        return code;
    watched_bucket_init(&k->watched, k->bucket, bucket_can(k->bucket, STORAGE_ANY_LENGTH));
    snprintf(k->request, sizeof(k->request), "%s/request", data);
    k->sizes = (struct bundle_sizes){o->small, o->lead, o->part, o->copy};
    k->arena = ARENA_INIT(0);
    k->max_wants = o->max_wants;
    k->job = (struct bundle_job){
        .bucket = &k->watched.bucket,
        .arena = &k->arena,
        .source_id = STR("1"),
        .fence = 1,
        .sizes = &k->sizes,
        .check = {.walk = o->walk,
                  .limits = {(uint64_t)64 << 30, (uint64_t)32 << 30, (uint64_t)64 << 30, 200}}};
    return 0;
}

static void keeper_close(struct keeper *k)
{
    arena_release(&k->arena);
    if (k->bucket)
        k->bucket->ops->unref(k->bucket);
    if (k->storage)
        k->storage->ops->close(k->storage);
    if (k->db)
        db_close(k->db);
}

static void serve_commands(struct keeper *k)
{
    char *line = NULL, *args[8], *rest;
    size_t cap = 0;

    while (getline(&line, &cap, stdin) > 0) {
        struct err err = {0};
        int count = 0;
        for (char *word = strtok_r(line, " \n", &rest); word && count < 7;
             word = strtok_r(NULL, " \n", &rest))
            args[count++] = word;
        args[count] = NULL;
        if (count && command_run(k, args, count, &err) < 0)
            printf("error %d %s\n", err.code, err.text);
        fflush(stdout);
        arena_reset(&k->arena);
    }
    free(line);
}

int main(int argc, char **argv)
{
    struct tool_options o = {.bucket = "github.com",
                             .small = bundle_sizes_usual.small,
                             .lead = bundle_sizes_usual.lead,
                             .part = bundle_sizes_usual.part,
                             .copy = bundle_sizes_usual.copy,
                             .walk = 1,
                             .max_wants = BUNDLE_WANTS_MAX};
    struct keeper k = {0};
    struct err err = {0};

    if (argc < 2)
        return 2;
    options_read(&o, argv + 2);
    int code = keeper_open(&k, argv[1], &o, &err);
    if (code == 0) {
        printf("ok\n");
        fflush(stdout);
        serve_commands(&k);
    } else {
        printf("error %d %s\n", err.code, err.text);
    }
    keeper_close(&k);
    return code < 0;
}
