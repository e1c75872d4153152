/* Scans that fetch rows from a server, page by page, for the drivers "redis" and "postgres". A
 * page is limited in rows and in bytes, and shows the rows as they were when it was fetched. So
 * a row that is written or removed while the scan runs may or may not be seen. No row is
 * returned twice. */
#ifndef KV_PAGED_H
#define KV_PAGED_H

#include "kv/kv.h"

enum {
    PAGE_ROWS = 1000,
    /* a page ends after the row that makes its values, taken together, at least this many bytes
     * long */
    PAGE_BYTES = 4 << 20,
};

struct page_row {
    struct str key, value;
};

struct page {
    struct arena arena; /* owns the rows */
    struct page_row *rows;
    size_t count;
    bool last; /* the range has no rows after this page */
};

/* The rows of a partition in [from, to); an empty `to` means the end. `rows` is the largest number
 * to fetch. */
struct page_range {
    struct str partition, from, to;
    size_t rows;
};

/* Fetches the first rows of the range into the empty page. */
typedef int page_fetch_fn(struct page *out, struct kv *kv, const struct page_range *range,
                          struct err *err);

/* The functions for scans in a driver's struct kv_ops; its scan_open() calls paged_open(). */
int paged_open(struct kv_scan **out, struct kv *kv, page_fetch_fn *fetch, struct str partition,
               const struct kv_range *range);
int paged_next(struct kv_scan *scan, struct str *key, struct str *value, struct err *err);
void paged_seek(struct kv_scan *scan, struct str key);
void paged_close(struct kv_scan *scan);
void paged_free(struct kv_scan *scan);

#endif
