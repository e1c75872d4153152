/* Functions that the commands of the lake share. The commands call the REST API of a running weir
 * (lake/rest/).
 *
 * A place in the lake is written lake://REPO/REF/PATH. Commands that accept only such places also
 * accept them without "lake://". */
#ifndef LAKE_COMMANDS_CLI_H
#define LAKE_COMMANDS_CLI_H

#include "command/manage.h"

struct lake_uri {
    struct str repo, ref, path; /* each may be empty; they point into the text */
};

/* Which parts a command takes. LAKE_URI_REPO: a repository alone. LAKE_URI_REF: a ref without a
 * path. LAKE_URI_FOLDER: a ref, and perhaps a path. LAKE_URI_PATH: a ref and a path. */
enum lake_uri_need { LAKE_URI_REPO, LAKE_URI_REF, LAKE_URI_FOLDER, LAKE_URI_PATH };

/* Whether the text begins with lake://. */
bool lake_uri_is(const char *text);
/* Reads a place. ERR_INVALID: a part that is needed is missing, or the place has a part that the
 * command does not take. Such a part is not ignored, because a user who writes lake://REPO/REF/PATH
 * means the path and not the whole branch. */
int lake_uri_parse(struct lake_uri *out, const char *text, enum lake_uri_need need,
                   struct err *err) MUST_CHECK;
/* Reads a further ref of a command: a ref such as main~2, or a place lake://REPO/REF. ERR_INVALID:
 * it is in another repository than `first`. */
int lake_uri_parse_ref(struct str *out, const struct lake_uri *first, const char *text,
                       struct err *err) MUST_CHECK;

/* Turns the place into that of a folder: adds '/' to a path that is not empty and does not end with
 * '/'. Without the slash the prefix `a` would also match the path `ab`. */
void lake_uri_to_folder(struct api_client *r, struct lake_uri *u);

/* Returns "/api/v1/repositories/" and the pattern, with {repo}, {ref} and {path} replaced by the
 * encoded parts of the place. The result is in the client's arena. */
const char *lake_cli_path(struct api_client *r, const struct lake_uri *u, const char *pattern);

/* A JSON body under construction. */
struct lake_cli_body {
    struct buf text;
    struct json_out w;
};
void lake_cli_body_begin(struct lake_cli_body *b);
/* Ends the JSON object of the body and makes the call. The caller owns *answer; `answer` may be
 * NULL. */
int lake_cli_send(struct api_client *r, const char *method, const char *path,
                  struct lake_cli_body *b, json_t **answer, struct err *err) MUST_CHECK;
/* Writes the member `name` as true if the switch `flag` was given. */
void lake_cli_switch(struct json_out *w, const struct invocation *inv, const char *flag,
                     const char *name);
/* Writes the member `name` with the pairs of all flags --meta KEY=VALUE. */
int lake_cli_metadata(struct json_out *w, const struct invocation *inv, const char *name,
                      struct err *err) MUST_CHECK;

/* Prints why the last try of an import, a dump or a restore failed, if its status says so. `told`
 * has the error that was printed last, so that each error is printed once; the caller releases it.
 */
void lake_cli_tell_error(struct buf *told, const json_t *status);

/* Makes a call without a body, and adds a row for the answer to `table`. `table` NULL: the answer
 * is not shown. */
int lake_cli_one(struct api_client *r, const char *method, const char *path, struct output *table,
                 struct err *err) MUST_CHECK;
/* Adds a row for the object. Members `creation_date` and `mtime`, in seconds since 1970, are shown
 * as times in the columns `created` and `modified`. */
void lake_cli_row(struct output *table, json_t *object);
/* Reads all pages of a list and adds a row for each item. `max` 0: all items. */
int lake_cli_rows(struct api_client *r, const char *path, size_t max, struct output *table,
                  struct err *err) MUST_CHECK;
/* Reads the flag --max into *out; 0: the flag was not given. */
int lake_cli_max(const struct invocation *inv, size_t *out, struct err *err) MUST_CHECK;

/* Hints for errors that all commands of the lake may meet. */
extern const struct manage_hint lake_cli_hints[];

extern const struct command lake_repo_commands[], lake_branch_commands[], lake_tag_commands[],
    lake_commit_commands[], lake_merge_commands[], lake_object_commands[], lake_copy_commands[],
    lake_gc_commands[], lake_import_commands[], lake_refs_commands[], lake_migrate_commands[],
    lake_diagnose_commands[];

#endif
