/* Authentication: the keys, the forms of the header, and the buckets. */
#include "api/auth.h"
#include "unit/test.h"

#include <stdlib.h>

static const struct credentials admin = {"AKIAEXAMPLE", "correct:horse"};

static struct sock_addr peer_at(const char *text)
{
    struct sock_addr peer;
    struct err err = {0};
    CHECK_OK(sock_addr_parse(&peer, str_z(text), &err));
    return peer;
}

/* "Basic ..." for the keys, in static storage. */
static struct str header_of(const char *access, const char *secret)
{
    static struct buf text;
    struct credentials c = {0};

    memcpy(c.access_key, access, strlen(access));
    memcpy(c.secret_key, secret, strlen(secret));
    buf_release(&text);
    credentials_basic(&text, &c);
    return buf_str(&text);
}

static struct auth *new_auth(void)
{
    struct auth *a = xzalloc(sizeof(*a));
    auth_init(a, &admin, NULL);
    return a;
}

TEST(auth, the_right_keys_pass_and_others_do_not)
{
    struct auth *a = new_auth();
    struct sock_addr peer = peer_at("127.0.0.1:1");

    CHECK_ERR(auth_check(a, header_of("AKIAEXAMPLE", "correct:horse"), &peer, 1000), 0);
    CHECK_ERR(auth_check(a, header_of("AKIAEXAMPLE", "correct:hors"), &peer, 1000), ERR_DENIED);
    CHECK_ERR(auth_check(a, header_of("AKIAEXAMPLE", ""), &peer, 1000), ERR_DENIED);
    CHECK_ERR(auth_check(a, header_of("", "correct:horse"), &peer, 1000), ERR_DENIED);
    CHECK_INT(atomic_load(&a->guesses.failures), 3);
    free(a);
}

TEST(auth, a_header_of_another_form_does_not_pass)
{
    static const char *const headers[] = {
        "Basic",           "Basic ",     "Bearer QUtJQTp4", "Basic A",
        "Basic AAAA AAAA", "Basic ====", "Basic !!!!",
    };
    struct auth *a = new_auth();

    for (size_t i = 0; i < ARRAY_SIZE(headers); i++) {
        struct sock_addr peer = peer_at("127.0.0.1:1");
        CHECK_ERR(auth_check(a, str_z(headers[i]), &peer, 1000), ERR_DENIED);
    }
    free(a);
}

TEST(auth, wrong_keys_empty_the_bucket_of_their_address_alone)
{
    struct auth *a = new_auth();
    struct sock_addr peer = peer_at("127.0.0.1:1"), other = peer_at("[2001:db8::1]:1");
    uint64_t now = 1000000;

    for (int i = 0; i < GUESSES_BURST; i++)
        CHECK_ERR(auth_check(a, header_of("x", "y"), &peer, now), ERR_DENIED);
    CHECK_ERR(auth_check(a, header_of("x", "y"), &peer, now), ERR_BUSY);
    CHECK_ERR(auth_check(a, header_of("AKIAEXAMPLE", "correct:horse"), &peer, now), ERR_BUSY);
    CHECK_ERR(auth_check(a, header_of("AKIAEXAMPLE", "correct:horse"), &other, now), 0);
    CHECK_ERR(auth_check(a, header_of("AKIAEXAMPLE", "correct:horse"), &peer,
                         now + GUESSES_REFILL_MS - 1),
              ERR_BUSY);
    now += GUESSES_REFILL_MS;
    CHECK_ERR(auth_check(a, header_of("AKIAEXAMPLE", "correct:horse"), &peer, now), 0);
    CHECK_ERR(auth_check(a, header_of("x", "y"), &peer, now), ERR_DENIED);
    CHECK_ERR(auth_check(a, header_of("x", "y"), &peer, now), ERR_BUSY);
    CHECK_INT(atomic_load(&a->guesses.failures), GUESSES_BURST + 1);
    free(a);
}

TEST(auth, a_call_without_a_header_costs_nothing)
{
    struct auth *a = new_auth();
    struct sock_addr peer = peer_at("127.0.0.1:1");

    for (int i = 0; i < 10 * GUESSES_BURST; i++)
        CHECK_ERR(auth_check(a, STR_EMPTY, &peer, 1000), ERR_DENIED);
    CHECK_ERR(auth_check(a, header_of("AKIAEXAMPLE", "correct:horse"), &peer, 1000), 0);
    CHECK_INT(atomic_load(&a->guesses.failures), 0);
    free(a);
}
