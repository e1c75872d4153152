/* Deltas: each instruction, and each way of being damaged. */
#include "archive/delta.h"
#include "unit/test.h"

#include <stdlib.h>

static struct err err;

static int apply(struct str base, struct str delta, char *to, size_t result)
{
    return delta_apply((unsigned char *)to, result, base, delta, &err);
}

TEST(archive_delta, sizes_are_read_in_seven_bit_groups)
{
    struct delta_sizes sizes;
    struct str delta = STR("\x80\x01\x05rest");

    CHECK_OK(delta_sizes_read(&sizes, &delta, &err));
    CHECK_INT(sizes.base, 128);
    CHECK_INT(sizes.result, 5);
    CHECK_STR(delta, STR("rest"));
    delta = STR("\x80");
    CHECK_ERR(delta_sizes_read(&sizes, &delta, &err), ERR_PARSE);
    delta = STR("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02");
    CHECK_ERR(delta_sizes_read(&sizes, &delta, &err), ERR_PARSE);
}

TEST(archive_delta, copies_and_inserts_make_the_object)
{
    char to[16];

    /* insert "ab"; copy 3 bytes from offset 2; copy 1 byte from offset 0, which is not written */
    CHECK_OK(apply(STR("01234567"),
                   STR("\x02"
                       "ab"
                       "\x91\x02\x03"
                       "\x90\x01"),
                   to, 6));
    CHECK_STR(str_n(to, 6), STR("ab2340"));
    CHECK_OK(apply(STR("0123"), STR(""), to, 0));
}

TEST(archive_delta, a_copy_of_length_zero_is_64_kib)
{
    struct buf base = {0};
    char *to = xzalloc(0x10000);

    for (int i = 0; i < 0x10000 / 8 + 1; i++)
        buf_append_be64(&base, (uint64_t)i);
    CHECK_OK(apply(buf_str(&base), STR("\x81\x08"), to, 0x10000));
    CHECK_STR(str_n(to, 0x10000), str_n(base.p + 8, 0x10000));
    CHECK_ERR(apply(str_head(buf_str(&base), 0x10000), STR("\x81\x08"), to, 0x10000), ERR_PARSE);
    buf_release(&base);
    free(to);
}

TEST(archive_delta, damaged_deltas_are_refused)
{
    /* Columns: the delta; the bytes that it should make from "0123". */
    static const struct {
        struct str delta;
        size_t result;
    } rows[] = {
        {{"\x00", 1}, 0}, /* an instruction that does not exist */
        {{"\x05"
          "ab",
          3},
         5},                                  /* an insert that is cut off */
        {{"\x91\x02", 2}, 3},                 /* a copy that is cut off */
        {{"\x91\x02\x03", 3}, 3},             /* beyond the end of the base */
        {{"\x91\x05\x01", 3}, 1},             /* behind the end of the base */
        {{"\x9f\xff\xff\xff\xff\x01", 6}, 1}, /* far behind it */
        {{"\x02"
          "ab",
          3},
         1}, /* more bytes than it says */
        {{"\x02"
          "ab",
          3},
         3}, /* fewer bytes than it says */
        {{"", 0}, 1},
    };
    char to[8];

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        CHECK_ERR(apply(STR("0123"), rows[i].delta, to, rows[i].result), ERR_PARSE);
}

TEST(archive_delta, a_delta_may_be_carried_out_step_by_step)
{
    static const char delta[] = "\x02"
                                "ab\x90\x04\x02"
                                "cd";
    char to[9] = "";
    struct delta_run r = {(unsigned char *)to, 8, STR("0123"), str_n(delta, 8)};
    bool done = false;
    unsigned steps = 0;

    while (!done && steps++ < 10)
        CHECK_OK(delta_run_some(&r, 1, &done, &err));
    CHECK_INT(steps, 3);
    CHECK_STR(str_z(to), STR("ab0123cd"));
}
