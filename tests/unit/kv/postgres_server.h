/* A real PostgreSQL for tests, on a unix socket in a folder of its own. It is ended by its process
 * id, and by the kernel when the process dies that started it. */
#ifndef TESTS_UNIT_KV_POSTGRES_SERVER_H
#define TESTS_UNIT_KV_POSTGRES_SERVER_H

#include "base/base.h"

#include <sys/types.h>

struct postgres_server {
    char dir[64]; /* its folder, in /dev/shm or /tmp: the server's user cannot enter a test's own */
    int port;     /* names the socket; chosen at the first start */
    pid_t pid;    /* 0: not running */
    bool durable; /* fsync is on */
    char url[160];
};
/* False, with the reason printed, when it cannot be started. */
bool postgres_server_start(struct postgres_server *s);
/* Kills the server (SIGKILL). Its own children end as soon as they notice, so connections may work
 * for a moment. */
void postgres_server_kill(struct postgres_server *s);
void postgres_server_stop(struct postgres_server *s);   /* orderly, at once (SIGINT) */
void postgres_server_remove(struct postgres_server *s); /* kills it and removes its folder */

/* Runs one statement on the server. False, with the reason printed, when it fails. */
bool postgres_run(const char *url, const char *statement);

#endif
