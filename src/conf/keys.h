/* The table of configuration keys: everything about a key is in its row, and loading, checking,
 * `weir config`, flags, completion, the man page, the sample file and docs/config.md read it. */
#ifndef CONF_KEYS_H
#define CONF_KEYS_H

#include "base/buf.h"

enum conf_type {
    CONF_STRING,
    CONF_PATH,
    CONF_ADDRESS,  /* as sock_addr_parse(), or "off" */
    CONF_URL,      /* one of the schemes in `choices` */
    CONF_DATABASE, /* an integer, or a url as above */
    CONF_ENUM,     /* an int: the index in `choices` */
    CONF_BOOL,
    CONF_INTEGER,
    CONF_SIZE,     /* bytes */
    CONF_DURATION, /* milliseconds */
    CONF_TYPE_COUNT
};

enum conf_key_flags {
    CONF_SECRET = 1,     /* never shown, never taken from a flag (ps shows those) */
    CONF_RELOADABLE = 2, /* taken over on SIGHUP */
    CONF_OPTIONAL = 4,   /* may be empty */
};

struct conf_key {
    const char *name; /* "s3.listen" */
    enum conf_type type;
    const char *fallback; /* the built-in default, as text */
    uint64_t min, max;    /* numbers: bounds; strings: length in characters (max 0: 4096) */
    const char *unit;     /* what a number counts; NULL: nothing to say */
    const char *const *choices;
    unsigned flags;
    const char *doc; /* one line, a full sentence */
    size_t offset;   /* of the field in struct conf */
};

extern const struct conf_key conf_keys[];
extern const size_t conf_key_count;

/* NULL when there is none. */
const struct conf_key *conf_key_find(struct str name);

/* "WEIR_S3_LISTEN" for s3.listen, appended. */
void conf_key_env(const struct conf_key *key, struct buf *out);

/* "a duration such as 30s, from 1s to 1h": what may be written, appended. */
void conf_key_allowed(const struct conf_key *key, struct buf *out);

#endif
