/* Local storages that were added to this weir. The rows of the database's family "server"
 * (docs/db.md) map "storage:<name>" to "<id> <folder>", and "storage_ids" to the last id that was
 * given. They are in the database and not in configDB because the folder is on this machine. */
#include "route/route.h"

#include "base/vec.h"
#include "object/local/local.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>

enum { FIRST_ID = 1 /* id of the first storage */, NAME_LONGEST = 64 };

static const struct str ROW = {"storage:", 8}, IDS = {"storage_ids", 11};

static int open_one(struct routes *r, struct local_options *o, struct err *err)
{
    struct storage *s;
    int code = local_open(&s, o, err);

    if (code == 0)
        code = routes_add_storage(r, s, err);
    return code;
}

/* --- at the start --- */

static int storage_open_row(struct routes *r, const struct local_options *from, struct str key,
                            struct str value, struct err *err)
{
    struct local_options o = *from;
    struct str id_text, folder_text;
    char *name = str_dup(str_skip(key, ROW.len)), *folder;
    uint64_t id = 0;
    int code = 0;

    str_cut(value, ' ', &id_text, &folder_text);
    folder = str_dup(folder_text);
    if (str_u64(id_text, &id) < 0 || id > UINT32_MAX)
        code = err_set(err, ERR_CORRUPT, "the row of the storage %s cannot be read", name);
    o.name = name;
    o.folder = folder;
    o.id = (uint32_t)id;
    o.may_be_missing = true; /* one dead disk must not make the other storages unusable */
    if (code == 0)
        code = open_one(r, &o, err);
    free(name);
    free(folder);
    return code;
}

int routes_open_local(struct routes *r, const struct local_options *main, struct err *err)
{
    struct local_options o = *main;
    struct buf end = {0};
    struct db_view *view = NULL;
    struct db_iter *it = NULL;
    struct str key, value;
    int code;

    o.id = FIRST_ID;
    code = open_one(r, &o, err);
    db_prefix_end(ROW, &end);
    struct db_range range = {.from = ROW, .to = buf_str(&end)};
    if (code == 0)
        code = db_snapshot(&view, o.db, err);
    if (code == 0)
        code = db_iter_open(&it, view, db_cf(o.db, "server"), &range, err);
    while (code == 0) {
        code = db_iter_next(it, &key, &value, err);
        if (code == 0)
            code = storage_open_row(r, main, key, value, err);
    }
    db_iter_close(it);
    if (view)
        db_snapshot_free(view);
    buf_release(&end);
    return code == ERR_END ? 0 : code;
}

/* --- adding --- */

static bool is_empty(const char *folder)
{
    DIR *dir = opendir(folder);
    bool empty = true;

    for (struct dirent *e; dir && empty && (e = readdir(dir));)
        empty = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
    if (dir)
        closedir(dir);
    return empty;
}

static int new_folder_check(struct routes *r, struct str name, const char *folder, struct err *err)
{
    for (size_t i = 0; i < name.len; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-", name.p[i]) || !name.p[i])
            name.len = 0;
    if (name.len == 0 || name.len > NAME_LONGEST)
        return err_set(err, ERR_INVALID,
                       "a storage's name is up to %d lower-case letters, digits and '-'",
                       NAME_LONGEST);
    if (routes_storage(r, name))
        return err_set(err, ERR_EXISTS, "there is a storage " STR_FMT " already", STR_ARG(name));
    if (folder[0] != '/' || strlen(folder) > PATH_MAX - 256 || strstr(folder, "/../") ||
        strchr(folder, '\n'))
        return err_set(err, ERR_INVALID, "the folder must be an absolute path without '..'");
    if (!is_empty(folder))
        return err_set(err, ERR_INVALID, "%s is not empty", folder);
    return 0;
}

struct new_id {
    struct db_cf *cf;
    uint64_t id;
};

static int take_id(struct db_tx *tx, void *ctx, struct err *err)
{
    struct new_id *n = ctx;
    struct buf text = {0};
    int code = db_get(db_tx_view(tx), n->cf, IDS, &text, err);

    n->id = FIRST_ID;
    if (code == ERR_NOT_FOUND)
        code = 0;
    else if (code == 0)
        code = str_u64(buf_str(&text), &n->id);
    if (code == 0 && ++n->id > UINT32_MAX)
        code = err_set(err, ERR_RANGE, "no more storages can be added");
    if (code == 0) {
        buf_reset(&text);
        buf_append_u64(&text, n->id);
        db_tx_put(tx, n->cf, IDS, buf_str(&text));
    }
    buf_release(&text);
    return code;
}

static int storage_keep_row(const struct local_options *o, struct err *err)
{
    struct buf key = {0}, value = {0};
    int code;

    buf_append_str(&key, ROW);
    buf_append_z(&key, o->name);
    buf_appendf(&value, "%ju %s", (uintmax_t)o->id, o->folder);
    code = db_put(o->db, db_cf(o->db, "server"), buf_str(&key), buf_str(&value), DB_DURABLE, err);
    buf_release(&key);
    buf_release(&value);
    return code;
}

/* Adds the storage. Its row is written last, so a crash before that leaves only a folder that no
 * row names. */
int routes_add_local(struct routes *r, const struct local_options *wanted, struct err *err)
{
    struct local_options o = *wanted;
    struct new_id id = {.cf = db_cf(o.db, "server")};
    int code = new_folder_check(r, str_z(o.name), o.folder, err);

    if (code == 0)
        code = db_apply(o.db, DB_DURABLE, take_id, &id, err);
    o.id = (uint32_t)id.id;
    if (code == 0)
        code = open_one(r, &o, err);
    return code == 0 ? storage_keep_row(&o, err) : code;
}

/* --- removing --- */

static int find_row(struct db *db, struct str name, struct buf *key, struct err *err)
{
    struct buf row = {0};

    buf_append_str(key, ROW);
    buf_append_str(key, name);
    int code = db_get(db_latest(db), db_cf(db, "server"), buf_str(key), &row, err);
    buf_release(&row);
    return code;
}

int routes_check_removal(struct routes *r, struct db *db, struct str name, struct err *err)
{
    const struct storage *s = routes_storage(r, name);
    struct buf key = {0};
    int code = find_row(db, name, &key, err);

    buf_release(&key);
    if (!s)
        return err_set(err, ERR_NOT_FOUND, "there is no storage " STR_FMT, STR_ARG(name));
    if (code == ERR_NOT_FOUND)
        return err_set(err, ERR_INVALID, "the storage " STR_FMT " is the data folder's own",
                       STR_ARG(name));
    if (code == 0 && s == routes_main(r))
        return err_set(err, ERR_IN_USE,
                       "it is the main storage; make another storage the main one first");
    return code;
}

/* Removes the storage. Its row is deleted first, so after a crash the storage either still exists
 * or is fully removed. */
int routes_remove_local(struct routes *r, struct db *db, struct str name, struct err *err)
{
    struct storage *s = routes_storage(r, name);
    struct buf key = {0};
    int code = routes_check_removal(r, db, name, err);

    if (code == 0)
        code = find_row(db, name, &key, err);
    if (code == 0)
        code = db_delete(db, db_cf(db, "server"), buf_str(&key), DB_DURABLE, err);
    if (code == 0) {
        routes_retire_storage(r, name);
        local_give_up(s);
    }
    buf_release(&key);
    return code;
}
