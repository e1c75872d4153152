/* Settings of a bucket of which weir has one value alone: who pays, and where requests are logged.
 * They are told as they are; another value is NotImplemented. */
#include "s3/gateway_int.h"

int op_get_payment(struct call *c, struct err *err)
{
    struct buf xml = BUF_INIT(CALL_OUT_MAX);

    (void)err;
    document_open(&xml, "RequestPaymentConfiguration");
    xml_element(&xml, "Payer", STR("BucketOwner"));
    xml_close(&xml, "RequestPaymentConfiguration");
    return respond_xml(c, 200, &xml);
}

int op_put_payment(struct call *c, struct err *err)
{
    static const char *const payers[] = {"BucketOwner", "Requester"};
    struct xml_node *root = NULL;
    int code = document_read(&root, c->a, c->body, "RequestPaymentConfiguration", err);

    if (code == 0)
        code = document_shape(root, "Payer!", err);
    if (code < 0)
        return code;
    int payer = document_choice(xml_child(root, "Payer")->text, payers, ARRAY_SIZE(payers));
    if (payer < 0)
        return s3_fail(err, S3_MALFORMED_XML);
    if (payer > 0)
        return err_set(err, S3_NOT_IMPLEMENTED,
                       "Requests that the requester pays are not "
                       "implemented");
    return respond_empty(c, 200);
}

int op_get_logging(struct call *c, struct err *err)
{
    struct buf xml = BUF_INIT(CALL_OUT_MAX);

    (void)err;
    document_open(&xml, "BucketLoggingStatus");
    xml_close(&xml, "BucketLoggingStatus");
    return respond_xml(c, 200, &xml);
}

/* A bucket to log to is looked for before the answer is that there are no logs: who names one that
 * is not there learns that first, as from S3. */
static int check_target(struct call *c, const struct xml_node *enabled, struct err *err)
{
    struct str name = xml_child_text(enabled, "TargetBucket", STR_EMPTY);
    struct call_target target = {0};
    int code = 0;

    if (!name.len || !xml_child(enabled, "TargetPrefix"))
        return s3_fail(err, S3_MALFORMED_XML);
    code = call_open(c, &target, name, err);
    call_close(&target);
    return code < 0 ? code
                    : err_set(err, S3_NOT_IMPLEMENTED,
                              "Logs of requests in buckets are not "
                              "implemented");
}

int op_put_logging(struct call *c, struct err *err)
{
    struct xml_node *root = NULL, *enabled;
    int code = document_read(&root, c->a, c->body, "BucketLoggingStatus", err);

    if (code == 0)
        code = document_shape(root, "LoggingEnabled?", err);
    if (code < 0)
        return code;
    enabled = xml_child(root, "LoggingEnabled");
    if (enabled)
        return check_target(c, enabled, err);
    return respond_empty(c, 200);
}
