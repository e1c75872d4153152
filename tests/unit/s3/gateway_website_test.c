/* Websites over the wire: what each step of docs/website.md answers. */
#include "unit/s3/gateway_lab.h"

#include <stdio.h>

#define SITE "host: box.web.test"
#define NONE STR_EMPTY

static void put_xml(struct gate *g, const char *request, const char *xml, int status)
{
    gate_ask(g, ALICE, request, NULL, str_z(xml), status);
}

static void page(struct gate *g, const char *key, const char *text)
{
    char request[256];

    snprintf(request, sizeof(request), "PUT /box/%s", key);
    gate_ask(g, ALICE, request, "content-type: text/html", str_z(text), 200);
}

static void configure(struct gate *g, const char *rest)
{
    struct buf xml = BUF_INIT(0);

    buf_appendf(&xml,
                "<WebsiteConfiguration><IndexDocument><Suffix>index.html</Suffix>"
                "</IndexDocument>%s</WebsiteConfiguration>",
                rest);
    put_xml(g, "PUT /box?website", xml.p, 200);
    buf_release(&xml);
}

static void open_to_all(struct gate *g)
{
    gate_ask(g, ALICE, "PUT /box?policy", NULL,
             STR("{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\","
                 "\"Principal\":\"*\",\"Action\":\"s3:GetObject\","
                 "\"Resource\":\"arn:aws:s3:::box/*\"}]}"),
             204);
}

static void read_site(struct gate *g, const char *request, int status)
{
    gate_ask(g, NOBODY, request, SITE, NONE, status);
}

static void expect_location(struct gate *g, const char *want)
{
    CHECK_STR(gate_header(g, "location"), str_z(want));
}

/* A bucket "box" that everybody may read, with a few pages. */
#define SITE_TEST(name)                                                                            \
    static void run_##name(struct gate *g);                                                        \
    TEST(website_reads, name)                                                                      \
    {                                                                                              \
        struct gate g;                                                                             \
        gate_start(&g);                                                                            \
        gate_do(&g, "PUT /box", 200);                                                              \
        open_to_all(&g);                                                                           \
        page(&g, "index.html", "<p>home</p>");                                                     \
        page(&g, "docs/index.html", "<p>docs</p>");                                                \
        page(&g, "a%20page", "<p>page</p>");                                                       \
        run_##name(&g);                                                                            \
        gate_stop(&g);                                                                             \
    }                                                                                              \
    static void run_##name(struct gate *g)

SITE_TEST(the_configuration_is_kept_and_removed)
{
    gate_do(g, "GET /box?website", 404);
    GATE_ERROR(g, "NoSuchWebsiteConfiguration");
    read_site(g, "GET /", 404);
    CHECK(gate_has(g, "<li>Code: NoSuchWebsiteConfiguration</li>"));
    configure(g, "<ErrorDocument><Key>e.html</Key></ErrorDocument>");
    gate_do(g, "GET /box?website", 200);
    CHECK(gate_has(g, "<Suffix>index.html</Suffix>") && gate_has(g, "<Key>e.html</Key>"));
    put_xml(g, "PUT /box?website", "<WebsiteConfiguration/>", 400);
    gate_ask(g, BOB, "PUT /box?website", NULL, STR("<WebsiteConfiguration/>"), 403);
    gate_do(g, "DELETE /box?website", 204);
    read_site(g, "GET /", 404);
}

SITE_TEST(folders_have_an_index)
{
    configure(g, "");
    read_site(g, "GET /", 200);
    CHECK_STR(g->body, STR("<p>home</p>"));
    CHECK_STR(gate_header(g, "content-type"), STR("text/html"));
    read_site(g, "GET /docs/?versionId=x&response-content-type=a%zz", 200);
    CHECK_STR(g->body, STR("<p>docs</p>"));
    read_site(g, "GET /docs", 302);
    expect_location(g, "/docs/");
    read_site(g, "GET /a%20page", 200);
    read_site(g, "HEAD /a%20page", 200);
    CHECK_STR(gate_header(g, "content-length"), STR("11"));
    gate_ask(g, NOBODY, "GET /", "host: BOX.Web.Test:8080", NONE, 200);
    gate_ask(g, NOBODY, "GET /", "host: box.WEB.test:8080", NONE, 200);
}

SITE_TEST(ranges_and_conditions_are_those_of_the_object)
{
    configure(g, "<ErrorDocument><Key>a page</Key></ErrorDocument>");
    gate_ask(g, NOBODY, "GET /", SITE "\nrange: bytes=3-6", NONE, 206);
    CHECK_STR(g->body, STR("home"));
    struct str etag = gate_header(g, "etag");
    char header[256];
    snprintf(header, sizeof(header), SITE "\nif-none-match: " STR_FMT, STR_ARG(etag));
    gate_ask(g, NOBODY, "GET /", header, NONE, 304);
    gate_ask(g, NOBODY, "GET /nothing", SITE "\nrange: bytes=0-1\nif-none-match: *", NONE, 403);
    CHECK_STR(g->body, STR("<p>page</p>")); /* whole */
}

SITE_TEST(what_is_not_there_is_told_to_who_may_list)
{
    configure(g, "");
    read_site(g, "GET /nothing", 403);
    CHECK(gate_has(g, "<li>Code: AccessDenied</li>") && gate_has(g, "<li>Key: nothing</li>"));
    CHECK_STR(gate_header(g, "content-type"), STR("text/html; charset=utf-8"));
    CHECK_STR(gate_header(g, "x-amz-error-code"), STR("AccessDenied"));
    gate_ask(g, ALICE, "PUT /box?acl", "x-amz-acl: public-read", NONE, 200);
    read_site(g, "GET /none%3Cb%3E/", 404);
    CHECK(gate_has(g, "<li>Key: none&lt;b&gt;/index.html</li>"));
    read_site(g, "HEAD /nothing", 404);
    gate_ask(g, NOBODY, "GET /", "host: other.web.test", NONE, 404);
    CHECK(gate_has(g, "<li>Code: NoSuchBucket</li>") && gate_has(g, "BucketName: other"));
    read_site(g, "PUT /x", 405);
    CHECK_STR(gate_header(g, "allow"), STR("GET, HEAD"));
    CHECK(gate_has(g, "MethodNotAllowed"));
}

SITE_TEST(a_private_page_and_a_marker_are_not_shown)
{
    configure(g, "");
    gate_ask(g, ALICE, "PUT /box?versioning", NULL,
             STR("<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"),
             200);
    gate_ask(g, ALICE, "PUT /box?acl", "x-amz-acl: public-read", NONE, 200);
    gate_do(g, "DELETE /box/docs/index.html", 204);
    read_site(g, "GET /docs/", 404);
    read_site(g, "GET /docs", 404);
    gate_do(g, "DELETE /box?policy", 204);
    read_site(g, "GET /", 403);
    gate_ask(g, ALICE, "GET /index.html", SITE, NONE, 403); /* a signature counts for nothing */
    gate_ask(g, ALICE, "PUT /box/index.html?acl", "x-amz-acl: public-read", NONE, 200);
    read_site(g, "GET /", 200);
    put_xml(g, "PUT /box?publicAccessBlock",
            "<PublicAccessBlockConfiguration><IgnorePublicAcls>true</IgnorePublicAcls>"
            "</PublicAccessBlockConfiguration>",
            200);
    read_site(g, "GET /", 403);
}

SITE_TEST(the_error_document_comes_with_the_error_s_status)
{
    page(g, "error.html", "<p>oh</p>");
    configure(g, "<ErrorDocument><Key>error.html</Key></ErrorDocument>");
    gate_ask(g, ALICE, "PUT /box?acl", "x-amz-acl: public-read", NONE, 200);
    read_site(g, "GET /nothing", 404);
    CHECK_STR(g->body, STR("<p>oh</p>"));
    CHECK_STR(gate_header(g, "content-type"), STR("text/html"));
    read_site(g, "HEAD /nothing", 404);
    CHECK_STR(gate_header(g, "content-length"), STR("9"));
    gate_do(g, "DELETE /box/error.html", 204);
    read_site(g, "GET /nothing", 404);
    CHECK(gate_has(g, "<li>Code: NoSuchKey</li>") && gate_has(g, "<li>Key: nothing</li>"));
}

SITE_TEST(rules_redirect_before_and_after_the_look)
{
    gate_ask(g, ALICE, "PUT /box?acl", "x-amz-acl: public-read", NONE, 200);
    configure(g, "<RoutingRules>"
                 "<RoutingRule><Condition><KeyPrefixEquals>old/</KeyPrefixEquals></Condition>"
                 "<Redirect><ReplaceKeyPrefixWith>new/</ReplaceKeyPrefixWith></Redirect>"
                 "</RoutingRule>"
                 "<RoutingRule><Condition><KeyPrefixEquals>docs/</KeyPrefixEquals>"
                 "<HttpErrorCodeReturnedEquals>404</HttpErrorCodeReturnedEquals></Condition>"
                 "<Redirect><Protocol>https</Protocol><HostName>other.test</HostName>"
                 "<ReplaceKeyWith>lost.html</ReplaceKeyWith>"
                 "<HttpRedirectCode>307</HttpRedirectCode></Redirect></RoutingRule>"
                 "</RoutingRules>");
    read_site(g, "GET /old/a%20b", 301);
    expect_location(g, "http://box.web.test/new/a%20b");
    read_site(g, "GET /docs/", 200);
    read_site(g, "GET /docs/none", 307);
    expect_location(g, "https://other.test/lost.html");
    read_site(g, "GET /none", 404);
}

SITE_TEST(all_requests_and_single_objects_can_be_sent_elsewhere)
{
    configure(g, "");
    gate_ask(g, ALICE, "PUT /box/moved", "x-amz-website-redirect-location: /docs/", NONE, 200);
    read_site(g, "GET /moved", 301);
    expect_location(g, "/docs/");
    gate_do(g, "GET /box/moved", 200); /* not by the S3 name */
    put_xml(g, "PUT /box?website",
            "<WebsiteConfiguration><RedirectAllRequestsTo><HostName>new.test</HostName>"
            "<Protocol>https</Protocol></RedirectAllRequestsTo></WebsiteConfiguration>",
            200);
    read_site(g, "HEAD /docs/x", 301);
    expect_location(g, "https://new.test/docs/x");
}

SITE_TEST(a_large_page_is_sent_from_its_file)
{
    static char bytes[200000];

    configure(g, "");
    memset(bytes, 'x', sizeof(bytes));
    gate_ask(g, ALICE, "PUT /box/large", NULL, str_n(bytes, sizeof(bytes)), 200);
    read_site(g, "GET /large", 200);
    CHECK_INT(g->body.len, sizeof(bytes));
}
