/* Who holds which epoch, over both engines. */
#include "coord/gateways.h"
#include "base/clock.h"
#include "unit/coord/tell.h"
#include "unit/store/embedded_test.h"
#include "unit/store/four.h"

static bool reached(struct four *f, int64_t epoch)
{
    struct err err = {0};
    bool yes = false;

    CHECK_OK(gateways_reached(f->stores[DB_CONFIG], epoch, &yes, &err));
    return yes;
}

static void tell(struct four *f, const char *id, int64_t epoch)
{
    tell_epoch(f->stores[DB_CONFIG], str_z(id), epoch);
}

TEST_FOUR(gateways, an_epoch_is_reached_when_the_last_one_holds_it)
{
    struct err err = {0};

    CHECK(reached(f, 7)); /* nobody is there */
    tell(f, "one", 1700000000007);
    tell(f, "two", -1);
    CHECK(!reached(f, 1700000000007));
    tell(f, "two", 1700000000006);
    CHECK(!reached(f, 1700000000007));
    CHECK(reached(f, 1700000000006));
    tell(f, "two", 1700000000008);
    CHECK(reached(f, 1700000000007));
    CHECK(!reached(f, 1700000000008));
    CHECK_OK(gateways_forget(f->stores[DB_CONFIG], STR("one"), &err));
    CHECK(reached(f, 1700000000008));
}

TEST_FOUR(gateways, a_change_of_a_policy_is_known_when_the_last_one_holds_its_epoch)
{
    struct store *config = f->stores[DB_CONFIG];
    struct err err = {0};
    bool known = false;

    tell(f, "one", 1700000000007);
    check_reply(config, "ZADD w:epochs 1700000000008 n:alice:box:a:b", "1");
    CHECK_OK(gateways_reached_name(config, STR("alice:box:a:b"), &known, &err));
    CHECK(!known);
    CHECK_OK(gateways_reached_name(config, STR("alice:box:a:c"), &known, &err));
    CHECK(known); /* it was long ago */
    tell(f, "one", 1700000000008);
    CHECK_OK(gateways_reached_name(config, STR("alice:box:a:b"), &known, &err));
    CHECK(known);
}

TEST_FOUR(gateways, who_was_not_heard_of_lately_does_not_count_and_is_forgotten)
{
    struct store *config = f->stores[DB_CONFIG];

    check_reply(config, "HSET w:gateways dead 5:1000 odd x", "2");
    CHECK(reached(f, 7));
    tell(f, "one", 7);
    check_reply(config, "HLEN w:gateways", "1");
    check_reply(config, "HEXISTS w:gateways one", "1");
}

TEST_FOUR(gateways, a_storage_is_settled_as_of_when_it_was_said)
{
    struct store *config = f->stores[DB_CONFIG];
    const struct str names[] = {STR("a"), STR("b:c")};
    int64_t settled, now, again;
    struct err err = {0};

    CHECK_OK(gateways_settled(config, names[1], &settled, &now, &err));
    CHECK_INT(settled, 0);
    CHECK_OK(gateways_settle(config, names, 2, now, &again, &err));
    CHECK(again >= now);
    CHECK_OK(gateways_settled(config, names[1], &settled, &again, &err));
    CHECK_INT(settled, now);
}

TEST(gateways, who_told_it_before_the_clock_went_back_lives_from_then_on)
{
    struct four f = {0};

    four_open_embedded(&f);
    struct store *config = f.stores[DB_CONFIG];
    embedded_shift_clock(config, 7200 * MS_PER_S);
    tell(&f, "dead", 6);
    embedded_shift_clock(config, 0);
    tell(&f, "one", 7);
    CHECK(!reached(&f, 7)); /* it may be there, and has not told again yet */
    embedded_shift_clock(config, (GATEWAY_LIFE_S + 2) * 1000);
    tell(&f, "one", 7);
    CHECK(reached(&f, 7));
    four_close(&f);
}
