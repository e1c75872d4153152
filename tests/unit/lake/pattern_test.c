/* Patterns of protected branches. */
#include "lake/protect.h"

#include "unit/test.h"

struct pattern_case {
    const char *pattern, *name;
    bool matches;
};

static const struct pattern_case cases[] = {
    {"main", "main", true},
    {"main", "main2", false},
    {"main", "mai", false},
    {"", "", true},
    {"", "a", false},
    {"*", "", true},
    {"*", "anything", true},
    {"?", "", false},
    {"?", "a", true},
    {"?", "ab", false},
    {"stable-*", "stable-", true},
    {"stable-*", "stable-1.2", true},
    {"stable-*", "unstable-1", false},
    {"*-stable", "1-stable", true},
    {"*-stable", "1-stable-2", false},
    {"a*b*c", "abc", true},
    {"a*b*c", "a-b-b-c", true},
    {"a*b*c", "a-c-b", false},
    {"a**c", "ac", true},
    {"a?c*", "abc", true},
    {"a?c*", "ac", false},
    {"*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
};

TEST(lake_protect, a_pattern_matches_whole_names_with_stars_and_question_marks)
{
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        CHECK(lake_pattern_matches(str_z(cases[i].pattern), str_z(cases[i].name)) ==
              cases[i].matches);
}
