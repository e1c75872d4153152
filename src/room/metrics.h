/* Metrics are rows of a table: a name, a help text, and the place of the number in a struct. A room
 * defines a table. For each request for metrics, a function of the room adds the structs from which
 * the numbers are read.
 *
 *     enum { FROM_BAKERY };
 *     static const struct metric metrics[] = {
 *         {"weir_bakery_loaves_total", METRIC_COUNTER, "Loaves baked.",
 *          METRIC_ONE(FROM_BAKERY, struct bakery_stats, loaves)},
 *     };
 *     metric_numbers_add(out, FROM_BAKERY, &stats); */
#ifndef ROOM_METRICS_H
#define ROOM_METRICS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/vec.h"

enum metric_type { METRIC_COUNTER, METRIC_GAUGE };

/* A series of a metric. It has one line for each struct of numbers. */
struct metric_series {
    /* Fixed labels as they are written, such as "state=\"active\""; NULL: none. */
    const char *labels;
    size_t offset; /* offset of a uint64_t in the struct of numbers */
};

struct metric {
    const char *name;
    enum metric_type type;
    const char *help; /* the help text: one sentence */
    unsigned kind;    /* the struct of numbers to which the offsets refer; the owner of the table
                       * numbers its structs */
    size_t count;
    const struct metric_series *series;
    unsigned divisor; /* 1000 shows milliseconds as seconds; 0: the number is shown as it is */
};

#define METRIC_SEVERAL(from, table) .kind = (from), .count = ARRAY_SIZE(table), .series = (table)
#define METRIC_ONE(from, type, member)                                                             \
    .kind = (from), .count = 1,                                                                    \
    .series = (&(const struct metric_series){NULL, offsetof(type, member)})

/* A struct of numbers. Several structs of one kind differ in their label. */
struct metric_source {
    unsigned kind;
    const char *label; /* name of the label; NULL: the struct has no label */
    struct str value;  /* the label's value */
    const void *numbers;
};

/* The sources of the numbers for one answer. */
struct metric_numbers {
    struct arena *arena; /* for numbers made for this answer; lives until the answer is written */
    /* The caller is an administrator; other callers do not see names of users and buckets. */
    bool admin;
    VEC(struct metric_source) sources;
};

/* Adds a struct of numbers. `numbers` and the label's value are borrowed until the answer is
 * written. */
void metric_numbers_add(struct metric_numbers *n, unsigned kind, const void *numbers);
void metric_numbers_add_labelled(struct metric_numbers *n, unsigned kind, const char *label,
                                 struct str value, const void *numbers);
/* Removes all sources, so that those of the next table can be added. */
void metric_numbers_reset(struct metric_numbers *n);
void metric_numbers_release(struct metric_numbers *n);

/* Appends every row as text (Prometheus exposition format 0.0.4). */
void metrics_text(struct buf *out, const struct metric *rows, size_t count,
                  const struct metric_numbers *n);

#endif
