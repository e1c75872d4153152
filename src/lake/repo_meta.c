/* The metadata of a repository, in the row `repo-metadata` of its partition. */
#include "lake/repo_meta.h"
#include "lake/lake_int.h"
#include "lake/names.h"

/* lakeFS's message RepoMetadata: a map in field 1. The struct that is read and written is a struct
 * str_pairs. */
static const struct proto_field repo_meta_fields[] = {
    {.number = 1, .type = PROTO_PAIRS, .max = LAKE_METADATA_MAX}, {0}};

static struct kv_name repo_meta_key(const struct lake_repo *r)
{
    return (struct kv_name){r->partition, STR("repo-metadata")};
}

static int repo_meta_read(struct lake *l, struct arena *a, const struct lake_repo *r,
                          struct str_pairs *out, struct kv_value *row, struct err *err)
{
    int code = lake_row_get(l, a, r, repo_meta_key(r), NULL, row, err);

    *out = (struct str_pairs){0};
    if (code < 0 || !row->bytes.p)
        return code;
    return proto_read(out, repo_meta_fields, a, row->bytes, err) < 0
               ? err_set(err, ERR_CORRUPT, "the repository's metadata cannot be read")
               : 0;
}

int lake_repo_meta_get(struct lake *l, struct arena *a, const struct lake_repo *r,
                       struct str_pairs *out, struct err *err)
{
    struct kv_value row;

    return repo_meta_read(l, a, r, out, &row, err);
}

static bool repo_meta_is_removed(struct str key, const struct str *removed, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(removed[i], key))
            return true;
    return false;
}

/* Merges two sorted lists of pairs. If both have a key, the pair of `set` is used. Keys in
 * `removed` are left out. */
static int repo_meta_merge(struct arena *a, const struct str_pairs *old,
                           const struct str_pairs *set, const struct str *removed, size_t count,
                           struct str_pairs *out)
{
    size_t i = 0, k = 0;

    *out = (struct str_pairs){.pairs =
                                  arena_array(a, old->count + set->count + 1, sizeof(*out->pairs))};
    if (!out->pairs)
        return ERR_NO_MEMORY;
    while (i < old->count || k < set->count) {
        int order = i == old->count   ? 1
                    : k == set->count ? -1
                                      : str_cmp(old->pairs[i].key, set->pairs[k].key);
        const struct str_pair *next = order < 0 ? &old->pairs[i] : &set->pairs[k];

        if (!repo_meta_is_removed(next->key, removed, count))
            out->pairs[out->count++] = *next;
        i += order <= 0;
        k += order >= 0;
    }
    return 0;
}

/* Writes the metadata. ERR_AGAIN: the metadata or the repository's record has changed; the caller
 * tries again. */
static int repo_meta_write(struct lake *l, struct arena *a, const struct lake_repo *r,
                           const struct str_pairs *pairs, const struct kv_value *old,
                           struct err *err)
{
    struct buf value = BUF_INIT(KV_VALUE_MAX);
    struct lake_tx tx;

    proto_write(&value, repo_meta_fields, pairs);
    lake_tx_init(&tx, a);
    lake_tx_check_repo(&tx, r);
    lake_tx_put_if(&tx, repo_meta_key(r), lake_tx_record(&tx, &value),
                   old->bytes.p ? KV_SAME : KV_ABSENT, old->stamp);
    int code = lake_tx_write(l, &tx, NULL, err);
    return code == ERR_PRECONDITION ? ERR_AGAIN : code;
}

int lake_repo_meta_change(struct lake *l, struct arena *a, const struct lake_repo *r,
                          const struct str_pairs *set, const struct str *removed, size_t count,
                          struct err *err)
{
    struct str_pairs old, next;
    struct lake_repo now = *r;
    struct kv_value row;
    int code = ERR_AGAIN;

    for (int i = 0; i < LAKE_HEAD_TRIES && code == ERR_AGAIN; i++) {
        code = i > 0 ? lake_repo_again(l, a, r, &now, err) : 0;
        if (code == 0)
            code = repo_meta_read(l, a, &now, &old, &row, err);
        if (code == 0 && repo_meta_merge(a, &old, set, removed, count, &next) < 0)
            code = err_code(err, ERR_NO_MEMORY);
        if (code == 0)
            code = lake_check_metadata(&next, err);
        if (code == 0)
            code = repo_meta_write(l, a, &now, &next, &row, err);
    }
    return code == ERR_AGAIN ? err_code(err, ERR_BUSY) : code;
}
