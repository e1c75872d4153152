/* Shards of a bucket in one folder, and rows that move between them (local_adopt.h). */
#include "base/clock.h"
#include "object/generation.h"
#include "unit/object/shard_lab.h"

#include <stdio.h>

static const struct key_window everything;
static const char *const nothing = "0 objects of 0 bytes, 0 old versions of 0 bytes\n";

/* Moves what one call moves; "<last key>", and "+" if there are more. */
static void expect_adopt(struct shard_lab *lab, struct bucket *to, struct bucket *from,
                         struct key_window w, size_t limit, const char *want)
{
    struct buf text = BUF_INIT(0);
    struct str last = STR("?");
    bool more = false;
    struct err err = {0};

    CHECK_OK(local_adopt(to, from, w.after, w.upto, limit, &lab->a, &last, &more, &err));
    buf_appendf(&text, STR_FMT "%s", STR_ARG(last), more ? "+" : "");
    CHECK_STR(buf_str(&text), str_z(want));
    buf_release(&text);
}

/* Moves the whole window; returns the number of calls that were needed. */
static unsigned adopt_all(struct shard_lab *lab, struct bucket *to, struct bucket *from,
                          struct key_window w, size_t limit)
{
    bool more = true;
    unsigned calls = 0;
    struct err err = {0};

    for (; more; calls++)
        CHECK_OK(local_adopt(to, from, w.after, w.upto, limit, &lab->a, &w.after, &more, &err));
    return calls;
}

static void expect_described(struct bucket *b, struct str want)
{
    struct buf text = BUF_INIT(0);

    shard_lab_describe(b, &text);
    CHECK_STR(buf_str(&text), want);
    buf_release(&text);
}

/* --- windows --- */

TEST(local_adopt, keys_of_the_window_move)
{
    static const struct {
        const char *after, *upto, *want, *stays, *moves;
        size_t limit;
    } rows[] = {
        {"", "", "d", "", "a b c d", 10},    {"a", "c", "c", "a d", "b c", 10},
        {"aa", "cc", "c", "a d", "b c", 10}, {"", "c", "b+", "c d", "a b", 2},
        {"b", "b", "", "a b c d", "", 10},   {"c", "b", "", "a b c d", "", 10},
        {"d", "", "", "a b c d", "", 10},    {"", "a", "a", "b c d", "a", 1},
        {"", "", "+", "a b c d", "", 0},
    };
    struct shard_lab lab;

    shard_lab_open(&lab);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct key_window w = {str_z(rows[i].after), str_z(rows[i].upto)};
        shard_lab_begin(&lab, (char)('a' + i), NULL);
        for (const char *key = "a\0b\0c\0d\0"; *key; key += 2)
            lab_put(lab.whole, &lab.a, key, str_z(key));
        expect_adopt(&lab, lab.shard, lab.whole, w, rows[i].limit, rows[i].want);
        lab_expect_list(lab.whole, &lab_everything, false, rows[i].stays);
        lab_expect_list(lab.shard, &lab_everything, false, rows[i].moves);
        shard_lab_end(&lab);
    }
    shard_lab_close(&lab);
}

/* Gives the key a row of each kind: current, old, null and old, upload. */
static void put_all_kinds(struct shard_lab *lab, const char *key)
{
    struct err err = {0};

    CHECK_OK(lab->whole->ops->set_versions(lab->whole, false, &err));
    lab_put(lab->whole, &lab->a, key, STR("null"));
    CHECK_OK(lab->whole->ops->set_versions(lab->whole, true, &err));
    lab_put(lab->whole, &lab->a, key, STR("old"));
    lab_put(lab->whole, &lab->a, key, STR("new"));
    lab_upload(lab->whole, &lab->a, key);
}

TEST(local_adopt, keys_that_begin_alike_are_told_apart)
{
    static const char *const keys[] = {"b", "b\x01", "b\x01\x01", "b0", "b\xff", "c"};
    struct shard_lab lab;
    struct buf all = BUF_INIT(0);

    shard_lab_open(&lab);
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        shard_lab_begin(&lab, (char)('a' + i), NULL);
        for (size_t k = 0; k < ARRAY_SIZE(keys); k++)
            put_all_kinds(&lab, keys[k]);
        buf_reset(&all);
        shard_lab_describe(lab.whole, &all);
        struct key_window w = {i ? str_z(keys[i - 1]) : STR_EMPTY, str_z(keys[i])};
        expect_adopt(&lab, lab.shard, lab.whole, w, 10, keys[i]);
        lab_expect_list(lab.shard, &lab_everything, false, keys[i]);
        if (i > 0)
            adopt_all(&lab, lab.shard, lab.whole, (struct key_window){.upto = w.after}, 1);
        adopt_all(&lab, lab.shard, lab.whole, (struct key_window){.after = w.upto}, 2);
        expect_described(lab.shard, buf_str(&all));
        expect_described(lab.whole, str_z(nothing));
        shard_lab_end(&lab);
    }
    shard_lab_close(&lab);
    buf_release(&all);
}

TEST(local_adopt, the_longest_keys_move)
{
    char long_key[OBJECT_KEY_MAX + 1] = {0}, longer[OBJECT_KEY_MAX + 3] = {0};
    struct shard_lab lab;

    memset(long_key, 'k', OBJECT_KEY_MAX);
    memset(longer, 'k', OBJECT_KEY_MAX + 2);
    shard_lab_open(&lab);
    shard_lab_begin(&lab, 'x', NULL);
    put_all_kinds(&lab, long_key);
    long_key[OBJECT_KEY_MAX - 1] = 'l';
    put_all_kinds(&lab, long_key);
    /* A border may be longer than any key. */
    struct key_window behind = {.after = str_z(longer)}, before = {.upto = str_z(longer)};
    expect_adopt(&lab, lab.shard, lab.whole, behind, 10, long_key);
    expect_adopt(&lab, lab.shard, lab.whole, behind, 10, "");
    adopt_all(&lab, lab.shard, lab.whole, before, 10);
    expect_described(lab.whole, str_z(nothing));
    shard_lab_end(&lab);
    shard_lab_close(&lab);
}

TEST_TIMEOUT(local_adopt, a_call_moves_a_thousand_keys, 120)
{
    struct shard_lab lab;
    char key[16];

    shard_lab_open(&lab);
    shard_lab_begin(&lab, 'x', NULL);
    for (int i = 0; i <= LOCAL_ADOPT_MAX; i++) {
        snprintf(key, sizeof(key), "%05d", i);
        lab_put(lab.whole, &lab.a, key, STR("v"));
    }
    expect_adopt(&lab, lab.shard, lab.whole, everything, SIZE_MAX, "00999+");
    struct key_window rest = {.after = STR("00999")};
    expect_adopt(&lab, lab.shard, lab.whole, rest, SIZE_MAX, "01000");
    CHECK_INT(adopt_all(&lab, lab.whole, lab.shard, everything, SIZE_MAX), 2);
    shard_lab_end(&lab);
    shard_lab_close(&lab);
}

TEST(local_adopt, a_call_with_many_bytes_moves_fewer_keys)
{
    static char value[2000];
    struct http_header headers[1000];
    struct put_options o = {.meta = {headers, ARRAY_SIZE(headers)}};
    struct shard_lab lab;
    struct put_result out;
    struct str_reader r;
    struct err err = {0};
    char key[16];

    memset(value, 'v', sizeof(value));
    for (size_t i = 0; i < ARRAY_SIZE(headers); i++)
        headers[i] = (struct http_header){STR("x-amz-meta-a"), str_n(value, sizeof(value))};
    shard_lab_open(&lab);
    shard_lab_begin(&lab, 'x', NULL);
    for (int i = 0; i < 10; i++) { /* 2 MB each */
        snprintf(key, sizeof(key), "%d", i);
        str_reader_init(&r, STR("v"));
        CHECK_OK(lab.whole->ops->put(lab.whole, &lab.a, str_z(key), &r.reader, 1, &o, &out, &err));
    }
    expect_adopt(&lab, lab.shard, lab.whole, everything, 100, "4+");
    expect_adopt(&lab, lab.shard, lab.whole, everything, 100, "9");
    shard_lab_end(&lab);
    shard_lab_close(&lab);
}

/* --- the target --- */

static void put_marker(struct bucket *b, struct arena *a)
{
    lab_remove(b, a, "b", STR_EMPTY);
}

static void put_object(struct bucket *b, struct arena *a)
{
    lab_put(b, a, "b", STR("foreign"));
}

static void put_upload(struct bucket *b, struct arena *a)
{
    lab_upload(b, a, "b");
}

TEST(local_adopt, a_target_with_rows_is_refused)
{
    static void (*const puts[])(struct bucket *, struct arena *) = {put_marker, put_object,
                                                                    put_upload};
    static const struct {
        const char *after, *upto;
        size_t limit;
        bool same; /* the source has the key too */
        int code;
    } rows[] = {
        {"", "", 10, false, ERR_CONFLICT},
        {"", "c", 2, false, ERR_CONFLICT},
        {"", "", 10, true, ERR_CONFLICT},
        {"a", "b", 1, true, ERR_CONFLICT},
        {"a", "", 2, true, ERR_CONFLICT},
        {"", "", 1, false, 0},
        {"", "b", 10, false, 0},
        {"a", "", 10, false, 0},
        {"b", "", 10, true, 0},
        {"", "a", 10, true, 0},
    };
    struct bucket_info versions = {.versions = VERSIONS_ON};
    struct shard_lab lab;
    struct buf there[2] = {BUF_INIT(0), BUF_INIT(0)};
    struct str last;
    bool more;
    struct err err = {0};

    shard_lab_open(&lab);
    for (size_t i = 0; i < ARRAY_SIZE(rows) * ARRAY_SIZE(puts); i++) {
        size_t r = i / ARRAY_SIZE(puts);
        shard_lab_begin(&lab, (char)('A' + i), &versions);
        lab_put(lab.whole, &lab.a, "a", STR("1"));
        lab_put(lab.whole, &lab.a, "c", STR("2"));
        if (rows[r].same)
            lab_put(lab.whole, &lab.a, "b", STR("3"));
        puts[i % ARRAY_SIZE(puts)](lab.shard, &lab.a);
        for (int k = 0; k < 2; k++) {
            buf_reset(&there[k]);
            shard_lab_describe(k ? lab.shard : lab.whole, &there[k]);
        }
        int code = local_adopt(lab.shard, lab.whole, str_z(rows[r].after), str_z(rows[r].upto),
                               rows[r].limit, &lab.a, &last, &more, &err);
        CHECK_INT(code, rows[r].code);
        if (code < 0) { /* nothing was moved */
            expect_described(lab.whole, buf_str(&there[0]));
            expect_described(lab.shard, buf_str(&there[1]));
        }
        shard_lab_end(&lab);
    }
    shard_lab_close(&lab);
    buf_release(&there[0]);
    buf_release(&there[1]);
}

/* What a start does that does not know how far a hand-over has come. */
TEST(local_adopt, rows_that_have_not_moved_are_moved_back_in_vain)
{
    struct shard_lab lab;

    shard_lab_open(&lab);
    shard_lab_begin(&lab, 'x', NULL);
    for (const char *key = "a\0b\0c\0d\0"; *key; key += 2)
        lab_put(lab.whole, &lab.a, key, str_z(key));
    expect_adopt(&lab, lab.whole, lab.shard, everything, 10, "");
    expect_adopt(&lab, lab.shard, lab.whole, everything, 2, "b+");
    expect_adopt(&lab, lab.whole, lab.shard, everything, 1, "a+");
    expect_adopt(&lab, lab.whole, lab.shard, everything, 10, "b"); /* that was cut short too */
    expect_adopt(&lab, lab.whole, lab.shard, everything, 10, "");
    lab_expect_list(lab.whole, &lab_everything, false, "a b c d");
    shard_lab_end(&lab);
    shard_lab_close(&lab);
}

TEST(local_adopt, only_shards_of_one_bucket_change_rows)
{
    struct shard_lab lab;
    struct str last;
    bool more;
    struct err err = {0};

    shard_lab_open(&lab);
    shard_lab_begin(&lab, 'x', NULL);
    struct bucket *other = lab_bucket(lab.l.lab.storage, "other");
    struct {
        struct bucket *to, *from;
    } rows[] = {{other, lab.whole}, {other, lab.shard}, {lab.shard, other}, {lab.shard, lab.shard}};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        CHECK_ERR(local_adopt(rows[i].to, rows[i].from, STR_EMPTY, STR_EMPTY, 1, &lab.a, &last,
                              &more, &err),
                  ERR_INVALID);
    CHECK_OK(local_make_shard(lab.shard, STR("second"), &err));
    struct bucket *second = shard_lab_bucket(&lab, STR("second"));
    lab_put(lab.shard, &lab.a, "k", STR("v"));
    expect_adopt(&lab, second, lab.shard, everything, 1, "k");
    expect_adopt(&lab, lab.whole, second, everything, 1, "k");
    CHECK_OK(local_remove_shard(lab.l.lab.storage, STR("second"), &err));
    CHECK_ERR(local_adopt(second, lab.whole, STR_EMPTY, STR_EMPTY, 1, &lab.a, &last, &more, &err),
              ERR_NO_BUCKET);
    CHECK_ERR(local_adopt(lab.whole, second, STR_EMPTY, STR_EMPTY, 1, &lab.a, &last, &more, &err),
              ERR_NO_BUCKET);
    other->ops->unref(other);
    second->ops->unref(second);
    shard_lab_end(&lab);
    shard_lab_close(&lab);
}

static struct bucket_info state_of(struct bucket *b, struct arena *a)
{
    struct bucket_info info = {0};
    struct err err = {0};

    CHECK_OK(b->ops->info(b, a, &info, &err));
    return info;
}

/* A crash may leave the change of a bucket's versions at some of its shards. */
TEST(local_adopt, a_target_catches_up_with_the_versions_of_its_source)
{
    enum { NEVER = VERSIONS_NEVER, ON = VERSIONS_ON, OFF = VERSIONS_SUSPENDED };
    static const struct {
        int from, to, then;
        bool lock_from, lock_to, lock_then;
    } rows[] = {
        {ON, NEVER, ON, false, false, false}, {OFF, NEVER, OFF, false, false, false},
        {NEVER, ON, ON, false, false, false}, {ON, OFF, OFF, false, false, false},
        {OFF, ON, ON, false, false, false},   {ON, ON, ON, true, false, true},
        {ON, OFF, ON, true, false, true},     {ON, NEVER, ON, true, false, true},
        {ON, ON, ON, false, true, true},
    };
    struct shard_lab lab;

    shard_lab_open(&lab);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct err err = {0};
        shard_lab_begin(&lab, (char)('a' + i), NULL);
        struct bucket *b[] = {lab.whole, lab.shard};
        for (int k = 0; k < 2; k++) {
            int want = k ? rows[i].to : rows[i].from;
            if (want != NEVER)
                CHECK_OK(b[k]->ops->set_versions(b[k], want == ON, &err));
            if (k ? rows[i].lock_to : rows[i].lock_from)
                CHECK_OK(b[k]->ops->set_object_lock(b[k], &err));
        }
        lab_put(lab.whole, &lab.a, "k", STR("1"));
        lab_put(lab.whole, &lab.a, "k", STR("2"));
        uint64_t before = generation_get(lab.l.lab.storage->generations, lab.shard->name);
        expect_adopt(&lab, lab.shard, lab.whole, everything, 1, "k");
        struct bucket_info now = state_of(lab.shard, &lab.a);
        CHECK_INT(now.versions, rows[i].then);
        CHECK_INT(now.object_lock, rows[i].lock_then);
        bool changed = rows[i].to != rows[i].then || rows[i].lock_to != rows[i].lock_then;
        CHECK_INT(generation_get(lab.l.lab.storage->generations, lab.shard->name) != before,
                  changed);
        lab_put(lab.shard, &lab.a, "k", STR("3"));
        shard_lab_end(&lab);
    }
    shard_lab_close(&lab);
}

/* --- everything that a key can have --- */

enum mode { PLAIN, VERSIONED, SUSPENDED, LOCKED, MODES };

static int give_key(void *ctx, const struct object_meta *meta, struct put_seal *out,
                    struct err *err)
{
    (void)ctx, (void)meta, (void)err;
    *out = (struct put_seal){.key = shard_lab_key};
    return 0;
}

static void put_with(struct shard_lab *lab, const char *key, struct str body,
                     const struct object_meta *meta)
{
    struct put_options o = {.meta = *meta};
    struct put_result out;
    struct str_reader r;
    struct err err = {0};

    if (meta->encryption.len)
        o.seal = give_key;
    str_reader_init(&r, body);
    CHECK_OK(
        lab->whole->ops->put(lab->whole, &lab->a, str_z(key), &r.reader, body.len, &o, &out, &err));
}

/* Uploads a body in this number of parts; *parts are the caller's. */
static struct upload_info put_parts(struct shard_lab *lab, const char *key,
                                    struct upload_part *parts, uint32_t count, uint64_t seed)
{
    struct upload_info u = lab_upload(lab->whole, &lab->a, key);

    for (uint32_t i = 0; i < count; i++)
        parts[i] = lab_part(lab->whole, &lab->a, &u, i + 1, lab_bytes(1500, seed + i));
    return u;
}

static struct put_result finish(struct bucket *b, struct arena *a, const struct upload_info *u,
                                const struct upload_part *parts, size_t count)
{
    struct put_options o = {0};
    struct put_result out = {0};
    struct err err = {0};

    CHECK_OK(b->ops->upload_finish(b, a, u, parts, count, &o, &out, &err));
    return out;
}

/* Puts one object of each kind. */
static void put_each(struct shard_lab *lab, uint64_t seed)
{
    struct http_header headers[] = {{STR("Content-Type"), STR("text/plain")},
                                    {STR("x-amz-meta-a"), STR("b")}};
    struct object_meta full = {.headers = headers,
                               .header_count = 2,
                               .tags = STR("a=b"),
                               .acl = STR("acl"),
                               .owner = STR("somebody"),
                               .storage_class = STR("GLACIER"),
                               .checksum = {CHECKSUM_FULL_OBJECT, DIGEST_CRC32C, STR("AAAA==")}};
    struct object_meta sealed = {.encryption = STR("envelope")}, plain = {0};
    struct upload_part parts[20];
    struct get_result source;
    struct put_options o = {0};
    struct put_result out;
    struct err err = {0};
    struct bucket *b = lab->whole;

    put_with(lab, "empty", STR_EMPTY, &plain);
    put_with(lab, "inline", lab_bytes(100, seed), &full);
    put_with(lab, "blob", lab_bytes(70 * KIB, seed + 1), &full);
    put_with(lab, "sealed/inline", lab_bytes(200, seed + 2), &sealed);
    put_with(lab, "sealed/blob", lab_bytes(90 * KIB, seed + 3), &sealed);
    struct upload_info u = put_parts(lab, "parts", parts, 3, seed + 4);
    finish(b, &lab->a, &u, parts, 3);
    u = put_parts(lab, "parts/many", parts, 20, seed + 10);
    finish(b, &lab->a, &u, parts, 20);
    CHECK_OK(b->ops->head(b, &lab->a, STR("blob"), STR_EMPTY, NULL, &source, &err));
    CHECK_OK(b->ops->copy(b, &lab->a, STR("copy"), b, &source.info, &o, &out, &err));
}

static const char *const kinds[] = {"blob",  "copy",       "empty",       "inline",
                                    "parts", "parts/many", "sealed/blob", "sealed/inline"};

static void set_meta(struct bucket *b, struct arena *a, const char *key, enum meta_set set,
                     struct object_meta meta)
{
    struct err err = {0};

    CHECK_OK(b->ops->set_meta(b, a, str_z(key), STR_EMPTY, set, &meta, NULL, &err));
}

/* Gives each kind of object as many pasts as the mode has. */
static void fill(struct shard_lab *lab, enum mode mode)
{
    struct bucket *b = lab->whole;
    int64_t later = clock_wall_ms() + MS_PER_HOUR;
    struct err err = {0};

    put_each(lab, 1); /* these are null versions */
    if (mode != PLAIN) {
        CHECK_OK(b->ops->set_versions(b, true, &err));
        put_each(lab, 100);
        lab_remove(b, &lab->a, "inline", STR_EMPTY);
        lab_remove(b, &lab->a, "parts", STR_EMPTY);
        lab_remove(b, &lab->a, "never", STR_EMPTY); /* a marker alone */
    }
    if (mode == SUSPENDED) {
        CHECK_OK(b->ops->set_versions(b, false, &err));
        lab_remove(b, &lab->a, "blob", STR_EMPTY); /* a null marker */
        lab_put(b, &lab->a, "parts/many", STR("null again"));
    }
    if (mode == LOCKED) {
        CHECK_OK(b->ops->set_object_lock(b, &err));
        set_meta(b, &lab->a, "empty", META_RETENTION,
                 (struct object_meta){.retain_until_ms = later});
        set_meta(b, &lab->a, "copy", META_RETENTION,
                 (struct object_meta){.retain_until_ms = later, .retain_compliance = true});
        set_meta(b, &lab->a, "sealed/blob", META_LEGAL_HOLD,
                 (struct object_meta){.legal_hold = true});
    }
    set_meta(b, &lab->a, "empty", META_TAGS, (struct object_meta){.tags = STR("later=1")});
}

static int finding(void *ctx, const struct local_finding *f, struct err *err)
{
    (void)ctx, (void)err;
    test_fail(__FILE__, __LINE__, "%s: " STR_FMT, local_damage_text(f->damage), STR_ARG(f->key));
    return 0;
}

static void expect_sound(struct shard_lab *lab)
{
    struct local_scrub o = {.finding = finding};
    struct err err = {0};

    CHECK_OK(local_scrub(lab->l.lab.storage, &o, &err));
}

/* Locked versions cannot be removed where they are now. */
static void expect_locked(struct bucket *b, struct arena *a)
{
    static const struct {
        const char *key;
        bool bypass;
    } rows[] = {{"empty", false}, {"copy", true}, {"sealed/blob", true}};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct remove_options o = {.bypass_governance = rows[i].bypass};
        struct remove_result out;
        struct get_result got;
        struct err err = {0};
        CHECK_OK(b->ops->head(b, a, str_z(rows[i].key), STR_EMPTY, NULL, &got, &err));
        o.version = got.info.version;
        CHECK_ERR(b->ops->remove(b, a, str_z(rows[i].key), &o, &out, &err), ERR_DENIED);
    }
}

/* Uploads go on and end where they are now, and a finished one is answered as before. */
static void move_with_uploads(struct shard_lab *lab, size_t limit)
{
    struct upload_part done[3], half[20];
    struct upload_info finished = put_parts(lab, "up/finished", done, 3, 7);
    struct put_result first = finish(lab->whole, &lab->a, &finished, done, 3);
    struct upload_info u = put_parts(lab, "up/open", half, 19, 9);
    struct buf all = BUF_INIT(0);

    lab_upload(lab->whole, &lab->a, "up/begun");
    lab_upload(lab->whole, &lab->a, "up/open");
    shard_lab_describe(lab->whole, &all);
    adopt_all(lab, lab->shard, lab->whole, everything, limit);
    expect_described(lab->whole, str_z(nothing));
    expect_described(lab->shard, buf_str(&all));
    expect_sound(lab);
    struct put_result again = finish(lab->shard, &lab->a, &finished, done, 3);
    CHECK_STR(again.etag, first.etag);
    CHECK_STR(again.version, first.version);
    CHECK_INT(again.modified_ms, first.modified_ms);
    half[19] = lab_part(lab->shard, &lab->a, &u, 20, lab_bytes(10, 3));
    finish(lab->shard, &lab->a, &u, half, 20);
    buf_release(&all);
}

TEST_TIMEOUT(local_adopt, nothing_that_can_be_seen_changes, 120)
{
    static const size_t limits[] = {1, 3, 1000};
    struct shard_lab lab;
    struct buf all = BUF_INIT(0);

    shard_lab_open(&lab);
    for (unsigned i = 0; i < MODES * ARRAY_SIZE(limits); i++) {
        enum mode mode = (enum mode)(i % MODES);
        size_t limit = limits[i / MODES];
        shard_lab_begin(&lab, (char)('a' + i), NULL);
        fill(&lab, mode);
        move_with_uploads(&lab, limit);
        if (mode == LOCKED)
            expect_locked(lab.shard, &lab.a);
        buf_reset(&all);
        shard_lab_describe(lab.shard, &all);
        adopt_all(&lab, lab.whole, lab.shard, everything, limit); /* and back */
        expect_described(lab.whole, buf_str(&all));
        expect_described(lab.shard, str_z(nothing));
        if (mode == LOCKED)
            expect_locked(lab.whole, &lab.a);
        shard_lab_end(&lab);
    }
    shard_lab_close(&lab);
    buf_release(&all);
}

TEST(local_adopt, a_shard_is_a_shard_after_a_restart)
{
    struct shard_lab lab;
    struct buf all = BUF_INIT(0);

    shard_lab_open(&lab);
    shard_lab_begin(&lab, 'x', NULL);
    fill(&lab, VERSIONED);
    shard_lab_describe(lab.whole, &all);
    adopt_all(&lab, lab.shard, lab.whole, everything, 4);
    shard_lab_end(&lab);
    shard_lab_close(&lab);
    shard_lab_open(&lab);
    lab.whole = shard_lab_bucket(&lab, STR("whole-x"));
    lab.shard = shard_lab_bucket(&lab, STR("shard-x"));
    expect_described(lab.shard, buf_str(&all));
    adopt_all(&lab, lab.whole, lab.shard, everything, 4);
    expect_described(lab.whole, buf_str(&all));
    shard_lab_end(&lab);
    shard_lab_close(&lab);
    buf_release(&all);
}

TEST(local_adopt, a_call_for_an_upload_that_has_moved_changes_nothing)
{
    struct shard_lab lab;
    struct upload_part parts[3];
    struct put_options o = {0};
    struct put_result out;
    struct upload_part part;
    struct str_reader r;
    struct err err = {0};

    shard_lab_open(&lab);
    shard_lab_begin(&lab, 'x', NULL);
    struct bucket *b = lab.whole;
    struct upload_info u = put_parts(&lab, "k", parts, 3, 1);
    expect_adopt(&lab, lab.shard, b, everything, 1, "k");
    str_reader_init(&r, STR("late"));
    CHECK_ERR(b->ops->upload_part(b, &lab.a, &u, 1, &r.reader, 4, &o, &part, &err), ERR_NOT_FOUND);
    CHECK_ERR(b->ops->upload_finish(b, &lab.a, &u, parts, 3, &o, &out, &err), ERR_NOT_FOUND);
    CHECK_ERR(b->ops->upload_abort(b, &u, &err), ERR_NOT_FOUND);
    finish(lab.shard, &lab.a, &u, parts, 3);
    lab_expect_list(lab.shard, &lab_everything, false, "k");
    shard_lab_end(&lab);
    shard_lab_close(&lab);
}

/* --- readers --- */

TEST(local_adopt, a_body_that_is_read_flows_on)
{
    static const struct object_range rest = {RANGE_FROM_TO, 50, UINT64_MAX};
    struct shard_lab lab;
    struct err err = {0};

    shard_lab_open(&lab);
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        struct buf want = BUF_INIT(0), have = BUF_INIT(0);
        struct str key = str_z(kinds[i]);
        struct get_result got[2];
        shard_lab_begin(&lab, (char)('a' + i), NULL);
        put_each(&lab, 1);
        const struct object_range *range = str_eq(key, STR("empty")) ? NULL : &rest;
        for (int k = 0; k < 2; k++) {
            CHECK_OK(
                lab.whole->ops->get(lab.whole, &lab.a, key, STR_EMPTY, NULL, range, &got[k], &err));
            if (got[k].unlock)
                CHECK_OK(got[k].unlock(got[k].body, &shard_lab_key, &err));
        }
        CHECK_OK(reader_read_all(got[0].body, &want, &err));
        expect_adopt(&lab, lab.shard, lab.whole, everything, 1000, "sealed/inline");
        lab_remove(lab.shard, &lab.a, kinds[i], STR_EMPTY);
        local_collect(lab.l.lab.storage);
        CHECK_OK(reader_read_all(got[1].body, &have, &err));
        CHECK(str_eq(buf_str(&have), buf_str(&want)));
        reader_close(got[0].body);
        reader_close(got[1].body);
        buf_release(&want);
        buf_release(&have);
        shard_lab_end(&lab);
    }
    shard_lab_close(&lab);
}

TEST(local_adopt, a_backup_that_holds_the_files_stops_no_move)
{
    struct shard_lab lab;

    shard_lab_open(&lab);
    shard_lab_begin(&lab, 'x', NULL);
    put_each(&lab, 1);
    local_hold(lab.l.lab.storage);
    size_t files = local_lab_files(&lab.l);
    adopt_all(&lab, lab.shard, lab.whole, everything, 3);
    CHECK_INT(local_lab_files(&lab.l), files);
    local_unhold(lab.l.lab.storage);
    shard_lab_end(&lab);
    shard_lab_close(&lab);
}

/* --- garbage --- */

TEST(local_adopt, all_rows_of_a_window_are_removed_and_locks_do_not_keep_them)
{
    struct object_meta kept = {.legal_hold = true};
    struct bucket_info locked = {.object_lock = true};
    struct shard_lab lab;
    struct buf want = BUF_INIT(0);
    struct err err = {0};
    bool more = true;
    uint64_t removed = 0;

    shard_lab_open(&lab);
    shard_lab_begin(&lab, 'x', &locked);
    for (const char *key = "a\0e\0"; *key; key += 2)
        lab_put(lab.whole, &lab.a, key, lab_bytes(20000, 1));
    shard_lab_describe(lab.whole, &want);
    for (const char *key = "b\0b1\0c\0"; *key; key += strlen(key) + 1) {
        lab_put(lab.whole, &lab.a, key, STR("small"));
        lab_put(lab.whole, &lab.a, key, lab_bytes(20000, 2));
        CHECK_OK(lab.whole->ops->set_meta(lab.whole, &lab.a, str_z(key), STR_EMPTY, META_LEGAL_HOLD,
                                          &kept, NULL, &err));
        lab_remove(lab.whole, &lab.a, key, STR_EMPTY);
        struct upload_info u = lab_upload(lab.whole, &lab.a, key);
        lab_part(lab.whole, &lab.a, &u, 1, lab_bytes(20000, 3));
    }
    CHECK_OK(local_remove_rows(lab.whole, STR("a"), STR("d"), 2, &more, &removed, &err));
    CHECK(more);
    CHECK_INT(removed, 6);
    lab_expect_list(lab.whole, &lab_everything, true, "a* c!* c c e*");
    CHECK_OK(local_remove_rows(lab.whole, STR("a"), STR("d"), 2, &more, &removed, &err));
    CHECK(!more);
    expect_described(lab.whole, buf_str(&want));
    CHECK_OK(local_remove_rows(lab.whole, STR("a"), STR("d"), 2, &more, &removed, &err));
    CHECK(!more);
    CHECK_INT(removed, 9);
    local_collect(lab.l.lab.storage);
    CHECK_INT(local_lab_files(&lab.l), 2);
    shard_lab_end(&lab);
    shard_lab_close(&lab);
    buf_release(&want);
}

TEST(local_adopt, null_versions_are_removed_with_the_rest)
{
    struct shard_lab lab;
    struct err err = {0};
    bool more = true;
    uint64_t removed = 0;

    shard_lab_open(&lab);
    shard_lab_begin(&lab, 'x', NULL);
    put_all_kinds(&lab, "b");
    put_all_kinds(&lab, "c");
    CHECK_OK(local_remove_rows(lab.whole, STR_EMPTY, STR_EMPTY, 10, &more, &removed, &err));
    CHECK(!more);
    expect_described(lab.whole, str_z(nothing));
    shard_lab_end(&lab);
    shard_lab_close(&lab);
}

TEST_TIMEOUT(local_adopt, a_key_with_very_many_versions_is_removed_in_several_changes, 120)
{
    struct bucket_info versions = {.object_lock = true};
    struct shard_lab lab;
    struct err err = {0};
    unsigned calls = 0;
    uint64_t removed = 0;

    shard_lab_open(&lab);
    shard_lab_begin(&lab, 'x', &versions);
    for (int i = 0; i < 4500; i++) {
        lab_put(lab.whole, &lab.a, "k", STR("v"));
        arena_reset(&lab.a);
    }
    for (bool more = true; more; calls++)
        CHECK_OK(local_remove_rows(lab.whole, STR_EMPTY, STR_EMPTY, 10, &more, &removed, &err));
    CHECK_INT(calls, 2);
    CHECK_INT(removed, 4500);
    expect_described(lab.whole, str_z(nothing));
    shard_lab_end(&lab);
    shard_lab_close(&lab);
}

TEST(local_adopt, a_key_with_too_many_bytes_is_found)
{
    struct shard_lab lab;
    struct str large, before;
    struct err err = {0};

    shard_lab_open(&lab);
    shard_lab_begin(&lab, 'x', NULL);
    lab_put(lab.whole, &lab.a, "a", STR("v"));
    put_all_kinds(&lab, "b");
    lab_put(lab.whole, &lab.a, "c", STR("v"));
    CHECK_OK(
        local_find_large(lab.whole, STR_EMPTY, STR_EMPTY, 10000, &lab.a, &large, &before, &err));
    CHECK_STR(large, STR_EMPTY);
    CHECK_OK(local_find_large(lab.whole, STR_EMPTY, STR_EMPTY, 300, &lab.a, &large, &before, &err));
    CHECK_STR(large, STR("b"));
    CHECK_STR(before, STR("a"));
    CHECK_OK(local_find_large(lab.whole, STR("a"), STR("b"), 300, &lab.a, &large, &before, &err));
    CHECK_STR(large, STR("b"));
    CHECK_STR(before, STR_EMPTY);
    shard_lab_end(&lab);
    shard_lab_close(&lab);
}
