/* Judges which commits have expired, in memory that does not grow with the number of commits. The
 * rules are those of gc_retain.c.
 *
 * A walk goes from a commit to its first parent, and so on. All walks are carried out together:
 * commits are judged in the order of their generations, the highest first. A child has a higher
 * generation than its parent, so each commit is judged after all its children. A judged commit
 * sends a *word* to its parent: how many days the walk has, and whether the commit is young enough
 * to keep its parent. The start of a walk is a word, too.
 *
 * Commits are sorted on disk, and are judged chunk by chunk. Words for commits of later chunks
 * wait in another sorted file. A chunk takes its own words from that file, and the others are
 * written to a new one. Such words are few in a usual history: each chunk leaves about one for each
 * branch that was alive then. */
#include "lake/gc_int.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/map.h"

#include <stdlib.h>

enum {
    JUDGE_CHUNK_BYTES = 16 << 20,
    /* memory of a commit in a chunk, with its place in the map */
    JUDGE_COMMIT_BYTES = 256,
    JUDGE_CHUNK_MIN = 4, /* commits */
};

/* Kinds of words, besides those of enum gc_start. */
enum { WORD_KEEPS = 'k', WORD_WALKS = 'w' };

/* A word is encoded as the commit's id, the kind and the days. */
enum { WORD_LEN = LAKE_ID_LEN + 1 + 4 };

/* A commit of the present chunk. */
struct judge_commit {
    char id[LAKE_ID_LEN], parent[LAKE_ID_LEN];
    int64_t created_ms;
    uint32_t days;      /* most days of the walks that have reached the commit */
    uint32_t leaf_days; /* days of the walk that begins at the commit because it is a leaf */
    bool has_parent, is_reached, is_kept, is_head, is_leaf, is_judged;
};

struct gc_judge {
    const struct gc_run *run;
    int64_t now_ms;
    uint64_t day_ms;
    struct gc_sorter *commits; /* encoded commits, the highest generation first */
    struct gc_sorter *words;   /* words for commits that were not judged yet */
    struct gc_sorter *later;   /* words for commits of later chunks */
    struct gc_sorter *expired;
    struct judge_commit *chunk;
    size_t count, max; /* number of commits in the chunk, and most of them */
    struct map by_id;  /* the commits of the chunk */
};

int gc_judge_open(struct gc_judge **out, const struct gc_run *g, struct err *err)
{
    struct gc_judge *j = xzalloc(sizeof(*j));
    const struct lake_options *o = &g->lake->o;

    j->run = g;
    j->now_ms = clock_wall_ms();
    j->day_ms = o->gc_day_ms ? o->gc_day_ms : MS_PER_DAY;
    j->max = size_max((o->gc_bytes ? o->gc_bytes : JUDGE_CHUNK_BYTES) / JUDGE_COMMIT_BYTES,
                      JUDGE_CHUNK_MIN);
    map_init(&j->by_id);
    int code = gc_run_sorter(g, &j->commits, GC_IDS_BYTES, err);
    if (code == 0)
        code = gc_run_sorter(g, &j->words, GC_IDS_BYTES, err);
    if (code == 0)
        code = gc_run_sorter(g, &j->expired, GC_IDS_BYTES, err);
    *out = j;
    if (code < 0) {
        gc_judge_close(j);
        *out = NULL;
    }
    return code;
}

void gc_judge_close(struct gc_judge *j)
{
    if (!j)
        return;
    gc_sorter_close(j->commits);
    gc_sorter_close(j->words);
    gc_sorter_close(j->later);
    gc_sorter_close(j->expired);
    map_release(&j->by_id);
    free(j->chunk);
    free(j);
}

/* --- words --- */

static int judge_send(struct gc_sorter *to, struct str id, char kind, uint32_t days,
                      struct err *err)
{
    char word[WORD_LEN];

    memcpy(word, id.p, LAKE_ID_LEN);
    word[LAKE_ID_LEN] = kind;
    be32_write(word + LAKE_ID_LEN + 1, days);
    return gc_sorter_add(to, str_n(word, sizeof(word)), err);
}

/* Tells a word to its commit. */
static void judge_tell(struct judge_commit *c, char kind, uint32_t days)
{
    c->is_reached = true;
    if (kind == GC_START_LEAF) {
        c->is_leaf = true;
        c->leaf_days = days;
        return;
    }
    c->is_head |= kind == GC_START_HEAD;
    c->is_kept |= kind != WORD_WALKS;
    c->days = days > c->days ? days : c->days;
}

int gc_judge_start(struct gc_judge *j, struct str id, enum gc_start why, uint32_t days,
                   struct err *err)
{
    return id.len == LAKE_ID_LEN ? judge_send(j->words, id, (char)why, days, err) : 0;
}

/* --- commits --- */

/* A commit is encoded as its generation, its id, its time and the id of its first parent, if it has
 * one. The generation is subtracted from INT32_MAX, so that sorting the bytes puts the greatest
 * generation first. */
enum {
    COMMIT_ID = 4,
    COMMIT_TIME = COMMIT_ID + LAKE_ID_LEN,
    COMMIT_PARENT = COMMIT_TIME + 8,
    COMMIT_LEN = COMMIT_PARENT + LAKE_ID_LEN,
};

int gc_judge_add(struct gc_judge *j, const struct lake_commit *c, struct err *err)
{
    struct str first = lake_commit_first_parent(c);
    char bytes[COMMIT_LEN];

    if (c->id.len != LAKE_ID_LEN || (first.len && first.len != LAKE_ID_LEN))
        return err_set(err, ERR_CORRUPT, "commit " STR_FMT " has a malformed parent",
                       STR_ARG(c->id));
    be32_write(bytes, (uint32_t)INT32_MAX - (uint32_t)c->generation);
    memcpy(bytes + COMMIT_ID, c->id.p, LAKE_ID_LEN);
    be64_write(bytes + COMMIT_TIME, (uint64_t)c->created_ms);
    if (first.len)
        memcpy(bytes + COMMIT_PARENT, first.p, LAKE_ID_LEN);
    return gc_sorter_add(j->commits, str_n(bytes, COMMIT_PARENT + first.len), err);
}

static void judge_decode(struct judge_commit *out, struct str bytes)
{
    *out = (struct judge_commit){.created_ms = (int64_t)be64_read(bytes.p + COMMIT_TIME),
                                 .has_parent = bytes.len == COMMIT_LEN};
    memcpy(out->id, bytes.p + COMMIT_ID, LAKE_ID_LEN);
    if (out->has_parent)
        memcpy(out->parent, bytes.p + COMMIT_PARENT, LAKE_ID_LEN);
}

/* --- one chunk --- */

static int judge_fill_chunk(struct gc_judge *j, struct err *err)
{
    struct str bytes;
    int code = 0;

    map_release(&j->by_id);
    map_init(&j->by_id);
    j->count = 0;
    while (j->count < j->max && (code = gc_sorter_next(j->commits, &bytes, err)) == 0) {
        struct judge_commit *c = &j->chunk[j->count++];
        judge_decode(c, bytes);
        map_put(&j->by_id, str_n(c->id, LAKE_ID_LEN), c);
    }
    return code == ERR_END ? 0 : code;
}

/* Tells the words to the commits of the chunk. The other words are for later chunks. */
static int judge_tell_chunk(struct gc_judge *j, struct err *err)
{
    struct str word;
    int code = gc_sorter_sort(j->words, err);

    while (code == 0 && (code = gc_sorter_next(j->words, &word, err)) == 0) {
        struct judge_commit *c = map_get(&j->by_id, str_head(word, LAKE_ID_LEN));
        if (c)
            judge_tell(c, word.p[LAKE_ID_LEN], be32_read(word.p + LAKE_ID_LEN + 1));
        else
            code = gc_sorter_add(j->later, word, err);
    }
    return code == ERR_END ? 0 : code;
}

static int judge_bad_parent(const struct judge_commit *c, struct err *err)
{
    return err_set(err, ERR_CORRUPT,
                   "commit %.*s, a parent of %.*s, is missing, or its generation is too high",
                   LAKE_ID_LEN, c->parent, LAKE_ID_LEN, c->id);
}

/* Sends a word from the commit to its parent. */
static int judge_tell_parent(struct gc_judge *j, const struct judge_commit *c, struct err *err)
{
    struct str parent = str_n(c->parent, LAKE_ID_LEN);
    bool keeps = c->created_ms > j->now_ms - (int64_t)(c->days * j->day_ms);
    char kind = keeps ? WORD_KEEPS : WORD_WALKS;
    struct judge_commit *p = map_get(&j->by_id, parent);

    if (!p)
        return judge_send(j->later, parent, kind, c->days, err);
    if (p->is_judged)
        return judge_bad_parent(c, err);
    judge_tell(p, kind, c->days);
    return 0;
}

/* Judges a commit to which all words were told. A leaf without a branch is judged as if it had a
 * child of its own age. */
static int judge_commit(struct gc_judge *j, struct judge_commit *c, struct err *err)
{
    int code = 0;

    c->is_judged = true;
    if (!c->is_reached)
        return 0;
    if (c->is_leaf && !c->is_head) {
        c->is_kept |= c->created_ms > j->now_ms - (int64_t)(c->leaf_days * j->day_ms);
        c->days = c->leaf_days > c->days ? c->leaf_days : c->days;
    }
    if (!c->is_kept)
        code = gc_sorter_add(j->expired, str_n(c->id, LAKE_ID_LEN), err);
    return code == 0 && c->has_parent ? judge_tell_parent(j, c, err) : code;
}

static int judge_chunk(struct gc_judge *j, struct err *err)
{
    int code = gc_run_sorter(j->run, &j->later, GC_IDS_BYTES, err);

    if (code == 0)
        code = judge_tell_chunk(j, err);
    for (size_t i = 0; code == 0 && i < j->count; i++)
        code = judge_commit(j, &j->chunk[i], err);
    gc_sorter_close(j->words);
    j->words = j->later;
    j->later = NULL;
    return code < 0 ? code : gc_run_check(j->run, err);
}

/* --- all chunks --- */

/* After the last chunk no word may be left: its commit was missing, or came before its child. */
static int judge_check_words(struct gc_judge *j, struct err *err)
{
    struct str word;
    int code = gc_sorter_sort(j->words, err);

    if (code == 0)
        code = gc_sorter_next(j->words, &word, err);
    if (code == 0)
        return err_set(err, ERR_CORRUPT, "commit %.*s is missing, or its generation is too high",
                       LAKE_ID_LEN, word.p);
    return code == ERR_END ? 0 : code;
}

int gc_judge_run(struct gc_judge *j, struct gc_sorter **expired, struct err *err)
{
    int code = gc_sorter_sort(j->commits, err);

    j->chunk = xcalloc(j->max, sizeof(*j->chunk));
    do {
        if (code == 0)
            code = judge_fill_chunk(j, err);
        if (code == 0 && j->count)
            code = judge_chunk(j, err);
    } while (code == 0 && j->count == j->max);
    if (code == 0)
        code = judge_check_words(j, err);
    if (code == 0)
        code = gc_sorter_sort(j->expired, err);
    *expired = j->expired;
    return code;
}
