/* Reads commits. */
#include "lake/lake_int.h"
#include "lake/names.h"

/* Reads the record from the key-value store, and puts it into the cache. */
static int commit_fetch(struct lake *l, struct arena *a, const struct lake_repo *r, struct str id,
                        struct str *record, struct err *err)
{
    struct kv_value value;
    int code = kv_get(l->kv, NULL, a, lake_key_commit(a, r->partition, id), &value, err);

    if (code == 0) {
        *record = value.bytes;
        commit_cache_put(l->commits, r->partition, id, value.bytes);
    }
    return code;
}

int lake_commit_get(struct lake *l, struct arena *a, const struct lake_repo *r, struct str id,
                    struct lake_commit *out, struct err *err)
{
    struct str record;
    int code = lake_is_commit_id(id) ? 0 : ERR_NOT_FOUND;

    if (code == 0 && !commit_cache_get(l->commits, a, r->partition, id, &record))
        code = commit_fetch(l, a, r, id, &record, err);
    if (code == ERR_NOT_FOUND)
        return err_set(err, code, "commit not found");
    return code < 0 ? code : lake_commit_read(out, a, record, err);
}
