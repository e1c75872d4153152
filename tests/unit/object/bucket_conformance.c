/* What every storage must do: buckets, objects, versions, listings. Uploads: upload_conformance.c.
 */
#include "unit/object/bucket_conformance.h"

#include "base/clock.h"

#include <stdio.h>

static const struct list_options everything = {0};

#define POLICY(effect)                                                                             \
    STR("{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"" effect                         \
        "\",\"Principal\":{\"AWS\":\"*\"},\"Action\":\"s3:GetObjectTorrent\","                     \
        "\"Resource\":\"arn:aws:s3:::box/*\"}]}")

/* --- buckets --- */

void conform_a_bucket_is_there_until_it_is_removed(struct lab *lab)
{
    struct storage *s = lab->storage;
    struct arena a = ARENA_INIT(0);
    struct bucket *b = NULL;
    struct bucket_info info;
    struct get_result got;
    struct err err = {0};

    CHECK_ERR(s->ops->open_bucket(&b, s, STR("owner"), STR("photos"), &err), ERR_NO_BUCKET);
    b = lab_bucket(s, "photos");
    CHECK_OK(b->ops->info(b, &a, &info, &err));
    CHECK_STR(info.name, STR("photos"));
    CHECK_STR(info.owner, STR("owner"));
    CHECK(info.created_ms > 0);
    CHECK_INT(info.versions, VERSIONS_NEVER);
    CHECK_OK(s->ops->check(s, &err));
    CHECK_OK(s->ops->remove_bucket(s, STR("owner"), STR("photos"), &err));
    CHECK_ERR(s->ops->remove_bucket(s, STR("owner"), STR("photos"), &err), ERR_NO_BUCKET);
    /* Somebody still holds it. */
    struct str_reader r;
    struct put_options o = {0};
    struct put_result out;
    str_reader_init(&r, STR("x"));
    CHECK_ERR(b->ops->put(b, &a, STR("k"), &r.reader, 1, &o, &out, &err), ERR_NO_BUCKET);
    CHECK_ERR(b->ops->head(b, &a, STR("k"), STR_EMPTY, NULL, &got, &err), ERR_NO_BUCKET);
    CHECK_ERR(b->ops->info(b, &a, &info, &err), ERR_NO_BUCKET);
    b->ops->unref(b);
    arena_release(&a);
}

void conform_a_bucket_that_exists_is_not_made_again(struct lab *lab)
{
    struct storage *s = lab->storage;
    struct bucket *b = lab_bucket(s, "photos");
    struct bucket_info again = {.name = STR("photos"), .owner = STR("other")};
    struct err err = {0};

    CHECK_ERR(s->ops->create_bucket(s, &again, &err), ERR_EXISTS);
    b->ops->unref(b);
}

void conform_a_bucket_with_objects_versions_or_uploads_is_not_removed(struct lab *lab)
{
    struct storage *s = lab->storage;
    struct bucket *b = lab_bucket(s, "box");
    struct arena a = ARENA_INIT(0);
    struct err err = {0};

    CHECK_OK(b->ops->set_versions(b, true, &err));
    struct put_result first = lab_put(b, &a, "k", STR("x"));
    CHECK_ERR(s->ops->remove_bucket(s, STR("owner"), STR("box"), &err), ERR_CONFLICT);
    struct remove_result marker = lab_remove(b, &a, "k", STR_EMPTY);
    CHECK_ERR(s->ops->remove_bucket(s, STR("owner"), STR("box"), &err), ERR_CONFLICT);
    lab_remove(b, &a, "k", first.version);
    CHECK_ERR(s->ops->remove_bucket(s, STR("owner"), STR("box"), &err), ERR_CONFLICT);
    lab_remove(b, &a, "k", marker.version);
    struct upload_info u = lab_upload(b, &a, "k");
    if (!lab->wire) /* S3 takes uploads that nobody finished with the bucket */
        CHECK_ERR(s->ops->remove_bucket(s, STR("owner"), STR("box"), &err), ERR_CONFLICT);
    CHECK_OK(b->ops->upload_abort(b, &u, &err));
    CHECK_OK(b->ops->set_document(b, "policy", POLICY("Allow"), &err));
    CHECK_OK(s->ops->remove_bucket(s, STR("owner"), STR("box"), &err));
    b->ops->unref(b);
    /* A new one of the name has nothing of the old. */
    b = lab_bucket(s, "box");
    struct str document;
    CHECK_ERR(b->ops->get_document(b, &a, "policy", &document, &err), ERR_NOT_FOUND);
    lab_expect_list(b, &everything, true, "");
    b->ops->unref(b);
    arena_release(&a);
}

void conform_buckets_list_by_name_and_owner(struct lab *lab)
{
    struct storage *s = lab->storage;
    static const char *const names[] = {"ccc", "aaa", "bbb", "aab"};
    struct arena a = ARENA_INIT(0);
    struct bucket_info *infos;
    struct err err = {0};
    size_t count;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct bucket_info info = {.name = str_z(names[i]),
                                   .owner = i == 0 ? STR("me") : STR("you")};
        CHECK_OK(s->ops->create_bucket(s, &info, &err));
    }
    CHECK_OK(s->ops->list_buckets(s, &a, STR_EMPTY, STR_EMPTY, 100, &infos, &count, &err));
    CHECK_INT(count, 4);
    CHECK_STR(infos[1].name, STR("aab"));
    CHECK_OK(s->ops->list_buckets(s, &a, STR("you"), STR("aaa"), 1, &infos, &count, &err));
    CHECK_INT(count, 1);
    CHECK_STR(infos[0].name, STR("aab"));
    CHECK_OK(s->ops->list_buckets(s, &a, STR("me"), STR_EMPTY, 100, &infos, &count, &err));
    CHECK_INT(count, 1);
    CHECK_STR(infos[0].name, STR("ccc"));
    arena_release(&a);
}

void conform_documents_are_kept_replaced_and_removed(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct str document;
    struct err err = {0};

    CHECK_ERR(b->ops->get_document(b, &a, "policy", &document, &err), ERR_NOT_FOUND);
    CHECK_OK(b->ops->set_document(b, "policy", POLICY("Allow"), &err));
    CHECK_OK(b->ops->set_document(b, "policy", POLICY("Deny"), &err));
    CHECK_OK(b->ops->get_document(b, &a, "policy", &document, &err));
    CHECK_STR(document, POLICY("Deny"));
    CHECK_ERR(b->ops->get_document(b, &a, "cors", &document, &err), ERR_NOT_FOUND);
    CHECK_OK(b->ops->set_document(b, "policy", STR_EMPTY, &err));
    CHECK_ERR(b->ops->get_document(b, &a, "policy", &document, &err), ERR_NOT_FOUND);
    b->ops->unref(b);
    arena_release(&a);
}

/* --- objects --- */

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
    CHECK_OK(b->ops->head(b, &a, STR("k"), STR_EMPTY, NULL, &got, &err));
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
    CHECK_OK(b->ops->head(b, &a, STR("k"), STR_EMPTY, NULL, &got, &err));
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
        CHECK_OK(b->ops->head(b, &a, STR("k"), STR_EMPTY, NULL, &got, &err));
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
    lab_expect_list(b, &everything, true, "k*");
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
    lab_expect_list(b, &everything, false, "");
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
    CHECK_OK(b->ops->head(b, &a, STR("k"), STR_EMPTY, NULL, &got, &err));
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
    int code = b->ops->get(b, &a, STR("k"), STR_EMPTY, NULL, &range, &got, &err);

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

    CHECK_OK(b->ops->head(b, &a, str_z(key), STR_EMPTY, NULL, &got, &err));
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
        int head = b->ops->head(b, &a, STR("k"), STR_EMPTY, &cases[i].c, &got, &err);
        if (head != cases[i].want)
            test_fail(__FILE__, __LINE__, "case %zu: %s", i, err_name(head));
        CHECK_STR(got.info.etag, put.etag);
        int code = b->ops->get(b, &a, STR("k"), STR_EMPTY, &cases[i].c, NULL, &got, &err);
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
    lab_expect_list(b, &everything, true, "");
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
    lab_expect_list(b, &everything, true, arena_fmt(&a, "%s*", longest).p);
    longest[OBJECT_KEY_MAX] = 'k';
    struct str bad[] = {STR(""), STR("a\0b"), str_n(longest, OBJECT_KEY_MAX + 1)};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        str_reader_init(&r, STR("x"));
        CHECK_ERR(b->ops->put(b, &a, bad[i], &r.reader, 1, &o, &put, &err), ERR_INVALID);
        CHECK_ERR(b->ops->head(b, &a, bad[i], STR_EMPTY, NULL, &got, &err), ERR_INVALID);
    }
    b->ops->unref(b);
    arena_release(&a);
}

#define WIRE_ACL                                                                                   \
    "<AccessControlPolicy><Owner><ID>owner</ID></Owner><AccessControlList><Grant><Grantee "        \
    "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:type=\"CanonicalUser\">"          \
    "<ID>owner</ID></Grantee><Permission>FULL_CONTROL</Permission></Grant></AccessControlList>"    \
    "</AccessControlPolicy>"

/* --- versions --- */

void conform_versions_are_kept_newest_first(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct str large = lab_bytes(300 * KIB, 1);
    struct get_result got;
    struct err err = {0};

    CHECK_OK(b->ops->set_versions(b, true, &err));
    struct put_result one = lab_put(b, &a, "k", STR("one")), two = lab_put(b, &a, "k", large),
                      three = lab_put(b, &a, "k", STR("three"));
    CHECK(!str_eq(one.version, two.version) && !str_eq(two.version, three.version));
    lab_expect(b, "k", STR_EMPTY, STR("three"));
    lab_expect(b, "k", one.version, STR("one"));
    lab_expect(b, "k", two.version, large);
    lab_expect(b, "k", three.version, STR("three"));
    lab_expect(b, "k", STR("null"), STR_EMPTY);
    CHECK_OK(b->ops->head(b, &a, STR("k"), two.version, NULL, &got, &err));
    CHECK(!got.info.is_latest);
    CHECK_STR(got.info.version, two.version);
    CHECK_OK(b->ops->head(b, &a, STR("k"), three.version, NULL, &got, &err));
    CHECK(lab->wire || got.info.is_latest);
    lab_expect_list(b, &everything, true, "k* k k");
    lab_remove(b, &a, "k", three.version);
    lab_expect(b, "k", STR_EMPTY, large);
    lab_remove(b, &a, "k", one.version);
    lab_expect_list(b, &everything, true, "k*");
    lab_remove(b, &a, "k", two.version);
    lab_expect_list(b, &everything, true, "");
    lab_expect(b, "k", STR_EMPTY, STR_EMPTY);
    b->ops->unref(b);
    arena_release(&a);
}

void conform_a_marker_hides_and_its_removal_brings_back(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct get_result got;
    struct err err = {0};

    CHECK_OK(b->ops->set_versions(b, true, &err));
    struct put_result put = lab_put(b, &a, "k", STR("x"));
    struct remove_result marker = lab_remove(b, &a, "k", STR_EMPTY),
                         second = lab_remove(b, &a, "k", STR_EMPTY);
    CHECK(marker.is_marker && second.is_marker);
    CHECK(marker.version.len > 0 && !str_eq(marker.version, second.version));
    CHECK_ERR(b->ops->head(b, &a, STR("k"), STR_EMPTY, NULL, &got, &err), ERR_NOT_FOUND);
    CHECK(got.info.is_marker);
    CHECK_STR(got.info.version, second.version);
    CHECK_ERR(b->ops->head(b, &a, STR("k"), marker.version, NULL, &got, &err), ERR_NOT_FOUND);
    CHECK(got.info.is_marker && !got.info.is_latest);
    lab_expect(b, "k", put.version, STR("x"));
    lab_expect_list(b, &everything, false, "");
    lab_expect_list(b, &everything, true, "k!* k! k");
    CHECK(lab_remove(b, &a, "k", second.version).is_marker);
    lab_expect(b, "k", STR_EMPTY, STR_EMPTY);
    lab_expect_list(b, &everything, true, "k!* k");
    CHECK(lab_remove(b, &a, "k", marker.version).is_marker);
    lab_expect(b, "k", STR_EMPTY, STR("x"));
    lab_expect_list(b, &everything, false, "k");
    lab_expect_list(b, &everything, true, "k*");
    b->ops->unref(b);
    arena_release(&a);
}

void conform_suspended_versions_have_one_null(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct str large = lab_bytes(300 * KIB, 1);
    struct err err = {0};

    CHECK_OK(b->ops->set_versions(b, true, &err));
    struct put_result kept = lab_put(b, &a, "k", STR("kept"));
    CHECK_OK(b->ops->set_versions(b, false, &err));
    struct str version = lab_put(b, &a, "k", large).version;
    CHECK(version.len == 0 || str_eq(version, STR("null"))); /* S3 servers differ */
    lab_expect_list(b, &everything, true, "k* k");
    lab_put(b, &a, "k", STR("null2"));
    lab_expect_list(b, &everything, true, "k* k");
    lab_expect(b, "k", STR("null"), STR("null2"));
    CHECK_STR(lab_remove(b, &a, "k", STR_EMPTY).version, STR("null"));
    lab_expect_list(b, &everything, true, "k!* k");
    lab_expect(b, "k", STR_EMPTY, STR_EMPTY);
    lab_put(b, &a, "k", large);
    lab_expect_list(b, &everything, true, "k* k");
    CHECK_OK(b->ops->set_versions(b, true, &err));
    struct put_result newest = lab_put(b, &a, "k", STR("newest"));
    lab_expect_list(b, &everything, true, "k* k k");
    lab_expect(b, "k", STR("null"), large);
    CHECK_OK(b->ops->set_versions(b, false, &err));
    lab_put(b, &a, "k", STR("null4"));
    lab_expect_list(b, &everything, true, "k* k k");
    lab_expect(b, "k", newest.version, STR("newest"));
    lab_expect(b, "k", kept.version, STR("kept"));
    lab_remove(b, &a, "k", STR("null"));
    lab_expect(b, "k", STR_EMPTY, STR("newest"));
    b->ops->unref(b);
    arena_release(&a);
}

void conform_a_null_version_from_before_is_kept(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct err err = {0};

    lab_put(b, &a, "k", STR("before"));
    CHECK_OK(b->ops->set_versions(b, true, &err));
    struct put_result put = lab_put(b, &a, "k", STR("after"));
    lab_expect(b, "k", STR("null"), STR("before"));
    lab_expect(b, "k", put.version, STR("after"));
    lab_remove(b, &a, "k", put.version);
    lab_expect(b, "k", STR_EMPTY, STR("before"));
    lab_remove(b, &a, "k", STR_EMPTY);
    lab_expect(b, "k", STR("null"), STR("before"));
    lab_remove(b, &a, "k", STR("null"));
    lab_expect_list(b, &everything, true, "k!*");
    b->ops->unref(b);
    arena_release(&a);
}

void conform_a_made_up_version_is_not_found(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct err err = {0};

    CHECK_OK(b->ops->set_versions(b, true, &err));
    struct put_result put = lab_put(b, &a, "k", STR("x"));
    lab_put(b, &a, "other", STR("y"));
    char *forged = arena_z(&a, put.version);
    forged[put.version.len - 1] = forged[put.version.len - 1] == '0' ? '1' : '0';
    lab_expect(b, "k", str_z(forged), STR_EMPTY);
    lab_expect(b, "k", STR("nonsense"), STR_EMPTY);
    lab_expect(b, "other", put.version, STR_EMPTY);
    lab_remove(b, &a, "k", str_z(forged));
    lab_expect(b, "k", put.version, STR("x"));
    b->ops->unref(b);
    arena_release(&a);
}

static int set_lock(struct bucket *b, struct str version, struct object_meta meta, bool bypass,
                    struct err *err)
{
    struct arena a = ARENA_INIT(0);
    struct meta_options o = {.bypass_governance = bypass};
    int code = b->ops->set_meta(b, &a, STR("k"), version, META_RETENTION | META_LEGAL_HOLD, &meta,
                                &o, err);

    arena_release(&a);
    return code;
}

static int remove_locked(struct bucket *b, struct str version, bool bypass, struct err *err)
{
    struct arena a = ARENA_INIT(0);
    struct remove_options o = {.version = version, .bypass_governance = bypass};
    struct remove_result out;
    int code = b->ops->remove(b, &a, STR("k"), &o, &out, err);

    arena_release(&a);
    return code;
}

void conform_retention_and_hold_keep_versions(struct lab *lab)
{
    struct storage *s = lab->storage;
    struct bucket_info info = {
        .name = STR("box"), .versions = VERSIONS_ON, .object_lock = true, .owner = STR("owner")};
    struct arena a = ARENA_INIT(0);
    struct bucket *b;
    int64_t later = clock_wall_ms() + 3600 * 1000;
    struct err err = {0};

    CHECK_OK(s->ops->create_bucket(s, &info, &err));
    CHECK_OK(s->ops->open_bucket(&b, s, STR("owner"), STR("box"), &err));
    CHECK_ERR(b->ops->set_versions(b, false, &err), ERR_CONFLICT);
    struct str one = lab_put(b, &a, "k", STR("1")).version,
               two = lab_put(b, &a, "k", STR("2")).version,
               three = lab_put(b, &a, "k", STR("3")).version;

    CHECK_OK(set_lock(b, one, (struct object_meta){.legal_hold = true}, false, &err));
    CHECK_ERR(remove_locked(b, one, true, &err), ERR_DENIED);
    CHECK_OK(set_lock(b, one, (struct object_meta){0}, false, &err));
    CHECK_OK(remove_locked(b, one, false, &err));

    CHECK_OK(set_lock(b, two, (struct object_meta){.retain_until_ms = later}, false, &err));
    CHECK_ERR(remove_locked(b, two, false, &err), ERR_DENIED);
    CHECK_ERR(set_lock(b, two, (struct object_meta){.retain_until_ms = later - 1}, false, &err),
              ERR_DENIED);
    CHECK_OK(set_lock(b, two, (struct object_meta){.retain_until_ms = later + 1}, false, &err));
    CHECK_OK(set_lock(b, two, (struct object_meta){.retain_until_ms = later}, true, &err));
    CHECK_OK(remove_locked(b, two, true, &err));

    struct object_meta compliance = {.retain_until_ms = later, .retain_compliance = true};
    CHECK_OK(set_lock(b, STR_EMPTY, compliance, false, &err));
    CHECK_ERR(remove_locked(b, three, true, &err), ERR_DENIED);
    CHECK_ERR(set_lock(b, three, (struct object_meta){.retain_until_ms = later}, true, &err),
              ERR_DENIED);
    CHECK_ERR(set_lock(b, three, (struct object_meta){0}, true, &err), ERR_DENIED);
    CHECK_OK(remove_locked(b, STR_EMPTY, false, &err)); /* a marker takes nothing away */
    lab_expect(b, "k", three, STR("3"));
    b->ops->unref(b);
    arena_release(&a);
}

void conform_meta_of_a_version_can_be_set(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct object_meta meta = {.tags = STR("a=1"), .acl = lab->wire ? STR(WIRE_ACL) : STR("acl")};
    struct get_result got;
    struct err err = {0};

    CHECK_ERR(b->ops->set_meta(b, &a, STR("k"), STR_EMPTY, META_TAGS, &meta, NULL, &err),
              ERR_NOT_FOUND);
    CHECK_OK(b->ops->set_versions(b, true, &err));
    struct put_result old = lab_put(b, &a, "k", STR("old"));
    lab_put(b, &a, "k", STR("new"));
    CHECK_OK(b->ops->set_meta(b, &a, STR("k"), old.version, META_TAGS, &meta, NULL, &err));
    CHECK_OK(b->ops->head(b, &a, STR("k"), old.version, NULL, &got, &err));
    CHECK_STR(got.info.meta.tags, STR("a=1"));
    CHECK_INT(got.info.meta.acl.len, 0);
    CHECK_OK(b->ops->head(b, &a, STR("k"), STR_EMPTY, NULL, &got, &err));
    CHECK_INT(got.info.meta.tags.len, 0);
    CHECK_OK(b->ops->set_meta(b, &a, STR("k"), STR_EMPTY, META_ACL, &meta, NULL, &err));
    CHECK_OK(b->ops->head(b, &a, STR("k"), STR_EMPTY, NULL, &got, &err));
    CHECK(lab->wire || str_eq(got.info.meta.acl, STR("acl")));
    lab_expect(b, "k", STR_EMPTY, STR("new"));
    lab_expect(b, "k", old.version, STR("old"));
    lab_remove(b, &a, "k", STR_EMPTY);
    CHECK_ERR(b->ops->set_meta(b, &a, STR("k"), STR_EMPTY, META_TAGS, &meta, NULL, &err),
              ERR_NOT_FOUND);
    b->ops->unref(b);
    arena_release(&a);
}

/* --- copies --- */

static int copy_to(struct bucket *b, struct arena *a, const char *key, struct bucket *from,
                   const char *source, struct put_options o, struct err *err)
{
    struct get_result got;
    struct put_result out;
    int code = from->ops->head(from, a, str_z(source), STR_EMPTY, NULL, &got, err);

    return code < 0 ? code : b->ops->copy(b, a, str_z(key), from, &got.info, &o, &out, err);
}

void conform_a_copy_lives_without_its_source(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box"), *other = lab_bucket(lab->storage, "other");
    struct arena a = ARENA_INIT(0);
    struct str bodies[] = {STR(""), STR("small"), lab_bytes(400 * KIB, 1)};
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
        lab_put(b, &a, "from", bodies[i]);
        CHECK_OK(copy_to(other, &a, "to", b, "from", (struct put_options){0}, &err));
        CHECK_OK(copy_to(other, &a, "to2", other, "to", (struct put_options){0}, &err));
        lab_remove(b, &a, "from", STR_EMPTY);
        lab_expect(b, "from", STR_EMPTY, STR_EMPTY);
        lab_remove(other, &a, "to", STR_EMPTY);
        lab_expect(other, "to2", STR_EMPTY, bodies[i]);
        struct put_options never = {.conditions.if_none_match = STR("*")};
        CHECK_ERR(copy_to(other, &a, "to2", other, "to2", never, &err), ERR_PRECONDITION);
    }
    b->ops->unref(b);
    other->ops->unref(other);
    arena_release(&a);
}

void conform_a_copy_onto_itself_changes_the_metadata(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct str bodies[] = {STR("small"), lab_bytes(400 * KIB, 1)};
    struct get_result got;
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
        lab_put(b, &a, "k", bodies[i]);
        CHECK_OK(copy_to(b, &a, "k", b, "k", (struct put_options){.meta.tags = STR("t=1")}, &err));
        lab_expect(b, "k", STR_EMPTY, bodies[i]);
        CHECK_OK(b->ops->head(b, &a, STR("k"), STR_EMPTY, NULL, &got, &err));
        CHECK_STR(got.info.meta.tags, STR("t=1"));
    }
    b->ops->unref(b);
    arena_release(&a);
}

/* --- listings --- */

void conform_listing_goes_in_byte_order_by_pages(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    static const char *const keys[] = {"b", "a", "a!", "a/b", "aa", "\xc3\xbc", "B", "a/"};
    struct list_options o = {.limit = 3};
    struct list_result got;
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        lab_put(b, &a, keys[i], str_z(keys[i]));
    lab_expect_list(b, &everything, false, "B a a! a/ a/b aa b \xc3\xbc");
    lab_expect_list(b, &o, false, "B a a! ...");
    CHECK_OK(b->ops->list(b, &a, &o, &got, &err));
    CHECK_STR(got.next, STR("a!"));
    o.after = got.next;
    lab_expect_list(b, &o, false, "a/ a/b aa ...");
    o.after = STR("aa");
    lab_expect_list(b, &o, false, "b \xc3\xbc");
    o = (struct list_options){.prefix = STR("a"), .limit = 5};
    lab_expect_list(b, &o, false, "a a! a/ a/b aa");
    o = (struct list_options){.prefix = STR("a"), .after = STR("zzz")};
    lab_expect_list(b, &o, false, "");
    o = (struct list_options){.prefix = STR("b"), .after = STR("a")};
    lab_expect_list(b, &o, false, "b");
    CHECK_OK(b->ops->list(b, &a, &(struct list_options){.limit = 0}, &got, &err));
    CHECK(got.count == 0 && !got.more);
    b->ops->unref(b);
    arena_release(&a);
}

void conform_a_delimiter_folds_prefixes(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    static const char *const keys[] = {"a", "d/1", "d/2", "d/e/1", "d/e/2", "f//g", "z"};
    struct list_options o = {.delimiter = STR("/")};

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        lab_put(b, &a, keys[i], STR("x"));
    lab_expect_list(b, &o, false, "a [d/] [f/] z");
    lab_expect_list(b, &o, true, "a* [d/] [f/] z*");
    o.limit = 2;
    lab_expect_list(b, &o, false, "a [d/] ...");
    lab_expect_list(b, &o, true, "a* [d/] ...");
    o.after = STR("d/");
    lab_expect_list(b, &o, false, "[f/] z");
    lab_expect_list(b, &o, true, "[f/] z*");
    o = (struct list_options){.delimiter = STR("/"), .prefix = STR("d/")};
    lab_expect_list(b, &o, false, "d/1 d/2 [d/e/]");
    o = (struct list_options){.delimiter = STR("/"), .prefix = STR("d/e/")};
    lab_expect_list(b, &o, false, "d/e/1 d/e/2");
    o = (struct list_options){.delimiter = STR("/"), .prefix = STR("d")};
    lab_expect_list(b, &o, false, "[d/]");
    o = (struct list_options){.delimiter = STR("//")};
    lab_expect_list(b, &o, false, "a d/1 d/2 d/e/1 d/e/2 [f//] z");
    o = (struct list_options){.delimiter = STR("/"), .after = STR("d/1")};
    lab_expect_list(b, &o, false, "[d/] [f/] z");
    b->ops->unref(b);
    arena_release(&a);
}

void conform_listing_versions_merges_and_pages(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct buf seen = BUF_INIT(0);
    struct list_options o = {.limit = 1};
    struct list_result got;
    struct err err = {0};

    lab_put(b, &a, "a", STR("null"));
    CHECK_OK(b->ops->set_versions(b, true, &err));
    lab_put(b, &a, "a", STR("2"));
    lab_put(b, &a, "ab", STR("1"));
    lab_remove(b, &a, "ab", STR_EMPTY);
    lab_put(b, &a, "b", STR("1"));
    lab_put(b, &a, "b", STR("2"));
    lab_remove(b, &a, "c", STR_EMPTY);
    lab_expect_list(b, &everything, true, "a* a ab!* ab b* b c!*");
    lab_expect_list(b, &everything, false, "a b");
    do {
        CHECK_OK(b->ops->list_versions(b, &a, &o, &got, &err));
        CHECK_INT(got.count, 1);
        buf_append_str(&seen, got.entries[0].info.key);
        buf_append_z(&seen, got.entries[0].info.is_marker ? "!" : "");
        buf_append_z(&seen, got.entries[0].info.is_latest ? "* " : " ");
        o.after = got.next;
        o.after_version = got.next_version;
    } while (got.more);
    CHECK_STR(buf_str(&seen), STR("a* a ab!* ab b* b c!* "));
    o = (struct list_options){.after = STR("a")};
    lab_expect_list(b, &o, true, "ab!* ab b* b c!*");
    o = (struct list_options){.prefix = STR("ab")};
    lab_expect_list(b, &o, true, "ab!* ab");
    buf_release(&seen);
    b->ops->unref(b);
    arena_release(&a);
}
