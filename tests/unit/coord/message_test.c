/* Asynq's messages. */
#include "coord/message.h"
#include "unit/test.h"

TEST(message, is_written_as_protobuf_has_it)
{
    struct task t = {.type = STR("t"),
                     .payload = STR("{}"),
                     .id = STR("i"),
                     .queue = STR("q"),
                     .retry_max = 25,
                     .timeout_s = 1800};
    struct buf out = {0};

    message_write(&out, &t);
    CHECK_STR(buf_str(&out), STR("\x0a\x01t\x12\x02{}\x1a\x01i\x22\x01q\x28\x19\x40\x88\x0e"));
    buf_release(&out);
}

TEST(message, what_was_written_is_read)
{
    struct task t = {.type = STR("type"),
                     .payload = STR("\0\xff"),
                     .id = STR("id"),
                     .queue = STR("q"),
                     .retry_max = 25,
                     .retried = 3,
                     .error = STR("bad"),
                     .timeout_s = 1,
                     .deadline_s = 1760000000,
                     .unique_key = STR("u"),
                     .last_failed_s = 5,
                     .retention_s = 6,
                     .completed_s = -7};
    struct task back;
    struct buf out = {0};
    struct err err = {0};

    message_write(&out, &t);
    CHECK_OK(message_read(&back, buf_str(&out), &err));
    CHECK_STR(back.type, t.type);
    CHECK_STR(back.payload, t.payload);
    CHECK_STR(back.error, t.error);
    CHECK_STR(back.unique_key, t.unique_key);
    CHECK_INT(back.retry_max, 25);
    CHECK_INT(back.retried, 3);
    CHECK_INT(back.deadline_s, 1760000000);
    CHECK_INT(back.completed_s, -7);
    buf_release(&out);
}

TEST(message, fields_that_are_not_known_are_skipped)
{
    struct task back;
    struct err err = {0};

    /* 14: a string, 15: a map's entry, 16: fixed64, 17: fixed32, 18: a number */
    CHECK_OK(message_read(&back,
                          STR("\x0a\x01t\x1a\x01i\x72\x01g\x7a\x04\x0a\x00\x12\x00"
                              "\x81\x01\x01\x02\x03\x04\x05\x06\x07\x08\x8d\x01\x01\x02\x03\x04"
                              "\x90\x01\x05"),
                          &err));
    CHECK_STR(back.id, STR("i"));
}

TEST(message, what_is_malformed_is_refused)
{
    static const struct str bad[] = {
        {"\x0a", 1},                                          /* no length */
        {"\x0a\x05t", 3},                                     /* shorter than it says */
        {"\x0a\x01t", 3},                                     /* no id */
        {"\x00\x01", 2},                                      /* field 0 */
        {"\x08\x01\x0a\x01t", 5},                             /* type as a number */
        {"\x0b", 1},                                          /* a group */
        {"\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 11}, /* a number of 70 bits */
    };
    struct task back;
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK_ERR(message_read(&back, bad[i], &err), ERR_PARSE);
}
