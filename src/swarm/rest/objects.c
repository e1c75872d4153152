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

#define TORRENT_FIELDS                                                                             \
    {"id", "The torrent's id."}, {"storage", "The storage that has the object."},                  \
        {"bucket", "The object's bucket."}, {"key", "The object's key."},                          \
        {"version", "The object's version."}, {"size", "Bytes of the object.", REST_INTEGER},      \
        {"piece_length", "Bytes of a piece.", REST_INTEGER},                                       \
        {"state", "\"hashing\" or \"ready\"."},                                                    \
        {"percent", "How much of the object is hashed.", REST_INTEGER},                            \
        {"made", "When it was made.", REST_TIME},                                                  \
    {                                                                                              \
        "info_hashes", "The info hashes, in hexadecimal digits.", REST_STRINGS                     \
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
    {"name", "The file's name; of a torrent that is ready, as the rest.", .sometimes = true},
    {"v1", "The info hash of version 1.", .sometimes = true},
    {"v2", "The info hash of version 2.", .sometimes = true},
    {"web_seed", "Where web seeds fetch the object.", .sometimes = true},
    {"magnet", "The magnet link.", .sometimes = true},
    {0},
};

static const struct rest_row torrent_rows[] = {
    {HTTP_GET, "/api/v1/torrents", REST_ADMIN, "Torrents of objects, by id.", torrent_list,
     .needs = needs_torrents, .list = "torrents", .page_usual = PAGE_USUAL, .page_max = PAGE_MAX,
     .items = REST_FIELDS(TORRENT_FIELDS)},
    {HTTP_POST, "/api/v1/torrents", REST_ADMIN,
     "Make a torrent of an object. 202: its pieces are being hashed in the background.",
     torrent_create, .needs = needs_torrents, .status = 201, .other_status = 202,
     .body = REST_FIELDS(
         {"bucket", "The object's bucket.", .required = true},
         {"key", "The object's key.", .required = true, .min = 1, .max = OBJECT_KEY_MAX},
         {"version", "The object's version; left out: the latest."},
         {"v", "The kind of torrent: 1, 2 or hybrid."},
         {"passkey", "A passkey for the announce addresses.", .secret = true}),
     .answer = torrent_fields},
    {HTTP_GET, "/api/v1/torrents/{torrent}", REST_ADMIN, "One torrent, with its magnet link.",
     torrent_show, .needs = needs_torrents, .in_path = torrent_path, .query = torrent_query,
     .answer = torrent_fields},
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

static void torrent_row_write_hashes(struct json_out *w, const struct torrent_row *row)
{
    json_out_key(w, "info_hashes");
    json_out_open(w, '[');
    for (int i = 0; i < TORRENT_KINDS; i++) {
        struct str rest = row->hashes[i], hash;
        while (str_token(&rest, " ", &hash))
            json_out_str(w, hash);
    }
    json_out_close(w, ']');
}

static void torrent_row_write(struct json_out *w, const struct torrent_row *row)
{
    json_out_member_str(w, "id", row->position);
    json_out_member_str(w, "storage", row->storage);
    json_out_member_str(w, "bucket", row->bucket);
    json_out_member_str(w, "key", row->key);
    json_out_member_str(w, "version", row->version);
    json_out_member_u64(w, "size", row->size);
    json_out_member_u64(w, "piece_length", row->piece_length);
    json_out_member_str(w, "state", row->ready ? STR("ready") : STR("hashing"));
    json_out_member_u64(w, "percent", row->size ? row->done * 100 / row->size : 100);
    rest_time(w, "made", row->made_s * MS_PER_S);
    torrent_row_write_hashes(w, row);
}

static void torrent_write_answer(struct json_out *w, const struct torrent_answer *answer,
                                 struct str url)
{
    json_out_member_str(w, "name", answer->name);
    json_out_member_str(w, "v1", answer->v1);
    json_out_member_str(w, "v2", answer->v2);
    json_out_member_str(w, "web_seed", url);
    json_out_member_str(w, "magnet", answer->magnet);
}

static int torrent_list(struct rest_call *c, struct err *err)
{
    const struct swarm_room *room = c->ctx;
    struct torrent_row *rows = NULL;
    size_t count = 0;
    int code =
        torrents_list(room->torrents, c->arena, rest_after(c), rest_wanted(c), &rows, &count, err);

    for (size_t i = 0; code == 0 && i < count; i++)
        if (rest_item(c, rows[i].position)) {
            torrent_row_write(c->w, &rows[i]);
            rest_item_end(c);
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
    struct str key = rest_text(c, "key");
    const struct swarm_room *room = c->ctx;
    int code = route_bucket(room->services->routes, STR_EMPTY, rest_text(c, "bucket"),
                            &x->ask.bucket, err);
    struct bucket *b = x->ask.bucket;

    if (code < 0)
        return code;
    code = b->ops->head(b, c->arena, key, rest_text(c, "version"), &none, &x->got, err);
    x->got.info.key = key;
    x->ask.info = &x->got.info;
    x->ask.kind = rest_text(c, "v");
    x->ask.passkey = rest_text(c, "passkey");
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
        torrent_row_write(c->w, &x.row);
        if (!hashing)
            torrent_write_answer(c->w, &x.answer, x.ask.url);
        rest_status(c, hashing ? 202 : 201);
        code = 0;
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

    if (code == 0) {
        torrent_row_write(c->w, &x.row);
        if (x.row.ready)
            torrent_write_answer(c->w, &x.answer, x.ask.url);
    }
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
