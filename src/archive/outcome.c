/* The table of outcomes, and the text of `.error` objects. */
#include "archive/outcome.h"

#include "archive/pkt.h"
#include "base/clock.h"

/* --- codes --- */

const struct archive_code_row archive_codes[ARCHIVE_CODES] = {
    [ARCHIVE_OK] = {"ok", true, true, "The repository was stored."},
    [ARCHIVE_UNCHANGED] = {"unchanged", true, true,
                           "The repository is stored and has not changed."},
    [ARCHIVE_RENAMED] = {"renamed", true, false, "The repository goes on under another name."},
    [ARCHIVE_GONE] = {"gone", true, false, "The forge has the repository no more."},
    [ARCHIVE_DMCA] = {"dmca", true, false, "The forge blocks the repository for copyright."},
    [ARCHIVE_TOS] = {"tos", true, false, "The forge blocks the repository for its terms."},
    [ARCHIVE_DISABLED] = {"disabled", true, false, "The forge has switched the repository off."},
    [ARCHIVE_EMPTY] = {"empty", true, true, "The repository has no commits."},
    [ARCHIVE_TOO_BIG] = {"too-big", true, false, "The repository is larger than a limit."},
    [ARCHIVE_AUTH] = {"auth", false, false, "The server wants another token."},
    [ARCHIVE_RATE] = {"rate", false, false, "The server asks to come back later."},
    [ARCHIVE_TIMEOUT] = {"timeout", false, false, "The server was too slow."},
    [ARCHIVE_HTTP_5XX] = {"http-5xx", false, false, "The server failed or cannot be reached."},
    [ARCHIVE_PROTOCOL] = {"protocol", false, false, "The server's answer makes no sense."},
    [ARCHIVE_REDIRECT] = {"redirect", false, false, "The server leads to a forbidden place."},
    [ARCHIVE_CORRUPT] = {"corrupt", false, false, "Data are damaged."},
    [ARCHIVE_STORAGE] = {"storage", false, false, "The satellite failed."},
};

int archive_code_read(enum archive_code *out, struct str name)
{
    for (int i = 0; i < ARCHIVE_CODES; i++)
        if (str_eq(str_z(archive_codes[i].name), name)) {
            *out = (enum archive_code)i;
            return 0;
        }
    return ERR_PARSE;
}

enum archive_code archive_code_of_peer(int code)
{
    static const struct {
        int err;
        enum archive_code code;
    } rows[] = {
        {ERR_TIMEOUT, ARCHIVE_TIMEOUT},      {ERR_UNAVAILABLE, ARCHIVE_HTTP_5XX},
        {ERR_CLOSED, ARCHIVE_HTTP_5XX},      {ERR_BUSY, ARCHIVE_RATE},
        {ERR_TOO_LARGE, ARCHIVE_TOO_BIG},    {ERR_DENIED, ARCHIVE_AUTH},
        {ERR_CORRUPT, ARCHIVE_CORRUPT},      {ERR_NO_SPACE, ARCHIVE_STORAGE},
        {ERR_OFFLINE, ARCHIVE_STORAGE},      {ERR_IO, ARCHIVE_STORAGE},
        {ERR_PRECONDITION, ARCHIVE_STORAGE}, {ERR_STORE, ARCHIVE_STORAGE},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (rows[i].err == code)
            return rows[i].code;
    return ARCHIVE_PROTOCOL;
}

enum archive_code archive_code_of_storage(int code)
{
    return code == ERR_CORRUPT ? ARCHIVE_CORRUPT : ARCHIVE_STORAGE;
}

const char *archive_stage(struct str name)
{
    static const char *const stages[] = {"list", "refs", "fetch", "verify", "zip", "upload"};

    for (size_t i = 0; i < ARRAY_SIZE(stages); i++)
        if (str_eq(str_z(stages[i]), name))
            return stages[i];
    return NULL;
}

/* --- writing --- */

/* Appends `key: value`. Control characters in the value, such as newlines, become blanks. */
static void error_line(struct buf *out, const char *key, struct str value)
{
    if (value.len == 0)
        return;
    buf_appendf(out, "%s: ", key);
    peer_words(out, str_head(value, ARCHIVE_MESSAGE_MAX));
    buf_append_char(out, '\n');
}

static void error_line_number(struct buf *out, const char *key, uint64_t value)
{
    if (value)
        buf_appendf(out, "%s: %llu\n", key, (unsigned long long)value);
}

static void error_line_time(struct buf *out, const char *key, int64_t ms)
{
    char text[CLOCK_ISO_LEN + 1];

    if (ms == 0)
        return;
    clock_iso(ms, text);
    error_line(out, key, str_z(text));
}

void archive_error_write(struct buf *out, const struct archive_error *e)
{
    char at[CLOCK_ISO_LEN + 1];

    clock_iso(e->at_ms, at);
    buf_appendf(out, "%s %s %s ", at, archive_codes[e->code].name, e->stage);
    peer_words(out, str_head(e->message, ARCHIVE_MESSAGE_MAX));
    buf_append_char(out, '\n');
    error_line_number(out, "http-status", (uint64_t)(e->http_status > 0 ? e->http_status : 0));
    error_line_number(out, "attempts", e->attempts);
    error_line_time(out, "first-seen", e->first_seen_ms);
    error_line_time(out, "last-good", e->last_good_ms);
    error_line(out, "worker", e->worker);
    error_line(out, "request-id", e->request_id);
    error_line(out, "block-reason", e->block_reason);
}

/* --- reading --- */

static int error_bad(struct err *err, const char *what)
{
    return err_set(err, ERR_PARSE, "this is not the text of an .error object: %s", what);
}

static int error_first_line(struct archive_error *e, struct str line, struct err *err)
{
    struct str at, code, stage;

    str_cut(line, ' ', &at, &line);
    str_cut(line, ' ', &code, &line);
    str_cut(line, ' ', &stage, &e->message);
    e->stage = archive_stage(stage);
    if (clock_parse_iso(at, &e->at_ms) < 0)
        return error_bad(err, "its first word is not a time");
    if (archive_code_read(&e->code, code) < 0)
        return error_bad(err, "its second word is not a code");
    return e->stage ? 0 : error_bad(err, "its third word is not a stage");
}

static int error_number(uint64_t *out, struct str value, struct err *err)
{
    return str_u64(value, out) == 0 && *out <= UINT32_MAX ? 0
                                                          : error_bad(err, "a number is malformed");
}

static int error_time(int64_t *out, struct str value, struct err *err)
{
    return clock_parse_iso(value, out) == 0 ? 0 : error_bad(err, "a time is malformed");
}

static int error_member(struct archive_error *e, struct str key, struct str value, struct err *err)
{
    uint64_t number = 0;
    int code = 0;

    if (str_eq(key, STR("http-status"))) {
        code = error_number(&number, value, err);
        e->http_status = number < 1000 ? (int)number : 0;
    } else if (str_eq(key, STR("attempts"))) {
        code = error_number(&number, value, err);
        e->attempts = (unsigned)number;
    } else if (str_eq(key, STR("first-seen"))) {
        code = error_time(&e->first_seen_ms, value, err);
    } else if (str_eq(key, STR("last-good"))) {
        code = error_time(&e->last_good_ms, value, err);
    } else if (str_eq(key, STR("worker"))) {
        e->worker = value;
    } else if (str_eq(key, STR("request-id"))) {
        e->request_id = value;
    } else if (str_eq(key, STR("block-reason"))) {
        e->block_reason = value;
    }
    return code;
}

int archive_error_read(struct archive_error *out, struct str text, struct err *err)
{
    struct archive_error e = {0};
    struct str line, key, value;
    int code = text.len <= ARCHIVE_ERROR_MAX ? 0 : error_bad(err, "it is too long");

    str_cut(text, '\n', &line, &text);
    if (code == 0)
        code = error_first_line(&e, line, err);
    while (code == 0 && text.len > 0) {
        str_cut(text, '\n', &line, &text);
        if (str_cut(line, ':', &key, &value))
            code = error_member(&e, key, str_trim(value), err);
    }
    if (code == 0)
        *out = e;
    return code;
}
