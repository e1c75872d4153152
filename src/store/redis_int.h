/* The parts of the redis engine: target, connection, pool, subscriptions, refusals. For redis*.c
 * only. docs/store-redis.md has the invariants that the comments cite as R1, R2, ... */
#ifndef STORE_REDIS_INT_H
#define STORE_REDIS_INT_H

#include "os/thread.h"
#include "os/tls.h"
#include "store/resp.h"
#include "store/store_int.h"

/* --- where, and as whom --- */

struct redis_target {
    char *host; /* NULL: a unix socket */
    uint16_t port;
    char *path;            /* of the unix socket; else NULL */
    char *user, *password; /* NULL when not given */
    int database;
    bool tls;
};

/* Decodes the url of struct store_redis_options. ERR_INVALID; the text never holds the password. */
int redis_target_parse(struct redis_target *out, struct str url, int number,
                       struct err *err) MUST_CHECK;
void redis_target_release(struct redis_target *t);

/* --- one connection; belongs to one thread at a time --- */

enum { REDIS_READ_SIZE = 16 * 1024 };

struct redis_conn {
    struct list node; /* in the pool while idle */
    int fd;
    struct tls *tls; /* NULL: plain */
    bool reused;     /* has served a call before */
    uint64_t idle_since_ns;
    struct resp resp;
    size_t from, to; /* what of `in` is not yet parsed */
    char in[REDIS_READ_SIZE];
};

/* Connected, authenticated, database selected, named. Every failure is ERR_UNAVAILABLE (also one
 * that took too long: no command was sent), ERR_DENIED (password, user) or ERR_INVALID (database).
 */
int redis_conn_open(struct redis_conn **out, const struct redis_target *t, struct tls_context *tls,
                    uint64_t deadline_ns, struct err *err) MUST_CHECK;
void redis_conn_close(struct redis_conn *c); /* NULL is fine */

/* False when the peer closed it or sent something that nobody asked for. Does not wait. */
bool redis_conn_is_quiet(struct redis_conn *c);
/* Bytes have been received that redis_conn_receive() has not yet used. */
bool redis_conn_has_input(const struct redis_conn *c);

/* ERR_CLOSED, ERR_TIMEOUT; then close it: the stream has no known position any more. */
int redis_conn_send(struct redis_conn *c, struct str wire, uint64_t deadline_ns,
                    struct err *err) MUST_CHECK;
/* One reply. ERR_CLOSED, ERR_TIMEOUT, ERR_PEER (not RESP2), ERR_NO_MEMORY (does not fit). */
int redis_conn_receive(struct redis_conn *c, struct arena *arena, struct reply **out,
                       uint64_t deadline_ns, struct err *err) MUST_CHECK;

/* --- error replies that mean "could not be asked" --- */

/* The code for an error text whose first word is in the table of refusals (LOADING, NOAUTH, OOM,
 * ...), 0 for every other. A refused command did not run. */
int redis_refusal(struct str text);

/* --- back-off: how long to leave a Redis alone that could not be reached --- */

struct redis_backoff {
    uint64_t delay_ns;     /* before jitter; 0 while all is well */
    uint64_t failed_at_ns; /* of the latest failure */
    uint64_t retry_at_ns;
};

/* An attempt that began at `began_ns` failed: doubles the delay, once for all that failed together.
 */
void redis_backoff_fail(struct redis_backoff *b, uint64_t began_ns);

/* --- the pool --- */

struct redis_pool {
    const struct redis_target *target; /* borrowed */
    struct tls_context *tls;           /* borrowed; NULL: plain */
    const struct log *log;
    size_t max;
    struct mutex lock;
    struct cond changed; /* a connection or a place came free */
    struct list idle;    /* latest used first */
    size_t open;         /* idle, in use, or being opened */
    struct redis_backoff backoff;
    struct err failure; /* why the latest attempt failed */
};

void redis_pool_init(struct redis_pool *p, const struct redis_target *target,
                     struct tls_context *tls, size_t max, const struct log *log);
void redis_pool_release(struct redis_pool *p); /* no connection is in use */

/* A connection for one call: idle and quiet, or new. ERR_UNAVAILABLE (down, in back-off, none came
 * free in time), ERR_DENIED, ERR_INVALID. `fresh`: never an idle one. */
int redis_pool_take(struct redis_pool *p, struct redis_conn **out, bool fresh, uint64_t deadline_ns,
                    struct err *err) MUST_CHECK;
void redis_pool_give(struct redis_pool *p, struct redis_conn *c); /* it may be used again */
void redis_pool_drop(struct redis_pool *p, struct redis_conn *c); /* it may not */
void redis_pool_is_back(struct redis_pool *p); /* Redis answers: no back-off any more */

/* --- subscriptions --- */

struct redis_sub;

struct redis_subs {
    struct store *store;
    struct redis_pool *pool;           /* borrowed: told when Redis is back */
    const struct redis_target *target; /* borrowed */
    struct tls_context *tls;           /* borrowed; NULL: plain */
    const struct log *log;
    uint64_t timeout_ns;

    struct mutex lock; /* guards everything below */
    struct cond changed;
    struct list subs;
    struct buf leaving;        /* UNSUBSCRIBE commands not yet sent */
    struct thread thread;      /* started by the first subscription */
    int wake;                  /* eventfd: the thread looks at what it has to send */
    struct redis_sub *running; /* whose fn is being called */
    uint64_t message;          /* number of the latest message */
    uint64_t sent, confirmed;  /* SUBSCRIBE commands on this connection, and answers to them */
    uint64_t lapses;           /* connections that failed or were lost */
    bool connected, stop;
};

void redis_subs_init(struct redis_subs *s, struct store *store, const struct redis_target *target,
                     struct tls_context *tls, const struct log *log);
void redis_subs_release(struct redis_subs *s); /* ends the thread and all subscriptions */
int redis_subscribe(struct store_subscription **out, struct redis_subs *s, struct str channel,
                    store_message_fn *fn, void *ctx, struct err *err) MUST_CHECK;
void redis_unsubscribe(struct redis_subs *s, struct store_subscription *sub);

#endif
