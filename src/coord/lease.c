/* The lease of a process (coord/lease.h), and the thread that reads the data that must be read
 * before a lease begins. */
#include "coord/lease.h"
#include "base/clock.h"
#include "coord/gateways.h"
#include "coord/lease_int.h"

#include <stdlib.h>

enum { TICK_MS = 100 };

_Static_assert(LEASE_MS < GATEWAY_LIFE_S * MS_PER_S, "others would go on before the lease is over");

static bool lease_is_past(uint64_t until_ns)
{
    return clock_boot_ns() >= until_ns;
}

/* --- asking --- */

int lease_take(const struct lease *l, uint64_t *number, struct err *err)
{
    *number = l && l->o.needed ? atomic_load(&l->number) : 0;
    return lease_check(l, *number, err);
}

int lease_check(const struct lease *l, uint64_t number, struct err *err)
{
    if (!l || !l->o.needed ||
        (number == atomic_load(&l->number) && !lease_is_past(atomic_load(&l->until_ns))))
        return 0;
    return store_cannot(err, "Nothing can be changed", lease_trouble(l));
}

const char *lease_trouble(const struct lease *l)
{
    return l ? atomic_load(&l->trouble) : NULL;
}

bool lease_await(struct lease *l, uint64_t deadline_ns)
{
    bool in_time = true;

    mutex_lock(&l->lock);
    while (l->o.needed && !atomic_load(&l->until_ns) && in_time)
        in_time = cond_wait_until(&l->begun, &l->lock, deadline_ns);
    mutex_unlock(&l->lock);
    return in_time;
}

uint64_t lease_contact(struct lease *l)
{
    if (!l)
        return 1;
    mutex_lock(&l->lock);
    bool is = l->heard_until_ns == 0 || !lease_is_past(l->heard_until_ns);
    uint64_t number = is ? atomic_load(&l->number) + 1 : 0;
    mutex_unlock(&l->lock);
    return number;
}

/* --- the store's answer to a word (coord/lease.h) --- */

void lease_heard(struct lease *l, uint64_t sent_ns)
{
    atomic_store(&l->trouble, NULL);
    mutex_lock(&l->lock);
    /* True: other processes may have stopped waiting for this process, so a new lease must begin
     * (docs/replication.md, E3). */
    bool anew = lease_is_past(l->heard_until_ns);
    if (anew) {
        atomic_store(&l->until_ns, 0);
        atomic_fetch_add(&l->number, 1);
    }
    l->heard_until_ns = sent_ns + LEASE_MS * NS_PER_MS;
    if (atomic_load(&l->until_ns))
        atomic_store(&l->until_ns, l->heard_until_ns);
    mutex_unlock(&l->lock);
    if (anew)
        loop_wake(&l->reader);
}

void lease_refused(struct lease *l, const struct err *why, bool halted)
{
    atomic_store(&l->trouble, store_refusal(why));
    if (!halted)
        return;
    mutex_lock(&l->lock);
    l->heard_until_ns = 0; /* the next word that the store accepts begins another lease */
    atomic_store(&l->until_ns, 0);
    mutex_unlock(&l->lock);
}

/* --- the thread that reads before a lease begins --- */

/* Returns whether a new lease should begin. *number is set to its number. */
static bool lease_is_wanted(struct lease *l, uint64_t *number)
{
    mutex_lock(&l->lock);
    *number = atomic_load(&l->number);
    bool wanted = !atomic_load(&l->until_ns) && !lease_is_past(l->heard_until_ns);
    mutex_unlock(&l->lock);
    return wanted;
}

/* Begins the lease with this number, after all data for it were read. Does nothing when there was
 * another gap between words meanwhile. */
static void lease_begin(struct lease *l, uint64_t number)
{
    bool begins = false;

    mutex_lock(&l->lock);
    if (number == atomic_load(&l->number) && !lease_is_past(l->heard_until_ns)) {
        atomic_store(&l->until_ns, l->heard_until_ns);
        cond_broadcast(&l->begun);
        begins = true;
    }
    mutex_unlock(&l->lock);
    if (begins)
        log_info(l->o.log, l->cut_off ? "lease.begun_again" : "lease.begun",
                 log_u("lease", number));
    l->cut_off &= !begins;
}

static void lease_log_end(struct lease *l)
{
    uint64_t until = atomic_load(&l->until_ns);

    if (!until || !lease_is_past(until) || l->cut_off)
        return;
    l->cut_off = true;
    log_error(l->o.log, "lease.over");
}

static void lease_renew(struct lease *l)
{
    uint64_t number = 0;
    struct err err = {0};
    int code = 0;

    if (!lease_is_wanted(l, &number))
        return;
    for (size_t i = 0; i < l->readers.len && code == 0; i++)
        code = l->readers.items[i].fn(l->readers.items[i].ctx, &err);
    if (code < 0)
        log_warn(l->o.log, "lease.read_failed", log_z("error", err.text));
    else
        lease_begin(l, number);
}

static struct loop_sleep lease_read(void *ctx)
{
    struct lease *l = ctx;

    lease_log_end(l);
    lease_renew(l);
    return loop_sleep_ms(TICK_MS);
}

/* --- start and stop --- */

struct lease *lease_new(const struct lease_options *o)
{
    struct lease *l = xcalloc(1, sizeof(*l));

    l->o = *o;
    l->epoch_sent = -2;
    id_hex(l->id);
    mutex_init(&l->lock, "lease");
    cond_init(&l->begun);
    return l;
}

void lease_free(struct lease *l)
{
    if (!l)
        return;
    BUG_ON(l->reader.thread.started || l->words.thread.started);
    vec_release(&l->readers);
    cond_release(&l->begun);
    mutex_release(&l->lock);
    free(l);
}

void lease_read_first(struct lease *l, lease_read_fn *fn, void *ctx)
{
    BUG_ON(l->reader.thread.started);
    vec_push(&l->readers, ((struct lease_reader){fn, ctx}));
}

void lease_tell_epoch(struct lease *l, lease_epoch_fn *fn, void *ctx)
{
    BUG_ON(l->words.thread.started || l->epoch);
    l->epoch = fn;
    l->epoch_ctx = ctx;
}

int lease_start(struct lease *l, struct err *err)
{
    int code = 0;

    if (l->o.needed)
        code = loop_start(&l->reader, &(struct loop_options){"lease-read", lease_read, l}, err);
    if (code == 0 && l->o.installation)
        code = loop_start(&l->words, &(struct loop_options){"lease-word", lease_send_word, l}, err);
    if (code < 0)
        lease_stop(l);
    return code;
}

void lease_stop(struct lease *l)
{
    struct err err = {0};

    if (!l)
        return;
    bool told = l->words.thread.started && l->epoch;
    loop_ask_stop(&l->reader);
    loop_stop(&l->words);
    loop_stop(&l->reader);
    /* A failure does no harm, because the word of this process expires by itself. */
    if (told && gateways_forget(l->o.config, str_z(l->id), &err) < 0)
        log_info(l->o.log, "lease.not_forgotten", log_z("error", err.text));
}
