/* The table of sharded buckets: enabling, finding after a start, verifying, rebuilding. */
#include "shard/shards.h"

#include "object/local/local_adopt.h"
#include "shard/discover.h"
#include "shard/enable.h"
#include "shard/log.h"
#include "shard/names.h"
#include "shard/verify.h"
#include "unit/object/local_lab.h"

struct shards_lab {
    struct local_lab l;
    struct storage *home;
    struct shards *shards;
    const char *house; /* of the installation; NULL: "house" */
    bool recovers;     /* what `recover` says */
    bool fails;        /* `recover` has an error */
    size_t found;      /* findings of a verify, by kind in `kinds` */
    unsigned kinds;
    uint64_t garbage;    /* keys */
    struct shards *gone; /* remove() calls shards_gone() of this table; NULL: it does not */
};

static int shards_lab_recover(void *ctx, struct sharded *x, bool *serves, struct err *err)
{
    const struct shards_lab *l = ctx;

    *serves = l->recovers;
    return l->fails ? err_set(err, ERR_IO, "the disk") : 0;
}

static int shards_lab_remove(void *ctx, struct sharded *x, struct str user, struct err *err)
{
    struct shards_lab *l = ctx;
    struct bucket *home = NULL;
    int code = sharded_open_home(x, &home, err);

    (void)user;
    if (code == 0)
        code = local_remove_opened(home, err);
    if (code == 0 && l->gone)
        shards_gone(l->gone, x);
    return code;
}

/* Begins a new table over the storage, as a start of weir does. */
static int shards_lab_start(struct shards_lab *l)
{
    struct shards_options o = {.house = str_z(l->house ? l->house : "house"),
                               .recover = shards_lab_recover,
                               .remove = shards_lab_remove,
                               .ctx = l};
    struct err err = {0};

    atomic_store(&l->home->overlay, NULL);
    shards_free(l->shards);
    l->shards = shards_new(&o);
    int code = discover_storage(l->shards, l->home, &err);
    atomic_store(&l->home->overlay, shards_overlay(l->shards));
    return code;
}

static void shards_lab_open(struct shards_lab *l)
{
    *l = (struct shards_lab){.recovers = true};
    local_lab_open(&l->l, NULL);
    l->home = l->l.lab.storage;
    CHECK_INT(shards_lab_start(l), 0);
}

static void shards_lab_close(struct shards_lab *l)
{
    atomic_store(&l->home->overlay, NULL);
    shards_free(l->shards);
    local_lab_close(&l->l);
}

static void shards_lab_fill(struct shards_lab *l, const char *keys)
{
    struct arena a = ARENA_INIT(0);
    struct bucket *b = NULL;
    struct err err = {0};
    char key[2] = "";

    CHECK_OK(storage_open_bucket(&b, l->home, STR_EMPTY, STR("box"), &err));
    for (; *keys; keys++) {
        key[0] = *keys;
        lab_put(b, &a, key, str_z(key));
    }
    b->ops->unref(b);
    arena_release(&a);
}

/* Makes the bucket box with objects, and shards it. */
static struct sharded *shards_lab_enable(struct shards_lab *l, const char *keys)
{
    struct bucket *b = lab_bucket(l->home, "box");
    struct err err = {0};

    b->ops->unref(b);
    shards_lab_fill(l, keys);
    CHECK_OK(shard_enable(l->shards, l->home, STR("box"), 0, &err));
    return shards_find(l->shards, l->home, STR("box"));
}

/* Moves the keys above `at` to a new shard. */
static void shards_lab_split(struct sharded *x, const char *at)
{
    struct arena a = ARENA_INIT(0);
    struct bucket *first = NULL, *second = NULL;
    struct shard_window w = {str_z(at), STR_EMPTY};
    struct str last;
    struct err err = {0};
    bool more;

    mutex_lock(&x->changes);
    struct shard_map *now = table_map(x->table), *next = map_draft(now);
    uint32_t number = now->last_number + 1;
    struct str name = shard_bucket_name(&a, x->name, now->mark, number);
    CHECK_OK(
        sharded_open_place(x, map_place_at(now, map_segment_after(now, w.after)), &first, &err));
    CHECK_OK(local_make_shard(first, name, &err));
    CHECK_OK(x->home->ops->open_bucket(&second, x->home, STR_EMPTY, name, &err));
    CHECK_OK(local_adopt(second, first, w.after, w.upto, 1000, &a, &last, &more, &err));
    map_add_place(next, number, x->home->name, name);
    map_give(next, &w, number);
    CHECK_OK(sharded_publish(x, next, &err));
    mutex_unlock(&x->changes);
    map_unref(now);
    map_unref(next);
    first->ops->unref(first);
    second->ops->unref(second);
    arena_release(&a);
}

static void shards_lab_expect(struct shards_lab *l, const char *list)
{
    struct bucket *b = NULL;
    struct err err = {0};

    CHECK_OK(storage_open_bucket(&b, l->home, STR_EMPTY, STR("box"), &err));
    lab_expect_list(b, &lab_everything, false, list);
    b->ops->unref(b);
}

/* Removes a bucket with all that is in it. */
static void shards_lab_wipe(struct shards_lab *l, struct str name)
{
    struct arena a = ARENA_INIT(0);
    struct bucket *b = NULL;
    struct list_options o = {.limit = 1000};
    struct list_result list;
    struct remove_result removed;
    struct err err = {0};

    CHECK_OK(l->home->ops->open_bucket(&b, l->home, STR_EMPTY, name, &err));
    CHECK_OK(b->ops->list(b, &a, &o, &list, &err));
    for (size_t i = 0; i < list.count; i++)
        CHECK_OK(b->ops->remove(b, &a, list.entries[i].info.key, &(struct remove_options){0},
                                &removed, &err));
    b->ops->unref(b);
    CHECK_OK(l->home->ops->remove_bucket(l->home, STR_EMPTY, name, &err));
    arena_release(&a);
}

/* Removes the map bucket, as somebody might who knows no better. */
static void shards_lab_destroy_log(struct shards_lab *l)
{
    struct arena a = ARENA_INIT(0);

    shards_lab_wipe(l, shard_map_name(&a, STR("box")));
    arena_release(&a);
}

static void shards_lab_finding(void *ctx, const struct verify_finding *f)
{
    struct shards_lab *l = ctx;

    l->found++;
    l->kinds |= 1u << f->kind;
    l->garbage += f->keys;
}

/* Verifies, and checks that exactly these kinds are found, as bits. */
static void shards_lab_verify(struct shards_lab *l, unsigned kinds)
{
    struct err err = {0};

    l->found = l->kinds = 0;
    l->garbage = 0;
    CHECK_OK(shard_verify(l->shards, l->home, STR("box"), shards_lab_finding, l, &err));
    CHECK_INT(l->kinds, kinds);
}

/* --- enabling --- */

TEST(shards, enabling_keeps_the_objects_and_ends_the_plain_bucket)
{
    struct shards_lab l;
    struct bucket *plain, *b = NULL;
    struct err err = {0};

    shards_lab_open(&l);
    plain = lab_bucket(l.home, "box");
    shards_lab_fill(&l, "abc");
    CHECK_OK(shard_enable(l.shards, l.home, STR("box"), 50, &err));
    struct bucket_info info;
    struct arena a = ARENA_INIT(0);
    CHECK_ERR(plain->ops->info(plain, &a, &info, &err), ERR_BUSY);
    CHECK_OK(storage_open_bucket(&b, l.home, STR_EMPTY, STR("box"), &err));
    CHECK(b->storage == NULL);
    CHECK(bucket_home(b) == l.home);
    lab_expect_list(b, &lab_everything, false, "a b c");
    shards_lab_verify(&l, 0);
    CHECK_OK(shard_enable(l.shards, l.home, STR("box"), 70, &err));
    struct sharded *x = shards_find(l.shards, l.home, STR("box"));
    struct shard_map *m = table_map(x->table);
    CHECK_INT(m->threshold, 70);
    CHECK_STR(m->house, STR("house"));
    CHECK_STR(m->owner, STR("owner"));
    map_unref(m);
    sharded_unref(x);
    b->ops->unref(b);
    plain->ops->unref(plain);
    arena_release(&a);
    shards_lab_close(&l);
}

TEST(shards, enabling_goes_on_where_one_was_cut_short_and_takes_no_name_in_use)
{
    struct shards_lab l;
    struct arena a = ARENA_INIT(0);
    struct bucket_info info = {.owner = STR("owner")};
    struct bucket *b, *log = NULL;
    struct err err = {0};

    shards_lab_open(&l);
    b = lab_bucket(l.home, "box");
    info.name = shard_map_name(&a, STR("box"));
    CHECK_OK(l.home->ops->create_bucket(l.home, &info, &err));
    CHECK_OK(l.home->ops->open_bucket(&log, l.home, STR_EMPTY, info.name, &err));
    lab_put(log, &a, "mine", STR("x"));
    CHECK_ERR(shard_enable(l.shards, l.home, STR("box"), 0, &err), ERR_EXISTS);
    CHECK_INT(shards_state(l.shards, l.home, STR("box"), NULL), SHARDS_PLAIN);
    struct remove_result removed;
    CHECK_OK(log->ops->remove(log, &a, STR("mine"), &(struct remove_options){0}, &removed, &err));
    CHECK_INT(shards_lab_start(&l), 0);
    CHECK_INT(shards_state(l.shards, l.home, STR("box"), NULL), SHARDS_PLAIN);
    CHECK_OK(shard_enable(l.shards, l.home, STR("box"), 0, &err));
    CHECK_INT(shards_state(l.shards, l.home, STR("box"), NULL), SHARDS_SERVED);
    CHECK_ERR(shard_enable(l.shards, l.home, STR("none"), 0, &err), ERR_NO_BUCKET);
    CHECK_INT(shards_state(l.shards, l.home, STR("none"), NULL), SHARDS_PLAIN);
    CHECK_ERR(shard_enable(l.shards, l.home, info.name, 0, &err), ERR_NO_BUCKET);
    log->ops->unref(log);
    b->ops->unref(b);
    arena_release(&a);
    shards_lab_close(&l);
}

TEST(shards, a_bucket_that_is_being_made_plain_is_not_sharded_before_that_has_ended)
{
    struct shards_lab l;
    struct bucket *b = NULL;
    struct err err = {0};

    shards_lab_open(&l);
    struct sharded *x = shards_lab_enable(&l, "ab");
    shards_plain(l.shards, x);
    CHECK_OK(storage_open_bucket(&b, l.home, STR_EMPTY, STR("box"), &err));
    CHECK(b->storage == l.home);
    b->ops->unref(b);
    CHECK_ERR(shard_enable(l.shards, l.home, STR("box"), 0, &err), ERR_BUSY);
    shards_lab_destroy_log(&l);
    shards_gone(l.shards, x);
    CHECK_OK(shard_enable(l.shards, l.home, STR("box"), 0, &err));
    shards_lab_expect(&l, "a b");
    sharded_unref(x);
    shards_lab_close(&l);
}

TEST(shards, the_name_of_a_removed_bucket_is_free_when_nothing_is_left)
{
    struct bucket_info info = {.name = STR("box"), .owner = STR("owner")};
    struct shards_lab l;
    struct bucket *b = NULL;
    struct err err = {0};

    for (int at_once = 0; at_once < 2; at_once++) {
        shards_lab_open(&l);
        struct sharded *x = shards_lab_enable(&l, "");
        l.gone = at_once ? l.shards : NULL;
        CHECK_OK(storage_remove_bucket(l.home, STR("owner"), STR("box"), &err));
        CHECK_ERR(storage_open_bucket(&b, l.home, STR_EMPTY, STR("box"), &err), ERR_NO_BUCKET);
        if (!at_once)
            CHECK_ERR(storage_create_bucket(l.home, &info, &err), ERR_BUSY);
        shards_lab_destroy_log(&l);
        shards_gone(l.shards, x);
        CHECK_OK(storage_create_bucket(l.home, &info, &err));
        CHECK_OK(storage_remove_bucket(l.home, STR("owner"), STR("box"), &err));
        sharded_unref(x);
        shards_lab_close(&l);
    }
}

/* --- starts --- */

TEST(shards, a_start_finds_what_was_sharded)
{
    struct shards_lab l;
    struct shards_item *list;

    shards_lab_open(&l);
    struct sharded *x = shards_lab_enable(&l, "abcdef");
    shards_lab_split(x, "c");
    sharded_unref(x);
    struct bucket *plain = lab_bucket(l.home, "plain");
    plain->ops->unref(plain);
    CHECK_INT(shards_lab_start(&l), 0);
    CHECK_INT(shards_list(l.shards, &list), 1);
    CHECK_STR(list[0].name, STR("box"));
    shards_list_free(list, 1);
    shards_lab_expect(&l, "a b c d e f");
    shards_lab_verify(&l, 0);
    l.recovers = false; /* the mover says that nothing is left of the sharding */
    CHECK_INT(shards_lab_start(&l), 0);
    CHECK_INT(shards_state(l.shards, l.home, STR("box"), NULL), SHARDS_PLAIN);
    shards_lab_close(&l);
}

TEST(shards, without_its_map_a_bucket_is_refused_until_one_is_made_from_its_contents)
{
    struct rebuild_options o = {0};
    struct rebuild_result made;
    struct shards_lab l;
    struct bucket *b = NULL;
    struct err err = {0};

    shards_lab_open(&l);
    struct sharded *x = shards_lab_enable(&l, "abcdefgh");
    shards_lab_split(x, "c");
    shards_lab_split(x, "f");
    CHECK_ERR(shard_rebuild(l.shards, l.home, STR("box"), &o, &made, &err), ERR_EXISTS);
    sharded_unref(x);
    shards_lab_destroy_log(&l);
    CHECK_INT(shards_lab_start(&l), 0);
    CHECK_ERR(storage_open_bucket(&b, l.home, STR_EMPTY, STR("box"), &err), ERR_UNAVAILABLE);
    CHECK(strstr(err.text, "rebuild"));
    CHECK_ERR(shard_enable(l.shards, l.home, STR("box"), 0, &err), ERR_UNAVAILABLE);
    shards_lab_verify(&l, 1u << VERIFY_NO_MAP | 1u << VERIFY_STRAY);
    CHECK(shard_reload(l.shards, l.home, STR("box"), &err) < 0);
    CHECK_OK(shard_rebuild(l.shards, l.home, STR("box"), &o, &made, &err));
    CHECK_INT(made.keys, 8);
    CHECK_INT(made.shards, 3);
    CHECK_INT(made.segments, 3);
    shards_lab_expect(&l, "a b c d e f g h");
    shards_lab_verify(&l, 0);
    shards_lab_fill(&l, "bx");
    CHECK_INT(shards_lab_start(&l), 0);
    shards_lab_expect(&l, "a b c d e f g h x");
    shards_lab_close(&l);
}

static void lab_twice(void *ctx, struct str key, struct str one, struct str other)
{
    struct buf *keys = ctx;

    CHECK(!str_eq(one, other));
    buf_append_str(keys, key);
}

TEST(shards, a_key_in_two_shards_is_named_and_only_newest_decides)
{
    struct buf keys = BUF_INIT(0);
    struct rebuild_options o = {.twice = lab_twice, .ctx = &keys};
    struct rebuild_result made;
    struct arena a = ARENA_INIT(0);
    struct shards_lab l;
    struct bucket *b = NULL;
    struct err err = {0};

    shards_lab_open(&l);
    struct sharded *x = shards_lab_enable(&l, "abdef");
    shards_lab_split(x, "c");
    sharded_unref(x);
    CHECK_OK(l.home->ops->open_bucket(&b, l.home, STR_EMPTY, STR("box"), &err));
    struct put_result late = lab_put(b, &a, "e", STR("garbage"));
    (void)late;
    shards_lab_verify(&l, 1u << VERIFY_GARBAGE);
    CHECK_INT(l.garbage, 1);
    b->ops->unref(b);
    shards_lab_destroy_log(&l);
    CHECK_INT(shards_lab_start(&l), 0);
    CHECK_ERR(shard_rebuild(l.shards, l.home, STR("box"), &o, &made, &err), ERR_CONFLICT);
    CHECK_STR(buf_str(&keys), STR("e"));
    CHECK_INT(shards_state(l.shards, l.home, STR("box"), NULL), SHARDS_BROKEN);
    o.newest = true;
    CHECK_OK(shard_rebuild(l.shards, l.home, STR("box"), &o, &made, &err));
    CHECK_INT(made.twice, 1);
    CHECK_INT(made.segments, 4); /* e is now a segment of its own on the bucket itself */
    shards_lab_expect(&l, "a b d e f");
    buf_release(&keys);
    arena_release(&a);
    shards_lab_close(&l);
}

TEST(shards, cleaning_removes_garbage_though_it_is_locked)
{
    struct bucket_info info = {.name = STR("box"), .owner = STR("owner"), .object_lock = true};
    struct object_meta held = {.legal_hold = true};
    struct arena a = ARENA_INIT(0);
    struct shards_lab l;
    struct bucket *b = NULL;
    uint64_t removed = 0;
    struct err err = {0};

    shards_lab_open(&l);
    CHECK_OK(l.home->ops->create_bucket(l.home, &info, &err));
    shards_lab_fill(&l, "abef");
    CHECK_OK(shard_enable(l.shards, l.home, STR("box"), 0, &err));
    struct sharded *x = shards_find(l.shards, l.home, STR("box"));
    shards_lab_split(x, "c");
    CHECK_OK(l.home->ops->open_bucket(&b, l.home, STR_EMPTY, STR("box"), &err));
    lab_put(b, &a, "e", STR("garbage"));
    CHECK_OK(b->ops->set_meta(b, &a, STR("e"), STR_EMPTY, META_LEGAL_HOLD, &held, NULL, &err));
    lab_remove(b, &a, "e", STR_EMPTY);
    shards_lab_verify(&l, 1u << VERIFY_GARBAGE);
    CHECK_OK(shard_clean(l.shards, l.home, STR("box"), &removed, &err));
    CHECK_INT(removed, 2); /* the version and the marker */
    shards_lab_verify(&l, 0);
    shards_lab_expect(&l, "a b e f");
    b->ops->unref(b);
    sharded_unref(x);
    arena_release(&a);
    shards_lab_close(&l);
}

TEST(shards, verify_names_shards_that_are_missing_or_stray)
{
    struct arena a = ARENA_INIT(0);
    struct shards_lab l;
    struct bucket *b = NULL;
    struct err err = {0};

    shards_lab_open(&l);
    struct sharded *x = shards_lab_enable(&l, "abc");
    shards_lab_split(x, "c");
    struct shard_map *m = table_map(x->table);
    CHECK_OK(l.home->ops->open_bucket(&b, l.home, STR_EMPTY, STR("box"), &err));
    CHECK_OK(local_make_shard(b, shard_bucket_name(&a, STR("box"), m->mark, 7), &err));
    shards_lab_verify(&l, 1u << VERIFY_STRAY);
    CHECK_OK(local_remove_shard(l.home, m->places[1].bucket, &err));
    shards_lab_verify(&l, 1u << VERIFY_STRAY | 1u << VERIFY_NO_BUCKET);
    b->ops->unref(b);
    map_unref(m);
    sharded_unref(x);
    arena_release(&a);
    shards_lab_close(&l);
}

/* --- maps that are not believed --- */

struct plant {
    const char *log_owner, *map_owner;
    uint64_t other_id; /* added to the bucket's id */
    bool place;        /* the map has a shard that is an ordinary bucket */
    bool garbage;      /* the map bucket has no map */
    enum shard_state state;
};

/* Makes a map bucket for the bucket box, as a user could before weir was able to shard. */
static void shards_lab_plant(struct shards_lab *l, const struct plant *p)
{
    struct arena a = ARENA_INIT(0);
    struct bucket_info info = {.name = shard_map_name(&a, STR("box")),
                               .owner = str_z(p->log_owner)};
    struct bucket *log = NULL;
    struct err err = {0};
    struct shard_map *m = map_first(l->home->name, STR("box"), str_z(p->map_owner), STR("house"),
                                    STR("aaaa"), 2000000000000);

    CHECK_OK(sharded_id_now(l->home, STR("box"), &m->id, &err));
    m->id += p->other_id;
    m->state = p->state;
    if (p->place) {
        struct bucket_info shard = {.name = shard_bucket_name(&a, STR("box"), STR("aaaa"), 1),
                                    .owner = str_z(p->log_owner)};
        CHECK_OK(l->home->ops->create_bucket(l->home, &shard, &err));
        map_add_place(m, 1, l->home->name, shard.name);
        map_give(m, &(struct shard_window){STR("m"), STR_EMPTY}, 1);
    }
    CHECK_OK(l->home->ops->create_bucket(l->home, &info, &err));
    CHECK_OK(l->home->ops->open_bucket(&log, l->home, STR_EMPTY, info.name, &err));
    if (p->garbage)
        lab_put(log, &a, "map/1", STR("x"));
    else
        CHECK_OK(log_commit(log, m, UINT64_MAX, &err));
    log->ops->unref(log);
    map_unref(m);
    arena_release(&a);
}

TEST(shards, a_map_bucket_that_is_not_the_buckets_own_is_ignored)
{
    static const struct plant plants[] = {
        {"bob", "bob", .state = SHARD_ACTIVE, .place = true},
        {"bob", "owner", .state = SHARD_ACTIVE},
        {"bob", "bob", .state = SHARD_DELETING},
        {"bob", "bob", .garbage = true},
        {"owner", "bob", .state = SHARD_ACTIVE},
        {"owner", "owner", .state = SHARD_DELETING, .other_id = 1000},
        {"owner", "owner", .state = SHARD_ACTIVE, .place = true},
    };

    struct arena a = ARENA_INIT(0);

    for (size_t i = 0; i < ARRAY_SIZE(plants); i++) {
        struct shards_item *list;
        struct shards_lab l;
        struct err err = {0};

        shards_lab_open(&l);
        struct bucket *b = lab_bucket(l.home, "box");
        b->ops->unref(b);
        shards_lab_fill(&l, "an");
        shards_lab_plant(&l, &plants[i]);
        CHECK_INT(shards_lab_start(&l), 0);
        CHECK_INT(shards_state(l.shards, l.home, STR("box"), &err), SHARDS_PLAIN);
        CHECK(strstr(err.text, "-map is not the map bucket of box"));
        shards_lab_expect(&l, "a n");
        shards_lab_verify(&l, 1u << VERIFY_TROUBLE);
        CHECK_INT(shards_list(l.shards, &list), 1);
        CHECK(list[0].plain && !list[0].sharded);
        shards_list_free(list, 1);
        CHECK_ERR(shard_reload(l.shards, l.home, STR("box"), &err), ERR_EXISTS);
        CHECK_INT(shards_state(l.shards, l.home, STR("box"), NULL), SHARDS_PLAIN);
        shards_lab_destroy_log(&l);
        shards_lab_wipe(&l, STR("box"));
        if (plants[i].place)
            shards_lab_wipe(&l, shard_bucket_name(&a, STR("box"), STR("aaaa"), 1));
        shards_lab_close(&l);
    }
    arena_release(&a);
}

/* --- a map of another installation --- */

TEST(shards, a_map_of_another_installation_is_used_only_after_it_was_taken_over)
{
    struct shards_lab l;
    struct bucket *b = NULL;
    struct err err = {0};

    shards_lab_open(&l);
    struct sharded *x = shards_lab_enable(&l, "abcdef");
    shards_lab_split(x, "c");
    sharded_unref(x);
    l.house = "another house";
    CHECK_INT(shards_lab_start(&l), 0);
    CHECK_INT(shards_state(l.shards, l.home, STR("box"), &err), SHARDS_BROKEN);
    CHECK(strstr(err.text, "another installation") && strstr(err.text, "--take-over"));
    CHECK_ERR(storage_open_bucket(&b, l.home, STR_EMPTY, STR("box"), &err), ERR_UNAVAILABLE);
    CHECK_ERR(shard_reload(l.shards, l.home, STR("box"), &err), ERR_UNAVAILABLE);
    CHECK_ERR(shard_remove_left(l.shards, l.home, STR("box"), &err), ERR_EXISTS);
    CHECK_INT(shards_state(l.shards, l.home, STR("box"), NULL), SHARDS_BROKEN);
    CHECK_OK(shard_take_over(l.shards, l.home, STR("box"), &err));
    CHECK_ERR(shard_take_over(l.shards, l.home, STR("box"), &err), ERR_NOT_FOUND);
    for (int starts = 0; starts < 2; starts++) {
        shards_lab_expect(&l, "a b c d e f");
        shards_lab_verify(&l, 0);
        x = shards_find(l.shards, l.home, STR("box"));
        CHECK_STR(x->house, STR("another house"));
        sharded_unref(x);
        CHECK_INT(shards_lab_start(&l), 0);
    }
    l.house = NULL; /* the installation that had it before */
    CHECK_INT(shards_lab_start(&l), 0);
    CHECK_INT(shards_state(l.shards, l.home, STR("box"), NULL), SHARDS_BROKEN);
    shards_lab_close(&l);
}

/* --- a bucket that is missing --- */

static void remove_left(bool split)
{
    struct bucket_info info = {.name = STR("box"), .owner = STR("owner")};
    struct shards_lab l;
    struct bucket *b = NULL;
    struct err err = {0};

    shards_lab_open(&l);
    struct sharded *x = shards_lab_enable(&l, "abcdef");
    if (split)
        shards_lab_split(x, "c");
    sharded_unref(x);
    CHECK_ERR(shard_remove_left(l.shards, l.home, STR("box"), &err), ERR_NOT_FOUND);
    atomic_store(&l.home->overlay, NULL);
    shards_lab_wipe(&l, STR("box"));
    CHECK_INT(shards_lab_start(&l), 0);
    CHECK_INT(shards_state(l.shards, l.home, STR("box"), &err), SHARDS_BROKEN);
    CHECK(strstr(err.text, "missing") && strstr(err.text, "--remove"));
    CHECK_ERR(storage_open_bucket(&b, l.home, STR_EMPTY, STR("box"), &err), ERR_UNAVAILABLE);
    CHECK_ERR(storage_create_bucket(l.home, &info, &err), ERR_UNAVAILABLE);
    CHECK_ERR(shard_reload(l.shards, l.home, STR("box"), &err), ERR_UNAVAILABLE);
    l.recovers = false; /* as the mover does with the state "deleting" */
    CHECK_ERR(shard_remove_left(l.shards, l.home, STR("box"), &err), ERR_UNAVAILABLE);
    CHECK_INT(shards_state(l.shards, l.home, STR("box"), NULL), SHARDS_PLAIN);
    struct bucket *log = NULL;
    struct shard_map *head = NULL;
    CHECK_OK(discover_open_log(&log, l.home, STR("box"), &err));
    CHECK_OK(log_head(log, &head, &err));
    CHECK_INT(head->state, SHARD_DELETING);
    map_unref(head);
    log->ops->unref(log);
    CHECK_OK(storage_create_bucket(l.home, &info, &err));
    shards_lab_close(&l);
}

TEST(shards, a_map_whose_bucket_is_missing_keeps_the_name_until_it_is_removed)
{
    remove_left(false);
}

TEST(shards, shards_whose_bucket_is_missing_keep_the_name_until_they_are_removed)
{
    remove_left(true);
}

/* --- several threads --- */

TEST(shards, discovery_leaves_a_bucket_alone_that_another_thread_is_at_work_with)
{
    struct shards_lab l;
    struct err err = {0};

    shards_lab_open(&l);
    struct sharded *x = shards_lab_enable(&l, "ab");
    shards_plain(l.shards, x);
    CHECK_OK(discover_storage(l.shards, l.home, &err));
    CHECK_INT(shards_state(l.shards, l.home, STR("box"), NULL), SHARDS_CLAIMED);
    CHECK_ERR(discover_bucket(l.shards, l.home, STR("box"), &err), ERR_BUSY);
    shards_lab_destroy_log(&l);
    shards_gone(l.shards, x);
    CHECK_INT(shards_state(l.shards, l.home, STR("box"), NULL), SHARDS_PLAIN);
    CHECK_OK(shard_enable(l.shards, l.home, STR("box"), 0, &err));
    shards_gone(l.shards, x); /* not the bucket that is sharded now */
    shards_plain(l.shards, x);
    CHECK_INT(shards_state(l.shards, l.home, STR("box"), NULL), SHARDS_SERVED);
    sharded_unref(x);
    shards_lab_close(&l);
}

/* --- recoveries that fail --- */

TEST(shards, what_a_recovery_cannot_repair_is_refused_only_as_far_as_needed)
{
    struct shards_lab l;
    struct err err = {0};

    shards_lab_open(&l);
    struct sharded *x = shards_lab_enable(&l, "ab");
    l.fails = true;
    CHECK_INT(shards_lab_start(&l), 0);
    CHECK_INT(shards_state(l.shards, l.home, STR("box"), &err), SHARDS_SERVED);
    CHECK(strstr(err.text, "the disk"));
    shards_lab_expect(&l, "a b");
    shards_lab_verify(&l, 1u << VERIFY_TROUBLE);
    l.fails = false;
    CHECK_OK(shard_reload(l.shards, l.home, STR("box"), &err));
    shards_lab_verify(&l, 0);
    sharded_unref(x);
    x = shards_find(l.shards, l.home, STR("box"));
    mutex_lock(&x->changes);
    struct shard_map *now = table_map(x->table), *next = map_draft(now);
    next->state = SHARD_PLAIN;
    CHECK_OK(sharded_publish(x, next, &err));
    mutex_unlock(&x->changes);
    map_unref(next);
    map_unref(now);
    sharded_unref(x);
    l.fails = true;
    CHECK_INT(shards_lab_start(&l), 0);
    CHECK_INT(shards_state(l.shards, l.home, STR("box"), &err), SHARDS_PLAIN);
    CHECK(strstr(err.text, "the disk"));
    shards_lab_expect(&l, "a b");
    shards_lab_close(&l);
}

/* --- damaged logs --- */

TEST(shards, a_damaged_newest_map_is_followed_by_one_that_is_made_from_the_contents)
{
    struct rebuild_options o = {0};
    struct rebuild_result made;
    struct arena a = ARENA_INIT(0);
    struct shards_lab l;
    struct bucket *log = NULL;
    struct err err = {0};

    shards_lab_open(&l);
    struct sharded *x = shards_lab_enable(&l, "abcdef");
    shards_lab_split(x, "c");
    sharded_unref(x);
    CHECK_OK(
        l.home->ops->open_bucket(&log, l.home, STR_EMPTY, shard_map_name(&a, STR("box")), &err));
    lab_put(log, &a, "map/0", STR("damaged"));
    lab_put(log, &a, "map/9999990000000000000", STR("damaged")); /* above the present time */
    CHECK_INT(shards_lab_start(&l), 0);
    CHECK_INT(shards_state(l.shards, l.home, STR("box"), &err), SHARDS_BROKEN);
    CHECK(strstr(err.text, "--from-contents"));
    CHECK_OK(shard_rebuild(l.shards, l.home, STR("box"), &o, &made, &err));
    CHECK_INT(made.segments, 2);
    for (int starts = 0; starts < 2; starts++) {
        shards_lab_expect(&l, "a b c d e f");
        shards_lab_verify(&l, 0);
        CHECK_INT(shards_lab_start(&l), 0);
    }
    log->ops->unref(log);
    arena_release(&a);
    shards_lab_close(&l);
}

TEST(shards, a_log_that_vanishes_while_the_bucket_is_served_is_written_anew)
{
    struct rebuild_options o = {0};
    struct rebuild_result made;
    struct shards_lab l;
    struct err err = {0};

    shards_lab_open(&l);
    struct sharded *x = shards_lab_enable(&l, "abcdef");
    shards_lab_split(x, "c");
    shards_lab_destroy_log(&l);
    shards_lab_verify(&l, 1u << VERIFY_NO_MAP);
    CHECK_OK(shard_rebuild(l.shards, l.home, STR("box"), &o, &made, &err));
    CHECK_INT(made.segments, 2);
    shards_lab_verify(&l, 0);
    shards_lab_split(x, "e");
    sharded_unref(x);
    CHECK_INT(shards_lab_start(&l), 0);
    shards_lab_expect(&l, "a b c d e f");
    shards_lab_verify(&l, 0);
    CHECK_ERR(shard_rebuild(l.shards, l.home, STR("box"), &o, &made, &err), ERR_EXISTS);
    shards_lab_close(&l);
}
