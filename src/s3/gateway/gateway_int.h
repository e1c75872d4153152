/* One S3 request (struct call), which the files of the gateway hand to each other. Only for the
 * files of this folder. */
#ifndef S3_GATEWAY_GATEWAY_INT_H
#define S3_GATEWAY_GATEWAY_INT_H

#include "base/xml.h"
#include "object/names.h"
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
    CALL_QUERY_MAX = 64,            /* parameters of a query */
    CALL_XML_MAX = 1024 * 1024,     /* bytes of a body that is a document */
    CALL_LIST_MAX = XML_MAX_BYTES,  /* bytes of a body that is a list of parts or keys (OP_LIST) */
    CALL_USER_META_MAX = 2 * 1024,  /* bytes of x-amz-meta-* names (without prefix) and values */
    CALL_OUT_MAX = 8 * 1024 * 1024, /* bytes of a document in an answer */
};
#define CALL_PUT_MAX ((uint64_t)5 * GIB) /* bytes of one PUT, part or copy */

struct copy_source;
struct facts;
struct facts_table;

struct gateway {
    struct gateway_options o;
    struct budget documents; /* memory for bodies that are documents, and for their trees */
    struct budget strangers; /* the part of `documents` that anonymous requests may use */
    struct sign_keys *keys;
    struct facts_table *facts;
    struct keyring *ring; /* NULL: nothing can be encrypted */
    struct str region;
};

enum call_level { LEVEL_SERVICE, LEVEL_BUCKET, LEVEL_OBJECT };

struct call;

/* All that is known of an operation by its name: a row of gateway_table.c. */
struct operation {
    enum s3_operation id;
    enum http_method method;
    enum call_level level;
    const char *query;                      /* a parameter that the request must have; NULL: none */
    const char *header;                     /* likewise a header */
    const char *log_name;                   /* in the access log, behind "REST.<method>." */
    int (*fn)(struct call *, struct err *); /* NULL: NotImplemented */
    unsigned flags;                         /* enum operation_flags */
    unsigned changes; /* a set of enum thing_kind: what the operation changes when it succeeds */
    enum thing_kind thing; /* what it reads or changes; 0: the object, or the bucket, itself */
    const char *takes;     /* a parameter that a change may also have; NULL: none */
};

enum operation_flags {
    OP_FAST = 1,       /* may run where nothing may wait */
    OP_XML = 2,        /* the body is a document: call->body, read once access is granted (G1) */
    OP_NO_BUCKET = 4,  /* the bucket need not be there, or fn opens it */
    OP_ASKS = 8,       /* fn asks for access itself */
    OP_LIST = 16,      /* with OP_XML: 10,000 parts with checksums, or 1000 keys, all escaped */
    OP_MAKES = 32,     /* makes the bucket */
    OP_COPIES = 64,    /* reads another object, which x-amz-copy-source names */
    OP_WHOLE = 128,    /* replaces or removes the whole object, whatever was there */
    OP_AT_ROUTE = 256, /* for many keys, or a key that is yet to be made: goes where writes go */
    OP_MERGED = 512,   /* lists: made of both sides while a bucket is on two storages */
    OP_EARLY = 1024,   /* its head says success before it is one; the body says it at its end */
};

struct call_param {
    struct str name, value; /* decoded */
};

/* A bucket that a request is about: where it is, and what access is decided on besides the
 * request. call_locate() fills `at`, and call_open() the rest. */
struct call_target {
    struct target at;
    struct storage *facts_at; /* the side of a switch whose policy and lists count, where the bucket
                                 is on two storages; another one than at.storage only where weir
                                 serves both; NULL: the bucket is on one */
    struct facts *facts; /* a reference, which holds all that follows; NULL: not opened, foreign */
    struct bucket *bucket;   /* of the objects; held by `facts` or `at`; NULL: not opened */
    struct bucket_info info; /* of a foreign bucket: the name alone (F2) */
    struct policy *policy;
    bool policy_binds_owner;
    struct acl *acl; /* NULL: none kept */
    struct public_block block;
    enum ownership ownership;
    struct str logging;  /* the kept form of its configuration; empty: requests are not logged */
    bool requester_pays; /* users other than the owner must say that they pay */
};

/* How the object that an answer is about is encrypted. */
struct call_encryption {
    enum sse_kind kind;
    struct str key_id, context, customer_md5;
    bool bucket_key;
    struct sealed_key data; /* key of a new object's bytes; wiped with the call (E7) */
};

/* One object of a request that is about several: a key of a batch, or the source of a copy. */
struct call_item {
    struct str version, if_match; /* empty: none */
};

struct call {
    struct gateway *g;
    struct http_request *http;
    const struct http_head *head; /* with headers that came as parameters (gateway_hoist.c) */
    struct arena *a;
    const struct operation *op;
    bool beyond;         /* the query has more than op knows, which a raw storage may know */
    struct err *refusal; /* why weir cannot do the request, if no raw storage can; NULL: it can */
    enum call_level level;
    struct str bucket_name, key; /* decoded */
    struct str host_bucket; /* the bucket that Host names, in lower case; empty in path style */
    bool is_website;        /* Host is the name of the bucket's website */
    int status;             /* of the error, while its page is sent; 0: the answer's own */
    struct str version;     /* versionId; empty: not given */
    struct call_param query[CALL_QUERY_MAX];
    size_t query_count;
    bool hoists; /* x-amz-* parameters of the query are headers */
    struct identity auth;
    const struct user *user; /* NULL: anonymous; set by call_be() */
    struct str user_id;      /* of `user`; empty: anonymous */
    bool claimed;            /* `user` is only the one that a preflight's address names (F10) */
    struct call_target target;
    struct copy_source *source; /* of a copy, once it was looked for */
    struct exchange *exchange;  /* with the target's storage, while its answer is waited for; NULL:
                                   the answer must be asked for again */
    bool waits;      /* another function goes on with the call (http_await, http_go_on) */
    struct str body; /* of OP_XML; in `document` */
    struct buf document;
    struct budget *budget; /* pays for the memory of `document`; NULL: it was not read */
    int body_read;         /* 1: `body` was read; negative: the error of reading it */
    struct notification *notification; /* the bucket's configuration, once it was needed */
    struct notify_event *event;        /* of the change that is being made; NULL: nobody wants it */
    struct capture capture;            /* of a change that was announced */
    bool begun; /* the answer is being sent, so no error can be answered any more */
    int64_t now_ms;
    struct call_encryption encryption;
    /* for the access log: */
    int answered;        /* status of the answer; 0: none yet */
    int error;           /* code of the error that was answered; 0: none */
    int64_t answered_ms; /* 0: the bucket is not logged */
    bool has_size;       /* `size` is known */
    uint64_t size;       /* bytes of the object that was read or written */
    bool acl_required;   /* without an access list the request would have been refused */
    bool auth_failed;
    bool charged;    /* the user has said that they pay, in a bucket whose requesters must pay */
    bool incomplete; /* a storage could not be asked, so the answer lacks what it has */
    /* for values of policy conditions: */
    const struct object_info *object; /* that the request acts on; NULL: not known */
    const struct call_target *judged; /* the bucket that access is decided on */
    const struct call_item *item;     /* the object of the request that is judged; NULL: its own */
    struct str new_tags;   /* tags that do not come by header, in the form of x-amz-tagging */
    struct str absent_key; /* access to a listing of this prefix is asked for, which would show that
                              the key does not exist */
    struct policy_values values;
    struct str value;
};

/* --- gateway.c --- */

/* Answers the error, if `code` is one, and releases all that the call holds. Returns the result of
 * the handler. */
int call_finish(struct call *c, int code, const struct err *err);

/* --- gateway_find.c --- */

/* Sets c->op. InvalidArgument: the query could be read in two ways (docs/forward.md, F13).
 * NotImplemented, also for a parameter that the operation does not know; MethodNotAllowed. Where
 * there are remote storages, which may know more, the latter two are kept in c->refusal. With a
 * parameter that is not known, c->op is set too, and so is c->beyond: a storage that does not know
 * the parameter either ignores it, and does the operation. */
int call_find_operation(struct call *c, struct err *err) MUST_CHECK;
/* For a request that is signed by version 2. AccessDenied: the query has a parameter that some
 * operation may know and that the signature does not cover. */
int call_check_v2(const struct call *c, struct err *err) MUST_CHECK;
/* Is it a parameter that no operation looks at? */
bool call_ignores(struct str parameter);

/* --- gateway_request.c: what the request asks for, and who asks --- */

int call_parse(struct call *c, struct err *err) MUST_CHECK;
int call_authenticate(struct call *c, struct err *err) MUST_CHECK;
/* For a preflight whose signature cannot be checked: takes the user whom its address names. */
void call_claim(struct call *c);
struct str call_signed_method(const struct call *c); /* the method that signatures are made of */
int call_auth_options(struct call *c, struct auth_options *out);
/* The parameter's value; NULL p: the query does not have the parameter. */
struct str call_param(const struct call *c, const char *name);
/* The value of a parameter that is a whole number, `max` at most; `fallback` when it is absent or
 * empty. InvalidArgument. */
int call_number(const struct call *c, const char *name, uint64_t fallback, uint64_t max,
                uint64_t *out, struct err *err) MUST_CHECK;
/* Reads the document into c->body. Called again, it does nothing and returns the same. */
int call_read_body(struct call *c, struct err *err) MUST_CHECK;
/* Reads all of `from` into an empty buf, within the budget for documents. ERR_BUSY: the budget is
 * used up. The caller gives buf and *budget to call_drop_gathered(), also after an error. */
int call_gather(struct call *c, struct reader *from, struct buf *out, struct budget **budget,
                struct err *err) MUST_CHECK;
void call_drop_gathered(struct budget *budget, struct buf *text); /* both may be empty */
/* The request is this user's from now on; NULL: it is anonymous. */
void call_be(struct call *c, const struct user *user);

/* --- gateway_hoist.c: headers that came as parameters of a presigned request --- */

/* Puts them into c->head. Signatures are checked over the request's own head. InvalidRequest: a
 * header and a parameter contradict each other. */
int call_hoist(struct call *c, struct err *err) MUST_CHECK;

/* --- gateway_target.c: where the request's bucket is, and what is known of it --- */

/* Asks the routes where the bucket is that `ask` names, for the user who asks: fills t->at, and
 * t->facts when they are known. ERR_AGAIN where nothing may wait; else as route_resolve(). */
int call_locate(struct call *c, struct call_target *t, struct route_ask *ask,
                struct err *err) MUST_CHECK;
/* As call_locate(), for the request's own bucket: fills c->target. While the bucket is being
 * switched, that is the side that the request goes to. With `at` it is the bucket on that storage,
 * wherever the routes lead. */
int call_resolve(struct call *c, struct storage *at, struct err *err) MUST_CHECK;
/* For a change that was announced: is the bucket still where c->target has it? The target was found
 * before the change was announced, and a body may have been read since. ERR_BUSY: it is not. */
int call_check_route(struct call *c, struct err *err) MUST_CHECK;
/* Opens the bucket that t->at has found, and reads its facts; `bucket` is its name. ERR_NO_BUCKET.
 * ERR_AGAIN as above. */
int call_open(struct call *c, struct call_target *t, struct str bucket, struct err *err) MUST_CHECK;
void call_close(struct call_target *t);

/* --- gateway_access.c --- */

/* May the user do the action to the key? `object` NULL: there is no such object, or it does not
 * matter. */
bool call_may(struct call *c, struct call_target *t, enum s3_action action, struct str key,
              const struct object_info *object);
/* May the user do the action to any key of the bucket at all? If not, the body of the request need
 * not be read. */
bool call_may_ever(struct call *c, struct call_target *t, enum s3_action action);
/* May everybody, without a signature, do the action to the object? */
bool call_anyone_may(struct call *c, enum s3_action action, const struct object_info *object);
/* As call_may(); AccessDenied: no. */
int call_need(struct call *c, struct call_target *t, enum s3_action action, struct str key,
              const struct object_info *object, struct err *err) MUST_CHECK;
/* AccessDenied: the user may not put tags on a new object. Users who may write by the bucket's
 * access list may. */
int call_need_tagging(struct call *c, struct err *err) MUST_CHECK;
/* AccessDenied: the user may not give a new object this access list. A list that opens the object
 * to nobody but its owner and the bucket's owner needs only the right to write, as on Ceph; a
 * denial of the policy always counts. */
int call_need_acl(struct call *c, const struct acl *acl, struct err *err) MUST_CHECK;
/* The error for a key that does not exist: AccessDenied for users who may not list the bucket. */
int call_absent(struct call *c, struct call_target *t, struct str key, bool version,
                struct err *err);
/* Looks at the object, asks for access, then reads the document of OP_XML. For operations on what
 * is kept beside the object's bytes. */
int call_object(struct call *c, struct get_result *out, struct err *err) MUST_CHECK;
struct acl_users call_acl_users(struct call *c);

/* --- gateway_condition.c --- */

/* The value of a condition key, for struct policy_request; `ctx` is the call. */
bool call_condition_value(void *ctx, enum policy_key key, struct str suffix,
                          struct policy_values *out);

/* --- gateway_facts.c: what is known of a bucket, shared by requests; any thread --- */

struct facts_table *facts_table_new(void);
void facts_table_free(struct facts_table *t);

/* Reads and decodes the bucket's documents. Takes over the caller's reference of the bucket, also
 * when it fails. ERR_AGAIN: the policy is large, and may_block is false. */
int facts_read(struct facts **out, struct bucket *b, bool may_block, struct err *err) MUST_CHECK;
void facts_unref(struct facts *f); /* NULL is fine */
/* What is known of the bucket, without `at`. It never changes. */
const struct call_target *facts_target(const struct facts *f);
/* The bucket's document of this name; empty: it has none. For the target's bucket, the document is
 * as it was when the target was opened. */
int call_document(struct call *c, struct bucket *b, const char *name, struct str *out,
                  struct err *err) MUST_CHECK;

/* A reference to facts of this bucket that hold at this moment; NULL: none are known. */
struct facts *facts_find(struct facts_table *t, struct storage *s, struct str bucket);
void facts_keep(struct facts_table *t, struct facts *f);

/* --- gateway_answer.c --- */

void respond_begin(struct call *c, int status); /* with the headers that all answers have */
/* All text that was stored, or that another program wrote, is sent by these. A text that cannot be
 * a header is left out; http_respond_header() would take it for a bug. */
void respond_header(struct call *c, const char *name, struct str value); /* not when empty */
void respond_kept_header(struct call *c, const struct http_header *h);
void respond_etag(struct call *c, struct str etag);
/* x-amz-version-id of a version that was just made, unless it is "null", as where versions are
 * suspended. */
void respond_new_version(struct call *c, struct str version);
void respond_time(struct call *c, const char *name, int64_t ms);
int respond_empty(struct call *c, int status) MUST_CHECK;
/* Sends the document and releases it. */
int respond_xml(struct call *c, int status, struct buf *xml) MUST_CHECK;
int respond_error(struct call *c, int code, const struct err *err) MUST_CHECK;
/* Logs a failure of weir's own, once. Errors that the client has caused are not logged. */
void call_log_failure(struct call *c, int code, const struct err *err);
/* The bucket's CORS rules; NULL: it has none. */
struct cors;
struct cors *call_cors(struct call *c);
void xml_time(struct buf *out, const char *name, int64_t ms);
void xml_etag(struct buf *out, struct str etag);
void xml_bool(struct buf *out, const char *name, bool value);
void xml_owner(struct buf *out, struct call *c, const char *name, struct str id);
void xml_checksum(struct buf *out, const struct object_checksum *sum);
void xml_checksum_type(struct buf *out, const struct object_checksum *sum);
struct str checksum_type_name(enum checksum_type type); /* "COMPOSITE", "FULL_OBJECT" */

/* --- gateway_meta.c: headers that are kept with an object, from a request and to an answer --- */

int meta_from_request(struct call *c, struct object_meta *out, struct err *err) MUST_CHECK;
/* Fills in tags, access list, owner and lock; needs c->target. */
int meta_common(struct call *c, struct object_meta *out, struct err *err) MUST_CHECK;
void respond_object(struct call *c, const struct object_info *info);
/* x-amz-expiration, if a rule of the bucket removes this version while it is current. */
void respond_expiration(struct call *c, const struct object_info *info);
/* As respond_expiration(), for an object that was just put. */
void respond_put_expiration(struct call *c, const struct put_result *put,
                            const struct object_meta *meta);
int conditions_read(struct call *c, const char *prefix, struct object_conditions *out,
                    struct err *err) MUST_CHECK;
/* Conditions that only removals have: a time (HTTP or ISO 8601) and a size; empty: no condition. */
int removal_conditions_read(struct str time, struct str size, struct object_conditions *out,
                            struct err *err) MUST_CHECK;
/* Has the change a condition on the object that is there? */
bool call_is_conditional(const struct call *c);
int range_read(struct call *c, struct object_range *out, struct err *err) MUST_CHECK;
bool range_parse(struct str text, struct object_range *out);

/* --- gateway_capture.c: changes that replication must know of --- */

/* Announces what the request changes at its target, before anything is sent or changed, and before
 * a large body is read. `keys`: of DeleteObjects; else NULL. ERR_UNAVAILABLE: the change must not
 * be made. ERR_BUSY: nor that, for a while. */
int call_capture(struct call *c, const struct str *keys, size_t count, struct err *err) MUST_CHECK;
/* Asked just before a remote storage gets the last bytes of a change. ERR_BUSY: they must not be
 * sent. */
int call_may_send(struct call *c, struct err *err) MUST_CHECK;
/* Tells how an announced change ended. Does nothing if no change was announced, or if its outcome
 * was reported already. ERR_BUSY: however it ended, the client must not be told that it succeeded.
 */
int call_captured(struct call *c, enum outcome outcome, struct err *err) MUST_CHECK;
void call_not_captured(struct call *c); /* reports that the announced change was not made */

/* --- gateway_sides.c: buckets that are on two storages (docs/replication.md, D1 to D8) --- */

/* Turns c->target, of a bucket that is on two storages, to the side that the request goes to. */
int call_choose_side(struct call *c, struct err *err) MUST_CHECK;
/* An administrator may read on a storage of their choice, which the header x-weir-storage names
 * (docs/forward.md, B2): *out. Only for requests that have the header. ERR_AGAIN where nothing may
 * wait. */
int call_view(struct call *c, struct storage **out, struct err *err) MUST_CHECK;
/* For a website: makes c->target the side that serves this key. */
int call_turn(struct call *c, struct str key, struct err *err) MUST_CHECK;
/* Chooses the side that the source of a copy is read from, if its bucket is being switched. */
int call_choose_source(struct call *c, struct copy_source *s, struct err *err) MUST_CHECK;
/* For a batch of removals in a bucket that is on two storages; elsewhere these two do nothing. They
 * are called before the keys are removed and after that. `alone`: no removal has a version or a
 * condition. call_removed() is called for such removals alone. */
int call_before_removals(struct call *c, const struct str *keys, size_t count, bool alone,
                         struct err *err) MUST_CHECK;
int call_removed(struct call *c, const struct str *keys, size_t count, struct err *err) MUST_CHECK;
/* Remembers an upload that was begun, before that is answered. */
int call_upload_begun(struct call *c, struct str id, struct err *err) MUST_CHECK;
/* Listings of the bucket, made of both sides where it is on two storages. */
int call_list(struct call *c, const struct list_options *o, bool versions, struct list_result *out,
              struct err *err) MUST_CHECK;
int call_list_uploads(struct call *c, const struct list_options *o, struct upload_list *out,
                      struct err *err) MUST_CHECK;

/* --- gateway_notify.c --- */

/* The note that makes the storage notify of the change of the key, in the same commit; NULL: nobody
 * is to be notified. call_told() is called after the change. */
int call_note(struct call *c, enum s3_event event, struct str key, const struct change_note **out,
              struct err *err) MUST_CHECK;
void call_told(struct call *c); /* the change has succeeded */
/* Checks a new configuration and sends a test event. Writes the form that is kept to *kept, nothing
 * if the configuration is empty. */
int notification_take(struct call *c, struct buf *kept, struct err *err) MUST_CHECK;

/* --- gateway_log.c --- */

/* Writes the request's line into the access log of its bucket, if that has one, once the request is
 * answered. */
void call_log(struct call *c);
/* Write one more line: for a key of a batch, and in the log of the bucket that a copy read from. */
void call_log_removal(struct call *c, struct str key, struct str version, int code);
void call_log_copied(struct call *c, int code);

/* --- gateway_website.c --- */

/* Answers the request, or returns an error, which website_error() answers. */
int website_run(struct call *c, struct err *err) MUST_CHECK;
int website_error(struct call *c, int code, const struct err *err) MUST_CHECK;

/* --- op_attributes.c --- */

/* Writes <ObjectParts> of an object that was made of parts: the page that the request asks for. */
int xml_object_parts(struct call *c, struct buf *xml, const struct object_info *info,
                     struct err *err) MUST_CHECK;

/* --- op_upload.c --- */

/* Reads the meta that an upload on a local storage was begun with. Fails with NoSuchUpload. */
int upload_meta(struct call *c, const struct upload_info *upload, struct object_meta *out,
                struct err *err) MUST_CHECK;

/* --- op_copy.c --- */

struct copy_source {
    struct call_target target;
    struct str bucket, key, version;
    struct get_result head;
};
/* The names in x-amz-copy-source, decoded. InvalidArgument. */
int copy_source_parse(struct call *c, struct copy_source *out, struct err *err) MUST_CHECK;
/* Fills c->source: the names in x-amz-copy-source, and where its bucket is. InvalidArgument. */
int copy_source_find(struct call *c, struct err *err) MUST_CHECK;
/* As copy_source_find(); then opens the source, asks for access and judges the conditions. *out is
 * c->source. */
int copy_source_open(struct call *c, struct copy_source **out, struct err *err) MUST_CHECK;
/* The bytes of the version that was judged. ERR_CONFLICT: it was replaced meanwhile. */
int copy_source_get(struct call *c, struct copy_source *s, const struct object_range *range,
                    struct get_result *out, struct err *err) MUST_CHECK;
bool copy_source_is_versioned(const struct copy_source *s);
/* The header as it is sent to a storage: written anew from the names that were judged (F13). */
int copy_source_text(struct call *c, struct str *out, struct err *err) MUST_CHECK;
bool call_is_copy(const struct call *c); /* CopyObject or UploadPartCopy */
/* May the target's bucket be asked to copy from the source's without moving bytes? */
bool copy_shares(const struct call *c, const struct copy_source *s);

/* --- gateway_encrypt.c (docs/encryption.md) --- */

/* Puts envelope and key of a new object into `o`, if the request or the bucket's default asks for
 * encryption. `data` is the key that the bytes are sealed with already; NULL: a new key is made. */
int encrypt_new(struct call *c, const struct sealed_key *data, struct put_options *o,
                struct err *err) MUST_CHECK;
/* As encrypt_new(), for a part of an upload with this meta: `o` gets the upload's key, if it has
 * one. */
int encrypt_part(struct call *c, const struct object_meta *upload, struct put_options *o,
                 struct err *err) MUST_CHECK;
/* Whether the request has the key that it needs to finish an upload with this meta. */
int encrypt_finish(struct call *c, const struct object_meta *meta, struct err *err) MUST_CHECK;
/* Whether the request has the key of an object that is encrypted with a customer's key. */
int encrypt_check(struct call *c, const struct object_info *info, struct err *err) MUST_CHECK;
/* As encrypt_check(); then the body can be read. ERR_AGAIN where nothing may wait. */
int encrypt_unlock(struct call *c, struct get_result *got, struct err *err) MUST_CHECK;
/* The data key of a copy's source, and its body unlocked. Both do nothing for a source that is not
 * encrypted. */
int encrypt_source(struct call *c, const struct copy_source *s, struct sealed_key *out,
                   struct err *err) MUST_CHECK;
int encrypt_source_unlock(struct call *c, const struct copy_source *s, struct get_result *got,
                          struct err *err) MUST_CHECK;
/* A random ETag, in a form that shows that it is not an MD5. */
struct str encrypt_etag(struct call *c);
/* The value of a policy's condition key about the encryption of a part's upload; NULL p: it has
 * none. */
struct str encrypt_policy_value(struct call *c, enum policy_key key);
void respond_encryption(struct call *c);

/* --- checksum.c: checksums that weir makes (docs/gateway.md) --- */

/* The kind for a new object or part whose client claims none; DIGEST_MD5: none is made. */
enum digest_kind checksum_default(const struct call *c);
/* As checksum_default(), for a part of an upload with this meta. */
enum digest_kind checksum_of_part(const struct object_meta *upload);
/* The kind in x-amz-checksum-algorithm; DIGEST_MD5: the header is not given. InvalidRequest. */
int checksum_asked(struct call *c, enum digest_kind *out, struct err *err) MUST_CHECK;
/* InvalidRequest: the request has a checksum of a kind that weir cannot check. Every claim about a
 * body is checked or refused. */
int checksum_check_names(const struct call *c, struct err *err) MUST_CHECK;
/* Is it a checksum of this kind over all bytes, so that a copy of the bytes has the same? */
bool checksum_is_whole(const struct object_checksum *sum, enum digest_kind kind);

/* A body whose checksum is made as it flows into a storage. */
struct summed {
    struct reader reader;
    struct reader *from;
    struct digests *digests;
    enum digest_kind kind;
    struct arena *a;
    struct object_checksum checksum; /* once all bytes were read */
};
/* Returns the reader to use instead of `from`, which stays open; for DIGEST_MD5 that is `from`.
 * Sets `put` up to receive the checksum. */
struct reader *summed_open(struct summed *s, struct arena *a, struct reader *from,
                           enum digest_kind kind, struct put_options *put);
void summed_close(struct summed *s);
/* Reads all of `from`. */
int checksum_compute(struct arena *a, struct reader *from, enum digest_kind kind,
                     struct object_checksum *out, struct err *err) MUST_CHECK;

/* --- op_put.c --- */

/* The body of an object or part that is put. The storage computes its MD5, into `md5`. */
struct put_body {
    struct payload payload;
    struct arena *a;
    bool open;
    unsigned char md5[MD5_LEN];
};
/* Opens the request's own body; `otherwise` as in payload_options. */
int put_body_open(struct put_body *b, struct call *c, enum digest_kind otherwise,
                  struct put_options *put, struct err *err) MUST_CHECK;
/* Opens another body, with the headers of c->head. The caller has filled in the other members of
 * `o`. */
int put_body_init(struct put_body *b, struct call *c, struct reader *from,
                  struct payload_options *o, struct put_options *put, struct err *err) MUST_CHECK;
void put_body_close(struct put_body *b);
int put_body_verify(void *ctx, struct object_meta *meta, struct err *err); /* ctx: put_body */
void respond_checksum(struct call *c, const struct object_checksum *sum);

/* --- op_usage.c --- */

/* TooManyBuckets: the user has as many buckets as allowed. Several requests at the same time may
 * all pass. */
int usage_check_new_bucket(struct call *c, struct err *err) MUST_CHECK;
/* The headers that say how much the target's bucket holds. */
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
