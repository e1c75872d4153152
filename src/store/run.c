/* The reads and writes of a run, and walks over rows in order. */
#include "store/embedded_int.h"
#include "base/bytes.h"

static const struct str version_row = {"cversion", 8};

int run_fail(struct run *run, int code)
{
    if (run->code == 0)
        run->code = code;
    return code;
}

/* This function reads without a struct err at first, because a missing row is usual and needs no
 * error text. After another failure it reads again, to get the error's text. */
bool run_get(struct run *run, struct str key, struct str *value)
{
    int rc;

    buf_reset(&run->row);
    rc = db_get(run->view, run->e->cf, key, &run->row, NULL);
    if (rc < 0 && rc != ERR_NOT_FOUND) {
        buf_reset(&run->row);
        rc = db_get(run->view, run->e->cf, key, &run->row, run->err);
        if (rc < 0)
            run_fail(run, rc);
    }
    if (rc == 0)
        *value = buf_str(&run->row);
    return rc == 0;
}

void run_put(struct run *run, struct str key, struct str value)
{
    BUG_ON(!run->tx);
    db_tx_put(run->tx, run->e->cf, key, value);
}

void run_delete(struct run *run, struct str key)
{
    BUG_ON(!run->tx);
    db_tx_delete(run->tx, run->e->cf, key);
}

uint64_t run_hash(const struct run *run, struct str s)
{
    return hash_xxh3(s, run->e->seed);
}

uint64_t run_new_version(struct run *run)
{
    uint64_t *version = &run->next_version[run->e->base.number];
    struct buf next = BUF_INIT(8);
    struct str stored;

    if (*version == 0) {
        *version = 1;
        if (run_get(run, version_row, &stored) && stored.len == 8)
            *version = be64_read(stored.p);
    }
    buf_append_be64(&next, *version + 1);
    run_put(run, version_row, buf_str(&next));
    buf_release(&next);
    return (*version)++;
}

void walk_open(struct walk *w, struct run *run, struct str from, struct str to, bool reverse)
{
    struct db_range range = {from, to, reverse};
    int rc;

    *w = (struct walk){.run = run};
    rc = db_iter_open(&w->it, run->view, run->e->cf, &range, run->err);
    if (rc < 0) {
        run_fail(run, rc);
        w->it = NULL;
    }
}

bool walk_next(struct walk *w)
{
    int rc;

    if (!w->it)
        return false;
    rc = db_iter_next(w->it, &w->key, &w->value, NULL);
    if (rc < 0 && rc != ERR_END)
        run_fail(w->run, err_code(w->run->err, rc));
    return rc == 0;
}

void walk_close(struct walk *w)
{
    db_iter_close(w->it);
    w->it = NULL;
}

void version_range(struct version_range *r, enum row_tag tag, uint64_t version)
{
    row_prefix(&r->from, tag, version);
    row_prefix(&r->to, tag, version + 1);
}

void walk_version(struct walk *w, struct run *run, struct version_range *r, bool reverse)
{
    walk_open(w, run, r->from.key, r->to.key, reverse);
}
