/* Trees and commits: what git writes, and what a hostile server writes. */
#include "archive/tree.h"
#include "unit/test.h"

static void add(struct buf *tree, const char *mode, const char *name)
{
    static const unsigned char id[20] = {1, 2, 3};

    buf_append_z(tree, mode);
    buf_append_char(tree, ' ');
    buf_append_z(tree, name);
    buf_append_char(tree, '\0');
    buf_append(tree, id, sizeof(id));
}

TEST(archive_tree, entries_are_read_in_order)
{
    static const enum tree_kind kinds[] = {TREE_FILE,   TREE_PROGRAM,   TREE_LINK,
                                           TREE_FOLDER, TREE_SUBMODULE, TREE_FILE};
    struct buf tree = {0};
    struct tree_entry e;
    struct err err = {0};

    add(&tree, "100644", "a");
    add(&tree, "100755", "b");
    add(&tree, "120000", "c");
    add(&tree, "40000", "d");
    add(&tree, "160000", "e");
    add(&tree, "100664", "f");
    CHECK_OK(tree_check(buf_str(&tree), false, &err));
    struct str rest = buf_str(&tree);
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        CHECK_OK(tree_next(&rest, false, &e, &err));
        CHECK_INT(e.kind, kinds[i]);
        CHECK_INT(e.name.p[0], (int)('a' + i));
        CHECK_INT(e.id[2], 3);
    }
    CHECK_ERR(tree_next(&rest, false, &e, &err), ERR_END);
    for (size_t len = 1; len < 28; len++)
        CHECK_ERR(tree_check(str_head(buf_str(&tree), len), false, &err),
                  len == 28 ? 0 : ERR_PARSE);
    buf_release(&tree);
}

TEST(archive_tree, a_folder_counts_as_if_a_slash_ended_its_name)
{
    struct buf tree = {0};
    struct err err = {0};

    add(&tree, "100644", "a");
    add(&tree, "100644", "a-b");
    add(&tree, "40000", "a.d"); /* "a.d/" */
    add(&tree, "100644", "a.d0");
    CHECK_OK(tree_check(buf_str(&tree), false, &err));
    buf_reset(&tree);
    add(&tree, "40000", "a"); /* "a/" is behind "a-b" */
    add(&tree, "100644", "a-b");
    CHECK_ERR(tree_check(buf_str(&tree), false, &err), ERR_PARSE);
    buf_release(&tree);
}

TEST(archive_tree, a_name_cannot_be_a_file_and_a_folder)
{
    struct buf tree = {0};
    struct err err = {0};

    add(&tree, "120000", "a");
    add(&tree, "100644", "a-");
    add(&tree, "100644", "a-b");
    add(&tree, "100644", "a.b");
    CHECK_OK(tree_check(buf_str(&tree), false, &err));
    add(&tree, "40000", "a");
    CHECK_ERR(tree_check(buf_str(&tree), false, &err), ERR_PARSE);
    CHECK(strstr(err.text, "twice"));
    buf_reset(&tree);
    add(&tree, "100644", "a");
    add(&tree, "100644", "a");
    CHECK_ERR(tree_check(buf_str(&tree), false, &err), ERR_PARSE);
    buf_release(&tree);
}

TEST(archive_tree, damaged_entries_are_refused)
{
    static const char *const modes[] = {"", "1", "8", "100648", "10000644", "0", "777777", "-1"};
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        struct buf tree = {0};
        add(&tree, modes[i], "a");
        CHECK_ERR(tree_check(buf_str(&tree), false, &err), ERR_PARSE);
        buf_release(&tree);
    }
    struct buf tree = {0};
    add(&tree, "100644", "");
    CHECK_ERR(tree_check(buf_str(&tree), false, &err), ERR_PARSE);
    buf_release(&tree);
}

TEST(archive_tree, names_that_leave_a_folder_are_told)
{
    static const char *const bad[] = {".", "..",   ".git", ".GIT",     ".gIt", "a/b",
                                      "/", "..\\", "\\..", "a\\..\\b", "../x"};
    static const char *const good[] = {"a",   "...",  ".gitignore", "git",      "a\\b",
                                       "..a", "a..b", ".g",         "a\\...\\b"};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK(!tree_name_ok(str_z(bad[i])));
    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        CHECK(tree_name_ok(str_z(good[i])));
    CHECK(!tree_name_ok(STR_EMPTY));
    CHECK(!tree_name_ok(STR("a\0b")));
}

#define HEX40 "0123456789abcdef0123456789abcdef01234567"

TEST(archive_tree, a_commit_gives_its_tree_and_its_time)
{
    struct git_commit c;
    struct err err = {0};

    CHECK_OK(
        git_commit_read(&c,
                        STR("tree " HEX40 "\nparent " HEX40 "\nauthor a <a> 1 +0000\n"
                            "committer a > b <x@y> 1700000000 -0700\n\ncommitter z <z> 5 +0\n"),
                        false, &err));
    CHECK_INT(c.tree[0], 1);
    CHECK_INT(c.time_s, 1700000000);
    CHECK_OK(git_commit_read(&c, STR("tree " HEX40 "\n\ncommitter z <z> 5 +0000\n"), false, &err));
    CHECK_INT(c.time_s, 0);
    CHECK_ERR(git_commit_read(&c, STR("parent " HEX40 "\n"), false, &err), ERR_PARSE);
    CHECK_ERR(git_commit_read(&c, STR("tree " HEX40 "\n"), true, &err), ERR_PARSE);
    CHECK_ERR(git_commit_read(&c, STR("tree " HEX40), false, &err), ERR_PARSE);
    unsigned char id[GIT_ID_MAX];
    CHECK_OK(git_tag_read(id, STR("object " HEX40 "\ntype commit\n"), false, &err));
    CHECK_INT(id[0], 1);
    CHECK_ERR(git_tag_read(id, STR("type commit\n"), false, &err), ERR_PARSE);
}
