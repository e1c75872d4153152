/* Claims of accounts (archive/schedule.h; docs/archive.md, T3 to T7). */
#include "archive/schedule_int.h"

#include "base/clock.h"
#include "base/ids.h"

/* CLAIM_LOOKS: how many accounts a claim may examine in addition to those that it claims. An
 * account that cannot be claimed is moved to the index where it belongs, so the next claim does not
 * examine it again. */
enum { CLAIM_LOOKS = 128, CLAIM_HEAD = 2, CLAIM_FIELDS = 4 };
enum {
    CLAIM_ARGS = 6,
    /* One in this many claims puts leased and held accounts back into the ready sets. */
    CLAIM_BACK = 8
};

/* Writes the arguments of the claim script. Each claim begins with another ready set, so that
 * accounts with equal scores are claimed from all satellites in turn. */
static int claim_args(struct schedule *s, struct arena *a, const struct schedule_ask *ask,
                      struct store_args *out)
{
    struct str *args = arena_array(a, CLAIM_ARGS + ask->set_count, sizeof(*args));
    char word[ID_HEX_LEN + 1];
    size_t turn = atomic_fetch_add(&s->turns, 1), n = ask->most ? ask->most : 1;

    if (!args)
        return arena_error(a);
    id_hex(word);
    args[0] = arena_fmt(a, "%zu", n);
    args[1] = arena_fmt(a, "%llu", (unsigned long long)s->o.lock_ms);
    args[2] = arena_fmt(a, "%llu", (unsigned long long)ask->resync_after_ms);
    args[3] = arena_str(a, str_z(word));
    args[4] = arena_fmt(a, "%zu", CLAIM_LOOKS + n);
    args[5] = turn % CLAIM_BACK == 0 || atomic_load(&s->idle) ? STR("1") : STR("0");
    for (size_t i = 0; i < ask->set_count; i++) {
        const struct schedule_set *set = &ask->sets[(turn + i) % ask->set_count];
        struct buf name = {0};
        store_key_part(&name, set->host);
        buf_append_char(&name, ':');
        store_key_part(&name, set->satellite);
        args[CLAIM_ARGS + i] = arena_str(a, buf_str(&name));
        buf_release(&name);
    }
    *out = (struct store_args){args, CLAIM_ARGS + ask->set_count};
    return arena_error(a);
}

/* Returns the member in an entry, which is `<slot> <member>`. */
static struct str entry_member(struct str entry)
{
    struct str slot, member = STR_EMPTY;

    str_cut(entry, ' ', &slot, &member);
    return member;
}

/* Reads the four fields of one claimed account, and begins to renew its lock. */
static int claim_read(struct schedule *s, struct arena *a, const struct reply *fields,
                      uint64_t since_ns, struct schedule_claim *out, struct err *err)
{
    double score = SCHEDULE_NEVER;
    struct schedule_claim c = {.schedule = s, .is_tracked = true};
    int code = 0;

    for (size_t i = 0; code == 0 && i < CLAIM_FIELDS; i++)
        code = reply_expect(&fields[i], REPLY_BULK, err);
    if (code == 0)
        code = schedule_reply_number(&fields[1], &score, err);
    if (code == 0 && str_u64(fields[2].str, &c.fence) < 0)
        code = err_set(err, ERR_TYPE, "the store gave a malformed fence");
    if (code == 0) {
        c.member = arena_str(a, entry_member(fields[0].str));
        code = archive_account_read(&c.account, a, c.member, err);
    }
    if (code == 0) {
        c.score_ms = (int64_t)score;
        code = lock_adopt(&c.lock, s->locks, archive_account_lock(&c.account, a), fields[3].str,
                          since_ns, err);
    }
    if (code == 0)
        *out = c;
    return code;
}

int schedule_claim(struct schedule *s, struct arena *a, const struct schedule_ask *ask,
                   struct schedule_claim *out, size_t *count, uint64_t *wait_ms, struct err *err)
{
    struct store_args args;
    struct reply *reply;
    double now_ms = 0, wait = 0;
    uint64_t since_ns = clock_mono_ns();

    BUG_ON(ask->most > SCHEDULE_CLAIM_MAX || ask->set_count > SCHEDULE_SETS_MAX);
    *count = 0;
    *wait_ms = UINT64_MAX;
    int code = claim_args(s, a, ask, &args);
    if (code == 0)
        code = schedule_eval(s, a, &reply, SCRIPT_schedule_claim, &args, err);
    if (code == 0)
        code = schedule_reply_array(reply, CLAIM_HEAD, err);
    if (code == 0)
        code = schedule_reply_number(&reply->items[0], &now_ms, err);
    if (code == 0)
        code = schedule_reply_number(&reply->items[1], &wait, err);
    if (code == 0 && wait >= 0)
        *wait_ms = (uint64_t)wait;
    for (size_t i = CLAIM_HEAD; code == 0 && i + CLAIM_FIELDS <= reply->count; i += CLAIM_FIELDS) {
        code = claim_read(s, a, &reply->items[i], since_ns, &out[*count], err);
        if (code == 0)
            out[(*count)++].started_ms = (int64_t)now_ms;
    }
    if (code < 0)
        while (*count > 0)
            schedule_leave(&out[--*count]);
    atomic_store(&s->idle, *count == 0);
    return code;
}

/* Reads the answer of the script that takes one account. */
static int take_read(struct schedule *s, struct arena *a, const struct reply *r, uint64_t since_ns,
                     struct schedule_claim *out, struct err *err)
{
    double values[5] = {0};
    int code = schedule_reply_array(r, ARRAY_SIZE(values), err);

    for (size_t i = 0; code == 0 && i < ARRAY_SIZE(values); i++)
        if (i != 2 && r->items[i].str.len > 0)
            code = schedule_reply_number(&r->items[i], &values[i], err);
    if (code < 0)
        return code;
    out->schedule = s;
    out->started_ms = (int64_t)values[0];
    out->fence = (uint64_t)values[1];
    out->is_tracked = r->items[3].str.len > 0;
    out->score_ms = out->is_tracked ? (int64_t)values[3] : SCHEDULE_NEVER;
    out->held_until_ms = (int64_t)values[4];
    return lock_adopt(&out->lock, s->locks, archive_account_lock(&out->account, a), r->items[2].str,
                      since_ns, err);
}

int schedule_take(struct schedule *s, struct arena *a, const struct archive_account *c,
                  struct schedule_claim *out, struct err *err)
{
    struct schedule_claim claim = {.account = *c, .member = archive_account_member(c, a)};
    char word[ID_HEX_LEN + 1];
    struct reply *reply;
    uint64_t since_ns = clock_mono_ns();

    id_hex(word);
    const struct str args[] = {schedule_entry_of(c, a),
                               arena_fmt(a, "%llu", (unsigned long long)s->o.lock_ms), str_z(word)};
    int code = schedule_eval(s, a, &reply, SCRIPT_schedule_take,
                             &(struct store_args){args, ARRAY_SIZE(args)}, err);
    if (code == 0 && reply_is_nil(reply))
        return err_set(err, ERR_BUSY, "somebody works on " STR_FMT, STR_ARG(claim.member));
    if (code == 0)
        code = take_read(s, a, reply, since_ns, &claim, err);
    if (code == 0)
        *out = claim;
    return code;
}

void schedule_leave(struct schedule_claim *c)
{
    lock_leave(c->lock);
    c->lock = NULL;
}

/* Ends a claim by the script. `how` and `value` are the script's last two arguments. */
static int claim_end(struct schedule_claim *c, const char *how, int64_t value, struct err *err)
{
    struct arena a = ARENA_INIT(SCHEDULE_ARENA_MAX);
    const struct str args[] = {
        schedule_entry_of(&c->account, &a), lock_token(c->lock),
        arena_fmt(&a, "%lld", (long long)(c->is_tracked ? c->started_ms : 0)), str_z(how),
        arena_fmt(&a, "%lld", (long long)value)};
    int64_t ended = 0;
    int code = schedule_number(c->schedule, SCRIPT_schedule_end,
                               &(struct store_args){args, ARRAY_SIZE(args)}, &ended, err);

    if (code == 0 && ended == 0)
        code = err_set(err, ERR_BUSY, "the lock of " STR_FMT " was lost", STR_ARG(c->member));
    arena_release(&a);
    schedule_leave(c);
    return code;
}

int schedule_end_full(struct schedule_claim *c, struct err *err)
{
    return claim_end(c, "full", c->started_ms, err);
}

int schedule_end_failed(struct schedule_claim *c, uint64_t hold_ms, struct err *err)
{
    return claim_end(c, "failed", (int64_t)hold_ms, err);
}

int schedule_end_back(struct schedule_claim *c, struct err *err)
{
    return claim_end(c, "back", c->held_until_ms, err);
}
