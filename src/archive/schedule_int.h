/* Declarations that archive/schedule*.c share. */
#ifndef ARCHIVE_SCHEDULE_INT_H
#define ARCHIVE_SCHEDULE_INT_H

#include "archive/schedule.h"
#include "archive/scripts.h"
#include "os/thread.h"

enum { SCHEDULE_ARENA_MAX = 16 * 1024 * 1024 };

struct schedule {
    struct schedule_options o;
    struct locks *locks;
    struct mutex lock;       /* class "schedule"; guards the table */
    struct slots table;      /* the table of the last schedule_map() */
    _Atomic(unsigned) turns; /* counts claims, so that each begins with another ready set */
    _Atomic(bool) idle;      /* the last claim found no account */
};

/* Runs a script. If the store has lost the table of slots, writes the last table to it and runs the
 * script once more. ERR_UNAVAILABLE: there is no table yet. */
int schedule_eval(struct schedule *s, struct arena *a, struct reply **out,
                  enum archive_script which, const struct store_args *args,
                  struct err *err) MUST_CHECK;
/* Like schedule_eval(), for scripts that answer one number. */
int schedule_number(struct schedule *s, enum archive_script which, const struct store_args *args,
                    int64_t *out, struct err *err) MUST_CHECK;

/* Makes the account's entry in the indexes: `<slot> <member>`. */
struct str schedule_entry_of(const struct archive_account *c, struct arena *a);
/* Reads a number of a reply: an integer, or a score or time as text. ERR_TYPE: the reply is
 * neither. */
int schedule_reply_number(const struct reply *r, double *out, struct err *err) MUST_CHECK;
/* Checks that the reply is an array of at least `least` items; otherwise returns ERR_TYPE. */
int schedule_reply_array(const struct reply *r, size_t least, struct err *err) MUST_CHECK;

#endif
