/* Ref expressions: whatever text comes, resolving ends soon, and gives a commit or an error with a
 * text. The key-value store below has the branch "main", the tag "v1", and one commit that is its
 * own two parents, so that a walk never ends by itself. */
#include "kv/kv.h"
#include "lake/lake_int.h"
#include "lake/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ONLY STR("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")

static int fake_prepare(struct kv *kv, struct err *err)
{
    return 0;
}

static int fake_view_open(struct kv_view **out, struct kv *kv, struct err *err)
{
    *out = NULL;
    return 0;
}

static void fake_view_close(struct kv *kv, struct kv_view *view)
{
}

/* Writes the record of the row, or nothing. */
static void fake_record(struct str key, struct buf *out)
{
    struct str parents[] = {ONLY, ONLY};

    if (str_eq(key, STR("branches/main")))
        lake_branch_write(out, &(struct lake_branch){.id = STR("main"), .commit_id = ONLY});
    else if (str_eq(key, STR("branches/bare")))
        lake_branch_write(out, &(struct lake_branch){.id = STR("bare")});
    else if (str_eq(key, STR("tags/v1")))
        lake_tag_write(out, &(struct lake_tag){.id = STR("v1"), .commit_id = ONLY});
    else if (str_starts(key, STR("commits/")) && str_ends(key, ONLY))
        lake_commit_write(out,
                          &(struct lake_commit){.id = ONLY, .parents = parents, .parent_count = 2});
}

static int fake_get(struct kv *kv, struct kv_view *view, struct arena *a,
                    const struct kv_name *names, size_t count, struct kv_value *out,
                    struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        struct buf record = {0};
        fake_record(names[i].key, &record);
        out[i] = (struct kv_value){0};
        if (record.len)
            out[i].bytes = out[i].stamp = arena_str(a, buf_str(&record));
        buf_release(&record);
    }
    return 0;
}

/* The rows of one scan: the only commit, if its key has the prefix. */
struct fake_scan {
    struct kv_scan scan;
    bool has_row;
};

static struct fake_scan fake_rows;

static int fake_scan_open(struct kv_scan **out, struct kv *kv, struct kv_view *view,
                          struct str partition, const struct kv_range *range, struct err *err)
{
    struct arena a = {0};

    fake_rows.scan.kv = kv;
    fake_rows.has_row = str_starts(lake_key_commit(&a, partition, ONLY).key, range->prefix);
    arena_release(&a);
    *out = &fake_rows.scan;
    return 0;
}

static int fake_scan_next(struct kv_scan *scan, struct str *key, struct str *value, struct err *err)
{
    *key = STR("commits/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
    *value = STR("");
    if (!fake_rows.has_row)
        return ERR_END;
    fake_rows.has_row = false;
    return 0;
}

static void fake_scan_end(struct kv_scan *scan)
{
}

static const struct kv_ops fake_ops = {.prepare = fake_prepare,
                                       .view_open = fake_view_open,
                                       .view_close = fake_view_close,
                                       .get = fake_get,
                                       .scan_open = fake_scan_open,
                                       .scan_next = fake_scan_next,
                                       .scan_close = fake_scan_end,
                                       .scan_free = fake_scan_end};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct kv kv = {.ops = &fake_ops, .driver = "fake"};
    static struct lake lake;
    struct lake_repo repo = {.id = STR("repo"), .partition = STR("repo-1")};
    struct arena a = {0};
    struct lake_ref ref;
    struct err err = {0};

    lake.kv = &kv;
    if (!lake.commits)
        lake.commits = commit_cache_new(1 << 20);
    int code = lake_ref_resolve(&lake, &a, &repo, str_n(data, size), &ref, &err);
    BUG_ON(code < 0 && code != ERR_NOT_FOUND && code != ERR_INVALID);
    BUG_ON(code < 0 && !err.text[0]);
    if (code == 0) {
        BUG_ON(ref.commit_id.len && !lake_is_commit_id(ref.commit_id));
        BUG_ON(ref.staged && ref.kind != LAKE_BRANCH);
        BUG_ON(ref.explicit_staged && !ref.staged);
    }
    arena_release(&a);
    return 0;
}
