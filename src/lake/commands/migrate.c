/* weir lake migrate: moves all repositories of a lakeFS whose records are in PostgreSQL. */
#include "lake/commands/cli.h"
#include "os/process.h"

#include <stdio.h>
#include <unistd.h>

#define MIGRATION_PATH "/api/v1/lake/migration"

static const struct flag migrate_flags[] = {
    {"owner", FLAG_TEXT, "USER", NULL, "The user who will own the repositories; default: you."},
    CLIENT_FLAGS,
    {0},
};

static const struct output_column migrate_columns[] = {{"repository"},
                                                       {"state"},
                                                       {"commits", .number = true},
                                                       {"tags", .number = true},
                                                       {"branches", .number = true},
                                                       {"staged", .number = true},
                                                       {"left", .number = true},
                                                       {"error"}};

static int migrate_start(struct api_client *r, const struct invocation *inv, struct err *err)
{
    struct lake_cli_body body;

    lake_cli_body_begin(&body);
    json_out_member_str(&body.w, "url", str_z(inv->args.items[0]));
    manage_flag(&body.w, inv, "owner", "owner");
    return lake_cli_send(r, "POST", MIGRATION_PATH, &body, NULL, err);
}

/* Shows the repository that is being moved, and how many rows were read. */
static void migrate_show_progress(const json_t *status)
{
    const json_t *repos = json_object_get(status, "repositories");
    size_t count = json_array_size(repos);
    const json_t *last = count ? json_array_get(repos, count - 1) : NULL;
    struct str name = json_get_str(last, "repository", STR_EMPTY);
    struct str state = json_get_str(last, "state", STR_EMPTY);

    fprintf(stderr, "\r%jd rows, " STR_FMT " " STR_FMT "\033[K",
            (intmax_t)json_get_i64(status, "rows", 0), STR_ARG(state), STR_ARG(name));
}

/* Waits for a moment. If a signal arrives, the first one only stops the migration; the second one
 * ends the command at once. */
static int migrate_wait(struct api_client *r, struct err *err)
{
    enum { MIGRATE_POLL_MS = 200 };

    if (process_signal_wait(MIGRATE_POLL_MS) == PROCESS_WOKEN)
        return 0;
    process_signals_release();
    return api_client_send(r, "DELETE", MIGRATION_PATH, NULL, NULL, err);
}

/* Waits until the migration has ended. *status is owned by the caller. */
static int migrate_follow(struct api_client *r, json_t **status, struct err *err)
{
    bool shows = isatty(STDERR_FILENO);
    int code;

    while ((code = api_client_send(r, "GET", MIGRATION_PATH, NULL, status, err)) == 0 &&
           json_get_bool(*status, "running", false)) {
        if (shows)
            migrate_show_progress(*status);
        json_decref(*status);
        *status = NULL;
        code = migrate_wait(r, err);
        if (code < 0)
            break;
    }
    if (shows)
        fprintf(stderr, "\r\033[K");
    return code;
}

/* Prints how many rows of the source the migration did not move, and which. */
static void migrate_show_lost(const json_t *status)
{
    static const struct {
        const char *member, *text;
    } lost[] = {
        {"orphan_rows", "staged rows whose token no branch has were left behind"},
        {"homeless_rows", "commits, branches and tags of no repository were left behind"},
        {"uploads", "uploads in parts were under way; they have to be made again"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(lost); i++)
        if (json_get_i64(status, lost[i].member, 0))
            fprintf(stderr, "%jd %s\n", (intmax_t)json_get_i64(status, lost[i].member, 0),
                    lost[i].text);
}

/* Adds a row for each repository. Returns an error if a repository failed. */
static int migrate_judge(const json_t *status, struct output *table, struct err *err)
{
    struct str error = json_get_str(status, "error", STR_EMPTY);
    json_t *repo;
    size_t i, failed = 0;

    json_array_foreach(json_object_get(status, "repositories"), i, repo)
    {
        failed += str_eq(json_get_str(repo, "state", STR_EMPTY), STR("failed"));
        manage_row(table, repo);
    }
    if (error.len)
        return err_set(err, ERR_PEER, STR_FMT, STR_ARG(error));
    return failed ? err_set(err, ERR_PEER, "%zu of %zu repositories were not moved", failed, i) : 0;
}

static int lake_migrate_run(struct api_client *r, const struct invocation *inv,
                            struct output *table, struct err *err)
{
    json_t *status = NULL;
    int code;

    process_signals_hold(); /* before a thread is started, so that none receives the signals */
    code = migrate_start(r, inv, err);

    if (code == 0)
        code = migrate_follow(r, &status, err);
    if (code == 0) {
        migrate_show_lost(status);
        code = migrate_judge(status, table, err);
    }
    json_decref(status);
    return code;
}

static const struct manage_call migrate_call = {MANAGE_COLUMNS(migrate_columns),
                                                .run = lake_migrate_run};

const struct command lake_migrate_commands[] = {
    {.name = "lake migrate",
     .arguments = "URL",
     .min_args = 1,
     .max_args = 1,
     .flags = migrate_flags,
     .configured = true,
     .summary = "Move in all repositories of a lakeFS older than 0.80",
     .help =
         "Reads the tables of lakeFS in the PostgreSQL database of URL, in one moment and without "
         "changing them, and makes a repository for each that is there. Everything is read again "
         "from both sides and compared before a repository appears. Their storage namespaces must "
         "be buckets that weir knows; objects and ranges stay where they are. A migration that "
         "was stopped, also by an interrupt of the command, goes on where it was when the command "
         "runs again. weir connects to the "
         "database itself; a password may be in its PGPASSFILE instead of in the URL.",
     .examples = "weir lake migrate postgres://lakefs@db.example.com/lakefs\n"
                 "weir lake migrate postgres://lakefs@db.example.com/lakefs --owner alice",
     .call = &migrate_call},
    {0},
};
