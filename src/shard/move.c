/* The mover: the moves of this process, the thread that works on them, and their state for status
 * calls. move_window.c hands windows over, move_note.c begins moves, move_end.c ends them. */
#include "shard/move.h"

#include "base/clock.h"
#include "shard/move_int.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOVE_SHARE = 8 }; /* a move without `hurry` works for an eighth of the time */

/* The move that the newest map has. */
struct noted {
    enum move_phase phase; /* MOVE_MOVING, or MOVE_NONE if the map has no move */
    enum shard_move_kind kind;
};

static struct noted move_noted(struct sharded *s)
{
    struct shard_map *now = table_map(s->table);
    struct noted noted = {now->move.id.len ? MOVE_MOVING : MOVE_NONE, now->move.kind};

    map_unref(now);
    return noted;
}

/* --- the mover's records of buckets; under m->lock --- */

struct move *move_find(struct mover *m, const struct sharded *s)
{
    list_each (&m->moves, struct move, node, r)
        if (r->bucket == s && !r->forgotten)
            return r;
    return NULL;
}

struct move *move_of(struct mover *m, struct sharded *s)
{
    struct move *r = move_find(m, s);

    if (r)
        return r;
    r = xcalloc(1, sizeof(*r));
    r->bucket = sharded_ref(s);
    r->limit = m->window_keys;
    list_push(&m->moves, &r->node);
    return r;
}

static void move_drop(struct move *r)
{
    list_remove(&r->node);
    sharded_unref(r->bucket);
    free(r);
}

static void move_begin_record(struct mover *m, struct move *r, const struct move_request *q)
{
    r->phase = MOVE_LOOKING;
    r->kind = q->kind;
    r->hurry = q->hurry;
    r->due_ns = 0;
    r->started_ms = clock_wall_ms();
    r->started_ns = clock_mono_ns();
    r->keys = r->keys_moved = 0;
    r->counted = false;
    r->limit = m->window_keys;
    r->tries = r->rests = 0;
    r->gave_up_ms = 0;
    r->waits[0] = 0;
    r->error = (struct err){0};
}

/* Ends a use of the record `r`. A record without a move, without an error and without a last move
 * is dropped. */
static void move_let_go(struct mover *m, struct move *r)
{
    bool idle = r->phase == MOVE_NONE && r->error.code == 0 && r->last.ended_ms == 0;

    if (--r->users == 0 && (r->forgotten || idle))
        move_drop(r);
    cond_broadcast(&m->changed);
}

void move_forget(struct mover *m, struct sharded *s)
{
    mutex_lock(&m->lock);
    struct move *r = move_find(m, s);
    if (r) {
        r->users++;
        r->forgotten = true;
        r->phase = MOVE_NONE;
        while (r->at_work)
            cond_wait(&m->changed, &m->lock);
        move_let_go(m, r);
    }
    mutex_unlock(&m->lock);
}

/* Sets the record to the move that the newest map has, so that the thread continues it. Without
 * such a move the phase becomes MOVE_NONE. */
static void move_go_on(struct move *r, struct noted noted)
{
    r->phase = r->forgotten ? MOVE_NONE : noted.phase;
    if (noted.phase != MOVE_NONE)
        r->kind = noted.kind;
}

void move_take_over(struct mover *m, struct sharded *s)
{
    struct noted noted = move_noted(s);

    mutex_lock(&m->lock);
    struct move *r = move_of(m, s);
    r->users++;
    if (r->phase == MOVE_NONE && !r->at_work && noted.phase != MOVE_NONE) {
        move_begin_record(m, r, &(struct move_request){0});
        move_go_on(r, noted);
    }
    move_let_go(m, r);
    mutex_unlock(&m->lock);
    loop_wake(&m->loop);
}

void move_clean_later(struct mover *m, struct sharded *s, const struct err *why)
{
    mutex_lock(&m->lock);
    struct move *r = move_of(m, s);
    move_begin_record(m, r, &(struct move_request){.kind = SHARD_DISABLE});
    r->phase = MOVE_CLEANING;
    r->removed = true;
    r->due_ns = clock_mono_ns() + (uint64_t)MOVE_REST_MS * NS_PER_MS;
    r->error = *why;
    r->error_ms = r->started_ms;
    mutex_unlock(&m->lock);
    loop_wake(&m->loop);
}

/* --- beginning and ending --- */

/* Reserves the bucket for a new move. Until move_hand_in() the calling thread works on the move. */
static int move_reserve(struct mover *m, struct sharded *s, const struct move_request *q,
                        struct move **out, struct err *err)
{
    int code = 0;

    mutex_lock(&m->lock);
    struct move *r = move_of(m, s);
    if (r->phase != MOVE_NONE || r->at_work) {
        if (r->kind == q->kind && q->hurry) {
            r->hurry = true;
            r->due_ns = 0;
        }
        code = err_set(err, ERR_BUSY, "another move of the bucket is under way");
    } else {
        move_begin_record(m, r, q);
        r->at_work = true;
        r->users++;
        *out = r;
    }
    mutex_unlock(&m->lock);
    return code;
}

static void move_log_begun(struct mover *m, const struct move *r, struct str at, uint64_t keys)
{
    log_info(m->o.log, "shard.move_begun", log_s("bucket", r->bucket->name),
             log_z("kind", move_kind_text(r->kind)), log_s("at", at), log_u("keys", keys));
}

/* Notes and logs that the move has ended. If the bucket is not sharded any more, the record is
 * dropped with its last use. */
static void move_note_end(struct mover *m, struct move *r, const char *event, bool whole)
{
    uint64_t seconds = (clock_mono_ns() - r->started_ns) / NS_PER_S;
    struct shard_map *now = table_map(r->bucket->table);
    bool sharded = now->state == SHARD_ACTIVE;

    map_unref(now);
    mutex_lock(&m->lock);
    if (sharded)
        r->last = (struct move_last){r->kind, whole, r->keys_moved, seconds, clock_wall_ms()};
    else
        r->last = (struct move_last){0};
    mutex_unlock(&m->lock);
    log_info(m->o.log, event, log_s("bucket", r->bucket->name),
             log_z("kind", move_kind_text(r->kind)), log_u("keys", r->keys_moved),
             log_u("seconds", seconds));
}

/* Gives the move to the mover's thread, which continues in this phase. MOVE_NONE: the caller's move
 * has ended; if the map has a move, the thread continues that one. */
static void move_hand_in(struct mover *m, struct move *r, enum move_phase phase)
{
    struct noted noted = move_noted(r->bucket);

    mutex_lock(&m->lock);
    r->at_work = false;
    if (phase == MOVE_NONE)
        move_go_on(r, noted);
    else
        r->phase = r->forgotten ? MOVE_NONE : phase;
    move_let_go(m, r);
    mutex_unlock(&m->lock);
    loop_wake(&m->loop);
}

/* Checks that keys of the bucket may move. Called while `at_work` is set, see mover_works(). */
static int move_check_rest(struct mover *m, const struct sharded *s, int code, struct err *err)
{
    if (!m->o.rests || !m->o.rests(m->o.ctx, s))
        return 0;
    return err_set(err, code,
                   "the bucket is being switched to another storage; meanwhile no key moves "
                   "between its shards");
}

/* Writes the new move into the map. ERR_END: there is nothing to move. */
static int move_note(struct sharded *s, const struct move_request *q, struct err *err)
{
    int code;

    mutex_lock(&s->changes);
    if (q->kind == SHARD_SPLIT)
        code = move_note_split(s, q->at, err);
    else if (q->kind == SHARD_MERGE)
        code = move_note_merge(s, q->at, err);
    else
        code = move_note_disable(s, err);
    mutex_unlock(&s->changes);
    return code;
}

int mover_begin(struct mover *m, struct sharded *s, const struct move_request *q, struct err *err)
{
    enum move_phase phase = MOVE_MOVING;
    struct move *r = NULL;
    int code = 0;

    if (q->kind == SHARD_MOVE)
        return err_set(err, ERR_UNSUPPORTED, "a shard cannot move to another storage yet");
    code = move_reserve(m, s, q, &r, err);
    if (code < 0)
        return code;
    code = move_check_rest(m, s, ERR_BUSY, err);
    if (code == 0 && q->kind == SHARD_SPLIT && q->at.len == 0)
        phase = MOVE_LOOKING; /* done by the thread, because reading all keys takes a while */
    else if (code == 0)
        code = move_note(s, q, err);
    if (code == ERR_END) { /* the bucket itself has all keys, and only has to become plain */
        phase = MOVE_CLEANING;
        code = 0;
    }
    if (code == 0 && phase != MOVE_LOOKING)
        move_log_begun(m, r, q->at, 0);
    move_hand_in(m, r, code == 0 ? phase : MOVE_NONE);
    return code;
}

int mover_cancel(struct mover *m, struct sharded *s, struct err *err)
{
    bool plain;

    mutex_lock(&m->lock);
    struct move *r = move_find(m, s);
    if (!r || r->phase == MOVE_NONE) {
        mutex_unlock(&m->lock);
        return err_set(err, ERR_NOT_FOUND, "the bucket has no move");
    }
    r->users++;
    r->phase = MOVE_NONE; /* the thread begins no further turn */
    while (r->at_work)
        cond_wait(&m->changed, &m->lock);
    r->at_work = true; /* so nobody begins a move meanwhile */
    mutex_unlock(&m->lock);
    int code = move_end(m, s, false, &plain, err);
    if (code == 0)
        move_note_end(m, r, "shard.move_cancelled", false);
    move_hand_in(m, r, MOVE_NONE);
    return code;
}

bool mover_works(struct mover *m, struct sharded *s)
{
    mutex_lock(&m->lock);
    const struct move *r = move_find(m, s);
    bool works = r && r->at_work && !r->removed;
    mutex_unlock(&m->lock);
    return works;
}

int mover_wait(struct mover *m, struct sharded *s, uint64_t deadline_ns, struct err *err)
{
    bool in_time = true;

    mutex_lock(&m->lock);
    for (;;) {
        struct move *r = move_find(m, s);
        if (!r || (r->phase == MOVE_NONE && !r->at_work))
            break;
        if (!in_time) {
            mutex_unlock(&m->lock);
            return err_set(err, ERR_TIMEOUT, "the move is still under way");
        }
        in_time = cond_wait_until(&m->changed, &m->lock, deadline_ns);
    }
    mutex_unlock(&m->lock);
    return 0;
}

/* --- work --- */

/* Finds the boundary of a split and writes the move into the map. */
static int move_turn_looking(struct mover *m, struct move *r, struct err *err)
{
    struct move_request q = {.kind = SHARD_SPLIT};
    struct arena a = {0};
    uint64_t keys = 0;
    int code = move_find_median(r->bucket, &a, &q.at, &keys, err);

    if (code == 0)
        code = move_note(r->bucket, &q, err);
    if (code == 0) {
        mutex_lock(&m->lock);
        r->keys = keys;
        r->counted = true;
        if (r->phase == MOVE_LOOKING)
            r->phase = MOVE_MOVING;
        mutex_unlock(&m->lock);
        move_log_begun(m, r, q.at, keys);
    }
    arena_release(&a);
    return code;
}

static int move_turn_counting(struct mover *m, struct move *r, struct err *err)
{
    uint64_t keys = 0;
    int code = move_count(r->bucket, &keys, err);

    mutex_lock(&m->lock);
    r->keys = keys;
    r->counted = code == 0;
    mutex_unlock(&m->lock);
    return code;
}

static void move_keep_window(struct mover *m, struct move *r, const struct hand_over *h, int code)
{
    mutex_lock(&m->lock);
    if (code == 0 && h->cleaned) {
        r->tries = 0;
    } else if (code == 0) {
        r->keys_moved += h->keys;
        r->tries = r->rests = 0;
        r->limit = size_min(m->window_keys, r->limit * 2);
        m->stats.hand_overs++;
        m->stats.keys += h->keys;
    } else if (code == ERR_AGAIN) {
        r->tries++;
        if (h->reopened)
            r->limit = size_max(1, r->limit / 2);
        m->stats.reopened += h->reopened;
    }
    if (h->closed_ms > m->stats.longest_closed_ms)
        m->stats.longest_closed_ms = h->closed_ms;
    mutex_unlock(&m->lock);
}

/* Ends a move that makes no progress, after the last window that was handed over. `why` is the
 * error of its last turn. Returns an error that has that reason in its text. */
static int move_give_up(struct mover *m, struct move *r, const struct err *why, struct err *err)
{
    bool plain;
    int code = move_end(m, r->bucket, false, &plain, err);

    if (code < 0)
        return code;
    mutex_lock(&m->lock);
    r->gave_up_ms = clock_mono_ms();
    mutex_unlock(&m->lock);
    move_note_end(m, r, "shard.move_gave_up", false);
    return err_set(err, ERR_BUSY, "the %s ended before it had moved all keys: %s",
                   move_kind_text(r->kind), why->text);
}

/* Whether a split ends because it has waited for requests for too long. Only splits end in this
 * way: a bucket can do without a further shard. A merge or the way back to a plain bucket must go
 * on, because otherwise keys that belong together would stay spread over two shards. */
static bool move_has_waited(const struct move *r)
{
    return r->kind == SHARD_SPLIT && r->tries >= MOVE_TRIES && r->rests + 1 >= MOVE_RESTS;
}

static int move_turn_moving(struct mover *m, struct move *r, struct err *err)
{
    struct hand_over h = {.limit = r->limit};
    struct sharded *s = r->bucket;

    mutex_lock(&m->lock);
    if (r->hurry)
        h.limit *= MOVE_HURRY;
    mutex_unlock(&m->lock);
    mutex_lock(&s->changes);
    int code = hand_over_next(s, &h, err);
    mutex_unlock(&s->changes);
    move_keep_window(m, r, &h, code);
    if (h.stuck || (code == ERR_AGAIN && move_has_waited(r))) {
        struct err why = *err;
        return move_give_up(m, r, &why, err);
    }
    if (code == ERR_END) {
        mutex_lock(&m->lock);
        if (r->phase == MOVE_MOVING)
            r->phase = MOVE_CLEANING;
        mutex_unlock(&m->lock);
        code = 0;
    }
    return code;
}

static bool sharded_is_plain(struct sharded *s)
{
    struct shard_map *now = table_map(s->table);
    bool plain = now->state == SHARD_PLAIN;

    map_unref(now);
    return plain;
}

static int move_turn_cleaning(struct mover *m, struct move *r, struct err *err)
{
    struct sharded *s = r->bucket;
    bool plain =
        r->removed || sharded_is_plain(s); /* it may be plain since an earlier, failed turn */
    int code = plain ? 0 : move_end(m, s, r->kind == SHARD_DISABLE, &plain, err);

    if (code == 0 && plain)
        code = move_clean_up(s, err);
    if (code < 0)
        return code;
    mutex_lock(&m->lock);
    m->stats.moves++;
    mutex_unlock(&m->lock);
    move_note_end(m, r, "shard.move_ended", true);
    if (plain && m->o.gone)
        m->o.gone(m->o.ctx, s);
    return err_code(err, ERR_END);
}

int move_turn(struct mover *m, struct move *r, struct err *err)
{
    mutex_lock(&m->lock);
    enum move_phase phase = r->phase;
    bool counted = r->counted, removed = r->removed;
    mutex_unlock(&m->lock);
    int code = removed ? 0 : move_check_rest(m, r->bucket, ERR_AGAIN, err);
    if (code < 0)
        return code;
    switch (phase) {
    case MOVE_LOOKING:
        return move_turn_looking(m, r, err);
    case MOVE_MOVING:
        return counted ? move_turn_moving(m, r, err) : move_turn_counting(m, r, err);
    case MOVE_CLEANING:
        return move_turn_cleaning(m, r, err);
    default:
        return err_code(err, ERR_END);
    }
}

/* Returns the pause after a window could not be handed over because of requests. The pause doubles
 * with each such try. It is also at least seven times as long as the try, so that clients whose
 * requests take long keep their rate. */
static uint64_t move_wait_ns(const struct move *r, uint64_t worked_ns)
{
    unsigned doubled = r->tries < 7 ? r->tries : 7;
    uint64_t wait = ((uint64_t)MOVE_AGE_MS * NS_PER_MS) << doubled;
    uint64_t share = (MOVE_SHARE - 1) * worked_ns, most = (uint64_t)MOVE_REST_MS * NS_PER_MS;

    if (r->tries >= MOVE_TRIES)
        return most;
    if (share > wait)
        wait = share;
    return wait < most ? wait : most;
}

static uint64_t move_pause_ns(const struct move *r, int code, uint64_t worked_ns)
{
    uint64_t most = (uint64_t)MOVE_PAUSE_MAX_MS * NS_PER_MS;
    uint64_t pause = r->hurry ? 0 : (MOVE_SHARE - 1) * worked_ns;

    if (code == ERR_AGAIN)
        return move_wait_ns(r, worked_ns);
    if (code < 0)
        return (uint64_t)MOVE_REST_MS * NS_PER_MS;
    return pause < most ? pause : most;
}

/* Whether the error of a turn ends the move, because the move cannot be carried out. */
static bool move_is_over(const struct move *r, int code)
{
    return code == ERR_END || code == ERR_NO_BUCKET || (code < 0 && r->gave_up_ms) ||
           (code < 0 && code != ERR_AGAIN && r->phase == MOVE_LOOKING);
}

/* Stores the outcome of a turn in `r`. Called under m->lock, after r->due_ns was set. */
static void move_keep(struct mover *m, struct move *r, int code, const struct err *err,
                      struct noted noted)
{
    if (code == ERR_AGAIN && r->tries >= MOVE_TRIES) {
        r->tries = 0;
        r->rests++;
    }
    r->waits[0] = 0;
    if (code == ERR_AGAIN)
        snprintf(r->waits, sizeof(r->waits), "%s", err->text);
    else if (code < 0 && code != ERR_END) {
        r->error = *err;
        r->error_ms = clock_wall_ms();
        m->stats.failures++;
    }
    if (code == ERR_END)
        r->error = (struct err){0};
    if (move_is_over(r, code))
        move_go_on(r, noted);
}

void move_work(struct mover *m, struct move *r)
{
    struct err err = {0};
    uint64_t began = clock_mono_ns();
    int code = move_turn(m, r, &err);
    uint64_t worked = clock_mono_ns() - began;

    if (code < 0 && code != ERR_AGAIN && code != ERR_END)
        log_warn(m->o.log, "shard.move_failed", log_s("bucket", r->bucket->name),
                 log_z("error", err.text));
    struct noted noted = move_noted(r->bucket);
    mutex_lock(&m->lock);
    r->due_ns = clock_mono_ns() + move_pause_ns(r, code, worked);
    move_keep(m, r, code, &err, noted);
    mutex_unlock(&m->lock);
}

/* --- the thread --- */

/* Takes the move that is due first, if its time has come. NULL: no move is due yet; *due_ns is when
 * the next one is. */
static struct move *mover_take(struct mover *m, uint64_t *due_ns)
{
    struct move *first = NULL;

    *due_ns = UINT64_MAX;
    mutex_lock(&m->lock);
    list_each (&m->moves, struct move, node, r)
        if (r->phase != MOVE_NONE && !r->at_work && r->due_ns < *due_ns) {
            first = r;
            *due_ns = r->due_ns;
        }
    if (first && *due_ns <= clock_mono_ns())
        first->at_work = true;
    else
        first = NULL;
    if (first)
        first->users++;
    mutex_unlock(&m->lock);
    return first;
}

static struct loop_sleep mover_loop(void *ctx)
{
    struct mover *m = ctx;
    uint64_t due, now;
    struct move *r = mover_take(m, &due);

    if (r) {
        move_work(m, r);
        mutex_lock(&m->lock);
        r->at_work = false;
        move_let_go(m, r);
        mutex_unlock(&m->lock);
        return loop_again();
    }
    now = clock_mono_ns();
    if (due == UINT64_MAX)
        return loop_until_woken();
    return loop_sleep_ns(due > now ? due - now : 0);
}

/* --- life --- */

struct mover *mover_new(const struct mover_options *o)
{
    struct mover *m = xcalloc(1, sizeof(*m));

    m->o = *o;
    m->window_keys = MOVE_KEYS;
    mutex_init(&m->lock, "shard.mover");
    cond_init(&m->changed);
    list_init(&m->moves);
    return m;
}

int mover_start(struct mover *m, struct err *err)
{
    return loop_start(
        &m->loop, &(struct loop_options){.name = "shard-mover", .step = mover_loop, .ctx = m}, err);
}

void mover_stop(struct mover *m)
{
    loop_stop(&m->loop);
}

void mover_free(struct mover *m)
{
    struct list *node;

    if (!m)
        return;
    while ((node = list_shift(&m->moves)))
        move_drop(list_entry(node, struct move, node));
    cond_release(&m->changed);
    mutex_release(&m->lock);
    free(m);
}

/* --- the state of moves, for status calls --- */

const char *move_phase_text(enum move_phase p)
{
    static const char *const texts[] = {"none", "looking", "moving", "cleaning"};

    return texts[p];
}

const char *move_kind_text(enum shard_move_kind k)
{
    static const char *const texts[] = {"split", "merge", "move", "disable"};

    return texts[k];
}

static void progress_rate(struct move_progress *p, uint64_t since_ns)
{
    uint64_t ms = (clock_mono_ns() - since_ns) / NS_PER_MS;

    p->seconds_left = UINT64_MAX;
    p->keys_per_second = p->keys_moved * MS_PER_S / (ms ? ms : 1);
    if (p->keys_per_second && p->keys >= p->keys_moved)
        p->seconds_left = (p->keys - p->keys_moved + p->keys_per_second - 1) / p->keys_per_second;
}

void mover_progress(struct mover *m, struct sharded *s, struct arena *a, struct move_progress *out)
{
    struct shard_map *now = table_map(s->table);

    *out = (struct move_progress){.seconds_left = UINT64_MAX};
    mutex_lock(&m->lock);
    const struct move *r = move_find(m, s);
    if (r) {
        *out = (struct move_progress){
            .phase = r->phase,
            .kind = r->kind,
            .hurry = r->hurry,
            .started_ms = r->started_ms,
            .keys_moved = r->keys_moved,
            .keys = r->keys,
            .waits = arena_str(a, str_z(r->waits)),
            .error = arena_str(a, str_z(r->error.code ? r->error.text : "")),
            .error_ms = r->error_ms,
            .last = r->last,
        };
        progress_rate(out, r->started_ns);
    }
    mutex_unlock(&m->lock);
    if (now->move.id.len) {
        out->from = now->move.from;
        out->to = now->move.to;
        out->window.after = arena_str(a, now->move.window.after);
        out->window.upto = arena_str(a, now->move.window.upto);
    }
    map_unref(now);
}

bool move_gave_up(struct mover *m, struct sharded *s, uint64_t within_ms, char *why, size_t size)
{
    mutex_lock(&m->lock);
    const struct move *r = move_find(m, s);
    bool lately = r && r->gave_up_ms && clock_mono_ms() - r->gave_up_ms < within_ms;
    if (lately)
        snprintf(why, size, "%s", r->error.text);
    mutex_unlock(&m->lock);
    return lately;
}

void mover_stats(struct mover *m, struct mover_stats *out)
{
    mutex_lock(&m->lock);
    *out = m->stats;
    mutex_unlock(&m->lock);
}
