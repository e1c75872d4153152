/* cors: the document, which rule answers, and with which headers. */
#include "s3/documents/cors.h"
#include "unit/test.h"

#define CORS(rules)  "<CORSConfiguration>" rules "</CORSConfiguration>"
#define RULE(inside) "<CORSRule>" inside "</CORSRule>"
#define ORIGIN(o)    "<AllowedOrigin>" o "</AllowedOrigin>"
#define METHOD(m)    "<AllowedMethod>" m "</AllowedMethod>"
#define HEADER(h)    "<AllowedHeader>" h "</AllowedHeader>"

static int read_code(const char *xml)
{
    struct arena a = {0};
    struct err err = {0};
    struct cors cors;
    int code = cors_read(&cors, &a, str_z(xml), &err);

    arena_release(&a);
    return code;
}

/* Joined headers of the answer, or "" when no rule matches. */
static struct str answer(struct arena *a, const char *xml, const char *origin, const char *method,
                         const char *headers)
{
    struct cors_request request = {str_z(origin), str_z(method), str_z(headers)};
    struct http_header out[CORS_MAX_HEADERS];
    struct cors_answer found;
    struct err err = {0};
    struct cors cors;
    struct str all = STR("");

    CHECK_OK(cors_read(&cors, a, str_z(xml), &err));
    if (!cors_match(&cors, &request, &found))
        return all;
    for (size_t i = 0, n = cors_headers(&found, a, out); i + 1 < n; i++)
        all = arena_fmt(a, STR_FMT STR_FMT "=" STR_FMT ";", STR_ARG(all),
                        STR_ARG(str_skip(out[i].name, strlen("Access-Control-"))),
                        STR_ARG(out[i].value));
    return all;
}

TEST(cors, one_wildcard_in_an_origin_stands_for_anything)
{
    const char *xml =
        CORS(RULE(ORIGIN("*suffix") METHOD("GET")) RULE(ORIGIN("start*end") METHOD("GET"))
                 RULE(ORIGIN("prefix*") METHOD("GET")) RULE(ORIGIN("*.put") METHOD("PUT"))
                     RULE(ORIGIN("ab*ba") METHOD("GET")));
    static const struct {
        const char *origin, *method;
        bool match;
    } rows[] = {
        {"foo.suffix", "GET", true}, {"foo.bar", "GET", false},  {"foo.suffix.get", "GET", false},
        {"startend", "GET", true},   {"start1end", "GET", true}, {"0start12end", "GET", false},
        {"staend", "GET", false},    {"prefix", "GET", true},    {"bla.prefix", "GET", false},
        {"foo.put", "GET", false},   {"foo.put", "PUT", true},   {"foo.suffix", "DELETE", false},
        {"aba", "GET", false},       {"abba", "GET", true}};
    struct arena a = {0};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        CHECK_INT(answer(&a, xml, rows[i].origin, rows[i].method, "").len > 0, rows[i].match);
    arena_release(&a);
}

TEST(cors, the_answer_names_the_origin_with_credentials_or_a_star_without)
{
    struct arena a = {0};

    CHECK_STR(answer(&a, CORS(RULE(ORIGIN("http://*") METHOD("GET") METHOD("PUT"))), "http://x",
                     "PUT", ""),
              STR("Allow-Origin=http://x;Allow-Methods=GET, PUT;Allow-Credentials=true;"));
    CHECK_STR(answer(&a,
                     CORS(RULE(ORIGIN("*") METHOD("GET") HEADER(
                         "x-*") "<ExposeHeader>ETag</ExposeHeader><ExposeHeader>x-a"
                                "</ExposeHeader><MaxAgeSeconds>30</MaxAgeSeconds>")),
                     "http://x", "GET", "X-One, x-two"),
              STR("Allow-Origin=*;Allow-Methods=GET;Allow-Headers=X-One, "
                  "x-two;Expose-Headers=ETag, x-a;Max-Age=30;"));
    arena_release(&a);
}

TEST(cors, all_announced_headers_must_be_allowed_by_one_rule)
{
    const char *xml = CORS(RULE(ORIGIN("*") METHOD("GET") HEADER("x-amz-*") HEADER("Content-MD5")));
    struct arena a = {0};

    CHECK(answer(&a, xml, "o", "GET", "X-Amz-Date,content-md5").len > 0);
    CHECK(answer(&a, xml, "o", "GET", "x-amz-date, etag").len == 0);
    CHECK(answer(&a, CORS(RULE(ORIGIN("*") METHOD("GET"))), "o", "GET", "x").len == 0);
    CHECK(answer(&a, CORS(RULE(ORIGIN("*") METHOD("GET") HEADER("*"))), "o", "GET", "x,y").len > 0);
    arena_release(&a);
}

TEST(cors, a_preflight_needs_origin_and_method_and_a_rule)
{
    struct arena a = {0};
    struct err err = {0};
    struct cors cors;
    struct cors_answer found;
    struct cors_request request = {STR("o"), STR("GET"), STR_EMPTY};

    CHECK_OK(cors_read(&cors, &a, STR(CORS(RULE(ORIGIN("o") METHOD("GET")))), &err));
    CHECK_OK(cors_preflight(&cors, &request, &found, &err));
    CHECK_INT(cors_preflight(NULL, &request, &found, &err), S3_ACCESS_FORBIDDEN);
    request.method = STR("PUT");
    CHECK_INT(cors_preflight(&cors, &request, &found, &err), S3_ACCESS_FORBIDDEN);
    request.method = STR_EMPTY;
    CHECK_INT(cors_preflight(&cors, &request, &found, &err), S3_BAD_REQUEST);
    request.origin = STR_EMPTY;
    CHECK_INT(cors_preflight(&cors, &request, &found, &err), S3_BAD_REQUEST);
    arena_release(&a);
}

TEST(cors, a_configuration_reads_back_as_written)
{
    const char *xml =
        CORS(RULE("<ID>one</ID>" ORIGIN("a") ORIGIN("b") METHOD("GET")
                      HEADER("h") "<ExposeHeader>e</ExposeHeader><MaxAgeSeconds>0"
                                  "</MaxAgeSeconds>") RULE(ORIGIN("c") METHOD("HEAD")));
    struct arena a = {0};
    struct err err = {0};
    struct buf first = {0}, second = {0};
    struct cors cors;

    CHECK_OK(cors_read(&cors, &a, str_z(xml), &err));
    cors_write(&first, &cors);
    CHECK_OK(cors_read(&cors, &a, buf_str(&first), &err));
    CHECK_INT(cors.count, 2);
    CHECK_INT(cors.rules[0].origins.count, 2);
    CHECK_INT(cors.rules[0].max_age, 0);
    cors_write(&second, &cors);
    CHECK_STR(buf_str(&first), buf_str(&second));
    buf_release(&first);
    buf_release(&second);
    arena_release(&a);
}

TEST(cors, what_cannot_be_a_header_is_refused)
{
    CHECK_INT(read_code(CORS(RULE(ORIGIN("*") METHOD("GET") "<ExposeHeader>a&#13;&#10;X: 2"
                                                            "</ExposeHeader>"))),
              S3_INVALID_REQUEST);
    CHECK_INT(read_code(CORS(RULE(ORIGIN("*") METHOD("GET") HEADER("a&#10;b")))),
              S3_INVALID_REQUEST);
    CHECK_INT(read_code(CORS(RULE(ORIGIN("http://a&#x7f;") METHOD("GET")))), S3_INVALID_REQUEST);
    CHECK_INT(read_code(CORS(RULE(ORIGIN("*") METHOD("GET&#13;")))), S3_INVALID_REQUEST);
}

TEST(cors, bad_rules_are_refused)
{
    CHECK_INT(read_code(""), S3_MALFORMED_XML);
    CHECK_INT(read_code(CORS("")), S3_MALFORMED_XML);
    CHECK_INT(read_code(CORS(RULE(ORIGIN("a")))), S3_MALFORMED_XML);
    CHECK_INT(read_code(CORS(RULE(METHOD("GET")))), S3_MALFORMED_XML);
    CHECK_INT(read_code(CORS(RULE(ORIGIN("a") METHOD("GET") "<X/>"))), S3_MALFORMED_XML);
    CHECK_INT(read_code(CORS(RULE(ORIGIN("a") METHOD("GET") "<MaxAgeSeconds>-1</MaxAgeSeconds>"))),
              S3_MALFORMED_XML);
    CHECK_INT(read_code(CORS(RULE(ORIGIN("a") METHOD("PATCH")))), S3_INVALID_REQUEST);
    CHECK_INT(read_code(CORS(RULE(ORIGIN("a") METHOD("get")))), S3_INVALID_REQUEST);
    CHECK_INT(read_code(CORS(RULE(ORIGIN("*a*") METHOD("GET")))), S3_INVALID_REQUEST);
    CHECK_INT(read_code(CORS(RULE(ORIGIN("a") METHOD("GET") HEADER("**")))), S3_INVALID_REQUEST);
    CHECK_INT(read_code(CORS(RULE(ORIGIN("a") METHOD("GET") "<ExposeHeader>x-*</ExposeHeader>"))),
              S3_INVALID_REQUEST);
}

TEST(cors, a_configuration_has_100_rules_at_most)
{
    struct buf xml = {0};

    buf_append_z(&xml, "<CORSConfiguration>");
    for (int i = 0; i < CORS_MAX_RULES; i++)
        buf_append_z(&xml, RULE(ORIGIN("a") METHOD("GET")));
    buf_append_z(&xml, "</CORSConfiguration>");
    CHECK_INT(read_code(xml.p), 0);
    xml.len -= strlen("</CORSConfiguration>");
    buf_append_z(&xml, RULE(ORIGIN("a") METHOD("GET")) "</CORSConfiguration>");
    CHECK_INT(read_code(xml.p), S3_MALFORMED_XML);
    buf_release(&xml);
}
