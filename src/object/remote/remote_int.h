/* The parts of a remote storage. For its own files only. M1, M2, ... are invariants of
 * docs/remote-storage.md. */
#ifndef OBJECT_REMOTE_REMOTE_INT_H
#define OBJECT_REMOTE_REMOTE_INT_H

#include "base/map.h"
#include "base/xml.h"
#include "http/upstream.h"
#include "object/names.h"
#include "object/remote/remote.h"
#include "os/loop.h"
#include "sign/sign.h"

enum {
    REMOTE_ERROR_MAX = 64 * 1024,      /* most bytes that are read of an error's document */
    REMOTE_DOCUMENT_MAX = 1024 * 1024, /* most bytes of a bucket's document */
    REMOTE_GATHER_MAX = 64 * 1024,     /* bodies up to this size are read before they are sent */
    REMOTE_PIECE = 8 * 1024 * 1024,    /* a body of unknown size is sent in pieces of this size */
};
#define REMOTE_PUT_MAX   ((uint64_t)5 * GIB) /* most bytes of one PUT or copy, by S3's limit */
#define REMOTE_PART_SIZE ((uint64_t)64 * MIB)

/* The credentials that a user's requests are signed with. They are reference counted, so that they
 * can be replaced while they are in use. */
struct credential {
    _Atomic(size_t) refs;
    struct str user, access, secret; /* point into `bytes` */
    size_t size;
    char bytes[];
};

struct credential_table {
    struct mutex lock; /* guards all members */
    struct map by_user;
};

struct remote {
    struct storage storage;
    /* The members up to part_size never change. */
    struct upstream *upstream;
    struct sign_keys *keys;
    struct buf name, host, region; /* host: host[:port], as in the header Host */
    bool virtual_host;
    uint64_t put_max, part_size; /* bytes; objects over put_max are sent in parts of part_size or
                                    more */

    struct credential_table credentials;

    struct loop prober;
};

struct remote_bucket {
    struct bucket bucket;
    struct remote *remote;
    _Atomic(size_t) refs;
    struct str user; /* the user whose credentials sign; its bytes follow the name in `bytes` */
    char bytes[];
};

extern const struct storage_ops remote_storage_ops;

static inline struct remote *remote_of(struct storage *s)
{
    BUG_ON(s->ops != &remote_storage_ops);
    return container_of(s, struct remote, storage);
}

struct remote_bucket *remote_bucket_of(struct bucket *b);
bool remote_is_bucket_of(const struct bucket *b, const struct remote *r);
void remote_wake_prober(struct remote *r);

/* --- remote_credential.c --- */

void credential_table_init(struct credential_table *c);
void credential_table_release(struct credential_table *c);
/* Returns a reference to the user's credentials. NULL: the user has none. */
struct credential *credential_table_get(struct credential_table *c, struct str user);
/* Returns a reference to the credentials of any user. NULL: no user has credentials. */
struct credential *credential_table_any(struct credential_table *c);
/* Lists the users that have credentials, in the arena. */
int credential_table_users(struct credential_table *c, struct arena *a, struct str **out,
                           size_t *count, struct err *err) MUST_CHECK;
void credential_unref(struct credential *c); /* `c` may be NULL; dropping the last reference
                                                overwrites the secret */

/* --- remote_request.c --- */

int remote_forward(struct storage *s, const struct forward_request *r, struct exchange **out,
                   struct err *err) MUST_CHECK;

/* --- remote_ask.c: one request to the peer for a call of struct bucket_ops, and its answer --- */

struct ask {
    struct remote *remote;
    struct forward_request request;
    struct http_header headers[HTTP_MAX_HEADERS];
    struct arena a; /* memory of the headers and of the answer */
    struct buf path, query;
    struct str_reader document;
    bool too_many; /* there were too many headers, so the request is not sent */
    struct exchange *exchange;
    const struct http_head *head; /* head of the answer; NULL: there was no answer */
    struct str error;             /* S3 code of an error answer; may be empty */
};

/* Begins a request to the service (no bucket), a bucket (no key) or an object. `method` must be a
 * string literal. GET, HEAD and DELETE are idempotent; the caller sets request.idempotent for other
 * methods. */
void ask_init(struct ask *q, struct remote *r, struct str user, const char *method);
void ask_init_bucket(struct ask *q, struct remote_bucket *b, const char *method, struct str key);
void ask_release(struct ask *q);
void ask_name(struct ask *q, struct str bucket, struct str key);
void ask_param(struct ask *q, const char *name, struct str value); /* value.p NULL: only the name */
void ask_param_u64(struct ask *q, const char *name, uint64_t value);
void ask_param_given(struct ask *q, const char *name, struct str value); /* skipped if empty */
void ask_header(struct ask *q, const char *name, struct str value);      /* skipped if empty */
void ask_time(struct ask *q, const char *name, int64_t ms);              /* skipped if 0 */
void ask_body(struct ask *q, struct reader *body, uint64_t len);
/* Sets a document (borrowed) as the body. */
void ask_document(struct ask *q, struct str text);
/* Sets bytes in memory (borrowed) as the body. If the body is short, its hash is signed. */
void ask_bytes(struct ask *q, struct str bytes);

/* Sends the request and judges the answer (docs/remote-storage.md, M1). 0: the status is 2xx. */
int ask_send(struct ask *q, struct err *err) MUST_CHECK;
/* Does what ask_send() does, and releases `q` without reading the answer's body. */
int ask_done(struct ask *q, struct err *err) MUST_CHECK;
/* Reads the answer's body into the arena. ERR_PEER: it is longer than `max` bytes. */
int ask_text(struct ask *q, struct arena *a, size_t max, struct str *out,
             struct err *err) MUST_CHECK;
/* Returns the value of a header of the answer. Empty: there is no such header. */
struct str ask_answer(const struct ask *q, const char *name);
/* Sets and returns the error for an answer that is not 2xx (docs/remote-storage.md, M1). */
int remote_error_of(int status, struct str code, struct str message, struct err *err);
/* Whether the answer says that the version is a delete marker. */
bool ask_is_marker(const struct ask *q);

/* --- remote_xml.c: the documents of answers, which may be hostile --- */

struct remote_error {
    struct str code, message;
};

/* Parses a document whose root must be `name` (else ERR_PEER). If the root is <Error>, returns that
 * error, although the status was 200 (docs/remote-storage.md, M3). */
int remote_read_root(struct xml_node **out, struct arena *a, struct str text, const char *name,
                     struct err *err) MUST_CHECK;
/* Reads an <Error> document. Both strings are empty when the root is not <Error>. */
struct remote_error remote_read_error(struct arena *a, struct str text);
int remote_read_list(struct list_result *out, struct arena *a, struct str text,
                     const struct list_options *o, struct err *err) MUST_CHECK;
int remote_read_versions(struct list_result *out, struct arena *a, struct str text,
                         const struct list_options *o, struct err *err) MUST_CHECK;
int remote_read_uploads(struct upload_list *out, struct arena *a, struct str text,
                        const struct list_options *o, struct err *err) MUST_CHECK;
int remote_read_parts(struct part_list *out, struct arena *a, struct str text, uint32_t after,
                      size_t limit, struct err *err) MUST_CHECK;
/* Reads a document with the root CopyObjectResult, CopyPartResult or CompleteMultipartUploadResult.
 * The ETag may be empty. */
int remote_read_result(struct put_result *out, struct arena *a, struct str text, const char *root,
                       struct err *err) MUST_CHECK;
int remote_read_upload_id(struct str *out, struct arena *a, struct str text,
                          struct err *err) MUST_CHECK;
int remote_read_tags(struct str *out, struct arena *a, struct str text, struct err *err) MUST_CHECK;
struct remote_bucket_page {
    struct bucket_info *buckets; /* only name and created_ms are set */
    size_t count;
    struct str token; /* asks for the next page; empty: this page is the last */
};
int remote_read_buckets(struct remote_bucket_page *out, struct arena *a, struct str text,
                        struct err *err) MUST_CHECK;
/* Returns an ETag without its quotes, in the arena. */
struct str remote_etag(struct arena *a, struct str text);
/* Returns an ISO 8601 time as ms since 1970. 0: the text is not such a time. */
int64_t remote_iso_time(struct str text);

/* --- remote_meta.c: object_meta as headers --- */

int remote_meta_check(const struct object_meta *meta, struct err *err) MUST_CHECK;
void ask_meta(struct ask *q, const struct object_meta *meta);
void ask_checksum(struct ask *q, const struct object_checksum *sum);
void ask_conditions(struct ask *q, const struct object_conditions *c);
/* Reads the info in an answer to HEAD or GET. ERR_PEER: the answer is not S3's. */
int remote_info_of(struct object_info *out, struct arena *a, const struct ask *q, struct str key,
                   struct err *err) MUST_CHECK;
struct object_checksum remote_checksum_of(struct arena *a, const struct http_head *head);

/* --- remote_put.c --- */

int remote_put(struct bucket *b, struct arena *a, struct str key, struct reader *body,
               uint64_t size, const struct put_options *o, struct put_result *out,
               struct err *err) MUST_CHECK;
/* Sends a body of known size with `q`. The body's end is held back until verify() has accepted the
 * body (docs/remote-storage.md, M4). `meta` is a copy of o's meta, which verify() may fill. */
int remote_send_body(struct ask *q, struct reader *body, uint64_t size, const struct put_options *o,
                     struct object_meta *meta, struct err *err) MUST_CHECK;

/* --- the functions of struct bucket_ops and struct storage_ops --- */

int remote_key_check(struct str key, struct err *err) MUST_CHECK;

int remote_create_bucket(struct storage *s, const struct bucket_info *info, struct err *err);
int remote_remove_bucket(struct storage *s, struct str user, struct str name, struct err *err);
int remote_open_bucket(struct bucket **out, struct storage *s, struct str user, struct str name,
                       struct err *err);
int remote_list_buckets(struct storage *s, struct arena *a, struct str owner, struct str after,
                        size_t limit, struct bucket_info **out, size_t *count, struct err *err);
int remote_check(struct storage *s, struct err *err);

int remote_info(struct bucket *b, struct arena *a, struct bucket_info *out, struct err *err);
int remote_get_document(struct bucket *b, struct arena *a, const char *name, struct str *out,
                        struct err *err);
int remote_set_document(struct bucket *b, const char *name, struct str document, struct err *err);
int remote_set_versions(struct bucket *b, bool on, struct err *err);
int remote_set_object_lock(struct bucket *b, struct err *err);

int remote_head(struct bucket *b, struct arena *a, struct str key, struct str version,
                const struct object_conditions *c, struct get_result *out, struct err *err);
int remote_get(struct bucket *b, struct arena *a, struct str key, struct str version,
               const struct object_conditions *c, const struct object_range *range,
               struct get_result *out, struct err *err);
int remote_copy(struct bucket *b, struct arena *a, struct str key, struct bucket *from,
                const struct object_info *source, const struct put_options *o,
                struct put_result *out, struct err *err);
int remote_remove(struct bucket *b, struct arena *a, struct str key, const struct remove_options *o,
                  struct remove_result *out, struct err *err);
int remote_set_meta(struct bucket *b, struct arena *a, struct str key, struct str version,
                    enum meta_set set, const struct object_meta *meta, const struct meta_options *o,
                    struct err *err);
int remote_get_acl(struct bucket *b, struct arena *a, struct str key, struct str *out,
                   struct err *err);
int remote_object_parts(struct bucket *b, struct arena *a, const struct object_info *object,
                        uint32_t after, size_t limit, struct part_list *out, struct err *err);
/* Adds x-amz-copy-source, with the source's version and ETag. */
void ask_copy_source(struct ask *q, struct bucket *from, const struct object_info *source);

int remote_list(struct bucket *b, struct arena *a, const struct list_options *o,
                struct list_result *out, struct err *err);
int remote_list_versions(struct bucket *b, struct arena *a, const struct list_options *o,
                         struct list_result *out, struct err *err);

int remote_upload_begin(struct bucket *b, struct arena *a, struct str key,
                        const struct object_meta *meta, struct str *id, struct err *err);
int remote_upload_part(struct bucket *b, struct arena *a, const struct upload_info *upload,
                       uint32_t number, struct reader *body, uint64_t size,
                       const struct put_options *o, struct upload_part *out, struct err *err);
int remote_upload_part_copy(struct bucket *b, struct arena *a, const struct upload_info *upload,
                            uint32_t number, struct bucket *from, const struct object_info *source,
                            const struct object_range *range, struct upload_part *out,
                            struct err *err);
int remote_upload_finish(struct bucket *b, struct arena *a, const struct upload_info *upload,
                         const struct upload_part *parts, size_t count, const struct put_options *o,
                         struct put_result *out, struct err *err);
int remote_upload_abort(struct bucket *b, const struct upload_info *upload, struct err *err);
int remote_list_parts(struct bucket *b, struct arena *a, const struct upload_info *upload,
                      uint32_t after, size_t limit, struct part_list *out, struct err *err);
int remote_list_uploads(struct bucket *b, struct arena *a, const struct list_options *o,
                        struct upload_list *out, struct err *err);

extern const struct bucket_ops remote_bucket_ops;

#endif
