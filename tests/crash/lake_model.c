/* The model of lake_chaos.c. */
#include "crash/lake_model.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FILL_WAIT_US = 200 };

const char *const model_branches[MODEL_BRANCHES] = {"main", "work", "side"};

/* --- contents --- */

static bool state_equals(const struct model_state *a, const struct model_state *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

bool content_add(struct content *c, struct str path, struct str etag)
{
    unsigned thread, number;
    uint64_t value;
    char text[64], branch[16], rest;

    snprintf(text, sizeof(text), STR_FMT, STR_ARG(path));
    if (str_u64(etag, &value) != 0 || value == 0 || value > UINT32_MAX)
        return false;
    if (sscanf(text, "count/%u%c", &number, &rest) == 1 && number < MODEL_COUNTERS) {
        c->counters[number] = (uint32_t)value;
        return true;
    }
    if (sscanf(text, "prize/%u%c", &number, &rest) == 1 && number < MODEL_PRIZES) {
        c->prizes[number] = (uint32_t)value;
        return true;
    }
    if (sscanf(text, "%15[a-z]/%u/%u%c", branch, &thread, &number, &rest) != 3)
        return false;
    for (unsigned b = 0; b < MODEL_BRANCHES; b++)
        if (strcmp(branch, model_branches[b]) == 0 && thread < MODEL_THREADS &&
            number < MODEL_PATHS) {
            c->prefixes[b][thread].values[number] = (uint32_t)value;
            return true;
        }
    return false;
}

/* One path of a merge. */
static bool value_merge(uint32_t *out, uint32_t base, uint32_t source, uint32_t dest,
                        enum tree_strategy strategy)
{
    bool is_conflict = source != dest && base != dest && base != source;

    *out = base == dest || (is_conflict && strategy == TREE_SOURCE_WINS) ? source : dest;
    return !is_conflict || strategy != TREE_NO_STRATEGY;
}

bool content_merge(struct content *out, const struct content *base, const struct content *source,
                   const struct content *dest, enum tree_strategy strategy)
{
    enum { VALUES = sizeof(struct content) / sizeof(uint32_t) };
    const uint32_t *b = (const uint32_t *)base, *s = (const uint32_t *)source,
                   *d = (const uint32_t *)dest;
    bool good = true;

    for (size_t i = 0; i < VALUES; i++)
        good = value_merge((uint32_t *)out + i, b[i], s[i], d[i], strategy) && good;
    return good;
}

void content_join(struct content *out, const struct content *base, const struct content *source,
                  const struct content *dest)
{
    enum { VALUES = sizeof(struct content) / sizeof(uint32_t) };
    const uint32_t *b = (const uint32_t *)base, *s = (const uint32_t *)source,
                   *d = (const uint32_t *)dest;

    for (size_t i = 0; i < VALUES; i++)
        if (!value_merge((uint32_t *)out + i, b[i], s[i], d[i], TREE_NO_STRATEGY))
            ((uint32_t *)out)[i] = UINT32_MAX;
}

/* --- changes of the owner --- */

bool model_is_full(const struct model_prefix *p)
{
    return p->begun + 1 >= MODEL_STATES;
}

const struct model_state *model_now(const struct model_prefix *p)
{
    return &p->states[p->acked];
}

static void model_begin_at(struct model *m, struct model_prefix *p, uint32_t i)
{
    p->began_at[i] = ++m->clock;
    p->ended_at[i] = 0;
    p->begun = i;
}

void model_begin(struct model *m, struct model_prefix *p, const struct model_state *next)
{
    uint32_t i = p->begun + 1;

    p->states[i] = *next;
    model_begin_at(m, p, i);
    p->filled = i;
}

void model_begin_unknown(struct model *m, struct model_prefix *p, uint32_t paths)
{
    p->unknown = paths;
    model_begin_at(m, p, p->begun + 1);
}

void model_fill(struct model_prefix *p, const struct model_state *next)
{
    p->states[p->begun] = *next;
    p->filled = p->begun;
}

void model_ack(struct model *m, struct model_prefix *p)
{
    p->ended_at[p->begun] = ++m->clock;
    p->acked = p->begun;
}

/* --- gates --- */

bool gate_enter(struct model_gate *g)
{
    g->inside++;
    if (!g->is_closed)
        return true;
    g->inside--;
    return false;
}

void gate_leave(struct model_gate *g)
{
    g->inside--;
}

bool gate_close(struct model_gate *g)
{
    if (atomic_exchange(&g->is_closed, true))
        return false;
    while (g->inside > 0)
        usleep(FILL_WAIT_US);
    return true;
}

void gate_open(struct model_gate *g)
{
    g->is_closed = false;
}

/* --- changes of a whole branch --- */

bool model_whole_close(struct model *m, unsigned branch)
{
    bool is_full = false;

    if (!gate_close(&m->writers[branch]))
        return false;
    for (unsigned i = 0; i < MODEL_THREADS; i++)
        is_full = is_full || model_is_full(&m->prefixes[branch][i]);
    if (is_full)
        gate_open(&m->writers[branch]);
    return !is_full;
}

void model_whole_open(struct model *m, unsigned branch)
{
    gate_open(&m->writers[branch]);
}

void model_whole_begin(struct model *m, unsigned branch)
{
    m->is_changing[branch] = true;
    for (unsigned i = 0; i < MODEL_THREADS; i++)
        model_begin_unknown(m, &m->prefixes[branch][i], (1u << MODEL_PATHS) - 1);
}

void model_whole_end(struct model *m, unsigned branch, const struct content *seen)
{
    for (unsigned i = 0; i < MODEL_THREADS; i++) {
        struct model_prefix *p = &m->prefixes[branch][i];
        model_fill(p, seen ? &seen->prefixes[branch][i] : model_now(p));
        model_ack(m, p);
    }
    if (branch == 0 && seen)
        model_set_shared(m, seen);
    m->is_changing[branch] = false;
}

/* --- observations --- */

void model_range_begin(const struct model *m, unsigned branch, struct model_range *out)
{
    for (unsigned i = 0; i < MODEL_THREADS; i++)
        out->from[i] = m->prefixes[branch][i].acked;
}

void model_range_end(const struct model *m, unsigned branch, struct model_range *r)
{
    for (unsigned i = 0; i < MODEL_THREADS; i++)
        r->to[i] = m->prefixes[branch][i].begun;
    for (unsigned i = 0; i < MODEL_THREADS; i++)
        while (m->prefixes[branch][i].filled < r->to[i])
            usleep(FILL_WAIT_US);
}

int64_t model_find(const struct model_prefix *p, const struct model_state *seen, uint32_t from,
                   uint32_t to)
{
    for (uint32_t i = from; i <= to && i <= p->filled; i++)
        if (state_equals(&p->states[i], seen))
            return i;
    return -1;
}

/* The tick before which the observation was made, if it does not show the next change of the
 * prefix, which was acknowledged then. */
static uint64_t prefix_latest(const struct model_prefix *p, const struct model_state *seen,
                              uint32_t to)
{
    uint32_t last = to;

    while (last > 0 && !state_equals(&p->states[last], seen))
        last--;
    uint64_t ended = last < p->begun ? (uint64_t)p->ended_at[last + 1] : 0;
    return ended ? ended : UINT64_MAX;
}

const char *model_judge(const struct model *m, unsigned branch, const struct content *seen,
                        const struct model_range *r, bool is_moment, unsigned *thread)
{
    uint64_t earliest = 0, latest = UINT64_MAX;

    for (unsigned i = 0; i < MODEL_THREADS; i++) {
        const struct model_prefix *p = &m->prefixes[branch][i];
        const struct model_state *state = &seen->prefixes[branch][i];
        int64_t first = model_find(p, state, r->from[i], r->to[i]);
        if (thread)
            *thread = i;
        if (first < 0)
            return "a prefix is in a state that it cannot be in";
        if (first > 0 && p->began_at[first] > earliest)
            earliest = p->began_at[first];
        uint64_t before = prefix_latest(p, state, r->to[i]);
        latest = before < latest ? before : latest;
        if (is_moment && latest < earliest)
            return "a change is there, and another one that ended before it began is not";
    }
    return NULL;
}

void model_raise(_Atomic(uint32_t) *number, uint32_t to)
{
    uint32_t now = *number;

    while (now < to && !atomic_compare_exchange_weak(number, &now, to))
        ;
}

void model_raise_floors(struct model *m, unsigned branch, const struct model_range *r)
{
    for (unsigned i = 0; i < MODEL_THREADS; i++)
        model_raise(&m->prefixes[branch][i].floor, r->from[i]);
}

/* --- another run --- */

void model_restart(struct model *m, unsigned branch, const struct content *head,
                   const struct content *now)
{
    for (unsigned i = 0; i < MODEL_THREADS; i++) {
        struct model_prefix *p = &m->prefixes[branch][i];
        p->states[0] = head->prefixes[branch][i];
        p->states[1] = now->prefixes[branch][i];
        p->began_at[0] = p->began_at[1] = 0;
        p->ended_at[0] = p->ended_at[1] = 1;
        p->begun = p->filled = p->acked = 1;
        p->floor = 0;
    }
    m->quiet[branch] = 0;
    m->is_changing[branch] = false;
    memset(&m->writers[branch], 0, sizeof(m->writers[branch]));
    memset(&m->heads[branch], 0, sizeof(m->heads[branch]));
}

void model_set_shared(struct model *m, const struct content *now)
{
    for (unsigned i = 0; i < MODEL_COUNTERS; i++) {
        struct model_counter *c = &m->counters[i];
        memset(c->won, 0, sizeof(c->won));
        c->acked = c->begun = c->base = now->counters[i];
    }
    for (unsigned i = 0; i < MODEL_PRIZES; i++)
        m->prizes[i] = now->prizes[i];
}
