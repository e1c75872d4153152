/* The table of slots: which satellite has the objects of which accounts.
 *
 * The first byte of an account's hash is its *slot*. A table gives each of the 256 slots to one
 * satellite. The first table splits the slots equally. Each change of the table has a number, its
 * *epoch*, and is an object `_map/<epoch>.json` on every satellite (docs/archive.md, S1 to S4).
 * While a slot moves, the table also names the satellite that the slot leaves. */
#ifndef ARCHIVE_SLOTS_H
#define ARCHIVE_SLOTS_H

#include "base/buf.h"
#include "base/err.h"

enum {
    SLOT_COUNT = 256,
    SATELLITES_MAX = 64,
    /* Most bytes; a satellite's name is also a name of a storage, a user and a remote of rclone. */
    SATELLITE_NAME_MAX = 63,
    SLOTS_TEXT_MAX = 64 * 1024,
};

struct slots {
    uint32_t epoch; /* 0: there is no table */
    size_t count;   /* number of satellites */
    char names[SATELLITES_MAX][SATELLITE_NAME_MAX + 1];
    unsigned char of[SLOT_COUNT];     /* index of the satellite to which changes are written */
    unsigned char leaves[SLOT_COUNT]; /* index of the satellite that the slot leaves; equal to `of`
                                       * if the slot does not move */
};

/* Whether the text can be a satellite's name: the name of a storage in lower case, with '-'
 * allowed. */
bool satellite_name_ok(struct str name);

/* Makes the first table: slot s belongs to satellite (s * count) >> 8. ERR_INVALID: a name is not
 * valid or comes twice, or there are no names or too many. */
int slots_first(struct slots *out, const struct str *names, size_t count,
                struct err *err) MUST_CHECK;

/* These functions fill `next` with the table of the next epoch. ERR_BUSY: slots move in the present
 * table, so no other change can begin. ERR_EXISTS, ERR_NOT_FOUND: the name is, or is not, in the
 * table. ERR_INVALID: the last satellite cannot be drained.
 * - slots_add: a new satellite gets 256 / (count + 1) slots, each from the satellite that has the
 *   most at that moment.
 * - slots_drain: the slots of a satellite go to the others, each to the one that has the fewest.
 *   The satellite stays in the table, without slots, until slots_drop() removes it. */
int slots_add(struct slots *next, const struct slots *now, struct str name,
              struct err *err) MUST_CHECK;
int slots_drain(struct slots *next, const struct slots *now, struct str name,
                struct err *err) MUST_CHECK;
/* Adds satellites and splits the slots equally among all, as the first table does. Slots that
 * change their satellite move. Used only while the archive has no objects. */
int slots_split(struct slots *next, const struct slots *now, const struct str *names, size_t count,
                struct err *err) MUST_CHECK;
/* Removes a satellite that has no slots. ERR_BUSY: it has slots, or a slot is leaving it. */
int slots_drop(struct slots *next, const struct slots *now, struct str name,
               struct err *err) MUST_CHECK;
/* Ends the moves of the slots whose bool is true. Returns whether any of them was moving. */
bool slots_arrive(struct slots *next, const struct slots *now, const bool arrived[SLOT_COUNT]);

bool slots_moves(const struct slots *t, unsigned slot);
size_t slots_moving(const struct slots *t); /* how many slots move */
size_t slots_held(const struct slots *t, size_t satellite);
/* The index of a satellite, or -1. */
int slots_find(const struct slots *t, struct str name);

/* slots_write() writes the table as JSON, and slots_read() reads it. Reading is strict: if the
 * table breaks a rule, the result is ERR_CORRUPT with a text about the first fault, and `out` stays
 * unchanged. */
void slots_write(struct buf *out, const struct slots *t);
int slots_read(struct slots *out, struct str text, struct err *err) MUST_CHECK;

#endif
