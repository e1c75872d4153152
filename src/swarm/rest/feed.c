/* Routes: the tracker's feed of records and its consumers; the check of the tracker's invariants.
 */
#include "swarm/rest/rest.h"
#include "base/clock.h"
#include "swarm/feed.h"

enum { READ_USUAL = 1000, READ_MAX = 10000, NAME_MAX_LEN = 64, FINDINGS_MAX = 1000 };

static rest_fn consumer_list, consumer_add, consumer_remove, delta_list, delta_acknowledge,
    swarm_check;

struct consumer_form {
    struct str name;
    uint64_t number; /* of the last record to acknowledge */
};

struct delta_view {
    struct delta delta;
    struct str peer_id;
    int64_t at_ms;
};

static const struct rest_field consumer_path[] = {
    {"name", "The consumer's name.", REST_AT(struct consumer_form, name)}, {0}};

#define DELTA(member) REST_AT(struct delta_view, delta.member)

static const struct rest_field delta_items[] = {
    {"number", "The record's number; numbers grow.", REST_INTEGER, DELTA(number)},
    {"user", "The id of the tracker's user; 0: the tracker is not private.", REST_INTEGER,
     DELTA(user_id)},
    {"torrent", "The id of the torrent.", REST_INTEGER, DELTA(torrent_id)},
    {"peer_id", "The peer's id, in hexadecimal digits.", REST_AT(struct delta_view, peer_id)},
    {"at", "When the peer announced.", REST_TIME, REST_AT(struct delta_view, at_ms)},
    {"created", "Is the peer new?", REST_BOOLEAN, DELTA(created)},
    {"snatched", "Did the peer complete its download?", REST_BOOLEAN, DELTA(snatched)},
    {"stopped", "Did the peer leave?", REST_BOOLEAN, DELTA(stopped)},
    {"seeder", "Does the peer have everything?", REST_BOOLEAN, DELTA(seeder)},
    {"left", "Bytes that the peer lacks.", REST_INTEGER, DELTA(left)},
    {"raw_uploaded", "Bytes uploaded since the announce before.", REST_INTEGER,
     DELTA(raw_uploaded)},
    {"raw_downloaded", "Bytes downloaded since the announce before.", REST_INTEGER,
     DELTA(raw_downloaded)},
    {"uploaded", "raw_uploaded times the multipliers.", REST_NUMBER, DELTA(uploaded)},
    {"downloaded", "raw_downloaded times the multipliers.", REST_NUMBER, DELTA(downloaded)},
    {0},
};

#define CONSUMER_MISSING "there is no such consumer"

static const struct rest_row feed_rows[] = {
    {HTTP_POST, "/api/v1/swarm/check", REST_ADMIN,
     "Look in the store for what the tracker's invariants forbid.", swarm_check,
     .answer = REST_FIELDS({"findings", "The first 1000 findings.", REST_OBJECTS,
                            .members = REST_FIELDS({"invariant", "The invariant that is violated."},
                                                   {"key", "The key of the store, escaped."})},
                           {"count", "How many findings there are.", REST_INTEGER})},
    {HTTP_GET, "/api/v1/swarm/feed", REST_ADMIN, "Consumers of the feed of deltas.", consumer_list,
     .list = "consumers", .by_place = true, .item = sizeof(struct feed_consumer),
     .items = REST_FIELDS({"name", "The consumer's name.", REST_AT(struct feed_consumer, name)},
                          {"acknowledged", "The last record that it acknowledged.", REST_INTEGER,
                           REST_AT(struct feed_consumer, acknowledged)},
                          {"waiting", "Records that wait for it.", REST_INTEGER,
                           REST_AT(struct feed_consumer, waiting)})},
    {HTTP_POST, "/api/v1/swarm/feed", REST_ADMIN,
     "Add a consumer: it gets the records that come from now on.", consumer_add, .status = 201,
     .in = sizeof(struct consumer_form), .out = sizeof(struct consumer_form),
     .body = REST_FIELDS({"name", "The consumer's name.", .required = true, .min = 1,
                          .max = NAME_MAX_LEN, REST_AT(struct consumer_form, name)}),
     .answer = consumer_path},
    {HTTP_DELETE, "/api/v1/swarm/feed/{name}", REST_ADMIN,
     "Remove a consumer, and the records that waited for it alone.", consumer_remove, .status = 204,
     .in_path = consumer_path, .missing = CONSUMER_MISSING},
    {HTTP_GET, "/api/v1/swarm/feed/{name}", REST_ADMIN,
     "Records that the consumer has not acknowledged, the oldest first.", delta_list,
     .in_path = consumer_path, .list = "records", .by_place = true, .page_usual = READ_USUAL,
     .page_max = READ_MAX, .item = sizeof(struct delta_view), .items = delta_items,
     .missing = CONSUMER_MISSING},
    {HTTP_POST, "/api/v1/swarm/feed/{name}/acknowledge", REST_ADMIN,
     "Acknowledge all records up to a number.", delta_acknowledge, .status = 204,
     .in_path = consumer_path, .in = sizeof(struct consumer_form),
     .body = REST_FIELDS({"number", "The number of the last record to acknowledge.", REST_INTEGER,
                          .required = true, .min = 0, .max = INT64_MAX,
                          REST_AT(struct consumer_form, number)}),
     .missing = CONSUMER_MISSING},
};
const struct rest_table swarm_feed_routes = {REST_ROWS(feed_rows)};

/* --- consumers --- */

static int consumer_list(struct rest_call *c, struct err *err)
{
    struct feed_consumer *list;
    size_t count = 0;
    int code = feed_consumers(swarm_models(c), c->arena, &list, &count, err);

    for (size_t i = 0; code == 0 && i < count; i++)
        rest_add(c, STR_EMPTY, &list[i]);
    return code;
}

static int consumer_add(struct rest_call *c, struct err *err)
{
    struct str name = rest_text(c, "name");

    if (!str_is_utf8(name))
        return err_set(err, ERR_INVALID, "name must be UTF-8");
    int code = feed_add_consumer(swarm_models(c), name, err);
    if (code == ERR_EXISTS)
        return err_set(err, code, "there is already a consumer of this name");
    if (code < 0)
        return code;
    log_info(http_request_log(c->req), "swarm.consumer_added", log_s("consumer", name));
    return rest_give(c, rest_in(c, struct consumer_form));
}

static int consumer_remove(struct rest_call *c, struct err *err)
{
    struct str name = rest_text(c, "name");
    int code = feed_remove_consumer(swarm_models(c), name, err);

    if (code == 0)
        log_info(http_request_log(c->req), "swarm.consumer_removed", log_s("consumer", name));
    return code;
}

/* --- records --- */

static int delta_list(struct rest_call *c, struct err *err)
{
    struct delta *list;
    size_t count = 0;
    struct feed_page page = {rest_skip(c), rest_wanted(c)};
    int code = feed_read(swarm_models(c), c->arena, rest_text(c, "name"), page, &list, &count, err);

    for (size_t i = 0; code == 0 && i < count; i++)
        rest_add(c, STR_EMPTY,
                 (&(struct delta_view){list[i], arena_hex(c->arena, list[i].peer_id, PEER_ID_LEN),
                                       list[i].at * MS_PER_S}));
    return code;
}

static int delta_acknowledge(struct rest_call *c, struct err *err)
{
    const struct consumer_form *in = rest_in(c, struct consumer_form);
    int code = feed_acknowledge(swarm_models(c), in->name, in->number, err);

    return code == ERR_RANGE ? err_set(err, ERR_INVALID, "there is no record of this number yet")
                             : code;
}

/* --- the invariants --- */

struct findings {
    struct json_out *w;
    uint64_t count;
};

/* Writes the key of a finding, with raw bytes escaped. The key of a user contains the passkey,
 * which is secret, so only the beginning of such a key is shown. */
static void finding_write_key(struct json_out *w, struct str key)
{
    enum { SHOWN = 4 };
    struct buf text = BUF_INIT(4096);
    ptrdiff_t user = str_find(key, STR("user:"));
    struct str shown = user >= 0 ? str_head(key, (size_t)user + 5 + SHOWN) : key;

    for (size_t i = 0; i < shown.len; i++) {
        unsigned char c = (unsigned char)shown.p[i];
        if (c >= ' ' && c < 0x7f && c != '\\')
            buf_append_char(&text, (char)c);
        else
            buf_appendf(&text, "\\x%02x", c);
    }
    if (shown.len < key.len)
        buf_append_z(&text, "...");
    json_out_member_str(w, "key", buf_str(&text));
    buf_release(&text);
}

static void finding_write(void *ctx, const char *invariant, struct str key)
{
    struct findings *f = ctx;

    if (f->count++ >= FINDINGS_MAX)
        return;
    json_out_open(f->w, '{');
    json_out_member_str(f->w, "invariant", str_z(invariant));
    finding_write_key(f->w, key);
    json_out_close(f->w, '}');
}

static int swarm_check(struct rest_call *c, struct err *err)
{
    struct findings findings = {.w = c->w};
    int code;

    json_out_key(c->w, "findings");
    json_out_open(c->w, '[');
    code = cache_check(swarm_models(c), finding_write, &findings, err);
    json_out_close(c->w, ']');
    json_out_member_u64(c->w, "count", findings.count);
    return code;
}
