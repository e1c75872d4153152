/* Which satellite holds which accounts.
 *
 * The first byte of an account's hash is its *slot*. A table gives each of the 256 slots to one
 * satellite. The first table splits the slots equally. Each change of the table has a number, its
 * *epoch*, and is an object `_map/<epoch>.json` on every satellite (docs/archive.md, S1 to S4).
 * While a slot moves, the table names the satellite that it leaves. */
#ifndef ARCHIVE_SLOTS_H
#define ARCHIVE_SLOTS_H

#include "base/buf.h"
#include "base/err.h"

enum {
    SLOT_COUNT = 256,
    SATELLITES_MAX = 64,
    SATELLITE_NAME_MAX = 63, /* bytes: a satellite is a storage, a user and a name in rclone */
    SLOTS_TEXT_MAX = 64 * 1024,
};

struct slots {
    uint32_t epoch; /* 0: there is no table */
    size_t count;   /* of satellites */
    char names[SATELLITES_MAX][SATELLITE_NAME_MAX + 1];
    unsigned char of[SLOT_COUNT];     /* index of the satellite that is written to */
    unsigned char leaves[SLOT_COUNT]; /* index of the satellite that the slot leaves; the same as in
                                         `of`: the slot does not move */
};

/* Whether the name can be that of a satellite: a name of a storage in lower case, with '-'. */
bool satellite_name_ok(struct str name);

/* Makes the first table: slot s belongs to satellite (s * count) >> 8. ERR_INVALID: a name is wrong
 * or stands twice, or there are no names or too many. */
int slots_first(struct slots *out, const struct str *names, size_t count,
                struct err *err) MUST_CHECK;

/* These fill `next` with the table of the next epoch. ERR_BUSY: slots move in the present table, so
 * no other change can begin. slots_add: a newcomer takes 256 / (count + 1) slots, each from the
 * satellite that has the most. slots_drain: the slots of a satellite go to the others, each to the
 * one that has the fewest. The satellite stays in the table, without slots, until slots_drop()
 * removes it. ERR_EXISTS, ERR_NOT_FOUND: the name is, or is not, in the table. ERR_INVALID: the
 * last satellite cannot be drained. */
int slots_add(struct slots *next, const struct slots *now, struct str name,
              struct err *err) MUST_CHECK;
int slots_drain(struct slots *next, const struct slots *now, struct str name,
                struct err *err) MUST_CHECK;
/* Adds satellites and splits the slots equally among all, as the first table does. Slots that go to
 * another satellite move. For an archive that has no objects yet. */
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

/* Write the table as JSON, and read it. Reading is strict: the text of ERR_CORRUPT names the first
 * fault, and `out` stays unchanged. */
void slots_write(struct buf *out, const struct slots *t);
int slots_read(struct slots *out, struct str text, struct err *err) MUST_CHECK;

#endif
