/* Records of a local storage. */
#include "object/local/local_record.h"
#include "unit/test.h"

static struct object_record sample(struct http_header *headers)
{
    headers[0] = (struct http_header){STR("Content-Type"), STR("text/plain")};
    headers[1] = (struct http_header){STR("x-amz-meta-empty"), STR("")};
    return (struct object_record){
        .is_null = true,
        .sequence = UINT64_MAX - 5,
        .size = 1234567890123,
        .modified_ms = 1794784719283,
        .etag = STR("5d41402abc4b2a76b9719d911017c592"),
        .where = WHERE_BLOB,
        .id = 1,
        .offset = 300,
        .meta = {.headers = headers,
                 .header_count = 2,
                 .tags = STR("a=b"),
                 .acl = STR("acl"),
                 .owner = STR("me"),
                 .storage_class = STR("COLD"),
                 .encryption = STR("e"),
                 .checksum = {CHECKSUM_FULL_OBJECT, DIGEST_CRC64NVME, STR("AAAA")},
                 .retain_until_ms = 1794784719284,
                 .retain_compliance = true,
                 .legal_hold = true},
    };
}

TEST(local_record, an_object_comes_back)
{
    struct http_header headers[2];
    struct object_record r = sample(headers), got;
    struct object_info info = {0};
    struct arena a = ARENA_INIT(0);
    struct buf once = BUF_INIT(0), again = BUF_INIT(0);
    struct err err = {0};

    record_put(&once, &r);
    CHECK_OK(record_get(buf_str(&once), &got, &err));
    CHECK(got.is_null && !got.is_marker);
    CHECK(got.sequence == r.sequence && got.size == r.size && got.id == 1 && got.offset == 300);
    CHECK_OK(record_info(&got, &a, true, &info, &err));
    CHECK_INT(info.meta.header_count, 2);
    CHECK_STR(info.meta.headers[1].name, STR("x-amz-meta-empty"));
    CHECK_STR(info.meta.encryption, STR("e"));
    CHECK(info.meta.legal_hold && info.meta.retain_compliance);
    CHECK_INT(info.meta.retain_until_ms, r.meta.retain_until_ms);
    record_put(&again, &got); /* what was decoded encodes to the same bytes */
    CHECK_STR(buf_str(&again), buf_str(&once));
    buf_release(&once);
    buf_release(&again);
    arena_release(&a);
}

TEST(local_record, anything_cut_or_longer_is_corrupt)
{
    struct http_header headers[2];
    struct object_record r = sample(headers), got;
    struct buf bytes = BUF_INIT(0);
    struct err err = {0};

    record_put(&bytes, &r);
    for (size_t len = 0; len < bytes.len; len++)
        CHECK_ERR(record_get(str_head(buf_str(&bytes), len), &got, &err), ERR_CORRUPT);
    buf_append_char(&bytes, '\0');
    CHECK_ERR(record_get(buf_str(&bytes), &got, &err), ERR_CORRUPT);
    bytes.p[0] = 2;
    CHECK_ERR(record_get(str_head(buf_str(&bytes), bytes.len - 1), &got, &err), ERR_CORRUPT);
    buf_release(&bytes);
}

TEST(local_record, any_changed_byte_is_read_as_something_or_corrupt)
{
    struct http_header headers[2];
    struct object_record r = sample(headers), got;
    struct buf bytes = BUF_INIT(0);
    struct err err = {0};

    record_put(&bytes, &r);
    for (size_t i = 0; i < bytes.len; i++)
        for (int value = 0; value < 256; value++) {
            char was = bytes.p[i];
            struct arena a = ARENA_INIT(0);
            struct object_info info = {0};
            bytes.p[i] = (char)value;
            if (record_get(buf_str(&bytes), &got, &err) == 0)
                CHECK_OK(record_info(&got, &a, true, &info, &err));
            bytes.p[i] = was;
            arena_release(&a);
        }
    buf_release(&bytes);
}

TEST(local_record, numbers_that_are_too_long_are_corrupt)
{
    struct blob_record r;
    struct err err = {0};

    CHECK_OK(blob_record_get(STR("\1\1\2\3"), &r, &err));
    CHECK(r.refs == 1 && r.size == 2 && r.checksum == 3);
    CHECK_ERR(blob_record_get(STR("\1\x81\0\2\3"), &r, &err), ERR_CORRUPT);
    CHECK_ERR(blob_record_get(STR("\1\xff\xff\xff\xff\xff\xff\xff\xff\xff\2\2\3"), &r, &err),
              ERR_CORRUPT);
    CHECK_OK(blob_record_get(STR("\1\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\2\3"), &r, &err));
    CHECK(r.refs == UINT64_MAX);
}

/* Older versions stored what a form had called a header. */
TEST(local_record, what_cannot_be_a_header_is_not_given_out)
{
    static const struct http_header bad[] = {
        {STR("x-amz-meta-a b"), STR("v")},      {STR("x-amz-meta-a:b"), STR("v")},
        {STR("x-amz-meta-\xc3\xa4"), STR("v")}, {STR(""), STR("v")},
        {STR("x-amz-meta-a\r\nb"), STR("v")},   {STR("x-amz-meta-a"), STR("v\r\nx: y")},
        {STR("x-amz-meta-a"), STR("v\nw")},     {STR("x-amz-meta-a"), STR("v\0w")},
        {STR("x-amz-meta-a"), STR("v\x01w")},   {STR("x-amz-meta-a"), STR("v\x7fw")},
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct http_header headers[2];
        struct object_record r = sample(headers), got;
        struct object_info info = {0};
        struct arena a = ARENA_INIT(0);
        struct buf row = BUF_INIT(0);
        struct err err = {0};
        headers[0] = bad[i];
        record_put(&row, &r);
        CHECK_OK(record_get(buf_str(&row), &got, &err));
        CHECK_OK(record_info(&got, &a, true, &info, &err));
        CHECK_INT(info.meta.header_count, 1);
        CHECK_STR(info.meta.headers[0].name, STR("x-amz-meta-empty"));
        CHECK_STR(info.meta.tags, r.meta.tags);
        buf_release(&row);
        arena_release(&a);
    }
}

/* Rows of the tap outlive a start: a newer weir reads what an older one has written. */
TEST(local_record, rows_of_the_tap_keep_their_bytes)
{
    static const struct {
        unsigned changes;
        enum meta_set set;
        const char *document, *code, *rest; /* bytes before and behind the names */
    } rows[] = {
        {CHANGE_PUT | THINGS_OF_OBJECT, 0, "", "\x01\x00", "\x00\x00\x05"},
        {CHANGE_MARKER | (unsigned)THING_OBJECT, 0, "", "\x01\x01", "\x00\x00\x05"},
        {CHANGE_REMOVED | (unsigned)THING_OBJECT, 0, "", "\x01\x02", "\x00\x00\x05"},
        {THING_OBJECT_TAGS, META_TAGS, "", "\x01\x03", "\x00\x01\x05"},
        {THING_OBJECT_ACL, META_ACL, "", "\x01\x03", "\x00\x02\x05"},
        {THING_OBJECT, META_LEGAL_HOLD, "", "\x01\x03", "\x00\x08\x05"},
        {CHANGE_BUCKET_MADE, 0, "", "\x01\x04", "\x00\x00\x05"},
        {CHANGE_BUCKET_GONE, 0, "", "\x01\x05", "\x00\x00\x05"},
        {THING_BUCKET_TAGS, 0, "tagging", "\x01\x06", "\x07tagging\x00\x05"},
        {THING_BUCKET_ACL, 0, "acl", "\x01\x06",
         "\x03"
         "acl\x00\x05"},
        {THING_BUCKET, 0, "policy", "\x01\x06", "\x06policy\x00\x05"},
        {THING_BUCKET, 0, "", "\x01\x07", "\x00\x00\x05"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct tapped t = {.changes = rows[i].changes,
                           .bucket = STR("b"),
                           .owner = STR("o"),
                           .key = STR("k"),
                           .version = STR("v"),
                           .document = str_z(rows[i].document),
                           .set = rows[i].set,
                           .size = 5};
        struct buf want = BUF_INIT(0), row = BUF_INIT(0);
        struct tapped got;
        struct err err = {0};

        buf_append(&want, rows[i].code, 2);
        buf_append_z(&want, "\x01"
                            "b\x01o\x01k\x01v");
        buf_append(&want, rows[i].rest, strlen(rows[i].document) + 3);
        tap_record_put(&row, &t);
        CHECK_STR(buf_str(&row), buf_str(&want));
        CHECK_OK(tap_record_get(buf_str(&want), &got, &err));
        CHECK_INT(got.changes, rows[i].changes);
        CHECK_INT(got.set, rows[i].set);
        CHECK_STR(got.document, t.document);
        buf_release(&want);
        buf_release(&row);
    }
}
