/* A proxy in front of a server that listens on a unix socket, for tests of connections that hang or
 * are cut at a chosen moment. It listens on a TCP port of 127.0.0.1 and runs on a thread of its
 * own. */
#ifndef TESTS_UNIT_KV_CUT_PROXY_H
#define TESTS_UNIT_KV_CUT_PROXY_H

#include "os/thread.h"

/* The next thing that the proxy does to a connection. A cut is made once; then everything passes
 * again, on new connections. */
enum cut_moment {
    CUT_NOTHING, /* everything passes */
    CUT_REQUEST, /* the next bytes of a client do not reach the server: the connection is cut */
    CUT_ANSWER,  /* requests reach the server; the connection is cut in the place of the answer */
    /* Requests and answers pass up to the end of a transaction of PostgreSQL (ReadyForQuery), and
     * the connection is cut in the place of what comes behind. */
    CUT_BEHIND_READY,
    /* Nothing passes any more, and connections stay open. */
    CUT_HOLD,
};

struct cut_pair {
    int client, server; /* -1: the place is free */
    size_t rest;        /* bytes of PostgreSQL's present message that are still to come */
    size_t head_len;    /* bytes of the head of the next message */
    unsigned char head[5];
};

enum { CUT_PAIRS = 32 };
struct cut_proxy {
    int port;
    char path[128]; /* the server's socket */
    int listener;
    _Atomic(int) moment;   /* enum cut_moment */
    _Atomic(unsigned) met; /* connections that were accepted */
    _Atomic(bool) asked;   /* a request came while nothing passes */
    _Atomic(bool) ends;
    struct cut_pair pairs[CUT_PAIRS];
    struct thread thread;
};

/* Starts the proxy in front of the socket; path NULL: there is no server, and nothing ever
 * answers. Ends the test when that fails. */
void cut_proxy_start(struct cut_proxy *p, const char *path);
void cut_proxy_stop(struct cut_proxy *p);
/* Whether the planned cut was made. */
bool cut_proxy_was_cut(const struct cut_proxy *p);

/* Starts the proxy in front of the PostgreSQL of this url, and writes the url that leads through
 * the proxy. */
void cut_proxy_start_postgres(struct cut_proxy *p, const char *url, char *out, size_t size);

#endif
