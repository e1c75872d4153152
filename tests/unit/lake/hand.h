/* A hand that works on a lake in tests: short forms of the operations, each of which ends the test
 * when it fails. Two hands may share a lake, or have one each over the same rows, as two processes
 * would. A hand belongs to one thread. */
#ifndef TESTS_UNIT_LAKE_HAND_H
#define TESTS_UNIT_LAKE_HAND_H

#include "unit/lake/lake_lab.h"

struct hand {
    struct lake *lake;
    struct lake_repo repo;
    struct arena arena; /* for results */
    struct kv *kv;      /* of a lake of the hand's own; NULL: the lake is shared */
    struct err err;     /* of the last call that could fail */
};

struct hand hand_of(struct lake_lab *lab);
/* A hand with a lake of its own over the same rows. */
struct hand hand_second(struct lake_lab *lab);
void hand_release(struct hand *h);
/* Sets how long the lake waits before it drops a token a second time. */
void hand_drop_again(struct hand *h, uint64_t ms);

/* An entry whose ETag is the content, at an address that no other entry has. */
struct lake_entry hand_entry(struct hand *h, const char *content);

void hand_put(struct hand *h, const char *branch, const char *path, const char *content);
int hand_try_put(struct hand *h, const char *branch, const char *path, const char *content);
/* Puts the object only if the path is absent. */
int hand_try_add(struct hand *h, const char *branch, const char *path, const char *content);
void hand_remove(struct hand *h, const char *branch, const char *path);
/* Returns the id. */
struct str hand_commit(struct hand *h, const char *branch, const char *message);
int hand_try_commit(struct hand *h, const char *branch, const char *message);
void hand_branch(struct hand *h, const char *name, const char *source);
int hand_try_merge(struct hand *h, const char *source, const char *dest);
struct str hand_merge(struct hand *h, const char *source, const char *dest);

/* The content of the path must be this; NULL: there must be no such path. It is read in both ways,
 * without waiting and with. */
void hand_expect(struct hand *h, const char *ref, const char *path, const char *content);
/* The ref's paths must be these, with a blank between them. */
void hand_expect_list(struct hand *h, const char *ref, const char *want);
/* The uncommitted changes of the branch must be these: "+added -removed ~changed". */
void hand_expect_diff(struct hand *h, const char *branch, const char *want);
/* Differences of two refs in the same form; '!' marks conflicts and '/' folded prefixes. */
void hand_expect_diff_refs(struct hand *h, const char *left, const char *right, bool three_dot,
                           const char *want);

struct lake_branch hand_read_branch(struct hand *h, const char *name);
/* The messages of the branch's history by first parents, the newest first, with '|' between. */
struct str hand_history(struct hand *h, const char *branch);
/* The number of rows of a partition. */
size_t hand_count_rows(struct hand *h, struct str partition);

#endif
