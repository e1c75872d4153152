/* Records of accounts, and .error objects: a text that reads is written back so that it reads the
 * same. */
#include "archive/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int record_of(struct archive_record *r, struct str text)
{
    struct str_reader from;
    struct err err = {0};

    archive_record_init(r);
    str_reader_init(&from, text);
    int code = archive_record_read(r, &from.reader, &err);
    BUG_ON(code < 0 && err.text[0] == '\0');
    return code;
}

static void record_write(struct buf *out, const struct archive_record *r)
{
    struct record_text text;
    struct err err = {0};

    archive_record_text_init(&text, r);
    BUG_ON(reader_read_all(&text.reader, out, &err) < 0);
    archive_record_text_release(&text);
    BUG_ON(out->len != archive_record_text_size(r));
}

static void record_twice(struct str text)
{
    struct archive_record r, again;
    struct buf one = {0}, two = {0};

    if (record_of(&r, text) == 0) {
        record_write(&one, &r);
        if (record_of(&again, buf_str(&one)) == 0) {
            record_write(&two, &again);
            BUG_ON(!str_eq(buf_str(&one), buf_str(&two)));
        }
        archive_record_release(&again);
    }
    archive_record_release(&r);
    buf_release(&one);
    buf_release(&two);
}

/* Writes what the text says. The first writing makes the words of a server fit for a line, so only
 * later ones give the same. */
static bool error_again(struct buf *out, struct str text)
{
    struct archive_error e;
    struct err err = {0};

    if (archive_error_read(&e, text, &err) < 0)
        return false;
    archive_error_write(out, &e);
    return true;
}

static void error_twice(struct str text)
{
    struct buf one = {0}, two = {0}, three = {0};

    if (error_again(&one, text)) {
        BUG_ON(!error_again(&two, buf_str(&one)));
        BUG_ON(!error_again(&three, buf_str(&two)));
        BUG_ON(!str_eq(buf_str(&two), buf_str(&three)));
    }
    buf_release(&one);
    buf_release(&two);
    buf_release(&three);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    record_twice(str_n(data, size));
    error_twice(str_n(data, size));
    return 0;
}
