/* Walks of logs that stopped at the end of a page. The next page continues such a walk. Without it,
 * the history would be walked again from its beginning, and reading all pages of a long history
 * would take time quadratic in its length. A walk is kept for one reader and taken once. Commits
 * never change, so a walk never becomes stale. When there are too many walks, the oldest are
 * dropped. Any thread may call these functions. */
#ifndef LAKE_LOG_PAUSES_H
#define LAKE_LOG_PAUSES_H

#include "lake/iter.h"

struct log_pauses;

struct log_pause {
    struct lake_iter *history;
    char next[LAKE_ID_LEN]; /* the walk has passed this commit, which the next page begins with */
};

/* Makes the place for walks. Together they may have passed `max_commits` commits, and there is at
 * most one walk for 2000 of them. */
struct log_pauses *log_pauses_new(size_t max_commits);
void log_pauses_free(struct log_pauses *p); /* NULL is fine */

/* Takes the walk that was put under the key. Returns false when there is none. */
bool log_pauses_take(struct log_pauses *p, struct str key, struct log_pause *out);
/* Puts a walk that has passed so many commits, and takes over its history. A walk that is too large
 * is not kept. */
void log_pauses_put(struct log_pauses *p, struct str key, const struct log_pause *pause,
                    size_t commits);

#endif
