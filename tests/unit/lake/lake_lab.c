/* A lake for tests. */
#include "unit/lake/lake_lab.h"

#include "base/clock.h"
#include "object/local/local.h"
#include "object/overlay.h"
#include "route/route.h"
#include "store/store.h"
#include "unit/server_db.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { CONFIG_DB = 3, CACHE_BYTES = 8 << 20 };

/* --- nodes in memory --- */

struct lake_lab_node {
    struct buf id, bytes;
};

static void lab_node_free(struct lake_lab_node *n)
{
    if (!n)
        return;
    buf_release(&n->id);
    buf_release(&n->bytes);
    free(n);
}

static int lab_node_read(void *ctx, struct str id, struct buf *out, struct err *err)
{
    struct lake_lab *lab = ctx;

    mutex_lock(&lab->lock);
    struct lake_lab_node *n = map_get(&lab->nodes, id);
    lab->read++;
    int code = lab->fail_read ? lab->fail_read : n ? 0 : ERR_NOT_FOUND;
    if (code == 0)
        buf_append_str(out, buf_str(&n->bytes));
    mutex_unlock(&lab->lock);
    return code < 0 ? err_code(err, code) : buf_error(out);
}

static int lab_node_write(void *ctx, struct str id, struct str bytes, struct err *err)
{
    struct lake_lab *lab = ctx;
    struct lake_lab_node *n = xzalloc(sizeof(*n));

    buf_append_str(&n->id, id);
    buf_append_str(&n->bytes, bytes);
    mutex_lock(&lab->lock);
    int code = lab->fail_write;
    if (code == 0) {
        lab_node_free(map_remove(&lab->nodes, id));
        map_put(&lab->nodes, buf_str(&n->id), n);
        lab->written++;
    }
    mutex_unlock(&lab->lock);
    if (code < 0)
        lab_node_free(n);
    return code < 0 ? err_code(err, code) : 0;
}

static int lab_place(void *ctx, const struct lake_repo *r, struct node_place *out, struct err *err)
{
    *out = (struct node_place){.read = lab_node_read, .write = lab_node_write, .ctx = ctx};
    return 0;
}

void lake_lab_lose_node(struct lake_lab *lab, struct str id)
{
    mutex_lock(&lab->lock);
    lab_node_free(map_remove(&lab->nodes, id));
    mutex_unlock(&lab->lock);
}

size_t lake_lab_node_count(struct lake_lab *lab)
{
    mutex_lock(&lab->lock);
    size_t count = lab->nodes.len;
    mutex_unlock(&lab->lock);
    return count;
}

/* --- a storage --- */

static void lab_open_far(struct lake_lab *lab)
{
    struct err err = {0};
    char folder[256];

    snprintf(folder, sizeof(folder), "%s/far", test_dir());
    CHECK_INT(mkdir(folder, 0700), 0);
    lab->far = remote_lab_start_in(folder);
    lab->storage = remote_lab_take_storage(lab->far);
    CHECK_OK(routes_add_storage(lab->routes, lab->storage, &err));
    CHECK_OK(route_set(lab->routes, STR(LAKE_LAB_OWNER), STR(LAKE_LAB_BUCKET), lab->storage->name,
                       &err));
}

static void lab_open_storage(struct lake_lab *lab, bool far)
{
    struct bucket_info info = {.name = STR(LAKE_LAB_BUCKET), .owner = STR(LAKE_LAB_OWNER)};
    struct err err = {0};
    char folder[256];

    snprintf(folder, sizeof(folder), "%s/objects", test_dir());
    CHECK_OK(server_db_open(&lab->db, test_dir(), &err));
    CHECK_OK(store_open_embedded(&lab->config, lab->db, CONFIG_DB, STORE_DURABLE, NULL, &err));
    CHECK_OK(routes_open(&lab->routes, lab->config, NULL, &err));
    CHECK_OK(routes_open_local(lab->routes,
                               &(struct local_options){.name = "local",
                                                       .folder = folder,
                                                       .db = lab->db,
                                                       .part_min = LAKE_LAB_PART_MIN,
                                                       .reserve_bytes = 1},
                               &err));
    lab->storage = routes_main(lab->routes);
    if (far)
        lab_open_far(lab);
    CHECK_OK(storage_create_bucket(lab->storage, &info, &err));
}

static void lab_close_storage(struct lake_lab *lab)
{
    if (!lab->routes)
        return;
    routes_close(lab->routes);
    if (lab->far)
        remote_lab_stop(lab->far);
    store_close(lab->config);
    db_close(lab->db);
}

/* --- the lake --- */

struct lake *lake_lab_open_on(struct lake_lab *lab, struct kv *kv)
{
    struct lake_options o = {.kv = kv,
                             .routes = lab->routes,
                             .cache = {.memory_bytes = CACHE_BYTES},
                             .drop_again_ms = 1,
                             .writers = 2};
    struct lake *lake = NULL;
    struct err err = {0};

    if (!lab->routes) {
        o.place = lab_place;
        o.place_ctx = lab;
    }
    CHECK_OK(lake_open(&lake, &o, &err));
    return lake;
}

void lake_lab_open(struct lake_lab *lab, struct kv_lab *kv_lab, enum lake_lab_nodes nodes)
{
    *lab = (struct lake_lab){.kv_lab = kv_lab};
    mutex_init(&lab->lock, "lake lab");
    map_init(&lab->nodes);
    if (nodes != LAKE_LAB_MEMORY)
        lab_open_storage(lab, nodes == LAKE_LAB_REMOTE);
    lab->lake = lake_lab_open_on(lab, kv_lab->kv);
    lab->repo = lake_lab_repo(lab, "repo");
}

struct lake *lake_lab_open_second(struct lake_lab *lab, struct kv **kv)
{
    *kv = kv_lab_open_second(lab->kv_lab);
    return lake_lab_open_on(lab, *kv);
}

void lake_lab_close(struct lake_lab *lab)
{
    size_t cursor = 0;
    struct str id;
    void *node;

    lake_close(lab->lake);
    while (map_next(&lab->nodes, &cursor, &id, &node)) {
        map_remove(&lab->nodes, id);
        lab_node_free(node);
    }
    map_release(&lab->nodes);
    mutex_release(&lab->lock);
    lab_close_storage(lab);
    arena_release(&lab->arena);
}

void lake_lab_run(struct kv_lab *kv_lab, void (*fn)(struct lake_lab *lab))
{
    struct lake_lab lab;

    lake_lab_open(&lab, kv_lab, LAKE_LAB_MEMORY);
    fn(&lab);
    lake_lab_close(&lab);
}

struct lake_repo lake_lab_repo(struct lake_lab *lab, const char *name)
{
    struct lake_repo_options o = {.id = str_z(name),
                                  .owner = STR(LAKE_LAB_OWNER),
                                  .space =
                                      arena_fmt(&lab->arena, "s3://" LAKE_LAB_BUCKET "/%s", name)};
    struct lake_repo repo = {0};
    struct err err = {0};

    CHECK_OK(lake_repo_create(lab->lake, &lab->arena, &o, &repo, &err));
    return repo;
}

/* --- history without trees --- */

/* The generation of a commit with these parents. */
static int32_t lab_generation(struct lake_lab *lab, const struct lake_commit *c)
{
    struct err err = {0};
    int32_t most = 0;

    for (size_t i = 0; i < c->parent_count; i++) {
        struct lake_commit parent;
        CHECK_OK(lake_commit_get(lab->lake, &lab->arena, &lab->repo, c->parents[i], &parent, &err));
        most = parent.generation > most ? parent.generation : most;
    }
    return most + 1;
}

struct str lake_lab_commit(struct lake_lab *lab, const struct lake_commit *wanted)
{
    struct lake_commit c = *wanted;
    char id[LAKE_ID_LEN + 1];
    struct lake_tx tx;
    struct err err = {0};

    if (c.committer.len == 0)
        c.committer = STR("tester");
    if (c.created_ms == 0)
        c.created_ms = clock_wall_ms();
    if (c.generation == 0)
        c.generation = lab_generation(lab, &c);
    lake_commit_id(id, &c);
    c.id = arena_str(&lab->arena, str_z(id));
    lake_tx_init(&tx, &lab->arena);
    lake_tx_check_repo(&tx, &lab->repo);
    lake_tx_put_commit(&tx, &lab->repo, &c);
    CHECK_OK(lake_tx_write(lab->lake, &tx, NULL, &err));
    return c.id;
}

struct str lake_lab_commit_at(struct lake_lab *lab, int64_t created_ms, const char *message,
                              const struct str *parents, size_t count)
{
    struct str *copy = arena_array(&lab->arena, count + 1, sizeof(*copy));

    if (count)
        memcpy(copy, parents, count * sizeof(*copy));
    return lake_lab_commit(lab, &(struct lake_commit){.message = str_z(message),
                                                      .created_ms = created_ms,
                                                      .parents = copy,
                                                      .parent_count = count,
                                                      .version = 1});
}

static struct lake_branch lab_branch(struct lake_lab *lab, const char *name)
{
    struct lake_branch b = {0};
    struct err err = {0};

    CHECK_OK(lake_branch_get(lab->lake, &lab->arena, &lab->repo, str_z(name), &b, &err));
    return b;
}

void lake_lab_set_head(struct lake_lab *lab, const char *branch, struct str commit_id)
{
    struct lake_branch b = lab_branch(lab, branch);
    struct lake_tx tx;
    struct err err = {0};

    b.commit_id = commit_id;
    b.epoch++;
    lake_tx_init(&tx, &lab->arena);
    lake_tx_check_repo(&tx, &lab->repo);
    lake_tx_put_branch(&tx, &lab->repo, &b);
    CHECK_OK(lake_tx_write(lab->lake, &tx, NULL, &err));
}

struct str lake_lab_head(struct lake_lab *lab, const char *branch)
{
    return lab_branch(lab, branch).commit_id;
}
