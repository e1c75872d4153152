/* Tables and their JSON. */
#include "command/output.h"
#include "unit/test.h"

#include <stdlib.h>

static const struct output_column columns[] = {{"name", false}, {"size", true}, {"note", false}};

static const struct output_column many[17] = {{"name"}, {"size", true}, {"c"}, {"d"}, {"e"}, {"f"},
                                              {"g"},    {"h"},          {"i"}, {"j"}, {"k"}, {"l"},
                                              {"m"},    {"n"},          {"o"}, {"p"}, {"q"}};

static void fill(struct output *o)
{
    output_init(o, columns, ARRAY_SIZE(columns));
    output_cell(o, STR("a"));
    output_cellf(o, "%d", 5);
    output_cell(o, STR("first"));
    output_cell(o, STR("größe"));
    output_cellf(o, "%d", 12345);
    output_cell(o, STR("a\033[2Jb\n"));
}

static void expect(void (*print)(const struct output *, FILE *), const char *want)
{
    struct output o;
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    fill(&o);
    print(&o, out);
    fclose(out);
    CHECK_STR(str_n(text, len), str_z(want));
    free(text);
    output_release(&o);
}

TEST(output, columns_are_aligned_and_control_characters_harmless)
{
    expect(output_print, "name    size  note\n"
                         "a          5  first\n"
                         "größe  12345  a?[2Jb \n");
}

TEST(output, the_same_rows_are_json_with_numbers)
{
    expect(output_print_json, "[{\"name\":\"a\",\"size\":5,\"note\":\"first\"},"
                              "{\"name\":\"größe\",\"size\":12345,\"note\":\"a?[2Jb \"}]\n");
}

TEST(output, a_row_of_many_columns_is_lines)
{
    struct output o;
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    output_init(&o, many, ARRAY_SIZE(many));
    for (size_t i = 0; i < 2 * ARRAY_SIZE(many); i++)
        output_cellf(&o, "%zu", i);
    output_print(&o, out);
    fclose(out);
    CHECK(str_starts(str_n(text, len), STR("name  0\nsize  1\nc     2\n")));
    CHECK(str_find(str_n(text, len), STR("q     16\n\nname  17\n")) > 0);
    free(text);
    output_release(&o);
}
