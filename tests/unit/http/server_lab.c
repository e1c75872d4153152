/* The lab of the server's tests. */
#include "unit/http/server_lab.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int say_hello(struct http_request *req, struct lab *lab)
{
    return http_send_text(req, 200, STR("text/plain"), STR("hello"));
}

static int say_target(struct http_request *req, struct lab *lab)
{
    return http_send(req, http_request_head(req)->target);
}

static int say_nothing(struct http_request *req, struct lab *lab)
{
    return 0;
}

static int fail(struct http_request *req, struct lab *lab)
{
    http_respond(req, 200);
    return ERR_IO;
}

static int refuse(struct http_request *req, struct lab *lab)
{
    return http_send_text(req, 403, STR("text/plain"), STR("no"));
}

static int not_modified(struct http_request *req, struct lab *lab)
{
    http_respond(req, 304);
    http_respond_header(req, STR("ETag"), STR("\"x\""));
    return http_send(req, STR("never seen"));
}

static int stream_nothing(struct http_request *req, struct lab *lab)
{
    int code;

    http_respond(req, 204);
    code = http_send_begin(req);
    if (code == 0)
        code = http_send_write(req, STR("never seen"));
    return code < 0 ? code : http_send_end(req);
}

static int echo(struct http_request *req, struct lab *lab)
{
    struct str body;
    int code = http_request_read_all(req, 4 * MIB, &body, NULL);
    return code < 0 ? code : http_send(req, body);
}

static int echo_reader(struct http_request *req, struct lab *lab)
{
    http_respond(req, 200);
    return http_send_reader(req, http_request_body(req), http_request_length(req));
}

static int count_body(struct http_request *req, struct lab *lab)
{
    uint64_t n = 0;
    size_t got;
    char piece[5000], text[32];
    int code;

    while ((code = reader_read(http_request_body(req), piece, sizeof(piece), &got, NULL)) == 0 &&
           got)
        n += got;
    if (code < 0)
        return code;
    snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
    return http_send(req, str_z(text));
}

/* As one of whom the handler knows who asks. */
static int count_known(struct http_request *req, struct lab *lab)
{
    http_request_know(req);
    return count_body(req, lab);
}

/* Once its first bytes are here. */
static int count_awaited(struct http_request *req, struct lab *lab)
{
    int code = http_await_body(req, 10000);

    if (code == 0 && !http_may_block(req))
        code = ERR_AGAIN;
    mutex_lock(&lab->lock);
    lab->gate_count++; /* how often it was called */
    cond_broadcast(&lab->changed);
    mutex_unlock(&lab->lock);
    return code < 0 ? code : count_body(req, lab);
}

static int trailers(struct http_request *req, struct lab *lab)
{
    struct str body;
    int code = http_request_read_all(req, MIB, &body, NULL);
    return code < 0 ? code : http_send(req, http_request_trailers(req));
}

static int send_file(struct http_request *req, struct lab *lab)
{
    int fd = open(lab->file, O_RDONLY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return ERR_IO;
    return http_send_file(req, (struct file_range){fd, 0, (uint64_t)st.st_size});
}

static int send_file_reader(struct http_request *req, struct lab *lab)
{
    struct file_reader r;
    struct stat st;
    int fd = open(lab->file, O_RDONLY | O_CLOEXEC), code;

    if (fd < 0 || fstat(fd, &st) < 0)
        return ERR_IO;
    file_reader_init(&r, (struct file_range){fd, 0, (uint64_t)st.st_size}, true);
    code = http_send_reader(req, &r.reader, (uint64_t)st.st_size);
    reader_close(&r.reader);
    return code;
}

static int send_short_reader(struct http_request *req, struct lab *lab)
{
    struct str_reader r;
    str_reader_init(&r, STR("half"));
    return http_send_reader(req, &r.reader, 8);
}

static int send_pieces(struct http_request *req, struct lab *lab)
{
    char *large;
    int code = http_send_begin(req);

    if (code < 0)
        return code;
    large = malloc(100000);
    memset(large, 'x', 100000);
    code = http_send_write(req, STR("one,"));
    if (code == 0)
        code = http_send_write(req, str_n(large, 100000));
    if (code == 0)
        code = http_send_write(req, STR(",three"));
    free(large);
    return code < 0 ? code : http_send_end(req);
}

static int large_memory(struct http_request *req, struct lab *lab)
{
    size_t len = 3 * MIB;
    char *p = arena_alloc(http_request_arena(req), len);
    for (size_t i = 0; i < len; i++)
        p[i] = (char)('a' + i % 23);
    return http_send(req, str_n(p, len));
}

/* Fits what may be copied to wait, not what a socket takes at once. */
static int middle_memory(struct http_request *req, struct lab *lab)
{
    size_t len = MIB;
    char *p = arena_alloc(http_request_arena(req), len);
    memset(p, 'm', len);
    return http_send(req, str_n(p, len));
}

static int gate(struct http_request *req, struct lab *lab)
{
    if (!http_may_block(req))
        return ERR_AGAIN;
    mutex_lock(&lab->lock);
    lab->gate_count++;
    cond_broadcast(&lab->changed);
    while (!lab->gate_open)
        cond_wait(&lab->changed, &lab->lock);
    mutex_unlock(&lab->lock);
    return http_send(req, STR("through"));
}

static int peer(struct http_request *req, struct lab *lab)
{
    char text[SOCK_ADDR_TEXT];
    sock_addr_host(http_request_peer(req), text);
    return http_send(req, str_z(text));
}

static int is_tls(struct http_request *req, struct lab *lab)
{
    return http_send(req, http_request_is_tls(req) ? STR("tls") : STR("plain"));
}

int lab_handler(struct http_request *req, void *ctx)
{
    static const struct {
        struct str path;
        int (*fn)(struct http_request *req, struct lab *lab);
    } paths[] = {
        {STR("/hello"), say_hello},
        {STR("/target"), say_target},
        {STR("/nothing"), say_nothing},
        {STR("/fail"), fail},
        {STR("/refuse"), refuse},
        {STR("/not-modified"), not_modified},
        {STR("/stream-nothing"), stream_nothing},
        {STR("/echo"), echo},
        {STR("/echo-reader"), echo_reader},
        {STR("/count"), count_body},
        {STR("/count-known"), count_known},
        {STR("/count-awaited"), count_awaited},
        {STR("/trailers"), trailers},
        {STR("/file"), send_file},
        {STR("/file-reader"), send_file_reader},
        {STR("/short-reader"), send_short_reader},
        {STR("/pieces"), send_pieces},
        {STR("/large"), large_memory},
        {STR("/middle"), middle_memory},
        {STR("/gate"), gate},
        {STR("/peer"), peer},
        {STR("/is-tls"), is_tls},
    };
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
        if (str_eq(http_request_head(req)->path, paths[i].path))
            return paths[i].fn(req, ctx);
    return http_send_text(req, 404, STR("text/plain"), STR("no such path"));
}

void lab_start(struct lab *lab, struct http_server_options options)
{
    struct sock_addr address;
    struct err err = {0};

    mutex_init(&lab->lock, "lab");
    cond_init(&lab->changed);
    if (!options.handler)
        options.handler = lab_handler;
    if (!options.ctx)
        options.ctx = lab;
    if (!options.pool)
        options.pool = lab->pool = pool_new("lab-pool", 8, 64, 256 * KIB);
    if (!options.listen.len)
        CHECK_OK(sock_addr_parse(&options.listen, STR("127.0.0.1:0"), &err));
    CHECK_OK(http_server_start(&lab->server, &options, &err));
    http_server_address(lab->server, &address);
    lab->port = ntohs(((struct sockaddr_in *)&address.sa)->sin_port);
}

void lab_end(struct lab *lab)
{
    lab_open_gate(lab);
    http_server_free(lab->server);
    pool_free(lab->pool);
    cond_release(&lab->changed);
    mutex_release(&lab->lock);
}

void lab_open_gate(struct lab *lab)
{
    mutex_lock(&lab->lock);
    lab->gate_open = true;
    cond_broadcast(&lab->changed);
    mutex_unlock(&lab->lock);
}

void lab_wait_gate(struct lab *lab, unsigned n)
{
    mutex_lock(&lab->lock);
    while (lab->gate_count < n)
        cond_wait(&lab->changed, &lab->lock);
    mutex_unlock(&lab->lock);
}

struct http_server_stats lab_stats(struct lab *lab)
{
    struct http_server_stats stats;
    http_server_stats(lab->server, &stats);
    return stats;
}

const char *lab_make_file(const char *name, size_t len)
{
    static char path[256];
    char piece[4096];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", test_dir(), name);
    f = fopen(path, "w");
    CHECK(f != NULL);
    for (size_t at = 0; at < len; at += sizeof(piece)) {
        for (size_t i = 0; i < sizeof(piece); i++)
            piece[i] = (char)((at + i) * 31 >> 3);
        CHECK(fwrite(piece, 1, size_min(sizeof(piece), len - at), f) > 0);
    }
    CHECK_INT(fclose(f), 0);
    return path;
}

void lab_pause(void)
{
    poll(NULL, 0, 2);
}

int lab_dial(struct lab *lab)
{
    struct err err = {0};
    int fd;

    CHECK_OK(sock_connect(&fd, "127.0.0.1", lab->port, clock_mono_ns() + 30000000000, &err));
    CHECK(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) == 0);
    return fd;
}

void lab_say(int fd, struct str bytes)
{
    while (bytes.len) {
        ssize_t n = send(fd, bytes.p, bytes.len, MSG_NOSIGNAL);
        if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
            return; /* what the server answered is what the test looks at */
        CHECK(n > 0);
        bytes = str_skip(bytes, (size_t)n);
    }
}

void lab_sayf(int fd, const char *fmt, ...)
{
    struct buf b = BUF_INIT(0);
    va_list ap;

    va_start(ap, fmt);
    buf_vappendf(&b, fmt, ap);
    va_end(ap);
    lab_say(fd, buf_str(&b));
    buf_release(&b);
}

/* False at the end of the connection. */
static bool more(int fd, struct answer *a)
{
    char piece[65536];
    ssize_t n = recv(fd, piece, sizeof(piece), 0);

    if (n > 0)
        buf_append(&a->bytes, piece, (size_t)n);
    return n > 0;
}

static void read_chunks(int fd, struct answer *a)
{
    struct http_chunked chunked = {0};
    struct err err = {0};

    do {
        struct str body;
        size_t used = 0;
        CHECK_OK(http_chunked_next(&chunked, buf_str(&a->bytes), &body, &used, NULL, &err));
        buf_append_str(&a->body, body);
        buf_consume(&a->bytes, used);
    } while (!chunked.done && (a->bytes.len || more(fd, a)));
    a->whole = chunked.done;
}

static void read_length(int fd, struct answer *a, uint64_t len)
{
    while (a->body.len < len && (a->bytes.len || more(fd, a))) {
        size_t n = size_min(a->bytes.len, len - a->body.len);
        buf_append(&a->body, a->bytes.p, n);
        buf_consume(&a->bytes, n);
    }
    a->whole = a->body.len == len;
}

void lab_read(int fd, struct answer *a, bool to_head)
{
    struct err err = {0};
    size_t seen = 0;
    int code;

    buf_reset(&a->body);
    a->body.max = a->bytes.max = 256 * MIB;
    while ((code = a->bytes.len ? http_parse_response(&a->head, buf_str(&a->bytes), &seen, &err)
                                : ERR_AGAIN) == ERR_AGAIN)
        if (!more(fd, a))
            test_fail(__FILE__, __LINE__, "closed before a whole head: '%s'",
                      a->bytes.p ? a->bytes.p : "");
    CHECK_OK(code);
    a->status = a->head.status;
    a->whole = true;
    buf_consume(&a->bytes, a->head.size);
    if (!http_response_has_body(&a->head, to_head))
        return;
    if (a->head.chunked)
        read_chunks(fd, a);
    else
        read_length(fd, a, a->head.has_length ? a->head.content_length : UINT64_MAX);
}

void answer_release(struct answer *a)
{
    buf_release(&a->bytes);
    buf_release(&a->body);
}

void lab_ask(int fd, struct answer *a, struct str bytes, int status)
{
    lab_say(fd, bytes);
    lab_read(fd, a, str_starts(bytes, STR("HEAD ")));
    CHECK_INT(a->status, status);
}

bool lab_is_closed(int fd, struct answer *a)
{
    char byte;
    return a->bytes.len == 0 && recv(fd, &byte, 1, 0) <= 0;
}

int lab_status_of(struct lab *lab, struct str bytes)
{
    struct answer a = {0};
    int fd = lab_dial(lab), status = -1;

    lab_say(fd, bytes);
    if (more(fd, &a)) {
        lab_read(fd, &a, false);
        status = a.status;
        CHECK(!a.head.keep_alive);
        CHECK(lab_is_closed(fd, &a));
    }
    answer_release(&a);
    close(fd);
    return status;
}
