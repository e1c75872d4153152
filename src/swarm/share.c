/* Shares public swarms through the store: the list of waiting changes, and the thread that writes
 * them.
 *
 * The thread writes the waiting changes batch by batch, and between batches it loads swarms from
 * the store. A batch that could not be written is tried again; clients do not wait for that (H1).
 * Changes that arrive within GATHER_MS are published together. */
#include "swarm/share.h"

#include "base/clock.h"
#include "base/ids.h"
#include "swarm/share_int.h"

#include <stdlib.h>

enum {
    GATHER_MS = 100,
    RETRY_MS = 500, /* pause after the store did not answer */
    CLOSE_MS = 2000,
    STACK_BYTES = 256 * 1024,
};

/* --- the thread --- */

/* Waits until there is something to do. False: the thread must end. */
static bool share_wait_for_work(struct share *s, bool failed)
{
    mutex_lock(&s->lock);
    uint64_t until = clock_mono_ns() + (failed ? RETRY_MS : GATHER_MS) * NS_PER_MS;
    bool busy = !failed && (s->taking || s->anew);
    /* After a failure only share_close() wakes the thread early, so that a store that is down is
     * not asked all the time. */
    while (!s->stop && !busy && clock_mono_ns() < until && (failed || s->by_name.len < SHARE_BATCH))
        cond_wait_until(&s->changed, &s->lock, until);
    while (!s->stop && !failed && !s->anew && !s->taking && s->by_name.len == 0)
        cond_wait(&s->changed, &s->lock);
    bool go_on = !s->stop;
    mutex_unlock(&s->lock);
    return go_on;
}

static void share_set_behind(struct share *s, bool behind, const struct err *err)
{
    mutex_lock(&s->lock);
    bool was = s->stats.behind;
    s->stats.behind = behind;
    mutex_unlock(&s->lock);
    if (behind && !was)
        log_warn(s->o.log, "swarm.share.behind", log_z("error", err->text));
    else if (was && !behind)
        log_info(s->o.log, "swarm.share.caught_up");
}

/* Writes all waiting changes, or stops at the deadline. False: the store did not answer. */
static bool write_waiting(struct share *s, uint64_t deadline_ns)
{
    struct err err = {0};

    while (clock_mono_ns() < deadline_ns && share_gather(s)) {
        int code = share_write(s, &err);
        share_set_behind(s, code < 0, &err);
        if (code < 0)
            return false;
        share_done(s);
    }
    return true;
}

static void share_work(void *ctx)
{
    struct share *s = ctx;
    bool failed = false;

    while (share_wait_for_work(s, failed)) {
        struct err err = {0};
        int code = 0;
        failed = !write_waiting(s, UINT64_MAX);
        if (!failed && share_take(s, &code, &err)) {
            failed = code < 0;
            share_set_behind(s, failed, &err);
        }
    }
}

/* --- messages --- */

static void share_hear(void *ctx, struct str channel, struct str message)
{
    struct share *s = ctx;

    if (channel.p) {
        share_apply(s, message);
        return;
    }
    mutex_lock(&s->lock);
    s->anew = true;
    cond_signal(&s->changed);
    mutex_unlock(&s->lock);
}

/* --- changes --- */

static void share_drop_oldest(struct share *s)
{
    struct share_item *oldest = list_entry(list_shift(&s->waiting), struct share_item, node);

    map_remove(&s->by_name, str_n(oldest->name, oldest->name_len));
    free(oldest);
    s->stats.dropped++;
}

/* Replaces the item's change by a newer change, but remembers that the peer completed its download.
 */
static void share_merge_item(struct share_item *item, enum swarm_change now)
{
    bool completes = now == SWARM_CHANGE_COMPLETED || now == SWARM_CHANGE_STOPPED_COMPLETED;

    item->leeched |= completes && !item->completed && item->change == SWARM_CHANGE_LEECHER;
    item->completed |= now == SWARM_CHANGE_COMPLETED;
    item->change = now;
}

static void fill(struct share_item *item, const struct announce *a, enum swarm_change change,
                 uint32_t now)
{
    memcpy(item->peer_id, a->peer_id, PEER_ID_LEN);
    item->key_len = size_min(a->key.len, SHARE_KEY_MAX);
    if (item->key_len)
        memcpy(item->key, a->key.p, item->key_len);
    item->addr = a->addr;
    item->uploaded = a->uploaded;
    item->downloaded = a->downloaded;
    item->left = a->left;
    share_merge_item(item, change);
    item->paused = a->event == EVENT_PAUSED;
    item->at_s = now;
}

static void share_add_item(struct share *s, struct share_item *item)
{
    if (s->by_name.len && s->by_name.len + s->batch_len >= s->o.max_waiting)
        share_drop_oldest(s);
    list_push(&s->waiting, &item->node);
    map_put(&s->by_name, str_n(item->name, item->name_len), item);
    if (s->by_name.len == 1 || s->by_name.len == SHARE_BATCH)
        cond_signal(&s->changed);
}

void share_change(struct share *s, const struct announce *a, enum swarm_change change)
{
    struct share_item name, *item;
    uint32_t now = s->o.now(s->o.ctx);

    if (change == SWARM_CHANGE_NONE || !peer_id_allowed(a->peer_id))
        return;
    memcpy(name.name, a->info_hash, INFO_HASH_LEN);
    name.name_len = INFO_HASH_LEN + addr_compact(&a->addr, name.name + INFO_HASH_LEN);
    mutex_lock(&s->lock);
    share_ask(s, a->info_hash);
    item = map_get(&s->by_name, str_n(name.name, name.name_len));
    if (item) {
        fill(item, a, change, now);
    } else if ((item = calloc(1, sizeof(*item)))) {
        memcpy(item->name, name.name, name.name_len);
        item->name_len = name.name_len;
        fill(item, a, change, now);
        share_add_item(s, item);
    } else {
        s->stats.dropped++;
    }
    s->stats.waiting = s->by_name.len + s->batch_len;
    mutex_unlock(&s->lock);
}

/* --- opening and closing --- */

int share_open(struct share **out, const struct share_options *o, struct err *err)
{
    struct share *s = calloc(1, sizeof(*s));

    if (!s)
        return err_code(err, ERR_NO_MEMORY);
    s->o = *o;
    s->anew = true;
    s->o.max_waiting += !s->o.max_waiting;
    random_bytes(s->instance, sizeof(s->instance));
    mutex_init(&s->lock, "swarm.share");
    cond_init(&s->changed);
    list_init(&s->waiting);
    map_init(&s->by_name);
    buf_append_str(&s->channel, cache_channel(o->cache));
    buf_append_z(&s->channel, ":peers");
    int code =
        store_subscribe(&s->subscription, o->store, buf_str(&s->channel), share_hear, s, err);
    if (code == 0)
        code = thread_start(&s->thread, "swarm-share", STACK_BYTES, share_work, s, err);
    if (code < 0) {
        share_close(s);
        return code;
    }
    *out = s;
    return 0;
}

void share_close(struct share *s)
{
    uint64_t until = clock_mono_ns() + CLOSE_MS * NS_PER_MS;

    if (!s)
        return;
    mutex_lock(&s->lock);
    s->stop = true;
    cond_broadcast(&s->changed);
    mutex_unlock(&s->lock);
    thread_join(&s->thread);
    write_waiting(s, until);
    store_unsubscribe(s->subscription);
    while (!list_empty(&s->waiting))
        share_drop_oldest(s);
    for (size_t i = 0; i < s->batch_len; i++)
        free(s->batch[i]);
    map_release(&s->by_name);
    buf_release(&s->channel);
    buf_release(&s->cursor);
    cond_release(&s->changed);
    mutex_release(&s->lock);
    free(s);
}

void share_stats(struct share *s, struct share_stats *out)
{
    mutex_lock(&s->lock);
    *out = s->stats;
    mutex_unlock(&s->lock);
}
