/* Reads and writes the headers and the document of server-side encryption. */
#include "meta/encryption.h"

#include "base/json.h"
#include "sign/base64.h"
#include "meta/keyring.h"

enum { CONTEXT_PLAIN_MAX = ENVELOPE_CONTEXT_MAX / 4 * 3 };

static const struct customer_names {
    const char *algorithm, *key, *md5;
} names[] = {
    {"x-amz-server-side-encryption-customer-algorithm", "x-amz-server-side-encryption-customer-key",
     "x-amz-server-side-encryption-customer-key-md5"},
    {"x-amz-copy-source-server-side-encryption-customer-algorithm",
     "x-amz-copy-source-server-side-encryption-customer-key",
     "x-amz-copy-source-server-side-encryption-customer-key-md5"},
};

static const char *const managed[] = {
    "x-amz-server-side-encryption",
    "x-amz-server-side-encryption-aws-kms-key-id",
    "x-amz-server-side-encryption-context",
    "x-amz-server-side-encryption-bucket-key-enabled",
};

static const char *const algorithms[] = {[SSE_S3] = "AES256", [SSE_KMS] = "aws:kms"};

const char *sse_algorithm(enum sse_kind kind)
{
    return kind == SSE_C ? "AES256" : algorithms[kind];
}

enum digest_kind sse_checksum(enum sse_kind kind)
{
    return kind == SSE_NONE || kind == SSE_S3 ? DIGEST_CRC64NVME : DIGEST_MD5;
}

/* --- the customer's key --- */

static int decode_key(struct sse_customer *out, struct str key, struct str md5, struct err *err)
{
    struct digest_value computed, said = {.len = digest_size(DIGEST_MD5)};

    if (base64_decode_exact(out->key.bytes, SEALED_KEY_LEN, key) < 0)
        return err_set(err, S3_INVALID_ARGUMENT,
                       "The secret key was invalid for the specified algorithm.");
    digest_of(DIGEST_MD5, str_n(out->key.bytes, SEALED_KEY_LEN), &computed);
    if (base64_decode_exact(said.bytes, said.len, md5) < 0 ||
        !str_eq_secret(str_n(said.bytes, said.len), str_n(computed.bytes, computed.len)))
        return err_set(err, S3_INVALID_ARGUMENT,
                       "The calculated MD5 hash of the key did not match the hash that was "
                       "provided.");
    out->md5 = md5;
    out->given = true;
    return 0;
}

int sse_customer_read(struct sse_customer *out, const struct http_head *head, bool source,
                      struct err *err)
{
    const struct customer_names *n = &names[source];
    struct str algorithm = http_header(head, n->algorithm), key = http_header(head, n->key),
               md5 = http_header(head, n->md5);

    *out = (struct sse_customer){0};
    if (!algorithm.p && !key.p && !md5.p)
        return 0;
    if (!algorithm.len)
        return err_set(err, S3_INVALID_ARGUMENT,
                       "Requests specifying Server Side Encryption with Customer provided keys "
                       "must provide a valid encryption algorithm.");
    if (!str_eq(algorithm, STR("AES256")))
        return s3_fail(err, S3_INVALID_ENCRYPTION_ALGORITHM_ERROR);
    if (!key.len)
        return err_set(err, S3_INVALID_ARGUMENT,
                       "Requests specifying Server Side Encryption with Customer provided keys "
                       "must provide an appropriate secret key.");
    if (!md5.len)
        return err_set(err, S3_INVALID_ARGUMENT,
                       "Requests specifying Server Side Encryption with Customer provided keys "
                       "must provide the client calculated MD5 of the secret key.");
    return decode_key(out, key, md5, err);
}

/* --- keys that weir holds: SSE-S3 and SSE-KMS --- */

/* Checks that the context is base64 of a JSON object. */
static int check_context(struct str text, struct err *err)
{
    struct buf plain = BUF_INIT(CONTEXT_PLAIN_MAX);
    json_t *root = NULL;
    int code = base64_decode(&plain, text);

    if (code == 0)
        code = json_read(&root, buf_str(&plain), NULL);
    if (code < 0 || !json_is_object(root))
        code = err_set(err, S3_INVALID_ARGUMENT,
                       "The header 'x-amz-server-side-encryption-context' shall be "
                       "Base64-encoded UTF-8 string holding JSON which represents a string-string "
                       "map");
    json_decref(root);
    buf_release(&plain);
    return code;
}

static int read_kms(struct sse_asked *out, const struct http_head *head, struct err *err)
{
    out->key_id = http_header(head, "x-amz-server-side-encryption-aws-kms-key-id");
    out->context = http_header(head, "x-amz-server-side-encryption-context");
    out->bucket_key =
        str_ieq(http_header(head, "x-amz-server-side-encryption-bucket-key-enabled"), STR("true"));
    if (out->key_id.len > KEYRING_NAME_MAX)
        return err_set(err, S3_KMS_NOT_FOUND_EXCEPTION, "Invalid keyId");
    return out->context.len ? check_context(out->context, err) : 0;
}

int sse_read(struct sse_asked *out, const struct http_head *head, struct err *err)
{
    struct str text = http_header(head, managed[0]);
    int code;

    *out = (struct sse_asked){0};
    code = sse_customer_read(&out->customer, head, false, err);
    if (code < 0)
        return code;
    if (out->customer.given && sse_managed_given(head))
        return err_set(err, S3_INVALID_ARGUMENT,
                       "Server Side Encryption with Customer provided key is incompatible with "
                       "the encryption method specified");
    if (out->customer.given)
        out->kind = SSE_C;
    else if (str_eq(text, STR("AES256")))
        out->kind = SSE_S3;
    else if (str_eq(text, STR("aws:kms")))
        out->kind = SSE_KMS;
    else if (text.p)
        return err_set(err, S3_INVALID_ARGUMENT,
                       "The encryption method specified is not supported");
    if (out->kind == SSE_KMS)
        return read_kms(out, head, err);
    if (http_header(head, managed[1]).p)
        return err_set(err, S3_INVALID_ARGUMENT,
                       "Server Side Encryption with AWS KMS managed key requires HTTP header "
                       "x-amz-server-side-encryption : aws:kms");
    return 0;
}

bool sse_managed_given(const struct http_head *head)
{
    if (!sse_given(head))
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(managed); i++)
        if (http_header(head, managed[i]).p)
            return true;
    return false;
}

/* Every GET calls this function, so it must be fast: it makes one pass, in which most header names
 * are too short to be compared. */
bool sse_given(const struct http_head *head)
{
    struct str prefix = str_z(managed[0]);

    for (size_t i = 0; i < head->header_count; i++) {
        struct str name = head->headers[i].name;
        if (name.len >= prefix.len && str_ieq(str_head(name, prefix.len), prefix))
            return true;
    }
    return false;
}

/* --- the document of a bucket's default encryption --- */

int sse_default_read(struct sse_asked *out, struct arena *a, struct str xml, struct err *err)
{
    struct xml_node *root, *rule, *by;
    int code = document_read(&root, a, xml, "ServerSideEncryptionConfiguration", err);

    *out = (struct sse_asked){0};
    if (code == 0)
        code = document_shape(root, "Rule!", err);
    if (code < 0)
        return code;
    rule = xml_child(root, "Rule");
    code = document_shape(rule, "ApplyServerSideEncryptionByDefault! BucketKeyEnabled?", err);
    if (code == 0)
        code = document_bool(rule, "BucketKeyEnabled", false, &out->bucket_key, err);
    if (code < 0)
        return code;
    by = xml_child(rule, "ApplyServerSideEncryptionByDefault");
    code = document_shape(by, "SSEAlgorithm! KMSMasterKeyID?", err);
    if (code < 0)
        return code;
    struct str algorithm = xml_child(by, "SSEAlgorithm")->text;
    out->key_id = str_trim(xml_child_text(by, "KMSMasterKeyID", STR_EMPTY));
    if (str_eq(algorithm, STR("AES256")))
        out->kind = SSE_S3;
    else if (str_eq(algorithm, STR("aws:kms")))
        out->kind = SSE_KMS;
    else
        return err_set(err, S3_MALFORMED_XML, "SSEAlgorithm is neither AES256 nor aws:kms");
    if (out->key_id.len > KEYRING_NAME_MAX || (out->kind == SSE_S3 && out->key_id.len))
        return err_set(err, S3_INVALID_ARGUMENT,
                       "a KMSMasterKeyID is not applicable if the default sse algorithm is not "
                       "aws:kms");
    return 0;
}

void sse_default_write(struct buf *out, const struct sse_asked *rule)
{
    document_open(out, "ServerSideEncryptionConfiguration");
    xml_open(out, "Rule");
    xml_open(out, "ApplyServerSideEncryptionByDefault");
    xml_element(out, "SSEAlgorithm", str_z(sse_algorithm(rule->kind)));
    if (rule->key_id.len)
        xml_element(out, "KMSMasterKeyID", rule->key_id);
    xml_close(out, "ApplyServerSideEncryptionByDefault");
    xml_element(out, "BucketKeyEnabled", rule->bucket_key ? STR("true") : STR("false"));
    xml_close(out, "Rule");
    xml_close(out, "ServerSideEncryptionConfiguration");
}
