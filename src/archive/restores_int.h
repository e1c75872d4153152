/* Declarations that the files about restores share. */
#ifndef ARCHIVE_RESTORES_INT_H
#define ARCHIVE_RESTORES_INT_H

#include "archive/restores.h"

/* The id of a wish, in the arena. */
struct str restore_id(struct arena *a, const struct restore_wish *w);
/* Writes the wish as the payload of its task, with the credentials sealed. */
int restore_wish_write(struct archive *x, const struct restore_wish *w, struct str id,
                       struct buf *out, struct err *err) MUST_CHECK;
/* Reads a payload; the strings are in the arena. ERR_INVALID: it is not one, or its credentials
 * were sealed with another key file. */
int restore_wish_read(struct archive *x, struct arena *a, struct str payload,
                      struct restore_wish *out, struct err *err) MUST_CHECK;

/* Changes fields of the hash of a restore: pairs of name and value. */
int restore_note(struct archive *x, struct str id, const struct str *pairs, size_t count,
                 struct err *err) MUST_CHECK;
/* Writes the final state. The hash then expires by itself. */
int restore_note_end(struct archive *x, struct str id, enum restore_state state,
                     struct err *err) MUST_CHECK;

/* What only the task reads from the hash: the key behind which it goes on, and whether somebody
 * has canceled it. */
struct restore_resume {
    struct restore_progress at;
    struct str after;
    uint64_t bytes_done; /* bytes of the bundles up to there */
    bool canceled;
};
int restore_resume_read(struct archive *x, struct arena *a, struct str id,
                        struct restore_resume *out, struct err *err) MUST_CHECK;

#endif
