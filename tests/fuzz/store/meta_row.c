/* Owner rows: whatever is read from one lies inside it, and written again it reads the same. */
#include "base/buf.h"
#include "base/err.h"
#include "store/rows.h"

static bool inside(struct str part, struct str whole)
{
    return part.p >= whole.p && part.p + part.len <= whole.p + whole.len;
}

static void check_pairs(const struct meta *m)
{
    struct str rest = m->value, field, value;
    uint64_t count = 0;

    while (pair_next(&rest, &field, &value)) {
        char again[SMALL_BYTES];
        size_t size = pair_size(field, value);
        BUG_ON(!inside(field, m->value) || !inside(value, m->value));
        pair_write(again, field, value);
        BUG_ON(!str_eq(str_n(again, size), str_n(rest.p - size, size)));
        count++;
    }
    BUG_ON(rest.len || count != m->count || count > SMALL_FIELDS || m->value.len > SMALL_BYTES);
}

static void check_again(const struct meta *m)
{
    char head[META_MAX];
    struct buf row = {0};
    struct meta again;

    buf_append(&row, head, meta_encode(m, head));
    buf_append_str(&row, m->value);
    BUG_ON(meta_decode(&again, buf_str(&row)) != 0);
    BUG_ON(again.type != m->type || again.small != m->small || again.expire_ms != m->expire_ms ||
           again.version != m->version || again.count != m->count || again.head != m->head ||
           !str_eq(again.value, m->value));
    buf_release(&row);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct meta m;

    if (meta_decode(&m, str_n(data, size)) < 0)
        return 0;
    BUG_ON(m.value.len && !inside(m.value, str_n(data, size)));
    if (m.small)
        check_pairs(&m);
    check_again(&m);
    return 0;
}
