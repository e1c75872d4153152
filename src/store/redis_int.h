/* The parts of the Redis engine: target, master, connection, pool, subscriptions, refusals. Only
 * for redis*.c. R1, R2, ... (Redis) and M1, M2, ... (Sentinel) are invariants of
 * docs/store-redis.md. */
#ifndef STORE_REDIS_INT_H
#define STORE_REDIS_INT_H

#include "os/thread.h"
#include "os/tls.h"
#include "store/resp.h"
#include "store/store_int.h"

/* --- which Redis, and as which user --- */

enum { REDIS_MAX_SENTINELS = 16 };

struct redis_target {
    char *host; /* NULL: a unix socket, or a master that sentinels know */
    uint16_t port;
    char *path;            /* of the unix socket; else NULL */
    char *user, *password; /* NULL when not given */
    int database;
    bool tls;
    bool try_login; /* the login may be meant for somebody else: that it is refused is no failure */

    char *master;                   /* the name that the sentinels know the master by; else NULL */
    struct redis_target *sentinels; /* owned; where each is, and as whom it is asked */
    size_t sentinel_count;
};

/* Reads the url of struct store_redis_options. ERR_INVALID: it is wrong; the error's text never has
 * a password. */
int redis_target_parse(struct redis_target *out, struct str url, int number,
                       struct err *err) MUST_CHECK;
void redis_target_release(struct redis_target *t);
/* Whether both are one server, or one master of the same sentinels; their databases may differ. */
bool redis_target_is_same(const struct redis_target *a, const struct redis_target *b);

/* --- one connection, which one thread uses at a time --- */

struct redis_master;

/* What is needed to make a connection; all borrowed. */
struct redis_endpoint {
    const struct redis_target *target;
    struct tls_context *tls;     /* NULL: plain */
    struct redis_master *master; /* NULL: the target has the address */
};

enum { REDIS_READ_SIZE = 16 * 1024 };

struct redis_conn {
    struct list node; /* in the pool while idle */
    int fd;
    struct tls *tls;     /* NULL: plain */
    bool reused;         /* has served a call before */
    uint64_t generation; /* of the master that it is to; 0 without sentinels */
    uint64_t idle_since_ns;
    struct resp resp;
    size_t from, to; /* what of `in` is not yet parsed */
    char in[REDIS_READ_SIZE];
};

/* Makes a connection: connects, logs in, selects the database, names the connection; with sentinels
 * it also checks that the server is a master. ERR_UNAVAILABLE: it cannot be reached, also when that
 * took too long, as no command was sent. ERR_DENIED: wrong password or user. ERR_INVALID: no such
 * database. */
int redis_conn_open(struct redis_conn **out, const struct redis_endpoint *e, uint64_t deadline_ns,
                    struct err *err) MUST_CHECK;
void redis_conn_close(struct redis_conn *c); /* NULL is fine */

/* False: the peer has closed the connection, or sent something unasked. Does not wait. */
bool redis_conn_is_quiet(struct redis_conn *c);
/* Whether bytes were received that redis_conn_receive() has not used yet. */
bool redis_conn_has_input(const struct redis_conn *c);

/* After ERR_CLOSED or ERR_TIMEOUT the connection must be closed, as it is not known how much was
 * sent. */
int redis_conn_send(struct redis_conn *c, struct str wire, uint64_t deadline_ns,
                    struct err *err) MUST_CHECK;
/* Reads one reply. ERR_CLOSED, ERR_TIMEOUT. ERR_PEER: it is not RESP2. ERR_NO_MEMORY: it does not
 * fit into the arena. */
int redis_conn_receive(struct redis_conn *c, struct arena *arena, struct reply **out,
                       uint64_t deadline_ns, struct err *err) MUST_CHECK;

/* --- error replies that mean "could not be asked" --- */

/* The code for an error reply whose first word is in the table of refusals (LOADING, NOAUTH, OOM,
 * ...); 0 for any other reply. A refused command did not run. */
int redis_refusal(struct str text);

/* --- back-off: how long a Redis is not tried after it could not be reached --- */

struct redis_backoff {
    uint64_t delay_ns;     /* before jitter; 0 while all is well */
    uint64_t failed_at_ns; /* of the latest failure */
    uint64_t retry_at_ns;
};

/* An attempt that began at `began_ns` has failed: doubles the delay, but only once for attempts
 * that failed together. */
void redis_backoff_fail(struct redis_backoff *b, uint64_t began_ns);

/* --- which server is the master; one thread asks the sentinels for several stores --- */

enum { REDIS_HOST_MAX = 255 };

struct redis_address {
    char host[REDIS_HOST_MAX + 1];
    uint16_t port;
};

/* A sentinel's answer about the master. */
struct sentinel_answer {
    bool heard; /* false: it did not answer, or does not know that master */
    struct redis_address address;
    uint64_t epoch; /* counted up by each failover */
};

/* Reads the replies to SENTINEL MASTER and SENTINEL GET-MASTER-ADDR-BY-NAME. ERR_NOT_FOUND: the
 * sentinel does not know that master. ERR_PEER: the replies are malformed. */
int sentinel_read(struct sentinel_answer *out, const struct reply *master,
                  const struct reply *address, struct err *err) MUST_CHECK;
/* The index of the answer that names the master to use from now on; -1: the known one stays (M2).
 * `failed`: the known master could not be reached, or is not a master any more. */
int sentinel_choose(const struct sentinel_answer *known, bool failed,
                    const struct sentinel_answer *answers, size_t count);

/* One sentinel; belongs to the thread that asks. */
struct sentinel {
    struct redis_endpoint endpoint;
    struct redis_conn *questions, *news; /* both or none; `news` hears of failovers */
    struct redis_backoff backoff;
    struct sentinel_answer answer;
};

/* Asks for the master of that name and fills the answer, over the present connections or new ones.
 * After a failure the connections are closed; the error's text names the sentinel. */
int sentinel_ask(struct sentinel *s, const char *name, uint64_t deadline_ns,
                 struct err *err) MUST_CHECK;
/* Reads what has arrived on `news`. The content does not matter: it is a reason to ask. */
void sentinel_hear(struct sentinel *s);
void sentinel_close(struct sentinel *s);

/* Takes *target over, which names sentinels; takes a reference of its own to `tls`. Asks no
 * sentinel yet. */
struct redis_master *redis_master_new(struct redis_target *target, struct tls_context *tls,
                                      uint64_t timeout_ns, const struct log *log);
struct redis_master *redis_master_ref(struct redis_master *m);
void redis_master_unref(struct redis_master *m); /* the last ends the thread; NULL is fine */

/* The master's address, and its generation, a number that grows when another server becomes the
 * master. ERR_UNAVAILABLE: no sentinel has answered yet. */
int redis_master_find(struct redis_master *m, uint64_t deadline_ns, struct redis_address *out,
                      uint64_t *generation, struct err *err) MUST_CHECK;
uint64_t redis_master_generation(struct redis_master *m); /* 0 of NULL */

/* What connections have found out about the master of that generation. Doubt: a connection was
 * lost, or the server says that it is a replica, so the sentinels are asked before the next
 * connection. The others: it could not be connected to as a master; it could be. */
void redis_master_doubt(struct redis_master *m, uint64_t generation); /* NULL is fine */
void redis_master_failed(struct redis_master *m, uint64_t generation);
void redis_master_works(struct redis_master *m, uint64_t generation);

/* An eventfd that is written to when the generation grows. */
struct redis_follower {
    struct list node;
    int wake;
};
void redis_master_follow(struct redis_master *m, struct redis_follower *f);
void redis_master_unfollow(struct redis_master *m, struct redis_follower *f); /* or never was one */

/* --- the pool --- */

struct redis_pool {
    const struct redis_endpoint *endpoint; /* borrowed */
    const struct log *log;
    size_t max;
    struct mutex lock;
    struct cond changed; /* a connection or a place came free */
    struct list idle;    /* latest used first */
    size_t open;         /* idle, in use, or being opened */
    struct redis_backoff backoff;
    struct err failure;         /* why the latest attempt failed */
    uint64_t failed_generation; /* of the master then: another one is tried at once */
};

void redis_pool_init(struct redis_pool *p, const struct redis_endpoint *endpoint, size_t max,
                     const struct log *log);
void redis_pool_release(struct redis_pool *p); /* no connection is in use */

/* Takes a connection for one call: an idle one, or a new one. `fresh`: never an idle one.
 * ERR_UNAVAILABLE: Redis is down, or in back-off, or no connection came free in time. ERR_DENIED,
 * ERR_INVALID. */
int redis_pool_take(struct redis_pool *p, bool fresh, uint64_t deadline_ns, struct redis_conn **out,
                    struct err *err) MUST_CHECK;
void redis_pool_give(struct redis_pool *p, struct redis_conn *c); /* it may be used again */
void redis_pool_drop(struct redis_pool *p, struct redis_conn *c); /* it may not */
void redis_pool_is_back(struct redis_pool *p); /* Redis answers: no back-off any more */

/* --- subscriptions --- */

struct redis_sub;

struct redis_subs {
    struct store *store;
    struct redis_pool *pool;               /* borrowed: told when Redis is back */
    const struct redis_endpoint *endpoint; /* borrowed */
    const struct log *log;
    uint64_t timeout_ns;
    struct redis_follower follower; /* its `wake` is that below */

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

void redis_subs_init(struct redis_subs *s, struct store *store,
                     const struct redis_endpoint *endpoint, const struct log *log);
void redis_subs_release(struct redis_subs *s); /* ends the thread and all subscriptions */
int redis_subscribe(struct store_subscription **out, struct redis_subs *s, struct str channel,
                    store_message_fn *fn, void *ctx, struct err *err) MUST_CHECK;
void redis_unsubscribe(struct redis_subs *s, struct store_subscription *sub);

#endif
