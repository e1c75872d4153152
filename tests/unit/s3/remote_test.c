/* A remote storage: the conformance suite of storages, against a gateway of this process. */
#include "object/remote/remote_int.h"
#include "unit/object/bucket_conformance.h"
#include "unit/s3/remote_lab.h"

static void with_storage(void (*fn)(struct lab *))
{
    struct remote_lab *l = remote_lab_start();
    struct lab lab = {
        .storage = remote_lab_storage(l), .part_min = REMOTE_LAB_PART_MIN, .wire = true};

    fn(&lab);
    remote_lab_stop(l);
}

#define X(name)                                                                                    \
    TEST(remote_bucket, name)                                                                      \
    {                                                                                              \
        with_storage(conform_##name);                                                              \
    }
BUCKET_CONFORMANCE(X)
#undef X

/* A body of which only its reader knows the end. */
static int put_unknown(struct bucket *b, struct arena *a, struct str body,
                       const struct put_options *o, struct put_result *out, struct err *err)
{
    struct str_reader r;

    str_reader_init(&r, body);
    return b->ops->put(b, a, STR("k"), &r.reader, UINT64_MAX, o, out, err);
}

static void expect_no_uploads(struct bucket *b)
{
    struct arena a = ARENA_INIT(0);
    struct upload_list uploads;
    struct err err = {0};

    CHECK_OK(b->ops->list_uploads(b, &a, &(struct list_options){.limit = 10}, &uploads, &err));
    CHECK_INT(uploads.count, 0);
    arena_release(&a);
}

static int refuse(void *ctx, struct object_meta *meta, struct err *err)
{
    (void)ctx;
    (void)meta;
    return err_set(err, ERR_INVALID, "BadDigest");
}

static void large_bodies_of_unknown_size(struct lab *lab)
{
    static const size_t sizes[] = {REMOTE_PIECE - 1, REMOTE_PIECE, REMOTE_PIECE + 1,
                                   2 * REMOTE_PIECE + 5};
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct put_options plain = {0}, refused = {.verify = refuse},
                       never = {.conditions.if_none_match = STR("*")};
    struct put_result out;
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct str body = lab_bytes(sizes[i], i);
        CHECK_OK(put_unknown(b, &a, body, &plain, &out, &err));
        CHECK_INT(out.size, sizes[i]);
        lab_expect(b, "k", STR_EMPTY, body);
        CHECK_ERR(put_unknown(b, &a, lab_bytes(sizes[i], 9), &never, &out, &err), ERR_PRECONDITION);
        CHECK_ERR(put_unknown(b, &a, lab_bytes(sizes[i], 9), &refused, &out, &err), ERR_INVALID);
        lab_expect(b, "k", STR_EMPTY, body);
        expect_no_uploads(b);
    }
    b->ops->unref(b);
    arena_release(&a);
}

TEST(remote_put, a_large_body_of_unknown_size_goes_as_parts)
{
    with_storage(large_bodies_of_unknown_size);
}

static void bodies_past_the_limit(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct remote *r = remote_bucket_of(b)->remote;
    struct arena a = ARENA_INIT(0);
    struct str body = lab_bytes(3 * 200 * KIB + 7, 1);
    struct put_options o = {.meta.tags = STR("a=1")};
    struct put_result out;
    struct get_result got;
    struct str_reader reader;
    struct err err = {0};

    r->put_max = 100 * KIB;
    r->part_size = 200 * KIB;
    str_reader_init(&reader, body);
    CHECK_OK(b->ops->put(b, &a, STR("k"), &reader.reader, body.len, &o, &out, &err));
    CHECK(str_ends(out.etag, STR("-4")));
    lab_expect(b, "k", STR_EMPTY, body);
    CHECK_OK(b->ops->head(b, &a, STR("k"), STR_EMPTY, NULL, &got, &err));
    CHECK_STR(got.info.meta.tags, STR("a=1"));
    CHECK_INT(got.info.part_count, 4);
    CHECK_ERR(b->ops->copy(b, &a, STR("k2"), b, &got.info, &o, &out, &err), ERR_UNSUPPORTED);
    str_reader_init(&reader, body);
    CHECK_ERR(b->ops->put(b, &a, STR("k"), &reader.reader, body.len + 1, &o, &out, &err),
              ERR_CLOSED);
    str_reader_init(&reader, body);
    CHECK_ERR(b->ops->put(b, &a, STR("k"), &reader.reader, body.len - 1, &o, &out, &err),
              ERR_INVALID);
    lab_expect(b, "k", STR_EMPTY, body);
    expect_no_uploads(b);
    b->ops->unref(b);
    arena_release(&a);
}

TEST(remote_put, an_object_past_the_limit_of_a_put_goes_as_parts)
{
    with_storage(bodies_past_the_limit);
}

static void names_of_all_kinds(struct lab *lab)
{
    static const char *const keys[] = {"a b+c%2Fd",    "..",       "a/../b",  "/x//y",
                                       "\xc3\xbc&=?#", "x<y>\"z'", "\x01\x7f"};
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct list_result out;
    struct put_options o = {0};
    struct get_result got;
    struct put_result put;
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        lab_put(b, &a, keys[i], str_z(keys[i]));
        lab_expect(b, keys[i], STR_EMPTY, str_z(keys[i]));
        CHECK_OK(b->ops->head(b, &a, str_z(keys[i]), STR_EMPTY, NULL, &got, &err));
        CHECK_OK(b->ops->copy(b, &a, STR("copy"), b, &got.info, &o, &put, &err));
        lab_expect(b, "copy", STR_EMPTY, str_z(keys[i]));
        lab_remove(b, &a, "copy", STR_EMPTY);
    }
    CHECK_OK(b->ops->list(b, &a, &(struct list_options){.limit = 100}, &out, &err));
    CHECK_INT(out.count, ARRAY_SIZE(keys));
    for (size_t i = 0; i < out.count; i++)
        lab_remove(b, &a, arena_z(&a, out.entries[i].info.key), STR_EMPTY);
    lab_expect_list(b, &(struct list_options){0}, false, "");
    b->ops->unref(b);
    arena_release(&a);
}

TEST(remote_put, keys_of_every_kind_survive_the_wire)
{
    with_storage(names_of_all_kinds);
}
