/* Repositories and refs as buckets: opens them, splits and joins their keys, and makes the checks
 * that all operations share. */
#include "lake/bucket_int.h"
#include "lake/names.h"
#include "lake/read.h"
#include "lake/upload.h"
#include "meta/error.h"

#include <stdlib.h>

/* --- life --- */

struct lake_bucket *lake_bucket_of(struct bucket *b)
{
    BUG_ON(b->ops != &lake_bucket_ops);
    return container_of(b, struct lake_bucket, bucket);
}

static struct bucket *lake_bucket_ref(struct bucket *bucket)
{
    atomic_fetch_add(&lake_bucket_of(bucket)->refs, 1);
    return bucket;
}

static void lake_bucket_unref(struct bucket *bucket)
{
    struct lake_bucket *b = bucket ? lake_bucket_of(bucket) : NULL;

    if (!b || atomic_fetch_sub(&b->refs, 1) > 1)
        return;
    arena_release(&b->arena);
    free(b);
}

int lake_bucket_open(struct bucket **out, struct lake_space *s, struct str repo, struct str ref,
                     struct err *err)
{
    struct lake_bucket *b = xzalloc(sizeof(*b));
    int code = lake_repo_get(s->lake, &b->arena, repo, &b->repo, err);

    atomic_init(&b->refs, 1);
    b->space = s;
    b->lake = s->lake;
    b->ref = arena_str(&b->arena, ref);
    b->bucket =
        (struct bucket){.ops = &lake_bucket_ops, .name = b->repo.id, .storage = &s->storage};
    if (code == 0)
        code = lake_documents_read(b, err);
    if (code < 0) {
        lake_bucket_unref(&b->bucket);
        return code == ERR_NOT_FOUND ? err_code(err, ERR_NO_BUCKET) : code;
    }
    *out = &b->bucket;
    return 0;
}

/* --- keys --- */

struct lake_at lake_bucket_at(const struct lake_bucket *b, struct str key)
{
    struct lake_at at = {b->ref, key};

    if (b->ref.len == 0)
        str_cut(key, '/', &at.ref, &at.path);
    return at;
}

struct str lake_bucket_key(const struct lake_bucket *b, struct arena *a, struct str ref,
                           struct str path)
{
    if (b->ref.len)
        return arena_str(a, path);
    char *key = arena_alloc(a, ref.len + 1 + path.len + 1);
    if (!key)
        return STR_EMPTY;
    memcpy(key, ref.p, ref.len);
    key[ref.len] = '/';
    if (path.len)
        memcpy(key + ref.len + 1, path.p, path.len);
    return str_n(key, ref.len + 1 + path.len);
}

/* --- checks --- */

int lake_bucket_refused(int code, struct err *err)
{
    if (code != ERR_DENIED)
        return code;
    if (err)
        err->code = S3_ACCESS_DENIED;
    return S3_ACCESS_DENIED;
}

int lake_bucket_check_there(struct lake_bucket *b, struct arena *a, struct err *err)
{
    struct lake_repo now;
    int code = lake_repo_again(b->lake, a, &b->repo, &now, err);

    return code == ERR_NOT_FOUND ? err_code(err, ERR_NO_BUCKET) : code;
}

/* Sets the error that says why a ref that is not a branch cannot be written to. */
static int bucket_not_a_branch(struct lake_bucket *b, struct arena *a, struct str name,
                               struct err *err)
{
    struct lake_ref ref;
    int code = lake_bucket_check_there(b, a, err);

    if (code == 0)
        code = lake_ref_resolve(b->lake, a, &b->repo, name, &ref, err);
    if (code == ERR_NOT_FOUND || code == ERR_INVALID)
        return err_set(err, S3_NO_SUCH_BUCKET,
                       "The repository " STR_FMT " has no branch '" STR_FMT "'",
                       STR_ARG(b->repo.id), STR_ARG(str_head(name, LAKE_NAME_MAX)));
    if (code < 0)
        return code;
    return err_set(err, S3_ACCESS_DENIED,
                   "'" STR_FMT "' is not a branch; only branches can be written to",
                   STR_ARG(str_head(name, LAKE_NAME_MAX)));
}

static int bucket_check_branch(struct lake_bucket *b, struct arena *a, struct str name,
                               struct err *err)
{
    struct lake_repo now;
    struct lake_branch branch;
    int code = lake_check_branch(name, err) < 0
                   ? ERR_NOT_FOUND
                   : lake_read_branch(b->lake, NULL, a, &b->repo, name, &now, &branch, err);

    if (code == ERR_NOT_FOUND)
        return bucket_not_a_branch(b, a, name, err);
    if (code == 0)
        code = lake_check_writable(&now, false, err);
    if (code == 0)
        code = lake_check_protection(b->lake, a, &now, name, LAKE_PROTECT_STAGING, err);
    return lake_bucket_refused(code, err);
}

int lake_bucket_check_write(struct lake_bucket *b, struct arena *a, const struct lake_at *at,
                            struct err *err)
{
    int code = 0;

    if (at->path.len == 0 && b->ref.len == 0)
        return err_set(err, ERR_INVALID,
                       "a key of a repository is BRANCH/PATH, and this key has no path");
    code = lake_check_path(at->path, err);
    return code < 0 ? code : bucket_check_branch(b, a, at->ref, err);
}

int lake_bucket_check_version(struct str version, struct err *err)
{
    return version.len == 0 || str_eq(version, STR("null")) ? 0 : err_code(err, ERR_NOT_FOUND);
}

int lake_bucket_check_meta(const struct object_meta *meta, struct err *err)
{
    const char *what = meta->encryption.len                        ? "server side encryption"
                       : meta->retain_until_ms || meta->legal_hold ? "object lock"
                       : meta->acl.len                             ? "access lists of objects"
                                                                   : NULL;

    return what ? err_set(err, S3_NOT_IMPLEMENTED, "A repository does not have %s", what) : 0;
}

/* --- info --- */

static int bucket_info(struct bucket *bucket, struct arena *a, struct bucket_info *out,
                       struct err *err)
{
    struct lake_bucket *b = lake_bucket_of(bucket);

    *out = (struct bucket_info){.name = arena_str(a, b->repo.id),
                                .owner = arena_str(a, b->repo.owner),
                                .created_ms = b->repo.created_ms,
                                .versions = VERSIONS_NEVER};
    return arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : lake_bucket_check_there(b, a, err);
}

static int bucket_set_versions(struct bucket *bucket, bool on, struct err *err)
{
    return err_set(err, S3_NOT_IMPLEMENTED,
                   "A repository keeps versions by commits, not by S3's versioning");
}

static int bucket_set_object_lock(struct bucket *bucket, struct err *err)
{
    return err_set(err, S3_NOT_IMPLEMENTED, "A repository does not have object lock");
}

const struct bucket_ops lake_bucket_ops = {
    .info = bucket_info,
    .head = lake_bucket_head,
    .get = lake_bucket_get,
    .head_now = lake_bucket_head_now,
    .get_now = lake_bucket_get_now,
    .put = lake_bucket_put,
    .copy = lake_bucket_copy,
    .remove = lake_bucket_remove,
    .list = lake_bucket_list,
    .list_versions = lake_bucket_list_versions,
    .set_meta = lake_bucket_set_meta,
    .upload_begin = lake_upload_begin,
    .upload_part = lake_upload_part,
    .upload_part_copy = lake_upload_part_copy,
    .upload_finish = lake_upload_finish,
    .upload_abort = lake_upload_abort,
    .list_parts = lake_upload_list_parts,
    .object_parts = lake_bucket_object_parts,
    .list_uploads = lake_upload_list,
    .get_document = lake_bucket_get_document,
    .set_document = lake_bucket_set_document,
    .set_versions = bucket_set_versions,
    .set_object_lock = bucket_set_object_lock,
    .ref = lake_bucket_ref,
    .unref = lake_bucket_unref,
};
