/* Reads and writes access control lists of storages, in the form that each storage keeps. */
#include "copy/grants.h"

#include "base/xml.h"

enum { DOCUMENT_MAX = 256 * 1024 };

/* Accepts any user id as it is, because the users of a storage are not looked up. */
static bool grants_user_as_is(void *ctx, bool by_email, struct str name, struct str *id,
                              struct str *display_name)
{
    (void)ctx;
    *id = name;
    *display_name = STR_EMPTY;
    return !by_email;
}

static const struct acl_users everybody = {grants_user_as_is, NULL};

/* Returns whether the bucket's storage keeps access control lists as S3's XML. If not, it keeps
 * weir's own form. */
static bool speaks_s3(const struct bucket *b)
{
    return !bucket_can(b, STORAGE_KEEPS_META);
}

/* --- S3's form --- */

static int grants_parse(struct acl *out, struct arena *a, struct str xml, struct err *err)
{
    struct xml_node *root = NULL;
    struct err why = {0};
    int code = xml_read(&root, a, xml, &why);
    struct str owner = xml_child_text(xml_child(root, "Owner"), "ID", STR_EMPTY);

    if (code == 0)
        code = acl_read(out, a, xml, owner, &everybody, &why);
    if (code == ERR_NO_MEMORY)
        return err_code(err, code);
    /* The storage answered with something that is not a list, so it counts as a storage without
     * lists. */
    return code < 0 ? err_set(err, ERR_UNSUPPORTED, "an access control list cannot be read: %s",
                              why.text)
                    : 0;
}

static int grants_read_xml(struct acl *out, struct arena *a, const struct grants_of *of,
                           struct err *err)
{
    struct str xml = STR_EMPTY;
    struct bucket *b = of->bucket;
    int code = of->key.len ? b->ops->get_acl(b, a, of->key, &xml, err)
                           : b->ops->get_document(b, a, "acl", &xml, err);

    return code < 0 ? code : grants_parse(out, a, xml, err);
}

/* --- weir's own form --- */

static int grants_read_kept(struct acl *out, struct arena *a, const struct grants_of *of,
                            struct err *err)
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

/* --- either form --- */

int grants_read(struct acl *out, struct arena *a, const struct grants_of *of, struct err *err)
{
    return (speaks_s3(of->bucket) ? grants_read_xml : grants_read_kept)(out, a, of, err);
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
