/* The scrub reads every body, and reports damaged bodies and files without a row. */
#include "base/clock.h"
#include "base/bytes.h"
#include "object/local/local_int.h"
#include "os/file.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { DAMAGE_NONE = -1, ROWS_AT_ONCE = 64 };

struct bucket_name {
    struct bucket_record r;
    struct str name;
};

struct scrubbing {
    struct local *l;
    const struct local_scrub *o;
    struct arena names;
    VEC(struct bucket_name) buckets;
    char *block;
    uint64_t objects, bytes, began_ns;
    /* The blob that was read last, with its damage. Neighbours in a list of parts often share a
     * blob. */
    uint64_t last_blob;
    int last_damage;
};

/* The tags whose rows are walked, in this order. The cursor is a row's key without the storage's
 * id. */
static const enum tag walked[] = {TAG_OBJECT, TAG_VERSION, TAG_PART};

const char *local_damage_text(enum local_damage damage)
{
    static const char *const texts[] = {
        [LOCAL_DAMAGE_MISSING] = "missing",    [LOCAL_DAMAGE_SIZE] = "wrong size",
        [LOCAL_DAMAGE_CHECKSUM] = "damaged",   [LOCAL_DAMAGE_RECORD] = "unreadable row",
        [LOCAL_DAMAGE_STRAY] = "unknown file", [LOCAL_DAMAGE_COUNT] = "wrong count, mended"};
    return texts[damage];
}

/* Waits until the bytes read so far fit the rate. */
static void slow_down(const struct scrubbing *s)
{
    uint64_t rate = s->o->bytes_per_second;

    if (rate == 0)
        return;
    uint64_t due = (uint64_t)((unsigned __int128)s->bytes * NS_PER_S / rate);
    uint64_t passed = clock_mono_ns() - s->began_ns;
    if (passed >= due)
        return;
    uint64_t wait = due - passed;
    struct timespec t = {(time_t)(wait / NS_PER_S), (long)(wait % NS_PER_S)};
    nanosleep(&t, NULL);
}

/* --- reading bodies and finding damage --- */

static int file_damage(struct scrubbing *s, int fd, const struct blob_record *want, struct err *err)
{
    uint64_t sum = 0, left = want->size;
    struct stat st;
    int code = 0;

    if (fstat(fd, &st) < 0 || (uint64_t)st.st_size != want->size)
        return LOCAL_DAMAGE_SIZE;
    for (off_t at = 0; left > 0 && code == 0;) {
        size_t len = size_min(BLOB_BLOCK, left);
        code = file_pread_full(fd, s->block, len, at, err);
        sum = blob_checksum(sum, str_n(s->block, len));
        at += (off_t)len;
        left -= len;
        s->bytes += len;
        slow_down(s);
    }
    return code < 0 || sum != want->checksum ? LOCAL_DAMAGE_CHECKSUM : DAMAGE_NONE;
}

static int blob_damage(struct scrubbing *s, uint64_t id)
{
    struct local *l = s->l;
    struct buf value = BUF_INIT(0);
    struct blob_record want;
    struct row row;
    struct err err = {0};
    int fd = -1, damage = LOCAL_DAMAGE_MISSING;

    if (id == s->last_blob)
        return s->last_damage;
    if (db_get(db_latest(l->db), l->rows, row_id(&row, l, TAG_BLOB, id), &value, &err) == 0)
        damage =
            blob_record_get(buf_str(&value), &want, &err) == 0 ? DAMAGE_NONE : LOCAL_DAMAGE_RECORD;
    if (damage == DAMAGE_NONE)
        damage = blob_open(&fd, l, id, &err) < 0 ? (int)LOCAL_DAMAGE_MISSING
                                                 : file_damage(s, fd, &want, &err);
    fd_close(&fd);
    buf_release(&value);
    s->last_blob = id;
    s->last_damage = damage;
    return damage;
}

static int inline_damage(struct scrubbing *s, const struct object_record *r)
{
    struct local *l = s->l;
    struct buf value = BUF_INIT(0);
    struct row row;
    struct err err = {0};
    int damage = DAMAGE_NONE;

    if (db_get(db_latest(l->db), l->bytes, row_bytes(&row, l, r->id), &value, &err) < 0)
        damage = LOCAL_DAMAGE_MISSING;
    else if (value.len != record_stored(r))
        damage = LOCAL_DAMAGE_SIZE;
    else if (hash_xxh3(buf_str(&value), 0) != r->checksum)
        damage = LOCAL_DAMAGE_CHECKSUM;
    s->bytes += value.len;
    slow_down(s);
    buf_release(&value);
    return damage;
}

/* Checks the parts of an object. If a part is damaged, *blob is its blob. */
static int parts_damage(struct scrubbing *s, const struct object_record *r, uint64_t *blob)
{
    struct buf parts = BUF_INIT(0);
    struct piece piece;
    struct err err = {0};
    int code = stored_parts(&parts, db_latest(s->l->db), s->l, r, &err), damage = DAMAGE_NONE;
    struct str rest = buf_str(&parts);

    while (code == 0 && damage == DAMAGE_NONE && (code = piece_next(&rest, &piece, &err)) == 0) {
        damage = blob_damage(s, piece.blob);
        *blob = piece.blob;
    }
    buf_release(&parts);
    if (code < 0 && code != ERR_END)
        return code == ERR_AGAIN ? LOCAL_DAMAGE_MISSING : LOCAL_DAMAGE_CHECKSUM;
    return damage;
}

static int record_damage(struct scrubbing *s, const struct object_record *r, uint64_t *blob)
{
    *blob = r->id;
    if (r->where == WHERE_BLOB)
        return blob_damage(s, r->id);
    *blob = 0;
    if (r->where == WHERE_INLINE)
        return inline_damage(s, r);
    return r->where == WHERE_NONE ? DAMAGE_NONE : parts_damage(s, r, blob);
}

/* --- naming the damaged object in a finding --- */

/* Fills the members of `out` that are known without reading the bucket's row. */
static void scrub_find_bucket(struct scrubbing *s, uint64_t id, struct local_bucket *out)
{
    struct bucket_record unknown = {.id = id};

    local_bucket_init(out, s->l, STR_EMPTY, &unknown);
    vec_each (&s->buckets, struct bucket_name *, b)
        if (b->r.id == id) {
            local_bucket_init(out, s->l, STR_EMPTY, &b->r);
            if (!bucket_is_shard(out))
                out->logical.name = b->name;
        }
}

static int scrub_add_bucket(struct scrubbing *s, struct str key, struct str value, struct err *err)
{
    struct bucket_record r;
    int code = bucket_record_get(value, &r, err);

    if (code < 0)
        return code;
    r.logical.name = arena_str(&s->names, r.logical.name);
    vec_push(&s->buckets,
             ((struct bucket_name){r, arena_str(&s->names, str_skip(key, ROW_PREFIX_LEN))}));
    return 0;
}

/* Whether the row still has this value. If the row has changed, its old bytes may have been removed
 * legitimately, and the finding is not reported. */
static bool row_is(struct scrubbing *s, struct str key, struct str value)
{
    struct buf now = BUF_INIT(0);
    bool same = db_get(db_latest(s->l->db), s->l->rows, key, &now, NULL) == 0 &&
                str_eq(buf_str(&now), value);

    buf_release(&now);
    return same;
}

static int scrub_tell(struct scrubbing *s, struct local_finding *f, uint64_t blob, struct err *err)
{
    struct buf path = BUF_INIT(PATH_MAX);

    if (blob)
        blob_path(&path, s->l, blob);
    f->path = buf_str(&path);
    int code = s->o->finding(s->o->ctx, f, err);
    buf_release(&path);
    return code;
}

static int scrub_object(struct scrubbing *s, struct str row, struct str value, struct err *err)
{
    struct arena a = ARENA_INIT(0);
    struct local_bucket shell = {0};
    struct local_finding f = {0};
    struct object_record r;
    uint64_t blob = 0;
    bool in_v = row.p[ROW_PREFIX_LEN - 1] == TAG_VERSION;
    size_t tail = in_v ? ROW_VERSION_TAIL : 0;
    int damage = LOCAL_DAMAGE_RECORD, code = 0;

    if (row.len <= ROW_BUCKET_LEN + tail)
        return err_set(err, ERR_CORRUPT, "the key of a version's row is too short");
    scrub_find_bucket(s, row_u64(str_skip(row, ROW_PREFIX_LEN)), &shell);
    f.bucket = shell.logical.name;
    f.key = str_skip(str_head(row, row.len - tail), ROW_BUCKET_LEN);
    if (record_get(value, &r, err) == 0) {
        damage = record_damage(s, &r, &blob);
        f.version = version_text(&shell, &a, f.key, &r);
    }
    if (damage != DAMAGE_NONE && row_is(s, row, value)) {
        f.damage = (enum local_damage)damage;
        code = scrub_tell(s, &f, blob, err);
    }
    arena_release(&a);
    return code;
}

/* Checks a part of an unfinished upload. Its row does not name the bucket, which is found by the
 * upload's id. */
static int scrub_part(struct scrubbing *s, struct str row, struct str value, struct err *err)
{
    struct local_finding f = {.damage = LOCAL_DAMAGE_RECORD};
    struct part_record r = {0};
    struct buf hex = BUF_INIT(0);
    int damage =
        part_record_get(value, &r, err) < 0 ? (int)LOCAL_DAMAGE_RECORD : blob_damage(s, r.blob);
    int code = 0;

    buf_append_hex(&hex, row.p + ROW_PREFIX_LEN, row.len - ROW_PREFIX_LEN);
    f.key = buf_str(&hex);
    if (damage != DAMAGE_NONE && row_is(s, row, value)) {
        f.damage = (enum local_damage)damage;
        code = scrub_tell(s, &f, r.blob, err);
    }
    buf_release(&hex);
    return code;
}

/* --- walking over rows --- */

typedef int row_fn(struct scrubbing *s, struct str row, struct str value, struct err *err);

/* Walks up to ROWS_AT_ONCE rows after *after, which is set to the last of them. ERR_END: there are
 * no more rows. Each call has an iterator of its own: an iterator keeps deleted data alive in the
 * database, so it must not live for hours. */
static int some_rows(struct scrubbing *s, const struct db_range *range, struct buf *after,
                     row_fn *fn, struct err *err)
{
    struct db_iter *it = NULL;
    struct str key, value;
    int code = db_iter_open(&it, db_latest(s->l->db), s->l->rows, range, err);

    if (code == 0)
        db_iter_seek(it, buf_str(after));
    for (size_t n = 0; n < ROWS_AT_ONCE && code == 0; n++) {
        code = db_iter_next(it, &key, &value, err);
        if (code < 0 || str_eq(key, buf_str(after)))
            continue;
        code = fn(s, key, value, err);
        buf_reset(after);
        buf_append_str(after, key);
    }
    db_iter_close(it);
    return code;
}

static int scrub_each_row(struct scrubbing *s, enum tag tag, struct str from, row_fn *fn,
                          struct err *err)
{
    struct buf start = BUF_INIT(0), end = BUF_INIT(0), after = BUF_INIT(0);
    struct row row;
    int code;

    buf_append_str(&start, row_tag(&row, s->l, tag));
    db_prefix_end(buf_str(&start), &end);
    buf_append_str(&after, from.len ? from : buf_str(&start));
    struct db_range range = {.from = buf_str(&start), .to = buf_str(&end)};
    do
        code = some_rows(s, &range, &after, fn, err);
    while (code == 0);
    buf_release(&start);
    buf_release(&end);
    buf_release(&after);
    return code == ERR_END ? 0 : code;
}

static int scrub_row(struct scrubbing *s, struct str row, struct str value, struct err *err)
{
    int code = row.p[ROW_PREFIX_LEN - 1] == TAG_PART ? scrub_part(s, row, value, err)
                                                     : scrub_object(s, row, value, err);

    s->objects++;
    if (code == 0 && s->o->progress)
        code =
            s->o->progress(s->o->ctx, str_skip(row, ROW_PREFIX_LEN - 1), s->objects, s->bytes, err);
    return code;
}

static int scrub_rows(struct scrubbing *s, struct err *err)
{
    struct str cursor = s->o->cursor;
    struct buf after = BUF_INIT(0);
    struct row row;
    size_t first = 0;
    int code = 0;

    while (cursor.len && first < ARRAY_SIZE(walked) && cursor.p[0] != (char)walked[first])
        first++;
    buf_append_str(&after, str_head(row_tag(&row, s->l, TAG_OBJECT), ROW_PREFIX_LEN - 1));
    buf_append_str(&after, cursor);
    for (size_t i = first; i < ARRAY_SIZE(walked) && code == 0; i++)
        code = scrub_each_row(s, walked[i], i == first && cursor.len ? buf_str(&after) : STR_EMPTY,
                              scrub_row, err);
    buf_release(&after);
    return code;
}

/* --- comparing the counts of buckets --- */

static int scrub_counts(struct scrubbing *s, struct err *err)
{
    int code = 0;

    for (size_t i = 0; i < s->buckets.len && code == 0; i++) {
        const struct bucket_name *b = &s->buckets.items[i];
        struct local_bucket shell = {0};
        struct local_finding f = {.damage = LOCAL_DAMAGE_COUNT, .bucket = b->name};
        struct row row;
        bool was_wrong;
        local_bucket_init(&shell, s->l, row_name(&row, s->l, TAG_BUCKET, b->name), &b->r);
        code = usage_mend(&shell, &was_wrong, err);
        if (code == 0 && was_wrong)
            code = s->o->finding(s->o->ctx, &f, err);
    }
    return code;
}

/* --- looking for files that no row names --- */

static bool scrub_has_row(struct scrubbing *s, enum tag tag, uint64_t id)
{
    struct buf value = BUF_INIT(0);
    struct row row;
    int code = db_get(db_latest(s->l->db), s->l->rows, row_id(&row, s->l, tag, id), &value, NULL);

    buf_release(&value);
    return code != ERR_NOT_FOUND;
}

/* Reports a file without a row. TAG_BLOB is looked up before TAG_GARBAGE, because a blob that loses
 * its last reference meanwhile gets a TAG_GARBAGE row in place of its TAG_BLOB row. The collector
 * deletes the TAG_GARBAGE row only after it has removed the file. */
static int stray_file(void *ctx, uint64_t id, const char *path, struct err *err)
{
    struct scrubbing *s = ctx;
    struct local_finding f = {.damage = LOCAL_DAMAGE_STRAY, .path = str_z(path)};

    if (id &&
        (scrub_has_row(s, TAG_BLOB, id) || scrub_has_row(s, TAG_GARBAGE, id) || !file_exists(path)))
        return 0;
    return s->o->finding(s->o->ctx, &f, err);
}

static int scrub_files(struct scrubbing *s, struct err *err)
{
    struct buf path = BUF_INIT(PATH_MAX);
    VEC(uint32_t) epochs = {0};
    struct dirent *entry;
    int code = 0;

    buf_appendf(&path, "%s/blobs", s->l->folder);
    DIR *dir = opendir(path.p);
    if (!dir)
        code = err_errno(err, errno, "opening the folder %s", path.p);
    while (dir && (entry = readdir(dir))) {
        unsigned char bytes[3];
        if (hex_parse(str_z(entry->d_name), bytes, sizeof(bytes)))
            vec_push(&epochs, (uint32_t)be_read(bytes, sizeof(bytes)));
    }
    if (dir)
        closedir(dir);
    /* In an open epoch a file without a row may still be written (docs/local-storage.md, L8). */
    for (size_t i = 0; i < epochs.len && code == 0; i++)
        if (!epoch_is_open(s->l, epochs.items[i]))
            code = epoch_each_file(s->l, epochs.items[i], stray_file, s, err);
    vec_release(&epochs);
    buf_release(&path);
    return code;
}

int local_scrub(struct storage *storage, const struct local_scrub *o, struct err *err)
{
    struct scrubbing s = {.l = local_of(storage), .o = o, .began_ns = clock_mono_ns()};
    int code = local_present(s.l, err);

    if (code < 0)
        return code;
    s.block = xzalloc(BLOB_BLOCK);
    s.names = ARENA_INIT(GIB);
    code = scrub_each_row(&s, TAG_BUCKET, STR_EMPTY, scrub_add_bucket, err);
    if (code == 0)
        code = scrub_rows(&s, err);
    if (code == 0)
        code = scrub_counts(&s, err);
    if (code == 0)
        code = scrub_files(&s, err);
    vec_release(&s.buckets);
    arena_release(&s.names);
    free(s.block);
    return code;
}
