/* The sync of one repository: from the refs of its server to a bundle in the storage. */
#include "archive/repo_int.h"

#include "archive/link.h"
#include "archive/saved.h"
#include "archive/schedule.h"
#include "archive/zip.h"
#include "base/clock.h"
#include "base/hex.h"
#include "coord/lock.h"

/* --- small things --- */

struct str repo_keep(const struct repo_work *w, struct str text)
{
    mutex_lock(w->scope->lock);
    struct str kept = arena_str(w->call->keep, text);
    mutex_unlock(w->scope->lock);
    return kept;
}

struct str repo_key(const struct repo_work *w, enum archive_kind kind, struct str name)
{
    return archive_key(w->scope->account, w->arena, kind, name);
}

static struct archive_numbers *repo_numbers(const struct repo_work *w)
{
    return &w->scope->archive->numbers;
}

void repo_work_init(struct repo_work *w, const struct repo_call *c)
{
    const struct archive *x = c->scope->archive;

    *w = (struct repo_work){.call = c, .scope = c->scope, .arena = c->arena, .item = c->item};
    w->own_hold = (struct large_hold){.room = &c->scope->archive->large,
                                      .cancel = c->scope->cancel,
                                      .wait_ms = c->scope->archive->timeout_ms};
    w->hold = c->hold ? c->hold : &w->own_hold;
    w->job = (struct bundle_job){
        .bucket = &w->bucket.bucket,
        .arena = c->arena,
        .key = repo_key(w, ARCHIVE_BUNDLE, c->item->next.name),
        .now_s = c->scope->now_ms / MS_PER_S,
        .check = x->check,
        .source_id = c->item->next.id,
        .fence = c->scope->fence,
        .hold = w->hold,
        .scratch = x->scratch,
    };
}

void repo_forget_lists(struct repo_work *w)
{
    bundle_header_release(&w->old.header);
    if (w->remote)
        git_remote_forget_refs(w->remote);
    large_release(&w->own_hold);
}

void repo_disconnect(struct repo_work *w)
{
    git_remote_close(w->remote);
    w->remote = NULL;
    if (w->has_seat)
        forge_git_end(w->scope->session, &w->seat);
    w->has_seat = false;
}

/* --- what the list says --- */

static int repo_refuse(struct repo_work *w, enum archive_code outcome, const char *text)
{
    struct err err = {0};

    return repo_fail(w, outcome, "list", err_set(&err, ERR_INVALID, "%s", text), &err);
}

static int repo_judge(struct repo_work *w)
{
    const struct plan_item *i = w->item;
    uint64_t max_kb = w->scope->archive->check.limits.pack / 1024;

    if (i->foreign)
        return repo_refuse(w, ARCHIVE_REDIRECT,
                           "the forge gives a clone URL that is not on its own host");
    if (i->disabled)
        return repo_refuse(w, ARCHIVE_DISABLED, "the forge has switched the repository off");
    if (max_kb && i->size_kb > max_kb)
        return repo_refuse(w, ARCHIVE_TOO_BIG,
                           "the forge says that the repository is larger than archive.max_pack");
    return 0;
}

/* --- the git server --- */

static const char *repo_url(struct repo_work *w)
{
    const struct record_repo *r = &w->item->next;
    struct str url = r->url;

    if (url.len == 0)
        url = arena_fmt(w->arena, STR_FMT "/" STR_FMT "/" STR_FMT ".git",
                        STR_ARG(w->scope->forge->git), STR_ARG(w->scope->login), STR_ARG(r->name));
    return arena_z(w->arena, url);
}

/* Whether the URL is on the forge's own git server. Only that server gets the token, and only it
 * may have a private address. Other URLs cannot be trusted: the URL may come from the record, which
 * the satellite's user can write. */
static bool repo_is_home(struct repo_work *w)
{
    return !w->no_token && link_same_origin(str_z(repo_url(w)), w->scope->forge->git);
}

int repo_by_id(struct repo_work *w, struct forge_repo *out, struct forge_fault *fault,
               struct err *err)
{
    struct sync_scope *s = w->scope;

    mutex_lock(s->lock);
    while (s->asking)
        cond_wait(s->asked, s->lock);
    s->asking = true;
    mutex_unlock(s->lock);
    int code = forge_repo_by_id(s->session, w->arena, w->item->next.id, out, fault, err);
    mutex_lock(s->lock);
    s->asking = false;
    cond_signal(s->asked);
    mutex_unlock(s->lock);
    return code;
}

/* The git server has refused the repository. It says little about the reason, so weir asks the
 * forge's API. A refusal alone never means that the repository is gone. */
static int repo_refused(struct repo_work *w, const struct fetch_fault *f, int code, struct err *err)
{
    struct forge_fault fault = {0};
    struct forge_repo r = {0};
    struct err answer = {0};
    int asked = repo_by_id(w, &r, &fault, &answer);

    repo_fail_fetch(w, "refs", f, code, err);
    if (f->code == ARCHIVE_GONE)
        w->fault.error.code = ARCHIVE_AUTH;
    if (asked == 0 && r.disabled)
        w->fault.error.code = ARCHIVE_DISABLED;
    if (asked < 0 && archive_codes[fault.code].permanent && fault.code > ARCHIVE_UNCHANGED)
        return repo_fail_forge(w, "refs", &fault, code, &answer);
    return code;
}

/* Notes a failure of the git server. If the server asks for a pause (429), the host rests for all
 * processes. */
static int repo_git_failed(struct repo_work *w, const char *stage, const struct fetch_fault *f,
                           int code, struct err *err)
{
    struct forge_fault rest = {0};
    struct err ignored = {0};

    if (code == ERR_CANCELED)
        return code;
    if (!w->is_part && (f->code == ARCHIVE_AUTH || f->code == ARCHIVE_GONE))
        return repo_refused(w, f, code, err);
    repo_fail_fetch(w, stage, f, code, err);
    if (f->code == ARCHIVE_RATE &&
        forge_git_rest(w->scope->session, f->retry_after_s > 0 ? f->retry_after_s : 0, &rest,
                       &ignored) == 0)
        w->fault.rests_until_ms = rest.rests_until_ms;
    return code;
}

int repo_connect(struct repo_work *w, struct err *err)
{
    const struct archive *x = w->scope->archive;
    struct git_remote_options o = {
        .client = x->client,
        .url = repo_url(w),
        .allow_private = w->scope->forge->allow_private && repo_is_home(w),
        .limits = {.total_ms = x->timeout_ms, .pack_max = x->check.limits.pack},
        .cancel = w->scope->cancel,
        .hold = w->hold,
    };
    struct forge_fault no_seat = {0};
    struct fetch_fault fault = {0};
    int code = forge_git_begin(w->scope->session, &w->seat, &no_seat, err);

    w->has_seat = code == 0;
    if (code == ERR_CANCELED)
        return code;
    if (code < 0)
        return repo_fail_forge(w, "refs", &no_seat, code, err);
    if (repo_is_home(w))
        forge_git_auth(w->scope->session, &o.token_user, &o.token);
    code = git_remote_open(&w->remote, &o, &fault, err);
    return code < 0 ? repo_git_failed(w, "refs", &fault, code, err) : 0;
}

/* --- storing --- */

/* Notes ETag, size and digest of the bundle, for the record. */
static void repo_note(struct repo_work *w, struct str etag, uint64_t size, const char *digest)
{
    struct record_repo *r = &w->item->next;

    r->etag = repo_keep(w, etag);
    r->refs_digest = repo_keep(w, str_z(digest));
    r->bytes = size;
}

static void repo_stored(struct repo_work *w, const struct bundle_result *r)
{
    struct archive_numbers *n = repo_numbers(w);

    repo_note(w, r->put.etag, r->put.size, r->meta.refs_digest);
    w->item->next.updated_ms = w->scope->now_ms;
    w->outcome = ARCHIVE_OK;
    atomic_fetch_add(&n->fetched_bytes, r->pack_bytes);
    atomic_fetch_add(&n->written_bytes, r->sent);
    atomic_fetch_add(&n->copied_bytes, r->copied);
    atomic_fetch_add(&w->scope->bytes, r->pack_bytes);
}

/* The stored bundle has a later fence than this sync, so the store must have lost its last fence.
 * Raises the store's fence, so that the next claims get later ones. Further writes of this sync
 * would fail too, so it ends. */
static void repo_raise_fence(struct repo_work *w)
{
    struct err err = {0};

    if (w->scope->schedule && schedule_raise_fence(w->scope->schedule, w->old.meta.fence, &err) < 0)
        log_warn(w->scope->archive->log, "archive.fence", log_z("why", err.text));
    atomic_store(&w->scope->stop, true);
}

/* Notes why a bundle could not be written: the server's pack was wrong, or the satellite failed. */
static int repo_write_failed(struct repo_work *w, int code, struct err *err)
{
    const struct fetch_fault *f = git_remote_fault(w->remote);

    if (w->has_old && w->old.meta.fence > w->job.fence)
        repo_raise_fence(w);
    if (code == ERR_CANCELED)
        return code;
    if (f && f->code != ARCHIVE_OK)
        return repo_git_failed(w, "fetch", f, code, err);
    if (code == ERR_PARSE)
        return repo_fail(w, ARCHIVE_CORRUPT, "verify", code, err);
    if (code == ERR_TOO_LARGE)
        return repo_fail(w, ARCHIVE_TOO_BIG, "verify", code, err);
    return repo_fail_storage(w, "upload", code, err);
}

/* Writes the bundle: a whole new one, or one that appends to the stored one. If `pack` is NULL, no
 * objects are new, and only the header changes. */
static int repo_write(struct repo_work *w, const struct git_refs *refs, struct reader *pack,
                      struct err *err)
{
    struct archive_numbers *n = repo_numbers(w);
    struct bundle_result result = {0};
    int code;

    if (w->has_old)
        code = bundle_append(&w->job, &w->old, refs, pack, &result, err);
    else
        code = bundle_put_full(&w->job, refs, pack, w->replaces, &result, err);
    if (code < 0)
        return code;
    atomic_fetch_add(!w->has_old ? &n->fetches : pack ? &n->appends : &n->headers, 1);
    repo_stored(w, &result);
    w->job.points_s = result.points_s;
    w->replaces = STR_EMPTY;
    return 0;
}

/* Handles a failed write. If the stored bundle cannot be appended to, it is kept aside; then *again
 * is set, and the caller fetches the whole repository. */
static int repo_write_refused(struct repo_work *w, int code, bool *again, struct err *err)
{
    const struct fetch_fault *f = git_remote_fault(w->remote);
    bool damaged = code == ERR_CORRUPT;

    if (!w->has_old || (f && f->code != ARCHIVE_OK) ||
        (!damaged && code != ERR_UNSUPPORTED && code != ERR_CONFLICT))
        return repo_write_failed(w, code, err);
    log_warn(w->scope->archive->log, "archive.append_refused", log_s("key", w->job.key),
             log_z("why", err->text));
    *again = true;
    return repo_put_aside(w, damaged ? "damaged-" : "", STR_EMPTY, err);
}

/* --- fetching --- */

/* The refs have changed since they were read. Reads them again, but only a few times. */
static int repo_refresh(struct repo_work *w, bool *again, struct err *err)
{
    struct fetch_fault fault = {0};
    int code = git_remote_refresh(w->remote, &fault, err);

    w->job.points_s = 0;
    *again = code == 0;
    return code < 0 ? repo_git_failed(w, "refs", &fault, code, err) : 0;
}

/* Asks for the pack of new objects, if there are any, and writes the bundle while the pack is
 * received. *again is set when the caller must repeat the call: the refs have changed, the stored
 * bundle was put aside, or one request could not name all new tips. */
static int repo_round(struct repo_work *w, unsigned *refreshes, bool *again, struct err *err)
{
    struct fetch_fault fault = {0};
    struct reader *pack = NULL;
    struct bundle_wants wants;
    int code = 0;

    bundle_wants_init(&wants, w->has_old ? &w->old : NULL, git_remote_refs(w->remote),
                      BUNDLE_WANTS_MAX);
    if (wants.fetch.want_count)
        code = git_remote_fetch(w->remote, &wants.fetch, &pack, &fault, err);
    if (code == ERR_CONFLICT && (*refreshes)++ < GIT_REFRESH_MAX) {
        code = repo_refresh(w, again, err);
    } else if (code < 0) {
        code = repo_git_failed(w, "fetch", &fault, code, err);
    } else {
        code = repo_write(w, wants.refs, pack, err);
        reader_close(pack);
        if (code < 0)
            code = repo_write_refused(w, code, again, err);
        else
            *again = wants.more;
        if (code == 0 && wants.more && w->replaces.len == 0 &&
            (code = repo_open_bundle(w, err)) < 0)
            code = repo_fail_storage(w, "upload", code, err);
    }
    bundle_wants_release(&wants);
    return code;
}

/* Compares the refs of the bundle with those of the server, and updates the bundle to the server's
 * state. */
int repo_update(struct repo_work *w, struct err *err)
{
    const struct git_refs *refs = git_remote_refs(w->remote);
    char digest[GIT_DIGEST_LEN + 1];
    unsigned refreshes = 0;
    bool again = true;
    int code = 0;

    w->compared = true;
    git_refs_digest(digest, refs);
    if (w->has_old && strcmp(digest, w->old.refs_digest) == 0 &&
        refs->is_sha256 == w->old.header.refs.is_sha256) {
        repo_note(w, w->old.info.etag, w->old.info.size, digest);
        if (w->item->next.updated_ms == 0)
            w->item->next.updated_ms = w->old.meta.mtime_ms;
        w->outcome = ARCHIVE_UNCHANGED;
        again = false;
    }
    while (code == 0 && again) {
        again = false;
        code = repo_round(w, &refreshes, &again, err);
    }
    refs = git_remote_refs(w->remote);
    if (code == 0 && refs->list.len == 0 && !refs->has_head) {
        repo_refuse(w, ARCHIVE_EMPTY, "the repository has no commits");
        w->outcome = ARCHIVE_EMPTY;
    }
    return code;
}

/* --- the ZIP --- */

static int repo_zip_failed(struct repo_work *w, int code, struct err *err)
{
    const struct fetch_fault *f = git_remote_fault(w->remote);

    if (code == ERR_CANCELED)
        return code;
    if (f && f->code != ARCHIVE_OK)
        return repo_git_failed(w, "zip", f, code, err);
    if (code == ERR_TOO_LARGE)
        return repo_fail(w, ARCHIVE_TOO_BIG, "zip", code, err);
    if (code == ERR_PARSE)
        return repo_fail(w, ARCHIVE_CORRUPT, "zip", code, err);
    return repo_fail_storage(w, "zip", code, err);
}

static int repo_zip_write(struct repo_work *w, const struct git_refs *refs, struct reader *pack,
                          struct err *err)
{
    struct archive *x = w->scope->archive;
    struct str branch = refs->head_target;
    struct zip_options o = {.is_sha256 = refs->is_sha256,
                            .repo = w->item->next.name,
                            .folder = x->scratch,
                            .pack = x->check.limits,
                            .limits = zip_usual_limits,
                            .cancel = w->scope->cancel,
                            .hold = w->hold,
                            .mtime_ms = w->scope->now_ms};
    struct zip_result result = {0};

    memcpy(o.tip, refs->head, sizeof(o.tip));
    o.pack.pack = x->scratch_max;
    if (str_starts(branch, STR("refs/heads/")))
        branch = str_skip(branch, STR("refs/heads/").len);
    o.branch = branch.len ? branch : STR("HEAD");
    return zip_put(w->scope->shelf, w->arena, repo_key(w, ARCHIVE_ZIP, o.repo), pack, &o, &result,
                   err);
}

/* The server does not have the tip of the default branch any more, because the refs have changed
 * since the bundle was stored. Updates the bundle to the present refs. */
static int repo_catch_up(struct repo_work *w, struct err *err)
{
    enum archive_code outcome = w->outcome;
    bool again;
    int code = repo_refresh(w, &again, err);

    if (code == 0 && (code = repo_open_bundle(w, err)) < 0)
        return repo_fail_storage(w, "upload", code, err);
    if (code == 0)
        code = repo_update(w, err);
    if (code == 0 && w->outcome == ARCHIVE_UNCHANGED)
        w->outcome = outcome;
    if (code == 0)
        repo_forget_lists(w);
    return code;
}

/* Fetches the commit at the tip of HEAD with its tree, without history. *pack stays NULL if the
 * server has no HEAD, or if the stored ZIP file was made from this tip. */
static int repo_zip_fetch(struct repo_work *w, struct reader **pack, struct str *tip,
                          struct err *err)
{
    struct fetch_fault fault = {0};

    for (unsigned tries = 0;; tries++) {
        const struct git_refs *refs = git_remote_refs(w->remote);
        struct git_fetch f = {.wants = refs->head, .want_count = 1, .depth = 1};
        *tip = arena_hex(w->arena, refs->head, git_id_len(refs->is_sha256));
        if (!refs->has_head || str_eq(*tip, w->item->next.zip))
            return 0;
        int code = git_remote_fetch(w->remote, &f, pack, &fault, err);
        if (code == ERR_CONFLICT && tries < GIT_REFRESH_MAX)
            code = repo_catch_up(w, err);
        else
            return code < 0 ? repo_git_failed(w, "zip", &fault, code, err) : 0;
        if (code < 0)
            return code;
    }
}

/* Makes a new ZIP file of the default branch if its tip has changed. */
static int repo_zip(struct repo_work *w, struct err *err)
{
    struct reader *pack = NULL;
    struct str tip;

    if (!w->scope->forge->wants.zip)
        return 0;
    int code = repo_zip_fetch(w, &pack, &tip, err);
    if (code < 0 || !pack)
        return code;
    const struct git_refs *refs = git_remote_refs(w->remote);
    code = repo_zip_write(w, refs, pack, err);
    reader_close(pack);
    large_release(&w->own_hold);
    if (code < 0)
        return repo_zip_failed(w, code, err);
    w->item->next.zip = repo_keep(w, tip);
    atomic_fetch_add(&repo_numbers(w)->zips, 1);
    return 0;
}

/* --- the whole --- */

/* Adds a task that audits or tidies the bundle, if one is due. */
static void repo_look_after(struct repo_work *w)
{
    struct object_info info = w->old.info;
    struct err err = {0};

    if (w->outcome != ARCHIVE_UNCHANGED &&
        shelf_head(w->scope->shelf, w->arena, w->job.key, &info, &err) < 0)
        return;
    saved_consider(w->scope->archive, &w->bucket.bucket, w->arena, w->scope->account,
                   w->item->next.name, &info);
}

/* Handles a part that is too large: remembers the failure and lets the caller save the other parts.
 * The repository fails at the end, with the first such failure. */
static int repo_put_off(struct repo_work *w, struct repo_fault *too_big, int code)
{
    if (code != ERR_TOO_LARGE || w->fault.error.code != ARCHIVE_TOO_BIG)
        return code;
    if (!too_big->error.stage)
        *too_big = w->fault;
    w->fault = (struct repo_fault){0};
    return 0;
}

/* Saves the parts beside the bundle: the ZIP file, the options, the wiki. */
static int repo_run_parts(struct repo_work *w, struct err *err)
{
    struct repo_fault too_big = {0};
    int code = w->outcome != ARCHIVE_EMPTY ? repo_put_off(w, &too_big, repo_zip(w, err)) : 0;

    if (code == 0)
        code = repo_put_off(w, &too_big, repo_extras(w, err));
    if (code == 0)
        code = repo_wiki(w, err);
    if (code == 0 && w->outcome != ARCHIVE_EMPTY)
        repo_look_after(w);
    if (code == 0 && too_big.error.stage) {
        w->fault = too_big;
        code = ERR_TOO_LARGE;
    }
    return code;
}

static int repo_run(struct repo_work *w, struct err *err)
{
    int code = repo_judge(w);

    if (code == 0) {
        code = shelf_bucket_init(&w->bucket, w->scope->shelf, err);
        code = code < 0 ? repo_fail_storage(w, "upload", code, err) : repo_settle(w, err);
    }
    if (code == 0)
        code = repo_connect(w, err);
    if (code == 0)
        code = repo_update(w, err);
    if (code < 0)
        return code;
    repo_forget_lists(w);
    return repo_run_parts(w, err);
}

/* Whether the sync of the account must stop. */
static bool repo_must_stop(const struct repo_work *w, int code)
{
    const struct lock *lock = w->scope->shelf->lock;

    return code == ERR_CANCELED || (w->scope->cancel && atomic_load(w->scope->cancel)) ||
           (lock && !lock_held(lock));
}

/* Writes the `.error` object of the outcome, or removes it after a success. */
static int repo_say(struct repo_work *w, struct err *err)
{
    return w->outcome == ARCHIVE_OK || w->outcome == ARCHIVE_UNCHANGED
               ? repo_error_remove(w, err)
               : repo_error_put(w, w->item->next.name, err);
}

/* Completes the repository's line of the record. */
static void repo_conclude(struct repo_work *w)
{
    struct record_repo *r = &w->item->next;

    r->code = w->outcome;
    /* A permanent outcome comes from the forge's list or API, so it counts as a comparison of the
     * refs. */
    if (w->compared || archive_codes[w->outcome].permanent)
        r->looked_ms = w->scope->now_ms;
    w->item->failed = !archive_codes[w->outcome].permanent;
    atomic_fetch_add(&repo_numbers(w)->repos[w->outcome], 1);
    atomic_fetch_add(w->item->failed ? &w->scope->failed : &w->scope->done, 1);
    if (w->fault.rests_until_ms)
        atomic_store(&w->scope->stop, true);
}

static int repo_end(struct repo_work *w, int code, struct repo_fault *fault, struct err *err)
{
    repo_disconnect(w);
    if (w->has_old)
        bundle_old_release(&w->old);
    large_release(&w->own_hold);
    if (repo_must_stop(w, code)) {
        atomic_store(&w->scope->stop, true);
        return code == ERR_CANCELED ? code : err_set(err, ERR_BUSY, "the account's lock was lost");
    }
    if (code < 0) {
        BUG_ON(!w->fault.error.stage);
        w->outcome = w->fault.error.code;
    }
    code = repo_say(w, err);
    if (code < 0) {
        repo_fail_storage(w, "upload", code, err);
        w->outcome = w->fault.error.code;
    }
    repo_conclude(w);
    *fault = w->fault;
    return 0;
}

int repo_sync(const struct repo_call *c, struct repo_fault *fault, struct err *err)
{
    struct repo_work w;

    repo_work_init(&w, c);
    return repo_end(&w, repo_run(&w, err), fault, err);
}

/* --- repositories that the list lacks --- */

/* Handles a repository that the list lacks but that the forge finds by its number. Either it has
 * another owner now, or the list leaves it out, for example because it has become private. In the
 * second case it is synced as before. */
static int repo_found(struct repo_work *w, const struct forge_repo *r, struct err *err)
{
    int code;

    if (str_ieq(r->owner, w->scope->login)) {
        w->item->disabled = r->disabled;
        w->item->foreign = r->foreign;
        /* Its name in the archive may be `X@<id>`, so the URL cannot be made from the name. */
        if (r->clone_url.len)
            w->item->next.url = repo_keep(w, r->clone_url);
        return repo_run(w, err);
    }
    w->outcome = ARCHIVE_RENAMED;
    code = repo_say_renamed(w, w->item->next.name, r->full_name, err);
    return code < 0 ? repo_fail_storage(w, "upload", code, err) : 0;
}

static int repo_seek(struct repo_work *w, struct err *err)
{
    struct forge_fault fault = {0};
    struct forge_repo r = {0};
    int code = repo_by_id(w, &r, &fault, err);

    if (code == ERR_CANCELED)
        return code;
    return code == 0 ? repo_found(w, &r, err) : repo_fail_forge(w, "list", &fault, code, err);
}

int repo_ask(const struct repo_call *c, struct repo_fault *fault, struct err *err)
{
    struct repo_work w;

    repo_work_init(&w, c);
    return repo_end(&w, repo_seek(&w, err), fault, err);
}
