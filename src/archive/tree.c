/* Trees and commits of git. */
#include "archive/tree.h"

#include "base/hex.h"

/* Most octal digits of a mode; some old programs wrote a zero before the six digits. */
enum { TREE_MODE_MAX = 7 };

static int tree_bad(struct err *err, const char *what)
{
    return err_set(err, ERR_PARSE, "a tree of the repository is damaged: %s", what);
}

/* --- entries --- */

/* Columns: the bits of a mode that tell the kind; the kind. Of the other bits, git uses only the
 * owner's right to execute. */
static const struct {
    unsigned bits;
    enum tree_kind kind;
} tree_kinds[] = {
    {0100000, TREE_FILE},
    {0120000, TREE_LINK},
    {0040000, TREE_FOLDER},
    {0160000, TREE_SUBMODULE},
};

static bool tree_kind_of(unsigned mode, enum tree_kind *out)
{
    for (size_t i = 0; i < ARRAY_SIZE(tree_kinds); i++)
        if ((mode & 0170000) == tree_kinds[i].bits) {
            *out = tree_kinds[i].kind;
            if (*out == TREE_FILE && mode & 0100)
                *out = TREE_PROGRAM;
            return true;
        }
    return false;
}

static bool tree_read_mode(struct str digits, unsigned *out)
{
    unsigned mode = 0;

    if (digits.len == 0 || digits.len > TREE_MODE_MAX)
        return false;
    for (size_t i = 0; i < digits.len; i++) {
        if (digits.p[i] < '0' || digits.p[i] > '7')
            return false;
        mode = mode << 3 | (unsigned)(digits.p[i] - '0');
    }
    *out = mode;
    return true;
}

int tree_next(struct str *rest, bool is_sha256, struct tree_entry *out, struct err *err)
{
    struct str digits, name, behind;
    size_t id_len = git_id_len(is_sha256);
    unsigned mode;

    if (rest->len == 0)
        return ERR_END;
    if (!str_cut(str_head(*rest, TREE_MODE_MAX + 1), ' ', &digits, &name) ||
        !tree_read_mode(digits, &mode) || !tree_kind_of(mode, &out->kind))
        return tree_bad(err, "an entry has no mode");
    if (!str_cut(str_skip(*rest, digits.len + 1), '\0', &name, &behind) || name.len == 0)
        return tree_bad(err, "an entry has no name");
    if (behind.len < id_len)
        return tree_bad(err, "it is cut off");
    out->name = name;
    out->id = (const unsigned char *)behind.p;
    *rest = str_skip(behind, id_len);
    return 0;
}

/* --- order --- */

/* The byte at index i of a name, for git's order: the name of a folder is compared as if it ended
 * with a slash. */
static unsigned char tree_byte(const struct tree_entry *e, size_t i)
{
    if (i < e->name.len)
        return (unsigned char)e->name.p[i];
    return e->kind == TREE_FOLDER ? '/' : '\0';
}

static int tree_order(const struct tree_entry *a, const struct tree_entry *b)
{
    size_t common = size_min(a->name.len, b->name.len);
    int order = memcmp(a->name.p, b->name.p, common);

    return order ? order : (int)tree_byte(a, common) - (int)tree_byte(b, common);
}

/* Names of files that a later folder of the same tree might repeat. git's order puts the file `a`
 * before `a-b`, and the folder `a` after it, so the two need not be neighbours. Each name of the
 * list begins with the name before it. */
typedef VEC(struct str) tree_names;

static int tree_check_twice(tree_names *open, const struct tree_entry *e, struct err *err)
{
    while (open->len && !str_starts(e->name, *vec_last(open)))
        open->len--;
    if (e->kind != TREE_FOLDER) {
        vec_push(open, e->name);
        return 0;
    }
    if (open->len && str_eq(*vec_last(open), e->name))
        return tree_bad(err, "a name is there twice");
    return 0;
}

int tree_check(struct str tree, bool is_sha256, struct err *err)
{
    struct tree_entry e, last = {0};
    tree_names open = {0};
    bool has_last = false;
    int code;

    while ((code = tree_next(&tree, is_sha256, &e, err)) == 0) {
        int order = has_last ? tree_order(&last, &e) : -1;
        if (order >= 0)
            code = tree_bad(err, order ? "its names are not in order" : "a name is there twice");
        else
            code = tree_check_twice(&open, &e, err);
        if (code < 0)
            break;
        last = e;
        has_last = true;
    }
    vec_release(&open);
    return code == ERR_END ? 0 : code;
}

/* --- names --- */

bool tree_name_ok(struct str name)
{
    struct str part, rest = name;

    if (name.len == 0 || str_chr(name, '/') >= 0 || str_chr(name, '\0') >= 0)
        return false;
    if (str_eq(name, STR(".")) || str_ieq(name, STR(".git")))
        return false;
    for (bool more = true; more;) {
        more = str_cut(rest, '\\', &part, &rest);
        if (str_eq(part, STR("..")))
            return false;
    }
    return true;
}

/* --- commits and tags --- */

static bool git_take_id(struct str *text, const char *word, unsigned char *id, bool is_sha256)
{
    struct str line;

    if (!str_cut(*text, '\n', &line, text) || !str_starts(line, str_z(word)))
        return false;
    return hex_parse(str_skip(line, strlen(word)), id, git_id_len(is_sha256));
}

/* The time that follows `Name <mail>` in a line; 0 when there is none. */
static int64_t git_line_time(struct str line)
{
    struct str seconds, zone;
    int64_t at = 0;

    for (ptrdiff_t i; (i = str_chr(line, '>')) >= 0;)
        line = str_skip(line, (size_t)i + 1);
    str_cut(str_trim(line), ' ', &seconds, &zone);
    return str_i64(seconds, &at) == 0 ? at : 0;
}

int git_commit_read(struct git_commit *out, struct str commit, bool is_sha256, struct err *err)
{
    struct str line;

    *out = (struct git_commit){0};
    if (!git_take_id(&commit, "tree ", out->tree, is_sha256))
        return err_set(err, ERR_PARSE, "a commit of the repository is damaged: it has no tree");
    while (str_cut(commit, '\n', &line, &commit) && line.len)
        if (str_starts(line, STR("committer "))) {
            out->time_s = git_line_time(line);
            break;
        }
    return 0;
}

int git_tag_read(unsigned char out[GIT_ID_MAX], struct str tag, bool is_sha256, struct err *err)
{
    if (!git_take_id(&tag, "object ", out, is_sha256))
        return err_set(err, ERR_PARSE, "a tag of the repository is damaged: it names no object");
    return 0;
}
