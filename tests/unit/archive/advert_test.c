/* Messages of git servers: both protocols, both kinds of ids, and answers that are wrong. */
#include "archive/advert.h"
#include "unit/test.h"

#define ID_A "1111111111111111111111111111111111111111"
#define ID_B "2222222222222222222222222222222222222222"
#define ID_L "3333333333333333333333333333333333333333333333333333333333333333"

static struct pkt_in in;
static struct str_reader from;

static struct pkt_in *answer(const char *text, size_t len)
{
    pkt_in_release(&in);
    str_reader_init(&from, str_n(text, len));
    pkt_in_init(&in, &from.reader);
    return &in;
}
#define ANSWER(text) answer(text, sizeof(text) - 1)

/* Lines as packets, with a flush behind them. */
static struct pkt_in *lines(struct buf *out, const char *const *list)
{
    buf_reset(out);
    for (; *list; list++)
        pkt_line(out, "%s", *list);
    pkt_mark(out, PKT_FLUSH);
    return answer(out->p, out->len);
}
#define LINES(out, ...) lines(out, (const char *const[]){__VA_ARGS__, NULL})

TEST(archive_advert, with_and_without_preamble)
{
    for (int preamble = 0; preamble < 2; preamble++) {
        struct buf all = {0};
        struct git_advert v;
        struct git_refs refs;
        struct err err = {0};
        if (preamble)
            buf_append_z(&all, "001e# service=git-upload-pack\n0000");
        pkt_line(&all, "version 2");
        pkt_line(&all, "agent=git/2.39.5");
        pkt_line(&all, "ls-refs=unborn");
        pkt_line(&all, "fetch=shallow wait-for-done filter");
        pkt_line(&all, "object-format=sha256");
        pkt_mark(&all, PKT_FLUSH);
        git_refs_init(&refs, false);
        CHECK_OK(git_advert_read(&v, answer(all.p, all.len), &refs, &err));
        CHECK(v.is_v2 && v.is_sha256 && v.has_unborn && refs.is_sha256 && refs.list.len == 0);
        git_refs_release(&refs);
        buf_release(&all);
    }
    pkt_in_release(&in);
}

TEST(archive_advert, ls_refs_v2)
{
    struct buf out = {0};
    struct git_refs refs;
    struct err err = {0};
    struct git_advert v = {.is_v2 = true, .has_unborn = true};

    git_ls_refs_ask(&out, &v);
    CHECK_STR(buf_str(&out),
              STR("0014command=ls-refs\n0017object-format=sha1\n00010009peel\n000csymrefs\n"
                  "000bunborn\n0000"));
    git_refs_init(&refs, false);
    CHECK_OK(git_ls_refs_read(&refs,
                              LINES(&out, ID_A " HEAD symref-target:refs/heads/main",
                                    ID_B " refs/tags/v1 peeled:" ID_A, ID_A " refs/heads/main",
                                    ID_B " refs/pull/7/merge", ID_B " refs/pull/7/head",
                                    ID_B " refs/weir/1/was/heads/x"),
                              &err));
    CHECK_INT(refs.list.len, 3);
    CHECK_INT(refs.left_out, 2);
    CHECK_STR(git_ref_name(&refs.list.items[0]), STR("refs/heads/main"));
    CHECK_STR(git_ref_name(&refs.list.items[1]), STR("refs/pull/7/head"));
    CHECK_STR(refs.head_target, STR("refs/heads/main"));
    CHECK(refs.has_head && refs.head[0] == 0x11);
    git_refs_release(&refs);

    git_refs_init(&refs, false);
    CHECK_OK(
        git_ls_refs_read(&refs, LINES(&out, "unborn HEAD symref-target:refs/heads/main"), &err));
    CHECK(!refs.has_head && refs.list.len == 0);
    CHECK_STR(refs.head_target, STR("refs/heads/main"));
    git_refs_release(&refs);
    buf_release(&out);
    pkt_in_release(&in);
}

TEST(archive_advert, v0_only_server)
{
    struct buf out = {0};
    struct git_advert v;
    struct git_refs refs;
    struct err err = {0};

    buf_append_z(&out, "001e# service=git-upload-pack\n0000");
    struct buf first = {0};
    buf_append_z(&first, ID_A " HEAD");
    buf_append_char(&first, '\0');
    buf_append_z(&first, "multi_ack ofs-delta side-band side-band-64k symref=HEAD:refs/heads/main "
                         "object-format=sha1 agent=git/2.1\n");
    buf_appendf(&out, "%04zx", first.len + 4);
    buf_append_str(&out, buf_str(&first));
    pkt_line(&out, ID_A " refs/heads/main");
    pkt_line(&out, ID_B " refs/tags/v1");
    pkt_line(&out, ID_A " refs/tags/v1^{}");
    pkt_mark(&out, PKT_FLUSH);
    git_refs_init(&refs, false);
    CHECK_OK(git_advert_read(&v, answer(out.p, out.len), &refs, &err));
    CHECK(!v.is_v2 && !v.is_sha256 && v.has_ofs_delta && v.has_side_band);
    CHECK_INT(refs.list.len, 2);
    CHECK_STR(refs.head_target, STR("refs/heads/main"));
    git_refs_release(&refs);

    /* empty repositories, in both forms */
    git_refs_init(&refs, false);
    CHECK_OK(git_advert_read(&v, ANSWER("001e# service=git-upload-pack\n00000000"), &refs, &err));
    CHECK(refs.list.len == 0 && !refs.has_head);
    buf_reset(&out);
    buf_reset(&first);
    buf_append_z(&first, "0000000000000000000000000000000000000000 capabilities^{}");
    buf_append_char(&first, '\0');
    buf_append_z(&first, " side-band-64k");
    buf_appendf(&out, "%04zx", first.len + 4);
    buf_append_str(&out, buf_str(&first));
    pkt_mark(&out, PKT_FLUSH);
    CHECK_OK(git_advert_read(&v, answer(out.p, out.len), &refs, &err));
    CHECK(refs.list.len == 0 && !refs.has_head);
    git_refs_release(&refs);
    buf_release(&first);
    buf_release(&out);
    pkt_in_release(&in);
}

/* No repository can have a ref that is a folder too, and nothing may stand in the way of
 * refs/weir/. */
TEST(archive_advert, refs_that_are_folders_too_are_left_out)
{
    struct buf out = {0};
    struct git_refs refs;
    struct git_advert v = {.is_v2 = true};
    struct err err = {0};

    git_ls_refs_ask(&out, &v);
    git_refs_init(&refs, false);
    CHECK_OK(git_ls_refs_read(&refs,
                              LINES(&out, ID_A " refs/heads/a", ID_A " refs/heads/a-b",
                                    ID_A " refs/heads/a/b/c", ID_A " refs/heads/a/b",
                                    ID_A " refs/heads/ab", ID_A " refs/weir", ID_A " refs/tags",
                                    ID_A " refs/weirs", ID_A " refs/heads/a.b"),
                              &err));
    static const char *const kept[] = {"refs/heads/a-b", "refs/heads/a.b", "refs/heads/a/b/c",
                                       "refs/heads/ab",  "refs/tags",      "refs/weirs"};
    CHECK_INT(refs.list.len, ARRAY_SIZE(kept));
    CHECK_INT(refs.left_out, 3);
    for (size_t i = 0; i < ARRAY_SIZE(kept) && i < refs.list.len; i++)
        CHECK_STR(git_ref_name(&refs.list.items[i]), str_z(kept[i]));
    git_refs_release(&refs);
    buf_release(&out);
}

TEST(archive_advert, names_that_would_write_lines_are_left_out)
{
    static const char *const bad[] = {
        "refs/heads/a\nb",
        "refs/heads/a b",
        "refs/heads/..",
        "refs/heads/a..b",
        "refs/heads/.a",
        "refs/heads/a/",
        "refs//heads/a",
        "refs/heads/a.lock",
        "refs/heads/a.lock/b",
        "refs/heads/a.",
        "refs/heads/a@{b",
        "refs/heads/a~1",
        "refs/heads/a^",
        "refs/heads/a:b",
        "refs/heads/a?",
        "refs/heads/a*",
        "refs/heads/a[",
        "refs/heads/a\\b",
        "refs/heads/a\x7f",
        "refs/heads/\x01",
        "heads/a",
        "",
        "refs/",
        "HEADS",
    };
    struct git_refs refs;
    struct err err = {0};

    git_refs_init(&refs, false);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CHECK(!git_ref_name_ok(str_z(bad[i])));
        CHECK_OK(git_refs_add(&refs, STR(ID_A), str_z(bad[i]), &err));
    }
    CHECK(!git_ref_name_ok(STR("refs/heads/a\0b")));
    CHECK(git_ref_name_ok(STR("refs/heads/\xc3\xa4@b-.c")));
    CHECK_INT(refs.list.len, 0);
    CHECK_INT(refs.left_out, ARRAY_SIZE(bad));
    CHECK_ERR(git_refs_add(&refs, STR("12"), STR("refs/heads/a"), &err), ERR_PARSE);
    CHECK_ERR(git_refs_add(&refs, STR(ID_L), STR("refs/heads/a"), &err), ERR_PARSE);
    git_refs_release(&refs);
}

TEST(archive_advert, a_name_twice_is_refused)
{
    struct buf out = {0};
    struct git_refs refs;
    struct err err = {0};

    git_refs_init(&refs, false);
    CHECK_ERR(
        git_ls_refs_read(&refs, LINES(&out, ID_A " refs/heads/a", ID_B " refs/heads/a"), &err),
        ERR_PARSE);
    git_refs_release(&refs);
    buf_release(&out);
    pkt_in_release(&in);
}

TEST(archive_advert, equal_refs_have_equal_digests)
{
    char one[GIT_DIGEST_LEN + 1], other[GIT_DIGEST_LEN + 1];
    struct git_refs a, b;
    struct err err = {0};

    git_refs_init(&a, false);
    git_refs_init(&b, false);
    CHECK_OK(git_refs_add(&a, STR(ID_A), STR("refs/heads/x"), &err));
    CHECK_OK(git_refs_add(&a, STR(ID_B), STR("refs/heads/y"), &err));
    CHECK_OK(git_refs_add(&b, STR(ID_B), STR("refs/heads/y"), &err));
    CHECK_OK(git_refs_add(&b, STR(ID_A), STR("refs/heads/x"), &err));
    CHECK_OK(git_refs_sort(&a, &err));
    CHECK_OK(git_refs_sort(&b, &err));
    git_refs_digest(one, &a);
    git_refs_digest(other, &b);
    CHECK_STR(str_z(one), str_z(other));
    git_refs_set_head_target(&b, STR("refs/heads/y"));
    git_refs_digest(other, &b);
    CHECK(!str_eq(str_z(one), str_z(other)));
    git_refs_release(&a);
    git_refs_release(&b);
}

TEST(archive_advert, requests_never_ask_for_thin_packs)
{
    unsigned char want[40], have[20];
    struct git_fetch f = {want, 2, have, 1, 0};
    struct git_advert v2 = {.is_v2 = true}, v0 = {.has_ofs_delta = true};
    struct buf out = {0};

    memset(want, 0x11, 20);
    memset(want + 20, 0x22, 20);
    memset(have, 0x22, 20);
    git_fetch_ask(&out, &v2, &f);
    CHECK_STR(buf_str(&out),
              STR("0012command=fetch\n0017object-format=sha1\n0001000eofs-delta\n0010no-progress\n"
                  "0032want " ID_A "\n0032want " ID_B "\n0032have " ID_B "\n0009done\n0000"));
    buf_reset(&out);
    f.depth = 1;
    git_fetch_ask(&out, &v0, &f);
    CHECK_STR(buf_str(&out),
              STR("0065want " ID_A " side-band-64k no-progress ofs-delta agent=git/weir\n"
                  "0032want " ID_B "\n000ddeepen 1\n00000032have " ID_B "\n0009done\n"));
    buf_release(&out);
}

TEST(archive_advert, shallow_upstream_refused)
{
    unsigned char want[20] = {0};
    struct git_fetch full = {want, 1, NULL, 0, 0}, shallow = {want, 1, NULL, 0, 1};
    struct git_advert v2 = {.is_v2 = true}, v0 = {0};
    struct err err = {0};
    static const char two[] = "0011shallow-info\n0035shallow " ID_A "\n0001000dpackfile\n";
    static const char zero[] = "0035shallow " ID_A "\n00000008NAK\n";

    CHECK_ERR(git_fetch_begin(ANSWER(two), &v2, &full, &err), ERR_UNSUPPORTED);
    CHECK_OK(git_fetch_begin(ANSWER(two), &v2, &shallow, &err));
    CHECK_ERR(git_fetch_begin(ANSWER(zero), &v0, &full, &err), ERR_UNSUPPORTED);
    CHECK_OK(git_fetch_begin(ANSWER(zero), &v0, &shallow, &err));
    pkt_in_release(&in);
}

TEST(archive_advert, answers_to_a_fetch)
{
    unsigned char want[20] = {0};
    struct git_fetch f = {want, 1, want, 1, 0};
    struct git_advert v2 = {.is_v2 = true}, v0 = {0};
    struct pkt p;
    struct err err = {0};

    CHECK_OK(git_fetch_begin(ANSWER("000dpackfile\n"), &v2, &f, &err));
    CHECK_ERR(git_fetch_begin(ANSWER("0000"), &v2, &f, &err), ERR_PARSE);
    CHECK_ERR(git_fetch_begin(ANSWER(""), &v2, &f, &err), ERR_CLOSED);
    CHECK_ERR(git_fetch_begin(ANSWER("0025ERR upload-pack: not our ref 111"), &v2, &f, &err),
              ERR_CLOSED);
    CHECK_ERR(git_fetch_begin(ANSWER("0024ERR upload-pack: not our ref 111"), &v2, &f, &err),
              ERR_PEER);
    CHECK(strstr(err.text, "not our ref"));
    CHECK_OK(git_fetch_begin(ANSWER("0031ACK " ID_A "\n"), &v0, &f, &err));
    CHECK_OK(git_fetch_begin(ANSWER("0038ACK " ID_A " common\n0031ACK " ID_A "\n"), &v0, &f, &err));
    CHECK_OK(
        git_fetch_begin(ANSWER("0031ACK " ID_A "\n0031ACK " ID_B "\n0006\1P0000"), &v0, &f, &err));
    CHECK_OK(pkt_read(&in, &p, &err));
    CHECK_STR(p.data, STR("\1P"));
    CHECK_OK(git_fetch_begin(ANSWER("0008NAK\n"), &v0, &f, &err));
    CHECK_ERR(git_fetch_begin(ANSWER("0009hello"), &v0, &f, &err), ERR_PARSE);
    CHECK_ERR(git_fetch_begin(ANSWER("0000"), &v0, &f, &err), ERR_PARSE);
    pkt_in_release(&in);
}
