/* The parts of the redis engine: target, master, connection, pool, subscriptions, refusals. For
 * redis*.c only. docs/store-redis.md has the invariants that the comments cite as R1, R2, ... and,
 * of Sentinel, M1, M2, ... */
#ifndef STORE_REDIS_INT_H
#define STORE_REDIS_INT_H

#include "os/thread.h"
#include "os/tls.h"
#include "store/resp.h"
#include "store/store_int.h"

/* --- where, and as whom --- */

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

/* Decodes the url of struct store_redis_options. ERR_INVALID; the text never holds a password. */
int redis_target_parse(struct redis_target *out, struct str url, int number,
                       struct err *err) MUST_CHECK;
void redis_target_release(struct redis_target *t);
/* One server, or one master of the same sentinels, whichever database. */
bool redis_target_is_same(const struct redis_target *a, const struct redis_target *b);

/* --- one connection; belongs to one thread at a time --- */

struct redis_master;

/* Everything that a new connection needs; all borrowed. */
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

/* Connected, authenticated, database selected, named; by sentinels: to a server that says it is a
 * master. Every failure is ERR_UNAVAILABLE (also one that took too long: no command was sent),
 * ERR_DENIED (password, user) or ERR_INVALID (database). */
int redis_conn_open(struct redis_conn **out, const struct redis_endpoint *e, uint64_t deadline_ns,
                    struct err *err) MUST_CHECK;
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

/* --- which server is the master: asked of sentinels, by one thread for several stores --- */

enum { REDIS_HOST_MAX = 255 };

struct redis_address {
    char host[REDIS_HOST_MAX + 1];
    uint16_t port;
};

/* What a sentinel says of the master. */
struct sentinel_answer {
    bool heard; /* false: it did not answer, or does not know that master */
    struct redis_address address;
    uint64_t epoch; /* counted up by each failover */
};

/* Reads the answers to SENTINEL MASTER and SENTINEL GET-MASTER-ADDR-BY-NAME. ERR_NOT_FOUND: the
 * sentinel has no such master; ERR_PEER: it answers something else. */
int sentinel_read(struct sentinel_answer *out, const struct reply *master,
                  const struct reply *address, struct err *err) MUST_CHECK;
/* Index of the answer that names the master to use from now on, -1: stay with `known` (M2).
 * `failed`: the known master could not be reached, or is none any more. */
int sentinel_choose(const struct sentinel_answer *known, bool failed,
                    const struct sentinel_answer *answers, size_t count);

/* One sentinel, as the thread that asks it sees it. */
struct sentinel {
    struct redis_endpoint endpoint;
    struct redis_conn *questions, *news; /* both or none; `news` hears of failovers */
    struct redis_backoff backoff;
    struct sentinel_answer answer;
};

/* Asks for the master of that name, over the connections that are there or over new ones, before
 * the deadline, and fills the answer. After a failure (the text names the sentinel) the connections
 * are closed. */
int sentinel_ask(struct sentinel *s, const char *name, uint64_t deadline_ns,
                 struct err *err) MUST_CHECK;
/* Reads what came on `news`, whatever it says: it is a reason to ask. */
void sentinel_hear(struct sentinel *s);
void sentinel_close(struct sentinel *s);

/* Takes over *target, which is one by sentinels; `tls` is borrowed by one reference of its own.
 * Asks nobody yet. */
struct redis_master *redis_master_new(struct redis_target *target, struct tls_context *tls,
                                      uint64_t timeout_ns, const struct log *log);
struct redis_master *redis_master_ref(struct redis_master *m);
void redis_master_unref(struct redis_master *m); /* the last ends the thread; NULL is fine */

/* Where the master is, and the number of this knowledge: it grows whenever another server becomes
 * the master. ERR_UNAVAILABLE: no sentinel has told. */
int redis_master_find(struct redis_master *m, struct redis_address *out, uint64_t *generation,
                      uint64_t deadline_ns, struct err *err) MUST_CHECK;
uint64_t redis_master_generation(struct redis_master *m); /* 0 of NULL */

/* What connections to the master of that generation told: it must be asked for before the next
 * connection (one was lost, or the server says that it is a replica); it could not be connected to
 * as a master; it could be. */
void redis_master_doubt(struct redis_master *m, uint64_t generation); /* NULL is fine */
void redis_master_failed(struct redis_master *m, uint64_t generation);
void redis_master_works(struct redis_master *m, uint64_t generation);

/* Writes to an eventfd when the generation grows. */
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
