/* The check of histories: the search of Wing and Gong with a memory, as refined by Lowe ("Testing
 * for linearizability", 2016).
 *
 * Events (beginnings and ends of requests) are in a list in the order of time. The next request of
 * the order that is looked for is one that begins before the first end in the list. When it is
 * chosen, its two events leave the list. At a dead end the last choice is taken back. A state that
 * was met before (the set of chosen requests, and the value) is not looked at again.
 *
 * What makes long histories cheap:
 *
 *   C1  A read whose value is there, and a swap whose refusal is right, are chosen at once and for
 *       good: they change nothing.
 *   C2  A value that is still to be read is not overwritten, because no other write brings it back.
 *       This holds for all values but LINEAR_ABSENT.
 *   C3  A request with unknown outcome whose value was read has an end: that of the first read.
 *   C4  Other requests with unknown outcome are tried only at a dead end. Those that do the same
 *       (all deletes, and all writes of values that nobody names) are chosen in the order of their
 *       beginnings, since any of them will do.
 *   C5  From the first end to the last beginning of the requests that write or see a value, the key
 *       has this value (its zone), because it is written once. Two zones that overlap, or a request
 *       inside a zone that needs another value, are found before the search (Gibbons and Korach,
 *       "Testing shared memories", 1997). Most wrong histories end here. */
#include "unit/shard/linear.h"

#include <stdlib.h>

enum { LINEAR_STEPS_MAX = 4 * 1000 * 1000, LINEAR_TOLD = 20 };

/* Values by dense ids. All values that no read and no condition names are one. */
enum { ID_ABSENT, ID_UNNAMED, ID_FIRST };
enum { NO_CONDITION = -1, ANY_OBJECT = -2 };

/* A request as the search sees it. */
struct step {
    const struct linear_op *op;
    bool is_free; /* changes nothing */
    bool refused;
    int value, expected; /* ids; expected may be NO_CONDITION or ANY_OBJECT */
    uint64_t end;        /* LINEAR_NO_END: optional */
    uint64_t mark[2];    /* random; those of the chosen steps make the hash of the set */
};

struct event {
    struct event *prev, *next, *other; /* other: the end of this beginning */
    struct step *step;
    uint64_t time;
    bool is_end;
};

/* Optional steps that do the same, in the order of their beginnings. */
struct group {
    VEC(struct step *) steps;
    size_t used;
};

enum choice_kind { CHOICE_FREE, CHOICE_STEP, CHOICE_OPTIONAL };

struct choice {
    enum choice_kind kind;
    struct step *step;
    struct event *event; /* of an optional step: the end at which it was tried */
    size_t group;
    int before; /* the value */
};

struct seen {
    uint64_t a, b;
};

struct search {
    VEC(struct step) steps;
    VEC(uint64_t) values; /* named values, sorted; the index is the id less ID_FIRST */
    VEC(int) readers;     /* by id: steps not chosen yet that need this value */
    VEC(struct group) groups;
    VEC(struct choice) choices;
    struct event *events, head;
    size_t required; /* not chosen yet */
    int value;       /* the register */
    uint64_t hash[2];
    struct seen *seen;
    size_t seen_mask, seen_count;
    /* For the report: the furthest dead end. */
    size_t best;
    const struct step *stuck;
    int stuck_value;
};

/* --- the memory --- */

static uint64_t linear_mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static bool seen_insert(struct search *s, struct seen k)
{
    for (size_t i = k.a & s->seen_mask;; i = (i + 1) & s->seen_mask) {
        if (s->seen[i].a == k.a && s->seen[i].b == k.b)
            return false;
        if (s->seen[i].a == 0 && s->seen[i].b == 0) {
            s->seen[i] = k;
            return true;
        }
    }
}

/* Returns whether the state that follows from choosing the step is new. */
static bool seen_add(struct search *s, const struct step *step)
{
    uint64_t value = linear_mix((uint64_t)step->value);
    struct seen k = {s->hash[0] ^ step->mark[0] ^ value,
                     (s->hash[1] ^ step->mark[1] ^ linear_mix(value)) | 1};

    if (2 * (s->seen_count + 1) > s->seen_mask) {
        struct seen *old = s->seen;
        size_t slots = old ? s->seen_mask + 1 : 0;
        s->seen_mask = slots ? 2 * slots - 1 : 1023;
        s->seen = xcalloc(s->seen_mask + 1, sizeof(*s->seen));
        for (size_t i = 0; i < slots; i++)
            if (old[i].b)
                seen_insert(s, old[i]);
        free(old);
    }
    bool is_new = seen_insert(s, k);
    s->seen_count += is_new;
    return is_new;
}

/* --- steps --- */

static bool step_condition_holds(const struct search *s, const struct step *step)
{
    if (step->expected == ANY_OBJECT)
        return s->value != ID_ABSENT;
    return step->expected == NO_CONDITION || step->expected == s->value;
}

static bool step_fits(const struct search *s, const struct step *step)
{
    if (step->refused)
        return !step_condition_holds(s, step);
    if (step->is_free)
        return s->value == step->value;
    int readers = s->value >= ID_FIRST ? s->readers.items[s->value] : 0;
    return step_condition_holds(s, step) && readers <= (step->expected == s->value); /* C2 */
}

/* The value that the step needs to see, or -1. An optional step needs none. */
static int step_needs(const struct step *step)
{
    if (step->refused || step->end == LINEAR_NO_END)
        return -1;
    int id = step->is_free ? step->value : step->expected;
    return id >= ID_FIRST ? id : -1;
}

static void event_unlink(struct event *e)
{
    e->prev->next = e->next;
    e->next->prev = e->prev;
}

static void event_relink(struct event *e)
{
    e->prev->next = e;
    e->next->prev = e;
}

static void search_choose(struct search *s, struct choice c)
{
    int needs = step_needs(c.step);

    c.before = s->value;
    vec_push(&s->choices, c);
    for (int i = 0; i < 2; i++)
        s->hash[i] ^= c.step->mark[i];
    if (needs >= 0)
        s->readers.items[needs]--;
    if (!c.step->is_free)
        s->value = c.step->value;
    if (c.kind == CHOICE_OPTIONAL) {
        s->groups.items[c.group].used++;
        return;
    }
    s->required--;
    event_unlink(c.event);
    event_unlink(c.event->other);
}

static struct choice search_take_back(struct search *s)
{
    struct choice c = vec_pop(&s->choices);
    int needs = step_needs(c.step);

    for (int i = 0; i < 2; i++)
        s->hash[i] ^= c.step->mark[i];
    if (needs >= 0)
        s->readers.items[needs]++;
    s->value = c.before;
    if (c.kind == CHOICE_OPTIONAL) {
        s->groups.items[c.group].used--;
        return c;
    }
    s->required++;
    event_relink(c.event->other);
    event_relink(c.event);
    return c;
}

/* --- the search --- */

/* Chooses all steps that cost nothing (C1). */
static void search_free_steps(struct search *s)
{
    for (struct event *e = s->head.next; e != &s->head && !e->is_end;) {
        bool fits = e->step->is_free && step_fits(s, e->step);
        if (fits)
            search_choose(s, (struct choice){CHOICE_FREE, e->step, e, 0, 0});
        e = fits ? s->head.next : e->next; /* the first end may be a later one now */
    }
}

/* Looks from *at on for a step that may be next; NULL: *at is the first end of the list. */
static struct event *search_step(struct search *s, struct event **at)
{
    for (; !(*at)->is_end; *at = (*at)->next)
        if (!(*at)->step->is_free && step_fits(s, (*at)->step) && seen_add(s, (*at)->step))
            return *at;
    return NULL;
}

static struct step *search_optional(struct search *s, const struct event *end, size_t *group)
{
    for (; *group < s->groups.len; (*group)++) {
        const struct group *g = &s->groups.items[*group];
        struct step *step = g->used < g->steps.len ? g->steps.items[g->used] : NULL;
        if (step && step->op->begin_ns <= end->time && step->value != s->value &&
            step_fits(s, step) && seen_add(s, step))
            return step;
    }
    return NULL;
}

static void search_note_dead_end(struct search *s, const struct event *end)
{
    if (s->stuck && s->choices.len <= s->best)
        return;
    s->best = s->choices.len;
    s->stuck = end->step;
    s->stuck_value = s->value;
}

static enum linear_verdict search_run(struct search *s)
{
    struct event *at = NULL, *found;
    size_t group = 0;

    for (size_t steps = 0; steps < LINEAR_STEPS_MAX; steps++) {
        struct step *optional;
        if (!at)
            search_free_steps(s);
        if (s->required == 0)
            return LINEAR_RIGHT;
        if (!at) {
            at = s->head.next;
            group = 0;
        }
        if ((found = search_step(s, &at))) {
            search_choose(s, (struct choice){CHOICE_STEP, found->step, found, 0, 0});
            at = NULL;
        } else if ((optional = search_optional(s, at, &group))) {
            search_choose(s, (struct choice){CHOICE_OPTIONAL, optional, at, group, 0});
            at = NULL;
        } else {
            struct choice c = {0};
            search_note_dead_end(s, at);
            do {
                if (s->choices.len == 0)
                    return LINEAR_WRONG;
                c = search_take_back(s);
            } while (c.kind == CHOICE_FREE);
            at = c.kind == CHOICE_STEP ? c.event->next : c.event;
            group = c.kind == CHOICE_STEP ? 0 : c.group + 1;
        }
    }
    return LINEAR_TOO_HARD;
}

/* --- preparing --- */

static int linear_compare_values(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Returns the id of a value. */
static int search_id(const struct search *s, uint64_t value)
{
    const uint64_t *at;

    if (value == LINEAR_ABSENT)
        return ID_ABSENT;
    at = s->values.len
             ? bsearch(&value, s->values.items, s->values.len, sizeof(value), linear_compare_values)
             : NULL;
    return at ? ID_FIRST + (int)(at - s->values.items) : ID_UNNAMED;
}

static void search_name_values(struct search *s, const struct linear_op *ops, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (ops[i].kind == LINEAR_READ && ops[i].outcome == LINEAR_DONE && ops[i].value)
            vec_push(&s->values, ops[i].value);
        if (ops[i].kind == LINEAR_SWAP && ops[i].expected && ops[i].expected != LINEAR_ANY)
            vec_push(&s->values, ops[i].expected);
    }
    if (s->values.len)
        qsort(s->values.items, s->values.len, sizeof(uint64_t), linear_compare_values);
    for (size_t i = 0; i < s->values.len; i++)
        if (i == 0 || s->values.items[i] != s->values.items[i - 1])
            s->values.items[kept++] = s->values.items[i];
    s->values.len = kept;
}

static void search_add_step(struct search *s, const struct linear_op *op)
{
    size_t i = s->steps.len;
    struct step step = {
        .op = op,
        .refused = op->kind == LINEAR_SWAP && op->outcome == LINEAR_REFUSED,
        .value = search_id(s, op->value),
        .expected = op->kind != LINEAR_SWAP      ? NO_CONDITION
                    : op->expected == LINEAR_ANY ? ANY_OBJECT
                                                 : search_id(s, op->expected),
        .end = op->outcome == LINEAR_UNKNOWN ? LINEAR_NO_END : op->end_ns,
        .mark = {linear_mix(2 * i), linear_mix(2 * i + 1)},
    };
    step.is_free = op->kind == LINEAR_READ || step.refused;
    if (op->kind == LINEAR_READ && op->outcome != LINEAR_DONE)
        return; /* tells nothing */
    vec_push(&s->steps, step);
}

/* Gives requests with unknown outcome the end of the first request that saw their value (C3).
 * Returns whether one of them got an end: a swap among them may have seen a value itself. */
static bool search_bound_unknown(struct search *s)
{
    size_t ids = s->values.len + ID_FIRST;
    uint64_t *first = xcalloc(ids, sizeof(*first));
    bool bounded = false;

    for (size_t i = 0; i < ids; i++)
        first[i] = LINEAR_NO_END;
    vec_each (&s->steps, struct step *, step) {
        int needs = step_needs(step);
        if (needs >= 0 && step->end < first[needs])
            first[needs] = step->end;
    }
    vec_each (&s->steps, struct step *, step) {
        if (step->end != LINEAR_NO_END || step->value < ID_FIRST)
            continue;
        step->end = first[step->value];
        bounded |= step->end != LINEAR_NO_END;
    }
    free(first);
    return bounded;
}

/* Whether a step with unknown outcome, whose value nobody names, could explain anything: that a
 * condition failed, or that there was an object. */
static bool search_needs_unnamed(const struct search *s)
{
    vec_each (&s->steps, const struct step *, step) {
        if (step->refused || step->expected == ANY_OBJECT)
            return true;
    }
    return false;
}

static void search_group(struct search *s, struct step *step)
{
    struct group *found = NULL;

    vec_each (&s->groups, struct group *, g) {
        const struct step *first = g->steps.items[0];
        if (first->value == step->value && first->expected == step->expected)
            found = g;
    }
    if (!found) {
        vec_push(&s->groups, (struct group){0});
        found = vec_last(&s->groups);
    }
    vec_push(&found->steps, step);
}

static int step_compare_begins(const void *a, const void *b)
{
    const struct step *x = *(struct step *const *)a, *y = *(struct step *const *)b;

    return (x->op->begin_ns > y->op->begin_ns) - (x->op->begin_ns < y->op->begin_ns);
}

static int event_compare(const void *a, const void *b)
{
    const struct event *x = *(struct event *const *)a, *y = *(struct event *const *)b;

    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (int)x->is_end - (int)y->is_end; /* at one time, beginnings come first */
}

static void search_link_events(struct search *s)
{
    size_t count = 0;
    bool unnamed = search_needs_unnamed(s);
    struct event **order = xcalloc(2 * s->steps.len + 1, sizeof(*order));

    s->events = xcalloc(2 * s->steps.len + 1, sizeof(*s->events));
    vec_each (&s->steps, struct step *, step) {
        struct event *begin = &s->events[count], *end = begin + 1;
        if (step->end == LINEAR_NO_END) {
            if (step->value != ID_UNNAMED || unnamed)
                search_group(s, step);
            continue;
        }
        *begin = (struct event){.step = step, .time = step->op->begin_ns, .other = end};
        *end = (struct event){.step = step, .time = step->end, .is_end = true};
        order[count] = begin;
        order[count + 1] = end;
        count += 2;
    }
    qsort(order, count, sizeof(struct event *), event_compare);
    s->head.next = s->head.prev = &s->head;
    for (size_t i = 0; i < count; i++) {
        order[i]->prev = s->head.prev;
        order[i]->next = &s->head;
        s->head.prev->next = order[i];
        s->head.prev = order[i];
    }
    s->required = count / 2;
    free(order);
}

static void search_count_readers(struct search *s)
{
    for (size_t i = 0; i < s->values.len + ID_FIRST; i++)
        vec_push(&s->readers, 0);
    vec_each (&s->steps, struct step *, step) {
        int needs = step_needs(step);
        if (needs >= 0)
            s->readers.items[needs]++;
    }
}

static void search_release(struct search *s)
{
    vec_each (&s->groups, struct group *, g)
        vec_release(&g->steps);
    vec_release(&s->groups);
    vec_release(&s->steps);
    vec_release(&s->values);
    vec_release(&s->readers);
    vec_release(&s->choices);
    free(s->events);
    free(s->seen);
}

/* --- zones (C5) --- */

struct zone {
    int id;
    uint64_t from, upto; /* the first end, and the last beginning */
    const struct step *last;
};

static int zone_compare(const void *a, const void *b)
{
    const struct zone *x = a, *y = b;

    return (x->from > y->from) - (x->from < y->from);
}

static void zone_add(struct zone *zones, int id, const struct step *step)
{
    if (id < ID_FIRST)
        return;
    if (step->end < zones[id].from)
        zones[id].from = step->end;
    if (step->op->begin_ns >= zones[id].upto) {
        zones[id].upto = step->op->begin_ns;
        zones[id].last = step;
    }
}

/* Whether the step is right while the key has the value. */
static bool zone_allows(const struct zone *z, const struct step *step)
{
    if (step->refused)
        return step->expected != z->id && step->expected != ANY_OBJECT;
    return step->value == z->id || step->expected == z->id;
}

/* Returns the zone with the greatest `from` below the time; NULL: there is none. */
static const struct zone *zone_before(const struct zone *zones, size_t count, uint64_t time)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (zones[middle].from < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &zones[low - 1] : NULL;
}

/* Returns a step that contradicts a zone; NULL: there is none. */
static const struct step *search_zones(const struct search *s)
{
    size_t ids = s->values.len + ID_FIRST, count = 0;
    struct zone *zones = xcalloc(ids, sizeof(*zones));
    const struct step *wrong = NULL;

    for (size_t i = 0; i < ids; i++)
        zones[i] = (struct zone){(int)i, LINEAR_NO_END, 0, NULL};
    vec_each (&s->steps, const struct step *, step) {
        if (step->end == LINEAR_NO_END || step->refused)
            continue;
        zone_add(zones, step->value, step);
        zone_add(zones, step->expected, step);
    }
    for (size_t i = ID_FIRST; i < ids; i++)
        if (zones[i].from < zones[i].upto)
            zones[count++] = zones[i];
    qsort(zones, count, sizeof(*zones), zone_compare);
    for (size_t i = 1; i < count && !wrong; i++)
        if (zones[i].from < zones[i - 1].upto)
            wrong = zones[i - 1].last;
    for (size_t i = 0; i < s->steps.len && !wrong; i++) {
        const struct step *step = &s->steps.items[i];
        const struct zone *z = zone_before(zones, count, step->op->begin_ns);
        if (z && step->end < z->upto && !zone_allows(z, step))
            wrong = step;
    }
    free(zones);
    return wrong;
}

/* --- telling --- */

static void linear_tell_op(const struct linear_op *op, uint64_t zero, struct buf *why)
{
    static const char *const kinds[] = {"read", "write", "swap"};
    static const char *const outcomes[] = {"", " refused", " (answer lost)"};

    buf_appendf(why, "  %8lld..", (long long)(op->begin_ns - zero) / 1000);
    if (op->outcome == LINEAR_UNKNOWN)
        buf_append_z(why, "?");
    else
        buf_appendf(why, "%lld", (long long)(op->end_ns - zero) / 1000);
    buf_appendf(why, " us %s %llu", kinds[op->kind], (unsigned long long)op->value);
    if (op->kind == LINEAR_SWAP)
        buf_appendf(why, " expecting %llu", (unsigned long long)op->expected);
    buf_appendf(why, "%s\n", outcomes[op->outcome]);
}

/* Tells the last choices before the dead end, and the request that fits nowhere. */
static void linear_tell(const struct search *s, enum linear_verdict verdict, struct buf *why)
{
    const struct linear_op *stuck = s->stuck ? s->stuck->op : NULL;
    size_t told = 0;

    if (!stuck) {
        buf_append_z(why, "the search was given up\n");
        return;
    }
    buf_appendf(why, "key %u: %s; times are from the beginning of the request that fits nowhere\n",
                stuck->key,
                verdict == LINEAR_WRONG ? "no order explains the history"
                                        : "the search was given up");
    linear_tell_op(stuck, stuck->begin_ns, why);
    buf_append_z(why, "requests that touch it in time:\n");
    vec_each (&s->steps, const struct step *, step) {
        bool touches = step->op != stuck && step->op->begin_ns <= stuck->end_ns &&
                       step->end >= stuck->begin_ns;
        if (touches && told++ < LINEAR_TOLD)
            linear_tell_op(step->op, stuck->begin_ns, why);
    }
}

/* --- checking --- */

enum linear_verdict linear_check_key(const struct linear_op *ops, size_t count, struct buf *why)
{
    struct search s = {0};

    search_name_values(&s, ops, count);
    for (size_t i = 0; i < count; i++)
        search_add_step(&s, &ops[i]);
    while (search_bound_unknown(&s))
        continue;
    search_count_readers(&s);
    search_link_events(&s);
    vec_each (&s.groups, struct group *, g)
        qsort(g->steps.items, g->steps.len, sizeof(struct step *), step_compare_begins);
    s.stuck = search_zones(&s);
    enum linear_verdict verdict = s.stuck ? LINEAR_WRONG : search_run(&s);
    if (verdict != LINEAR_RIGHT)
        linear_tell(&s, verdict, why);
    search_release(&s);
    return verdict;
}

static int linear_compare_keys(const void *a, const void *b)
{
    const struct linear_op *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

enum linear_verdict linear_check(struct linear *h, struct buf *why)
{
    enum linear_verdict verdict = LINEAR_RIGHT;
    size_t from = 0;

    if (h->ops.len)
        qsort(h->ops.items, h->ops.len, sizeof(struct linear_op), linear_compare_keys);
    while (from < h->ops.len && verdict == LINEAR_RIGHT) {
        size_t upto = from;
        while (upto < h->ops.len && h->ops.items[upto].key == h->ops.items[from].key)
            upto++;
        verdict = linear_check_key(&h->ops.items[from], upto - from, why);
        from = upto;
    }
    return verdict;
}

/* --- histories --- */

void linear_init(struct linear *h)
{
    *h = (struct linear){0};
    mutex_init(&h->lock, "test.linear");
}

void linear_release(struct linear *h)
{
    mutex_release(&h->lock);
    vec_release(&h->ops);
}

void linear_add(struct linear *h, const struct linear_op *op)
{
    mutex_lock(&h->lock);
    vec_push(&h->ops, *op);
    mutex_unlock(&h->lock);
}
