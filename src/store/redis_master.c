/* Finds out which Redis is the master. One thread asks the sentinels, which also report failovers.
 *
 * The thread works in rounds: it asks every sentinel, one after another, and then decides
 * (docs/store-redis.md, M2). A round begins once a second, when a sentinel reports a failover, and
 * when a caller doubts the known address. A caller that needs the address gets the known one; after
 * a doubt the caller waits for a round that began after the doubt. Sentinels that are connected are
 * asked first, so that a sentinel that does not answer does not delay the answers of the other
 * sentinels. */
#include "store/redis_int.h"

#include "base/clock.h"
#include "os/file.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define ROUND_NS     NS_PER_S
#define MAX_SLICE_NS NS_PER_S

struct redis_master {
    struct redis_target target;
    struct tls_context *tls; /* NULL: no TLS */
    const struct log *log;
    uint64_t slice_ns; /* time limit for one sentinel, so that a round ends within the timeout */
    struct sentinel sentinels[REDIS_MAX_SENTINELS]; /* used only by the thread */
    _Atomic(size_t) refs;
    _Atomic(uint64_t) generation;

    struct mutex lock; /* guards everything below */
    struct cond changed;
    struct thread thread; /* started when the address is first asked for */
    int wake;             /* eventfd, written when a round is wanted or the thread shall end */
    bool stop;
    struct list followers;
    /* The master in use; known.heard is false until a sentinel has named one. */
    struct sentinel_answer known;
    bool failed; /* a connection to the known master has failed */
    /* Numbers of the latest round that has begun, and of the latest that has ended. */
    uint64_t begun, ended;
    uint64_t wanted; /* number of the round that must end before `known` is used */
    struct err why;  /* the error of the latest sentinel that did not answer */
};

static thread_fn master_thread;

struct redis_master *redis_master_new(struct redis_target *target, struct tls_context *tls,
                                      uint64_t timeout_ns, const struct log *log)
{
    struct redis_master *m = xcalloc(1, sizeof(*m));

    m->target = *target;
    m->tls = tls ? tls_context_ref(tls) : NULL;
    m->log = log;
    m->slice_ns = size_min(timeout_ns / (m->target.sentinel_count + 1), MAX_SLICE_NS);
    for (size_t i = 0; i < m->target.sentinel_count; i++)
        m->sentinels[i].endpoint =
            (struct redis_endpoint){.target = &m->target.sentinels[i], .tls = m->tls};
    m->refs = 1;
    m->wake = -1;
    m->wanted = 1;
    mutex_init(&m->lock, "store.redis.master");
    cond_init(&m->changed);
    list_init(&m->followers);
    return m;
}

struct redis_master *redis_master_ref(struct redis_master *m)
{
    atomic_fetch_add(&m->refs, 1);
    return m;
}

static void wake_one(int fd)
{
    uint64_t one = 1;

    BUG_ON(write(fd, &one, sizeof(one)) < 0);
}

void redis_master_unref(struct redis_master *m)
{
    if (!m || atomic_fetch_sub(&m->refs, 1) > 1)
        return;
    mutex_lock(&m->lock);
    m->stop = true;
    if (m->thread.started)
        wake_one(m->wake);
    mutex_unlock(&m->lock);
    thread_join(&m->thread);
    for (size_t i = 0; i < m->target.sentinel_count; i++)
        sentinel_close(&m->sentinels[i]);
    fd_close(&m->wake);
    redis_target_release(&m->target);
    tls_context_unref(m->tls);
    cond_release(&m->changed);
    mutex_release(&m->lock);
    free(m);
}

uint64_t redis_master_generation(struct redis_master *m)
{
    return m ? atomic_load(&m->generation) : 0;
}

/* --- functions for threads that need the master's address --- */

static int master_start_thread(struct redis_master *m, struct err *err)
{
    if (m->thread.started)
        return 0;
    if (m->wake < 0)
        m->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (m->wake < 0)
        return err_errno(err, errno, "following the redis master");
    return thread_start(&m->thread, "redis-master", 0, master_thread, m, err);
}

int redis_master_find(struct redis_master *m, uint64_t deadline_ns, struct redis_address *out,
                      uint64_t *generation, struct err *err)
{
    int rc;

    mutex_lock(&m->lock);
    rc = master_start_thread(m, err);
    if (rc == 0 && !m->known.heard && m->wanted <= m->ended) {
        m->wanted = m->begun + 1;
        wake_one(m->wake);
    }
    while (rc == 0 && m->ended < m->wanted)
        if (!cond_wait_until(&m->changed, &m->lock, deadline_ns))
            rc = err_set(err, ERR_UNAVAILABLE, "the sentinels do not answer in time");
    if (rc == 0 && !m->known.heard)
        rc = err_set(err, ERR_UNAVAILABLE, "no sentinel tells the address of master '%s': %s",
                     m->target.master, m->why.text);
    if (rc == 0) {
        *out = m->known.address;
        *generation = atomic_load(&m->generation);
    }
    mutex_unlock(&m->lock);
    return rc;
}

/* Called under the lock: asks for a round, unless the master of that generation was replaced
 * meanwhile. */
static void want_round(struct redis_master *m, uint64_t generation)
{
    if (generation != atomic_load(&m->generation) || m->wanted > m->begun || !m->thread.started)
        return;
    m->wanted = m->begun + 1;
    wake_one(m->wake);
}

void redis_master_doubt(struct redis_master *m, uint64_t generation)
{
    if (!m)
        return;
    mutex_lock(&m->lock);
    want_round(m, generation);
    mutex_unlock(&m->lock);
}

void redis_master_failed(struct redis_master *m, uint64_t generation)
{
    mutex_lock(&m->lock);
    m->failed |= generation == atomic_load(&m->generation);
    want_round(m, generation);
    mutex_unlock(&m->lock);
}

void redis_master_works(struct redis_master *m, uint64_t generation)
{
    mutex_lock(&m->lock);
    if (generation == atomic_load(&m->generation))
        m->failed = false;
    mutex_unlock(&m->lock);
}

void redis_master_follow(struct redis_master *m, struct redis_follower *f)
{
    if (!m)
        return;
    mutex_lock(&m->lock);
    list_remove(&f->node);
    list_push(&m->followers, &f->node);
    mutex_unlock(&m->lock);
}

void redis_master_unfollow(struct redis_master *m, struct redis_follower *f)
{
    if (!m)
        return;
    mutex_lock(&m->lock);
    list_remove(&f->node);
    mutex_unlock(&m->lock);
}

/* --- the thread that asks the sentinels --- */

/* Chooses the master by the sentinels' answers. If the chosen address differs from the known one,
 * the generation grows and all followers are woken. */
static void decide(struct redis_master *m)
{
    struct sentinel_answer answers[REDIS_MAX_SENTINELS], news = {0};
    size_t count = m->target.sentinel_count;
    int chosen;

    for (size_t i = 0; i < count; i++)
        answers[i] = m->sentinels[i].answer;
    mutex_lock(&m->lock);
    chosen = sentinel_choose(&m->known, m->failed, answers, count);
    if (chosen >= 0) {
        bool moved = !m->known.heard || m->known.address.port != answers[chosen].address.port ||
                     strcmp(m->known.address.host, answers[chosen].address.host) != 0;
        m->known = answers[chosen];
        if (moved) {
            news = m->known;
            m->failed = false;
            m->wanted = size_min(m->wanted, m->ended);
            atomic_fetch_add(&m->generation, 1);
            list_each (&m->followers, struct redis_follower, node, f)
                wake_one(f->wake);
            cond_broadcast(&m->changed);
        }
    }
    mutex_unlock(&m->lock);
    if (news.heard)
        log_info(m->log, "store.redis.master", log_z("host", news.address.host),
                 log_u("port", news.address.port), log_u("epoch", news.epoch));
}

/* Asks one sentinel. Logs once that it does not answer, with the reason, and once that it is
 * back. */
static void master_ask_one(struct redis_master *m, struct sentinel *s)
{
    const struct redis_target *t = s->endpoint.target;
    uint64_t began = clock_mono_ns();
    bool was_down = s->backoff.delay_ns > 0;
    struct err err = {0};

    if (sentinel_ask(s, m->target.master, began + m->slice_ns, &err) == 0) {
        s->backoff = (struct redis_backoff){0};
        if (was_down)
            log_info(m->log, "store.sentinel.up", log_z("host", t->host), log_u("port", t->port));
        return;
    }
    redis_backoff_fail(&s->backoff, began);
    if (!was_down)
        log_warn(m->log, "store.sentinel.down", log_z("reason", err.text));
    mutex_lock(&m->lock);
    m->why = err;
    mutex_unlock(&m->lock);
}

/* Asks the connected sentinels and decides by their answers at once. But while no address is known
 * yet, the decision waits until the other sentinels were asked too, so that the highest epoch of
 * all decides. A sentinel whose connection has ended is asked again with the other sentinels. */
static void ask_connected(struct redis_master *m)
{
    for (size_t i = 0; i < m->target.sentinel_count; i++) {
        struct sentinel *s = &m->sentinels[i];
        s->answer.heard = false;
        if (s->questions &&
            sentinel_ask(s, m->target.master, clock_mono_ns() + m->slice_ns, NULL) < 0)
            continue;
    }
    if (atomic_load(&m->generation) > 0)
        decide(m);
}

static void ask_others(struct redis_master *m)
{
    for (size_t i = 0; i < m->target.sentinel_count; i++) {
        struct sentinel *s = &m->sentinels[i];
        if (!s->answer.heard && clock_mono_ns() >= s->backoff.retry_at_ns)
            master_ask_one(m, s);
    }
    decide(m);
}

/* Waits until it is time for a round, a caller wants a round, or a sentinel has sent something. */
static void wait_for_news(struct redis_master *m)
{
    struct pollfd fds[REDIS_MAX_SENTINELS + 1] = {{.fd = m->wake, .events = POLLIN}};
    uint64_t woken;

    for (size_t i = 0; i < m->target.sentinel_count; i++) {
        const struct redis_conn *news = m->sentinels[i].news;
        fds[i + 1] = (struct pollfd){.fd = news ? news->fd : -1, .events = POLLIN};
    }
    if (poll(fds, m->target.sentinel_count + 1, (int)(ROUND_NS / NS_PER_MS)) <= 0)
        return;
    if (fds[0].revents && read(m->wake, &woken, sizeof(woken)) < 0)
        BUG_ON(errno != EAGAIN);
    for (size_t i = 0; i < m->target.sentinel_count; i++)
        if (fds[i + 1].revents)
            sentinel_hear(&m->sentinels[i]);
}

static void master_thread(void *ctx)
{
    struct redis_master *m = ctx;

    mutex_lock(&m->lock);
    while (!m->stop) {
        m->begun++;
        mutex_unlock(&m->lock);
        ask_connected(m);
        ask_others(m);
        mutex_lock(&m->lock);
        m->ended = m->begun;
        cond_broadcast(&m->changed);
        mutex_unlock(&m->lock);
        wait_for_news(m);
        mutex_lock(&m->lock);
    }
    mutex_unlock(&m->lock);
}
