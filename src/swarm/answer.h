/* The bencoded answers of the HTTP tracker (BEP 3, 7, 21, 23, 24, 31, 48). Keys are sorted, and an
 * answer to an announce always has the key `peers`. */
#ifndef SWARM_ANSWER_H
#define SWARM_ANSWER_H

#include "base/buf.h"
#include "swarm/announce.h"

/* How the client wants its peers. */
struct answer_form {
    bool compact, no_peer_id;
    const struct peer_addr *external; /* the client's address as we see it; NULL: left out */
};

void answer_announce(struct buf *out, const struct announce_answer *a,
                     const struct answer_form *form);
/* Writes the answer to a scrape. `hashes` must be sorted without duplicates. Unknown torrents are
 * left out. */
void answer_scrape(struct buf *out, const uint8_t *hashes, const struct scrape_entry *entries,
                   size_t count, uint32_t min_interval_s);
/* Writes the answer of a refused request. `words` replace the failure's own text unless NULL. */
void answer_failure(struct buf *out, enum swarm_failure failure, const char *words);

#endif
