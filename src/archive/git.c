/* git as a child process. */
#include "archive/git.h"

#include "archive/pkt.h"
#include "base/clock.h"
#include "base/hex.h"
#include "os/child.h"
#include "os/file.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

/* --- running --- */

void git_said_release(struct git_said *s)
{
    buf_release(&s->out);
    buf_release(&s->err);
}

/* The environment for git when it works for weir itself, not for a user's command. */
static const char *const *git_environment(struct buf *path, const char *const *more)
{
    static const char *const rest[] = {"HOME=/nonexistent",
                                       "GIT_CONFIG_NOSYSTEM=1",
                                       "GIT_CONFIG_GLOBAL=/dev/null",
                                       "GIT_TERMINAL_PROMPT=0",
                                       "GIT_NO_LAZY_FETCH=1",
                                       "GIT_OPTIONAL_LOCKS=0",
                                       "LC_ALL=C"};
    size_t n = 0;
    while (more && more[n])
        n++;
    const char **env = xcalloc(ARRAY_SIZE(rest) + n + 2, sizeof(*env));
    const char *found = getenv("PATH");

    buf_appendf(path, "PATH=%s", found ? found : "/usr/local/bin:/usr/bin:/bin");
    env[0] = path->p;
    for (size_t i = 0; i < ARRAY_SIZE(rest); i++)
        env[i + 1] = rest[i];
    for (size_t i = 0; i < n; i++)
        env[ARRAY_SIZE(rest) + 1 + i] = more[i];
    return env;
}

int git_run(struct git_said *said, const struct git_call *c, struct err *err)
{
    struct buf path = {0};
    const char *const *env = c->is_users ? NULL : git_environment(&path, c->env);
    struct child_options o = {.argv = c->argv, .env = env, .cwd = c->folder};
    uint64_t deadline = c->timeout_ms ? clock_mono_ns() + c->timeout_ms * NS_PER_MS : UINT64_MAX;

    git_said_release(said);
    said->out.max = said->err.max = GIT_SAID_MAX;
    struct child_io io = {.in = c->in,
                          .more = c->more,
                          .out = &said->out,
                          .err = &said->err,
                          .cut = true,
                          .stop = c->stop,
                          .ctx = c->ctx};
    int code = child_run(&said->status, &o, &io, deadline, err);
    free((void *)(uintptr_t)env);
    buf_release(&path);
    if (code == ERR_NOT_FOUND && file_exists(c->folder ? c->folder : "."))
        return err_set(err, ERR_UNSUPPORTED, "git is not installed");
    return code;
}

struct str git_last_words(const struct git_said *said, struct buf *room)
{
    struct str rest = buf_str(&said->err), line, last = STR_EMPTY;

    while (rest.len) {
        str_cut(rest, '\n', &line, &rest);
        if (str_trim(line).len && !str_starts(line, STR("hint:")))
            last = line;
    }
    buf_reset(room);
    peer_words(room, str_head(last, 400));
    return buf_str(room);
}

int git_run_well(struct git_said *said, const struct git_call *c, struct err *err)
{
    int code = git_run(said, c, err);
    struct buf room = {0};

    if (code == 0 && said->status != 0)
        code = err_set(err, ERR_PEER, "git %s: " STR_FMT " (status %d)", c->argv[1],
                       STR_ARG(git_last_words(said, &room)), said->status);
    buf_release(&room);
    return code;
}

int git_make_bare(const char *folder, bool is_sha256, struct err *err)
{
    const char *argv[] = {
        "git",    "init",        "--quiet",
        "--bare", "--template=", is_sha256 ? "--object-format=sha256" : "--object-format=sha1",
        "--",     folder,        NULL};
    struct git_call c = {.argv = argv};
    struct git_said said = {0};
    int code = git_run_well(&said, &c, err);

    git_said_release(&said);
    return code;
}

/* --- refs --- */

static void packed_line(struct buf *out, const unsigned char *id, size_t id_len, struct str name)
{
    buf_append_hex(out, id, id_len);
    buf_append_char(out, ' ');
    buf_append_str(out, name);
    buf_append_char(out, '\n');
}

struct packed_ref {
    struct str name;
    const unsigned char *id;
};

static int packed_ref_order(const void *a, const void *b)
{
    return str_cmp(((const struct packed_ref *)a)->name, ((const struct packed_ref *)b)->name);
}

/* Renames refs whose names git cannot accept. A name may be too long, or two refs with different
 * ids may share a name. Every id needs a ref, because git drops objects that no ref reaches. `list`
 * is sorted before and after the call. The new names `refs/weir/kept/...` are free: no line of
 * history has such a name, and weir saves no ref of a server below `refs/weir/`. */
static void packed_rename(struct packed_ref *list, size_t n, struct arena *a, size_t id_len)
{
    struct str last = STR_EMPTY;
    const unsigned char *last_id = NULL;

    qsort(list, n, sizeof(*list), packed_ref_order);
    for (size_t i = 0; i < n; i++) {
        bool again = last_id && str_eq(list[i].name, last);
        if (!again && git_ref_name_ok(list[i].name)) {
            last = list[i].name;
            last_id = list[i].id;
        } else if (!again || memcmp(last_id, list[i].id, id_len) != 0) {
            list[i].name = arena_fmt(a, "refs/weir/kept/%08zu", i);
        }
    }
    qsort(list, n, sizeof(*list), packed_ref_order);
}

/* Appends the lines of all refs, sorted as git sorts packed refs. Two points (lines of history)
 * with the same name and the same id become one ref. */
static void packed_lines(struct buf *out, struct arena *a, const struct git_refs *refs,
                         const struct bundle_header *h, enum git_refs_kind kind)
{
    size_t points = kind == GIT_REFS_WITH_POINTS ? h->points.len : 0, n = 0;
    struct packed_ref *list = xcalloc(refs->list.len + points + 1, sizeof(*list));

    vec_each (&refs->list, const struct git_ref *, ref)
        list[n++] = (struct packed_ref){git_ref_name(ref), git_ref_id(ref)};
    for (size_t i = 0; i < points; i++) {
        const struct header_point *p = &h->points.items[i];
        struct str name =
            arena_fmt(a, "refs/weir/%" PRId64 "/%s/" STR_FMT, p->at_s, p->is_new ? "new" : "was",
                      STR_ARG(str_skip(git_ref_name(&p->ref), 5)));
        list[n++] = (struct packed_ref){name, git_ref_id(&p->ref)};
    }
    packed_rename(list, n, a, git_id_len(refs->is_sha256));
    for (size_t i = 0; i < n; i++)
        if (i == 0 || !str_eq(list[i].name, list[i - 1].name))
            packed_line(out, list[i].id, git_id_len(refs->is_sha256), list[i].name);
    free(list);
}

static int write_beside(const char *folder, const char *name, struct str text, struct err *err)
{
    struct buf path = BUF_INIT(PATH_MAX);

    buf_appendf(&path, "%s/%s", folder, name);
    int code = file_write_durable(path.p, text, 0644, err);
    buf_release(&path);
    return code;
}

/* Writes HEAD. It names its branch, even if the branch has no commit yet. If no branch is known,
 * HEAD is an id. */
static int write_head(const char *folder, const struct git_refs *refs, struct err *err)
{
    struct buf text = {0};

    if (refs->head_target.len && git_ref_name_ok(refs->head_target)) {
        buf_appendf(&text, "ref: " STR_FMT, STR_ARG(refs->head_target));
    } else if (refs->has_head) {
        buf_append_hex(&text, refs->head, git_id_len(refs->is_sha256));
    } else {
        return 0;
    }
    buf_append_char(&text, '\n');
    int code = write_beside(folder, "HEAD", buf_str(&text), err);
    buf_release(&text);
    return code;
}

int git_write_refs(const char *folder, const struct git_refs *refs, const struct bundle_header *h,
                   enum git_refs_kind kind, struct err *err)
{
    struct arena a = ARENA_INIT(512 * MIB);
    struct buf text = BUF_INIT(GIB);

    buf_append_z(&text, "# pack-refs with: sorted\n");
    packed_lines(&text, &a, refs, h, kind);
    int code = arena_error(&a) < 0 || buf_error(&text) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
    if (code == 0)
        code = write_beside(folder, "packed-refs", buf_str(&text), err);
    if (code == 0)
        code = write_head(folder, refs, err);
    buf_release(&text);
    arena_release(&a);
    return code;
}
