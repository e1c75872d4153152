/* Counts the lake's own operations, and keeps notes of those that were slow or failed. */
#include "lake/notes.h"

#include "base/clock.h"
#include "os/thread.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

const char *const lake_note_names[LAKE_NOTE_KINDS] = {
    [LAKE_NOTE_WRITE] = "write",
    [LAKE_NOTE_NODE_READ] = "node read",
    [LAKE_NOTE_NODE_WRITE] = "node write",
    [LAKE_NOTE_COMMIT] = "commit",
};

/* Counts operations. The counters are atomic, so an operation that is fast and succeeds takes no
 * lock. */
struct note_counter {
    _Atomic(uint64_t) count, failed, total_ns, slowest_ns;
};

struct lake_notes {
    struct note_counter counters[LAKE_NOTE_KINDS];
    struct mutex lock; /* class "lake.notes"; guards the members below */
    struct lake_note kept[LAKE_NOTES_KEPT];
    uint64_t added; /* number of notes so far; the next note is stored at added % LAKE_NOTES_KEPT */
};

struct lake_notes *lake_notes_new(void)
{
    struct lake_notes *n = xzalloc(sizeof(*n));

    mutex_init(&n->lock, "lake.notes");
    return n;
}

void lake_notes_free(struct lake_notes *n)
{
    if (!n)
        return;
    mutex_release(&n->lock);
    free(n);
}

static void note_count(struct note_counter *c, uint64_t took_ns, bool failed)
{
    uint64_t slowest = atomic_load_explicit(&c->slowest_ns, memory_order_relaxed);

    atomic_fetch_add_explicit(&c->count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->total_ns, took_ns, memory_order_relaxed);
    if (failed)
        atomic_fetch_add_explicit(&c->failed, 1, memory_order_relaxed);
    while (took_ns > slowest && !atomic_compare_exchange_weak(&c->slowest_ns, &slowest, took_ns))
        ;
}

static void note_keep(struct lake_notes *n, const struct lake_note *note)
{
    mutex_lock(&n->lock);
    n->kept[n->added++ % LAKE_NOTES_KEPT] = *note;
    mutex_unlock(&n->lock);
}

void lake_notes_add(struct lake_notes *n, enum lake_note_kind kind, struct str what,
                    uint64_t begun_ns, int code, const struct err *err)
{
    uint64_t took_ns = clock_mono_ns() - begun_ns;
    bool failed = code < 0 && err_kind(code) == ERR_KIND_FAILURE;

    note_count(&n->counters[kind], took_ns, failed);
    if (!failed && took_ns < LAKE_NOTES_SLOW_MS * NS_PER_MS)
        return;
    struct lake_note note = {
        .kind = kind, .ended_ms = clock_wall_ms(), .took_ns = took_ns, .code = failed ? code : 0};
    snprintf(note.what, sizeof(note.what), STR_FMT, STR_ARG(str_head(what, LAKE_NOTE_TEXT - 1)));
    if (failed && err)
        snprintf(note.error, sizeof(note.error), "%.*s", LAKE_NOTE_TEXT - 1, err->text);
    note_keep(n, &note);
}

void lake_notes_count(struct lake_notes *n, struct lake_note_count out[LAKE_NOTE_KINDS])
{
    for (int i = 0; i < LAKE_NOTE_KINDS; i++)
        out[i] = (struct lake_note_count){n->counters[i].count, n->counters[i].failed,
                                          n->counters[i].total_ns, n->counters[i].slowest_ns};
}

size_t lake_notes_list(struct lake_notes *n, struct arena *a, struct lake_note **out)
{
    struct lake_note *list = arena_array(a, LAKE_NOTES_KEPT, sizeof(*list));
    size_t count = 0;

    *out = list;
    if (!list)
        return 0;
    mutex_lock(&n->lock);
    uint64_t first = n->added > LAKE_NOTES_KEPT ? n->added - LAKE_NOTES_KEPT : 0;
    for (uint64_t i = first; i < n->added; i++)
        list[count++] = n->kept[i % LAKE_NOTES_KEPT];
    mutex_unlock(&n->lock);
    return count;
}
