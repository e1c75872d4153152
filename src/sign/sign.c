/* AWS signatures, version 4: the canonical request, the string to sign, and the key. */
#include "sign/sign.h"
#include "base/hex.h"
#include "base/vec.h"

#include <stdlib.h>

/* The place of an encoded query parameter in the buf that has all parameters. The struct has
 * offsets and not pointers, because the buf may move when it grows. */
struct parameter {
    size_t name, name_len, value_len; /* the value follows the name and a '=' */
};

struct parameters {
    struct buf text;
    VEC(struct parameter) list;
};

static int query_append_recoded(struct buf *out, struct buf *scratch, struct str in, bool in_query)
{
    int code;

    if (str_chr(in, '%') < 0 && !(in_query && str_chr(in, '+') >= 0)) { /* nothing to decode */
        url_encode(out, in, !in_query);
        return 0;
    }
    buf_reset(scratch);
    code = url_decode(scratch, in, in_query);
    if (code == 0)
        url_encode(out, buf_str(scratch), !in_query);
    return code;
}

static int parameters_collect(struct parameters *p, struct buf *scratch, struct str query)
{
    struct str name, value;
    int code = 0;

    while (code == 0 && url_query_next(&query, &name, &value)) {
        struct parameter at = {.name = p->text.len};
        if (str_eq(name, STR("X-Amz-Signature")))
            continue;
        code = query_append_recoded(&p->text, scratch, name, true);
        at.name_len = p->text.len - at.name;
        buf_append_char(&p->text, '=');
        if (code == 0)
            code = query_append_recoded(&p->text, scratch, value, true);
        at.value_len = p->text.len - at.name - at.name_len - 1;
        vec_push(&p->list, at);
    }
    return code < 0 ? code : buf_error(&p->text);
}

static int parameter_compare(const void *left, const void *right, void *text)
{
    const struct parameter *a = left, *b = right;
    const char *p = text;
    int order = str_cmp(str_n(p + a->name, a->name_len), str_n(p + b->name, b->name_len));

    return order ? order
                 : str_cmp(str_n(p + a->name + a->name_len + 1, a->value_len),
                           str_n(p + b->name + b->name_len + 1, b->value_len));
}

static int append_query(struct buf *out, struct buf *scratch, struct str query)
{
    struct parameters p = {.text = BUF_INIT(4 * HTTP_MAX_HEAD)};
    int code = parameters_collect(&p, scratch, query);

    if (code == 0 && p.list.len)
        qsort_r(p.list.items, p.list.len, sizeof(*p.list.items), parameter_compare, p.text.p);
    for (size_t i = 0; code == 0 && i < p.list.len; i++) {
        const struct parameter *at = &p.list.items[i];
        if (i)
            buf_append_char(out, '&');
        buf_append(out, p.text.p + at->name, at->name_len + 1 + at->value_len);
    }
    vec_release(&p.list);
    buf_release(&p.text);
    return code;
}

bool sign_next_name(struct str *rest, struct str *name)
{
    do {
        if (rest->len == 0)
            return false;
        str_cut(*rest, ';', name, rest);
    } while (name->len == 0);
    return true;
}

static bool has_runs(struct str value)
{
    return str_chr(value, '\t') >= 0 ||
           (str_chr(value, ' ') >= 0 && str_find(value, STR("  ")) >= 0);
}

/* Appends a header's value without blanks at its ends, and with one blank for each run of blanks.
 */
static void header_append_value(struct buf *out, struct str value)
{
    struct str word;

    value = str_trim(value);
    if (!has_runs(value)) { /* no blanks to merge, which is the usual case */
        buf_append_str(out, value);
        return;
    }
    for (bool first = true; str_token(&value, " \t", &word); first = false) {
        if (!first)
            buf_append_char(out, ' ');
        buf_append_str(out, word);
    }
}

static void append_header(struct buf *out, const struct sign_request *r, struct str name)
{
    bool first = true;

    buf_append_str(out, name);
    buf_append_char(out, ':');
    for (size_t i = 0; i < r->header_count; i++) {
        if (!str_ieq(r->headers[i].name, name))
            continue;
        if (!first)
            buf_append_char(out, ',');
        header_append_value(out, r->headers[i].value);
        first = false;
    }
    buf_append_char(out, '\n');
}

int sign_canonical(struct buf *out, const struct sign_request *r, struct str signed_headers)
{
    struct buf scratch = BUF_INIT(4 * HTTP_MAX_HEAD);
    struct str rest = signed_headers, name;
    int code;

    buf_append_str(out, r->method);
    buf_append_char(out, '\n');
    code = query_append_recoded(out, &scratch, r->path.len ? r->path : STR("/"), false);
    buf_append_char(out, '\n');
    if (code == 0 && r->query.len)
        code = append_query(out, &scratch, r->query);
    buf_append_char(out, '\n');
    while (sign_next_name(&rest, &name))
        append_header(out, r, name);
    buf_append_char(out, '\n');
    buf_append_str(out, signed_headers);
    buf_append_char(out, '\n');
    buf_append_str(out, r->payload_hash);
    buf_release(&scratch);
    return code < 0 ? code : buf_error(out);
}

void sign_append_scope(struct buf *out, const struct sign_scope *scope)
{
    buf_append_str(out, scope->date);
    buf_append_char(out, '/');
    buf_append_str(out, scope->region);
    buf_append_char(out, '/');
    buf_append_str(out, scope->service);
    buf_append_z(out, "/aws4_request");
}

void sign_string(struct buf *out, struct str timestamp, const struct sign_scope *scope,
                 struct str canonical)
{
    unsigned char hash[SHA256_LEN];

    sha256(canonical, hash);
    buf_append_z(out, SIGN_ALGORITHM "\n");
    buf_append_str(out, timestamp);
    buf_append_char(out, '\n');
    sign_append_scope(out, scope);
    buf_append_char(out, '\n');
    buf_append_hex(out, hash, sizeof(hash));
}

void sign_hex(char out[SIGN_HEX_LEN], const struct sign_key *key, struct str bytes)
{
    unsigned char mac[HMAC_SHA256_LEN];

    hmac_sha256_by(&key->hmac, bytes, mac);
    hex_write(out, mac, sizeof(mac));
}

void sign_derive(struct sign_key *out, struct str secret, const struct sign_scope *scope)
{
    const struct str steps[] = {scope->date, scope->region, scope->service, STR("aws4_request")};
    unsigned char mac[HMAC_SHA256_LEN];
    struct buf first = BUF_INIT(0);

    /* All memory is reserved at once: growing the buf later would leave a copy of the secret in
     * freed memory. */
    buf_reserve(&first, 4 + secret.len);
    buf_append_z(&first, "AWS4");
    buf_append_str(&first, secret);
    hmac_key_init(&out->hmac, buf_str(&first));
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        hmac_sha256_by(&out->hmac, steps[i], mac);
        hmac_key_init(&out->hmac, str_n(mac, sizeof(mac)));
    }
    secure_zero(mac, sizeof(mac));
    secure_zero(first.p, first.len);
    buf_release(&first);
}
