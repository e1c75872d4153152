/* weir help and weir version. */
#include "api/describe.h"
#include "command/help.h"
#include "cli/commands.h"

static const struct generator {
    const char *flag;
    help_writer_fn *write;
} generators[] = {
    {"man", help_man},
    {"completion", help_completion},
    {"commands", help_commands},
    {"keys", help_keys},
    {"sample", help_sample},
    {"api", api_write_page},
    {"openapi", api_write_openapi},
};

int command_help(struct invocation *inv)
{
    struct buf name = BUF_INIT(4096);
    const struct command *c;
    int status = EXIT_DONE;

    for (size_t i = 0; i < ARRAY_SIZE(generators); i++) {
        if (invocation_flag(inv, generators[i].flag)) {
            generators[i].write(inv->table, stdout);
            return EXIT_DONE;
        }
    }
    if (inv->args.len == 0) {
        help_overview(inv->table, stdout);
        return EXIT_DONE;
    }
    for (size_t i = 0; i < inv->args.len; i++)
        buf_appendf(&name, "%s%s", i ? " " : "", inv->args.items[i]);
    c = command_find(inv->table, buf_str(&name));
    if (c)
        help_command(c, stdout);
    else if (!help_group(inv->table, buf_str(&name), stdout))
        status = command_unknown(inv->table, buf_str(&name));
    buf_release(&name);
    return status;
}

int command_version(struct invocation *inv)
{
    (void)inv;
    printf("weir %s\n", WEIR_VERSION);
    return EXIT_DONE;
}
