/* Helpers for commands that manage a running weir. A command is one call to the API (struct
 * manage_call), whose answer is shown as a table, or as JSON with --json. A command that needs
 * several calls has a function `run`, which makes the calls with the functions below. */
#ifndef COMMAND_MANAGE_H
#define COMMAND_MANAGE_H

#include "command/output.h"
#include "command/client.h"

/* Advice that is added to an error whose text contains `words`. */
struct manage_hint {
    const char *words, *advice;
};

/* A call to the API, and the parts of its answer that are shown. */
struct manage_call {
    const char *method;
    /* Path of the call, such as "/api/v1/users/{0}/keys/{remove}". The first argument replaces {0},
     * and the value of the flag --remove replaces {remove}; both are percent-encoded. */
    const char *path;
    const struct output_column *columns;
    size_t column_count; /* 0: nothing is shown */
    /* The member of the answer that is an array of rows; NULL: the answer itself is the row. */
    const char *rows;
    bool pages;     /* the rows are a list of the API: all of its pages are shown */
    bool shows_end; /* the table is shown with --watch too, because it has the result */
    /* Rewrites a row for people: members that are objects become texts. It is not called with
     * --json. The function pointer may be NULL. */
    void (*tell)(json_t *row);
    /* Writes the members of the body's JSON object. When it returns an error, the call is not made.
     * The function pointer may be NULL. */
    int (*fill)(struct json_out *w, const struct invocation *inv, struct err *err);
    /* Returns an error if the answer reports one. The answer's rows are shown all the same. The
     * function pointer may be NULL. */
    int (*judge)(const json_t *answer, struct err *err);
    /* The function of a command that makes several calls. Of the other members, only the columns
     * and shows_end are used then. */
    int (*run)(struct api_client *r, const struct invocation *inv, struct output *table,
               struct err *err);
    /* The array ends with an empty hint. The first hint that fits is shown. */
    const struct manage_hint *hints;
};

/* Sets `columns` and `column_count` in the initializer of a call. */
#define MANAGE_COLUMNS(list) .columns = (list), .column_count = ARRAY_SIZE(list)

/* Runs a command: loads the configuration, makes the call, and prints the answer as a table, or as
 * JSON with --json. Returns the exit status, which is EXIT_USAGE for ERR_INVALID before the first
 * request. With --watch no table is printed, because the progress was shown already, unless the
 * call has shows_end. */
int manage(struct invocation *inv, const struct manage_call *call);

/* Makes one of the several calls of a command, and adds the rows of the answer to the table. */
int manage_ask(struct api_client *r, const struct invocation *inv, const struct manage_call *call,
               struct output *table, struct err *err);

/* Makes the call and sets *out to its answer, which the caller owns. `out` may be NULL. */
int manage_send(struct api_client *r, const struct invocation *inv, const struct manage_call *call,
                json_t **out, struct err *err);

/* A list of the API, which is read page by page. */
struct manage_list {
    const char *path; /* such as "/api/v1/buckets?storage=local" */
    const char *name; /* the member of the answer with the items, such as "buckets" */
    /* Where to begin: a value of `next` that the API has returned; NULL: at the first item. */
    const char *after;
    size_t max; /* the most items to read; 0: all */
    bool more;  /* set by manage_pages(): there are items beyond `max` */
};
/* Reads all pages and sets *out to a JSON array of the items, which the caller owns. */
int manage_pages(struct api_client *r, struct manage_list *list, json_t **out,
                 struct err *err) MUST_CHECK;

/* Appends the query parameter "?name=value" or "&name=value", encoded, unless the value is NULL or
 * empty. */
void manage_query(struct buf *path, const char *name, const char *value);

/* Prints the JSON as one line on stdout. */
void manage_print_json(const json_t *json);

/* Sleeps between two polls of a command that shows progress. */
void manage_poll_wait(void);

/* Returns the texts `before`, `part` and `after` joined, such as "/api/v1/users/<part>/keys". The
 * part is percent-encoded. The path is in the client's arena. */
const char *manage_path(struct api_client *r, const char *before, const char *part,
                        const char *after);

/* Adds a row to the table, made of the members of `object` that the columns name. Strings are
 * unchanged, true and false become yes and no, the strings of an array are joined with commas, and
 * objects and arrays of objects become JSON. */
void manage_row(struct output *table, const json_t *object);

/* Appends the time between now and a moment `seconds` from now, such as "in 2m 5s" for 125 seconds
 * or "3h 20m ago" for -12000. */
void manage_span(struct buf *out, int64_t seconds);

/* Writes the member `name` with the flag's value when the flag was given. */
void manage_flag(struct json_out *w, const struct invocation *inv, const char *flag,
                 const char *name);

#endif
