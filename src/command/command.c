/* Finds the command in argv, parses its flags, and runs its function. */
#include "command/command.h"
#include "command/help.h"
#include "command/manage.h"
#include "conf/keys.h"
#include "conf/nearest.h"

#include <stdio.h>

const struct flag config_flags[] = {
    {"config", FLAG_FILE, "FILE", NULL,
     "The configuration file; else $WEIR_CONFIG, ./weir.yaml or /etc/weir/weir.yaml."},
    {0},
};

static const struct flag help_flag = {"help", FLAG_SWITCH, NULL, NULL, "Show this help."};

int complain(int status, const char *fmt, ...)
{
    va_list ap;

    fflush(stdout);
    fputs("weir: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    return status;
}

/* --- finding the command --- */

const struct command *command_find(const struct command_table *table, struct str name)
{
    for (size_t i = 0; i < table->count; i++)
        if (str_eq(str_z(table->rows[i].name), name))
            return &table->rows[i];
    return NULL;
}

/* Appends the words that may follow `group` in names of commands, separated by ", ". Appends
 * nothing when there is no such group. The commands of one group are next to each other in the
 * table. */
static void list_group(const struct command_table *table, struct str group, struct buf *out)
{
    struct str before = STR_EMPTY, word, name;

    for (size_t i = 0; i < table->count; i++) {
        name = str_z(table->rows[i].name);
        if (!str_starts(name, group) || name.len == group.len || name.p[group.len] != ' ')
            continue;
        str_cut(str_skip(name, group.len + 1), ' ', &word, &(struct str){0});
        if (!str_eq(word, before))
            buf_appendf(out, "%s" STR_FMT, out->len ? ", " : "", STR_ARG(word));
        before = word;
    }
}

static bool is_group(const struct command_table *table, struct str word)
{
    struct buf list = {0};
    bool found;

    list_group(table, word, &list);
    found = list.len > 0;
    buf_release(&list);
    return found;
}

int command_unknown(const struct command_table *table, struct str typed)
{
    struct nearest near = NEAREST_INIT(typed);
    struct buf list = {0};

    list_group(table, typed, &list);
    if (list.len) {
        complain(EXIT_USAGE,
                 "'" STR_FMT "' is the beginning of several commands; it goes on with one of %s",
                 STR_ARG(typed), list.p);
        buf_release(&list);
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < table->count; i++)
        nearest_offer(&near, table->rows[i].name);
    if (near.best)
        return complain(EXIT_USAGE, "no command '" STR_FMT "'; did you mean '%s'?", STR_ARG(typed),
                        near.best);
    return complain(EXIT_USAGE, "no command '" STR_FMT "'; `weir help` lists them", STR_ARG(typed));
}

/* Returns the command whose name argv begins with, or complains and returns NULL. *words is the
 * number of words in the name. */
static const struct command *find_in_argv(const struct command_table *table, int argc, char **argv,
                                          int *words)
{
    struct buf name = BUF_INIT(4096);
    const struct command *found = NULL;

    *words = 1;
    buf_append_z(&name, argv[1]);
    while (*words + 1 < argc && argv[*words + 1][0] != '-' && is_group(table, buf_str(&name)))
        buf_appendf(&name, " %s", argv[++*words]);
    if (buf_error(&name) == 0)
        found = command_find(table, buf_str(&name));
    if (!found)
        command_unknown(table, buf_str(&name));
    buf_release(&name);
    return found;
}

/* --- parsing its flags --- */

static const struct flag *flag_find(const struct flag *flags, struct str name)
{
    for (; flags && flags->type != FLAG_END; flags++)
        if (str_eq(str_z(flags->name), name))
            return flags;
    return NULL;
}

static void offer_flags(struct nearest *near, const struct flag *flags)
{
    for (; flags && flags->type != FLAG_END; flags++)
        nearest_offer(near, flags->name);
}

static int unknown_flag(const struct command *c, struct str name)
{
    struct nearest near = NEAREST_INIT(name);

    offer_flags(&near, c->flags);
    if (c->configured) {
        offer_flags(&near, config_flags);
        for (size_t i = 0; i < conf_key_count; i++)
            nearest_offer(&near, conf_keys[i].name);
    }
    if (near.best)
        return complain(EXIT_USAGE, "%s: no flag --" STR_FMT "; did you mean --%s?", c->name,
                        STR_ARG(name), near.best);
    return complain(EXIT_USAGE, "%s: no flag --" STR_FMT "; `weir help %s` lists them", c->name,
                    STR_ARG(name), c->name);
}

static bool is_choice(const struct flag *flag, struct str word)
{
    for (const char *const *choice = flag->choices; *choice; choice++)
        if (str_eq(str_z(*choice), word))
            return true;
    return false;
}

static int check_choices(const struct command *c, const struct flag *flag, const char *value)
{
    struct str rest = str_z(value), word;
    struct buf list = BUF_INIT(1024);
    bool more;
    int status = 0;

    do {
        more = str_cut(rest, ',', &word, &rest);
        if (is_choice(flag, word))
            continue;
        for (const char *const *choice = flag->choices; *choice; choice++)
            buf_appendf(&list, "%s%s", list.len ? ", " : "", *choice);
        status =
            complain(EXIT_USAGE, "%s: --%s takes %s (commas between several), not '" STR_FMT "'",
                     c->name, flag->name, list.p, STR_ARG(word));
        break;
    } while (more);
    buf_release(&list);
    return status;
}

/* Parses the flag argv[*at]. When the flag's value is the next word, *at moves to that word. */
static int invocation_parse_flag(struct invocation *inv, int argc, char **argv, int *at)
{
    const struct command *c = inv->command;
    struct str name, value;
    bool joined = str_cut(str_z(argv[*at] + 2), '=', &name, &value);
    const struct flag *flag = flag_find(c->flags, name);
    bool is_key = !flag && c->configured && conf_key_find(name);

    if (!flag && c->configured)
        flag = flag_find(config_flags, name);
    if (!flag && str_eq(name, STR("help")))
        flag = &help_flag;
    if (!flag && !is_key)
        return unknown_flag(c, name);
    if (flag && flag->type == FLAG_SWITCH) {
        if (joined)
            return complain(EXIT_USAGE, "%s: --%s takes no value", c->name, flag->name);
        vec_push(&inv->flags, ((struct given_flag){flag, ""}));
        return 0;
    }
    if (!joined) {
        if (*at + 1 >= argc)
            return complain(EXIT_USAGE, "%s: --" STR_FMT " needs a value", c->name, STR_ARG(name));
        value = str_z(argv[++*at]);
    }
    if (is_key) {
        vec_push(&inv->keys, ((struct conf_flag){name, value}));
        return 0;
    }
    vec_push(&inv->flags, ((struct given_flag){flag, value.p}));
    return flag->type == FLAG_CHOICES ? check_choices(c, flag, value.p) : 0;
}

static int invocation_parse(struct invocation *inv, int argc, char **argv)
{
    const struct command *c = inv->command;
    int status = 0, at = 0;

    for (; at < argc && status == 0; at++) {
        if (strcmp(argv[at], "--") == 0) {
            at++;
            break;
        }
        if (strcmp(argv[at], "-h") == 0)
            vec_push(&inv->flags, ((struct given_flag){&help_flag, ""}));
        else if (argv[at][0] == '-' && argv[at][1] == '-')
            status = invocation_parse_flag(inv, argc, argv, &at);
        else if (argv[at][0] == '-' && argv[at][1])
            status = complain(EXIT_USAGE, "%s: no flag %s; flags begin with two dashes", c->name,
                              argv[at]);
        else
            vec_push(&inv->args, argv[at]);
    }
    for (; at < argc && status == 0; at++)
        vec_push(&inv->args, argv[at]);
    if (status != 0 || invocation_flag(inv, "help"))
        return status;
    if (inv->args.len < c->min_args)
        return complain(EXIT_USAGE, "%s needs %s; `weir help %s` says more", c->name, c->arguments,
                        c->name);
    if (inv->args.len > c->max_args)
        return complain(EXIT_USAGE, "%s: unexpected argument '%s'; `weir help %s` says more",
                        c->name, inv->args.items[c->max_args], c->name);
    return 0;
}

int cli_main(const struct command_table *table, int argc, char **argv, const char *const *environ)
{
    struct invocation inv = {.table = table, .environ = environ};
    int words = 1, status;

    if (argc < 2) {
        help_overview(table, stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        help_overview(table, stdout);
        return EXIT_DONE;
    }
    if (strcmp(argv[1], "--version") == 0)
        argv[1] += 2;
    inv.command = find_in_argv(table, argc, argv, &words);
    if (!inv.command)
        return EXIT_USAGE;
    status = invocation_parse(&inv, argc - 1 - words, argv + 1 + words);
    if (status == 0 && invocation_flag(&inv, "help"))
        help_command(inv.command, stdout);
    else if (status == 0)
        status = inv.command->call ? manage(&inv, inv.command->call) : inv.command->run(&inv);
    vec_release(&inv.args);
    vec_release(&inv.flags);
    vec_release(&inv.keys);
    if (fflush(stdout) != 0 && status == 0)
        status = complain(EXIT_FAILED, "the output could not be written");
    return status;
}

/* --- for the commands --- */

const char *invocation_flag(const struct invocation *inv, const char *name)
{
    const char *value = NULL;

    vec_each (&inv->flags, const struct given_flag *, given) {
        if (strcmp(given->flag->name, name) == 0)
            value = given->value;
    }
    return value;
}

void invocation_conf_input(const struct invocation *inv, struct conf_input *in)
{
    *in = (struct conf_input){
        .file = invocation_flag(inv, "config"),
        .environ = inv->environ,
        .flags = inv->keys.items,
        .flag_count = inv->keys.len,
    };
}

int invocation_conf(const struct invocation *inv, struct conf **out)
{
    struct conf_input in;
    struct buf problems = {0};
    struct str rest, line;
    int code;

    invocation_conf_input(inv, &in);
    code = conf_load(out, &in, &problems);
    rest = buf_str(&problems);
    while (str_token(&rest, "\n", &line))
        complain(0, STR_FMT, STR_ARG(line));
    buf_release(&problems);
    return code < 0 ? EXIT_USAGE : 0;
}
