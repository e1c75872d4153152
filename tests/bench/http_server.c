/* Serves the files under a folder through the server: what `make bench` holds against nginx.
 *     bench_http_server [--listen 127.0.0.1:0] [--root] DIR */
#include "http/server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int serve_file(struct http_request *req, void *ctx)
{
    int root = *(int *)ctx, fd;
    char path[1024];
    struct str name = str_skip(http_request_head(req)->path, 1);
    struct stat st;

    if (name.len >= sizeof(path) || str_find(name, STR("..")) >= 0)
        return http_send_text(req, 400, STR("text/plain"), STR("bad path\n"));
    if (name.len)
        memcpy(path, name.p, name.len);
    path[name.len] = '\0';
    fd = openat(root, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        if (fd >= 0)
            close(fd);
        return http_send_text(req, 404, STR("text/plain"), STR("not found\n"));
    }
    http_respond(req, 200);
    http_respond_header(req, STR("Content-Type"), STR("application/octet-stream"));
    return http_send_file(req, (struct file_range){fd, 0, (uint64_t)st.st_size});
}

/* An upload is read to its end and dropped: for peers that send one slowly. */
static int drop_body(struct http_request *req)
{
    char piece[16 * 1024];
    struct err err = {0};
    size_t got;
    int code;

    if (!http_may_block(req))
        return ERR_AGAIN;
    do
        code = reader_read(http_request_body(req), piece, sizeof(piece), &got, &err);
    while (code == 0 && got > 0);
    return code < 0 ? code : http_send_text(req, 200, STR("text/plain"), STR("dropped\n"));
}

static int serve(struct http_request *req, void *ctx)
{
    return http_request_head(req)->method == HTTP_PUT ? drop_body(req) : serve_file(req, ctx);
}

static int usage(void)
{
    fputs("bench_http_server [--listen ADDRESS] [--root] DIR\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    const char *listen = "127.0.0.1:0", *dir = NULL;
    struct http_server_options o = {.handler = serve, .name = "bench"};
    struct http_server *server;
    struct sock_addr address;
    struct err err = {0};
    char text[SOCK_ADDR_TEXT];
    sigset_t end;
    int root, got;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--listen") && i + 1 < argc)
            listen = argv[++i];
        else if (!strcmp(argv[i], "--root") && i + 1 < argc)
            dir = argv[++i];
        else
            dir = argv[i];
    }
    if (!dir || (root = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
        return usage();
    sigemptyset(&end);
    sigaddset(&end, SIGINT);
    sigaddset(&end, SIGTERM);
    sigprocmask(SIG_BLOCK, &end, NULL);
    o.ctx = &root;
    o.pool = pool_new("bench-pool", 1024, 64, 256 * KIB);
    if (sock_addr_parse(&o.listen, str_z(listen), &err) < 0 ||
        http_server_start(&server, &o, &err) < 0) {
        fprintf(stderr, "bench_http_server: %s\n", err.text);
        return 2;
    }
    http_server_address(server, &address);
    sock_addr_text(&address, text);
    printf("listening on %s\n", text);
    fflush(stdout);
    sigwait(&end, &got);
    http_server_free(server);
    pool_free(o.pool);
    close(root);
    return 0;
}
