/* Checks the object that an entry names by its address: whether it is the object that the entry
 * describes, and whether the owner of the repository may read it (docs/security.md, "Repositories
 * of the lake"). */
#include "lake/address.h"
#include "lake/lake_int.h"
#include "lake/right.h"

static int address_gone(const struct lake_entry *e, const char *why, struct err *err)
{
    return err_set(err, ERR_GONE, "the bytes at " STR_FMT " %s", STR_ARG(str_head(e->address, 255)),
                   why);
}

/* Checks that the repository's owner may read the object. */
static int address_check_right(const struct object_place *p, const struct lake_entry *e,
                               const struct object_info *info, struct err *err)
{
    bool may = false;
    int code = lake_right_read(p, info, &may, err);

    return code < 0 || may ? code
                           : address_gone(e, "may not be read by the owner of the repository", err);
}

/* P6 and P7 of docs/security.md are kept here. */
int lake_address_check(const struct object_place *p, const struct lake_entry *e,
                       const struct object_info *info, struct err *err)
{
    bool outside = !lake_address_is_relative(e);
    int code = outside ? address_check_right(p, e, info, err) : 0;

    if (code < 0)
        return code;
    if (info->size != e->size || (outside && e->etag.len && !str_eq(e->etag, info->etag)))
        return address_gone(e, "have changed", err);
    return 0;
}
