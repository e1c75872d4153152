/* Headroom: room that is allocated in advance for urgent changes on a disk that is completely full.
 * The reserve of free space alone is not enough, because free space need not be usable: ext4 keeps
 * some of it for root (docs/db.md, "Full disk").
 *
 * A change needs room on the disk for the log, and room in the memtables, because writing a
 * memtable to a file needs new disk space. So blocks are allocated after the end of the log, and
 * memtables are written to files long before RocksDB would have to. Both are renewed as bytes are
 * written, so that the headroom is there at whatever moment the disk gets full. */
#include "db/db_int.h"

#include "os/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

enum {
    /* Memtables and log are checked whenever 1/64 of the write buffers' size has been written. */
    LOOK_SHARE = 64,
    /* Urgent changes together may use headroom for keys and values of 1/8 of the write buffers'
     * size. In the log these take up to twice that size, in a memtable three times. */
    SPEND_SHARE = 8,
    /* The memtable of a family is written to a file at 1/2 of the write buffers' size. */
    FAMILY_SHARE = 2,
    /* All memtables are written to files when the logs have 4 times the write buffers' size. */
    LOG_SHARE = 4,
};

static const size_t spend_max = 16 * MIB;

static uint64_t spendable(const struct db *db)
{
    return size_min(db->memtable_bytes / SPEND_SHARE, spend_max);
}

uint64_t headroom_logs(const struct db *db, uint64_t *last)
{
    DIR *dir = opendir(db->path);
    struct dirent *entry;
    struct stat st;
    uint64_t number, bytes = 0;

    *last = 0;
    while (dir && (entry = readdir(dir))) {
        struct str name = str_z(entry->d_name);
        if (!str_ends(name, STR(".log")) || str_u64(str_head(name, name.len - 4), &number) < 0 ||
            fstatat(dirfd(dir), entry->d_name, &st, 0) < 0)
            continue;
        *last = number > *last ? number : *last;
        bytes += (uint64_t)st.st_size;
    }
    if (dir)
        closedir(dir);
    return bytes;
}

/* Allocates space after the end of the log with this number. A thread of RocksDB may begin the next
 * log meanwhile; RocksDB then allocates space for that log itself. If the file system cannot
 * allocate in advance, only the ballast file is left as a reserve. */
static void extend_log(const struct db *db, uint64_t number)
{
    uint64_t ahead = 2 * (spendable(db) + 2 * (db->memtable_bytes / LOOK_SHARE));
    struct buf path = BUF_INIT(0);
    struct stat st;

    buf_appendf(&path, "%s/%06llu.log", db->path, (unsigned long long)number);
    int fd = open(path.p, O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0)
        (void)!fallocate(fd, FALLOC_FL_KEEP_SIZE, st.st_size, (off_t)ahead);
    fd_close(&fd);
    buf_release(&path);
}

static uint64_t memtable_of(const struct db *db, const struct db_cf *cf)
{
    uint64_t bytes = 0;

    (void)rocksdb_property_int_cf(db->rocks, cf->handle, "rocksdb.cur-size-active-mem-table",
                                  &bytes);
    return bytes;
}

static void write_out(struct db *db, struct db_cf *cf)
{
    rocksdb_flushoptions_t *o = rocksdb_flushoptions_create();
    char *message = NULL;

    rocksdb_flushoptions_set_wait(o, 0);
    rocksdb_flush_cf(db->rocks, o, cf->handle, &message);
    rocksdb_free(message); /* the next write will report the same error */
    rocksdb_flushoptions_destroy(o);
}

/* Writes the largest memtable to a file when it, or all memtables together, are too large. */
static void shrink_memtables(struct db *db)
{
    struct db_cf *largest = NULL;
    uint64_t sum = 0, most = 0;

    for (size_t i = 0; i < db->cf_count; i++) {
        uint64_t bytes = memtable_of(db, &db->cfs[i]);
        sum += bytes;
        if (bytes >= most) {
            most = bytes;
            largest = &db->cfs[i];
        }
    }
    if (largest && (most >= db->memtable_bytes / FAMILY_SHARE || sum >= db->memtable_bytes / 8 * 7))
        write_out(db, largest);
}

/* Writes all memtables to files when the logs are too large. RocksDB removes a log when no memtable
 * needs it any more, which takes a moment. */
static void shrink_logs(struct db *db, uint64_t bytes)
{
    struct space *s = &db->group.space;

    if (bytes < LOG_SHARE * db->memtable_bytes || s->unshrunk < db->memtable_bytes)
        return;
    s->unshrunk = 0;
    for (size_t i = 0; i < db->cf_count; i++)
        write_out(db, &db->cfs[i]);
}

void headroom_keep(struct db *db, size_t written)
{
    struct space *s = &db->group.space;
    uint64_t last, available, total;

    s->unlooked += written;
    s->unshrunk += written;
    if (s->spent || s->unlooked < db->memtable_bytes / LOOK_SHARE)
        return;
    s->unlooked = 0;
    uint64_t bytes = headroom_logs(db, &last);
    extend_log(db, last);
    /* On a disk with too little room no memtable is written: a table file that does not fit would
     * stop all writes. */
    if (file_free_space(db->path, &available, &total, NULL) < 0 || available < db->memtable_bytes)
        return;
    shrink_logs(db, bytes);
    shrink_memtables(db);
}

bool headroom_spend(struct db *db, size_t bytes)
{
    struct space *s = &db->group.space;

    if (s->spent + bytes > spendable(db))
        return false;
    s->spent += bytes;
    return true;
}
