/* The check of histories. */
#include "unit/shard/linear.h"
#include "base/clock.h"
#include "base/ids.h"
#include "unit/test.h"

/* Ops of one key, with times in ticks. */
#define READ(b, e, v)                                                                              \
    {                                                                                              \
        0, LINEAR_READ, LINEAR_DONE, v, 0, b, e                                                    \
    }
#define WRITE(b, e, v)                                                                             \
    {                                                                                              \
        0, LINEAR_WRITE, LINEAR_DONE, v, 0, b, e                                                   \
    }
#define LOST(b, v)                                                                                 \
    {                                                                                              \
        0, LINEAR_WRITE, LINEAR_UNKNOWN, v, 0, b, 0                                                \
    }
#define SWAP(b, e, x, v)                                                                           \
    {                                                                                              \
        0, LINEAR_SWAP, LINEAR_DONE, v, x, b, e                                                    \
    }
#define NOSWAP(b, e, x)                                                                            \
    {                                                                                              \
        0, LINEAR_SWAP, LINEAR_REFUSED, 999, x, b, e                                               \
    }
#define LOSTSWAP(b, x, v)                                                                          \
    {                                                                                              \
        0, LINEAR_SWAP, LINEAR_UNKNOWN, v, x, b, 0                                                 \
    }

static void expect(enum linear_verdict want, const struct linear_op *ops, size_t count)
{
    struct buf why = {0};
    enum linear_verdict got = linear_check_key(ops, count, &why);

    if (got != want)
        test_fail(__FILE__, __LINE__, "verdict %d, not %d: " STR_FMT, got, want,
                  STR_ARG(buf_str(&why)));
    CHECK((why.len > 0) == (want != LINEAR_RIGHT));
    buf_release(&why);
}

#define RIGHT(...)                                                                                 \
    do {                                                                                           \
        const struct linear_op ops_[] = {__VA_ARGS__};                                             \
        expect(LINEAR_RIGHT, ops_, ARRAY_SIZE(ops_));                                              \
    } while (0)
#define WRONG(...)                                                                                 \
    do {                                                                                           \
        const struct linear_op ops_[] = {__VA_ARGS__};                                             \
        expect(LINEAR_WRONG, ops_, ARRAY_SIZE(ops_));                                              \
    } while (0)

TEST(shard_linear, requests_one_after_the_other_see_the_last_write)
{
    expect(LINEAR_RIGHT, NULL, 0);
    RIGHT(READ(1, 2, 0), WRITE(3, 4, 7), READ(5, 6, 7), WRITE(7, 8, 0), READ(9, 10, 0));
    WRONG(READ(1, 2, 7));
    WRONG(WRITE(1, 2, 7), READ(3, 4, 0));
    WRONG(WRITE(1, 2, 7), WRITE(3, 4, 8), READ(5, 6, 7));
    WRONG(WRITE(1, 2, 7), WRITE(3, 4, 0), READ(5, 6, 7));
    WRONG(READ(1, 2, 7), WRITE(3, 4, 7)); /* read before it was written */
}

TEST(shard_linear, a_read_beside_a_write_sees_the_old_or_the_new_value)
{
    RIGHT(WRITE(1, 2, 7), WRITE(3, 10, 8), READ(4, 5, 7), READ(6, 7, 8));
    RIGHT(WRITE(1, 2, 7), WRITE(3, 10, 8), READ(4, 8, 8), READ(5, 9, 7));
    WRONG(WRITE(1, 2, 7), WRITE(3, 10, 8), READ(4, 5, 8), READ(6, 7, 7)); /* back in time */
    WRONG(WRITE(1, 2, 7), WRITE(3, 10, 8), READ(11, 12, 7));
}

TEST(shard_linear, writes_beside_each_other_have_one_order_for_all)
{
    RIGHT(WRITE(1, 10, 7), WRITE(1, 10, 8), READ(2, 3, 7), READ(4, 5, 8), READ(11, 12, 8));
    WRONG(WRITE(1, 10, 7), WRITE(1, 10, 8), READ(2, 3, 7), READ(4, 5, 8), READ(11, 12, 7));
    WRONG(WRITE(1, 2, 7), WRITE(1, 2, 8), READ(3, 4, 7), READ(5, 6, 8));
}

TEST(shard_linear, a_lost_answer_may_be_an_effect_at_any_time_or_none)
{
    RIGHT(WRITE(1, 2, 7), LOST(3, 8), READ(5, 6, 7), READ(7, 8, 7));
    RIGHT(WRITE(1, 2, 7), LOST(3, 8), READ(5, 6, 7), READ(7, 8, 8));
    RIGHT(LOST(3, 0), WRITE(4, 5, 7), READ(6, 7, 7), READ(8, 9, 0)); /* a late delete */
    RIGHT(LOST(1, 7), LOST(2, 8), READ(3, 4, 8), READ(5, 6, 7));
    WRONG(WRITE(1, 2, 7), LOST(3, 8), READ(5, 6, 8), READ(7, 8, 7)); /* seen, then gone */
    WRONG(READ(1, 2, 8), LOST(3, 8));                                /* before its beginning */
    WRONG(LOST(3, 0), WRITE(4, 5, 7), READ(6, 7, 0), READ(8, 9, 7));
    /* One lost delete cannot take effect twice. */
    WRONG(LOST(1, 0), WRITE(2, 3, 7), READ(4, 5, 0), WRITE(6, 7, 8), READ(8, 9, 0));
    RIGHT(LOST(1, 0), LOST(1, 0), WRITE(2, 3, 7), READ(4, 5, 0), WRITE(6, 7, 8), READ(8, 9, 0));
}

TEST(shard_linear, conditions_are_judged_on_the_value_of_their_moment)
{
    RIGHT(SWAP(1, 2, 0, 7), NOSWAP(3, 4, 0), SWAP(5, 6, 7, 8), READ(7, 8, 8));
    RIGHT(SWAP(1, 2, 0, 7), SWAP(3, 4, LINEAR_ANY, 8), SWAP(5, 6, 8, 0), NOSWAP(7, 8, LINEAR_ANY));
    WRONG(SWAP(1, 9, 0, 7), SWAP(2, 8, 0, 8));                 /* two winners */
    WRONG(WRITE(1, 2, 7), SWAP(3, 9, 7, 8), SWAP(4, 8, 7, 9)); /* a lost update */
    WRONG(NOSWAP(1, 2, 0));                                    /* refused without reason */
    WRONG(WRITE(1, 2, 7), NOSWAP(3, 4, 7));
    WRONG(WRITE(1, 2, 7), NOSWAP(3, 4, LINEAR_ANY));
    WRONG(WRITE(1, 2, 7), SWAP(3, 4, 0, 8));
    RIGHT(LOST(1, 7), NOSWAP(3, 4, 0)); /* the lost write is the reason */
    RIGHT(WRITE(1, 2, 7), LOSTSWAP(3, 7, 8), NOSWAP(4, 5, 7));
    RIGHT(WRITE(1, 2, 7), LOSTSWAP(3, 7, 8), SWAP(4, 5, 8, 9), READ(6, 7, 9));
    WRONG(WRITE(1, 2, 7), LOSTSWAP(3, 7, 8), SWAP(4, 5, 7, 9), READ(6, 7, 8));
    /* A lost swap that was seen must itself have seen a lost write. */
    RIGHT(LOST(1, 7), LOSTSWAP(2, 7, 8), READ(3, 4, 8));
    WRONG(LOSTSWAP(2, 7, 8), READ(3, 4, 8));
}

TEST(shard_linear, keys_are_checked_one_by_one)
{
    struct linear h;
    struct buf why = {0};

    linear_init(&h);
    CHECK_INT(linear_check(&h, &why), LINEAR_RIGHT);
    linear_add(&h, &(struct linear_op){2, LINEAR_READ, LINEAR_DONE, 7, 0, 5, 6});
    linear_add(&h, &(struct linear_op){1, LINEAR_READ, LINEAR_DONE, 0, 0, 5, 6});
    linear_add(&h, &(struct linear_op){2, LINEAR_WRITE, LINEAR_DONE, 7, 0, 1, 2});
    CHECK_INT(linear_check(&h, &why), LINEAR_RIGHT);
    linear_add(&h, &(struct linear_op){1, LINEAR_READ, LINEAR_DONE, 7, 0, 8, 9});
    CHECK_INT(linear_check(&h, &why), LINEAR_WRONG);
    CHECK(str_find(buf_str(&why), STR("key 1:")) >= 0);
    buf_release(&why);
    linear_release(&h);
}

/* --- all orders of small histories --- */

enum { SMALL = 6 };

/* Whether the ops that are not in `done` can follow when the value is `value`: by trying all. */
static bool small_fits(const struct linear_op *ops, int count, unsigned done, uint64_t value)
{
    uint64_t first_end = UINT64_MAX;
    bool complete = true;

    for (int i = 0; i < count; i++) {
        if (done & 1U << i || ops[i].outcome == LINEAR_UNKNOWN)
            continue;
        complete = false;
        first_end = ops[i].end_ns < first_end ? ops[i].end_ns : first_end;
    }
    if (complete)
        return true;
    for (int i = 0; i < count; i++) {
        const struct linear_op *op = &ops[i];
        bool holds = op->kind != LINEAR_SWAP ||
                     (op->expected == LINEAR_ANY ? value != 0 : value == op->expected);
        bool read = op->kind == LINEAR_READ || op->outcome == LINEAR_REFUSED;
        if (done & 1U << i || op->begin_ns > first_end)
            continue;
        if (op->kind == LINEAR_READ && op->outcome == LINEAR_DONE && op->value != value)
            continue;
        if (op->outcome == LINEAR_REFUSED ? holds : !holds)
            continue;
        if (small_fits(ops, count, done | 1U << i, read ? value : op->value))
            return true;
    }
    return false;
}

static void small_history(struct linear_op *ops, int count)
{
    for (int i = 0; i < count; i++) {
        uint64_t begin = random_below(12), old = random_below((uint64_t)count + 1);
        ops[i] = (struct linear_op){
            .kind = (enum linear_kind)random_below(3),
            .begin_ns = begin,
            .end_ns = begin + random_below(6),
        };
        if (ops[i].kind == LINEAR_READ) {
            ops[i].value = old; /* op i writes i + 1 */
            continue;
        }
        ops[i].value = random_below(3) ? (uint64_t)i + 1 : LINEAR_ABSENT;
        if (random_below(4) == 0)
            ops[i].outcome = LINEAR_UNKNOWN;
        if (ops[i].kind == LINEAR_WRITE)
            continue;
        ops[i].expected = random_below(5) ? old : LINEAR_ANY;
        if (ops[i].outcome == LINEAR_DONE && random_below(2))
            ops[i].outcome = LINEAR_REFUSED;
    }
}

TEST(shard_linear, the_search_agrees_with_trying_all_orders)
{
    struct linear_op ops[SMALL];
    int right = 0, wrong = 0;

    for (int round = 0; round < 200000; round++) {
        int count = 1 + (int)random_below(SMALL);
        struct buf why = {0};
        small_history(ops, count);
        bool fits = small_fits(ops, count, 0, LINEAR_ABSENT);
        enum linear_verdict got = linear_check_key(ops, (size_t)count, &why);
        if (fits != (got == LINEAR_RIGHT))
            test_fail(__FILE__, __LINE__, "round %d: the history is %s: " STR_FMT, round,
                      fits ? "right" : "wrong", STR_ARG(buf_str(&why)));
        right += fits;
        wrong += !fits;
        buf_release(&why);
    }
    CHECK(right > 10000 && wrong > 10000);
}

/* --- long histories --- */

enum { MANY = 10000, CLIENTS = 16 };

/* A history of a register: each request takes effect at a random moment of its time. A client's
 * requests follow each other. */
static void long_history(struct linear_op *ops, unsigned lost_percent)
{
    uint64_t now[CLIENTS] = {0}, value = LINEAR_ABSENT;
    struct {
        uint64_t at;
        int op;
    } order[MANY];

    for (int i = 0; i < MANY; i++) {
        uint64_t *t = &now[i % CLIENTS], length = 1 + random_below(i % 500 ? 100 : 20000);
        bool lost = random_below(100) < lost_percent;
        ops[i] = (struct linear_op){.begin_ns = *t + 1, .end_ns = *t + 1 + length};
        ops[i].kind = lost ? LINEAR_WRITE : (enum linear_kind)random_below(3);
        ops[i].outcome = lost ? LINEAR_UNKNOWN : LINEAR_DONE;
        order[i].at = *t + 1 + random_below(length + 1) + (lost ? random_below(3000) : 0);
        order[i].op = i;
        *t += 1 + length;
    }
    for (int gap = MANY / 2; gap > 0; gap /= 2) /* Shell's sort */
        for (int i = gap; i < MANY; i++)
            for (int k = i; k >= gap && order[k - gap].at > order[k].at; k -= gap) {
                __typeof__(order[0]) other = order[k];
                order[k] = order[k - gap];
                order[k - gap] = other;
            }
    for (int i = 0; i < MANY; i++) {
        struct linear_op *op = &ops[order[i].op];
        if (op->kind == LINEAR_READ) {
            op->value = value;
            continue;
        }
        op->value = random_below(5) ? (uint64_t)order[i].op + 1 : LINEAR_ABSENT;
        const struct linear_op *seen = &ops[order[random_below((uint64_t)i + 1)].op];
        op->expected = random_below(2) || seen->outcome ? value : seen->value;
        if (op->kind == LINEAR_SWAP && op->expected != value)
            op->outcome = LINEAR_REFUSED;
        else if (op->outcome != LINEAR_UNKNOWN || random_below(2))
            value = op->value;
    }
}

TEST(shard_linear, ten_thousand_requests_on_a_key_are_checked_soon)
{
    static struct linear_op ops[MANY];
    static const unsigned lost[] = {0, 1, 5, 20};

    for (size_t i = 0; i < ARRAY_SIZE(lost); i++) {
        uint64_t begin = clock_mono_ns();
        long_history(ops, lost[i]);
        expect(LINEAR_RIGHT, ops, MANY);
        CHECK(clock_mono_ns() - begin < 20 * NS_PER_S);
    }
}

static bool is_done_write(const struct linear_op *op)
{
    return op->kind == LINEAR_WRITE && op->outcome == LINEAR_DONE && op->value != LINEAR_ABSENT;
}

/* The read and both writes are of one client, which makes one request at a time. */
TEST(shard_linear, one_stale_read_among_ten_thousand_requests_is_found)
{
    static struct linear_op ops[MANY];

    for (int round = 0; round < 5; round++) {
        long_history(ops, round % 2);
        size_t last = MANY - 1;
        while (ops[last].kind != LINEAR_READ)
            last--;
        size_t newer = last - CLIENTS;
        while (!is_done_write(&ops[newer]))
            newer -= CLIENTS;
        size_t old = newer - MANY / 2 / CLIENTS * CLIENTS;
        while (!is_done_write(&ops[old]))
            old -= CLIENTS;
        ops[last].value = ops[old].value;
        struct buf why = {0};
        CHECK_INT(linear_check_key(ops, MANY, &why), LINEAR_WRONG);
        CHECK(why.len > 0);
        buf_release(&why);
    }
}

TEST(shard_linear, an_object_that_vanishes_among_ten_thousand_requests_is_found)
{
    static struct linear_op ops[MANY];
    struct buf why = {0};
    size_t last = MANY - 1;

    long_history(ops, 0);
    for (size_t i = 0; i < MANY; i++) /* writes instead of deletes, and nobody saw them */
        if (ops[i].kind != LINEAR_READ && ops[i].outcome == LINEAR_DONE && !ops[i].value)
            ops[i].value = MANY + i + 1;
    while (ops[last].kind != LINEAR_READ)
        last--;
    ops[last].value = LINEAR_ABSENT;
    CHECK(linear_check_key(ops, MANY, &why) != LINEAR_RIGHT);
    buf_release(&why);
}
