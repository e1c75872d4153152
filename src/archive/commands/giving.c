/* The commands weir archive restore, audit and tidy. */
#include "archive/commands/restores.h"
#include "archive/names.h"
#include "archive/restore.h"
#include "archive/room.h"
#include "archive/saved.h"
#include "base/clock.h"
#include "command/manage.h"
#include "http/wire.h"
#include "os/file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* --- names --- */

/* The parts of the first argument: an account, and perhaps a repository of the account. */
struct given_name {
    struct str account; /* `github.com/octocat` */
    struct str repo;    /* empty: the whole account */
};

static struct str given_text(const char *text)
{
    struct str s = str_trim(str_z(text));

    if (str_starts(s, STR("https://")))
        s = str_skip(s, 8);
    while (s.len && s.p[s.len - 1] == '/')
        s.len--;
    if (str_ends(s, STR(".git")))
        s.len -= 4;
    return s;
}

/* Splits off the last part, if at least `host/login` is left, or the name of a gist. */
static struct given_name given_repo(struct str text)
{
    ptrdiff_t gist = str_find(text, STR("/@gists/"));
    size_t at = text.len, slashes = 0;

    if (gist > 0)
        return (struct given_name){str_head(text, (size_t)gist), str_skip(text, (size_t)gist + 1)};

    for (size_t i = 0; i < text.len; i++)
        slashes += text.p[i] == '/';
    if (slashes < 2)
        return (struct given_name){text, STR_EMPTY};
    while (text.p[at - 1] != '/')
        at--;
    return (struct given_name){str_head(text, at - 1), str_skip(text, at)};
}

/* The path of a call about an account: `/api/v1/archive/accounts/<account><behind>[<name>]`. */
static const char *giving_path(struct api_client *r, struct str account, const char *behind,
                               struct str name)
{
    struct buf path = BUF_INIT(8 * KIB);

    buf_append_z(&path, "/api/v1/archive/accounts/");
    url_encode(&path, account, false);
    buf_append_z(&path, behind);
    url_encode(&path, name, false);
    const char *copy = arena_z(&r->arena, buf_str(&path));
    buf_release(&path);
    return copy;
}

/* --- restore --- */

static const struct flag restore_flags[] = {
    {"at", FLAG_TEXT, "TIME", NULL,
     "The refs as the last sync at or before TIME found them: 2026-01-31T03:00:00Z, or seconds "
     "since 1970. A TIME before the first sync is refused."},
    {"history", FLAG_SWITCH, NULL, NULL,
     "Keep the former tips of all refs too, as refs/weir/TIME/was|new/NAME."},
    {"all", FLAG_SWITCH, NULL, NULL,
     "Of a whole account, restore copies too: damaged bundles (NAME@damaged-TIME), and those of "
     "which a satellite had another one (NAME@moved-TIME)."},
    {"here", FLAG_SWITCH, NULL, NULL,
     "Push to an http or https URL from this machine too, with git's settings and passwords here."},
    {"detach", FLAG_SWITCH, NULL, NULL,
     "Do not wait for the end of a restore that the server does."},
    CLIENT_FLAGS,
    {0},
};

static const struct output_column restore_columns[] = {
    {"name"}, {"to"}, {"refs", .number = true}, {"bytes", .number = true}, {"state"}};

struct restore_command {
    struct api_client *r;
    struct output *table;
    struct given_name from;
    const char *target;
    bool is_url, is_account, shows;
    bool all; /* of an account, copies are restored too */
    struct restore_options o;
    struct str name; /* name of the bundle that is being restored */
    size_t failed;
};

static void restore_show(void *ctx, uint64_t bytes)
{
    struct restore_command *c = ctx;

    if (c->shows)
        fprintf(stderr, "\r" STR_FMT ": %llu MiB\033[K", STR_ARG(c->name),
                (unsigned long long)(bytes / MIB));
}

static void restore_row(struct restore_command *c, const char *to, const struct restore_result *r,
                        const char *state)
{
    output_cell(c->table, c->name);
    output_cell(c->table, str_z(to));
    output_cellf(c->table, "%llu", (unsigned long long)r->refs);
    output_cellf(c->table, "%llu", (unsigned long long)r->bytes);
    output_cell(c->table, str_z(state));
}

/* --- restores of a past time --- */

/* Appends the names of the bundles that are kept beside this one: ", X@1296269, X@…". */
static void restore_list_kept(struct restore_command *c, struct buf *out)
{
    struct buf behind = BUF_INIT(KIB);
    struct manage_list list = {.name = "bundles"};
    json_t *rows = NULL;
    struct err ignored = {0};

    buf_append_z(&behind, "/bundles?all=true&beside=");
    list.path = giving_path(c->r, c->from.account, behind.p, c->name);
    buf_release(&behind);
    int code = manage_pages(c->r, &list, &rows, &ignored);
    for (size_t i = 0; code == 0 && i < json_array_size(rows); i++) {
        struct str name = json_get_str(json_array_get(rows, i), "name", STR_EMPTY);
        if (saved_is_repo(name) || !saved_is_repo(c->name))
            buf_appendf(out, ", " STR_FMT, STR_ARG(name));
    }
    json_decref(rows);
}

static int restore_too_early(struct restore_command *c, int64_t first_s, struct err *err)
{
    struct buf kept = BUF_INIT(sizeof(err->text));
    char first[CLOCK_ISO_LEN + 1];

    clock_iso(first_s * MS_PER_S, first);
    restore_list_kept(c, &kept);
    int code = err_set(
        err, ERR_RANGE,
        "the first sync of this bundle was at %s, after the time of --at; %s" STR_FMT, first,
        kept.len ? "earlier bundles are kept beside it: " : "no earlier bundle is kept beside it",
        STR_ARG(str_skip(buf_str(&kept), 2)));
    buf_release(&kept);
    return code;
}

/* Refuses a time before the first sync of the bundle, because nothing is known about it. `first` is
 * empty for a bundle that an older weir has written. */
static int restore_check_time(struct restore_command *c, struct str first, struct err *err)
{
    int64_t first_s;

    if (!c->o.has_at || str_i64(first, &first_s) < 0 || c->o.at_s >= first_s)
        return 0;
    return restore_too_early(c, first_s, err);
}

static void restore_warn_unsure(const struct restore_command *c, struct str first,
                                const struct restore_result *r)
{
    if (c->o.has_at && first.len == 0 && !r->is_past)
        fprintf(stderr,
                "weir: " STR_FMT ": the bundle does not say when its first sync was; if that was "
                "after the time of --at, these are the refs of the first sync\n",
                STR_ARG(c->name));
}

/* Downloads the bundle and restores it into the folder. ERR_NOT_FOUND: there is no such bundle.
 * ERR_RANGE: its first sync was after the time of --at. */
static int restore_into(struct restore_command *c, const char *folder, struct restore_result *out,
                        struct err *err)
{
    const char *path = giving_path(c->r, c->from.account, "/bundles/", c->name);
    struct client_stream *stream = NULL;
    struct client_response head;
    struct restore_options o = c->o;
    int code = api_client_open(c->r, path, &head, &stream, err);
    struct str first = client_header(&head, "X-Weir-First");

    if (code < 0 && head.status == 404)
        code = ERR_NOT_FOUND;
    if (code == 0)
        code = restore_check_time(c, first, err);
    o.folder = folder;
    o.progress = restore_show;
    o.ctx = c;
    if (code == 0)
        code = restore_bundle(out, client_stream_reader(stream), &o, err);
    client_stream_close(stream);
    if (c->shows)
        fprintf(stderr, "\r\033[K");
    if (code == 0)
        restore_warn_unsure(c, first, out);
    return code;
}

/* Restores into a temporary folder, pushes from there, and removes the folder. */
static int restore_to_url(struct restore_command *c, const char *url, struct restore_result *out,
                          struct err *err)
{
    const char *parent = getenv("TMPDIR");
    struct buf made = BUF_INIT(PATH_MAX), inner = BUF_INIT(PATH_MAX);
    struct err ignored = {0};

    buf_appendf(&made, "%s/weir-restore-XXXXXX", parent && *parent ? parent : "/tmp");
    if (!mkdtemp(made.p)) {
        buf_release(&made);
        return err_set(err, ERR_IO, "cannot make a folder for the restore; TMPDIR names another");
    }
    buf_appendf(&inner, "%s/repository.git", made.p);
    int code = restore_into(c, inner.p, out, err);
    if (code == 0 && out->refs)
        code = restore_push(&(struct restore_push){.folder = inner.p, .url = url, .is_users = true},
                            err);
    if (dir_remove_tree(made.p, &ignored) < 0 && code == 0)
        code = err_set(err, ERR_IO, "%s is left behind: %s", made.p, ignored.text);
    buf_release(&made);
    buf_release(&inner);
    return code;
}

static void restore_target(const struct restore_command *c, struct buf *out)
{
    if (c->is_account)
        restore_target_append(out, str_z(c->target), c->name);
    else
        buf_append_z(out, c->target);
}

static int restore_one(struct restore_command *c, struct err *err)
{
    struct restore_result result = {0};
    struct buf to = BUF_INIT(PATH_MAX);

    restore_target(c, &to);
    int code = !saved_name_ok(c->name)
                   ? err_set(err, ERR_INVALID, "this cannot be the name of a repository")
               : buf_error(&to) < 0 ? err_set(err, ERR_INVALID, "the target's name is too long")
               : c->is_url          ? restore_to_url(c, to.p, &result, err)
                                    : restore_into(c, to.p, &result, err);
    if (code == 0)
        restore_row(c, to.p, &result, c->is_url ? "pushed" : "restored");
    else if (c->is_account)
        restore_row(c, to.p, &result, err->text);
    buf_release(&to);
    return code;
}

static int restore_has_none(struct str account, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND, "the archive has no bundle of " STR_FMT, STR_ARG(account));
}

/* Restores every bundle of the account. A bundle that fails does not stop the others. */
static int restore_account(struct restore_command *c, struct err *err)
{
    const char *behind = c->all ? "/bundles?all=true" : "/bundles";
    struct manage_list list = {.path = giving_path(c->r, c->from.account, behind, STR_EMPTY),
                               .name = "bundles"};
    json_t *rows = NULL;
    int code = manage_pages(c->r, &list, &rows, err);

    if (code == 0 && json_array_size(rows) == 0)
        code = restore_has_none(c->from.account, err);
    if (code == 0 && !c->is_url)
        code = dir_make(c->target, 0755, err);
    for (size_t i = 0; code == 0 && i < json_array_size(rows); i++) {
        struct err one = {0};
        c->name = json_get_str(json_array_get(rows, i), "name", STR_EMPTY);
        if (restore_one(c, &one) < 0) {
            fprintf(stderr, "weir: " STR_FMT ": %s\n", STR_ARG(c->name), one.text);
            c->failed++;
        }
    }
    size_t all = json_array_size(rows);
    json_decref(rows);
    if (code == 0 && c->failed)
        return err_set(err, ERR_PEER, "%zu of %zu repositories were not restored", c->failed, all);
    return code;
}

static int restore_options_read(struct restore_command *c, const struct invocation *inv,
                                struct err *err)
{
    const char *at = invocation_flag(inv, "at");

    c->o.history = invocation_flag(inv, "history") != NULL;
    c->o.has_at = at != NULL;
    if (at && restore_read_time(str_z(at), &c->o.at_s) < 0)
        return err_set(err, ERR_INVALID,
                       "'%s' is not a time; write 2026-01-31T03:00:00Z or seconds since 1970", at);
    return 0;
}

/* Whether the account has a bundle of this name. */
static int restore_has_bundle(struct restore_command *c, bool *has, struct err *err)
{
    struct client_response answer = {0};
    int code = api_client_call(c->r, giving_path(c->r, c->from.account, "/audits/", c->from.repo),
                               NULL, &answer, err);

    *has = answer.status != 404;
    if (code == 0 && *has && answer.status / 100 != 2)
        code = api_client_error(c->r, &answer, err);
    return code;
}

/* Checks that the account has a bundle, so that a wrong name is told before a task is queued. */
static int restore_check_account(struct restore_command *c, struct str account, struct err *err)
{
    const char *behind = c->all ? "/bundles?all=true" : "/bundles";
    json_t *page = NULL;
    int code = api_client_send(c->r, "GET", giving_path(c->r, account, behind, STR_EMPTY), NULL,
                               &page, err);

    if (code == 0 && json_array_size(json_object_get(page, "bundles")) == 0)
        code = restore_has_none(account, err);
    json_decref(page);
    return code;
}

/* Lets the server push to the URL. `text` is the first argument. */
static int restore_by_server(struct restore_command *c, struct str text, bool detach,
                             struct err *err)
{
    struct restore_order o = {.account = c->from.account,
                              .name = c->from.repo,
                              .url = c->target,
                              .has_at = c->o.has_at,
                              .at_s = c->o.at_s,
                              .all = c->all,
                              .detach = detach};
    struct archive_account account;
    struct err ignored = {0};
    bool has = true;
    int code = o.name.len ? restore_has_bundle(c, &has, err) : 0;

    /* The name of a GitLab group may have several parts. */
    if (code == 0 && !has && archive_account_read(&account, &c->r->arena, text, &ignored) < 0)
        return err_set(err, ERR_NOT_FOUND, "there is no such bundle");
    if (!has) {
        o.account = text;
        o.name = STR_EMPTY;
    }
    if (code == 0 && o.name.len == 0)
        code = restore_check_account(c, o.account, err);
    return code < 0 ? code : restores_follow(c->r, &o, c->table, err);
}

static int restore_command_run(struct api_client *r, const struct invocation *inv,
                               struct output *table, struct err *err)
{
    struct str text = given_text(inv->args.items[0]);
    struct restore_command c = {.r = r,
                                .table = table,
                                .from = given_repo(text),
                                .target = inv->args.items[1],
                                .is_url = restore_is_url(str_z(inv->args.items[1])),
                                .all = invocation_flag(inv, "all") != NULL,
                                .shows = isatty(STDERR_FILENO)};
    struct archive_account account;
    int code = archive_account_read(&account, &r->arena, c.from.account, err);

    if (code == 0)
        code = restore_options_read(&c, inv, err);
    if (code == 0 && restores_can(c.target) && !invocation_flag(inv, "here"))
        return restore_by_server(&c, text, invocation_flag(inv, "detach") != NULL, err);
    if (code == 0 && c.from.repo.len) {
        c.name = c.from.repo;
        code = restore_one(&c, err);
        /* The name of a GitLab group may have several parts, so the last part of the argument may
         * belong to the account. */
        if (code != ERR_NOT_FOUND)
            return code;
    } else if (code < 0) {
        return code;
    }
    if (c.from.repo.len && archive_account_read(&account, &r->arena, text, &(struct err){0}) < 0)
        return code;
    c.from = (struct given_name){text, STR_EMPTY};
    c.is_account = true;
    return restore_account(&c, err);
}

/* --- audit and tidy --- */

static const struct flag audit_flags[] = {
    {"wait", FLAG_SWITCH, NULL, NULL, "Wait for the verdicts and show them."},
    CLIENT_FLAGS,
    {0},
};

static const struct output_column audit_columns[] = {{"name"},
                                                     {"state"},
                                                     {"at"},
                                                     {"bytes", .number = true},
                                                     {"objects", .number = true},
                                                     {"doubles", .number = true},
                                                     {"words"}};

struct audit_command {
    struct api_client *r;
    struct given_name of;
    struct output *table;
    bool waits, tidy;
    int64_t since_ms; /* the time of the server when the tasks were queued */
    int64_t queued;
    size_t damaged;
    size_t failed; /* bundles whose tasks left no verdict */
};

/* Queues the tasks for one bundle, or for all of the account if `name` is empty. */
static int audit_ask(struct audit_command *c, struct str name, json_t **answer, struct err *err)
{
    struct buf body = {0};
    struct json_out w;

    json_out_init(&w, &body);
    json_out_open(&w, '{');
    if (name.len)
        json_out_member_str(&w, "name", name);
    json_out_member_bool(&w, "tidy", c->tidy);
    json_out_close(&w, '}');
    int code = api_client_send(c->r, "POST", giving_path(c->r, c->of.account, "/audits", STR_EMPTY),
                               body.p, answer, err);
    buf_release(&body);
    return code;
}

static int audit_begin(struct audit_command *c, struct err *err)
{
    json_t *answer = NULL;
    int code = audit_ask(c, c->of.repo, &answer, err);

    c->queued = json_get_i64(answer, "queued", 0);
    if (code == 0 && clock_parse_iso(json_get_str(answer, "since", STR_EMPTY), &c->since_ms) < 0)
        code = err_set(err, ERR_PEER, "the server does not say when it has queued the audits");
    json_decref(answer);
    return code;
}

static int audit_ask_again(struct audit_command *c, struct str name, struct err *err)
{
    json_t *answer = NULL;
    int code = audit_ask(c, name, &answer, err);

    json_decref(answer);
    return code;
}

/* Gets the verdict about a bundle, and the state of its task. */
static int audit_read(struct audit_command *c, struct str name, json_t **out, struct err *err)
{
    const char *path = giving_path(c->r, c->of.account, "/audits/", name);

    if (c->tidy)
        path = arena_fmt(&c->r->arena, "%s?tidy=true", path).p;
    return api_client_send(c->r, "GET", path, NULL, out, err);
}

/* A wait for the verdict about one bundle. A task that ran already when the command began may have
 * read an older bundle. So when that task has ended, and its verdict is older than the command, the
 * command queues a second task. */
struct audit_wait {
    bool again;        /* the command has queued a second task */
    struct str before; /* with `again`: the time of the verdict that was there then */
};

/* Whether the verdict was made for this command. Once the command has queued a second task, each
 * verdict with another time than `before` counts, even an earlier time, because the clocks of the
 * worker and of the server may differ. */
static bool audit_is_new(const struct audit_command *c, const struct audit_wait *w,
                         const json_t *verdict)
{
    struct str text = json_get_str(verdict, "at", STR_EMPTY);
    int64_t at;

    return (clock_parse_iso(text, &at) == 0 && at >= c->since_ms) ||
           (w->again && !str_eq(text, w->before));
}

/* Whether the wait is over. A task that was given up leaves no verdict, unless it has found damage.
 * A task that somebody has removed leaves none either. */
static bool audit_is_over(const struct audit_command *c, const struct audit_wait *w,
                          const json_t *verdict)
{
    struct str task = json_get_str(verdict, "task", STR_EMPTY);

    return str_eq(task, STR("archived")) ||
           (task.len == 0 && (w->again || audit_is_new(c, w, verdict)));
}

/* Turns an old verdict into a row that has the words of the task that failed. */
static void audit_set_failed(struct audit_command *c, json_t *verdict)
{
    struct str words = json_get_str(verdict, "task_error", STR_EMPTY);

    if (words.len == 0)
        words = STR("the task is gone, and has left no verdict");
    json_object_set_new(verdict, "words", json_stringn(words.p, words.len));
    json_object_set_new(verdict, "state", json_string("failed"));
    c->failed++;
}

/* Reads the verdict again and again until the task of the bundle has ended. */
static int audit_wait_for(struct audit_command *c, struct str name, json_t **out, struct err *err)
{
    struct audit_wait w = {0};
    int code = audit_read(c, name, out, err);

    while (code == 0 && !audit_is_over(c, &w, *out)) {
        if (json_get_str(*out, "task", STR_EMPTY).len == 0) {
            w.again = true;
            w.before = arena_str(&c->r->arena, json_get_str(*out, "at", STR_EMPTY));
            code = audit_ask_again(c, name, err);
        }
        json_decref(*out);
        *out = NULL;
        manage_poll_wait();
        if (code == 0)
            code = audit_read(c, name, out, err);
    }
    if (code == 0 && !audit_is_new(c, &w, *out))
        audit_set_failed(c, *out);
    return code;
}

static int audit_show(struct audit_command *c, struct str name, struct err *err)
{
    json_t *verdict = NULL;
    int code =
        c->waits ? audit_wait_for(c, name, &verdict, err) : audit_read(c, name, &verdict, err);

    if (code == 0) {
        c->damaged += str_eq(json_get_str(verdict, "state", STR_EMPTY), STR("damaged"));
        manage_row(c->table, verdict);
    }
    json_decref(verdict);
    return code;
}

/* Lists the bundles of the account before their tasks are queued: a bundle that comes later has no
 * task, and its verdict is not waited for. */
static int audit_list(struct audit_command *c, json_t **out, struct err *err)
{
    struct manage_list list = {.path = giving_path(c->r, c->of.account, "/bundles", STR_EMPTY),
                               .name = "bundles"};

    return c->of.repo.len ? 0 : manage_pages(c->r, &list, out, err);
}

static int audit_show_all(struct audit_command *c, const json_t *rows, struct err *err)
{
    int code = 0;

    for (size_t i = 0; code == 0 && i < json_array_size(rows); i++)
        code = audit_show(c, json_get_str(json_array_get(rows, i), "name", STR_EMPTY), err);
    return code;
}

static int audit_sum_up(const struct audit_command *c, struct err *err)
{
    if (c->damaged)
        return err_set(err, ERR_CORRUPT, "%zu bundles are damaged", c->damaged);
    return c->failed ? err_set(err, ERR_PEER, "%zu bundles could not be %s", c->failed,
                               c->tidy ? "tidied" : "audited")
                     : 0;
}

static int audit_command_run(struct api_client *r, const struct invocation *inv,
                             struct output *table, bool tidy, struct err *err)
{
    struct audit_command c = {.r = r,
                              .of = given_repo(given_text(inv->args.items[0])),
                              .table = table,
                              .waits = invocation_flag(inv, "wait") != NULL,
                              .tidy = tidy};
    struct archive_account account;
    json_t *rows = NULL;
    int code = archive_account_read(&account, &r->arena, c.of.account, err);

    if (code == 0)
        code = audit_list(&c, &rows, err);
    if (code == 0)
        code = audit_begin(&c, err);
    if (code == 0 && !c.waits)
        fprintf(stderr, "%lld bundles are queued; these are the last verdicts\n",
                (long long)c.queued);
    if (code == 0)
        code = c.of.repo.len ? audit_show(&c, c.of.repo, err) : audit_show_all(&c, rows, err);
    json_decref(rows);
    return code < 0 ? code : audit_sum_up(&c, err);
}

static int audit_only_run(struct api_client *r, const struct invocation *inv, struct output *table,
                          struct err *err)
{
    return audit_command_run(r, inv, table, false, err);
}

static int tidy_run_command(struct api_client *r, const struct invocation *inv,
                            struct output *table, struct err *err)
{
    return audit_command_run(r, inv, table, true, err);
}

/* --- the table --- */

static const struct manage_call restore_call = {MANAGE_COLUMNS(restore_columns),
                                                .run = restore_command_run};
static const struct manage_call audit_call = {MANAGE_COLUMNS(audit_columns), .run = audit_only_run};
static const struct manage_call tidy_call = {MANAGE_COLUMNS(audit_columns),
                                             .run = tidy_run_command};

const struct command archive_giving_commands[] = {
    {.name = "archive restore",
     .arguments = "ACCOUNT[/REPOSITORY] DIR|URL",
     .min_args = 2,
     .max_args = 2,
     .flags = restore_flags,
     .configured = true,
     .summary = "Give a saved repository, or all of an account, back to git",
     .help =
         "With a folder, the repository becomes a bare repository there; all repositories of an "
         "account become bare repositories in that folder, with their wikis (NAME.wiki.git), gists "
         "(gists/ID.git), and the repositories that had a name before (NAME.ID.git). The bundles "
         "come from the API of a running weir, and git must be installed here.\n\n"
         "With the URL of a git server, branches, tags and notes are pushed to it; for a whole "
         "account, to URL/REPOSITORY.git, which must exist. A worker of the server does this as a "
         "task, which goes on after a kill, and the command shows how far it has come. User and "
         "password may be in the URL. If the command is ended, the task goes on. With --here, and "
         "with URLs other than http and https, this machine pushes instead.",
     .examples = "weir archive restore github.com/octocat/Hello-World hello.git\n"
                 "weir archive restore github.com/octocat backup/ --history\n"
                 "weir archive restore github.com/octocat/@gists/abc123 gist.git\n"
                 "weir archive restore github.com/octocat/Hello-World hello.git --at "
                 "2026-01-31T03:00:00Z\n"
                 "weir archive restore github.com/octocat https://me:token@git.example.com/octocat",
     .call = &restore_call},
    {.name = "archive audit",
     .arguments = "ACCOUNT[/REPOSITORY]",
     .min_args = 1,
     .max_args = 1,
     .flags = audit_flags,
     .configured = true,
     .summary = "Let git read saved repositories and judge them",
     .help =
         "A worker computes the id of every object, looks whether all objects are there, and "
         "counts objects that a pack has twice. git must be installed where the worker runs. With "
         "--wait the command ends when each task has ended, also if it was given up.",
     .examples = "weir archive audit github.com/octocat --wait",
     .call = &audit_call},
    {.name = "archive tidy",
     .arguments = "ACCOUNT[/REPOSITORY]",
     .min_args = 1,
     .max_args = 1,
     .flags = audit_flags,
     .configured = true,
     .summary = "Pack saved repositories anew, which makes those smaller that grew",
     .help = "A worker audits each bundle, packs it anew, and replaces it. All refs and all lines "
             "of history stay.",
     .examples = "weir archive tidy github.com/octocat/Hello-World --wait",
     .call = &tidy_call},
    {0},
};
