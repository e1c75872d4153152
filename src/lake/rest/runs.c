/* Calls that show the runs of hooks. */
#include "lake/actions.h"
#include "lake/rest/web.h"

static rest_fn run_page, run_show, hook_run_page, hook_run_output;

static const struct rest_field run_fields[] = {
    {"run_id", "The id of the run."},
    {"branch", "The branch or tag that the event was about."},
    {"commit_id", "The commit that the event was about."},
    {"event_type", "The event, such as \"pre-commit\"."},
    {"status", "\"completed\" or \"failed\"."},
    {"start_time", "When it began.", REST_TIME},
    {"end_time", "When it ended.", REST_TIME, .sometimes = true},
    {0},
};

static const struct rest_field hook_run_fields[] = {
    {"hook_run_id", "The id of the hook's run."},
    {"action", "The name of the action."},
    {"hook_id", "The id of the hook."},
    {"status", "\"completed\" (also if the hook was skipped) or \"failed\"."},
    {"start_time", "When it began.", REST_TIME},
    {"end_time", "When it ended.", REST_TIME, .sometimes = true},
    {0},
};

#define RUNS "/api/v1/repositories/{repository}/actions/runs"
#define RUN_FIELD                                                                                  \
    {                                                                                              \
        "run_id", "The id of the run."                                                             \
    }

static const struct rest_row run_rows[] = {
    {HTTP_GET, RUNS, REST_USER, "The runs of hooks, the newest first.", run_page,
     WEB_OP("listRepositoryRuns"), WEB_IN_REPO,
     .query = REST_FIELDS({"branch", "Only runs for this branch."},
                          {"commit", "Only runs for this commit."}),
     .list = "results", .by_source = true, .items = run_fields},
    {HTTP_GET, RUNS "/{run_id}", REST_USER, "One run.", run_show, WEB_OP("getRun"),
     .in_path = REST_FIELDS(WEB_REPO, RUN_FIELD), .answer = run_fields},
    {HTTP_GET, RUNS "/{run_id}/hooks", REST_USER, "The hooks of a run.", hook_run_page,
     WEB_OP("listRunHooks"), .in_path = REST_FIELDS(WEB_REPO, RUN_FIELD), .list = "results",
     .by_source = true, .items = hook_run_fields},
    {HTTP_GET, RUNS "/{run_id}/hooks/{hook_run_id}/output", REST_USER,
     "What a hook sent and was answered.", hook_run_output, WEB_OP("getRunHookOutput"),
     .in_path = REST_FIELDS(WEB_REPO, RUN_FIELD, {"hook_run_id", "The id of the hook's run."}),
     .media = "application/octet-stream"},
};
const struct rest_table web_run_rows = WEB_ROWS(run_rows);

static const struct web_ask may_see_runs = {S3_ACTION_LIST_BUCKET, {0}, {0}};

static void run_write_times(struct json_out *w, int64_t started_ms, int64_t ended_ms)
{
    rest_time(w, "start_time", started_ms);
    if (ended_ms)
        rest_time(w, "end_time", ended_ms);
}

static void run_write(struct json_out *w, const struct lake_run *r)
{
    json_out_member_str(w, "run_id", r->id);
    json_out_member_str(w, "branch", r->branch);
    json_out_member_str(w, "commit_id", r->commit_id);
    json_out_member_str(w, "event_type", r->event);
    json_out_member_str(w, "status", r->passed ? STR("completed") : STR("failed"));
    run_write_times(w, r->started_ms, r->ended_ms);
}

static int run_page(struct rest_call *c, struct err *err)
{
    struct lake_page page = {.after = rest_after(c), .limit = rest_limit(c)};
    struct lake_run_filter filter = {rest_text(c, "branch"), rest_text(c, "commit")};
    struct lake_run *runs = NULL;
    struct lake_repo repo;
    size_t count = 0;
    bool more = false;
    int code = web_repo(c, may_see_runs, &repo, err);

    if (code == 0)
        code = lake_run_list(web_of(c)->lake, c->arena, &repo, &page, &filter, &runs, &count, &more,
                             err);
    if (code < 0)
        return code;
    for (size_t i = 0; i < count; i++) {
        rest_row_begin(c);
        run_write(c->w, &runs[i]);
        rest_item_end(c);
    }
    rest_page_end(c, more, count ? runs[count - 1].id : STR_EMPTY);
    return 0;
}

static int run_show(struct rest_call *c, struct err *err)
{
    struct lake_repo repo;
    struct lake_run run;
    int code = web_repo(c, may_see_runs, &repo, err);

    if (code == 0)
        code = lake_run_get(web_of(c)->lake, c->arena, &repo, rest_text(c, "run_id"), &run, err);
    if (code == 0)
        run_write(c->w, &run);
    return code;
}

static void hook_run_write(struct json_out *w, const struct lake_hook_run *h)
{
    json_out_member_str(w, "hook_run_id", h->id);
    json_out_member_str(w, "action", h->action);
    json_out_member_str(w, "hook_id", h->hook);
    json_out_member_str(w, "status", h->passed || h->skipped ? STR("completed") : STR("failed"));
    run_write_times(w, h->started_ms, h->ended_ms);
}

static int hook_run_page(struct rest_call *c, struct err *err)
{
    struct lake_page page = {.after = rest_after(c), .limit = rest_limit(c)};
    struct lake_hook_run *runs = NULL;
    struct lake_repo repo;
    struct lake_run run;
    size_t count = 0;
    bool more = false;
    int code = web_repo(c, may_see_runs, &repo, err);

    if (code == 0)
        code = lake_run_get(web_of(c)->lake, c->arena, &repo, rest_text(c, "run_id"), &run, err);
    if (code == 0)
        code = lake_hook_run_list(web_of(c)->lake, c->arena, &repo, run.id, &page, &runs, &count,
                                  &more, err);
    if (code < 0)
        return code;
    for (size_t i = 0; i < count; i++) {
        rest_row_begin(c);
        hook_run_write(c->w, &runs[i]);
        rest_item_end(c);
    }
    rest_page_end(c, more, count ? runs[count - 1].id : STR_EMPTY);
    return 0;
}

static int hook_run_output(struct rest_call *c, struct err *err)
{
    struct lake_hook_run run;
    struct lake_repo repo;
    int code = web_repo(c, may_see_runs, &repo, err);

    if (code == 0)
        code = lake_hook_run_get(web_of(c)->lake, c->arena, &repo, rest_text(c, "run_id"),
                                 rest_text(c, "hook_run_id"), &run, err);
    return code == 0 ? rest_send(c, run.output) : code;
}
