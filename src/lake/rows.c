/* Reads pages of the lake's rows, in the order of their names. */
#include "lake/lake_int.h"

int lake_rows_open(struct kv_scan **out, struct lake *l, struct kv_view *view, struct arena *a,
                   struct str partition, const char *kind, const struct lake_page *p,
                   struct err *err)
{
    struct kv_range range = {.prefix = lake_key_in(a, partition, kind, p->prefix).key,
                             .first_page = size_min(p->limit, LAKE_LIST_MAX) + 1};

    /* The smallest key that is greater than `after` is `after` with a NUL added. */
    if (p->after.len) {
        range.from = lake_key_in(a, partition, kind, p->after).key;
        range.from.len += range.from.p != NULL;
    }
    int code = arena_error(a);
    return code < 0 ? err_code(err, code) : kv_scan_open(out, l->kv, view, partition, &range, err);
}

/* Reads the next row of the scan for which rows->read() does not return ERR_AGAIN. */
static int rows_next(struct kv_scan *scan, struct arena *a, const struct lake_rows *rows,
                     void *item, struct err *err)
{
    struct str key, value;
    int code;

    do {
        code = kv_scan_next(scan, &key, &value, err);
        if (code < 0)
            return code;
        struct str record = arena_str(a, value);
        code =
            record.p ? rows->read(item, rows->ctx, a, record, err) : err_code(err, ERR_NO_MEMORY);
    } while (code == ERR_AGAIN);
    return code;
}

int lake_rows_page(struct lake *l, struct arena *a, const struct lake_rows *rows,
                   const struct lake_page *p, void **items, size_t *count, bool *more,
                   struct err *err)
{
    size_t limit = size_min(p->limit, LAKE_LIST_MAX);
    char *array = arena_array(a, limit + 1, rows->item_size);
    struct kv_scan *scan = NULL;
    struct lake_repo now;
    int code = array ? 0 : err_code(err, ERR_NO_MEMORY);

    *items = array;
    *count = 0;
    if (code == 0)
        code = lake_rows_open(&scan, l, NULL, a, rows->partition, rows->kind, p, err);
    while (code == 0 &&
           *count <= limit) { /* one row beyond the limit shows whether there is another page */
        code = rows_next(scan, a, rows, array + *count * rows->item_size, err);
        *count += code == 0;
    }
    kv_scan_free(scan);
    *more = *count > limit;
    *count = size_min(*count, limit);
    code = code == ERR_END ? 0 : code;
    return code == 0 && rows->repo ? lake_repo_again(l, a, rows->repo, &now, err) : code;
}
