/* website: the document, which key a path reads, where a redirect leads. */
#include "s3/documents/website.h"
#include "unit/test.h"

#define SITE(inside)  "<WebsiteConfiguration>" inside "</WebsiteConfiguration>"
#define INDEX         "<IndexDocument><Suffix>index.html</Suffix></IndexDocument>"
#define RULES(inside) INDEX "<RoutingRules>" inside "</RoutingRules>"
#define RULE(condition, redirect)                                                                  \
    "<RoutingRule>" condition "<Redirect>" redirect "</Redirect></RoutingRule>"
#define WHEN(inside) "<Condition>" inside "</Condition>"

static int read_code(const char *xml)
{
    struct arena a = {0};
    struct err err = {0};
    struct website site;
    int code = website_read(&site, &a, str_z(xml), &err);

    CHECK((code < 0) == (err.text[0] != '\0'));
    arena_release(&a);
    return code;
}

TEST(website, folders_read_their_index)
{
    struct arena a = {0};
    struct err err = {0};
    struct website site;

    CHECK_OK(website_read(&site, &a, STR(SITE(INDEX)), &err));
    CHECK_STR(website_key(&site, &a, STR("")), STR("index.html"));
    CHECK_STR(website_key(&site, &a, STR("a/")), STR("a/index.html"));
    CHECK_STR(website_key(&site, &a, STR("a/b")), STR("a/b"));
    arena_release(&a);
}

TEST(website, the_first_rule_for_key_and_status_redirects)
{
    const char *xml = SITE(
        RULES(RULE(WHEN("<KeyPrefixEquals>docs/</KeyPrefixEquals>"),
                   "<ReplaceKeyPrefixWith>documents/</ReplaceKeyPrefixWith>")
                  RULE(WHEN("<HttpErrorCodeReturnedEquals>404</HttpErrorCodeReturnedEquals>"),
                       "<HostName>other</HostName><Protocol>https</Protocol><ReplaceKeyWith>e r"
                       "</ReplaceKeyWith><HttpRedirectCode>302</HttpRedirectCode>")));
    struct arena a = {0};
    struct err err = {0};
    struct website site;
    struct buf out = {0};
    const struct website_rule *rule;

    CHECK_OK(website_read(&site, &a, str_z(xml), &err));
    CHECK(website_rule(&site, STR("x"), 0) == NULL);
    CHECK(website_rule(&site, STR("x"), 403) == NULL);
    rule = website_rule(&site, STR("docs/a"), 0);
    website_location(&out, &rule->redirect, rule->key_prefix, STR("docs/a b"), STR("http"),
                     STR("here"));
    CHECK_STR(buf_str(&out), STR("http://here/documents/a%20b"));
    buf_reset(&out);
    rule = website_rule(&site, STR("x"), 404);
    CHECK_INT(rule->redirect.status, 302);
    website_location(&out, &rule->redirect, rule->key_prefix, STR("x"), STR("http"), STR("here"));
    CHECK_STR(buf_str(&out), STR("https://other/e%20r"));
    buf_release(&out);
    arena_release(&a);
}

TEST(website, a_configuration_reads_back_as_written)
{
    static const char *const good[] = {
        SITE("<RedirectAllRequestsTo><HostName>h</HostName><Protocol>https</Protocol>"
             "</RedirectAllRequestsTo>"),
        SITE(INDEX "<ErrorDocument><Key>err</Key></ErrorDocument>"),
        SITE(RULES(RULE(WHEN("<KeyPrefixEquals>a</KeyPrefixEquals>"),
                        "<ReplaceKeyPrefixWith/><HttpRedirectCode>307</HttpRedirectCode>")
                       RULE("", "<HostName>h</HostName>"))),
    };
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        struct arena a = {0};
        struct err err = {0};
        struct buf first = {0}, second = {0};
        struct website site;
        CHECK_OK(website_read(&site, &a, str_z(good[i]), &err));
        website_write(&first, &site);
        CHECK_OK(website_read(&site, &a, buf_str(&first), &err));
        website_write(&second, &site);
        CHECK_STR(buf_str(&first), buf_str(&second));
        buf_release(&first);
        buf_release(&second);
        arena_release(&a);
    }
}

TEST(website, bad_configurations_are_refused)
{
    CHECK_INT(read_code(""), S3_MALFORMED_XML);
    CHECK_INT(read_code(SITE("")), S3_INVALID_ARGUMENT);
    CHECK_INT(read_code(SITE("<IndexDocument><Suffix>a/b</Suffix></IndexDocument>")),
              S3_INVALID_ARGUMENT);
    CHECK_INT(read_code(SITE("<IndexDocument/>")), S3_MALFORMED_XML);
    CHECK_INT(read_code(SITE(INDEX "<RedirectAllRequestsTo><HostName>h</HostName>"
                                   "</RedirectAllRequestsTo>")),
              S3_INVALID_ARGUMENT);
    CHECK_INT(read_code(SITE(RULES(RULE("", "")))), S3_MALFORMED_XML);
    CHECK_INT(read_code(SITE(RULES(RULE("", "<Protocol>ftp</Protocol>")))), S3_INVALID_REQUEST);
    CHECK_INT(read_code(SITE(RULES(RULE("", "<HttpRedirectCode>200</HttpRedirectCode>")))),
              S3_INVALID_REQUEST);
    CHECK_INT(read_code(SITE(RULES(RULE("", "<ReplaceKeyWith>a</ReplaceKeyWith>"
                                            "<ReplaceKeyPrefixWith>b</ReplaceKeyPrefixWith>")))),
              S3_INVALID_REQUEST);
}
