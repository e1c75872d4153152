/* Whose word counts on where a client is. */
#include "swarm/trust.h"
#include "unit/test.h"

static struct peer_addr at(const char *text)
{
    struct peer_addr a = {0};

    CHECK(peer_addr_parse(&a, str_z(text)));
    return a;
}

static const char *client(const char *networks, const char *peer, const char *forwarded)
{
    static char text[INET6_ADDRSTRLEN];
    struct err err = {0};
    struct trust t;
    struct sock_addr addr;
    struct peer_addr out = {0};

    CHECK_OK(trust_parse(&t, str_z(networks), &err));
    CHECK_OK(sock_addr_parse(&addr, str_z(peer), &err));
    if (!trust_client(&t, &addr, str_z(forwarded), &out))
        return "none";
    peer_addr_text(&out, text);
    return text;
}

TEST(swarm_trust, networks_are_read_with_their_prefix)
{
    struct err err = {0};
    struct trust t;
    struct peer_addr in = at("10.1.255.9"), out = at("10.2.0.1"), six = at("fd12::1"),
                     one = at("192.0.2.1"), odd = at("172.31.0.1");

    CHECK_OK(trust_parse(&t, STR("10.1.0.0/16, fd00::/8,192.0.2.1,172.16.0.0/12"), &err));
    CHECK(trust_has(&t, &in) && !trust_has(&t, &out));
    CHECK(trust_has(&t, &six) && trust_has(&t, &one) && trust_has(&t, &odd));
    CHECK_OK(trust_parse(&t, STR(""), &err));
    CHECK(!trust_has(&t, &in));
    CHECK_ERR(trust_parse(&t, STR("10.0.0.0/33"), &err), ERR_INVALID);
    CHECK_ERR(trust_parse(&t, STR("10.0.0.0/"), &err), ERR_INVALID);
    CHECK_ERR(trust_parse(&t, STR("example.org"), &err), ERR_INVALID);
}

TEST(swarm_trust, a_mapped_address_is_the_one_of_ipv4)
{
    struct peer_addr a = at("::ffff:10.0.0.1");

    CHECK(!a.v6 && a.ip[0] == 10 && a.ip[3] == 1 && a.ip[4] == 0);
}

TEST(swarm_trust, xff_rightmost)
{
    CHECK_STR(str_z(client("10.0.0.0/8", "192.0.2.1:1", "198.51.100.1")), STR("192.0.2.1"));
    CHECK_STR(str_z(client("10.0.0.0/8", "10.0.0.1:1", "")), STR("10.0.0.1"));
    CHECK_STR(str_z(client("10.0.0.0/8", "10.0.0.1:1", "198.51.100.1")), STR("198.51.100.1"));
    CHECK_STR(str_z(client("10.0.0.0/8", "10.0.0.1:1", "203.0.113.9, 198.51.100.1, 10.0.0.2")),
              STR("198.51.100.1"));
    CHECK_STR(str_z(client("10.0.0.0/8", "10.0.0.1:1", "10.0.0.3,10.0.0.2")), STR("10.0.0.3"));
    CHECK_STR(str_z(client("10.0.0.0/8", "10.0.0.1:1", "198.51.100.1, unknown")), STR("10.0.0.1"));
    CHECK_STR(str_z(client("10.0.0.0/8", "10.0.0.1:1", "198.51.100.1:4711")), STR("198.51.100.1"));
    CHECK_STR(str_z(client("10.0.0.0/8", "10.0.0.1:1", "[2001:db8::1]:80")), STR("2001:db8::1"));
    CHECK_STR(str_z(client("10.0.0.0/8", "10.0.0.1:1", "2001:db8::1")), STR("2001:db8::1"));
    CHECK_STR(str_z(client("", "unix:/tmp/x", "198.51.100.1")), STR("198.51.100.1"));
    CHECK_STR(str_z(client("", "unix:/tmp/x", "")), STR("none"));
}

TEST(swarm_trust, loopback_and_private_networks_are_local)
{
    static const char *const local[] = {"127.0.0.1", "10.9.9.9", "172.20.0.1", "192.168.1.1",
                                        "::1",       "fd00::1",  "fe80::1",    "169.254.1.1"};
    static const char *const others[] = {"192.0.2.1", "172.32.0.1", "2001:db8::1", "11.0.0.1"};
    struct peer_addr a;

    for (size_t i = 0; i < ARRAY_SIZE(local); i++)
        CHECK((a = at(local[i]), peer_addr_is_local(&a)));
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        CHECK((a = at(others[i]), !peer_addr_is_local(&a)));
}

TEST(swarm_trust, nobody_is_at_an_address_that_is_no_host)
{
    static const char *const never[] = {"0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "ff02::1"};
    struct peer_addr a;

    for (size_t i = 0; i < ARRAY_SIZE(never); i++)
        CHECK((a = at(never[i]), !peer_addr_is_host(&a)));
    CHECK((a = at("192.0.2.1"), peer_addr_is_host(&a)));
}
