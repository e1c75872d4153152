/* networks: lists of the configuration, and who is in them. */
#include "os/networks.h"
#include "unit/test.h"

static bool has(const char *list, const char *address)
{
    struct networks n;
    struct err err = {0};
    uint8_t ip[IP_LEN];

    CHECK_OK(networks_parse(&n, str_z(list), &err));
    CHECK(ip_parse(ip, str_z(address)));
    return networks_have_ip(&n, ip);
}

TEST(networks, an_address_is_in_those_whose_prefix_it_has)
{
    static const struct {
        const char *list, *address;
        bool in;
    } rows[] = {
        {"10.1.0.0/16, fd00::/8,192.0.2.1,172.16.0.0/12", "10.1.255.9", true},
        {"10.1.0.0/16, fd00::/8,192.0.2.1,172.16.0.0/12", "10.2.0.1", false},
        {"10.1.0.0/16, fd00::/8,192.0.2.1,172.16.0.0/12", "fd12::1", true},
        {"10.1.0.0/16, fd00::/8,192.0.2.1,172.16.0.0/12", "192.0.2.1", true},
        {"10.1.0.0/16, fd00::/8,192.0.2.1,172.16.0.0/12", "172.31.0.1", true},
        {"127.0.0.1,::1", "127.0.0.2", false},
        {"127.0.0.1,::1", "::1", true},
        {"127.0.0.1,::1", "::ffff:127.0.0.1", true},
        {"0.0.0.0/0", "192.0.2.1", true},
        {"0.0.0.0/0", "2001:db8::1", false},
        {"::/0", "192.0.2.1", false},
        {"::/0", "2001:db8::1", true},
        {"", "127.0.0.1", false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        CHECK_INT(has(rows[i].list, rows[i].address), rows[i].in);
}

TEST(networks, what_is_none_is_refused)
{
    static const char *const wrong[] = {"10.0.0.0/33", "10.0.0.0/", "example.org", "::/129",
                                        "1.2.3"};
    struct networks n;
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        CHECK_ERR(networks_parse(&n, str_z(wrong[i]), &err), ERR_INVALID);
}

TEST(networks, a_socket_has_an_address_unless_it_is_a_file)
{
    struct networks n;
    struct err err = {0};
    struct sock_addr addr;

    CHECK_OK(networks_parse(&n, STR("10.0.0.0/8"), &err));
    CHECK_OK(sock_addr_parse(&addr, STR("10.9.8.7:80"), &err));
    CHECK(networks_have(&n, &addr));
    CHECK_OK(sock_addr_parse(&addr, STR("unix:/tmp/x"), &err));
    CHECK(!networks_have(&n, &addr));
}
