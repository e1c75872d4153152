/* Handles a disk that failed: from then on no write is accepted (docs/db.md, "A disk that fails").
 */
#include "db/db_int.h"

#include "os/file.h"

/* Whether RocksDB still accepts writes after this error. RocksDB does so after a full disk and
 * during a close. After every other error RocksDB refuses all writes until the database is opened
 * again. */
static bool rocksdb_goes_on(const char *message)
{
    static const char *const words[] = {"No space left on device", "Shutdown in progress"};

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (strstr(message, words[i]))
            return true;
    return false;
}

/* Stores the reason why no write is accepted any more. Only the first failure is stored, because
 * RocksDB's later messages repeat it. */
static void failure_note(struct db *db, const struct err *why)
{
    struct failure *f = &db->failure;
    int none = FAILURE_NONE;

    if (!atomic_compare_exchange_strong(&f->state, &none, FAILURE_BEING_NOTED))
        return;
    f->why = *why;
    atomic_store(&f->state, FAILURE_NOTED);
    log_error(db->log, "db.failed", log_z("error", why->text),
              log_z("now", "no write is taken any more; reads go on"));
    if (db->on_failure)
        db->on_failure(db->failure_ctx);
}

int failure_take(struct db *db, struct err *err, char *message, const char *what)
{
    bool ends = !rocksdb_goes_on(message);
    struct err why = {0};
    int code = error_take(&why, message, what, db->path);

    if (ends)
        failure_note(db, &why);
    return err_set(err, code, "%s", why.text);
}

int db_failed(const struct db *db, struct err *err)
{
    const struct failure *f = &db->failure;

    if (atomic_load(&f->state) != FAILURE_NOTED)
        return 0;
    return err_set(err, ERR_UNAVAILABLE,
                   "the database cannot be written until weir is restarted: %s", f->why.text);
}

int db_try_disk(const struct db *db, struct err *err)
{
    return file_try_folder(db->path, err);
}

/* Leaves the database open until the process ends, so that its files look like those after a
 * crash. A close would let RocksDB write to the log that has failed, and an assertion in RocksDB
 * would end the process. The list of abandoned databases exists only so that leak checkers find
 * their memory. */
void failure_abandon(struct db *db)
{
    static _Atomic(struct db *) last;

    db->abandoned = atomic_exchange(&last, db);
}
