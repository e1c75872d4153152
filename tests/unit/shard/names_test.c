/* Names of shards and of map buckets. */
#include "shard/names.h"
#include "object/part_names.h"
#include "unit/test.h"

static const char *const buckets[] = {
    "a23",
    "photos",
    "My.Old_Bucket",
    "a.b.c.",
    "...",
    "1234567890",
    "sixty-three-characters-are-the-most-that-a-bucket-may-have-in-it",
    "thirty-two-characters-and-a-dot.x",
    "name-weir-abcdefgh2345-map-not",
};

TEST(shard_names, every_name_is_a_bucket_name_and_reserved)
{
    struct arena a = {0};

    for (size_t i = 0; i < ARRAY_SIZE(buckets); i++) {
        struct str made[] = {
            shard_map_name(&a, str_z(buckets[i])),
            shard_bucket_name(&a, str_z(buckets[i]), STR("ab27"), 1),
            shard_bucket_name(&a, str_z(buckets[i]), STR("zzzz"), SHARD_NUMBER_MAX),
        };
        for (size_t k = 0; k < ARRAY_SIZE(made); k++) {
            CHECK(made[k].len >= 3 && made[k].len <= 63);
            CHECK(bucket_name_is_part(made[k]));
            CHECK(made[k].p[0] != '-');
            for (size_t c = 0; c < made[k].len; c++)
                CHECK(strchr("abcdefghijklmnopqrstuvwxyz0123456789-", made[k].p[c]));
        }
    }
    arena_release(&a);
}

TEST(shard_names, names_of_shards_are_read_back_for_their_own_bucket_alone)
{
    struct arena a = {0};
    struct str mark;
    uint32_t number;

    for (size_t i = 0; i < ARRAY_SIZE(buckets); i++) {
        struct str name = shard_bucket_name(&a, str_z(buckets[i]), STR("q2w3"), 4711);
        for (size_t k = 0; k < ARRAY_SIZE(buckets); k++)
            CHECK(shard_name_parse(name, str_z(buckets[k]), &mark, &number) == (i == k));
        CHECK(shard_name_parse(name, str_z(buckets[i]), &mark, &number));
        CHECK_STR(mark, STR("q2w3"));
        CHECK_INT(number, 4711);
        CHECK(!shard_name_parse(shard_map_name(&a, str_z(buckets[i])), str_z(buckets[i]), &mark,
                                &number));
    }
    CHECK(!shard_name_parse(STR(""), STR("photos"), &mark, &number));
    CHECK(!shard_name_parse(STR("photos"), STR("photos"), &mark, &number));
    arena_release(&a);
}

TEST(shard_names, the_names_of_one_bucket_are_always_the_same)
{
    struct arena a = {0};

    CHECK_STR(shard_map_name(&a, STR("photos")), STR("photos-weir-qstnvze46beb-map"));
    CHECK_STR(shard_bucket_name(&a, STR("Photos.2024"), STR("ab27"), 12),
              STR("photos-2024-weir-fmlkbxoo6a43-ab27-12"));
    arena_release(&a);
}

TEST(shard_names, marks_differ)
{
    struct arena a = {0};
    bool differ = false;
    struct str first = shard_new_mark(&a);

    for (int i = 0; i < 100; i++) {
        struct str mark = shard_new_mark(&a);
        struct str name = shard_bucket_name(&a, STR("photos"), mark, 1);
        CHECK(bucket_name_is_part(name));
        differ |= !str_eq(mark, first);
    }
    CHECK(differ);
    arena_release(&a);
}
