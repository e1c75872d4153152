/* The key-value store of each driver in crash programs: its server, and opening it.
 *
 * The parent starts servers; children open. The program has one server of each kind. */
#ifndef TESTS_CRASH_KV_ENGINES_H
#define TESTS_CRASH_KV_ENGINES_H

#include "crash/harness.h"
#include "kv/kv.h"

enum kv_engine { KV_EMBEDDED, KV_REDIS, KV_POSTGRES, KV_ENGINES };

/* Before a child starts: starts the server of the engine unless it runs. The embedded engine notes
 * that all bytes up to here are safe (power.h). */
void kv_engine_start(enum kv_engine engine, const struct crash *c);
/* Opens the store. Ends the process when that fails. */
struct kv *kv_engine_open(enum kv_engine engine, const struct crash *c);
/* After the kill: waits until the server has noticed that the writers are gone, for it may still
 * run what they sent. With `power`, the power fails: files lose what was not synced, and servers
 * are killed and started again. */
void kv_engine_after(enum kv_engine engine, struct crash *c, bool power);
/* When a new folder begins: forgets which bytes are safe. */
void kv_engines_reset(void);
void kv_engines_init(void); /* once, in the parent */
void kv_engines_end(void);  /* ends the servers */

#endif
