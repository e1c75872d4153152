/* The encoding of the embedded engine's rows (docs/store.md, "Rows"). No I/O.
 *
 * The key of a row is built in a struct row, which has room for keys of the usual length; longer
 * keys are put into the arena. When the arena is full, the key is empty and the arena's failure
 * undoes the step. */
#ifndef STORE_ROWS_H
#define STORE_ROWS_H

#include "base/arena.h"

enum row_tag {
    ROW_SETTING = 'c',
    ROW_GARBAGE = 'g',
    ROW_FIELD = 'h',
    ROW_ITEM = 'l',
    ROW_META = 'm',
    ROW_ORDER = 'o',
    ROW_MEMBER = 's',
    ROW_EXPIRY = 'x',
    ROW_SCORE = 'z',
};

enum value_type { TYPE_NONE, TYPE_STRING, TYPE_LIST, TYPE_SET, TYPE_ZSET, TYPE_HASH };

/* Lengths of the fixed first part of a row's key: tag and version (ROW_PREFIX); tag, version, and
 * hash or score (ROW_HASHED). */
enum { ROW_PREFIX = 9, ROW_HASHED = 17 };

struct row {
    struct str key;
    char small[110];
};

/* Limits of a small hash, whose pairs are in its meta row; a larger hash has a row for each field.
 * These limits are part of the format on disk. */
enum { SMALL_FIELDS = 32, SMALL_BYTES = 1024 };

/* The value of a meta row, decoded. */
struct meta {
    enum value_type type;
    bool small;        /* a small hash, whose pairs are in `value` */
    int64_t expire_ms; /* ms since 1970; 0: the key never expires */
    struct str value;  /* a string's bytes or a small hash's pairs, borrowed from the row */
    uint64_t version;  /* version of a collection; 0 for a small hash */
    uint64_t count;
    int64_t head; /* in a list, the index of the first item */
};

void row_meta(struct row *row, struct arena *a, uint64_t hash, struct str key);
void row_expiry(struct row *row, struct arena *a, int64_t expire_ms, uint64_t hash, struct str key);
/* Makes a key of only a tag and a number, for example that of a garbage row. */
void row_prefix(struct row *row, enum row_tag tag, uint64_t number);
void row_hashed(struct row *row, struct arena *a, enum row_tag tag, uint64_t version,
                uint64_t hash_or_score, struct str member);
void row_item(struct row *row, uint64_t version, int64_t index);

/* For tags whose rows are ordered by hash or score: makes the key at which the rows of `version`
 * with that hash begin. */
void row_position(struct row *row, enum row_tag tag, uint64_t version, uint64_t hash);

int64_t row_item_index(struct str key);

/* Converts a double to 64 bits that sort as the numbers do, and back. */
uint64_t score_encode(double score);
double score_decode(uint64_t bits);

enum { META_MAX = 34 }; /* largest result of meta_encode(), in bytes */
/* Writes the first part of a meta row's value and returns its length; m->value follows it in the
 * row. */
size_t meta_encode(const struct meta *m, char out[META_MAX]);
/* Decodes the value of a meta row. ERR_CORRUPT: the value is damaged, or the pairs of a small hash
 * in it are. */
int meta_decode(struct meta *out, struct str value) MUST_CHECK;

/* Returns the size of a pair in a small hash, in bytes. Field and value must be shorter than 64
 * KiB. */
size_t pair_size(struct str field, struct str value);
void pair_write(char *to, struct str field, struct str value);
/* Takes the first pair off *rest. False: there is no complete pair. */
bool pair_next(struct str *rest, struct str *field, struct str *value);

/* Returns the tag of the rows that hold the members of a collection. *other: the tag of the order
 * rows of a sorted set; 0: the collection has no second kind of rows. */
enum row_tag type_tag(enum value_type type, enum row_tag *other);

#endif
