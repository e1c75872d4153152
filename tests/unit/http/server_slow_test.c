/* server: slow peers, caps, a full pool, and stopping. */
#include "unit/http/server_lab.h"
#include "base/clock.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define GET(path) STR("GET " path " HTTP/1.1\r\nHost: a\r\n\r\n")

TEST(server_slow, head_gets_408)
{
    struct lab lab = {0};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){.head_timeout_ms = 100});
    int fd = lab_dial(&lab);
    lab_say(fd, STR("GET / HT"));
    lab_read(fd, &a, false);
    CHECK_INT(a.status, 408);
    CHECK(!a.head.keep_alive);
    CHECK(lab_is_closed(fd, &a));
    LAB_UNTIL(lab_stats(&lab).timeouts == 1);
    answer_release(&a);
    close(fd);
    lab_end(&lab);
}

TEST(server_slow, head_is_not_given_more_time_by_more_bytes)
{
    struct lab lab = {0};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){.head_timeout_ms = 100});
    int fd = lab_dial(&lab);
    lab_say(fd, STR("GET / HTTP/1.1\r\nHost: a\r\nA: "));
    while (lab_stats(&lab).timeouts == 0) {
        lab_say(fd, STR("x"));
        lab_pause();
    }
    lab_read(fd, &a, false);
    CHECK_INT(a.status, 408);
    answer_release(&a);
    close(fd);
    lab_end(&lab);
}

TEST(server_slow, idle_connections_are_closed_without_a_word)
{
    struct lab lab = {0};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){.idle_timeout_ms = 1000});
    int once = lab_dial(&lab);
    lab_ask(once, &a, GET("/hello"), 200);
    int silent = lab_dial(&lab);
    CHECK(lab_is_closed(once, &a));
    CHECK(lab_is_closed(silent, &a));
    LAB_UNTIL(lab_stats(&lab).connections == 0);
    CHECK_INT(lab_stats(&lab).timeouts, 2);
    answer_release(&a);
    close(silent);
    close(once);
    lab_end(&lab);
}

TEST(server_slow, body_under_the_minimum_rate_gets_408)
{
    struct lab lab = {0};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){.rate_window_ms = 100, .body_min_rate = 100000});
    int fd = lab_dial(&lab);
    lab_say(fd, STR("PUT /count HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"));
    while (lab_stats(&lab).timeouts == 0) { /* never silent, and still too slow */
        lab_say(fd, STR("x"));
        lab_pause();
    }
    lab_read(fd, &a, false);
    CHECK_INT(a.status, 408);
    CHECK(lab_is_closed(fd, &a));
    answer_release(&a);
    close(fd);
    lab_end(&lab);
}

/* A connection with a small window, so that a large response stays in the server. */
static int dial_narrow(struct lab *lab)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(lab->port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), size = 4096;

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)) == 0);
    CHECK(connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0);
    return fd;
}

TEST(server_slow, readers_of_a_large_file_hold_no_thread)
{
    enum { PEERS = 20 };
    struct lab lab = {.file = lab_make_file("f", 24 * MIB)};
    struct answer a = {0};
    int fds[PEERS];

    lab_start(&lab, (struct http_server_options){0});
    for (int i = 0; i < PEERS; i++) {
        fds[i] = dial_narrow(&lab);
        lab_say(fds[i], GET("/file"));
    }
    LAB_UNTIL(lab_stats(&lab).bytes_out > PEERS * 100000ull);
    LAB_UNTIL(pool_stats(lab.pool).busy + pool_stats(lab.pool).waiting == 0);
    int quick = lab_dial(&lab);
    for (int i = 0; i < 100; i++)
        lab_ask(quick, &a, GET("/hello"), 200);
    CHECK_INT(pool_stats(lab.pool).busy, 0);
    lab_read(fds[0], &a, false); /* and each gets all of it when it reads at last */
    CHECK_INT(a.body.len, 24 * MIB);
    CHECK(a.whole);
    for (int i = 0; i < PEERS; i++)
        close(fds[i]);
    close(quick);
    answer_release(&a);
    LAB_UNTIL(lab_stats(&lab).connections == 0);
    lab_end(&lab);
}

TEST(server_slow, reader_under_the_minimum_rate_is_cut_off)
{
    struct lab lab = {.file = lab_make_file("f", 24 * MIB)};

    lab_start(&lab, (struct http_server_options){.rate_window_ms = 200, .body_min_rate = 1000000});
    int fd = dial_narrow(&lab);
    lab_say(fd, GET("/file"));
    LAB_UNTIL(lab_stats(&lab).timeouts == 1);
    LAB_UNTIL(lab_stats(&lab).connections == 0);
    CHECK_INT(lab_stats(&lab).requests, 0);
    close(fd);
    lab_end(&lab);
}

enum { WINDOW_MS = 500 };

/* Reads the file in small pieces; returns the longest time between two of them. */
static uint64_t read_slowly(struct lab *lab, size_t *got)
{
    uint64_t last = clock_mono_ms(), longest = 0;
    ssize_t n;
    char piece[4096];
    int fd = dial_narrow(lab);

    lab_say(fd, STR("GET /file HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
    for (*got = 0; (n = recv(fd, piece, sizeof(piece), 0)) > 0; *got += (size_t)n) {
        uint64_t now = clock_mono_ms();
        longest = size_max(longest, now - last);
        last = now;
        lab_pause();
    }
    longest = size_max(longest, clock_mono_ms() - last);
    close(fd);
    return longest;
}

/* It makes no room in the server's socket for longer than a window, and is still fast enough. One
 * that the machine itself kept from reading proves nothing, and is followed by another. */
TEST(server_slow, reader_over_the_minimum_rate_is_served_to_the_end)
{
    struct lab lab = {.file = lab_make_file("f", 4 * MIB)};
    uint64_t before = 0, longest;
    size_t got;

    lab_start(&lab,
              (struct http_server_options){.rate_window_ms = WINDOW_MS, .body_min_rate = 2000});
    do {
        before = lab_stats(&lab).timeouts;
        longest = read_slowly(&lab, &got);
    } while (got <= 4 * MIB && longest >= WINDOW_MS / 2);
    CHECK(got > 4 * MIB);
    CHECK_INT(lab_stats(&lab).timeouts, before);
    lab_end(&lab);
}

TEST(server_slow, stream_to_a_peer_that_does_not_read_ends_by_its_rate)
{
    struct lab lab = {0};

    lab_start(&lab, (struct http_server_options){.rate_window_ms = 100, .body_min_rate = 1000000});
    int fd = dial_narrow(&lab);
    for (int i = 0; i < 100; i++)
        lab_say(fd, GET("/large"));
    LAB_UNTIL(lab_stats(&lab).timeouts >= 1);
    LAB_UNTIL(lab_stats(&lab).connections == 0);
    LAB_UNTIL(pool_stats(lab.pool).busy == 0);
    close(fd);
    lab_end(&lab);
}

TEST(server_full, pool_answers_503)
{
    struct lab lab = {0};
    struct answer a = {0};
    struct pool *pool = pool_new("tiny", 1, 1, 0);

    lab_start(&lab, (struct http_server_options){.pool = pool});
    int running = lab_dial(&lab), waiting = lab_dial(&lab), third = lab_dial(&lab);
    lab_say(running, GET("/gate"));
    lab_wait_gate(&lab, 1);
    lab_say(waiting, GET("/gate"));
    LAB_UNTIL(pool_stats(pool).waiting == 1);
    lab_ask(third, &a, GET("/gate"), 503);
    CHECK(str_starts(buf_str(&a.body), STR("SlowDown")));
    CHECK(!a.head.keep_alive);
    CHECK(http_header(&a.head, "Retry-After").len > 0);
    int fourth = lab_dial(&lab); /* what need not wait is served all the same */
    lab_ask(fourth, &a, GET("/hello"), 200);
    lab_open_gate(&lab);
    lab_read(running, &a, false);
    CHECK_STR(buf_str(&a.body), STR("through"));
    lab_read(waiting, &a, false);
    CHECK_STR(buf_str(&a.body), STR("through"));
    close(running), close(waiting), close(third), close(fourth);
    answer_release(&a);
    lab_end(&lab);
    pool_free(pool);
}

TEST(server_full, cap_per_address_turns_the_next_one_away)
{
    struct lab lab = {0};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){.max_per_address = 2});
    int one = lab_dial(&lab), two = lab_dial(&lab);
    lab_ask(one, &a, GET("/hello"), 200);
    lab_ask(two, &a, GET("/hello"), 200);
    int three = lab_dial(&lab);
    lab_read(three, &a, false);
    CHECK_INT(a.status, 503);
    CHECK(lab_is_closed(three, &a));
    CHECK_INT(lab_stats(&lab).refused, 1);
    close(one);
    LAB_UNTIL(lab_stats(&lab).connections == 1);
    int four = lab_dial(&lab);
    lab_ask(four, &a, GET("/hello"), 200);
    close(two), close(three), close(four);
    answer_release(&a);
    lab_end(&lab);
}

TEST(server_full, cap_in_all_turns_the_next_one_away)
{
    struct lab lab = {0};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){.max_connections = 1});
    int one = lab_dial(&lab);
    lab_ask(one, &a, GET("/hello"), 200);
    int two = lab_dial(&lab);
    lab_read(two, &a, false);
    CHECK_INT(a.status, 503);
    lab_ask(one, &a, GET("/hello"), 200);
    close(one), close(two);
    answer_release(&a);
    lab_end(&lab);
}

TEST(server_full, of_descriptors_it_goes_on_when_some_are_free)
{
    struct lab lab = {0};
    struct answer a = {0};
    struct rlimit old, none;

    lab_start(&lab, (struct http_server_options){.idle_timeout_ms = 60000, .head_timeout_ms = 100});
    int fd = lab_dial(&lab);
    lab_ask(fd, &a, GET("/hello"), 200);
    int next = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(lab.port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(getrlimit(RLIMIT_NOFILE, &old) == 0);
    none = old;
    none.rlim_cur = 0;
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    CHECK(connect(next, (struct sockaddr *)&to, sizeof(to)) == 0);
    lab_ask(fd, &a, GET("/hello"), 200); /* what is there is served */
    CHECK_INT(lab_stats(&lab).accepted, 1);
    CHECK(setrlimit(RLIMIT_NOFILE, &old) == 0);
    lab_ask(next, &a, GET("/hello"), 200);
    close(fd), close(next);
    answer_release(&a);
    lab_end(&lab);
}

static void stop_soon(void *ctx)
{
    struct lab *lab = ctx;
    CHECK(http_server_stop(lab->server, clock_mono_ns() + 60000000000));
}

TEST(server_stop, finishes_what_runs_and_closes_what_is_idle)
{
    struct lab lab = {0};
    struct answer a = {0};
    struct thread stopper;
    struct err err = {0};

    lab_start(&lab, (struct http_server_options){0});
    int idle = lab_dial(&lab), running = lab_dial(&lab);
    lab_ask(idle, &a, GET("/hello"), 200);
    lab_say(running, GET("/gate"));
    lab_wait_gate(&lab, 1);
    CHECK_OK(thread_start(&stopper, "stopper", 0, stop_soon, &lab, &err));
    CHECK(lab_is_closed(idle, &a));
    lab_open_gate(&lab);
    lab_read(running, &a, false);
    CHECK_INT(a.status, 200);
    CHECK(!a.head.keep_alive);
    CHECK(lab_is_closed(running, &a));
    thread_join(&stopper);
    CHECK_INT(lab_stats(&lab).connections, 0);
    int late;
    CHECK(sock_connect(&late, "127.0.0.1", lab.port, clock_mono_ns() + 1000000000, NULL) < 0);
    close(idle), close(running);
    answer_release(&a);
    lab_end(&lab);
}

TEST(server_stop, drops_what_is_left_at_the_deadline)
{
    struct lab lab = {.file = lab_make_file("f", 24 * MIB)};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){0});
    int reading = dial_narrow(&lab), writing = lab_dial(&lab), half = lab_dial(&lab);
    lab_say(reading, GET("/file"));
    lab_say(writing, STR("PUT /count HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc"));
    lab_say(half, STR("GET"));
    LAB_UNTIL(pool_stats(lab.pool).busy == 1 && lab_stats(&lab).bytes_out > 10000 &&
              lab_stats(&lab).connections == 3);
    CHECK(http_server_stop(lab.server, clock_mono_ns()));
    CHECK_INT(lab_stats(&lab).connections, 0);
    CHECK(lab_is_closed(writing, &a));
    CHECK(lab_is_closed(half, &a));
    close(reading), close(writing), close(half);
    lab_end(&lab);
}

TEST(server_stop, says_when_a_handler_does_not_end)
{
    struct lab lab = {0};

    lab_start(&lab, (struct http_server_options){0});
    int fd = lab_dial(&lab);
    lab_say(fd, GET("/gate"));
    lab_wait_gate(&lab, 1);
    CHECK(!http_server_stop(lab.server, clock_mono_ns()));
    CHECK_INT(lab_stats(&lab).connections, 1);
    lab_open_gate(&lab);
    close(fd);
    lab_end(&lab);
}
