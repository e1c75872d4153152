/* The disk cache for nodes of remote storages. Each file ends with a CRC of its bytes. The total
 * size is bounded, and the least recently used files are removed first. The cache may lose files at
 * any time, so nothing is synced; a file that a crash cut short has a wrong CRC. */
#include "lake/cache.h"

#include "base/hash.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "os/file.h"
#include "os/thread.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DISK_CRC = 4 };
static const char temporary[] = ".new";

struct disk_file {
    struct list use; /* link in the list of use, the newest last */
    uint64_t bytes;
    int64_t changed; /* mtime in seconds, for the order at the start */
    char name[CACHE_NAME_LEN + 1];
};

struct cache_disk {
    struct mutex lock; /* class "lake.disk"; guards the members below */
    struct map files;
    struct list use;
    uint64_t bytes;
    uint64_t serial; /* makes names of temporary files unique */
    uint64_t max;
    const struct log *log;
    char folder[PATH_MAX];
};

void cache_disk_name(char out[CACHE_NAME_LEN + 1], struct str scope, const struct node_id *id)
{
    char text[LAKE_ID_LEN + 1];

    node_id_text(text, id);
    snprintf(out, CACHE_NAME_LEN + 1, "%s-%016llx", text, (unsigned long long)hash_xxh3(scope, 0));
}

static void disk_path(const struct cache_disk *d, char out[PATH_MAX], const char *name)
{
    if (snprintf(out, PATH_MAX, "%s/%s", d->folder, name) >= PATH_MAX)
        out[0] = 0; /* the path is too long; an empty path makes the opening fail */
}

/* --- the files that are there at the start --- */

struct disk_found {
    struct disk_file **items;
    size_t len, cap;
};

/* Adds a file that was found at the start. A file whose name is not one of the cache, such as a
 * temporary file that a crash left, is removed. */
static void disk_look(struct cache_disk *d, const char *name, struct disk_found *found)
{
    char path[PATH_MAX];
    struct stat st;

    disk_path(d, path, name);
    if (strlen(name) != CACHE_NAME_LEN || stat(path, &st) != 0) {
        unlink(path);
        return;
    }
    struct disk_file *f = xzalloc(sizeof(*f));
    memcpy(f->name, name, CACHE_NAME_LEN);
    f->bytes = (uint64_t)st.st_size;
    f->changed = st.st_mtime;
    vec_push(found, f);
}

static int disk_file_older(const void *a, const void *b)
{
    const struct disk_file *x = *(struct disk_file *const *)a, *y = *(struct disk_file *const *)b;

    return x->changed < y->changed ? -1 : x->changed > y->changed;
}

/* Adds the file as the newest. The caller has the lock, or no other thread knows the cache yet. */
static void disk_add(struct cache_disk *d, struct disk_file *f)
{
    struct disk_file *old = map_put(&d->files, str_z(f->name), f);

    if (old) {
        d->bytes -= old->bytes;
        list_remove(&old->use);
        free(old);
    }
    d->bytes += f->bytes;
    list_push(&d->use, &f->use);
}

static int disk_list(struct cache_disk *d, struct err *err)
{
    struct disk_found found = {0};
    struct dirent *entry;
    DIR *dir = opendir(d->folder);

    if (!dir)
        return err_errno(err, errno, "reading the folder %s", d->folder);
    while ((entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            disk_look(d, entry->d_name, &found);
    closedir(dir);
    if (found.len)
        qsort(found.items, found.len, sizeof(struct disk_file *), disk_file_older);
    vec_each (&found, struct disk_file **, f)
        disk_add(d, *f);
    vec_release(&found);
    return 0;
}

int cache_disk_open(struct cache_disk **out, const char *folder, uint64_t max_bytes,
                    const struct log *log, struct err *err)
{
    struct cache_disk *d = xzalloc(sizeof(*d));
    int code = dir_make(folder, 0700, err);

    mutex_init(&d->lock, "lake.disk");
    map_init(&d->files);
    list_init(&d->use);
    d->max = max_bytes;
    d->log = log;
    snprintf(d->folder, sizeof(d->folder), "%s", folder);
    if (code == 0)
        code = disk_list(d, err);
    if (code) {
        cache_disk_close(d);
        return code;
    }
    *out = d;
    return 0;
}

void cache_disk_close(struct cache_disk *d)
{
    if (!d)
        return;
    list_each_safe (&d->use, struct disk_file, use, f)
        free(f);
    map_release(&d->files);
    mutex_release(&d->lock);
    free(d);
}

uint64_t cache_disk_bytes(struct cache_disk *d)
{
    mutex_lock(&d->lock);
    uint64_t bytes = d->bytes;
    mutex_unlock(&d->lock);
    return bytes;
}

/* --- use --- */

/* Moves the file to the end of the list of use. Returns false when the cache does not have it. */
static bool disk_touch(struct cache_disk *d, const char *name)
{
    mutex_lock(&d->lock);
    struct disk_file *f = map_get(&d->files, str_z(name));
    if (f) {
        list_remove(&f->use);
        list_push(&d->use, &f->use);
    }
    mutex_unlock(&d->lock);
    return f != NULL;
}

/* Removes the file from the cache and from the disk. */
static void disk_drop(struct cache_disk *d, const char *name)
{
    char path[PATH_MAX];

    disk_path(d, path, name);
    mutex_lock(&d->lock);
    struct disk_file *f = map_remove(&d->files, str_z(name));
    if (f) {
        d->bytes -= f->bytes;
        list_remove(&f->use);
    }
    mutex_unlock(&d->lock);
    free(f);
    unlink(path);
}

bool cache_disk_get(struct cache_disk *d, const char *name, struct buf *out)
{
    size_t before = out->len;
    char path[PATH_MAX];

    if (!disk_touch(d, name))
        return false;
    disk_path(d, path, name);
    if (file_read(path, out, NULL) == 0 && !out->failed && out->len >= before + DISK_CRC) {
        size_t len = out->len - before - DISK_CRC;
        if (node_crc(0, out->p + before, len) == le32_read(out->p + before + len)) {
            out->len = before + len;
            return true;
        }
    }
    log_warn(d->log, "lake.cache.damaged", log_z("file", name));
    disk_drop(d, name);
    buf_reset(out);
    return false;
}

/* Gives the name of the least recently used file if the cache has too many bytes; otherwise returns
 * false. */
static bool disk_oldest(struct cache_disk *d, char name[CACHE_NAME_LEN + 1])
{
    mutex_lock(&d->lock);
    bool over = d->bytes > d->max && !list_empty(&d->use);
    if (over)
        memcpy(name, list_entry(d->use.next, struct disk_file, use)->name, CACHE_NAME_LEN + 1);
    mutex_unlock(&d->lock);
    return over;
}

static int disk_write(const char *path, struct str bytes, struct err *err)
{
    char crc[DISK_CRC];
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_errno(err, errno, "making the file %s", path);
    le32_write(crc, node_crc(0, bytes.p, bytes.len));
    int code = file_write_all(fd, bytes.p, bytes.len, err);
    if (code == 0)
        code = file_write_all(fd, crc, sizeof(crc), err);
    fd_close(&fd);
    return code;
}

void cache_disk_put(struct cache_disk *d, const char *name, struct str bytes)
{
    char path[PATH_MAX], fresh[PATH_MAX + 32], oldest[CACHE_NAME_LEN + 1];
    struct disk_file *f;
    struct err err = {0};

    mutex_lock(&d->lock);
    uint64_t serial = d->serial++;
    mutex_unlock(&d->lock);
    disk_path(d, path, name);
    snprintf(fresh, sizeof(fresh), "%s%s%llu", path, temporary, (unsigned long long)serial);
    if (disk_write(fresh, bytes, &err) < 0 || rename(fresh, path) < 0) {
        unlink(fresh);
        log_warn(d->log, "lake.cache.disk", log_z("error", err.text));
        return;
    }
    f = xzalloc(sizeof(*f));
    memcpy(f->name, name, CACHE_NAME_LEN);
    f->bytes = bytes.len + DISK_CRC;
    mutex_lock(&d->lock);
    disk_add(d, f);
    mutex_unlock(&d->lock);
    while (disk_oldest(d, oldest))
        disk_drop(d, oldest);
}
