/* Writes the parts of an object for GetObjectAttributes. */
#include "s3/gateway/gateway_int.h"

static int header_number(struct call *c, const char *name, uint64_t fallback, uint64_t *out,
                         struct err *err)
{
    struct str text = http_header(c->head, name);

    *out = fallback;
    if (text.len && str_u64(text, out) < 0)
        return err_set(err, S3_INVALID_ARGUMENT, "%s is not a number", name);
    return 0;
}

int xml_object_parts(struct call *c, struct buf *xml, const struct object_info *info,
                     struct err *err)
{
    struct bucket *b = c->target.bucket;
    struct part_list list = {0};
    uint64_t limit, marker;
    int code = header_number(c, "x-amz-max-parts", OBJECT_LIST_MAX, &limit, err);

    if (code == 0)
        code = header_number(c, "x-amz-part-number-marker", 0, &marker, err);
    if (code < 0)
        return code;
    limit = limit < OBJECT_LIST_MAX ? limit : OBJECT_LIST_MAX;
    marker = marker < OBJECT_MAX_PARTS ? marker : OBJECT_MAX_PARTS;
    if (b->ops->object_parts)
        code = b->ops->object_parts(b, c->a, info, (uint32_t)marker, (size_t)limit, &list, err);
    if (code < 0)
        return code;
    xml_open(xml, "ObjectParts");
    xml_bool(xml, "IsTruncated", list.more);
    xml_element_u64(xml, "MaxParts", limit);
    if (list.more && list.count)
        xml_element_u64(xml, "NextPartNumberMarker", list.parts[list.count - 1].number);
    xml_element_u64(xml, "PartNumberMarker", marker);
    for (size_t i = 0; i < list.count; i++) {
        xml_open(xml, "Part");
        xml_checksum(xml, &list.parts[i].checksum);
        xml_element_u64(xml, "PartNumber", list.parts[i].number);
        xml_element_u64(xml, "Size", list.parts[i].size);
        xml_close(xml, "Part");
    }
    xml_element_u64(xml, "PartsCount", info->part_count);
    xml_close(xml, "ObjectParts");
    return 0;
}
