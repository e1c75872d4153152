/* Plays a loss of power under a database: the bytes behind the last sync of a file are cut off,
 * zeroed or overwritten. To know them, every fsync() and fdatasync() of the program is noted. */
#ifndef TESTS_CRASH_POWER_H
#define TESTS_CRASH_POWER_H

#include "crash/harness.h"

void power_init(void);             /* once, in the parent */
void power_reset(void);            /* when a new folder begins */
void power_on(const char *folder); /* before a child starts: all bytes up to here are safe */
void power_loss(struct crash *c, const char *folder); /* after the kill */

#endif
