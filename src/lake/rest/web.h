/* Functions that the files of lake/rest/ share.
 *
 * A function that serves a row (rest.h) first calls web_repo(). That reads the repository's record,
 * and asks the access engine of S3 (s3/access/access.h) whether the caller has the right. Then the
 * function calls a function of lake/lake.h. */
#ifndef LAKE_REST_WEB_H
#define LAKE_REST_WEB_H

#include "base/clock.h"
#include "lake/rest/rest.h"
#include "route/users.h"
#include "s3/access/policy_table.h"

enum { WEB_TOKEN_MS = 7 * MS_PER_DAY, WEB_LINK_MS = MS_PER_DAY };
/* The last second of the year 9999, in seconds since 1970. Answers cannot show a later time
 * (clock.h). */
#define WEB_TIME_MAX INT64_C(253402300799)

/* --- rows --- */

/* What a row of a table of routes also says about its operation: the value of `more` in struct
 * rest_row. */
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

/* Path parameters and other fields that many rows have. */
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
/* Returns the user who makes the call. It is never NULL in a row that only users may call. */
const struct user *web_user(const struct rest_call *c);

/* The right that a call needs: an action of S3 on the key "<ref>/<path>" of the repository's
 * bucket. */
struct web_ask {
    enum s3_action action;
    struct str ref, path;
    struct str tags; /* tags of the object to be read, for s3:ExistingObjectTag; empty: no tags */
};
/* Reads the record of the repository in the call's path, and checks that the caller has the right
 * `ask`. Without the right, this sends the answer and returns ERR_DENIED. */
int web_repo(struct rest_call *c, struct web_ask ask, struct lake_repo *out,
             struct err *err) MUST_CHECK;
/* Reads the record of the repository in the call's path, but checks no right. The calling code must
 * check the rights. */
int web_find_repo(struct rest_call *c, struct lake_repo *out, struct err *err) MUST_CHECK;
/* Checks one more right in the repository, as web_repo() does. */
int web_need(struct rest_call *c, const struct lake_repo *r, struct web_ask ask,
             struct err *err) MUST_CHECK;
/* Whether the caller has the right in the repository. If the storage fails, the answer is no. */
bool web_may(struct rest_call *c, const struct lake_repo *r, struct web_ask ask);
/* Gets an object, and checks that the caller may read it: s3:GetObject on "<ref>/<path>", with the
 * tags of this very object. ERR_DENIED: the answer was sent. */
int web_object(struct rest_call *c, const struct lake_repo *r, struct str ref, struct str path,
               struct lake_object *out, struct err *err) MUST_CHECK;
/* Opens a gate: a repository's policy and other rules, read once for many checks. *out is in the
 * arena; call web_gate_close() when it is no longer used. */
struct web_bucket;
int web_gate_open(struct web_bucket **out, struct rest_call *c, const struct lake_repo *r,
                  struct err *err) MUST_CHECK;
bool web_gate_may(struct rest_call *c, const struct web_bucket *gate, struct web_ask ask);
void web_gate_close(struct web_bucket *gate); /* NULL is fine */
/* Checks that the caller may do the action on every possible key below "<ref>/<path>", including
 * keys that do not exist now. */
int web_need_below_ref(struct rest_call *c, const struct lake_repo *r, struct web_ask ask,
                       struct err *err) MUST_CHECK;
/* Checks that the caller may make or change the whole branch or tag `to` with content of the ref
 * `from`. The rule (docs/security.md, "Repositories of the lake", P2): after the change no user can
 * read an object below "<to>/", unless that user or the caller may read it below "<from>/".
 * ERR_DENIED: the answer was sent. */
int web_need_take(struct rest_call *c, const struct lake_repo *r, struct str from, struct str to,
                  struct err *err) MUST_CHECK;
/* Checks that the caller may read every object of the repository, on every ref. A call that names
 * bytes or a tree by an address in the namespace needs this right, because the address does not say
 * on which ref they are. ERR_DENIED: the answer was sent. */
int web_need_whole(struct rest_call *c, const struct lake_repo *r, struct err *err) MUST_CHECK;

/* An action on a key of any bucket, not only of a repository. */
struct web_key_ask {
    enum s3_action action;
    struct str bucket, key;
    struct str user; /* id of the user in whose name weir will use the key later */
};
/* Checks that the caller may do the action on the key, and that the bucket's name means the same
 * bucket for the caller and for ask->user. ERR_NO_BUCKET: there is no such bucket. ERR_DENIED: the
 * answer was sent. */
int web_need_key(struct rest_call *c, const struct web_key_ask *ask, struct err *err) MUST_CHECK;
/* Checks that the caller may read, put and remove every object whose key begins with `begin`,
 * because the lake will do so in the name of a repository's owner. If users have credentials of
 * their own on the bucket's storage, that storage checks each request by itself. ERR_NO_BUCKET:
 * there is no such bucket. ERR_DENIED: the answer was sent. */
int web_need_space(struct rest_call *c, struct str bucket, struct str begin,
                   struct err *err) MUST_CHECK;
/* Checks that the caller may read every object of a bucket. Policies decide key by key, so only two
 * kinds of callers pass: administrators, and the bucket's owner. If users have credentials of their
 * own on the bucket's storage (STORAGE_CREDENTIALS), the objects are read later with those of
 * `ask->user`; then the caller must be that user, or an administrator. ERR_NO_BUCKET: there is no
 * such bucket; this is not checked for administrators. ERR_DENIED: the answer was sent. */
int web_need_below(struct rest_call *c, const struct web_key_ask *ask, struct err *err) MUST_CHECK;
/* Checks that the caller is an administrator of weir. Otherwise this sends the answer and returns
 * ERR_DENIED. */
int web_need_admin(struct rest_call *c, struct err *err) MUST_CHECK;

/* Checks an access key and its secret. If they are wrong, this sends the answer (401) and returns
 * ERR_DENIED. ERR_BUSY: too many wrong keys came from this address. */
int web_login(struct rest_call *c, struct str access, struct str secret, struct user *out,
              struct err *err) MUST_CHECK;
/* Sends the answer that the caller has no right to make this call, and returns ERR_DENIED. */
int web_forbidden(struct rest_call *c, struct err *err);

/* --- writing objects (writes.c) --- */

/* Reads the repository's record, and makes the checks of a write before any bytes are read: the
 * caller may write to this path of the call's branch, the branch exists, and it can be written
 * to. */
int web_writable(struct rest_call *c, struct str path, bool force, struct lake_repo *out,
                 struct err *err) MUST_CHECK;
/* Checks a value of an entry: S3 must be able to send it in headers and in listings. */
int web_check_value(const char *name, struct str value, struct err *err) MUST_CHECK;
/* Returns the conditions in the call's headers If-Match and If-None-Match. */
struct object_conditions web_conditions(struct rest_call *c);
/* Checks conditions (struct object_conditions) against the entry that the path has now. A
 * lake_judge_fn. */
int web_judge_write(void *conditions, struct str path, const struct lake_object *present,
                    struct err *err);
/* Stages the object on the call's branch, if the call's conditions hold. `how` may have any options
 * except a judge and its ctx. */
int web_stage(struct rest_call *c, const struct lake_repo *r, const struct lake_object *o,
              struct lake_stage_options how, struct err *err) MUST_CHECK;
/* Returns the ETag without its quotes. */
struct str web_bare_etag(struct str etag);

/* --- tokens (token.c) --- */

/* Makes a token for the user who logged in with `key`, in the arena. The token is valid until
 * `expires_ms`, but not longer than the key. */
struct str web_token(const struct lake_web *w, struct arena *a, const struct user *user,
                     const struct user_key *key, int64_t expires_ms);
/* Gets the access key that a token names, without checking the token's signature. ERR_DENIED: the
 * token is malformed. */
int web_token_access(struct arena *a, struct str token, struct str *out) MUST_CHECK;
/* Checks the token, and gets the id of the user for whom it was made with this key. (A later user
 * of the same name has another id.) ERR_DENIED: the token is malformed, forged or expired, or was
 * made for another key. */
int web_token_user(const struct lake_web *w, struct arena *a, struct str token,
                   const struct user_key *key, int64_t now_ms, struct str *out) MUST_CHECK;

/* --- presigned URLs and signed addresses (presign.c) --- */

struct web_presigned {
    struct str url; /* in the arena */
    int64_t expires_ms;
};
/* Makes a presigned URL of weir's S3 endpoint. For 15 minutes anybody who has the URL can send a
 * request with this method for the address (s3://bucket/key), in the name of the repository's
 * owner. ERR_UNSUPPORTED: the configuration does not name the endpoint (s3.url). */
int web_presign(struct rest_call *c, const struct lake_repo *r, const char *method,
                struct str address, struct web_presigned *out, struct err *err) MUST_CHECK;
/* Like web_presign(), but for a request with a query, such as the upload of a part. */
int web_presign_query(struct rest_call *c, const struct lake_repo *r, const char *method,
                      struct str address, struct str query, struct web_presigned *out,
                      struct err *err) MUST_CHECK;

/* An address that weir has given to a client for the upload of an object to a path. */
struct web_link {
    const struct lake_repo *repo;
    struct str branch, path;
    struct str address; /* a new address below the namespace */
};
/* Returns the signed key "<address>,<signature>", in the arena. The client stores the object under
 * this key. */
struct str web_link_sign(const struct lake_web *w, struct arena *a, const struct web_link *link,
                         int64_t now_ms);
/* Checks a signed key that a client has sent. `wanted` has the repository, branch and path for
 * which it must be signed; its address is not used. ERR_INVALID: the key was not signed for these,
 * or was signed more than a day ago. */
int web_link_check(const struct lake_web *w, const struct web_link *wanted, struct str key,
                   int64_t now_ms, struct err *err) MUST_CHECK;

/* Makes a new signed key for the path of the call (staging.c). */
struct str web_new_link(struct rest_call *c, const struct lake_repo *repo);
/* Gets the signed key from the address to which a client has uploaded, and checks it. ERR_INVALID:
 * weir did not give the address for the branch and path of the call. */
int web_link_key(struct rest_call *c, const struct lake_repo *repo, struct str address,
                 struct str *key, struct err *err) MUST_CHECK;

/* --- values of requests and answers (forms.c) --- */

/* Returns the page of a list that the call asks for, with the prefix in the query. */
struct lake_page web_page(const struct rest_call *c);
/* Gets a map of strings from the call's body, as sorted pairs in the arena. */
int web_pairs(struct rest_call *c, const json_t *map, struct str_pairs *out,
              struct err *err) MUST_CHECK;
/* Gets an array of strings from the call's body. The strings point into the body. */
int web_strs(struct rest_call *c, const json_t *list, const struct str **out, size_t *count,
             struct err *err) MUST_CHECK;

/* Answers 409 to a merge that was refused, with the conflicting paths (merges.c). */
int web_merge_refuse(struct rest_call *c, const struct lake_conflicts *conflicts,
                     const struct err *err);
void web_write_pairs(struct json_out *w, const char *name, const struct str_pairs *pairs);
void web_write_user(struct json_out *w, const struct user *user);
void web_write_repo(struct json_out *w, const struct lake_repo *r);
void web_write_ref(struct json_out *w, struct str id, struct str commit_id);
void web_write_commit(struct json_out *w, const struct lake_commit *c);
/* How to write an object's members. `address` is the address that is shown; empty: the address in
 * the entry. It expires at `expires_ms`; 0: never. */
struct web_stats_options {
    bool metadata; /* write the user metadata */
    struct str address;
    int64_t expires_ms;
};
void web_write_stats(struct rest_call *c, const struct lake_repo *r, const struct lake_object *o,
                     const struct web_stats_options *how);
/* Returns the full address of the entry's bytes: the entry's own address if that is full, otherwise
 * s3://bucket/key, made in the arena from the repository's namespace and the address. */
struct str web_address(struct arena *a, const struct lake_repo *r, const struct lake_entry *e);

/* --- tables, one for each file --- */

extern const struct rest_table web_server_rows, web_auth_rows, web_user_rows, web_repo_rows,
    web_branch_rows, web_tag_rows, web_commit_rows, web_merge_rows, web_diff_rows, web_object_rows,
    web_upload_rows, web_copy_rows, web_staging_rows, web_setting_rows, web_gc_rows,
    web_import_rows, web_multipart_rows, web_tree_rows, web_pull_rows, web_run_rows, web_refs_rows,
    web_migration_rows, web_diagnosis_rows, web_refused_rows;

#endif
