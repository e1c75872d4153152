/* The interface that the kinds of iterators implement. */
#ifndef LAKE_ITER_INT_H
#define LAKE_ITER_INT_H

#include "lake/iter.h"
#include "lake/lake_int.h"

/* The functions of one kind of iterator. Their callers in iter.c check that the iterator is not
 * closed. */
struct lake_iter_ops {
    int (*next)(struct lake_iter *it, struct lake_item *out, struct err *err);
    void (*seek)(struct lake_iter *it, struct str id);
    /* releases everything but the members of struct lake_iter */
    void (*close)(struct lake_iter *it);
};

/* The part that all kinds share. A kind embeds it as its first member. */
struct lake_iter {
    const struct lake_iter_ops *ops;
    struct lake *lake;
    struct kv_view *view; /* closed by lake_iter_close() */
    struct arena arena;   /* memory of the present item; emptied before next() */
    struct arena kept;    /* memory that lives until the close */
    /* The repository that is to exist at the end of the rows, in `kept`. Its id is empty if there
     * is nothing to check at the end. */
    struct lake_repo repo;
    bool closed;
};

/* Sets *out to the iterator if `code` is 0, and frees it otherwise. Returns the code. */
int lake_iter_opened(struct lake_iter **out, struct lake_iter *it, int code);

/* Opens the iterator's view, and reads the repository's record in it. ERR_NOT_FOUND: the repository
 * was deleted, or made again. If the store has no moments, lake_iter_next() reads the record again
 * after the last row: rows of a repository that is deleted meanwhile may be missing. */
int lake_iter_begin(struct lake_iter *it, const struct lake_repo *r, struct err *err) MUST_CHECK;
/* Opens a scan of the rows "<kind>/<name>" in the iterator's view. Opens the view first if there is
 * none. */
int lake_iter_scan(struct kv_scan **out, struct lake_iter *it, struct str partition,
                   const char *kind, struct err *err) MUST_CHECK;
/* Moves such a scan to a name. */
void lake_iter_scan_seek(struct kv_scan *scan, const char *kind, struct str name);

/* Opens the iterator of lake_iter_commits() with `only_leaves` (iter_leaves.c). */
int lake_iter_leaves(struct lake_iter **out, struct lake *l, const struct lake_repo *r,
                     struct err *err) MUST_CHECK;

/* Returns the number of commits that a history holds in memory (iter_history.c). */
size_t lake_history_commits(const struct lake_iter *it);

#endif
