/* The id of a node, as lakeFS computes the id of its files: SHA-256 over the records and the type
 * of the file. It does not depend on blocks and compression. */
#include "lake/node.h"

#include <openssl/evp.h>

void node_hash_init(struct node_hash *h)
{
    h->digest = EVP_MD_CTX_new();
    BUG_ON(!h->digest);
    h->used = 0;
}

void node_hash_release(struct node_hash *h)
{
    EVP_MD_CTX_free(h->digest);
    h->digest = NULL;
}

void node_hash_begin(struct node_hash *h)
{
    BUG_ON(EVP_DigestInit_ex(h->digest, EVP_sha256(), NULL) != 1);
    h->used = 0;
}

static void node_hash_flush(struct node_hash *h)
{
    BUG_ON(EVP_DigestUpdate(h->digest, h->bytes, h->used) != 1);
    h->used = 0;
}

static void node_hash_add(struct node_hash *h, const void *p, size_t len)
{
    if (len > sizeof(h->bytes) - h->used)
        node_hash_flush(h);
    if (len > sizeof(h->bytes)) {
        BUG_ON(EVP_DigestUpdate(h->digest, p, len) != 1);
        return;
    }
    if (len)
        memcpy(h->bytes + h->used, p, len);
    h->used += len;
}

/* Hashes the length in decimal, then the bytes, then '|'. */
static void node_hash_string(struct node_hash *h, struct str s)
{
    char digits[20], *p = digits + sizeof(digits);

    for (size_t n = s.len; n || p == digits + sizeof(digits); n /= 10)
        *--p = (char)('0' + n % 10);
    node_hash_add(h, p, (size_t)(digits + sizeof(digits) - p));
    node_hash_add(h, s.p, s.len);
    node_hash_add(h, "|", 1);
}

void node_hash_record(struct node_hash *h, struct str key, struct str value)
{
    node_hash_string(h, key);
    node_hash_string(h, value);
}

/* Hashes a number as lakeFS encodes it: the bytes 2 and 8, then eight bytes big-endian. A map of
 * strings is the byte 4, the number of pairs, then the pairs; a string is the byte 1, its length,
 * its bytes. */
static void node_hash_number(struct node_hash *h, uint64_t v)
{
    unsigned char bytes[10] = {2, 8};

    be64_write(bytes + 2, v);
    node_hash_add(h, bytes, sizeof(bytes));
}

static void node_hash_property(struct node_hash *h, struct str s)
{
    node_hash_add(h, "\1", 1);
    node_hash_number(h, s.len);
    node_hash_add(h, s.p, s.len);
}

void node_hash_end(struct node_hash *h, struct str type, struct node_id *out)
{
    node_hash_add(h, "\4", 1);
    node_hash_number(h, type.len ? 1 : 0);
    if (type.len) {
        node_hash_property(h, STR("type"));
        node_hash_property(h, type);
    }
    node_hash_flush(h);
    BUG_ON(EVP_DigestFinal_ex(h->digest, out->bytes, NULL) != 1);
}

struct str node_hash_type(unsigned level)
{
    return level ? STR("metaranges") : STR("ranges");
}
