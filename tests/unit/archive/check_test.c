/* The check of the archive: one test for each thing that it finds. */
#include "archive/bundle.h"
#include "archive/check.h"
#include "archive/record.h"
#include "unit/archive/satellites_lab.h"

#include <stdio.h>
#include <string.h>

enum { CHECK_SYNC_MS = 1000 };

#define DIGEST "11223344556677889900aabbccddeeff11223344556677889900aabbccddeeff"

struct check_lab {
    struct satellites_lab *lab;
    struct archive archive;
    struct archive_record record; /* of octocat */
    struct buf findings;
};

static void note_finding(void *ctx, const struct check_finding *f)
{
    struct check_lab *l = ctx;

    buf_appendf(&l->findings, STR_FMT " " STR_FMT ": %s\n", STR_ARG(f->account), STR_ARG(f->key),
                f->text);
}

/* --- what there is --- */

/* An object of an account, with headers. */
static void put_as(struct check_lab *l, const struct archive_account *c, struct str key,
                   struct http_header *headers, size_t count, struct str bytes)
{
    struct put_options o = {.meta = {.headers = headers, .header_count = count}};
    struct put_result result;
    struct str_reader body;
    struct shelf s;
    struct err err = {0};

    CHECK_OK(shelf_open(&s, l->lab->satellites, &l->lab->arena, c, &err));
    str_reader_init(&body, bytes);
    CHECK_OK(shelf_put(&s, &l->lab->arena, key, &body.reader, bytes.len, &o, &result, &err));
    shelf_close(&s);
}

static void put(struct check_lab *l, const char *login, const char *name, const char *bytes)
{
    struct archive_account c = satellites_lab_account(l->lab, login);

    put_as(l, &c, satellites_lab_key(l->lab, login, name), NULL, 0, str_z(bytes));
}

static void put_bundle(struct check_lab *l, const char *name, const char *id)
{
    struct archive_account c = satellites_lab_account(l->lab, "octocat");
    struct bundle_meta meta = {.pack_offset = 4, .refs_digest = DIGEST, .format = "sha1"};
    struct http_header headers[BUNDLE_HEADERS_MAX];

    snprintf(meta.source_id, sizeof(meta.source_id), "%s", id);
    size_t count = bundle_meta_headers(headers, &l->lab->arena, &meta);
    put_as(l, &c, satellites_lab_key(l->lab, "octocat", name), headers, count, STR("a bundle"));
}

static void drop(struct check_lab *l, const char *login, const char *name)
{
    struct archive_account c = satellites_lab_account(l->lab, login);
    struct shelf s;
    struct err err = {0};

    CHECK_OK(shelf_open(&s, l->lab->satellites, &l->lab->arena, &c, &err));
    CHECK_OK(shelf_remove(&s, &l->lab->arena, satellites_lab_key(l->lab, login, name), NULL, &err));
    shelf_close(&s);
}

static void track(struct check_lab *l, const char *login)
{
    struct schedule_loaded one = {satellites_lab_account(l->lab, login), CHECK_SYNC_MS};
    struct err err = {0};

    CHECK_OK(schedule_load(l->lab->schedule, &one, 1, &err));
}

/* Marks the slot of the account as rebuilt. */
static void build(struct check_lab *l, const char *login)
{
    unsigned slot = satellites_lab_account(l->lab, login).hash[0];
    struct str mark;
    struct err err = {0};

    CHECK_OK(schedule_build(l->lab->schedule, &l->lab->arena, slot, &mark, &err));
    CHECK_OK(
        schedule_built(l->lab->schedule, slot, mark, satellites_lab_table(l->lab).epoch, &err));
}

static void write_record(struct check_lab *l)
{
    struct record_text text;
    struct buf bytes = {0};
    struct err err = {0};

    archive_record_text_init(&text, &l->record);
    CHECK_OK(reader_read_all(&text.reader, &bytes, &err));
    archive_record_text_release(&text);
    buf_append_char(&bytes, '\0');
    put(l, "octocat", ".json", bytes.p);
    buf_release(&bytes);
}

/* The account octocat with the repositories a (7) and b (8), synced in full. */
static void check_lab_open(struct check_lab *l, struct satellites_lab *lab)
{
    struct record_repo a = {.id = STR("7"),
                            .name = STR("a"),
                            .pushed_at = STR("2026-01-01T00:00:00Z"),
                            .refs_digest = STR(DIGEST),
                            .etag = STR("x"),
                            .zip = STR("0123456789012345678901234567890123456789"),
                            .code = ARCHIVE_OK,
                            .listed = true};
    struct record_repo b = {.id = STR("8"), .name = STR("b"), .code = ARCHIVE_GONE};

    *l = (struct check_lab){.lab = lab,
                            .archive = {.satellites = lab->satellites, .schedule = lab->schedule}};
    satellites_lab_add(lab, 3);
    archive_record_init(&l->record);
    l->record.account = (struct record_account){.login = STR("octocat"),
                                                .id = STR("583231"),
                                                .type = STR("User"),
                                                .last_full_sync_ms = CHECK_SYNC_MS,
                                                .repos_listed = 1,
                                                .repos_stored = 1};
    vec_push(&l->record.repos, a);
    vec_push(&l->record.repos, b);
    write_record(l);
    put_bundle(l, "a.bundle", "7");
    put(l, "octocat", "a.zip", "zip");
    put(l, "octocat", "b.error", "gone");
    track(l, "octocat");
}

static void check_lab_close(struct check_lab *l)
{
    archive_record_release(&l->record);
    buf_release(&l->findings);
}

/* Checks everything. There is one finding, and its text includes the words; NULL: there is none. */
static void expect(struct check_lab *l, const char *words)
{
    struct archive_check k = {.found = note_finding, .ctx = l};
    struct err err = {0};

    buf_reset(&l->findings);
    CHECK_OK(archive_check_all(&k, &l->archive, &err));
    if (k.count != (words ? 1 : 0) || (words && str_find(buf_str(&l->findings), str_z(words)) < 0))
        test_fail(__FILE__, __LINE__, "found: %s", k.count ? l->findings.p : "nothing");
}

#define CHECK_TEST(name)                                                                           \
    static void check_##name(struct check_lab *l);                                                 \
    static void lab_archive_check_##name(struct satellites_lab *lab)                               \
    {                                                                                              \
        struct check_lab l;                                                                        \
        check_lab_open(&l, lab);                                                                   \
        check_##name(&l);                                                                          \
        check_lab_close(&l);                                                                       \
    }                                                                                              \
    SATELLITES_TEST_ONE(archive_check, name, embedded, LOCAL)                                      \
    SATELLITES_TEST_ONE(archive_check, name, redis, MIXED)                                         \
    static void check_##name(struct check_lab *l)

/* --- the objects of a tracked account --- */

CHECK_TEST(a_whole_account_has_no_findings)
{
    put_bundle(l, "a@wiki.bundle", "7");
    put_bundle(l, "a@6.bundle", "6");
    put_bundle(l, "a@5-20260101T000000Z.bundle", "5");
    put(l, "octocat", "a@damaged-20260101T000000Z.bundle", "damaged");
    put_bundle(l, "@gists/abc.bundle", "abc");
    put(l, "octocat", "a@audit.json", "{}");
    put(l, "octocat", "a@wiki.audit.json", "{}");
    put(l, "octocat", "a@assets/1/audit.json", "{}");
    put(l, "octocat", "a@assets/1/x.bundle", "of a release");
    put(l, "octocat", "a@issues.ndjson", "{}");
    build(l, "octocat");
    expect(l, NULL);
}

CHECK_TEST(objects_that_the_record_has_are_missed)
{
    drop(l, "octocat", "a.bundle");
    expect(l, "a.bundle: the record has the bundle");
    put_bundle(l, "a.bundle", "7");
    drop(l, "octocat", "a.zip");
    expect(l, "a.zip: the record has the ZIP file");
    put(l, "octocat", "a.zip", "zip");
    drop(l, "octocat", "b.error");
    expect(l, "b.error: the record has an error");
}

CHECK_TEST(an_error_object_without_an_error_is_found)
{
    put(l, "octocat", "a.error", "an old error");
    expect(l, "a.error: there is an .error object");
}

CHECK_TEST(a_repository_that_the_record_lacks_is_found)
{
    put_bundle(l, "c.bundle", "9");
    expect(l, "c.bundle: the record does not have this repository");
    put(l, "octocat", "c.error", "renamed"); /* it had this name before */
    expect(l, NULL);
    put_bundle(l, "d@wiki.bundle", "10");
    expect(l, "d@wiki.bundle: the record does not have this repository");
}

/* A sync that runs may have stored it. */
CHECK_TEST(a_repository_of_a_sync_that_runs_is_not_a_finding)
{
    struct archive_account c = satellites_lab_account(l->lab, "octocat");
    struct schedule_claim claim;
    struct err err = {0};

    put_bundle(l, "c.bundle", "9");
    CHECK_OK(schedule_take(l->lab->schedule, &l->lab->arena, &c, &claim, &err));
    expect(l, NULL);
    CHECK_OK(schedule_end_back(&claim, &err));
}

CHECK_TEST(a_bundle_of_another_repository_is_found)
{
    put_bundle(l, "a.bundle", "6");
    expect(l, "a.bundle: the bundle belongs to another repository");
    put_bundle(l, "a.bundle", "7");
    put_bundle(l, "a@wiki.bundle", "6");
    expect(l, "a@wiki.bundle: the bundle belongs to another repository");
    put_bundle(l, "a@wiki.bundle", "7");
    put_bundle(l, "a@6.bundle", "5");
    expect(l, "a@6.bundle: the bundle belongs to another repository");
    put_bundle(l, "a@6.bundle", "6");
    put_bundle(l, "@gists/abc.bundle", "abd");
    expect(l, "@gists/abc.bundle: the bundle belongs to another repository");
    put(l, "octocat", "@gists/abc.bundle", "no metadata");
    expect(l, "@gists/abc.bundle: the bundle has no metadata");
}

/* The line of a repository whose name another one has taken is called `<name>@<id>`. */
CHECK_TEST(a_repository_whose_name_was_taken_keeps_its_objects_beside_the_other)
{
    l->record.repos.items[1].name = STR("a@8");
    l->record.repos.items[1].zip = STR("0123456789012345678901234567890123456789");
    write_record(l);
    drop(l, "octocat", "b.error");
    expect(l, "a@8.error: the record has an error");
    put(l, "octocat", "a@8.error", "gone");
    expect(l, NULL);
}

CHECK_TEST(a_verdict_without_its_bundle_is_found)
{
    put(l, "octocat", "b@audit.json", "{}");
    expect(l, "b@audit.json: the verdict of an audit has no bundle");
    drop(l, "octocat", "b@audit.json");
    put(l, "octocat", "a@wiki.audit.json", "{}");
    expect(l, "a@wiki.audit.json: the verdict of an audit has no bundle");
}

CHECK_TEST(a_removed_object_of_a_tracked_account_is_found)
{
    put(l, "octocat", ".removed", "");
    expect(l, "github.com/octocat : the account is in `tracked`, and its .removed object");
}

/* --- what no tracked account explains --- */

CHECK_TEST(an_account_that_is_not_tracked_is_found)
{
    put(l, "mojombo", "x.bundle", "a bundle");
    expect(l, NULL); /* its slot may be about to be rebuilt */
    build(l, "mojombo");
    expect(l, "github.com/mojombo 2a/c7/9a/a5/mojombo/x.bundle: the account has objects");
    put(l, "mojombo", ".removed", "");
    expect(l, NULL);
}

CHECK_TEST(objects_on_the_wrong_satellite_are_found)
{
    const char *home = satellites_lab_home(l->lab, "octocat");
    const char *other = lab_names[strcmp(home, lab_names[0]) == 0];

    satellites_lab_write(l->lab, other, satellites_lab_key(l->lab, "octocat", "a@audit.json"),
                         STR("{}"));
    expect(l, "a@audit.json: the satellite ");
    CHECK(str_find(buf_str(&l->findings), str_z(other)) > 0);
}

CHECK_TEST(an_open_upload_is_found_unless_a_sync_runs)
{
    struct archive_account c = satellites_lab_account(l->lab, "octocat");
    struct object_meta meta = {0};
    struct upload_info upload;
    struct schedule_claim claim;
    struct shelf s;
    struct err err = {0};

    CHECK_OK(shelf_open(&s, l->lab->satellites, &l->lab->arena, &c, &err));
    CHECK_OK(shelf_upload_begin(&s, &l->lab->arena,
                                satellites_lab_key(l->lab, "octocat", "a.bundle"), &meta, &upload,
                                &err));
    expect(l, "a.bundle: an upload is open");
    CHECK_OK(schedule_take(l->lab->schedule, &l->lab->arena, &c, &claim, &err));
    expect(l, NULL);
    CHECK_OK(schedule_end_back(&claim, &err));
    CHECK_OK(shelf_upload_abort(&s, &upload, &err));
    shelf_close(&s);
    expect(l, NULL);
}

/* Both accounts are on the first satellite. */
CHECK_TEST(a_bucket_of_no_forge_is_found_once)
{
    static const char *const logins[] = {"mojombo", "x"};
    struct archive_account c;
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(logins); i++) {
        CHECK_OK(
            archive_account_make(&c, &l->lab->arena, STR("gone.example"), str_z(logins[i]), &err));
        put_as(l, &c, archive_key(&c, &l->lab->arena, ARCHIVE_RECORD, STR_EMPTY), NULL, 0,
               STR("{}"));
    }
    expect(l, "gone.example 2a/c7/9a/a5/mojombo.json: no forge that weir knows has this bucket");
}
