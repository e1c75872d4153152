/* Names of buckets that are reserved for sharding. */
#include "object/part_names.h"

enum { PART_HASH_LEN = 12, PART_MARK_LEN = 4, PART_DIGITS_MAX = 6 };

/* Removes the last `len` bytes from *rest. False: they are not all of the base32 alphabet
 * a-z2-7. */
static bool part_cut_base32(struct str *rest, size_t len)
{
    if (rest->len < len)
        return false;
    for (size_t i = rest->len - len; i < rest->len; i++) {
        char c = rest->p[i];
        if ((c < 'a' || c > 'z') && (c < '2' || c > '7'))
            return false;
    }
    rest->len -= len;
    return true;
}

static bool part_cut(struct str *rest, struct str suffix)
{
    if (!str_ends(*rest, suffix))
        return false;
    rest->len -= suffix.len;
    return true;
}

/* Removes a number at the end of *rest. False: there is none between 1 and 999999 without leading
 * zeros. */
static bool part_cut_number(struct str *rest)
{
    size_t digits = 0;

    while (digits < rest->len && rest->p[rest->len - 1 - digits] >= '0' &&
           rest->p[rest->len - 1 - digits] <= '9')
        digits++;
    if (digits == 0 || digits > PART_DIGITS_MAX || rest->p[rest->len - digits] == '0')
        return false;
    rest->len -= digits;
    return true;
}

bool bucket_name_is_part(struct str name)
{
    struct str rest = name;

    if (!part_cut(&rest, STR("-map"))) {
        if (!part_cut_number(&rest) || !part_cut(&rest, STR("-")) ||
            !part_cut_base32(&rest, PART_MARK_LEN))
            return false;
        if (!part_cut(&rest, STR("-")))
            return false;
    }
    return part_cut_base32(&rest, PART_HASH_LEN) && part_cut(&rest, STR("-weir-"));
}
