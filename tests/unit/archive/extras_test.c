/* Options: lists as JSON lines with checkpoints, files of releases, and LFS pointers. */
#include "archive/extras.h"
#include "http/client.h"
#include "unit/archive/forge_lab.h"
#include "unit/archive/satellites_lab.h"

struct extras_lab {
    struct satellites_lab *satellites;
    struct forge_lab forge;
    struct archive_account account;
    struct shelf shelf;
    struct client *client;
    struct extras x;
    struct extras_state state;
    struct err err;
};

static void extras_start(struct extras_lab *l, struct satellites_lab *lab, enum forge_kind kind,
                         const struct forge_line *lines)
{
    struct err err = {0};

    *l = (struct extras_lab){.satellites = lab, .forge.given = lab->four};
    satellites_lab_add(lab, 3);
    forge_lab_start(&l->forge, kind, lines, NULL);
    l->account = satellites_lab_account(lab, "octocat");
    CHECK_OK(shelf_open(&l->shelf, lab->satellites, &lab->arena, &l->account, &err));
    l->client = client_new(&(struct client_options){.direct = true, .max_attempts = 1});
    l->x = (struct extras){.session = l->forge.session,
                           .shelf = &l->shelf,
                           .account = &l->account,
                           .client = l->client,
                           .arena = &lab->arena,
                           .scratch = test_dir(),
                           .scratch_max = MIB,
                           .file_max = MIB,
                           .owner = STR("octocat"),
                           .repo = STR("Hello-World"),
                           .id = STR("1"),
                           .now_ms = 1700000000000};
}

static void extras_stop(struct extras_lab *l)
{
    shelf_close(&l->shelf);
    client_free(l->client);
    forge_lab_stop(&l->forge);
}

static int save(struct extras_lab *l, struct forge_wants wants)
{
    return extras_lists(&l->x, &wants, &l->state, &l->forge.fault, &l->err);
}

static void run(void (*fn)(struct satellites_lab *lab))
{
    satellites_lab_run(four_open_embedded, LAB_LOCAL, fn);
}

#define ITEM(id, at) "{\"id\":" id ",\"updated_at\":\"" at "\",\n\"body\":\"x\"}"
#define DATE         "\r\nDate: Wed, 01 Jul 2026 10:00:00 GMT"

static void issues(struct satellites_lab *lab)
{
    static const struct forge_line first[] = {
        {"/issues/comments", NULL, "200 OK" DATE, "[" ITEM("9", "2026-06-01T00:00:00Z") "]"},
        {"/issues?", NULL, "200 OK" DATE,
         "[" ITEM("1", "2026-06-01T00:00:00Z") "," ITEM("2", "2026-06-02T00:00:00Z") "]"},
        {0}};
    static const struct forge_line second[] = {
        {"/issues/comments", NULL, "200 OK" DATE, "[]"},
        {"/issues?", NULL, "200 OK" DATE,
         "[" ITEM("2", "2026-06-02T00:00:00Z") "," ITEM("1", "2026-07-01T09:59:30Z") "]"},
        {0}};
    static const char lines[] =
        "{\"type\":\"issue\",\"data\":{\"id\":1,\"updated_at\":\"2026-06-01T00:00:00Z\", "
        "\"body\":\"x\"}}\n"
        "{\"type\":\"issue\",\"data\":{\"id\":2,\"updated_at\":\"2026-06-02T00:00:00Z\", "
        "\"body\":\"x\"}}\n"
        "{\"type\":\"issue_comment\",\"data\":{\"id\":9,\"updated_at\":\"2026-06-01T00:00:00Z\", "
        "\"body\":\"x\"}}\n";
    static const char more[] =
        "{\"type\":\"issue\",\"data\":{\"id\":1,\"updated_at\":\"2026-07-01T09:59:30Z\", "
        "\"body\":\"x\"}}\n";
    struct extras_lab l;
    struct buf all = {0};

    extras_start(&l, lab, FORGE_GITHUB, first);
    CHECK_INT(save(&l, (struct forge_wants){.issues = true}), 0);
    satellites_lab_expect(lab, "octocat", "Hello-World@issues.ndjson", str_z(lines));
    CHECK_STR(l.state.issues, STR("2026-07-01T09:59:00Z")); /* the server's time, with overlap */
    CHECK_INT(l.x.lines, 3);
    forge_lab_answers(&l.forge, second);
    CHECK_INT(save(&l, (struct forge_wants){.issues = true}), 0);
    CHECK_INT(forge_lab_count(&l.forge, "since=2026-07-01T09%3A59%3A00Z"), 2);
    buf_append_z(&all, lines);
    buf_append_z(&all, more); /* only the line that is new */
    satellites_lab_expect(lab, "octocat", "Hello-World@issues.ndjson", buf_str(&all));
    CHECK_INT(l.x.lines, 4);
    buf_release(&all);
    extras_stop(&l);
}

TEST(archive_extras, issues_are_lines_that_are_only_added)
{
    run(issues);
}

static void absent(struct satellites_lab *lab)
{
    static const struct forge_line lines[] = {
        {"/issues", NULL, "410 Gone", "{\"message\":\"Issues has been disabled\"}"},
        {"/pulls", NULL, "404 Not Found", "{}"},
        {"/releases", NULL, "500 Oops", "{}"},
        {0}};
    struct extras_lab l;

    extras_start(&l, lab, FORGE_GITHUB, lines);
    CHECK_INT(save(&l, (struct forge_wants){.issues = true, .pulls = true}), 0);
    satellites_lab_expect(lab, "octocat", "Hello-World@issues.ndjson", STR_EMPTY);
    CHECK_INT(save(&l, (struct forge_wants){.releases = true}), ERR_PEER);
    CHECK_INT(l.forge.fault.code, ARCHIVE_HTTP_5XX);
    CHECK_INT(l.state.releases.len, 0);
    extras_stop(&l);
}

TEST(archive_extras, features_that_are_off_are_no_error)
{
    run(absent);
}

static void pulls(struct satellites_lab *lab)
{
    static const struct forge_line lines[] = {
        {"/pulls/comments", NULL, "200 OK" DATE, "[]"},
        {"/pulls?", NULL, "200 OK" DATE,
         "[" ITEM("3", "2026-06-30T00:00:00Z") "," ITEM("2", "2026-05-01T00:00:00Z") "]"},
        {0}};
    struct extras_lab l;

    extras_start(&l, lab, FORGE_GITHUB, lines);
    l.state.pulls = STR("2026-06-01T00:00:00Z");
    CHECK_INT(save(&l, (struct forge_wants){.pulls = true}), 0);
    CHECK_INT(l.x.lines, 1); /* reading ends at the checkpoint */
    extras_stop(&l);
}

TEST(archive_extras, pull_requests_are_read_down_to_the_checkpoint)
{
    run(pulls);
}

static void releases(struct satellites_lab *lab)
{
    struct extras_lab l;

    extras_start(&l, lab, FORGE_GITEA, NULL);
    struct str url = str_z(peer_url(l.forge.peer));
#define RELEASE(count)                                                                             \
    arena_fmt(&lab->arena,                                                                         \
              "[{\"id\":1,\"assets\":[{\"id\":7,\"name\":\"a b/c.txt\",\"size\":5,"                \
              "\"download_count\":%d,\"browser_download_url\":\"" STR_FMT "/files/7\"},"           \
              "{\"id\":8,\"name\":\"gone\",\"size\":5,\"browser_download_url\":\"" STR_FMT         \
              "/files/8\"}]}]",                                                                    \
              count, STR_ARG(url), STR_ARG(url))                                                   \
        .p
    struct forge_line lines[] = {
        {"/releases", NULL, "200 OK", RELEASE(1)}, {"/files/7", NULL, "200 OK", "hello"}, {0}};
    forge_lab_answers(&l.forge, lines);
    CHECK_INT(save(&l, (struct forge_wants){.releases = true}), 0);
    satellites_lab_expect(lab, "octocat", "Hello-World@assets/7/a_b_c.txt", STR("hello"));
    CHECK(l.x.files == 1 && l.x.lines == 1 && l.x.left_out == 1);
    unsigned before = l.forge.requests;
    lines[0].body = RELEASE(2); /* a download is no change */
    CHECK_INT(save(&l, (struct forge_wants){.releases = true}), 0);
    CHECK_INT(l.forge.requests - before, 1);
    CHECK_INT(l.x.lines, 1);
    extras_stop(&l);
}

TEST(archive_extras, releases_have_their_files)
{
    run(releases);
}

/* GitLab has links in the place of files. The length is not known before the answer. */
static void links(struct satellites_lab *lab)
{
    struct extras_lab l;

    extras_start(&l, lab, FORGE_GITLAB, NULL);
    struct str url = str_z(peer_url(l.forge.peer));
    struct forge_line lines[] = {
        {"/releases", NULL, "200 OK",
         arena_fmt(&lab->arena,
                   "[{\"tag_name\":\"v1\",\"assets\":{\"count\":2,\"sources\":[{\"url\":\"" STR_FMT
                   "/zip\"}],\"links\":[{\"id\":7,\"name\":\"a b\",\"url\":\"" STR_FMT
                   "/files/7\"},{\"id\":8,\"name\":\"gone\",\"url\":\"" STR_FMT
                   "/files/8\"},{\"id\":9,\"name\":\"x\",\"url\":\"http://127.0.0.1:1/x\"}]}}]",
                   STR_ARG(url), STR_ARG(url), STR_ARG(url))
             .p},
        {"/files/7", NULL, "200 OK", "hello"},
        {0}};
    forge_lab_answers(&l.forge, lines);
    CHECK_INT(save(&l, (struct forge_wants){.releases = true}), 0);
    satellites_lab_expect(lab, "octocat", "Hello-World@assets/7/a_b", STR("hello"));
    CHECK(l.x.files == 1 && l.x.lines == 1 && l.x.left_out == 2);
    CHECK(!l.x.tries_again);
    extras_stop(&l);
}

TEST(archive_extras, links_of_gitlab_releases_are_files)
{
    run(links);
}

/* A file with a size past the limit is not asked for. The other files are saved, and the next sync
 * looks again, because the limit may have been raised. */
static void large_files(struct satellites_lab *lab)
{
    struct extras_lab l;

    extras_start(&l, lab, FORGE_GITEA, NULL);
    struct str url = str_z(peer_url(l.forge.peer));
    struct str text = arena_fmt(
        &lab->arena,
        "[{\"id\":1,\"assets\":["
        "{\"id\":7,\"name\":\"x\",\"size\":9223372036854775807,"
        "\"browser_download_url\":\"" STR_FMT "/files/x\"},"
        "{\"id\":9,\"name\":\"z\",\"size\":5,\"browser_download_url\":\"" STR_FMT "/files/z\"}]}]",
        STR_ARG(url), STR_ARG(url));
    struct forge_line lines[] = {
        {"/releases", NULL, "200 OK", text.p}, {"/files/z", NULL, "200 OK", "hello"}, {0}};
    forge_lab_answers(&l.forge, lines);
    CHECK_INT(save(&l, (struct forge_wants){.releases = true}), 0);
    satellites_lab_expect(lab, "octocat", "Hello-World@assets/9/z", STR("hello"));
    CHECK_INT(l.x.left_out, 1);
    CHECK(str_find(str_z(l.x.too_big), STR("@assets/7/x: 9223372036854775807 bytes")) >= 0);
    CHECK_INT(l.state.releases.len, 0);
    extras_stop(&l);
}

TEST(archive_extras, files_past_the_limit_are_left_out)
{
    run(large_files);
}

/* A server that refuses a file has it, so the release is looked at again. */
static void refused_files(struct satellites_lab *lab)
{
    struct extras_lab l;

    extras_start(&l, lab, FORGE_GITEA, NULL);
    struct str url = str_z(peer_url(l.forge.peer));
    struct forge_line lines[] = {
        {"/releases", NULL, "200 OK", RELEASE(1)}, {"/files/7", NULL, "403 Forbidden", "no"}, {0}};
    forge_lab_answers(&l.forge, lines);
    CHECK_INT(save(&l, (struct forge_wants){.releases = true}), ERR_DENIED);
    CHECK_INT(l.forge.fault.code, ARCHIVE_AUTH);
    CHECK_INT(l.state.releases.len, 0);
    lines[1].answer = "200 OK";
    lines[1].body = "hello";
    CHECK_INT(save(&l, (struct forge_wants){.releases = true}), 0);
    CHECK(l.x.files == 1 && l.state.releases.len);
    extras_stop(&l);
}

TEST(archive_extras, files_that_the_server_refuses_are_not_gone)
{
    run(refused_files);
}

static void files_elsewhere(struct satellites_lab *lab)
{
    static const struct forge_line lines[] = {
        {"/releases", NULL, "200 OK",
         "[{\"id\":1,\"assets\":[{\"id\":7,\"name\":\"x\",\"size\":5,"
         "\"browser_download_url\":\"http://127.0.0.2:9/x\"}]}]"},
        {0}};
    struct extras_lab l;

    extras_start(&l, lab, FORGE_GITEA, lines);
    CHECK_INT(save(&l, (struct forge_wants){.releases = true}), ERR_DENIED);
    CHECK_INT(l.forge.fault.code, ARCHIVE_REDIRECT);
    extras_stop(&l);
}

TEST(archive_extras, files_on_hosts_that_are_not_public_are_refused)
{
    run(files_elsewhere);
}

TEST(archive_extras, states_are_read_back)
{
    struct extras_state s = {.issues = STR("2026"), .lfs = STR("ab\"c")}, back;
    struct arena a = {0};
    struct buf text = {0};

    extras_state_write(&text, &s);
    extras_state_read(&back, &a, buf_str(&text));
    CHECK_STR(back.issues, s.issues);
    CHECK_STR(back.lfs, s.lfs);
    extras_state_read(&back, &a, STR("{\"issues\":"));
    CHECK_INT(back.issues.len, 0);
    buf_release(&text);
    arena_release(&a);
}

#define OID "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393"

TEST(archive_extras, lfs_pointers)
{
    struct lfs_pointer p;

    CHECK(lfs_pointer_read(&p, STR("version https://git-lfs.github.com/spec/v1\n"
                                   "oid sha256:" OID "\nsize 12345\n")));
    CHECK_STR(str_z(p.oid), STR(OID));
    CHECK_INT(p.size, 12345);
    CHECK(lfs_pointer_read(&p, STR("version https://git-lfs.github.com/spec/v1\next-0-x sha256:00\n"
                                   "oid sha256:" OID "\nsize 0\n")));
    CHECK(!lfs_pointer_read(&p, STR("version https://git-lfs.github.com/spec/v1\n"
                                    "oid sha256:../../x\nsize 1\n")));
    CHECK(!lfs_pointer_read(&p, STR("version https://git-lfs.github.com/spec/v1\n"
                                    "oid sha256:" OID "\nsize -1\n")));
    CHECK(!lfs_pointer_read(&p, STR("oid sha256:" OID "\nsize 1\n")));
    CHECK(!lfs_pointer_read(&p, STR("")));
}
