/* What a local storage keeps: over restarts, garbage, a full disk, and what listings cost. */
#include "unit/object/local_lab.h"

#include "base/clock.h"
#include "os/file.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SKIPPED = 77 };

TEST(local_keep, everything_is_there_after_a_restart)
{
    struct local_lab l;
    struct arena a = ARENA_INIT(0);
    struct str large = lab_bytes(600 * KIB, 1);
    struct bucket *b;
    struct err err = {0};

    local_lab_open(&l, NULL);
    b = lab_bucket(l.lab.storage, "b");
    CHECK_OK(b->ops->set_versions(b, true, &err));
    struct put_result old = lab_put(b, &a, "k", large);
    lab_put(b, &a, "k", STR("new"));
    struct upload_info u = lab_upload(b, &a, "u");
    struct upload_part part = lab_part(b, &a, &u, 1, large);
    b->ops->unref(b);
    local_lab_close(&l);
    local_lab_open(&l, NULL);
    CHECK_OK(l.lab.storage->ops->open_bucket(&b, l.lab.storage, STR("owner"), STR("b"), &err));
    lab_expect(b, "k", STR_EMPTY, STR("new"));
    lab_expect(b, "k", old.version, large);
    struct put_options o = {0};
    struct put_result out;
    CHECK_OK(b->ops->upload_finish(b, &a, &u, &part, 1, &o, &out, &err));
    lab_expect(b, "u", STR_EMPTY, large);
    struct put_result later = lab_put(b, &a, "k", STR("later"));
    CHECK(str_cmp(later.version, old.version) > 0);
    local_lab_expect_whole(&l);
    b->ops->unref(b);
    local_lab_close(&l);
    arena_release(&a);
}

TEST(local_keep, a_clock_that_went_back_repeats_no_sequence)
{
    struct local_lab l;
    struct arena a = ARENA_INIT(0);
    struct buf ahead = BUF_INIT(0), text = BUF_INIT(0);
    struct row row;
    struct bucket *b;
    struct err err = {0};

    local_lab_open(&l, NULL);
    b = lab_bucket(l.lab.storage, "b");
    CHECK_OK(b->ops->set_versions(b, true, &err));
    b->ops->unref(b);
    struct local *local = local_of(l.lab.storage);
    uint64_t hour = ((uint64_t)clock_wall_ms() + MS_PER_HOUR) * 1000; /* as if given out then */
    buf_append_be64(&ahead, hour);
    CHECK_OK(db_put(l.db, local->rows, row_tag(&row, local, TAG_SEQUENCE), buf_str(&ahead),
                    DB_DURABLE, &err));
    local_lab_close(&l);
    local_lab_open(&l, NULL);
    CHECK_OK(l.lab.storage->ops->open_bucket(&b, l.lab.storage, STR("owner"), STR("b"), &err));
    struct put_result one = lab_put(b, &a, "k", STR("1")), two = lab_put(b, &a, "k", STR("2"));
    buf_appendf(&text, "%016llx", (unsigned long long)hour);
    CHECK(str_cmp(str_head(one.version, 16), buf_str(&text)) > 0);
    CHECK(str_cmp(two.version, one.version) > 0);
    buf_release(&ahead);
    buf_release(&text);
    b->ops->unref(b);
    local_lab_close(&l);
    arena_release(&a);
}

TEST(local_keep, the_folder_of_another_storage_is_refused)
{
    struct local_lab l;
    struct storage *other = NULL;
    char path[256];
    struct err err = {0};

    local_lab_open(&l, NULL);
    struct local_options o = {.name = "other", .folder = l.folder, .db = l.db, .id = 8};
    CHECK_ERR(local_open(&other, &o, &err), ERR_IN_USE);
    l.lab.storage->ops->close(l.lab.storage);
    CHECK_ERR(local_open(&other, &o, &err), ERR_CORRUPT);
    snprintf(path, sizeof(path), "%s/FORMAT", l.folder);
    CHECK(unlink(path) == 0);
    o.id = 7;
    CHECK_ERR(local_open(&other, &o, &err), ERR_CORRUPT);
    db_close(l.db);
}

TEST(local_keep, a_folder_is_of_one_open_storage_only)
{
    struct local_lab l;
    struct storage *other = NULL;
    char pid[32];
    struct err err = {0};

    local_lab_open(&l, NULL);
    struct local_options o = {.name = "again", .folder = l.folder, .db = l.db, .id = 7};
    CHECK_ERR(local_open(&other, &o, &err), ERR_IN_USE);
    snprintf(pid, sizeof(pid), "process %d", (int)getpid());
    CHECK(strstr(err.text, l.folder) && strstr(err.text, pid));
    l.lab.storage->ops->close(l.lab.storage);
    CHECK_OK(local_open(&other, &o, &err));
    other->ops->close(other);
    db_close(l.db);
}

TEST(local_keep, two_storages_share_a_database)
{
    struct local_lab l;
    struct storage *other = NULL;
    char folder[256];
    struct arena a = ARENA_INIT(0);
    struct bucket_info *infos;
    size_t count;
    struct err err = {0};

    local_lab_open(&l, NULL);
    snprintf(folder, sizeof(folder), "%s/other", test_dir());
    struct local_options o = {.name = "other", .folder = folder, .db = l.db, .id = 8};
    CHECK_OK(local_open(&other, &o, &err));
    struct bucket *b = lab_bucket(l.lab.storage, "b"), *c = lab_bucket(other, "b");
    lab_put(b, &a, "k", STR("here"));
    lab_expect(c, "k", STR_EMPTY, STR_EMPTY);
    struct get_result got;
    struct put_result out;
    CHECK_OK(b->ops->head(b, &a, STR("k"), STR_EMPTY, NULL, &got, &err));
    CHECK_ERR(c->ops->copy(c, &a, STR("k"), b, &got.info, &(struct put_options){0}, &out, &err),
              ERR_UNSUPPORTED);
    CHECK_OK(other->ops->list_buckets(other, &a, STR_EMPTY, STR_EMPTY, 10, &infos, &count, &err));
    CHECK_INT(count, 1);
    b->ops->unref(b);
    c->ops->unref(c);
    other->ops->close(other);
    local_lab_close(&l);
    arena_release(&a);
}

TEST(local_keep, a_body_says_whether_it_is_a_file_or_bytes)
{
    struct local_lab l;
    struct arena a = ARENA_INIT(0);
    struct object_range range = {RANGE_FROM_TO, 10, 19};
    struct str body = lab_bytes(300 * KIB, 1), bytes;
    struct get_result got;
    struct file_range file;
    struct err err = {0};

    local_lab_open(&l, NULL);
    struct bucket *b = lab_bucket(l.lab.storage, "b");
    lab_put(b, &a, "small", str_head(body, 100));
    CHECK_OK(b->ops->get(b, &a, STR("small"), STR_EMPTY, NULL, &range, &got, &err));
    CHECK(!reader_as_file(got.body, &file) && reader_as_bytes(got.body, &bytes));
    CHECK_STR(bytes, str_head(str_skip(body, 10), 10));
    reader_close(got.body);
    lab_put(b, &a, "large", body);
    CHECK_OK(b->ops->get(b, &a, STR("large"), STR_EMPTY, NULL, &range, &got, &err));
    CHECK(reader_as_file(got.body, &file) && !reader_as_bytes(got.body, &bytes));
    CHECK(file.offset == 10 && file.len == 10);
    reader_close(got.body);
    b->ops->unref(b);
    local_lab_close(&l);
    arena_release(&a);
}

TEST(local_keep, the_names_of_a_database_put_back_are_not_used_again)
{
    struct local_lab l;
    struct arena a = ARENA_INIT(0);
    char path[256];
    struct err err = {0};

    local_lab_open(&l, NULL);
    snprintf(path, sizeof(path), "%s/blobs/00000f", l.folder);
    CHECK_OK(dir_make(path, 0700, &err));
    local_lab_close(&l);
    local_lab_open(&l, NULL);
    struct bucket *b = lab_bucket(l.lab.storage, "b");
    lab_put(b, &a, "k", lab_bytes(300 * KIB, 1));
    snprintf(path, sizeof(path), "%s/blobs/000010/0000000/0000100000000000", l.folder);
    CHECK(file_exists(path));
    b->ops->unref(b);
    local_lab_close(&l);
    arena_release(&a);
}

TEST(local_keep, files_go_with_their_last_reference)
{
    struct local_lab l;
    struct arena a = ARENA_INIT(0);
    struct get_result got;
    struct put_result out;
    struct put_options o = {0};
    struct err err = {0};

    local_lab_open(&l, NULL);
    struct bucket *b = lab_bucket(l.lab.storage, "b");
    lab_put(b, &a, "small", STR("x"));
    CHECK_INT(local_lab_files(&l), 0);
    lab_put(b, &a, "k", lab_bytes(300 * KIB, 1));
    CHECK_INT(local_lab_files(&l), 1);
    CHECK_OK(b->ops->head(b, &a, STR("k"), STR_EMPTY, NULL, &got, &err));
    CHECK_OK(b->ops->copy(b, &a, STR("copy"), b, &got.info, &o, &out, &err));
    lab_put(b, &a, "k", STR("small now"));
    local_lab_expect_whole(&l);
    CHECK_INT(local_lab_files(&l), 1);
    lab_remove(b, &a, "copy", STR_EMPTY);
    local_lab_expect_whole(&l);
    CHECK_INT(local_lab_files(&l), 0);
    b->ops->unref(b);
    local_lab_close(&l);
    arena_release(&a);
}

TEST(local_keep, a_reader_of_parts_holds_their_files)
{
    struct local_lab l;
    struct arena a = ARENA_INIT(0);
    struct upload_part parts[20];
    struct put_options o = {0};
    struct put_result out;
    struct get_result got;
    struct buf body = BUF_INIT(0), whole = BUF_INIT(0);
    struct err err = {0};

    local_lab_open(&l, NULL);
    struct bucket *b = lab_bucket(l.lab.storage, "b");
    struct upload_info u = lab_upload(b, &a, "k");
    for (uint32_t i = 0; i < ARRAY_SIZE(parts); i++) {
        parts[i] = lab_part(b, &a, &u, i + 1, lab_bytes(2000, i));
        buf_append_str(&whole, lab_bytes(2000, i));
    }
    CHECK_OK(b->ops->upload_finish(b, &a, &u, parts, ARRAY_SIZE(parts), &o, &out, &err));
    CHECK_OK(b->ops->get(b, &a, STR("k"), STR_EMPTY, NULL, NULL, &got, &err));
    lab_remove(b, &a, "k", STR_EMPTY);
    local_collect(l.lab.storage);
    CHECK_INT(local_lab_files(&l), ARRAY_SIZE(parts));
    CHECK_OK(reader_read_all(got.body, &body, &err));
    CHECK(str_eq(buf_str(&body), buf_str(&whole)));
    reader_close(got.body);
    local_lab_expect_whole(&l);
    CHECK_INT(local_lab_files(&l), 0);
    buf_release(&body);
    buf_release(&whole);
    b->ops->unref(b);
    local_lab_close(&l);
    arena_release(&a);
}

TEST(local_keep, what_a_crash_left_is_swept)
{
    struct local_lab l;
    struct arena a = ARENA_INIT(0);
    struct local_stats stats;
    char path[300];
    struct row row;
    struct err err = {0};

    local_lab_open(&l, NULL);
    struct bucket *b = lab_bucket(l.lab.storage, "b");
    lab_put(b, &a, "k", lab_bytes(300 * KIB, 1));
    b->ops->unref(b);
    local_lab_close(&l);
    local_lab_open(&l, NULL);
    snprintf(path, sizeof(path), "%s/blobs/000001/0000000/00000100000000ff", l.folder);
    CHECK_OK(file_write_durable(path, STR("half"), 0600, &err));
    local_collect(l.lab.storage);
    CHECK(file_exists(path)); /* the epoch was closed: nobody looks */
    struct local *local = local_of(l.lab.storage);
    CHECK_OK(db_put(l.db, local->rows, row_id(&row, local, TAG_OPEN_EPOCH, 1), STR_EMPTY,
                    DB_DURABLE, &err));
    local_lab_close(&l);
    local_lab_open(&l, NULL);
    local_lab_expect_whole(&l);
    CHECK(!file_exists(path));
    local_stats(l.lab.storage, &stats);
    CHECK_INT(stats.swept, 1);
    CHECK_INT(local_lab_files(&l), 1);
    local_lab_close(&l);
    arena_release(&a);
}

TEST(local_keep, a_put_that_fails_leaves_no_file)
{
    struct local_lab l;
    struct arena a = ARENA_INIT(0);
    struct put_options o = {.conditions.if_none_match = STR("*")};
    struct put_result out;
    struct str_reader r;
    struct err err = {0};

    local_lab_open(&l, NULL);
    struct bucket *b = lab_bucket(l.lab.storage, "b");
    lab_put(b, &a, "k", STR("x"));
    str_reader_init(&r, lab_bytes(300 * KIB, 1));
    CHECK_ERR(b->ops->put(b, &a, STR("k"), &r.reader, 300 * KIB, &o, &out, &err), ERR_PRECONDITION);
    str_reader_init(&r, lab_bytes(300 * KIB, 1));
    CHECK_ERR(b->ops->put(b, &a, STR("k"), &r.reader, 300 * KIB + 1, &o, &out, &err), ERR_CLOSED);
    CHECK_INT(local_lab_files(&l), 0);
    b->ops->unref(b);
    local_lab_close(&l);
    arena_release(&a);
}

/* Puts a file, a row and an empty object in one call. The one whose number is `guarded` must not
 * be there. */
static int put_three(struct bucket *b, struct arena *a, struct object_put puts[3], size_t guarded,
                     struct err *err)
{
    puts[0] = (struct object_put){.key = STR("file"), .bytes = lab_bytes(300 * KIB, 1)};
    puts[1] = (struct object_put){.key = STR("row"), .bytes = STR("small")};
    puts[2] = (struct object_put){.key = STR("empty")};
    if (guarded < 3)
        puts[guarded].o.conditions.if_none_match = STR("*");
    return b->ops->put_all(b, a, puts, 3, err);
}

TEST(local_keep, several_puts_in_one_call_are_all_there_or_none)
{
    struct local_lab l;
    struct arena a = ARENA_INIT(0);
    struct object_put puts[3];
    const char *keys[] = {"file", "row", "empty"};
    struct err err = {0};

    local_lab_open(&l, NULL);
    struct bucket *b = lab_bucket(l.lab.storage, "b");
    for (size_t i = 0; i < 3; i++) {
        lab_put(b, &a, keys[i], STR("x"));
        CHECK_ERR(put_three(b, &a, puts, i, &err), ERR_PRECONDITION);
        for (size_t k = 0; k < 3; k++)
            lab_expect(b, keys[k], STR_EMPTY, k == i ? STR("x") : STR_EMPTY);
        CHECK_INT(local_lab_files(&l), 0);
        lab_remove(b, &a, keys[i], STR_EMPTY);
    }
    CHECK_OK(put_three(b, &a, puts, 3, &err));
    CHECK_INT(puts[0].result.size, 300 * KIB);
    CHECK(puts[1].result.etag.len > 0);
    CHECK_OK(put_three(b, &a, puts, 3, &err)); /* the first file goes */
    b->ops->unref(b);
    local_lab_expect_whole(&l);
    CHECK_INT(local_lab_files(&l), 1);
    local_lab_close(&l);
    local_lab_open(&l, NULL);
    CHECK_OK(l.lab.storage->ops->open_bucket(&b, l.lab.storage, STR("owner"), STR("b"), &err));
    lab_expect(b, "file", STR_EMPTY, lab_bytes(300 * KIB, 1));
    lab_expect(b, "row", STR_EMPTY, STR("small"));
    lab_expect(b, "empty", STR_EMPTY, STR(""));
    b->ops->unref(b);
    local_lab_close(&l);
    arena_release(&a);
}

TEST_TIMEOUT(local_keep, a_listing_costs_what_it_returns, 600)
{
    struct local_lab l;
    struct arena a = ARENA_INIT(0);
    struct list_options o = {.limit = 100};
    struct list_result list;
    struct local_stats before, after;
    struct buf record = BUF_INIT(0);
    struct err err = {0};

    local_lab_open(&l, NULL);
    struct bucket *b = lab_bucket(l.lab.storage, "b");
    struct local *local = local_of(l.lab.storage);
    record_put(&record, &(struct object_record){.is_null = true, .sequence = 1, .etag = STR("e")});
    for (int i = 0; i < 100 * 1000; i++) {
        char key[64];
        struct row row;
        snprintf(key, sizeof(key), "dir%03d/key%06d", i % 100, i);
        CHECK_OK(db_put(l.db, local->rows,
                        row_key(&row, local_bucket_of(b), TAG_OBJECT, str_z(key)), buf_str(&record),
                        DB_VOLATILE, &err));
    }
    o.prefix = STR("dir050/");
    local_stats(l.lab.storage, &before);
    CHECK_OK(b->ops->list(b, &a, &o, &list, &err));
    CHECK_INT(list.count, 100);
    CHECK(list.more);
    local_stats(l.lab.storage, &after);
    CHECK_INT(after.list_steps - before.list_steps, 101);
    o = (struct list_options){.delimiter = STR("/"), .limit = 1000};
    local_stats(l.lab.storage, &before);
    CHECK_OK(b->ops->list(b, &a, &o, &list, &err));
    CHECK_INT(list.count, 100);
    local_stats(l.lab.storage, &after);
    CHECK_INT(after.list_steps - before.list_steps, 101);
    local_stats(l.lab.storage, &before);
    CHECK_OK(b->ops->list_versions(b, &a, &o, &list, &err));
    CHECK_INT(list.count, 100);
    local_stats(l.lab.storage, &after);
    CHECK(after.list_steps - before.list_steps <= 202);
    buf_release(&record);
    b->ops->unref(b);
    local_lab_close(&l);
    arena_release(&a);
}

TEST(local_keep, a_listing_by_delimiter_follows_every_change)
{
    struct local_lab l;
    struct arena a = ARENA_INIT(0);
    struct list_options o = {.delimiter = STR("/")}, two = {.delimiter = STR("/"), .limit = 2};
    struct remove_options plain = {0};
    struct remove_result removed;
    struct err err = {0};

    local_lab_open(&l, NULL);
    struct bucket *b = lab_bucket(l.lab.storage, "b");
    struct {
        const char *put, *remove, *all, *page;
    } steps[] = {
        {"a/1", NULL, "[a/]", "[a/]"},
        {"c/1", NULL, "[a/] [c/]", "[a/] [c/]"},
        {"e/1", NULL, "[a/] [c/] [e/]", "[a/] [c/] ..."},
        {"e/2", NULL, "[a/] [c/] [e/]", "[a/] [c/] ..."},
        {"c/1", NULL, "[a/] [c/] [e/]", "[a/] [c/] ..."},
        {"b/1", NULL, "[a/] [b/] [c/] [e/]", "[a/] [b/] ..."},
        {"d", NULL, "[a/] [b/] [c/] d [e/]", "[a/] [b/] ..."},
        {NULL, "c/1", "[a/] [b/] d [e/]", "[a/] [b/] ..."},
        {NULL, "e/1", "[a/] [b/] d [e/]", "[a/] [b/] ..."},
        {NULL, "b/1", "[a/] d [e/]", "[a/] d ..."},
        {"c/0", NULL, "[a/] [c/] d [e/]", "[a/] [c/] ..."},
        {NULL, "d", "[a/] [c/] [e/]", "[a/] [c/] ..."},
        {NULL, "e/2", "[a/] [c/]", "[a/] [c/]"},
        {NULL, "a/1", "[c/]", "[c/]"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        if (steps[i].put)
            lab_put(b, &a, steps[i].put, STR("x"));
        else
            CHECK_OK(b->ops->remove(b, &a, str_z(steps[i].remove), &plain, &removed, &err));
        for (int twice = 0; twice < 2; twice++) {
            lab_expect_list(b, &o, false, steps[i].all);
            lab_expect_list(b, &two, false, steps[i].page);
        }
    }
    b->ops->unref(b);
    local_lab_close(&l);
    arena_release(&a);
}

/* A file system of its own under the test's folder, in a mount namespace of this test's own. */
static const char *small_disk(const char *name, const char *size)
{
    static char path[128];

    snprintf(path, sizeof(path), "%s/%s", test_dir(), name);
    if (mkdir(path, 0700) != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", path, "tmpfs", 0, size) != 0) {
        fprintf(stderr, "needs root to mount a small file system\n");
        _exit(SKIPPED);
    }
    return path;
}

TEST(local_keep, a_full_disk_refuses_puts_and_nothing_else)
{
    struct local_lab l;
    struct arena a = ARENA_INIT(0);
    struct local_options o = {
        .folder = small_disk("disk", "size=48m"), .part_min = 1000, .reserve_bytes = 16 * MIB};
    struct put_options p = {0};
    struct put_result out;
    struct str large = lab_bytes(8 * MIB, 1);
    struct str_reader r;
    struct err err = {0};
    char key[16];
    int code = 0, n = 0;

    local_lab_open(&l, &o);
    struct bucket *b = lab_bucket(l.lab.storage, "b");
    for (; code == 0 && n < 20; n++) {
        snprintf(key, sizeof(key), "k%d", n);
        str_reader_init(&r, large);
        /* Every second time the size is not known before. */
        code = b->ops->put(b, &a, str_z(key), &r.reader, n % 2 ? large.len : UINT64_MAX, &p, &out,
                           &err);
    }
    CHECK_INT(code, ERR_NO_SPACE);
    CHECK(n > 2);
    str_reader_init(&r, lab_bytes(20 * MIB, 2));
    CHECK_ERR(b->ops->put(b, &a, STR("huge"), &r.reader, 20 * MIB, &p, &out, &err), ERR_NO_SPACE);
    lab_expect(b, "k0", STR_EMPTY, large);
    lab_expect(b, key, STR_EMPTY, STR_EMPTY);
    local_lab_expect_whole(&l);
    lab_remove(b, &a, "k0", STR_EMPTY);
    lab_remove(b, &a, "k1", STR_EMPTY);
    local_lab_expect_whole(&l);
    lab_put(b, &a, "again", large);
    lab_expect(b, "again", STR_EMPTY, large);
    b->ops->unref(b);
    local_lab_close(&l);
    arena_release(&a);
    umount2(o.folder, MNT_DETACH);
}

TEST(local_keep, a_file_whose_commit_failed_goes_when_the_database_writes_again)
{
    struct local_lab l;
    struct arena a = ARENA_INIT(0);
    const char *disk = small_disk("db", "size=128m");
    struct put_options p = {0};
    struct put_result out;
    struct str large = lab_bytes(300 * KIB, 1);
    struct str_reader r;
    struct err err = {0};
    char filler[160];
    int code = 0;
    size_t made = 0;

    local_lab_open(&l, NULL);
    struct bucket *b = lab_bucket(l.lab.storage, "b");
    snprintf(filler, sizeof(filler), "%s/filler", disk);
    CHECK_OK(file_write_durable(filler, lab_bytes(90 * MIB, 1), 0600, &err));
    while (code == 0) { /* the database looks at the free space every 100 ms */
        char key[32];
        snprintf(key, sizeof(key), "k%zu", made);
        str_reader_init(&r, large);
        code = b->ops->put(b, &a, str_z(key), &r.reader, large.len, &p, &out, &err);
        made += code == 0;
    }
    CHECK_INT(code, ERR_NO_SPACE);
    local_collect(l.lab.storage);
    CHECK_INT(local_lab_files(&l), made + 1);
    CHECK(unlink(filler) == 0);
    do {
        str_reader_init(&r, STR("x"));
        code = b->ops->put(b, &a, STR("small"), &r.reader, 1, &p, &out, &err);
    } while (code == ERR_NO_SPACE);
    CHECK_OK(code);
    local_lab_expect_whole(&l);
    CHECK_INT(local_lab_files(&l), made);
    b->ops->unref(b);
    local_lab_close(&l);
    arena_release(&a);
    umount2(disk, MNT_DETACH);
}
