/* Storing a bundle, and appending to one. */
#include "archive/bundle_int.h"

#include "base/bytes.h"

#define MIB_BYTES (1024 * 1024)

const struct bundle_sizes bundle_sizes_usual = {
    .small = 16 * MIB_BYTES,
    .lead = 5 * MIB_BYTES, /* S3's least size of a part */
    .part = 8 * MIB_BYTES,
    .copy = (uint64_t)4096 * MIB_BYTES, /* S3 copies at most 5 GiB as one part */
};

/* State that full writes and appends share. */
struct put_work {
    struct bundle_write write;
    struct bundle_header header;
    struct header_text text; /* of the header, then the header of the pack */
    char pack_head[PACK_HEADER_LEN];
    struct bundle_pack new;
    bool has_new;
};

static void work_release(struct put_work *w)
{
    header_text_release(&w->text);
    bundle_header_release(&w->header);
    bundle_pack_release(&w->new);
}

/* Prepares the text of the header, and finds its length and its sum. */
static int work_head(struct put_work *w, struct err *err)
{
    struct bundle_meta *m = &w->write.meta;

    memcpy(w->pack_head, "PACK\0\0\0\2", 8);
    be32_write((unsigned char *)w->pack_head + 8, m->objects);
    header_text_init(&w->text, &w->header, STR_EMPTY);
    int code = bundle_sum_reader(m->header_sum, &w->text.reader, &m->pack_offset, err);
    w->text.tail = str_n(w->pack_head, sizeof(w->pack_head));
    header_text_rewind(&w->text);
    return code;
}

/* Reads the header of the new pack, and makes the bundle's header. `old` is NULL for a first
 * bundle. */
static int work_open(struct put_work *w, const struct bundle_job *job, const struct git_refs *refs,
                     const struct bundle_old *old, struct reader *pack, struct err *err)
{
    struct bundle_meta *m = &w->write.meta;
    struct pack_options check = job->check;
    int code = bundle_meta_begin(m, job, refs, err);

    bundle_header_init(&w->header, refs->is_sha256);
    w->write.job = job;
    w->write.sizes = job->sizes ? job->sizes : &bundle_sizes_usual;
    if (code == 0)
        code = bundle_header_follow(
            &w->header, old ? &old->header : NULL, refs,
            &(struct header_time){.now_s = job->now_s, .same_sync_s = job->points_s}, err);
    w->write.out->points_s = w->header.points_s;
    check.is_sha256 = refs->is_sha256;
    check.hold = job->hold;
    /* Two packs can be joined only if neither has deltas by id, and only a walk over the entries
     * finds such deltas. */
    check.walk = check.walk || old;
    if (code == 0 && pack)
        code = bundle_pack_open(&w->new, pack, &check, false, err);
    w->has_new = code == 0 && pack;
    uint64_t objects = (old ? old->objects : 0) + (uint64_t)w->new.objects;
    if (code == 0 && objects > UINT32_MAX)
        code = err_set(err, ERR_TOO_LARGE, "the bundle would have more than 2^32 objects");
    if (code < 0)
        return code;
    m->objects = (uint32_t)objects;
    return work_head(w, err);
}

int bundle_put_full(const struct bundle_job *job, const struct git_refs *refs, struct reader *pack,
                    struct str replaces, struct bundle_result *out, struct err *err)
{
    struct put_work w = {.write.out = out};

    *out = (struct bundle_result){0};
    int code = work_open(&w, job, refs, NULL, pack, err);
    w.write.meta.first_s = job->now_s;
    if (replaces.len)
        w.write.conditions.if_match = arena_fmt(job->arena, "\"" STR_FMT "\"", STR_ARG(replaces));
    else
        w.write.conditions.if_none_match = STR("*");
    bundle_body_init(&w.write.body, &w.text, refs->is_sha256, NULL, w.has_new ? &w.new : NULL);
    if (code == 0)
        code = bundle_store(&w.write, err);
    bundle_body_release(&w.write.body);
    work_release(&w);
    return code;
}

/* --- appending --- */

static int append_check(const struct bundle_job *job, const struct bundle_old *old,
                        const struct git_refs *refs, bool has_pack, struct err *err)
{
    if (old->header.refs.is_sha256 != refs->is_sha256)
        return err_set(err, ERR_CONFLICT, "the bundle has ids of %s",
                       refs->is_sha256 ? "SHA-1" : "SHA-256");
    if (old->meta.fence > job->fence)
        return err_set(err, ERR_BUSY, "the bundle was written by a later worker");
    if (has_pack && old->meta.ref_deltas == REF_DELTAS_SOME)
        return err_set(err, ERR_UNSUPPORTED,
                       "the bundle has deltas by id; it must be tidied first");
    return 0;
}

/* Fills the plan. If it stays empty, the bundle is rewritten by one put. */
static int append_plan(struct bundle_plan *out, const struct put_work *w,
                       const struct bundle_old *old, struct err *err)
{
    struct bucket *b = w->write.job->bucket;
    const struct object_info *info = &old->info;
    struct part_list parts = {0};
    uint64_t trailer = git_id_len(old->header.refs.is_sha256);
    int code = 0;

    *out = (struct bundle_plan){0};
    if (info->size <= w->write.sizes->small || info->meta.encryption.len ||
        !b->ops->upload_part_copy)
        return 0;
    if (b->ops->object_parts && info->part_count)
        code = b->ops->object_parts(b, w->write.job->arena, info, 0, OBJECT_MAX_PARTS, &parts, err);
    if (code == ERR_NOT_FOUND)
        return err_set(err, ERR_PRECONDITION, "the bundle has changed");
    if (code == 0)
        bundle_plan_make(out, w->write.sizes, old->header.pack_at + PACK_HEADER_LEN,
                         info->size - trailer, parts.parts, parts.count);
    return code;
}

/* Reads the old bundle once and writes the new one. */
static int append_run(struct put_work *w, const struct bundle_old *old,
                      const struct bundle_plan *plan, bool *cannot, struct err *err)
{
    struct pack_options check = {.is_sha256 = old->header.refs.is_sha256,
                                 .walk = w->has_new && w->new.objects &&
                                         old->meta.ref_deltas == REF_DELTAS_UNKNOWN,
                                 .limits = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX},
                                 .hold = w->write.job->hold};
    struct bundle_write *to = &w->write;
    struct bundle_ranges from;
    struct bundle_pack pack = {0};

    bundle_ranges_init(&from, to->job, &old->info, old->header.pack_at);
    int code = bundle_pack_open(&pack, &from.reader, &check, true, err);
    bundle_body_init(&to->body, &w->text, check.is_sha256, &pack, w->has_new ? &w->new : NULL);
    if (code == 0)
        code = plan ? bundle_store_by_copies(to, &old->info, plan, cannot, err)
                    : bundle_store(to, err);
    bundle_body_release(&to->body);
    bundle_pack_release(&pack);
    bundle_ranges_release(&from);
    return code;
}

static void append_meta(struct put_work *w, const struct bundle_old *old)
{
    struct bundle_meta *m = &w->write.meta;
    bool joins = w->has_new && w->new.objects;

    m->first_s = old->meta.first_s;
    m->appends = old->meta.appends + (joins && old->objects);
    if (old->objects) /* packs are joined only if neither has deltas by id */
        m->ref_deltas = joins ? REF_DELTAS_NONE : old->meta.ref_deltas;
    w->write.conditions.if_match =
        arena_fmt(w->write.job->arena, "\"" STR_FMT "\"", STR_ARG(old->info.etag));
}

int bundle_append(const struct bundle_job *job, const struct bundle_old *old,
                  const struct git_refs *refs, struct reader *pack, struct bundle_result *out,
                  struct err *err)
{
    struct put_work w = {.write.out = out};
    struct bundle_plan plan = {0};
    bool cannot = true;

    *out = (struct bundle_result){0};
    int code = append_check(job, old, refs, pack != NULL, err);
    if (code == 0)
        code = work_open(&w, job, refs, old, pack, err);
    if (code == 0)
        code = append_plan(&plan, &w, old, err);
    if (code == 0) {
        append_meta(&w, old);
        code = plan.copies.len ? append_run(&w, old, &plan, &cannot, err) : 0;
        if (cannot) {
            out->copied = 0;
            code = append_run(&w, old, NULL, NULL, err);
        }
    }
    bundle_plan_release(&plan);
    work_release(&w);
    return code;
}
