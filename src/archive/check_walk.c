/* The check of whole satellites: lists every slot of every bucket on every satellite, and finds
 * what the check of the tracked accounts cannot see. Of each account only the first objects are
 * listed, so an account of 100,000 repositories costs two pages. */
#include "archive/check_int.h"

#include "archive/satellites.h"
#include "archive/schedule.h"
#include "base/vec.h"

#include <stdlib.h>

enum { WALK_HASH_LEN = 3 * ARCHIVE_HASH_LEN }; /* bytes of `a6/65/81/57/` */

/* One account, as its keys describe it. */
struct walk_found {
    struct str login, key; /* `key` is the first key of the account */
    bool removed;          /* it has a `.removed` object */
};

/* The state while the satellites are listed. All keys of accounts with the same hash follow each
 * other, so only the accounts of one hash are kept in memory. */
struct check_walk {
    struct archive_check *check;
    struct archive *archive;
    struct slots table;     /* the newest table when the check began */
    bool lacks[SLOT_COUNT]; /* slots that are not rebuilt: their accounts are not tracked yet */
    struct str satellite;   /* the satellite that is listed, and its host and slot */
    struct satellite_host host;
    unsigned slot;
    bool ended;                  /* nothing more of this bucket needs to be listed */
    char folders[WALK_HASH_LEN]; /* the folders of the accounts in `found` */
    struct arena logins;         /* memory of `found` */
    VEC(struct walk_found) found;
};

static void walk_report(struct check_walk *w, struct str account, struct str key, const char *text)
{
    check_report(w->check, &(struct check_finding){account, key, text});
}

/* --- one account --- */

/* Whether the table gives the slot to the satellite, or the slot leaves it now. */
static bool slot_is_on(const struct slots *t, unsigned slot, struct str satellite)
{
    return str_eq(str_z(t->names[t->of[slot]]), satellite) ||
           (slots_moves(t, slot) && str_eq(str_z(t->names[t->leaves[slot]]), satellite));
}

/* Reports an account on a satellite that does not own its slot, unless the slot has moved since the
 * check began. */
static int walk_astray(struct check_walk *w, struct arena *a, struct str member,
                       const struct walk_found *f, struct err *err)
{
    struct slots *now = arena_new(a, struct slots);
    struct str text = arena_fmt(a, "the satellite " STR_FMT " does not own the slot of the account",
                                STR_ARG(w->satellite));
    int code = now && text.p ? satellites_current(w->archive->satellites, now, false, err)
                             : err_code(err, ERR_NO_MEMORY);

    if (code == 0 && now->epoch == w->table.epoch)
        walk_report(w, member, f->key, text.p);
    return code;
}

static int walk_account(struct check_walk *w, const struct walk_found *f, struct err *err)
{
    struct arena a = {0};
    struct archive_account c;
    struct schedule_entry entry;
    int code = archive_account_make(&c, &a, w->host.host, f->login, err);

    if (code == 0 && !slot_is_on(&w->table, w->slot, w->satellite))
        code = walk_astray(w, &a, archive_account_member(&c, &a), f, err);
    else if (code == 0 && !f->removed && !w->lacks[w->slot])
        code = schedule_find(w->archive->schedule, &a, &c, &entry, err);
    if (code == ERR_NOT_FOUND) {
        walk_report(w, archive_account_member(&c, &a), f->key,
                    "the account has objects, and is not in `tracked`");
        code = 0;
    }
    arena_release(&a);
    return code;
}

/* A bucket of which no forge is known is reported once. Its accounts cannot be tracked. */
static int walk_stranger(struct check_walk *w, const struct walk_found *f)
{
    walk_report(w, w->host.bucket, f->key, "no forge that weir knows has this bucket");
    w->ended = true;
    return 0;
}

/* Checks the accounts of one hash. Called when all their keys were listed. */
static int walk_flush(struct check_walk *w, struct err *err)
{
    int code = 0;

    vec_each (&w->found, const struct walk_found *, f)
        if (code == 0 && !w->ended)
            code = w->host.is_known ? walk_account(w, f, err) : walk_stranger(w, f);
    w->found.len = 0;
    arena_reset(&w->logins);
    return code;
}

static struct walk_found *walk_find(struct check_walk *w, struct str login, struct str key)
{
    vec_each (&w->found, struct walk_found *, f)
        if (str_eq(f->login, login))
            return f;
    vec_push(&w->found, ((struct walk_found){.login = arena_str(&w->logins, login),
                                             .key = arena_str(&w->logins, key)}));
    return vec_last(&w->found);
}

static int walk_key(struct check_walk *w, struct str key, struct err *err)
{
    struct archive_object o;
    int code = 0;

    if (archive_key_read(&o, key) < 0)
        return 0; /* the object does not belong to the archive */
    if (memcmp(w->folders, key.p, WALK_HASH_LEN) != 0) {
        code = walk_flush(w, err);
        memcpy(w->folders, key.p, WALK_HASH_LEN);
    }
    if (code < 0)
        return code;
    if (o.kind == ARCHIVE_OPTIONS)
        return 0;
    walk_find(w, o.login, key)->removed |= o.kind == ARCHIVE_REMOVED;
    return arena_error(&w->logins);
}

/* --- one slot --- */

static int walk_slot(struct check_walk *w, struct err *err)
{
    struct arena a = {0};
    struct buf after = {0};
    struct list_result page = {.more = true};
    int code = 0;

    while (code == 0 && page.more && !w->ended) {
        struct slot_ask ask = {.satellite = w->satellite,
                               .host = w->host.host,
                               .bucket = w->host.bucket,
                               .slot = w->slot,
                               .after = buf_str(&after)};
        code = satellites_list_slot(w->archive->satellites, &a, &ask, &page, err);
        for (size_t i = 0; code == 0 && i < page.count; i++)
            code = walk_key(w, page.entries[i].info.key, err);
        if (page.more)
            archive_key_behind(&after, page.next);
        arena_reset(&a);
    }
    if (code == 0)
        code = walk_flush(w, err);
    buf_release(&after);
    arena_release(&a);
    return code;
}

/* --- uploads --- */

/* Whether the upload is still open. */
static int upload_is_open(struct check_walk *w, struct arena *a, const struct upload_info *u,
                          bool *open, struct err *err)
{
    struct list_options o = {.prefix = u->key, .limit = OBJECT_LIST_MAX};
    struct upload_list page;
    int code = satellites_list_uploads(w->archive->satellites, a, w->satellite, w->host.bucket, &o,
                                       &page, err);

    *open = false;
    for (size_t i = 0; code == 0 && i < page.count; i++)
        *open |= str_eq(page.uploads[i].id, u->id);
    return code;
}

/* Reports an open upload of an account that is not locked. A sync that has ended meanwhile has
 * finished its uploads, so the upload is looked for once more. */
static int walk_upload(struct check_walk *w, const struct upload_info *u, struct err *err)
{
    struct arena a = {0};
    struct archive_object o;
    struct archive_account c;
    struct schedule_entry entry = {0};
    bool open = false;

    if (archive_key_read(&o, u->key) < 0)
        return 0;
    int code = archive_account_make(&c, &a, w->host.host, o.login, err);
    if (code == 0)
        code = schedule_find(w->archive->schedule, &a, &c, &entry, err);
    if (code == ERR_NOT_FOUND || (code == 0 && !entry.is_locked))
        code = upload_is_open(w, &a, u, &open, err);
    if (code == 0 && open)
        walk_report(w, archive_account_member(&c, &a), u->key,
                    "an upload is open, and no sync of the account runs");
    arena_release(&a);
    return code;
}

static int walk_uploads(struct check_walk *w, struct err *err)
{
    struct arena a = {0};
    struct buf after = {0}, id = {0};
    struct upload_list page = {.more = true};
    int code = 0;

    while (code == 0 && page.more) {
        struct list_options o = {
            .after = buf_str(&after), .after_version = buf_str(&id), .limit = OBJECT_LIST_MAX};
        code = satellites_list_uploads(w->archive->satellites, &a, w->satellite, w->host.bucket, &o,
                                       &page, err);
        for (size_t i = 0; code == 0 && i < page.count; i++)
            code = walk_upload(w, &page.uploads[i], err);
        buf_reset(&after);
        buf_append_str(&after, page.next_key);
        buf_reset(&id);
        buf_append_str(&id, page.next_id);
        arena_reset(&a);
    }
    buf_release(&after);
    buf_release(&id);
    arena_release(&a);
    return code;
}

/* --- all satellites --- */

static int walk_satellite(struct check_walk *w, struct err *err)
{
    struct arena a = {0};
    struct satellite_host *hosts = NULL;
    size_t count = 0;
    int code = satellites_hosts(w->archive->satellites, &a, w->satellite, &hosts, &count, err);

    for (size_t i = 0; code == 0 && i < count; i++) {
        w->host = hosts[i];
        w->ended = false;
        for (w->slot = 0; code == 0 && w->slot < SLOT_COUNT && !w->ended; w->slot++)
            code = walk_slot(w, err);
        if (code == 0 && w->host.is_known)
            code = walk_uploads(w, err);
    }
    arena_release(&a);
    return code;
}

int check_satellites(struct archive_check *k, struct archive *x, struct err *err)
{
    struct check_walk *w = xcalloc(1, sizeof(*w));
    int code;

    w->check = k;
    w->archive = x;
    code = satellites_current(x->satellites, &w->table, false, err);
    if (code == 0)
        code = schedule_lacks(x->schedule, w->lacks, err);
    for (size_t i = 0; code == 0 && i < w->table.count; i++) {
        w->satellite = str_z(w->table.names[i]);
        code = walk_satellite(w, err);
    }
    vec_release(&w->found);
    arena_release(&w->logins);
    free(w);
    return code;
}
