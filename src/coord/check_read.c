/* Reads and removes checks (coord/check.h). */
#include "coord/check_int.h"

#include "store/fields.h"

#include <stdlib.h>

const char *const check_state_names[CHECK_STATES] = {"checking", "ready", "fixing", "failed"};

static const struct field_row check_rows[] = {
#define CHECK_FIELD(...) FIELD_ROW(struct check, __VA_ARGS__)
    CHECK_FIELD("user", FIELD_TEXT, user),
    CHECK_FIELD("state", FIELD_WORD, state, .words = check_state_names, .max = CHECK_STATES),
    CHECK_FIELD("round", FIELD_TEXT, round),
    CHECK_FIELD("error", FIELD_TEXT, error),
    CHECK_FIELD("piece", FIELD_I64, piece),
    CHECK_FIELD("ignore_sizes", FIELD_BOOL, ignore_sizes),
    CHECK_FIELD("ignore_etags", FIELD_BOOL, ignore_etags),
    CHECK_FIELD("contents", FIELD_BOOL, contents),
    CHECK_FIELD("last_only", FIELD_BOOL, last_only),
    CHECK_FIELD("versioned", FIELD_BOOL, versioned),
    CHECK_FIELD("created_at", FIELD_TIME, created_ms),
    CHECK_FIELD("started_at", FIELD_TIME, started_ms),
    CHECK_FIELD("done_at", FIELD_TIME, done_ms),
    CHECK_FIELD("fixed_at", FIELD_TIME, fixed_ms),
    CHECK_FIELD("keys", FIELD_I64, keys),
    CHECK_FIELD("total", FIELD_I64, total),
    CHECK_FIELD("differences", FIELD_I64, differences),
    CHECK_FIELD("kept", FIELD_I64, kept),
    CHECK_FIELD("bytes", FIELD_I64, bytes),
    CHECK_FIELD("source", FIELD_I64, source),
    CHECK_FIELD("fix_queued", FIELD_I64, fix_queued),
    CHECK_FIELD("fix_done", FIELD_I64, fix_done),
    CHECK_FIELD("fix_failed", FIELD_I64, fix_failed),
#undef CHECK_FIELD
};
static const struct fields check_fields = FIELDS(check_rows);

/* --- locations --- */

static int location_unescape(struct arena *a, struct str text, struct str *out, struct err *err)
{
    struct buf plain = BUF_INIT(4 * KIB);
    int code = store_key_unescape(&plain, text);

    *out = code == 0 ? arena_str(a, buf_str(&plain)) : STR_EMPTY;
    buf_release(&plain);
    return code < 0 ? err_set(err, ERR_CORRUPT, "'" STR_FMT "' is not a location", STR_ARG(text))
                    : 0;
}

static int check_read_locations(struct check *out, struct arena *a, const struct reply *set,
                                struct err *err)
{
    int code = reply_expect(set, REPLY_ARRAY, err);

    if (code == 0 && (set->count < 2 || set->count > CHECK_LOCATIONS_MAX))
        code = err_set(err, ERR_CORRUPT, "a check of %zu locations", set->count);
    for (size_t i = 0; code == 0 && i < set->count; i++) {
        struct str storage, bucket;
        (void)str_cut(set->items[i].str, ':', &storage, &bucket);
        code = location_unescape(a, storage, &out->locations[i].storage, err);
        if (code == 0)
            code = location_unescape(a, bucket, &out->locations[i].bucket, err);
        out->count = i + 1;
    }
    if (code == 0)
        qsort(out->locations, out->count, sizeof(out->locations[0]), check_location_order);
    return code;
}

/* --- reading --- */

int check_read(const struct checks *cs, struct arena *a, struct str id, struct check *out,
               struct err *err)
{
    const struct str hash[] = {STR("HGETALL"), check_key(a, "c", id)},
                     set[] = {STR("SMEMBERS"), check_key(a, "stor", id)};
    const struct store_args commands[] = {{hash, 2}, {set, 2}};
    struct check c = {.id = arena_str(a, id), .source = -1};
    struct reply *reply = NULL;
    int code = store_atomic(cs->app, a, &reply, commands, ARRAY_SIZE(commands), err);

    if (code == 0)
        code = reply_expect(&reply->items[0], REPLY_ARRAY, err);
    if (code == 0 && reply->items[0].count == 0)
        code = err_set(err, ERR_NOT_FOUND, "there is no check " STR_FMT, STR_ARG(id));
    if (code == 0)
        code = fields_read(&c, &check_fields, &reply->items[0], NULL, err);
    if (code == 0)
        code = check_read_locations(&c, a, &reply->items[1], err);
    if (code == 0)
        *out = c;
    return code;
}

static int check_order(const void *a, const void *b)
{
    return str_cmp(((const struct check *)a)->id, ((const struct check *)b)->id);
}

/* Lists all checks. A check that was not used for a month has expired in the store; this function
 * then removes its id from the set of ids. */
int check_list(const struct checks *cs, struct arena *a, struct check **out, size_t *count,
               struct err *err)
{
    struct reply *ids = NULL, *reply = NULL;
    int code = store_call(cs->app, a, &ids, err, STR("SMEMBERS"), CHECK_IDS);

    *count = 0;
    if (code == 0)
        code = reply_expect(ids, REPLY_ARRAY, err);
    if (code < 0)
        return code;
    *out = arena_array(a, ids->count + 1, sizeof(**out));
    if (!*out)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; code == 0 && i < ids->count; i++) {
        code = check_read(cs, a, ids->items[i].str, &(*out)[*count], err);
        *count += code == 0;
        if (code == ERR_NOT_FOUND)
            code = store_call(cs->app, a, &reply, err, STR("SREM"), CHECK_IDS, ids->items[i].str);
    }
    qsort(*out, *count, sizeof(**out), check_order);
    return code;
}

int check_entries(const struct checks *cs, struct arena *a, struct str id, size_t skip,
                  size_t limit, struct store_args *out, struct err *err)
{
    struct reply *reply = NULL;
    int code =
        store_call(cs->app, a, &reply, err, STR("LRANGE"), check_key(a, "d", id),
                   queue_number(a, (int64_t)skip), queue_number(a, (int64_t)(skip + limit) - 1));

    if (code == 0)
        code = reply_expect(reply, REPLY_ARRAY, err);
    if (code < 0)
        return code;
    struct str *list = arena_array(a, reply->count + 1, sizeof(*list));
    if (!list)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < reply->count; i++)
        list[i] = reply->items[i].str;
    *out = (struct store_args){list, reply->count};
    return 0;
}

int check_cursor(const struct checks *cs, struct arena *a, struct str id, struct str *out,
                 struct err *err)
{
    struct reply *reply = NULL;
    int code = store_call(cs->app, a, &reply, err, STR("GET"), check_key(a, "l", id));

    if (code == 0 && !reply_is_nil(reply))
        code = reply_expect(reply, REPLY_BULK, err);
    if (code == 0)
        *out = reply_is_nil(reply) ? STR_EMPTY : reply->str;
    return code;
}

/* --- removing --- */

int check_remove(const struct checks *cs, struct str id, struct err *err)
{
    struct arena a = ARENA_INIT(CHECK_ARENA_MAX);
    const struct str keys[] = {STR("DEL"),
                               check_key(&a, "c", id),
                               check_key(&a, "stor", id),
                               check_key(&a, "l", id),
                               check_key(&a, "d", id),
                               check_key(&a, "f", id)},
                     name[] = {STR("SREM"), CHECK_IDS, id};
    const struct store_args commands[] = {{name, 3}, {keys, ARRAY_SIZE(keys)}};
    struct reply *reply = NULL;
    int code = store_atomic(cs->app, &a, &reply, commands, ARRAY_SIZE(commands), err);

    if (code == 0)
        code = reply_expect(&reply->items[1], REPLY_INTEGER, err);
    if (code == 0 && reply->items[1].integer == 0)
        code = err_set(err, ERR_NOT_FOUND, "there is no check " STR_FMT, STR_ARG(id));
    arena_release(&a);
    return code;
}
