/* A sharded bucket is a bucket, and each of its keys is with the shard that owns it. */
#include "base/clock.h"
#include "object/local/local_adopt.h"
#include "os/thread.h"
#include "unit/object/local_check.h"
#include "unit/shard/sharded_lab.h"

/* --- it conforms, however it is cut --- */

static void with_layout(void (*fn)(struct lab *), const struct shard_layout *layout)
{
    struct sharded_lab l;

    sharded_lab_open(&l, layout);
    fn(&l.lab);
    sharded_lab_expect_whole(&l);
    sharded_lab_close(&l);
}

static const struct str one_bound[] = {STR("d")};
static const struct str many_bounds[] = {STR("a"), STR("b"), STR("d/"), STR("k"), STR("l/1")};
static const uint32_t crossed_places[] = {3, 0, 2, 0, 3, 2};

static const struct shard_layout layout_one = {one_bound, 1, NULL};
static const struct shard_layout layout_many = {many_bounds, ARRAY_SIZE(many_bounds), NULL};
static const struct shard_layout layout_crossed = {many_bounds, ARRAY_SIZE(many_bounds),
                                                   crossed_places};

#define X(name)                                                                                    \
    TEST(sharded_bucket_whole, name)                                                               \
    {                                                                                              \
        with_layout(conform_##name, NULL);                                                         \
    }                                                                                              \
    TEST(sharded_bucket_in_two, name)                                                              \
    {                                                                                              \
        with_layout(conform_##name, &layout_one);                                                  \
    }                                                                                              \
    TEST(sharded_bucket_in_many, name)                                                             \
    {                                                                                              \
        with_layout(conform_##name, &layout_many);                                                 \
    }                                                                                              \
    TEST(sharded_bucket_crossed, name)                                                             \
    {                                                                                              \
        with_layout(conform_##name, &layout_crossed);                                              \
    }
BUCKET_CONFORMANCE(X)
#undef X

/* --- keys are with their owners --- */

/* A lab with the bucket "box" whose keys up to "m" are on place 0, and the others on place 1. */
struct box {
    struct sharded_lab l;
    struct bucket *b;
    struct sharded *s;
    struct arena a;
};

static void box_open(struct box *x)
{
    static const struct str bounds[] = {STR("m")};

    x->a = ARENA_INIT(0);
    sharded_lab_open(&x->l, &(struct shard_layout){bounds, 1, NULL});
    x->b = lab_bucket(x->l.lab.storage, "box");
    x->s = sharded_home_find(&x->l.home, STR("box"));
}

static void box_close(struct box *x)
{
    x->b->ops->unref(x->b);
    arena_release(&x->a);
    sharded_lab_expect_whole(&x->l);
    sharded_lab_close(&x->l);
}

static void expect_place(struct box *x, uint32_t number, bool versions, const char *want)
{
    struct bucket *shard = sharded_home_place(x->s, number);

    lab_expect_list(shard, &lab_everything, versions, want);
    shard->ops->unref(shard);
}

/* Closes the keys above `after`, up to `upto`. */
static void box_shut(struct box *x, const char *after, const char *upto)
{
    struct shard_map *now = sharded_home_map(x->s), *next = map_draft(now);
    struct shard_window w = {str_z(after), str_z(upto)};

    map_close(next, SHARD_CLOSED_COPY, &w);
    map_unref(now);
    sharded_home_install(x->s, next);
}

/* Opens what is closed, and gives the keys to the place. */
static void box_give(struct box *x, const char *after, const char *upto, uint32_t number)
{
    struct shard_map *now = sharded_home_map(x->s), *next = map_draft(now);
    struct shard_window w = {str_z(after), str_z(upto)};

    map_open(next);
    map_give(next, &w, number);
    map_unref(now);
    sharded_home_install(x->s, next);
}

TEST(sharded_bucket, keys_are_with_their_owners)
{
    struct box x;

    box_open(&x);
    lab_put(x.b, &x.a, "a", STR("1"));
    lab_put(x.b, &x.a, "m", STR("2")); /* a bound is the last key of its segment */
    lab_put(x.b, &x.a, "m!", STR("3"));
    lab_put(x.b, &x.a, "z", STR("4"));
    expect_place(&x, 0, false, "a m");
    expect_place(&x, 1, false, "m! z");
    lab_remove(x.b, &x.a, "z", STR_EMPTY);
    expect_place(&x, 1, false, "m!");
    CHECK(!x.b->storage);
    CHECK(bucket_home(x.b) == x.l.lab.storage);
    CHECK(bucket_can(x.b, STORAGE_TELLS_CHANGES));
    CHECK(!bucket_can(x.b, STORAGE_AT_HAND));
    box_close(&x);
}

TEST(sharded_bucket, versions_and_object_lock_are_set_on_every_shard)
{
    struct box x;
    struct bucket_info info;
    struct err err = {0};

    box_open(&x);
    CHECK_ERR(x.b->ops->set_object_lock(x.b, &err), ERR_CONFLICT);
    CHECK_OK(x.b->ops->set_versions(x.b, true, &err));
    CHECK_OK(x.b->ops->set_object_lock(x.b, &err));
    CHECK_ERR(x.b->ops->set_versions(x.b, false, &err), ERR_CONFLICT);
    for (uint32_t i = 0; i < 2; i++) {
        struct bucket *shard = sharded_home_place(x.s, i);
        CHECK_OK(shard->ops->info(shard, &x.a, &info, &err));
        CHECK_INT(info.versions, VERSIONS_ON);
        CHECK(info.object_lock);
        shard->ops->unref(shard);
    }
    lab_put(x.b, &x.a, "z", STR("1"));
    lab_put(x.b, &x.a, "z", STR("2"));
    expect_place(&x, 1, true, "z* z");
    CHECK_OK(x.b->ops->info(x.b, &x.a, &info, &err));
    CHECK_STR(info.name, STR("box"));
    CHECK_INT(info.versions, VERSIONS_ON);
    CHECK(info.object_lock);
    box_close(&x);
}

TEST(sharded_bucket, usage_is_the_sum_of_the_shards)
{
    struct box x;
    struct bucket_usage usage;
    struct err err = {0};

    box_open(&x);
    CHECK_OK(x.b->ops->set_versions(x.b, true, &err));
    lab_put(x.b, &x.a, "a", STR("12345"));
    lab_put(x.b, &x.a, "z", STR("1"));
    lab_put(x.b, &x.a, "z", STR("12"));
    CHECK_OK(x.b->ops->usage(x.b, &usage, &err));
    CHECK_INT(usage.objects, 2);
    CHECK_INT(usage.bytes, 7);
    CHECK_INT(usage.old_versions, 1);
    CHECK_INT(usage.old_bytes, 1);
    box_close(&x);
}

TEST(sharded_bucket, documents_are_on_the_bucket_itself)
{
    struct box x;
    struct bucket *shard;
    struct str got;
    struct err err = {0};

    box_open(&x);
    CHECK_OK(x.b->ops->set_document(x.b, "tagging", STR("<t/>"), &err));
    shard = sharded_home_place(x.s, 0);
    CHECK_OK(shard->ops->get_document(shard, &x.a, "tagging", &got, &err));
    CHECK_STR(got, STR("<t/>"));
    shard->ops->unref(shard);
    shard = sharded_home_place(x.s, 1);
    CHECK_ERR(shard->ops->get_document(shard, &x.a, "tagging", &got, &err), ERR_NOT_FOUND);
    shard->ops->unref(shard);
    box_close(&x);
}

/* --- a bucket that was removed --- */

/* Every kind of call through `b` finds no bucket. */
static void expect_no_bucket(struct box *x, struct bucket *b)
{
    static const char *const keys[] = {"a", "z"};
    struct str_reader body;
    struct bucket_info info;
    struct bucket_usage usage;
    struct list_options page = {.limit = 10};
    struct put_options o = {0};
    struct put_result made;
    struct remove_result removed;
    struct list_result list;
    struct get_result got;
    struct str document;
    struct err err = {0};

    CHECK_ERR(b->ops->info(b, &x->a, &info, &err), ERR_NO_BUCKET);
    CHECK_ERR(b->ops->usage(b, &usage, &err), ERR_NO_BUCKET);
    CHECK_ERR(b->ops->get_document(b, &x->a, "policy", &document, &err), ERR_NO_BUCKET);
    CHECK_ERR(b->ops->set_document(b, "policy", STR("{}"), &err), ERR_NO_BUCKET);
    CHECK_ERR(b->ops->set_versions(b, true, &err), ERR_NO_BUCKET);
    CHECK_ERR(b->ops->set_object_lock(b, &err), ERR_NO_BUCKET);
    CHECK_ERR(b->ops->list(b, &x->a, &page, &list, &err), ERR_NO_BUCKET);
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        struct str key = str_z(keys[i]);
        str_reader_init(&body, STR("stale"));
        CHECK_ERR(b->ops->put(b, &x->a, key, &body.reader, body.rest.len, &o, &made, &err),
                  ERR_NO_BUCKET);
        CHECK_ERR(b->ops->head(b, &x->a, key, STR_EMPTY, NULL, &got, &err), ERR_NO_BUCKET);
        CHECK_ERR(b->ops->remove(b, &x->a, key, &(struct remove_options){0}, &removed, &err),
                  ERR_NO_BUCKET);
    }
}

/* A request may have opened the bucket long before it acts. */
TEST(sharded_bucket, a_bucket_that_is_made_anew_is_not_touched_through_the_old_one)
{
    struct box x;
    struct err err = {0};

    box_open(&x);
    struct sharded *old = sharded_ref(x.s);
    struct storage *home = x.l.lab.storage;
    /* A removal that took the bucket for a plain one is refused. */
    CHECK_ERR(home->ops->remove_bucket(home, STR_EMPTY, STR("box"), &err), ERR_BUSY);
    CHECK_OK(storage_remove_bucket(home, STR_EMPTY, STR("box"), &err));
    struct bucket *anew = lab_bucket(home, "box");
    lab_put(anew, &x.a, "a", STR("1"));
    lab_put(anew, &x.a, "z", STR("2"));
    expect_no_bucket(&x, x.b);

    x.s = old; /* it has become plain */
    box_give(&x, "", "", 0);
    struct shard_map *now = sharded_home_map(old), *plain = map_draft(now);
    plain->state = SHARD_PLAIN;
    map_unref(now);
    sharded_home_install(old, plain);
    expect_no_bucket(&x, x.b);
    lab_expect_list(anew, &lab_everything, false, "a z");
    lab_expect(anew, "a", STR_EMPTY, STR("1"));
    anew->ops->unref(anew);
    sharded_unref(old);
    box_close(&x);
}

/* --- copies --- */

static size_t box_files(struct box *x)
{
    struct err err = {0};
    size_t count = 0;

    local_collect(x->l.lab.storage);
    CHECK_OK(local_check_files(x->l.lab.storage, &count, &err));
    return count;
}

static void copy_key(struct box *x, struct bucket *to, const char *key, struct bucket *from,
                     const char *source)
{
    struct get_result got;
    struct put_options o = {0};
    struct put_result out;
    struct err err = {0};

    CHECK_OK(from->ops->head(from, &x->a, str_z(source), STR_EMPTY, NULL, &got, &err));
    CHECK_OK(to->ops->copy(to, &x->a, str_z(key), from, &got.info, &o, &out, &err));
}

TEST(sharded_bucket, copies_in_one_folder_share_their_bytes)
{
    struct box x;
    struct str body = lab_bytes(100000, 1);

    box_open(&x);
    struct bucket *other = lab_bucket(x.l.lab.storage, "other");
    struct bucket *plain = lab_bucket(x.l.lab.storage, SHARDED_HOME_PLAIN);
    lab_put(x.b, &x.a, "a", body);
    CHECK_INT(box_files(&x), 1);
    copy_key(&x, x.b, "z", x.b, "a"); /* to another shard */
    copy_key(&x, x.b, "b", x.b, "a"); /* in one shard */
    copy_key(&x, x.b, "a", x.b, "a");
    copy_key(&x, other, "z", x.b, "z"); /* to another sharded bucket */
    CHECK_INT(box_files(&x), 1);
    lab_expect(x.b, "z", STR_EMPTY, body);
    lab_expect(x.b, "b", STR_EMPTY, body);
    lab_expect(other, "z", STR_EMPTY, body);
    lab_put(plain, &x.a, "p", lab_bytes(100000, 2));
    CHECK_INT(box_files(&x), 2);
    copy_key(&x, x.b, "y", plain, "p");
    CHECK_INT(box_files(&x), 2);
    lab_expect(x.b, "y", STR_EMPTY, lab_bytes(100000, 2));
    copy_key(&x, plain, "q", x.b, "z");
    CHECK_INT(box_files(&x), 2);
    lab_expect(plain, "q", STR_EMPTY, body);
    other->ops->unref(other);
    plain->ops->unref(plain);
    box_close(&x);
}

TEST(sharded_bucket, a_part_may_be_a_range_of_an_object_on_another_shard)
{
    struct box x;
    struct str body = lab_bytes(100000, 1);
    struct object_range whole = {RANGE_ALL, 0, 0};
    struct upload_part part = {0};
    struct put_options o = {0};
    struct put_result out;
    struct get_result got;
    struct err err = {0};

    box_open(&x);
    lab_put(x.b, &x.a, "a", body);
    struct upload_info u = lab_upload(x.b, &x.a, "z");
    CHECK_OK(x.b->ops->head(x.b, &x.a, STR("a"), STR_EMPTY, NULL, &got, &err));
    CHECK_OK(x.b->ops->upload_part_copy(x.b, &x.a, &u, 1, x.b, &got.info, &whole, &part, &err));
    CHECK_INT(box_files(&x), 1);
    CHECK_OK(x.b->ops->upload_finish(x.b, &x.a, &u, &part, 1, &o, &out, &err));
    lab_expect(x.b, "z", STR_EMPTY, body);
    expect_place(&x, 1, false, "z");
    box_close(&x);
}

/* --- closed keys --- */

TEST(sharded_bucket, what_must_not_wait_is_not_answered_while_its_key_is_closed)
{
    struct box x;
    struct get_result got;
    struct err err = {0};

    box_open(&x);
    lab_put(x.b, &x.a, "a", STR("1"));
    lab_put(x.b, &x.a, "n", STR("2"));
    box_shut(&x, "m", "p");
    CHECK_ERR(x.b->ops->head_now(x.b, &x.a, STR("n"), STR_EMPTY, NULL, &got, &err), ERR_AGAIN);
    CHECK_ERR(x.b->ops->get_now(x.b, &x.a, STR("n"), STR_EMPTY, NULL, NULL, &got, &err), ERR_AGAIN);
    CHECK_OK(x.b->ops->head_now(x.b, &x.a, STR("a"), STR_EMPTY, NULL, &got, &err));
    CHECK_ERR(x.b->ops->head_now(x.b, &x.a, STR("q"), STR_EMPTY, NULL, &got, &err), ERR_NOT_FOUND);
    box_give(&x, "m", "p", 1);
    CHECK_OK(x.b->ops->get_now(x.b, &x.a, STR("n"), STR_EMPTY, NULL, NULL, &got, &err));
    reader_close(got.body);
    box_close(&x);
}

struct waiting {
    struct bucket *b;
    const char *key;
};

static void put_waits(void *ctx)
{
    struct waiting *w = ctx;
    struct arena a = ARENA_INIT(0);

    lab_put(w->b, &a, w->key, STR("late"));
    arena_release(&a);
}

static void list_waits(void *ctx)
{
    struct waiting *w = ctx;

    lab_expect_list(w->b, &lab_everything, false, "a n z");
}

/* Runs fn on another thread, and gives the closed keys to place 1 when it waits. */
static void box_give_beside(struct box *x, thread_fn *fn, const char *key, const char *after,
                            const char *upto)
{
    struct waiting w = {.b = x->b, .key = key};
    struct thread t;
    struct err err = {0};

    box_shut(x, after, upto);
    CHECK_OK(thread_start(&t, "waits", 0, fn, &w, &err));
    CHECK_SOON(table_waiting(x->s->table) == 1);
    box_give(x, after, upto, 1);
    thread_join(&t);
}

TEST(sharded_bucket, a_put_to_a_closed_key_goes_to_the_owner_that_opens_it)
{
    struct box x;

    box_open(&x);
    box_give_beside(&x, put_waits, "c", "b", "m");
    expect_place(&x, 0, false, "");
    expect_place(&x, 1, false, "c");
    lab_expect(x.b, "c", STR_EMPTY, STR("late"));
    box_close(&x);
}

TEST(sharded_bucket, a_listing_waits_for_the_keys_that_are_closed)
{
    struct box x;

    box_open(&x);
    lab_put(x.b, &x.a, "a", STR("1"));
    lab_put(x.b, &x.a, "n", STR("2"));
    lab_put(x.b, &x.a, "z", STR("3"));
    box_give_beside(&x, list_waits, NULL, "m", "p");
    box_close(&x);
}

/* --- keys that change their shard --- */

/* Moves the keys from place 1 to place 0, as the mover does. */
static void box_adopt(struct box *x, const char *after, const char *upto)
{
    struct bucket *from = sharded_home_place(x->s, 1), *to = sharded_home_place(x->s, 0);
    struct err err = {0};
    struct str last;
    bool more;

    box_shut(x, after, upto);
    CHECK_OK(local_adopt(to, from, str_z(after), str_z(upto), LOCAL_ADOPT_MAX, &x->a, &last, &more,
                         &err));
    CHECK(!more);
    box_give(x, after, upto, 0);
    from->ops->unref(from);
    to->ops->unref(to);
}

TEST(sharded_bucket, an_upload_goes_along_with_its_key)
{
    struct box x;
    struct str body = lab_bytes(3000, 1);
    struct put_options o = {0};
    struct put_result first, again;
    struct part_list parts;
    struct err err = {0};

    box_open(&x);
    struct upload_info u = lab_upload(x.b, &x.a, "n");
    struct upload_part part = lab_part(x.b, &x.a, &u, 1, body);
    struct upload_info other = lab_upload(x.b, &x.a, "o");
    box_adopt(&x, "m", "p");
    CHECK_OK(x.b->ops->list_parts(x.b, &x.a, &u, 0, 10, &parts, &err));
    CHECK_INT(parts.count, 1);
    CHECK_OK(x.b->ops->upload_finish(x.b, &x.a, &u, &part, 1, &o, &first, &err));
    CHECK_OK(x.b->ops->upload_finish(x.b, &x.a, &u, &part, 1, &o, &again, &err));
    CHECK_STR(again.etag, first.etag);
    CHECK_OK(x.b->ops->upload_abort(x.b, &other, &err));
    expect_place(&x, 0, false, "n");
    expect_place(&x, 1, false, "");
    lab_expect(x.b, "n", STR_EMPTY, body);
    box_close(&x);
}

TEST(sharded_bucket, versions_keep_their_ids_on_another_shard)
{
    struct box x;
    struct err err = {0};

    box_open(&x);
    CHECK_OK(x.b->ops->set_versions(x.b, true, &err));
    struct put_result old = lab_put(x.b, &x.a, "n", STR("old"));
    lab_put(x.b, &x.a, "n", STR("new"));
    box_adopt(&x, "m", "p");
    lab_expect(x.b, "n", STR_EMPTY, STR("new"));
    lab_expect(x.b, "n", old.version, STR("old"));
    lab_expect_list(x.b, &lab_everything, true, "n* n");
    box_close(&x);
}

TEST(sharded_bucket, a_bucket_that_is_plain_again_is_found_by_its_name)
{
    struct box x;
    struct err err = {0};

    box_open(&x);
    lab_put(x.b, &x.a, "n", STR("1"));
    box_adopt(&x, "m", "");
    struct shard_map *now = sharded_home_map(x.s), *next = map_draft(now);
    map_unref(now);
    map_remove_place(next, 1);
    next->state = SHARD_PLAIN;
    sharded_home_install(x.s, next);
    CHECK_ERR(x.b->ops->set_versions(x.b, true, &err), ERR_BUSY); /* the name is still ours */
    sharded_home_forget(&x.l.home, x.s);
    lab_put(x.b, &x.a, "o", STR("2"));
    lab_expect_list(x.b, &lab_everything, false, "n o");
    CHECK_OK(x.b->ops->set_versions(x.b, true, &err));
    struct bucket *plain = NULL;
    CHECK_OK(storage_open_bucket(&plain, x.l.lab.storage, STR("owner"), STR("box"), &err));
    CHECK(plain->storage == x.l.lab.storage);
    lab_expect_list(plain, &lab_everything, true, "n* o*");
    plain->ops->unref(plain);
    box_close(&x);
}
