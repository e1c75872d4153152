/* Dump and restore of refs: all commits, tags and branches of a repository are written as three
 * trees into its namespace, and are read back from there into a bare repository.
 * docs/lake-moving.md explains both.
 *
 * In such a tree the key of a record is the id of the commit, the tag or the branch; its data is
 * the record of the key-value store. lakeFS writes the same records into its own dumps, so a dump
 * of lakeFS can be restored too. The ids of the three trees are also in the namespace, in the file
 * `_lakefs/refs_manifest.json`. The collector does not remove the trees that this file names.
 *
 * Staged changes, settings, pull requests and the repository's metadata are not in a dump. */
#ifndef LAKE_DUMP_H
#define LAKE_DUMP_H

#include "lake/lake.h"
#include "lake/progress.h"

/* The roots of the three trees; "" is the empty tree. */
struct lake_refs {
    struct str commits, tags, branches;
};

/* Dumps the refs and writes the manifest; the ids are in the arena. The dump has every commit that
 * one of its refs or commits names, whatever is written meanwhile. If a view of the key-value
 * store shows one moment (KV_MOMENTS in kv/kv.h), all rows of the dump are as they were at one
 * moment. */
int lake_dump(struct lake *l, struct arena *a, const struct lake_repo *r,
              const struct lake_progress *p, struct lake_refs *out, struct err *err) MUST_CHECK;

/* Restores the refs into a repository that has no default branch yet. The whole dump is checked
 * before the first row is written. The default branch is written last; a restore that was stopped
 * before that begins again from the start. No collection of the repository begins before the
 * restore has ended. Errors:
 *
 * - ERR_INVALID: the repository is not bare, or the dump is not sound: an id is wrong, a ref leads
 *   to a commit that is missing, the repository's default branch is missing, or the tree of a
 *   branch or a tag cannot be read. With `force` such an unreadable tree is no error.
 * - ERR_CORRUPT: one of the three trees of the dump cannot be read.
 * - ERR_DENIED: the repository is read-only, and `force` is not set. */
int lake_restore(struct lake *l, const struct lake_repo *r, const struct lake_refs *refs,
                 bool force, const struct lake_progress *p, struct err *err) MUST_CHECK;

/* Reads the ids of the last dump from the manifest. ERR_NOT_FOUND: the namespace has no
 * manifest. */
int lake_manifest_read(struct lake *l, struct arena *a, const struct lake_repo *r,
                       struct lake_refs *out, struct err *err) MUST_CHECK;

#endif
