/* hosts: lists of hosts that requests may be sent to. */
#include "http/hosts.h"
#include "unit/test.h"

#include <stdio.h>

TEST(hosts, only_addresses_of_the_internet_are_public)
{
    static const char *const public[] = {"8.8.8.8",         "172.32.0.1",       "100.128.0.1",
                                         "2606:4700::1111", "64:ff9b::808:808", "2002:808:808::1"};
    static const char *const others[] = {"127.0.0.1",
                                         "0.0.0.0",
                                         "10.1.2.3",
                                         "172.16.0.1",
                                         "192.168.1.1",
                                         "169.254.1.1",
                                         "169.254.169.254",
                                         "100.64.0.1",
                                         "224.0.0.1",
                                         "255.255.255.255",
                                         "198.18.0.1",
                                         "192.0.2.1",
                                         "::",
                                         "::1",
                                         "fe80::1",
                                         "fec0::1",
                                         "fd00::1",
                                         "ff02::1",
                                         "::ffff:10.0.0.1",
                                         "::127.0.0.1",
                                         "2001:db8::1",
                                         "64:ff9b::7f00:1",
                                         "2002:a00:1::1",
                                         "64:ff9b:1::7f00:1"};
    uint8_t ip[IP_LEN];

    for (size_t i = 0; i < ARRAY_SIZE(public); i++)
        if (!ip_parse(ip, str_z(public[i])) || !ip_is_public(ip))
            test_fail(__FILE__, __LINE__, "%s is not public", public[i]);
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        if (!ip_parse(ip, str_z(others[i])) || ip_is_public(ip))
            test_fail(__FILE__, __LINE__, "%s is public", others[i]);
}

static bool allows(const char *list, const char *address)
{
    char text[SOCK_ADDR_TEXT];
    struct sock_addr addr;
    struct hosts h;
    struct err err = {0};

    CHECK_OK(hosts_parse(&h, str_z(list), &err));
    snprintf(text, sizeof(text), strchr(address, ':') ? "[%s]:80" : "%s:80", address);
    CHECK_OK(sock_addr_parse(&addr, str_z(text), &err));
    return hosts_have_address(&h, &addr);
}

TEST(hosts, resolved_address_is_public_or_not)
{
    static const struct {
        const char *address;
        bool is_public;
    } rows[] = {{"8.8.8.8:443", true},       {"[2606:4700::1111]:443", true},
                {"127.0.0.1:80", false},     {"[::1]:80", false},
                {"100.64.0.1:80", false},    {"[::ffff:192.168.0.1]:80", false},
                {"unix:/run/x.sock", false}, {"169.254.169.254:80", false}};
    struct sock_addr addr;
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CHECK_OK(sock_addr_parse(&addr, str_z(rows[i].address), &err));
        CHECK(sock_addr_is_public(&addr) == rows[i].is_public);
    }
}

TEST(hosts, addresses_are_allowed_by_public_and_by_networks)
{
    CHECK(allows("public", "8.8.8.8"));
    CHECK(!allows("public", "127.0.0.1"));
    CHECK(!allows("public", "::ffff:127.0.0.1"));
    CHECK(allows("public, 127.0.0.1", "127.0.0.1"));
    CHECK(allows("10.1.0.0/16", "10.1.9.9"));
    CHECK(!allows("10.1.0.0/16", "10.2.0.1"));
    CHECK(!allows("10.1.0.0/16", "8.8.8.8"));
    CHECK(!allows("", "8.8.8.8"));
    CHECK(!allows("checker.example", "8.8.8.8"));
}

TEST(hosts, names_are_compared_whole_or_by_their_end)
{
    struct hosts h;
    struct err err = {0};

    CHECK_OK(hosts_parse(&h, STR("checker.example,*.hooks.example"), &err));
    CHECK(hosts_have_name(&h, STR("Checker.Example")));
    CHECK(hosts_have_name(&h, STR("a.hooks.example")));
    CHECK(hosts_have_name(&h, STR("a.b.hooks.example")));
    CHECK(!hosts_have_name(&h, STR("hooks.example")));
    CHECK(!hosts_have_name(&h, STR("badhooks.example")));
    CHECK(!hosts_have_name(&h, STR("checker.example.org")));
    CHECK(!hosts_have_name(&h, STR("x.checker.example")));
}

TEST(hosts, an_item_that_is_no_host_is_named)
{
    struct hosts h;
    struct err err = {0};

    CHECK_ERR(hosts_parse(&h, STR("public,http://x"), &err), ERR_INVALID);
    CHECK(strstr(err.text, "'http://x'"));
    CHECK_ERR(hosts_parse(&h, STR("10.0.0.0/33"), &err), ERR_INVALID);
    CHECK_ERR(hosts_parse(&h, STR("*."), &err), ERR_INVALID);
    CHECK_ERR(hosts_parse(&h, STR("a*b"), &err), ERR_INVALID);
}
