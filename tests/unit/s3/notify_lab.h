/* A webhook's receiver: an HTTP server that keeps what it is sent and answers as it is told. */
#ifndef TESTS_UNIT_S3_NOTIFY_LAB_H
#define TESTS_UNIT_S3_NOTIFY_LAB_H

#include "base/vec.h"
#include "unit/http/server_lab.h"

struct received {
    struct str path, signature, body; /* in the receiver's arena */
    int status;                       /* that was answered */
};

struct receiver {
    struct lab lab;
    struct mutex lock;
    struct cond came;
    struct arena arena;
    VEC(struct received) calls;
    int status;    /* to answer; 0: 200 */
    bool stopped;  /* calls wait until it is false */
    char url[128]; /* "http://127.0.0.1:<port>" */
};

void receiver_start(struct receiver *r);
void receiver_stop(struct receiver *r);
void receiver_answer(struct receiver *r, int status);
void receiver_hold(struct receiver *r, bool on);
/* Until so many were answered with 2xx. */
void receiver_wait(struct receiver *r, size_t taken);
/* Until so many came, however they were answered. */
void receiver_wait_calls(struct receiver *r, size_t calls);
size_t receiver_taken(struct receiver *r);
/* The call number `i` of those answered with 2xx. */
struct received receiver_get(struct receiver *r, size_t i);

#endif
