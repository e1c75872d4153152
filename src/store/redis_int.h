/* The parts of the Redis engine: target, master, connection, pool, subscriptions, refusals. Only
 * for redis*.c. R1, R2, ... (Redis) and M1, M2, ... (Sentinel) are invariants of
 * docs/store-redis.md. */
#ifndef STORE_REDIS_INT_H
#define STORE_REDIS_INT_H

#include "os/flight.h"
#include "os/thread.h"
#include "os/tls.h"
#include "store/resp.h"
#include "store/store_int.h"

/* --- the target: which Redis, and as which user --- */

enum { REDIS_MAX_SENTINELS = 16 };

struct redis_target {
    char *host; /* NULL: the target is a unix socket, or found by sentinels */
    uint16_t port;
    char *path;            /* path of the unix socket; else NULL */
    char *user, *password; /* NULL when not given */
    int database;
    bool tls;
    /* A refused login is no failure, because the login may be meant for another server. */
    bool try_login;

    /* The name under which the sentinels know the master; NULL: no sentinels. */
    char *master;
    struct redis_target *sentinels; /* owned; address and login of each sentinel */
    size_t sentinel_count;
};

/* Reads the url of struct store_redis_options; `number` is the database if the url names none.
 * ERR_INVALID: the url is wrong; the error's text never has a password in it. */
int redis_target_parse(struct redis_target *out, struct str url, int number,
                       struct err *err) MUST_CHECK;
void redis_target_release(struct redis_target *t);
/* Whether both targets are one server, or one master of the same sentinels. Their databases may
 * differ. */
bool redis_target_is_same(const struct redis_target *a, const struct redis_target *b);

/* --- one connection, which one thread uses at a time --- */

struct redis_master;

/* The things needed to make a connection; all borrowed. */
struct redis_endpoint {
    const struct redis_target *target;
    struct tls_context *tls;     /* NULL: no TLS */
    struct redis_master *master; /* NULL: no sentinels; the target has the address */
};

enum { REDIS_READ_SIZE = 16 * 1024 };

struct redis_conn {
    struct list node; /* in the pool's list while idle */
    int fd;
    struct tls *tls; /* NULL: no TLS */
    bool reused;     /* the connection has served a call before */
    /* Generation of the master that the connection leads to; 0 without sentinels. */
    uint64_t generation;
    uint64_t idle_since_ns;
    struct resp resp;
    size_t from, to; /* the bytes in[from] to in[to - 1] are received but not parsed */
    char in[REDIS_READ_SIZE];
};

/* Makes a connection: connects, logs in, selects the database, names the connection. With sentinels
 * it also checks that the server is a master. ERR_UNAVAILABLE: Redis cannot be reached, does not
 * answer in time, or cannot serve now (for example, it is not a master); no command of a caller was
 * sent. ERR_DENIED: wrong password or user. ERR_INVALID: no such database. */
int redis_conn_open(struct redis_conn **out, const struct redis_endpoint *e, uint64_t deadline_ns,
                    struct err *err) MUST_CHECK;
void redis_conn_close(struct redis_conn *c); /* NULL is fine */

/* Whether an idle connection can be used. False: the peer has closed it, or has sent bytes that
 * nobody asked for. Does not wait. */
bool redis_conn_is_quiet(struct redis_conn *c);
/* Whether bytes were received that redis_conn_receive() has not used yet. */
bool redis_conn_has_input(const struct redis_conn *c);

/* Sends all bytes of `wire`. After ERR_CLOSED or ERR_TIMEOUT the connection must be closed, because
 * it is not known how much was sent. */
int redis_conn_send(struct redis_conn *c, struct str wire, uint64_t deadline_ns,
                    struct err *err) MUST_CHECK;
/* Reads one reply. ERR_CLOSED: the connection has ended. ERR_TIMEOUT: the deadline has passed.
 * ERR_PEER: the reply is not RESP2. ERR_NO_MEMORY: it does not fit into the arena. */
int redis_conn_receive(struct redis_conn *c, struct arena *arena, struct reply **out,
                       uint64_t deadline_ns, struct err *err) MUST_CHECK;

/* --- refusals: error replies by which Redis does not run a command --- */

/* Returns the code for an error reply whose first word is in the table of refusals (LOADING,
 * NOAUTH, OOM, ...); 0 for any other text. A refused command did not run. */
int redis_refusal(struct str text);
/* Whether the server says by this reply that it is a replica. */
bool redis_is_replica(const struct reply *r);

/* --- back-off: how long Redis is not tried again after it could not be reached --- */

struct redis_backoff {
    /* Delay before the next attempt, without its random part; 0: the latest attempt succeeded. */
    uint64_t delay_ns;
    uint64_t failed_at_ns; /* when the latest failure was counted */
    uint64_t retry_at_ns;
};

/* Notes that an attempt that began at `began_ns` has failed: doubles the delay, but only once for
 * attempts that failed together. */
void redis_backoff_fail(struct redis_backoff *b, uint64_t began_ns);

/* --- which server is the master; one thread asks the sentinels for several stores --- */

enum { REDIS_HOST_MAX = 255 };

struct redis_address {
    char host[REDIS_HOST_MAX + 1];
    uint16_t port;
};

/* A sentinel's answer about the master. */
struct sentinel_answer {
    bool heard; /* false: the sentinel did not answer, or does not know that master */
    struct redis_address address;
    /* Sentinel's config epoch, a number that each failover increases. */
    uint64_t epoch;
};

/* Reads the replies to SENTINEL MASTER and SENTINEL GET-MASTER-ADDR-BY-NAME. ERR_NOT_FOUND: the
 * sentinel does not know that master. ERR_PEER: the replies are malformed. */
int sentinel_read(struct sentinel_answer *out, const struct reply *master,
                  const struct reply *address, struct err *err) MUST_CHECK;
/* Returns the index of the answer that names the master to use from now on; -1: the known master
 * stays (docs/store-redis.md, M2). `failed`: the known master could not be reached, or is not a
 * master any more. */
int sentinel_choose(const struct sentinel_answer *known, bool failed,
                    const struct sentinel_answer *answers, size_t count);

/* One sentinel. Only the thread that asks uses it. */
struct sentinel {
    struct redis_endpoint endpoint;
    /* Connections for questions and for the announcements of failovers. Both are open, or both are
     * NULL. */
    struct redis_conn *questions, *news;
    struct redis_backoff backoff;
    struct sentinel_answer answer;
};

/* Asks the sentinel for the master of that name and sets s->answer. Uses the open connections, or
 * makes new ones. After a failure the connections are closed; the error's text names the
 * sentinel. */
int sentinel_ask(struct sentinel *s, const char *name, uint64_t deadline_ns,
                 struct err *err) MUST_CHECK;
/* Reads the messages that have arrived on `news`. Their content does not matter: they are a reason
 * to ask. */
void sentinel_hear(struct sentinel *s);
void sentinel_close(struct sentinel *s);

/* Makes a redis_master, which asks the sentinels that *target names. The redis_master becomes the
 * owner of all that *target points to, and takes a reference to `tls`. Asks no sentinel yet. */
struct redis_master *redis_master_new(struct redis_target *target, struct tls_context *tls,
                                      uint64_t timeout_ns, const struct log *log);
struct redis_master *redis_master_ref(struct redis_master *m);
/* Drops a reference; dropping the last reference ends the thread. NULL is fine. */
void redis_master_unref(struct redis_master *m);

/* Returns the master's address and its generation, a number that grows when another server becomes
 * the master. After redis_master_doubt() the function waits until the sentinels were asked.
 * ERR_UNAVAILABLE: the sentinels do not answer in time, or none has named the master yet. */
int redis_master_find(struct redis_master *m, uint64_t deadline_ns, struct redis_address *out,
                      uint64_t *generation, struct err *err) MUST_CHECK;
uint64_t redis_master_generation(struct redis_master *m); /* 0 if `m` is NULL */

/* Connections report with these functions what they found out about the master of that generation.
 * redis_master_doubt(): a connection was lost, or the server says that it is a replica; the
 * sentinels are asked before the next connection is made. redis_master_failed(): a connection to
 * the server as a master could not be made. redis_master_works(): such a connection was made. */
void redis_master_doubt(struct redis_master *m, uint64_t generation); /* NULL is fine */
void redis_master_failed(struct redis_master *m, uint64_t generation);
void redis_master_works(struct redis_master *m, uint64_t generation);

/* A thread that wants to be woken when the master changes: its eventfd `wake` is written to when
 * the generation grows. */
struct redis_follower {
    struct list node;
    int wake;
};
void redis_master_follow(struct redis_master *m, struct redis_follower *f);
/* Stops following. This is harmless if `f` does not follow. */
void redis_master_unfollow(struct redis_master *m, struct redis_follower *f);

/* --- the pool --- */

struct redis_pool {
    const struct redis_endpoint *endpoint; /* borrowed */
    const struct log *log;
    size_t max;
    struct mutex lock;
    struct cond changed; /* signalled when a call can take or open a connection */
    struct list idle;    /* connections that no call uses, the latest used first */
    size_t open;         /* number of connections that are idle, in use, or being opened */
    struct redis_backoff backoff;
    struct err failure; /* the error of the latest failed attempt to connect */
    /* Generation of the master when that attempt failed; a newer master is tried at once. */
    uint64_t failed_generation;
};

void redis_pool_init(struct redis_pool *p, const struct redis_endpoint *endpoint, size_t max,
                     const struct log *log);
void redis_pool_release(struct redis_pool *p); /* no connection may be in use */

/* Gets a connection for one call: an idle connection or a new one. With `fresh` it is always a new
 * one. ERR_UNAVAILABLE: Redis is down, or in back-off, or no connection became free in time.
 * ERR_DENIED and ERR_INVALID are those of redis_conn_open(). */
int redis_pool_take(struct redis_pool *p, bool fresh, uint64_t deadline_ns, struct redis_conn **out,
                    struct err *err) MUST_CHECK;
/* Takes a connection and sends the bytes on it; *out is that connection. `whole` says that Redis
 * runs nothing before the last byte has arrived. Then a send that failed is ERR_UNAVAILABLE, and if
 * the connection had been idle before, the send is tried once more on a new connection (R3).
 * Without `whole`, ERR_CLOSED and ERR_TIMEOUT mean that a part of the bytes may have been run. */
int redis_pool_send(struct redis_pool *p, struct redis_conn **out, struct str wire, bool whole,
                    uint64_t deadline_ns, struct err *err) MUST_CHECK;
/* Ends the use of a connection. `doubtful`: not all replies were read, or the server says that it
 * is a replica. Such a connection is closed, and the sentinels are asked before the next one is
 * made. Otherwise the next call would get a reply of this call (R6), or would go on using a replica
 * although its host name may lead to another server by now (R9). */
void redis_pool_end(struct redis_pool *p, struct redis_conn *c, bool doubtful);
/* Gives the connection back to the pool, for further calls. */
void redis_pool_give(struct redis_pool *p, struct redis_conn *c);
void redis_pool_drop(struct redis_pool *p, struct redis_conn *c); /* closes the connection */
void redis_pool_is_back(struct redis_pool *p); /* called when Redis answers: ends the back-off */

/* --- groups: calls of several threads that are sent together (redis_group.c) --- */

struct redis_groups {
    struct redis_pool *pool; /* borrowed */
    struct flights flights;  /* their lock has the class "store.redis.groups" */
};

void redis_groups_init(struct redis_groups *g, struct redis_pool *pool);
void redis_groups_release(struct redis_groups *g); /* no call may be running */
/* Makes a call whose bytes are `wire`, which is one command. ERR_CLOSED and ERR_TIMEOUT: the
 * command may have run. */
int redis_group_call(struct redis_groups *g, struct arena *arena, struct reply **out,
                     struct str wire, uint64_t deadline_ns, struct err *err) MUST_CHECK;

/* --- subscriptions --- */

struct redis_sub;

struct redis_subs {
    struct store *store;
    struct redis_pool *pool;               /* borrowed; its back-off is ended when Redis is back */
    const struct redis_endpoint *endpoint; /* borrowed */
    const struct log *log;
    uint64_t timeout_ns;
    struct redis_follower follower; /* follower.wake is the same eventfd as `wake` */

    struct mutex lock; /* guards everything below */
    struct cond changed;
    struct list subs;
    struct buf leaving;        /* UNSUBSCRIBE commands not yet sent */
    struct thread thread;      /* started by the first subscription */
    int wake;                  /* eventfd, written when the thread has something to send */
    struct redis_sub *running; /* the subscription whose fn is being called; else NULL */
    uint64_t message;          /* number of messages received so far */
    /* Numbers of SUBSCRIBE commands sent on this connection, and of answers to them. */
    uint64_t sent, confirmed;
    uint64_t lapses; /* number of connections that failed or were lost */
    bool connected, stop;
};

void redis_subs_init(struct redis_subs *s, struct store *store,
                     const struct redis_endpoint *endpoint, const struct log *log);
void redis_subs_release(struct redis_subs *s); /* ends the thread and all subscriptions */
int redis_subscribe(struct store_subscription **out, struct redis_subs *s, struct str channel,
                    store_message_fn *fn, void *ctx, struct err *err) MUST_CHECK;
void redis_unsubscribe(struct redis_subs *s, struct store_subscription *sub);

#endif
