/* Declarations that installation.c and installation_file.c share. */
#ifndef COORD_INSTALLATION_INT_H
#define COORD_INSTALLATION_INT_H

#include "coord/installation.h"
#include "os/thread.h"

enum { RUN_MAX = 96, BOOT_MAX = 64 };

/* The contents of the file `installation`. Each change replaces the whole file. */
struct remembered {
    char id[ID_HEX_LEN + 1];     /* the installation's id; empty: none is remembered */
    char folder[ID_HEX_LEN + 1]; /* this data folder's id, made by its first start */
    char run[RUN_MAX + 1];       /* run id of the store's server when the file was written */
    bool clean;                  /* written by an orderly stop, so `number` is final */
    uint64_t number;             /* the highest acknowledged number (coord/seen.h) */
    uint64_t config; /* number of changes of the configuration that its copy on disk includes */
};
/* Reads the file at `path`. ERR_NOT_FOUND: there is no such file. */
int remembered_read(struct remembered *out, const char *path, struct err *err) MUST_CHECK;
int remembered_write(const struct remembered *r, const char *path, struct err *err) MUST_CHECK;

/* The file `installation.number`, mapped into memory. It always has the highest acknowledged number
 * (coord/seen.h), even after the process was killed. After a crash of the machine the file is not
 * used. */
struct number_page {
    char magic[16], boot[BOOT_MAX];
    _Atomic(uint64_t) number;
};
/* Maps the file, and makes it if it does not exist. *kept is set to whether the file was written
 * since the machine's last start. */
int number_page_open(struct number_page **out, const char *path, struct str boot, bool *kept,
                     struct err *err) MUST_CHECK;
void number_page_close(struct number_page *p);

struct installation {
    struct installation_options o;
    struct buf path;
    struct number_page *page;
    struct seen seen;
    _Atomic(bool) halted;
    /* What the folder remembers. Only the thread that has set `asking` may use this member and the
     * next three. */
    struct remembered r;
    bool certain;      /* the highest acknowledged number is known for certain */
    bool kept;         /* the file `installation` exists */
    bool asked;        /* the store has answered at least once, and was the known one */
    struct mutex lock; /* class "installation"; guards the members below */
    struct installation_status status;
    struct shards_memory memory;
    /* True while a thread asks the store. Only one thread may ask at a time, so that an older
     * answer never follows a newer one. */
    bool asking;
    struct cond asked_last;
};

#endif
