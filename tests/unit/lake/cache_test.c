/* The caches of trees: bounds, one download for all, and damage on disk. */
#include "unit/lake/tree_world.h"

#include "os/file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 8, FOLDER_MAX = 400 };

static void cache_world(struct world *w, size_t memory, const char *folder, uint64_t disk)
{
    struct tree_cache_options o = {.memory_bytes = memory, .folder = folder, .disk_bytes = disk};

    world_open_with(w, &o);
    w->store.place.is_far = folder != NULL;
    w->store.leaf_bytes = 600;
    w->store.index_bytes = 500;
}

/* Opens another cache over the same files. */
static void cache_reopen(struct world *w, size_t memory, const char *folder, uint64_t disk)
{
    struct tree_cache_options o = {.memory_bytes = memory, .folder = folder, .disk_bytes = disk};
    struct err err = {0};

    tree_cache_close(w->cache);
    CHECK_OK(tree_cache_open(&w->cache, &o, &err));
    w->store.cache = w->cache;
    w->reads = 0;
}

static void cache_set(struct world *w, struct set *s, struct tree_result *r)
{
    uint64_t state = 2;

    set_random(s, &state, 100);
    set_build(w, s, r);
}

TEST(lake_cache, memory_stays_within_its_bound)
{
    enum { BOUND = 20000 };
    struct tree_cache_stats stats;
    struct tree_result r;
    struct set s;
    struct world w;

    cache_world(&w, BOUND, NULL, 0);
    cache_set(&w, &s, &r);
    set_check(&w, str_z(r.root), &s);
    tree_cache_stats(w.cache, &stats);
    CHECK(stats.memory_bytes <= BOUND);
    CHECK(stats.memory_bytes > BOUND / 2);
    CHECK(stats.evicted > 0 && stats.hits > 0 && stats.misses > 0);
    world_close(&w);
}

TEST(lake_cache, a_cache_without_memory_still_reads)
{
    struct tree_result r;
    struct set s;
    struct world w;

    cache_world(&w, 0, NULL, 0);
    cache_set(&w, &s, &r);
    set_check(&w, str_z(r.root), &s);
    world_close(&w);
}

TEST(lake_cache, a_block_of_a_leaf_is_cached_when_it_is_asked_for_again)
{
    struct tree_cache_stats stats;
    struct tree_record record;
    struct tree_result r;
    struct arena a = ARENA_INIT(1 << 16);
    struct set s;
    struct world w;
    struct err err = {0};
    uint64_t misses[4];
    char room[64];

    cache_world(&w, 1 << 20, NULL, 0);
    cache_set(&w, &s, &r);
    cache_reopen(&w, 1 << 20, NULL, 0);
    for (size_t i = 0; i < ARRAY_SIZE(misses); i++) {
        CHECK_OK(tree_get(&w.store, &a, str_z(r.root), set_key(room, 77), &record, &err));
        tree_cache_stats(w.cache, &stats);
        misses[i] = stats.misses;
    }
    CHECK_INT(misses[1], misses[0] + 1); /* now the block is cached */
    CHECK_INT(misses[2], misses[1]);
    CHECK_INT(misses[3], misses[1]);
    arena_release(&a);
    world_close(&w);
}

struct getter {
    struct world *w;
    const char *root;
    struct thread thread;
    int code;
};

static void getter_run(void *ctx)
{
    struct getter *g = ctx;
    struct arena a = ARENA_INIT(1 << 16);
    struct tree_record record;
    struct err err = {0};
    char room[64];

    g->code = tree_get(&g->w->store, &a, str_z(g->root), set_key(room, 77), &record, &err);
    arena_release(&a);
}

static void run_getters(struct world *w, const char *root, int want)
{
    struct getter getters[THREADS];
    struct err err = {0};

    for (int i = 0; i < THREADS; i++) {
        getters[i] = (struct getter){.w = w, .root = root};
        CHECK_OK(thread_start(&getters[i].thread, "getter", 0, getter_run, &getters[i], &err));
    }
    for (int i = 0; i < THREADS; i++) {
        thread_join(&getters[i].thread);
        CHECK_INT(getters[i].code, want);
    }
}

TEST(lake_cache, a_node_is_read_once_for_all_who_wait_and_an_error_is_not_kept)
{
    struct tree_result r;
    struct tree_stats stats;
    struct set s;
    struct world w;
    struct err err = {0};

    cache_world(&w, 1 << 20, NULL, 0);
    cache_set(&w, &s, &r);
    CHECK_OK(tree_stats(&w.store, str_z(r.root), &stats, &err));
    cache_reopen(&w, 1 << 20, NULL, 0);
    w.delay_ms = 30;
    run_getters(&w, r.root, 0);
    CHECK_INT(w.reads, stats.height);
    cache_reopen(&w, 1 << 20, NULL, 0);
    struct world_file *root = map_remove(&w.files, str_z(r.root));
    run_getters(&w, r.root, ERR_CORRUPT);
    map_put(&w.files, str_z(root->id), root);
    run_getters(&w, r.root, 0);
    world_close(&w);
}

TEST(lake_cache, who_waits_gets_a_node_that_is_dropped_as_soon_as_it_is_there)
{
    enum { ROUNDS = 20 };
    struct tree_cache_stats stats;
    struct tree_result r;
    struct set s;
    struct world w;

    cache_world(&w, 0, NULL, 0);
    cache_set(&w, &s, &r);
    w.delay_ms = 5;
    for (int i = 0; i < ROUNDS; i++)
        run_getters(&w, r.root, 0);
    tree_cache_stats(w.cache, &stats);
    CHECK_INT(stats.memory_bytes, 0);
    world_close(&w);
}

/* A place whose readers look up the path meanwhile, without waiting. */
struct impatient {
    struct node_place real;
    struct tree_store now;
    const char *root;
    unsigned asked;
};

/* Looks up a path without waiting. */
static int impatient_get(struct impatient *p)
{
    struct arena a = ARENA_INIT(1 << 16);
    struct tree_record record;
    struct err err = {0};
    char room[64];
    int code = tree_get(&p->now, &a, str_z(p->root), set_key(room, 77), &record, &err);

    arena_release(&a);
    return code;
}

/* Reads a node. Who waited for it here would wait for ever. */
static int impatient_read(void *ctx, struct str id, struct buf *out, struct err *err)
{
    struct impatient *p = ctx;

    CHECK_INT(impatient_get(p), ERR_AGAIN);
    p->asked++;
    return p->real.read(p->real.ctx, id, out, err);
}

TEST(lake_cache, who_must_not_wait_gets_what_is_in_memory_and_reads_nothing)
{
    struct tree_stats stats;
    struct tree_result r;
    struct set s;
    struct world w;
    struct err err = {0};

    cache_world(&w, 1 << 20, NULL, 0);
    cache_set(&w, &s, &r);
    CHECK_OK(tree_stats(&w.store, str_z(r.root), &stats, &err));
    cache_reopen(&w, 1 << 20, NULL, 0);
    struct impatient p = {.real = w.store.place, .now = w.store, .root = r.root};
    p.now.now = true;
    CHECK_INT(impatient_get(&p), ERR_AGAIN);
    CHECK_INT(w.reads, 0);
    w.store.place = (struct node_place){.read = impatient_read, .ctx = &p};
    struct getter waits = {.w = &w, .root = r.root};
    getter_run(&waits);
    CHECK_INT(waits.code, 0);
    CHECK_INT(p.asked, stats.height);
    CHECK_INT(impatient_get(&p), 0);
    CHECK_INT(w.reads, stats.height);
    w.store.place = p.real;
    world_close(&w);
}

TEST(lake_cache, nodes_of_a_far_place_are_on_disk_after_a_restart)
{
    char folder[FOLDER_MAX];
    struct tree_result r;
    struct set s;
    struct world w;

    snprintf(folder, sizeof(folder), "%s/nodes", test_dir());
    cache_world(&w, 1 << 20, folder, 1 << 20);
    cache_set(&w, &s, &r);
    cache_reopen(&w, 1 << 20, folder, 1 << 20);
    set_check(&w, str_z(r.root), &s);
    CHECK_INT(w.reads, 0); /* what was written is there too */
    cache_reopen(&w, 0, folder, 1 << 20);
    set_check(&w, str_z(r.root), &s);
    CHECK_INT(w.reads, 0);
    world_close(&w);
}

/* Calls `fn` for the path of each file in the folder. */
static unsigned each_file(const char *folder, void (*fn)(const char *path))
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    unsigned count = 0;
    char path[FOLDER_MAX + 300];

    CHECK(dir);
    while ((entry = readdir(dir)))
        if (entry->d_name[0] != '.') {
            snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
            if (fn)
                fn(path);
            count++;
        }
    closedir(dir);
    return count;
}

static void damage_file(const char *path)
{
    struct buf bytes = {0};
    struct err err = {0};

    CHECK_OK(file_read(path, &bytes, &err));
    bytes.p[bytes.len / 2] ^= 1;
    CHECK_OK(file_write_durable(path, buf_str(&bytes), 0600, &err));
    buf_release(&bytes);
}

TEST(lake_cache, damaged_files_on_disk_are_read_again_from_the_place)
{
    char folder[FOLDER_MAX];
    struct tree_result r;
    struct set s;
    struct world w;

    snprintf(folder, sizeof(folder), "%s/nodes", test_dir());
    cache_world(&w, 1 << 20, folder, 1 << 20);
    cache_set(&w, &s, &r);
    unsigned files = each_file(folder, damage_file);
    CHECK_INT(files, w.writes);
    cache_reopen(&w, 1 << 20, folder, 1 << 20);
    set_check(&w, str_z(r.root), &s);
    CHECK_INT(w.reads, files);
    cache_reopen(&w, 1 << 20, folder, 1 << 20);
    set_check(&w, str_z(r.root), &s);
    CHECK_INT(w.reads, 0); /* they are whole again */
    world_close(&w);
}

TEST(lake_cache, the_disk_stays_within_its_bound_and_strangers_are_removed)
{
    enum { BOUND = 5000 };
    char folder[FOLDER_MAX], stranger[FOLDER_MAX + 20];
    struct tree_cache_stats stats;
    struct tree_result r;
    struct set s;
    struct world w;
    struct err err = {0};

    snprintf(folder, sizeof(folder), "%s/nodes", test_dir());
    snprintf(stranger, sizeof(stranger), "%s/half.new", folder);
    cache_world(&w, 0, folder, BOUND);
    cache_set(&w, &s, &r);
    set_check(&w, str_z(r.root), &s);
    tree_cache_stats(w.cache, &stats);
    CHECK(stats.disk_bytes <= BOUND && stats.disk_bytes > BOUND / 2);
    unsigned files = each_file(folder, NULL);
    CHECK_OK(file_write_durable(stranger, STR("x"), 0600, &err));
    cache_reopen(&w, 0, folder, BOUND / 4);
    CHECK(!file_exists(stranger));
    set_check(&w, str_z(r.root), &s);
    CHECK(each_file(folder, NULL) < files);
    world_close(&w);
}
