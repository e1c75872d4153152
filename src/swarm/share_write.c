/* Writes changes of public swarms to the store, publishes them to other trackers, and applies the
 * changes that other trackers publish.
 *
 * A message begins with a version and the sender's instance. Then each change follows with these
 * fields: its kind, with bits for IPv6 and paused; its age in seconds; the info hash; the peer id;
 * the address in compact form; the length of the client's key; the key. */
#include "swarm/share_int.h"
#include "base/bytes.h"

#include <stdlib.h>

enum {
    MESSAGE_VERSION = 1,
    MESSAGE_V6 = 0x80,
    MESSAGE_PAUSED = 0x40,
    MESSAGE_CHANGE = 0x0f,
    MESSAGE_HEAD = 1 + INSTANCE_LEN,
    WRITE_HEAD = 7,  /* arguments of share_write.lua before the changes */
    WRITE_ARGS = 10, /* arguments of share_write.lua for each change */
    CHANGES = SWARM_CHANGE_STOPPED_COMPLETED + 1,
};

static const char *const letters[CHANGES] = {
    [SWARM_CHANGE_SEEDER] = "S",
    [SWARM_CHANGE_LEECHER] = "L",
    [SWARM_CHANGE_COMPLETED] = "C",
    [SWARM_CHANGE_STOPPED] = "X",
    [SWARM_CHANGE_STOPPED_COMPLETED] = "Y",
};

/* --- the batch --- */

bool share_gather(struct share *s)
{
    mutex_lock(&s->lock);
    bool fresh = s->batch_len == 0;
    s->batch_number += fresh;
    while (fresh && s->batch_len < SHARE_BATCH && !list_empty(&s->waiting)) {
        struct share_item *item = list_entry(list_shift(&s->waiting), struct share_item, node);
        map_remove(&s->by_name, str_n(item->name, item->name_len));
        s->batch[s->batch_len++] = item;
    }
    bool any = s->batch_len > 0;
    mutex_unlock(&s->lock);
    return any;
}

void share_done(struct share *s)
{
    mutex_lock(&s->lock);
    for (size_t i = 0; i < s->batch_len; i++)
        free(s->batch[i]);
    s->stats.written += s->batch_written;
    s->stats.refused += s->batch_len - s->batch_written;
    s->stats.told += s->batch_told;
    s->batch_len = 0;
    s->stats.waiting = s->by_name.len;
    mutex_unlock(&s->lock);
}

/* Splits an item into the changes to write and returns their number. The store counts a snatch (a
 * completed download) when a leecher becomes a seeder. So if a peer was first a leecher and then a
 * seeder since the last write, both changes are written. */
static size_t steps_of(const struct share_item *item, enum swarm_change out[SHARE_STEPS])
{
    size_t n = 0;

    if (item->leeched)
        out[n++] = SWARM_CHANGE_LEECHER;
    if (item->completed)
        out[n++] = SWARM_CHANGE_COMPLETED;
    if (!item->completed ||
        (item->change != SWARM_CHANGE_COMPLETED && item->change != SWARM_CHANGE_SEEDER))
        out[n++] = item->change;
    return n;
}

/* --- writing and publishing --- */

static void append_change(struct buf *out, const struct share_item *item, enum swarm_change change,
                          uint32_t now)
{
    uint8_t compact[COMPACT6_LEN];
    size_t len = addr_compact(&item->addr, compact);
    uint32_t ago = now > item->at_s ? now - item->at_s : 0;

    if (ago > UINT16_MAX)
        ago = UINT16_MAX;
    buf_append_char(out, (char)(change | (item->addr.v6 ? MESSAGE_V6 : 0) |
                                (item->paused ? MESSAGE_PAUSED : 0)));
    buf_append_be16(out, (uint16_t)ago);
    buf_append(out, item->name, INFO_HASH_LEN);
    buf_append(out, item->peer_id, PEER_ID_LEN);
    buf_append(out, compact, len);
    buf_append_char(out, (char)item->key_len);
    buf_append(out, item->key, item->key_len);
}

static void share_item_args(struct arena *a, const struct share_item *item,
                            enum swarm_change change, struct str *out)
{
    uint8_t compact[COMPACT6_LEN];
    size_t len = addr_compact(&item->addr, compact);

    out[0] = str_n(item->name, INFO_HASH_LEN);
    out[1] = str_n(item->peer_id, PEER_ID_LEN);
    out[2] = addr_ip_text(a, &item->addr);
    out[3] = arena_fmt(a, "%u", be16_read(item->addr.port));
    out[4] = arena_fmt(a, "%llu", (unsigned long long)item->uploaded);
    out[5] = arena_fmt(a, "%llu", (unsigned long long)item->downloaded);
    out[6] = arena_fmt(a, "%llu", (unsigned long long)item->left);
    out[7] = arena_str(a, str_n(compact, len));
    out[8] = item->paused ? STR("1") : STR_EMPTY;
    out[9] = str_z(letters[change]);
}

/* Makes the script's arguments and the message to publish for the batch. Returns the number of
 * arguments. */
static size_t batch_args(struct share *s, struct arena *a, struct buf *message, struct str *args)
{
    uint32_t now = s->o.now(s->o.ctx);
    enum swarm_change steps[SHARE_STEPS];
    size_t argc = WRITE_HEAD;

    buf_append_char(message, MESSAGE_VERSION);
    buf_append(message, s->instance, INSTANCE_LEN);
    for (size_t i = 0; i < s->batch_len; i++) {
        size_t count = steps_of(s->batch[i], steps);
        for (size_t k = 0; k < count; k++, argc += WRITE_ARGS) {
            append_change(message, s->batch[i], steps[k], now);
            share_item_args(a, s->batch[i], steps[k], &args[argc]);
        }
    }
    args[0] = s->o.cache->o.prefix;
    args[1] = buf_str(&s->channel);
    args[2] = buf_str(message);
    args[3] = arena_fmt(a, "%llu", (unsigned long long)s->o.max_torrents);
    args[4] = arena_fmt(a, "%llu", (unsigned long long)s->o.max_peers);
    args[5] = arena_hex(a, s->instance, INSTANCE_LEN);
    args[6] = arena_fmt(a, "%llu", (unsigned long long)s->batch_number);
    return argc;
}

/* Reads the script's answer: how many changes it skipped, and why it skipped the first of them. */
static int read_outcome(struct share *s, const struct reply *r, struct err *err)
{
    int code = reply_expect(r, REPLY_ARRAY, err);

    if (code == 0 &&
        (r->count != 2 || r->items[0].type != REPLY_INTEGER || r->items[0].integer < 0))
        code = err_set(err, ERR_TYPE, "the store answered no outcome of a batch");
    if (code < 0)
        return code;
    size_t refused = size_min((size_t)r->items[0].integer, s->batch_len);
    s->batch_written = s->batch_len - refused;
    s->batch_told = s->batch_len;
    if (refused)
        log_warn(s->o.log, "swarm.share.refused", log_u("changes", refused),
                 log_s("error", r->items[1].str));
    return 0;
}

/* Drops the batch after an error of the script itself, because the script would fail in every run.
 * Errors of the store that may pass have other codes (docs/store-redis.md). */
static int share_give_up(struct share *s, const struct err *err)
{
    s->batch_written = s->batch_told = 0;
    log_warn(s->o.log, "swarm.share.refused", log_u("changes", s->batch_len),
             log_z("error", err->text));
    return 0;
}

int share_write(struct share *s, struct err *err)
{
    struct arena a = ARENA_INIT(CACHE_CALL_MAX);
    struct str args[WRITE_HEAD + SHARE_BATCH * SHARE_STEPS * WRITE_ARGS];
    struct buf message = {0};
    size_t argc = batch_args(s, &a, &message, args);
    struct reply *r;
    int code = arena_error(&a) < 0 || buf_error(&message) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;

    if (code == 0)
        code = swarm_eval(s->o.store, &a, SCRIPT_share_write, &(struct store_args){args, argc}, &r,
                          err);
    if (code == 0)
        code = read_outcome(s, r, err);
    else if (code == ERR_INVALID)
        code = share_give_up(s, err);
    buf_release(&message);
    arena_release(&a);
    return code;
}

/* --- receiving --- */

static bool take_message_bytes(struct str *rest, size_t len, const uint8_t **out)
{
    if (rest->len < len)
        return false;
    *out = (const uint8_t *)rest->p;
    *rest = str_skip(*rest, len);
    return true;
}

/* Applies the next change of a message. False: the message is malformed. */
static bool apply_next(struct share *s, struct str *rest)
{
    const uint8_t *head, *hash, *peer_id, *addr, *key_len, *key;
    struct announce a = {0};

    if (!take_message_bytes(rest, 3, &head) || !take_message_bytes(rest, INFO_HASH_LEN, &hash) ||
        !take_message_bytes(rest, PEER_ID_LEN, &peer_id))
        return false;
    bool v6 = head[0] & MESSAGE_V6;
    unsigned change = head[0] & MESSAGE_CHANGE;
    if (!take_message_bytes(rest, v6 ? COMPACT6_LEN : COMPACT4_LEN, &addr) ||
        !take_message_bytes(rest, 1, &key_len) || !take_message_bytes(rest, *key_len, &key) ||
        change >= CHANGES)
        return false;
    a.info_hash = hash;
    a.peer_id = peer_id;
    a.key = str_n(key, *key_len);
    addr_from_compact(&a.addr, addr, v6);
    a.left = change == SWARM_CHANGE_LEECHER || change == SWARM_CHANGE_STOPPED;
    a.event = head[0] & MESSAGE_PAUSED ? EVENT_PAUSED : EVENT_NONE;
    swarms_apply(s->o.swarms, &a, (enum swarm_change)change, s->o.now(s->o.ctx),
                 be16_read(head + 1));
    return true;
}

void share_apply(struct share *s, struct str message)
{
    const uint8_t *head;
    struct str rest = message;
    uint64_t applied = 0;

    if (!take_message_bytes(&rest, MESSAGE_HEAD, &head) || head[0] != MESSAGE_VERSION ||
        memcmp(head + 1, s->instance, INSTANCE_LEN) == 0)
        return;
    while (rest.len && apply_next(s, &rest))
        applied++;
    mutex_lock(&s->lock);
    s->stats.applied += applied;
    mutex_unlock(&s->lock);
    if (rest.len)
        log_warn(s->o.log, "swarm.share.malformed", log_u("bytes", message.len));
}
