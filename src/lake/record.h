/* The records of the lake, in protobuf's encoding (proto3). They are stored in the key-value store
 * and in the leaves of trees. Field numbers up to 99 are lakeFS's, so that its dumps can be read;
 * weir's own fields begin at 100. docs/lake.md ("Records") has every message with its numbers.
 *
 * Reading: the strings of a record point into the bytes that were read; arrays are in the arena.
 * Unknown fields are skipped. ERR_CORRUPT: the bytes are not such a record, or a size or a count in
 * them is beyond its limit.
 *
 * Writing: the bytes are appended to a buf. Fields with their default value are left out.
 *
 * These functions do no I/O; any thread may call them. */
#ifndef LAKE_RECORD_H
#define LAKE_RECORD_H

#include "base/proto.h"

enum {
    LAKE_SEALED_MAX = 256,   /* most sealed tokens of a branch */
    LAKE_PARENTS_MAX = 64,   /* most parents of a commit */
    LAKE_METADATA_MAX = 256, /* most pairs in the metadata of a commit, an object or a repository */
    LAKE_PARTS_MAX = 10000,  /* most parts of an object that was uploaded in parts */
    /* hex digits of a commit id, of a node id, and of an identity as text */
    LAKE_ID_LEN = 64,
    LAKE_IDENTITY_LEN = 32, /* bytes of an object's identity */
};

/* The row repos/<id> of partition `graveler`. */
struct lake_repo {
    struct str id;    /* the repository's name, which is also its bucket's name */
    struct str space; /* storage namespace: s3://<bucket>[/<prefix>], without a slash at its end */
    struct str default_branch;
    int64_t created_ms;
    struct str token; /* lakeFS's repository_token: makes the partition's name unique */
    bool read_only;
    struct str storage_id;
    struct str owner;   /* id of the user who owns the repository */
    uint64_t documents; /* grows with every change of the bucket's documents */
    uint64_t rules;     /* grows with every change of the rules of protected branches */
    /* These two are not in the record; lake_repo_get() sets them. */
    struct str partition; /* "<id>-<token>" */
    struct str stamp;     /* the row as it was read, for conditions of writes (KV_SAME) */
};

/* The row branches/<id> of the repository's partition. */
struct lake_branch {
    struct str id;
    struct str commit_id; /* empty: the branch has no commit (bare repositories only) */
    struct str staging;   /* the staging token: the partition that gets new changes */
    struct str *sealed;   /* sealed tokens, which get no more changes; the newest first */
    size_t sealed_count;
    bool hidden;
    uint64_t revision; /* grows by one with every change of the record */
    uint64_t epoch;    /* grows with every change other than a seal or a plain commit */
    /* the row as it was read, for conditions of writes (KV_SAME); not in the record */
    struct str stamp;
};

/* The row tags/<id> of the repository's partition. */
struct lake_tag {
    struct str id, commit_id;
    struct str stamp;
};

/* The row commits/<id> of the repository's partition. */
struct lake_commit {
    struct str id, committer, message;
    int64_t created_ms; /* the commit id contains this time in whole seconds */
    struct str tree;    /* id of the root of the tree; empty: the empty tree */
    struct str_pairs metadata;
    struct str *parents; /* the first parent comes first when `version` is 1 */
    size_t parent_count;
    int32_t version;    /* 0: the first parent is the last one */
    int32_t generation; /* 1 + the greatest generation of the parents */
};
/* Returns the commit's first parent; empty: it has none. */
struct str lake_commit_first_parent(const struct lake_commit *c);

/* The form of an entry's address. The oldest records of lakeFS have neither of these types; then
 * the address itself shows its form. */
enum lake_address { LAKE_RELATIVE = 1, LAKE_FULL = 2 };

/* An object: its address and its metadata. It is stored as the data of a staged row and of a leaf's
 * record. */
struct lake_entry {
    struct str address;    /* relative: a key below the namespace; full: s3://bucket/key */
    uint32_t address_type; /* enum lake_address, or another number */
    int64_t modified_ms;
    uint64_t size;
    struct str etag;           /* without quotes */
    struct str_pairs metadata; /* user metadata, keys without "x-amz-meta-", in lower case */
    struct str content_type;
    /* These are stored in field 100, `extra`: data of S3 for which lakeFS has no fields. */
    struct str_pairs headers;              /* other headers of object_meta, names in lower case */
    struct str tags;                       /* "k=v&k2=v2" */
    uint32_t checksum_type, checksum_kind; /* enum checksum_type, enum digest_kind */
    struct str checksum;
    uint64_t *part_sizes;
    size_t part_count;
    struct str storage_class, owner;
};

/* The row key/<path> of a token's partition: a staged change. */
struct lake_staged {
    struct str identity; /* LAKE_IDENTITY_LEN bytes; empty: a tombstone */
    struct str data;     /* the encoded lake_entry */
};

void lake_repo_write(struct buf *out, const struct lake_repo *r);
int lake_repo_read(struct lake_repo *out, struct arena *a, struct str in,
                   struct err *err) MUST_CHECK;
void lake_branch_write(struct buf *out, const struct lake_branch *b);
int lake_branch_read(struct lake_branch *out, struct arena *a, struct str in,
                     struct err *err) MUST_CHECK;
void lake_tag_write(struct buf *out, const struct lake_tag *t);
int lake_tag_read(struct lake_tag *out, struct str in, struct err *err) MUST_CHECK;
void lake_commit_write(struct buf *out, const struct lake_commit *c);
int lake_commit_read(struct lake_commit *out, struct arena *a, struct str in,
                     struct err *err) MUST_CHECK;
/* Reads only the id of the commit's tree, which is borrowed from `in`; tree->p is not NULL, even if
 * the tree is empty. */
int lake_commit_read_tree(struct str *tree, struct str in, struct err *err) MUST_CHECK;
void lake_entry_write(struct buf *out, const struct lake_entry *e);
/* Appends only the members of `extra`. Appends nothing if the entry has none of them. */
void lake_entry_write_extra(struct buf *out, const struct lake_entry *e);
int lake_entry_read(struct lake_entry *out, struct arena *a, struct str in,
                    struct err *err) MUST_CHECK;
void lake_staged_write(struct buf *out, const struct lake_staged *s);
int lake_staged_read(struct lake_staged *out, struct str in, struct err *err) MUST_CHECK;

/* --- ids (docs/lake.md, "Ids") --- */

/* Computes the commit's id as lakeFS does: the SHA-256, in hex, of committer, message, tree, time
 * in seconds, metadata and parents. The id does not depend on generation and version. */
void lake_commit_id(char out[LAKE_ID_LEN + 1], const struct lake_commit *c);
/* Computes an object's identity: the SHA-256 of size, ETag, metadata, content type, and of `extra`
 * if the entry has any of it. The identity does not depend on address, time and path, so writing
 * equal content again is no change. */
void lake_entry_identity(unsigned char out[LAKE_IDENTITY_LEN], const struct lake_entry *e);

#endif
