/* A storage that delays requests and answers, and carries requests out late (shard_sim.h). */
#include "crash/shard_sim.h"
#include "base/vec.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    STORAGE_FAST_MS = 20, /* most of a usual request's way, there or back */
    STORAGE_SLOW_MS = 800,
    STORAGE_LATE_S = 60, /* a request that lands long after its sender has given up */
    STORAGE_PATIENCE_MS = 1500,
    STORAGE_LONG_PATIENCE_MS = 40000, /* of some gets and listings */
    LONG_PATIENCE_PERCENT = 15,
    SLOW_PERCENT = 6,
};

struct sim_object {
    struct str key, body; /* allocated */
};

struct sim_bucket {
    struct bucket bucket;
    VEC(struct sim_object) objects; /* sorted by key */
};

static VEC(struct sim_bucket *) buckets;
static uint64_t late_permille; /* how many requests, and answers, are late; of this run */

enum storage_verb { VERB_GET, VERB_PUT, VERB_REMOVE, VERB_LIST, VERB_WALK };

/* A request on its way. It outlives its sender. */
struct sim_request {
    enum storage_verb verb;
    struct sim_bucket *bucket;
    struct str key, body; /* allocated; of a list: the prefix, and the key to begin after */
    bool only_new, answered;
    int code;
    struct buf answer; /* of a get: the body; of a list: the first key */
};

static struct str storage_keep(struct str s)
{
    return str_n(str_dup(s), s.len);
}

/* --- objects --- */

static size_t storage_find(const struct sim_bucket *b, struct str key, bool *there)
{
    size_t i = 0;

    while (i < b->objects.len && str_cmp(b->objects.items[i].key, key) < 0)
        i++;
    *there = i < b->objects.len && str_eq(b->objects.items[i].key, key);
    return i;
}

static int land_put(struct sim_request *r)
{
    struct sim_bucket *b = r->bucket;
    bool there;
    size_t i = storage_find(b, r->key, &there);

    if (there && r->only_new)
        return ERR_PRECONDITION;
    if (!there) {
        vec_push(&b->objects, (struct sim_object){0});
        memmove(&b->objects.items[i + 1], &b->objects.items[i],
                (b->objects.len - 1 - i) * sizeof(*b->objects.items));
        b->objects.items[i] = (struct sim_object){storage_keep(r->key), STR_EMPTY};
    }
    free((char *)b->objects.items[i].body.p);
    b->objects.items[i].body = storage_keep(r->body);
    return 0;
}

static int land_remove(struct sim_request *r)
{
    struct sim_bucket *b = r->bucket;
    bool there;
    size_t i = storage_find(b, r->key, &there);

    if (!there)
        return 0;
    free((char *)b->objects.items[i].key.p);
    free((char *)b->objects.items[i].body.p);
    vec_remove(&b->objects, i);
    return 0;
}

static int land_get(struct sim_request *r)
{
    bool there;
    size_t i = storage_find(r->bucket, r->key, &there);

    if (!there)
        return ERR_NOT_FOUND;
    buf_append_str(&r->answer, r->bucket->objects.items[i].body);
    return 0;
}

static int land_list(struct sim_request *r)
{
    for (size_t i = 0; i < r->bucket->objects.len; i++) {
        struct str key = r->bucket->objects.items[i].key;
        if (!str_starts(key, r->key) || str_cmp(key, r->body) <= 0)
            continue;
        buf_append_str(&r->answer, key);
        return 0;
    }
    return 0;
}

/* Answers all objects, as "key=body " each. */
static int land_walk(struct sim_request *r)
{
    for (size_t i = 0; i < r->bucket->objects.len; i++)
        buf_appendf(&r->answer, STR_FMT "=" STR_FMT " ", STR_ARG(r->bucket->objects.items[i].key),
                    STR_ARG(r->bucket->objects.items[i].body));
    return 0;
}

static void storage_land(void *ctx)
{
    static int (*const verbs[])(struct sim_request * r) = {[VERB_GET] = land_get,
                                                           [VERB_PUT] = land_put,
                                                           [VERB_REMOVE] = land_remove,
                                                           [VERB_LIST] = land_list,
                                                           [VERB_WALK] = land_walk};
    static const char *const names[] = {"get", "put", "remove", "list", "walk"};
    struct sim_request *r = ctx;

    r->code = verbs[r->verb](r);
    if (r->verb != VERB_LIST)
        sim_trace("  lands: %s " STR_FMT "/" STR_FMT ": %d", names[r->verb],
                  STR_ARG(r->bucket->bucket.name), STR_ARG(r->key), r->code);
}

static void storage_answer(void *ctx)
{
    struct sim_request *r = ctx;

    r->answered = true;
    sim_wake(r);
}

/* --- requests --- */

static uint64_t storage_delay(void)
{
    if (sim_random(1000) < late_permille)
        return sim_random(STORAGE_LATE_S * MS_PER_S) * NS_PER_MS;
    return (1 + sim_random(sim_chance(SLOW_PERCENT) ? STORAGE_SLOW_MS : STORAGE_FAST_MS)) *
           NS_PER_MS;
}

/* Sends the request and waits for its answer. Requests are not freed: they may still be on their
 * way. */
static int storage_send(struct sim_request *r, struct err *err)
{
    bool patient =
        (r->verb == VERB_GET || r->verb == VERB_WALK) && sim_chance(LONG_PATIENCE_PERCENT);
    uint64_t patience_ms = patient ? STORAGE_LONG_PATIENCE_MS : STORAGE_PATIENCE_MS;
    uint64_t lands = sim_now() + storage_delay(), deadline;

    sim_at(lands, storage_land, r);
    if (sim_random(1000) >= late_permille / 2) /* else the answer is lost */
        sim_at(lands + storage_delay(), storage_answer, r);
    deadline = sim_now() + patience_ms * NS_PER_MS;
    while (!r->answered)
        if (!sim_wait(r, deadline) && !r->answered)
            return err_set(err, ERR_TIMEOUT, "no answer");
    return r->code < 0 ? err_code(err, r->code) : 0;
}

static struct sim_request *storage_request(enum storage_verb verb, struct bucket *b, struct str key,
                                           struct str body)
{
    struct sim_request *r = xzalloc(sizeof(*r));

    *r = (struct sim_request){.verb = verb,
                              .bucket = container_of(b, struct sim_bucket, bucket),
                              .key = storage_keep(key),
                              .body = storage_keep(body),
                              .answer = BUF_INIT(1 << 20)};
    return r;
}

/* --- the object interface --- */

static int sim_get(struct bucket *b, struct arena *a, struct str key, struct str version,
                   const struct object_conditions *c, const struct object_range *range,
                   struct get_result *out, struct err *err)
{
    struct sim_request *r = storage_request(VERB_GET, b, key, STR_EMPTY);
    int code = storage_send(r, err);

    if (code < 0)
        return code;
    struct str_reader *body = arena_new(a, struct str_reader);
    str_reader_init(body, arena_str(a, buf_str(&r->answer)));
    *out = (struct get_result){.body = &body->reader, .len = r->answer.len};
    return 0;
}

static int sim_put(struct bucket *b, struct arena *a, struct str key, struct reader *body,
                   uint64_t size, const struct put_options *o, struct put_result *out,
                   struct err *err)
{
    struct buf bytes = BUF_INIT(1 << 20);
    int code = reader_read_all(body, &bytes, err);
    struct sim_request *r = storage_request(VERB_PUT, b, key, buf_str(&bytes));

    buf_release(&bytes);
    r->only_new = o->conditions.if_none_match.len > 0 && world.without != RULE_CONDITIONAL;
    return code < 0 ? code : storage_send(r, err);
}

static int sim_remove(struct bucket *b, struct arena *a, struct str key,
                      const struct remove_options *o, struct remove_result *out, struct err *err)
{
    return storage_send(storage_request(VERB_REMOVE, b, key, STR_EMPTY), err);
}

/* Lists one key. More are asked for only to remove old maps, of which one at a time is enough. */
static int sim_list(struct bucket *b, struct arena *a, const struct list_options *o,
                    struct list_result *out, struct err *err)
{
    struct sim_request *r = storage_request(VERB_LIST, b, o->prefix, o->after);
    int code = storage_send(r, err);

    *out = (struct list_result){0};
    if (code < 0 || r->answer.len == 0)
        return code;
    out->entries = arena_array(a, 1, sizeof(*out->entries));
    out->entries[0] = (struct list_entry){.info.key = arena_str(a, buf_str(&r->answer))};
    out->count = 1;
    return 0;
}

static struct bucket *sim_ref(struct bucket *b)
{
    return b;
}

static void sim_unref(struct bucket *b)
{
}

static const struct bucket_ops sim_ops = {.get = sim_get,
                                          .put = sim_put,
                                          .remove = sim_remove,
                                          .list = sim_list,
                                          .ref = sim_ref,
                                          .unref = sim_unref};

struct bucket *storage_bucket(struct str name)
{
    for (size_t i = 0; i < buckets.len; i++)
        if (str_eq(buckets.items[i]->bucket.name, name))
            return &buckets.items[i]->bucket;
    struct sim_bucket *b = xzalloc(sizeof(*b));
    b->bucket = (struct bucket){.ops = &sim_ops, .name = storage_keep(name)};
    vec_push(&buckets, b);
    return &b->bucket;
}

void storage_reset(void)
{
    static const uint64_t permille[] = {1, 4, 20};

    buckets.len = 0; /* requests of the last run may name them, but never land */
    late_permille = permille[sim_random(ARRAY_SIZE(permille))];
}

/* --- numbers --- */

int storage_put(struct str bucket, struct str key, uint64_t value, bool only_new, struct err *err)
{
    char text[24];
    int len = snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    struct sim_request *r =
        storage_request(VERB_PUT, storage_bucket(bucket), key, str_n(text, (size_t)len));

    r->only_new = only_new;
    return storage_send(r, err);
}

int storage_get(struct str bucket, struct str key, uint64_t *value, struct err *err)
{
    struct sim_request *r = storage_request(VERB_GET, storage_bucket(bucket), key, STR_EMPTY);
    int code = storage_send(r, err);

    *value = 0;
    if (code == 0)
        BUG_ON(str_u64(buf_str(&r->answer), value) < 0);
    return code == ERR_NOT_FOUND ? 0 : code;
}

int storage_remove(struct str bucket, struct str key, struct err *err)
{
    return storage_send(storage_request(VERB_REMOVE, storage_bucket(bucket), key, STR_EMPTY), err);
}

/* Finds "key=number " in what land_walk() has written. */
static uint64_t walk_value(struct str answer, struct str key)
{
    struct str entry, name, number;
    uint64_t value = 0;

    while (str_cut(answer, ' ', &entry, &answer))
        if (str_cut(entry, '=', &name, &number) && str_eq(name, key))
            BUG_ON(str_u64(number, &value) < 0);
    return value;
}

int storage_list(struct str bucket, const struct str *keys, size_t count, uint64_t *values,
                 struct err *err)
{
    struct sim_request *r =
        storage_request(VERB_WALK, storage_bucket(bucket), STR_EMPTY, STR_EMPTY);
    int code = storage_send(r, err);

    for (size_t i = 0; i < count && code == 0; i++)
        values[i] = walk_value(buf_str(&r->answer), keys[i]);
    return code;
}
