/* The table of commands: finding a command by its name, and checking the number of its
 * arguments. */
#include "store/embedded_int.h"

enum {
    READ = CMD_READ,
    WRITE = CMD_WRITE,
    ROW = CMD_ROW,
    MEMBER = CMD_MEMBER,
    RANDOM = CMD_RANDOM,
    SCRIPT = CMD_SCRIPT,
    PUBLISH = CMD_PUBLISH,
};

static const struct cmd commands[] = {
#define COMMAND(name, arity, flags, first, last, step, handler)                                    \
    {#name, arity, flags, first, last, step, cmd_##handler},
#include "store/commands.def"
#undef COMMAND
};

/* Compares a command's name, in upper or lower case, with the name in a row of the table. Returns
 * the order as strcmp() does. */
static int cmd_name_compare(struct str name, const char *row)
{
    for (size_t i = 0; i < name.len; i++) {
        unsigned char a = (unsigned char)name.p[i], b = (unsigned char)row[i];
        if (a >= 'A' && a <= 'Z')
            a |= 0x20;
        if (a != b || !b)
            return a < b || (a == b && !b) ? -1 : 1;
    }
    return row[name.len] ? -1 : 0;
}

const struct cmd *cmd_lookup(struct str name)
{
    size_t low = 0, high = ARRAY_SIZE(commands);

    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = cmd_name_compare(name, commands[middle].name);
        if (order == 0)
            return &commands[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

bool cmd_arity_ok(const struct cmd *command, size_t argc)
{
    int n = (int)size_min(argc, INT32_MAX);
    return command->arity >= 0 ? n == command->arity : n >= -command->arity;
}

/* Answers that the command is unknown, with Redis's text, which shows at most 128 bytes of the
 * arguments. */
static void answer_unknown(struct call *c)
{
    struct buf args = BUF_INIT(512);

    for (size_t i = 1; i < c->argc && args.len < 128; i++)
        buf_appendf(&args, "'%.*s' ", (int)size_min(128 - args.len, c->argv[i].len), c->argv[i].p);
    answer_error(c, "ERR unknown command '%.*s', with args beginning with: " STR_FMT,
                 (int)size_min(128, c->argv[0].len), c->argv[0].p, STR_ARG(buf_str(&args)));
    buf_release(&args);
}

bool call_find(struct call *c)
{
    c->command = cmd_lookup(c->argv[0]);
    if (!c->command) {
        answer_unknown(c);
        return false;
    }
    if (!cmd_arity_ok(c->command, c->argc)) {
        answer_wrong_args(c);
        return false;
    }
    return true;
}
