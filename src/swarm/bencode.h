/* Bencode, BEP 3: integers, byte strings, lists and dictionaries.
 *
 * Writing builds no tree. The writer adds lengths and end marks; the caller opens and closes lists
 * and dictionaries and gives the keys of a dictionary in byte order. A key out of order is a bug
 * and ends the program.
 *
 *     struct bencode_out w;
 *     bencode_out_init(&w, &buf);
 *     bencode_open(&w, 'd');
 *     bencode_member_int(&w, "interval", 1800);
 *     bencode_member_str(&w, "peers", peers);
 *     bencode_close(&w);
 *
 * Reading is strict: each value has exactly one accepted form. Integers and lengths have no leading
 * zeros, "-0" is refused, keys are sorted without duplicates, and nesting ends at
 * BENCODE_MAX_DEPTH. So equal values have equal bytes and equal hashes.
 * Nothing is allocated: values borrow from the text. */
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
        bool value;         /* a key was written, and its value was not */
        size_t key_at, len; /* where the last key is in `out`, to compare the next key with it */
        bool keys;          /* a key was written into the dictionary */
    } levels[BENCODE_MAX_DEPTH];
};

/* Prepares a writer that appends to `out`. `out` is borrowed; check its sticky error after the last
 * call. Nothing may be cut off `out` before the last close. */
void bencode_out_init(struct bencode_out *w, struct buf *out);
void bencode_open(struct bencode_out *w, char kind); /* opens a dictionary ('d') or a list ('l') */
void bencode_close(struct bencode_out *w);
void bencode_key(struct bencode_out *w, struct str key);
void bencode_int(struct bencode_out *w, int64_t v);
void bencode_str(struct bencode_out *w, struct str s);
void bencode_raw(struct bencode_out *w,
                 struct str value); /* writes a value that is bencoded already */

/* Begins a string of `len` bytes. The caller must then append the bytes to `out` itself. */
void bencode_str_head(struct bencode_out *w, size_t len);

/* Write a key and its value. */
void bencode_member_int(struct bencode_out *w, const char *key, int64_t v);
void bencode_member_str(struct bencode_out *w, const char *key, struct str s);

enum bencode_kind { BENCODE_INT, BENCODE_STR, BENCODE_LIST, BENCODE_DICT };

struct bencode {
    enum bencode_kind kind;
    /* The whole value as it stands in the text. An info hash is computed from these bytes. */
    struct str bytes;
    struct str str;    /* BENCODE_STR: the string */
    int64_t num;       /* BENCODE_INT: the number */
    struct str inside; /* BENCODE_LIST and BENCODE_DICT: the text for bencode_next() */
};

/* Reads the value at the front of *rest, which advances behind the value on success only.
 * ERR_PARSE: the bytes are not bencode; err names the place. */
int bencode_read(struct bencode *out, struct str *rest, struct err *err) MUST_CHECK;

/* Like bencode_read(), but nothing may follow the value in `text`. */
int bencode_read_all(struct bencode *out, struct str text, struct err *err) MUST_CHECK;

/* Gives the next item of a list (with an empty key) or of a dictionary. *inside begins as a copy of
 * of->inside and advances. False: there are no more items. */
bool bencode_next(const struct bencode *of, struct str *inside, struct str *key,
                  struct bencode *out);

/* Finds a member of a dictionary by its key. ERR_NOT_FOUND: there is no such key. ERR_TYPE: the
 * member is of another kind, or `of` is not a dictionary. */
int bencode_find(const struct bencode *of, struct bencode *out, struct str key,
                 enum bencode_kind kind) MUST_CHECK;

#endif
