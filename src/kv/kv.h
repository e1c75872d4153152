/* The key-value store of the lake: partitions of keys in byte order, written by compare-and-set.
 * docs/kv.md has the drivers, their layouts and the invariants.
 *
 * A row has a name, which is a pair of a partition and a key, and a value. Partition, key and value
 * are byte strings. A partition exists as soon as it has a row. Two different names never mean the
 * same row (K1). A value may be empty.
 *
 * There are three drivers: "embedded" (in the data folder, on db/), "redis" (through store/) and
 * "postgres" (libpq). A caller does not know which driver it uses. Where the difference matters, it
 * asks for a capability (enum kv_can).
 *
 * Any thread may call these functions, and calls may block. A view or a scan is used by one thread
 * at a time.
 *
 * Errors:
 * - ERR_INVALID: an empty partition or key, no value, or a size beyond its limit.
 * - ERR_NOT_FOUND, ERR_PRECONDITION: the row is absent, or a condition does not hold.
 * - ERR_UNAVAILABLE: the call did not run. When the server has not answered for a whole time-out,
 *   later calls fail at once, until it answers again.
 * - ERR_TIMEOUT, only from writes: the write may have been made (K6).
 * - ERR_BUSY (the server throttles), ERR_VERSION (a newer program wrote the rows), ERR_NO_SPACE,
 *   ERR_DENIED, ERR_UNSUPPORTED, ERR_STORE (the store is halted): nothing was changed.
 * - ERR_CLOSED: the scan was closed.
 * - ERR_NO_MEMORY: the arena is full.
 *
 * Only ERR_NOT_FOUND says that a row is absent. No other error may be understood so (K5). */
#ifndef KV_KV_H
#define KV_KV_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"

/* Limits of every call (K10). */
enum {
    KV_PARTITION_MAX = 512,
    KV_KEY_MAX = 2048,
    KV_VALUE_MAX = 1 << 20, /* largest value, in bytes */
    KV_CHANGES_MAX = 4096,  /* most changes in one kv_write() */
    KV_GETS_MAX = 4096,     /* most names in one kv_get_many() */
    /* size of one kv_write() in bytes: names, values and stamps together */
    KV_WRITE_MAX = 32 << 20,
};

/* The capabilities of a driver: what it does cheaply. */
enum kv_can {
    /* Checking a row that many writers check at the same time costs next to nothing. */
    KV_FENCES = 1,
    /* A view shows all rows as they were at one moment (K8). Without this capability each read
     * shows the state at the time of that read. Then a reader that needs several rows of one moment
     * reads a counter before and after them, and begins again if the counter has changed. */
    KV_MOMENTS = 2,
    /* kv_drop() costs the same, however many rows the partition has. */
    KV_DROPS = 4,
    /* No other process can change the rows. */
    KV_ALONE = 8,
    /* A read waits for no server and for no writer. */
    KV_AT_HAND = 16,
};

struct kv_ops;
struct kv_groups;

/* Whether the server of a driver is silent (silence.c). */
struct kv_silence {
    _Atomic(uint64_t) heard_ns; /* when a call was last answered, by clock_mono_ns(); 0: never */
    _Atomic(bool) is_silent;
    _Atomic(bool) is_asked; /* a caller waits for an answer of the silent server */
};

/* A driver embeds this as its first member. */
struct kv {
    const struct kv_ops *ops;
    const char *driver;       /* "embedded", "redis", "postgres" */
    unsigned can;             /* a set of enum kv_can */
    struct kv_groups *groups; /* NULL: each write is sent alone */
    /* Whether kv_ops.prepare() has succeeded, so that the server is usable and the schema version
     * is right. Until then every call runs prepare() first. */
    _Atomic(bool) prepared;
    char *known; /* path of the file that kv_know() was given; NULL: kv_know() was not called */
    /* A text that says which setting of the server is bad. NULL: no setting is known to be bad. */
    _Atomic(const char *) warning;
    uint64_t timeout_ns; /* how long a call may wait for the server; 0: there is no server */
    struct kv_silence silence;
    const struct log *log; /* borrowed; NULL: nothing is logged */
};

struct kv_view; /* the state that reads see */
struct kv_scan;

struct kv_name {
    struct str partition, key;
};

/* A value that was read. `stamp` is the stamp for a KV_SAME condition. In every driver the stamp
 * has the same bytes as `bytes`, so a caller that knows the bytes of a row can make the condition
 * without reading the row. bytes.p is NULL when the row does not exist. Both strings are in the
 * arena of the call. */
struct kv_value {
    struct str bytes, stamp;
};

static inline bool kv_is_there(const struct kv_value *v)
{
    return v->bytes.p != NULL;
}

/* The condition of a change on its row. */
enum kv_when {
    KV_ALWAYS,
    /* the row does not exist; only for KV_PUT, because no driver can lock a row that does not
     * exist */
    KV_ABSENT,
    KV_EXISTS, /* the row exists, with any value */
    KV_SAME,   /* the row still has the value that was read with `stamp` */
};

/* One change of a kv_write(). */
struct kv_change {
    enum kv_what {
        KV_PUT,
        KV_REMOVE, /* removing a missing row succeeds, unless `when` says otherwise */
        KV_CHECK,  /* changes nothing, needs a condition */
        /* A glance, which is a weak check (K3). It changes nothing, and its condition is KV_SAME.
         * The write is made only if the row had the expected value at a moment before the changes.
         * Unlike with KV_CHECK, the row may change while the write is made. A glance costs next to
         * nothing on every driver. */
        KV_GLANCE,
    } what;
    struct kv_name name;
    struct str value; /* for KV_PUT; value.p must not be NULL */
    enum kv_when when;
    struct str stamp; /* for KV_SAME */
    /* Only for KV_PUT: the put is part of a removal, such as the put of a tombstone. If all puts of
     * a write have this mark, the write may use the room that the driver keeps for removals when
     * its disk or memory is full (K11). */
    bool frees;
    /* Only for KV_PUT and KV_REMOVE: the change must be visible when the write returns, but need
     * not be durable until a later write has returned (K13). If all changes of a write have this
     * mark, a driver may return before they are durable. */
    bool later;
};

/* The rows of one partition whose keys begin with `prefix`, from the key `from` on (inclusive). */
struct kv_range {
    struct str from, prefix; /* empty: no limit. Borrowed until the scan is opened */
    size_t first_page;       /* number of rows to fetch first; 0: the driver decides */
};

/* Appends the smallest key that is greater than `key`. A kv_range with this key as `from` begins
 * after `key`. */
static inline void kv_key_behind(struct buf *out, struct str key)
{
    buf_append_str(out, key);
    buf_append_char(out, '\0');
}

/* --- reading --- */

/* Whether a read of a single row waits for nothing now, because the driver has KV_AT_HAND and is
 * prepared. */
bool kv_is_at_hand(const struct kv *kv);

/* Opens a view. A driver without KV_MOMENTS gives a view that shows the newest state. Calls that
 * take a view accept NULL, which means the newest state. */
int kv_view_open(struct kv_view **out, struct kv *kv, struct err *err) MUST_CHECK;
void kv_view_close(struct kv *kv, struct kv_view *view); /* NULL is fine */

/* Reads one row. ERR_NOT_FOUND: there is no such row. */
int kv_get(struct kv *kv, struct kv_view *view, struct arena *a, struct kv_name name,
           struct kv_value *out, struct err *err) MUST_CHECK;
/* Reads `count` rows in one round trip, in the order of `names`. A missing row is no error:
 * kv_is_there() is false for its value. */
int kv_get_many(struct kv *kv, struct kv_view *view, struct arena *a, const struct kv_name *names,
                size_t count, struct kv_value *out, struct err *err) MUST_CHECK;

/* Opens a scan of rows in the order of their keys (K7). If the driver lacks KV_MOMENTS, the scan
 * may or may not see rows that are written or removed while it runs. The caller may remove rows
 * that the scan has given. */
int kv_scan_open(struct kv_scan **out, struct kv *kv, struct kv_view *view, struct str partition,
                 const struct kv_range *range, struct err *err) MUST_CHECK;
/* Gives the next row. ERR_END: there are no more. ERR_CLOSED: kv_scan_close() was called. Key and
 * value are borrowed until the next call on the scan. */
int kv_scan_next(struct kv_scan *scan, struct str *key, struct str *value,
                 struct err *err) MUST_CHECK;
/* Moves the scan, forward or back: the next row is the first one at or after `key` that has the
 * range's prefix. */
void kv_scan_seek(struct kv_scan *scan, struct str key);
/* Ends the scan and releases its resources on the server. Closing twice is fine. */
void kv_scan_close(struct kv_scan *scan);
void kv_scan_free(struct kv_scan *scan); /* closes the scan and frees its memory; NULL is fine */

/* --- writing --- */

/* Makes all changes, or none of them, at a moment when all conditions hold (K2, K3). When it
 * returns 0, the changes are durable (K4), unless all of them are marked `later`. No two changes
 * may have the same name (ERR_INVALID). A write of no changes succeeds. ERR_PRECONDITION: a
 * condition does not hold; *failed (unless NULL) is the index of the first such change.
 * ERR_TIMEOUT: the changes may have been made. */
int kv_write(struct kv *kv, const struct kv_change *changes, size_t count, size_t *failed,
             struct err *err) MUST_CHECK;
/* Does what kv_write() does, and reads `names` in the same round trip, after the changes are made.
 * ERR_TIMEOUT has a second meaning here: the changes were made, but a row could not be read, or the
 * arena is full. */
int kv_write_get(struct kv *kv, const struct kv_change *changes, size_t count, size_t *failed,
                 struct arena *a, const struct kv_name *names, size_t name_count,
                 struct kv_value *out, struct err *err) MUST_CHECK;

/* The operations of lakeFS's key-value interface on one key. Each is a kv_write() of one change. */
int kv_set(struct kv *kv, struct kv_name name, struct str value, struct err *err) MUST_CHECK;
/* stamp NULL: the row must not exist. Otherwise the row must have the value that was read with
 * `stamp`. */
int kv_set_if(struct kv *kv, struct kv_name name, struct str value, const struct str *stamp,
              struct err *err) MUST_CHECK;
int kv_remove(struct kv *kv, struct kv_name name, struct err *err) MUST_CHECK;

/* Removes every row of a partition. The drop is not atomic, so use it only for a partition that no
 * row refers to any more, and that nobody writes to. Views with KV_MOMENTS still show the rows. The
 * drop is durable only when a later write has returned. If the caller has a row that says that the
 * partition must be dropped, it removes that row after this call. */
int kv_drop(struct kv *kv, struct str partition, struct err *err) MUST_CHECK;

/* --- opening --- */

/* The version of the rows' layout, in partition kv-internal-metadata, key kv/schema/version. */
#define KV_SCHEMA_VERSION "1"

struct db;
struct db_cf_spec;
struct store;

/* Returns the column family that holds the rows of the embedded driver. The code that opens the
 * database passes it to db_open(). */
const struct db_cf_spec *kv_cf_spec(void);
/* Opens a store. Every opening writes the schema version if there is none. ERR_VERSION: a newer
 * weir or a live lakeFS wrote the rows. `db` and `store` are borrowed and must outlive the kv.
 *
 * If the server cannot be reached, the opening succeeds. Calls then fail with ERR_UNAVAILABLE until
 * the server can be reached. The first call that reaches it makes the checks of the opening. */
int kv_open_embedded(struct kv **out, struct db *db, const struct log *log,
                     struct err *err) MUST_CHECK;
/* ERR_UNSUPPORTED: the server is a cluster, or evicts keys (maxmemory-policy). */
int kv_open_redis(struct kv **out, struct store *store, const struct log *log,
                  struct err *err) MUST_CHECK;
/* Like kv_open_redis(), but does not connect to the server. The first call makes the checks of the
 * opening, and fails if the server is not usable. For a Redis that weir also uses for other
 * things. */
void kv_open_redis_later(struct kv **out, struct store *store);

struct kv_postgres_options {
    const char *url;        /* postgres://user:password@host/database, as libpq reads it */
    size_t max_connections; /* a caller waits while all are in use; 0: 25 */
    uint64_t timeout_ms;    /* limit of a round trip; 0: 5000 */
    const struct log *log;
};
int kv_open_postgres(struct kv **out, const struct kv_postgres_options *o,
                     struct err *err) MUST_CHECK;

/* Remembers in the file `path` which store this is. From then on an empty store, or another one, is
 * refused with ERR_STORE. If the store was reached already, this call makes the check; otherwise
 * the first call that reaches the store makes it. kv_probe() checks, too. Call kv_know() before
 * other threads use the kv. */
int kv_know(struct kv *kv, const char *path, struct err *err) MUST_CHECK;

/* Checks that the store answers and accepts writes. The answer of /readyz depends on it. */
int kv_probe(struct kv *kv, struct err *err) MUST_CHECK;
/* Closes the kv. No call may be running, and no view or scan may be open. NULL is fine. */
void kv_close(struct kv *kv);

/* --- drivers --- */

/* The functions of a driver. The functions above check the arguments first, so a driver gets only
 * valid ones. */
struct kv_ops {
    /* Checks that the server is usable, makes what the driver needs there, such as tables, and
     * calls kv_schema_check() (kv_int.h). It is called until it succeeds, perhaps by several
     * threads at once. */
    int (*prepare)(struct kv *kv, struct err *err);
    int (*view_open)(struct kv_view **out, struct kv *kv, struct err *err);
    void (*view_close)(struct kv *kv, struct kv_view *view);
    int (*get)(struct kv *kv, struct kv_view *view, struct arena *a, const struct kv_name *names,
               size_t count, struct kv_value *out, struct err *err);
    /* as kv_write_get(); `name_count` may be 0 */
    int (*write)(struct kv *kv, const struct kv_change *changes, size_t count, size_t *failed,
                 struct arena *a, const struct kv_name *names, size_t name_count,
                 struct kv_value *out, struct err *err);
    int (*scan_open)(struct kv_scan **out, struct kv *kv, struct kv_view *view,
                     struct str partition, const struct kv_range *range, struct err *err);
    int (*scan_next)(struct kv_scan *scan, struct str *key, struct str *value, struct err *err);
    void (*scan_seek)(struct kv_scan *scan, struct str key);
    void (*scan_close)(struct kv_scan *scan);
    void (*scan_free)(struct kv_scan *scan);
    int (*drop)(struct kv *kv, struct str partition, struct err *err);
    int (*probe)(struct kv *kv, struct err *err);
    /* Waits for any answer of the server. ERR_UNAVAILABLE, ERR_BUSY: there is none. NULL if there
     * is no server. */
    int (*ask)(struct kv *kv, struct err *err);
    void (*close)(struct kv *kv);
};

/* A driver embeds this as the first member of its scan. */
struct kv_scan {
    struct kv *kv;
};

#endif
