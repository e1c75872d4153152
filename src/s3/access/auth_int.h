/* Functions that auth.c, auth_v2.c and auth_v4.c share. */
#ifndef S3_ACCESS_AUTH_INT_H
#define S3_ACCESS_AUTH_INT_H

#include "s3/access/auth.h"
#include "meta/error.h"

/* Returns the value of the first header with this name; its p is NULL when there is none. */
static inline struct str auth_header_of(const struct auth_request *r, const char *name)
{
    return http_header_among(r->headers, r->header_count, name);
}

/* Finds the first query parameter with this name. *value is still percent-encoded. Returns false
 * when there is none. */
bool auth_parameter(const struct auth_request *r, const char *name, struct str *value);

/* Decodes a parameter's value into the arena. InvalidURI: an escape is malformed. */
int auth_decode(struct str *out, struct arena *a, struct str value, struct err *err);

/* Sets the payload of `out` from x-amz-content-sha256 when no signature covers that header. The
 * header still says how the body is framed, and a hash in it must still be right. The caller sets
 * `out->kind` first. */
int auth_unsigned_payload(struct identity *out, const struct auth_request *r, struct err *err);

int auth_v4_header(struct identity *out, const struct auth_request *r, const struct auth_options *o,
                   struct str rest, struct err *err);
int auth_v4_query(struct identity *out, struct arena *a, const struct auth_request *r,
                  const struct auth_options *o, struct err *err);
int auth_v2_header(struct identity *out, const struct auth_request *r, const struct auth_options *o,
                   struct str rest, struct err *err);
int auth_v2_query(struct identity *out, struct arena *a, const struct auth_request *r,
                  const struct auth_options *o, struct err *err);

#endif
