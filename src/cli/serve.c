/* weir serve: starts weir, prints a greeting, waits for signals, and stops weir. */
#include "base/clock.h"
#include "cli/commands.h"
#include "db/db.h"
#include "server/server.h"
#include "os/process.h"

#include <malloc.h>
#include <stdio.h>
#include <sys/sysinfo.h>
#include <unistd.h>

/* Limits the number of glibc's heaps. By default there are up to eight for each core, and each
 * keeps memory that was freed. Two for each core are enough for the threads that can run at the
 * same time. */
static void serve_limit_heaps(void)
{
    mallopt(M_ARENA_MAX, 2 * get_nprocs());
    /* By default glibc raises its own limits whenever a large block is freed, and then keeps up to
     * 64 MiB in each of its heaps. With fixed limits it returns large blocks to the system. */
    mallopt(M_MMAP_THRESHOLD, 4 * (int)MIB);
    mallopt(M_TRIM_THRESHOLD, 4 * (int)MIB);
}

/* Warns when the limit of open files is too low. Each connection needs a file descriptor; the
 * database and outgoing connections need some too. */
static void serve_check_files(const struct server *s, uint64_t files)
{
    enum { SPARE = 256 };

    if (files < s->conf->http.connections + SPARE)
        log_warn(&s->log, "server.few_files", log_u("limit", files),
                 log_u("http.connections", s->conf->http.connections));
}

/* Prints the first administrator's keys. `url` is the argument for curl to reach the API, or NULL.
 * The secret is shown only on a terminal, because other output goes to a file or the journal
 * (docs/security.md, U1). */
static void serve_print_keys(const struct server *s, const char *url)
{
    if (!s->new_credentials || !isatty(STDOUT_FILENO)) {
        printf("  keys    in %s/credentials\n", s->conf->data);
        if (s->new_credentials)
            printf("          made for you; show them by: cat %s/credentials\n", s->conf->data);
        if (url)
            printf("try: curl %s/readyz\n", url);
        return;
    }
    printf("  access  %s\n", s->admin.access_key);
    printf("  secret  %s\n", s->admin.secret_key);
    printf("          made for you; kept in %s/credentials, not shown again\n", s->conf->data);
    if (url)
        printf("try: curl -u %s:%s %s/api/v1\n", s->admin.access_key, s->admin.secret_key, url);
}

static void serve_print_s3(struct server *s)
{
    char address[SOCK_ADDR_TEXT];
    struct sock_addr listen;

    if (!s->services.s3)
        return;
    http_server_address(s->services.s3, &listen);
    sock_addr_text(&listen, address);
    if (str_starts(str_z(address), STR("unix:"))) {
        printf("  S3      %s\n", address);
        return;
    }
    printf("  S3      %s://%s\n", *s->conf->s3.tls.cert ? "https" : "http", address);
    printf("          try: aws --endpoint-url %s://%s s3 mb s3://first\n",
           *s->conf->s3.tls.cert ? "https" : "http", address);
}

static void serve_greet(struct server *s, uint64_t began_ns)
{
    char address[SOCK_ADDR_TEXT], url[SOCK_ADDR_TEXT + 64];
    const char *scheme = *s->conf->api.tls.cert ? "https" : "http";
    struct sock_addr listen;

    printf("weir %s started in %ju ms\n", WEIR_VERSION,
           (uintmax_t)((clock_mono_ns() - began_ns) / NS_PER_MS));
    serve_print_s3(s);
    vec_each (&s->rooms, const struct room_instance *, r)
        if (r->room->greet)
            r->room->greet(r->state, stdout);
    if (s->api) {
        api_address(s->api, &listen);
        sock_addr_text(&listen, address);
        bool is_unix = str_starts(str_z(address), STR("unix:"));
        snprintf(url, sizeof(url), "%s://%s", scheme, address);
        printf("  API     %s\n", is_unix ? address : url);
        if (is_unix)
            snprintf(url, sizeof(url), "--unix-socket %s %s://localhost", address + 5, scheme);
    }
    printf("  data    %s\n", s->conf->data);
    serve_print_keys(s, s->api ? url : NULL);
    fflush(stdout);
}

/* Reloads the configuration. If it is invalid, nothing changes, and the log says what is wrong. */
static void serve_reload(struct server *s, const struct invocation *inv)
{
    struct conf_input in;
    struct conf *next = NULL;
    struct buf problems = {0};
    struct str rest, line;
    struct err err = {0};

    process_notify_reloading();
    invocation_conf_input(inv, &in);
    if (conf_load(&next, &in, &problems) == 0 && server_reload(s, next, &err) < 0)
        buf_appendf(&problems, "%s\n", err.text);
    rest = buf_str(&problems);
    while (str_token(&rest, "\n", &line))
        log_error(&s->log, "config.not_reloaded", log_s("problem", line));
    buf_release(&problems);
    process_notify(STR("READY=1"));
}

/* Whether the database does not accept writes any more although the disk accepts writes again. Then
 * a new start may help (docs/operations.md, "A disk that fails"). While the disk refuses writes,
 * the process continues: it can still read, and a new process could not start. */
static bool serve_disk_failed(const struct server *s, bool *told)
{
    struct err why = {0}, err = {0};
    char status[sizeof(why.text) + 16];

    if (db_failed(s->db, &why) == 0)
        return false;
    if (!*told) {
        snprintf(status, sizeof(status), "STATUS=%s", why.text);
        process_notify(str_z(status));
    }
    *told = true;
    if (db_try_disk(s->db, &err) < 0)
        return false;
    log_error(&s->log, "server.ending", log_z("why", why.text),
              log_z("now", "the disk takes writes: start weir again"), log_u("status", EXIT_DISK));
    return true;
}

/* Waits for signals until weir must end. Returns the exit status. */
static int serve_wait_for_end(struct server *s, const struct invocation *inv)
{
    enum { TRY_DISK_MS = 1000 };
    bool told = false;

    for (;;) {
        enum process_signal got = process_signal_wait(told ? TRY_DISK_MS : -1);
        if (got == PROCESS_STOP)
            return EXIT_DONE;
        if (got == PROCESS_RELOAD)
            serve_reload(s, inv);
        else if (serve_disk_failed(s, &told))
            return EXIT_DISK;
    }
}

int command_serve(struct invocation *inv)
{
    uint64_t began_ns = clock_mono_ns(), files;
    const char *only = invocation_flag(inv, "only");
    struct conf *conf = NULL;
    struct server server;
    struct err err = {0};
    int status = invocation_conf(inv, &conf);

    if (status != 0)
        return status;
    serve_limit_heaps();
    process_signals_hold();
    process_exit_on_bad_page(EXIT_DISK);
    files = process_raise_files();
    struct server_options options = {
        .conf = conf,
        .rooms = inv->table->rooms,
        .room_count = inv->table->room_count,
        .only = only,
    };
    if (server_start(&server, &options, &err) < 0)
        return complain(EXIT_USAGE, "%s", err.text);
    serve_greet(&server, began_ns);
    log_info(&server.log, "server.started", log_z("version", WEIR_VERSION),
             log_z("roles", only ? only : "all"));
    serve_check_files(&server, files);
    process_notify(STR("READY=1"));
    status = serve_wait_for_end(&server, inv);
    process_notify(STR("STOPPING=1"));
    log_info(&server.log, "server.stopping");
    process_signals_release();
    server_stop(&server);
    return status;
}
