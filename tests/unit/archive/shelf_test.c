/* Shelves: reading, writing, copying, uploads; locks, encryption and capture. */
#include "base/clock.h"
#include "meta/keyring.h"
#include "object/overlay.h"
#include "unit/archive/satellites_lab.h"

#include <stdio.h>

static void open_octocat(struct satellites_lab *lab, struct shelf *s)
{
    struct archive_account c = satellites_lab_account(lab, "octocat");
    struct err err = {0};

    CHECK_OK(shelf_open(s, lab->satellites, &lab->arena, &c, &err));
}

SATELLITES_TEST(archive_shelf, objects_are_put_read_copied_listed_and_removed)
{
    struct str key = satellites_lab_key(lab, "octocat", "a.zip");
    struct str copy = satellites_lab_key(lab, "octocat", "b.zip");
    struct object_conditions absent = {.if_none_match = STR("*")};
    struct list_options all = {.prefix = STR("a6/65/81/57/octocat/"), .limit = 10};
    struct object_range range = {RANGE_FROM_TO, 2, 4};
    struct object_info info;
    struct list_result list;
    struct shelf_body body;
    struct buf bytes = {0};
    struct shelf s;
    struct err err = {0};

    satellites_lab_add(lab, 3);
    open_octocat(lab, &s);
    CHECK_STR(s.satellite, STR("europe-west-1"));
    CHECK_ERR(shelf_head(&s, &lab->arena, key, &info, &err), ERR_NOT_FOUND);
    CHECK_OK(shelf_put_bytes(&s, &lab->arena, key, STR("0123456789"), &absent, "application/zip",
                             1700000000125, NULL, &err));
    CHECK_ERR(shelf_put_bytes(&s, &lab->arena, key, STR("other"), &absent, "application/zip", 0,
                              NULL, &err),
              ERR_PRECONDITION);
    CHECK_OK(shelf_get(&s, &lab->arena, key, &range, &body, &err));
    CHECK_INT(body.first, 2);
    CHECK_OK(reader_read_all(body.body, &bytes, &err));
    CHECK_STR(buf_str(&bytes), STR("234"));
    shelf_body_close(&body);
    buf_reset(&bytes);
    CHECK_ERR(shelf_read(&s, &lab->arena, key, 9, &bytes, NULL, &err), ERR_TOO_LARGE);
    CHECK_OK(shelf_head(&s, &lab->arena, key, &info, &err));
    CHECK_OK(shelf_copy(&s, &lab->arena, copy, key, &info, NULL, &err));
    CHECK_OK(shelf_head(&s, &lab->arena, copy, &info, &err));
    bool has_time = false;
    for (size_t i = 0; i < info.meta.header_count; i++)
        has_time |= str_eq(info.meta.headers[i].value, STR("1700000000.125"));
    CHECK(has_time);
    CHECK_OK(shelf_list(&s, &lab->arena, &all, &list, &err));
    CHECK_INT(list.count, 2);
    struct object_conditions other = {.if_match = STR("\"00000000000000000000000000000000\"")};
    CHECK_ERR(shelf_remove(&s, &lab->arena, copy, &other, &err), ERR_PRECONDITION);
    CHECK_OK(shelf_remove(&s, &lab->arena, copy, NULL, &err));
    CHECK_OK(shelf_remove(&s, &lab->arena, copy, NULL, &err));
    CHECK_OK(shelf_list(&s, &lab->arena, &all, &list, &err));
    CHECK_INT(list.count, 1);
    shelf_close(&s);
    buf_release(&bytes);
}

static void upload_part_of(struct satellites_lab *lab, struct shelf *s,
                           const struct upload_info *upload, uint32_t number, struct str bytes,
                           struct upload_part *out)
{
    struct str_reader body;
    struct err err = {0};

    str_reader_init(&body, bytes);
    CHECK_OK(shelf_upload_part(s, &lab->arena, upload, number, &body.reader, bytes.len, out, &err));
    out->number = number;
}

SATELLITES_TEST(archive_shelf, an_object_is_made_of_parts_and_dead_uploads_are_aborted)
{
    struct str key = satellites_lab_key(lab, "octocat", "a.bundle");
    struct object_meta meta = {0};
    struct upload_info upload, dead;
    struct upload_part parts[2] = {0};
    struct put_result result;
    struct shelf s;
    struct err err = {0};
    char many[300];
    size_t aborted = 9;

    memset(many, 'x', sizeof(many));
    satellites_lab_add(lab, 3);
    open_octocat(lab, &s);
    CHECK_OK(shelf_upload_begin(&s, &lab->arena, key, &meta, &upload, &err));
    upload_part_of(lab, &s, &upload, 1, str_n(many, sizeof(many)), &parts[0]);
    upload_part_of(lab, &s, &upload, 2, STR("end"), &parts[1]);
    CHECK_OK(shelf_upload_finish(&s, &lab->arena, &upload, parts, 2, NULL, &result, &err));
    CHECK_OK(shelf_upload_begin(&s, &lab->arena, key, &meta, &dead, &err));
    CHECK_OK(shelf_abort_uploads(&s, 3600 * 1000, &aborted, &err));
    CHECK_INT(aborted, 0); /* too young */
    CHECK_OK(shelf_abort_uploads(&s, 0, &aborted, &err));
    CHECK_INT(aborted, 1);
    CHECK_OK(shelf_upload_abort(&s, &dead, &err));
    struct object_info info;
    CHECK_OK(shelf_head(&s, &lab->arena, key, &info, &err));
    CHECK_INT(info.size, 303);
    shelf_close(&s);
}

static int cut_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    (void)r, (void)to, (void)len, (void)got;
    return err_set(err, ERR_CLOSED, "the git server went away");
}

SATELLITES_TEST(archive_shelf, a_body_that_fails_does_not_make_its_satellite_look_down)
{
    static const struct reader_ops ops = {.read = cut_read};
    struct str key = satellites_lab_key(lab, "octocat", "a.bundle");
    struct reader cut = {&ops};
    struct put_options o = {0};
    struct put_result result;
    struct object_info info;
    struct shelf s;
    struct err err = {0};

    satellites_lab_add(lab, 3);
    open_octocat(lab, &s);
    CHECK_ERR(shelf_put(&s, &lab->arena, key, &cut, UINT64_MAX, &o, &result, &err), ERR_CLOSED);
    CHECK(satellites_is_up(lab->satellites, s.satellite));
    CHECK_ERR(shelf_head(&s, &lab->arena, key, &info, &err), ERR_NOT_FOUND);
    shelf_close(&s);
}

SATELLITES_TEST(archive_shelf, whoever_lost_the_lock_writes_nothing)
{
    struct archive_account c = satellites_lab_account(lab, "octocat");
    struct str key = satellites_lab_key(lab, "octocat", "a.zip");
    struct lock *lock = NULL;
    struct locks *locks = NULL;
    struct reply *reply;
    struct shelf s;
    struct err err = {0};

    satellites_lab_add(lab, 3);
    CHECK_OK(locks_open(
        &locks, &(struct locks_options){.store = lab->four->stores[DB_APP], .ttl_ms = 300}, &err));
    CHECK_OK(lock_take(&lock, locks, archive_account_lock(&c, &lab->arena), &err));
    CHECK_OK(shelf_open_claimed(&s, lab->satellites, &lab->arena, &c, lock, &err));
    CHECK_OK(shelf_put_bytes(&s, &lab->arena, key, STR("1"), NULL, "text/plain", 0, NULL, &err));
    CHECK_OK(store_call(lab->four->stores[DB_APP], &lab->arena, &reply, &err, STR("SET"),
                        archive_account_lock(&c, &lab->arena), STR("stranger")));
    CHECK_SOON(!lock_held(lock));
    CHECK_ERR(shelf_put_bytes(&s, &lab->arena, key, STR("2"), NULL, "text/plain", 0, NULL, &err),
              ERR_BUSY);
    CHECK_ERR(shelf_remove(&s, &lab->arena, key, NULL, &err), ERR_BUSY);
    satellites_lab_expect(lab, "octocat", "a.zip", STR("1"));
    shelf_close(&s);
    lock_release(lock);
    locks_close(locks);
}

/* The lock is lost while the body flows: nothing becomes visible. */
struct losing_reader {
    struct reader reader;
    struct satellites_lab *lab;
    struct lock *lock;
    int step;
};

static int losing_read(struct reader *r, void *to, size_t len, size_t *got, struct err *unused)
{
    struct losing_reader *l = (struct losing_reader *)r;
    struct reply *reply;
    struct err err = {0};

    *got = l->step < 2 && len;
    if (*got)
        *(char *)to = 'x';
    if (l->step++ == 1) {
        CHECK_OK(store_call(l->lab->four->stores[DB_APP], &l->lab->arena, &reply, &err, STR("SET"),
                            lock_key(l->lock), STR("stranger")));
        CHECK_SOON(!lock_held(l->lock));
    }
    return 0;
}

SATELLITES_TEST(archive_shelf, a_lock_that_is_lost_while_the_body_flows_leaves_no_object)
{
    static const struct reader_ops ops = {.read = losing_read};
    struct archive_account c = satellites_lab_account(lab, "octocat");
    struct losing_reader body = {.reader = {&ops}, .lab = lab};
    struct put_options o = {0};
    struct put_result result;
    struct locks *locks = NULL;
    struct shelf s;
    struct err err = {0};

    satellites_lab_add(lab, 3);
    CHECK_OK(locks_open(
        &locks, &(struct locks_options){.store = lab->four->stores[DB_APP], .ttl_ms = 300}, &err));
    CHECK_OK(lock_take(&body.lock, locks, archive_account_lock(&c, &lab->arena), &err));
    CHECK_OK(shelf_open_claimed(&s, lab->satellites, &lab->arena, &c, body.lock, &err));
    CHECK_ERR(shelf_put(&s, &lab->arena, satellites_lab_key(lab, "octocat", "a.zip"), &body.reader,
                        UINT64_MAX, &o, &result, &err),
              ERR_BUSY);
    satellites_lab_expect(lab, "octocat", "a.zip", STR_EMPTY);
    shelf_close(&s);
    lock_release(body.lock);
    locks_close(locks);
}

/* --- encryption --- */

static void encrypt_bucket(struct satellites_lab *lab, const char *name)
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

static void check_sealed(struct satellites_lab *lab)
{
    struct str key = satellites_lab_key(lab, "octocat", "a.bundle");
    struct str bundle = satellites_lab_bundle(lab, 3);
    struct keyring *keys;
    struct object_info info;
    struct err err = {0};
    char path[256];

    snprintf(path, sizeof(path), "%s/encryption.keys", test_dir());
    keys = keyring_new(path);
    lab->options.env.keys = keys;
    satellites_lab_restart(lab);
    satellites_lab_add(lab, 2);
    encrypt_bucket(lab, "europe-west-1");
    satellites_lab_put(lab, "octocat", "a.bundle", bundle);
    CHECK_INT(satellites_lab_look(lab, "europe-west-1", key, &info, NULL), 0);
    CHECK(info.meta.encryption.len > 0);
    satellites_lab_expect(lab, "octocat", "a.bundle", bundle);
    /* It moves to a satellite that seals nothing, and back. */
    CHECK_OK(satellites_drain(lab->satellites, STR("europe-west-1"), &err));
    satellites_lab_move_all(lab);
    CHECK_INT(satellites_lab_look(lab, "asia-east-1", key, &info, NULL), 0);
    CHECK_INT(info.meta.encryption.len, 0);
    satellites_lab_expect(lab, "octocat", "a.bundle", bundle);
    CHECK_INT(satellites_lab_copies(lab, key), 1);
    satellites_lab_add(lab, 2);
    CHECK_OK(satellites_drain(lab->satellites, STR("asia-east-1"), &err) == ERR_BUSY ? 0 : -1);
    satellites_lab_move_all(lab);
    CHECK_OK(satellites_drain(lab->satellites, STR("asia-east-1"), &err));
    satellites_lab_move_all(lab);
    CHECK_INT(satellites_lab_look(lab, "europe-west-1", key, &info, NULL), 0);
    CHECK(info.meta.encryption.len > 0);
    satellites_lab_expect(lab, "octocat", "a.bundle", bundle);
    CHECK_INT(satellites_lab_copies(lab, key), 1);
    lab->options.env.keys = NULL;
    satellites_lab_restart(lab);
    keyring_free(keys);
}

TEST(archive_shelf, a_bucket_with_default_encryption_gets_sealed_objects_also_in_moves)
{
    satellites_lab_run(four_open_embedded, LAB_LOCAL, check_sealed);
}

/* --- capture --- */

struct shelf_told {
    struct buf text;
    int refuses;
};

static int told_begin(void *ctx, const struct intended *i, struct capture *out, struct err *err)
{
    struct shelf_told *t = ctx;

    buf_appendf(&t->text, STR_FMT " " STR_FMT, STR_ARG(i->storage->name), STR_ARG(i->keys[0]));
    out->begun = t->refuses == 0;
    return t->refuses ? err_code(err, t->refuses) : 0;
}

static int told_check(void *ctx, const struct capture *c, struct err *err)
{
    return 0;
}

static int told_end(void *ctx, struct capture *c, enum outcome outcome, struct err *err)
{
    struct shelf_told *t = ctx;

    buf_appendf(&t->text, " %s;", outcome == OUTCOME_DONE ? "done" : "not");
    return 0;
}

static void expect_told(struct shelf_told *t, const char *want)
{
    CHECK_STR(buf_str(&t->text), str_z(want));
    buf_reset(&t->text);
}

SATELLITES_TEST(archive_shelf, changes_are_announced_and_their_ends_are_told)
{
    struct shelf_told t = {0};
    struct change_capture capture = {told_begin, told_check, told_end, &t};
    struct str key = satellites_lab_key(lab, "octocat", "a.zip");
    struct shelf s;
    struct err err = {0};

    satellites_lab_add(lab, 2);
    lab->options.env.capture = &capture;
    satellites_lab_restart(lab);
    open_octocat(lab, &s);
    CHECK_OK(shelf_put_bytes(&s, &lab->arena, key, STR("1"), NULL, "text/plain", 0, NULL, &err));
    expect_told(&t, "europe-west-1 a6/65/81/57/octocat/a.zip done;");
    satellites_lab_expect(lab, "octocat", "a.zip", STR("1"));
    expect_told(&t, "");
    t.refuses = ERR_UNAVAILABLE;
    CHECK_ERR(shelf_put_bytes(&s, &lab->arena, key, STR("2"), NULL, "text/plain", 0, NULL, &err),
              ERR_UNAVAILABLE);
    t.refuses = 0;
    buf_reset(&t.text);
    satellites_lab_expect(lab, "octocat", "a.zip", STR("1"));
    CHECK_OK(shelf_remove(&s, &lab->arena, key, NULL, &err));
    expect_told(&t, "europe-west-1 a6/65/81/57/octocat/a.zip done;");
    shelf_close(&s);
    buf_release(&t.text);
}
