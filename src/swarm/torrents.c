/* Torrents of objects: makes the torrent file of an object version, and lists all torrents. */
#include "swarm/torrents_int.h"

#include "meta/envelope.h"
#include "meta/error.h"

#include <stdlib.h>

#define AT_ONCE ((uint64_t)256 * MIB)

static int write_for_gateway(void *ctx, struct arena *a, const struct torrent_ask *ask,
                             struct torrent_answer *out, struct err *err)
{
    return torrents_write(ctx, a, ask, out, err);
}

static int piece_for_gateway(void *ctx, const struct torrent_ask *ask, struct str info_hash,
                             uint64_t piece, struct object_range *out, struct err *err)
{
    return torrents_piece(ctx, ask, info_hash, piece, out, err);
}

int torrents_open(struct torrents **out, const struct torrents_options *o, struct err *err)
{
    struct torrents *t = xcalloc(1, sizeof(*t));
    int code;

    t->o = *o;
    t->o.at_once = o->at_once ? o->at_once : AT_ONCE;
    t->prefix = str_dup(o->prefix);
    t->tracker_url = str_dup(o->tracker_url);
    t->o.prefix = str_z(t->prefix);
    t->o.tracker_url = str_z(t->tracker_url);
    t->interface = (struct object_torrents){write_for_gateway, piece_for_gateway, t};
    mutex_init(&t->lock, "torrents");
    cond_init(&t->changed);
    list_init(&t->flights);
    code = cache_open(&t->cache, &(struct cache_options){.store = o->store, .prefix = t->o.prefix},
                      err);
    if (code == 0 && o->collect_ms)
        code = loop_start(&t->collector,
                          &(struct loop_options){.name = "torrents",
                                                 .step = torrents_collector,
                                                 .ctx = t,
                                                 .first = loop_sleep_ms(o->collect_ms)},
                          err);
    if (code < 0) {
        torrents_close(t);
        return code;
    }
    *out = t;
    return 0;
}

void torrents_close(struct torrents *t)
{
    if (!t)
        return;
    mutex_lock(&t->lock);
    t->stop = true;
    cond_broadcast(&t->changed);
    mutex_unlock(&t->lock);
    loop_stop(&t->collector);
    cond_release(&t->changed);
    mutex_release(&t->lock);
    cache_close(t->cache);
    free(t->prefix);
    free(t->tracker_url);
    free(t);
}

void torrents_listen(struct torrents *t, const struct sock_addr *http, const struct sock_addr *udp)
{
    if (http)
        t->o.http = *http;
    if (udp)
        t->o.udp = *udp;
}

const struct object_torrents *torrents_of_objects(struct torrents *t)
{
    return &t->interface;
}

/* --- the file --- */

/* Returns an error for objects that cannot have a torrent (docs/torrents.md, "Refused"), and sets
 * *kind. */
static int check_torrent_object(const struct torrent_ask *ask, enum torrent_kind *kind,
                                struct err *err)
{
    const struct object_info *info = ask->info;
    struct envelope e;

    *kind = TORRENT_V1;
    if (ask->kind.len && !torrent_kind_parse(kind, ask->kind))
        return err_set(err, S3_INVALID_ARGUMENT, "v is 1, 2 or hybrid");
    if (info->size == 0)
        return err_set(err, S3_INVALID_REQUEST, "There is no torrent of an empty object.");
    if (info->size > PIECES_SIZE_MAX)
        return err_set(err, S3_INVALID_REQUEST, "The object is too large for a torrent.");
    if (info->meta.encryption.len && envelope_read(&e, info->meta.encryption, err) == 0 &&
        e.kind == SSE_C)
        return err_set(err, S3_INVALID_REQUEST,
                       "There is no torrent of an object that is encrypted with a customer's key.");
    return 0;
}

/* A torrent file that is being made. */
struct making {
    const struct torrent_ask *ask;
    struct torrent_record record;
    struct torrent_known known; /* the torrent's ETag, kind and info hashes */
};

int torrents_track(struct torrents *t, const uint8_t *info_hash, enum torrent_track what,
                   struct err *err)
{
    struct torrent torrent = {.active = true, .up_multiplier = 1, .down_multiplier = 1};

    if (t->o.track)
        return t->o.track(t->o.track_ctx, info_hash, what != TRACK_NOT, err);
    memcpy(torrent.info_hash, info_hash, sizeof(torrent.info_hash));
    if (what != TRACK_NOT)
        return what == TRACK_OFFER ? cache_offer_torrent(t->cache, &torrent, err)
                                   : cache_add_torrent(t->cache, &torrent, err);
    int code = cache_remove_torrent(t->cache, info_hash, err);
    /* Another process may have removed the torrent already. */
    return code == ERR_NOT_FOUND ? 0 : code;
}

static int track_made(struct torrents *t, const struct making *m, struct err *err)
{
    const struct torrent_hashes *h = &m->known.hashes;
    enum torrent_track what = m->ask->brings_back ? TRACK_AGAIN : TRACK_OFFER;
    int code = h->has_v1 ? torrents_track(t, h->v1, what, err) : 0;

    if (code == 0 && h->has_v2)
        code = torrents_track(t, h->v2, what, err);
    return code;
}

/* Sets *out to whether the torrent was added to the tracker and is still there. */
static int is_tracked(struct torrents *t, const struct making *m, bool *out, struct err *err)
{
    const struct torrent_hashes *h = &m->known.hashes;
    int code = 0;

    *out = m->record.hashes[m->known.kind].len > 0;
    if (*out && h->has_v1 && !t->o.track)
        code = cache_torrent_listed(t->cache, h->v1, out, err);
    if (code == 0 && *out && h->has_v2 && !t->o.track)
        code = cache_torrent_listed(t->cache, h->v2, out, err);
    return code;
}

static int tell_tracker(struct torrents *t, struct arena *a, struct str member,
                        const struct making *m, struct err *err)
{
    bool was_told = m->record.hashes[m->known.kind].len > 0;
    int code = record_claim(t, a, member, &m->known, err);

    if (code == 0)
        code = track_made(t, m, err);
    if (code == 0)
        code = record_known(t, a, member, &m->known, err);
    if ((code == ERR_CONFLICT || (code == ERR_PRECONDITION && !was_told)) &&
        record_release(t, a, member, &m->known, NULL) < 0)
        log_warn(t->o.log, "torrents.left_on_the_tracker");
    return code;
}

/* Adds the torrent to the tracker if it is not there. The tracker must know every torrent that is
 * handed out (O5). */
static int make_known(struct torrents *t, struct str member, const struct making *m,
                      struct err *err)
{
    struct arena a = {0};
    bool tracked = false;
    int code = is_tracked(t, m, &tracked, err);

    if (code == 0 && !tracked)
        code = tell_tracker(t, &a, member, m, err);
    arena_release(&a);
    if (code == ERR_PRECONDITION)
        code = err_set(err, S3_ACCESS_DENIED,
                       "The torrent of this object was taken off the tracker by its operator.");
    return code;
}

static void fill_answer(struct arena *a, const struct torrent_file *f,
                        const struct torrent_hashes *h, struct torrent_answer *out)
{
    struct buf magnet = BUF_INIT(64 * KIB);

    torrent_magnet(&magnet, f, h);
    out->magnet = arena_str(a, buf_str(&magnet));
    out->name = arena_str(a, f->name);
    out->v1 = h->has_v1 ? arena_hex(a, h->v1, SHA1_LEN) : STR_EMPTY;
    out->v2 = h->has_v2 ? arena_hex(a, h->v2, SHA256_LEN) : STR_EMPTY;
    buf_release(&magnet);
}

static int make_file(struct torrents *t, struct arena *a, struct making *m,
                     struct torrent_answer *out, struct err *err)
{
    struct buf name = BUF_INIT(4 * KIB), info = BUF_INIT(TORRENT_ARENA_MAX);
    struct torrent_file f = {
        .kind = m->known.kind, .is_private = t->o.is_private, .pieces = &m->record.pieces};

    torrent_name(&name, m->ask->info->key);
    f.name = buf_str(&name);
    /* Clients append "?..." even if the URL has a query already, so the query is cut off. */
    if (m->ask->http_seed)
        str_cut(m->ask->url, '?', &f.http_seed, &(struct str){0});
    else
        torrent_seed(&f, m->ask->url);
    f.announce_count = torrent_announces(t, a, m->ask->host, m->ask->passkey, f.announces);
    torrent_info(&info, &f);
    torrent_hash(&m->known.hashes, f.kind, buf_str(&info));
    m->known.etag = m->record.etag;
    out->file.max = TORRENT_ARENA_MAX;
    torrent_write(&out->file, &f, buf_str(&info));
    fill_answer(a, &f, &m->known.hashes, out);
    int code = buf_error(&info) < 0 || buf_error(&out->file) < 0 || arena_error(a) < 0
                   ? err_code(err, ERR_NO_MEMORY)
                   : 0;
    buf_release(&name);
    buf_release(&info);
    return code;
}

/* Reads the record of the object version. ERR_NOT_FOUND: there is no record with the ETag and size
 * of `info`, or the record has no hashes yet. */
static int read_whole_record(struct torrents *t, struct arena *a, struct str member,
                             const struct object_info *info, struct torrent_record *out,
                             struct err *err)
{
    int code = record_read(t, a, member, true, out, err);

    if (code == 0 && (!out->ready || !str_eq(out->etag, info->etag) || out->size != info->size))
        code = err_code(err, ERR_NOT_FOUND);
    return code;
}

static int find_or_make(struct torrents *t, struct arena *a, const struct torrent_ask *ask,
                        struct str member, struct torrent_record *out, struct err *err)
{
    int code = read_whole_record(t, a, member, ask->info, out, err);

    if (code != ERR_NOT_FOUND)
        return code;
    code = torrents_ensure(t, &(struct torrent_job){ask->bucket, member, ask->info}, err);
    if (code == 0)
        code = read_whole_record(t, a, member, ask->info, out, err);
    /* Another call was hashing the object and failed, or the object was replaced meanwhile. */
    return code == ERR_NOT_FOUND ? err_set(err, ERR_CONFLICT, "it was replaced meanwhile") : code;
}

static struct str ask_member(struct arena *a, const struct torrent_ask *ask)
{
    return torrent_member(a, &(struct torrent_id){bucket_home(ask->bucket)->name, ask->bucket->name,
                                                  ask->info->key, ask->info->version});
}

int torrents_write(struct torrents *t, struct arena *a, const struct torrent_ask *ask,
                   struct torrent_answer *out, struct err *err)
{
    struct arena own = ARENA_INIT(TORRENT_ARENA_MAX);
    struct making m = {.ask = ask};
    int code = check_torrent_object(ask, &m.known.kind, err);
    struct str member = ask_member(&own, ask);

    if (code == 0)
        code = find_or_make(t, &own, ask, member, &m.record, err);
    if (code == 0)
        code = make_file(t, a, &m, out, err);
    if (code == 0)
        code = make_known(t, member, &m, err);
    arena_release(&own);
    return code;
}

/* --- pieces, for clients that download by BEP 17 --- */

static bool has_hash(struct arena *a, const struct torrent_record *r, struct str info_hash)
{
    struct str hex = arena_hex(a, info_hash.p, info_hash.len);

    for (int i = 0; i < TORRENT_KINDS && info_hash.len == SHA1_LEN; i++)
        if (str_find(r->hashes[i], hex) >= 0)
            return true;
    return false;
}

static bool has_torrent(const struct torrent_record *r)
{
    for (int i = 0; i < TORRENT_KINDS; i++)
        if (r->hashes[i].len)
            return true;
    return false;
}

/* Reads the record of an object version. If the record is missing or has no torrent, a torrent is
 * made first. */
static int read_or_make(struct torrents *t, struct arena *a, const struct torrent_ask *ask,
                        struct torrent_record *r, struct err *err)
{
    struct str member = ask_member(a, ask);
    struct torrent_answer answer = {0};
    int code = record_read(t, a, member, false, r, err);

    if (code == 0 && r->ready && str_eq(r->etag, ask->info->etag) && has_torrent(r))
        return 0;
    if (code == 0 || code == ERR_NOT_FOUND)
        code = torrents_write(t, a, ask, &answer, err);
    buf_release(&answer.file);
    return code < 0 ? code : record_read(t, a, member, false, r, err);
}

int torrents_piece(struct torrents *t, const struct torrent_ask *ask, struct str info_hash,
                   uint64_t piece, struct object_range *out, struct err *err)
{
    struct arena a = {0};
    struct torrent_record r;
    int code = read_or_make(t, &a, ask, &r, err);

    if (code == 0 && (!has_hash(&a, &r, info_hash) || piece >= r.pieces.count))
        code = err_code(err, ERR_NOT_FOUND);
    if (code == 0) {
        uint64_t first = piece * r.pieces.length, end = first + r.pieces.length;
        *out = (struct object_range){RANGE_FROM_TO, first, (end < r.size ? end : r.size) - 1};
    }
    arena_release(&a);
    return code;
}

/* --- the list --- */

static int fill_row(struct torrents *t, struct arena *a, struct str member,
                    const struct torrent_record *r, struct torrent_row *out, struct err *err)
{
    struct torrent_id id;
    int code = torrent_member_parse(&id, a, member, err);

    if (code < 0)
        return code;
    *out = (struct torrent_row){.storage = id.storage,
                                .bucket = id.bucket,
                                .key = id.key,
                                .version = id.version,
                                .etag = r->etag,
                                .size = r->size,
                                .piece_length = r->ready ? r->pieces.length : 0,
                                .ready = r->ready,
                                .made_s = r->made_s,
                                .position = arena_str(a, member)};
    out->done = r->ready ? r->size : record_done(t, a, member);
    memcpy(out->hashes, r->hashes, sizeof(out->hashes));
    return 0;
}

int torrents_list(struct torrents *t, struct arena *a, struct str after, size_t limit,
                  struct torrent_row **out, size_t *count, struct err *err)
{
    struct reply *page;
    struct torrent_record r;
    int code = record_members(t, a, after, limit, &page, err);

    if (code < 0)
        return code;
    *count = 0;
    *out = arena_array(a, page->count + 1, sizeof(**out));
    if (!*out)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < page->count && code == 0; i++) {
        code = record_read(t, a, page->items[i].str, false, &r, err);
        if (code == 0)
            code = fill_row(t, a, page->items[i].str, &r, &(*out)[(*count)++], err);
        else if (code == ERR_NOT_FOUND) /* the record was removed meanwhile */
            code = 0;
    }
    return code;
}

/* The record that torrents_find() found. */
struct found {
    struct str member;
    struct torrent_record record;
    enum torrent_kind kind;
};

static int find_by_hash(struct torrents *t, struct arena *a, struct str hash, struct found *f,
                        struct err *err)
{
    struct torrent_claim c = {0};
    int code = 0;

    if (hash.len != 2 * SHA1_LEN && hash.len != 2 * SHA256_LEN)
        return err_set(err, ERR_INVALID,
                       "'" STR_FMT
                       "' is neither an info hash (40 or 64 hexadecimal digits) nor the id of "
                       "a torrent; weir torrent list shows both",
                       STR_ARG(hash));
    hash = arena_lower(a, hash);
    /* A record claims the hashes of its torrents. A record that was replaced since then no longer
     * has the hash, and is skipped. */
    while ((code = record_by_hash(t, a, hash, &c, err)) == 0) {
        f->member = c.member;
        f->kind = c.kind;
        code = record_read(t, a, f->member, false, &f->record, err);
        if (code == 0 && str_find(f->record.hashes[f->kind], hash) >= 0)
            return 0;
        if (code < 0 && code != ERR_NOT_FOUND)
            return code;
    }
    return code;
}

static int find_by_position(struct torrents *t, struct arena *a, struct str position,
                            struct found *f, struct err *err)
{
    int code = record_read(t, a, position, false, &f->record, err);

    f->member = position;
    f->kind = TORRENT_V1;
    for (int i = TORRENT_KINDS - 1; i >= 0 && code == 0; i--)
        if (f->record.hashes[i].len)
            f->kind = (enum torrent_kind)i;
    return code;
}

int torrents_find(struct torrents *t, struct arena *a, struct str name, struct torrent_row *out,
                  enum torrent_kind *kind, struct err *err)
{
    struct found f = {0};
    int code = str_chr(name, ':') < 0 ? find_by_hash(t, a, name, &f, err)
                                      : find_by_position(t, a, name, &f, err);

    *kind = f.kind;
    return code < 0 ? code : fill_row(t, a, f.member, &f.record, out, err);
}

int torrents_show(struct torrents *t, struct arena *a, const struct torrent_row *row,
                  const struct torrent_ask *ask, struct torrent_answer *out, struct err *err)
{
    struct arena own = ARENA_INIT(TORRENT_ARENA_MAX);
    struct making m = {.ask = ask};
    int code = 0;

    if (ask->kind.len && !torrent_kind_parse(&m.known.kind, ask->kind))
        code = err_set(err, ERR_INVALID, "v is 1, 2 or hybrid");
    if (code == 0)
        code = record_read(t, &own, row->position, true, &m.record, err);
    if (code == 0 && !m.record.ready)
        code = err_set(err, ERR_BUSY, "it is being hashed");
    if (code == 0)
        code = make_file(t, a, &m, out, err);
    arena_release(&own);
    return code;
}

int torrents_remove(struct torrents *t, struct arena *a, const struct torrent_row *row,
                    struct err *err)
{
    struct torrent_record r;
    int code = record_read(t, a, row->position, false, &r, err);

    if (code < 0)
        return code;
    torrents_cancel(t, row->position, r.etag);
    return record_remove(t, a, row->position, &r, err);
}
