/* A place of nodes in memory with a tree store over it, and sets of records to compare trees with.
 */
#ifndef TESTS_UNIT_LAKE_TREE_WORLD_H
#define TESTS_UNIT_LAKE_TREE_WORLD_H

#include "base/map.h"
#include "lake/tree.h"
#include "os/thread.h"
#include "unit/test.h"

struct world_file {
    char id[LAKE_ID_LEN + 1];
    struct buf bytes;
};

struct world {
    struct mutex lock; /* guards the files and the counts */
    struct map files;
    uint64_t reads, writes, calls; /* of files; calls: of several files in one call */
    uint64_t low_writes;           /* writes on threads of low priority */
    int fail_writes;               /* after this many writes each fails; -1: none does */
    unsigned delay_ms;             /* of a read */
    struct tree_store store;
    struct tree_cache *cache;
};

void world_open(struct world *w, size_t memory_bytes);
/* Opens the cache with these options; world_open() must not have. */
void world_open_with(struct world *w, const struct tree_cache_options *o);
/* The place writes several files in one call, too. */
void world_write_together(struct world *w);
void world_close(struct world *w);
struct world_file *world_file(struct world *w, struct str id); /* NULL: there is none */
void world_put(struct world *w, struct str id, struct str bytes);
void world_forget(struct world *w); /* empties the cache */

/* A set of records: key number n has version versions[n]; 0: the set does not have the key. */
enum { SET_KEYS = 512 };
struct set {
    uint32_t versions[SET_KEYS];
};

/* The n-th key, in order. */
struct str set_key(char room[64], unsigned n);
/* The record of that key and version; its strings are in `room`. */
enum { SET_ROOM = 256 };
struct tree_record set_record(char room[SET_ROOM], unsigned n, uint32_t version);

/* Builds the tree of the set from nothing, on the caller's thread. */
void set_build(struct world *w, const struct set *s, struct tree_result *out);
/* Applies the changes that lead from one set to the other. */
void set_apply(struct world *w, struct str base, const struct set *from, const struct set *to,
               struct tree_result *out);
/* Fails the test unless the tree holds exactly the set: by iterating, by get and by seek. */
void set_check(struct world *w, struct str root, const struct set *s);
size_t set_count(const struct set *s);

/* Random numbers from a seed. */
uint32_t random_next(uint64_t *state);
void set_random(struct set *s, uint64_t *state, unsigned percent);
void set_change(struct set *s, uint64_t *state, unsigned changes);

/* How many seeds a random test runs: TREE_SEEDS, or `usual`. */
unsigned tree_seeds(unsigned usual);

#endif
