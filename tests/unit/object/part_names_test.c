/* Names that are reserved for the parts of sharded buckets. */
#include "object/part_names.h"
#include "unit/test.h"

TEST(part_names, maps_and_shards_are_parts)
{
    static const char *const parts[] = {
        "photos-weir-abcdefgh2345-map",
        "photos-weir-abcdefgh2345-x7yz-1",
        "photos-weir-abcdefgh2345-2222-999999",
        "a-weir-b-weir-zzzzzzzzzzzz-map",
        "-weir-abcdefgh2345-map",
        "map-weir-abcdefgh2345-aaaa-10",
    };

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        CHECK(bucket_name_is_part(str_z(parts[i])));
}

TEST(part_names, names_that_only_look_alike_are_not_reserved)
{
    static const char *const others[] = {
        "",
        "map",
        "-map",
        "1",
        "photos",
        "photos-weir",
        "photos-weir-abcdefgh2345",
        "photos-weir-abcdefgh2345-mapp",
        "photos-weir-abcdefgh234-map",
        "photos-weir-abcdefgh23456-map",
        "photos-weir-Abcdefgh2345-map",
        "photos-weir-abcdefgh2341-map",
        "photos-weir-abcdefgh2348-map",
        "photos.weir.abcdefgh2345.map",
        "photosweir-abcdefgh2345-map",
        "photos-weir-abcdefgh2345-x7yz-0",
        "photos-weir-abcdefgh2345-x7yz-01",
        "photos-weir-abcdefgh2345-x7yz-1000000",
        "photos-weir-abcdefgh2345-x7yz-",
        "photos-weir-abcdefgh2345-x7y-1",
        "photos-weir-abcdefgh2345-x7yzz-1",
        "photos-weir-abcdefgh2345-x7y1-1",
        "photos-weir-abcdefgh2345-1",
        "photos-weir-abcdefgh2345-x7yz-1-map",
        "photos-weir-abcdefgh2345-x7yz-a",
    };

    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        CHECK(!bucket_name_is_part(str_z(others[i])));
}
