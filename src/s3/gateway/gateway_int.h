/* One S3 request (struct call), and the functions by which the files of the gateway work on it.
 * Only for the files of this folder. */
#ifndef S3_GATEWAY_GATEWAY_INT_H
#define S3_GATEWAY_GATEWAY_INT_H

#include "base/xml.h"
#include "object/names.h"
#include "object/range.h"
#include "s3/access/access.h"
#include "s3/access/auth.h"
#include "s3/gateway/capture.h"
#include "meta/document.h"
#include "meta/encryption.h"
#include "s3/gateway/gateway.h"
#include "meta/keyring.h"
#include "s3/notify/notify.h"
#include "s3/gateway/payload.h"
#include "route/resolve.h"

enum {
    CALL_QUERY_MAX = 64,        /* limit on the parameters of a query */
    CALL_XML_MAX = 1024 * 1024, /* limit on the bytes of a body that is a document */
    /* Limit on the bytes of a body that lists parts or keys (OP_LIST). */
    CALL_LIST_MAX = XML_MAX_BYTES,
    /* Limit on the bytes of x-amz-meta-*: names behind that prefix, and values. */
    CALL_USER_META_MAX = 2 * 1024,
    CALL_OUT_MAX = 8 * 1024 * 1024, /* limit on the bytes of a document in an answer */
};
#define CALL_PUT_MAX ((uint64_t)5 * GIB) /* limit on the bytes of one PUT, part or copy */

struct copy_source;
struct facts;
struct facts_table;

struct gateway {
    struct gateway_options o;
    struct budget documents; /* memory for bodies that are documents, and for their parsed trees */
    struct budget strangers; /* the part of `documents` that anonymous requests may use */
    struct sign_keys *keys;
    struct facts_table *facts;
    struct keyring *ring; /* NULL: nothing can be encrypted */
    struct str region;
};

enum call_level { LEVEL_SERVICE, LEVEL_BUCKET, LEVEL_OBJECT };

struct call;

/* All that is known of an operation: a row of gateway_table.c. */
struct operation {
    enum s3_operation id;
    enum http_method method;
    enum call_level level;
    const char *query;                      /* a parameter that the request must have; NULL: none */
    const char *header;                     /* a header that the request must have; NULL: none */
    const char *log_name;                   /* name in the access log, after "REST.<method>." */
    int (*fn)(struct call *, struct err *); /* NULL: the answer is NotImplemented */
    unsigned flags;                         /* a set of enum operation_flags */
    unsigned changes; /* a set of enum thing_kind that the operation changes when it succeeds */
    enum thing_kind thing; /* what the operation reads or changes; 0: the object or bucket itself */
    const char *takes;     /* a parameter that the request may also have; NULL: none */
};

enum operation_flags {
    OP_FAST = 1,      /* may run on a fast worker (http/server.h), where nothing may wait */
    OP_XML = 2,       /* the body is a document (call->body), read once access is granted */
    OP_NO_BUCKET = 4, /* the bucket need not exist, or fn opens it */
    OP_ASKS = 8,      /* fn itself checks access */
    OP_LIST = 16,   /* with OP_XML: the body is a list of up to 10,000 parts or 1000 keys, so it may
                       be larger */
    OP_MAKES = 32,  /* makes the bucket */
    OP_COPIES = 64, /* reads another object, which x-amz-copy-source names */
    OP_WHOLE = 128, /* replaces or removes the whole object, whatever it was before */
    /* The request is about many keys, or about a key that does not exist yet. In a bucket on two
     * storages it goes to the side that gets the writes. */
    OP_AT_ROUTE = 256,
    OP_MERGED = 512, /* a listing; in a bucket on two storages it is merged from both sides */
    OP_EARLY = 1024, /* answers 200 before it succeeds; the body ends with the result */
    /* With OP_FAST: reads an object by head_now() or get_now(), where the bucket has them and
     * nothing may wait. */
    OP_READS_NOW = 2048,
};

struct call_param {
    struct str name, value; /* decoded */
};

/* The bucket that a request, or the source of a copy, is about: where it is, and the facts that
 * access is decided on. call_locate() fills in `at`, and call_open() the rest. A bucket is
 * *foreign* if its storage decides about access (route/resolve.h). */
struct call_target {
    struct target at;
    /* While the bucket is on two storages: the side whose policy and lists decide about access.
     * That side differs from at.storage only where weir serves both sides. NULL: the bucket is on
     * one storage. */
    struct storage *facts_at;
    /* A reference, which keeps all members below valid. NULL: the bucket is not open, or is
     * foreign. */
    struct facts *facts;
    struct bucket *bucket;   /* the bucket with the objects; `facts` or `at` has the reference;
                                NULL: it is not open */
    struct bucket_info info; /* of a foreign bucket only the name is set (docs/forward.md, F2) */
    struct policy *policy;
    bool policy_binds_owner;
    struct acl *acl; /* NULL: the bucket has no access list */
    struct public_block block;
    enum ownership ownership;
    struct str logging;  /* the stored logging configuration; empty: requests are not logged */
    bool requester_pays; /* users other than the owner must declare that they pay */
    bool may_expire;     /* the bucket may have rules that remove objects after a time */
    bool may_encrypt;    /* the bucket may have a default encryption */
};

/* The encryption of the object that the answer is about. */
struct call_encryption {
    enum sse_kind kind;
    struct str key_id, context, customer_md5;
    bool bucket_key;
    /* The key of a new object's bytes, wiped when the call ends (docs/encryption.md, E7). */
    struct sealed_key data;
};

/* One object of a request that is about several objects: a key of DeleteObjects, or the source of a
 * copy. */
struct call_item {
    struct str version, if_match; /* empty: not given */
};

struct call {
    struct gateway *g;
    struct http_request *http;
    const struct http_head *head; /* includes hoisted headers (gateway_hoist.c) */
    struct arena *a;
    const struct operation *op;
    bool beyond; /* the query has parameters that `op` does not know, but a remote storage may */
    struct err *refusal; /* the error with which weir refuses the request unless a remote storage
                            gets it; NULL: none */
    enum call_level level;
    struct str bucket_name, key; /* decoded */
    struct str host_bucket; /* the bucket that Host names, in lower case; empty in path style */
    bool is_website;        /* Host is the name of the bucket's website */
    int status;         /* status of an answer that sends a website's error page; 0: the operation
                           chooses the status */
    struct str version; /* the parameter versionId; empty: not given */
    struct call_param query[CALL_QUERY_MAX];
    size_t query_count;
    bool hoists; /* x-amz-* parameters of the query count as headers */
    struct identity auth;
    const struct user *user; /* NULL: anonymous; set by call_be() */
    struct str user_id;      /* id of `user`; empty: anonymous */
    /* `user` comes from the presigned URL of a preflight, whose signature cannot be checked
     * (docs/forward.md, F10). */
    bool claimed;
    struct call_target target;
    struct copy_source *source; /* source of a copy; NULL: not looked for yet */
    /* The request to the target's storage, while its answer is waited for. NULL: there is none, or
     * it must be sent again. */
    struct exchange *exchange;
    bool waits;        /* another function will continue the call (http_await, http_go_on) */
    bool needs_thread; /* the storage has answered, and a thread of the pool is asked for */
    struct str body;   /* the document of OP_XML; its memory is in `document` */
    struct buf document;
    /* The budget that counts the memory of `document`; NULL: no document was read. */
    struct budget *budget;
    int body_read; /* 1: `body` was read; 0: not yet; negative: the error of reading it */
    struct notification *notification; /* the bucket's configuration; NULL: not needed yet */
    struct notify_event *event; /* the event of the change being made; NULL: nobody is notified */
    struct capture capture;     /* the announcement of the request's change */
    bool begun; /* the answer is being sent, so an error can no longer be answered */
    int64_t now_ms;
    struct call_encryption encryption;
    /* members for the access log: */
    int answered;        /* status of the answer; 0: none yet */
    int error;           /* code of the error that was answered; 0: none */
    int64_t answered_ms; /* when the answer was sent; 0: the bucket is not logged */
    bool has_size;       /* `size` is known */
    uint64_t size;       /* bytes of the object that was read or written */
    bool acl_required;   /* without an access list the request would have been refused */
    bool auth_failed;
    bool charged;    /* the bucket's requesters pay, and the user has declared to pay */
    bool incomplete; /* a storage could not be asked, so its part of the answer is missing */
    /* members for the values of policy conditions: */
    const struct object_info *object; /* the object that the request acts on; NULL: not known */
    const struct call_target *judged; /* the bucket that access is decided on */
    /* The object that access is decided on. NULL: the object that the request names. */
    const struct call_item *item;
    struct str new_tags; /* new tags that are not in a header, in the form of x-amz-tagging */
    /* A key that does not exist. Set only while weir checks whether the user may learn that the key
     * does not exist. That takes the right to list the bucket with this key as prefix. */
    struct str absent_key;
    struct policy_values values;
    struct str value;
};

/* --- gateway.c --- */

/* If `code` is an error, answers with that error; always releases all that the call holds. Returns
 * the result for the HTTP handler. */
int call_finish(struct call *c, int code, const struct err *err);

/* --- gateway_find.c --- */

/* Finds the operation: sets c->op. InvalidArgument: the query could be read in two ways
 * (docs/forward.md, F13). NotImplemented: weir does not have the operation, or the operation does
 * not know a parameter. MethodNotAllowed: the method does not fit. If there are remote storages,
 * which may know more, the last two errors are kept in c->refusal instead. For an unknown
 * parameter, c->op and c->beyond are set too: a storage that does not know the parameter either
 * ignores it and does the operation. */
int call_find_operation(struct call *c, struct err *err) MUST_CHECK;
/* Checks a request that is signed by version 2. AccessDenied: the query has a parameter that an
 * operation may know and that the signature does not cover. */
int call_check_v2(const struct call *c, struct err *err) MUST_CHECK;
/* Whether every operation ignores this parameter. */
bool call_ignores(struct str parameter);

/* --- gateway_request.c: finds out what the request asks for, and who asks --- */

int call_parse(struct call *c, struct err *err) MUST_CHECK;
int call_authenticate(struct call *c, struct err *err) MUST_CHECK;
/* For a preflight whose signature cannot be checked: sets the user whom its address names. */
void call_claim(struct call *c);
struct str call_signed_method(const struct call *c); /* the method that the signature covers */
int call_auth_options(struct call *c, struct auth_options *out);
/* Returns the parameter's value; NULL p: the query does not have the parameter. */
struct str call_param(const struct call *c, const char *name);
/* Reads a parameter that is a whole number of at most `max`; *out is `fallback` when the parameter
 * is absent or empty. InvalidArgument: the value is not such a number. */
int call_number(const struct call *c, const char *name, uint64_t fallback, uint64_t max,
                uint64_t *out, struct err *err) MUST_CHECK;
/* Reads the body, which is a document, into c->body. A second call does nothing and returns the
 * first result. */
int call_read_body(struct call *c, struct err *err) MUST_CHECK;
/* Reads all of `from` into the empty `out`, within the budget for documents. ERR_BUSY: the budget
 * is used up. The caller passes `out` and *budget to call_drop_gathered(), also after an error. */
int call_gather(struct call *c, struct reader *from, struct buf *out, struct budget **budget,
                struct err *err) MUST_CHECK;
void call_drop_gathered(struct budget *budget, struct buf *text); /* both may be empty */
/* Sets the user of the request; NULL: the request is anonymous. */
static inline void call_be(struct call *c, const struct user *user)
{
    c->user = user;
    c->user_id = user ? user->id : STR_EMPTY;
}

/* --- gateway_hoist.c: headers that came as parameters of a presigned request --- */

/* Adds the headers that came as parameters to c->head. The signature is checked over the request's
 * own head, without them. InvalidRequest: a header and a parameter contradict each other. */
int call_hoist(struct call *c, struct err *err) MUST_CHECK;
/* Whether the parameter stands for a header. */
bool call_hoists(const struct call *c, struct str parameter);

/* --- gateway_target.c: where the request's bucket is, and what is known of it --- */

/* Asks the routes where the bucket in `ask` is. Fills in t->at, and t->facts if the facts are in
 * memory. ERR_AGAIN: the call would have to wait, and this thread may not. Other errors are those
 * of route_resolve(). */
int call_locate(struct call *c, struct call_target *t, struct route_ask *ask,
                struct err *err) MUST_CHECK;
/* Like call_locate(), for the request's own bucket: fills in c->target. While the bucket is being
 * switched, the target is the side that the request goes to. If `at` is not NULL, the target is the
 * bucket on that storage, wherever the routes lead. */
int call_resolve(struct call *c, struct storage *at, struct err *err) MUST_CHECK;
/* Checks that an announced change still goes to the right storage, if the routes have changed since
 * c->target was found, for instance while a body was read. ERR_BUSY: the bucket has moved. */
int call_check_route(struct call *c, struct err *err) MUST_CHECK;
/* Called when the request's bucket was made on the storage. If a space has taken its name meanwhile
 * (route/space.h), the bucket is removed again, and the result is S3_BUCKET_ALREADY_EXISTS. */
int call_yield_bucket(struct call *c, struct storage *s, struct err *err) MUST_CHECK;
/* Opens the bucket that call_locate() has found, and reads its facts; `bucket` is its name.
 * ERR_NO_BUCKET: there is no such bucket. ERR_AGAIN: the call would have to wait, and this thread
 * may not. */
int call_open(struct call *c, struct call_target *t, struct str bucket, struct err *err) MUST_CHECK;
void call_close(struct call_target *t);

/* --- gateway_access.c --- */

/* May the user do the action on the key? `object` is NULL if there is no such object, or if the
 * object does not matter. */
bool call_may(struct call *c, struct call_target *t, enum s3_action action, struct str key,
              const struct object_info *object);
/* May the user do the action on any key of the bucket at all? If not, the body of the request need
 * not be read. */
bool call_may_ever(struct call *c, struct call_target *t, enum s3_action action);
/* May everybody, without a signature, do the action on the object? */
bool call_anyone_may(struct call *c, enum s3_action action, const struct object_info *object);
/* Returns the action that the operation needs a right for, on the version that the request names.
 */
enum s3_action call_action(const struct call *c);
/* Like call_may(), but returns 0, or AccessDenied if the user may not. */
int call_need(struct call *c, struct call_target *t, enum s3_action action, struct str key,
              const struct object_info *object, struct err *err) MUST_CHECK;
/* Checks that the user may put tags on a new object. AccessDenied: the user may not. The right to
 * write, if the bucket's access list gives it, includes the right to put tags. */
int call_need_tagging(struct call *c, struct err *err) MUST_CHECK;
/* Checks that the user may give a new object this access list. AccessDenied: the user may not. A
 * list that opens the object to nobody but its owner and the bucket's owner needs only the right to
 * write, as on Ceph. A denial of the policy always counts. */
int call_need_acl(struct call *c, const struct acl *acl, struct err *err) MUST_CHECK;
/* Returns the error for a key that does not exist: AccessDenied if the user may not list the
 * bucket, else NoSuchVersion if `version`, else NoSuchKey. */
int call_absent(struct call *c, struct call_target *t, struct str key, bool version,
                struct err *err);
/* Finds the object, checks access, then reads the body if it is a document (OP_XML). This is for
 * operations on data beside the object's bytes, such as tags. */
int call_object(struct call *c, struct get_result *out, struct err *err) MUST_CHECK;
struct acl_users call_acl_users(struct call *c);

/* --- gateway_condition.c --- */

/* Finds the value of a condition key, as a callback of struct policy_request; `ctx` is the call. */
bool call_condition_value(void *ctx, enum policy_key key, struct str suffix,
                          struct policy_values *out);

/* --- gateway_facts.c: what is known of a bucket, shared by requests; any thread --- */

struct facts_table *facts_table_new(void);
void facts_table_free(struct facts_table *t);

/* Reads and decodes the bucket's documents. Takes over the caller's reference of the bucket, also
 * when the call fails. ERR_AGAIN: the policy is large, and may_block is false. */
int facts_read(struct facts **out, struct bucket *b, bool may_block, struct err *err) MUST_CHECK;
void facts_unref(struct facts *f); /* NULL is fine */
/* Sets every member of *t, except `at` and `facts_at`, to what t->facts knows of the bucket. */
void facts_fill(struct call_target *t);
/* Finds the bucket's document of this name; empty: the bucket has no such document. For the
 * target's bucket the result is the document as it was when the target was opened. */
int call_document(struct call *c, struct bucket *b, const char *name, struct str *out,
                  struct err *err) MUST_CHECK;

/* Returns a reference to facts of this bucket that are valid now; NULL: none are in memory. */
struct facts *facts_find(struct facts_table *t, struct storage *s, struct str bucket);
/* The context of facts_known(), which is a route_ask.knows: it looks for facts that are valid now,
 * and leaves them here. */
struct facts_search {
    struct facts_table *table;
    struct facts *found; /* a reference; NULL: none were found */
};
bool facts_known(void *ctx, struct storage *s, struct str bucket, struct str *owner);
void facts_keep(struct facts_table *t, struct facts *f);

/* --- gateway_answer.c --- */

void respond_begin(struct call *c, int status); /* adds the headers that all answers have */
/* Use these functions to send text that was stored or that another program wrote. They leave out a
 * text that is not a valid header value; http_respond_header() would treat such a text as a bug.
 * respond_header() does nothing if `value` is empty. */
void respond_header(struct call *c, const char *name, struct str value);
void respond_kept_header(struct call *c, const struct http_header *h);
void respond_etag(struct call *c, struct str etag);
/* Adds x-amz-version-id of a version that was just made, unless the id is "null", as it is while
 * versioning is suspended. */
void respond_new_version(struct call *c, struct str version);
void respond_time(struct call *c, const char *name, int64_t ms);
int respond_empty(struct call *c, int status) MUST_CHECK;
/* Sends the document and releases it. */
int respond_xml(struct call *c, int status, struct buf *xml) MUST_CHECK;
int respond_error(struct call *c, int code, const struct err *err) MUST_CHECK;
/* Logs an error that is weir's own failure, once. Errors that the client has caused are not
 * logged. */
void call_log_failure(struct call *c, int code, const struct err *err);
/* call_cors() returns the bucket's CORS rules; NULL: the bucket has none. */
struct cors;
struct cors *call_cors(struct call *c);
void xml_time(struct buf *out, const char *name, int64_t ms);
void xml_etag(struct buf *out, struct str etag);
void xml_bool(struct buf *out, const char *name, bool value);
void xml_owner(struct buf *out, struct call *c, const char *name, struct str id);
void xml_checksum(struct buf *out, const struct object_checksum *sum);
void xml_checksum_type(struct buf *out, const struct object_checksum *sum);
struct str checksum_type_name(enum checksum_type type); /* "COMPOSITE" or "FULL_OBJECT" */

/* --- gateway_meta.c: headers that are kept with an object, from a request and to an answer --- */

int meta_from_request(struct call *c, struct object_meta *out, struct err *err) MUST_CHECK;
/* Fills in the tags, access list, owner and lock of a new object. Needs c->target. */
int meta_common(struct call *c, struct object_meta *out, struct err *err) MUST_CHECK;
void respond_object(struct call *c, const struct object_info *info);
/* Adds x-amz-expiration, if a rule of the bucket removes this version while it is current. */
void respond_expiration(struct call *c, const struct object_info *info);
/* Like respond_expiration(), for an object that was just put. */
void respond_put_expiration(struct call *c, const struct put_result *put,
                            const struct object_meta *meta);
int conditions_read(struct call *c, const char *prefix, struct object_conditions *out,
                    struct err *err) MUST_CHECK;
/* Reads two conditions that only removals have: on the time (HTTP or ISO 8601) and on the size of
 * the existing object. An empty string is no condition. */
int removal_conditions_read(struct str time, struct str size, struct object_conditions *out,
                            struct err *err) MUST_CHECK;
/* Does the change have a condition on the existing object? */
bool call_is_conditional(const struct call *c);
int range_read(struct call *c, struct object_range *out, struct err *err) MUST_CHECK;

/* --- gateway_capture.c: changes that replication must know of --- */

/* Announces what the request changes at its target, before anything is sent or changed, and before
 * a large body is read. `keys` are the keys of DeleteObjects, else NULL. After an error the change
 * must not be made. ERR_STORE: the change cannot be captured, or this process's lease is over
 * (capture.h). ERR_BUSY: the bucket is being switched, or has moved to another storage. */
int call_capture(struct call *c, const struct str *keys, size_t count, struct err *err) MUST_CHECK;
/* Asks, just before a remote storage gets the last bytes of a change, whether they may be sent.
 * ERR_STORE: they must not be sent, because the lease is over. */
int call_may_send(struct call *c, struct err *err) MUST_CHECK;
/* Reports how an announced change ended. Does nothing if no change was announced, or if its outcome
 * was reported already. ERR_STORE: the lease ended during the change. Then the client must not get
 * the answer that the change succeeded, even if it did. */
int call_captured(struct call *c, enum outcome outcome, struct err *err) MUST_CHECK;
void call_not_captured(struct call *c); /* reports that the announced change was not made */

/* --- gateway_sides.c: buckets that are on two storages (docs/replication.md, D1 to D8) --- */

/* Changes c->target, of a bucket that is on two storages, to the side that the request goes to. */
int call_choose_side(struct call *c, struct err *err) MUST_CHECK;
/* Finds the storage that the header x-weir-storage names, from which an administrator may choose to
 * read (docs/forward.md, B2). Only for requests that have the header. ERR_AGAIN: the thread may not
 * wait. */
int call_view(struct call *c, struct storage **out, struct err *err) MUST_CHECK;
/* For a website: changes c->target to the side that this key is read from. */
int call_turn(struct call *c, struct str key, struct err *err) MUST_CHECK;
/* Chooses the side that the source of a copy is read from, if the source's bucket is being
 * switched. */
int call_choose_source(struct call *c, struct copy_source *s, struct err *err) MUST_CHECK;
/* These two are for DeleteObjects in a bucket that is on two storages; elsewhere they do nothing.
 * Call call_before_removals() before the keys are removed; `alone` means that no removal has a
 * version or a condition. Call call_removed() afterwards, for those removals that have neither a
 * version nor a condition. */
int call_before_removals(struct call *c, const struct str *keys, size_t count, bool alone,
                         struct err *err) MUST_CHECK;
int call_removed(struct call *c, const struct str *keys, size_t count, struct err *err) MUST_CHECK;
/* Remembers an upload that was begun, if the bucket is on two storages. Call it before the client
 * gets the answer. */
int call_upload_begun(struct call *c, struct str id, struct err *err) MUST_CHECK;
/* These two list the bucket. If it is on two storages, the listings of both sides are merged. */
int call_list(struct call *c, const struct list_options *o, bool versions, struct list_result *out,
              struct err *err) MUST_CHECK;
int call_list_uploads(struct call *c, const struct list_options *o, struct upload_list *out,
                      struct err *err) MUST_CHECK;

/* --- gateway_notify.c --- */

/* Makes the note that a storage gets with a change of the key, so that the storage writes an event
 * in the same commit as the change. *out is NULL if nobody is to be notified. Call call_told()
 * after the change. */
int call_note(struct call *c, enum s3_event event, struct str key, const struct change_note **out,
              struct err *err) MUST_CHECK;
void call_told(struct call *c); /* call it when the change has succeeded */
/* Checks a new notification configuration and sends a test event. Writes the form that is stored to
 * *kept, or nothing if the configuration is empty. */
int notification_take(struct call *c, struct buf *kept, struct err *err) MUST_CHECK;

/* --- gateway_log.c --- */

/* Writes the request's line into the access log of its bucket, if the bucket is logged. Call it
 * once the request is answered. */
void call_log(struct call *c);
/* These two write one more line: call_log_removal() for a key of DeleteObjects, call_log_copied()
 * in the log of the bucket that a copy was read from. */
void call_log_removal(struct call *c, struct str key, struct str version, int code);
void call_log_copied(struct call *c, int code);

/* --- gateway_website.c --- */

/* website_run() answers the request, or returns an error. website_error() answers that error. */
int website_run(struct call *c, struct err *err) MUST_CHECK;
int website_error(struct call *c, int code, const struct err *err) MUST_CHECK;

/* --- op_attributes.c --- */

/* Writes <ObjectParts> of an object that was made of parts. The element has the page of parts that
 * the request asks for. */
int xml_object_parts(struct call *c, struct buf *xml, const struct object_info *info,
                     struct err *err) MUST_CHECK;

/* --- op_upload.c --- */

/* Reads the metadata that an upload on a local storage was begun with. NoSuchUpload: there is no
 * such upload. */
int upload_meta(struct call *c, const struct upload_info *upload, struct object_meta *out,
                struct err *err) MUST_CHECK;

/* --- op_copy.c --- */

struct copy_source {
    struct call_target target;
    struct str bucket, key, version;
    struct get_result head;
};
/* Reads and decodes the names in x-amz-copy-source. InvalidArgument: the header is malformed. */
int copy_source_parse(struct call *c, struct copy_source *out, struct err *err) MUST_CHECK;
/* Fills in c->source: the names in x-amz-copy-source, and where that bucket is. InvalidArgument:
 * the header is malformed. */
int copy_source_find(struct call *c, struct err *err) MUST_CHECK;
/* Does what copy_source_find() does, then opens the source and checks access and the conditions.
 * *out is c->source. */
int copy_source_open(struct call *c, struct copy_source **out, struct err *err) MUST_CHECK;
/* Opens the bytes of the version that access was decided on. ERR_CONFLICT: the version was replaced
 * meanwhile. */
int copy_source_get(struct call *c, struct copy_source *s, const struct object_range *range,
                    struct get_result *out, struct err *err) MUST_CHECK;
bool copy_source_is_versioned(const struct copy_source *s);
/* Writes x-amz-copy-source for a storage, from the names that access was decided on
 * (docs/forward.md, F13). */
int copy_source_text(struct call *c, struct str *out, struct err *err) MUST_CHECK;
/* Returns whether the request is a CopyObject or UploadPartCopy. */
static inline bool call_is_copy(const struct call *c)
{
    return c->op && c->op->flags & OP_COPIES;
}
/* Can the target's bucket copy from the source's bucket without moving bytes? */
bool copy_shares(const struct call *c, const struct copy_source *s);

/* --- gateway_encrypt.c (docs/encryption.md) --- */

/* Puts the envelope and the key of a new object into `o`, if the request or the bucket's default
 * asks for encryption. The envelope is the wrapped key, which is stored with the object. `data` is
 * the key that encrypts the object's bytes already, as in a copy that moves no bytes; NULL: a new
 * key is made. */
int encrypt_new(struct call *c, const struct sealed_key *data, struct put_options *o,
                struct err *err) MUST_CHECK;
/* Like encrypt_new(), for a part of an upload with this metadata. `o` gets the upload's key, if the
 * upload has one. */
int encrypt_part(struct call *c, const struct object_meta *upload, struct put_options *o,
                 struct err *err) MUST_CHECK;
/* Checks that the request has the key that it needs to finish an upload with this metadata. */
int encrypt_finish(struct call *c, const struct object_meta *meta, struct err *err) MUST_CHECK;
/* Checks that the request has the customer's key, if the object is encrypted with one. */
int encrypt_check(struct call *c, const struct object_info *info, struct err *err) MUST_CHECK;
/* Does what encrypt_check() does, and makes the body readable. ERR_AGAIN: the call would have to
 * wait, and this thread may not. */
int encrypt_unlock(struct call *c, struct get_result *got, struct err *err) MUST_CHECK;
/* encrypt_source() finds the data key of a copy's source, and encrypt_source_unlock() makes its
 * body readable. Both do nothing for a source that is not encrypted. */
int encrypt_source(struct call *c, const struct copy_source *s, struct sealed_key *out,
                   struct err *err) MUST_CHECK;
int encrypt_source_unlock(struct call *c, const struct copy_source *s, struct get_result *got,
                          struct err *err) MUST_CHECK;
/* Makes a random ETag, in a form that shows that it is not an MD5. */
struct str encrypt_etag(struct call *c);
/* For a request with an uploadId: returns the value of a policy's condition key about encryption,
 * as the client asked for it when the upload was begun. NULL p: the request names no upload that
 * can be read, or the upload gives the key no value. */
struct str encrypt_policy_value(struct call *c, enum policy_key key);
void respond_encryption(struct call *c);

/* --- checksum.c: checksums that weir makes (docs/gateway.md) --- */

/* Returns the kind of checksum to make for a part whose client claims none, of an upload with this
 * metadata; DIGEST_MD5: none is made. */
enum digest_kind checksum_of_part(const struct object_meta *upload);
/* Reads the kind in x-amz-checksum-algorithm; DIGEST_MD5: the header is not given. InvalidRequest:
 * the kind is unknown. */
int checksum_asked(struct call *c, enum digest_kind *out, struct err *err) MUST_CHECK;
/* Checks that weir can verify every checksum of the request, because each claim about a body is
 * verified or refused. InvalidRequest: a checksum is of a kind that weir cannot verify. */
int checksum_check_names(const struct call *c, struct err *err) MUST_CHECK;
/* Is `sum` a checksum of this kind over all bytes, so that a copy of the bytes has the same
 * checksum? */
bool checksum_is_whole(const struct object_checksum *sum, enum digest_kind kind);

/* A body whose checksum is computed as it flows into a storage. */
struct summed {
    struct reader reader;
    struct reader *from;
    struct digests *digests;
    enum digest_kind kind;
    struct arena *a;
    struct object_checksum checksum; /* set once all bytes were read */
};
/* Returns the reader to use instead of `from`, which stays open. For DIGEST_MD5 that is `from`
 * itself. Sets `put` up to receive the checksum. */
struct reader *summed_open(struct summed *s, struct arena *a, struct reader *from,
                           enum digest_kind kind, struct put_options *put);
void summed_close(struct summed *s);
/* Reads all of `from` and computes its checksum. */
int checksum_compute(struct arena *a, struct reader *from, enum digest_kind kind,
                     struct object_checksum *out, struct err *err) MUST_CHECK;

/* --- op_put.c --- */

/* The body of an object or part that is put. The storage computes its MD5 into `md5`. */
struct put_body {
    struct payload payload;
    struct arena *a;
    bool open;
    unsigned char md5[MD5_LEN];
};
/* Opens the request's own body. `otherwise` is the kind of checksum to make when the client claims
 * none; DIGEST_MD5: none is made. */
int put_body_open(struct put_body *b, struct call *c, enum digest_kind otherwise,
                  struct put_options *put, struct err *err) MUST_CHECK;
/* Opens a body that is read from `from` instead of from the client; c->head has the headers that
 * describe it. The caller has filled in the other members of `o`. */
int put_body_init(struct put_body *b, struct call *c, struct reader *from,
                  struct payload_options *o, struct put_options *put, struct err *err) MUST_CHECK;
void put_body_close(struct put_body *b);
int put_body_verify(void *ctx, struct object_meta *meta, struct err *err); /* ctx is the put_body */
void respond_checksum(struct call *c, const struct object_checksum *sum);

/* --- op_usage.c --- */

/* Checks that the user may have one more bucket. TooManyBuckets: the user has as many as allowed.
 * If several requests come at the same time, all of them may pass this check. */
int usage_check_new_bucket(struct call *c, struct err *err) MUST_CHECK;
/* Adds the headers that say how much the target's bucket holds. */
void respond_usage(struct call *c, const struct bucket_usage *u);

/* --- the operations --- */

typedef int op_fn(struct call *c, struct err *err);
op_fn op_list_buckets, op_usage;
op_fn op_create_bucket, op_delete_bucket, op_head_bucket, op_bucket_location, op_get_versioning,
    op_put_versioning, op_options;
op_fn op_list_v1, op_list_v2, op_list_versions, op_list_uploads, op_list_parts;
op_fn op_delete_objects;
op_fn op_get_payment, op_put_payment, op_get_logging, op_put_logging, op_flush_logging;
op_fn op_get_document, op_put_document, op_delete_document, op_policy_status, op_get_bucket_acl,
    op_put_bucket_acl;
op_fn op_get_object, op_head_object, op_put_object, op_delete_object, op_copy_object;
op_fn op_get_tagging, op_put_tagging, op_delete_tagging, op_get_acl, op_put_acl, op_get_retention,
    op_put_retention, op_get_hold, op_put_hold, op_attributes, op_torrent, op_http_seed;
op_fn op_create_upload, op_upload_part, op_upload_part_copy, op_complete_upload, op_abort_upload;
op_fn op_post_object;

extern const struct operation operations[];
extern const size_t operation_count;

#endif
