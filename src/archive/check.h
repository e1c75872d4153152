/* The check of the archive: compares records with the objects in the satellites and with `tracked`,
 * and looks on all satellites for objects and open uploads that no tracked account explains. It
 * reads only metadata of bundles. Audits (audit.h) tell whether a bundle is damaged. */
#ifndef ARCHIVE_CHECK_H
#define ARCHIVE_CHECK_H

#include "archive/archive.h"
#include "archive/names.h"

enum { CHECK_SHOWN_MAX = 1000 }; /* findings that are shown; the others are counted */

/* `account` is a member of `tracked`, or a bucket if no forge is known of it. */
struct check_finding {
    struct str account, key;
    const char *text;
};

struct archive_check {
    void (*found)(void *ctx, const struct check_finding *f);
    void *ctx;
    uint64_t accounts, repos, count;
};

/* Checks an account. An error means that something could not be read; it is not a finding. If the
 * account is being synced, some findings may be gone a moment later. */
int archive_check_account(struct archive_check *k, struct archive *x,
                          const struct archive_account *c, struct err *err) MUST_CHECK;
/* Checks all accounts in `tracked`, and then lists every slot on every satellite. */
int archive_check_all(struct archive_check *k, struct archive *x, struct err *err) MUST_CHECK;

#endif
