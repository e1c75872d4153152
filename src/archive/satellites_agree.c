/* How satellites agree about the table of slots (docs/archive.md, M1 to M6).
 *
 *     epoch n on all ──► create n+1 on the satellite whose name sorts first: this decides
 *                    ──► copy n+1 to the others ──► write n+1 to the store ──► use n+1
 *
 * While table n is the newest, each of its satellites has table n-1 or table n as its newest one.
 * Three rules ensure that: a new satellite gets table n-1 before table n is decided, a satellite
 * that table n removes gets table n too, and the table is changed only while all satellites answer.
 * Any other state means that there are two archives, or that a satellite was restored from an old
 * state; then weir refuses to work. */
#include "archive/satellites_int.h"

#include "base/vec.h"

#include <stdlib.h>

/* The table that was found on a storage that may be a satellite. */
struct map_seen {
    char name[SATELLITE_NAME_MAX + 1];
    struct err err; /* code 0: the storage answered */
    struct slots table;
};

struct map_view {
    struct map_seen *seen; /* on the heap: a table has 4.6 KiB */
    size_t count;
};

static void map_view_release(struct map_view *v)
{
    free(v->seen);
    *v = (struct map_view){0};
}

/* --- looking --- */

/* Checks whether the storage may be a satellite: a user of the same name must exist whose policy
 * leads to the storage. ERR_NOT_FOUND: the storage is no satellite. Any other error means that this
 * is not known, for example because the users could not be loaded yet (M5). */
static int storage_may_be_one(struct satellites *s, struct arena *a, struct storage *at,
                              struct err *err)
{
    struct storage *leads = NULL;
    struct user user;
    int code = satellite_name_ok(at->name) ? users_by_name(s->o.users, a, at->name, &user, err)
                                           : ERR_NOT_FOUND;

    if (code == 0)
        code = route_storage(s->o.env.routes, user.id, STR_EMPTY, &leads, err);
    /* With ERR_OFFLINE the policy leads to a storage that is not there, so not to this one. */
    return code == ERR_OFFLINE || (code == 0 && leads != at) ? ERR_NOT_FOUND : code;
}

static void map_view_look(struct map_view *v, struct satellites *s, struct arena *a,
                          struct storage *at)
{
    struct map_seen *m = &v->seen[v->count];
    struct err why = {0};
    int code = storage_may_be_one(s, a, at, &why);

    if (code == ERR_NOT_FOUND)
        return;
    *m = (struct map_seen){.err = why};
    memcpy(m->name, at->name.p, at->name.len);
    m->err.code = code < 0 ? code : satellite_map_newest(s, at->name, &m->table, &m->err);
    v->count++;
}

static struct map_seen *map_view_find(const struct map_view *v, struct str name)
{
    for (size_t i = 0; i < v->count; i++)
        if (str_eq(str_z(v->seen[i].name), name))
            return &v->seen[i];
    return NULL;
}

/* Checks that the storages and the policies could be read from the store. Before that, a satellite
 * may be missing among the storages. */
static int map_view_check(struct satellites *s, struct err *err)
{
    struct storage *leads = NULL;
    int code = route_storage(s->o.env.routes, STR_EMPTY, STR_EMPTY, &leads, err);

    return code == ERR_UNAVAILABLE ? err_wrap(err, code, "the archive's satellites") : 0;
}

/* The newest table that was found; NULL: there is none. */
static const struct map_seen *map_view_newest(const struct map_view *v)
{
    const struct map_seen *best = NULL;

    for (size_t i = 0; i < v->count; i++)
        if (v->seen[i].err.code == 0 && v->seen[i].table.epoch &&
            (!best || v->seen[i].table.epoch > best->table.epoch))
            best = &v->seen[i];
    return best;
}

static bool table_has(const struct slots *t, const char *name)
{
    return slots_find(t, str_z(name)) >= 0;
}

/* Whether a satellite has a table that is too old beside the table `top` (M4). */
static bool map_is_behind(const struct map_seen *m, const struct slots *top)
{
    bool member = table_has(top, m->name) || table_has(&m->table, m->name);

    return m->err.code == 0 && member && m->table.epoch + 1 < top->epoch;
}

/* Reads the satellites again that are behind the table `top`. Returns whether one of them is not
 * behind it any more. */
static bool map_view_again(struct map_view *v, struct satellites *s, const struct slots *top)
{
    bool any = false;

    for (size_t i = 0; i < v->count; i++) {
        struct map_seen *m = &v->seen[i];
        if (!map_is_behind(m, top))
            continue;
        m->err = (struct err){0};
        m->err.code = satellite_map_newest(s, str_z(m->name), &m->table, &m->err);
        any |= !map_is_behind(m, top);
    }
    return any;
}

/* The satellites were read one after another, and the table may have changed several times
 * meanwhile. So those that are behind the newest table are read again. When table n was seen
 * anywhere, each of its satellites had table n-1 at least. So a satellite that is still behind then
 * was set back. ERR_CONFLICT: the table changes all the time. */
static int map_view_catch_up(struct map_view *v, struct satellites *s, struct err *err)
{
    const struct map_seen *newest = map_view_newest(v);
    struct slots *top = xzalloc(sizeof(*top));
    bool more = newest != NULL;
    int tries = 0;

    for (; more && tries < SATELLITES_TRIES; tries++) {
        *top = map_view_newest(v)->table;
        more = map_view_again(v, s, top);
    }
    free(top);
    return more ? err_set(err, ERR_CONFLICT, "the table of slots changes all the time") : 0;
}

/* Asks every storage that may be a satellite for its newest table. */
static int map_view_read(struct map_view *v, struct satellites *s, struct err *err)
{
    struct storage *all[ROUTES_STORAGES_MAX];
    size_t count = routes_storages(s->o.env.routes, all, ARRAY_SIZE(all));
    struct arena a = {0};
    int code = map_view_check(s, err);

    *v = (struct map_view){.seen = xcalloc(count + 1, sizeof(struct map_seen))};
    if (code < 0)
        return code;
    for (size_t i = 0; i < count; i++)
        map_view_look(v, s, &a, all[i]);
    arena_release(&a);
    code = map_view_catch_up(v, s, err);
    for (size_t i = 0; i < v->count && code == 0; i++)
        if (v->seen[i].err.code == ERR_CORRUPT || v->seen[i].err.code == ERR_TOO_LARGE)
            code = err_set(err, ERR_CORRUPT, "%s", v->seen[i].err.text);
    return code;
}

/* --- judging --- */

/* Compares the table of one satellite with the newest table (M4). */
static int map_judge(const struct map_seen *m, const struct map_seen *newest, struct err *err)
{
    const struct slots *t = &m->table, *top = &newest->table;
    bool member = table_has(top, m->name) || table_has(t, m->name);

    if (m->err.code < 0 || !member)
        return 0;
    if (t->epoch == top->epoch && !slots_same(t, top))
        return err_set(err, ERR_CORRUPT,
                       "the satellites %s and %s have different tables of slots of epoch %u; the "
                       "archive does not work until one of the two objects _map/%u.json is removed",
                       m->name, newest->name, t->epoch, t->epoch);
    if (map_is_behind(m, top))
        return err_set(err, ERR_CORRUPT,
                       "the satellite %s has the table of slots of epoch %u, and %s has epoch %u: "
                       "they belong to two archives, or %s was set back to an old state",
                       m->name, t->epoch, newest->name, top->epoch, m->name);
    return 0;
}

/* Called when no table was found. Decides whether it is certain that none exists. */
static int map_judge_none(const struct map_view *v, struct err *err)
{
    for (size_t i = 0; i < v->count; i++)
        if (v->seen[i].err.code < 0)
            return err_set(err, ERR_UNAVAILABLE,
                           "the storage %s does not say whether it has the table of slots: %s",
                           v->seen[i].name, v->seen[i].err.text);
    return 0;
}

/* Checks that enough satellites of the table have answered: all of them if `all` is set, otherwise
 * at least one. */
static int map_judge_answers(struct satellites *s, const struct map_view *v, const struct slots *t,
                             bool all, struct err *err)
{
    size_t answered = 0;

    for (size_t i = 0; i < t->count; i++) {
        const struct map_seen *m = map_view_find(v, str_z(t->names[i]));
        if (m && m->err.code == 0) {
            answered++;
            continue;
        }
        if (all)
            return err_set(err, ERR_UNAVAILABLE,
                           "the satellite %s does not answer, and the table of slots is changed "
                           "only when all do: %s",
                           t->names[i], m ? m->err.text : "weir has no such storage and user");
        log_warn(s->o.log, "archive.satellite_down", log_z("satellite", t->names[i]),
                 log_z("error", m ? m->err.text : "there is no such storage and user"));
    }
    return answered ? 0
                    : err_set(err, ERR_UNAVAILABLE, "no satellite of the table of epoch %u answers",
                              t->epoch);
}

/* Copies the newest table to the satellites that lack it. */
static int map_finish(struct satellites *s, const struct map_view *v, const struct slots *t,
                      struct err *err)
{
    int code = 0;

    for (size_t i = 0; i < v->count && code == 0; i++) {
        const struct map_seen *m = &v->seen[i];
        bool lacks = m->err.code == 0 && m->table.epoch < t->epoch &&
                     (table_has(t, m->name) || table_has(&m->table, m->name));
        if (lacks)
            code = satellite_map_put(s, str_z(m->name), t, NULL, err);
    }
    return code == ERR_EXISTS ? err_set(err, ERR_CONFLICT, "the table of slots changed just now")
                              : code;
}

int satellites_agree(struct satellites *s, bool all, struct slots *out, struct err *err)
{
    struct map_view v;
    const struct map_seen *newest = NULL;
    int code = map_view_read(&v, s, err);

    *out = (struct slots){0};
    if (code == 0 && !(newest = map_view_newest(&v)))
        code = map_judge_none(&v, err);
    for (size_t i = 0; newest && i < v.count && code == 0; i++)
        code = map_judge(&v.seen[i], newest, err);
    if (newest && code == 0)
        code = map_judge_answers(s, &v, &newest->table, all, err);
    if (newest && code == 0)
        code = map_finish(s, &v, &newest->table, err);
    if (newest && code == 0)
        *out = newest->table;
    map_view_release(&v);
    return code;
}

/* --- deciding --- */

static int name_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Fills `out` with the names of both tables, sorted: first the names of `before`, then the others.
 * The first name is the satellite that decides. So two changes of the same table are decided on the
 * same satellite. */
static size_t decide_order(const struct slots *next, const struct slots *before,
                           const char *out[2 * SATELLITES_MAX])
{
    size_t n = 0;

    for (size_t i = 0; i < before->count; i++)
        out[n++] = before->names[i];
    qsort(out, n, sizeof(out[0]), name_order);
    size_t old = n;
    for (size_t i = 0; i < next->count; i++)
        if (!table_has(before, next->names[i]))
            out[n++] = next->names[i];
    qsort(out + old, n - old, sizeof(out[0]), name_order);
    return n;
}

int satellites_decide(struct satellites *s, const struct slots *next, const struct slots *before,
                      struct err *err)
{
    const char *names[2 * SATELLITES_MAX] = {0};
    size_t count = decide_order(next, before, names);
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++) {
        code = satellite_map_put(s, str_z(names[i]), next, NULL, err);
        if (code == ERR_EXISTS && i == 0)
            return err_set(err, ERR_CONFLICT, "another change of the table of slots came first");
    }
    if (code == 0)
        code = satellites_adopt(s, next, err);
    for (size_t i = 0; i < count && code == 0 && next->epoch % SATELLITES_PRUNE == 0; i++)
        satellite_map_prune(s, str_z(names[i]), next->epoch);
    return code;
}
