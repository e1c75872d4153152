/* Protobuf's encoding by tables. */
#include "base/proto.h"
#include "unit/test.h"

struct sample {
    struct str name;
    int64_t when_ms;
    int32_t delta;
    bool on;
    struct str_pairs pairs;
    uint64_t *numbers;
    size_t number_count;
    struct str inside;
};

static const struct proto_field inner_fields[] = {
    PROTO_FIELD(1, PROTO_STR, struct sample, inside),
    {0},
};
static const struct proto_field sample_fields[] = {
    PROTO_FIELD(1, PROTO_STR, struct sample, name),
    PROTO_FIELD(2, PROTO_TIME, struct sample, when_ms),
    PROTO_FIELD(3, PROTO_I32, struct sample, delta),
    PROTO_FIELD(4, PROTO_BOOL, struct sample, on),
    {5, PROTO_PAIRS, offsetof(struct sample, pairs), 0, 3},
    PROTO_ITEMS(6, PROTO_U64S, struct sample, numbers, number_count, 4),
    {.number = 7, .type = PROTO_INNER, .inner = inner_fields},
    {0},
};

TEST(proto, default_values_are_not_written)
{
    struct sample s = {0};
    struct buf out = {0};

    proto_write(&out, sample_fields, &s);
    CHECK_INT(out.len, 0);
}

TEST(proto, values_come_back)
{
    struct arena a = {0};
    struct buf out = {0};
    struct err err = {0};
    uint64_t numbers[] = {0, 300, UINT64_MAX};
    struct sample s = {.name = STR("n"),
                       .when_ms = -1,
                       .delta = -5,
                       .on = true,
                       .numbers = numbers,
                       .number_count = 3,
                       .inside = STR("in")};
    struct sample back = {0};

    proto_write(&out, sample_fields, &s);
    CHECK_OK(proto_read(&back, sample_fields, &a, buf_str(&out), &err));
    CHECK_STR(back.name, STR("n"));
    CHECK_INT(back.when_ms, -1);
    CHECK_INT(back.delta, -5);
    CHECK(back.on);
    CHECK_INT(back.number_count, 3);
    CHECK(back.numbers[0] == 0 && back.numbers[2] == UINT64_MAX);
    CHECK_STR(back.inside, STR("in"));
    buf_release(&out);
    arena_release(&a);
}

TEST(proto, what_a_reader_would_refuse_is_not_written)
{
    struct buf out = {0};
    uint64_t numbers[5] = {1, 2, 3, 4, 5};
    struct str_pair pairs[4] = {{STR("a"), STR("")}, {STR("b"), STR("")}};
    struct sample s = {.numbers = numbers, .number_count = 4, .pairs = {pairs, 3}};

    proto_write(&out, sample_fields, &s);
    CHECK_INT(buf_error(&out), 0);
    s.number_count = 5;
    proto_write(&out, sample_fields, &s);
    CHECK_INT(buf_error(&out), ERR_TOO_LARGE);
    buf_reset(&out);
    s.number_count = 0;
    s.pairs.count = 4;
    proto_write(&out, sample_fields, &s);
    CHECK_INT(buf_error(&out), ERR_TOO_LARGE);
    buf_release(&out);
}

TEST(proto, pairs_are_sorted_and_the_last_of_a_key_counts)
{
    struct arena a = {0};
    struct err err = {0};
    struct sample s = {0};

    CHECK_OK(proto_read(&s, sample_fields, &a,
                        STR("\x2a\x06\x0a\x01z\x12\x01"
                            "1\x2a\x06\x0a\x01"
                            "a\x12\x01"
                            "2"
                            "\x2a\x06\x0a\x01z\x12\x01"
                            "3"),
                        &err));
    CHECK_INT(s.pairs.count, 2);
    CHECK_STR(s.pairs.pairs[0].key, STR("a"));
    CHECK_STR(s.pairs.pairs[1].value, STR("3"));
    arena_release(&a);
}

TEST(proto, later_pair_without_a_value_counts_too)
{
    struct arena a = {0};
    struct err err = {0};
    struct sample s = {0};

    CHECK_OK(proto_read(&s, sample_fields, &a, STR("\x2a\x06\x0a\x01z\x12\x01y\x2a\x03\x0a\x01z"),
                        &err));
    CHECK_INT(s.pairs.count, 1);
    CHECK_INT(s.pairs.pairs[0].value.len, 0);
    arena_release(&a);
}

TEST(proto, unknown_fields_are_skipped_and_bad_ones_refused)
{
    static const struct str bad[] = {
        STR("\x0a"),                                     /* no length */
        STR("\x0a\x02x"),                                /* too short */
        STR("\x08\x01"),                                 /* a number where a string belongs */
        STR("\x00\x01"),                                 /* field 0 */
        STR("\x0b"),                                     /* a wire type that is not used */
        STR("\x12\x02\x10\x80"),                         /* a time that is cut */
        STR("\x18\xff\xff\xff\xff\xff\x01"),             /* past 32 bits */
        STR("\x30\x01\x30\x01\x30\x01\x30\x01\x30\x01"), /* too many numbers */
        STR("\x2a\x03\x0a\x01w\x2a\x03\x0a\x01x\x2a\x03\x0a\x01y\x2a\x03\x0a\x01z"), /* too many
                                                                                        pairs */
        STR("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f") /* past 64 bits */
    };
    struct arena a = {0};
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct sample s = {0};
        CHECK_ERR(proto_read(&s, sample_fields, &a, bad[i], &err), ERR_PARSE);
    }
    struct sample s = {0};
    CHECK_OK(proto_read(&s, sample_fields, &a, STR("\x78\x05\x0a\x01x\x7d....\x79........"), &err));
    CHECK_STR(s.name, STR("x"));
    arena_release(&a);
}
