/* The stored form of maps. */
#include "base/ids.h"
#include "unit/shard/map_lab.h"
#include "unit/test.h"

static const char SOUND[] =
    "{\"format\":1,\"number\":1000,\"home\":\"home\",\"bucket\":\"photos\",\"owner\":\"owner\","
    "\"id\":\"7\",\"by\":\"0123456789abcdef\",\"house\":\"house\",\"mark\":\"ab27\",\"state\":"
    "\"active\","
    "\"threshold\":0,\"last_number\":0,\"places\":[{\"number\":0,\"storage\":\"home\","
    "\"bucket\":\"photos\",\"uploads\":false,\"times\":false,\"unclean\":[]}],"
    "\"segments\":[{\"after\":\"\",\"place\":0}]}";

/* The texts of both maps are equal. */
static void expect_same(const struct shard_map *a, const struct shard_map *b)
{
    struct buf one = {0}, two = {0};

    map_write(a, &one);
    map_write(b, &two);
    CHECK_STR(buf_str(&one), buf_str(&two));
    buf_release(&one);
    buf_release(&two);
}

static struct shard_map *read_back(const struct shard_map *m)
{
    struct buf text = {0};
    struct shard_map *read = NULL;
    struct err err = {0};

    map_write(m, &text);
    CHECK_OK(map_parse(&read, buf_str(&text), &err));
    expect_same(m, read);
    buf_release(&text);
    return read;
}

/* The sound text with one part replaced. */
static int parse_with(const char *part, const char *other)
{
    ptrdiff_t at = str_find(str_z(SOUND), str_z(part));
    struct buf text = {0};
    struct shard_map *m = NULL;
    struct err err = {0};

    CHECK(at >= 0);
    buf_append(&text, SOUND, (size_t)at);
    buf_append_z(&text, other);
    buf_append_z(&text, SOUND + at + strlen(part));
    int code = map_parse(&m, buf_str(&text), &err);
    CHECK((code == 0) == (m != NULL));
    CHECK((code == 0) == (err.text[0] == 0));
    map_unref(m);
    buf_release(&text);
    return code;
}

TEST(shard_map_text, the_first_map_has_the_documented_text)
{
    struct shard_map *m = map_lab_first(), *read = NULL;
    struct buf text = {0};
    struct err err = {0};

    m->by = STR("0123456789abcdef");
    map_write(m, &text);
    CHECK_STR(buf_str(&text), str_z(SOUND));
    CHECK_OK(map_parse(&read, str_z(SOUND), &err));
    expect_same(m, read);
    map_unref(m);
    map_unref(read);
    buf_release(&text);
}

TEST(shard_map_text, everything_of_a_map_is_read_back)
{
    struct shard_map *m = map_lab_first(), *read;

    map_lab_next(&m);
    map_lab_add(m, 1);
    map_lab_add(m, 7);
    map_give(m, WINDOW("m", "t"), 1);
    map_give(m, WINDOW("w", ""), 7);
    map_set_unclean(m, 0, WINDOW("m", "o"));
    map_set_unclean(m, 7, WINDOW("a", "b"));
    map_set_unclean(m, 7, WINDOW("c", "d"));
    map_begin_move(m, SHARD_MERGE, 7, 0, WINDOW("w", ""));
    map_close(m, SHARD_CLOSED_ADOPT, WINDOW("w", "x"));
    m->state = SHARD_DELETING;
    m->threshold = 10000000;
    m->places[1].uploads = true;
    m->places[2].times = true;
    read = read_back(m);
    CHECK_INT(read->state, SHARD_DELETING);
    CHECK_INT(read->closed, SHARD_CLOSED_ADOPT);
    CHECK_INT(read->move.kind, SHARD_MERGE);
    CHECK_INT(read->move.from, 7);
    CHECK_INT(read->threshold, 10000000);
    CHECK_INT(read->last_number, 7);
    CHECK(map_place(read, 1)->uploads && map_place(read, 7)->times);
    CHECK_INT(map_place(read, 7)->unclean_count, 2);
    map_unref(read);
    for (int how = SHARD_CLOSED_DOCUMENTS; how <= SHARD_CLOSED_ALL; how++) {
        map_open(m);
        map_close(m, (enum shard_closed)how, NULL);
        map_unref(read_back(m));
    }
    map_unref(m);
}

TEST(shard_map_text, keys_of_any_bytes_are_read_back)
{
    struct shard_map *m = map_lab_first(), *read;
    char every[256];

    for (int i = 0; i < 256; i++)
        every[i] = (char)i;
    for (int round = 0; round < 500; round++) {
        char key[40];
        size_t len = 1 + random_below(sizeof(key) - 1);
        random_bytes(key, len);
        map_lab_next(&m);
        map_lab_add(m, m->last_number + 1);
        map_give(m, &(struct shard_window){str_n(key, len), STR("")}, m->last_number);
        map_set_unclean(m, 0, &(struct shard_window){str_n(key, len), STR("")});
        read = read_back(m);
        CHECK_STR(read->segments[read->segment_count - 1].after, str_n(key, len));
        map_unref(read);
        map_give(m, WINDOW("", ""), 0);
        map_set_clean(m, 0, WINDOW("", ""));
        map_remove_place(m, m->last_number);
    }
    map_lab_next(&m);
    map_lab_add(m, m->last_number + 1);
    map_give(m, &(struct shard_window){str_n(every, 256), STR("")}, m->last_number);
    read = read_back(m);
    CHECK_STR(read->segments[1].after, str_n(every, 256));
    map_unref(read);
    map_unref(m);
}

TEST(shard_map_text, a_map_of_a_newer_weir_is_told_from_a_damaged_one)
{
    CHECK_ERR(parse_with("\"format\":1,", "\"format\":2,\"new\":{},"), ERR_UNSUPPORTED);
    CHECK_ERR(parse_with("\"format\":1,", "\"format\":0,"), ERR_CORRUPT);
    CHECK_ERR(parse_with("\"format\":1,", ""), ERR_CORRUPT);
}

TEST(shard_map_text, texts_that_are_not_exactly_maps_are_damaged)
{
    static const struct {
        const char *part, *other;
    } wrong[] = {
        {"\"number\":1000", "\"number\":\"1000\""},
        {"\"number\":1000", "\"number\":0"},
        {"\"number\":1000", "\"number\":-1"},
        {"\"number\":1000", "\"number\":1000.0"},
        {"\"number\":1000", "\"number\":9223372036854775808"},
        {"\"number\":1000,", ""},
        {"\"number\":1000,", "\"number\":1000,\"number\":1000,"},
        {"\"number\":1000,", "\"number\":1000,\"other\":1,"},
        {"\"id\":\"7\",", ""},
        {"\"id\":\"7\"", "\"id\":7"},
        {"\"id\":\"7\"", "\"id\":\"\""},
        {"\"id\":\"7\"", "\"id\":\"0\""},
        {"\"id\":\"7\"", "\"id\":\"07\""},
        {"\"id\":\"7\"", "\"id\":\"+7\""},
        {"\"id\":\"7\"", "\"id\":\"-7\""},
        {"\"id\":\"7\"", "\"id\":\"7 \""},
        {"\"id\":\"7\"", "\"id\":\"0x7\""},
        {"\"id\":\"7\"", "\"id\":\"18446744073709551616\""},
        {"\"owner\":\"owner\"", "\"owner\":null"},
        {"\"owner\":\"owner\"", "\"owner\":\"%6fwner\""},
        {"\"owner\":\"owner\"", "\"owner\":\"%c3%bc\""},
        {"\"owner\":\"owner\"", "\"owner\":\"%4\""},
        {"\"owner\":\"owner\"", "\"owner\":\"%zz\""},
        {"\"owner\":\"owner\"", "\"owner\":\"\\u00fc\""},
        {"\"owner\":\"owner\"", "\"owner\":\"\xc3\xbc\""},
        {"\"active\"", "\"asleep\""},
        {"\"active\"", "\"\""},
        {"\"places\":[", "\"places\":[7,"},
        {"\"uploads\":false", "\"uploads\":0"},
        {"\"unclean\":[]", "\"unclean\":{}"},
        {"\"unclean\":[]", "\"unclean\":[[]]"},
        {"\"unclean\":[]", "\"unclean\":[{\"after\":\"a\",\"upto\":\"b\"}]"},
        {"\"place\":0", "\"place\":1"},
        {"\"after\":\"\",", "\"after\":\"a\","},
        {"\"after\":\"\",", ""},
        {"\"segments\":[", "\"segments\":[{\"after\":\"\",\"place\":0},"},
        {"\"segments\":", "\"closed\":{\"how\":\"copy\",\"after\":\"\"},\"segments\":"},
        {"\"segments\":", "\"closed\":{\"how\":\"\",\"after\":\"\",\"upto\":\"\"},\"segments\":"},
        {"\"segments\":", "\"closed\":null,\"segments\":"},
        {"\"segments\":", "\"move\":{},\"segments\":"},
        {"\"format\":1", "\"format\":1} {\"format\":1"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        CHECK_ERR(parse_with(wrong[i].part, wrong[i].other), ERR_CORRUPT);
    CHECK_ERR(parse_with("\"owner\":\"owner\"", "\"owner\":\"%C3%BC%00\""), 0);
    CHECK_ERR(parse_with("\"number\":1000", "\"number\":9223372036854775807"), 0);
    CHECK_ERR(parse_with("\"id\":\"7\"", "\"id\":\"18446744073709551615\""), 0);
}

TEST(shard_map_text, every_cut_of_a_text_is_damaged)
{
    struct err err = {0};
    struct shard_map *m = NULL;

    for (size_t len = 0; len < sizeof(SOUND) - 1; len++)
        CHECK_ERR(map_parse(&m, str_n(SOUND, len), &err), ERR_CORRUPT);
}
