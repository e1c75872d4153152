/* Trees and commits of git: the two kinds of objects that weir reads to list the files of a commit.
 *
 * A tree is a list of entries: a mode in octal digits, a blank, a name, a NUL, and the id of an
 * object in binary. Trees may be hostile. With an entry `..`, or with a symbolic link and a folder
 * of the same name, a tree could make a program that unpacks it write outside of its folder.
 * tree_check() refuses a tree that is not in git's order or has a name twice. tree_name_ok() is
 * false for names that must not be unpacked. Nothing here allocates memory, except a list of a few
 * names. */
#ifndef ARCHIVE_TREE_H
#define ARCHIVE_TREE_H

#include "archive/refs.h"

enum tree_kind { TREE_FILE, TREE_PROGRAM, TREE_LINK, TREE_FOLDER, TREE_SUBMODULE };

struct tree_entry {
    enum tree_kind kind;
    struct str name;         /* borrowed from the tree */
    const unsigned char *id; /* borrowed from the tree; git_id_len() bytes */
};

/* Reads the next entry and removes it from `rest`. ERR_END: there is none. ERR_PARSE: the bytes are
 * not an entry. */
int tree_next(struct str *rest, bool is_sha256, struct tree_entry *out, struct err *err) MUST_CHECK;

/* Checks a whole tree: every entry can be read, the names are in git's order, and no name comes
 * twice, even if one entry is a file and the other a folder. ERR_PARSE: the tree breaks a rule. */
int tree_check(struct str tree, bool is_sha256, struct err *err) MUST_CHECK;

/* Whether a name may be used in a ZIP file. These may not: `.`, `..`, `.git` in any case, a name
 * with a slash, and a name that has the part `..` between backslashes. */
bool tree_name_ok(struct str name);

/* The parts of a commit that the archive needs. */
struct git_commit {
    unsigned char tree[GIT_ID_MAX];
    int64_t time_s; /* time of the committer, seconds since 1970; 0: the commit has none */
};

/* Reads a commit. ERR_PARSE: the commit does not begin with a tree. */
int git_commit_read(struct git_commit *out, struct str commit, bool is_sha256,
                    struct err *err) MUST_CHECK;
/* Reads the id that an annotated tag names. ERR_PARSE: the tag does not begin with such an id. */
int git_tag_read(unsigned char out[GIT_ID_MAX], struct str tag, bool is_sha256,
                 struct err *err) MUST_CHECK;

#endif
