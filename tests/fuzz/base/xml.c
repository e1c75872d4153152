/* xml: the limits hold over the tree that was read; any text that XML can carry is written and
 * reads back equal; any other bytes are written as UTF-8. */
#include "base/xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t check_tree(const struct xml_node *node, size_t depth)
{
    size_t nodes = 0;

    BUG_ON(depth > XML_MAX_DEPTH);
    for (; node; node = node->next) {
        BUG_ON(!str_is_utf8(node->name) || !str_is_utf8(node->text));
        BUG_ON(str_chr(node->name, ':') >= 0);
        for (const struct xml_attr *attr = node->attrs; attr; attr = attr->next)
            BUG_ON(!str_is_utf8(attr->name) || !str_is_utf8(attr->value));
        nodes += 1 + check_tree(node->children, depth + 1);
    }
    return nodes;
}

static void check_reading(struct str text)
{
    struct arena arena = {0};
    struct err err = {0};
    struct xml_node *root = NULL;
    int code = xml_read(&root, &arena, text, &err);

    BUG_ON((code == 0) != (root != NULL));
    BUG_ON(code < 0 && err.text[0] == '\0');
    BUG_ON(code == 0 && check_tree(root, 1) > XML_MAX_NODES);
    arena_release(&arena);
}

/* XML 1.0 section 2.2; surrogates are not UTF-8 to begin with. */
static bool can_carry(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.p[i] < 0x20 && s.p[i] != '\t' && s.p[i] != '\n' && s.p[i] != '\r')
            return false;
    return str_is_utf8(s) && str_find(s, STR("\xef\xbf\xbe")) < 0 &&
           str_find(s, STR("\xef\xbf\xbf")) < 0;
}

static void check_writing(struct str text)
{
    struct arena arena = {0};
    struct buf out = {0};
    struct err err = {0};
    struct xml_node *root = NULL;

    xml_element(&out, "a", text);
    BUG_ON(!str_is_utf8(buf_str(&out)));
    if (can_carry(text)) {
        BUG_ON(xml_read(&root, &arena, buf_str(&out), &err) < 0);
        BUG_ON(!str_eq(root->text, text) || root->children);
        buf_reset(&out);
        char *z = arena_z(&arena, text);
        xml_open_attr(&out, "a", "b", z);
        xml_close(&out, "a");
        BUG_ON(xml_read(&root, &arena, buf_str(&out), &err) < 0);
        BUG_ON(!str_eq(xml_attr_value(root, "b", STR_EMPTY), text));
    }
    arena_release(&arena);
    buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = str_n(data, size);

    check_reading(text);
    check_writing(text);
    return 0;
}
