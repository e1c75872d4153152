/* Changes the notification configurations of storages. */
#include "replica/notice_setup.h"
#include "object/overlay.h"

#include "base/hash.h"
#include "base/xml.h"
#include "object/remote/remote.h"

#include <stdio.h>

enum { DOCUMENT_MAX = 1024 * 1024, EVENTS = 5 };

#define CONFIGURATION "NotificationConfiguration"

/* Lists of events to ask a storage for. The longest list is tried first: a storage refuses a
 * configuration with an event that it does not know, and then the next list is tried. The first
 * list is for AWS and weir, the second for Ceph from 18 on, the last for all other storages. */
static const char *const wanted[][EVENTS] = {
    {"s3:ObjectCreated:*", "s3:ObjectRemoved:*", "s3:ObjectTagging:*", "s3:ObjectAcl:Put",
     "s3:LifecycleExpiration:*"},
    {"s3:ObjectCreated:*", "s3:ObjectRemoved:*", "s3:ObjectLifecycle:Expiration:*",
     "s3:ObjectSynced:*"},
    {"s3:ObjectCreated:*", "s3:ObjectRemoved:*"},
};

/* Kinds of notification targets, found by the service that the ARN names. */
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

/* Writes the name of the entry and of the topic. The name is a hash of the target, so that entries
 * of different weirs have different names. */
static void name_entry(struct buf *out, const struct notice_setup *s)
{
    buf_appendf(out, "weir-%016llx", (unsigned long long)hash_xxh3(s->target, 0));
}

/* --- topics --- */

/* Writes the address that the storage posts events to. */
static void write_endpoint(struct buf *out, const struct notice_setup *s)
{
    struct str base = s->target;

    while (base.len && base.p[base.len - 1] == '/')
        base.len--;
    buf_append_str(out, base);
    buf_append_z(out, "/notify/");
    url_encode(out, s->storage->name, false);
    buf_append_z(out, "?token=");
    buf_append_str(out, s->token);
}

static int make_topic(struct str *arn, struct arena *a, const struct notice_setup *s,
                      struct err *err)
{
    struct buf endpoint = BUF_INIT(4 * KIB), name = BUF_INIT(64);

    write_endpoint(&endpoint, s);
    name_entry(&name, s);
    struct remote_topic topic = {s->user, buf_str(&name), buf_str(&endpoint)};
    int code = buf_error(&endpoint);
    if (code == 0)
        code = remote_make_topic(s->storage, a, &topic, arn, err);
    secure_zero(endpoint.p, endpoint.cap);
    buf_release(&endpoint);
    buf_release(&name);
    return code;
}

/* --- the notification configuration as XML --- */

static bool find_text(struct str in, const char *text, size_t *at)
{
    const char *found = in.len ? memmem(in.p, in.len, text, strlen(text)) : NULL;

    *at = found ? (size_t)(found - in.p) : 0;
    return found != NULL;
}

/* Finds where the entry that contains `at` begins and ends. Entries do not nest. Returns false when
 * no entry contains `at`. */
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

/* Changes the document as text, so that entries that weir did not make stay as they are. */
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

static void notice_write_entry(struct buf *out, struct str id, struct str arn,
                               const char *const *events)
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

/* --- setting up and undoing --- */

struct configuring {
    struct bucket *bucket;
    struct arena a;
    struct str before; /* the configuration before the change */
    struct buf id;
};

static int notice_begin(struct configuring *c, const struct notice_setup *s, struct err *err)
{
    *c = (struct configuring){.a = ARENA_INIT(8 * MIB), .id = BUF_INIT(64)};
    name_entry(&c->id, s);
    int code = storage_open_bucket(&c->bucket, s->storage, s->user, s->bucket, err);

    if (code == 0)
        code = c->bucket->ops->get_document(c->bucket, &c->a, "notification", &c->before, err);
    return code == ERR_NOT_FOUND ? 0 : code;
}

static void notice_end(struct configuring *c)
{
    if (c->bucket)
        c->bucket->ops->unref(c->bucket);
    buf_release(&c->id);
    arena_release(&c->a);
}

static int notice_put(struct configuring *c, struct str entry, struct err *err)
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
        notice_write_entry(&entry, buf_str(&c->id), arn, wanted[i]);
        code = notice_put(c, buf_str(&entry), err);
        buf_release(&entry);
    }
    return code;
}

int notice_setup(const struct notice_setup *s, struct err *err)
{
    struct configuring c;
    struct str arn = s->target;
    int code = notice_begin(&c, s, err);

    if (code == 0 && is_url(s->target))
        code = make_topic(&arn, &c.a, s, err);
    if (code == 0)
        code = put_events(&c, arn, err);
    notice_end(&c);
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
    int code = notice_begin(&c, s, err);
    bool there = code == 0 && has_entry(&c);

    if (there)
        code = notice_put(&c, STR_EMPTY, err);
    notice_end(&c);
    if (!there || (code < 0 && code != ERR_INVALID))
        return code;
    code = notice_begin(&c, s, err);
    if (code == 0 && has_entry(&c)) /* Ceph keeps entries that the new document lacks */
        code = remote_drop_notification(s->storage, s->user, s->bucket, buf_str(&c.id), err);
    notice_end(&c);
    return code;
}
