/* This process: receives signals with sigwait, reads resource use from /proc/self, and sends
 * datagrams to the supervisor. */
#include "os/process.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/ids.h"
#include "os/file.h"
#include "os/pages.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static sigset_t held_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR1);
    return set;
}

void process_signals_hold(void)
{
    sigset_t set = held_signals();

    signal(SIGPIPE, SIG_IGN);
    BUG_ON(pthread_sigmask(SIG_BLOCK, &set, NULL) != 0);
}

enum process_signal process_signal_wait(int timeout_ms)
{
    struct timespec time = {timeout_ms / MS_PER_S, timeout_ms % MS_PER_S * (long)NS_PER_MS};
    sigset_t set = held_signals();
    int number;

    do
        number = sigtimedwait(&set, NULL, timeout_ms < 0 ? NULL : &time);
    while (number < 0 && errno == EINTR);
    if (number < 0 || number == SIGUSR1)
        return PROCESS_WOKEN;
    return number == SIGHUP ? PROCESS_RELOAD : PROCESS_STOP;
}

void process_wake(void)
{
    kill(getpid(), SIGUSR1);
}

void process_signals_release(void)
{
    sigset_t set = held_signals();

    signal(SIGHUP, SIG_IGN);
    signal(SIGUSR1, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    BUG_ON(pthread_sigmask(SIG_UNBLOCK, &set, NULL) != 0);
}

static int bad_page_status;

static void write_err(const char *text)
{
    (void)!write(STDERR_FILENO, text, strlen(text));
}

/* The handler of SIGBUS, which the kernel sends when a mapped page cannot be read or written. It
 * calls only functions that are safe in a signal handler. */
static void on_bad_page(int number, siginfo_t *info, void *context)
{
    const char *path = info->si_code == BUS_ADRERR ? pages_file_at(info->si_addr) : NULL;

    (void)context;
    if (!path) { /* the page belongs to no mapped file: a bug, or broken memory */
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    write_err("weir: the disk failed under ");
    write_err(path);
    write_err(", which is mapped: a page of it cannot be read or written (SIGBUS)\n");
    _exit(bad_page_status);
}

void process_exit_on_bad_page(int status)
{
    struct sigaction action = {.sa_sigaction = on_bad_page, .sa_flags = SA_SIGINFO | SA_NODEFER};

    bad_page_status = status;
    sigemptyset(&action.sa_mask);
    BUG_ON(sigaction(SIGBUS, &action, NULL) != 0);
}

uint64_t process_raise_files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 0;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0 && getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 0;
    return limit.rlim_cur;
}

static uint64_t count_entries(const char *path)
{
    DIR *dir = opendir(path);
    uint64_t count = 0;

    if (!dir)
        return 0;
    for (struct dirent *entry; (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

static uint64_t resident_bytes(void)
{
    struct buf text = BUF_INIT(4096);
    struct str rest, word;
    uint64_t pages = 0;

    if (file_read("/proc/self/statm", &text, NULL) == 0) {
        rest = buf_str(&text);
        /* NOLINTNEXTLINE(misc-redundant-expression): this reads the second word */
        if (!str_token(&rest, " ", &word) || !str_token(&rest, " ", &word) ||
            str_u64(word, &pages) < 0)
            pages = 0;
    }
    buf_release(&text);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t timeval_ms(struct timeval t)
{
    return (uint64_t)t.tv_sec * MS_PER_S + (uint64_t)t.tv_usec / US_PER_MS;
}

void process_use(struct process_use *out)
{
    struct rusage usage = {0};

    getrusage(RUSAGE_SELF, &usage);
    *out = (struct process_use){
        .rss_bytes = resident_bytes(),
        .cpu_ms = timeval_ms(usage.ru_utime) + timeval_ms(usage.ru_stime),
        .files = count_entries("/proc/self/fd"),
        .threads = count_entries("/proc/self/task"),
    };
}

void process_boot(char out[PROCESS_BOOT_LEN + 1])
{
    struct buf text = BUF_INIT(4096);

    if (file_read("/proc/sys/kernel/random/boot_id", &text, NULL) < 0 ||
        text.len < PROCESS_BOOT_LEN) {
        id_hex(out);
    } else {
        memcpy(out, text.p, PROCESS_BOOT_LEN);
        out[PROCESS_BOOT_LEN] = '\0';
    }
    buf_release(&text);
}

void process_notify(struct str state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = path ? strlen(path) : 0;
    int fd;

    if ((len == 0) || len >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@'))
        return;
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    memcpy(address.sun_path, path, len);
    if (path[0] == '@') /* '@' stands for the NUL of an abstract socket name */
        address.sun_path[0] = '\0';
    /* It is no error when the supervisor is not listening. */
    (void)!sendto(fd, state.p, state.len, MSG_NOSIGNAL, (struct sockaddr *)&address,
                  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    close(fd);
}

void process_notify_reloading(void)
{
    char text[80];
    int len = snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%ju",
                       (uintmax_t)(clock_mono_ns() / NS_PER_US));
    process_notify(str_n(text, (size_t)len));
}
