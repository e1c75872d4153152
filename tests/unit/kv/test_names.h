/* Names of hosts for tests. getaddrinfo() of the whole process, also libpq's, answers for them:
 *   silent.test  not until names_speak() was called; then 127.0.0.1
 *   two.test     127.0.0.2 and 127.0.0.1
 *   gone.test    there is no such host */
#ifndef TESTS_UNIT_KV_TEST_NAMES_H
#define TESTS_UNIT_KV_TEST_NAMES_H

#include "base/base.h"

/* Ends the silence, also for look-ups that come later, and returns when no look-up waits. */
void names_speak(void);
/* How many look-ups wait at the moment. */
unsigned names_waiting(void);

#endif
