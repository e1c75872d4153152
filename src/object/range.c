/* Reads the header Range of HTTP. */
#include "object/range.h"

bool object_range_parse(struct str text, struct object_range *out)
{
    struct str first, last;
    uint64_t from = 0, to = UINT64_MAX;

    if (!str_starts(text, STR("bytes=")) ||
        !str_cut(str_trim(str_skip(text, 6)), '-', &first, &last))
        return false;
    if ((first.len && str_u64(first, &from) < 0) || (last.len && str_u64(last, &to) < 0) ||
        (!first.len && !last.len))
        return false;
    if (!first.len)
        *out = (struct object_range){.kind = RANGE_SUFFIX, .first = to};
    else
        *out = (struct object_range){.kind = RANGE_FROM_TO, .first = from, .last = to};
    return first.len == 0 || from <= to;
}
