/* Finds the table of calls for a storage. */
#include "shard/place.h"

#include "object/local/local.h"

const struct place_ops *place_of(const struct storage *s)
{
    return storage_can(s, STORAGE_FOLDER) ? &place_local_ops : NULL;
}

int place_id(struct bucket *b, uint64_t *out, struct err *err)
{
    const struct place_ops *ops = place_of(b->storage);

    return ops ? ops->id(b, out, err)
               : err_set(err, ERR_UNSUPPORTED,
                         "the bucket " STR_FMT " is not in a folder of this weir",
                         STR_ARG(b->name));
}

void place_hide(struct bucket *b)
{
    local_untap(b);
}
