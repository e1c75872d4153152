/* The check of the archive's objects against its records, and of the accounts against `tracked`. */
#include "archive/check_int.h"

#include "archive/schedule.h"

void check_report(struct archive_check *k, const struct check_finding *f)
{
    if (k->count++ < CHECK_SHOWN_MAX)
        k->found(k->ctx, f);
}

void check_found(struct account_check *k, struct str key, const char *text)
{
    struct arena a = {0};
    struct check_finding f = {archive_account_member(k->account, &a), key, text};

    check_report(k->check, &f);
    arena_release(&a);
}

/* --- the account's own objects --- */

/* Whether the account has its object of a kind. `info` may be NULL. */
static bool check_has(struct account_check *k, enum archive_kind kind, struct object_info *info,
                      int *code, struct err *err)
{
    struct object_info other;
    int head = *code < 0 ? *code
                         : shelf_head(&k->shelf, &k->object,
                                      archive_key(k->account, &k->object, kind, STR_EMPTY),
                                      info ? info : &other, err);

    *code = head == ERR_NOT_FOUND ? 0 : head;
    return head == 0;
}

static int check_read_record(struct account_check *k, struct err *err)
{
    struct str key = archive_key(k->account, &k->arena, ARCHIVE_RECORD, STR_EMPTY);
    struct shelf_body body = {0};
    int code = shelf_get(&k->shelf, &k->arena, key, NULL, &body, err);

    if (code < 0)
        return code == ERR_NOT_FOUND ? 0 : code;
    k->record_etag = arena_str(&k->arena, body.info.etag);
    code = archive_record_read(&k->record, body.body, err);
    shelf_body_close(&body);
    k->has_record = code == 0;
    if (code == ERR_CORRUPT || code == ERR_VERSION) {
        check_found(k, key, err->text);
        code = 0;
    }
    return code;
}

bool check_is_settled(struct account_check *k, int *code, struct err *err)
{
    struct schedule_entry entry;
    struct object_info info;

    if (!k->is_settled || *code < 0)
        return false;
    *code = schedule_find(k->archive->schedule, &k->object, k->account, &entry, err);
    k->is_settled = *code == 0 && !entry.is_locked &&
                    check_has(k, ARCHIVE_RECORD, &info, code, err) &&
                    str_eq(info.etag, k->record_etag);
    *code = *code == ERR_NOT_FOUND ? 0 : *code;
    return k->is_settled && *code == 0;
}

/* --- `tracked` --- */

/* Compares the score in `tracked` with the time in the record. Also finds out whether the last sync
 * was full and no sync runs now; if not, there may be objects that the record does not describe. */
static int check_score(struct account_check *k, struct err *err)
{
    struct schedule_entry entry;
    int code = schedule_find(k->archive->schedule, &k->object, k->account, &entry, err);

    if (code == ERR_NOT_FOUND) {
        check_found(k, STR_EMPTY, "the account is not in `tracked`");
        return 0;
    }
    if (code == 0 && check_has(k, ARCHIVE_REMOVED, NULL, &code, err))
        check_found(k, STR_EMPTY,
                    "the account is in `tracked`, and its .removed object says that it is not");
    if (code < 0 || entry.is_locked || !k->has_record)
        return code;
    if (entry.score_ms < k->record.account.last_full_sync_ms)
        check_found(k, STR_EMPTY, "`tracked` has an older sync than the record");
    k->is_settled = !check_has(k, ARCHIVE_ACCOUNT_ERROR, NULL, &code, err) && code == 0;
    return code;
}

static int check_added(struct account_check *k, struct err *err)
{
    int code = 0;

    if (k->is_settled && check_has(k, ARCHIVE_ADDED, NULL, &code, err) &&
        check_is_settled(k, &code, err))
        check_found(k, STR_EMPTY, "the account has a record, and its .new object is still there");
    return code;
}

/* --- accounts --- */

int archive_check_account(struct archive_check *k, struct archive *x,
                          const struct archive_account *c, struct err *err)
{
    struct account_check one = {.check = k, .archive = x, .account = c};
    int code = shelf_open(&one.shelf, x->satellites, &one.arena, c, err);

    archive_record_init(&one.record);
    if (code == 0)
        code = check_read_record(&one, err);
    if (code == 0)
        code = check_score(&one, err);
    if (code == 0)
        code = check_added(&one, err);
    if (code == 0)
        code = check_account_objects(&one, err);
    k->accounts++;
    archive_record_release(&one.record);
    shelf_close(&one.shelf);
    arena_release(&one.object);
    arena_release(&one.arena);
    return code;
}

static int check_tracked(struct archive_check *k, struct archive *x, struct err *err)
{
    struct schedule_page page = {.limit = SCHEDULE_PAGE_MAX};
    int code = 0;

    do {
        struct arena a = {0};
        struct schedule_entry *entries = NULL;
        uint64_t next = 0;
        size_t count = 0;
        code = schedule_list(x->schedule, &a, &page, &entries, &count, &next, err);
        for (size_t i = 0; i < count && code == 0; i++) {
            struct archive_account account;
            code = archive_account_read(&account, &a, entries[i].member, err);
            if (code == 0)
                code = archive_check_account(k, x, &account, err);
        }
        page.at = next;
        arena_release(&a);
    } while (code == 0 && page.at);
    return code;
}

int archive_check_all(struct archive_check *k, struct archive *x, struct err *err)
{
    int code = check_tracked(k, x, err);

    return code < 0 ? code : check_satellites(k, x, err);
}
