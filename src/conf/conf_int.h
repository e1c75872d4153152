/* Declarations that the files of conf/ share. */
#ifndef CONF_CONF_INT_H
#define CONF_CONF_INT_H

#include "conf/conf.h"
#include "conf/keys.h"

enum conf_layer { CONF_DEFAULT, CONF_FILE, CONF_ENVIRONMENT, CONF_FLAG };

struct conf_origin {
    enum conf_layer layer;
    size_t line;      /* line in the file */
    const char *text; /* the value as the user wrote it */
};

/* The problems found so far, one line each, at most CONF_MAX_PROBLEMS. */
struct conf_problems {
    struct buf *lines; /* borrowed */
    size_t count;
};

void conf_problem(struct conf_problems *p, const char *fmt, ...) PRINTF_LIKE(2, 3);
bool conf_problems_full(const struct conf_problems *p);

/* Checks `text` and sets the key's field. The text of ERR_INVALID says what is wrong and what is
 * allowed, without naming the key; it does not repeat the value of a secret. */
int conf_value_set(struct conf *c, const struct conf_key *key, struct str text,
                   struct err *err) MUST_CHECK;

/* Appends the value as it may be shown: secrets, and passwords in URLs, are masked. */
void conf_value_mask(const struct conf_key *key, struct str text, struct buf *out);

/* A function that conf_yaml_walk() calls for each value in the file. `name` is the full dotted
 * name. */
typedef void conf_yaml_fn(void *ctx, size_t line, struct str name, struct str value);

/* Reads a YAML document of nested maps and calls `fn` for each value. Anything else in the document
 * (lists, anchors, tags, a second document, a group given twice, too many levels) is a problem,
 * which is reported to `p` with file and line. */
void conf_yaml_walk(const char *file, struct str text, struct conf_problems *p, conf_yaml_fn *fn,
                    void *ctx);

/* Appends the text in single quotes, with control characters as \xNN, cut at 80 characters. */
void conf_quote(struct buf *out, struct str text);

#endif
