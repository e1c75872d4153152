/* Declarations that space.c, bucket*.c, documents.c and upload*.c share.
 *
 * A repository's bucket has keys `<ref>/<path>`. A ref's bucket has the paths of one ref as keys.
 * Both are a struct lake_bucket; they differ only in how a key is split.
 *
 * A bucket holds the repository's record as it was when the bucket was opened. Every operation of
 * the lake reads the record again, and compares the member token (lake/record.h) with that of the
 * held record. A repository that was made again has another token. So an operation on the bucket of
 * a repository that was deleted, or made again, finds nothing.
 *
 * Where the reason of an error matters to the client, these functions return S3 codes
 * (meta/error.h) with a text for the client (docs/lake-s3.md, "What is refused"). */
#ifndef LAKE_BUCKET_INT_H
#define LAKE_BUCKET_INT_H

#include "lake/lake_int.h"
#include "lake/repo_names.h"
#include "lake/space.h"
#include "object/generation.h"
#include "store/reload.h"

struct lake_space {
    struct lake_space_options o;
    struct lake *lake;
    struct bucket_space space;
    struct storage storage; /* opens and lists the repositories */
    struct repo_names names;
    /* for infos and documents of buckets (object/generation.h) */
    struct generations generations;
    struct reload reload;
    struct loop loop;
    uint64_t swept_ms; /* when records of finished uploads were last removed, by clock_mono_ms() */
};

/* Number of documents that a repository can have (documents.c). A document is an S3 setting of a
 * bucket, such as its policy. */
enum { LAKE_DOCUMENTS = 7 };

struct lake_bucket {
    struct bucket bucket;
    _Atomic(unsigned) refs;
    struct lake_space *space;
    struct lake *lake;
    _Atomic(bool) set_here; /* a document was set through this bucket, so `documents` is old */
    struct arena arena;     /* memory of the members below, which never change */
    struct lake_repo repo;
    struct str ref;                       /* empty: keys begin with a ref */
    struct str documents[LAKE_DOCUMENTS]; /* as they were when the bucket was opened */
};

extern const struct bucket_ops lake_bucket_ops;

/* Opens a repository (`ref` empty) or one ref of it as a bucket. ERR_NO_BUCKET: there is no such
 * repository. */
int lake_bucket_open(struct bucket **out, struct lake_space *s, struct str repo, struct str ref,
                     struct err *err) MUST_CHECK;
struct lake_bucket *lake_bucket_of(struct bucket *b);

/* --- keys (bucket.c) --- */

/* The ref and the path that a key names. */
struct lake_at {
    struct str ref, path; /* path empty: the key names only a ref */
};
struct lake_at lake_bucket_at(const struct lake_bucket *b, struct str key);
/* Returns the key of a path at a ref. */
struct str lake_bucket_key(const struct lake_bucket *b, struct arena *a, struct str ref,
                           struct str path);
/* Checks that the repository was not deleted after the bucket was opened. ERR_NO_BUCKET: it was
 * deleted. */
int lake_bucket_check_there(struct lake_bucket *b, struct arena *a, struct err *err) MUST_CHECK;
/* Checks a key that is to be written: its ref must be a branch that can be written to now.
 * ERR_INVALID: the key has no path. ERR_NO_BUCKET: there is no such branch. S3_ACCESS_DENIED: the
 * ref is not a branch, the branch is protected, or the repository is read-only. */
int lake_bucket_check_write(struct lake_bucket *b, struct arena *a, const struct lake_at *at,
                            struct err *err) MUST_CHECK;
/* Checks the version that a read names. The only version is "null". */
int lake_bucket_check_version(struct str version, struct err *err) MUST_CHECK;
/* Checks that the meta of a new object has nothing that the lake cannot store. */
int lake_bucket_check_meta(const struct object_meta *meta, struct err *err) MUST_CHECK;
/* Translates a refusal of the lake to the S3 code whose answer shows the error's text. */
int lake_bucket_refused(int code, struct err *err);

/* --- entries as S3 sees them (bucket_entry.c) --- */

/* Fills the members of the entry that come from the meta. */
int lake_entry_take_meta(struct lake_entry *e, struct arena *a, const struct object_meta *meta,
                         struct err *err) MUST_CHECK;
/* Fills *out from the entry. `listed`: only the members of meta that listings have. */
int lake_entry_info(const struct lake_entry *e, struct arena *a, struct str key, bool listed,
                    struct object_info *out, struct err *err) MUST_CHECK;

/* --- staging with conditions (bucket_stage.c) --- */

struct bucket_change {
    struct lake_bucket *b;
    struct arena *a;
    struct lake_at at;
    const struct object_conditions *conditions; /* NULL: none */
    const struct object_guard *guard;           /* NULL: none */
    /* set if the body existed before, so that a collection does not remove the body (lake/keep.h);
     * NULL: the body is new */
    const struct lake_keep *keep;
    /* Set if the same change may be tried again: the address of the body that it stages. If the
     * path already has this address, an earlier try has made the change. Empty: the change is tried
     * only once. */
    struct str own;
    bool is_made;      /* an earlier try has made the change (`own`) */
    bool may_be_there; /* the entry may be staged although the call failed (lake_stage_options) */
    int refused;       /* the error of the condition that refused the change; 0: none did */
};
/* Stages the entry and fills *out. */
int bucket_change_put(struct bucket_change *c, const struct lake_entry *entry,
                      struct put_result *out, struct err *err) MUST_CHECK;
/* Like bucket_change_put(), but for an entry with a new body. The body is removed again if the
 * entry is refused. */
int bucket_change_finish(struct bucket_change *c, const struct lake_entry *entry,
                         struct put_result *out, struct err *err) MUST_CHECK;

/* --- operations, by their names in struct bucket_ops --- */

int lake_bucket_head(struct bucket *b, struct arena *a, struct str key, struct str version,
                     const struct object_conditions *c, struct get_result *out, struct err *err);
int lake_bucket_get(struct bucket *b, struct arena *a, struct str key, struct str version,
                    const struct object_conditions *c, const struct object_range *range,
                    struct get_result *out, struct err *err);
int lake_bucket_head_now(struct bucket *b, struct arena *a, struct str key, struct str version,
                         const struct object_conditions *c, struct get_result *out,
                         struct err *err);
int lake_bucket_get_now(struct bucket *b, struct arena *a, struct str key, struct str version,
                        const struct object_conditions *c, const struct object_range *range,
                        struct get_result *out, struct err *err);
int lake_bucket_object_parts(struct bucket *b, struct arena *a, const struct object_info *object,
                             uint32_t after, size_t limit, struct part_list *out, struct err *err);
int lake_bucket_put(struct bucket *b, struct arena *a, struct str key, struct reader *body,
                    uint64_t size, const struct put_options *o, struct put_result *out,
                    struct err *err);
int lake_bucket_copy(struct bucket *b, struct arena *a, struct str key, struct bucket *from,
                     const struct object_info *source, const struct put_options *o,
                     struct put_result *out, struct err *err);
int lake_bucket_remove(struct bucket *b, struct arena *a, struct str key,
                       const struct remove_options *o, struct remove_result *out, struct err *err);
int lake_bucket_set_meta(struct bucket *b, struct arena *a, struct str key, struct str version,
                         enum meta_set set, const struct object_meta *meta,
                         const struct meta_options *o, struct err *err);
int lake_bucket_list(struct bucket *b, struct arena *a, const struct list_options *o,
                     struct list_result *out, struct err *err);
int lake_bucket_list_versions(struct bucket *b, struct arena *a, const struct list_options *o,
                              struct list_result *out, struct err *err);

/* Makes a listing whose prefix has no slash: it has the refs, or the keys of all refs, one ref
 * after the other (bucket_root.c). */
int lake_bucket_list_root(struct lake_bucket *b, struct arena *a, const struct list_options *o,
                          struct list_result *out, struct err *err) MUST_CHECK;

/* --- documents (documents.c) --- */

/* Reads all documents of the repository, in one round trip. */
int lake_documents_read(struct lake_bucket *b, struct err *err) MUST_CHECK;
int lake_bucket_get_document(struct bucket *b, struct arena *a, const char *name, struct str *out,
                             struct err *err);
int lake_bucket_set_document(struct bucket *b, const char *name, struct str document,
                             struct err *err);

#endif
