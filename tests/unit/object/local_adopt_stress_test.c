/* Windows that move between three buckets of one logical bucket, beside writers, listings, scrubs,
 * the collector and holds. A lock for each window stands for the passes of requests. In the end
 * every key has what was answered last, in one bucket, and all counts are right. */
#include "unit/object/shard_lab.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    BUCKETS = 3,
    WINDOWS = 6,
    WRITERS = 4,
    KEYS = 4 /* of a writer in a window */,
    ROUNDS = 1000
};

struct field {
    struct shard_lab lab;
    struct bucket *buckets[BUCKETS];
    struct mutex locks[WINDOWS];
    size_t owners[WINDOWS]; /* the bucket that has the window; under its lock */
    struct mutex lock;      /* of the members below */
    struct cond more;
    unsigned steps; /* of the writers */
    unsigned moved;
    bool stop;
};

/* What a key has, as answered; 0: nothing. */
struct kept {
    unsigned value, versions;
};

struct racer {
    struct thread thread;
    struct field *f;
    unsigned id, number;
    uint64_t random;
    struct kept kept[WINDOWS][KEYS];
    struct upload_info upload; /* its strings are in `a`; no id: there is none */
    struct upload_part parts[3];
    size_t part_count, window, key; /* of the upload */
    struct arena a;
    char name[32], why[600];
    const char *wrong;
};

static uint64_t next(struct racer *r, uint64_t bound)
{
    r->random = r->random * 6364136223846793005u + 1442695040888963407u;
    return (r->random >> 33) % bound;
}

static int judge(struct racer *r, int code, const char *what, const struct err *err)
{
    if (code < 0 && !r->wrong) {
        r->wrong = what;
        snprintf(r->why, sizeof(r->why), "%s", err->text);
    }
    return code;
}

static struct key_window window_of(size_t w, char borders[2][4])
{
    snprintf(borders[0], 4, "w%u", (unsigned)w % 10);
    snprintf(borders[1], 4, "w%u", (unsigned)(w + 1) % 10);
    return (struct key_window){str_z(borders[0]), str_z(borders[1])};
}

static struct str key_of(struct racer *r, size_t w, size_t key)
{
    snprintf(r->name, sizeof(r->name), "w%u/%u/%u", (unsigned)w, r->id, (unsigned)key);
    return str_z(r->name);
}

/* Some values are rows, some are files. */
static void fill(struct buf *out, unsigned writer, unsigned value)
{
    size_t len = value % 5 == 0 ? 40 * KIB : 20 + value % 100;

    buf_reset(out);
    while (out->len < len)
        buf_appendf(out, "%u/%u ", writer, value);
}

/* --- pace: those beside the writers go on when the writers do --- */

static void step(struct field *f)
{
    mutex_lock(&f->lock);
    f->steps++;
    cond_broadcast(&f->more);
    mutex_unlock(&f->lock);
}

static void stop(struct field *f)
{
    mutex_lock(&f->lock);
    f->stop = true;
    cond_broadcast(&f->more);
    mutex_unlock(&f->lock);
}

/* Waits until the writers have made this number of steps after *seen. False: they have ended. */
static bool await_steps(struct field *f, unsigned *seen, unsigned count)
{
    mutex_lock(&f->lock);
    while (!f->stop && f->steps < *seen + count)
        cond_wait(&f->more, &f->lock);
    *seen = f->steps;
    bool go_on = !f->stop;
    mutex_unlock(&f->lock);
    return go_on;
}

/* --- writers --- */

static void put(struct racer *r, struct bucket *b, struct str key, struct kept *kept)
{
    struct put_options o = {0};
    struct arena a = ARENA_INIT(0);
    struct buf body = BUF_INIT(0);
    struct put_result out;
    struct str_reader reader;
    struct err err = {0};

    fill(&body, r->id, ++r->number);
    str_reader_init(&reader, buf_str(&body));
    judge(r, b->ops->put(b, &a, key, &reader.reader, body.len, &o, &out, &err), "put", &err);
    kept->value = r->number;
    kept->versions++;
    buf_release(&body);
    arena_release(&a);
}

static void discard(struct racer *r, struct bucket *b, struct str key, struct kept *kept)
{
    struct remove_options o = {0};
    struct arena a = ARENA_INIT(0);
    struct remove_result out;
    struct err err = {0};

    judge(r, b->ops->remove(b, &a, key, &o, &out, &err), "remove", &err);
    kept->value = 0;
    kept->versions++; /* a marker */
    arena_release(&a);
}

static void expect_value(struct racer *r, struct bucket *b, struct str key, unsigned value)
{
    struct buf want = BUF_INIT(0), have = BUF_INIT(0);
    struct arena a = ARENA_INIT(0);
    struct get_result got;
    struct err err = {0};
    int code = b->ops->get(b, &a, key, STR_EMPTY, NULL, NULL, &got, &err);

    if (code == 0) {
        code = reader_read_all(got.body, &have, &err);
        reader_close(got.body);
        fill(&want, r->id, value);
    }
    if (value == 0 ? code != ERR_NOT_FOUND : code < 0 || !str_eq(buf_str(&have), buf_str(&want)))
        judge(r, ERR_CORRUPT, "a key has not what was answered last", &err);
    buf_release(&want);
    buf_release(&have);
    arena_release(&a);
}

/* The next step of the writer's upload: begin, three parts, finish. The window may move between any
 * two of them. */
static void upload_step(struct racer *r)
{
    struct object_meta meta = {0};
    struct put_options o = {0};
    struct buf body = BUF_INIT(0);
    struct put_result out;
    struct str_reader reader;
    struct err err = {0};
    int code = 0;

    if (!r->upload.id.len) {
        r->window = next(r, WINDOWS);
        r->key = next(r, KEYS);
        r->part_count = 0;
    }
    mutex_lock(&r->f->locks[r->window]);
    struct bucket *b = r->f->buckets[r->f->owners[r->window]];
    struct str key = key_of(r, r->window, r->key);
    struct kept *kept = &r->kept[r->window][r->key];
    if (!r->upload.id.len) {
        r->upload.key = arena_str(&r->a, key);
        code = b->ops->upload_begin(b, &r->a, key, &meta, &r->upload.id, &err);
        r->number = (r->number / 5 + 1) * 5; /* a long value */
    } else if (r->part_count < ARRAY_SIZE(r->parts)) {
        size_t i = r->part_count++;
        fill(&body, r->id, r->number);
        struct str part = str_skip(buf_str(&body), i * 10000);
        str_reader_init(&reader, i < 2 ? str_head(part, 10000) : part);
        code = b->ops->upload_part(b, &r->a, &r->upload, (uint32_t)i + 1, &reader.reader,
                                   UINT64_MAX, &o, &r->parts[i], &err);
    } else {
        code = b->ops->upload_finish(b, &r->a, &r->upload, r->parts, 3, &o, &out, &err);
        kept->value = r->number;
        kept->versions++;
        r->upload.id = STR_EMPTY;
    }
    mutex_unlock(&r->f->locks[r->window]);
    judge(r, code, "upload", &err);
    buf_release(&body);
}

static void write_main(void *ctx)
{
    struct racer *r = ctx;

    for (int i = 0; i < ROUNDS && !r->wrong; i++, step(r->f)) {
        size_t w = next(r, WINDOWS), k = next(r, KEYS);
        uint64_t what = next(r, 10);
        if (r->upload.id.len ? what < 5 : what == 0) {
            upload_step(r);
            continue;
        }
        if (r->upload.id.len && w == r->window && k == r->key)
            continue; /* the upload's number would be older than that of the put */
        mutex_lock(&r->f->locks[w]);
        struct bucket *b = r->f->buckets[r->f->owners[w]];
        struct str key = key_of(r, w, k);
        if (what < 7 && !r->upload.id.len)
            put(r, b, key, &r->kept[w][k]);
        else if (what == 7)
            discard(r, b, key, &r->kept[w][k]);
        else
            expect_value(r, b, key, r->kept[w][k].value);
        mutex_unlock(&r->f->locks[w]);
    }
    while (r->upload.id.len && !r->wrong)
        upload_step(r);
}

/* --- who runs beside them --- */

static int adopt(struct racer *r, size_t w, size_t to, size_t from, size_t limit, bool all)
{
    struct arena a = ARENA_INIT(0);
    char borders[2][4];
    struct key_window window = window_of(w, borders);
    bool more = true;
    struct err err = {0};
    int code = 0;

    while (code == 0 && more) {
        code = local_adopt(r->f->buckets[to], r->f->buckets[from], window.after, window.upto, limit,
                           &a, &window.after, &more, &err);
        more = more && all;
    }
    arena_release(&a);
    return judge(r, code, "adopt", &err);
}

static void move_main(void *ctx)
{
    struct racer *r = ctx;
    unsigned seen = 0;

    while (await_steps(r->f, &seen, 5) && !r->wrong) {
        size_t w = next(r, WINDOWS), limit = 1 + next(r, 20);
        mutex_lock(&r->f->locks[w]);
        size_t from = r->f->owners[w], to = (from + 1 + next(r, BUCKETS - 1)) % BUCKETS;
        if (next(r, 4) == 0) { /* a move that was begun and is undone */
            adopt(r, w, to, from, limit, false);
            adopt(r, w, from, to, limit, true);
        } else if (adopt(r, w, to, from, limit, true) == 0) {
            r->f->owners[w] = to;
        }
        mutex_unlock(&r->f->locks[w]);
        mutex_lock(&r->f->lock);
        r->f->moved++;
        mutex_unlock(&r->f->lock);
    }
}

static int finding(void *ctx, const struct local_finding *f, struct err *err)
{
    (void)ctx;
    return err_set(err, ERR_CORRUPT, "%s: " STR_FMT "/" STR_FMT, local_damage_text(f->damage),
                   STR_ARG(f->bucket), STR_ARG(f->key));
}

static void list(struct racer *r, struct bucket *b)
{
    struct list_options o = {.limit = 20};
    struct arena a = ARENA_INIT(0);
    struct list_result page;
    struct err err = {0};

    if (judge(r, b->ops->list_versions(b, &a, &o, &page, &err), "list", &err) == 0)
        for (size_t i = 1; i < page.count; i++)
            if (str_cmp(page.entries[i - 1].info.key, page.entries[i].info.key) > 0)
                judge(r, ERR_CORRUPT, "a listing out of order", &err);
    arena_release(&a);
}

/* Everything that reads rows or removes files without knowing of windows. */
static void look_main(void *ctx)
{
    struct racer *r = ctx;
    struct storage *s = r->f->lab.l.lab.storage;
    struct local_scrub scrub = {.finding = finding};
    struct bucket_usage u;
    unsigned seen = 0;
    struct err err = {0};

    while (await_steps(r->f, &seen, 20) && !r->wrong) {
        list(r, r->f->buckets[next(r, BUCKETS)]);
        judge(r, local_usage_of(r->f->buckets, BUCKETS, &u, &err), "usage", &err);
        local_hold(s);
        judge(r, local_scrub(s, &scrub, &err), "scrub", &err);
        local_unhold(s);
        local_collect(s);
    }
}

/* --- the checker --- */

static size_t count_versions(struct bucket *b, struct str key)
{
    struct list_options o = {.prefix = key, .limit = OBJECT_LIST_MAX};
    struct arena a = ARENA_INIT(0);
    struct list_result page;
    struct err err = {0};

    CHECK_OK(b->ops->list_versions(b, &a, &o, &page, &err));
    CHECK(!page.more);
    arena_release(&a);
    return page.count;
}

static void check_keys(struct racer *r, bool versions)
{
    for (size_t w = 0; w < WINDOWS; w++)
        for (size_t k = 0; k < KEYS; k++)
            for (size_t b = 0; b < BUCKETS; b++) {
                const struct kept *kept = &r->kept[w][k];
                bool own = b == r->f->owners[w];
                struct str key = key_of(r, w, k);
                expect_value(r, r->f->buckets[b], key, own ? kept->value : 0);
                size_t want = !own ? 0 : versions ? kept->versions : kept->value != 0;
                CHECK_INT(count_versions(r->f->buckets[b], key), want);
            }
}

static void field_open(struct field *f, bool versions)
{
    struct bucket_info state = {.versions = versions ? VERSIONS_ON : VERSIONS_NEVER};
    struct err err = {0};

    *f = (struct field){0};
    shard_lab_open(&f->lab);
    shard_lab_begin(&f->lab, 'x', &state);
    CHECK_OK(local_make_shard(f->lab.whole, STR("third"), &err));
    f->buckets[0] = f->lab.whole;
    f->buckets[1] = f->lab.shard;
    f->buckets[2] = shard_lab_bucket(&f->lab, STR("third"));
    for (size_t w = 0; w < WINDOWS; w++)
        mutex_init(&f->locks[w], "test.window");
    mutex_init(&f->lock, "test.field");
    cond_init(&f->more);
}

static void field_close(struct field *f)
{
    struct local_scrub scrub = {.finding = finding};
    struct err err = {0};

    CHECK_OK(local_scrub(f->lab.l.lab.storage, &scrub, &err));
    for (size_t w = 0; w < WINDOWS; w++)
        mutex_release(&f->locks[w]);
    mutex_release(&f->lock);
    cond_release(&f->more);
    f->buckets[2]->ops->unref(f->buckets[2]);
    shard_lab_end(&f->lab);
    shard_lab_close(&f->lab);
}

static void race(bool versions)
{
    static thread_fn *const beside[] = {move_main, move_main, look_main};
    enum { ALL = WRITERS + ARRAY_SIZE(beside) };
    struct racer *racers = xcalloc(ALL, sizeof(*racers));
    struct field f;
    struct err err = {0};

    field_open(&f, versions);
    for (unsigned i = 0; i < ALL; i++) {
        struct racer *r = &racers[i];
        *r = (struct racer){.f = &f, .id = i, .random = i * 7919 + 1, .a = ARENA_INIT(0)};
        CHECK_OK(thread_start(&r->thread, "racer", 0,
                              i < WRITERS ? write_main : beside[i - WRITERS], r, &err));
    }
    for (unsigned i = 0; i < ALL; i++) {
        if (i == WRITERS)
            stop(&f);
        thread_join(&racers[i].thread);
    }
    CHECK(f.moved > 10);
    for (unsigned i = 0; i < WRITERS; i++)
        check_keys(&racers[i], versions);
    for (unsigned i = 0; i < ALL; i++) {
        if (racers[i].wrong)
            test_fail(__FILE__, __LINE__, "%s: %s", racers[i].wrong, racers[i].why);
        arena_release(&racers[i].a);
    }
    free(racers);
    field_close(&f);
}

TEST_TIMEOUT(local_adopt_stress, writers_beside_moves_lose_nothing, 600)
{
    race(false);
}

TEST_TIMEOUT(local_adopt_stress, writers_beside_moves_lose_no_version, 600)
{
    race(true);
}
