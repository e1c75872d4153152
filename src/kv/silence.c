/* Notices that the server of a driver has fallen silent, so that later calls need not wait for it
 * (docs/kv.md, "A server that does not answer").
 *
 * A call says so when it has waited for a whole time-out, and no call was answered since it began.
 * So one slow statement beside others that are answered is no silence. While the server is silent,
 * one caller at a time asks it for any answer; the others are refused at once. */
#include "base/clock.h"
#include "kv/kv_int.h"

/* Notes an answer of the server. It ends the silence. */
static void silence_heard(struct kv *kv, uint64_t now)
{
    struct kv_silence *s = &kv->silence;

    atomic_store(&s->heard_ns, now);
    if (atomic_load(&s->is_silent) && atomic_exchange(&s->is_silent, false))
        log_info(kv->log, "kv.answers", log_z("driver", kv->driver));
}

static int silence_ask(struct kv *kv, struct err *err)
{
    int code = kv->ops->ask(kv, err);

    if (code == ERR_UNAVAILABLE || code == ERR_BUSY)
        return code;
    silence_heard(kv, clock_mono_ns());
    return 0; /* if the answer was an error, the caller's own call has it too */
}

static int silence_check(struct kv *kv, struct err *err)
{
    struct kv_silence *s = &kv->silence;

    if (!atomic_load(&s->is_silent))
        return 0;
    if (atomic_exchange(&s->is_asked, true))
        return err_set(err, ERR_UNAVAILABLE, "the key-value store does not answer");
    int code = silence_ask(kv, err);
    atomic_store(&s->is_asked, false);
    return code;
}

int kv_call_begins(struct kv *kv, uint64_t *began_ns, struct err *err)
{
    *began_ns = 0;
    if (!kv->timeout_ns)
        return 0;
    int code = silence_check(kv, err);
    *began_ns = clock_mono_ns();
    return code;
}

int kv_call_ends(struct kv *kv, uint64_t began_ns, int code)
{
    struct kv_silence *s = &kv->silence;

    if (!kv->timeout_ns)
        return code;
    uint64_t now = clock_mono_ns();
    if (code == 0 || code == ERR_PRECONDITION)
        silence_heard(kv, now);
    else if (now - began_ns >= kv->timeout_ns && atomic_load(&s->heard_ns) < began_ns &&
             !atomic_exchange(&s->is_silent, true))
        log_warn(kv->log, "kv.silent", log_z("driver", kv->driver), log_z("error", err_name(code)));
    return code;
}
