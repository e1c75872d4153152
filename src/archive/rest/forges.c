/* Routes: the forges that weir knows. Requests may set tokens, but no answer shows one. */
#include "archive/rest/rest.h"

#include "archive/forges.h"
#include "archive/rebuild.h"
#include "archive/satellites.h"

static rest_fn forge_list_run, forge_set_run, forge_get_run, forge_remove_run,
    forge_token_remove_run;

static const struct rest_field forge_token_fields[] = {
    {"id", "Names the token without telling it; - stands for requests without a token."},
    {"limit", "Requests that the forge allows in a period; -1: not known.", REST_INTEGER},
    {"remaining", "Requests that are left in this period; -1: not known.", REST_INTEGER},
    {"reset", "When the next period begins.", REST_TIME},
    {"rests_until", "The token is not used before this time; empty: it is used.", REST_TIME},
    {"dead_since", "When the forge refused the token for good; empty: it works.", REST_TIME},
    {"words", "The forge's words about the rest or the refusal."},
    {0},
};

#define FORGE_SETTINGS                                                                             \
    {"host", "The forge's host, perhaps with a port."}, {"kind", "github, gitlab or gitea."},      \
        {"api", "Base URL of the API."}, {"git", "Base URL of the repositories."},                 \
        {"bucket", "The bucket that holds the forge's accounts."},                                 \
        {"wants", "Options that are on: zip, wikis, gists, lfs, issues, pulls, releases.",         \
         REST_STRINGS},                                                                            \
        {"source", "Where it was named: built-in, file or added."},                                \
        {"rests_until", "No request is made before this time; empty: requests are made.",          \
         REST_TIME},                                                                               \
    {                                                                                              \
        "tokens", "The tokens and their quotas.", REST_OBJECTS, .members = forge_token_fields      \
    }

static const struct rest_field forge_host_path[] = {{"host", "The forge's host."}, {0}};

static const struct rest_row forge_rows[] = {
    {HTTP_GET, "/api/v1/archive/forges", REST_ADMIN, "The forges, with their quotas.",
     forge_list_run, .list = "forges", .items = REST_FIELDS(FORGE_SETTINGS)},
    {HTTP_GET, "/api/v1/archive/forges/{host}", REST_ADMIN, "One forge.", forge_get_run,
     .in_path = forge_host_path, .answer = REST_FIELDS(FORGE_SETTINGS),
     .missing = "weir does not know this forge"},
    {HTTP_POST, "/api/v1/archive/forges", REST_ADMIN,
     "Add a forge, or change one that was added: settings that are given replace the old ones, and "
     "tokens are added to the others.",
     forge_set_run, .status = 200, .other_status = 201,
     .body = REST_FIELDS(
         {"host", "The forge's host, perhaps with a port.", .required = true},
         {"kind", "The kind; a new host other than github.com needs it.",
          .choices = forge_kind_names},
         {"api", "Base URL of the API; absent: that of the kind.", .max = 1024},
         {"git", "Base URL of the repositories; absent: https://HOST.", .max = 1024},
         {"bucket", "The bucket, which no other forge may have; absent: the host.", .max = 63},
         {"wants", "Options that are on; the others are off.", REST_STRINGS, .max = 16},
         {"tokens", "Tokens to add.", REST_STRINGS, .secret = true, .max = FORGE_TOKENS_MAX}),
     .answer = REST_FIELDS(FORGE_SETTINGS)},
    {HTTP_DELETE, "/api/v1/archive/forges/{host}", REST_ADMIN,
     "Forget a forge that was added, and its tokens. Everything that was stored stays.",
     forge_remove_run, .status = 204, .in_path = forge_host_path,
     .missing = "weir does not know this forge"},
    {HTTP_DELETE, "/api/v1/archive/forges/{host}/tokens/{id}", REST_ADMIN,
     "Forget one token of a forge that was added.", forge_token_remove_run, .status = 204,
     .in_path = REST_FIELDS({"host", "The forge's host."}, {"id", "The token's id."})},
};
const struct rest_table archive_forge_routes = {REST_ROWS(forge_rows)};

/* --- showing --- */

static void forge_write_token(struct json_out *w, const struct quota_state *t)
{
    json_out_open(w, '{');
    json_out_member_str(w, "id", t->id);
    json_out_member_i64(w, "limit", t->limit);
    json_out_member_i64(w, "remaining", t->remaining);
    rest_time(w, "reset", t->reset_ms);
    rest_time(w, "rests_until", t->until_ms);
    rest_time(w, "dead_since", t->dead_ms);
    json_out_member_str(w, "words", t->words);
    json_out_close(w, '}');
}

static int forge_write(struct rest_call *c, const struct forge *f, struct err *err)
{
    static const char *const sources[] = {
        [FORGE_BUILT_IN] = "built-in", [FORGE_FIXED] = "file", [FORGE_STORED] = "added"};
    struct forge_state state;
    int code = forges_state(rest_archive(c)->forges, c->arena, f->host, &state, err);

    if (code < 0)
        return code;
    json_out_member_str(c->w, "host", f->host);
    json_out_member_str(c->w, "kind", str_z(forge_kind_names[f->kind]));
    json_out_member_str(c->w, "api", f->api);
    json_out_member_str(c->w, "git", f->git);
    json_out_member_str(c->w, "bucket", f->bucket);
    rest_write_wants(c->w, &f->wants);
    json_out_member_str(c->w, "source", str_z(sources[f->source]));
    rest_time(c->w, "rests_until", state.until_ms);
    json_out_key(c->w, "tokens");
    json_out_open(c->w, '[');
    for (size_t i = 0; i < state.token_count; i++)
        forge_write_token(c->w, &state.tokens[i]);
    json_out_close(c->w, ']');
    return 0;
}

static int forge_list_run(struct rest_call *c, struct err *err)
{
    struct forge *list = NULL;
    size_t count = 0;
    int code = forges_list(rest_archive(c)->forges, c->arena, &list, &count, err);

    for (size_t i = 0; code == 0 && i < count; i++) {
        if (!rest_item(c, list[i].host))
            continue;
        code = forge_write(c, &list[i], err);
        rest_item_end(c);
    }
    return code;
}

static int forge_show(struct rest_call *c, struct str host, struct err *err)
{
    struct forge f;
    int code = forges_find(rest_archive(c)->forges, c->arena, host, &f, err);

    return code < 0 ? code : forge_write(c, &f, err);
}

static int forge_get_run(struct rest_call *c, struct err *err)
{
    return forge_show(c, rest_text(c, "host"), err);
}

/* --- changing --- */

static int forge_read_tokens(struct rest_call *c, struct forge_change *change, struct err *err)
{
    const json_t *list = rest_strings(c, "tokens");
    size_t count = json_array_size(list);
    struct str *tokens = arena_array(c->arena, count + 1, sizeof(*tokens));

    if (!tokens)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < count; i++)
        tokens[i] = str_z(json_string_value(json_array_get(list, i)));
    change->tokens = tokens;
    change->token_count = count;
    return 0;
}

/* Refuses to let a forge leave a bucket that has objects: they would be forgotten. */
static int forge_leaves(void *ctx, struct str host, struct str bucket, struct err *err)
{
    struct rest_call *c = ctx;
    bool used = false;
    int code = satellites_bucket_used(rest_archive(c)->satellites, c->arena, bucket, &used, err);

    return code == 0 && used ? err_set(err, ERR_CONFLICT,
                                       "the forge " STR_FMT " must keep its bucket " STR_FMT
                                       ", because the bucket has objects",
                                       STR_ARG(host), STR_ARG(bucket))
                             : code;
}

/* Rebuilds the slots, so that accounts of a forge that was not known until now are tracked again.
 * Without a table of slots there are no accounts. */
static int forge_find_accounts(struct rest_call *c, struct err *err)
{
    struct archive *x = rest_archive(c);
    struct slots *table = arena_new(c->arena, struct slots);
    int code =
        table ? satellites_current(x->satellites, table, false, err) : err_code(err, ERR_NO_MEMORY);

    if (code == 0 && table->epoch)
        code = rebuild_all(x->rebuild, err);
    return code < 0 ? err_wrap(err, code,
                               "the forge was added; `weir archive rebuild` finds the accounts "
                               "that it had before")
                    : 0;
}

static int forge_set_run(struct rest_call *c, struct err *err)
{
    struct forge_change change = {.host = rest_text(c, "host"),
                                  .api = rest_text(c, "api"),
                                  .git = rest_text(c, "git"),
                                  .bucket = rest_text(c, "bucket"),
                                  .has_kind = rest_given(c, "kind"),
                                  .leaves = forge_leaves,
                                  .ctx = c};
    struct forge before;
    bool was_new = false, was_known = forges_find(rest_archive(c)->forges, c->arena, change.host,
                                                  &before, NULL) == 0;
    int code = rest_read_wants(c, &change.wants, &change.has_wants, err);

    for (size_t i = 0; change.has_kind && i < FORGE_KINDS; i++)
        if (str_eq(rest_text(c, "kind"), str_z(forge_kind_names[i])))
            change.kind = (enum forge_kind)i;
    if (code == 0)
        code = forge_read_tokens(c, &change, err);
    if (code == 0)
        code = forges_set(rest_archive(c)->forges, &change, &was_new, err);
    if (code < 0)
        return code;
    log_info(http_request_log(c->req), "archive.forge_set", log_s("host", change.host),
             log_u("tokens_added", change.token_count));
    if (!was_known)
        code = forge_find_accounts(c, err);
    if (code < 0)
        return code;
    rest_status(c, was_new ? 201 : 200);
    return forge_show(c, change.host, err);
}

static int forge_remove_run(struct rest_call *c, struct err *err)
{
    int code = forges_remove(rest_archive(c)->forges, rest_text(c, "host"), err);

    if (code == 0)
        log_info(http_request_log(c->req), "archive.forge_removed",
                 log_s("host", rest_text(c, "host")));
    return code;
}

static int forge_token_remove_run(struct rest_call *c, struct err *err)
{
    int code =
        forges_remove_token(rest_archive(c)->forges, rest_text(c, "host"), rest_text(c, "id"), err);

    if (code == 0)
        log_info(http_request_log(c->req), "archive.token_removed",
                 log_s("host", rest_text(c, "host")), log_s("token_id", rest_text(c, "id")));
    return code;
}
