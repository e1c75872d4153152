/* Pages of the lake's rows by their names. */
#include "lake/lake_int.h"

int lake_rows_open(struct lake_rows *out, struct lake *l, struct kv_view *view, struct arena *a,
                   struct str partition, const char *kind, const struct lake_page *p,
                   struct err *err)
{
    struct str prefix = lake_key_in(a, partition, kind, p->prefix).key;
    struct str after = lake_key_in(a, partition, kind, p->after).key;
    struct kv_range range = {.prefix = prefix, .first_page = p->limit + 1};

    *out = (struct lake_rows){.skip = strlen(kind) + 1};
    if (p->after.len) /* the smallest key behind `after` has a NUL at its end */
        range.from = arena_str(a, str_n(after.p, after.len + 1));
    int code = arena_error(a);
    return code < 0 ? err_code(err, code)
                    : kv_scan_open(&out->scan, l->kv, view, partition, &range, err);
}

int lake_rows_next(struct lake_rows *rows, struct str *value, struct err *err)
{
    struct str key;

    return kv_scan_next(rows->scan, &key, value, err);
}

void lake_rows_close(struct lake_rows *rows)
{
    kv_scan_free(rows->scan);
    rows->scan = NULL;
}
