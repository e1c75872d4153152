/* The fakes of a space and of an overlay conform, as every storage must. */
#include "unit/object/fake_bucket.h"
#include "unit/object/fake_overlay.h"
#include "unit/object/local_lab.h"

#include <stdio.h>

/* --- a space --- */

static void with_space(void (*fn)(struct lab *))
{
    struct local_lab l;
    struct fake_space s;

    local_lab_open(&l, NULL);
    fake_space_open(&s, l.lab.storage);
    struct lab lab = {.storage = &s.storage, .part_min = l.lab.part_min};
    fn(&lab);
    fake_space_close(&s);
    local_lab_expect_whole(&l);
    local_lab_close(&l);
}

#define X(name)                                                                                    \
    TEST(space_bucket, name)                                                                       \
    {                                                                                              \
        with_space(conform_##name);                                                                \
    }
BUCKET_CONFORMANCE(X)
#undef X

TEST(fake_space, has_the_names_that_were_made_in_it)
{
    struct local_lab l;
    struct fake_space s;
    struct bucket *b;
    struct err err = {0};

    local_lab_open(&l, NULL);
    fake_space_open(&s, l.lab.storage);
    CHECK(!s.space.has(s.space.ctx, STR("repo")));
    b = lab_bucket(s.space.storage, "repo");
    CHECK(s.space.has(s.space.ctx, STR("repo")));
    CHECK(!b->storage);
    CHECK(bucket_can(b, STORAGE_KEEPS_META));
    CHECK(!bucket_can(b, STORAGE_TELLS_CHANGES));
    b->ops->unref(b);
    CHECK_OK(storage_remove_bucket(s.space.storage, STR("owner"), STR("repo"), &err));
    CHECK(!s.space.has(s.space.ctx, STR("repo")));
    fake_space_close(&s);
    local_lab_close(&l);
}

/* --- an overlay --- */

struct overlay_lab {
    struct local_lab l; /* the home */
    struct storage *second;
    struct fake_overlay o;
};

static void overlay_lab_open(struct overlay_lab *l, const char *bound)
{
    char folder[128];
    struct local_options o = {
        .name = "second", .folder = folder, .id = 8, .part_min = 1000, .reserve_bytes = 1};
    struct err err = {0};

    local_lab_open(&l->l, NULL);
    snprintf(folder, sizeof(folder), "%s/second", test_dir());
    o.db = l->l.db;
    CHECK_OK(local_open(&l->second, &o, &err));
    fake_overlay_open(&l->o, l->l.lab.storage, l->second, bound);
    atomic_store(&l->l.lab.storage->overlay, &l->o.overlay);
    atomic_store(&l->second->overlay, &l->o.overlay);
}

static void overlay_lab_close(struct overlay_lab *l)
{
    fake_overlay_close(&l->o);
    l->second->ops->close(l->second);
    local_lab_close(&l->l);
}

static void with_overlay(void (*fn)(struct lab *))
{
    struct overlay_lab l;

    overlay_lab_open(&l, "d");
    fn(&l.l.lab);
    overlay_lab_close(&l);
}

#define X(name)                                                                                    \
    TEST(overlay_bucket, name)                                                                     \
    {                                                                                              \
        with_overlay(conform_##name);                                                              \
    }
BUCKET_CONFORMANCE(X)
#undef X

TEST(fake_overlay, keys_are_on_two_storages_and_list_as_one)
{
    struct overlay_lab l;
    struct bucket *b, *far = NULL;
    struct arena a = ARENA_INIT(0);
    struct list_options folded = {.delimiter = STR("/")};
    struct err err = {0};

    overlay_lab_open(&l, "m");
    b = lab_bucket(l.l.lab.storage, "box");
    CHECK(!b->storage);
    CHECK(bucket_can(b, STORAGE_TELLS_CHANGES));
    lab_put(b, &a, "a", STR("near"));
    lab_put(b, &a, "l/1", STR("near"));
    lab_put(b, &a, "m/1", STR("far"));
    lab_put(b, &a, "z", STR("far"));
    lab_expect_list(b, &lab_everything, false, "a l/1 m/1 z");
    lab_expect_list(b, &folded, false, "a [l/] [m/] z");
    lab_expect(fake_bucket_part(b, STR("a")), "a", STR_EMPTY, STR("near"));
    CHECK(fake_bucket_part(b, STR("a"))->storage == l.l.lab.storage);
    CHECK(fake_bucket_part(b, STR("z"))->storage == l.second);
    b->ops->unref(b);
    CHECK_OK(l.second->ops->open_bucket(&far, l.second, STR("owner"), STR("box-far"), &err));
    lab_expect_list(far, &lab_everything, false, "m/1 z");
    far->ops->unref(far);
    arena_release(&a);
    overlay_lab_close(&l);
}

TEST(fake_overlay, parts_are_not_seen_and_plain_buckets_are_as_before)
{
    struct overlay_lab l;
    struct bucket_info part = {.name = STR("box-far"), .owner = STR("owner")}, *list;
    struct arena a = ARENA_INIT(0);
    struct bucket *b;
    struct err err = {0};
    size_t count;

    overlay_lab_open(&l, "m");
    b = lab_bucket(l.l.lab.storage, "box");
    b->ops->unref(b);
    b = lab_bucket(l.l.lab.storage, "plain");
    CHECK(b->storage == l.l.lab.storage);
    b->ops->unref(b);
    CHECK_ERR(storage_create_bucket(l.second, &part, &err), ERR_EXISTS);
    CHECK_OK(storage_list_buckets(l.second, &a, STR_EMPTY, STR_EMPTY, 10, &list, &count, &err));
    CHECK_INT(count, 0);
    CHECK_OK(
        storage_list_buckets(l.l.lab.storage, &a, STR_EMPTY, STR_EMPTY, 1, &list, &count, &err));
    CHECK_INT(count, 1);
    CHECK_STR(list[0].name, STR("box"));
    arena_release(&a);
    overlay_lab_close(&l);
}
