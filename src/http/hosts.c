/* Lists of hosts to which requests may be sent. */
#include "http/hosts.h"

/* --- public addresses --- */

/* Networks whose addresses are not public, by the registries of RFC 6890. */
static const char *const special_networks[] = {
    "0.0.0.0/8",     "10.0.0.0/8",      "100.64.0.0/10",  "127.0.0.0/8",    "169.254.0.0/16",
    "172.16.0.0/12", "192.0.0.0/24",    "192.0.2.0/24",   "192.88.99.0/24", "192.168.0.0/16",
    "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",    "::/96",
    "100::/64",      "2001::/23",       "2001:db8::/32",  "fc00::/7",       "fe80::/9",
    "ff00::/8",
};

/* Networks of IPv6 whose addresses contain an IPv4 address, and the offset of that address. */
static const struct carrier {
    const char *network;
    size_t offset; /* in bytes */
} carriers[] = {
    {"64:ff9b::/96", 12},   /* NAT64 */
    {"64:ff9b:1::/48", 12}, /* NAT64 inside a network */
    {"2002::/16", 2},       /* 6to4 */
};

static bool ip_is_in(const uint8_t ip[IP_LEN], const char *network)
{
    struct networks n;

    BUG_ON(networks_parse(&n, str_z(network), NULL) < 0);
    return networks_have_ip(&n, ip);
}

bool ip_is_public(const uint8_t ip[IP_LEN])
{
    uint8_t inner[IP_LEN] = {[10] = 0xff, 0xff};

    for (size_t i = 0; i < ARRAY_SIZE(special_networks); i++)
        if (ip_is_in(ip, special_networks[i]))
            return false;
    for (size_t i = 0; i < ARRAY_SIZE(carriers); i++)
        if (ip_is_in(ip, carriers[i].network)) {
            memcpy(inner + 12, ip + carriers[i].offset, 4);
            return ip_is_public(inner);
        }
    return true;
}

bool sock_addr_is_public(const struct sock_addr *addr)
{
    uint8_t ip[IP_LEN];

    return ip_of(ip, addr) && ip_is_public(ip);
}

/* --- the list --- */

static bool host_name_is_good(struct str name)
{
    if (str_starts(name, STR("*.")))
        name = str_skip(name, 2);
    for (size_t i = 0; i < name.len; i++) {
        char c = name.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-' || c == '.' || c == '_'))
            return false;
    }
    return name.len > 0;
}

/* Adds an address or a network. Returns false when the item is neither. */
static bool hosts_add_network(struct hosts *h, struct str item)
{
    struct networks one;

    if (networks_parse(&one, item, NULL) < 0 || one.count != 1 || h->networks.count == NETWORKS_MAX)
        return false;
    h->networks.list[h->networks.count++] = one.list[0];
    return true;
}

int hosts_parse(struct hosts *out, struct str list, struct err *err)
{
    struct hosts h = {0};
    struct str item;

    while (str_token(&list, ", ", &item)) {
        if (str_eq(item, STR("public")))
            h.has_public = true;
        else if (hosts_add_network(&h, item))
            continue;
        else if (host_name_is_good(item) && h.name_count < HOSTS_NAMES_MAX)
            h.names[h.name_count++] = item;
        else
            return err_set(err, ERR_INVALID,
                           "'" STR_FMT "' is not a host; write public, a name, *.NAME, an "
                           "address or a network, %d of a kind at most",
                           STR_ARG(str_head(item, 255)), HOSTS_NAMES_MAX);
    }
    *out = h;
    return 0;
}

static bool host_name_matches(struct str pattern, struct str name)
{
    if (!str_starts(pattern, STR("*.")))
        return str_ieq(pattern, name);
    struct str end = str_skip(pattern, 1);
    return name.len > end.len && str_ieq(str_skip(name, name.len - end.len), end);
}

bool hosts_have_name(const struct hosts *h, struct str name)
{
    for (size_t i = 0; i < h->name_count; i++)
        if (host_name_matches(h->names[i], name))
            return true;
    return false;
}

bool hosts_have_address(const struct hosts *h, const struct sock_addr *addr)
{
    uint8_t ip[IP_LEN];

    return ip_of(ip, addr) &&
           (networks_have_ip(&h->networks, ip) || (h->has_public && ip_is_public(ip)));
}
