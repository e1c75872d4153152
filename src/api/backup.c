/* Backup: makes a folder with which `weir serve --data` can start. The folder is filled under a
 * temporary name and renamed when it is complete. So a folder with the final name is always a whole
 * backup. */
#include "api/api_int.h"
#include "base/ids.h"
#include "object/local/local.h"
#include "os/file.h"
#include "route/route.h"

#include <limits.h>

enum { COPIED_MAX = 4 * 1024 * 1024 }; /* largest configuration or key file, in bytes */

static int backup_copy_file(const char *from, const char *folder, const char *name, struct err *err)
{
    struct buf text = BUF_INIT(COPIED_MAX), path = BUF_INIT(PATH_MAX);
    int code = file_read(from, &text, err);

    buf_appendf(&path, "%s/%s", folder, name);
    if (code == 0)
        code = file_write_durable(path.p, buf_str(&text), 0600, err);
    if (text.p)
        secure_zero(text.p, text.cap);
    buf_release(&text);
    buf_release(&path);
    return code;
}

/* Copies the database, and the files that its rows name, in the state of one moment. */
static int backup_copy_data(struct api *api, struct storage *objects, const char *folder,
                            struct err *err)
{
    struct buf path = BUF_INIT(PATH_MAX);
    int code;

    buf_appendf(&path, "%s/db", folder);
    local_hold(objects);
    code = db_checkpoint(api->o.db, path.p, err);
    buf_reset(&path);
    buf_appendf(&path, "%s/objects", folder);
    if (code == 0)
        code = local_copy_files(objects, path.p, err);
    local_unhold(objects);
    buf_release(&path);
    return code;
}

/* Copies the files with keys. They are copied after the data, so that the copy has every key that
 * the data need (docs/encryption.md, E4). */
static int backup_copy_keys(struct api *api, const char *folder, struct err *err)
{
    struct buf path = BUF_INIT(PATH_MAX);
    int code = 0;

    buf_appendf(&path, "%s/encryption.keys", api->o.conf->data);
    if (file_exists(path.p))
        code = backup_copy_file(path.p, folder, "encryption.keys", err);
    buf_release(&path);
    return code;
}

static int backup_fill_folder(struct api *api, struct storage *objects, const char *folder,
                              struct err *err)
{
    struct buf key = BUF_INIT(PATH_MAX);
    const char *file = conf_file(api->o.conf);
    int code = dir_make(folder, 0700, err);

    buf_appendf(&key, "%s/secrets.key", api->o.conf->data);
    if (code == 0)
        code = backup_copy_data(api, objects, folder, err);
    if (code == 0)
        code = credentials_keep(api->o.admin, folder, err);
    if (code == 0)
        code = backup_copy_file(key.p, folder, "secrets.key", err);
    if (code == 0)
        code = backup_copy_keys(api, folder, err);
    /* The configuration is copied for people who restore on another machine. A start with the copy
     * does not read it. */
    if (code == 0 && *file && file_exists(file))
        code = backup_copy_file(file, folder, "weir.yaml", err);
    buf_release(&key);
    return code;
}

/* Finds the only local storage, which may be another than the main storage. Remote storages are not
 * copied. A backup is refused when local storages were added: their folders are not in the copy. So
 * a start with the copy would open the original folders, and treat objects that are newer than the
 * copy as garbage. */
static int backup_find_local(struct api *api, struct storage **out, struct err *err)
{
    struct storage *all[ROUTES_STORAGES_MAX];
    size_t count = routes_storages(api->o.routes, all, ARRAY_SIZE(all)), local = 0;

    for (size_t i = 0; i < count; i++)
        if (storage_can(all[i], STORAGE_FOLDER)) {
            *out = all[i];
            local++;
        }
    if (local != 1)
        return err_set(
            err, ERR_UNSUPPORTED,
            "local storages were added to this weir, and a backup can hold the folder of "
            "one local storage only");
    return 0;
}

static int backup_check_path(const char *dir, struct err *err)
{
    if (dir[0] != '/' || strlen(dir) > PATH_MAX - 128)
        return err_set(err, ERR_INVALID, "dir must be an absolute path");
    if (strstr(dir, "/../") || str_ends(str_z(dir), STR("/..")) || str_ends(str_z(dir), STR("/")))
        return err_set(err, ERR_INVALID, "dir must not contain '..' or end with '/'");
    if (file_exists(dir))
        return err_set(err, ERR_EXISTS, "%s exists already", dir);
    return 0;
}

static int backup_make(struct api *api, struct storage *objects, const char *dir, struct err *err)
{
    struct buf partial = BUF_INIT(PATH_MAX);
    char id[ID_HEX_LEN + 1];
    int code;

    id_hex(id);
    buf_appendf(&partial, "%s.partial-%.8s", dir, id);
    code = backup_fill_folder(api, objects, partial.p, err);
    if (code == 0)
        code = file_rename_new(partial.p, dir, err);
    if (code < 0 && dir_remove_tree(partial.p, NULL) < 0)
        log_warn(api->o.log, "backup.leftover", log_z("dir", partial.p));
    buf_release(&partial);
    return code;
}

int api_backup(struct api *api, const char *dir, struct err *err)
{
    struct storage *objects = NULL;
    int code = backup_check_path(dir, err);

    if (code == 0)
        code = backup_find_local(api, &objects, err);
    if (code < 0)
        return code;
    if (atomic_exchange(&api->backing_up, true))
        return err_set(err, ERR_BUSY, "another backup is running; try again when it has ended");
    code = backup_make(api, objects, dir, err);
    atomic_store(&api->backing_up, false);
    return code;
}
