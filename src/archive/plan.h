/* The plan of a sync: what to do with each repository of an account.
 *
 * The forge sends its list page by page. It does not send a page again that has not changed since
 * the last full sync; the record has the repositories of such a page. The plan joins the list and
 * the record. It has one item for each listed repository, in the order of the list. Then it has one
 * item for each repository of the record that the list lacks. Repositories are matched by the
 * forge's number, which stays when a repository is renamed (docs/archive.md, "When names change").
 *
 * One thread makes the plan. Later each item belongs to the thread that works on it. Nothing here
 * blocks. */
#ifndef ARCHIVE_PLAN_H
#define ARCHIVE_PLAN_H

#include "archive/record.h"
#include "base/map.h"

/* The steps that a repository may need. */
enum plan_step {
    PLAN_KEEP, /* none: the record's line stays unchanged */
    PLAN_SYNC, /* compare the refs with the server's, and fetch new objects */
    PLAN_ASK,  /* the list lacks the repository: ask the forge for it by its number */
};

struct plan_item {
    enum plan_step step;
    /* The record's line with the forge's number of this repository; NULL: it is new. */
    const struct record_repo *old;
    struct record_repo next;          /* the line of the next record, which the sync completes */
    uint64_t size_kb;                 /* as the forge reports it; 0: not known */
    bool disabled, foreign, has_wiki; /* see struct forge_repo */
    /* The repository was renamed, and another listed repository has its old name now. */
    bool old_name_taken;
    bool has_bundle, has_zip; /* the satellite has the objects that the record names */
    bool failed;              /* set by the sync: the repository is not done (outcome.h) */
};

/* A repository as the forge's list describes it. Strings are borrowed for the call. */
struct plan_listed {
    struct str id, name, pushed_at, url;
    uint64_t size_kb;
    bool disabled, foreign, has_wiki;
};

/* A page of the list, as the forge has answered. */
struct plan_page {
    struct str url, etag;
    size_t repos;
    bool unchanged; /* the forge did not send the page, because it is the same as in the record */
};

struct plan {
    const struct archive_record *old; /* borrowed; without a record it is empty */
    int64_t now_ms;
    /* Refs are compared at least this often, even if the list shows no push; 0: always. */
    uint64_t look_ms;
    VEC(struct plan_item) items;
    VEC(struct record_page) pages; /* for the next record */
    VEC(struct plan_item) sent;    /* items of the pages that were sent, until plan_end() */
    struct map by_id;              /* lines of the record by number */
    struct arena arena;
};

void plan_init(struct plan *p, const struct archive_record *old, int64_t now_ms);
void plan_release(struct plan *p);

/* Adds a repository of a page that the forge has sent, in the order of the list. ERR_TOO_LARGE:
 * there are too many. */
int plan_add(struct plan *p, const struct plan_listed *r, struct err *err) MUST_CHECK;
/* Ends the list: joins the repositories of all pages, and decides what to do with each.
 * ERR_CORRUPT: the pages do not fit the record or the repositories that were added. */
int plan_end(struct plan *p, const struct plan_page *pages, size_t count,
             struct err *err) MUST_CHECK;

#endif
