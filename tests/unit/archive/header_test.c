/* Headers of bundles: golden bytes, damage, and the refs of every past sync. */
#include "archive/git.h"
#include "os/file.h"
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>

#define ID_A "1111111111111111111111111111111111111111"
#define ID_B "2222222222222222222222222222222222222222"

#define AT(second)                                                                                 \
    &(struct header_time)                                                                          \
    {                                                                                              \
        .now_s = (second)                                                                          \
    }

static void add(struct git_refs *r, const char *id, const char *name)
{
    struct err err = {0};

    CHECK_OK(git_refs_add(r, str_z(id), str_z(name), &err));
}

static void sorted(struct git_refs *r)
{
    struct err err = {0};

    CHECK_OK(git_refs_sort(r, &err));
}

/* git takes the last branch with HEAD's id for the branch of HEAD. */
TEST(archive_header, default_branch_last_line)
{
    struct bundle_header h;
    struct buf out = {0};

    bundle_header_init(&h, false);
    add(&h.refs, ID_A, "HEAD");
    add(&h.refs, ID_A, "refs/heads/main");
    add(&h.refs, ID_A, "refs/heads/zebra");
    add(&h.refs, ID_B, "refs/tags/v1");
    git_refs_set_head_target(&h.refs, STR("refs/heads/main"));
    sorted(&h.refs);
    bundle_header_write(&out, &h);
    CHECK_STR(buf_str(&out), STR("# v2 git bundle\n" ID_A " HEAD\n" ID_A " refs/heads/zebra\n" ID_A
                                 " refs/heads/main\n" ID_B " refs/tags/v1\n\n"));
    bundle_header_release(&h);
    buf_release(&out);
}

TEST(archive_header, sha256_repo_v3)
{
    struct bundle_header h, back;
    struct buf out = {0};
    struct str_reader from;
    struct err err = {0};

    bundle_header_init(&h, true);
    add(&h.refs, ID_A ID_B + 16, "HEAD");
    add(&h.refs, ID_A ID_B + 16, "refs/heads/main");
    git_refs_set_head_target(&h.refs, STR("refs/heads/main"));
    sorted(&h.refs);
    bundle_header_write(&out, &h);
    CHECK(str_starts(buf_str(&out), STR("# v3 git bundle\n@object-format=sha256\n")));
    buf_append_z(&out, "PACK");
    bundle_header_init(&back, false);
    str_reader_init(&from, buf_str(&out));
    CHECK_OK(bundle_header_read(&back, &from.reader, &err));
    CHECK(back.refs.is_sha256 && back.refs.list.len == 1 && back.refs.has_head);
    CHECK_STR(back.refs.head_target, STR("refs/heads/main"));
    CHECK_INT(back.pack_at, out.len - 4);
    CHECK_STR(from.rest, STR("PACK"));
    bundle_header_release(&h);
    bundle_header_release(&back);
    buf_release(&out);
}

TEST(archive_header, empty_repo_has_an_empty_header)
{
    struct bundle_header h;
    struct buf out = {0};

    bundle_header_init(&h, false);
    bundle_header_write(&out, &h);
    CHECK_STR(buf_str(&out), STR("# v2 git bundle\n\n")); /* and 32 bytes of a pack: 49 */
    bundle_header_release(&h);
    buf_release(&out);
}

TEST(archive_header, damaged_headers_are_refused)
{
    static const char *const bad[] = {
        "",
        "# v1 git bundle\n\n",
        "# v2 git bundle\n",
        "# v2 git bundle\n" ID_A " refs/heads/a",
        "# v2 git bundle\n-" ID_A " \n" ID_A " refs/heads/a\n\n",
        "# v2 git bundle\n" ID_A "\n\n",
        "# v2 git bundle\n123 refs/heads/a\n\n",
        "# v2 git bundle\n" ID_A " refs/heads/a b\n\n",
        "# v2 git bundle\n" ID_A " refs/pull/1/merge\n\n",
        "# v2 git bundle\n" ID_A " refs/heads/a\n" ID_B " refs/heads/a\n\n",
        "# v2 git bundle\n" ID_A " refs/weir/1/is/heads/a\n\n",
        "# v2 git bundle\n" ID_A " refs/weir/x/was/heads/a\n\n",
        "# v2 git bundle\n" ID_A " refs/weir/-1/was/heads/a\n\n",
        "# v2 git bundle\n" ID_A " refs/weir/2/was/heads/a\n" ID_A " refs/weir/1/was/heads/a\n\n",
        "# v2 git bundle\n" ID_A " refs/weir/2/was/heads/a..b\n\n",
        "# v3 git bundle\n@object-format=sha512\n\n",
        "# v3 git bundle\n@filter=blob:none\n\n",
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct bundle_header h;
        struct str_reader from;
        struct err err = {0};
        bundle_header_init(&h, false);
        str_reader_init(&from, str_z(bad[i]));
        CHECK_ERR(bundle_header_read(&h, &from.reader, &err), ERR_CORRUPT);
        bundle_header_release(&h);
    }
}

/* --- fifty syncs of a random history, and the refs of each of them --- */

enum { SYNCS = 50, NAMES = 12 };

static void random_refs(struct git_refs *r, unsigned char state[NAMES], unsigned *seed)
{
    char id[41], name[32];

    for (int n = 0; n < NAMES; n++) {
        if (rand_r(seed) % 3 == 0) /* a change, a removal, or a coming back */
            state[n] = rand_r(seed) % 3 ? (unsigned char)(1 + rand_r(seed) % 200) : 0;
        if (!state[n])
            continue;
        snprintf(name, sizeof(name), "refs/heads/b%d", n);
        for (int i = 0; i < 40; i += 2)
            snprintf(id + i, 3, "%02x", state[n]);
        add(r, id, name);
    }
    sorted(r);
}

TEST(archive_header, the_refs_of_every_past_sync_are_told)
{
    for (unsigned seed = 1; seed <= 10; seed++) {
        struct git_refs found[SYNCS];
        struct bundle_header h[SYNCS];
        unsigned char state[NAMES] = {0};
        unsigned random = seed;
        struct err err = {0};
        for (int s = 0; s < SYNCS; s++) {
            git_refs_init(&found[s], false);
            random_refs(&found[s], state, &random);
            /* what is followed has been written and read again, as a bundle is */
            bundle_header_init(&h[s], false);
            struct bundle_header next;
            struct buf out = {0};
            struct str_reader from;
            bundle_header_init(&next, false);
            CHECK_OK(
                bundle_header_follow(&next, s ? &h[s - 1] : NULL, &found[s], AT(1000 + s), &err));
            bundle_header_write(&out, &next);
            str_reader_init(&from, buf_str(&out));
            CHECK_OK(bundle_header_read(&h[s], &from.reader, &err));
            bundle_header_release(&next);
            buf_release(&out);
        }
        for (int s = 0; s < SYNCS; s++) {
            char want[GIT_DIGEST_LEN + 1], got[GIT_DIGEST_LEN + 1];
            struct git_refs past;
            git_refs_init(&past, false);
            bundle_header_at(&past, &h[SYNCS - 1], 1000 + s);
            git_refs_digest(want, &found[s]);
            git_refs_digest(got, &past);
            CHECK_STR(str_z(got), str_z(want));
            git_refs_release(&past);
        }
        for (int s = 0; s < SYNCS; s++) {
            git_refs_release(&found[s]);
            bundle_header_release(&h[s]);
        }
    }
}

TEST(archive_header, equal_refs_add_no_point_and_a_clock_set_back_keeps_the_order)
{
    struct bundle_header one, two, three;
    struct git_refs first, second, third;
    struct err err = {0};

    git_refs_init(&first, false);
    git_refs_init(&second, false);
    add(&first, ID_A, "refs/heads/a");
    add(&second, ID_B, "refs/heads/a");
    bundle_header_init(&one, false);
    bundle_header_init(&two, false);
    bundle_header_init(&three, false);
    CHECK_OK(bundle_header_follow(&one, NULL, &first, AT(100), &err));
    CHECK_OK(bundle_header_follow(&two, &one, &second, AT(200), &err));
    CHECK_INT(two.points.len, 1);
    CHECK_OK(bundle_header_follow(&three, &two, &first, AT(150), &err));
    CHECK_INT(three.points.len, 2);
    CHECK_INT(three.points.items[1].at_s, 201); /* later than the points of the last sync */
    bundle_header_release(&two);
    bundle_header_init(&two, false);
    CHECK_OK(bundle_header_follow(&two, &three, &first, AT(300), &err));
    CHECK_INT(two.points.len, 2);
    /* a further write of the same sync has the same second; another sync never has */
    git_refs_init(&third, false);
    add(&third, ID_A, "refs/heads/a");
    add(&third, ID_B, "refs/heads/b");
    bundle_header_release(&three);
    bundle_header_init(&three, false);
    CHECK_OK(bundle_header_follow(&three, &two, &third,
                                  &(struct header_time){.now_s = 150, .same_sync_s = 201}, &err));
    CHECK_INT(three.points.len, 3);
    CHECK_INT(three.points.items[2].at_s, 201);
    CHECK_INT(three.points_s, 201);
    bundle_header_release(&three);
    bundle_header_init(&three, false);
    CHECK_OK(bundle_header_follow(&three, &two, &third, AT(201), &err));
    CHECK_INT(three.points.items[2].at_s, 202);
    bundle_header_release(&one);
    bundle_header_release(&two);
    bundle_header_release(&three);
    git_refs_release(&first);
    git_refs_release(&second);
    git_refs_release(&third);
}

/* A ref that becomes a folder and goes again, while the clock stands: no line of history is a
 * folder of another one. */
TEST(archive_header, no_line_of_history_is_a_folder_of_another)
{
    struct bundle_header h[4];
    struct git_refs found[4];
    static const char *const names[] = {"refs/heads/a", "refs/heads/a/b", "refs/heads/c"};
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(h); i++) {
        git_refs_init(&found[i], false);
        bundle_header_init(&h[i], false);
        add(&found[i], ID_A, names[i % ARRAY_SIZE(names)]);
        CHECK_OK(bundle_header_follow(&h[i], i ? &h[i - 1] : NULL, &found[i], AT(100), &err));
    }
    for (size_t i = 0; i < h[3].points.len; i++)
        for (size_t k = 0; k < i; k++)
            CHECK(h[3].points.items[i].at_s != h[3].points.items[k].at_s ||
                  h[3].points.items[i].is_new != h[3].points.items[k].is_new);
    CHECK_INT(h[3].points.len, 6);
    for (size_t i = 0; i < ARRAY_SIZE(h); i++) {
        git_refs_release(&found[i]);
        bundle_header_release(&h[i]);
    }
}

static void push_point(struct bundle_header *h, unsigned char first, const char *name)
{
    unsigned char id[GIT_ID_MAX] = {first};
    struct header_point p = {.at_s = 100};
    struct err err = {0};

    CHECK_OK(git_refs_store(&p.ref, &h->refs, id, str_z(name), sizeof(p), &err));
    vec_push(&h->points, p);
}

/* The bundle is kept aside then, so no line is lost. */
TEST(archive_header, a_full_history_is_not_added_to)
{
    struct bundle_header full, next;
    struct git_refs found;
    struct err err = {0};

    git_refs_init(&found, false);
    bundle_header_init(&full, false);
    bundle_header_init(&next, false);
    for (int i = 0; i < HEADER_POINTS_MAX; i++)
        push_point(&full, 1, "refs/heads/a");
    CHECK_OK(bundle_header_follow(&next, &full, &found, AT(200), &err));
    bundle_header_release(&next);
    bundle_header_init(&next, false);
    add(&found, ID_A, "refs/heads/b");
    CHECK_ERR(bundle_header_follow(&next, &full, &found, AT(200), &err), ERR_UNSUPPORTED);
    bundle_header_release(&next);
    bundle_header_release(&full);
    git_refs_release(&found);
}

/* Adds `count` branches whose names have 1000 bytes. */
static void add_long(struct git_refs *r, int count)
{
    char name[GIT_REF_NAME_MAX + 1] = "refs/heads/";

    memset(name + 11, 'x', 1000 - 11);
    for (int i = 0; i < count; i++) {
        snprintf(name + 1000 - 8, 9, "%08d", i);
        add(r, ID_A, name);
    }
    sorted(r);
}

/* 25 MB of names in the history and 6 MB of names of refs fit into memory each, but not together.
 * The bundle is kept aside then, as one whose history has too many lines. */
TEST(archive_header, a_history_that_leaves_the_refs_no_memory_is_not_added_to)
{
    struct bundle_header full, next;
    struct git_refs found;
    struct err err = {0};
    char name[GIT_REF_NAME_MAX + 1] = "refs/heads/";

    memset(name + 11, 'x', 1000 - 11);
    git_refs_init(&found, false);
    bundle_header_init(&full, false);
    bundle_header_init(&next, false);
    for (int i = 0; i < 24 * 1000; i++)
        push_point(&full, 1, name);
    CHECK_OK(bundle_header_follow(&next, &full, &found, AT(200), &err));
    bundle_header_release(&next);
    bundle_header_init(&next, false);
    add_long(&found, 6000);
    CHECK_ERR(bundle_header_follow(&next, &full, &found, AT(200), &err), ERR_UNSUPPORTED);
    CHECK(str_find(str_z(err.text), STR("28 MiB")) >= 0);
    bundle_header_release(&next);
    bundle_header_release(&full);
    /* A fresh bundle has only the refs. */
    bundle_header_init(&next, false);
    CHECK_OK(bundle_header_follow(&next, NULL, &found, AT(200), &err));
    bundle_header_release(&next);
    git_refs_release(&found);
}

/* git drops what no ref reaches, so each id of a header needs a ref. */
TEST(archive_header, every_id_gets_a_packed_ref_of_its_own_name)
{
    struct bundle_header h;
    struct buf path = {0}, text = {0};
    struct err err = {0};
    char name[GIT_REF_NAME_MAX + 1] = "refs/heads/";

    memset(name + 11, 'x', sizeof(name) - 12);
    bundle_header_init(&h, false);
    push_point(&h, 0xa1, "refs/heads/main");
    push_point(&h, 0xa2, "refs/heads/main");
    push_point(&h, 0xa1, "refs/heads/main");
    push_point(&h, 0xa3, name);
    CHECK_OK(git_write_refs(test_dir(), &h.refs, &h, GIT_REFS_WITH_POINTS, &err));
    buf_appendf(&path, "%s/packed-refs", test_dir());
    CHECK_OK(file_read(path.p, &text, &err));
    struct str rest = buf_str(&text), line, last = STR_EMPTY;
    bool seen[3] = {0};
    str_cut(rest, '\n', &line, &rest);
    while (str_cut(rest, '\n', &line, &rest)) {
        struct str ref = str_skip(line, 41);
        CHECK(git_ref_name_ok(ref));
        CHECK(str_cmp(last, ref) < 0); /* sorted, and none twice */
        last = ref;
        CHECK(line.p[0] == 'a' && line.p[1] >= '1' && line.p[1] <= '3');
        seen[line.p[1] - '1'] = true;
    }
    CHECK(seen[0] && seen[1] && seen[2]);
    buf_release(&path);
    buf_release(&text);
    bundle_header_release(&h);
}
