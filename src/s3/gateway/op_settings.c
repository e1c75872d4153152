/* Reads and sets the document that says who pays for the requests of a bucket. gateway_access.c
 * enforces it. */
#include "s3/gateway/gateway_int.h"

int op_get_payment(struct call *c, struct err *err)
{
    struct buf xml = BUF_INIT(CALL_OUT_MAX);

    (void)err;
    document_open(&xml, "RequestPaymentConfiguration");
    xml_element(&xml, "Payer", c->target.requester_pays ? STR("Requester") : STR("BucketOwner"));
    xml_close(&xml, "RequestPaymentConfiguration");
    return respond_xml(c, 200, &xml);
}

int op_put_payment(struct call *c, struct err *err)
{
    static const char *const payers[] = {"BucketOwner", "Requester"};
    struct bucket *b = c->target.bucket;
    struct xml_node *root = NULL;
    int code = document_read(&root, c->a, c->body, "RequestPaymentConfiguration", err);

    if (code == 0)
        code = document_shape(root, "Payer!", err);
    if (code < 0)
        return code;
    int payer = document_choice(xml_child(root, "Payer")->text, payers, ARRAY_SIZE(payers));
    if (payer < 0)
        return s3_fail(err, S3_MALFORMED_XML);
    code = b->ops->set_document(b, "requestPayment", payer > 0 ? c->body : STR_EMPTY, err);
    return code < 0 ? code : respond_empty(c, 200);
}
