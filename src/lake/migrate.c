/* Migrates one repository after the other. */
#include "lake/gc.h"
#include "lake/migrate_upload.h"
#include "lake/names.h"
#include "lake/place.h"

#include "base/ids.h"

/* --- reports --- */

static void migrate_tell(struct migrate_repo *m, enum lake_migrate_state state)
{
    m->told.state = state;
    if (m->options->told)
        m->options->told(m->options->ctx, &m->told);
}

/* --- beginning --- */

static void migrate_name_partition(struct migrate_repo *m)
{
    m->repo.token = m->mark.token;
    m->repo.partition =
        arena_fmt(&m->arena, STR_FMT "-" STR_FMT, STR_ARG(m->repo.id), STR_ARG(m->repo.token));
}

/* Chooses a new partition for the repository, and begins the copy. */
static int migrate_begin(struct migrate_repo *m, struct err *err)
{
    char token[ID_TIME_LEN + 1];
    struct str stamp = m->mark.stamp;

    id_time(token);
    m->mark = (struct migrate_mark){.token = arena_lower(&m->arena, str_z(token)), .stamp = stamp};
    migrate_name_partition(m);
    return migrate_mark_save(m, err);
}

/* Finds out whether the name is in use. *present: an earlier run has moved the repository.
 * ERR_EXISTS: a repository that was not migrated has the name. */
static int migrate_find_present(struct migrate_repo *m, bool *present, struct err *err)
{
    struct lake_repo repo;
    int code = lake_repo_get(m->lake, &m->arena, m->repo.id, &repo, err);

    *present = code == 0;
    if (code == ERR_NOT_FOUND)
        return 0;
    if (code == 0 && !str_eq(repo.token, m->mark.token))
        return err_set(err, ERR_EXISTS, "the lake has another repository of this name");
    m->repo.stamp = repo.stamp;
    return code;
}

/* Checks that the bucket of the namespace exists, before any row is copied. */
static int migrate_check_space(struct migrate_repo *m, struct err *err)
{
    struct str bucket, prefix;
    struct object_place p;
    int code = lake_check_space(m->repo.space, &bucket, &prefix, err);

    if (code < 0 || m->lake->o.place)
        return code;
    code = lake_place_open(&p, m->lake, &m->arena, m->repo.owner, bucket, STR(LAKE_CLAIM),
                           PLACE_READ, err);
    return code < 0 ? code : object_place_end(&p, 0, err);
}

static int migrate_check(struct migrate_repo *m, struct err *err)
{
    int code = lake_check_repo(m->repo.id, err);

    if (code == 0)
        code = lake_check_branch(m->repo.default_branch, err);
    return code < 0 ? code : migrate_check_space(m, err);
}

/* --- moving --- */

static int migrate_add_lineage(struct migrate_repo *m, struct arena *a,
                               const struct source_row *row, void *ctx, struct err *err)
{
    struct lake_commit c;
    int code = migrate_read_commit(a, row, &c, err);

    return code < 0 ? code : lineage_add(&m->lineage, &c, err);
}

static int migrate_read_lineage(struct migrate_repo *m, struct err *err)
{
    int code = migrate_each(m, migrate_tables[MIGRATE_COMMITS].select, m->repo.id, STR_EMPTY,
                            migrate_add_lineage, NULL, err);

    return code < 0 ? code : lineage_settle(&m->lineage, err);
}

static int migrate_drop_token(struct migrate_repo *m, const struct lake_branch *b, struct err *err)
{
    return kv_drop(m->lake->kv, b->staging, err);
}

/* Discards the copy, because the source has changed since it was made. */
static int migrate_undo(struct migrate_repo *m, struct err *err)
{
    int code = migrate_each_branch(m, STR_EMPTY, migrate_drop_token, err);

    if (code == 0)
        code = kv_drop(m->lake->kv, m->repo.partition, err);
    return code < 0 ? code : migrate_begin(m, err);
}

static int migrate_rows(struct migrate_repo *m, struct err *err)
{
    struct err late = {0};
    int code = migrate_copy(m, err);

    if (code < 0)
        return code;
    migrate_tell(m, LAKE_MIGRATE_COMPARING);
    code = migrate_compare(m, err);
    if (code != ERR_CONFLICT)
        return code;
    int undone = migrate_undo(m, &late);
    if (undone < 0)
        return err_set(err, undone, "%s", late.text);
    return err_wrap(err, ERR_CONFLICT,
                    "the source has changed since the copy began, so the copy "
                    "was thrown away; run the migration again");
}

/* Writes the repository's record, after which the repository can be seen. Its namespace already has
 * files of lakeFS, so the repository is made like a bare one. */
static int migrate_make_repo(struct migrate_repo *m, struct err *err)
{
    struct lake_repo_options o = {.id = m->repo.id,
                                  .space = m->repo.space,
                                  .default_branch = m->repo.default_branch,
                                  .owner = m->repo.owner,
                                  .bare = true,
                                  .token = m->repo.token,
                                  .created_ms = m->repo.created_ms};
    struct lake_repo made;

    lake_step_begin("lake.migrate_row");
    int code = lake_repo_create(m->lake, &m->arena, &o, &made, err);
    lake_step_end("lake.migrate_row");
    if (code == 0)
        m->repo.stamp = made.stamp;
    return code;
}

/* Ends the migration of a repository whose record is written: allows collections of its garbage,
 * and sets the mark's stage to MIGRATE_ENDED. */
static int migrate_end(struct migrate_repo *m, struct err *err)
{
    int code = lake_gc_allow(m->lake, &m->arena, &m->repo, err);

    if (code < 0 || m->mark.stage == MIGRATE_ENDED)
        return code;
    m->mark.stage = MIGRATE_ENDED;
    return migrate_mark_save(m, err);
}

static int migrate_move(struct migrate_repo *m, struct err *err)
{
    int code = migrate_check(m, err);

    if (code == 0 && (!m->mark.token.len || m->mark.stage == MIGRATE_ENDED))
        code = migrate_begin(m, err);
    migrate_name_partition(m);
    if (code == 0)
        code = migrate_read_lineage(m, err);
    if (code == 0)
        code = migrate_rows(m, err);
    if (code == 0)
        code = migrate_make_repo(m, err);
    if (code == 0)
        code = migrate_end(m, err);
    if (code == 0)
        migrate_tell(m, LAKE_MIGRATE_DONE);
    return code;
}

static int migrate_run(struct migrate_repo *m, struct err *err)
{
    bool present = false;
    int code = migrate_mark_load(m, err);

    if (code == 0)
        code = migrate_find_present(m, &present, err);
    if (code < 0 || !present)
        return code < 0 ? code : migrate_move(m, err);
    migrate_name_partition(m);
    code = migrate_end(m, err);
    if (code == 0)
        migrate_tell(m, LAKE_MIGRATE_PRESENT);
    return code;
}

/* Whether the error concerns only this repository, so that the migration of the others goes on. */
static bool migrate_is_own(int code)
{
    static const int own[] = {ERR_INVALID, ERR_EXISTS,   ERR_IN_USE,    ERR_NO_BUCKET,  ERR_DENIED,
                              ERR_CORRUPT, ERR_CONFLICT, ERR_TOO_LARGE, ERR_UNSUPPORTED};

    for (size_t i = 0; i < ARRAY_SIZE(own); i++)
        if (code == own[i])
            return true;
    return false;
}

/* --- all repositories --- */

struct migration {
    struct lake *lake;
    struct source *source;
    const struct lake_migrate_options *options;
    uint64_t rows;
};

static int migration_repo(struct migration *g, const struct source_row *row, struct err *err)
{
    struct migrate_repo m = {
        .lake = g->lake, .source = g->source, .options = g->options, .rows = &g->rows};

    m.repo = (struct lake_repo){.id = arena_str(&m.arena, row->values[0]),
                                .space = arena_str(&m.arena, row->values[1]),
                                .created_ms = source_integer(row, 2),
                                .default_branch = arena_str(&m.arena, row->values[3]),
                                .owner = g->options->owner};
    m.told.id = m.repo.id;
    migrate_tell(&m, LAKE_MIGRATE_COPYING);
    int code = migrate_run(&m, err);
    if (migrate_is_own(code)) {
        m.told.error = str_z(err->text);
        migrate_tell(&m, LAKE_MIGRATE_FAILED);
        code = 0;
    }
    lineage_release(&m.lineage);
    arena_release(&m.batch);
    arena_release(&m.arena);
    return code;
}

static int migration_repos(struct migration *g, struct err *err)
{
    static const char select[] =
        "SELECT id, storage_namespace, floor(extract(epoch FROM creation_date) * "
        "1000)::bigint::text, default_branch FROM graveler_repositories ORDER BY id COLLATE \"C\"";
    struct source_rows *rows = NULL;
    struct source_row row;
    int code = source_rows_open(&rows, g->source, select, NULL, 0, err);

    while (code == 0 && (code = source_rows_next(rows, &row, err)) == 0) {
        code = migration_repo(g, &row, err);
        if (code == 0)
            code = lake_progress_note(g->options->progress, g->rows, err);
    }
    source_rows_close(rows);
    return code == ERR_END ? 0 : code;
}

/* Counts the rows of the source that belong to no repository, or to no branch. These rows are not
 * copied. */
static int migration_count_lost(struct migration *g, struct lake_migrate_totals *out,
                                struct err *err)
{
    static const char orphans[] =
        "SELECT count(DISTINCT staging_token)::text, count(*)::text FROM graveler_staging_kv s "
        "WHERE NOT EXISTS (SELECT FROM graveler_branches b JOIN graveler_repositories r ON r.id = "
        "b.repository_id WHERE b.staging_token = s.staging_token AND b.staging_token <> '')";
    static const char homeless[] =
        "SELECT ((SELECT count(*) FROM graveler_commits WHERE repository_id NOT IN (SELECT id FROM "
        "graveler_repositories)) + (SELECT count(*) FROM graveler_branches WHERE repository_id NOT "
        "IN (SELECT id FROM graveler_repositories)) + (SELECT count(*) FROM graveler_tags WHERE "
        "repository_id NOT IN (SELECT id FROM graveler_repositories)))::text";
    struct source_row row;
    struct arena a = {0};
    int code = source_ask(g->source, orphans, &a, &row, err);

    if (code == 0) {
        out->orphan_tokens = (uint64_t)source_integer(&row, 0);
        out->orphan_rows = (uint64_t)source_integer(&row, 1);
        code = source_ask(g->source, homeless, &a, &row, err);
    }
    if (code == 0)
        out->homeless = (uint64_t)source_integer(&row, 0);
    arena_release(&a);
    return code;
}

int lake_migrate(struct lake *l, const struct lake_migrate_options *o,
                 struct lake_migrate_totals *out, struct err *err)
{
    struct migration g = {.lake = l, .options = o};
    struct source_options source = {o->url, o->timeout_ms, o->canceled};
    int code = source_open(&g.source, &source, err);

    *out = (struct lake_migrate_totals){0};
    if (code == 0)
        code = migration_count_lost(&g, out, err);
    if (code == 0)
        code = migrate_uploads(l, g.source, &out->uploads, err);
    if (code == 0)
        code = migration_repos(&g, err);
    source_close(g.source);
    return code == ERR_CANCELED
               ? err_set(err, code, "the migration was stopped; begin it again, and it goes on")
               : code;
}
