/* Names of shards are neither opened, made, removed nor listed by the calls of object/overlay.h;
 * and a fence ends the use of a bucket that was opened before. */
#include "unit/object/local_lab.h"

#include "object/generation.h"
#include "object/overlay.h"

static const char *const walls_parts[] = {
    "box-weir-abcdefgh2345-map", "box-weir-abcdefgh2345-ab2c-1", "box-weir-abcdefgh2345-ab2c-10"};

static void walls_make(struct storage *s, const char *name)
{
    struct bucket_info info = {.name = str_z(name), .owner = STR("owner")};
    struct err err = {0};

    CHECK_OK(s->ops->create_bucket(s, &info, &err));
}

/* Lists all buckets by pages of `limit`, and returns their names with blanks between them. */
static struct str walls_list(struct storage *s, struct arena *a, size_t limit)
{
    struct buf names = BUF_INIT(0);
    struct bucket_info *page = NULL;
    struct str after = STR_EMPTY;
    struct err err = {0};
    size_t count = limit;

    while (count == limit) {
        CHECK_OK(storage_list_buckets(s, a, STR("owner"), after, limit, &page, &count, &err));
        CHECK(count <= limit);
        for (size_t i = 0; i < count; i++) {
            buf_appendf(&names, "%s" STR_FMT, names.len ? " " : "", STR_ARG(page[i].name));
            after = page[i].name;
        }
    }
    struct str out = arena_str(a, buf_str(&names));
    buf_release(&names);
    return out;
}

TEST(shard_walls, shards_are_in_no_listing_and_pages_stay_full)
{
    static const char *const plain[] = {"aaa", "box", "box-weir", "zzz"};
    struct local_lab l;
    struct arena a = ARENA_INIT(0);

    local_lab_open(&l, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(walls_parts); i++)
        walls_make(l.lab.storage, walls_parts[i]);
    CHECK_STR(walls_list(l.lab.storage, &a, 2), STR(""));
    for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
        walls_make(l.lab.storage, plain[i]);
    for (size_t limit = 1; limit < 9; limit++)
        CHECK_STR(walls_list(l.lab.storage, &a, limit), STR("aaa box box-weir zzz"));
    arena_release(&a);
    local_lab_close(&l);
}

TEST(shard_walls, shards_are_not_opened_made_or_removed)
{
    struct local_lab l;
    struct bucket *b = NULL;
    struct err err = {0};

    local_lab_open(&l, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(walls_parts); i++) {
        struct bucket_info info = {.name = str_z(walls_parts[i]), .owner = STR("owner")};
        for (int there = 0; there < 2; there++) {
            CHECK_ERR(storage_open_bucket(&b, l.lab.storage, STR("owner"), info.name, &err),
                      ERR_NO_BUCKET);
            CHECK_ERR(storage_remove_bucket(l.lab.storage, STR("owner"), info.name, &err),
                      ERR_NO_BUCKET);
            CHECK_ERR(storage_create_bucket(l.lab.storage, &info, &err), ERR_INVALID);
            if (!there)
                walls_make(l.lab.storage, walls_parts[i]);
        }
    }
    local_lab_close(&l);
}

/* --- fences --- */

/* Makes each call of the bucket, and checks that it fails with this code; 0: it does not fail. */
static void fence_expect(struct bucket *b, int want)
{
    struct arena a = ARENA_INIT(0);
    struct list_options everything = {.limit = 10};
    struct put_options put = {0};
    struct put_result made = {0};
    struct get_result got = {0};
    struct list_result list = {0};
    struct upload_list uploads = {0};
    struct remove_result removed = {0};
    struct bucket_info info;
    struct str id = STR_EMPTY;
    struct str_reader body;
    struct err err = {0};

    str_reader_init(&body, STR("x"));
    CHECK_INT(b->ops->put(b, &a, STR("k"), &body.reader, 1, &put, &made, &err), want);
    CHECK_INT(b->ops->head(b, &a, STR("none"), STR_EMPTY, NULL, &got, &err),
              want ? want : ERR_NOT_FOUND);
    CHECK_INT(b->ops->list(b, &a, &everything, &list, &err), want);
    CHECK_INT(b->ops->list_versions(b, &a, &everything, &list, &err), want);
    CHECK_INT(b->ops->list_uploads(b, &a, &everything, &uploads, &err), want);
    CHECK_INT(b->ops->upload_begin(b, &a, STR("u"), &put.meta, &id, &err), want);
    CHECK_INT(b->ops->remove(b, &a, STR("k"), &(struct remove_options){0}, &removed, &err), want);
    CHECK_INT(b->ops->info(b, &a, &info, &err), want);
    CHECK_INT(b->ops->set_versions(b, true, &err), want);
    arena_release(&a);
}

TEST(shard_fence, ends_the_use_of_the_bucket_as_it_was_opened_before)
{
    struct local_lab l;
    struct bucket *before, *other, *after = NULL;
    struct err err = {0};

    local_lab_open(&l, NULL);
    before = lab_bucket(l.lab.storage, "box");
    other = lab_bucket(l.lab.storage, "other");
    fence_expect(before, 0);
    uint64_t generation = generation_get(l.lab.storage->generations, STR("box"));
    local_fence(l.lab.storage, STR("box"));
    CHECK(generation_get(l.lab.storage->generations, STR("box")) != generation);
    fence_expect(before, ERR_BUSY);
    fence_expect(other, 0);
    CHECK_OK(l.lab.storage->ops->open_bucket(&after, l.lab.storage, STR_EMPTY, STR("box"), &err));
    fence_expect(after, 0);
    local_fence(l.lab.storage, STR("other"));
    fence_expect(before, ERR_BUSY);
    fence_expect(after, 0);
    fence_expect(other, ERR_BUSY);
    before->ops->unref(before);
    other->ops->unref(other);
    after->ops->unref(after);
    local_lab_close(&l);
}
