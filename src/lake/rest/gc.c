/* Calls about garbage collection: its rules, as in lakeFS's API, and its runs, which lakeFS's API
 * does not have. */
#include "lake/claim.h"
#include "lake/gc.h"
#include "lake/rest/web.h"
#include "lake/tasks.h"

#include <stdlib.h>

static rest_fn gc_rules_show, gc_rules_set, gc_rules_drop, gc_preflight, gc_run_begin, gc_run_show,
    gc_claim_take;

static const struct rest_field gc_rules_fields[] = {
    {"default_retention_days", "Days for branches without a rule of their own.", REST_INTEGER,
     .required = true, .min = 0, .max = LAKE_GC_DAYS_MAX},
    {"branches", "Rules of branches.", REST_OBJECTS, .required = true, .max = LAKE_GC_BRANCHES_MAX,
     .members = REST_FIELDS({"branch_id", "The branch.", .required = true, .min = 1},
                            {"retention_days", "Days that its commits are kept.", REST_INTEGER,
                             .required = true, .min = 0, .max = LAKE_GC_DAYS_MAX})},
    {0},
};
static const struct rest_field gc_rules_answer[] = {
    {"default_retention_days", "Days for branches without a rule of their own.", REST_INTEGER},
    {"branches", "Rules of branches.", REST_OBJECTS,
     .members = REST_FIELDS({"branch_id", "The branch."},
                            {"retention_days", "Days that its commits are kept.", REST_INTEGER})},
    {0},
};

static const struct rest_field gc_report_fields[] = {
    {"run", "The id of the run; empty: there was none yet."},
    {"stage", "\"never\", \"asked\", \"marking\", \"removing\", \"done\" or \"failed\"."},
    {"mark_only", "Does the run only find what could be removed?", REST_BOOLEAN},
    {"started", "When the run began.", REST_TIME},
    {"updated", "When this report was written.", REST_TIME},
    {"cutoff", "Files that are younger are left alone.", REST_TIME},
    {"commits_expired", "Commits that expired in this run.", REST_INTEGER},
    {"bodies_listed", "Bodies of objects that were looked at.", REST_INTEGER},
    {"bodies_dead", "Bodies that no ref leads to.", REST_INTEGER},
    {"bodies_dead_bytes", "Their size in bytes.", REST_INTEGER},
    {"bodies_removed", "Bodies that were removed.", REST_INTEGER},
    {"nodes_listed", "Files of trees that were looked at.", REST_INTEGER},
    {"nodes_dead", "Files of trees that no ref leads to.", REST_INTEGER},
    {"nodes_dead_bytes", "Their size in bytes.", REST_INTEGER},
    {"nodes_removed", "Files of trees that were removed.", REST_INTEGER},
    {"error", "Why the last try of the run failed or has to wait; empty: it did not."},
    {0},
};

#define GC_SHOW  "How many days the commits of each branch are kept."
#define GC_SET   "Sets how many days the commits of each branch are kept."
#define GC_DROP  "Removes the rules: every commit is kept."
#define GC_RULES "/api/v1/repositories/{repository}/settings/gc_rules"
#define GC_OLD   "/api/v1/repositories/{repository}/gc/rules"
#define GC_RUN   "/api/v1/repositories/{repository}/gc/run"
#define GC_CLAIM "/api/v1/repositories/{repository}/gc/claim"

static const struct rest_row gc_rows[] = {
    {HTTP_GET, GC_RULES, REST_USER, GC_SHOW, gc_rules_show, WEB_OP("getGCRules"), WEB_IN_REPO,
     .answer = gc_rules_answer},
    {HTTP_PUT, GC_RULES, REST_USER, GC_SET, gc_rules_set, WEB_OP("setGCRules"), WEB_IN_REPO,
     .status = 204, .body = gc_rules_fields},
    {HTTP_DELETE, GC_RULES, REST_USER, GC_DROP, gc_rules_drop, WEB_OP("deleteGCRules"), WEB_IN_REPO,
     .status = 204},
    {HTTP_GET, GC_OLD, REST_USER, GC_SHOW, gc_rules_show,
     WEB_OP("internalGetGarbageCollectionRules"), WEB_IN_REPO, .answer = gc_rules_answer},
    {HTTP_POST, GC_OLD, REST_USER, GC_SET, gc_rules_set,
     WEB_OP("internalSetGarbageCollectionRules"), WEB_IN_REPO, .status = 204,
     .body = gc_rules_fields},
    {HTTP_DELETE, GC_OLD, REST_USER, GC_DROP, gc_rules_drop,
     WEB_OP("internalDeleteGarbageCollectionRules"), WEB_IN_REPO, .status = 204},
    {HTTP_GET, GC_OLD "/set_allowed", REST_USER, "204 when the caller may set the rules.",
     gc_preflight, WEB_OP("setGarbageCollectionRulesPreflight"), WEB_IN_REPO, .status = 204},
    {HTTP_POST, GC_RUN, REST_USER,
     "Asks for a collection. It is not part of lakeFS's API. 429 while another one is under way.",
     gc_run_begin, WEB_OP("weirRunCollection"), WEB_IN_REPO, .status = 202,
     .body = REST_FIELDS(
         {"mark_only", "Find what could be removed, and remove nothing.", REST_BOOLEAN}),
     .answer = gc_report_fields},
    {HTTP_GET, GC_RUN, REST_USER,
     "What the last collection did, or has done so far. It is not part of lakeFS's API.",
     gc_run_show, WEB_OP("weirShowCollection"), WEB_IN_REPO, .answer = gc_report_fields},
    {HTTP_POST, GC_CLAIM, REST_USER,
     "Says that this lake alone uses the repository's namespace, so that it may remove files "
     "there; "
     "for administrators. It is not part of lakeFS's API.",
     gc_claim_take, WEB_OP("weirTakeClaim"), WEB_IN_REPO, .status = 204},
};
const struct rest_table web_gc_rows = WEB_ROWS(gc_rows);

static const struct web_ask gc_may_set = {S3_ACTION_PUT_LIFECYCLE_CONFIGURATION, {0}, {0}},
                            gc_may_show = {S3_ACTION_LIST_BUCKET, {0}, {0}};

static int gc_rules_show(struct rest_call *c, struct err *err)
{
    struct lake_gc_rules rules = {0};
    struct lake_repo repo;
    int code = web_repo(c, gc_may_show, &repo, err);

    if (code == 0)
        code = lake_gc_rules_get(web_of(c)->lake, c->arena, &repo, &rules, err);
    if (code < 0)
        return code;
    json_out_member_u64(c->w, "default_retention_days", rules.default_days);
    json_out_key(c->w, "branches");
    json_out_open(c->w, '[');
    for (size_t i = 0; i < rules.count; i++) {
        json_out_open(c->w, '{');
        json_out_member_str(c->w, "branch_id", rules.branches[i].branch);
        json_out_member_u64(c->w, "retention_days", rules.branches[i].days);
        json_out_close(c->w, '}');
    }
    json_out_close(c->w, ']');
    return 0;
}

static int gc_branch_order(const void *a, const void *b)
{
    const struct lake_gc_branch_rule *x = a, *y = b;

    return str_cmp(x->branch, y->branch);
}

static int gc_read_rules(struct rest_call *c, struct lake_gc_rules *out, struct err *err)
{
    const json_t *list = rest_json(c, "branches"), *item;
    size_t i;

    out->default_days = (uint32_t)rest_integer(c, "default_retention_days");
    out->branches = arena_array(c->arena, json_array_size(list) + 1, sizeof(*out->branches));
    if (!out->branches)
        return err_code(err, ERR_NO_MEMORY);
    json_array_foreach(list, i, item)
    {
        out->branches[out->count++] =
            (struct lake_gc_branch_rule){json_get_str(item, "branch_id", STR_EMPTY),
                                         (uint32_t)json_get_i64(item, "retention_days", 0)};
    }
    qsort(out->branches, out->count, sizeof(*out->branches), gc_branch_order);
    for (i = 1; i < out->count; i++)
        if (str_eq(out->branches[i - 1].branch, out->branches[i].branch))
            return err_set(err, ERR_INVALID, "a branch has two rules");
    return 0;
}

static int gc_rules_set(struct rest_call *c, struct err *err)
{
    struct lake_gc_rules rules = {0};
    struct lake_repo repo;
    int code = web_repo(c, gc_may_set, &repo, err);

    if (code == 0)
        code = gc_read_rules(c, &rules, err);
    return code == 0 ? lake_gc_rules_set(web_of(c)->lake, c->arena, &repo, &rules, err) : code;
}

static int gc_rules_drop(struct rest_call *c, struct err *err)
{
    struct lake_repo repo;
    int code = web_repo(c, gc_may_set, &repo, err);

    return code == 0 ? lake_gc_rules_delete(web_of(c)->lake, c->arena, &repo, err) : code;
}

static int gc_preflight(struct rest_call *c, struct err *err)
{
    struct lake_repo repo;

    return web_repo(c, gc_may_set, &repo, err);
}

/* --- runs --- */

static void gc_write_report(struct json_out *w, const struct lake_gc_report *r)
{
    static const char *const stages[] = {
        [LAKE_GC_NEVER] = "never",       [LAKE_GC_ASKED] = "asked", [LAKE_GC_MARKING] = "marking",
        [LAKE_GC_REMOVING] = "removing", [LAKE_GC_DONE] = "done",   [LAKE_GC_FAILED] = "failed",
    };

    json_out_member_str(w, "run", r->run);
    json_out_member_str(w, "stage", str_z(stages[r->stage]));
    json_out_member_bool(w, "mark_only", r->mark_only);
    rest_time(w, "started", r->started_ms);
    rest_time(w, "updated", r->updated_ms);
    rest_time(w, "cutoff", r->cutoff_ms);
    json_out_member_u64(w, "commits_expired", r->commits_expired);
    json_out_member_u64(w, "bodies_listed", r->bodies_listed);
    json_out_member_u64(w, "bodies_dead", r->bodies_dead);
    json_out_member_u64(w, "bodies_dead_bytes", r->bodies_dead_bytes);
    json_out_member_u64(w, "bodies_removed", r->bodies_removed);
    json_out_member_u64(w, "nodes_listed", r->nodes_listed);
    json_out_member_u64(w, "nodes_dead", r->nodes_dead);
    json_out_member_u64(w, "nodes_dead_bytes", r->nodes_dead_bytes);
    json_out_member_u64(w, "nodes_removed", r->nodes_removed);
    json_out_member_str(w, "error", r->error);
}

static int gc_run_begin(struct rest_call *c, struct err *err)
{
    struct lake_gc_report report;
    struct lake_repo repo;
    struct err late = {0};
    int code = web_repo(c, gc_may_set, &repo, err), added = 0;

    if (code == 0)
        code =
            lake_gc_ask(web_of(c)->lake, c->arena, &repo, rest_bool(c, "mark_only"), &report, err);
    if (code == 0)
        code = lake_task_add_gc(web_of(c)->services->queue, &repo, err);
    else if (code == ERR_BUSY) /* a run is under way; its task may be lost, so it is added again */
        added = lake_task_add_gc(web_of(c)->services->queue, &repo, &late);
    if (added < 0)
        return err_set(err, added, "%s", late.text);
    if (code == 0)
        gc_write_report(c->w, &report);
    return code;
}

static int gc_claim_take(struct rest_call *c, struct err *err)
{
    struct lake_repo repo;
    int code = web_need_admin(c, err);

    if (code == 0)
        code = web_repo(c, gc_may_set, &repo, err);
    return code == 0 ? lake_claim_take(web_of(c)->lake, &repo, err) : code;
}

static int gc_run_show(struct rest_call *c, struct err *err)
{
    struct lake_gc_report report;
    struct lake_repo repo;
    int code = web_repo(c, gc_may_show, &repo, err);

    if (code == 0)
        code = lake_gc_report(web_of(c)->lake, c->arena, &repo, &report, err);
    if (code == 0)
        gc_write_report(c->w, &report);
    return code;
}
