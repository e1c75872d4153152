/* Reads and writes S3's XML documents, and checks the children of their elements. */
#include "meta/document.h"

int document_read(struct xml_node **out, struct arena *a, struct str text, const char *root,
                  struct err *err)
{
    struct xml_node *node = NULL;
    int code = xml_read(&node, a, text, err);

    if (code == ERR_NO_MEMORY)
        return code;
    if (code < 0)
        return s3_fail(err, S3_MALFORMED_XML);
    if (!str_eq(node->name, str_z(root)))
        return err_set(err, S3_MALFORMED_XML, "The XML's root is not %s", root);
    *out = node;
    return 0;
}

size_t document_count(const struct xml_node *node, const char *name)
{
    size_t count = 0;

    for (const struct xml_node *child = xml_child(node, name); child; child = xml_next(child, name))
        count++;
    return count;
}

static size_t count_named(const struct xml_node *node, struct str name)
{
    size_t count = 0;

    for (const struct xml_node *child = node->children; child; child = child->next)
        count += str_eq(child->name, name);
    return count;
}

int document_shape(const struct xml_node *node, const char *shape, struct err *err)
{
    struct str rest = str_z(shape), word;
    size_t known = 0, all = 0;

    while (str_token(&rest, " ", &word)) {
        struct str name = str_head(word, word.len - 1);
        char kind = word.p[word.len - 1];
        size_t count = count_named(node, name);
        if (count == 0 && (kind == '!' || kind == '+'))
            return err_set(err, S3_MALFORMED_XML, STR_FMT " must have " STR_FMT,
                           STR_ARG(node->name), STR_ARG(name));
        if (count > 1 && (kind == '!' || kind == '?'))
            return err_set(err, S3_MALFORMED_XML, STR_FMT " has more than one " STR_FMT,
                           STR_ARG(node->name), STR_ARG(name));
        known += count;
    }
    for (const struct xml_node *child = node->children; child; child = child->next)
        all++;
    if (known != all)
        return err_set(err, S3_MALFORMED_XML, STR_FMT " has an element that is not known",
                       STR_ARG(node->name));
    return 0;
}

int document_bool(const struct xml_node *node, const char *name, bool fallback, bool *out,
                  struct err *err)
{
    const struct xml_node *child = xml_child(node, name);

    if (child && !str_ieq(child->text, STR("true")) && !str_ieq(child->text, STR("false")))
        return err_set(err, S3_MALFORMED_XML, "%s is neither true nor false", name);
    *out = child ? str_ieq(child->text, STR("true")) : fallback;
    return 0;
}

int document_i64(const struct xml_node *node, const char *name, int64_t *out, struct err *err)
{
    const struct xml_node *child = xml_child(node, name);

    if (child && str_i64(child->text, out) < 0)
        return err_set(err, S3_MALFORMED_XML, "%s is not a whole number", name);
    return 0;
}

int document_choice(struct str text, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(text, str_z(names[i])))
            return (int)i;
    return -1;
}

void document_open(struct buf *out, const char *root)
{
    xml_prolog(out);
    xml_open_attr(out, root, "xmlns", S3_NAMESPACE);
}
