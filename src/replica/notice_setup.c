/* Notification configurations of storages. */
#include "replica/notice_setup.h"
#include "object/overlay.h"

#include "base/hash.h"
#include "base/xml.h"
#include "http/upstream.h"
#include "sign/hmac.h"

#include <stdio.h>

enum { DOCUMENT_MAX = 1024 * 1024, ANSWER_MAX = 64 * 1024, EVENTS = 5 };

#define CONFIGURATION "NotificationConfiguration"

/* What is asked for, from much to little: storages refuse a configuration with an event that they
 * do not know. AWS, weir; Ceph from 18 on; everybody. */
static const char *const wanted[][EVENTS] = {
    {"s3:ObjectCreated:*", "s3:ObjectRemoved:*", "s3:ObjectTagging:*", "s3:ObjectAcl:Put",
     "s3:LifecycleExpiration:*"},
    {"s3:ObjectCreated:*", "s3:ObjectRemoved:*", "s3:ObjectLifecycle:Expiration:*",
     "s3:ObjectSynced:*"},
    {"s3:ObjectCreated:*", "s3:ObjectRemoved:*"},
};

/* Kinds of targets, by what the ARN says. */
static const struct {
    const char *service;
    const char *element, *member;
} kinds[] = {
    {":sqs:", "QueueConfiguration", "Queue"},
    {":lambda:", "CloudFunctionConfiguration", "CloudFunction"},
    {"", "TopicConfiguration", "Topic"},
};

static bool is_url(struct str target)
{
    return str_starts(target, STR("http://")) || str_starts(target, STR("https://"));
}

int notice_target_check(struct str target, struct err *err)
{
    struct url url;
    bool plain = target.len <= NOTICE_TARGET_MAX && str_is_utf8(target);

    for (size_t i = 0; i < target.len; i++)
        plain = plain && target.p[i] > ' ' && target.p[i] != 0x7f;
    if (plain && str_starts(target, STR("arn:")))
        return 0;
    if (!plain || !is_url(target) || url_parse(&url, target, NULL) < 0 || !url.host.len ||
        url.query.len)
        return err_set(err, ERR_INVALID,
                       "notify is the address of weir's API as the storage reaches it "
                       "(http://host:port), or the ARN of a target that the storage has");
    return 0;
}

/* Of the entry, and of the topic: another weir has another. */
static void name_entry(struct buf *out, const struct notice_setup *s)
{
    buf_appendf(out, "weir-%016llx", (unsigned long long)hash_xxh3(s->target, 0));
}

/* --- topics --- */

static void add_attribute(struct buf *form, int number, const char *name, struct str value)
{
    buf_appendf(form, "&Attributes.entry.%d.key=%s&Attributes.entry.%d.value=", number, name,
                number);
    url_encode(form, value, false);
}

/* Persistent: what cannot be told now is told later. */
static void write_form(struct buf *form, const struct notice_setup *s)
{
    struct buf endpoint = BUF_INIT(4 * KIB), name = BUF_INIT(64);
    struct str base = s->target;

    while (base.len && base.p[base.len - 1] == '/')
        base.len--;
    buf_append_str(&endpoint, base);
    buf_append_z(&endpoint, "/notify/");
    url_encode(&endpoint, s->storage->name, false);
    buf_append_z(&endpoint, "?token=");
    buf_append_str(&endpoint, s->token);
    name_entry(&name, s);
    buf_append_z(form, "Action=CreateTopic&Version=2010-03-31&Name=");
    url_encode(form, buf_str(&name), false);
    add_attribute(form, 1, "push-endpoint", buf_str(&endpoint));
    add_attribute(form, 2, "persistent", STR("true"));
    buf_release(&endpoint);
    buf_release(&name);
}

static struct xml_node *find(struct xml_node *node, const char *name)
{
    for (struct xml_node *c = node ? node->children : NULL; c; c = c->next) {
        struct xml_node *found = str_eq(c->name, str_z(name)) ? c : find(c, name);
        if (found)
            return found;
    }
    return NULL;
}

static int read_arn(struct str *out, struct arena *a, struct exchange *e, struct err *err)
{
    struct buf text = BUF_INIT(ANSWER_MAX);
    struct xml_node *root = NULL, *arn;
    int status = exchange_head(e)->status;
    int code = reader_read_all(exchange_body(e), &text, err);

    if (code == 0 && status != 200)
        code = err_set(err, status == 503 ? ERR_UNAVAILABLE : ERR_UNSUPPORTED,
                       "the storage makes no topic for notifications: it answers %d; give notify "
                       "the ARN of a target that it has",
                       status);
    if (code == 0 && xml_read(&root, a, buf_str(&text), NULL) < 0)
        code = err_set(err, ERR_PEER, "what the storage says of the topic cannot be read");
    if (code == 0) {
        arn = find(root, "TopicArn");
        *out = arn ? arn->text : STR_EMPTY;
        if (!out->len)
            code = err_set(err, ERR_PEER, "the storage names no topic");
    }
    buf_release(&text);
    return code;
}

/* SNS's CreateTopic, as Ceph has it: one that is there is changed. */
static int make_topic(struct str *arn, struct arena *a, const struct notice_setup *s,
                      struct err *err)
{
    static const struct http_header headers[] = {
        {{"Content-Type", 12}, {"application/x-www-form-urlencoded", 33}}};
    struct buf form = BUF_INIT(16 * KIB);
    unsigned char digest[SHA256_LEN];
    struct str_reader body;
    struct exchange *e = NULL;

    write_form(&form, s);
    sha256(buf_str(&form), digest);
    str_reader_init(&body, buf_str(&form));
    struct forward_request r = {.user = s->user,
                                .method = STR("POST"),
                                .path = STR("/"),
                                .headers = headers,
                                .header_count = ARRAY_SIZE(headers),
                                .body = &body.reader,
                                .body_len = form.len,
                                .sha256 = arena_hex(a, digest, sizeof(digest)),
                                .idempotent = true};
    int code = buf_error(&form);
    if (code == 0)
        code = s->storage->ops->forward(s->storage, &r, &e, err);
    if (code == 0)
        code = read_arn(arn, a, e, err);
    exchange_close(e);
    secure_zero(form.p, form.cap);
    buf_release(&form);
    return code;
}

/* --- documents --- */

static bool find_text(struct str in, const char *text, size_t *at)
{
    const char *found = in.len ? memmem(in.p, in.len, text, strlen(text)) : NULL;

    *at = found ? (size_t)(found - in.p) : 0;
    return found != NULL;
}

/* Where the entry around `at` begins and ends. Entries do not nest. */
static bool entry_around(struct str xml, size_t at, size_t *begin, size_t *end)
{
    char open[40], close[40];

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        size_t from = 0, next, behind;
        bool before = false;
        snprintf(open, sizeof(open), "<%s>", kinds[i].element);
        snprintf(close, sizeof(close), "</%s>", kinds[i].element);
        while (find_text(str_skip(xml, from), open, &next) && from + next < at) {
            before = true;
            *begin = from + next;
            from = *begin + 1;
        }
        if (before && find_text(str_skip(xml, *begin), close, &behind) && *begin + behind > at) {
            *end = *begin + behind + strlen(close);
            return true;
        }
    }
    return false;
}

static int without(struct buf *out, struct str xml, struct str id, struct err *err)
{
    struct buf text = BUF_INIT(256);
    size_t at, begin, end;

    buf_appendf(&text, "<Id>" STR_FMT "</Id>", STR_ARG(id));
    while (find_text(xml, text.p, &at)) {
        if (!entry_around(xml, at, &begin, &end)) {
            buf_release(&text);
            return err_set(err, ERR_PEER, "the bucket's notification configuration cannot be read");
        }
        buf_append(out, xml.p, begin);
        xml = str_skip(xml, end);
    }
    buf_append_str(out, xml);
    buf_release(&text);
    return 0;
}

/* As text, so that what others have set there stays as it is, known here or not. */
int notice_splice(struct buf *out, struct str xml, struct str id, struct str entry, struct err *err)
{
    struct buf rest = BUF_INIT(DOCUMENT_MAX);
    size_t at;
    int code = without(&rest, xml, id, err);

    if (code == 0 && find_text(buf_str(&rest), "</" CONFIGURATION ">", &at)) {
        buf_append(out, rest.p, at);
        buf_append_str(out, entry);
        buf_append_str(out, str_skip(buf_str(&rest), at));
    } else if (code == 0 && (!rest.len || find_text(buf_str(&rest), "<" CONFIGURATION, &at))) {
        buf_append_z(out, "<" CONFIGURATION " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
        buf_append_str(out, entry);
        buf_append_z(out, "</" CONFIGURATION ">");
    } else if (code == 0) {
        code = err_set(err, ERR_PEER, "the bucket's notification configuration cannot be read");
    }
    buf_release(&rest);
    return code < 0 ? code : buf_error(out);
}

static void write_entry(struct buf *out, struct str id, struct str arn, const char *const *events)
{
    size_t kind = 0, at;

    while (*kinds[kind].service && !find_text(arn, kinds[kind].service, &at))
        kind++;
    xml_open(out, kinds[kind].element);
    xml_element(out, "Id", id);
    xml_element(out, kinds[kind].member, arn);
    for (size_t i = 0; i < EVENTS && events[i]; i++)
        xml_element(out, "Event", str_z(events[i]));
    xml_close(out, kinds[kind].element);
}

/* --- both --- */

struct configuring {
    struct bucket *bucket;
    struct arena a;
    struct str before; /* the document as it is */
    struct buf id;
};

static int begin(struct configuring *c, const struct notice_setup *s, struct err *err)
{
    *c = (struct configuring){.a = ARENA_INIT(8 * MIB), .id = BUF_INIT(64)};
    name_entry(&c->id, s);
    int code = storage_open_bucket(&c->bucket, s->storage, s->user, s->bucket, err);

    if (code == 0)
        code = c->bucket->ops->get_document(c->bucket, &c->a, "notification", &c->before, err);
    return code == ERR_NOT_FOUND ? 0 : code;
}

static void end(struct configuring *c)
{
    if (c->bucket)
        c->bucket->ops->unref(c->bucket);
    buf_release(&c->id);
    arena_release(&c->a);
}

static int put(struct configuring *c, struct str entry, struct err *err)
{
    struct buf document = BUF_INIT(DOCUMENT_MAX);
    int code = notice_splice(&document, c->before, buf_str(&c->id), entry, err);

    if (code == 0)
        code = c->bucket->ops->set_document(c->bucket, "notification", buf_str(&document), err);
    buf_release(&document);
    return code;
}

static int put_events(struct configuring *c, struct str arn, struct err *err)
{
    int code = ERR_INVALID;

    for (size_t i = 0; i < ARRAY_SIZE(wanted) && code == ERR_INVALID; i++) {
        struct buf entry = BUF_INIT(16 * KIB);
        write_entry(&entry, buf_str(&c->id), arn, wanted[i]);
        code = put(c, buf_str(&entry), err);
        buf_release(&entry);
    }
    return code;
}

int notice_setup(const struct notice_setup *s, struct err *err)
{
    struct configuring c;
    struct str arn = s->target;
    int code = begin(&c, s, err);

    if (code == 0 && is_url(s->target))
        code = make_topic(&arn, &c.a, s, err);
    if (code == 0)
        code = put_events(&c, arn, err);
    end(&c);
    return code;
}

/* Ceph's own way: there a configuration adds to what is set and takes nothing away, and one without
 * entries is refused (16). */
static int drop_by_id(const struct configuring *c, const struct notice_setup *s, struct err *err)
{
    struct buf path = BUF_INIT(HTTP_MAX_HEAD), query = BUF_INIT(256);
    struct exchange *e = NULL;

    buf_append_char(&path, '/');
    url_encode(&path, s->bucket, false);
    buf_append_z(&query, "notification=");
    buf_append_str(&query, buf_str(&c->id));
    struct forward_request r = {.user = s->user,
                                .method = STR("DELETE"),
                                .path = buf_str(&path),
                                .query = buf_str(&query),
                                .idempotent = true};
    int code = s->storage->ops->forward(s->storage, &r, &e, err);
    if (code == 0 && exchange_head(e)->status / 100 != 2)
        code = err_set(err, ERR_PEER,
                       "storage " STR_FMT ", DELETE " STR_FMT "?notification as user " STR_FMT
                       ": the storage answers %d",
                       STR_ARG(s->storage->name), STR_ARG(buf_str(&path)), STR_ARG(s->user),
                       exchange_head(e)->status);
    exchange_close(e);
    buf_release(&path);
    buf_release(&query);
    return code;
}

static bool has_entry(const struct configuring *c)
{
    size_t at;

    return find_text(c->before, c->id.p, &at);
}

int notice_setup_undo(const struct notice_setup *s, struct err *err)
{
    struct configuring c;
    int code = begin(&c, s, err);
    bool there = code == 0 && has_entry(&c);

    if (there)
        code = put(&c, STR_EMPTY, err);
    end(&c);
    if (!there || (code < 0 && code != ERR_INVALID))
        return code;
    code = begin(&c, s, err);
    if (code == 0 && has_entry(&c))
        code = drop_by_id(&c, s, err);
    end(&c);
    return code;
}
