/* Keeping a copy in memory up to date: it is loaded at the start, after a message, and again after
 * a failure. */
#include "store/reload.h"
#include "base/clock.h"
#include "base/ids.h"

#define FIRST_DELAY_NS (50 * NS_PER_MS)
#define MAX_DELAY_NS   (5 * NS_PER_S)

static thread_fn reload_try_again;
static store_message_fn reload_hear;

static bool is_fatal(const struct reload *r, int code)
{
    return (code == ERR_CORRUPT && r->o.fatal & RELOAD_CORRUPT) ||
           (err_kind(code) == ERR_KIND_EXPECTED && r->o.fatal & RELOAD_EXPECTED);
}

int reload_open(struct reload *r, const struct reload_options *o, struct err *err)
{
    int code;

    *r = (struct reload){.o = *o};
    mutex_init(&r->lock, "reload");
    code = store_subscribe(&r->subscription, o->store, o->channel, reload_hear, r, err);
    if (code < 0)
        return code;
    code = reload_now(r, err);
    return code < 0 && is_fatal(r, code) ? code : 0;
}

void reload_close(struct reload *r)
{
    if (!r->o.load)
        return;
    store_unsubscribe(r->subscription);
    timers_free(r->timers);
    mutex_release(&r->lock);
}

/* Doubles the delay after a failure and returns it. 0: the thread for further attempts could not be
 * started. */
static uint64_t next_delay(struct reload *r)
{
    struct err err = {0};

    mutex_assert_held(&r->lock);
    r->delay_ns = r->delay_ns == 0                 ? FIRST_DELAY_NS
                  : r->delay_ns < MAX_DELAY_NS / 2 ? 2 * r->delay_ns
                                                   : MAX_DELAY_NS;
    if (!r->timers && timers_new(&r->timers, &err) < 0) {
        log_error(r->o.log, r->o.failed, log_z("error", err.text));
        return 0;
    }
    return r->delay_ns;
}

/* Loads the copy, and sets the timer after a failure. The timer waits between half of the delay and
 * the whole delay, so that not all weirs ask a Redis at the same moment when it is back. */
int reload_now(struct reload *r, struct err *err)
{
    int code = r->o.load(r->o.ctx, err);
    uint64_t delay_ns = 0;

    mutex_lock(&r->lock);
    if (code < 0)
        delay_ns = next_delay(r);
    else
        r->delay_ns = 0;
    mutex_unlock(&r->lock);
    if (delay_ns)
        timer_set(r->timers, &r->timer, delay_ns / 2 + random_below(delay_ns / 2), 0,
                  reload_try_again, r);
    return code;
}

void reload_or_log(struct reload *r)
{
    struct err err = {0};

    if (reload_now(r, &err) < 0)
        log_warn(r->o.log, r->o.failed, log_z("error", err.text));
}

static void reload_hear(void *ctx, struct str channel, struct str message)
{
    struct reload *r = ctx;

    if (!r->o.heard || r->o.heard(r->o.ctx, channel, message))
        reload_or_log(r);
}

/* Loads again, called by the timer. A failure is not logged, because the first failure was logged
 * or returned. */
static void reload_try_again(void *ctx)
{
    struct reload *r = ctx;
    bool wanted;

    mutex_lock(&r->lock);
    wanted = r->delay_ns != 0;
    mutex_unlock(&r->lock);
    if (wanted && reload_now(r, NULL) == 0)
        log_info(r->o.log, r->o.done);
}
