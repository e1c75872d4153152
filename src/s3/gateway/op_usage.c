/* Reports how much a user's buckets hold and may hold, in the form of Ceph's extensions. Buckets on
 * remote storages are not counted. */
#include "s3/gateway/gateway_int.h"
#include "object/overlay.h"

/* Ceph's way to write "no limit". weir limits neither bytes nor objects. */
#define UNLIMITED STR("-1")

typedef int own_bucket_fn(struct call *c, struct storage *s, const struct bucket_info *info,
                          void *ctx, struct err *err);

/* Calls `fn` for each bucket of the user on one storage, in the order of their names. The info is
 * valid until `fn` returns. */
static int each_on(struct call *c, struct storage *s, own_bucket_fn *fn, void *ctx, struct err *err)
{
    struct arena a = ARENA_INIT(0);
    struct buf after = BUF_INIT(0);
    struct bucket_info *page = NULL;
    size_t count = 0;
    int code = 0;

    do {
        code = storage_list_buckets(s, &a, c->user->id, buf_str(&after), OBJECT_LIST_MAX, &page,
                                    &count, err);
        for (size_t i = 0; code == 0 && i < count; i++)
            code = fn(c, s, &page[i], ctx, err);
        buf_reset(&after);
        if (code == 0 && count)
            buf_append_str(&after, page[count - 1].name);
        arena_release(&a);
        a = (struct arena)ARENA_INIT(0);
    } while (code == 0 && count == OBJECT_LIST_MAX);
    buf_release(&after);
    return code;
}

static int each_own_bucket(struct call *c, own_bucket_fn *fn, void *ctx, struct err *err)
{
    struct storage *storages[ROUTES_STORAGES_MAX];
    size_t n = routes_storages(c->g->o.routes, storages, ROUTES_STORAGES_MAX);
    int code = 0;

    for (size_t i = 0; i < n && code == 0; i++)
        if (storage_can(storages[i], STORAGE_AT_HAND))
            code = each_on(c, storages[i], fn, ctx, err);
    return code;
}

/* --- the limit of buckets --- */

static int usage_count_bucket(struct call *c, struct storage *s, const struct bucket_info *info,
                              void *ctx, struct err *err)
{
    uint64_t *count = ctx;

    (void)s, (void)info;
    return ++*count < c->g->o.max_buckets ? 0 : s3_fail(err, S3_TOO_MANY_BUCKETS);
}

int usage_check_new_bucket(struct call *c, struct err *err)
{
    uint64_t count = 0;

    return c->g->o.max_buckets ? each_own_bucket(c, usage_count_bucket, &count, err) : 0;
}

/* --- one bucket --- */

void respond_usage(struct call *c, const struct bucket_usage *u)
{
    http_respond_header_u64(c->http, STR("X-RGW-Object-Count"), u->objects + u->old_versions);
    http_respond_header_u64(c->http, STR("X-RGW-Bytes-Used"), u->bytes + u->old_bytes);
    if (!str_eq(c->user_id, c->target.info.owner)) /* only the owner may see the limits */
        return;
    respond_header(c, "X-RGW-Quota-User-Size", UNLIMITED);
    respond_header(c, "X-RGW-Quota-User-Objects", UNLIMITED);
    http_respond_header_u64(c->http, STR("X-RGW-Quota-Max-Buckets"), c->g->o.max_buckets);
    respond_header(c, "X-RGW-Quota-Bucket-Size", UNLIMITED);
    respond_header(c, "X-RGW-Quota-Bucket-Objects", UNLIMITED);
}

/* --- all buckets of a user --- */

struct report {
    struct buf buckets; /* has an <Entry> for each bucket */
    uint64_t bytes, versions;
};

static int report_add_bucket(struct call *c, struct storage *s, const struct bucket_info *info,
                             void *ctx, struct err *err)
{
    struct report *r = ctx;
    struct bucket_usage u = {0};
    struct bucket *b = NULL;
    int code = storage_open_bucket(&b, s, c->user->id, info->name, err);

    if (code == ERR_NO_BUCKET)
        return 0; /* the bucket was removed just now */
    if (code < 0)
        return code;
    code = b->ops->usage(b, &u, err);
    b->ops->unref(b);
    if (code < 0)
        return code;
    xml_open(&r->buckets, "Entry");
    xml_element(&r->buckets, "Bucket", info->name);
    xml_element_u64(&r->buckets, "Bytes", u.bytes + u.old_bytes);
    xml_close(&r->buckets, "Entry");
    r->bytes += u.bytes + u.old_bytes;
    r->versions += u.objects + u.old_versions;
    return buf_error(&r->buckets);
}

/* Writes the report. Its document has no namespace, as on Ceph. */
static void write_report(struct buf *xml, struct call *c, const struct report *r)
{
    xml_prolog(xml);
    xml_open(xml, "Usage");
    xml_open(xml, "Entries"); /* Ceph's log of operations, which weir does not have */
    xml_close(xml, "Entries");
    xml_open(xml, "Summary");
    xml_element(xml, "QuotaMaxBytes", UNLIMITED);
    xml_element_u64(xml, "QuotaMaxBuckets", c->g->o.max_buckets);
    xml_element(xml, "QuotaMaxObjCount", UNLIMITED);
    xml_element(xml, "QuotaMaxBytesPerBucket", UNLIMITED);
    xml_element(xml, "QuotaMaxObjCountPerBucket", UNLIMITED);
    xml_element_u64(xml, "TotalBytes", r->bytes);
    xml_element_u64(xml, "TotalEntries", r->versions);
    xml_close(xml, "Summary");
    xml_open(xml, "CapacityUsed");
    xml_open(xml, "User");
    xml_open(xml, "Buckets");
    buf_append_str(xml, buf_str(&r->buckets));
    xml_close(xml, "Buckets");
    xml_close(xml, "User");
    xml_close(xml, "CapacityUsed");
    xml_close(xml, "Usage");
}

int op_usage(struct call *c, struct err *err)
{
    struct buf xml = BUF_INIT(CALL_OUT_MAX);
    struct report r = {.buckets = BUF_INIT(CALL_OUT_MAX)};
    int code =
        c->user ? each_own_bucket(c, report_add_bucket, &r, err) : s3_fail(err, S3_ACCESS_DENIED);

    if (code == 0)
        write_report(&xml, c, &r);
    buf_release(&r.buckets);
    return code < 0 ? code : respond_xml(c, 200, &xml);
}
