/* Routes: torrents of objects. */
#include "swarm/rest/rest.h"
#include "base/clock.h"
#include "object/bucket.h"
#include "route/resolve.h"
#include "meta/error.h"
#include "swarm/torrents.h"

enum { PAGE_USUAL = 100, PAGE_MAX = 1000 };

static rest_fn torrent_list, torrent_create, torrent_show, torrent_file, torrent_remove,
    needs_torrents;

/* A torrent as it is shown. The texts from `name` on are NULL while the object is
 * being hashed. */
struct torrent_view {
    struct torrent_row row;
    const char *state;
    uint64_t percent;
    int64_t made_ms;
    struct str hashes[2 * TORRENT_KINDS]; /* a torrent of two versions has two */
    const struct str *hash_list;          /* `hashes` */
    size_t hash_count;
    struct str name, v1, v2, web_seed, magnet;
};

/* The object of which a torrent is to be made. */
struct torrent_form {
    struct str bucket, key, version, kind, passkey;
};

#define FORM(member) REST_AT(struct torrent_form, member)
#define VIEW(member) REST_AT(struct torrent_view, member)
#define TORRENT_FIELDS                                                                             \
    {"id", "The torrent's id.", VIEW(row.position)},                                               \
        {"storage", "The storage that has the object.", VIEW(row.storage)},                        \
        {"bucket", "The object's bucket.", VIEW(row.bucket)},                                      \
        {"key", "The object's key.", VIEW(row.key)},                                               \
        {"version", "The object's version.", VIEW(row.version)},                                   \
        {"size", "Bytes of the object.", REST_INTEGER, VIEW(row.size)},                            \
        {"piece_length", "Bytes of a piece.", REST_INTEGER, VIEW(row.piece_length)},               \
        {"state", "\"hashing\" or \"ready\".", VIEW(state)},                                       \
        {"percent", "How much of the object is hashed.", REST_INTEGER, VIEW(percent)},             \
        {"made", "When it was made.", REST_TIME, VIEW(made_ms)},                                   \
    {                                                                                              \
        "info_hashes", "The info hashes, in hexadecimal digits.", REST_STRINGS,                    \
            REST_ITEMS(struct torrent_view, hash_list, hash_count)                                 \
    }

static const struct rest_field torrent_path[] = {{"torrent", "An info hash, or the torrent's id."},
                                                 {0}};
static const struct rest_field torrent_query[] = {
    {"v", "The kind of torrent: 1, 2 or hybrid; left out: by the info hash."},
    {"passkey", "A passkey for the announce addresses.", .secret = true},
    {0},
};
static const struct rest_field torrent_fields[] = {
    TORRENT_FIELDS,
    {"name", "The file's name; of a torrent that is ready, as the rest.", .sometimes = true,
     VIEW(name)},
    {"v1", "The info hash of version 1.", .sometimes = true, VIEW(v1)},
    {"v2", "The info hash of version 2.", .sometimes = true, VIEW(v2)},
    {"web_seed", "Where web seeds fetch the object.", .sometimes = true, VIEW(web_seed)},
    {"magnet", "The magnet link.", .sometimes = true, VIEW(magnet)},
    {0},
};

static const struct rest_row torrent_rows[] = {
    {HTTP_GET, "/api/v1/torrents", REST_ADMIN, "Torrents of objects, by id.", torrent_list,
     .needs = needs_torrents, .list = "torrents", .page_usual = PAGE_USUAL, .page_max = PAGE_MAX,
     .item = sizeof(struct torrent_view), .items = REST_FIELDS(TORRENT_FIELDS)},
    {HTTP_POST, "/api/v1/torrents", REST_ADMIN,
     "Make a torrent of an object. 202: its pieces are being hashed in the background.",
     torrent_create, .needs = needs_torrents, .status = 201, .other_status = 202,
     .in = sizeof(struct torrent_form), .out = sizeof(struct torrent_view),
     .body = REST_FIELDS(
         {"bucket", "The object's bucket.", .required = true, FORM(bucket)},
         {"key", "The object's key.", .required = true, .min = 1, .max = OBJECT_KEY_MAX, FORM(key)},
         {"version", "The object's version; left out: the latest.", FORM(version)},
         {"v", "The kind of torrent: 1, 2 or hybrid.", FORM(kind)},
         {"passkey", "A passkey for the announce addresses.", .secret = true, FORM(passkey)}),
     .answer = torrent_fields},
    {HTTP_GET, "/api/v1/torrents/{torrent}", REST_ADMIN, "One torrent, with its magnet link.",
     torrent_show, .needs = needs_torrents, .in_path = torrent_path, .query = torrent_query,
     .out = sizeof(struct torrent_view), .answer = torrent_fields},
    {HTTP_GET, "/api/v1/torrents/{torrent}/file", REST_ADMIN, "The torrent file.", torrent_file,
     .needs = needs_torrents, .in_path = torrent_path, .query = torrent_query,
     .media = "application/x-bittorrent"},
    {HTTP_DELETE, "/api/v1/torrents/{torrent}", REST_ADMIN,
     "Forget the torrent's hashes and take it off the tracker; the object stays.", torrent_remove,
     .needs = needs_torrents, .status = 204, .in_path = torrent_path},
};
const struct rest_table swarm_object_routes = {REST_ROWS(torrent_rows)};

static int needs_torrents(struct rest_call *c, struct err *err)
{
    const struct swarm_room *room = c->ctx;

    return room->torrents ? 0
                          : err_set(err, ERR_UNSUPPORTED,
                                    "this weir makes no torrents: tracker.http and tracker.udp "
                                    "are off");
}

/* Converts an S3 error code of torrents_write() to the general error code. */
static int torrent_plain_code(int code)
{
    static const struct {
        int s3, code;
    } table[] = {
        {S3_SLOW_DOWN, ERR_BUSY},
        {S3_INVALID_ARGUMENT, ERR_INVALID},
        {S3_INVALID_REQUEST, ERR_INVALID},
    };

    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        if (table[i].s3 == code)
            return table[i].code;
    return code;
}

/* --- answers --- */

static void torrent_view_hashes(struct torrent_view *v)
{
    v->hash_list = v->hashes;
    for (int i = 0; i < TORRENT_KINDS; i++) {
        struct str rest = v->row.hashes[i], hash;
        while (v->hash_count < ARRAY_SIZE(v->hashes) && str_token(&rest, " ", &hash))
            v->hashes[v->hash_count++] = hash;
    }
}

/* Fills in the view of a torrent. It must not move afterwards. */
static void torrent_view_init(struct torrent_view *v, const struct torrent_row *row)
{
    *v = (struct torrent_view){.row = *row,
                               .state = row->ready ? "ready" : "hashing",
                               .percent = row->size ? row->done * 100 / row->size : 100,
                               .made_ms = row->made_s * MS_PER_S};
    torrent_view_hashes(v);
}

/* Returns the text for a member that the answer has, even if the text is empty. */
static struct str torrent_shown(struct str text)
{
    return text.p ? text : STR("");
}

/* Answers with a torrent. `answer` NULL: the object is being hashed. */
static int torrent_give(struct rest_call *c, const struct torrent_row *row,
                        const struct torrent_answer *answer, struct str url)
{
    struct torrent_view v;

    torrent_view_init(&v, row);
    if (answer) {
        v.name = torrent_shown(answer->name);
        v.v1 = torrent_shown(answer->v1);
        v.v2 = torrent_shown(answer->v2);
        v.web_seed = torrent_shown(url);
        v.magnet = torrent_shown(answer->magnet);
    }
    return rest_give(c, &v);
}

static int torrent_list(struct rest_call *c, struct err *err)
{
    const struct swarm_room *room = c->ctx;
    struct torrent_row *rows = NULL;
    size_t count = 0;
    int code =
        torrents_list(room->torrents, c->arena, rest_after(c), rest_wanted(c), &rows, &count, err);

    for (size_t i = 0; code == 0 && i < count; i++) {
        struct torrent_view view;
        torrent_view_init(&view, &rows[i]);
        rest_add(c, rows[i].position, &view);
    }
    return code;
}

/* --- addresses --- */

/* Returns the public URL of the S3 endpoint; empty: this process does not know it. */
static struct str torrent_s3_base(const struct rest_call *c, struct str host)
{
    const struct swarm_room *room = c->ctx;
    const struct conf *conf = room->services->conf;
    char text[SOCK_ADDR_TEXT];
    struct sock_addr addr;

    if (*conf->s3.url || !room->services->s3)
        return str_z(conf->s3.url);
    http_server_address(room->services->s3, &addr);
    sock_addr_text(&addr, text);
    struct str own = str_z(text), all = STR("0.0.0.0:"), all6 = STR("[::]:");
    struct str port = str_starts(own, all)    ? str_skip(own, all.len - 1)
                      : str_starts(own, all6) ? str_skip(own, all6.len - 1)
                                              : STR_EMPTY;
    if (port.len)
        own = arena_fmt(c->arena, STR_FMT STR_FMT, STR_ARG(host), STR_ARG(port));
    return arena_fmt(c->arena, "%s://" STR_FMT, *conf->s3.tls.cert ? "https" : "http",
                     STR_ARG(own));
}

/* Fills in the host and the object's URL. The URL names the version of the object if it has one. */
static void torrent_fill_addresses(struct torrent_ask *ask, const struct rest_call *c,
                                   const struct torrent_place *at)
{
    struct torrent_place place = *at;

    ask->host = torrent_host(http_header(http_request_head(c->req), "host"));
    struct str base = torrent_s3_base(c, ask->host);
    if (str_eq(at->version, STR("null")))
        place.version = STR_EMPTY;
    if (base.len)
        ask->url = torrent_object_url(c->arena, base, &place);
}

/* --- making a torrent --- */

/* The state of a REST call that makes or shows a torrent. */
struct creation {
    struct torrent_ask ask;
    struct torrent_answer answer;
    struct get_result got;
    struct torrent_row row;
};

static void creation_release(struct creation *x)
{
    if (x->ask.bucket)
        x->ask.bucket->ops->unref(x->ask.bucket);
    buf_release(&x->answer.file);
}

static int creation_look(struct creation *x, const struct rest_call *c, struct err *err)
{
    static const struct object_conditions none;
    const struct torrent_form *in = rest_in(c, struct torrent_form);
    const struct swarm_room *room = c->ctx;
    int code = route_bucket(room->services->routes, STR_EMPTY, in->bucket, &x->ask.bucket, err);
    struct bucket *b = x->ask.bucket;

    if (code < 0)
        return code;
    code = b->ops->head(b, c->arena, in->key, in->version, &none, &x->got, err);
    x->got.info.key = in->key;
    x->ask.info = &x->got.info;
    x->ask.kind = in->kind;
    x->ask.passkey = in->passkey;
    x->ask.brings_back = true;
    return code == ERR_NOT_FOUND ? err_set(err, code, "there is no such object") : code;
}

/* Makes the torrent of an object. ERR_BUSY: the object is being hashed; then x->row tells how many
 * bytes are hashed, unless the size in x->row is 0. */
static int creation_make(struct creation *x, const struct rest_call *c, struct err *err)
{
    const struct swarm_room *room = c->ctx;
    int code = creation_look(x, c, err);

    if (code < 0)
        return code;
    struct torrent_place at = {x->ask.bucket->name, x->got.info.key, x->got.info.version};
    torrent_fill_addresses(&x->ask, c, &at);
    code = torrent_plain_code(torrents_write(room->torrents, c->arena, &x->ask, &x->answer, err));
    if (code == 0 || code == ERR_BUSY) {
        struct torrent_id id = {bucket_home(x->ask.bucket)->name, at.bucket, at.key, at.version};
        enum torrent_kind kind;
        int found = torrents_find(room->torrents, c->arena, torrent_member(c->arena, &id), &x->row,
                                  &kind, err);
        code = found < 0 && code == 0 ? found : code;
    }
    return code;
}

static int torrent_create(struct rest_call *c, struct err *err)
{
    struct creation x = {0};
    int code = creation_make(&x, c, err);
    bool hashing = code == ERR_BUSY && x.row.size;

    if (code == 0 || hashing) {
        log_info(http_request_log(c->req), "torrent.created", log_s("bucket", x.row.bucket),
                 log_s("key", x.row.key));
        rest_status(c, hashing ? 202 : 201);
        code = torrent_give(c, &x.row, hashing ? NULL : &x.answer, x.ask.url);
    }
    creation_release(&x);
    return code;
}

/* --- showing a torrent --- */

/* Finds a torrent by an info hash or an id. The query parameter `v` chooses the kind of torrent (1,
 * 2 or hybrid). Without `v` an info hash chooses the kind that it belongs to, and an id the first
 * kind that was made. */
static int creation_find(struct creation *x, const struct rest_call *c, struct err *err)
{
    const struct swarm_room *room = c->ctx;
    enum torrent_kind kind;
    int code =
        torrents_find(room->torrents, c->arena, rest_text(c, "torrent"), &x->row, &kind, err);

    if (code < 0)
        return code;
    x->ask.passkey = rest_text(c, "passkey");
    x->ask.kind = rest_given(c, "v") ? rest_text(c, "v") : str_z(torrent_kind_names[kind]);
    x->got.info = (struct object_info){.key = x->row.key};
    x->ask.info = &x->got.info;
    torrent_fill_addresses(&x->ask, c,
                           &(struct torrent_place){x->row.bucket, x->row.key, x->row.version});
    if (x->row.ready)
        code = torrents_show(room->torrents, c->arena, &x->row, &x->ask, &x->answer, err);
    return code;
}

static int torrent_show(struct rest_call *c, struct err *err)
{
    struct creation x = {0};
    int code = creation_find(&x, c, err);

    if (code == 0)
        code = torrent_give(c, &x.row, x.row.ready ? &x.answer : NULL, x.ask.url);
    creation_release(&x);
    return code;
}

static int torrent_file(struct rest_call *c, struct err *err)
{
    struct creation x = {0};
    int code = creation_find(&x, c, err);

    if (code == 0 && !x.row.ready)
        code = err_set(err, ERR_BUSY, "the object is still being hashed");
    if (code == 0)
        code = rest_send(c, buf_str(&x.answer.file));
    creation_release(&x);
    return code;
}

static int torrent_remove(struct rest_call *c, struct err *err)
{
    const struct swarm_room *room = c->ctx;
    struct torrent_row row;
    enum torrent_kind kind;
    int code = torrents_find(room->torrents, c->arena, rest_text(c, "torrent"), &row, &kind, err);

    if (code == 0)
        code = torrents_remove(room->torrents, c->arena, &row, err);
    if (code == 0)
        log_info(http_request_log(c->req), "torrent.removed", log_s("bucket", row.bucket),
                 log_s("key", row.key));
    return code;
}
