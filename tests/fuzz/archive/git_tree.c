/* Trees, commits and tags. A tree that passes the check has names in order, each once, and reading
 * it again gives the same bytes. The first byte says the kind of ids. */
#include "archive/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(struct str tree, bool is_sha256)
{
    struct err err = {0};
    struct tree_entry e;
    struct str rest = tree, last = {0};
    size_t len = 0;
    int code;

    while ((code = tree_next(&rest, is_sha256, &e, &err)) == 0) {
        BUG_ON(e.name.len == 0 || str_chr(e.name, '\0') >= 0);
        BUG_ON(last.p && str_eq(last, e.name));
        if (tree_name_ok(e.name))
            BUG_ON(str_eq(e.name, STR("..")) || str_chr(e.name, '/') >= 0);
        last = e.name;
        len = tree.len - rest.len;
    }
    BUG_ON(code != ERR_END || len != tree.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char id[GIT_ID_MAX];
    struct git_commit commit;
    struct err err = {0};

    if (size == 0)
        return 0;
    bool is_sha256 = data[0] & 1;
    struct str text = str_n(data + 1, size - 1);
    if (tree_check(text, is_sha256, &err) == 0)
        walk(text, is_sha256);
    else
        BUG_ON(err.text[0] == '\0');
    BUG_ON(git_commit_read(&commit, text, is_sha256, &err) < 0 && err.code != ERR_PARSE);
    BUG_ON(git_tag_read(id, text, is_sha256, &err) < 0 && err.code != ERR_PARSE);
    return 0;
}
