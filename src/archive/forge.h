/* Conversations with forges: GitHub, GitLab, Gitea and Forgejo.
 *
 * A *forge* is a host with accounts and repositories, and an API that lists them. A *session* is
 * the conversation about one account: it chooses a token for every request, asks the quota whether
 * the request may be sent now (quota.h), sends it, and reads the answer. Forges may be hostile:
 * every answer has a limit, only the API's own origin is asked, and nothing in an answer can lead a
 * request or a token to another host (docs/archive.md, F1 to F9).
 *
 * A call that fails returns a code of base/err.h and fills a fault, whose outcome is in
 * parentheses:
 *   ERR_NOT_FOUND  the forge says that there is no such thing (ARCHIVE_GONE);
 *   ERR_DENIED     the thing is blocked (ARCHIVE_DMCA, ARCHIVE_TOS), weir has no right to see
 *                  it (ARCHIVE_AUTH), or the answer leads to a forbidden place (ARCHIVE_REDIRECT);
 *   ERR_BUSY       the host or its tokens rest (ARCHIVE_RATE); rests_until_ms says until when;
 *   ERR_TIMEOUT    the server was too slow (ARCHIVE_TIMEOUT);
 *   ERR_PEER, ERR_UNAVAILABLE, ERR_CLOSED
 *                  the server has a fault or cannot be reached (ARCHIVE_HTTP_5XX);
 *   ERR_PARSE, ERR_TOO_LARGE
 *                  the answer is malformed, cut or too large (ARCHIVE_PROTOCOL);
 *   ERR_CANCELED   the caller's flag was set; the fault has ARCHIVE_OK.
 * Other codes come from the store (ARCHIVE_STORAGE).
 *
 * Only one thread at a time may use a session. But several threads at once may make the calls for
 * git (forge_git_...). */
#ifndef ARCHIVE_FORGE_H
#define ARCHIVE_FORGE_H

#include "archive/large.h"
#include "archive/outcome.h"
#include "base/arena.h"
#include "base/vec.h"

#include <stdatomic.h>

struct forges;
struct forge_session;

enum forge_kind { FORGE_GITHUB, FORGE_GITLAB, FORGE_GITEA, FORGE_KINDS };
extern const char *const forge_kind_names[FORGE_KINDS + 1]; /* "github", ...; ended by NULL */

enum {
    FORGE_PAGES_MAX = 2000,
    FORGE_PAGE_BYTES_MAX = 16 * 1024 * 1024,
    FORGE_ANSWER_BYTES_MAX = 1024 * 1024, /* most bytes of an answer about one thing */
    FORGE_TYPE_MAX = 64,                  /* most bytes of an account's type */
    FORGE_URL_MAX = 2048,
    FORGE_TOKENS_MAX = 100, /* most tokens of one host */
    FORGE_TOKEN_MAX = 255,  /* most bytes of a token */
    FORGE_TEXT_MAX = 1024,  /* most bytes of any text from an answer */
    FORGE_TIME_MAX = 64,    /* most bytes of a time */
};

/* Options of a forge: the things that are saved beside the bundles. */
struct forge_wants {
    bool zip; /* the default branch as a ZIP file */
    bool wikis, gists, lfs, issues, pulls, releases;
};

/* Reads a list of options with commas between them, such as "zip,wikis". ERR_INVALID: a word is not
 * an option; the text of `err` names it. */
int forge_wants_read(struct forge_wants *out, struct str text, struct err *err) MUST_CHECK;
/* Appends the options that are on, with commas between them. */
void forge_wants_write(struct buf *out, const struct forge_wants *w);
/* Whether an option is on that saves things whose changes do not show in the list of repositories,
 * such as comments or wikis. */
bool forge_wants_parts(const struct forge_wants *w);

/* Where the forge was defined. */
enum forge_source { FORGE_BUILT_IN, FORGE_FIXED /* configuration file */, FORGE_STORED };

struct forge {
    struct str host; /* lower case, perhaps with a port */
    struct str api;  /* base URL of the API, without a '/' at its end */
    struct str git;  /* base URL of repositories, without a '/' at its end */
    struct str bucket;
    enum forge_kind kind;
    enum forge_source source;
    bool allow_private; /* an administrator has named the host, so it may have any address */
    bool git_given; /* `git` was configured, so the clone URLs that the API gives are not used */
    /* True if every push changes `pushed_at`. If it is false, an unchanged listing does not prove
     * that nobody has pushed. It is false for GitLab, which updates a project's time of activity at
     * most once an hour. */
    bool sees_pushes;
    struct forge_wants wants;
    size_t tokens; /* how many tokens the host has */
};

struct forge_repo {
    /* The repository's number at the forge, which stays when the repository is renamed. */
    struct str id;
    struct str name;
    struct str full_name; /* <owner>/<name> */
    struct str owner;     /* login of the owner; a path with '/' for GitLab's groups */
    struct str owner_id;
    struct str clone_url; /* on the forge's own origin; empty when `foreign` */
    struct str default_branch, pushed_at;
    uint64_t size_kb; /* size in KiB as the forge reports it; may be outdated; 0: not reported */
    unsigned page;    /* number of the page on which the repository was listed, from 0 */
    bool foreign;     /* the clone URL leads to another host: the outcome is ARCHIVE_REDIRECT */
    bool empty, disabled, is_private, fork, archived, has_wiki;
};

/* A page of a listing. Pages are saved in the record. The next sync asks for them with their
 * ETags. */
struct forge_page {
    struct str url;
    struct str etag; /* empty: the page is read in full each time */
    unsigned repos;  /* how many repositories of the page were passed to each() */
    bool unchanged;  /* the forge answered 304 */
};

struct forge_account {
    struct str id, login, type; /* type: "User", "Organization" */
};

struct forge_listing {
    struct forge_page *pages; /* in the arena */
    size_t page_count;
    uint64_t count;   /* repositories that were passed to each(), plus those on unchanged pages */
    uint64_t refused; /* entries that were left out because their names cannot be part of a key */
    bool unchanged;   /* every page is as the caller knew it */
};

/* Why a call failed. Strings are in the arena of the call. */
struct forge_fault {
    enum archive_code code;
    int http_status;       /* status of the answer; 0: there was no answer */
    int64_t retry_after_s; /* value of Retry-After; 0: the server sent none */
    /* For ARCHIVE_RATE: when the host or one of its tokens may be used again. */
    int64_t rests_until_ms;
    struct str words; /* the server's message, on one line */
    struct str request_id, block_reason;
};

/* Opens a session with a host. Setting `cancel` ends every wait of the session; it may be NULL.
 * ERR_NOT_FOUND: the host is not a forge that weir knows. */
int forge_session_open(struct forge_session **out, struct forges *f, struct str host,
                       const _Atomic(bool) *cancel, struct err *err) MUST_CHECK;
void forge_session_close(struct forge_session *s); /* NULL is fine */
/* The forge of the session; valid until the session is closed. */
const struct forge *forge_session_forge(const struct forge_session *s);
/* Pages of lists are counted by this hold from now on; NULL: they are not counted. */
void forge_session_set_hold(struct forge_session *s, struct large_hold *hold);
/* How many requests the session has sent to the API. */
unsigned forge_session_requests(const struct forge_session *s);

/* Finds an account by its login. */
int forge_account(struct forge_session *s, struct arena *a, struct str login,
                  struct forge_account *out, struct forge_fault *fault, struct err *err) MUST_CHECK;
/* Finds an account by its number, which a rename does not change. `known` has the number (`id`) and
 * the type. */
int forge_account_by_id(struct forge_session *s, struct arena *a, const struct forge_account *known,
                        struct forge_account *out, struct forge_fault *fault,
                        struct err *err) MUST_CHECK;

/* The pages of the last listing. */
struct forge_known {
    const struct forge_page *pages;
    size_t count;
};

typedef int forge_repo_fn(void *ctx, const struct forge_repo *r, struct err *err);

/* Lists the repositories of an account page by page, and calls each() for every repository. Memory
 * does not grow with the number of repositories. A page of `known` that has an ETag is requested
 * with this ETag. If the forge answers 304, each() is not called for the repositories of that page,
 * because the record has them. The argument of each() is borrowed for the call. An error of each()
 * ends the listing; the fault then has ARCHIVE_OK. */
int forge_list(struct forge_session *s, struct arena *a, struct str login, struct forge_known known,
               forge_repo_fn *each, void *ctx, struct forge_listing *out, struct forge_fault *fault,
               struct err *err) MUST_CHECK;

/* Finds a repository by its number, which a rename or a transfer does not change. */
int forge_repo_by_id(struct forge_session *s, struct arena *a, struct str id,
                     struct forge_repo *out, struct forge_fault *fault, struct err *err) MUST_CHECK;

typedef int forge_login_fn(void *ctx, struct str login, struct err *err);

/* Calls each() for the login of every member of an organisation that the forge shows. On GitLab,
 * also calls it for the paths of the groups below the organisation. A login may come twice. */
int forge_members(struct forge_session *s, struct arena *a, struct str organisation,
                  forge_login_fn *each, void *ctx, struct forge_fault *fault,
                  struct err *err) MUST_CHECK;

/* A gist: a small git repository of an account. */
struct forge_gist {
    struct str id, url;
    bool foreign; /* it is on the forge's separate host for gists, to which no token is sent */
};
typedef int forge_gist_fn(void *ctx, const struct forge_gist *g, struct err *err);

/* Calls each() for every gist of an account that has changed since a time (ms since 1970; 0: all).
 * On a forge without gists the call succeeds and finds none. A gist is left out if its URL is
 * neither on the forge's own origin nor on gist.HOST. */
int forge_gists(struct forge_session *s, struct arena *a, struct str login, int64_t since_ms,
                forge_gist_fn *each, void *ctx, struct forge_fault *fault,
                struct err *err) MUST_CHECK;

/* --- git --- */

/* A seat allows one transfer from the host's git server. A host has 8 seats, which all processes
 * share. forge_git_begin() waits for a seat. ERR_BUSY: the host rests, or no seat became free in
 * time. */
struct forge_seat {
    char id[40];
};
int forge_git_begin(struct forge_session *s, struct forge_seat *seat, struct forge_fault *fault,
                    struct err *err) MUST_CHECK;
void forge_git_end(struct forge_session *s, struct forge_seat *seat);
/* The user and the token for HTTP Basic with the git server. Both are empty if the host has no live
 * token. They are valid until the session is closed, and may be sent only to the origin of
 * forge.git. */
void forge_git_auth(struct forge_session *s, struct str *user, struct str *token);
/* Called when the git server has answered 429. The host then rests for all processes. The rest
 * lasts as long as the server asked for, or otherwise twice as long as the last rest. Sets
 * fault->rests_until_ms. */
int forge_git_rest(struct forge_session *s, int64_t retry_after_s, struct forge_fault *fault,
                   struct err *err) MUST_CHECK;

#endif
