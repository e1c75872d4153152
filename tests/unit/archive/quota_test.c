/* Quotas of forges over both engines: what one process meets, all obey. */
#include "archive/quota.h"
#include "base/clock.h"
#include "unit/store/embedded_test.h"
#include "unit/store/four.h"

#define HOST STR("forge.example:8443")

static const struct str ids[] = {STR("one"), STR("two")};

static struct quota *open_quota(struct four *f)
{
    struct quota *q;
    struct err err = {0};

    CHECK_OK(quota_open(&q, f->stores[DB_APP], 0, NULL, &err));
    return q;
}

static struct quota_take take(struct quota *q, enum quota_side side, size_t tokens)
{
    struct quota_take t;
    struct err err = {0};

    CHECK_OK(quota_take(q, HOST, side, ids, tokens, &t, &err));
    return t;
}

static bool was_taken(const struct quota_take *t)
{
    return !t->wait_ms && !t->until_ms && !t->all_dead;
}

/* Takes and gives back at once; tells which token it got, or -1. */
static int token_of(struct quota *q)
{
    struct quota_take t = take(q, QUOTA_API, 2);

    if (!was_taken(&t))
        return -1;
    quota_give(q, HOST, QUOTA_API, t.seat);
    return (int)t.token;
}

static int64_t rest(struct quota *q, struct str token, int64_t seconds)
{
    struct err err = {0};
    int64_t until;

    CHECK_OK(quota_rest(q, HOST, token, seconds, STR("slow down"), &until, &err));
    return until - clock_wall_ms();
}

static void note(struct quota *q, size_t token, int64_t remaining, int64_t reset)
{
    struct err err = {0};

    CHECK_OK(quota_note(q, HOST, ids[token], &(struct quota_note){5000, remaining, reset}, &err));
}

TEST_FOUR(archive_quota, the_token_with_the_most_requests_is_used)
{
    struct quota *q = open_quota(f);

    note(q, 0, 10, 3600);
    note(q, 1, 20, 3600);
    CHECK_INT(token_of(q), 1);
    note(q, 0, 4000, 3600);
    CHECK_INT(token_of(q), 0);
    quota_close(q);
}

TEST_FOUR(archive_quota, primary_403_remaining_0)
{
    struct quota *q = open_quota(f), *other = open_quota(f);

    note(q, 0, 0, 600);
    CHECK_INT(token_of(other), 1); /* the other token goes on, in all processes */
    note(q, 1, 0, 300);
    struct quota_take t = take(other, QUOTA_API, 2);
    int64_t left = t.until_ms - clock_wall_ms();
    CHECK(left > 290 * MS_PER_S && left <= 311 * MS_PER_S); /* the one that comes back first */
    struct quota_take git = take(other, QUOTA_GIT, 0);      /* git does not count */
    CHECK(was_taken(&git));
    quota_give(other, HOST, QUOTA_GIT, git.seat);
    quota_close(other);
    quota_close(q);
}

/* 20 requests that begin at once do not all believe in the last one that is left. */
TEST_FOUR(archive_quota, requests_are_counted_before_their_answers)
{
    struct quota *q = open_quota(f);

    note(q, 0, 2, 600);
    note(q, 1, 0, 600);
    CHECK_INT(token_of(q), 0);
    CHECK_INT(token_of(q), 0);
    CHECK_INT(token_of(q), -1);
    quota_close(q);
}

TEST_FOUR(archive_quota, secondary_403_retry_after)
{
    struct quota *q = open_quota(f), *other = open_quota(f);
    int64_t left = rest(q, ids[0], 3 * S_PER_HOUR);

    CHECK(left > 3 * MS_PER_HOUR - 5000 && left <= 3 * MS_PER_HOUR + 5000); /* is not cut short */
    CHECK_INT(token_of(other), 1);
    CHECK(rest(q, ids[0], 9 * S_PER_DAY) <= (int64_t)MS_PER_DAY + 5000);
    CHECK(rest(q, ids[0], 60) > 20 * MS_PER_HOUR); /* a shorter one does not end a longer one */
    quota_close(other);
    quota_close(q);
}

TEST(archive_quota, 429_without_headers)
{
    struct four f = {0};
    int64_t shift = 0;

    four_open_embedded(&f);
    struct quota *q = open_quota(&f);
    for (int64_t want = 60; want <= 240; want *= 2) {
        int64_t left = rest(q, ids[0], 0);
        CHECK(left > (want - 5) * MS_PER_S && left <= (want + 5) * MS_PER_S);
        CHECK(rest(q, ids[0], 0) <= left); /* others that were under way do not double it */
        shift += (want + 1) * MS_PER_S;
        embedded_shift_clock(f.stores[DB_APP], shift);
    }
    embedded_shift_clock(f.stores[DB_APP], shift + 3600 * MS_PER_S); /* peace */
    CHECK(rest(q, ids[0], 0) <= 65 * MS_PER_S);
    quota_close(q);
    four_close(&f);
}

TEST_FOUR(archive_quota, a_host_that_rests_takes_nothing)
{
    struct quota *q = open_quota(f), *other = open_quota(f);
    struct err err = {0};

    CHECK(rest(q, STR_EMPTY, 120) > 100 * MS_PER_S);
    struct quota_take api = take(other, QUOTA_API, 2), git = take(other, QUOTA_GIT, 0);
    CHECK(api.until_ms && git.until_ms);
    struct quota_take else_where;
    CHECK_OK(quota_take(other, STR("other.example"), QUOTA_API, ids, 2, &else_where, &err));
    CHECK(was_taken(&else_where)); /* other hosts go on */
    quota_close(other);
    quota_close(q);
}

TEST_FOUR(archive_quota, seats_are_limited_and_come_back)
{
    struct quota *q = open_quota(f), *other = open_quota(f);
    struct quota_take seats[QUOTA_GIT_SEATS];

    for (int i = 0; i < QUOTA_GIT_SEATS; i++) {
        seats[i] = take(i % 2 ? q : other, QUOTA_GIT, 0);
        CHECK(was_taken(&seats[i]));
    }
    struct quota_take more = take(q, QUOTA_GIT, 0);
    CHECK(more.wait_ms > 0);
    struct quota_take api = take(q, QUOTA_API, 1);
    CHECK(was_taken(&api)); /* the other side has seats of its own */
    quota_give(other, HOST, QUOTA_GIT, seats[0].seat);
    more = take(q, QUOTA_GIT, 0);
    CHECK(was_taken(&more));
    quota_close(other);
    quota_close(q);
}

TEST(archive_quota, seats_of_a_process_that_died_come_back)
{
    struct four f = {0};

    four_open_embedded(&f);
    struct quota *q = open_quota(&f);
    for (int i = 0; i < QUOTA_GIT_SEATS; i++)
        take(q, QUOTA_GIT, 0);
    embedded_shift_clock(f.stores[DB_APP], QUOTA_SEAT_MS + 1);
    struct quota_take t = take(q, QUOTA_GIT, 0);
    CHECK(was_taken(&t));
    quota_close(q);
    four_close(&f);
}

TEST_FOUR(archive_quota, token_revoked_rotates)
{
    struct quota *q = open_quota(f), *other = open_quota(f);
    struct quota_state host, states[2];
    struct arena a = {0};
    struct err err = {0};

    CHECK_OK(quota_set_dead(q, HOST, ids[0], STR("Bad credentials"), &err));
    CHECK_INT(token_of(other), 1);
    CHECK_OK(quota_set_dead(q, HOST, ids[1], STR("Bad credentials"), &err));
    struct quota_take t = take(other, QUOTA_API, 2);
    CHECK(t.all_dead && !t.until_ms);
    CHECK_OK(quota_read(other, &a, HOST, ids, 2, &host, states, &err));
    CHECK(states[0].dead_ms > 0 && !host.until_ms);
    CHECK_STR(states[0].words, STR("Bad credentials"));
    CHECK_OK(quota_set_dead(q, HOST, ids[0], STR_EMPTY, &err)); /* added again */
    CHECK_INT(token_of(other), 0);
    CHECK_OK(quota_forget(q, HOST, ids[1], &err));
    CHECK_OK(quota_read(other, &a, HOST, ids, 2, &host, states, &err));
    CHECK(!states[1].dead_ms && states[1].remaining == -1);
    arena_release(&a);
    quota_close(other);
    quota_close(q);
}

TEST_FOUR(archive_quota, numbers_are_shown)
{
    struct quota *q = open_quota(f);
    struct quota_state host, states[2];
    struct arena a = {0};
    struct err err = {0};

    note(q, 0, 4321, 600);
    CHECK_OK(quota_read(q, &a, HOST, ids, 2, &host, states, &err));
    CHECK_INT(states[0].limit, 5000);
    CHECK_INT(states[0].remaining, 4321);
    CHECK(states[0].reset_ms > clock_wall_ms() + 500 * MS_PER_S && !states[0].until_ms);
    CHECK_INT(states[1].remaining, -1);
    arena_release(&a);
    quota_close(q);
}

/* After the store's clock went back, rests that were noted before do not last for ever. */
TEST(archive_quota, clock_jump)
{
    struct four f = {0};

    four_open_embedded(&f);
    struct quota *q = open_quota(&f);
    embedded_shift_clock(f.stores[DB_APP], 10 * (int64_t)MS_PER_DAY);
    rest(q, STR_EMPTY, 60);
    take(q, QUOTA_GIT, 0);
    embedded_shift_clock(f.stores[DB_APP], 0);
    struct quota_take t = take(q, QUOTA_GIT, 0);
    CHECK(was_taken(&t));
    quota_close(q);
    four_close(&f);
}
