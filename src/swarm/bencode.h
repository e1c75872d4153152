/* Bencode, BEP 3: integers, byte strings, lists and dictionaries.
 *
 * Writing: no tree. The writer puts lengths and ends; the caller opens, closes and gives the keys
 * of a dictionary in the order of their bytes (an unsorted key is a bug in weir, and is one
 * loudly).
 *
 *     struct bencode_out w;
 *     bencode_out_init(&w, &buf);
 *     bencode_open(&w, 'd');
 *     bencode_member_int(&w, "interval", 1800);
 *     bencode_member_str(&w, "peers", peers);
 *     bencode_close(&w);
 *
 * Reading: strict. A value that reads has one form only: integers and lengths without leading
 * zeros, no "-0", keys sorted and each there once, at most BENCODE_MAX_DEPTH deep. So bytes that
 * were read can be hashed, and the same value never has two hashes. Nothing is allocated; what is
 * read is borrowed from the text. */
#ifndef SWARM_BENCODE_H
#define SWARM_BENCODE_H

#include "base/buf.h"
#include "base/err.h"

enum { BENCODE_MAX_DEPTH = 32 };

struct bencode_out {
    struct buf *out;
    size_t depth;
    struct bencode_level {
        bool dictionary;
        bool value;         /* a key was written, its value was not */
        size_t key_at, len; /* the last key's place in `out`, to compare the next one with */
        bool keys;          /* there was one */
    } levels[BENCODE_MAX_DEPTH];
};

/* `out` is borrowed, may hold bytes already, and has the sticky error. Nobody may shorten it before
 * the last close. */
void bencode_out_init(struct bencode_out *w, struct buf *out);
void bencode_open(struct bencode_out *w, char kind); /* 'd' or 'l' */
void bencode_close(struct bencode_out *w);
void bencode_key(struct bencode_out *w, struct str key);
void bencode_int(struct bencode_out *w, int64_t v);
void bencode_str(struct bencode_out *w, struct str s);
void bencode_raw(struct bencode_out *w, struct str value); /* one value, as it is written */

/* A string of `len` bytes that the caller appends to `out` himself, at once. */
void bencode_str_head(struct bencode_out *w, size_t len);

/* key and value in one call */
void bencode_member_int(struct bencode_out *w, const char *key, int64_t v);
void bencode_member_str(struct bencode_out *w, const char *key, struct str s);

enum bencode_kind { BENCODE_INT, BENCODE_STR, BENCODE_LIST, BENCODE_DICT };

struct bencode {
    enum bencode_kind kind;
    struct str bytes;  /* the whole value, exactly as it was written: what an info hash is over */
    struct str str;    /* BENCODE_STR: its bytes */
    int64_t num;       /* BENCODE_INT */
    struct str inside; /* BENCODE_LIST and BENCODE_DICT: what bencode_next() takes from */
};

/* The value at the front of *rest, which advances past it on success only. ERR_PARSE, with the
 * place in the text. */
int bencode_read(struct bencode *out, struct str *rest, struct err *err) MUST_CHECK;

/* As bencode_read(), and nothing may follow. */
int bencode_read_all(struct bencode *out, struct str text, struct err *err) MUST_CHECK;

/* The next of a list (key is empty) or of a dictionary; *inside is a copy of value->inside, and
 * advances. False at the end. */
bool bencode_next(const struct bencode *of, struct str *inside, struct str *key,
                  struct bencode *out);

/* A member of a dictionary by name and kind: ERR_NOT_FOUND, or ERR_TYPE when it is of another kind
 * (or `of` is no dictionary). */
int bencode_find(const struct bencode *of, struct bencode *out, struct str key,
                 enum bencode_kind kind) MUST_CHECK;

#endif
