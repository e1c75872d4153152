/* The server's half of git's protocol: lists of refs, requests of every kind, and the pack. */
#include "archive/serve.h"
#include "archive/pkt.h"
#include "unit/test.h"

#include <isa-l/igzip_lib.h>
#include <stdlib.h>

#define ID1 "1111111111111111111111111111111111111111"
#define ID2 "2222222222222222222222222222222222222222"
#define ID3 "3333333333333333333333333333333333333333"

/* A header with HEAD, two branches, a tag, and a former tip. */
static void make_header(struct bundle_header *h)
{
    struct str_reader r;
    struct err err = {0};

    bundle_header_init(h, false);
    str_reader_init(&r, STR("# v2 git bundle\n" ID1 " HEAD\n" ID2 " refs/heads/dev\n" ID1
                            " refs/heads/main\n" ID2 " refs/tags/v1\n" ID3
                            " refs/weir/5/was/heads/dev\n\n"));
    CHECK_OK(bundle_header_read(h, &r.reader, &err));
    git_refs_set_head_target(&h->refs, STR("refs/heads/main"));
}

TEST(archive_serve, version_two_shows_capabilities_alone)
{
    struct bundle_header h;
    struct buf out = {0};

    make_header(&h);
    serve_advert(&out, &h, true);
    CHECK_STR(buf_str(&out),
              STR("001e# service=git-upload-pack\n0000000eversion 2\n000fagent=weir\n"
                  "0013ls-refs=unborn\n000afetch\n0017object-format=sha1\n0000"));
    buf_release(&out);
    bundle_header_release(&h);
}

TEST(archive_serve, version_zero_lists_the_refs_without_history)
{
    struct bundle_header h;
    struct buf out = {0};

    make_header(&h);
    serve_advert(&out, &h, false);
    struct str text = buf_str(&out);
    CHECK(str_find(text, STR(ID1 " HEAD\0side-band-64k ")) > 0);
    CHECK(str_find(text, STR(" symref=HEAD:refs/heads/main ")) > 0);
    CHECK(str_find(text, STR("003c" ID2 " refs/heads/dev\n")) > 0);
    CHECK(str_find(text, STR("refs/weir")) < 0);
    CHECK(str_ends(text, STR("0000")));
    buf_release(&out);
    bundle_header_release(&h);
    bundle_header_init(&h, true);
    serve_advert(&out, &h, false);
    CHECK(str_find(buf_str(&out), STR("000000 capabilities^{}\0side-band-64k")) > 0);
    CHECK(str_find(buf_str(&out), STR("object-format=sha256")) > 0);
    buf_release(&out);
    bundle_header_release(&h);
}

/* Reads the request and writes the answer. Returns whether the pack follows. */
static bool serve(struct str request, bool is_v2, struct buf *out)
{
    struct arena a = {0};
    struct bundle_header h;
    struct serve_ask ask;
    struct str_reader r;
    struct err err = {0};

    make_header(&h);
    str_reader_init(&r, request);
    CHECK_OK(serve_ask_read(&ask, &a, &r.reader, is_v2, &h, &err));
    buf_reset(out);
    bool pack = serve_answer(out, &ask, &h);
    bundle_header_release(&h);
    arena_release(&a);
    return pack;
}

TEST(archive_serve, ls_refs_answers_the_prefixes)
{
    struct buf out = {0};

    CHECK(!serve(STR("0014command=ls-refs\n00010009peel\n000csymrefs\n"
                     "001bref-prefix refs/heads/\n0014ref-prefix HEAD\n0000"),
                 true, &out));
    CHECK_STR(buf_str(&out), STR("0050" ID1 " HEAD symref-target:refs/heads/main\n003c" ID2
                                 " refs/heads/dev\n003d" ID1 " refs/heads/main\n0000"));
    CHECK(!serve(STR("0014command=ls-refs\n0000"), true, &out));
    CHECK(str_find(buf_str(&out), STR("refs/tags/v1")) > 0);
    CHECK(str_starts(buf_str(&out), STR("0032" ID1 " HEAD\n")));
    buf_release(&out);
}

TEST(archive_serve, a_fetch_gets_the_pack)
{
    struct buf out = {0};

    CHECK(serve(STR("0012command=fetch\n0001000eofs-delta\n0032want " ID1 "\n0009done\n0000"), true,
                &out));
    CHECK_STR(buf_str(&out), STR("000dpackfile\n"));
    /* Former tips can be wanted too, and haves get `ready`. */
    CHECK(
        serve(STR("0012command=fetch\n00010032want " ID3 "\n0032have " ID2 "\n0000"), true, &out));
    CHECK_STR(buf_str(&out), STR("0014acknowledgments\n000aready\n0001000dpackfile\n"));
    CHECK(serve(STR("0040want " ID1 " side-band-64k\n00000009done\n"), false, &out));
    CHECK_STR(buf_str(&out), STR("0008NAK\n"));
    CHECK(!serve(STR("0032want " ID1 "\n00000032have " ID2 "\n0000"), false, &out));
    CHECK_STR(buf_str(&out), STR("0008NAK\n"));
    CHECK(!serve(STR("0000"), true, &out));
    CHECK_INT(out.len, 0);
    buf_release(&out);
}

TEST(archive_serve, requests_that_cannot_be_served_are_refused)
{
    static const char *const asks[] = {
        "0012command=fetch\n00010032want 4444444444444444444444444444444444444444\n0009done\n0000",
        "0012command=fetch\n0001000cwant 12\n0009done\n0000",
        "0012command=fetch\n0001000ddeepen 1\n0032want " ID1 "\n0009done\n0000",
        "0012command=fetch\n00010015filter blob:none\n0032want " ID1 "\n0009done\n0000",
        "0018command=object-info\n0000",
        "0014command=ls-refs\n0019object-format=sha256\n0000",
    };
    struct buf out = {0};

    for (size_t i = 0; i < ARRAY_SIZE(asks); i++) {
        CHECK(!serve(str_z(asks[i]), true, &out));
        CHECK(str_starts(str_skip(buf_str(&out), 4), STR("ERR ")));
    }
    buf_release(&out);
}

TEST(archive_serve, the_pack_comes_in_packets_and_its_size_is_known)
{
    static const size_t sizes[] = {0, 1, SERVE_FRAME - 1, SERVE_FRAME, SERVE_FRAME + 1, 200000};

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct buf bytes = {0}, out = {0}, back = {0};
        struct str_reader inner, again;
        struct serve_pack p;
        struct pkt_in in;
        struct band_reader band;
        struct err err = {0};
        for (size_t k = 0; k < sizes[i]; k++)
            buf_append_char(&bytes, (char)(k * 7));
        str_reader_init(&inner, buf_str(&bytes));
        serve_pack_init(&p, &inner.reader, sizes[i], false);
        uint64_t size = serve_pack_size(&p);
        CHECK_OK(reader_read_all(&p.reader, &out, &err));
        CHECK_INT(out.len, size);
        serve_pack_release(&p);
        str_reader_init(&again, buf_str(&out));
        pkt_in_init(&in, &again.reader);
        band_reader_init(&band, &in, 0);
        CHECK_OK(reader_read_all(&band.reader, &back, &err));
        CHECK_STR(buf_str(&back), buf_str(&bytes));
        pkt_in_release(&in);
        str_reader_init(&inner, buf_str(&bytes));
        serve_pack_init(&p, &inner.reader, sizes[i] + 1, false);
        buf_reset(&out);
        CHECK_ERR(reader_read_all(&p.reader, &out, &err), ERR_CLOSED);
        serve_pack_release(&p);
        buf_release(&bytes);
        buf_release(&out);
        buf_release(&back);
    }
}

TEST(archive_serve, gzip_bodies_are_unpacked_up_to_a_limit)
{
    static unsigned char packed[100000];
    struct isal_zstream z;
    struct gunzip_reader g;
    struct str_reader r;
    struct buf text = {0}, out = {0};
    struct err err = {0};

    for (int i = 0; i < 50000; i++)
        buf_appendf(&text, "%d ", i % 100);
    isal_deflate_stateless_init(&z);
    z.gzip_flag = IGZIP_GZIP;
    z.end_of_stream = 1;
    z.next_in = (unsigned char *)text.p;
    z.avail_in = (uint32_t)text.len;
    z.next_out = packed;
    z.avail_out = sizeof(packed);
    CHECK_INT(isal_deflate_stateless(&z), COMP_OK);
    str_reader_init(&r, str_n(packed, z.total_out));
    gunzip_reader_init(&g, &r.reader, text.len);
    CHECK_OK(reader_read_all(&g.reader, &out, &err));
    CHECK_STR(buf_str(&out), buf_str(&text));
    gunzip_reader_release(&g);
    buf_reset(&out);
    str_reader_init(&r, str_n(packed, z.total_out));
    gunzip_reader_init(&g, &r.reader, text.len - 1);
    CHECK_ERR(reader_read_all(&g.reader, &out, &err), ERR_TOO_LARGE);
    gunzip_reader_release(&g);
    buf_reset(&out);
    str_reader_init(&r, str_n(packed, z.total_out - 20));
    gunzip_reader_init(&g, &r.reader, text.len);
    CHECK_ERR(reader_read_all(&g.reader, &out, &err), ERR_CLOSED);
    gunzip_reader_release(&g);
    buf_release(&text);
    buf_release(&out);
}

TEST(archive_serve, a_pack_that_may_have_an_object_twice_is_not_served)
{
    struct bundle_old b = {.objects = 5, .has_meta = true, .info.etag = STR("e1")};
    struct audit_verdict v = {.etag = "e1", .ok = true};

    CHECK(serve_is_safe(&b, NULL)); /* it was never appended to */
    b.meta.appends = 1;
    CHECK(!serve_is_safe(&b, NULL));
    CHECK(serve_is_safe(&b, &v));
    v.doubles = 1;
    CHECK(!serve_is_safe(&b, &v));
    v = (struct audit_verdict){.etag = "e2", .ok = true};
    CHECK(!serve_is_safe(&b, &v));
    v = (struct audit_verdict){.etag = "e1", .ok = false};
    CHECK(!serve_is_safe(&b, &v));
    b.meta.appends = 0;
    b.has_meta = false;
    CHECK(!serve_is_safe(&b, NULL));
}
