/* Functions that the commands of the lake share: places, bodies of calls, and rows of tables. */
#include "lake/commands/cli.h"
#include "base/clock.h"
#include "lake/commands/commands.h"

#include <stdio.h>
#include <unistd.h>

#define LAKE_SCHEME "lake://"

const struct command *const lake_commands[] = {
    lake_repo_commands,
    lake_branch_commands,
    lake_tag_commands,
    lake_commit_commands,
    lake_merge_commands,
    lake_object_commands,
    lake_copy_commands,
    lake_gc_commands,
    lake_import_commands,
    lake_refs_commands,
    lake_migrate_commands,
    lake_diagnose_commands,
    NULL,
};

const struct manage_hint lake_cli_hints[] = {
    {"repository not found", "`weir lake repo list` lists the repositories"},
    {"branch not found", "`weir lake branch list` lists the branches"},
    {"tag not found", "`weir lake tag list` lists the tags"},
    {"dirty branch", "`weir lake commit` keeps the changes, `weir lake reset` throws them away"},
    {"protected branch", "write to another branch and merge it"},
    {"must specify 1-based parent number", "--parent N says which side of the merge stays"},
    {"the namespace's bucket", "`weir bucket list` lists the buckets"},
    {"no object begins with", "--object imports a single object"},
    {"the namespace has no dump", "`weir lake dump` writes one; --from names another one"},
    {0},
};

/* --- places --- */

bool lake_uri_is(const char *text)
{
    return str_starts(str_z(text), STR(LAKE_SCHEME));
}

int lake_uri_parse(struct lake_uri *out, const char *text, enum lake_uri_need need, struct err *err)
{
    static const char *const forms[] = {
        [LAKE_URI_REPO] = "lake://REPO",
        [LAKE_URI_REF] = "lake://REPO/REF",
        [LAKE_URI_FOLDER] = "lake://REPO/REF",
        [LAKE_URI_PATH] = "lake://REPO/REF/PATH",
    };
    struct str rest = str_z(text);

    if (lake_uri_is(text))
        rest = str_skip(rest, sizeof(LAKE_SCHEME) - 1);
    str_cut(rest, '/', &out->repo, &rest);
    str_cut(rest, '/', &out->ref, &out->path);
    bool whole = out->repo.len && (need < LAKE_URI_REF || out->ref.len) &&
                 (need < LAKE_URI_PATH || out->path.len);
    if (!whole)
        return err_set(err, ERR_INVALID, "'%s' is not a place in the lake; write %s", text,
                       forms[need]);
    if ((need == LAKE_URI_REPO && out->ref.len) || (need <= LAKE_URI_REF && out->path.len))
        return err_set(err, ERR_INVALID, "'%s' has a %s, which has no meaning here; write %s", text,
                       need == LAKE_URI_REPO ? "ref" : "path", forms[need]);
    return 0;
}

int lake_uri_parse_ref(struct str *out, const struct lake_uri *first, const char *text,
                       struct err *err)
{
    struct lake_uri uri;

    *out = str_z(text);
    if (str_chr(*out, '/') < 0) /* a ref has no slash */
        return 0;
    int code = lake_uri_parse(&uri, text, LAKE_URI_REF, err);
    if (code == 0 && !str_eq(uri.repo, first->repo))
        code = err_set(err, ERR_INVALID, "'%s' must be in one repository with the other ref", text);
    *out = uri.ref;
    return code;
}

void lake_uri_to_folder(struct api_client *r, struct lake_uri *u)
{
    if (u->path.len && !str_ends(u->path, STR("/")))
        u->path = arena_fmt(&r->arena, STR_FMT "/", STR_ARG(u->path));
}

static struct str uri_part(const struct lake_uri *u, struct str name)
{
    return str_eq(name, STR("repo")) ? u->repo : str_eq(name, STR("ref")) ? u->ref : u->path;
}

const char *lake_cli_path(struct api_client *r, const struct lake_uri *u, const char *pattern)
{
    struct buf out = BUF_INIT(64 * KIB);
    struct str rest = str_z(pattern), before, name;

    buf_append_z(&out, "/api/v1/repositories/");
    while (str_cut(rest, '{', &before, &rest)) {
        str_cut(rest, '}', &name, &rest);
        buf_append_str(&out, before);
        url_encode(&out, uri_part(u, name), false);
    }
    buf_append_str(&out, before);
    const char *copy = arena_z(&r->arena, buf_str(&out));
    buf_release(&out);
    return copy;
}

/* --- calls --- */

void lake_cli_body_begin(struct lake_cli_body *b)
{
    b->text = (struct buf){0};
    json_out_init(&b->w, &b->text);
    json_out_open(&b->w, '{');
}

int lake_cli_send(struct api_client *r, const char *method, const char *path,
                  struct lake_cli_body *b, json_t **answer, struct err *err)
{
    json_out_close(&b->w, '}');
    int code = buf_error(&b->text);
    if (code == 0)
        code = api_client_send(r, method, path, b->text.p, answer, err);
    buf_release(&b->text);
    return code;
}

int lake_cli_one(struct api_client *r, const char *method, const char *path, struct output *table,
                 struct err *err)
{
    json_t *answer = NULL;
    int code = api_client_send(r, method, path, NULL, table ? &answer : NULL, err);

    if (code == 0 && table)
        lake_cli_row(table, answer);
    json_decref(answer);
    return code;
}

void lake_cli_switch(struct json_out *w, const struct invocation *inv, const char *flag,
                     const char *name)
{
    if (invocation_flag(inv, flag))
        json_out_member_bool(w, name, true);
}

int lake_cli_metadata(struct json_out *w, const struct invocation *inv, const char *name,
                      struct err *err)
{
    struct str key, value;

    json_out_key(w, name);
    json_out_open(w, '{');
    for (size_t i = 0; i < inv->flags.len; i++) {
        if (strcmp(inv->flags.items[i].flag->name, "meta") != 0)
            continue;
        if (!str_cut(str_z(inv->flags.items[i].value), '=', &key, &value) || !key.len)
            return err_set(err, ERR_INVALID, "--meta takes KEY=VALUE, not '%s'",
                           inv->flags.items[i].value);
        json_out_key_str(w, key);
        json_out_str(w, value);
    }
    json_out_close(w, '}');
    return 0;
}

void lake_cli_tell_error(struct buf *told, const json_t *status)
{
    struct str error = json_get_str(status, "last_error", STR_EMPTY);

    if (!error.len || str_eq(error, buf_str(told)))
        return;
    fprintf(stderr, "%sa try failed, and another one follows: " STR_FMT "\n",
            isatty(STDERR_FILENO) ? "\r\033[K" : "", STR_ARG(error));
    buf_reset(told);
    buf_append_str(told, error);
}

/* --- rows --- */

/* Adds the member `to`: the time in the member `from` (seconds since 1970), written as ISO text. */
static void row_add_time(json_t *object, const char *from, const char *to)
{
    char text[CLOCK_ISO_LEN + 1];
    int64_t seconds = json_get_i64(object, from, 0);

    if (!seconds)
        return;
    clock_iso(seconds * MS_PER_S, text);
    json_object_set_new(object, to, json_string(text));
}

void lake_cli_row(struct output *table, json_t *object)
{
    row_add_time(object, "creation_date", "created");
    row_add_time(object, "mtime", "modified");
    manage_row(table, object);
}

int lake_cli_rows(struct api_client *r, const char *path, size_t max, struct output *table,
                  struct err *err)
{
    struct manage_list list = {.path = path, .name = "results", .max = max};
    json_t *all = NULL, *item;
    size_t i;
    int code = manage_pages(r, &list, &all, err);

    json_array_foreach(all, i, item) lake_cli_row(table, item);
    json_decref(all);
    return code;
}

int lake_cli_max(const struct invocation *inv, size_t *out, struct err *err)
{
    const char *text = invocation_flag(inv, "max");
    uint64_t number = 0;

    if (text && (str_u64(str_z(text), &number) < 0 || number == 0))
        return err_set(err, ERR_INVALID, "--max takes a number from 1 on, not '%s'", text);
    *out = (size_t)number;
    return 0;
}
