/* The tables of place calls: folders, and storages that have no table. */
#include "unit/object/shard_lab.h"
#include "unit/shard/place_conformance.h"

static void with_storage(void (*fn)(struct place_lab *))
{
    struct local_lab l;

    local_lab_open(&l, NULL);
    fn(&(struct place_lab){
        .storage = l.lab.storage, .ops = place_of(l.lab.storage), .describe = shard_lab_describe});
    local_lab_expect_whole(&l);
    local_lab_close(&l);
}

#define X(name)                                                                                    \
    TEST(place_local, name)                                                                        \
    {                                                                                              \
        with_storage(conform_##name);                                                              \
    }
PLACE_CONFORMANCE(X)
#undef X

TEST(place, a_storage_that_is_no_folder_has_no_table)
{
    static const struct storage_ops far_ops = {.can = STORAGE_FORWARDS | STORAGE_CREDENTIALS};
    struct storage far = {.ops = &far_ops, .name = STR("far")};
    struct bucket b = {.name = STR("box"), .storage = &far};
    uint64_t id = 7;
    struct err err = {0};

    CHECK(place_of(&far) == NULL);
    CHECK(place_of(NULL) == NULL);
    CHECK_ERR(place_id(&b, &id, &err), ERR_UNSUPPORTED);
    CHECK_INT(id, 7);
}

TEST(place, hiding_takes_a_bucket_of_any_kind)
{
    static const struct bucket_ops plain_ops = {0};
    struct bucket without_tap = {.ops = &plain_ops, .name = STR("box")};
    struct local_lab l;

    place_hide(&without_tap);
    local_lab_open(&l, NULL);
    struct bucket *b = lab_bucket(l.lab.storage, "box");
    CHECK(!local_bucket_of(b)->untapped);
    place_hide(b);
    CHECK(local_bucket_of(b)->untapped);
    b->ops->unref(b);
    local_lab_close(&l);
}
