/* Sessions with a scripted forge: listings, accounts, and how every answer is judged. */
#include "archive/forge.h"
#include "archive/link.h"
#include "base/clock.h"
#include "unit/archive/forge_lab.h"

#define REPO(id, name)                                                                             \
    "{\"id\":" id ",\"name\":\"" name "\",\"owner\":{\"login\":\"octocat\",\"id\":1},"             \
    "\"clone_url\":\"https://elsewhere/x\",\"pushed_at\":\"2026-01-01T00:00:00Z\",\"size\":3,"     \
    "\"private\":false,\"topics\":[\"a\"],\"license\":{\"id\":9},\"default_branch\":\"main\"}"

struct seen {
    struct buf names;
    unsigned pages;
    int fail;
};

static int see(void *ctx, const struct forge_repo *r, struct err *err)
{
    struct seen *s = ctx;

    buf_appendf(&s->names, STR_FMT "/" STR_FMT " ", STR_ARG(r->id), STR_ARG(r->name));
    s->pages |= 1u << r->page;
    return s->fail ? err_code(err, s->fail) : 0;
}

static int list(struct forge_lab *l, struct seen *s, const struct forge_page *known, size_t count,
                struct forge_listing *out)
{
    *s = (struct seen){0};
    return forge_list(l->session, &l->arena, STR("octocat"), (struct forge_known){known, count},
                      see, s, out, &l->fault, &l->err);
}

TEST(archive_forge, github_headers_are_sent)
{
    static const struct forge_line lines[] = {{"/repos", NULL, "200 OK", "[" REPO("1", "a") "]"},
                                              {0}};
    static const char *const tokens[] = {"tok-secret", NULL};
    struct forge_lab l = {0};
    struct forge_listing out;
    struct seen s;

    forge_lab_start(&l, FORGE_GITHUB, lines, tokens);
    LAB_OK(list(&l, &s, NULL, 0, &out));
    CHECK_STR(buf_str(&s.names), STR("1/a "));
    CHECK_INT(out.count, 1);
    CHECK_INT(forge_lab_count(&l, "Accept: application/vnd.github+json\r\n"), 1);
    CHECK_INT(forge_lab_count(&l, "X-GitHub-Api-Version: 2022-11-28\r\n"), 1);
    CHECK_INT(forge_lab_count(&l, "User-Agent: weir-archive\r\n"), 1);
    CHECK_INT(forge_lab_count(&l, "Authorization: Bearer tok-secret\r\n"), 1);
    CHECK_INT(forge_lab_count(&l, "GET /api/users/octocat/repos?per_page=100"), 1);
    buf_release(&s.names);
    forge_lab_stop(&l);
}

/* The answers name the peer's own URL, so they are made when it is known. */
static const struct forge_line *two_pages(struct forge_lab *l)
{
    static struct forge_line lines[4];
    struct str url = str_z(peer_url(l->peer));

    lines[0] =
        (struct forge_line){"page=2", "If-None-Match: \"e2\"", "304 X\r\nETag: \"e2\"\r\n\r\n"};
    lines[1] =
        (struct forge_line){"page=2", NULL, "200 OK\r\nETag: \"e2\"", "[" REPO("2", "b") "]"};
    lines[2] =
        (struct forge_line){"/repos", "If-None-Match: \"e1\"", "304 X\r\nETag: \"e1\"\r\n\r\n"};
    lines[3] = (struct forge_line){"/repos", NULL,
                                   arena_fmt(&l->arena,
                                             "200 OK\r\nETag: \"e1\"\r\nLink: <" STR_FMT
                                             "/api/user/7/repos?page=2>; rel=\"next\"",
                                             STR_ARG(url))
                                       .p,
                                   "[" REPO("1", "a") "]"};
    return lines;
}

TEST(archive_forge, etag_304_free)
{
    struct forge_lab l = {0};
    struct forge_listing first, second;
    struct seen s;

    forge_lab_start(&l, FORGE_GITHUB, NULL, NULL);
    forge_lab_answers(&l, two_pages(&l));
    LAB_OK(list(&l, &s, NULL, 0, &first));
    CHECK_STR(buf_str(&s.names), STR("1/a 2/b "));
    CHECK_INT(s.pages, 3);
    CHECK(first.page_count == 2 && first.count == 2 && !first.unchanged);
    buf_release(&s.names);
    unsigned before = l.requests;
    LAB_OK(list(&l, &s, first.pages, first.page_count, &second));
    CHECK_INT(s.names.len, 0);
    CHECK_INT(l.requests - before, 2);
    CHECK(second.unchanged && second.page_count == 2 && second.count == 2);
    CHECK_STR(second.pages[1].url, first.pages[1].url);
    CHECK_STR(second.pages[1].etag, STR("\"e2\""));
    forge_lab_stop(&l);
}

/* GitHub sends no Link with 304. A page that was full may have got a follower meanwhile. */
TEST(archive_forge, a_full_last_page_is_looked_behind)
{
    static const struct forge_line lines[] = {
        {"page=2", NULL, "200 OK\r\nETag: \"x\"", "[" REPO("9", "new") "]"},
        {"/repos", NULL, "304 X\r\n\r\n"},
        {0}};
    struct forge_lab l = {0};
    struct forge_listing out;
    struct seen s;

    forge_lab_start(&l, FORGE_GITHUB, lines, NULL);
    struct str url =
        arena_fmt(&l.arena, "%s/api/users/octocat/repos?per_page=100&sort=full_name&type=owner",
                  peer_url(l.peer));
    struct forge_page known = {.url = url, .etag = STR("\"e\""), .repos = 100};
    LAB_OK(list(&l, &s, &known, 1, &out));
    CHECK_STR(buf_str(&s.names), STR("9/new "));
    CHECK(!out.unchanged && out.page_count == 2 && out.count == 101);
    buf_release(&s.names);
    forge_lab_stop(&l);
}

/* A list answers with each status once; the outcome and the code of base/err.h are checked. */
static void outcome(const struct forge_line *lines, enum archive_code want, int code)
{
    struct forge_lab l = {0};
    struct forge_listing out;
    struct seen s;

    forge_lab_start(&l, FORGE_GITHUB, lines, NULL);
    CHECK_INT(list(&l, &s, NULL, 0, &out), code);
    CHECK_INT(l.fault.code, want);
    buf_release(&s.names);
    forge_lab_stop(&l);
}

#define ONE(answer, body)                                                                          \
    (const struct forge_line[])                                                                    \
    {                                                                                              \
        {"/repos", NULL, answer, body},                                                            \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

TEST(archive_forge, user_404_hold)
{
    outcome(ONE("404 Not Found", "{\"message\":\"Not Found\"}"), ARCHIVE_GONE, ERR_NOT_FOUND);
    outcome(ONE("410 Gone", ""), ARCHIVE_GONE, ERR_NOT_FOUND);
}

TEST(archive_forge, repo_451_dmca)
{
    outcome(ONE("451 Unavailable", "{\"block\":{\"reason\":\"dmca\"}}"), ARCHIVE_DMCA, ERR_DENIED);
    outcome(ONE("451 Unavailable", "no json"), ARCHIVE_DMCA, ERR_DENIED);
}

TEST(archive_forge, repo_403_tos)
{
    outcome(ONE("403 Forbidden", "{\"message\":\"blocked\",\"block\":{\"reason\":\"tos\"}}"),
            ARCHIVE_TOS, ERR_DENIED);
}

TEST(archive_forge, refusals_are_never_gone)
{
    outcome(ONE("401 Unauthorized", "{}"), ARCHIVE_AUTH, ERR_DENIED);
    outcome(ONE("403 Forbidden", "{\"message\":\"no access\"}"), ARCHIVE_AUTH, ERR_DENIED);
    outcome(ONE("418 Teapot", ""), ARCHIVE_PROTOCOL, ERR_PARSE);
}

TEST(archive_forge, a_list_without_one_of_its_pages_is_not_whole)
{
    static const struct forge_line lines[] = {
        {"page=2", NULL, "404 Not Found", "{}"}, {"/repos", NULL, "304 X\r\n\r\n"}, {0}};
    struct forge_lab l = {0};
    struct forge_listing out;
    struct seen s;

    forge_lab_start(&l, FORGE_GITHUB, lines, NULL);
    struct str url =
        arena_fmt(&l.arena, "%s/api/users/octocat/repos?per_page=100&sort=full_name&type=owner",
                  peer_url(l.peer));
    struct forge_page known = {.url = url, .etag = STR("\"e\""), .repos = 100};
    CHECK_INT(list(&l, &s, &known, 1, &out), ERR_PARSE);
    CHECK_INT(l.fault.code, ARCHIVE_PROTOCOL);
    forge_lab_stop(&l);
}

#define LONG_TIME "2026-01-01T00:00:00.000000000000000000000000000000000000000000000Z"

TEST(archive_forge, lists_that_would_fill_the_memory_are_refused)
{
    struct buf page = {0};

    outcome(ONE("200 OK", "[{\"id\":1,\"name\":\"a\",\"owner\":{\"login\":\"o\"},"
                          "\"pushed_at\":\"" LONG_TIME "\"}]"),
            ARCHIVE_PROTOCOL, ERR_PARSE);
    for (unsigned i = 1; i <= 101; i++)
        buf_appendf(&page, "%c{\"id\":%u,\"name\":\"r%u\",\"owner\":{\"login\":\"o\"}}",
                    i == 1 ? '[' : ',', i, i);
    buf_append_z(&page, "]");
    outcome(ONE("200 OK", page.p), ARCHIVE_PROTOCOL, ERR_PARSE);
    buf_release(&page);
}

TEST(archive_forge, truncated_json)
{
    outcome(ONE("200 OK", "[{\"id\":1"), ARCHIVE_PROTOCOL, ERR_PARSE);
    outcome(ONE("200 OK", "{}"), ARCHIVE_PROTOCOL, ERR_PARSE);
    outcome(ONE("200 OK", "[{\"name\":\"a\"}]"), ARCHIVE_PROTOCOL, ERR_PARSE); /* no id */
    outcome(ONE("200 OK", "[{\"id\":1,\"id\":2,\"name\":\"a\",\"owner\":{\"login\":\"o\"}}]"),
            ARCHIVE_PROTOCOL, ERR_PARSE);
    outcome(ONE("304 Not Modified\r\n\r\n", NULL), ARCHIVE_PROTOCOL, ERR_PARSE);
}

TEST(archive_forge, redirects_and_links_stay_on_the_origin)
{
    outcome(ONE("302 Found\r\nLocation: http://169.254.169.254/x", ""), ARCHIVE_REDIRECT,
            ERR_DENIED);
    outcome(ONE("301 Moved", ""), ARCHIVE_REDIRECT, ERR_DENIED);
    outcome(ONE("301 Moved\r\nLocation: /api/users/octocat/repos", ""), ARCHIVE_REDIRECT,
            ERR_DENIED); /* round and round */
    outcome(ONE("200 OK\r\nLink: <http://127.0.0.2:1/x>; rel=\"next\"", "[]"), ARCHIVE_REDIRECT,
            ERR_DENIED);
    outcome(ONE("200 OK\r\nLink: <<", "[]"), ARCHIVE_PROTOCOL, ERR_PARSE);
}

TEST(archive_forge, renamed_repo_redirect)
{
    static const struct forge_line lines[] = {
        {"/repositories/5", NULL, "200 OK", REPO("5", "new")},
        {"/repositories/6", NULL, "301 Moved\r\nLocation: /api/moved/6", ""},
        {"/moved/6", NULL, "200 OK", REPO("6", "six")},
        {"/repositories/7", NULL, "200 OK", REPO("8", "other")},
        {0}};
    struct forge_lab l = {0};
    struct forge_repo r;

    forge_lab_start(&l, FORGE_GITHUB, lines, NULL);
    LAB_OK(forge_repo_by_id(l.session, &l.arena, STR("5"), &r, &l.fault, &l.err));
    CHECK_STR(r.name, STR("new"));
    CHECK_STR(r.full_name, STR("octocat/new"));
    CHECK(link_same_origin(r.clone_url, str_z(peer_url(l.peer))) && !r.foreign);
    LAB_OK(forge_repo_by_id(l.session, &l.arena, STR("6"), &r, &l.fault, &l.err));
    CHECK_STR(r.name, STR("six"));
    CHECK_INT(forge_repo_by_id(l.session, &l.arena, STR("7"), &r, &l.fault, &l.err), ERR_PARSE);
    forge_lab_stop(&l);
}

TEST(archive_forge, pages_that_lead_in_a_circle_end)
{
    struct forge_lab l = {0};
    struct forge_listing out;
    struct seen s;

    forge_lab_start(&l, FORGE_GITHUB, NULL, NULL);
    struct forge_line lines[] = {
        {"/repos", NULL,
         arena_fmt(&l.arena, "200 OK\r\nLink: <%s/api/x/repos>; rel=\"next\"", peer_url(l.peer)).p,
         "[]"},
        {0}};
    forge_lab_answers(&l, lines);
    CHECK_INT(list(&l, &s, NULL, 0, &out), ERR_PARSE);
    CHECK_INT(l.fault.code, ARCHIVE_PROTOCOL);
    CHECK_INT(l.requests, 2);
    forge_lab_stop(&l);
}

TEST(archive_forge, 5xx_then_ok)
{
    static const struct forge_line lines[] = {{"/repos", NULL, "502 Bad", "", .times = 1},
                                              {"/repos", NULL, NULL, NULL, .times = 1},
                                              {"/repos", NULL, "200 OK", "[" REPO("1", "a") "]"},
                                              {0}};
    struct forge_lab l = {0};
    struct forge_listing out;
    struct seen s;

    forge_lab_start(&l, FORGE_GITHUB, lines, NULL);
    LAB_OK(list(&l, &s, NULL, 0, &out));
    CHECK_INT(l.requests, 3);
    buf_release(&s.names);
    forge_lab_stop(&l);
    outcome(ONE("500 Oops", "{\"message\":\"x\"}"), ARCHIVE_HTTP_5XX, ERR_PEER);
}

TEST(archive_forge, server_timeout)
{
    static const struct forge_line lines[] = {
        {"/repos", NULL, "", NULL, .times = 1}, {"/repos", NULL, "200 OK", "[]"}, {0}};
    static const struct forge_line silent[] = {{"/repos", NULL, "", NULL}, {0}};
    struct forge_lab l = {.timeout_ms = 700};
    struct forge_listing out;
    struct seen s;

    forge_lab_start(&l, FORGE_GITHUB, lines, NULL);
    LAB_OK(list(&l, &s, NULL, 0, &out));
    CHECK_INT(l.requests, 2);
    forge_lab_answers(&l, silent);
    CHECK_INT(list(&l, &s, NULL, 0, &out), ERR_TIMEOUT);
    CHECK_INT(l.fault.code, ARCHIVE_TIMEOUT);
    CHECK_INT(l.requests, 5);
    forge_lab_stop(&l);
}

TEST(archive_forge, a_page_that_is_cut_is_asked_for_again)
{
    static const struct forge_line lines[] = {
        {"/repos", NULL, "200 OK\r\nContent-Length: 99\r\n\r\n[", NULL, .times = 1},
        {"/repos", NULL, "200 OK", "[]"},
        {0}};
    struct forge_lab l = {0};
    struct forge_listing out;
    struct seen s;

    forge_lab_start(&l, FORGE_GITHUB, lines, NULL);
    LAB_OK(list(&l, &s, NULL, 0, &out));
    CHECK_INT(l.requests, 2);
    forge_lab_stop(&l);
}

TEST(archive_forge, secondary_403_retry_after_rests_the_token_and_the_next_is_used)
{
    static const struct forge_line lines[] = {
        {"/repos", "Bearer token-one", "403 Forbidden\r\nRetry-After: 1000",
         "{\"message\":\"You have exceeded a secondary rate limit\"}"},
        {"/repos", "Bearer token-two", "200 OK", "[]"},
        {0}};
    static const char *const tokens[] = {"token-one", "token-two", NULL};
    struct forge_lab l = {0};
    struct forge_listing out;
    struct forge_state state;
    struct seen s;

    forge_lab_start(&l, FORGE_GITHUB, lines, tokens);
    for (int i = 0; i < 4; i++)
        LAB_OK(list(&l, &s, NULL, 0, &out));
    CHECK(forge_lab_count(&l, "token-one") <= 1);
    LAB_OK(forges_state(l.forges, &l.arena, STR("forge.test"), &state, &l.err));
    CHECK_INT(state.token_count, 2);
    CHECK_INT(state.until_ms, 0); /* one of them works */
    forge_lab_stop(&l);
}

TEST(archive_forge, primary_limit_of_all_tokens_rests_the_host)
{
    struct forge_lab l = {0};
    struct forge_listing out;
    struct seen s;
    int64_t until;

    forge_lab_start(&l, FORGE_GITHUB, NULL, NULL);
    struct forge_line lines[] = {
        {"/repos", NULL,
         arena_fmt(&l.arena,
                   "403 Forbidden\r\nx-ratelimit-limit: 60\r\nx-ratelimit-remaining: 0\r\n"
                   "x-ratelimit-reset: %lld",
                   (long long)clock_wall_ms() / 1000 + 500)
             .p,
         "{\"message\":\"API rate limit exceeded\"}"},
        {0}};
    forge_lab_answers(&l, lines);
    CHECK_INT(list(&l, &s, NULL, 0, &out), ERR_BUSY);
    CHECK_INT(l.fault.code, ARCHIVE_RATE);
    int64_t left = l.fault.rests_until_ms - clock_wall_ms();
    CHECK(left > 400 * MS_PER_S && left < 520 * MS_PER_S);
    CHECK_INT(list(&l, &s, NULL, 0, &out), ERR_BUSY);
    CHECK_INT(l.requests, 1); /* it is met once */
    LAB_OK(forges_rests(l.forges, STR("forge.test"), &until, &l.err));
    CHECK(until > clock_wall_ms());
    forge_lab_stop(&l);
}

TEST(archive_forge, token_revoked_rotates)
{
    static const struct forge_line lines[] = {
        {"/repos", "Bearer token-dead", "401 X", "{\"message\":\"Bad credentials token-dead\"}"},
        {"/rate_limit", "Bearer token-dead", "401 X", "{}"},
        {"/repos", NULL, "200 OK", "[]"},
        {0}};
    static const char *const tokens[] = {"token-dead", NULL};
    struct forge_lab l = {0};
    struct forge_listing out;
    struct forge_state state;
    struct seen s;

    forge_lab_start(&l, FORGE_GITHUB, lines, tokens);
    LAB_OK(list(&l, &s, NULL, 0, &out)); /* without a token */
    LAB_OK(list(&l, &s, NULL, 0, &out));
    CHECK_INT(forge_lab_count(&l, "Bearer token-dead"), 2);
    LAB_OK(forges_state(l.forges, &l.arena, STR("forge.test"), &state, &l.err));
    CHECK(state.token_count == 2 && state.tokens[0].dead_ms);
    CHECK(str_find(state.tokens[0].words, STR("token-dead")) < 0); /* words never hold it */
    struct str user, token;
    forge_git_auth(l.session, &user, &token);
    CHECK_INT(token.len, 0);
    forge_lab_stop(&l);
}

/* Forges hide what is private from strangers, and a host whose tokens are dead is one. */
TEST(archive_forge, nothing_is_gone_without_a_live_token)
{
    static const struct forge_line lines[] = {
        {"/re", "Bearer token-dead", "401 X", "{}"},
        {"/rate_limit", "Bearer token-dead", "401 X", "{}"},
        {"/repositories/7", NULL, "404 Not Found", "{\"message\":\"Not Found\"}"},
        {0}};
    static const char *const tokens[] = {"token-dead", NULL};
    struct forge_lab l = {0};
    struct forge_repo r;

    forge_lab_start(&l, FORGE_GITHUB, lines, tokens);
    CHECK_INT(forge_repo_by_id(l.session, &l.arena, STR("7"), &r, &l.fault, &l.err), ERR_DENIED);
    CHECK_INT(l.fault.code, ARCHIVE_AUTH);
    CHECK_INT(l.fault.http_status, 404);
    forge_lab_stop(&l);
}

/* 401 for one thing does not make a token a dead one. */
TEST(archive_forge, a_token_that_works_elsewhere_is_kept)
{
    static const struct forge_line lines[] = {{"/repos", NULL, "401 X", "{\"message\":\"no\"}"},
                                              {"/rate_limit", NULL, "200 OK", "{}"},
                                              {0}};
    static const char *const tokens[] = {"token-good", NULL};
    struct forge_lab l = {0};
    struct forge_listing out;
    struct seen s;
    struct str user, token;

    forge_lab_start(&l, FORGE_GITHUB, lines, tokens);
    CHECK_INT(list(&l, &s, NULL, 0, &out), ERR_DENIED);
    CHECK_INT(l.fault.code, ARCHIVE_AUTH);
    forge_git_auth(l.session, &user, &token);
    CHECK_STR(user, STR("x-access-token"));
    CHECK_STR(token, STR("token-good"));
    forge_lab_stop(&l);
}

TEST(archive_forge, names_that_cannot_be_stored_are_left_out)
{
    static const struct forge_line lines[] = {
        {"/repos", NULL, "200 OK\r\nETag: \"e\"",
         "[" REPO("1", "..") "," REPO("2", "good") "," REPO("3", "a/b") "]"},
        {0}};
    struct forge_lab l = {0};
    struct forge_listing out;
    struct seen s;

    forge_lab_start(&l, FORGE_GITHUB, lines, NULL);
    LAB_OK(list(&l, &s, NULL, 0, &out));
    CHECK_STR(buf_str(&s.names), STR("2/good "));
    CHECK(out.refused == 2 && out.count == 1 && out.pages[0].etag.len == 0);
    buf_release(&s.names);
    forge_lab_stop(&l);
}

TEST(archive_forge, an_error_of_the_caller_ends_the_listing)
{
    static const struct forge_line lines[] = {
        {"/repos", NULL, "200 OK", "[" REPO("1", "a") "," REPO("2", "b") "]"}, {0}};
    struct forge_lab l = {0};
    struct forge_listing out;
    struct seen s = {.fail = ERR_SHUTDOWN};

    forge_lab_start(&l, FORGE_GITHUB, lines, NULL);
    CHECK_INT(forge_list(l.session, &l.arena, STR("octocat"), (struct forge_known){0}, see, &s,
                         &out, &l.fault, &l.err),
              ERR_SHUTDOWN);
    CHECK_INT(l.fault.code, ARCHIVE_OK);
    CHECK_STR(buf_str(&s.names), STR("1/a "));
    buf_release(&s.names);
    forge_lab_stop(&l);
}

/* --- accounts of the three kinds --- */

TEST(archive_forge, user_renamed)
{
    static const struct forge_line lines[] = {
        {"/user/7 ", NULL, "200 OK", "{\"id\":7,\"login\":\"New-Name\",\"type\":\"User\"}"},
        {"/users/org ", NULL, "200 OK", "{\"id\":8,\"login\":\"Org\",\"type\":\"Organization\"}"},
        {"/users/evil ", NULL, "200 OK", "{\"id\":9,\"login\":\"../evil\",\"type\":\"User\"}"},
        {0}};
    struct forge_lab l = {0};
    struct forge_account c;

    forge_lab_start(&l, FORGE_GITHUB, lines, NULL);
    CHECK_INT(forge_account(l.session, &l.arena, STR("old"), &c, &l.fault, &l.err), ERR_NOT_FOUND);
    LAB_OK(forge_account_by_id(l.session, &l.arena,
                               &(struct forge_account){.id = STR("7"), .type = STR("User")}, &c,
                               &l.fault, &l.err));
    CHECK_STR(c.login, STR("New-Name"));
    LAB_OK(forge_account(l.session, &l.arena, STR("org"), &c, &l.fault, &l.err)); /* org_as_user */
    CHECK_STR(c.type, STR("Organization"));
    CHECK_INT(forge_account(l.session, &l.arena, STR("evil"), &c, &l.fault, &l.err), ERR_PARSE);
    forge_lab_stop(&l);
}

#define PROJECT                                                                                    \
    "{\"id\":3,\"path\":\"p\",\"namespace\":{\"id\":5,\"full_path\":\"a/b\"},\"empty_repo\":true," \
    "\"visibility\":\"internal\",\"last_activity_at\":\"t\",\"default_branch\":null,"              \
    "\"forked_from_project\":{\"id\":1},\"repository_access_level\":\"disabled\"}"

static int see_project(void *ctx, const struct forge_repo *r, struct err *err)
{
    (void)err;
    *(int *)ctx += 1;
    CHECK_STR(r->full_name, STR("a/b/p"));
    CHECK_STR(r->owner_id, STR("5"));
    CHECK(r->empty && r->is_private && r->fork && r->disabled && !r->archived);
    return 0;
}

TEST(archive_forge, gitlab_groups_have_slashes)
{
    static const struct forge_line lines[] = {
        {"/groups/a%2Fb?", NULL, "200 OK", "{\"id\":5,\"full_path\":\"A/B\"}"},
        {"/groups/5/projects", NULL, "200 OK\r\nETag: W/\"x\"", "[" PROJECT "]"},
        {"/groups/a%2Fb/members/all", NULL, "200 OK", "[{\"username\":\"ann\"}]"},
        {"/groups/a%2Fb/descendant", NULL, "200 OK", "[{\"full_path\":\"a/b/c\"}]"},
        {"/users?username=ann", NULL, "200 OK", "[{\"id\":6,\"username\":\"Ann\"}]"},
        {"/users?username=bob", NULL, "200 OK", "[]"},
        {0}};
    static const char *const tokens[] = {"glpat-secret", NULL};
    struct forge_lab l = {0};
    struct forge_listing out;
    struct forge_account c;
    int count = 0;

    forge_lab_start(&l, FORGE_GITLAB, lines, tokens);
    LAB_OK(forge_list(l.session, &l.arena, STR("a/b"), (struct forge_known){0}, see_project, &count,
                      &out, &l.fault, &l.err));
    CHECK_INT(count, 1);
    CHECK_INT(forge_lab_count(&l, "PRIVATE-TOKEN: glpat-secret"), 2);
    LAB_OK(forge_account(l.session, &l.arena, STR("ann"), &c, &l.fault, &l.err));
    CHECK_STR(c.type, STR("User"));
    CHECK_INT(forge_account(l.session, &l.arena, STR("bob"), &c, &l.fault, &l.err), ERR_NOT_FOUND);
    unsigned before = l.requests; /* the second listing needs no question for the account */
    LAB_OK(forge_list(l.session, &l.arena, STR("a/b"), (struct forge_known){out.pages, 1},
                      see_project, &count, &out, &l.fault, &l.err));
    CHECK_INT(l.requests - before, 1);
    CHECK(!forge_session_forge(l.session)->sees_pushes);
    forge_lab_stop(&l);
}

static int see_login(void *ctx, struct str login, struct err *err)
{
    (void)err;
    buf_append_str(ctx, login);
    buf_append_char(ctx, ' ');
    return 0;
}

TEST(archive_forge, members_of_an_organisation)
{
    static const struct forge_line lines[] = {
        {"/orgs/org/members", NULL, "200 OK", "[{\"login\":\"ann\"},{\"login\":\"bob\",\"id\":1}]"},
        {0}};
    struct forge_lab l = {0};
    struct buf names = {0};

    forge_lab_start(&l, FORGE_GITEA, lines, NULL);
    LAB_OK(forge_members(l.session, &l.arena, STR("org"), see_login, &names, &l.fault, &l.err));
    CHECK_STR(buf_str(&names), STR("ann bob "));
    CHECK_INT(forge_members(l.session, &l.arena, STR("no"), see_login, &names, &l.fault, &l.err),
              ERR_NOT_FOUND);
    buf_release(&names);
    forge_lab_stop(&l);
}

TEST(archive_forge, gitea_accounts_are_found_by_their_number)
{
    static const struct forge_line lines[] = {
        {"/users/search?uid=4", NULL, "200 OK",
         "{\"ok\":true,\"data\":[{\"id\":4,\"login\":\"new\",\"email\":\"x\"}]}"},
        {"/users/search?uid=5", NULL, "200 OK", "{\"ok\":true,\"data\":[]}"},
        {0}};
    struct forge_lab l = {0};
    struct forge_account c, known = {.id = STR("4"), .type = STR("User")};

    forge_lab_start(&l, FORGE_GITEA, lines, NULL);
    LAB_OK(forge_account_by_id(l.session, &l.arena, &known, &c, &l.fault, &l.err));
    CHECK_STR(c.login, STR("new"));
    known.id = STR("5");
    CHECK_INT(forge_account_by_id(l.session, &l.arena, &known, &c, &l.fault, &l.err),
              ERR_NOT_FOUND);
    CHECK_INT(l.fault.code, ARCHIVE_GONE);
    forge_lab_stop(&l);
}

TEST(archive_forge, git_429_rests_the_host_for_everything)
{
    struct forge_lab l = {0};
    struct forge_seat seat = {0};
    struct forge_listing out;
    struct seen s;

    forge_lab_start(&l, FORGE_GITHUB, NULL, NULL);
    LAB_OK(forge_git_begin(l.session, &seat, &l.fault, &l.err));
    forge_git_end(l.session, &seat);
    LAB_OK(forge_git_rest(l.session, 300, &l.fault, &l.err));
    CHECK_INT(l.fault.code, ARCHIVE_RATE);
    CHECK_INT(forge_git_begin(l.session, &seat, &l.fault, &l.err), ERR_BUSY);
    CHECK(l.fault.rests_until_ms > clock_wall_ms() + 250 * MS_PER_S);
    CHECK_INT(list(&l, &s, NULL, 0, &out), ERR_BUSY);
    CHECK_INT(l.requests, 0);
    forge_lab_stop(&l);
}
