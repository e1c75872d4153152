/* Collects the numbers of metrics and writes the metrics as text. */
#include "room/metrics.h"

void metric_numbers_add(struct metric_numbers *n, unsigned kind, const void *numbers)
{
    vec_push(&n->sources, ((struct metric_source){.kind = kind, .numbers = numbers}));
}

void metric_numbers_add_labelled(struct metric_numbers *n, unsigned kind, const char *label,
                                 struct str value, const void *numbers)
{
    vec_push(&n->sources, ((struct metric_source){kind, label, value, numbers}));
}

void metric_numbers_reset(struct metric_numbers *n)
{
    n->sources.len = 0;
}

void metric_numbers_release(struct metric_numbers *n)
{
    vec_release(&n->sources);
}

static void write_metric_head(struct buf *out, const struct metric *m)
{
    buf_appendf(out, "# HELP %s %s\n# TYPE %s %s\n", m->name, m->help, m->name,
                m->type == METRIC_COUNTER ? "counter" : "gauge");
}

/* Writes a source's label. Newlines, quotes and backslashes in its value are escaped; other
 * characters stay as they are. */
static void write_metric_label(struct buf *out, const struct metric_source *s)
{
    buf_appendf(out, "%s=\"", s->label);
    for (size_t i = 0; i < s->value.len; i++) {
        char c = s->value.p[i];
        if (c == '\n')
            buf_append_z(out, "\\n");
        else if (c == '"' || c == '\\')
            buf_appendf(out, "\\%c", c);
        else
            buf_append_char(out, c);
    }
    buf_append_char(out, '"');
}

static void write_metric_sample(struct buf *out, const struct metric *m,
                                const struct metric_series *series, const struct metric_source *s)
{
    const char *labels = series->labels;
    uint64_t value;

    memcpy(&value, (const char *)s->numbers + series->offset, sizeof(value));
    buf_append_z(out, m->name);
    if (s->label || labels)
        buf_append_char(out, '{');
    if (s->label)
        write_metric_label(out, s);
    if (labels)
        buf_appendf(out, "%s%s", s->label ? "," : "", labels);
    if (s->label || labels)
        buf_append_char(out, '}');
    if (m->divisor)
        buf_appendf(out, " %ju.%03ju\n", (uintmax_t)(value / m->divisor),
                    (uintmax_t)(value % m->divisor));
    else
        buf_appendf(out, " %ju\n", (uintmax_t)value);
}

static void write_metric(struct buf *out, const struct metric *m, const struct metric_numbers *n)
{
    write_metric_head(out, m);
    for (size_t i = 0; i < m->count; i++)
        vec_each (&n->sources, const struct metric_source *, s)
            if (s->kind == m->kind)
                write_metric_sample(out, m, &m->series[i], s);
}

void metrics_text(struct buf *out, const struct metric *rows, size_t count,
                  const struct metric_numbers *n)
{
    for (size_t i = 0; i < count; i++)
        write_metric(out, &rows[i], n);
}
