/* A local storage under kill and loss of power (harness.h).
 *
 * Several threads put (also two keys in one call), upload, copy and remove keys of their own, half
 * of them in a bucket that keeps versions; a change is told before it begins and after it was
 * answered. A loss of power zeroes or cuts off the bytes of blobs that were not synced, and a file
 * whose folder was not synced since it was made goes. Then
 *   1. every key has the bytes of the last change that was answered, or of the one that was under
 *      way; what was removed stays removed; no version is lost;
 *   2. after the collector rows and files agree, and nothing is left over (local_check_whole).
 * Liars do not sync files. */
#include "base/hash.h"
#include "base/clock.h"
#include "crash/harness.h"
#include "object/local/local_int.h"
#include "unit/object/local_check.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    WRITERS = 6,
    KEYS = 6,            /* of a writer */
    MAX_FILES = 1 << 18, /* of one run */
    VERSIONS_KEPT = 30,  /* then the checker removes them all */
    INLINE_MAX = 8 * 1024,
};

enum action { PUT_SMALL, PUT_LARGE, PUT_TWO, PUT_PARTS, ABORT, REMOVE, COPY };

struct operation {
    enum action action;
    uint32_t key, from;
};

struct event {
    uint32_t writer, number;
    bool done;
};

/* What a key holds: the number of the operation that made its bytes, 0 for nothing. */
struct key_state {
    uint32_t value, versions;
};

struct progress {
    uint32_t begun, pending; /* numbers; pending 0: none */
    struct key_state keys[KEYS];
};

struct state {
    struct crash crash;
    unsigned epoch; /* the newest before the run */
    struct progress progress[WRITERS];
};

/* What the disk has of the files of the running epoch, by counter; shared with the child. */
struct file_state {
    _Atomic(uint64_t) synced; /* bytes */
    _Atomic(bool) named;      /* its folder was synced */
};

struct writer {
    struct thread thread;
    struct storage *storage;
    struct bucket *bucket;
    uint32_t id, number;
    int pipe;
};

static struct file_state *files;
static _Atomic(bool) *lying;

/* --- what the disk has --- */

static struct file_state *file_state(const char *name)
{
    unsigned char id[8];

    if (!files || !hex_parse(str_z(name), id, sizeof(id)))
        return NULL;
    uint64_t counter = row_u64(str_n(id, 8)) & (((uint64_t)1 << COUNTER_BITS) - 1);
    return counter < MAX_FILES ? &files[counter] : NULL;
}

static void folder_synced(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        struct file_state *f = file_state(entry->d_name);
        if (f)
            atomic_store(&f->named, true);
    }
    if (dir)
        closedir(dir);
}

/* Shadows the C library's for the whole process. What was written before the call is safe when it
 * has returned. */
static int note_sync(int fd, long call)
{
    char link[64], path[512] = "";
    struct stat st = {0};

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof(path) - 1);
    bool blob = len > 0 && strstr(path, "/blobs/") && fstat(fd, &st) == 0;
    int result = blob && *lying ? 0 : (int)syscall(call, fd);
    if (result != 0 || !blob || *lying)
        return result;
    if (S_ISDIR(st.st_mode)) {
        folder_synced(path);
        return result;
    }
    struct file_state *f = file_state(strrchr(path, '/') + 1);
    if (f)
        atomic_store(&f->synced, (uint64_t)st.st_size);
    return result;
}

int fdatasync(int fd)
{
    return note_sync(fd, SYS_fdatasync);
}

int fsync(int fd)
{
    return note_sync(fd, SYS_fsync);
}

static void lose(struct crash *c, const char *path, const struct file_state *f)
{
    struct stat st;
    uint64_t safe = atomic_load(&f->synced);

    if (!atomic_load(&f->named)) {
        unlink(path);
        return;
    }
    if (stat(path, &st) != 0 || (uint64_t)st.st_size <= safe)
        return;
    if (truncate(path, (off_t)safe) != 0)
        perror("local_crash: truncate");
    if (next_random(c) % 2 == 0 && truncate(path, st.st_size) != 0) /* zeroes where bytes were */
        perror("local_crash: truncate");
}

static unsigned newest_epoch(const struct crash *c)
{
    char path[256];
    unsigned newest = 0, epoch;
    struct dirent *entry;

    snprintf(path, sizeof(path), "%s/storage/blobs", c->folder);
    DIR *dir = opendir(path);
    while (dir && (entry = readdir(dir)))
        if (sscanf(entry->d_name, "%x", &epoch) == 1 && epoch > newest)
            newest = epoch;
    if (dir)
        closedir(dir);
    return newest;
}

/* Of the epoch that the run began: all other files were there before it. */
static void power_loss(struct crash *c, unsigned epoch)
{
    char parent[300], file[600];
    struct dirent *entry;
    DIR *dir;

    for (unsigned n = 0; n < MAX_FILES >> BLOB_FOLDER_BITS; n++) {
        snprintf(parent, sizeof(parent), "%s/storage/blobs/%06x/%07x", c->folder, epoch, n);
        if (!(dir = opendir(parent)))
            break;
        while ((entry = readdir(dir))) {
            struct file_state *f = file_state(entry->d_name);
            snprintf(file, sizeof(file), "%s/%s", parent, entry->d_name);
            if (f)
                lose(c, file, f);
        }
        closedir(dir);
    }
}

/* --- operations: all follows from the writer's id and the operation's number --- */

static uint64_t mix(uint32_t writer, uint32_t number)
{
    uint32_t both[2] = {writer, number};
    return hash_xxh3(str_n(both, sizeof(both)), 1);
}

static struct operation operation_of(uint32_t writer, uint32_t number)
{
    static const enum action actions[] = {PUT_SMALL, PUT_SMALL, PUT_SMALL, PUT_LARGE,
                                          PUT_LARGE, PUT_TWO,   PUT_TWO,   PUT_PARTS,
                                          PUT_PARTS, ABORT,     REMOVE,    COPY};
    uint64_t h = mix(writer, number);

    return (struct operation){.action = actions[h % ARRAY_SIZE(actions)],
                              .key = (uint32_t)(h >> 8) % KEYS,
                              .from = (uint32_t)(h >> 16) % KEYS};
}

static void body_of(struct buf *out, uint32_t writer, uint32_t number)
{
    uint64_t h = mix(writer, number);
    enum action action = operation_of(writer, number).action;
    size_t len = action == PUT_SMALL ? h % INLINE_MAX : 3000 + h % 60000;

    if (action == PUT_LARGE)
        len += INLINE_MAX;
    buf_reset(out);
    for (size_t i = 0; i < len; i += sizeof(h)) {
        h = h * 6364136223846793005u + 1442695040888963407u;
        buf_append(out, &h, size_min(sizeof(h), len - i));
    }
}

/* The second key of PUT_TWO, which gets the same bytes. */
static uint32_t second_key(const struct operation *o)
{
    return (o->key + 1) % KEYS;
}

/* What the operation does to the writer's keys. */
static void apply(struct progress *p, uint32_t writer, uint32_t number)
{
    struct operation o = operation_of(writer, number);
    struct key_state *k = &p->keys[o.key];

    if (o.action == ABORT || (o.action == COPY && p->keys[o.from].value == 0))
        return;
    k->value = o.action == REMOVE ? 0 : o.action == COPY ? p->keys[o.from].value : number;
    k->versions++;
    if (o.action == PUT_TWO) {
        k = &p->keys[second_key(&o)];
        k->value = number;
        k->versions++;
    }
}

static struct str key_name(char out[32], uint32_t writer, uint32_t key)
{
    int len = snprintf(out, 32, "w%u/k%u", writer, key);
    return str_n(out, (size_t)len);
}

/* --- the child --- */

static struct storage *open_storage(const struct crash *c, struct db **db)
{
    char path[128], folder[128];
    struct db_options d = {.path = path, .cfs = local_cf_specs(), .cf_count = LOCAL_FAMILIES};
    struct local_options o = {.name = "crash",
                              .folder = folder,
                              .id = 1,
                              .inline_max = INLINE_MAX,
                              .part_min = 1,
                              .reserve_bytes = 1};
    struct storage *s = NULL;
    struct err err = {0};

    snprintf(path, sizeof(path), "%s/db", c->folder);
    snprintf(folder, sizeof(folder), "%s/storage", c->folder);
    must(db_open(db, &d, &err), &err);
    o.db = *db;
    must(local_open(&s, &o, &err), &err);
    return s;
}

static bool keeps_versions(uint32_t writer)
{
    return writer % 2 == 1;
}

static struct bucket *open_bucket(struct storage *s, uint32_t writer)
{
    struct bucket_info info = {.name = keeps_versions(writer) ? STR("kept") : STR("plain"),
                               .owner = STR("crash")};
    struct bucket *b = NULL;
    struct err err = {0};
    int code;

    if (keeps_versions(writer))
        info.versions = VERSIONS_ON;
    code = s->ops->create_bucket(s, &info, &err);
    must(code == ERR_EXISTS ? 0 : code, &err);
    must(s->ops->open_bucket(&b, s, STR("owner"), info.name, &err), &err);
    return b;
}

static void put(struct writer *w, struct arena *a, struct str key, struct str body)
{
    struct put_options o = {0};
    struct put_result out;
    struct str_reader r;
    struct err err = {0};

    str_reader_init(&r, body);
    must(w->bucket->ops->put(w->bucket, a, key, &r.reader, body.len, &o, &out, &err), &err);
}

static void put_two(struct writer *w, struct arena *a, struct str key, struct str second,
                    struct str body)
{
    struct object_put puts[] = {{.key = key, .bytes = body}, {.key = second, .bytes = body}};
    struct err err = {0};

    must(w->bucket->ops->put_all(w->bucket, a, puts, ARRAY_SIZE(puts), &err), &err);
}

static void upload(struct writer *w, struct arena *a, struct str key, struct str body, bool finish)
{
    struct bucket *b = w->bucket;
    struct upload_info u = {.key = key};
    struct object_meta meta = {0};
    struct put_options o = {0};
    struct put_result out;
    struct upload_part parts[20];
    size_t count = 2 + body.len % 19, each = body.len / count; /* short lists and long ones */
    struct err err = {0};

    if (count > ARRAY_SIZE(parts))
        count = ARRAY_SIZE(parts);
    must(b->ops->upload_begin(b, a, key, &meta, &u.id, &err), &err);
    for (size_t i = 0; i < count; i++) {
        struct str_reader r;
        struct str piece = i + 1 == count ? body : str_head(body, each);
        str_reader_init(&r, piece);
        must(b->ops->upload_part(b, a, &u, (uint32_t)i + 1, &r.reader, piece.len, &o, &parts[i],
                                 &err),
             &err);
        body = str_skip(body, piece.len);
    }
    if (finish)
        must(b->ops->upload_finish(b, a, &u, parts, count, &o, &out, &err), &err);
    else
        must(b->ops->upload_abort(b, &u, &err), &err);
}

static void copy(struct writer *w, struct arena *a, struct str key, struct str from)
{
    struct bucket *b = w->bucket;
    struct put_options o = {0};
    struct put_result out;
    struct get_result got;
    struct err err = {0};
    int code = b->ops->head(b, a, from, STR_EMPTY, NULL, &got, &err);

    if (code == ERR_NOT_FOUND)
        return;
    must(code, &err);
    must(b->ops->copy(b, a, key, b, &got.info, &o, &out, &err), &err);
}

static void operate(struct writer *w, struct buf *body)
{
    struct operation o = operation_of(w->id, w->number);
    struct remove_options remove = {0};
    struct remove_result removed;
    struct arena a = ARENA_INIT(0);
    char name[32], source[32];
    struct str key = key_name(name, w->id, o.key);
    struct err err = {0};

    body_of(body, w->id, w->number);
    if (o.action == PUT_SMALL || o.action == PUT_LARGE)
        put(w, &a, key, buf_str(body));
    else if (o.action == PUT_TWO)
        put_two(w, &a, key, key_name(source, w->id, second_key(&o)), buf_str(body));
    else if (o.action == PUT_PARTS || o.action == ABORT)
        upload(w, &a, key, buf_str(body), o.action == PUT_PARTS);
    else if (o.action == COPY)
        copy(w, &a, key, key_name(source, w->id, o.from));
    else
        must(w->bucket->ops->remove(w->bucket, &a, key, &remove, &removed, &err), &err);
    arena_release(&a);
}

static void tell(const struct writer *w, bool done)
{
    struct event e = {w->id, w->number, done};

    if (write(w->pipe, &e, sizeof(e)) != (ssize_t)sizeof(e))
        _exit(3);
}

static void writer_main(void *ctx)
{
    struct writer *w = ctx;
    struct buf body = BUF_INIT(0);

    for (;; w->number++) {
        tell(w, false);
        operate(w, &body);
        tell(w, true);
    }
}

static void work(const struct crash *c, int pipe)
{
    const struct state *state = container_of(c, struct state, crash);
    struct db *db;
    struct storage *s = open_storage(c, &db);
    struct writer writers[WRITERS] = {0};
    struct err err = {0};

    for (uint32_t i = 0; i < WRITERS; i++) {
        struct writer *w = &writers[i];
        *w = (struct writer){.storage = s, .id = i, .pipe = pipe};
        w->number = state->progress[i].begun + 1;
        w->bucket = open_bucket(s, i);
        must(thread_start(&w->thread, "crash", 0, writer_main, w, &err), &err);
    }
    for (;;)
        pause();
}

/* --- the parent --- */

static bool hear(struct crash *c, int pipe)
{
    struct state *s = container_of(c, struct state, crash);
    struct event e;

    if (read(pipe, &e, sizeof(e)) != (ssize_t)sizeof(e) || e.writer >= WRITERS)
        return false;
    struct progress *p = &s->progress[e.writer];
    p->begun = e.number;
    c->changes += !e.done;
    p->pending = e.done ? 0 : e.number;
    if (e.done)
        apply(p, e.writer, e.number);
    return true;
}

/* Whether the key has exactly these bytes; value 0: nothing. */
static bool holds(struct bucket *b, uint32_t writer, uint32_t key, uint32_t value)
{
    struct arena a = ARENA_INIT(0);
    struct buf want = BUF_INIT(0), got = BUF_INIT(0);
    struct get_result r;
    struct err err = {0};
    char name[32];
    int code = b->ops->get(b, &a, key_name(name, writer, key), STR_EMPTY, NULL, NULL, &r, &err);
    bool same = code == ERR_NOT_FOUND && value == 0;

    if (code == 0) {
        code = reader_read_all(r.body, &got, &err);
        reader_close(r.body);
        body_of(&want, writer, value);
        same = code == 0 && value != 0 && str_eq(buf_str(&got), buf_str(&want));
    }
    buf_release(&want);
    buf_release(&got);
    arena_release(&a);
    return same;
}

static size_t versions_of(struct bucket *b, uint32_t writer, uint32_t key, bool remove)
{
    struct arena a = ARENA_INIT(0);
    char name[32];
    struct list_options o = {.prefix = key_name(name, writer, key), .limit = OBJECT_LIST_MAX};
    struct list_result list;
    struct err err = {0};

    must(b->ops->list_versions(b, &a, &o, &list, &err), &err);
    for (size_t i = 0; remove && i < list.count; i++) {
        struct remove_options r = {.version = list.entries[i].info.version};
        struct remove_result out;
        must(b->ops->remove(b, &a, list.entries[i].info.key, &r, &out, &err), &err);
    }
    size_t count = list.count;
    arena_release(&a);
    return count;
}

static bool same_state(struct bucket *b, uint32_t writer, const struct progress *p)
{
    for (uint32_t key = 0; key < KEYS; key++) {
        const struct key_state *k = &p->keys[key];
        if (!holds(b, writer, key, k->value))
            return false;
        if (keeps_versions(writer) && versions_of(b, writer, key, false) != k->versions)
            return false;
    }
    return true;
}

/* The state is the one answered, or that with the operation that was under way. */
static bool check_writer(struct storage *s, uint32_t writer, struct progress *p, bool quiet)
{
    struct bucket *b = open_bucket(s, writer);
    struct progress with = *p;
    bool good = same_state(b, writer, p);

    if (!good && p->pending) {
        apply(&with, writer, p->pending);
        good = same_state(b, writer, &with);
        *p = with;
    }
    p->pending = 0;
    if (!good && !quiet)
        printf("writer %u: its keys are not as they were answered\n", writer);
    for (uint32_t key = 0; key < KEYS && good; key++)
        if (keeps_versions(writer) && p->keys[key].versions > VERSIONS_KEPT) {
            versions_of(b, writer, key, true);
            p->keys[key] = (struct key_state){0};
        }
    b->ops->unref(b);
    return good;
}

static bool check_whole(struct storage *s, bool quiet)
{
    struct err err = {0};

    local_collect(s);
    if (local_check_whole(s, &err) == 0)
        return true;
    if (!quiet)
        printf("%s\n", err.text);
    return false;
}

static void abort_uploads(struct storage *s, uint32_t writer)
{
    struct bucket *b = open_bucket(s, writer);
    struct arena a = ARENA_INIT(0);
    struct list_options o = {.limit = OBJECT_LIST_MAX};
    struct upload_list list;
    struct err err = {0};

    must(b->ops->list_uploads(b, &a, &o, &list, &err), &err);
    for (size_t i = 0; i < list.count; i++)
        must(b->ops->upload_abort(b, &list.uploads[i], &err), &err);
    b->ops->unref(b);
    arena_release(&a);
}

/* Sometimes it ends without closing, so that epochs stay open and are swept a second time. */
static bool check(struct crash *c)
{
    struct state *state = container_of(c, struct state, crash);
    bool close = next_random(c) % 3 > 0;
    struct db *db;
    struct storage *s = open_storage(c, &db);
    bool good = check_whole(s, c->lie);

    for (uint32_t i = 0; i < WRITERS; i++)
        good = check_writer(s, i, &state->progress[i], c->lie) && good;
    for (uint32_t i = 0; i < 2; i++)
        abort_uploads(s, i);
    good = good && check_whole(s, c->lie);
    if (!close) {
        fflush(NULL);
        _exit(good ? 0 : 1);
    }
    s->ops->close(s);
    db_close(db);
    return good;
}

static void before(struct crash *c)
{
    struct state *s = container_of(c, struct state, crash);

    s->epoch = newest_epoch(c);
    memset((void *)files, 0, MAX_FILES * sizeof(*files));
    atomic_store(lying, c->lie);
}

static void after(struct crash *c, bool power)
{
    const struct state *s = container_of(c, struct state, crash);

    if (power && newest_epoch(c) > s->epoch)
        power_loss(c, newest_epoch(c));
}

static void reset(struct crash *c)
{
    struct state *s = container_of(c, struct state, crash);

    memset(s->progress, 0, sizeof(s->progress));
}

int main(int argc, char **argv)
{
    struct state *s = shared_memory(sizeof(*s));
    struct crash_test test = CRASH_TEST("local_crash", s, .before = before, .after = after);

    lying = shared_memory(sizeof(*lying));
    files = shared_memory(MAX_FILES * sizeof(*files));
    return crash_main(argc, argv, &test);
}
