/* Reads info hashes from hexadecimal digits and magnet links. */
#include "swarm/name.h"
#include "base/hex.h"

enum { V2_LEN = 32, BASE32_LEN = 32 };

static bool parse_base32(struct str text, uint8_t out[INFO_HASH_LEN])
{
    uint64_t bits = 0;
    size_t have = 0, count = 0;

    if (text.len != BASE32_LEN)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.p[i];
        int value = c >= '2' && c <= '7' ? c - '2' + 26 : (c | 0x20) - 'a';
        if (value < 0 || value > 31 || (value < 26 && c < 'A'))
            return false;
        bits = bits << 5 | (uint64_t)value;
        have += 5;
        if (have >= 8) {
            have -= 8;
            out[count++] = (uint8_t)(bits >> have);
        }
    }
    return count == INFO_HASH_LEN;
}

static bool parse_v2(struct str text, uint8_t out[INFO_HASH_LEN])
{
    uint8_t whole[V2_LEN];

    if (!hex_parse_any_case(text, whole, sizeof(whole)))
        return false;
    memcpy(out, whole, INFO_HASH_LEN);
    return true;
}

/* Reads the info hash in an "xt" parameter of a magnet link. False: the parameter has no info hash.
 */
static bool parse_topic(struct str topic, uint8_t out[INFO_HASH_LEN])
{
    static const struct str v1 = {"urn:btih:", 9}, v2 = {"urn:btmh:1220", 13};

    if (str_starts(topic, v1))
        return hex_parse_any_case(str_skip(topic, v1.len), out, INFO_HASH_LEN) ||
               parse_base32(str_skip(topic, v1.len), out);
    return str_starts(topic, v2) && parse_v2(str_skip(topic, v2.len), out);
}

static bool parse_magnet(struct str text, uint8_t out[INFO_HASH_LEN])
{
    struct str rest = text, pair, name, value;

    if (!str_starts(text, STR("magnet:?")))
        return false;
    rest = str_skip(rest, 8);
    while (str_token(&rest, "&", &pair)) {
        str_cut(pair, '=', &name, &value);
        if ((str_eq(name, STR("xt")) || str_starts(name, STR("xt."))) && parse_topic(value, out))
            return true;
    }
    return false;
}

int info_hash_parse(uint8_t out[INFO_HASH_LEN], struct str text, struct err *err)
{
    if (hex_parse_any_case(text, out, INFO_HASH_LEN) || parse_v2(text, out) ||
        parse_magnet(text, out))
        return 0;
    return err_set(err, ERR_INVALID,
                   "a torrent is named by 40 or 64 hexadecimal digits or a magnet link");
}
