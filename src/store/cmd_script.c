/* EVAL and its variants, and SCRIPT. */
#include "store/embedded_int.h"

/* Reads EVAL's arguments "numkeys key... arg...", which begin at argument 2. False: the call was
 * answered with an error. */
static bool parse_keys(struct call *c, struct script_call *s)
{
    int64_t n;

    if (!arg_int(c, 2, &n))
        return false;
    if (n > (int64_t)c->argc - 3) {
        answer_error(c, "ERR Number of keys can't be greater than number of args");
        return false;
    }
    if (n < 0) {
        answer_error(c, "ERR Number of keys can't be negative");
        return false;
    }
    s->keys = c->argv + 3;
    s->key_count = (size_t)n;
    s->args = c->argv + 3 + n;
    s->arg_count = c->argc - 3 - (size_t)n;
    s->readonly = !(c->command->flags & CMD_WRITE);
    return true;
}

void cmd_eval(struct call *c)
{
    struct script_call s = {.source = c->argv[1].p ? c->argv[1] : STR("")};

    if (!parse_keys(c, &s))
        return;
    script_digest(s.source, s.sha1);
    script_remember(c->run->e, &s);
    script_run(c, &s);
}

void cmd_evalsha(struct call *c)
{
    struct script_call s = {0};

    if (!parse_keys(c, &s))
        return;
    for (size_t i = 0; i < 40 && i < c->argv[1].len; i++) {
        char byte = c->argv[1].p[i];
        s.sha1[i] = byte >= 'A' && byte <= 'Z' ? (char)(byte | 0x20) : byte;
    }
    if (c->argv[1].len == 40)
        script_run(c, &s);
    else
        answer_error(c, "NOSCRIPT No matching script. Please use EVAL.");
}

static void script_cmd_load(struct call *c)
{
    script_load(c, c->argv[2]);
}

static void script_cmd_exists(struct call *c)
{
    struct reply *items = answer_array(c, c->argc - 2);
    for (size_t i = 2; items && i < c->argc; i++)
        items[i - 2] = as_int(script_known(c->run->e, c->argv[i]));
}

static void script_cmd_flush(struct call *c)
{
    if (c->argc > 3 || (c->argc == 3 && !arg_is(c, 2, "async") && !arg_is(c, 2, "sync"))) {
        answer_error(c, "ERR SCRIPT FLUSH only support SYNC|ASYNC option");
        return;
    }
    script_flush(c->run->e);
    answer_ok(c);
}

static const struct cmd subcommands[] = {
    {"load", 3, 0, 0, 0, 0, script_cmd_load},
    {"exists", -3, 0, 0, 0, 0, script_cmd_exists},
    {"flush", -2, 0, 0, 0, 0, script_cmd_flush},
};

void cmd_script(struct call *c)
{
    for (size_t i = 0; i < ARRAY_SIZE(subcommands); i++) {
        if (!arg_is(c, 1, subcommands[i].name))
            continue;
        if (cmd_arity_ok(&subcommands[i], c->argc))
            subcommands[i].fn(c);
        else
            answer_error(c, "ERR wrong number of arguments for 'script|%s' command",
                         subcommands[i].name);
        return;
    }
    answer_error(c, "ERR unknown subcommand '%.128s'. Try SCRIPT HELP.",
                 arena_z(c->arena, c->argv[1]));
}
