/* The thread that sends the words of a process. */
#include "base/clock.h"
#include "coord/lease_int.h"

enum { LOOK_MS = 100, SEND_MS = 1000 };

/* Returns whether the next word must be sent at once. That is so when the store has refused a step
 * because it has lost steps that it had acknowledged. The word then lets all processes know of the
 * loss. */
static bool word_is_urgent(const struct lease *l)
{
    struct seen *seen = installation_seen(l->o.installation);

    return seen && atomic_load(&seen->lost);
}

static int word_send(struct lease *l, int64_t epoch, struct err *err)
{
    uint64_t sent_ns = clock_boot_ns();
    int code =
        installation_tell(l->o.installation, l->epoch ? str_z(l->id) : STR_EMPTY, epoch, err);

    if (code == 0)
        lease_heard(l, sent_ns);
    else
        lease_refused(l, err, atomic_load(installation_halted(l->o.installation)));
    return code;
}

struct loop_sleep lease_send_word(void *ctx)
{
    struct lease *l = ctx;
    int64_t epoch = l->epoch ? l->epoch(l->epoch_ctx) : 0;
    uint64_t now = clock_mono_ms();
    struct err err = {0};

    /* A new epoch is sent at once, because another process may be waiting for it. */
    if (epoch == l->epoch_sent && now - l->word_ms < SEND_MS && !word_is_urgent(l))
        return loop_sleep_ms(LOOK_MS);
    int code = word_send(l, epoch, &err);
    if (code < 0 && code != ERR_STORE && !l->word_failed)
        log_warn(l->o.log, "lease.word_failed", log_z("error", err.text));
    l->word_failed = code < 0;
    if (code == 0)
        l->epoch_sent = epoch, l->word_ms = now;
    return loop_sleep_ms(LOOK_MS);
}
