/* The scrub of a local storage. */
#include "unit/object/local_lab.h"

#include "os/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct findings {
    struct buf text; /* "damage bucket/key;" for each */
    struct buf cursor;
    size_t stop_after; /* objects; 0: never */
    uint64_t objects, bytes;
};

static int finding(void *ctx, const struct local_finding *f, struct err *err)
{
    struct findings *all = ctx;

    buf_appendf(&all->text, "%s " STR_FMT "/" STR_FMT ";", local_damage_text(f->damage),
                STR_ARG(f->bucket), STR_ARG(f->key));
    return 0;
}

static int progress(void *ctx, struct str cursor, uint64_t objects, uint64_t bytes, struct err *err)
{
    struct findings *all = ctx;

    buf_reset(&all->cursor);
    buf_append_str(&all->cursor, cursor);
    all->objects++;
    all->bytes = bytes;
    return all->objects == all->stop_after ? err_code(err, ERR_CANCELED) : 0;
}

static void expect_findings(struct storage *s, const char *want)
{
    struct findings all = {0};
    struct local_scrub o = {.finding = finding, .ctx = &all};
    struct err err = {0};

    CHECK_OK(local_scrub(s, &o, &err));
    CHECK_STR(buf_str(&all.text), str_z(want));
    buf_release(&all.text);
}

/* The path of the one blob that the key's current version is. */
static void path_of(struct local_lab *l, struct bucket *b, const char *key, struct buf *out)
{
    struct stored found = {0};
    struct row row;
    struct err err = {0};

    buf_reset(out);
    CHECK_OK(stored_get(&found, db_latest(l->db), local_of(l->lab.storage),
                        row_key(&row, local_bucket_of(b), TAG_OBJECT, str_z(key)), &err));
    CHECK_INT(found.r.where, WHERE_BLOB);
    blob_path(out, local_of(l->lab.storage), found.r.id);
    stored_release(&found);
}

static void flip_byte(const char *path, off_t at)
{
    char byte;
    int fd = open(path, O_RDWR | O_CLOEXEC);

    CHECK(fd >= 0 && pread(fd, &byte, 1, at) == 1);
    byte ^= 1;
    CHECK(pwrite(fd, &byte, 1, at) == 1);
    fd_close(&fd);
}

TEST(local_scrub, a_whole_storage_has_no_findings)
{
    struct local_lab l;
    struct arena a = ARENA_INIT(0);
    struct err err = {0};

    local_lab_open(&l, NULL);
    struct bucket *b = lab_bucket(l.lab.storage, "b");
    CHECK_OK(b->ops->set_versions(b, true, &err));
    for (size_t i = 0; i < 3; i++) {
        lab_put(b, &a, "small", lab_bytes(100, i));
        lab_put(b, &a, "large", lab_bytes(600 * KIB, i));
    }
    lab_remove(b, &a, "small", STR_EMPTY);
    struct upload_info u = lab_upload(b, &a, "u");
    lab_part(b, &a, &u, 1, lab_bytes(2000, 1));
    expect_findings(l.lab.storage, "");
    b->ops->unref(b);
    local_lab_close(&l);
    arena_release(&a);
}

TEST(local_scrub, damage_is_named)
{
    struct local_lab l;
    struct arena a = ARENA_INIT(0);
    struct buf path = BUF_INIT(0);
    struct stored found = {0};
    struct row row;
    struct err err = {0};

    local_lab_open(&l, NULL);
    struct local *local = local_of(l.lab.storage);
    struct bucket *b = lab_bucket(l.lab.storage, "b");
    lab_put(b, &a, "flipped", lab_bytes(600 * KIB, 1));
    lab_put(b, &a, "gone", lab_bytes(600 * KIB, 2));
    lab_put(b, &a, "short", lab_bytes(600 * KIB, 3));
    lab_put(b, &a, "whole", lab_bytes(600 * KIB, 4));
    lab_put(b, &a, "zinline", lab_bytes(600, 5));
    path_of(&l, b, "flipped", &path);
    flip_byte(path.p, 500 * KIB);
    path_of(&l, b, "gone", &path);
    CHECK(unlink(path.p) == 0);
    path_of(&l, b, "short", &path);
    CHECK(truncate(path.p, 100) == 0);
    CHECK_OK(stored_get(&found, db_latest(l.db), local,
                        row_key(&row, local_bucket_of(b), TAG_OBJECT, STR("zinline")), &err));
    CHECK_OK(db_put(l.db, local->bytes, row_bytes(&row, local, found.r.id), lab_bytes(600, 6),
                    DB_VOLATILE, &err));
    expect_findings(l.lab.storage,
                    "damaged b/flipped;missing b/gone;wrong size b/short;damaged b/zinline;");
    struct get_result got;
    CHECK_ERR(b->ops->get(b, &a, STR("gone"), STR_EMPTY, NULL, NULL, &got, &err), ERR_CORRUPT);
    stored_release(&found);
    buf_release(&path);
    b->ops->unref(b);
    local_lab_close(&l);
    arena_release(&a);
}

TEST(local_scrub, a_file_that_nothing_names_is_found)
{
    struct local_lab l;
    struct arena a = ARENA_INIT(0);
    char path[300];
    struct err err = {0};

    local_lab_open(&l, NULL);
    struct bucket *b = lab_bucket(l.lab.storage, "b");
    lab_put(b, &a, "k", lab_bytes(600 * KIB, 1));
    b->ops->unref(b);
    local_lab_close(&l);
    local_lab_open(&l, NULL);
    snprintf(path, sizeof(path), "%s/blobs/000001/0000000/00000100000000ff", l.folder);
    CHECK_OK(file_write_durable(path, STR("stray"), 0600, &err));
    expect_findings(l.lab.storage, "unknown file /;");
    local_lab_close(&l);
    arena_release(&a);
}

TEST(local_scrub, it_goes_on_where_it_stopped)
{
    struct local_lab l;
    struct arena a = ARENA_INIT(0);
    struct findings first = {.stop_after = 100}, rest = {0};
    struct local_scrub o = {.finding = finding, .progress = progress, .ctx = &first};
    char key[32];
    struct err err = {0};

    local_lab_open(&l, NULL);
    struct bucket *b = lab_bucket(l.lab.storage, "b");
    CHECK_OK(b->ops->set_versions(b, true, &err));
    for (int i = 0; i < 150; i++) {
        snprintf(key, sizeof(key), "k%d", i % 90);
        lab_put(b, &a, key, STR("x"));
    }
    CHECK_ERR(local_scrub(l.lab.storage, &o, &err), ERR_CANCELED);
    o.ctx = &rest;
    o.cursor = buf_str(&first.cursor);
    CHECK_OK(local_scrub(l.lab.storage, &o, &err));
    CHECK_INT(first.objects + rest.objects, 150);
    CHECK_INT(first.bytes + rest.bytes, 150);
    buf_release(&first.cursor);
    buf_release(&rest.cursor);
    b->ops->unref(b);
    local_lab_close(&l);
    arena_release(&a);
}
