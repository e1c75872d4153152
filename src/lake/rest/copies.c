/* Calls that copy or move objects inside a repository. They write only entries; the bytes of the
 * objects stay in their place. */
#include "lake/keep.h"
#include "lake/lake_int.h"
#include "lake/names.h"
#include "lake/read.h"
#include "lake/rest/web.h"

static rest_fn object_copy;

static const struct rest_row copy_rows[] = {
    {HTTP_POST, "/api/v1/repositories/{repository}/branches/{branch}/objects/copy", REST_USER,
     "Copies an object of any ref of the repository, or moves one of the branch. No byte is moved.",
     object_copy, WEB_OP("copyObject"), WEB_IN_BRANCH, .status = 201,
     .query = REST_FIELDS({"dest_path", "The path of the copy.", .required = true}),
     .body = REST_FIELDS(
         {"src_path", "The path to copy.", .required = true},
         {"src_ref", "The ref to copy from; default: the branch."},
         {"move", "Remove the source, which is on the branch, in the same step.", REST_BOOLEAN},
         {"force", "Also in a read-only repository.", REST_BOOLEAN},
         {"shallow", "Has no effect: a copy moves no byte.", REST_BOOLEAN}),
     .answer = web_stats_fields},
};
const struct rest_table web_copy_rows = WEB_ROWS(copy_rows);

/* A copy or a move: its source, as it was read, and its destination. */
struct copy_job {
    struct lake_repo repo;
    struct str ref; /* ref of the source */
    struct lake_object from, to;
    bool force;
    struct object_conditions conditions; /* the caller's conditions on the destination of a move */
    bool is_late;                        /* the source of a move has changed since it was read */
};

/* Checks that the caller may copy, and reads the repository's record. */
static int copy_check(struct copy_job *j, struct rest_call *c, struct err *err)
{
    bool move = rest_bool(c, "move");
    struct str branch = rest_text(c, "branch"), path = rest_text(c, "src_path");
    int code = web_writable(c, j->to.path, j->force, &j->repo, err);

    j->ref = rest_text(c, "src_ref").len ? rest_text(c, "src_ref") : branch;
    if (code == 0 && move && !str_eq(j->ref, branch))
        code = err_set(err, ERR_INVALID, "only an object of the branch itself can be moved");
    if (code == 0 && move && str_eq(path, j->to.path))
        code = err_set(err, ERR_INVALID, "source and destination are the same path");
    if (code == 0 && move)
        code = web_need(c, &j->repo, (struct web_ask){S3_ACTION_DELETE_OBJECT, branch, path}, err);
    return code;
}

/* Called by lake_stage() for both paths of a move: checks the conditions on the destination, and
 * that the source has not changed since it was read. */
static int move_judge(void *ctx, struct str path, const struct lake_object *present,
                      struct err *err)
{
    struct copy_job *j = ctx;

    if (!str_eq(path, j->from.path))
        return web_judge_write(&j->conditions, path, present, err);
    j->is_late = !present || !lake_object_is_same(present, &j->from);
    return j->is_late ? err_set(err, ERR_CONFLICT, "the source was changed meanwhile") : 0;
}

/* Stages the new entry and the removal of the old entry, both in one step. */
static int move_stage(struct copy_job *j, struct rest_call *c, const struct lake_keep *keep,
                      struct err *err)
{
    struct lake_put puts[] = {{j->to.path, &j->to.entry}, {j->from.path, NULL}};
    struct lake_stage_options o = {.judge = move_judge, .ctx = j, .force = j->force, .keep = keep};

    return lake_stage(web_of(c)->lake, c->arena, &j->repo, rest_text(c, "branch"), puts,
                      ARRAY_SIZE(puts), &o, err);
}

/* Reads the source and stages the copy. */
static int copy_try(struct copy_job *j, struct rest_call *c, struct err *err)
{
    struct lake_keep keep;
    int code = lake_keep_begin(&keep, web_of(c)->lake, c->arena, &j->repo, err);

    j->is_late = false;
    if (code == 0)
        code = web_object(c, &j->repo, j->ref, rest_text(c, "src_path"), &j->from, err);
    if (code < 0)
        return code;
    j->to.entry = j->from.entry;
    j->to.entry.modified_ms = clock_wall_ms();
    if (rest_bool(c, "move"))
        return move_stage(j, c, &keep, err);
    return web_stage(c, &j->repo, &j->to,
                     (struct lake_stage_options){.keep = &keep, .force = j->force}, err);
}

static int object_copy(struct rest_call *c, struct err *err)
{
    struct copy_job j = {.to = {.path = rest_text(c, "dest_path")},
                         .force = rest_bool(c, "force"),
                         .conditions = web_conditions(c)};
    uint64_t deadline = clock_mono_ms() + LAKE_DEADLINE_MS;
    int code = copy_check(&j, c, err);

    if (code < 0)
        return code;
    do
        code = copy_try(&j, c, err);
    while (code < 0 && j.is_late && clock_mono_ms() < deadline);
    if (code == 0)
        web_write_stats(c, &j.repo, &j.to, &(struct web_stats_options){.metadata = true});
    return code;
}
