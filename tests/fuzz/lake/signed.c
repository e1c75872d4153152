/* What clients of the lake's REST API send back: tokens of callers, and signed addresses of
 * uploads. Whatever text comes, it is refused, unless it is one that was signed. */
#include "lake/rest/web.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct user_key key = {STR("AK"), STR("a secret that the fuzzer does not know")};
    struct str text = str_n(data, size), user, access = STR_EMPTY;
    struct lake_repo repo = {.partition = STR("repo-1")};
    struct web_link link = {&repo, STR("main"), STR("a"), STR_EMPTY};
    struct arena a = ARENA_INIT(64 * KIB);
    struct lake_web w = {0};
    struct err err = {0};

    hmac_key_init(&w.token_key, STR("a key that the fuzzer does not know"));
    hmac_key_init(&w.link_key, STR("another key of that kind"));
    BUG_ON(web_token_access(&a, text, &access) == 0 && !access.len);
    BUG_ON(web_token_user(&w, &a, text, &key, 0, &user) != ERR_DENIED);
    BUG_ON(web_link_check(&w, &link, text, 0, &err) != ERR_INVALID);
    arena_release(&a);
    return 0;
}
