/* Server-side encryption: chooses the key that wraps an object's key, decides which requests may
 * unwrap the object's key, and writes the headers of answers about the encryption.
 * docs/encryption.md has the invariants. */
#include "s3/gateway/gateway_int.h"

#include "base/ids.h"

#define WRONG_KEY      "The provided encryption parameters did not match the ones used originally."
#define NOT_APPLICABLE "The encryption parameters are not applicable to this object."

/* What is needed to open an envelope, which is the wrapped key of an object or upload: its bytes,
 * the object that it belongs to, and the customer's key. */
struct opening {
    struct str bytes;
    struct envelope_place at;
    struct sse_customer customer;
    const char *missing; /* text of the error for a request without the customer's key */
};

static const char object_needs_key[] =
    "The object was stored using a form of Server Side Encryption. The correct parameters must be "
    "provided to retrieve the object.";
static const char upload_needs_key[] =
    "The multipart upload initiate requested encryption. Subsequent part requests must include "
    "the appropriate encryption parameters.";

/* --- the request --- */

static bool from_this_machine(struct call *c)
{
    char host[SOCK_ADDR_TEXT];

    sock_addr_host(http_request_peer(c->http), host);
    return str_starts(str_z(host), STR("127.")) || str_eq(str_z(host), STR("::1")) ||
           str_starts(str_z(host), STR("::ffff:127.")) || str_eq(str_z(host), STR("unix"));
}

static int check_channel(struct call *c, const struct sse_customer *customer, struct err *err)
{
    if (!customer->given || http_request_is_tls(c->http) || c->g->o.sse_c_over_http ||
        from_this_machine(c))
        return 0;
    return err_set(err, S3_INVALID_REQUEST,
                   "Requests specifying Server Side Encryption with Customer provided keys must be "
                   "made over a secure connection.");
}

static int read_customer(struct call *c, bool source, struct sse_customer *out, struct err *err)
{
    int code = sse_customer_read(out, c->head, source, err);

    return code < 0 ? code : check_channel(c, out, err);
}

static int encryption_read_default(struct call *c, struct str text, struct sse_asked *out,
                                   struct err *err)
{
    int code = sse_default_read(out, c->a, text, err);

    return code < 0 && code != ERR_NO_MEMORY
               ? err_set(err, ERR_CORRUPT, "the bucket's encryption document cannot be read")
               : code;
}

static int encryption_read_asked(struct call *c, struct sse_asked *out, struct err *err)
{
    int code = sse_read(out, c->head, err);
    struct str text = STR_EMPTY;

    if (code == 0 && out->kind != SSE_NONE)
        return check_channel(c, &out->customer, err);
    if (code == 0 && c->target.may_encrypt)
        code = call_document(c, c->target.bucket, "encryption", &text, err);
    return code == 0 && text.len ? encryption_read_default(c, text, out, err) : code;
}

/* Can the storage keep bytes that weir encrypts? If not, weir passes the client's own encryption
 * headers on to the storage. */
static bool seals(const struct bucket *b)
{
    return bucket_can(b, STORAGE_KEEPS_META);
}

/* --- new objects --- */

static int encryption_wrapping_key(struct call *c, const struct sse_asked *asked, struct str *name,
                                   struct ring_key *out, struct err *err)
{
    int code;

    *out = (struct ring_key){0};
    *name = STR_EMPTY;
    if (asked->kind == SSE_C) {
        out->key = asked->customer.key;
        return 0;
    }
    *name = asked->kind == SSE_S3 ? KEYRING_MASTER
            : asked->key_id.len   ? asked->key_id
                                  : KEYRING_DEFAULT;
    code = keyring_current(c->g->ring, *name, asked->kind == SSE_S3, out, err);
    return code == ERR_NOT_FOUND
               ? err_set(err, S3_KMS_NOT_FOUND_EXCEPTION, "Invalid keyId " STR_FMT, STR_ARG(*name))
               : code;
}

static int seal_new(void *ctx, const struct object_meta *meta, struct put_seal *out,
                    struct err *err)
{
    const struct call *c = ctx;

    (void)meta;
    (void)err;
    *out = (struct put_seal){c->encryption.data, c->encryption.kind != SSE_S3};
    return 0;
}

static int wrap(struct call *c, const struct sse_asked *asked, struct put_options *o,
                struct err *err)
{
    struct envelope_place at = {c->target.info.name, c->key};
    struct envelope e = {
        .kind = asked->kind, .bucket_key = asked->bucket_key, .context = asked->context};
    struct buf bytes = BUF_INIT(ENVELOPE_MAX);
    struct ring_key with;
    int code = encryption_wrapping_key(c, asked, &e.name, &with, err);

    if (code < 0)
        return code;
    e.id = str_z(with.id);
    envelope_seal(&bytes, &e, &at, &with.key, &c->encryption.data);
    secure_zero(&with, sizeof(with));
    o->meta.encryption = arena_str(c->a, buf_str(&bytes));
    c->encryption.key_id = asked->kind == SSE_KMS ? arena_str(c->a, e.name) : STR_EMPTY;
    buf_release(&bytes);
    return o->meta.encryption.len ? 0 : err_code(err, ERR_NO_MEMORY);
}

int encrypt_new(struct call *c, const struct sealed_key *data, struct put_options *o,
                struct err *err)
{
    struct call_encryption *own = &c->encryption;
    struct sse_asked asked;
    int code;

    *own = (struct call_encryption){0};
    o->meta.encryption = STR_EMPTY;
    if (!c->g->ring || !seals(c->target.bucket))
        return sse_given(c->head) ? err_set(err, S3_NOT_IMPLEMENTED,
                                            "Server Side Encryption is not available here")
                                  : 0;
    code = encryption_read_asked(c, &asked, err);
    if (code == 0 && asked.kind != SSE_NONE) {
        own->kind = asked.kind;
        own->context = asked.context;
        own->bucket_key = asked.bucket_key;
        own->customer_md5 = asked.customer.md5;
        if (data)
            own->data = *data;
        else
            random_bytes(own->data.bytes, sizeof(own->data.bytes));
        o->seal = seal_new;
        o->seal_ctx = c;
        code = wrap(c, &asked, o, err);
    }
    secure_zero(&asked, sizeof(asked));
    return code;
}

struct str encrypt_etag(struct call *c)
{
    char id[ID_HEX_LEN + 1];

    id_hex(id);
    return arena_fmt(c->a, "%s-0", id);
}

/* --- opening --- */

static void encryption_remember(struct call *c, const struct envelope *e,
                                const struct sse_customer *customer)
{
    c->encryption = (struct call_encryption){
        .kind = e->kind, .bucket_key = e->bucket_key, .customer_md5 = customer->md5};
    if (e->kind == SSE_KMS)
        c->encryption.key_id = arena_str(c->a, e->name);
}

static int unwrap(struct call *c, const struct opening *o, const struct envelope *e,
                  struct sealed_key *data, struct err *err)
{
    struct ring_key with = {.key = o->customer.key};
    int code = 0;

    if (e->kind != SSE_C)
        code = c->g->ring
                   ? keyring_find(c->g->ring, e->name, e->id, http_may_block(c->http), &with, err)
                   : err_set(err, ERR_CORRUPT, "there is no key file");
    if (code == 0 && envelope_open(e, &o->at, &with.key, data) < 0)
        code = e->kind == SSE_C ? err_set(err, S3_INVALID_REQUEST, WRONG_KEY)
                                : err_set(err, ERR_CORRUPT,
                                          "an object's key does not open with " STR_FMT " " STR_FMT,
                                          STR_ARG(e->name), STR_ARG(e->id));
    secure_zero(&with, sizeof(with));
    return code;
}

/* Reads the envelope. The request must have a customer's key if the object needs it, and must not
 * have a customer's key otherwise. */
static int read_envelope(const struct opening *o, struct envelope *e, struct err *err)
{
    int code = envelope_read(e, o->bytes, err);

    if (code == 0 && e->kind == SSE_C && !o->customer.given)
        code = err_set(err, S3_INVALID_REQUEST, "%s", o->missing);
    if (code == 0 && e->kind != SSE_C && o->customer.given)
        code = err_set(err, S3_INVALID_REQUEST, NOT_APPLICABLE);
    return code;
}

static int open_envelope(struct call *c, const struct opening *o, struct sealed_key *data,
                         struct envelope *e, struct err *err)
{
    int code = read_envelope(o, e, err);

    return code < 0 ? code : unwrap(c, o, e, data, err);
}

static int object_opening(struct call *c, const struct object_info *info, struct opening *out,
                          struct err *err)
{
    *out = (struct opening){.bytes = info->meta.encryption,
                            .at = {c->target.info.name, c->key},
                            .missing = object_needs_key};
    int code = read_customer(c, false, &out->customer, err);
    if (code == 0 && !out->bytes.len && out->customer.given)
        code = err_set(err, S3_INVALID_REQUEST, NOT_APPLICABLE);
    return code;
}

int encrypt_check(struct call *c, const struct object_info *info, struct err *err)
{
    struct opening o;
    struct envelope e = {0};
    struct sealed_key data = {0};
    int code;

    if (!info->meta.encryption.len && !sse_given(c->head))
        return 0;
    code = object_opening(c, info, &o, err);
    if (code == 0 && o.bytes.len)
        code = read_envelope(&o, &e, err);
    if (code == 0 && e.kind == SSE_C)
        code = unwrap(c, &o, &e, &data, err);
    if (code == 0 && o.bytes.len)
        encryption_remember(c, &e, &o.customer);
    secure_zero(&o.customer.key, sizeof(o.customer.key));
    secure_zero(&data, sizeof(data));
    return code;
}

int encrypt_unlock(struct call *c, struct get_result *got, struct err *err)
{
    struct opening o;
    struct envelope e;
    struct sealed_key data = {0};
    int code;

    if (!got->unlock && !sse_given(c->head))
        return 0;
    code = object_opening(c, &got->info, &o, err);
    if (code == 0 && got->unlock && !got->at_hand && !http_may_block(c->http))
        code = ERR_AGAIN;
    if (code == 0 && got->unlock) {
        code = open_envelope(c, &o, &data, &e, err);
        if (code == 0)
            code = got->unlock(got->body, &data, err);
        if (code == 0)
            encryption_remember(c, &e, &o.customer);
    }
    secure_zero(&o.customer.key, sizeof(o.customer.key));
    secure_zero(&data, sizeof(data));
    return code;
}

static int source_key(struct call *c, const struct copy_source *s, struct str bytes,
                      struct sealed_key *out, struct err *err)
{
    struct opening o = {
        .bytes = bytes, .at = {s->target.info.name, s->key}, .missing = object_needs_key};
    struct envelope e;
    int code = read_customer(c, true, &o.customer, err);

    if (code == 0 && bytes.len)
        code = open_envelope(c, &o, out, &e, err);
    else if (code == 0 && o.customer.given)
        code = target_is_foreign(&s->target.at)
                   ? err_set(err, S3_NOT_IMPLEMENTED,
                             "Copying from that storage with a customer's key is not "
                             "implemented")
                   : err_set(err, S3_INVALID_REQUEST, NOT_APPLICABLE);
    secure_zero(&o.customer.key, sizeof(o.customer.key));
    return code;
}

int encrypt_source(struct call *c, const struct copy_source *s, struct sealed_key *out,
                   struct err *err)
{
    return source_key(c, s, s->head.info.meta.encryption, out, err);
}

/* Makes the body in `got` readable. The key is that of the envelope in `got`, because the source
 * may have been replaced since s->head was read. */
int encrypt_source_unlock(struct call *c, const struct copy_source *s, struct get_result *got,
                          struct err *err)
{
    struct sealed_key data = {0};
    int code = source_key(c, s, got->info.meta.encryption, &data, err);

    if (code == 0 && got->unlock)
        code = got->unlock(got->body, &data, err);
    secure_zero(&data, sizeof(data));
    return code;
}

/* --- uploads --- */

static int open_upload(struct call *c, struct str bytes, struct put_seal *out, struct err *err)
{
    struct opening o = {
        .bytes = bytes, .at = {c->target.info.name, c->key}, .missing = upload_needs_key};
    struct envelope e;
    int code = read_customer(c, false, &o.customer, err);

    if (code == 0)
        code = open_envelope(c, &o, &out->key, &e, err);
    if (code == 0) {
        out->hide_md5 = e.kind != SSE_S3;
        encryption_remember(c, &e, &o.customer);
    }
    secure_zero(&o.customer.key, sizeof(o.customer.key));
    return code;
}

static int seal_part(void *ctx, const struct object_meta *meta, struct put_seal *out,
                     struct err *err)
{
    return open_upload(ctx, meta->encryption, out, err);
}

/* Sets up the encryption of a part. Refuses a customer's key that the upload does not need. A key
 * that is missing or wrong is found later, when the storage asks for it. */
int encrypt_part(struct call *c, const struct object_meta *upload, struct put_options *o,
                 struct err *err)
{
    struct sse_customer customer;
    int code = read_customer(c, false, &customer, err);

    if (code == 0 && customer.given && seals(c->target.bucket) && !upload->encryption.len)
        code = err_set(err, S3_INVALID_REQUEST, NOT_APPLICABLE);
    secure_zero(&customer, sizeof(customer));
    o->seal = seal_part;
    o->seal_ctx = c;
    return code;
}

/* Requires the customer's key in CompleteMultipartUpload only if the upload has checksums, because
 * older clients do not send the key there. AWS does the same, and newer versions of Ceph do not
 * always require it either. */
int encrypt_finish(struct call *c, const struct object_meta *meta, struct err *err)
{
    struct put_seal seal = {0};
    struct sse_customer customer;
    struct envelope e;
    bool has_checksum = meta->checksum.type != CHECKSUM_NONE;
    int code = read_customer(c, false, &customer, err);

    if (code == 0 && !meta->encryption.len && customer.given)
        code = err_set(err, S3_INVALID_REQUEST, NOT_APPLICABLE);
    if (code == 0 && meta->encryption.len) {
        code = envelope_read(&e, meta->encryption, err);
        if (code == 0 && (customer.given || (e.kind == SSE_C && has_checksum)))
            code = open_upload(c, meta->encryption, &seal, err);
        else if (code == 0)
            encryption_remember(c, &e, &customer);
    }
    secure_zero(&customer, sizeof(customer));
    secure_zero(&seal, sizeof(seal));
    return code;
}

struct str encrypt_policy_value(struct call *c, enum policy_key key)
{
    struct upload_info upload = {.key = c->key, .id = call_param(c, "uploadId")};
    struct object_meta meta = {0};
    struct envelope e;

    if (!upload.id.len || upload_meta(c, &upload, &meta, NULL) < 0 || !meta.encryption.len ||
        envelope_read(&e, meta.encryption, NULL) < 0)
        return STR_EMPTY;
    if (key == POLICY_KEY_X_AMZ_SERVER_SIDE_ENCRYPTION_CUSTOMER_ALGORITHM)
        return e.kind == SSE_C ? STR("AES256") : STR_EMPTY;
    if (key == POLICY_KEY_X_AMZ_SERVER_SIDE_ENCRYPTION)
        return e.kind == SSE_C ? STR_EMPTY : str_z(sse_algorithm(e.kind));
    return e.kind == SSE_KMS ? arena_str(c->a, e.name) : STR_EMPTY;
}

/* --- answers --- */

void respond_encryption(struct call *c)
{
    const struct call_encryption *e = &c->encryption;

    if (e->kind == SSE_NONE)
        return;
    if (e->kind == SSE_C) {
        respond_header(c, "x-amz-server-side-encryption-customer-algorithm", STR("AES256"));
        respond_header(c, "x-amz-server-side-encryption-customer-key-MD5", e->customer_md5);
        return;
    }
    respond_header(c, "x-amz-server-side-encryption", str_z(sse_algorithm(e->kind)));
    respond_header(c, "x-amz-server-side-encryption-aws-kms-key-id", e->key_id);
    respond_header(c, "x-amz-server-side-encryption-context", e->context);
    if (e->bucket_key)
        respond_header(c, "x-amz-server-side-encryption-bucket-key-enabled", STR("true"));
}
