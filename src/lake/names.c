/* Checks the names of the lake. */
#include "lake/names.h"

#include "lake/lake.h"

enum {
    REPO_MIN = 3,
    REPO_MAX = 63,
    SPACE_MAX = 768, /* in bytes; S3 has at most 1024, so 256 are left for the rest of a key */
};

static bool name_is_lower_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Whether the character is matched by \w in regular expressions. */
static bool name_is_word(char c)
{
    return name_is_lower_alnum(c) || (c >= 'A' && c <= 'Z') || c == '_';
}

int lake_check_repo(struct str id, struct err *err)
{
    bool good = id.len >= REPO_MIN && id.len <= REPO_MAX && name_is_lower_alnum(id.p[0]);

    for (size_t i = 0; good && i < id.len; i++)
        good = name_is_lower_alnum(id.p[i]) || id.p[i] == '-';
    return good
               ? 0
               : err_set(err, ERR_INVALID,
                         "a repository's name has %d to %d of the characters a-z, 0-9 and '-', and "
                         "does not begin with '-'",
                         REPO_MIN, REPO_MAX);
}

int lake_check_branch(struct str name, struct err *err)
{
    bool good = name.len > 0 && name.len <= LAKE_NAME_MAX && name_is_word(name.p[0]) &&
                name.p[name.len - 1] != '.' && str_find(name, STR("..")) < 0;

    for (size_t i = 0; good && i < name.len; i++)
        good = name_is_word(name.p[i]) || name.p[i] == '-' || name.p[i] == '.';
    return good ? 0
                : err_set(err, ERR_INVALID,
                          "a branch's name has 1 to %d letters, digits, '_', '-' and single dots "
                          "between them, and begins with a letter, a digit or '_'",
                          LAKE_NAME_MAX);
}

int lake_check_tag(struct str name, struct err *err)
{
    bool good = name.len > 0 && name.len <= LAKE_NAME_MAX && !str_ends(name, STR(".")) &&
                !str_ends(name, STR(".lock")) && str_find(name, STR("..")) < 0;

    for (size_t i = 0; good && i < name.len; i++)
        good = (unsigned char)name.p[i] > ' ' && name.p[i] != 0x7f &&
               !memchr("^~:?*[\\/@$", name.p[i], sizeof("^~:?*[\\/@$") - 1);
    return good ? 0
                : err_set(err, ERR_INVALID,
                          "a tag's name has 1 to %d bytes without spaces, control characters, '..' "
                          "or one of ^ ~ : ? * [ \\ / @ $, and does not end with '.' or '.lock'",
                          LAKE_NAME_MAX);
}

int lake_check_path(struct str path, struct err *err)
{
    if (path.len == 0 || path.len > LAKE_PATH_MAX)
        return err_set(err, ERR_INVALID, "a path has 1 to %d bytes", LAKE_PATH_MAX);
    return str_is_utf8(path) && !memchr(path.p, 0, path.len)
               ? 0
               : err_set(err, ERR_INVALID, "a path is UTF-8 without NUL");
}

int lake_check_message(struct str message, struct err *err)
{
    return message.len <= LAKE_MESSAGE_MAX
               ? 0
               : err_set(err, ERR_INVALID, "a commit's message has at most %d bytes",
                         LAKE_MESSAGE_MAX);
}

int lake_refuse_metadata(struct err *err)
{
    return err_set(err, ERR_INVALID, "metadata has at most %d keys and %d bytes", LAKE_METADATA_MAX,
                   LAKE_META_BYTES);
}

int lake_check_metadata(const struct str_pairs *p, struct err *err)
{
    size_t bytes = 0;

    for (size_t i = 0; i < p->count; i++)
        bytes += p->pairs[i].key.len + p->pairs[i].value.len;
    return p->count > LAKE_METADATA_MAX || bytes > LAKE_META_BYTES ? lake_refuse_metadata(err) : 0;
}

int lake_check_space(struct str space, struct str *bucket, struct str *prefix, struct err *err)
{
    struct str rest = str_skip(space, sizeof("s3://") - 1);

    str_cut(rest, '/', bucket, prefix);
    while (str_ends(*prefix, STR("/")))
        prefix->len--;
    if (str_starts(space, STR("s3://")) && space.len <= SPACE_MAX && str_is_utf8(space) &&
        !memchr(space.p, 0, space.len) && bucket->len && !str_starts(*prefix, STR("/")))
        return 0;
    return err_set(err, ERR_INVALID,
                   "a storage namespace is s3://BUCKET or s3://BUCKET/PREFIX, of at most %d bytes",
                   SPACE_MAX);
}

bool lake_is_id_prefix(struct str text)
{
    if (text.len == 0 || text.len > LAKE_ID_LEN)
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (!((text.p[i] >= '0' && text.p[i] <= '9') || (text.p[i] >= 'a' && text.p[i] <= 'f')))
            return false;
    return true;
}

bool lake_is_commit_id(struct str text)
{
    return text.len == LAKE_ID_LEN && lake_is_id_prefix(text);
}
