/* Reads and writes the node files of a repository's trees: `_lakefs/<id>` below its namespace. */
#include "lake/keep.h"
#include "lake/lake_int.h"
#include "lake/names.h"
#include "lake/place.h"

#include "base/clock.h"

#include <stdlib.h>

/* The storage of one repository's nodes; the ctx of a struct node_place points to it. */
struct node_home {
    struct lake *lake;
    const struct lake_repo *repo; /* borrowed until lake_tree_store_release() */
    /* the place that lake_options.place has given, for tests; given.write NULL: the routes find the
     * namespace's bucket */
    struct node_place given;
    /* state of the collector when the building of a tree began (lake_tree_store_keep()); NULL:
     * nodes are only read */
    const struct lake_keep *keep;
};

static int node_home_open(struct object_place *p, struct node_home *h, struct arena *a,
                          struct str id, enum place_use use, struct err *err)
{
    struct str key = arena_fmt(a, LAKE_NODES "/" STR_FMT, STR_ARG(id));

    return lake_place_open_below(p, h->lake, a, h->repo, key, use, err);
}

static int node_fetch(struct node_home *h, struct str id, struct buf *out, struct err *err)
{
    struct arena a = {0};
    struct object_place p;
    int code = node_home_open(&p, h, &a, id, PLACE_READ, err);

    if (code == 0)
        code = object_place_end(&p, object_place_read(&p, out, NULL, err), err);
    arena_release(&a);
    return code;
}

static int node_read(void *ctx, struct str id, struct buf *out, struct err *err)
{
    struct node_home *h = ctx;
    uint64_t begun_ns = clock_mono_ns();
    int code =
        h->given.read ? h->given.read(h->given.ctx, id, out, err) : node_fetch(h, id, out, err);

    lake_notes_add(h->lake->notes, LAKE_NOTE_NODE_READ, h->repo->id, begun_ns, code, err);
    return code;
}

static int node_put(struct node_home *h, struct str id, struct str bytes, struct err *err)
{
    struct arena a = {0};
    struct object_place p;
    int code = node_home_open(&p, h, &a, id, PLACE_PUT, err);

    if (code == 0)
        code = object_place_end(&p, object_place_put(&p, bytes, NULL, err), err);
    arena_release(&a);
    return code;
}

/* Puts all files in one call. The places are in the arena, which must live until object_place_end()
 * was called for all of them. */
static int node_put_all_at(struct node_home *h, struct arena *a, const struct node_bytes *files,
                           size_t count, struct err *err)
{
    struct object_place *places = arena_array(a, count, sizeof(*places));
    struct str *bytes = arena_array(a, count, sizeof(*bytes));
    size_t opened = 0;
    int code = places && bytes ? 0 : err_code(err, ERR_NO_MEMORY);

    for (; opened < count && code == 0; opened += code == 0) {
        bytes[opened] = files[opened].bytes;
        code = node_home_open(&places[opened], h, a, files[opened].id, PLACE_PUT, err);
    }
    if (code == 0)
        code = object_place_put_all(places, bytes, count, err);
    int put = code;
    for (size_t i = 0; i < opened; i++) {
        int ended = object_place_end(&places[i], put, err);
        code = code < 0 ? code : ended;
    }
    return code;
}

static int node_put_all(struct node_home *h, const struct node_bytes *files, size_t count,
                        struct err *err)
{
    struct arena a = {0};
    int code = node_put_all_at(h, &a, files, count, err);

    arena_release(&a);
    return code;
}

static int node_write(void *ctx, struct str id, struct str bytes, struct err *err)
{
    struct node_home *h = ctx;
    uint64_t begun_ns = clock_mono_ns();

    int code = h->keep ? lake_keep_node(h->keep, h->lake, h->repo, id, err) : 0;

    if (code < 0)
        return code;
    lake_step_begin("lake.node");
    code =
        h->given.write ? h->given.write(h->given.ctx, id, bytes, err) : node_put(h, id, bytes, err);
    lake_step_end("lake.node");
    lake_notes_add(h->lake->notes, LAKE_NOTE_NODE_WRITE, h->repo->id, begun_ns, code, err);
    return code;
}

/* Writes all files. For crash tests the named steps (lake/step.h) of all files begin before the
 * first put, and end after the last one. */
static int node_write_all(void *ctx, const struct node_bytes *files, size_t count, struct err *err)
{
    struct node_home *h = ctx;
    uint64_t begun_ns = clock_mono_ns();
    int code = 0;

    for (size_t i = 0; i < count && code == 0 && h->keep; i++)
        code = lake_keep_node(h->keep, h->lake, h->repo, files[i].id, err);
    if (code < 0)
        return code;
    for (size_t i = 0; i < count; i++)
        lake_step_begin("lake.node");
    code = h->given.write_all ? h->given.write_all(h->given.ctx, files, count, err)
                              : node_put_all(h, files, count, err);
    for (size_t i = 0; i < count; i++)
        lake_step_end("lake.node");
    for (size_t i = 0; i < count; i++)
        lake_notes_add(h->lake->notes, LAKE_NOTE_NODE_WRITE, h->repo->id, begun_ns, code, err);
    return code;
}

/* Whether reading a node has to wait for another host. The answer only decides whether nodes are
 * also cached on disk, so it is no if the bucket's storage cannot be found now. */
static bool node_is_far(struct lake *l, const struct lake_repo *r)
{
    struct str bucket, prefix;
    struct storage *s = NULL;

    return lake_check_space(r->space, &bucket, &prefix, NULL) == 0 &&
           route_storage(l->o.routes, r->owner, bucket, &s, NULL) == 0 &&
           !storage_can(s, STORAGE_AT_HAND);
}

int lake_tree_store(struct lake *l, const struct lake_repo *r, struct tree_store *out,
                    struct err *err)
{
    struct node_home *h = xzalloc(sizeof(*h));
    int code = 0;

    *h = (struct node_home){.lake = l, .repo = r};
    if (l->o.place)
        code = l->o.place(l->o.place_ctx, r, &h->given, err);
    else if (!l->o.routes)
        code = err_set(err, ERR_UNAVAILABLE, "the lake has no storages");
    if (code < 0) {
        free(h);
        return code;
    }
    *out = (struct tree_store){.cache = l->cache, .scope = r->partition};
    out->place = (struct node_place){.read = node_read, .write = node_write, .ctx = h};
    out->place.is_far = l->o.place ? h->given.is_far : node_is_far(l, r);
    /* If puts wait for another host, write_all() would wait for each of them in turn. So then it is
     * not offered, and several threads call node_write() at the same time. */
    if (l->o.place ? h->given.write_all != NULL : !out->place.is_far)
        out->place.write_all = node_write_all;
    return 0;
}

void lake_tree_store_keep(struct tree_store *t, const struct lake_keep *keep)
{
    struct node_home *h = t->place.ctx;

    h->keep = keep;
}

void lake_tree_store_release(struct lake *l, struct tree_store *t)
{
    free(t->place.ctx);
    t->place = (struct node_place){0};
}
