/* Checks whether the store is still the one that this process knew (docs/store-redis.md, "A store
 * that is not the one we knew", I1 to I7).
 *
 * An *installation* is a store and the processes that share it. The store has the installation's
 * id, and each data folder remembers that id. A process asks the store for the id every second, in
 * the same call that sends its *word*, the sign that the process lives (coord/lease.h). It also
 * asks before it replaces data in memory by data that it has read from the store. The process is
 * *halted* while the store is empty, has another id, or has lost changes of the configuration. Then
 * the stores refuse every call (store_set_watch()), and all parts that serve clients look at
 * installation_halted().
 *
 * Some calls of the store are *steps* with numbers, so that it is noticed when the store has lost
 * steps that it had acknowledged (coord/seen.h). The store then *went back in time*. Any thread may
 * call these functions. */
#ifndef COORD_INSTALLATION_H
#define COORD_INSTALLATION_H

#include "base/log.h"
#include "coord/seen.h"
#include "coord/shards_memory.h"

struct installation;

enum installation_state {
    INSTALLATION_UNASKED, /* the store was not reached yet */
    INSTALLATION_KNOWN,
    INSTALLATION_EMPTY, /* the store has no id, but the folder remembers one */
    INSTALLATION_OTHER, /* the store has another id than the folder remembers */
    INSTALLATION_OLDER, /* the store has lost changes of the configuration */
};

struct installation_options {
    struct store *config;      /* configDB; all pointers here are borrowed */
    struct store *app, *queue; /* appDB, queueDB; joined with `config`; NULL: replication is off */
    /* The data folder, which has the files `installation` and `installation.number`. */
    const char *folder;
    struct str boot;       /* the machine's boot id; empty: not known */
    bool shared;           /* the store is a Redis, which may lose acknowledged changes */
    const struct log *log; /* NULL: silent */
};
/* Reads the data folder's files and asks the store once. A store that cannot be reached is no
 * error: it is asked again later. */
int installation_open(struct installation **out, const struct installation_options *o,
                      struct err *err) MUST_CHECK;
/* Writes the installation's id to the data folder, if the folder remembers none yet. The start
 * calls this after it has found that this process's key file opens the users' secrets in the store.
 * So a start that fails before this call remembers nothing. */
int installation_keep(struct installation *i, struct err *err) MUST_CHECK;
/* Closes `i`, which no other thread may use any more. Tells the store that the process ends, if the
 * store can be reached. NULL is fine. */
void installation_close(struct installation *i);

/* --- asking --- */

/* Sends a word to the store (coord/lease.h), which says that the process with the id `process`
 * lives and holds this epoch of the policies. `process` empty: the caller holds no policies. The
 * call returns 0 when the store is the known one and has accepted the word. */
int installation_tell(struct installation *i, struct str process, int64_t epoch,
                      struct err *err) MUST_CHECK;
/* Asks the store whether it is the known one. Unlike installation_tell(), it names no process and
 * no epoch. This function and installation_why() are for struct store_watch. */
int installation_check(void *i, struct err *err) MUST_CHECK;
const _Atomic(bool) *installation_halted(const struct installation *i);
/* Returns ERR_STORE, with a text for clients that says why the process is halted. */
int installation_why(void *i, struct err *err);
/* Gives the object that numbers the steps of this data folder (coord/seen.h). NULL: steps have no
 * numbers. */
struct seen *installation_seen(struct installation *i);

struct installation_status {
    enum installation_state state;
    char id[ID_HEX_LEN + 1];    /* the id that the folder remembers */
    char found[ID_HEX_LEN + 1]; /* the id that the store has; empty unless it differs from `id` */
    uint64_t round;  /* grows each time that the store is found to have gone back in time */
    uint64_t config; /* number of changes of the configuration so far */
    /* The store went back in time, and some replications have not begun their copy again since. */
    bool back;
    /* Number of data folders whose processes have yet to report which steps the store had
     * acknowledged to them. Until then it is not known whether the store has lost changes. */
    uint64_t unsure;
    uint64_t runs; /* number of starts of the store's server that this process has seen */
};
/* Gives the store's last answer. Does not ask the store again. */
void installation_status(struct installation *i, struct installation_status *out);
/* Gives since when the store has remembered the words of this process. */
void installation_memory(struct installation *i, struct shards_memory *out);
/* Returns whether the store may have lost changes of objects after which the copies have not yet
 * been compared. Asks the store, and returns true when the store does not answer. `i` NULL:
 * false. */
bool installation_is_unsure(struct installation *i);
/* Gives the name of a state, such as "empty". */
const char *installation_state_name(enum installation_state state);

/* --- decisions of an administrator --- */

enum installation_accepted { ACCEPT_EMPTY, ACCEPT_OTHER, ACCEPT_OLDER };
/* Accepts the store as it is, because an administrator says that its contents are right.
 * ACCEPT_OTHER: this data folder belongs to the installation `id` from now on. ERR_CONFLICT: the
 * store is not in the state that `what` names. */
int installation_accept(struct installation *i, enum installation_accepted what, struct str id,
                        struct err *err) MUST_CHECK;
/* The next three calls restore the configuration. They are one begin, any number of pages of
 * commands for the store, and one end. ERR_CONFLICT: the store belongs to another installation, or
 * it has a configuration and `replace` is false. */
int installation_restore_begin(struct installation *i, bool replace, struct err *err) MUST_CHECK;
int installation_restore_page(struct installation *i, const struct store_args *commands,
                              size_t count, struct err *err) MUST_CHECK;
int installation_restore_end(struct installation *i, struct err *err) MUST_CHECK;

/* Tells the store that every replication has begun its copy again in this round
 * (installation_status.round). */
int installation_mended(struct installation *i, uint64_t round, struct err *err) MUST_CHECK;
/* Records that the data folder has a copy of the configuration on disk, made when the configuration
 * had been changed `config` times. From now on, also after a restart, a store with fewer changes
 * counts as a store that has lost changes. */
int installation_copied(struct installation *i, uint64_t config, struct err *err) MUST_CHECK;

#endif
