/* A bundle in a local storage, and what it should be. */
#include "unit/archive/bundle_lab.h"

#include "base/bytes.h"
#include "base/hex.h"
#include "unit/archive/packs.h"
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>

static const struct bundle_sizes lab_sizes = {
    .small = 2000, .lead = 1000, .part = 3000, .copy = 9000};

void bundle_lab_open(struct bundle_lab *l, bool is_sha256, bool any_length)
{
    *l = (struct bundle_lab){.is_sha256 = is_sha256, .seed = 7, .arena = ARENA_INIT(0)};
    local_lab_open(&l->store,
                   &(struct local_options){.part_min = 1000, .reserve_bytes = 1, .inline_max = 1});
    l->box = lab_bucket(l->store.lab.storage, "box");
    watched_bucket_init(&l->watched, l->box, any_length);
    l->job = (struct bundle_job){.bucket = &l->watched.bucket,
                                 .arena = &l->arena,
                                 .key = STR("r.bundle"),
                                 .now_s = 1000,
                                 .check = {.walk = true, .limits = pack_test_limits},
                                 .source_id = STR("R_42"),
                                 .fence = 5,
                                 .sizes = &lab_sizes};
}

void bundle_lab_close(struct bundle_lab *l)
{
    buf_release(&l->entries);
    arena_release(&l->arena);
    l->box->ops->unref(l->box);
    local_lab_close(&l->store);
}

void bundle_lab_pack(struct bundle_lab *l, struct buf *pack, uint32_t count, bool ref_deltas)
{
    static const enum pack_type types[] = {PACK_COMMIT, PACK_TREE,      PACK_BLOB,
                                           PACK_TAG,    PACK_OFS_DELTA, PACK_REF_DELTA};
    size_t begin = pack->len, kinds = ARRAY_SIZE(types) - (ref_deltas ? 0 : 1);
    char data[300];
    uint64_t last = 0;

    pack_begin(pack, count);
    for (uint32_t i = 0; i < count; i++) {
        enum pack_type type = types[i == 0 ? 0 : (unsigned)rand_r(&l->seed) % kinds];
        if (ref_deltas && i == 1)
            type = PACK_REF_DELTA;
        size_t len = (size_t)rand_r(&l->seed) % sizeof(data);
        for (size_t b = 0; b < len; b++)
            data[b] = (char)rand_r(&l->seed);
        last = pack_entry(pack, begin, type, str_n(data, len), last, l->is_sha256);
    }
    buf_append_str(&l->entries, str_skip(buf_str(pack), begin + PACK_HEADER_LEN));
    l->objects += count;
    pack_finish(pack, begin, l->is_sha256);
}

void bundle_lab_refs(struct git_refs *r, bool is_sha256, unsigned char first, size_t count)
{
    char id[2 * GIT_ID_MAX + 1], name[64];
    struct err err = {0};

    git_refs_init(r, is_sha256);
    for (size_t i = 0; i < count; i++) {
        size_t len = git_id_len(is_sha256);
        for (size_t b = 0; b < len; b++)
            snprintf(id + 2 * b, 3, "%02x", (unsigned)((first + (b < 8 ? i >> 8 * b : 0)) & 255));
        snprintf(name, sizeof(name), "refs/heads/b%05zu", i);
        if (i == 0)
            CHECK_OK(git_refs_add(r, str_z(id), STR("HEAD"), &err));
        CHECK_OK(git_refs_add(r, str_z(id), str_z(name), &err));
    }
    if (count)
        git_refs_set_head_target(r, STR("refs/heads/b00000"));
    CHECK_OK(git_refs_sort(r, &err));
}

int bundle_lab_put(struct bundle_lab *l, const struct git_refs *refs, uint32_t count,
                   struct bundle_result *out, struct err *err)
{
    struct buf pack = BUF_INIT(256 * MIB);
    struct str_reader from;

    bundle_lab_pack(l, &pack, count, false);
    str_reader_init(&from, buf_str(&pack));
    int code = bundle_put_full(&l->job, refs, &from.reader, STR_EMPTY, out, err);
    buf_release(&pack);
    return code;
}

int bundle_lab_append(struct bundle_lab *l, const struct git_refs *refs, uint32_t count,
                      struct bundle_result *out, struct err *err)
{
    struct buf pack = BUF_INIT(256 * MIB);
    size_t had = l->entries.len;
    struct bundle_old old;
    struct str_reader from;

    CHECK_INT(bundle_open(&old, &l->job, err), 0);
    bundle_lab_pack(l, &pack, count, false);
    str_reader_init(&from, buf_str(&pack));
    l->job.now_s += 10;
    int code = bundle_append(&l->job, &old, refs, &from.reader, out, err);
    if (code < 0) { /* the bundle is as it was */
        l->entries.len = had;
        l->objects -= count;
    }
    bundle_old_release(&old);
    buf_release(&pack);
    return code;
}

void bundle_lab_read(struct bundle_lab *l, struct buf *out)
{
    struct get_result got;
    struct err err = {0};

    CHECK_OK(l->box->ops->get(l->box, &l->arena, l->job.key, STR_EMPTY, NULL, NULL, &got, &err));
    CHECK_OK(reader_read_all(got.body, out, &err));
    reader_close(got.body);
}

void bundle_lab_expect_no_upload(struct bundle_lab *l)
{
    struct list_options all = {.limit = 10};
    struct upload_list uploads;
    struct err err = {0};

    CHECK_OK(l->box->ops->list_uploads(l->box, &l->arena, &all, &uploads, &err));
    CHECK_INT(uploads.count, 0);
    local_lab_expect_whole(&l->store);
}

void bundle_lab_expect(struct bundle_lab *l)
{
    struct buf all = BUF_INIT(256 * MIB), want = BUF_INIT(256 * MIB);
    struct bundle_old old;
    struct err err = {0};

    bundle_lab_read(l, &all);
    CHECK_OK(bundle_open(&old, &l->job, &err));
    pack_begin(&want, l->objects);
    buf_append_str(&want, buf_str(&l->entries));
    pack_finish(&want, 0, l->is_sha256);
    CHECK(str_eq(str_skip(buf_str(&all), old.header.pack_at), buf_str(&want)));
    CHECK(old.has_meta);
    CHECK_INT(old.objects, l->objects);
    CHECK_STR(str_z(old.meta.refs_digest), str_z(old.refs_digest));
    CHECK_STR(str_z(old.meta.source_id), l->job.source_id);
    CHECK_INT(old.meta.mtime_ms, l->job.now_s * 1000);
    if (old.meta.pack_sum[0]) {
        char sum[2 * PACK_HASH_MAX + 1] = {0};
        hex_write(sum, want.p + want.len - git_id_len(l->is_sha256), git_id_len(l->is_sha256));
        CHECK_STR(str_z(old.meta.pack_sum), str_z(sum));
    }
    bundle_old_release(&old);
    bundle_lab_expect_no_upload(l);
    buf_release(&all);
    buf_release(&want);
}
