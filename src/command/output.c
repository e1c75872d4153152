/* Prints tables: computes the widths of the columns, then prints the rows. */
#include "command/output.h"
#include "base/json.h"

#include <stdlib.h>
#include <unistd.h>

/* A table of more than TABLE_COLUMNS columns does not fit on a screen. Each of its rows is shown as
 * several lines, each with the name of a column and its value. */
enum { MAX_COLUMNS = 24, TABLE_COLUMNS = 16, GAP = 2 };

void output_init(struct output *o, const struct output_column *columns, size_t count)
{
    BUG_ON(count == 0 || count > MAX_COLUMNS);
    *o = (struct output){.columns = columns, .column_count = count};
    arena_init(&o->arena, 0);
}

void output_release(struct output *o)
{
    vec_release(&o->cells);
    arena_release(&o->arena);
}

/* Adds a cell. A line break or a tab becomes a space, and other control characters become '?',
 * because a text that came from a peer must not control the terminal. */
void output_cell(struct output *o, struct str text)
{
    char *copy = arena_z(&o->arena, text);

    for (size_t i = 0; copy && i < text.len; i++)
        if (copy[i] == '\n' || copy[i] == '\t')
            copy[i] = ' ';
        else if ((unsigned char)copy[i] < 0x20 || copy[i] == 0x7f)
            copy[i] = '?';
    vec_push(&o->cells, str_n(copy, copy ? text.len : 0));
}

void output_cellf(struct output *o, const char *fmt, ...)
{
    struct buf text = BUF_INIT(64 * KIB);
    va_list ap;

    va_start(ap, fmt);
    buf_vappendf(&text, fmt, ap);
    va_end(ap);
    output_cell(o, buf_str(&text));
    buf_release(&text);
}

/* Returns the width of the text on a terminal, assuming that each code point takes one column. */
static size_t cell_width(struct str s)
{
    size_t width = 0;

    for (size_t i = 0; i < s.len; i++)
        width += ((unsigned char)s.p[i] & 0xc0) != 0x80;
    return width;
}

static void print_row(const struct output *o, const struct str *cells, const size_t *widths,
                      FILE *out)
{
    for (size_t i = 0; i < o->column_count; i++) {
        bool last = i + 1 == o->column_count;
        int pad = (int)(widths[i] - cell_width(cells[i]));
        if (o->columns[i].number)
            fprintf(out, "%*s" STR_FMT "%*s", pad, "", STR_ARG(cells[i]), last ? 0 : GAP, "");
        else
            fprintf(out, STR_FMT "%*s", STR_ARG(cells[i]), last ? 0 : pad + GAP, "");
    }
    fputc('\n', out);
}

static void print_blocks(const struct output *o, FILE *out)
{
    size_t width = 0;

    for (size_t i = 0; i < o->column_count; i++)
        width = size_max(width, strlen(o->columns[i].name));
    for (size_t i = 0; i < o->cells.len; i++) {
        size_t column = i % o->column_count;
        if (i && column == 0)
            fputc('\n', out);
        fprintf(out, "%-*s" STR_FMT "\n", (int)(width + GAP), o->columns[column].name,
                STR_ARG(o->cells.items[i]));
    }
}

void output_print(const struct output *o, FILE *out)
{
    bool colour = isatty(fileno(out)) && !getenv("NO_COLOR");
    size_t widths[MAX_COLUMNS];
    struct str head[MAX_COLUMNS];

    BUG_ON(o->column_count == 0);
    if (o->column_count > TABLE_COLUMNS) {
        print_blocks(o, out);
        return;
    }
    for (size_t i = 0; i < o->column_count; i++) {
        head[i] = str_z(o->columns[i].name);
        widths[i] = cell_width(head[i]);
    }
    for (size_t i = 0; i < o->cells.len; i++) {
        size_t column = i % o->column_count;
        widths[column] = size_max(widths[column], cell_width(o->cells.items[i]));
    }
    fputs(colour ? "\033[1m" : "", out);
    print_row(o, head, widths, out);
    fputs(colour ? "\033[0m" : "", out);
    for (size_t i = 0; i < o->cells.len; i += o->column_count)
        print_row(o, &o->cells.items[i], widths, out);
}

static bool cell_is_json(struct str text)
{
    json_t *json = NULL;
    bool ok = json_read(&json, text, NULL) == 0;

    json_decref(json);
    return ok;
}

/* Whether the text is a number; it may be negative or have a fraction. */
static bool cell_is_number(struct str text)
{
    json_t *json = json_loadb(text.p ? text.p : "", text.len, JSON_DECODE_ANY, NULL);
    bool ok = json_is_number(json);

    json_decref(json);
    return ok;
}

/* Whether a cell of this column is written into the JSON unquoted, and not as a string. */
static bool cell_is_raw(const struct output_column *column, struct str text)
{
    return (column->number && cell_is_number(text)) || (column->json && cell_is_json(text));
}

static bool cell_is_truth(const struct output_column *column, struct str text)
{
    return column->truth && (str_eq(text, STR("yes")) || str_eq(text, STR("no")));
}

static void write_json_cell(struct json_out *w, const struct output_column *column, struct str text)
{
    uint64_t number;

    json_out_key(w, column->name);
    if (column->number && str_u64(text, &number) == 0)
        json_out_u64(w, number);
    else if (cell_is_raw(column, text))
        json_out_raw(w, text);
    else if (cell_is_truth(column, text))
        json_out_bool(w, str_eq(text, STR("yes")));
    else
        json_out_str(w, text);
}

void output_print_json(const struct output *o, FILE *out)
{
    struct buf text = {0};
    struct json_out w;

    json_out_init(&w, &text);
    json_out_open(&w, '[');
    for (size_t i = 0; i < o->cells.len; i++) {
        size_t column = i % o->column_count;
        if (column == 0)
            json_out_open(&w, '{');
        write_json_cell(&w, &o->columns[column], o->cells.items[i]);
        if (column + 1 == o->column_count)
            json_out_close(&w, '}');
    }
    json_out_close(&w, ']');
    fprintf(out, "%s\n", text.p);
    buf_release(&text);
}
