/* buf and arena: growth, limits, what stays after a failure. */
#include "base/arena.h"
#include "base/buf.h"
#include "unit/test.h"

#include <stdlib.h>

TEST(buf, appends_of_every_kind_follow_each_other)
{
    struct buf b = {0};

    buf_append_z(&b, "a");
    buf_append_str(&b, STR("bc"));
    buf_append_char(&b, 'd');
    buf_append(&b, NULL, 0);
    buf_append_str(&b, STR_EMPTY);
    buf_appendf(&b, "-%d-%s", 42, "x");
    buf_append_u64(&b, 0);
    buf_append_u64(&b, UINT64_MAX);
    buf_append_i64(&b, INT64_MIN);
    buf_append_hex(&b, "\x00\xab", 2);
    CHECK_STR(buf_str(&b), STR("abcd-42-x018446744073709551615-922337203685477580800ab"));
    CHECK_INT(strlen(b.p), b.len);
    CHECK_INT(buf_error(&b), 0);
    buf_release(&b);
    CHECK(b.p == NULL && b.len == 0);
}

TEST(buf, growth_stops_at_the_limit_and_the_error_sticks)
{
    struct buf b = BUF_INIT(4);

    buf_append_z(&b, "1234");
    CHECK_INT(buf_error(&b), 0);
    buf_append_char(&b, '5');
    CHECK_ERR(buf_error(&b), ERR_TOO_LARGE);
    CHECK_STR(buf_str(&b), STR("1234"));
    buf_append(&b, NULL, 0);
    CHECK_ERR(buf_error(&b), ERR_TOO_LARGE);
    CHECK(buf_reserve(&b, SIZE_MAX) == NULL);
    buf_reset(&b);
    CHECK_INT(buf_error(&b), 0);
    buf_append_z(&b, "ab");
    CHECK_STR(buf_str(&b), STR("ab"));
    buf_release(&b);
}

TEST(buf, big_endian_numbers_sort_as_bytes)
{
    struct buf a = {0}, b = {0};

    buf_append_be64(&a, 255);
    buf_append_be64(&b, 256);
    CHECK(str_cmp(buf_str(&a), buf_str(&b)) < 0);
    CHECK_STR(buf_str(&b), STR("\0\0\0\0\0\0\1\0"));
    buf_release(&a);
    buf_release(&b);
}

TEST(buf, reserved_room_is_kept_only_as_far_as_committed)
{
    struct buf b = {0};

    memcpy(buf_reserve(&b, 100), "hello", 5);
    buf_commit(&b, 5);
    CHECK_STR(buf_str(&b), STR("hello"));
    buf_consume(&b, 2);
    CHECK_STR(buf_str(&b), STR("llo"));
    buf_consume(&b, 3);
    CHECK_INT(b.len, 0);
    buf_release(&b);
}

TEST(buf, taken_memory_is_the_callers_and_never_null)
{
    struct buf b = {0};
    char *p = buf_take(&b);

    CHECK(p && *p == '\0');
    free(p);
    buf_append_z(&b, "x");
    p = buf_take(&b);
    CHECK(strcmp(p, "x") == 0 && b.p == NULL && b.len == 0);
    free(p);
}

TEST(arena, memory_is_zeroed_aligned_and_separate)
{
    struct arena a = {0};
    char *all[500];

    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        all[i] = arena_alloc(&a, i);
        CHECK((uintptr_t)all[i] % 16 == 0);
        for (size_t k = 0; k < i; k++)
            CHECK(all[i][k] == 0);
        memset(all[i], (int)i, i);
    }
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        for (size_t k = 0; k < i; k++)
            CHECK_INT((unsigned char)all[i][k], i & 255);
    arena_release(&a);
}

TEST(arena, past_the_limit_it_fails_until_reset)
{
    struct arena a = ARENA_INIT(100);

    CHECK(arena_alloc(&a, 60));
    CHECK(!arena_alloc(&a, 60));
    CHECK(!arena_alloc(&a, 1));
    CHECK_ERR(arena_error(&a), ERR_NO_MEMORY);
    CHECK_INT(arena_str(&a, STR("x")).len, 0);
    CHECK_INT(arena_fmt(&a, "%d", 1).len, 0);
    arena_reset(&a);
    CHECK_INT(arena_error(&a), 0);
    CHECK(arena_alloc(&a, 100));
    CHECK(!arena_array(&a, SIZE_MAX / 2, 4));
    arena_release(&a);
}

TEST(arena, copies_are_terminated)
{
    struct arena a = {0};
    struct str s = arena_str(&a, STR("abc")), f = arena_fmt(&a, "%05d", 42);

    CHECK_STR(s, STR("abc"));
    CHECK(s.p[3] == '\0');
    CHECK_STR(f, STR("00042"));
    CHECK(strcmp(arena_z(&a, STR_EMPTY), "") == 0);
    arena_release(&a);
}
