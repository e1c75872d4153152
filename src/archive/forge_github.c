/* GitHub and GitHub Enterprise: the REST API as documented at docs.github.com/rest. */
#include "archive/extras.h"
#include "archive/forge_int.h"

static const struct forge_field github_repo_rows[] = {
    FORGE_REPO("id", ID, id, .required = true),
    FORGE_REPO("name", TEXT, name, .required = true),
    FORGE_REPO("owner.login", TEXT, owner, .required = true),
    FORGE_REPO("owner.id", ID, owner_id),
    FORGE_REPO("clone_url", TEXT, clone_url),
    FORGE_REPO("default_branch", TEXT, default_branch),
    FORGE_REPO("pushed_at", TEXT, pushed_at),
    FORGE_REPO("size", NUMBER, size_kb),
    FORGE_REPO("disabled", BOOL, disabled),
    FORGE_REPO("private", BOOL, is_private),
    FORGE_REPO("fork", BOOL, fork),
    FORGE_REPO("archived", BOOL, archived),
    FORGE_REPO("has_wiki", BOOL, has_wiki),
};

static const struct forge_field github_account_rows[] = {
    {"id", FORGE_FIELD_ID, offsetof(struct forge_account, id), true},
    {"login", FORGE_FIELD_TEXT, offsetof(struct forge_account, login), true},
    {"type", FORGE_FIELD_TEXT, offsetof(struct forge_account, type), true},
};
static const struct forge_fields github_account_fields = FORGE_FIELDS(github_account_rows);

/* Both users and organisations are found at the path with the login. */
static int github_account(struct forge_session *s, struct arena *a, struct str login,
                          const struct forge_account *known, struct forge_account *out,
                          struct forge_fault *fault, struct err *err)
{
    struct str path =
        known ? forge_path(a, "/user/%s", known->id) : forge_path(a, "/users/%s", login);

    return forge_ask_object(s, a, path, &github_account_fields, out, fault, err);
}

/* Sorting by name keeps the order stable, so unchanged pages keep their ETags. */
static int github_list_path(struct forge_session *s, struct arena *a, struct str login,
                            struct buf *out, struct forge_fault *fault, struct err *err)
{
    (void)s, (void)fault, (void)err;
    buf_append_str(out,
                   forge_path(a, "/users/%s/repos?per_page=100&sort=full_name&type=owner", login));
    return 0;
}

static const char *const github_members[] = {"/orgs/%s/members?per_page=100", NULL};
static const char *const github_member_keys[] = {"login"};

/* Lists with a checkpoint are sorted by creation. So an item that changes meanwhile does not shift
 * other items to pages that were read already. */
static const struct extra_list github_lists[] = {
    {"issues",
     {{"issue", "/repos/{owner}/{repo}/issues?state=all&sort=created&direction=asc&per_page=100",
       .since = "since"},
      {"issue_comment",
       "/repos/{owner}/{repo}/issues/comments?sort=created&direction=asc&per_page=100",
       .since = "since"}}},
    {"pulls",
     {{"pull", "/repos/{owner}/{repo}/pulls?state=all&sort=updated&direction=desc&per_page=100",
       .newest_first = true},
      {"review_comment",
       "/repos/{owner}/{repo}/pulls/comments?sort=created&direction=asc&per_page=100",
       .since = "since"}}},
    {"releases", {{"release", "/repos/{owner}/{repo}/releases?per_page=100"}}},
};

const struct forge_kind_row forge_github = {
    .api = "/api/v3",
    .accept = "application/vnd.github+json",
    .version_header = "X-GitHub-Api-Version",
    .version = "2022-11-28",
    .per_page = 100,
    .token_header = "Authorization",
    .token_before = "Bearer ",
    .git_user = "x-access-token",
    .probe = "/rate_limit",
    .quota_prefix = "x-ratelimit-",
    .sees_pushes = true,
    .repo = FORGE_FIELDS(github_repo_rows),
    .account = github_account,
    .list_path = github_list_path,
    .repo_path = "/repositories/%s",
    .members = github_members,
    .member_keys = github_member_keys,
    .lists = github_lists,
    .list_count = ARRAY_SIZE(github_lists),
    .gists_path = "/users/%s/gists?per_page=100",
};
