/* Declarations that the files about audits share. An audited bundle lies in the scratch folder as a
 * bare repository. */
#ifndef ARCHIVE_AUDIT_INT_H
#define ARCHIVE_AUDIT_INT_H

#include "archive/audit.h"
#include "archive/git.h"

struct audit_work {
    const struct audit_job *job;
    struct bundle_old old;
    struct audit_verdict verdict;
    char *folder; /* path of the repository in the scratch folder */
    struct git_said said;
};

/* Copies the bundle to scratch, lets git check it, and fills w->verdict. The folder in scratch
 * stays until audit_work_release(). The errors are those of audit_run(). */
int audit_work_init(struct audit_work *w, const struct audit_job *job, struct err *err) MUST_CHECK;
void audit_work_release(struct audit_work *w);

/* Runs git in the repository. `args` are the arguments without "git", ended by NULL. */
int audit_git(struct audit_work *w, const char *const *args, struct err *err) MUST_CHECK;
/* Counts the entries of the pack index `name` in the folder, and the entries that repeat the id of
 * an earlier entry. */
int audit_count(struct audit_work *w, const char *name, uint64_t *objects, uint64_t *doubles,
                struct err *err) MUST_CHECK;
/* Checks that the index of a pack has every id of the bundle's header. ERR_PEER: an id is
 * missing. */
int audit_has_tips(struct audit_work *w, const char *name, struct err *err) MUST_CHECK;
/* Runs `git fsck --connectivity-only`. *fine: it found no fault. */
int audit_connected(struct audit_work *w, bool *fine, struct err *err) MUST_CHECK;
/* Puts git's error message into the verdict's words. */
void audit_note(struct audit_work *w, const char *what);
int audit_store(const struct audit_work *w, struct err *err) MUST_CHECK;

struct bundle_job audit_bundle_job(const struct audit_job *job);

#endif
