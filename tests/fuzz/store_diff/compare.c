/* Comparing two stores step by step. */
#include "store_diff/compare.h"
#include "store_diff/generate.h"

#include <stdlib.h>

enum { BLOCK = 128, CLOCK_SLACK_MS = 5000 };

/* Commands that ran on ours and wait to be sent to theirs in one pipeline. */
struct block {
    const struct pair *pair;
    struct difference *difference;
    struct store_args commands[BLOCK];
    struct buf replies[BLOCK]; /* ours, printed */
    size_t first, len;         /* index of the first step, how many */
};

/* What a command that the comparison itself needs answers; ends the program when it cannot. */
static struct reply *must(struct store *s, struct arena *arena, const struct str *argv, size_t argc)
{
    struct reply *reply = NULL;

    BUG_ON(store_command(s, arena, &reply, argv, argc, NULL) < 0);
    return reply;
}

#define must_call(s, arena, ...)                                                                   \
    must((s), (arena), (const struct str[]){__VA_ARGS__},                                          \
         sizeof((const struct str[]){__VA_ARGS__}) / sizeof(struct str))

/* The time left depends on when it is asked. */
static bool same_but_for_the_clock(const struct store_args *command, struct str a, struct str b)
{
    bool seconds = str_ieq(command->argv[0], STR("TTL"));
    int64_t x, y, slack = seconds ? CLOCK_SLACK_MS / 1000 : CLOCK_SLACK_MS;

    if (!seconds && !str_ieq(command->argv[0], STR("PTTL")))
        return false;
    return str_i64(a, &x) == 0 && str_i64(b, &y) == 0 && x > 0 && y > 0 && llabs(x - y) <= slack;
}

static bool same(struct difference *d, size_t at, const struct store_args *command, struct str ours,
                 struct str theirs)
{
    if (str_eq(ours, theirs) || same_but_for_the_clock(command, ours, theirs))
        return true;
    d->at = at;
    buf_reset(&d->ours);
    buf_reset(&d->theirs);
    buf_append_str(&d->ours, ours);
    buf_append_str(&d->theirs, theirs);
    return false;
}

/* A page of a scan may name an element twice while Redis rehashes: sorted, so only neighbours. */
static void print_reply(const struct store_args *command, struct reply *r, struct buf *out)
{
    bool is_scan = str_ends(command->argv[0], STR("SCAN")) && r->type == REPLY_ARRAY;

    play_sort_reply(command, r);
    if (is_scan && r->count == 2) {
        struct reply *page = &r->items[1];
        size_t width = str_ieq(command->argv[0], STR("HSCAN")) ||
                               str_ieq(command->argv[0], STR("ZSCAN"))
                           ? 2
                           : 1,
               kept = 0;
        for (size_t i = 0; i < page->count; i += width)
            if (!kept || !str_eq(page->items[i].str, page->items[kept - width].str)) {
                memmove(&page->items[kept], &page->items[i], width * sizeof(*page->items));
                kept += width;
            }
        page->count = kept;
    }
    reply_print(out, r);
}

static void run_one(struct store *s, const struct store_args *command, struct buf *out)
{
    struct arena arena = {0};
    struct reply *reply;
    int rc = store_command(s, &arena, &reply, command->argv, command->argc, NULL);

    if (rc == 0)
        print_reply(command, reply, out);
    else
        buf_appendf(out, "!%s", err_name(rc));
    arena_release(&arena);
}

static bool flush(struct block *b)
{
    struct arena arena = {0};
    struct reply *all;
    struct buf theirs = {0};
    int rc = b->len ? store_pipeline(b->pair->theirs, &arena, &all, b->commands, b->len, NULL) : 0;
    bool ok = true;

    BUG_ON(rc < 0);
    for (size_t i = 0; i < b->len && ok; i++) {
        buf_reset(&theirs);
        print_reply(&b->commands[i], &all->items[i], &theirs);
        ok = same(b->difference, b->first + i, &b->commands[i], buf_str(&b->replies[i]),
                  buf_str(&theirs));
    }
    b->len = 0;
    buf_release(&theirs);
    arena_release(&arena);
    return ok;
}

static bool add_to_block(struct block *b, size_t at, const struct store_args *command)
{
    if (b->len == 0)
        b->first = at;
    buf_reset(&b->replies[b->len]);
    run_one(b->pair->ours, command, &b->replies[b->len]);
    b->commands[b->len++] = *command;
    return b->len < BLOCK || flush(b);
}

/* --- random choices --- */

static const struct {
    const char *command, *ask; /* the value of one member, in theirs */
} choosers[] = {
    {"SPOP", "SISMEMBER"},
    {"SRANDMEMBER", "SISMEMBER"},
    {"HRANDFIELD", "HGET"},
    {"ZRANDMEMBER", "ZSCORE"},
};

static struct str asker(const struct store_args *command)
{
    for (size_t i = 0; i < ARRAY_SIZE(choosers); i++)
        if (str_ieq(command->argv[0], str_z(choosers[i].command)))
            return str_z(choosers[i].ask);
    return STR_EMPTY;
}

static bool is_member(struct store *s, const struct store_args *command, struct str member,
                      const struct str *value)
{
    struct arena arena = {0};
    struct reply *r = must_call(s, &arena, asker(command), command->argv[1], member);
    bool found = r->type == REPLY_BULK || (r->type == REPLY_INTEGER && r->integer == 1);

    if (found && value)
        found = str_eq(r->str, *value);
    arena_release(&arena);
    return found;
}

/* Every item is there, with its value if it came with one; no item twice unless asked so. */
static bool valid_choice(struct store *theirs, const struct store_args *command,
                         const struct reply *r)
{
    size_t width = command->argc == 4 ? 2 : 1;
    bool repeats = command->argc > 2 && str_starts(command->argv[2], STR("-"));

    if (r->type == REPLY_BULK)
        return is_member(theirs, command, r->str, NULL);
    for (size_t i = 0; i < r->count; i += width) {
        if (!is_member(theirs, command, r->items[i].str, width == 2 ? &r->items[i + 1].str : NULL))
            return false;
        for (size_t j = 0; j < i && !repeats; j += width)
            if (str_eq(r->items[i].str, r->items[j].str))
                return false;
    }
    return true;
}

/* What ours popped is removed from theirs. */
static void remove_popped(struct store *theirs, const struct store_args *command,
                          const struct reply *r)
{
    struct arena arena = {0};

    if (r->type == REPLY_BULK)
        must_call(theirs, &arena, STR("SREM"), command->argv[1], r->str);
    for (size_t i = 0; i < r->count; i++)
        must_call(theirs, &arena, STR("SREM"), command->argv[1], r->items[i].str);
    arena_release(&arena);
}

/* Theirs answers first as SRANDMEMBER would: how many, or why not, without changing it. */
static bool compare_pop(const struct pair *p, const struct store_args *command, size_t at,
                        struct difference *d)
{
    struct arena arena = {0};
    struct reply *r, *size;
    struct buf ours = {0}, theirs = {0};
    struct store *s = p->theirs;
    bool ok = true;
    int rc = store_command(p->ours, &arena, &r, command->argv, command->argc, NULL);

    if (rc == 0 && (r->type == REPLY_BULK || (r->type == REPLY_ARRAY && r->count))) {
        int64_t count = 1;
        size = must_call(s, &arena, STR("SCARD"), command->argv[1]);
        if (command->argc > 2 && str_i64(command->argv[2], &count) < 0)
            count = -1;
        ok = valid_choice(s, command, r) &&
             (r->type == REPLY_BULK ||
              (int64_t)r->count == (size->integer < count ? size->integer : count));
        remove_popped(s, command, r);
        if (!ok) {
            reply_print(&ours, r);
            buf_append_z(&theirs, "(another choice)");
            same(d, at, command, buf_str(&ours), buf_str(&theirs));
        }
    } else {
        if (rc == 0)
            reply_print(&ours, r);
        else
            buf_appendf(&ours, "!%s", err_name(rc));
        run_one(s, command, &theirs);
        ok = same(d, at, command, buf_str(&ours), buf_str(&theirs));
    }
    buf_release(&ours);
    buf_release(&theirs);
    arena_release(&arena);
    return ok;
}

/* Both choose; the kind and the number must be the same, and ours must be a valid choice. */
static bool compare_choice(const struct pair *p, const struct store_args *command, size_t at,
                           struct difference *d)
{
    struct arena arena = {0};
    struct reply *a, *b = must(p->theirs, &arena, command->argv, command->argc);
    struct buf ours = {0}, theirs = {0};
    int rc = store_command(p->ours, &arena, &a, command->argv, command->argc, NULL);
    bool free_choice = b->type == REPLY_BULK || (b->type == REPLY_ARRAY && b->count), ok;

    if (rc == 0)
        reply_print(&ours, a);
    else
        buf_appendf(&ours, "!%s", err_name(rc));
    reply_print(&theirs, b);
    if (rc < 0 || !free_choice || a->type != b->type || a->count != b->count)
        ok = same(d, at, command, buf_str(&ours), buf_str(&theirs));
    else if (str_ieq(command->argv[0], STR("RANDOMKEY")))
        ok = must_call(p->theirs, &arena, STR("EXISTS"), a->str)->integer == 1 ||
             same(d, at, command, buf_str(&ours), buf_str(&theirs));
    else
        ok = valid_choice(p->theirs, command, a) ||
             same(d, at, command, buf_str(&ours), buf_str(&theirs));
    buf_release(&ours);
    buf_release(&theirs);
    arena_release(&arena);
    return ok;
}

/* --- steps and state --- */

static bool compare_batch(const struct pair *p, const struct play_step *step, size_t at,
                          struct difference *d)
{
    struct buf ours = {0}, theirs = {0};
    bool ok;

    play_step_run(step, p->ours, &ours);
    play_step_run(step, p->theirs, &theirs);
    ok = same(d, at, &step->commands.items[0], buf_str(&ours), buf_str(&theirs));
    buf_release(&ours);
    buf_release(&theirs);
    return ok;
}

static bool compare_step(struct block *b, const struct play_step *step, size_t at)
{
    const struct store_args *command = step->commands.items;

    if (step->kind == PLAY_COMMAND && !is_random_command(command))
        return add_to_block(b, at, command);
    if (!flush(b))
        return false;
    if (step->kind != PLAY_COMMAND)
        return compare_batch(b->pair, step, at, b->difference);
    if (str_ieq(command->argv[0], STR("SPOP")))
        return compare_pop(b->pair, command, at, b->difference);
    return compare_choice(b->pair, command, at, b->difference);
}

/* The command that reads a key of this type whole. */
static bool whole_read(struct str type, struct str key, struct str argv[5], size_t *argc)
{
    static const struct {
        const char *type, *command;
        struct str more[3];
    } readers[] = {
        {"string", "GET", {{0}}},
        {"list", "LRANGE", {STR("0"), STR("-1")}},
        {"set", "SMEMBERS", {{0}}},
        {"hash", "HGETALL", {{0}}},
        {"zset", "ZRANGE", {STR("0"), STR("-1"), STR("WITHSCORES")}},
    };

    for (size_t i = 0; i < ARRAY_SIZE(readers); i++) {
        if (!str_eq(type, str_z(readers[i].type)))
            continue;
        argv[0] = str_z(readers[i].command);
        argv[1] = key;
        for (*argc = 2; *argc < 5 && readers[i].more[*argc - 2].len; (*argc)++)
            argv[*argc] = readers[i].more[*argc - 2];
        return true;
    }
    return false;
}

typedef void key_fn(struct store *s, const struct store_args *read, struct buf *out);

/* Calls fn with the reads of every key's time and value, in the order of the keys. */
static void each_key(struct store *s, key_fn *fn, struct buf *out)
{
    struct arena arena = {0};
    struct str all[] = {STR("KEYS"), STR("*")}, argv[5];
    struct reply *keys = must(s, &arena, all, 2);
    size_t argc;

    play_sort_reply(&(struct store_args){all, 2}, keys);
    for (size_t i = 0; i < keys->count; i++) {
        struct str key = keys->items[i].str;
        struct str type = must_call(s, &arena, STR("TYPE"), key)->str;
        fn(s, &(struct store_args){(struct str[]){STR("PEXPIRETIME"), key}, 2}, out);
        if (whole_read(type, key, argv, &argc))
            fn(s, &(struct store_args){argv, argc}, out);
    }
    arena_release(&arena);
}

static void dump_key(struct store *s, const struct store_args *read, struct buf *out)
{
    play_write_command(out, read);
    buf_append_z(out, ": ");
    run_one(s, read, out);
    buf_append_char(out, '\n');
}

static void write_read(struct store *s, const struct store_args *read, struct buf *out)
{
    buf_append_z(out, "> ");
    play_write_command(out, read);
    buf_append_char(out, '\n');
}

void compare_write_reads(struct store *s, struct buf *out)
{
    buf_append_z(out, "> KEYS *\n");
    each_key(s, write_read, out);
}

static bool compare_state(const struct pair *p, size_t at, struct difference *d)
{
    struct buf ours = {0}, theirs = {0};
    bool ok;

    each_key(p->ours, dump_key, &ours);
    each_key(p->theirs, dump_key, &theirs);
    ok = str_eq(buf_str(&ours), buf_str(&theirs));
    if (!ok)
        same(d, at, &(struct store_args){(struct str[]){STR("KEYS")}, 1}, buf_str(&ours),
             buf_str(&theirs));
    buf_release(&ours);
    buf_release(&theirs);
    return ok;
}

bool compare_play(const struct pair *p, const struct play_step *steps, size_t count,
                  struct difference *d)
{
    struct block *b = xcalloc(1, sizeof(*b));
    struct arena arena = {0};
    bool ok = true;

    b->pair = p;
    b->difference = d;
    must_call(p->ours, &arena, STR("FLUSHDB"));
    must_call(p->theirs, &arena, STR("FLUSHDB"));
    for (size_t i = 0; i < count && ok; i++)
        ok = compare_step(b, &steps[i], i);
    ok = ok && flush(b) && compare_state(p, count, d);
    for (size_t i = 0; i < BLOCK; i++)
        buf_release(&b->replies[i]);
    free(b);
    arena_release(&arena);
    return ok;
}

void difference_release(struct difference *d)
{
    buf_release(&d->ours);
    buf_release(&d->theirs);
}
