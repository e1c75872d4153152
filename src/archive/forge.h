/* Conversations with forges: GitHub, GitLab, Gitea and Forgejo.
 *
 * A *forge* is a host with accounts and repositories, and an API that lists them. A *session* is
 * the conversation about one account: it chooses a token for every request, asks the quota whether
 * the request may be sent now (quota.h), sends it, and reads the answer. Forges are hostile: every
 * answer has a limit, only the API's own origin is asked, and nothing in an answer can lead a
 * request or a token to another host (docs/archive.md, F1 to F9).
 *
 * A call that fails returns a code of base/err.h and fills a fault, which has the outcome:
 *   ERR_NOT_FOUND  the forge says that there is no such thing (ARCHIVE_GONE);
 *   ERR_DENIED     blocked (ARCHIVE_DMCA, ARCHIVE_TOS), no right to see it (ARCHIVE_AUTH), or led
 *                  to a place where weir may not go (ARCHIVE_REDIRECT);
 *   ERR_BUSY       the host or its tokens rest (ARCHIVE_RATE); rests_until_ms says until when;
 *   ERR_TIMEOUT    ARCHIVE_TIMEOUT;
 *   ERR_PEER, ERR_UNAVAILABLE, ERR_CLOSED
 *                  the server has a fault or cannot be reached (ARCHIVE_HTTP_5XX);
 *   ERR_PARSE, ERR_TOO_LARGE
 *                  the answer is malformed, cut or too large (ARCHIVE_PROTOCOL);
 *   ERR_CANCELED   the caller's flag was set; the fault has ARCHIVE_OK.
 * Other codes come from the store (ARCHIVE_STORAGE).
 *
 * One thread at a time uses a session; the calls for git may be made by several threads at once. */
#ifndef ARCHIVE_FORGE_H
#define ARCHIVE_FORGE_H

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
    FORGE_TYPE_MAX = 64, /* bytes of an account's type */
    FORGE_URL_MAX = 2048,
    FORGE_TOKENS_MAX = 100, /* tokens of one host */
    FORGE_TOKEN_MAX = 255,  /* bytes of a token */
    FORGE_TEXT_MAX = 1024,  /* most bytes of any text that is taken from an answer */
    FORGE_TIME_MAX = 64,    /* bytes of a time */
};

/* Options of a forge: the things that are saved beside the bundles. */
struct forge_wants {
    bool zip; /* the default branch as a ZIP file */
    bool wikis, gists, lfs, issues, pulls, releases;
};

/* Reads a list of options with commas between them, such as "zip,wikis". ERR_INVALID: the text of
 * `err` names the word that is no option. */
int forge_wants_read(struct forge_wants *out, struct str text, struct err *err) MUST_CHECK;
/* Appends the options that are on, with commas between them. */
void forge_wants_write(struct buf *out, const struct forge_wants *w);
/* Whether an option is on for things whose changes do not show in the list of repositories. */
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
    /* True if every push changes `pushed_at`. Where it is false, an unchanged listing does not
     * prove that nothing was pushed: GitLab counts a project's activity only once an hour. */
    bool sees_pushes;
    struct forge_wants wants;
    size_t tokens; /* how many tokens the host has */
};

struct forge_repo {
    struct str id; /* the forge's number of it, which stays when the repository is renamed */
    struct str name;
    struct str full_name; /* <owner>/<name> */
    struct str owner;     /* login of the owner; a path with '/' for GitLab's groups */
    struct str owner_id;
    struct str clone_url; /* on the forge's own origin; empty when `foreign` */
    struct str default_branch, pushed_at;
    uint64_t size_kb; /* in KiB as the forge says, which may be outdated; 0: not said */
    unsigned page;    /* which page of the listing it was on, from 0 */
    bool foreign;     /* the clone URL leads to another host: the outcome is ARCHIVE_REDIRECT */
    bool empty, disabled, is_private, fork, archived, has_wiki;
};

/* A page of a listing. Pages are kept in the record, and asked for with their ETag. */
struct forge_page {
    struct str url;
    struct str etag; /* empty: the page is read in full each time */
    unsigned repos;  /* how many repositories of the page were given to each() */
    bool unchanged;  /* the forge answered 304 */
};

struct forge_account {
    struct str id, login, type; /* type: "User", "Organization" */
};

struct forge_listing {
    struct forge_page *pages; /* in the arena */
    size_t page_count;
    uint64_t count;   /* repositories that each() got, plus those on unchanged pages */
    uint64_t refused; /* entries that were left out, because their names cannot be stored */
    bool unchanged;   /* every page is as the caller knew it */
};

/* Why a call failed. Strings are in the arena of the call. */
struct forge_fault {
    enum archive_code code;
    int http_status;        /* of the answer; 0: there was no answer */
    int64_t retry_after_s;  /* as the server said; 0: it did not say */
    int64_t rests_until_ms; /* ARCHIVE_RATE: when the host or a token of it may be used again */
    struct str words;       /* the server's message, on one line */
    struct str request_id, block_reason;
};

/* Opens a session with a host. `cancel` may be NULL; it ends every wait of the session.
 * ERR_NOT_FOUND: the host is not a forge that weir knows. */
int forge_session_open(struct forge_session **out, struct forges *f, struct str host,
                       const _Atomic(bool) *cancel, struct err *err) MUST_CHECK;
void forge_session_close(struct forge_session *s); /* NULL is fine */
/* The forge of the session; valid until the session is closed. */
const struct forge *forge_session_forge(const struct forge_session *s);
/* How many requests the session has sent to the API. */
unsigned forge_session_requests(const struct forge_session *s);

/* Looks an account up by its login. */
int forge_account(struct forge_session *s, struct arena *a, struct str login,
                  struct forge_account *out, struct forge_fault *fault, struct err *err) MUST_CHECK;
/* Looks an account up by the number that it had, which a rename does not change. `known` has its id
 * and type. */
int forge_account_by_id(struct forge_session *s, struct arena *a, const struct forge_account *known,
                        struct forge_account *out, struct forge_fault *fault,
                        struct err *err) MUST_CHECK;

/* The pages of the last listing. */
struct forge_known {
    const struct forge_page *pages;
    size_t count;
};

typedef int forge_repo_fn(void *ctx, const struct forge_repo *r, struct err *err);

/* Lists the repositories of an account page by page, in memory that does not grow with their
 * number. A page of `known` that has an ETag is asked for with it, and when the forge answers 304
 * nothing of that page is given to each(), because the record has its repositories. The argument of
 * each() is borrowed for the call. An error of each() ends the listing; the fault then has
 * ARCHIVE_OK. */
int forge_list(struct forge_session *s, struct arena *a, struct str login, struct forge_known known,
               forge_repo_fn *each, void *ctx, struct forge_listing *out, struct forge_fault *fault,
               struct err *err) MUST_CHECK;

/* Looks a repository up by its number, which a rename or a transfer does not change. */
int forge_repo_by_id(struct forge_session *s, struct arena *a, struct str id,
                     struct forge_repo *out, struct forge_fault *fault, struct err *err) MUST_CHECK;

typedef int forge_login_fn(void *ctx, struct str login, struct err *err);

/* Gives each() the logins of the members of an organisation that the forge shows, and for GitLab
 * also the paths of the groups below it. A login may come twice. */
int forge_members(struct forge_session *s, struct arena *a, struct str organisation,
                  forge_login_fn *each, void *ctx, struct forge_fault *fault,
                  struct err *err) MUST_CHECK;

/* A gist: a small git repository of an account. */
struct forge_gist {
    struct str id, url;
    bool foreign; /* it is on the forge's separate host for gists, to which no token is sent */
};
typedef int forge_gist_fn(void *ctx, const struct forge_gist *g, struct err *err);

/* Gives each() the gists of an account that were changed since a time (ms since 1970; 0: all). A
 * forge without gists has none. A gist whose URL is on another host than the forge's, or gist.HOST,
 * is left out. */
int forge_gists(struct forge_session *s, struct arena *a, struct str login, int64_t since_ms,
                forge_gist_fn *each, void *ctx, struct forge_fault *fault,
                struct err *err) MUST_CHECK;

/* --- git --- */

/* A seat allows one transfer from the host's git server. A host has 8 seats for all processes
 * together. forge_git_begin() waits for a seat. ERR_BUSY: the host rests. */
struct forge_seat {
    char id[40];
};
int forge_git_begin(struct forge_session *s, struct forge_seat *seat, struct forge_fault *fault,
                    struct err *err) MUST_CHECK;
void forge_git_end(struct forge_session *s, struct forge_seat *seat);
/* The user and the token of HTTP Basic for git; both are empty where there is no live token. They
 * are valid until the session is closed, and may be sent only to the origin of forge.git. */
void forge_git_auth(struct forge_session *s, struct str *user, struct str *token);
/* Called when the git server has answered 429. The host rests for all processes: as long as the
 * server said, or else twice as long as the last time. Sets fault->rests_until_ms. */
int forge_git_rest(struct forge_session *s, int64_t retry_after_s, struct forge_fault *fault,
                   struct err *err) MUST_CHECK;

#endif
