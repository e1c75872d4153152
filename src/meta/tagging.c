/* Tag sets: reads and writes their forms, with one check for all forms. */
#include "meta/tagging.h"

#include "http/wire.h"
#include "meta/document.h"

static size_t characters(struct str s)
{
    size_t count = 0;

    for (size_t i = 0; i < s.len; i++)
        count += ((unsigned char)s.p[i] & 0xc0) != 0x80;
    return count;
}

/* Whether the text has only letters, numbers and blanks of any script, and + - = . _ : / @. Outside
 * ASCII only control characters are refused: to find other signs there would need large tables for
 * no gain. */
static bool tag_has_good_characters(struct str s)
{
    if (!str_is_utf8(s))
        return false;
    for (; s.len; s = str_skip(s, str_utf8_len(s))) {
        char c = s.p[0];
        bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        bool ascii = (unsigned char)c < 0x80;
        if (ascii ? !alnum && (c == '\0' || !strchr(" +-=._:/@", c)) : str_utf8_is_control(s))
            return false;
    }
    return true;
}

int tag_check(const struct tag *tag, struct err *err)
{
    if (tag->key.len == 0 || characters(tag->key) > TAG_KEY_MAX ||
        !tag_has_good_characters(tag->key))
        return err_set(err, S3_INVALID_TAG, "The TagKey you have provided is invalid");
    if (characters(tag->value) > TAG_VALUE_MAX || !tag_has_good_characters(tag->value))
        return err_set(err, S3_INVALID_TAG, "The TagValue you have provided is invalid");
    if (tag->key.len >= 4 && str_ieq(str_head(tag->key, 4), STR("aws:")))
        return err_set(err, S3_INVALID_TAG, "System tags cannot be added/updated by requester");
    return 0;
}

/* Sorts the tags by key, so that a set is the same whatever form it was read from. */
static void sort_tags(struct tag_set *set)
{
    for (size_t i = 1; i < set->count; i++)
        for (size_t k = i; k > 0 && str_cmp(set->tags[k - 1].key, set->tags[k].key) > 0; k--) {
            struct tag swapped = set->tags[k];
            set->tags[k] = set->tags[k - 1];
            set->tags[k - 1] = swapped;
        }
}

/* Checks the tag in the array element behind the last tag of the set, and makes it a part of the
 * set. */
static int take_tag(struct tag_set *set, enum tag_limit limit, struct err *err)
{
    const struct tag *tag = &set->tags[set->count];
    int code = tag_check(tag, err);

    if (code < 0)
        return code;
    for (size_t i = 0; i < set->count; i++)
        if (str_eq(set->tags[i].key, tag->key))
            return err_set(err, S3_INVALID_TAG, "Cannot provide multiple Tags with the same key");
    if (++set->count > (size_t)limit)
        return err_set(err, S3_INVALID_TAG, "%s tags cannot be greater than %d",
                       limit == TAGS_OF_OBJECT ? "Object" : "Bucket", (int)limit);
    return 0;
}

int tagging_read(struct tag_set *out, struct arena *a, struct str xml, enum tag_limit limit,
                 struct err *err)
{
    struct tag_set set = {.tags = arena_array(a, (size_t)limit + 1, sizeof(struct tag))};
    struct xml_node *root, *tag;
    int code = document_read(&root, a, xml, "Tagging", err);

    if (code == 0)
        code = document_shape(root, "TagSet!", err);
    if (code == 0)
        code = document_shape(xml_child(root, "TagSet"), "Tag*", err);
    if (code < 0)
        return code;
    if (!set.tags)
        return err_code(err, ERR_NO_MEMORY);
    for (tag = xml_child(xml_child(root, "TagSet"), "Tag"); tag; tag = xml_next(tag, "Tag")) {
        code = document_shape(tag, "Key! Value!", err);
        if (code < 0)
            return code;
        set.tags[set.count].key = xml_child(tag, "Key")->text;
        set.tags[set.count].value = xml_child(tag, "Value")->text;
        code = take_tag(&set, limit, err);
        if (code < 0)
            return code;
    }
    sort_tags(&set);
    *out = set;
    return 0;
}

static int tag_decode(struct str *out, struct arena *a, struct str in, struct err *err)
{
    struct buf text = BUF_INIT(in.len + 1);
    int code = url_decode(&text, in, true);

    if (code < 0)
        code = err_set(err, S3_INVALID_ARGUMENT,
                       "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL "
                       "query parameters without tag name duplicates.");
    *out = arena_str(a, buf_str(&text));
    buf_release(&text);
    return code < 0 ? code : arena_error(a);
}

int tagging_parse(struct tag_set *out, struct arena *a, struct str query, enum tag_limit limit,
                  struct err *err)
{
    struct tag_set set = {.tags = arena_array(a, (size_t)limit + 1, sizeof(struct tag))};
    struct str name, value;

    if (!set.tags)
        return err_code(err, ERR_NO_MEMORY);
    while (url_query_next(&query, &name, &value)) {
        int code = tag_decode(&set.tags[set.count].key, a, name, err);
        if (code == 0)
            code = tag_decode(&set.tags[set.count].value, a, value, err);
        if (code == 0)
            code = take_tag(&set, limit, err);
        if (code < 0)
            return code;
    }
    sort_tags(&set);
    *out = set;
    return 0;
}

void tagging_encode(struct buf *out, const struct tag_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        if (i > 0)
            buf_append_char(out, '&');
        url_encode(out, set->tags[i].key, false);
        buf_append_char(out, '=');
        url_encode(out, set->tags[i].value, false);
    }
}

void tagging_write(struct buf *out, const struct tag_set *set)
{
    document_open(out, "Tagging");
    xml_open(out, "TagSet");
    for (size_t i = 0; i < set->count; i++) {
        xml_open(out, "Tag");
        xml_element(out, "Key", set->tags[i].key);
        xml_element(out, "Value", set->tags[i].value);
        xml_close(out, "Tag");
    }
    xml_close(out, "TagSet");
    xml_close(out, "Tagging");
}

bool tagging_find(const struct tag_set *set, struct str key, struct str *value)
{
    for (size_t i = 0; i < set->count; i++)
        if (str_eq(set->tags[i].key, key)) {
            *value = set->tags[i].value;
            return true;
        }
    return false;
}

/* The buffer has room for the tags of any object: 10 tags of 384 characters, at most 4 bytes for
 * each character in UTF-8, and 3 characters (%XX) for each byte, are 46 KB. */
struct str tagging_text(struct arena *a, const struct tag_set *set)
{
    struct buf text = BUF_INIT(256 * KIB);

    tagging_encode(&text, set);
    struct str kept = arena_str(a, buf_str(&text));
    buf_release(&text);
    return kept;
}
