/* Replications over four databases, and short ways to ask them. */
#ifndef TESTS_UNIT_COORD_REPLICATION_LAB_H
#define TESTS_UNIT_COORD_REPLICATION_LAB_H

#include "coord/replication.h"
#include "unit/store/embedded_test.h"
#include "unit/store/four.h"

struct repl_lab {
    struct four *f;
    struct store *app, *queue, *config;
    struct replications *r;
    struct queue *tasks;
    struct arena a;
};

void repl_open(struct repl_lab *l, struct four *f);
void repl_close(struct repl_lab *l);

/* "user bucket from to to_bucket"; "-" is empty. In the lab's arena. */
struct replication_id repl_id(struct repl_lab *l, const char *words);
/* With a first task, a route to `from` where there is no policy. */
int repl_try_add(struct repl_lab *l, const char *words, struct err *err);
void repl_add(struct repl_lab *l, const char *words);
void repl_remove(struct repl_lab *l, const char *words);
struct replication_status repl_status(struct repl_lab *l, const char *words);

struct change repl_change(const char *storage, const char *bucket, const char *object);
void repl_record(struct repl_lab *l, const char *storage, const char *bucket, const char *object);
/* The next task of a queue, leased; false: none. */
bool repl_take(struct repl_lab *l, const char *queue, struct task *out);
/* Takes and ends all of a queue; how many there were. */
size_t repl_drain(struct repl_lab *l, const char *queue);
size_t repl_from(struct repl_lab *l, const char *storage, const char *bucket);

#endif
