/* Compares merged listings with a model: what each side has, and which side a read of each key goes
 * to. */
#include "replica/switch/side_list.h"
#include "base/vec.h"
#include "object/local/local.h"
#include "unit/object/bucket_conformance.h"
#include "unit/server_db.h"

#include <stdio.h>

enum { STEPS = 60 };

static const char *const keys[] = {
    "a",    "a/",   "a/1",   "a/2",     "a/b/1",       "a/b/2",       "a0",         "b",
    "b/1",  "b/2/", "b/2/x", "c/1",     "c/2",         "c:d",         "c%d",        "d//1",
    "d//2", "d/",   "e",     "e/e/e/e", "f\xc3\xbf/1", "f\xc3\xbf/2", "f\xc3\xbfg", "g/1",
    "g/2",  "g/3",  "h",     "i/j/k/1", "i/j/l/2"};
static const char *const names[SIDES] = {"new", "old"};

struct sides_lab {
    struct db *db;
    struct store *app;
    struct storage *storages[SIDES];
    struct side_list m;
    struct arena a;
    unsigned random;
    bool versions;
};

static unsigned any_of(struct sides_lab *l, unsigned below)
{
    l->random = l->random * 1103515245 + 12345;
    return (l->random >> 16) % below;
}

static void sides_lab_open(struct sides_lab *l, unsigned seed, bool versions)
{
    struct err err = {0};

    *l = (struct sides_lab){.a = ARENA_INIT(0), .random = seed, .versions = versions};
    CHECK_OK(server_db_open(&l->db, test_dir(), &err));
    CHECK_OK(store_open_embedded(&l->app, l->db, 0, STORE_DURABLE, NULL, &err));
    for (int side = 0; side < SIDES; side++) {
        char folder[256];
        struct local_options o = {.name = names[side],
                                  .folder = folder,
                                  .db = l->db,
                                  .id = (uint32_t)side + 1,
                                  .reserve_bytes = 1};
        snprintf(folder, sizeof(folder), "%s/%s", test_dir(), names[side]);
        CHECK_OK(local_open(&l->storages[side], &o, &err));
        l->m.sides[side] = lab_bucket(l->storages[side], "box");
        l->m.storages[side] = str_z(names[side]);
        if (versions)
            CHECK_OK(l->m.sides[side]->ops->set_versions(l->m.sides[side], true, &err));
    }
    l->m.app = l->app;
    l->m.bucket = STR("box");
}

static void sides_lab_close(struct sides_lab *l)
{
    for (int side = 0; side < SIDES; side++) {
        l->m.sides[side]->ops->unref(l->m.sides[side]);
        l->storages[side]->ops->close(l->storages[side]);
    }
    store_close(l->app);
    db_close(l->db);
    arena_release(&l->a);
}

/* --- changes --- */

static void bump(struct sides_lab *l, const char *key, enum side side)
{
    struct thing t = {THING_OBJECT, STR("box"), str_z(key), STR_EMPTY};
    struct err err = {0};

    CHECK_OK(version_bump(l->app, &t, &(struct place){.storage = str_z(names[side])}, NULL, &err));
}

static void put(struct sides_lab *l, const char *key, enum side side, const char *body)
{
    lab_put(l->m.sides[side], &l->a, key, str_z(body));
}

static void take(struct sides_lab *l, const char *key, enum side side)
{
    lab_remove(l->m.sides[side], &l->a, key, STR_EMPTY);
}

/* Does what a worker does: brings the other side's state over and confirms it. */
static void bring(struct sides_lab *l, const char *key, const char *body)
{
    struct thing t = {THING_OBJECT, STR("box"), str_z(key), STR_EMPTY};
    struct place from = {.storage = str_z(names[SIDE_OTHER])},
                 to = {.storage = str_z(names[SIDE_ROUTE])};
    int64_t number = 0;
    struct version_confirmation c = {
        .things = &t, .numbers = &number, .count = 1, .source = &from, .destination = &to};
    struct arena a = ARENA_INIT(0);
    struct vector v;
    struct err err = {0};

    CHECK_OK(version_read(l->app, &a, &t, &v, &err));
    if (vector_at(&v, &from) > vector_at(&v, &to)) {
        number = vector_at(&v, &from);
        if (body)
            put(l, key, SIDE_ROUTE, body);
        else
            take(l, key, SIDE_ROUTE);
        CHECK_OK(version_confirm(l->app, &c, &err));
    }
    arena_release(&a);
}

static void change(struct sides_lab *l)
{
    const char *key = keys[any_of(l, ARRAY_SIZE(keys))];
    enum side side = any_of(l, SIDES);
    char body[16];

    snprintf(body, sizeof(body), "%u", any_of(l, 100000));
    switch (any_of(l, 7)) {
    case 0: /* from before the switch: alike, and no vector */
        put(l, key, SIDE_ROUTE, body);
        put(l, key, SIDE_OTHER, body);
        break;
    case 1:
        put(l, key, side, body); /* no vector says so */
        break;
    case 2:
    case 3:
        put(l, key, side, body);
        bump(l, key, side);
        break;
    case 4:
    case 5:
        take(l, key, side);
        bump(l, key, side);
        break;
    default:
        bring(l, key, any_of(l, 2) ? body : NULL);
    }
}

/* --- the model --- */

typedef VEC(struct list_entry) entry_vec;

static void list_side(struct sides_lab *l, enum side side, struct list_result *out)
{
    struct bucket *b = l->m.sides[side];
    struct list_options o = {.limit = OBJECT_LIST_MAX};
    struct err err = {0};

    CHECK_OK(l->versions ? b->ops->list_versions(b, &l->a, &o, out, &err)
                         : b->ops->list(b, &l->a, &o, out, &err));
    CHECK(!out->more);
}

static bool has_key(const struct list_result *r, struct str key)
{
    for (size_t i = 0; i < r->count; i++)
        if (str_eq(r->entries[i].info.key, key))
            return true;
    return false;
}

static enum side side_of_key(struct sides_lab *l, const struct list_result *sides, struct str key)
{
    struct buf b = {0};
    int64_t numbers[SIDES] = {0};
    bool any = false;

    buf_append_z(&b, "box:");
    store_key_part(&b, key);
    for (int side = 0; side < SIDES; side++) {
        struct reply *reply;
        struct err err = {0};
        CHECK_OK(
            store_call(l->app, &l->a, &reply, &err, STR("HGET"), buf_str(&b), str_z(names[side])));
        if (!reply_is_nil(reply)) {
            any = true;
            CHECK_INT(str_i64(reply->str, &numbers[side]), 0);
        }
    }
    buf_release(&b);
    if (any)
        return numbers[SIDE_OTHER] > numbers[SIDE_ROUTE] ? SIDE_OTHER : SIDE_ROUTE;
    return has_key(&sides[SIDE_ROUTE], key) || l->m.route_only ? SIDE_ROUTE : SIDE_OTHER;
}

/* Finds all keys that can be seen, in order. */
static void find_visible(struct sides_lab *l, entry_vec *out)
{
    struct list_result sides[SIDES];
    size_t at[SIDES] = {0};

    for (int side = 0; side < SIDES; side++)
        list_side(l, side, &sides[side]);
    while (at[0] < sides[0].count || at[1] < sides[1].count) {
        struct str key = {0};
        for (int side = 0; side < SIDES; side++)
            if (at[side] < sides[side].count) {
                struct str k = sides[side].entries[at[side]].info.key;
                key = !key.p || str_cmp(k, key) < 0 ? k : key;
            }
        enum side wanted = side_of_key(l, sides, key);
        for (int side = 0; side < SIDES; side++)
            for (; at[side] < sides[side].count &&
                   str_eq(sides[side].entries[at[side]].info.key, key);
                 at[side]++)
                if (side == (int)wanted)
                    vec_push(out, sides[side].entries[at[side]]);
    }
}

/* Folds keys into common prefixes, from behind `after` on. */
static void fold(const entry_vec *all, const struct list_options *o, entry_vec *out)
{
    vec_each (all, const struct list_entry *, e) {
        struct str key = e->info.key;
        if (!str_starts(key, o->prefix) || (o->after.len && str_cmp(key, o->after) <= 0))
            continue;
        struct list_entry folded = *e;
        ptrdiff_t at = o->delimiter.len ? str_find(str_skip(key, o->prefix.len), o->delimiter) : -1;
        if (at >= 0)
            folded = (struct list_entry){
                .is_prefix = true,
                .info.key = str_head(key, o->prefix.len + (size_t)at + o->delimiter.len)};
        if (folded.is_prefix && str_eq(folded.info.key, o->after))
            continue;
        if (folded.is_prefix && out->len && vec_last(out)->is_prefix &&
            str_eq(vec_last(out)->info.key, folded.info.key))
            continue;
        vec_push(out, folded);
    }
}

static void check_entry(const struct list_entry *got, const struct list_entry *want)
{
    CHECK_STR(got->info.key, want->info.key);
    CHECK_INT(got->is_prefix, want->is_prefix);
    CHECK_STR(got->info.version, want->info.version);
    CHECK_STR(got->info.etag, want->info.etag);
    CHECK_INT(got->info.is_latest, want->info.is_latest);
    CHECK_INT(got->info.is_marker, want->info.is_marker);
    CHECK_INT(got->info.size, want->info.size);
    CHECK_STR(got->info.meta.owner, want->info.meta.owner);
}

/* Checks the listing page by page; each must be as full as it can be. */
static void check_listing(struct sides_lab *l, const entry_vec *all, struct list_options o)
{
    struct arena a = ARENA_INIT(0);
    entry_vec want = {0};
    struct list_result r;
    struct err err = {0};
    size_t at = 0;

    fold(all, &o, &want);
    do {
        CHECK_OK(side_list(&l->m, &a, &o, l->versions, &r, &err));
        CHECK_INT(r.count, size_min(o.limit, want.len - at));
        for (size_t i = 0; i < r.count; i++)
            check_entry(&r.entries[i], &want.items[at + i]);
        at += r.count;
        CHECK_INT(r.more, at < want.len);
        o.after = r.next;
        o.after_version = r.next_version;
    } while (r.more);
    CHECK_INT(at, want.len);
    vec_release(&want);
    arena_release(&a);
}

static void check_all(struct sides_lab *l)
{
    static const char *const prefixes[] = {"", "a", "a/", "a/b/", "f\xc3\xbf", "zz"};
    static const char *const delimiters[] = {"", "/", "//", "b"};
    static const char *const afters[] = {"", "a/1", "a/", "b", "d//", "f\xc3\xbf/1", "zz"};
    entry_vec all = {0};

    find_visible(l, &all);
    for (size_t p = 0; p < ARRAY_SIZE(prefixes); p++)
        for (size_t d = 0; d < ARRAY_SIZE(delimiters); d++)
            check_listing(
                l, &all,
                (struct list_options){.prefix = str_z(prefixes[p]),
                                      .delimiter = str_z(delimiters[d]),
                                      .after = str_z(afters[any_of(l, ARRAY_SIZE(afters))]),
                                      .limit = any_of(l, 3) ? 1 + any_of(l, 6) : OBJECT_LIST_MAX});
    vec_release(&all);
}

static void play(unsigned seed, bool versions)
{
    struct sides_lab l;

    sides_lab_open(&l, seed, versions);
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < 4; i++)
            change(&l);
        l.m.page = any_of(&l, 3) ? 1 + any_of(&l, 5) : 0;
        l.m.route_only = any_of(&l, 4) == 0;
        check_all(&l);
        arena_reset(&l.a);
    }
    sides_lab_close(&l);
}

TEST(side_list, objects_are_listed_as_the_model_has_them)
{
    play(1, false);
}

TEST(side_list, versions_are_listed_as_the_model_has_them)
{
    play(2, true);
}

TEST(side_list, a_prefix_whose_keys_are_all_hidden_is_not_listed)
{
    struct list_options o = {.delimiter = STR("/"), .limit = 10};
    struct sides_lab l;
    struct list_result r;
    struct err err = {0};

    sides_lab_open(&l, 1, false);
    put(&l, "p/1", SIDE_OTHER, "1"); /* removed on the new side */
    bump(&l, "p/1", SIDE_OTHER);
    bump(&l, "p/1", SIDE_ROUTE);
    put(&l, "p/2", SIDE_ROUTE, "2"); /* removed on the old side, not yet brought over */
    bump(&l, "p/2", SIDE_ROUTE);
    bump(&l, "p/2", SIDE_OTHER);
    CHECK_OK(side_list(&l.m, &l.a, &o, false, &r, &err));
    CHECK_INT(r.count, 0);
    CHECK(!r.more);
    sides_lab_close(&l);
}

/* --- uploads --- */

static void begin_upload(struct sides_lab *l, const char *key, enum side side)
{
    struct bucket *b = l->m.sides[side];
    struct object_meta meta = {.owner = STR("owner")};
    struct str id;
    struct err err = {0};

    CHECK_OK(b->ops->upload_begin(b, &l->a, str_z(key), &meta, &id, &err));
}

/* Counts all entries, page by page. */
static size_t count_uploads(struct sides_lab *l, const char *delimiter, size_t limit)
{
    struct list_options o = {.delimiter = str_z(delimiter), .limit = limit};
    struct upload_list r;
    struct str last_key = STR_EMPTY, last_id = STR_EMPTY;
    struct err err = {0};
    size_t count = 0;

    do {
        CHECK_OK(side_list_uploads(&l->m, &l->a, &o, &r, &err));
        CHECK(r.count + r.prefix_count == limit || !r.more);
        for (size_t i = 0; i < r.count; i++) {
            int order = str_cmp(last_key, r.uploads[i].key);
            CHECK(order < 0 || (order == 0 && str_cmp(last_id, r.uploads[i].id) < 0));
            last_key = r.uploads[i].key;
            last_id = r.uploads[i].id;
        }
        count += r.count + r.prefix_count;
        o.after = r.next_key;
        o.after_version = r.next_id;
    } while (r.more);
    return count;
}

TEST(side_list, uploads_of_both_sides_are_listed_once_each)
{
    struct sides_lab l;

    sides_lab_open(&l, 1, false);
    for (int i = 0; i < 3; i++) {
        begin_upload(&l, "a/1", SIDE_OTHER);
        begin_upload(&l, "a/1", SIDE_ROUTE);
        begin_upload(&l, "b", i % 2 ? SIDE_OTHER : SIDE_ROUTE);
    }
    begin_upload(&l, "c/1", SIDE_OTHER);
    begin_upload(&l, "d", SIDE_ROUTE);
    for (size_t limit = 1; limit < 14; limit++) {
        CHECK_INT(count_uploads(&l, "", limit), 11);
        CHECK_INT(count_uploads(&l, "/", limit), 6);
    }
    sides_lab_close(&l);
}
