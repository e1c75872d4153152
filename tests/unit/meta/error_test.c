/* error: every code has its words, weir's codes become S3's, and the body reads as S3's. */
#include "meta/error.h"
#include "base/xml.h"
#include "unit/test.h"

TEST(s3_error, every_code_has_a_name_a_status_and_a_message)
{
    for (int i = 0; i < S3_ERROR_COUNT; i++) {
        int code = S3_FIRST_CODE - i;
        CHECK_INT(s3_code_of(code), code);
        CHECK(s3_code_name(code)[0] != '\0');
        CHECK(s3_code_message(code)[0] != '\0');
        CHECK(s3_code_status(code) >= 300 && s3_code_status(code) < 600);
    }
}

TEST(s3_error, every_code_of_weir_has_a_row_and_anything_else_is_an_internal_error)
{
    CHECK_INT(s3_code_of(0), S3_OK);
    CHECK_INT(s3_code_of(ERR_NOT_FOUND), S3_NO_SUCH_KEY);
    CHECK_INT(s3_code_of(ERR_NO_BUCKET), S3_NO_SUCH_BUCKET);
    CHECK_INT(s3_code_of(ERR_RANGE), S3_INVALID_RANGE);
    CHECK_INT(s3_code_of(ERR_UNAVAILABLE), S3_SERVICE_UNAVAILABLE);
    CHECK_INT(s3_code_of(S3_FIRST_CODE + 1), S3_INTERNAL_ERROR);
    CHECK_INT(s3_code_of(S3_FIRST_CODE - S3_ERROR_COUNT), S3_INTERNAL_ERROR);
    CHECK_INT(s3_code_of(7), S3_INTERNAL_ERROR);
    for (int code = -1; code >= -ERR_COUNT; code--)
        if (err_kind(code) == ERR_KIND_FAILURE && code != ERR_IN_USE)
            CHECK(s3_code_status(code) >= 500);
}

TEST(s3_error, a_failure_carries_the_words_of_its_row)
{
    struct err err = {0};

    CHECK_INT(s3_fail(&err, S3_SLOW_DOWN), S3_SLOW_DOWN);
    CHECK_STR(str_z(err.text), STR("Please reduce your request rate."));
    CHECK_INT(s3_code_status(err.code), 503);
}

TEST(s3_error, the_body_escapes_its_fields_and_leaves_out_what_was_not_given)
{
    struct s3_error_field field = {"ArgumentName", STR("marker")};
    struct s3_error_body body = {.code = S3_INVALID_ARGUMENT,
                                 .key = STR("a<b"),
                                 .request_id = STR("R"),
                                 .fields = &field,
                                 .field_count = 1};
    struct buf out = {0};
    struct arena a = {0};
    struct err err = {0};
    struct xml_node *root;

    s3_error_write(&out, &body);
    CHECK_OK(xml_read(&root, &a, buf_str(&out), &err));
    CHECK_STR(root->name, STR("Error"));
    CHECK_STR(xml_child_text(root, "Code", STR_EMPTY), STR("InvalidArgument"));
    CHECK_STR(xml_child_text(root, "Message", STR_EMPTY), STR("Invalid Argument"));
    CHECK_STR(xml_child_text(root, "Key", STR_EMPTY), STR("a<b"));
    CHECK_STR(xml_child_text(root, "ArgumentName", STR_EMPTY), STR("marker"));
    CHECK_STR(xml_child_text(root, "RequestId", STR_EMPTY), STR("R"));
    CHECK(xml_child(root, "HostId") != NULL);
    CHECK(xml_child(root, "BucketName") == NULL && xml_child(root, "Resource") == NULL);
    arena_release(&a);
    buf_release(&out);
}
