/* The record of an account, `<h>/<login>.json`: what its last full sync found and stored.
 *
 * Writing the record is the last step of a full sync, so it is the commit point of the sync
 * (docs/archive.md, A2). A record is JSON lines. The first line describes the account in at most 4
 * KiB, so a read of 4 KiB is enough to learn the state of the account. Then follow lines for the
 * pages of the forge's list and for the last errors, and one line for each repository: first the
 * listed ones, in the order of the list, then those that are not listed any more. Records are read
 * and written line by line.
 *
 * A struct archive_record belongs to one thread. Nothing in this file blocks, except reads from the
 * given reader. */
#ifndef ARCHIVE_RECORD_H
#define ARCHIVE_RECORD_H

#include "archive/outcome.h"
#include "base/vec.h"
#include "os/stream.h"

enum {
    RECORD_HEAD_MAX = 4 * 1024,  /* most bytes of the first line */
    RECORD_LINE_MAX = 16 * 1024, /* most bytes of any other line */
    RECORD_PAGES_MAX = 4000,
    RECORD_ERRORS_MAX = 20,
    RECORD_REPOS_MAX = 500 * 1000,
    RECORD_VERSION = 1,
};

struct record_account {
    struct str login;          /* as the forge spells it */
    struct str id;             /* the forge's number; it stays when the account is renamed */
    struct str type;           /* "User", "Organization" or the forge's other word */
    int64_t added_ms;          /* 0: not known */
    int64_t last_full_sync_ms; /* when the last full sync began */
    int64_t gists_ms;          /* start of the last sync that saved all gists; 0: there was none */
    struct str wants; /* the options that the sync had, such as "zip,wikis"; empty: not known */
    uint64_t repos_listed, repos_stored, bytes;
    uint64_t fence; /* fence (number) of the lock under which the record was written (A5) */
    uint32_t epoch; /* epoch (number) of the table of slots at that time */
};

/* A page of the forge's list of repositories. If the page's ETag is unchanged, weir takes its
 * repositories from the record. */
struct record_page {
    struct str url, etag;
    size_t repos; /* how many of the listed repositories are on this page */
};

struct record_error {
    int64_t at_ms;
    enum archive_code code;
    struct str repo, message;
};

struct record_repo {
    struct str id; /* the forge's number; it stays when the repository is renamed */
    struct str name;
    struct str pushed_at;   /* in the forge's own notation */
    struct str refs_digest; /* digest of the refs in the bundle; empty: there is no bundle */
    struct str etag;        /* ETag of the bundle */
    struct str zip;     /* id of the commit that the ZIP was made from; empty: there is no ZIP */
    struct str url;     /* clone URL, if it is not `<forge>/<login>/<name>.git` */
    struct str extra;   /* a JSON object with the state of options such as releases; or empty */
    uint64_t bytes;     /* size of the bundle */
    int64_t updated_ms; /* when the bundle was last written */
    int64_t looked_ms;  /* when the refs were last compared with the server's */
    enum archive_code code;
    bool listed; /* the repository is in the forge's list */
};

struct archive_record {
    struct record_account account;
    VEC(struct record_page) pages;
    VEC(struct record_error) errors; /* newest last */
    VEC(struct record_repo) repos;   /* listed ones first */
    struct arena arena;              /* memory of the strings that were read */
};

void archive_record_init(struct archive_record *r);
void archive_record_release(struct archive_record *r);

/* Reads a record; `r` must be initialised and empty. ERR_CORRUPT: a line does not have the form
 * that weir writes; err names the line. ERR_VERSION: a newer weir has written it. ERR_TOO_LARGE:
 * the record is past a limit. */
int archive_record_read(struct archive_record *r, struct reader *from, struct err *err) MUST_CHECK;
/* Reads the account from the first bytes of a record, which must include the whole first line.
 * Strings are in the arena. The errors are those of archive_record_read(). */
int archive_record_read_head(struct record_account *out, struct arena *a, struct str head,
                             struct err *err) MUST_CHECK;

/* Appends an error. When there are too many, the oldest one is dropped. Strings are copied. */
void archive_record_add_error(struct archive_record *r, const struct record_error *e);

/* A reader of a record's text, which is made one line at a time. The record must not change
 * meanwhile. */
struct record_text {
    struct reader reader;
    const struct archive_record *record; /* borrowed */
    size_t at;                           /* number of the next line */
    struct buf line;
    size_t taken; /* bytes of `line` that were read */
};
void archive_record_text_init(struct record_text *t, const struct archive_record *r);
void archive_record_text_release(struct record_text *t);
/* The length of the text in bytes. */
uint64_t archive_record_text_size(const struct archive_record *r);

#endif
