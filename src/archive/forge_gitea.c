/* Gitea and Forgejo: the API v1. Its listings have no ETags, and its repositories may be SHA-256.
 */
#include "archive/extras.h"
#include "archive/forge_int.h"

static const struct forge_field gitea_repo_rows[] = {
    FORGE_REPO("id", ID, id, .required = true),
    FORGE_REPO("name", TEXT, name, .required = true),
    FORGE_REPO("owner.login", TEXT, owner, .required = true),
    FORGE_REPO("owner.id", ID, owner_id),
    FORGE_REPO("clone_url", TEXT, clone_url),
    FORGE_REPO("default_branch", TEXT, default_branch),
    FORGE_REPO("updated_at", TEXT, pushed_at),
    FORGE_REPO("size", NUMBER, size_kb),
    FORGE_REPO("empty", BOOL, empty),
    FORGE_REPO("private", BOOL, is_private),
    FORGE_REPO("fork", BOOL, fork),
    FORGE_REPO("archived", BOOL, archived),
    FORGE_REPO("has_wiki", BOOL, has_wiki),
};

static const struct forge_field gitea_account_rows[] = {
    {"id", FORGE_FIELD_ID, offsetof(struct forge_account, id), true},
    {"login", FORGE_FIELD_TEXT, offsetof(struct forge_account, login), true},
};
static const struct forge_fields gitea_account_fields = FORGE_FIELDS(gitea_account_rows);

/* Looks an account up by its number. The answer is {"ok": true, "data": [...]}. */
static int gitea_account_by_id(struct forge_session *s, struct arena *a, struct str id,
                               struct forge_account *out, struct forge_fault *fault,
                               struct err *err)
{
    struct buf body = BUF_INIT(FORGE_ANSWER_BYTES_MAX);
    struct forge_answer answer;
    struct scan scan;
    char key[16];
    int code = forge_ask(
        s, a, &(struct forge_ask){.url = forge_path(a, "/users/search?uid=%s", id), .body = &body},
        &answer, fault, err);

    if (code == 0) {
        scan_init(&scan, buf_str(&body));
        scan_open(&scan, '{');
        while (scan_key(&scan, key, sizeof(key))) {
            if (strcmp(key, "data") != 0 || scan_peek(&scan) != SCAN_ARRAY || out->id.len) {
                scan_skip(&scan, NULL);
                continue;
            }
            scan_open(&scan, '[');
            while (scan_more(&scan))
                if (!out->id.len)
                    forge_read_object(&scan, a, &gitea_account_fields, out);
                else
                    scan_skip(&scan, NULL);
        }
        if (scan_end(&scan, err) < 0)
            code = forge_malformed(fault, ERR_PARSE, err);
        else if (!str_eq(out->id, id))
            code = forge_fail(fault, ARCHIVE_GONE, err, "the forge has no account with this id");
    }
    buf_release(&body);
    return code;
}

/* Gitea also answers for organisations at the path of users. */
static int gitea_account(struct forge_session *s, struct arena *a, struct str login,
                         const struct forge_account *known, struct forge_account *out,
                         struct forge_fault *fault, struct err *err)
{
    struct forge_account found = {0};
    int code = known ? gitea_account_by_id(s, a, known->id, &found, fault, err)
                     : forge_ask_object(s, a, forge_path(a, "/users/%s", login),
                                        &gitea_account_fields, &found, fault, err);

    if (code == 0) {
        found.type = STR("User");
        *out = found;
    }
    return code;
}

static int gitea_list_path(struct forge_session *s, struct arena *a, struct str login,
                           struct buf *out, struct forge_fault *fault, struct err *err)
{
    (void)s, (void)fault, (void)err;
    buf_append_str(out, forge_path(a, "/users/%s/repos?limit=50", login));
    return 0;
}

static const char *const gitea_members[] = {"/orgs/%s/members?limit=50", NULL};
static const char *const gitea_member_keys[] = {"login"};

static const struct extra_list gitea_lists[] = {
    {"issues",
     {{"issue", "/repos/{owner}/{repo}/issues?state=all&type=issues&limit=50", .since = "since"},
      {"issue_comment", "/repos/{owner}/{repo}/issues/comments?limit=50", .since = "since"}}},
    {"pulls",
     {{"pull", "/repos/{owner}/{repo}/pulls?state=all&sort=recentupdate&limit=50",
       .newest_first = true}}},
    {"releases", {{"release", "/repos/{owner}/{repo}/releases?limit=50"}}},
};

const struct forge_kind_row forge_gitea = {
    .api = "/api/v1",
    .accept = "application/json",
    .per_page = 50,
    .token_header = "Authorization",
    .token_before = "token ",
    .git_user = "x-access-token",
    .probe = "/user",
    .sees_pushes = true,
    .repo = FORGE_FIELDS(gitea_repo_rows),
    .account = gitea_account,
    .list_path = gitea_list_path,
    .repo_path = "/repositories/%s",
    .members = gitea_members,
    .member_keys = gitea_member_keys,
    .lists = gitea_lists,
    .list_count = ARRAY_SIZE(gitea_lists),
};
