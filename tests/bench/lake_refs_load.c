/* A dump of many refs, its restore, and the same rows by hand.
 *
 *     bench_lake_refs DIR COMMITS
 *
 * The repository has a line of commits, a tag for every tenth of them, and a branch for every
 * hundredth. The rows that the restore has written are then written into another partition, in
 * batches of the same size, by kv_write() alone. */
#include "lake_bench.h"

#include "base/vec.h"
#include "lake/dump.h"

#include <stdio.h>
#include <stdlib.h>

enum { REFS_BATCH = 1000, TAG_EVERY = 10, BRANCH_EVERY = 100 };

struct refs_bench {
    struct lake_bench lake;
    uint64_t commits;
    struct arena arena; /* of the batch */
    struct lake_tx tx;
};

/* --- the history --- */

static void refs_flush(struct refs_bench *b)
{
    struct err err = {0};

    bench_must(lake_tx_write(b->lake.lake, &b->tx, NULL, &err), &err);
    arena_reset(&b->arena);
    lake_tx_init(&b->tx, &b->arena);
}

static void refs_add_tag(struct refs_bench *b, uint64_t n, struct str commit_id)
{
    struct lake_tag t = {.id = arena_fmt(&b->arena, "tag-%09ju", (uintmax_t)n),
                         .commit_id = commit_id};
    struct buf record = {0};

    lake_tag_write(&record, &t);
    lake_tx_put(&b->tx, lake_key_tag(&b->arena, b->lake.repo.partition, t.id),
                arena_str(&b->arena, buf_str(&record)));
    buf_release(&record);
}

static void refs_add_branch(struct refs_bench *b, uint64_t n, struct str commit_id)
{
    struct lake_branch branch = {.id = arena_fmt(&b->arena, "branch-%09ju", (uintmax_t)n),
                                 .commit_id = commit_id,
                                 .revision = 1};
    struct buf record = {0};

    branch.staging = lake_new_token(&b->arena, &b->lake.repo, branch.id);
    lake_branch_write(&record, &branch);
    lake_tx_put(&b->tx, lake_key_branch(&b->arena, b->lake.repo.partition, branch.id),
                arena_str(&b->arena, buf_str(&record)));
    buf_release(&record);
}

/* Adds commit n, whose parent has the id in `id`; `id` becomes its own. */
static void refs_add_commit(struct refs_bench *b, uint64_t n, char id[LAKE_ID_LEN + 1])
{
    struct str parent = arena_str(&b->arena, str_z(id));
    struct str_pair pair = {STR("pipeline"), arena_fmt(&b->arena, "run-%ju", (uintmax_t)n)};
    struct lake_commit c = {.committer = STR("loader"),
                            .message = arena_fmt(&b->arena, "load of day %ju", (uintmax_t)n),
                            .created_ms = (int64_t)(1600000000 + n) * 1000,
                            .tree = STR("8f14e45fceea167a5a36dedd4bea2543"
                                        "c9f0f895fb98ab9159f51fd0297e236d"),
                            .metadata = {&pair, 1},
                            .parents = &parent,
                            .parent_count = 1,
                            .version = 1,
                            .generation = (int32_t)n + 2};

    lake_commit_id(id, &c);
    c.id = arena_str(&b->arena, str_z(id));
    lake_tx_put_commit(&b->tx, &b->lake.repo, &c);
    if (n % TAG_EVERY == 0)
        refs_add_tag(b, n, c.id);
    if (n % BRANCH_EVERY == 0)
        refs_add_branch(b, n, c.id);
}

static void refs_fill(struct refs_bench *b)
{
    struct lake_branch main;
    char id[LAKE_ID_LEN + 1];
    struct err err = {0};

    bench_must(lake_branch_get(b->lake.lake, &b->arena, &b->lake.repo, STR("main"), &main, &err),
               &err);
    snprintf(id, sizeof(id), STR_FMT, STR_ARG(main.commit_id));
    lake_tx_init(&b->tx, &b->arena);
    for (uint64_t n = 0; n < b->commits; n++) {
        refs_add_commit(b, n, id);
        if (b->tx.count >= REFS_BATCH)
            refs_flush(b);
    }
    refs_flush(b);
}

/* --- by hand --- */

typedef VEC(struct kv_change) refs_rows;

/* Reads the rows of the restored repository. */
static void refs_read(struct refs_bench *b, struct arena *a, struct str partition, refs_rows *out)
{
    static const char *const kinds[] = {"commits/", "firsts/", "tags/", "branches/"};

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        struct kv_range range = {.prefix = str_z(kinds[i])};
        struct kv_scan *scan = NULL;
        struct str key, value;
        struct err err = {0};
        int code = kv_scan_open(&scan, b->lake.kv, NULL, partition, &range, &err);
        while (code == 0 && (code = kv_scan_next(scan, &key, &value, &err)) == 0) {
            struct kv_change row = {
                KV_PUT, {STR("by-hand"), arena_str(a, key)}, arena_str(a, value)};
            if (!row.value.p)
                row.value = STR("");
            vec_push(out, row);
        }
        kv_scan_free(scan);
        bench_must(code == ERR_END ? arena_error(a) : code, &err);
    }
}

static void refs_write(struct refs_bench *b, const refs_rows *rows)
{
    struct err err = {0};

    for (size_t at = 0; at < rows->len; at += REFS_BATCH)
        bench_must(kv_write(b->lake.kv, rows->items + at, size_min(REFS_BATCH, rows->len - at),
                            NULL, &err),
                   &err);
}

/* --- the measures --- */

static void refs_measure(struct refs_bench *b)
{
    struct lake_repo_options bare = {
        .id = STR("copy"), .space = STR("s3://data/copy"), .owner = STR("owner"), .bare = true};
    uint64_t refs = b->commits + b->commits / TAG_EVERY + b->commits / BRANCH_EVERY;
    struct arena a = ARENA_INIT((size_t)4 << 30);
    struct lake_repo copy;
    struct lake_refs dump;
    refs_rows rows = {0};
    struct err err = {0};

    struct span s = span_begin();
    bench_must(lake_dump(b->lake.lake, &a, &b->lake.repo, NULL, &dump, &err), &err);
    span_end(&s, "dump", refs);
    bench_must(lake_repo_create(b->lake.lake, &a, &bare, &copy, &err), &err);
    s = span_begin();
    bench_must(lake_restore(b->lake.lake, &copy, &dump, true, NULL, &err), &err);
    span_end(&s, "restore", refs);
    refs_read(b, &a, copy.partition, &rows);
    s = span_begin();
    refs_write(b, &rows);
    span_end(&s, "hand", refs);
    vec_release(&rows);
    arena_release(&a);
}

int main(int argc, char **argv)
{
    struct refs_bench b = {0};
    struct buf target = {0};

    if (argc != 3 || str_u64(str_z(argv[2]), &b.commits) < 0) {
        fprintf(stderr, "bench_lake_refs DIR COMMITS\n");
        return 2;
    }
    buf_appendf(&target, "embedded:%s/kv", argv[1]);
    lake_bench_open(&b.lake, target.p, argv[1]);
    refs_fill(&b);
    refs_measure(&b);
    lake_bench_close(&b.lake);
    arena_release(&b.arena);
    buf_release(&target);
    return 0;
}
