/* Rows of the lake that are no refs, such as imports, uploads, runs of hooks, pull requests, rules
 * and the rows of collections; and two small files, the claim of a namespace and the manifest of a
 * dump. Whatever bytes come, reading never crashes, what was read is inside its limits, and written
 * again it reads the same. The first byte chooses the kind of row. */
#include "lake/actions_int.h"
#include "lake/claim_int.h"
#include "lake/clean.h"
#include "lake/delete.h"
#include "lake/gc_int.h"
#include "lake/import_int.h"
#include "lake/manifest.h"
#include "lake/migrate_int.h"
#include "lake/protect.h"
#include "lake/pulls.h"
#include "lake/refs_task.h"
#include "lake/repo_meta.h"
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

/* The object that claims a namespace. Claims of old versions of weir have no life; claim_format()
 * makes no such claim. */
static int again_claim(struct buf *out, struct arena *a, struct str in)
{
    struct claim_words words;

    if (!claim_parse(in, &words))
        return ERR_CORRUPT;
    BUG_ON(!words.id.len || !str_starts(words.partition, words.id));
    buf_append_str(out, words.life.len ? claim_format(a, &words) : in);
    BUG_ON(!str_eq(buf_str(out), in));
    return 0;
}

/* The manifest of a dump of refs. */
static int again_manifest(struct buf *out, struct arena *a, struct str in)
{
    struct lake_refs refs;
    struct json_out w;
    int code = lake_manifest_parse(&refs, a, in, NULL);

    if (code < 0)
        return code;
    json_out_init(&w, out);
    json_out_open(&w, '{');
    lake_refs_json(&w, &refs);
    json_out_close(&w, '}');
    return 0;
}

static int again_deleted(struct buf *out, struct arena *a, struct str in)
{
    struct deleted_row row;
    int code = deleted_row_read(&row, in, NULL);

    if (code == 0)
        deleted_row_write(out, &row);
    return code;
}

static int again_cleanup(struct buf *out, struct arena *a, struct str in)
{
    struct cleanup_row row;
    int code = cleanup_row_read(&row, in, NULL);

    if (code == 0)
        cleanup_row_write(out, &row);
    return code;
}

static int again_gc_state(struct buf *out, struct arena *a, struct str in)
{
    struct gc_state state;
    int code = gc_state_read(&state, &(struct kv_value){in, in}, NULL);

    BUG_ON(code == 0 && state.phase > GC_HELD);
    if (code == 0)
        buf_append_str(out, gc_state_write(a, &state));
    return code;
}

static int again_gc_report(struct buf *out, struct arena *a, struct str in)
{
    struct lake_gc_report report;
    int code = gc_report_read(&report, in, NULL);

    BUG_ON(code == 0 && report.stage > LAKE_GC_FAILED);
    if (code == 0)
        buf_append_str(out, gc_report_write(a, &report));
    return code;
}

static int again_gc_round(struct buf *out, struct arena *a, struct str in)
{
    struct gc_round round;
    int code = gc_round_read(&round, &(struct kv_value){in, in}, NULL);

    if (code == 0)
        gc_round_write(out, &round);
    return code;
}

/* The task of a dump or a restore. */
static int again_refs_task(struct buf *out, struct arena *a, struct str in)
{
    struct lake_refs_task task;
    int code = lake_refs_task_read(&task, in, NULL);

    BUG_ON(code == 0 && task.kind > LAKE_REFS_RESTORE);
    if (code == 0)
        lake_refs_task_write(out, &task);
    return code;
}

static int again_migrate_mark(struct buf *out, struct arena *a, struct str in)
{
    struct migrate_mark mark;
    int code = migrate_mark_read(&mark, &(struct kv_value){in, in}, NULL);

    BUG_ON(code == 0 && mark.stage > MIGRATE_ENDED);
    if (code == 0)
        migrate_mark_write(out, &mark);
    return code;
}

static int again_repo_meta(struct buf *out, struct arena *a, struct str in)
{
    struct str_pairs pairs;
    int code = lake_repo_meta_read(&pairs, a, in, NULL);

    if (code < 0)
        return code;
    BUG_ON(pairs.count > LAKE_METADATA_MAX);
    for (size_t i = 1; i < pairs.count; i++)
        BUG_ON(str_cmp(pairs.pairs[i - 1].key, pairs.pairs[i].key) >= 0);
    lake_repo_meta_write(out, &pairs);
    return 0;
}

typedef int again_fn(struct buf *out, struct arena *a, struct str in);

static again_fn *const kinds[] = {
    again_import,   again_upload,     again_run,          again_hook_run,  again_pull,
    again_gc_rules, again_protection, again_upload_name,  again_dead,      again_claim,
    again_manifest, again_deleted,    again_cleanup,      again_gc_state,  again_gc_report,
    again_gc_round, again_refs_task,  again_migrate_mark, again_repo_meta,
};

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
