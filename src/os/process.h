/* This process: its signals, limits, what it uses, and its supervisor. */
#ifndef OS_PROCESS_H
#define OS_PROCESS_H

#include "base/err.h"
#include "base/str.h"

/* --- signals --- */

enum process_signal { PROCESS_STOP, PROCESS_RELOAD, PROCESS_WOKEN };

/* SIGTERM, SIGINT, SIGHUP and SIGUSR1 are taken by process_signal_wait() alone, SIGPIPE is ignored.
 * Call it before any thread is started: threads inherit the mask. */
void process_signals_hold(void);
/* PROCESS_WOKEN: by process_wake(), or after `timeout_ms`; below 0 there is no such time. */
enum process_signal process_signal_wait(int timeout_ms);
void process_wake(void); /* any thread, after process_signals_hold() */
/* SIGTERM and SIGINT end the process at once from here on, those that wait already too. */
void process_signals_release(void);

/* A page of a file that is mapped (os/pages.h) and cannot be read or written ends the process: with
 * one line on standard error that names the file, and this status instead of a signal. */
void process_exit_on_bad_page(int status);

/* --- limits and use --- */

/* As many descriptors as the hard limit allows; returns how many that is. */
uint64_t process_raise_files(void);

struct process_use {
    uint64_t rss_bytes;
    uint64_t cpu_ms; /* user and system, all threads */
    uint64_t files;  /* descriptors open */
    uint64_t threads;
};
void process_use(struct process_use *out); /* what cannot be read is 0 */

/* Names this start of the machine; what cannot be read is another one each time. */
enum { PROCESS_BOOT_LEN = 36 };
void process_boot(char out[PROCESS_BOOT_LEN + 1]);

/* --- the supervisor --- */

/* Tell systemd ("READY=1", "STOPPING=1", ...) over $NOTIFY_SOCKET; nothing without one. Several
 * lines may be given at once. See sd_notify(3). */
void process_notify(struct str state);
/* RELOADING=1 with the time that systemd wants beside it. */
void process_notify_reloading(void);

#endif
