/* The table of slots: the seed's split, newcomers, draining, and tables that are damaged. */
#include "archive/slots.h"
#include "unit/test.h"

static struct slots first(size_t count)
{
    static const char *const names[] = {"s0", "s1", "s2",  "s3",  "s4",  "s5",  "s6",  "s7",
                                        "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15"};
    struct str list[16];
    struct slots t = {0};
    struct err err = {0};

    for (size_t i = 0; i < count; i++)
        list[i] = str_z(names[i]);
    CHECK_OK(slots_first(&t, list, count, &err));
    return t;
}

TEST(archive_slots, the_seed_splits_among_three)
{
    struct str names[] = {STR("asia-east-1"), STR("europe-west-1"), STR("us-central-1")};
    struct slots t;
    struct err err = {0};

    CHECK_OK(slots_first(&t, names, 3, &err));
    for (unsigned s = 0; s < SLOT_COUNT; s++)
        CHECK_INT(t.of[s], s <= 0x55 ? 0 : s <= 0xaa ? 1 : 2);
    CHECK_INT(t.of[0xa6], 1); /* octocat is in europe-west-1 */
}

/* Satellite i has the slots from ceil(256 i / N) to the next one's. */
TEST(archive_slots, shard_ranges_n1_to_n16)
{
    for (size_t n = 1; n <= 16; n++) {
        struct slots t = first(n);
        for (unsigned s = 0; s < SLOT_COUNT; s++) {
            size_t i = t.of[s];
            CHECK(s >= (SLOT_COUNT * i + n - 1) / n && s < (SLOT_COUNT * (i + 1) + n - 1) / n);
        }
    }
}

TEST(archive_slots, add_satellite_moves_quarter)
{
    for (size_t n = 1; n < 16; n++) {
        struct slots now = first(n), next;
        struct err err = {0};
        CHECK_OK(slots_add(&next, &now, STR("new"), &err));
        CHECK_INT(next.epoch, 2);
        CHECK_INT(slots_moving(&next), SLOT_COUNT / (n + 1));
        CHECK_INT(slots_held(&next, n), SLOT_COUNT / (n + 1));
        for (unsigned s = 0; s < SLOT_COUNT; s++) {
            CHECK_INT(next.leaves[s], now.of[s]);
            CHECK(next.of[s] == now.of[s] || next.of[s] == n);
        }
        for (size_t i = 0; i < n; i++)
            CHECK(slots_held(&next, i) >= SLOT_COUNT / (n + 1));
    }
}

static void arrive_all(struct slots *t)
{
    for (unsigned s = 0; s < SLOT_COUNT; s++)
        if (slots_moves(t, s)) {
            struct slots next;
            bool one[SLOT_COUNT] = {0};
            one[s] = true;
            CHECK(slots_arrive(&next, t, one));
            CHECK_INT(next.epoch, t->epoch + 1);
            CHECK_INT(slots_moving(&next), slots_moving(t) - 1);
            *t = next;
        }
}

TEST(archive_slots, a_drained_satellite_gives_its_slots_to_the_others_and_can_go)
{
    struct slots t = first(4), next;
    struct err err = {0};

    CHECK_ERR(slots_drop(&next, &t, STR("s1"), &err), ERR_BUSY);
    CHECK_OK(slots_drain(&next, &t, STR("s1"), &err));
    CHECK_INT(slots_moving(&next), 64);
    CHECK_ERR(slots_add(&t, &next, STR("x"), &err), ERR_BUSY);
    CHECK_ERR(slots_drop(&t, &next, STR("s1"), &err), ERR_BUSY);
    arrive_all(&next);
    CHECK_OK(slots_drop(&t, &next, STR("s1"), &err));
    CHECK_INT(t.count, 3);
    CHECK_INT(slots_find(&t, STR("s1")), -1);
    for (size_t i = 0; i < 3; i++)
        CHECK(slots_held(&t, i) >= 85);
    for (unsigned s = 0; s < SLOT_COUNT; s++)
        CHECK_STR(str_z(t.names[t.of[s]]), str_z(next.names[next.of[s]]));
}

TEST(archive_slots, wrong_names_are_refused)
{
    static const char *const bad[] = {"", "-a", "a-", "A", "a.b", "a b", "\xc3\xa4"};
    struct slots t = first(2), next;
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK_ERR(slots_add(&next, &t, str_z(bad[i]), &err), ERR_INVALID);
    CHECK_ERR(slots_add(&next, &t, STR("s1"), &err), ERR_EXISTS);
    CHECK_ERR(slots_drain(&next, &t, STR("nobody"), &err), ERR_NOT_FOUND);
    CHECK_ERR(slots_first(&next, NULL, 0, &err), ERR_INVALID);
    t = first(1);
    CHECK_ERR(slots_drain(&next, &t, STR("s0"), &err), ERR_INVALID);
}

static bool slots_are_equal(const struct slots *a, const struct slots *b)
{
    return a->epoch == b->epoch && a->count == b->count &&
           memcmp(a->names, b->names, sizeof(a->names)) == 0 &&
           memcmp(a->of, b->of, sizeof(a->of)) == 0 &&
           memcmp(a->leaves, b->leaves, sizeof(a->leaves)) == 0;
}

TEST(archive_slots, a_table_is_read_back_as_it_was)
{
    struct slots now = first(3), t, back;
    struct buf text = {0};
    struct err err = {0};

    CHECK_OK(slots_add(&t, &now, STR("fourth"), &err));
    slots_write(&text, &t);
    CHECK_OK(slots_read(&back, buf_str(&text), &err));
    CHECK(slots_are_equal(&t, &back));
    buf_release(&text);
}

TEST(archive_slots, a_damaged_table_is_refused_and_changes_nothing)
{
    struct slots t = first(2), kept = t;
    struct buf text = {0};
    struct err err = {0};
    static const char *const bad[] = {
        "",
        "{}",
        "[]",
        "null",
        "{\"epoch\":1}",
        "{\"epoch\":1,\"satellites\":[\"a\"],\"slots\":[0],\"moving\":{}}",
        "{\"epoch\":0,\"satellites\":[\"a\"],\"slots\":[0],\"moving\":{}}",
        "{\"epoch\":1,\"satellites\":[\"a\",\"a\"],\"slots\":[0],\"moving\":{}}",
        "{\"epoch\":1,\"satellites\":[7],\"slots\":[0],\"moving\":{}}",
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK_ERR(slots_read(&t, str_z(bad[i]), &err), ERR_CORRUPT);
    slots_write(&text, &t);
    /* the index of a slot that no satellite has, and a slot that moves to where it is */
    char *at = strstr(text.p, "\"slots\":[0") + strlen("\"slots\":[");
    *at = '2';
    CHECK_ERR(slots_read(&t, buf_str(&text), &err), ERR_CORRUPT);
    *at = '0';
    CHECK_OK(slots_read(&t, buf_str(&text), &err));
    buf_release(&text);
    buf_append_z(&text, "x");
    CHECK(slots_are_equal(&t, &kept));
    buf_release(&text);
}
