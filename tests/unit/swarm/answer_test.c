/* Answers of the HTTP tracker: golden bytes. */
#include "swarm/answer.h"
#include "unit/test.h"

static struct buf out;

static struct str announced(const struct announce_answer *a, const struct answer_form *form)
{
    buf_reset(&out);
    answer_announce(&out, a, form);
    return buf_str(&out);
}

static struct str failed(enum swarm_failure f, const char *words)
{
    buf_reset(&out);
    answer_failure(&out, f, words);
    return buf_str(&out);
}

TEST(swarm_answer, bencode_golden_bytes)
{
    static uint8_t four[] = {10, 0, 0, 1, 0x1a, 0xe1};
    static uint8_t six[] = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x1a, 0xe1};
    static const struct peer_addr v4 = {.ip = {192, 0, 2, 7}};
    static const struct peer_addr v6 = {.ip = {0x20, 1}, .v6 = true};
    struct announce_answer a = {.interval_s = 1800,
                                .min_interval_s = 900,
                                .complete = 2,
                                .incomplete = 1,
                                .downloaded = 7,
                                .peers4 = {.at = four, .max = 1, .count = 1}};

    CHECK_STR(announced(&a, &(struct answer_form){.compact = true}),
              STR("d8:completei2e10:downloadedi7e10:incompletei1e8:intervali1800e"
                  "12:min intervali900e5:peers6:\x0a\0\0\x01\x1a\xe1"
                  "e"));
    CHECK_STR(announced(&a, &(struct answer_form){.compact = true, .external = &v4}),
              STR("d8:completei2e10:downloadedi7e11:external ip4:\xc0\0\x02\x07"
                  "10:incompletei1e8:intervali1800e"
                  "12:min intervali900e5:peers6:\x0a\0\0\x01\x1a\xe1"
                  "e"));
    a.peers4.count = 0;
    CHECK_STR(announced(&a, &(struct answer_form){.compact = true}),
              STR("d8:completei2e10:downloadedi7e10:incompletei1e8:intervali1800e"
                  "12:min intervali900e5:peers0:e"));
    a.peers6 = (struct compact){.at = six, .max = 1, .count = 1};
    CHECK_STR(announced(&a, &(struct answer_form){.compact = true, .external = &v6}),
              STR("d8:completei2e10:downloadedi7e11:external ip16:\x20\x01"
                  "\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                  "10:incompletei1e8:intervali1800e12:min intervali900e5:peers0:6:peers618:"
                  "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x1a\xe1"
                  "e"));
    buf_release(&out);
}

TEST(swarm_answer, compact0_and_no_peer_id)
{
    static uint8_t four[] = {10, 0, 0, 1, 0x1a, 0xe1};
    static uint8_t six[] = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 80};
    static uint8_t ids[] = "-TR3000-abcdefghijkl";
    struct announce_answer a = {
        .interval_s = 30,
        .min_interval_s = 15,
        .peers4 = {.at = four, .max = 1, .count = 1, .ids = ids, .has_ids = true},
        .peers6 = {.at = six, .max = 1, .count = 1, .ids = ids, .has_ids = true}};

    CHECK_STR(announced(&a, &(struct answer_form){0}),
              STR("d8:completei0e10:downloadedi0e10:incompletei0e8:intervali30e"
                  "12:min intervali15e5:peersl"
                  "d2:ip8:10.0.0.17:peer id20:-TR3000-abcdefghijkl4:porti6881ee"
                  "d2:ip11:2001:db8::17:peer id20:-TR3000-abcdefghijkl4:porti80eeee"));
    CHECK_STR(announced(&a, &(struct answer_form){.no_peer_id = true}),
              STR("d8:completei0e10:downloadedi0e10:incompletei0e8:intervali30e"
                  "12:min intervali15e5:peersld2:ip8:10.0.0.14:porti6881ee"
                  "d2:ip11:2001:db8::14:porti80eeee"));
    a.peers4.has_ids = false; /* the public mode knows none */
    a.peers6.count = 0;
    CHECK_STR(announced(&a, &(struct answer_form){0}),
              STR("d8:completei0e10:downloadedi0e10:incompletei0e8:intervali30e"
                  "12:min intervali15e5:peersld2:ip8:10.0.0.14:porti6881eeee"));
    buf_release(&out);
}

TEST(swarm_answer, failure_retry_in)
{
    CHECK_STR(failed(SWARM_UNAVAILABLE, NULL),
              STR("d14:failure reason34:tracker is temporarily unavailable8:retry ini5ee"));
    CHECK_STR(failed(SWARM_USER, NULL),
              STR("d14:failure reason19:user does not exist8:retry in5:nevere"));
    CHECK_STR(failed(SWARM_MALFORMED, "port is missing"),
              STR("d14:failure reason15:port is missing8:retry in5:nevere"));
    buf_release(&out);
}

TEST(swarm_answer, a_scrape_has_known_torrents_alone)
{
    static const uint8_t hashes[] = "aaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbbcccccccccccccccccccc";
    struct scrape_entry entries[] = {
        {.known = true, .complete = 1, .incomplete = 2, .downloaded = 3, .downloaders = 1},
        {.known = false},
        {.known = true},
    };

    buf_reset(&out);
    answer_scrape(&out, hashes, entries, 3, 900);
    CHECK_STR(buf_str(&out),
              STR("d5:filesd20:aaaaaaaaaaaaaaaaaaaad8:completei1e10:downloadedi3e"
                  "11:downloadersi1e10:incompletei2ee"
                  "20:ccccccccccccccccccccd8:completei0e10:downloadedi0e11:downloadersi0e"
                  "10:incompletei0eee5:flagsd20:min_request_intervali900eee"));
    buf_release(&out);
}
