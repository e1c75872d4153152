/* Import: objects of any bucket become entries of a branch without being copied. Their entries have
 * full addresses (s3://bucket/key).
 *
 * An import is a record `imports/<id>` in the repository's partition and a task on the queue. The
 * result is one commit: the branch's content, in which everything below the given destinations is
 * replaced by the listed objects. The branch must have no uncommitted changes. Records of imports
 * are kept for 24 hours. */
#ifndef LAKE_IMPORT_H
#define LAKE_IMPORT_H

#include "lake/lake.h"

enum { LAKE_IMPORT_PATHS_MAX = 100 };

struct lake_import_path {
    bool is_object;         /* `source` is one object; otherwise it is a prefix of keys */
    struct str source;      /* s3://bucket/key or s3://bucket/prefix */
    struct str destination; /* the object's path, or the prefix that replaces the source's prefix */
};

struct lake_import_options {
    struct str branch;
    const struct lake_import_path *paths;
    size_t count;
    struct str message, committer; /* message empty: "Import objects" */
    struct str_pairs metadata;
    struct str user; /* id of the user as whom the sources are listed */
    bool force;
    /* a source without objects is an error; otherwise such a source empties its destination */
    bool needs_objects;
};

struct lake_import_status {
    struct str id;
    struct str branch;
    bool completed;
    int64_t updated_ms;
    uint64_t ingested; /* objects that were listed so far */
    struct str tree;   /* id of the new commit's tree (lakeFS: metarange id); empty: not made yet */
    struct str commit_id;
    struct str error; /* why the import has failed for good; empty: it has not */
    bool canceled;
    /* why the last try failed, after which the import is tried again; empty: it did not fail */
    struct str last_error;
};

/* Checks the options and writes the record; *id is in the arena. The caller has checked that the
 * user may read the sources. ERR_INVALID: among other reasons, a source is in the namespace of a
 * repository. */
int lake_import_start(struct lake *l, struct arena *a, const struct lake_repo *r,
                      const struct lake_import_options *o, struct str *id,
                      struct err *err) MUST_CHECK;
int lake_import_get(struct lake *l, struct arena *a, const struct lake_repo *r, struct str id,
                    struct lake_import_status *out, struct err *err) MUST_CHECK;
/* Cancels an import that is under way. ERR_CONFLICT: the import has ended. */
int lake_import_cancel(struct lake *l, struct arena *a, const struct lake_repo *r, struct str id,
                       struct err *err) MUST_CHECK;
/* Carries out the import. If it fails and a further try cannot succeed, the error is written to the
 * record and the call returns 0. After other errors, which the record gets as `last_error`, the
 * caller should try again. `ended` is as in lake_gc_work(). */
int lake_import_work(struct lake *l, const struct lake_repo *r, struct str id,
                     bool (*ended)(void *ctx), void *ctx, struct err *err) MUST_CHECK;

#endif
