/* Holding claims: which lake may remove files of a namespace (docs/lake-keeping.md, "Two lakes in
 * one namespace"; N1 to N7 are its invariants). lake/claim.h says what a *life* is, and
 * lake/claim_int.h what a *rival* is.
 *
 * A *look* reads and judges the claim of one namespace. A *note* is the result of the last look at
 * the claim of a repository, in memory. A *pass* looks at the claims of all repositories. */
#include "lake/claim_int.h"
#include "lake/iter.h"
#include "lake/place.h"

#include "base/clock.h"
#include "base/ids.h"
#include "base/map.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    CLAIM_TRIES = 5,           /* most looks at a claim while others change it */
    CLAIM_CLOCK_MS = MS_PER_S, /* storages give the time of a change only in whole seconds */
    CLAIM_RETRY_MS = 30 * MS_PER_S,
};

enum claim_state {
    CLAIM_HELD,   /* the claim is this lake's alone */
    CLAIM_SHARED, /* another lake uses the namespace too */
    CLAIM_ABSENT, /* there is no claim */
    CLAIM_OTHERS, /* the claim is that of another repository, or of another program */
};

/* The note of a repository's claim. */
struct claim_note {
    struct buf partition;
    enum claim_state state; /* by the last look */
    uint64_t pass;          /* number of the last pass that has found the repository */
};

struct lake_claims {
    char life[ID_HEX_LEN + 1];
    _Atomic(bool) has_row; /* the row of the life is durable */
    struct loop loop;
    struct mutex lock; /* class "lake.claims"; guards the members below */
    struct map notes;  /* partition to struct claim_note */
    uint64_t refused;  /* number of notes whose state is not CLAIM_HELD */
    uint64_t pass;     /* number of the present or last pass */
};

struct lake_claims *lake_claims_new(void)
{
    struct lake_claims *c = xzalloc(sizeof(*c));

    id_hex(c->life);
    mutex_init(&c->lock, "lake.claims");
    map_init(&c->notes);
    return c;
}

static void claim_note_free(struct claim_note *n)
{
    if (!n)
        return;
    buf_release(&n->partition);
    free(n);
}

void lake_claims_free(struct lake_claims *c)
{
    size_t cursor = 0;
    struct str partition;
    void *note;

    if (!c)
        return;
    loop_stop(&c->loop);
    while (map_next(&c->notes, &cursor, &partition, &note)) {
        map_remove(&c->notes, partition);
        claim_note_free(note);
    }
    map_release(&c->notes);
    mutex_release(&c->lock);
    free(c);
}

/* --- lives --- */

static struct kv_name claim_key_life(struct arena *a, struct str life)
{
    return lake_key_in(a, LAKE_PARTITION, "lives", life);
}

int claims_life(struct lake *l, struct str *out, struct err *err)
{
    struct lake_claims *c = l->claims;
    struct arena a = {0};
    int code = 0;

    *out = str_z(c->life);
    if (!atomic_load(&c->has_row)) {
        code = kv_set(l->kv, claim_key_life(&a, *out),
                      arena_fmt(&a, "%lld", (long long)clock_wall_ms()), err);
        if (code == 0)
            atomic_store(&c->has_row, true);
    }
    arena_release(&a);
    return code;
}

int claims_knows_life(struct lake *l, struct arena *a, struct str life, bool *out, struct err *err)
{
    struct kv_value value;

    *out = life.len == 0;
    if (*out || life.len > ID_HEX_LEN)
        return 0;
    int code = kv_get(l->kv, NULL, a, claim_key_life(a, life), &value, err);
    *out = code == 0;
    return code == ERR_NOT_FOUND ? 0 : code;
}

/* --- what this process has looked at --- */

static bool claim_is_this_repository(enum claim_state state)
{
    return state == CLAIM_HELD || state == CLAIM_SHARED;
}

/* Whether this process has already looked at the claim, and the claim says that this lake uses the
 * namespace. */
static bool claims_told(struct lake_claims *c, struct str partition)
{
    mutex_lock(&c->lock);
    const struct claim_note *n = map_get(&c->notes, partition);
    bool told = n && claim_is_this_repository(n->state);
    mutex_unlock(&c->lock);
    return told;
}

/* Notes the state that a look has found. Returns whether it differs from the state that was noted
 * before. */
static bool claims_note(struct lake_claims *c, struct str partition, enum claim_state state)
{
    mutex_lock(&c->lock);
    struct claim_note *n = map_get(&c->notes, partition);
    if (!n) {
        n = xzalloc(sizeof(*n));
        buf_append_str(&n->partition, partition);
        map_put(&c->notes, buf_str(&n->partition), n);
    }
    bool changed = n->state != state;
    c->refused += state != CLAIM_HELD;
    c->refused -= n->state != CLAIM_HELD;
    n->state = state;
    n->pass = c->pass;
    mutex_unlock(&c->lock);
    return changed;
}

/* Notes that the present pass has found the repository, whether or not its claim can be read. */
static void claims_meet(struct lake_claims *c, struct str partition)
{
    mutex_lock(&c->lock);
    struct claim_note *n = map_get(&c->notes, partition);
    if (n)
        n->pass = c->pass;
    mutex_unlock(&c->lock);
}

void claims_forget(struct lake *l, struct str partition)
{
    struct lake_claims *c = l->claims;

    mutex_lock(&c->lock);
    struct claim_note *n = map_remove(&c->notes, partition);
    c->refused -= n && n->state != CLAIM_HELD;
    mutex_unlock(&c->lock);
    claim_note_free(n);
}

uint64_t lake_claims_refused(struct lake *l)
{
    mutex_lock(&l->claims->lock);
    uint64_t refused = l->claims->refused;
    mutex_unlock(&l->claims->lock);
    return refused;
}

bool lake_claim_was_refused(struct lake *l, struct str partition)
{
    mutex_lock(&l->claims->lock);
    const struct claim_note *n = map_get(&l->claims->notes, partition);
    bool refused = n && n->state != CLAIM_HELD;
    mutex_unlock(&l->claims->lock);
    return refused;
}

/* --- a look --- */

/* The result of a look. */
struct claim_look {
    enum claim_state state;
    bool changed;        /* the look itself has just changed the claim */
    int64_t modified_ms; /* when the claim was changed last, by the clock of the storage */
};

/* Sets the error that says why files of the namespace may not be removed, and what to do. */
static int claim_refuse(const struct claim *c, enum claim_state state, struct err *err)
{
    const struct lake_repo *r = c->repo;

    if (state == CLAIM_SHARED)
        return err_set(err, ERR_IN_USE,
                       "another lake uses the storage namespace " STR_FMT
                       " too: it runs on a copy or a backup of this lake's records, or this lake "
                       "does. No file is removed. Stop one of the two for good, then run `weir "
                       "lake gc claim lake://" STR_FMT "` on the other one",
                       STR_ARG(str_head(r->space, 160)), STR_ARG(r->id));
    if (state == CLAIM_ABSENT)
        return err_set(err, ERR_NOT_FOUND,
                       "the storage namespace " STR_FMT " has no claim (" LAKE_CLAIM
                       "): its files are in the folder of another machine, or were removed. If "
                       "they are all there, run `weir lake gc claim lake://" STR_FMT "`",
                       STR_ARG(str_head(r->space, 160)), STR_ARG(r->id));
    return err_set(err, ERR_NOT_FOUND,
                   "the claim (" LAKE_CLAIM ") of the storage namespace " STR_FMT
                   " names another repository",
                   STR_ARG(str_head(r->space, 160)));
}

/* Judges the claim `seen`, and changes it where that is needed. If the life that the claim names
 * has a row in this lake's records, or the claim names no life, the claim is this lake's. Then this
 * process writes its own life in its place, if this is its first look (`first`) or no life is named
 * (N2). If the named life has no row, it belongs to another lake. Then this process adds its own
 * life as the rival, unless the claim names a rival already (N3). ERR_PRECONDITION, ERR_CONFLICT:
 * another process has just changed the claim. */
static int claim_judge(struct claim *c, const struct claim_seen *seen, bool first,
                       struct claim_look *out, struct err *err)
{
    struct claim_words words, next;
    bool known = false;
    struct str life;

    *out = (struct claim_look){.state = CLAIM_ABSENT, .modified_ms = seen->modified_ms};
    if (!seen->text.p)
        return 0;
    out->state = CLAIM_OTHERS;
    if (!claim_parse(seen->text, &words) || !str_eq(words.partition, c->repo->partition))
        return 0;
    int code = claims_life(c->lake, &life, err);
    if (code == 0)
        code = claims_knows_life(c->lake, &c->arena, words.life, &known, err);
    if (code < 0)
        return code;
    next = words;
    if (known && (first || !words.life.len))
        next.life = life;
    if (!known && !words.rival.len)
        next.rival = life;
    out->state = known && !next.rival.len ? CLAIM_HELD : CLAIM_SHARED;
    out->changed = !str_eq(next.life, words.life) || !str_eq(next.rival, words.rival);
    return out->changed ? claim_put(c, seen, claim_format(&c->arena, &next), err) : 0;
}

static int claim_look(struct claim *c, struct claim_look *out, struct err *err)
{
    bool first = !claims_told(c->lake->claims, c->repo->partition);
    struct str key = claim_key(c, c->prefix, LAKE_CLAIM);
    struct claim_seen seen;
    int code = ERR_PRECONDITION;

    for (int i = 0; i < CLAIM_TRIES && (code == ERR_PRECONDITION || code == ERR_CONFLICT); i++) {
        code = claim_see(c, key, &seen, err);
        if (code == 0)
            code = claim_judge(c, &seen, first, out, err);
    }
    if (code == ERR_PRECONDITION || code == ERR_CONFLICT)
        return err_set(err, ERR_BUSY, "others change the claim of the storage namespace " STR_FMT,
                       STR_ARG(str_head(c->repo->space, 160)));
    return code;
}

/* Checks that the repository still exists. ERR_NOT_FOUND: the repository was deleted, which
 * explains why its claim is absent. */
static int claim_check_repo(struct claim *c, struct err *err)
{
    struct lake_repo now;
    int code = lake_repo_get(c->lake, &c->arena, c->repo->id, &now, err);

    return code == 0 && !str_eq(now.partition, c->repo->partition) ? ERR_NOT_FOUND : code;
}

/* Looks at the claim, notes the state, and logs the state if it is new. ERR_NOT_FOUND: neither the
 * claim nor the repository is there. */
static int claim_look_note(struct claim *c, struct lake *l, const struct lake_repo *r,
                           struct claim_look *out, struct err *err)
{
    int code = claim_init(c, l, r, err);

    if (code == 0)
        code = claim_look(c, out, err);
    if (code == 0 && !claim_is_this_repository(out->state))
        code = claim_check_repo(c, err);
    if (code < 0 || !claims_note(l->claims, r->partition, out->state))
        return code;
    struct err why = {0};
    if (out->state == CLAIM_HELD)
        log_info(l->o.log, "lake.claim_held", log_s("repository", r->id));
    else if (claim_refuse(c, out->state, &why) < 0)
        log_error(l->o.log, "lake.claim_refused", log_s("repository", r->id),
                  log_z("error", why.text));
    return 0;
}

/* --- asking --- */

int lake_claim_may_write(struct lake *l, const struct lake_repo *r, struct err *err)
{
    struct claim_look look;
    struct claim c;

    if (l->o.place || claims_told(l->claims, r->partition))
        return 0;
    int code = claim_look_note(&c, l, r, &look, err);
    if (code == 0 && !claim_is_this_repository(look.state))
        code = claim_refuse(&c, look.state, err) < 0 ? ERR_UNAVAILABLE : 0;
    arena_release(&c.arena);
    return code;
}

/* Whether the claim has been unchanged for more than twice claim_every_ms. In that time every
 * running lake that uses the namespace has looked at the claim. Another lake would have found a
 * life that its records do not have, and would have changed the claim. So no other lake uses the
 * namespace (N4). */
static bool claim_is_settled(const struct lake *l, const struct claim_look *look)
{
    int64_t wait_ms = 2 * (int64_t)l->o.claim_every_ms;

    return wait_ms == 0 ||
           (!look->changed && look->modified_ms + wait_ms + CLAIM_CLOCK_MS <= clock_wall_ms());
}

int lake_claim_may_remove(struct lake *l, const struct lake_repo *r, struct lake_claim_watch *w,
                          struct err *err)
{
    uint64_t now_ms = clock_mono_ms();
    struct claim_look look;
    struct claim c;

    if (l->o.place)
        return err_code(err, ERR_NOT_FOUND);
    if (w->settled && now_ms < w->asked_ms + l->claim_ask_ms)
        return 0;
    int code = claim_look_note(&c, l, r, &look, err);
    if (code == 0 && look.state != CLAIM_HELD)
        code = claim_refuse(&c, look.state, err);
    if (code == 0 && !w->settled && !claim_is_settled(l, &look))
        code = err_set(err, ERR_BUSY,
                       "the claim of the storage namespace " STR_FMT
                       " changed lately; files are removed when no other lake has objected",
                       STR_ARG(str_head(r->space, 160)));
    if (code == 0)
        *w = (struct lake_claim_watch){.settled = true, .asked_ms = now_ms};
    arena_release(&c.arena);
    return code;
}

/* --- taking --- */

/* Puts a claim with the new life `life`, which no other lake knows, and without a rival. */
static int claim_take_once(struct claim *c, struct str life, struct err *err)
{
    struct claim_words words, next = {.partition = c->repo->partition, .life = life};
    struct claim_seen seen;
    int code = claim_see(c, claim_key(c, c->prefix, LAKE_CLAIM), &seen, err);

    if (code == 0 && seen.text.p &&
        (!claim_parse(seen.text, &words) || !str_eq(words.partition, c->repo->partition))) {
        code = claim_refuse(c, CLAIM_OTHERS, err);
        return code == ERR_NOT_FOUND ? ERR_IN_USE : code;
    }
    return code < 0 ? code : claim_put(c, &seen, claim_format(&c->arena, &next), err);
}

int lake_claim_take(struct lake *l, const struct lake_repo *r, struct err *err)
{
    char life[ID_HEX_LEN + 1];
    struct claim c;
    int code = claim_init(&c, l, r, err);

    id_hex(life);
    if (code == 0)
        code = kv_set(l->kv, claim_key_life(&c.arena, str_z(life)),
                      arena_fmt(&c.arena, "%lld", (long long)clock_wall_ms()), err);
    if (code == 0)
        code = claim_take_once(&c, str_z(life), err);
    if (code == ERR_PRECONDITION || code == ERR_CONFLICT)
        code = err_set(err, ERR_BUSY, "another process has just changed the claim; try again");
    if (code == 0)
        (void)claims_note(l->claims, r->partition, CLAIM_HELD);
    arena_release(&c.arena);
    return code;
}

/* --- looking at all of them --- */

static void claims_begin_pass(struct lake_claims *c)
{
    mutex_lock(&c->lock);
    c->pass++;
    mutex_unlock(&c->lock);
}

/* Finds a note of a repository that the present pass has not found. The next call finds another
 * note. Returns false when there is no further one. */
static bool claims_find_unmet(struct lake_claims *c, struct arena *a, struct str *out)
{
    size_t cursor = 0;
    struct str partition;
    void *note;
    bool found = false;

    mutex_lock(&c->lock);
    while (!found && map_next(&c->notes, &cursor, &partition, &note)) {
        struct claim_note *n = note;
        found = n->pass != c->pass;
        n->pass = c->pass;
        if (found)
            *out = arena_str(a, partition);
    }
    mutex_unlock(&c->lock);
    return found;
}

/* Removes the notes of repositories that are gone. The note of a repository that is being deleted
 * stays: without the note the next look would be a first look, which changes the claim, and then
 * files could not be removed for a while (N4). */
static int claims_forget_gone(struct lake *l, struct err *err)
{
    struct arena a = {0};
    struct str partition;
    struct kv_value row;
    int code = 0;

    while (code == 0 && claims_find_unmet(l->claims, &a, &partition)) {
        code = kv_get(l->kv, NULL, &a, lake_key_to_delete(&a, partition), &row, err);
        if (code == ERR_NOT_FOUND) {
            claims_forget(l, partition);
            code = 0;
        }
    }
    arena_release(&a);
    return code;
}

/* Looks at the claims of all repositories. A claim that cannot be read does not end the pass; *err
 * is the first failure. */
static int claims_pass(struct lake *l, struct err *err)
{
    struct lake_iter *it = NULL;
    struct lake_item item;
    struct err first = {0};
    int code = lake_iter_repos(&it, l, err), failed = 0;

    claims_begin_pass(l->claims);
    while (code == 0 && !loop_is_stopping(&l->claims->loop) &&
           (code = lake_iter_next(it, &item, err)) == 0) {
        struct claim_look look = {0};
        struct err why = {0};
        struct claim c;
        claims_meet(l->claims, item.repo->partition);
        int seen = claim_look_note(&c, l, item.repo, &look, &why);
        arena_release(&c.arena);
        if (seen < 0 && seen != ERR_NOT_FOUND && failed == 0) {
            failed = seen;
            first = why;
        }
    }
    lake_iter_free(it);
    if (code == ERR_END)
        code = claims_forget_gone(l, err);
    if (code < 0)
        return code;
    if (failed < 0)
        *err = first;
    return failed;
}

static struct loop_sleep claims_step(void *ctx)
{
    struct lake *l = ctx;
    struct err err = {0};

    if (claims_pass(l, &err) < 0) {
        log_warn(l->o.log, "lake.claims", log_z("error", err.text));
        return loop_retry_ms(l->o.claim_every_ms < CLAIM_RETRY_MS ? l->o.claim_every_ms
                                                                  : CLAIM_RETRY_MS);
    }
    return loop_sleep_ms(l->o.claim_every_ms);
}

void lake_claims_stop(struct lake *l)
{
    loop_stop(&l->claims->loop);
}

int lake_claims_start(struct lake *l, struct err *err)
{
    return loop_start(&l->claims->loop,
                      &(struct loop_options){.name = "lake-claims", .step = claims_step, .ctx = l},
                      err);
}
