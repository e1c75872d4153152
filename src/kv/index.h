/* Scans by an index. The value of an index row names a row of another partition, its primary row. A
 * writer should put or remove both rows in one write. If it cannot do so, an index row may stay
 * without its primary row; a scan skips such a *dangling* row. */
#ifndef KV_INDEX_H
#define KV_INDEX_H

#include "kv/kv.h"

/* Reads the value of an index row. *primary, the key of the primary row, is borrowed from the
 * value. */
typedef int kv_index_fn(struct str *primary, struct str value, struct err *err);

struct kv_index {
    struct str partition; /* partition of the index rows */
    struct str primary;   /* partition of the primary rows */
    kv_index_fn *decode;
};

struct kv_index_scan;

/* Opens a scan of the index rows in the range. All strings are borrowed until the scan is freed. */
int kv_index_open(struct kv_index_scan **out, struct kv *kv, struct kv_view *view,
                  const struct kv_index *index, const struct kv_range *range,
                  struct err *err) MUST_CHECK;
/* Gives the key and the value of the next primary row, in the order of the index. ERR_END: there
 * are no more. Key and value are borrowed until the next call. */
int kv_index_next(struct kv_index_scan *scan, struct str *key, struct str *value,
                  struct err *err) MUST_CHECK;
void kv_index_free(struct kv_index_scan *scan); /* NULL is fine */

#endif
