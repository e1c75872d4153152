/* Room on the disk: the reserve, and the ballast, which is a file that is removed when the disk is
 * full (docs/db.md, "Full disk"). */
#include "db/db_int.h"

#include "base/clock.h"
#include "os/file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    CHECK_BYTES = 1024 * 1024,
    CHECK_NS = 100 * NS_PER_MS,
    FLOOR_SHARE = 16, /* urgent changes must leave 1/16 of the reserve free */
    /* The ballast file has 1/2 of the reserve's size. It is kept in addition to the reserve. */
    BALLAST_SHARE = 2,
};

static const uint64_t open_bytes = 4 * MIB; /* bytes that RocksDB writes when it is opened */

static void ballast_path(struct buf *out, const struct db *db)
{
    buf_appendf(out, "%s/ballast", db->path);
}

static uint64_t ballast_bytes(const struct space *s)
{
    return s->reserve / BALLAST_SHARE;
}

/* Makes the ballast file and allocates its blocks. Returns false when the file system cannot do
 * that or has no room. */
static bool fill_ballast(const char *path, uint64_t bytes)
{
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    bool done = fd >= 0 && fallocate(fd, 0, 0, (off_t)bytes) == 0;

    fd_close(&fd);
    if (!done)
        (void)unlink(path);
    return done;
}

/* Makes the ballast file if it does not exist and the disk has room for the reserve and twice the
 * ballast. With less room, the new ballast might have to be removed again at once. */
static void take_ballast(struct db *db, uint64_t available)
{
    struct space *s = &db->group.space;
    struct buf path = BUF_INIT(0);

    if (ballast_bytes(s) < MIB || available < s->reserve + 2 * ballast_bytes(s) ||
        atomic_exchange(&s->ballast, true))
        return;
    ballast_path(&path, db);
    /* If this fails, there is no ballast file, and the reserve alone keeps room free. */
    (void)fill_ballast(path.p, ballast_bytes(s));
    buf_release(&path);
}

/* Removes the ballast file. Returns false when there is none. */
static bool drop_ballast(struct db *db)
{
    struct buf path = BUF_INIT(0);

    ballast_path(&path, db);
    bool dropped = unlink(path.p) == 0;
    atomic_store(&db->group.space.ballast, false);
    if (dropped)
        log_warn(db->log, "db.ballast_dropped", log_z("path", path.p));
    buf_release(&path);
    return dropped;
}

static int space_look(struct db *db, uint64_t *available, struct err *err)
{
    uint64_t total;

    return file_free_space(db->path, available, &total, err);
}

/* Makes room for `need` bytes, if necessary by removing the ballast file. Sets *available to the
 * bytes that are free, which may still be fewer. */
static int space_make_room(struct db *db, uint64_t need, uint64_t *available, struct err *err)
{
    int code = space_look(db, available, err);

    if (code == 0 && *available < need && drop_ballast(db))
        code = space_look(db, available, err);
    return code;
}

static int space_refuse(const struct db *db, uint64_t available, uint64_t limit, struct err *err)
{
    return err_set(err, ERR_NO_SPACE,
                   "%s: the disk is full: %llu MiB free, %llu MiB are kept in reserve", db->path,
                   (unsigned long long)(available / MIB), (unsigned long long)(limit / MIB));
}

int space_admit(struct db *db, struct err *err)
{
    struct space *s = &db->group.space;
    uint64_t now = clock_mono_ns(), available;

    if (now - atomic_load(&s->roomy_ns) < CHECK_NS && atomic_load(&s->written) < CHECK_BYTES)
        return 0;
    int code = space_look(db, &available, err);
    if (code < 0)
        return code;
    if (available < s->reserve) {
        atomic_store(&s->roomy_ns, 0);
        return space_refuse(db, available, s->reserve, err);
    }
    take_ballast(db, available);
    atomic_store(&s->written, 0);
    atomic_store(&s->roomy_ns, now);
    return 0;
}

/* Refuses a write already when some room is left, for two reasons: the disk must not get full while
 * RocksDB writes a log record, and RocksDB needs room to compact, which frees space again. */
int space_check(struct db *db, size_t bytes, enum db_durability d, struct err *err)
{
    struct space *s = &db->group.space;
    uint64_t floor = s->reserve / FLOOR_SHARE, available;

    atomic_fetch_add(&s->written, bytes);
    if (atomic_load(&s->written) < CHECK_BYTES &&
        clock_mono_ns() - atomic_load(&s->roomy_ns) < CHECK_NS)
        return 0;
    int code = d == DB_VOLATILE ? space_look(db, &available, err)
                                : space_make_room(db, floor + bytes, &available, err);
    if (code < 0)
        return code;
    if (available >= floor + bytes) {
        s->spent = 0;
        return 0;
    }
    if (d != DB_VOLATILE && headroom_spend(db, bytes))
        return 0;
    return space_refuse(db, available, floor, err);
}

/* This check is needed because RocksDB ends the process when the disk gets full while RocksDB opens
 * the database. */
int space_to_open(struct db *db, struct err *err)
{
    uint64_t last, available;
    /* RocksDB replays the rows in the logs and writes them to table files. */
    uint64_t need = headroom_logs(db, &last) + open_bytes;
    int code = space_make_room(db, need + db->group.space.reserve / FLOOR_SHARE, &available, err);

    db->scarce = code == 0 && available < db->group.space.reserve;
    if (code == 0 && available < need)
        code = err_set(err, ERR_NO_SPACE,
                       "%s: the disk is full: opening it takes %llu MiB, and %llu MiB are free",
                       db->path, (unsigned long long)(need / MIB),
                       (unsigned long long)(available / MIB));
    return code;
}

bool space_to_flush(struct db *db, uint64_t bytes)
{
    uint64_t available;

    return space_make_room(db, bytes + open_bytes, &available, NULL) == 0 &&
           available >= bytes + open_bytes;
}
