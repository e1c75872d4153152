/* Routes for stored bundles: downloads, audits and tidying. */
#include "archive/rest/rest.h"

#include "archive/saved.h"
#include "base/clock.h"

#include <inttypes.h>

static rest_fn bundle_list, bundle_get, audit_get, audit_post;

#define GIVING_ACCOUNT                                                                             \
    {                                                                                              \
        "account", "The account, such as github.com%2Foctocat."                                    \
    }
#define GIVING_NAME                                                                                \
    {                                                                                              \
        "name", "The name of a bundle: a repository, Hello-World@wiki, Hello-World@1296269 (a "    \
                "former repository of that name) or @gists/abc123."                                \
    }

static const struct rest_row giving_rows[] = {
    {HTTP_GET, "/api/v1/archive/accounts/{account}/bundles", REST_ADMIN,
     "The bundles of an account: its repositories, their wikis, its gists, and the bundles that "
     "were "
     "kept aside.",
     bundle_list, .list = "bundles", .by_source = true, .page_usual = OBJECT_LIST_MAX,
     .page_max = OBJECT_LIST_MAX, .in_path = REST_FIELDS(GIVING_ACCOUNT),
     .query =
         REST_FIELDS({"all", ARCHIVE_ALL_DOC, REST_BOOLEAN},
                     {"beside", "List only the bundles whose names begin with this name and an "
                                "@; absent: all."}),
     .items = REST_FIELDS({"name", "The name of the bundle."}, {"key", "The key of the object."},
                          {"bytes", "The size of the bundle.", REST_INTEGER},
                          {"etag", "The ETag of the object."})},
    {HTTP_GET, "/api/v1/archive/accounts/{account}/bundles/{name}", REST_ADMIN,
     "The bytes of a bundle, which git can clone. The header X-Weir-First is the time from which "
     "on "
     "the bundle tells the refs, in seconds since 1970; absent: it is not known.",
     bundle_get, .in_path = REST_FIELDS(GIVING_ACCOUNT, GIVING_NAME),
     .media = "application/x-git-bundle", .missing = "there is no such bundle"},
    {HTTP_GET, "/api/v1/archive/accounts/{account}/audits/{name}", REST_ADMIN,
     "What the last audit of a bundle has found, and whether a task audits or tidies it now.",
     audit_get, .in_path = REST_FIELDS(GIVING_ACCOUNT, GIVING_NAME),
     .query = REST_FIELDS({"tidy",
                           "Tell of the task that tidies the bundle, and not of the one that "
                           "audits it.",
                           REST_BOOLEAN}),
     .answer = REST_FIELDS(
         {"name", "The name of the bundle."},
         {"state", "What is known about the stored bundle.",
          .choices = REST_CHOICES("good", "damaged", "changed", "never")},
         {"at", "When it was audited.", REST_TIME},
         {"bytes", "The size of the bundle that was audited.", REST_INTEGER},
         {"objects", "Entries of its pack.", REST_INTEGER},
         {"doubles", "Entries whose object the pack has more than once.", REST_INTEGER},
         {"tidied_bytes", "Its size when it was last tidied; 0: never.", REST_INTEGER},
         {"words", "What is wrong with it."},
         {"task", "The state of the task: pending, active, scheduled or retry; archived: "
                  "it was given up; empty: there is none, or it is done."},
         {"task_error", "Why the last try of the task failed."}),
     .missing = "there is no such bundle"},
    {HTTP_POST, "/api/v1/archive/accounts/{account}/audits", REST_ADMIN,
     "Audit bundles of an account, or tidy them, as tasks of the queue archive.", audit_post,
     .in_path = REST_FIELDS(GIVING_ACCOUNT),
     .body = REST_FIELDS({"name", "The name of one bundle; absent: all of the account, but no "
                                  "copies (NAME@damaged-TIME, NAME@moved-TIME)."},
                         {"tidy", "Pack the bundles anew, and audit them.", REST_BOOLEAN}),
     .status = 202,
     .answer = REST_FIELDS({"queued", "How many bundles will be looked at.", REST_INTEGER},
                           {"since", "The server's time before it queued them.", REST_TIME}),
     .missing = "there is no such bundle"},
};
const struct rest_table archive_giving_routes = {REST_ROWS(giving_rows)};

/* --- listing --- */

/* The name of a bundle that a list shows; empty: the list leaves the object out. */
static struct str giving_name(struct str key, bool all)
{
    struct str name = saved_name(key);

    return all || !saved_is_copy(name) ? name : STR_EMPTY;
}

static int giving_page(struct rest_call *c, struct shelf *s, struct str prefix, struct str after,
                       struct list_result *out, struct err *err)
{
    struct list_options o = {.prefix = prefix, .after = after, .limit = OBJECT_LIST_MAX};

    return shelf_list(s, c->arena, &o, out, err);
}

static void bundle_item(struct rest_call *c, struct str name, const struct object_info *info)
{
    rest_row_begin(c);
    json_out_member_str(c->w, "name", name);
    json_out_member_str(c->w, "key", info->key);
    json_out_member_u64(c->w, "bytes", info->size);
    json_out_member_str(c->w, "etag", info->etag);
    rest_item_end(c);
}

/* The beginning of the keys that a list of bundles reads. */
static int bundle_list_prefix(struct rest_call *c, const struct archive_account *account,
                              struct str *out, struct err *err)
{
    struct str folder = archive_folder(account, c->arena), beside = rest_text(c, "beside");

    *out = beside.len ? arena_fmt(c->arena, STR_FMT STR_FMT "@", STR_ARG(folder), STR_ARG(beside))
                      : folder;
    return beside.len && !saved_name_ok(beside)
               ? err_set(err, ERR_INVALID, "`beside` cannot be the name of a repository")
               : 0;
}

static int bundle_list(struct rest_call *c, struct err *err)
{
    struct archive_account account;
    struct shelf shelf = {0};
    struct list_result page = {.next = rest_after(c), .more = true};
    size_t left = rest_limit(c);
    struct str last = rest_after(c), prefix = STR_EMPTY;
    int code = rest_account(c, &account, err);

    if (code == 0)
        code = bundle_list_prefix(c, &account, &prefix, err);
    if (code == 0)
        code = shelf_open(&shelf, rest_archive(c)->satellites, c->arena, &account, err);
    while (code == 0 && page.more && left) {
        code = giving_page(c, &shelf, prefix, last, &page, err);
        for (size_t i = 0; code == 0 && i < page.count && left; i++) {
            struct str name = giving_name(page.entries[i].info.key, rest_bool(c, "all"));
            last = page.entries[i].info.key;
            if (name.len == 0)
                continue;
            bundle_item(c, name, &page.entries[i].info);
            left--;
        }
    }
    if (code == 0)
        rest_page_end(c, left == 0, last);
    shelf_close(&shelf);
    return code == ERR_NO_BUCKET ? 0 : code;
}

/* --- bytes --- */

/* Opens the bundle that the path names. The caller closes it, also after an error. */
static int giving_open(struct rest_call *c, struct saved *out, struct err *err)
{
    struct archive_account account;
    int code = rest_account(c, &account, err);

    *out = (struct saved){0};
    return code < 0
               ? code
               : saved_open(out, rest_archive(c), c->arena, &account, rest_text(c, "name"), err);
}

static void bundle_headers(struct rest_call *c, const struct object_info *info)
{
    struct bundle_meta meta;

    rest_header(c, STR("Content-Type"), STR("application/x-git-bundle"));
    rest_header(c, STR("ETag"), arena_fmt(c->arena, "\"" STR_FMT "\"", STR_ARG(info->etag)));
    if (bundle_meta_read(&meta, info) == 0 && meta.first_s)
        rest_header(c, STR("X-Weir-First"), arena_fmt(c->arena, "%" PRId64, meta.first_s));
}

static int bundle_get(struct rest_call *c, struct err *err)
{
    struct shelf_body body = {0};
    struct saved s;
    int code = giving_open(c, &s, err);

    if (code == 0)
        code = shelf_get(&s.shelf, c->arena, s.job.key, NULL, &body, err);
    if (code == 0) {
        bundle_headers(c, &body.info);
        code = http_send_reader(rest_take_answer(c, 200), body.body, body.len);
    }
    shelf_body_close(&body);
    saved_close(&s);
    return code == ERR_NO_BUCKET ? ERR_NOT_FOUND : code;
}

/* --- audits --- */

static const char *audit_state(bool audited, const struct audit_verdict *v, struct str etag)
{
    if (!audited)
        return "never";
    if (!str_eq(str_z(v->etag), etag))
        return "changed";
    return v->ok ? "good" : "damaged";
}

static enum audit_due audit_asked(const struct rest_call *c)
{
    return rest_bool(c, "tidy") ? AUDIT_TIDY : AUDIT_AUDIT;
}

/* The task is looked for before the verdict is read. So if it is gone, the verdict that it has left
 * is read. */
static int audit_find_task(struct rest_call *c, struct task_info *out, struct err *err)
{
    struct archive_account account;
    int code = rest_account(c, &account, err);

    return code < 0 ? code
                    : saved_task(rest_archive(c), c->arena, &account, rest_text(c, "name"),
                                 audit_asked(c), out, err);
}

static void audit_write_task(struct json_out *w, const struct task_info *t)
{
    bool is = t->state != TASK_STATES;

    json_out_member_str(w, "task", is ? str_z(task_state_names[t->state]) : STR_EMPTY);
    json_out_member_str(w, "task_error", is ? t->task.error : STR_EMPTY);
}

static int audit_get(struct rest_call *c, struct err *err)
{
    struct audit_verdict v = {0};
    struct task_info task = {.state = TASK_STATES};
    struct object_info info;
    struct saved s;
    int code = giving_open(c, &s, err);

    if (code == 0)
        code = audit_find_task(c, &task, err);
    if (code == 0)
        code = shelf_head(&s.shelf, c->arena, s.job.key, &info, err);
    int looked = code == 0 ? audit_look(&v, &s.job, err) : code;
    saved_close(&s);
    if (code < 0 || (looked < 0 && looked != ERR_NOT_FOUND))
        return code < 0 ? code : looked;
    json_out_member_str(c->w, "name", rest_text(c, "name"));
    json_out_member_str(c->w, "state", str_z(audit_state(looked == 0, &v, info.etag)));
    rest_time(c->w, "at", v.at_ms);
    json_out_member_u64(c->w, "bytes", v.bytes);
    json_out_member_u64(c->w, "objects", v.objects);
    json_out_member_u64(c->w, "doubles", v.doubles);
    json_out_member_u64(c->w, "tidied_bytes", v.tidied_bytes);
    json_out_member_str(c->w, "words", str_z(v.words));
    audit_write_task(c->w, &task);
    return 0;
}

/* Queues an audit of every bundle of the account. */
static int audit_post_all(struct rest_call *c, const struct archive_account *account,
                          enum audit_due what, uint64_t *queued, struct err *err)
{
    struct str folder = archive_folder(account, c->arena);
    struct list_result page = {.more = true};
    struct shelf shelf = {0};
    int code = shelf_open(&shelf, rest_archive(c)->satellites, c->arena, account, err);

    while (code == 0 && page.more) {
        code = giving_page(c, &shelf, folder, page.next, &page, err);
        for (size_t i = 0; code == 0 && i < page.count; i++) {
            struct str name = giving_name(page.entries[i].info.key, false);
            if (name.len == 0)
                continue;
            code = saved_queue(rest_archive(c), account, name, what, err);
            *queued += code == 0;
        }
    }
    shelf_close(&shelf);
    return code == ERR_NO_BUCKET ? 0 : code;
}

static int audit_post_one(struct rest_call *c, const struct archive_account *account,
                          struct str name, enum audit_due what, struct err *err)
{
    struct object_info info;
    struct saved s;
    int code = saved_open(&s, rest_archive(c), c->arena, account, name, err);

    if (code == 0)
        code = shelf_head(&s.shelf, c->arena, s.job.key, &info, err);
    saved_close(&s);
    return code < 0 ? code : saved_queue(rest_archive(c), account, name, what, err);
}

static int audit_post(struct rest_call *c, struct err *err)
{
    enum audit_due what = audit_asked(c);
    struct archive_account account;
    uint64_t queued = 0;
    int64_t since_ms = clock_wall_ms();
    int code = rest_account(c, &account, err);

    if (code == 0 && rest_given(c, "name")) {
        code = audit_post_one(c, &account, rest_text(c, "name"), what, err);
        queued = code == 0;
    } else if (code == 0) {
        code = audit_post_all(c, &account, what, &queued, err);
    }
    if (code == 0) {
        json_out_member_u64(c->w, "queued", queued);
        rest_time(c->w, "since", since_ms);
    }
    return code;
}
