/* What clients put on the wire that must not be misread: long lists, headers that came as
 * parameters, parameters and checksums that nobody knows. */
#include "unit/s3/gateway_lab.h"

#include <stdio.h>

#define NONE STR_EMPTY

/* --- lists --- */

/* Base64 of 32 bytes, as long as a SHA-256. */
#define SUM "NVsmnZ+hOEPtrv3zFhMDhrUMdD2KE2mLQUUIA2LcOsg="

/* Of 10,000 parts that name a checksum each; the first is there, the others are not. */
GATE_TEST(a_list_of_ten_thousand_parts_with_checksums_is_read)
{
    struct buf xml = BUF_INIT(0);
    char request[256], id[64], etag[64], sum[64];
    char body[100];

    memset(body, 'x', sizeof(body));
    gate_ask(g, ALICE, "POST /box/big?uploads", "x-amz-checksum-algorithm: SHA256", NONE, 200);
    snprintf(id, sizeof(id), STR_FMT, STR_ARG(gate_element(g, "UploadId")));
    snprintf(request, sizeof(request), "PUT /box/big?partNumber=1&uploadId=%s", id);
    gate_ask(g, ALICE, request, NULL, str_n(body, sizeof(body)), 200);
    snprintf(etag, sizeof(etag), STR_FMT, STR_ARG(gate_header(g, "etag")));
    snprintf(sum, sizeof(sum), STR_FMT, STR_ARG(gate_header(g, "x-amz-checksum-sha256")));
    CHECK_INT(strlen(sum), strlen(SUM));
    buf_append_z(&xml, "<CompleteMultipartUpload>");
    for (int i = 1; i <= 10000; i++)
        buf_appendf(&xml,
                    "<Part><ETag>%s</ETag><ChecksumSHA256>%s</ChecksumSHA256>"
                    "<PartNumber>%d</PartNumber></Part>",
                    etag, i == 1 ? sum : SUM, i);
    buf_append_z(&xml, "</CompleteMultipartUpload>");
    snprintf(request, sizeof(request), "POST /box/big?uploadId=%s", id);
    gate_ask(g, ALICE, request, NULL, buf_str(&xml), 400);
    GATE_ERROR(g, "InvalidPart");
    buf_release(&xml);
}

/* 1000 keys of 1024 bytes, each of which takes five in XML, with versions. */
GATE_TEST(a_batch_of_the_longest_keys_is_read)
{
    struct buf xml = BUF_INIT(0);
    int deleted = 0;

    buf_append_z(&xml, "<Delete>");
    for (int i = 0; i < 1000; i++) {
        buf_appendf(&xml, "<Object><Key>%04d", i);
        for (int k = 0; k < 1020; k++)
            buf_append_z(&xml, "&amp;");
        buf_append_z(&xml, "</Key><VersionId>null</VersionId></Object>");
    }
    buf_append_z(&xml, "</Delete>");
    gate_ask(g, ALICE, "POST /box?delete", NULL, buf_str(&xml), 200);
    for (struct str rest = g->body; str_find(rest, STR("<Deleted>")) >= 0; deleted++)
        rest = str_skip(rest, (size_t)str_find(rest, STR("<Deleted>")) + 9);
    CHECK_INT(deleted, 1000);

    buf_append_z(&xml, "<!--"); /* the limit is still one */
    while (xml.len <= 8 * 1024 * 1024)
        buf_append_z(&xml, "                                                                ");
    buf_append_z(&xml, "-->");
    gate_ask(g, ALICE, "POST /box?delete", NULL, buf_str(&xml), 400);
    GATE_ERROR(g, "MaxMessageLengthExceeded");
    buf_release(&xml);
}
