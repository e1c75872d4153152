/* Routes: the repositories of an account. */
#include "archive/rest/rest.h"

#include "archive/bundle.h"
#include "archive/saved.h"
#include "base/map.h"

static rest_fn repo_list_run, repo_get_run;

#define REPO_FIELDS                                                                                \
    {"name", "The repository's name."},                                                            \
        {"updated", "When its bundle was last written; empty: there is none.", REST_TIME},         \
        {"bytes", "Bytes of the bundle.", REST_INTEGER},                                           \
    {                                                                                              \
        "code", "The outcome of the last full sync; empty: it was in none yet."                    \
    }

static const struct rest_row repo_rows[] = {
    {HTTP_GET, "/api/v1/archive/accounts/{account}/repositories", REST_ADMIN,
     "The repositories of an account that have a bundle or an error, and those that were kept "
     "aside: "
     "NAME@ID had the name before, and NAME@TIME is an older bundle of the repository.",
     repo_list_run, .list = "repositories", .by_source = true, .page_usual = OBJECT_LIST_MAX,
     .page_max = OBJECT_LIST_MAX,
     .in_path = REST_FIELDS({"account", "The account, such as github.com%2Foctocat."}),
     .query = REST_FIELDS({"all", ARCHIVE_ALL_DOC, REST_BOOLEAN}),
     .items = REST_FIELDS(REPO_FIELDS, {"id", "The forge's number of the repository."},
                          {"listed", "The forge's list had it.", REST_BOOLEAN},
                          {"looked", "When its refs were last compared.", REST_TIME})},
    {HTTP_GET, "/api/v1/archive/accounts/{account}/repositories/{repository}", REST_ADMIN,
     "One repository.", repo_get_run,
     .in_path = REST_FIELDS({"account", "The account, such as github.com%2Foctocat."},
                            {"repository", "The repository's name."}),
     .answer =
         REST_FIELDS(REPO_FIELDS, {"id", "The forge's number of the repository."},
                     {"key", "The key of its bundle."}, {"satellite", "The storage that holds it."},
                     {"bucket", "The bucket there."}, {"head", "The commit that HEAD leads to."},
                     {"format", "The kind of its ids: sha1 or sha256."},
                     {"objects", "Entries of the bundle's pack.", REST_INTEGER},
                     {"appends", "How often a pack was appended.", REST_INTEGER},
                     {"zip_bytes", "Bytes of the ZIP; 0: there is none.", REST_INTEGER},
                     {"error", "Why the last sync of the repository failed; null: it did not.",
                      REST_OBJECT, .nullable = true, .members = archive_error_fields}),
     .missing = "there is no such repository in the archive"},
};
const struct rest_table archive_repo_routes = {REST_ROWS(repo_rows)};

/* --- one repository --- */

/* Heads an object of the repository. If the object is missing, *there is false and the call
 * succeeds. */
static int repo_look(struct rest_call *c, struct shelf *s, struct str key, struct object_info *out,
                     bool *there, struct err *err)
{
    int code = shelf_head(s, c->arena, key, out, err);

    *there = code == 0;
    return code == ERR_NOT_FOUND ? 0 : code;
}

static void repo_write_bundle(struct rest_call *c, const struct object_info *info, bool there)
{
    struct bundle_meta meta = {0};
    bool known = there && bundle_meta_read(&meta, info) == 0;

    rest_time(c->w, "updated",
              !there                   ? 0
              : known && meta.mtime_ms ? meta.mtime_ms
                                       : info->modified_ms);
    json_out_member_u64(c->w, "bytes", there ? info->size : 0);
    json_out_member_str(c->w, "id", str_z(meta.source_id));
    json_out_member_str(c->w, "head", str_z(meta.head));
    json_out_member_str(c->w, "format", str_z(meta.format));
    json_out_member_u64(c->w, "objects", meta.objects);
    json_out_member_u64(c->w, "appends", meta.appends);
}

/* Finds the repository's outcome in the record, which is read only up to the repository's line. */
static int repo_code(struct rest_call *c, struct shelf *s, const struct archive_account *account,
                     struct str name, const char **out, struct err *err)
{
    struct archive_record record;
    struct shelf_body body = {0};
    int code = shelf_get(s, c->arena, archive_key(account, c->arena, ARCHIVE_RECORD, STR_EMPTY),
                         NULL, &body, err);

    *out = "";
    if (code < 0)
        return code == ERR_NOT_FOUND ? 0 : code;
    archive_record_init(&record);
    code = archive_record_read(&record, body.body, err);
    shelf_body_close(&body);
    vec_each (&record.repos, const struct record_repo *, r) {
        if (str_eq(r->name, name))
            *out = archive_codes[r->code].name;
    }
    archive_record_release(&record);
    return code == ERR_CORRUPT ? 0 : code;
}

static int repo_write(struct rest_call *c, struct shelf *s, const struct archive_account *account,
                      struct str name, struct err *err)
{
    struct str key = archive_key(account, c->arena, ARCHIVE_BUNDLE, name);
    struct str error = archive_key(account, c->arena, ARCHIVE_REPO_ERROR, name);
    struct object_info bundle = {0}, zip = {0}, ignored;
    bool has_bundle, has_zip = false, has_error = false;
    const char *outcome = "";
    int code = repo_look(c, s, key, &bundle, &has_bundle, err);

    if (code == 0)
        code =
            repo_look(c, s, archive_key(account, c->arena, ARCHIVE_ZIP, name), &zip, &has_zip, err);
    if (code == 0)
        code = repo_look(c, s, error, &ignored, &has_error, err);
    if (code == 0 && !has_bundle && !has_error)
        code = err_code(err, ERR_NOT_FOUND);
    if (code == 0)
        code = repo_code(c, s, account, name, &outcome, err);
    if (code < 0)
        return code;
    json_out_member_str(c->w, "name", name);
    repo_write_bundle(c, &bundle, has_bundle);
    json_out_member_str(c->w, "code", str_z(outcome));
    json_out_member_str(c->w, "key", key);
    json_out_member_str(c->w, "satellite", s->satellite);
    json_out_member_str(c->w, "bucket", s->bucket);
    json_out_member_u64(c->w, "zip_bytes", has_zip ? zip.size : 0);
    return rest_error_member(c, s, error, err);
}

static int repo_get_run(struct rest_call *c, struct err *err)
{
    struct archive_account account;
    struct shelf shelf = {0};
    struct str name = rest_text(c, "repository");
    int code = rest_account(c, &account, err);

    if (code == 0 && !saved_name_ok(name))
        code = err_set(err, ERR_INVALID, "'" STR_FMT "' cannot be the name of a repository",
                       STR_ARG(str_head(name, ARCHIVE_REPO_MAX)));
    if (code == 0)
        code = shelf_open(&shelf, rest_archive(c)->satellites, c->arena, &account, err);
    if (code == 0)
        code = repo_write(c, &shelf, &account, name, err);
    shelf_close(&shelf);
    return code;
}

/* --- all repositories --- */

/* A page of an account's repositories: the objects of its folder, joined with its record. */
struct repo_page {
    struct rest_call *c;
    struct shelf *shelf;
    const struct archive_account *account;
    struct archive_record record;
    struct map by_name; /* lines of the record */
};

static int page_open(struct repo_page *p, struct err *err)
{
    struct rest_call *c = p->c;
    struct shelf_body body = {0};
    int code =
        shelf_get(p->shelf, c->arena, archive_key(p->account, c->arena, ARCHIVE_RECORD, STR_EMPTY),
                  NULL, &body, err);

    archive_record_init(&p->record);
    map_init(&p->by_name);
    if (code < 0)
        return code == ERR_NOT_FOUND ? 0 : code;
    code = archive_record_read(&p->record, body.body, err);
    shelf_body_close(&body);
    vec_each (&p->record.repos, struct record_repo *, r)
        map_put(&p->by_name, r->name, r);
    return code == ERR_CORRUPT ? 0 : code;
}

static void page_close(struct repo_page *p)
{
    map_release(&p->by_name);
    archive_record_release(&p->record);
}

/* The name of a repository that the list shows for this bundle; empty: it shows none. */
static struct str page_bundle(struct repo_page *p, struct str key)
{
    struct str name = saved_name(key);
    bool shows = saved_is_repo(name) && (rest_bool(p->c, "all") || !saved_is_copy(name));

    return shows ? name : STR_EMPTY;
}

/* The name of a repository that has an `.error` object and no bundle; empty: the object is none of
 * such a repository. */
static int page_error(struct repo_page *p, struct str key, struct str *out, struct err *err)
{
    struct archive_object o;
    struct object_info info;

    *out = STR_EMPTY;
    if (archive_key_read(&o, key) < 0 || o.kind != ARCHIVE_REPO_ERROR)
        return 0;
    int code = shelf_head(p->shelf, p->c->arena,
                          archive_key(p->account, p->c->arena, ARCHIVE_BUNDLE, o.repo), &info, err);
    if (code != ERR_NOT_FOUND)
        return code;
    *out = o.repo;
    return 0;
}

/* `bundle` NULL: the repository has no bundle. */
static void page_write(struct repo_page *p, struct str name, const struct object_info *bundle)
{
    const struct record_repo *r = map_get(&p->by_name, name);
    int64_t updated = !bundle ? 0 : r && r->updated_ms ? r->updated_ms : bundle->modified_ms;
    struct json_out *w = p->c->w;

    rest_row_begin(p->c);
    json_out_member_str(w, "name", name);
    rest_time(w, "updated", updated);
    json_out_member_u64(w, "bytes", bundle ? bundle->size : 0);
    json_out_member_str(w, "code", r ? str_z(archive_codes[r->code].name) : STR_EMPTY);
    json_out_member_str(w, "id", r ? r->id : STR_EMPTY);
    json_out_member_bool(w, "listed", r && r->listed);
    rest_time(w, "looked", r ? r->looked_ms : 0);
    rest_item_end(p->c);
}

static int page_run(struct repo_page *p, struct err *err)
{
    struct rest_call *c = p->c;
    struct str folder = archive_folder(p->account, c->arena);
    struct list_options o = {
        .prefix = folder,
        .after = rest_after(c).len
                     ? arena_fmt(c->arena, STR_FMT STR_FMT, STR_ARG(folder), STR_ARG(rest_after(c)))
                     : STR_EMPTY,
        .limit = rest_limit(c)};
    struct list_result keys;
    int code = shelf_list(p->shelf, c->arena, &o, &keys, err);

    if (code < 0)
        return code;
    for (size_t i = 0; i < keys.count && code == 0; i++) {
        const struct object_info *info = &keys.entries[i].info;
        struct str name = page_bundle(p, info->key), failed = STR_EMPTY;
        if (name.len == 0)
            code = page_error(p, info->key, &failed, err);
        if (code == 0 && (name.len || failed.len))
            page_write(p, name.len ? name : failed, name.len ? info : NULL);
    }
    rest_page_end(c, keys.more, keys.more ? str_skip(keys.next, folder.len) : STR_EMPTY);
    return code;
}

static int repo_list_run(struct rest_call *c, struct err *err)
{
    struct archive_account account;
    struct shelf shelf = {0};
    struct repo_page page = {.c = c, .shelf = &shelf, .account = &account};
    int code = rest_account(c, &account, err);

    if (code == 0)
        code = shelf_open(&shelf, rest_archive(c)->satellites, c->arena, &account, err);
    if (code < 0)
        return code;
    code = page_open(&page, err);
    if (code == 0)
        code = page_run(&page, err);
    page_close(&page);
    shelf_close(&shelf);
    return code;
}
