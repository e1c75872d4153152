/* The schedule over both engines: tracking, claims, ends, and what redis-cli does to it. The names
 * of the scenarios are those of the archive's fact sheet. */
#include "base/clock.h"
#include "unit/archive/schedule_lab.h"

#include <stdio.h>

#define OCTOCAT "github.com/octocat"

static void end_full(struct schedule_claim *c)
{
    struct err err = {0};

    CHECK_OK(schedule_end_full(c, &err));
}

/* --- the seed's keys --- */

TEST_FOUR(archive_schedule, keys_are_the_seeds)
{
    struct schedule_lab l;
    struct schedule_claim c;

    schedule_lab_open(&l, f, 0);
    CHECK(schedule_lab_add(&l, "GitHub.com/OctoCat"));
    CHECK(!schedule_lab_add(&l, OCTOCAT));
    CHECK_STR(schedule_lab_ask(&l, "ZRANGEBYSCORE", "tracked", "-inf", "+inf", "WITHSCORES",
                               "LIMIT", "0", "1", NULL),
              STR("[\"github.com/octocat\", \"-1\"]"));
    CHECK_STR(
        schedule_lab_ask(&l, "ZRANGE", "w:archive:ready:github.com:europe-west-1", "0", "-1", NULL),
        STR("[\"166 github.com/octocat\"]"));
    schedule_lab_claim_this(&l, &c, OCTOCAT);
    CHECK_INT(c.score_ms, SCHEDULE_NEVER);
    CHECK_STR(lock_key(c.lock), STR("lock:octocat"));
    CHECK_STR(schedule_lab_ask(&l, "SET", "lock:octocat", "1", "EX", "10", "NX", NULL), STR("nil"));
    int64_t started = c.started_ms;
    end_full(&c);
    CHECK_INT(schedule_lab_find(&l, OCTOCAT).score_ms, started);
    /* The lock is not deleted: it is left to expire. */
    CHECK_STR(schedule_lab_ask(&l, "EXISTS", "lock:octocat", NULL), STR("1"));
    schedule_lab_check(&l);
    schedule_lab_close(&l);
}

TEST_FOUR(archive_schedule, two_hosts_same_login)
{
    struct schedule_lab l;
    struct schedule_claim c[2];

    schedule_lab_open(&l, f, 0);
    CHECK(schedule_lab_add(&l, OCTOCAT));
    CHECK(schedule_lab_add(&l, "git.test:8443/octocat"));
    CHECK(schedule_lab_claim(&l, &c[0], NULL));
    CHECK(schedule_lab_claim(&l, &c[1], NULL));
    CHECK_STR(schedule_lab_ask(&l, "EXISTS", "lock:octocat", "lock:git.test:8443/octocat", NULL),
              STR("2"));
    end_full(&c[0]);
    end_full(&c[1]);
    CHECK_STR(schedule_lab_ask(&l, "EXISTS", "w:archive:ready:git.test%3A8443:europe-west-1", NULL),
              STR("1"));
    schedule_lab_check(&l);
    schedule_lab_close(&l);
}

/* --- claims --- */

TEST_FOUR(archive_schedule, the_oldest_sync_is_first)
{
    struct schedule_lab l;
    struct schedule_claim c;
    const char *const members[] = {"github.com/a", "github.com/b", "git.test:8443/c",
                                   "github.com/d"};

    schedule_lab_open(&l, f, 0);
    for (int i = 0; i < 4; i++) {
        struct archive_account account = schedule_lab_account(&l, members[i]);
        struct schedule_loaded loaded = {account, 1000 * (4 - i)};
        struct err err = {0};
        CHECK_OK(schedule_load(l.s, &loaded, 1, &err));
    }
    for (int i = 3; i >= 0; i--) {
        schedule_lab_claim_this(&l, &c, members[i]);
        CHECK_INT(c.score_ms, 1000 * (4 - i));
        end_full(&c);
        CHECK_INT(schedule_lab_find(&l, members[i]).score_ms, c.started_ms);
    }
    schedule_lab_check(&l);
    schedule_lab_close(&l);
}

TEST_FOUR(archive_schedule, all_fresh_sleeps)
{
    struct schedule_lab l;
    struct schedule_claim c, none;
    uint64_t wait;

    schedule_lab_open(&l, f, 0);
    CHECK(!schedule_lab_claim(&l, &none, &wait));
    CHECK(wait == UINT64_MAX); /* only news can bring an account */
    schedule_lab_add(&l, OCTOCAT);
    schedule_lab_claim_this(&l, &c, OCTOCAT);
    CHECK(!schedule_lab_claim(&l, &none, &wait));
    CHECK(wait > 0 && wait <= SCHEDULE_LOCK_MS);
    end_full(&c);
    CHECK(!schedule_lab_claim(&l, &none, &wait));
    CHECK(wait > LAB_RESYNC_MS - 60000 && wait <= LAB_RESYNC_MS);
    l.ask.resync_after_ms = 0;
    CHECK(!schedule_lab_claim(&l, &none, &wait)); /* its lock has not expired yet */
    CHECK(wait > 0 && wait <= SCHEDULE_LOCK_MS);
    schedule_lab_check(&l);
    schedule_lab_close(&l);
}

/* Fences grow, whoever claims. */
TEST_FOUR(archive_schedule, every_claim_has_a_greater_fence)
{
    struct schedule_lab l;
    struct schedule_claim c[16];
    size_t count;
    uint64_t wait, last = (uint64_t)clock_wall_ms() * 1000 - 60 * US_PER_S;
    char member[40];
    struct err err = {0};

    schedule_lab_open(&l, f, 0);
    for (int i = 0; i < 16; i++) {
        snprintf(member, sizeof(member), "github.com/user%d", i);
        schedule_lab_add(&l, member);
    }
    l.ask.most = 16;
    CHECK_OK(schedule_claim(l.s, &l.a, &l.ask, c, &count, &wait, &err));
    l.ask.most = 1;
    CHECK_INT(count, 16);
    for (size_t i = 0; i < count; i++) {
        CHECK(c[i].fence > last);
        last = c[i].fence;
        end_full(&c[i]);
    }
    CHECK_OK(schedule_raise_fence(l.s, last + 1000000000000, &err));
    CHECK_OK(schedule_raise_fence(l.s, last, &err));
    schedule_lab_add(&l, OCTOCAT);
    schedule_lab_claim_this(&l, &c[0], OCTOCAT);
    CHECK(c[0].fence == last + 1000000000001);
    schedule_leave(&c[0]);
    schedule_lab_close(&l);
}

/* The satellite's user can write any fence into a bundle. It never stops the claims of others. */
TEST_FOUR(archive_schedule, a_fence_that_no_claim_had_is_refused)
{
    static const char *const poison[] = {"9007199254740993", "18446744073709551615", "1e300", "-5",
                                         "x"};
    struct schedule_lab l;
    struct schedule_claim c;
    struct err err = {0};

    schedule_lab_open(&l, f, 0);
    schedule_lab_add(&l, OCTOCAT);
    l.ask.resync_after_ms = 0;
    CHECK_ERR(schedule_raise_fence(l.s, SCHEDULE_FENCE_MAX + 1, &err), ERR_RANGE);
    CHECK_ERR(schedule_raise_fence(l.s, UINT64_MAX, &err), ERR_RANGE);
    schedule_lab_claim_this(&l, &c, OCTOCAT);
    CHECK(c.fence < SCHEDULE_FENCE_MAX);
    end_full(&c);
    for (size_t i = 0; i < ARRAY_SIZE(poison); i++) { /* as an older weir left it in the store */
        schedule_lab_ask(&l, "SET", "w:archive:fence", poison[i], NULL);
        schedule_lab_ask(&l, "DEL", "lock:octocat", NULL);
        schedule_lab_claim_this(&l, &c, OCTOCAT);
        CHECK(c.fence < SCHEDULE_FENCE_MAX);
        end_full(&c);
    }
    CHECK_OK(schedule_raise_fence(l.s, SCHEDULE_FENCE_MAX, &err));
    schedule_lab_ask(&l, "DEL", "lock:octocat", NULL);
    schedule_lab_claim_this(&l, &c, OCTOCAT);
    CHECK(c.fence == SCHEDULE_FENCE_MAX + 1);
    end_full(&c);
    schedule_lab_close(&l);
}

/* A satellite that is down, or a host that rests, is not asked. */
TEST_FOUR(archive_schedule, only_the_sets_that_are_asked_give_accounts)
{
    struct schedule_lab l;
    struct schedule_claim c;

    schedule_lab_open(&l, f, 0);
    schedule_lab_add(&l, OCTOCAT);              /* a6: europe-west-1 */
    schedule_lab_add(&l, "github.com/mojombo"); /* 2a: asia-east-1 */
    l.ask.sets = &l.sets[1];
    l.ask.set_count = 1;
    schedule_lab_claim_this(&l, &c, OCTOCAT);
    schedule_leave(&c);
    CHECK(!schedule_lab_claim(&l, &c, NULL));
    l.ask.set_count = 0;
    CHECK(!schedule_lab_claim(&l, &c, NULL));
    l.ask.sets = &l.sets[0];
    l.ask.set_count = 1;
    schedule_lab_claim_this(&l, &c, "github.com/mojombo");
    schedule_leave(&c);
    schedule_lab_close(&l);
}

/* kill -9: nobody renews the lock, and the next claim after it has expired gets the account. */
TEST_FOUR(archive_schedule, worker_death_mid_backup)
{
    struct schedule_lab l;
    struct schedule_claim c, next;

    schedule_lab_open(&l, f, 400);
    schedule_lab_add(&l, OCTOCAT);
    schedule_lab_claim_this(&l, &c, OCTOCAT);
    uint64_t fence = c.fence, since = clock_mono_ms();
    schedule_leave(&c);
    CHECK_SOON(schedule_lab_claim(&l, &next, NULL));
    CHECK(clock_mono_ms() - since >= 300);
    CHECK(next.fence > fence);
    end_full(&next);
    schedule_lab_check(&l);
    schedule_lab_close(&l);
}

/* A sync that was asked for comes at once after the death or the stop of its worker, although the
 * account is not due. */
TEST_FOUR(archive_schedule, a_sync_that_was_asked_for_is_made_after_a_death)
{
    struct schedule_lab l;
    struct schedule_claim c, next;
    struct archive_account octocat;
    struct schedule_counts n;
    struct err err = {0};

    schedule_lab_open(&l, f, 400);
    schedule_lab_add(&l, OCTOCAT);
    schedule_lab_claim_this(&l, &c, OCTOCAT);
    end_full(&c);
    octocat = schedule_lab_account(&l, OCTOCAT);
    CHECK_OK(schedule_first(l.s, &octocat, &err));
    CHECK_SOON(schedule_lab_claim(&l, &c, NULL));
    CHECK_OK(schedule_counts(l.s, false, 0, &n, &err));
    CHECK_INT(n.first, 0);
    schedule_leave(&c); /* kill -9 */
    CHECK_SOON(schedule_lab_claim(&l, &next, NULL));
    CHECK(next.fence > c.fence);
    CHECK_OK(schedule_end_back(&next, &err)); /* weir stops */
    CHECK(schedule_lab_find(&l, OCTOCAT).is_first);
    CHECK_SOON(schedule_lab_claim(&l, &next, NULL));
    end_full(&next);
    CHECK(!schedule_lab_find(&l, OCTOCAT).is_first);
    CHECK(!schedule_lab_claim(&l, &next, NULL));
    CHECK_STR(schedule_lab_ask(&l, "EXISTS", "w:archive:first", NULL), STR("0"));
    schedule_lab_check(&l);
    schedule_lab_close(&l);
}

/* The one that slept past its lock can neither end nor hold the account. */
TEST_FOUR(archive_schedule, paused_worker_resumes_after_ttl)
{
    struct schedule_lab l;
    struct schedule_claim c, next;
    struct err err = {0};

    schedule_lab_open(&l, f, 0);
    schedule_lab_add(&l, OCTOCAT);
    schedule_lab_claim_this(&l, &c, OCTOCAT);
    schedule_lab_ask(&l, "DEL", "lock:octocat", NULL); /* as if 10 s had passed */
    schedule_lab_ask(&l, "ZADD", "w:archive:leased", "1", "166 " OCTOCAT, NULL);
    schedule_lab_claim_this(&l, &next, OCTOCAT);
    CHECK(next.fence > c.fence);
    CHECK_ERR(schedule_end_full(&c, &err), ERR_BUSY);
    CHECK_INT(schedule_lab_find(&l, OCTOCAT).score_ms, SCHEDULE_NEVER);
    CHECK_INT(schedule_lab_find(&l, OCTOCAT).state, SCHEDULE_LEASED);
    CHECK(lock_held(next.lock));
    end_full(&next);
    CHECK_INT(schedule_lab_find(&l, OCTOCAT).score_ms, next.started_ms);
    schedule_lab_check(&l);
    schedule_lab_close(&l);
}

/* SET lock:octocat 1 EX 10 NX by hand, and EXPIRE, as the seed writes them. */
TEST_FOUR(archive_schedule, a_lock_set_by_hand_is_honoured)
{
    struct schedule_lab l;
    struct schedule_claim c;
    struct err err = {0};

    schedule_lab_open(&l, f, 0);
    schedule_lab_add(&l, OCTOCAT);
    CHECK_STR(schedule_lab_ask(&l, "SET", "lock:octocat", "1", "EX", "86400", "NX", NULL),
              STR("OK"));
    CHECK(!schedule_lab_claim(&l, &c, NULL));
    CHECK_STR(schedule_lab_ask(&l, "EXPIRE", "lock:octocat", "10", NULL), STR("1"));
    schedule_lab_ask(&l, "ZADD", "w:archive:leased", "1", "166 " OCTOCAT, NULL);
    CHECK(!schedule_lab_claim(&l, &c, NULL));
    struct archive_account account = schedule_lab_account(&l, OCTOCAT);
    CHECK_ERR(schedule_take(l.s, &l.a, &account, &c, &err), ERR_BUSY);
    CHECK_STR(schedule_lab_ask(&l, "GET", "lock:octocat", NULL), STR("\"1\""));
    /* A lock without an end, and one of another type. */
    schedule_lab_ask(&l, "SET", "lock:octocat", "forever", NULL);
    schedule_lab_ask(&l, "ZADD", "w:archive:leased", "1", "166 " OCTOCAT, NULL);
    CHECK(!schedule_lab_claim(&l, &c, NULL));
    schedule_lab_ask(&l, "DEL", "lock:octocat", NULL);
    schedule_lab_ask(&l, "SADD", "lock:octocat", "x", NULL);
    schedule_lab_ask(&l, "ZADD", "w:archive:leased", "1", "166 " OCTOCAT, NULL);
    CHECK(!schedule_lab_claim(&l, &c, NULL));
    schedule_lab_ask(&l, "DEL", "lock:octocat", NULL);
    schedule_lab_ask(&l, "ZADD", "w:archive:leased", "1", "166 " OCTOCAT, NULL);
    schedule_lab_claim_this(&l, &c, OCTOCAT);
    end_full(&c);
    schedule_lab_close(&l);
}

TEST_FOUR(archive_schedule, claim_skips_10k_locked_fast)
{
    struct schedule_lab l;
    struct schedule_claim c;
    struct archive_account accounts[SCHEDULE_BATCH_MAX];
    char text[40];
    uint64_t wait;
    int calls = 0;
    struct err err = {0};

    schedule_lab_open(&l, f, 0);
    for (int i = 0; i < 10000; i++) {
        snprintf(text, sizeof(text), "lock:a%d", i);
        schedule_lab_ask(&l, "SET", text, "1", "EX", "1000", "NX", NULL);
        snprintf(text, sizeof(text), "github.com/a%d", i);
        accounts[i % SCHEDULE_BATCH_MAX] = schedule_lab_account(&l, text);
        if (i % SCHEDULE_BATCH_MAX == SCHEDULE_BATCH_MAX - 1)
            CHECK_OK(schedule_add(l.s, accounts, SCHEDULE_BATCH_MAX, NULL, &err));
    }
    struct schedule_loaded free_one = {schedule_lab_account(&l, OCTOCAT), 5};
    CHECK_OK(schedule_load(l.s, &free_one, 1, &err));
    /* Each locked account is met once. */
    while (!schedule_lab_claim(&l, &c, &wait)) {
        CHECK_INT(wait, 0);
        CHECK(++calls < 100);
    }
    CHECK_STR(c.member, STR(OCTOCAT));
    end_full(&c);
    CHECK(!schedule_lab_claim(&l, &c, NULL));
    schedule_lab_check(&l);
    schedule_lab_close(&l);
}

/* --- failures and priority --- */

TEST_FOUR(archive_schedule, failing_user_does_not_starve)
{
    static const int64_t holds_s[] = {60,   120,   240,   480,   960,   1920, 3840,
                                      7680, 15360, 30720, 61440, 86400, 86400};
    struct schedule_lab l;
    struct schedule_claim c;
    struct err err = {0};

    schedule_lab_open(&l, f, 0);
    schedule_lab_add(&l, OCTOCAT);
    for (size_t i = 0; i < ARRAY_SIZE(holds_s); i++) {
        schedule_lab_claim_this(&l, &c, OCTOCAT);
        int64_t now = c.started_ms;
        CHECK_OK(schedule_end_failed(&c, 0, &err));
        struct schedule_entry e = schedule_lab_find(&l, OCTOCAT);
        CHECK_INT(e.state, SCHEDULE_HELD);
        CHECK_INT(e.fails, i + 1);
        CHECK_INT(e.score_ms, SCHEDULE_NEVER);
        CHECK(e.held_until_ms >= now + holds_s[i] * MS_PER_S);
        CHECK(e.held_until_ms < now + holds_s[i] * MS_PER_S + 10000);
        CHECK(!schedule_lab_claim(&l, &c, NULL));
        if (i == 0) { /* others are served meanwhile */
            schedule_lab_add(&l, "github.com/mojombo");
            schedule_lab_claim_this(&l, &c, "github.com/mojombo");
            end_full(&c);
        }
        schedule_lab_ask(&l, "DEL", "lock:octocat", NULL);
        schedule_lab_ask(&l, "ZADD", "w:archive:hold", "1", "166 " OCTOCAT, NULL);
    }
    schedule_lab_claim_this(&l, &c, OCTOCAT);
    end_full(&c);
    CHECK_INT(schedule_lab_find(&l, OCTOCAT).fails, 0);
    schedule_lab_check(&l);
    schedule_lab_close(&l);
}

TEST_FOUR(archive_schedule, user_404_hold)
{
    struct schedule_lab l;
    struct schedule_claim c;
    struct err err = {0};

    schedule_lab_open(&l, f, 0);
    schedule_lab_add(&l, OCTOCAT);
    schedule_lab_claim_this(&l, &c, OCTOCAT);
    int64_t now = c.started_ms;
    CHECK_OK(schedule_end_failed(&c, SCHEDULE_GONE_MS, &err));
    int64_t until = schedule_lab_find(&l, OCTOCAT).held_until_ms;
    CHECK(until >= now + 7 * (int64_t)MS_PER_DAY && until < now + 7 * (int64_t)MS_PER_DAY + 10000);
    schedule_lab_close(&l);
}

TEST_FOUR(archive_schedule, priority_before_minus_one)
{
    struct schedule_lab l;
    struct schedule_claim c, other;
    struct archive_account octocat;
    struct err err = {0};

    schedule_lab_open(&l, f, 0);
    schedule_lab_add(&l, "github.com/aaa");
    octocat = schedule_lab_account(&l, OCTOCAT);
    CHECK_ERR(schedule_first(l.s, &octocat, &err), ERR_NOT_FOUND);
    schedule_lab_add(&l, OCTOCAT);
    CHECK_OK(schedule_first(l.s, &octocat, &err));
    CHECK(schedule_lab_find(&l, OCTOCAT).is_first);
    schedule_lab_claim_this(&l, &c, OCTOCAT);
    CHECK(!schedule_lab_find(&l, OCTOCAT).is_first);
    /* While somebody works on it: once more afterwards, although it was just synced. */
    CHECK_OK(schedule_first(l.s, &octocat, &err));
    end_full(&c);
    schedule_lab_ask(&l, "DEL", "lock:octocat", NULL);
    schedule_lab_claim_this(&l, &c, OCTOCAT);
    CHECK_OK(schedule_end_failed(&c, 0, &err));
    /* Also when it is held. */
    CHECK_OK(schedule_first(l.s, &octocat, &err));
    schedule_lab_ask(&l, "DEL", "lock:octocat", NULL);
    schedule_lab_claim_this(&l, &c, OCTOCAT);
    schedule_lab_claim_this(&l, &other, "github.com/aaa");
    end_full(&c);
    end_full(&other);
    schedule_lab_check(&l);
    schedule_lab_close(&l);
}

TEST_FOUR(archive_schedule, one_that_is_removed_while_it_is_synced_stays_removed)
{
    struct schedule_lab l;
    struct schedule_claim c;
    struct archive_account octocat;
    struct schedule_counts counts;
    struct err err = {0};

    schedule_lab_open(&l, f, 0);
    octocat = schedule_lab_account(&l, OCTOCAT);
    CHECK_ERR(schedule_remove(l.s, &octocat, &err), ERR_NOT_FOUND);
    schedule_lab_add(&l, OCTOCAT);
    schedule_lab_claim_this(&l, &c, OCTOCAT);
    CHECK_OK(schedule_remove(l.s, &octocat, &err));
    end_full(&c);
    CHECK_STR(schedule_lab_ask(&l, "ZCARD", "tracked", NULL), STR("0"));
    CHECK_OK(schedule_counts(l.s, true, 0, &counts, &err));
    CHECK_INT(counts.ready + counts.leased + counts.held, 0);
    schedule_lab_close(&l);
}

TEST_FOUR(archive_schedule, one_that_is_taken_is_put_back_as_it_was)
{
    struct schedule_lab l;
    struct schedule_claim c, none;
    struct archive_account octocat;
    struct err err = {0};

    schedule_lab_open(&l, f, 0);
    octocat = schedule_lab_account(&l, OCTOCAT);
    CHECK_OK(schedule_take(l.s, &l.a, &octocat, &c, &err));
    CHECK(!c.is_tracked && lock_held(c.lock));
    CHECK_OK(schedule_end_back(&c, &err));
    CHECK_STR(schedule_lab_ask(&l, "EXISTS", "tracked", "w:archive:leased", NULL), STR("0"));
    schedule_lab_ask(&l, "DEL", "lock:octocat", NULL);
    schedule_lab_add(&l, OCTOCAT);
    schedule_lab_claim_this(&l, &c, OCTOCAT);
    CHECK_OK(schedule_end_failed(&c, 50000, &err));
    int64_t until = schedule_lab_find(&l, OCTOCAT).held_until_ms;
    schedule_lab_ask(&l, "DEL", "lock:octocat", NULL);
    CHECK_OK(schedule_take(l.s, &l.a, &octocat, &c, &err));
    CHECK(c.is_tracked && c.score_ms == SCHEDULE_NEVER);
    CHECK_ERR(schedule_take(l.s, &l.a, &octocat, &none, &err), ERR_BUSY);
    CHECK_INT(schedule_lab_find(&l, OCTOCAT).state, SCHEDULE_LEASED);
    CHECK_OK(schedule_end_back(&c, &err));
    CHECK_INT(schedule_lab_find(&l, OCTOCAT).held_until_ms, until);
    schedule_lab_check(&l);
    schedule_lab_close(&l);
}

/* --- bad days --- */

/* The store's clock went back by two hours: what it timed before is not waited for. */
TEST_FOUR(archive_schedule, clock_jump)
{
    struct schedule_lab l;
    struct schedule_claim c;
    struct schedule_mend m = {.whole = true};
    char later[32];
    struct err err = {0};

    schedule_lab_open(&l, f, 0);
    schedule_lab_add(&l, OCTOCAT);
    schedule_lab_claim_this(&l, &c, OCTOCAT);
    uint64_t fence = c.fence;
    snprintf(later, sizeof(later), "%lld", (long long)c.started_ms + 2 * MS_PER_HOUR);
    schedule_lab_ask(&l, "PEXPIREAT", "lock:octocat", later, NULL);
    schedule_lab_ask(&l, "ZADD", "w:archive:leased", later, "166 " OCTOCAT, NULL);
    schedule_leave(&c);
    /* Its holder is dead, and did not renew it. A claim that finds nothing makes the next one look.
     */
    schedule_lab_claim_this(&l, &c, OCTOCAT);
    CHECK(c.fence > fence);
    end_full(&c);
    /* And forward: scores, holds and fences of a clock that was a year ahead. */
    snprintf(later, sizeof(later), "%lld", (long long)c.started_ms + 365LL * MS_PER_DAY);
    schedule_lab_ask(&l, "ZADD", "tracked", later, OCTOCAT, NULL);
    CHECK_OK(schedule_mend(l.s, &m, &err));
    CHECK_INT(m.future, 1);
    CHECK(schedule_lab_find(&l, OCTOCAT).score_ms <= c.started_ms + MS_PER_MINUTE);
    schedule_lab_ask(&l, "DEL", "lock:octocat", NULL);
    l.ask.resync_after_ms = 0;
    /* A score below all times, set by hand, is that of an account that was never synced. */
    schedule_lab_ask(&l, "ZADD", "tracked", "-inf", OCTOCAT, NULL);
    schedule_lab_claim_this(&l, &c, OCTOCAT);
    CHECK_INT(c.score_ms, SCHEDULE_NEVER);
    end_full(&c);
    schedule_lab_ask(&l, "DEL", "lock:octocat", NULL);
    schedule_lab_claim_this(&l, &c, OCTOCAT);
    CHECK_OK(schedule_end_failed(&c, 0, &err));
    schedule_lab_ask(&l, "ZADD", "w:archive:hold", later, "166 " OCTOCAT, NULL);
    schedule_lab_ask(&l, "DEL", "lock:octocat", NULL);
    schedule_lab_claim_this(&l, &c, OCTOCAT);
    end_full(&c);
    schedule_lab_check(&l);
    schedule_lab_close(&l);
}

/* After FLUSHDB the table comes back by itself, and an account whose record was written just then
 * is not lost. */
TEST_FOUR(archive_schedule, a_store_that_was_emptied_is_used_at_once)
{
    struct schedule_lab l;
    struct schedule_claim c;
    struct err err = {0};

    schedule_lab_open(&l, f, 0);
    schedule_lab_add(&l, OCTOCAT);
    schedule_lab_claim_this(&l, &c, OCTOCAT);
    uint64_t fence = c.fence;
    schedule_lab_ask(&l, "FLUSHDB", NULL);
    CHECK(schedule_lab_add(&l, "github.com/mojombo"));
    CHECK_ERR(schedule_end_full(&c, &err), ERR_BUSY);
    CHECK_INT(schedule_lab_find(&l, OCTOCAT).score_ms, SCHEDULE_NEVER);
    CHECK_INT(schedule_lab_find(&l, OCTOCAT).state, SCHEDULE_READY);
    CHECK(schedule_lab_claim(&l, &c, NULL));
    CHECK(c.fence > fence); /* also of a lost store */
    schedule_leave(&c);
    schedule_lab_check(&l);
    schedule_lab_close(&l);
}

/* --- changes by hand --- */

struct mend_notes {
    char members[8][40];
    size_t count;
    bool refuses;        /* every account */
    const char *refused; /* this login; NULL: none */
};

static int note_found(void *ctx, const struct archive_account *c, struct err *err)
{
    struct mend_notes *n = ctx;

    if (n->refuses || (n->refused && str_eq(c->login, str_z(n->refused))))
        return err_set(err, ERR_UNAVAILABLE, "the satellite is down");
    CHECK(n->count < ARRAY_SIZE(n->members));
    snprintf(n->members[n->count++], sizeof(n->members[0]), STR_FMT "/" STR_FMT, STR_ARG(c->host),
             STR_ARG(c->login));
    return 0;
}

/* The `.new` of an account cannot be written while its satellite is down. The others do not wait.
 */
TEST_FOUR(archive_schedule, a_user_whose_satellite_is_down_keeps_no_others_back)
{
    struct schedule_lab l;
    struct mend_notes notes = {.refused = "octocat"};
    struct schedule_mend m = {.found = note_found, .ctx = &notes};
    struct err err = {0};

    schedule_lab_open(&l, f, 0);
    schedule_lab_ask(&l, "ZADD", "tracked", "0", "github.com/mojombo", "0", OCTOCAT, "0",
                     "github.com/antirez", NULL);
    CHECK_OK(schedule_mend(l.s, &m, &err));
    CHECK_INT(notes.count, 2);
    CHECK_INT(schedule_lab_find(&l, "github.com/antirez").state, SCHEDULE_READY);
    CHECK_INT(schedule_lab_find(&l, "github.com/mojombo").state, SCHEDULE_READY);
    CHECK_INT(schedule_lab_find(&l, OCTOCAT).state, SCHEDULE_UNKNOWN);
    schedule_lab_close(&l);
}

TEST_FOUR(archive_schedule, a_user_added_by_hand_is_found)
{
    struct schedule_lab l;
    struct schedule_claim c;
    struct mend_notes notes = {.refuses = true};
    struct schedule_mend m = {.found = note_found, .ctx = &notes};
    struct err err = {0};

    schedule_lab_open(&l, f, 0);
    schedule_lab_add(&l, "github.com/mojombo");
    CHECK_STR(schedule_lab_ask(&l, "ZADD", "tracked", "0", OCTOCAT, NULL), STR("1"));
    CHECK_INT(schedule_lab_find(&l, OCTOCAT).state, SCHEDULE_UNKNOWN);
    CHECK_OK(schedule_mend(l.s, &m, &err)); /* its `.new` could not be written */
    CHECK_INT(schedule_lab_find(&l, OCTOCAT).state, SCHEDULE_UNKNOWN);
    notes.refuses = false;
    CHECK_OK(schedule_mend(l.s, &m, &err));
    CHECK_INT(notes.count, 1);
    CHECK_STR(str_z(notes.members[0]), STR(OCTOCAT));
    CHECK_INT(m.found_count, 1);
    schedule_lab_check(&l);
    schedule_lab_claim_this(&l, &c, "github.com/mojombo");
    end_full(&c);
    schedule_lab_claim_this(&l, &c, OCTOCAT);
    CHECK_INT(c.score_ms, 0);
    end_full(&c);
    CHECK_OK(schedule_mend(l.s, &m, &err));
    CHECK_INT(notes.count, 1);
    schedule_lab_close(&l);
}

TEST_FOUR(archive_schedule, other_spellings_and_odd_members_are_handled)
{
    struct schedule_lab l;
    struct mend_notes notes = {0};
    struct schedule_mend m = {.found = note_found, .ctx = &notes, .whole = true};
    struct schedule_counts counts;
    struct err err = {0};

    schedule_lab_open(&l, f, 0);
    schedule_lab_ask(&l, "ZADD", "tracked", "0", "github.com/OctoCat", "7", "octocat", "8",
                     "github.com/../x", NULL);
    CHECK_OK(schedule_mend(l.s, &m, &err));
    CHECK_OK(schedule_mend(l.s, &m, &err));
    CHECK_INT(notes.count, 1);
    CHECK_STR(str_z(notes.members[0]), STR(OCTOCAT));
    CHECK_INT(schedule_lab_find(&l, OCTOCAT).score_ms, 0);
    CHECK_STR(schedule_lab_ask(&l, "ZSCORE", "tracked", "github.com/OctoCat", NULL), STR("nil"));
    CHECK_OK(schedule_counts(l.s, false, 0, &counts, &err));
    CHECK_INT(counts.odd, 2);
    CHECK_INT(counts.tracked, 3);
    schedule_lab_check(&l);
    schedule_lab_ask(&l, "ZREM", "tracked", "octocat", "github.com/../x", NULL);
    CHECK_OK(schedule_mend(l.s, &m, &err));
    CHECK_OK(schedule_counts(l.s, false, 0, &counts, &err));
    CHECK_INT(counts.odd, 0);
    schedule_lab_check(&l);
    schedule_lab_close(&l);
}

TEST_FOUR(archive_schedule, users_removed_by_hand_are_dropped)
{
    struct schedule_lab l;
    struct schedule_claim c[2];
    struct schedule_mend m = {.whole = true};
    struct schedule_counts counts;
    struct err err = {0};

    schedule_lab_open(&l, f, 0);
    schedule_lab_add(&l, "github.com/ready");
    schedule_lab_add(&l, "github.com/held");
    schedule_lab_add(&l, "github.com/leased");
    CHECK(schedule_lab_claim(&l, &c[0], NULL));
    CHECK(schedule_lab_claim(&l, &c[1], NULL));
    CHECK_OK(schedule_end_failed(&c[0], 0, &err));
    schedule_lab_ask(&l, "DEL", "tracked", NULL);
    CHECK_OK(schedule_mend(l.s, &m, &err));
    CHECK_INT(m.dropped, 3);
    CHECK_OK(schedule_counts(l.s, true, 0, &counts, &err));
    CHECK_INT(counts.ready + counts.held + counts.leased, 0);
    end_full(&c[1]);
    CHECK_STR(schedule_lab_ask(&l, "EXISTS", "tracked", NULL), STR("0"));
    CHECK(!schedule_lab_claim(&l, &c[0], NULL));
    schedule_lab_close(&l);
}

/* The claim that meets such accounts puts them right too, without a pass. */
TEST_FOUR(archive_schedule, a_claim_puts_right_what_it_meets)
{
    struct schedule_lab l;
    struct schedule_claim c;

    schedule_lab_open(&l, f, 0);
    schedule_lab_add(&l, "github.com/gone");
    schedule_lab_add(&l, "github.com/fresh");
    schedule_lab_add(&l, OCTOCAT);
    schedule_lab_ask(&l, "ZREM", "tracked", "github.com/gone", NULL);
    schedule_lab_ask(&l, "ZADD", "tracked", "XX", "5", "github.com/fresh", NULL);
    schedule_lab_claim_this(&l, &c, OCTOCAT);
    end_full(&c);
    schedule_lab_claim_this(&l, &c, "github.com/fresh");
    CHECK_INT(c.score_ms, 5);
    end_full(&c);
    CHECK(!schedule_lab_claim(&l, &c, NULL));
    schedule_lab_check(&l);
    schedule_lab_close(&l);
}

/* A newcomer takes slots: their accounts are claimed from its set, by whichever way they get there.
 */
TEST_FOUR(archive_schedule, accounts_of_a_slot_that_moves_are_found_in_the_new_set)
{
    struct schedule_lab l;
    struct slots next;
    struct schedule_claim c;
    struct schedule_mend m = {.whole = true};
    struct schedule_set newcomer = {STR("github.com"), STR("zz-new")};
    char member[40];
    size_t moved = 0;
    struct err err = {0};

    schedule_lab_open(&l, f, 0);
    CHECK_OK(slots_add(&next, &l.table, STR("zz-new"), &err));
    for (int i = 0; i < 300; i++) {
        snprintf(member, sizeof(member), "github.com/u%d", i);
        schedule_lab_add(&l, member);
        moved += slots_moves(&next, schedule_lab_account(&l, member).hash[0]);
    }
    CHECK_OK(schedule_map(l.s, &next, &err));
    CHECK_OK(schedule_map(l.s, &l.table, &err)); /* a process that is behind changes nothing */
    CHECK_OK(schedule_mend(l.s, &m, &err));
    CHECK_INT(m.moved, moved);
    CHECK_INT(m.found_count, 0);
    schedule_lab_check(&l);
    l.ask.sets = &newcomer;
    l.ask.set_count = 1;
    for (size_t i = 0; i < moved; i++) {
        CHECK(schedule_lab_claim(&l, &c, NULL));
        end_full(&c);
    }
    CHECK(!schedule_lab_claim(&l, &c, NULL));
    schedule_lab_close(&l);
}

/* --- looking --- */

TEST_FOUR(archive_schedule, pages_have_every_account_once)
{
    struct schedule_lab l;
    struct schedule_entry *entries;
    char member[40];
    size_t count, seen = 0;
    uint64_t next = 0;
    int64_t last = -2;
    struct err err = {0};

    schedule_lab_open(&l, f, 0);
    for (int i = 0; i < 250; i++) {
        snprintf(member, sizeof(member), "github.com/u%d", i);
        struct schedule_loaded loaded = {schedule_lab_account(&l, member), i % 50};
        CHECK_OK(schedule_load(l.s, &loaded, 1, &err));
    }
    do {
        CHECK_OK(schedule_list(l.s, &l.a,
                               &(struct schedule_page){.by_score = true, .at = next, .limit = 60},
                               &entries, &count, &next, &err));
        for (size_t i = 0; i < count; i++) {
            CHECK(entries[i].score_ms >= last);
            last = entries[i].score_ms;
        }
        seen += count;
    } while (next);
    CHECK_INT(seen, 250);
    schedule_lab_check(&l);
    schedule_lab_close(&l);
}

/* --- marks of the rebuild --- */

TEST_FOUR(archive_schedule, a_slot_that_was_emptied_while_it_was_loaded_is_not_built)
{
    struct schedule_lab l;
    struct str mark, other;
    bool lacks[SLOT_COUNT];
    struct err err = {0};

    schedule_lab_open(&l, f, 0);
    CHECK_OK(schedule_build(l.s, &l.a, 166, &mark, &err));
    schedule_lab_ask(&l, "FLUSHDB", NULL);
    CHECK_ERR(schedule_built(l.s, 166, mark, 1, &err), ERR_AGAIN);
    CHECK_OK(schedule_build(l.s, &l.a, 166, &mark, &err));
    CHECK_OK(schedule_build(l.s, &l.a, 166, &other, &err));
    CHECK_ERR(schedule_built(l.s, 166, mark, 1, &err), ERR_AGAIN);
    CHECK_OK(schedule_built(l.s, 166, other, 1, &err));
    CHECK_OK(schedule_lacks(l.s, lacks, &err));
    CHECK(!lacks[166] && lacks[165] && lacks[0]);
    CHECK_OK(schedule_unbuild(l.s, &err));
    CHECK_OK(schedule_lacks(l.s, lacks, &err));
    CHECK(lacks[166]);
    schedule_lab_close(&l);
}

/* What was synced since the listing began keeps its score. */
TEST_FOUR(archive_schedule, loading_keeps_scores_that_are_known)
{
    struct schedule_lab l;
    struct schedule_loaded loaded;
    struct err err = {0};

    schedule_lab_open(&l, f, 0);
    loaded = (struct schedule_loaded){schedule_lab_account(&l, OCTOCAT), 500};
    CHECK_OK(schedule_load(l.s, &loaded, 1, &err));
    loaded.score_ms = SCHEDULE_NEVER;
    CHECK_OK(schedule_load(l.s, &loaded, 1, &err));
    CHECK_INT(schedule_lab_find(&l, OCTOCAT).score_ms, 500);
    loaded.score_ms = 700;
    CHECK_OK(schedule_load(l.s, &loaded, 1, &err));
    CHECK_INT(schedule_lab_find(&l, OCTOCAT).score_ms, 500);
    schedule_lab_ask(&l, "ZADD", "tracked", "-1", OCTOCAT, NULL);
    CHECK_OK(schedule_load(l.s, &loaded, 1, &err));
    CHECK_INT(schedule_lab_find(&l, OCTOCAT).score_ms, 700);
    schedule_lab_check(&l);
    schedule_lab_close(&l);
}
