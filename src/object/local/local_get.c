/* Reading objects: head, get, ranges. */
#include "object/local/local_int.h"

/* Finds the current version. If there is no object, it also finds out whether a marker is current,
 * or the bucket no longer exists. */
static int find_current(struct stored *out, struct local_bucket *b, struct str key, struct err *err)
{
    struct local *l = b->local;
    struct db_view *latest = db_latest(l->db);
    struct bucket_record bucket;
    struct row row;
    int code = stored_get(out, latest, l, row_key(&row, b, TAG_OBJECT, key), err);

    if (code != ERR_NOT_FOUND)
        return code;
    code = bucket_row_get(b, latest, &out->row, &bucket, err);
    if (code == 0 && bucket.info.versions == VERSIONS_NEVER)
        return err_code(err, ERR_NOT_FOUND);
    if (code == 0)
        code = stored_newest(out, latest, b, key, err);
    /* If the newest of the other versions is not a marker, the key has changed since the first
     * read, which found that there is no object. */
    return code == 0 && !out->r.is_marker ? err_code(err, ERR_NOT_FOUND) : code;
}

static int stored_find_named(struct stored *out, struct local_bucket *b, struct str key,
                             struct str version, bool *is_latest, struct err *err)
{
    struct db_view *view = NULL;
    struct stored current = {0};
    struct row row;
    int code = db_snapshot(&view, b->local->db, err);

    if (code < 0)
        return code;
    code = stored_find(out, view, b, key, version, err);
    if (code == 0) {
        int found = stored_get(&current, view, b->local, row_key(&row, b, TAG_OBJECT, key), err);
        if (found == ERR_NOT_FOUND)
            found = stored_newest(&current, view, b, key, err);
        *is_latest = found == 0 && current.r.sequence == out->r.sequence;
    } else if (code == ERR_NOT_FOUND) {
        struct bucket_record bucket;
        int there = bucket_row_get(b, view, &current.row, &bucket, err);
        code = there < 0 ? there : err_code(err, ERR_NOT_FOUND);
    }
    stored_release(&current);
    db_snapshot_free(view);
    return code;
}

static int stored_find_asked(struct stored *out, struct local_bucket *b, struct str key,
                             struct str version, bool *is_latest, struct err *err)
{
    *is_latest = true;
    return version.len ? stored_find_named(out, b, key, version, is_latest, err)
                       : find_current(out, b, key, err);
}

/* Fills out->info, and fails for a marker or if the conditions do not hold. */
static int stored_describe(struct local_bucket *b, struct arena *a, struct str key,
                           const struct stored *found, const struct object_conditions *c,
                           struct get_result *out, struct err *err)
{
    int code = record_info(&found->r, a, true, &out->info, err);

    out->info.key = arena_str(a, key);
    out->info.version = version_text(b, a, key, &found->r);
    out->len = found->r.size;
    if (code == 0 && arena_error(a) < 0)
        code = err_code(err, ERR_NO_MEMORY);
    if (code == 0 && found->r.is_marker)
        code = err_set(err, ERR_NOT_FOUND, "a delete marker");
    struct condition_state now = record_state(&found->r);
    return code < 0 ? code : conditions_judge_read(c, &now, err);
}

int local_head(struct bucket *bucket, struct arena *a, struct str key, struct str version,
               const struct object_conditions *c, struct get_result *out, struct err *err)
{
    struct local_bucket *b = local_bucket_of(bucket);
    struct stored found = {0};
    int code = key_check(key, err);

    *out = (struct get_result){0};
    if (code == 0)
        code = stored_find_asked(&found, b, key, version, &out->info.is_latest, err);
    if (code == 0)
        code = stored_describe(b, a, key, &found, c, out, err);
    stored_release(&found);
    return code;
}

int range_resolve(const struct object_range *range, uint64_t size, uint64_t out[2], struct err *err)
{
    uint64_t last = range->last;

    out[0] = 0;
    out[1] = size;
    if (range->kind == RANGE_SUFFIX) {
        if (range->first == 0 || size == 0)
            return err_code(err, ERR_RANGE);
        out[1] = range->first < size ? range->first : size;
        out[0] = size - out[1];
    } else if (range->kind == RANGE_FROM_TO) {
        if (range->first >= size || last < range->first)
            return err_code(err, ERR_RANGE);
        if (last >= size)
            last = size - 1;
        out[0] = range->first;
        out[1] = last - range->first + 1;
    }
    return 0;
}

/* Sets the range of a part, and its checksum, in *out. An object that was not made of parts is its
 * own part 1. */
static int part_range(struct local *l, struct arena *a, const struct object_record *r,
                      uint64_t number, struct get_result *out, struct err *err)
{
    struct buf list = BUF_INIT(0);
    struct piece piece = {0};
    uint64_t at = 0;
    int code;

    if (r->part_count == 0)
        return number == 1 ? 0 : err_set(err, ERR_RANGE, "there is no such part");
    code = stored_parts(&list, db_latest(l->db), l, r, err);
    struct str rest = buf_str(&list);
    while (code == 0 && (code = piece_next(&rest, &piece, err)) == 0 && piece.number != number)
        at += piece.size;
    if (code == 0) {
        out->first = at;
        out->len = piece.size;
        out->part_checksum = piece.checksum;
        out->part_checksum.value = arena_str(a, piece.checksum.value);
    }
    buf_release(&list);
    return code == ERR_END ? err_set(err, ERR_RANGE, "there is no such part") : code;
}

static int stored_open_range(struct local *l, struct arena *a, const struct object_record *r,
                             const struct object_range *range, struct pin **pin,
                             struct get_result *out, struct err *err)
{
    uint64_t at[2] = {0, r->size};
    int code = 0;

    if (range && range->kind != RANGE_PART)
        code = range_resolve(range, r->size, at, err);
    out->first = at[0];
    out->len = at[1];
    if (range && range->kind == RANGE_PART)
        code = part_range(l, a, r, range->first, out, err);
    if (code < 0)
        return code;
    at[0] = out->first;
    at[1] = out->len;
    out->partial = range && range->kind != RANGE_ALL;
    if (r->meta.encryption.len) {
        out->unlock = sealed_body_unlock;
        out->at_hand = r->where == WHERE_INLINE;
    }
    return body_open(&out->body, l, a, r, at, pin, err);
}

/* NOLINTNEXTLINE(readability-function-size): bucket.h gives the parameters */
int local_get(struct bucket *bucket, struct arena *a, struct str key, struct str version,
              const struct object_conditions *c, const struct object_range *range,
              struct get_result *out, struct err *err)
{
    struct local_bucket *b = local_bucket_of(bucket);
    struct stored found = {0};
    struct pin *pin = NULL;
    uint64_t tried = 0; /* sequence number of the version whose bytes were missing */
    int code;

    do {
        code = key_check(key, err);
        *out = (struct get_result){0};
        if (code == 0)
            code = stored_find_asked(&found, b, key, version, &out->info.is_latest, err);
        if (code == 0)
            code = stored_describe(b, a, key, &found, c, out, err);
        if (code == 0 && found.r.part_count > 0 && !pin) {
            /* The blobs may have been removed before the pin was made, so the row is read again
             * (docs/local-storage.md, L9). */
            pin = pin_begin(b->local);
            code = ERR_AGAIN;
            continue;
        }
        if (code == 0)
            code = stored_open_range(b->local, a, &found.r, range, &pin, out, err);
        /* The row is the same as in the last try, and the bytes of a row that stays are never
         * removed. So the bytes are lost. */
        if (code == ERR_AGAIN && found.r.sequence == tried)
            code = err_set(err, ERR_CORRUPT, "the bytes of the object are missing");
        tried = found.r.sequence;
    } while (code == ERR_AGAIN);
    pin_end(b->local, pin);
    stored_release(&found);
    return code;
}
