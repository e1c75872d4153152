/* Iterators over the lake's records: repositories, branches, tags, commits, the history of a
 * commit, and the rows of a staging token.
 *
 *     struct lake_iter *it = NULL;
 *     struct lake_item item;
 *     int code = lake_iter_tags(&it, l, r, err);
 *     while (code == 0 && (code = lake_iter_next(it, &item, err)) == 0)
 *         use(item.tag);
 *     lake_iter_free(it);
 *     return code == ERR_END ? 0 : code;
 *
 * An iterator shows one moment where the key-value store has moments (kv/kv.h). Otherwise, rows
 * that change while it runs may or may not be seen. An iterator belongs to one thread at a time.
 *
 * An iterator over the rows of a repository reads the repository's record when it is opened, in
 * the same moment. Where the store has no moments, it reads the record again after the last row.
 * ERR_NOT_FOUND, from the opening or in place of ERR_END: the repository was deleted, or made
 * again. A history reads no record, because its caller has just read the commit of a ref, and
 * commits never change. */
#ifndef LAKE_ITER_H
#define LAKE_ITER_H

#include "lake/lake.h"

struct lake_iter;

/* The present item of an iterator. The iterator's kind says which pointer is set. Everything is
 * borrowed until the next call on the iterator. Stamps are empty. */
struct lake_item {
    /* name, commit id or path, by which lake_iter_seek() moves; in most kinds the items are in the
     * order of this id */
    struct str id;
    const struct lake_repo *repo;
    const struct lake_branch *branch;
    const struct lake_tag *tag;
    const struct lake_commit *commit;
    const struct lake_staged *staged;
};

/* Opens an iterator over all repositories, by name. */
int lake_iter_repos(struct lake_iter **out, struct lake *l, struct err *err) MUST_CHECK;
/* Opens an iterator over the branches, by name. Hidden branches are included only if
 * `show_hidden`. */
int lake_iter_branches(struct lake_iter **out, struct lake *l, const struct lake_repo *r,
                       bool show_hidden, struct err *err) MUST_CHECK;
/* Opens an iterator over all branches, also hidden ones, by the id of their head and then by name;
 * `id` is the head. The branches are first read and sorted in memory. ERR_NO_MEMORY: they need more
 * than LAKE_HEADS_BYTES. */
enum { LAKE_HEADS_BYTES = 64 << 20 };
int lake_iter_heads(struct lake_iter **out, struct lake *l, const struct lake_repo *r,
                    struct err *err) MUST_CHECK;
int lake_iter_tags(struct lake_iter **out, struct lake *l, const struct lake_repo *r,
                   struct err *err) MUST_CHECK;
/* Opens an iterator over all commits by id. With `only_leaves` it gives only commits that are not
 * the first parent of another commit. Nothing is held in memory. If the store has no moments, a
 * commit that gets a child meanwhile may be missing among the leaves together with that child. */
int lake_iter_commits(struct lake_iter **out, struct lake *l, const struct lake_repo *r,
                      bool only_leaves, struct err *err) MUST_CHECK;
/* Opens an iterator over the rows of a staging or sealed token, by path. A tombstone has no
 * identity. */
int lake_iter_staged(struct lake_iter **out, struct lake *l, struct str token,
                     struct err *err) MUST_CHECK;

struct lake_history {
    struct str from; /* id of the commit that comes first */
    bool first_parent;
    int64_t since_ms; /* older commits are left out, and the walk does not go on to their parents */
};
/* Opens an iterator over the commit and its ancestors, the newest first, each once. A commit never
 * comes before one of its children, whatever their times say. Seeking walks from the beginning
 * until the id is found. Memory: about 32 bytes for each commit that was returned, and 200 bytes
 * for each commit that was read and not returned yet. */
int lake_iter_history(struct lake_iter **out, struct lake *l, const struct lake_repo *r,
                      const struct lake_history *h, struct err *err) MUST_CHECK;

/* Gives the next item. ERR_END: there are no more. ERR_CLOSED: the iterator was closed. After any
 * other error the only calls allowed are seek and close. */
int lake_iter_next(struct lake_iter *it, struct lake_item *out, struct err *err) MUST_CHECK;
/* Moves the iterator, forward or back: the next item is the first one at or after `id`. In a
 * history the next item is `id` itself; if the history does not have it, there are no more
 * items. */
void lake_iter_seek(struct lake_iter *it, struct str id);
/* Ends the iterator and releases its resources. Closing twice is fine. */
void lake_iter_close(struct lake_iter *it);
/* closes the iterator and frees its memory; NULL is fine */
void lake_iter_free(struct lake_iter *it);

#endif
