/* A walk over the layers of a branch in the order of paths. The layers are the rows of its staging
 * token, the rows of its sealed tokens, the newest first, and the records of the tree of its head.
 * If several layers have a path, the newest layer decides.
 *
 * A walk belongs to one thread. Without KV_MOMENTS, and without a view, the walk's caller reads the
 * branch's record after the walk. The tokens that the record still names were not dropped while the
 * walk read them (docs/lake.md, "Reading", L2). */
#ifndef LAKE_LAYERS_H
#define LAKE_LAYERS_H

#include "lake/lake_int.h"

struct layers_options {
    struct kv_view *view; /* NULL: the walk reads the newest state */
    const struct str *tokens;
    size_t token_count;       /* the first token is the newest */
    struct tree_store *store; /* NULL: only the tokens are walked */
    struct str tree;
    struct str prefix;     /* only paths that begin with this */
    struct str from;       /* the first path, inclusive; empty: the beginning */
    size_t first_page;     /* number of rows to fetch first; 0: the driver decides */
    bool shows_tombstones; /* removals are returned too, with an empty identity */
};

struct layers_row {
    struct str path;
    struct str identity; /* empty: the row is a tombstone */
    struct str data;     /* the encoded lake_entry */
};

struct layers;
/* Opens a walk. All strings of the options are copied, except `tokens`, which is borrowed until
 * this returns. */
int layers_open(struct layers **out, struct lake *l, const struct layers_options *o,
                struct err *err) MUST_CHECK;
/* Gives the next row. ERR_END: there are no more. The strings are borrowed until the next call on
 * the walk. */
int layers_next(struct layers *w, struct layers_row *out, struct err *err) MUST_CHECK;
/* Moves the walk forward or back: the next row is the first one at or after `path`. */
void layers_seek(struct layers *w, struct str path);
void layers_close(struct layers *w); /* NULL is fine */

/* Returns the tokens of a branch, the newest first: its staging token and its sealed tokens. The
 * array is in the arena; NULL when the arena is full. */
struct str *layers_tokens(struct arena *a, const struct lake_branch *b, size_t *count);

/* Gives the smallest string that is greater than all strings that begin with `prefix`. Returns
 * false when there is none, because every byte of the prefix is 0xff. */
bool layers_behind(struct arena *a, struct str prefix, struct str *out);

#endif
