/* The written forms of access control lists: headers, XML, and the stored form. */
#include "meta/acl.h"

#include "meta/acl_int.h"
#include "meta/document.h"

enum grantee_by { BY_ID, BY_URI, BY_EMAIL };

/* How a grantee is named in a header ("id=...") and in XML (the type, and the child element that
 * holds the name). */
static const struct {
    const char *header, *type, *child, *shape;
    enum grantee_by by;
} grantee_forms[] = {
    {"id", "CanonicalUser", "ID", "ID! DisplayName?", BY_ID},
    {"uri", "Group", "URI", "URI!", BY_URI},
    {"emailAddress", "AmazonCustomerByEmail", "EmailAddress", "EmailAddress! DisplayName?",
     BY_EMAIL},
};

/* A list that is being read from a request. */
struct making {
    struct acl acl;
    struct arena *arena;
    const struct acl_users *users;
    struct err *err;
};

static int resolve_group(struct str uri, enum acl_grantee *out, struct err *err)
{
    for (size_t i = 0; i < ACL_GROUPS; i++)
        if (str_eq(uri, str_z(acl_groups[i].uri))) {
            *out = acl_groups[i].grantee;
            return 0;
        }
    return err_set(err, S3_INVALID_ARGUMENT, "Invalid group uri");
}

static int resolve_user(struct making *m, enum grantee_by by, struct str name, struct str *id)
{
    struct str display;

    if (!m->users->find(m->users->ctx, by == BY_EMAIL, name, id, &display)) {
        if (by == BY_EMAIL)
            return s3_fail(m->err, S3_UNRESOLVABLE_GRANT_BY_EMAIL_ADDRESS);
        return err_set(m->err, S3_INVALID_ARGUMENT, "Invalid id");
    }
    *id = arena_str(m->arena, *id);
    return arena_error(m->arena) < 0 ? err_code(m->err, ERR_NO_MEMORY) : 0;
}

static int add_grant(struct making *m, enum grantee_by by, struct str name,
                     enum acl_permission permission)
{
    enum acl_grantee grantee = ACL_USER;
    struct str id = STR_EMPTY;
    int code =
        by == BY_URI ? resolve_group(name, &grantee, m->err) : resolve_user(m, by, name, &id);

    if (code < 0)
        return code;
    if (acl_add(&m->acl, grantee, id, permission) < 0)
        return err_set(m->err, S3_MALFORMED_ACL_ERROR, "An ACL can have at most %d grants",
                       ACL_MAX_GRANTS);
    return 0;
}

/* Reads the next id="..." of a grant header. False: the header has ended. Quotes may be left out.
 */
static bool next_grantee(struct str *rest, struct str *kind, struct str *name)
{
    *rest = str_trim(*rest);
    if (rest->len == 0)
        return false;
    str_cut(*rest, '=', kind, rest);
    *kind = str_trim(*kind);
    *rest = str_trim(*rest);
    if (rest->len && rest->p[0] == '"') {
        struct str behind;
        str_cut(str_skip(*rest, 1), '"', name, &behind);
        str_cut(behind, ',', &behind, rest);
        return true;
    }
    str_cut(*rest, ',', name, rest);
    *name = str_trim(*name);
    return true;
}

static int acl_add_header(struct making *m, struct str value, enum acl_permission permission)
{
    struct str kind, name;

    while (next_grantee(&value, &kind, &name)) {
        size_t form = 0;
        int code;
        while (form < ARRAY_SIZE(grantee_forms) &&
               !str_ieq(kind, str_z(grantee_forms[form].header)))
            form++;
        if (form == ARRAY_SIZE(grantee_forms))
            return err_set(m->err, S3_INVALID_ARGUMENT,
                           "A grantee is not given as id=, uri= or emailAddress=");
        code = add_grant(m, grantee_forms[form].by, name, permission);
        if (code < 0)
            return code;
    }
    return 0;
}

bool acl_headers_given(const struct http_head *head)
{
    bool given = http_header(head, "x-amz-acl").p != NULL;

    for (size_t i = 0; i < ACL_PERMISSIONS; i++)
        given |= http_header(head, acl_permissions[i].header).p != NULL;
    return given;
}

int acl_from_headers(struct acl *out, struct arena *a, const struct http_head *head,
                     const struct acl_subject *subject, const struct acl_users *users,
                     struct err *err)
{
    struct str name = http_header(head, "x-amz-acl");
    struct making m = {.arena = a, .users = users, .err = err};
    bool granted = false;
    int code = acl_begin(&m.acl, a, subject->owner, err);

    for (size_t i = 0; i < ACL_PERMISSIONS && code == 0; i++) {
        struct str value = http_header(head, acl_permissions[i].header);
        if (!value.p)
            continue;
        granted = true;
        code = acl_add_header(&m, value, acl_permissions[i].permission);
    }
    if (code < 0)
        return code;
    if (granted && name.p)
        return err_set(err, S3_INVALID_REQUEST,
                       "Specifying both Canned ACLs and Header Grants is not allowed");
    if (!granted)
        return acl_canned(out, a, name.p ? name : STR("private"), subject, err);
    *out = m.acl;
    return 0;
}

static int read_permission(const struct xml_node *grant)
{
    struct str name = xml_child_text(grant, "Permission", STR_EMPTY);

    for (size_t i = 0; i < ACL_PERMISSIONS; i++)
        if (str_eq(name, str_z(acl_permissions[i].name)))
            return acl_permissions[i].permission;
    return 0;
}

static int read_grant(struct making *m, const struct xml_node *grant)
{
    const struct xml_node *grantee = xml_child(grant, "Grantee");
    struct str type = xml_attr_value(grantee, "type", STR_EMPTY);
    int permission = read_permission(grant);
    size_t form = 0;

    if (document_shape(grant, "Grantee! Permission!", NULL) < 0 || permission == 0)
        return s3_fail(m->err, S3_MALFORMED_ACL_ERROR);
    while (form < ARRAY_SIZE(grantee_forms) && !str_eq(type, str_z(grantee_forms[form].type)))
        form++;
    if (form == ARRAY_SIZE(grantee_forms) ||
        document_shape(grantee, grantee_forms[form].shape, NULL) < 0)
        return s3_fail(m->err, S3_MALFORMED_ACL_ERROR);
    return add_grant(m, grantee_forms[form].by, xml_child(grantee, grantee_forms[form].child)->text,
                     (enum acl_permission)permission);
}

static int read_root(struct xml_node **list, struct arena *a, struct str xml, struct str owner,
                     struct err *err)
{
    struct xml_node *root, *named;
    int code = document_read(&root, a, xml, "AccessControlPolicy", err);

    if (code == ERR_NO_MEMORY)
        return code;
    if (code < 0 || document_shape(root, "Owner? AccessControlList!", err) < 0)
        return s3_fail(err, S3_MALFORMED_ACL_ERROR);
    named = xml_child(root, "Owner");
    *list = xml_child(root, "AccessControlList");
    if ((named && document_shape(named, "ID! DisplayName?", err) < 0) ||
        document_shape(*list, "Grant*", err) < 0)
        return s3_fail(err, S3_MALFORMED_ACL_ERROR);
    if (named && !str_eq(xml_child(named, "ID")->text, owner))
        return s3_fail(err, S3_ACCESS_DENIED);
    return 0;
}

static int acl_read_grants(struct making *m, const struct xml_node *list)
{
    const struct xml_node *grant;
    int code = 0;

    for (grant = xml_child(list, "Grant"); grant && code == 0; grant = xml_next(grant, "Grant"))
        code = read_grant(m, grant);
    return code;
}

int acl_read(struct acl *out, struct arena *a, struct str xml, struct str owner,
             const struct acl_users *users, struct err *err)
{
    struct making m = {.arena = a, .users = users, .err = err};
    struct xml_node *list = NULL;
    int code = acl_begin(&m.acl, a, owner, err);

    if (code == 0)
        code = read_root(&list, a, xml, owner, err);
    if (code == 0)
        code = acl_read_grants(&m, list);
    if (code < 0)
        return code;
    *out = m.acl;
    return 0;
}

int acl_grants_read(struct acl *out, struct arena *a, const struct xml_node *list,
                    const struct acl_users *users, struct err *err)
{
    struct making m = {.arena = a, .users = users, .err = err};
    int code = acl_begin(&m.acl, a, STR_EMPTY, err);

    if (code == 0 && list && document_shape(list, "Grant*", err) < 0)
        code = s3_fail(err, S3_MALFORMED_ACL_ERROR);
    if (code == 0 && list)
        code = acl_read_grants(&m, list);
    if (code < 0)
        return code;
    *out = m.acl;
    return 0;
}

static void acl_write_user(struct buf *out, const struct acl_users *users, struct str id)
{
    struct str known, display;

    xml_element(out, "ID", id);
    if (users->find(users->ctx, false, id, &known, &display) && display.len)
        xml_element(out, "DisplayName", display);
}

static void write_grant(struct buf *out, const struct acl_grant *grant,
                        const struct acl_users *users)
{
    xml_open(out, "Grant");
    buf_appendf(out, "<Grantee xmlns:xsi=\"" XSI_NAMESPACE "\" xsi:type=\"%s\">",
                grant->grantee == ACL_USER ? "CanonicalUser" : "Group");
    if (grant->grantee == ACL_USER)
        acl_write_user(out, users, grant->id);
    for (size_t i = 0; i < ACL_GROUPS; i++)
        if (acl_groups[i].grantee == grant->grantee)
            xml_element(out, "URI", str_z(acl_groups[i].uri));
    xml_close(out, "Grantee");
    for (size_t i = 0; i < ACL_PERMISSIONS; i++)
        if (acl_permissions[i].permission == grant->permission)
            xml_element(out, "Permission", str_z(acl_permissions[i].name));
    xml_close(out, "Grant");
}

/* Writes grants to groups before grants to users, in the order that Ceph writes and its tests
 * expect. */
void acl_grants_write(struct buf *out, const struct acl *acl, const struct acl_users *users)
{
    for (size_t i = 0; i < acl->count; i++)
        if (acl->grants[i].grantee != ACL_USER)
            write_grant(out, &acl->grants[i], users);
    for (size_t i = 0; i < acl->count; i++)
        if (acl->grants[i].grantee == ACL_USER)
            write_grant(out, &acl->grants[i], users);
}

void acl_write(struct buf *out, const struct acl *acl, const struct acl_users *users)
{
    document_open(out, "AccessControlPolicy");
    xml_open(out, "Owner");
    acl_write_user(out, users, acl->owner);
    xml_close(out, "Owner");
    xml_open(out, "AccessControlList");
    acl_grants_write(out, acl, users);
    xml_close(out, "AccessControlList");
    xml_close(out, "AccessControlPolicy");
}

/* Appends the stored form, "o=owner&F=@id&R=*": the owner, then for each grant a permission's
 * letter with a group's letter, or with @ and a URL-encoded id. */
void acl_encode(struct buf *out, const struct acl *acl)
{
    buf_append_z(out, "o=");
    url_encode(out, acl->owner, false);
    for (size_t i = 0; i < acl->count; i++) {
        const struct acl_grant *grant = &acl->grants[i];
        buf_append_char(out, '&');
        for (size_t k = 0; k < ACL_PERMISSIONS; k++)
            if (acl_permissions[k].permission == grant->permission)
                buf_append_char(out, acl_permissions[k].letter);
        buf_append_char(out, '=');
        if (grant->grantee == ACL_USER) {
            buf_append_char(out, '@');
            url_encode(out, grant->id, false);
        }
        for (size_t k = 0; k < ACL_GROUPS; k++)
            if (acl_groups[k].grantee == grant->grantee)
                buf_append_char(out, acl_groups[k].letter);
    }
}

static int decode_id(struct str *out, struct arena *a, struct str in)
{
    struct buf text = BUF_INIT(in.len + 1);
    int code = url_decode(&text, in, false);

    *out = arena_str(a, buf_str(&text));
    buf_release(&text);
    return code < 0 ? code : arena_error(a);
}

static int decode_grant(struct acl *acl, struct arena *a, struct str name, struct str value)
{
    struct acl_grant grant = {0};

    for (size_t i = 0; i < ACL_PERMISSIONS && name.len == 1; i++)
        if (acl_permissions[i].letter == name.p[0])
            grant.permission = acl_permissions[i].permission;
    for (size_t i = 0; i < ACL_GROUPS && value.len == 1; i++)
        if (acl_groups[i].letter == value.p[0])
            grant.grantee = acl_groups[i].grantee;
    if (!grant.permission)
        return ERR_CORRUPT;
    if (grant.grantee == ACL_USER) {
        if (!str_starts(value, STR("@")) || decode_id(&grant.id, a, str_skip(value, 1)) < 0)
            return ERR_CORRUPT;
    }
    return acl_add(acl, grant.grantee, grant.id, grant.permission);
}

int acl_decode(struct acl *out, struct arena *a, struct str stored, struct err *err)
{
    struct str name, value;
    struct acl acl;
    int code = acl_begin(&acl, a, STR_EMPTY, err);

    if (code < 0)
        return code;
    if (!url_query_next(&stored, &name, &value) || !str_eq(name, STR("o")) ||
        decode_id(&acl.owner, a, value) < 0)
        return err_set(err, ERR_CORRUPT, "the stored access control list has no owner");
    while (url_query_next(&stored, &name, &value))
        if (decode_grant(&acl, a, name, value) < 0)
            return err_set(err, ERR_CORRUPT, "the stored access control list has a bad grant");
    *out = acl;
    return 0;
}
