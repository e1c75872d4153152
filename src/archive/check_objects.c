/* The check of an account's folder: compares each object with the record, and the record with the
 * objects. */
#include "archive/check_int.h"

#include "archive/bundle.h"
#include "archive/saved.h"

#include <stdlib.h>

/* --- the lines of the record --- */

static struct record_repo *check_line(struct account_check *k, struct str name)
{
    return map_get(&k->lines, name);
}

static unsigned char *check_has_of(struct account_check *k, const struct record_repo *line)
{
    return &k->has[line - k->record.repos.items];
}

/* An object of a repository that the record does not have. A repository that was renamed leaves its
 * objects under the old name, with an .error object that says so. */
static int check_strange(struct account_check *k, struct str key, struct str repo, struct err *err)
{
    struct object_info info;
    int code = 0;

    if (!check_is_settled(k, &code, err))
        return code;
    code = shelf_head(&k->shelf, &k->object,
                      archive_key(k->account, &k->object, ARCHIVE_REPO_ERROR, repo), &info, err);
    if (code == ERR_NOT_FOUND)
        check_found(k, key, "the record does not have this repository");
    return code == ERR_NOT_FOUND ? 0 : code;
}

/* --- each kind of object --- */

/* Compares a bundle with its line. `info` is from the listing, which has no metadata. */
static int check_bundle_line(struct account_check *k, const struct object_info *listed,
                             const struct record_repo *r, struct err *err)
{
    struct bundle_meta meta;
    struct object_info info;
    int code = shelf_head(&k->shelf, &k->object, listed->key, &info, err);

    if (code < 0)
        return code == ERR_NOT_FOUND ? 0 : code;
    bool has_meta = bundle_meta_read(&meta, &info) == 0;
    bool is_same = str_eq(listed->etag, r->etag) && listed->size == r->bytes;
    /* Tidying a bundle changes its bytes but not its refs, so the refs are compared. */
    if (!is_same && !(has_meta && str_eq(str_z(meta.refs_digest), r->refs_digest)))
        check_found(k, listed->key, "the bundle is not the one that the record describes");
    if (has_meta && *meta.source_id && !str_eq(str_z(meta.source_id), r->id))
        check_found(k, listed->key, "the bundle belongs to another repository");
    return 0;
}

static int check_bundle(struct account_check *k, const struct object_info *info,
                        const struct archive_object *o, struct err *err)
{
    const struct record_repo *r = check_line(k, o->repo);

    if (!r)
        return check_strange(k, info->key, o->repo, err);
    *check_has_of(k, r) |= CHECK_HAS_BUNDLE;
    return r->refs_digest.len ? check_bundle_line(k, info, r, err) : 0;
}

static int check_zip(struct account_check *k, const struct object_info *info,
                     const struct archive_object *o, struct err *err)
{
    const struct record_repo *r = check_line(k, o->repo);

    if (!r)
        return check_strange(k, info->key, o->repo, err);
    *check_has_of(k, r) |= CHECK_HAS_ZIP;
    return 0;
}

static bool line_has_error(const struct record_repo *r)
{
    return r->code != ARCHIVE_OK && r->code != ARCHIVE_UNCHANGED;
}

/* `name` is that of the repository, as its line has it. */
static int check_error_of(struct account_check *k, const struct object_info *info, struct str name,
                          struct err *err)
{
    const struct record_repo *r = check_line(k, name);
    int code = 0;

    if (!r)
        return 0; /* of a name that a repository had before */
    *check_has_of(k, r) |= CHECK_HAS_ERROR;
    if (!line_has_error(r) && check_is_settled(k, &code, err))
        check_found(k, info->key, "there is an .error object, and the record has no error");
    return code;
}

static int check_error(struct account_check *k, const struct object_info *info,
                       const struct archive_object *o, struct err *err)
{
    return check_error_of(k, info, o->repo, err);
}

/* --- extras --- */

static bool is_number(struct str text)
{
    uint64_t n;

    return str_u64(text, &n) == 0;
}

/* The id of the repository, wiki or gist whose bundle this is, as the key or the record tells it.
 * Empty: neither tells it. `name` is the key's part behind '@', without ".bundle". */
static struct str extra_source_id(struct account_check *k, const struct archive_object *o,
                                  struct str name)
{
    const struct record_repo *r = o->repo.len ? check_line(k, o->repo) : NULL;
    struct str gists = STR("gists/"), mark, time;

    if (!o->repo.len)
        return str_starts(name, gists) ? str_skip(name, gists.len) : STR_EMPTY;
    if (str_eq(name, STR("wiki")))
        return r ? r->id : STR_EMPTY;
    if (!str_cut(name, '-', &mark, &time))
        mark = name;
    return is_number(mark) ? mark : STR_EMPTY; /* `<repo>@<id>[-<time>].bundle` */
}

static int check_extra_bundle(struct account_check *k, const struct object_info *listed,
                              const struct archive_object *o, struct err *err)
{
    struct str id = extra_source_id(k, o, str_head(o->extra, o->extra.len - STR(".bundle").len));
    struct bundle_meta meta;
    struct object_info info;
    int code = 0;

    if (o->repo.len && !check_line(k, o->repo))
        code = check_strange(k, listed->key, o->repo, err);
    if (code < 0 || !id.len)
        return code;
    code = shelf_head(&k->shelf, &k->object, listed->key, &info, err);
    if (code < 0)
        return code == ERR_NOT_FOUND ? 0 : code;
    if (bundle_meta_read(&meta, &info) < 0)
        check_found(k, listed->key, "the bundle has no metadata");
    else if (info.size < meta.pack_offset)
        check_found(k, listed->key, "the bundle is shorter than its header");
    else if (*meta.source_id && !str_eq(str_z(meta.source_id), id))
        check_found(k, listed->key, "the bundle belongs to another repository");
    return 0;
}

/* The key of the bundle that a verdict is about. */
static struct str verdict_bundle_key(struct account_check *k, const struct archive_object *o)
{
    struct str name = str_head(o->extra, o->extra.len - STR("audit.json").len);

    if (!name.len) /* `<repo>@audit.json` */
        return archive_key(k->account, &k->object, ARCHIVE_BUNDLE, o->repo);
    return archive_key(
        k->account, &k->object, ARCHIVE_EXTRA,
        arena_fmt(&k->object, STR_FMT "@" STR_FMT "bundle", STR_ARG(o->repo), STR_ARG(name)));
}

/* The .error object of a repository whose name another one has taken: `<repo>@<id>.error`. */
static int check_extra_error(struct account_check *k, const struct object_info *info,
                             const struct archive_object *o, struct err *err)
{
    struct str id = str_head(o->extra, o->extra.len - STR(".error").len);

    return check_error_of(
        k, info, arena_fmt(&k->object, STR_FMT "@" STR_FMT, STR_ARG(o->repo), STR_ARG(id)), err);
}

static int check_verdict(struct account_check *k, const struct object_info *info,
                         const struct archive_object *o, struct err *err)
{
    struct object_info bundle;
    int code = shelf_head(&k->shelf, &k->object, verdict_bundle_key(k, o), &bundle, err);
    if (code == ERR_NOT_FOUND)
        check_found(k, info->key, "the verdict of an audit has no bundle");
    return code == ERR_NOT_FOUND ? 0 : code;
}

/* Files of releases and LFS objects, which are in folders behind '@', are not in the record. */
static int check_extra(struct account_check *k, const struct object_info *info,
                       const struct archive_object *o, struct err *err)
{
    if (o->repo.len && str_chr(o->extra, '/') >= 0)
        return 0;
    if (str_ends(o->extra, STR(".bundle")))
        return check_extra_bundle(k, info, o, err);
    if (str_ends(o->extra, STR(".error")))
        return check_extra_error(k, info, o, err);
    return saved_is_verdict(info->key) ? check_verdict(k, info, o, err) : 0;
}

/* --- the folder --- */

typedef int check_listed_fn(struct account_check *k, const struct object_info *info,
                            const struct archive_object *o, struct err *err);
static check_listed_fn *const check_kinds[ARCHIVE_KINDS] = {
    [ARCHIVE_BUNDLE] = check_bundle,
    [ARCHIVE_ZIP] = check_zip,
    [ARCHIVE_REPO_ERROR] = check_error,
    [ARCHIVE_EXTRA] = check_extra,
};

static int check_listed(struct account_check *k, const struct object_info *info, struct err *err)
{
    struct archive_object o;

    arena_reset(&k->object);
    if (archive_key_read(&o, info->key) < 0) {
        check_found(k, info->key, "the key is not one of the archive");
        return 0;
    }
    return check_kinds[o.kind] ? check_kinds[o.kind](k, info, &o, err) : 0;
}

static int check_folder(struct account_check *k, struct err *err)
{
    struct arena a = {0};
    struct buf after = {0};
    struct list_result page = {.more = true};
    int code = 0;

    while (code == 0 && page.more) {
        struct list_options o = {.prefix = archive_folder(k->account, &a),
                                 .after = buf_str(&after),
                                 .limit = OBJECT_LIST_MAX};
        code = shelf_list(&k->shelf, &a, &o, &page, err);
        for (size_t i = 0; i < page.count && code == 0; i++)
            code = check_listed(k, &page.entries[i].info, err);
        buf_reset(&after);
        buf_append_str(&after, page.next);
        arena_reset(&a);
    }
    buf_release(&after);
    arena_release(&a);
    return code;
}

/* --- what is missing --- */

static void check_missing(struct account_check *k, const struct record_repo *r)
{
    const struct {
        bool wanted;
        unsigned char has;
        enum archive_kind kind;
        const char *text;
    } rows[] = {
        {r->refs_digest.len > 0, CHECK_HAS_BUNDLE, ARCHIVE_BUNDLE,
         "the record has the bundle, and the satellite lacks it"},
        /* A repository whose name another one has taken has lost its ZIP file to that one. */
        {r->zip.len > 0 && str_chr(r->name, '@') < 0, CHECK_HAS_ZIP, ARCHIVE_ZIP,
         "the record has the ZIP file, and the satellite lacks it"},
        {line_has_error(r), CHECK_HAS_ERROR, ARCHIVE_REPO_ERROR,
         "the record has an error, and the .error object is missing"},
    };

    arena_reset(&k->object);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (rows[i].wanted && !(*check_has_of(k, r) & rows[i].has))
            check_found(k, archive_key(k->account, &k->object, rows[i].kind, r->name),
                        rows[i].text);
}

int check_account_objects(struct account_check *k, struct err *err)
{
    uint64_t stored = 0;

    map_init(&k->lines);
    k->has = xcalloc(k->record.repos.len + 1, 1);
    vec_each (&k->record.repos, struct record_repo *, r)
        map_put(&k->lines, r->name, r);
    int code = check_folder(k, err);
    vec_each (&k->record.repos, const struct record_repo *, r) {
        if (code == 0)
            check_missing(k, r);
        stored += r->refs_digest.len > 0;
        k->check->repos++;
    }
    if (code == 0 && k->has_record && stored != k->record.account.repos_stored)
        check_found(k, STR_EMPTY, "the record counts its repositories wrongly");
    map_release(&k->lines);
    free(k->has);
    return code;
}
