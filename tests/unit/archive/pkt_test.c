/* Packets and the side-band: split at every byte, hostile lengths, and ends in every place. */
#include "archive/pkt.h"
#include "unit/test.h"

/* A reader that gives at most `step` bytes at a time. */
struct slow {
    struct reader reader;
    struct str rest;
    size_t step;
};

static int slow_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct slow *s = (struct slow *)r;

    (void)err;
    *got = size_min(size_min(len, s->step), s->rest.len);
    memcpy(to, s->rest.p, *got);
    s->rest = str_skip(s->rest, *got);
    return 0;
}

static void slow_init(struct slow *s, struct str bytes, size_t step)
{
    static const struct reader_ops ops = {.read = slow_read};

    *s = (struct slow){{&ops}, bytes, step};
}

TEST(archive_pkt, pkt_split_at_every_byte)
{
    struct str text = STR("0009abcd\n0004000100060a00020000");

    for (size_t step = 1; step <= text.len; step++) {
        struct pkt_in in;
        struct slow s;
        struct pkt p;
        struct err err = {0};
        slow_init(&s, text, step);
        pkt_in_init(&in, &s.reader);
        CHECK_OK(pkt_read(&in, &p, &err));
        CHECK_INT(p.kind, PKT_DATA);
        CHECK_STR(p.data, STR("abcd\n"));
        CHECK_OK(pkt_read(&in, &p, &err));
        CHECK_INT(p.kind, PKT_DATA);
        CHECK_INT(p.data.len, 0);
        CHECK_OK(pkt_read(&in, &p, &err));
        CHECK_INT(p.kind, PKT_DELIM);
        CHECK_OK(pkt_read(&in, &p, &err));
        CHECK_STR(p.data, STR("0a"));
        CHECK_OK(pkt_read(&in, &p, &err));
        CHECK_INT(p.kind, PKT_RESPONSE_END);
        CHECK_OK(pkt_read(&in, &p, &err));
        CHECK_INT(p.kind, PKT_FLUSH);
        CHECK_ERR(pkt_read(&in, &p, &err), ERR_END);
        pkt_in_release(&in);
    }
}

TEST(archive_pkt, lengths_that_are_none_are_refused)
{
    static const struct {
        const char *text;
        int code;
    } rows[] = {{"0003", ERR_PARSE}, {"fff1", ERR_PARSE},  {"ffff", ERR_PARSE},
                {"-004", ERR_PARSE}, {"zzzz", ERR_PARSE},  {"000", ERR_CLOSED},
                {"0", ERR_CLOSED},   {"0005", ERR_CLOSED}, {"0009abcd", ERR_CLOSED},
                {"<!DO", ERR_PARSE}};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct pkt_in in;
        struct slow s;
        struct pkt p;
        struct err err = {0};
        slow_init(&s, str_z(rows[i].text), 2);
        pkt_in_init(&in, &s.reader);
        CHECK_ERR(pkt_read(&in, &p, &err), rows[i].code);
        pkt_in_release(&in);
    }
}

TEST(archive_pkt, the_largest_packets_follow_each_other)
{
    struct buf text = {0};
    struct pkt_in in;
    struct slow s;
    struct pkt p;
    struct err err = {0};

    for (int i = 0; i < 5; i++) {
        buf_append_z(&text, "fff0");
        memset(buf_reserve(&text, PKT_MAX - 4), 'a' + i, PKT_MAX - 4);
        buf_commit(&text, PKT_MAX - 4);
    }
    slow_init(&s, buf_str(&text), 50000);
    pkt_in_init(&in, &s.reader);
    for (int i = 0; i < 5; i++) {
        CHECK_OK(pkt_read(&in, &p, &err));
        CHECK_INT(p.data.len, PKT_MAX - 4);
        CHECK(p.data.p[0] == 'a' + i && p.data.p[PKT_MAX - 5] == 'a' + i);
    }
    CHECK_ERR(pkt_read(&in, &p, &err), ERR_END);
    pkt_in_release(&in);
    buf_release(&text);
}

TEST(archive_pkt, lines_are_written_as_git_writes_them)
{
    struct buf out = {0};

    pkt_line(&out, "command=%s", "ls-refs");
    pkt_mark(&out, PKT_DELIM);
    pkt_line(&out, "peel");
    pkt_mark(&out, PKT_FLUSH);
    CHECK_STR(buf_str(&out), STR("0014command=ls-refs\n00010009peel\n0000"));
    buf_release(&out);
}

TEST(archive_pkt, a_servers_words_are_fit_for_a_message)
{
    struct pkt_in in;
    struct slow s;
    struct str line;
    struct err err = {0};

    slow_init(&s, STR("0013ERR no\x1b[31m \xff\r\n"), 100);
    pkt_in_init(&in, &s.reader);
    CHECK_ERR(pkt_read_line(&in, &line, NULL, &err), ERR_PEER);
    CHECK_STR(str_z(err.text), STR("the git server says: no [31m ?"));
    pkt_in_release(&in);
}

/* Reads all of band 1. */
static int read_band(const char *text, size_t len, size_t step, struct buf *out, struct err *err)
{
    struct band_reader band;
    struct pkt_in in;
    struct slow s;

    slow_init(&s, str_n(text, len), step);
    pkt_in_init(&in, &s.reader);
    band_reader_init(&band, &in, 0);
    int code = reader_read_all(&band.reader, out, err);
    pkt_in_release(&in);
    return code;
}

TEST(archive_pkt, keepalive_0005_and_progress_are_passed_over)
{
    static const char text[] = "0009\1PACK0005\1"
                               "000a\2count0008\1abc0000";
    struct buf out = {0};
    struct err err = {0};

    for (size_t step = 1; step < sizeof(text); step++) {
        buf_reset(&out);
        CHECK_OK(read_band(text, sizeof(text) - 1, step, &out, &err));
        CHECK_STR(buf_str(&out), STR("PACKabc"));
    }
    buf_release(&out);
}

TEST(archive_pkt, sideband3_error_and_missing_final_flush)
{
    struct buf out = {0};
    struct err err = {0};
#define BAND(text) read_band(text, sizeof(text) - 1, 3, &out, &err)
    CHECK_ERR(BAND("0009\1PACK000a\3fatal"), ERR_PEER);
    CHECK(strstr(err.text, "fatal"));
    CHECK_ERR(BAND("0009\1PACK"), ERR_CLOSED);
    CHECK_ERR(BAND("0009\1PAC"), ERR_CLOSED);
    CHECK_ERR(BAND("0009\4PACK0000"), ERR_PARSE);
    CHECK_ERR(BAND("00040000"), ERR_PARSE);
    CHECK_ERR(BAND("00010000"), ERR_PARSE);
    CHECK_ERR(BAND("000fERR not our"), ERR_PEER);
#undef BAND
    buf_release(&out);
}

/* A reader that sends packets of progress for ever, of 100 bytes each. */
static int endless_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    static const char packet[] = "0064\2";
    static size_t at;

    (void)r;
    (void)err;
    for (size_t i = 0; i < len; i++, at = (at + 1) % 100)
        ((char *)to)[i] = at < 5 ? packet[at] : 'x';
    *got = len;
    return 0;
}

TEST(archive_pkt, words_without_end_are_ended)
{
    static const struct reader_ops ops = {.read = endless_read};
    struct reader endless = {&ops};
    struct band_reader band;
    struct pkt_in in;
    struct err err = {0};
    size_t got;
    char byte;

    pkt_in_init(&in, &endless);
    band_reader_init(&band, &in, 0);
    CHECK_ERR(reader_read(&band.reader, &byte, 1, &got, &err), ERR_TOO_LARGE);
    pkt_in_release(&in);
}
