/* The answers of commands: Redis's reply types, as a tree in the caller's arena. */
#ifndef STORE_REPLY_H
#define STORE_REPLY_H

#include "base/arena.h"
#include "base/buf.h"

enum reply_type {
    REPLY_NIL,
    REPLY_STATUS,  /* `str` is a text such as "OK" */
    REPLY_ERROR,   /* `str` is a text such as "WRONGTYPE Operation against ..." */
    REPLY_INTEGER, /* the number is in `integer` */
    REPLY_BULK,    /* the bytes are in `str` */
    REPLY_ARRAY,   /* there are `count` replies in `items` */
};

struct reply {
    enum reply_type type;
    int64_t integer;
    struct str str;
    struct reply *items; /* `count` items, in the arena */
    size_t count;
};

static inline bool reply_is_nil(const struct reply *r)
{
    return r->type == REPLY_NIL;
}

/* True for an error reply whose first word is `word` ("WRONGTYPE", "NOSCRIPT", "BUSY"). */
bool reply_is_error(const struct reply *r, const char *word);

/* Appends the reply in a readable form, one line, for tests and debugging: [1, "a", nil]. */
void reply_print(struct buf *out, const struct reply *r);

#endif
