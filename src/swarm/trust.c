/* Trusted networks, and finding the address of a client behind proxies. */
#include "swarm/trust.h"

#include <arpa/inet.h>

/* --- addresses --- */

static void peer_addr_set(struct peer_addr *out, const uint8_t ip[IP_LEN])
{
    out->v6 = !ip_is_v4(ip);
    memset(out->ip, 0, sizeof(out->ip));
    memcpy(out->ip, out->v6 ? ip : ip + 12, out->v6 ? 16 : 4);
}

/* Converts an address to the form that os/networks.h uses. */
static void peer_addr_ip(const struct peer_addr *a, uint8_t out[IP_LEN])
{
    static const uint8_t v4[IP_LEN] = {[10] = 0xff, 0xff};

    memcpy(out, a->v6 ? a->ip : v4, IP_LEN);
    if (!a->v6)
        memcpy(out + 12, a->ip, 4);
}

bool peer_addr_parse(struct peer_addr *out, struct str text)
{
    uint8_t ip[IP_LEN];
    bool is = ip_parse(ip, text);

    if (is)
        peer_addr_set(out, ip);
    return is;
}

bool peer_addr_of(struct peer_addr *out, const struct sock_addr *addr)
{
    uint8_t ip[IP_LEN];
    bool is = ip_of(ip, addr);

    if (is)
        peer_addr_set(out, ip);
    return is;
}

void peer_addr_text(const struct peer_addr *a, char out[INET6_ADDRSTRLEN])
{
    inet_ntop(a->v6 ? AF_INET6 : AF_INET, a->ip, out, INET6_ADDRSTRLEN);
}

/* --- networks --- */

int trust_parse(struct trust *out, struct str list, struct err *err)
{
    return networks_parse(&out->networks, list, err);
}

bool trust_has(const struct trust *t, const struct peer_addr *a)
{
    uint8_t ip[IP_LEN];

    peer_addr_ip(a, ip);
    return networks_have_ip(&t->networks, ip);
}

static bool in_any(const struct network *list, size_t count, const struct peer_addr *a)
{
    uint8_t ip[IP_LEN];

    peer_addr_ip(a, ip);
    for (size_t i = 0; i < count; i++)
        if (network_has(&list[i], ip))
            return true;
    return false;
}

#define V4(...)                                                                                    \
    {                                                                                              \
        [10] = 0xff, 0xff, __VA_ARGS__                                                             \
    }

bool peer_addr_is_local(const struct peer_addr *a)
{
    static const struct network local[] = {
        {V4(127), IP_V4_BITS + 8},
        {V4(10), IP_V4_BITS + 8},
        {V4(172, 16), IP_V4_BITS + 12},
        {V4(192, 168), IP_V4_BITS + 16},
        {V4(169, 254), IP_V4_BITS + 16},
        {{[15] = 1}, 128},
        {{0xfc}, 7},
        {{0xfe, 0x80}, 10},
    };

    return in_any(local, ARRAY_SIZE(local), a);
}

bool peer_addr_is_host(const struct peer_addr *a)
{
    static const struct network never[] = {
        {V4(0), IP_V4_BITS + 8},
        {V4(224), IP_V4_BITS + 3}, /* multicast, reserved, broadcast */
        {{0}, 128},
        {{0xff}, 8},
    };

    return !in_any(never, ARRAY_SIZE(never), a);
}

/* --- the client --- */

/* Cuts the last item off a list with commas. Returns the item without blanks and without its port.
 */
static struct str last_hop(struct str *list)
{
    size_t at = list->len;

    while (at > 0 && list->p[at - 1] != ',')
        at--;
    struct str hop = str_trim(str_skip(*list, at));
    *list = str_head(*list, at ? at - 1 : 0);
    ptrdiff_t colon = str_chr(hop, ':'), dot = str_chr(hop, '.');
    if (str_starts(hop, STR("["))) /* for example [::1]:80 */
        str_cut(str_skip(hop, 1), ']', &hop, &(struct str){0});
    else if (dot >= 0 && colon > dot) /* for example 192.0.2.1:80 */
        hop = str_head(hop, (size_t)colon);
    return hop;
}

/* Goes through the hops of X-Forwarded-For from the right. A hop that is not an address ends the
 * search, because no trusted proxy vouches for the hops to its left. */
bool trust_client(const struct trust *t, const struct sock_addr *peer, struct str forwarded,
                  struct peer_addr *out)
{
    struct peer_addr hop;
    bool known = peer_addr_of(out, peer);

    if (known && !trust_has(t, out))
        return true;
    for (int i = 0; i < TRUST_MAX_HOPS && forwarded.len; i++) {
        if (!peer_addr_parse(&hop, last_hop(&forwarded)))
            break;
        memcpy(hop.port, out->port, sizeof(hop.port));
        *out = hop;
        known = true;
        if (!trust_has(t, &hop))
            break;
    }
    return known;
}
