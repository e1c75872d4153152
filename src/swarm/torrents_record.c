/* The records of torrents in the store (swarmDB). The same database has the keys of peers. Such a
 * key begins with 20 bytes that the peer chooses, and then has a ':' (docs/swarm.md). No key of a
 * record has a ':' in that place, so no peer can choose the key of a record. */
#include "swarm/torrents_int.h"

#include "base/clock.h"
#include "base/hex.h"

#define RECORD_KEY  "w:torrent_of_an_object:"
#define INDEX_KEY   "w:torrents_of_objects"
#define BY_HASH_KEY "w:torrents_by_info_hash:"
#define WORK_KEY    "w:torrent_being_hashed:"

static const char *const hash_fields[TORRENT_KINDS] = {"hash_1", "hash_2", "hash_hybrid"};

static struct str record_key(const struct torrents *t, struct arena *a, const char *name,
                             struct str rest)
{
    return arena_fmt(a, STR_FMT "%s" STR_FMT, STR_ARG(t->o.prefix), name, STR_ARG(rest));
}

/* --- members of the index: the name "storage:bucket:key:version" of an object version, with
 * escaped parts --- */

struct str torrent_member(struct arena *a, const struct torrent_id *id)
{
    const struct str parts[] = {id->storage, id->bucket, id->key, id->version};
    struct buf out = BUF_INIT(16 * KIB);

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        if (i > 0)
            buf_append_char(&out, ':');
        store_key_part(&out, parts[i]);
    }
    struct str member = arena_str(a, buf_str(&out));
    buf_release(&out);
    return member;
}

int torrent_member_parse(struct torrent_id *out, struct arena *a, struct str member,
                         struct err *err)
{
    struct str *parts[] = {&out->storage, &out->bucket, &out->key, &out->version};
    struct buf text = BUF_INIT(16 * KIB);
    int code = 0;

    for (size_t i = 0; i < ARRAY_SIZE(parts) && code == 0; i++) {
        struct str part;
        bool more = str_cut(member, ':', &part, &member);
        buf_reset(&text);
        code = store_key_unescape(&text, part);
        if (more != (i + 1 < ARRAY_SIZE(parts)))
            code = ERR_PARSE;
        *parts[i] = arena_str(a, buf_str(&text));
    }
    buf_release(&text);
    return code < 0 ? err_set(err, ERR_CORRUPT, "a torrent's key cannot be read") : 0;
}

/* --- reading --- */

static struct str record_field(const struct reply *r, size_t i)
{
    return r->items[i].type == REPLY_BULK ? r->items[i].str : STR_EMPTY;
}

/* Checks the fields of a record that describe the pieces, and fills in *p. False: a field is
 * missing or wrong, so the object must be hashed again. */
static bool pieces_fit(struct pieces *p, uint64_t size, struct str length, struct str root)
{
    uint64_t n = 0;

    if (str_u64(length, &n) < 0 || n < MERKLE_BLOCK || n > 16 * MIB || root.len != SHA256_LEN)
        return false;
    *p = (struct pieces){.size = size, .length = (uint32_t)n};
    p->count = piece_count(size, p->length);
    memcpy(p->root, root.p, SHA256_LEN);
    return true;
}

static bool hashes_fit(struct pieces *p, struct str v1, struct str layer)
{
    p->v1 = v1;
    p->layer = layer;
    return v1.len == p->count * SHA1_LEN && layer.len == (p->count > 1 ? p->count * SHA256_LEN : 0);
}

int record_read(struct torrents *t, struct arena *a, struct str member, bool hashes,
                struct torrent_record *out, struct err *err)
{
    enum { ETAG, SIZE, MADE, LENGTH, ROOT, HASHES, V1 = HASHES + TORRENT_KINDS, LAYER, ALL };
    struct str argv[2 + ALL] = {STR("HMGET"), record_key(t, a, RECORD_KEY, member),
                                STR("etag"),  STR("size"),
                                STR("made"),  STR("length"),
                                STR("root")};
    size_t argc = 2 + HASHES;
    struct reply *r;
    uint64_t made = 0;

    for (int i = 0; i < TORRENT_KINDS; i++)
        argv[argc++] = str_z(hash_fields[i]);
    if (hashes) {
        argv[argc++] = STR("v1");
        argv[argc++] = STR("layer");
    }
    int code = store_command(t->o.store, a, &r, argv, argc, err);
    if (code == 0)
        code = reply_expect(r, REPLY_ARRAY, err);
    if (code < 0)
        return code;
    *out = (struct torrent_record){.etag = record_field(r, ETAG)};
    if (!out->etag.len || str_u64(record_field(r, SIZE), &out->size) < 0)
        return err_code(err, ERR_NOT_FOUND);
    for (int i = 0; i < TORRENT_KINDS; i++)
        out->hashes[i] = record_field(r, (size_t)HASHES + (size_t)i);
    out->ready =
        pieces_fit(&out->pieces, out->size, record_field(r, LENGTH), record_field(r, ROOT)) &&
        (!hashes || hashes_fit(&out->pieces, record_field(r, V1), record_field(r, LAYER)));
    if (out->ready && str_u64(record_field(r, MADE), &made) == 0)
        out->made_s = (int64_t)made;
    return 0;
}

static struct str by_hash_key(const struct torrents *t, struct arena *a, struct str hex)
{
    return record_key(t, a, BY_HASH_KEY, arena_lower(a, str_head(hex, 2 * SHA1_LEN)));
}

int record_by_hash(struct torrents *t, struct arena *a, struct str hex, struct torrent_claim *c,
                   struct err *err)
{
    struct str from = c->text.len ? arena_fmt(a, "(" STR_FMT, STR_ARG(c->text)) : STR("-");
    struct str name;
    struct reply *r;
    int code = store_call(t->o.store, a, &r, err, STR("ZRANGEBYLEX"), by_hash_key(t, a, hex), from,
                          STR("+"), STR("LIMIT"), STR("0"), STR("1"));

    if (code == 0)
        code = reply_expect(r, REPLY_ARRAY, err);
    if (code < 0)
        return code;
    if (r->count == 0)
        return err_set(err, ERR_NOT_FOUND, "no torrent has this info hash");
    c->text = r->items[0].str;
    if (!str_cut(c->text, ':', &name, &c->member) || !torrent_kind_parse(&c->kind, name))
        return err_set(err, ERR_CORRUPT, "what has this info hash cannot be read");
    return 0;
}

int record_members(struct torrents *t, struct arena *a, struct str after, size_t limit,
                   struct reply **out, struct err *err)
{
    struct str from = after.len ? arena_fmt(a, "(" STR_FMT, STR_ARG(after)) : STR("-");
    struct str count = arena_fmt(a, "%zu", limit);
    int code = store_call(t->o.store, a, out, err, STR("ZRANGEBYLEX"),
                          record_key(t, a, INDEX_KEY, STR_EMPTY), from, STR("+"), STR("LIMIT"),
                          STR("0"), count);

    return code < 0 ? code : reply_expect(*out, REPLY_ARRAY, err);
}

/* --- writing --- */

/* Runs commands in one atomic step, and fails if one of them failed. */
static int record_run(struct torrents *t, struct arena *a, const struct store_args *steps,
                      size_t count, struct err *err)
{
    struct reply *r;
    int code = store_atomic(t->o.store, a, &r, steps, count, err);

    for (size_t i = 0; code == 0 && i < count; i++)
        if (r->items[i].type == REPLY_ERROR)
            code = err_set(err, ERR_INVALID, "store: " STR_FMT, STR_ARG(r->items[i].str));
    return code;
}

#define STEP(...)                                                                                  \
    {                                                                                              \
        (const struct str[]){__VA_ARGS__},                                                         \
            sizeof((const struct str[]){__VA_ARGS__}) / sizeof(struct str)                         \
    }

/* --- claims: objects with the same bytes and the same name have the same info hash --- */

static struct str claim_text(struct arena *a, enum torrent_kind kind, struct str member)
{
    return arena_fmt(a, "%s:" STR_FMT, torrent_kind_names[kind], STR_ARG(member));
}

static int claim_hash(struct torrents *t, struct arena *a, struct str hex, struct str text,
                      struct err *err)
{
    struct reply *r;

    return store_call(t->o.store, a, &r, err, STR("ZADD"), by_hash_key(t, a, hex), STR("0"), text);
}

static int others_claim(struct torrents *t, struct arena *a, struct str hex, struct str text,
                        struct err *err)
{
    struct torrent_claim c = {0};
    int code;

    do {
        code = record_by_hash(t, a, hex, &c, err);
    } while (code == 0 && str_eq(c.text, text));
    return code == ERR_NOT_FOUND ? 0 : code < 0 ? code : 1;
}

/* Removes a claim, and removes the torrent from the tracker unless another object claims it too.
 * Other objects claim a hash before they add the torrent to the tracker. So the second look for
 * other claims, after the removal, sees a claim that was made meanwhile; then the torrent is added
 * again. */
static int release_hash(struct torrents *t, struct arena *a, struct str hex, struct str text,
                        struct err *err)
{
    uint8_t hash[SHA1_LEN];
    struct reply *r;
    int code;

    if (!hex_parse(str_head(hex, 2 * SHA1_LEN), hash, sizeof(hash)))
        return 0;
    code = others_claim(t, a, hex, text, err);
    if (code == 0)
        code = torrents_track(t, hash, TRACK_NOT, err);
    else if (code > 0)
        code = 0;
    if (code == 0)
        code = store_call(t->o.store, a, &r, err, STR("ZREM"), by_hash_key(t, a, hex), text);
    if (code == 0)
        code = others_claim(t, a, hex, text, err);
    if (code > 0)
        code = torrents_track(t, hash, TRACK_OFFER, err);
    return code == ERR_PRECONDITION ? 0 : code;
}

int record_claim(struct torrents *t, struct arena *a, struct str member,
                 const struct torrent_known *known, struct err *err)
{
    const struct torrent_hashes *h = &known->hashes;
    struct str text = claim_text(a, known->kind, member);
    int code = h->has_v1 ? claim_hash(t, a, arena_hex(a, h->v1, SHA1_LEN), text, err) : 0;

    if (code == 0 && h->has_v2)
        code = claim_hash(t, a, arena_hex(a, h->v2, SHA1_LEN), text, err);
    return code;
}

int record_release(struct torrents *t, struct arena *a, struct str member,
                   const struct torrent_known *known, struct err *err)
{
    const struct torrent_hashes *h = &known->hashes;
    struct str text = claim_text(a, known->kind, member);
    int code = h->has_v1 ? release_hash(t, a, arena_hex(a, h->v1, SHA1_LEN), text, err) : 0;

    if (code == 0 && h->has_v2)
        code = release_hash(t, a, arena_hex(a, h->v2, SHA1_LEN), text, err);
    return code;
}

/* Gives up the claims of all torrents of a record. The record itself is removed later, so that it
 * still names the torrents if this fails. */
static int untrack(struct torrents *t, struct arena *a, struct str member,
                   const struct torrent_record *r, struct err *err)
{
    int code = 0;

    for (int i = 0; i < TORRENT_KINDS && code == 0; i++) {
        struct str rest = r->hashes[i], hex;
        struct str text = claim_text(a, (enum torrent_kind)i, member);
        while (code == 0 && str_token(&rest, " ", &hex))
            code = release_hash(t, a, hex, text, err);
    }
    return code;
}

/* --- records --- */

/* If the record has another ETag than `etag`, gives up the claims of its torrents. */
static int drop_other(struct torrents *t, struct arena *a, struct str member, struct str etag,
                      struct err *err)
{
    struct torrent_record old;
    int code = record_read(t, a, member, false, &old, err);

    if (code == ERR_NOT_FOUND)
        return 0;
    return code < 0 || str_eq(old.etag, etag) ? code : untrack(t, a, member, &old, err);
}

/* Writes fields of a record. ARGV: the ETag, the member of the index, the seconds for which the
 * progress is kept ('': the work is done, the progress is deleted), then fields and values. A
 * record with another ETag is deleted first. A record with the same ETag keeps its other fields,
 * because another process may have hashed the object meanwhile and handed out its torrents. */
static const char keep_source[] =
    "if redis.call('HGET', KEYS[1], 'etag') ~= ARGV[1] then redis.call('DEL', KEYS[1]) end\n"
    "redis.call('HSET', KEYS[1], 'etag', ARGV[1], unpack(ARGV, 4))\n"
    "redis.call('ZADD', KEYS[2], '0', ARGV[2])\n"
    "if ARGV[3] == '' then redis.call('DEL', KEYS[3])\n"
    "else redis.call('SET', KEYS[3], '0', 'EX', ARGV[3]) end\n"
    "return 1\n";

static int record_write(struct torrents *t, struct arena *a, struct str member,
                        const struct store_args *args, struct err *err)
{
    const struct str keys[] = {record_key(t, a, RECORD_KEY, member),
                               record_key(t, a, INDEX_KEY, STR_EMPTY),
                               record_key(t, a, WORK_KEY, member)};
    struct script script = {.name = "torrent/keep", .source = STR(keep_source)};
    struct script_run run = {.script = &script, .keys = {keys, ARRAY_SIZE(keys)}, .args = *args};
    struct reply *r = NULL;
    int code = drop_other(t, a, member, args->argv[0], err);

    script_init(&script);
    if (code == 0)
        code = store_eval(t->o.store, a, &r, &run, err);
    return code < 0 ? code : reply_expect(r, REPLY_INTEGER, err);
}

int record_begin(struct torrents *t, struct arena *a, struct str member,
                 const struct object_info *info, struct err *err)
{
    const struct store_args args =
        STEP(info->etag, member, arena_fmt(a, "%d", TORRENT_WORK_S), STR("size"),
             arena_fmt(a, "%llu", (unsigned long long)info->size));

    return record_write(t, a, member, &args, err);
}

int record_keep(struct torrents *t, struct arena *a, struct str member, struct str etag,
                const struct pieces *p, struct err *err)
{
    const struct store_args args = STEP(
        etag, member, STR_EMPTY, STR("size"), arena_fmt(a, "%llu", (unsigned long long)p->size),
        STR("length"), arena_fmt(a, "%u", p->length), STR("root"), str_n(p->root, SHA256_LEN),
        STR("v1"), p->v1, STR("layer"), p->layer, STR("made"),
        arena_fmt(a, "%lld", (long long)(clock_wall_ms() / MS_PER_S)));

    return record_write(t, a, member, &args, err);
}

/* Writes the info hash of a torrent into its record, but not into a record with another ETag,
 * because then the bytes of that torrent no longer exist. */
static const char known_source[] =
    "if redis.call('HGET', KEYS[1], 'etag') ~= ARGV[1] then return 0 "
    "end\n"
    "redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])\n"
    "return 1\n";

int record_known(struct torrents *t, struct arena *a, struct str member,
                 const struct torrent_known *known, struct err *err)
{
    const struct torrent_hashes *h = &known->hashes;
    struct str v1 = h->has_v1 ? arena_hex(a, h->v1, SHA1_LEN) : STR_EMPTY;
    struct str v2 = h->has_v2 ? arena_hex(a, h->v2, SHA256_LEN) : STR_EMPTY;
    struct str key = record_key(t, a, RECORD_KEY, member);
    struct str text = arena_fmt(a, STR_FMT "%s" STR_FMT, STR_ARG(v1),
                                h->has_v1 && h->has_v2 ? " " : "", STR_ARG(v2));
    const struct store_args args = STEP(known->etag, str_z(hash_fields[known->kind]), text);
    struct script script = {.name = "torrent/known", .source = STR(known_source)};
    struct script_run run = {.script = &script, .keys = {&key, 1}, .args = args};
    struct reply *r;

    script_init(&script);
    int code = store_eval(t->o.store, a, &r, &run, err);
    if (code == 0)
        code = reply_expect(r, REPLY_INTEGER, err);
    if (code == 0 && r->integer == 0)
        code = err_set(err, ERR_CONFLICT, "it was replaced meanwhile");
    return code;
}

int record_remove(struct torrents *t, struct arena *a, struct str member,
                  const struct torrent_record *r, struct err *err)
{
    int code = untrack(t, a, member, r, err);
    const struct store_args steps[] = {
        STEP(STR("DEL"), record_key(t, a, RECORD_KEY, member), record_key(t, a, WORK_KEY, member)),
        STEP(STR("ZREM"), record_key(t, a, INDEX_KEY, STR_EMPTY), member),
    };

    return code < 0 ? code : record_run(t, a, steps, ARRAY_SIZE(steps), err);
}

/* --- progress --- */

int record_progress(struct torrents *t, struct str member, uint64_t done, struct err *err)
{
    struct arena a = {0};
    struct reply *r;
    int code = store_call(t->o.store, &a, &r, err, STR("SET"), record_key(t, &a, WORK_KEY, member),
                          arena_fmt(&a, "%llu", (unsigned long long)done), STR("EX"),
                          arena_fmt(&a, "%d", TORRENT_WORK_S));

    arena_release(&a);
    return code;
}

uint64_t record_done(struct torrents *t, struct arena *a, struct str member)
{
    struct reply *r;
    uint64_t done = 0;

    if (store_call(t->o.store, a, &r, NULL, STR("GET"), record_key(t, a, WORK_KEY, member)) < 0 ||
        r->type != REPLY_BULK || str_u64(r->str, &done) < 0)
        return 0;
    return done;
}
