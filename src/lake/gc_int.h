/* Declarations that the files gc_*.c and keep.c share. */
#ifndef LAKE_GC_INT_H
#define LAKE_GC_INT_H

#include "lake/claim.h"
#include "lake/gc.h"
#include "lake/keep.h"
#include "lake/lake_int.h"

/* --- the state (gc_state.c) --- */

/* The phase of a repository's collector: the row gc/state. It changes only a few times in a run,
 * because every writer checks it. */
enum gc_phase {
    GC_IDLE,
    GC_MARKING,  /* the run looks for dead files; new references leave marks */
    GC_CLOSED,   /* no mark can be added any more; marked bodies are removed from the list */
    GC_REMOVING, /* the files on the list are removed */
    GC_HELD,     /* no run may start: refs are being restored */
};

struct gc_state {
    uint32_t phase;  /* enum gc_phase */
    uint64_t number; /* grows with every change, so no two states have equal bytes */
    struct str run;
    int64_t cutoff_ms;
    bool mark_only;
    struct str stamp; /* the row as it was read, for conditions of writes; not in the record */
};

struct str gc_state_write(struct arena *a, const struct gc_state *s);
/* ERR_CORRUPT: the row is damaged. */
int gc_state_read(struct gc_state *out, const struct kv_value *row, struct err *err) MUST_CHECK;
/* Returns the encoded state of a new repository. */
struct str gc_state_new(struct arena *a, enum gc_phase phase);
struct kv_name gc_key_state(struct arena *a, struct str partition);
/* Reads the state. If the repository has no row of a state yet, the row is made first. */
int gc_state_load(struct lake *l, struct arena *a, const struct lake_repo *r, struct gc_state *out,
                  struct err *err) MUST_CHECK;
/* Adds a put of the state *to to the write, which fails unless the stored state is still *from.
 * Sets *from to the new state at once, before the write is made. */
void gc_state_change(struct lake_tx *tx, const struct lake_repo *r, struct gc_state *from,
                     const struct gc_state *to);

/* --- marks (gc_state.c) --- */

#define GC_COMMITS  "gc/commits" /* row gc/commits/<id>: GC_KEPT or GC_EXPIRED */
#define GC_KEPT_ROW "gc/kept"    /* row gc/kept/<address>: no value */
#define GC_DEAD     "gc/dead"    /* row gc/dead/<run>/<key>: struct gc_dead */
#define GC_KEPT     STR("kept")
#define GC_EXPIRED  STR("expired")

/* --- other rows --- */

/* The row gc/report (gc_run.c). The reader gives ERR_CORRUPT if the row is damaged. */
struct str gc_report_write(struct arena *a, const struct lake_gc_report *report);
int gc_report_read(struct lake_gc_report *out, struct str record, struct err *err) MUST_CHECK;

/* The row `gc-round` of a lake (gc_round.c). A *turn* is the part of a round in which one
 * repository is collected. */
struct gc_round {
    int64_t started_ms;
    int64_t ended_ms; /* 0: the round is under way */
    struct str turn;  /* the repository whose turn it is; empty: the round has had no turn yet */
    int64_t asked_ms; /* when its turn began */
    bool is_new;      /* there is no row yet; not in the record */
    struct str stamp; /* the row as it was read, for conditions of writes; not in the record */
};
void gc_round_write(struct buf *out, const struct gc_round *round);
int gc_round_read(struct gc_round *out, const struct kv_value *row, struct err *err) MUST_CHECK;

/* --- sorting on disk (gc_sort.c) --- */

/* Sorts strings that do not fit into memory: writes sorted parts to files without names, and merges
 * them. A string has at most GC_STRING_MAX bytes. */
enum {
    GC_STRING_MAX = 8192,
    GC_SORT_BYTES = 32 << 20, /* memory of a list of files */
    GC_IDS_BYTES = 4 << 20,   /* memory of a list of commits or nodes */
    GC_SORT_RUNS = 64,
};
struct gc_sorter;
int gc_sorter_open(struct gc_sorter **out, const char *folder, size_t memory_bytes,
                   struct err *err) MUST_CHECK;
int gc_sorter_add(struct gc_sorter *s, struct str text, struct err *err) MUST_CHECK;
/* Ends the adding. Then gc_sorter_next() gives the strings from the smallest on, each once.
 * ERR_END: there are no more. The string is borrowed until the next call. */
int gc_sorter_sort(struct gc_sorter *s, struct err *err) MUST_CHECK;
int gc_sorter_next(struct gc_sorter *s, struct str *out, struct err *err) MUST_CHECK;
/* Sets *out to whether the sorter has the string. Callers ask in the order of the strings: each
 * call skips the smaller ones. */
int gc_sorter_has(struct gc_sorter *s, struct str text, bool *out, struct err *err) MUST_CHECK;
/* Begins again with the smallest string. */
int gc_sorter_rewind(struct gc_sorter *s, struct err *err) MUST_CHECK;
void gc_sorter_close(struct gc_sorter *s); /* NULL is fine */

/* --- a run (gc_run.c) --- */

struct gc_run {
    struct lake *lake;
    const struct lake_repo *repo;
    struct arena *arena; /* lives as long as the call */
    struct gc_state state;
    struct lake_gc_report report;
    bool (*ended)(void *ctx);
    void *ctx;
    struct lake_claim_watch *watch; /* when this call of lake_gc_work() has read the claim */
    bool is_lost; /* another process has gone on with the run, so the report is that process's */
    /* set by gc_abandon(): the request of an earlier removal may still reach the storage */
    bool waits;
    /* These members are used only while the run is marking: */
    struct gc_sorter *safe;    /* ids of the commits that a branch or a tag names */
    struct gc_sorter *expired; /* ids of the commits that are expired */
    /* keys of the bodies that a token or a commit names, and of the nodes of all commits */
    struct gc_sorter *live;
    /* the walk through the trees of kept commits; set only in G7, while their nodes are removed
     * from the list of dead files */
    struct gc_walk *kept;
};
/* Opens a sorter in the lake's folder. `bytes` is its memory, unless a test has set another size
 * (lake_options.gc_bytes). */
int gc_run_sorter(const struct gc_run *g, struct gc_sorter **out, size_t bytes,
                  struct err *err) MUST_CHECK;
int gc_run_check(const struct gc_run *g, struct err *err) MUST_CHECK; /* ERR_CANCELED: stop now */
/* Returns 0 if the next file may be removed, because this lake alone claims the namespace.
 * ERR_IN_USE: another lake claims it too, or the claim is absent; the run ends (gc_abandon()).
 * ERR_BUSY: it is not known yet which lakes use the namespace. */
int gc_run_ask_claim(struct gc_run *g, struct err *err) MUST_CHECK;
/* Makes the changes, on the condition that the state is as this process read or wrote it last.
 * ERR_BUSY: the state has changed, so another process goes on with the run. */
int gc_run_write(struct gc_run *g, struct lake_tx *tx, struct err *err) MUST_CHECK;
/* Writes the report, and changes the state to `phase` in the same write. The phase may stay the
 * same. ERR_BUSY: as for gc_run_write(). */
int gc_run_enter(struct gc_run *g, enum gc_phase phase, struct err *err) MUST_CHECK;

/* A file that is to be removed: a row gc/dead/<run>/<key>. */
struct gc_dead {
    uint64_t size;
    int64_t modified_ms;
    /* when the removal of a node began; 0: it has not begun. From then on a commit can no longer
     * take the node off the list */
    int64_t taken_ms;
};
struct kv_name gc_key_dead_in(struct arena *a, struct str partition, struct str run,
                              struct str key);
struct kv_name gc_key_dead(struct arena *a, const struct gc_run *g, struct str key);
struct str gc_dead_write(struct arena *a, const struct gc_dead *d);
int gc_dead_read(struct gc_dead *out, struct str record, struct err *err) MUST_CHECK;

/* Rows of the repository, read in slices (gc_remove.c); keys and values are in an arena. */
enum { GC_SLICE = 100 };
struct gc_slice {
    struct kv_name names[GC_SLICE];
    struct str values[GC_SLICE];
    size_t count;
};
/* Reads the next rows whose keys begin with `prefix`, from the key `from` on. */
int gc_slice_read(struct gc_slice *out, struct gc_run *g, struct arena *a, struct str prefix,
                  struct str from, struct err *err) MUST_CHECK;
/* Sets `from` to the smallest key that is greater than all keys of the slice. */
void gc_slice_next(const struct gc_slice *s, struct buf *from);
/* Handles one row: adds changes to the write of its slice. */
typedef int gc_row_fn(struct gc_run *g, struct lake_tx *tx, struct kv_name name, struct str value,
                      struct err *err);
/* Calls fn() for every row whose key begins with `prefix`, and writes the changes slice by slice.
 */
int gc_each_row(struct gc_run *g, struct str prefix, gc_row_fn *fn, struct err *err) MUST_CHECK;

/* --- which commits have expired (gc_judge.c) --- */

/* The reason why a walk over first parents begins at a commit. */
enum gc_start {
    GC_START_HEAD = 'h', /* a branch names the commit */
    GC_START_LEAF = 'l', /* the commit is not the first parent of another one */
};
struct gc_judge;
int gc_judge_open(struct gc_judge **out, const struct gc_run *g, struct err *err) MUST_CHECK;
/* Says that a walk begins at the commit, with the days of a rule. */
int gc_judge_start(struct gc_judge *j, struct str id, enum gc_start why, uint32_t days,
                   struct err *err) MUST_CHECK;
/* Adds a commit. Every commit that a walk can reach must be added, once, and in any order. */
int gc_judge_add(struct gc_judge *j, const struct lake_commit *c, struct err *err) MUST_CHECK;
/* Carries out the walks. *expired, which the judge keeps, gets the ids of the commits that were
 * reached and that no walk keeps. ERR_CORRUPT: a commit is missing, or its generation is not below
 * that of its child. */
int gc_judge_run(struct gc_judge *j, struct gc_sorter **expired, struct err *err) MUST_CHECK;
void gc_judge_close(struct gc_judge *j); /* NULL is fine */

/* --- walks over many trees (gc_walk.c) --- */

/* Called for each node. A leaf has the level 0. */
typedef int gc_node_fn(void *ctx, struct str id, unsigned level, struct err *err);
struct gc_walk;
/* `store`, fn and ctx are borrowed until the close. */
int gc_walk_open(struct gc_walk **out, const struct gc_run *g, struct tree_store *store,
                 gc_node_fn *fn, void *ctx, struct err *err) MUST_CHECK;
/* Adds a tree, and visits its root. "" is the empty tree. A root that is added twice is visited
 * twice. */
int gc_walk_add(struct gc_walk *w, struct str root, struct err *err) MUST_CHECK;
/* Visits the nodes below the roots, each once. */
int gc_walk_end(struct gc_walk *w, struct err *err) MUST_CHECK;
void gc_walk_close(struct gc_walk *w); /* NULL is fine */

/* --- the parts of a run --- */

/* Finds the commits that have expired, and marks them (gc_retain.c). */
int gc_retain(struct gc_run *g, struct err *err) MUST_CHECK;
/* Finds the dead files and writes the list of them (gc_mark.c). Calls gc_retain(). Dead are the old
 * files that no staged entry, no unfinished upload and no tree needs (G3 to G6). */
int gc_mark(struct gc_run *g, struct err *err) MUST_CHECK;
/* Calls fn() with the root of each tree of the last dump of refs (gc_dump.c). */
typedef int gc_tree_fn(void *ctx, struct str root, struct err *err);
int gc_dump_trees(struct gc_run *g, gc_tree_fn *fn, void *ctx, struct err *err) MUST_CHECK;
/* Removes from the list the bodies that are kept, and the nodes of kept commits and of dumps
 * (gc_exclude.c). */
int gc_exclude(struct gc_run *g, struct err *err) MUST_CHECK;
/* Removes the files on the list, and their rows. */
int gc_remove(struct gc_run *g, struct err *err) MUST_CHECK;
/* Adds the keys of the bodies that records of uploads name to g->live (gc_uploads.c). */
int gc_mark_uploads(struct gc_run *g, struct err *err) MUST_CHECK;
/* Aborts old uploads that no branch can receive any more. */
int gc_remove_uploads(struct gc_run *g, struct err *err) MUST_CHECK;
/* Gives the run up: removes the rows of its list of dead files, and then its marks, but no file.
 * ERR_BUSY: a removal of a node was begun lately, and its request may still reach the storage. The
 * row of that node stays until the request can no longer arrive. */
int gc_abandon(struct gc_run *g, struct err *err) MUST_CHECK;
/* Removes the lists of earlier runs that were asked to mark only (mark_only). */
int gc_remove_old_lists(struct gc_run *g, struct err *err) MUST_CHECK;
/* Removes the marks of the run. */
int gc_remove_marks(struct gc_run *g, struct err *err) MUST_CHECK;

#endif
