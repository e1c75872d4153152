/* Names and keys of the archive: the vectors of the seed's rule, folding, and names that would
 * leave their folder. */
#include "archive/names.h"
#include "unit/test.h"

static struct archive_account account(struct arena *a, const char *member)
{
    struct archive_account c = {0};
    struct err err = {0};

    CHECK_OK(archive_account_read(&c, a, str_z(member), &err));
    return c;
}

/* The folders are the SHA-256 of the login, with two digits for each byte. */
TEST(archive_names, path_vectors_padding)
{
    static const struct {
        const char *login, *folders;
    } rows[] = {
        {"octocat", "a6/65/81/57"}, {"montyanderson", "bc/be/22/6e"}, {"calebcase", "70/d1/ea/99"},
        {"mojombo", "2a/c7/9a/a5"}, {"torvalds", "6d/01/7a/c2"},      {"antirez", "7e/e1/d2/0a"},
    };
    struct arena a = {0};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct archive_account c = account(&a, arena_fmt(&a, "github.com/%s", rows[i].login).p);
        CHECK_STR(archive_folder(&c, &a), arena_fmt(&a, "%s/%s/", rows[i].folders, rows[i].login));
    }
    arena_release(&a);
}

/* The seed prints 2b/cb/c2/d5 for octocat, which is the SHA-1 of "octocat\n". The rule counts. */
TEST(archive_names, seed_example_is_sha1_typo)
{
    struct arena a = {0};
    struct archive_account c = account(&a, "github.com/octocat");

    CHECK_STR(archive_key(&c, &a, ARCHIVE_ZIP, STR("Hello-World")),
              STR("a6/65/81/57/octocat/Hello-World.zip"));
    arena_release(&a);
}

TEST(archive_names, case_folding_user)
{
    struct arena a = {0};
    struct archive_account c = account(&a, "GitHub.com/OctoCat");

    CHECK_STR(archive_account_member(&c, &a), STR("github.com/octocat"));
    CHECK_STR(archive_key(&c, &a, ARCHIVE_BUNDLE, STR("Hello-World")),
              STR("a6/65/81/57/octocat/Hello-World.bundle"));
    CHECK_STR(archive_key(&c, &a, ARCHIVE_RECORD, STR_EMPTY), STR("a6/65/81/57/octocat.json"));
    arena_release(&a);
}

TEST(archive_names, two_hosts_same_login)
{
    struct arena a = {0};
    struct archive_account hub = account(&a, "github.com/octocat");
    struct archive_account berg = account(&a, "codeberg.org/octocat");
    struct archive_account port = account(&a, "git.example:8443/group/sub");

    CHECK_STR(archive_account_lock(&hub, &a), STR("lock:octocat"));
    CHECK_STR(archive_account_lock(&berg, &a), STR("lock:codeberg.org/octocat"));
    CHECK_STR(archive_account_lock(&port, &a), STR("lock:git.example:8443/group/sub"));
    arena_release(&a);
}

TEST(archive_names, names_that_would_leave_their_folder_are_refused)
{
    static const char *const members[] = {
        "octocat",
        "/octocat",
        "github.com/",
        "github.com",
        "github.com/..",
        "github.com/.a",
        "github.com/-a",
        "github.com/a/../b",
        "github.com/a//b",
        "github.com/a/",
        "github.com/a b",
        "github.com/a\nb",
        "github.com/a@b",
        "github.com/\xc3\xa4",
        "git..hub/a",
        ".github.com/a",
        "github.com./a",
        "github.com:0/a",
        "github.com:65536/a",
        "github.com:08/a",
        "github.com:/a",
        "git_hub/a",
        "-h/a",
        "h:1:2/a",
        "a/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18/19/20/21",
    };
    static const char *const repos[] = {"",    ".",    "..",       "a/b", "a b",
                                        "a@b", "a\tb", "\xc3\xa4", "a\\b"};
    struct archive_account c;
    struct err err = {0};
    struct arena a = {0};
    char long_name[ARCHIVE_REPO_MAX + 2];

    for (size_t i = 0; i < ARRAY_SIZE(members); i++)
        CHECK_INT(archive_account_read(&c, &a, str_z(members[i]), &err), ERR_INVALID);
    for (size_t i = 0; i < ARRAY_SIZE(repos); i++)
        CHECK(!archive_repo_ok(str_z(repos[i])));
    CHECK(archive_repo_ok(STR(".github")) && archive_repo_ok(STR("-a")) &&
          archive_repo_ok(STR("_")));
    memset(long_name, 'a', sizeof(long_name));
    CHECK(archive_repo_ok(str_n(long_name, ARCHIVE_REPO_MAX)));
    CHECK(!archive_repo_ok(str_n(long_name, ARCHIVE_REPO_MAX + 1)));
    arena_release(&a);
}

static void check_key(const char *key, enum archive_kind kind, const char *login, const char *repo,
                      const char *extra)
{
    struct archive_object o;

    CHECK_INT(archive_key_read(&o, str_z(key)), 0);
    CHECK_INT(o.kind, kind);
    CHECK_STR(o.login, str_z(login));
    CHECK_STR(o.repo, str_z(repo));
    CHECK_STR(o.extra, str_z(extra));
}

TEST(archive_names, suffix_parse_dotted_names)
{
    check_key("a6/65/81/57/octocat.json", ARCHIVE_RECORD, "octocat", "", "");
    check_key("a6/65/81/57/octocat.new", ARCHIVE_ADDED, "octocat", "", "");
    check_key("a6/65/81/57/octocat.removed", ARCHIVE_REMOVED, "octocat", "", "");
    check_key("a6/65/81/57/octocat.options", ARCHIVE_OPTIONS, "octocat", "", "");
    check_key("a6/65/81/57/octocat.error", ARCHIVE_ACCOUNT_ERROR, "octocat", "", "");
    check_key("a6/65/81/57/octocat/a.zip.bundle", ARCHIVE_BUNDLE, "octocat", "a.zip", "");
    check_key("a6/65/81/57/octocat/a.bundle.zip", ARCHIVE_ZIP, "octocat", "a.bundle", "");
    check_key("a6/65/81/57/octocat/.error.error", ARCHIVE_REPO_ERROR, "octocat", ".error", "");
    check_key("a6/65/81/57/octocat/a@wiki.bundle", ARCHIVE_EXTRA, "octocat", "a", "wiki.bundle");
    check_key("a6/65/81/57/octocat/@gists/1.bundle", ARCHIVE_EXTRA, "octocat", "",
              "gists/1.bundle");
    check_key("a6/65/81/57/octocat/a@assets/1/x@y", ARCHIVE_EXTRA, "octocat", "a", "assets/1/x@y");
}

/* A login of GitLab has '/', so that only the hash tells where it ends. */
TEST(archive_names, every_key_is_read_back)
{
    static const char *const members[] = {"github.com/octocat", "gitlab.com/group/sub.json/x",
                                          "gitlab.com/a/b/c/d/e", "gitea.example/a.error"};
    static const char *const repos[] = {"a", "a.json", ".github", "octocat.error", "x.new"};
    struct arena a = {0};

    for (size_t i = 0; i < ARRAY_SIZE(members); i++)
        for (enum archive_kind kind = 0; kind < ARCHIVE_EXTRA; kind++)
            for (size_t r = 0; r < ARRAY_SIZE(repos); r++) {
                struct archive_account c = account(&a, members[i]);
                struct str repo = kind <= ARCHIVE_OPTIONS ? STR_EMPTY : str_z(repos[r]);
                struct archive_object o;
                CHECK_INT(archive_key_read(&o, archive_key(&c, &a, kind, repo)), 0);
                CHECK_INT(o.kind, kind);
                CHECK_STR(o.login, c.login);
                CHECK_STR(o.repo, repo);
            }
    arena_release(&a);
}

TEST(archive_names, keys_of_others_are_not_found)
{
    static const char *const keys[] = {
        "",
        "_map/1.json",
        "a6/65/81/57",
        "a6/65/81/57/octocat",
        "a6/65/81/57/octocat/",
        "a6/65/81/57/octocat/a",
        "a6/65/81/57/octocat/a/b.bundle",
        "a6/65/81/57/octocat/@",
        "a6/65/81/58/octocat/a.bundle",
        "A6/65/81/57/octocat/a.bundle",
        "a6/65/81/57/Octocat/a.bundle",
        "a6/65/81/57/octocat/...bundle",
    };
    struct archive_object o;

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        CHECK_INT(archive_key_read(&o, str_z(keys[i])), ERR_NOT_FOUND);
}
