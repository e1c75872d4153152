/* Runs rounds of readiness checks: one round at a time, at most one a second. */
#include "room/ready.h"
#include "base/clock.h"

#include <stdio.h>

enum { CHECK_STACK = 256 * 1024 };

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

struct check {
    const struct ready_part *part;
    struct ready_state *state;
    struct thread thread;
};

static void ready_set_state(struct ready_state *state, int code, const struct err *err)
{
    state->code = code;
    snprintf(state->text, sizeof(state->text), "%.*s", (int)sizeof(state->text) - 1,
             state->code == 0 ? ""
             : *err->text     ? err->text
                              : err_text(state->code));
}

static void ready_run_check(void *ctx)
{
    struct check *c = ctx;
    struct err err = {0};
    int code = c->part->check(c->part->ctx, &err);

    ready_set_state(c->state, code, &err);
}

/* Runs all checks at the same time, because each check takes its whole timeout when Redis does not
 * answer. */
static void ready_run_checks(struct ready *r, struct ready_state *states)
{
    struct check checks[READY_MAX_PARTS] = {0};

    for (size_t i = 0; i < r->count; i++) {
        checks[i] = (struct check){.part = &r->parts[i], .state = &states[i]};
        if (i + 1 == r->count || thread_start(&checks[i].thread, "ready", CHECK_STACK,
                                              ready_run_check, &checks[i], NULL) < 0)
            ready_run_check(&checks[i]);
    }
    for (size_t i = 0; i < r->count; i++)
        thread_join(&checks[i].thread);
}

/* Runs a round. The caller holds the lock, which is released while the checks run. */
static void ready_run_round(struct ready *r)
{
    struct ready_state states[READY_MAX_PARTS] = {0};

    r->running = true;
    mutex_unlock(&r->lock);
    ready_run_checks(r, states);
    mutex_lock(&r->lock);
    memcpy(r->states, states, sizeof(states));
    r->checked_ms = clock_mono_ms();
    r->running = false;
    cond_broadcast(&r->done);
}

static void ready_look_now(const struct ready *r, struct ready_state *out)
{
    for (size_t i = 0; i < r->count; i++) {
        const struct ready_part *part = &r->parts[i];
        struct err err = {0};
        int code = part->now ? part->now(part->ctx, &err) : 0;
        if (code < 0)
            ready_set_state(&out[i], code, &err);
    }
}

int ready_get(struct ready *r, struct ready_state *out, bool may_block)
{
    int code = 0;

    mutex_lock(&r->lock);
    if (r->checked_ms == 0 || clock_mono_ms() - r->checked_ms >= READY_FRESH_MS) {
        if (!may_block)
            code = ERR_AGAIN;
        else if (!r->running)
            ready_run_round(r);
        while (code == 0 && r->checked_ms == 0)
            cond_wait(&r->done, &r->lock);
    }
    if (code == 0)
        memcpy(out, r->states, r->count * sizeof(*out));
    mutex_unlock(&r->lock);
    if (code == 0)
        ready_look_now(r, out);
    return code;
}

void ready_last(struct ready *r, struct ready_state *out)
{
    mutex_lock(&r->lock);
    memcpy(out, r->states, r->count * sizeof(*out));
    mutex_unlock(&r->lock);
    ready_look_now(r, out);
}
