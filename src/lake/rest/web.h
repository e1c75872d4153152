/* Functions that the files of lake/rest/ share.
 *
 * The function of a row first calls web_repo(), which reads the repository's record and asks the
 * same access engine as S3 does (s3/access/access.h). Then it calls a function of lake/lake.h. */
#ifndef LAKE_REST_WEB_H
#define LAKE_REST_WEB_H

#include "base/clock.h"
#include "lake/rest/rest.h"
#include "route/users.h"
#include "s3/access/policy_table.h"

enum { WEB_TOKEN_MS = 7 * MS_PER_DAY, WEB_LINK_MS = MS_PER_DAY };
/* The last second of the year 9999, which is the latest time that an answer can show (clock.h). */
#define WEB_TIME_MAX INT64_C(253402300799)

/* --- rows --- */

/* The data that a row adds about its operation, as `more` of struct rest_row. */
struct web_op {
    const char *id;     /* operationId of the published API */
    const char *reason; /* why weir does not serve the operation; NULL: it serves it */
};
#define WEB_OP(name)                                                                               \
    .more = &(const struct web_op)                                                                 \
    {                                                                                              \
        name, NULL                                                                                 \
    }
#define WEB_ROWS(table)                                                                            \
    {                                                                                              \
        REST_ROWS(table), .dialect = &lake_dialect                                                 \
    }

/* Fields that many rows have. */
#define WEB_REPO                                                                                   \
    {                                                                                              \
        "repository", "The repository's name."                                                     \
    }
#define WEB_BRANCH                                                                                 \
    {                                                                                              \
        "branch", "The branch's name."                                                             \
    }
#define WEB_REF                                                                                    \
    {                                                                                              \
        "ref", "A branch, a tag, a commit id or an expression."                                    \
    }
#define WEB_PREFIX                                                                                 \
    {                                                                                              \
        "prefix", "Only names that begin with this."                                               \
    }
#define WEB_FORCE                                                                                  \
    {                                                                                              \
        "force", "Also in a read-only repository.", REST_BOOLEAN                                   \
    }
#define WEB_PATH                                                                                   \
    {                                                                                              \
        "path", "The object's path.", .required = true                                             \
    }

#define WEB_IN_REPO   .in_path = REST_FIELDS(WEB_REPO)
#define WEB_IN_BRANCH .in_path = REST_FIELDS(WEB_REPO, WEB_BRANCH)
#define WEB_IN_REF    .in_path = REST_FIELDS(WEB_REPO, WEB_REF)

extern const struct rest_field web_ref_fields[], web_commit_fields[], web_stats_fields[],
    web_merge_fields[], web_repo_fields[], web_user_fields[];

/* --- who calls, and what the caller may do --- */

struct lake_web *web_of(const struct rest_call *c);
/* Returns the user who calls; never NULL in a row for users. */
const struct user *web_user(const struct rest_call *c);

/* The right that a call needs: an action of S3 on "<ref>/<path>" of the repository's bucket. */
struct web_ask {
    enum s3_action action;
    struct str ref, path;
    struct str tags; /* tags of the object that is read, for s3:ExistingObjectTag; empty: no tags */
};
/* Reads the record of the repository in the path of the call, and checks that the caller has the
 * right. If not, this sends the answer and returns ERR_DENIED. */
int web_repo(struct rest_call *c, struct web_ask ask, struct lake_repo *out,
             struct err *err) MUST_CHECK;
/* Reads the record without checking a right; the caller of this function must check. */
int web_find_repo(struct rest_call *c, struct lake_repo *out, struct err *err) MUST_CHECK;
/* Checks a further right in the repository. */
int web_need(struct rest_call *c, const struct lake_repo *r, struct web_ask ask,
             struct err *err) MUST_CHECK;
/* Whether the caller has the right in the repository. An error of the storage counts as no. */
bool web_may(struct rest_call *c, const struct lake_repo *r, struct web_ask ask);
/* Gets an object that the caller may read: s3:GetObject on "<ref>/<path>" is judged with the tags
 * of this very object. ERR_DENIED: the answer was sent. */
int web_object(struct rest_call *c, const struct lake_repo *r, struct str ref, struct str path,
               struct lake_object *out, struct err *err) MUST_CHECK;
/* Opens the rules of one repository for many checks: its documents are read once. *out is in the
 * arena, and web_gate_close() ends its use. */
struct web_bucket;
int web_gate_open(struct web_bucket **out, struct rest_call *c, const struct lake_repo *r,
                  struct err *err) MUST_CHECK;
bool web_gate_may(struct rest_call *c, const struct web_bucket *gate, struct web_ask ask);
void web_gate_close(struct web_bucket *gate); /* NULL is fine */
/* Checks that the caller may do the action on every possible key below "<ref>/<path>", also on keys
 * that do not exist now. */
int web_need_below_ref(struct rest_call *c, const struct lake_repo *r, struct web_ask ask,
                       struct err *err) MUST_CHECK;
/* Checks that the caller may make or change the branch or tag `to` as a whole with content of the
 * ref `from`. The rule: after the change no user can read an object below "<to>/" which neither
 * that user nor the caller may read below "<from>/" (docs/security.md, "Repositories of the lake",
 * P2). ERR_DENIED: the answer was sent. */
int web_need_take(struct rest_call *c, const struct lake_repo *r, struct str from, struct str to,
                  struct err *err) MUST_CHECK;
/* Checks that the caller may read every object of the repository, at whatever ref. A call that
 * names bytes or a tree by an address of the namespace needs this, because the address does not say
 * which ref leads there. ERR_DENIED: the answer was sent. */
int web_need_whole(struct rest_call *c, const struct lake_repo *r, struct err *err) MUST_CHECK;

/* An action on a key of any bucket. */
struct web_key_ask {
    enum s3_action action;
    struct str bucket, key;
    struct str user; /* id of the user as whom the key is used later */
};
/* Checks that the caller may do the action on the key, and that the bucket's name leads `user` to
 * the same bucket. ERR_NO_BUCKET: there is no such bucket. ERR_DENIED: the answer was sent. */
int web_need_key(struct rest_call *c, const struct web_key_ask *ask, struct err *err) MUST_CHECK;
/* Checks that the caller may read, put and remove every object whose key begins with `begin`,
 * because the lake does so in the name of a repository's owner. A storage with credentials of its
 * own judges each request by itself. ERR_NO_BUCKET: there is no such bucket. ERR_DENIED: the answer
 * was sent. */
int web_need_space(struct rest_call *c, struct str bucket, struct str begin,
                   struct err *err) MUST_CHECK;
/* Checks that the caller may read every object of a bucket. Policies decide key by key, so only the
 * bucket's owner is sure to have this right. On a storage with credentials of its own the objects
 * are read later as the user `ask->user`, so the caller must be that user. Administrators always
 * pass. ERR_DENIED: the answer was sent. */
int web_need_below(struct rest_call *c, const struct web_key_ask *ask, struct err *err) MUST_CHECK;
/* Checks that the caller is an administrator of weir. If not, this sends the answer and returns
 * ERR_DENIED. */
int web_need_admin(struct rest_call *c, struct err *err) MUST_CHECK;

/* Checks an access key and its secret. If they are wrong, this sends the answer (401) and returns
 * ERR_DENIED. ERR_BUSY: too many wrong keys came from this address. */
int web_login(struct rest_call *c, struct str access, struct str secret, struct user *out,
              struct err *err) MUST_CHECK;
/* Answers that the caller may not make this call, and returns ERR_DENIED. */
int web_forbidden(struct rest_call *c, struct err *err);

/* --- writing objects (writes.c) --- */

/* Reads the repository's record and makes the checks of a write, before any bytes are read: the
 * caller may write to the path of the call's branch, and the branch exists and can be written
 * to. */
int web_writable(struct rest_call *c, struct str path, bool force, struct lake_repo *out,
                 struct err *err) MUST_CHECK;
/* Checks a value of an entry, because S3 sends the value in headers and in listings. */
int web_check_value(const char *name, struct str value, struct err *err) MUST_CHECK;
/* Returns the conditions of the call's headers If-Match and If-None-Match. */
struct object_conditions web_conditions(struct rest_call *c);
/* Judges conditions (struct object_conditions) by the present entry; a lake_judge_fn. */
int web_judge_write(void *conditions, struct str path, const struct lake_object *present,
                    struct err *err);
/* Stages the object on the call's branch, if the call's conditions allow it. The judge and its ctx
 * in `how` are not used. */
int web_stage(struct rest_call *c, const struct lake_repo *r, const struct lake_object *o,
              struct lake_stage_options how, struct err *err) MUST_CHECK;
/* Returns an ETag without its quotes. */
struct str web_bare_etag(struct str etag);

/* --- tokens (token.c) --- */

/* Writes a token for the user who logged in with `key` into the arena. The token is valid until
 * `expires_ms`, but not longer than the key. */
struct str web_token(const struct lake_web *w, struct arena *a, const struct user *user,
                     const struct user_key *key, int64_t expires_ms);
/* Gets the access key that a token names. The token itself is not checked. ERR_DENIED: it is
 * malformed. */
int web_token_access(struct arena *a, struct str token, struct str *out) MUST_CHECK;
/* Gets the id of the user for whom the token was made with this key. A later user of the same name
 * has another id. ERR_DENIED: the token is malformed, forged or expired, or was made for another
 * key. */
int web_token_user(const struct lake_web *w, struct arena *a, struct str token,
                   const struct user_key *key, int64_t now_ms, struct str *out) MUST_CHECK;

/* --- presigned URLs and signed addresses (presign.c) --- */

struct web_presigned {
    struct str url; /* in the arena */
    int64_t expires_ms;
};
/* Makes a URL of weir's S3 endpoint. For 15 minutes anybody who has the URL can make the request on
 * the address (s3://bucket/key) in the name of the repository's owner. ERR_UNSUPPORTED: the
 * configuration does not name the endpoint (s3.url). */
int web_presign(struct rest_call *c, const struct lake_repo *r, const char *method,
                struct str address, struct web_presigned *out, struct err *err) MUST_CHECK;
/* As web_presign(), for a request with a query, such as that of a part of an upload. */
int web_presign_query(struct rest_call *c, const struct lake_repo *r, const char *method,
                      struct str address, struct str query, struct web_presigned *out,
                      struct err *err) MUST_CHECK;

/* An address that weir gave to a client for the upload of an object. */
struct web_link {
    const struct lake_repo *repo;
    struct str branch, path;
    struct str address; /* a new address below the namespace */
};
/* Returns "<address>,<signature>", in the arena. The object is stored under that key. */
struct str web_link_sign(const struct lake_web *w, struct arena *a, const struct web_link *link,
                         int64_t now_ms);
/* Checks the key that a client gives as the place of its upload; the address in `wanted` is not
 * used. ERR_INVALID: the key was not signed for this branch and path, or was signed more than a day
 * ago. */
int web_link_check(const struct lake_web *w, const struct web_link *wanted, struct str key,
                   int64_t now_ms, struct err *err) MUST_CHECK;

/* Makes a new signed key for the path of the call (staging.c). */
struct str web_new_link(struct rest_call *c, const struct lake_repo *repo);
/* Gets the signed key from the address to which a client has uploaded. ERR_INVALID: the address was
 * not given for the branch and path of the call. */
int web_link_key(struct rest_call *c, const struct lake_repo *repo, struct str address,
                 struct str *key, struct err *err) MUST_CHECK;

/* --- values of requests and answers (forms.c) --- */

/* Returns the page that a list asks for, with the prefix of the query. */
struct lake_page web_page(const struct rest_call *c);
/* Gets a map of strings from the body as sorted pairs in the arena. */
int web_pairs(struct rest_call *c, const json_t *map, struct str_pairs *out,
              struct err *err) MUST_CHECK;
/* Gets an array of strings as an array of str, which point into the request's body. */
int web_strs(struct rest_call *c, const json_t *list, const struct str **out, size_t *count,
             struct err *err) MUST_CHECK;

/* Answers 409 to a refused merge, with the paths that both sides have changed (merges.c). */
int web_merge_refuse(struct rest_call *c, const struct lake_conflicts *conflicts,
                     const struct err *err);
void web_write_pairs(struct json_out *w, const char *name, const struct str_pairs *pairs);
void web_write_user(struct json_out *w, const struct user *user);
void web_write_repo(struct json_out *w, const struct lake_repo *r);
void web_write_ref(struct json_out *w, struct str id, struct str commit_id);
void web_write_commit(struct json_out *w, const struct lake_commit *c);
/* Writes the members of an object. `address` is its full address; empty: it is made from the entry.
 * The address expires at `expires_ms`; 0: never. */
struct web_stats_options {
    bool metadata; /* write the user metadata */
    struct str address;
    int64_t expires_ms;
};
void web_write_stats(struct rest_call *c, const struct lake_repo *r, const struct lake_object *o,
                     const struct web_stats_options *how);
/* Returns the entry's address as s3://bucket/key, in the arena. */
struct str web_address(struct arena *a, const struct lake_repo *r, const struct lake_entry *e);

/* --- tables, one for each file --- */

extern const struct rest_table web_server_rows, web_auth_rows, web_user_rows, web_repo_rows,
    web_branch_rows, web_tag_rows, web_commit_rows, web_merge_rows, web_diff_rows, web_object_rows,
    web_upload_rows, web_copy_rows, web_staging_rows, web_setting_rows, web_gc_rows,
    web_import_rows, web_multipart_rows, web_tree_rows, web_pull_rows, web_run_rows, web_refs_rows,
    web_migration_rows, web_diagnosis_rows, web_refused_rows;

#endif
