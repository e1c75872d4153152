/* The key file. It is read again when it has changed, and rewritten when a key is made. */
#include "meta/keyring.h"

#include "base/hex.h"
#include "base/ids.h"
#include "base/vec.h"
#include "os/file.h"
#include "os/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

struct entry {
    char name[KEYRING_NAME_MAX + 1];
    struct ring_key key;
};

struct keyring {
    char *path;
    struct mutex lock; /* lock class "s3.keyring"; held while the file is read and written */
    VEC(struct entry) entries;
    /* What stat() said about the file when the file was read. All zero: the file was not read yet,
     * or does not exist. */
    struct stat seen;
};

struct keyring *keyring_new(const char *path)
{
    struct keyring *k = xcalloc(1, sizeof(*k));

    k->path = xstrdup(path);
    mutex_init(&k->lock, "s3.keyring");
    return k;
}

static void keyring_forget(struct keyring *k)
{
    if (k->entries.items)
        secure_zero(k->entries.items, k->entries.cap * sizeof(*k->entries.items));
    vec_release(&k->entries);
}

void keyring_free(struct keyring *k)
{
    if (!k)
        return;
    keyring_forget(k);
    mutex_release(&k->lock);
    free(k->path);
    free(k);
}

/* --- reading the key file --- */

static bool is_key_word(struct str s, size_t max)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.p[i] <= ' ' || (unsigned char)s.p[i] > '~')
            return false;
    return s.len > 0 && s.len <= max;
}

/* Parses "name id key"; false: the line has another form. */
static bool parse_line(struct str line, struct entry *out)
{
    struct str name = STR_EMPTY, id = STR_EMPTY, key = STR_EMPTY;

    *out = (struct entry){0};
    if (!str_token(&line, " \t", &name) || !str_token(&line, " \t", &id) ||
        !str_token(&line, " \t", &key) || str_trim(line).len ||
        !is_key_word(name, KEYRING_NAME_MAX) || !is_key_word(id, KEYRING_ID_MAX) ||
        !hex_parse_any_case(key, out->key.key.bytes, SEALED_KEY_LEN))
        return false;
    memcpy(out->name, name.p, name.len);
    memcpy(out->key.id, id.p, id.len);
    return true;
}

static struct entry *keyring_entry(struct keyring *k, struct str name, struct str id)
{
    for (size_t i = k->entries.len; i > 0; i--) {
        struct entry *e = &k->entries.items[i - 1];
        if (str_eq(str_z(e->name), name) && (!id.len || str_eq(str_z(e->key.id), id)))
            return e;
    }
    return NULL;
}

/* Parses the text of the file. Error messages never quote a line, because a line may hold a key. */
static int keyring_parse(struct keyring *k, struct str text, struct err *err)
{
    struct entry entry;
    size_t number = 0, lines = 1;
    int code = 0;

    for (size_t i = 0; i < text.len; i++)
        lines += text.p[i] == '\n';
    vec_grow(&k->entries,
             size_min(lines, KEYRING_MAX)); /* growing later would leave copies of keys in memory */
    while (text.len && code == 0) {
        struct str line = text, rest = STR_EMPTY;
        str_cut(text, '\n', &line, &rest);
        text = rest;
        number++;
        if (str_ends(line, STR("\r")))
            line.len--;
        line = str_trim(line);
        if (!line.len || line.p[0] == '#')
            continue;
        if (!parse_line(line, &entry))
            code =
                err_set(err, ERR_CORRUPT, "%s: line %zu is not \"name id key\"", k->path, number);
        else if (keyring_entry(k, str_z(entry.name), str_z(entry.key.id)))
            code = err_set(err, ERR_CORRUPT, "%s: line %zu repeats a key's id", k->path, number);
        else if (k->entries.len == KEYRING_MAX)
            code = err_set(err, ERR_TOO_LARGE, "%s holds more than %d keys", k->path, KEYRING_MAX);
        else
            vec_push(&k->entries, entry);
    }
    secure_zero(&entry, sizeof(entry));
    return code;
}

static bool file_is_same(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Reads the file into the keyring. *text gets the text of the file, for a caller that adds a key to
 * the file. The old entries are replaced only if the whole file could be parsed. */
static int keyring_read_file(struct keyring *k, const struct stat *now, struct buf *text,
                             struct err *err)
{
    struct keyring next = {.path = k->path};
    int code = file_read(k->path, text, err);

    if (code == 0 && now->st_mode & 077)
        code = err_set(err, ERR_DENIED,
                       "%s may be read by others than its owner; make it mode 0600", k->path);
    if (code == 0)
        code = keyring_parse(&next, buf_str(text), err);
    if (code < 0) {
        keyring_forget(&next);
        return code;
    }
    keyring_forget(k);
    k->entries.items = next.entries.items;
    k->entries.len = next.entries.len;
    k->entries.cap = next.entries.cap;
    k->seen = *now;
    return 0;
}

static void drop_text(struct buf *text)
{
    if (text->p)
        secure_zero(text->p, text->cap);
    buf_release(text);
}

static int keyring_refresh(struct keyring *k, struct err *err)
{
    struct buf text = BUF_INIT(KEYRING_FILE_MAX);
    struct stat now = {0};
    int code = 0;

    if (stat(k->path, &now) < 0) {
        if (errno != ENOENT)
            return err_errno(err, errno, "%s", k->path);
        /* The file has disappeared since it was read. Data keys could still be wrapped with the
         * keys in memory, but after a restart nobody could open them (docs/encryption.md, E4). */
        if (k->seen.st_ino)
            return err_set(err, ERR_CORRUPT, "%s was there and is gone; put it back", k->path);
    } else if (!file_is_same(&now, &k->seen)) {
        code = keyring_read_file(k, &now, &text, err);
    }
    drop_text(&text);
    return code;
}

/* --- making a key --- */

static int keyring_make(struct keyring *k, struct str name, struct err *err)
{
    struct buf text = BUF_INIT(KEYRING_FILE_MAX);
    unsigned char id[8];
    struct sealed_key key;
    int code = k->seen.st_ino ? file_read(k->path, &text, err) : 0;

    if (code < 0)
        return code;
    if (!text.len)
        buf_append_z(&text, "# Keys of encrypted objects: name, id, key. Without a key what was "
                            "written with it is lost.\n");
    else if (text.p[text.len - 1] != '\n')
        buf_append_char(&text, '\n');
    random_bytes(id, sizeof(id));
    random_bytes(key.bytes, sizeof(key.bytes));
    buf_append_str(&text, name);
    buf_append_char(&text, ' ');
    buf_append_hex(&text, id, sizeof(id));
    buf_append_char(&text, ' ');
    buf_append_hex(&text, key.bytes, sizeof(key.bytes));
    buf_append_char(&text, '\n');
    secure_zero(&key, sizeof(key));
    code = buf_error(&text) < 0 ? err_set(err, ERR_TOO_LARGE, "%s is too large", k->path)
                                : file_write_durable(k->path, buf_str(&text), 0600, err);
    drop_text(&text);
    return code < 0 ? code : keyring_refresh(k, err);
}

/* --- looking up keys --- */

int keyring_current(struct keyring *k, struct str name, bool may_make, struct ring_key *out,
                    struct err *err)
{
    struct entry *found = NULL;
    int code;

    mutex_lock(&k->lock);
    code = keyring_refresh(k, err);
    if (code == 0)
        found = keyring_entry(k, name, STR_EMPTY);
    if (code == 0 && !found && may_make) {
        code = keyring_make(k, name, err);
        found = keyring_entry(k, name, STR_EMPTY);
    }
    if (code == 0 && found)
        *out = found->key;
    else if (code == 0)
        code = err_set(err, ERR_NOT_FOUND, "there is no key " STR_FMT, STR_ARG(name));
    mutex_unlock(&k->lock);
    return code;
}

int keyring_find(struct keyring *k, struct str name, struct str id, bool may_wait,
                 struct ring_key *out, struct err *err)
{
    struct entry *found;
    int code = 0;

    mutex_lock(&k->lock);
    found = keyring_entry(k, name, id);
    if (!found && may_wait) {
        code = keyring_refresh(k, err);
        found = keyring_entry(k, name, id);
    }
    if (found)
        *out = found->key;
    else if (!may_wait)
        code = ERR_AGAIN;
    else if (code == 0)
        code = err_set(err, ERR_CORRUPT, "the key " STR_FMT " with the id " STR_FMT " is not in %s",
                       STR_ARG(name), STR_ARG(id), k->path);
    mutex_unlock(&k->lock);
    return code;
}
