/* What every storage must do: objects, their bodies, and conditions on them. */
#include "unit/object/bucket_conformance.h"

#include <stdio.h>

void conform_what_was_put_is_read_back(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct get_result got;
    struct err err = {0};

    struct put_result put = lab_put(b, &a, "k", STR("hello"));
    CHECK_STR(put.etag, STR("5d41402abc4b2a76b9719d911017c592"));
    CHECK_INT(put.version.len, 0);
    CHECK_INT(put.size, 5);
    CHECK_OK(lab_head(b, &a, STR("k"), STR_EMPTY, NULL, &got, &err));
    CHECK(!got.body);
    CHECK_STR(got.info.key, STR("k"));
    CHECK_STR(got.info.version, STR("null"));
    CHECK_STR(got.info.etag, put.etag);
    CHECK(got.info.is_latest);
    CHECK_INT(got.info.size, 5);
    CHECK(got.info.modified_ms > 0);
    CHECK(put.modified_ms == 0 || put.modified_ms == got.info.modified_ms);
    lab_expect(b, "k", STR_EMPTY, STR("hello"));
    lab_expect(b, "k", STR("null"), STR("hello"));
    lab_expect(b, "other", STR_EMPTY, STR_EMPTY);
    lab_remove(b, &a, "k", STR_EMPTY);
    lab_expect(b, "k", STR_EMPTY, STR_EMPTY);
    b->ops->unref(b);
    arena_release(&a);
}

void conform_bodies_of_every_size_come_back(struct lab *lab)
{
    static const size_t sizes[] = {0,      1,      4096,   65535,  65536,   65537,          131072,
                                   262143, 262144, 262145, 524288, 1048577, 3 * 1048576 + 5};
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct str body = lab_bytes(sizes[i], i);
        char key[32];
        struct str_reader r;
        struct put_options o = {0};
        struct put_result known, unknown;
        snprintf(key, sizeof(key), "k%zu", i);
        known = lab_put(b, &a, key, body);
        lab_expect(b, key, STR_EMPTY, body.len ? body : STR(""));
        str_reader_init(&r, body);
        CHECK_OK(b->ops->put(b, &a, str_z(key), &r.reader, UINT64_MAX, &o, &unknown, &err));
        lab_expect(b, key, STR_EMPTY, body.len ? body : STR(""));
        CHECK_STR(unknown.etag, known.etag);
        CHECK_INT(unknown.size, sizes[i]);
    }
    b->ops->unref(b);
    arena_release(&a);
}

void conform_metadata_comes_back_as_given(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct http_header headers[] = {{STR("content-type"), STR("text/plain")},
                                    {STR("x-amz-meta-a"), STR("")},
                                    {STR("x-amz-meta-b"), STR("caf\xc3\xa9")}};
    struct put_options o = {
        .meta = {.headers = headers,
                 .header_count = 3,
                 .tags = STR("a=1&b=2"),
                 .storage_class = STR("STANDARD_IA"),
                 .checksum = {CHECKSUM_FULL_OBJECT, DIGEST_CRC32C, STR("qTxfkw==")}}};
    struct str_reader r;
    struct put_result put;
    struct get_result got;
    struct list_result list;
    struct err err = {0};

    str_reader_init(&r, STR("x"));
    CHECK_OK(b->ops->put(b, &a, STR("k"), &r.reader, 1, &o, &put, &err));
    CHECK_OK(lab_head(b, &a, STR("k"), STR_EMPTY, NULL, &got, &err));
    CHECK_INT(got.info.meta.header_count, 3);
    for (size_t i = 0; i < 3; i++) {
        CHECK_STR(got.info.meta.headers[i].name, headers[i].name);
        CHECK_STR(got.info.meta.headers[i].value, headers[i].value);
    }
    CHECK_STR(got.info.meta.tags, o.meta.tags);
    CHECK_STR(got.info.meta.storage_class, o.meta.storage_class);
    CHECK_INT(got.info.meta.checksum.type, CHECKSUM_FULL_OBJECT);
    CHECK_INT(got.info.meta.checksum.kind, DIGEST_CRC32C);
    CHECK_STR(got.info.meta.checksum.value, o.meta.checksum.value);
    CHECK_OK(b->ops->list(b, &a, &(struct list_options){.limit = 10}, &list, &err));
    CHECK_STR(list.entries[0].info.meta.storage_class, STR("STANDARD_IA"));
    b->ops->unref(b);
    arena_release(&a);
}

/* A storage that speaks S3 has no words for these. */
void conform_what_is_opaque_comes_back_as_given(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct put_options o = {
        .meta = {.acl = STR("acl"),
                 .owner = STR("me"),
                 .checksum = {CHECKSUM_COMPOSITE, DIGEST_CRC32C, STR("abc=-2")}},
        .etag = STR("my-etag")};
    struct str_reader r;
    struct put_result put;
    struct get_result got;
    struct list_result list;
    struct err err = {0};

    str_reader_init(&r, STR("x"));
    int code = b->ops->put(b, &a, STR("k"), &r.reader, 1, &o, &put, &err);
    if (lab->wire) {
        CHECK_ERR(code, ERR_UNSUPPORTED);
        lab_expect(b, "k", STR_EMPTY, STR_EMPTY);
    } else {
        CHECK_OK(code);
        CHECK_OK(lab_head(b, &a, STR("k"), STR_EMPTY, NULL, &got, &err));
        CHECK_STR(got.info.etag, STR("my-etag"));
        CHECK_STR(got.info.meta.acl, o.meta.acl);
        CHECK_STR(got.info.meta.owner, o.meta.owner);
        CHECK_INT(got.info.meta.checksum.type, CHECKSUM_COMPOSITE);
        CHECK_OK(b->ops->list(b, &a, &(struct list_options){.limit = 10}, &list, &err));
        CHECK_STR(list.entries[0].info.meta.owner, STR("me"));
        CHECK_STR(list.entries[0].info.meta.checksum.value, STR("abc=-2"));
    }
    b->ops->unref(b);
    arena_release(&a);
}

void conform_a_put_replaces(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct str large = lab_bytes(300 * KIB, 1), larger = lab_bytes(MIB, 2);
    struct str bodies[] = {STR("a"), large, larger, STR("b"), STR(""), large};

    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
        lab_put(b, &a, "k", bodies[i]);
        lab_expect(b, "k", STR_EMPTY, bodies[i]);
    }
    lab_expect_list(b, &lab_everything, true, "k*");
    b->ops->unref(b);
    arena_release(&a);
}

void conform_a_body_that_ends_early_leaves_nothing(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct put_options o = {0};
    struct put_result put;
    struct err err = {0};

    for (size_t len = 10; len < MIB; len *= 100) {
        struct str_reader r;
        str_reader_init(&r, lab_bytes(len, 1));
        CHECK_ERR(b->ops->put(b, &a, STR("k"), &r.reader, len + 1, &o, &put, &err), ERR_CLOSED);
        str_reader_init(&r, lab_bytes(len, 1));
        CHECK_ERR(b->ops->put(b, &a, STR("k"), &r.reader, len - 1, &o, &put, &err), ERR_INVALID);
    }
    lab_expect(b, "k", STR_EMPTY, STR_EMPTY);
    lab_expect_list(b, &lab_everything, false, "");
    b->ops->unref(b);
    arena_release(&a);
}

#define SHA256_OF_ABC "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="

static int refuse(void *ctx, struct object_meta *meta, struct err *err)
{
    (*(int *)ctx)++;
    return err_set(err, ERR_INVALID, "BadDigest");
}

static int fill(void *ctx, struct object_meta *meta, struct err *err)
{
    meta->checksum =
        (struct object_checksum){CHECKSUM_FULL_OBJECT, DIGEST_SHA256, STR(SHA256_OF_ABC)};
    return 0;
}

void conform_a_body_that_verify_refuses_leaves_nothing(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    int calls = 0;
    struct put_options o = {.verify = refuse, .ctx = &calls};
    struct put_result put;
    struct get_result got;
    struct str_reader r;
    struct err err = {0};

    str_reader_init(&r, STR("abc"));
    CHECK_ERR(b->ops->put(b, &a, STR("k"), &r.reader, 3, &o, &put, &err), ERR_INVALID);
    CHECK_STR(str_z(err.text), STR("BadDigest"));
    str_reader_init(&r, lab_bytes(300 * KIB, 1));
    CHECK_ERR(b->ops->put(b, &a, STR("k"), &r.reader, 300 * KIB, &o, &put, &err), ERR_INVALID);
    CHECK_INT(calls, 2);
    lab_expect(b, "k", STR_EMPTY, STR_EMPTY);
    o.verify = fill;
    str_reader_init(&r, STR("abc"));
    CHECK_OK(b->ops->put(b, &a, STR("k"), &r.reader, 3, &o, &put, &err));
    CHECK_OK(lab_head(b, &a, STR("k"), STR_EMPTY, NULL, &got, &err));
    CHECK_STR(got.info.meta.checksum.value, STR(SHA256_OF_ABC));
    b->ops->unref(b);
    arena_release(&a);
}

static void expect_range(struct bucket *b, struct object_range range, struct str want,
                         uint64_t first)
{
    struct arena a = ARENA_INIT(0);
    struct get_result got;
    struct buf body = BUF_INIT(0);
    struct err err = {0};
    int code = lab_get(b, &a, STR("k"), STR_EMPTY, NULL, &range, &got, &err);

    if (!want.p) {
        CHECK_ERR(code, ERR_RANGE);
    } else {
        CHECK_OK(code);
        CHECK(got.partial);
        CHECK_INT(got.first, first);
        CHECK_INT(got.len, want.len);
        CHECK_OK(reader_read_all(got.body, &body, &err));
        CHECK(str_eq(buf_str(&body), want));
        reader_close(got.body);
    }
    buf_release(&body);
    arena_release(&a);
}

void conform_ranges_are_cut_from_the_body(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct str bodies[] = {lab_bytes(1000, 1), lab_bytes(700 * KIB, 2)};

    for (size_t i = 0; i < 2; i++) {
        struct str body = bodies[i];
        lab_put(b, &a, "k", body);
        expect_range(b, (struct object_range){RANGE_FROM_TO, 0, 0}, str_head(body, 1), 0);
        expect_range(b, (struct object_range){RANGE_FROM_TO, 10, 19},
                     str_head(str_skip(body, 10), 10), 10);
        expect_range(b, (struct object_range){RANGE_FROM_TO, 900, UINT64_MAX}, str_skip(body, 900),
                     900);
        expect_range(b, (struct object_range){RANGE_FROM_TO, 5, body.len + 100}, str_skip(body, 5),
                     5);
        expect_range(b, (struct object_range){RANGE_FROM_TO, body.len, UINT64_MAX}, STR_EMPTY, 0);
        expect_range(b, (struct object_range){RANGE_SUFFIX, 7, 0}, str_skip(body, body.len - 7),
                     body.len - 7);
        expect_range(b, (struct object_range){RANGE_SUFFIX, body.len * 2, 0}, body, 0);
        expect_range(b, (struct object_range){RANGE_SUFFIX, 0, 0}, STR_EMPTY, 0);
        expect_range(b, (struct object_range){RANGE_PART, 1, 0}, body, 0);
        expect_range(b, (struct object_range){RANGE_PART, 2, 0}, STR_EMPTY, 0);
    }
    lab_put(b, &a, "k", STR(""));
    expect_range(b, (struct object_range){RANGE_FROM_TO, 0, 10}, STR_EMPTY, 0);
    b->ops->unref(b);
    arena_release(&a);
}

static int64_t modified_of(struct bucket *b, const char *key)
{
    struct arena a = ARENA_INIT(0);
    struct get_result got;
    struct err err = {0};

    CHECK_OK(lab_head(b, &a, str_z(key), STR_EMPTY, NULL, &got, &err));
    arena_release(&a);
    return got.info.modified_ms;
}

void conform_conditional_reads_follow_the_rfc(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct put_result put = lab_put(b, &a, "k", STR("hello"));
    const struct str mine = STR("\"5d41402abc4b2a76b9719d911017c592\""), other = STR("\"other\"");
    int64_t modified = modified_of(b, "k"), before = modified - 5000, after = modified + 5000;
    const struct {
        struct object_conditions c;
        int want;
    } cases[] = {
        {{.if_match = mine}, 0},
        {{.if_match = STR("*")}, 0},
        {{.if_match = STR("\"x\", \"5d41402abc4b2a76b9719d911017c592\"")}, 0},
        {{.if_match = STR("5d41402abc4b2a76b9719d911017c592")}, 0},
        {{.if_match = STR("W/\"5d41402abc4b2a76b9719d911017c592\"")}, ERR_PRECONDITION},
        {{.if_match = other}, ERR_PRECONDITION},
        {{.if_match = mine, .if_unmodified_since_ms = before}, 0},
        {{.if_unmodified_since_ms = before}, ERR_PRECONDITION},
        {{.if_unmodified_since_ms = after}, 0},
        {{.if_unmodified_since_ms = modified}, 0},
        {{.if_none_match = mine}, ERR_NOT_MODIFIED},
        {{.if_none_match = STR("W/\"5d41402abc4b2a76b9719d911017c592\"")}, ERR_NOT_MODIFIED},
        {{.if_none_match = STR("*")}, ERR_NOT_MODIFIED},
        {{.if_none_match = other}, 0},
        {{.if_none_match = other, .if_modified_since_ms = after}, 0},
        {{.if_modified_since_ms = after}, ERR_NOT_MODIFIED},
        {{.if_modified_since_ms = modified}, ERR_NOT_MODIFIED},
        {{.if_modified_since_ms = before}, 0},
        {{.if_match = other, .if_none_match = mine}, ERR_PRECONDITION},
        {{.if_match = mine, .if_none_match = mine}, ERR_NOT_MODIFIED},
    };
    struct get_result got;
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int head = lab_head(b, &a, STR("k"), STR_EMPTY, &cases[i].c, &got, &err);
        if (head != cases[i].want)
            test_fail(__FILE__, __LINE__, "case %zu: %s", i, err_name(head));
        CHECK_STR(got.info.etag, put.etag);
        int code = lab_get(b, &a, STR("k"), STR_EMPTY, &cases[i].c, NULL, &got, &err);
        CHECK_INT(code, cases[i].want);
        reader_close(got.body);
    }
    b->ops->unref(b);
    arena_release(&a);
}

static int put_if(struct bucket *b, struct object_conditions c, struct str body, struct err *err)
{
    struct arena a = ARENA_INIT(0);
    struct put_options o = {.conditions = c};
    struct put_result put;
    struct str_reader r;

    str_reader_init(&r, body);
    int code = b->ops->put(b, &a, STR("k"), &r.reader, body.len, &o, &put, err);
    arena_release(&a);
    return code;
}

void conform_conditional_puts_are_judged_against_the_current(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct object_conditions none = {.if_none_match = STR("*")},
                             match = {.if_match = STR("\"0cc175b9c0f1b6a831c399e269772661\"")};
    struct str large = lab_bytes(300 * KIB, 1);
    struct err err = {0};

    CHECK_ERR(put_if(b, match, STR("x"), &err), ERR_NOT_FOUND);
    CHECK_OK(put_if(b, none, STR("a"), &err));
    CHECK_ERR(put_if(b, none, STR("b"), &err), ERR_PRECONDITION);
    CHECK_ERR(put_if(b, none, large, &err), ERR_PRECONDITION);
    lab_expect(b, "k", STR_EMPTY, STR("a"));
    CHECK_OK(put_if(b, match, large, &err));
    CHECK_ERR(put_if(b, match, STR("c"), &err), ERR_PRECONDITION);
    lab_expect(b, "k", STR_EMPTY, large);
    if (!lab->plain)
        CHECK_OK(b->ops->set_versions(b, true, &err));
    lab_remove(b, &a, "k", STR_EMPTY);
    CHECK_ERR(put_if(b, (struct object_conditions){.if_match = STR("*")}, STR("x"), &err),
              ERR_NOT_FOUND);
    CHECK_OK(put_if(b, none, STR("again"), &err));
    lab_expect(b, "k", STR_EMPTY, STR("again"));
    b->ops->unref(b);
    arena_release(&a);
}

void conform_conditional_removals_are_judged(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct remove_options o = {.conditions.if_match = STR("\"wrong\"")};
    struct remove_result out;
    struct err err = {0};

    CHECK_OK(b->ops->remove(b, &a, STR("k"), &o, &out, &err));
    struct put_result put = lab_put(b, &a, "k", STR("x"));
    CHECK_ERR(b->ops->remove(b, &a, STR("k"), &o, &out, &err), ERR_PRECONDITION);
    lab_expect(b, "k", STR_EMPTY, STR("x"));
    o.conditions.if_match = put.etag;
    CHECK_OK(b->ops->remove(b, &a, STR("k"), &o, &out, &err));
    lab_expect(b, "k", STR_EMPTY, STR_EMPTY);
    b->ops->unref(b);
    arena_release(&a);
}

void conform_removing_what_is_not_there_succeeds(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);

    CHECK(!lab_remove(b, &a, "k", STR_EMPTY).is_marker);
    CHECK(!lab_remove(b, &a, "k", STR("null")).is_marker);
    lab_expect_list(b, &lab_everything, true, "");
    b->ops->unref(b);
    arena_release(&a);
}

void conform_keys_that_cannot_be_are_refused(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    char longest[OBJECT_KEY_MAX + 2];
    struct put_options o = {0};
    struct put_result put;
    struct get_result got;
    struct str_reader r;
    struct err err = {0};

    memset(longest, 'k', sizeof(longest));
    longest[OBJECT_KEY_MAX] = '\0';
    lab_put(b, &a, longest, STR("x"));
    lab_expect(b, longest, STR_EMPTY, STR("x"));
    lab_expect_list(b, &lab_everything, true, arena_fmt(&a, "%s*", longest).p);
    longest[OBJECT_KEY_MAX] = 'k';
    struct str bad[] = {STR(""), STR("a\0b"), str_n(longest, OBJECT_KEY_MAX + 1)};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        str_reader_init(&r, STR("x"));
        CHECK_ERR(b->ops->put(b, &a, bad[i], &r.reader, 1, &o, &put, &err), ERR_INVALID);
        CHECK_ERR(lab_head(b, &a, bad[i], STR_EMPTY, NULL, &got, &err), ERR_INVALID);
    }
    b->ops->unref(b);
    arena_release(&a);
}
