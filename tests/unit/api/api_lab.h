/* An API on a free port over a database in the test's folder, and calls to it. */
#ifndef TESTS_UNIT_API_API_LAB_H
#define TESTS_UNIT_API_API_LAB_H

#include "api/api.h"
#include "base/json.h"
#include "coord/replication.h"
#include "http/client.h"
#include "lake/room.h"
#include "replica/room.h"
#include "swarm/room.h"
#include "unit/test.h"

struct api_lab {
    struct conf *conf;
    struct db *db;
    struct store *stores[STORE_DATABASES]; /* joined */
    struct queue *queue;
    struct replications *replications;
    struct users *users;
    struct routes *routes;
    struct remotes *remotes;
    struct notify *notify;
    struct pool *pool;
    struct ready ready;
    struct services services;
    struct replica_room replica; /* the rooms' states; none of their parts runs */
    struct swarm_room swarm;
    struct lake_room lake;
    struct room_instance rooms[3];
    struct credentials root;
    struct api *api;
    struct client *client;
    struct arena arena;
    char url[SOCK_ADDR_TEXT + 8];
    struct client_response answer; /* the last */
    json_t *json;                  /* its body; NULL: not JSON */
};

void api_lab_start(struct api_lab *l);
void api_lab_stop(struct api_lab *l);

/* "POST /path" by whoever has these keys ("access:secret"; NULL: nobody); `body` NULL: none.
 * Checks the status. */
void api_call_as(struct api_lab *l, const char *keys, const char *request, const char *body,
                 int status);
/* By the first administrator. */
void api_call(struct api_lab *l, const char *request, const char *body, int status);

/* Of the last answer: a member of its object, and of its error. */
struct str api_text(struct api_lab *l, const char *member);
struct str api_error_code(struct api_lab *l);
struct str api_error_text(struct api_lab *l);

#endif
