/* The documents of a repository's bucket, which are its S3 settings, such as the policy: rows
 * s3/<document> of the repository's partition. The repository's record counts the changes of its
 * documents. If the count is 0, the bucket has no documents, and these rows need not be read. */
#include "lake/bucket_int.h"
#include "meta/error.h"
#include "s3/access/access.h"

#define DOCUMENTS "s3"

static const char *const document_names[LAKE_DOCUMENTS] = {
    "policy", "policyBindsOwner", "cors", "tagging", "website", "logging", "publicAccessBlock",
};

#define OWNERSHIP_DOCUMENT "ownershipControls"

/* Returns the index of the document; LAKE_DOCUMENTS: the lake does not store such a document. */
static size_t document_index(const char *name)
{
    size_t i = 0;

    while (i < LAKE_DOCUMENTS && strcmp(document_names[i], name) != 0)
        i++;
    return i;
}

static struct kv_name document_row(struct arena *a, const struct lake_repo *r, const char *name)
{
    return lake_key_in(a, r->partition, DOCUMENTS, str_z(name));
}

/* --- reading --- */

int lake_documents_read(struct lake_bucket *b, struct err *err)
{
    struct kv_name names[LAKE_DOCUMENTS + 1];
    struct kv_value values[LAKE_DOCUMENTS + 1];

    if (b->repo.documents == 0)
        return 0;
    for (size_t i = 0; i < LAKE_DOCUMENTS; i++)
        names[i] = document_row(&b->arena, &b->repo, document_names[i]);
    names[LAKE_DOCUMENTS] = lake_key_repo(&b->arena, b->repo.id);
    int code = kv_get_many(b->lake->kv, NULL, &b->arena, names, ARRAY_SIZE(names), values, err);
    if (code == 0)
        code = lake_check_repo_row(&b->arena, &b->repo, &values[LAKE_DOCUMENTS], err);
    for (size_t i = 0; code == 0 && i < LAKE_DOCUMENTS; i++)
        b->documents[i] = values[i].bytes;
    return code;
}

/* Returns the document of object ownership. It is constant, because all objects of a repository
 * belong to its owner. */
static struct str document_ownership(struct arena *a)
{
    struct buf text = {0};

    ownership_write(&text, OWNERSHIP_BUCKET_OWNER_ENFORCED);
    struct str out = arena_str(a, buf_str(&text));
    buf_release(&text);
    return out;
}

/* Reads one document from the key-value store, and not from the copies in struct lake_bucket, which
 * may be old. */
static int document_read_now(struct lake_bucket *b, struct arena *a, const char *name,
                             struct str *out, struct err *err)
{
    struct kv_value value;
    int code = lake_row_get(b->lake, a, &b->repo, document_row(a, &b->repo, name),
                            "the document is not set", &value, err);

    if (code == 0)
        *out = value.bytes;
    return code;
}

int lake_bucket_get_document(struct bucket *bucket, struct arena *a, const char *name,
                             struct str *out, struct err *err)
{
    struct lake_bucket *b = lake_bucket_of(bucket);
    size_t i = document_index(name);

    *out = STR_EMPTY;
    if (strcmp(name, OWNERSHIP_DOCUMENT) == 0)
        *out = document_ownership(a);
    else if (i < LAKE_DOCUMENTS && atomic_load(&b->set_here))
        return document_read_now(b, a, name, out, err);
    else if (i < LAKE_DOCUMENTS && b->documents[i].len)
        *out = arena_str(a, b->documents[i]);
    else
        return err_code(err, ERR_NOT_FOUND);
    return arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

/* --- setting --- */

/* Writes the document and counts the change in the repository's record, in one step (S5). */
static int document_write(struct lake_bucket *b, struct arena *a, const char *name,
                          struct str document, struct err *err)
{
    struct lake_repo now;
    struct lake_tx tx;
    int code;

    do {
        code = lake_repo_again(b->lake, a, &b->repo, &now, err);
        if (code < 0)
            break;
        now.documents++;
        lake_tx_init(&tx, a);
        lake_tx_put_repo(&tx, &now);
        if (document.len)
            lake_tx_put(&tx, document_row(a, &now, name), document);
        else
            lake_tx_remove(&tx, document_row(a, &now, name), KV_ALWAYS, STR_EMPTY);
        code = lake_tx_write(b->lake, &tx, NULL, err);
    } while (code == ERR_PRECONDITION);
    return code == ERR_NOT_FOUND ? err_code(err, ERR_NO_BUCKET) : code;
}

static int document_check(const char *name, struct str document, struct arena *a, struct err *err)
{
    if (document_index(name) < LAKE_DOCUMENTS)
        return 0;
    if (strcmp(name, OWNERSHIP_DOCUMENT) != 0)
        return err_set(err, S3_NOT_IMPLEMENTED, "A repository does not have the document '%s'%s",
                       name,
                       strcmp(name, "replication") == 0 ? "; replicate its storage namespace" : "");
    if (!str_eq(document, document_ownership(a)))
        return err_set(err, S3_NOT_IMPLEMENTED,
                       "All objects of a repository belong to its owner (BucketOwnerEnforced)");
    return 0;
}

int lake_bucket_set_document(struct bucket *bucket, const char *name, struct str document,
                             struct err *err)
{
    struct lake_bucket *b = lake_bucket_of(bucket);
    struct arena a = {0};
    int code = document_check(name, document, &a, err);

    if (code == 0 && document_index(name) < LAKE_DOCUMENTS) {
        generation_begin(&b->space->generations, b->repo.id);
        code = document_write(b, &a, name, document, err);
        atomic_store(&b->set_here, true);
        generation_end(&b->space->generations, b->repo.id);
    }
    arena_release(&a);
    return code;
}
