/* The thread that tells which epoch this process holds. */
#include "replica/beacon.h"
#include "base/clock.h"
#include "base/ids.h"
#include "coord/gateways.h"
#include "os/thread.h"

#include <stdlib.h>

enum { LOOK_MS = 100, TELL_MS = 1000 };

struct beacon {
    struct beacon_options o;
    char id[ID_HEX_LEN + 1];
    struct thread thread;
    struct mutex lock; /* class "beacon"; guards `stop` */
    struct cond wake;
    bool stop;
};

/* False at the stop. */
static bool rest(struct beacon *b)
{
    uint64_t until = clock_mono_ns() + LOOK_MS * UINT64_C(1000000);

    mutex_lock(&b->lock);
    while (!b->stop && cond_wait_until(&b->wake, &b->lock, until))
        ;
    bool go = !b->stop;
    mutex_unlock(&b->lock);
    return go;
}

/* A step was refused, as the store has lost what it had acknowledged: the word says so to all. */
static bool is_doubted(const struct beacon *b)
{
    struct seen *seen = installation_seen(b->o.installation);

    return seen && atomic_load(&seen->lost);
}

/* A new epoch at once, since somebody waits for it. */
static void run(void *ctx)
{
    struct beacon *b = ctx;
    int64_t told = -2;
    uint64_t told_ms = 0;
    bool failed = false;

    do {
        int64_t epoch = b->o.epoch ? b->o.epoch(b->o.ctx) : 0;
        uint64_t now = clock_mono_ms();
        struct err err = {0};
        if (epoch == told && now - told_ms < TELL_MS && !is_doubted(b))
            continue;
        uint64_t sent_ns = clock_boot_ns();
        int code = installation_tell(b->o.installation, b->o.epoch ? str_z(b->id) : STR_EMPTY,
                                     epoch, &err);
        if (code < 0 && code != ERR_STORE && !failed)
            log_warn(b->o.log, "beacon.failed", log_z("error", err.text));
        failed = code < 0;
        if (code < 0 && b->o.not_told)
            b->o.not_told(b->o.ctx, &err);
        if (code == 0 && b->o.told)
            b->o.told(b->o.ctx, sent_ns);
        if (code == 0)
            told = epoch, told_ms = now;
    } while (rest(b));
}

int beacon_start(struct beacon **out, const struct beacon_options *o, struct err *err)
{
    struct beacon *b = xcalloc(1, sizeof(*b));

    b->o = *o;
    id_hex(b->id);
    mutex_init(&b->lock, "beacon");
    cond_init(&b->wake);
    int code = thread_start(&b->thread, "beacon", 0, run, b, err);
    if (code < 0) {
        beacon_stop(b);
        return code;
    }
    *out = b;
    return 0;
}

void beacon_stop(struct beacon *b)
{
    struct err err = {0};

    if (!b)
        return;
    mutex_lock(&b->lock);
    b->stop = true;
    cond_signal(&b->wake);
    mutex_unlock(&b->lock);
    thread_join(&b->thread);
    if (b->o.epoch && gateways_forget(b->o.config, str_z(b->id), &err) < 0) /* it expires */
        log_info(b->o.log, "beacon.not_forgotten", log_z("error", err.text));
    cond_release(&b->wake);
    mutex_release(&b->lock);
    free(b);
}
