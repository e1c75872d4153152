/* Rows of the lake that are no refs: imports, uploads, runs of hooks, pull requests, rules.
 * Whatever bytes come, reading never crashes, what was read is inside its limits, and written again
 * it reads the same. The first byte chooses the kind of row. */
#include "lake/actions_int.h"
#include "lake/gc_int.h"
#include "lake/import_int.h"
#include "lake/protect.h"
#include "lake/pulls.h"
#include "lake/upload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Each reads a row, and appends it as it is written again. The code is that of the reading. */

static int again_import(struct buf *out, struct arena *a, struct str in)
{
    struct import_record *r = arena_new(a, struct import_record);
    int code = import_record_read(r, a, in, NULL);

    BUG_ON(r->path_count > LAKE_IMPORT_PATHS_MAX);
    if (code == 0)
        import_record_write(out, r);
    return code;
}

static int again_upload(struct buf *out, struct arena *a, struct str in)
{
    struct lake_upload u;
    struct upload_info info;
    struct err err = {0};
    int code = lake_upload_decode(&u, in, NULL);

    if (code < 0)
        return code;
    if (lake_upload_info(&u, a, STR("main/a"), STR("id"), &info, &err) < 0)
        BUG_ON(!err.text[0]);
    lake_upload_encode(out, &u);
    return 0;
}

/* The name of an upload's row. */
static int again_upload_name(struct buf *out, struct arena *a, struct str in)
{
    struct str key, id;

    if (!lake_upload_split(in, &key, &id))
        return ERR_CORRUPT;
    BUG_ON(key.len + 1 + id.len != in.len);
    buf_append_str(out, key);
    buf_append_char(out, '\0');
    buf_append_str(out, id);
    BUG_ON(!str_eq(buf_str(out), in));
    return 0;
}

static int again_run(struct buf *out, struct arena *a, struct str in)
{
    struct lake_run run;
    int code = action_run_read(&run, in, NULL);

    if (code == 0)
        action_run_write(out, &run);
    return code;
}

static int again_hook_run(struct buf *out, struct arena *a, struct str in)
{
    struct lake_hook_run run;
    int code = action_hook_run_read(&run, in, NULL);

    if (code == 0)
        action_hook_run_write(out, &run);
    return code;
}

static int again_pull(struct buf *out, struct arena *a, struct str in)
{
    struct lake_pull p;
    int code = lake_pull_read(&p, in, NULL);

    BUG_ON(code == 0 && p.status >= LAKE_PULL_STATUSES);
    if (code == 0)
        lake_pull_write(out, &p);
    return code;
}

static int again_gc_rules(struct buf *out, struct arena *a, struct str in)
{
    struct lake_gc_rules rules;
    int code = lake_gc_rules_read(&rules, a, in, NULL);

    BUG_ON(rules.count > LAKE_GC_BRANCHES_MAX);
    if (code < 0)
        return code;
    BUG_ON(rules.default_days > LAKE_GC_DAYS_MAX);
    for (size_t i = 0; i < rules.count; i++) {
        BUG_ON(rules.branches[i].days > LAKE_GC_DAYS_MAX);
        BUG_ON(i && str_cmp(rules.branches[i - 1].branch, rules.branches[i].branch) >= 0);
    }
    buf_append_str(out, lake_gc_rules_write(a, &rules));
    return 0;
}

static int again_protection(struct buf *out, struct arena *a, struct str in)
{
    struct lake_protection_rule rule;
    struct lake_protection one = {.rules = &rule, .count = 1};
    int code;

    while ((code = lake_protection_take(&in, &rule, NULL)) == 0) {
        BUG_ON(rule.what & ~(unsigned)(LAKE_PROTECT_STAGING | LAKE_PROTECT_COMMIT));
        lake_pattern_matches(rule.pattern, STR("main"));
        if (rule.pattern.len || rule.what)
            lake_protection_write(out, &one);
    }
    return code == ERR_END ? 0 : code;
}

/* A file that a collection removes. */
static int again_dead(struct buf *out, struct arena *a, struct str in)
{
    struct gc_dead dead;
    int code = gc_dead_read(&dead, in, NULL);

    if (code == 0)
        buf_append_str(out, gc_dead_write(a, &dead));
    return code;
}

typedef int again_fn(struct buf *out, struct arena *a, struct str in);

static again_fn *const kinds[] = {again_import,     again_upload,      again_run,
                                  again_hook_run,   again_pull,        again_gc_rules,
                                  again_protection, again_upload_name, again_dead};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = {0};
    struct buf once = {0}, twice = {0};

    if (size == 0)
        return 0;
    again_fn *again = kinds[data[0] % ARRAY_SIZE(kinds)];
    if (again(&once, &a, str_n(data + 1, size - 1)) == 0) {
        int code = again(&twice, &a, buf_str(&once));
        BUG_ON(code < 0);
        BUG_ON(!str_eq(buf_str(&once), buf_str(&twice)));
    }
    buf_release(&once);
    buf_release(&twice);
    arena_release(&a);
    return 0;
}
