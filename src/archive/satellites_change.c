/* Changes of the table of slots: satellites are added and removed, and moves of slots end. */
#include "archive/satellites_int.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    CHANGE_ARENA_MAX = 16 * 1024 * 1024,
    /* How long a change waits for another one. It is longer than the time to live of a lock, so
     * that the lock of a process that died does not make the change fail. */
    CHANGE_WAIT_MS = 15 * 1000,
};

/* --- one change at a time (M7) --- */

static int change_begin(struct lock **out, struct satellites *s, struct err *err)
{
    int code = lock_wait(out, s->locks, SATELLITES_LOCK, CHANGE_WAIT_MS, err);

    return code == ERR_BUSY
               ? err_set(err, code, "another satellite is being added or drained; try again later")
               : code;
}

/* --- the first table --- */

static int begin_with(struct satellites *s, const struct str *names, size_t count, struct err *err)
{
    struct slots none = {0}, first;
    int code = slots_first(&first, names, count, err);

    return code < 0 ? code : satellites_decide(s, &first, &none, err);
}

/* Collects the names of the first satellites, which are those of the configuration or the main
 * storage. */
static size_t begin_names(struct satellites *s, struct str out[SATELLITES_MAX])
{
    struct str rest = str_z(s->first ? s->first : ""), name;
    size_t count = 0;

    while (count < SATELLITES_MAX && str_token(&rest, ",", &name)) {
        name = str_trim(name);
        if (name.len)
            out[count++] = name;
    }
    if (count == 0)
        out[count++] = routes_main_name(s->o.env.routes);
    return count;
}

static int begin_first(struct satellites *s, struct err *err)
{
    struct arena a = ARENA_INIT(CHANGE_ARENA_MAX);
    struct str names[SATELLITES_MAX];
    struct satellite_wanted wanted[SATELLITES_MAX] = {0};
    struct satellite_prepared prepared[SATELLITES_MAX] = {0};
    size_t count = begin_names(s, names);

    for (size_t i = 0; i < count; i++)
        wanted[i].name = names[i];
    /* If this fails, the users stay: another process may be making the same table with them. */
    int code = satellites_prepare(s, &a, wanted, count, prepared, err);
    if (code == 0)
        code = begin_with(s, names, count, err);
    arena_release(&a);
    /* Another process has made the first table, or one of these satellites had a table before. */
    return code == ERR_CONFLICT || code == ERR_EXISTS ? satellites_reload(s, err) : code;
}

int satellites_begin(struct satellites *s, struct err *err)
{
    struct lock *lock = NULL;
    struct slots now;
    int code = change_begin(&lock, s, err);

    if (code == 0)
        code = satellites_reload(s, err); /* the holder before may have made the table */
    satellites_table(s, &now);
    if (code == 0 && now.epoch == 0)
        code = begin_first(s, err);
    lock_release(lock);
    return code;
}

/* --- changing --- */

/* Computes the next table from the present one. */
typedef int change_fn(struct satellites *s, struct slots *next, const struct slots *now, void *ctx,
                      struct err *err);

/* Changes the table. fn() computes the change; it is called again if another change was decided
 * first. ERR_NOT_MODIFIED: fn() found nothing to change. */
static int table_change(struct satellites *s, change_fn *fn, void *ctx, struct err *err)
{
    struct slots *tables = xcalloc(2, sizeof(*tables)), *now = &tables[0], *next = &tables[1];
    int code = ERR_CONFLICT;

    for (int i = 0; i < SATELLITES_TRIES && code == ERR_CONFLICT; i++) {
        code = satellites_agree(s, true, now, err);
        if (code == 0 && now->epoch == 0)
            code = err_set(err, ERR_NOT_FOUND, "the archive has no satellites yet");
        if (code == 0)
            code = satellites_adopt(s, now, err);
        if (code == 0)
            code = fn(s, next, now, ctx, err);
        if (code == 0)
            code = satellites_decide(s, next, now, err);
    }
    free(tables);
    return code == ERR_NOT_MODIFIED ? 0 : code;
}

/* --- adding --- */

struct change_add {
    const struct satellite_wanted *wanted;
    size_t count;
    struct satellite_prepared *prepared;
    struct lock *lock; /* keeps other changes away (M7) */
};

/* Finds the first key of a bucket that comes after `after`; empty: there is none. */
static int bucket_first_key(struct satellites *s, struct arena *a,
                            const struct satellite_site *site, struct str after, struct str *out,
                            struct err *err)
{
    struct list_options o = {.after = after, .limit = 1};
    struct list_result page = {0};
    struct object_place p;
    int code = satellite_site_open(&p, s, a, site, STR("_"), PLACE_READ, err);

    *out = STR_EMPTY;
    if (code < 0)
        return code == ERR_NO_BUCKET ? 0 : code;
    code = object_place_end(&p, p.bucket->ops->list(p.bucket, a, &o, &page, err), err);
    if (code == 0 && page.count)
        *out = page.entries[0].info.key;
    return code;
}

/* Whether a bucket has no keys except those of tables. */
static int bucket_is_empty(struct satellites *s, struct arena *a, const struct satellite_site *site,
                           bool *out, struct err *err)
{
    struct str key;
    int code = bucket_first_key(s, a, site, STR_EMPTY, &key, err);

    if (code == 0 && str_starts(key, STR("_map/")))
        code = bucket_first_key(s, a, site, STR("_map/\x7f"), &key, err);
    *out = key.len == 0;
    return code;
}

/* Whether no satellite has an object of an account. */
static int archive_is_empty(struct satellites *s, const struct slots *t, bool *out, struct err *err)
{
    struct arena a = ARENA_INIT(CHANGE_ARENA_MAX);
    int code = 0;

    *out = true;
    for (size_t i = 0; i < t->count && code == 0 && *out; i++) {
        struct satellite_host *hosts = NULL;
        struct satellite_site site;
        size_t count = 0;
        code = satellites_hosts(s, &a, str_z(t->names[i]), &hosts, &count, err);
        for (size_t k = 0; k < count && code == 0 && *out; k++) {
            code = satellite_site_find(&site, s, &a, str_z(t->names[i]), hosts[k].bucket, err);
            if (code == 0)
                code = bucket_is_empty(s, &a, &site, out, err);
        }
    }
    arena_release(&a);
    return code;
}

/* Collects the names that the table does not have yet. */
static size_t add_names(const struct change_add *add, const struct slots *now,
                        struct str out[SATELLITES_MAX])
{
    size_t n = 0;

    for (size_t i = 0; i < add->count && n < SATELLITES_MAX; i++)
        if (slots_find(now, add->wanted[i].name) < 0)
            out[n++] = add->wanted[i].name;
    return n;
}

/* Computes the table with the satellites that it does not have yet. */
static int add_compute(struct satellites *s, struct slots *next, const struct slots *now,
                       const struct str *names, size_t count, struct err *err)
{
    bool empty = false;
    int code = archive_is_empty(s, now, &empty, err);

    if (code == 0 && !empty && count > 1)
        return err_set(err, ERR_INVALID,
                       "the archive has objects: add satellites one after another, because the "
                       "slots of each have to move");
    if (code < 0)
        return code;
    return empty ? slots_split(next, now, names, count, err) : slots_add(next, now, names[0], err);
}

static int add_table(struct satellites *s, struct slots *next, const struct slots *now, void *ctx,
                     struct err *err)
{
    struct str names[SATELLITES_MAX];
    size_t count = add_names(ctx, now, names);

    if (count == 0)
        return ERR_NOT_MODIFIED;
    int code = add_compute(s, next, now, names, count, err);
    for (size_t i = 0; i < count && code == 0; i++)
        code = satellite_map_put(s, names[i], now, NULL, err); /* M3 */
    return code;
}

/* Checks that the table can get the newcomers, before anything is made for them. */
static int add_check(struct satellites *s, const struct change_add *add, const struct slots *now,
                     struct err *err)
{
    struct str names[SATELLITES_MAX];
    size_t count = add_names(add, now, names);
    struct slots *next = xzalloc(sizeof(*next));
    int code = now->epoch && count ? add_compute(s, next, now, names, count, err) : 0;

    free(next);
    return code;
}

/* Checks that a new satellite does not have the table of another archive. */
static int newcomer_check(struct satellites *s, struct str name, struct err *err)
{
    struct slots *tables = xcalloc(2, sizeof(*tables)), *now = &tables[0], *own = &tables[1];
    int code = 0;

    satellites_table(s, now);
    if (now->epoch && slots_find(now, name) < 0) {
        code = satellite_map_newest(s, name, own, err);
        if (code == 0 && own->epoch && (slots_find(own, name) >= 0 || own->epoch > now->epoch))
            code = err_set(err, ERR_CONFLICT,
                           "the storage " STR_FMT " has a table of slots already: it belongs to "
                           "another archive, or to another time of this one",
                           STR_ARG(name));
    }
    free(tables);
    return code;
}

/* Whether the storages are satellites of this archive that only lack their users. Without the user
 * of the only satellite no table can be read. The user's policy has stayed. */
static bool add_repairs(struct satellites *s, struct arena *a, const struct change_add *add)
{
    bool repairs = true;

    for (size_t i = 0; i < add->count; i++)
        repairs &= satellite_lost_user(s, a, add->wanted[i].name);
    return repairs;
}

/* Reads the present table, if there is one. */
static int add_read_table(struct satellites *s, struct arena *a, const struct change_add *add,
                          struct slots *now, struct err *err)
{
    int code = satellites_current(s, now, false, err);

    if (code != ERR_UNAVAILABLE || !add_repairs(s, a, add))
        return code;
    code = satellites_prepare(s, a, add->wanted, add->count, add->prepared, err);
    return code < 0 ? code : satellites_current(s, now, false, err);
}

/* Makes what the newcomers need, and checks that none has a table of another archive. */
static int add_prepare(struct satellites *s, struct arena *a, const struct change_add *add,
                       struct err *err)
{
    int code = satellites_prepare(s, a, add->wanted, add->count, add->prepared, err);

    for (size_t i = 0; i < add->count && code == 0; i++)
        code = newcomer_check(s, add->wanted[i].name, err);
    return code;
}

static void add_undo_not(struct satellites *s, const struct change_add *add, const char *why)
{
    log_warn(s->o.log, "archive.satellite_left", log_s("satellite", add->wanted[0].name),
             log_z("error", why));
}

/* Removes what was made for satellites that the table does not have. If the lock was lost, another
 * process may be adding the same satellites now, so everything stays. */
static void add_undo(struct satellites *s, const struct change_add *add, const struct slots *t)
{
    if (!lock_held(add->lock)) {
        add_undo_not(s, add, "the lock of the change was lost");
        return;
    }
    for (size_t i = 0; i < add->count; i++)
        if (slots_find(t, add->wanted[i].name) < 0)
            satellite_undo(s, &add->prepared[i]);
}

/* Like add_undo(), after a change of the table that has failed. It may have been decided all the
 * same, so the tables are read again. If that is not possible, everything stays. */
static void add_undo_change(struct satellites *s, const struct change_add *add)
{
    struct slots *t = xzalloc(sizeof(*t));
    struct err err = {0};

    if (satellites_agree(s, false, t, &err) == 0)
        add_undo(s, add, t);
    else
        add_undo_not(s, add, err.text);
    free(t);
}

static int add_change(struct satellites *s, struct change_add *add, const struct slots *now,
                      struct err *err)
{
    struct str names[SATELLITES_MAX];
    int code = 0;

    for (size_t i = 0; i < add->count; i++)
        names[i] = add->wanted[i].name;
    if (now->epoch == 0)
        code = begin_with(s, names, add->count, err);
    return code < 0 && code != ERR_CONFLICT ? code : table_change(s, add_table, add, err);
}

/* Makes what the newcomers need, and reads the table to which they are added. After an error
 * nothing of it stays. `now` is the present table. Under the lock no other satellites can have come
 * since it was read. */
static int add_make(struct satellites *s, struct arena *a, struct change_add *add,
                    struct slots *now, struct err *err)
{
    struct slots *newest = xzalloc(sizeof(*newest));
    int code = add_prepare(s, a, add, err);

    if (code == 0)
        code = satellites_agree(s, false, newest, err);
    if (code < 0)
        add_undo(s, add, now);
    else
        *now = *newest;
    free(newest);
    return code;
}

/* Adds the satellites to the table `now`, or to the one that has followed it meanwhile. */
static int add_run(struct satellites *s, struct arena *a, struct change_add *add, struct slots *now,
                   struct err *err)
{
    int code = add_check(s, add, now, err);

    if (code == 0)
        code = add_make(s, a, add, now, err);
    if (code < 0)
        return code;
    code = add_change(s, add, now, err);
    if (code < 0)
        add_undo_change(s, add);
    return code;
}

int satellites_add(struct satellites *s, struct arena *a, const struct satellite_wanted *wanted,
                   size_t count, struct satellite_made *made, struct err *err)
{
    struct satellite_prepared prepared[SATELLITES_MAX] = {0};
    struct change_add add = {.wanted = wanted, .count = count, .prepared = prepared};
    struct slots now;

    if (count == 0 || count > SATELLITES_MAX)
        return err_set(err, ERR_INVALID, "give the names of 1 to %d satellites", SATELLITES_MAX);
    int code = change_begin(&add.lock, s, err);
    if (code == 0)
        code = satellites_check(s, a, wanted, count, err);
    if (code == 0)
        code = add_read_table(s, a, &add, &now, err);
    if (code == 0)
        code = add_run(s, a, &add, &now, err);
    lock_release(add.lock);
    for (size_t i = 0; i < count; i++)
        made[i] = prepared[i].made;
    return code;
}

/* --- draining and arriving --- */

static int drain_table(struct satellites *s, struct slots *next, const struct slots *now, void *ctx,
                       struct err *err)
{
    const struct str *name = ctx;

    return slots_drain(next, now, *name, err);
}

/* Ends the moves of several slots; `ctx` has a bool for each slot. */
static int arrive_table(struct satellites *s, struct slots *next, const struct slots *now,
                        void *ctx, struct err *err)
{
    return slots_arrive(next, now, ctx) ? 0 : ERR_NOT_MODIFIED;
}

/* Whether a satellite of the table has no slots. */
static bool slots_any_without(const struct slots *t)
{
    bool any = false;

    for (size_t i = 0; i < t->count; i++)
        any |= slots_held(t, i) == 0;
    return any;
}

/* Removes from the table the first satellite that has no slots. `ctx` gets its name; empty: every
 * satellite has slots. */
static int drop_table(struct satellites *s, struct slots *next, const struct slots *now, void *ctx,
                      struct err *err)
{
    char *dropped = ctx;

    *dropped = '\0';
    for (size_t i = 0; i < now->count && now->count > 1 && !slots_moving(now); i++)
        if (slots_held(now, i) == 0) {
            snprintf(dropped, SATELLITE_NAME_MAX + 1, "%s", now->names[i]);
            return slots_drop(next, now, str_z(dropped), err);
        }
    return ERR_NOT_MODIFIED;
}

/* Removes from the table all satellites that have no slots, unless a slot is moving. */
static int settle_run(struct satellites *s, const struct lock *lock, struct err *err)
{
    char dropped[SATELLITE_NAME_MAX + 1] = "";
    bool more = true;
    int code = 0;

    while (more && code == 0) {
        code = table_change(s, drop_table, dropped, err);
        more = code == 0 && *dropped;
        if (more && !lock_held(lock))
            return err_set(err, ERR_BUSY,
                           "the lock of the change was lost; `weir archive satellite drain %s` "
                           "once more ends it",
                           dropped);
        if (more)
            satellite_leave(s, str_z(dropped));
    }
    return code;
}

int satellites_settle(struct satellites *s, struct err *err)
{
    struct lock *lock = NULL;
    struct slots now;

    satellites_table(s, &now);
    if (slots_moving(&now) || !slots_any_without(&now))
        return 0;
    int code = change_begin(&lock, s, err);
    if (code == 0)
        code = settle_run(s, lock, err);
    lock_release(lock);
    return code;
}

static int drain_run(struct satellites *s, const struct lock *lock, struct str name,
                     struct err *err)
{
    struct slots now;
    int code = satellites_current(s, &now, false, err);

    if (code == 0)
        code = table_change(s, drain_table, &name, err);
    /* weir may have been killed after it removed the satellite from the table. */
    if (code == ERR_NOT_FOUND && satellite_has_left(s, name)) {
        satellite_leave(s, name);
        return 0;
    }
    satellites_table(s, &now);
    return code < 0 || slots_moving(&now) ? code : settle_run(s, lock, err);
}

int satellites_drain(struct satellites *s, struct str name, struct err *err)
{
    struct lock *lock = NULL;
    int code = change_begin(&lock, s, err);

    if (code == 0)
        code = drain_run(s, lock, name, err);
    lock_release(lock);
    return code;
}

/* Waits until no other thread is changing the table. Returns false if another thread has ended the
 * move of the slot meanwhile. Otherwise this thread ends the moves of all slots in `set`, including
 * those for which other threads wait. */
static bool arrive_begin(struct satellites *s, unsigned slot, bool set[SLOT_COUNT])
{
    mutex_lock(&s->lock);
    s->arrived[slot] = true;
    while (s->arriving)
        cond_wait(&s->settled, &s->lock);
    bool turn = s->arrived[slot];
    if (turn) {
        s->arriving = true;
        memcpy(set, s->arrived, sizeof(s->arrived));
    }
    mutex_unlock(&s->lock);
    return turn;
}

/* Lets the other threads continue. If the change failed, each of them tries to end its move
 * itself. */
static void arrive_end(struct satellites *s, unsigned slot, const bool set[SLOT_COUNT], int code)
{
    mutex_lock(&s->lock);
    for (unsigned i = 0; i < SLOT_COUNT; i++)
        if (i == slot || (code == 0 && set[i]))
            s->arrived[i] = false;
    s->arriving = false;
    cond_broadcast(&s->settled);
    mutex_unlock(&s->lock);
}

int satellites_arrive(struct satellites *s, unsigned slot, struct err *err)
{
    bool set[SLOT_COUNT];

    if (!arrive_begin(s, slot, set))
        return 0;
    int code = table_change(s, arrive_table, set, err);
    arrive_end(s, slot, set, code);
    return code < 0 ? code : satellites_settle(s, err);
}
