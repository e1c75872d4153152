/* Functions that the files of kv/ share. */
#ifndef KV_KV_INT_H
#define KV_KV_INT_H

#include "kv/kv.h"

/* Reads the schema version, and writes it if there is none. It uses the driver directly, so a
 * driver calls it from its prepare(). ERR_VERSION: a newer program wrote the rows. */
int kv_schema_check(struct kv *kv, struct err *err) MUST_CHECK;

/* The end of every opening: prepares the driver. When its server cannot be reached the kv is opened
 * all the same, and its first call tries again. When it fails for another reason the kv is closed.
 */
int kv_opened(struct kv **out, struct kv *kv, const struct log *log, struct err *err) MUST_CHECK;

/* Whether the write may use the room that is kept for removals (kv_change.frees). */
bool kv_changes_free(const struct kv_change *changes, size_t count);

/* Compares the store with the file of kv_know(), or writes the file. It uses the driver directly.
 * ERR_STORE: the store is empty, or another one. */
int kv_known_check(struct kv *kv, struct err *err) MUST_CHECK;

/* Prepares the driver unless that was done. */
int kv_prepare(struct kv *kv, struct err *err) MUST_CHECK;

/* The error of a write that was made, and whose rows behind it could not be read (K6). */
static inline int kv_made_unread(struct err *err)
{
    return err_wrap(err, ERR_TIMEOUT, "the write was made, and the rows behind it were not read");
}

#endif
