/* A walk over the layers of a branch: order, tombstones, prefix, seek; and the ends of prefixes. */
#include "unit/lake/hand.h"

#include "lake/layers.h"
#include "lake/read.h"

/* Writes a row of a token; content NULL: a tombstone. */
static void put_row(struct hand *h, struct str token, const char *path, const char *content)
{
    struct lake_staged staged = {0};
    struct buf row = {0};

    if (content)
        staged = (struct lake_staged){str_z(content), str_z(content)};
    lake_staged_write(&row, &staged);
    CHECK_INT(kv_set(lake_kv(h->lake), lake_key_staged(&h->arena, token, str_z(path)),
                     row.len ? buf_str(&row) : STR(""), &h->err),
              0);
    buf_release(&row);
}

/* The rest of the walk must be "path=identity", with blanks between; a tombstone is "path=". */
static void expect_rest(struct layers *walk, struct hand *h, const char *want)
{
    struct buf got = {0};
    struct layers_row row;
    int code;

    while ((code = layers_next(walk, &row, &h->err)) == 0)
        buf_appendf(&got, "%s" STR_FMT "=" STR_FMT, got.len ? " " : "", STR_ARG(row.path),
                    STR_ARG(row.identity));
    CHECK_INT(code, ERR_END);
    CHECK_INT(layers_next(walk, &row, &h->err), ERR_END);
    CHECK_STR(buf_str(&got), str_z(want));
    buf_release(&got);
}

static struct str tokens[] = {{"newest", 6}, {"middle", 6}, {"oldest", 6}};

static void fill_tokens(struct hand *h)
{
    put_row(h, tokens[0], "b", "b0");
    put_row(h, tokens[0], "c", NULL);
    put_row(h, tokens[0], "z/1", "z0");
    put_row(h, tokens[1], "a", "a1");
    put_row(h, tokens[1], "b", NULL);
    put_row(h, tokens[1], "c", "c1");
    put_row(h, tokens[2], "b", "b2");
    put_row(h, tokens[2], "d", "d2");
    put_row(h, tokens[2], "z/2", NULL);
}

LAKE_LAB_TEST(lake_layers, the_newest_row_of_a_path_decides)
{
    struct hand h = hand_of(lab);
    struct layers_options o = {.tokens = tokens, .token_count = 3};
    struct layers *walk;

    fill_tokens(&h);
    CHECK_INT(layers_open(&walk, h.lake, &o, &h.err), 0);
    expect_rest(walk, &h, "a=a1 b=b0 d=d2 z/1=z0");
    layers_close(walk);
    o.shows_tombstones = true;
    CHECK_INT(layers_open(&walk, h.lake, &o, &h.err), 0);
    expect_rest(walk, &h, "a=a1 b=b0 c= d=d2 z/1=z0 z/2=");
    layers_close(walk);
    o.token_count = 0;
    CHECK_INT(layers_open(&walk, h.lake, &o, &h.err), 0);
    expect_rest(walk, &h, "");
    layers_close(walk);
    hand_release(&h);
}

LAKE_LAB_TEST(lake_layers, a_walk_is_sought_forward_and_back)
{
    struct hand h = hand_of(lab);
    struct layers_options o = {.tokens = tokens, .token_count = 3, .from = STR("b")};
    struct layers_row row;
    struct layers *walk;

    fill_tokens(&h);
    CHECK_INT(layers_open(&walk, h.lake, &o, &h.err), 0);
    CHECK_INT(layers_next(walk, &row, &h.err), 0);
    CHECK_STR(row.path, STR("b"));
    layers_seek(walk, STR("d"));
    expect_rest(walk, &h, "d=d2 z/1=z0");
    layers_seek(walk, STR("a"));
    expect_rest(walk, &h, "a=a1 b=b0 d=d2 z/1=z0");
    layers_seek(walk, STR("bb"));
    expect_rest(walk, &h, "d=d2 z/1=z0");
    layers_seek(walk, STR("zz"));
    expect_rest(walk, &h, "");
    layers_close(walk);
    hand_release(&h);
}

LAKE_LAB_TEST(lake_layers, a_prefix_bounds_all_layers)
{
    struct hand h = hand_of(lab);
    struct head_tree tree;
    struct layers *walk;

    hand_put(&h, "main", "a/x", "1");
    hand_put(&h, "main", "z/0", "1");
    hand_put(&h, "main", "zz", "1");
    struct str head = hand_commit(&h, "main", "c");
    fill_tokens(&h);
    CHECK_INT(head_tree_open(&tree, h.lake, &h.arena, &h.repo, head, &h.err), 0);
    struct layers_options o = {.tokens = tokens,
                               .token_count = 3,
                               .store = &tree.store,
                               .tree = tree.root,
                               .prefix = STR("z/")};
    struct layers_row row;
    CHECK_INT(layers_open(&walk, h.lake, &o, &h.err), 0);
    CHECK_INT(layers_next(walk, &row, &h.err), 0);
    CHECK_STR(row.path, STR("z/0"));
    expect_rest(walk, &h, "z/1=z0");
    layers_seek(walk, STR("a"));
    CHECK_INT(layers_next(walk, &row, &h.err), 0);
    CHECK_STR(row.path, STR("z/0"));
    layers_seek(walk, STR("z/00"));
    expect_rest(walk, &h, "z/1=z0");
    layers_close(walk);
    head_tree_release(&tree, h.lake);
    hand_release(&h);
}

TEST(lake_layers, the_end_of_a_prefix_leaves_bytes_of_0xff_out)
{
    struct arena a = {0};
    struct str end;

    CHECK(layers_behind(&a, STR("a/"), &end));
    CHECK_STR(end, STR("a0"));
    CHECK(layers_behind(&a, STR("a\xff\xff"), &end));
    CHECK_STR(end, STR("b"));
    CHECK(layers_behind(&a, STR("\x7f"), &end));
    CHECK_STR(end, STR("\x80"));
    CHECK(!layers_behind(&a, STR("\xff\xff"), &end));
    CHECK(!layers_behind(&a, STR(""), &end));
    arena_release(&a);
}
