/* Decides which bytes of an old bundle the storage copies into a new one (part copies).
 *
 *     old   │ header │ entries ······················································ │ trailer │
 *                    │ lead │ stretch │ stretch │ … │ stretch │ tail, less than a lead │
 *     new   │ new header + lead │ copied │ copied │ … │ copied │ tail + new entries + trailer     │
 *             sent                                               sent
 *
 * The first part of the new bundle consists of the header and the lead. The next append cuts the
 * bundle at the same places, so each part between stays as it is and is shared as a whole. */
#include "archive/bundle_int.h"

/* The end of the old part that has the byte `at`. */
static uint64_t plan_part_end(const struct upload_part *parts, size_t count, uint64_t at)
{
    uint64_t end = 0;

    for (size_t i = 0; i < count; i++) {
        end += parts[i].size;
        if (end > at)
            return end;
    }
    return UINT64_MAX;
}

/* The end of the stretch that begins at `at`. */
static uint64_t plan_stretch_end(const struct bundle_sizes *z, uint64_t at, uint64_t part_end,
                                 uint64_t end)
{
    uint64_t most = part_end < end ? part_end : end;

    if (most - at > z->copy)
        return most - at - z->copy < z->lead ? at + z->copy - z->lead : at + z->copy;
    if (most - at >= z->lead || most == end)
        return most;
    /* A range that is too short for a part is extended past the end of the old part. */
    return end - at < z->lead ? end : at + z->lead;
}

void bundle_plan_make(struct bundle_plan *out, const struct bundle_sizes *z, uint64_t first,
                      uint64_t end, const struct upload_part *parts, size_t count)
{
    uint64_t at = first + z->lead, part_end;

    *out = (struct bundle_plan){0};
    if (at >= end)
        return;
    /* The lead ends within an old part. If the rest of that part is too small to be a part, the
     * lead includes the rest too. */
    part_end = plan_part_end(parts, count, at - 1);
    if (part_end < end && part_end - at < z->lead)
        at = part_end;
    out->lead = at - first;
    while (at < end) {
        uint64_t to = plan_stretch_end(z, at, plan_part_end(parts, count, at), end);
        if (to - at < z->lead)
            return;
        vec_push(&out->copies, ((struct bundle_stretch){at, to - at}));
        at = to;
    }
}

void bundle_plan_release(struct bundle_plan *p)
{
    vec_release(&p->copies);
    *p = (struct bundle_plan){0};
}
