/* lakeFS's tables: read where they lie, and committed above. */
#include "unit/lake/sst_file.h"

#include "lake/node.h"
#include "lake/sst_unpack.h"

#include <stdio.h>
#include <stdlib.h>

static const struct sst_options kinds[] = {
    {.block = 300},
    {.block = 300, .plain = true},
    {.block = 300, .two_levels = true},
    {.block = 0},
};

static void sst_world(struct world *w)
{
    world_open(w, 1 << 20);
    w->store.leaf_bytes = 600;
    w->store.index_bytes = 500;
}

TEST(lake_sst, a_metarange_of_lakefs_is_a_tree)
{
    for (size_t kind = 0; kind < ARRAY_SIZE(kinds); kind++)
        for (unsigned ranges = 1; ranges <= 20; ranges += 19) {
            struct set s;
            uint64_t state = kind + 1;
            char root[LAKE_ID_LEN + 1];
            struct world w;

            sst_world(&w);
            set_random(&s, &state, 80);
            sst_set(&w, &s, ranges, &kinds[kind], root);
            set_check(&w, str_z(root), &s);
            world_close(&w);
        }
}

struct kinds_seen {
    unsigned own, foreign;
};

static int count_leaves(void *ctx, const struct node_visit *v, struct err *err)
{
    struct kinds_seen *seen = ctx;

    if (v->level == 0 && v->foreign)
        seen->foreign++;
    else if (v->level == 0)
        seen->own++;
    return 0;
}

TEST(lake_sst, a_commit_above_rewrites_only_the_leaves_that_it_touches)
{
    enum { RANGES = 16 };
    struct set before, after;
    struct tree_result r, same, back;
    uint64_t state = 11;
    char root[LAKE_ID_LEN + 1];
    struct world w;
    struct kinds_seen seen = {0};
    struct err err = {0};

    sst_world(&w);
    set_random(&before, &state, 100);
    sst_set(&w, &before, RANGES, &kinds[0], root);
    set_apply(&w, str_z(root), &before, &before, &same);
    CHECK_STR(str_z(same.root), str_z(root));
    after = before;
    after.versions[SET_KEYS / 2 + 3] = 9;
    after.versions[SET_KEYS - 1] = 0;
    set_apply(&w, str_z(root), &before, &after, &r);
    CHECK_INT(r.changed, 1);
    CHECK_INT(r.removed, 1);
    set_check(&w, str_z(r.root), &after);
    CHECK_OK(tree_walk(&w.store, str_z(r.root), NULL, count_leaves, &seen, &err));
    CHECK_INT(seen.foreign, RANGES - 2);
    CHECK(seen.own >= 2);
    set_apply(&w, str_z(r.root), &after, &before, &back);
    set_check(&w, str_z(back.root), &before);
    world_close(&w);
}

TEST_TIMEOUT(lake_sst, commits_diffs_and_merges_work_across_both_formats, 600)
{
    for (unsigned seed = 0; seed < tree_seeds(60) / 4 + 5; seed++) {
        struct set base, next, other, want;
        struct tree_result a, b, got;
        uint64_t state = seed + 1;
        char root[LAKE_ID_LEN + 1];
        struct world w;
        struct tree_diff *d;
        struct tree_difference difference;
        struct err err = {0};

        sst_world(&w);
        set_random(&base, &state, 90);
        sst_set(&w, &base, 1 + seed % 10, &kinds[seed % ARRAY_SIZE(kinds)], root);
        next = other = base;
        set_change(&next, &state, 3);
        set_change(&other, &state, 3);
        set_apply(&w, str_z(root), &base, &next, &a);
        set_apply(&w, str_z(root), &base, &other, &b);
        set_check(&w, str_z(a.root), &next);
        CHECK_OK(tree_diff_open(&d, &w.store, root[0] ? str_z(root) : STR_EMPTY, str_z(a.root),
                                STR_EMPTY, &err));
        for (unsigned n = 0; n < SET_KEYS; n++)
            if (base.versions[n] != next.versions[n])
                CHECK_OK(tree_diff_next(d, &difference, &err));
        CHECK_ERR(tree_diff_next(d, &difference, &err), ERR_END);
        tree_diff_close(d);
        struct tree_merge m = {.base = str_z(root),
                               .source = str_z(a.root),
                               .dest = str_z(b.root),
                               .strategy = TREE_SOURCE_WINS};
        CHECK_OK(tree_merge(&w.store, &m, NULL, &got, &err));
        for (unsigned n = 0; n < SET_KEYS; n++)
            want.versions[n] =
                next.versions[n] != base.versions[n] ? next.versions[n] : other.versions[n];
        set_check(&w, str_z(got.root), &want);
        world_close(&w);
    }
}

/* Reads the whole tree of one range; the bytes of all records go to `seen`. */
static int read_all(struct world *w, struct str root, struct buf *seen, struct err *err)
{
    struct tree_iter *it = NULL;
    struct tree_record r;
    int code = tree_iter_open(&it, &w->store, root, err);

    while (code == 0 && (code = tree_iter_next(it, &r, err)) == 0) {
        buf_append_str(seen, r.key);
        buf_append_str(seen, r.identity);
        buf_append_str(seen, r.data);
    }
    tree_iter_close(it);
    return code == ERR_END ? 0 : code;
}

TEST(lake_sst, every_flipped_byte_is_noticed_or_harmless)
{
    for (size_t kind = 1; kind < 3; kind++) {
        struct set s = {
            {[3] = 1, [200] = 2, [201] = 2, [300] = 1, [301] = 1, [302] = 5, [500] = 1}};
        struct buf good = {0}, seen = {0};
        char root[LAKE_ID_LEN + 1];
        struct world w;
        struct err err = {0};
        size_t noticed = 0;

        sst_world(&w);
        sst_set(&w, &s, 1, &kinds[kind], root);
        CHECK_OK(read_all(&w, str_z(root), &good, &err));
        size_t cursor = 0;
        struct str id;
        void *value;
        while (map_next(&w.files, &cursor, &id, &value)) {
            struct world_file *f = value;
            for (size_t at = 0; at < f->bytes.len; at++) {
                f->bytes.p[at] ^= 0x55;
                world_forget(&w);
                buf_reset(&seen);
                int code = read_all(&w, str_z(root), &seen, &err);
                f->bytes.p[at] ^= 0x55;
                CHECK(code == 0 || code == ERR_CORRUPT);
                noticed += code != 0;
                if (code == 0)
                    CHECK_STR(buf_str(&seen), buf_str(&good));
            }
        }
        CHECK(noticed > 500);
        buf_release(&good);
        buf_release(&seen);
        world_close(&w);
    }
}

static int one_next(void *ctx, struct tree_record *out, struct err *err)
{
    static const struct tree_record change = {STR("folder-06/file-0250"), STR("new"), STR("new")};
    bool *is_given = ctx;

    if (*is_given)
        return ERR_END;
    *is_given = true;
    *out = change;
    return 0;
}

/* Reading the tree, comparing it and committing above it end with an error that says `why`. */
static void expect_damage(struct world *w, struct str root, const char *why)
{
    bool is_given = false;
    struct tree_changes changes = {one_next, &is_given};
    struct tree_difference difference;
    struct tree_diff *d;
    struct tree_result got;
    struct buf seen = {0};
    struct err err = {0};
    int code;

    CHECK_ERR(read_all(w, root, &seen, &err), ERR_CORRUPT);
    CHECK(str_find(str_z(err.text), str_z(why)) >= 0);
    CHECK_ERR(tree_apply(&w->store, root, &changes, NULL, &got, &err), ERR_CORRUPT);
    CHECK_OK(tree_diff_open(&d, &w->store, STR_EMPTY, root, STR_EMPTY, &err));
    while ((code = tree_diff_next(d, &difference, &err)) == 0)
        ;
    CHECK_ERR(code, ERR_CORRUPT);
    tree_diff_close(d);
    buf_release(&seen);
}

/* Keys that do not ascend would be listed, but not found. */
TEST(lake_sst, ranges_that_overlap_or_end_elsewhere_are_damage)
{
    static const unsigned overlapping[][2] = {{0, 300}, {200, 512}},
                          apart[][2] = {{0, 300}, {301, 511}};
    struct sst_options late = {.block = 300, .ends_late = true};
    uint64_t state = 1;
    char root[LAKE_ID_LEN + 1];
    struct world w;
    struct set s;

    sst_world(&w);
    set_random(&s, &state, 100);
    sst_ranges(&w, &s, overlapping, 2, &kinds[0], root);
    expect_damage(&w, str_z(root), "overlap");
    sst_ranges(&w, &s, apart, 2, &late, root);
    expect_damage(&w, str_z(root), "does not end");
    world_close(&w);
}

TEST(lake_sst, a_table_without_a_type_is_refused)
{
    struct sst_options o = {.type = NULL};
    struct buf bytes = {0};
    char id[LAKE_ID_LEN + 1];
    struct world w;
    struct tree_iter *it;
    struct err err = {0};

    sst_world(&w);
    struct sst_file *f = sst_file_new(&o);
    sst_file_add(f, STR("a"), STR("b"));
    sst_file_end(f, &bytes, id);
    world_put(&w, str_z(id), buf_str(&bytes));
    CHECK_ERR(tree_iter_open(&it, &w.store, str_z(id), &err), ERR_CORRUPT);
    CHECK(str_find(str_z(err.text), STR("without a type")) >= 0);
    buf_release(&bytes);
    world_close(&w);
}

TEST(lake_sst, snappy_is_unpacked_and_malformed_bytes_are_refused)
{
    static const struct {
        struct str packed, want;
        bool ok;
    } rows[] = {
        {STR("\x00"), STR(""), true},
        {STR("\x03\x08"
             "abc"),
         STR("abc"), true},
        {STR("\x08\x04"
             "ab\x16\x02\x00"),
         STR("abababab"), true}, /* copy, 2 bytes */
        {STR("\x06\x04"
             "ab\x01\x02"),
         STR("ababab"), true}, /* copy, 1 byte */
        {STR("\x06\x04"
             "ab\x0f\x02\x00\x00\x00"),
         STR("ababab"), true}, /* copy, 4 bytes */
        {STR("\x03\xf0\x02"
             "abc"),
         STR("abc"), true}, /* length behind */
        {STR(""), STR(""), false},
        {STR("\x04\x08"
             "abc"),
         STR(""), false}, /* too short */
        {STR("\x02\x08"
             "abc"),
         STR(""), false}, /* too long */
        {STR("\x08\x04"
             "ab\x16\x00\x00"),
         STR(""), false}, /* offset 0 */
        {STR("\x08\x04"
             "ab\x16\x03\x00"),
         STR(""), false}, /* before all */
        {STR("\x08\x04"
             "ab\x16\x02"),
         STR(""), false},                                  /* cut */
        {STR("\x80\x80\x80\x80\x80\x20"), STR(""), false}, /* a huge length */
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct buf out = {0};
        CHECK_INT(sst_unpack(&out, rows[i].packed, 1 << 20), rows[i].ok);
        if (rows[i].ok)
            CHECK_STR(buf_str(&out), rows[i].want);
        buf_release(&out);
    }
}
