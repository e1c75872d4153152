/* The forges that weir knows, and their tokens. github.com is known from the start. Other forges
 * are in the configuration file (group `forges`), or were added while weir ran. Added forges are in
 * configDB, so every weir process on the same store knows them:
 *
 *   forges                set of hosts
 *   forge:<host>          hash: kind, api, git, bucket, wants
 *   forge_tokens:<host>   hash: id of a token -> the encrypted token
 *
 * If a host is in the configuration file, its entry in the store is ignored. Both replace the
 * built-in github.com. No two forges have the same bucket: an entry of the store that has the
 * bucket of another forge is logged and not used. Tokens are encrypted with the key file of the
 * data folder (route/seal.h). The id of a token is computed from the key file and the token. So the
 * id is the same in every weir process, and the token cannot be guessed from it. A change that was
 * made in another process takes effect here when its message arrives.
 *
 * A host that an administrator has named may have loopback or private addresses; the built-in
 * github.com may not. Tokens leave this module only in a session's requests. Any thread may call
 * these functions. */
#ifndef ARCHIVE_FORGES_H
#define ARCHIVE_FORGES_H

#include "archive/forge.h"
#include "archive/quota.h"

struct conf;

struct forges_options {
    struct store *config, *app;
    const char *key_file;    /* must exist */
    const struct conf *conf; /* for the group `forges`; NULL: no such group */
    const char *ca_file;     /* certificates of the forges' servers; NULL: the system's */
    /* Limit for one request, from its beginning to the last byte of the answer; at most 60 s. 0: 60
     * s. */
    uint64_t timeout_ms;
    unsigned rate; /* most requests a second with one token; 0: QUOTA_RATE_PER_S */
    const struct log *log;
};

int forges_open(struct forges **out, const struct forges_options *o, struct err *err) MUST_CHECK;
void forges_close(struct forges *f); /* after all sessions were closed; NULL is fine */
/* Reads the forges from the store again. */
int forges_reload(struct forges *f, struct err *err) MUST_CHECK;
struct quota *forges_quota(struct forges *f);

/* A change of a forge. An empty string keeps the value, or chooses the default for a new forge. */
struct forge_change {
    struct str host, api, git, bucket;
    bool has_kind, has_wants;
    enum forge_kind kind; /* must be given for a new host, except for github.com */
    struct forge_wants wants;
    const struct str *tokens; /* tokens to add */
    size_t token_count;
    /* Called when the forge would get another bucket than it has now. An error refuses the change.
     * NULL: the bucket may change. */
    int (*leaves)(void *ctx, struct str host, struct str bucket, struct err *err);
    void *ctx;
};
/* Adds a forge, or changes a stored one. The change is durable when this returns 0. *was_new is set
 * if the host was not stored before. ERR_INVALID: a value is not valid, or the host is in the
 * configuration file. ERR_CONFLICT: the bucket is that of another forge, which err names. */
int forges_set(struct forges *f, const struct forge_change *c, bool *was_new,
               struct err *err) MUST_CHECK;
/* Removes a stored forge and its tokens; github.com becomes the built-in one again. Objects in the
 * storages stay. ERR_NOT_FOUND: the host is not known. ERR_INVALID: the forge is built in, or in
 * the configuration file. */
int forges_remove(struct forges *f, struct str host, struct err *err) MUST_CHECK;
/* Removes one token of a stored forge. ERR_NOT_FOUND: there is no token with this id. */
int forges_remove_token(struct forges *f, struct str host, struct str id,
                        struct err *err) MUST_CHECK;

/* Finds a forge, without its tokens. Strings are in the arena of the call. */
int forges_find(struct forges *f, struct arena *a, struct str host, struct forge *out,
                struct err *err) MUST_CHECK; /* ERR_NOT_FOUND */
/* The bucket of a host, in the arena. If weir does not know the host, its default bucket.
 * ERR_CONFLICT: weir does not know the host, and that bucket is the one of another forge. */
int forges_bucket(struct forges *f, struct arena *a, struct str host, struct str *out,
                  struct err *err) MUST_CHECK;
/* All forges, sorted by host. */
int forges_list(struct forges *f, struct arena *a, struct forge **out, size_t *count,
                struct err *err) MUST_CHECK;

/* State of a host and its tokens: until when they rest, and their quotas. */
struct forge_state {
    struct quota_state host;
    /* In the arena. If the host has no live token, the last item is the state of requests without a
     * token. */
    struct quota_state *tokens;
    size_t token_count;
    int64_t until_ms; /* no request can be made before this time; 0: requests can be made */
};
int forges_state(struct forges *f, struct arena *a, struct str host, struct forge_state *out,
                 struct err *err) MUST_CHECK;
/* For the runners: the time until which no request can be sent to the host. *until_ms is as in
 * struct forge_state. The call is cheap, because it may return an answer that is up to a second
 * old. ERR_NOT_FOUND: weir does not know the host. */
int forges_rests(struct forges *f, struct str host, int64_t *until_ms, struct err *err) MUST_CHECK;

#endif
