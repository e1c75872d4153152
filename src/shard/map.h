/* The map of a sharded bucket: which keys are on which shard.
 *
 * The key space is cut into segments. Each segment is on one shard (a *place*), and a shard may
 * have several segments. A segment has the keys above its `after`, up to and including the next
 * segment's `after`. The first segment begins at the empty string, and the last one has no end.
 * Keys are compared as bytes.
 *
 * Maps are numbered. Once a map is published, it never changes. To change something, map_draft()
 * and the functions below it make the next map, which is then published (log.h). docs/sharding.md
 * has the invariants (H1 to H14).
 *
 * A map is stored as a JSON object; its members have the names of the struct members below. `id` is
 * a string of decimal digits, because it may be above 2^63. Keys are bytes and need not be UTF-8.
 * So in the map's strings `%`, `"`, `\\` and every byte that is not printable ASCII are written as
 * `%` and two upper-case hexadecimal digits. So each map has exactly one text.
 *
 * Maps are reference counted. Any thread may read a published map. */
#ifndef SHARD_MAP_H
#define SHARD_MAP_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

enum {
    SHARD_PLACES_MAX = 10000,
    SHARD_SEGMENTS_MAX = 20000,
    SHARD_UNCLEAN_MAX = 1024,         /* unclean windows of one place */
    SHARD_MAP_MAX = 16 * 1024 * 1024, /* limit on the bytes of a stored map */
    SHARD_BY_LEN = 16,                /* hex digits of the mark of a map's writer */
};

/* The keys above `after`, up to and including `upto`. An empty `upto`: there is no upper end. */
struct shard_window {
    struct str after, upto;
};

bool window_has(const struct shard_window *w, struct str key);
bool window_is_empty(const struct shard_window *w);
bool window_overlaps(const struct shard_window *a, const struct shard_window *b);
/* Compares two upper ends of windows. An empty upper end is the greatest. */
int window_compare_upto(struct str a, struct str b);

/* A shard: an ordinary bucket on a storage. Place 0 is the bucket itself. */
struct shard_place {
    uint32_t number;
    struct str storage, bucket;
    /* The windows in which the shard may have garbage: objects that are not its own (H9, H10).
     * Sorted; they overlap neither each other nor a segment of this place. */
    struct shard_window *unclean;
    size_t unclean_count;
    bool uploads; /* the shard gave away a window that had open uploads */
    bool times;   /* objects were copied to the shard, and their times are kept in the map bucket */
};

struct shard_segment {
    struct str after;
    uint32_t place; /* index in map.places */
};

enum shard_state {
    SHARD_ACTIVE,
    SHARD_DELETING, /* the bucket is being removed */
    SHARD_PLAIN,    /* the bucket is not sharded any more */
};

/* The requests that are held back at the moment: none, those for the closed window, or others. */
enum shard_closed {
    SHARD_OPEN,
    SHARD_CLOSED_COPY,      /* requests for a window whose objects were copied to another shard */
    SHARD_CLOSED_ADOPT,     /* requests for a window whose rows move within one folder */
    SHARD_CLOSED_NONE,      /* requests for a window without objects */
    SHARD_CLOSED_DOCUMENTS, /* changes of the bucket's documents */
    SHARD_CLOSED_ALL,       /* every request */
};

enum shard_move_kind { SHARD_SPLIT, SHARD_MERGE, SHARD_MOVE, SHARD_DISABLE };

struct shard_move {
    struct str id; /* random; empty: nothing is being moved */
    enum shard_move_kind kind;
    uint32_t from, to; /* numbers of places */
    struct shard_window window;
};

struct shard_map {
    uint64_t number;
    struct str home, bucket, owner; /* the storage and name of the bucket, and its owner's id */
    struct str by;    /* random mark of the writer that made the map, SHARD_BY_LEN hex digits */
    uint64_t id;      /* place_id() of the bucket, which no later bucket gets */
    struct str house; /* mark of the installation of weir that wrote the map */
    struct str mark;  /* the random part of the names of shards (names.h) */
    enum shard_state state;
    uint64_t threshold; /* objects of a shard beyond which it is split; 0: the configured number */
    uint32_t last_number;       /* the greatest number that a place ever had */
    struct shard_place *places; /* sorted by number; the first is place 0 */
    size_t place_count;
    struct shard_segment *segments; /* sorted by `after`; the first `after` is empty */
    size_t segment_count;
    struct shard_move move;
    enum shard_closed closed;
    struct shard_window closed_window; /* set if a window is closed */
};

/* --- life --- */

/* Makes the first map of a bucket: one segment, on place 0. The strings are copied. `number` must
 * be above 0. The caller sets `id`. */
struct shard_map *map_first(struct str home, struct str bucket, struct str owner, struct str house,
                            struct str mark, uint64_t number);
struct shard_map *map_ref(struct shard_map *m);
void map_unref(struct shard_map *m); /* NULL is fine */

/* Reads a stored map strictly. ERR_CORRUPT: the text is not a map, or breaks an invariant; the
 * error says which. ERR_UNSUPPORTED: a newer weir has written it. */
int map_parse(struct shard_map **out, struct str text, struct err *err) MUST_CHECK;
void map_write(const struct shard_map *m, struct buf *out);
/* Checks the invariants of a map. ERR_CORRUPT: an invariant is broken; the error says which. Code
 * that publishes such a map has a bug. */
int map_check(const struct shard_map *m, struct err *err) MUST_CHECK;

/* --- asking --- */

/* Returns the index of the segment that has the key. Every key is in a segment. */
size_t map_segment_of(const struct shard_map *m, struct str key);
/* Returns the index of the segment that has the first key above `after`. */
size_t map_segment_after(const struct shard_map *m, struct str after);
struct shard_window map_window(const struct shard_map *m, size_t segment);
static inline const struct shard_place *map_place_at(const struct shard_map *m, size_t segment)
{
    return &m->places[m->segments[segment].place];
}
/* Returns the place with this number; NULL: there is none. */
const struct shard_place *map_place(const struct shard_map *m, uint32_t number);
/* map_is_on(): whether the whole window belongs to this place. map_is_clean(): whether no unclean
 * window of this place overlaps the window. */
bool map_is_on(const struct shard_map *m, const struct shard_window *w, uint32_t number);
bool map_is_clean(const struct shard_map *m, const struct shard_window *w, uint32_t number);
/* Whether requests for this key, or for a part of this window, are held back under this map. */
bool map_closes(const struct shard_map *m, struct str key);
bool map_closes_window(const struct shard_map *m, const struct shard_window *w);

/* --- making the next map --- */

/* Returns a draft of the next map: a copy with the next number and a new random `by`. Only the
 * caller may use the draft until it is published. The functions below change it, and copy the
 * strings that they get. The caller itself may set the draft's state, its threshold and the flags
 * of its places. */
struct shard_map *map_draft(const struct shard_map *m);
/* Adds a place. `number` is above last_number. `bucket` is a name that shard_name_parse() accepts
 * for the map's bucket and this number. */
void map_add_place(struct shard_map *m, uint32_t number, struct str storage, struct str bucket);
/* Removes a place without segments. */
void map_remove_place(struct shard_map *m, uint32_t number);
/* Notes that the place may have garbage in the window. No segment of the place may overlap the
 * window. If the place would have more than SHARD_UNCLEAN_MAX windows, neighbouring windows become
 * one. */
void map_set_unclean(struct shard_map *m, uint32_t number, const struct shard_window *w);
void map_set_clean(struct shard_map *m, uint32_t number, const struct shard_window *w);
/* Gives the window to the place `to`, and marks `to` as clean there. Neighbouring segments on one
 * place become one segment. */
void map_give(struct shard_map *m, const struct shard_window *w, uint32_t to);
/* Closes the window; `w` is NULL for SHARD_CLOSED_DOCUMENTS and SHARD_CLOSED_ALL. Nothing may be
 * closed in the map yet. */
void map_close(struct shard_map *m, enum shard_closed how, const struct shard_window *w);
void map_open(struct shard_map *m);
/* Notes a move with a new random id in the map, which must not have a move yet. */
void map_begin_move(struct shard_map *m, enum shard_move_kind kind, uint32_t from, uint32_t to,
                    const struct shard_window *w);
void map_end_move(struct shard_map *m);
/* Says that another installation of weir owns the bucket from now on. */
void map_set_house(struct shard_map *m, struct str house);

#endif
