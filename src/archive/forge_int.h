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
    FORGE_FIELD_TEXT,    /* a string; null is absent */
    FORGE_FIELD_ID,      /* a number or a string of digits and letters, kept as text */
    FORGE_FIELD_NUMBER,  /* uint64_t; a number below 0 is 0 */
    FORGE_FIELD_BOOL,    /* null is false */
    FORGE_FIELD_IS_WORD, /* bool: whether a string is `word` */
    FORGE_FIELD_IS_NOT,  /* bool: whether a string is not `word` */
    FORGE_FIELD_THERE,   /* bool: whether the value is there and not null */
};

/* A field of a JSON object: where its value goes. `path` is a key, or "key.key". */
struct forge_field {
    const char *path;
    enum forge_field_kind kind;
    size_t offset;
    bool required; /* an object without a text here is malformed */
    const char *word;
};

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
    /* How a token is sent: the header, and the text before the token in its value. */
    const char *token_header, *token_before;
    const char *git_user;     /* user of HTTP Basic for git */
    const char *probe;        /* a path that answers 401 only to a token that is dead */
    const char *quota_prefix; /* of the headers with the quota; NULL: there are none */
    bool sees_pushes;
    struct forge_fields repo;
    /* Looks an account up. By login: `id` is empty. */
    int (*account)(struct forge_session *s, struct arena *a, struct str login,
                   const struct forge_account *known, struct forge_account *out,
                   struct forge_fault *fault, struct err *err);
    /* Appends the path of the first page of an account's repositories. */
    int (*list_path)(struct forge_session *s, struct arena *a, struct str login, struct buf *out,
                     struct forge_fault *fault, struct err *err);
    const char *repo_path; /* of a repository by its id, with %s for it */
    /* Paths of lists of logins of an organisation, with %s for it; ended by NULL. */
    const char *const *members;
    const char *const *member_keys; /* the key of the login, for each of the paths */
    const struct extra_list *lists; /* lists of a repository that are saved as JSON lines */
    size_t list_count;
    /* Path of the gists of an account, with %s for the login; NULL: there are none. */
    const char *gists_path;
};
extern const struct forge_kind_row forge_github, forge_gitlab, forge_gitea;
const struct forge_kind_row *forge_row(enum forge_kind kind);

/* --- forges in memory --- */

struct forge_token {
    struct str id;     /* tells nothing about the token */
    struct str secret; /* owned by the entry */
};

/* A forge that is known. It never changes; a change makes another. */
struct forge_entry {
    atomic_int refs;
    struct forge forge; /* strings are in `arena` */
    struct arena arena;
    VEC(struct forge_token) tokens;
    /* The last answer of forges_rests(), and when it was asked (clock_mono_ms()). */
    _Atomic(int64_t) rests_until_ms;
    _Atomic(uint64_t) asked_ms;
};
struct forge_entry *forge_entry_new(const struct forge *f);
/* Adds a token, unless the entry has it. Returns false when there are too many. */
bool forge_entry_add_token(struct forge_entry *e, struct str id, struct str secret);
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
    bool busy;                        /* a thread changes or loads the forges */
    VEC(struct forge_entry *) fixed;  /* built in, or of the configuration file */
    VEC(struct forge_entry *) stored; /* of the store */
};
/* The entry that counts for the host, with a reference; NULL: there is none. */
struct forge_entry *forges_get(struct forges *f, struct str host);

#define FORGES_CHANNEL STR("weir:forges")
#define FORGES_HOSTS   STR("forges")
int forges_load(struct forges *f, struct err *err) MUST_CHECK;
void forges_begin(struct forges *f);
void forges_end(struct forges *f);
struct str forges_key(struct arena *a, const char *prefix, struct str host);
struct str forges_seal_owner(struct arena *a, struct str host, struct str id);
/* The id of a token, in the arena. */
struct str forges_token_id(struct forges *f, struct arena *a, struct str host, struct str token);
/* Whether a text can be a token: printable, without blanks, not too long. */
bool forges_token_ok(struct str token);
/* Checks a forge, and fills in what was left out. Strings that are made are in the arena. */
int forges_complete(struct forge *f, struct arena *a, struct err *err) MUST_CHECK;
/* Reads the forges of the configuration file, and adds the built-in one. */
int forges_add_fixed(struct forges *f, const struct conf *conf, struct err *err) MUST_CHECK;

/* --- sessions --- */

struct forge_session {
    struct forges *forges;
    struct forge_entry *entry;
    const struct forge_kind_row *row;
    const _Atomic(bool) *cancel;
    struct arena arena;           /* of the account */
    struct forge_account account; /* that was looked up last; `login` is as the caller wrote it */
    struct str *token_ids;        /* in the arena; of all tokens */
    unsigned requests;
};

/* One question to the API. */
struct forge_ask {
    struct str url;     /* a path below the API's base, or a URL on its origin */
    struct str etag;    /* for If-None-Match; or empty */
    const char *accept; /* NULL: JSON */
    struct buf *body;   /* the body of an answer 2xx; the caller limits it */
};
/* The answer: status 200 or 304. Strings are in the arena. */
struct forge_answer {
    int status;
    struct str etag, link, url;
    int64_t date_ms; /* the server's time, or ours where it tells none */
};
int forge_ask(struct forge_session *s, struct arena *a, const struct forge_ask *q,
              struct forge_answer *out, struct forge_fault *fault, struct err *err) MUST_CHECK;

/* Fills the fault and `err`, and returns the code of base/err.h that belongs to it. */
int forge_fail(struct forge_fault *fault, enum archive_code code, struct err *err, const char *fmt,
               ...) PRINTF_LIKE(4, 5);
/* An answer is not as it should be: ARCHIVE_PROTOCOL. `err` has the words. */
int forge_malformed(struct forge_fault *fault, int code, struct err *err);
/* Appends a URL: `path` below the API's base, or as it is when it is one. */
void forge_url(const struct forge_session *s, struct str path, struct buf *out);
/* Formats a path of a row with a value for %s, which is percent-encoded. */
struct str forge_path(struct arena *a, const char *format, struct str value);

/* Reads an object by its fields into `out`. Texts are in the arena. */
void forge_read_object(struct scan *s, struct arena *a, const struct forge_fields *fields,
                       void *out);
/* Reads a repository; the reader is before its object. ERR_INVALID: its name cannot be stored. */
int forge_read_repo(struct scan *s, struct arena *a, const struct forge *f,
                    const struct forge_kind_row *row, struct forge_repo *out) MUST_CHECK;
/* Asks for an object and reads it by its fields. */
int forge_ask_object(struct forge_session *s, struct arena *a, struct str path,
                     const struct forge_fields *fields, void *out, struct forge_fault *fault,
                     struct err *err) MUST_CHECK;

/* Walks over the pages of a list, following Link. */
struct forge_walk {
    struct forge_session *session;
    struct arena *arena; /* of the pages' URLs */
    struct str next;     /* URL of the next page; empty: there is none */
    unsigned page;       /* number of pages that were read */
    int64_t date_ms;     /* the server's time with the first page */
    VEC(uint64_t) seen;  /* hashes of their URLs */
};
void forge_walk_init(struct forge_walk *w, struct forge_session *s, struct arena *a,
                     struct str first);
void forge_walk_release(struct forge_walk *w);
/* Asks for the next page, with the known one's ETag. `known_next` is the URL that followed it last
 * time; it is used when an answer 304 has no Link. */
int forge_walk_step(struct forge_walk *w, const struct forge_page *known, struct str known_next,
                    struct buf *body, struct forge_page *page, struct forge_fault *fault,
                    struct err *err) MUST_CHECK;

#endif
