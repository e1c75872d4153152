/* Reading commits. */
#include "lake/lake_int.h"
#include "lake/names.h"

int lake_commit_get(struct lake *l, struct arena *a, const struct lake_repo *r, struct str id,
                    struct lake_commit *out, struct err *err)
{
    struct kv_value value;
    int code = lake_is_commit_id(id)
                   ? kv_get(l->kv, NULL, a, lake_key_commit(a, r->partition, id), &value, err)
                   : ERR_NOT_FOUND;

    if (code == ERR_NOT_FOUND)
        return err_set(err, code, "commit not found");
    return code < 0 ? code : lake_commit_read(out, a, value.bytes, err);
}
