/* Commands by which an administrator overrules why a bucket is broken, where its log has a map.
 * Each writes one more map and then reads the log again, as a start does, so a kill in between does
 * no harm. */
#include "shard/verify.h"

#include "base/clock.h"
#include "shard/discover.h"
#include "shard/log.h"

enum { OVERRULE_MS = 30 * MS_PER_S };

/* The log of a bucket whose name this thread has claimed. */
struct overrule {
    struct str house; /* that of this installation */
    struct str name;
    struct discovered found;
};

/* Changes the draft of the next map, or says why it must not be written. */
typedef int overrule_fn(const struct overrule *o, struct shard_map *draft, struct err *err);

static int overrule_publish(const struct overrule *o, overrule_fn *change, struct err *err)
{
    struct shard_map *draft = map_draft(o->found.head);
    int code = change(o, draft, err);

    if (code == 0)
        code = map_check(draft, err);
    if (code == 0)
        code = log_commit(o->found.log, draft, clock_mono_ns() + OVERRULE_MS * NS_PER_MS, err);
    map_unref(draft);
    return code;
}

static int overrule(struct shards *s, struct storage *home, struct str name, overrule_fn *change,
                    struct err *err)
{
    struct overrule o = {.house = shards_settings(s)->house, .name = name};
    struct err before;

    if (shards_state(s, home, name, NULL) != SHARDS_BROKEN)
        return err_set(err, ERR_NOT_FOUND, "the bucket " STR_FMT " is not broken", STR_ARG(name));
    if (!shards_recover(s, home, name, &before))
        return err_set(err, ERR_BUSY, "the bucket " STR_FMT " is being changed", STR_ARG(name));
    int code = discover_read(&o.found, home, name, err);
    if (code == 0)
        code = overrule_publish(&o, change, err);
    discovered_release(&o.found);
    if (code == 0)
        return discover_claimed(s, home, name, &before, err);
    if (before.code < 0)
        shards_break(s, home, name, &before);
    else /* another thread has just made the bucket plain */
        shards_forget(s, home, name, NULL);
    return code;
}

/* --- a bucket that is missing --- */

/* Says that the bucket is being removed. The recovery then removes what is left of it. */
static int overrule_remove(const struct overrule *o, struct shard_map *draft, struct err *err)
{
    if (o->found.exists)
        return err_set(err, ERR_EXISTS, "the bucket " STR_FMT " exists; DeleteBucket removes it",
                       STR_ARG(o->name));
    if (!str_eq(draft->house, o->house))
        return err_set(err, ERR_CONFLICT,
                       "another installation of weir has written the map of bucket " STR_FMT
                       "; take it over first",
                       STR_ARG(o->name));
    map_open(draft);
    if (draft->move.id.len)
        map_end_move(draft);
    draft->state = SHARD_DELETING;
    return 0;
}

int shard_remove_left(struct shards *s, struct storage *home, struct str name, struct err *err)
{
    struct bucket *log = NULL;
    int code = overrule(s, home, name, overrule_remove, err);

    if (code < 0)
        return code;
    code = discover_open_log(&log, home, name, err);
    if (code == ERR_NO_BUCKET)
        return 0;
    if (log)
        log->ops->unref(log);
    return code < 0 ? code
                    : err_set(err, ERR_UNAVAILABLE,
                              "the name is free, but not everything could be removed; the log of "
                              "weir says why, and the next start tries again");
}

/* --- a map of another installation --- */

static int overrule_house(const struct overrule *o, struct shard_map *draft, struct err *err)
{
    if (str_eq(draft->house, o->house))
        return err_set(err, ERR_EXISTS,
                       "the map of bucket " STR_FMT " is of this installation of weir already",
                       STR_ARG(o->name));
    map_set_house(draft, o->house);
    return 0;
}

int shard_take_over(struct shards *s, struct storage *home, struct str name, struct err *err)
{
    return overrule(s, home, name, overrule_house, err);
}
