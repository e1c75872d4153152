/* Tables as lakeFS writes them, made by RocksDB's own writer. */
#ifndef TESTS_UNIT_LAKE_SST_FILE_H
#define TESTS_UNIT_LAKE_SST_FILE_H

#include "unit/lake/tree_world.h"

struct sst_options {
    const char *type; /* "ranges" or "metaranges"; NULL: the table has no type */
    bool two_levels;  /* the index has an index of its own */
    bool plain;       /* blocks are not packed */
    bool ends_late;   /* a metarange says that each range has one key more at its end */
    size_t block;     /* bytes of a block; 0: 4096 */
};

/* A table that is being written. */
struct sst_file;
struct sst_file *sst_file_new(const struct sst_options *o);
void sst_file_add(struct sst_file *f, struct str key, struct str value);
/* Ends the table, puts its bytes into `out` and its id, by lakeFS's rule, into `id`. */
void sst_file_end(struct sst_file *f, struct buf *out, char id[LAKE_ID_LEN + 1]);

/* Makes a table without records as pebble does, which RocksDB's writer refuses to make: one data
 * block, which is empty, and an index whose only key is empty. */
void sst_file_empty(struct buf *out, const char *type, char id[LAKE_ID_LEN + 1]);

/* Puts the set into the world as a metarange with this many ranges, and gives its id. */
void sst_set(struct world *w, const struct set *s, unsigned ranges, const struct sst_options *o,
             char root[LAKE_ID_LEN + 1]);
/* The same with these ranges: each has the keys from one number to before another. */
void sst_ranges(struct world *w, const struct set *s, const unsigned bounds[][2], unsigned ranges,
                const struct sst_options *o, char root[LAKE_ID_LEN + 1]);

#endif
