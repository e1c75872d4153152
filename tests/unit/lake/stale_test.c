/* Requests that have read the record of a repository that was deleted since: with the old record
 * they find and change nothing, although the rows of its partition may still be there (L8). Each
 * call is made twice: while there is no repository of the name, and when a new one has the name. */
#include "lake/actions_int.h"
#include "lake/gc.h"
#include "lake/import_int.h"
#include "lake/iter.h"
#include "lake/protect.h"
#include "lake/pulls.h"
#include "lake/refs_task.h"
#include "lake/repo_meta.h"
#include "lake/upload.h"
#include "unit/lake/front_lab.h"

/* What a request knows of the repository. */
struct stale {
    struct lake *lake;
    struct arena *a;
    struct lake_repo repo; /* as it was read before it was deleted */
    struct bucket *bucket;
    struct upload_info upload;
    struct lake_upload upload_record;
    struct import_record *import;
    struct str pull, import_id, task, run;
};

/* --- what the repository has --- */

static void stale_fill_rows(struct stale *s)
{
    struct lake_import_path path = {.source = STR("s3://" LAKE_LAB_BUCKET "/elsewhere/"),
                                    .destination = STR("in/")};
    struct lake_import_options import = {
        .branch = STR("main"), .paths = &path, .count = 1, .user = STR(LAKE_LAB_OWNER)};
    struct lake_pull pull = {
        .title = STR("title"), .source = STR("dev"), .destination = STR("main")};
    struct lake_refs_task dump = {.kind = LAKE_REFS_DUMP};
    struct err err = {0};

    CHECK_OK(lake_pull_create(s->lake, s->a, &s->repo, &pull, &pull, &err));
    s->pull = pull.id;
    CHECK_OK(lake_import_start(s->lake, s->a, &s->repo, &import, &s->import_id, &err));
    CHECK_OK(import_record_load(s->lake, s->a, &s->repo, s->import_id, &s->import, &err));
    CHECK_OK(lake_refs_task_start(s->lake, s->a, &s->repo, &dump, &s->task, &err));
}

static void stale_fill_settings(struct stale *s)
{
    struct lake_protection_rule rule = {STR("safe"), LAKE_PROTECT_STAGING};
    struct lake_protection rules = {.rules = &rule, .count = 1};
    struct str_pair pair = {STR("key"), STR("value")};
    struct str_pairs pairs = {&pair, 1};
    struct lake_gc_report report;
    struct err err = {0};

    CHECK_OK(lake_gc_rules_set(s->lake, s->a, &s->repo, &(struct lake_gc_rules){.default_days = 1},
                               &err));
    CHECK_OK(lake_gc_ask(s->lake, s->a, &s->repo, true, &report, &err));
    CHECK_OK(lake_repo_meta_change(s->lake, s->a, &s->repo, &pairs, NULL, 0, &err));
    CHECK_OK(lake_protection_set(s->lake, s->a, &s->repo, &rules, NULL, &err));
}

static void stale_fill_run(struct stale *s)
{
    struct action_call call = {.lake = s->lake, .arena = s->a, .repo = &s->repo};
    struct lake_run run = {.id = STR("run"), .event = STR("pre-commit")};
    struct lake_hook_run hook = {.run = run.id, .id = STR("hook")};
    struct err err = {0};

    CHECK_OK(action_put_run(&call, &run, &err));
    CHECK_OK(action_put_hook_run(&call, &hook, &err));
    s->run = run.id;
}

static void stale_fill_upload(struct stale *s, struct front_lab *f)
{
    struct object_meta meta = {.owner = STR(LAKE_LAB_OWNER)};
    struct err err = {0};

    s->bucket = front_lab_bucket(f);
    CHECK_OK(s->bucket->ops->set_document(s->bucket, "policy", STR("{}"), &err));
    s->upload.key = STR("main/k");
    CHECK_OK(
        s->bucket->ops->upload_begin(s->bucket, s->a, s->upload.key, &meta, &s->upload.id, &err));
    CHECK_OK(
        lake_upload_read(&s->upload_record, lake_bucket_of(s->bucket), s->a, &s->upload, &err));
}

static struct stale stale_open(struct front_lab *f)
{
    struct stale s = {.lake = f->lake.lake, .a = &f->lake.arena, .repo = f->lake.repo};

    front_lab_branch(f, "dev", false);
    front_lab_tag(f, "v1", "main");
    stale_fill_rows(&s);
    stale_fill_settings(&s);
    stale_fill_run(&s);
    stale_fill_upload(&s, f);
    return s;
}

static void stale_delete(struct stale *s)
{
    struct err err = {0};

    CHECK_OK(lake_repo_delete(s->lake, s->a, s->repo.id, false, false, &err));
}

static void stale_make_again(struct stale *s)
{
    struct lake_repo_options o = {.id = s->repo.id,
                                  .owner = STR(LAKE_LAB_OWNER),
                                  .space = STR("s3://" LAKE_LAB_BUCKET "/again")};
    struct lake_repo repo;
    struct err err = {0};

    CHECK_OK(lake_repo_create(s->lake, s->a, &o, &repo, &err));
}

/* --- reads of rows --- */

static int read_tag(struct stale *s, struct err *err)
{
    struct lake_tag tag;

    return lake_tag_get(s->lake, s->a, &s->repo, STR("v1"), &tag, err);
}

static int read_pull(struct stale *s, struct err *err)
{
    struct lake_pull pull;

    return lake_pull_get(s->lake, s->a, &s->repo, s->pull, &pull, err);
}

static int read_import(struct stale *s, struct err *err)
{
    struct lake_import_status status;

    return lake_import_get(s->lake, s->a, &s->repo, s->import_id, &status, err);
}

static int read_task(struct stale *s, struct err *err)
{
    struct lake_refs_task task;

    return lake_refs_task_get(s->lake, s->a, &s->repo, LAKE_REFS_DUMP, s->task, &task, err);
}

static int read_protection(struct stale *s, struct err *err)
{
    struct lake_protection rules;

    return lake_protection_get(s->lake, s->a, &s->repo, &rules, err);
}

static int read_gc_rules(struct stale *s, struct err *err)
{
    struct lake_gc_rules rules;

    return lake_gc_rules_get(s->lake, s->a, &s->repo, &rules, err);
}

static int read_gc_report(struct stale *s, struct err *err)
{
    struct lake_gc_report report;

    return lake_gc_report(s->lake, s->a, &s->repo, &report, err);
}

static int read_meta(struct stale *s, struct err *err)
{
    struct str_pairs pairs;

    return lake_repo_meta_get(s->lake, s->a, &s->repo, &pairs, err);
}

static int read_run(struct stale *s, struct err *err)
{
    struct lake_run run;

    return lake_run_get(s->lake, s->a, &s->repo, s->run, &run, err);
}

static int read_hook_run(struct stale *s, struct err *err)
{
    struct lake_hook_run hook;

    return lake_hook_run_get(s->lake, s->a, &s->repo, s->run, STR("hook"), &hook, err);
}

static int read_upload(struct stale *s, struct err *err)
{
    struct lake_upload upload;

    return lake_upload_read(&upload, lake_bucket_of(s->bucket), s->a, &s->upload, err);
}

/* The document was set through this bucket, so it is read from the store. */
static int read_document(struct stale *s, struct err *err)
{
    struct str document;

    return s->bucket->ops->get_document(s->bucket, s->a, "policy", &document, err);
}

static int read_documents(struct stale *s, struct err *err)
{
    struct lake_bucket *b = lake_bucket_of(s->bucket);

    b->repo.documents = 1;
    return lake_documents_read(b, err);
}

/* --- pages --- */

static const struct lake_page whole_page = {.limit = LAKE_LIST_MAX};

static int list_branches(struct stale *s, struct err *err)
{
    struct lake_branch *items;
    size_t count;
    bool more;

    return lake_branch_list(s->lake, s->a, &s->repo, &whole_page, true, &items, &count, &more, err);
}

static int list_tags(struct stale *s, struct err *err)
{
    struct lake_tag *items;
    size_t count;
    bool more;

    return lake_tag_list(s->lake, s->a, &s->repo, &whole_page, &items, &count, &more, err);
}

static int list_pulls(struct stale *s, struct err *err)
{
    struct lake_pull *items;
    size_t count;
    bool more;

    return lake_pull_list(s->lake, s->a, &s->repo, &whole_page, ~0u, &items, &count, &more, err);
}

static int list_runs(struct stale *s, struct err *err)
{
    struct lake_run_filter all = {0};
    struct lake_run *items;
    size_t count;
    bool more;

    return lake_run_list(s->lake, s->a, &s->repo, &whole_page, &all, &items, &count, &more, err);
}

static int list_hook_runs(struct stale *s, struct err *err)
{
    struct lake_hook_run *items;
    size_t count;
    bool more;

    return lake_hook_run_list(s->lake, s->a, &s->repo, s->run, &whole_page, &items, &count, &more,
                              err);
}

static int list_uploads(struct stale *s, struct err *err)
{
    struct list_options o = {.limit = 10};
    struct upload_list list;

    return s->bucket->ops->list_uploads(s->bucket, s->a, &o, &list, err);
}

static int list_refs(struct stale *s, struct err *err)
{
    struct list_options o = {.limit = 10, .delimiter = STR("/")};
    struct list_result list;

    return s->bucket->ops->list(s->bucket, s->a, &o, &list, err);
}

/* --- iterators --- */

static int walk(int code, struct lake_iter *it, struct err *err)
{
    struct lake_item item;

    while (code == 0)
        code = lake_iter_next(it, &item, err);
    lake_iter_free(it);
    return code;
}

static int walk_branches(struct stale *s, struct err *err)
{
    struct lake_iter *it = NULL;
    int code = lake_iter_branches(&it, s->lake, &s->repo, true, err);

    return walk(code, it, err);
}

static int walk_heads(struct stale *s, struct err *err)
{
    struct lake_iter *it = NULL;
    int code = lake_iter_heads(&it, s->lake, &s->repo, err);

    return walk(code, it, err);
}

static int walk_tags(struct stale *s, struct err *err)
{
    struct lake_iter *it = NULL;
    int code = lake_iter_tags(&it, s->lake, &s->repo, err);

    return walk(code, it, err);
}

static int walk_commits(struct stale *s, struct err *err)
{
    struct lake_iter *it = NULL;
    int code = lake_iter_commits(&it, s->lake, &s->repo, false, err);

    return walk(code, it, err);
}

static int walk_leaves(struct stale *s, struct err *err)
{
    struct lake_iter *it = NULL;
    int code = lake_iter_commits(&it, s->lake, &s->repo, true, err);

    return walk(code, it, err);
}

/* --- writes --- */

static int write_import(struct stale *s, struct err *err)
{
    return import_record_save(s->lake, s->a, &s->repo, s->import, err);
}

static int cancel_import(struct stale *s, struct err *err)
{
    return lake_import_cancel(s->lake, s->a, &s->repo, s->import_id, err);
}

static int write_upload(struct stale *s, struct err *err)
{
    return lake_upload_write(&s->upload_record, lake_bucket_of(s->bucket), s->a, false, err);
}

static int abort_upload(struct stale *s, struct err *err)
{
    return s->bucket->ops->upload_abort(s->bucket, &s->upload, err);
}

static const struct stale_call {
    const char *name;
    int (*fn)(struct stale *s, struct err *err);
    int want;
} stale_calls[] = {
    {"a tag", read_tag, ERR_NOT_FOUND},
    {"a pull request", read_pull, ERR_NOT_FOUND},
    {"an import", read_import, ERR_NOT_FOUND},
    {"a task", read_task, ERR_NOT_FOUND},
    {"rules of protection", read_protection, ERR_NOT_FOUND},
    {"rules of collection", read_gc_rules, ERR_NOT_FOUND},
    {"the report of a collection", read_gc_report, ERR_NOT_FOUND},
    {"metadata", read_meta, ERR_NOT_FOUND},
    {"a run of hooks", read_run, ERR_NOT_FOUND},
    {"a hook of a run", read_hook_run, ERR_NOT_FOUND},
    {"an upload", read_upload, ERR_NOT_FOUND},
    {"a document", read_document, ERR_NOT_FOUND},
    {"all documents", read_documents, ERR_NOT_FOUND},
    {"a page of branches", list_branches, ERR_NOT_FOUND},
    {"a page of tags", list_tags, ERR_NOT_FOUND},
    {"a page of pull requests", list_pulls, ERR_NOT_FOUND},
    {"a page of runs", list_runs, ERR_NOT_FOUND},
    {"a page of a run's hooks", list_hook_runs, ERR_NOT_FOUND},
    {"a page of uploads", list_uploads, ERR_NO_BUCKET},
    {"a page of refs", list_refs, ERR_NO_BUCKET},
    {"an iterator over branches", walk_branches, ERR_NOT_FOUND},
    {"an iterator over heads", walk_heads, ERR_NOT_FOUND},
    {"an iterator over tags", walk_tags, ERR_NOT_FOUND},
    {"an iterator over commits", walk_commits, ERR_NOT_FOUND},
    {"an iterator over leaves", walk_leaves, ERR_NOT_FOUND},
    {"the record of an import", write_import, ERR_NOT_FOUND},
    {"the end of an import", cancel_import, ERR_NOT_FOUND},
    {"the record of an upload", write_upload, ERR_NOT_FOUND},
    {"the end of an upload", abort_upload, ERR_NOT_FOUND},
};

static void stale_call_all(struct stale *s, const char *when)
{
    for (size_t i = 0; i < ARRAY_SIZE(stale_calls); i++) {
        const struct stale_call *c = &stale_calls[i];
        struct err err = {0};
        int code = c->fn(s, &err);
        if (code != c->want)
            test_fail(__FILE__, __LINE__, "%s, %s: code %d, '%s'", when, c->name, code, err.text);
    }
}

FRONT_TEST(lake_stale, a_record_that_was_read_before_a_deletion_finds_and_changes_nothing)
{
    struct stale s = stale_open(f);

    stale_delete(&s);
    stale_call_all(&s, "deleted");
    stale_make_again(&s);
    stale_call_all(&s, "made again");
    s.bucket->ops->unref(s.bucket);
}

/* --- deletions in the middle --- */

/* With moments the iterator goes on to show the moment of its opening. Without them rows may
 * already be missing, so the end is refused. */
FRONT_TEST(lake_stale, an_iterator_does_not_end_as_if_a_deleted_repository_had_no_more_rows)
{
    struct stale s = stale_open(f);
    struct lake_iter *it = NULL;
    struct lake_item item;
    struct err err = {0};
    bool has_moments = s.lake->kv->can & KV_MOMENTS;

    CHECK_OK(lake_iter_branches(&it, s.lake, &s.repo, true, &err));
    CHECK_OK(lake_iter_next(it, &item, &err));
    stale_delete(&s);
    CHECK_INT(walk(0, it, &err), has_moments ? ERR_END : ERR_NOT_FOUND);
    s.bucket->ops->unref(s.bucket);
}

static bool delete_once(void *ctx)
{
    struct stale *s = ctx;
    struct lake_repo now;
    struct err err = {0};

    if (lake_repo_get(s->lake, s->a, s->repo.id, &now, &err) == 0)
        stale_delete(s);
    return false;
}

/* The record of the task is in the partition that is about to be removed. */
FRONT_TEST(lake_stale, a_task_of_a_repository_that_is_deleted_meanwhile_writes_no_result)
{
    struct stale s = stale_open(f);
    struct kv_value row;
    struct err err = {0};
    struct kv_name name = lake_key_in(s.a, s.repo.partition, "tasks", s.task);

    CHECK_OK(kv_get(s.lake->kv, NULL, s.a, name, &row, &err));
    struct str before = row.bytes;
    int code = lake_refs_task_work(s.lake, &s.repo, s.task, delete_once, &s, &err);
    CHECK(code == 0 || code == ERR_CANCELED || code == ERR_NOT_FOUND);
    CHECK_OK(kv_get(s.lake->kv, NULL, s.a, name, &row, &err));
    CHECK_STR(row.bytes, before);
    s.bucket->ops->unref(s.bucket);
}

/* --- changes that are no deletion --- */

/* The repository's record counts changes of rules and documents; a row that was read before such a
 * change can be written all the same. */
FRONT_TEST(lake_stale, a_row_is_written_although_the_repository_got_other_rules)
{
    struct stale s = stale_open(f);
    struct lake_protection none = {0};
    struct err err = {0};

    CHECK_OK(lake_protection_set(s.lake, s.a, &s.repo, &none, NULL, &err));
    CHECK_OK(write_import(&s, &err));
    CHECK_OK(write_upload(&s, &err));
    CHECK_OK(abort_upload(&s, &err));
    CHECK_ERR(write_upload(&s, &err), ERR_PRECONDITION);
    s.bucket->ops->unref(s.bucket);
}
