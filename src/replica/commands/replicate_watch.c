/* Shows the progress of replications on a terminal, or line by line elsewhere. */
#include "replica/commands/replicate_watch.h"
#include "base/clock.h"

#include <unistd.h>

enum { BAR = 30, WATCHED_MAX = 1000, SMOOTH_S = 10 };

/* --- how numbers are written --- */

static void append_bytes(struct buf *out, double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t i = 0;

    for (; bytes >= 1024 && i + 1 < ARRAY_SIZE(units); i++)
        bytes /= 1024;
    buf_appendf(out, i ? "%.1f %s" : "%.0f %s", bytes, units[i]);
}

static void append_rate(struct buf *out, double objects, double bytes)
{
    buf_appendf(out, objects < 10 ? "%.1f/s, " : "%.0f/s, ", objects);
    append_bytes(out, bytes);
    buf_append_z(out, "/s");
}

/* Appends a duration such as "2m 5s". The duration is written as by manage_span(), but without the
 * word "in". */
static void append_time_left(struct buf *out, int64_t seconds)
{
    struct buf text = {0};

    manage_span(&text, seconds);
    buf_append_str(out, seconds ? str_skip(buf_str(&text), 3) : STR("0s"));
    buf_release(&text);
}

static double row_number(const json_t *row, const char *name)
{
    return json_number_value(json_object_get(row, name));
}

static void row_set_text(json_t *row, const char *name, struct buf *text)
{
    json_object_set_new(row, name, json_string(text->p ? text->p : ""));
    buf_reset(text);
}

void replicate_describe(json_t *row)
{
    struct buf text = {0};

    if (row_number(row, "objects_per_s") > 0)
        append_rate(&text, row_number(row, "objects_per_s"), row_number(row, "bytes_per_s"));
    row_set_text(row, "rate", &text);
    if (json_is_integer(json_object_get(row, "left_s")))
        append_time_left(&text, json_get_i64(row, "left_s", 0));
    row_set_text(row, "left", &text);
    buf_release(&text);
}

/* --- watching --- */

/* The state of one replication when it was last asked for. The present rate is computed from this
 * state, and changes are found by a comparison with it. */
struct seen {
    struct str id; /* in the watch's arena */
    double objects, bytes, at_s;
    double objects_rate, bytes_rate; /* per second, smoothed over SMOOTH_S seconds */
    struct buf line;
};

struct watch {
    struct api_client *remote;
    struct arena arena; /* not the client's arena, which is emptied before each request */
    bool json, terminal;
    VEC(struct seen) seen;
    size_t lines; /* number of lines that were drawn last */
    int64_t failed;
};

static double now_s(void)
{
    return (double)clock_mono_ms() / MS_PER_S;
}

static double row_done(const json_t *row)
{
    return row_number(row, "objects_done") + row_number(row, "objects_failed");
}

static struct seen *watch_find(struct watch *w, const json_t *row)
{
    struct str id = json_get_str(row, "id", STR_EMPTY);

    vec_each (&w->seen, struct seen *, s)
        if (str_eq(s->id, id))
            return s;
    vec_push(&w->seen, ((struct seen){.id = arena_str(&w->arena, id),
                                      .objects = row_done(row),
                                      .bytes = row_number(row, "bytes_done"),
                                      .at_s = now_s(),
                                      .objects_rate = row_number(row, "objects_per_s"),
                                      .bytes_rate = row_number(row, "bytes_per_s")}));
    return vec_last(&w->seen);
}

/* Computes the present rate of the copy. The server's rates are averages, which are too low after a
 * pause. */
static void seen_measure(struct seen *s, const json_t *row)
{
    double now = now_s(), passed = now - s->at_s, weight = passed / SMOOTH_S;

    if (passed <= 0)
        return;
    if (weight > 1)
        weight = 1;
    s->objects_rate += ((row_done(row) - s->objects) / passed - s->objects_rate) * weight;
    s->bytes_rate += ((row_number(row, "bytes_done") - s->bytes) / passed - s->bytes_rate) * weight;
    s->objects = row_done(row);
    s->bytes = row_number(row, "bytes_done");
    s->at_s = now;
}

/* Returns the share of the copy that is done, from 0 to 1. It is the share of the bytes, or of the
 * objects if there are no bytes. */
static double row_share(const json_t *row)
{
    double all = row_number(row, "bytes"), done = row_number(row, "bytes_done");

    if (json_get_bool(row, "init_done", false))
        return 1;
    if (all <= 0)
        all = row_number(row, "objects"), done = row_done(row);
    return all > 0 ? done / all : 0;
}

static void append_bar(struct buf *out, double share)
{
    int full = (int)(share * BAR);

    buf_append_char(out, '[');
    for (int i = 0; i < BAR; i++)
        buf_append_char(out, i < full ? '#' : '.');
    buf_append_char(out, ']');
}

static void append_pace(struct buf *out, const struct seen *s, const json_t *row)
{
    double left = row_number(row, "objects") - row_done(row);
    double bytes_left = row_number(row, "bytes") - row_number(row, "bytes_done");

    if (s->objects_rate < 0.01)
        return;
    buf_append_z(out, "  ");
    append_rate(out, s->objects_rate, s->bytes_rate);
    if (!json_get_bool(row, "listed_all", false))
        return;
    left /= s->objects_rate;
    if (s->bytes_rate > 1 && bytes_left / s->bytes_rate > left)
        left = bytes_left / s->bytes_rate;
    buf_append_z(out, "  ");
    append_time_left(out, (int64_t)(left + 0.5));
    buf_append_z(out, " left");
}

static void watch_describe(struct buf *out, const struct watch *w, const struct seen *s,
                           const json_t *row)
{
    struct str to_bucket = json_get_str(row, "to_bucket", STR_EMPTY);
    struct str state = json_get_str(row, "state", STR_EMPTY);

    buf_appendf(out, STR_FMT "  " STR_FMT " -> " STR_FMT "%s" STR_FMT "  ",
                STR_ARG(json_get_str(row, "bucket", STR_EMPTY)),
                STR_ARG(json_get_str(row, "from", STR_EMPTY)),
                STR_ARG(json_get_str(row, "to", STR_EMPTY)), to_bucket.len ? "/" : "",
                STR_ARG(to_bucket));
    if (w->terminal)
        append_bar(out, row_share(row));
    buf_appendf(out, " %3.0f%%  %.0f/%.0f objects  ", row_share(row) * 100, row_done(row),
                row_number(row, "objects"));
    append_bytes(out, row_number(row, "bytes_done"));
    if (row_number(row, "objects_failed") > 0)
        buf_appendf(out, "  %.0f failed", row_number(row, "objects_failed"));
    buf_appendf(out, "  " STR_FMT, STR_ARG(state));
    if (!json_get_bool(row, "init_done", false) && w->terminal)
        append_pace(out, s, row);
}

/* Shows the line of one replication. On a terminal the line replaces the old line. Elsewhere it is
 * printed only if it differs from the last line. */
static void watch_show(struct watch *w, struct seen *s, const json_t *row)
{
    struct buf line = {0};

    if (w->json) {
        char *text = json_dumps(row, JSON_COMPACT);
        buf_append_z(&line, text ? text : "");
        free(text);
    } else {
        watch_describe(&line, w, s, row);
    }
    if (w->terminal)
        printf("\r\033[K%s\n", line.p);
    else if (!str_eq(buf_str(&line), buf_str(&s->line)))
        printf("%s\n", line.p);
    buf_release(&s->line);
    s->line = line;
    w->lines++;
}

/* Removes rates and times left from the row. They differ in every answer, and are by themselves no
 * reason for a new line in a log. */
static void strip_moving(json_t *row)
{
    static const char *const moving[] = {"objects_per_s", "bytes_per_s", "left_s"};

    for (size_t i = 0; i < ARRAY_SIZE(moving); i++)
        json_object_del(row, moving[i]);
}

/* Asks for the replications once and shows them. *busy is set to the number of replications that
 * are not done yet. */
static int watch_look(struct watch *w, const char *path, size_t *busy, struct err *err)
{
    struct manage_list list = {.path = path, .name = "replications"};
    json_t *all = NULL, *row;
    size_t i;

    arena_reset(&w->remote->arena);
    int code = manage_pages(w->remote, &list, &all, err);

    if (code < 0)
        return code;
    if (w->terminal && w->lines)
        printf("\033[%zuA", w->lines);
    w->lines = 0;
    w->failed = 0;
    *busy = 0;
    json_array_foreach(all, i, row)
    {
        if (!json_get_str(row, "bucket", STR_EMPTY).len || i >= WATCHED_MAX)
            continue;
        struct seen *s = watch_find(w, row);
        seen_measure(s, row);
        if (!w->terminal)
            strip_moving(row);
        watch_show(w, s, row);
        w->failed += json_get_i64(row, "objects_failed", 0);
        *busy += !json_get_bool(row, "init_done", false) && !json_get_bool(row, "archived", false);
    }
    fflush(stdout);
    json_decref(all);
    return 0;
}

int replicate_watch(struct api_client *r, const struct invocation *inv, const char *path,
                    struct err *err)
{
    bool json = invocation_flag(inv, "json") != NULL;
    struct watch w = {.remote = r, .json = json, .terminal = !json && isatty(STDOUT_FILENO)};
    size_t busy = 0;

    path = arena_z(&w.arena, str_z(path));
    int code = watch_look(&w, path, &busy, err);

    while (code == 0 && busy > 0) {
        manage_poll_wait();
        code = watch_look(&w, path, &busy, err);
    }
    if (code == 0 && w.failed)
        code = err_set(err, ERR_PEER, "%jd objects failed; weir replicate show lists them",
                       (intmax_t)w.failed);
    vec_each (&w.seen, struct seen *, s)
        buf_release(&s->line);
    vec_release(&w.seen);
    arena_release(&w.arena);
    return code;
}
