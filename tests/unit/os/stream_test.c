/* stream: readers over memory, files and parts of others. */
#include "os/stream.h"
#include "os/file.h"
#include "unit/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int file_with(const char *content)
{
    struct err err = {0};
    char path[256];
    int fd;

    snprintf(path, sizeof(path), "%s/f", test_dir());
    CHECK_OK(file_write_durable(path, str_z(content), 0600, &err));
    fd = open(path, O_RDWR);
    CHECK(fd >= 0);
    return fd;
}

TEST(stream, a_string_reads_in_pieces_and_then_ends)
{
    struct err err = {0};
    struct str_reader r;
    char got[4];
    size_t n;

    str_reader_init(&r, STR("abcde"));
    CHECK_OK(reader_read(&r.reader, got, 4, &n, &err));
    CHECK_STR(str_n(got, n), STR("abcd"));
    CHECK_OK(reader_read(&r.reader, got, 4, &n, &err));
    CHECK_STR(str_n(got, n), STR("e"));
    CHECK_OK(reader_read(&r.reader, got, 4, &n, &err));
    CHECK_INT(n, 0);
    reader_close(&r.reader);
    reader_close(NULL);
}

TEST(stream, reading_all_stops_at_the_bufs_limit)
{
    struct err err = {0};
    struct str_reader r;
    struct buf b = BUF_INIT(5);

    str_reader_init(&r, STR("12345"));
    CHECK_OK(reader_read_all(&r.reader, &b, &err));
    CHECK_STR(buf_str(&b), STR("12345"));
    buf_reset(&b);
    str_reader_init(&r, STR("123456"));
    CHECK_ERR(reader_read_all(&r.reader, &b, &err), ERR_TOO_LARGE);
    str_reader_init(&r, STR("123"));
    CHECK_ERR(reader_read_full(&r.reader, buf_reserve(&b, 0), 0, &err), 0);
    buf_release(&b);
}

TEST(stream, reading_full_tells_an_early_end)
{
    struct err err = {0};
    struct str_reader r;
    char got[8];

    str_reader_init(&r, STR("123"));
    CHECK_OK(reader_read_full(&r.reader, got, 2, &err));
    CHECK_ERR(reader_read_full(&r.reader, got, 2, &err), ERR_CLOSED);
}

TEST(stream, a_file_range_is_read_skipped_and_offered_as_a_file)
{
    struct err err = {0};
    struct file_reader r;
    struct file_range range;
    struct buf b = {0};
    int fd = file_with("0123456789");

    file_reader_init(&r, (struct file_range){fd, 2, 6}, true);
    CHECK(reader_as_file(&r.reader, &range));
    CHECK_INT(range.offset, 2);
    CHECK_INT(range.len, 6);
    reader_skip(&r.reader, 2);
    CHECK_OK(reader_read_all(&r.reader, &b, &err));
    CHECK_STR(buf_str(&b), STR("4567"));
    CHECK(!reader_as_socket(&r.reader, &fd, &range.len));
    reader_close(&r.reader);
    CHECK_INT(fcntl(fd, F_GETFD), -1);
    buf_release(&b);
}

TEST(stream, a_file_that_became_shorter_is_an_error)
{
    struct err err = {0};
    struct file_reader r;
    struct buf b = {0};
    int fd = file_with("0123456789");

    file_reader_init(&r, (struct file_range){fd, 0, 10}, false);
    CHECK_INT(ftruncate(fd, 4), 0);
    CHECK_ERR(reader_read_all(&r.reader, &b, &err), ERR_CORRUPT);
    reader_close(&r.reader);
    CHECK(fcntl(fd, F_GETFD) >= 0);
    close(fd);
    buf_release(&b);
}

TEST(stream, a_limit_cuts_what_it_passes_on)
{
    struct err err = {0};
    struct file_reader file;
    struct limit_reader r;
    struct file_range range;
    struct str_reader text;
    struct buf b = {0};
    int fd = file_with("0123456789");

    file_reader_init(&file, (struct file_range){fd, 1, 9}, true);
    limit_reader_init(&r, &file.reader, 5);
    CHECK(reader_as_file(&r.reader, &range));
    CHECK_INT(range.len, 5);
    reader_skip(&r.reader, 2);
    CHECK_OK(reader_read_all(&r.reader, &b, &err));
    CHECK_STR(buf_str(&b), STR("345"));
    CHECK(reader_as_file(&file.reader, &range));
    CHECK_INT(range.len, 4);
    reader_close(&file.reader);

    buf_reset(&b);
    str_reader_init(&text, STR("abc"));
    limit_reader_init(&r, &text.reader, 100);
    CHECK(!reader_as_file(&r.reader, &range));
    CHECK_OK(reader_read_all(&r.reader, &b, &err));
    CHECK_STR(buf_str(&b), STR("abc"));
    buf_release(&b);
}

TEST(stream, bytes_in_memory_say_so)
{
    struct str_reader text;
    struct limit_reader limited;
    struct str bytes;

    str_reader_init(&text, STR("hello world"));
    limit_reader_init(&limited, &text.reader, 5);
    CHECK(reader_as_bytes(&limited.reader, &bytes));
    CHECK_STR(bytes, STR("hello"));
    reader_skip(&limited.reader, 2);
    CHECK(reader_as_bytes(&limited.reader, &bytes));
    CHECK_STR(bytes, STR("llo"));
    reader_skip(&limited.reader, 3);
    CHECK(reader_as_bytes(&text.reader, &bytes));
    CHECK_STR(bytes, STR(" world"));
}
