/* The XML documents and kept forms: what is read is written so that it reads back, and writing that
 * again gives the same bytes. */
#include "s3/access/access.h"
#include "s3/documents/cors.h"
#include "s3/documents/deletion.h"
#include "meta/encryption.h"
#include "s3/lifecycle/lifecycle.h"
#include "s3/documents/lock.h"
#include "s3/log/logging.h"
#include "s3/notify/notification.h"
#include "meta/tagging.h"
#include "s3/documents/website.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool find_user(void *ctx, bool by_email, struct str name, struct str *id,
                      struct str *display_name)
{
    (void)ctx, (void)by_email;
    *id = name;
    *display_name = STR("display");
    return name.len > 0;
}

static const struct acl_users users = {find_user, NULL};

/* Reads `in` and writes it again: 0, or the reader's code. */
typedef int roundtrip(struct buf *out, struct arena *a, struct str in, struct err *err);

#define ROUNDTRIP(name, type, read, write)                                                         \
    static int name(struct buf *out, struct arena *a, struct str in, struct err *err)              \
    {                                                                                              \
        type value;                                                                                \
        int code = read;                                                                           \
        if (code == 0)                                                                             \
            write;                                                                                 \
        return code;                                                                               \
    }

ROUNDTRIP(tagging_xml, struct tag_set, tagging_read(&value, a, in, TAGS_OF_BUCKET, err),
          tagging_write(out, &value))
ROUNDTRIP(tagging_kept, struct tag_set, tagging_parse(&value, a, in, TAGS_OF_OBJECT, err),
          tagging_encode(out, &value))
ROUNDTRIP(acl_xml, struct acl, acl_read(&value, a, in, STR("alice"), &users, err),
          acl_write(out, &value, &users))
ROUNDTRIP(acl_kept, struct acl, acl_decode(&value, a, in, err), acl_encode(out, &value))
ROUNDTRIP(cors_xml, struct cors, cors_read(&value, a, in, err), cors_write(out, &value))
ROUNDTRIP(lifecycle_xml, struct lifecycle, lifecycle_read(&value, a, in, err),
          lifecycle_write(out, &value))
ROUNDTRIP(lock_xml, struct lock_config, lock_config_read(&value, a, in, err),
          lock_config_write(out, &value))
ROUNDTRIP(hold_xml, bool, lock_hold_read(&value, a, in, err), lock_hold_write(out, value))
ROUNDTRIP(block_xml, struct public_block, public_block_read(&value, a, in, err),
          public_block_write(out, &value))
ROUNDTRIP(ownership_xml, enum ownership, ownership_read(&value, a, in, err),
          ownership_write(out, value))
ROUNDTRIP(website_xml, struct website, website_read(&value, a, in, err), website_write(out, &value))
ROUNDTRIP(notification_xml, struct notification, notification_read(&value, a, in, err),
          notification_write(out, &value))
ROUNDTRIP(deletion_xml, struct deletion, deletion_read(&value, a, in, err),
          deletion_write(out, &value))

ROUNDTRIP(encryption_xml, struct sse_asked, sse_default_read(&value, a, in, err),
          sse_default_write(out, &value))

static int logging_xml(struct buf *out, struct arena *a, struct str in, struct err *err)
{
    struct logging value;
    bool on;
    int code = logging_read(&value, &on, a, in, &users, err);

    if (code == 0)
        logging_write(out, on ? &value : NULL, &users);
    return code;
}
ROUNDTRIP(logging_kept, struct logging, logging_decode(&value, a, in, err),
          logging_encode(out, &value))

static roundtrip *const all[] = {tagging_xml,    tagging_kept,  acl_xml,      acl_kept,
                                 cors_xml,       lifecycle_xml, lock_xml,     hold_xml,
                                 block_xml,      ownership_xml, website_xml,  notification_xml,
                                 encryption_xml, logging_xml,   logging_kept, deletion_xml};

static void check(roundtrip *again, struct str in)
{
    struct arena a = ARENA_INIT(16 * MIB);
    struct buf first = {0}, second = {0};
    struct err err = {0};
    int code = again(&first, &a, in, &err);

    BUG_ON(code < 0 && err.text[0] == '\0' && code != ERR_NO_MEMORY);
    if (code == 0) {
        BUG_ON(again(&second, &a, buf_str(&first), &err) < 0);
        BUG_ON(!str_eq(buf_str(&first), buf_str(&second)));
    }
    buf_release(&first);
    buf_release(&second);
    arena_release(&a);
}

/* The same bytes as the value of each header: a list that is made has an owner and fits. */
static void check_headers(struct str value)
{
    static const char *const names[] = {"x-amz-acl", "x-amz-grant-read", "x-amz-object-lock-mode",
                                        "x-amz-object-lock-legal-hold"};
    struct acl_subject subject = {STR("alice"), STR("bob")};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct http_head head = {.headers = {{str_z(names[i]), value}}, .header_count = 1};
        struct arena a = ARENA_INIT(MIB);
        struct lock_headers lock;
        struct acl acl;
        if (acl_from_headers(&acl, &a, &head, &subject, &users, NULL) == 0)
            BUG_ON(acl.count > ACL_MAX_GRANTS || !str_eq(acl.owner, subject.owner));
        (void)!lock_headers_read(&lock, &head, 0, NULL);
        arena_release(&a);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_headers(str_n(data, size));
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        check(all[i], str_n(data, size));
    return 0;
}
