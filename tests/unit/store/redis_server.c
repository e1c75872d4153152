/* Starting and ending a redis-server of the test's own. */
#include "unit/store/redis_server.h"

#include "base/ids.h"
#include "os/file.h"
#include "os/sock.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_ARGS = 64, PATH_SIZE = 256, START_ATTEMPTS = 5, PORT_ATTEMPTS = 100 };

/* Below those that the kernel gives out by itself (from 32768 on): while a server is down between
 * two starts nobody gets its port by chance, and a client that tries to reach it cannot meet
 * itself. */
enum { FIRST_PORT = 10240, END_PORT = 32768 };

int free_port(void)
{
    for (int i = 0; i < PORT_ATTEMPTS; i++) {
        struct sock_addr addr;
        char text[32];
        int fd = -1, port = FIRST_PORT + (int)random_below(END_PORT - FIRST_PORT);
        snprintf(text, sizeof(text), "127.0.0.1:%d", port);
        bool is_free =
            sock_addr_parse(&addr, str_z(text), NULL) == 0 && sock_listen(&fd, &addr, 1, NULL) == 0;
        fd_close(&fd);
        if (is_free)
            return port;
    }
    BUG_ON(true);
}

/* Runs argv with its output into `out` (or /dev/null); it dies with us. */
static pid_t spawn(const char *const *argv, int out)
{
    pid_t parent = getpid(), pid = fork();

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(out >= 0 ? out : null, 1);
    dup2(out >= 0 ? out : null, 2);
    execvp(argv[0], (char *const *)argv);
    _exit(127);
}

static bool wait_for_line(int fd, const char *line)
{
    char text[16 * 1024];
    size_t len = 0;
    ssize_t n;

    while (len < sizeof(text) - 1 && (n = read(fd, text + len, sizeof(text) - 1 - len)) > 0) {
        len += (size_t)n;
        text[len] = 0;
        if (strstr(text, line))
            return true;
    }
    text[len] = 0;
    fprintf(stderr, "redis-server did not start:\n%s\n", text);
    return false;
}

static size_t add_tls(const struct redis_server *s, const char **argv, char (*text)[PATH_SIZE])
{
    size_t n = 0;

    snprintf(text[0], PATH_SIZE, "%d", s->tls_port);
    snprintf(text[1], PATH_SIZE, "%s/cert.pem", s->dir);
    snprintf(text[2], PATH_SIZE, "%s/key.pem", s->dir);
    const char *args[] = {"--tls-port",     text[0], "--tls-cert-file",    text[1],
                          "--tls-key-file", text[2], "--tls-auth-clients", "no"};
    for (; n < ARRAY_SIZE(args); n++)
        argv[n] = args[n];
    return n;
}

static bool start_once(struct redis_server *s)
{
    char port[16], socket_path[PATH_SIZE], tls[3][PATH_SIZE];
    const char *argv[MAX_ARGS] = {
        "redis-server",
        "--port",
        port,
        "--bind",
        "127.0.0.1",
        "--unixsocket",
        socket_path,
        "--dir",
        s->dir,
        "--save",
        "",
        "--daemonize",
        "no",
        "--enable-debug-command",
        "yes",
        "--repl-diskless-load",
        "disabled",
    };
    size_t n = 17;
    int pipe_fds[2];
    bool ready;

    snprintf(port, sizeof(port), "%d", s->port);
    snprintf(socket_path, sizeof(socket_path), "%s/redis.sock", s->dir);
    if (s->tls)
        n += add_tls(s, argv + n, tls);
    for (size_t i = 0; s->extra && s->extra[i] && n < MAX_ARGS - 1; i++)
        argv[n++] = s->extra[i];
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return false;
    s->pid = spawn(argv, pipe_fds[1]);
    fd_close(&pipe_fds[1]);
    ready = wait_for_line(pipe_fds[0], s->loading ? "Server initialized" /* it listens */
                                                  : "eady to accept connections");
    fd_close(&pipe_fds[0]);
    if (!ready)
        redis_server_kill(s);
    return ready;
}

bool redis_server_start(struct redis_server *s)
{
    bool chosen = s->port != 0;

    for (int i = 0; i < (chosen ? 1 : START_ATTEMPTS); i++) {
        if (!chosen) {
            s->port = free_port();
            s->tls_port = s->tls ? free_port() : 0;
        }
        if (!start_once(s))
            continue;
        snprintf(s->unix_url, sizeof(s->unix_url), "unix://%s/redis.sock", s->dir);
        snprintf(s->url, sizeof(s->url), "redis://127.0.0.1:%d", s->port);
        snprintf(s->tls_url, sizeof(s->tls_url), "rediss://127.0.0.1:%d", s->tls_port);
        return true;
    }
    return false;
}

void redis_server_signal(struct redis_server *s, int signal)
{
    if (s->pid)
        kill(s->pid, signal);
}

void redis_server_kill(struct redis_server *s)
{
    if (!s->pid)
        return;
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
    s->pid = 0;
}

bool redis_server_make_certificate(const struct redis_server *s)
{
    char key[PATH_SIZE], cert[PATH_SIZE];
    const char *argv[] = {
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-keyout",
        key,
        "-out",
        cert,
        "-days",
        "2",
        "-subj",
        "/CN=weir test",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        NULL,
    };
    int status = -1;
    pid_t pid;

    snprintf(key, sizeof(key), "%s/key.pem", s->dir);
    snprintf(cert, sizeof(cert), "%s/cert.pem", s->dir);
    pid = spawn(argv, -1);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}
