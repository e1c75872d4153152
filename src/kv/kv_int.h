/* Functions that the files of kv/ share. */
#ifndef KV_KV_INT_H
#define KV_KV_INT_H

#include "kv/kv.h"
#include "os/flight.h"

/* Reads the schema version, and writes it if there is none. It uses the driver directly, so a
 * driver calls it from its prepare(). ERR_VERSION: a newer program wrote the rows. */
int kv_schema_check(struct kv *kv, struct err *err) MUST_CHECK;

/* The last step of every kv_open_*(): prepares the driver. If the server cannot be reached, the
 * opening still succeeds, and the first call of the kv prepares the driver. After any other failure
 * the kv is closed. */
int kv_opened(struct kv **out, struct kv *kv, const struct log *log, struct err *err) MUST_CHECK;

/* Whether the write may use the room that is kept for removals (kv_change.frees). */
bool kv_changes_free(const struct kv_change *changes, size_t count);

/* Whether no change of the write needs to be durable when it returns (kv_change.later). */
bool kv_changes_later(const struct kv_change *changes, size_t count);

/* Compares the store's id with the id in the file of kv_know(), or writes that file if it does not
 * exist. It uses the driver directly. ERR_STORE: the store is empty, or another one. */
int kv_known_check(struct kv *kv, struct err *err) MUST_CHECK;

/* Prepares the driver, unless it is prepared already. */
int kv_prepare(struct kv *kv, struct err *err) MUST_CHECK;

/* Returns the error for a kv_write_get() whose changes were made, but whose rows could not be read
 * (K6). */
static inline int kv_made_unread(struct err *err)
{
    return err_wrap(err, ERR_TIMEOUT, "the write was made, and the rows behind it were not read");
}

/* The arguments of kv_write_get(), after kv.c has checked them. */
struct kv_write_call {
    const struct kv_change *changes;
    size_t count;
    size_t *failed;
    struct arena *arena;
    const struct kv_name *names;
    size_t name_count;
    struct kv_value *out;
    struct err *err; /* may be NULL */
};

/* Calls of the driver between kv_call_begins() and kv_call_ends(). */
int kv_get_run(struct kv *kv, struct kv_view *view, struct arena *a, const struct kv_name *names,
               size_t count, struct kv_value *out, struct err *err) MUST_CHECK;
int kv_write_run(struct kv *kv, const struct kv_write_call *c) MUST_CHECK;
int kv_drop_run(struct kv *kv, struct str partition, struct err *err) MUST_CHECK;

static inline bool kv_name_is_same(const struct kv_name *a, const struct kv_name *b)
{
    return str_eq(a->key, b->key) && str_eq(a->partition, b->partition);
}

/* --- silence (silence.c) --- */

/* Every call of a driver that may wait for the server stands between these two. If the server is
 * silent, kv_call_begins() returns ERR_UNAVAILABLE, and the call is not made. kv_call_ends() gets
 * the call's result, and returns it. */
int kv_call_begins(struct kv *kv, uint64_t *began_ns, struct err *err) MUST_CHECK;
int kv_call_ends(struct kv *kv, uint64_t began_ns, int code);

/* --- groups of writes (group.c) --- */

enum { KV_GROUP_PLACES = 64 };
struct kv_groups {
    struct flights places[KV_GROUP_PLACES]; /* the hash of a call's checks chooses its place */
};

/* Makes the state for groups of writes. A driver uses groups if its server makes one write of many
 * rows faster than many small writes. At most `flights` writes with the same checks are sent at the
 * same time. Calls that come meanwhile wait, and are then sent together. */
struct kv_groups *kv_groups_new(size_t flights);
void kv_groups_free(struct kv_groups *g); /* no call may be running; NULL is fine */
/* Makes the write, alone or as a part of one larger write (docs/kv.md, "Groups"). */
int kv_group_write(struct kv *kv, const struct kv_write_call *call) MUST_CHECK;

#endif
