/* Whether the store is still the one that this process knew (docs/store-redis.md, "A store that is
 * not the one we knew", I1 to I7).
 *
 * An *installation* is a store and the processes that share it. The store has the installation's
 * id, and each data folder remembers that id. A process asks the store for it every second, with
 * the word by which it tells that it lives (coord/lease.h), and before it replaces what it holds in
 * memory by what it has read. While the store is empty, has another id, or has lost changes of the
 * configuration, the process is *halted*: the stores refuse every call (store_set_watch()), and all
 * parts that serve clients look at installation_halted(). Any thread. */
#ifndef COORD_INSTALLATION_H
#define COORD_INSTALLATION_H

#include "base/log.h"
#include "coord/seen.h"

struct installation;

enum installation_state {
    INSTALLATION_UNASKED, /* the store was not reached yet */
    INSTALLATION_KNOWN,
    INSTALLATION_EMPTY, /* the store has no id, but the folder remembers one */
    INSTALLATION_OTHER, /* the store has another id than the folder remembers */
    INSTALLATION_OLDER, /* the store has lost changes of the configuration */
};

struct installation_options {
    struct store *config;      /* borrowed, as all of these */
    struct store *app, *queue; /* joined with it; NULL: replication is off */
    const char *folder;    /* the data folder; its files `installation`, `installation.number` */
    struct str boot;       /* id of this start of the machine */
    bool shared;           /* the store is a Redis, which may lose what it has acknowledged */
    const struct log *log; /* NULL: silent */
};
/* Asks the store once. A store that cannot be reached is no error: it is asked again later. */
int installation_open(struct installation **out, const struct installation_options *o,
                      struct err *err) MUST_CHECK;
/* Writes the store's id to the data folder. Called when the start has found that the store can be
 * used (the users' secrets are sealed with this key file), so that a start that fails remembers
 * nothing. */
int installation_keep(struct installation *i, struct err *err) MUST_CHECK;
/* No other thread uses it any more. Tells the store that the process ends, if it can be reached.
 * NULL is fine. */
void installation_close(struct installation *i);

/* --- asking --- */

/* Sends a word: the process `process` holds this epoch (coord/gateways.h). `process` empty: the
 * caller holds no policies. 0: the store is the known one, and has taken the word. */
int installation_tell(struct installation *i, struct str process, int64_t epoch,
                      struct err *err) MUST_CHECK;
/* Asks without telling anything. For struct store_watch, with installation_why(). */
int installation_check(void *i, struct err *err) MUST_CHECK;
const _Atomic(bool) *installation_halted(const struct installation *i);
/* ERR_STORE, with a text that clients may see. */
int installation_why(void *i, struct err *err);
/* The numbers of acknowledged steps; NULL: steps have no numbers. */
struct seen *installation_seen(struct installation *i);

struct installation_status {
    enum installation_state state;
    char id[ID_HEX_LEN + 1];    /* the id that the folder remembers */
    char found[ID_HEX_LEN + 1]; /* the id that the store has; empty unless it is another one */
    uint64_t round;             /* grows each time that the store was found to have gone back */
    uint64_t config;            /* changes of the configuration so far */
    bool back;                  /* the store went back, and not all copies were begun anew since */
    uint64_t unsure; /* data folders that have yet to say what was acknowledged to them */
    uint64_t runs;   /* starts of the store's server that this process has seen */
};
/* The answers of the last time that the store was asked. */
void installation_status(struct installation *i, struct installation_status *out);
/* Whether the store may have lost changes of objects, and the copies were not compared since. Asks
 * the store; true when that fails. NULL: false. */
bool installation_is_unsure(struct installation *i);
const char *installation_state_name(enum installation_state state); /* "empty" */

/* --- what an administrator says --- */

enum installation_accepted { ACCEPT_EMPTY, ACCEPT_OTHER, ACCEPT_OLDER };
/* The administrator says that the store is right as it is. ACCEPT_OTHER: this data folder belongs
 * to the installation `id` from now on. ERR_CONFLICT: the store is not in the state that `what`
 * says. */
int installation_accept(struct installation *i, enum installation_accepted what, struct str id,
                        struct err *err) MUST_CHECK;
/* Restores the configuration by commands for the store: begin, then any number of pages, then end.
 * ERR_CONFLICT: the store belongs to another installation, or it has a configuration and `replace`
 * is false. */
int installation_restore_begin(struct installation *i, bool replace, struct err *err) MUST_CHECK;
int installation_restore_page(struct installation *i, const struct store_args *commands,
                              size_t count, struct err *err) MUST_CHECK;
int installation_restore_end(struct installation *i, struct err *err) MUST_CHECK;

/* Tells the store that all copies were begun anew in this round. */
int installation_mended(struct installation *i, uint64_t round, struct err *err) MUST_CHECK;
/* A copy of the configuration is on disk, made after this number of changes. From now on, and for
 * the next start too, a store with fewer changes has lost some. */
int installation_copied(struct installation *i, uint64_t config, struct err *err) MUST_CHECK;

#endif
