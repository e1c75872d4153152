/* AWS signatures, version 2: HMAC-SHA1 over the main lines of the request. */
#include "sign/base64.h"
#include "sign/hmac.h"
#include "sign/sign.h"

#include <stdlib.h>

/* The query parameters that are signed, in byte order. Clients have the same list. */
static const struct str subresources[] = {
    STR("accelerate"),
    STR("acl"),
    STR("analytics"),
    STR("cors"),
    STR("defaultObjectAcl"),
    STR("delete"),
    STR("inventory"),
    STR("lifecycle"),
    STR("location"),
    STR("logging"),
    STR("metrics"),
    STR("notification"),
    STR("object-lock"),
    STR("partNumber"),
    STR("policy"),
    STR("replication"),
    STR("requestPayment"),
    STR("response-cache-control"),
    STR("response-content-disposition"),
    STR("response-content-encoding"),
    STR("response-content-language"),
    STR("response-content-type"),
    STR("response-expires"),
    STR("restore"),
    STR("select"),
    STR("select-type"),
    STR("storageClass"),
    STR("tagging"),
    STR("torrent"),
    STR("uploadId"),
    STR("uploads"),
    STR("versionId"),
    STR("versioning"),
    STR("versions"),
    STR("website"),
};

static struct str header_of(const struct sign_request *r, const char *name)
{
    for (size_t i = 0; i < r->header_count; i++)
        if (str_ieq(r->headers[i].name, str_z(name)))
            return r->headers[i].value;
    return STR_EMPTY;
}

static void append_lower(struct buf *out, struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        buf_append_char(out, s.p[i] >= 'A' && s.p[i] <= 'Z' ? (char)(s.p[i] | 0x20) : s.p[i]);
}

static int by_folded_name(const void *a, const void *b)
{
    const struct http_header *x = *(const struct http_header *const *)a,
                             *y = *(const struct http_header *const *)b;
    size_t n = size_min(x->name.len, y->name.len);

    for (size_t i = 0; i < n; i++) {
        int left = x->name.p[i] | 0x20, right = y->name.p[i] | 0x20;
        if (left != right)
            return left - right;
    }
    if (x->name.len != y->name.len)
        return x->name.len < y->name.len ? -1 : 1;
    return x < y ? -1 : x > y; /* headers of the same name keep their order */
}

static void append_amz_headers(struct buf *out, const struct sign_request *r)
{
    const struct http_header *sorted[HTTP_MAX_HEADERS];
    size_t count = 0;

    for (size_t i = 0; i < r->header_count && count < HTTP_MAX_HEADERS; i++)
        if (str_ieq(str_head(r->headers[i].name, 6), STR("x-amz-")))
            sorted[count++] = &r->headers[i];
    if (count > 1)
        qsort(sorted, count, sizeof(*sorted), by_folded_name);
    for (size_t i = 0; i < count; i++) {
        bool again = i && str_ieq(sorted[i]->name, sorted[i - 1]->name);
        if (again) {
            buf_append_char(out, ',');
        } else {
            if (i)
                buf_append_char(out, '\n');
            append_lower(out, sorted[i]->name);
            buf_append_char(out, ':');
        }
        buf_append_str(out, sorted[i]->value);
    }
    if (count)
        buf_append_char(out, '\n');
}

/* Appends the signed parameters that are in the query: each name and, if there is one, the decoded
 * value. */
static int append_subresources(struct buf *out, struct str query)
{
    char before = '?';
    int code = 0;

    for (size_t i = 0; code == 0 && i < ARRAY_SIZE(subresources); i++) {
        struct str rest = query, name, value;
        while (code == 0 && url_query_next(&rest, &name, &value)) {
            if (!str_eq(name, subresources[i]))
                continue;
            buf_append_char(out, before);
            before = '&';
            buf_append_str(out, name);
            if (value.p == name.p + name.len + 1) { /* the parameter has a "=" */
                buf_append_char(out, '=');
                code = url_decode(out, value, true);
            }
        }
    }
    return code;
}

bool sign_v2_covers(struct str parameter)
{
    for (size_t i = 0; i < ARRAY_SIZE(subresources); i++)
        if (str_eq(parameter, subresources[i]))
            return true;
    return false;
}

int sign_v2_string(struct buf *out, const struct sign_request *r, struct str date,
                   struct str bucket)
{
    const struct str lines[] = {r->method, header_of(r, "content-md5"),
                                header_of(r, "content-type"), date};
    int code;

    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        buf_append_str(out, lines[i]);
        buf_append_char(out, '\n');
    }
    append_amz_headers(out, r);
    if (bucket.len) {
        buf_append_char(out, '/');
        buf_append_str(out, bucket);
    }
    buf_append_str(out, r->path);
    code = append_subresources(out, r->query);
    return code < 0 ? code : buf_error(out);
}

void sign_v2(struct buf *out, struct str secret, struct str bytes)
{
    unsigned char mac[HMAC_SHA1_LEN];

    hmac_sha1(secret, bytes, mac);
    base64_encode(out, str_n(mac, sizeof(mac)));
}
