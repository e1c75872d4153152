/* Connection ids, and bans of addresses that send wrong ids. */
#include "swarm/connid.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { STEP_MS = 8000, STEPS_VALID = 15, STEPS_AHEAD = 2 };

static uint64_t connid_at_step(const struct hash_key *key, const uint8_t addr[16], uint64_t step)
{
    uint8_t in[24];

    memcpy(in, addr, 16);
    memcpy(in + 16, &step, sizeof(step));
    return hash_sip(key, str_n(in, sizeof(in))) << 8 | (step & 0xff);
}

uint64_t connid_make(const struct hash_key *key, const uint8_t addr[16], int64_t wall_ms)
{
    return connid_at_step(key, addr, (uint64_t)wall_ms / STEP_MS);
}

/* Whether the id is valid. Its low byte tells in which step of time it was made; the step must not
 * be too old, and the hash of that step must match. */
bool connid_check(const struct hash_key *key, const uint8_t addr[16], int64_t wall_ms, uint64_t id)
{
    uint64_t now = (uint64_t)wall_ms / STEP_MS + STEPS_AHEAD;
    uint8_t ago = (uint8_t)(now - id);

    return (connid_at_step(key, addr, now - ago) == id) & (ago <= STEPS_VALID + STEPS_AHEAD);
}

/* --- bans --- */

enum { PLACES = 32 * 1024 };

/* A place of the table counts the wrong ids of one host. A place is packed into one 64-bit word, so
 * that all of it is read and written at once. When two threads write a place at the same time, one
 * of the two wrong ids is not counted. */
struct place {
    uint32_t tag;   /* hash of the host whose wrong ids are counted */
    uint16_t until; /* end of the time in which ids are counted, or of the ban, in steps of 4 s */
    uint16_t count; /* number of wrong ids; CONNID_BAD_MAX: the host is banned */
};

struct connid_bans {
    struct hash_key key;
    _Atomic(uint64_t) places[PLACES];
    _Atomic(uint64_t) latest; /* when the last ban ends, in seconds */
};

struct connid_bans *connid_bans_new(void)
{
    struct connid_bans *b = xcalloc(1, sizeof(*b));

    hash_key_random(&b->key);
    return b;
}

void connid_bans_free(struct connid_bans *b)
{
    free(b);
}

static struct place place_unpack(uint64_t v)
{
    return (struct place){(uint32_t)(v >> 32), (uint16_t)(v >> 16), (uint16_t)v};
}

static uint64_t place_pack(struct place p)
{
    return (uint64_t)p.tag << 32 | (uint64_t)p.until << 16 | p.count;
}

static uint16_t step_of(uint64_t s)
{
    return (uint16_t)(s / 4);
}

static bool is_past(const struct place *p, uint64_t now_s)
{
    uint16_t left = (uint16_t)(p->until - step_of(now_s));

    return left == 0 || left > CONNID_BAN_S / 4 + 1;
}

void connid_bans_bad(struct connid_bans *b, const uint8_t host[16], uint64_t now_s)
{
    uint64_t h = hash_sip(&b->key, str_n(host, 16));
    _Atomic(uint64_t) *at = &b->places[h % PLACES];
    struct place p = place_unpack(atomic_load_explicit(at, memory_order_relaxed));
    uint32_t tag = (uint32_t)(h >> 32);

    if (p.count == 0 || is_past(&p, now_s)) {
        p = (struct place){tag, step_of(now_s + CONNID_WINDOW_S), 1};
    } else if (p.count >= CONNID_BAD_MAX) {
        return;
    } else if (p.tag != tag) {
        p.count--;
    } else if (++p.count == CONNID_BAD_MAX) {
        p.until = step_of(now_s + CONNID_BAN_S);
        atomic_store_explicit(&b->latest, now_s + CONNID_BAN_S, memory_order_relaxed);
    }
    atomic_store_explicit(at, place_pack(p), memory_order_relaxed);
}

bool connid_banned(const struct connid_bans *b, const uint8_t host[16], uint64_t now_s)
{
    uint64_t h;
    struct place p;

    if (now_s >= atomic_load_explicit(&b->latest, memory_order_relaxed))
        return false;
    h = hash_sip(&b->key, str_n(host, 16));
    p = place_unpack(atomic_load_explicit(&b->places[h % PLACES], memory_order_relaxed));
    return p.count >= CONNID_BAD_MAX && p.tag == (uint32_t)(h >> 32) && !is_past(&p, now_s);
}
