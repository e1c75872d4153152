/* Reads and writes the manifest of a dump. The manifest is stored in the same folder as the nodes
 * of trees, so it is read and written by the same functions. */
#include "lake/manifest.h"

#include "lake/lake_int.h"

#define MANIFEST_NAME STR("refs_manifest.json")
enum { MANIFEST_MAX = 64 << 10 }; /* largest manifest, in bytes */

void lake_refs_json(struct json_out *w, const struct lake_refs *refs)
{
    json_out_member_str(w, "commits_meta_range_id", refs->commits);
    json_out_member_str(w, "tags_meta_range_id", refs->tags);
    json_out_member_str(w, "branches_meta_range_id", refs->branches);
}

int lake_manifest_write(struct lake *l, const struct lake_repo *r, const struct lake_refs *refs,
                        struct err *err)
{
    struct buf text = {0};
    struct json_out w;
    struct tree_store store;
    int code = lake_tree_store(l, r, &store, err);

    if (code < 0)
        return code;
    json_out_init(&w, &text);
    json_out_open(&w, '{');
    lake_refs_json(&w, refs);
    json_out_close(&w, '}');
    code = buf_error(&text);
    if (code == 0)
        code = store.place.write(store.place.ctx, MANIFEST_NAME, buf_str(&text), err);
    buf_release(&text);
    lake_tree_store_release(l, &store);
    return code;
}

int lake_manifest_parse(struct lake_refs *out, struct arena *a, struct str text, struct err *err)
{
    json_t *json = NULL;
    int code = json_read(&json, text, err);

    if (code < 0)
        return err_set(err, ERR_CORRUPT, "the manifest of the dump is not JSON");
    *out = (struct lake_refs){
        .commits = arena_str(a, json_get_str(json, "commits_meta_range_id", STR_EMPTY)),
        .tags = arena_str(a, json_get_str(json, "tags_meta_range_id", STR_EMPTY)),
        .branches = arena_str(a, json_get_str(json, "branches_meta_range_id", STR_EMPTY)),
    };
    json_decref(json);
    return arena_error(a);
}

int lake_manifest_read(struct lake *l, struct arena *a, const struct lake_repo *r,
                       struct lake_refs *out, struct err *err)
{
    struct buf text = BUF_INIT(MANIFEST_MAX);
    struct tree_store store;
    int code = lake_tree_store(l, r, &store, err);

    if (code < 0)
        return code;
    code = store.place.read(store.place.ctx, MANIFEST_NAME, &text, err);
    if (code == ERR_NOT_FOUND)
        err_set(err, code, "the namespace has no dump: it has no file _lakefs/refs_manifest.json");
    if (code == 0)
        code = lake_manifest_parse(out, a, buf_str(&text), err);
    buf_release(&text);
    lake_tree_store_release(l, &store);
    return code;
}
