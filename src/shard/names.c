/* Names of the buckets that sharding makes. */
#include "shard/names.h"
#include "base/ids.h"
#include "object/part_names.h"
#include "sign/hmac.h"

enum {
    NAME_MAX_LEN = 63,
    MAP_STEM_MAX = 41,   /* so that with "-weir-<12>-map" the name has at most 63 characters */
    SHARD_STEM_MAX = 33, /* the same with "-weir-<12>-<4>-<6 digits>" */
};

static const char base32[] = "abcdefghijklmnopqrstuvwxyz234567";

/* Writes the first SHARD_HASH_LEN characters of the hash of the bucket's name in base32: five bits
 * a character, the highest bits first. */
static void names_hash(struct str bucket, char out[SHARD_HASH_LEN])
{
    unsigned char hash[SHA256_LEN];
    uint64_t bits = 0;

    sha256(bucket, hash);
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | hash[i];
    for (int i = 0; i < SHARD_HASH_LEN; i++)
        out[i] = base32[bits >> (59 - 5 * i) & 31];
}

static bool names_is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Returns the readable first part of the name, made of the bucket's name. It begins and ends with a
 * letter or a digit, unless it is empty. */
static struct str names_stem(struct arena *a, struct str bucket, size_t max)
{
    struct str lower = arena_lower(a, str_head(bucket, max));
    char *p = arena_z(a, lower);

    if (!p)
        return STR_EMPTY;
    for (size_t i = 0; i < lower.len; i++)
        if (!names_is_word(p[i]))
            p[i] = '-';
    struct str stem = str_n(p, lower.len);
    while (stem.len && stem.p[stem.len - 1] == '-')
        stem.len--;
    while (stem.len && stem.p[0] == '-')
        stem = str_skip(stem, 1);
    return stem.len ? stem : STR("bucket");
}

struct str shard_map_name(struct arena *a, struct str bucket)
{
    struct str stem = names_stem(a, bucket, MAP_STEM_MAX);
    char hash[SHARD_HASH_LEN];

    names_hash(bucket, hash);
    return arena_fmt(a, STR_FMT "-weir-%.*s-map", STR_ARG(stem), SHARD_HASH_LEN, hash);
}

struct str shard_bucket_name(struct arena *a, struct str bucket, struct str mark, uint32_t number)
{
    struct str stem = names_stem(a, bucket, SHARD_STEM_MAX);
    char hash[SHARD_HASH_LEN];

    BUG_ON(mark.len != SHARD_MARK_LEN || number == 0 || number > SHARD_NUMBER_MAX);
    names_hash(bucket, hash);
    return arena_fmt(a, STR_FMT "-weir-%.*s-" STR_FMT "-%u", STR_ARG(stem), SHARD_HASH_LEN, hash,
                     STR_ARG(mark), number);
}

struct str shard_new_mark(struct arena *a)
{
    unsigned char random[SHARD_MARK_LEN];
    char mark[SHARD_MARK_LEN];

    random_bytes(random, sizeof(random));
    for (int i = 0; i < SHARD_MARK_LEN; i++)
        mark[i] = base32[random[i] & 31];
    return arena_str(a, str_n(mark, SHARD_MARK_LEN));
}

bool shard_name_parse(struct str name, struct str bucket, struct str *mark, uint32_t *number)
{
    char hash[SHARD_HASH_LEN];
    size_t digits = 0;
    uint64_t n;

    if (name.len > NAME_MAX_LEN || !bucket_name_is_part(name))
        return false;
    while (name.p[name.len - 1 - digits] >= '0' && name.p[name.len - 1 - digits] <= '9')
        digits++;
    if (digits == 0) /* the name of a map bucket has no number */
        return false;
    struct str tail = str_skip(name, name.len - digits - 1 - SHARD_MARK_LEN - 1 - SHARD_HASH_LEN);
    names_hash(bucket, hash);
    if (!str_starts(tail, str_n(hash, SHARD_HASH_LEN)))
        return false;
    if (str_u64(str_skip(name, name.len - digits), &n) < 0)
        return false;
    *mark = str_n(tail.p + SHARD_HASH_LEN + 1, SHARD_MARK_LEN);
    *number = (uint32_t)n;
    return true;
}
