/* A pack in a scratch file, and the table of its entries. */
#include "archive/object_int.h"

#include "object/digest.h"
#include "os/file.h"

#include <inttypes.h>
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <stdlib.h>

enum { PACK_PIECE = 128 * 1024 }; /* bytes that are read from the server at once */

/* --- the first pass: the pack flows by --- */

/* The state while the pack is received: the entry whose bytes are arriving. */
struct intake {
    struct packed *p;
    struct digests *digests; /* of the current object; NULL: no object has begun yet */
    uint32_t crc;
};

static void intake_begin(struct intake *in, const struct pack_seen *e)
{
    char head[32];
    size_t len = packed_head(head, e->type, e->size);

    in->digests = digests_new(1u << (in->p->o.is_sha256 ? DIGEST_SHA256 : DIGEST_SHA1));
    in->crc = 0;
    digests_update(in->digests, str_n(head, len));
}

static bool seen_is_delta(const struct pack_seen *e)
{
    return e->type == PACK_OFS_DELTA || e->type == PACK_REF_DELTA;
}

static int intake_data(void *ctx, const struct pack_seen *e, struct str bytes, struct err *err)
{
    struct intake *in = ctx;

    if (seen_is_delta(e))
        return 0;
    if (!in->digests)
        intake_begin(in, e);
    digests_update(in->digests, bytes);
    in->crc = crc32_gzip_refl(in->crc, (const unsigned char *)bytes.p, bytes.len);
    return packed_canceled(in->p, err);
}

static void intake_whole(struct intake *in, const struct pack_seen *e, struct entry *entry)
{
    struct digest_value id;

    if (!in->digests)
        intake_begin(in, e);
    digests_final(in->digests, in->p->o.is_sha256 ? DIGEST_SHA256 : DIGEST_SHA1, &id);
    digests_free(in->digests);
    in->digests = NULL;
    memcpy(entry->id, id.bytes, ENTRY_ID_LEN);
    entry->type = (unsigned)e->type & 7;
    entry->crc = in->crc;
    in->crc = 0;
}

/* Returns the index of the entry at this offset. Entries are sorted by offset. */
static uint32_t entry_at(const struct packed *p, uint64_t at)
{
    size_t low = 0, high = p->entries.len;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->entries.items[middle].at < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low < p->entries.len && p->entries.items[low].at == at ? (uint32_t)low : ENTRY_NO_BASE;
}

static int intake_entry(void *ctx, const struct pack_seen *e, uint64_t end, struct err *err)
{
    struct intake *in = ctx;
    struct packed *p = in->p;
    struct entry entry = {.at = e->at & ENTRY_SIZE_MAX,
                          .size = e->size & ENTRY_SIZE_MAX,
                          .base = ENTRY_NO_BASE,
                          .head = (e->data_at - e->at) & 63,
                          .stored = (unsigned)e->type & 7};

    if (p->entries.len == p->o.entries_max)
        return err_set(err, ERR_TOO_LARGE, "the tree has more than %" PRIu32 " objects",
                       p->o.entries_max);
    /* An entry of the table, and its index in the order of ids. */
    int code = large_reach(p->o.hold, &p->table_reached,
                           (p->entries.len + 1) * (sizeof(entry) + sizeof(*p->by_id)), err);
    if (code < 0)
        return code;
    if (e->type == PACK_REF_DELTA) {
        if (++p->ref_deltas > PACKED_REF_DELTAS_MAX)
            return err_set(err, ERR_TOO_LARGE, "the pack has more than %d deltas by id",
                           PACKED_REF_DELTAS_MAX);
        memcpy(entry.id, e->base_id, ENTRY_ID_LEN);
    }
    if (e->type == PACK_OFS_DELTA && (entry.base = entry_at(p, e->base_at)) == ENTRY_NO_BASE)
        return err_set(err, ERR_PARSE, "the base of a delta is not an entry before it");
    if (seen_is_delta(e))
        p->deltas++;
    else
        intake_whole(in, e, &entry);
    vec_push(&p->entries, entry);
    p->end = end;
    return 0;
}

static int packed_take_bytes(struct packed *p, struct pack_check *check, struct reader *pack,
                             struct err *err)
{
    char *piece = xrealloc(NULL, PACK_PIECE);
    size_t got = 1;
    int code = 0;

    while (code == 0 && got) {
        code = reader_read(pack, piece, PACK_PIECE, &got, err);
        if (code == 0)
            code = packed_canceled(p, err);
        if (code == 0)
            code = pack_check_add(check, str_n(piece, got), err);
        if (code == 0)
            code = file_write_all(p->fd, piece, got, err);
    }
    free(piece);
    return code;
}

static int packed_take(struct packed *p, struct reader *pack, struct err *err)
{
    struct intake in = {.p = p};
    struct pack_watch watch = {intake_data, intake_entry, &in};
    struct pack_options o = {.is_sha256 = p->o.is_sha256,
                             .walk = true,
                             .limits = p->o.limits,
                             .watch = &watch,
                             .hold = p->o.hold};
    struct pack_check *check = pack_check_new(&o);
    struct pack_result result;
    int code = packed_take_bytes(p, check, pack, err);

    if (code == 0)
        code = pack_check_end(check, &result, err);
    pack_check_free(check);
    digests_free(in.digests);
    return code;
}

/* --- the life of a pack --- */

int packed_open(struct packed **out, struct reader *pack, const struct packed_options *o,
                struct err *err)
{
    struct packed *p = xzalloc(sizeof(*p));

    p->o = *o;
    if (!p->o.entries_max)
        p->o.entries_max = PACKED_ENTRIES_MAX;
    p->cache_max = PACKED_CACHE_MIN;
    p->fd = -1;
    p->chain = xcalloc(PACKED_CHAIN_MAX + 1, sizeof(*p->chain));
    p->inflate = xzalloc(sizeof(*p->inflate));
    p->in = xrealloc(NULL, INFLATE_IN);
    int code = scratch_file(&p->fd, o->folder, err);
    if (code == 0)
        code = packed_take(p, pack, err);
    if (code == 0)
        code = packed_solve(p, err);
    if (code < 0)
        packed_close(p);
    else
        *out = p;
    return code;
}

void packed_close(struct packed *p)
{
    if (!p)
        return;
    packed_cache_release(p);
    large_give(p->o.hold, p->cache_max - PACKED_CACHE_MIN);
    fd_close(&p->fd);
    vec_release(&p->entries);
    free(p->by_id);
    free(p->chain);
    free(p->inflate);
    free(p->in);
    free(p);
}

/* --- looking --- */

int packed_find(struct packed_object *out, const struct packed *p,
                const unsigned char id[GIT_ID_MAX], struct err *err)
{
    size_t low = 0, high = p->by_id_len;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct entry *e = &p->entries.items[p->by_id[middle]];
        if (memcmp(e->id, id, ENTRY_ID_LEN) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const struct entry *e = low < p->by_id_len ? &p->entries.items[p->by_id[low]] : NULL;
    if (!e || memcmp(e->id, id, ENTRY_ID_LEN) != 0)
        return err_set(err, ERR_NOT_FOUND, "an object of the tree is not in the pack");
    uint32_t index = p->by_id[low];
    *out = (struct packed_object){.index = index,
                                  .type = (enum pack_type)e->type,
                                  .size = e->size,
                                  .crc = e->crc,
                                  .is_whole = e->stored == e->type,
                                  .zlib_at = e->at + e->head,
                                  .zlib_len = entry_end(p, index) - e->at - e->head};
    return 0;
}

int packed_read(struct packed *p, const struct packed_object *object, uint64_t max,
                struct str *data, struct err *err)
{
    if (object->size > max)
        return err_set(err, ERR_TOO_LARGE, "an object of the tree has %" PRIu64 " bytes",
                       object->size);
    return packed_data(p, object->index, data, err);
}

int packed_fd(const struct packed *p)
{
    return p->fd;
}

void packed_count(const struct packed *p, struct packed_counts *out)
{
    *out = (struct packed_counts){
        .entries = (uint32_t)p->entries.len, .deltas = p->deltas, .doubles = p->doubles};
}
