/* A spy between a lake and its key-value store: a test says what happens at the n-th call of a kind
 * that its thread makes, so a race between two calls is played in one thread. */
#ifndef TESTS_UNIT_LAKE_KV_SPY_H
#define TESTS_UNIT_LAKE_KV_SPY_H

#include "lake/lake_int.h"

enum kv_spy_call { KV_SPY_GET, KV_SPY_WRITE, KV_SPY_SCAN };

/* Puts the spy between the lake and its store. Only one lake has a spy at a time. */
void kv_spy_begin(struct lake *l);
void kv_spy_end(struct lake *l);

/* Calls the function before the n-th call of that kind from now on (1: the next one), once. Calls
 * inside of the function are not counted. */
void kv_spy_plan(enum kv_spy_call call, unsigned n, void (*fn)(void *ctx), void *ctx);
/* The n-th write from now on is made, but its answer is this code. */
void kv_spy_answer(unsigned n, int code);
/* The n-th write from now on is not made; its answer is this code. */
void kv_spy_refuse(unsigned n, int code);
/* Whether the plan was carried out. Forgets it. */
bool kv_spy_happened(void);

#endif
