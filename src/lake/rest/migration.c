/* Calls that lakeFS does not have, for administrators: begin, show and stop the migration from an
 * old lakeFS. */
#include "lake/mover.h"
#include "lake/rest/web.h"
#include "lake/room.h"

static rest_fn migration_begin, migration_show, migration_stop;

#define MIGRATION_PATH "/api/v1/lake/migration"

static const struct rest_field migration_repo_fields[] = {
    {"repository", "The repository's name."},
    {"state", "\"copying\", \"comparing\", \"done\", \"present\" (an earlier run moved it) or "
              "\"failed\"."},
    {"commits", "Commits that were compared.", REST_INTEGER},
    {"tags", "Tags that were compared.", REST_INTEGER},
    {"branches", "Branches that were compared.", REST_INTEGER},
    {"staged", "Staged rows that were compared.", REST_INTEGER},
    {"left", "Staged rows that were left behind, because their path is empty or too long.",
     REST_INTEGER},
    {"error", "Why it failed; empty: it did not."},
    {0},
};

static const struct rest_row migration_rows[] = {
    {HTTP_POST, MIGRATION_PATH, REST_USER,
     "Begins the migration of all repositories of a lakeFS older than 0.80, or goes on with it, "
     "for "
     "administrators. It is not part of lakeFS's API. 429 while one is under way.",
     migration_begin, WEB_OP("weirBeginMigration"), .status = 202,
     .body = REST_FIELDS({"url", "The database: postgres://user:password@host/database.",
                          .required = true, .min = 1, .max = 4096, .secret = true},
                         {"owner", "The name of the user who will own the repositories; default: "
                                   "the caller."}),
     .answer = REST_FIELDS({"*", "Nothing.", .sometimes = true})},
    {HTTP_GET, MIGRATION_PATH, REST_USER,
     "How far the migration is, for administrators. It is not part of lakeFS's API.",
     migration_show, WEB_OP("weirShowMigration"),
     .answer = REST_FIELDS(
         {"running", "Is it under way?", REST_BOOLEAN},
         {"rows", "Rows of the source that were read.", REST_INTEGER},
         {"uploads", "Uploads in parts that were under way in the source.", REST_INTEGER},
         {"orphan_tokens", "Staging tokens that no branch has.", REST_INTEGER},
         {"orphan_rows", "Their rows, which are left behind.", REST_INTEGER},
         {"homeless_rows", "Commits, branches and tags of no repository, which are left behind.",
          REST_INTEGER},
         {"error", "Why the migration ended; empty: it did not fail."},
         {"repositories", "The repositories so far.", REST_OBJECTS,
          .members = migration_repo_fields})},
    {HTTP_DELETE, MIGRATION_PATH, REST_USER,
     "Stops the migration soon, for administrators. It is not part of lakeFS's API.",
     migration_stop, WEB_OP("weirStopMigration"), .status = 204},
};
const struct rest_table web_migration_rows = WEB_ROWS(migration_rows);

static struct lake_mover *migration_of(const struct rest_call *c)
{
    struct lake_room *room = c->ctx;

    return room->mover;
}

/* Gets the id of the user who will own the repositories. */
static int migration_owner(struct rest_call *c, struct str *id, struct err *err)
{
    struct str name = rest_text(c, "owner");
    struct user user;

    *id = web_user(c)->id;
    if (!name.len)
        return 0;
    int code = users_by_name(web_of(c)->services->users, c->arena, name, &user, err);
    if (code == 0)
        *id = user.id;
    return code == ERR_NOT_FOUND ? err_set(err, ERR_INVALID, "there is no user '" STR_FMT "'",
                                           STR_ARG(str_head(name, LAKE_NAME_MAX)))
                                 : code;
}

static int migration_begin(struct rest_call *c, struct err *err)
{
    struct str owner = STR_EMPTY;
    int code = web_need_admin(c, err);

    if (code == 0)
        code = migration_owner(c, &owner, err);
    return code < 0 ? code : lake_mover_start(migration_of(c), rest_text(c, "url"), owner, err);
}

static void migration_write_repo(struct json_out *w, const struct lake_migrate_repo *r)
{
    static const char *const states[] = {
        [LAKE_MIGRATE_COPYING] = "copying", [LAKE_MIGRATE_COMPARING] = "comparing",
        [LAKE_MIGRATE_DONE] = "done",       [LAKE_MIGRATE_PRESENT] = "present",
        [LAKE_MIGRATE_FAILED] = "failed",
    };

    json_out_open(w, '{');
    json_out_member_str(w, "repository", r->id);
    json_out_member_str(w, "state", str_z(states[r->state]));
    json_out_member_u64(w, "commits", r->commits);
    json_out_member_u64(w, "tags", r->tags);
    json_out_member_u64(w, "branches", r->branches);
    json_out_member_u64(w, "staged", r->staged);
    json_out_member_u64(w, "left", r->left);
    json_out_member_str(w, "error", r->error);
    json_out_close(w, '}');
}

static int migration_show(struct rest_call *c, struct err *err)
{
    struct lake_mover_status s = {0};
    int code = web_need_admin(c, err);

    if (code == 0)
        code = lake_mover_status(migration_of(c), c->arena, &s, err);
    if (code < 0)
        return code;
    json_out_member_bool(c->w, "running", s.is_running);
    json_out_member_u64(c->w, "rows", s.rows);
    json_out_member_u64(c->w, "uploads", s.totals.uploads);
    json_out_member_u64(c->w, "orphan_tokens", s.totals.orphan_tokens);
    json_out_member_u64(c->w, "orphan_rows", s.totals.orphan_rows);
    json_out_member_u64(c->w, "homeless_rows", s.totals.homeless);
    json_out_member_str(c->w, "error", s.error);
    json_out_key(c->w, "repositories");
    json_out_open(c->w, '[');
    for (size_t i = 0; i < s.count; i++)
        migration_write_repo(c->w, &s.repos[i]);
    json_out_close(c->w, ']');
    return 0;
}

static int migration_stop(struct rest_call *c, struct err *err)
{
    int code = web_need_admin(c, err);

    if (code == 0)
        lake_mover_stop(migration_of(c));
    return code;
}
