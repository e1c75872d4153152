/* The bencoded answers of the HTTP tracker, byte for byte: BEP 3, 7, 21, 23, 24, 31, 48. Keys are
 * sorted, `peers` is always there. */
#ifndef SWARM_ANSWER_H
#define SWARM_ANSWER_H

#include "base/buf.h"
#include "swarm/announce.h"

/* How the client wants its peers. */
struct answer_form {
    bool compact, no_peer_id;
    const struct peer_addr *external; /* the client as we see it; NULL: not told */
};

void answer_announce(struct buf *out, const struct announce_answer *a,
                     const struct answer_form *form);
/* `hashes` sorted, each once; torrents that are not known are left out. */
void answer_scrape(struct buf *out, const uint8_t *hashes, const struct scrape_entry *entries,
                   size_t count, uint32_t min_interval_s);
/* With words of its own in place of the table's; NULL: the table's. */
void answer_failure(struct buf *out, enum swarm_failure failure, const char *words);

#endif
