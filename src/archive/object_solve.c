/* Solving: finds the bases of deltas, and computes the ids of the objects that are built from them.
 *
 * A delta by offset names an earlier entry. So if the pack has no deltas by id, one pass in the
 * order of the pack solves all deltas. A delta by id names its base by an id. The base may itself
 * be a delta anywhere in the pack. So deltas by id wait in a list that is sorted by the base's id.
 * When an object is solved, the deltas that wait for its id are solved next. The pass may reach a
 * delta by offset whose base is a delta by id that is not solved yet. Then the pass is repeated. */
#include "archive/object_int.h"

#include "object/digest.h"

#include <isa-l/crc.h>
#include <stdio.h>
#include <stdlib.h>

enum { SOLVE_PASSES_MAX = 64 };

static const char *const packed_types[] = {
    [PACK_COMMIT] = "commit", [PACK_TREE] = "tree", [PACK_BLOB] = "blob", [PACK_TAG] = "tag"};

size_t packed_head(char out[32], enum pack_type type, uint64_t size)
{
    return (size_t)snprintf(out, 32, "%s %llu", packed_types[type], (unsigned long long)size) + 1;
}

/* Computes the id and the checksum of an entry's object, whose data were read last. */
static void solve_hash(struct packed *p, struct entry *e, struct str data)
{
    enum digest_kind kind = p->o.is_sha256 ? DIGEST_SHA256 : DIGEST_SHA1;
    struct digests *d = digests_new(1u << kind);
    struct digest_value id;
    char head[32];

    digests_update(d, str_n(head, packed_head(head, (enum pack_type)e->type, data.len)));
    for (e->crc = 0; data.len; data = str_skip(data, size_min(data.len, SCRATCH_STEP))) {
        struct str piece = str_head(data, SCRATCH_STEP);
        digests_update(d, piece);
        e->crc = crc32_gzip_refl(e->crc, (const unsigned char *)piece.p, piece.len);
        packed_drop(p);
    }
    digests_final(d, kind, &id);
    digests_free(d);
    memcpy(e->id, id.bytes, ENTRY_ID_LEN);
}

/* --- lists that are sorted by id --- */

static int entry_id_order(const void *a, const void *b, void *ctx)
{
    const struct entry *entries = ctx;
    uint32_t l = *(const uint32_t *)a, r = *(const uint32_t *)b;
    int order = memcmp(entries[l].id, entries[r].id, ENTRY_ID_LEN);

    return order ? order : (l > r) - (l < r);
}

/* A delta by id that waits for its base. It has its own copy of the base's id, because solving a
 * delta overwrites the id in the table. */
struct waiter {
    unsigned char base_id[ENTRY_ID_LEN];
    uint32_t index;
};
struct solve {
    struct packed *p;
    struct waiter *waiters; /* sorted */
    size_t waiter_count;
    VEC(uint32_t) ready; /* deltas whose base is solved */
    size_t open;         /* number of deltas that are not solved yet */
};

static int waiter_order(const void *a, const void *b)
{
    const struct waiter *l = a, *r = b;
    int order = memcmp(l->base_id, r->base_id, ENTRY_ID_LEN);

    return order ? order : (l->index > r->index) - (l->index < r->index);
}

static void solve_list_waiters(struct solve *s)
{
    const struct packed *p = s->p;

    vec_each (&p->entries, const struct entry *, e)
        s->waiter_count += e->stored == PACK_REF_DELTA;
    s->waiters = xcalloc(s->waiter_count + 1, sizeof(*s->waiters));
    for (size_t i = 0, n = 0; i < p->entries.len; i++)
        if (p->entries.items[i].stored == PACK_REF_DELTA) {
            memcpy(s->waiters[n].base_id, p->entries.items[i].id, ENTRY_ID_LEN);
            s->waiters[n++].index = (uint32_t)i;
        }
    qsort(s->waiters, s->waiter_count, sizeof(*s->waiters), waiter_order);
}

/* Marks the deltas that wait for the id of this entry as ready. If another entry with the same
 * object was solved before, no delta waits any more, and nothing happens. */
static void solve_wake(struct solve *s, uint32_t base)
{
    struct entry *entries = s->p->entries.items;
    size_t low = 0, high = s->waiter_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (memcmp(s->waiters[middle].base_id, entries[base].id, ENTRY_ID_LEN) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < s->waiter_count &&
           memcmp(s->waiters[low].base_id, entries[base].id, ENTRY_ID_LEN) == 0;
         low++) {
        struct entry *e = &entries[s->waiters[low].index];
        if (e->base != ENTRY_NO_BASE)
            continue;
        e->base = base;
        vec_push(&s->ready, s->waiters[low].index);
    }
}

/* --- solving --- */

static int solve_one(struct solve *s, uint32_t index, struct err *err)
{
    struct packed *p = s->p;
    struct entry *e = &p->entries.items[index];
    const struct entry *base = &p->entries.items[e->base];
    struct str data;

    if (base->depth >= PACKED_CHAIN_MAX)
        return err_set(err, ERR_TOO_LARGE, "the pack has a chain of more than %d deltas",
                       PACKED_CHAIN_MAX);
    int code = packed_data(p, index, &data, err);
    if (code < 0)
        return code;
    e->depth = (base->depth + 1u) & 8191;
    e->type = base->type;
    e->size = data.len & ENTRY_SIZE_MAX;
    solve_hash(p, e, data);
    s->open--;
    solve_wake(s, index);
    return 0;
}

static int solve_ready(struct solve *s, struct err *err)
{
    int code = 0;

    while (s->ready.len && code == 0)
        code = solve_one(s, vec_pop(&s->ready), err);
    return code;
}

static int solve_pass(struct solve *s, struct err *err)
{
    struct packed *p = s->p;
    int code = 0;

    for (uint32_t i = 0; i < p->entries.len && code == 0; i++) {
        const struct entry *e = &p->entries.items[i];
        if (e->type || e->base == ENTRY_NO_BASE || !p->entries.items[e->base].type)
            continue;
        code = solve_one(s, i, err);
        if (code == 0)
            code = solve_ready(s, err);
    }
    return code;
}

static int solve_all(struct solve *s, struct err *err)
{
    struct packed *p = s->p;
    size_t before;
    int code = 0, passes = 0;

    for (uint32_t i = 0; i < p->entries.len && s->waiter_count; i++)
        if (p->entries.items[i].type)
            solve_wake(s, i);
    code = solve_ready(s, err);
    do {
        before = s->open;
        if (code == 0 && s->open)
            code = solve_pass(s, err);
    } while (code == 0 && s->open && s->open < before && ++passes < SOLVE_PASSES_MAX);
    if (code == 0 && s->open)
        return err_set(err, ERR_PARSE, "the bases of %zu deltas are not in the pack", s->open);
    return code;
}

static void solve_index(struct packed *p)
{
    p->by_id = xcalloc(p->entries.len + 1, sizeof(*p->by_id));
    for (size_t i = 0; i < p->entries.len; i++)
        p->by_id[i] = (uint32_t)i;
    p->by_id_len = p->entries.len;
    qsort_r(p->by_id, p->by_id_len, sizeof(*p->by_id), entry_id_order, p->entries.items);
    for (size_t i = 1; i < p->by_id_len; i++)
        p->doubles += memcmp(p->entries.items[p->by_id[i]].id, p->entries.items[p->by_id[i - 1]].id,
                             ENTRY_ID_LEN) == 0;
}

int packed_solve(struct packed *p, struct err *err)
{
    struct solve s = {.p = p, .open = p->deltas};

    solve_list_waiters(&s);
    int code = solve_all(&s, err);
    free(s.waiters);
    vec_release(&s.ready);
    if (code == 0)
        solve_index(p);
    return code;
}
