/* Reads lists of networks from the configuration, and finds addresses in them. */
#include "os/networks.h"

#include <arpa/inet.h>

static const uint8_t v4_prefix[IP_LEN] = {[10] = 0xff, 0xff};

static void set_v4(uint8_t out[IP_LEN], const void *ip)
{
    memcpy(out, v4_prefix, IP_LEN);
    memcpy(out + 12, ip, 4);
}

bool ip_is_v4(const uint8_t ip[IP_LEN])
{
    return memcmp(ip, v4_prefix, 12) == 0;
}

bool ip_parse(uint8_t out[IP_LEN], struct str text)
{
    char z[INET6_ADDRSTRLEN];
    struct in_addr v4;

    if (text.len == 0 || text.len >= sizeof(z) || memchr(text.p, 0, text.len))
        return false;
    memcpy(z, text.p, text.len);
    z[text.len] = 0;
    if (inet_pton(AF_INET, z, &v4) != 1)
        return inet_pton(AF_INET6, z, out) == 1;
    set_v4(out, &v4);
    return true;
}

bool ip_of(uint8_t out[IP_LEN], const struct sock_addr *addr)
{
    if (addr->sa.ss_family == AF_INET)
        set_v4(out, &((const struct sockaddr_in *)&addr->sa)->sin_addr);
    else if (addr->sa.ss_family == AF_INET6)
        memcpy(out, &((const struct sockaddr_in6 *)&addr->sa)->sin6_addr, IP_LEN);
    else
        return false;
    return true;
}

bool network_has(const struct network *n, const uint8_t ip[IP_LEN])
{
    size_t whole = n->bits / 8;
    unsigned rest = n->bits % 8;
    bool v4 = n->bits >= IP_V4_BITS && ip_is_v4(n->ip);

    /* No IPv6 network contains an IPv4 address, not even ::/0. */
    if (v4 != ip_is_v4(ip) || memcmp(n->ip, ip, whole) != 0)
        return false;
    return rest == 0 || ((n->ip[whole] ^ ip[whole]) >> (8 - rest)) == 0;
}

bool networks_have_ip(const struct networks *n, const uint8_t ip[IP_LEN])
{
    for (size_t i = 0; i < n->count; i++)
        if (network_has(&n->list[i], ip))
            return true;
    return false;
}

bool networks_have(const struct networks *n, const struct sock_addr *addr)
{
    uint8_t ip[IP_LEN];

    return n->count && ip_of(ip, addr) && networks_have_ip(n, ip);
}

static int network_parse(struct network *out, struct str text, struct err *err)
{
    struct str host, prefix;
    bool cut = str_cut(text, '/', &host, &prefix);

    if (!ip_parse(out->ip, host))
        return err_set(err, ERR_INVALID, "'" STR_FMT "' is not a network such as 10.1.0.0/16",
                       STR_ARG(text));
    uint64_t most = str_chr(host, ':') < 0 ? 32 : 128, bits = most;
    if (cut && (str_u64(prefix, &bits) < 0 || bits > most))
        return err_set(err, ERR_INVALID, "'" STR_FMT "' has no good prefix length", STR_ARG(text));
    out->bits = (uint8_t)(128 - most + bits);
    return 0;
}

int networks_parse(struct networks *out, struct str list, struct err *err)
{
    struct networks n = {0};
    struct str word;
    int code = 0;

    while (code == 0 && str_token(&list, ", ", &word)) {
        if (n.count == NETWORKS_MAX)
            return err_set(err, ERR_INVALID, "more than %d networks", NETWORKS_MAX);
        code = network_parse(&n.list[n.count++], word, err);
    }
    if (code == 0)
        *out = n;
    return code;
}
