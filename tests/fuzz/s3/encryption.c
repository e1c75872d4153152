/* What is kept beside encrypted objects, and the headers that ask for encryption: the first byte
 * chooses. An envelope that is read says the same when it is sealed again. */
#include "meta/encryption.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct envelope_place at = {{"bucket", 6}, {"key", 3}};

static void envelope(struct str in)
{
    static const struct sealed_key with = {.bytes = "0123456789abcdef0123456789abcde"};
    struct buf again = BUF_INIT(2 * ENVELOPE_MAX);
    struct envelope e, same;
    struct sealed_key opened;

    if (envelope_read(&e, in, NULL) < 0)
        return;
    BUG_ON(e.head.len + SEALED_SALT_LEN + SEALED_KEY_LEN + SEALED_TAG_LEN != in.len);
    BUG_ON(envelope_open(&e, &at, &with, &opened) == 0); /* nobody sealed it with this key */
    envelope_seal(&again, &e, &at, &with, &with);
    BUG_ON(envelope_read(&same, buf_str(&again), NULL) < 0 || !str_eq(same.head, e.head));
    BUG_ON(envelope_open(&same, &at, &with, &opened) < 0);
    buf_release(&again);
}

/* Lines of "name: value". */
static void headers(struct str in)
{
    static struct http_head head;
    struct str line, name, value;
    struct sse_asked asked;
    struct err err = {0};

    head.header_count = 0;
    while (head.header_count < HTTP_MAX_HEADERS && str_token(&in, "\n", &line)) {
        str_cut(line, ':', &name, &value);
        head.headers[head.header_count++] = (struct http_header){name, str_trim(value)};
    }
    if (sse_read(&asked, &head, &err) == 0) {
        BUG_ON((asked.kind == SSE_C) != asked.customer.given);
        BUG_ON(asked.kind != SSE_KMS && (asked.key_id.len || asked.context.len));
        BUG_ON(asked.kind != SSE_NONE && !sse_given(&head));
    }
    BUG_ON(sse_customer_read(&asked.customer, &head, true, &err) == 0 && asked.customer.given &&
           !asked.customer.md5.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (data[0] % 2)
        envelope(str_n(data + 1, size - 1));
    else
        headers(str_n(data + 1, size - 1));
    return 0;
}
