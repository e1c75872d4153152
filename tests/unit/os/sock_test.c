/* sock: addresses as text, connecting, waiting. */
#include "os/sock.h"
#include "base/clock.h"
#include "os/file.h"
#include "os/process.h"
#include "os/thread.h"
#include "unit/test.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SKIPPED = 77 }; /* as the runner knows it */

static uint64_t soon(void)
{
    return clock_mono_ns() + 30 * NS_PER_S;
}

static void check_form(const char *text, const char *want, const char *host)
{
    struct sock_addr addr;
    struct err err = {0};
    char got[SOCK_ADDR_TEXT];

    CHECK_OK(sock_addr_parse(&addr, str_z(text), &err));
    sock_addr_text(&addr, got);
    CHECK_STR(str_z(got), str_z(want));
    sock_addr_host(&addr, got);
    CHECK_STR(str_z(got), str_z(host));
}

TEST(sock, addresses_are_read_and_written)
{
    check_form("127.0.0.1:9000", "127.0.0.1:9000", "127.0.0.1");
    check_form("[::1]:65535", "[::1]:65535", "::1");
    check_form(":0", "[::]:0", "::");
    check_form("localhost:80", "127.0.0.1:80", "127.0.0.1");
    check_form("[2001:db8:0:0::1]:80", "[2001:db8::1]:80", "2001:db8::1");
    check_form("unix:/tmp/x.sock", "unix:/tmp/x.sock", "unix");
}

TEST(sock, what_is_not_an_address_is_refused)
{
    static const char *const bad[] = {
        "",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:65536",
        "127.0.0.1:-1",
        "::1:80",
        "[::1]",
        "[::1:80",
        "example.com:80",
        "1.2.3:80",
        "256.0.0.1:80",
        "unix:",
        "127.0.0.1:80x",
        "[aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]:80",
    };
    struct sock_addr addr;
    struct err err = {0};
    char path[200] = "unix:";

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK_ERR(sock_addr_parse(&addr, str_z(bad[i]), &err), ERR_INVALID);
    memset(path + 5, 'x', 108);
    CHECK_ERR(sock_addr_parse(&addr, str_z(path), &err), ERR_INVALID);
}

static void key_of(const char *text, unsigned char out[16])
{
    struct sock_addr addr;
    struct err err = {0};
    CHECK_OK(sock_addr_parse(&addr, str_z(text), &err));
    sock_addr_key(&addr, out);
}

TEST(sock, a_host_key_is_an_address_or_a_network_of_64_bits)
{
    unsigned char a[16], b[16];

    key_of("1.2.3.4:1", a);
    key_of("[::ffff:1.2.3.4]:2", b);
    CHECK(memcmp(a, b, 16) == 0);
    key_of("1.2.3.5:1", b);
    CHECK(memcmp(a, b, 16) != 0);
    key_of("[2001:db8::1]:1", a);
    key_of("[2001:db8::ffff:2]:1", b);
    CHECK(memcmp(a, b, 16) == 0);
    key_of("[2001:db8:0:1::1]:1", b);
    CHECK(memcmp(a, b, 16) != 0);
}

/* Listening on a port of the system's choice. */
static int listen_any(uint16_t *port, int backlog)
{
    struct sock_addr addr;
    struct err err = {0};
    int fd = -1;

    CHECK_OK(sock_addr_parse(&addr, STR("127.0.0.1:0"), &err));
    CHECK_OK(sock_listen(&fd, &addr, backlog, &err));
    CHECK_OK(sock_local(fd, &addr, &err));
    *port = ntohs(((struct sockaddr_in *)&addr.sa)->sin_port);
    CHECK(*port != 0);
    return fd;
}

TEST(sock, both_ends_talk_and_see_the_end)
{
    struct err err = {0};
    uint16_t port;
    int listener = listen_any(&port, 8), client = -1, server;
    char got[8];
    size_t n = 0;

    CHECK_OK(sock_connect(&client, "127.0.0.1", port, soon(), &err));
    CHECK_OK(sock_wait(listener, POLLIN, soon(), &err));
    server = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    CHECK(server >= 0);
    CHECK_OK(sock_send_all(client, "hello", 5, soon(), &err));
    CHECK_OK(sock_recv(server, got, sizeof(got), &n, soon(), &err));
    CHECK_STR(str_n(got, n), STR("hello"));
    CHECK_ERR(sock_recv(server, got, sizeof(got), &n, clock_mono_ns() + NS_PER_MS, &err),
              ERR_TIMEOUT);
    fd_close(&client);
    CHECK_OK(sock_recv(server, got, sizeof(got), &n, soon(), &err));
    CHECK_INT(n, 0);
    fd_close(&server);
    fd_close(&listener);
}

TEST(sock, a_port_in_use_is_named)
{
    struct err err = {0};
    struct sock_addr addr;
    uint16_t port;
    int first = listen_any(&port, 1), second = -1;
    char text[32];

    snprintf(text, sizeof(text), "127.0.0.1:%u", port);
    CHECK_OK(sock_addr_parse(&addr, str_z(text), &err));
    CHECK_ERR(sock_listen(&second, &addr, 1, &err), ERR_IN_USE);
    CHECK(strstr(err.text, text));
    CHECK_INT(second, -1);
    fd_close(&first);
    CHECK_OK(sock_listen(&second, &addr, 1, &err));
    fd_close(&second);
}

TEST(sock, a_refused_connection_is_unavailable_and_names_the_host)
{
    struct err err = {0};
    uint16_t port;
    int fd = listen_any(&port, 1), client = -1;

    fd_close(&fd);
    CHECK_ERR(sock_connect(&client, "127.0.0.1", port, soon(), &err), ERR_UNAVAILABLE);
    CHECK(strstr(err.text, "127.0.0.1:"));
    CHECK_INT(client, -1);
    CHECK_ERR(sock_connect(&client, "name.invalid", port, soon(), &err), ERR_UNAVAILABLE);
}

TEST(sock, connecting_to_one_that_does_not_accept_ends_at_the_deadline)
{
    struct err err = {0};
    uint16_t port;
    int listener = listen_any(&port, 0), clients[8], code = 0, used = 0;

    /* The kernel completes a few connections by itself; then it stays silent. */
    while (code == 0 && used < 8) {
        clients[used] = -1;
        code = sock_connect(&clients[used], "127.0.0.1", port, clock_mono_ns() + 50000000, &err);
        used++;
    }
    CHECK_ERR(code, ERR_TIMEOUT);
    while (used > 0)
        fd_close(&clients[--used]);
    fd_close(&listener);
}

static void do_nothing(void *ctx)
{
    (void)ctx;
}

TEST(sock, a_name_that_takes_too_long_is_left_to_its_look_up)
{
    struct process_use before, now;
    struct thread thread;
    struct err err = {0};

    setenv("RES_OPTIONS", "timeout:1 attempts:1", 1);
    CHECK_OK(thread_start(&thread, "first", 0, do_nothing, NULL, &err));
    thread_join(&thread); /* with the first one a sanitizer may start its own */
    process_use(&before);
    for (int i = 0; i < 200; i++) {
        int fd = -1, code = sock_connect(&fd, "name.invalid", 1, 0, &err);

        CHECK(code == ERR_TIMEOUT || code == ERR_BUSY || code == ERR_UNAVAILABLE);
        CHECK(strstr(err.text, "look"));
        CHECK_INT(fd, -1);
    }
    do { /* what a look-up holds is its own until it ends */
        sched_yield();
        process_use(&now);
    } while (now.threads > before.threads);
}

TEST(sock, names_are_looked_up)
{
    struct err err = {0};
    uint16_t port;
    int listener = listen_any(&port, 1), client = -1;
    struct addrinfo *known = NULL;

    if (getaddrinfo("localhost", NULL, NULL, &known) != 0) {
        fputs("this machine does not know localhost\n", stderr);
        _exit(SKIPPED);
    }
    freeaddrinfo(known);
    CHECK_OK(sock_connect(&client, "localhost", port, soon(), &err));
    fd_close(&client);
    fd_close(&listener);
}

TEST(sock, sending_to_a_full_or_closed_peer_is_an_error)
{
    static char block[8 * 1024 * 1024];
    struct err err = {0};
    int fds[2];

    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    CHECK_ERR(sock_send_all(fds[0], block, sizeof(block), clock_mono_ns() + NS_PER_MS, &err),
              ERR_TIMEOUT);
    fd_close(&fds[1]);
    CHECK_ERR(sock_send_all(fds[0], "x", 1, soon(), &err), ERR_CLOSED);
    fd_close(&fds[0]);
}

TEST(sock, unix_sockets_connect_by_path)
{
    struct err err = {0};
    struct sock_addr addr;
    char text[200];
    int listener = -1, client = -1;

    snprintf(text, sizeof(text), "unix:%s/s", test_dir());
    CHECK_ERR(sock_connect_unix(&client, text + 5, soon(), &err), ERR_UNAVAILABLE);
    CHECK(strstr(err.text, text + 5));
    CHECK_OK(sock_addr_parse(&addr, str_z(text), &err));
    CHECK_OK(sock_listen(&listener, &addr, 4, &err));
    CHECK_OK(sock_connect_unix(&client, text + 5, soon(), &err));
    fd_close(&client);
    fd_close(&listener);
    CHECK_ERR(sock_connect_unix(&client, text + 5, soon(), &err), ERR_UNAVAILABLE);
    CHECK(fcntl(0, F_GETFD) == 0);
}

TEST(sock, a_unix_socket_left_behind_is_replaced_one_in_use_is_not)
{
    struct err err = {0};
    struct sock_addr addr;
    char text[200];
    int first = -1, second = -1;

    snprintf(text, sizeof(text), "unix:%s/s", test_dir());
    CHECK_OK(sock_addr_parse(&addr, str_z(text), &err));
    CHECK_OK(sock_listen(&first, &addr, 4, &err));
    CHECK_ERR(sock_listen(&second, &addr, 4, &err), ERR_IN_USE);
    fd_close(&first);
    CHECK_OK(sock_listen(&second, &addr, 4, &err));
    CHECK_OK(sock_connect_unix(&first, text + 5, soon(), &err));
    fd_close(&first);
    fd_close(&second);
    CHECK_INT(unlink(text + 5), 0);
    CHECK_OK(file_write_durable(text + 5, STR("a file is not ours to remove"), 0600, &err));
    CHECK_ERR(sock_listen(&second, &addr, 4, &err), ERR_IN_USE);
    CHECK_INT(access(text + 5, F_OK), 0);
}
