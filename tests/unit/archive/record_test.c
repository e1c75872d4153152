/* Records of accounts: written and read line by line, and refused when damaged. */
#include "archive/record.h"
#include "base/clock.h"
#include "unit/test.h"

static struct record_repo repo_of(struct arena *a, size_t i)
{
    return (struct record_repo){
        .id = arena_fmt(a, "%zu", i),
        .name = arena_fmt(a, "repository-%zu", i),
        .pushed_at = STR("2026-01-01T00:00:00Z"),
        .refs_digest = STR("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
        .etag = STR("0123456789abcdef0123456789abcdef-3"),
        .bytes = i,
        .updated_ms = 1700000000000,
        .looked_ms = 1700000001000,
        .code = ARCHIVE_OK,
        .listed = true,
    };
}

static void record_fill(struct archive_record *r, size_t repos)
{
    archive_record_init(r);
    r->account = (struct record_account){.login = STR("OctoCat"),
                                         .id = STR("583231"),
                                         .type = STR("User"),
                                         .added_ms = 1600000000000,
                                         .last_full_sync_ms = 1700000000000,
                                         .gists_ms = 1690000000000,
                                         .repos_listed = repos,
                                         .repos_stored = repos,
                                         .bytes = UINT64_C(1) << 40,
                                         .fence = UINT64_C(1700000000000000),
                                         .epoch = 7};
    for (size_t i = 0; i < repos; i += 100) {
        struct record_page p = {.url = arena_fmt(&r->arena, "/users/octocat/repos?page=%zu", i),
                                .etag = STR("W/\"abc\""),
                                .repos = size_min(100, repos - i)};
        vec_push(&r->pages, p);
    }
    for (size_t i = 0; i < repos; i++)
        vec_push(&r->repos, repo_of(&r->arena, i));
}

static void record_text_of(struct buf *out, const struct archive_record *r)
{
    struct record_text text;
    struct err err = {0};

    archive_record_text_init(&text, r);
    CHECK_OK(reader_read_all(&text.reader, out, &err));
    archive_record_text_release(&text);
    CHECK_INT(out->len, archive_record_text_size(r));
}

static int record_of(struct archive_record *r, struct str text, struct err *err)
{
    struct str_reader from;

    archive_record_init(r);
    str_reader_init(&from, text);
    return archive_record_read(r, &from.reader, err);
}

TEST(archive_record, a_record_reads_as_it_was_written)
{
    struct archive_record r, back;
    struct buf one = {0}, two = {0};
    struct err err = {0};

    record_fill(&r, 3);
    r.repos.items[1].code = ARCHIVE_EMPTY;
    r.repos.items[1].zip = STR("0123");
    r.repos.items[1].url = STR("https://x/y.git");
    r.repos.items[1].extra = STR("{\"wiki\":1}");
    struct record_repo gone = repo_of(&r.arena, 9);
    gone.listed = false;
    gone.code = ARCHIVE_GONE;
    vec_push(&r.repos, gone);
    archive_record_add_error(&r, &(struct record_error){1700000000000, ARCHIVE_TIMEOUT, STR("x"),
                                                        STR("no byte for 60 s \"quoted\"\n")});
    record_text_of(&one, &r);
    CHECK_OK(record_of(&back, buf_str(&one), &err));
    record_text_of(&two, &back);
    CHECK(str_eq(buf_str(&two), buf_str(&one)));
    CHECK_INT(back.repos.len, 4);
    CHECK_INT(back.repos.items[3].code, ARCHIVE_GONE);
    CHECK(back.repos.items[0].listed && !back.repos.items[3].listed);
    CHECK_STR(back.repos.items[1].extra, STR("{\"wiki\":1}"));
    CHECK_STR(back.errors.items[0].message, STR("no byte for 60 s \"quoted\"\n"));
    CHECK_INT(back.account.epoch, 7);
    archive_record_release(&r);
    archive_record_release(&back);
    buf_release(&one);
    buf_release(&two);
}

/* 100,000 repositories are the most that a forge gives an account. */
TEST(archive_record, account_100k_repos)
{
    struct archive_record r, back;
    struct buf text = {0};
    struct err err = {0};
    struct record_account head;
    struct arena a = {0};

    record_fill(&r, 100 * 1000);
    record_text_of(&text, &r);
    CHECK_OK(record_of(&back, buf_str(&text), &err));
    CHECK_INT(back.repos.len, 100 * 1000);
    CHECK_INT(back.pages.len, 1000);
    CHECK_STR(back.repos.items[99999].name, STR("repository-99999"));
    CHECK_OK(archive_record_read_head(&head, &a, str_head(buf_str(&text), RECORD_HEAD_MAX), &err));
    CHECK_STR(head.login, STR("OctoCat"));
    CHECK_INT(head.repos_stored, 100 * 1000);
    arena_release(&a);
    archive_record_release(&r);
    archive_record_release(&back);
    buf_release(&text);
}

TEST(archive_record, the_last_twenty_errors_are_kept)
{
    struct archive_record r;

    archive_record_init(&r);
    for (int i = 0; i < 25; i++)
        archive_record_add_error(&r, &(struct record_error){.at_ms = i + 1});
    CHECK_INT(r.errors.len, RECORD_ERRORS_MAX);
    CHECK_INT(r.errors.items[0].at_ms, 6);
    CHECK_INT(vec_last(&r.errors)->at_ms, 25);
    archive_record_release(&r);
}

#define HEAD "{\"version\":1,\"login\":\"o\"}\n"

TEST(archive_record, damaged_records_are_refused)
{
    static const struct {
        const char *text;
        int code;
    } bad[] = {
        {"", ERR_CORRUPT},
        {"{\"version\":1,\"login\":\"o\"}", ERR_CORRUPT}, /* cut off */
        {"[]\n", ERR_CORRUPT},
        {"{\"version\":1}\n", ERR_CORRUPT},
        {"{\"login\":\"o\"}\n", ERR_CORRUPT},
        {"{\"version\":2,\"login\":\"o\"}\n", ERR_VERSION},
        {"{\"version\":1,\"login\":7}\n", ERR_CORRUPT},
        {"{\"version\":1,\"login\":\"o\",\"fence\":-1}\n", ERR_CORRUPT},
        {"{\"version\":1,\"login\":\"o\",\"added\":\"once\"}\n", ERR_CORRUPT},
        {HEAD "nonsense\n", ERR_CORRUPT},
        {HEAD "{\"name\":\"a\",\"code\":\"ok\"", ERR_CORRUPT},
        {HEAD "{\"code\":\"ok\"}\n", ERR_CORRUPT},
        {HEAD "{\"name\":\"a\",\"code\":\"lost\"}\n", ERR_CORRUPT},
        {HEAD "{\"name\":\"a\"}\n{\"name\":\"b\",\"listed\":true}\n", ERR_CORRUPT},
        {HEAD "{\"page\":\"u\",\"repos\":2}\n{\"name\":\"b\",\"listed\":true}\n", ERR_CORRUPT},
        {HEAD "{\"name\":\"a\",\"extra\":[]}\n", ERR_CORRUPT},
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct archive_record r;
        struct err err = {0};
        CHECK_INT(record_of(&r, str_z(bad[i].text), &err), bad[i].code);
        CHECK(err.text[0]);
        archive_record_release(&r);
    }
}

TEST(archive_record, a_line_without_an_end_is_refused)
{
    struct buf text = {0};
    struct archive_record r;
    struct err err = {0};

    buf_append_z(&text, HEAD "{\"name\":\"");
    for (int i = 0; i < 1024 * 1024; i++)
        buf_append_char(&text, 'a');
    CHECK_INT(record_of(&r, buf_str(&text), &err), ERR_CORRUPT);
    archive_record_release(&r);
    buf_release(&text);
}
