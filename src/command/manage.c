/* Commands that manage a running weir: they connect, make a call, and show its answer. */
#include "command/manage.h"
#include "base/clock.h"

#include <time.h>

enum {
    /* The time limit of one call. It is long because a scrub reads all objects. */
    TIMEOUT_MS = MS_PER_HOUR,
    POLL_MS = 500,
};

static int manage_complain(const struct invocation *inv, const struct manage_call *call,
                           const struct err *err)
{
    for (const struct manage_hint *h = call->hints; h && h->words; h++)
        if (strstr(err->text, h->words))
            return complain(EXIT_FAILED, "%s: %s; %s", inv->command->name, err->text, h->advice);
    return complain(EXIT_FAILED, "%s: %s", inv->command->name, err->text);
}

int manage(struct invocation *inv, const struct manage_call *call)
{
    static const struct output_column none[] = {{""}};
    bool shows = call->column_count > 0 && (call->shows_end || !invocation_flag(inv, "watch"));
    struct conf *conf = NULL;
    struct api_client remote;
    struct output table;
    struct err err = {0};
    int code, status = invocation_conf(inv, &conf);

    if (status != 0)
        return status;
    output_init(&table, shows ? call->columns : none, shows ? call->column_count : 1);
    code = api_client_connect(&remote, inv, conf, TIMEOUT_MS, &err);
    if (code == 0) {
        code = call->run ? call->run(&remote, inv, &table, &err)
                         : manage_ask(&remote, inv, call, &table, &err);
        api_client_close(&remote);
    }
    if (code < 0 && *err.text)
        manage_complain(inv, call, &err);
    if (code < 0) /* ERR_INVALID before the first request is an error of the command line */
        status = code == ERR_INVALID && !remote.called ? EXIT_USAGE : EXIT_FAILED;
    if ((code == 0 || table.cells.len) && shows) {
        if (invocation_flag(inv, "json"))
            output_print_json(&table, stdout);
        else
            output_print(&table, stdout);
    }
    output_release(&table);
    conf_unref(conf);
    return status;
}

/* Returns the call's path, with the arguments in the place of "{0}" and so on, and the values of
 * flags in the place of "{flag}". */
static const char *manage_call_path(struct api_client *r, const struct invocation *inv,
                                    const char *path)
{
    struct buf out = BUF_INIT(64 * KIB);
    struct str rest = str_z(path), before, name;

    while (str_cut(rest, '{', &before, &rest)) {
        str_cut(rest, '}', &name, &rest);
        bool word = name.p[0] >= '0' && name.p[0] <= '9';
        const char *value = word ? inv->args.items[name.p[0] - '0']
                                 : invocation_flag(inv, arena_z(&r->arena, name));
        buf_append_str(&out, before);
        url_encode(&out, str_z(value), false);
    }
    buf_append_str(&out, before);
    const char *copy = arena_z(&r->arena, buf_str(&out));
    buf_release(&out);
    return copy;
}

int manage_send(struct api_client *r, const struct invocation *inv, const struct manage_call *call,
                json_t **out, struct err *err)
{
    bool posts = call->fill || strcmp(call->method, "POST") == 0;
    struct buf body = {0};
    struct json_out w;
    int code = 0;

    json_out_init(&w, &body);
    json_out_open(&w, '{');
    if (call->fill)
        code = call->fill(&w, inv, err);
    json_out_close(&w, '}');
    if (code == 0)
        code = api_client_send(r, call->method, manage_call_path(r, inv, call->path),
                               posts ? body.p : NULL, out, err);
    secure_zero(body.p, body.cap);
    buf_release(&body);
    return code;
}

/* Gets the page that begins at *next and adds its items to `all`. Sets *next to the beginning of
 * the next page, or to "" after the last page. */
static int pages_add(struct api_client *r, const struct manage_list *list, json_t *all,
                     const char **next, struct err *err)
{
    struct buf path = BUF_INIT(64 * KIB);
    json_t *answer = NULL;

    buf_append_z(&path, list->path);
    manage_query(&path, "after", *next);
    int code = buf_error(&path);
    if (code == 0)
        code = api_client_send(r, "GET", path.p, NULL, &answer, err);
    buf_release(&path);
    if (code < 0)
        return code;
    const json_t *items = json_object_get(answer, list->name);
    /* Lists of the lake have lakeFS's form, with another name for the next page. */
    struct str offset =
        json_get_str(json_object_get(answer, "pagination"), "next_offset", STR_EMPTY);
    *next = arena_z(&r->arena, json_get_str(answer, "next", offset));
    if (!*next || !json_is_array(items) || json_array_extend(all, (json_t *)(uintptr_t)items) < 0)
        code = err_set(err, ERR_PEER, "the answer of %s is not a list", list->path);
    json_decref(answer);
    return code;
}

int manage_pages(struct api_client *r, struct manage_list *list, json_t **out, struct err *err)
{
    json_t *all = json_array();
    const char *next = list->after ? list->after : "";
    int code;

    do {
        code = pages_add(r, list, all, &next, err);
    } while (code == 0 && *next && (!list->max || json_array_size(all) < list->max));
    if (code < 0) {
        json_decref(all);
        return code;
    }
    list->more = *next != '\0';
    while (list->max && json_array_size(all) > list->max) {
        json_array_remove(all, json_array_size(all) - 1);
        list->more = true;
    }
    *out = all;
    return 0;
}

void manage_query(struct buf *path, const char *name, const char *value)
{
    if (!value || !*value)
        return;
    buf_appendf(path, "%c%s=", str_chr(buf_str(path), '?') >= 0 ? '&' : '?', name);
    url_encode(path, str_z(value), false);
}

void manage_print_json(const json_t *json)
{
    json_dumpf(json, stdout, JSON_COMPACT);
    putchar('\n');
}

void manage_poll_wait(void)
{
    const struct timespec pause = {0, POLL_MS * (long)NS_PER_MS};

    nanosleep(&pause, NULL);
}

static void add_row(struct output *table, const struct invocation *inv,
                    const struct manage_call *call, json_t *row)
{
    if (call->tell && !invocation_flag(inv, "json"))
        call->tell(row);
    manage_row(table, row);
}

/* Makes the call and adds the rows of its answer to the table. For a list of the API, these are the
 * items of all pages. */
static int ask_rows(struct api_client *r, const struct invocation *inv,
                    const struct manage_call *call, struct output *table, struct err *err)
{
    struct manage_list list = {.path = manage_call_path(r, inv, call->path), .name = call->rows};
    json_t *all = NULL, *row;
    size_t i;
    int code = manage_pages(r, &list, &all, err);

    json_array_foreach(all, i, row) add_row(table, inv, call, row);
    json_decref(all);
    return code;
}

static void add_rows(struct output *table, const struct invocation *inv,
                     const struct manage_call *call, json_t *answer)
{
    json_t *row;
    size_t i;

    if (!call->rows)
        add_row(table, inv, call, answer);
    else
        json_array_foreach(json_object_get(answer, call->rows), i, row)
            add_row(table, inv, call, row);
}

int manage_ask(struct api_client *r, const struct invocation *inv, const struct manage_call *call,
               struct output *table, struct err *err)
{
    bool shows = call->column_count > 0;
    json_t *answer = NULL;

    if (call->pages)
        return ask_rows(r, inv, call, table, err);
    int code = manage_send(r, inv, call, shows ? &answer : NULL, err);
    if (code == 0 && shows)
        add_rows(table, inv, call, answer);
    if (code == 0 && call->judge)
        code = call->judge(answer, err);
    json_decref(answer);
    return code;
}

const char *manage_path(struct api_client *r, const char *before, const char *part,
                        const char *after)
{
    struct buf path = BUF_INIT(64 * KIB);
    const char *copy;

    buf_append_z(&path, before);
    url_encode(&path, str_z(part), false);
    buf_append_z(&path, after);
    copy = arena_z(&r->arena, buf_str(&path));
    buf_release(&path);
    return copy;
}

static void manage_cell(struct output *table, const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name), *item;
    struct buf text = BUF_INIT(1 * MIB);
    size_t i;

    if (json_is_boolean(value)) {
        buf_append_z(&text, json_is_true(value) ? "yes" : "no");
    } else if (json_is_integer(value)) {
        buf_append_i64(&text, json_integer_value(value));
    } else if (json_is_real(value)) {
        struct json_out w;
        json_out_init(&w, &text);
        json_out_f64(&w, json_real_value(value));
    } else if (json_is_array(value) && !json_is_object(json_array_get(value, 0))) {
        json_array_foreach(value, i, item) buf_appendf(
            &text, "%s%s", i ? "," : "", json_is_string(item) ? json_string_value(item) : "");
    } else if (json_is_object(value) || json_is_array(value)) {
        char *json = json_dumps(value, JSON_COMPACT);
        buf_append_z(&text, json ? json : "");
        free(json);
    } else if (json_is_string(value)) {
        buf_append_z(&text, json_string_value(value));
    }
    output_cell(table, buf_str(&text));
    buf_release(&text);
}

void manage_row(struct output *table, const json_t *object)
{
    for (size_t i = 0; i < table->column_count; i++)
        manage_cell(table, object, table->columns[i].name);
}

void manage_span(struct buf *out, int64_t seconds)
{
    static const struct {
        int64_t seconds;
        const char *unit;
    } units[] = {{S_PER_DAY, "d"}, {S_PER_HOUR, "h"}, {S_PER_MINUTE, "m"}, {1, "s"}};
    int64_t left = seconds < 0 ? -seconds : seconds;
    int written = 0;

    if (seconds == 0) {
        buf_append_z(out, "now");
        return;
    }
    buf_append_z(out, seconds > 0 ? "in" : "");
    for (size_t i = 0; i < ARRAY_SIZE(units) && written < 2; i++) {
        if (left < units[i].seconds)
            continue;
        buf_appendf(out, "%s%jd%s", out->len ? " " : "", (intmax_t)(left / units[i].seconds),
                    units[i].unit);
        left %= units[i].seconds;
        written++;
    }
    buf_append_z(out, seconds > 0 ? "" : " ago");
}

void manage_flag(struct json_out *w, const struct invocation *inv, const char *flag,
                 const char *name)
{
    const char *value = invocation_flag(inv, flag);

    if (value)
        json_out_member_str(w, name, str_z(value));
}
