/* The unit test runner: tests register themselves, each runs in a process of its own with a time
 * limit, so a crash or a hang is one failed test. Names are sentences.
 *
 *     TEST(buf, growth_stops_at_the_limit)
 *     {
 *         struct buf b = BUF_INIT(4);
 *         buf_append_z(&b, "hello");
 *         CHECK(b.failed);
 *         CHECK_INT(b.len, 0);
 *     }
 *
 * A failed check prints both sides and ends the test. Own runner rather than Criterion: under
 * ThreadSanitizer its sandbox cannot start, and a leak that AddressSanitizer finds does not fail
 * the test that leaked. */
#ifndef TESTS_UNIT_TEST_H
#define TESTS_UNIT_TEST_H

#include "base/buf.h"
#include "base/err.h"

struct test {
    const char *suite, *name;
    void (*fn)(void);
    unsigned seconds; /* how long it may take; 0: 180 */
    const char *file; /* where it is written: its folder below tests/unit is its room */
};

void test_register(struct test *t);
NORETURN void test_fail(const char *file, int line, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* A short pause; false when 50 seconds have passed since the first, which found *since 0. */
bool test_waits(uint64_t *since);

/* A folder of this test's own, removed afterwards. */
const char *test_dir(void);

/* An environment value that a suite needs (the redis-server under test); ends the test as skipped
 * when it is not set. */
const char *test_need(const char *variable);

#define TEST_TIMEOUT(suite, name, seconds)                                                         \
    static void test_##suite##_##name(void);                                                       \
    __attribute__((constructor)) static void register_##suite##_##name(void)                       \
    {                                                                                              \
        static struct test t = {#suite, #name, test_##suite##_##name, seconds, __FILE__};          \
        test_register(&t);                                                                         \
    }                                                                                              \
    static void test_##suite##_##name(void)

#define TEST(suite, name) TEST_TIMEOUT(suite, name, 0)

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond))                                                                               \
            test_fail(__FILE__, __LINE__, "%s", #cond);                                            \
    } while (0)

/* Waits for what another thread or process brings about. */
#define CHECK_SOON(cond)                                                                           \
    do {                                                                                           \
        uint64_t since_ = 0;                                                                       \
        while (!(cond))                                                                            \
            if (!test_waits(&since_))                                                              \
                test_fail(__FILE__, __LINE__, "still not: %s", #cond);                             \
    } while (0)

#define CHECK_INT(got, want)                                                                       \
    do {                                                                                           \
        long long got_ = (long long)(got), want_ = (long long)(want);                              \
        if (got_ != want_)                                                                         \
            test_fail(__FILE__, __LINE__, "%s is %lld, not %lld", #got, got_, want_);              \
    } while (0)

#define CHECK_STR(got, want)                                                                       \
    do {                                                                                           \
        struct str got_ = (got), want_ = (want);                                                   \
        if (!str_eq(got_, want_))                                                                  \
            test_fail(__FILE__, __LINE__, "%s is '" STR_FMT "', not '" STR_FMT "'", #got,          \
                      STR_ARG(got_), STR_ARG(want_));                                              \
    } while (0)

/* A call that must succeed; prints the error's text when not. `err` must be a struct err in scope.
 */
#define CHECK_OK(call)                                                                             \
    do {                                                                                           \
        int code_ = (call);                                                                        \
        if (code_ < 0)                                                                             \
            test_fail(__FILE__, __LINE__, "%s: %s: %s", #call, err_name(code_), err.text);         \
    } while (0)

#define CHECK_ERR(call, code)                                                                      \
    do {                                                                                           \
        int code_ = (call);                                                                        \
        if (code_ != (code))                                                                       \
            test_fail(__FILE__, __LINE__, "%s is %s, not %s", #call, err_name(code_),              \
                      err_name(code));                                                             \
    } while (0)

#endif
