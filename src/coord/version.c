/* Version vectors (coord/version.h; docs/replication.md, V1 to V5). */
#include "coord/version.h"

#include "base/clock.h"
#include "coord/scripts.h"

enum {
    /* Seconds until a deleted thing's vector expires (V3); no task runs longer. */
    AGREED_LIFE_S = S_PER_DAY,
    STRIP_PAGE = 1000,
    PAIR_ARGS = 4,
    CONFIRM_HEAD = 8,
};

void version_key(struct buf *out, const struct thing *t)
{
    bool of_bucket = t->kind & THINGS_OF_BUCKET;

    if (of_bucket)
        buf_append_z(out, "b:");
    store_key_part(out, t->bucket);
    if (!of_bucket) {
        buf_append_char(out, ':');
        store_key_part(out, t->object);
        if (t->version.len) {
            buf_append_char(out, ':');
            store_key_part(out, t->version);
        }
    }
    if (t->kind & (THING_OBJECT_TAGS | THING_BUCKET_TAGS))
        buf_append_z(out, ":t");
    if (t->kind & (THING_OBJECT_ACL | THING_BUCKET_ACL))
        buf_append_z(out, ":a");
}

void version_field(struct buf *out, const struct place *p)
{
    store_key_part(out, p->storage);
    if (p->bucket.len) {
        buf_append_char(out, ':');
        store_key_part(out, p->bucket);
    }
}

struct str version_key_in(struct arena *a, const struct thing *t)
{
    struct buf b = {0};

    version_key(&b, t);
    struct str out = arena_str(a, buf_str(&b));
    buf_release(&b);
    return out;
}

struct str version_field_in(struct arena *a, const struct place *p)
{
    struct buf b = {0};

    version_field(&b, p);
    struct str out = arena_str(a, buf_str(&b));
    buf_release(&b);
    return out;
}

static int version_unescape(struct arena *a, struct str part, struct str *out, struct err *err)
{
    struct buf b = {0};
    int code = store_key_unescape(&b, part);

    *out = arena_str(a, buf_str(&b));
    buf_release(&b);
    return code < 0 ? err_set(err, code, "'" STR_FMT "' is not a place of a vector", STR_ARG(part))
                    : 0;
}

static int version_read_place(struct place *out, struct arena *a, struct str field, struct err *err)
{
    struct str storage, bucket;

    str_cut(field, ':', &storage, &bucket);
    int code = version_unescape(a, storage, &out->storage, err);
    return code == 0 ? version_unescape(a, bucket, &out->bucket, err) : code;
}

static int version_read_vector(struct vector *out, struct arena *a, const struct reply *fields,
                               struct err *err)
{
    int code = reply_expect(fields, REPLY_ARRAY, err);

    if (code < 0)
        return code;
    *out = (struct vector){.count = fields->count / 2};
    out->places = arena_array(a, out->count + 1, sizeof(*out->places));
    out->numbers = arena_array(a, out->count + 1, sizeof(*out->numbers));
    if (arena_error(a) < 0)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < out->count && code == 0; i++) {
        code = version_read_place(&out->places[i], a, fields->items[2 * i].str, err);
        if (code == 0 && str_i64(fields->items[2 * i + 1].str, &out->numbers[i]) < 0)
            code = err_set(err, ERR_CORRUPT, "'" STR_FMT "' is not a version",
                           STR_ARG(fields->items[2 * i + 1].str));
    }
    return code;
}

int version_read(struct store *app, struct arena *a, const struct thing *t, struct vector *out,
                 struct err *err)
{
    struct reply *reply;
    int code = store_call(app, a, &reply, err, STR("HGETALL"), version_key_in(a, t));

    return code == 0 ? version_read_vector(out, a, reply, err) : code;
}

int version_read_many(struct store *app, struct arena *a, const struct thing *things, size_t count,
                      struct vector *out, struct err *err)
{
    struct str *keys = arena_array(a, count + 1, sizeof(*keys));
    struct reply *reply;
    int code = 0;

    for (size_t i = 0; keys && i < count; i++)
        keys[i] = version_key_in(a, &things[i]);
    if (arena_error(a) < 0)
        return err_code(err, ERR_NO_MEMORY);
    if (count)
        code = coord_eval(app, a, &reply, SCRIPT_version_read, keys, count, err);
    if (code == 0 && count)
        code = reply_expect(reply, REPLY_ARRAY, err);
    if (code == 0 && count && reply->count != count)
        code = err_set(err, ERR_TYPE, "the store answered %zu vectors of %zu", reply->count, count);
    for (size_t i = 0; i < count && code == 0; i++)
        code = version_read_vector(&out[i], a, &reply->items[i], err);
    return code;
}

int64_t vector_at(const struct vector *v, const struct place *p)
{
    for (size_t i = 0; i < v->count; i++)
        if (str_eq(v->places[i].storage, p->storage) && str_eq(v->places[i].bucket, p->bucket))
            return v->numbers[i];
    return 0;
}

int version_bump(struct store *app, const struct thing *t, const struct place *p, int64_t *out,
                 struct err *err)
{
    struct arena a = ARENA_INIT(64 * KIB);
    const struct str args[] = {version_key_in(&a, t), version_field_in(&a, p)};
    struct reply *reply;
    int code = coord_eval(app, &a, &reply, SCRIPT_version_bump, args, ARRAY_SIZE(args), err);

    if (code == 0)
        code = reply_expect(reply, REPLY_INTEGER, err);
    if (code == 0 && out)
        *out = reply->integer;
    arena_release(&a);
    return code;
}

/* Reads the answer of HMGET for the fields of the two places. */
static int version_read_pair(struct version_pair *out, const struct reply *r, struct err *err)
{
    int64_t *numbers[] = {&out->from, &out->to};
    int code = reply_expect(r, REPLY_ARRAY, err);

    *out = (struct version_pair){0};
    if (code == 0 && r->count != ARRAY_SIZE(numbers))
        code = err_set(err, ERR_TYPE, "the store gave a malformed answer about a vector");
    for (size_t i = 0; code == 0 && i < ARRAY_SIZE(numbers); i++)
        if (!reply_is_nil(&r->items[i]) && str_i64(r->items[i].str, numbers[i]) < 0)
            code = err_set(err, ERR_CORRUPT, "'" STR_FMT "' is not a version",
                           STR_ARG(r->items[i].str));
    return code;
}

int version_read_pairs(struct store *app, struct arena *a, const struct thing *things, size_t count,
                       const struct version_places *places, struct version_pair *out,
                       struct err *err)
{
    struct str from = version_field_in(a, places->from), to = version_field_in(a, places->to);
    struct str *args = arena_array(a, PAIR_ARGS * count, sizeof(*args));
    struct store_args *commands = arena_array(a, count, sizeof(*commands));
    struct reply *reply;

    if (!args || !commands)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < count; i++) {
        struct str *at = &args[PAIR_ARGS * i];
        at[0] = STR("HMGET");
        at[1] = version_key_in(a, &things[i]);
        at[2] = from;
        at[3] = to;
        commands[i] = (struct store_args){at, PAIR_ARGS};
    }
    int code = store_pipeline(app, a, &reply, commands, count, err);
    for (size_t i = 0; code == 0 && i < count; i++)
        code = version_read_pair(&out[i], &reply->items[i], err);
    return code;
}

int version_confirm(struct store *app, const struct version_confirmation *c, struct err *err)
{
    struct arena a = ARENA_INIT(64 * KIB);
    struct str args[CONFIRM_HEAD + 2 * VERSION_THINGS_MAX] = {
        version_field_in(&a, c->source),
        version_field_in(&a, c->destination),
        c->gone ? STR("1") : STR("0"),
        arena_fmt(&a, "%d", AGREED_LIFE_S),
        arena_fmt(&a, "%d", c->locks ? store_number(c->locks) : 0),
        c->lock_key,
        c->lock_token,
        arena_fmt(&a, "%d", store_number(app)),
    };
    size_t count = CONFIRM_HEAD;
    struct reply *reply;

    BUG_ON(c->count > VERSION_THINGS_MAX);
    for (size_t i = 0; i < c->count; i++) {
        args[count++] = version_key_in(&a, &c->things[i]);
        args[count++] = arena_fmt(&a, "%lld", (long long)c->numbers[i]);
    }
    int code = coord_eval(app, &a, &reply, SCRIPT_version_confirm, args, count, err);
    if (code == 0)
        code = reply_expect(reply, REPLY_INTEGER, err);
    if (code == 0 && reply->integer == 0)
        code = err_set(err, ERR_CONFLICT, "the lock " STR_FMT " was lost", STR_ARG(c->lock_key));
    arena_release(&a);
    return code;
}

static int version_strip_page(struct store *app, struct arena *a, const struct str *args,
                              uint64_t *cursor, struct err *err)
{
    struct reply *reply;
    int code = coord_eval(app, a, &reply, SCRIPT_version_strip, args, 4, err);

    if (code == 0)
        code = reply_expect(reply, REPLY_BULK, err);
    if (code == 0 && str_u64(reply->str, cursor) < 0)
        code = err_set(err, ERR_TYPE, "the store gave no cursor");
    return code;
}

int version_strip(struct store *app, struct str bucket, const struct place *p, uint64_t *cursor,
                  struct err *err)
{
    struct arena a = ARENA_INIT(16 * MIB);
    struct buf pattern = {0}, escaped = {0};

    store_key_part(&escaped, bucket);
    store_pattern_part(&pattern, buf_str(&escaped));
    buf_append_z(&pattern, ":*");
    const struct str args[] = {buf_str(&pattern), version_field_in(&a, p),
                               arena_fmt(&a, "%llu", (unsigned long long)*cursor),
                               arena_fmt(&a, "%d", STRIP_PAGE)};
    int code = version_strip_page(app, &a, args, cursor, err);

    for (int i = THING_BUCKET; code == 0 && *cursor == 0 && i <= THING_BUCKET_ACL; i <<= 1) {
        struct thing t = {.kind = (enum thing_kind)i, .bucket = bucket};
        struct reply *reply;
        code = store_call(app, &a, &reply, err, STR("HDEL"), version_key_in(&a, &t), args[1]);
    }
    buf_release(&pattern);
    buf_release(&escaped);
    arena_release(&a);
    return code;
}
