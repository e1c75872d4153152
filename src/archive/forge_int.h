/* Declarations that the files about forges share. */
#ifndef ARCHIVE_FORGE_INT_H
#define ARCHIVE_FORGE_INT_H

#include "archive/forge.h"
#include "archive/forges.h"
#include "archive/scan.h"
#include "http/client.h"
#include "os/thread.h"
#include "route/seal.h"
#include "store/reload.h"

struct extra_list;

/* --- kinds of forges: one row each --- */

enum forge_field_kind {
    FORGE_FIELD_TEXT,    /* a string; null counts as absent */
    FORGE_FIELD_ID,      /* a number or a string of digits and letters, kept as text */
    FORGE_FIELD_NUMBER,  /* uint64_t; a negative number becomes 0 */
    FORGE_FIELD_BOOL,    /* null is false */
    FORGE_FIELD_IS_WORD, /* bool: whether a string is `word` */
    FORGE_FIELD_IS_NOT,  /* bool: whether a string differs from `word` */
    FORGE_FIELD_THERE,   /* bool: whether there is a value other than null */
};

/* A field of a JSON object, and the struct member that gets its value. `path` is a key, or
 * "key.key". */
struct forge_field {
    const char *path;
    enum forge_field_kind kind;
    size_t offset;
    bool required; /* an object without this text is malformed */
    const char *word;
};

/* A row for a member of struct forge_repo. */
#define FORGE_REPO(path, kind, member, ...)                                                        \
    {                                                                                              \
        (path), FORGE_FIELD_##kind, offsetof(struct forge_repo, member), ##__VA_ARGS__             \
    }

struct forge_fields {
    const struct forge_field *rows;
    size_t count;
};
#define FORGE_FIELDS(array)                                                                        \
    {                                                                                              \
        (array), ARRAY_SIZE(array)                                                                 \
    }

struct forge_kind_row {
    const char *api;                      /* path of the API on a host */
    const char *accept;                   /* media type of answers */
    const char *version_header, *version; /* a header of every request; NULL: there is none */
    unsigned per_page;
    /* The header that carries a token, and the text before the token in its value. */
    const char *token_header, *token_before;
    const char *git_user; /* user name of HTTP Basic for git */
    const char *probe;    /* path that is answered with 401 only if the token is dead */
    /* Common beginning of the names of the headers with the quota; NULL: the forge has no such
     * headers. */
    const char *quota_prefix;
    bool sees_pushes;
    struct forge_fields repo;
    /* Finds an account: by its login if known->id is empty, otherwise by its number. */
    int (*account)(struct forge_session *s, struct arena *a, struct str login,
                   const struct forge_account *known, struct forge_account *out,
                   struct forge_fault *fault, struct err *err);
    /* Appends the path of the first page of an account's repositories. */
    int (*list_path)(struct forge_session *s, struct arena *a, struct str login, struct buf *out,
                     struct forge_fault *fault, struct err *err);
    const char *repo_path; /* path of a repository; %s stands for its id */
    /* Paths of the lists that have the logins of an organisation's members; %s stands for the
     * organisation's name. Ended by NULL. */
    const char *const *members;
    const char *const *member_keys; /* for each of the paths: the JSON key of the login */
    const struct extra_list *lists; /* lists of a repository that are saved as JSON lines */
    size_t list_count;
    /* Path of the gists of an account; %s stands for the login. NULL: the forge has no gists. */
    const char *gists_path;
};
extern const struct forge_kind_row forge_github, forge_gitlab, forge_gitea;
const struct forge_kind_row *forge_row(enum forge_kind kind);

/* --- forges in memory --- */

struct forge_token {
    struct str id;     /* the token cannot be guessed from its id */
    struct str secret; /* owned by the entry */
};

/* A known forge. An entry never changes: when the forge changes, a new entry replaces it. */
struct forge_entry {
    atomic_int refs;
    struct forge forge; /* strings are in `arena` */
    struct arena arena;
    VEC(struct forge_token) tokens;
    /* Another forge has the same bucket, so this entry of the store is not used. Written before the
     * entry is shared. */
    bool shares_bucket;
    /* The last answer of forges_rests(), and when it was read from the store (clock_mono_ms()). */
    _Atomic(int64_t) rests_until_ms;
    _Atomic(uint64_t) asked_ms;
};
struct forge_entry *forge_entry_new(const struct forge *f);
/* Adds a token, unless the entry already has it. Returns false when there are too many tokens. */
bool forge_entry_add_token(struct forge_entry *e, struct str id, struct str secret);
/* The entry of a host; NULL: there is none. */
struct forge_entry *forge_entry_among(struct forge_entry *const *items, size_t count,
                                      struct str host);
void forge_entry_unref(struct forge_entry *e); /* overwrites the tokens; NULL is fine */

struct forges {
    struct store *config;
    const struct log *log;
    struct quota *quota;
    struct client *client;
    struct seal_key key;
    struct reload reload;
    struct mutex lock; /* class "archive.forges"; guards the vectors and `busy` */
    struct cond idle;
    bool busy;                        /* a thread is changing or loading the forges */
    VEC(struct forge_entry *) fixed;  /* built-in forge and forges of the configuration file */
    VEC(struct forge_entry *) stored; /* forges of the store */
};
/* The entry that is used for the host, with a reference; NULL: the host is not known. */
struct forge_entry *forges_get(struct forges *f, struct str host);
/* Like forges_get(), but without a reference. The caller holds f->lock. */
struct forge_entry *forges_get_locked(struct forges *f, struct str host);

/* The host of the forge, other than that of `host`, to which the bucket belongs, in the arena.
 * Empty: there is none. */
struct str forges_bucket_owner(struct forges *f, struct arena *a, struct str bucket,
                               struct str host);
/* Checks that no other forge has the bucket. ERR_CONFLICT names the other forge. */
int forges_check_bucket(struct forges *f, struct arena *a, struct str host, struct str bucket,
                        struct err *err) MUST_CHECK;
/* Marks the entries of the store that have the bucket of another forge, and logs them. Of two
 * entries of the store, the one whose host sorts first keeps the bucket. Sorts the entries. Only
 * the thread that loads the forges may call it. */
void forges_mark_buckets(struct forges *f, struct forge_entry **stored, size_t count);

#define FORGES_CHANNEL STR("weir:forges")
#define FORGES_HOSTS   STR("forges")
int forges_load(struct forges *f, struct err *err) MUST_CHECK;
void forges_begin(struct forges *f);
void forges_end(struct forges *f);
struct str forges_key(struct arena *a, const char *prefix, struct str host);
struct str forges_seal_owner(struct arena *a, struct str host, struct str id);
/* The id of a token, in the arena. */
struct str forges_token_id(struct forges *f, struct arena *a, struct str host, struct str token);
/* Whether a text can be a token: printable, without blanks, and not too long. */
bool forges_token_ok(struct str token);
/* Checks a forge, and fills in the missing values. New strings are in the arena. */
int forges_complete(struct forge *f, struct arena *a, struct err *err) MUST_CHECK;
/* Reads the forges of the configuration file, and adds the built-in one. */
int forges_add_fixed(struct forges *f, const struct conf *conf, struct err *err) MUST_CHECK;

/* --- sessions --- */

struct forge_session {
    struct forges *forges;
    struct forge_entry *entry;
    const struct forge_kind_row *row;
    const _Atomic(bool) *cancel;
    struct arena arena; /* memory of `account` */
    /* The account that forge_account() found last; `login` is spelled as the forge spells it. */
    struct forge_account account;
    struct str *token_ids; /* ids of all tokens, in the arena */
    unsigned requests;
    struct large_hold *hold; /* borrowed; may be NULL */
    size_t page_reached;     /* bytes that the hold has paid for */
};

/* One question to the API (forge_call.c). */
struct forge_ask {
    struct str url;     /* a path below the API's base, or a URL on its origin */
    struct str etag;    /* for If-None-Match; may be empty */
    const char *accept; /* NULL: JSON */
    struct buf *body;   /* gets the body of an answer 2xx; the caller sets its limit */
};
/* The answer: status 200 or 304. Strings are in the arena. */
struct forge_answer {
    int status;
    struct str etag, link, url;
    int64_t date_ms; /* the server's time, or the local time if the answer has no date */
};
int forge_ask(struct forge_session *s, struct arena *a, const struct forge_ask *q,
              struct forge_answer *out, struct forge_fault *fault, struct err *err) MUST_CHECK;

/* Fills the fault and `err`, and returns the code of base/err.h for the outcome. */
int forge_fail(struct forge_fault *fault, enum archive_code code, struct err *err, const char *fmt,
               ...) PRINTF_LIKE(4, 5);
/* Sets the outcome ARCHIVE_PROTOCOL: the answer is malformed. `err` says in which way. */
int forge_malformed(struct forge_fault *fault, int code, struct err *err);
/* Appends a URL: `path` below the API's base, or `path` itself if it is a URL. */
void forge_url(const struct forge_session *s, struct str path, struct buf *out);
/* Formats the path of a table row: puts the percent-encoded value in the place of %s. */
struct str forge_path(struct arena *a, const char *format, struct str value);

/* Reads the fields of a JSON object into `out`. Texts are in the arena. */
void forge_read_object(struct scan *s, struct arena *a, const struct forge_fields *fields,
                       void *out);
/* Reads a gist, whose object begins at the scanner's position. Returns false if it must not be
 * fetched, or the object is malformed (s->wrong). */
bool forge_read_gist(struct scan *s, struct arena *a, const struct forge *f,
                     struct forge_gist *out);
/* Reads a repository, whose object begins at the scanner's position. ERR_INVALID: its name cannot
 * be part of a key. */
int forge_read_repo(struct scan *s, struct arena *a, const struct forge *f,
                    const struct forge_kind_row *row, struct forge_repo *out) MUST_CHECK;
/* Asks for a JSON object and reads its fields. */
int forge_ask_object(struct forge_session *s, struct arena *a, struct str path,
                     const struct forge_fields *fields, void *out, struct forge_fault *fault,
                     struct err *err) MUST_CHECK;

/* Walks over the pages of a list by their Link headers. */
struct forge_walk {
    struct forge_session *session;
    struct arena *arena; /* memory of the pages' URLs */
    struct str next;     /* URL of the next page; empty: the list has ended */
    unsigned page;       /* number of pages that were read */
    int64_t date_ms;     /* the server's time in the answer with the first page */
    VEC(uint64_t) seen;  /* hashes of the URLs of the pages that were read */
};
void forge_walk_init(struct forge_walk *w, struct forge_session *s, struct arena *a,
                     struct str first);
void forge_walk_release(struct forge_walk *w);
/* Asks for the next page, with the ETag of `known`. `known_next` is the URL of the page that came
 * after it in the last listing. It is used when an answer 304 has no Link. */
int forge_walk_step(struct forge_walk *w, const struct forge_page *known, struct str known_next,
                    struct buf *body, struct forge_page *page, struct forge_fault *fault,
                    struct err *err) MUST_CHECK;

#endif
