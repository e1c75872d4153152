/* GitLab: the REST API v4. An account is a user or a group, whose path may have several parts. */
#include "archive/extras.h"
#include "archive/forge_int.h"

static const struct forge_field gitlab_repo_rows[] = {
    FORGE_REPO("id", ID, id, .required = true),
    FORGE_REPO("path", TEXT, name, .required = true),
    FORGE_REPO("namespace.full_path", TEXT, owner, .required = true),
    FORGE_REPO("namespace.id", ID, owner_id),
    FORGE_REPO("http_url_to_repo", TEXT, clone_url),
    FORGE_REPO("default_branch", TEXT, default_branch),
    FORGE_REPO("last_activity_at", TEXT, pushed_at),
    FORGE_REPO("empty_repo", BOOL, empty),
    FORGE_REPO("visibility", IS_NOT, is_private, .word = "public"),
    FORGE_REPO("repository_access_level", IS_WORD, disabled, .word = "disabled"),
    FORGE_REPO("forked_from_project", THERE, fork),
    FORGE_REPO("archived", BOOL, archived),
    FORGE_REPO("wiki_enabled", BOOL, has_wiki),
};

static const struct forge_field gitlab_user_rows[] = {
    {"id", FORGE_FIELD_ID, offsetof(struct forge_account, id), true},
    {"username", FORGE_FIELD_TEXT, offsetof(struct forge_account, login), true},
};
static const struct forge_fields gitlab_user_fields = FORGE_FIELDS(gitlab_user_rows);

static const struct forge_field gitlab_group_rows[] = {
    {"id", FORGE_FIELD_ID, offsetof(struct forge_account, id), true},
    {"full_path", FORGE_FIELD_TEXT, offsetof(struct forge_account, login), true},
};
static const struct forge_fields gitlab_group_fields = FORGE_FIELDS(gitlab_group_rows);

/* Asks for a user by name. The answer is a list with at most one item. *out stays unchanged when
 * the list is empty. */
static int gitlab_find_user(struct forge_session *s, struct arena *a, struct str login,
                            struct forge_account *out, struct forge_fault *fault, struct err *err)
{
    struct buf body = BUF_INIT(FORGE_ANSWER_BYTES_MAX);
    struct forge_answer answer;
    struct scan scan;
    int code = forge_ask(
        s, a, &(struct forge_ask){.url = forge_path(a, "/users?username=%s", login), .body = &body},
        &answer, fault, err);

    if (code == 0) {
        scan_init(&scan, buf_str(&body));
        scan_open(&scan, '[');
        while (scan_more(&scan))
            if (!out->id.len)
                forge_read_object(&scan, a, &gitlab_user_fields, out);
            else
                scan_skip(&scan, NULL);
        if (scan_end(&scan, err) < 0)
            code = forge_malformed(fault, ERR_PARSE, err);
    }
    buf_release(&body);
    return code;
}

static int gitlab_account(struct forge_session *s, struct arena *a, struct str login,
                          const struct forge_account *known, struct forge_account *out,
                          struct forge_fault *fault, struct err *err)
{
    struct forge_account found = {0};
    bool group = known && str_eq(known->type, STR("Group"));
    int code = 0;

    if (known && !group)
        code = forge_ask_object(s, a, forge_path(a, "/users/%s", known->id), &gitlab_user_fields,
                                &found, fault, err);
    else if (!known && str_chr(login, '/') < 0)
        code = gitlab_find_user(s, a, login, &found, fault, err);
    if (code == 0 && !found.id.len) {
        group = true;
        code = forge_ask_object(
            s, a, forge_path(a, "/groups/%s?with_projects=false", known ? known->id : login),
            &gitlab_group_fields, &found, fault, err);
    }
    if (code == 0) {
        found.type = group ? STR("Group") : STR("User");
        *out = found;
    }
    return code;
}

/* Projects of the groups below a group are not listed: each group is an account of its own. */
static int gitlab_list_path(struct forge_session *s, struct arena *a, struct str login,
                            struct buf *out, struct forge_fault *fault, struct err *err)
{
    static const char query[] = "?per_page=100&order_by=id&sort=asc";
    struct forge_account account = {0};
    int code = forge_account(s, a, login, &account, fault, err);

    if (code < 0)
        return code;
    bool group = str_eq(account.type, STR("Group"));
    buf_append_str(out,
                   forge_path(a, group ? "/groups/%s/projects" : "/users/%s/projects", account.id));
    buf_append_z(out, query);
    if (group)
        buf_append_z(out, "&include_subgroups=false&with_shared=false");
    return 0;
}

static const char *const gitlab_members[] = {"/groups/%s/members/all?per_page=100",
                                             "/groups/%s/descendant_groups?per_page=100", NULL};
static const char *const gitlab_member_keys[] = {"username", "full_path"};

static const struct extra_list gitlab_lists[] = {
    {"issues",
     {{"issue", "/projects/{id}/issues?scope=all&order_by=created_at&sort=asc&per_page=100",
       .since = "updated_after"}}},
    {"pulls",
     {{"merge_request",
       "/projects/{id}/merge_requests?scope=all&order_by=created_at&sort=asc&per_page=100",
       .since = "updated_after"}}},
    {"releases", {{"release", "/projects/{id}/releases?per_page=100"}}},
};

const struct forge_kind_row forge_gitlab = {
    .api = "/api/v4",
    .accept = "application/json",
    .per_page = 100,
    .token_header = "PRIVATE-TOKEN",
    .token_before = "",
    .git_user = "oauth2",
    .probe = "/user",
    .quota_prefix = "RateLimit-",
    .sees_pushes = false,
    .repo = FORGE_FIELDS(gitlab_repo_rows),
    .account = gitlab_account,
    .list_path = gitlab_list_path,
    .repo_path = "/projects/%s",
    .members = gitlab_members,
    .member_keys = gitlab_member_keys,
    .lists = gitlab_lists,
    .list_count = ARRAY_SIZE(gitlab_lists),
};
