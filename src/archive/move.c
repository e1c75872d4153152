/* Moves accounts and slots between satellites (archive/move.h). */
#include "archive/move.h"
#include "archive/move_int.h"

#include "archive/rebuild.h"
#include "archive/saved.h"
#include "archive/schedule.h"
#include "os/loop.h"

#include <stdlib.h>

enum {
    /* Period at which the thread searches for moving slots without a task. */
    MOVE_LOOK_MS = 15 * 1000,

    MOVE_ROUNDS = 3,    /* most passes over the objects of an account */
    MOVE_AGAIN_S = 10,  /* delay while accounts of the slot are locked */
    MOVE_PAGE = 200,    /* objects in a page of a listing */
    MOVE_RETRIES = 1000 /* most runs of a task; so many that a move is practically never given up */
};

struct moves {
    struct moves_options o;
    struct loop keeper;
};

/* The kinds of an account's own objects, in the order in which they move: the record last (W2). */
static const enum archive_kind account_kinds[] = {ARCHIVE_OPTIONS, ARCHIVE_ADDED, ARCHIVE_REMOVED,
                                                  ARCHIVE_ACCOUNT_ERROR, ARCHIVE_RECORD};

/* --- one object --- */

static bool move_is_bundle(const struct move_object *m)
{
    return m->kind == ARCHIVE_BUNDLE ||
           (m->kind == ARCHIVE_EXTRA && str_ends(m->source.key, STR(".bundle")));
}

/* The satellite that the slot leaves is the old side, and the other one is the new side. Returns
 * the key under which the old side's object is kept aside, when the new side has a different object
 * of the same key. Empty: the old object is not needed, because the new side's object is newer and
 * has everything that the old object has, or replaces it, as the verdict of an audit does. */
static struct str move_aside_key(const struct move_object *m)
{
    long long ms = (long long)m->source.modified_ms;
    struct str key = m->source.key, suffix = STR(".bundle");

    if (move_is_bundle(m))
        return arena_fmt(m->arena, STR_FMT "@moved-%lld.bundle",
                         STR_ARG(str_head(key, key.len - suffix.len)), ms);
    return m->kind == ARCHIVE_EXTRA && !saved_is_verdict(key)
               ? arena_fmt(m->arena, STR_FMT "@moved-%lld", STR_ARG(key), ms)
               : STR_EMPTY;
}

/* Copies the object. A bundle that was damaged already before the move is copied unchanged and
 * reported, because a move must lose nothing. The next sync or audit of the repository handles the
 * damage. */
static int move_copy_checked(const struct move_object *m, struct str to, struct err *err)
{
    struct satellites *s = m->shelf->satellites;
    bool is_bundle = move_is_bundle(m);
    int code = move_copy(m, to, is_bundle, err);

    if (code == ERR_CORRUPT && is_bundle) {
        log_warn(s->o.log, "archive.moved_damaged", log_s("key", m->source.key),
                 log_s("satellite", m->shelf->leaves), log_z("error", err->text));
        atomic_fetch_add(&s->moved.damaged, 1);
        code = move_copy(m, to, false, err);
    }
    if (code == 0) {
        atomic_fetch_add(&s->moved.objects, 1);
        atomic_fetch_add(&s->moved.bytes, m->source.size);
    }
    return code;
}

/* Makes sure that the new side has the object, under its own key or kept aside. *done is set if the
 * old side's object is not needed any more. With `only_look` nothing is copied. */
static int move_ensure(const struct move_object *m, bool only_look, bool *done, struct err *err)
{
    struct satellites *s = m->shelf->satellites;
    struct str to = m->source.key;
    enum move_state state;
    int code = move_compare(m, to, &state, err);

    if (code == 0 && state == MOVE_OTHER) {
        to = move_aside_key(m);
        if (to.len)
            code = move_compare(m, to, &state, err);
        else
            state = MOVE_SAME;
    }
    if (code == 0 && state == MOVE_MISSING && !only_look) {
        code = move_copy_checked(m, to, err);
        if (code == 0 && !str_eq(to, m->source.key)) {
            log_warn(s->o.log, "archive.moved_aside", log_s("key", m->source.key), log_s("to", to));
            atomic_fetch_add(&s->moved.aside, 1);
        }
        state = MOVE_SAME;
    }
    *done = code == 0 && state == MOVE_SAME;
    return code;
}

/* Removes the old side's object if it has not changed since it was copied (W4). */
static int move_remove(const struct move_object *m, struct err *err)
{
    struct satellites *s = m->shelf->satellites;
    struct object_conditions c = {
        .if_match = arena_fmt(m->arena, "\"" STR_FMT "\"", STR_ARG(m->source.etag))};
    int code = shelf_side_remove(m->shelf, m->arena, SHELF_FROM, m->source.key, &c, err);

    if (code == ERR_PRECONDITION) {
        log_warn(s->o.log, "archive.move_stray", log_s("key", m->source.key),
                 log_s("satellite", m->shelf->leaves));
        atomic_fetch_add(&s->moved.strays, 1);
    }
    return code == ERR_PRECONDITION || code == ERR_NOT_FOUND ? 0 : code;
}

/* --- the objects of one account --- */

struct move_pass {
    struct shelf *shelf;
    /* True in the second pass, which removes the objects that both sides have from the old side. */
    bool removes;
    /* Number of objects that need another round: they changed during this pass, or the new side
     * does not have them in their present state. */
    size_t unsettled;
    bool (*ended)(void *ctx);
    void *ctx;
};

static int pass_object(struct move_pass *p, struct str key, struct err *err)
{
    struct arena a = {0};
    struct move_object m = {.shelf = p->shelf, .arena = &a};
    struct archive_object parts;
    bool done = false;
    int code = 0;

    if (archive_key_read(&parts, key) < 0 || !str_eq(parts.login, p->shelf->account.login))
        return 0; /* the object does not belong to the account; somebody else has put it there */
    if (p->ended && p->ended(p->ctx))
        return err_code(err, ERR_CANCELED);
    m.kind = parts.kind;
    code = shelf_side_head(p->shelf, &a, SHELF_FROM, key, &m.source, err);
    m.source.key = key;
    if (code == 0)
        code = move_ensure(&m, p->removes, &done, err);
    if (code == 0 && p->removes && done)
        code = move_remove(&m, err);
    /* An object that has changed meanwhile needs another round. */
    p->unsettled += code == ERR_CONFLICT || (code == 0 && p->removes && !done);
    arena_release(&a);
    return code == ERR_NOT_FOUND || code == ERR_CONFLICT ? 0 : code;
}

static int pass_folder(struct move_pass *p, struct err *err)
{
    struct arena a = {0};
    struct buf after = {0};
    bool more = true;
    int code = 0;

    while (more && code == 0) {
        struct list_options o = {.prefix = archive_folder(&p->shelf->account, &a),
                                 .after = buf_str(&after),
                                 .limit = MOVE_PAGE};
        struct list_result page = {0};
        code = shelf_side_list(p->shelf, &a, SHELF_FROM, &o, &page, err);
        for (size_t i = 0; i < page.count && code == 0; i++)
            code = pass_object(p, page.entries[i].info.key, err);
        more = page.more;
        buf_reset(&after);
        buf_append_str(&after, page.next);
        arena_reset(&a);
    }
    buf_release(&after);
    arena_release(&a);
    return code;
}

static int pass_account(struct move_pass *p, struct err *err)
{
    struct arena a = {0};
    int code = pass_folder(p, err);

    for (size_t i = 0; i < ARRAY_SIZE(account_kinds) && code == 0; i++)
        code =
            pass_object(p, archive_key(&p->shelf->account, &a, account_kinds[i], STR_EMPTY), err);
    arena_release(&a);
    return code;
}

int shelf_move_object(struct shelf *s, struct str key, struct err *err)
{
    size_t unsettled = 1;
    int code = 0;

    for (int i = 0; i < MOVE_ROUNDS && code == 0 && unsettled; i++) {
        struct move_pass copy = {.shelf = s}, remove = {.shelf = s, .removes = true};
        code = pass_object(&copy, key, err);
        if (code == 0)
            code = pass_object(&remove, key, err);
        unsettled = copy.unsettled + remove.unsettled;
    }
    return code == 0 && unsettled ? err_set(err, ERR_BUSY, "the object " STR_FMT " changes",
                                            STR_ARG(str_head(key, 255)))
                                  : code;
}

static int shelf_move_while(struct shelf *s, bool (*ended)(void *ctx), void *ctx, struct err *err)
{
    size_t unsettled = 1;
    bool claimed = s->claimed;

    s->claimed = true; /* the lock is held, so no other move of the account runs */
    int code = shelf_abort_uploads(s, 0, NULL, err);

    for (int i = 0; i < MOVE_ROUNDS && code == 0 && unsettled; i++) {
        struct move_pass copy = {.shelf = s, .ended = ended, .ctx = ctx};
        struct move_pass remove = {.shelf = s, .removes = true, .ended = ended, .ctx = ctx};
        code = pass_account(&copy, err);
        if (code == 0)
            code = pass_account(&remove, err);
        unsettled = copy.unsettled + remove.unsettled;
    }
    if (code == 0 && unsettled)
        code =
            err_set(err, ERR_BUSY, "%zu objects of " STR_FMT "/" STR_FMT " change while they move",
                    unsettled, STR_ARG(s->account.host), STR_ARG(s->account.login));
    if (code == 0)
        atomic_fetch_add(&s->satellites->moved.accounts, 1);
    s->claimed = claimed;
    return code;
}

int shelf_move(struct shelf *s, struct err *err)
{
    return shelf_move_while(s, NULL, NULL, err);
}

/* --- the accounts of one slot --- */

struct slot_move {
    struct moves *moves;
    struct str from; /* the satellite that the slot leaves */
    unsigned slot;
    struct str bucket; /* the bucket whose accounts are moved now */
    bool (*ended)(void *ctx);
    void *ctx;
    size_t moved, busy;
};

static int slot_move_shelf(struct slot_move *m, struct arena *a, const struct schedule_claim *claim,
                           struct err *err)
{
    struct shelf shelf = {0};
    int code = shelf_open_in(&shelf, m->moves->o.satellites, a, &claim->account, m->bucket, err);

    shelf.lock = claim->lock;
    if (code == 0 && shelf_has(&shelf, SHELF_FROM))
        code = shelf_move_while(&shelf, m->ended, m->ctx, err);
    m->moved += code == 0;
    shelf_close(&shelf);
    return code;
}

/* Moves one account under its lock. Skips an account that another process has locked; the task
 * returns to it later. */
static int slot_move_account(struct slot_move *m, const struct archive_account *c, struct err *err)
{
    struct arena a = {0};
    struct schedule_claim claim = {0};
    struct err ignored = {0};
    int code = schedule_take(m->moves->o.schedule, &a, c, &claim, err);

    m->busy += code == ERR_BUSY;
    if (code == 0) {
        code = slot_move_shelf(m, &a, &claim, err);
        /* If the claim cannot be ended, the account becomes free when its lock expires. */
        if (schedule_end_back(&claim, &ignored) < 0)
            log_debug(m->moves->o.log, "archive.move_end", log_z("error", ignored.text));
    } else if (code == ERR_BUSY) {
        code = 0;
    }
    arena_release(&a);
    return code;
}

/* Handles one key of the listing. If the account's remaining keys need not be listed, *skip becomes
 * the last key to skip. */
static int slot_move_key(struct slot_move *m, struct arena *a, const struct satellite_host *host,
                         struct str key, struct str *skip, struct err *err)
{
    struct archive_account c;
    struct archive_object o;

    if (archive_key_read(&o, key) < 0)
        return 0;
    int code = archive_account_make(&c, a, host->host, o.login, err);
    if (code == 0)
        code = slot_move_account(m, &c, err);
    struct str folder = archive_folder(&c, a);
    *skip = arena_fmt(a, STR_FMT "\x7f", STR_ARG(folder));
    return code;
}

/* Moves the accounts on one page. *after is where the next page begins. */
static int slot_move_page(struct slot_move *m, struct arena *a, const struct satellite_host *host,
                          struct buf *after, bool *more, struct err *err)
{
    struct slot_ask ask = {.satellite = m->from,
                           .host = host->host,
                           .bucket = host->bucket,
                           .slot = m->slot,
                           .after = buf_str(after),
                           .limit = MOVE_PAGE};
    struct list_result page;
    struct str skip = STR_EMPTY;
    int code = satellites_list_slot(m->moves->o.satellites, a, &ask, &page, err);

    for (size_t i = 0; i < page.count && code == 0; i++) {
        struct str key = page.entries[i].info.key;
        if (str_cmp(key, skip) > 0)
            code = slot_move_key(m, a, host, key, &skip, err);
    }
    struct str next = str_cmp(skip, page.next) > 0 ? skip : page.next;
    *more = page.more;
    buf_reset(after);
    buf_append_str(after, next);
    return code;
}

static int slot_move_host(struct slot_move *m, const struct satellite_host *host, struct err *err)
{
    struct arena a = {0};
    struct buf after = {0};
    bool more = true;
    int code = 0;

    m->bucket = host->bucket;
    while (more && code == 0) {
        code = slot_move_page(m, &a, host, &after, &more, err);
        arena_reset(&a);
    }
    buf_release(&after);
    arena_release(&a);
    return code;
}

static int slot_move_hosts(struct slot_move *m, struct err *err)
{
    struct satellite_host *hosts = NULL;
    struct arena a = {0};
    size_t count = 0;
    int code = satellites_hosts(m->moves->o.satellites, &a, m->from, &hosts, &count, err);

    for (size_t i = 0; i < count && code == 0; i++)
        code = slot_move_host(m, &hosts[i], err);
    arena_release(&a);
    return code;
}

int moves_slot(struct moves *m, unsigned slot, bool (*ended)(void *ctx), void *ctx, size_t *moved,
               struct err *err)
{
    struct slot_move move = {.moves = m, .slot = slot, .ended = ended, .ctx = ctx};
    struct slots t;
    int code = satellites_current(m->o.satellites, &t, false, err);

    *moved = 0;
    if (code < 0 || !slots_moves(&t, slot))
        return code;
    move.from = str_z(t.names[t.leaves[slot]]);
    /* Repeats the pass over the slot until a pass moves no account. If that pass has met no locked
     * account either, it has found no object of the archive in the slot (W5). */
    size_t before;
    do {
        before = move.moved;
        move.busy = 0;
        code = slot_move_hosts(&move, err);
    } while (code == 0 && move.moved > before);
    *moved = move.moved;
    if (code == 0 && move.busy)
        return err_set(err, ERR_AGAIN, "%zu accounts of slot %02x are locked", move.busy, slot);
    return code < 0 ? code : satellites_arrive(m->o.satellites, slot, err);
}

/* --- tasks --- */

static struct loop_sleep moves_keep(void *ctx)
{
    struct moves *m = ctx;
    struct err err = {0};

    if (moves_add_tasks(m, &err) < 0 || satellites_settle(m->o.satellites, &err) < 0)
        log_warn(m->o.log, "archive.moves", log_z("error", err.text));
    return loop_sleep_ms(MOVE_LOOK_MS);
}

int moves_open(struct moves **out, const struct moves_options *o, struct err *err)
{
    struct moves *m = xcalloc(1, sizeof(*m));
    int code = 0;

    m->o = *o;
    if (o->keeps)
        code = loop_start(
            &m->keeper,
            &(struct loop_options){.name = "archive-moves", .step = moves_keep, .ctx = m}, err);
    if (code < 0)
        free(m);
    else
        *out = m;
    return code;
}

void moves_close(struct moves *m)
{
    if (!m)
        return;
    loop_stop(&m->keeper);
    free(m);
}

int moves_add_tasks(struct moves *m, struct err *err)
{
    struct slots t;
    int code = satellites_current(m->o.satellites, &t, false, err);

    for (unsigned s = 0; s < SLOT_COUNT && code == 0 && t.epoch; s++) {
        struct arena a = {0};
        if (slots_moves(&t, s)) {
            struct task task = {.type = STR(MOVE_TASK),
                                .id = arena_fmt(&a, MOVE_TASK ":%02x", s),
                                .payload = arena_fmt(&a, "%u", s),
                                .queue = STR(ARCHIVE_QUEUE),
                                .retry_max = MOVE_RETRIES};
            code = queue_add(m->o.queue, &task, 0, err);
            code = code == ERR_EXISTS ? 0 : code;
        }
        arena_release(&a);
    }
    return code;
}

static bool move_task_ended(void *ctx)
{
    return task_ended(ctx);
}

int moves_run(struct task_run *run, struct err *err)
{
    struct moves *m = run->ctx;
    uint64_t slot;
    size_t moved;

    if (str_u64(run->task->payload, &slot) < 0 || slot >= SLOT_COUNT)
        return err_set(err, ERR_INVALID, "the task does not name a slot");
    int code = moves_slot(m, (unsigned)slot, move_task_ended, run, &moved, err);
    log_info(&run->log, "archive.slot_moved", log_u("slot", slot), log_u("accounts", moved),
             log_z("state", code == 0 ? "arrived" : err_name(code)));
    run->put_back_s = MOVE_AGAIN_S;
    return code == ERR_BUSY || code == ERR_CANCELED ? ERR_AGAIN : code;
}
