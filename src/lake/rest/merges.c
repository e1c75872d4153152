/* Calls that merge other commits into a branch: merge, revert, cherry-pick. */
#include "lake/names.h"
#include "lake/rest/web.h"

#include <stdlib.h>

static rest_fn merge_into, merge_base_show, branch_revert, branch_cherry_pick;

static const struct rest_field merge_path[] = {
    WEB_REPO,
    {"sourceRef", "The ref whose changes are merged."},
    {"destinationBranch", "The branch that they are merged into."},
    {0},
};

#define OVERRIDE_FIELDS                                                                            \
    {                                                                                              \
        "commit_overrides", "Message and metadata instead of those that are made.", REST_OBJECT,   \
            .members = REST_FIELDS({"message", "The message."},                                    \
                                   {"metadata", "Further metadata.", REST_MAP})                    \
    }

static const struct rest_row merge_rows[] = {
    {HTTP_POST, "/api/v1/repositories/{repository}/refs/{sourceRef}/merge/{destinationBranch}",
     REST_USER,
     "Merges a ref into a branch. 409 names the paths that both sides changed, and nothing has "
     "changed then.",
     merge_into, WEB_OP("mergeIntoBranch"), .in_path = merge_path, .status = 200,
     .other_status = 409,
     .body = REST_FIELDS(
         {"message", "What the merge's commit says."},
         {"metadata", "Metadata of the commit.", REST_MAP},
         {"strategy", "The side that wins a conflict; default: conflicts are refused.",
          .choices = REST_CHOICES("", "dest-wins", "source-wins")},
         {"choices",
          "For single paths the side that wins a conflict, \"dest-wins\" or \"source-wins\"; not "
          "in "
          "lakeFS.",
          REST_MAP},
         {"force", "Also in a read-only repository, and without changes.", REST_BOOLEAN},
         {"allow_empty", "Commit also when nothing has changed.", REST_BOOLEAN},
         {"squash_merge", "The commit has one parent.", REST_BOOLEAN}),
     .answer = REST_FIELDS(
         {"reference", "The id of the merge's commit."},
         {"message", "Why it was refused.", .sometimes = true},
         {"conflicts", "Paths that both sides changed.", REST_STRINGS, .sometimes = true})},
    {HTTP_GET, "/api/v1/repositories/{repository}/refs/{sourceRef}/merge/{destinationBranch}",
     REST_USER, "The best common ancestor of two refs.", merge_base_show, WEB_OP("findMergeBase"),
     .in_path = merge_path,
     .answer = REST_FIELDS({"source_commit_id", "The commit of the source."},
                           {"destination_commit_id", "The commit of the destination."},
                           {"base_commit_id", "The common ancestor."})},
    {HTTP_POST, "/api/v1/repositories/{repository}/branches/{branch}/revert", REST_USER,
     "Undoes a commit by a new one.", branch_revert, WEB_OP("revertBranch"), WEB_IN_BRANCH,
     .status = 204,
     .body = REST_FIELDS(
         {"ref", "The commit to undo.", .required = true},
         {"parent_number", "Of a merge: the parent, from 1, whose side stays; otherwise 0.",
          REST_INTEGER, .required = true, .min = 0, .max = LAKE_PARENTS_MAX},
         OVERRIDE_FIELDS, {"force", "Also in a read-only repository.", REST_BOOLEAN},
         {"allow_empty", "Commit also when nothing has changed.", REST_BOOLEAN})},
    {HTTP_POST, "/api/v1/repositories/{repository}/branches/{branch}/cherry-pick", REST_USER,
     "Makes the changes of a commit again on a branch.", branch_cherry_pick, WEB_OP("cherryPick"),
     WEB_IN_BRANCH, .status = 201,
     .body =
         REST_FIELDS({"ref", "The commit whose changes are made.", .required = true},
                     {"parent_number", "Of a merge: the parent, from 1, to compare with.",
                      REST_INTEGER, .min = 0, .max = LAKE_PARENTS_MAX},
                     OVERRIDE_FIELDS, {"force", "Also in a read-only repository.", REST_BOOLEAN}),
     .answer = web_commit_fields},
};
const struct rest_table web_merge_rows = WEB_ROWS(merge_rows);

/* --- merge --- */

static enum tree_strategy merge_strategy(struct str name)
{
    return str_eq(name, STR("dest-wins"))     ? TREE_DEST_WINS
           : str_eq(name, STR("source-wins")) ? TREE_SOURCE_WINS
                                              : TREE_NO_STRATEGY;
}

static int merge_choice_order(const void *a, const void *b)
{
    const struct str_pair *x = a, *y = b;

    return str_cmp(x->key, y->key);
}

/* Reads the choices for single paths into *out, sorted by path. */
static int merge_read_choices(struct rest_call *c, struct str_pairs *out, struct err *err)
{
    const json_t *map = rest_json(c, "choices");
    const char *path;
    json_t *side;

    out->pairs = arena_array(c->arena, json_object_size(map) + 1, sizeof(*out->pairs));
    if (!out->pairs)
        return err_code(err, ERR_NO_MEMORY);
    json_object_foreach((json_t *)(uintptr_t)map, path, side)
    {
        struct str_pair choice = {str_z(path), str_z(json_string_value(side))};
        int code = lake_check_path(choice.key, err);
        if (code < 0)
            return code;
        if (merge_strategy(choice.value) == TREE_NO_STRATEGY)
            return err_set(err, ERR_INVALID, "a choice must be \"dest-wins\" or \"source-wins\"");
        out->pairs[out->count++] = choice;
    }
    qsort(out->pairs, out->count, sizeof(*out->pairs), merge_choice_order);
    return 0;
}

/* Returns the caller's choice for a path that both sides have changed. */
static enum tree_strategy merge_choose(void *ctx, struct str path)
{
    const struct str_pairs *choices = ctx;
    struct str_pair wanted = {.key = path};
    const struct str_pair *found = bsearch(&wanted, choices->pairs, choices->count,
                                           sizeof(*choices->pairs), merge_choice_order);

    return found ? merge_strategy(found->value) : TREE_NO_STRATEGY;
}

int web_merge_refuse(struct rest_call *c, const struct lake_conflicts *conflicts,
                     const struct err *err)
{
    rest_status(c, 409);
    json_out_member_str(c->w, "reference", STR(""));
    json_out_member_str(c->w, "message", str_z(err->text));
    json_out_key(c->w, "conflicts");
    json_out_open(c->w, '[');
    for (size_t i = 0; i < conflicts->count; i++)
        json_out_str(c->w, conflicts->paths[i]);
    json_out_close(c->w, ']');
    return 0;
}

static int merge_into(struct rest_call *c, struct err *err)
{
    struct str source = rest_text(c, "sourceRef"), dest = rest_text(c, "destinationBranch");
    struct str_pairs choices = {0};
    struct lake_merge_options o = {
        .message = rest_text(c, "message"),
        .committer = web_user(c)->name,
        .strategy = merge_strategy(rest_text(c, "strategy")),
        .choose = merge_choose,
        .ctx = &choices,
        .squash = rest_bool(c, "squash_merge"),
        .allow_empty = rest_bool(c, "allow_empty"),
        .force = rest_bool(c, "force"),
    };
    struct lake_conflicts conflicts = {0};
    struct lake_commit commit;
    struct lake_repo repo;
    int code = web_find_repo(c, &repo, err);

    if (code == 0)
        code = web_need_take(c, &repo, source, dest, err);
    if (code == 0)
        code = web_pairs(c, rest_json(c, "metadata"), &o.metadata, err);
    if (code == 0)
        code = merge_read_choices(c, &choices, err);
    if (code < 0)
        return code;
    code = lake_merge(web_of(c)->lake, c->arena, &repo, source, dest, &o, &commit, &conflicts, err);
    if (code == ERR_CONFLICT)
        return web_merge_refuse(c, &conflicts, err);
    if (code == 0)
        json_out_member_str(c->w, "reference", commit.id);
    return code;
}

static int merge_base_show(struct rest_call *c, struct err *err)
{
    struct str source = rest_text(c, "sourceRef"), dest = rest_text(c, "destinationBranch");
    struct lake *lake = web_of(c)->lake;
    struct lake_ref left = {0}, right = {0};
    struct lake_commit base = {0};
    struct lake_repo repo;
    int code = web_repo(c, (struct web_ask){S3_ACTION_LIST_BUCKET, dest, STR_EMPTY}, &repo, err);

    if (code == 0)
        code = web_need(c, &repo, (struct web_ask){S3_ACTION_LIST_BUCKET, source, STR_EMPTY}, err);
    if (code == 0)
        code = lake_ref_resolve(lake, c->arena, &repo, source, &left, err);
    if (code == 0)
        code = lake_ref_resolve(lake, c->arena, &repo, dest, &right, err);
    if (code == 0)
        code = lake_merge_base(lake, c->arena, &repo, left.commit_id, right.commit_id, &base, err);
    if (code < 0)
        return code;
    json_out_member_str(c->w, "source_commit_id", left.commit_id);
    json_out_member_str(c->w, "destination_commit_id", right.commit_id);
    json_out_member_str(c->w, "base_commit_id", base.id);
    return 0;
}

/* --- revert and cherry-pick --- */

static int pick_options(struct rest_call *c, struct lake_pick_options *out, struct err *err)
{
    const json_t *overrides = rest_json(c, "commit_overrides");

    *out = (struct lake_pick_options){
        .ref = rest_text(c, "ref"),
        .parent = (int)rest_integer(c, "parent_number"),
        .committer = web_user(c)->name,
        .message = json_get_str(overrides, "message", STR_EMPTY),
        .force = rest_bool(c, "force"),
    };
    const json_t *metadata = json_object_get(overrides, "metadata");
    return json_is_object(metadata) ? web_pairs(c, metadata, &out->metadata, err) : 0;
}

/* Checks that the caller may write to the branch and read the commit. */
static int pick_repo(struct rest_call *c, struct lake_repo *out, struct err *err)
{
    int code = web_find_repo(c, out, err);

    return code == 0 ? web_need_take(c, out, rest_text(c, "ref"), rest_text(c, "branch"), err)
                     : code;
}

/* Checks that the caller may put content of the commit's parents into the branch (web_need_take()),
 * because a revert restores the content of a parent. Then sets o->ref to the commit's id, so that
 * exactly this commit is reverted, even if the ref in the call changes meanwhile. */
static int revert_need_parents(struct rest_call *c, const struct lake_repo *repo,
                               struct lake_pick_options *o, struct err *err)
{
    struct lake *lake = web_of(c)->lake;
    struct lake_commit commit;
    struct lake_ref ref;
    int code = lake_ref_resolve(lake, c->arena, repo, o->ref, &ref, err);

    if (code == 0)
        code = lake_commit_get(lake, c->arena, repo, ref.commit_id, &commit, err);
    if (code == 0)
        o->ref = commit.id;
    for (size_t i = 0; code == 0 && i < commit.parent_count; i++)
        code = web_need_take(c, repo, commit.parents[i], rest_text(c, "branch"), err);
    return code;
}

/* Names the first conflicting paths in the error of a revert or a cherry-pick. Returns `code`. */
static int pick_name_conflicts(const struct lake_conflicts *conflicts, int code, struct err *err)
{
    enum { NAMED = 5, NAME_MAX_BYTES = 80 };
    struct buf paths = {0};

    if (code != ERR_CONFLICT || conflicts->count == 0)
        return code;
    for (size_t i = 0; i < conflicts->count && i < NAMED; i++)
        buf_appendf(&paths, "%s" STR_FMT, i ? ", " : "",
                    STR_ARG(str_head(conflicts->paths[i], NAME_MAX_BYTES)));
    code = err_set(err, code, "conflict found: the branch has other changes of " STR_FMT "%s",
                   STR_ARG(buf_str(&paths)), conflicts->count > NAMED ? " and further paths" : "");
    buf_release(&paths);
    return code;
}

static int branch_revert(struct rest_call *c, struct err *err)
{
    struct lake_conflicts conflicts = {0};
    struct lake_pick_options o;
    struct lake_commit commit;
    struct lake_repo repo;
    int code = pick_repo(c, &repo, err);

    if (code == 0)
        code = pick_options(c, &o, err);
    if (code == 0)
        code = revert_need_parents(c, &repo, &o, err);
    if (code < 0)
        return code;
    o.allow_empty = rest_bool(c, "allow_empty");
    code = lake_revert(web_of(c)->lake, c->arena, &repo, rest_text(c, "branch"), &o, &commit,
                       &conflicts, err);
    return pick_name_conflicts(&conflicts, code, err);
}

static int branch_cherry_pick(struct rest_call *c, struct err *err)
{
    struct lake_conflicts conflicts = {0};
    struct lake_pick_options o;
    struct lake_commit commit;
    struct lake_repo repo;
    int code = pick_repo(c, &repo, err);

    if (code == 0)
        code = pick_options(c, &o, err);
    if (code == 0)
        code = lake_cherry_pick(web_of(c)->lake, c->arena, &repo, rest_text(c, "branch"), &o,
                                &commit, &conflicts, err);
    if (code == 0)
        web_write_commit(c->w, &commit);
    return pick_name_conflicts(&conflicts, code, err);
}
