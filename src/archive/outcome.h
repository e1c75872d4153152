/* The outcomes with which the sync of a repository, or of an account, ends.
 *
 * Each outcome has a code, which is the same word in `.error` objects, in records, on the command
 * line and in metrics. After a *done* outcome the repository needs no further try: it is stored, or
 * weir cannot store it at all (it is empty, blocked or deleted). A repository with any other
 * outcome is tried again. A sync of an account is a full sync only when every repository is done
 * (docs/archive.md, A4).
 *
 * An `.error` object is text for people: one line `<RFC 3339 time> <code> <stage> <message>`, then
 * lines `key: value`. Nothing in this file blocks. */
#ifndef ARCHIVE_OUTCOME_H
#define ARCHIVE_OUTCOME_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

enum archive_code {
    ARCHIVE_OK,        /* stored now */
    ARCHIVE_UNCHANGED, /* stored before, and the refs are the same */
    ARCHIVE_RENAMED,   /* the repository has another name or owner; the old objects stay */
    ARCHIVE_GONE,      /* deleted at the forge; the saved objects stay */
    ARCHIVE_DMCA,      /* blocked by the forge after a copyright notice */
    ARCHIVE_TOS,       /* blocked by the forge under its terms of service */
    ARCHIVE_DISABLED,  /* switched off at the forge */
    ARCHIVE_EMPTY,     /* has no commits; an empty bundle is stored */
    ARCHIVE_TOO_BIG,   /* larger than a limit of the configuration */
    ARCHIVE_AUTH,      /* the server wants another token, or hides the repository */
    ARCHIVE_RATE,      /* the server asks weir to come back later */
    ARCHIVE_TIMEOUT,   /* the server sent nothing for too long, or was too slow */
    ARCHIVE_HTTP_5XX,  /* the server failed, or cannot be reached */
    ARCHIVE_PROTOCOL,  /* the server's answer breaks the protocol */
    ARCHIVE_REDIRECT,  /* the server redirects to a place where weir may not go */
    ARCHIVE_CORRUPT,   /* the stored bundle, or the received pack, is damaged */
    ARCHIVE_STORAGE,   /* the satellite failed */
    ARCHIVE_CODES
};

struct archive_code_row {
    const char *name;
    /* The outcome is a done outcome: it does not prevent a full sync, and the repository is not
     * tried again at once. */
    bool permanent;
    bool stored;         /* after this outcome the bundle has everything that the server showed */
    const char *meaning; /* one sentence for people */
};
/* Indexed by enum archive_code. */
extern const struct archive_code_row archive_codes[ARCHIVE_CODES];

/* The code with this name. ERR_PARSE: there is none. */
int archive_code_read(enum archive_code *out, struct str name) MUST_CHECK;
/* The code for an error of base/err.h that came from a server, if nothing more is known about
 * it. */
enum archive_code archive_code_of_peer(int code);
/* The code for an error of base/err.h that came from a satellite. */
enum archive_code archive_code_of_storage(int code);

/* Returns the name of a step of a sync as a static text. NULL: there is no such step. */
const char *archive_stage(struct str name);

enum { ARCHIVE_MESSAGE_MAX = 1024, ARCHIVE_ERROR_MAX = 8 * 1024 };

/* The content of an `.error` object. Strings are borrowed. Members that are empty or 0 are not
 * written. */
struct archive_error {
    int64_t at_ms; /* ms since 1970 */
    enum archive_code code;
    const char *stage;                   /* "list", "refs", "fetch", "verify", "zip" or "upload" */
    struct str message;                  /* weir's message and the server's message, on one line */
    int http_status;                     /* 0: there was no answer */
    unsigned attempts;                   /* number of failures with this code in a row */
    int64_t first_seen_ms, last_good_ms; /* 0: not known */
    struct str worker, request_id, block_reason;
};

/* Appends the text of an `.error` object. A message is cut at ARCHIVE_MESSAGE_MAX bytes, and its
 * control characters become blanks. */
void archive_error_write(struct buf *out, const struct archive_error *e);
/* Parses the text; strings are borrowed from it. Lines with other keys are ignored. ERR_PARSE: the
 * text does not have the form of an `.error` object. */
int archive_error_read(struct archive_error *out, struct str text, struct err *err) MUST_CHECK;

#endif
