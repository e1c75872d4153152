/* The table of all commands. */
#include "cli/program.h"
#include "cli/commands.h"
#include "command/client.h"

static const struct flag json_flags[] = {
    {"json", FLAG_SWITCH, NULL, NULL, "Write JSON for programs instead of a table for people."},
    {0},
};

static const struct flag help_flags[] = {
    {"man", FLAG_SWITCH, NULL, NULL, "Write the man page (roff)."},
    {"completion", FLAG_SWITCH, NULL, NULL, "Write the completion script for bash."},
    {"commands", FLAG_SWITCH, NULL, NULL, "Write docs/commands.md."},
    {"keys", FLAG_SWITCH, NULL, NULL, "Write docs/config.md."},
    {"sample", FLAG_SWITCH, NULL, NULL, "Write a configuration file with every key."},
    {"api", FLAG_SWITCH, NULL, NULL, "Write docs/api.md."},
    {"openapi", FLAG_SWITCH, NULL, NULL, "Write the OpenAPI document of the API (JSON)."},
    {0},
};

static const struct command first_commands[] = {
    {.name = "serve",
     .configured = true,
     .summary = "Run weir",
     .help = "Runs weir with everything in one data folder. The first start makes the folder "
             "and the first administrator's keys. The keys are kept in the folder's file "
             "credentials, and shown once if the output is a terminal; access_key and "
             "secret_key set them.\n\nSIGTERM and SIGINT stop weir after running requests have"
             " finished; a second signal stops it at once. SIGHUP loads the configuration "
             "again.",
     .examples = "weir serve\n"
                 "weir serve --data /var/lib/weir --api.listen :9001\n"
                 "WEIR_LOG_LEVEL=debug weir serve --only gateway,worker",
     .run = command_serve},
    {.name = "status",
     .flags = client_flags,
     .configured = true,
     .summary = "Show the state of a running weir",
     .help = "Shows whether the parts of the running weir are ready, and a few numbers. The exit "
             "status is 1 when weir is not running or not ready.",
     .examples = "weir status\n"
                 "weir status --url https://weir.example.org:9001 --json",
     .run = command_status},
    {.name = "backup",
     .arguments = "DIR",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Copy all data of a running weir",
     .help = "Makes the new folder DIR, on the machine where weir runs, with a complete copy "
             "of its data as of now. Clients can write meanwhile. To restore, start weir on "
             "the copy. Data in Redis are not part of the copy.",
     .examples = "weir backup /backup/weir-monday\n"
                 "weir serve --data /backup/weir-monday",
     .run = command_backup},
    {0},
};

static const struct command last_commands[] = {
    {.name = "config",
     .flags = json_flags,
     .configured = true,
     .summary = "Show the configuration and where each value came from",
     .help = "Prints every configuration key with the value in force and its source: the built-in "
             "default, a line of the file, the environment or a flag. Secrets are masked.",
     .examples = "weir config\n"
                 "weir config --config /etc/weir/weir.yaml --json",
     .run = command_config},
    {.name = "help",
     .arguments = "[COMMAND]",
     .max_args = 3,
     .flags = help_flags,
     .summary = "Show the commands, or one of them",
     .help = "Lists the commands, or says all about one. With a flag it writes a page or a script "
             "that is made from the tables of commands, of keys and of the API's calls.",
     .examples = "weir help\n"
                 "weir help config\n"
                 "weir help --man | man -l -\n"
                 "weir help --openapi > weir.json",
     .run = command_help},
    {.name = "version",
     .summary = "Show the version",
     .help = "Prints the version of this program.",
     .run = command_version},
    {0},
};

/* The groups in the order of the help and the manual. The rooms' commands come between the two
 * lists. */
static const struct command *const groups_before[] = {
    first_commands,   user_commands,  storage_commands, bucket_commands,
    webhook_commands, store_commands, task_commands,    NULL};
static const struct command *const groups_behind[] = {last_commands, NULL};

/* The roles that belong to no room. */
static const char *const own_roles[] = {"gateway", "worker"};

static void add_groups(struct program *p, const struct command *const *groups)
{
    for (; groups && *groups; groups++)
        for (const struct command *c = *groups; c->name; c++)
            vec_push(&p->rows, *c);
}

static void list_roles(struct program *p, const struct room *const *rooms, size_t count)
{
    for (size_t i = 0; i < ARRAY_SIZE(own_roles); i++)
        vec_push(&p->roles, own_roles[i]);
    for (size_t i = 0; i < count; i++)
        if (rooms[i]->role)
            vec_push(&p->roles, rooms[i]->role);
    vec_push(&p->roles, NULL);
}

/* Makes the help of --only: "Run only these roles, of gateway, worker and tracker; default: all."
 */
static void describe_roles(struct program *p)
{
    size_t count = p->roles.len - 1;

    buf_append_z(&p->roles_doc, "Run only these roles, of ");
    for (size_t i = 0; i < count; i++)
        buf_appendf(&p->roles_doc, "%s%s",
                    i == 0           ? ""
                    : i + 1 == count ? " and "
                                     : ", ",
                    p->roles.items[i]);
    buf_append_z(&p->roles_doc, "; default: all.");
}

void program_init(struct program *p, const struct room *const *rooms, size_t count)
{
    *p = (struct program){0};
    list_roles(p, rooms, count);
    describe_roles(p);
    p->serve_flags[0] = (struct flag){.name = "only",
                                      .type = FLAG_CHOICES,
                                      .value = "ROLE,...",
                                      .choices = p->roles.items,
                                      .doc = p->roles_doc.p};
    add_groups(p, groups_before);
    for (size_t i = 0; i < count; i++)
        add_groups(p, rooms[i]->commands);
    add_groups(p, groups_behind);
    vec_each (&p->rows, struct command *, c)
        if (c->run == command_serve)
            c->flags = p->serve_flags;
    p->table = (struct command_table){p->rows.items, p->rows.len, rooms, count};
}

void program_release(struct program *p)
{
    vec_release(&p->rows);
    vec_release(&p->roles);
    buf_release(&p->roles_doc);
}
