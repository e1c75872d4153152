/* Stores the pages and cursors of the initial copy's listings, and removes the cursors. */
#include "coord/replication_int.h"

#include "base/clock.h"
#include "base/vec.h"

enum {
    CURSOR_LIFE_S = 8 * S_PER_HOUR,
    CLEAN_PAGE = 1000, /* number of keys that one script looks at */
    HEAD_ARGS = 13,
    ITEM_ARGS = 6,
    SPLIT_HEAD_ARGS = 10,
    SPLIT_ITEM_ARGS = 5,
};

/* Makes the key of a listing's cursor: `s:<from>:<to>:<bucket>[:<to bucket>][:<prefix>]`. */
static struct str cursor_key(struct arena *a, const struct id_parts *p, struct str prefix)
{
    struct str rest = replication_escaped(a, prefix);

    return arena_fmt(a, "s:" STR_FMT ":" STR_FMT ":" STR_FMT "%s" STR_FMT "%s" STR_FMT,
                     STR_ARG(p->from), STR_ARG(p->to), STR_ARG(p->bucket),
                     p->to_bucket.len ? ":" : "", STR_ARG(p->to_bucket), rest.len ? ":" : "",
                     STR_ARG(rest));
}

static int page_item_args(struct arena *a, const struct id_parts *p, const struct listed *l,
                          struct str *args, struct err *err)
{
    args[0] = l->listing ? STR("l") : STR("c");
    args[1] = arena_fmt(a, "%llu/%zu", (unsigned long long)(l->listing ? 0 : l->bytes),
                        l->objects ? l->objects : 1);
    args[2] = l->listing ? cursor_key(a, p, l->prefix) : STR("");
    return queue_task_args(a, &l->task, 0, args + 3, err);
}

static int page_answer(int64_t n, struct err *err)
{
    switch (n) {
    case 1:
        return 0;
    case 0:
        return err_set(err, ERR_NOT_FOUND, "the replication of the task is gone");
    case -1:
        return err_set(err, ERR_CONFLICT, "the task was given to another worker");
    default:
        return err_set(err, ERR_CONFLICT, "another task has continued the listing");
    }
}

static int page_record(struct replications *r, struct arena *a, const struct listed_page *p,
                       bool with_cursor, struct err *err)
{
    size_t count = HEAD_ARGS + ITEM_ARGS * p->count, at = 0;
    struct str *args = arena_array(a, count, sizeof(*args));
    struct id_parts parts;
    struct reply *reply;
    int64_t n = 0;
    int code = args ? replication_parts(a, &p->id, &parts, err) : err_code(err, ERR_NO_MEMORY);

    if (code < 0)
        return code;
    args[at++] = queue_number(a, store_number(r->o.app));
    args[at++] = queue_number(a, store_number(r->o.queue));
    args[at++] = queue_number(a, store_number(r->o.config));
    args[at++] = replication_status_key(a, &parts);
    args[at++] = with_cursor ? cursor_key(a, &parts, p->prefix) : STR("");
    args[at++] = p->after;
    args[at++] = p->last;
    args[at++] = queue_number(a, CURSOR_LIFE_S);
    args[at++] = p->task->queue;
    args[at++] = p->task->id;
    args[at++] = p->task->token.len ? p->task->token : STR("-");
    args[at++] = queue_day(a);
    args[at++] = queue_number(a, QUEUE_COUNTER_LIFE_S);
    for (size_t i = 0; code == 0 && i < p->count; i++)
        code = page_item_args(a, &parts, &p->items[i], &args[HEAD_ARGS + ITEM_ARGS * i], err);
    if (code == 0)
        code = coord_eval(r->o.queue, a, &reply, SCRIPT_replication_page, args, count, err);
    if (code == 0)
        code = queue_integer(reply, &n, err);
    return code == 0 ? page_answer(n, err) : code;
}

int replication_page(struct replications *r, const struct listed_page *p, struct err *err)
{
    struct arena a = ARENA_INIT(QUEUE_ARENA_MAX);

    BUG_ON(p->count > QUEUE_BATCH_MAX);
    int code = page_record(r, &a, p, true, err);
    arena_release(&a);
    return code;
}

static int page_split(struct replications *r, struct arena *a, const struct listed_split *s,
                      struct err *err)
{
    size_t count = SPLIT_HEAD_ARGS + SPLIT_ITEM_ARGS * s->count, at = 0;
    struct str *args = arena_array(a, count, sizeof(*args));
    struct id_parts parts;
    struct reply *reply;
    int64_t held = 0;
    int code = args ? replication_parts(a, &s->id, &parts, err) : err_code(err, ERR_NO_MEMORY);

    if (code < 0)
        return code;
    args[at++] = queue_number(a, store_number(r->o.queue));
    args[at++] = queue_number(a, store_number(r->o.config));
    args[at++] = replication_status_key(a, &parts);
    args[at++] = s->task->queue;
    args[at++] = s->task->id;
    args[at++] = s->task->token.len ? s->task->token : STR("-");
    args[at++] = queue_day(a);
    args[at++] = queue_number(a, QUEUE_COUNTER_LIFE_S);
    args[at++] = arena_fmt(a, "%llu", (unsigned long long)s->bytes);
    args[at++] = queue_number(a, (int64_t)s->objects);
    for (size_t i = 0; code == 0 && i < s->count; i++) {
        args[at++] = arena_fmt(a, "%llu", (unsigned long long)s->failed[i].bytes);
        code = queue_task_args(a, &s->failed[i].task, 0, &args[at], err);
        at += SPLIT_ITEM_ARGS - 2;
        args[at++] = queue_number(a, s->delay_s);
    }
    if (code == 0)
        code = coord_eval(r->o.queue, a, &reply, SCRIPT_replication_split, args, count, err);
    if (code == 0)
        code = queue_integer(reply, &held, err);
    return code == 0 && !held ? page_answer(-1, err) : code;
}

int replication_split(struct replications *r, const struct listed_split *s, struct err *err)
{
    struct arena a = ARENA_INIT(QUEUE_ARENA_MAX);

    BUG_ON(s->count > QUEUE_BATCH_MAX);
    int code = page_split(r, &a, s, err);
    arena_release(&a);
    return code;
}

int replication_list(struct replications *r, const struct replication_id *id,
                     const struct task *task, const struct task *listing, struct err *err)
{
    struct arena a = ARENA_INIT(QUEUE_ARENA_MAX);
    struct listed root = {.task = *listing, .listing = true};
    struct listed_page p = {.id = *id, .task = task, .items = &root, .count = 1};
    int code = page_record(r, &a, &p, false, err);

    arena_release(&a);
    return code;
}

int replication_cursor(struct replications *r, struct arena *a, const struct replication_id *id,
                       struct str prefix, struct str *out, struct err *err)
{
    struct id_parts p;
    struct reply *reply;
    int code = replication_parts(a, id, &p, err);

    if (code == 0)
        code = store_call(r->o.app, a, &reply, err, STR("GET"), cursor_key(a, &p, prefix));
    if (code == 0 && !reply_is_nil(reply))
        code = reply_expect(reply, REPLY_BULK, err);
    if (code == 0)
        *out = reply_is_nil(reply) ? STR("") : reply->str;
    return code;
}

int replication_clean(struct replications *r, const struct replication_id *id, uint64_t *at,
                      struct err *err)
{
    struct arena a = ARENA_INIT(16 * MIB);
    struct buf pattern = {0};
    struct id_parts p;
    struct reply *reply = NULL;
    int code = replication_parts(&a, id, &p, err);

    if (code == 0) {
        struct str key = cursor_key(&a, &p, STR(""));
        store_pattern_part(&pattern, key);
        buf_append_z(&pattern, ":*");
        const struct str args[] = {buf_str(&pattern), key,
                                   arena_fmt(&a, "%llu", (unsigned long long)*at),
                                   queue_number(&a, CLEAN_PAGE)};
        code =
            coord_eval(r->o.app, &a, &reply, SCRIPT_replication_clean, args, ARRAY_SIZE(args), err);
    }
    if (code == 0)
        code = reply_expect(reply, REPLY_BULK, err);
    if (code == 0 && str_u64(reply->str, at) < 0)
        code = err_set(err, ERR_TYPE, "the store gave no cursor");
    buf_release(&pattern);
    arena_release(&a);
    return code;
}
