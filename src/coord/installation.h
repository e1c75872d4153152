/* Whether the store is the one that this process knew (docs/store-redis.md, "A store that is not
 * the one we knew", I1 to I7).
 *
 * A store has an id, the installation's; a data folder remembers it. Every second, with the word by
 * which the process tells that it lives, and whenever what was read of the store is to count, the
 * store is asked. While it is empty, another's, or has lost changes of the configuration, the
 * process is halted: the stores refuse every call (store_set_watch()), and whoever serves looks at
 * installation_halted(). Any thread. */
#ifndef COORD_INSTALLATION_H
#define COORD_INSTALLATION_H

#include "base/log.h"
#include "coord/seen.h"

struct installation;

enum installation_state {
    INSTALLATION_UNASKED, /* the store was not reached yet */
    INSTALLATION_KNOWN,
    INSTALLATION_EMPTY, /* it has no id, and the folder remembers one */
    INSTALLATION_OTHER, /* it has another id than the folder remembers */
    INSTALLATION_OLDER, /* it has lost changes of the configuration */
};

struct installation_options {
    struct store *config;      /* borrowed, as all of these */
    struct store *app, *queue; /* joined with it; NULL: replication is off */
    const char *folder;    /* the data folder; its files `installation`, `installation.number` */
    struct str boot;       /* this start of the machine */
    bool shared;           /* the store is no part of this process, and may lose what it took */
    const struct log *log; /* NULL: silent */
};
/* Asks the store once; one that cannot be asked is asked later. */
int installation_open(struct installation **out, const struct installation_options *o,
                      struct err *err) MUST_CHECK;
/* Remembers the store. Once the start has found that it can be used (the users' secrets are sealed
 * with this key file): a start that fails remembers nothing. */
int installation_keep(struct installation *i, struct err *err) MUST_CHECK;
/* Nobody uses it any more; the store is told, if it can be. NULL is fine. */
void installation_close(struct installation *i);

/* --- asking --- */

/* The process tells of itself (coord/gateways.h). `process` empty: it holds no policies. 0: the
 * store is the known one and has taken the word. */
int installation_tell(struct installation *i, struct str process, int64_t epoch,
                      struct err *err) MUST_CHECK;
/* Asks and tells nothing. For struct store_watch, with installation_why(). */
int installation_check(void *i, struct err *err) MUST_CHECK;
const _Atomic(bool) *installation_halted(const struct installation *i);
/* ERR_STORE with words for whoever asks, a client too. */
int installation_why(void *i, struct err *err);
/* NULL: what the store acknowledges has no numbers. */
struct seen *installation_seen(struct installation *i);

struct installation_status {
    enum installation_state state;
    char id[ID_HEX_LEN + 1];    /* that the folder remembers */
    char found[ID_HEX_LEN + 1]; /* that the store has, when it is another's */
    uint64_t round;             /* grows each time that the store has gone back */
    uint64_t config;            /* count of the changes of the configuration */
    bool back;                  /* copies have yet to be begun anew */
    uint64_t unsure;            /* data folders that have yet to vouch */
    uint64_t runs; /* how often the store was found to be another run of itself, or the first */
};
/* As it was when the store was last asked. */
void installation_status(struct installation *i, struct installation_status *out);
/* Whether the store may have lost changes that nobody has compared yet: asks it first. What cannot
 * be found out is so. NULL: no. */
bool installation_is_unsure(struct installation *i);
const char *installation_state_name(enum installation_state state); /* "empty" */

/* --- what an administrator says --- */

enum installation_accepted { ACCEPT_EMPTY, ACCEPT_OTHER, ACCEPT_OLDER };
/* The store is right as it is. ACCEPT_OTHER: this data folder belongs to the installation `id` from
 * now on. ERR_CONFLICT: the store is not what is said. */
int installation_accept(struct installation *i, enum installation_accepted what, struct str id,
                        struct err *err) MUST_CHECK;
/* Puts commands that make the configuration into the store: begin, any number of times page, end.
 * ERR_CONFLICT: the store is another's, or has a configuration and `replace` is not said. */
int installation_restore_begin(struct installation *i, bool replace, struct err *err) MUST_CHECK;
int installation_restore_page(struct installation *i, const struct store_args *commands,
                              size_t count, struct err *err) MUST_CHECK;
int installation_restore_end(struct installation *i, struct err *err) MUST_CHECK;

/* All copies of the round were begun anew. */
int installation_mended(struct installation *i, uint64_t round, struct err *err) MUST_CHECK;
/* A copy of the configuration with this count of changes is on disk: from now on a store with less
 * has lost some, also for the next start. */
int installation_copied(struct installation *i, uint64_t config, struct err *err) MUST_CHECK;

#endif
