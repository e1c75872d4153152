/* Website configurations: reads and writes the document, and finds the object or the redirect with
 * which a GET of a website's path is answered. Strings live in the arena. */
#ifndef S3_DOCUMENTS_WEBSITE_H
#define S3_DOCUMENTS_WEBSITE_H

#include "base/arena.h"
#include "base/buf.h"
#include "meta/error.h"

enum { WEBSITE_MAX_RULES = 50 };

/* A redirect. Members that the document does not give are empty or 0. */
struct website_redirect {
    struct str protocol; /* "http" or "https" */
    struct str host;
    struct str replace_prefix; /* replaces the prefix that the rule's condition names */
    struct str replace_key;    /* replaces the whole key */
    bool has_replace_prefix;   /* replace_prefix was given; if it is empty, the prefix is removed */
    int status;                /* 3xx; 0 means 301 */
};

struct website_rule {
    struct str key_prefix; /* the rule applies to keys with this prefix; empty: to every key */
    /* HttpErrorCodeReturnedEquals: the rule applies after reading the key gave this status; 0: the
     * rule applies before the key is read. */
    int on_status;
    struct website_redirect redirect;
};

struct website {
    struct website_redirect redirect_all; /* redirects every request, unless its host is empty */
    struct str index;                     /* the suffix of index pages, such as "index.html" */
    struct str error;                     /* the key of the error page; empty: none */
    struct website_rule *rules;
    size_t rule_count;
};

/* Reads the document. MalformedXML, InvalidArgument or InvalidRequest: S3 would refuse it. */
int website_read(struct website *out, struct arena *a, struct str xml, struct err *err) MUST_CHECK;
void website_write(struct buf *out, const struct website *site);

/* Returns the key to read for a path of the site: the index suffix is added when the path is empty
 * or ends in '/'. */
struct str website_key(const struct website *site, struct arena *a, struct str key);

/* Returns the rule that applies to a key before it is read (status 0) or after the read was
 * answered with `status`; NULL when there is none. */
const struct website_rule *website_rule(const struct website *site, struct str key, int status);

/* Writes the URL that a redirect leads to. `prefix` is the prefix of the rule's condition, `key`
 * the key that was asked for. `protocol` and `host` are the request's; the redirect may name
 * another protocol and another host. */
void website_location(struct buf *out, const struct website_redirect *redirect, struct str prefix,
                      struct str key, struct str protocol, struct str host);

#endif
