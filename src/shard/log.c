/* The log of a bucket's maps. */
#include "shard/log.h"
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

enum {
    LOG_KEY_LEN = 4 + 19, /* "map/" and the digits */
    LOG_HEAD_TRIES = 10,  /* tries, because a map that was listed may be pruned before it is read */
    LOG_PAUSE_MS = 10,    /* pause before the second try of a commit; it doubles with each try */
    LOG_PAUSE_MAX_MS = 1000,
};

#define LOG_PREFIX STR("map/")
#define LOG_LAST   UINT64_C(9999999999999999999) /* 10^19 - 1 */

/* --- keys --- */

static struct str log_key(char out[LOG_KEY_LEN + 1], uint64_t number)
{
    snprintf(out, LOG_KEY_LEN + 1, "map/%019llu", (unsigned long long)(LOG_LAST - number));
    return str_n(out, LOG_KEY_LEN);
}

static int log_key_parse(struct str key, uint64_t *number, struct err *err)
{
    uint64_t rest;

    if (key.len != LOG_KEY_LEN || !str_starts(key, LOG_PREFIX) ||
        str_u64(str_skip(key, LOG_PREFIX.len), &rest) < 0 || rest > LOG_LAST)
        return err_set(err, ERR_CORRUPT, "'" STR_FMT "' in the map bucket is not the key of a map",
                       STR_ARG(key));
    *number = LOG_LAST - rest;
    return 0;
}

/* --- reading --- */

int log_newest(struct bucket *b, uint64_t *number, struct err *err)
{
    struct arena a = {0};
    struct list_options o = {.prefix = LOG_PREFIX, .limit = 1};
    struct list_result page = {0};
    int code = b->ops->list(b, &a, &o, &page, err);

    if (code == 0 && page.count == 0)
        code = err_set(err, ERR_NOT_FOUND, "the map bucket has no map");
    if (code == 0)
        code = log_key_parse(page.entries[0].info.key, number, err);
    arena_release(&a);
    return code;
}

static int log_read(struct bucket *b, uint64_t number, struct buf *out, struct err *err)
{
    struct arena a = {0};
    struct get_result got = {0};
    char key[LOG_KEY_LEN + 1];
    int code = b->ops->get(b, &a, log_key(key, number), STR_EMPTY, NULL, NULL, &got, err);

    if (code == 0) {
        code = reader_read_all(got.body, out, err);
        reader_close(got.body);
    }
    arena_release(&a);
    return code;
}

static int log_read_newest(struct bucket *b, struct shard_map **out, struct err *err)
{
    struct buf text = BUF_INIT(SHARD_MAP_MAX);
    struct shard_map *m = NULL;
    uint64_t number;
    int code = log_newest(b, &number, err);

    if (code == 0) {
        code = log_read(b, number, &text, err);
        if (code == ERR_NOT_FOUND)
            code = ERR_AGAIN; /* newer maps were made, and this one was removed */
    }
    if (code == 0)
        code = map_parse(&m, buf_str(&text), err);
    buf_release(&text);
    if (code == 0 && m->number != number) {
        map_unref(m);
        return err_set(err, ERR_CORRUPT, "map %llu has the number %llu in its text",
                       (unsigned long long)number, (unsigned long long)m->number);
    }
    if (code == 0)
        *out = m;
    return code;
}

int log_head(struct bucket *b, struct shard_map **out, struct err *err)
{
    int code = ERR_AGAIN;

    for (int try = 0; try < LOG_HEAD_TRIES && code == ERR_AGAIN; try++)
        code = log_read_newest(b, out, err);
    if (code == ERR_AGAIN)
        return err_set(err, ERR_BUSY, "the newest map cannot be read: it is listed, but not there");
    return code;
}

int log_is_head(struct bucket *b, uint64_t number, bool *out, struct err *err)
{
    uint64_t newest = 0;
    int code = log_newest(b, &newest, err);

    if (code < 0 && code != ERR_NOT_FOUND)
        return code;
    *out = code == 0 && newest == number;
    return 0;
}

/* --- committing --- */

/* One commit. The map is written again and again until the outcome is certain. */
struct log_commit {
    struct bucket *b;
    const struct shard_map *map;
    struct buf text;
    bool unknown; /* a try got no answer: it may have written the map, or may still do so */
};

static int log_put(struct log_commit *c, struct err *err)
{
    struct http_header type = {STR("Content-Type"), STR("application/json")};
    struct put_options o = {
        .meta = {.headers = &type, .header_count = 1, .owner = c->map->owner},
        .conditions.if_none_match = STR("*"),
    };
    struct arena a = {0};
    struct put_result result = {0};
    struct str_reader body;
    char key[LOG_KEY_LEN + 1];

    str_reader_init(&body, buf_str(&c->text));
    int code = c->b->ops->put(c->b, &a, log_key(key, c->map->number), &body.reader, c->text.len, &o,
                              &result, err);
    arena_release(&a);
    return code;
}

/* Reads the map with this number, to find out which writer made it. ERR_AGAIN: this is not known
 * yet. */
static int log_look(struct log_commit *c, struct err *err)
{
    struct buf there = BUF_INIT(SHARD_MAP_MAX);
    int code = log_read(c->b, c->map->number, &there, err);

    if (code == 0 && !str_eq(buf_str(&there), buf_str(&c->text)))
        code = err_set(err, ERR_CONFLICT, "another process has changed the map");
    else if (code < 0)
        code = ERR_AGAIN;
    buf_release(&there);
    return code;
}

/* Checks that the new map did not get the number of an old map that was pruned. In that case the
 * log has many newer maps. ERR_AGAIN: the map is not listed yet, or the listing failed. */
static int log_confirm(struct log_commit *c, struct err *err)
{
    uint64_t newest = 0;
    int code = log_newest(c->b, &newest, err);

    if (code < 0 || newest < c->map->number)
        return ERR_AGAIN;
    if (newest - c->map->number >= LOG_KEPT)
        return err_set(err, ERR_TIMEOUT, "other processes have made many newer maps");
    return 0;
}

/* Whether the error says for certain that this try wrote nothing and that another try would write
 * nothing either. */
static bool log_is_refusal(int code)
{
    return err_kind(code) == ERR_KIND_EXPECTED || code == ERR_NO_SPACE || code == ERR_NO_MEMORY;
}

/* One try. ERR_AGAIN: the outcome is not known, and another try may find it out. */
static int log_try(struct log_commit *c, struct err *err)
{
    int code = log_put(c, err);

    if (code == ERR_PRECONDITION || code == ERR_EXISTS) {
        code = log_look(c, err);
    } else if (code == ERR_CONFLICT) { /* another writer writes this number just now */
        code = ERR_AGAIN;
    } else if (code < 0) {
        bool refused = log_is_refusal(code) && code != ERR_AGAIN;
        if (refused && !c->unknown)
            return code;
        c->unknown = true;
        return code == ERR_SHUTDOWN || refused ? ERR_TIMEOUT : ERR_AGAIN;
    }
    return code == 0 ? log_confirm(c, err) : code;
}

/* Sleeps, but not past the deadline. */
static void log_pause(uint64_t ms, uint64_t deadline_ns)
{
    uint64_t now = clock_mono_ns(), ns = ms * NS_PER_MS;

    if (now >= deadline_ns)
        return;
    if (ns > deadline_ns - now)
        ns = deadline_ns - now;
    nanosleep(
        &(struct timespec){.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)},
        NULL);
}

int log_commit(struct bucket *b, const struct shard_map *m, uint64_t deadline_ns, struct err *err)
{
    struct log_commit c = {.b = b, .map = m, .text = BUF_INIT(SHARD_MAP_MAX)};
    uint64_t pause_ms = LOG_PAUSE_MS;

    map_write(m, &c.text);
    int code = buf_error(&c.text);
    if (code < 0) {
        buf_release(&c.text);
        return err_set(err, code, "the map of the bucket is too large");
    }
    while ((code = log_try(&c, err)) == ERR_AGAIN && clock_mono_ns() < deadline_ns) {
        log_pause(pause_ms, deadline_ns);
        pause_ms = size_min(pause_ms * 2, LOG_PAUSE_MAX_MS);
    }
    if (code == ERR_AGAIN || code == ERR_TIMEOUT)
        code = err_wrap(err, ERR_TIMEOUT, "whether map %llu was written is not known",
                        (unsigned long long)m->number);
    buf_release(&c.text);
    return code;
}

/* --- damage --- */

static int log_sort_out(struct bucket *b, struct arena *a, struct str key, uint64_t *number,
                        struct err *err)
{
    struct remove_options remove = {0};
    struct remove_result removed;
    struct err ignored;
    uint64_t n = 0;

    if (log_key_parse(key, &n, &ignored) < 0 || n >= INT64_MAX)
        return b->ops->remove(b, a, key, &remove, &removed, err);
    if (n > *number)
        *number = n;
    return 0;
}

int log_make_room(struct bucket *b, uint64_t *number, struct err *err)
{
    struct arena page = ARENA_INIT(0), keep = ARENA_INIT(0);
    struct list_options o = {.limit = OBJECT_LIST_MAX};
    struct list_result found = {.more = true};
    int code = 0;

    *number = 0;
    while (code == 0 && found.more) {
        arena_reset(&page);
        code = b->ops->list(b, &page, &o, &found, err);
        for (size_t i = 0; i < found.count && code == 0; i++)
            code = log_sort_out(b, &page, found.entries[i].info.key, number, err);
        if (code == 0 && found.count)
            o.after = arena_str(&keep, found.entries[found.count - 1].info.key);
    }
    if (code == 0)
        code = arena_error(&keep);
    arena_release(&page);
    arena_release(&keep);
    return code;
}

/* --- pruning --- */

/* Removes one page of maps, beginning after the key `after`. */
static int log_prune_page(struct bucket *b, struct str after, bool *more, struct err *err)
{
    struct arena a = {0};
    struct list_options o = {.prefix = LOG_PREFIX, .after = after, .limit = OBJECT_LIST_MAX};
    struct remove_options remove = {0};
    struct remove_result removed;
    struct list_result page = {0};
    int code = b->ops->list(b, &a, &o, &page, err);

    for (size_t i = 0; i < page.count && code == 0; i++)
        code = b->ops->remove(b, &a, page.entries[i].info.key, &remove, &removed, err);
    *more = page.more;
    arena_release(&a);
    return code;
}

int log_prune(struct bucket *b, uint64_t newest, struct err *err)
{
    char key[LOG_KEY_LEN + 1];
    bool more = newest >= LOG_KEPT;
    int code = 0;

    while (more && code == 0) /* maps with smaller numbers have greater keys */
        code = log_prune_page(b, log_key(key, newest - LOG_KEPT + 1), &more, err);
    return code;
}
