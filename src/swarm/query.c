/* Reads the path and the query of HTTP announces and scrapes. */
#include "swarm/query.h"
#include "base/hex.h"

#include <stdlib.h>

static const char malformed[] = "malformed request: an escape is cut off or not hexadecimal";
static const char too_many[] = "malformed request: too many torrents in one scrape";

/* --- the path --- */

static enum query_action action_of(struct str word)
{
    return str_eq(word, STR("announce")) ? QUERY_ANNOUNCE
           : str_eq(word, STR("scrape")) ? QUERY_SCRAPE
                                         : QUERY_OTHER;
}

enum query_action query_path(struct str path, struct str *passkey)
{
    struct str words[3], rest = path;
    size_t count = 0;
    enum query_action action;

    *passkey = STR_EMPTY;
    while (count < ARRAY_SIZE(words) && str_token(&rest, "/", &words[count]))
        count++;
    if (count == 0 || rest.len > 1) /* a slash at the end is ignored */
        return QUERY_OTHER;
    if (count == 3 && !str_eq(words[0], STR("users")))
        return QUERY_OTHER;
    action = action_of(words[count - 1]);
    if (action != QUERY_OTHER && count > 1)
        *passkey = words[count - 2];
    if (action == QUERY_OTHER && count == 2) {
        action = action_of(words[0]);
        *passkey = action != QUERY_OTHER ? words[1] : STR_EMPTY;
    }
    return action;
}

/* Cuts the next "name=value" off *rest; empty pairs are skipped. False: there are no more pairs. */
static bool next_pair(struct str *rest, struct str *name, struct str *value)
{
    struct str pair;

    if (!str_token(rest, "&;", &pair))
        return false;
    str_cut(pair, '=', name, value);
    return true;
}

struct str query_passkey(struct str target)
{
    struct str path, query, passkey, name, value;

    str_cut(target, '?', &path, &query);
    query_path(path, &passkey);
    while (!passkey.len && next_pair(&query, &name, &value))
        if (str_ieq(name, STR("passkey")) && str_chr(value, '%') < 0)
            passkey = value;
    return passkey;
}

/* --- values --- */

/* Decodes the "%xx" of `value` into `out`, at most `max` bytes. *len is the decoded length of the
 * whole value. False: a "%xx" is malformed. */
static bool decode_value(struct str value, void *out, size_t max, size_t *len)
{
    uint8_t *to = out;
    size_t count = 0;

    for (size_t i = 0; i < value.len; i++, count++) {
        uint8_t byte = (uint8_t)value.p[i];
        if (byte == '%') {
            int high = value.len - i > 2 ? hex_digit(value.p[i + 1]) : -1;
            int low = high >= 0 ? hex_digit(value.p[i + 2]) : -1;
            if (low < 0)
                return false;
            byte = (uint8_t)(high << 4 | low);
            i += 2;
        }
        if (count < max)
            to[count] = byte;
    }
    *len = count;
    return true;
}

/* Reads a value of exactly `len` bytes. Returns NULL, or a text for the client: `wrong` if the
 * value has another length. */
static const char *take_query_bytes(struct str value, uint8_t *out, size_t len, const char *wrong)
{
    size_t got;

    if (!decode_value(value, out, len, &got))
        return malformed;
    return got == len ? NULL : wrong;
}

/* Reads a value and keeps its first `max` bytes. Returns NULL, or a text for the client. */
static const char *take_query_text(struct str value, char *out, size_t max, size_t *len)
{
    if (!decode_value(value, out, max, len))
        return malformed;
    *len = size_min(*len, max);
    return NULL;
}

/* --- the names of an announce --- */

/* The mandatory parameters of an announce, as bits of `has`. */
enum { HAS_INFO_HASH = 1, HAS_PEER_ID = 2, HAS_PORT = 4 };

struct taking {
    struct announce_query *q;
    unsigned has;
};

typedef const char *take_fn(struct taking *t, struct str value);

static const char *take_info_hash(struct taking *t, struct str value)
{
    if (t->has & HAS_INFO_HASH)
        return "malformed request: more than one info_hash";
    t->has |= HAS_INFO_HASH;
    return take_query_bytes(value, t->q->info_hash, INFO_HASH_LEN,
                            "malformed request: info_hash is not 20 bytes");
}

static const char *take_peer_id(struct taking *t, struct str value)
{
    t->has |= HAS_PEER_ID;
    return take_query_bytes(value, t->q->peer_id, PEER_ID_LEN,
                            "malformed request: peer_id is not 20 bytes");
}

static const char *take_port(struct taking *t, struct str value)
{
    uint64_t port;

    t->has |= HAS_PORT;
    if (str_u64(value, &port) < 0 || port > UINT16_MAX)
        return "malformed request: port is not a number up to 65535";
    t->q->port = (uint16_t)port;
    return NULL;
}

static const char *take_left(struct taking *t, struct str value)
{
    uint64_t left;

    t->q->left = str_u64(value, &left) < 0 || left > QUERY_LEFT_UNKNOWN ? QUERY_LEFT_UNKNOWN : left;
    return NULL;
}

static const char *take_uploaded(struct taking *t, struct str value)
{
    return str_u64(value, &t->q->uploaded) < 0 ? "malformed request: uploaded is not a number"
                                               : NULL;
}

static const char *take_downloaded(struct taking *t, struct str value)
{
    return str_u64(value, &t->q->downloaded) < 0 ? "malformed request: downloaded is not a number"
                                                 : NULL;
}

static const char *take_event(struct taking *t, struct str value)
{
    static const struct {
        struct str name;
        enum announce_event event;
    } rows[] = {
        {{"", 0}, EVENT_NONE},           {{"empty", 5}, EVENT_NONE},
        {{"started", 7}, EVENT_STARTED}, {{"completed", 9}, EVENT_COMPLETED},
        {{"stopped", 7}, EVENT_STOPPED}, {{"paused", 6}, EVENT_PAUSED},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (str_ieq(value, rows[i].name)) {
            t->q->event = rows[i].event;
            return NULL;
        }
    return "malformed request: event is not known";
}

/* Reads the number of wanted peers. A value that is not a number counts as not given, because the
 * client still wants peers. */
static const char *take_numwant(struct taking *t, struct str value)
{
    int64_t wanted;

    if (str_i64(value, &wanted) < 0 || wanted < 0)
        wanted = NUMWANT_DEFAULT;
    t->q->numwant = wanted > INT32_MAX ? INT32_MAX : (int32_t)wanted;
    return NULL;
}

static const char *take_compact(struct taking *t, struct str value)
{
    t->q->compact = !str_eq(value, STR("0"));
    return NULL;
}

static const char *take_no_peer_id(struct taking *t, struct str value)
{
    t->q->no_peer_id = !str_eq(value, STR("0"));
    return NULL;
}

static const char *take_key(struct taking *t, struct str value)
{
    return take_query_text(value, t->q->key, sizeof(t->q->key), &t->q->key_len);
}

static const char *take_passkey(struct taking *t, struct str value)
{
    return take_query_text(value, t->q->passkey, sizeof(t->q->passkey), &t->q->passkey_len);
}

/* Reads an address as text. An address that is too long is ignored. Returns NULL, or a text for the
 * client. */
static const char *take_address(struct taking *t, struct str value, char out[QUERY_IP_MAX + 1])
{
    size_t len;

    t->q->has_ip = true;
    if (!decode_value(value, out, QUERY_IP_MAX, &len))
        return malformed;
    out[len > QUERY_IP_MAX ? 0 : len] = 0;
    return NULL;
}

static const char *take_ip(struct taking *t, struct str value)
{
    return take_address(t, value, t->q->ip[0]);
}

static const char *take_ipv4(struct taking *t, struct str value)
{
    return take_address(t, value, t->q->ip[1]);
}

static const char *take_ipv6(struct taking *t, struct str value)
{
    return take_address(t, value, t->q->ip[2]);
}

/* The parameters of an announce, and the functions that read them. Frequent parameters come first,
 * because the table is searched in order. */
static const struct {
    struct str name;
    take_fn *take;
} names[] = {
    {{"info_hash", 9}, take_info_hash},
    {{"peer_id", 7}, take_peer_id},
    {{"port", 4}, take_port},
    {{"uploaded", 8}, take_uploaded},
    {{"downloaded", 10}, take_downloaded},
    {{"left", 4}, take_left},
    {{"compact", 7}, take_compact},
    {{"event", 5}, take_event},
    {{"numwant", 7}, take_numwant},
    {{"key", 3}, take_key},
    {{"no_peer_id", 10}, take_no_peer_id},
    {{"ip", 2}, take_ip},
    {{"ipv4", 4}, take_ipv4},
    {{"ipv6", 4}, take_ipv6},
    {{"passkey", 7}, take_passkey},
};

static const char *take_pair(struct taking *t, struct str name, struct str value)
{
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (str_ieq(name, names[i].name))
            return names[i].take(t, value);
    return NULL;
}

const char *query_announce(struct announce_query *out, struct str query)
{
    static const struct {
        unsigned bit;
        const char *missing;
    } needed[] = {
        {HAS_INFO_HASH, "malformed request: info_hash is missing"},
        {HAS_PEER_ID, "malformed request: peer_id is missing"},
        {HAS_PORT, "malformed request: port is missing"},
    };
    struct taking t = {.q = out};
    struct str name, value;
    const char *wrong = NULL;

    *out = (struct announce_query){
        .left = QUERY_LEFT_UNKNOWN, .numwant = NUMWANT_DEFAULT, .compact = true};
    while (!wrong && next_pair(&query, &name, &value))
        wrong = take_pair(&t, name, value);
    for (size_t i = 0; !wrong && i < ARRAY_SIZE(needed); i++)
        if (!(t.has & needed[i].bit))
            wrong = needed[i].missing;
    return wrong;
}

/* --- a scrape --- */

static int compare_hashes(const void *a, const void *b)
{
    return memcmp(a, b, INFO_HASH_LEN);
}

static void sort_once(struct scrape_query *q)
{
    size_t kept = 0;

    qsort(q->hashes, q->count, INFO_HASH_LEN, compare_hashes);
    for (size_t i = 0; i < q->count; i++) {
        const uint8_t *hash = q->hashes + i * INFO_HASH_LEN;
        if (kept && memcmp(hash, q->hashes + (kept - 1) * INFO_HASH_LEN, INFO_HASH_LEN) == 0)
            continue;
        memmove(q->hashes + kept++ * INFO_HASH_LEN, hash, INFO_HASH_LEN);
    }
    q->count = kept;
}

const char *query_scrape(struct scrape_query *out, struct str query)
{
    struct str name, value;
    const char *wrong = NULL;

    out->count = out->passkey_len = 0;
    while (!wrong && next_pair(&query, &name, &value)) {
        if (str_ieq(name, STR("passkey")))
            wrong = take_query_text(value, out->passkey, sizeof(out->passkey), &out->passkey_len);
        if (!str_ieq(name, STR("info_hash")))
            continue;
        if (out->count == out->max)
            return too_many;
        wrong = take_query_bytes(value, out->hashes + out->count * INFO_HASH_LEN, INFO_HASH_LEN,
                                 "malformed request: info_hash is not 20 bytes");
        out->count++;
    }
    if (!wrong && out->count == 0)
        return "a scrape of all torrents is not served: name them by info_hash";
    if (!wrong)
        sort_once(out);
    return wrong;
}
