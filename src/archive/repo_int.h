/* Declarations that the files about one repository's sync (repo.h) share. repo.c compares and
 * fetches, repo_fate.c handles names that have changed, repo_error.c writes `.error` objects, and
 * repo_parts.c saves wikis, gists and other options. */
#ifndef ARCHIVE_REPO_INT_H
#define ARCHIVE_REPO_INT_H

#include "archive/bundle.h"
#include "archive/fetch.h"
#include "archive/repo.h"
#include "archive/shelf_bucket.h"

/* The state while one repository is synced. It belongs to one thread. */
struct repo_work {
    const struct repo_call *call;
    struct sync_scope *scope;
    struct arena *arena;
    struct plan_item *item;
    struct shelf_bucket bucket; /* the account's shelf as a bucket, for bundles */
    struct bundle_job job;      /* how its bundle is read and written */
    struct bundle_old old;      /* the stored bundle, if has_old */
    bool has_old;
    /* ETag of the stored bundle that a fresh one replaces; empty: there is no stored bundle. */
    struct str replaces;
    struct git_remote *remote;
    struct large_hold own_hold; /* memory for lists, unless the caller has given a hold */
    struct large_hold *hold;    /* own_hold, or that of the caller */
    struct forge_seat seat;
    bool has_seat;
    struct repo_fault fault; /* why it failed */
    enum archive_code outcome;
    bool compared; /* the server's refs were read */
    bool is_part;  /* a wiki or a gist: it may be missing, and is not in the forge's list */
    bool no_token; /* its URL is not on the forge's own host, so no token is sent */
};

void repo_work_init(struct repo_work *w, const struct repo_call *c);
/* Takes a seat (quota.h) and reads the refs of the server. */
int repo_connect(struct repo_work *w, struct err *err) MUST_CHECK;
/* Updates the bundle to the server's state. */
int repo_update(struct repo_work *w, struct err *err) MUST_CHECK;
void repo_disconnect(struct repo_work *w); /* may be called twice */
/* Frees the lists of refs, which are not needed any more when the bundle is up to date. */
void repo_forget_lists(struct repo_work *w);

/* Saves the options (extras.h) that are switched on. repo_connect() must have succeeded. */
int repo_extras(struct repo_work *w, struct err *err) MUST_CHECK;
/* Saves the wiki, if that option is on. It disconnects first, because the wiki's own transfer needs
 * a seat (quota.h). */
int repo_wiki(struct repo_work *w, struct err *err) MUST_CHECK;

/* Copies a text into the memory of the plan. */
struct str repo_keep(const struct repo_work *w, struct str text);

/* The key of an object of the repository; `name` is that of archive_key(). */
struct str repo_key(const struct repo_work *w, enum archive_kind kind, struct str name);

/* These functions note why the repository failed, and return `code`, which is below 0. `code` and
 * the text of `err` come from the call that failed. */
int repo_fail(struct repo_work *w, enum archive_code outcome, const char *stage, int code,
              const struct err *err);
int repo_fail_storage(struct repo_work *w, const char *stage, int code, const struct err *err);
int repo_fail_fetch(struct repo_work *w, const char *stage, const struct fetch_fault *f, int code,
                    const struct err *err);
int repo_fail_forge(struct repo_work *w, const char *stage, const struct forge_fault *f, int code,
                    const struct err *err);

/* Writes the `.error` object of w->fault beside the bundle `name`. The object counts how often in a
 * row the same code has occurred. */
int repo_error_put(struct repo_work *w, struct str name, struct err *err) MUST_CHECK;
int repo_error_remove(struct repo_work *w, struct err *err) MUST_CHECK;

/* Prepares the stored bundle before refs are compared: the bundle of another repository is kept
 * aside, a renamed repository's bundle is copied to the new name, and a damaged bundle is kept
 * aside. Sets w->old and w->has_old. */
int repo_settle(struct repo_work *w, struct err *err) MUST_CHECK;
/* Opens the stored bundle; called again after each write. */
int repo_open_bundle(struct repo_work *w, struct err *err) MUST_CHECK;
/* Copies the stored bundle to `<repo>@<mark>.bundle`, and closes it, so that a fresh bundle can
 * replace it. If the mark is empty, the time of the stored bundle is used; so a second try makes no
 * second copy. */
int repo_put_aside(struct repo_work *w, const char *why, struct str mark,
                   struct err *err) MUST_CHECK;

/* Asks the forge about the repository by its number. */
int repo_by_id(struct repo_work *w, struct forge_repo *out, struct forge_fault *fault,
               struct err *err) MUST_CHECK;
/* Writes an `.error` object beside the objects under `old_name`, which says that the repository is
 * now called `now_is`. */
int repo_say_renamed(struct repo_work *w, struct str old_name, struct str now_is,
                     struct err *err) MUST_CHECK;

#endif
