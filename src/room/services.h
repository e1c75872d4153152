/* The services that the rooms of one running weir share. The server opens these services, in the
 * order of this struct, and lends them to the parts of every room (room/room.h). A room never
 * closes a service.
 *
 * The comment above each group of members names a stage. The group is valid from that stage until
 * the parts of that stage have stopped. Only the main thread writes the struct, while it starts and
 * stops parts; the header of each service says which threads may use the service. */
#ifndef ROOM_SERVICES_H
#define ROOM_SERVICES_H

#include "base/log.h"
#include "conf/conf.h"
#include "object/bucket.h"
#include "os/process.h"
#include "room/ready.h"
#include "store/store.h"

struct access_log;
struct bucket_sides;
struct change_capture;
struct http_server;
struct installation;
struct kv;
struct lease;
struct locks;
struct notify;
struct object_torrents;
struct queue;
struct remote_entry;
struct remotes;
struct replications;
struct routes;
struct user;
struct users;

/* The databases of the coordination store, as indexes of services.stores. When services.joined is
 * set, one script may use the first JOINED_DATABASES of them together. */
enum service_database {
    APP_DB,
    QUEUE_DB,
    LOCK_DB,
    CONFIG_DB,
    JOINED_DATABASES,
    SWARM_DB = JOINED_DATABASES
};

/* Interfaces that rooms provide for the gateway and the API. A part sets a member at ROOM_STORAGES
 * or ROOM_WORK, because the gateway reads them when it starts. NULL: no room provides this
 * interface. */
struct room_hooks {
    const struct change_capture *capture; /* captures changes of objects: s3/gateway/capture.h */
    /* Chooses between the storages of a bucket that is being switched: route/sides.h. */
    const struct bucket_sides *sides;
    const struct object_torrents *torrents; /* serves objects as torrents: s3/gateway/torrent.h */
    /* Whether lifecycle rules must not change the bucket, and its keys must not move between
     * shards, for now. */
    bool (*rests)(void *ctx, const struct storage *storage, struct str bucket);
    void *rests_ctx;
    /* Whether keys of the bucket are moving between shards at this moment. Who makes rests() true
     * first, and then finds moves() false, knows that no key moves until rests() is false. */
    bool (*moves)(void *ctx, const struct storage *storage, struct str bucket);
    void *moves_ctx;
    /* Asked before a user is removed. An error says that a room needs the user, or cannot tell
     * whether it does; then the user is not removed. */
    int (*user_needed)(void *ctx, const struct user *user, struct err *err);
    void *user_needed_ctx;
};

/* An HTTP server of this process, for its metrics. */
struct named_server {
    const char *name; /* the value of the label "server" */
    struct http_server *server;
};
enum { SERVICES_SERVERS_MAX = 8 };

struct services {
    /* Valid always. */
    const struct conf *conf; /* the configuration at the start; a reload does not replace it */
    const char *only;        /* roles with commas between them; NULL: every role */
    const struct log *log;
    struct ready *ready;
    /* The time by which a stop must have ended, by clock_mono_ns(); 0: weir is not stopping. When a
     * part is stopped late, the time is set later, so that the part has at least a second. */
    uint64_t deadline_ns;
    char boot[PROCESS_BOOT_LEN + 1]; /* identifies the boot of the machine */

    /* Valid from ROOM_STORAGES on. */
    struct store *stores[STORE_DATABASES]; /* indexed by enum service_database */
    bool joined;
    struct installation *installation;
    struct kv *kv; /* the records of the lake: kv/kv.h */
    struct queue *queue;
    struct locks *locks;
    struct replications *replications; /* NULL: the stores are not joined, so replication is off */
    struct users *users;
    struct routes *routes;
    struct remotes *remotes;
    /* The lease of the process (coord/lease.h). It starts after the parts of ROOM_STORAGES, which
     * may add functions to it. */
    struct lease *lease;

    /* Valid from ROOM_WORK on. */
    struct notify *notify;
    struct access_log *access_log;

    /* Valid from ROOM_LISTEN on. */
    struct pool *pool;
    /* A part adds the server that it has started, and removes it before it stops the server. */
    struct named_server servers[SERVICES_SERVERS_MAX];
    size_t server_count;

    /* Set when all parts have started; NULL: this process is not a gateway. */
    struct http_server *s3;

    struct room_hooks hooks;
};

/* Whether this process has the role: "gateway", "worker", or the role of a room. */
bool services_has_role(const struct services *s, const char *role);

/* Checks that replication is on. ERR_UNSUPPORTED: replication is off; the text says what to do. */
int services_need_replication(const struct services *s, struct err *err) MUST_CHECK;

/* Gets the entry of a remote storage (route/remotes.h), in the arena. ERR_NOT_FOUND: there is no
 * remote storage with that name. */
int services_find_remote(const struct services *s, struct arena *a, struct str name,
                         struct remote_entry *out, struct err *err) MUST_CHECK;

/* Appends the path "<data folder>/<name>". */
void services_path(const struct services *s, const char *name, struct buf *out);

void services_add_server(struct services *s, const char *name, struct http_server *server);
void services_remove_server(struct services *s,
                            const struct http_server *server); /* `server` may be NULL */

/* Puts "api.listen (weir.yaml:3): ..." in front of the error's text, because the value of this
 * configuration key led to the error. Returns `code`. */
int services_blame_key(const struct services *s, const char *key, int code, struct err *err);

#endif
