/* The table of configuration keys. Everything about a key is in its row. Loading, checking, `weir
 * config`, flags, completion, the man page, the sample file and docs/config.md read the table. */
#ifndef CONF_KEYS_H
#define CONF_KEYS_H

#include "base/buf.h"

enum conf_type {
    CONF_STRING,
    CONF_PATH,
    CONF_ADDRESS,  /* an address for sock_addr_parse(), or "off" */
    CONF_URL,      /* a URL with one of the schemes in `choices` */
    CONF_DATABASE, /* an integer, or a URL as for CONF_URL */
    CONF_ENUM,     /* stored as an int, the index in `choices` */
    CONF_BOOL,
    CONF_INTEGER,
    CONF_SIZE,     /* in bytes */
    CONF_DURATION, /* in milliseconds */
    CONF_TYPE_COUNT
};

enum conf_key_flags {
    CONF_SECRET = 1,     /* never shown, and not accepted as a flag, because ps shows flags */
    CONF_RELOADABLE = 2, /* a new value applies on SIGHUP */
    CONF_OPTIONAL = 4,   /* may be empty */
};

struct conf_key {
    const char *name; /* dotted, such as "s3.listen" */
    enum conf_type type;
    const char *fallback; /* the built-in default, as text */
    /* Bounds of a number, or of a string's length in characters. For a string, max 0 means 4096. */
    uint64_t min, max;
    const char *unit; /* the noun for what a number counts, such as "buckets"; NULL: none */
    const char *const *choices;
    unsigned flags;
    const char *doc; /* one line, a full sentence, shown to users */
    size_t offset;   /* offset of the field in struct conf */
};

extern const struct conf_key conf_keys[];
extern const size_t conf_key_count;

/* Finds a key by its dotted name; NULL when there is none. */
const struct conf_key *conf_key_find(struct str name);

/* Appends the name of the key's environment variable: "WEIR_S3_LISTEN" for s3.listen. */
void conf_key_env(const struct conf_key *key, struct buf *out);

/* Appends which values are allowed: "a duration such as 500ms, 30s or 5m, from 1s to
 * 1h". */
void conf_key_allowed(const struct conf_key *key, struct buf *out);

#endif
