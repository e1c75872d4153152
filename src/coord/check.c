/* Begins, continues and fixes checks (comparisons of buckets, coord/check.h). Each step is one Lua
 * script that the store runs. */
#include "coord/check_int.h"

#include "base/ids.h"
#include "base/json.h"
#include "base/vec.h"
#include "object/digest.h"

#include <stdlib.h>

enum { TASK_ARGS = 3 }; /* number of arguments that a script takes for a task: queue, id, message */

struct str check_key(struct arena *a, const char *kind, struct str id)
{
    struct buf key = {0};

    buf_appendf(&key, "w:ccv:%s:", kind);
    store_key_part(&key, id);
    struct str out = arena_str(a, buf_str(&key));
    buf_release(&key);
    return out;
}

/* --- names --- */

int check_location_order(const void *a, const void *b)
{
    const struct check_location *x = a, *y = b;
    int order = str_cmp(x->storage, y->storage);

    return order ? order : str_cmp(x->bucket, y->bucket);
}

/* Appends "<storage>:<bucket>", with both names escaped. */
static void location_append(struct buf *out, const struct check_location *l)
{
    store_key_part(out, l->storage);
    buf_append_char(out, ':');
    store_key_part(out, l->bucket);
}

int check_name(struct check *c, struct arena *a, struct err *err)
{
    struct buf all = {0};
    struct digest_value sum;

    if (c->count < 2 || c->count > CHECK_LOCATIONS_MAX)
        return err_set(err, ERR_INVALID, "a check is of 2 to %d locations, not of %zu",
                       CHECK_LOCATIONS_MAX, c->count);
    qsort(c->locations, c->count, sizeof(c->locations[0]), check_location_order);
    for (size_t i = 1; i < c->count; i++)
        if (check_location_order(&c->locations[i - 1], &c->locations[i]) == 0)
            return err_set(err, ERR_INVALID,
                           "bucket " STR_FMT " on storage " STR_FMT " is named twice",
                           STR_ARG(c->locations[i].bucket), STR_ARG(c->locations[i].storage));
    store_key_part(&all, c->user);
    for (size_t i = 0; i < c->count; i++) {
        buf_append_char(&all, ' ');
        location_append(&all, &c->locations[i]);
    }
    digest_of(DIGEST_SHA256, buf_str(&all), &sum);
    c->id = arena_hex(a, sum.bytes, CHECK_ID_LEN / 2);
    buf_release(&all);
    return c->id.len ? 0 : err_code(err, ERR_NO_MEMORY);
}

/* --- tasks --- */

static struct str check_new_round(struct arena *a)
{
    char id[ID_HEX_LEN + 1];

    id_hex(id);
    return arena_str(a, str_n(id, CHECK_ID_LEN));
}

/* Makes the task that does one piece of a check. The task's id contains the round and the number of
 * the piece. So a task of an older round that still runs has another id, and does not prevent this
 * task from being queued. */
static struct task check_task(struct arena *a, const char *type, struct str id, struct str round,
                              int64_t piece)
{
    struct buf text = {0};
    struct json_out w;

    json_out_init(&w, &text);
    json_out_open(&w, '{');
    json_out_member_str(&w, "ID", id);
    json_out_member_str(&w, "Round", round);
    json_out_member_i64(&w, "Piece", piece);
    json_out_close(&w, '}');
    struct task t = {.type = str_z(type),
                     .payload = arena_str(a, buf_str(&text)),
                     .id = arena_fmt(a, "cc:" STR_FMT ":" STR_FMT ":%jd", STR_ARG(id),
                                     STR_ARG(round), (intmax_t)piece),
                     .queue = CHECK_QUEUE,
                     .retry_max = CHECK_TRIES};
    buf_release(&text);
    return t;
}

/* --- scripts --- */

struct arguments {
    VEC(struct str) v;
};

static int check_answer(int64_t n, struct err *err)
{
    switch (n) {
    case 1:
        return 0;
    case 0:
        return err_set(err, ERR_NOT_FOUND, "there is no such check, or it was begun again");
    case -1:
        return err_set(err, ERR_EXISTS,
                       "the check is running; weir diff report shows its progress");
    default:
        return err_set(err, ERR_CONFLICT, "another task has continued the check");
    }
}

static int check_run_script(struct store *s, struct arena *a, enum coord_script script,
                            struct arguments *args, struct err *err)
{
    struct reply *reply;
    int64_t n = 0;
    int code = arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;

    if (code == 0)
        code = coord_eval(s, a, &reply, script, args->v.items, args->v.len, err);
    if (code == 0)
        code = queue_integer(reply, &n, err);
    vec_release(&args->v);
    return code < 0 ? code : check_answer(n, err);
}

static void push_head(const struct checks *cs, struct arena *a, struct arguments *args,
                      struct str id)
{
    vec_push(&args->v, queue_number(a, store_number(cs->app)));
    vec_push(&args->v, queue_number(a, store_number(queue_store(cs->queue))));
    vec_push(&args->v, id);
}

static int push_task(struct arena *a, struct arguments *args, const struct task *t, struct err *err)
{
    struct str parts[TASK_ARGS];
    int code = queue_task_args(a, t, 0, parts, err);

    for (size_t i = 0; code == 0 && i < ARRAY_SIZE(parts); i++)
        vec_push(&args->v, parts[i]);
    return code;
}

/* Adds the arguments for the present piece's number and for the task that does the next piece.
 * `next` is that task's type; NULL: no task. */
static int push_piece(struct arena *a, struct arguments *args, const struct check *c,
                      const char *next, struct err *err)
{
    vec_push(&args->v, queue_number(a, c->piece));
    if (next) {
        struct task task = check_task(a, next, c->id, c->round, c->piece + 1);
        return push_task(a, args, &task, err);
    }
    for (size_t i = 0; i < TASK_ARGS; i++)
        vec_push(&args->v, STR_EMPTY);
    return 0;
}

/* --- beginning --- */

static void push_new(struct arena *a, struct arguments *args, const struct check *c)
{
    const struct {
        const char *name;
        struct str value;
    } fields[] = {
        {"user", c->user},
        {"ignore_sizes", c->ignore_sizes ? STR("1") : STR("0")},
        {"ignore_etags", c->ignore_etags ? STR("1") : STR("0")},
        {"contents", c->contents ? STR("1") : STR("0")},
        {"last_only", c->last_only ? STR("1") : STR("0")},
    };

    vec_push(&args->v, queue_number(a, ARRAY_SIZE(fields)));
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        vec_push(&args->v, str_z(fields[i].name));
        vec_push(&args->v, fields[i].value);
    }
    for (size_t i = 0; i < c->count; i++) {
        struct buf text = {0};
        location_append(&text, &c->locations[i]);
        vec_push(&args->v, arena_str(a, buf_str(&text)));
        buf_release(&text);
    }
}

/* Adds one argument with the round and the first task of the check that follows a fix. The script
 * that ends the fix begins that check (lua/check_begin.lua). */
static int push_recheck(struct arena *a, struct arguments *args, struct str id, struct err *err)
{
    struct str round = check_new_round(a), parts[TASK_ARGS];
    struct task task = check_task(a, CHECK_TYPE, id, round, 0);
    struct buf text = {0};
    int code = queue_task_args(a, &task, 0, parts, err);

    buf_append_str(&text, round);
    for (size_t i = 0; code == 0 && i < ARRAY_SIZE(parts); i++) {
        buf_append_char(&text, ' ');
        buf_append_str(&text, parts[i]);
    }
    vec_push(&args->v, arena_str(a, buf_str(&text)));
    buf_release(&text);
    return code;
}

struct beginning {
    const char *mode, *type;
    size_t source;
    const struct check *fresh; /* settings of a new check; NULL: the check exists already */
};

static int check_begin(const struct checks *cs, struct str id, const struct beginning *b,
                       struct err *err)
{
    struct arena a = ARENA_INIT(CHECK_ARENA_MAX);
    struct arguments args = {0};
    struct str round = check_new_round(&a);
    struct task task = check_task(&a, b->type, id, round, 0);

    push_head(cs, &a, &args, id);
    vec_push(&args.v, str_z(b->mode));
    vec_push(&args.v, round);
    int code = push_task(&a, &args, &task, err);
    vec_push(&args.v, queue_number(&a, (int64_t)b->source));
    if (code == 0)
        code = push_recheck(&a, &args, id, err);
    if (b->fresh)
        push_new(&a, &args, b->fresh);
    if (code == 0)
        code = check_run_script(queue_store(cs->queue), &a, SCRIPT_check_begin, &args, err);
    vec_release(&args.v);
    arena_release(&a);
    return code;
}

int check_start(const struct checks *cs, const struct check *c, struct err *err)
{
    return check_begin(cs, c->id, &(struct beginning){"new", CHECK_TYPE, 0, c}, err);
}

int check_restart(const struct checks *cs, struct str id, struct err *err)
{
    return check_begin(cs, id, &(struct beginning){"again", CHECK_TYPE, 0, NULL}, err);
}

int check_fix(const struct checks *cs, struct str id, size_t source, struct err *err)
{
    return check_begin(cs, id, &(struct beginning){"fix", CHECK_FIX_TYPE, source, NULL}, err);
}

/* --- continuing --- */

int check_page(const struct checks *cs, const struct check_page *p, struct err *err)
{
    struct arena a = ARENA_INIT(QUEUE_ARENA_MAX);
    struct arguments args = {0};

    push_head(cs, &a, &args, p->check->id);
    vec_push(&args.v, p->check->round);
    vec_push(&args.v, p->after);
    vec_push(&args.v, p->last);
    vec_push(&args.v, queue_number(&a, (int64_t)p->keys));
    vec_push(&args.v, queue_number(&a, (int64_t)p->differences));
    vec_push(&args.v, queue_number(&a, (int64_t)p->bytes));
    vec_push(&args.v, queue_number(&a, CHECK_KEPT));
    vec_push(&args.v, p->check->versioned ? STR("1") : STR("0"));
    vec_push(&args.v, queue_number(&a, p->check->total));
    int code = push_piece(&a, &args, p->check, p->hand_over ? CHECK_TYPE : NULL, err);
    for (size_t i = 0; i < p->count; i++)
        vec_push(&args.v, p->entries[i]);
    if (code == 0)
        code = check_run_script(queue_store(cs->queue), &a, SCRIPT_check_page, &args, err);
    vec_release(&args.v);
    arena_release(&a);
    return code;
}

int check_fix_page(const struct checks *cs, const struct check_fix_page *p, struct err *err)
{
    struct arena a = ARENA_INIT(QUEUE_ARENA_MAX);
    struct arguments args = {0};

    push_head(cs, &a, &args, p->check->id);
    vec_push(&args.v, p->check->round);
    vec_push(&args.v, p->after);
    vec_push(&args.v, p->last);
    int code = push_piece(&a, &args, p->check, p->hand_over ? CHECK_FIX_TYPE : NULL, err);
    for (size_t i = 0; code == 0 && i < p->count; i++) {
        vec_push(&args.v, p->items[i].member);
        code = push_task(&a, &args, &p->items[i].task, err);
    }
    if (code == 0)
        code = check_run_script(queue_store(cs->queue), &a, SCRIPT_check_fix_page, &args, err);
    vec_release(&args.v);
    arena_release(&a);
    return code;
}

int check_fixed(const struct checks *cs, const struct check *c, struct str member, struct str error,
                struct err *err)
{
    struct arena a = ARENA_INIT(CHECK_ARENA_MAX);
    struct arguments args = {0};

    push_head(cs, &a, &args, c->id);
    vec_push(&args.v, c->round);
    vec_push(&args.v, member);
    vec_push(&args.v, error);
    int code = check_run_script(queue_store(cs->queue), &a, SCRIPT_check_fixed, &args, err);
    arena_release(&a);
    return code;
}

int check_note(const struct checks *cs, const struct check *c, struct str error, bool ends,
               struct err *err)
{
    struct arena a = ARENA_INIT(CHECK_ARENA_MAX);
    struct arguments args = {0};

    vec_push(&args.v, c->id);
    vec_push(&args.v, str_z(check_state_names[c->state]));
    vec_push(&args.v, c->round);
    vec_push(&args.v, error);
    vec_push(&args.v, ends ? STR("1") : STR("0"));
    vec_push(&args.v, queue_number(&a, c->piece));
    int code = check_run_script(cs->app, &a, SCRIPT_check_note, &args, err);
    arena_release(&a);
    return code;
}
