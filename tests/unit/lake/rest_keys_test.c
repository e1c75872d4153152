/* What the REST API signs: tokens of callers, and addresses that clients upload to. */
#include "lake/rest/web.h"
#include "sign/base64.h"
#include "unit/test.h"

#define NOW INT64_C(1800000000000) /* ms since 1970 */

static struct lake_web web_with_key(const char *key)
{
    struct lake_web w = {0};

    hmac_key_init(&w.token_key, str_z(key));
    hmac_key_init(&w.link_key, str_z(key));
    return w;
}

/* --- tokens --- */

static const struct user alice = {.id = {"u-1", 3}, .name = {"alice", 5}};
static const struct user_key alices = {{"AK", 2}, {"secret", 6}};

TEST(lake_rest_token, a_token_names_its_user_until_it_ends)
{
    struct lake_web w = web_with_key("k"), other = web_with_key("l");
    struct arena a = ARENA_INIT(0);
    struct str token = web_token(&w, &a, &alice, &alices, NOW), user;

    CHECK_INT(web_token_user(&w, &a, token, &alices, NOW - MS_PER_S, &user), 0);
    CHECK_STR(user, STR("u-1"));
    CHECK_ERR(web_token_user(&w, &a, token, &alices, NOW, &user), ERR_DENIED);
    CHECK_ERR(web_token_user(&w, &a, token, &alices, NOW + WEB_TOKEN_MS, &user), ERR_DENIED);
    CHECK_ERR(web_token_user(&other, &a, token, &alices, NOW - MS_PER_S, &user), ERR_DENIED);
    arena_release(&a);
}

TEST(lake_rest_token, a_token_ends_with_its_key)
{
    static const struct user_key others[] = {{{"AK", 2}, {"secreT", 6}},
                                             {{"BK", 2}, {"secret", 6}}};
    struct lake_web w = web_with_key("k");
    struct arena a = ARENA_INIT(0);
    struct str token = web_token(&w, &a, &alice, &alices, NOW), found;

    CHECK_INT(web_token_access(&a, token, &found), 0);
    CHECK_STR(found, alices.access);
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        CHECK_ERR(web_token_user(&w, &a, token, &others[i], 0, &found), ERR_DENIED);
    arena_release(&a);
}

TEST(lake_rest_token, the_access_key_of_a_malformed_token_is_not_found)
{
    static const char *const texts[] = {"", ".", "..", "a.b.c", "W10.e30.x", "e30.e30.x"};
    struct arena a = ARENA_INIT(0);
    struct str found;

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        CHECK_ERR(web_token_access(&a, str_z(texts[i]), &found), ERR_DENIED);
    arena_release(&a);
}

TEST(lake_rest_token, a_token_with_any_byte_changed_is_refused)
{
    struct lake_web w = web_with_key("k");
    struct arena a = ARENA_INIT(0);
    struct str token = web_token(&w, &a, &alice, &alices, NOW), user;
    char *text = arena_z(&a, token);

    for (size_t i = 0; i < token.len; i++) {
        char before = text[i];
        text[i] = before == 'A' ? 'B' : 'A';
        CHECK_ERR(web_token_user(&w, &a, str_n(text, token.len), &alices, 0, &user), ERR_DENIED);
        text[i] = before;
    }
    for (size_t len = 0; len < token.len; len++)
        CHECK_ERR(web_token_user(&w, &a, str_head(token, len), &alices, 0, &user), ERR_DENIED);
    CHECK_INT(web_token_user(&w, &a, token, &alices, 0, &user), 0);
    arena_release(&a);
}

/* Signs header and claims with the right key, whatever they say. */
static struct str signed_token(struct arena *a, const char *header, const char *claims)
{
    struct buf text = {0};
    unsigned char own[HMAC_SHA256_LEN], mac[HMAC_SHA256_LEN];

    hmac_sha256(STR("k"), STR("AK\0secret"), own);
    base64url_encode(&text, str_z(header));
    buf_append_char(&text, '.');
    base64url_encode(&text, str_z(claims));
    hmac_sha256(str_n(own, sizeof(own)), buf_str(&text), mac);
    buf_append_char(&text, '.');
    base64url_encode(&text, str_n(mac, sizeof(mac)));
    struct str token = arena_str(a, buf_str(&text));
    buf_release(&text);
    return token;
}

TEST(lake_rest_token, the_claims_of_a_token_are_checked)
{
    static const struct {
        const char *header, *claims;
        int code;
    } cases[] = {
        {"{\"alg\":\"HS256\",\"kid\":\"AK\"}",
         "{\"iss\":\"auth\",\"aud\":\"login\",\"uid\":\"u\",\"exp\":2000000000}", 0},
        {"{\"alg\":\"none\",\"kid\":\"AK\"}",
         "{\"iss\":\"auth\",\"aud\":\"login\",\"uid\":\"u\",\"exp\":2000000000}", ERR_DENIED},
        {"{\"alg\":\"HS256\",\"kid\":\"AK\"}",
         "{\"iss\":\"other\",\"aud\":\"login\",\"uid\":\"u\",\"exp\":2000000000}", ERR_DENIED},
        {"{\"alg\":\"HS256\",\"kid\":\"AK\"}",
         "{\"iss\":\"auth\",\"aud\":\"reset\",\"uid\":\"u\",\"exp\":2000000000}", ERR_DENIED},
        {"{\"alg\":\"HS256\",\"kid\":\"AK\"}", "{\"iss\":\"auth\",\"aud\":\"login\",\"uid\":\"u\"}",
         ERR_DENIED},
        {"{\"alg\":\"HS256\",\"kid\":\"AK\"}",
         "{\"iss\":\"auth\",\"aud\":\"login\",\"exp\":2000000000}", ERR_DENIED},
        {"{\"alg\":\"HS256\",\"kid\":\"AK\"}", "[]", ERR_DENIED},
        {"{\"alg\":\"HS256\"}",
         "{\"iss\":\"auth\",\"aud\":\"login\",\"uid\":\"u\",\"exp\":2000000000}", ERR_DENIED},
        {"", "{}", ERR_DENIED},
    };
    struct lake_web w = web_with_key("k");
    struct arena a = ARENA_INIT(0);

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct str user, token = signed_token(&a, cases[i].header, cases[i].claims);
        CHECK_INT(web_token_user(&w, &a, token, &alices, NOW, &user), cases[i].code);
    }
    arena_release(&a);
}

/* --- addresses --- */

TEST(lake_rest_link, an_address_is_good_for_its_repository_branch_path_and_day)
{
    struct lake_repo repo = {.partition = STR("repo-1")}, again = {.partition = STR("repo-2")};
    struct web_link link = {&repo, STR("main"), STR("a/b"), STR("data/x/y")};
    struct web_link others[] = {
        {&again, STR("main"), STR("a/b"), STR_EMPTY},
        {&repo, STR("dev"), STR("a/b"), STR_EMPTY},
        {&repo, STR("main"), STR("a/c"), STR_EMPTY},
        {&repo, STR("maina"), STR("/b"), STR_EMPTY},
    };
    struct lake_web w = web_with_key("k"), other = web_with_key("l");
    struct arena a = ARENA_INIT(0);
    struct err err = {0};
    struct str key = web_link_sign(&w, &a, &link, NOW);

    CHECK(str_starts(key, STR("data/x/y,")));
    CHECK_OK(web_link_check(&w, &link, key, NOW, &err));
    CHECK_OK(web_link_check(&w, &link, key, NOW + WEB_LINK_MS, &err));
    CHECK_ERR(web_link_check(&w, &link, key, NOW + WEB_LINK_MS + 1, &err), ERR_INVALID);
    CHECK(str_find(str_z(err.text), STR("link address expired")) >= 0);
    CHECK_ERR(web_link_check(&other, &link, key, NOW, &err), ERR_INVALID);
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        CHECK_ERR(web_link_check(&w, &others[i], key, NOW, &err), ERR_INVALID);
    arena_release(&a);
}

TEST(lake_rest_link, an_address_with_any_byte_changed_is_refused)
{
    struct lake_repo repo = {.partition = STR("repo-1")};
    struct web_link link = {&repo, STR("main"), STR("a"), STR("data/x/y,z")};
    struct lake_web w = web_with_key("k");
    struct arena a = ARENA_INIT(0);
    struct err err = {0};
    struct str key = web_link_sign(&w, &a, &link, NOW);
    char *text = arena_z(&a, key);

    CHECK_OK(web_link_check(&w, &link, key, NOW, &err));
    for (size_t i = 0; i < key.len; i++) {
        char before = text[i];
        text[i] = before == 'A' ? 'B' : 'A';
        CHECK_ERR(web_link_check(&w, &link, str_n(text, key.len), NOW, &err), ERR_INVALID);
        text[i] = before;
        CHECK_ERR(web_link_check(&w, &link, str_head(key, i), NOW, &err), ERR_INVALID);
    }
    arena_release(&a);
}
