/* A gateway on a free port over a local storage in the test's folder, with two users, and signed
 * requests to it. */
#ifndef TESTS_UNIT_S3_GATEWAY_LAB_H
#define TESTS_UNIT_S3_GATEWAY_LAB_H

#include "object/local/local.h"
#include "s3/log/access_log.h"
#include "s3/gateway/capture.h"
#include "s3/gateway/gateway.h"
#include "s3/notify/notify.h"
#include "store/store.h"
#include "unit/http/server_lab.h"

struct sharded_home; /* unit/shard/sharded_home.h */

struct gate {
    struct lab lab;
    struct db *db;
    struct store *store;
    struct routes *routes;
    struct users *users;
    struct notify *notify;
    struct access_log *access_log;
    const char *dir; /* borrowed */
    struct gateway *gateway;
    struct sharded_home *shards; /* NULL: buckets are plain */
    int fd;
    char key_file[256]; /* of encryption */
    struct buf raw;     /* the last answer, which the rest points into */
    struct http_head head;
    struct str body;
    const char *payload; /* x-amz-content-sha256 instead of the body's hash; NULL: the hash */
};

/* Who signs; ids "alice-id" and "bob-id". */
enum who { ALICE, BOB, NOBODY };

void gate_start(struct gate *g);
void gate_start_in(struct gate *g, const char *dir); /* with its data in a folder of its own */
void gate_stop(struct gate *g);
/* Stops the gateway alone: routes, store and database are left, for the caller to close. */
void gate_stop_serving(struct gate *g);
/* Notifications with these limits instead, on the same outbox: what a restart does. */
void gate_notify(struct gate *g, const struct notify_options *limits);
/* For gate_start(), not for gate_start_in(); NULL: none. */
void gate_set_capture(const struct change_capture *capture);
/* Whether gateways that are started from now on serve every request on a thread that may wait. */
void gate_set_waits(bool waits);
/* The access log ended and opened again, with this interval. */
void gate_access_log(struct gate *g, uint64_t interval_ms, uint64_t waiting_max);

/* Every bucket that is made from now on is sharded, with its keys on several shards. */
void gate_shard(struct gate *g);

/* A test with a gateway and a bucket "box" of alice's, which runs twice: with plain buckets, and
 * with sharded ones. */
#define GATE_TEST(name)                                                                            \
    static void run_##name(struct gate *g);                                                        \
    TEST(gateway_sharded, name)                                                                    \
    {                                                                                              \
        struct gate g;                                                                             \
        gate_start(&g);                                                                            \
        gate_shard(&g);                                                                            \
        gate_do(&g, "PUT /box", 200);                                                              \
        run_##name(&g);                                                                            \
        gate_stop(&g);                                                                             \
    }                                                                                              \
    TEST(gateway, name)                                                                            \
    {                                                                                              \
        struct gate g;                                                                             \
        gate_start(&g);                                                                            \
        gate_do(&g, "PUT /box", 200);                                                              \
        run_##name(&g);                                                                            \
        gate_stop(&g);                                                                             \
    }                                                                                              \
    static void run_##name(struct gate *g)

/* One request; `headers` is "name: value\n" for each, or NULL; checks the status, unless
 * that is 0. */
void gate_ask(struct gate *g, enum who who, const char *request, const char *headers,
              struct str body, int status);
/* The same as alice without headers and body. */
void gate_do(struct gate *g, const char *request, int status);

/* The request line of `request`, presigned for a minute, appended; `headers` as in gate_ask() are
 * signed too. To be asked by NOBODY. */
void gate_presign(struct buf *out, enum who who, const char *request, const char *headers);

/* Reads the answer to what was sent by other means; not to HEAD. */
void gate_answer(struct gate *g);

/* What somebody signs with. */
struct user_key gate_key(enum who who);

/* The text between <name> and </name> in the answer, the first one; empty when there is none. */
struct str gate_element(struct gate *g, const char *name);
bool gate_has(struct gate *g, const char *text);
struct str gate_header(struct gate *g, const char *name);
/* The error's code. */
#define GATE_ERROR(g, want) CHECK_STR(gate_element((g), "Code"), STR(want))

#endif
