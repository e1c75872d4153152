/* tagging: the three forms of a tag set, and what is refused. */
#include "meta/tagging.h"
#include "unit/test.h"

static int read_code(const char *xml, enum tag_limit limit)
{
    struct arena a = {0};
    struct err err = {0};
    struct tag_set set;
    int code = tagging_read(&set, &a, str_z(xml), limit, &err);

    CHECK((code < 0) == (err.text[0] != '\0'));
    arena_release(&a);
    return code;
}

static int parse_code(struct str query, enum tag_limit limit)
{
    struct arena a = {0};
    struct err err = {0};
    struct tag_set set;
    int code = tagging_parse(&set, &a, query, limit, &err);

    arena_release(&a);
    return code;
}

#define ONE(k, v)                                                                                  \
    "<Tagging><TagSet><Tag><Key>" k "</Key><Value>" v "</Value></Tag></TagSet></Tagging>"

TEST(tagging, a_set_is_by_key_in_all_three_forms)
{
    struct arena a = {0};
    struct err err = {0};
    struct buf stored = {0}, xml = {0};
    struct tag_set set, again;
    struct str value;

    CHECK_OK(tagging_parse(&set, &a, STR("b=2+3&a%3D=%C3%BC&empty"), TAGS_OF_OBJECT, &err));
    CHECK_INT(set.count, 3);
    CHECK_STR(set.tags[1].value, STR("2 3"));
    CHECK(tagging_find(&set, STR("a="), &value));
    CHECK_STR(value, STR("\xc3\xbc"));
    CHECK(tagging_find(&set, STR("empty"), &value) && value.len == 0);
    CHECK(!tagging_find(&set, STR("c"), &value));
    tagging_encode(&stored, &set);
    CHECK_STR(buf_str(&stored), STR("a%3D=%C3%BC&b=2%203&empty="));
    tagging_write(&xml, &set);
    CHECK_OK(tagging_read(&again, &a, buf_str(&xml), TAGS_OF_OBJECT, &err));
    buf_reset(&xml);
    tagging_encode(&xml, &again);
    CHECK_STR(buf_str(&xml), buf_str(&stored));
    buf_release(&stored);
    buf_release(&xml);
    arena_release(&a);
}

TEST(tagging, an_empty_set_is_a_set)
{
    CHECK_INT(read_code("<Tagging><TagSet/></Tagging>", TAGS_OF_OBJECT), 0);
    CHECK_INT(parse_code(STR(""), TAGS_OF_OBJECT), 0);
}

TEST(tagging, an_object_has_10_tags_at_most_and_a_bucket_50)
{
    struct buf ten = {0};

    for (int i = 0; i < 10; i++)
        buf_appendf(&ten, "k%d=v&", i);
    CHECK_INT(parse_code(buf_str(&ten), TAGS_OF_OBJECT), 0);
    buf_append_z(&ten, "k10=v&");
    CHECK_INT(parse_code(buf_str(&ten), TAGS_OF_OBJECT), S3_INVALID_TAG);
    for (int i = 11; i < 50; i++)
        buf_appendf(&ten, "k%d=v&", i);
    CHECK_INT(parse_code(buf_str(&ten), TAGS_OF_BUCKET), 0);
    buf_append_z(&ten, "k50=v");
    CHECK_INT(parse_code(buf_str(&ten), TAGS_OF_BUCKET), S3_INVALID_TAG);
    buf_release(&ten);
}

TEST(tagging, lengths_count_characters_not_bytes)
{
    struct buf q = {0};

    for (int i = 0; i < TAG_KEY_MAX; i++)
        buf_append_z(&q, "%C3%BC");
    buf_append_z(&q, "=");
    for (int i = 0; i < TAG_VALUE_MAX; i++)
        buf_append_z(&q, "v");
    CHECK_INT(parse_code(buf_str(&q), TAGS_OF_OBJECT), 0);
    buf_append_z(&q, "v");
    CHECK_INT(parse_code(buf_str(&q), TAGS_OF_OBJECT), S3_INVALID_TAG);
    buf_reset(&q);
    for (int i = 0; i <= TAG_KEY_MAX; i++)
        buf_append_z(&q, "k");
    CHECK_INT(parse_code(buf_str(&q), TAGS_OF_OBJECT), S3_INVALID_TAG);
    buf_release(&q);
}

TEST(tagging, bad_tags_are_refused_by_name)
{
    CHECK_INT(read_code(ONE("", "v"), TAGS_OF_OBJECT), S3_INVALID_TAG);
    CHECK_INT(read_code(ONE("a!", "v"), TAGS_OF_OBJECT), S3_INVALID_TAG);
    CHECK_INT(read_code(ONE("a", "v&lt;"), TAGS_OF_OBJECT), S3_INVALID_TAG);
    CHECK_INT(read_code(ONE("AWS:x", "v"), TAGS_OF_OBJECT), S3_INVALID_TAG);
    CHECK_INT(parse_code(STR("a=1&b=2&a=3"), TAGS_OF_OBJECT), S3_INVALID_TAG);
    CHECK_INT(parse_code(STR("a=%00"), TAGS_OF_OBJECT), S3_INVALID_TAG);
    CHECK_INT(parse_code(STR("a=%ff"), TAGS_OF_OBJECT), S3_INVALID_TAG);
    CHECK_INT(parse_code(STR("a=%zz"), TAGS_OF_OBJECT), S3_INVALID_ARGUMENT);
}

TEST(tagging, xml_of_another_shape_is_malformed)
{
    CHECK_INT(read_code("", TAGS_OF_OBJECT), S3_MALFORMED_XML);
    CHECK_INT(read_code("<Tagging>", TAGS_OF_OBJECT), S3_MALFORMED_XML);
    CHECK_INT(read_code("<TagSet/>", TAGS_OF_OBJECT), S3_MALFORMED_XML);
    CHECK_INT(read_code("<Tagging/>", TAGS_OF_OBJECT), S3_MALFORMED_XML);
    CHECK_INT(read_code("<Tagging><TagSet/><TagSet/></Tagging>", TAGS_OF_OBJECT), S3_MALFORMED_XML);
    CHECK_INT(
        read_code("<Tagging><TagSet><Tag><Key>a</Key></Tag></TagSet></Tagging>", TAGS_OF_OBJECT),
        S3_MALFORMED_XML);
    CHECK_INT(read_code("<Tagging><TagSet><Other/></TagSet></Tagging>", TAGS_OF_OBJECT),
              S3_MALFORMED_XML);
}
