/* Between the files of the installation. */
#ifndef COORD_INSTALLATION_INT_H
#define COORD_INSTALLATION_INT_H

#include "coord/installation.h"
#include "os/thread.h"

enum { RUN_MAX = 96, BOOT_MAX = 64 };

/* The file `installation`: written whole, by a rename, when one of these changes. */
struct remembered {
    char id[ID_HEX_LEN + 1];     /* empty: nothing is remembered */
    char folder[ID_HEX_LEN + 1]; /* of this data folder, made by its first start */
    char run[RUN_MAX + 1];       /* of the store, when it was last written */
    bool clean;                  /* by a stop in order: the number is the last one */
    uint64_t number, config;
};
/* ERR_NOT_FOUND: there is none. */
int remembered_read(struct remembered *out, const char *path, struct err *err) MUST_CHECK;
int remembered_write(const struct remembered *r, const char *path, struct err *err) MUST_CHECK;

/* The file `installation.number`, mapped: the number as it grows, which outlives a kill of the
 * process, and is not looked at after a crash of the machine. */
struct number_page {
    char magic[16], boot[BOOT_MAX];
    _Atomic(uint64_t) number;
};
/* *kept: it is of this start of the machine. */
int number_page_open(struct number_page **out, const char *path, struct str boot, bool *kept,
                     struct err *err) MUST_CHECK;
void number_page_close(struct number_page *p);

struct installation {
    struct installation_options o;
    struct buf path;
    struct number_page *page;
    struct seen seen;
    _Atomic(bool) halted;
    struct remembered r; /* of who is asking, as what follows */
    bool certain;        /* no number above the one that is known was acknowledged */
    bool kept;           /* the file is there */
    bool asked;          /* the store has said once that it is the known one */
    struct mutex lock;   /* class "installation"; guards what follows */
    struct installation_status status;
    bool asking; /* one at a time, so that an older answer never follows a newer */
    struct cond asked_last;
};

#endif
