/* The parts of a remote storage. For its own files only; the invariants cited (M1, ...) are in
 * docs/remote-storage.md. */
#ifndef OBJECT_REMOTE_INT_H
#define OBJECT_REMOTE_INT_H

#include "base/map.h"
#include "http/upstream.h"
#include "object/remote.h"
#include "os/thread.h"
#include "sign/sign.h"

/* What a user signs with: counted, so that it can be replaced while it is in use. */
struct credential {
    _Atomic(size_t) refs;
    struct str user, access, secret; /* in `bytes` */
    size_t size;
    char bytes[];
};

struct credential_table {
    struct mutex lock; /* guards all */
    struct map by_user;
};

struct remote {
    struct storage storage;
    /* never change */
    struct upstream *upstream;
    struct sign_keys *keys;
    struct buf name, host, region; /* host[:port] as it goes into Host */
    bool virtual_host;

    struct credential_table credentials;

    /* the prober */
    struct thread prober;
    struct mutex lock; /* guards `stopping` */
    struct cond wake;
    bool stopping;
};

struct remote *remote_of(struct storage *s);
void remote_wake_prober(struct remote *r);

/* --- remote_credential.c --- */

void credential_table_init(struct credential_table *c);
void credential_table_release(struct credential_table *c);
/* A reference; NULL: the user has none. */
struct credential *credential_table_get(struct credential_table *c, struct str user);
/* Of any user; NULL: there are none. */
struct credential *credential_table_any(struct credential_table *c);
void credential_unref(struct credential *c); /* NULL is fine; wipes the last */

/* --- remote_request.c --- */

int remote_forward(struct storage *s, const struct forward_request *r, struct exchange **out,
                   struct err *err) MUST_CHECK;

#endif
