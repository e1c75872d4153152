/* What every table of place calls must do. */
#include "unit/shard/place_conformance.h"

#include "base/clock.h"
#include "unit/object/bucket_conformance.h"

#include <stdio.h>

#define OWNER STR("owner")

static const struct shard_window everything;

/* A bucket and a shard of it. */
struct pair {
    struct bucket *whole, *shard; /* references */
    struct arena a;
};

static struct bucket *place_open(struct place_lab *l, struct str name)
{
    struct bucket *b = NULL;
    struct err err = {0};

    CHECK_OK(l->storage->ops->open_bucket(&b, l->storage, OWNER, name, &err));
    return b;
}

static bool place_exists(struct place_lab *l, struct str name)
{
    struct bucket *b = NULL;
    struct err err = {0};
    int code = l->storage->ops->open_bucket(&b, l->storage, OWNER, name, &err);

    if (code == 0)
        b->ops->unref(b);
    else
        CHECK_INT(code, ERR_NO_BUCKET);
    return code == 0;
}

/* Makes the buckets "whole" and "shard"; the first with the versions and lock of `state`. */
static struct pair pair_make(struct place_lab *l, const struct bucket_info *state)
{
    struct bucket_info info = state ? *state : (struct bucket_info){0};
    struct pair p = {.a = ARENA_INIT(0)};
    struct err err = {0};

    info.name = STR("whole");
    info.owner = OWNER;
    CHECK_OK(l->storage->ops->create_bucket(l->storage, &info, &err));
    p.whole = place_open(l, STR("whole"));
    CHECK_OK(l->ops->make_shard(p.whole, STR("shard"), &err));
    p.shard = place_open(l, STR("shard"));
    return p;
}

static void pair_release(struct pair *p)
{
    p->whole->ops->unref(p->whole);
    p->shard->ops->unref(p->shard);
    arena_release(&p->a);
}

/* Puts objects with these keys, which are separated by blanks. */
static void put_keys(struct pair *p, struct bucket *b, const char *keys)
{
    struct str rest = str_z(keys), key;

    while (str_token(&rest, " ", &key))
        lab_put(b, &p->a, arena_z(&p->a, key), key);
}

static uint64_t place_id_now(struct place_lab *l, struct str name)
{
    struct bucket *b = place_open(l, name);
    uint64_t id = 0;
    struct err err = {0};

    CHECK_OK(l->ops->id(b, &id, &err));
    CHECK(id > 0);
    b->ops->unref(b);
    return id;
}

static void expect_described(struct place_lab *l, struct bucket *b, struct str want)
{
    struct buf text = BUF_INIT(0);

    l->describe(b, &text);
    CHECK_STR(buf_str(&text), want);
    buf_release(&text);
}

/* --- buckets --- */

void conform_a_shard_has_the_id_of_its_bucket(struct place_lab *l)
{
    struct pair p = pair_make(l, NULL);
    uint64_t id = place_id_now(l, STR("whole"));
    struct err err = {0};

    CHECK(place_id_now(l, STR("shard")) == id);
    CHECK_OK(l->ops->make_shard(p.whole, STR("second"), &err));
    CHECK(place_id_now(l, STR("second")) == id);
    pair_release(&p);
}

void conform_a_later_bucket_of_the_name_has_another_id(struct place_lab *l)
{
    struct bucket_info info = {.name = STR("whole"), .owner = OWNER};
    struct pair p = pair_make(l, NULL);
    uint64_t id = place_id_now(l, info.name);
    struct err err = {0};

    CHECK_OK(l->storage->ops->remove_bucket(l->storage, OWNER, info.name, &err));
    CHECK_OK(l->storage->ops->create_bucket(l->storage, &info, &err));
    CHECK(place_id_now(l, info.name) != id);
    CHECK(place_id_now(l, STR("shard")) == id);
    pair_release(&p);
}

void conform_a_shard_begins_with_the_state_of_its_bucket(struct place_lab *l)
{
    static const struct bucket_info states[] = {
        {.versions = VERSIONS_NEVER},
        {.versions = VERSIONS_ON},
        {.versions = VERSIONS_SUSPENDED},
        {.versions = VERSIONS_ON, .object_lock = true},
    };
    struct bucket_info info;
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
        struct pair p = pair_make(l, &states[i]);
        CHECK_OK(p.shard->ops->info(p.shard, &p.a, &info, &err));
        CHECK_STR(info.owner, OWNER);
        CHECK_INT(info.versions, states[i].versions);
        CHECK_INT(info.object_lock, states[i].object_lock);
        pair_release(&p);
        CHECK_OK(l->ops->remove_shard(l->storage, STR("shard"), &err));
        CHECK_OK(l->storage->ops->remove_bucket(l->storage, OWNER, STR("whole"), &err));
    }
}

void conform_a_name_that_is_taken_is_not_used_again(struct place_lab *l)
{
    struct bucket_info log = {.name = STR("whole"), .owner = OWNER};
    struct pair p = pair_make(l, NULL);
    struct err err = {0};

    put_keys(&p, p.shard, "k");
    CHECK_ERR(l->ops->make_shard(p.whole, STR("shard"), &err), ERR_EXISTS);
    CHECK_ERR(l->ops->make_shard(p.whole, STR("whole"), &err), ERR_EXISTS);
    CHECK_ERR(l->ops->make_log(l->storage, &log, &err), ERR_EXISTS);
    lab_expect_list(p.shard, &lab_everything, false, "k");
    pair_release(&p);
}

void conform_a_shard_is_removed_when_it_is_empty(struct place_lab *l)
{
    struct pair p = pair_make(l, NULL);
    struct err err = {0};

    put_keys(&p, p.shard, "k");
    CHECK_ERR(l->ops->remove_shard(l->storage, STR("shard"), &err), ERR_CONFLICT);
    lab_remove(p.shard, &p.a, "k", STR_EMPTY);
    CHECK_ERR(l->ops->remove_shard(l->storage, STR("whole"), &err), ERR_INVALID);
    CHECK_OK(l->ops->remove_shard(l->storage, STR("shard"), &err));
    CHECK_ERR(l->ops->remove_shard(l->storage, STR("shard"), &err), ERR_NO_BUCKET);
    CHECK(place_exists(l, STR("whole")));
    CHECK(!place_exists(l, STR("shard")));
    pair_release(&p);
}

void conform_a_bucket_is_removed_and_never_a_later_one_of_its_name(struct place_lab *l)
{
    struct bucket_info info = {.name = STR("whole"), .owner = OWNER};
    struct pair p = pair_make(l, NULL);
    struct err err = {0};

    struct bucket *early = place_open(l, STR("whole"));
    put_keys(&p, p.whole, "k");
    CHECK_ERR(l->ops->remove_home(place_open(l, STR("whole")), &err), ERR_CONFLICT);
    lab_remove(p.whole, &p.a, "k", STR_EMPTY);
    CHECK_OK(l->ops->remove_home(place_open(l, STR("whole")), &err));
    CHECK(!place_exists(l, STR("whole")));
    CHECK_OK(l->storage->ops->create_bucket(l->storage, &info, &err));
    CHECK_ERR(l->ops->remove_home(early, &err), ERR_NO_BUCKET);
    CHECK(place_exists(l, STR("whole")));
    pair_release(&p);
}

void conform_a_map_bucket_is_made_and_removed(struct place_lab *l)
{
    struct bucket_info log = {.name = STR("log"), .owner = OWNER}, info;
    struct arena a = ARENA_INIT(0);
    struct err err = {0};

    CHECK_OK(l->ops->make_log(l->storage, &log, &err));
    struct bucket *b = place_open(l, log.name);
    CHECK_OK(b->ops->info(b, &a, &info, &err));
    CHECK_STR(info.owner, OWNER);
    CHECK_INT(info.versions, VERSIONS_NEVER);
    CHECK_ERR(l->ops->make_log(l->storage, &log, &err), ERR_EXISTS);
    CHECK_OK(l->ops->remove_log(l->storage, log.name, &err));
    CHECK(!place_exists(l, log.name));
    CHECK_ERR(l->ops->remove_log(l->storage, log.name, &err), ERR_NO_BUCKET);
    b->ops->unref(b);
    arena_release(&a);
}

void conform_a_fence_ends_the_calls_of_earlier_references(struct place_lab *l)
{
    struct pair p = pair_make(l, NULL);
    struct put_options o = {0};
    struct put_result put;
    struct str_reader body;
    struct err err = {0};

    str_reader_init(&body, STR("v"));
    l->ops->fence(l->storage, STR("whole"));
    CHECK_ERR(p.whole->ops->put(p.whole, &p.a, STR("k"), &body.reader, 1, &o, &put, &err),
              ERR_BUSY);
    struct bucket *later = place_open(l, STR("whole"));
    lab_expect_list(later, &lab_everything, false, "");
    put_keys(&p, later, "a");
    put_keys(&p, p.shard, "b"); /* other buckets are not fenced */
    later->ops->unref(later);
    pair_release(&p);
}

/* --- counting --- */

void conform_usage_is_the_sum_of_the_buckets(struct place_lab *l)
{
    struct pair p = pair_make(l, &(struct bucket_info){.versions = VERSIONS_ON});
    struct bucket *both[] = {p.whole, p.shard};
    struct bucket_usage u;
    struct err err = {0};

    put_keys(&p, p.whole, "a b bb");
    put_keys(&p, p.shard, "c c ccc");
    CHECK_OK(l->ops->usage(both, 2, &u, &err));
    CHECK_INT(u.objects, 5);
    CHECK_INT(u.bytes, 8);
    CHECK_INT(u.old_versions, 1);
    CHECK_INT(u.old_bytes, 1);
    CHECK_OK(l->ops->usage(both, 1, &u, &err));
    CHECK_INT(u.objects, 3);
    pair_release(&p);
}

void conform_the_keys_of_a_window_are_counted(struct place_lab *l)
{
    static const struct {
        const char *after, *upto;
        uint64_t count;
    } rows[] = {{"", "", 6},  {"a", "d", 3}, {"aa", "cc", 2}, {"d", "a", 0},
                {"", "a", 1}, {"f", "", 0},  {"d", "", 2}};
    struct pair p = pair_make(l, &(struct bucket_info){.versions = VERSIONS_ON});
    struct err err = {0};

    put_keys(&p, p.whole, "a b b c d e");
    lab_remove(p.whole, &p.a, "d", STR_EMPTY); /* a marker counts, and so does an upload */
    (void)lab_upload(p.whole, &p.a, "f");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct shard_window w = {str_z(rows[i].after), str_z(rows[i].upto)};
        struct place_sample s = {0};
        CHECK_OK(l->ops->sample(p.whole, &w, 0, &p.a, &s, &err));
        CHECK_INT(s.count, rows[i].count);
        CHECK_INT(s.key_count, 0);
    }
    pair_release(&p);
}

/* The number at the end of a key like "k017". */
static uint64_t key_number(struct str key)
{
    uint64_t number = 0;

    CHECK_INT(key.len, 4);
    CHECK_INT(str_u64(str_n(key.p + 1, 3), &number), 0);
    return number;
}

void conform_a_sample_has_evenly_spaced_keys(struct place_lab *l)
{
    struct shard_window w = {STR("k005"), STR("k104")};
    struct pair p = pair_make(l, NULL);
    struct place_sample s = {0};
    char key[8];
    struct err err = {0};

    for (int i = 0; i < 120; i++) {
        snprintf(key, sizeof(key), "k%03d", i);
        lab_put(p.whole, &p.a, key, STR("v"));
    }
    CHECK_OK(l->ops->sample(p.whole, &w, 32, &p.a, &s, &err));
    CHECK_INT(s.count, 99);
    CHECK(s.key_count > 16 && s.key_count <= 32);
    uint64_t distance = key_number(s.keys[1]) - key_number(s.keys[0]);
    CHECK(key_number(s.keys[0]) > 5 && key_number(s.keys[0]) <= 5 + distance);
    for (size_t i = 1; i < s.key_count; i++)
        CHECK_INT(key_number(s.keys[i]) - key_number(s.keys[i - 1]), distance);
    CHECK(key_number(s.keys[s.key_count - 1]) <= 104);
    CHECK(key_number(s.keys[s.key_count - 1]) > 104 - distance);
    pair_release(&p);
}

void conform_a_key_with_few_versions_is_not_too_large(struct place_lab *l)
{
    struct pair p = pair_make(l, &(struct bucket_info){.versions = VERSIONS_ON});
    struct place_large large = {0};
    struct err err = {0};

    put_keys(&p, p.whole, "a b b b c");
    CHECK_OK(l->ops->find_large(p.whole, &everything, &p.a, &large, &err));
    CHECK_INT(large.key.len, 0);
    pair_release(&p);
}

/* --- giving --- */

void conform_the_keys_of_a_window_are_given_and_no_others(struct place_lab *l)
{
    static const struct {
        const char *after, *upto, *stays, *given;
    } rows[] = {{"a", "c", "a d", "b c"}, {"aa", "cc", "a d", "b c"}, {"d", "", "a b c d", ""},
                {"", "a", "b c d", "a"},  {"c", "b", "a b c d", ""},  {"", "", "", "a b c d"}};
    struct pair p = pair_make(l, NULL);
    bool more = true;
    uint64_t removed = 0;
    struct err err = {0};

    put_keys(&p, p.whole, "a b c d");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct shard_window w = {str_z(rows[i].after), str_z(rows[i].upto)};
        CHECK_OK(l->ops->give(p.shard, p.whole, &w, &err));
        lab_expect_list(p.shard, &lab_everything, false, rows[i].given);
        /* Copies that are left behind are garbage once the window is the target's. */
        for (more = true; more;)
            CHECK_OK(l->ops->remove_keys(p.whole, &w, &more, &removed, &err));
        lab_expect_list(p.whole, &lab_everything, false, rows[i].stays);
        CHECK_OK(l->ops->give(p.whole, p.shard, &w, &err));
        for (more = true; more;)
            CHECK_OK(l->ops->remove_keys(p.shard, &w, &more, &removed, &err));
        lab_expect_list(p.whole, &lab_everything, false, "a b c d");
    }
    pair_release(&p);
}

/* Gives the key what an object may have. */
static void put_rich(struct pair *p, const char *key)
{
    struct http_header headers[] = {{STR("Content-Type"), STR("text/plain")},
                                    {STR("x-amz-meta-colour"), STR("red")}};
    struct put_options o = {.meta = {.headers = headers,
                                     .header_count = ARRAY_SIZE(headers),
                                     .tags = STR("k=v"),
                                     .owner = OWNER}};
    struct put_result put;
    struct str_reader body;
    struct err err = {0};

    str_reader_init(&body, STR("a rich body"));
    CHECK_OK(p->whole->ops->put(p->whole, &p->a, str_z(key), &body.reader, body.rest.len, &o, &put,
                                &err));
}

/* Puts objects, versions, markers, an object of parts and open uploads. */
static void put_all_kinds(struct pair *p)
{
    struct err err = {0};

    put_rich(p, "rich");
    put_keys(p, p->whole, "a b");
    CHECK_OK(p->whole->ops->set_versions(p->whole, true, &err));
    put_keys(p, p->whole, "a c c");
    lab_remove(p->whole, &p->a, "b", STR_EMPTY);
    struct upload_info made = lab_upload(p->whole, &p->a, "parts");
    struct upload_part part = lab_part(p->whole, &p->a, &made, 1, STR("one part"));
    struct put_options o = {0};
    struct put_result put;
    CHECK_OK(p->whole->ops->upload_finish(p->whole, &p->a, &made, &part, 1, &o, &put, &err));
    struct upload_info open = lab_upload(p->whole, &p->a, "open");
    (void)lab_part(p->whole, &p->a, &open, 1, STR("part of an open upload"));
}

/* A bucket with objects of all kinds, a shard of it, and how the bucket looks. */
struct filled {
    struct pair p;
    struct buf before;
};

static struct filled filled_make(struct place_lab *l)
{
    struct filled f = {.p = pair_make(l, NULL), .before = BUF_INIT(0)};

    put_all_kinds(&f.p);
    l->describe(f.p.whole, &f.before);
    return f;
}

static void filled_release(struct filled *f)
{
    buf_release(&f->before);
    pair_release(&f->p);
}

void conform_what_is_given_looks_as_before(struct place_lab *l)
{
    struct filled f = filled_make(l);
    struct err err = {0};

    CHECK_OK(l->ops->give(f.p.shard, f.p.whole, &everything, &err));
    expect_described(l, f.p.shard, buf_str(&f.before));
    filled_release(&f);
}

void conform_giving_twice_is_giving_once(struct place_lab *l)
{
    struct shard_window part = {STR_EMPTY, STR("c")};
    struct filled f = filled_make(l);
    struct err err = {0};

    CHECK_OK(l->ops->give(f.p.shard, f.p.whole, &part, &err)); /* as if a kill had ended it here */
    for (int i = 0; i < 2; i++) {
        CHECK_OK(l->ops->give(f.p.shard, f.p.whole, &everything, &err));
        expect_described(l, f.p.shard, buf_str(&f.before));
    }
    filled_release(&f);
}

void conform_giving_is_undone(struct place_lab *l)
{
    struct filled f = filled_make(l);
    struct err err = {0};

    CHECK_OK(l->ops->give(f.p.shard, f.p.whole, &everything, &err));
    for (int i = 0; i < 2; i++) { /* undoing may be repeated, too */
        CHECK_OK(l->ops->take_back(f.p.shard, f.p.whole, &everything, &err));
        expect_described(l, f.p.whole, buf_str(&f.before));
    }
    filled_release(&f);
}

void conform_giving_is_undone_when_it_was_interrupted(struct place_lab *l)
{
    struct shard_window part = {STR_EMPTY, STR("b")};
    struct filled f = filled_make(l);
    struct err err = {0};

    CHECK_OK(l->ops->give(f.p.shard, f.p.whole, &part, &err));
    CHECK_OK(l->ops->take_back(f.p.shard, f.p.whole, &everything, &err));
    expect_described(l, f.p.whole, buf_str(&f.before));
    filled_release(&f);
}

void conform_a_key_that_the_target_has_is_not_overwritten(struct place_lab *l)
{
    struct pair p = pair_make(l, NULL);
    struct err err = {0};

    put_keys(&p, p.whole, "a b c");
    lab_put(p.shard, &p.a, "b", STR("of the shard"));
    CHECK_ERR(l->ops->give(p.shard, p.whole, &everything, &err), ERR_CONFLICT);
    lab_expect(p.shard, "b", STR_EMPTY, STR("of the shard"));
    lab_expect_list(p.whole, &lab_everything, false, "a b c");
    pair_release(&p);
}

/* --- garbage --- */

void conform_garbage_is_removed_from_its_window_alone(struct place_lab *l)
{
    struct shard_window w = {STR("a"), STR("c")};
    struct pair p = pair_make(l, &(struct bucket_info){.versions = VERSIONS_ON});
    uint64_t removed = 10;
    bool more = true;
    struct err err = {0};

    put_keys(&p, p.shard, "a b b c d");
    (void)lab_upload(p.shard, &p.a, "bb");
    while (more)
        CHECK_OK(l->ops->remove_keys(p.shard, &w, &more, &removed, &err));
    CHECK_INT(removed, 13);
    lab_expect_list(p.shard, &lab_everything, true, "a* d*");
    struct list_options one = {.limit = 1};
    struct upload_list uploads;
    CHECK_OK(p.shard->ops->list_uploads(p.shard, &p.a, &one, &uploads, &err));
    CHECK_INT(uploads.count, 0);
    CHECK_OK(l->ops->remove_keys(p.shard, &w, &more, &removed, &err));
    CHECK(!more);
    CHECK_INT(removed, 13);
    pair_release(&p);
}

void conform_garbage_is_removed_in_spite_of_object_lock(struct place_lab *l)
{
    struct pair p =
        pair_make(l, &(struct bucket_info){.versions = VERSIONS_ON, .object_lock = true});
    struct object_meta lock = {.retain_until_ms = clock_wall_ms() + MS_PER_HOUR,
                               .retain_compliance = true,
                               .legal_hold = true};
    struct meta_options o = {0};
    uint64_t removed = 0;
    bool more = true;
    struct err err = {0};

    put_keys(&p, p.shard, "k");
    CHECK_OK(p.shard->ops->set_meta(p.shard, &p.a, STR("k"), STR_EMPTY,
                                    META_RETENTION | META_LEGAL_HOLD, &lock, &o, &err));
    while (more)
        CHECK_OK(l->ops->remove_keys(p.shard, &everything, &more, &removed, &err));
    CHECK_INT(removed, 1);
    CHECK_OK(l->ops->remove_shard(l->storage, STR("shard"), &err));
    pair_release(&p);
}
