/* `.error` objects in a satellite: why the last sync of a repository, or of an account, failed. */
#ifndef ARCHIVE_ERROR_OBJECT_H
#define ARCHIVE_ERROR_OBJECT_H

#include "archive/outcome.h"
#include "archive/shelf.h"

/* Puts the `.error` object. If the stored object has the same code, the number of attempts is
 * counted on from there: this function sets e->attempts and e->first_seen_ms. */
int error_object_put(struct shelf *s, struct arena *a, struct str key, struct archive_error *e,
                     struct err *err) MUST_CHECK;
/* Reads the object; strings are in the arena. ERR_NOT_FOUND: there is no object. ERR_PARSE: it does
 * not have the form of an `.error` object. */
int error_object_read(struct shelf *s, struct arena *a, struct str key, struct archive_error *out,
                      struct err *err) MUST_CHECK;

#endif
