/* budget: a bound that many share; what an arena and a buf do when memory is out. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "unit/test.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(budget, takes_no_more_than_there_is_and_what_comes_back_can_be_taken_again)
{
    struct budget b;

    budget_init(&b, 100, NULL);
    CHECK(budget_take(&b, 60));
    CHECK(!budget_take(&b, 41));
    CHECK(budget_take(&b, 40));
    CHECK(!budget_take(&b, 1));
    budget_give(&b, 40);
    CHECK(budget_take(&b, 1));
    CHECK(!budget_take(&b, SIZE_MAX));
    CHECK_INT(b.used, 61);
}

TEST(budget, a_part_takes_from_the_whole_and_leaves_the_rest_to_others)
{
    struct budget whole, part;

    budget_init(&whole, 100, NULL);
    budget_init(&part, 25, &whole);
    CHECK(budget_take(&part, 25));
    CHECK(!budget_take(&part, 1));
    CHECK(budget_take(&whole, 75));
    budget_give(&part, 10);
    CHECK_INT(whole.used, 90);
    CHECK(budget_take(&whole, 10));
    CHECK(!budget_take(&part, 1)); /* its own share is free, the whole is not */
    CHECK_INT(part.used, 15);
}

TEST(budget, an_arena_fails_past_it_and_gives_back_what_it_took)
{
    struct budget b;
    struct arena a = ARENA_INIT(MIB);

    budget_init(&b, 64 * KIB, NULL);
    CHECK(arena_alloc(&a, 100)); /* what it had before is not charged */
    arena_charge(&a, &b);
    CHECK(arena_alloc(&a, 40 * KIB));
    CHECK(b.used >= 40 * KIB);
    CHECK(!arena_alloc(&a, 40 * KIB));
    CHECK_ERR(arena_error(&a), ERR_NO_MEMORY);
    arena_reset(&a);
    CHECK_INT(b.used, 0);
    CHECK(arena_alloc(&a, 100 * KIB)); /* and is charged no more */
    CHECK_INT(b.used, 0);
    arena_reset(&a);
    arena_charge(&a, &b);
    CHECK(arena_alloc(&a, 30 * KIB));
    arena_release(&a);
    CHECK_INT(b.used, 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* In a child, whose memory ends at once. */
static int grow_without_memory(void)
{
    struct rlimit none = {MIB, MIB};
    struct buf b = BUF_INIT(4 * GIB);
    int code;

    buf_append_str(&b, STR("kept"));
    if (setrlimit(RLIMIT_AS, &none) < 0)
        return 1;
    code = buf_reserve(&b, GIB) == NULL && buf_error(&b) == ERR_NO_MEMORY ? 0 : 2;
    if (code == 0 && !str_eq(buf_str(&b), STR("kept")))
        code = 3;
    buf_reset(&b);
    return code ? code : buf_error(&b) == 0 ? 0 : 4;
}

TEST(buf, growth_for_which_there_is_no_memory_is_an_error_and_no_abort)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0)
        _exit(grow_without_memory());
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), 0);
}
#endif
