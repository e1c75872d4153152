/* Reads the schedule: one account, pages of accounts, counts (archive/schedule.h). */
#include "archive/schedule_int.h"

const char *const schedule_state_names[SCHEDULE_STATES] = {
    [SCHEDULE_READY] = "ready",
    [SCHEDULE_LEASED] = "leased",
    [SCHEDULE_HELD] = "held",
    [SCHEDULE_UNKNOWN] = "unknown",
};

enum { FIND_FIELDS = 6 };

static enum schedule_state schedule_state_read(struct str name)
{
    for (size_t i = 0; i < SCHEDULE_STATES; i++)
        if (str_eq(name, str_z(schedule_state_names[i])))
            return (enum schedule_state)i;
    return SCHEDULE_UNKNOWN;
}

/* Reads the six fields that the script answers about one account. *tracked is false if the account
 * is not tracked. */
static int find_read(const struct reply *f, struct schedule_entry *out, bool *tracked,
                     struct err *err)
{
    double values[FIND_FIELDS] = {0};
    int code = 0;

    *tracked = f[0].str.len > 0;
    if (!*tracked)
        return 0;
    for (size_t i = 0; code == 0 && i < FIND_FIELDS; i++)
        if (i != 1)
            code = schedule_reply_number(&f[i], &values[i], err);
    if (code < 0)
        return code;
    out->score_ms = (int64_t)values[0];
    out->state = schedule_state_read(f[1].str);
    out->is_first = values[2] > 0;
    out->is_locked = values[3] > 0;
    out->held_until_ms = (int64_t)values[4];
    out->fails = (unsigned)values[5];
    return 0;
}

int schedule_find(struct schedule *s, struct arena *a, const struct archive_account *c,
                  struct schedule_entry *out, struct err *err)
{
    const struct str args[] = {schedule_entry_of(c, a)};
    struct schedule_entry entry = {.member = archive_account_member(c, a)};
    struct reply *reply;
    bool tracked = false;
    int code =
        schedule_eval(s, a, &reply, SCRIPT_schedule_find, &(struct store_args){args, 1}, err);

    if (code == 0)
        code = schedule_reply_array(reply, FIND_FIELDS, err);
    if (code == 0)
        code = find_read(reply->items, &entry, &tracked, err);
    if (code == 0 && !tracked)
        code = err_set(err, ERR_NOT_FOUND, STR_FMT " is not tracked", STR_ARG(entry.member));
    if (code == 0)
        *out = entry;
    return code;
}

/* --- pages --- */

/* Reads a page of members of `tracked`. *members is an array in which members and their scores
 * alternate. */
static int page_read(struct schedule *s, struct arena *a, const struct schedule_page *page,
                     struct reply **members, uint64_t *next, struct err *err)
{
    struct str at = arena_fmt(a, "%llu", (unsigned long long)page->at);
    struct reply *reply;
    int code;

    if (page->by_score) {
        struct str last = arena_fmt(a, "%llu", (unsigned long long)(page->at + page->limit - 1));
        code = store_call(s->o.app, a, &reply, err, STR("ZRANGE"), STR("tracked"), at, last,
                          STR("WITHSCORES"));
        if (code == 0)
            code = schedule_reply_array(reply, 0, err);
        if (code == 0)
            *next = reply->count == 2 * page->limit ? page->at + page->limit : 0;
        *members = reply;
        return code;
    }
    code = store_call(s->o.app, a, &reply, err, STR("ZSCAN"), STR("tracked"), at, STR("COUNT"),
                      arena_fmt(a, "%zu", page->limit));
    if (code == 0)
        code = schedule_reply_array(reply, 2, err);
    if (code == 0 && str_u64(reply->items[0].str, next) < 0)
        code = err_set(err, ERR_TYPE, "the store gave a malformed cursor");
    if (code == 0)
        code = schedule_reply_array(&reply->items[1], 0, err);
    if (code == 0)
        *members = &reply->items[1];
    return code;
}

/* Describes the accounts of a page. */
static int page_describe(struct schedule *s, struct arena *a, const struct reply *members,
                         struct schedule_entry *out, size_t *count, struct err *err)
{
    struct str *args = arena_array(a, members->count / 2 + 1, sizeof(*args));
    struct reply *reply;
    size_t n = 0;

    if (!args)
        return arena_error(a);
    for (size_t i = 0; i + 1 < members->count; i += 2) {
        struct archive_account c;
        if (archive_account_read(&c, a, members->items[i].str, NULL) < 0)
            continue;
        struct str member = members->items[i].str;
        args[n] = arena_fmt(a, "%u " STR_FMT, c.hash[0], STR_ARG(member));
        out[n++].member = member;
    }
    *count = 0;
    if (n == 0)
        return 0;
    int code =
        schedule_eval(s, a, &reply, SCRIPT_schedule_find, &(struct store_args){args, n}, err);
    if (code == 0)
        code = schedule_reply_array(reply, FIND_FIELDS * n, err);
    for (size_t i = 0; code == 0 && i < n; i++) {
        bool tracked;
        struct str member = out[i].member;
        code = find_read(&reply->items[FIND_FIELDS * i], &out[*count], &tracked, err);
        if (code == 0 && tracked)
            out[(*count)++].member = member;
    }
    return code;
}

int schedule_list(struct schedule *s, struct arena *a, const struct schedule_page *page,
                  struct schedule_entry **out, size_t *count, uint64_t *next, struct err *err)
{
    struct reply none = {0}, *members = &none;

    BUG_ON(page->limit == 0 || page->limit > SCHEDULE_PAGE_MAX);
    int code = page_read(s, a, page, &members, next, err);
    if (code < 0)
        return code;
    *out = arena_array(a, members->count / 2 + 1, sizeof(**out));
    return *out ? page_describe(s, a, members, *out, count, err) : arena_error(a);
}

int schedule_counts(struct schedule *s, bool deep, uint64_t resync_after_ms,
                    struct schedule_counts *out, struct err *err)
{
    struct arena a = ARENA_INIT(SCHEDULE_ARENA_MAX);
    const struct str args[] = {deep ? STR("1") : STR("0"),
                               arena_fmt(&a, "%llu", (unsigned long long)resync_after_ms)};
    struct schedule_counts c = {0};
    uint64_t epoch = 0;
    uint64_t *const fields[] = {&c.tracked, &c.ready, &c.leased, &c.held, &c.first,
                                &c.odd,     &c.built, &epoch,    &c.due,  &c.never};
    struct reply *reply;
    int code = schedule_eval(s, &a, &reply, SCRIPT_schedule_counts,
                             &(struct store_args){args, ARRAY_SIZE(args)}, err);

    if (code == 0)
        code = schedule_reply_array(reply, ARRAY_SIZE(fields), err);
    for (size_t i = 0; code == 0 && i < ARRAY_SIZE(fields); i++) {
        code = reply_expect(&reply->items[i], REPLY_INTEGER, err);
        *fields[i] = (uint64_t)reply->items[i].integer;
    }
    if (code == 0) {
        c.map_epoch = (uint32_t)epoch;
        *out = c;
    }
    arena_release(&a);
    return code;
}
