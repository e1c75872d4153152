/* A setting of a bucket of which weir has one value alone: who pays. It is told as it is; another
 * value is NotImplemented. */
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
