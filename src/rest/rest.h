/* The REST kit. Every route of the API is one row of a table, and everything about the route is in
 * its row: who may call it, its parameters, its body, its answer, and the function that runs. The
 * row is used by the router, by the check of the caller, by the code that reads and checks values,
 * and by the code that writes the answer. It is also used by all descriptions of the API: docs,
 * tests, an OpenAPI document.
 *
 * A room that has routes includes this header and defines a table of rows. A row and its function:
 *
 *     static int user_get(struct rest_call *c, struct err *err)
 *     {
 *         struct users *users = c->ctx;
 *         struct user user;
 *         int code = users_by_name(users, c->arena, rest_text(c, "name"), &user, err);
 *
 *         return code < 0 ? code : rest_give(c, &user);
 *     }
 *
 *     {HTTP_GET, "/api/v1/users/{name}", REST_ADMIN, "One user.", user_get,
 *      .in_path = REST_FIELDS({"name", "The user's name."}), .out = sizeof(struct user),
 *      .answer = REST_FIELDS({"name", "The user's name.", REST_AT(struct user, name)})},
 *
 * Values. Before the function runs, the kit has checked every value of the request against the
 * row's fields (rest/field.h), and has answered 400 with the value's name if the request breaks
 * them. It also refuses members and query parameters that the row does not have. A row whose fields
 * have places in a struct has `in`, and its function gets the filled struct by rest_in(). Other
 * functions read a value by its name; to ask for a name that the row does not describe is a bug and
 * ends the program (rest_text() and its siblings).
 *
 * Answers. A row whose answer's fields have places in a struct has `out`, and its function passes
 * the struct to rest_give(). For the items of a list these are `item` and rest_add(). Other
 * functions write the members themselves, into `w` of the call.
 *
 * Lists. A row with `list` answers {"<list>": [items], "next": "..."}. Every list has pages. Their
 * query parameters are `limit` (how many items) and `after` (the `next` of the page before); `next`
 * is empty on the last page. The function passes every item to rest_item(), which returns whether
 * the item is on the page.
 *
 * Times are strings such as "2026-01-31T03:00:00.000Z", and "" for no time: rest_time().
 *
 * An error is answered with a JSON object, and with the HTTP status that a table gives for its
 * code:
 *     {"error":{"code":"not_found","message":"...","request_id":"..."}}
 *
 * Dialects. In addition to its own API, weir serves the API of another program, for the clients of
 * that program. The calls of such a table differ from weir's own calls in who may make them and in
 * the form of errors and pages. struct rest_dialect describes the differences.
 *
 * Streams. A row with `stream_body` reads its body while it arrives, so the body may have any size.
 * A function that sends its answer in pieces calls rest_take_answer().
 *
 * A row's function runs on the thread of its request. Tables and the rows in them are constant. */
#ifndef REST_REST_H
#define REST_REST_H

#include "http/server.h"
#include "rest/field.h"

/* --- rows --- */

enum rest_access {
    REST_NOT_SAID, /* the row has no value here, which is a bug */
    REST_ADMIN,    /* HTTP Basic with an administrator's keys */
    REST_ANYONE,
    REST_TOKEN, /* the row's function checks a token that only this route has */
    REST_USER,  /* any user; the table's dialect checks the caller */
};

struct rest_call;
/* The function of a row. When it returns 0, the kit sends the answer with the row's status. When it
 * returns ERR_AGAIN, it is called again on a thread that may wait. When it returns another error of
 * base/err.h, the kit sends the error. */
typedef int rest_fn(struct rest_call *c, struct err *err);

struct rest_row {
    enum http_method method; /* a GET row also serves HEAD */
    const char *path;        /* "/api/v1/users/{name}"; see rest_find() */
    enum rest_access access;
    const char *doc; /* says in one or more sentences what the call does */
    rest_fn *run;
    /* A function that checks, before the body is read, whether the call can be served. The function
     * can use only the values of path and query. NULL: no check. */
    rest_fn *needs;
    /* One field for each "{name}" of the path; NULL: the function does not use them. */
    const struct rest_field *in_path;
    /* Query parameters. The parameters `after` and `limit` of a list are not among them. */
    const struct rest_field *query;
    const struct rest_field *body; /* members of a JSON object; NULL: the call takes no body */
    /* Describes, in words, a body that the kit does not parse. NULL: there is no such body. */
    const char *raw_body;
    size_t raw_max; /* the longest raw body, in bytes */
    /* Describes, in words, a body that the function reads itself by http_request_body(). NULL:
     * there is no such body. */
    const char *stream_body;
    const struct rest_field *answer; /* members of the answer's JSON object, without `list` */
    const char *list;                /* the member of the answer that is an array of objects */
    const struct rest_field *items;  /* members of each of these objects */
    /* The sizes of the structs in which the fields of path, query and body, those of the answer,
     * and those of the items have their places; 0: they have none. */
    size_t in, out, item;
    /* `next` is a position in the list and not a key. So if the list changes between two pages, a
     * client may miss items or get them twice. */
    bool by_place;
    /* The function reads one page from its source: it begins after the key rest_after(), writes at
     * most rest_limit() items by rest_row_begin(), and ends with rest_page_end(). */
    bool by_source;
    size_t page_usual, page_max; /* items on a page, by default and at most; 0: REST_PAGE_* */
    const char *media;           /* media type of an answer that is not JSON; NULL: JSON */
    /* The HTTP statuses of success. The first is used by default (0 means 200; with 204 there is no
     * body). The function may choose the second with rest_status(). */
    int status, other_status;
    const char *missing; /* the message for ERR_NOT_FOUND; NULL: the error's own text */
    bool quick;          /* the function never waits: it does no I/O and reads no body */
    /* The route is served even while weir is halted, which is the case while the coordination store
     * is not the one that weir has used before (coord/installation.h). */
    bool storeless;
    const void *more; /* further facts about the row, for the table's dialect alone; may be NULL */
};

enum { REST_PAGE_USUAL = 1000, REST_PAGE_MAX = 10000 };

struct rest_page;

/* The rules for the calls of a table that belong to another program's API and not to weir's own. */
struct rest_dialect {
    /* Finds out who the caller is, and whether the caller may make the call. The function uses only
     * the head of the request, and runs before anything else is read. It may set c->caller, and
     * must not wait. An error is sent like any other error of the call. */
    rest_fn *admit;
    /* Returns the HTTP status for an error code; 0: the status of weir's own calls. */
    int (*status)(int code);
    /* Writes the members of an error's JSON object. */
    void (*write_error)(struct json_out *w, const char *code, const char *message, const char *id);
    /* The query parameters of every list: first the key after which the page begins, then the
     * number of items on the page. */
    const struct rest_field *paging;
    size_t page_usual, page_max; /* items on a page, by default and at most */
    /* Writes the members of a list's answer that tell whether there is another page. */
    void (*write_page)(struct json_out *w, const struct rest_page *page, struct str next);
    size_t body_max; /* the longest JSON body, in bytes */
    /* A path that begins with this text belongs to the dialect, even if no row has the path. For
     * such a path every caller, and not only an administrator, learns that it does not exist. NULL:
     * the dialect has no such paths. */
    const char *below;
    const char *no_path; /* the message for a path that no row has */
    /* Requests are read as leniently as many other programs do. Members that the row does not have
     * are ignored. null means that a member is absent. An absent body is an empty object. "True"
     * and "1" are true in a query. A number of items that is out of bounds becomes the nearest
     * allowed number (0 and less: the default). */
    bool lenient;
};

/* The rows of one owner, such as a room. REST_ROWS(rows) initializes the first two members. */
struct rest_table {
    const struct rest_row *rows;
    size_t count;
    void *ctx;                          /* passed to the rows' functions; borrowed */
    const struct rest_dialect *dialect; /* NULL: weir's own */
};
#define REST_ROWS(table) .rows = (table), .count = ARRAY_SIZE(table)

/* --- a request that is being served --- */

struct rest_value;

enum { REST_HEADERS_MAX = 24 };

/* A page of a list. */
struct rest_page {
    struct str after; /* key of the item before the page; empty: the page is the first */
    size_t skip;      /* for `by_place`: the number of items before the page */
    size_t limit;     /* the most items on the page */
    /* `offered` counts the items that the function has passed so far, before the page and on it;
     * `written` counts only those on the page. */
    size_t offered, written;
    struct str last; /* key of the last item on the page */
    bool more;       /* there is another page */
};

struct rest_call {
    void *ctx;    /* the `ctx` of the row's table */
    void *caller; /* set by `admit` of the table's dialect; NULL: not set */
    struct http_request *req;
    const struct rest_row *row;
    struct arena *arena; /* the request's arena */
    struct json_out *w;  /* the answer's open object, or its open array if the row has `list` */
    /* Only the kit uses the members below. */
    void *in; /* the struct of rest_in() */
    struct rest_value *values;
    size_t value_count;
    json_t *body;
    struct str raw;  /* the body's bytes */
    struct buf text; /* the answer's text */
    struct json_out writer;
    int status;
    bool sent;    /* rest_send() or rest_refuse() has sent the answer */
    bool refused; /* rest_refuse() has answered; `refusal` is its result */
    int refusal;
    bool list_open;
    const struct rest_dialect *dialect;
    json_t *lists; /* the values of query parameters that are lists of strings */
    struct http_header headers[REST_HEADERS_MAX];
    size_t header_count;
    struct rest_page page;
};

/* These functions return a value of the request by its name. The kit has checked the value. Strings
 * live as long as the request. If the request does not have the value, the result is empty, 0 or
 * false, and for an INTEGER the field's `usual`. */
struct str rest_text(const struct rest_call *c, const char *name);
const char *rest_text_z(const struct rest_call *c, const char *name); /* NULL: out of memory */
int64_t rest_integer(const struct rest_call *c, const char *name);
double rest_number(const struct rest_call *c, const char *name, double fallback);
bool rest_bool(const struct rest_call *c, const char *name);
/* Returns an array of strings, or NULL when the request does not have it. */
const json_t *rest_strings(const struct rest_call *c, const char *name);
/* Returns a MAP, an OBJECT, an array of OBJECTS or ANY value, or NULL when the request does not
 * have it. */
const json_t *rest_json(const struct rest_call *c, const char *name);
struct str rest_raw(const struct rest_call *c); /* the body of a row with `raw_body` */
bool rest_given(const struct rest_call *c, const char *name);

/* Returns the struct of the row's `in`. It lives as long as the request. */
#define rest_in(c, type) ((const type *)rest_in_struct(c, sizeof(type)))
const void *rest_in_struct(const struct rest_call *c, size_t size);

/* Writes the answer from the struct of the row's `out`. Returns 0. */
#define rest_give(c, thing) rest_give_struct(c, thing, sizeof(*(thing)))
int rest_give_struct(struct rest_call *c, const void *thing, size_t size);

/* Sets the status of the answer, which must be `status` or `other_status` of the row. */
void rest_status(struct rest_call *c, int status);
/* Adds a header to the answer of the row's function, if that answer is not an error. `name` is
 * borrowed for the call; the value is copied. An answer may get at most REST_HEADERS_MAX headers in
 * this way. */
void rest_header(struct rest_call *c, struct str name, struct str value);
/* Sends `body`, which has the row's media type, as the answer instead of JSON. */
int rest_send(struct rest_call *c, struct str body) MUST_CHECK;
/* Begins an answer that the function sends itself: sets the request's status, and adds the headers
 * of rest_header(). The function may then add more headers, and sends the body by one of the
 * functions of http/server.h. */
struct http_request *rest_take_answer(struct rest_call *c, int status);

/* Answers with an error status that the table of error codes (rest_send_failure()) does not have.
 * `extra` is an additional header, unless its name is empty. After this call the result of the
 * row's function is ignored, so the function may return an error to end its work. */
int rest_refuse(struct rest_call *c, int status, const char *code, const char *message,
                struct http_header extra);

/* Writes a member with an integer, or with null when the integer is not known. */
void rest_known_i64(struct json_out *w, const char *name, bool known, int64_t value);

/* --- lists --- */

/* Passes an item of the list. Returns whether the item is on the page. If it is, its JSON object is
 * open, and rest_item_end() closes it. The items must come in the order of their keys: each `key`
 * is greater, by bytes, than the one before it. In a list with `by_place`, `key` is STR_EMPTY. */
bool rest_item(struct rest_call *c, struct str key);
void rest_item_end(struct rest_call *c);
/* Passes an item whose members are in the struct of the row's `item`. */
#define rest_add(c, key, thing) rest_add_struct(c, key, thing, sizeof(*(thing)))
void rest_add_struct(struct rest_call *c, struct str key, const void *thing, size_t size);
/* Like rest_item(), but opens no object: the caller writes the item, or leaves it out. */
bool rest_takes(struct rest_call *c, struct str key);
/* Whether the page is full and there is another page. If so, passing further items has no
 * effect. */
bool rest_full(const struct rest_call *c);
/* Returns how many items a function should read from a source that can begin at the page: one more
 * than fit on the page, to know whether there is another page. */
size_t rest_wanted(const struct rest_call *c);
/* Returns the key after which the page begins. It is empty for the first page. */
struct str rest_after(const struct rest_call *c);
/* Returns the number of items before the page, for a list with `by_place`. The caller then does not
 * pass these items to rest_item(). */
size_t rest_skip(struct rest_call *c);
/* For a list with `by_source`. rest_limit() returns how many items the page may have.
 * rest_row_begin() opens the JSON object of an item, and rest_item_end() closes it. The function
 * ends with rest_page_end(); its arguments say whether there is another page, and after which key
 * (`next`) that page begins. */
size_t rest_limit(const struct rest_call *c);
void rest_row_begin(struct rest_call *c);
void rest_page_end(struct rest_call *c, bool more, struct str next);
/* Closes the list's array, so that other members of the answer can follow. */
void rest_list_end(struct rest_call *c);

/* --- serving --- */

enum { REST_PATH_MAX = 8 };

struct rest_path {
    /* The parameters of the path. The values are decoded; they live in the request's arena. */
    struct str name[REST_PATH_MAX], value[REST_PATH_MAX];
    size_t count;
};

struct rest_match {
    const struct rest_row *row;
    void *ctx;
    const struct rest_dialect *dialect; /* NULL: weir's own */
    struct rest_path path;
};

/* Finds the row of a request. "{name}" in a row's path matches one segment that is not empty.
 * "{name...}" at the end matches the rest with its slashes, which may be empty. If two rows match,
 * the row with the more exact segments wins. If both are equally exact, a row for HEAD wins over a
 * row for GET, which also serves HEAD. ERR_NOT_FOUND: no row has the path. ERR_UNSUPPORTED: rows
 * have the path, but only with other methods. ERR_PARSE: the path has a malformed escape or an
 * escaped NUL. */
int rest_find(struct rest_match *out, const struct rest_table *tables, size_t count,
              struct http_request *req, struct err *err) MUST_CHECK;
/* Returns the dialect to which a path without a row belongs; NULL: it belongs to weir's own API. */
const struct rest_dialect *rest_dialect_of(const struct rest_table *tables, size_t count,
                                           struct str path);
/* Appends the methods that rows have for the request's path, such as "GET, POST". */
void rest_allowed(struct buf *out, const struct rest_table *tables, size_t count,
                  struct http_request *req);

/* Runs the row's function and answers the request. The result is that of an http_handler_fn. The
 * caller must have checked row->access, unless the row's table has a dialect. */
int rest_run(const struct rest_match *match, struct http_request *req) MUST_CHECK;

/* These functions send an error before rest_run() is called. rest_match_refuse() is like
 * rest_refuse(); rest_match_fail() sends the error as if the row's function had returned it. */
int rest_match_refuse(const struct rest_match *match, struct http_request *req, int status,
                      const char *code, const char *message) MUST_CHECK;
int rest_match_fail(const struct rest_match *match, struct http_request *req, int code,
                    const struct err *err) MUST_CHECK;

/* Like rest_refuse(), for a request that has no row. */
int rest_send_error(struct http_request *req, int status, const char *code, const char *message,
                    struct http_header extra) MUST_CHECK;
/* Like rest_send_error(), with the status that a table gives for the error code `code`. A code that
 * is not in the table becomes status 500 and is logged. */
int rest_send_failure(struct http_request *req, int code, const struct err *err) MUST_CHECK;

#endif
