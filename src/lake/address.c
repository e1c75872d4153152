/* Addresses of objects' bodies. */
#include "lake/address.h"

#include "lake/lake_int.h"
#include "lake/names.h"

#include "base/clock.h"
#include "base/ids.h"

enum { HOUR_BITS = 40, HOUR_DIGITS = HOUR_BITS / 5 };

struct str lake_address_folder(struct arena *a, int64_t time_ms)
{
    /* sorted by their byte values */
    static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    uint64_t left = (UINT64_C(1) << HOUR_BITS) - (uint64_t)(time_ms / MS_PER_HOUR);
    char hour[HOUR_DIGITS + 1] = {0};

    for (int i = HOUR_DIGITS - 1; i >= 0; i--, left >>= 5)
        hour[i] = digits[left & 31];
    return arena_fmt(a, LAKE_BODIES "/%s/", hour);
}

struct str lake_new_address(struct arena *a)
{
    struct str folder = lake_address_folder(a, clock_wall_ms());
    char id[ID_TIME_LEN + 1];

    id_time(id);
    return arena_fmt(a, STR_FMT "%s", STR_ARG(folder), id);
}

bool lake_address_is_relative(const struct lake_entry *e)
{
    return e->address_type == LAKE_RELATIVE ||
           (e->address_type != LAKE_FULL && str_find(e->address, STR("://")) < 0);
}

int lake_address_open(struct object_place *out, struct lake *l, struct arena *a,
                      const struct lake_repo *r, const struct lake_entry *e, enum place_use use,
                      struct err *err)
{
    struct str rest = str_skip(e->address, sizeof("s3://") - 1), bucket, key;

    if (lake_address_is_relative(e))
        return lake_place_open_below(out, l, a, r, e->address, use, err);
    if (!str_starts(e->address, STR("s3://")) || !str_cut(rest, '/', &bucket, &key) ||
        !bucket.len || !key.len)
        return err_set(err, ERR_CORRUPT, "'" STR_FMT "' is not the address of an object",
                       STR_ARG(str_head(e->address, 255)));
    /* the owner's right to read the object must be looked up, which may wait */
    if (use == PLACE_READ_NOW)
        return ERR_AGAIN;
    return lake_place_open(out, l, a, r->owner, bucket, key, use, err);
}
