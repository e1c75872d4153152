/* Scans by an index. */
#include "kv/index.h"

#include <stdlib.h>

struct kv_index_scan {
    struct kv *kv;
    struct kv_view *view;
    struct kv_index index;
    struct kv_scan *rows;
    struct arena arena; /* memory of the row that was returned last */
};

int kv_index_open(struct kv_index_scan **out, struct kv *kv, struct kv_view *view,
                  const struct kv_index *index, const struct kv_range *range, struct err *err)
{
    struct kv_index_scan *s = xzalloc(sizeof(*s));
    int code = kv_scan_open(&s->rows, kv, view, index->partition, range, err);

    if (code < 0) {
        free(s);
        return code;
    }
    s->kv = kv;
    s->view = view;
    s->index = *index;
    *out = s;
    return 0;
}

static int index_step(struct kv_index_scan *s, struct str *key, struct kv_value *value,
                      struct err *err)
{
    struct str row, bytes;

    arena_reset(&s->arena);
    int code = kv_scan_next(s->rows, &row, &bytes, err);
    if (code == 0)
        code = s->index.decode(key, bytes, err);
    return code < 0 ? code
                    : kv_get(s->kv, s->view, &s->arena, (struct kv_name){s->index.primary, *key},
                             value, err);
}

int kv_index_next(struct kv_index_scan *s, struct str *key, struct str *value, struct err *err)
{
    struct kv_value found;
    int code;

    while ((code = index_step(s, key, &found, err)) == ERR_NOT_FOUND)
        ;
    if (code == 0)
        *value = found.bytes;
    return code;
}

void kv_index_free(struct kv_index_scan *s)
{
    if (!s)
        return;
    kv_scan_free(s->rows);
    arena_release(&s->arena);
    free(s);
}
