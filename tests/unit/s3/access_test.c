/* access: the two documents, and the decision in its order. */
#include "s3/access/access.h"
#include "unit/test.h"

static bool no_value(void *ctx, enum policy_key key, struct str suffix, struct policy_values *out)
{
    (void)ctx, (void)key, (void)suffix, (void)out;
    return false;
}

/* A request by `user` on the bucket of "own", whose policy and lists are given as text. */
struct setting {
    const char *user;
    enum s3_action action;
    const char *object_owner, *policy, *bucket_acl, *object_acl;
    struct public_block block;
    enum ownership ownership;
    bool binds_owner;
};

static const struct acl *list_of(struct arena *a, const char *stored)
{
    struct acl *acl = arena_new(a, struct acl);
    struct err err = {0};

    if (!stored)
        return NULL;
    CHECK_OK(acl_decode(acl, a, str_z(stored), &err));
    return acl;
}

static bool allowed(struct setting s)
{
    struct arena a = {0};
    struct err err = {0};
    struct policy *policy = NULL;
    bool on_object = s3_actions[s.action].on == S3_ON_OBJECT, yes;
    struct access_request r = {.ask = {.who = {.id = str_z(s.user)},
                                       .action = s.action,
                                       .bucket = STR("bkt"),
                                       .key = on_object ? STR("k") : STR_EMPTY,
                                       .value = no_value,
                                       .arena = &a},
                               .bucket_owner = STR("own"),
                               .object_owner = str_z(s.object_owner),
                               .policy_binds_owner = s.binds_owner,
                               .bucket_acl = list_of(&a, s.bucket_acl),
                               .object_acl = list_of(&a, s.object_acl),
                               .block = s.block,
                               .ownership = s.ownership};

    if (s.policy)
        CHECK_OK(policy_compile(&policy, &a, str_z(s.policy), STR("bkt"), &err));
    r.policy = policy;
    yes = access_allowed(&r);
    CHECK(!yes || access_possible(&r)); /* of everything that these tests allow */
    arena_release(&a);
    return yes;
}

#define RULE(effect, principal)                                                                    \
    "{\"Statement\":{\"Effect\":\"" effect "\",\"Principal\":" principal                           \
    ",\"Action\":\"s3:*\",\"Resource\":[\"arn:aws:s3:::bkt\",\"arn:aws:s3:::bkt/*\"]}}"
#define ALLOW_ALL  RULE("Allow", "\"*\"")
#define DENY_ALL   RULE("Deny", "\"*\"")
#define ALLOW_ELSE RULE("Allow", "{\"AWS\":\"else\"}")
#define READ       .action = S3_ACTION_GET_OBJECT
#define LIST       .action = S3_ACTION_LIST_BUCKET
#define WRITE      .action = S3_ACTION_PUT_OBJECT

TEST(access, without_policy_or_list_only_the_owner_comes_in)
{
    CHECK(allowed((struct setting){"own", READ}));
    CHECK(allowed((struct setting){"own", READ, .object_owner = "own"}));
    CHECK(allowed((struct setting){"own", .action = S3_ACTION_DELETE_BUCKET}));
    CHECK(!allowed((struct setting){"else", READ}));
    CHECK(!allowed((struct setting){"", READ}));
}

TEST(access, a_denial_binds_even_the_owner)
{
    CHECK(!allowed((struct setting){"own", READ, .policy = DENY_ALL}));
    CHECK(!allowed((struct setting){"else", READ, .policy = DENY_ALL, .object_acl = "o=own&R=*"}));
}

TEST(access, the_owner_keeps_the_policy_unless_it_was_set_to_bind_the_owner_too)
{
    struct setting s = {"own", .action = S3_ACTION_PUT_BUCKET_POLICY, .policy = DENY_ALL};

    CHECK(allowed(s));
    s.binds_owner = true;
    CHECK(!allowed(s));
    s.user = "else", s.binds_owner = false;
    CHECK(!allowed(s));
}

TEST(access, an_object_of_somebody_else_opens_to_the_bucket_owner_by_its_list)
{
    struct setting s = {"own", READ, .object_owner = "else", .object_acl = "o=else&F=@else"};

    CHECK(!allowed(s));
    s.object_acl = "o=else&F=@else&R=@own";
    CHECK(allowed(s));
    s.object_acl = "o=else&F=@else";
    s.action = S3_ACTION_GET_OBJECT_ACL;
    CHECK(!allowed(s));
    s.action = S3_ACTION_DELETE_OBJECT;
    CHECK(allowed(s));
    s.action = S3_ACTION_GET_OBJECT, s.ownership = OWNERSHIP_BUCKET_OWNER_ENFORCED;
    CHECK(allowed(s));
}

TEST(access, a_policy_lets_in_whom_it_names)
{
    CHECK(allowed((struct setting){"else", WRITE, .policy = ALLOW_ELSE}));
    CHECK(!allowed((struct setting){"third", WRITE, .policy = ALLOW_ELSE}));
    CHECK(allowed((struct setting){"", READ, .policy = ALLOW_ALL}));
}

TEST(access, a_restricted_bucket_ignores_a_public_policy_but_not_a_private_one)
{
    struct public_block restricted = {.restrict_buckets = true};

    CHECK(!allowed((struct setting){"", READ, .policy = ALLOW_ALL, .block = restricted}));
    CHECK(!allowed((struct setting){"else", READ, .policy = ALLOW_ALL, .block = restricted}));
    CHECK(allowed((struct setting){"own", READ, .policy = ALLOW_ALL, .block = restricted}));
    CHECK(allowed((struct setting){"else", READ, .policy = ALLOW_ELSE, .block = restricted}));
}

TEST(access, each_list_grants_what_belongs_to_it)
{
    CHECK(allowed((struct setting){"", LIST, .bucket_acl = "o=own&R=*"}));
    CHECK(!allowed((struct setting){"", READ, .bucket_acl = "o=own&R=*"}));
    CHECK(allowed((struct setting){"", READ, .object_acl = "o=own&R=*"}));
    CHECK(!allowed((struct setting){"", LIST, .object_acl = "o=own&R=*"}));
    CHECK(allowed((struct setting){"else", WRITE, .bucket_acl = "o=own&W=@else"}));
    CHECK(!allowed((struct setting){"else", WRITE, .object_acl = "o=own&W=@else"}));
    CHECK(allowed((struct setting){"else", .action = S3_ACTION_PUT_BUCKET_ACL,
                                   .bucket_acl = "o=own&w=@else"}));
    CHECK(!allowed((struct setting){"else", .action = S3_ACTION_DELETE_BUCKET,
                                    .bucket_acl = "o=own&F=@else"}));
}

TEST(access, enforced_ownership_makes_lists_count_for_nothing)
{
    CHECK(!allowed((struct setting){"", READ, .object_acl = "o=own&R=*",
                                    .ownership = OWNERSHIP_BUCKET_OWNER_ENFORCED}));
    CHECK(allowed((struct setting){"", READ, .policy = ALLOW_ALL,
                                   .ownership = OWNERSHIP_BUCKET_OWNER_ENFORCED}));
}

TEST(access, ignored_public_lists_still_serve_named_users)
{
    struct public_block ignoring = {.ignore_acls = true};

    CHECK(!allowed((struct setting){"else", LIST, .bucket_acl = "o=own&R=*", .block = ignoring}));
    CHECK(allowed(
        (struct setting){"else", LIST, .bucket_acl = "o=own&R=*&R=@else", .block = ignoring}));
}

TEST(access, a_new_object_belongs_to_whom_the_mode_says)
{
    struct str canned = STR("bucket-owner-full-control"), none = STR_EMPTY;
    struct str w = STR("w"), o = STR("o");

    CHECK_STR(ownership_of_new(OWNERSHIP_OBJECT_WRITER, w, o, canned), w);
    CHECK_STR(ownership_of_new(OWNERSHIP_BUCKET_OWNER_PREFERRED, w, o, none), w);
    CHECK_STR(ownership_of_new(OWNERSHIP_BUCKET_OWNER_PREFERRED, w, o, canned), o);
    CHECK_STR(ownership_of_new(OWNERSHIP_BUCKET_OWNER_ENFORCED, w, o, none), o);
}

TEST(access, the_public_access_block_reads_back_as_written)
{
    struct public_block block = {true, false, true, false}, again;
    struct arena a = {0};
    struct err err = {0};
    struct buf xml = {0};

    public_block_write(&xml, &block);
    CHECK_OK(public_block_read(&again, &a, buf_str(&xml), &err));
    CHECK(again.block_acls && !again.ignore_acls && again.block_policy && !again.restrict_buckets);
    CHECK_OK(public_block_read(&again, &a, STR("<PublicAccessBlockConfiguration/>"), &err));
    CHECK(!again.block_acls && !again.block_policy);
    CHECK_INT(public_block_read(&again, &a,
                                STR("<PublicAccessBlockConfiguration><BlockPublicAcls>1"
                                    "</BlockPublicAcls></PublicAccessBlockConfiguration>"),
                                &err),
              S3_MALFORMED_XML);
    CHECK_INT(public_block_read(&again, &a, STR("<Other/>"), &err), S3_MALFORMED_XML);
    buf_release(&xml);
    arena_release(&a);
}

TEST(access, ownership_controls_read_back_as_written)
{
    static const char *const bad[] = {
        "", "<OwnershipControls/>", "<OwnershipControls><Rule/></OwnershipControls>",
        "<OwnershipControls><Rule><ObjectOwnership>x</ObjectOwnership></Rule></OwnershipControls>"};
    struct arena a = {0};
    struct err err = {0};
    struct buf xml = {0};
    enum ownership mode;

    for (int i = 0; i <= OWNERSHIP_BUCKET_OWNER_ENFORCED; i++) {
        buf_reset(&xml);
        ownership_write(&xml, (enum ownership)i);
        CHECK_OK(ownership_read(&mode, &a, buf_str(&xml), &err));
        CHECK_INT(mode, i);
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK_INT(ownership_read(&mode, &a, str_z(bad[i]), &err), S3_MALFORMED_XML);
    CHECK_OK(ownership_parse(&mode, STR("BucketOwnerPreferred"), &err));
    CHECK_INT(mode, OWNERSHIP_BUCKET_OWNER_PREFERRED);
    CHECK_INT(ownership_parse(&mode, STR("bucketownerpreferred"), &err), S3_INVALID_ARGUMENT);
    buf_release(&xml);
    arena_release(&a);
}

TEST(access, an_operation_on_a_version_is_another_action)
{
    CHECK_INT(s3_operations[S3_OP_GetObject].action, S3_ACTION_GET_OBJECT);
    CHECK_INT(s3_operations[S3_OP_GetObject].version_action, S3_ACTION_GET_OBJECT_VERSION);
    CHECK_STR(str_z(s3_operations[S3_OP_UploadPartCopy].name), STR("UploadPartCopy"));
    CHECK_INT(access_by_acl(S3_ACTION_GET_OBJECT_VERSION).permission, ACL_READ);
}
