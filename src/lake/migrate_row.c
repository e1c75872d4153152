/* Makes the lake's rows from rows of lakeFS's tables.
 *
 * Many columns of a table may be NULL. A branch without a token has no staged rows. A ref without a
 * commit leads to no commit. Metadata and parents may be absent. A staged row without an identity
 * is a tombstone, that is, the staged removal of a path. */
#include "lake/migrate_int.h"
#include "lake/names.h"

#include "base/json.h"

#include <stdlib.h>

/* --- pairs and parents --- */

static int pairs_order(const void *a, const void *b)
{
    const struct str_pair *x = a, *y = b;

    return str_cmp(x->key, y->key);
}

static int pairs_fill(struct arena *a, json_t *object, struct str_pairs *out, struct err *err)
{
    const char *key;
    json_t *value;

    out->pairs = arena_array(a, json_object_size(object) + 1, sizeof(*out->pairs));
    if (!out->pairs)
        return err_code(err, ERR_NO_MEMORY);
    json_object_foreach(object, key, value)
    {
        if (!json_is_string(value) && !json_is_null(value))
            return err_set(err, ERR_INVALID, "the metadata %s is not text", key);
        out->pairs[out->count++] = (struct str_pair){
            arena_str(a, str_z(key)),
            arena_str(a, str_n(json_string_value(value), json_string_length(value)))};
    }
    qsort(out->pairs, out->count, sizeof(*out->pairs), pairs_order);
    return 0;
}

int migrate_read_pairs(struct arena *a, struct str text, struct str_pairs *out, struct err *err)
{
    json_t *json = NULL;
    int code = 0;

    *out = (struct str_pairs){0};
    if (!text.p || str_eq(text, STR("null")))
        return 0;
    code = json_read(&json, text, err);
    if (code == 0 && !json_is_object(json))
        code = err_set(err, ERR_INVALID, "metadata is not an object");
    if (code == 0)
        code = pairs_fill(a, json, out, err);
    json_decref(json);
    return code;
}

/* Reads the parents, a JSON array of strings. */
static int commit_read_parents(struct arena *a, struct str text, struct lake_commit *out,
                               struct err *err)
{
    json_t *json = NULL, *item;
    size_t i;
    int code = text.p ? json_read(&json, text, err) : 0;

    out->parents = arena_array(a, json_array_size(json) + 1, sizeof(*out->parents));
    if (code == 0 && !out->parents)
        code = err_code(err, ERR_NO_MEMORY);
    if (code == 0)
        json_array_foreach(json, i, item) out->parents[out->parent_count++] =
            arena_str(a, str_n(json_string_value(item), json_string_length(item)));
    json_decref(json);
    return code;
}

/* --- commits --- */

enum {
    COMMIT_ID,
    COMMIT_COMMITTER,
    COMMIT_MESSAGE,
    COMMIT_CREATED,
    COMMIT_TREE,
    COMMIT_METADATA,
    COMMIT_PARENTS,
    COMMIT_VERSION,
};

int migrate_read_commit(struct arena *a, const struct source_row *from, struct lake_commit *out,
                        struct err *err)
{
    const struct str *v = from->values;

    *out = (struct lake_commit){
        .id = v[COMMIT_ID],
        .committer = v[COMMIT_COMMITTER],
        .message = v[COMMIT_MESSAGE],
        .created_ms = source_integer(from, COMMIT_CREATED),
        .tree = v[COMMIT_TREE],
        .version = (int32_t)source_integer(from, COMMIT_VERSION),
    };
    int code = migrate_read_pairs(a, v[COMMIT_METADATA], &out->metadata, err);
    if (code == 0)
        code = commit_read_parents(a, v[COMMIT_PARENTS], out, err);
    if (code < 0)
        return err_wrap(err, ERR_INVALID, "the commit " STR_FMT,
                        STR_ARG(str_head(out->id, LAKE_ID_LEN)));
    return 0;
}

/* Moves the encoded record into the arena. */
static int row_encoded(struct arena *a, struct buf *record, struct migrate_row *out,
                       struct err *err)
{
    int code = buf_error(record);

    out->value = arena_str(a, buf_str(record));
    buf_release(record);
    if (code == 0)
        code = arena_error(a);
    return code < 0 ? err_code(err, code) : 0;
}

static int migrate_row_commit(struct migrate_repo *m, struct arena *a,
                              const struct source_row *from, struct str present,
                              struct migrate_row *out, struct err *err)
{
    struct buf record = {0};
    struct lake_commit c;
    int code = migrate_read_commit(a, from, &c, err);

    if (code < 0)
        return code;
    const struct lineage_commit *known = lineage_find(&m->lineage, c.id);
    BUG_ON(!known); /* the lineage was read in the same transaction as this row */
    c.generation = known->generation;
    out->name = c.id;
    out->is_first = known->is_first;
    lake_commit_write(&record, &c);
    return row_encoded(a, &record, out, err);
}

/* --- refs --- */

/* Checks that the commit of a ref is in the source. A ref without a commit passes. */
static int row_check_head(const struct migrate_repo *m, const char *kind, struct str name,
                          struct str commit_id, struct err *err)
{
    return !commit_id.len || lineage_find(&m->lineage, commit_id)
               ? 0
               : err_set(err, ERR_INVALID, "the %s " STR_FMT " leads to a commit that is missing",
                         kind, STR_ARG(name));
}

static int migrate_row_tag(struct migrate_repo *m, struct arena *a, const struct source_row *from,
                           struct str present, struct migrate_row *out, struct err *err)
{
    struct lake_tag tag = {.id = from->values[0], .commit_id = from->values[1]};
    struct buf record = {0};
    int code = lake_check_tag(tag.id, err);

    if (code == 0)
        code = row_check_head(m, "tag", tag.id, tag.commit_id, err);
    if (code < 0)
        return err_wrap(err, code, "the tag " STR_FMT, STR_ARG(str_head(tag.id, LAKE_NAME_MAX)));
    out->name = tag.id;
    lake_tag_write(&record, &tag);
    return row_encoded(a, &record, out, err);
}

/* Sets the staging token and the epoch of a branch. If an earlier run has put the branch's row,
 * both are taken from that row; otherwise they are new. A token names a partition that is dropped
 * later, so weir does not take the source's token (D10). */
static void branch_set_own(struct lake_branch *b, struct migrate_repo *m, struct arena *a,
                           struct str present)
{
    struct lake_branch before;
    bool is_there = present.p && lake_branch_read(&before, a, present, NULL) == 0;

    b->staging = is_there ? before.staging : lake_new_token(a, &m->repo, b->id);
    b->epoch = is_there ? before.epoch : lake_new_epoch();
}

static int migrate_row_branch(struct migrate_repo *m, struct arena *a,
                              const struct source_row *from, struct str present,
                              struct migrate_row *out, struct err *err)
{
    struct lake_branch b = {.id = from->values[0], .commit_id = from->values[1], .revision = 1};
    struct buf record = {0};
    int code = lake_check_branch(b.id, err);

    if (code == 0)
        code = row_check_head(m, "branch", b.id, b.commit_id, err);
    if (code < 0)
        return err_wrap(err, code, "the branch " STR_FMT, STR_ARG(str_head(b.id, LAKE_NAME_MAX)));
    branch_set_own(&b, m, a, present);
    out->name = b.id;
    lake_branch_write(&record, &b);
    return row_encoded(a, &record, out, err);
}

/* --- staged rows --- */

/* Makes the row of a staged change. A row whose path is empty, or longer than a tree allows, could
 * never be committed, so it is not moved (out->left). */
static int migrate_row_staged(struct migrate_repo *m, struct arena *a,
                              const struct source_row *from, struct str present,
                              struct migrate_row *out, struct err *err)
{
    struct lake_staged s = {.identity = from->values[1], .data = from->values[2]};
    struct buf record = {0};

    out->name = from->values[0];
    out->left = out->name.len == 0 || out->name.len > LAKE_PATH_MAX;
    if (!s.identity.p)
        s.data = STR_EMPTY;
    lake_staged_write(&record, &s);
    return row_encoded(a, &record, out, err);
}

#define COMMIT_COLUMNS                                                                             \
    "id, committer, message, floor(extract(epoch FROM creation_date) * 1000)::bigint::text, "      \
    "meta_range_id, metadata::text, array_to_json(parents)::text, version::text"

const struct migrate_table migrate_tables[MIGRATE_COPIED] = {
    [MIGRATE_COMMITS] = {"commits",
                         "SELECT " COMMIT_COLUMNS " FROM graveler_commits WHERE repository_id = $1 "
                         "AND id COLLATE \"C\" > $2 ORDER BY id COLLATE \"C\"",
                         migrate_row_commit},
    [MIGRATE_TAGS] = {"tags",
                      "SELECT id, commit_id FROM graveler_tags WHERE repository_id = $1 AND id "
                      "COLLATE \"C\" > $2 ORDER BY id COLLATE \"C\"",
                      migrate_row_tag},
    [MIGRATE_BRANCHES] = {"branches",
                          "SELECT id, commit_id FROM graveler_branches WHERE "
                          "repository_id = $1 AND id COLLATE \"C\" > $2 ORDER BY id COLLATE \"C\"",
                          migrate_row_branch},
    [MIGRATE_STAGED] = {"key",
                        "SELECT key, identity, data FROM graveler_staging_kv WHERE staging_token = "
                        "$1 AND ($2::bytea = '' OR key > $2) ORDER BY key",
                        migrate_row_staged},
};

/* --- reading tables --- */

int migrate_each(struct migrate_repo *m, const char *select, struct str of, struct str after,
                 migrate_row_fn *fn, void *ctx, struct err *err)
{
    enum { NOTE_EVERY = 1000 };
    struct source_rows *rows = NULL;
    struct source_row row;
    struct str params[] = {of, after};
    struct arena a = {0};
    int code = source_rows_open(&rows, m->source, select, params, ARRAY_SIZE(params), err);

    while (code == 0 && (code = source_rows_next(rows, &row, err)) == 0) {
        arena_reset(&a);
        code = fn(m, &a, &row, ctx, err);
        if (code == 0 && ++*m->rows % NOTE_EVERY == 0)
            code = lake_progress_note(m->options->progress, *m->rows, err);
    }
    source_rows_close(rows);
    arena_release(&a);
    return code == ERR_END ? 0 : code;
}

int migrate_each_staged(struct migrate_repo *m, const struct lake_branch *b, struct str after,
                        migrate_row_fn *fn, void *ctx, struct err *err)
{
    static const char select[] =
        "SELECT staging_token FROM graveler_branches WHERE repository_id = $1 AND id = $2";
    struct source_rows *rows = NULL;
    struct str params[] = {m->repo.id, b->id}, token = STR_EMPTY;
    struct source_row row;
    struct arena a = {0};
    int code = source_rows_open(&rows, m->source, select, params, ARRAY_SIZE(params), err);

    if (code == 0 && (code = source_rows_next(rows, &row, err)) == 0)
        token = arena_str(&a, row.values[0]);
    source_rows_close(rows);
    code = code == ERR_END ? 0 : code;
    if (code == 0 && token.len)
        code = migrate_each(m, migrate_tables[MIGRATE_STAGED].select, token, after, fn, ctx, err);
    arena_release(&a);
    return code;
}

int migrate_each_branch(struct migrate_repo *m, struct str from,
                        int (*fn)(struct migrate_repo *m, const struct lake_branch *b,
                                  struct err *err),
                        struct err *err)
{
    struct arena keys = {0}, a = {0};
    struct kv_range range = {.prefix = STR("branches/"),
                             .from = lake_key_in(&keys, STR_EMPTY, "branches", from).key};
    struct kv_scan *scan = NULL;
    struct str key, record;
    int code = kv_scan_open(&scan, m->lake->kv, NULL, m->repo.partition, &range, err);

    while (code == 0 && (code = kv_scan_next(scan, &key, &record, err)) == 0) {
        struct lake_branch b;
        arena_reset(&a);
        code = lake_branch_read(&b, &a, arena_str(&a, record), err);
        if (code == 0)
            code = fn(m, &b, err);
    }
    kv_scan_free(scan);
    arena_release(&keys);
    arena_release(&a);
    return code == ERR_END ? 0 : code;
}
