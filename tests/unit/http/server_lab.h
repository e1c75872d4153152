/* A server on a free port with a handler whose paths show each thing a handler can do, and a client
 * made of raw sockets, for the server's tests. */
#ifndef TESTS_UNIT_HTTP_SERVER_LAB_H
#define TESTS_UNIT_HTTP_SERVER_LAB_H

#include "http/server.h"
#include "unit/test.h"

struct lab {
    struct http_server *server;
    struct pool *pool;
    uint16_t port;
    const char *file; /* what /file sends */
    struct mutex lock;
    struct cond changed;
    bool gate_open;      /* /gate waits for it */
    unsigned gate_count; /* handlers that came to it */
};

/* Zero options get the lab's handler, a free port of 127.0.0.1 and a pool of 8 threads and a queue
 * of 64. */
void lab_start(struct lab *lab, struct http_server_options options);
void lab_end(struct lab *lab);
void lab_open_gate(struct lab *lab);
void lab_wait_gate(struct lab *lab, unsigned count); /* until so many handlers stand there */
struct http_server_stats lab_stats(struct lab *lab);
int lab_handler(struct http_request *req, void *ctx); /* ctx is the lab */

/* A file of `len` bytes that differ from place to place. */
const char *lab_make_file(const char *name, size_t len);

/* Wait until the condition holds; the test's own time limit ends a wait that never does. */
#define LAB_UNTIL(cond)                                                                            \
    while (!(cond))                                                                                \
    lab_pause()
void lab_pause(void);

int lab_dial(struct lab *lab); /* blocking */
void lab_say(int fd, struct str bytes);
void lab_sayf(int fd, const char *fmt, ...) PRINTF_LIKE(2, 3);

struct answer {
    int status;
    struct buf bytes; /* head, then what came of the body, and what came behind it */
    struct http_head head;
    struct buf body;
    bool whole; /* the body ended as its head had promised */
};

/* The next response; `to_head` if it answers HEAD. The connection's end before a whole head fails
 * the test. Bytes behind it are kept for the next call with the same struct. */
void lab_read(int fd, struct answer *a, bool to_head);
void answer_release(struct answer *a);
/* Say, read one, and check the status. */
void lab_ask(int fd, struct answer *a, struct str bytes, int status);
/* Nothing more comes and the peer has closed (or reset). */
bool lab_is_closed(int fd, struct answer *a);
/* One request on a connection of its own that the server must close; -1: closed without answer. */
int lab_status_of(struct lab *lab, struct str bytes);

#endif
