/* Restores a bundle into a folder. */
#include "archive/restore.h"

#include "archive/git.h"
#include "base/clock.h"
#include "base/ids.h"
#include "os/file.h"
#include "sign/base64.h"

#include <limits.h>
#include <stdlib.h>

enum { RESTORE_BUFFER = 256 * 1024 };

/* --- a reader with a buffer, which counts the bytes --- */

struct restore_source {
    struct reader reader;
    struct reader *inner;
    const struct restore_options *o;
    char *bytes;
    size_t at, len;
    uint64_t taken;
};

static int source_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct restore_source *s = container_of(r, struct restore_source, reader);

    if (s->at == s->len) {
        s->at = s->len = 0;
        int code = reader_read(s->inner, s->bytes, RESTORE_BUFFER, &s->len, err);
        if (code < 0)
            return code;
        s->taken += s->len;
        if (s->o->progress)
            s->o->progress(s->o->ctx, s->taken);
    }
    *got = size_min(len, s->len - s->at);
    memcpy(to, s->bytes + s->at, *got);
    s->at += *got;
    return 0;
}

static void source_init(struct restore_source *s, struct reader *inner,
                        const struct restore_options *o)
{
    static const struct reader_ops ops = {.read = source_read};

    *s = (struct restore_source){
        .reader = {&ops}, .inner = inner, .o = o, .bytes = xrealloc(NULL, RESTORE_BUFFER)};
}

/* --- git's steps --- */

static int restore_git(const char *folder, const char *const *argv, struct reader *more,
                       const struct restore_options *o, struct err *err)
{
    struct git_call c = {
        .folder = folder, .argv = argv, .more = more, .stop = o->stop, .ctx = o->ctx};
    struct git_said said = {0};
    int code = git_run_well(&said, &c, err);

    git_said_release(&said);
    return code;
}

static int restore_fill(const char *folder, struct restore_source *s, const struct git_refs *refs,
                        const struct bundle_header *h, struct err *err)
{
    static const char *const index[] = {"git", "index-pack", "--stdin", NULL};
    static const char *const check[] = {"git", "rev-list", "--objects", "--all", "--quiet", NULL};
    enum git_refs_kind kind = s->o->history ? GIT_REFS_WITH_POINTS : GIT_REFS_PLAIN;
    int code = git_make_bare(folder, h->refs.is_sha256, err);

    if (code == 0)
        code = restore_git(folder, index, &s->reader, s->o, err);
    if (code == 0)
        code = git_write_refs(folder, refs, h, kind, err);
    if (code == 0)
        code = restore_git(folder, check, NULL, s->o, err);
    return code;
}

/* Makes the repository in the same parent folder under a temporary name, and renames it at the
 * end. */
static int restore_beside(struct restore_source *s, const struct git_refs *refs,
                          const struct bundle_header *h, struct err *err)
{
    char id[ID_HEX_LEN + 1];
    struct buf beside = BUF_INIT(PATH_MAX);
    struct err ignored = {0};

    id_hex(id);
    buf_appendf(&beside, "%s.part-%.8s", s->o->folder, id);
    int code = restore_fill(beside.p, s, refs, h, err);
    if (code == 0)
        code = file_rename_new(beside.p, s->o->folder, err);
    if (code < 0 && dir_remove_tree(beside.p, &ignored) < 0)
        err_wrap(err, code, "%s is left behind (%s)", beside.p, ignored.text);
    buf_release(&beside);
    return code;
}

static int restore_from(struct restore_source *s, struct bundle_header *h,
                        struct restore_result *out, struct err *err)
{
    struct git_refs then;
    int code = bundle_header_read(h, &s->reader, err);

    if (code < 0)
        return code;
    git_refs_init(&then, h->refs.is_sha256);
    if (s->o->has_at)
        bundle_header_at(&then, h, s->o->at_s);
    const struct git_refs *refs = s->o->has_at ? &then : &h->refs;
    if (code == 0)
        code = restore_beside(s, refs, h, err);
    if (code == 0)
        *out = (struct restore_result){.refs = refs->list.len + (s->o->history ? h->points.len : 0),
                                       .bytes = s->taken,
                                       .is_past = s->o->has_at && h->points.len &&
                                                  h->points.items[0].at_s <= s->o->at_s};
    git_refs_release(&then);
    return code;
}

int restore_bundle(struct restore_result *out, struct reader *bundle,
                   const struct restore_options *o, struct err *err)
{
    struct restore_source s;
    struct bundle_header h;

    if (file_exists(o->folder))
        return err_set(err, ERR_EXISTS, "%s exists already", o->folder);
    source_init(&s, bundle, o);
    bundle_header_init(&h, false);
    int code = restore_from(&s, &h, out, err);
    bundle_header_release(&h);
    free(s.bytes);
    return code;
}

/* The settings of a push that weir makes itself. They are passed in the environment, where other
 * users of the machine cannot read the password. */
static void push_environment(const struct restore_push *p, struct arena *a, const char *env[8])
{
    struct buf basic = {0};
    size_t n = 0;

    env[n++] = "GIT_ALLOW_PROTOCOL=http:https";
    env[n++] = p->credentials.len ? "GIT_CONFIG_COUNT=2" : "GIT_CONFIG_COUNT=1";
    env[n++] = "GIT_CONFIG_KEY_0=http.followRedirects";
    env[n++] = "GIT_CONFIG_VALUE_0=false";
    if (p->credentials.len) {
        buf_append_z(&basic, "GIT_CONFIG_VALUE_1=Authorization: Basic ");
        base64_encode(&basic, p->credentials);
        env[n++] = "GIT_CONFIG_KEY_1=http.extraHeader";
        env[n++] = arena_z(a, buf_str(&basic));
    }
    if (p->ca_file)
        env[n++] = arena_z(a, arena_fmt(a, "GIT_SSL_CAINFO=%s", p->ca_file));
    env[n] = NULL;
    buf_release(&basic);
}

int restore_push(const struct restore_push *p, struct err *err)
{
    const char *argv[] = {"git",
                          "push",
                          "--quiet",
                          "--",
                          p->url,
                          "refs/heads/*:refs/heads/*",
                          "refs/tags/*:refs/tags/*",
                          "refs/notes/*:refs/notes/*",
                          NULL};
    struct arena a = ARENA_INIT(64 * KIB);
    const char *env[8] = {0};
    struct git_call c = {.folder = p->folder,
                         .argv = argv,
                         .is_users = p->is_users,
                         .env = p->is_users ? NULL : env,
                         .timeout_ms = p->timeout_ms,
                         .stop = p->stop,
                         .ctx = p->ctx};
    struct git_said said = {0};

    push_environment(p, &a, env);
    int code = arena_error(&a) < 0 ? err_code(err, ERR_NO_MEMORY) : git_run_well(&said, &c, err);
    git_said_release(&said);
    arena_release(&a);
    return code;
}

void restore_target_append(struct buf *out, struct str base, struct str name)
{
    name = str_skip(name, str_starts(name, STR("@")));
    while (base.len && base.p[base.len - 1] == '/')
        base.len--;
    buf_append_str(out, base);
    buf_append_char(out, '/');
    for (size_t i = 0; i < name.len; i++)
        buf_append_char(out, name.p[i] == '@' ? '.' : name.p[i]);
    buf_append_z(out, ".git");
}

/* --- texts --- */

bool restore_is_url(struct str target)
{
    ptrdiff_t scheme = str_find(target, STR("://")), at = str_chr(target, '@');
    ptrdiff_t colon = str_chr(target, ':'), slash = str_chr(target, '/');

    return scheme > 0 || (at > 0 && colon > at && (slash < 0 || slash > colon));
}

int restore_read_time(struct str text, int64_t *out)
{
    int64_t ms;

    if (str_i64(text, out) == 0 && *out >= 0)
        return 0;
    if (clock_parse_iso(text, &ms) < 0)
        return ERR_PARSE;
    *out = ms / MS_PER_S;
    return 0;
}
