/* weir task: manages the background work of a running weir. */
#include "cli/commands.h"
#include "command/manage.h"

enum { LIST_DEFAULT = 1000 };

static const char *const states[] = {"pending",  "active",    "scheduled", "retry",
                                     "archived", "completed", NULL};

static const struct flag task_list_flags[] = {
    {"queue", FLAG_TEXT, "QUEUE", NULL, "Only tasks of this queue."},
    {"state", FLAG_CHOICES, "STATE", states, "Only tasks in this state."},
    {"limit", FLAG_TEXT, "N", NULL, "Show at most N tasks; default: 1000."},
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

/* --- list and show --- */

/* Adds a row for a task. The column "when" has the time until the task is due, in words. */
static int task_row(struct output *table, json_t *task)
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

/* The state of a listing. */
struct task_listing {
    struct api_client *client;
    const char *state; /* NULL: any state */
    struct output *table;
    size_t left; /* how many more tasks may be shown */
    bool more;   /* there are, or may be, more tasks */
};

static int task_list_queue(struct task_listing *l, const char *queue, struct err *err)
{
    struct buf path = BUF_INIT(64 * KIB);
    json_t *all = NULL, *task;
    size_t i;

    buf_append_z(&path, manage_path(l->client, "/api/v1/queues/", queue, "/tasks?limit=500"));
    manage_query(&path, "state", l->state);
    struct manage_list list = {.path = path.p, .name = "tasks", .max = l->left};
    int code = manage_pages(l->client, &list, &all, err);
    json_array_foreach(all, i, task) if (code == 0) code = task_row(l->table, task);
    l->left -= json_array_size(all);
    l->more = list.more;
    json_decref(all);
    buf_release(&path);
    return code;
}

static int task_list_queues(struct task_listing *l, struct err *err)
{
    struct manage_list list = {.path = "/api/v1/queues", .name = "queues"};
    json_t *all = NULL, *queue;
    size_t i;
    int code = manage_pages(l->client, &list, &all, err);

    json_array_foreach(all, i, queue)
    {
        const char *name = arena_z(&l->client->arena, json_get_str(queue, "name", STR_EMPTY));
        l->more = l->more || l->left == 0;
        if (code < 0 || l->more)
            break;
        code = name ? task_list_queue(l, name, err) : ERR_NO_MEMORY;
    }
    json_decref(all);
    return code;
}

static int task_list_run(struct api_client *r, const struct invocation *inv, struct output *table,
                         struct err *err)
{
    const char *limit = invocation_flag(inv, "limit"), *queue = invocation_flag(inv, "queue");
    struct task_listing l = {.client = r, .state = invocation_flag(inv, "state"), .table = table};
    uint64_t number = LIST_DEFAULT;

    if (limit && (str_u64(str_z(limit), &number) < 0 || number == 0))
        return err_set(err, ERR_INVALID, "--limit takes a number from 1 on, not '%s'", limit);
    if (l.state && strchr(l.state, ','))
        return err_set(err, ERR_INVALID, "--state takes one state");
    l.left = number;
    int code = queue ? task_list_queue(&l, queue, err) : task_list_queues(&l, err);
    if (code == 0 && l.more)
        complain(EXIT_DONE,
                 "task list: there are more tasks; choose with --limit, --queue and --state");
    return code;
}

static int task_show_run(struct api_client *r, const struct invocation *inv, struct output *table,
                         struct err *err)
{
    static const struct manage_call call = {"GET", "/api/v1/queues/{0}/tasks/{1}"};
    json_t *task = NULL;
    int code = manage_send(r, inv, &call, &task, err);

    if (code == 0)
        code = task_row(table, task);
    json_decref(task);
    return code;
}

/* --- the calls --- */

static const struct manage_call list = {MANAGE_COLUMNS(task_columns), .run = task_list_run};
static const struct manage_call show = {MANAGE_COLUMNS(show_columns), .run = task_show_run};
static const struct manage_call queues = {"GET", "/api/v1/queues", MANAGE_COLUMNS(queue_columns),
                                          .rows = "queues", .pages = true};
static const struct manage_call run = {"POST", "/api/v1/queues/{0}/tasks/{1}/run"};
static const struct manage_call cancel = {"POST", "/api/v1/queues/{0}/tasks/{1}/cancel"};
static const struct manage_call delete = {"DELETE", "/api/v1/queues/{0}/tasks/{1}"};
static const struct manage_call pause_queue = {"PUT", "/api/v1/queues/{0}/pause"};
static const struct manage_call resume = {"PUT", "/api/v1/queues/{0}/resume"};

const struct command task_commands[] = {
    {.name = "task list",
     .flags = task_list_flags,
     .configured = true,
     .summary = "List the tasks of the work queue",
     .help = "Lists the tasks of background work: those that wait, run, wait for their next try "
             "(retry), or failed for good (archived). Shows when each is due, its payload, and the "
             "error of its last try.",
     .examples =
         "weir task list --state archived\nweir task list --queue events1 --limit 20 --json",
     .call = &list},
    {.name = "task show",
     .arguments = "QUEUE ID",
     .min_args = 2,
     .max_args = 2,
     .flags = client_flags,
     .configured = true,
     .summary = "Show a task",
     .help = "Shows everything about one task.",
     .examples = "weir task show events1 0a1b2c3d",
     .call = &show},
    {.name = "task run",
     .arguments = "QUEUE ID",
     .min_args = 2,
     .max_args = 2,
     .flags = client_flags,
     .configured = true,
     .summary = "Run a task now",
     .help = "Runs a task now that waits for its time or its next try, or that failed for good.",
     .examples = "weir task run events1 0a1b2c3d",
     .call = &run},
    {.name = "task cancel",
     .arguments = "QUEUE ID",
     .min_args = 2,
     .max_args = 2,
     .flags = client_flags,
     .configured = true,
     .summary = "Give up a task that is running",
     .help = "Asks the worker that runs the task to give it up. The task is archived then; weir "
             "task run begins it again.",
     .examples = "weir task cancel api 0a1b2c3d",
     .call = &cancel},
    {.name = "task delete",
     .arguments = "QUEUE ID",
     .min_args = 2,
     .max_args = 2,
     .flags = client_flags,
     .configured = true,
     .summary = "Delete a task",
     .help = "Deletes a task that is not running. Its work is not done.",
     .examples = "weir task delete events1 0a1b2c3d",
     .call = &delete},
    {.name = "task queues",
     .flags = client_flags,
     .configured = true,
     .summary = "List the queues",
     .help = "Lists the queues with the number of tasks in each state, how many were processed and "
             "failed in all, and the age of the oldest task that waits for a worker.",
     .examples = "weir task queues",
     .call = &queues},
    {.name = "task pause",
     .arguments = "QUEUE",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Take no more tasks from a queue",
     .help = "Pauses the queue: workers take no more tasks from it until it is resumed. Tasks that "
             "run go on.",
     .examples = "weir task pause migrate_obj_copy1",
     .call = &pause_queue},
    {.name = "task resume",
     .arguments = "QUEUE",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Take tasks from a queue again",
     .help = "Undoes weir task pause.",
     .examples = "weir task resume migrate_obj_copy1",
     .call = &resume},
    {0},
};
