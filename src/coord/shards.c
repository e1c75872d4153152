/* The maps of sharded buckets in the store, and who holds them (coord/shards.h). */
#include "coord/shards.h"
#include "coord/queue_int.h"

enum {
    SHARDS_ARENA_MAX = 64 * 1024,
    ENTRY_ARENA_MAX = 2 * SHARD_ENTRY_TEXT_MAX + SHARDS_ARENA_MAX,
};

/* Gives "<storage>:<bucket>", escaped. */
static struct str entry_where(struct arena *a, struct str storage, struct str bucket)
{
    struct buf where = {0};

    store_key_part(&where, storage);
    buf_append_char(&where, ':');
    store_key_part(&where, bucket);
    struct str copy = arena_str(a, buf_str(&where));
    buf_release(&where);
    return copy;
}

static struct str entry_unescape(struct arena *a, struct str part, int *code)
{
    struct buf name = {0};

    if (*code == 0)
        *code = store_key_unescape(&name, part);
    struct str copy = arena_str(a, buf_str(&name));
    buf_release(&name);
    return copy;
}

/* Reads "<storage>:<bucket>". */
static int entry_parse_where(struct shard_entry *out, struct arena *a, struct str where)
{
    struct str storage, bucket;
    int code = str_cut(where, ':', &storage, &bucket) ? 0 : ERR_PARSE;

    if (code < 0)
        return code;
    out->storage = entry_unescape(a, storage, &code);
    out->bucket = entry_unescape(a, bucket, &code);
    return code;
}

/* Cuts the text at its last colon, behind which there is a number. */
static int entry_cut_number(struct str text, struct str *before, uint64_t *number)
{
    size_t at = text.len;

    while (at > 0 && text.p[at - 1] != ':')
        at--;
    if (at == 0 || str_u64(str_skip(text, at), number) < 0)
        return ERR_PARSE;
    *before = str_n(text.p, at - 1);
    return 0;
}

int shard_entry_parse(struct shard_entry *out, struct arena *a, struct str message)
{
    struct str where;

    *out = (struct shard_entry){0};
    int code = entry_cut_number(message, &where, &out->number);
    return code < 0 ? code : entry_parse_where(out, a, where);
}

/* --- maps --- */

int shard_entry_publish(struct store *config, const struct shard_entry *e, uint64_t *newest,
                        struct err *err)
{
    struct arena a = ARENA_INIT(ENTRY_ARENA_MAX);
    struct reply *reply = NULL;
    struct buf owner = {0};

    store_key_part(&owner, e->owner);
    const struct str args[] = {entry_where(&a, e->storage, e->bucket), buf_str(&owner),
                               queue_number(&a, (int64_t)e->number),
                               e->text.len <= SHARD_ENTRY_TEXT_MAX ? e->text : STR_EMPTY};
    int code = coord_eval(config, &a, &reply, SCRIPT_shards_publish, args, ARRAY_SIZE(args), err);
    if (code == 0)
        code = reply_expect(reply, REPLY_BULK, err);
    if (code == 0 && str_u64(reply->str, newest) < 0)
        code = err_set(err, ERR_TYPE, "the store gave a malformed answer about a map");
    buf_release(&owner);
    arena_release(&a);
    return code;
}

int shard_entry_read(struct store *config, struct arena *a, struct str storage, struct str bucket,
                     struct shard_entry *out, struct err *err)
{
    struct reply *reply = NULL;
    struct str number;
    int code =
        store_call(config, a, &reply, err, STR("GET"),
                   arena_fmt(a, "w:shard:" STR_FMT, STR_ARG(entry_where(a, storage, bucket))));

    if (code == 0 && reply_is_nil(reply))
        return err_code(err, ERR_NOT_FOUND);
    if (code == 0)
        code = reply_expect(reply, REPLY_BULK, err);
    if (code < 0)
        return code;
    *out = (struct shard_entry){.storage = storage, .bucket = bucket};
    if (!str_cut(reply->str, ':', &number, &out->text) || str_u64(number, &out->number) < 0)
        return err_set(err, ERR_TYPE, "the store has a malformed map");
    return 0;
}

/* Reads one field of `w:shards`, "<owner>:<number>". */
static int entry_parse_number(struct shard_entry *out, struct arena *a, const struct reply *field,
                              const struct reply *value)
{
    struct str owner;
    int code = entry_parse_where(out, a, field->str);

    if (code == 0)
        code = entry_cut_number(value->str, &owner, &out->number);
    if (code == 0)
        out->owner = entry_unescape(a, owner, &code);
    return code;
}

int shard_entry_numbers(struct store *config, struct arena *a, struct shard_entry **out,
                        size_t *count, struct err *err)
{
    struct reply *reply = NULL;
    int code = store_call(config, a, &reply, err, STR("HGETALL"), STR("w:shards"));

    if (code == 0)
        code = reply_expect(reply, REPLY_ARRAY, err);
    if (code < 0)
        return code;
    struct shard_entry *all = arena_array(a, size_max(reply->count / 2, 1), sizeof(*all));
    if (!all)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i + 1 < reply->count && code == 0; i += 2) {
        all[i / 2] = (struct shard_entry){0};
        code = entry_parse_number(&all[i / 2], a, &reply->items[i], &reply->items[i + 1]);
    }
    if (code < 0)
        return err_set(err, ERR_TYPE, "the store has a malformed list of sharded buckets");
    *out = all;
    *count = reply->count / 2;
    return arena_error(a);
}

int shard_entry_forget(struct store *config, struct str storage, struct str bucket, uint64_t number,
                       struct err *err)
{
    struct arena a = ARENA_INIT(SHARDS_ARENA_MAX);
    const struct str args[] = {entry_where(&a, storage, bucket), queue_number(&a, (int64_t)number)};
    struct reply *reply = NULL;
    int code = coord_eval(config, &a, &reply, SCRIPT_shards_forget, args, ARRAY_SIZE(args), err);

    arena_release(&a);
    return code;
}

/* --- which storages are known --- */

int shards_known_set(struct store *config, struct str storage, struct err *err)
{
    struct arena a = ARENA_INIT(SHARDS_ARENA_MAX);
    struct reply *reply = NULL;
    int code =
        store_call(config, &a, &reply, err, STR("HSET"), STR("w:shards:known"), storage, STR("1"));

    if (code == 0)
        code = reply_expect(reply, REPLY_INTEGER, err);
    arena_release(&a);
    return code;
}

int shards_known(struct store *config, struct str storage, bool *out, struct err *err)
{
    struct arena a = ARENA_INIT(SHARDS_ARENA_MAX);
    struct reply *reply = NULL;
    int64_t there = 0;
    int code = store_call(config, &a, &reply, err, STR("HEXISTS"), STR("w:shards:known"), storage);

    if (code == 0)
        code = queue_integer(reply, &there, err);
    if (code == 0)
        *out = there == 1;
    arena_release(&a);
    return code;
}

/* --- who holds which map --- */

int shard_hold_tell(struct store *config, const struct shard_hold *h, struct err *err)
{
    struct arena a = ARENA_INIT(SHARDS_ARENA_MAX);
    struct str number = queue_number(&a, (int64_t)h->number);
    const struct str args[] = {
        entry_where(&a, h->storage, h->bucket), h->process,
        h->busy.len ? arena_fmt(&a, STR_FMT ":" STR_FMT, STR_ARG(number), STR_ARG(h->busy))
                    : number};
    struct reply *reply = NULL;
    int code = coord_eval(config, &a, &reply, SCRIPT_shards_tell, args, ARRAY_SIZE(args), err);

    arena_release(&a);
    return code;
}

static int hold_read(const struct reply *reply, enum shard_held *out, struct str *busy,
                     struct err *err)
{
    static const char *const names[] = {
        [HOLD_WAITS] = "waits", [HOLD_ALL] = "all", [HOLD_FORGOTTEN] = "forgotten"};
    int code = reply_expect(reply, REPLY_ARRAY, err);

    if (code < 0)
        return code;
    *busy = reply->count > 2 ? reply->items[2].str : STR_EMPTY;
    for (size_t i = 0; reply->count && i < ARRAY_SIZE(names); i++)
        if (str_eq(reply->items[0].str, str_z(names[i]))) {
            *out = (enum shard_held)i;
            return 0;
        }
    return err_set(err, ERR_TYPE, "the store gave a malformed answer about the holders of a map");
}

int shard_hold_ask(struct store *config, struct arena *a, const struct shard_hold_question *q,
                   enum shard_held *out, struct str *busy, struct err *err)
{
    const struct str args[] = {entry_where(a, q->storage, q->bucket),
                               queue_number(a, (int64_t)q->number),
                               queue_number(a, (int64_t)q->life_s),
                               q->process,
                               str_z(q->word->text),
                               str_z(q->word->run)};
    struct reply *reply = NULL;
    int code = coord_eval(config, a, &reply, SCRIPT_shards_held, args, ARRAY_SIZE(args), err);

    return code < 0 ? code : hold_read(reply, out, busy, err);
}
