/* Buckets of a remote storage, and their documents. */
#include "object/remote/remote_int.h"

#include <stdlib.h>

enum { BUCKET_PAGES = 100, BUCKET_NAME_MAX = 255 };

struct remote_bucket *remote_bucket_of(struct bucket *b)
{
    BUG_ON(b->ops != &remote_bucket_ops);
    return container_of(b, struct remote_bucket, bucket);
}

bool remote_is_bucket_of(const struct bucket *b, const struct remote *r)
{
    return b->ops == &remote_bucket_ops && b->storage == &r->storage;
}

static struct bucket *bucket_ref(struct bucket *bucket)
{
    atomic_fetch_add_explicit(&remote_bucket_of(bucket)->refs, 1, memory_order_relaxed);
    return bucket;
}

static void bucket_unref(struct bucket *bucket)
{
    struct remote_bucket *b = remote_bucket_of(bucket);

    if (atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) == 1)
        free(b);
}

static struct remote_bucket *bucket_new(struct remote *r, struct str user, struct str name)
{
    struct remote_bucket *b = xcalloc(1, sizeof(*b) + name.len + user.len);

    memcpy(b->bytes, name.p, name.len);
    if (user.len)
        memcpy(b->bytes + name.len, user.p, user.len);
    b->bucket = (struct bucket){
        .ops = &remote_bucket_ops, .name = str_n(b->bytes, name.len), .storage = &r->storage};
    b->user = str_n(b->bytes + name.len, user.len);
    b->remote = r;
    atomic_init(&b->refs, 1);
    return b;
}

/* --- which buckets exist --- */

/* Checks that the bucket exists. An answer to HEAD has no S3 code. So after a 404 to a HEAD the
 * bucket counts as absent only if a GET is answered with NoSuchBucket (docs/remote-storage.md,
 * M1). */
static int bucket_is_there(struct remote_bucket *b, struct err *err)
{
    struct ask q;

    ask_init_bucket(&q, b, "HEAD", STR_EMPTY);
    int code = ask_send(&q, err);
    bool absent = code < 0 && q.head && q.head->status == 404;
    ask_release(&q);
    if (!absent)
        return code;
    ask_init_bucket(&q, b, "GET", STR_EMPTY);
    ask_param(&q, "list-type", STR("2"));
    ask_param(&q, "max-keys", STR("1"));
    return ask_done(&q, err);
}

int remote_open_bucket(struct bucket **out, struct storage *s, struct str user, struct str name,
                       struct err *err)
{
    if (name.len == 0 || name.len > BUCKET_NAME_MAX)
        return err_code(err, ERR_NO_BUCKET);
    struct remote_bucket *b = bucket_new(remote_of(s), user, name);
    int code = bucket_is_there(b, err);
    if (code == ERR_DENIED &&
        !user.len) /* anonymous users may be allowed to see objects but not the bucket */
        code = 0;
    if (code < 0)
        bucket_unref(&b->bucket);
    else
        *out = &b->bucket;
    return code;
}

/* Reads one page of the user's own buckets. page->token is the token of this page, and is then set
 * to the token of the next page. */
static int buckets_read_page(struct remote *r, struct str user, struct str prefix, struct arena *a,
                             struct remote_bucket_page *page, struct err *err)
{
    struct ask q;
    struct str text;

    ask_init(&q, r, user, "GET");
    ask_param_given(&q, "prefix", prefix);
    ask_param_given(&q, "continuation-token", page->token);
    int code = ask_send(&q, err);
    /* If the peer is a weir whose list is not complete, it says so; then a bucket that is not
     * listed may exist all the same. */
    if (code == 0 && ask_answer(&q, "x-weir-incomplete").len)
        code = err_set(err, ERR_UNAVAILABLE, "the list of buckets is not complete there");
    if (code == 0)
        code = ask_text(&q, a, XML_MAX_BYTES, &text, err);
    if (code == 0)
        code = remote_read_buckets(page, a, text, err);
    ask_release(&q);
    return code;
}

/* The first `limit` buckets after `after`, in the order of their names. */
struct gathered {
    struct arena *a;
    struct str after;
    struct bucket_info *buckets;
    size_t count, room;
};

static int gathered_add(struct gathered *g, const struct bucket_info *info, struct str owner)
{
    if (str_cmp(info->name, g->after) <= 0)
        return 0;
    if (g->count == g->room) {
        size_t room = size_max(64, 2 * g->room);
        struct bucket_info *larger = arena_array(g->a, room, sizeof(*larger));
        if (!larger)
            return ERR_NO_MEMORY;
        if (g->count)
            memcpy(larger, g->buckets, g->count * sizeof(*larger));
        g->buckets = larger;
        g->room = room;
    }
    g->buckets[g->count] = *info;
    g->buckets[g->count++].owner = owner;
    return 0;
}

static int gathered_fill(struct gathered *g, struct remote *r, struct str user, struct str prefix,
                         struct err *err)
{
    struct remote_bucket_page page = {0};
    int code = 0;

    for (int pages = 0; code == 0 && (pages == 0 || page.token.len); pages++) {
        if (pages == BUCKET_PAGES)
            return err_set(err, ERR_PEER, "the storage lists buckets without end");
        code = buckets_read_page(r, user, prefix, g->a, &page, err);
        for (size_t i = 0; i < page.count && code == 0; i++)
            code = gathered_add(g, &page.buckets[i], user);
    }
    return code;
}

static int bucket_name_order(const void *a, const void *b)
{
    return str_cmp(((const struct bucket_info *)a)->name, ((const struct bucket_info *)b)->name);
}

/* NOLINTNEXTLINE(readability-function-size): bucket.h gives the parameters */
int remote_list_buckets(struct storage *s, struct arena *a, struct str owner, struct str after,
                        size_t limit, struct bucket_info **out, size_t *count, struct err *err)
{
    struct remote *r = remote_of(s);
    struct gathered g = {.a = a, .after = after};
    struct str *users = &owner;
    size_t user_count = 1;
    int code = 0;

    if (owner.len == 0)
        code = credential_table_users(&r->credentials, a, &users, &user_count, err);
    for (size_t i = 0; i < user_count && code == 0; i++)
        code = gathered_fill(&g, r, arena_str(a, users[i]), STR_EMPTY, err);
    if (code < 0)
        return code;
    if (g.count)
        qsort(g.buckets, g.count, sizeof(*g.buckets), bucket_name_order);
    *out = g.buckets;
    *count = size_min(g.count, limit);
    return 0;
}

int remote_check(struct storage *s, struct err *err)
{
    struct remote *r = remote_of(s);
    struct credential *c = credential_table_any(&r->credentials);
    struct ask q;
    int code;

    if (!c)
        return err_set(err, ERR_INVALID, "nobody has credentials on the storage yet");
    ask_init(&q, r, c->user, "GET");
    code = ask_done(&q, err);
    credential_unref(c);
    return code;
}

/* --- making and removing buckets --- */

/* Finds the bucket in the user's own list; out->name is empty if it is not there. */
static int find_own(struct remote *r, struct arena *a, struct str user, struct str name,
                    struct bucket_info *out, struct err *err)
{
    struct gathered g = {.a = a};
    int code = user.len ? gathered_fill(&g, r, user, name, err) : 0;

    *out = (struct bucket_info){0};
    for (size_t i = 0; i < g.count && code == 0; i++)
        if (str_eq(g.buckets[i].name, name))
            *out = g.buckets[i];
    return code;
}

static int send_create(struct remote *r, const struct bucket_info *info, struct err *err)
{
    struct buf xml = BUF_INIT(REMOTE_DOCUMENT_MAX);
    struct ask q;

    ask_init(&q, r, info->owner, "PUT");
    ask_name(&q, info->name, STR_EMPTY);
    if (info->object_lock)
        ask_header(&q, "x-amz-bucket-object-lock-enabled", STR("true"));
    if (!str_eq(buf_str(&r->region), STR("us-east-1"))) {
        xml_open(&xml, "CreateBucketConfiguration");
        xml_element(&xml, "LocationConstraint", buf_str(&r->region));
        xml_close(&xml, "CreateBucketConfiguration");
        ask_document(&q, buf_str(&xml));
    }
    int code = ask_send(&q, err);
    if (code == ERR_EXISTS)
        code = err_set(
            err, code, STR_FMT,
            STR_ARG(str_eq(q.error, STR("BucketAlreadyOwnedByYou")) ? info->owner : STR_EMPTY));
    ask_release(&q);
    buf_release(&xml);
    return code;
}

int remote_create_bucket(struct storage *s, const struct bucket_info *info, struct err *err)
{
    struct remote *r = remote_of(s);
    struct arena a = ARENA_INIT(0);
    struct bucket_info own;
    /* On some peers a user may make a bucket again that they own. Here that is ERR_EXISTS. */
    int code = find_own(r, &a, info->owner, info->name, &own, err);

    if (code == 0 && own.name.len)
        code = err_set(err, ERR_EXISTS, STR_FMT, STR_ARG(info->owner));
    if (code == 0)
        code = send_create(r, info, err);
    if (code == 0 && info->versions == VERSIONS_ON && !info->object_lock) {
        struct remote_bucket *b = bucket_new(r, info->owner, info->name);
        code = remote_set_versions(&b->bucket, true, err);
        bucket_unref(&b->bucket);
    }
    arena_release(&a);
    return code;
}

int remote_remove_bucket(struct storage *s, struct str user, struct str name, struct err *err)
{
    struct ask q;

    if (name.len == 0 || name.len > BUCKET_NAME_MAX)
        return err_code(err, ERR_NO_BUCKET);
    ask_init(&q, remote_of(s), user, "DELETE");
    ask_name(&q, name, STR_EMPTY);
    q.request.idempotent = false; /* a second request would find that the bucket is gone already */
    return ask_done(&q, err);
}

/* --- one bucket: its documents, versions and lock --- */

/* Whether the text is a listing of the bucket's keys. A peer answers a request for a document with
 * a listing if it ignores the query parameter that names the document. */
static bool is_listing(struct str text)
{
    enum { PROLOG_MAX = 256 };

    return str_find(str_n(text.p, text.len < PROLOG_MAX ? text.len : PROLOG_MAX),
                    STR("<ListBucketResult")) >= 0;
}

/* Reads one of the bucket's documents. ERR_UNSUPPORTED: the peer does not know such documents. */
static int read_document(struct remote_bucket *b, struct arena *a, const char *name,
                         struct str *out, struct err *err)
{
    struct ask q;

    ask_init_bucket(&q, b, "GET", STR_EMPTY);
    ask_param(&q, name, STR_EMPTY);
    int code = ask_send(&q, err);
    if (code == 0)
        code = ask_text(&q, a, REMOTE_DOCUMENT_MAX, out, err);
    if (code == 0 && is_listing(*out))
        code = err_set(err, ERR_UNSUPPORTED, "the storage does not know ?%s of a bucket", name);
    ask_release(&q);
    return code;
}

/* Reads whether the bucket keeps versions. A peer that does not know versions keeps none. */
static int read_versioning(struct remote_bucket *b, struct arena *a, struct bucket_info *out,
                           struct err *err)
{
    struct xml_node *root = NULL;
    struct str text;
    int code = read_document(b, a, "versioning", &text, err);

    if (code == ERR_UNSUPPORTED)
        return 0;
    if (code == 0)
        code = remote_read_root(&root, a, text, "VersioningConfiguration", err);
    struct str status = xml_child_text(root, "Status", STR_EMPTY);
    if (str_eq(status, STR("Enabled")))
        out->versions = VERSIONS_ON;
    else if (str_eq(status, STR("Suspended")))
        out->versions = VERSIONS_SUSPENDED;
    return code;
}

/* Reads whether the bucket has object lock. A peer that does not know object lock has none. */
static int bucket_read_lock(struct remote_bucket *b, struct arena *a, struct bucket_info *out,
                            struct err *err)
{
    struct xml_node *root = NULL;
    struct str text;
    int code = read_document(b, a, "object-lock", &text, err);

    if (code == ERR_NOT_FOUND || code == ERR_UNSUPPORTED)
        return 0;
    if (code == 0)
        code = remote_read_root(&root, a, text, "ObjectLockConfiguration", err);
    out->object_lock = str_eq(xml_child_text(root, "ObjectLockEnabled", STR_EMPTY), STR("Enabled"));
    return code;
}

int remote_info(struct bucket *bucket, struct arena *a, struct bucket_info *out, struct err *err)
{
    struct remote_bucket *b = remote_bucket_of(bucket);
    int code = find_own(b->remote, a, b->user, bucket->name, out, err);

    if (code == 0)
        code = read_versioning(b, a, out, err);
    if (code == 0 && out->versions != VERSIONS_NEVER)
        code = bucket_read_lock(b, a, out, err);
    out->name = arena_str(a, bucket->name);
    if (code == 0)
        out->owner = arena_str(a, out->owner); /* the owner is the user who asks */
    return code;
}

int remote_get_document(struct bucket *bucket, struct arena *a, const char *name, struct str *out,
                        struct err *err)
{
    return read_document(remote_bucket_of(bucket), a, name, out, err);
}

int remote_set_document(struct bucket *bucket, const char *name, struct str document,
                        struct err *err)
{
    struct ask q;

    ask_init_bucket(&q, remote_bucket_of(bucket), document.len ? "PUT" : "DELETE", STR_EMPTY);
    ask_param(&q, name, STR_EMPTY);
    q.request.idempotent = true;
    if (document.len)
        ask_document(&q, document);
    return ask_done(&q, err);
}

int remote_set_versions(struct bucket *bucket, bool on, struct err *err)
{
    return remote_set_document(bucket, "versioning",
                               on ? STR("<VersioningConfiguration><Status>Enabled</Status>"
                                        "</VersioningConfiguration>")
                                  : STR("<VersioningConfiguration><Status>Suspended</Status>"
                                        "</VersioningConfiguration>"),
                               err);
}

int remote_set_object_lock(struct bucket *bucket, struct err *err)
{
    return remote_set_document(bucket, "object-lock",
                               STR("<ObjectLockConfiguration><ObjectLockEnabled>Enabled"
                                   "</ObjectLockEnabled></ObjectLockConfiguration>"),
                               err);
}

const struct bucket_ops remote_bucket_ops = {
    .info = remote_info,
    .head = remote_head,
    .get = remote_get,
    .put = remote_put,
    .copy = remote_copy,
    .remove = remote_remove,
    .list = remote_list,
    .list_versions = remote_list_versions,
    .set_meta = remote_set_meta,
    .get_acl = remote_get_acl,
    .object_parts = remote_object_parts,
    .upload_begin = remote_upload_begin,
    .upload_part = remote_upload_part,
    .upload_part_copy = remote_upload_part_copy,
    .upload_finish = remote_upload_finish,
    .upload_abort = remote_upload_abort,
    .list_parts = remote_list_parts,
    .list_uploads = remote_list_uploads,
    .get_document = remote_get_document,
    .set_document = remote_set_document,
    .set_versions = remote_set_versions,
    .set_object_lock = remote_set_object_lock,
    .ref = bucket_ref,
    .unref = bucket_unref,
};
