/* ZIP files that are too large for a test with git: entries of more than 4 GiB (Zip64). The end-to-
 * end tests read ordinary ones by unzip, bsdtar and Python. */
#include "archive/zip_deflate.h"
#include "archive/zip_format.h"
#include "base/bytes.h"
#include "unit/test.h"

#include <stdlib.h>

TEST(archive_zip, an_entry_of_four_gib_has_both_sizes_in_the_extra_field)
{
    struct zip_entry e = {.name = STR("a"),
                          .mode = 0100644,
                          .method = ZIP_DEFLATED,
                          .size = UINT32_MAX,
                          .stored = 10,
                          .at = 5,
                          .time_s = 1700000000};
    struct buf out = {0};

    zip_local_header(&out, &e);
    CHECK_INT(le16_read(out.p + 4), 45);
    CHECK_INT(le32_read(out.p + 18), UINT32_MAX);
    CHECK_INT(le32_read(out.p + 22), UINT32_MAX);
    CHECK_INT(le16_read(out.p + 28), 9 + 20);
    CHECK_INT(out.len, 30 + 1 + 9 + 20);
    CHECK_INT(le16_read(out.p + 40), 1);
    CHECK_INT(le64_read(out.p + 44), UINT32_MAX);
    CHECK_INT(le64_read(out.p + 52), 10);
    buf_reset(&out);
    e.size = UINT32_MAX - 1;
    zip_local_header(&out, &e);
    CHECK_INT(le16_read(out.p + 4), 20);
    CHECK_INT(out.len, 30 + 1 + 9);
    buf_release(&out);
}

TEST(archive_zip, an_entry_behind_four_gib_has_its_place_in_the_extra_field)
{
    struct zip_entry e = {.name = STR("a/"), .mode = 040755, .at = UINT64_C(5) << 30};
    struct buf out = {0};

    zip_directory_row(&out, &e);
    CHECK_INT(le32_read(out.p + 42), UINT32_MAX);
    CHECK_INT(le32_read(out.p + 38), UINT32_C(040755) << 16 | 0x10);
    CHECK_INT(out.len, 46 + 2 + 9 + 12);
    CHECK_INT(le64_read(out.p + out.len - 8), UINT64_C(5) << 30);
    buf_release(&out);
}

TEST(archive_zip, times_outside_the_years_of_dos_become_the_nearest)
{
    static const struct {
        int64_t time_s;
        uint16_t date, time;
        size_t extra;
    } rows[] = {
        {-5, 0 << 9 | 1 << 5 | 1, 0, 0},
        {0, 0 << 9 | 1 << 5 | 1, 0, 9},
        {1700000000, 43 << 9 | 11 << 5 | 14, 22 << 11 | 13 << 5 | 10, 9},
        {INT64_MAX, 127 << 9 | 12 << 5 | 31, 23 << 11 | 59 << 5 | 29, 0},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct zip_entry e = {.name = STR("a"), .time_s = rows[i].time_s};
        struct buf out = {0};
        zip_local_header(&out, &e);
        CHECK_INT(le16_read(out.p + 10), rows[i].time);
        CHECK_INT(le16_read(out.p + 12), rows[i].date);
        CHECK_INT(out.len, 31 + rows[i].extra);
        buf_release(&out);
    }
}

TEST(archive_zip, the_end_uses_zip64_only_when_it_must)
{
    struct zip_end e = {.entries = 65534, .directory_at = 10, .directory_len = 20};
    struct buf out = {0};

    e.comment = STR("id");
    zip_end_record(&out, &e);
    CHECK_INT(out.len, 22 + 2);
    buf_reset(&out);
    e.entries = 65535;
    zip_end_record(&out, &e);
    CHECK_INT(out.len, 56 + 20 + 22 + 2);
    CHECK_INT(le64_read(out.p + 24), 65535);
    CHECK_INT(le64_read(out.p + 56 + 8), 30);
    CHECK_INT(le16_read(out.p + 76 + 10), UINT16_MAX);
    buf_release(&out);
}

TEST(archive_zip, data_that_do_not_become_smaller_are_told)
{
    struct zip_deflater *d = zip_deflater_new(test_dir());
    struct str out;
    struct err err = {0};
    unsigned char noise[5000];
    unsigned seed = 5;

    for (size_t i = 0; i < sizeof(noise); i++)
        noise[i] = (unsigned char)rand_r(&seed);
    CHECK_OK(zip_deflater_run(d, str_n(noise, sizeof(noise)), NULL, NULL, &out, &err));
    CHECK(out.len >= sizeof(noise));
    CHECK_OK(zip_deflater_run(d, STR(""), NULL, NULL, &out, &err));
    memset(noise, 'a', sizeof(noise));
    CHECK_OK(zip_deflater_run(d, str_n(noise, sizeof(noise)), NULL, NULL, &out, &err));
    CHECK(out.len < 200);
    zip_deflater_free(d);
}
