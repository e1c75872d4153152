/* Notes when the disk that holds the files of objects has failed (docs/local-storage.md, "A disk
 * that fails"). */
#include "object/local/local_int.h"
#include "os/file.h"

void trouble_note(struct local *l, const struct err *err)
{
    struct trouble *t = &l->trouble;

    mutex_lock(&t->lock);
    bool first = !t->set;
    t->set = true;
    if (first)
        t->why = err ? *err : (struct err){.code = ERR_IO};
    mutex_unlock(&t->lock);
    if (first)
        log_error(l->log, "local.failed", log_z("storage", l->name), log_z("folder", l->folder),
                  log_z("error", err ? err->text : ""));
}

int local_trouble(struct storage *s, struct err *err)
{
    struct local *l = local_of(s);
    struct trouble *t = &l->trouble;
    int code = 0;

    mutex_lock(&t->lock);
    if (t->set)
        code = err_set(err, ERR_IO, "the disk under %s failed: %s", l->folder, t->why.text);
    mutex_unlock(&t->lock);
    return code;
}

/* After a failure, tries whether the disk accepts writes again. If it does, the storage works
 * again, because the file that could not be written was discarded, and its request failed. */
int trouble_try(struct local *l, struct err *err)
{
    if (local_trouble(&l->storage, NULL) == 0)
        return 0;
    int code = file_try_folder(l->folder, err);
    if (code < 0)
        return code;
    mutex_lock(&l->trouble.lock);
    l->trouble.set = false;
    mutex_unlock(&l->trouble.lock);
    log_info(l->log, "local.works_again", log_z("storage", l->name), log_z("folder", l->folder));
    return 0;
}
