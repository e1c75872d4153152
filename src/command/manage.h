/* The kit of commands that manage a running weir: a command is one call to the API (struct
 * manage_call), whose answer is shown as a table, or as JSON with --json. A command that needs
 * several calls has a function `run`, which makes them with the functions below. */
#ifndef COMMAND_MANAGE_H
#define COMMAND_MANAGE_H

#include "command/output.h"
#include "command/client.h"

/* A call to the API, and the parts of its answer that are shown. */
struct manage_call {
    const char *method;
    /* "/api/v1/users/{0}/keys/{remove}": {0} is the first argument, {remove} the flag's value, both
     * encoded. */
    const char *path;
    const struct output_column *columns;
    size_t column_count; /* 0: nothing is shown */
    const char *rows; /* the answer's member with an array of rows; NULL: the answer is the row */
    bool pages;       /* the rows are a list of the API: all of its pages are shown */
    /* Writes the members of the body; an error prevents the call. May be NULL. */
    int (*fill)(struct json_out *w, const struct invocation *inv, struct err *err);
    /* Returns an error if the answer reports one; the answer's rows are shown all the same. May be
     * NULL. */
    int (*judge)(const json_t *answer, struct err *err);
    /* For a command that makes several calls: replaces all members except the columns. */
    int (*run)(struct api_client *r, const struct invocation *inv, struct output *table,
               struct err *err);
};

/* Sets the columns in the initializer of a call. */
#define MANAGE_COLUMNS(list) .columns = (list), .column_count = ARRAY_SIZE(list)

/* Loads the configuration, connects, makes the call, prints the table (or JSON with --json) and
 * returns the exit status. With --watch no table is printed, because progress was shown already. */
int manage(struct invocation *inv, const struct manage_call *call);

/* Makes one of a command's several calls and adds its rows to the table. */
int manage_ask(struct api_client *r, const struct invocation *inv, const struct manage_call *call,
               struct output *table, struct err *err);

/* Makes the call; *out is its answer, owned by the caller. `out` may be NULL. */
int manage_send(struct api_client *r, const struct invocation *inv, const struct manage_call *call,
                json_t **out, struct err *err);

/* A list of the API, which is read page by page. */
struct manage_list {
    const char *path; /* "/api/v1/buckets?storage=local" */
    const char *name; /* the answer's member with the items: "buckets" */
    /* Where to begin: a `next` that the API returned; NULL: at the first item. */
    const char *after;
    size_t max; /* the most items to read; 0: all */
    bool more;  /* set by manage_pages(): there are items beyond `max` */
};
/* Reads all pages; *out is a JSON array of the items, owned by the caller. */
int manage_pages(struct api_client *r, struct manage_list *list, json_t **out,
                 struct err *err) MUST_CHECK;

/* Appends the query parameter "?name=value" or "&name=value", encoded, unless the value is NULL or
 * empty. */
void manage_query(struct buf *path, const char *name, const char *value);

/* Prints the JSON as one line on stdout. */
void manage_print_json(const json_t *json);

/* Sleeps between two polls of a command that shows progress. */
void manage_poll_wait(void);

/* Returns the path before + part + after, such as "/api/v1/users/<part>/keys", in the client's
 * arena. The part is encoded. */
const char *manage_path(struct api_client *r, const char *before, const char *part,
                        const char *after);

/* Adds a row with the members that the columns name. Strings stay as they are, true and false
 * become yes and no, arrays of strings have commas between them, and objects are JSON. */
void manage_row(struct output *table, const json_t *object);

/* Appends how far `seconds` is from now: "in 2m 5s", "3h 20m ago". */
void manage_span(struct buf *out, int64_t seconds);

/* Writes the member "name": value when the flag was given. */
void manage_flag(struct json_out *w, const struct invocation *inv, const char *flag,
                 const char *name);

#endif
