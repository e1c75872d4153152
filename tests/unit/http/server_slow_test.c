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

/* From another address of this machine: 127.0.0.<host>. */
static int dial_from(struct lab *lab, unsigned host)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(lab->port)};
    struct sockaddr_in from = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + host - 1);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(bind(fd, (struct sockaddr *)&from, sizeof(from)) == 0);
    CHECK(connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0);
    return fd;
}

#define PUT_100(path) STR("PUT " path " HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n")

/* A lab with a pool of 16 threads, so 64 seats: strangers have 16 of them and 4 of one address, who
 * is known 32 of one address. */
static void start_seats(struct lab *lab, struct http_server_options options)
{
    options.pool = pool_new("seats", 16, 64, 256 * KIB);
    lab_start(lab, options);
    lab->pool = options.pool;
}

/* Strangers of 127.0.0.2, who say what they want and no more. */
static void take_seats(struct lab *lab, int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fds[i] = dial_from(lab, 2);
        lab_say(fds[i], PUT_100("/count"));
    }
    LAB_UNTIL(pool_stats(lab->pool).aside == count);
}

TEST(server_full, silent_strangers_of_one_address_have_a_share_of_the_seats)
{
    enum { SHARE = 4 };
    struct lab lab = {0};
    struct answer a = {0};
    int fds[SHARE];

    start_seats(&lab, (struct http_server_options){.max_per_address = 1000});
    take_seats(&lab, fds, SHARE);
    CHECK_INT(pool_stats(lab.pool).busy, 0);
    int one_more = dial_from(&lab, 2), other = dial_from(&lab, 3), known = dial_from(&lab, 2);
    lab_ask(one_more, &a, PUT_100("/count"), 503);
    CHECK(str_starts(buf_str(&a.body), STR("SlowDown")));
    CHECK(lab_is_closed(one_more, &a));
    CHECK_INT(lab_stats(&lab).refused, 1);
    lab_say(other, PUT_100("/count"));
    lab_say(known, PUT_100("/count-known"));
    LAB_UNTIL(pool_stats(lab.pool).aside == SHARE + 2);
    lab_say(fds[0], str_n("0123456789012345678901234567890123456789012345678901234567890123456789"
                          "012345678901234567890123456789",
                          100));
    lab_read(fds[0], &a, false); /* with its seat another may wait */
    CHECK_INT(a.status, 200);
    LAB_UNTIL(pool_stats(lab.pool).aside == SHARE + 1);
    int next = dial_from(&lab, 2);
    lab_say(next, PUT_100("/count"));
    LAB_UNTIL(pool_stats(lab.pool).aside == SHARE + 2);
    for (int i = 0; i < SHARE; i++)
        close(fds[i]);
    close(one_more), close(other), close(known), close(next);
    answer_release(&a);
    lab_end(&lab);
}

TEST(server_full, strangers_of_all_addresses_leave_seats_to_those_who_are_known)
{
    enum { SHARE = 16 };
    struct lab lab = {0};
    struct answer a = {0};
    int fds[SHARE], known[SHARE];

    start_seats(&lab, (struct http_server_options){.max_per_address = 1000});
    for (int i = 0; i < SHARE; i++) {
        fds[i] = dial_from(&lab, 2 + (unsigned)i / 4);
        lab_say(fds[i], PUT_100("/count"));
    }
    LAB_UNTIL(pool_stats(lab.pool).aside == SHARE);
    int late = dial_from(&lab, 100);
    lab_ask(late, &a, PUT_100("/count"), 503);
    for (int i = 0; i < SHARE; i++) {
        known[i] = dial_from(&lab, 2);
        lab_say(known[i], PUT_100("/count-known"));
    }
    LAB_UNTIL(pool_stats(lab.pool).aside == 2 * SHARE);
    CHECK_INT(pool_stats(lab.pool).busy, 0);
    for (int i = 0; i < SHARE; i++)
        close(fds[i]), close(known[i]);
    close(late);
    answer_release(&a);
    lab_end(&lab);
}

TEST(server_full, a_proxy_has_no_share_of_its_own)
{
    enum { MORE = 10 };
    struct lab lab = {0};
    struct http_server_options options = {.max_per_address = 5};
    struct err err = {0};
    int fds[MORE];

    CHECK_OK(networks_parse(&options.proxies, STR("127.0.0.2"), &err));
    start_seats(&lab, options);
    take_seats(&lab, fds, MORE);
    for (int i = 0; i < MORE; i++)
        close(fds[i]);
    lab_end(&lab);
}

TEST(server_full, a_stream_without_a_seat_is_refused_before_it_begins)
{
    enum { SHARE = 4 };
    struct lab lab = {0};
    struct answer a = {0};
    int fds[SHARE];

    start_seats(&lab, (struct http_server_options){.max_per_address = 1000});
    take_seats(&lab, fds, SHARE);
    int fd = dial_from(&lab, 2);
    lab_ask(fd, &a, STR("PUT /echo-reader HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"),
            503);
    for (int i = 0; i < SHARE; i++)
        close(fds[i]);
    close(fd);
    answer_release(&a);
    lab_end(&lab);
}

#define AWAITED(length)                                                                            \
    STR("PUT /count-awaited HTTP/1.1\r\nHost: a\r\nContent-Length: " length "\r\n\r\n")

TEST(server_slow, a_body_that_is_awaited_holds_no_thread_until_its_first_bytes_are_here)
{
    enum { PEERS = 40 };
    static const char zeros[20000];
    struct lab lab = {0};
    struct answer a = {0};
    int fds[PEERS];

    lab_start(&lab, (struct http_server_options){0});
    for (int i = 0; i < PEERS; i++) {
        fds[i] = lab_dial(&lab);
        lab_say(fds[i], AWAITED("20000"));
    }
    lab_wait_gate(&lab, PEERS);
    CHECK_INT(pool_stats(lab.pool).threads, 0);
    lab_say(fds[0], str_n(zeros, 9999));
    lab_ask(fds[1], &a, str_n(zeros, 20000), 200);
    CHECK_STR(buf_str(&a.body), STR("20000"));
    CHECK_INT(lab.gate_count, PEERS + 2); /* the fast worker, then the pool; nothing for 9999 */
    lab_say(fds[0], str_n(zeros, 10001));
    lab_read(fds[0], &a, false);
    CHECK_STR(buf_str(&a.body), STR("20000"));
    lab_ask(fds[0], &a, GET("/hello"), 200);
    for (int i = 0; i < PEERS; i++)
        close(fds[i]);
    answer_release(&a);
    lab_end(&lab);
}

TEST(server_slow, an_awaited_body_that_is_whole_or_absent_is_not_waited_for)
{
    struct lab lab = {0};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){0});
    int fd = lab_dial(&lab);
    lab_ask(fd, &a, STR("PUT /count-awaited HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"),
            200);
    CHECK_STR(buf_str(&a.body), STR("3"));
    lab_ask(fd, &a, AWAITED("0"), 200);
    CHECK_STR(buf_str(&a.body), STR("0"));
    lab_ask(fd, &a,
            STR("PUT /count-awaited HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                "2\r\nab\r\n0\r\n\r\n"),
            200);
    CHECK_STR(buf_str(&a.body), STR("2"));
    close(fd);
    answer_release(&a);
    lab_end(&lab);
}

TEST(server_slow, an_awaited_body_is_asked_for_once_by_who_expects_that)
{
    struct lab lab = {0};
    struct answer a = {0};
    char line[25];

    lab_start(&lab, (struct http_server_options){0});
    int fd = lab_dial(&lab);
    lab_say(fd, STR("PUT /count-awaited HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
                    "Expect: 100-continue\r\n\r\n"));
    CHECK_INT(recv(fd, line, sizeof(line), MSG_WAITALL), sizeof(line));
    CHECK_STR(str_n(line, sizeof(line)), STR("HTTP/1.1 100 Continue\r\n\r\n"));
    lab_ask(fd, &a, STR("abcde"), 200);
    CHECK_STR(buf_str(&a.body), STR("5"));
    close(fd);
    answer_release(&a);
    lab_end(&lab);
}

TEST(server_slow, an_awaited_body_that_does_not_come_gets_408)
{
    struct lab lab = {0};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){.rate_window_ms = 100, .body_min_rate = 1000000});
    int fd = lab_dial(&lab);
    lab_ask(fd, &a, AWAITED("100"), 408);
    CHECK(lab_is_closed(fd, &a));
    LAB_UNTIL(lab_stats(&lab).timeouts == 1);
    close(fd);
    answer_release(&a);
    lab_end(&lab);
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

    lab_start(&lab, (struct http_server_options){.idle_timeout_ms = MS_PER_MINUTE,
                                                 .head_timeout_ms = 100});
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
    CHECK(sock_connect(&late, "127.0.0.1", lab.port, clock_mono_ns() + NS_PER_S, NULL) < 0);
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
    LAB_UNTIL(pool_stats(lab.pool).aside == 1 && lab_stats(&lab).bytes_out > 10000 &&
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
