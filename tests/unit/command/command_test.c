/* The command line over a table of the test's own: groups, flags, keys. */
#include "command/command.h"
#include "command/help.h"
#include "os/file.h"
#include "unit/test.h"

#include <stdio.h>

static const char *const colours[] = {"red", "green", NULL};
static const struct flag paint_flags[] = {
    {"colour", FLAG_CHOICES, "COLOUR", colours, "Which."},
    {"dry", FLAG_SWITCH, NULL, NULL, "Do nothing.", .letter = 'y'},
    {"out", FLAG_FILE, "FILE", NULL, "Where.", .letter = 'o'},
    {0},
};

/* What the command was called with. */
static struct {
    int calls;
    char args[64], colour[16], out[16], key[64];
    bool dry;
} seen;

static int record(struct invocation *inv)
{
    const char *colour = invocation_flag(inv, "colour"), *out = invocation_flag(inv, "out");
    struct buf args = BUF_INIT(sizeof(seen.args) - 1);

    seen.calls++;
    seen.dry = invocation_flag(inv, "dry");
    snprintf(seen.colour, sizeof(seen.colour), "%s", colour ? colour : "-");
    snprintf(seen.out, sizeof(seen.out), "%s", out ? out : "-");
    for (size_t i = 0; i < inv->args.len; i++)
        buf_appendf(&args, "[%s]", inv->args.items[i]);
    snprintf(seen.args, sizeof(seen.args), "%s", args.p ? args.p : "");
    if (inv->keys.len)
        snprintf(seen.key, sizeof(seen.key), STR_FMT "=" STR_FMT, STR_ARG(inv->keys.items[0].name),
                 STR_ARG(inv->keys.items[0].value));
    buf_release(&args);
    return 7;
}

static const struct command commands[] = {
    {.name = "paint",
     .arguments = "WALL...",
     .min_args = 1,
     .max_args = 3,
     .flags = paint_flags,
     .configured = true,
     .summary = "Paint",
     .help = "Paints.",
     .run = record},
    {.name = "user add",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .summary = "Add",
     .help = "Adds.",
     .run = record},
    {.name = "user list", .summary = "List", .help = "Lists.", .run = record},
    {.name = "use", .summary = "Use", .help = "Uses.", .run = record},
};
static const struct command_table table = {commands, ARRAY_SIZE(commands)};

/* "weir" and the words of `line`. */
static int run(const char *line)
{
    char words[256], *argv[16] = {words}, *at = words;
    int argc = 0;

    memset(&seen, 0, sizeof(seen));
    snprintf(words, sizeof(words), "weir %s", line);
    for (; at && *at && argc < 15; argc++) {
        argv[argc] = at;
        at = strchr(at, ' ');
        if (at)
            *at++ = '\0';
    }
    return cli_main(&table, argc, argv, NULL);
}

TEST(command, flags_may_stand_anywhere_and_join_their_value_or_not)
{
    CHECK_INT(run("paint north --colour=red,green --dry south --out x"), 7);
    CHECK_STR(str_z(seen.args), STR("[north][south]"));
    CHECK_STR(str_z(seen.colour), STR("red,green"));
    CHECK_STR(str_z(seen.out), STR("x"));
    CHECK(seen.dry);
    CHECK_INT(run("paint --out a --out=b -- --dry"), 7);
    CHECK_STR(str_z(seen.args), STR("[--dry]"));
    CHECK_STR(str_z(seen.out), STR("b"));
    CHECK(!seen.dry);
}

TEST(command, a_flag_may_be_a_letter)
{
    CHECK_INT(run("paint north -y -o x south"), 7);
    CHECK_STR(str_z(seen.args), STR("[north][south]"));
    CHECK_STR(str_z(seen.out), STR("x"));
    CHECK(seen.dry);
    CHECK_INT(run("paint north -ox --out=y"), 7);
    CHECK_STR(str_z(seen.out), STR("y"));
    CHECK_INT(run("paint - -o -"), 7);
    CHECK_STR(str_z(seen.args), STR("[-]"));
    CHECK_STR(str_z(seen.out), STR("-"));
    CHECK_INT(run("paint -- -y"), 7);
    CHECK(!seen.dry);
}

TEST(command, the_help_shows_letters)
{
    struct buf name = {0};

    help_flag_name(&name, &paint_flags[2]);
    CHECK_STR(buf_str(&name), STR("-o, --out FILE"));
    buf_reset(&name);
    help_flag_name(&name, &paint_flags[0]);
    CHECK_STR(buf_str(&name), STR("--colour COLOUR"));
    buf_release(&name);
}

TEST(command, keys_are_flags_of_commands_that_load_the_configuration)
{
    CHECK_INT(run("paint x --log.level debug"), 7);
    CHECK_STR(str_z(seen.key), STR("log.level=debug"));
    CHECK_INT(run("user list --log.level debug"), EXIT_USAGE);
    CHECK_INT(seen.calls, 0);
}

TEST(command, a_group_has_commands_of_two_words)
{
    CHECK_INT(run("user add anna"), 7);
    CHECK_STR(str_z(seen.args), STR("[anna]"));
    CHECK_INT(run("user list"), 7);
    CHECK_INT(run("use"), 7);
    CHECK_INT(run("user"), EXIT_USAGE);
    CHECK_INT(run("user ad"), EXIT_USAGE);
    CHECK_INT(run("user --help"), EXIT_DONE);
    CHECK_INT(run("user -h"), EXIT_DONE);
    CHECK_INT(run("user --dry"), EXIT_USAGE);
    CHECK_INT(seen.calls, 0);
}

TEST(command, wrong_use_runs_nothing)
{
    static const char *const lines[] = {
        "",
        "pant x",
        "paint",
        "paint a b c d",
        "paint x --dry=1",
        "paint x --out",
        "paint x -d",
        "paint x -yo",
        "paint x -o",
        "user add",
        "user list x",
        "paint x --colour blue",
        "paint x --colour red,",
    };
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        CHECK_INT(run(lines[i]), EXIT_USAGE);
        CHECK_INT(seen.calls, 0);
    }
}

TEST(command, completion_knows_groups)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    help_completion(&table, out);
    fclose(out);
    CHECK(strstr(text, "compgen -W \"paint user use\""));
    CHECK(strstr(text, "    \"user add \"*) words=\"--help\" ;;\n"));
    CHECK(
        strstr(text, "    \"paint \"*) words=\"--colour --dry --out --config $keys --help\" ;;\n"));
    CHECK(strstr(text, "[ \"$COMP_CWORD $command\" = \"2 user\" ] && words+=\" add\"\n"));
    free(text);
}

TEST(command, help_of_a_group_lists_its_commands_and_no_other)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    CHECK(help_group(&table, STR("user"), out));
    CHECK(!help_group(&table, STR("use"), out)); /* a command, and the beginning of a word */
    CHECK(!help_group(&table, STR("user add"), out));
    fclose(out);
    CHECK(strstr(text, "  user list  List\n"));
    CHECK(!strstr(text, "  paint"));
    free(text);
}

TEST(command, a_file_that_is_called_minus_is_the_standard_input)
{
    char path[256];
    struct buf text = {0};
    struct err err = {0};

    snprintf(path, sizeof(path), "%s/text", test_dir());
    CHECK_OK(file_write_durable(path, STR("from a file"), 0600, &err));
    CHECK_OK(command_read_file(&text, path, &err));
    CHECK_STR(buf_str(&text), STR("from a file"));
    CHECK_OK(file_write_durable(path, STR(", from the input"), 0600, &err));
    CHECK(freopen(path, "r", stdin));
    CHECK_OK(command_read_file(&text, "-", &err));
    CHECK_STR(buf_str(&text), STR("from a file, from the input"));
    snprintf(path, sizeof(path), "%s/absent", test_dir());
    CHECK_INT(command_read_file(&text, path, &err), ERR_NOT_FOUND);
    buf_release(&text);
}
