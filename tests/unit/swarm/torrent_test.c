/* torrent: golden hashes of libtorrent for every size that has a shape of its own, names, magnets.
 */
#include "base/hex.h"
#include "swarm/bencode.h"
#include "swarm/torrent.h"
#include "unit/test.h"

#include <stdlib.h>

/* Bytes i mod 251, as the vectors have them, in reads of an awkward length. */
struct pattern_reader {
    struct reader reader;
    uint64_t at, size;
    size_t most;
};

static int pattern_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct pattern_reader *p = (struct pattern_reader *)r;
    uint8_t *out = to;

    (void)err;
    *got = size_min(size_min(len, p->most), (size_t)(p->size - p->at));
    for (size_t i = 0; i < *got; i++)
        out[i] = (uint8_t)((p->at + i) % 251);
    p->at += *got;
    return 0;
}

static const struct reader_ops pattern_ops = {.read = pattern_read};

static int hash_pattern(struct pieces *out, uint64_t size, uint32_t length, struct err *err)
{
    struct pattern_reader r = {{&pattern_ops}, 0, size, 10007};

    return pieces_hash(out, &r.reader, &(struct pieces_plan){.size = size, .length = length}, err);
}

static void check_hex(const void *bytes, size_t len, const char *want)
{
    struct buf text = {0};

    buf_append_hex(&text, bytes, len);
    CHECK_STR(buf_str(&text), str_z(want));
    buf_release(&text);
}

static struct torrent_hashes hashes_of(const struct pieces *p, enum torrent_kind kind)
{
    struct torrent_file f = {.kind = kind, .name = STR("obj.bin"), .pieces = p};
    struct torrent_hashes h;
    struct buf info = {0};

    torrent_info(&info, &f);
    torrent_hash(&h, kind, buf_str(&info));
    buf_release(&info);
    return h;
}

static const struct {
    uint64_t size;
    size_t layer;
    const char *v1, *root, *v2;
} golden[] = {
    {1, 0, "568de0292643e7f60455f6174d7c36ad88caccd8",
     "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
     "e7d0a5775c6005b188c19fa662a28be592ab6d89"},
    {16384, 0, "489a3c2dbb4fe838ae4df08ccbe8429885e77656",
     "4348e3b98e8a327b34ced39c1da9e67cdb4cd5e48e4d7960607a3ae403d35f0c",
     "d0973023887984bce9d1635a5760443a97b2d5af"},
    {16385, 0, "a4a2a3ac3f7366e88b8e3e7dc7c94d2989e90753",
     "9d7887c65d577a0237fb3c0998b87b3a62762d03796889a2caea01db914ccbb8",
     "d5dc3407f0a522834f3c275b772503310f1529f8"},
    {32768, 0, "0e72f5d34c5907c1fa73f0e0915d92593d1c7f8f",
     "d9e13d0b676ad681164ef0b7b5910d1328ea83a047cad57e619d76bbe3a08525",
     "1e99a9d94c9e5fcdce025ef020d3d1104531a274"},
    {32769, 64, "a57a8d3394a3e30ed11902134c579539c649b7d8",
     "934c793a4cecccfd47faaf6b69c17703875e6c58ffe623bcd31ff3b2170770d1",
     "df183000a339a1aef2fb4641129a17c5f6388463"},
    {100000, 128, "1491ddb543a45bf1a745076b047bde34096b3b7a",
     "505fc9a922f60ae071450b07256a4ba760612bffc38c27584ed03fd96c69841b",
     "f2b97d8fc4607370b680ef0292653f524617237d"},
};

TEST(torrent, golden_hashes_of_every_shape)
{
    for (size_t i = 0; i < ARRAY_SIZE(golden); i++) {
        struct err err = {0};
        struct pieces p;

        CHECK_OK(hash_pattern(&p, golden[i].size, 32768, &err));
        check_hex(p.root, sizeof(p.root), golden[i].root);
        CHECK_INT(p.layer.len, golden[i].layer);
        CHECK_INT(p.v1.len, SHA1_LEN * ((golden[i].size + 32767) / 32768));
        struct torrent_hashes v1 = hashes_of(&p, TORRENT_V1), v2 = hashes_of(&p, TORRENT_V2);
        CHECK(v1.has_v1 && !v1.has_v2 && v2.has_v2 && !v2.has_v1);
        check_hex(v1.v1, SHA1_LEN, golden[i].v1);
        check_hex(v2.v2, SHA1_LEN, golden[i].v2);
        pieces_release(&p);
    }
}

TEST(torrent, a_hybrid_has_one_info_and_two_hashes)
{
    struct err err = {0};
    struct pieces p;

    CHECK_OK(hash_pattern(&p, 100000, 32768, &err));
    struct torrent_hashes h = hashes_of(&p, TORRENT_HYBRID), v1 = hashes_of(&p, TORRENT_V1);
    CHECK(h.has_v1 && h.has_v2);
    CHECK(memcmp(h.v1, v1.v1, SHA1_LEN) != 0);
    pieces_release(&p);
}

TEST(torrent, piece_lengths_are_those_of_libtorrent)
{
    /* the last size of each length, as libtorrent 2.0.8 chooses */
    static const uint64_t last[] = {2684355,      10737418,    42949673,    171798692,
                                    687194767,    2748779069,  10995116278, 43980465111,
                                    175921860444, 703687441777};

    CHECK_INT(piece_length(1), 16 * KIB);
    for (size_t i = 0; i < ARRAY_SIZE(last); i++) {
        CHECK_INT(piece_length(last[i]), (16 * KIB) << i);
        CHECK_INT(piece_length(last[i] + 1), (16 * KIB) << (i + 1));
    }
    CHECK_INT(piece_length(PIECES_SIZE_MAX), 16 * MIB);
}

TEST(torrent, a_body_of_another_size_is_refused)
{
    struct pattern_reader shorter = {{&pattern_ops}, 0, 999, 100};
    struct pattern_reader longer = {{&pattern_ops}, 0, 1001, 100};
    struct pieces_plan plan = {.size = 1000}, empty = {.size = 0},
                       huge = {.size = PIECES_SIZE_MAX + 1};
    struct err err = {0};
    struct pieces p;

    CHECK_ERR(pieces_hash(&p, &shorter.reader, &plan, &err), ERR_CONFLICT);
    CHECK_ERR(pieces_hash(&p, &longer.reader, &plan, &err), ERR_CONFLICT);
    CHECK_ERR(pieces_hash(&p, &longer.reader, &empty, &err), ERR_INVALID);
    CHECK_ERR(pieces_hash(&p, &longer.reader, &huge, &err), ERR_TOO_LARGE);
}

static int stop_soon(void *ctx, uint64_t done, struct err *err)
{
    uint64_t *seen = ctx;

    *seen = done;
    return err_code(err, ERR_CANCELED);
}

TEST(torrent, hashing_ends_when_it_is_told_to)
{
    uint64_t seen = 0;
    struct pattern_reader r = {{&pattern_ops}, 0, 20 * MIB, 256 * KIB};
    struct pieces_plan plan = {.size = 20 * MIB, .progress = stop_soon, .ctx = &seen};
    struct err err = {0};
    struct pieces p;

    CHECK_ERR(pieces_hash(&p, &r.reader, &plan, &err), ERR_CANCELED);
    CHECK_INT(seen, 8 * MIB);
}

static void check_name(struct str key, struct str want)
{
    struct buf out = {0};

    torrent_name(&out, key);
    CHECK_STR(buf_str(&out), want);
    buf_release(&out);
}

TEST(torrent, a_name_is_the_last_part_of_the_key_and_safe)
{
    check_name(STR("a/b/c.iso"), STR("c.iso"));
    check_name(STR("c.iso"), STR("c.iso"));
    check_name(STR("folder/"), STR("folder"));
    check_name(STR("///"), STR("object"));
    check_name(STR(".."), STR("_.."));
    check_name(STR("a/."), STR("_."));
    check_name(STR("a\\b\n\xff\x7f"), STR("a_b___"));
    check_name(STR("\xc3\xa4\xe2\x82\xac"), STR("\xc3\xa4\xe2\x82\xac"));
    check_name(STR("a\0b"), STR("a_b"));
}

TEST(torrent, a_long_name_is_cut_between_characters)
{
    struct buf key = {0}, out = {0};

    buf_append_char(&key, 'x');
    for (int i = 0; i < 500; i++)
        buf_append_z(&key, "\xe2\x82\xac");
    torrent_name(&out, buf_str(&key));
    CHECK_INT(out.len, 238);
    CHECK(str_is_utf8(buf_str(&out)));
    buf_release(&key);
    buf_release(&out);
}

TEST(torrent, a_file_has_sorted_keys_and_the_exact_info)
{
    struct err err = {0};
    struct pieces p;
    struct buf info = {0}, file = {0}, magnet = {0};
    struct bencode top, v;
    struct torrent_hashes h;

    CHECK_OK(hash_pattern(&p, 32769, 32768, &err));
    struct torrent_file f = {.kind = TORRENT_HYBRID,
                             .name = STR("obj.bin"),
                             .is_private = true,
                             .pieces = &p,
                             .announces = {STR("http://t/announce"), STR("udp://t/announce")},
                             .announce_count = 2};
    torrent_seed(&f, STR("http://s/b/obj.bin?versionId=1"));
    torrent_info(&info, &f);
    torrent_write(&file, &f, buf_str(&info));
    CHECK_OK(bencode_read_all(&top, buf_str(&file), &err));
    CHECK_INT(0, bencode_find(&top, &v, STR("info"), BENCODE_DICT));
    CHECK_STR(v.bytes, buf_str(&info));
    CHECK_INT(0, bencode_find(&v, &v, STR("private"), BENCODE_INT));
    CHECK_INT(v.num, 1);
    CHECK_INT(0, bencode_find(&top, &v, STR("announce-list"), BENCODE_LIST));
    CHECK_STR(v.bytes, STR("ll17:http://t/announceel16:udp://t/announceee"));
    CHECK_INT(0, bencode_find(&top, &v, STR("url-list"), BENCODE_STR));
    CHECK_INT(0, bencode_find(&top, &v, STR("piece layers"), BENCODE_DICT));
    CHECK_INT(0, bencode_find(&v, &v, str_n(p.root, SHA256_LEN), BENCODE_STR));
    CHECK_STR(v.str, p.layer);
    torrent_hash(&h, f.kind, buf_str(&info));
    torrent_magnet(&magnet, &f, &h);
    CHECK(str_starts(buf_str(&magnet), STR("magnet:?xt=urn:btih:")));
    CHECK(str_find(buf_str(&magnet), STR("&xt=urn:btmh:1220")) == 20 + 40);
    CHECK(str_ends(buf_str(&magnet),
                   STR("&dn=obj.bin&tr=http%3A%2F%2Ft%2Fannounce&tr=udp%3A%2F%2Ft%2Fannounce"
                       "&ws=http%3A%2F%2Fs%2Fb%2Fobj.bin%3FversionId%3D1")));
    pieces_release(&p);
    buf_release(&info);
    buf_release(&file);
    buf_release(&magnet);
}

static size_t seeds_of(enum torrent_kind kind, const char *name, const char *url, struct str out[2])
{
    struct torrent_file f = {.kind = kind, .name = str_z(name)};

    torrent_seed(&f, str_z(url));
    memcpy(out, f.web_seeds, sizeof(f.web_seeds));
    return f.web_seed_count;
}

TEST(torrent, a_web_seed_of_version_2_also_works_for_who_adds_the_name)
{
    struct str seed[2];

    CHECK_INT(seeds_of(TORRENT_V1, "o.bin", "http://s/b/o.bin", seed), 1);
    CHECK_STR(seed[0], STR("http://s/b/o.bin"));
    CHECK_INT(seeds_of(TORRENT_HYBRID, "o.bin", "http://s/b/o.bin?versionId=3", seed), 1);
    CHECK_INT(seeds_of(TORRENT_V2, "o.bin", "http://s/b/o.bin", seed), 1);
    CHECK_STR(seed[0], STR("http://s/b/"));
    CHECK_INT(seeds_of(TORRENT_V2, "a b", "http://s/b/a%20b?versionId=3", seed), 2);
    CHECK_STR(seed[0], STR("http://s/b/a%20b?versionId=3"));
    CHECK_STR(seed[1], STR("http://s/b/"));
    /* the name is not what the key ends with */
    CHECK_INT(seeds_of(TORRENT_V2, "folder", "http://s/b/folder%2F", seed), 1);
    CHECK_STR(seed[0], STR("http://s/b/folder%2F"));
    CHECK_INT(seeds_of(TORRENT_V2, "o", "", seed), 0);
}
