/* The lease of a process on its policies and routes (docs/replication.md, E1 to E5).
 *
 * Whoever changes policies takes a process that was not heard of for GATEWAY_LIFE_S for dead, and
 * goes on without it. So this one changes nothing once LEASE_MS have passed since it sent the last
 * word of itself that the store took: by a clock that goes on while it is stopped and while the
 * machine sleeps, compared by each change itself, since nobody here runs in such a time. Words that
 * come in time follow each other, and the lease with them. After a gap it begins anew, when
 * policies and routes were read after the first word that was taken. */
#include "base/clock.h"
#include "coord/gateways.h"
#include "replica/tap/tap_int.h"
#include "route/remotes.h"

enum { LEASE_MS = 8 * 1000, MS = 1000 * 1000 };

_Static_assert(LEASE_MS < GATEWAY_LIFE_S * 1000, "others would go on before the lease is over");

static bool is_over(uint64_t until_ns)
{
    return clock_boot_ns() >= until_ns;
}

void taps_told(struct taps *t, uint64_t sent_ns)
{
    atomic_store(&t->trouble, NULL);
    mutex_lock(&t->lock);
    if (is_over(t->heard_until_ns)) { /* others may have gone on meanwhile */
        atomic_store(&t->lease_until_ns, 0);
        atomic_fetch_add(&t->lease, 1);
        cond_signal(&t->wake);
    }
    t->heard_until_ns = sent_ns + (uint64_t)LEASE_MS * MS;
    if (atomic_load(&t->lease_until_ns))
        atomic_store(&t->lease_until_ns, t->heard_until_ns);
    mutex_unlock(&t->lock);
}

void taps_not_told(struct taps *t, const struct err *why, bool halted)
{
    atomic_store(&t->trouble, store_refusal(why));
    if (!halted)
        return;
    mutex_lock(&t->lock);
    t->heard_until_ns = 0; /* as if it were over: the next word begins another */
    atomic_store(&t->lease_until_ns, 0);
    mutex_unlock(&t->lock);
}

uint64_t taps_contact(struct taps *t)
{
    mutex_lock(&t->lock);
    bool is = t->heard_until_ns == 0 || !is_over(t->heard_until_ns);
    uint64_t number = is ? atomic_load(&t->lease) + 1 : 0;
    mutex_unlock(&t->lock);
    return number;
}

bool taps_await_lease(struct taps *t, uint64_t deadline_ns)
{
    bool in_time = true;

    mutex_lock(&t->lock);
    while (t->o.shared && !atomic_load(&t->lease_until_ns) && in_time)
        in_time = cond_wait_until(&t->leased, &t->lock, deadline_ns);
    mutex_unlock(&t->lock);
    return in_time;
}

uint64_t lease_of(const struct taps *t)
{
    return t->o.shared ? atomic_load(&t->lease) : 0;
}

int lease_check(const struct taps *t, uint64_t lease, struct err *err)
{
    if (!t->o.shared ||
        (lease == atomic_load(&t->lease) && !is_over(atomic_load(&t->lease_until_ns))))
        return 0;
    return store_cannot(err, "Nothing can be changed", atomic_load(&t->trouble));
}

/* Whether it is to begin anew; *lease: which. */
static bool is_wanted(struct taps *t, uint64_t *lease)
{
    mutex_lock(&t->lock);
    *lease = atomic_load(&t->lease);
    bool wanted = !atomic_load(&t->lease_until_ns) && !is_over(t->heard_until_ns);
    mutex_unlock(&t->lock);
    return wanted;
}

static void begin(struct taps *t, uint64_t lease)
{
    bool is = false;

    mutex_lock(&t->lock);
    if (lease == atomic_load(&t->lease) && !is_over(t->heard_until_ns)) {
        atomic_store(&t->lease_until_ns, t->heard_until_ns);
        cond_broadcast(&t->leased);
        is = true;
    }
    mutex_unlock(&t->lock);
    if (is)
        log_info(t->o.log, t->cut_off ? "replica.tap_in_contact" : "replica.tap_leased",
                 log_u("lease", lease));
    t->cut_off &= !is;
}

void keep_lease(struct taps *t)
{
    uint64_t lease = 0, until = atomic_load(&t->lease_until_ns);
    struct err err = {0};

    if (!t->o.shared)
        return;
    if (until && is_over(until) && !t->cut_off) {
        t->cut_off = true;
        log_error(t->o.log, "replica.tap_cut_off");
    }
    int code = intents_announce_astray(t, &err);
    if (code == 0 && !is_wanted(t, &lease))
        return;
    if (code == 0)
        code = replications_refresh(t->o.replications, &err);
    if (code == 0 && t->o.remotes)
        code = remotes_reload(t->o.remotes, &err);
    if (code == 0)
        code = routes_reload(t->o.routes, &err);
    if (code == 0)
        code = keep_filter(t, &err);
    if (code < 0)
        log_warn(t->o.log, "replica.tap_policies", log_z("error", err.text));
    else
        begin(t, lease);
}
