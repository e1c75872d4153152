/* The coordination store: Redis's types and commands, by an engine of our own or by Redis itself.
 * docs/store.md has the list of commands, the embedded engine's layout and its invariants.
 *
 * A struct store is one database (appDB, queueDB, lockDB, configDB, swarmDB). Commands are argument
 * vectors, answers are replies, with exactly Redis 7's semantics for the commands in
 * store/commands.def. All calls are blocking, any thread.
 *
 * Two kinds of failure, never mixed:
 *   a negative code from the call: the store could not be asked (down, timed out, out of space).
 *       The command may or may not have run when the code is ERR_TIMEOUT or ERR_CLOSED; it did not
 *       run when it is ERR_UNAVAILABLE. When the answer does not fit into the arena
 *       (ERR_NO_MEMORY) Redis has run it and the embedded engine has undone it.
 *       docs/store-redis.md has all codes. None is ever to be read as "absent";
 *   an error reply (REPLY_ERROR): the store answered that the command is wrong. store_* calls that
 *       expect a certain type turn it into ERR_TYPE or ERR_INVALID with Redis's text. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/err.h"
#include "base/log.h"
#include "store/reply.h"

struct store;
struct db;

/* --- opening --- */

enum store_durability { STORE_DURABLE, STORE_VOLATILE };

/* The column family of the embedded database number `n` is "store<n>": db/'s opener passes
 * store_cf_specs() among its families. */
struct db_cf_spec;
enum { STORE_DATABASES = 5 };
const struct db_cf_spec *store_cf_specs(void); /* STORE_DATABASES of them */

/* `db` is borrowed and must outlive the store. */
int store_open_embedded(struct store **out, struct db *db, int number, enum store_durability d,
                        const struct log *log, struct err *err) MUST_CHECK;

struct store_redis_options {
    /* redis://[user][:password@]host[:port][/db], rediss:// (TLS), unix:///path?db=n,
     * redis+sentinel://[user][:password@]host[:port],.../name[/db], rediss+sentinel:// (TLS) */
    struct str url;
    int number;             /* database; used when the url names none */
    size_t max_connections; /* 0: 32; a caller past it waits */
    uint64_t timeout_ms;    /* connect and each round trip; 0: 2000 */
    const char *ca_file;    /* rediss: NULL: the system's roots */
    bool tls_insecure;
    struct store *beside; /* NULL, or one that is open: the master of the same sentinels is followed
                             once for both; they may be closed in any order */
    const struct log *log;
};
/* Does not connect: a Redis that is down at start is found by the first command, and comes back by
 * itself. ERR_INVALID: the url is wrong. */
int store_open_redis(struct store **out, const struct store_redis_options *o,
                     struct err *err) MUST_CHECK;
/* No call may be running; subscriptions end; NULL is fine. */
void store_close(struct store *s);

/* Says that the stores are databases of one server, so that a script on one may reach the others by
 * SELECT with their store_number(). Embedded: all of one db; Redis: all at one address, or all
 * at one master of the same sentinels; else ERR_INVALID. Before other threads use them; they are
 * closed together. */
int store_join(struct store *const *stores, size_t count, struct err *err) MUST_CHECK;
int store_number(const struct store *s); /* of the database */

/* --- commands --- */

/* One command. The reply lives in `arena`. */
int store_command(struct store *s, struct arena *arena, struct reply **out, const struct str *argv,
                  size_t argc, struct err *err) MUST_CHECK;

/* The same with C strings and strs in place:
 *     store_call(s, arena, &reply, err, STR("HSET"), key, STR("state"), state);
 */
#define store_call(s, arena, out, err, ...)                                                        \
    store_command((s), (arena), (out), (const struct str[]){__VA_ARGS__},                          \
                  sizeof((const struct str[]){__VA_ARGS__}) / sizeof(struct str), (err))

/* Several commands as one atomic step (MULTI/EXEC) in one round trip. *out is an array of `count`
 * replies; as in Redis an error reply of one does not undo the others. A command that could not
 * even be queued (unknown name, wrong number of arguments) means that none ran: its own error is in
 * its place and "EXECABORT Transaction discarded because of previous errors." in the others'. */
struct store_args {
    const struct str *argv;
    size_t argc;
};
int store_atomic(struct store *s, struct arena *arena, struct reply **out,
                 const struct store_args *commands, size_t count, struct err *err) MUST_CHECK;

/* Several commands without atomicity, pipelined. */
int store_pipeline(struct store *s, struct arena *arena, struct reply **out,
                   const struct store_args *commands, size_t count, struct err *err) MUST_CHECK;

/* --- scripts --- */

/* Every multi-step change is a script: a file in store/lua/, declared by a row of the script table
 * of the room that owns it and embedded into the binary at build time. A script reads and writes
 * only through redis.call, with KEYS and ARGV. `readonly` scripts run beside writers. What one
 * publishes reaches subscribers of the store that it was run on. */
struct script {
    const char *name; /* "queue/enqueue" */
    struct str source;
    bool readonly, relaxed; /* relaxed: each run of it is */
    bool always;            /* runs also while the store is halted (store_watch()) */
    char sha1[41];          /* filled by script_init() once at start */
};
void script_init(struct script *script);

/* The same of a room's table, as its scripts.def has it. */
enum script_flags { SCRIPT_READS = 1, SCRIPT_RELAXED = 2, SCRIPT_ALWAYS = 4 };
struct script_row {
    const char *name, *source;
    unsigned flags;
};
void scripts_init(struct script *out, const struct script_row *rows, size_t count);

/* What a run of a script is given, as EVAL has it. */
struct script_run {
    const struct script *script;
    struct store_args keys, args;
    bool relaxed; /* embedded: visible at once, and on disk with the next durable step at the latest
                   */
};
int store_eval(struct store *s, struct arena *arena, struct reply **out,
               const struct script_run *run, struct err *err) MUST_CHECK;
/* The same; an error reply is ERR_INVALID with its text. */
int script_eval(struct store *s, struct arena *arena, struct reply **out,
                const struct script_run *run, struct err *err) MUST_CHECK;

/* --- a store that is not the one that was known (docs/store-redis.md, I1 to I7) --- */

#define STORE_CONFIG_COUNT                                                                         \
    STR("w:config") /* in configDB; each change of the configuration adds 1 */

struct store_watch {
    /* While it is true no call reaches the store but scripts that run always: the others fail with
     * why(), ERR_STORE, and nothing was done. */
    const _Atomic(bool) *halted;
    int (*why)(void *ctx, struct err *err);
    /* Asks the store whether it is the known one. */
    int (*check)(void *ctx, struct err *err);
    void *ctx;
};
/* Before other threads use the store. */
void store_set_watch(struct store *s, const struct store_watch *w);
/* For who has read something and is about to put it in the place of what it knew: fails when the
 * store is not the known one any more. One round trip; 0 without a watch. */
int store_is_known(struct store *s, struct err *err) MUST_CHECK;
/* For who serves without asking the store: ERR_STORE while it is halted. Never waits. Both: no
 * store is never halted. */
int store_may_serve(const struct store *s, struct err *err) MUST_CHECK;

/* --- messages --- */

/* Called on the store's own thread, one at a time; must be short; may call store_command. A store
 * that lost its connection calls with a NULL channel once it is subscribed again: messages may have
 * been missed. */
typedef void store_message_fn(void *ctx, struct str channel, struct str message);

/* When it returns 0, every message published from now on arrives, or fn is called with a NULL
 * channel before any that does: a Redis that is down is no error, the subscription is made when it
 * is back. store_unsubscribe() must not be called from inside fn. */
struct store_subscription;
int store_subscribe(struct store_subscription **out, struct store *s, struct str channel,
                    store_message_fn *fn, void *ctx, struct err *err) MUST_CHECK;
void store_unsubscribe(
    struct store_subscription *sub); /* fn is not running afterwards; NULL is fine */

/* --- typed helpers: an unexpected reply type is ERR_TYPE, an error reply ERR_INVALID/ERR_TYPE ---
 */

/* Is it answering? */
int store_ping(struct store *s, struct err *err) MUST_CHECK;
/* Does it take writes? For /readyz. Writes a key and removes it in one step, and leaves nothing. */
int store_probe(struct store *s, struct err *err) MUST_CHECK;
/* The word by which a Redis said that it takes nothing ("OOM", "READONLY"; docs/store-redis.md,
 * R5), from an error's text; NULL: it said none, and could not be asked for another reason. */
const char *store_refusal(const struct err *err);
/* ERR_STORE with words for a client, who is not to know hosts: what cannot be done, and `word`, as
 * store_refusal() has it. */
int store_cannot(struct err *err, const char *what, const char *word);
/* Calls `fn` with the keys that match the pattern (Redis's SCAN), a page at a time, until it fails.
 * The arena is of the page. A key that exists all the time comes at least once; any may come twice.
 */
typedef int store_scan_fn(void *ctx, const struct reply *keys, struct arena *a, struct err *err);
int store_scan(struct store *s, struct str pattern, store_scan_fn *fn, void *ctx,
               struct err *err) MUST_CHECK;
int reply_expect(const struct reply *r, enum reply_type type, struct err *err) MUST_CHECK;

/* Escape a variable part of a key: ':' and '%' become %3A and %25; everything else as it is. */
void store_key_part(struct buf *out, struct str part);
/* The reverse; ERR_PARSE. */
int store_key_unescape(struct buf *out, struct str part) MUST_CHECK;
/* What is to match literally in a pattern of SCAN. */
void store_pattern_part(struct buf *out, struct str literal);

#endif
