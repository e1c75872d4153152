/* Comparing buckets on storages of every kind. */
#include "copy/compare.h"

#include "unit/replica/sides.h"

#include <stdio.h>

/* What was told, as "key:kind" or "key#index:kind", with a blank between. */
struct told {
    struct buf text, reached;
    uint64_t keys;
    size_t watched;
    int stop_after; /* calls of reached(); 0: never */
    struct str last;
    struct arena a;
};

static int tell(void *ctx, const struct difference *d, struct err *err)
{
    struct told *t = ctx;

    (void)err;
    if (t->text.len)
        buf_append_char(&t->text, ' ');
    buf_append_str(&t->text, d->key);
    if (d->versioned)
        buf_appendf(&t->text, "#%llu", (unsigned long long)d->index);
    buf_appendf(&t->text, ":%s", difference_name(d->kind));
    if (d->kind == DIFFERENCE_MISSING)
        buf_appendf(&t->text, "%d%d", d->sides[0].found, d->sides[1].found);
    return 0;
}

static int reached(void *ctx, struct str after, uint64_t keys, struct err *err)
{
    struct told *t = ctx;

    t->keys += keys;
    t->last = arena_str(&t->a, after);
    if (t->stop_after && --t->stop_after == 0)
        return err_set(err, ERR_CANCELED, "stopped");
    return 0;
}

static int watch(void *ctx, size_t side, uint64_t bytes, struct err *err)
{
    struct told *t = ctx;

    (void)side;
    (void)bytes;
    (void)err;
    t->watched++;
    return 0;
}

static void told_release(struct told *t)
{
    buf_release(&t->text);
    buf_release(&t->reached);
    arena_release(&t->a);
    *t = (struct told){0};
}

static struct compare_result compare(struct sides *s, struct told *t,
                                     const struct compare_options *with)
{
    struct bucket *buckets[] = {s->from, s->to};
    struct compare_options o = *with;
    struct compare_result out;
    struct err err = {0};

    o.buckets = buckets;
    o.count = 2;
    o.tell = tell;
    o.reached = reached;
    o.watch = watch;
    o.ctx = t;
    CHECK_OK(compare_buckets(&out, &o, &err));
    return out;
}

static void expect(struct sides *s, const struct compare_options *o, const char *want)
{
    struct told t = {0};

    compare(s, &t, o);
    CHECK_STR(buf_str(&t.text), str_z(want));
    CHECK(t.watched > 0);
    told_release(&t);
}

static const struct compare_options all = {0}, sizes_only = {.ignore_etags = true},
                                    etags_only = {.ignore_sizes = true},
                                    names_only = {.ignore_sizes = true, .ignore_etags = true},
                                    by_content = {.contents = true},
                                    by_version = {.versions = true};

static void put_both(struct sides *s, const char *key, const char *body)
{
    lab_put(s->from, &s->a, key, str_z(body));
    lab_put(s->to, &s->a, key, str_z(body));
}

TEST_SIDES(compare, empty_and_equal_buckets_are_the_same)
{
    expect(s, &all, "");
    put_both(s, "a", "1");
    put_both(s, "dir/", "");
    put_both(s, "dir/x y%+\xc3\xbc", "22");
    expect(s, &all, "");
    expect(s, &by_content, "");
    expect(s, &names_only, "");
}

TEST_SIDES(compare, what_differs_is_told_by_its_kind)
{
    put_both(s, "b", "same");
    lab_put(s->from, &s->a, "a", STR("1"));
    lab_put(s->to, &s->a, "c/", STR(""));
    lab_put(s->from, &s->a, "d", STR("one"));
    lab_put(s->to, &s->a, "d", STR("two"));
    lab_put(s->from, &s->a, "e", STR("one"));
    lab_put(s->to, &s->a, "e", STR("three"));
    expect(s, &all, "a:missing10 c/:missing01 d:etag e:size");
    expect(s, &sizes_only, "a:missing10 c/:missing01 e:size");
    expect(s, &etags_only, "a:missing10 c/:missing01 d:etag e:etag");
    expect(s, &names_only, "a:missing10 c/:missing01");
    expect(s, &by_content, "a:missing10 c/:missing01 d:content e:size");
    struct compare_options prefix = {.prefix = STR("d")}, after = {.after = STR("c/")};
    expect(s, &prefix, "d:etag");
    expect(s, &after, "d:etag e:size");
}

/* One part of everything, so the ETag has a dash. */
static void put_as_part(struct sides *s, struct bucket *b, const char *key, struct str body)
{
    struct upload_info u = lab_upload(b, &s->a, key);
    struct upload_part part = lab_part(b, &s->a, &u, 1, body);
    struct put_options o = {0};
    struct put_result out;
    struct err err = {0};

    CHECK_OK(b->ops->upload_finish(b, &s->a, &u, &part, 1, &o, &out, &err));
}

TEST_SIDES(compare, etags_of_parts_are_settled_by_the_bytes)
{
    struct str body = lab_bytes(3 * MIB, 1), other = lab_bytes(3 * MIB, 2);
    struct told t = {0};

    put_as_part(s, s->from, "equal", body);
    lab_put(s->to, &s->a, "equal", body);
    put_as_part(s, s->from, "other", body);
    lab_put(s->to, &s->a, "other", other);
    struct compare_result out = compare(s, &t, &all);
    CHECK_STR(buf_str(&t.text), STR("other:content"));
    CHECK_INT(out.bytes, 4 * 3 * MIB);
    CHECK_INT(out.differences, 1);
    told_release(&t);
}

static void put_with_checksum(struct sides *s, struct bucket *b, struct str body, bool as_part)
{
    struct object_meta meta = {
        .checksum = {.type = CHECKSUM_FULL_OBJECT, .kind = DIGEST_CRC64NVME}};
    struct put_options o = {0};
    struct put_result out;
    struct digest_value sum;
    struct str_reader r;
    struct err err = {0};

    digest_of(DIGEST_CRC64NVME, body, &sum);
    meta.checksum.value = digest_text(&s->a, &sum);
    o.meta = meta;
    str_reader_init(&r, body);
    if (!as_part) {
        CHECK_OK(b->ops->put(b, &s->a, STR("k"), &r.reader, body.len, &o, &out, &err));
        return;
    }
    struct upload_info u = {.key = STR("k"), .meta = meta};
    u.meta.checksum.value = STR_EMPTY;
    CHECK_OK(b->ops->upload_begin(b, &s->a, u.key, &u.meta, &u.id, &err));
    struct upload_part part = {0};
    CHECK_OK(b->ops->upload_part(b, &s->a, &u, 1, &r.reader, body.len, &o, &part, &err));
    part.checksum = meta.checksum;
    CHECK_OK(b->ops->upload_finish(b, &s->a, &u, &part, 1, &o, &out, &err));
}

TEST(compare, a_checksum_of_the_whole_saves_reading)
{
    struct str body = lab_bytes(MIB, 1);
    struct told t = {0};
    struct sides s;

    sides_open(&s, SIDE_LOCAL, SIDE_LOCAL);
    put_with_checksum(&s, s.from, body, false);
    put_with_checksum(&s, s.to, body, true);
    CHECK(!str_eq(sides_head(&s, s.from, "k").etag, sides_head(&s, s.to, "k").etag));
    struct compare_result out = compare(&s, &t, &all);
    CHECK_STR(buf_str(&t.text), STR(""));
    CHECK_INT(out.bytes, 0);
    put_with_checksum(&s, s.to, lab_bytes(MIB, 2), true);
    out = compare(&s, &t, &all);
    CHECK_STR(buf_str(&t.text), STR("k:etag"));
    CHECK_INT(out.bytes, 0);
    told_release(&t);
    sides_close(&s);
}

static void keep_versions(struct sides *s)
{
    struct err err = {0};

    CHECK_OK(s->from->ops->set_versions(s->from, true, &err));
    CHECK_OK(s->to->ops->set_versions(s->to, true, &err));
}

TEST_SIDES(compare, versions_are_counted_from_the_oldest)
{
    keep_versions(s);
    put_both(s, "a", "1");
    put_both(s, "a", "22");
    put_both(s, "b", "1");
    expect(s, &by_version, "");
    lab_put(s->from, &s->a, "a", STR("333"));
    expect(s, &by_version, "a#2:missing10");
    expect(s, &all, "a:size");
    lab_remove(s->to, &s->a, "a", STR_EMPTY);
    expect(s, &by_version, "a#2:marker");
    lab_put(s->to, &s->a, "b", STR("2"));
    lab_put(s->to, &s->a, "b", STR("1"));
    expect(s, &by_version, "a#2:marker b#1:missing01 b#2:missing01");
    expect(s, &all, "a:missing10");
    lab_put(s->from, &s->a, "b", STR("x"));
    lab_put(s->from, &s->a, "b", STR("1"));
    expect(s, &by_version, "a#2:marker b#1:etag");
}

/* Through several pages of both sides. */
TEST_TIMEOUT(compare, large_buckets_go_by_pages_and_can_be_gone_on_with, 600)
{
    struct sides s;
    struct told t = {.stop_after = 2};
    char key[32];

    sides_open(&s, SIDE_LOCAL, SIDE_LOCAL);
    for (int i = 0; i < 2300; i++) {
        snprintf(key, sizeof(key), "k%05d", i);
        if (i != 17)
            lab_put(s.from, &s.a, key, STR("x"));
        if (i != 2222)
            lab_put(s.to, &s.a, key, STR("x"));
    }
    struct bucket *buckets[] = {s.from, s.to};
    struct compare_options o = {.buckets = buckets,
                                .count = 2,
                                .tell = tell,
                                .reached = reached,
                                .watch = watch,
                                .ctx = &t};
    struct compare_result out;
    struct err err = {0};
    CHECK_ERR(compare_buckets(&out, &o, &err), ERR_CANCELED);
    CHECK_INT(out.keys, 2 * COMPARE_STEP);
    CHECK_STR(t.last, STR("k01999"));
    CHECK_STR(buf_str(&t.text), STR("k00017:missing01"));
    o.after = t.last;
    CHECK_OK(compare_buckets(&out, &o, &err));
    CHECK_STR(t.last, STR_EMPTY);
    CHECK_INT(t.keys, 2300);
    CHECK_INT(out.keys, 300);
    CHECK_STR(buf_str(&t.text), STR("k00017:missing01 k02222:missing10"));
    told_release(&t);
    sides_close(&s);
}

static bool always(void *ctx)
{
    (void)ctx;
    return true;
}

TEST(compare, a_step_is_due_when_its_caller_says_so)
{
    struct sides s;
    struct told t = {.stop_after = 2};
    struct compare_result out;
    struct err err = {0};

    sides_open(&s, SIDE_LOCAL, SIDE_LOCAL);
    for (const char *key = "abcd"; *key; key++)
        lab_put(s.from, &s.a, key, STR("x"));
    struct bucket *buckets[] = {s.from, s.to};
    struct compare_options o = {
        .buckets = buckets, .count = 2, .tell = tell, .reached = reached, .due = always, .ctx = &t};
    CHECK_ERR(compare_buckets(&out, &o, &err), ERR_CANCELED);
    CHECK_STR(t.last, STR("bcd"));
    o.after = t.last;
    CHECK_OK(compare_buckets(&out, &o, &err));
    CHECK_INT(t.keys, 4);
    CHECK_STR(buf_str(&t.text), STR("abcd:missing10 bcd:missing10 cd:missing10 d:missing10"));
    told_release(&t);
    sides_close(&s);
}

TEST(compare, versions_of_one_key_go_over_pages)
{
    struct sides s;

    sides_open(&s, SIDE_LOCAL, SIDE_LOCAL);
    keep_versions(&s);
    for (int i = 0; i < 1500; i++) {
        lab_put(s.from, &s.a, "k", STR("x"));
        lab_put(s.to, &s.a, "k", i == 3 ? STR("y") : STR("x"));
    }
    lab_put(s.to, &s.a, "l", STR("x"));
    expect(&s, &by_version, "k#3:etag l#0:missing01");
    sides_close(&s);
}

TEST(compare, three_sides_are_held_to_each_other)
{
    struct sides s;
    struct told t = {0};
    struct err err = {0};
    struct compare_result out;

    sides_open(&s, SIDE_LOCAL, SIDE_LOCAL);
    struct bucket *third = lab_bucket(s.locals[0], "third");
    struct bucket *buckets[] = {s.from, s.to, third};
    struct compare_options o = {
        .buckets = buckets, .count = 3, .tell = tell, .reached = reached, .ctx = &t};
    put_both(&s, "a", "1");
    lab_put(third, &s.a, "a", STR("1"));
    put_both(&s, "b", "1");
    put_both(&s, "c", "1");
    lab_put(third, &s.a, "c", STR("2"));
    CHECK_OK(compare_buckets(&out, &o, &err));
    CHECK_STR(buf_str(&t.text), STR("b:missing11 c:etag"));
    CHECK_INT(out.keys, 3);
    told_release(&t);
    third->ops->unref(third);
    sides_close(&s);
}

/* --- storages that do odd things --- */

static int refuse(void *ctx, size_t side, uint64_t bytes, struct err *err)
{
    (void)ctx;
    return side == 1 && !bytes ? err_set(err, ERR_CANCELED, "enough") : 0;
}

TEST(compare, whoever_watches_can_stop_it)
{
    struct sides s;
    struct told t = {0};
    struct err err = {0};
    struct compare_result out;

    sides_open(&s, SIDE_LOCAL, SIDE_LOCAL);
    struct bucket *buckets[] = {s.from, s.to};
    struct compare_options o = {
        .buckets = buckets, .count = 2, .tell = tell, .watch = refuse, .ctx = &t};
    lab_put(s.from, &s.a, "a", STR("1"));
    CHECK_ERR(compare_buckets(&out, &o, &err), ERR_CANCELED);
    CHECK_INT(out.differences, 0);
    told_release(&t);
    sides_close(&s);
}

/* Lists "b" before "a". */
static int list_backwards(struct bucket *b, struct arena *a, const struct list_options *o,
                          struct list_result *out, struct err *err)
{
    (void)b;
    (void)o;
    (void)err;
    *out =
        (struct list_result){.entries = arena_array(a, 2, sizeof(struct list_entry)), .count = 2};
    out->entries[0].info.key = STR("b");
    out->entries[1].info.key = STR("a");
    return 0;
}

/* Says that there is more, and never gives it. */
static int list_forever(struct bucket *b, struct arena *a, const struct list_options *o,
                        struct list_result *out, struct err *err)
{
    (void)b;
    (void)a;
    (void)err;
    *out = (struct list_result){.more = true, .next = o->after};
    return 0;
}

TEST(compare, a_side_that_lists_out_of_order_is_refused)
{
    static const struct bucket_ops backwards = {.list = list_backwards},
                                   forever = {.list = list_forever};
    struct sides s;
    struct told t = {0};
    struct err err = {0};
    struct compare_result out;
    struct bucket odd = {.ops = &backwards, .name = STR("odd")};

    sides_open(&s, SIDE_LOCAL, SIDE_LOCAL);
    struct bucket *buckets[] = {s.from, &odd};
    struct compare_options o = {.buckets = buckets, .count = 2, .tell = tell, .ctx = &t};
    CHECK_ERR(compare_buckets(&out, &o, &err), ERR_PEER);
    odd.ops = &forever;
    CHECK_ERR(compare_buckets(&out, &o, &err), ERR_PEER);
    told_release(&t);
    sides_close(&s);
}
