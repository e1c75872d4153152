/* Many threads on the same few keys of a local storage, with a checker: whoever reads sees a whole
 * body that matches its ETag, and what is listed is in order. */
#include "unit/object/local_lab.h"

#include <stdatomic.h>
#include <stdio.h>

enum { THREADS = 6, KEYS = 4, ROUNDS = 150, RACES = 60 };

struct racer {
    struct thread thread;
    struct bucket *b;
    unsigned id;
    uint64_t random;
    _Atomic(int) *winners;
    pthread_barrier_t *start;
    const char *wrong; /* what went against the rules */
    char why[600];
};

static uint64_t next(struct racer *r, uint64_t bound)
{
    r->random = r->random * 6364136223846793005u + 1442695040888963407u;
    return (r->random >> 33) % bound;
}

static void fail(struct racer *r, const char *what, const struct err *err)
{
    if (r->wrong)
        return;
    r->wrong = what;
    snprintf(r->why, sizeof(r->why), "%s", err->text);
}

/* Small, large, and made of parts. */
static size_t body_len(struct racer *r)
{
    return next(r, 3) == 0 ? 70 * KIB + next(r, 200 * KIB) : next(r, 3000);
}

static void fill(struct buf *out, size_t len, uint64_t seed)
{
    buf_reset(out);
    for (size_t i = 0; i < len; i++)
        buf_append_char(out, (char)(seed + i * 7));
}

static void put(struct racer *r, struct arena *a, struct str key, struct buf *body)
{
    struct put_options o = {0};
    struct put_result out;
    struct str_reader reader;
    struct err err = {0};

    fill(body, body_len(r), next(r, 256));
    str_reader_init(&reader, buf_str(body));
    if (r->b->ops->put(r->b, a, key, &reader.reader, body->len, &o, &out, &err) != 0)
        fail(r, "put", &err);
}

static void upload(struct racer *r, struct arena *a, struct str key, struct buf *body)
{
    struct upload_info u = {.key = key};
    struct object_meta meta = {0};
    struct put_options o = {0};
    struct put_result out;
    struct upload_part parts[3];
    struct err err = {0};
    int code = r->b->ops->upload_begin(r->b, a, key, &meta, &u.id, &err);

    for (uint32_t i = 0; i < 3 && code == 0; i++) {
        struct str_reader reader;
        fill(body, 1000 + next(r, 3000), next(r, 256));
        str_reader_init(&reader, buf_str(body));
        code = r->b->ops->upload_part(r->b, a, &u, i + 1, &reader.reader, body->len, &o, &parts[i],
                                      &err);
    }
    if (code == 0)
        code = r->b->ops->upload_finish(r->b, a, &u, parts, 3, &o, &out, &err);
    if (code != 0)
        fail(r, "upload", &err);
}

/* Of an object of parts the bytes' order within each: every part is a run that counts up by 7. */
static bool parts_whole(struct str body)
{
    size_t breaks = 0;

    for (size_t i = 1; i < body.len; i++)
        breaks += (unsigned char)(body.p[i] - body.p[i - 1]) != 7;
    return breaks <= 2;
}

static bool etag_matches(struct str body, const struct object_info *info)
{
    struct digest_value md5;
    struct buf hex = BUF_INIT(0);

    if (info->part_count > 0)
        return body.len == info->size && parts_whole(body);
    digest_of(DIGEST_MD5, body, &md5);
    buf_append_hex(&hex, md5.bytes, md5.len);
    bool same = str_eq(buf_str(&hex), info->etag);
    buf_release(&hex);
    return same;
}

static void get(struct racer *r, struct arena *a, struct str key, struct str version,
                struct buf *body)
{
    struct get_result got;
    struct err err = {0};
    int code = r->b->ops->get(r->b, a, key, version, NULL, NULL, &got, &err);

    if (code == ERR_NOT_FOUND)
        return;
    buf_reset(body);
    if (code == 0) {
        code = reader_read_all(got.body, body, &err);
        reader_close(got.body);
    }
    if (code != 0)
        fail(r, "get", &err);
    else if (!etag_matches(buf_str(body), &got.info))
        fail(r, "a body that is not its ETag's", &err);
}

static void list(struct racer *r, struct arena *a, struct buf *body, bool remove)
{
    struct list_options o = {.limit = 50};
    struct list_result out;
    struct err err = {0};

    if (r->b->ops->list_versions(r->b, a, &o, &out, &err) != 0) {
        fail(r, "list", &err);
        return;
    }
    for (size_t i = 1; i < out.count; i++) {
        const struct object_info *x = &out.entries[i - 1].info, *y = &out.entries[i].info;
        int order = str_cmp(x->key, y->key);
        if (order > 0 || (order == 0 && y->is_latest) || (order < 0 && !y->is_latest))
            fail(r, "a listing out of order", &err);
    }
    for (size_t i = 0; i < out.count && i < 20; i++) {
        const struct object_info *info = &out.entries[i].info;
        struct remove_options gone = {.version = info->version};
        struct remove_result removed;
        if (!info->is_marker)
            get(r, a, info->key, info->version, body);
        if (remove && i % 2 == 0 &&
            r->b->ops->remove(r->b, a, info->key, &gone, &removed, &err) != 0)
            fail(r, "remove of a version", &err);
    }
}

static void copy(struct racer *r, struct arena *a, struct str key, struct str from)
{
    struct put_options o = {0};
    struct put_result out;
    struct get_result got;
    struct err err = {0};
    int code = r->b->ops->head(r->b, a, from, STR_EMPTY, NULL, &got, &err);

    if (code == 0)
        code = r->b->ops->copy(r->b, a, key, r->b, &got.info, &o, &out, &err);
    if (code != 0 && code != ERR_NOT_FOUND && code != ERR_CONFLICT)
        fail(r, "copy", &err);
}

static void race_main(void *ctx)
{
    struct racer *r = ctx;
    struct buf body = BUF_INIT(0);

    for (int i = 0; i < ROUNDS && !r->wrong; i++) {
        struct arena a = ARENA_INIT(0);
        struct remove_options o = {0};
        struct remove_result removed;
        struct err err = {0};
        char name[16], other[16];
        snprintf(name, sizeof(name), "k%u", (unsigned)next(r, KEYS));
        snprintf(other, sizeof(other), "k%u", (unsigned)next(r, KEYS));
        uint64_t what = next(r, 20);
        if (what < 6)
            put(r, &a, str_z(name), &body);
        else if (what < 8)
            upload(r, &a, str_z(name), &body);
        else if (what < 15)
            get(r, &a, str_z(name), STR_EMPTY, &body);
        else if (what < 16)
            copy(r, &a, str_z(name), str_z(other));
        else if (what < 18)
            list(r, &a, &body, what == 17);
        else if (r->b->ops->remove(r->b, &a, str_z(name), &o, &removed, &err) != 0)
            fail(r, "remove", &err);
        arena_release(&a);
    }
    buf_release(&body);
}

static void run_racers(struct racer *racers, struct bucket *b, thread_fn *fn)
{
    struct err err = {0};

    for (unsigned i = 0; i < THREADS; i++) {
        racers[i].b = b;
        racers[i].id = i;
        racers[i].random = i * 7919 + 1;
        CHECK_OK(thread_start(&racers[i].thread, "racer", 0, fn, &racers[i], &err));
    }
    for (unsigned i = 0; i < THREADS; i++)
        thread_join(&racers[i].thread);
    for (unsigned i = 0; i < THREADS; i++)
        if (racers[i].wrong)
            test_fail(__FILE__, __LINE__, "%s: %s", racers[i].wrong, racers[i].why);
}

static void race(bool versions, bool suspend)
{
    struct local_lab l;
    struct racer racers[THREADS] = {0};
    struct err err = {0};

    local_lab_open(&l, NULL);
    struct bucket *b = lab_bucket(l.lab.storage, "b");
    if (versions)
        CHECK_OK(b->ops->set_versions(b, true, &err));
    if (suspend)
        CHECK_OK(b->ops->set_versions(b, false, &err));
    run_racers(racers, b, race_main);
    local_lab_expect_whole(&l);
    b->ops->unref(b);
    local_lab_close(&l);
}

TEST_TIMEOUT(local_stress, readers_see_whole_bodies, 600)
{
    race(false, false);
}

TEST_TIMEOUT(local_stress, readers_see_whole_bodies_with_versions, 600)
{
    race(true, false);
}

TEST_TIMEOUT(local_stress, readers_see_whole_bodies_with_suspended_versions, 600)
{
    race(true, true);
}

static void once_main(void *ctx)
{
    struct racer *r = ctx;

    for (int i = 0; i < RACES && !r->wrong; i++) {
        struct arena a = ARENA_INIT(0);
        struct put_options o = {.conditions.if_none_match = STR("*")};
        struct put_result out;
        struct str_reader reader;
        struct err err = {0};
        char key[16], body[16];
        snprintf(key, sizeof(key), "once%d", i);
        snprintf(body, sizeof(body), "%u", r->id);
        str_reader_init(&reader, str_z(body));
        pthread_barrier_wait(r->start);
        int code =
            r->b->ops->put(r->b, &a, str_z(key), &reader.reader, strlen(body), &o, &out, &err);
        if (code == 0)
            atomic_fetch_add(&r->winners[i], 1);
        else if (code != ERR_PRECONDITION)
            fail(r, "put", &err);
        arena_release(&a);
    }
}

TEST_TIMEOUT(local_stress, of_many_that_put_what_must_not_be_there_one_wins, 600)
{
    struct local_lab l;
    struct racer racers[THREADS] = {0};
    _Atomic(int) winners[RACES] = {0};
    pthread_barrier_t start;

    local_lab_open(&l, NULL);
    struct bucket *b = lab_bucket(l.lab.storage, "b");
    CHECK(pthread_barrier_init(&start, NULL, THREADS) == 0);
    for (int i = 0; i < THREADS; i++) {
        racers[i].winners = winners;
        racers[i].start = &start;
    }
    run_racers(racers, b, once_main);
    for (int i = 0; i < RACES; i++)
        CHECK_INT(winners[i], 1);
    pthread_barrier_destroy(&start);
    b->ops->unref(b);
    local_lab_close(&l);
}

/* Puts against the removal of their bucket: no row stays without a bucket (L5). */
static void bucket_main(void *ctx)
{
    struct racer *r = ctx;

    for (int i = 0; i < RACES && !r->wrong; i++) {
        struct storage *s = &local_bucket_of(r->b)->local->storage;
        struct bucket_info info = {.name = STR("brief"), .owner = STR("o")};
        struct arena a = ARENA_INIT(0);
        struct put_options o = {0};
        struct put_result out;
        struct remove_options remove = {0};
        struct remove_result removed;
        struct str_reader reader;
        struct bucket *b = NULL;
        struct err err = {0};
        (void)s->ops->create_bucket(s, &info, &err);
        if (s->ops->open_bucket(&b, s, STR("owner"), info.name, &err) == 0) {
            str_reader_init(&reader, STR("x"));
            int code = b->ops->put(b, &a, STR("k"), &reader.reader, 1, &o, &out, &err);
            if (code != 0 && code != ERR_NO_BUCKET)
                fail(r, "put", &err);
            code = b->ops->remove(b, &a, STR("k"), &remove, &removed, &err);
            if (code != 0 && code != ERR_NO_BUCKET)
                fail(r, "remove", &err);
            b->ops->unref(b);
        }
        int code = s->ops->remove_bucket(s, STR("owner"), info.name, &err);
        if (code != 0 && code != ERR_NO_BUCKET && code != ERR_CONFLICT)
            fail(r, "remove_bucket", &err);
        arena_release(&a);
    }
}

TEST_TIMEOUT(local_stress, a_bucket_that_goes_leaves_no_rows, 600)
{
    struct local_lab l;
    struct racer racers[THREADS] = {0};

    local_lab_open(&l, NULL);
    struct bucket *b = lab_bucket(l.lab.storage, "b");
    run_racers(racers, b, bucket_main);
    local_lab_expect_whole(&l);
    b->ops->unref(b);
    local_lab_close(&l);
}
