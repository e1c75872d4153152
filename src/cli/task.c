/* weir task: the background work of a running weir. */
#include "cli/commands.h"
#include "command/manage.h"

enum { LIST_DEFAULT = 1000, PAGE = 500 };

static const char *const states[] = {"pending",  "active",    "scheduled", "retry",
                                     "archived", "completed", NULL};

static const struct flag task_list_flags[] = {
    {"queue", FLAG_TEXT, "QUEUE", NULL, "Of this queue alone."},
    {"state", FLAG_CHOICES, "STATE", states, "In this state alone."},
    {"limit", FLAG_TEXT, "N", NULL, "Show at most so many; default: 1000."},
    CLIENT_FLAGS,
    {0},
};

static const struct output_column queue_columns[] = {
    {"name"},
    {"paused"},
    {"pending", .number = true},
    {"active", .number = true},
    {"scheduled", .number = true},
    {"retry", .number = true},
    {"archived", .number = true},
    {"completed", .number = true},
    {"processed", .number = true},
    {"failed", .number = true},
    {"latency_ms", .number = true},
};

static const struct output_column task_columns[] = {
    {"queue"},
    {"id"},
    {"type"},
    {"state"},
    {"tries", .number = true},
    {"due"},
    {"when"},
    {"error"},
    {"payload", .json = true},
};

static const struct output_column show_columns[] = {
    {"queue"},
    {"id"},
    {"type"},
    {"state"},
    {"tries", .number = true},
    {"max_tries", .number = true},
    {"due"},
    {"when"},
    {"failed_at"},
    {"error"},
    {"payload", .json = true},
};

/* --- list --- */

struct listing {
    struct api_client *remote;
    struct output *table;
    const char *queue, *state;
    size_t left; /* rows that may still be shown */
    bool cut;
};

/* "when": how far from now it is due, for people. */
static int add_task(struct output *table, json_t *task)
{
    int64_t seconds = json_get_i64(task, "due_in_s", 0);
    struct buf text = {0};
    int code = 0;

    if (json_get_str(task, "due", STR_EMPTY).len)
        manage_span(&text, seconds);
    if (json_object_set_new(task, "when", json_string(text.p ? text.p : "")) < 0)
        code = ERR_NO_MEMORY;
    if (code == 0)
        manage_row(table, task);
    buf_release(&text);
    return code;
}

/* One page; *got: how many tasks it had. */
static int list_page(struct listing *l, const char *queue, size_t skip, size_t *got,
                     struct err *err)
{
    size_t limit = size_min(PAGE, l->left + 1);
    const char *tail = arena_fmt(&l->remote->arena, "/tasks?state=%s&skip=%zu&limit=%zu",
                                 l->state ? l->state : "", skip, limit)
                           .p;
    json_t *answer = NULL, *task;
    size_t i;
    int code = api_client_send(l->remote, &answer, "GET",
                               manage_path(l->remote, "/api/v1/queues/", queue, tail), NULL, err);

    *got = json_array_size(json_object_get(answer, "tasks"));
    json_array_foreach(json_object_get(answer, "tasks"), i, task)
    {
        l->cut = l->left == 0;
        if (l->cut || code < 0)
            break;
        code = add_task(l->table, task);
        l->left--;
    }
    json_decref(answer);
    return code;
}

static int list_queue(struct listing *l, const char *queue, struct err *err)
{
    size_t got = 1;
    int code = 0;

    for (size_t skip = 0; code == 0 && got > 0 && !l->cut; skip += got)
        code = list_page(l, queue, skip, &got, err);
    return code;
}

static int list_all(struct listing *l, struct err *err)
{
    json_t *answer = NULL, *queue;
    size_t i;
    int code = api_client_send(l->remote, &answer, "GET", "/api/v1/queues", NULL, err);

    if (code == 0)
        json_array_foreach(json_object_get(answer, "queues"), i, queue)
        {
            struct str name = json_get_str(queue, "name", STR_EMPTY);
            if (code == 0 && !l->cut)
                code = list_queue(l, arena_z(&l->remote->arena, name), err);
        }
    json_decref(answer);
    return code;
}

static int run_list(struct api_client *r, const struct invocation *inv, struct output *table,
                    struct err *err)
{
    const char *limit = invocation_flag(inv, "limit");
    struct listing l = {
        r,    table, invocation_flag(inv, "queue"), invocation_flag(inv, "state"), LIST_DEFAULT,
        false};
    uint64_t number = LIST_DEFAULT;

    if (limit && (str_u64(str_z(limit), &number) < 0 || number == 0))
        return err_set(err, ERR_INVALID, "--limit takes a number from 1 on, not '%s'", limit);
    if (l.state && strchr(l.state, ','))
        return err_set(err, ERR_INVALID, "--state takes one state");
    l.left = number;
    int code = l.queue ? list_queue(&l, l.queue, err) : list_all(&l, err);
    if (code == 0 && l.cut)
        complain(EXIT_DONE, "task list: there are more; --limit, --queue and --state choose");
    return code;
}

/* --- the others --- */

static int run_show(struct api_client *r, const struct invocation *inv, struct output *table,
                    struct err *err)
{
    const char *tail = manage_path(r, "/tasks/", inv->args.items[1], "");
    json_t *task = NULL;
    int code = api_client_send(
        r, &task, "GET", manage_path(r, "/api/v1/queues/", inv->args.items[0], tail), NULL, err);

    if (code == 0)
        code = add_task(table, task);
    json_decref(task);
    return code;
}

static const struct manage_call list = {MANAGE_COLUMNS(task_columns), .run = run_list};
static const struct manage_call show = {MANAGE_COLUMNS(show_columns), .run = run_show};
static const struct manage_call queues = {"GET", "/api/v1/queues", MANAGE_COLUMNS(queue_columns),
                                          .rows = "queues"};
static const struct manage_call run = {"POST", "/api/v1/queues/{0}/tasks/{1}/run"};
static const struct manage_call cancel = {"POST", "/api/v1/queues/{0}/tasks/{1}/cancel"};
static const struct manage_call delete = {"DELETE", "/api/v1/queues/{0}/tasks/{1}"};
static const struct manage_call pause_queue = {"PUT", "/api/v1/queues/{0}/pause"};
static const struct manage_call resume = {"PUT", "/api/v1/queues/{0}/resume"};

static int command_task_list(struct invocation *inv)
{
    return manage(inv, &list);
}

static int command_task_show(struct invocation *inv)
{
    return manage(inv, &show);
}

static int command_task_queues(struct invocation *inv)
{
    return manage(inv, &queues);
}

static int command_task_run(struct invocation *inv)
{
    return manage(inv, &run);
}

static int command_task_cancel(struct invocation *inv)
{
    return manage(inv, &cancel);
}

static int command_task_delete(struct invocation *inv)
{
    return manage(inv, &delete);
}

static int command_task_pause(struct invocation *inv)
{
    return manage(inv, &pause_queue);
}

static int command_task_resume(struct invocation *inv)
{
    return manage(inv, &resume);
}

const struct command task_commands[] = {
    {.name = "task list",
     .flags = task_list_flags,
     .configured = true,
     .summary = "List the tasks of the work queue",
     .help = "Lists what background work waits, runs, waits for its next try (retry), or was given "
             "up (archived), with the error of the last try, when it is due, and what it is about.",
     .examples =
         "weir task list --state archived\nweir task list --queue events1 --limit 20 --json",
     .run = command_task_list},
    {.name = "task show",
     .arguments = "QUEUE ID",
     .min_args = 2,
     .max_args = 2,
     .flags = client_flags,
     .configured = true,
     .summary = "Show a task",
     .help = "Shows everything about one task.",
     .examples = "weir task show events1 0a1b2c3d",
     .run = command_task_show},
    {.name = "task run",
     .arguments = "QUEUE ID",
     .min_args = 2,
     .max_args = 2,
     .flags = client_flags,
     .configured = true,
     .summary = "Run a task now",
     .help = "Makes a task that waits for its time or its next try, or that was given up, the next "
             "one to run.",
     .examples = "weir task run events1 0a1b2c3d",
     .run = command_task_run},
    {.name = "task cancel",
     .arguments = "QUEUE ID",
     .min_args = 2,
     .max_args = 2,
     .flags = client_flags,
     .configured = true,
     .summary = "Give up a task that is running",
     .help = "Asks the worker that runs the task to give it up; it is archived then, and weir task "
             "run begins it again.",
     .examples = "weir task cancel api 0a1b2c3d",
     .run = command_task_cancel},
    {.name = "task delete",
     .arguments = "QUEUE ID",
     .min_args = 2,
     .max_args = 2,
     .flags = client_flags,
     .configured = true,
     .summary = "Delete a task",
     .help = "Deletes a task that is not running. What it was to do is not done.",
     .examples = "weir task delete events1 0a1b2c3d",
     .run = command_task_delete},
    {.name = "task queues",
     .flags = client_flags,
     .configured = true,
     .summary = "List the queues",
     .help = "Lists the queues with the number of tasks in each state, how many were processed and "
             "failed in all, and the age of the oldest task that waits for a worker.",
     .examples = "weir task queues",
     .run = command_task_queues},
    {.name = "task pause",
     .arguments = "QUEUE",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Take no more tasks from a queue",
     .help = "Tasks that run go on; others wait until the queue is resumed.",
     .examples = "weir task pause migrate_obj_copy1",
     .run = command_task_pause},
    {.name = "task resume",
     .arguments = "QUEUE",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Take tasks from a queue again",
     .help = "Undoes weir task pause.",
     .examples = "weir task resume migrate_obj_copy1",
     .run = command_task_resume},
    {0},
};
