/* Tables for people, and the same rows as JSON for programs. */
#ifndef COMMAND_OUTPUT_H
#define COMMAND_OUTPUT_H

#include "base/arena.h"
#include "base/vec.h"

#include <stdio.h>

struct output_column {
    const char *name; /* the column's head, and the name of the member in JSON */
    bool number;      /* aligned right; a number in JSON */
    bool json;        /* in JSON, a cell that is valid JSON is written unquoted */
    bool truth;       /* in JSON, the cells "yes" and "no" are true and false */
};

/* A table. Rows are filled cell by cell, left to right. */
struct output {
    const struct output_column *columns; /* borrowed */
    size_t column_count;
    VEC(struct str) cells; /* in the arena */
    struct arena arena;
};

void output_init(struct output *o, const struct output_column *columns, size_t count);
void output_release(struct output *o);

void output_cell(struct output *o, struct str text); /* the text is copied */
void output_cellf(struct output *o, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Prints aligned columns. Their names are in bold when `out` is a terminal and NO_COLOR is not set.
 * When there are too many columns for a screen, each row is printed as several lines, one for each
 * column. */
void output_print(const struct output *o, FILE *out);
/* Prints an array with an object for each row, and a line break. */
void output_print_json(const struct output *o, FILE *out);

#endif
