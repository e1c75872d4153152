/* Notifications of the peer beyond a bucket's document "notification": topics, and Ceph's way to
 * remove one entry from that document. */
#include "object/remote/remote_int.h"

enum { TOPIC_ANSWER_MAX = 64 * 1024, TOPIC_FORM_MAX = 16 * 1024 };

static void topic_attribute(struct buf *form, int number, const char *name, struct str value)
{
    buf_appendf(form, "&Attributes.entry.%d.key=%s&Attributes.entry.%d.value=", number, name,
                number);
    url_encode(form, value, false);
}

/* Writes the form that makes a topic. "persistent": the peer keeps an event that it cannot deliver,
 * and tries again later. */
static void topic_form(struct buf *form, const struct remote_topic *t)
{
    buf_append_z(form, "Action=CreateTopic&Version=2010-03-31&Name=");
    url_encode(form, t->name, false);
    topic_attribute(form, 1, "push-endpoint", t->endpoint);
    topic_attribute(form, 2, "persistent", STR("true"));
}

static struct xml_node *topic_element(struct xml_node *node, const char *name)
{
    for (struct xml_node *c = node ? node->children : NULL; c; c = c->next) {
        struct xml_node *found = str_eq(c->name, str_z(name)) ? c : topic_element(c, name);
        if (found)
            return found;
    }
    return NULL;
}

static int topic_read(struct str *arn, struct arena *a, struct ask *q, struct err *err)
{
    struct xml_node *root = NULL, *node;
    struct str text;
    int code = ask_text(q, a, TOPIC_ANSWER_MAX, &text, err);

    if (code < 0)
        return code;
    if (xml_read(&root, a, text, NULL) < 0)
        return err_set(err, ERR_PEER, "the storage's answer about the topic cannot be read");
    node = topic_element(root, "TopicArn");
    *arn = node ? node->text : STR_EMPTY;
    return arn->len ? 0 : err_set(err, ERR_PEER, "the storage names no topic");
}

/* Makes the topic by SNS's CreateTopic, which Ceph has too. */
int remote_make_topic(struct storage *s, struct arena *a, const struct remote_topic *t,
                      struct str *arn, struct err *err)
{
    struct buf form = BUF_INIT(TOPIC_FORM_MAX);
    struct ask q;

    topic_form(&form, t);
    ask_init(&q, remote_of(s), t->user, "POST");
    ask_header(&q, "Content-Type", STR("application/x-www-form-urlencoded"));
    ask_bytes(&q, buf_str(&form));
    q.request.idempotent = true;
    int code = buf_error(&form);
    if (code == 0)
        code = ask_send(&q, err);
    if (code < 0 && q.head)
        code = err_set(err, q.head->status == 503 ? ERR_UNAVAILABLE : ERR_UNSUPPORTED,
                       "the storage makes no topic for notifications: it answers %d; give notify "
                       "the ARN of a target that it has",
                       q.head->status);
    else if (code == 0)
        code = topic_read(arn, a, &q, err);
    ask_release(&q);
    secure_zero(form.p, form.cap);
    buf_release(&form);
    return code;
}

int remote_drop_notification(struct storage *s, struct str user, struct str bucket, struct str id,
                             struct err *err)
{
    struct ask q;

    ask_init(&q, remote_of(s), user, "DELETE");
    ask_name(&q, bucket, STR_EMPTY);
    ask_param(&q, "notification", id);
    return ask_done(&q, err);
}
