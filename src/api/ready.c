/* Rounds of checks: one at a time, at most one a second. */
#include "api/ready.h"
#include "base/clock.h"

#include <stdio.h>

void ready_init(struct ready *r)
{
    memset(r, 0, sizeof(*r));
    mutex_init(&r->lock, "ready");
    cond_init(&r->done);
}

void ready_release(struct ready *r)
{
    cond_release(&r->done);
    mutex_release(&r->lock);
}

void ready_add(struct ready *r, struct ready_part part)
{
    BUG_ON(r->count == READY_MAX_PARTS);
    r->states[r->count].code = ERR_UNAVAILABLE;
    snprintf(r->states[r->count].text, sizeof(r->states[0].text), "not yet checked");
    r->parts[r->count++] = part;
}

static void run_checks(struct ready *r, struct ready_state *states)
{
    for (size_t i = 0; i < r->count; i++) {
        struct err err = {0};
        states[i].code = r->parts[i].check(r->parts[i].ctx, &err);
        snprintf(states[i].text, sizeof(states[i].text), "%.*s", (int)sizeof(states[i].text) - 1,
                 states[i].code == 0 ? ""
                 : *err.text         ? err.text
                                     : err_text(states[i].code));
    }
}

/* Held lock. Lets go of it while the checks run. */
static void run_round(struct ready *r)
{
    struct ready_state states[READY_MAX_PARTS] = {0};

    r->running = true;
    mutex_unlock(&r->lock);
    run_checks(r, states);
    mutex_lock(&r->lock);
    memcpy(r->states, states, sizeof(states));
    r->checked_ms = clock_mono_ms();
    r->running = false;
    cond_broadcast(&r->done);
}

int ready_get(struct ready *r, struct ready_state *out, bool may_block)
{
    int code = 0;

    mutex_lock(&r->lock);
    if (r->checked_ms == 0 || clock_mono_ms() - r->checked_ms >= READY_FRESH_MS) {
        if (!may_block)
            code = ERR_AGAIN;
        else if (!r->running)
            run_round(r);
        while (code == 0 && r->checked_ms == 0)
            cond_wait(&r->done, &r->lock);
    }
    if (code == 0)
        memcpy(out, r->states, r->count * sizeof(*out));
    mutex_unlock(&r->lock);
    return code;
}

void ready_last(struct ready *r, struct ready_state *out)
{
    mutex_lock(&r->lock);
    memcpy(out, r->states, r->count * sizeof(*out));
    mutex_unlock(&r->lock);
}
