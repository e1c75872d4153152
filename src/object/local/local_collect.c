/* The collector: removes files that lost their last reference, and files that a crash has left. */
#include "base/clock.h"
#include "object/local/local_int.h"
#include "os/file.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

enum { BATCH = 256, LOOK_AGAIN_MS = 2000 /* time between two looks for a missing folder */ };

struct batch {
    uint64_t ids[BATCH];
    size_t count;
};

/* --- walking over the files of an epoch --- */

static bool parse_id(const char *name, uint64_t *id)
{
    unsigned char bytes[8];

    if (!hex_parse(str_z(name), bytes, sizeof(bytes)))
        return false;
    *id = row_u64(str_n(bytes, 8));
    return true;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int folder_each_blob(const struct buf *folder, blob_file_fn *fn, void *ctx, struct err *err)
{
    struct buf path = BUF_INIT(PATH_MAX);
    DIR *dir = opendir(folder->p);
    struct dirent *entry;
    int code = 0;

    if (!dir)
        return errno == ENOENT || errno == ENOTDIR
                   ? 0
                   : err_errno(err, errno, "opening the folder %s", folder->p);
    while (code == 0 && (entry = readdir(dir))) {
        uint64_t id = 0;
        if (is_dots(entry->d_name))
            continue;
        buf_reset(&path);
        buf_appendf(&path, "%s/%s", folder->p, entry->d_name);
        if (!parse_id(entry->d_name, &id))
            id = 0;
        code = fn(ctx, id, path.p, err);
    }
    closedir(dir);
    buf_release(&path);
    return code;
}

int epoch_each_file(struct local *l, uint32_t epoch, blob_file_fn *fn, void *ctx, struct err *err)
{
    struct buf path = BUF_INIT(PATH_MAX), folder = BUF_INIT(PATH_MAX);
    struct dirent *entry;
    int code = 0;

    buf_appendf(&path, "%s/blobs/%06x", l->folder, epoch);
    DIR *dir = opendir(path.p);
    if (!dir && errno != ENOENT)
        code = err_errno(err, errno, "opening the folder %s", path.p);
    while (code == 0 && dir && (entry = readdir(dir))) {
        if (is_dots(entry->d_name))
            continue;
        buf_reset(&folder);
        buf_appendf(&folder, "%s/%s", path.p, entry->d_name);
        code = folder_each_blob(&folder, fn, ctx, err);
    }
    if (dir)
        closedir(dir);
    buf_release(&path);
    buf_release(&folder);
    return code;
}

bool epoch_is_open(struct local *l, uint32_t epoch)
{
    struct buf value = BUF_INIT(0);
    struct row row;
    int code =
        db_get(db_latest(l->db), l->rows, row_id(&row, l, TAG_OPEN_EPOCH, epoch), &value, NULL);

    buf_release(&value);
    return epoch == l->epoch || code != ERR_NOT_FOUND;
}

/* --- removing files --- */

static void blob_folder_of(struct buf *out, const struct local *l, uint64_t id)
{
    buf_reset(out);
    blob_path(out, l, id);
    out->len = (size_t)(strrchr(out->p, '/') - out->p);
    out->p[out->len] = '\0';
}

/* Removes the blob's folder, and its epoch's folder, if they are empty. Folders of the running
 * epoch stay, because they get new files. */
static void remove_folders(struct local *l, struct buf *folder, uint64_t id)
{
    if (id >> COUNTER_BITS == l->epoch || rmdir(folder->p) < 0)
        return;
    char *slash = strrchr(folder->p, '/');
    *slash = '\0';
    (void)rmdir(folder->p); /* a folder that is not empty stays */
}

/* Removes the files of all blobs in the batch. The ids are in order, so each folder is synced once
 * (docs/local-storage.md, L9). */
static int unlink_all(struct local *l, const struct batch *b, struct err *err)
{
    struct buf path = BUF_INIT(PATH_MAX), folder = BUF_INIT(PATH_MAX);
    int code = 0;

    for (size_t i = 0; i < b->count && code == 0; i++) {
        buf_reset(&path);
        blob_path(&path, l, b->ids[i]);
        if (unlink(path.p) == 0)
            atomic_fetch_add(&l->collected, 1);
        else if (errno != ENOENT)
            code = err_errno(err, errno, "removing %s", path.p);
        bool last =
            i + 1 == b->count || b->ids[i + 1] >> BLOB_FOLDER_BITS != b->ids[i] >> BLOB_FOLDER_BITS;
        if (code < 0 || !last)
            continue;
        blob_folder_of(&folder, l, b->ids[i]);
        code = file_exists(folder.p) ? dir_sync(folder.p, err) : 0;
        if (code == 0)
            remove_folders(l, &folder, b->ids[i]);
    }
    buf_release(&path);
    buf_release(&folder);
    return code;
}

struct forget {
    struct local *l;
    const struct batch *batch;
};

static int forget_run(struct db_tx *tx, void *ctx, struct err *err)
{
    struct forget *f = ctx;
    struct row row;

    (void)err;
    for (size_t i = 0; i < f->batch->count; i++)
        db_tx_delete(tx, f->l->rows, row_id(&row, f->l, TAG_GARBAGE, f->batch->ids[i]));
    return 0;
}

/* --- collecting garbage --- */

/* Reads up to BATCH garbage rows from the id `after` on. They name blobs that have no
 * references. */
static int next_batch(struct local *l, uint64_t after, struct batch *out, struct err *err)
{
    struct row from, tag;
    struct buf end = BUF_INIT(0);
    struct db_iter *it = NULL;
    struct str key, value;

    out->count = 0;
    db_prefix_end(row_tag(&tag, l, TAG_GARBAGE), &end);
    struct db_range range = {.from = row_id(&from, l, TAG_GARBAGE, after), .to = buf_str(&end)};
    int code = db_iter_open(&it, db_latest(l->db), l->rows, &range, err);
    while (code == 0 && out->count < BATCH && (code = db_iter_next(it, &key, &value, err)) == 0)
        if (key.len == ROW_BUCKET_LEN)
            out->ids[out->count++] = row_u64(str_skip(key, ROW_PREFIX_LEN));
    db_iter_close(it);
    buf_release(&end);
    return code == ERR_END ? 0 : code;
}

static int blob_id_order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool is_pinned(struct pins *pins, uint64_t id)
{
    list_each (&pins->readers, struct pin, node, pin)
        if (pin->count && bsearch(&id, pin->blobs, pin->count, sizeof(id), blob_id_order))
            return true;
    return false;
}

static bool is_resolving(struct pins *pins, uint64_t up_to)
{
    list_each (&pins->readers, struct pin, node, pin)
        if (pin->resolving && pin->number <= up_to)
            return true;
    return false;
}

/* Removes from the batch the blobs that a reader has pinned. First it waits for readers that have
 * registered but not pinned their blobs yet; this wait is safe, because such readers wait for
 * nothing. Readers that register later cannot reach these blobs. */
static void leave_pinned(struct local *l, struct batch *b)
{
    struct pins *pins = &l->pins;
    size_t kept = 0;

    mutex_lock(&pins->lock);
    uint64_t registered = pins->registered;
    while (is_resolving(pins, registered))
        cond_wait(&pins->resolved, &pins->lock);
    for (size_t i = 0; i < b->count; i++) {
        if (is_pinned(pins, b->ids[i]))
            pins->skipped = true;
        else
            b->ids[kept++] = b->ids[i];
    }
    b->count = kept;
    mutex_unlock(&pins->lock);
}

static int blobs_collect(struct local *l, struct err *err)
{
    struct batch *b = xcalloc(1, sizeof(*b));
    struct forget f = {l, b};
    uint64_t after = 0;
    bool more = true;
    int code = 0;

    while (code == 0 && more) {
        code = next_batch(l, after, b, err);
        more = code == 0 && b->count == BATCH;
        if (code < 0 || b->count == 0)
            break;
        after = b->ids[b->count - 1] + 1;
        leave_pinned(l, b);
        code = unlink_all(l, b, err);
        if (code == 0 && b->count > 0)
            code = db_apply(l->db, DB_VOLATILE, forget_run, &f, err);
    }
    free(b);
    return code;
}

/* --- sweeping files that a crash has left --- */

struct sweep {
    struct local *l;
    struct batch batch;
};

static int sweep_flush(struct sweep *s, struct err *err)
{
    uint64_t before = atomic_load(&s->l->collected);

    qsort(s->batch.ids, s->batch.count, sizeof(uint64_t), blob_id_order);
    int code = unlink_all(s->l, &s->batch, err);
    atomic_fetch_add(&s->l->swept, atomic_load(&s->l->collected) - before);
    s->batch.count = 0;
    return code;
}

static int blob_has_row(struct local *l, enum tag tag, uint64_t id, bool *found, struct err *err)
{
    struct buf value = BUF_INIT(0);
    struct row row;
    int code = db_get(db_latest(l->db), l->rows, row_id(&row, l, tag, id), &value, err);

    *found |= code == 0;
    buf_release(&value);
    return code == ERR_NOT_FOUND ? 0 : code;
}

/* Adds a file without a row to the batch of files to remove. A blob with a garbage row is left to
 * the round that handles that row. */
static int sweep_file(void *ctx, uint64_t id, const char *path, struct err *err)
{
    struct sweep *s = ctx;
    bool found = false;
    int code = id == 0 ? 0 : blob_has_row(s->l, TAG_BLOB, id, &found, err);

    (void)path;
    if (code == 0 && id != 0)
        code = blob_has_row(s->l, TAG_GARBAGE, id, &found, err);
    if (code < 0 || found || id == 0)
        return code;
    s->batch.ids[s->batch.count++] = id;
    return s->batch.count == BATCH ? sweep_flush(s, err) : 0;
}

static int sweep_epoch(struct local *l, uint32_t epoch, struct err *err)
{
    struct sweep *s = xcalloc(1, sizeof(*s));
    struct row row;

    s->l = l;
    int code = epoch_each_file(l, epoch, sweep_file, s, err);
    if (code == 0 && s->batch.count > 0)
        code = sweep_flush(s, err);
    if (code == 0)
        code = db_delete(l->db, l->rows, row_id(&row, l, TAG_OPEN_EPOCH, epoch), DB_VOLATILE, err);
    free(s);
    return code;
}

static int epochs_sweep(struct local *l, struct err *err)
{
    VEC(uint32_t) epochs = {0};
    struct buf start = BUF_INIT(0), end = BUF_INIT(0);
    struct db_iter *it = NULL;
    struct str key, value;
    struct row row;

    buf_append_str(&start, row_tag(&row, l, TAG_OPEN_EPOCH));
    db_prefix_end(buf_str(&start), &end);
    struct db_range range = {.from = buf_str(&start), .to = buf_str(&end)};
    int code = db_iter_open(&it, db_latest(l->db), l->rows, &range, err);
    while (code == 0 && (code = db_iter_next(it, &key, &value, err)) == 0)
        if (key.len == ROW_BUCKET_LEN)
            vec_push(&epochs, (uint32_t)row_u64(str_skip(key, ROW_PREFIX_LEN)));
    db_iter_close(it);
    if (code == ERR_END)
        code = 0;
    for (size_t i = 0; i < epochs.len && code == 0; i++)
        if (epochs.items[i] != l->epoch)
            code = sweep_epoch(l, epochs.items[i], err);
    vec_release(&epochs);
    buf_release(&start);
    buf_release(&end);
    return code;
}

/* --- discarding blobs of failed commits --- */

/* Discards those blobs of failed commits that no row names. After a failed sync the database
 * accepts no writes until the next start. So once it has accepted a write, an absent row will not
 * come back. */
static int settle_doubtful(struct local *l, struct err *err)
{
    struct collector *c = &l->collector;
    VEC(uint64_t) ids = {0};
    struct buf epoch = BUF_INIT(0);
    struct row row;
    size_t done = 0;
    int code = 0;

    mutex_lock(&c->lock);
    for (size_t i = 0; i < c->doubtful.len; i++)
        vec_push(&ids, c->doubtful.items[i]);
    mutex_unlock(&c->lock);
    buf_append_be64(&epoch, l->epoch);
    if (ids.len > 0)
        code =
            db_put(l->db, l->rows, row_tag(&row, l, TAG_EPOCH), buf_str(&epoch), DB_DURABLE, err);
    for (; done < ids.len && code == 0; done++) {
        bool found = false;
        code = blob_has_row(l, TAG_BLOB, ids.items[done], &found, err);
        if (code == 0 && !found)
            code = blob_has_row(l, TAG_GARBAGE, ids.items[done], &found, err);
        if (code == 0 && !found)
            blob_discard(l, ids.items[done]);
    }
    mutex_lock(&c->lock);
    for (size_t i = 0; i < ids.len && code == 0; i++)
        vec_remove(&c->doubtful, 0); /* other threads have only appended meanwhile */
    mutex_unlock(&c->lock);
    vec_release(&ids);
    buf_release(&epoch);
    return code;
}

/* --- the collector's thread --- */

static void collect_round(struct local *l, bool *swept)
{
    struct err err = {0};
    int code = *swept ? 0 : epochs_sweep(l, &err);

    *swept |= code == 0;
    if (code == 0)
        code = blobs_collect(l, &err);
    if (code == 0)
        code = settle_doubtful(l, &err);
    if (code < 0 && code != ERR_SHUTDOWN)
        log_warn(l->log, "local.collect_failed", log_z("storage", l->name),
                 log_z("error", err.text));
}

/* Looks for the folder until it is found, or the storage is closed or gives up (local_give_up()).
 * The caller holds the lock. */
static void find_folder(struct local *l)
{
    struct collector *c = &l->collector;
    struct err err;
    bool missing;

    while (!c->stop && !c->given_up && local_present(l, NULL) < 0) {
        uint64_t next = clock_mono_ns() + LOOK_AGAIN_MS * NS_PER_MS;
        while (!c->stop && !c->given_up && cond_wait_until(&c->wake, &c->lock, next))
            ;
        if (c->stop || c->given_up)
            return;
        mutex_unlock(&c->lock);
        err = (struct err){0};
        if (folder_enter(l, &missing, &err) == 0)
            log_info(l->log, "local.found", log_z("storage", l->name));
        else if (!missing)
            log_warn(l->log, "local.not_entered", log_z("storage", l->name),
                     log_z("error", err.text));
        mutex_lock(&c->lock);
    }
}

static void collector_main(void *ctx)
{
    struct local *l = ctx;
    struct collector *c = &l->collector;
    bool swept = false;

    mutex_lock(&c->lock);
    find_folder(l);
    while (!c->stop && local_present(l, NULL) == 0) {
        if (c->asked == c->done || c->holds) {
            cond_wait(&c->wake, &c->lock);
            continue;
        }
        uint64_t asked = c->asked;
        c->running = true;
        mutex_unlock(&c->lock);
        collect_round(l, &swept);
        mutex_lock(&c->lock);
        c->running = false;
        c->done = asked;
        cond_broadcast(&c->finished);
    }
    mutex_unlock(&c->lock);
}

int collector_start(struct local *l, struct err *err)
{
    struct collector *c = &l->collector;

    mutex_init(&c->lock, "local.collector");
    cond_init(&c->wake);
    cond_init(&c->finished);
    mutex_init(&l->pins.lock, "local.pins");
    cond_init(&l->pins.resolved);
    list_init(&l->pins.readers);
    c->asked = 1; /* the first round removes the garbage of the last process */
    return thread_start(&c->thread, "local-collector", 0, collector_main, l, err);
}

void collector_stop(struct local *l)
{
    struct collector *c = &l->collector;

    mutex_lock(&c->lock);
    c->stop = true;
    cond_broadcast(&c->wake);
    mutex_unlock(&c->lock);
    thread_join(&c->thread);
    if (c->doubtful.len > 0)
        atomic_store(&l->leaked, true);
    vec_release(&c->doubtful);
    cond_release(&c->wake);
    cond_release(&c->finished);
    mutex_release(&c->lock);
    cond_release(&l->pins.resolved);
    mutex_release(&l->pins.lock);
}

void collector_ask(struct local *l)
{
    struct collector *c = &l->collector;

    mutex_lock(&c->lock);
    c->asked++;
    cond_signal(&c->wake);
    mutex_unlock(&c->lock);
}

void local_collect(struct storage *s)
{
    struct collector *c = &local_of(s)->collector;

    mutex_lock(&c->lock);
    uint64_t round = ++c->asked;
    cond_signal(&c->wake);
    while (c->done < round)
        cond_wait(&c->finished, &c->lock);
    mutex_unlock(&c->lock);
}

void local_hold(struct storage *s)
{
    struct collector *c = &local_of(s)->collector;

    mutex_lock(&c->lock);
    c->holds++;
    while (c->running)
        cond_wait(&c->finished, &c->lock);
    mutex_unlock(&c->lock);
}

void local_unhold(struct storage *s)
{
    struct collector *c = &local_of(s)->collector;

    mutex_lock(&c->lock);
    c->holds--;
    cond_signal(&c->wake);
    mutex_unlock(&c->lock);
}

void local_give_up(struct storage *s)
{
    struct collector *c = &local_of(s)->collector;

    mutex_lock(&c->lock);
    c->given_up = true;
    cond_broadcast(&c->wake);
    mutex_unlock(&c->lock);
}
