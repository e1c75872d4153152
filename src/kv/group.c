/* Groups of writes: writes of several threads that check the same rows become one write
 * (docs/kv.md, "Groups"). The server then makes the checks, syncs and answers only once for all of
 * them.
 *
 * All calls of a group have the same checks, and their puts have no conditions. So the checks hold
 * for all calls of a group or for none, and no call fails because of another one. */
#include "base/clock.h"
#include "base/hash.h"
#include "kv/kv_int.h"

#include <stdlib.h>

enum {
    GROUP_CALLS = 128,       /* most calls in one group */
    GROUP_BYTES = 256 * KIB, /* a group that has reached this size takes no further call */
    CALL_PUTS = 16,          /* a call with more puts than this is sent alone */
    CALL_BYTES = 32 * KIB,   /* a call with more bytes than this is sent alone */
    GROUP_WAIT_MS = 5000,    /* a call that is still not sent after this time fails */
};

/* A call that may become part of a group. */
struct group_write {
    struct flight_call flight;
    const struct kv_write_call *call;
    size_t checks; /* how many changes at the front are KV_CHECK or KV_GLANCE */
    size_t bytes;
    bool frees; /* the call may use the room that is kept for removals (K11) */
    int code;
};

/* The calls of one flight, that is, the calls that are sent to the server as one write
 * (os/flight.h). */
struct write_group {
    struct flight_call *calls[GROUP_CALLS];
    size_t count, bytes, changes;
};

static struct group_write *group_write_of(struct flight_call *c)
{
    return container_of(c, struct group_write, flight);
}

struct kv_groups *kv_groups_new(size_t flights)
{
    struct kv_groups *g = xzalloc(sizeof(*g));

    for (size_t i = 0; i < KV_GROUP_PLACES; i++) {
        mutex_init(&g->places[i].lock, "kv.groups");
        flights_init(&g->places[i], flights);
    }
    return g;
}

void kv_groups_free(struct kv_groups *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < KV_GROUP_PLACES; i++)
        flights_release(&g->places[i]);
    free(g);
}

/* --- which calls fit together --- */

/* Whether the call is small and has checks, then puts of one partition without conditions. */
static bool group_write_init(struct group_write *w, const struct kv_write_call *call)
{
    const struct kv_change *c = call->changes;
    size_t i = 0;

    *w = (struct group_write){.call = call, .frees = kv_changes_free(c, call->count)};
    while (i < call->count && (c[i].what == KV_CHECK || c[i].what == KV_GLANCE) &&
           c[i].when == KV_SAME)
        i++;
    w->checks = i;
    if (i == 0 || i == call->count || call->count - i > CALL_PUTS)
        return false;
    for (; i < call->count; i++) {
        if (c[i].what != KV_PUT || c[i].when != KV_ALWAYS ||
            !str_eq(c[i].name.partition, c[w->checks].name.partition))
            return false;
        w->bytes += c[i].name.key.len + c[i].value.len;
    }
    return w->bytes <= CALL_BYTES;
}

static struct flights *write_group_place(struct kv_groups *g, const struct group_write *w)
{
    const struct kv_change *c = w->call->changes;
    uint64_t hash = hash_xxh3(c[w->checks].name.partition, 0);

    for (size_t i = 0; i < w->checks; i++)
        hash = hash_xxh3(c[i].name.key, hash_xxh3(c[i].stamp, hash));
    return &g->places[hash % KV_GROUP_PLACES];
}

static bool write_group_is_same(const struct group_write *a, const struct group_write *b)
{
    const struct kv_write_call *x = a->call, *y = b->call;
    bool same = a->checks == b->checks && a->frees == b->frees && x->name_count == y->name_count &&
                str_eq(x->changes[a->checks].name.partition, y->changes[b->checks].name.partition);

    for (size_t i = 0; i < a->checks && same; i++)
        same = x->changes[i].what == y->changes[i].what &&
               kv_name_is_same(&x->changes[i].name, &y->changes[i].name) &&
               str_eq(x->changes[i].stamp, y->changes[i].stamp);
    for (size_t i = 0; i < x->name_count && same; i++)
        same = kv_name_is_same(&x->names[i], &y->names[i]);
    return same;
}

static bool write_group_fits(void *ctx, struct flight_call *c)
{
    struct write_group *group = ctx;
    const struct group_write *w = group_write_of(c);

    if (group->bytes >= GROUP_BYTES || !write_group_is_same(group_write_of(group->calls[0]), w))
        return false;
    group->bytes += w->bytes;
    group->changes += w->call->count - w->checks;
    return true;
}

/* --- one flight --- */

struct group_put {
    const struct kv_change *change;
    size_t turn; /* the put's place among all puts of the group, in the order of the calls */
};

static int group_put_order(const void *a, const void *b)
{
    const struct group_put *x = a, *y = b;
    int order = str_cmp(x->change->name.key, y->change->name.key);

    return order ? order : (x->turn > y->turn) - (x->turn < y->turn);
}

/* Writes the checks and the puts of all calls to `out`, which has room for them. If several puts
 * have the same row, only the last one is written. Returns the number of changes written. */
static size_t write_group_merge(struct kv_change *out, const struct write_group *group)
{
    const struct group_write *first = group_write_of(group->calls[0]);
    struct group_put *puts = xcalloc(group->changes, sizeof(*puts));
    size_t count = 0, kept = first->checks;

    for (size_t i = 0; i < group->count; i++) {
        const struct group_write *w = group_write_of(group->calls[i]);
        for (size_t k = w->checks; k < w->call->count; k++, count++)
            puts[count] = (struct group_put){&w->call->changes[k], count};
    }
    qsort(puts, count, sizeof(*puts), group_put_order);
    memcpy(out, first->call->changes, first->checks * sizeof(*out));
    for (size_t i = 0; i < count; i++)
        if (i + 1 == count || !str_eq(puts[i].change->name.key, puts[i + 1].change->name.key))
            out[kept++] = *puts[i].change;
    free(puts);
    return kept;
}

/* Gives one call the results of the group's write: `code`, `err` and the rows that were read. */
static void write_group_answer(struct group_write *to, const struct kv_write_call *from, int code,
                               const struct err *err)
{
    const struct kv_write_call *call = to->call;

    to->code = code < 0 ? err_set(call->err, code, "%s", err->text) : 0;
    *call->failed = *from->failed;
    for (size_t i = 0; i < call->name_count && to->code == 0; i++) {
        call->out[i] = (struct kv_value){0};
        if (!kv_is_there(&from->out[i]))
            continue;
        call->out[i].bytes = call->out[i].stamp = arena_str(call->arena, from->out[i].bytes);
        if (!call->out[i].bytes.p) {
            err_code(call->err, ERR_NO_MEMORY);
            to->code = kv_made_unread(call->err);
        }
    }
}

/* Makes the write of the whole group. The rows that the write reads are in an arena of the group.
 * So if the arena of one call is full, the other calls still succeed. */
static void write_group_fly(struct kv *kv, struct write_group *group)
{
    const struct group_write *first = group_write_of(group->calls[0]);
    struct kv_change *changes = xcalloc(first->checks + group->changes, sizeof(*changes));
    struct kv_value *rows = xcalloc(first->call->name_count + 1, sizeof(*rows));
    struct arena arena = {0};
    struct err err = {0};
    size_t failed = 0;
    struct kv_write_call all = *first->call;

    all.changes = changes;
    all.count = write_group_merge(changes, group);
    all.failed = &failed;
    all.arena = &arena;
    all.out = rows;
    all.err = &err;
    int code = kv_write_run(kv, &all);
    for (size_t i = 0; i < group->count; i++)
        write_group_answer(group_write_of(group->calls[i]), &all, code, &err);
    arena_release(&arena);
    free(rows);
    free(changes);
}

static void write_group_lead(struct kv *kv, struct flights *place, struct group_write *leader)
{
    struct write_group group = {
        {&leader->flight}, .bytes = leader->bytes, .changes = leader->call->count - leader->checks};

    group.count = flight_board(place, group.calls, GROUP_CALLS, write_group_fits, &group);
    if (group.count == 1)
        leader->code = kv_write_run(kv, leader->call);
    else
        write_group_fly(kv, &group);
    flight_end(place, group.calls, group.count);
}

int kv_group_write(struct kv *kv, const struct kv_write_call *call)
{
    struct group_write w;

    if (!kv->groups || !group_write_init(&w, call))
        return kv_write_run(kv, call);
    struct flights *place = write_group_place(kv->groups, &w);
    enum flight_state state =
        flight_begin(place, &w.flight, clock_mono_ns() + GROUP_WAIT_MS * NS_PER_MS);
    if (state == FLIGHT_WAITS)
        return err_set(call->err, ERR_BUSY, "the key-value store answers too slowly");
    if (state == FLIGHT_LEADS)
        write_group_lead(kv, place, &w);
    return w.code;
}
