/* Access control lists between storages. */
#include "copy/grants.h"

#include "base/xml.h"
#include "http/upstream.h"

enum { DOCUMENT_MAX = 256 * 1024, NAMED_MAX = 128 /* bytes of a path in an error */ };

/* Ids of a storage's users are taken as they are. */
static bool anybody(void *ctx, bool by_email, struct str name, struct str *id,
                    struct str *display_name)
{
    (void)ctx;
    *id = name;
    *display_name = STR_EMPTY;
    return !by_email;
}

static const struct acl_users everybody = {anybody, NULL};

static bool speaks_s3(const struct bucket *b)
{
    return !bucket_can(b, STORAGE_KEEPS_META);
}

/* --- remote --- */

static int parse(struct acl *out, struct arena *a, struct str xml, struct err *err)
{
    struct xml_node *root = NULL;
    struct err why = {0};
    int code = xml_read(&root, a, xml, &why);
    struct str owner = xml_child_text(xml_child(root, "Owner"), "ID", STR_EMPTY);

    if (code == 0)
        code = acl_read(out, a, xml, owner, &everybody, &why);
    if (code == ERR_NO_MEMORY)
        return err_code(err, code);
    /* an answer that came whole and is no list: this storage has none */
    return code < 0 ? err_set(err, ERR_UNSUPPORTED, "an access control list cannot be read: %s",
                              why.text)
                    : 0;
}

static int judge(int status, struct err *err)
{
    static const struct {
        int status, code;
    } known[] = {{404, ERR_NOT_FOUND},   {403, ERR_DENIED},      {405, ERR_UNSUPPORTED},
                 {501, ERR_UNSUPPORTED}, {503, ERR_UNAVAILABLE}, {400, ERR_UNSUPPORTED}};

    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if (known[i].status == status)
            return err_set(err, known[i].code, "the storage answers %d", status);
    return err_set(err, ERR_PEER, "the storage answers %d", status);
}

static int fetch(struct str *out, struct arena *a, const struct grants_of *of, struct err *err)
{
    struct storage *s = of->bucket->storage;
    struct buf path = BUF_INIT(HTTP_MAX_HEAD), text = BUF_INIT(DOCUMENT_MAX);
    struct exchange *e = NULL;

    buf_append_char(&path, '/');
    url_encode(&path, of->bucket->name, false);
    buf_append_char(&path, '/');
    url_encode(&path, of->key, true);
    struct forward_request r = {.user = of->user,
                                .method = STR("GET"),
                                .path = buf_str(&path),
                                .query = STR("acl="),
                                .idempotent = true};
    int code = s->ops->forward(s, &r, &e, err);
    if (code == 0 && exchange_head(e)->status != 200)
        code = err_wrap(err, judge(exchange_head(e)->status, err),
                        "storage " STR_FMT ", GET " STR_FMT "?acl as user " STR_FMT,
                        STR_ARG(s->name), STR_ARG(str_head(r.path, NAMED_MAX)), STR_ARG(of->user));
    if (code == 0)
        code = reader_read_all(exchange_body(e), &text, err);
    if (code == 0)
        *out = arena_str(a, buf_str(&text));
    exchange_close(e);
    buf_release(&path);
    buf_release(&text);
    return code;
}

static int read_remote(struct acl *out, struct arena *a, const struct grants_of *of,
                       struct err *err)
{
    struct str xml = STR_EMPTY;
    struct bucket *b = of->bucket;
    int code = of->key.len ? fetch(&xml, a, of, err) : b->ops->get_document(b, a, "acl", &xml, err);

    return code < 0 ? code : parse(out, a, xml, err);
}

/* --- local --- */

static int read_local(struct acl *out, struct arena *a, const struct grants_of *of, struct err *err)
{
    struct bucket *b = of->bucket;
    struct get_result got = {0};
    struct bucket_info info = {0};
    struct str kept = STR_EMPTY;
    int code = b->ops->info(b, a, &info, err);

    if (code == 0 && of->key.len)
        code = b->ops->head(b, a, of->key, STR_EMPTY, NULL, &got, err);
    else if (code == 0)
        code = b->ops->get_document(b, a, "acl", &kept, err);
    if (code == ERR_NOT_FOUND && !of->key.len)
        code = 0;
    if (code < 0)
        return code;
    if (of->key.len)
        kept = got.info.meta.acl;
    struct acl_subject subject = {got.info.meta.owner.len ? got.info.meta.owner : info.owner,
                                  of->key.len ? info.owner : STR_EMPTY};
    return kept.len ? acl_decode(out, a, kept, err)
                    : acl_canned(out, a, STR("private"), &subject, err);
}

/* --- both --- */

int grants_read(struct acl *out, struct arena *a, const struct grants_of *of, struct err *err)
{
    return (speaks_s3(of->bucket) ? read_remote : read_local)(out, a, of, err);
}

int grants_write(struct arena *a, const struct grants_of *of, const struct acl *acl,
                 struct err *err)
{
    struct buf text = BUF_INIT(DOCUMENT_MAX);
    struct bucket *b = of->bucket;
    struct object_meta meta = {0};

    if (speaks_s3(b))
        acl_write(&text, acl, &everybody);
    else
        acl_encode(&text, acl);
    meta.acl = buf_str(&text);
    int code = buf_error(&text);
    if (code == 0)
        code = of->key.len ? b->ops->set_meta(b, a, of->key, STR_EMPTY, META_ACL, &meta, NULL, err)
                           : b->ops->set_document(b, "acl", meta.acl, err);
    buf_release(&text);
    return code;
}

int grants_map(struct acl *out, struct arena *a, const struct acl *from, struct str owner,
               bool known_only, struct err *err)
{
    *out = (struct acl){.owner = owner};
    out->grants = arena_array(a, from->count + 1, sizeof(*out->grants));
    if (!out->grants)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < from->count; i++) {
        struct acl_grant g = from->grants[i];
        bool is_owner = g.grantee == ACL_USER && str_eq(g.id, from->owner);
        if (known_only && g.grantee == ACL_USER && !is_owner)
            continue;
        if (is_owner)
            g.id = owner;
        out->grants[out->count++] = g;
    }
    return 0;
}

static bool has_grant(const struct acl *acl, const struct acl_grant *g)
{
    for (size_t i = 0; i < acl->count; i++)
        if (acl->grants[i].grantee == g->grantee && acl->grants[i].permission == g->permission &&
            str_eq(acl->grants[i].id, g->id))
            return true;
    return false;
}

bool grants_same(const struct acl *a, const struct acl *b)
{
    for (size_t i = 0; i < a->count; i++)
        if (!has_grant(b, &a->grants[i]))
            return false;
    for (size_t i = 0; i < b->count; i++)
        if (!has_grant(a, &b->grants[i]))
            return false;
    return true;
}
