/* The check of the archive's objects against its records. */
#include "archive/check.h"

#include "archive/bundle.h"
#include "archive/record.h"
#include "archive/schedule.h"
#include "archive/shelf.h"
#include "base/map.h"

/* The state while one account is checked. */
struct account_check {
    struct archive_check *check;
    struct archive *archive;
    const struct archive_account *account;
    struct arena arena;
    struct shelf shelf;
    struct archive_record record;
    bool has_record;
    bool is_settled;    /* the record describes everything that was synced, and no sync runs now */
    struct map bundles; /* key -> struct object_info from the listing */
};

static bool check_has(struct account_check *k, enum archive_kind kind, int *code, struct err *err)
{
    struct object_info info;
    int head = *code < 0
                   ? *code
                   : shelf_head(&k->shelf, &k->arena,
                                archive_key(k->account, &k->arena, kind, STR_EMPTY), &info, err);

    *code = head == ERR_NOT_FOUND ? 0 : head;
    return head == 0;
}

static void check_found(struct account_check *k, struct str key, const char *text)
{
    struct check_finding f = {archive_account_member(k->account, &k->arena), key, text};

    if (k->check->count++ < CHECK_SHOWN_MAX)
        k->check->found(k->check->ctx, &f);
}

static int check_read_record(struct account_check *k, struct err *err)
{
    struct str key = archive_key(k->account, &k->arena, ARCHIVE_RECORD, STR_EMPTY);
    struct shelf_body body = {0};
    int code = shelf_get(&k->shelf, &k->arena, key, NULL, &body, err);

    if (code < 0)
        return code == ERR_NOT_FOUND ? 0 : code;
    code = archive_record_read(&k->record, body.body, err);
    shelf_body_close(&body);
    k->has_record = code == 0;
    if (code == ERR_CORRUPT || code == ERR_VERSION) {
        check_found(k, key, err->text);
        code = 0;
    }
    return code;
}

/* Collects the bundles of the account's folder, and checks every key in the folder. */
static int check_list(struct account_check *k, struct err *err)
{
    struct list_options o = {.prefix = archive_folder(k->account, &k->arena),
                             .limit = OBJECT_LIST_MAX};
    struct list_result page = {.more = true};
    int code = 0;

    while (code == 0 && page.more) {
        code = shelf_list(&k->shelf, &k->arena, &o, &page, err);
        for (size_t i = 0; i < page.count && code == 0; i++) {
            struct object_info *info = &page.entries[i].info;
            struct archive_object object;
            if (archive_key_read(&object, info->key) < 0)
                check_found(k, info->key, "the key is not one of the archive");
            else if (object.kind == ARCHIVE_BUNDLE)
                map_put(&k->bundles, info->key, info);
        }
        o.after = page.next;
    }
    return code;
}

/* Checks a line of the record that says that there is a bundle. */
static int check_bundle(struct account_check *k, const struct record_repo *r, struct err *err)
{
    struct str key = archive_key(k->account, &k->arena, ARCHIVE_BUNDLE, r->name);
    const struct object_info *listed = map_get(&k->bundles, key);
    struct bundle_meta meta;
    struct object_info info;
    int code;

    if (!listed) {
        check_found(k, key, "the record has the bundle, and the satellite lacks it");
        return 0;
    }
    code = shelf_head(&k->shelf, &k->arena, key, &info, err);
    if (code < 0)
        return code == ERR_NOT_FOUND ? 0 : code;
    bool has_meta = bundle_meta_read(&meta, &info) == 0;
    bool is_same = str_eq(listed->etag, r->etag) && listed->size == r->bytes;
    /* Tidying a bundle changes its bytes but not its refs, so the refs are compared. */
    if (!is_same && !(has_meta && str_eq(str_z(meta.refs_digest), r->refs_digest)))
        check_found(k, key, "the bundle is not the one that the record describes");
    if (has_meta && *meta.source_id && !str_eq(str_z(meta.source_id), r->id))
        check_found(k, key, "the bundle belongs to another repository");
    return 0;
}

static int check_error(struct account_check *k, const struct record_repo *r, struct err *err)
{
    struct str key = archive_key(k->account, &k->arena, ARCHIVE_REPO_ERROR, r->name);
    bool wanted = r->code != ARCHIVE_OK && r->code != ARCHIVE_UNCHANGED;
    struct object_info info;
    int code = shelf_head(&k->shelf, &k->arena, key, &info, err);

    if (code == ERR_NOT_FOUND && wanted)
        check_found(k, key, "the record has an error, and the .error object is missing");
    if (code == 0 && !wanted && k->is_settled)
        check_found(k, key, "there is an .error object, and the record has no error");
    return code == ERR_NOT_FOUND ? 0 : code;
}

static int check_repos(struct account_check *k, struct err *err)
{
    uint64_t stored = 0;
    int code = 0;

    vec_each (&k->record.repos, const struct record_repo *, r) {
        if (code == 0 && r->refs_digest.len)
            code = check_bundle(k, r, err);
        if (code == 0)
            code = check_error(k, r, err);
        stored += r->refs_digest.len > 0;
        k->check->repos++;
    }
    if (code == 0 && k->has_record && stored != k->record.account.repos_stored)
        check_found(k, STR_EMPTY, "the record counts its repositories wrongly");
    return code;
}

/* Compares the score in `tracked` with the time in the record. Also finds out whether the last sync
 * was full and no sync runs now; if not, there may be objects that the record does not describe. */
static int check_score(struct account_check *k, struct err *err)
{
    struct schedule_entry entry;
    int code = schedule_find(k->archive->schedule, &k->arena, k->account, &entry, err);

    if (code == ERR_NOT_FOUND) {
        check_found(k, STR_EMPTY, "the account is not in `tracked`");
        return 0;
    }
    if (code < 0 || entry.is_locked || !k->has_record)
        return code;
    if (entry.score_ms < k->record.account.last_full_sync_ms)
        check_found(k, STR_EMPTY, "`tracked` has an older sync than the record");
    k->is_settled = !check_has(k, ARCHIVE_ACCOUNT_ERROR, &code, err) && code == 0;
    return code;
}

static int check_added(struct account_check *k, struct err *err)
{
    int code = 0;

    if (k->is_settled && check_has(k, ARCHIVE_ADDED, &code, err))
        check_found(k, STR_EMPTY, "the account has a record, and its .new object is still there");
    return code;
}

int archive_check_account(struct archive_check *k, struct archive *x,
                          const struct archive_account *c, struct err *err)
{
    struct account_check one = {
        .check = k, .archive = x, .account = c, .arena = ARENA_INIT((size_t)1024 * 1024 * 1024)};
    int code = shelf_open(&one.shelf, x->satellites, &one.arena, c, err);

    archive_record_init(&one.record);
    map_init(&one.bundles);
    if (code == 0)
        code = check_read_record(&one, err);
    if (code == 0)
        code = check_list(&one, err);
    if (code == 0)
        code = check_score(&one, err);
    if (code == 0)
        code = check_added(&one, err);
    if (code == 0)
        code = check_repos(&one, err);
    k->accounts++;
    map_release(&one.bundles);
    archive_record_release(&one.record);
    shelf_close(&one.shelf);
    arena_release(&one.arena);
    return code;
}

int archive_check_all(struct archive_check *k, struct archive *x, struct err *err)
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
