/* Declarations that the files of the check share (archive/check.h). */
#ifndef ARCHIVE_CHECK_INT_H
#define ARCHIVE_CHECK_INT_H

#include "archive/check.h"
#include "archive/record.h"
#include "archive/shelf.h"
#include "base/map.h"

/* The objects of a repository that the listing has shown. */
enum { CHECK_HAS_BUNDLE = 1, CHECK_HAS_ZIP = 2, CHECK_HAS_ERROR = 4 };

/* The state while one account is checked. */
struct account_check {
    struct archive_check *check;
    struct archive *archive;
    const struct archive_account *account;
    struct arena arena;  /* memory of the account: the shelf and a few keys */
    struct arena object; /* memory of one object; reset before each */
    struct shelf shelf;
    struct archive_record record;
    struct str record_etag;
    bool has_record;
    /* The record describes everything that was synced, and no sync runs. check_is_settled() asks
     * again. */
    bool is_settled;
    struct map lines;   /* name of a repository -> its line, a struct record_repo of `record` */
    unsigned char *has; /* for each line: the objects that there are, CHECK_HAS_* */
};

/* Reports a finding. An empty key: it is about the account. */
void check_found(struct account_check *k, struct str key, const char *text);
/* Whether the record still describes everything: no sync has begun since it was read. */
bool check_is_settled(struct account_check *k, int *code, struct err *err);

/* Lists the account's folder, compares each object with the record, and then reports the objects of
 * the record that there are not. */
int check_account_objects(struct account_check *k, struct err *err) MUST_CHECK;

/* Reports a finding about an account, or about a bucket. Its strings are borrowed. */
void check_report(struct archive_check *k, const struct check_finding *f);
/* Lists all satellites: finds objects that no tracked account explains, and uploads that are
 * open. */
int check_satellites(struct archive_check *k, struct archive *x, struct err *err) MUST_CHECK;

#endif
