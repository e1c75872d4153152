/* The names of the lake's rows: lakeFS's key schema, byte for byte (docs/lake.md, "Records"). */
#include "lake/lake_int.h"

#include "base/ids.h"

/* Returns the name of the row "<kind>/<name>". A name may have any byte, so the key is put together
 * without a format. */
struct kv_name lake_key_in(struct arena *a, struct str partition, const char *kind, struct str name)
{
    size_t head = strlen(kind) + 1;
    char *key = arena_alloc(a, head + name.len + 1);

    if (!key)
        return (struct kv_name){partition, STR_EMPTY};
    memcpy(key, kind, head - 1);
    key[head - 1] = '/';
    if (name.len)
        memcpy(key + head, name.p, name.len);
    return (struct kv_name){partition, str_n(key, head + name.len)};
}

struct kv_name lake_key_repo(struct arena *a, struct str id)
{
    return lake_key_in(a, LAKE_PARTITION, "repos", id);
}

struct kv_name lake_key_to_delete(struct arena *a, struct str partition)
{
    return lake_key_in(a, LAKE_PARTITION, "to-delete", partition);
}

struct kv_name lake_key_branch(struct arena *a, struct str partition, struct str name)
{
    return lake_key_in(a, partition, "branches", name);
}

struct kv_name lake_key_commit(struct arena *a, struct str partition, struct str id)
{
    return lake_key_in(a, partition, "commits", id);
}

struct kv_name lake_key_first(struct arena *a, struct str partition, struct str id)
{
    return lake_key_in(a, partition, "firsts", id);
}

struct kv_name lake_key_tag(struct arena *a, struct str partition, struct str name)
{
    return lake_key_in(a, partition, "tags", name);
}

struct kv_name lake_key_staged(struct arena *a, struct str token, struct str path)
{
    return lake_key_in(a, token, "key", path);
}

struct kv_name lake_key_cleanup(struct arena *a, struct str token)
{
    return (struct kv_name){LAKE_CLEANUP, arena_str(a, token)};
}

struct str lake_new_token(struct arena *a, const struct lake_repo *r, struct str branch)
{
    char id[ID_UUID_LEN + 1];

    id_uuid(id);
    return arena_fmt(a, STR_FMT "-" STR_FMT ":%s", STR_ARG(r->id), STR_ARG(branch), id);
}

uint64_t lake_new_epoch(void)
{
    enum { EPOCH_FIRST_MAX = 1 << 30 };

    return 1 + random_below(EPOCH_FIRST_MAX);
}
