/* Copying objects between storages of every kind. */
#include "copy/copy.h"

#include "http/wire.h"
#include "unit/replica/sides.h"

#define H(name, value)                                                                             \
    {                                                                                              \
        {name, sizeof(name) - 1},                                                                  \
        {                                                                                          \
            value, sizeof(value) - 1                                                               \
        }                                                                                          \
    }

static void put_with(struct sides *s, struct bucket *b, const char *key, struct str body,
                     const struct object_meta *meta)
{
    struct put_options o = {.meta = *meta};
    struct put_result out;
    struct str_reader r;
    struct err err = {0};

    str_reader_init(&r, body);
    CHECK_OK(b->ops->put(b, &s->a, str_z(key), &r.reader, body.len, &o, &out, &err));
}

/* Made of parts of these sizes. */
static struct str put_parts(struct sides *s, const char *key, const size_t *sizes, size_t count)
{
    struct upload_info u = lab_upload(s->from, &s->a, key);
    struct upload_part *parts = arena_array(&s->a, count, sizeof(*parts));
    struct put_options o = {0};
    struct put_result out;
    struct buf all = BUF_INIT(256 * MIB);
    struct err err = {0};

    for (size_t i = 0; i < count; i++) {
        struct str body = lab_bytes(sizes[i], i + 10);
        parts[i] = lab_part(s->from, &s->a, &u, (uint32_t)i * 2 + 1, body);
        buf_append_str(&all, body);
    }
    CHECK_OK(s->from->ops->upload_finish(s->from, &s->a, &u, parts, count, &o, &out, &err));
    struct str kept = arena_str(&s->a, buf_str(&all));
    buf_release(&all);
    return kept;
}

TEST_SIDES(copy, objects_of_every_size)
{
    static const size_t sizes[] = {0, 1, 1000, 5 * MIB, 9 * MIB + 1};

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        lab_put(s->from, &s->a, "k", lab_bytes(sizes[i], i));
        CHECK_INT(sides_bring(s, "k").outcome, COPY_MADE);
        sides_expect_same(s, "k");
        CHECK_INT(sides_bring(s, "k").outcome, COPY_SAME);
    }
}

/* C3: what a listing did not have is put unless it came since. */
TEST_SIDES(copy, what_is_said_to_be_absent_is_compared_if_it_is_not)
{
    struct copy c = sides_copy(s, "k");
    struct copy_result out;
    struct err err = {0};

    c.absent = true;
    CHECK_OK(copy_object(&out, &s->a, &c, &err));
    CHECK_INT(out.outcome, COPY_ABSENT);
    lab_put(s->from, &s->a, "k", STR("one"));
    CHECK_OK(copy_object(&out, &s->a, &c, &err));
    CHECK_INT(out.outcome, COPY_MADE);
    CHECK_INT(out.bytes, 3);
    CHECK(out.source.is_private);
    sides_expect_same(s, "k");
    CHECK_OK(copy_object(&out, &s->a, &c, &err));
    CHECK_INT(out.outcome, COPY_SAME);
    lab_put(s->from, &s->a, "k", STR("two"));
    CHECK_OK(copy_object(&out, &s->a, &c, &err));
    CHECK_INT(out.outcome, COPY_MADE);
    sides_expect_same(s, "k");
    put_parts(s, "parts", (const size_t[]){SIDE_PART_MIN, 7}, 2);
    c.key = STR("parts");
    CHECK_OK(copy_object(&out, &s->a, &c, &err));
    CHECK_INT(out.outcome, COPY_MADE);
    sides_expect_same(s, "parts");
}

TEST_SIDES(copy, names_of_every_kind)
{
    static char longest[OBJECT_KEY_MAX + 1];
    static const char *const keys[] = {"a:b:t", "100%", "%41", "a b",  "\xc3\xbc/\xe2\x82\xac",
                                       "a//b",  "x/",   "+",   longest};

    memset(longest, 'k', OBJECT_KEY_MAX);
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        lab_put(s->from, &s->a, keys[i], str_z(keys[i]));
        CHECK_INT(sides_bring(s, keys[i]).outcome, COPY_MADE);
        lab_expect(s->to, keys[i], STR_EMPTY, str_z(keys[i]));
    }
}

TEST_SIDES(copy, what_is_kept_beside_the_bytes)
{
    struct http_header headers[] = {
        H("content-type", "text/plain"),
        H("cache-control", "no-store"),
        H("content-disposition", "attachment"),
        H("content-encoding", "x"),
        H("content-language", "de"),
        H("x-amz-meta-one", "1"),
        H("x-amz-meta-two", "a value with words"),
    };
    struct object_meta meta = {.headers = headers,
                               .header_count = ARRAY_SIZE(headers),
                               .tags = STR("a=1&b=x%20y"),
                               .storage_class = STR("STANDARD_IA")};

    put_with(s, s->from, "k", STR("body"), &meta);
    CHECK_INT(sides_bring(s, "k").outcome, COPY_MADE);
    sides_expect_same(s, "k");
    CHECK_STR(sides_head(s, s->to, "k").meta.storage_class, STR("STANDARD_IA"));
    /* the same bytes with another header are not the same */
    meta.header_count--;
    put_with(s, s->from, "k", STR("body"), &meta);
    CHECK_INT(sides_bring(s, "k").outcome, COPY_MADE);
    sides_expect_same(s, "k");
    CHECK_INT(sides_bring(s, "k").outcome, COPY_SAME);
}

TEST_SIDES(copy, parts_keep_their_sizes_and_so_the_etag)
{
    static const size_t uneven[] = {100, 5000, 321, 7}, even[] = {1000, 1000, 1000, 1},
                        one[] = {50}, full[] = {200, 200};

    put_parts(s, "uneven", uneven, ARRAY_SIZE(uneven));
    put_parts(s, "even", even, ARRAY_SIZE(even));
    put_parts(s, "one", one, 1);
    put_parts(s, "full", full, 2);
    static const char *const keys[] = {"uneven", "even", "one", "full"};
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        CHECK_INT(sides_bring(s, keys[i]).outcome, COPY_MADE);
        sides_expect_same(s, keys[i]);
        CHECK_INT(sides_bring(s, keys[i]).outcome, COPY_SAME);
    }
}

TEST_SIDES(copy, what_is_too_large_for_one_put_goes_as_parts)
{
    struct str body = lab_bytes(10 * 1000 + 1, 3);

    s->o = (struct copy_options){
        .whole_max = 1000, .part_size = 1000, .parallel_from = 1, .parallel = 4};
    lab_put(s->from, &s->a, "k", body);
    CHECK_INT(sides_bring(s, "k").outcome, COPY_MADE);
    lab_expect(s->to, "k", STR_EMPTY, body);
    CHECK_INT(sides_head(s, s->to, "k").part_count, 11);
}

/* --- the watch --- */

/* Does something the first time that it is asked with so many bytes read. */
struct meddler {
    struct sides *s;
    struct bucket *bucket; /* where to put */
    uint64_t after, seen;
    int calls, fail_at; /* fail_at: call number, 0: never */
    int fails;
};

static int meddle(void *ctx, uint64_t bytes, struct err *err)
{
    struct meddler *m = ctx;

    __atomic_add_fetch(&m->seen, bytes, __ATOMIC_RELAXED);
    int call = __atomic_add_fetch(&m->calls, 1, __ATOMIC_RELAXED);
    if (m->bucket && __atomic_load_n(&m->seen, __ATOMIC_RELAXED) >= m->after) {
        struct bucket *b = m->bucket;
        m->bucket = NULL;
        lab_put(b, &m->s->a, "k", STR("newer"));
    }
    if (m->fail_at && call >= m->fail_at) {
        m->fails++;
        return err_set(err, ERR_CANCELED, "the lock was lost");
    }
    return 0;
}

static void expect_copy(struct sides *s, const char *key, int code)
{
    struct copy c = sides_copy(s, key);
    struct copy_result out;
    struct err err = {0};

    CHECK_ERR(copy_object(&out, &s->a, &c, &err), code);
}

TEST_SIDES(copy, a_source_that_changes_meanwhile_is_begun_again)
{
    struct meddler m = {.s = s, .bucket = s->from};

    s->o = (struct copy_options){.watch = meddle, .ctx = &m};
    lab_put(s->from, &s->a, "k", lab_bytes(100000, 1));
    expect_copy(s, "k", ERR_CONFLICT);
    lab_expect(s->to, "k", STR_EMPTY, (struct str){0});
    CHECK_INT(sides_bring(s, "k").outcome, COPY_MADE);
    lab_expect(s->to, "k", STR_EMPTY, STR("newer"));
}

TEST_SIDES(copy, a_source_of_parts_that_changes_meanwhile_is_begun_again)
{
    struct err err = {0};
    static const size_t sizes[] = {1000, 2000, 500};
    struct meddler m = {.s = s, .bucket = s->from, .after = 1};

    s->o = (struct copy_options){.watch = meddle, .ctx = &m};
    put_parts(s, "k", sizes, ARRAY_SIZE(sizes));
    expect_copy(s, "k", ERR_CONFLICT);
    lab_expect(s->to, "k", STR_EMPTY, (struct str){0});
    CHECK_INT(sides_bring(s, "k").outcome, COPY_MADE);
    lab_expect(s->to, "k", STR_EMPTY, STR("newer"));
    struct upload_list uploads;
    struct list_options all = {.limit = 10};
    CHECK_OK(s->to->ops->list_uploads(s->to, &s->a, &all, &uploads, &err));
    CHECK_INT(uploads.count, 0);
}

TEST_SIDES(copy, nothing_newer_at_the_destination_is_overwritten)
{
    static const size_t sizes[] = {1000, 2000, 500};
    static const char *const before[] = {NULL, "older"};

    for (int parts = 0; parts < 2; parts++) {
        for (size_t i = 0; i < ARRAY_SIZE(before); i++) {
            struct meddler m = {.s = s, .bucket = s->to};
            s->o = (struct copy_options){.watch = meddle, .ctx = &m};
            if (parts)
                put_parts(s, "k", sizes, ARRAY_SIZE(sizes));
            else
                lab_put(s->from, &s->a, "k", lab_bytes(1000, 1));
            if (before[i])
                lab_put(s->to, &s->a, "k", str_z(before[i]));
            else
                lab_remove(s->to, &s->a, "k", STR_EMPTY);
            expect_copy(s, "k", ERR_CONFLICT);
            lab_expect(s->to, "k", STR_EMPTY, STR("newer"));
            CHECK_INT(sides_bring(s, "k").outcome, COPY_MADE);
            sides_expect_same(s, "k");
        }
    }
}

TEST_SIDES(copy, a_lost_lock_stops_it)
{
    static const size_t sizes[] = {1000, 2000, 500};
    struct meddler m = {.s = s, .fail_at = 2};

    s->o = (struct copy_options){.watch = meddle, .ctx = &m};
    lab_put(s->from, &s->a, "k", lab_bytes(20 * MIB, 1));
    expect_copy(s, "k", ERR_CANCELED);
    CHECK(m.seen < 20 * MIB); /* not only at the end */
    lab_expect(s->to, "k", STR_EMPTY, (struct str){0});
    put_parts(s, "p", sizes, ARRAY_SIZE(sizes));
    m = (struct meddler){.s = s, .fail_at = 3};
    expect_copy(s, "p", ERR_CANCELED);
    lab_expect(s->to, "p", STR_EMPTY, (struct str){0});
    m = (struct meddler){.s = s};
    CHECK_INT(sides_bring(s, "k").outcome, COPY_MADE);
    CHECK_INT(m.seen, 20 * MIB);
}

/* --- going on --- */

struct notebook {
    struct arena *a;
    struct str value;
    int writes;
};

static int notebook_get(void *ctx, struct arena *a, struct str *out, struct err *err)
{
    *out = arena_str(a, ((struct notebook *)ctx)->value);
    return 0;
}

static int notebook_set(void *ctx, struct str value, struct err *err)
{
    struct notebook *n = ctx;

    n->value = arena_str(n->a, value);
    n->writes++;
    return 0;
}

TEST_SIDES(copy, parts_that_are_there_are_not_sent_again)
{
    static const size_t sizes[] = {1000, 2000, 500, 700, 800};
    struct notebook n = {.a = &s->a};
    /* asked: before, then for each part before it and behind its bytes */
    struct meddler m = {.s = s, .fail_at = 6};
    struct copy_result out;

    s->o = (struct copy_options){
        .watch = meddle, .ctx = &m, .memory = {notebook_get, notebook_set, &n}};
    struct str body = put_parts(s, "k", sizes, ARRAY_SIZE(sizes));
    expect_copy(s, "k", ERR_CANCELED);
    CHECK(n.value.len > 0);
    m = (struct meddler){.s = s};
    out = sides_bring(s, "k");
    CHECK_INT(out.outcome, COPY_MADE);
    CHECK_INT(out.bytes, 500 + 700 + 800);
    CHECK_INT(n.value.len, 0);
    lab_expect(s->to, "k", STR_EMPTY, body);
    sides_expect_same(s, "k");
}

TEST_SIDES(copy, parts_of_an_older_source_are_not_gone_on_with)
{
    struct err err = {0};
    static const size_t sizes[] = {1000, 2000, 500}, others[] = {1000, 2000, 501};
    struct notebook n = {.a = &s->a};
    struct meddler m = {.s = s, .fail_at = 5};
    struct upload_list uploads;

    s->o = (struct copy_options){
        .watch = meddle, .ctx = &m, .memory = {notebook_get, notebook_set, &n}};
    put_parts(s, "k", sizes, ARRAY_SIZE(sizes));
    expect_copy(s, "k", ERR_CANCELED);
    put_parts(s, "k", others, ARRAY_SIZE(others));
    m = (struct meddler){.s = s};
    CHECK_INT(sides_bring(s, "k").bytes, 3501);
    sides_expect_same(s, "k");
    struct list_options all = {.limit = 10};
    CHECK_OK(s->to->ops->list_uploads(s->to, &s->a, &all, &uploads, &err));
    CHECK_INT(uploads.count, 0);
}

TEST_SIDES(copy, an_upload_that_is_gone_is_begun_again)
{
    struct err err = {0};
    static const size_t sizes[] = {1000, 2000, 500};
    struct notebook n = {.a = &s->a};
    struct meddler m = {.s = s, .fail_at = 5};
    struct upload_list uploads;
    struct list_options all = {.limit = 10};

    s->o = (struct copy_options){
        .watch = meddle, .ctx = &m, .memory = {notebook_get, notebook_set, &n}};
    put_parts(s, "k", sizes, ARRAY_SIZE(sizes));
    expect_copy(s, "k", ERR_CANCELED);
    CHECK_OK(s->to->ops->list_uploads(s->to, &s->a, &all, &uploads, &err));
    CHECK_INT(uploads.count, 1);
    CHECK_OK(s->to->ops->upload_abort(s->to, &uploads.uploads[0], &err));
    m = (struct meddler){.s = s};
    CHECK_INT(sides_bring(s, "k").bytes, 3500);
    sides_expect_same(s, "k");
}

TEST_SIDES(copy, an_upload_of_a_client_is_left_alone)
{
    struct err err = {0};
    static const size_t sizes[] = {1000, 500};
    struct upload_info theirs = lab_upload(s->to, &s->a, "k");
    struct upload_part part = lab_part(s->to, &s->a, &theirs, 1, lab_bytes(1000, 10));
    struct notebook n = {.a = &s->a};
    struct put_options o = {0};
    struct put_result made;

    s->o = (struct copy_options){.memory = {notebook_get, notebook_set, &n}};
    put_parts(s, "k", sizes, ARRAY_SIZE(sizes));
    CHECK_INT(sides_bring(s, "k").bytes, 1500);
    sides_expect_same(s, "k");
    CHECK_OK(s->to->ops->upload_finish(s->to, &s->a, &theirs, &part, 1, &o, &made, &err));
}

/* --- removals --- */

TEST_SIDES(copy, what_the_source_does_not_have_is_taken_away)
{
    struct err err = {0};
    struct copy c = sides_copy(s, "k");
    struct copy_result out;

    CHECK_INT(sides_bring(s, "k").outcome, COPY_ABSENT);
    CHECK_OK(copy_removal(&out, &s->a, &c, &err));
    CHECK_INT(out.outcome, COPY_ABSENT);
    lab_put(s->to, &s->a, "k", STR("old"));
    CHECK_INT(sides_bring(s, "k").outcome, COPY_ABSENT);
    lab_expect(s->to, "k", STR_EMPTY, STR("old"));
    CHECK_OK(copy_removal(&out, &s->a, &c, &err));
    CHECK_INT(out.outcome, COPY_REMOVED);
    lab_expect(s->to, "k", STR_EMPTY, (struct str){0});
    lab_put(s->from, &s->a, "k", STR("new"));
    lab_put(s->to, &s->a, "k", STR("old"));
    CHECK_OK(copy_removal(&out, &s->a, &c, &err));
    CHECK_INT(out.outcome, COPY_SAME);
    lab_expect(s->to, "k", STR_EMPTY, STR("old"));
}

TEST_SIDES(copy, a_removal_spares_what_changed_meanwhile)
{
    struct err err = {0};
    struct meddler m = {.s = s, .bucket = s->to};
    struct copy c = sides_copy(s, "k");
    struct copy_result out;

    s->o = (struct copy_options){.watch = meddle, .ctx = &m};
    lab_put(s->to, &s->a, "k", STR("old"));
    CHECK_ERR(copy_removal(&out, &s->a, &c, &err), ERR_CONFLICT);
    lab_expect(s->to, "k", STR_EMPTY, STR("newer"));
}

TEST(copy, a_source_without_its_bucket_removes_nothing)
{
    struct err err = {0};
    struct sides s;
    struct copy_result out;

    sides_open(&s, SIDE_LOCAL, SIDE_LOCAL);
    struct copy c = sides_copy(&s, "k");
    lab_put(s.to, &s.a, "k", STR("old"));
    CHECK_OK(s.locals[0]->ops->remove_bucket(s.locals[0], STR("owner"), STR("box"), &err));
    CHECK_ERR(copy_object(&out, &s.a, &c, &err), ERR_NO_BUCKET);
    CHECK_ERR(copy_removal(&out, &s.a, &c, &err), ERR_NO_BUCKET);
    lab_expect(s.to, "k", STR_EMPTY, STR("old"));
    sides_close(&s);
}
