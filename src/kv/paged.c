/* Scans rows a page at a time. */
#include "kv/paged.h"
#include "db/db.h"
#include "kv/kv_int.h"

#include <stdlib.h>

struct paged {
    struct kv_scan scan;
    page_fetch_fn *fetch;
    struct buf partition, prefix;
    struct buf from, to; /* the part of the range after the current page */
    struct page page;
    size_t at;   /* the next row of the page */
    size_t rows; /* number of rows of the next page; doubles up to PAGE_ROWS */
    bool closed;
};

static void paged_start(struct paged *s, struct str from)
{
    buf_reset(&s->from);
    buf_append_str(&s->from, str_cmp(from, buf_str(&s->prefix)) < 0 ? buf_str(&s->prefix) : from);
    arena_reset(&s->page.arena);
    s->page.count = s->at = 0;
    s->page.last = false;
}

int paged_open(struct kv_scan **out, struct kv *kv, page_fetch_fn *fetch, struct str partition,
               const struct kv_range *range)
{
    struct paged *s = xzalloc(sizeof(*s));

    s->scan.kv = kv;
    s->fetch = fetch;
    s->rows = range->first_page ? size_min(range->first_page, PAGE_ROWS) : PAGE_ROWS;
    buf_append_str(&s->partition, partition);
    buf_append_str(&s->prefix, range->prefix);
    db_prefix_end(range->prefix, &s->to);
    paged_start(s, range->from);
    *out = &s->scan;
    return 0;
}

static int paged_fetch(struct paged *s, struct err *err)
{
    struct page_range range = {buf_str(&s->partition), buf_str(&s->from), buf_str(&s->to), s->rows};
    uint64_t began_ns;

    arena_reset(&s->page.arena);
    s->page.count = s->at = 0;
    int code = kv_call_begins(s->scan.kv, &began_ns, err);
    if (code == 0)
        code = kv_call_ends(s->scan.kv, began_ns, s->fetch(&s->page, s->scan.kv, &range, err));
    if (code < 0) {
        s->page.count = 0;
        return code;
    }
    s->rows = size_min(2 * s->rows, PAGE_ROWS);
    if (s->page.count > 0) {
        buf_reset(&s->from);
        kv_key_behind(&s->from, s->page.rows[s->page.count - 1].key);
    }
    return 0;
}

int paged_next(struct kv_scan *scan, struct str *key, struct str *value, struct err *err)
{
    struct paged *s = container_of(scan, struct paged, scan);

    if (s->closed)
        return err_set(err, ERR_CLOSED, "the scan was closed");
    while (s->at == s->page.count) {
        int code = s->page.last ? err_code(err, ERR_END) : paged_fetch(s, err);
        if (code < 0)
            return code;
    }
    *key = s->page.rows[s->at].key;
    *value = s->page.rows[s->at].value;
    s->at++;
    return 0;
}

/* A seek forward inside the page, as a listing makes it to skip a common prefix, only moves inside
 * the page. Any other seek begins a new page. */
void paged_seek(struct kv_scan *scan, struct str key)
{
    struct paged *s = container_of(scan, struct paged, scan);
    const struct page *p = &s->page;
    bool inside = s->at > 0 && str_cmp(key, p->rows[s->at - 1].key) > 0 &&
                  str_cmp(key, p->rows[p->count - 1].key) <= 0;

    if (s->closed)
        return;
    if (!inside) {
        paged_start(s, key);
        return;
    }
    while (str_cmp(p->rows[s->at].key, key) < 0)
        s->at++;
}

void paged_close(struct kv_scan *scan)
{
    struct paged *s = container_of(scan, struct paged, scan);

    arena_release(&s->page.arena);
    s->page.count = s->at = 0;
    s->closed = true;
}

void paged_free(struct kv_scan *scan)
{
    struct paged *s = container_of(scan, struct paged, scan);

    buf_release(&s->partition);
    buf_release(&s->prefix);
    buf_release(&s->from);
    buf_release(&s->to);
    free(s);
}
