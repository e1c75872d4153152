/* Website configurations: the document, and what a GET of a website's path reads or redirects to.
 * Strings live in the arena. */
#ifndef S3_DOCUMENTS_WEBSITE_H
#define S3_DOCUMENTS_WEBSITE_H

#include "base/arena.h"
#include "base/buf.h"
#include "meta/error.h"

enum { WEBSITE_MAX_RULES = 50 };

/* Strings that are empty and numbers that are 0 were not given. */
struct website_redirect {
    struct str protocol; /* "http", "https" */
    struct str host;
    struct str replace_prefix; /* of the part that the condition's prefix matched */
    struct str replace_key;    /* the whole key */
    bool has_replace_prefix;   /* may be empty: the prefix is cut off */
    int status;                /* 3xx; 0: 301 */
};

struct website_rule {
    struct str key_prefix; /* the condition's; empty: every key */
    int on_status;         /* the condition's HttpErrorCodeReturnedEquals; 0: before reading */
    struct website_redirect redirect;
};

struct website {
    struct website_redirect redirect_all; /* host empty: none */
    struct str index;                     /* the suffix, "index.html" */
    struct str error;                     /* the key of the error page; empty: none */
    struct website_rule *rules;
    size_t rule_count;
};

/* MalformedXML, InvalidArgument, InvalidRequest. */
int website_read(struct website *out, struct arena *a, struct str xml, struct err *err) MUST_CHECK;
void website_write(struct buf *out, const struct website *site);

/* The key that a path of the site reads: with the index suffix when it is empty or ends in '/'. */
struct str website_key(const struct website *site, struct arena *a, struct str key);

/* The rule that applies to a key before it is read (status 0) or after it was answered with
 * `status`; NULL when none does. */
const struct website_rule *website_rule(const struct website *site, struct str key, int status);

/* Where a redirect leads: protocol and host are those of the request unless it names others. */
void website_location(struct buf *out, const struct website_redirect *redirect, struct str prefix,
                      struct str key, struct str protocol, struct str host);

#endif
