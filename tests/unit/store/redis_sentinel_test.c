/* What sentinels answer, and which master follows from the answers of several. */
#include "store/redis_int.h"
#include "unit/test.h"

#include <stdio.h>

/* --- one answer --- */

static struct reply *read_reply(struct arena *arena, struct str wire)
{
    struct reply *reply = NULL;
    struct resp r;
    size_t used;

    resp_init(&r);
    resp_begin(&r, arena);
    CHECK_INT(resp_read(&r, wire, &used, &reply, NULL), 0);
    resp_release(&r);
    return reply;
}

static int read_answer(struct sentinel_answer *out, struct str master, struct str address)
{
    struct arena arena = {0};
    struct err err = {0};
    int rc = sentinel_read(out, read_reply(&arena, master), read_reply(&arena, address), &err);

    CHECK(rc == 0 || err.text[0]);
    arena_release(&arena);
    return rc;
}

#define MASTER_OK  STR("*4\r\n$4\r\nname\r\n$1\r\nm\r\n$12\r\nconfig-epoch\r\n$2\r\n17\r\n")
#define ADDRESS_OK STR("*2\r\n$3\r\n::1\r\n$4\r\n6380\r\n")
#define UNKNOWN    STR("-ERR No such master with that name\r\n")

TEST(redis_sentinel, an_answer_has_address_and_epoch)
{
    struct sentinel_answer a;

    CHECK_INT(read_answer(&a, MASTER_OK, ADDRESS_OK), 0);
    CHECK(a.heard);
    CHECK_STR(str_z(a.address.host), STR("::1"));
    CHECK_INT(a.address.port, 6380);
    CHECK_INT(a.epoch, 17);
}

TEST(redis_sentinel, everything_else_is_no_answer)
{
    static const struct {
        struct str master, address;
        int code;
    } rows[] = {
        {UNKNOWN, STR("*-1\r\n"), ERR_NOT_FOUND},
        {MASTER_OK, STR("*-1\r\n"), ERR_NOT_FOUND},
        {UNKNOWN, ADDRESS_OK, ERR_NOT_FOUND},
        {STR("-NOPERM no\r\n"), ADDRESS_OK, ERR_DENIED},
        {MASTER_OK, STR("-NOAUTH no\r\n"), ERR_DENIED},
        {STR("-ERR unknown command\r\n"), ADDRESS_OK, ERR_PEER},
        {STR("*0\r\n"), ADDRESS_OK, ERR_PEER},
        {STR("*2\r\n$12\r\nconfig-epoch\r\n$2\r\n-1\r\n"), ADDRESS_OK, ERR_PEER},
        {STR("+OK\r\n"), ADDRESS_OK, ERR_PEER},
        {MASTER_OK, STR("+OK\r\n"), ERR_PEER},
        {MASTER_OK, STR("*1\r\n$1\r\nh\r\n"), ERR_PEER},
        {MASTER_OK, STR("*2\r\n$0\r\n\r\n$1\r\n1\r\n"), ERR_PEER},
        {MASTER_OK, STR("*2\r\n$3\r\na\0b\r\n$1\r\n1\r\n"), ERR_PEER},
        {MASTER_OK, STR("*2\r\n$1\r\nh\r\n$1\r\n0\r\n"), ERR_PEER},
        {MASTER_OK, STR("*2\r\n$1\r\nh\r\n$5\r\n65536\r\n"), ERR_PEER},
        {MASTER_OK, STR("*2\r\n*0\r\n:1\r\n"), ERR_PEER},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct sentinel_answer a;
        int rc = read_answer(&a, rows[i].master, rows[i].address);
        if (rc != rows[i].code)
            test_fail(__FILE__, __LINE__, "row %zu is %s", i, err_name(rc));
    }
}

/* --- the choice --- */

/* "b5": server b, epoch 5; "-": did not answer. */
static struct sentinel_answer answer_of(const char *text)
{
    struct sentinel_answer a = {.heard = text[0] != '-', .address = {.port = 1}};

    if (a.heard) {
        a.address.host[0] = text[0];
        a.epoch = (uint64_t)(text[1] - '0');
    }
    return a;
}

TEST(redis_sentinel,
     the_newest_epoch_wins_and_a_lower_one_only_by_majority_over_a_master_that_failed)
{
    static const struct {
        const char *known, *answers[3];
        bool failed;
        int chosen;
    } rows[] = {
        /* at the start: the newest, else the first */
        {"-", {"-", "-", "-"}, false, -1},
        {"-", {"a1", "b1", "b1"}, false, 0},
        {"-", {"a1", "b2", "a1"}, false, 1},
        {"-", {"-", "-", "b2"}, false, 2},
        /* a failover: the first that tells of it is believed */
        {"a1", {"a1", "a1", "a1"}, false, -1},
        {"a1", {"a1", "b2", "-"}, false, 1},
        {"a1", {"c3", "b2", "a1"}, false, 0},
        {"a1", {"a2", "a1", "a1"}, false, 0},
        /* sentinels that have not heard of it, or are cut off, lead nobody back */
        {"b2", {"a1", "a1", "a1"}, false, -1},
        {"b2", {"a1", "a1", "b2"}, true, -1},
        {"b2", {"a1", "-", "-"}, true, -1},
        {"b2", {"b1", "b1", "b1"}, true, -1},
        {"b2", {"a2", "b2", "b2"}, true, -1},
        /* sentinels that were set up anew count from 0 */
        {"b2", {"a0", "a0", "-"}, true, 0},
        {"b2", {"a0", "a0", "-"}, false, -1},
        {"b2", {"a0", "c0", "-"}, true, -1},
        {"b2", {"c2", "c2", "b2"}, true, 0},
        /* nobody answers: what is known stays */
        {"b2", {"-", "-", "-"}, true, -1},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct sentinel_answer known = answer_of(rows[i].known), answers[3];
        for (size_t n = 0; n < 3; n++)
            answers[n] = answer_of(rows[i].answers[n]);
        int chosen = sentinel_choose(&known, rows[i].failed, answers, 3);
        if (chosen != rows[i].chosen)
            test_fail(__FILE__, __LINE__, "row %zu chooses %d", i, chosen);
    }
}
