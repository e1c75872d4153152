/* Merged listings of three buckets against a bucket that holds the same keys alone. */
#include "object/merge.h"
#include "unit/object/local_lab.h"

enum { BUCKETS = 3, STEPS = 80 };

static const char *const merge_keys[] = {"a",    "a/",   "a/1",  "a/2",   "a/b/1",       "a/b/2",
                                         "a0",   "b",    "b/1",  "b/2/",  "c/1",         "c/2",
                                         "d//1", "d//2", "e/e/", "e/e/e", "f\xc3\xbf/1", "g"};

struct merge_lab {
    struct local_lab l;
    struct bucket *buckets[BUCKETS], *whole;
    struct merge m;
    struct arena a;
    unsigned random;
    bool versions;
};

static unsigned merge_random(struct merge_lab *l, unsigned below)
{
    l->random = l->random * 1103515245 + 12345;
    return (l->random >> 16) % below;
}

static void merge_lab_open(struct merge_lab *l, unsigned seed, bool versions)
{
    static const char *const names[BUCKETS] = {"one", "two", "three"};
    struct err err = {0};

    *l = (struct merge_lab){.a = ARENA_INIT(0), .random = seed, .versions = versions};
    local_lab_open(&l->l, NULL);
    l->whole = lab_bucket(l->l.lab.storage, "whole");
    for (int i = 0; i < BUCKETS; i++)
        l->buckets[i] = lab_bucket(l->l.lab.storage, names[i]);
    for (int i = 0; versions && i < BUCKETS; i++)
        CHECK_OK(l->buckets[i]->ops->set_versions(l->buckets[i], true, &err));
    if (versions)
        CHECK_OK(l->whole->ops->set_versions(l->whole, true, &err));
    l->m = (struct merge){.buckets = l->buckets, .count = BUCKETS};
}

static void merge_lab_close(struct merge_lab *l)
{
    for (int i = 0; i < BUCKETS; i++)
        l->buckets[i]->ops->unref(l->buckets[i]);
    l->whole->ops->unref(l->whole);
    arena_release(&l->a);
    local_lab_close(&l->l);
}

/* Each key is in one of the buckets, always the same. */
static struct bucket *merge_bucket_of(struct merge_lab *l, size_t key)
{
    return l->buckets[(key * 7 + 3) % BUCKETS];
}

static void merge_change(struct merge_lab *l)
{
    size_t i = merge_random(l, ARRAY_SIZE(merge_keys));
    const char *key = merge_keys[i];
    struct str body = lab_bytes(merge_random(l, 50) + 1, l->random);

    if (merge_random(l, 4) == 0) {
        lab_remove(merge_bucket_of(l, i), &l->a, key, STR_EMPTY);
        lab_remove(l->whole, &l->a, key, STR_EMPTY);
    } else {
        lab_put(merge_bucket_of(l, i), &l->a, key, body);
        lab_put(l->whole, &l->a, key, body);
    }
}

static void merge_expect_entry(const struct list_entry *got, const struct list_entry *want)
{
    CHECK_STR(got->info.key, want->info.key);
    CHECK_INT(got->is_prefix, want->is_prefix);
    CHECK_STR(got->info.etag, want->info.etag);
    CHECK_INT(got->info.size, want->info.size);
    CHECK_INT(got->info.is_marker, want->info.is_marker);
    CHECK_INT(got->info.is_latest, want->info.is_latest);
}

/* All pages of the merged listing are one listing of the whole bucket. */
static void merge_expect_same(struct merge_lab *l, struct list_options o)
{
    struct list_options all = o, page = o;
    struct list_result want, got = {.more = true};
    struct bucket *w = l->whole;
    struct err err = {0};
    size_t at = 0;

    all.limit = OBJECT_LIST_MAX;
    CHECK_OK((l->versions ? w->ops->list_versions : w->ops->list)(w, &l->a, &all, &want, &err));
    while (got.more) {
        CHECK_OK(merge_list(&l->m, &l->a, &page, l->versions, &got, &err));
        CHECK(got.count <= o.limit);
        CHECK(at + got.count <= want.count);
        for (size_t i = 0; i < got.count; i++)
            merge_expect_entry(&got.entries[i], &want.entries[at++]);
        CHECK_INT(got.more, at < want.count);
        page.after = got.next;
        page.after_version = l->versions ? got.next_version : STR_EMPTY;
    }
    CHECK_INT(at, want.count);
}

static void merge_expect_all(struct merge_lab *l)
{
    static const struct list_options asked[] = {
        {.limit = 1000},
        {.limit = 2},
        {.limit = 3, .delimiter = {"/", 1}},
        {.limit = 1, .delimiter = {"/", 1}, .prefix = {"a/", 2}},
        {.limit = 5, .prefix = {"b", 1}},
        {.limit = 2, .delimiter = {"/", 1}, .after = {"a/b", 3}},
    };

    for (size_t i = 0; i < ARRAY_SIZE(asked); i++)
        for (l->m.page = 0; l->m.page < 4; l->m.page++)
            merge_expect_same(l, asked[i]);
}

static void merge_run(unsigned seed, bool versions)
{
    struct merge_lab l;

    merge_lab_open(&l, seed, versions);
    merge_expect_all(&l); /* empty */
    for (int i = 0; i < STEPS; i++)
        merge_change(&l);
    merge_expect_all(&l);
    merge_lab_close(&l);
}

TEST(merge, three_buckets_list_as_one)
{
    merge_run(1, false);
}

TEST(merge, versions_of_three_buckets_list_as_one)
{
    merge_run(2, true);
}

/* By the length of the key; a key that begins with 'b' is on its first bucket. */
static int merge_by_length(void *ctx, struct arena *a, struct merge_key *keys, size_t count,
                           struct err *err)
{
    size_t *asked = ctx;

    (void)a;
    (void)err;
    for (size_t i = 0; i < count; i++)
        keys[i].from = keys[i].key.p[0] == 'b' ? MERGE_FIRST : (int)(keys[i].key.len % BUCKETS);
    *asked += count;
    return 0;
}

static void merge_expect_chosen(struct merge_lab *l, const struct list_options *o, const char *want)
{
    struct list_result got;
    struct buf text = BUF_INIT(0);
    struct err err = {0};

    CHECK_OK(merge_list(&l->m, &l->a, o, false, &got, &err));
    for (size_t i = 0; i < got.count; i++)
        buf_appendf(&text, "%s" STR_FMT ":%llu", i ? " " : "", STR_ARG(got.entries[i].info.key),
                    (unsigned long long)got.entries[i].info.size);
    CHECK_STR(buf_str(&text), str_z(want));
    buf_release(&text);
}

/* Bodies in bucket i have i + 1 bytes. */
TEST(merge, a_key_is_listed_from_the_bucket_that_the_caller_chooses)
{
    struct list_options all = {.limit = 1000}, folded = {.limit = 1000, .delimiter = STR("/")};
    struct merge_lab l;
    size_t asked = 0;

    merge_lab_open(&l, 1, false);
    l.m.choose = merge_by_length;
    l.m.ctx = &asked;
    for (int i = 0; i < BUCKETS; i++) {
        struct str body = lab_bytes((size_t)i + 1, 1);
        lab_put(l.buckets[i], &l.a, "x", body);
        lab_put(l.buckets[i], &l.a, "xx", body);
        lab_put(l.buckets[i], &l.a, "yyy", body);
        lab_put(l.buckets[i], &l.a, "z", lab_bytes(9, 9)); /* alike: nobody is asked */
    }
    lab_put(l.buckets[2], &l.a, "b1", lab_bytes(3, 1));
    lab_put(l.buckets[1], &l.a, "b1", lab_bytes(2, 1));
    lab_put(l.buckets[0], &l.a, "gone", lab_bytes(1, 1)); /* it would be in bucket 1 */
    lab_put(l.buckets[0], &l.a, "p/3", lab_bytes(1, 1));
    lab_put(l.buckets[1], &l.a, "q/33", lab_bytes(1, 1));
    merge_expect_chosen(&l, &all, "b1:2 p/3:1 q/33:1 x:2 xx:3 yyy:1 z:9");
    CHECK_INT(asked, 7);
    lab_remove(l.buckets[1], &l.a, "q/33", STR_EMPTY);
    lab_put(l.buckets[0], &l.a, "q/33", lab_bytes(1, 1)); /* so the prefix holds nothing */
    merge_expect_chosen(&l, &folded, "b1:2 p/:0 x:2 xx:3 yyy:1 z:9");
    merge_lab_close(&l);
}

TEST(merge, uploads_of_all_buckets_are_listed_by_key_and_id)
{
    struct list_options o = {.limit = 2};
    struct upload_list got = {.more = true};
    struct err err = {0};
    struct str key = STR_EMPTY, id = STR_EMPTY;
    struct merge_lab l;
    size_t found = 0;

    merge_lab_open(&l, 1, false);
    for (int i = 0; i < 9; i++)
        lab_upload(l.buckets[i % BUCKETS], &l.a, i % 2 ? "k" : "j");
    while (got.more) {
        o.after = got.next_key;
        o.after_version = got.next_id;
        CHECK_OK(merge_uploads(&l.m, &l.a, &o, &got, &err));
        for (size_t i = 0; i < got.count; i++, found++) {
            int order = str_cmp(key, got.uploads[i].key);
            CHECK(order < 0 || (order == 0 && str_cmp(id, got.uploads[i].id) < 0));
            key = got.uploads[i].key;
            id = got.uploads[i].id;
        }
    }
    CHECK_INT(found, 9);
    merge_lab_close(&l);
}
