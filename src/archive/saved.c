/* Saved repositories, and the tasks that audit and tidy them. */
#include "archive/saved.h"

#include "archive/rebuild.h"
#include "base/clock.h"
#include "base/json.h"

#include <inttypes.h>

enum { AUDIT_GIT_TIMEOUT_MS = 6 * MS_PER_HOUR };

/* --- names --- */

#define SAVED_GISTS  STR("@gists/")
#define SAVED_SUFFIX STR(".bundle")

bool saved_name_ok(struct str name)
{
    struct str part, rest = str_starts(name, SAVED_GISTS) ? str_skip(name, SAVED_GISTS.len) : name;
    bool more = true;

    while (more) {
        more = str_cut(rest, '@', &part, &rest);
        if (!archive_repo_ok(part))
            return false;
    }
    return true;
}

bool saved_is_copy(struct str name)
{
    struct str mark, rest;

    str_cut(name, '@', &mark, &rest);
    while (str_cut(rest, '@', &mark, &rest))
        continue;
    return str_starts(mark, STR("damaged-")) || str_starts(mark, STR("moved-"));
}

bool saved_is_repo(struct str name)
{
    struct str repo, mark, rest;

    str_cut(name, '@', &repo, &rest);
    str_cut(rest, '@', &mark, &rest);
    return repo.len && !str_eq(mark, STR("wiki"));
}

struct str saved_key(const struct archive_account *c, struct arena *a, struct str name)
{
    if (str_chr(name, '@') < 0)
        return archive_key(c, a, ARCHIVE_BUNDLE, name);
    return archive_key(c, a, ARCHIVE_EXTRA, arena_fmt(a, STR_FMT ".bundle", STR_ARG(name)));
}

struct str saved_verdict_key(const struct archive_account *c, struct arena *a, struct str name)
{
    const char *mark = str_chr(name, '@') < 0 ? "@audit.json" : ".audit.json";

    return archive_key(c, a, ARCHIVE_EXTRA, arena_fmt(a, STR_FMT "%s", STR_ARG(name), mark));
}

/* The part of a key of an extra behind the folder of the account: `Hello-World@wiki.bundle`. */
static struct str saved_tail(struct str key, const struct archive_object *o)
{
    return str_skip(key, key.len - o->repo.len - 1 - o->extra.len);
}

/* A release may have a file of this name too, but no name of a bundle leads to its key. */
bool saved_is_verdict(struct str key)
{
    static const struct str of_repo = {"@audit.json", 11}, of_extra = {".audit.json", 11};
    struct archive_object o;

    if (archive_key_read(&o, key) < 0 || o.kind != ARCHIVE_EXTRA)
        return false;
    struct str tail = saved_tail(key, &o);
    bool is_of_repo = str_ends(tail, of_repo);
    if (!is_of_repo && !str_ends(tail, of_extra))
        return false;
    struct str name = str_head(tail, tail.len - of_repo.len);
    return saved_name_ok(name) && is_of_repo == (str_chr(name, '@') < 0);
}

struct str saved_name(struct str key)
{
    struct archive_object o;

    if (archive_key_read(&o, key) < 0)
        return STR_EMPTY;
    if (o.kind == ARCHIVE_BUNDLE)
        return o.repo;
    if (o.kind != ARCHIVE_EXTRA || !str_ends(o.extra, SAVED_SUFFIX))
        return STR_EMPTY;
    struct str name = saved_tail(key, &o);
    name.len -= SAVED_SUFFIX.len;
    return saved_name_ok(name) ? name : STR_EMPTY;
}

/* --- opening --- */

int saved_open(struct saved *s, struct archive *x, struct arena *a, const struct archive_account *c,
               struct str name, struct err *err)
{
    *s = (struct saved){0};
    if (!saved_name_ok(name))
        return err_set(err, ERR_INVALID, "'" STR_FMT "' cannot be the name of a repository",
                       STR_ARG(str_head(name, ARCHIVE_REPO_MAX)));
    int code = shelf_open(&s->shelf, x->satellites, a, c, err);
    if (code == 0)
        code = shelf_bucket_init(&s->bucket, &s->shelf, err);
    s->job = (struct audit_job){.bucket = &s->bucket.bucket,
                                .arena = a,
                                .key = saved_key(c, a, name),
                                .verdict = saved_verdict_key(c, a, name),
                                .scratch = x->scratch,
                                .scratch_max = x->scratch_max,
                                .timeout_ms = AUDIT_GIT_TIMEOUT_MS};
    if (code == 0 && arena_error(a) < 0)
        code = err_code(err, ERR_NO_MEMORY);
    if (code < 0)
        saved_close(s);
    return code;
}

void saved_close(struct saved *s)
{
    shelf_close(&s->shelf);
}

/* --- tasks --- */

static const char *saved_task_type(enum audit_due what)
{
    return what == AUDIT_TIDY ? TIDY_TASK_TYPE : AUDIT_TASK_TYPE;
}

static struct str saved_task_id(struct arena *a, const struct archive_account *c, struct str name,
                                enum audit_due what)
{
    return arena_fmt(a, "%s:" STR_FMT "/" STR_FMT, saved_task_type(what),
                     STR_ARG(archive_account_member(c, a)), STR_ARG(name));
}

int saved_task(struct archive *x, struct arena *a, const struct archive_account *c, struct str name,
               enum audit_due what, struct task_info *out, struct err *err)
{
    struct str id = saved_task_id(a, c, name, what);
    int code = arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY)
                                  : queue_task(x->queue, a, STR(ARCHIVE_QUEUE), id, out, err);

    if (code == ERR_NOT_FOUND)
        *out = (struct task_info){.state = TASK_STATES};
    return code == ERR_NOT_FOUND ? 0 : code;
}

int saved_queue(struct archive *x, const struct archive_account *c, struct str name,
                enum audit_due what, struct err *err)
{
    struct arena a = ARENA_INIT(64 * KIB);
    struct buf payload = {0};
    struct json_out w;
    struct str member = archive_account_member(c, &a);

    json_out_init(&w, &payload);
    json_out_open(&w, '{');
    json_out_member_str(&w, "account", member);
    json_out_member_str(&w, "name", name);
    json_out_close(&w, '}');
    struct task t = {.type = str_z(saved_task_type(what)),
                     .payload = buf_str(&payload),
                     .queue = STR(ARCHIVE_QUEUE),
                     .id = saved_task_id(&a, c, name, what),
                     .retry_max = 5};
    int code = arena_error(&a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
    if (code == 0)
        code = queue_add(x->queue, &t, 0, err);
    buf_release(&payload);
    arena_release(&a);
    return code == ERR_EXISTS ? 0 : code;
}

static bool task_stops(void *ctx)
{
    return task_ended(ctx);
}

/* Opens the bundle that the task's payload names. */
static int task_open(struct task_run *run, struct saved *out, struct err *err)
{
    struct archive *x = run->ctx;
    struct archive_account account;
    json_t *doc = NULL;
    struct str name;

    *out = (struct saved){0};
    if (json_read(&doc, run->task->payload, err) < 0)
        return ERR_INVALID;
    int code =
        archive_account_read(&account, run->arena, json_get_str(doc, "account", STR_EMPTY), err);
    name = arena_str(run->arena, json_get_str(doc, "name", STR_EMPTY));
    json_decref(doc);
    if (code == 0)
        code = saved_open(out, x, run->arena, &account, name, err);
    out->job.stop = task_stops;
    out->job.ctx = run;
    return code;
}

/* Turns the result of an audit or tidying into the result of the task. If the bundle does not exist
 * any more, the task is done. If the bundle has changed meanwhile, the task runs again. */
static int task_result(struct task_run *run, int code)
{
    if (code == ERR_CANCELED || code == ERR_PRECONDITION) {
        run->put_back_s = S_PER_MINUTE;
        return ERR_AGAIN;
    }
    if (code == ERR_UNSUPPORTED || code == ERR_TOO_LARGE)
        return ERR_INVALID; /* another try would fail too */
    return code == ERR_NOT_FOUND ? 0 : code;
}

int audit_handle(struct task_run *run, struct err *err)
{
    struct audit_verdict v = {0};
    struct saved s;
    int code = task_open(run, &s, err);

    if (code == 0)
        code = audit_run(&v, &s.job, err);
    if (code == 0 && v.ok)
        log_info(&run->log, "archive.audit", log_s("key", s.job.key), log_u("objects", v.objects),
                 log_u("doubles", v.doubles));
    else if (code == 0)
        log_error(&run->log, "archive.damaged", log_s("key", s.job.key), log_z("why", v.words));
    saved_close(&s);
    return task_result(run, code);
}

int tidy_handle(struct task_run *run, struct err *err)
{
    struct tidy_result r = {0};
    struct saved s;
    int code = task_open(run, &s, err);

    if (code == 0)
        code = tidy_run(&r, &s.job, err);
    if (code == 0)
        log_info(&run->log, "archive.tidy", log_s("key", s.job.key), log_u("before", r.before),
                 log_u("after", r.after));
    else if (code == ERR_CORRUPT)
        log_error(&run->log, "archive.damaged", log_s("key", s.job.key), log_z("why", err->text));
    saved_close(&s);
    return task_result(run, code == ERR_CORRUPT ? ERR_INVALID : code);
}

/* --- after a sync --- */

void saved_consider(struct archive *x, struct bucket *bucket, struct arena *a,
                    const struct archive_account *c, struct str name,
                    const struct object_info *bundle)
{
    struct audit_job job = {.bucket = bucket, .arena = a, .verdict = saved_verdict_key(c, a, name)};
    struct str full =
        arena_fmt(a, STR_FMT "/" STR_FMT, STR_ARG(archive_account_member(c, a)), STR_ARG(name));
    int64_t now_s = clock_wall_ms() / MS_PER_S;
    struct audit_verdict v;
    struct bundle_meta meta;
    struct err err = {0};

    if (bundle_meta_read(&meta, bundle) < 0 || arena_error(a) < 0)
        return;
    enum audit_due due = audit_is_due(full, &meta, bundle->size, NULL, now_s);
    if (due == AUDIT_NOTHING && meta.appends == 0)
        return;
    /* Reading the last verdict costs a request, so this is done only for bundles that may be
     * due. */
    bool has = audit_look(&v, &job, &err) == 0;
    due = audit_is_due(full, &meta, bundle->size, has ? &v : NULL, now_s);
    if (due != AUDIT_NOTHING && saved_queue(x, c, name, due, &err) < 0)
        log_warn(x->log, "archive.audit", log_s("repository", full), log_z("why", err.text));
}
