/* The bencoded answers of the HTTP tracker (BEP 3, 7, 21, 23, 24, 31, 48). Keys are sorted, and an
 * answer to an announce always has the key `peers`. */
#ifndef SWARM_ANSWER_H
#define SWARM_ANSWER_H

#include "base/buf.h"
#include "swarm/announce.h"

/* The form in which the client wants the peers of an answer. */
struct answer_form {
    bool compact, no_peer_id;
    /* The client's address as the tracker sees it; NULL: the answer does not contain it. */
    const struct peer_addr *external;
};

void answer_announce(struct buf *out, const struct announce_answer *a,
                     const struct answer_form *form);
/* Writes the answer to a scrape. `hashes` must be sorted without duplicates. Unknown torrents are
 * left out. */
void answer_scrape(struct buf *out, const uint8_t *hashes, const struct scrape_entry *entries,
                   size_t count, uint32_t min_interval_s);
/* Writes the answer of a refused request. `words` are sent instead of the failure's own text; NULL:
 * the failure's own text is sent. */
void answer_failure(struct buf *out, enum swarm_failure failure, const char *words);

#endif
