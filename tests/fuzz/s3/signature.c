/* Requests with a signature: line one is the path and query, the next ones headers. Nothing that is
 * made up is taken, the parsers stay inside their input, and what we sign ourselves is taken. */
#include "base/clock.h"
#include "s3/access/auth.h"
#include "meta/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const int64_t NOW = INT64_C(1369353600000);

static int find_key(void *ctx, struct str access_key, struct auth_key *out, struct err *err)
{
    memcpy(out->secret, "secret", 6);
    out->secret_len = 6;
    return 0;
}

static void check_parsers(struct str in)
{
    struct auth_header header;
    struct auth_credential credential;

    if (auth_parse_header(&header, in, NULL) == 0)
        BUG_ON(!header.credential.len || !header.signature.len || header.credential.len > in.len);
    if (auth_parse_credential(&credential, in) == 0)
        BUG_ON(credential.access_key.p != in.p || !credential.access_key.len ||
               credential.access_key.len + credential.scope.date.len + credential.scope.region.len +
                       credential.scope.service.len + credential.end.len + 4 !=
                   in.len);
}

static size_t parse(struct auth_request *r, struct http_header headers[HTTP_MAX_HEADERS],
                    struct str in)
{
    struct str line;
    size_t count = 0;

    str_cut(in, '\n', &line, &in);
    str_cut(line, '?', &r->path, &r->query);
    while (count < HTTP_MAX_HEADERS - 4 && str_cut(in, '\n', &line, &in)) {
        str_cut(line, ':', &headers[count].name, &headers[count].value);
        headers[count].value = str_trim(headers[count].value);
        if (headers[count].name.len)
            count++;
    }
    return count;
}

/* What is signed by us, whatever it looks like, is taken. */
static void check_own(struct auth_request *r, struct http_header *headers, struct arena *a,
                      const struct auth_options *o)
{
    struct sign_credentials c = {STR("a/b"), STR("secret"), STR("r"), STR("s3"), NULL};
    struct sign_request request = {STR("PUT"), r->path, r->query, headers, 1, STR(SIGN_UNSIGNED)};
    struct http_header first = headers[0];
    struct signed_headers out;
    struct identity auth;

    headers[0] = (struct http_header){STR("Host"), first.value};
    if (sign_headers(&out, a, &request, &c, NOW) == 0) {
        struct err err = {0};
        headers[1] = (struct http_header){STR("authorization"), out.authorization};
        headers[2] = (struct http_header){STR("x-amz-date"), out.date};
        headers[3] = (struct http_header){STR("x-amz-content-sha256"), out.content_sha256};
        r->header_count = 4;
        int code = auth_verify(&auth, a, r, o, &err);
        BUG_ON(code < 0 && code != S3_INVALID_ARGUMENT); /* a second signature in the query */
        if (code == 0)
            BUG_ON(!str_eq(auth.access_key, STR("a/b")));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_header headers[HTTP_MAX_HEADERS] = {{{0}}};
    struct auth_request r = {.method = STR("PUT"), .headers = headers, .now_ms = NOW};
    struct auth_options o = {.find_key = find_key, .allow_v2 = true};
    struct arena a = ARENA_INIT(0);
    struct str in = str_n(data, size);
    struct identity auth;

    check_parsers(in);
    if (size > HTTP_MAX_HEAD)
        return 0;
    r.header_count = parse(&r, headers, in);
    if (auth_verify(&auth, &a, &r, &o, NULL) == 0)
        BUG_ON(auth.kind != AUTH_ANONYMOUS);
    check_own(&r, headers, &a, &o);
    arena_release(&a);
    return 0;
}
