/* Reads and writes the records of the lake by tables of their fields. */
#include "lake/record.h"

/* --- the tables --- */

static const struct proto_field repo_fields[] = {
    PROTO_FIELD(1, PROTO_STR, struct lake_repo, id),
    PROTO_FIELD(2, PROTO_STR, struct lake_repo, space),
    PROTO_FIELD(3, PROTO_STR, struct lake_repo, default_branch),
    PROTO_FIELD(4, PROTO_TIME, struct lake_repo, created_ms),
    PROTO_FIELD(6, PROTO_STR, struct lake_repo, token),
    PROTO_FIELD(7, PROTO_BOOL, struct lake_repo, read_only),
    PROTO_FIELD(8, PROTO_STR, struct lake_repo, storage_id),
    PROTO_FIELD(100, PROTO_STR, struct lake_repo, owner),
    PROTO_FIELD(101, PROTO_U64, struct lake_repo, documents),
    PROTO_FIELD(102, PROTO_U64, struct lake_repo, rules),
    {0},
};

static const struct proto_field branch_fields[] = {
    PROTO_FIELD(1, PROTO_STR, struct lake_branch, id),
    PROTO_FIELD(2, PROTO_STR, struct lake_branch, commit_id),
    PROTO_FIELD(3, PROTO_STR, struct lake_branch, staging),
    PROTO_ITEMS(4, PROTO_STRS, struct lake_branch, sealed, sealed_count, LAKE_SEALED_MAX),
    PROTO_FIELD(5, PROTO_BOOL, struct lake_branch, hidden),
    PROTO_FIELD(100, PROTO_U64, struct lake_branch, revision),
    PROTO_FIELD(101, PROTO_U64, struct lake_branch, epoch),
    {0},
};

static const struct proto_field tag_fields[] = {
    PROTO_FIELD(1, PROTO_STR, struct lake_tag, id),
    PROTO_FIELD(2, PROTO_STR, struct lake_tag, commit_id),
    {0},
};

static const struct proto_field commit_fields[] = {
    PROTO_FIELD(1, PROTO_STR, struct lake_commit, id),
    PROTO_FIELD(2, PROTO_STR, struct lake_commit, committer),
    PROTO_FIELD(3, PROTO_STR, struct lake_commit, message),
    PROTO_FIELD(4, PROTO_TIME, struct lake_commit, created_ms),
    PROTO_FIELD(5, PROTO_STR, struct lake_commit, tree),
    {6, PROTO_PAIRS, offsetof(struct lake_commit, metadata), 0, LAKE_METADATA_MAX},
    PROTO_ITEMS(7, PROTO_STRS, struct lake_commit, parents, parent_count, LAKE_PARENTS_MAX),
    PROTO_FIELD(8, PROTO_I32, struct lake_commit, version),
    PROTO_FIELD(9, PROTO_I32, struct lake_commit, generation),
    {0},
};

static const struct proto_field extra_fields[] = {
    {1, PROTO_PAIRS, offsetof(struct lake_entry, headers), 0, LAKE_METADATA_MAX},
    PROTO_FIELD(2, PROTO_STR, struct lake_entry, tags),
    PROTO_FIELD(3, PROTO_U32, struct lake_entry, checksum_type),
    PROTO_FIELD(4, PROTO_U32, struct lake_entry, checksum_kind),
    PROTO_FIELD(5, PROTO_STR, struct lake_entry, checksum),
    PROTO_ITEMS(6, PROTO_U64S, struct lake_entry, part_sizes, part_count, LAKE_PARTS_MAX),
    PROTO_FIELD(7, PROTO_STR, struct lake_entry, storage_class),
    PROTO_FIELD(8, PROTO_STR, struct lake_entry, owner),
    {0},
};

static const struct proto_field entry_fields[] = {
    PROTO_FIELD(1, PROTO_STR, struct lake_entry, address),
    PROTO_FIELD(2, PROTO_TIME, struct lake_entry, modified_ms),
    PROTO_FIELD(3, PROTO_U64, struct lake_entry, size),
    PROTO_FIELD(4, PROTO_STR, struct lake_entry, etag),
    {5, PROTO_PAIRS, offsetof(struct lake_entry, metadata), 0, LAKE_METADATA_MAX},
    PROTO_FIELD(6, PROTO_U32, struct lake_entry, address_type),
    PROTO_FIELD(7, PROTO_STR, struct lake_entry, content_type),
    {.number = 100, .type = PROTO_INNER, .inner = extra_fields},
    {0},
};

static const struct proto_field staged_fields[] = {
    PROTO_FIELD(2, PROTO_STR, struct lake_staged, identity),
    PROTO_FIELD(3, PROTO_STR, struct lake_staged, data),
    {0},
};

/* --- reading and writing --- */

/* Reads a record. The error's text names the kind of record. */
static int record_read(void *out, const struct proto_field *fields, struct arena *a, struct str in,
                       const char *kind, struct err *err)
{
    int code = proto_read(out, fields, a, in, err);

    return code == ERR_PARSE ? err_set(err, ERR_CORRUPT, "the record of %s is damaged", kind)
                             : code;
}

void lake_repo_write(struct buf *out, const struct lake_repo *r)
{
    proto_write(out, repo_fields, r);
}

int lake_repo_read(struct lake_repo *out, struct arena *a, struct str in, struct err *err)
{
    *out = (struct lake_repo){0};
    int code = record_read(out, repo_fields, a, in, "a repository", err);
    if (code == 0) {
        out->partition = arena_fmt(a, STR_FMT "-" STR_FMT, STR_ARG(out->id), STR_ARG(out->token));
        code = arena_error(a);
    }
    return code;
}

void lake_branch_write(struct buf *out, const struct lake_branch *b)
{
    proto_write(out, branch_fields, b);
}

int lake_branch_read(struct lake_branch *out, struct arena *a, struct str in, struct err *err)
{
    *out = (struct lake_branch){0};
    return record_read(out, branch_fields, a, in, "a branch", err);
}

void lake_tag_write(struct buf *out, const struct lake_tag *t)
{
    proto_write(out, tag_fields, t);
}

int lake_tag_read(struct lake_tag *out, struct str in, struct err *err)
{
    *out = (struct lake_tag){0};
    return record_read(out, tag_fields, NULL, in, "a tag", err);
}

void lake_commit_write(struct buf *out, const struct lake_commit *c)
{
    proto_write(out, commit_fields, c);
}

int lake_commit_read(struct lake_commit *out, struct arena *a, struct str in, struct err *err)
{
    *out = (struct lake_commit){0};
    return record_read(out, commit_fields, a, in, "a commit", err);
}

int lake_commit_read_tree(struct str *tree, struct str in, struct err *err)
{
    static const struct proto_field fields[] = {{.number = 5, .type = PROTO_STR}, {0}};

    *tree = STR("");
    return record_read(tree, fields, NULL, in, "a commit", err);
}

void lake_entry_write(struct buf *out, const struct lake_entry *e)
{
    proto_write(out, entry_fields, e);
}

void lake_entry_write_extra(struct buf *out, const struct lake_entry *e)
{
    proto_write(out, extra_fields, e);
}

int lake_entry_read(struct lake_entry *out, struct arena *a, struct str in, struct err *err)
{
    *out = (struct lake_entry){0};
    int code = record_read(out, entry_fields, a, in, "an object", err);
    if (code == 0 && out->address_type != LAKE_RELATIVE)
        out->address_type = str_find(out->address, STR("://")) >= 0 ? LAKE_FULL : LAKE_RELATIVE;
    return code;
}

void lake_staged_write(struct buf *out, const struct lake_staged *s)
{
    proto_write(out, staged_fields, s);
}

int lake_staged_read(struct lake_staged *out, struct str in, struct err *err)
{
    *out = (struct lake_staged){0};
    return record_read(out, staged_fields, NULL, in, "a staged object", err);
}

struct str lake_commit_first_parent(const struct lake_commit *c)
{
    if (c->parent_count == 0)
        return STR_EMPTY;
    return c->parents[c->version == 0 ? c->parent_count - 1 : 0];
}
