/* Reads and writes the node files of a repository's trees: `_lakefs/<id>` below its namespace. */
#include "lake/keep.h"
#include "lake/lake_int.h"
#include "lake/names.h"
#include "lake/place.h"

#include "base/clock.h"

#include <stdlib.h>

/* The storage place of one repository's nodes; a struct node_place points to it. */
struct node_home {
    struct lake *lake;
    const struct lake_repo *repo; /* borrowed until lake_tree_store_release() */
    /* set by lake_options.place; given.write NULL: the routes give the place */
    struct node_place given;
    /* state of the collector under which a tree is built; NULL: no node is put */
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

/* Whether reading a node has to wait for a peer. This only decides whether nodes are also cached on
 * disk, so a bucket whose storage is unknown now counts as local. */
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
