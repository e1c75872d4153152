/* acl: canned lists, headers, XML, the kept form, and who may do what. */
#include "meta/acl.h"
#include "unit/test.h"

#define ALL_USERS "http://acs.amazonaws.com/groups/global/AllUsers"

static bool find_user(void *ctx, bool by_email, struct str name, struct str *id,
                      struct str *display_name)
{
    static const struct {
        const char *id, *email, *display;
    } known[] = {{"alice", "alice@example.com", "Alice A."}, {"bob", "bob@example.com", ""}};

    (void)ctx;
    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if (str_eq(name, str_z(by_email ? known[i].email : known[i].id))) {
            *id = str_z(known[i].id);
            *display_name = str_z(known[i].display);
            return true;
        }
    return false;
}

static const struct acl_users users = {find_user, NULL};
static const struct acl_subject alices = {STR("alice"), STR_EMPTY};

static struct str encoded(struct arena *a, const struct acl *acl)
{
    struct buf out = {0};
    struct str s;

    acl_encode(&out, acl);
    s = arena_str(a, buf_str(&out));
    buf_release(&out);
    return s;
}

static int from_headers(struct acl *out, struct arena *a, const char *name, const char *value,
                        const char *canned)
{
    struct http_head head = {0};
    struct err err = {0};

    if (name)
        head.headers[head.header_count++] = (struct http_header){str_z(name), str_z(value)};
    if (canned)
        head.headers[head.header_count++] = (struct http_header){STR("X-Amz-Acl"), str_z(canned)};
    CHECK_INT(acl_headers_given(&head), name || canned);
    return acl_from_headers(out, a, &head, &alices, &users, &err);
}

static int read_code(struct acl *out, struct arena *a, const char *xml)
{
    struct err err = {0};
    return acl_read(out, a, str_z(xml), STR("alice"), &users, &err);
}

#define POLICY(grants)                                                                             \
    "<AccessControlPolicy><Owner><ID>alice</ID></Owner><AccessControlList>" grants                 \
    "</AccessControlList></AccessControlPolicy>"
#define GRANT(type, child, permission)                                                             \
    "<Grant><Grantee xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:type=\"" type     \
    "\">" child "</Grantee><Permission>" permission "</Permission></Grant>"

TEST(acl, each_canned_name_is_its_list)
{
    static const struct {
        const char *name, *of_object;
    } rows[] = {
        {"private", "o=bob&F=@bob"},
        {"public-read", "o=bob&F=@bob&R=*"},
        {"public-read-write", "o=bob&F=@bob&R=*&W=*"},
        {"authenticated-read", "o=bob&F=@bob&R=+"},
        {"bucket-owner-read", "o=bob&F=@bob&R=@alice"},
        {"bucket-owner-full-control", "o=bob&F=@bob&F=@alice"},
        {"aws-exec-read", "o=bob&F=@bob"},
        {"log-delivery-write", "o=bob&F=@bob&W=l&r=l"},
    };
    struct acl_subject object = {STR("bob"), STR("alice")};
    struct arena a = {0};
    struct err err = {0};
    struct acl acl;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CHECK_OK(acl_canned(&acl, &a, str_z(rows[i].name), &object, &err));
        CHECK_STR(encoded(&a, &acl), str_z(rows[i].of_object));
    }
    CHECK_OK(acl_canned(&acl, &a, STR("bucket-owner-full-control"), &alices, &err));
    CHECK_STR(encoded(&a, &acl), STR("o=alice&F=@alice"));
    CHECK_INT(acl_canned(&acl, &a, STR("public"), &object, &err), S3_INVALID_ARGUMENT);
    arena_release(&a);
}

TEST(acl, grant_headers_replace_the_owners_own_grant)
{
    struct arena a = {0};
    struct acl acl;

    CHECK_INT(from_headers(&acl, &a, "x-amz-grant-read",
                           "id=\"bob\", uri=\"" ALL_USERS "\",emailAddress=alice@example.com",
                           NULL),
              0);
    CHECK_STR(encoded(&a, &acl), STR("o=alice&R=@bob&R=*&R=@alice"));
    CHECK_INT(from_headers(&acl, &a, NULL, NULL, NULL), 0);
    CHECK_STR(encoded(&a, &acl), STR("o=alice&F=@alice"));
    CHECK_INT(from_headers(&acl, &a, NULL, NULL, "public-read"), 0);
    CHECK_STR(encoded(&a, &acl), STR("o=alice&F=@alice&R=*"));
    arena_release(&a);
}

TEST(acl, bad_grant_headers_are_refused)
{
    struct arena a = {0};
    struct acl acl;

    CHECK_INT(from_headers(&acl, &a, "x-amz-grant-write", "id=nobody", NULL), S3_INVALID_ARGUMENT);
    CHECK_INT(from_headers(&acl, &a, "x-amz-grant-write", "uri=http://x", NULL),
              S3_INVALID_ARGUMENT);
    CHECK_INT(from_headers(&acl, &a, "x-amz-grant-write", "bob", NULL), S3_INVALID_ARGUMENT);
    CHECK_INT(from_headers(&acl, &a, "x-amz-grant-write", "name=bob", NULL), S3_INVALID_ARGUMENT);
    CHECK_INT(from_headers(&acl, &a, "x-amz-grant-read-acp", "emailAddress=\"x@y\"", NULL),
              S3_UNRESOLVABLE_GRANT_BY_EMAIL_ADDRESS);
    CHECK_INT(from_headers(&acl, &a, "x-amz-grant-read", "id=bob", "private"), S3_INVALID_REQUEST);
    arena_release(&a);
}

TEST(acl, a_document_reads_back_as_it_was_written)
{
    struct arena a = {0};
    struct err err = {0};
    struct buf xml = {0};
    struct acl acl, again;

    CHECK_INT(
        read_code(
            &acl, &a,
            POLICY(GRANT("CanonicalUser", "<ID>alice</ID><DisplayName>x</DisplayName>",
                         "FULL_CONTROL") GRANT("Group", "<URI>" ALL_USERS "</URI>", "READ_ACP")
                       GRANT("AmazonCustomerByEmail",
                             "<EmailAddress>bob@example.com</EmailAddress>", "WRITE_ACP"))),
        0);
    CHECK_STR(encoded(&a, &acl), STR("o=alice&F=@alice&r=*&w=@bob"));
    acl_write(&xml, &acl, &users);
    CHECK(str_find(buf_str(&xml), STR("<DisplayName>Alice A.</DisplayName>")) > 0);
    CHECK_OK(acl_read(&again, &a, buf_str(&xml), STR("alice"), &users, &err));
    CHECK_STR(encoded(&a, &again), STR("o=alice&r=*&F=@alice&w=@bob")); /* groups first */
    CHECK_INT(read_code(&acl, &a, POLICY("")), 0);
    CHECK_INT(acl.count, 0);
    buf_release(&xml);
    arena_release(&a);
}

TEST(acl, documents_of_another_shape_are_malformed)
{
    static const char *const bad[] = {
        "",
        "<AccessControlList/>",
        "<AccessControlPolicy><Owner><ID>alice</ID></Owner></AccessControlPolicy>",
        POLICY("<Grant/>"),
        POLICY(GRANT("CanonicalUser", "", "READ")),
        POLICY(GRANT("Group", "<ID>bob</ID>", "READ")),
        POLICY(GRANT("Nobody", "<ID>bob</ID>", "READ")),
        POLICY(GRANT("CanonicalUser", "<ID>bob</ID>", "read")),
        POLICY("<Grant><Grantee><ID>bob</ID></Grantee><Permission>READ</Permission></Grant>"),
    };
    struct arena a = {0};
    struct acl acl;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK_INT(read_code(&acl, &a, bad[i]), S3_MALFORMED_ACL_ERROR);
    CHECK_INT(read_code(&acl, &a, POLICY(GRANT("CanonicalUser", "<ID>nobody</ID>", "READ"))),
              S3_INVALID_ARGUMENT);
    arena_release(&a);
}

TEST(acl, a_document_cannot_change_the_owner)
{
    struct arena a = {0};
    struct err err = {0};
    struct acl acl;

    CHECK_INT(acl_read(&acl, &a, STR(POLICY("")), STR("bob"), &users, &err), S3_ACCESS_DENIED);
    arena_release(&a);
}

TEST(acl, a_list_has_100_grants_at_most)
{
    struct arena a = {0};
    struct buf value = {0};
    struct acl acl;

    for (int i = 0; i < ACL_MAX_GRANTS; i++)
        buf_append_z(&value, "id=bob,");
    CHECK_INT(from_headers(&acl, &a, "x-amz-grant-read", value.p, NULL), 0);
    CHECK_INT(acl.count, ACL_MAX_GRANTS);
    buf_append_z(&value, "id=bob");
    CHECK_INT(from_headers(&acl, &a, "x-amz-grant-read", value.p, NULL), S3_MALFORMED_ACL_ERROR);
    buf_release(&value);
    arena_release(&a);
}

TEST(acl, the_kept_form_reads_back_and_damage_is_seen)
{
    static const char *const bad[] = {"",          "F=@a",       "o=a&X=@b",  "o=a&F=b",
                                      "o=a&FF=@b", "o=a&F=@%zz", "o=%q&F=@a", "o=a&F="};
    struct arena a = {0};
    struct err err = {0};
    struct acl acl;

    CHECK_OK(acl_decode(&acl, &a, STR("o=a%26b&F=@a%26b&R=*&W=+&r=l"), &err));
    CHECK_STR(acl.owner, STR("a&b"));
    CHECK_INT(acl.count, 4);
    CHECK_STR(encoded(&a, &acl), STR("o=a%26b&F=@a%26b&R=*&W=+&r=l"));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK_ERR(acl_decode(&acl, &a, str_z(bad[i]), &err), ERR_CORRUPT);
    arena_release(&a);
}

static bool allows(const char *stored, const char *user, enum acl_permission permission,
                   bool ignore_public)
{
    struct arena a = {0};
    struct err err = {0};
    struct acl acl;
    bool yes;

    CHECK_OK(acl_decode(&acl, &a, str_z(stored), &err));
    yes = acl_allows(&acl, str_z(user), permission, ignore_public);
    arena_release(&a);
    return yes;
}

TEST(acl, grants_reach_exactly_the_users_that_they_name)
{
    CHECK(allows("o=a&R=@b", "b", ACL_READ, false));
    CHECK(!allows("o=a&R=@b", "c", ACL_READ, false));
    CHECK(!allows("o=a&R=@b", "", ACL_READ, false));
    CHECK(!allows("o=a&R=@b", "b", ACL_WRITE, false));
    CHECK(!allows("o=a&R=@", "", ACL_READ, false));
    CHECK(allows("o=a&R=*", "", ACL_READ, false));
    CHECK(allows("o=a&R=*", "b", ACL_READ, false));
    CHECK(allows("o=a&R=+", "b", ACL_READ, false));
    CHECK(!allows("o=a&R=+", "", ACL_READ, false));
    CHECK(!allows("o=a&W=l", "b", ACL_WRITE, false));
}

TEST(acl, full_control_is_all_four_and_four_are_full_control)
{
    CHECK(allows("o=a&F=@b", "b", ACL_WRITE_ACP, false));
    CHECK(allows("o=a&R=@b&W=*&r=+&w=@b", "b", ACL_FULL_CONTROL, false));
    CHECK(!allows("o=a&R=@b&W=*&r=+", "b", ACL_FULL_CONTROL, false));
}

TEST(acl, the_owner_always_reaches_the_list_itself_but_not_more)
{
    CHECK(allows("o=a", "a", ACL_READ_ACP, false));
    CHECK(allows("o=a", "a", ACL_WRITE_ACP, false));
    CHECK(!allows("o=a", "a", ACL_READ, false));
    CHECK(!allows("o=", "", ACL_READ_ACP, false));
}

TEST(acl, ignored_public_grants_grant_nothing)
{
    CHECK(!allows("o=a&R=*&R=+", "b", ACL_READ, true));
    CHECK(allows("o=a&R=*&R=@b", "b", ACL_READ, true));
}

TEST(acl, a_list_is_public_when_a_global_group_is_in_it)
{
    static const struct {
        const char *stored;
        bool is_public, owners_only;
    } rows[] = {{"o=a", false, true},         {"o=a&F=@a", false, true}, {"o=a&R=*", true, false},
                {"o=a&w=+", true, false},     {"o=a&W=l", false, false}, {"o=a&F=@b", false, false},
                {"o=a&F=@a&R=*", true, false}};
    struct arena a = {0};
    struct err err = {0};
    struct acl acl;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CHECK_OK(acl_decode(&acl, &a, str_z(rows[i].stored), &err));
        CHECK_INT(acl_is_public(&acl), rows[i].is_public);
        CHECK_INT(acl_is_owners_only(&acl), rows[i].owners_only);
    }
    arena_release(&a);
}
