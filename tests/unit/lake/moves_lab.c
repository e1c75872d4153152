/* Short forms for tests of dumps and restores. */
#include "unit/lake/moves_lab.h"

#include "lake/delete.h"
#include "lake/node.h"
#include "unit/lake/sst_file.h"

#include <stdlib.h>

struct lake_refs moves_dump(struct hand *h)
{
    struct lake_refs refs = {0};
    struct err err = {0};

    CHECK_OK(lake_dump(h->lake, &h->arena, &h->repo, NULL, &refs, &err));
    return refs;
}

void moves_make_bare(struct hand *h)
{
    struct lake_repo_options o = {
        .id = h->repo.id, .space = h->repo.space, .owner = h->repo.owner, .bare = true};
    struct err err = {0};

    h->lake->claim_fresh_ms = 0;
    CHECK_OK(lake_repo_delete(h->lake, &h->arena, o.id, true, false, &err));
    CHECK_OK(lake_delete_work(h->lake, NULL, NULL, &err));
    CHECK_OK(lake_repo_create(h->lake, &h->arena, &o, &h->repo, &err));
}

int moves_try_restore(struct hand *h, const struct lake_refs *refs)
{
    h->err = (struct err){0};
    return lake_restore(h->lake, &h->repo, refs, false, NULL, &h->err);
}

void moves_check_same(const struct lake_refs *a, const struct lake_refs *b)
{
    CHECK_STR(a->commits, b->commits);
    CHECK_STR(a->tags, b->tags);
    CHECK_STR(a->branches, b->branches);
}

/* --- trees --- */

static void moves_add(struct hand *h, struct moves_tree *t, struct str key, struct buf *data)
{
    CHECK(t->count < ARRAY_SIZE(t->records));
    t->records[t->count++] = (struct tree_record){.key = arena_str(&h->arena, key),
                                                  .identity = arena_str(&h->arena, key),
                                                  .data = arena_str(&h->arena, buf_str(data))};
    buf_release(data);
}

void moves_add_commit(struct hand *h, struct moves_tree *t, struct str key,
                      const struct lake_commit *c)
{
    struct buf data = {0};

    lake_commit_write(&data, c);
    moves_add(h, t, key, &data);
}

void moves_add_tag(struct hand *h, struct moves_tree *t, struct str key, const struct lake_tag *tag)
{
    struct buf data = {0};

    lake_tag_write(&data, tag);
    moves_add(h, t, key, &data);
}

void moves_add_branch(struct hand *h, struct moves_tree *t, struct str key,
                      const struct lake_branch *b)
{
    struct buf data = {0};

    lake_branch_write(&data, b);
    moves_add(h, t, key, &data);
}

static int moves_order(const void *a, const void *b)
{
    const struct tree_record *x = a, *y = b;

    return str_cmp(x->key, y->key);
}

struct moves_reader {
    const struct moves_tree *tree;
    size_t next;
};

static int moves_next(void *ctx, struct tree_record *out, struct err *err)
{
    struct moves_reader *r = ctx;

    if (r->next == r->tree->count)
        return ERR_END;
    *out = r->tree->records[r->next++];
    return 0;
}

struct str moves_write_tree(struct hand *h, struct moves_tree *t)
{
    struct moves_reader reader = {.tree = t};
    struct tree_changes changes = {moves_next, &reader};
    struct tree_result result;
    struct tree_store store;
    struct err err = {0};

    qsort(t->records, t->count, sizeof(*t->records), moves_order);
    CHECK_OK(lake_tree_store(h->lake, &h->repo, &store, &err));
    CHECK_OK(tree_apply(&store, STR_EMPTY, &changes, NULL, &result, &err));
    lake_tree_store_release(h->lake, &store);
    return arena_str(&h->arena, str_z(result.root));
}

/* --- tables of lakeFS --- */

struct str moves_put_tables(struct hand *h, const struct moves_tree *t)
{
    struct sst_options range = {.type = "ranges"}, meta = {.type = "metaranges"};
    struct buf bytes = BUF_INIT(NODE_FILE_MAX), value = {0}, data = {0};
    char id[LAKE_ID_LEN + 1];
    struct sst_file *f = sst_file_new(&range);

    for (size_t i = 0; i < t->count; i++) {
        buf_reset(&value);
        node_record_write(&value, t->records[i].identity, t->records[i].data);
        sst_file_add(f, t->records[i].key, buf_str(&value));
    }
    sst_file_end(f, &bytes, id);
    gc_lab_put_foreign(h, arena_fmt(&h->arena, "_lakefs/%s", id), buf_str(&bytes));
    proto_put_bytes(&data, 1, t->records[0].key);
    proto_put_bytes(&data, 2, t->records[t->count - 1].key);
    proto_put_number(&data, 3, (int64_t)bytes.len);
    proto_put_number(&data, 4, (int64_t)t->count);
    buf_reset(&value);
    node_record_write(&value, str_z(id), buf_str(&data));
    f = sst_file_new(&meta);
    sst_file_add(f, t->records[t->count - 1].key, buf_str(&value));
    buf_reset(&bytes);
    sst_file_end(f, &bytes, id);
    gc_lab_put_foreign(h, arena_fmt(&h->arena, "_lakefs/%s", id), buf_str(&bytes));
    buf_release(&bytes);
    buf_release(&value);
    buf_release(&data);
    return arena_str(&h->arena, str_z(id));
}
