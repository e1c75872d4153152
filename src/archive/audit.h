/* Audits and tidying: real git reads a whole bundle (docs/archive.md, "Audits").
 *
 * The check of a pack that flows by (pack.h) cannot tell ids of objects, nor whether all objects
 * are there. An audit can: it copies the bundle to scratch, and runs `git index-pack`, which
 * computes every id, and `git fsck --connectivity-only` from all refs and lines of history. It
 * counts objects that the pack has twice, which decides whether the pack can be served (serve.h).
 * The verdict is an object beside the bundle, `<repository>@audit.json`, and names the ETag of the
 * bundle that it is about.
 *
 * Tidying does an audit, then `git repack -adf`, and stores the new pack behind the same header, so
 * all lines of history stay. The bundle is replaced only if it is still the one that was read.
 *
 * Both are tasks of the queue `archive`. They wait, and run git as a child process (git.h). */
#ifndef ARCHIVE_AUDIT_H
#define ARCHIVE_AUDIT_H

#include "archive/bundle.h"

enum {
    AUDIT_ETAG_MAX = 127,
    AUDIT_WORDS_MAX = 511,
    AUDIT_TEXT_MAX = 4096,    /* bytes of a verdict's object */
    AUDIT_APPENDS_MAX = 20,   /* a bundle that was appended to so often is tidied */
    AUDIT_SAMPLE = 100,       /* one of so many repositories is audited each week */
    AUDIT_GROWN_PERCENT = 25, /* a bundle that grew by this much since it was tidied is tidied */
};

/* What an audit has found out about one bundle. */
struct audit_verdict {
    char etag[AUDIT_ETAG_MAX + 1]; /* of the bundle */
    int64_t at_ms;                 /* since 1970 */
    bool ok;
    uint64_t bytes;                  /* of the bundle */
    uint64_t objects, doubles;       /* entries of the pack; entries whose object is there before */
    uint64_t tidied_bytes;           /* of the bundle when it was last tidied; 0: never */
    char words[AUDIT_WORDS_MAX + 1]; /* what is wrong; empty if ok */
};

void audit_verdict_write(struct buf *out, const struct audit_verdict *v);
/* ERR_CORRUPT: the text is not a verdict. */
int audit_verdict_read(struct audit_verdict *out, struct str text, struct err *err) MUST_CHECK;

struct audit_job {
    struct bucket *bucket;
    struct arena *arena;
    struct str key;       /* of the bundle */
    struct str verdict;   /* key of the verdict */
    const char *scratch;  /* a folder; exists */
    uint64_t scratch_max; /* bytes of a bundle that is copied there; 0: no limit */
    /* Ends the work when true is returned. May be NULL. */
    bool (*stop)(void *ctx);
    void *ctx;
    uint64_t timeout_ms; /* of each run of git; 0: none */
};

/* Reads the stored verdict. ERR_NOT_FOUND: there is none. A verdict that cannot be read is none. */
int audit_look(struct audit_verdict *out, const struct audit_job *job, struct err *err) MUST_CHECK;

/* Audits the bundle and stores the verdict. A damaged bundle is no error: the verdict says it.
 * ERR_NOT_FOUND: there is no bundle. ERR_UNSUPPORTED: git is not installed. ERR_TOO_LARGE: the
 * bundle is larger than scratch. ERR_CANCELED. */
int audit_run(struct audit_verdict *out, const struct audit_job *job, struct err *err) MUST_CHECK;

struct tidy_result {
    uint64_t before, after; /* bytes of the bundle */
    bool changed;           /* false: the new pack was not smaller, and the old one stays */
};
/* Audits the bundle and repacks it. ERR_CORRUPT: the audit found it damaged, so nothing was
 * changed. ERR_PRECONDITION: the bundle changed meanwhile. Other errors are those of audit_run().
 */
int tidy_run(struct tidy_result *out, const struct audit_job *job, struct err *err) MUST_CHECK;

/* What to do about a bundle after a sync looked at it. */
enum audit_due { AUDIT_NOTHING, AUDIT_AUDIT, AUDIT_TIDY };
/* `name` tells repositories apart, such as `github.com/octocat/Hello-World`. The verdict may be
 * NULL. Each week another hundredth of all repositories is due for an audit. */
enum audit_due audit_is_due(struct str name, const struct bundle_meta *meta, uint64_t bytes,
                            const struct audit_verdict *v, int64_t now_s);

#endif
