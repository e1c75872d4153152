/* The REST kit: every route of the API is one row, and everything about the route is in its row:
 * who may call it, its parameters, its body, its answer, and the function that runs. The router,
 * the authorisation, the reading and checking of values and the answer all work from the row. So
 * does whoever describes the API: docs, tests, an OpenAPI document.
 *
 * A room that has routes includes this header and brings a table of rows. A row and its function:
 *
 *     static int user_get(struct rest_call *c, struct err *err)
 *     {
 *         struct users *users = c->ctx;
 *         struct user user;
 *         int code = users_by_name(users, c->arena, rest_text(c, "name"), &user, err);
 *
 *         if (code == 0)
 *             json_out_member_str(c->w, "name", user.name);
 *         return code;
 *     }
 *
 *     {HTTP_GET, "/api/v1/users/{name}", REST_ADMIN, "One user.", user_get,
 *      .in_path = REST_FIELDS({"name", "The user's name."}),
 *      .answer = REST_FIELDS({"name", "The user's name."})},
 *
 * Values. The function asks for a value by the name that its row gives the value. The kit has
 * checked the value's type and limits by then and has answered 400 to a request that breaks them.
 * Asking for a name that the row does not describe is a bug and ends the program (rest_text() and
 * the others).
 *
 * Lists. A row with `list` answers {"<list>": [items], "next": "..."}. Every list pages by one
 * rule: the query takes `limit` (how many items) and `after` (the `next` of the page before);
 * `next` is empty on the last page. The function offers every item to rest_item(), which knows the
 * page.
 *
 * Times are strings such as "2026-01-31T03:00:00.000Z", and "" when there is none: rest_time().
 *
 * Errors are one JSON object, with the status of the row of the error's code:
 *     {"error":{"code":"not_found","message":"...","request_id":"..."}}
 *
 * A row's function runs on the thread of its request. Tables and what they point to are constant.
 */
#ifndef REST_REST_H
#define REST_REST_H

#include "base/json.h"
#include "http/server.h"

/* --- rows --- */

enum rest_type {
    REST_STRING,
    REST_INTEGER,
    REST_NUMBER, /* an integer or a fraction */
    REST_BOOLEAN,
    REST_TIME,    /* a string, as rest_time() writes it */
    REST_STRINGS, /* an array of strings */
    REST_OBJECT,
    REST_OBJECTS, /* an array of objects */
    REST_ANY,     /* any JSON value */
};

/* One value of a request or of an answer. An array of fields ends with an empty one. */
struct rest_field {
    const char *name;
    const char *doc; /* one line, a full sentence */
    enum rest_type type;
    bool required;  /* of a request: 400 without it */
    bool sometimes; /* of an answer: the member may be absent */
    bool nullable;  /* of an answer: the member may be null */
    bool secret;    /* a password, a key or a token */
    /* Limits of a request's value; both 0: none. Of a number the value itself, of a string its
     * length in bytes, of an array how many items it has. */
    int64_t min, max;
    int64_t usual;                    /* what an INTEGER is when the request does not have it */
    const char *const *choices;       /* the strings that are allowed, ended by NULL; NULL: any */
    const struct rest_field *members; /* of an OBJECT, or of each of OBJECTS; NULL: any */
};

/* For initializers in tables. */
#define REST_FIELDS(...)  ((const struct rest_field[]){__VA_ARGS__, {0}})
#define REST_CHOICES(...) ((const char *const[]){__VA_ARGS__, NULL})

enum rest_access {
    REST_NOT_SAID, /* a bug in the row */
    REST_ADMIN,    /* HTTP Basic with an administrator's keys */
    REST_ANYONE,
    REST_TOKEN, /* the row's function checks a token of the route's own */
};

struct rest_call;
/* Returns 0, and the kit sends the answer with the row's status; or an error of base/err.h, and the
 * kit sends that. ERR_AGAIN: the function must run again, on a thread that may wait. */
typedef int rest_fn(struct rest_call *c, struct err *err);

struct rest_row {
    enum http_method method; /* a GET row also takes HEAD */
    const char *path;        /* "/api/v1/users/{name}"; see rest_find() */
    enum rest_access access;
    const char *doc; /* what the call does, a sentence or some */
    rest_fn *run;
    rest_fn *needs;                   /* runs before the body is read: whether the call can be
                                         served at all; NULL: it can. Sees path and query alone */
    const struct rest_field *in_path; /* one for each "{name}" of the path */
    const struct rest_field *query;   /* without `after` and `limit` of a list */
    const struct rest_field *body;    /* members of a JSON object; NULL: the call takes no body */
    const char *raw_body;             /* instead: what the body is, which the kit does not parse */
    size_t raw_max;                   /* bytes of such a body at most */
    const struct rest_field *answer;  /* members of the JSON object; beside the list, if any */
    const char *list;                 /* the member of the answer that is an array of objects */
    const struct rest_field *items;   /* members of each of these objects */
    bool by_place;                    /* `next` is a place in the list, not a key: items may be
                                         missed or seen twice when the list changes between pages */
    size_t page_usual, page_max;      /* items on a page, by default and at most; 0: REST_PAGE_* */
    const char *media;                /* type of an answer that is not JSON; NULL: it is JSON */
    int status, other_status;         /* of success: 0 is 200, 204 has no body; and a second one
                                         that rest_status() may choose */
    const char *missing;              /* message of ERR_NOT_FOUND; NULL: as the error has it */
    bool quick;                       /* the function never waits: no I/O, no body */
    bool storeless; /* served also while the coordination store is not the one that weir knows */
};

enum { REST_PAGE_USUAL = 1000, REST_PAGE_MAX = 10000 };

/* The rows of one owner; REST_ROWS(rows) initializes the first two members. */
struct rest_table {
    const struct rest_row *rows;
    size_t count;
    void *ctx; /* handed to the rows' functions; borrowed */
};
#define REST_ROWS(table) .rows = (table), .count = ARRAY_SIZE(table)

/* --- a request under way --- */

struct rest_value;

struct rest_call {
    void *ctx; /* of the row's table */
    struct http_request *req;
    const struct rest_row *row;
    struct arena *arena; /* the request's */
    struct json_out *w;  /* the answer's open object; its open array, when the row lists */
    /* The rest is the kit's. */
    struct rest_value *values;
    size_t value_count;
    json_t *body;
    struct str raw;  /* the body's bytes */
    struct buf text; /* of the answer */
    struct json_out writer;
    int status;
    bool sent; /* by rest_send() or rest_refuse() */
    bool list_open;
    struct rest_page {
        struct str after; /* key of the item before the page; empty: from the first item on */
        size_t skip;      /* by place: the number of items before the page */
        size_t limit;
        size_t offered, written; /* items */
        struct str last;         /* key of the last item on the page */
        bool more;               /* there is another page */
    } page;
};

/* Values that the row describes, checked. Strings live as long as the request. A value that the
 * request does not have is empty, 0 or false; an INTEGER is `usual` then. */
struct str rest_text(const struct rest_call *c, const char *name);
const char *rest_text_z(const struct rest_call *c, const char *name); /* NULL: no memory */
int64_t rest_integer(const struct rest_call *c, const char *name);
double rest_number(const struct rest_call *c, const char *name, double fallback);
bool rest_bool(const struct rest_call *c, const char *name);
/* An array of strings; NULL: not given. */
const json_t *rest_strings(const struct rest_call *c, const char *name);
struct str rest_raw(const struct rest_call *c); /* the body of a row with `raw_body` */
bool rest_given(const struct rest_call *c, const char *name);

/* Answers this status instead of the row's first one; the row has both. */
void rest_status(struct rest_call *c, int status);
/* Answers these bytes, of the row's media type, instead of JSON. */
int rest_send(struct rest_call *c, struct str body) MUST_CHECK;

/* Answers an error that the table of error codes does not have; `extra` is one header more, unless
 * its name is empty. */
int rest_refuse(struct rest_call *c, int status, const char *code, const char *message,
                struct http_header extra) MUST_CHECK;

/* A time in milliseconds since 1970 as the API writes times; 0: there is none. */
void rest_time(struct json_out *w, const char *name, int64_t wall_ms);
/* An integer, or null when it is not known. */
void rest_known_i64(struct json_out *w, const char *name, bool known, int64_t value);

/* --- lists --- */

/* Is the item on the page? Then its object is open, and rest_item_end() closes it. `key` orders the
 * list: every item has a greater one than the item before, by bytes. A list of a row with
 * `by_place` has no keys, so STR_EMPTY. */
bool rest_item(struct rest_call *c, struct str key);
void rest_item_end(struct rest_call *c);
/* As rest_item(), but the caller writes the object, or leaves it out. */
bool rest_takes(struct rest_call *c, struct str key);
/* The page is full and there is more: offering further items has no effect. */
bool rest_full(const struct rest_call *c);
/* How many items a page needs from a source that can begin where the page does: one more than the
 * page has, to know whether there is another page. */
size_t rest_wanted(const struct rest_call *c);
/* The key behind which the page begins; empty: at the first item. */
struct str rest_after(const struct rest_call *c);
/* By place: the caller leaves out the items before the page. Returns how many these are. */
size_t rest_skip(struct rest_call *c);
/* Closes the array, for members of the answer that follow it. */
void rest_list_end(struct rest_call *c);

/* --- serving --- */

enum { REST_PATH_MAX = 8 };

struct rest_path {
    struct str name[REST_PATH_MAX], value[REST_PATH_MAX]; /* values decoded, in the arena */
    size_t count;
};

struct rest_match {
    const struct rest_row *row;
    void *ctx;
    struct rest_path path;
};

/* The row of a request. "{name}" of a row's path matches one segment that is not empty, a last
 * "{name...}" the rest with its slashes, which may be empty. Where two rows match, exact segments
 * win. ERR_NOT_FOUND; ERR_UNSUPPORTED: the path has other methods; ERR_PARSE: a bad escape, or one
 * that hides a NUL. */
int rest_find(struct rest_match *out, const struct rest_table *tables, size_t count,
              struct http_request *req, struct err *err) MUST_CHECK;
/* "GET, POST": the methods of the request's path, appended. */
void rest_allowed(struct buf *out, const struct rest_table *tables, size_t count,
                  struct http_request *req);

/* Runs the row's function and answers. Returns what an http_handler_fn does. The caller has asked
 * who may call (row->access). */
int rest_run(const struct rest_match *match, struct http_request *req) MUST_CHECK;

/* As rest_refuse(), where there is no call. */
int rest_send_error(struct http_request *req, int status, const char *code, const char *message,
                    struct http_header extra) MUST_CHECK;
/* As rest_send_error(), by the table of error codes. A code that is not in it becomes 500, and a
 * line in the log. */
int rest_send_failure(struct http_request *req, int code, const struct err *err) MUST_CHECK;

#endif
