/* The tables of slots on one satellite: objects `_map/<epoch>.json` in the bucket of github.com. */
#include "archive/satellites_int.h"

#define MAP_FOLDER "_map/"
#define MAP_SUFFIX ".json"

enum { MAP_ARENA_MAX = 8 * 1024 * 1024 };

static struct str map_key(struct arena *a, uint32_t epoch)
{
    return arena_fmt(a, MAP_FOLDER "%u" MAP_SUFFIX, epoch);
}

/* The epoch in a key; 0: the key is not that of a table. */
static uint32_t map_epoch(struct str key)
{
    uint64_t epoch = 0;

    if (!str_starts(key, STR(MAP_FOLDER)) || !str_ends(key, STR(MAP_SUFFIX)))
        return 0;
    size_t taken = sizeof(MAP_FOLDER) - 1 + sizeof(MAP_SUFFIX) - 1;
    if (key.len <= taken)
        return 0;
    struct str number = str_n(key.p + sizeof(MAP_FOLDER) - 1, key.len - taken);
    if (number.p[0] == '0' || str_u64(number, &epoch) < 0 || epoch > UINT32_MAX)
        return 0;
    return (uint32_t)epoch;
}

static int map_site(struct satellite_site *out, struct satellites *s, struct arena *a,
                    struct str name, struct err *err)
{
    struct str bucket;
    int code = satellites_bucket(s, a, SATELLITES_MAP_HOST, &bucket, err);

    return code < 0 ? code : satellite_site_find(out, s, a, name, bucket, err);
}

/* --- listing --- */

/* The epochs of the tables on a satellite. */
struct map_list {
    uint32_t *epochs; /* in the arena */
    size_t count;
    uint32_t newest; /* 0: there are none */
};

static int map_list_page(struct map_list *m, struct object_place *p, struct list_options *o,
                         bool *more, struct err *err)
{
    struct list_result page = {0};
    int code = p->bucket->ops->list(p->bucket, p->arena, o, &page, err);

    for (size_t i = 0; i < page.count && code == 0 && m->count < SATELLITES_MAPS_MAX; i++) {
        uint32_t epoch = map_epoch(page.entries[i].info.key);
        if (epoch == 0)
            continue;
        m->epochs[m->count++] = epoch;
        m->newest = epoch > m->newest ? epoch : m->newest;
    }
    *more = page.more;
    o->after = page.next;
    if (code == 0 && *more && m->count == SATELLITES_MAPS_MAX)
        code = err_set(err, ERR_TOO_LARGE, "there are more than %d tables of slots",
                       SATELLITES_MAPS_MAX);
    return code;
}

static int map_list_read(struct map_list *m, struct satellites *s, struct arena *a,
                         const struct satellite_site *site, struct err *err)
{
    struct list_options o = {.prefix = STR(MAP_FOLDER), .limit = OBJECT_LIST_MAX};
    struct object_place p;
    bool more = true;

    *m = (struct map_list){.epochs = arena_alloc(a, SATELLITES_MAPS_MAX * sizeof(uint32_t))};
    if (!m->epochs)
        return err_code(err, ERR_NO_MEMORY);
    int code = satellite_site_open(&p, s, a, site, o.prefix, PLACE_READ, err);
    if (code < 0)
        return code == ERR_NO_BUCKET ? 0 : code;
    while (more && code == 0)
        code = map_list_page(m, &p, &o, &more, err);
    satellites_note(s, site->name, code);
    return object_place_end(&p, code, err);
}

/* --- reading --- */

static int map_read(struct satellites *s, struct arena *a, const struct satellite_site *site,
                    uint32_t epoch, struct slots *out, struct err *err)
{
    struct buf text = BUF_INIT(SLOTS_TEXT_MAX + 1);
    struct object_place p;
    int code = satellite_site_open(&p, s, a, site, map_key(a, epoch), PLACE_READ, err);

    if (code == 0)
        code = object_place_end(&p, object_place_read(&p, &text, NULL, err), err);
    if (code == 0)
        code = slots_read(out, buf_str(&text), err);
    if (code == 0 && out->epoch != epoch)
        code = err_set(err, ERR_CORRUPT, "the table of slots has the epoch %u", out->epoch);
    buf_release(&text);
    return code < 0 ? err_wrap(err, code, "_map/%u.json on satellite " STR_FMT, epoch,
                               STR_ARG(site->name))
                    : 0;
}

int satellite_map_newest(struct satellites *s, struct str name, struct slots *out, struct err *err)
{
    struct arena a = ARENA_INIT(MAP_ARENA_MAX);
    struct satellite_site site;
    struct map_list list = {0};
    int code = map_site(&site, s, &a, name, err);

    *out = (struct slots){0};
    if (code == 0)
        code = map_list_read(&list, s, &a, &site, err);
    if (code == 0 && list.newest)
        code = map_read(s, &a, &site, list.newest, out, err);
    arena_release(&a);
    return code;
}

bool slots_same(const struct slots *a, const struct slots *b)
{
    struct buf left = {0}, right = {0};

    slots_write(&left, a);
    slots_write(&right, b);
    bool same = str_eq(buf_str(&left), buf_str(&right));
    buf_release(&left);
    buf_release(&right);
    return same;
}

/* --- writing --- */

/* Compares the stored table with the table that was to be created. */
static int map_compare(struct satellites *s, struct arena *a, const struct satellite_site *site,
                       const struct slots *t, struct err *err)
{
    struct slots there;
    int code = map_read(s, a, site, t->epoch, &there, err);

    return code == 0 && !slots_same(&there, t)
               ? err_set(err, ERR_EXISTS, "satellite " STR_FMT " has another table of epoch %u",
                         STR_ARG(site->name), t->epoch)
               : code;
}

int satellite_map_put(struct satellites *s, struct str name, const struct slots *t, bool *made,
                      struct err *err)
{
    struct arena a = ARENA_INIT(MAP_ARENA_MAX);
    struct object_conditions absent = {.if_none_match = STR("*")};
    struct buf text = {0};
    struct satellite_site site = {0};
    struct object_place p;
    int found = map_site(&site, s, &a, name, err), code = found;

    slots_write(&text, t);
    if (code == 0)
        code = satellite_site_open_put(&p, s, &a, &site, map_key(&a, t->epoch), err);
    if (code == 0)
        code = object_place_end(&p, object_place_put(&p, buf_str(&text), &absent, err), err);
    bool is_new = code == 0;
    /* After a broken connection it is not known whether the table was stored. So it is read. */
    if (found == 0 && code < 0 && code != ERR_NO_SPACE) {
        struct err seen = {0};
        int compared = map_compare(s, &a, &site, t, &seen);
        if (compared == 0 || compared == ERR_EXISTS)
            code = compared < 0 ? err_set(err, compared, "%s", seen.text) : 0;
    }
    if (made)
        *made = is_new;
    buf_release(&text);
    arena_release(&a);
    return code;
}

static int map_remove(struct satellites *s, struct arena *a, const struct satellite_site *site,
                      uint32_t epoch, struct err *err)
{
    struct remove_result result;
    struct object_place p;
    int code = satellite_site_open(&p, s, a, site, map_key(a, epoch), PLACE_REMOVE, err);

    if (code < 0)
        return code;
    code = object_place_may(&p, err);
    if (code == 0)
        code = p.bucket->ops->remove(p.bucket, a, p.key, &(struct remove_options){0}, &result, err);
    return object_place_end(&p, code, err);
}

void satellite_map_prune(struct satellites *s, struct str name, uint32_t epoch)
{
    struct arena a = ARENA_INIT(MAP_ARENA_MAX);
    struct satellite_site site;
    struct map_list list = {0};
    struct err err = {0};
    int code = map_site(&site, s, &a, name, &err);

    if (code == 0)
        code = map_list_read(&list, s, &a, &site, &err);
    for (size_t i = 0; i < list.count && code == 0; i++)
        if (list.epochs[i] + SATELLITES_KEEP < epoch)
            code = map_remove(s, &a, &site, list.epochs[i], &err);
    if (code < 0)
        log_warn(s->o.log, "archive.table_prune", log_s("satellite", name),
                 log_z("error", err.text));
    arena_release(&a);
}
