/* Connecting to PostgreSQL: the look-up of a host's name ends at the limit, and libpq gets every
 * address of a name, with the name. */
#include "base/clock.h"
#include "kv/postgres_conn.h"
#include "unit/kv/cut_proxy.h"
#include "unit/kv/kv_lab.h"
#include "unit/kv/postgres_shared.h"
#include "unit/kv/test_names.h"

#include <stdio.h>
#include <stdlib.h>

enum { PATIENT_MS = 30000, SHORT_MS = 300 };

/* A PostgreSQL of which a proxy on 127.0.0.1 makes a server that listens on TCP. */
struct conn_lab {
    struct cut_proxy proxy;
    char url[512]; /* of the proxy, without a host and a port */
    _Atomic(bool) canceled;
    struct err err;
};

static void conn_lab_open(struct conn_lab *l)
{
    *l = (struct conn_lab){0};
    cut_proxy_start_postgres(&l->proxy, kv_lab_postgres_url(), l->url, sizeof(l->url));
    snprintf(strchr(l->url, '?'), 64, "?sslmode=disable&gssencmode=disable");
}

static void conn_lab_close(struct conn_lab *l)
{
    names_speak();
    cut_proxy_stop(&l->proxy);
    postgres_shared_drop();
}

/* Connects to these hosts, with more parameters of the url. */
static int conn_try(struct conn_lab *l, PGconn **out, const char *hosts, uint64_t ms)
{
    char url[1024];
    const char *const keys[] = {"fallback_application_name", "dbname", NULL};
    const char *const values[] = {"test", url, NULL};
    struct sock_limit limit = {clock_mono_ns() + ms * NS_PER_MS, &l->canceled};

    snprintf(url, sizeof(url), "%s&%s", l->url, hosts);
    l->err = (struct err){0};
    return pg_conn_open(out, keys, values, &limit, &l->err);
}

/* The parameters "host=<hosts>&port=<the proxy's>". */
static const char *conn_hosts(struct conn_lab *l, const char *hosts)
{
    static char text[256];

    snprintf(text, sizeof(text), "host=%s&port=%d", hosts, l->proxy.port);
    return text;
}

static void conn_expect(struct conn_lab *l, const char *hosts, const char *name,
                        const char *address)
{
    PGconn *conn = NULL;
    int code = conn_try(l, &conn, hosts, PATIENT_MS);

    if (code < 0)
        test_fail(__FILE__, __LINE__, "%s: %s", hosts, l->err.text);
    CHECK_STR(str_z(PQhost(conn)), str_z(name));
    CHECK_STR(str_z(PQhostaddr(conn)), str_z(address));
    PQfinish(conn);
}

TEST(kv_conn, a_look_up_of_a_host_ends_at_the_deadline)
{
    struct conn_lab l;
    PGconn *conn = NULL;

    conn_lab_open(&l);
    CHECK_ERR(conn_try(&l, &conn, conn_hosts(&l, "silent.test"), SHORT_MS), ERR_UNAVAILABLE);
    CHECK(strstr(l.err.text, "looking up silent.test"));
    CHECK_INT(names_waiting(), 1); /* it goes on without its caller */
    names_speak();
    conn_expect(&l, conn_hosts(&l, "silent.test"), "silent.test", "127.0.0.1");
    conn_lab_close(&l);
}

TEST(kv_conn, a_look_up_of_a_host_can_be_canceled)
{
    struct conn_lab l;
    PGconn *conn = NULL;

    conn_lab_open(&l);
    l.canceled = true;
    CHECK_ERR(conn_try(&l, &conn, conn_hosts(&l, "silent.test"), PATIENT_MS), ERR_CANCELED);
    conn_lab_close(&l);
}

TEST(kv_conn, a_host_of_the_environment_is_looked_up_within_the_deadline)
{
    struct conn_lab l;
    PGconn *conn = NULL;

    conn_lab_open(&l);
    setenv("PGHOST", "silent.test", 1);
    CHECK_ERR(conn_try(&l, &conn, "connect_timeout=60", SHORT_MS), ERR_UNAVAILABLE);
    CHECK(strstr(l.err.text, "looking up silent.test"));
    conn_lab_close(&l);
}

/* Nobody listens on the first address of two.test, and on port 1. */
TEST(kv_conn, each_host_keeps_its_name_its_port_and_its_addresses)
{
    struct conn_lab l;
    char hosts[256];

    conn_lab_open(&l);
    conn_expect(&l, conn_hosts(&l, "two.test"), "two.test", "127.0.0.1");
    conn_expect(&l, conn_hosts(&l, "gone.test,two.test"), "two.test", "127.0.0.1");
    snprintf(hosts, sizeof(hosts), "host=two.test,127.0.0.1,two.test&port=1,1,%d", l.proxy.port);
    conn_expect(&l, hosts, "two.test", "127.0.0.1");
    snprintf(hosts, sizeof(hosts), "host=/nowhere,two.test&port=%d", l.proxy.port);
    conn_expect(&l, hosts, "two.test", "127.0.0.1");
    snprintf(hosts, sizeof(hosts), "host=gone.test,silent.test&hostaddr=,127.0.0.1&port=%d",
             l.proxy.port);
    conn_expect(&l, hosts, "silent.test", "127.0.0.1");
    conn_lab_close(&l);
}

TEST(kv_conn, hosts_that_cannot_be_had_are_named)
{
    struct conn_lab l;
    PGconn *conn = NULL;

    conn_lab_open(&l);
    CHECK_ERR(conn_try(&l, &conn, "host=gone.test", PATIENT_MS), ERR_UNAVAILABLE);
    CHECK(strstr(l.err.text, "looking up gone.test"));
    CHECK_ERR(conn_try(&l, &conn, "host=two.test&port=1", PATIENT_MS), ERR_UNAVAILABLE);
    CHECK(strstr(l.err.text, "two.test"));
    CHECK_ERR(conn_try(&l, &conn, "host=gone.test,127.0.0.1&port=,", PATIENT_MS), ERR_UNAVAILABLE);
    CHECK(strstr(l.err.text, "port 5432")); /* the usual one, although the first host is left out */
    CHECK_ERR(conn_try(&l, &conn, "host=two.test&port=1,2,3", PATIENT_MS), ERR_UNAVAILABLE);
    CHECK(strstr(l.err.text, "port"));
    conn_lab_close(&l);
}

/* The time-out of the key-value store holds for the look-up too. */
TEST(kv_conn, a_kv_whose_host_is_not_looked_up_in_time_works_later)
{
    struct conn_lab l;
    char url[1024];
    struct kv_postgres_options o = {.url = url, .timeout_ms = SHORT_MS};
    struct kv_value value;
    struct arena a = {0};
    struct kv *kv = NULL;

    conn_lab_open(&l);
    snprintf(url, sizeof(url), "%s&%s", l.url, conn_hosts(&l, "silent.test"));
    CHECK_INT(kv_open_postgres(&kv, &o, &l.err), 0);
    CHECK_ERR(kv_get(kv, NULL, &a, KV_NAME("p", "k"), &value, &l.err), ERR_UNAVAILABLE);
    names_speak();
    CHECK_SOON(kv_set(kv, KV_NAME("p", "k"), STR("v"), &l.err) == 0);
    kv_close(kv);
    arena_release(&a);
    conn_lab_close(&l);
}
