/* A lake with real bodies for tests of the collector. */
#include "unit/lake/gc_lab.h"

#include "base/clock.h"
#include "base/ids.h"
#include "lake/files.h"
#include "lake/names.h"
#include "lake/place.h"

void gc_lab_run(struct kv_lab *kv_lab, enum lake_lab_nodes nodes, void (*fn)(struct lake_lab *lab))
{
    struct lake_lab lab;

    lake_lab_open(&lab, kv_lab, nodes);
    lab.lake->o.folder = test_dir();
    lab.lake->o.gc_grace_ms = 1;
    fn(&lab);
    lake_lab_close(&lab);
}

/* --- files --- */

void gc_lab_put_file(struct hand *h, struct str key, struct str content)
{
    struct object_place p;
    struct err err = {0};

    CHECK_OK(lake_place_open_below(&p, h->lake, &h->arena, &h->repo, key, PLACE_PUT, &err));
    CHECK_OK(object_place_end(&p, object_place_put(&p, content, NULL, &err), &err));
}

void gc_lab_put_foreign(struct hand *h, struct str key, struct str content)
{
    struct str bucket, prefix;
    struct object_place p;
    struct err err = {0};

    CHECK_OK(lake_check_space(h->repo.space, &bucket, &prefix, &err));
    if (prefix.len)
        key = arena_fmt(&h->arena, STR_FMT "/" STR_FMT, STR_ARG(prefix), STR_ARG(key));
    CHECK_OK(lake_place_open(&p, h->lake, &h->arena, h->repo.owner, bucket, key, PLACE_PUT, &err));
    CHECK_OK(object_place_end(&p, object_place_put(&p, content, NULL, &err), &err));
}

static int lab_read_file(struct hand *h, struct str key, struct buf *out)
{
    struct arena a = {0};
    struct object_place p;
    struct err err = {0};
    int code = lake_place_open_below(&p, h->lake, &a, &h->repo, key, PLACE_READ, &err);

    CHECK_OK(code);
    code = object_place_end(&p, object_place_read(&p, out, NULL, &err), &err);
    arena_release(&a);
    return code;
}

bool gc_lab_has_file(struct hand *h, struct str key)
{
    struct buf bytes = {0};
    int code = lab_read_file(h, key, &bytes);

    CHECK(code == 0 || code == ERR_NOT_FOUND);
    buf_release(&bytes);
    return code == 0;
}

size_t gc_lab_count_files(struct hand *h, const char *folder)
{
    struct str after = STR_EMPTY;
    struct lake_files files;
    struct err err = {0};
    size_t count = 0;

    do {
        CHECK_OK(lake_files_list(h->lake, &h->arena, &h->repo, str_z(folder), after, &files, &err));
        count += files.count;
        after = files.next;
    } while (files.more);
    return count;
}

/* --- writing --- */

int gc_lab_stage(struct hand *h, const char *branch, const char *path, const struct lake_entry *e,
                 const struct lake_keep *keep)
{
    struct lake_stage_options o = {.keep = keep};
    struct lake_put put = {str_z(path), e};

    h->err = (struct err){0};
    return lake_stage(h->lake, &h->arena, &h->repo, str_z(branch), &put, 1, &o, &h->err);
}

struct lake_entry gc_lab_put(struct hand *h, const char *branch, const char *path,
                             const char *content)
{
    char id[ID_TIME_LEN + 1];
    struct lake_entry e = hand_entry(h, content);

    id_time(id);
    e.address = arena_fmt(&h->arena, "data/hour/%s", id);
    gc_lab_put_file(h, e.address, str_z(content));
    CHECK_INT(gc_lab_stage(h, branch, path, &e, NULL), 0);
    return e;
}

struct str gc_lab_commit(struct hand *h, const char *branch, const char *message, int64_t days)
{
    struct lake_commit_options o = {.message = str_z(message),
                                    .committer = STR("tester"),
                                    .created_ms = clock_wall_ms() - days * MS_PER_DAY};
    struct lake_commit c;
    struct err err = {0};

    CHECK_OK(lake_commit(h->lake, &h->arena, &h->repo, str_z(branch), &o, &c, &err));
    return c.id;
}

void gc_lab_rules(struct hand *h, uint32_t default_days)
{
    struct err err = {0};

    CHECK_OK(lake_gc_rules_set(h->lake, &h->arena, &h->repo,
                               &(struct lake_gc_rules){.default_days = default_days}, &err));
}

/* --- collecting --- */

int gc_lab_try_collect(struct hand *h, struct lake_gc_report *out)
{
    struct err err = {0};
    int code = lake_gc_work(h->lake, &h->repo, NULL, NULL, &err);

    if (code < 0)
        return code;
    return lake_gc_report(h->lake, &h->arena, &h->repo, out, &err);
}

struct lake_gc_report gc_lab_collect(struct hand *h, bool mark_only)
{
    int64_t since = clock_wall_ms();
    struct lake_gc_report report;
    struct err err = {0};

    CHECK_SOON(clock_wall_ms() > since + 5); /* files are compared with the grace of 1 ms */
    CHECK_OK(lake_gc_ask(h->lake, &h->arena, &h->repo, mark_only, &report, &err));
    CHECK_OK(gc_lab_try_collect(h, &report));
    CHECK_INT(report.stage, LAKE_GC_DONE);
    return report;
}

/* --- reading --- */

static void lab_read_object(struct hand *h, const struct lake_object *o)
{
    struct buf bytes = {0};

    CHECK_INT(lab_read_file(h, o->entry.address, &bytes), 0);
    CHECK_STR(buf_str(&bytes), o->entry.etag);
    buf_release(&bytes);
}

size_t gc_lab_read_all(struct hand *h, struct str ref)
{
    struct lake_list_options o = {.limit = LAKE_LIST_MAX};
    struct lake_objects page;
    struct err err = {0};

    CHECK_OK(lake_list(h->lake, &h->arena, &h->repo, ref, &o, &page, &err));
    CHECK(!page.more);
    for (size_t i = 0; i < page.count; i++)
        lab_read_object(h, &page.items[i]);
    return page.count;
}

void gc_lab_read_refs(struct hand *h)
{
    struct lake_page page = {.limit = LAKE_LIST_MAX};
    struct lake_branch *branches;
    struct lake_tag *tags;
    struct err err = {0};
    size_t count;
    bool more;

    CHECK_OK(lake_branch_list(h->lake, &h->arena, &h->repo, &page, true, &branches, &count, &more,
                              &err));
    for (size_t i = 0; i < count; i++)
        gc_lab_read_all(h, branches[i].id);
    CHECK_OK(lake_tag_list(h->lake, &h->arena, &h->repo, &page, &tags, &count, &more, &err));
    for (size_t i = 0; i < count; i++)
        gc_lab_read_all(h, tags[i].id);
}
