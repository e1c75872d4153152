/* This process: its signals, limits, what it uses, and its supervisor. */
#ifndef OS_PROCESS_H
#define OS_PROCESS_H

#include "base/err.h"
#include "base/str.h"

/* --- signals --- */

enum process_signal { PROCESS_STOP, PROCESS_RELOAD, PROCESS_WOKEN };

/* From this call on only process_signal_wait() receives SIGTERM, SIGINT, SIGHUP and SIGUSR1, and
 * SIGPIPE is ignored. Call it before any thread is started: threads inherit the signal mask. */
void process_signals_hold(void);
/* Waits for a signal. PROCESS_WOKEN: process_wake() was called, or `timeout_ms` have passed (below
 * 0: no limit). */
enum process_signal process_signal_wait(int timeout_ms);
void process_wake(void); /* any thread, after process_signals_hold() */
/* From this call on SIGTERM and SIGINT end the process at once, also those that came before it. */
void process_signals_release(void);

/* When a page of a mapped file (os/pages.h) cannot be read or written, the process ends with this
 * status instead of a signal, and with one line on standard error that names the file. */
void process_exit_on_bad_page(int status);

/* --- limits and use --- */

/* Raises the limit on open descriptors to the hard limit, and returns it. */
uint64_t process_raise_files(void);

struct process_use {
    uint64_t rss_bytes;
    uint64_t cpu_ms; /* user and system, all threads */
    uint64_t files;  /* descriptors open */
    uint64_t threads;
};
void process_use(struct process_use *out); /* a number that cannot be read is 0 */

/* The id of this boot of the machine. When it cannot be read, each call gives another id. */
enum { PROCESS_BOOT_LEN = 36 };
void process_boot(char out[PROCESS_BOOT_LEN + 1]);

/* --- the supervisor --- */

/* Tells systemd the state ("READY=1", "STOPPING=1", ...) over $NOTIFY_SOCKET; without that variable
 * it does nothing. The state may have several lines. See sd_notify(3). */
void process_notify(struct str state);
/* Tells systemd RELOADING=1, with the time that systemd wants beside it. */
void process_notify_reloading(void);

#endif
