/* The coordination store: Redis's types and commands, executed by weir's embedded engine or by
 * Redis itself. docs/store.md has the list of commands, the embedded engine's layout and its
 * invariants.
 *
 * A struct store is one database (appDB, queueDB, lockDB, configDB, swarmDB). Commands are argument
 * vectors and answers are replies, with exactly Redis 7's semantics for the commands in
 * store/commands.def. All calls block; any thread may call.
 *
 * The place for the reply (`arena` and `out`) comes before the command in all calls here, because
 * the command may be a list of arguments of any length.
 *
 * There are two kinds of failure, which are never mixed:
 *   a negative code from the call: the store could not be asked (down, timed out, out of space).
 *       After ERR_TIMEOUT or ERR_CLOSED the command may or may not have run; after ERR_UNAVAILABLE
 *       it did not. When the answer does not fit into the arena (ERR_NO_MEMORY), Redis has run the
 *       command and the embedded engine has undone it. docs/store-redis.md has all codes. No code
 *       may be understood as "the key is absent";
 *   an error reply (REPLY_ERROR): the store answered that the command is wrong. store_* calls that
 *       expect a certain type turn it into ERR_TYPE or ERR_INVALID with Redis's text. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/err.h"
#include "base/log.h"
#include "store/reply.h"

struct store;
struct db;

/* --- opening and closing --- */

enum store_durability { STORE_DURABLE, STORE_VOLATILE };

/* The column families of the embedded databases, "store<number>". The code that opens the database
 * passes them to db_open(). */
struct db_cf_spec;
enum { STORE_DATABASES = 5 };
const struct db_cf_spec *store_cf_specs(void); /* an array of STORE_DATABASES */

/* Opens database `number` of the embedded engine. `db` is borrowed and must outlive the store. */
int store_open_embedded(struct store **out, struct db *db, int number, enum store_durability d,
                        const struct log *log, struct err *err) MUST_CHECK;

struct store_redis_options {
    /* redis://[user][:password@]host[:port][/db], rediss:// (TLS), unix:///path?db=n,
     * redis+sentinel://[user][:password@]host[:port],.../name[/db], rediss+sentinel:// (TLS) */
    struct str url;
    int number;             /* number of the database; used when the url names none */
    size_t max_connections; /* a caller waits while all connections are in use; 0: 32 connections */
    uint64_t timeout_ms;    /* limit for a whole call, with the wait for a connection; 0: 2000 */
    const char *ca_file;    /* certificates to trust with TLS; NULL: the system's roots */
    bool tls_insecure;
    struct store *beside; /* another open store; if it has the same sentinels, both share the thread
                             that asks them. They may be closed in any order. NULL: none */
    const struct log *log;
};
/* Opens a store on Redis. Does not connect yet: while Redis is down commands fail, and they succeed
 * when Redis is back. ERR_INVALID: the url is wrong. */
int store_open_redis(struct store **out, const struct store_redis_options *o,
                     struct err *err) MUST_CHECK;
/* Closes the store and ends its subscriptions. No other call may be running. NULL is fine. */
void store_close(struct store *s);

/* Joins stores that are databases of one server: a script on one of the stores may then use the
 * other stores, by SELECT with their store_number(). ERR_INVALID: they are not on one server. One
 * server means, for embedded stores, one db; for Redis, one address, or one master of the same
 * sentinels. Called before other threads use the stores; they are closed together. */
int store_join(struct store *const *stores, size_t count, struct err *err) MUST_CHECK;
int store_number(const struct store *s); /* the number of the store's database */
/* How long a call may wait for the server. 0: the store is embedded. */
uint64_t store_timeout_ns(const struct store *s);

/* --- commands --- */

/* Runs one command. The reply is made in the arena. */
int store_command(struct store *s, struct arena *arena, struct reply **out, const struct str *argv,
                  size_t argc, struct err *err) MUST_CHECK;

/* Like store_command(), but with the arguments in the call:
 *     store_call(s, arena, &reply, err, STR("HSET"), key, STR("state"), state); */
#define store_call(s, arena, out, err, ...)                                                        \
    store_command((s), (arena), (out), (const struct str[]){__VA_ARGS__},                          \
                  sizeof((const struct str[]){__VA_ARGS__}) / sizeof(struct str), (err))

/* The arguments of one command, of which the first is its name. */
struct store_args {
    const struct str *argv;
    size_t argc;
};
/* Runs several commands as one atomic step (MULTI/EXEC), in one round trip. *out is an array of
 * `count` replies. As in Redis, an error reply of one command does not undo the other commands. If
 * a command cannot even be queued (unknown name, wrong number of arguments), none runs: its own
 * error is in its place, and "EXECABORT Transaction discarded because of previous errors." in all
 * other places. */
int store_atomic(struct store *s, struct arena *arena, struct reply **out,
                 const struct store_args *commands, size_t count, struct err *err) MUST_CHECK;

/* Runs several commands in one round trip, but not atomically. *out is an array of `count` replies.
 */
int store_pipeline(struct store *s, struct arena *arena, struct reply **out,
                   const struct store_args *commands, size_t count, struct err *err) MUST_CHECK;

/* --- scripts --- */

/* A change that needs several commands is a script: a file in the folder lua/ of its room, with a
 * row in the room's scripts.def, built into the program. A script reads and writes only through
 * redis.call(), with KEYS and ARGV. Scripts that only read run at the same time as writers.
 * Messages that a script publishes reach the subscribers of the store on which it was run. */
struct script {
    const char *name; /* such as "queue_add" */
    struct str source;
    bool readonly; /* the script only reads */
    bool relaxed;  /* each run is relaxed (struct script_run) */
    bool always;   /* the script runs even while the store is halted (struct store_watch) */
    bool grouped;  /* on Redis, runs of several threads are sent together; if the connection is
                      then lost, each of them may have run */
    char sha1[41]; /* hexadecimal; set by script_init(), once, at the start */
};
void script_init(struct script *script);

/* A row of a room's scripts.def. The flags set the members readonly, relaxed, always and grouped of
 * struct script. */
enum script_flags { SCRIPT_READS = 1, SCRIPT_RELAXED = 2, SCRIPT_ALWAYS = 4, SCRIPT_GROUPED = 8 };
struct script_row {
    const char *name, *source;
    unsigned flags;
};
/* Makes a script in out[] from each row, and calls script_init() for it. */
void scripts_init(struct script *out, const struct script_row *rows, size_t count);

/* One run of a script: the arguments of EVAL. */
struct script_run {
    const struct script *script;
    struct store_args keys, args;
    /* In the embedded engine the call does not wait for the disk; the change is visible at once,
     * and on disk with the next durable step at the latest. */
    bool relaxed;
};
int store_eval(struct store *s, struct arena *arena, struct reply **out,
               const struct script_run *run, struct err *err) MUST_CHECK;
/* Like store_eval(), but an error reply becomes ERR_INVALID with its text. */
int script_eval(struct store *s, struct arena *arena, struct reply **out,
                const struct script_run *run, struct err *err) MUST_CHECK;

/* --- recognizing a store that is not the known one (docs/store-redis.md, I1 to I7) --- */

#define STORE_CONFIG_COUNT                                                                         \
    STR("w:config") /* a key in configDB: counts the changes of the configuration */

struct store_watch {
    /* While *halted is true, only scripts with `always` reach the store. All other calls do nothing
     * and fail with the error of why(), which is ERR_STORE. */
    const _Atomic(bool) *halted;
    int (*why)(void *ctx, struct err *err);
    /* Asks the store whether it is still the known one: not empty, not another store, and without
     * lost changes of the configuration (coord/installation.h). */
    int (*check)(void *ctx, struct err *err);
    void *ctx;
};
/* Sets the watch. Called before other threads use the store. */
void store_set_watch(struct store *s, const struct store_watch *w);
/* Checks that the store is still the known one, in one round trip. Called after data were read
 * from the store, before they replace a copy in memory. Returns 0 without a watch, or when `s`
 * is NULL. */
int store_is_known(struct store *s, struct err *err) MUST_CHECK;
/* Checks that the store is not halted, without waiting. Called by parts that serve clients from
 * memory. ERR_STORE: it is halted. Returns 0 when `s` is NULL. */
int store_may_serve(const struct store *s, struct err *err) MUST_CHECK;

/* --- messages --- */

/* A subscriber's function. Called by the store's own thread, one call at a time. The function must
 * be short; it may call store_command(). `channel.p` NULL: the connection was lost and the
 * subscription is made again, so messages may have been missed. */
typedef void store_message_fn(void *ctx, struct str channel, struct str message);

struct store_subscription;
/* Subscribes to a channel. After it has returned 0, `fn` gets every message that is published; if
 * some may have been missed, `fn` is called with a NULL channel before the next message. A Redis
 * that is down is not an error: the subscription is made when Redis is back. store_unsubscribe()
 * must not be called from inside `fn`. */
int store_subscribe(struct store_subscription **out, struct store *s, struct str channel,
                    store_message_fn *fn, void *ctx, struct err *err) MUST_CHECK;
/* Ends the subscription. Its fn is not running, and is not called again, once this returns. NULL is
 * fine. */
void store_unsubscribe(struct store_subscription *sub);

/* --- typed helpers: an unexpected reply type is ERR_TYPE, an error reply ERR_INVALID/ERR_TYPE ---
 */

/* Checks that the store answers. */
int store_ping(struct store *s, struct err *err) MUST_CHECK;
/* Checks that the store accepts writes, for /readyz: writes a key and removes it in one step. */
int store_probe(struct store *s, struct err *err) MUST_CHECK;
/* Returns the word with which Redis refused a command ("OOM", "READONLY"; docs/store-redis.md, R5),
 * found in the text of an error. NULL: the call failed for another reason. */
const char *store_refusal(const struct err *err);
/* Sets *err to ERR_STORE with a text for a client, which says that `what` cannot be done and names
 * no host. `word` is the answer of store_refusal(); may be NULL. */
int store_cannot(struct err *err, const char *what, const char *word);
/* Calls `fn` with the keys that match the pattern (Redis's SCAN), a page at a time, until there are
 * no more or `fn` fails. The arena is released after each call of `fn`. A key that exists all the
 * time comes at least once; any key may come twice. */
typedef int store_scan_fn(void *ctx, const struct reply *keys, struct arena *a, struct err *err);
int store_scan(struct store *s, struct str pattern, store_scan_fn *fn, void *ctx,
               struct err *err) MUST_CHECK;
int reply_expect(const struct reply *r, enum reply_type type, struct err *err) MUST_CHECK;

/* Appends a variable part of a key to *out, escaped: ':' becomes %3A and '%' becomes %25. */
void store_key_part(struct buf *out, struct str part);
/* The reverse of store_key_part(). ERR_PARSE: store_key_part() cannot have written this text. */
int store_key_unescape(struct buf *out, struct str part) MUST_CHECK;
/* Appends a text to a pattern of store_scan(), escaped so that it matches literally. */
void store_pattern_part(struct buf *out, struct str literal);

#endif
