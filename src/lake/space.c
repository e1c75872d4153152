/* The space of the lake: keeps the names of repositories in memory, and serves repositories as
 * buckets. No repository has the name of a bucket (docs/lake-s3.md, S1). */
#include "lake/space.h"

#include "lake/bucket_int.h"
#include "lake/upload.h"
#include "meta/error.h"
#include "store/reload.h"

#include <stdlib.h>

#define SPACE_CHANNEL STR("weir:lake:repositories")

enum {
    SPACE_REFRESH_MS = 30 * MS_PER_S, /* how often names are loaded, in case a message was lost */
    SPACE_SWEEP_MS = MS_PER_HOUR,     /* how often records of finished uploads are removed */
};

static struct lake_space *space_of_storage(struct storage *s)
{
    return container_of(s, struct lake_space, storage);
}

/* --- names --- */

/* Reads the names of all repositories. */
static int space_read_names(struct lake_space *s, struct map *out, struct err *err)
{
    struct lake_page page = {.limit = LAKE_LIST_MAX};
    /* memory of the present page and of the page before it, which has the last name (page.after) */
    struct arena arenas[2] = {{0}, {0}};
    bool more = true;
    int code = 0;

    for (size_t turn = 0; code == 0 && more; turn = !turn) {
        struct lake_repo *repos;
        size_t count = 0;
        arena_reset(&arenas[turn]);
        code = lake_repo_list(s->lake, &arenas[turn], &page, &repos, &count, &more, err);
        for (size_t i = 0; code == 0 && i < count; i++)
            repo_map_add(out, repos[i].id);
        if (code == 0 && count)
            page.after = repos[count - 1].id;
    }
    arena_release(&arenas[0]);
    arena_release(&arenas[1]);
    return code;
}

static int space_load_names(void *ctx, struct err *err)
{
    struct lake_space *s = ctx;
    bool done = false;
    int code = 0;

    while (code == 0 && !done) {
        uint64_t seen = repo_names_changes(&s->names);
        struct map loaded;
        map_init(&loaded);
        code = space_read_names(s, &loaded, err);
        if (code == 0)
            done = repo_names_replace(&s->names, &loaded, seen);
        repo_map_release(&loaded);
    }
    return code;
}

static int space_look_now(void *ctx, struct str name, bool *out, struct err *err)
{
    struct lake_space *s = ctx;
    struct arena a = {0};
    struct lake_repo repo;
    int code = lake_repo_get(s->lake, &a, name, &repo, err);

    *out = code == 0;
    arena_release(&a);
    return code == ERR_NOT_FOUND ? 0 : code;
}

static bool space_has(void *ctx, struct str name)
{
    struct lake_space *s = ctx;

    return repo_names_has(&s->names, name);
}

/* Announces to other processes that the repository was made or deleted. A process that misses the
 * message loads the names again within SPACE_REFRESH_MS. */
static void space_publish(struct lake_space *s, struct str id)
{
    struct arena a = {0};
    struct reply *reply;
    struct err err = {0};

    if (!(s->lake->kv->can & KV_ALONE) &&
        store_call(s->o.store, &a, &reply, &err, STR("PUBLISH"), SPACE_CHANNEL, id) < 0)
        log_warn(s->o.log, "lake.names_not_told", log_s("repository", id),
                 log_z("error", err.text));
    arena_release(&a);
}

/* Called when this process has made or deleted the repository, or may have done so. */
static void space_on_change(void *ctx, struct str id)
{
    struct lake_space *s = ctx;
    struct err err = {0};
    bool there = false, done = false;
    int code = 0;

    generation_begin(&s->generations, id);
    while (code == 0 && !done) {
        uint64_t seen = repo_names_changes(&s->names);
        code = space_look_now(s, id, &there, &err);
        if (code == 0)
            done = repo_names_set(&s->names, id, there, seen);
    }
    generation_end(&s->generations, id);
    if (code < 0)
        reload_or_log(&s->reload);
    space_publish(s, id);
}

/* --- the storage of the space --- */

static int space_create_bucket(struct storage *storage, const struct bucket_info *info,
                               struct err *err)
{
    return err_set(err, ERR_UNSUPPORTED,
                   "a repository is made through the API, with its storage "
                   "namespace");
}

static int space_open_bucket(struct bucket **out, struct storage *storage, struct str user,
                             struct str name, struct err *err)
{
    return lake_bucket_open(out, space_of_storage(storage), name, STR_EMPTY, err);
}

int lake_space_open_ref(struct bucket **out, struct lake_space *s, struct str repo, struct str ref,
                        struct err *err)
{
    return lake_bucket_open(out, s, repo, ref, err);
}

/* Lists the repositories of one owner. The records of all repositories are read, because there is
 * no index by owner. */
static int space_list_buckets(struct storage *storage, struct arena *a, struct str owner,
                              struct str after, size_t limit, struct bucket_info **out,
                              size_t *count, struct err *err)
{
    struct lake_space *s = space_of_storage(storage);
    struct lake_page page = {.after = after, .limit = LAKE_LIST_MAX};
    bool more = true;
    int code = 0;

    *out = arena_array(a, limit + 1, sizeof(**out));
    *count = 0;
    if (!*out)
        return err_code(err, ERR_NO_MEMORY);
    while (code == 0 && more && *count < limit) {
        struct lake_repo *repos;
        size_t n = 0;
        code = lake_repo_list(s->lake, a, &page, &repos, &n, &more, err);
        for (size_t i = 0; code == 0 && i < n && *count < limit; i++)
            if (owner.len == 0 || str_eq(repos[i].owner, owner))
                (*out)[(*count)++] = (struct bucket_info){.name = repos[i].id,
                                                          .owner = repos[i].owner,
                                                          .created_ms = repos[i].created_ms};
        if (code == 0 && n)
            page.after = repos[n - 1].id;
    }
    return code;
}

/* --- DeleteBucket --- */

static int space_not_empty(struct str id, const char *why, struct err *err)
{
    return err_set(err, S3_BUCKET_NOT_EMPTY,
                   "The repository " STR_FMT " %s. Delete it through the API or with 'weir lake "
                   "repo delete'.",
                   STR_ARG(id), why);
}

/* Checks that no branch has an object, committed or not. */
static int space_check_branches(struct lake_space *s, struct arena *a, const struct lake_repo *r,
                                struct err *err)
{
    struct lake_page page = {.limit = LAKE_LIST_MAX};
    struct lake_list_options one = {.limit = 1};
    struct lake_branch *branches;
    struct lake_objects objects;
    size_t count = 0;
    bool more = true;
    int code = 0;

    while (code == 0 && more) {
        code = lake_branch_list(s->lake, a, r, &page, true, &branches, &count, &more, err);
        for (size_t i = 0; code == 0 && i < count; i++) {
            code = lake_list(s->lake, a, r, branches[i].id, &one, &objects, err);
            if (code == 0 && objects.count)
                code = space_not_empty(r->id, "has objects", err);
        }
        if (code == 0 && count)
            page.after = branches[count - 1].id;
    }
    return code;
}

/* Checks that the repository has only its first commit. */
static int space_check_commits(struct lake_space *s, struct arena *a, const struct lake_repo *r,
                               struct err *err)
{
    struct lake_page page = {.limit = 2};
    struct kv_scan *scan = NULL;
    struct str key, value;
    int code = lake_rows_open(&scan, s->lake, NULL, a, r->partition, "commits", &page, err);

    for (int n = 0; code == 0 && n < 2; n++)
        code = kv_scan_next(scan, &key, &value, err);
    kv_scan_free(scan);
    if (code == 0)
        return space_not_empty(r->id, "has commits", err);
    return code == ERR_END ? 0 : code;
}

/* Deletes a repository if it is empty: no branch has an object, and its only commit is the first
 * one. */
static int space_remove_bucket(struct storage *storage, struct str user, struct str name,
                               struct err *err)
{
    struct lake_space *s = space_of_storage(storage);
    struct arena a = {0};
    struct lake_repo r;
    int code = lake_repo_get(s->lake, &a, name, &r, err);

    if (code == ERR_NOT_FOUND)
        code = err_code(err, ERR_NO_BUCKET);
    if (code == 0)
        code = space_check_commits(s, &a, &r, err);
    if (code == 0)
        code = space_check_branches(s, &a, &r, err);
    if (code == 0)
        code = lake_repo_delete(s->lake, &a, name, false, false, err);
    if (code == ERR_DENIED)
        code = err_set(err, S3_ACCESS_DENIED, "The repository is read-only.");
    arena_release(&a);
    return code;
}

static int space_check_ready(struct storage *storage, struct err *err)
{
    return kv_probe(space_of_storage(storage)->lake->kv, err);
}

static const struct storage_ops space_storage_ops = {
    .kind = "lake",
    .can = STORAGE_NULL_VERSION,
    .create_bucket = space_create_bucket,
    .remove_bucket = space_remove_bucket,
    .open_bucket = space_open_bucket,
    .list_buckets = space_list_buckets,
    .check = space_check_ready,
};

/* --- opening and closing --- */

/* Loads the names again, in case a message was lost, and removes old records. */
static struct loop_sleep space_step(void *ctx)
{
    struct lake_space *s = ctx;
    uint64_t now = clock_mono_ms();
    bool alone = s->lake->kv->can & KV_ALONE;

    if (!alone)
        reload_or_log(&s->reload);
    if (now - s->swept_ms >= SPACE_SWEEP_MS) {
        s->swept_ms = now;
        lake_uploads_sweep(s);
    }
    return loop_sleep_ms(alone ? SPACE_SWEEP_MS : SPACE_REFRESH_MS);
}

static int space_start(struct lake_space *s, struct err *err)
{
    struct reload_options reload = {.store = s->o.store,
                                    .channel = SPACE_CHANNEL,
                                    .load = space_load_names,
                                    .ctx = s,
                                    .log = s->o.log,
                                    .failed = "lake.names_not_loaded",
                                    .done = "lake.names_loaded"};
    struct loop_options loop = {.name = "lake-names",
                                .step = space_step,
                                .ctx = s,
                                .first = loop_sleep_ms(SPACE_REFRESH_MS)};
    int code = reload_open(&s->reload, &reload, err);

    return code < 0 ? code : loop_start(&s->loop, &loop, err);
}

int lake_space_open(struct lake_space **out, const struct lake_space_options *o, struct err *err)
{
    struct lake_space *s = xzalloc(sizeof(*s));
    bool alone = o->lake->kv->can & KV_ALONE;

    s->o = *o;
    s->lake = o->lake;
    /* If other processes can change a bucket's documents, this process cannot know whether they
     * have changed. */
    s->storage = (struct storage){.ops = &space_storage_ops,
                                  .name = STR("lake"),
                                  .generations = alone ? &s->generations : NULL};
    s->space = (struct bucket_space){.kind = "lake",
                                     .storage = &s->storage,
                                     .key_max = LAKE_KEY_MAX,
                                     .has = space_has,
                                     .look = alone ? NULL : space_look_now,
                                     .ctx = s};
    repo_names_init(&s->names);
    generations_init(&s->generations);
    s->swept_ms = clock_mono_ms();
    lake_watch_repos(o->lake, space_on_change, s);
    int code = space_start(s, err);
    if (code < 0) {
        lake_space_close(s);
        return code;
    }
    *out = s;
    return 0;
}

void lake_space_close(struct lake_space *s)
{
    if (!s)
        return;
    lake_watch_repos(s->lake, NULL, NULL);
    loop_stop(&s->loop);
    reload_close(&s->reload);
    repo_names_release(&s->names);
    free(s);
}

const struct bucket_space *lake_space_buckets(struct lake_space *s)
{
    return &s->space;
}
