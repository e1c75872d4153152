/* A lake with its space for tests. */
#include "unit/lake/front_lab.h"

#include "meta/error.h"
#include "object/overlay.h"

static struct front_lab *front_of(struct storage *s)
{
    return container_of(s, struct front_lab, refs);
}

static struct storage *front_storage(struct storage *s)
{
    return lake_space_buckets(front_of(s)->space)->storage;
}

/* --- a storage of branches --- */

static int refs_create(struct storage *s, const struct bucket_info *info, struct err *err)
{
    struct front_lab *f = front_of(s);
    struct arena *a = &f->lake.arena;
    struct lake_repo_options o = {
        .id = info->name,
        .owner = info->owner,
        .space = arena_fmt(a, "s3://" LAKE_LAB_BUCKET "/" STR_FMT, STR_ARG(info->name))};
    struct lake_repo repo;

    return lake_repo_create(f->lake.lake, a, &o, &repo, err);
}

static int refs_remove(struct storage *s, struct str user, struct str name, struct err *err)
{
    struct storage *own = front_storage(s);
    int code = own->ops->remove_bucket(own, user, name, err);

    return code == S3_BUCKET_NOT_EMPTY ? ERR_CONFLICT : code;
}

static int refs_open(struct bucket **out, struct storage *s, struct str user, struct str name,
                     struct err *err)
{
    return lake_space_open_ref(out, front_of(s)->space, name, STR("main"), err);
}

static int refs_list(struct storage *s, struct arena *a, struct str owner, struct str after,
                     size_t limit, struct bucket_info **out, size_t *count, struct err *err)
{
    struct storage *own = front_storage(s);

    return own->ops->list_buckets(own, a, owner, after, limit, out, count, err);
}

static int refs_check(struct storage *s, struct err *err)
{
    struct storage *own = front_storage(s);

    return own->ops->check(own, err);
}

static const struct storage_ops refs_ops = {
    .kind = "refs",
    .can = STORAGE_NULL_VERSION,
    .create_bucket = refs_create,
    .remove_bucket = refs_remove,
    .open_bucket = refs_open,
    .list_buckets = refs_list,
    .check = refs_check,
};

/* --- the lab --- */

void front_lab_open(struct front_lab *f, struct kv_lab *kv_lab)
{
    struct err err = {0};

    *f = (struct front_lab){.refs = {.ops = &refs_ops, .name = STR("refs")}};
    lake_lab_open(&f->lake, kv_lab, LAKE_LAB_STORAGE);
    struct lake_space_options o = {.lake = f->lake.lake, .store = f->lake.config};
    CHECK_OK(lake_space_open(&f->space, &o, &err));
    CHECK_OK(routes_add_space(f->lake.routes, lake_space_buckets(f->space), &err));
}

void front_lab_close(struct front_lab *f)
{
    lake_space_close(f->space);
    lake_lab_close(&f->lake);
}

struct bucket *front_lab_bucket(struct front_lab *f)
{
    struct storage *s = lake_space_buckets(f->space)->storage;
    struct bucket *b = NULL;
    struct err err = {0};

    CHECK_OK(storage_open_bucket(&b, s, STR_EMPTY, STR("repo"), &err));
    return b;
}

void front_lab_branch(struct front_lab *f, const char *name, bool hidden)
{
    struct lake_branch_options o = {.name = str_z(name), .source = STR("main"), .hidden = hidden};
    struct lake_branch branch;
    struct err err = {0};

    CHECK_OK(lake_branch_create(f->lake.lake, &f->lake.arena, &f->lake.repo, &o, &branch, &err));
}

void front_lab_tag(struct front_lab *f, const char *name, const char *ref)
{
    struct lake_tag tag;
    struct err err = {0};

    CHECK_OK(lake_tag_create(f->lake.lake, &f->lake.arena, &f->lake.repo, str_z(name), str_z(ref),
                             false, &tag, &err));
}

void front_lab_commit(struct front_lab *f, const char *branch)
{
    struct lake_commit_options o = {.message = STR("m"), .committer = STR("c")};
    struct lake_commit commit;
    struct err err = {0};

    CHECK_OK(
        lake_commit(f->lake.lake, &f->lake.arena, &f->lake.repo, str_z(branch), &o, &commit, &err));
}
