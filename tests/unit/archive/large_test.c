/* The memory for lists: small shares, one large share, and buffers. */
#include "archive/large.h"
#include "os/thread.h"
#include "unit/test.h"

TEST(archive_large, small_work_shares_a_budget_and_further_work_becomes_large)
{
    struct large_room room;
    struct large_hold small = {.room = &room}, large = {.room = &room}, third = {.room = &room};
    struct err err = {0};

    large_room_init(&room);
    CHECK_OK(large_take(&small, LARGE_LISTS_MAX - MIB, &err));
    CHECK(!small.is_large);
    CHECK_OK(large_take(&large, 2 * MIB, &err));
    CHECK(large.is_large);
    CHECK_OK(large_take(&large, 64 * MIB, &err)); /* large work takes what it needs */
    CHECK_OK(large_take(&third, MIB / 2, &err));
    CHECK_ERR(large_take(&third, 2 * MIB, &err), ERR_TIMEOUT);
    large_release(&large);
    CHECK_OK(large_take(&third, 2 * MIB, &err));
    CHECK(third.is_large);
    large_release(&third);
    large_release(&small);
    CHECK_INT(atomic_load(&room.lists.used), 0);
    CHECK_OK(large_take(&small, LARGE_LISTS_MAX, &err));
    CHECK(!small.is_large);
    large_release(&small);
}

TEST(archive_large, memory_that_is_used_again_is_counted_once)
{
    struct large_room room;
    struct large_hold h = {.room = &room};
    size_t reached = 0;
    struct err err = {0};

    large_room_init(&room);
    CHECK_OK(large_reach(&h, &reached, MIB, &err));
    CHECK_OK(large_reach(&h, &reached, 1, &err));
    CHECK_OK(large_reach(&h, &reached, 3 * MIB, &err));
    CHECK_INT(h.used, 3 * MIB);
    CHECK_INT(reached, 3 * MIB);
    large_release(&h);
    CHECK_OK(large_reach(NULL, &reached, 9 * MIB, &err)); /* without a hold nothing is counted */
}

TEST(archive_large, work_that_gives_back_is_not_large_any_more)
{
    struct large_room room;
    struct large_hold h = {.room = &room}, other = {.room = &room};
    struct err err = {0};

    large_room_init(&room);
    CHECK_OK(large_take(&h, MIB, &err));
    size_t used = h.used;
    CHECK_OK(large_take(&h, LARGE_LISTS_MAX, &err));
    CHECK(h.is_large);
    large_back(&h, used);
    CHECK(!h.is_large);
    CHECK_INT(atomic_load(&room.lists.used), MIB);
    CHECK_OK(large_take(&other, LARGE_LISTS_MAX, &err));
    CHECK(other.is_large);
    CHECK_OK(large_take(&h, 1, &err));
    large_back(&h, used);
    CHECK_INT(atomic_load(&room.lists.used), MIB);
    large_release(&h);
    large_release(&other);
    CHECK_INT(atomic_load(&room.lists.used), 0);
}

TEST(archive_large, nobody_waits_for_buffers)
{
    struct large_room room;
    struct large_hold h = {.room = &room}, other = {.room = &room};

    large_room_init(&room);
    CHECK(large_try(&h, LARGE_BUFFERS_MAX - MIB));
    CHECK(!large_try(&other, 2 * MIB));
    CHECK(large_try(&other, MIB));
    large_give(&other, MIB);
    large_give(&h, LARGE_BUFFERS_MAX - MIB);
    CHECK_INT(atomic_load(&room.buffers.used), 0);
    CHECK(large_try(NULL, GIB));
}

TEST(archive_large, waiting_ends_with_the_work_that_is_canceled)
{
    struct large_room room;
    _Atomic(bool) cancel = true;
    struct large_hold large = {.room = &room};
    struct large_hold waits = {.room = &room, .cancel = &cancel, .wait_ms = 60 * 1000};
    struct err err = {0};

    large_room_init(&room);
    CHECK_OK(large_take(&large, LARGE_LISTS_MAX + 1, &err));
    CHECK_ERR(large_take(&waits, LARGE_LISTS_MAX + 1, &err), ERR_CANCELED);
    large_release(&waits);
    large_release(&large);
}
