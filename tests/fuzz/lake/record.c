/* Records of the lake: whatever bytes come, reading never crashes, what was read is inside its
 * limits, and written again it reads the same. The first byte chooses the kind of record. */
#include "lake/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

union any_record {
    struct lake_repo repo;
    struct lake_branch branch;
    struct lake_tag tag;
    struct lake_commit commit;
    struct lake_entry entry;
    struct lake_staged staged;
};

static int read_repo(union any_record *r, struct arena *a, struct str in)
{
    return lake_repo_read(&r->repo, a, in, NULL);
}

static int read_branch(union any_record *r, struct arena *a, struct str in)
{
    int code = lake_branch_read(&r->branch, a, in, NULL);

    BUG_ON(code == 0 && r->branch.sealed_count > LAKE_SEALED_MAX);
    return code;
}

static int read_tag(union any_record *r, struct arena *a, struct str in)
{
    return lake_tag_read(&r->tag, in, NULL);
}

static int read_commit(union any_record *r, struct arena *a, struct str in)
{
    int code = lake_commit_read(&r->commit, a, in, NULL);
    char id[LAKE_ID_LEN + 1];

    if (code < 0)
        return code;
    BUG_ON(r->commit.parent_count > LAKE_PARENTS_MAX);
    BUG_ON(r->commit.metadata.count > LAKE_METADATA_MAX);
    lake_commit_id(id, &r->commit);
    BUG_ON(strlen(id) != LAKE_ID_LEN);
    return 0;
}

static int read_entry(union any_record *r, struct arena *a, struct str in)
{
    unsigned char identity[LAKE_IDENTITY_LEN];
    int code = lake_entry_read(&r->entry, a, in, NULL);

    if (code < 0)
        return code;
    BUG_ON(r->entry.part_count > LAKE_PARTS_MAX);
    BUG_ON(r->entry.address_type != LAKE_RELATIVE && r->entry.address_type != LAKE_FULL);
    for (size_t i = 1; i < r->entry.metadata.count; i++)
        BUG_ON(str_cmp(r->entry.metadata.pairs[i - 1].key, r->entry.metadata.pairs[i].key) >= 0);
    lake_entry_identity(identity, &r->entry);
    return 0;
}

static int read_staged(union any_record *r, struct arena *a, struct str in)
{
    return lake_staged_read(&r->staged, in, NULL);
}

static void write_repo(struct buf *out, const union any_record *r)
{
    lake_repo_write(out, &r->repo);
}

static void write_branch(struct buf *out, const union any_record *r)
{
    lake_branch_write(out, &r->branch);
}

static void write_tag(struct buf *out, const union any_record *r)
{
    lake_tag_write(out, &r->tag);
}

static void write_commit(struct buf *out, const union any_record *r)
{
    lake_commit_write(out, &r->commit);
}

static void write_entry(struct buf *out, const union any_record *r)
{
    lake_entry_write(out, &r->entry);
}

static void write_staged(struct buf *out, const union any_record *r)
{
    lake_staged_write(out, &r->staged);
}

static const struct {
    int (*read)(union any_record *r, struct arena *a, struct str in);
    void (*write)(struct buf *out, const union any_record *r);
} kinds[] = {
    {read_repo, write_repo},     {read_branch, write_branch}, {read_tag, write_tag},
    {read_commit, write_commit}, {read_entry, write_entry},   {read_staged, write_staged},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = {0};
    struct buf once = {0}, twice = {0};
    union any_record r, back;

    if (size == 0)
        return 0;
    size_t kind = data[0] % ARRAY_SIZE(kinds);
    if (kinds[kind].read(&r, &a, str_n(data + 1, size - 1)) == 0) {
        kinds[kind].write(&once, &r);
        int code = kinds[kind].read(&back, &a, buf_str(&once));
        BUG_ON(code < 0);
        kinds[kind].write(&twice, &back);
        BUG_ON(!str_eq(buf_str(&once), buf_str(&twice)));
    }
    buf_release(&once);
    buf_release(&twice);
    arena_release(&a);
    return 0;
}
