/* URLs that a forge sends: reads the header Link, and checks that URLs stay on their origin. An
 * *origin* is scheme, host and port. Nothing here blocks or allocates. */
#ifndef ARCHIVE_LINK_H
#define ARCHIVE_LINK_H

#include "base/buf.h"
#include "base/err.h"

/* Finds the URL with rel="next" in a value of the header Link (RFC 8288). *out is borrowed from the
 * value, and empty when there is no such URL. ERR_PARSE: the value is malformed. */
int link_next(struct str value, struct str *out) MUST_CHECK;

/* Whether two URLs have the same origin. A URL that cannot be read, or that has a user or a
 * password, has no origin. */
bool link_same_origin(struct str a, struct str b);

/* Appends the URL, with its query parameter `page` increased by 1. A URL without that parameter
 * counts as page 1. ERR_PARSE: the parameter is not a number. */
int link_page_after(struct buf *out, struct str url) MUST_CHECK;

/* Appends the URL to which a redirect from `base` with the header `location` leads. ERR_PARSE: the
 * location is neither an absolute URL nor an absolute path. */
int link_redirect(struct buf *out, struct str base, struct str location) MUST_CHECK;

#endif
