/* Maps for tests. */
#include "unit/shard/map_lab.h"
#include "shard/names.h"

struct shard_map *map_lab_first(void)
{
    struct shard_map *m =
        map_first(LAB_HOME, LAB_BUCKET, STR("owner"), STR("house"), LAB_MARK, 1000);

    m->id = 7;
    return m;
}

void map_lab_add(struct shard_map *m, uint32_t number)
{
    struct arena a = {0};

    map_add_place(m, number, LAB_HOME, shard_bucket_name(&a, LAB_BUCKET, LAB_MARK, number));
    arena_release(&a);
}

void map_lab_next(struct shard_map **m)
{
    struct shard_map *next = map_draft(*m);

    map_unref(*m);
    *m = next;
}

uint32_t map_lab_owner(const struct shard_map *m, struct str key)
{
    return map_place_at(m, map_segment_of(m, key))->number;
}
