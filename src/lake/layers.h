/* A walk over the layers of a branch in the order of paths: rows of its staging token, rows of its
 * sealed tokens, the newest first, and the records of the tree of its head. Where several layers
 * have a path, the newest one decides, and the others are passed over.
 *
 * A walk belongs to one thread. Without KV_MOMENTS, and without a view, the walk's caller reads the
 * branch's record behind the walk: tokens that are still listed were not dropped while the walk
 * read them (docs/lake.md, "Reading", L2). */
#ifndef LAKE_LAYERS_H
#define LAKE_LAYERS_H

#include "lake/lake_int.h"

struct layers_options {
    struct kv_view *view; /* NULL: the newest state */
    const struct str *tokens;
    size_t token_count;       /* the newest token first */
    struct tree_store *store; /* NULL: the tokens alone */
    struct str tree;
    struct str prefix;     /* paths begin with it */
    struct str from;       /* the first path, inclusive; empty: the beginning */
    size_t first_page;     /* rows to fetch first; 0: the driver's own number */
    bool shows_tombstones; /* removals are given too, with an empty identity */
};

struct layers_row {
    struct str path;
    struct str identity; /* empty: a tombstone */
    struct str data;     /* the encoded lake_entry */
};

struct layers;
/* All strings of the options are copied, except `tokens`, which is borrowed until this returns. */
int layers_open(struct layers **out, struct lake *l, const struct layers_options *o,
                struct err *err) MUST_CHECK;
/* ERR_END: there are no more. The strings are borrowed until the next call on the walk. */
int layers_next(struct layers *w, struct layers_row *out, struct err *err) MUST_CHECK;
/* Moves the walk forward or back: the next row is the first one at or behind `path`. */
void layers_seek(struct layers *w, struct str path);
void layers_close(struct layers *w); /* NULL is fine */

/* The tokens of a branch, the newest first: its staging token and its sealed ones. The array is in
 * the arena; NULL when the arena is full. */
struct str *layers_tokens(struct arena *a, const struct lake_branch *b, size_t *count);

/* Appends the first string behind all strings that begin with `prefix`. Returns false when there is
 * none, because the prefix consists of the byte 0xff alone. */
bool layers_behind(struct arena *a, struct str prefix, struct str *out);

#endif
