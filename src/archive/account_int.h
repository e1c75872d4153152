/* The parts of an account's sync. account.c has the order of the steps, account_list.c asks the
 * forge for the repositories, account_lost.c finds lost objects, account_repos.c syncs the
 * repositories, account_gists.c syncs gists, and account_end.c writes records and errors. */
#ifndef ARCHIVE_ACCOUNT_INT_H
#define ARCHIVE_ACCOUNT_INT_H

#include "archive/account.h"
#include "archive/repo.h"

/* The state of one sync. */
struct account_work {
    struct archive *archive;
    struct runner_job *job;
    const struct archive_account *account;
    struct arena *arena;
    struct shelf shelf;
    struct archive_record old; /* the last record; empty if there is none */
    bool has_record;
    struct str record_etag;   /* ETag of the record's object; empty if there is no object */
    int64_t added_ms;         /* when the account was added; 0: not known */
    struct forge_account who; /* the account; its login is spelled as the forge spells it */
    struct forge_session *session;
    bool unchanged; /* the forge says that every page of its list is unchanged */
    struct plan plan;
    bool new_wants;     /* the options are not those of the last full sync */
    struct forge forge; /* the forge of the account, with the options of this account */
    struct sync_scope scope;
    struct cond asked;            /* the condition variable to which scope.asked points */
    struct mutex lock;            /* class "archive sync"; guards the members below */
    size_t next;                  /* index of the next item to work on */
    struct archive_record errors; /* errors of this sync; only this member of the record is used */
    int stopped; /* the code that ended the work early; 0: the work was not ended early */
    bool has_error;
    struct archive_error error; /* why the sync is not full */
    int64_t rests_until_ms;     /* until when the host rests; 0: it does not rest */
    int64_t gists_ms;           /* when the forge was last asked for gists; goes into the record */
};

/* Notes why the sync cannot be a full sync; only the first reason is kept. Returns `code`. */
int account_fail(struct account_work *w, enum archive_code outcome, const char *stage, int code,
                 const struct err *err);

/* An empty hold (large.h) for the pages of a list. */
static inline struct large_hold account_hold(const struct account_work *w)
{
    return (struct large_hold){
        .room = &w->archive->large, .cancel = w->job->cancel, .wait_ms = w->archive->timeout_ms};
}
/* The options as a text for the record: "-" if none is on. */
struct str account_wants_text(struct account_work *w, const struct forge_wants *wants);

/* Lists the repositories and makes the plan (plan.h), which says what to do with each. */
int account_list(struct account_work *w, struct err *err) MUST_CHECK;

/* Compares the record with one listing of the account's folder. A repository whose bundle or ZIP
 * file is missing, or is not the recorded one, is synced although the forge's list is unchanged. */
int account_find_lost(struct account_work *w, struct err *err) MUST_CHECK;

/* Works on every item of the plan. Returns an error only if the sync must stop. */
int account_repos(struct account_work *w, struct err *err) MUST_CHECK;

/* If gists are archived: syncs those gists of the account that have changed since they were last
 * saved. */
int account_gists(struct account_work *w, struct err *err) MUST_CHECK;

/* Writes the record, and then removes `.new` and `.error`. */
int account_commit(struct account_work *w, struct err *err) MUST_CHECK;
/* Writes `<login>.error`. */
int account_say_error(struct account_work *w, struct err *err) MUST_CHECK;

#endif
