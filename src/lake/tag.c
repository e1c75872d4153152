/* Tags: names of commits, which never change. */
#include "lake/lake_int.h"
#include "lake/names.h"

int lake_tag_get(struct lake *l, struct arena *a, const struct lake_repo *r, struct str name,
                 struct lake_tag *out, struct err *err)
{
    struct kv_value value;
    int code = lake_check_tag(name, err);

    if (code == 0)
        code = kv_get(l->kv, NULL, a, lake_key_tag(a, r->partition, name), &value, err);
    if (code == ERR_NOT_FOUND)
        return err_set(err, code, "tag not found");
    if (code == 0)
        code = lake_tag_read(out, value.bytes, err);
    if (code == 0)
        out->stamp = value.stamp;
    return code;
}

int lake_tag_create(struct lake *l, struct arena *a, const struct lake_repo *r, struct str name,
                    struct str ref, bool force, struct lake_tag *out, struct err *err)
{
    struct lake_ref target;
    struct lake_tx tx;
    struct buf record = {0};
    size_t failed = 0;
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
    lake_tag_write(&record, out);
    lake_tx_init(&tx, a);
    lake_tx_check_repo(&tx, r);
    lake_tx_put_if(&tx, lake_key_tag(a, r->partition, name), arena_str(a, buf_str(&record)),
                   KV_ABSENT, STR_EMPTY);
    buf_release(&record);
    code = lake_tx_write(l, &tx, &failed, err);
    if (code != ERR_PRECONDITION)
        return code;
    return failed == 0 ? err_set(err, ERR_NOT_FOUND, "repository not found")
                       : err_set(err, ERR_EXISTS, "tag already exists: not unique");
}

int lake_tag_delete(struct lake *l, struct arena *a, const struct lake_repo *r, struct str name,
                    bool force, struct err *err)
{
    struct lake_tag tag;
    struct lake_tx tx;
    int code = lake_check_writable(r, force, err);

    if (code == 0)
        code = lake_tag_get(l, a, r, name, &tag, err);
    if (code < 0)
        return code;
    lake_tx_init(&tx, a);
    lake_tx_check_repo(&tx, r);
    lake_tx_remove(&tx, lake_key_tag(a, r->partition, name), KV_SAME, tag.stamp);
    code = lake_tx_write(l, &tx, NULL, err);
    return code == ERR_PRECONDITION ? err_set(err, ERR_NOT_FOUND, "tag not found") : code;
}

int lake_tag_list(struct lake *l, struct arena *a, const struct lake_repo *r,
                  const struct lake_page *p, struct lake_tag **out, size_t *count, bool *more,
                  struct err *err)
{
    struct lake_rows rows;
    struct str value;
    int code = lake_rows_open(&rows, l, NULL, a, r->partition, "tags", p, err);

    *out = arena_array(a, p->limit ? p->limit : 1, sizeof(**out));
    *count = 0;
    *more = false;
    if (code == 0 && !*out)
        code = err_code(err, ERR_NO_MEMORY);
    while (code == 0 && (code = lake_rows_next(&rows, &value, err)) == 0) {
        if (*count == p->limit) {
            *more = true;
            break;
        }
        code = lake_tag_read(&(*out)[(*count)++], arena_str(a, value), err);
    }
    lake_rows_close(&rows);
    return code == ERR_END ? 0 : code;
}
