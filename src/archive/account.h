/* One sync of one account, under its lock (docs/archive.md, "The story of a sync").
 *
 *   1. read the record; a record that was written under a later fence (the number of a later claim)
 *      ends the sync;
 *   2. list the repositories, page by page, with the ETags of the record;
 *   3. sync the repositories, a few at once (repo.h);
 *   4. when all of them are done, write the record: this is the commit point (A2). Otherwise write
 *      `<login>.error`, and the account is held: it waits before it is tried again.
 *
 * The score in `tracked` follows the record: the runner sets it when account_sync() has returned.
 * Several threads may sync accounts at the same time. */
#ifndef ARCHIVE_ACCOUNT_H
#define ARCHIVE_ACCOUNT_H

#include "archive/archive.h"
#include "archive/names.h"
#include "archive/runner.h"

struct forge_wants;

/* Syncs the account that the job has claimed. This is a runner_sync_fn; its ctx is the struct
 * archive. */
enum runner_outcome account_sync(void *ctx, struct runner_job *job);

/* Begins to archive accounts: writes `.new` objects and adds the accounts to `tracked` (A6).
 * `wants` are options that the accounts get for themselves (account_options.h); NULL: none. *added
 * is the number of accounts that were not tracked before. ERR_NOT_FOUND: weir does not know the
 * forge of one of the accounts; no account was added. */
int account_add(struct archive *x, const struct archive_account *accounts, size_t count,
                const struct forge_wants *wants, size_t *added, struct err *err) MUST_CHECK;
/* Writes the `.new` object of an account that has no record, and removes its `.removed` object.
 * This is a schedule_found_fn. */
int account_announce(void *ctx, const struct archive_account *c, struct err *err);
/* Ends the archiving of an account. Its objects stay. An object `<login>.removed` tells a later
 * rebuild of `tracked` to leave the account out. ERR_NOT_FOUND: the account is not tracked. */
int account_remove(struct archive *x, const struct archive_account *c, struct err *err) MUST_CHECK;

#endif
