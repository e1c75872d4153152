/* Listing repositories: refs in the order of keys, and folded listings that agree with flat ones.
 */
#include "lake/change.h"
#include "unit/lake/front_lab.h"

#include <stdio.h>
#include <stdlib.h>

/* --- the root --- */

FRONT_TEST(lake_list, refs_come_in_the_order_of_their_keys)
{
    struct bucket *b = front_lab_bucket(f);
    struct list_options folded = {.delimiter = STR("/")};

    front_lab_branch(f, "a", false);
    front_lab_branch(f, "a-b", false);
    front_lab_branch(f, "a-b-c", false);
    front_lab_branch(f, "a0", false);
    front_lab_branch(f, "hidden", true);
    front_lab_tag(f, "a!t", "main");
    front_lab_tag(f, "zero", "main");
    front_lab_tag(f, "a-b.x", "main");
    lab_expect_list(b, &folded, false,
                    "[a!t/] [a-b-c/] [a-b.x/] [a-b/] [a/] [a0/] [main/] [zero/]");
    folded.prefix = STR("a-b");
    lab_expect_list(b, &folded, false, "[a-b-c/] [a-b.x/] [a-b/]");
    folded.prefix = STR("hid");
    lab_expect_list(b, &folded, false, "");
    lab_expect_list(b, &lab_everything, false, "");
    b->ops->unref(b);
}

FRONT_TEST(lake_list, a_page_of_refs_goes_on_where_the_last_one_ended)
{
    static const char *const names[] = {"a", "a-b", "a-b-c", "a0", "b", "b-", "b-a"};
    struct bucket *b = front_lab_bucket(f);
    struct list_options o = {.delimiter = STR("/"), .limit = 1};
    struct arena a = ARENA_INIT(0);
    struct buf seen = {0};
    struct list_result got;
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        front_lab_branch(f, names[i], false);
    do {
        CHECK_OK(b->ops->list(b, &a, &o, &got, &err));
        CHECK_INT(got.count, 1);
        buf_append_str(&seen, got.entries[0].info.key);
        o.after = got.next;
    } while (got.more);
    CHECK_STR(buf_str(&seen), STR("a-b-c/a-b/a/a0/b-/b-a/b/main/"));
    buf_release(&seen);
    arena_release(&a);
    b->ops->unref(b);
}

FRONT_TEST(lake_list, a_ref_is_listed_behind_one_of_its_keys_while_it_has_more)
{
    struct bucket *b = front_lab_bucket(f);
    struct arena a = ARENA_INIT(0);

    lab_put(b, &a, "main/k1", STR("1"));
    lab_put(b, &a, "main/k2", STR("2"));
    front_lab_branch(f, "next", false);
    struct list_options o = {.delimiter = STR("/"), .after = STR("main/k1")};
    lab_expect_list(b, &o, false, "[main/] [next/]");
    o.after = STR("main/k2");
    lab_expect_list(b, &o, false, "[next/]");
    o.after = STR("main/");
    lab_expect_list(b, &o, false, "[next/]");
    o.after = STR("main");
    lab_expect_list(b, &o, false, "[main/] [next/]");
    o = (struct list_options){.after = STR("main/k1")};
    lab_expect_list(b, &o, false, "main/k2");
    o = (struct list_options){.prefix = STR("main/"), .after = STR("a")};
    lab_expect_list(b, &o, false, "main/k1 main/k2");
    o.after = STR("main0");
    lab_expect_list(b, &o, false, "");
    o = (struct list_options){.prefix = STR("nowhere/")};
    lab_expect_list(b, &o, false, "");
    arena_release(&a);
    b->ops->unref(b);
}

/* --- folding --- */

enum { FOLD_BRANCHES = 4, FOLD_KEYS = 60, FOLD_ROUNDS = 60, FOLD_TIMES = 3 };
static const char *const fold_branches[FOLD_BRANCHES] = {"main", "ma", "ma-x", "b"};

/* A random path of the letters, so that many paths share beginnings. */
static struct str random_path(struct arena *a, unsigned *seed)
{
    static const char letters[] = "ab/-";
    char path[8];
    size_t len = 1 + (size_t)(rand_r(seed) % 6);

    for (size_t i = 0; i < len; i++)
        path[i] = letters[rand_r(seed) % 4];
    return arena_str(a, str_n(path, len));
}

/* The keys that a listing must have, in no order. */
struct fold_model {
    struct str keys[FOLD_BRANCHES * (FOLD_KEYS + 1) * FOLD_TIMES];
    size_t count;
};

static void fold_put(struct fold_model *m, struct bucket *b, struct arena *a, struct str key)
{
    bool found = false;

    lab_put(b, a, key.p, STR("x"));
    for (size_t i = 0; i < m->count; i++)
        found |= str_eq(m->keys[i], key);
    if (!found)
        m->keys[m->count++] = key;
}

static void fold_remove(struct fold_model *m, struct bucket *b, struct arena *a, struct str key)
{
    lab_remove(b, a, key.p, STR_EMPTY);
    for (size_t i = 0; i < m->count; i++)
        if (str_eq(m->keys[i], key))
            m->keys[i--] = m->keys[--m->count];
}

static int fold_key_order(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* Fills every layer of the branches: commits, sealed tokens, staged rows, and removals in each. A
 * removal is mostly of a key that is there, in whatever layer. */
static void fold_fill(struct fold_model *m, struct front_lab *f, struct bucket *b, struct arena *a,
                      unsigned *seed)
{
    struct lake_repo now;
    struct lake_branch branch;
    struct err err = {0};

    for (int step = 0; step < FOLD_BRANCHES * FOLD_KEYS; step++) {
        const char *name = fold_branches[rand_r(seed) % FOLD_BRANCHES];
        struct str path = random_path(a, seed);
        struct str key = arena_fmt(a, "%s/" STR_FMT, name, STR_ARG(path));
        if (rand_r(seed) % 4 == 0)
            fold_remove(m, b, a,
                        step % 5 && m->count ? m->keys[(size_t)rand_r(seed) % m->count] : key);
        else
            fold_put(m, b, a, key);
        if (step % 97 == 96)
            front_lab_commit(f, name);
        else if (step % 31 == 30)
            CHECK_OK(lake_seal(f->lake.lake, a, &f->lake.repo, str_z(name), &now, &branch, &err));
    }
    for (size_t i = 0; i < FOLD_BRANCHES; i++) /* a branch without objects folds all the same */
        fold_put(m, b, a, arena_fmt(a, "%s/z", fold_branches[i]));
}

/* Lists all pages of `limit` entries, and appends the keys, each with a NUL. */
static void list_pages(struct bucket *b, struct arena *a, struct list_options o, struct buf *out)
{
    struct list_result got;
    struct err err = {0};

    do {
        CHECK_OK(b->ops->list(b, a, &o, &got, &err));
        CHECK(got.count <= o.limit);
        for (size_t i = 0; i < got.count; i++) {
            buf_append_str(out, got.entries[i].info.key);
            buf_append_char(out, got.entries[i].is_prefix ? '\1' : '\0');
        }
        CHECK(!got.more || got.count == o.limit);
        o.after = got.next;
    } while (got.more);
}

/* Folds a flat listing, as S3 describes it. */
static void fold_flat(struct str flat, const struct list_options *o, struct buf *out)
{
    struct str last = STR_EMPTY;

    while (flat.len) {
        struct str key = str_head(flat, (size_t)str_chr(flat, '\0'));
        flat = str_skip(flat, key.len + 1);
        if (!str_starts(key, o->prefix) || str_cmp(key, o->after) <= 0)
            continue;
        ptrdiff_t at = str_find(str_skip(key, o->prefix.len), o->delimiter);
        struct str common = str_head(key, o->prefix.len + (size_t)at + o->delimiter.len);
        if (at >= 0 && (str_eq(common, last) || str_eq(common, o->after)))
            continue;
        buf_append_str(out, at < 0 ? key : common);
        buf_append_char(out, at < 0 ? '\0' : '\1');
        last = at < 0 ? STR_EMPTY : common;
    }
}

/* Lists flat by pages of a random size, which must give the keys of the model. */
static void fold_check_flat(struct fold_model *m, struct bucket *b, struct arena *a, unsigned *seed,
                            struct buf *flat)
{
    struct buf want = BUF_INIT(0);

    list_pages(b, a, (struct list_options){.limit = 1 + (size_t)(rand_r(seed) % 99)}, flat);
    qsort(m->keys, m->count, sizeof(m->keys[0]), fold_key_order);
    for (size_t i = 0; i < m->count; i++) {
        buf_append_str(&want, m->keys[i]);
        buf_append_char(&want, '\0');
    }
    CHECK_STR(buf_str(flat), buf_str(&want));
    buf_release(&want);
}

static void fold_check(struct str flat, struct bucket *b, struct arena *a, unsigned *seed)
{
    static const char *const delimiters[] = {"/", "a", "-", "//", "/a", "a/", "b-"};
    static const char *const prefixes[] = {"", "m", "ma", "ma-x", "main/", "ma/a", "b/a/", "b/-"};

    for (int round = 0; round < FOLD_ROUNDS; round++) {
        struct buf want = BUF_INIT(0), got = BUF_INIT(0);
        struct str after = random_path(a, seed);
        struct list_options o = {.prefix = str_z(prefixes[rand_r(seed) % ARRAY_SIZE(prefixes)]),
                                 .delimiter =
                                     str_z(delimiters[rand_r(seed) % ARRAY_SIZE(delimiters)]),
                                 .limit = 1 + (size_t)(rand_r(seed) % 9)};
        if (round % 3 == 0)
            o.after = arena_fmt(a, "%s/" STR_FMT, fold_branches[rand_r(seed) % FOLD_BRANCHES],
                                STR_ARG(after));
        fold_flat(flat, &o, &want);
        list_pages(b, a, o, &got);
        if (!str_eq(buf_str(&got), buf_str(&want)))
            test_fail(__FILE__, __LINE__,
                      "prefix '" STR_FMT "' delimiter '" STR_FMT "' after '" STR_FMT
                      "' limit %zu: %zu bytes, not %zu",
                      STR_ARG(o.prefix), STR_ARG(o.delimiter), STR_ARG(o.after), o.limit, got.len,
                      want.len);
        buf_release(&want);
        buf_release(&got);
    }
}

FRONT_TEST(lake_list, folding_gives_what_the_flat_listing_has)
{
    struct bucket *b = front_lab_bucket(f);
    struct arena a = ARENA_INIT(1 << 30);
    struct fold_model m = {0};
    unsigned seed = 7;

    for (size_t i = 1; i < FOLD_BRANCHES; i++)
        front_lab_branch(f, fold_branches[i], false);
    for (int i = 0; i < FOLD_TIMES; i++) {
        struct buf flat = BUF_INIT(0);
        fold_fill(&m, f, b, &a, &seed);
        fold_check_flat(&m, b, &a, &seed, &flat);
        CHECK(flat.len > 1000);
        fold_check(buf_str(&flat), b, &a, &seed);
        buf_release(&flat);
    }
    arena_release(&a);
    b->ops->unref(b);
}
