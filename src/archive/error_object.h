/* `.error` objects in a satellite: why the last sync of a repository, or of an account, failed. */
#ifndef ARCHIVE_ERROR_OBJECT_H
#define ARCHIVE_ERROR_OBJECT_H

#include "archive/outcome.h"
#include "archive/shelf.h"

/* Puts the `.error` object. If there is one of the same code already, it goes on counting:
 * e->attempts and e->first_seen_ms are set here. */
int error_object_put(struct shelf *s, struct arena *a, struct str key, struct archive_error *e,
                     struct err *err) MUST_CHECK;
/* Reads it; strings are in the arena. ERR_NOT_FOUND: there is none. ERR_PARSE: it is not one. */
int error_object_read(struct shelf *s, struct arena *a, struct str key, struct archive_error *out,
                      struct err *err) MUST_CHECK;

#endif
