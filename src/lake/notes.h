/* Statistics about the lake's own operations, for the diagnosis: how many operations there were,
 * and how long they took. A *note* describes one operation that was slow or failed; the last
 * LAKE_NOTES_KEPT notes are kept. Everything is in memory only. Any thread may call these
 * functions.
 *
 *     uint64_t begun_ns = clock_mono_ns();
 *     code = …;
 *     lake_notes_add(l->notes, LAKE_NOTE_WRITE, partition, begun_ns, code, err); */
#ifndef LAKE_NOTES_H
#define LAKE_NOTES_H

#include "base/arena.h"
#include "base/err.h"

enum lake_note_kind {
    LAKE_NOTE_WRITE,      /* an atomic write of the key-value store */
    LAKE_NOTE_NODE_READ,  /* reading a node file from its storage */
    LAKE_NOTE_NODE_WRITE, /* writing a node file to its storage */
    LAKE_NOTE_COMMIT,     /* a whole commit */
    LAKE_NOTE_KINDS
};
extern const char *const lake_note_names[LAKE_NOTE_KINDS];

enum {
    LAKE_NOTES_KEPT = 64,     /* number of slow and failed operations that are remembered */
    LAKE_NOTES_SLOW_MS = 500, /* an operation that takes longer is slow */
    LAKE_NOTE_TEXT = 160,
};

struct lake_notes;

struct lake_notes *lake_notes_new(void);
void lake_notes_free(struct lake_notes *n); /* NULL is fine */

/* Counts an operation that began at `begun_ns` and has ended with this code. Adds a note if it was
 * slow or failed. Expected errors (base/err.h) do not count as failures. `what` names the object of
 * the operation, such as a partition. */
void lake_notes_add(struct lake_notes *n, enum lake_note_kind kind, struct str what,
                    uint64_t begun_ns, int code, const struct err *err);

struct lake_note_count {
    uint64_t count, failed, total_ns, slowest_ns;
};
struct lake_note {
    enum lake_note_kind kind;
    int64_t ended_ms; /* in ms since 1970 */
    uint64_t took_ns;
    int code; /* 0: the operation succeeded, but was slow */
    char what[LAKE_NOTE_TEXT], error[LAKE_NOTE_TEXT];
};
void lake_notes_count(struct lake_notes *n, struct lake_note_count out[LAKE_NOTE_KINDS]);
/* Copies the notes to the arena, the oldest first, and returns their number. */
size_t lake_notes_list(struct lake_notes *n, struct arena *a, struct lake_note **out);

#endif
