/* A bucket of `u`, `photos`, replicated from `main` to `backup`, and short ways to switch it. */
#ifndef TESTS_UNIT_COORD_SWITCH_LAB_H
#define TESTS_UNIT_COORD_SWITCH_LAB_H

#include "coord/switch.h"
#include "unit/coord/replication_lab.h"

#define SWITCH_LIVE ((struct switch_options){.multipart_ttl_ns = 3600000000000})
#define SWITCH_DOWN ((struct switch_options){0})

/* Its initial copy is done. */
void switch_open(struct repl_lab *l, struct four *f);
int switch_try_plan(struct repl_lab *l, struct switch_options o, struct err *err);
void switch_planned(struct repl_lab *l, struct switch_options o);
struct bucket_switch switch_now(struct repl_lab *l);
int switch_try_begin(struct repl_lab *l, struct err *err);
int switch_try_step(struct repl_lab *l, enum switch_status to, struct err *err);
int switch_try_done(struct repl_lab *l, struct err *err);
int switch_try_abort(struct repl_lab *l, struct err *err);
/* "in_progress", or "" when there is none. */
void check_switch(struct repl_lab *l, const char *status);
/* The last line of the history, without its time. */
void check_history(struct repl_lab *l, const char *line);
/* Puts a switch into a state that nothing has led to. */
void switch_force(struct repl_lab *l, enum switch_status status);

#endif
