/* Checks names of buckets and keys. The rules are those of the chapter on general purpose buckets
 * in S3's user guide. */
#include "s3/gateway/bucket_name.h"

#include "object/part_names.h"
#include "route/space.h"

static const char *const kept_prefixes[] = {"xn--", "sthree-", "amzn-s3-demo-"};
static const char *const kept_suffixes[] = {"-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3"};

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_ipv4(struct str name)
{
    size_t parts = 0;
    bool more = true;

    while (more) {
        struct str part;
        uint64_t number;
        more = str_cut(name, '.', &part, &name);
        if (part.len > 3 || str_u64(part, &number) < 0)
            return false;
        parts++;
    }
    return parts == 4;
}

static bool is_kept(struct str name)
{
    for (size_t i = 0; i < ARRAY_SIZE(kept_prefixes); i++)
        if (str_starts(name, str_z(kept_prefixes[i])))
            return true;
    for (size_t i = 0; i < ARRAY_SIZE(kept_suffixes); i++)
        if (str_ends(name, str_z(kept_suffixes[i])))
            return true;
    return false;
}

static bool bucket_name_has_good_characters(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.p[i];
        if (!is_alnum(c) && c != '.' && c != '-')
            return false;
        if (c == '.' && i > 0 && !is_alnum(name.p[i - 1]))
            return false;
        if (c == '-' && i > 0 && name.p[i - 1] == '.')
            return false;
    }
    return is_alnum(name.p[0]) && is_alnum(name.p[name.len - 1]);
}

int bucket_name_check(struct str name, struct err *err)
{
    if (name.len < 3 || name.len > 63 || !bucket_name_has_good_characters(name) || is_ipv4(name) ||
        is_kept(name) || bucket_name_is_part(name))
        return s3_fail(err, S3_INVALID_BUCKET_NAME);
    return 0;
}

bool bucket_name_fits(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.p[i];
        if (!is_alnum(c) && !(c >= 'A' && c <= 'Z') && c != '.' && c != '-' && c != '_')
            return false;
    }
    return name.len > 0 && name.len <= S3_BUCKET_MAX && !str_eq(name, STR(".")) &&
           !str_eq(name, STR(".."));
}

int bucket_name_read(struct str *out, struct str text, struct err *err)
{
    if (str_starts(text, STR(":")))
        text = str_skip(text, 1);
    if (!bucket_name_fits(text))
        return s3_fail(err, S3_INVALID_BUCKET_NAME);
    *out = text;
    return 0;
}

int object_key_check(struct str key, struct routes *routes, struct str bucket, struct err *err)
{
    const struct bucket_space *space =
        key.len > S3_KEY_MAX && routes ? routes_space_of(routes, bucket) : NULL;

    if (key.len == 0)
        return err_set(err, S3_INVALID_ARGUMENT, "The object key is empty");
    if (key.len > (space ? space->key_max : S3_KEY_MAX))
        return s3_fail(err, S3_KEY_TOO_LONG_ERROR);
    if (!str_is_utf8(key) || str_chr(key, '\0') >= 0)
        return s3_fail(err, S3_INVALID_URI);
    return 0;
}
