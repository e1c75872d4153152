/* How people name a torrent. */
#include "swarm/name.h"
#include "unit/test.h"

static struct str hex_of(const char *text)
{
    static struct buf out;
    uint8_t hash[INFO_HASH_LEN];
    struct err err = {0};

    buf_reset(&out);
    if (info_hash_parse(hash, str_z(text), &err) == 0)
        buf_append_hex(&out, hash, sizeof(hash));
    return buf_str(&out);
}

#define V1 "0123456789abcdef0123456789abcdef01234567"

TEST(swarm_name, a_torrent_is_named_by_digits_or_a_magnet_link)
{
    CHECK_STR(hex_of(V1), STR(V1));
    CHECK_STR(hex_of("0123456789ABCDEF0123456789ABCDEF01234567"), STR(V1));
    CHECK_STR(hex_of(V1 "0123456789abcdef01234567"), STR(V1));
    CHECK_STR(hex_of("magnet:?dn=x&xt=urn:btih:" V1 "&tr=http%3A%2F%2Fx"), STR(V1));
    CHECK_STR(hex_of("magnet:?xt=urn:btih:AERUKZ4JVPG66AJDIVTYTK6N54ASGRLH"), STR(V1));
    CHECK_STR(hex_of("magnet:?xt=urn:btmh:1220" V1 "0123456789abcdef01234567"), STR(V1));
    CHECK_STR(hex_of("magnet:?xt.1=urn:btih:" V1), STR(V1));
}

TEST(swarm_name, other_words_are_refused)
{
    static const char *const wrong[] = {"",
                                        "0123",
                                        (V1 "0"),
                                        "magnet:?dn=x",
                                        "magnet:?xt=urn:btih:0123",
                                        ("magnet:?xt=urn:ed2k:" V1),
                                        "magnet:?xt=urn:btih:AERUKZ4JVPG66AJDIVTYTK6N54ASGRL1"};

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        CHECK_INT(hex_of(wrong[i]).len, 0);
}
