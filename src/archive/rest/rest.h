/* Shared by the files of the archive's routes. */
#ifndef ARCHIVE_REST_REST_H
#define ARCHIVE_REST_REST_H

#include "archive/forge.h"
#include "archive/names.h"
#include "archive/outcome.h"
#include "archive/record.h"
#include "archive/room.h"
#include "archive/shelf.h"

/* The state of the archive, for a call of one of the room's routes. */
struct archive *rest_archive(const struct rest_call *c);

/* Reads the account from the path, such as `github.com/octocat`. */
int rest_account(const struct rest_call *c, struct archive_account *out,
                 struct err *err) MUST_CHECK;

/* Reads the first line of the account's record. ERR_NOT_FOUND: the account was never synced in
 * full. */
int rest_record_head(struct rest_call *c, struct shelf *s, const struct archive_account *a,
                     struct record_account *out, struct err *err) MUST_CHECK;

/* The description of the query parameter `all` of lists of bundles and repositories. */
#define ARCHIVE_ALL_DOC                                                                            \
    "List copies too: damaged bundles (NAME@damaged-TIME), and those of which a satellite had "    \
    "another one (NAME@moved-TIME)."

/* Reads the list of options `wants` from the body. *given is false if the request has none. */
int rest_read_wants(struct rest_call *c, struct forge_wants *out, bool *given,
                    struct err *err) MUST_CHECK;
/* Writes options as the member "wants", a list of words. */
void rest_write_wants(struct json_out *w, const struct forge_wants *wants);
/* Writes the options of an account as "wants", and whether they are its own as "own_wants". */
int rest_account_wants(struct rest_call *c, struct shelf *s, const struct archive_account *a,
                       struct err *err) MUST_CHECK;

/* The fields of an `.error` object in answers, and a function that writes them as the member
 * "error". The member is null if there is no such object. */
extern const struct rest_field archive_error_fields[];
int rest_error_member(struct rest_call *c, struct shelf *s, struct str key,
                      struct err *err) MUST_CHECK;

#endif
