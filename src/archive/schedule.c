/* The schedule: opening it, tracking accounts, and loading them from the storages
 * (archive/schedule.h). */
#include "archive/schedule_int.h"

#include "base/ids.h"

#include <stdio.h>
#include <stdlib.h>

int schedule_open(struct schedule **out, const struct schedule_options *o, struct err *err)
{
    struct schedule *s = xcalloc(1, sizeof(*s));

    s->o = *o;
    s->o.lock_ms = o->lock_ms ? o->lock_ms : SCHEDULE_LOCK_MS;
    mutex_init(&s->lock, "schedule");
    int code = locks_open(
        &s->locks, &(struct locks_options){.store = o->app, .ttl_ms = s->o.lock_ms, .log = o->log},
        err);
    if (code < 0) {
        schedule_close(s);
        return code;
    }
    *out = s;
    return 0;
}

void schedule_close(struct schedule *s)
{
    if (!s)
        return;
    locks_close(s->locks);
    mutex_release(&s->lock);
    free(s);
}

/* --- scripts --- */

/* Writes a table of slots to the store, unless the store has a later one. */
static int schedule_send_map(struct schedule *s, const struct slots *t, struct err *err)
{
    struct arena a = ARENA_INIT(SCHEDULE_ARENA_MAX);
    struct str args[1 + SLOT_COUNT];
    struct reply *reply;

    args[0] = arena_fmt(&a, "%u", t->epoch);
    for (size_t i = 0; i < SLOT_COUNT; i++)
        args[1 + i] = str_z(t->names[t->of[i]]);
    int code = archive_eval(s->o.app, &a, &reply, SCRIPT_schedule_map, args, ARRAY_SIZE(args), err);
    arena_release(&a);
    return code;
}

int schedule_map(struct schedule *s, const struct slots *table, struct err *err)
{
    mutex_lock(&s->lock);
    if (table->epoch > s->table.epoch)
        s->table = *table;
    mutex_unlock(&s->lock);
    return schedule_send_map(s, table, err);
}

static int schedule_map_again(struct schedule *s, struct err *err)
{
    struct slots *copy = xcalloc(1, sizeof(*copy));

    mutex_lock(&s->lock);
    *copy = s->table;
    mutex_unlock(&s->lock);
    int code = copy->epoch
                   ? schedule_send_map(s, copy, err)
                   : err_set(err, ERR_UNAVAILABLE, "the archive has no table of satellites yet");
    free(copy);
    return code;
}

int schedule_eval(struct schedule *s, struct arena *a, struct reply **out,
                  enum archive_script which, const struct store_args *args, struct err *err)
{
    int code = archive_eval(s->o.app, a, out, which, args->argv, args->argc, err);

    if (code < 0 || (*out)->type != REPLY_BULK || !str_eq((*out)->str, STR("NOMAP")))
        return code;
    code = schedule_map_again(s, err);
    if (code == 0)
        code = archive_eval(s->o.app, a, out, which, args->argv, args->argc, err);
    return code;
}

int schedule_reply_number(const struct reply *r, double *out, struct err *err)
{
    char text[40] = "", *end;

    if (r->type == REPLY_INTEGER) {
        *out = (double)r->integer;
        return 0;
    }
    if (r->type == REPLY_BULK && r->str.len > 0 && r->str.len < sizeof(text)) {
        memcpy(text, r->str.p, r->str.len);
        *out = strtod(text, &end);
        if (end == text + r->str.len)
            return 0;
    }
    return err_set(err, ERR_TYPE, "the store gave a malformed answer about the schedule");
}

int schedule_reply_array(const struct reply *r, size_t least, struct err *err)
{
    if (r->type == REPLY_ARRAY && r->count >= least)
        return 0;
    return err_set(err, ERR_TYPE, "the store gave a malformed answer about the schedule");
}

int schedule_number(struct schedule *s, enum archive_script which, const struct store_args *args,
                    int64_t *out, struct err *err)
{
    struct arena a = ARENA_INIT(SCHEDULE_ARENA_MAX);
    struct reply *reply;
    int code = schedule_eval(s, &a, &reply, which, args, err);

    if (code == 0)
        code = reply_expect(reply, REPLY_INTEGER, err);
    if (code == 0)
        *out = reply->integer;
    arena_release(&a);
    return code;
}

struct str schedule_entry_of(const struct archive_account *c, struct arena *a)
{
    struct str member = archive_account_member(c, a);

    return arena_fmt(a, "%u " STR_FMT, c->hash[0], STR_ARG(member));
}

/* --- tracking --- */

int schedule_add(struct schedule *s, const struct archive_account *accounts, size_t count,
                 size_t *added, struct err *err)
{
    struct arena a = ARENA_INIT(SCHEDULE_ARENA_MAX);
    struct str entries[SCHEDULE_BATCH_MAX];
    int64_t n = 0;

    BUG_ON(count == 0 || count > SCHEDULE_BATCH_MAX);
    for (size_t i = 0; i < count; i++)
        entries[i] = schedule_entry_of(&accounts[i], &a);
    int code = arena_error(&a);
    if (code == 0)
        code =
            schedule_number(s, SCRIPT_schedule_add, &(struct store_args){entries, count}, &n, err);
    if (code == 0 && added)
        *added = (size_t)n;
    arena_release(&a);
    return code;
}

/* Runs a script about one account. The script answers 0 when the account is not tracked. */
static int schedule_change_one(struct schedule *s, enum archive_script which,
                               const struct archive_account *c, struct err *err)
{
    struct arena a = ARENA_INIT(SCHEDULE_ARENA_MAX);
    const struct str args[] = {schedule_entry_of(c, &a)};
    int64_t n = 0;
    int code = schedule_number(s, which, &(struct store_args){args, 1}, &n, err);

    if (code == 0 && n == 0)
        code = err_set(err, ERR_NOT_FOUND, STR_FMT "/" STR_FMT " is not tracked", STR_ARG(c->host),
                       STR_ARG(c->login));
    arena_release(&a);
    return code;
}

int schedule_remove(struct schedule *s, const struct archive_account *c, struct err *err)
{
    return schedule_change_one(s, SCRIPT_schedule_remove, c, err);
}

int schedule_first(struct schedule *s, const struct archive_account *c, struct err *err)
{
    return schedule_change_one(s, SCRIPT_schedule_first, c, err);
}

int schedule_raise_fence(struct schedule *s, uint64_t fence, struct err *err)
{
    char text[24];
    int64_t n = 0;

    snprintf(text, sizeof(text), "%llu", (unsigned long long)fence);
    const struct str args[] = {str_z(text)};
    int code = schedule_number(s, SCRIPT_schedule_fence, &(struct store_args){args, 1}, &n, err);
    return code == 0 && !n ? err_set(err, ERR_RANGE, "no claim can have had this fence") : code;
}

int schedule_turn(struct schedule *s, struct str word, uint64_t ms, bool *mine, struct err *err)
{
    struct arena a = ARENA_INIT(SCHEDULE_ARENA_MAX);
    struct reply *reply;
    int code = store_call(s->o.app, &a, &reply, err, STR("SET"),
                          arena_fmt(&a, "w:archive:turn:" STR_FMT, STR_ARG(word)), STR("1"),
                          STR("NX"), STR("PX"), arena_fmt(&a, "%llu", (unsigned long long)ms));

    if (code == 0 && reply->type == REPLY_ERROR)
        code = reply_expect(reply, REPLY_STATUS, err);
    if (code == 0)
        *mine = !reply_is_nil(reply);
    arena_release(&a);
    return code;
}

/* --- rebuilding --- */

int schedule_build(struct schedule *s, struct arena *a, unsigned slot, struct str *mark,
                   struct err *err)
{
    char random[ID_HEX_LEN + 1];
    int64_t n;

    id_hex(random);
    *mark = arena_str(a, str_z(random));
    const struct str args[] = {STR("begin"), arena_fmt(a, "%u", slot), *mark};
    return schedule_number(s, SCRIPT_schedule_built, &(struct store_args){args, ARRAY_SIZE(args)},
                           &n, err);
}

int schedule_built(struct schedule *s, unsigned slot, struct str mark, uint32_t epoch,
                   struct err *err)
{
    struct arena a = ARENA_INIT(SCHEDULE_ARENA_MAX);
    const struct str args[] = {STR("end"), arena_fmt(&a, "%u", slot), mark,
                               arena_fmt(&a, "%u", epoch)};
    int64_t n = 0;
    int code = schedule_number(s, SCRIPT_schedule_built,
                               &(struct store_args){args, ARRAY_SIZE(args)}, &n, err);

    if (code == 0 && n == 0)
        code = err_set(err, ERR_AGAIN,
                       "slot %u must be rebuilt once more: the store was emptied meanwhile, or "
                       "another rebuild has begun",
                       slot);
    arena_release(&a);
    return code;
}

int schedule_load(struct schedule *s, const struct schedule_loaded *batch, size_t count,
                  struct err *err)
{
    struct arena a = ARENA_INIT(SCHEDULE_ARENA_MAX);
    struct str args[3 * SCHEDULE_BATCH_MAX];
    int64_t n;

    BUG_ON(count == 0 || count > SCHEDULE_BATCH_MAX);
    for (size_t i = 0; i < count; i++) {
        args[3 * i] = arena_fmt(&a, "%lld", (long long)batch[i].score_ms);
        args[3 * i + 1] = archive_account_member(&batch[i].account, &a);
        args[3 * i + 2] = schedule_entry_of(&batch[i].account, &a);
    }
    int code = arena_error(&a);
    if (code == 0)
        code = schedule_number(s, SCRIPT_schedule_load, &(struct store_args){args, 3 * count}, &n,
                               err);
    arena_release(&a);
    return code;
}

int schedule_lacks(struct schedule *s, bool lacks[SLOT_COUNT], struct err *err)
{
    struct arena a = ARENA_INIT(SCHEDULE_ARENA_MAX);
    struct reply *reply;
    int code = store_call(s->o.app, &a, &reply, err, STR("HKEYS"), STR("w:archive:built"));

    if (code == 0)
        code = reply_expect(reply, REPLY_ARRAY, err);
    if (code == 0) {
        memset(lacks, true, SLOT_COUNT * sizeof(*lacks));
        for (size_t i = 0; i < reply->count; i++) {
            uint64_t slot;
            if (str_u64(reply->items[i].str, &slot) == 0 && slot < SLOT_COUNT)
                lacks[slot] = false;
        }
    }
    arena_release(&a);
    return code;
}

int schedule_unbuild(struct schedule *s, struct err *err)
{
    struct arena a = ARENA_INIT(SCHEDULE_ARENA_MAX);
    struct reply *reply;
    int code = store_call(s->o.app, &a, &reply, err, STR("DEL"), STR("w:archive:built"));

    if (code == 0)
        code = reply_expect(reply, REPLY_INTEGER, err);
    arena_release(&a);
    return code;
}
