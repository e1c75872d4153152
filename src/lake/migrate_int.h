/* Declarations that the files migrate*.c share. */
#ifndef LAKE_MIGRATE_INT_H
#define LAKE_MIGRATE_INT_H

#include "lake/lake_int.h"
#include "lake/lineage.h"
#include "lake/migrate.h"
#include "lake/migrate_source.h"

#define MIGRATE_PARTITION STR("lake-migrate")

/* The tables of a repository, in the order in which they are copied. */
enum migrate_stage {
    MIGRATE_COMMITS,
    MIGRATE_TAGS,
    MIGRATE_BRANCHES,
    MIGRATE_STAGED, /* the staged rows, token by token, in the order of branches */
    MIGRATE_COPIED, /* everything is copied */
    MIGRATE_ENDED,  /* everything was compared, and the repository's record is there */
};

/* The row `repos/<id>` of partition `lake-migrate`, which says how far the migration of one
 * repository has come. It is written with every batch of rows. */
struct migrate_mark {
    struct str token;  /* repository_token of the new repository */
    uint32_t stage;    /* enum migrate_stage */
    struct str last;   /* the last key of the stage that was copied */
    struct str branch; /* for MIGRATE_STAGED: the branch whose token is being copied */
    /* not in the record: the row as it was read; stamp.p NULL: there is no row yet */
    struct str stamp;
};

void migrate_mark_write(struct buf *out, const struct migrate_mark *mark);
/* ERR_CORRUPT: the row is damaged. */
int migrate_mark_read(struct migrate_mark *out, const struct kv_value *row,
                      struct err *err) MUST_CHECK;

/* A repository that is being moved. */
struct migrate_repo {
    struct lake *lake;
    struct source *source;
    const struct lake_migrate_options *options;
    uint64_t *rows; /* rows that the whole migration has read, for the progress */
    struct arena arena;
    struct lake_repo repo; /* the record that is written at the end */
    struct migrate_mark mark;
    struct lineage lineage;
    struct lake_migrate_repo told;
    struct arena batch;
    struct lake_tx tx;
};

/* --- the tables (migrate_row.c) --- */

struct migrate_row {
    struct str name;  /* name of the row, without its kind */
    struct str value; /* value of the row in the key-value store */
    bool is_first;    /* the commit is the first parent of another one */
    bool left;        /* the row is not moved */
};

struct migrate_table {
    const char *kind; /* rows are "<kind>/<name>" */
    /* A SELECT of the rows of $1, which is the repository or the token, whose keys are greater than
     * $2. */
    const char *select;
    /* Makes weir's row from a row of the source; strings are in the arena. `present` is the copy's
     * row, if an earlier run has put it; its staging token is used again. */
    int (*read)(struct migrate_repo *m, struct arena *a, const struct source_row *from,
                struct str present, struct migrate_row *out, struct err *err);
};
extern const struct migrate_table migrate_tables[MIGRATE_COPIED];

/* Reads a row of graveler_commits. */
int migrate_read_commit(struct arena *a, const struct source_row *from, struct lake_commit *out,
                        struct err *err) MUST_CHECK;
/* Reads a JSON object of strings into sorted pairs. The value may be SQL's NULL or JSON's null. */
int migrate_read_pairs(struct arena *a, struct str json, struct str_pairs *out,
                       struct err *err) MUST_CHECK;

/* Calls fn() for each row of the statement `select` whose key is greater than `after`. `of` is the
 * repository or the staging token whose rows are selected. */
typedef int migrate_row_fn(struct migrate_repo *m, struct arena *a, const struct source_row *row,
                           void *ctx, struct err *err);
int migrate_each(struct migrate_repo *m, const char *select, struct str of, struct str after,
                 migrate_row_fn *fn, void *ctx, struct err *err) MUST_CHECK;

/* Calls fn() for each staged row that the source has for the branch `b` and whose path is greater
 * than `after`. */
int migrate_each_staged(struct migrate_repo *m, const struct lake_branch *b, struct str after,
                        migrate_row_fn *fn, void *ctx, struct err *err) MUST_CHECK;

/* Calls fn() for each branch that was copied, from the name `from` on. */
int migrate_each_branch(struct migrate_repo *m, struct str from,
                        int (*fn)(struct migrate_repo *m, const struct lake_branch *b,
                                  struct err *err),
                        struct err *err) MUST_CHECK;

/* --- steps (migrate_copy.c, migrate_compare.c) --- */

/* Reads the mark. If there is no mark, the migration of this repository has not begun. */
int migrate_mark_load(struct migrate_repo *m, struct err *err) MUST_CHECK;
/* Adds a put of the new mark to the write. The write fails if the row of the mark has changed since
 * it was read. */
void migrate_mark_put(struct migrate_repo *m, struct lake_tx *tx);
/* Call it after the write was made: sets the mark's stamp to the bytes that were written. */
void migrate_mark_written(struct migrate_repo *m);
/* Writes the mark without any other row. */
int migrate_mark_save(struct migrate_repo *m, struct err *err) MUST_CHECK;

/* Copies all rows, from the position of the mark on. */
int migrate_copy(struct migrate_repo *m, struct err *err) MUST_CHECK;
/* Compares all rows of the source with those of the copy. ERR_CONFLICT: they differ; the text names
 * the first row that differs. */
int migrate_compare(struct migrate_repo *m, struct err *err) MUST_CHECK;

#endif
