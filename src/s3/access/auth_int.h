/* Functions that the files of auth share. */
#ifndef S3_ACCESS_AUTH_INT_H
#define S3_ACCESS_AUTH_INT_H

#include "s3/access/auth.h"
#include "meta/error.h"

/* The first header so named, or NULL p. */
struct str auth_header_of(const struct auth_request *r, const char *name);
/* The first parameter so named, still encoded; false when there is none. */
bool auth_parameter(const struct auth_request *r, const char *name, struct str *value);

/* A parameter's value, decoded, in the arena. InvalidURI. */
int auth_decode(struct str *out, struct arena *a, struct str value, struct err *err);

/* The payload by the header alone, which no signature covers: it still says how the body is framed,
 * and a hash still has to be right. `out->kind` is set. */
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
