/* err: codes, texts and what is put before them. */
#include "base/err.h"
#include "unit/test.h"

#include <errno.h>

TEST(err, every_code_has_a_name_a_text_and_a_kind)
{
    for (int code = -1; code >= -ERR_COUNT; code--) {
        CHECK(strcmp(err_name(code), "OK") != 0);
        CHECK(strlen(err_text(code)) > 0);
    }
    CHECK_STR(str_z(err_name(ERR_NOT_FOUND)), STR("NOT_FOUND"));
    CHECK_INT(err_kind(ERR_NOT_FOUND), ERR_KIND_EXPECTED);
    CHECK_INT(err_kind(ERR_IO), ERR_KIND_FAILURE);
    CHECK_STR(str_z(err_name(0)), STR("OK"));
    CHECK_STR(str_z(err_name(-ERR_COUNT - 1)), STR("OK"));
}

TEST(err, context_is_put_before_the_text)
{
    struct err err = {0};

    CHECK_INT(err_set(&err, ERR_IO, "disk %d", 3), ERR_IO);
    CHECK_INT(err_wrap(&err, ERR_IO, "reading %s", "x"), ERR_IO);
    CHECK_STR(str_z(err.text), STR("reading x: disk 3"));
    CHECK_INT(err.code, ERR_IO);
    err = (struct err){0};
    err_wrap(&err, ERR_TIMEOUT, "asking");
    CHECK_STR(str_z(err.text), STR("asking: timed out"));
    CHECK_INT(err_wrap(NULL, ERR_IO, "x"), ERR_IO);
    CHECK_INT(err_wrap(&err, ERR_PEER, "a storage"), ERR_PEER);
    CHECK_INT(err.code, ERR_PEER);
    CHECK_INT(err_set(NULL, ERR_IO, "x"), ERR_IO);
}

TEST(err, a_long_text_is_cut_and_terminated)
{
    struct err err = {0};

    err_set(&err, ERR_IO, "%0600d", 1);
    CHECK_INT(strlen(err.text), sizeof(err.text) - 1);
    for (int i = 0; i < 100; i++)
        err_wrap(&err, ERR_IO, "level %d", i);
    CHECK_INT(strlen(err.text), sizeof(err.text) - 1);
}

TEST(err, errno_is_translated_with_its_reason)
{
    struct err err = {0};

    CHECK_INT(err_errno(&err, ENOENT, "opening %s", "x"), ERR_NOT_FOUND);
    CHECK_STR(str_z(err.text), STR("opening x: No such file or directory"));
    CHECK_INT(err_from_errno(ENOSPC), ERR_NO_SPACE);
    CHECK_INT(err_from_errno(ECONNRESET), ERR_CLOSED);
    CHECK_INT(err_from_errno(EIO), ERR_IO);
    CHECK_INT(err_errno(NULL, EACCES, "x"), ERR_DENIED);
}
