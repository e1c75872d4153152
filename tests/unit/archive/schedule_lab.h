/* A schedule over three satellites, on the stores of a suite that runs over both engines. */
#ifndef TESTS_UNIT_ARCHIVE_SCHEDULE_LAB_H
#define TESTS_UNIT_ARCHIVE_SCHEDULE_LAB_H

#include "archive/schedule.h"
#include "unit/store/embedded_test.h"
#include "unit/store/four.h"

enum { LAB_SETS = 6, LAB_RESYNC_MS = 24 * 60 * 60 * 1000 };

struct schedule_lab {
    struct four *four;
    struct store *app;
    struct schedule *s;
    struct slots table;
    struct arena a;
    struct schedule_set sets[LAB_SETS]; /* github.com and git.test on each satellite */
    struct schedule_ask ask;
};

/* `lock_ms` 0: the default. */
void schedule_lab_open(struct schedule_lab *l, struct four *f, uint64_t lock_ms);
void schedule_lab_close(struct schedule_lab *l);

/* The account of a member. */
struct archive_account schedule_lab_account(struct schedule_lab *l, const char *member);
/* Adds the member; true: it was new. */
bool schedule_lab_add(struct schedule_lab *l, const char *member);
/* Claims an account; false: there is none now. *wait_ms may be NULL. */
bool schedule_lab_claim(struct schedule_lab *l, struct schedule_claim *out, uint64_t *wait_ms);
/* Claims an account, whose member must be this one. */
void schedule_lab_claim_this(struct schedule_lab *l, struct schedule_claim *out,
                             const char *member);
/* What schedule_find() says about the member. */
struct schedule_entry schedule_lab_find(struct schedule_lab *l, const char *member);
/* Every tracked account is in exactly one place. */
void schedule_lab_check(struct schedule_lab *l);
/* The answer of a command, as text in the lab's arena; arguments end with NULL. */
struct str schedule_lab_ask(struct schedule_lab *l, const char *first, ...);

#endif
