/* Bundles in a storage: stored, opened, appended to, by one put and by part copies. What git makes
 * of them is tested in tests/e2e/test_archive_bundles.py. */
#include "archive/audit.h"
#include "os/file.h"
#include "unit/archive/bundle_lab.h"
#include "unit/archive/packs.h"
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>

/* Runs a test over SHA-1 and SHA-256, and over storages that take any length and that do not. */
static void over_all(void (*fn)(struct bundle_lab *l))
{
    for (int i = 0; i < 4; i++) {
        struct bundle_lab l;
        char command[300];
        bundle_lab_open(&l, i & 1, i & 2);
        fn(&l);
        bundle_lab_close(&l);
        snprintf(command, sizeof(command), "rm -rf %s/db %s/storage", test_dir(), test_dir());
        CHECK_INT(system(command), 0);
    }
}

static void empty_repository(struct bundle_lab *l)
{
    struct bundle_result out;
    struct buf all = BUF_INIT(0);
    struct git_refs refs;
    struct err err = {0};

    git_refs_init(&refs, l->is_sha256);
    CHECK_OK(bundle_put_full(&l->job, &refs, NULL, STR_EMPTY, &out, &err));
    bundle_lab_read(l, &all);
    CHECK_INT(all.len, l->is_sha256 ? 83 : 49);
    bundle_lab_expect(l);
    buf_release(&all);
    git_refs_release(&refs);
    /* and its first commit */
    bundle_lab_refs(&refs, l->is_sha256, 1, 2);
    CHECK_OK(bundle_lab_append(l, &refs, 12, &out, &err));
    CHECK_INT(out.meta.appends, 0);
    bundle_lab_expect(l);
    git_refs_release(&refs);
}

TEST(archive_bundle, empty_repo_49_bytes)
{
    over_all(empty_repository);
}

static void full_and_appends(struct bundle_lab *l)
{
    struct bundle_result out;
    struct git_refs refs;
    struct err err = {0};

    bundle_lab_refs(&refs, l->is_sha256, 1, 3);
    CHECK_OK(bundle_lab_put(l, &refs, 100, &out, &err));
    CHECK_INT(out.pack_objects, 100);
    CHECK_INT(out.meta.ref_deltas, REF_DELTAS_NONE);
    CHECK_INT(out.sent, l->watched.written);
    git_refs_release(&refs);
    bundle_lab_expect(l);
    for (unsigned round = 1; round <= 12; round++) {
        struct get_result before;
        CHECK_OK(l->box->ops->head(l->box, &l->arena, l->job.key, STR_EMPTY, NULL, &before, &err));
        l->watched.read = l->watched.written = l->watched.copies = 0;
        bundle_lab_refs(&refs, l->is_sha256, (unsigned char)(1 + round), 3);
        CHECK_OK(bundle_lab_append(l, &refs, round % 4 ? round : 60, &out, &err));
        CHECK_INT(out.meta.appends, round);
        CHECK_INT(out.meta.ref_deltas, REF_DELTAS_NONE);
        CHECK_INT(out.sent, l->watched.written);
        CHECK(l->watched.copies > 0);
        /* old bytes are read once, beside the header, which is read to ask and once more */
        CHECK(l->watched.read <= before.info.size + out.meta.pack_offset + 64 * 1024);
        /* beyond the new pack and the header at most two leads are written */
        CHECK(l->watched.written <= out.pack_bytes + out.meta.pack_offset + 2 * 1000);
        git_refs_release(&refs);
        bundle_lab_expect(l);
    }
}

TEST(archive_bundle, an_append_writes_the_change_and_reads_the_old_bytes_once)
{
    over_all(full_and_appends);
}

/* When the buffers of the process have no room, parts are collected in scratch files. */
static void scratch_parts(struct bundle_lab *l)
{
    struct large_room room;
    struct large_hold hold = {.room = &room};

    large_room_init(&room);
    CHECK(large_try(&hold, LARGE_BUFFERS_MAX));
    l->job.hold = &hold;
    l->job.scratch = test_dir();
    full_and_appends(l);
    CHECK_INT(atomic_load(&room.buffers.used), LARGE_BUFFERS_MAX);
    large_give(&hold, LARGE_BUFFERS_MAX);
    large_release(&hold);
}

TEST(archive_bundle, parts_lie_in_scratch_files_when_the_buffers_are_full)
{
    over_all(scratch_parts);
}

static void only_the_header(struct bundle_lab *l)
{
    struct bundle_result out;
    struct bundle_old old;
    struct git_refs refs, less, none;
    struct err err = {0};

    bundle_lab_refs(&refs, l->is_sha256, 1, 3);
    CHECK_OK(bundle_lab_put(l, &refs, 100, &out, &err));
    bundle_lab_refs(&less, l->is_sha256, 1, 2);
    CHECK_OK(bundle_open(&old, &l->job, &err));
    l->job.now_s = 2000;
    l->watched.written = 0;
    CHECK_OK(bundle_append(&l->job, &old, &less, NULL, &out, &err));
    bundle_old_release(&old);
    CHECK(l->watched.written <= out.meta.pack_offset + 2 * 1000);
    CHECK_INT(out.meta.appends, 0);
    bundle_lab_expect(l);
    CHECK_OK(bundle_open(&old, &l->job, &err));
    CHECK_INT(old.header.points.len, 1);
    /* an emptied repository keeps its pack and its history */
    git_refs_init(&none, l->is_sha256);
    l->job.now_s = 3000;
    CHECK_OK(bundle_append(&l->job, &old, &none, NULL, &out, &err));
    bundle_old_release(&old);
    bundle_lab_expect(l);
    CHECK_OK(bundle_open(&old, &l->job, &err));
    CHECK_INT(old.header.points.len, 3);
    struct git_refs past;
    git_refs_init(&past, l->is_sha256);
    bundle_header_at(&past, &old.header, 1999);
    CHECK_INT(past.list.len, 3);
    git_refs_release(&past);
    bundle_old_release(&old);
    git_refs_release(&refs);
    git_refs_release(&less);
    git_refs_release(&none);
}

/* The time of the first sync stays, whatever is written later; a fresh bundle has its own. */
static void first_sync(struct bundle_lab *l)
{
    struct bundle_result out;
    struct object_info info;
    struct get_result head;
    struct bundle_meta meta;
    struct git_refs refs;
    struct err err = {0};

    l->job.now_s = 5000;
    bundle_lab_refs(&refs, l->is_sha256, 1, 3);
    CHECK_OK(bundle_lab_put(l, &refs, 100, &out, &err));
    CHECK_INT(out.meta.first_s, 5000);
    git_refs_release(&refs);
    for (unsigned char round = 2; round < 5; round++) {
        l->job.now_s = 6000 + round;
        bundle_lab_refs(&refs, l->is_sha256, round, 3);
        CHECK_OK(bundle_lab_append(l, &refs, 60, &out, &err));
        CHECK_INT(out.meta.first_s, 5000);
        git_refs_release(&refs);
    }
    CHECK_OK(l->box->ops->head(l->box, &l->arena, l->job.key, STR_EMPTY, NULL, &head, &err));
    info = head.info;
    CHECK_INT(bundle_meta_read(&meta, &info), 0);
    CHECK_INT(meta.first_s, 5000);
    CHECK_INT(meta.mtime_ms, l->job.now_s * 1000);
    git_refs_init(&refs, l->is_sha256);
    CHECK_OK(bundle_put_full(&l->job, &refs, NULL, info.etag, &out, &err));
    CHECK_INT(out.meta.first_s, l->job.now_s);
    git_refs_release(&refs);
}

TEST(archive_bundle, the_time_of_the_first_sync_stays)
{
    over_all(first_sync);
}

TEST(archive_bundle, refs_that_moved_change_only_the_header)
{
    over_all(only_the_header);
}

static void unread_by_copies(struct bundle_lab *l)
{
    struct bundle_result out;
    struct git_refs refs;
    struct err err = {0};

    bundle_lab_refs(&refs, l->is_sha256, 1, 3);
    CHECK_OK(bundle_lab_put(l, &refs, 100, &out, &err));
    l->watched.copies_no_parts = true;
    git_refs_release(&refs);
    bundle_lab_refs(&refs, l->is_sha256, 2, 3);
    CHECK_OK(bundle_lab_append(l, &refs, 10, &out, &err));
    CHECK_INT(out.copied, 0);
    bundle_lab_expect(l);
    git_refs_release(&refs);
}

TEST(archive_bundle, a_storage_that_copies_no_parts_gets_all_bytes)
{
    over_all(unread_by_copies);
}

/* --- what must leave the stored bundle as it was --- */

static void expect_unchanged(struct bundle_lab *l, struct str before)
{
    struct buf now = BUF_INIT(256 * MIB);

    bundle_lab_read(l, &now);
    CHECK(str_eq(buf_str(&now), before));
    buf_release(&now);
    bundle_lab_expect_no_upload(l);
}

static void bad_packs(struct bundle_lab *l)
{
    static const struct {
        const char *what;
        int code;
    } bad[] = {{"cut", ERR_PARSE}, {"flip", ERR_PARSE}, {"more", ERR_PARSE}, {"none", ERR_PARSE}};
    struct bundle_result out;
    struct bundle_old old;
    struct git_refs refs;
    struct buf before = BUF_INIT(256 * MIB);
    struct err err = {0};

    bundle_lab_refs(&refs, l->is_sha256, 1, 3);
    for (size_t i = 0; i < 2 * ARRAY_SIZE(bad); i++) {
        struct buf pack = BUF_INIT(256 * MIB);
        struct str_reader from;
        size_t kind = i % ARRAY_SIZE(bad);
        bool first = i < ARRAY_SIZE(bad);
        if (i == ARRAY_SIZE(bad)) {
            buf_reset(&l->entries);
            l->objects = 0;
            CHECK_OK(bundle_lab_put(l, &refs, 100, &out, &err));
            bundle_lab_read(l, &before);
        }
        bundle_lab_pack(l, &pack, 80, false);
        if (kind == 0)
            pack.len -= 7;
        if (kind == 1)
            pack.p[pack.len / 2] ^= 1;
        if (kind == 2)
            buf_append_char(&pack, 'x');
        if (kind == 3)
            pack.len = 11;
        str_reader_init(&from, buf_str(&pack));
        if (first) {
            CHECK_ERR(bundle_put_full(&l->job, &refs, &from.reader, STR_EMPTY, &out, &err),
                      bad[kind].code);
            CHECK_ERR(bundle_open(&old, &l->job, &err), ERR_NOT_FOUND);
            bundle_lab_expect_no_upload(l);
        } else {
            CHECK_OK(bundle_open(&old, &l->job, &err));
            CHECK_ERR(bundle_append(&l->job, &old, &refs, &from.reader, &out, &err),
                      bad[kind].code);
            bundle_old_release(&old);
            expect_unchanged(l, buf_str(&before));
        }
        buf_release(&pack);
    }
    git_refs_release(&refs);
    buf_release(&before);
}

TEST(archive_bundle, a_pack_that_does_not_hold_is_never_seen)
{
    over_all(bad_packs);
}

/* Replaces the stored object by other bytes, with its metadata. */
static void overwrite(struct bundle_lab *l, struct str bytes)
{
    struct get_result got;
    struct put_result put;
    struct str_reader from;
    struct err err = {0};

    CHECK_OK(l->box->ops->head(l->box, &l->arena, l->job.key, STR_EMPTY, NULL, &got, &err));
    struct put_options o = {.meta = got.info.meta};
    str_reader_init(&from, bytes);
    CHECK_OK(
        l->box->ops->put(l->box, &l->arena, l->job.key, &from.reader, bytes.len, &o, &put, &err));
}

static void flipped_bytes(struct bundle_lab *l)
{
    struct bundle_result out;
    struct buf before = BUF_INIT(256 * MIB), pack = BUF_INIT(256 * MIB);
    struct bundle_old old;
    struct git_refs refs;
    struct err err = {0};
    unsigned noticed = 0;

    bundle_lab_refs(&refs, l->is_sha256, 1, 3);
    CHECK_OK(bundle_lab_put(l, &refs, 60, &out, &err));
    bundle_lab_read(l, &before);
    bundle_lab_pack(l, &pack, 5, false);
    for (size_t at = 0; at < before.len; at += 1 + before.len / 150) {
        struct str_reader from;
        before.p[at] ^= 4;
        overwrite(l, buf_str(&before));
        str_reader_init(&from, buf_str(&pack));
        int code = bundle_open(&old, &l->job, &err);
        if (code == 0)
            code = bundle_append(&l->job, &old, &refs, &from.reader, &out, &err);
        bundle_old_release(&old);
        CHECK_ERR(code, ERR_CORRUPT);
        expect_unchanged(l, buf_str(&before));
        before.p[at] ^= 4;
        noticed++;
    }
    CHECK(noticed > 100);
    buf_release(&before);
    buf_release(&pack);
    git_refs_release(&refs);
}

TEST(archive_bundle, a_flipped_byte_anywhere_is_noticed_by_the_next_append)
{
    over_all(flipped_bytes);
}

/* A connection that breaks says nothing about the bundle, wherever it breaks. */
static void broken_connections(struct bundle_lab *l)
{
    char scratch[] = "/tmp/weir-audit-XXXXXX";
    struct audit_job audit = {.bucket = &l->watched.bucket,
                              .arena = &l->arena,
                              .key = l->job.key,
                              .verdict = STR("verdict.json"),
                              .scratch = mkdtemp(scratch)};
    struct audit_verdict verdict;
    struct buf pack = BUF_INIT(256 * MIB);
    struct bundle_result out;
    struct bundle_old old;
    struct git_refs refs;
    struct err err = {0};

    bundle_lab_refs(&refs, l->is_sha256, 1, 3);
    CHECK_OK(bundle_lab_put(l, &refs, 60, &out, &err));
    uint64_t pack_at = out.meta.pack_offset, size = out.put.size;
    uint64_t cuts[] = {1, pack_at, pack_at + 1, pack_at + 11, pack_at + 12, size / 2, size - 1};
    bundle_lab_pack(l, &pack, 5, false);
    for (size_t i = 0; i < ARRAY_SIZE(cuts); i++) {
        struct str_reader from;
        l->watched.read = 0;
        l->watched.cut_at = cuts[i];
        str_reader_init(&from, buf_str(&pack));
        int code = bundle_open(&old, &l->job, &err);
        if (code == 0) { /* an append reads from the pack on */
            l->watched.read = 0;
            l->watched.cut_at = cuts[i] > pack_at ? cuts[i] - pack_at : 1;
            code = bundle_append(&l->job, &old, &refs, &from.reader, &out, &err);
            bundle_old_release(&old);
        }
        CHECK_ERR(code, ERR_CLOSED);
        l->watched.read = 0;
        l->watched.cut_at = cuts[i];
        CHECK_ERR(audit_run(&verdict, &audit, &err), ERR_CLOSED);
        l->watched.cut_at = 0;
        CHECK_ERR(audit_look(&verdict, &audit, &err), ERR_NOT_FOUND);
    }
    CHECK_OK(dir_remove_tree(scratch, &err));
    git_refs_release(&refs);
    buf_release(&pack);
}

TEST(archive_bundle, a_connection_that_breaks_is_not_damage)
{
    over_all(broken_connections);
}

static void failing_calls(struct bundle_lab *l)
{
    struct bundle_result out;
    struct buf before = BUF_INIT(256 * MIB);
    struct git_refs refs;
    struct err err = {0};
    unsigned steps = 0;

    bundle_lab_refs(&refs, l->is_sha256, 1, 3);
    CHECK_OK(bundle_lab_put(l, &refs, 100, &out, &err));
    bundle_lab_read(l, &before);
    git_refs_release(&refs);
    bundle_lab_refs(&refs, l->is_sha256, 2, 3);
    for (unsigned at = 1;; at++) {
        l->watched.calls = 0;
        l->watched.fail_at = at;
        if (bundle_lab_append(l, &refs, 20, &out, &err) == 0)
            break;
        CHECK_INT(err.code, ERR_UNAVAILABLE);
        expect_unchanged(l, buf_str(&before));
        steps++;
    }
    CHECK(steps >= 4); /* begin, part, copy, part, finish */
    bundle_lab_expect(l);
    git_refs_release(&refs);
    buf_release(&before);
}

TEST(archive_bundle, a_storage_that_fails_at_any_step_keeps_the_old_bundle)
{
    over_all(failing_calls);
}

TEST(archive_bundle, of_two_writers_one_is_refused)
{
    struct bundle_lab l;
    struct bundle_result out;
    struct bundle_old one, two;
    struct buf pack = BUF_INIT(256 * MIB);
    struct git_refs refs, other;
    struct str_reader from;
    struct err err = {0};

    bundle_lab_open(&l, false, true);
    bundle_lab_refs(&refs, false, 1, 3);
    bundle_lab_refs(&other, false, 2, 3);
    CHECK_OK(bundle_lab_put(&l, &refs, 100, &out, &err));
    CHECK_ERR(bundle_lab_put(&l, &refs, 0, &out, &err), ERR_PRECONDITION); /* it is there */
    CHECK_OK(bundle_open(&one, &l.job, &err));
    CHECK_OK(bundle_open(&two, &l.job, &err));
    CHECK_OK(bundle_append(&l.job, &one, &other, NULL, &out, &err));
    bundle_lab_expect(&l);
    bundle_lab_pack(&l, &pack, 0, false);
    str_reader_init(&from, buf_str(&pack));
    CHECK_ERR(bundle_append(&l.job, &two, &other, &from.reader, &out, &err), ERR_PRECONDITION);
    bundle_lab_expect(&l);
    bundle_old_release(&one);
    bundle_old_release(&two);
    /* the bundle of a later worker */
    CHECK_OK(bundle_open(&one, &l.job, &err));
    l.job.fence = 4;
    CHECK_ERR(bundle_append(&l.job, &one, &refs, NULL, &out, &err), ERR_BUSY);
    l.job.fence = 5;
    bundle_lab_expect(&l);
    /* replacing what was set aside needs its ETag */
    CHECK_ERR(bundle_put_full(&l.job, &refs, NULL, STR("0123"), &out, &err), ERR_PRECONDITION);
    CHECK_OK(bundle_put_full(&l.job, &refs, NULL, one.info.etag, &out, &err));
    bundle_old_release(&one);
    git_refs_release(&refs);
    git_refs_release(&other);
    buf_release(&pack);
    bundle_lab_close(&l);
}

static void deltas_by_id(struct bundle_lab *l)
{
    struct bundle_result out;
    struct buf pack = BUF_INIT(256 * MIB);
    struct bundle_old old;
    struct git_refs refs;
    struct str_reader from;
    struct err err = {0};

    bundle_lab_refs(&refs, l->is_sha256, 1, 3);
    bundle_lab_pack(l, &pack, 60, true);
    str_reader_init(&from, buf_str(&pack));
    CHECK_OK(bundle_put_full(&l->job, &refs, &from.reader, STR_EMPTY, &out, &err));
    CHECK_INT(out.meta.ref_deltas, REF_DELTAS_SOME);
    bundle_lab_expect(l);
    /* the flag is there, or the next append looks */
    CHECK_ERR(bundle_lab_append(l, &refs, 5, &out, &err), ERR_UNSUPPORTED);
    bundle_lab_expect_no_upload(l);
    CHECK_OK(bundle_open(&old, &l->job, &err));
    CHECK(old.meta.ref_deltas != REF_DELTAS_NONE);
    /* refs may move all the same */
    CHECK_OK(bundle_append(&l->job, &old, &refs, NULL, &out, &err));
    CHECK_INT(out.meta.ref_deltas, old.meta.ref_deltas);
    bundle_old_release(&old);
    bundle_lab_expect(l);
    git_refs_release(&refs);
    buf_release(&pack);
}

TEST(archive_bundle, packs_with_deltas_by_id_are_stored_but_not_joined)
{
    over_all(deltas_by_id);
}

TEST(archive_bundle, a_new_pack_with_deltas_by_id_is_not_joined)
{
    struct bundle_lab l;
    struct bundle_result out;
    struct buf pack = BUF_INIT(256 * MIB), before = BUF_INIT(256 * MIB);
    struct bundle_old old;
    struct git_refs refs;
    struct str_reader from;
    struct err err = {0};

    bundle_lab_open(&l, false, true);
    bundle_lab_refs(&refs, false, 1, 3);
    CHECK_OK(bundle_lab_put(&l, &refs, 60, &out, &err));
    bundle_lab_read(&l, &before);
    bundle_lab_pack(&l, &pack, 10, true);
    str_reader_init(&from, buf_str(&pack));
    CHECK_OK(bundle_open(&old, &l.job, &err));
    CHECK_ERR(bundle_append(&l.job, &old, &refs, &from.reader, &out, &err), ERR_UNSUPPORTED);
    expect_unchanged(&l, buf_str(&before));
    bundle_old_release(&old);
    git_refs_release(&refs);
    buf_release(&pack);
    buf_release(&before);
    bundle_lab_close(&l);
}

/* Without the walk nobody has looked at the entries, so the first append does. */
TEST(archive_bundle, a_pack_that_was_only_hashed_is_walked_over_by_the_first_append)
{
    struct bundle_lab l;
    struct bundle_result out;
    struct git_refs refs;
    struct err err = {0};

    bundle_lab_open(&l, false, true);
    l.job.check.walk = false;
    bundle_lab_refs(&refs, false, 1, 3);
    CHECK_OK(bundle_lab_put(&l, &refs, 60, &out, &err));
    CHECK_INT(out.meta.ref_deltas, REF_DELTAS_UNKNOWN);
    CHECK_OK(bundle_lab_append(&l, &refs, 5, &out, &err));
    CHECK_INT(out.meta.ref_deltas, REF_DELTAS_NONE);
    bundle_lab_expect(&l);
    git_refs_release(&refs);
    bundle_lab_close(&l);
}

/* --- opening --- */

static void long_headers(struct bundle_lab *l)
{
    struct bundle_result out;
    struct bundle_old old;
    struct git_refs refs;
    struct err err = {0};

    bundle_lab_refs(&refs, l->is_sha256, 1, 5000); /* about 300 KB */
    CHECK_OK(bundle_lab_put(l, &refs, 50, &out, &err));
    l->watched.read = 0;
    CHECK_OK(bundle_open(&old, &l->job, &err));
    CHECK_INT(old.header.refs.list.len, 5000);
    CHECK_STR(old.header.refs.head_target, STR("refs/heads/b00000"));
    CHECK_STR(str_z(old.refs_digest), str_z(old.meta.refs_digest));
    bundle_old_release(&old);
    git_refs_release(&refs);
    bundle_lab_refs(&refs, l->is_sha256, 2, 5000);
    CHECK_OK(bundle_lab_append(l, &refs, 50, &out, &err));
    bundle_lab_expect(l);
    git_refs_release(&refs);
}

TEST(archive_bundle, a_long_header_is_read_by_ranges)
{
    over_all(long_headers);
}

TEST(archive_bundle, objects_that_are_not_bundles_are_damaged_and_kept)
{
    static const char *const bad[] = {"", "x", "# v2 git bundle\n\n", "# v2 git bundle\n\nPACK",
                                      "# v2 git bundle\n\nPACK\0\0\0\3\0\0\0\0"};
    struct bundle_lab l;
    struct bundle_old old;
    struct err err = {0};

    bundle_lab_open(&l, false, true);
    CHECK_ERR(bundle_open(&old, &l.job, &err), ERR_NOT_FOUND);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        lab_put(l.box, &l.arena, "r.bundle", i == 4 ? str_n(bad[i], 29) : str_z(bad[i]));
        CHECK_ERR(bundle_open(&old, &l.job, &err), ERR_CORRUPT);
    }
    bundle_lab_close(&l);
}

/* A bundle that another program has put has no metadata; it is read and appended to all the same.
 */
TEST(archive_bundle, a_bundle_without_metadata_describes_itself)
{
    struct bundle_lab l;
    struct bundle_result out;
    struct bundle_old old;
    struct buf all = BUF_INIT(256 * MIB);
    struct git_refs refs;
    struct err err = {0};

    bundle_lab_open(&l, false, true);
    bundle_lab_refs(&refs, false, 1, 3);
    CHECK_OK(bundle_lab_put(&l, &refs, 60, &out, &err));
    bundle_lab_read(&l, &all);
    lab_put(l.box, &l.arena, "r.bundle", buf_str(&all));
    CHECK_OK(bundle_open(&old, &l.job, &err));
    CHECK(!old.has_meta);
    CHECK_STR(str_z(old.refs_digest), str_z(out.meta.refs_digest));
    bundle_old_release(&old);
    CHECK_OK(bundle_lab_append(&l, &refs, 5, &out, &err));
    bundle_lab_expect(&l);
    git_refs_release(&refs);
    buf_release(&all);
    bundle_lab_close(&l);
}
