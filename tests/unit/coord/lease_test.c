/* Leases (docs/replication.md, E1 to E5). A word that was sent long ago stands for a process that
 * has slept since. */
#include "coord/lease.h"
#include "base/clock.h"
#include "os/thread.h"
#include "unit/test.h"

static const uint64_t LONG_NS = 3600 * NS_PER_S;

/* Two things that are read before a lease begins. */
struct lab {
    struct lease *lease;
    struct mutex lock;
    struct cond changed;
    int first, second; /* how often each was read */
    int failures;      /* that the first has yet to answer with */
    bool hold;         /* the second waits until it is false */
};

static int read_first(void *ctx, struct err *err)
{
    struct lab *l = ctx;
    int code = 0;

    mutex_lock(&l->lock);
    l->first++;
    CHECK(l->first > l->second);
    if (l->failures > 0) {
        l->failures--;
        code = err_set(err, ERR_UNAVAILABLE, "away");
    }
    cond_broadcast(&l->changed);
    mutex_unlock(&l->lock);
    return code;
}

static int read_second(void *ctx, struct err *err)
{
    struct lab *l = ctx;

    mutex_lock(&l->lock);
    l->second++;
    cond_broadcast(&l->changed);
    while (l->hold)
        cond_wait(&l->changed, &l->lock);
    mutex_unlock(&l->lock);
    return 0;
}

static void lab_open(struct lab *l, bool needed)
{
    struct err err = {0};

    *l = (struct lab){.lease = lease_new(&(struct lease_options){.needed = needed})};
    mutex_init(&l->lock, "test.lease");
    cond_init(&l->changed);
    lease_read_first(l->lease, read_first, l);
    lease_read_first(l->lease, read_second, l);
    CHECK_OK(lease_start(l->lease, &err));
}

static void lab_close(struct lab *l)
{
    lease_stop(l->lease);
    lease_free(l->lease);
    cond_release(&l->changed);
    mutex_release(&l->lock);
}

static int lab_reads(struct lab *l)
{
    mutex_lock(&l->lock);
    int reads = l->second;
    mutex_unlock(&l->lock);
    return reads;
}

static void lab_hold(struct lab *l, bool hold)
{
    mutex_lock(&l->lock);
    l->hold = hold;
    cond_broadcast(&l->changed);
    mutex_unlock(&l->lock);
}

/* Until the second thing is being read for the `times`-th time. */
static void await_reading(struct lab *l, int times)
{
    mutex_lock(&l->lock);
    while (l->second < times)
        cond_wait(&l->changed, &l->lock);
    mutex_unlock(&l->lock);
}

static void hear(struct lab *l)
{
    lease_heard(l->lease, clock_boot_ns());
}

static void await(struct lab *l)
{
    CHECK(lease_await(l->lease, clock_mono_ns() + LONG_NS));
}

/* As if the last word had been sent when the machine was started. */
static void sleep_long(struct lab *l)
{
    lease_heard(l->lease, 0);
}

static uint64_t number_of(const struct lease *l)
{
    uint64_t number = 0;

    (void)!lease_take(l, &number, NULL);
    return number;
}

static int check_now(struct lab *l)
{
    uint64_t number;

    return lease_take(l->lease, &number, NULL);
}

TEST(lease, begins_when_a_word_was_taken_and_everything_was_read_in_order)
{
    struct lab l;

    lab_open(&l, true);
    CHECK_INT(check_now(&l), ERR_STORE);
    CHECK(!lease_await(l.lease, clock_mono_ns()));
    CHECK_INT(lab_reads(&l), 0);
    hear(&l);
    await(&l);
    CHECK_INT(check_now(&l), 0);
    CHECK_INT(lab_reads(&l), 1);
    lab_close(&l);
}

TEST(lease, words_that_follow_each_other_keep_it_and_nothing_is_read_again)
{
    struct lab l;

    lab_open(&l, true);
    hear(&l);
    await(&l);
    uint64_t number = number_of(l.lease), contact = lease_contact(l.lease);
    for (int i = 0; i < 3; i++)
        hear(&l);
    CHECK_INT(lease_check(l.lease, number, NULL), 0);
    CHECK_INT(lease_contact(l.lease), contact);
    CHECK_INT(lab_reads(&l), 1);
    lab_close(&l);
}

TEST(lease, is_not_prolonged_over_a_gap)
{
    struct lab l;

    lab_open(&l, true);
    hear(&l);
    await(&l);
    uint64_t number = number_of(l.lease), contact = lease_contact(l.lease);
    CHECK(contact);
    sleep_long(&l);
    CHECK_INT(lease_check(l.lease, number, NULL), ERR_STORE);
    CHECK(!lease_contact(l.lease));
    hear(&l);
    await(&l);
    CHECK_INT(lease_check(l.lease, number, NULL),
              ERR_STORE); /* what began under it goes no further */
    CHECK_INT(check_now(&l), 0);
    CHECK(lease_contact(l.lease) && lease_contact(l.lease) != contact);
    CHECK_INT(lab_reads(&l), 2);
    lab_close(&l);
}

TEST(lease, does_not_begin_by_what_was_read_before_a_gap)
{
    struct lab l;

    lab_open(&l, true);
    lab_hold(&l, true);
    hear(&l);
    await_reading(&l, 1);
    sleep_long(&l);
    hear(&l);
    CHECK_INT(check_now(&l), ERR_STORE);
    lab_hold(&l, false);
    await(&l);
    CHECK_INT(lab_reads(&l), 2);
    CHECK_INT(check_now(&l), 0);
    lab_close(&l);
}

TEST(lease, waits_until_what_cannot_be_read_was_read)
{
    struct lab l;

    lab_open(&l, true);
    l.failures = 2; /* before the first word nothing is read */
    hear(&l);
    await(&l);
    CHECK_INT(l.first, 3);
    CHECK_INT(lab_reads(&l), 1);
    lab_close(&l);
}

TEST(lease, a_word_that_was_refused_is_explained_to_clients_and_ends_nothing)
{
    struct lab l;
    struct err why = {0}, err = {0};

    lab_open(&l, true);
    hear(&l);
    await(&l);
    err_set(&why, ERR_UNAVAILABLE, "redis: OOM command not allowed");
    lease_refused(l.lease, &why, false);
    CHECK_INT(check_now(&l), 0);
    sleep_long(&l);
    lease_refused(l.lease, &why, false);
    CHECK_INT(lease_check(l.lease, number_of(l.lease), &err), ERR_STORE);
    CHECK_STR(str_z(lease_trouble(l.lease)), STR("OOM"));
    CHECK(strstr(err.text, "OOM"));
    lab_close(&l);
}

TEST(lease, ends_at_once_when_the_store_is_not_the_one_that_was_known)
{
    struct lab l;
    struct err why = {0};

    lab_open(&l, true);
    hear(&l);
    await(&l);
    uint64_t number = number_of(l.lease);
    lease_refused(l.lease, &why, true);
    CHECK_INT(check_now(&l), ERR_STORE);
    hear(&l);
    await(&l);
    CHECK(number_of(l.lease) != number);
    lab_close(&l);
}

TEST(lease, a_process_that_shares_no_store_needs_none)
{
    struct lab l;

    lab_open(&l, false);
    CHECK_INT(number_of(l.lease), 0);
    CHECK_INT(lease_check(l.lease, 0, NULL), 0);
    CHECK(lease_await(l.lease, clock_mono_ns()));
    hear(&l);
    CHECK(lease_contact(l.lease));
    sleep_long(&l);
    CHECK_INT(lease_check(l.lease, 0, NULL), 0);
    CHECK(!lease_contact(l.lease)); /* what everybody knows waits for the next word */
    CHECK_INT(lab_reads(&l), 0);
    lab_close(&l);
    CHECK_INT(number_of(NULL), 0);
    CHECK_INT(lease_check(NULL, 0, NULL), 0);
    CHECK(lease_contact(NULL));
}
