/* This process: its signals, its limits, the resources that it uses, and its supervisor. */
#ifndef OS_PROCESS_H
#define OS_PROCESS_H

#include "base/err.h"
#include "base/str.h"

/* --- signals --- */

enum process_signal { PROCESS_STOP, PROCESS_RELOAD, PROCESS_WOKEN };

/* After this call only process_signal_wait() receives SIGTERM, SIGINT, SIGHUP and SIGUSR1, and
 * SIGPIPE is ignored. Call it before any thread is started, because threads inherit the signal
 * mask. */
void process_signals_hold(void);
/* Waits for a signal. Returns PROCESS_WOKEN when process_wake() was called or `timeout_ms` have
 * passed; if `timeout_ms` is negative, there is no limit. */
enum process_signal process_signal_wait(int timeout_ms);
void process_wake(void); /* any thread may call this, after process_signals_hold() */
/* After this call SIGTERM and SIGINT end the process at once, even if they arrived before the
 * call. */
void process_signals_release(void);

/* After this call, when a page of a mapped file (os/pages.h) cannot be read or written, the process
 * writes one line that names the file to standard error and exits with this status. */
void process_exit_on_bad_page(int status);

/* --- limits and use --- */

/* Raises the limit on open descriptors to the hard limit, and returns the new limit. */
uint64_t process_raise_files(void);

struct process_use {
    uint64_t rss_bytes;
    uint64_t cpu_ms; /* user and system time of all threads */
    uint64_t files;  /* open descriptors */
    uint64_t threads;
};
void process_use(struct process_use *out); /* a number that cannot be read is 0 */

/* Writes the kernel's id of this boot of the machine. When the id cannot be read, each call writes
 * a new random id. */
enum { PROCESS_BOOT_LEN = 36 };
void process_boot(char out[PROCESS_BOOT_LEN + 1]);

/* --- the supervisor --- */

/* Tells systemd the state of the process ("READY=1", "STOPPING=1", ...) over $NOTIFY_SOCKET.
 * Without that variable it does nothing. The state may have several lines. See sd_notify(3). */
void process_notify(struct str state);
/* Tells systemd RELOADING=1, with the monotonic time that systemd requires beside it. */
void process_notify_reloading(void);

#endif
