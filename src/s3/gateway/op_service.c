/* ListBuckets: lists the buckets of all spaces (route/space.h) and storages, by name
 * (docs/forward.md, "ListBuckets"). */
#include "base/vec.h"
#include "object/overlay.h"
#include "route/space.h"
#include "object/remote/remote.h"
#include "s3/gateway/bucket_name.h"
#include "s3/gateway/gateway_int.h"

#include "sign/base64.h"

#include <stdlib.h>

enum { BUCKETS_MAX = 10000 };

struct bucket_page {
    VEC(struct bucket_info) items;
    size_t count, limit; /* number of buckets on the page, and the limit on that number */
    struct str after, prefix, region;
    bool more;
    bool incomplete; /* a storage could not be asked, so its buckets may be missing */
};

/* Adds those of the user's buckets on this storage that come after `after` in the order of names, a
 * page at a time, until there are more than `limit`. A bucket of a space can always be reached by
 * its name; a bucket of a storage is added only if the user's route leads to it. */
static int buckets_gather(struct call *c, struct storage *s, bool space, struct bucket_page *p,
                          struct err *err)
{
    size_t most = p->items.len + p->limit + 1, count = 0;
    struct str after = p->after;
    struct bucket_info *got;
    int code = 0;

    do {
        code = storage_list_buckets(s, c->a, c->user_id, after, OBJECT_LIST_MAX, &got, &count, err);
        for (size_t i = 0; code == 0 && i < count && p->items.len < most; i++) {
            bool reached = str_starts(got[i].name, p->prefix) && bucket_name_fits(got[i].name);
            if (reached && !space)
                code = route_reaches(c->g->o.routes, c->user_id, got[i].name, s, &reached, err);
            if (code == 0 && reached)
                vec_push(&p->items, got[i]);
        }
        if (code == 0 && count)
            after = got[count - 1].name;
    } while (code == 0 && count == OBJECT_LIST_MAX && p->items.len < most);
    return code;
}

/* Adds the buckets for which a routing policy of the user names the storage `s`, which does not
 * answer. weir knows no other buckets there, and does not know when the added buckets were made. */
static int buckets_recall(struct call *c, const struct storage *s, struct bucket_page *p,
                          struct err *err)
{
    struct arena a = {0};
    struct route_policy *list = NULL;
    size_t count = 0;
    int code = route_list(c->g->o.routes, &a, &list, &count, err);

    for (size_t i = 0; code == 0 && i < count; i++)
        if (!list[i].blocked && str_eq(list[i].user, c->user_id) &&
            str_eq(list[i].storage, s->name) && str_cmp(list[i].bucket, p->after) > 0 &&
            str_starts(list[i].bucket, p->prefix))
            vec_push(&p->items, (struct bucket_info){.name = arena_str(c->a, list[i].bucket)});
    arena_release(&a);
    p->incomplete = true;
    return code;
}

/* Does the error of a remote storage mean that the user cannot reach the storage? That is so if the
 * storage is down, does not answer, answers nonsense, or refuses the user's keys. If the storage is
 * only busy, or if weir is short of memory or stopping, the client should ask again. */
static bool is_not_there(int code)
{
    return code < 0 && code != ERR_BUSY && code != ERR_NO_MEMORY && code != ERR_SHUTDOWN &&
           code != ERR_CANCELED;
}

static int gather_remote(struct call *c, struct storage *s, struct bucket_page *p, struct err *err)
{
    size_t before = p->items.len;
    int code = buckets_gather(c, s, false, p, err);

    if (!is_not_there(code))
        return code;
    log_warn(http_request_log(c->http), "buckets.incomplete", log_s("storage", s->name),
             log_z("error", err->text));
    p->items.len = before;
    return buckets_recall(c, s, p, err);
}

/* Compares buckets by name. Of several buckets with one name the oldest comes first. */
static int bucket_by_name(const void *one, const void *two)
{
    const struct bucket_info *a = one, *b = two;
    int order = str_cmp(a->name, b->name);

    return order ? order : (a->created_ms > b->created_ms) - (a->created_ms < b->created_ms);
}

/* Sorts the buckets and removes duplicates. A bucket that is replicated from one local storage to
 * another is on both, and is listed once. */
static void buckets_put_in_order(struct bucket_page *p)
{
    size_t kept = 0;

    if (p->items.len)
        qsort(p->items.items, p->items.len, sizeof(*p->items.items), bucket_by_name);
    for (size_t i = 0; i < p->items.len; i++)
        if (kept == 0 || !str_eq(p->items.items[i].name, p->items.items[kept - 1].name))
            p->items.items[kept++] = p->items.items[i];
    p->items.len = kept;
}

/* Collects the buckets of all spaces and storages. A remote storage is asked only if the user has
 * credentials on it. */
static int buckets_collect(struct call *c, struct bucket_page *p, struct err *err)
{
    struct storage *storages[ROUTES_STORAGES_MAX];
    const struct bucket_space *spaces[ROUTES_SPACES_MAX];
    size_t n = routes_spaces(c->g->o.routes, spaces);
    int code = 0;

    for (size_t i = 0; i < n && code == 0; i++)
        code = buckets_gather(c, spaces[i]->storage, true, p, err);
    n = routes_storages(c->g->o.routes, storages, ROUTES_STORAGES_MAX);
    for (size_t i = 0; i < n && code == 0; i++)
        if (!storage_can(storages[i], STORAGE_CREDENTIALS))
            code = buckets_gather(c, storages[i], false, p, err);
        else if (remote_has_credential(storages[i], c->user_id))
            code = gather_remote(c, storages[i], p, err);
    if (code < 0)
        return code;
    buckets_put_in_order(p);
    p->more = p->items.len > p->limit;
    p->count = size_min(p->items.len, p->limit);
    return 0;
}

static int buckets_ask_page(struct call *c, struct bucket_page *p, struct err *err)
{
    struct str token = call_param(c, "continuation-token");
    struct buf after = BUF_INIT(256);
    uint64_t limit;
    int code = call_number(c, "max-buckets", BUCKETS_MAX, BUCKETS_MAX, &limit, err);

    if (code == 0 && token.len && base64_decode(&after, token) < 0)
        code = err_set(err, S3_INVALID_ARGUMENT, "The continuation token provided is incorrect");
    if (code == 0 && limit == 0)
        code = err_set(err, S3_INVALID_ARGUMENT, "max-buckets must be between 1 and 10000");
    p->after = arena_str(c->a, buf_str(&after));
    p->limit = (size_t)limit;
    p->prefix = call_param(c, "prefix");
    p->region = call_param(c, "bucket-region");
    buf_release(&after);
    return code;
}

static void buckets_write_page(struct buf *xml, struct call *c, const struct bucket_page *p)
{
    document_open(xml, "ListAllMyBucketsResult");
    xml_owner(xml, c, "Owner", c->user_id);
    xml_open(xml, "Buckets");
    for (size_t i = 0; i < p->count; i++) {
        xml_open(xml, "Bucket");
        xml_element(xml, "Name", p->items.items[i].name);
        xml_time(xml, "CreationDate", p->items.items[i].created_ms);
        if (p->region.p || p->prefix.p || call_param(c, "max-buckets").p)
            xml_element(xml, "BucketRegion", c->g->region);
        xml_close(xml, "Bucket");
    }
    xml_close(xml, "Buckets");
    if (p->prefix.len)
        xml_element(xml, "Prefix", p->prefix);
    if (p->more && p->count) {
        xml_open(xml, "ContinuationToken");
        base64_encode(xml, p->items.items[p->count - 1].name);
        xml_close(xml, "ContinuationToken");
    }
    xml_close(xml, "ListAllMyBucketsResult");
}

int op_list_buckets(struct call *c, struct err *err)
{
    struct buf xml = BUF_INIT(CALL_OUT_MAX);
    struct bucket_page p = {0};
    int code;

    code = buckets_ask_page(c, &p, err);
    bool elsewhere = p.region.len && !str_eq(p.region, c->g->region);
    if (code == 0 && c->user && !elsewhere) /* an anonymous user has no buckets */
        code = buckets_collect(c, &p, err);
    if (code == 0)
        buckets_write_page(&xml, c, &p);
    vec_release(&p.items);
    c->incomplete = p.incomplete;
    return code < 0 ? code : respond_xml(c, 200, &xml);
}
