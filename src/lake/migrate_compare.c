/* Compares a copied repository with its source: every row is read from both sides (D9). */
#include "lake/migrate_int.h"

struct compare {
    const struct migrate_table *table;
    struct kv_scan *scan; /* the rows of the copy, in the same order as those of the source */
    uint64_t *count;
    uint64_t firsts; /* number of first parents, each of which must have a mark */
};

static int compare_differs(const struct compare *c, struct str name, const char *why,
                           struct err *err)
{
    return err_set(err, ERR_CONFLICT, "the row %s/" STR_FMT " %s", c->table->kind,
                   STR_ARG(str_head(name, LAKE_NAME_MAX)), why);
}

/* Reads the next row of the copy, and checks that it is the expected one. */
static int compare_next(struct compare *c, struct str name, struct str *value, struct err *err)
{
    struct str key;
    int code = kv_scan_next(c->scan, &key, value, err);

    if (code == 0 && str_eq(str_skip(key, strlen(c->table->kind) + 1), name))
        return 0;
    return code < 0 && code != ERR_END ? code : compare_differs(c, name, "was not copied", err);
}

static int compare_row(struct migrate_repo *m, struct arena *a, const struct source_row *from,
                       void *ctx, struct err *err)
{
    struct compare *c = ctx;
    struct migrate_row want = {0};
    struct str name = from->values[0], present = STR_EMPTY;
    bool left =
        c->table == &migrate_tables[MIGRATE_STAGED] && (name.len == 0 || name.len > LAKE_PATH_MAX);
    int code = left ? 0 : compare_next(c, name, &present, err);

    if (code == 0)
        code = c->table->read(m, a, from, present, &want, err);
    if (code == 0 && !left && !str_eq(want.value, present))
        code = compare_differs(c, name, "differs from the source", err);
    m->told.left += left;
    *c->count += 1;
    c->firsts += want.is_first;
    return code;
}

/* Checks that the copy has no row that the source does not have. */
static int compare_end(struct compare *c, struct err *err)
{
    struct str key, value;
    int code = kv_scan_next(c->scan, &key, &value, err);

    return code == ERR_END ? 0
           : code < 0      ? code
                           : err_set(err, ERR_CONFLICT, "the row " STR_FMT " is not in the source",
                                     STR_ARG(key));
}

/* Compares a table of the repository. If `b` is not NULL, compares the staged rows of that
 * branch. */
static int compare_table(struct migrate_repo *m, enum migrate_stage stage,
                         const struct lake_branch *b, struct compare *c, struct err *err)
{
    struct arena a = {0};
    struct kv_range range;
    int code;

    c->table = &migrate_tables[stage];
    range = (struct kv_range){.prefix = lake_key_in(&a, STR_EMPTY, c->table->kind, STR_EMPTY).key};
    code =
        kv_scan_open(&c->scan, m->lake->kv, NULL, b ? b->staging : m->repo.partition, &range, err);
    if (code == 0)
        code = b ? migrate_each_staged(m, b, STR_EMPTY, compare_row, c, err)
                 : migrate_each(m, c->table->select, m->repo.id, STR_EMPTY, compare_row, c, err);
    if (code == 0)
        code = compare_end(c, err);
    kv_scan_free(c->scan);
    c->scan = NULL;
    arena_release(&a);
    return code;
}

/* Checks that each mark belongs to a first parent, and that there are as many marks as first
 * parents. */
static int compare_firsts(struct migrate_repo *m, uint64_t want, struct err *err)
{
    enum { FIRSTS_NOTE_EVERY = 1000 };
    static const char prefix[] = "firsts/";
    struct kv_range range = {.prefix = STR(prefix)};
    struct kv_scan *scan = NULL;
    struct str key, value;
    uint64_t count = 0;
    int code = kv_scan_open(&scan, m->lake->kv, NULL, m->repo.partition, &range, err);

    while (code == 0 && (code = kv_scan_next(scan, &key, &value, err)) == 0) {
        const struct lineage_commit *c =
            lineage_find(&m->lineage, str_skip(key, sizeof(prefix) - 1));
        if (!c || !c->is_first)
            code =
                err_set(err, ERR_CONFLICT, "the row " STR_FMT " should not be there", STR_ARG(key));
        if (code == 0 && ++count % FIRSTS_NOTE_EVERY == 0)
            code = lake_progress_note(m->options->progress, *m->rows, err);
    }
    kv_scan_free(scan);
    if (code == ERR_END && count != want)
        code = err_set(err, ERR_CONFLICT, "marks of first parents are missing");
    return code == ERR_END ? 0 : code;
}

static int compare_staged(struct migrate_repo *m, const struct lake_branch *b, struct err *err)
{
    struct compare c = {.count = &m->told.staged};

    return compare_table(m, MIGRATE_STAGED, b, &c, err);
}

int migrate_compare(struct migrate_repo *m, struct err *err)
{
    struct compare commits = {.count = &m->told.commits}, tags = {.count = &m->told.tags},
                   branches = {.count = &m->told.branches};
    int code = compare_table(m, MIGRATE_COMMITS, NULL, &commits, err);

    if (code == 0)
        code = compare_firsts(m, commits.firsts, err);
    if (code == 0)
        code = compare_table(m, MIGRATE_TAGS, NULL, &tags, err);
    if (code == 0)
        code = compare_table(m, MIGRATE_BRANCHES, NULL, &branches, err);
    return code < 0 ? code : migrate_each_branch(m, STR_EMPTY, compare_staged, err);
}
