/* The inside of the embedded engine; only for its own files.
 *
 * A *run* is one atomic step (a command, a batch, a script). It has one view of the data and one
 * reading of the clock. A *call* is one command in a run. A run is used by one thread at a time: by
 * the caller's thread when it only reads, by the thread that applies the database's changes when it
 * may write. "Invariant n" is number n in docs/store.md. */
#ifndef STORE_EMBEDDED_INT_H
#define STORE_EMBEDDED_INT_H

#include "base/buf.h"
#include "base/hash.h"
#include "db/db.h"
#include "os/thread.h"
#include "store/rows.h"
#include "store/store_int.h"

struct lua_pool;
struct pubsub;
struct collector;
struct pubsub_ticket;

struct embedded {
    struct store base;
    struct db *db; /* borrowed */
    struct db_cf *cf;
    enum db_durability durability;
    const struct log *log;
    uint64_t seed;                /* seed of the hash that is part of row keys */
    _Atomic(int64_t) clock_shift; /* ms added to the wall clock; only tests change it */
    struct lua_pool *lua;
    struct pubsub *pubsub;
    struct collector *collector;
    /* The stores that store_join() has joined with this one, by their numbers; NULL: none. */
    struct embedded *joined[STORE_DATABASES];
};

static inline struct embedded *embedded_of(struct store *s)
{
    return container_of(s, struct embedded, base);
}

/* For tests: sets the store's clock `ms` ahead of the wall clock. */
void embedded_shift_clock(struct store *s, int64_t ms);
/* For tests: sets how long a script may run. */
void embedded_limit_scripts(struct store *s, uint64_t ms);
/* For tests: returns when all garbage and all expired keys have been removed. */
void embedded_collect(struct store *s);

/* --- the run: one atomic step --- */

/* A cache of the owner rows that a script has read, by key, because a script mostly reads the same
 * few rows again. It holds only collections and absent keys, because a string may have any length.
 * Every write of an owner row updates it. */
enum { OWNER_SLOTS = 16, OWNER_KEY_MAX = 255 };

struct owner_cache {
    struct owner_slot {
        bool used;
        unsigned char key_len;
        unsigned char database;
        uint64_t hash;
        struct meta m;
        char key[OWNER_KEY_MAX];
    } slots[OWNER_SLOTS];
    /* The pairs of small hashes: slots[i].m.value points into pairs[i]. */
    char pairs[OWNER_SLOTS][SMALL_BYTES];
};

struct run {
    /* The database that commands work on at present; a script may SELECT another. */
    struct embedded *e;
    struct embedded *home; /* the database on which the step was called */
    struct db_view *view;
    struct db_tx *tx; /* NULL: this run only reads */
    int64_t now_ms;   /* the time at which the step began (docs/store.md, invariant 7) */
    struct err *err;
    /* Code of the first failure, after which the run is undone and no reply is valid; 0: none. */
    int code;
    struct buf row; /* the value of the row read last */
    /* The next free version of each database (docs/store.md, invariant 2); 0: not read yet. */
    uint64_t next_version[STORE_DATABASES];
    /* garbage[n]: a garbage row was written to database n, so its collector must be woken. */
    bool garbage[STORE_DATABASES];
    /* The run has looked for a sub row that does not exist (docs/store.md, invariant 8). */
    bool missed;
    /* The owner row that was loaded last; last_owner.value is not valid. */
    struct meta last_owner;
    struct pubsub_ticket *published;
    struct owner_cache *owners; /* the cache of the running script; NULL: no script runs */
};

/* Records `code` in run->code if it is the first failure of the run; returns `code`. */
int run_fail(struct run *run, int code);

/* Reads a row; *value is borrowed until the next read. False: there is no such row, or the read
 * failed and run->code is set. */
bool run_get(struct run *run, struct str key, struct str *value);
void run_put(struct run *run, struct str key, struct str value);
void run_delete(struct run *run, struct str key);
uint64_t run_new_version(struct run *run);
uint64_t run_hash(const struct run *run, struct str s);

/* --- the call: one command of a run --- */

struct cmd;

struct call {
    struct run *run;
    const struct cmd *command;
    const struct str *argv;
    size_t argc;
    struct arena *arena; /* holds the reply and temporary data */
    struct reply *reply; /* filled by the command; nil at first */
};

typedef void cmd_fn(struct call *c);

/* Declares the handler of every command: cmd_get, cmd_set, ... */
#define COMMAND(name, arity, flags, first, last, step, handler) cmd_fn cmd_##handler;
#include "store/commands.def"
#undef COMMAND

enum cmd_flags {
    CMD_READ = 1,    /* only reads, so it may run at the same time as writers */
    CMD_WRITE = 2,   /* may write, so it runs in a change of the database */
    CMD_ROW = 4,     /* reads a single row, so it needs no snapshot */
    CMD_MEMBER = 8,  /* reads an owner row and one sub row, without a snapshot (invariant 8) */
    CMD_RANDOM = 16, /* the answer is random, or depends on the time */
    CMD_SCRIPT = 32, /* runs scripts, so a script may not call it */
    CMD_PUBLISH = 64,
};

struct cmd {
    const char *name; /* lower case, as in Redis's error texts */
    int arity;        /* number of arguments, the name included; -n: at least n */
    unsigned flags;
    int first_key, last_key, key_step;
    cmd_fn *fn;
};

const struct cmd *cmd_lookup(struct str name); /* NULL: no such command */
bool cmd_arity_ok(const struct cmd *command, size_t argc);

/* Looks up the call's command and sets c->command. False: the name is unknown or the number of
 * arguments is wrong, and the call was answered with that error. */
bool call_find(struct call *c);

/* --- setting the reply of a call; strings must be in the arena or static --- */

static inline struct reply as_int(int64_t v)
{
    return (struct reply){.type = REPLY_INTEGER, .integer = v};
}

static inline struct reply as_bulk(struct str s)
{
    return (struct reply){.type = REPLY_BULK, .str = s};
}

static inline struct reply as_nil(void)
{
    return (struct reply){.type = REPLY_NIL};
}

static inline struct reply as_status(struct str s)
{
    return (struct reply){.type = REPLY_STATUS, .str = s};
}

static inline void answer_int(struct call *c, int64_t v)
{
    *c->reply = as_int(v);
}

static inline void answer_ok(struct call *c)
{
    *c->reply = as_status(STR("OK"));
}

void answer_bulk(struct call *c, struct str s); /* copies `s` into the arena */
void answer_error(struct call *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
void answer_wrong_type(struct call *c);
void answer_syntax(struct call *c);
void answer_not_integer(struct call *c);
void answer_wrong_args(struct call *c);
/* Answers an array of `n` nils; returns its items, or NULL when the arena is full. */
struct reply *answer_array(struct call *c, size_t n);

/* An array of replies that grows. */
struct items {
    struct reply *p;
    size_t len, cap;
};
void items_push(struct call *c, struct items *items, struct reply r);
void items_push_copy(struct call *c, struct items *items, struct str s);
void answer_items(struct call *c, const struct items *items);

/* --- arguments; false: the argument is wrong, and the call was answered with Redis's error --- */

/* Reads an integer as Redis's string2ll() does: no blanks, no '+', no leading zeros. */
bool number_parse(struct str s, int64_t *out);
bool double_parse(struct str s, double *out);
bool long_double_parse(struct str s, long double *out);
struct str double_print(struct arena *a, double v); /* prints a double as RESP2 does */
/* Adds both numbers, and prints the sum in the form that INCRBYFLOAT and HINCRBYFLOAT store and
 * answer. False: the call was answered with an error. */
bool float_sum(struct call *c, long double value, long double by, struct str *out);

bool arg_is(const struct call *c, size_t i, const char *word); /* ignores case */
bool arg_int(struct call *c, size_t i, int64_t *out);
bool arg_int_between(struct call *c, size_t i, int64_t min, int64_t max, int64_t *out);
/* Reads an argument that must be a number of 0 or more. `text` is the error's text; NULL: Redis's
 * usual text. */
bool arg_positive(struct call *c, size_t i, const char *text, int64_t *out);
bool arg_double(struct call *c, size_t i, double *out);

/* Applies Redis's rules for a range of indexes to `count` items: a negative index counts from the
 * end, and the range is cut to the items that exist. False: the range is empty. */
bool range_normalize(int64_t *start, int64_t *stop, uint64_t count);

/* --- walks over rows, in the order of their keys --- */

struct walk {
    struct db_iter *it;
    struct run *run;
    struct str key, value; /* the current row; borrowed until walk_next() or walk_close() */
};

/* Begins a walk over the rows whose keys are in [from, to). Both keys are borrowed until
 * walk_close(). */
void walk_open(struct walk *w, struct run *run, struct str from, struct str to, bool reverse);
bool walk_next(struct walk *w); /* false: the end was reached, or reading failed (run->code) */
void walk_close(struct walk *w);

/* The range of keys of all rows with one tag and one version. */
struct version_range {
    struct row from, to;
};
void version_range(struct version_range *r, enum row_tag tag, uint64_t version);
void walk_version(struct walk *w, struct run *run, struct version_range *r, bool reverse);

/* --- keys and their values --- */

struct object {
    struct str key;
    uint64_t hash;
    struct meta m;         /* m.type TYPE_NONE: the key does not exist */
    enum value_type was;   /* the type in the stored row */
    int64_t was_expire_ms; /* the expiry time in the stored row */
    bool changed;          /* a member was written, so the key's own row (meta row) must be saved */
};

/* Reads the key's own row (the *meta row*; docs/store.md calls it the owner row). If the key has
 * expired and the run may write, the key is removed. False: the read failed. */
bool object_load(struct call *c, struct str key, struct object *o);
/* Like object_load(), but if the key has another type, answers WRONGTYPE and returns false. */
bool object_want(struct call *c, struct str key, enum value_type type, struct object *o);

/* Turns an object that does not exist into an empty collection. */
void object_create(struct call *c, struct object *o, enum value_type type);
/* Writes the meta row, or removes the key of a collection that has become empty. Keeps invariants 4
 * and 6. */
void object_save(struct call *c, struct object *o);
/* Replaces the object by a string. expire_ms 0: it never expires. */
void object_set_string(struct call *c, struct object *o, struct str value, int64_t expire_ms);
void object_set_expire(struct call *c, struct object *o, int64_t expire_ms);
/* Removes the key, if it exists (docs/store.md, invariant 3). */
void object_drop(struct call *c, struct object *o);
/* Moves `o` to the key of `to`, whose old value is removed first. The version and the sub rows of
 * `o` stay. */
void object_rename(struct call *c, struct object *o, struct object *to);

/* Reads a member of a hash, set or sorted set (members.c). *value is borrowed until the next read.
 * False: there is no such member, or the read failed. */
bool member_get(struct call *c, const struct object *o, struct str member, struct str *value);
/* Sets a member and returns whether it is new. Changes o->m and o->changed; the caller saves the
 * object. */
bool member_put(struct call *c, struct object *o, struct str member, struct str value);
/* Like member_put(), but for a caller that knows whether the member exists. */
void member_write(struct call *c, struct object *o, struct str member, struct str value,
                  bool is_new);
bool member_delete(struct call *c, struct object *o, struct str member);
/* Returns the member's name from the key of its row, which row_hashed() has made. */
struct str member_of(struct str row_key);

/* A walk over the members of a collection. It begins at the first member whose hash is the `from`
 * of members_open() or higher; a small hash is always walked as a whole. */
struct member_walk {
    struct walk rows;
    struct row from, to;
    struct str pairs;         /* the pairs of a small hash that are not visited yet */
    struct str member, value; /* the current member; borrowed until members_next() */
    /* The cursor of a scan that is to begin at the current member; 0 in a small hash, which is
     * always one page. */
    uint64_t cursor;
};
void members_open(struct member_walk *w, struct run *run, const struct object *o, uint64_t from);
bool members_next(struct member_walk *w); /* false: the end was reached, or reading failed */
void members_close(struct member_walk *w);

const char *type_name(enum value_type type);

/* --- random members --- */

struct pick {
    struct str member, value;
};
/* Picks `count` random members, which are distinct unless `repeat`. Returns an array in the arena;
 * *got is the number of members in it, less than `count` if the collection has fewer. NULL: the
 * picking failed. */
struct pick *pick_members(struct call *c, const struct object *o, uint64_t count, bool repeat,
                          size_t *got);

/* Answers SRANDMEMBER, HRANDFIELD or ZRANDMEMBER. The arguments are key [count [values_word]]. */
void answer_random(struct call *c, enum value_type type, const char *values_word);

/* --- functions that several files of commands share --- */

void scan_members(struct call *c, enum value_type type); /* answers HSCAN, SSCAN, ZSCAN */
bool glob_match(struct str pattern, struct str s);

/* Reads a member's score; false: the set does not have the member. The functions of sorted sets are
 * in zset.c and keep invariant 5 of docs/store.md. */
bool zset_score(struct call *c, const struct object *o, struct str member, double *score);
/* Sets a member's score. `old` is its present score; NULL: the set does not have the member yet.
 * Changes o->m.count; the caller saves the object. */
void zset_put(struct call *c, struct object *o, struct str member, const double *old, double score);
bool zset_remove(struct call *c, struct object *o, struct str member);
double zset_row_score(struct str row_key); /* returns the score in the key of an order row */

/* --- scripts (lua.c) --- */

struct lua_pool *lua_pool_new(void);
void lua_pool_free(struct lua_pool *pool);

struct script_call {
    struct str source; /* source.p NULL: the script is found by its digest */
    char sha1[41];
    const struct str *keys, *args;
    size_t key_count, arg_count;
    bool readonly;
};
void script_digest(struct str source, char sha1[41]);
/* Runs a script within the run of the call. The script's result becomes the reply of the call. */
void script_run(struct call *c, const struct script_call *s);
/* Compiles a script and remembers its source, as script_remember() does. The reply is the digest,
 * or an error. */
void script_load(struct call *c, struct str source);
/* Remembers the script's source, so that EVALSHA finds it by its digest. */
void script_remember(struct embedded *e, const struct script_call *s);
bool script_known(struct embedded *e, struct str sha1);
void script_flush(struct embedded *e);

/* --- messages (pubsub.c); docs/store.md, invariant 9 --- */

int pubsub_new(struct pubsub **out, struct err *err) MUST_CHECK;
void pubsub_free(struct pubsub *p);
/* Adds a message to *ticket, which holds the messages of one step; a NULL *ticket is replaced by a
 * new ticket. The messages wait until pubsub_settle() is called for the ticket. Returns the number
 * of receivers, or ERR_BUSY: too many bytes wait already. */
int64_t pubsub_publish(struct pubsub *p, struct pubsub_ticket **ticket, struct str channel,
                       struct str message);
/* Ends a ticket: its messages are delivered if the step was committed, else dropped. NULL is
 * fine. */
void pubsub_settle(struct pubsub *p, struct pubsub_ticket *ticket, bool committed);
int embedded_subscribe(struct store_subscription **out, struct store *s, struct str channel,
                       store_message_fn *fn, void *ctx, struct err *err);
void embedded_unsubscribe(struct store_subscription *sub);

/* --- the collector (collector.c) --- */

int collector_new(struct collector **out, struct embedded *e, struct err *err) MUST_CHECK;
void collector_free(struct collector *c);
void collector_wake(struct collector *c);
/* Waits until a whole round that began after this call has ended. */
void collector_wait(struct collector *c);

#endif
