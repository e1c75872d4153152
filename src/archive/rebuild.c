/* The rebuild of the schedule from the storages (archive/rebuild.h; docs/archive.md, V1 to V6). */
#include "archive/rebuild.h"

#include "base/vec.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    REBUILD_ARENA_MAX = 64 * 1024 * 1024,
    REBUILD_DOWN_S = 30, /* pause before another try when the slot's satellite does not answer */
    /* Pause before another try when the table of slots has changed meanwhile. */
    REBUILD_AGAIN_S = 1,
    REBUILD_TRIES = 25,
    HASH_FOLDERS_LEN = 3 * ARCHIVE_HASH_LEN, /* bytes of `a6/65/81/57/` */
};

struct rebuild {
    struct rebuild_options o;
};

/* One account, as its keys describe it. */
struct rebuild_found {
    struct str login;
    int64_t score_ms; /* score for `tracked`, from the record; -1: there is no record */
    bool removed;     /* the account is not tracked any more: it has a `.removed` object */
};

/* The state while one bucket is listed. All keys of accounts with the same hash follow each other,
 * so only the accounts of one hash are kept in memory. */
struct rebuild_walk {
    struct rebuild *r;
    struct str host;
    char folders[HASH_FOLDERS_LEN]; /* the folders of the accounts in `found` */
    struct arena logins;            /* memory of the logins in `found` */
    VEC(struct rebuild_found) found;
    struct arena names; /* memory of the names that are loaded next */
    struct schedule_loaded batch[SCHEDULE_BATCH_MAX];
    size_t batched;
    uint64_t accounts;
};

int rebuild_open(struct rebuild **out, const struct rebuild_options *o, struct err *err)
{
    struct rebuild *r = xcalloc(1, sizeof(*r));

    r->o = *o;
    *out = r;
    return 0;
}

void rebuild_close(struct rebuild *r)
{
    free(r);
}

/* --- one bucket --- */

static int walk_send(struct rebuild_walk *w, struct err *err)
{
    int code = w->batched ? schedule_load(w->r->o.schedule, w->batch, w->batched, err) : 0;

    w->accounts += w->batched;
    w->batched = 0;
    arena_reset(&w->names);
    return code;
}

/* Loads the accounts of one hash into the schedule. Called when all keys of the hash were
 * listed. */
static int walk_flush(struct rebuild_walk *w, struct err *err)
{
    int code = 0;

    vec_each (&w->found, struct rebuild_found *, f) {
        struct schedule_loaded *next = &w->batch[w->batched];
        if (f->removed || code < 0)
            continue;
        next->score_ms = f->score_ms;
        code = archive_account_make(&next->account, &w->names, w->host, f->login, err);
        if (code == 0 && ++w->batched == SCHEDULE_BATCH_MAX)
            code = walk_send(w, err);
    }
    w->found.len = 0;
    arena_reset(&w->logins);
    return code;
}

static struct rebuild_found *walk_find(struct rebuild_walk *w, struct str login)
{
    vec_each (&w->found, struct rebuild_found *, f)
        if (str_eq(f->login, login))
            return f;
    vec_push(&w->found, ((struct rebuild_found){.login = arena_str(&w->logins, login),
                                                .score_ms = SCHEDULE_NEVER}));
    return vec_last(&w->found);
}

static int walk_key(struct rebuild_walk *w, const struct object_info *info, struct err *err)
{
    struct archive_object o;
    int code = 0;

    if (archive_key_read(&o, info->key) < 0)
        return 0; /* the object does not belong to the archive */
    if (memcmp(w->folders, info->key.p, HASH_FOLDERS_LEN) != 0) {
        code = walk_flush(w, err);
        memcpy(w->folders, info->key.p, HASH_FOLDERS_LEN);
    }
    if (code < 0)
        return code;
    /* Options say nothing about whether the account is tracked. */
    if (o.kind == ARCHIVE_OPTIONS)
        return 0;
    struct rebuild_found *f = walk_find(w, o.login);
    if (o.kind == ARCHIVE_RECORD)
        f->score_ms = info->modified_ms;
    else if (o.kind == ARCHIVE_REMOVED)
        f->removed = true;
    return arena_error(&w->logins);
}

static int walk_page(struct rebuild_walk *w, const struct schedule_set *where, struct str prefix,
                     struct buf *after, bool *more, struct err *err)
{
    struct arena a = ARENA_INIT(REBUILD_ARENA_MAX);
    struct list_options o = {.prefix = prefix, .after = buf_str(after), .limit = OBJECT_LIST_MAX};
    struct list_result page = {0};
    int code = w->r->o.list(w->r->o.ctx, &a, where, &o, &page, err);

    for (size_t i = 0; code == 0 && i < page.count; i++)
        if (!page.entries[i].is_prefix)
            code = walk_key(w, &page.entries[i].info, err);
    *more = code == 0 && page.more;
    /* If a page ends among the repositories of an account, the next page begins after all of them
     * (V3). */
    if (*more)
        archive_key_behind(after, page.next);
    arena_release(&a);
    return code;
}

static int rebuild_bucket(struct rebuild *r, unsigned slot, const struct schedule_set *where,
                          const struct task_run *run, uint64_t *accounts, struct err *err)
{
    struct rebuild_walk *w = xcalloc(1, sizeof(*w));
    struct buf after = {0};
    char prefix[4];
    bool more = true;
    int code = 0;

    w->r = r;
    w->host = where->host;
    arena_init(&w->logins, REBUILD_ARENA_MAX);
    arena_init(&w->names, REBUILD_ARENA_MAX);
    snprintf(prefix, sizeof(prefix), "%02x/", slot & 0xff);
    while (code == 0 && more) {
        code = walk_page(w, where, str_z(prefix), &after, &more, err);
        if (code == 0 && run && task_ended(run))
            code = err_set(err, ERR_SHUTDOWN, "the rebuild was cancelled");
    }
    if (code == 0)
        code = walk_flush(w, err);
    if (code == 0)
        code = walk_send(w, err);
    *accounts += w->accounts;
    buf_release(&after);
    vec_release(&w->found);
    arena_release(&w->logins);
    arena_release(&w->names);
    free(w);
    return code;
}

/* --- one slot --- */

/* Lists a slot on its satellites. If the slot moves, the satellite that it leaves is listed first.
 * So an account that moves between the two listings is found in the second one. */
static int rebuild_host(struct rebuild *r, unsigned slot, const struct slots *t, struct str host,
                        const struct task_run *run, uint64_t *accounts, struct err *err)
{
    const unsigned char from[2] = {t->leaves[slot], t->of[slot]};
    int code = 0;

    for (size_t i = slots_moves(t, slot) ? 0 : 1; code == 0 && i < 2; i++)
        code = rebuild_bucket(r, slot, &(struct schedule_set){host, str_z(t->names[from[i]])}, run,
                              accounts, err);
    return code;
}

static int rebuild_hosts(struct rebuild *r, unsigned slot, const struct slots *t, struct arena *a,
                         const struct task_run *run, uint64_t *accounts, struct err *err)
{
    struct str *hosts;
    size_t count;
    int code = r->o.hosts(r->o.ctx, a, &hosts, &count, err);

    for (size_t i = 0; code == 0 && i < count; i++)
        code = rebuild_host(r, slot, t, hosts[i], run, accounts, err);
    return code;
}

/* Whether the slot has begun or ended a move since the listing began. Then the listing may have
 * missed an account. */
static bool rebuild_slot_moved(const struct slots *before, const struct slots *now, unsigned slot)
{
    return before->epoch != now->epoch &&
           (strcmp(before->names[before->of[slot]], now->names[now->of[slot]]) != 0 ||
            slots_moves(before, slot) != slots_moves(now, slot));
}

int rebuild_slot(struct rebuild *r, unsigned slot, const struct task_run *run, uint64_t *accounts,
                 struct err *err)
{
    struct arena a = ARENA_INIT(REBUILD_ARENA_MAX);
    struct slots *tables = xcalloc(2, sizeof(*tables));
    struct str mark;
    int code = 0;

    BUG_ON(slot >= SLOT_COUNT);
    *accounts = 0;
    r->o.table(r->o.ctx, &tables[0]);
    if (tables[0].epoch == 0)
        code = err_set(err, ERR_UNAVAILABLE, "the archive has no table of satellites yet");
    if (code == 0)
        code = schedule_build(r->o.schedule, &a, slot, &mark, err);
    if (code == 0)
        code = rebuild_hosts(r, slot, &tables[0], &a, run, accounts, err);
    r->o.table(r->o.ctx, &tables[1]);
    if (code == 0 && rebuild_slot_moved(&tables[0], &tables[1], slot))
        code = err_set(err, ERR_AGAIN, "slot %u began or ended to move meanwhile", slot);
    if (code == 0)
        code = schedule_built(r->o.schedule, slot, mark, tables[1].epoch, err);
    free(tables);
    arena_release(&a);
    return code;
}

/* --- tasks --- */

int rebuild_missing(struct rebuild *r, size_t *added, struct err *err)
{
    struct arena a = ARENA_INIT(REBUILD_ARENA_MAX);
    struct task tasks[SLOT_COUNT];
    bool lacks[SLOT_COUNT];
    size_t count = 0, new_ones = 0;
    int code = schedule_lacks(r->o.schedule, lacks, err);

    for (unsigned slot = 0; code == 0 && slot < SLOT_COUNT; slot++)
        if (lacks[slot]) {
            struct str number = arena_fmt(&a, "%u", slot);
            tasks[count++] = (struct task){
                .type = STR(REBUILD_TASK_TYPE),
                .payload = number,
                .id = arena_fmt(&a, REBUILD_TASK_TYPE ":" STR_FMT, STR_ARG(number)),
                .queue = STR(ARCHIVE_QUEUE),
                .retry_max = REBUILD_TRIES,
            };
        }
    if (code == 0 && count > 0)
        code = queue_add_many(r->o.queue, tasks, count, &new_ones, err);
    if (code == 0 && new_ones > 0)
        log_info(r->o.log, "archive.rebuild", log_u("slots", new_ones));
    if (code == 0 && added)
        *added = new_ones;
    arena_release(&a);
    return code;
}

int rebuild_all(struct rebuild *r, struct err *err)
{
    int code = schedule_unbuild(r->o.schedule, err);

    return code == 0 ? rebuild_missing(r, NULL, err) : code;
}

int rebuild_handle(struct task_run *run, struct err *err)
{
    struct rebuild *r = run->ctx;
    uint64_t slot, accounts;

    if (str_u64(run->task->payload, &slot) < 0 || slot >= SLOT_COUNT)
        return err_set(err, ERR_INVALID, "the task does not name a slot");
    int code = rebuild_slot(r, (unsigned)slot, run, &accounts, err);
    if (code == 0) {
        log_info(&run->log, "archive.rebuilt", log_u("slot", slot), log_u("accounts", accounts));
        return 0;
    }
    log_warn(&run->log, "archive.rebuild", log_u("slot", slot), log_z("error", err->text));
    run->put_back_s = code == ERR_AGAIN ? REBUILD_AGAIN_S : REBUILD_DOWN_S;
    return ERR_AGAIN;
}
