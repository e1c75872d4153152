/* Keeps copies of the store's lists of torrents and clients in memory, and follows their changes.
 *
 * A message on the cache's channel says which torrent changed, but not how, so the follower looks
 * the torrent up. After the subscription was lost, or when too many torrents wait to be looked up,
 * all lists are loaded again, and torrents that are no longer listed are removed. */
#include "base/hex.h"
#include "swarm/tracker_int.h"

enum { CHANGED_MAX = 4096, LOOK_AT_ONCE = 64, CLIENTS_MAX = 10000 };

/* --- messages --- */

static void hear_torrent(struct lists *l, struct str hash)
{
    struct hash_item item;

    if (hash.len == INFO_HASH_LEN)
        memcpy(item.hash, hash.p, INFO_HASH_LEN);
    else if (!hex_parse_any_case(hash, item.hash, INFO_HASH_LEN))
        return;
    if (l->changed.len >= CHANGED_MAX)
        l->all_stale = true;
    else
        vec_push(&l->changed, item);
}

static void lists_hear(void *ctx, struct str channel, struct str message)
{
    struct tracker *t = ctx;
    struct lists *l = &t->lists;

    mutex_lock(&l->lock);
    if (!channel.p)
        l->all_stale = l->clients_stale = true;
    else if (str_starts(message, STR("torrent ")))
        hear_torrent(l, str_skip(message, 8));
    else if (str_starts(message, STR("client")))
        l->clients_stale = true;
    loop_wake(&t->follower);
    mutex_unlock(&l->lock);
}

/* --- clients --- */

struct loading {
    VEC(struct client_item) clients;
    VEC(struct hash_item) torrents;
    struct tracker *t;
};

static int load_client(void *ctx, struct str client, struct err *err)
{
    struct loading *loading = ctx;
    struct client_item item = {.len = (uint8_t)client.len};

    if (client.len == 0 || client.len > PEER_ID_LEN)
        return 0; /* not an entry, which is the first 1 to 20 bytes of a peer id (docs/swarm.md) */
    if (loading->clients.len >= CLIENTS_MAX)
        return err_set(err, ERR_TOO_LARGE, "more than %d approved clients", CLIENTS_MAX);
    memcpy(item.bytes, client.p, client.len);
    vec_push(&loading->clients, item);
    return 0;
}

static int load_clients(struct tracker *t, struct err *err)
{
    struct lists *l = &t->lists;
    struct loading loading = {.t = t};
    int code = cache_each_client(t->cache, load_client, &loading, err);

    if (code == 0) {
        mutex_lock(&l->clients_lock);
        struct client_item *old = l->clients.items;
        l->clients.items = loading.clients.items;
        l->clients.len = loading.clients.len;
        l->clients.cap = loading.clients.cap;
        loading.clients.items = old;
        mutex_unlock(&l->clients_lock);
    }
    free(loading.clients.items);
    return code;
}

bool lists_approve(struct tracker *t, const uint8_t *peer_id)
{
    struct lists *l = &t->lists;
    bool found;

    mutex_lock(&l->clients_lock);
    found = l->clients.len == 0;
    vec_each (&l->clients, const struct client_item *, c)
        if (memcmp(c->bytes, peer_id, c->len) == 0) {
            found = true;
            break;
        }
    mutex_unlock(&l->clients_lock);
    return found;
}

/* --- torrents --- */

static int load_torrent(void *ctx, const struct torrent *torrent, struct err *err)
{
    struct loading *loading = ctx;
    struct hash_item item;

    memcpy(item.hash, torrent->info_hash, INFO_HASH_LEN);
    vec_push(&loading->torrents, item);
    swarms_add(loading->t->swarms, torrent->info_hash, torrent->snatches);
    return 0;
}

static int compare_hashes_in_list(const void *a, const void *b)
{
    return memcmp(a, b, INFO_HASH_LEN);
}

/* Removes from memory the torrents of the old list that are not in the new list. */
static void drop_gone(struct tracker *t, const struct loading *loading)
{
    vec_each (&t->lists.known, const struct hash_item *, k)
        if (!loading->torrents.len || !bsearch(k, loading->torrents.items, loading->torrents.len,
                                               sizeof(*k), compare_hashes_in_list))
            swarms_remove(t->swarms, k->hash);
}

/* Warns when the list leaves no room for torrents that are not listed; announces of such torrents
 * are then refused. */
static void warn_if_full(const struct tracker *t, size_t listed)
{
    const struct tracker_options *o = tracker_settings(t);

    if (o->open && listed >= o->max_torrents)
        log_warn(t->log, "tracker.no_room_beside_the_list", log_u("listed", listed),
                 log_u("tracker.max_torrents", o->max_torrents),
                 log_z("why", "torrents that are not listed are refused; raise "
                              "tracker.max_torrents"));
}

static int load_torrents(struct tracker *t, struct err *err)
{
    struct lists *l = &t->lists;
    struct loading loading = {.t = t};
    int code = cache_each_torrent(t->cache, load_torrent, &loading, err);

    if (code < 0) {
        vec_release(&loading.torrents);
        return code;
    }
    if (loading.torrents.len)
        qsort(loading.torrents.items, loading.torrents.len, sizeof(struct hash_item),
              compare_hashes_in_list);
    drop_gone(t, &loading);
    vec_release(&l->known);
    l->known.items = loading.torrents.items;
    l->known.len = loading.torrents.len;
    l->known.cap = loading.torrents.cap;
    warn_if_full(t, l->known.len);
    return 0;
}

static void lists_forget(struct tracker *t, const struct hash_item *item)
{
    struct lists *l = &t->lists;

    swarms_remove(t->swarms, item->hash);
    for (size_t i = 0; i < l->known.len; i++)
        if (compare_hashes_in_list(&l->known.items[i], item) == 0)
            l->known.items[i--] = vec_pop(&l->known);
}

/* Adds a torrent to `known`. The torrent may be in `known` already, so duplicates are removed
 * before `known` grows. */
static void lists_remember(struct lists *l, const struct hash_item *item)
{
    size_t kept = 0;

    if (l->known.len && l->known.len == l->known.cap) {
        qsort(l->known.items, l->known.len, sizeof(*item), compare_hashes_in_list);
        for (size_t i = 0; i < l->known.len; i++)
            if (!kept || compare_hashes_in_list(&l->known.items[kept - 1], &l->known.items[i]) != 0)
                l->known.items[kept++] = l->known.items[i];
        l->known.len = kept;
    }
    vec_push(&l->known, *item);
}

static int lists_look(struct tracker *t, const struct hash_item *items, size_t count,
                      struct err *err)
{
    struct scrape_entry entries[LOOK_AT_ONCE];
    int code = cache_scrape(t->cache, items[0].hash, count, entries, err);

    for (size_t i = 0; code == 0 && i < count; i++) {
        if (!entries[i].known) {
            lists_forget(t, &items[i]);
            continue;
        }
        swarms_add(t->swarms, items[i].hash, entries[i].downloaded);
        lists_remember(&t->lists, &items[i]);
    }
    return code;
}

/* --- following --- */

/* Loads the torrents and clients that have changed. After a failure all torrents are marked as
 * stale, so that the next call loads them all. */
static int catch_up(struct tracker *t, struct err *err)
{
    struct lists *l = &t->lists;
    VEC(struct hash_item) changed = {0};
    bool all, clients;
    int code = 0;

    mutex_lock(&l->lock);
    all = l->all_stale, clients = l->clients_stale;
    changed.items = l->changed.items, changed.len = l->changed.len;
    l->changed.items = NULL, l->changed.len = l->changed.cap = 0;
    l->all_stale = l->clients_stale = false;
    mutex_unlock(&l->lock);
    if (clients)
        code = load_clients(t, err);
    if (code == 0 && all)
        code = load_torrents(t, err);
    for (size_t i = 0; code == 0 && !all && i < changed.len; i += LOOK_AT_ONCE)
        code = lists_look(t, &changed.items[i], size_min(changed.len - i, LOOK_AT_ONCE), err);
    vec_release(&changed);
    if (code < 0) {
        mutex_lock(&l->lock);
        l->all_stale = true;
        l->clients_stale = l->clients_stale || clients;
        mutex_unlock(&l->lock);
    } else if (all) {
        atomic_store(&t->listed, true);
    }
    return code;
}

bool lists_follow(struct tracker *t)
{
    struct err err = {0};
    int code = t->swarms ? catch_up(t, &err) : 0;

    if (code < 0)
        log_warn(t->log, "tracker.lists_not_loaded", log_z("code", err_name(code)),
                 log_z("error", err.text));
    return code == 0;
}

int lists_start(struct tracker *t, struct err *err)
{
    int code =
        store_subscribe(&t->lists.sub, t->store, cache_channel(t->cache), lists_hear, t, err);

    if (code < 0)
        return code;
    mutex_lock(&t->lists.lock);
    t->lists.all_stale = t->lists.clients_stale = true;
    mutex_unlock(&t->lists.lock);
    lists_follow(t); /* called here because the follower does not run yet */
    return 0;
}

void lists_end(struct tracker *t)
{
    store_unsubscribe(t->lists.sub);
    t->lists.sub = NULL;
}

void lists_release(struct tracker *t)
{
    struct lists *l = &t->lists;

    vec_release(&l->known);
    vec_release(&l->clients);
    vec_release(&l->changed);
    mutex_release(&l->lock);
    mutex_release(&l->clients_lock);
}
