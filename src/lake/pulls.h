/* Pull requests: requests to merge one branch into another. A pull request is a record in the
 * repository's partition. Merging it is an ordinary merge of its branches. */
#ifndef LAKE_PULLS_H
#define LAKE_PULLS_H

#include "lake/lake.h"

enum {
    LAKE_PULL_TITLE_MAX = 1024,    /* longest title, in bytes */
    LAKE_PULL_TEXT_MAX = 64 << 10, /* longest description, in bytes */
};

/* The row pulls/<id> of the partition: lakeFS's message PullRequestData. */
struct lake_pull {
    struct str id;
    uint32_t status; /* enum lake_pull_status */
    int64_t created_ms;
    struct str title, author, description;
    struct str source, destination; /* names of branches */
    /* the commit that the merge made; empty: the pull request was not merged */
    struct str commit_id;
    int64_t closed_ms; /* 0: the pull request is open */
    /* the row as it was read, for conditions of writes (KV_SAME); not in the record */
    struct str stamp;
};
enum lake_pull_status { LAKE_PULL_OPEN, LAKE_PULL_CLOSED, LAKE_PULL_MERGED, LAKE_PULL_STATUSES };

/* Appends the encoded record. */
void lake_pull_write(struct buf *out, const struct lake_pull *p);
/* Reads an encoded record. Its strings point into `in`. ERR_CORRUPT: the bytes are not a record. */
int lake_pull_read(struct lake_pull *out, struct str in, struct err *err) MUST_CHECK;

/* Makes a pull request with the title, author, description and branches of `wanted`. ERR_INVALID:
 * the branches are the same, or a text is too long. ERR_NOT_FOUND: a branch does not exist. */
int lake_pull_create(struct lake *l, struct arena *a, const struct lake_repo *r,
                     const struct lake_pull *wanted, struct lake_pull *out,
                     struct err *err) MUST_CHECK;
int lake_pull_get(struct lake *l, struct arena *a, const struct lake_repo *r, struct str id,
                  struct lake_pull *out, struct err *err) MUST_CHECK;
/* Lists pull requests by id, which is the order in which they were made. `statuses` is a set of
 * bits, 1 << enum lake_pull_status. */
int lake_pull_list(struct lake *l, struct arena *a, const struct lake_repo *r,
                   const struct lake_page *p, unsigned statuses, struct lake_pull **out,
                   size_t *count, bool *more, struct err *err) MUST_CHECK;

/* The new values. NULL, or LAKE_PULL_STATUSES as the status: the value is not changed. */
struct lake_pull_change {
    const struct str *title, *description;
    enum lake_pull_status status; /* open or closed */
};
/* Changes the pull request. ERR_CONFLICT: it was merged, so its status can no longer change. */
int lake_pull_update(struct lake *l, struct arena *a, const struct lake_repo *r, struct str id,
                     const struct lake_pull_change *change, struct err *err) MUST_CHECK;
/* Merges the source branch into the destination branch. The write that publishes the merge also
 * records it in the pull request. `o` and `conflicts` are those of lake_merge(). If `o` has no
 * message, the title is the message. ERR_CONFLICT: the branches conflict, or the pull request is
 * not open. After any error branch and pull request are as they were. */
int lake_pull_merge(struct lake *l, struct arena *a, const struct lake_repo *r, struct str id,
                    const struct lake_merge_options *o, struct lake_pull *out,
                    struct lake_conflicts *conflicts, struct err *err) MUST_CHECK;

#endif
