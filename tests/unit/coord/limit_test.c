/* Limits of storages over both engines. */
#include "coord/limit.h"
#include "base/clock.h"
#include "unit/store/embedded_test.h"
#include "unit/store/four.h"

static uint64_t take(struct four *f, enum limit_kind kind, double per_second, uint64_t wanted)
{
    struct err err = {0};
    uint64_t wait_ms;

    CHECK_OK(limit_take(f->stores[DB_APP], STR("cold"), kind, per_second, wanted, &wait_ms, &err));
    return wait_ms;
}

TEST_FOUR(limit, gives_a_seconds_worth_and_then_tells_how_long_to_wait)
{
    /* One in 100 s: no machine is so slow that a second one comes by meanwhile. */
    CHECK_INT(take(f, LIMIT_REQUESTS, 0.01, 1), 0);
    uint64_t wait_ms = take(f, LIMIT_REQUESTS, 0.01, 1);
    CHECK(wait_ms > 10000 && wait_ms <= 100000);
    CHECK_INT(take(f, LIMIT_BYTES, 1000, 1000), 0); /* another one */
    CHECK_INT(take(f, LIMIT_REQUESTS, 0, 1000), 0); /* no limit */
}

TEST_FOUR(limit, more_than_it_holds_is_given_once_and_waited_for_by_others)
{
    CHECK_INT(take(f, LIMIT_BYTES, 10, 1000), 0);
    CHECK(take(f, LIMIT_BYTES, 10, 1) > 50000);
}

TEST(limit, fills_with_time)
{
    struct four f = {0};

    four_open_embedded(&f);
    CHECK_INT(take(&f, LIMIT_REQUESTS, 0.01, 1), 0);
    embedded_shift_clock(f.stores[DB_APP], 50 * MS_PER_S);
    CHECK(take(&f, LIMIT_REQUESTS, 0.01, 1) > 0);
    embedded_shift_clock(f.stores[DB_APP], 101 * MS_PER_S);
    CHECK_INT(take(&f, LIMIT_REQUESTS, 0.01, 1), 0);
    four_close(&f);
}

TEST(limit, fills_again_after_the_clock_went_back)
{
    struct four f = {0};

    four_open_embedded(&f);
    embedded_shift_clock(f.stores[DB_APP], 7200 * MS_PER_S);
    CHECK_INT(take(&f, LIMIT_REQUESTS, 0.01, 1), 0);
    embedded_shift_clock(f.stores[DB_APP], 0);
    CHECK(take(&f, LIMIT_REQUESTS, 0.01, 1) > 0);
    embedded_shift_clock(f.stores[DB_APP], 101 * MS_PER_S);
    CHECK_INT(take(&f, LIMIT_REQUESTS, 0.01, 1), 0);
    four_close(&f);
}
