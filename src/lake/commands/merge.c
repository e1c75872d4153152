/* weir lake merge, revert, cherry-pick and reset: change the content of a branch. */
#include "lake/commands/cli.h"

static const char *const strategies[] = {"source-wins", "dest-wins", NULL};

static const struct flag merge_flags[] = {
    {"message", FLAG_TEXT, "TEXT", NULL, "What the merge's commit says.", .letter = 'm'},
    {"meta", FLAG_TEXT, "KEY=VALUE", NULL, "Metadata of the commit; may be given several times."},
    {"strategy", FLAG_CHOICE, "SIDE", strategies,
     "The side that wins where both have changed a path: source-wins or dest-wins; default: such a "
     "merge is refused."},
    {"take", FLAG_TEXT, "PATH=SIDE", NULL,
     "The side that wins at one path: source or dest; may be given several times. It goes before "
     "--strategy."},
    {"squash", FLAG_SWITCH, NULL, NULL, "The commit has one parent."},
    {"allow-empty", FLAG_SWITCH, NULL, NULL, "Commit also when nothing has changed."},
    CLIENT_FLAGS,
    {0},
};

static const struct flag pick_flags[] = {
    {"parent", FLAG_TEXT, "N", NULL, "Of a merge: the number of the parent to compare with."},
    {"message", FLAG_TEXT, "TEXT", NULL, "What the new commit says.", .letter = 'm'},
    CLIENT_FLAGS,
    {0},
};

static const struct flag reset_flags[] = {
    {"to", FLAG_TEXT, "REF", NULL,
     "Move the branch, which must have no uncommitted changes, to this commit."},
    CLIENT_FLAGS,
    {0},
};

static const struct output_column merge_columns[] = {{"reference"}};
static const struct output_column pick_columns[] = {
    {"id"}, {"created"}, {"committer"}, {"message"}};

/* --- merge --- */

/* Sets the error of a merge that was refused. For a conflict, the text lists some of the paths. */
static int merge_refused(struct api_client *r, const struct client_response *response,
                         struct err *err)
{
    enum { SHOWN = 5 };
    struct buf paths = BUF_INIT(400);
    json_t *answer = NULL;
    const json_t *item, *list = NULL;
    size_t i;

    if (json_read(&answer, response->body, NULL) == 0)
        list = json_object_get(answer, "conflicts");
    json_array_foreach(list, i, item)
    {
        if (i < SHOWN)
            buf_appendf(&paths, "%s%s", i ? ", " : "", json_string_value(item));
    }
    if (json_array_size(list) > SHOWN)
        buf_appendf(&paths, " and %zu more", json_array_size(list) - SHOWN);
    int code = api_client_error(r, response, err);
    if (paths.len)
        code = err_set(err, ERR_PEER,
                       "conflict found: both sides have changed %s; --take chooses a side for one "
                       "path, --strategy for all",
                       paths.p);
    buf_release(&paths);
    json_decref(answer);
    return code;
}

static int lake_merge_send(struct api_client *r, const char *path, struct lake_cli_body *body,
                           struct output *table, struct err *err)
{
    struct client_response response;
    json_t *answer = NULL;

    json_out_close(&body->w, '}');
    int code = api_client_call(r, path, body->text.p, &response, err);
    if (code == 0 && response.status != 200)
        code = merge_refused(r, &response, err);
    if (code == 0)
        code = json_read(&answer, response.body, err);
    if (code == 0)
        lake_cli_row(table, answer);
    json_decref(answer);
    return code;
}

/* Writes the choices of all flags --take PATH=SIDE. A path may contain '=', so the last one counts.
 */
static int merge_write_choices(struct json_out *w, const struct invocation *inv, struct err *err)
{
    json_out_key(w, "choices");
    json_out_open(w, '{');
    for (size_t i = 0; i < inv->flags.len; i++) {
        const char *text = inv->flags.items[i].value, *sign = text ? strrchr(text, '=') : NULL;
        if (strcmp(inv->flags.items[i].flag->name, "take") != 0)
            continue;
        bool is_source = sign && strcmp(sign, "=source") == 0;
        if (!sign || sign == text || (!is_source && strcmp(sign, "=dest") != 0))
            return err_set(err, ERR_INVALID, "--take takes PATH=source or PATH=dest, not '%s'",
                           text);
        json_out_key_str(w, str_n(text, (size_t)(sign - text)));
        json_out_str(w, is_source ? STR("source-wins") : STR("dest-wins"));
    }
    json_out_close(w, '}');
    return 0;
}

static int lake_merge_run(struct api_client *r, const struct invocation *inv, struct output *table,
                          struct err *err)
{
    struct lake_cli_body body;
    struct buf path = {0};
    struct lake_uri source = {0};
    struct str dest = STR_EMPTY;
    int code = lake_uri_parse(&source, inv->args.items[0], LAKE_URI_REF, err);

    if (code == 0)
        code = lake_uri_parse_ref(&dest, &source, inv->args.items[1], err);
    if (code < 0)
        return code;
    lake_cli_body_begin(&body);
    manage_flag(&body.w, inv, "message", "message");
    manage_flag(&body.w, inv, "strategy", "strategy");
    lake_cli_switch(&body.w, inv, "squash", "squash_merge");
    lake_cli_switch(&body.w, inv, "allow-empty", "allow_empty");
    code = lake_cli_metadata(&body.w, inv, "metadata", err);
    if (code == 0)
        code = merge_write_choices(&body.w, inv, err);
    buf_append_z(&path, lake_cli_path(r, &source, "{repo}/refs/{ref}/merge/"));
    url_encode(&path, dest, false);
    if (code == 0)
        code = lake_merge_send(r, path.p, &body, table, err);
    buf_release(&body.text);
    buf_release(&path);
    return code;
}

/* --- revert and cherry-pick --- */

/* Makes the call that revert and cherry-pick have in common; `pattern` is the path of the call. */
static int pick_send(struct api_client *r, const struct invocation *inv, const char *pattern,
                     json_t **answer, struct err *err)
{
    const char *message = invocation_flag(inv, "message"), *text = invocation_flag(inv, "parent");
    struct lake_cli_body body;
    struct lake_uri uri;
    struct str commit = STR_EMPTY;
    uint64_t parent = 0;
    int code = lake_uri_parse(&uri, inv->args.items[0], LAKE_URI_REF, err);

    if (code == 0)
        code = lake_uri_parse_ref(&commit, &uri, inv->args.items[1], err);
    if (code == 0 && text && str_u64(str_z(text), &parent) < 0)
        code = err_set(err, ERR_INVALID, "--parent takes a number, not '%s'", text);
    if (code < 0)
        return code;
    lake_cli_body_begin(&body);
    json_out_member_str(&body.w, "ref", commit);
    json_out_member_u64(&body.w, "parent_number", parent);
    if (message) {
        json_out_key(&body.w, "commit_overrides");
        json_out_open(&body.w, '{');
        json_out_member_str(&body.w, "message", str_z(message));
        json_out_close(&body.w, '}');
    }
    return lake_cli_send(r, "POST", lake_cli_path(r, &uri, pattern), &body, answer, err);
}

/* Undoes the commit. The call has no answer, so a second call gets the new head to show. */
static int revert_run(struct api_client *r, const struct invocation *inv, struct output *table,
                      struct err *err)
{
    struct lake_uri uri;
    int code = pick_send(r, inv, "{repo}/branches/{ref}/revert", NULL, err);

    if (code == 0)
        code = lake_uri_parse(&uri, inv->args.items[0], LAKE_URI_REF, err);
    return code == 0
               ? lake_cli_one(r, "GET", lake_cli_path(r, &uri, "{repo}/commits/{ref}"), table, err)
               : code;
}

static int cherry_pick_run(struct api_client *r, const struct invocation *inv, struct output *table,
                           struct err *err)
{
    json_t *answer = NULL;
    int code = pick_send(r, inv, "{repo}/branches/{ref}/cherry-pick", &answer, err);

    if (code == 0)
        lake_cli_row(table, answer);
    json_decref(answer);
    return code;
}

/* --- reset --- */

static int reset_hard(struct api_client *r, const struct lake_uri *uri, const char *to,
                      struct err *err)
{
    struct buf path = {0};
    struct str ref;
    int code = lake_uri_parse_ref(&ref, uri, to, err);

    buf_append_z(&path, lake_cli_path(r, uri, "{repo}/branches/{ref}/hard_reset?ref="));
    url_encode(&path, ref, false);
    if (code == 0)
        code = api_client_send(r, "PUT", path.p, NULL, NULL, err);
    buf_release(&path);
    return code;
}

static int reset_run(struct api_client *r, const struct invocation *inv, struct output *table,
                     struct err *err)
{
    const char *to = invocation_flag(inv, "to");
    struct lake_cli_body body;
    struct lake_uri uri;
    int code = lake_uri_parse(&uri, inv->args.items[0], LAKE_URI_FOLDER, err);

    (void)table;
    if (code == 0 && to && uri.path.len)
        code = err_set(err, ERR_INVALID, "--to moves a whole branch; leave out the path");
    if (code < 0 || to)
        return code < 0 ? code : reset_hard(r, &uri, to, err);
    const char *type = !uri.path.len                  ? "reset"
                       : str_ends(uri.path, STR("/")) ? "common_prefix"
                                                      : "object";
    lake_cli_body_begin(&body);
    json_out_member_str(&body.w, "type", str_z(type));
    if (uri.path.len)
        json_out_member_str(&body.w, "path", uri.path);
    return lake_cli_send(r, "PUT", lake_cli_path(r, &uri, "{repo}/branches/{ref}"), &body, NULL,
                         err);
}

static const struct manage_call merge_call = {MANAGE_COLUMNS(merge_columns), .run = lake_merge_run,
                                              .hints = lake_cli_hints};
static const struct manage_call revert_call = {MANAGE_COLUMNS(pick_columns), .run = revert_run,
                                               .hints = lake_cli_hints};
static const struct manage_call cherry_pick_call = {
    MANAGE_COLUMNS(pick_columns), .run = cherry_pick_run, .hints = lake_cli_hints};
static const struct manage_call reset_call = {.run = reset_run, .hints = lake_cli_hints};

const struct command lake_merge_commands[] = {
    {.name = "lake merge",
     .arguments = "SOURCE BRANCH",
     .min_args = 2,
     .max_args = 2,
     .flags = merge_flags,
     .configured = true,
     .summary = "Merge a ref into a branch",
     .help = "Merges what SOURCE has changed since its common ancestor with BRANCH into BRANCH. "
             "When both have changed a path differently, nothing is changed and the command names "
             "the paths, unless --take or --strategy says which side wins.",
     .examples =
         "weir lake merge lake://weather/fix lake://weather/main\n"
         "weir lake merge lake://weather/fix lake://weather/main --take a.csv=source --take "
         "b.csv=dest\n"
         "weir lake merge lake://weather/fix lake://weather/main --strategy source-wins",
     .call = &merge_call},
    {.name = "lake revert",
     .arguments = "BRANCH COMMIT",
     .min_args = 2,
     .max_args = 2,
     .flags = pick_flags,
     .configured = true,
     .summary = "Undo a commit by a new one",
     .help = "Makes a commit on the branch that undoes the changes of COMMIT.",
     .examples = "weir lake revert lake://weather/main main~3\n"
                 "weir lake revert lake://weather/main v1.1 --parent 1",
     .call = &revert_call},
    {.name = "lake cherry-pick",
     .arguments = "BRANCH COMMIT",
     .min_args = 2,
     .max_args = 2,
     .flags = pick_flags,
     .configured = true,
     .summary = "Make the changes of a commit again on a branch",
     .help = "Makes a commit on the branch with the changes of COMMIT.",
     .examples = "weir lake cherry-pick lake://weather/main fix~1",
     .call = &cherry_pick_call},
    {.name = "lake reset",
     .arguments = "PLACE",
     .min_args = 1,
     .max_args = 1,
     .flags = reset_flags,
     .configured = true,
     .summary = "Throw changes of a branch away",
     .help =
         "Throws away changes that are not committed: all of the branch, those of one path, or, "
         "if the place ends with '/', those below it. With --to it moves the branch to another "
         "commit instead.",
     .examples = "weir lake reset lake://weather/main\n"
                 "weir lake reset lake://weather/main/2026/\n"
                 "weir lake reset lake://weather/main --to main~1",
     .call = &reset_call},
    {0},
};
