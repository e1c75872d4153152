/* A scripted forge for unit tests: a peer that answers by a table, and forges over both databases
 * of an embedded store. */
#ifndef TESTS_UNIT_ARCHIVE_FORGE_LAB_H
#define TESTS_UNIT_ARCHIVE_FORGE_LAB_H

#include "archive/forges.h"
#include "os/thread.h"
#include "unit/http/peer.h"
#include "unit/store/four.h"

/* An answer to requests whose target contains `path` and whose head contains `with` (NULL: any).
 * The rows are tried in order. */
struct forge_line {
    const char *path, *with;
    const char
        *answer;      /* from "HTTP/1.1 " on, status and headers; NULL: the connection is closed */
    const char *body; /* NULL: Content-Length is not added */
    int times;        /* how often the row answers; 0: always */
};

struct forge_lab {
    struct four *given; /* databases to use; NULL: `own` is opened */
    struct four own, *four;
    struct peer *peer;
    struct forges *forges;
    struct forge_session *session;
    struct arena arena;
    struct forge_fault fault;
    struct err err;
    uint64_t timeout_ms; /* of one request; this and `given` are set before the start */
    struct mutex lock;   /* class "forge_lab"; guards the members below */
    const struct forge_line *lines;
    int used[32];
    struct buf log; /* the heads of all requests */
    unsigned requests;
};

/* Like CHECK_OK(), for calls that have the `err` of the lab `l`. */
#define LAB_OK(call)                                                                               \
    do {                                                                                           \
        int code_ = (call);                                                                        \
        if (code_ < 0)                                                                             \
            test_fail(__FILE__, __LINE__, "%s: %s: %s", #call, err_name(code_), l.err.text);       \
    } while (0)

/* Starts a forge of that kind with the tokens in the list, which NULL ends. */
void forge_lab_start(struct forge_lab *l, enum forge_kind kind, const struct forge_line *lines,
                     const char *const *tokens);
void forge_lab_stop(struct forge_lab *l);
/* Replaces the answers. */
void forge_lab_answers(struct forge_lab *l, const struct forge_line *lines);
/* How many requests had this text in their heads. */
unsigned forge_lab_count(struct forge_lab *l, const char *text);

#endif
