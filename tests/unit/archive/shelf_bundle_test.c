/* Bundles on a shelf: in folders and behind S3, on a bucket that seals, and under a lock that is
 * lost. */
#include "archive/bundle.h"
#include "archive/shelf_bucket.h"
#include "meta/keyring.h"
#include "object/overlay.h"
#include "unit/archive/bundle_lab.h"
#include "unit/archive/packs.h"
#include "unit/archive/satellites_lab.h"

#include <stdio.h>

static const struct bundle_sizes shelf_sizes = {
    .small = 300, .lead = LAB_PART_MIN, .part = 3000, .copy = 1 << 20};

/* A shelf with a bundle, and the entries that the bundle should have. */
struct shelf_bundle {
    struct shelf shelf;
    struct shelf_bucket bucket;
    struct bundle_lab model; /* only the members that make packs */
    struct bundle_job job;
};

static void shelf_bundle_open(struct shelf_bundle *b, struct satellites_lab *lab)
{
    struct archive_account c = satellites_lab_account(lab, "octocat");
    struct err err = {0};

    *b = (struct shelf_bundle){.model.seed = 3};
    CHECK_OK(shelf_open(&b->shelf, lab->satellites, &lab->arena, &c, &err));
    CHECK_OK(shelf_bucket_init(&b->bucket, &b->shelf, &err));
    b->job = (struct bundle_job){.bucket = &b->bucket.bucket,
                                 .arena = &lab->arena,
                                 .key = satellites_lab_key(lab, "octocat", "r.bundle"),
                                 .now_s = 1000,
                                 .check = {.walk = true, .limits = pack_test_limits},
                                 .source_id = STR("7"),
                                 .fence = 5,
                                 .sizes = &shelf_sizes};
}

static void shelf_bundle_close(struct shelf_bundle *b)
{
    buf_release(&b->model.entries);
    shelf_close(&b->shelf);
}

/* Stores a first pack, or appends one; the first ref is at an id that begins with `tip`. */
static int shelf_bundle_sync(struct shelf_bundle *b, uint32_t count, unsigned char tip,
                             struct bundle_result *out, struct err *err)
{
    struct buf pack = BUF_INIT(256 * MIB);
    struct git_refs refs;
    struct str_reader from;
    struct bundle_old old;

    bundle_lab_refs(&refs, false, tip, 3);
    bundle_lab_pack(&b->model, &pack, count, false);
    str_reader_init(&from, buf_str(&pack));
    b->job.now_s += 10;
    int code = bundle_open(&old, &b->job, err);
    if (code == ERR_NOT_FOUND)
        code = bundle_put_full(&b->job, &refs, &from.reader, STR_EMPTY, out, err);
    else if (code == 0)
        code = bundle_append(&b->job, &old, &refs, &from.reader, out, err);
    bundle_old_release(&old);
    git_refs_release(&refs);
    buf_release(&pack);
    return code;
}

static void shelf_bundle_expect(struct shelf_bundle *b, struct satellites_lab *lab)
{
    struct buf all = BUF_INIT(256 * MIB), want = BUF_INIT(256 * MIB);
    struct bundle_old old;
    struct err err = {0};

    CHECK_OK(shelf_read(&b->shelf, &lab->arena, b->job.key, 256 * MIB, &all, NULL, &err));
    CHECK_OK(bundle_open(&old, &b->job, &err));
    pack_begin(&want, b->model.objects);
    buf_append_str(&want, buf_str(&b->model.entries));
    pack_finish(&want, 0, false);
    CHECK(str_eq(str_skip(buf_str(&all), old.header.pack_at), buf_str(&want)));
    CHECK_INT(old.meta.mtime_ms, b->job.now_s * 1000);
    bundle_old_release(&old);
    buf_release(&all);
    buf_release(&want);
}

SATELLITES_TEST(archive_shelf_bundle, bundles_are_stored_and_appended_to_by_copies)
{
    struct bundle_result out = {0};
    struct shelf_bundle b;
    size_t aborted;
    struct err err = {0};

    satellites_lab_add(lab, 3);
    shelf_bundle_open(&b, lab);
    for (unsigned char round = 1; round <= 5; round++) {
        if (round == 2) /* now there is a bucket, whose capabilities are known */
            CHECK_OK(shelf_bucket_init(&b.bucket, &b.shelf, &err));
        CHECK_OK(shelf_bundle_sync(&b, round == 1 ? 60 : 5, round, &out, &err));
        CHECK_INT(out.copied > 0, round > 1);
        CHECK_INT(out.meta.appends, round - 1);
        shelf_bundle_expect(&b, lab);
    }
    CHECK_OK(shelf_abort_uploads(&b.shelf, 0, &aborted, &err));
    CHECK_INT(aborted, 0);
    shelf_bundle_close(&b);
}

/* --- sealed buckets --- */

static void seal_bucket(struct satellites_lab *lab, const char *name)
{
    static const char document[] =
        "<ServerSideEncryptionConfiguration><Rule><ApplyServerSideEncryptionByDefault>"
        "<SSEAlgorithm>AES256</SSEAlgorithm></ApplyServerSideEncryptionByDefault></Rule>"
        "</ServerSideEncryptionConfiguration>";
    struct bucket *b = NULL;
    struct err err = {0};

    CHECK_OK(storage_open_bucket(&b, routes_storage(lab->routes, str_z(name)), STR_EMPTY,
                                 STR("github.com"), &err));
    CHECK_OK(b->ops->set_document(b, "encryption", str_z(document), &err));
    b->ops->unref(b);
}

/* A bundle that is not sealed yet is read and put, because its bytes cannot be shared; so is one
 * that is sealed. */
static void sealed_bundles(struct satellites_lab *lab)
{
    struct bundle_result out = {0};
    struct shelf_bundle b;
    struct object_info info;
    struct keyring *keys;
    struct err err = {0};
    char path[256];

    snprintf(path, sizeof(path), "%s/encryption.keys", test_dir());
    keys = keyring_new(path);
    lab->options.env.keys = keys;
    satellites_lab_restart(lab);
    satellites_lab_add(lab, 3);
    shelf_bundle_open(&b, lab);
    for (unsigned char round = 1; round <= 4; round++) {
        if (round == 3)
            seal_bucket(lab, "europe-west-1");
        CHECK_OK(shelf_bundle_sync(&b, round == 1 ? 60 : 5, round, &out, &err));
        CHECK_INT(out.copied > 0, round == 2);
        shelf_bundle_expect(&b, lab);
        CHECK_INT(satellites_lab_look(lab, "europe-west-1", b.job.key, &info, NULL), 0);
        CHECK_INT(info.meta.encryption.len > 0, round >= 3);
    }
    shelf_bundle_close(&b);
    lab->options.env.keys = NULL;
    satellites_lab_restart(lab);
    keyring_free(keys);
}

TEST(archive_shelf_bundle, a_bucket_with_default_encryption_gets_sealed_bundles)
{
    satellites_lab_run(four_open_embedded, LAB_LOCAL, sealed_bundles);
}
