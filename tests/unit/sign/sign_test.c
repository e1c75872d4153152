/* Signatures: the examples that AWS publishes, and the corners of the canonical form. */
#include "base/clock.h"
#include "os/thread.h"
#include "sign/base64.h"
#include "sign/sign.h"
#include "unit/test.h"

#include <stdio.h>

#define ACCESS STR("AKIAIOSFODNN7EXAMPLE")
#define SECRET STR("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
#define TIME   STR("20130524T000000Z")
#define HOST   STR("examplebucket.s3.amazonaws.com")

static const struct sign_scope scope = {STR("20130524"), STR("us-east-1"), STR("s3")};

static void check_v4(const struct sign_request *r, struct str names, struct str want)
{
    struct buf canonical = BUF_INIT(0), text = BUF_INIT(0);
    struct sign_key key;
    char got[SIGN_HEX_LEN];

    CHECK_INT(sign_canonical(&canonical, r, names), 0);
    sign_string(&text, TIME, &scope, buf_str(&canonical));
    sign_derive(&key, SECRET, &scope);
    sign_hex(got, &key, buf_str(&text));
    CHECK_STR(str_n(got, sizeof(got)), want);
    buf_release(&canonical);
    buf_release(&text);
}

TEST(sign, the_published_get_object_example)
{
    const struct http_header headers[] = {
        {STR("Host"), HOST},
        {STR("Range"), STR("bytes=0-9")},
        {STR("x-amz-content-sha256"), STR(SIGN_EMPTY_SHA256)},
        {STR("x-amz-date"), TIME},
    };
    struct sign_request r = {STR("GET"), STR("/test.txt"),    STR_EMPTY,
                             headers,    ARRAY_SIZE(headers), STR(SIGN_EMPTY_SHA256)};

    check_v4(&r, STR("host;range;x-amz-content-sha256;x-amz-date"),
             STR("f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"));
}

TEST(sign, the_published_put_object_example)
{
    struct str hash = STR("44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072");
    const struct http_header headers[] = {
        {STR("Date"), STR("Fri, 24 May 2013 00:00:00 GMT")},
        {STR("Host"), HOST},
        {STR("x-amz-content-sha256"), hash},
        {STR("x-amz-date"), TIME},
        {STR("x-amz-storage-class"), STR("REDUCED_REDUNDANCY")},
    };
    /* '$' unescaped on the wire is signed escaped. */
    struct str paths[] = {STR("/test%24file.text"), STR("/test$file.text")};

    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        struct sign_request r = {STR("PUT"),          paths[i], STR_EMPTY, headers,
                                 ARRAY_SIZE(headers), hash};
        check_v4(&r, STR("date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class"),
                 STR("98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"));
    }
}

TEST(sign, the_published_lifecycle_and_list_examples_by_our_own_signer)
{
    static const struct {
        struct str query, signature;
    } examples[] = {
        {STR("lifecycle"), STR("fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543")},
        {STR("prefix=J&max-keys=2"),
         STR("34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")},
    };
    struct sign_keys *keys = sign_keys_new();
    struct sign_credentials c = {ACCESS, SECRET, STR("us-east-1"), STR("s3"), keys};
    const struct http_header headers[] = {{STR("Host"), HOST}, {STR("Accept"), STR("*/*")}};
    struct arena a = ARENA_INIT(0);
    int64_t now;

    CHECK_INT(clock_parse_basic(TIME, &now), 0);
    for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
        struct sign_request r = {STR("GET"), STR("/"), examples[i].query,
                                 headers,    2,        STR(SIGN_EMPTY_SHA256)};
        struct signed_headers out;
        CHECK_INT(sign_headers(&out, &a, &r, &c, now), 0);
        CHECK_STR(out.date, TIME);
        CHECK_STR(out.content_sha256, STR(SIGN_EMPTY_SHA256));
        CHECK(str_starts(out.authorization,
                         STR("AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/"
                             "s3/aws4_request, "
                             "SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=")));
        CHECK(str_ends(out.authorization, examples[i].signature));
    }
    sign_keys_free(keys);
    arena_release(&a);
}

TEST(sign, the_published_presigned_example)
{
    struct sign_credentials c = {ACCESS, SECRET, STR("us-east-1"), STR("s3"), NULL};
    const struct http_header headers[] = {{STR("Host"), HOST}};
    struct sign_request r = {STR("GET"), STR("/test.txt"),  STR_EMPTY, headers,
                             1,          STR(SIGN_UNSIGNED)};
    struct buf out = BUF_INIT(0);
    int64_t now;

    CHECK_INT(clock_parse_basic(TIME, &now), 0);
    CHECK_INT(sign_query(&out, &r, &c, now, 86400), 0);
    CHECK_STR(buf_str(&out),
              STR("X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F"
                  "20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&"
                  "X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature="
                  "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"));
    CHECK_INT(sign_query(&out, &r, &c, now, SIGN_EXPIRES_MAX_S + 1), ERR_RANGE);
    buf_release(&out);
}

static void check_canonical(struct str path, struct str query, struct str want_path,
                            struct str want_query)
{
    struct sign_request r = {STR("GET"), path, query, NULL, 0, STR("H")};
    struct buf got = BUF_INIT(0), want = BUF_INIT(0);

    CHECK_INT(sign_canonical(&got, &r, STR_EMPTY), 0);
    buf_appendf(&want, "GET\n" STR_FMT "\n" STR_FMT "\n\n\nH", STR_ARG(want_path),
                STR_ARG(want_query));
    CHECK_STR(buf_str(&got), buf_str(&want));
    buf_release(&got);
    buf_release(&want);
}

TEST(sign, a_path_is_encoded_once_and_not_normalised)
{
    check_canonical(STR(""), STR(""), STR("/"), STR(""));
    check_canonical(STR("/a//b/../c/."), STR(""), STR("/a//b/../c/."), STR(""));
    check_canonical(STR("/a%2fb+c%7e%2520"), STR(""), STR("/a/b%2Bc~%2520"), STR(""));
    check_canonical(STR("/(!*')"), STR(""), STR("/%28%21%2A%27%29"), STR(""));
    check_canonical(STR("/%C3%BC\xC3\xBC"), STR(""), STR("/%C3%BC%C3%BC"), STR(""));
}

TEST(sign, a_query_is_sorted_by_encoded_name_and_value)
{
    check_canonical(STR("/"), STR("b=2&a=2&a=1&a"), STR("/"), STR("a=&a=1&a=2&b=2"));
    check_canonical(STR("/"), STR("a-b=1&a=1&aa=1&A=1"), STR("/"), STR("A=1&a=1&a-b=1&aa=1"));
    check_canonical(STR("/"), STR("x=a+b&x=a%20c&&y=1=2"), STR("/"),
                    STR("x=a%20b&x=a%20c&y=1%3D2"));
    check_canonical(STR("/"), STR("acl&X-Amz-Signature=0123&z"), STR("/"), STR("acl=&z="));
}

TEST(sign, malformed_escapes_are_refused)
{
    struct str bad[] = {STR("/%"), STR("/%4"), STR("/%zz")};
    struct buf b = BUF_INIT(0);

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct sign_request r = {STR("GET"), bad[i], STR_EMPTY, NULL, 0, STR("H")};
        CHECK_ERR(sign_canonical(&b, &r, STR_EMPTY), ERR_PARSE);
        r.path = STR("/");
        r.query = str_skip(bad[i], 1);
        CHECK_ERR(sign_canonical(&b, &r, STR_EMPTY), ERR_PARSE);
    }
    buf_release(&b);
}

TEST(sign, headers_are_trimmed_collapsed_and_joined)
{
    const struct http_header headers[] = {
        {STR("X-Amz-Meta-A"), STR("  one   two\t three ")},
        {STR("host"), STR("h")},
        {STR("x-amz-meta-a"), STR("four")},
    };
    struct sign_request r = {STR("PUT"), STR("/"), STR_EMPTY, headers, 3, STR("H")};
    struct buf b = BUF_INIT(0);

    CHECK_INT(sign_canonical(&b, &r, STR("host;missing;x-amz-meta-a")), 0);
    CHECK_STR(buf_str(&b), STR("PUT\n/\n\nhost:h\nmissing:\nx-amz-meta-a:one two three,four\n\n"
                               "host;missing;x-amz-meta-a\nH"));
    buf_release(&b);
}

TEST(sign, a_kept_key_is_the_derived_one_and_only_of_its_own_scope)
{
    struct sign_keys *keys = sign_keys_new();
    struct sign_scope other = scope;
    struct sign_key key, derived;

    other.region = STR("eu-west-1");
    CHECK(!sign_keys_get(keys, &key, SECRET, &scope));
    sign_keys_keep(keys, &key, SECRET, &scope);
    CHECK(sign_keys_get(keys, &key, SECRET, &scope));
    sign_derive(&derived, SECRET, &scope);
    CHECK(memcmp(&key, &derived, sizeof(key)) == 0);
    CHECK(!sign_keys_get(keys, &key, SECRET, &other));
    CHECK(!sign_keys_get(keys, &key, STR("another secret"), &scope));
    sign_keys_free(keys);
    sign_keys_free(NULL);
}

TEST(sign, a_key_of_a_secret_longer_than_any_is_derived_each_time)
{
    struct sign_keys *keys = sign_keys_new();
    struct sign_key key, derived;
    char secret[300];

    memset(secret, 's', sizeof(secret));
    for (size_t len = 200; len <= sizeof(secret); len++) {
        bool kept;
        CHECK(!sign_keys_get(keys, &key, str_n(secret, len), &scope));
        sign_keys_keep(keys, &key, str_n(secret, len), &scope);
        kept = sign_keys_get(keys, &key, str_n(secret, len), &scope);
        CHECK(kept == (len <= 256 - 4 - 8 - 9 - 2)); /* lengths, date, region, service */
        sign_derive(&derived, str_n(secret, len), &scope);
        CHECK(memcmp(&key, &derived, sizeof(key)) == 0);
    }
    sign_keys_free(keys);
}

static void use_keys(void *ctx)
{
    struct sign_keys *keys = ctx;

    for (unsigned i = 0; i < 300; i++) {
        char region[16];
        struct sign_scope own = scope;
        struct sign_key key, derived;
        own.region = str_n(region, (size_t)snprintf(region, sizeof(region), "r-%u", i % 50));
        if (!sign_keys_get(keys, &key, SECRET, &own))
            sign_keys_keep(keys, &key, SECRET, &own);
        sign_derive(&derived, SECRET, &own);
        CHECK(memcmp(&key, &derived, sizeof(key)) == 0);
    }
}

TEST(sign, threads_share_the_kept_keys)
{
    struct sign_keys *keys = sign_keys_new();
    struct thread threads[4] = {0};
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        CHECK_OK(thread_start(&threads[i], "keys", 0, use_keys, keys, &err));
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        thread_join(&threads[i]);
    sign_keys_free(keys);
}

static void check_v2(const struct sign_request *r, struct str date, struct str want)
{
    struct buf text = BUF_INIT(0), got = BUF_INIT(0);

    CHECK_INT(sign_v2_string(&text, r, date, STR("johnsmith")), 0);
    sign_v2(&got, SECRET, buf_str(&text));
    CHECK_STR(buf_str(&got), want);
    buf_release(&text);
    buf_release(&got);
}

TEST(sign, the_published_version_2_examples)
{
    const struct http_header type[] = {{STR("Content-Type"), STR("image/jpeg")}};
    struct sign_request get = {STR("GET"), STR("/photos/puppy.jpg")};
    struct sign_request put = {STR("PUT"), STR("/photos/puppy.jpg"), STR_EMPTY, type, 1};
    struct sign_request list = {STR("GET"), STR("/"),
                                STR("prefix=photos&max-keys=50&marker=puppy")};
    struct sign_request acl = {STR("GET"), STR("/"), STR("acl")};

    check_v2(&get, STR("Tue, 27 Mar 2007 19:36:42 +0000"), STR("bWq2s1WEIj+Ydj0vQ697zp+IXMU="));
    check_v2(&put, STR("Tue, 27 Mar 2007 21:15:45 +0000"), STR("MyyxeRY7whkBe+bq8fHCL/2kKUg="));
    check_v2(&list, STR("Tue, 27 Mar 2007 19:42:41 +0000"), STR("htDYFYduRNen8P9ZfE/s9SuKy0U="));
    check_v2(&acl, STR("Tue, 27 Mar 2007 19:44:46 +0000"), STR("c2WLPFtWHVgbEmeEG93a4cG37dM="));
}

TEST(sign, a_version_2_string_sorts_headers_and_sub_resources)
{
    const struct http_header headers[] = {
        {STR("X-Amz-Meta-B"), STR("2")},  {STR("x-amz-meta-a"), STR("1")},
        {STR("Content-MD5"), STR("md5")}, {STR("x-amz-meta-b"), STR("3")},
        {STR("x-amz-date"), STR("d")},
    };
    struct sign_request r = {
        STR("PUT"), STR("/b/k%20x"),
        STR("uploadId=u%2F1&partNumber=2&prefix=no&response-content-type=a%20b&acl"), headers,
        ARRAY_SIZE(headers)};
    struct buf b = BUF_INIT(0);

    CHECK_INT(sign_v2_string(&b, &r, STR_EMPTY, STR_EMPTY), 0);
    CHECK_STR(buf_str(&b), STR("PUT\nmd5\n\n\nx-amz-date:d\nx-amz-meta-a:1\nx-amz-meta-b:2,3\n"
                               "/b/k%20x?acl&partNumber=2&response-content-type=a b&uploadId=u/1"));
    buf_release(&b);
}

TEST(base64, the_form_for_urls_has_no_padding_and_its_own_alphabet)
{
    static const struct str bad[] = {STR("+w"), STR("_w=="), STR("_w="), STR("a"), STR("_x")};
    struct buf text = {0}, bytes = {0};

    base64url_encode(&text, STR("\xff"));
    CHECK_STR(buf_str(&text), STR("_w"));
    base64url_encode(&text, STR("\xfb\xff\xfe"));
    CHECK_STR(buf_str(&text), STR("_w-__-"));
    CHECK_INT(base64url_decode(&bytes, STR("-__-")), 0);
    CHECK_STR(buf_str(&bytes), STR("\xfb\xff\xfe"));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK_ERR(base64url_decode(&bytes, bad[i]), ERR_PARSE);
    buf_release(&text);
    buf_release(&bytes);
}

TEST(base64, what_is_encoded_decodes_and_nothing_else_does)
{
    static const struct str bad[] = {STR("Zg="),    STR("Zg"),   STR("Zh=="),     STR("Zm9="),
                                     STR("Z==="),   STR("===="), STR("Zg==Zg=="), STR("Zm 9v"),
                                     STR("Zm9v\n"), STR("Zm9-")};
    struct buf text = BUF_INIT(0), bytes = BUF_INIT(0);
    char exact[3];

    for (size_t len = 0; len <= 6; len++) {
        buf_reset(&text);
        buf_reset(&bytes);
        base64_encode(&text, str_head(STR("foobar"), len));
        CHECK_INT(base64_decode(&bytes, buf_str(&text)), 0);
        CHECK_STR(buf_str(&bytes), str_head(STR("foobar"), len));
    }
    CHECK_STR(buf_str(&text), STR("Zm9vYmFy"));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK_ERR(base64_decode(&bytes, bad[i]), ERR_PARSE);
    CHECK_INT(base64_decode_exact(exact, 3, STR("Zm9v")), 0);
    CHECK_ERR(base64_decode_exact(exact, 3, STR("Zm8=")), ERR_PARSE);
    CHECK_ERR(base64_decode_exact(exact, 3, STR("Zm9vYmFy")), ERR_PARSE);
    buf_release(&text);
    buf_release(&bytes);
}
