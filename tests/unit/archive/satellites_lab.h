/* Satellites for tests: four storages, in folders, behind gateways of this process, or mixed, over
 * either engine of the store.
 *
 * A test that must hold everywhere is written with SATELLITES_TEST. It becomes six tests, one for
 * each engine and kind of storages:
 *
 *     SATELLITES_TEST(archive_shelf, an_object_is_read_back)
 *     {
 *         satellites_lab_put(lab, "octocat", "Hello-World.zip", "bytes");
 *     }
 */
#ifndef TESTS_UNIT_ARCHIVE_SATELLITES_LAB_H
#define TESTS_UNIT_ARCHIVE_SATELLITES_LAB_H

#include "archive/move.h"
#include "archive/satellites_int.h"
#include "archive/shelf_int.h"
#include "archive/schedule.h"
#include "coord/lock.h"
#include "unit/s3/remote_lab.h"
#include "unit/store/four.h"

enum lab_storages { LAB_LOCAL, LAB_REMOTE, LAB_MIXED };

/* Locks are left to expire, and tests wait for that. */
enum { LAB_SATELLITES = 4, LAB_PART_MIN = 100, LAB_LOCK_MS = 1500 };
extern const char *const lab_names[LAB_SATELLITES]; /* the seed's three, and "zone-4" */

struct satellites_lab {
    struct four *four;
    struct db *db;
    struct routes *routes;
    struct users *users;
    struct schedule *schedule;
    struct queue *queue;
    struct satellites *satellites;
    struct satellites_options options;
    struct moves *moves;
    struct remote_lab *far[LAB_SATELLITES];
    struct arena arena; /* for results; released by the close */
};

void satellites_lab_open(struct satellites_lab *lab, struct four *f, enum lab_storages kind);
void satellites_lab_close(struct satellites_lab *lab);
/* Opens the satellites once more, as another process would; the caller closes them. */
struct satellites *satellites_lab_second(struct satellites_lab *lab);
/* Closes the satellites and opens them again, as a restart does. */
void satellites_lab_restart(struct satellites_lab *lab);

/* Adds the first `count` satellites at once. */
void satellites_lab_add(struct satellites_lab *lab, size_t count);
struct slots satellites_lab_table(struct satellites_lab *lab);
struct archive_account satellites_lab_account(struct satellites_lab *lab, const char *login);
/* The name of the satellite that a login is written to. */
const char *satellites_lab_home(struct satellites_lab *lab, const char *login);

/* Puts an object of an account on its shelf, with a time and a header of its own. */
void satellites_lab_put(struct satellites_lab *lab, const char *login, const char *name,
                        struct str bytes);
/* A bundle with a pack of some entries. */
struct str satellites_lab_bundle(struct satellites_lab *lab, unsigned seed);
/* Checks that the shelf gives these bytes; NULL: that there is no such object. */
void satellites_lab_expect(struct satellites_lab *lab, const char *login, const char *name,
                           struct str bytes);
/* The key of an object of an account: its own (".json") or a repository's ("x.zip"). */
struct str satellites_lab_key(struct satellites_lab *lab, const char *login, const char *name);

/* Looks at a key directly on a storage. ERR_NOT_FOUND, or 0 and what is there. */
int satellites_lab_look(struct satellites_lab *lab, const char *satellite, struct str key,
                        struct object_info *out, struct buf *bytes);
/* Puts a key directly on a storage, as somebody else would. */
void satellites_lab_write(struct satellites_lab *lab, const char *satellite, struct str key,
                          struct str bytes);
/* How many satellites have the key. */
size_t satellites_lab_copies(struct satellites_lab *lab, struct str key);
/* Moves a slot; waits while its accounts are locked. */
void satellites_lab_move(struct satellites_lab *lab, unsigned slot);
/* Moves every slot that moves. */
void satellites_lab_move_all(struct satellites_lab *lab);

void satellites_lab_run(four_open_fn *open, enum lab_storages kind,
                        void (*fn)(struct satellites_lab *lab));

#define SATELLITES_TEST_ONE(suite, name, engine, kind)                                             \
    TEST(suite, engine##_##kind##_##name)                                                          \
    {                                                                                              \
        satellites_lab_run(four_open_##engine, LAB_##kind, lab_##suite##_##name);                  \
    }

#define SATELLITES_TEST(suite, name)                                                               \
    static void lab_##suite##_##name(struct satellites_lab *lab);                                  \
    SATELLITES_TEST_ONE(suite, name, embedded, LOCAL)                                              \
    SATELLITES_TEST_ONE(suite, name, embedded, REMOTE)                                             \
    SATELLITES_TEST_ONE(suite, name, embedded, MIXED)                                              \
    SATELLITES_TEST_ONE(suite, name, redis, LOCAL)                                                 \
    SATELLITES_TEST_ONE(suite, name, redis, REMOTE)                                                \
    SATELLITES_TEST_ONE(suite, name, redis, MIXED)                                                 \
    static void lab_##suite##_##name(struct satellites_lab *lab)

#endif
