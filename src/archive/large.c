/* A limit on the memory that lists of strangers need together. */
#include "archive/large.h"

#include "base/clock.h"

#include <poll.h>

enum {
    LARGE_STEP = 64 * 1024, /* bytes that a hold takes from the budget of lists at once */
    LARGE_PAUSE_MS = 50,    /* pause between two looks at the end of other large work */
};

void large_room_init(struct large_room *room)
{
    budget_init(&room->lists, LARGE_LISTS_MAX, NULL);
    budget_init(&room->buffers, LARGE_BUFFERS_MAX, NULL);
    atomic_init(&room->taken, false);
}

static size_t hold_steps(size_t bytes)
{
    return (bytes + LARGE_STEP - 1) / LARGE_STEP * LARGE_STEP;
}

/* Pays for `bytes` in all from the budget of lists. */
static bool hold_pay(struct large_hold *h, size_t bytes)
{
    size_t more = bytes > h->paid ? hold_steps(bytes - h->paid) : 0;

    if (more && !budget_take(&h->room->lists, more))
        return false;
    h->paid += more;
    return true;
}

static int hold_become_large(struct large_hold *h, struct err *err)
{
    uint64_t began_ms = clock_mono_ms();

    while (atomic_exchange(&h->room->taken, true)) {
        if (h->cancel && atomic_load_explicit(h->cancel, memory_order_relaxed))
            return err_code(err, ERR_CANCELED);
        if (clock_mono_ms() - began_ms >= h->wait_ms)
            return err_set(err, ERR_TIMEOUT, "other repositories with large lists took too long");
        poll(NULL, 0, LARGE_PAUSE_MS);
    }
    h->is_large = true;
    return 0;
}

int large_take(struct large_hold *h, size_t bytes, struct err *err)
{
    if (!h || !h->room)
        return 0;
    h->used += bytes;
    return h->is_large || hold_pay(h, h->used) ? 0 : hold_become_large(h, err);
}

int large_reach(struct large_hold *h, size_t *reached, size_t bytes, struct err *err)
{
    size_t more = bytes > *reached ? bytes - *reached : 0;

    *reached += more;
    return more ? large_take(h, more, err) : 0;
}

bool large_try(struct large_hold *h, size_t bytes)
{
    return !h || !h->room || budget_take(&h->room->buffers, bytes);
}

void large_give(struct large_hold *h, size_t bytes)
{
    if (h && h->room)
        budget_give(&h->room->buffers, bytes);
}

void large_back(struct large_hold *h, size_t used)
{
    size_t keep = hold_steps(used);

    if (!h->room)
        return;
    h->used = used;
    if (h->paid > keep) {
        budget_give(&h->room->lists, h->paid - keep);
        h->paid = keep;
    }
    if (h->is_large && hold_pay(h, used)) {
        h->is_large = false;
        atomic_store(&h->room->taken, false);
    }
}

void large_release(struct large_hold *h)
{
    if (!h->room)
        return;
    if (h->paid)
        budget_give(&h->room->lists, h->paid);
    if (h->is_large)
        atomic_store(&h->room->taken, false);
    h->used = h->paid = 0;
    h->is_large = false;
}
