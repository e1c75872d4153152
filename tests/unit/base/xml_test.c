/* xml: the tree, the limits, and that what is written reads back. */
#include "base/xml.h"
#include "unit/test.h"

static int read_code(struct str text)
{
    struct arena a = {0};
    struct err err = {0};
    struct xml_node *root = NULL;
    int code = xml_read(&root, &a, text, &err);

    CHECK((code == 0) == (root != NULL));
    CHECK((code < 0) == (err.text[0] != '\0'));
    arena_release(&a);
    return code;
}

TEST(xml, a_document_becomes_a_tree_without_prefixes)
{
    struct arena a = {0};
    struct err err = {0};
    struct xml_node *root = NULL, *object;

    CHECK_OK(xml_read(&root, &a,
                      STR("<?xml version=\"1.0\"?>\n<s3:Delete xmlns:s3=\"x\" Quiet='t'>"
                          "<s3:Object><Key>a&amp;b</Key></s3:Object>text"
                          "<Object xsi:type=\"User\"><Key><![CDATA[<c>]]></Key></Object>"
                          "<!-- no --> more<Empty/></s3:Delete>"),
                      &err));
    CHECK_STR(root->name, STR("Delete"));
    CHECK_STR(root->text, STR("text more"));
    CHECK_STR(xml_attr_value(root, "Quiet", STR("")), STR("t"));
    CHECK_STR(xml_attr_value(root, "none", STR("f")), STR("f"));
    object = xml_child(root, "Object");
    CHECK_STR(xml_child_text(object, "Key", STR("")), STR("a&b"));
    object = xml_next(object, "Object");
    CHECK_STR(xml_child_text(object, "Key", STR("")), STR("<c>"));
    CHECK_STR(xml_attr_value(object, "type", STR("")), STR("User"));
    CHECK(xml_next(object, "Object") == NULL);
    CHECK_STR(xml_child_text(root, "Empty", STR("f")), STR(""));
    CHECK_STR(xml_child_text(root, "None", STR("f")), STR("f"));
    CHECK_STR(xml_child_text(NULL, "None", STR("f")), STR("f"));
    arena_release(&a);
}

TEST(xml, entities_and_document_types_are_refused)
{
    CHECK_ERR(read_code(STR("<!DOCTYPE a [<!ENTITY b \"cc\">]><a>&b;</a>")), ERR_PARSE);
    CHECK_ERR(read_code(STR("<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a/>")), ERR_PARSE);
    CHECK_ERR(read_code(STR("<a>&b;</a>")), ERR_PARSE);
}

TEST(xml, malformed_documents_are_refused_with_a_place)
{
    static const char *const bad[] = {
        "",
        " ",
        "<a>",
        "<a></b>",
        "<a/><b/>",
        "text",
        "<a b=c/>",
        "<a b='1' b='2'/>",
        "<a>&#x1;</a>",
        "<a>\x01</a>",
        "<a>\xff</a>",
        "<a>\xed\xa0\x80</a>",
        "<a>&#xFFFE;</a>",
    };
    struct arena a = {0};
    struct err err = {0};
    struct xml_node *root = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK_ERR(read_code(str_z(bad[i])), ERR_PARSE);
    CHECK_ERR(read_code(STR_EMPTY), ERR_PARSE);
    CHECK_ERR(read_code(STR("<a>\0</a>")), ERR_PARSE);
    CHECK_ERR(xml_read(&root, &a, STR("<a>\n <b></c>"), &err), ERR_PARSE);
    CHECK(strstr(err.text, "line 2, column"));
    arena_release(&a);
}

TEST(xml, only_utf8_is_read_whatever_the_document_says)
{
    CHECK_INT(read_code(STR("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a>\xc3\xa4</a>")), 0);
    CHECK_ERR(read_code(STR("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a>\xe4</a>")),
              ERR_PARSE);
    CHECK_ERR(read_code(STR("\xff\xfe<\0a\0/\0>\0")), ERR_PARSE);
    CHECK_ERR(read_code(STR("<\0a\0/\0>\0")), ERR_PARSE);
}

static void repeat(struct buf *b, const char *text, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf_append_z(b, text);
}

TEST(xml, depth_count_and_size_are_limited)
{
    struct buf b = BUF_INIT(2 * XML_MAX_BYTES);
    struct arena small = ARENA_INIT(1000);
    struct err err = {0};
    struct xml_node *root = NULL;

    repeat(&b, "<a>", XML_MAX_DEPTH);
    repeat(&b, "</a>", XML_MAX_DEPTH);
    CHECK_INT(read_code(buf_str(&b)), 0);
    buf_reset(&b);
    repeat(&b, "<a>", XML_MAX_DEPTH + 1);
    repeat(&b, "</a>", XML_MAX_DEPTH + 1);
    CHECK_ERR(read_code(buf_str(&b)), ERR_TOO_LARGE);

    buf_reset(&b);
    buf_append_z(&b, "<a>");
    repeat(&b, "<b/>", XML_MAX_NODES - 1);
    buf_append_z(&b, "</a>");
    CHECK_INT(read_code(buf_str(&b)), 0);
    CHECK_ERR(xml_read(&root, &small, buf_str(&b), &err), ERR_NO_MEMORY);
    b.len -= 4;
    buf_append_z(&b, "<b/></a>");
    CHECK_ERR(read_code(buf_str(&b)), ERR_TOO_LARGE);

    buf_reset(&b);
    buf_append_z(&b, "<a>");
    while (b.len <= XML_MAX_BYTES)
        buf_append_z(&b, "                                                                ");
    buf_append_z(&b, "</a>");
    CHECK_ERR(read_code(buf_str(&b)), ERR_TOO_LARGE);
    arena_release(&small);
    buf_release(&b);
}

TEST(xml, what_is_written_reads_back)
{
    struct buf b = {0};
    struct arena a = {0};
    struct err err = {0};
    struct xml_node *root = NULL;
    const char *value = "<&>\"'\t\n\r \xe2\x82\xac";

    xml_prolog(&b);
    xml_open_attr(&b, "Root", "attr", value);
    xml_element(&b, "Text", str_z(value));
    xml_element(&b, "None", STR_EMPTY);
    xml_element_u64(&b, "Number", UINT64_MAX);
    xml_close(&b, "Root");
    CHECK_OK(xml_read(&root, &a, buf_str(&b), &err));
    CHECK_STR(xml_attr_value(root, "attr", STR("")), str_z(value));
    CHECK_STR(xml_child_text(root, "Text", STR("")), str_z(value));
    CHECK_STR(xml_child_text(root, "None", STR("f")), STR(""));
    CHECK_STR(xml_child_text(root, "Number", STR("")), STR("18446744073709551615"));
    arena_release(&a);
    buf_release(&b);
}

TEST(xml, characters_that_xml_cannot_carry_are_written_as_numbers)
{
    struct buf b = {0};

    xml_text(&b, STR("a\x01\x1f\0z\xef\xbf\xbe\xef\xbf\xbf\xff\r"));
    CHECK_STR(buf_str(&b), STR("a&#x1;&#x1F;&#x0;z&#xFFFE;&#xFFFF;\xef\xbf\xbd&#13;"));
    buf_release(&b);
}
