/* Envelopes and the key file. */
#include "os/file.h"
#include "meta/envelope.h"
#include "meta/keyring.h"
#include "unit/test.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct sealed_key with = {.bytes = "0123456789abcdef0123456789abcde"};
static const struct sealed_key other = {.bytes = "1123456789abcdef0123456789abcde"};
static const struct sealed_key data = {.bytes = "this is the data key of an obje"};
static const struct envelope_place at = {{"box", 3}, {"key", 3}};

static const struct envelope all[] = {
    {.kind = SSE_C},
    {.kind = SSE_S3, .name = {"sse-s3", 6}, .id = {"1", 1}},
    {.kind = SSE_KMS,
     .name = {"payroll", 7},
     .id = {"abc", 3},
     .context = {"eyJhIjoiYiJ9", 12},
     .bucket_key = true},
};

TEST(envelope, what_was_sealed_opens_with_its_key_in_its_place)
{
    static const struct envelope_place elsewhere[] = {
        {{"box", 3}, {"kez", 3}}, {{"bok", 3}, {"key", 3}}, {{"bo", 2}, {"key", 3}}};
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        struct buf bytes = BUF_INIT(ENVELOPE_MAX);
        struct envelope e;
        struct sealed_key got = {0};
        envelope_seal(&bytes, &all[i], &at, &with, &data);
        CHECK_OK(envelope_read(&e, buf_str(&bytes), &err));
        CHECK_INT(e.kind, all[i].kind);
        CHECK_STR(e.name, all[i].name);
        CHECK_STR(e.id, all[i].id);
        CHECK_STR(e.context, all[i].context);
        CHECK_INT(e.bucket_key, all[i].bucket_key);
        CHECK_INT(envelope_open(&e, &at, &with, &got), 0);
        CHECK(memcmp(&got, &data, sizeof(got)) == 0);
        CHECK_INT(envelope_open(&e, &at, &other, &got), ERR_DENIED);
        for (size_t k = 0; k < ARRAY_SIZE(elsewhere); k++)
            CHECK_INT(envelope_open(&e, &elsewhere[k], &with, &got), ERR_DENIED);
        buf_release(&bytes);
    }
}

TEST(envelope, no_byte_can_be_changed_or_left_out)
{
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        struct buf bytes = BUF_INIT(ENVELOPE_MAX);
        struct envelope e;
        struct sealed_key got;
        envelope_seal(&bytes, &all[i], &at, &with, &data);
        for (size_t k = 0; k < bytes.len; k++) {
            bytes.p[k] ^= 1;
            CHECK(envelope_read(&e, buf_str(&bytes), NULL) < 0 ||
                  envelope_open(&e, &at, &with, &got) < 0);
            bytes.p[k] ^= 1;
            CHECK_INT(envelope_read(&e, str_head(buf_str(&bytes), k), NULL), ERR_CORRUPT);
        }
        buf_append_char(&bytes, 'x');
        CHECK_INT(envelope_read(&e, buf_str(&bytes), NULL), ERR_CORRUPT);
        buf_release(&bytes);
    }
}

TEST(envelope, sealing_twice_shows_nothing_in_common)
{
    struct buf one = BUF_INIT(ENVELOPE_MAX), two = BUF_INIT(ENVELOPE_MAX);

    envelope_seal(&one, &all[0], &at, &with, &data);
    envelope_seal(&two, &all[0], &at, &with, &data);
    CHECK(memcmp(one.p + one.len - 48, two.p + two.len - 48, 16) != 0);
    CHECK(!memmem(one.p, one.len, data.bytes, 16) && !memmem(one.p, one.len, with.bytes, 16));
    buf_release(&one);
    buf_release(&two);
}

/* --- the key file --- */

static const char *key_path(void)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/keys", test_dir());
    return path;
}

static void write_file(const char *text, mode_t mode)
{
    struct err err = {0};

    CHECK_OK(file_write_durable(key_path(), str_z(text), mode, &err));
}

#define HEX "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

TEST(keyring, a_key_is_made_once_and_found_again)
{
    struct keyring *k = keyring_new(key_path());
    struct ring_key one, two;
    struct err err = {0};
    struct stat st;

    CHECK_ERR(keyring_current(k, STR("payroll"), false, &one, &err), ERR_NOT_FOUND);
    CHECK(!file_exists(key_path()));
    CHECK_OK(keyring_current(k, KEYRING_MASTER, true, &one, &err));
    CHECK(stat(key_path(), &st) == 0 && (st.st_mode & 0777) == 0600);
    CHECK_OK(keyring_current(k, KEYRING_MASTER, true, &two, &err));
    CHECK_STR(str_z(one.id), str_z(two.id));
    CHECK(memcmp(&one.key, &two.key, sizeof(one.key)) == 0);
    keyring_free(k);
    k = keyring_new(key_path());
    CHECK_INT(keyring_find(k, KEYRING_MASTER, str_z(one.id), false, &two, &err), ERR_AGAIN);
    CHECK_OK(keyring_find(k, KEYRING_MASTER, str_z(one.id), true, &two, &err));
    CHECK(memcmp(&one.key, &two.key, sizeof(one.key)) == 0);
    CHECK_OK(keyring_find(k, KEYRING_MASTER, str_z(one.id), false, &two, &err));
    keyring_free(k);
}

TEST(keyring, making_a_key_keeps_what_is_in_the_file)
{
    struct keyring *k = keyring_new(key_path());
    struct ring_key key;
    struct err err = {0};

    write_file("# ours\npayroll 1 " HEX, 0600);
    CHECK_OK(keyring_current(k, KEYRING_MASTER, true, &key, &err));
    CHECK_OK(keyring_current(k, STR("payroll"), false, &key, &err));
    CHECK_STR(str_z(key.id), STR("1"));
    keyring_free(k);
}

TEST(keyring, the_last_line_of_a_name_is_for_new_objects)
{
    struct keyring *k = keyring_new(key_path());
    struct ring_key key;
    struct err err = {0};

    write_file("a 1 " HEX "\n\n  b 1 " HEX "\na\t2 " HEX "\r\n", 0600);
    CHECK_OK(keyring_current(k, STR("a"), false, &key, &err));
    CHECK_STR(str_z(key.id), STR("2"));
    CHECK_OK(keyring_find(k, STR("a"), STR("1"), false, &key, &err));
    write_file("a 1 " HEX "\na 2 " HEX "\na 3 " HEX "\n", 0600);
    CHECK_OK(keyring_current(k, STR("a"), false, &key, &err));
    CHECK_STR(str_z(key.id), STR("3"));
    CHECK_ERR(keyring_current(k, STR("b"), false, &key, &err), ERR_NOT_FOUND);
    keyring_free(k);
}

TEST(keyring, a_file_that_goes_away_stops_writing_and_not_reading)
{
    struct keyring *k = keyring_new(key_path());
    struct ring_key key, again;
    struct err err = {0};

    CHECK_OK(keyring_current(k, KEYRING_MASTER, true, &key, &err));
    CHECK(unlink(key_path()) == 0);
    CHECK_ERR(keyring_current(k, KEYRING_MASTER, true, &again, &err), ERR_CORRUPT);
    CHECK(strstr(err.text, key_path()));
    CHECK_OK(keyring_find(k, KEYRING_MASTER, str_z(key.id), true, &again, &err));
    CHECK(memcmp(&key.key, &again.key, sizeof(key.key)) == 0);
    CHECK(!file_exists(key_path()));
    keyring_free(k);
}

TEST(keyring, a_key_that_is_lost_is_named)
{
    struct keyring *k = keyring_new(key_path());
    struct ring_key key;
    struct err err = {0};

    CHECK_ERR(keyring_find(k, STR("payroll"), STR("7"), true, &key, &err), ERR_CORRUPT);
    CHECK(strstr(err.text, "payroll") && strstr(err.text, "7") && strstr(err.text, key_path()));
    keyring_free(k);
}

TEST(keyring, a_file_that_is_open_to_others_or_damaged_is_refused)
{
    static const char *const damaged[] = {
        "a 1\n",
        "a 1 00\n",
        "a 1 " HEX "00\n",
        "a 1 " HEX " x\n",
        "a 1 " HEX "\na 1 " HEX "\n",
        "a \x01 " HEX "\n",
        "\xff 1 " HEX "\n",
        "one\n",
        "a 123456789012345678901234567890123 " HEX "\n",
    };
    struct keyring *k = keyring_new(key_path());
    struct ring_key key;
    struct err err = {0};

    write_file("a 1 " HEX "\n", 0644);
    CHECK_ERR(keyring_current(k, STR("a"), true, &key, &err), ERR_DENIED);
    CHECK(strstr(err.text, key_path()));
    for (size_t i = 0; i < ARRAY_SIZE(damaged); i++) {
        write_file(damaged[i], 0600);
        CHECK_ERR(keyring_current(k, STR("a"), true, &key, &err), ERR_CORRUPT);
        CHECK(strstr(err.text, key_path()) && !strstr(err.text, "0011"));
    }
    keyring_free(k);
}
