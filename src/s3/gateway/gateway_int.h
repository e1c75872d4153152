/* One S3 request as the gateway's files hand it around. Only for src/s3/gateway*.c and op_*.c. */
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
    CALL_LIST_MAX = XML_MAX_BYTES,  /* of one that is a list of parts or keys (OP_LIST) */
    CALL_USER_META_MAX = 2 * 1024,  /* bytes of x-amz-meta-* names (without prefix) and values */
    CALL_OUT_MAX = 8 * 1024 * 1024, /* bytes of a document in an answer */
};
#define CALL_PUT_MAX ((uint64_t)5 * GIB) /* of one PUT, part or copy */

struct copy_source;
struct facts;
struct facts_table;

struct gateway {
    struct gateway_options o;
    struct budget documents; /* memory for bodies that are gathered, and what is made of them */
    struct budget strangers; /* the part of it that anonymous requests may have */
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
    OP_AT_ROUTE = 256, /* on many keys, or on none that is there yet: goes where writes go */
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

/* How the object is encrypted that an answer is about. */
struct call_encryption {
    enum sse_kind kind;
    struct str key_id, context, customer_md5;
    bool bucket_key;
    struct sealed_key data; /* of a new object; wiped with the call (E7) */
};

/* One object of several that a request is about: a key of a batch, or the source of a copy. */
struct call_item {
    struct str version, if_match; /* empty: none */
};

struct call {
    struct gateway *g;
    struct http_request *http;
    const struct http_head *head; /* with what was hoisted into the query (gateway_hoist.c) */
    struct arena *a;
    const struct operation *op;
    bool beyond;         /* the query has more than op knows, which a raw storage may know */
    struct err *refusal; /* why weir cannot do the request, if no raw storage can; NULL: it can */
    enum call_level level;
    struct str bucket_name, key; /* decoded */
    struct str host_bucket;      /* named by Host, in lower case; empty in path style */
    bool is_website;             /* it was asked by its website's name */
    int status;                  /* of an error page, which is sent with the error's; 0: its own */
    struct str version;          /* versionId; empty: not given */
    struct call_param query[CALL_QUERY_MAX];
    size_t query_count;
    bool hoists; /* x-amz-* parameters are headers */
    struct identity auth;
    const struct user *user; /* NULL: anonymous; set by call_be() */
    struct str user_id;      /* of `user`; empty: anonymous */
    bool claimed;            /* `user` is only the one that a preflight's address names (F10) */
    struct call_target target;
    struct copy_source *source; /* of a copy, once it was looked for */
    struct exchange *exchange;  /* with the target's storage, while its answer is waited for; NULL:
                                   the answer must be asked for again */
    bool waits;      /* another function goes on with the call (http_await, http_go_on) */
    struct str body; /* of OP_XML; in: */
    struct buf document;
    struct budget *budget;             /* that `document` is taken from; NULL: it was not read */
    int body_read;                     /* 1: it is there; an error: it could not be read */
    struct notification *notification; /* the bucket's, once it was needed */
    struct notify_event *event; /* that the change under way will be; NULL: nobody wants it */
    struct capture capture;     /* of a change that was announced */
    bool begun;                 /* an answer is on its way: too late for an error's */
    int64_t now_ms;
    struct call_encryption encryption;
    /* for the access log: */
    int answered;        /* status; 0: none yet */
    int error;           /* that was answered; 0: none */
    int64_t answered_ms; /* 0: the bucket is not logged */
    bool has_size;       /* of the object that was read or written: */
    uint64_t size;
    bool acl_required; /* without a list the request would have been refused */
    bool auth_failed;
    bool charged;    /* who asks has said that they pay, where somebody must */
    bool incomplete; /* the answer lacks what a storage has that is not there */
    /* for values of policy conditions: */
    const struct object_info *object; /* acted on, when known */
    const struct call_target *judged; /* the bucket that access is decided on */
    const struct call_item *item;     /* what of the request; NULL: all of it */
    struct str new_tags;   /* that the request sets otherwise than by header, as that has them */
    struct str absent_key; /* whether it may be told: the prefix of a listing that would tell */
    struct policy_values values;
    struct str value;
};

/* --- gateway.c --- */

/* Answers the error, if it is one, and lets go of what the call holds; what a handler returns. */
int call_finish(struct call *c, int code, const struct err *err);

/* --- gateway_find.c --- */

/* c->op. NotImplemented, also for a parameter that the operation does not know; MethodNotAllowed. A
 * remote storage may know better. c->op is set in spite of a parameter that is not known (and
 * c->beyond): a storage that knows it no more than we do passes over it, and does the operation. */
int call_find_operation(struct call *c, struct err *err) MUST_CHECK;
/* Of a request that version 2 has signed: AccessDenied when the query has a parameter that the
 * signature does not cover and an operation may know. */
int call_check_v2(const struct call *c, struct err *err) MUST_CHECK;
/* InvalidArgument: a parameter that says what is asked for stands there twice, or two of a change
 * each choose another operation, or one that does is spelled in another case. Two readers might go
 * by different ones (docs/forward.md, F13). */
int call_check_query(const struct call *c, struct err *err) MUST_CHECK;
/* Does the parameter say nothing to any operation? */
bool call_ignores(struct str parameter);

/* --- gateway_request.c: what was asked, and by whom --- */

int call_parse(struct call *c, struct err *err) MUST_CHECK;
int call_authenticate(struct call *c, struct err *err) MUST_CHECK;
/* Of a preflight whose signature does not hold: who it is about. */
void call_claim(struct call *c);
struct str call_signed_method(const struct call *c); /* in the signature, ours or the client's */
int call_auth_options(struct call *c, struct auth_options *out);
/* The parameter's value; NULL p when it is not there. */
struct str call_param(const struct call *c, const char *name);
/* A whole number parameter up to `max`; `fallback` when absent or empty. InvalidArgument. */
int call_number(const struct call *c, const char *name, uint64_t fallback, uint64_t max,
                uint64_t *out, struct err *err) MUST_CHECK;
/* Into c->body; once, whoever asks first. */
int call_read_body(struct call *c, struct err *err) MUST_CHECK;
/* All of `from` into an empty buf, by the budget of such bodies. ERR_BUSY: that is used up. Given
 * back, with what *budget says, in any case. */
int call_gather(struct call *c, struct reader *from, struct buf *out, struct budget **budget,
                struct err *err) MUST_CHECK;
void call_drop_gathered(struct budget *budget, struct buf *text); /* without a budget: released */
/* The request is this user's from now on; NULL: it is anonymous. */
void call_be(struct call *c, const struct user *user);

/* --- gateway_hoist.c: headers that came as parameters of a presigned request --- */

/* Puts them into c->head. What the signature is made of is the request's own head. InvalidRequest
 * when a header says otherwise. */
int call_hoist(struct call *c, struct err *err) MUST_CHECK;

/* --- gateway_target.c: where the request's bucket is, and what is known of it --- */

/* Asks the routes where the bucket is that `ask` names, and fills in who asks: t->at, and t->facts
 * when they are known. ERR_AGAIN where nothing may wait; else as route_resolve(). */
int call_locate(struct call *c, struct call_target *t, struct route_ask *ask,
                struct err *err) MUST_CHECK;
/* The same of the request's own bucket, into c->target, at the side that the request goes to while
 * the bucket is switched. `at`: on this storage, whatever the routes say; NULL: where they say. */
int call_resolve(struct call *c, struct storage *at, struct err *err) MUST_CHECK;
/* Of a change that was captured: does its target still lead where c->target was found? The target
 * was found before the change counted as under way, and a body may have been read since. ERR_BUSY:
 * it does not. */
int call_check_route(struct call *c, struct err *err) MUST_CHECK;
/* Opens what t->at has found; `bucket` is its name. ERR_NO_BUCKET. ERR_AGAIN as above. */
int call_open(struct call *c, struct call_target *t, struct str bucket, struct err *err) MUST_CHECK;
void call_close(struct call_target *t);
/* The document, or empty; as of the call's start when it is the target's. */
int call_document(struct call *c, struct bucket *b, const char *name, struct str *out,
                  struct err *err) MUST_CHECK;

/* --- gateway_access.c --- */

bool call_may(struct call *c, struct call_target *t, enum s3_action action, struct str key,
              const struct object_info *object);
/* Whether the asker may do it to anything in the bucket: if not, what they ask for need not be
 * read.
 */
bool call_may_ever(struct call *c, struct call_target *t, enum s3_action action);
/* The same of the object, asked by nobody in particular. */
bool call_anyone_may(struct call *c, enum s3_action action, const struct object_info *object);
/* AccessDenied when not. */
int call_need(struct call *c, struct call_target *t, enum s3_action action, struct str key,
              const struct object_info *object, struct err *err) MUST_CHECK;
/* Whether tags may come with a new object: who may write by the bucket's list may tag. */
int call_need_tagging(struct call *c, struct err *err) MUST_CHECK;
/* Whether this list, of headers, may come with a new object. One that opens it to nobody but its
 * owner and the bucket's needs no more than the writing, as Ceph has it. A denial always counts. */
int call_need_acl(struct call *c, const struct acl *acl, struct err *err) MUST_CHECK;
/* What to say of a key that is not there: who may not list is not told. */
int call_absent(struct call *c, struct call_target *t, struct str key, bool version,
                struct err *err);
/* The object's head when it is there, for operations on something kept beside it; access is asked
 * for, then the document of OP_XML is read. */
int call_object(struct call *c, struct get_result *out, struct err *err) MUST_CHECK;
struct acl_users call_acl_users(struct call *c);

/* --- gateway_condition.c --- */

/* The value of a condition key, as struct policy_request wants it; `ctx` is the call. */
bool call_condition_value(void *ctx, enum policy_key key, struct str suffix,
                          struct policy_values *out);

/* --- gateway_facts.c: what is known of a bucket, shared by requests; any thread --- */

struct facts_table *facts_table_new(void);
void facts_table_free(struct facts_table *t);

/* Reads and decodes; takes the caller's reference of the bucket, also when it fails. ERR_AGAIN: its
 * policy is large, and !may_block. */
int facts_read(struct facts **out, struct bucket *b, bool may_block, struct err *err) MUST_CHECK;
void facts_unref(struct facts *f); /* NULL is fine */
/* They never change. */
const struct call_target *facts_target(const struct facts *f);
/* False when they do not say whether there is one. Empty: there is none. */
bool facts_document(const struct facts *f, const char *name, struct str *out);

/* A reference to facts that hold at this moment, or NULL. */
struct facts *facts_find(struct facts_table *t, struct storage *s, struct str bucket);
void facts_keep(struct facts_table *t, struct facts *f);

/* --- gateway_answer.c --- */

void respond_begin(struct call *c, int status); /* with the headers that all answers have */
/* Text that was kept, or that somebody else wrote, goes out by these alone: what cannot be a header
 * is left out, since http_respond_header() takes it for a bug. */
void respond_header(struct call *c, const char *name, struct str value); /* not when empty */
void respond_kept_header(struct call *c, const struct http_header *h);
void respond_etag(struct call *c, struct str etag);
/* Of what was just made: "null" is not told, as where versions are suspended. */
void respond_new_version(struct call *c, struct str version);
void respond_time(struct call *c, const char *name, int64_t ms);
int respond_empty(struct call *c, int status) MUST_CHECK;
/* Sends the document and releases it. */
int respond_xml(struct call *c, int status, struct buf *xml) MUST_CHECK;
int respond_error(struct call *c, int code, const struct err *err) MUST_CHECK;
/* A failure of ours, once; not what is the client's doing. */
void call_log_failure(struct call *c, int code, const struct err *err);
/* The bucket's rules, or NULL. */
struct cors;
struct cors *call_cors(struct call *c);
void xml_time(struct buf *out, const char *name, int64_t ms);
void xml_etag(struct buf *out, struct str etag);
void xml_bool(struct buf *out, const char *name, bool value);
void xml_owner(struct call *c, struct buf *out, const char *name, struct str id);
void xml_checksum(struct buf *out, const struct object_checksum *sum);
void xml_checksum_type(struct buf *out, const struct object_checksum *sum);
struct str checksum_type_name(enum checksum_type type); /* "COMPOSITE", "FULL_OBJECT" */

/* --- gateway_meta.c: headers of a request that are kept, and back --- */

int meta_from_request(struct call *c, struct object_meta *out, struct err *err) MUST_CHECK;
/* Tags, ACL, owner, lock; needs c->target. */
int meta_common(struct call *c, struct object_meta *out, struct err *err) MUST_CHECK;
void respond_object(struct call *c, const struct object_info *info);
/* x-amz-expiration, if a rule of the bucket removes this version while it is current. */
void respond_expiration(struct call *c, const struct object_info *info);
/* The same of what was just put. */
void respond_put_expiration(struct call *c, const struct put_result *put,
                            const struct object_meta *meta);
int conditions_read(struct call *c, const char *prefix, struct object_conditions *out,
                    struct err *err) MUST_CHECK;
/* What a removal may also be bound to: a time (HTTP or ISO 8601) and a size; empty: not. */
int removal_conditions_read(struct str time, struct str size, struct object_conditions *out,
                            struct err *err) MUST_CHECK;
/* Is a change bound to what is there? */
bool call_is_conditional(const struct call *c);
int range_read(struct call *c, struct object_range *out, struct err *err) MUST_CHECK;
bool range_parse(struct str text, struct object_range *out);

/* --- gateway_capture.c: changes that replication must know of --- */

/* Announces what the request changes at its target, before anything is sent or changed, and before
 * a large body is read. `keys`: of DeleteObjects; else NULL. ERR_UNAVAILABLE: the change must not
 * be made. ERR_BUSY: nor that, for a while. */
int call_capture(struct call *c, const struct str *keys, size_t count, struct err *err) MUST_CHECK;
/* Just before a remote storage gets the last of it, which makes it happen. ERR_BUSY: it must not.
 */
int call_may_send(struct call *c, struct err *err) MUST_CHECK;
/* What became of it. Without a capture, or when it was told already: nothing. ERR_BUSY: whatever
 * became of it, the client must not be told that it succeeded. */
int call_captured(struct call *c, enum outcome outcome, struct err *err) MUST_CHECK;
void call_not_captured(struct call *c); /* nothing was made */

/* --- gateway_sides.c: buckets that are on two storages (docs/replication.md, D1 to D8) --- */

/* Turns c->target, of a bucket that is on two storages, to the side that the request goes to. */
int call_choose_side(struct call *c, struct err *err) MUST_CHECK;
/* An administrator may read on a storage of their choice, which the header x-weir-storage names
 * (docs/forward.md, B2): *out; NULL: the request has no such header. ERR_AGAIN where nothing may
 * wait. */
int call_view(struct call *c, struct storage **out, struct err *err) MUST_CHECK;
/* Turns c->target to the side of this key, for a website. */
int call_turn(struct call *c, struct str key, struct err *err) MUST_CHECK;
/* Turns the source of a copy to its side. */
int call_choose_source(struct call *c, struct copy_source *s, struct err *err) MUST_CHECK;
/* Before keys of a batch are removed where there are two sides, and after one was. `alone`: none is
 * bound to a version or a condition; call_removed() is of such alone. */
int call_before_removals(struct call *c, const struct str *keys, size_t count, bool alone,
                         struct err *err) MUST_CHECK;
int call_removed(struct call *c, const struct str *keys, size_t count, struct err *err) MUST_CHECK;
/* An upload was begun, which is not answered yet. */
int call_upload_begun(struct call *c, struct str id, struct err *err) MUST_CHECK;
/* Listings, merged where there are two sides. */
int call_list(struct call *c, const struct list_options *o, bool versions, struct list_result *out,
              struct err *err) MUST_CHECK;
int call_list_uploads(struct call *c, const struct list_options *o, struct upload_list *out,
                      struct err *err) MUST_CHECK;

/* --- gateway_notify.c --- */

/* For the storage that changes the key: NULL when nobody is to be told. call_told() after it. */
int call_note(struct call *c, enum s3_event event, struct str key, const struct change_note **out,
              struct err *err) MUST_CHECK;
void call_told(struct call *c); /* the change has succeeded */
/* A new configuration: checked, a test event on its way, written to *kept unless it is empty. */
int notification_take(struct call *c, struct buf *kept, struct err *err) MUST_CHECK;

/* --- gateway_log.c --- */

/* The request's line in its bucket's log, if that has one; once it is answered. */
void call_log(struct call *c);
/* A line beside it: of one key of many, and in the log of a copy's source. */
void call_log_removal(struct call *c, struct str key, struct str version, int code);
void call_log_copied(struct call *c, int code);

/* --- gateway_website.c --- */

/* Answers, or returns the error for website_error(). */
int website_run(struct call *c, struct err *err) MUST_CHECK;
int website_error(struct call *c, int code, const struct err *err) MUST_CHECK;

/* --- op_attributes.c --- */

/* <ObjectParts> of an object that was made of parts: a page as the request asks. */
int xml_object_parts(struct call *c, struct buf *xml, const struct object_info *info,
                     struct err *err) MUST_CHECK;

/* --- op_upload.c --- */

/* What an upload on a local storage began with; NoSuchUpload. */
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
/* c->source: the names in x-amz-copy-source, and where its bucket is. InvalidArgument. */
int copy_source_find(struct call *c, struct err *err) MUST_CHECK;
/* That, and it is opened, access asked for, conditions judged; *out is c->source. */
int copy_source_open(struct call *c, struct copy_source **out, struct err *err) MUST_CHECK;
/* The bytes of the version that was judged; ERR_CONFLICT: it was replaced since. */
int copy_source_get(struct call *c, struct copy_source *s, const struct object_range *range,
                    struct get_result *out, struct err *err) MUST_CHECK;
bool copy_source_is_versioned(const struct copy_source *s);
/* The header as it is sent on: written anew from the names that were judged (F13). */
int copy_source_text(struct call *c, struct str *out, struct err *err) MUST_CHECK;
bool call_is_copy(const struct call *c); /* CopyObject or UploadPartCopy */
/* May the target's bucket be asked to copy from the source's without moving bytes? */
bool copy_shares(const struct call *c, const struct copy_source *s);

/* --- gateway_encrypt.c (docs/encryption.md) --- */

/* What the request, or the bucket's default, asks a new object to be encrypted with: envelope and
 * key for `o`. `data` is the key that its bytes are sealed with already; NULL: a new one. */
int encrypt_new(struct call *c, const struct sealed_key *data, struct put_options *o,
                struct err *err) MUST_CHECK;
/* A part of an upload with this meta: `o` gets what unwraps the upload's key when there is one. */
int encrypt_part(struct call *c, const struct object_meta *upload, struct put_options *o,
                 struct err *err) MUST_CHECK;
/* An upload with this meta may be finished with the key that the request has, or has not. */
int encrypt_finish(struct call *c, const struct object_meta *meta, struct err *err) MUST_CHECK;
/* The request has the key that the object needs, where it is the customer's. */
int encrypt_check(struct call *c, const struct object_info *info, struct err *err) MUST_CHECK;
/* The same, and the body can be read. ERR_AGAIN where nothing may wait. */
int encrypt_unlock(struct call *c, struct get_result *got, struct err *err) MUST_CHECK;
/* For the source of a copy: its data key; its body. An object that is not encrypted is fine. */
int encrypt_source(struct call *c, const struct copy_source *s, struct sealed_key *out,
                   struct err *err) MUST_CHECK;
int encrypt_source_unlock(struct call *c, const struct copy_source *s, struct get_result *got,
                          struct err *err) MUST_CHECK;
/* An ETag that tells nothing, and that it is no MD5. */
struct str encrypt_etag(struct call *c);
/* What policies see of a part's upload; no p when it has none. */
struct str encrypt_policy_value(struct call *c, enum policy_key key);
void respond_encryption(struct call *c);

/* --- checksum.c: checksums that are made here (docs/gateway.md) --- */

/* Of a new object or part whose client says none; DIGEST_MD5: none is made. */
enum digest_kind checksum_default(const struct call *c);
/* Of a part of an upload with this meta. */
enum digest_kind checksum_of_part(const struct object_meta *upload);
/* x-amz-checksum-algorithm; DIGEST_MD5 when it is not given. InvalidRequest. */
int checksum_asked(struct call *c, enum digest_kind *out, struct err *err) MUST_CHECK;
/* InvalidRequest for a checksum of a kind that weir cannot check: what was said of a body is
 * checked or refused. */
int checksum_check_names(const struct call *c, struct err *err) MUST_CHECK;
/* Whether it is one of all the bytes, so that a copy of them has the same. */
bool checksum_is_whole(const struct object_checksum *sum, enum digest_kind kind);

/* A body whose checksum is made as it flows into a storage. */
struct summed {
    struct reader reader;
    struct reader *from;
    struct digests *digests;
    enum digest_kind kind;
    struct arena *a;
    struct object_checksum checksum; /* once all has flowed */
};
/* What to read instead of `from`, which stays open; DIGEST_MD5: `from` itself. `put` gets what
 * fills the checksum. */
struct reader *summed_open(struct summed *s, struct arena *a, struct reader *from,
                           enum digest_kind kind, struct put_options *put);
void summed_close(struct summed *s);
/* Reads all of it. */
int checksum_compute(struct arena *a, struct reader *from, enum digest_kind kind,
                     struct object_checksum *out, struct err *err) MUST_CHECK;

/* --- op_put.c --- */

/* The storage computes the MD5: `put` is told where to leave it. */
struct put_body {
    struct payload payload;
    struct arena *a;
    bool open;
    unsigned char md5[MD5_LEN];
};
/* The request's own body; `otherwise` as in payload_options. */
int put_body_open(struct call *c, struct put_body *b, enum digest_kind otherwise,
                  struct put_options *put, struct err *err) MUST_CHECK;
/* Another one, with the headers of c->head; the rest of `o` is the caller's. */
int put_body_init(struct call *c, struct put_body *b, struct reader *from,
                  struct payload_options *o, struct put_options *put, struct err *err) MUST_CHECK;
void put_body_close(struct put_body *b);
int put_body_verify(void *ctx, struct object_meta *meta, struct err *err); /* ctx: put_body */
void respond_checksum(struct call *c, const struct object_checksum *sum);

/* --- op_usage.c --- */

/* TooManyBuckets when the user has as many as may be. Of several made at once all may pass. */
int usage_check_new_bucket(struct call *c, struct err *err) MUST_CHECK;
/* Headers about the target. */
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
