/* Reads and writes values that many calls have in common: pages, maps, repositories, refs, commits,
 * objects. */
#include "lake/names.h"
#include "lake/rest/web.h"

#include <stdlib.h>

/* --- fields of answers --- */

const struct rest_field web_repo_fields[] = {
    {"id", "The repository's name."},
    {"creation_date", "When it was made, in seconds since 1970.", REST_INTEGER},
    {"default_branch", "The branch that is there from the beginning."},
    {"storage_namespace", "Where its objects lie: s3://bucket/prefix."},
    {"storage_id", "Always empty: there is one kind of storage."},
    {"read_only", "Are changes refused?", REST_BOOLEAN},
    {0},
};

const struct rest_field web_ref_fields[] = {
    {"id", "The name."},
    {"commit_id", "The commit that it names."},
    {0},
};

const struct rest_field web_commit_fields[] = {
    {"id", "The commit's id."},
    {"parents", "The ids of its parents.", REST_STRINGS},
    {"committer", "The name of the user who made it."},
    {"message", "What the commit says."},
    {"creation_date", "When it was made, in seconds since 1970.", REST_INTEGER},
    {"meta_range_id", "The id of its tree."},
    {"metadata", "Its metadata.", REST_MAP},
    {"generation", "One more than the greatest generation of its parents.", REST_INTEGER},
    {"version", "The version of its form.", REST_INTEGER},
    {0},
};

const struct rest_field web_stats_fields[] = {
    {"path", "The object's path, or a common prefix."},
    {"path_type", "\"object\" or \"common_prefix\"."},
    {"physical_address", "Where its bytes lie."},
    {"physical_address_expiry", "When the address ends, in seconds since 1970.", REST_INTEGER,
     .sometimes = true},
    {"checksum", "Its ETag."},
    {"size_bytes", "Its size in bytes.", REST_INTEGER, .sometimes = true},
    {"mtime", "When it was written, in seconds since 1970.", REST_INTEGER},
    {"metadata", "Its user metadata.", REST_MAP, .sometimes = true},
    {"content_type", "Its media type.", .sometimes = true},
    {0},
};

const struct rest_field web_merge_fields[] = {
    {"reference", "The id of the merge's commit; empty: there is none."},
    {"message", "Why the merge was refused.", .sometimes = true},
    {"conflicts", "Paths that both sides changed.", REST_STRINGS, .sometimes = true},
    {0},
};

/* --- requests --- */

struct lake_page web_page(const struct rest_call *c)
{
    return (struct lake_page){rest_text(c, "prefix"), rest_after(c), rest_limit(c)};
}

static int web_pair_order(const void *a, const void *b)
{
    const struct str_pair *x = a, *y = b;

    return str_cmp(x->key, y->key);
}

int web_pairs(struct rest_call *c, const json_t *map, struct str_pairs *out, struct err *err)
{
    const char *key;
    json_t *value;

    *out = (struct str_pairs){0};
    if (!map || json_object_size(map) == 0)
        return 0;
    if (json_object_size(map) > LAKE_METADATA_MAX)
        return lake_refuse_metadata(err);
    out->pairs = arena_array(c->arena, json_object_size(map), sizeof(*out->pairs));
    if (!out->pairs)
        return err_code(err, ERR_NO_MEMORY);
    json_object_foreach((json_t *)(uintptr_t)map, key, value)
    {
        if (!json_is_string(value))
            return err_set(err, ERR_INVALID,
                           "metadata must be an object whose members are strings");
        out->pairs[out->count++] = (struct str_pair){
            str_z(key), str_n(json_string_value(value), json_string_length(value))};
    }
    qsort(out->pairs, out->count, sizeof(*out->pairs), web_pair_order);
    return 0;
}

int web_strs(struct rest_call *c, const json_t *list, const struct str **out, size_t *count,
             struct err *err)
{
    struct str *items = arena_array(c->arena, json_array_size(list) + 1, sizeof(*items));
    const json_t *item;
    size_t i;

    if (!items)
        return err_code(err, ERR_NO_MEMORY);
    json_array_foreach(list, i, item) items[i] =
        str_n(json_string_value(item), json_string_length(item));
    *out = items;
    *count = json_array_size(list);
    return 0;
}

/* --- answers --- */

void web_write_pairs(struct json_out *w, const char *name, const struct str_pairs *pairs)
{
    json_out_key(w, name);
    json_out_open(w, '{');
    for (size_t i = 0; i < pairs->count; i++) {
        json_out_key_str(w, pairs->pairs[i].key);
        json_out_str(w, pairs->pairs[i].value);
    }
    json_out_close(w, '}');
}

void web_write_repo(struct json_out *w, const struct lake_repo *r)
{
    json_out_member_str(w, "id", r->id);
    json_out_member_i64(w, "creation_date", r->created_ms / MS_PER_S);
    json_out_member_str(w, "default_branch", r->default_branch);
    json_out_member_str(w, "storage_namespace", r->space);
    json_out_member_str(w, "storage_id", r->storage_id);
    json_out_member_bool(w, "read_only", r->read_only);
}

void web_write_ref(struct json_out *w, struct str id, struct str commit_id)
{
    json_out_member_str(w, "id", id);
    json_out_member_str(w, "commit_id", commit_id);
}

void web_write_commit(struct json_out *w, const struct lake_commit *c)
{
    json_out_member_str(w, "id", c->id);
    json_out_key(w, "parents");
    json_out_open(w, '[');
    for (size_t i = 0; i < c->parent_count; i++)
        json_out_str(w, c->parents[i]);
    json_out_close(w, ']');
    json_out_member_str(w, "committer", c->committer);
    json_out_member_str(w, "message", c->message);
    json_out_member_i64(w, "creation_date", c->created_ms / MS_PER_S);
    json_out_member_str(w, "meta_range_id", c->tree);
    web_write_pairs(w, "metadata", &c->metadata);
    json_out_member_i64(w, "generation", c->generation);
    json_out_member_i64(w, "version", c->version);
}

struct str web_address(struct arena *a, const struct lake_repo *r, const struct lake_entry *e)
{
    bool full = e->address_type == LAKE_FULL ||
                (e->address_type != LAKE_RELATIVE && str_find(e->address, STR("://")) >= 0);

    return full ? e->address
                : arena_fmt(a, STR_FMT "/" STR_FMT, STR_ARG(r->space), STR_ARG(e->address));
}

static void web_write_prefix(struct json_out *w, struct str path)
{
    json_out_member_str(w, "path", path);
    json_out_member_str(w, "path_type", STR("common_prefix"));
    json_out_member_str(w, "physical_address", STR(""));
    json_out_member_str(w, "checksum", STR(""));
    json_out_member_i64(w, "mtime", 0);
}

void web_write_stats(struct rest_call *c, const struct lake_repo *r, const struct lake_object *o,
                     const struct web_stats_options *how)
{
    const struct lake_entry *e = &o->entry;

    if (o->is_prefix) {
        web_write_prefix(c->w, o->path);
        return;
    }
    json_out_member_str(c->w, "path", o->path);
    json_out_member_str(c->w, "path_type", STR("object"));
    json_out_member_str(c->w, "physical_address",
                        how->address.len ? how->address : web_address(c->arena, r, e));
    if (how->expires_ms)
        json_out_member_i64(c->w, "physical_address_expiry", how->expires_ms / MS_PER_S);
    json_out_member_str(c->w, "checksum", e->etag);
    json_out_member_u64(c->w, "size_bytes", e->size);
    json_out_member_i64(c->w, "mtime", e->modified_ms / MS_PER_S);
    if (how->metadata)
        web_write_pairs(c->w, "metadata", &e->metadata);
    json_out_member_str(c->w, "content_type",
                        e->content_type.len ? e->content_type : STR("application/octet-stream"));
}
