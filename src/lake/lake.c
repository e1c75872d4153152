/* Opens the lake, and reads the records that every operation begins with. */
#include "lake/change.h"
#include "lake/claim.h"
#include "lake/iter.h"
#include "lake/log_pauses.h"
#include "lake/right.h"

#include <stdlib.h>

int lake_open(struct lake **out, const struct lake_options *o, struct err *err)
{
    struct lake *l = xzalloc(sizeof(*l));

    l->o = *o;
    l->kv = o->kv;
    l->queue = commit_queue_new(o->hook_waiters_max);
    l->commits = commit_cache_new(LAKE_COMMITS_BYTES);
    l->branches = branch_cache_new();
    l->claims = lake_claims_new();
    l->rights = lake_rights_new();
    l->notes = lake_notes_new();
    l->logs = log_pauses_new(LAKE_PAUSED_COMMITS);
    l->claim_fresh_ms = LAKE_CLAIM_FRESH_MS;
    l->claim_ask_ms = LAKE_CLAIM_ASK_MS;
    l->node_wait_ms = LAKE_NODE_WAIT_MS;
    l->draft_renew_ms = LAKE_DRAFT_RENEW_MS;
    l->refs_note_ms = LAKE_REFS_NOTE_MS;
    l->base_bytes_max = LAKE_BASE_BYTES;
    l->heads_bytes = LAKE_HEADS_BYTES;
    l->compactions = compactions_new();
    int code = tree_cache_open(&l->cache, &o->cache, err);
    if (code == 0)
        code = lake_cleaner_start(l, err);
    if (code < 0) {
        lake_close(l);
        return code;
    }
    *out = l;
    return 0;
}

void lake_close(struct lake *l)
{
    if (!l)
        return;
    loop_stop(&l->cleaner);
    lake_claims_free(l->claims);
    lake_rights_free(l->rights);
    tree_cache_close(l->cache);
    commit_queue_free(l->queue);
    log_pauses_free(l->logs);
    lake_notes_free(l->notes);
    commit_cache_free(l->commits);
    branch_cache_free(l->branches);
    compactions_free(l->compactions);
    free(l);
}

struct kv *lake_kv(struct lake *l)
{
    return l->kv;
}

int lake_check_writable(const struct lake_repo *r, bool force, struct err *err)
{
    return r->read_only && !force ? err_set(err, ERR_DENIED, "read-only repository") : 0;
}

int lake_decode_repo(struct arena *a, const struct lake_repo *r, const struct kv_value *value,
                     struct lake_repo *repo_now, struct err *err)
{
    int code = kv_is_there(value) ? lake_repo_read(repo_now, a, value->bytes, err) : ERR_NOT_FOUND;

    if (code == 0 && !str_eq(repo_now->token, r->token))
        code = ERR_NOT_FOUND; /* the repository was deleted, and a new one has its name */
    if (code == ERR_NOT_FOUND)
        return err_set(err, code, "repository not found");
    repo_now->stamp = value->stamp;
    return code;
}

int lake_check_repo_row(struct arena *a, const struct lake_repo *r, const struct kv_value *value,
                        struct err *err)
{
    struct lake_repo now;

    return kv_is_there(value) && str_eq(value->stamp, r->stamp)
               ? 0
               : lake_decode_repo(a, r, value, &now, err);
}

int lake_row_get(struct lake *l, struct arena *a, const struct lake_repo *r, struct kv_name name,
                 const char *missing, struct kv_value *out, struct err *err)
{
    struct kv_name names[] = {lake_key_repo(a, r->id), name};
    struct kv_value values[ARRAY_SIZE(names)] = {0};
    /* A name from a client may be too long for a row. Then there is no such row. */
    size_t count = name.key.len > KV_KEY_MAX ? 1 : ARRAY_SIZE(names);
    int code = kv_get_many(l->kv, NULL, a, names, count, values, err);

    if (code == 0)
        code = lake_check_repo_row(a, r, &values[0], err);
    *out = values[1];
    return code == 0 && missing && !kv_is_there(out) ? err_set(err, ERR_NOT_FOUND, "%s", missing)
                                                     : code;
}

int lake_decode_branch(struct arena *a, const struct lake_repo *r, const struct kv_value *values,
                       struct lake_repo *repo_now, struct lake_branch *out, struct err *err)
{
    int code = lake_decode_repo(a, r, &values[0], repo_now, err);

    if (code < 0)
        return code;
    if (!kv_is_there(&values[1]))
        return err_set(err, ERR_NOT_FOUND, "branch not found");
    code = lake_branch_read(out, a, values[1].bytes, err);
    out->stamp = values[1].stamp;
    return code;
}

int lake_read_branch(struct lake *l, struct kv_view *view, struct arena *a,
                     const struct lake_repo *r, struct str name, struct lake_repo *repo_now,
                     struct lake_branch *out, struct err *err)
{
    struct kv_name names[] = {lake_key_repo(a, r->id), lake_key_branch(a, r->partition, name)};
    struct kv_value values[ARRAY_SIZE(names)];
    int code = kv_get_many(l->kv, view, a, names, ARRAY_SIZE(names), values, err);

    return code < 0 ? code : lake_decode_branch(a, r, values, repo_now, out, err);
}
