/* Lists a bucket from both sides of a switch. A key's version vector decides from which side the
 * key is listed (replica/switch/side_list.h). */
#include "replica/switch/side_list.h"

#include "object/merge.h"

enum side side_of(const struct vector *v, struct str route, struct str other)
{
    int64_t at_route = vector_at(v, &(struct place){.storage = route});
    int64_t at_other = vector_at(v, &(struct place){.storage = other});

    if (v->count == 0)
        return SIDE_EITHER;
    return at_other > at_route ? SIDE_OTHER : SIDE_ROUTE;
}

/* Chooses the side of each key. The version vectors of all keys are read at the same moment. */
static int sides_of_keys(void *ctx, struct arena *a, struct merge_key *keys, size_t count,
                         struct err *err)
{
    const struct side_list *l = ctx;
    struct thing *things = arena_array(a, count + 1, sizeof(*things));
    struct vector *vectors = arena_array(a, count + 1, sizeof(*vectors));

    if (!things || !vectors)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < count; i++)
        things[i] =
            (struct thing){.kind = THING_OBJECT, .bucket = l->bucket, .object = keys[i].key};
    int code = version_read_many(l->app, a, things, count, vectors, err);
    for (size_t i = 0; i < count && code == 0; i++) {
        enum side side = side_of(&vectors[i], l->storages[SIDE_ROUTE], l->storages[SIDE_OTHER]);
        if (side == SIDE_EITHER)
            keys[i].from = l->route_only ? SIDE_ROUTE : MERGE_FIRST;
        else
            keys[i].from = (int)side;
    }
    return code;
}

static struct merge side_list_merge(const struct side_list *l)
{
    return (struct merge){.buckets = l->sides,
                          .count = SIDES,
                          .choose = sides_of_keys,
                          .ctx = (void *)(uintptr_t)l,
                          .page = l->page};
}

int side_list(const struct side_list *l, struct arena *a, const struct list_options *o,
              bool versions, struct list_result *out, struct err *err)
{
    struct merge m = side_list_merge(l);

    return merge_list(&m, a, o, versions, out, err);
}

int side_list_uploads(const struct side_list *l, struct arena *a, const struct list_options *o,
                      struct upload_list *out, struct err *err)
{
    struct merge m = side_list_merge(l);

    return merge_uploads(&m, a, o, out, err);
}
