/* Writes help as text for the terminal. */
#include "command/help.h"
#include "conf/keys.h"

enum { WIDTH = 92, FLAG_COLUMN = 28 };

void help_wrap(FILE *out, const char *text, int indent, int width)
{
    struct str rest = str_z(text), word;
    int column = 0;

    while (str_token(&rest, " \n", &word)) {
        if (column == 0)
            column = fprintf(out, "%*s", indent, "");
        else if (column + 1 + (int)word.len > width)
            column = fprintf(out, "\n%*s", indent, "") - 1;
        else
            column += fprintf(out, " ");
        column += fprintf(out, STR_FMT, STR_ARG(word));
    }
    fputc('\n', out);
}

bool help_in_group(const struct command *c, struct str group)
{
    struct str name = str_z(c->name);

    return !group.len ||
           (str_starts(name, group) && name.len > group.len && name.p[group.len] == ' ');
}

bool help_group(const struct command_table *table, struct str group, FILE *out)
{
    size_t width = 0;

    for (size_t i = 0; i < table->count; i++)
        if (help_in_group(&table->rows[i], group))
            width = size_max(width, strlen(table->rows[i].name));
    if (!width)
        return false;
    for (size_t i = 0; i < table->count; i++)
        if (help_in_group(&table->rows[i], group))
            fprintf(out, "  %-*s  %s\n", (int)width, table->rows[i].name, table->rows[i].summary);
    fputs("\n`weir help COMMAND` says more about one of them.\n", out);
    return true;
}

void help_overview(const struct command_table *table, FILE *out)
{
    fputs("weir stands in front of object storage: one S3 endpoint, many storages.\n\n"
          "usage: weir COMMAND [FLAGS] [ARGUMENTS]\n\n",
          out);
    help_group(table, STR_EMPTY, out);
}

void help_usage(const struct command *c, FILE *out)
{
    fprintf(out, "weir %s%s%s%s", c->name, c->flags || c->configured ? " [FLAGS]" : "",
            c->arguments ? " " : "", c->arguments ? c->arguments : "");
}

void help_flag_name(struct buf *out, const struct flag *flag)
{
    if (flag->letter)
        buf_appendf(out, "-%c, ", flag->letter);
    buf_appendf(out, "--%s%s%s", flag->name, flag->value ? " " : "",
                flag->value ? flag->value : "");
}

static void help_flag_line(FILE *out, const char *name, const char *doc)
{
    fprintf(out, "  %-*s", FLAG_COLUMN, name);
    if (strlen(name) >= FLAG_COLUMN)
        fprintf(out, "\n  %*s", FLAG_COLUMN, "");
    fprintf(out, "%s\n", doc);
}

static void help_flags(FILE *out, const struct flag *flags)
{
    for (; flags && flags->type != FLAG_END; flags++) {
        struct buf name = BUF_INIT(256);
        help_flag_name(&name, flags);
        help_flag_line(out, name.p, flags->doc);
        buf_release(&name);
    }
}

void help_paragraphs(FILE *out, const char *text, int width)
{
    for (struct str rest = str_z(text); rest.len > 0;) {
        ptrdiff_t gap = str_find(rest, STR("\n\n"));
        char *paragraph = str_dup(gap < 0 ? rest : str_head(rest, (size_t)gap));
        help_wrap(out, paragraph, 0, width);
        if (gap >= 0)
            fputc('\n', out);
        free(paragraph);
        rest = gap < 0 ? STR_EMPTY : str_skip(rest, (size_t)gap + 2);
    }
}

void help_command(const struct command *c, FILE *out)
{
    fprintf(out, "usage: ");
    help_usage(c, out);
    fprintf(out, "\n\n");
    help_paragraphs(out, c->help, WIDTH);
    fputc('\n', out);
    if (c->flags || c->configured)
        fprintf(out, "flags:\n");
    help_flags(out, c->flags);
    if (c->configured) {
        help_flags(out, config_flags);
        help_flag_line(out, "--data PATH", conf_key_find(STR("data"))->doc);
        help_flag_line(out, "--KEY VALUE", "Any configuration key; `weir config` lists them.");
    }
    if (c->examples) {
        struct str rest = str_z(c->examples), line;
        fprintf(out, "%sexamples:\n", c->flags || c->configured ? "\n" : "");
        while (str_token(&rest, "\n", &line))
            fprintf(out, "  " STR_FMT "\n", STR_ARG(line));
    }
}
