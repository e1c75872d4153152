/* Mending: corrects the indexes of the schedule after somebody has changed `tracked` by hand
 * (docs/archive.md, T8).
 *
 * A pass first checks the indexes. It moves accounts whose slots belong to another satellite now
 * into the sets of that satellite, and removes accounts that are not tracked any more. Then it
 * checks `tracked`: accounts that are in no index were added by hand. */
#include "archive/schedule_int.h"

#include <stdlib.h>

enum { MEND_SLICE = 500 };

#define MEND_ODD STR("w:archive:odd")

/* Reads a slice of a set by ZSCAN or SSCAN. *cursor becomes the cursor of the next slice. */
static int mend_scan(struct schedule *s, struct arena *a, struct str command, struct str key,
                     struct str *cursor, struct reply **out, struct err *err)
{
    struct reply *reply;
    int code = store_call(s->o.app, a, &reply, err, command, key, *cursor, STR("COUNT"),
                          arena_fmt(a, "%d", MEND_SLICE));

    if (code == 0)
        code = schedule_reply_array(reply, 2, err);
    if (code == 0)
        code = reply_expect(&reply->items[0], REPLY_BULK, err);
    if (code == 0)
        code = schedule_reply_array(&reply->items[1], 0, err);
    if (code == 0) {
        *cursor = reply->items[0].str;
        *out = &reply->items[1];
    }
    return code;
}

/* Runs the mending script for entries that were found in the set `place`. The caller puts the
 * entries into the arguments from args[2] on; this function fills args[0] and args[1]. */
static int mend_eval(struct schedule *s, struct arena *a, struct str mode, struct str place,
                     const struct store_args *args, struct reply **out, struct err *err)
{
    struct str *argv = (struct str *)args->argv;

    argv[0] = mode;
    argv[1] = place;
    int code = schedule_eval(s, a, out, SCRIPT_schedule_mend, args, err);
    return code == 0 ? schedule_reply_array(*out, 0, err) : code;
}

static int mend_fix(struct schedule *s, struct schedule_mend *m, struct arena *a, struct str place,
                    const struct store_args *args, struct err *err)
{
    struct reply *r;
    int code = mend_eval(s, a, STR("fix"), place, args, &r, err);

    if (code == 0)
        code = schedule_reply_array(r, 4, err);
    if (code == 0) {
        m->found_count += (uint64_t)r->items[0].integer;
        m->dropped += (uint64_t)r->items[1].integer;
        m->moved += (uint64_t)r->items[2].integer;
        m->future += (uint64_t)r->items[3].integer;
    }
    return code;
}

/* --- the indexes --- */

/* Mends a slice of an index. In the reply, entries and scores alternate. */
static int mend_index_slice(struct schedule *s, struct schedule_mend *m, struct arena *a,
                            struct str place, const struct reply *slice, struct err *err)
{
    struct str *args = arena_array(a, 2 + slice->count / 2, sizeof(*args));
    size_t n = 2;

    if (!args)
        return arena_error(a);
    for (size_t i = 0; i + 1 < slice->count; i += 2)
        args[n++] = slice->items[i].str;
    return n > 2 ? mend_fix(s, m, a, place, &(struct store_args){args, n}, err) : 0;
}

static bool mend_cancelled(const struct schedule_mend *m)
{
    return m->cancel && atomic_load(m->cancel);
}

/* Copies a cursor out of an arena that is about to be reset. */
static struct str cursor_keep(char kept[32], struct str cursor)
{
    size_t len = size_min(cursor.len, 31);

    memcpy(kept, cursor.p, len);
    return str_n(kept, len);
}

static int mend_index(struct schedule *s, struct schedule_mend *m, struct str place,
                      struct err *err)
{
    struct arena a = ARENA_INIT(SCHEDULE_ARENA_MAX);
    char kept[32];
    struct str cursor = STR("0");
    struct reply *slice;
    int code;

    do {
        arena_reset(&a);
        code = mend_scan(s, &a, STR("ZSCAN"), place, &cursor, &slice, err);
        if (code == 0)
            code = mend_index_slice(s, m, &a, place, slice, err);
        cursor = cursor_keep(kept, cursor);
    } while (code == 0 && !str_eq(cursor, STR("0")) && !mend_cancelled(m));
    arena_release(&a);
    return code;
}

static int mend_indexes(struct schedule *s, struct schedule_mend *m, struct err *err)
{
    struct arena a = ARENA_INIT(SCHEDULE_ARENA_MAX);
    struct reply *sets;
    int code = store_call(s->o.app, &a, &sets, err, STR("SMEMBERS"), STR("w:archive:sets"));

    if (code == 0)
        code = schedule_reply_array(sets, 0, err);
    for (size_t i = 0; code == 0 && i < sets->count && !mend_cancelled(m); i++)
        code = mend_index(s, m, sets->items[i].str, err);
    if (code == 0)
        code = mend_index(s, m, STR("w:archive:leased"), err);
    if (code == 0)
        code = mend_index(s, m, STR("w:archive:hold"), err);
    arena_release(&a);
    return code;
}

/* --- `tracked` --- */

/* Notes a member of `tracked` that is not the name of an account. */
static int mend_odd(struct schedule *s, struct arena *a, struct str member, struct err *err)
{
    struct reply *reply;
    int code = store_call(s->o.app, a, &reply, err, STR("SADD"), MEND_ODD, member);

    if (code == 0)
        code = reply_expect(reply, REPLY_INTEGER, err);
    if (code == 0 && reply->integer == 1)
        log_warn(s->o.log, "archive.tracked_odd", log_s("member", member));
    return code;
}

/* Replaces a member by its spelling in lower case. */
static int mend_fold(struct schedule *s, struct arena *a, struct str member, struct str score,
                     struct str folded, struct err *err)
{
    const struct str add[] = {STR("ZADD"), STR("tracked"), STR("NX"), score, folded};
    const struct str remove[] = {STR("ZREM"), STR("tracked"), member};
    const struct store_args commands[] = {{add, ARRAY_SIZE(add)}, {remove, ARRAY_SIZE(remove)}};
    struct reply *reply;

    return store_atomic(s->o.app, a, &reply, commands, ARRAY_SIZE(commands), err);
}

/* Removes an entry from the arguments of the mending script, so that the script does not mend it.
 * The first two arguments are not entries. */
static void mend_leave_out(struct store_args *entries, struct str *args, struct str entry)
{
    for (size_t i = 2; i < entries->argc; i++)
        if (str_eq(args[i], entry)) {
            args[i] = args[--entries->argc];
            return;
        }
}

/* Calls found() for each account that is in no index. If found() fails for an account, for example
 * because its satellite is down, the account is left for the next pass. */
static void mend_strangers(const struct schedule *s, const struct schedule_mend *m, struct arena *a,
                           const struct reply *strangers, struct store_args *entries,
                           struct str *args)
{
    for (size_t i = 0; m->found && i < strangers->count; i++) {
        struct archive_account c;
        struct err why = {0};
        struct str slot, member = STR_EMPTY;
        str_cut(strangers->items[i].str, ' ', &slot, &member);
        int code = archive_account_read(&c, a, member, &why);
        if (code == 0)
            code = m->found(m->ctx, &c, &why);
        if (code == 0)
            continue;
        log_warn(s->o.log, "archive.found", log_s("member", member), log_z("error", why.text));
        mend_leave_out(entries, args, strangers->items[i].str);
    }
}

/* Mends a slice of `tracked`. In the reply, members and scores alternate. */
static int mend_tracked_slice(struct schedule *s, struct schedule_mend *m, struct arena *a,
                              const struct reply *slice, struct err *err)
{
    struct str *args = arena_array(a, 2 + slice->count / 2, sizeof(*args));
    struct reply *strangers;
    size_t n = 2;
    int code = arena_error(a);

    for (size_t i = 0; code == 0 && i + 1 < slice->count; i += 2) {
        struct str member = slice->items[i].str;
        struct archive_account c;
        if (archive_account_read(&c, a, member, NULL) < 0) {
            code = mend_odd(s, a, member, err);
            continue;
        }
        struct str folded = archive_account_member(&c, a);
        if (!str_eq(folded, member))
            code = mend_fold(s, a, member, slice->items[i + 1].str, folded, err);
        args[n++] = schedule_entry_of(&c, a);
    }
    if (code < 0 || n == 2)
        return code;
    struct store_args all = {args, n};
    code = mend_eval(s, a, STR("look"), STR("tracked"), &all, &strangers, err);
    if (code == 0)
        mend_strangers(s, m, a, strangers, &all, args);
    return code == 0 && all.argc > 2 ? mend_fix(s, m, a, STR("tracked"), &all, err) : code;
}

static int mend_counts_agree(struct schedule *s, bool *agree, struct err *err)
{
    struct schedule_counts c;
    int code = schedule_counts(s, false, 0, &c, err);

    *agree = code == 0 && c.tracked == c.ready + c.leased + c.held + c.odd;
    return code;
}

/* Mends the accounts with the lowest scores. Somebody who adds an account by hand gives it the
 * score 0 or -1, so this finds such an account soon. */
static int mend_lowest(struct schedule *s, struct schedule_mend *m, struct err *err)
{
    struct arena a = ARENA_INIT(SCHEDULE_ARENA_MAX);
    struct reply *slice;
    int code = store_call(s->o.app, &a, &slice, err, STR("ZRANGE"), STR("tracked"), STR("0"),
                          arena_fmt(&a, "%d", MEND_SLICE - 1), STR("WITHSCORES"));

    if (code == 0)
        code = schedule_reply_array(slice, 0, err);
    if (code == 0)
        code = mend_tracked_slice(s, m, &a, slice, err);
    arena_release(&a);
    return code;
}

static int mend_tracked(struct schedule *s, struct schedule_mend *m, struct err *err)
{
    struct arena a = ARENA_INIT(SCHEDULE_ARENA_MAX);
    char kept[32];
    struct str cursor = STR("0");
    struct reply *slice;
    bool agree = false;
    int code;

    do {
        arena_reset(&a);
        code = mend_scan(s, &a, STR("ZSCAN"), STR("tracked"), &cursor, &slice, err);
        if (code == 0)
            code = mend_tracked_slice(s, m, &a, slice, err);
        cursor = cursor_keep(kept, cursor);
        if (code == 0 && !m->whole)
            code = mend_counts_agree(s, &agree, err);
    } while (code == 0 && !agree && !str_eq(cursor, STR("0")) && !mend_cancelled(m));
    arena_release(&a);
    return code;
}

/* Removes the notes about invalid members that are not in `tracked` any more. */
static int mend_odds(struct schedule *s, struct err *err)
{
    struct arena a = ARENA_INIT(SCHEDULE_ARENA_MAX);
    char kept[32];
    struct str cursor = STR("0");
    struct reply *slice, *reply;
    int code;

    do {
        arena_reset(&a);
        code = mend_scan(s, &a, STR("SSCAN"), MEND_ODD, &cursor, &slice, err);
        for (size_t i = 0; code == 0 && i < slice->count; i++) {
            struct str member = slice->items[i].str;
            code = store_call(s->o.app, &a, &reply, err, STR("ZSCORE"), STR("tracked"), member);
            if (code == 0 && reply_is_nil(reply))
                code = store_call(s->o.app, &a, &reply, err, STR("SREM"), MEND_ODD, member);
        }
        cursor = cursor_keep(kept, cursor);
    } while (code == 0 && !str_eq(cursor, STR("0")));
    arena_release(&a);
    return code;
}

int schedule_mend(struct schedule *s, struct schedule_mend *m, struct err *err)
{
    bool agree = false;
    int code = mend_odds(s, err);

    if (code == 0 && !m->whole)
        code = mend_lowest(s, m, err);
    if (code == 0 && !m->whole)
        code = mend_counts_agree(s, &agree, err);
    if (code == 0 && !agree)
        code = mend_indexes(s, m, err);
    if (code == 0 && !m->whole && !agree)
        code = mend_counts_agree(s, &agree, err);
    return code == 0 && !agree ? mend_tracked(s, m, err) : code;
}
