/* Whether two objects are the same. */
#include "copy/same.h"
#include "unit/test.h"

#define H(name, value)                                                                             \
    {                                                                                              \
        {name, sizeof(name) - 1},                                                                  \
        {                                                                                          \
            value, sizeof(value) - 1                                                               \
        }                                                                                          \
    }

static struct object_info object(const char *etag, uint64_t size)
{
    return (struct object_info){.etag = str_z(etag), .size = size};
}

static struct object_meta with(struct http_header *headers, size_t count)
{
    return (struct object_meta){.headers = headers, .header_count = count};
}

TEST(same, size_and_etag_decide)
{
    struct object_info a = object("x", 3), b = object("x", 3), longer = object("x", 4),
                       other = object("y", 3), bare = object("", 3);

    CHECK(same_object(&a, &b));
    CHECK(!same_object(&a, &longer));
    CHECK(!same_object(&a, &other));
    CHECK(!same_object(&bare, &bare));
}

TEST(same, a_checksum_of_the_whole_counts_more_than_an_etag)
{
    struct object_info a = object("x", 3), b = object("y", 3);

    a.meta.checksum = (struct object_checksum){CHECKSUM_FULL_OBJECT, DIGEST_CRC32, STR("AAAAAA==")};
    CHECK(!same_bytes(&a, &b));
    b.meta.checksum = a.meta.checksum;
    CHECK(same_bytes(&a, &b));
    b.meta.checksum.kind = DIGEST_CRC32C;
    CHECK(!same_bytes(&a, &b));
    b.meta.checksum = (struct object_checksum){CHECKSUM_FULL_OBJECT, DIGEST_CRC32, STR("BAAAAA==")};
    b.etag = a.etag;
    CHECK(!same_bytes(&a, &b));
    a.meta.checksum.type = b.meta.checksum.type = CHECKSUM_COMPOSITE;
    CHECK(same_bytes(&a, &b));
}

TEST(same, markers_are_the_same_as_markers_alone)
{
    struct object_info marker = {.is_marker = true}, a = object("x", 0);

    CHECK(same_bytes(&marker, &marker));
    CHECK(!same_bytes(&marker, &a));
    CHECK(!same_bytes(&a, &marker));
}

TEST(same, headers_compare_in_any_order_and_case_of_names)
{
    struct http_header one[] = {H("Cache-Control", "no-store"), H("x-amz-meta-a", "1")},
                       two[] = {H("X-Amz-Meta-A", "1"), H("cache-control", "no-store")},
                       less[] = {H("x-amz-meta-a", "1")},
                       other[] = {H("x-amz-meta-a", "2"), H("cache-control", "no-store")},
                       upper[] = {H("x-amz-meta-a", "1"), H("cache-control", "NO-STORE")};
    struct object_meta m = with(one, 2), n = with(two, 2), l = with(less, 1), o = with(other, 2),
                       u = with(upper, 2);

    CHECK(same_headers(&m, &n));
    CHECK(!same_headers(&m, &l));
    CHECK(!same_headers(&l, &m));
    CHECK(!same_headers(&m, &o));
    CHECK(!same_headers(&m, &u));
}

TEST(same, a_type_that_was_not_given_is_the_storages_own)
{
    struct http_header octets[] = {H("Content-Type", "application/octet-stream")},
                       binary[] = {H("content-type", "binary/octet-stream")},
                       text[] = {H("content-type", "text/plain")};
    struct object_meta none = {0}, o = with(octets, 1), b = with(binary, 1), t = with(text, 1);

    CHECK(same_headers(&none, &none));
    CHECK(same_headers(&none, &b));
    CHECK(same_headers(&none, &o));
    CHECK(same_headers(&b, &none));
    CHECK(!same_headers(&o, &none)); /* it was asked for */
    CHECK(!same_headers(&none, &t));
    CHECK(!same_headers(&t, &none));
    CHECK(!same_headers(&o, &b));
}

TEST(same, tags_are_sets_of_decoded_pairs)
{
    CHECK(same_tags(STR_EMPTY, STR_EMPTY));
    CHECK(same_tags(STR("a=1&b=2"), STR("b=2&a=1")));
    CHECK(same_tags(STR("a=%41"), STR("a=A")));
    CHECK(same_tags(STR("a=x%20y"), STR("a=x+y")));
    CHECK(!same_tags(STR("a=1"), STR("a=2")));
    CHECK(!same_tags(STR("a=1"), STR("a=1&b=2")));
    CHECK(!same_tags(STR("a=1"), STR_EMPTY));
    CHECK(!same_tags(STR_EMPTY, STR("a=1")));
}
