/* Makes, reads, lists and deletes tags. A tag is a name for a commit; it never changes to another
 * commit. */
#include "lake/hooks.h"
#include "lake/lake_int.h"
#include "lake/names.h"

int lake_tag_get(struct lake *l, struct arena *a, const struct lake_repo *r, struct str name,
                 struct lake_tag *out, struct err *err)
{
    struct kv_value value;
    int code = lake_check_tag(name, err);

    if (code == 0)
        code = lake_row_get(l, a, r, lake_key_tag(a, r->partition, name), "tag not found", &value,
                            err);
    if (code == 0)
        code = lake_tag_read(out, value.bytes, err);
    if (code == 0)
        out->stamp = value.stamp;
    return code;
}

/* Puts the record of a new tag, on the condition that there is no tag of this name. */
static int tag_write_new(struct lake *l, struct arena *a, const struct lake_repo *r,
                         struct lake_tag *tag, struct err *err)
{
    struct buf record = {0};

    lake_tag_write(&record, tag);
    tag->stamp = arena_str(a, buf_str(&record));
    int code = buf_error(&record);
    buf_release(&record);
    if (code < 0)
        return err_code(err, code);
    code = lake_put_ref(l, a, r, lake_key_tag(a, r->partition, tag->id), tag->stamp, tag->commit_id,
                        err);
    return code == ERR_EXISTS ? err_set(err, code, "tag already exists: not unique") : code;
}

int lake_tag_create(struct lake *l, struct arena *a, const struct lake_repo *r, struct str name,
                    struct str ref, bool force, struct lake_tag *out, struct err *err)
{
    struct lake_ref target;
    int code = lake_check_tag(name, err);

    if (code == 0)
        code = lake_check_writable(r, force, err);
    if (code == 0)
        code = lake_ref_resolve(l, a, r, ref, &target, err);
    if (code == 0 && (target.explicit_staged || target.commit_id.len == 0))
        code = err_set(err, ERR_INVALID, "a tag names a commit; '" STR_FMT "' is not one",
                       STR_ARG(ref));
    if (code < 0)
        return code;
    *out = (struct lake_tag){.id = name, .commit_id = target.commit_id};
    struct lake_hook_call call = {.event = LAKE_ON_CREATE_TAG,
                                  .repo = r,
                                  .ref = name,
                                  .source = ref,
                                  .commit_id = target.commit_id};
    code = lake_hook_pre(l, a, &call, err);
    if (code == 0)
        code = tag_write_new(l, a, r, out, err);
    if (code == 0)
        lake_hook_post(l, &call);
    return code;
}

/* Reads the records of the repository and the tag, and checks whether the tag may be deleted. */
static int tag_read_to_remove(struct lake *l, struct arena *a, const struct lake_repo *r,
                              struct str name, bool force, struct lake_repo *now,
                              struct lake_tag *tag, struct err *err)
{
    int code = lake_repo_again(l, a, r, now, err);

    if (code == 0)
        code = lake_check_writable(now, force, err);
    return code < 0 ? code : lake_tag_get(l, a, now, name, tag, err);
}

int lake_tag_delete(struct lake *l, struct arena *a, const struct lake_repo *r, struct str name,
                    bool force, struct err *err)
{
    struct lake_hook_call call = {.event = LAKE_ON_DELETE_TAG, .ref = name};
    struct lake_repo now = *r;
    struct lake_tag tag = {0};
    struct lake_tx tx;
    int code = tag_read_to_remove(l, a, r, name, force, &now, &tag, err);

    call.repo = &now;
    call.commit_id = tag.commit_id;
    if (code == 0)
        code = lake_hook_pre(l, a, &call, err);
    while (code == 0) {
        lake_tx_init(&tx, a);
        lake_tx_check_repo(&tx, &now);
        lake_tx_remove(&tx, lake_key_tag(a, r->partition, name), KV_SAME, tag.stamp);
        code = lake_tx_write(l, &tx, NULL, err);
        if (code != ERR_PRECONDITION)
            break;
        code = tag_read_to_remove(l, a, r, name, force, &now, &tag, err);
    }
    if (code == 0)
        lake_hook_post(l, &call);
    return code;
}

static int tag_row(void *item, void *ctx, struct arena *a, struct str record, struct err *err)
{
    struct lake_tag *t = item;
    int code = lake_tag_read(t, record, err);

    t->stamp = record;
    return code;
}

int lake_tag_list(struct lake *l, struct arena *a, const struct lake_repo *r,
                  const struct lake_page *p, struct lake_tag **out, size_t *count, bool *more,
                  struct err *err)
{
    struct lake_rows rows = {r, r->partition, "tags", sizeof(**out), tag_row, NULL};
    void *items = NULL;
    int code = lake_rows_page(l, a, &rows, p, &items, count, more, err);

    *out = items;
    return code;
}
