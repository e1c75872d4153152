/* Writes configDB into a sealed file, and reads such a file.
 *
 * The file is the line HEAD, followed by a sealed text. The text begins with one line each for the
 * installation, the count of changes and the time; then follow the commands. A command is the
 * number of its words as "<words> ", then each word as "<bytes>:" and its bytes. */
#include "route/config_copy.h"
#include "base/clock.h"
#include "base/ids.h"
#include "os/file.h"

#include <stdlib.h>

/* WORDS_MAX: most arguments of a command. PAGE: number of keys that are read in one round trip. */
enum { WORDS_MAX = 400, PAGE = 200 };
#define PLAIN_MAX (512 * MIB)

static const struct str HEAD = {"weir sealed configuration 1\n", 28};
static const struct str OWNER = {"config.sealed", 13};

/* --- reading the database --- */

struct kind {
    const char *type;
    /* Words of the command that reads a key, ended by NULL; the key is inserted after the first
     * word. */
    const char *read[4];
    const char *write;
    bool swap; /* the store answers member and score, but ZADD wants score and member */
};
static const struct kind kinds[] = {
    {"string", {"GET"}, "SET", false},
    {"hash", {"HGETALL"}, "HSET", false},
    {"set", {"SMEMBERS"}, "SADD", false},
    {"zset", {"ZRANGE", "0", "-1", "WITHSCORES"}, "ZADD", true},
    {"list", {"LRANGE", "0", "-1"}, "RPUSH", false},
};

static void write_word(struct buf *out, struct str word)
{
    buf_appendf(out, "%zu:", word.len);
    buf_append_str(out, word);
}

static void copy_write_command(struct buf *out, const struct kind *k, struct str key,
                               const struct reply *items, size_t count)
{
    buf_appendf(out, "%zu ", 2 + count);
    write_word(out, str_z(k->write));
    write_word(out, key);
    for (size_t i = 0; i < count; i++)
        write_word(out, items[k->swap ? i ^ 1 : i].str);
}

static int copy_write_key(struct buf *out, const struct kind *k, struct str key,
                          const struct reply *r, struct err *err)
{
    if (r->type == REPLY_BULK) {
        copy_write_command(out, k, key, r, 1);
        return 0;
    }
    int code = r->type == REPLY_NIL ? 0 : reply_expect(r, REPLY_ARRAY, err);
    if (code == 0 && r->count && str_eq(str_z(k->write), STR("RPUSH"))) {
        buf_append_z(out, "2 ");
        write_word(out, STR("DEL"));
        write_word(out, key);
    }
    for (size_t i = 0; code == 0 && i < r->count; i += WORDS_MAX)
        copy_write_command(out, k, key, r->items + i, size_min(WORDS_MAX, r->count - i));
    return code;
}

/* Returns whether the copy includes the key. Keys that begin with "w:" are left out, because most
 * of them hold what processes report about themselves. The four keys below are configuration and
 * are included: they say which folder owns which storage name, and which places hold copies of
 * buckets. */
static bool is_wanted(struct str key)
{
    static const struct str kept[] = {STR("w:storages"), STR("w:copies"), STR("w:pins"),
                                      STR("w:pinned")};

    for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
        if (str_eq(key, kept[i]))
            return true;
    return !str_starts(key, STR("w:"));
}

static const struct kind *kind_of(const struct reply *type)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (str_eq(type->str, str_z(kinds[i].type)))
            return &kinds[i];
    return NULL;
}

/* A page of keys. The kind of a key is NULL when the key no longer exists or is left out. */
struct page {
    struct str keys[PAGE];
    const struct kind *kinds[PAGE];
    struct store_args commands[PAGE];
    struct str words[PAGE][5];
    size_t count;
};

static int read_types(struct store *s, struct arena *a, struct page *p, struct err *err)
{
    struct reply *reply = NULL;

    for (size_t i = 0; i < p->count; i++) {
        p->words[i][0] = STR("TYPE");
        p->words[i][1] = p->keys[i];
        p->commands[i] = (struct store_args){p->words[i], 2};
    }
    int code = store_pipeline(s, a, &reply, p->commands, p->count, err);
    size_t kept = 0;
    for (size_t i = 0; code == 0 && i < p->count; i++) {
        p->keys[kept] = p->keys[i];
        p->kinds[kept] = kind_of(&reply->items[i]);
        kept += p->kinds[kept] != NULL;
    }
    p->count = kept;
    return code;
}

static int copy_read_page(struct store *s, struct arena *a, struct page *p, struct buf *out,
                          struct err *err)
{
    struct reply *reply = NULL;
    int code = p->count ? read_types(s, a, p, err) : 0;

    for (size_t i = 0; code == 0 && i < p->count; i++) {
        size_t argc = 0;
        p->words[i][argc++] = str_z(p->kinds[i]->read[0]);
        p->words[i][argc++] = p->keys[i];
        for (size_t k = 1; k < ARRAY_SIZE(p->kinds[i]->read) && p->kinds[i]->read[k]; k++)
            p->words[i][argc++] = str_z(p->kinds[i]->read[k]);
        p->commands[i] = (struct store_args){p->words[i], argc};
    }
    if (code == 0 && p->count)
        code = store_pipeline(s, a, &reply, p->commands, p->count, err);
    for (size_t i = 0; code == 0 && i < p->count; i++)
        code = copy_write_key(out, p->kinds[i], p->keys[i], &reply->items[i], err);
    p->count = 0;
    return code;
}

static int copy_read_keys(struct store *s, const struct reply *keys, struct buf *out,
                          struct err *err)
{
    struct page *p = xcalloc(1, sizeof(*p));
    struct arena a = {0};
    int code = 0;

    for (size_t i = 0; code == 0 && i < keys->count; i++) {
        if (is_wanted(keys->items[i].str))
            p->keys[p->count++] = keys->items[i].str;
        if (p->count == PAGE)
            code = copy_read_page(s, &a, p, out, err);
    }
    if (code == 0)
        code = copy_read_page(s, &a, p, out, err);
    arena_release(&a);
    free(p);
    return code;
}

struct copying {
    struct store *store;
    struct buf *out;
};

static int copy_page(void *ctx, const struct reply *keys, struct arena *a, struct err *err)
{
    const struct copying *c = ctx;

    (void)a;
    return copy_read_keys(c->store, keys, c->out, err);
}

/* Appends the commands for all keys. SCAN may give a key twice. Writing its commands twice does no
 * harm, because the commands of a list first remove the list. */
static int copy_read_all(struct store *s, struct buf *out, struct err *err)
{
    int code = store_scan(s, STR("*"), copy_page, &(struct copying){s, out}, err);

    return code == 0 ? buf_error(out) : code;
}

static void wipe(struct buf *plain)
{
    if (plain->p)
        secure_zero(plain->p, plain->cap);
    buf_release(plain);
}

int config_copy_write(struct store *config, const struct seal_key *key, const char *path,
                      struct config_copy *head, struct err *err)
{
    struct buf plain = BUF_INIT(PLAIN_MAX), file = BUF_INIT(PLAIN_MAX + KIB);

    head->time_ms = clock_wall_ms();
    buf_appendf(&plain, STR_FMT "\n%llu\n%lld\n", STR_ARG(head->installation),
                (unsigned long long)head->count, (long long)head->time_ms);
    int code = copy_read_all(config, &plain, err);
    if (code == 0)
        code = store_is_known(config, err);
    if (code == 0) {
        buf_append_str(&file, HEAD);
        seal_whole(key, OWNER, buf_str(&plain), &file);
        code = buf_error(&file);
    }
    if (code == 0)
        code = file_write_durable(path, buf_str(&file), 0600, err);
    wipe(&plain);
    buf_release(&file);
    return code;
}

/* --- reading the file --- */

/* Reads a number that ends with the character `end`, and advances *rest past that character. */
static bool copy_take_number(struct str *rest, char end, uint64_t *out)
{
    struct str word;

    return str_cut(*rest, end, &word, rest) && str_u64(word, out) == 0;
}

static bool copy_take_word(struct str *rest, struct str *out)
{
    uint64_t len = 0;

    if (!copy_take_number(rest, ':', &len) || len > rest->len)
        return false;
    *out = str_head(*rest, (size_t)len);
    *rest = str_skip(*rest, (size_t)len);
    return true;
}

static bool take_command(struct str *rest, struct arena *a, struct store_args *out)
{
    uint64_t words = 0;

    if (!copy_take_number(rest, ' ', &words) || words < 2 || words > WORDS_MAX + 2)
        return false;
    struct str *argv = arena_array(a, (size_t)words, sizeof(*argv));
    for (size_t i = 0; argv && i < words; i++)
        if (!copy_take_word(rest, &argv[i]))
            return false;
    *out = (struct store_args){argv, (size_t)words};
    return argv;
}

static bool copy_take_all(struct config_copy *out, struct arena *a, struct str rest)
{
    uint64_t time_ms = 0;
    size_t room = 0;

    if (!str_cut(rest, '\n', &out->installation, &rest) ||
        !copy_take_number(&rest, '\n', &out->count) || !copy_take_number(&rest, '\n', &time_ms))
        return false;
    out->time_ms = (int64_t)time_ms;
    while (rest.len) {
        if (out->command_count == room) {
            struct store_args *more = arena_array(a, room ? 2 * room : PAGE, sizeof(*more));
            if (!more)
                return false;
            if (room)
                memcpy(more, out->commands, room * sizeof(*more));
            out->commands = more;
            room = room ? 2 * room : PAGE;
        }
        if (!take_command(&rest, a, &out->commands[out->command_count]))
            return false;
        out->command_count++;
    }
    return true;
}

int config_copy_read(struct config_copy *out, struct arena *a, const struct seal_key *key,
                     const char *path, struct err *err)
{
    struct buf file = BUF_INIT(PLAIN_MAX + KIB), plain = BUF_INIT(PLAIN_MAX);
    int code = file_read(path, &file, err);

    *out = (struct config_copy){0};
    if (code == 0 && !str_starts(buf_str(&file), HEAD))
        code = err_set(err, ERR_CORRUPT, "%s is not a copy of the configuration", path);
    if (code == 0 && unseal_whole(key, OWNER, str_skip(buf_str(&file), HEAD.len), &plain) < 0)
        code = err_set(err, ERR_CORRUPT,
                       "%s is damaged, or not sealed with this weir's secrets.key", path);
    if (code == 0 && !copy_take_all(out, a, arena_str(a, buf_str(&plain))))
        code = arena_error(a) < 0
                   ? err_code(err, ERR_NO_MEMORY)
                   : err_set(err, ERR_CORRUPT, "%s is not a copy of the configuration", path);
    wipe(&plain);
    buf_release(&file);
    return code;
}
