/* Begins connections to PostgreSQL, and looks up the names of the hosts within a limit. */
#include "kv/postgres_start.h"
#include "os/resolve.h"

#include <stdlib.h>

enum { PAIRS_MAX = 16 }; /* most keys with values of a connection */

struct pair {
    const char *key, *value;
};

/* The hosts of a connection. In libpq's options they are lists with commas between the hosts, and
 * all lists have the same length. A name with several addresses is in the lists once for each
 * address. */
struct pg_hosts {
    struct buf host, hostaddr, port;
    size_t count, looked_up;
};

struct pg_host {
    struct str name, address, port; /* address: of the option hostaddr; may be empty, as port may */
};

/* --- libpq's options --- */

/* Begins to connect with keys and values that override those of the caller, and of its url. */
static PGconn *conn_start_with(const char *const *keys, const char *const *values,
                               const struct pair *more, size_t count)
{
    const char *all_keys[PAIRS_MAX + 1] = {0}, *all_values[PAIRS_MAX + 1] = {0};
    size_t n = 0;

    for (; keys[n]; n++) {
        BUG_ON(n + count == PAIRS_MAX);
        all_keys[n] = keys[n];
        all_values[n] = values[n];
    }
    for (size_t i = 0; i < count; i++, n++) {
        all_keys[n] = more[i].key;
        all_values[n] = more[i].value;
    }
    PGconn *conn = PQconnectStartParams(all_keys, all_values, 1);
    BUG_ON(!conn);
    return conn;
}

/* Returns the options with which libpq would connect: those of the keys, of the url, of a service
 * file and of the environment (PGHOST). libpq gives them for a connection alone, so one is begun
 * that libpq refuses before it looks up a name, because of its sslmode. */
static PQconninfoOption *conn_options(const char *const *keys, const char *const *values)
{
    PGconn *refused = conn_start_with(keys, values, &(struct pair){"sslmode", "refused"}, 1);
    PQconninfoOption *options = PQconninfo(refused);

    PQfinish(refused);
    return options;
}

static struct str option_value(const PQconninfoOption *options, const char *key)
{
    for (const PQconninfoOption *o = options; o && o->keyword; o++)
        if (strcmp(o->keyword, key) == 0)
            return str_z(o->val);
    return STR_EMPTY;
}

static size_t list_count(struct str list)
{
    size_t count = list.len > 0;

    for (size_t i = 0; i < list.len; i++)
        count += list.p[i] == ',';
    return count;
}

static struct str list_next(struct str *rest)
{
    struct str first;

    str_cut(*rest, ',', &first, rest);
    return first;
}

void pg_conn_name(struct buf *out, PGconn *conn)
{
    PQconninfoOption *options = PQconninfo(conn);
    struct str names = option_value(options, "host"), addresses = option_value(options, "hostaddr");
    struct str name = list_next(&names), address = list_next(&addresses);

    if (address.len && !str_eq(name, address))
        buf_appendf(out, STR_FMT ": ", STR_ARG(name));
    PQconninfoFree(options);
}

/* --- the hosts --- */

static void pg_hosts_release(struct pg_hosts *hosts)
{
    buf_release(&hosts->host);
    buf_release(&hosts->hostaddr);
    buf_release(&hosts->port);
}

static void list_add(struct buf *list, size_t count, struct str s)
{
    if (count > 0)
        buf_append_char(list, ',');
    buf_append_str(list, s);
}

static void pg_hosts_add(struct pg_hosts *hosts, const struct pg_host *h, struct str address)
{
    list_add(&hosts->host, hosts->count, h->name);
    list_add(&hosts->hostaddr, hosts->count, address);
    /* libpq ignores an option that is empty as a whole, and would take the url's list of ports. An
     * empty port in such a list is libpq's usual one. */
    list_add(&hosts->port, hosts->count, h->port.len ? h->port : STR("5432"));
    hosts->count++;
}

/* Whether libpq would look the host up. It does not look up the folder of a socket, or a host that
 * has an address already. A host without a name is a socket in libpq's own folder. */
static bool pg_host_is_name(const struct pg_host *h)
{
    return h->address.len == 0 && h->name.len > 0 && h->name.p[0] != '/' && h->name.p[0] != '@';
}

static int pg_hosts_look_up(struct pg_hosts *hosts, const struct pg_host *h,
                            const struct sock_limit *limit, struct err *err)
{
    struct addrinfo *list = NULL;
    char *name = str_dup(h->name);
    int code = resolve_host(&list, name, 0, limit, err);

    for (const struct addrinfo *a = list; code == 0 && a; a = a->ai_next) {
        char text[NI_MAXHOST];
        if (getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof(text), NULL, 0, NI_NUMERICHOST) ==
            0)
            pg_hosts_add(hosts, h, str_z(text));
    }
    if (list)
        freeaddrinfo(list);
    free(name);
    hosts->looked_up++;
    return code;
}

/* Goes through the lists. The look-up that passes the limit is the last one. */
static int pg_hosts_fill(struct pg_hosts *hosts, const PQconninfoOption *options,
                         const struct sock_limit *limit, struct err *err)
{
    struct str name = option_value(options, "host"), address = option_value(options, "hostaddr");
    struct str port = option_value(options, "port");
    size_t count = list_count(name), ports = list_count(port);
    int code = 0;

    /* libpq refuses lists of different lengths, and says so. */
    if ((address.len && list_count(address) != count) || (ports > 1 && ports != count))
        return 0;
    for (size_t i = 0; i < count && code != ERR_TIMEOUT && code != ERR_CANCELED; i++) {
        struct pg_host h = {list_next(&name), list_next(&address),
                            ports > 1 ? list_next(&port) : port};
        if (pg_host_is_name(&h))
            code = pg_hosts_look_up(hosts, &h, limit, err);
        else
            pg_hosts_add(hosts, &h, h.address);
    }
    return code == ERR_TIMEOUT || code == ERR_CANCELED || hosts->count == 0 ? code : 0;
}

int pg_conn_start(PGconn **out, const char *const *keys, const char *const *values,
                  const struct sock_limit *limit, struct err *err)
{
    PQconninfoOption *options = conn_options(keys, values);
    struct pg_hosts hosts = {0};
    int code = pg_hosts_fill(&hosts, options, limit, err);
    struct pair more[] = {
        {"host", hosts.host.p}, {"hostaddr", hosts.hostaddr.p}, {"port", hosts.port.p}};

    if (code == 0)
        *out = conn_start_with(keys, values, more, hosts.looked_up ? ARRAY_SIZE(more) : 0);
    else
        code = err_wrap(err, code == ERR_CANCELED ? code : ERR_UNAVAILABLE, "postgres");
    PQconninfoFree(options);
    pg_hosts_release(&hosts);
    return code;
}
