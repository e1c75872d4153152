/* S3's names of checksums and of headers that are kept with an object. */
#include "object/names.h"

const struct checksum_name checksum_names[DIGEST_KINDS] = {
    [DIGEST_SHA1] = {STR("x-amz-checksum-sha1"), "ChecksumSHA1", "SHA1"},
    [DIGEST_SHA256] = {STR("x-amz-checksum-sha256"), "ChecksumSHA256", "SHA256"},
    [DIGEST_CRC32] = {STR("x-amz-checksum-crc32"), "ChecksumCRC32", "CRC32"},
    [DIGEST_CRC32C] = {STR("x-amz-checksum-crc32c"), "ChecksumCRC32C", "CRC32C"},
    [DIGEST_CRC64NVME] = {STR("x-amz-checksum-crc64nvme"), "ChecksumCRC64NVME", "CRC64NVME"},
};

static const char *const kept[] = {
    "content-type",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "expires",
    "x-amz-website-redirect-location",
};

bool checksum_by_header(struct str name, enum digest_kind *kind)
{
    for (int i = 0; i < DIGEST_KINDS; i++)
        if (checksum_names[i].header.len && str_ieq(name, checksum_names[i].header)) {
            *kind = (enum digest_kind)i;
            return true;
        }
    return false;
}

bool checksum_by_algorithm(struct str name, enum digest_kind *kind)
{
    for (int i = 0; i < DIGEST_KINDS; i++)
        if (checksum_names[i].algorithm && str_ieq(name, str_z(checksum_names[i].algorithm))) {
            *kind = (enum digest_kind)i;
            return true;
        }
    return false;
}

bool header_is_user_meta(struct str name)
{
    return name.len > 11 && str_ieq(str_head(name, 11), STR("x-amz-meta-"));
}

bool header_is_kept(struct str name)
{
    for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
        if (str_ieq(name, str_z(kept[i])))
            return true;
    return header_is_user_meta(name);
}
