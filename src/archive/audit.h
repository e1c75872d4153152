/* Audits and tidying: real git reads a whole bundle (docs/archive.md, "Audits").
 *
 * The check of a pack during its transfer (pack.h) can neither compute the ids of objects nor tell
 * whether all objects are there. An audit can: it copies the bundle to scratch, and runs `git
 * index-pack`, which computes every id, and `git fsck --connectivity-only` from all refs and lines
 * of history. It counts objects that the pack has twice, which decides whether the pack can be
 * served (serve.h). The verdict is an object beside the bundle, `<repository>@audit.json`, and
 * names the ETag of the bundle that it is about.
 *
 * Tidying does an audit, then `git repack -adf`, and stores the new pack behind the same header, so
 * all lines of history stay. The bundle is replaced only if it is still the one that was read.
 *
 * Both are tasks of the queue `archive`. Their functions block, and run git as a child process
 * (git.h). */
#ifndef ARCHIVE_AUDIT_H
#define ARCHIVE_AUDIT_H

#include "archive/bundle.h"

enum {
    AUDIT_ETAG_MAX = 127,
    AUDIT_WORDS_MAX = 511,
    AUDIT_TEXT_MAX = 4096,  /* most bytes of a verdict's object */
    AUDIT_APPENDS_MAX = 20, /* a bundle with this many appended packs is tidied */
    AUDIT_SAMPLE = 100,     /* each week, one in this many repositories is audited */
    /* A bundle that has grown by this much since it was last tidied is tidied again. */
    AUDIT_GROWN_PERCENT = 25,
};

/* The result of an audit of one bundle. */
struct audit_verdict {
    char etag[AUDIT_ETAG_MAX + 1]; /* ETag of the bundle */
    int64_t at_ms;                 /* time of the audit, ms since 1970 */
    bool ok;
    uint64_t bytes;            /* size of the bundle */
    uint64_t objects, doubles; /* entries of the pack; entries that repeat an object */
    uint64_t tidied_bytes;     /* size of the bundle when it was last tidied; 0: it never was */
    char words[AUDIT_WORDS_MAX + 1]; /* describes the damage; empty if the bundle is fine */
};

void audit_verdict_write(struct buf *out, const struct audit_verdict *v);
/* ERR_CORRUPT: the text is not a verdict. */
int audit_verdict_read(struct audit_verdict *out, struct str text, struct err *err) MUST_CHECK;

struct audit_job {
    struct bucket *bucket;
    struct arena *arena;
    struct str key;       /* key of the bundle */
    struct str verdict;   /* key of the verdict */
    const char *scratch;  /* an existing folder for scratch files */
    uint64_t scratch_max; /* the largest bundle, in bytes, that is copied to scratch; 0: no limit */
    /* Called from time to time; when it returns true, the work ends with ERR_CANCELED. May be
     * NULL. */
    bool (*stop)(void *ctx);
    void *ctx;
    uint64_t timeout_ms; /* limit for each run of git; 0: no limit */
};

/* Reads the stored verdict. ERR_NOT_FOUND: there is none. A verdict that cannot be parsed counts as
 * missing. */
int audit_look(struct audit_verdict *out, const struct audit_job *job, struct err *err) MUST_CHECK;

/* Audits the bundle and stores the verdict. A damaged bundle is not an error of the call; the
 * verdict describes the damage. ERR_NOT_FOUND: there is no bundle. ERR_UNSUPPORTED: git is not
 * installed. ERR_TOO_LARGE: the bundle is larger than scratch_max. ERR_CANCELED. */
int audit_run(struct audit_verdict *out, const struct audit_job *job, struct err *err) MUST_CHECK;

struct tidy_result {
    uint64_t before, after; /* size of the bundle in bytes */
    bool changed;           /* false: the new pack was not smaller, and the old one stays */
};
/* Audits the bundle and repacks it. ERR_CORRUPT: the audit found it damaged, so nothing was
 * changed. ERR_PRECONDITION: the bundle changed meanwhile. Other errors are those of audit_run().
 */
int tidy_run(struct tidy_result *out, const struct audit_job *job, struct err *err) MUST_CHECK;

/* The work that a bundle needs after a sync. */
enum audit_due { AUDIT_NOTHING, AUDIT_AUDIT, AUDIT_TIDY };
/* Decides what to do with a bundle after a sync. `name` is the name of the repository, such as
 * `github.com/octocat/Hello-World`. The verdict may be NULL. Each week another hundredth of all
 * repositories is due for an audit. */
enum audit_due audit_is_due(struct str name, const struct bundle_meta *meta, uint64_t bytes,
                            const struct audit_verdict *v, int64_t now_s);

#endif
