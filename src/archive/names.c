/* Names of the archive (docs/archive.md, "Names and keys"). */
#include "archive/names.h"

#include "base/hex.h"
#include "object/digest.h"

/* Two digits and a '/' for each byte of the hash. */
enum { FOLDERS_LEN = 3 * ARCHIVE_HASH_LEN };

static const struct str kind_suffixes[ARCHIVE_KINDS] = {
    [ARCHIVE_RECORD] = {".json", 5},     [ARCHIVE_ACCOUNT_ERROR] = {".error", 6},
    [ARCHIVE_ADDED] = {".new", 4},       [ARCHIVE_REMOVED] = {".removed", 8},
    [ARCHIVE_OPTIONS] = {".options", 8}, [ARCHIVE_BUNDLE] = {".bundle", 7},
    [ARCHIVE_ZIP] = {".zip", 4},         [ARCHIVE_REPO_ERROR] = {".error", 6},
    [ARCHIVE_EXTRA] = {NULL, 0},
};

static bool kind_is_of_account(enum archive_kind kind)
{
    return kind <= ARCHIVE_OPTIONS;
}

/* --- checks --- */

static bool name_byte_ok(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

static bool name_bytes_ok(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!name_byte_ok(s.p[i]))
            return false;
    return s.len > 0;
}

static bool login_part_ok(struct str s)
{
    return s.len <= ARCHIVE_LOGIN_PART_MAX && name_bytes_ok(s) && s.p[0] != '.' && s.p[0] != '_' &&
           s.p[0] != '-';
}

static bool login_ok(struct str login)
{
    struct str part, rest = login;
    bool more = true;

    for (int parts = 0; more; parts++) {
        more = str_cut(rest, '/', &part, &rest);
        if (parts == ARCHIVE_LOGIN_PARTS_MAX || !login_part_ok(part))
            return false;
    }
    return true;
}

static bool port_ok(struct str port)
{
    uint64_t n;

    return port.len <= 5 && str_u64(port, &n) == 0 && n > 0 && n < 65536 && port.p[0] != '0';
}

/* Names of hosts consist of letters, digits, dots and hyphens, like the names of web servers in
 * DNS. */
static bool host_ok(struct str host)
{
    struct str name, port;
    bool has_port = str_cut(host, ':', &name, &port);

    if (host.len > ARCHIVE_HOST_MAX || (has_port && !port_ok(port)) || !name_bytes_ok(name) ||
        name.p[0] == '.' || name.p[0] == '-' || name.p[name.len - 1] == '.' ||
        str_find(name, STR("..")) >= 0)
        return false;
    return str_chr(name, '_') < 0;
}

bool archive_repo_ok(struct str name)
{
    return name.len <= ARCHIVE_REPO_MAX && name_bytes_ok(name) && !str_eq(name, STR(".")) &&
           !str_eq(name, STR(".."));
}

/* --- accounts --- */

static void login_hash(unsigned char out[ARCHIVE_HASH_LEN], struct str folded)
{
    struct digest_value sum;

    digest_of(DIGEST_SHA256, folded, &sum);
    memcpy(out, sum.bytes, ARCHIVE_HASH_LEN);
}

int archive_account_make(struct archive_account *out, struct arena *a, struct str host,
                         struct str login, struct err *err)
{
    if (!host_ok(host))
        return err_set(err, ERR_INVALID,
                       "'" STR_FMT
                       "' is not the name of a host, such as git.example.org or 10.1.2.3:3000",
                       STR_ARG(str_head(host, ARCHIVE_HOST_MAX)));
    if (!login_ok(login))
        return err_set(err, ERR_INVALID,
                       "'" STR_FMT "' is not the name of an account: letters, digits, '.', '_' and "
                       "'-', and the first is a letter or a digit",
                       STR_ARG(str_head(login, ARCHIVE_LOGIN_PART_MAX)));
    *out = (struct archive_account){.host = arena_lower(a, host), .login = arena_lower(a, login)};
    login_hash(out->hash, out->login);
    return arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

int archive_account_read(struct archive_account *out, struct arena *a, struct str member,
                         struct err *err)
{
    struct str host, login;

    if (!str_cut(member, '/', &host, &login))
        return err_set(err, ERR_INVALID,
                       "'" STR_FMT "' is not an account; write HOST/LOGIN, as github.com/octocat",
                       STR_ARG(str_head(member, ARCHIVE_HOST_MAX)));
    return archive_account_make(out, a, host, login, err);
}

struct str archive_account_member(const struct archive_account *c, struct arena *a)
{
    return arena_fmt(a, STR_FMT "/" STR_FMT, STR_ARG(c->host), STR_ARG(c->login));
}

struct str archive_account_lock(const struct archive_account *c, struct arena *a)
{
    if (str_eq(c->host, STR("github.com")))
        return arena_fmt(a, "lock:" STR_FMT, STR_ARG(c->login));
    return arena_fmt(a, "lock:" STR_FMT "/" STR_FMT, STR_ARG(c->host), STR_ARG(c->login));
}

struct str archive_host_bucket(struct str host, struct arena *a)
{
    struct str name = arena_str(a, host);

    for (size_t i = 0; i < name.len; i++)
        if (name.p[i] == ':')
            ((char *)name.p)[i] = '-';
    return name;
}

/* --- keys --- */

static void folders_write(char out[FOLDERS_LEN], const unsigned char hash[ARCHIVE_HASH_LEN])
{
    for (size_t i = 0; i < ARCHIVE_HASH_LEN; i++) {
        hex_write(out + 3 * i, &hash[i], 1);
        out[3 * i + 2] = '/';
    }
}

struct str archive_key(const struct archive_account *c, struct arena *a, enum archive_kind kind,
                       struct str repo)
{
    char folders[FOLDERS_LEN];

    folders_write(folders, c->hash);
    return arena_fmt(a, "%.*s" STR_FMT "%s" STR_FMT STR_FMT, FOLDERS_LEN, folders,
                     STR_ARG(c->login), kind_is_of_account(kind) ? "" : "/", STR_ARG(repo),
                     STR_ARG(kind_suffixes[kind]));
}

struct str archive_folder(const struct archive_account *c, struct arena *a)
{
    return archive_key(c, a, ARCHIVE_EXTRA, STR_EMPTY);
}

static bool login_has_folders(struct str login, struct str folders)
{
    unsigned char hash[ARCHIVE_HASH_LEN];
    char wanted[FOLDERS_LEN];

    if (!login.p || !login_ok(login))
        return false;
    for (size_t i = 0; i < login.len; i++)
        if (login.p[i] >= 'A' && login.p[i] <= 'Z')
            return false;
    login_hash(hash, login);
    folders_write(wanted, hash);
    return str_eq(folders, str_n(wanted, FOLDERS_LEN));
}

/* Reads the part of a key that follows the login's folder: the name of a repository with the suffix
 * of the kind of object, or an extra (a name with '@'). Returns false when it is neither. */
static bool object_read_repo(struct archive_object *out, struct str rest)
{
    struct str repo, extra;

    if (str_cut(rest, '@', &repo, &extra)) {
        out->kind = ARCHIVE_EXTRA;
        out->repo = repo;
        out->extra = extra;
        return extra.len > 0 && (repo.len == 0 || archive_repo_ok(repo));
    }
    for (enum archive_kind kind = ARCHIVE_BUNDLE; kind <= ARCHIVE_REPO_ERROR; kind++)
        if (str_ends(rest, kind_suffixes[kind])) {
            out->kind = kind;
            out->repo = str_head(rest, rest.len - kind_suffixes[kind].len);
            return archive_repo_ok(out->repo);
        }
    return false;
}

static bool object_read_account(struct archive_object *out, struct str folders, struct str name)
{
    for (enum archive_kind kind = ARCHIVE_RECORD; kind <= ARCHIVE_OPTIONS; kind++)
        if (str_ends(name, kind_suffixes[kind])) {
            out->kind = kind;
            out->login = str_head(name, name.len - kind_suffixes[kind].len);
            return login_has_folders(out->login, folders);
        }
    return false;
}

/* Both a login of GitLab and an extra may contain a '/'. The hash in the key tells where the login
 * ends. */
int archive_key_read(struct archive_object *out, struct str key)
{
    struct str folders = str_head(key, FOLDERS_LEN), name = str_skip(key, FOLDERS_LEN);
    int parts = 0;

    *out = (struct archive_object){0};
    if (object_read_account(out, folders, name))
        return 0;
    for (size_t i = 0; i < name.len && parts < ARCHIVE_LOGIN_PARTS_MAX; i++) {
        if (name.p[i] != '/')
            continue;
        parts++;
        *out = (struct archive_object){.login = str_head(name, i)};
        if (login_has_folders(out->login, folders) && object_read_repo(out, str_skip(name, i + 1)))
            return 0;
    }
    *out = (struct archive_object){0};
    return ERR_NOT_FOUND;
}

void archive_key_behind(struct buf *out, struct str last)
{
    struct archive_object o;

    buf_reset(out);
    if (archive_key_read(&o, last) == 0 && o.kind > ARCHIVE_OPTIONS) {
        buf_append_str(out, str_head(last, FOLDERS_LEN + o.login.len + 1));
        buf_append_char(out, '\x7f');
    } else {
        buf_append_str(out, last);
    }
}
