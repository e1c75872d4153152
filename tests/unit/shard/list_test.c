/* Listings of a sharded bucket are those of a plain bucket with the same keys: page by page, with
 * random keys, boundaries and requests, and with garbage in the shards. SHARD_LISTINGS is the
 * number of requests that each kind of listing gets (4,000 if it is not set). */
#include "shard/list_int.h"
#include "unit/shard/sharded_lab.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    WORLDS = 10,
    LISTINGS = 4000,
    KEYS_MAX = 120,
    BOUNDS_MAX = 9,
    PIECES_MAX = 7,
    PAGES_MAX = 300,
};

/* Pieces of keys: bytes that sort next to one another, delimiters, and characters whose order as
 * bytes differs from that in UTF-16. */
static const char *const pieces[] = {
    "a", "b",  "b!", "/",  "/",  "//",           "!",
    " ", "\t", "\1", "ab", "/a", "\xef\xbf\xbf", "\xf0\x90\x80\x80"};
static const char *const delimiters[] = {"", "/", "/", "//", "a", "b!", "\xf0\x90\x80\x80", "/a/"};

enum kind { KIND_OBJECTS, KIND_VERSIONS, KIND_UPLOADS };

struct world {
    struct sharded_lab *lab;
    struct arena a;
    uint64_t state; /* of the random numbers */
    struct str bounds[BOUNDS_MAX];
    uint32_t places[BOUNDS_MAX + 1];
    struct shard_layout layout;
    struct str keys[KEYS_MAX];
    size_t count;
    struct bucket *plain, *sharded;
    struct sharded *s;
};

/* --- random things --- */

static size_t world_random(struct world *w, size_t below)
{
    w->state = w->state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(w->state >> 33) % below;
}

static struct str world_key(struct world *w)
{
    struct buf key = BUF_INIT(0);
    size_t count = 1 + world_random(w, PIECES_MAX);

    for (size_t i = 0; i < count; i++)
        buf_append_z(&key, pieces[world_random(w, ARRAY_SIZE(pieces))]);
    if (world_random(w, 25) == 0) {
        const char *piece = pieces[world_random(w, ARRAY_SIZE(pieces))];
        while (key.len + strlen(piece) <= OBJECT_KEY_MAX)
            buf_append_z(&key, piece);
    }
    struct str copy = arena_str(&w->a, buf_str(&key));
    buf_release(&key);
    return copy;
}

/* Returns a key, a part of one, or a common prefix, with something behind it at times. */
static struct str world_string(struct world *w)
{
    struct str key =
        w->count && world_random(w, 4) ? w->keys[world_random(w, w->count)] : world_key(w);
    const char *delimiter = delimiters[world_random(w, ARRAY_SIZE(delimiters))];
    ptrdiff_t at = str_find(key, str_z(delimiter));

    switch (world_random(w, 5)) {
    case 0:
        return key;
    case 1:
        return str_head(key, world_random(w, key.len + 1));
    case 2:
        return arena_fmt(&w->a, STR_FMT "%s", STR_ARG(str_head(key, OBJECT_KEY_MAX - 4)),
                         pieces[world_random(w, ARRAY_SIZE(pieces))]);
    default:
        return at < 0 ? key : str_head(key, (size_t)at + strlen(delimiter));
    }
}

/* --- a world: the same keys in a plain bucket and in a sharded one --- */

static int str_order(const void *one, const void *two)
{
    return str_cmp(*(const struct str *)one, *(const struct str *)two);
}

static void world_choose_layout(struct world *w)
{
    size_t wanted = world_random(w, BOUNDS_MAX + 1), kept = 0;
    bool shared = world_random(w, 2);

    for (size_t i = 0; i < wanted; i++)
        w->bounds[i] = str_head(world_string(w), OBJECT_KEY_MAX);
    qsort(w->bounds, wanted, sizeof(*w->bounds), str_order);
    for (size_t i = 0; i < wanted; i++)
        if (w->bounds[i].len && (!kept || !str_eq(w->bounds[kept - 1], w->bounds[i])))
            w->bounds[kept++] = w->bounds[i];
    for (size_t i = 0; i <= kept; i++)
        w->places[i] = shared ? (uint32_t)world_random(w, 3) : (uint32_t)i;
    w->layout = (struct shard_layout){w->bounds, kept, w->places};
    w->lab->home.layout = w->layout;
}

static void put_key(struct bucket *b, struct arena *a, struct str key, struct str body)
{
    struct str_reader r;
    struct put_options o = {0};
    struct put_result out = {0};
    struct err err = {0};

    str_reader_init(&r, body);
    CHECK_OK(b->ops->put(b, a, key, &r.reader, body.len, &o, &out, &err));
}

static void begin_upload(struct bucket *b, struct arena *a, struct str key)
{
    struct object_meta meta = {0};
    struct err err = {0};
    struct str id;

    CHECK_OK(b->ops->upload_begin(b, a, key, &meta, &id, &err));
}

static void remove_key(struct bucket *b, struct arena *a, struct str key)
{
    struct remove_options o = {0};
    struct remove_result out;
    struct err err = {0};

    CHECK_OK(b->ops->remove(b, a, key, &o, &out, &err));
}

/* Puts one key into both buckets: some as several versions, some with a marker, some as uploads
 * too. */
static void world_put(struct world *w, struct str key, bool versions)
{
    size_t puts = versions ? 1 + world_random(w, 3) : 1;
    bool removed = versions && world_random(w, 4) == 0;
    size_t uploads = world_random(w, 3);

    for (int side = 0; side < 2; side++) {
        struct bucket *b = side ? w->sharded : w->plain;
        for (size_t i = 0; i < puts; i++)
            put_key(b, &w->a, key, arena_fmt(&w->a, "%zu", i));
        if (removed)
            remove_key(b, &w->a, key);
        for (size_t i = 0; i < uploads; i++)
            begin_upload(b, &w->a, key);
    }
}

/* Returns a key for garbage: at times one of those that the bucket has, or one that has a common
 * prefix with a boundary. */
static struct str world_garbage(struct world *w)
{
    if (world_random(w, 3) == 0)
        return w->keys[world_random(w, w->count)];
    if (w->layout.count && world_random(w, 2)) {
        struct str bound = w->bounds[world_random(w, w->layout.count)];
        return arena_fmt(&w->a, STR_FMT "%s", STR_ARG(str_head(bound, OBJECT_KEY_MAX - 4)),
                         pieces[world_random(w, ARRAY_SIZE(pieces))]);
    }
    return world_key(w);
}

/* Puts keys into shards that do not own them, and says in the map that the shards are unclean
 * there. */
static void world_add_garbage(struct world *w, bool versions)
{
    struct shard_map *now = sharded_home_map(w->s), *next = map_draft(now);

    for (size_t i = 0; i < KEYS_MAX / 3; i++) {
        struct str key = world_garbage(w);
        const struct shard_place *p = &now->places[world_random(w, now->place_count)];
        if (map_place_at(now, map_segment_of(now, key)) == p)
            continue;
        struct bucket *shard = sharded_home_place(w->s, p->number);
        put_key(shard, &w->a, key, STR("garbage"));
        if (versions && world_random(w, 2))
            remove_key(shard, &w->a, key);
        begin_upload(shard, &w->a, key);
        shard->ops->unref(shard);
        struct shard_window unclean = map_window(now, map_segment_of(now, key));
        map_set_unclean(next, p->number, &unclean);
    }
    map_unref(now);
    sharded_home_install(w->s, next);
}

/* Opens a world in the lab; each seed may be used once in a lab. */
static void world_open(struct world *w, struct sharded_lab *lab, uint64_t seed, bool versions)
{
    struct bucket_info info = {.owner = STR("owner")};
    struct err err = {0};
    char plain[32];
    size_t count;

    *w = (struct world){.lab = lab, .state = seed * 2 + 1};
    w->a = ARENA_INIT(512 * MIB);
    count = 1 + world_random(w, KEYS_MAX);
    for (size_t i = 0; i < count; i++) {
        w->keys[i] = world_key(w);
        w->count = i + 1;
    }
    world_choose_layout(w);
    snprintf(plain, sizeof(plain), SHARDED_HOME_PLAIN "-%" PRIu64, seed);
    w->plain = lab_bucket(lab->lab.storage, plain);
    info.name = arena_fmt(&w->a, "box-%" PRIu64, seed);
    CHECK_OK(storage_create_bucket(lab->lab.storage, &info, &err));
    w->s = sharded_home_find(&lab->home, info.name);
    w->sharded = sharded_bucket(w->s);
    if (versions) {
        CHECK_OK(w->plain->ops->set_versions(w->plain, true, &err));
        CHECK_OK(w->sharded->ops->set_versions(w->sharded, true, &err));
    }
    for (size_t i = 0; i < count; i++)
        world_put(w, w->keys[i], versions);
}

static void world_close(struct world *w)
{
    w->plain->ops->unref(w->plain);
    w->sharded->ops->unref(w->sharded);
    arena_release(&w->a);
}

/* --- comparing pages --- */

static int page_read(struct bucket *b, enum kind kind, struct arena *a,
                     const struct list_options *o, struct buf *text, struct str *next,
                     struct str *next_version, bool *more, struct err *err)
{
    struct list_result list = {0};
    struct upload_list uploads = {0};
    int code;

    if (kind == KIND_UPLOADS)
        code = b->ops->list_uploads(b, a, o, &uploads, err);
    else
        code = (kind == KIND_OBJECTS ? b->ops->list : b->ops->list_versions)(b, a, o, &list, err);
    for (size_t i = 0; i < list.count; i++) {
        const struct list_entry *e = &list.entries[i];
        buf_appendf(text, "%s" STR_FMT "%s%s " STR_FMT "\n", e->is_prefix ? "P " : "  ",
                    STR_ARG(e->info.key), e->info.is_marker ? " marker" : "",
                    e->info.is_latest ? " latest" : "", STR_ARG(e->info.etag));
    }
    for (size_t i = 0; i < uploads.count; i++)
        buf_appendf(text, "U " STR_FMT "\n", STR_ARG(uploads.uploads[i].key));
    for (size_t i = 0; i < uploads.prefix_count; i++)
        buf_appendf(text, "P " STR_FMT "\n", STR_ARG(uploads.prefixes[i]));
    *more = list.more || uploads.more;
    *next = kind == KIND_UPLOADS ? uploads.next_key : list.next;
    *next_version = kind == KIND_UPLOADS ? uploads.next_id : list.next_version;
    buf_appendf(text, "%s, next " STR_FMT "\n", *more ? "more" : "end", STR_ARG(*next));
    return code;
}

/* Compares the pages of one request. Versions and ids of uploads are each bucket's own. */
static void world_compare(struct world *w, enum kind kind, const struct list_options *asked)
{
    struct list_options o[2] = {*asked, *asked};
    struct buf text[2] = {BUF_INIT(0), BUF_INIT(0)};
    struct arena a = ARENA_INIT(0);
    struct err err = {0};
    bool more[2] = {true, true};

    for (size_t page = 0; page < PAGES_MAX && more[0]; page++) {
        for (int side = 0; side < 2; side++) {
            buf_reset(&text[side]);
            CHECK_OK(page_read(side ? w->sharded : w->plain, kind, &a, &o[side], &text[side],
                               &o[side].after, &o[side].after_version, &more[side], &err));
            if (kind == KIND_OBJECTS)
                o[side].after_version = STR_EMPTY;
        }
        if (!str_eq(buf_str(&text[0]), buf_str(&text[1])))
            test_fail(__FILE__, __LINE__,
                      "prefix '" STR_FMT "', delimiter '" STR_FMT "', after '" STR_FMT
                      "', limit %zu, page %zu: plain\n" STR_FMT "sharded\n" STR_FMT,
                      STR_ARG(asked->prefix), STR_ARG(asked->delimiter), STR_ARG(asked->after),
                      asked->limit, page, STR_ARG(buf_str(&text[0])), STR_ARG(buf_str(&text[1])));
    }
    buf_release(&text[0]);
    buf_release(&text[1]);
    arena_release(&a);
}

static void world_ask(struct world *w, enum kind kind)
{
    static const size_t limits[] = {1, 1, 2, 3, 5, 10, 40, 1000};
    struct list_options o = {.delimiter =
                                 str_z(delimiters[world_random(w, ARRAY_SIZE(delimiters))]),
                             .limit = limits[world_random(w, ARRAY_SIZE(limits))]};

    if (world_random(w, 2))
        o.prefix = world_string(w);
    if (world_random(w, 3))
        o.after = w->layout.count && world_random(w, 4) == 0
                      ? w->bounds[world_random(w, w->layout.count)]
                      : world_string(w);
    world_compare(w, kind, &o);
}

static void worlds_compare(enum kind kind)
{
    const char *wanted = getenv("SHARD_LISTINGS");
    size_t listings = wanted ? (size_t)strtoul(wanted, NULL, 10) : LISTINGS;
    bool versions = kind == KIND_VERSIONS;
    struct sharded_lab lab;
    struct world w;

    sharded_lab_open(&lab, NULL);
    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
        world_open(&w, &lab, seed, versions);
        if (seed % 2)
            world_add_garbage(&w, versions);
        for (size_t i = 0; i < listings / WORLDS; i++)
            world_ask(&w, kind);
        world_close(&w);
    }
    sharded_lab_expect_whole(&lab);
    sharded_lab_close(&lab);
}

TEST_TIMEOUT(shard_list, random_listings_of_objects_are_those_of_a_plain_bucket, 900)
{
    worlds_compare(KIND_OBJECTS);
}

TEST_TIMEOUT(shard_list, random_listings_of_versions_are_those_of_a_plain_bucket, 900)
{
    worlds_compare(KIND_VERSIONS);
}

TEST_TIMEOUT(shard_list, random_listings_of_uploads_are_those_of_a_plain_bucket, 900)
{
    worlds_compare(KIND_UPLOADS);
}

/* --- one case at a time --- */

struct small {
    struct sharded_lab l;
    struct bucket *b;
    struct sharded *s;
    struct arena a;
};

static void small_open(struct small *x, const struct str *bounds, size_t count)
{
    x->a = ARENA_INIT(0);
    sharded_lab_open(&x->l, &(struct shard_layout){bounds, count, NULL});
    x->b = lab_bucket(x->l.lab.storage, "box");
    x->s = sharded_home_find(&x->l.home, STR("box"));
}

static void small_close(struct small *x)
{
    x->b->ops->unref(x->b);
    arena_release(&x->a);
    sharded_lab_close(&x->l);
}

/* Puts a key into place 0, which is then unclean from the first boundary on. */
static void small_garbage(struct small *x, const char *key)
{
    struct shard_map *now = sharded_home_map(x->s), *next = map_draft(now);
    struct shard_window w = {now->segments[1].after, STR_EMPTY};
    struct bucket *shard = sharded_home_place(x->s, 0);

    put_key(shard, &x->a, str_z(key), STR("garbage"));
    shard->ops->unref(shard);
    map_set_unclean(next, 0, &w);
    map_unref(now);
    sharded_home_install(x->s, next);
}

static const struct list_options by_slash = {.delimiter = STR("/")};

TEST(shard_list, a_common_prefix_that_only_garbage_has_is_not_listed)
{
    static const struct str bounds[] = {STR("c/5")};
    struct list_options behind = {.delimiter = STR("/"), .after = STR("c/4")};
    struct small x;

    small_open(&x, bounds, 1);
    lab_put(x.b, &x.a, "a", STR("1"));
    small_garbage(&x, "c/7");
    lab_expect_list(x.b, &by_slash, false, "a");
    lab_expect_list(x.b, &by_slash, true, "a*");
    lab_put(x.b, &x.a, "c/3", STR("1"));
    lab_expect_list(x.b, &by_slash, false, "a [c/]");
    lab_expect_list(x.b, &behind, false, "");
    lab_put(x.b, &x.a, "c/8", STR("1"));
    lab_expect_list(x.b, &behind, false, "[c/]");
    small_close(&x);
}

TEST(shard_list, garbage_is_not_more_than_the_page)
{
    static const struct str bounds[] = {STR("c")};
    struct list_options one = {.limit = 1};
    struct small x;

    small_open(&x, bounds, 1);
    lab_put(x.b, &x.a, "a", STR("1"));
    small_garbage(&x, "x");
    lab_expect_list(x.b, &one, false, "a");
    lab_put(x.b, &x.a, "y", STR("1"));
    lab_expect_list(x.b, &one, false, "a ...");
    small_close(&x);
}

TEST(shard_list, a_boundary_may_be_a_common_prefix)
{
    static const struct str bounds[] = {STR("c/"), STR("c/5"), STR("d/"), STR("e/")};
    struct small x;

    small_open(&x, bounds, ARRAY_SIZE(bounds));
    lab_put(x.b, &x.a, "c/7", STR("1"));
    lab_put(x.b, &x.a, "d/", STR("1")); /* the key itself is before the boundary */
    lab_put(x.b, &x.a, "e/1", STR("1"));
    lab_expect_list(x.b, &by_slash, false, "[c/] [d/] [e/]");
    lab_expect_list(x.b, &(struct list_options){.delimiter = STR("/"), .after = STR("c/")}, false,
                    "[d/] [e/]");
    lab_expect_list(x.b, &(struct list_options){.delimiter = STR("/"), .limit = 2}, false,
                    "[c/] [d/] ...");
    small_close(&x);
}

/* --- calls --- */

static size_t calls;

static int counted_ask(struct bucket *shard, struct arena *a, const struct list_options *o,
                       struct listed_page *out, struct err *err)
{
    calls++;
    return listing_ask_objects(shard, a, o, out, err);
}

/* Returns the number of calls of shards that one page takes. */
static size_t small_calls(struct small *x, const struct list_options *o)
{
    struct listing l = {.b = sharded_bucket_of(x->b),
                        .ask = counted_ask,
                        .a = &x->a,
                        .o = o,
                        .limit = o->limit ? o->limit : OBJECT_LIST_MAX};
    struct err err = {0};

    calls = 0;
    CHECK_OK(listing_run(&l, &err));
    vec_release(&l.found);
    return calls;
}

TEST(shard_list, a_page_takes_one_call_more_for_each_boundary_that_it_crosses)
{
    static const struct str bounds[] = {STR("b"), STR("c"), STR("d")};
    struct list_options o = {0};
    struct small x;

    small_open(&x, bounds, ARRAY_SIZE(bounds));
    lab_put(x.b, &x.a, "a1", STR("1"));
    lab_put(x.b, &x.a, "a2", STR("1"));
    lab_put(x.b, &x.a, "b1", STR("1"));
    lab_put(x.b, &x.a, "d1", STR("1"));
    lab_put(x.b, &x.a, "d2", STR("1"));
    CHECK_INT(small_calls(&x, &o), 4);
    o.limit = 1; /* the shard says that there is more */
    CHECK_INT(small_calls(&x, &o), 1);
    o.limit = 2; /* the page is full at the end of its segment, and the next one has a key */
    CHECK_INT(small_calls(&x, &o), 2);
    o.limit = 3; /* the segment behind the full page is empty, the one behind it is not */
    CHECK_INT(small_calls(&x, &o), 4);
    o = (struct list_options){.prefix = STR("a")}; /* segments outside the prefix are not asked */
    CHECK_INT(small_calls(&x, &o), 1);
    o = (struct list_options){.prefix = STR("d"), .after = STR("d1")};
    CHECK_INT(small_calls(&x, &o), 1);
    o = (struct list_options){.after = STR("c")};
    CHECK_INT(small_calls(&x, &o), 2);
    small_close(&x);
}

TEST(shard_list, segments_inside_a_listed_prefix_are_not_asked)
{
    static const struct str bounds[] = {STR("p/1"), STR("p/2"), STR("p/3"), STR("p/4"), STR("q")};
    struct list_options o = {.delimiter = STR("/")};
    struct small x;

    small_open(&x, bounds, ARRAY_SIZE(bounds));
    for (char key[] = "p/0!"; key[2] < '5'; key[2]++)
        lab_put(x.b, &x.a, key, STR("1"));
    lab_put(x.b, &x.a, "r", STR("1"));
    lab_expect_list(x.b, &o, false, "[p/] r");
    /* The first shard, its keys under p/, the shard that has the end of p/, and the last one. */
    CHECK_INT(small_calls(&x, &o), 4);
    o.after = STR("p/");
    CHECK_INT(small_calls(&x, &o), 2);
    small_close(&x);
}
