/* Access logging of a bucket: sets and reads its configuration, and delivers the log at once. */
#include "s3/gateway/gateway_int.h"

#include "base/clock.h"
#include "base/ids.h"
#include "s3/log/access_log.h"

int op_get_logging(struct call *c, struct err *err)
{
    struct acl_users users = call_acl_users(c);
    struct buf xml = BUF_INIT(CALL_OUT_MAX);
    struct logging config;
    struct str kept;
    int code = call_document(c, c->target.bucket, "logging", &kept, err);

    if (code == 0 && kept.len)
        code = logging_decode(&config, c->a, kept, err);
    if (code < 0)
        return code;
    logging_write(&xml, kept.len ? &config : NULL, &users);
    respond_begin(c, 200);
    respond_header(c, "Content-Type", STR("application/xml"));
    if (kept.len)
        respond_time(c, "Last-Modified", config.modified_ms);
    code = http_send(c->http, buf_str(&xml));
    c->begun = code != ERR_AGAIN;
    buf_release(&xml);
    return code;
}

/* Checks the target bucket as if an object were to be delivered now. */
static int logging_check_target(struct call *c, const struct logging *config, struct err *err)
{
    struct call_target *t = &c->target;
    struct logging_source source = {
        .owner = t->info.owner, .bucket = t->info.name, .region = c->g->region};
    struct access_log_ask ask = {.routes = c->g->o.routes,
                                 .config = config,
                                 .owner = t->info.owner,
                                 .bucket = t->info.name,
                                 .storage = t->at.storage->name,
                                 .setting = true};
    struct access_log_target target = {0};
    struct buf key = BUF_INIT(0);

    logging_key(&key, config, &source, c->now_ms, 0, random_u64());
    ask.key = buf_str(&key);
    int code = access_log_target_open(&target, c->a, &ask, err);
    if (code == 0 && config->grants.count && !target.lists)
        code = s3_fail(err, S3_ACCESS_CONTROL_LIST_NOT_SUPPORTED);
    if (target.bucket)
        target.bucket->ops->unref(target.bucket);
    buf_release(&key);
    return code;
}

/* Stores the configuration. A configuration that is the same as before is not stored, so that it
 * keeps its time of change. */
static int logging_keep(struct call *c, struct logging *config, struct err *err)
{
    struct bucket *b = c->target.bucket;
    struct buf text = BUF_INIT(CALL_XML_MAX);
    struct logging old = {0};
    struct str kept;
    int code = call_document(c, b, "logging", &kept, err);

    if (code == 0 && kept.len)
        code = logging_decode(&old, c->a, kept, err);
    config->modified_ms = old.modified_ms;
    if (code == 0)
        logging_encode(&text, config);
    if (code == 0 && !str_eq(kept, buf_str(&text))) {
        config->modified_ms = c->now_ms;
        buf_reset(&text);
        logging_encode(&text, config);
        code = buf_error(&text);
        if (code == 0)
            code = b->ops->set_document(b, "logging", buf_str(&text), err);
    }
    buf_release(&text);
    return code;
}

/* Checks that the user is the bucket's owner or an administrator. A policy cannot allow other
 * users, because the log shows all that is done in the bucket. */
static int need_owner(struct call *c, struct err *err)
{
    bool may = c->user && (c->user->admin || str_eq(c->user->id, c->target.info.owner));

    return may ? 0 : s3_fail(err, S3_ACCESS_DENIED);
}

int op_put_logging(struct call *c, struct err *err)
{
    struct acl_users users = call_acl_users(c);
    struct bucket *b = c->target.bucket;
    struct logging config;
    bool on;
    int code = need_owner(c, err);

    if (code == 0)
        code = logging_read(&config, &on, c->a, c->body, &users, err);
    if (code == 0 && !on)
        code = b->ops->set_document(b, "logging", STR_EMPTY, err);
    else if (code == 0 && !c->g->o.access_log)
        code = s3_fail(err, S3_NOT_IMPLEMENTED);
    else if (code == 0) {
        code = logging_check_target(c, &config, err);
        if (code == 0)
            code = logging_keep(c, &config, err);
    }
    return code < 0 ? code : respond_empty(c, 200);
}

/* An extension of Ceph: delivers the log at once. */
int op_flush_logging(struct call *c, struct err *err)
{
    struct buf xml = BUF_INIT(CALL_OUT_MAX);
    struct str key = STR_EMPTY;
    int code = need_owner(c, err);

    if (code == 0 && !c->g->o.access_log)
        code = s3_fail(err, S3_NOT_IMPLEMENTED);
    if (code == 0)
        code = access_log_flush(c->g->o.access_log, c->target.bucket, c->a, &key, err);
    if (code < 0)
        return code;
    document_open(&xml, "PostBucketLoggingOutput");
    xml_element(&xml, "FlushedLoggingObject", key);
    xml_close(&xml, "PostBucketLoggingOutput");
    return respond_xml(c, 200, &xml);
}
