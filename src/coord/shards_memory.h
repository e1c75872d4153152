/* Since when the store has remembered what a process told it (docs/sharding.md, H7).
 *
 * A store that was emptied, or a Redis that fails over to a replica that lags, loses words of
 * processes. Who then asks the store whether every process holds a map is not told of a process
 * whose word was lost. A process notices such a loss by its own words: each must replace the word
 * before it, and be taken by the same run of the store's server. After a loss the process waits
 * until every other process has told again, or its lease is over: SHARDS_FORGOTTEN_MS.
 *
 * The caller guards the struct. Zeroed: no word was told yet. */
#ifndef COORD_SHARDS_MEMORY_H
#define COORD_SHARDS_MEMORY_H

#include "base/clock.h"

enum { SHARDS_FORGOTTEN_MS = 10 * MS_PER_S, SHARDS_WORD_MAX = 63, SHARDS_RUN_MAX = 96 };

/* A word of a process as it is in `w:gateways`, and the run of the server that has taken it. */
struct shards_word {
    char text[SHARDS_WORD_MAX + 1], run[SHARDS_RUN_MAX + 1];
};

struct shards_memory {
    struct shards_word word; /* the last word; text empty: none */
    uint64_t since_ns;       /* clock_boot_ns() time of the answer to the first word that counts */
};

/* Records that the store has taken a word. `before`: the word that it has replaced; empty: none. */
void shards_memory_took(struct shards_memory *m, struct str before, struct str word, struct str run,
                        uint64_t now_ns);
/* Whether the store has remembered this process for SHARDS_FORGOTTEN_MS. */
bool shards_memory_holds(const struct shards_memory *m, uint64_t now_ns);

#endif
