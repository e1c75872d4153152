/* Files of commands and expected replies: parsing, playing, recording. */
#include "unit/store/play.h"
#include "base/hex.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_WORDS = 1024 };

/* What has no order in a reply. */
enum order { ORDERED, ITEMS, PAIRS, PAGE_OF_ITEMS, PAGE_OF_PAIRS };

static const struct {
    const char *command;
    enum order order;
    const char *pairs_with; /* the option that makes pairs of the items */
} orders[] = {
    {"HGETALL", PAIRS, NULL},       {"HKEYS", ITEMS, NULL},  {"HRANDFIELD", ITEMS, "WITHVALUES"},
    {"HSCAN", PAGE_OF_PAIRS, NULL}, {"HVALS", ITEMS, NULL},  {"KEYS", ITEMS, NULL},
    {"SCAN", PAGE_OF_ITEMS, NULL},  {"SDIFF", ITEMS, NULL},  {"SINTER", ITEMS, NULL},
    {"SMEMBERS", ITEMS, NULL},      {"SPOP", ITEMS, NULL},   {"SRANDMEMBER", ITEMS, NULL},
    {"SSCAN", PAGE_OF_ITEMS, NULL}, {"SUNION", ITEMS, NULL}, {"ZRANDMEMBER", ITEMS, "WITHSCORES"},
    {"ZSCAN", PAGE_OF_PAIRS, NULL},
};

static enum order order_of(const struct store_args *command)
{
    for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
        if (!str_ieq(command->argv[0], str_z(orders[i].command)))
            continue;
        for (size_t w = 1; w < command->argc; w++)
            if (str_ieq(command->argv[w], str_z(orders[i].pairs_with)) && orders[i].pairs_with)
                return PAIRS;
        return orders[i].order;
    }
    return ORDERED;
}

/* By name, then (for pairs) by value: the same field never comes twice but in HRANDFIELD. */
static int compare_items(const void *a, const void *b)
{
    return str_cmp(((const struct reply *)a)->str, ((const struct reply *)b)->str);
}

static int compare_pairs(const void *a, const void *b)
{
    const struct reply *x = a, *y = b;
    int order = compare_items(x, y);
    return order ? order : compare_items(x + 1, y + 1);
}

static void sort_array(struct reply *r, bool pairs)
{
    if (r->type != REPLY_ARRAY || r->count < 2)
        return;
    if (pairs)
        qsort(r->items, r->count / 2, 2 * sizeof(*r->items), compare_pairs);
    else
        qsort(r->items, r->count, sizeof(*r->items), compare_items);
}

void play_sort_reply(const struct store_args *command, struct reply *r)
{
    enum order order = order_of(command);

    if (order == ITEMS || order == PAIRS)
        sort_array(r, order == PAIRS);
    else if (order != ORDERED && r->type == REPLY_ARRAY && r->count == 2)
        sort_array(&r->items[1], order == PAGE_OF_PAIRS);
}

/* One character of a quoted word; advances. -1: malformed. */
static int quoted_char(struct str *in)
{
    static const char from[] = "nrt\"\\", to[] = "\n\r\t\"\\";
    char c = in->p[0];
    const char *escape;

    *in = str_skip(*in, 1);
    if (c != '\\')
        return (unsigned char)c;
    if (in->len == 0)
        return -1;
    c = in->p[0];
    if (c == 'x' && in->len >= 3 && hex_digit(in->p[1]) >= 0 && hex_digit(in->p[2]) >= 0) {
        int value = hex_digit(in->p[1]) * 16 + hex_digit(in->p[2]);
        *in = str_skip(*in, 3);
        return value;
    }
    *in = str_skip(*in, 1);
    escape = c ? strchr(from, c) : NULL;
    return escape ? to[escape - from] : -1;
}

static bool parse_quoted(struct str *in, struct buf *out)
{
    *in = str_skip(*in, 1);
    while (in->len && in->p[0] != '"') {
        int c = quoted_char(in);
        if (c < 0)
            return false;
        buf_append_char(out, (char)c);
    }
    if (in->len == 0)
        return false;
    *in = str_skip(*in, 1);
    return true;
}

/* 1: a word; 0: the end of the line; -1: malformed. */
static int next_word(struct str *in, struct arena *arena, struct str *out)
{
    struct buf word = {0};
    bool ok = true;

    *in = str_trim(*in);
    if (in->len == 0)
        return 0;
    if (in->p[0] == '"') {
        ok = parse_quoted(in, &word);
        *out = arena_str(arena, buf_str(&word));
    } else {
        str_cut(*in, ' ', out, in);
    }
    buf_release(&word);
    return ok ? 1 : -1;
}

static bool parse_command(struct play *p, struct str line, struct store_args *out)
{
    struct str words[MAX_WORDS], *argv;
    size_t argc = 0;
    int got;

    while ((got = next_word(&line, &p->arena, &words[argc])) > 0)
        if (++argc == MAX_WORDS)
            return false;
    if (got < 0 || argc == 0)
        return false;
    argv = arena_array(&p->arena, argc, sizeof(*argv));
    memcpy(argv, words, argc * sizeof(*argv));
    *out = (struct store_args){argv, argc};
    return true;
}

static bool is_word(const struct store_args *command, const char *word)
{
    return command->argc == 1 && str_eq(command->argv[0], str_z(word));
}

/* `open` is the step whose end has not come, or NULL. False: out of place. */
static bool add_command(struct play *p, struct store_args command, size_t line, bool *open)
{
    struct play_step *last = *open ? vec_last(&p->steps) : NULL;

    if (is_word(&command, "EXEC") || is_word(&command, "END")) {
        bool fits = last && (last->kind == PLAY_ATOMIC) == is_word(&command, "EXEC");
        if (last)
            last->line = line;
        *open = false;
        return fits;
    }
    if (last) {
        vec_push(&last->commands, command);
        return true;
    }
    vec_push(&p->steps, ((struct play_step){.line = line}));
    last = vec_last(&p->steps);
    *open = is_word(&command, "MULTI") || is_word(&command, "PIPELINE");
    if (*open)
        last->kind = is_word(&command, "MULTI") ? PLAY_ATOMIC : PLAY_PIPELINE;
    else
        vec_push(&last->commands, command);
    return true;
}

int play_parse(struct play *p, struct str text, struct err *err)
{
    bool open = false, ok = true;

    *p = (struct play){0};
    for (size_t number = 1; text.len && ok; number++) {
        struct store_args command;
        struct str line;
        str_cut(text, '\n', &line, &text);
        if (line.len == 0 || line.p[0] == '#')
            continue;
        if (line.p[0] == '>')
            ok = parse_command(p, str_skip(line, 1), &command) &&
                 add_command(p, command, number, &open);
        else if (p->steps.len && !open)
            vec_last(&p->steps)->want = line;
        else
            ok = false;
        if (!ok)
            err_set(err, ERR_PARSE, "line %zu", number);
    }
    if (ok && !open)
        return 0;
    play_release(p);
    return ERR_PARSE;
}

void play_release(struct play *p)
{
    vec_each (&p->steps, struct play_step *, step)
        vec_release(&step->commands);
    vec_release(&p->steps);
    arena_release(&p->arena);
}

static int run_batch(const struct play_step *step, struct store *s, struct arena *arena,
                     struct reply **reply, struct err *err)
{
    int rc = step->kind == PLAY_ATOMIC
                 ? store_atomic(s, arena, reply, step->commands.items, step->commands.len, err)
                 : store_pipeline(s, arena, reply, step->commands.items, step->commands.len, err);

    for (size_t i = 0; rc == 0 && i < (*reply)->count; i++)
        play_sort_reply(&step->commands.items[i], &(*reply)->items[i]);
    return rc;
}

void play_step_run(const struct play_step *step, struct store *s, struct buf *got)
{
    const struct store_args *first = step->commands.items;
    struct arena arena = {0};
    struct reply *reply;
    struct err err = {0};
    int rc;

    if (step->kind == PLAY_COMMAND) {
        rc = store_command(s, &arena, &reply, first->argv, first->argc, &err);
        if (rc == 0)
            play_sort_reply(first, reply);
    } else {
        rc = run_batch(step, s, &arena, &reply, &err);
    }
    if (rc == 0)
        reply_print(got, reply);
    else
        buf_appendf(got, "!%s", err_name(rc));
    arena_release(&arena);
}

size_t play_run(const struct play *p, struct store *s, const char *name)
{
    struct buf got = {0}, line = {0};
    size_t failed = 0;

    vec_each (&p->steps, struct play_step *, step) {
        buf_reset(&got);
        play_step_run(step, s, &got);
        if (str_eq(buf_str(&got), step->want))
            continue;
        failed++;
        buf_reset(&line);
        play_write_command(&line, vec_last(&step->commands));
        fprintf(stderr, "%s:%zu: %s\n    answers  " STR_FMT "\n    not      " STR_FMT "\n", name,
                step->line, line.p, STR_ARG(buf_str(&got)), STR_ARG(step->want));
    }
    buf_release(&got);
    buf_release(&line);
    return failed;
}

int play_record(struct str text, struct store *s, struct buf *out, struct err *err)
{
    struct play p;
    size_t next = 0;
    int rc = play_parse(&p, text, err);

    if (rc < 0)
        return rc;
    for (size_t number = 1; text.len; number++) {
        struct str line;
        str_cut(text, '\n', &line, &text);
        if (line.len == 0 || line.p[0] == '#' || line.p[0] == '>') {
            buf_append_str(out, line);
            buf_append_char(out, '\n');
        }
        if (next < p.steps.len && p.steps.items[next].line == number) {
            play_step_run(&p.steps.items[next++], s, out);
            buf_append_char(out, '\n');
        }
    }
    play_release(&p);
    return buf_error(out);
}

static bool needs_quotes(struct str word)
{
    for (size_t i = 0; i < word.len; i++)
        if (word.p[i] <= ' ' || word.p[i] >= 0x7f || word.p[i] == '"')
            return true;
    return word.len == 0;
}

void play_write_command(struct buf *out, const struct store_args *command)
{
    for (size_t i = 0; i < command->argc; i++) {
        struct reply word = {.type = REPLY_BULK, .str = command->argv[i]};
        if (i)
            buf_append_char(out, ' ');
        if (needs_quotes(word.str))
            reply_print(out, &word);
        else
            buf_append_str(out, word.str);
    }
}
