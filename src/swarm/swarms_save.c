/* Saves all swarms to a file, so that they outlive a restart.
 *
 * All numbers are little endian. The file has these parts:
 * - A head: "WEIRSWRM", u32 version, u32 seconds of a unit, u64 wall clock in ms, u64 XXH3 of the
 *   head.
 * - A piece for each stripe that has torrents: u32 length, u32 number of torrents, u64 XXH3 of the
 *   rest of the piece, then the torrents.
 * - A last piece with length 0 and the XXH3 of the sums of all pieces. Nothing follows it.
 *
 * A torrent has its info hash, u32 snatches, and for IPv4 and IPv6 u32 number of peers and u32
 * number of seeders. For each family the addresses of all peers follow, and then four bytes for
 * each peer: the units of time since its announce, flags (1: paused), and two bytes of its tag.
 *
 * A file is read twice: everything is checked before anything is used. */
#include "base/clock.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "os/file.h"
#include "swarm/swarms_int.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VERSION = 1, HEAD_LEN = 32, PIECE_HEAD_LEN = 16, TORRENT_LEN = 40, PEER_LEN = 4 };
enum { SAVED_PAUSED = 1 };
static const char magic[8] = "WEIRSWRM";

/* --- saving --- */

static void save_peers(struct buf *b, const struct swarm *w, enum family f)
{
    const struct peers *p = &w->of[f];

    buf_append(b, p->addr, p->count * p->stride);
    for (uint32_t i = 0; i < p->count; i++) {
        buf_append_char(b, (char)units_ago(w->now, p->meta[i].seen));
        buf_append_char(b, p->meta[i].told & PEER_PAUSED ? SAVED_PAUSED : 0);
        buf_append_le16(b, p->meta[i].tag);
    }
}

static void save_torrent(struct buf *b, struct swarms *s, struct stripe *stripe,
                         struct torrent_entry *t)
{
    struct swarm w;

    swarm_begin(&w, s, stripe, t);
    buf_append(b, t->hash, INFO_HASH_LEN);
    buf_append_le32(b, t->snatches);
    for (int f = V4; f <= V6; f++) {
        buf_append_le32(b, w.of[f].count);
        buf_append_le32(b, w.of[f].seeders);
    }
    for (int f = V4; f <= V6; f++)
        save_peers(b, &w, f);
    swarm_end(&w);
}

static uint32_t save_stripe(struct buf *b, struct swarms *s, struct stripe *stripe)
{
    uint32_t torrents = 0;

    mutex_lock(&stripe->lock);
    for (uint32_t i = 0; i < table_slots(stripe); i++) {
        struct torrent_entry *t = table_at(stripe, i);
        if (!t)
            continue;
        save_torrent(b, s, stripe, t);
        torrents++;
    }
    mutex_unlock(&stripe->lock);
    return torrents;
}

static int write_snapshot_piece(int fd, struct str body, uint32_t torrents, uint64_t sum,
                                struct err *err)
{
    struct buf head = BUF_INIT(PIECE_HEAD_LEN);
    int code;

    buf_append_le32(&head, (uint32_t)body.len);
    buf_append_le32(&head, torrents);
    buf_append_le64(&head, sum);
    code = file_write_all(fd, head.p, head.len, err);
    buf_release(&head);
    return code < 0 ? code : file_write_all(fd, body.p, body.len, err);
}

static int write_snapshot_head(int fd, const struct swarms *s, struct err *err)
{
    struct buf head = BUF_INIT(HEAD_LEN);
    int code;

    buf_append(&head, magic, sizeof(magic));
    buf_append_le32(&head, VERSION);
    buf_append_le32(&head, s->unit_s);
    buf_append_le64(&head, (uint64_t)clock_wall_ms());
    buf_append_le64(&head, hash_xxh3(buf_str(&head), 0));
    code = file_write_all(fd, head.p, head.len, err);
    buf_release(&head);
    return code;
}

static int write_snapshot(int fd, struct swarms *s, struct err *err)
{
    struct buf piece = BUF_INIT(UINT32_MAX), sums = BUF_INIT(STRIPES * sizeof(uint64_t));
    int code = write_snapshot_head(fd, s, err);

    for (int i = 0; i < STRIPES && code == 0; i++) {
        uint32_t torrents;
        uint64_t sum;
        buf_reset(&piece);
        torrents = save_stripe(&piece, s, &s->stripes[i]);
        code = buf_error(&piece);
        if (code < 0 || !torrents)
            continue;
        sum = hash_xxh3(buf_str(&piece), 0);
        buf_append_le64(&sums, sum);
        code = write_snapshot_piece(fd, buf_str(&piece), torrents, sum, err);
    }
    if (code == 0)
        code = write_snapshot_piece(fd, STR_EMPTY, 0, hash_xxh3(buf_str(&sums), 0), err);
    buf_release(&piece);
    buf_release(&sums);
    return code < 0 ? code : file_sync(fd, err);
}

int swarms_save(struct swarms *s, const char *path, uint32_t now_s, struct err *err)
{
    struct buf temporary = BUF_INIT(PATH_MAX);
    int fd, code;

    swarms_set_now(s, now_s);
    /* The temporary name is always the same, so that a file left by a killed process is
     * overwritten. */
    buf_appendf(&temporary, "%s.tmp", path);
    if (buf_error(&temporary) < 0) {
        buf_release(&temporary);
        return err_set(err, ERR_TOO_LARGE, "the path %.64s... is too long", path);
    }
    fd = open(temporary.p, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    code = fd < 0 ? err_errno(err, errno, "creating %s", temporary.p) : write_snapshot(fd, s, err);
    if (fd >= 0) {
        fd_close(&fd);
        if (code == 0)
            code = file_rename_over(temporary.p, path, err);
        if (code < 0)
            unlink(temporary.p);
    }
    buf_release(&temporary);
    return code;
}

/* --- loading --- */

struct loading {
    struct swarms *s;
    int fd;
    off_t at, size;
    /* Seconds in a unit of the file, and seconds since the file was saved. */
    uint32_t unit_s, passed_s;
    bool taking; /* this is the second reading, which uses the data */
    struct buf piece, sums;
};

static int snapshot_damaged(struct err *err, const char *what)
{
    return err_set(err, ERR_CORRUPT, "the file of swarms is damaged: %s", what);
}

/* Converts a saved age to the age now, in our units. The age is rounded up, so that no peer gets
 * younger. */
static uint32_t ago_now(const struct loading *l, uint8_t ago)
{
    uint64_t s = (uint64_t)ago * l->unit_s + l->passed_s;

    return (uint32_t)((s + l->s->unit_s - 1) / l->s->unit_s);
}

static void load_peers(struct loading *l, struct swarm *w, enum family f, const uint8_t *p,
                       const uint32_t n[2])
{
    const uint8_t *addr = p, *meta = p + n[0] * w->of[f].stride;

    for (uint32_t i = 0; i < n[0]; i++, addr += w->of[f].stride, meta += PEER_LEN) {
        uint32_t ago = ago_now(l, meta[0]);
        struct peer_meta m = {.seen = (uint8_t)(w->now - ago),
                              .told = told_mark(w->now - l->s->tell_units - 4),
                              .tag = le16_read(meta + 2)};
        bool full =
            atomic_load_explicit(&l->s->peers, memory_order_relaxed) >= l->s->options.max_peers;
        if (ago > l->s->limit || full || swarm_find(w, f, addr) >= 0)
            continue;
        m.told |= meta[1] & SAVED_PAUSED && i >= n[1] ? PEER_PAUSED : 0;
        swarm_put(w, f, addr, m, i < n[1]);
    }
}

static void load_torrent_entry(struct loading *l, const uint8_t *p, const uint32_t n[FAMILIES][2])
{
    struct stripe *stripe = swarms_stripe(l->s, p);
    struct torrent_entry *t;
    struct swarm w;

    mutex_lock(&stripe->lock);
    t = table_find(l->s, stripe, p);
    if (!t &&
        atomic_load_explicit(&l->s->torrents, memory_order_relaxed) < l->s->options.max_torrents)
        t = table_insert(l->s, stripe, p);
    if (t) {
        uint32_t snatches = le32_read(p + INFO_HASH_LEN);
        swarm_begin(&w, l->s, stripe, t);
        t->touched = w.now;
        t->snatches = t->snatches > snatches ? t->snatches : snatches;
        p += TORRENT_LEN;
        load_peers(l, &w, V4, p, n[V4]);
        p += (size_t)n[V4][0] * (COMPACT4_LEN + PEER_LEN);
        load_peers(l, &w, V6, p, n[V6]);
        swarm_end(&w);
    }
    mutex_unlock(&stripe->lock);
}

static int walk_piece(struct loading *l, uint32_t torrents, struct err *err)
{
    const uint8_t *p = (const uint8_t *)l->piece.p;
    size_t left = l->piece.len;

    for (; torrents; torrents--) {
        uint32_t n[FAMILIES][2];
        uint64_t len = TORRENT_LEN;
        if (left < len)
            return snapshot_damaged(err, "a torrent is cut");
        for (int f = V4; f <= V6; f++) {
            n[f][0] = le32_read(p + INFO_HASH_LEN + 4 + 8 * f);
            n[f][1] = le32_read(p + INFO_HASH_LEN + 8 + 8 * f);
            len += (uint64_t)n[f][0] * (PEER_LEN + (f == V6 ? COMPACT6_LEN : COMPACT4_LEN));
            if (n[f][1] > n[f][0])
                return snapshot_damaged(err, "more seeders than peers");
        }
        if (left < len)
            return snapshot_damaged(err, "peers are cut");
        if (l->taking)
            load_torrent_entry(l, p, (const uint32_t(*)[2])n);
        p += len;
        left -= len;
    }
    return left ? snapshot_damaged(err, "a piece is too long") : 0;
}

/* Reads and checks the next piece. ERR_END: there is no further piece. */
static int load_next_piece(struct loading *l, struct err *err)
{
    uint8_t head[PIECE_HEAD_LEN];
    uint32_t len;
    char *room;
    int code;

    if (l->size - l->at < PIECE_HEAD_LEN)
        return snapshot_damaged(err, "it has no end");
    code = file_pread_full(l->fd, head, sizeof(head), l->at, err);
    if (code < 0)
        return code;
    l->at += PIECE_HEAD_LEN;
    len = le32_read(head);
    if (len == 0) {
        bool whole = l->at == l->size && le32_read(head + 4) == 0 &&
                     le64_read(head + 8) == hash_xxh3(buf_str(&l->sums), 0);
        return whole ? ERR_END : snapshot_damaged(err, "its end is wrong");
    }
    if (len > l->size - l->at)
        return snapshot_damaged(err, "a piece is cut");
    buf_reset(&l->piece);
    room = buf_reserve(&l->piece, len);
    code = room ? file_pread_full(l->fd, room, len, l->at, err) : err_code(err, ERR_TOO_LARGE);
    if (code < 0)
        return code;
    buf_commit(&l->piece, len);
    l->at += len;
    if (hash_xxh3(buf_str(&l->piece), 0) != le64_read(head + 8))
        return snapshot_damaged(err, "a sum is wrong");
    buf_append_le64(&l->sums, le64_read(head + 8));
    return walk_piece(l, le32_read(head + 4), err);
}

static int walk_snapshot(struct loading *l, bool taking, struct err *err)
{
    int code;

    l->taking = taking;
    l->at = HEAD_LEN;
    buf_reset(&l->sums);
    while ((code = load_next_piece(l, err)) == 0)
        ;
    return code == ERR_END ? 0 : code;
}

static int read_snapshot_head(struct loading *l, struct err *err)
{
    uint8_t head[HEAD_LEN];
    struct stat st;
    int64_t passed;
    int code;

    if (fstat(l->fd, &st) < 0)
        return err_errno(err, errno, "looking at the file of swarms");
    l->size = st.st_size;
    if (l->size < HEAD_LEN)
        return snapshot_damaged(err, "it is too short");
    code = file_pread_full(l->fd, head, sizeof(head), 0, err);
    if (code < 0)
        return code;
    if (memcmp(head, magic, sizeof(magic)) != 0)
        return snapshot_damaged(err, "it is none");
    if (le64_read(head + 24) != hash_xxh3(str_n(head, 24), 0))
        return snapshot_damaged(err, "the sum of its head is wrong");
    if (le32_read(head + 8) > VERSION)
        return err_set(err, ERR_VERSION, "the file of swarms was written by a newer version");
    l->unit_s = le32_read(head + 12);
    passed = (clock_wall_ms() - (int64_t)le64_read(head + 16)) / MS_PER_S;
    l->passed_s = passed < 0 ? 0 : (uint32_t)size_min((size_t)passed, UINT32_MAX);
    return 0;
}

int swarms_load(struct swarms *s, const char *path, uint32_t now_s, struct err *err)
{
    struct loading l = {.s = s,
                        .fd = open(path, O_RDONLY | O_CLOEXEC),
                        .piece = BUF_INIT(UINT32_MAX),
                        .sums = BUF_INIT(STRIPES * sizeof(uint64_t))};
    int code;

    if (l.fd < 0)
        return err_errno(err, errno, "opening %s", path);
    swarms_set_now(s, now_s);
    code = read_snapshot_head(&l, err);
    if (code == 0)
        code = walk_snapshot(&l, false, err);
    if (code == 0)
        code = walk_snapshot(&l, true, err);
    fd_close(&l.fd);
    buf_release(&l.piece);
    buf_release(&l.sums);
    return code;
}
