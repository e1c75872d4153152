/* What every storage must do: uploads of many parts, and readers beside writers. */
#include "unit/object/bucket_conformance.h"

static int finish(struct bucket *b, struct arena *a, const struct upload_info *u,
                  const struct upload_part *parts, size_t count, struct put_result *out,
                  struct err *err)
{
    struct put_options o = {0};
    return b->ops->upload_finish(b, a, u, parts, count, &o, out, err);
}

/* All parts at once, and by pages of one. */
static void expect_parts(const struct lab *lab, struct bucket *b, struct arena *a, const char *key,
                         const struct upload_part *want, size_t count)
{
    struct get_result got;
    struct part_list list;
    struct err err = {0};
    uint32_t after = 0;

    CHECK_OK(lab_head(b, a, str_z(key), STR_EMPTY, NULL, &got, &err));
    CHECK_OK(b->ops->object_parts(b, a, &got.info, 0, 1000, &list, &err));
    CHECK_INT(list.count, count);
    CHECK(!list.more);
    for (size_t i = 0; i < count; i++) {
        CHECK_OK(b->ops->object_parts(b, a, &got.info, after, 1, &list, &err));
        CHECK_INT(list.count, 1);
        CHECK_INT(list.more, i + 1 < count);
        CHECK_INT(list.parts[0].number, want[i].number);
        CHECK_INT(list.parts[0].size, want[i].size);
        if (!lab->wire)
            CHECK_STR(list.parts[0].checksum.value, want[i].checksum.value);
        after = list.parts[0].number;
    }
}

void conform_parts_become_an_object(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct upload_info u = lab_upload(b, &a, "k");
    struct str first = lab_bytes(lab->part_min + 7, 1), second = lab_bytes(lab->part_min, 2),
               third = lab_bytes(100, 3);
    struct buf whole = BUF_INIT(256 * MIB), body = BUF_INIT(256 * MIB);
    struct object_range part = {RANGE_PART, 5, 0}, middle = {RANGE_FROM_TO, 10, 0};
    struct put_result out;
    struct get_result got;
    struct file_range file;
    struct err err = {0};

    lab_part(b, &a, &u, 2, STR("replaced"));
    lab_part(b, &a, &u, 9, STR("left out"));
    struct upload_part parts[] = {lab_part(b, &a, &u, 2, first), lab_part(b, &a, &u, 5, second),
                                  lab_part(b, &a, &u, 7, third)};
    lab_expect(b, "k", STR_EMPTY, STR_EMPTY);
    CHECK_OK(finish(b, &a, &u, parts, 3, &out, &err));
    CHECK(str_ends(out.etag, STR("-3")));
    CHECK_INT(out.etag.len, 34);
    buf_append_str(&whole, first);
    buf_append_str(&whole, second);
    buf_append_str(&whole, third);
    lab_expect(b, "k", STR_EMPTY, buf_str(&whole));
    CHECK_OK(lab_get(b, &a, STR("k"), STR_EMPTY, NULL, &part, &got, &err));
    CHECK_INT(got.info.part_count, 3);
    CHECK_INT(got.first, first.len);
    CHECK_OK(reader_read_all(got.body, &body, &err));
    CHECK(str_eq(buf_str(&body), second));
    reader_close(got.body);
    part.first = 3;
    CHECK_ERR(lab_get(b, &a, STR("k"), STR_EMPTY, NULL, &part, &got, &err), ERR_RANGE);
    if (b->ops->object_parts)
        expect_parts(lab, b, &a, "k", parts, 3);
    middle.last = whole.len - 20;
    CHECK_OK(lab_get(b, &a, STR("k"), STR_EMPTY, NULL, &middle, &got, &err));
    CHECK(!reader_as_file(got.body, &file) || file.len == got.len);
    buf_reset(&body);
    CHECK_OK(reader_read_all(got.body, &body, &err));
    CHECK(str_eq(buf_str(&body), str_head(str_skip(buf_str(&whole), 10), whole.len - 29)));
    reader_close(got.body);
    lab_remove(b, &a, "k", STR_EMPTY);
    CHECK_OK(storage_remove_bucket(lab->storage, STR("owner"), STR("box"), &err));
    buf_release(&whole);
    buf_release(&body);
    b->ops->unref(b);
    arena_release(&a);
}

void conform_finishing_checks_the_parts(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct upload_info u = lab_upload(b, &a, "k"), bad = u;
    struct put_result out;
    struct err err = {0};
    struct upload_part small = lab_part(b, &a, &u, 1, lab_bytes(lab->part_min - 1, 1)),
                       last = lab_part(b, &a, &u, 2, STR("last")), wrong = last;

    CHECK_ERR(finish(b, &a, &u, (struct upload_part[]){small, last}, 2, &out, &err), ERR_INVALID);
    CHECK_STR(str_z(err.text), STR("EntityTooSmall"));
    CHECK_ERR(finish(b, &a, &u, (struct upload_part[]){last, small}, 2, &out, &err), ERR_INVALID);
    CHECK_STR(str_z(err.text), STR("InvalidPartOrder"));
    wrong.etag = STR("0cc175b9c0f1b6a831c399e269772661");
    CHECK_ERR(finish(b, &a, &u, &wrong, 1, &out, &err), ERR_INVALID);
    CHECK_STR(str_z(err.text), STR("InvalidPart"));
    wrong = last;
    wrong.number = 3;
    CHECK_ERR(finish(b, &a, &u, &wrong, 1, &out, &err), ERR_INVALID);
    CHECK_STR(str_z(err.text), STR("InvalidPart"));
    CHECK_ERR(finish(b, &a, &u, NULL, 0, &out, &err), ERR_INVALID);
    bad.id = STR("nonsense");
    CHECK_ERR(finish(b, &a, &bad, &last, 1, &out, &err), ERR_NOT_FOUND);
    bad = u;
    bad.key = STR("other");
    CHECK_ERR(finish(b, &a, &bad, &last, 1, &out, &err), ERR_NOT_FOUND);
    lab_expect(b, "k", STR_EMPTY, STR_EMPTY);
    CHECK_OK(finish(b, &a, &u, &last, 1, &out, &err));
    lab_expect(b, "k", STR_EMPTY, STR("last"));
    b->ops->unref(b);
    arena_release(&a);
}

void conform_finishing_twice_answers_the_same(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct put_result first, again;
    struct err err = {0};

    if (!lab->plain)
        CHECK_OK(b->ops->set_versions(b, true, &err));
    struct upload_info u = lab_upload(b, &a, "k");
    struct upload_part part = lab_part(b, &a, &u, 1, STR("body"));
    CHECK_OK(finish(b, &a, &u, &part, 1, &first, &err));
    CHECK_OK(finish(b, &a, &u, &part, 1, &again, &err));
    CHECK_STR(again.etag, first.etag);
    CHECK_STR(again.version, first.version);
    CHECK_INT(again.modified_ms, first.modified_ms);
    lab_expect_list(b, &lab_everything, true, "k*");
    part.number = 2;
    CHECK_ERR(finish(b, &a, &u, &part, 1, &again, &err), ERR_NOT_FOUND);
    b->ops->unref(b);
    arena_release(&a);
}

void conform_finishing_again_elsewhere_finds_no_upload(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box"), *other = lab_bucket(lab->storage, "other");
    struct arena a = ARENA_INIT(0);
    struct upload_info u = lab_upload(b, &a, "k"), elsewhere = u;
    struct upload_part part = lab_part(b, &a, &u, 1, STR("body"));
    struct put_result out;
    struct err err = {0};

    CHECK_OK(finish(b, &a, &u, &part, 1, &out, &err));
    elsewhere.key = STR("l");
    CHECK_ERR(finish(b, &a, &elsewhere, &part, 1, &out, &err), ERR_NOT_FOUND);
    CHECK_ERR(finish(other, &a, &u, &part, 1, &out, &err), ERR_NOT_FOUND);
    CHECK_OK(finish(b, &a, &u, &part, 1, &out, &err));
    lab_expect_list(b, &lab_everything, true, "k*");
    other->ops->unref(other);
    b->ops->unref(b);
    arena_release(&a);
}

void conform_an_aborted_upload_is_gone(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct upload_info u = lab_upload(b, &a, "k");
    struct put_options o = {0};
    struct upload_part part = lab_part(b, &a, &u, 1, STR("body")), out;
    struct put_result put;
    struct part_list parts;
    struct str_reader r;
    struct err err = {0};

    CHECK_OK(b->ops->upload_abort(b, &u, &err));
    CHECK_ERR(b->ops->upload_abort(b, &u, &err), ERR_NOT_FOUND);
    str_reader_init(&r, STR("x"));
    CHECK_ERR(b->ops->upload_part(b, &a, &u, 1, &r.reader, 1, &o, &out, &err), ERR_NOT_FOUND);
    CHECK_ERR(finish(b, &a, &u, &part, 1, &put, &err), ERR_NOT_FOUND);
    CHECK_ERR(b->ops->list_parts(b, &a, &u, 0, 10, &parts, &err), ERR_NOT_FOUND);
    CHECK_OK(storage_remove_bucket(lab->storage, STR("owner"), STR("box"), &err));
    b->ops->unref(b);
    arena_release(&a);
}

static struct upload_part part_from(struct bucket *b, struct arena *a, const struct upload_info *u,
                                    uint32_t number, const char *key, struct object_range range)
{
    struct get_result got;
    struct upload_part out = {0};
    struct err err = {0};

    CHECK_OK(lab_head(b, a, str_z(key), STR_EMPTY, NULL, &got, &err));
    CHECK_OK(b->ops->upload_part_copy(b, a, u, number, b, &got.info, &range, &out, &err));
    return out;
}

void conform_a_part_may_be_a_range_of_an_object(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    size_t len = size_max(lab->part_min, 300 * KIB);
    struct str large = lab_bytes(len * 2, 1), small = lab_bytes(1000, 2);
    struct buf want = BUF_INIT(256 * MIB);
    struct put_result out;
    struct digest_value md5;
    struct err err = {0};

    lab_put(b, &a, "large", large);
    lab_put(b, &a, "small", small);
    struct upload_info u = lab_upload(b, &a, "k");
    struct upload_part parts[4] = {
        part_from(b, &a, &u, 1, "large", (struct object_range){.kind = RANGE_ALL}),
        part_from(b, &a, &u, 2, "large", (struct object_range){RANGE_FROM_TO, 5, len + 4}),
        lab_part(b, &a, &u, 3, large),
        part_from(b, &a, &u, 4, "small", (struct object_range){RANGE_FROM_TO, 10, 29}),
    };
    digest_of(DIGEST_MD5, str_head(str_skip(large, 5), len), &md5);
    struct buf hex = BUF_INIT(0);
    buf_append_hex(&hex, md5.bytes, md5.len);
    CHECK_STR(parts[1].etag, buf_str(&hex));
    CHECK_INT(parts[1].size, len);
    buf_append_str(&want, large);
    buf_append_str(&want, str_head(str_skip(large, 5), len));
    buf_append_str(&want, large);
    buf_append_str(&want, str_head(str_skip(small, 10), 20));
    lab_remove(b, &a, "large", STR_EMPTY);
    lab_remove(b, &a, "small", STR_EMPTY);
    CHECK_OK(finish(b, &a, &u, parts, 4, &out, &err));
    lab_expect(b, "k", STR_EMPTY, buf_str(&want));
    /* A range over two parts of the object, and one within a part. */
    struct upload_info v = lab_upload(b, &a, "k2");
    parts[0] = part_from(b, &a, &v, 1, "k", (struct object_range){RANGE_FROM_TO, 7, 2 * len + 7});
    parts[1] = part_from(b, &a, &v, 2, "k",
                         (struct object_range){RANGE_FROM_TO, 2 * len + 1, 2 * len + 9});
    lab_remove(b, &a, "k", STR_EMPTY);
    CHECK_OK(finish(b, &a, &v, parts, 2, &out, &err));
    struct buf second = BUF_INIT(256 * MIB);
    buf_append_str(&second, str_head(str_skip(buf_str(&want), 7), 2 * len + 1));
    buf_append_str(&second, str_head(str_skip(buf_str(&want), 2 * len + 1), 9));
    lab_expect(b, "k2", STR_EMPTY, buf_str(&second));
    buf_release(&want);
    buf_release(&second);
    buf_release(&hex);
    b->ops->unref(b);
    arena_release(&a);
}

/* The object is the same as without the MD5, with the same ETag. */
void conform_a_part_may_be_a_range_whose_md5_is_known(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    size_t len = size_max(lab->part_min, 300 * KIB);
    struct str large = lab_bytes(len * 2, 1);
    struct object_range range = {RANGE_FROM_TO, 5, len + 4};
    struct upload_part parts[2] = {0}, plain;
    struct put_result out;
    struct get_result got;
    struct digest_value md5;
    struct err err = {0};

    lab_put(b, &a, "large", large);
    CHECK_OK(lab_head(b, &a, STR("large"), STR_EMPTY, NULL, &got, &err));
    struct upload_info u = lab_upload(b, &a, "k");
    plain = part_from(b, &a, &u, 9, "large", range);
    digest_of(DIGEST_MD5, str_head(str_skip(large, 5), len), &md5);
    parts[0].etag = arena_hex(&a, md5.bytes, md5.len);
    CHECK_OK(b->ops->upload_part_copy(b, &a, &u, 1, b, &got.info, &range, &parts[0], &err));
    CHECK_STR(parts[0].etag, plain.etag);
    CHECK_INT(parts[0].size, len);
    CHECK_INT(parts[0].number, 1);
    parts[1] = lab_part(b, &a, &u, 2, STR("end"));
    CHECK_OK(finish(b, &a, &u, parts, 2, &out, &err));
    struct buf want = BUF_INIT(256 * MIB);
    buf_append_str(&want, str_head(str_skip(large, 5), len));
    buf_append_z(&want, "end");
    lab_expect(b, "k", STR_EMPTY, buf_str(&want));
    buf_release(&want);
    b->ops->unref(b);
    arena_release(&a);
}

/* Continues a listing of uploads in arenas of growing sizes. A full arena may end the listing at
 * any step; it never makes it begin at another place. */
static void expect_bounded_listing(struct bucket *b, const struct list_options *o, struct str id)
{
    enum { STEP = 16, MOST = 8 * KIB };
    struct upload_list uploads;
    struct err err = {0};
    unsigned listed = 0;

    for (size_t max = STEP; max <= MOST; max += STEP) {
        struct arena small = ARENA_INIT(max);
        int code = b->ops->list_uploads(b, &small, o, &uploads, &err);

        CHECK(code == 0 || code == ERR_NO_MEMORY);
        if (code == 0) {
            CHECK_STR(uploads.uploads[0].id, id);
            listed++;
        }
        arena_release(&small);
    }
    CHECK(listed > 0 && listed < MOST / STEP);
}

void conform_uploads_and_parts_are_listed(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct list_options o = {.limit = 2};
    struct upload_list uploads;
    struct part_list parts;
    struct err err = {0};
    struct upload_info first = lab_upload(b, &a, "a"), second = lab_upload(b, &a, "a"),
                       third = lab_upload(b, &a, "d/1");

    lab_upload(b, &a, "d/2");
    CHECK_OK(b->ops->list_uploads(b, &a, &o, &uploads, &err));
    CHECK_INT(uploads.count, 2);
    CHECK(uploads.more);
    CHECK_STR(uploads.uploads[0].id, first.id);
    CHECK_STR(uploads.uploads[1].id, second.id);
    CHECK_STR(uploads.next_key, STR("a"));
    CHECK_STR(uploads.next_id, second.id);
    CHECK(uploads.uploads[0].started_ms > 0);
    o.after = STR("a");
    o.after_version = first.id;
    CHECK_OK(b->ops->list_uploads(b, &a, &o, &uploads, &err));
    CHECK_STR(uploads.uploads[0].id, second.id);
    CHECK_STR(uploads.uploads[1].id, third.id);
    CHECK(uploads.more);
    expect_bounded_listing(b, &o, second.id);
    o = (struct list_options){.limit = 10, .delimiter = STR("/")};
    CHECK_OK(b->ops->list_uploads(b, &a, &o, &uploads, &err));
    CHECK_INT(uploads.count, 2);
    CHECK_INT(uploads.prefix_count, 1);
    CHECK_STR(uploads.prefixes[0], STR("d/"));
    o = (struct list_options){.limit = 10, .after = STR("a")};
    CHECK_OK(b->ops->list_uploads(b, &a, &o, &uploads, &err));
    CHECK_INT(uploads.count, 2);
    for (uint32_t n = 1; n <= 5; n++)
        lab_part(b, &a, &first, 2 * n, STR("x"));
    CHECK_OK(b->ops->list_parts(b, &a, &first, 4, 2, &parts, &err));
    CHECK_INT(parts.count, 2);
    CHECK(parts.more);
    CHECK_INT(parts.parts[0].number, 6);
    CHECK_STR(parts.parts[0].etag, STR("9dd4e461268c8034f5c8564e155c67a6"));
    CHECK_STR(parts.upload.id, first.id);
    CHECK_OK(b->ops->list_parts(b, &a, &first, 8, 2, &parts, &err));
    CHECK_INT(parts.count, 1);
    CHECK(!parts.more);
    CHECK_OK(b->ops->list_parts(b, &a, &second, 0, 2, &parts, &err));
    CHECK_INT(parts.count, 0);
    b->ops->unref(b);
    arena_release(&a);
}

void conform_a_reader_keeps_what_it_reads(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct str one = lab_bytes(lab->part_min + 300 * KIB, 1), two = lab_bytes(100, 2);
    struct buf whole = BUF_INIT(256 * MIB), body = BUF_INIT(256 * MIB);
    struct get_result single, chain;
    struct put_result out;
    struct err err = {0};
    struct upload_info u = lab_upload(b, &a, "parts");
    struct upload_part parts[] = {lab_part(b, &a, &u, 1, one), lab_part(b, &a, &u, 2, two)};

    CHECK_OK(finish(b, &a, &u, parts, 2, &out, &err));
    lab_put(b, &a, "single", one);
    CHECK_OK(lab_get(b, &a, STR("single"), STR_EMPTY, NULL, NULL, &single, &err));
    CHECK_OK(lab_get(b, &a, STR("parts"), STR_EMPTY, NULL, NULL, &chain, &err));
    lab_put(b, &a, "single", STR("new"));
    lab_remove(b, &a, "parts", STR_EMPTY);
    CHECK_OK(reader_read_all(single.body, &body, &err));
    CHECK(str_eq(buf_str(&body), one));
    buf_reset(&body);
    CHECK_OK(reader_read_all(chain.body, &body, &err));
    buf_append_str(&whole, one);
    buf_append_str(&whole, two);
    CHECK(str_eq(buf_str(&body), buf_str(&whole)));
    reader_close(single.body);
    reader_close(chain.body);
    buf_release(&whole);
    buf_release(&body);
    b->ops->unref(b);
    arena_release(&a);
}
