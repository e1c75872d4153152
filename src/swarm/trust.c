/* Networks, and the client behind proxies. */
#include "swarm/trust.h"

#include <arpa/inet.h>

/* --- addresses --- */

static void set_v4(struct peer_addr *out, const void *ip)
{
    memset(out->ip, 0, sizeof(out->ip));
    memcpy(out->ip, ip, 4);
    out->v6 = false;
}

static void set_v6(struct peer_addr *out, const struct in6_addr *ip)
{
    if (IN6_IS_ADDR_V4MAPPED(ip)) {
        set_v4(out, ip->s6_addr + 12);
        return;
    }
    memcpy(out->ip, ip->s6_addr, sizeof(out->ip));
    out->v6 = true;
}

bool peer_addr_parse(struct peer_addr *out, struct str text)
{
    char z[INET6_ADDRSTRLEN];
    struct in6_addr v6;
    struct in_addr v4;

    if (text.len == 0 || text.len >= sizeof(z) || memchr(text.p, 0, text.len))
        return false;
    memcpy(z, text.p, text.len);
    z[text.len] = 0;
    if (inet_pton(AF_INET, z, &v4) == 1)
        set_v4(out, &v4);
    else if (inet_pton(AF_INET6, z, &v6) == 1)
        set_v6(out, &v6);
    else
        return false;
    return true;
}

bool peer_addr_of(struct peer_addr *out, const struct sock_addr *addr)
{
    if (addr->sa.ss_family == AF_INET)
        set_v4(out, &((const struct sockaddr_in *)&addr->sa)->sin_addr);
    else if (addr->sa.ss_family == AF_INET6)
        set_v6(out, &((const struct sockaddr_in6 *)&addr->sa)->sin6_addr);
    else
        return false;
    return true;
}

void peer_addr_text(const struct peer_addr *a, char out[INET6_ADDRSTRLEN])
{
    inet_ntop(a->v6 ? AF_INET6 : AF_INET, a->ip, out, INET6_ADDRSTRLEN);
}

/* --- networks --- */

static bool in_network(const struct trust_network *n, const struct peer_addr *a)
{
    size_t whole = n->bits / 8;
    unsigned rest = n->bits % 8;

    if (n->v6 != a->v6 || memcmp(n->ip, a->ip, whole) != 0)
        return false;
    return rest == 0 || ((n->ip[whole] ^ a->ip[whole]) >> (8 - rest)) == 0;
}

static int parse_network(struct trust_network *out, struct str text, struct err *err)
{
    struct str host, prefix;
    struct peer_addr a;
    bool cut = str_cut(text, '/', &host, &prefix);
    uint64_t bits;

    if (!peer_addr_parse(&a, host))
        return err_set(err, ERR_INVALID, "'" STR_FMT "' is not a network such as 10.1.0.0/16",
                       STR_ARG(text));
    bits = a.v6 ? 128 : 32;
    if (cut && (str_u64(prefix, &bits) < 0 || bits > (a.v6 ? 128 : 32)))
        return err_set(err, ERR_INVALID, "'" STR_FMT "' has no good prefix length", STR_ARG(text));
    *out = (struct trust_network){.v6 = a.v6, .bits = (uint8_t)bits};
    memcpy(out->ip, a.ip, sizeof(out->ip));
    return 0;
}

int trust_parse(struct trust *out, struct str list, struct err *err)
{
    struct trust t = {0};
    struct str word;
    int code = 0;

    while (code == 0 && str_token(&list, ", ", &word)) {
        if (t.count == TRUST_MAX_NETWORKS)
            return err_set(err, ERR_INVALID, "more than %d networks", TRUST_MAX_NETWORKS);
        code = parse_network(&t.networks[t.count++], word, err);
    }
    if (code == 0)
        *out = t;
    return code;
}

bool trust_has(const struct trust *t, const struct peer_addr *a)
{
    for (size_t i = 0; i < t->count; i++)
        if (in_network(&t->networks[i], a))
            return true;
    return false;
}

static bool in_any(const struct trust_network *list, size_t count, const struct peer_addr *a)
{
    for (size_t i = 0; i < count; i++)
        if (in_network(&list[i], a))
            return true;
    return false;
}

bool peer_addr_is_local(const struct peer_addr *a)
{
    static const struct trust_network local[] = {
        {{127}, false, 8},       {{10}, false, 8},         {{172, 16}, false, 12},
        {{192, 168}, false, 16}, {{169, 254}, false, 16},  {{[15] = 1}, true, 128},
        {{0xfc}, true, 7},       {{0xfe, 0x80}, true, 10},
    };

    return in_any(local, ARRAY_SIZE(local), a);
}

bool peer_addr_is_host(const struct peer_addr *a)
{
    static const struct trust_network never[] = {
        {{0}, false, 8},
        {{224}, false, 3}, /* multicast, reserved, broadcast */
        {{0}, true, 128},
        {{0xff}, true, 8},
    };

    return !in_any(never, ARRAY_SIZE(never), a);
}

/* --- the client --- */

/* The last word of a list with commas, without blanks around it, and its port if it has one. */
static struct str last_hop(struct str *list)
{
    size_t at = list->len;

    while (at > 0 && list->p[at - 1] != ',')
        at--;
    struct str hop = str_trim(str_skip(*list, at));
    *list = str_head(*list, at ? at - 1 : 0);
    ptrdiff_t colon = str_chr(hop, ':'), dot = str_chr(hop, '.');
    if (str_starts(hop, STR("["))) /* [::1]:80 */
        str_cut(str_skip(hop, 1), ']', &hop, &(struct str){0});
    else if (dot >= 0 && colon > dot) /* 192.0.2.1:80 */
        hop = str_head(hop, (size_t)colon);
    return hop;
}

/* A hop that is no address ends the walk: what stands left of it was told by we do not know whom.
 */
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
