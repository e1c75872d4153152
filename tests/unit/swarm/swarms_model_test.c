/* Swarms against a plain model: every answer and every count of a long random history. */
#include "base/hash.h"
#include "unit/swarm/swarms_util.h"

enum { TORRENTS = 5, CLIENTS = 60, MANY_CLIENTS = 900, TIMEOUT_S = 90 };

struct model_peer {
    bool there, seeder, paused;
    uint32_t seen;
};

struct model {
    struct model_peer peers[TORRENTS][MANY_CLIENTS][2]; /* by client and family */
    uint32_t snatches[TORRENTS];
    uint16_t tags[MANY_CLIENTS];
    uint32_t clients, now;
    uint64_t random;
};

static uint32_t below(struct model *m, uint32_t bound)
{
    m->random = m->random * 6364136223846793005 + 1442695040888963407;
    return (uint32_t)((m->random >> 33) % bound);
}

static void expire(struct model *m, uint32_t t)
{
    for (uint32_t c = 0; c < m->clients; c++)
        for (int v6 = 0; v6 < 2; v6++)
            if (m->now - m->peers[t][c][v6].seen > TIMEOUT_S)
                m->peers[t][c][v6].there = false;
}

/* A client on both families counts as what it is over IPv4. Of 900 clients some have the tag of
 * another: then that is taken for it. */
static uint32_t count(const struct model *m, uint32_t t, bool seeder)
{
    static bool tags[UINT16_MAX + 1];
    uint32_t n = 0;

    memset(tags, 0, sizeof(tags));
    for (uint32_t c = 0; c < m->clients; c++) {
        const struct model_peer *p = &m->peers[t][c][0];
        n += p->there && p->seeder == seeder;
        tags[m->tags[c]] |= p->there;
    }
    for (uint32_t c = 0; c < m->clients; c++) {
        const struct model_peer *p = &m->peers[t][c][1];
        n += p->there && p->seeder == seeder && !tags[m->tags[c]];
    }
    return n;
}

static uint32_t paused(const struct model *m, uint32_t t)
{
    uint32_t n = 0;

    for (uint32_t c = 0; c < m->clients; c++)
        for (int v6 = 0; v6 < 2; v6++)
            n += m->peers[t][c][v6].there && m->peers[t][c][v6].paused;
    return n;
}

/* Peers of the family that somebody else may be given. */
static uint32_t fitting(const struct model *m, uint32_t t, uint32_t me, int v6, bool seeders)
{
    uint32_t n = 0;

    for (uint32_t c = 0; c < m->clients; c++) {
        const struct model_peer *p = &m->peers[t][c][v6];
        n += c != me && p->there && p->seeder == seeders;
    }
    return n;
}

static void check_answer(struct model *m, const struct asked *q, uint32_t t, uint32_t me)
{
    int v6 = q->a.addr.v6;
    const struct compact *got = v6 ? &q->answer.peers6 : &q->answer.peers4;
    size_t stride = v6 ? COMPACT6_LEN : COMPACT4_LEN;
    bool given[MANY_CLIENTS] = {false};
    uint32_t seeders = fitting(m, t, me, v6, true), leechers = fitting(m, t, me, v6, false);
    uint32_t want = q->a.event == EVENT_STOPPED ? 0
                    : q->a.numwant < 0          ? 50
                                                : (uint32_t)q->a.numwant;
    uint32_t first = q->a.left ? seeders : 0, got_seeders = 0;
    uint32_t last = announce_maybe_link(&q->a) ? seeders : 0;

    CHECK_INT(got->count, size_min(want, first + leechers + last));
    for (size_t i = 0; i < got->count; i++) {
        uint32_t c;
        memcpy(&c, got->at + i * stride, 4);
        CHECK(c < m->clients && c != me && !given[c]);
        CHECK(m->peers[t][c][v6].there);
        given[c] = true;
        got_seeders += m->peers[t][c][v6].seeder;
    }
    CHECK_INT(got_seeders, size_min(want, first) + size_min(last, want - size_min(want, leechers)));
}

static void model_announce(struct model *m, const struct asked *q, uint32_t t, uint32_t me)
{
    struct model_peer *p = &m->peers[t][me][q->a.addr.v6];
    bool done = q->a.left == 0;

    if (p->there && !p->seeder && done)
        m->snatches[t]++;
    if (q->a.event == EVENT_STOPPED) {
        p->there = false;
        return;
    }
    *p = (struct model_peer){true, done, !done && q->a.event == EVENT_PAUSED, m->now};
}

static void step(struct model *m, struct swarms *s)
{
    uint32_t t = below(m, TORRENTS), me = below(m, m->clients);
    struct scrape_entry e;
    struct asked q;

    ask(&q, t, me, below(m, 3) == 0);
    q.a.numwant = (int32_t)below(m, 60) - 1;
    q.a.left = below(m, 2);
    q.a.event = (enum announce_event)below(m, 5);
    expire(m, t);
    swarms_announce(s, &q.a, m->now, &q.answer);
    check_answer(m, &q, t, me);
    model_announce(m, &q, t, me);
    if (q.answer.complete || q.answer.incomplete || q.answer.downloaded)
        CHECK_INT(q.answer.downloaded, m->snatches[t]);
    CHECK_INT(q.answer.complete, count(m, t, true));
    CHECK_INT(q.answer.incomplete, count(m, t, false));
    e = scrape_one(s, t);
    if (!e.known)
        return;
    CHECK_INT(e.complete, q.answer.complete);
    CHECK_INT(e.incomplete, q.answer.incomplete);
    CHECK_INT(e.downloaders, e.incomplete - size_min(e.incomplete, paused(m, t)));
}

static void check_stats(struct model *m, struct swarms *s)
{
    uint64_t n[2][2] = {{0}};
    struct swarms_stats stats;

    for (uint32_t t = 0; t < TORRENTS; t++) {
        expire(m, t);
        scrape_one(s, t); /* those past the timeout go */
        for (uint32_t c = 0; c < m->clients; c++)
            for (int v6 = 0; v6 < 2; v6++)
                n[v6][m->peers[t][c][v6].seeder] += m->peers[t][c][v6].there;
    }
    swarms_stats(s, &stats);
    CHECK_INT(stats.seeders4, n[0][1]);
    CHECK_INT(stats.leechers4, n[0][0]);
    CHECK_INT(stats.seeders6, n[1][1]);
    CHECK_INT(stats.leechers6, n[1][0]);
}

static void play(uint32_t clients, uint32_t steps, uint32_t steps_a_second, uint64_t seed)
{
    static struct model m;
    struct swarms *s = open_swarms(TIMEOUT_S);
    uint8_t hash[INFO_HASH_LEN];

    m = (struct model){.clients = clients, .now = 1000, .random = seed};
    for (uint32_t c = 0; c < clients; c++) {
        struct asked q;
        ask(&q, 0, c, false);
        m.tags[c] = (uint16_t)hash_xxh3(str_n(q.id, PEER_ID_LEN), hash_xxh3(q.a.key, 0));
    }
    for (uint32_t t = 0; t < TORRENTS; t++) { /* added, so that snatches stay */
        number_into(hash, sizeof(hash), t);
        swarms_add(s, hash, 0);
    }
    for (uint32_t i = 0; i < steps; i++) {
        m.now += below(&m, steps_a_second) == 0;
        if (below(&m, 4000) == 0)
            m.now += below(&m, 3 * TIMEOUT_S);
        step(&m, s);
        if (i % 64 == 0)
            swarms_clean(s, m.now);
        if (i % 1024 == 0)
            check_stats(&m, s);
    }
    swarms_free(s);
}

TEST(swarms_model, small_swarms_answer_as_the_model)
{
    for (uint64_t seed = 1; seed <= 4; seed++)
        play(CLIENTS, 20000, 2, seed);
    play(6, 20000, 1, 5);
}

TEST(swarms_model, large_swarms_answer_as_the_model)
{
    play(MANY_CLIENTS, 25000, 100, 6);
}
