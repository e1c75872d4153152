/* Finds the command in argv, parses its flags, and runs its function. */
#include "command/command.h"
#include "command/help.h"
#include "command/manage.h"
#include "conf/keys.h"
#include "conf/nearest.h"
#include "os/file.h"

#include <stdio.h>
#include <unistd.h>

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

/* Whether the name of some command is the word and further words, as "lake gc" is for "lake". */
static bool is_group(const struct command_table *table, struct str word)
{
    for (size_t i = 0; i < table->count; i++)
        if (help_in_group(&table->rows[i], word))
            return true;
    return false;
}

int command_unknown(const struct command_table *table, struct str typed)
{
    struct nearest near = NEAREST_INIT(typed);

    for (size_t i = 0; i < table->count; i++)
        nearest_offer(&near, table->rows[i].name);
    if (near.best)
        return complain(EXIT_USAGE, "no command '" STR_FMT "'; did you mean '%s'?", STR_ARG(typed),
                        near.best);
    return complain(EXIT_USAGE, "no command '" STR_FMT "'; `weir help` lists them", STR_ARG(typed));
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* Shows the commands of a group, when its name was typed alone or with --help. */
static int show_group(const struct command_table *table, struct str group, const char *next)
{
    bool asked = next && is_help(next);
    FILE *out = asked ? stdout : stderr;

    fprintf(out, "usage: weir " STR_FMT " COMMAND [FLAGS] [ARGUMENTS]\n\n", STR_ARG(group));
    help_group(table, group, out);
    return asked ? EXIT_DONE : EXIT_USAGE;
}

/* Finds the command whose name is at the beginning of argv. *words is the number of words in the
 * name. If there is no such command, prints a message, sets *status to the exit status and returns
 * NULL. */
static const struct command *find_in_argv(const struct command_table *table, int argc, char **argv,
                                          int *words, int *status)
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
        *status = is_group(table, buf_str(&name))
                      ? show_group(table, buf_str(&name), argv[*words + 1])
                      : command_unknown(table, buf_str(&name));
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
    struct str rest = str_z(value), word = rest;
    struct buf list = BUF_INIT(1024);
    bool more, several = flag->type == FLAG_CHOICES;
    int status = 0;

    do {
        more = several && str_cut(rest, ',', &word, &rest);
        if (is_choice(flag, word))
            continue;
        for (const char *const *choice = flag->choices; *choice; choice++)
            buf_appendf(&list, "%s%s", list.len ? ", " : "", *choice);
        status = complain(EXIT_USAGE, "%s: --%s takes %s%s, not '" STR_FMT "'", c->name, flag->name,
                          list.p, several ? " (commas between several)" : "", STR_ARG(word));
        break;
    } while (more);
    buf_release(&list);
    return status;
}

/* The words after the command's name, and the index of the word that is parsed now. */
struct words {
    char **items;
    int count, at;
};

/* Adds a flag. `joined` is the flag's value if it is in the same word, as in --name=VALUE; NULL:
 * the value is the next word. */
static int invocation_add_flag(struct invocation *inv, const struct flag *flag, const char *joined,
                               struct words *w)
{
    const char *command = inv->command->name, *value = joined;

    if (flag->type == FLAG_SWITCH) {
        if (joined)
            return complain(EXIT_USAGE, "%s: --%s takes no value", command, flag->name);
        vec_push(&inv->flags, ((struct given_flag){flag, ""}));
        return 0;
    }
    if (!value && w->at + 1 >= w->count)
        return complain(EXIT_USAGE, "%s: --%s needs a value", command, flag->name);
    if (!value)
        value = w->items[++w->at];
    vec_push(&inv->flags, ((struct given_flag){flag, value}));
    return flag->choices ? check_choices(inv->command, flag, value) : 0;
}

/* Adds a configuration key that was given as --KEY VALUE. */
static int invocation_add_key(struct invocation *inv, struct str name, const char *joined,
                              struct words *w)
{
    if (!joined && w->at + 1 >= w->count)
        return complain(EXIT_USAGE, "%s: --" STR_FMT " needs a value", inv->command->name,
                        STR_ARG(name));
    const char *value = joined ? joined : w->items[++w->at];
    vec_push(&inv->keys, ((struct conf_flag){name, str_z(value)}));
    return 0;
}

/* Parses the current word, which begins with two dashes. */
static int invocation_parse_flag(struct invocation *inv, struct words *w)
{
    const struct command *c = inv->command;
    struct str name, value;
    bool joined = str_cut(str_z(w->items[w->at] + 2), '=', &name, &value);
    const struct flag *flag = flag_find(c->flags, name);

    if (!flag && c->configured && conf_key_find(name))
        return invocation_add_key(inv, name, joined ? value.p : NULL, w);
    if (!flag && c->configured)
        flag = flag_find(config_flags, name);
    if (!flag && str_eq(name, STR("help")))
        flag = &help_flag;
    return flag ? invocation_add_flag(inv, flag, joined ? value.p : NULL, w)
                : unknown_flag(c, name);
}

/* Parses the current word, which is a dash, a letter and perhaps the flag's value. */
static int invocation_parse_letter(struct invocation *inv, struct words *w)
{
    const char *word = w->items[w->at];

    if (is_help(word))
        return invocation_add_flag(inv, &help_flag, NULL, w);
    for (const struct flag *f = inv->command->flags; f && f->type != FLAG_END; f++)
        if (f->letter && f->letter == word[1] && (f->type != FLAG_SWITCH || !word[2]))
            return invocation_add_flag(inv, f, word[2] ? word + 2 : NULL, w);
    return complain(EXIT_USAGE, "%s: no flag %s; `weir help %s` lists the flags",
                    inv->command->name, word, inv->command->name);
}

static int invocation_parse(struct invocation *inv, int argc, char **argv)
{
    const struct command *c = inv->command;
    struct words w = {argv, argc, 0};
    int status = 0;

    for (; w.at < argc && status == 0; w.at++) {
        const char *word = argv[w.at];
        if (strcmp(word, "--") == 0) {
            w.at++;
            break;
        }
        if (word[0] == '-' && word[1] == '-')
            status = invocation_parse_flag(inv, &w);
        else if (word[0] == '-' && word[1])
            status = invocation_parse_letter(inv, &w);
        else
            vec_push(&inv->args, word);
    }
    for (; w.at < argc && status == 0; w.at++)
        vec_push(&inv->args, argv[w.at]);
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
    int words = 1, status = EXIT_USAGE;

    if (argc < 2) {
        help_overview(table, stderr);
        return EXIT_USAGE;
    }
    if (is_help(argv[1])) {
        help_overview(table, stdout);
        return EXIT_DONE;
    }
    if (strcmp(argv[1], "--version") == 0)
        argv[1] += 2;
    inv.command = find_in_argv(table, argc, argv, &words, &status);
    if (!inv.command)
        return status;
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

int command_read_file(struct buf *out, const char *path, struct err *err)
{
    char piece[64 * 1024];
    ssize_t got;

    if (strcmp(path, "-") != 0)
        return file_read(path, out, err);
    while ((got = read(STDIN_FILENO, piece, sizeof(piece))) > 0)
        buf_append(out, piece, (size_t)got);
    return got < 0 ? err_set(err, ERR_IO, "the standard input cannot be read") : buf_error(out);
}
