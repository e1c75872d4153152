/* Takes the power away from a database: what lies behind the last sync of a file is cut off, zeroed
 * or overwritten. fsync() and fdatasync() of the whole program are noted. */
#ifndef TESTS_CRASH_POWER_H
#define TESTS_CRASH_POWER_H

#include "crash/harness.h"

void power_init(void);             /* once, in the parent */
void power_reset(void);            /* for a new folder */
void power_on(const char *folder); /* before a child: everything that is there is safe */
void power_loss(struct crash *c, const char *folder); /* after it */

#endif
