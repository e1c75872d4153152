/* The rows of the cleanup list. The list names the tokens that the cleaner is to drop, which means
 * to remove all their rows, and it names drafts (docs/lake.md, C6 and "Drafts"). For the files of
 * src/lake/ alone. */
#ifndef LAKE_CLEAN_H
#define LAKE_CLEAN_H

#include "lake/lake_int.h"

/* The state of a token on the list. */
enum cleanup_state {
    CLEANUP_DROP,    /* the token is to be dropped */
    CLEANUP_DROPPED, /* the token was dropped once, and is to be dropped again (C6) */
    CLEANUP_DRAFT,   /* the token is being filled; it is dropped if it is never finished */
};
/* A row of the list. */
struct cleanup_row {
    int64_t since_ms;
    uint64_t passes;
    bool is_draft;
};
void cleanup_row_write(struct buf *out, const struct cleanup_row *row);
/* ERR_PARSE: the row is damaged. */
int cleanup_row_read(struct cleanup_row *out, struct str record, struct err *err) MUST_CHECK;

/* Makes the value of a row in that state, with the present time; in the arena. */
struct str cleanup_row_new(struct arena *a, enum cleanup_state state);
/* Changes the state in the row of a token, if the row is still the one with the stamp `stamp`. */
int cleanup_row_set(struct lake *l, struct arena *a, struct str token, enum cleanup_state state,
                    struct str stamp, struct err *err) MUST_CHECK;

#endif
