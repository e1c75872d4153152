/* Link headers, origins, and URLs that are made of others. */
#include "archive/link.h"
#include "unit/test.h"

static struct str next_of(const char *value)
{
    struct str url = STR_EMPTY;

    return link_next(str_z(value), &url) == 0 ? url : STR("malformed");
}

TEST(archive_link, paging_link_header)
{
    CHECK_STR(next_of("<https://a/x?page=2>; rel=\"next\", <https://a/x?page=9>; rel=\"last\""),
              STR("https://a/x?page=2"));
    CHECK_STR(next_of("<https://a/1>; rel=prev,<https://a/3>;title=\"x, y\"; rel=\"foo Next\""),
              STR("https://a/3"));
    CHECK_STR(next_of("<https://a/1>; rel=\"prev\""), STR(""));
    CHECK_STR(next_of(""), STR(""));
    CHECK_STR(next_of("<https://a/1>; rel"), STR(""));
    CHECK_STR(next_of("https://a/1; rel=next"), STR("malformed"));
    CHECK_STR(next_of("<https://a/1; rel=next"), STR("malformed"));
    CHECK_STR(next_of("<https://a/1>; rel=\"next"), STR("malformed"));
    CHECK_STR(next_of("<https://a/1> x"), STR("malformed"));
}

TEST(archive_link, origins_are_scheme_host_and_port)
{
    CHECK(link_same_origin(STR("https://a.example/x"), STR("HTTPS://A.example:443/y?z")));
    CHECK(link_same_origin(STR("http://[::1]:80/x"), STR("http://[::1]/")));
    CHECK(!link_same_origin(STR("https://a/"), STR("http://a/")));
    CHECK(!link_same_origin(STR("https://a/"), STR("https://a.b/")));
    CHECK(!link_same_origin(STR("https://a/"), STR("https://a:444/")));
    CHECK(!link_same_origin(STR("https://a/"), STR("https://a@b/")));
    CHECK(!link_same_origin(STR("https://a/"), STR("https://b@a/")));
    CHECK(!link_same_origin(STR("https://a/"), STR("https://a\\@b/")));
    CHECK(!link_same_origin(STR("https://a/"), STR("//a/")));
    CHECK(!link_same_origin(STR("ftp://a/"), STR("ftp://a/")));
}

static const char *after(struct buf *b, const char *url)
{
    buf_reset(b);
    return link_page_after(b, str_z(url)) == 0 ? b->p : "malformed";
}

TEST(archive_link, the_page_behind_a_page)
{
    struct buf b = {0};

    CHECK_STR(str_z(after(&b, "https://a/x")), STR("https://a/x?page=2"));
    CHECK_STR(str_z(after(&b, "https://a/x?s=1")), STR("https://a/x?s=1&page=2"));
    CHECK_STR(str_z(after(&b, "https://a/x?page=9&s=1")), STR("https://a/x?s=1&page=10"));
    CHECK_STR(str_z(after(&b, "https://a/x?page=z")), STR("malformed"));
    buf_release(&b);
}

static const char *redirect(struct buf *b, const char *base, const char *location)
{
    buf_reset(b);
    return link_redirect(b, str_z(base), str_z(location)) == 0 ? b->p : "malformed";
}

TEST(archive_link, redirects_are_absolute)
{
    struct buf b = {0};

    CHECK_STR(str_z(redirect(&b, "https://a:1/x?y", "/z?q")), STR("https://a:1/z?q"));
    CHECK_STR(str_z(redirect(&b, "https://a?y", "/z")), STR("https://a/z"));
    CHECK_STR(str_z(redirect(&b, "https://a/", "http://b/c")), STR("http://b/c"));
    CHECK_STR(str_z(redirect(&b, "https://a/", "//b/c")), STR("malformed"));
    CHECK_STR(str_z(redirect(&b, "https://a/", "c")), STR("malformed"));
    CHECK_STR(str_z(redirect(&b, "https://a/", "")), STR("malformed"));
    CHECK_STR(str_z(redirect(&b, "https://a/", "file:///etc/passwd")), STR("malformed"));
    buf_release(&b);
}
