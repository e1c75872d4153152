/* Walks of logs that stopped at the end of a page and wait for the request for the next page, which
 * continues them. Otherwise each page would walk the history again from its beginning, and reading
 * all pages of a long history would take time quadratic in its length. A walk is kept for one
 * reader, and is no longer kept once the reader has taken it. Commits never change, so a walk never
 * becomes stale. When there are too many walks, the oldest are dropped. Any thread may call these
 * functions. */
#ifndef LAKE_LOG_PAUSES_H
#define LAKE_LOG_PAUSES_H

#include "lake/iter.h"

struct log_pauses;

struct log_pause {
    struct lake_iter *history;
    /* the next page begins with this commit, which the iterator has already returned */
    char next[LAKE_ID_LEN];
};

/* Makes an empty set of walks. All walks of the set together may have returned `max_commits`
 * commits, and the set has at most max_commits / 2000 walks. */
struct log_pauses *log_pauses_new(size_t max_commits);
void log_pauses_free(struct log_pauses *p); /* NULL is fine */

/* Takes the walk that was put under the key. Returns false when there is none. */
bool log_pauses_take(struct log_pauses *p, struct str key, struct log_pause *out);
/* Puts a walk that has returned `commits` commits, and takes over its history. A walk that is too
 * large is not kept. */
void log_pauses_put(struct log_pauses *p, struct str key, const struct log_pause *pause,
                    size_t commits);

#endif
