/* A space (route/space.h) whose buckets a local storage keeps that the routes do not know. The
 * buckets have no storage; its names are in memory. */
#ifndef TESTS_UNIT_OBJECT_FAKE_SPACE_H
#define TESTS_UNIT_OBJECT_FAKE_SPACE_H

#include "os/thread.h"
#include "route/space.h"

enum { FAKE_NAMES_MAX = 64 };

/* Names of buckets, in memory. */
struct fake_names {
    struct mutex lock; /* guards all */
    struct buf names[FAKE_NAMES_MAX];
    size_t count;
};

void fake_names_init(struct fake_names *n);
void fake_names_release(struct fake_names *n);
bool fake_names_has(struct fake_names *n, struct str name);
void fake_names_add(struct fake_names *n, struct str name);
void fake_names_remove(struct fake_names *n, struct str name);

struct fake_space {
    struct bucket_space space; /* for routes_add_space() */
    struct storage storage;    /* makes, opens, lists and removes the space's buckets */
    struct storage *under;     /* holds their objects; borrowed */
    struct fake_names names;
};

/* `under` is a local storage without buckets. */
void fake_space_open(struct fake_space *s, struct storage *under);
void fake_space_close(struct fake_space *s);

#endif
