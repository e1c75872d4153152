/* The table of outcomes, and the text of .error objects. */
#include "archive/outcome.h"
#include "base/clock.h"
#include "unit/test.h"

TEST(archive_outcome, every_code_has_a_name_of_its_own)
{
    for (int i = 0; i < ARCHIVE_CODES; i++) {
        enum archive_code code = ARCHIVE_CODES;
        CHECK(archive_codes[i].name && archive_codes[i].meaning);
        CHECK_INT(archive_code_read(&code, str_z(archive_codes[i].name)), 0);
        CHECK_INT(code, i);
    }
    enum archive_code code;
    CHECK_INT(archive_code_read(&code, STR("lost")), ERR_PARSE);
}

/* Errors of a server are never taken for "the repository is not there". */
TEST(archive_outcome, no_error_of_a_peer_is_done)
{
    for (int i = 0; i < ERR_COUNT; i++) {
        enum archive_code code = archive_code_of_peer(-1 - i);
        CHECK(code == ARCHIVE_TOO_BIG || !archive_codes[code].permanent);
        CHECK(!archive_codes[archive_code_of_storage(-1 - i)].permanent);
    }
}

TEST(archive_outcome, an_error_reads_as_it_was_written)
{
    struct archive_error e = {.at_ms = 1700000000123,
                              .code = ARCHIVE_DMCA,
                              .stage = "refs",
                              .message = STR("Repository access blocked"),
                              .http_status = 451,
                              .attempts = 3,
                              .first_seen_ms = 1600000000000,
                              .last_good_ms = 1500000000000,
                              .worker = STR("host-1"),
                              .request_id = STR("AB:12"),
                              .block_reason = STR("dmca")};
    struct archive_error back;
    struct buf text = {0};
    struct err err = {0};

    archive_error_write(&text, &e);
    CHECK_STR(buf_str(&text), STR("2023-11-14T22:13:20.123Z dmca refs Repository access blocked\n"
                                  "http-status: 451\n"
                                  "attempts: 3\n"
                                  "first-seen: 2020-09-13T12:26:40.000Z\n"
                                  "last-good: 2017-07-14T02:40:00.000Z\n"
                                  "worker: host-1\n"
                                  "request-id: AB:12\n"
                                  "block-reason: dmca\n"));
    CHECK_OK(archive_error_read(&back, buf_str(&text), &err));
    CHECK(back.at_ms == e.at_ms && back.code == e.code && back.http_status == 451);
    CHECK(back.attempts == 3 && back.first_seen_ms == e.first_seen_ms);
    CHECK(back.last_good_ms == e.last_good_ms && str_eq(back.message, e.message));
    CHECK(str_eq(back.worker, e.worker) && str_eq(back.request_id, e.request_id));
    CHECK(str_eq(back.block_reason, e.block_reason) && strcmp(back.stage, "refs") == 0);
    buf_release(&text);
}

/* A server's words cannot write lines into an .error object. */
TEST(archive_outcome, words_of_a_server_stay_on_their_line)
{
    struct archive_error e = {.code = ARCHIVE_PROTOCOL,
                              .stage = "fetch",
                              .message = STR("a\nattempts: 9\r\x1b[1m\xff"),
                              .request_id = STR("x\nworker: evil")};
    struct archive_error back;
    struct buf text = {0};
    struct err err = {0};

    archive_error_write(&text, &e);
    CHECK_OK(archive_error_read(&back, buf_str(&text), &err));
    CHECK_INT(back.attempts, 0);
    CHECK_INT(back.worker.len, 0);
    CHECK_STR(back.message, STR("a attempts: 9  [1m?"));
    buf_release(&text);
}

TEST(archive_outcome, other_texts_are_refused)
{
    static const char *const bad[] = {
        "",
        "hello",
        "2023-11-14T22:13:20.123Z lost refs x\n",
        "2023-11-14T22:13:20.123Z dmca nowhere x\n",
        "yesterday dmca refs x\n",
        "2023-11-14T22:13:20.123Z dmca refs x\nattempts: many\n",
        "2023-11-14T22:13:20.123Z dmca refs x\nfirst-seen: once\n",
    };
    struct archive_error e;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct err err = {0};
        CHECK_INT(archive_error_read(&e, str_z(bad[i]), &err), ERR_PARSE);
        CHECK(err.text[0]);
    }
}
