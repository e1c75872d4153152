/* Smart HTTP of git on the API port: `git clone https://weir/git/github.com/octocat/Hello-World`.
 * It is read-only. git sends an access key as the user name, and its secret key as the password.
 * They must be the keys of an administrator, or of the user who owns the buckets on the account's
 * satellite (the storage with this part of the archive). archive/serve.h has the protocol. */
#include "archive/rest/rest.h"

#include "archive/saved.h"
#include "archive/serve.h"
#include "base/clock.h"
#include "rest/guesses.h"
#include "route/users.h"

static rest_fn git_info_refs, git_upload_pack;

/* --- the dialect: errors are text, because git shows no other --- */

static rest_fn git_admit;

static int git_status(int code)
{
    (void)code;
    return 0;
}

static void git_write_error(struct json_out *w, const char *code, const char *message,
                            const char *id)
{
    (void)code;
    (void)id;
    json_out_member_str(w, "message", str_z(message));
}

static const struct rest_field git_no_pages[] = {{0}};

static const struct rest_dialect git_dialect = {
    .admit = git_admit,
    .status = git_status,
    .write_error = git_write_error,
    .paging = git_no_pages,
    .below = "/git/",
    .no_path = "there is no such repository",
    .lenient = true,
};

static const struct rest_field git_path_fields[] = {
    {"host", "The forge's host."},
    {"path", "The account, the repository, and what git asks for."},
    {0},
};

static const struct rest_row git_rows[] = {
    {HTTP_GET, "/git/{host}/{path...}", REST_USER,
     "git's info/refs: the refs of an archived repository.", git_info_refs,
     .in_path = git_path_fields, .query = REST_FIELDS({"service", "git-upload-pack."}),
     .media = "application/x-git-upload-pack-advertisement"},
    {HTTP_POST, "/git/{host}/{path...}", REST_USER,
     "git's git-upload-pack: the objects of an archived repository.", git_upload_pack,
     .in_path = git_path_fields, .stream_body = "A request of git's protocol, perhaps as gzip.",
     .media = "application/x-git-upload-pack-result"},
};
const struct rest_table archive_git_routes = {REST_ROWS(git_rows), .dialect = &git_dialect};

/* --- who calls --- */

static int git_unauthorized(struct rest_call *c)
{
    rest_refuse(c, 401, "unauthorized",
                "give the keys of an administrator or of the satellite's user",
                (struct http_header){STR("WWW-Authenticate"), STR("Basic realm=\"weir\"")});
    return ERR_DENIED;
}

/* Checks the keys. Checking an unknown access key takes as long as checking a wrong secret, so the
 * time does not reveal which access keys exist. */
static int git_check_keys(struct rest_call *c, const struct basic *keys, struct user *out,
                          struct err *err)
{
    struct str real = STR("nobody's secret, which is compared all the same");
    struct users *users = rest_archive(c)->services->users;
    int code = users_by_key(users, c->arena, keys->user, out, &real, err);
    bool same = guesses_same(real, keys->password);

    if (code < 0)
        return code == ERR_NOT_FOUND ? ERR_DENIED : code;
    secure_zero((char *)(uintptr_t)real.p, real.len);
    return same ? 0 : ERR_DENIED;
}

static int git_admit(struct rest_call *c, struct err *err)
{
    struct guesses *g = &((struct archive_room *)c->ctx)->guesses;
    const struct sock_addr *peer = http_request_peer(c->req);
    struct user *user = arena_new(c->arena, struct user);
    struct basic keys;

    if (!user)
        return err_code(err, ERR_NO_MEMORY);
    if (!basic_read(&keys, http_header(http_request_head(c->req), "Authorization")))
        return git_unauthorized(c);
    int code =
        guesses_allowed(g, peer, clock_mono_ms()) ? git_check_keys(c, &keys, user, err) : ERR_BUSY;
    basic_release(&keys);
    if (code == ERR_BUSY)
        return err_set(err, code, "too many wrong keys from this address; try again later");
    if (code == ERR_DENIED) {
        guesses_count(g, peer, clock_mono_ms());
        return git_unauthorized(c);
    }
    if (code < 0)
        return err_set(err, code, "the users have not been loaded yet");
    c->caller = user;
    http_request_know(c->req);
    return 0;
}

/* --- which repository --- */

struct git_source {
    struct saved saved;
    struct bundle_old bundle;
    struct archive_account account;
    struct str name;
};

static void git_source_close(struct git_source *g)
{
    bundle_old_release(&g->bundle);
    saved_close(&g->saved);
}

/* git shows the text of an error only as text/plain. */
static int git_refuse(struct rest_call *c, int status, const char *text)
{
    rest_header(c, STR("Content-Type"), STR("text/plain; charset=utf-8"));
    if (status == 503)
        rest_header(c, STR("Retry-After"), STR("30"));
    return http_send(rest_take_answer(c, status), str_z(text));
}

/* Returns where the name of the bundle begins in the path of a repository: behind the last '/', or
 * at `@gists/`. */
static size_t git_name_at(struct str path)
{
    ptrdiff_t gists = str_find(path, STR("/@gists/"));
    size_t at = path.len;

    while (gists < 0 && at && path.p[at - 1] != '/')
        at--;
    return gists < 0 ? at : (size_t)gists + 1;
}

/* Splits `octocat/Hello-World.git/info/refs` into its names. */
static int git_names(struct rest_call *c, struct str suffix, struct git_source *g, struct err *err)
{
    struct str path = rest_text(c, "path");

    if (!str_ends(path, suffix))
        return err_set(err, ERR_NOT_FOUND, "there is no such repository");
    path = str_head(path, path.len - suffix.len);
    if (str_ends(path, STR(".git")))
        path.len -= 4;
    size_t at = git_name_at(path);
    if (at < 2)
        return err_set(err, ERR_NOT_FOUND, "there is no such repository");
    g->name = str_skip(path, at);
    int code = archive_account_make(&g->account, c->arena, rest_text(c, "host"),
                                    str_head(path, at - 1), err);
    return code < 0 || !saved_name_ok(g->name) ? ERR_NOT_FOUND : 0;
}

static int git_open_bundle(struct rest_call *c, struct git_source *g, struct err *err)
{
    int code = saved_open(&g->saved, rest_archive(c), c->arena, &g->account, g->name, err);

    if (code < 0)
        return code;
    const struct user *user = c->caller;
    if (!user->admin && !str_eq(user->id, g->saved.shelf.user))
        return err_set(err, ERR_NOT_FOUND, "there is no such repository");
    struct bundle_job job = {
        .bucket = g->saved.job.bucket, .arena = c->arena, .key = g->saved.job.key};
    return bundle_open(&g->bundle, &job, err);
}

/* Opens a wiki. Its name is `<repository>.wiki`, as on forges. */
static int git_open_wiki(struct rest_call *c, struct git_source *g, struct err *err)
{
    if (!str_ends(g->name, STR(".wiki")))
        return ERR_NOT_FOUND;
    g->name = arena_fmt(c->arena, STR_FMT "@wiki", STR_ARG(str_head(g->name, g->name.len - 5)));
    return git_open_bundle(c, g, err);
}

static int git_open(struct rest_call *c, struct str suffix, struct git_source *g, struct err *err)
{
    *g = (struct git_source){0};
    int code = git_names(c, suffix, g, err);
    if (code == 0)
        code = git_open_bundle(c, g, err);
    if (code == ERR_NOT_FOUND && g->name.len) {
        git_source_close(g);
        *g = (struct git_source){.account = g->account, .name = g->name};
        code = git_open_wiki(c, g, err);
    }
    if (code < 0)
        git_source_close(g);
    return code;
}

/* If the error has a text for the client, sends the text, which says why the repository cannot be
 * served. Other errors are returned. */
static int git_fail(struct rest_call *c, int code, struct err *err)
{
    if (code == ERR_NOT_FOUND)
        return git_refuse(c, 404, "weir has no such repository\n");
    if (code == ERR_CORRUPT)
        return git_refuse(c, 500, "the stored bundle is damaged\n");
    return err_wrap(err, code, "the repository cannot be read");
}

/* Whether the pack can be served. If it cannot, an audit is queued, and the client gets a text that
 * asks it to try again later. */
static int git_check_safe(struct rest_call *c, struct git_source *g, bool *safe, struct err *err)
{
    struct audit_verdict v;
    int code = audit_look(&v, &g->saved.job, err);

    if (code < 0 && code != ERR_NOT_FOUND)
        return code;
    *safe = serve_is_safe(&g->bundle, code == 0 ? &v : NULL);
    if (*safe)
        return 0;
    bool judged = code == 0 && str_eq(str_z(v.etag), g->bundle.info.etag);
    code = judged && !v.ok ? 0
                           : saved_queue(rest_archive(c), &g->account, g->name,
                                         judged ? AUDIT_TIDY : AUDIT_AUDIT, err);
    if (code < 0)
        return code;
    return git_refuse(c, 503,
                      judged && !v.ok ? "the stored bundle is damaged\n"
                      : judged ? "the stored pack has objects twice, which git refuses; weir packs "
                                 "it anew, try again later\n"
                               : "weir looks first whether the stored pack has an object twice, "
                                 "which git refuses; try again later\n");
}

/* --- answers --- */

static bool git_is_v2(struct rest_call *c)
{
    struct str rest = http_header(http_request_head(c->req), "Git-Protocol"), word;

    while (str_token(&rest, ":", &word))
        if (str_eq(word, STR("version=2")))
            return true;
    return false;
}

static int git_send_refs(struct rest_call *c, const struct bundle_header *h, struct err *err)
{
    struct buf body = BUF_INIT(SERVE_ANSWER_MAX);
    int code = 0;

    serve_advert(&body, h, git_is_v2(c));
    if (buf_error(&body) < 0)
        code = err_set(err, ERR_TOO_LARGE, "the repository has too many refs");
    rest_header(c, STR("Cache-Control"), STR("no-cache"));
    rest_header(c, STR("Content-Type"), STR("application/x-git-upload-pack-advertisement"));
    if (code == 0)
        code = http_send(rest_take_answer(c, 200), buf_str(&body));
    buf_release(&body);
    return code;
}

static int git_info_refs(struct rest_call *c, struct err *err)
{
    struct git_source g;
    bool safe = false;

    if (!str_eq(rest_text(c, "service"), STR("git-upload-pack")))
        return git_refuse(c, 403, "weir serves archived repositories read-only, by smart HTTP\n");
    int code = git_open(c, STR("/info/refs"), &g, err);
    if (code < 0)
        return git_fail(c, code, err);
    /* The check comes before the answer begins, because git shows the reason of a refusal only
     * here. */
    code = git_check_safe(c, &g, &safe, err);
    if (code == 0 && safe)
        code = git_send_refs(c, &g.bundle.header, err);
    git_source_close(&g);
    return code;
}

/* Reads the request's body, which may be gzip. */
static int git_read_ask(struct rest_call *c, const struct bundle_header *h, struct serve_ask *out,
                        struct err *err)
{
    struct str encoding = http_header(http_request_head(c->req), "Content-Encoding");
    struct limit_reader plain;
    struct gunzip_reader packed;
    bool is_gzip = str_ieq(encoding, STR("gzip")) || str_ieq(encoding, STR("x-gzip"));

    limit_reader_init(&plain, http_request_body(c->req), SERVE_BODY_MAX);
    if (!is_gzip)
        return serve_ask_read(out, c->arena, &plain.reader, git_is_v2(c), h, err);
    gunzip_reader_init(&packed, &plain.reader, SERVE_BODY_MAX);
    int code = serve_ask_read(out, c->arena, &packed.reader, git_is_v2(c), h, err);
    gunzip_reader_release(&packed);
    return code;
}

/* A reader of the answer: first the text before the pack, then the pack. */
struct git_body {
    struct reader reader;
    struct str head;
    struct serve_pack pack;
};

static int git_body_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct git_body *b = container_of(r, struct git_body, reader);

    if (b->head.len == 0)
        return reader_read(&b->pack.reader, to, len, got, err);
    *got = size_min(len, b->head.len);
    memcpy(to, b->head.p, *got);
    b->head = str_skip(b->head, *got);
    return 0;
}

static void git_answer_headers(struct rest_call *c)
{
    rest_header(c, STR("Cache-Control"), STR("no-cache"));
    rest_header(c, STR("Content-Type"), STR("application/x-git-upload-pack-result"));
}

static int git_send_pack(struct rest_call *c, struct git_source *g, const struct serve_ask *ask,
                         struct str head, struct err *err)
{
    static const struct reader_ops ops = {.read = git_body_read};
    struct bucket *b = g->saved.job.bucket;
    uint64_t pack_at = g->bundle.header.pack_at;
    struct object_range range = {RANGE_FROM_TO, pack_at, UINT64_MAX};
    struct object_conditions same = {
        .if_match = arena_fmt(c->arena, "\"" STR_FMT "\"", STR_ARG(g->bundle.info.etag))};
    struct git_body body = {.reader = {&ops}, .head = head};
    struct get_result got = {0};
    int code = b->ops->get(b, c->arena, g->saved.job.key, STR_EMPTY, &same, &range, &got, err);

    if (code < 0)
        return git_fail(c, code == ERR_PRECONDITION ? ERR_BUSY : code, err);
    serve_pack_init(&body.pack, got.body, g->bundle.info.size - pack_at,
                    !ask->is_v2 && !ask->side_band);
    git_answer_headers(c);
    uint64_t len = head.len + serve_pack_size(&body.pack);
    code = http_send_reader(rest_take_answer(c, 200), &body.reader, len);
    serve_pack_release(&body.pack);
    reader_close(got.body);
    return code;
}

static int git_answer(struct rest_call *c, struct git_source *g, const struct serve_ask *ask,
                      struct err *err)
{
    struct buf head = BUF_INIT(SERVE_ANSWER_MAX);
    bool safe = true, pack = serve_answer(&head, ask, &g->bundle.header);
    int code = buf_error(&head) < 0 ? err_set(err, ERR_TOO_LARGE, "too many refs") : 0;

    if (code == 0 && pack)
        code = git_check_safe(c, g, &safe, err);
    if (code == 0 && safe && pack) {
        code = git_send_pack(c, g, ask, buf_str(&head), err);
    } else if (code == 0 && safe) {
        git_answer_headers(c);
        code = http_send(rest_take_answer(c, 200), buf_str(&head));
    }
    buf_release(&head);
    return code;
}

static int git_upload_pack(struct rest_call *c, struct err *err)
{
    struct git_source g;
    struct serve_ask *ask = arena_new(c->arena, struct serve_ask);
    int code = ask ? git_open(c, STR("/git-upload-pack"), &g, err) : ERR_NO_MEMORY;

    if (code < 0)
        return git_fail(c, code, err);
    code = git_read_ask(c, &g.bundle.header, ask, err);
    if (code == ERR_PARSE || code == ERR_CLOSED)
        code = git_refuse(c, 400, "this is not a request of git\n");
    else if (code == 0)
        code = git_answer(c, &g, ask, err);
    git_source_close(&g);
    return code;
}
