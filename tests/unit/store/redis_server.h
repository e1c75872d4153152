/* A real redis-server for tests: on a unix socket and a free TCP port, its files in one folder,
 * ended by process id (and by the kernel when the test dies). */
#ifndef TESTS_UNIT_STORE_REDIS_SERVER_H
#define TESTS_UNIT_STORE_REDIS_SERVER_H

#include "base/base.h"

#include <sys/types.h>

struct redis_server {
    const char *dir;          /* borrowed; its data, its socket "redis.sock" */
    const char *const *extra; /* more arguments, NULL-terminated; NULL: none */
    int port, tls_port;       /* chosen by the first start and kept; tls_port only if `tls` */
    bool loading;             /* the start does not wait until its data is loaded */
    bool tls;                 /* with redis_server_make_certificate()'s files */
    pid_t pid;                /* 0: not running */
    char unix_url[160], url[80], tls_url[80]; /* of database 0 */
};

/* Starts it (again, on the same ports) and returns when it accepts connections. False, with the
 * reason printed, when it cannot be started. */
bool redis_server_start(struct redis_server *s);
void redis_server_signal(struct redis_server *s, int signal);
void redis_server_kill(struct redis_server *s); /* SIGKILL; reaped; nothing when not running */

/* "key.pem" and a self-signed "cert.pem" for 127.0.0.1 in s->dir, by the openssl command. */
bool redis_server_make_certificate(const struct redis_server *s);

/* A TCP port that was free a moment ago. */
int free_port(void);

#endif
