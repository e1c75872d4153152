/* Lists the tables of routes for the descriptions of the API, and writes docs/api.md from them. */
#include "api/describe.h"
#include "api/api_int.h"
#include "command/help.h"
#include "room/room.h"

enum { PAGE_WIDTH = 120, GROUPS_MAX = 32 };

#define TABLES(...) ((const struct rest_table *const[]){__VA_ARGS__, NULL})

const struct rest_group api_own_groups[] = {
    {"server", "The program itself: health, metrics, backups, and descriptions of the API.",
     TABLES(&api_server_rows)},
    {"users", "Users and their access keys.", TABLES(&api_user_rows)},
    {"storages", "Folders and S3 services that hold buckets, and their notifications.",
     TABLES(&api_storage_rows, &api_remote_rows, &api_notice_rows)},
    {"buckets", "Buckets, and the storages that they are routed to.",
     TABLES(&api_bucket_rows, &api_bucket_show_rows)},
    {"webhooks", "Addresses that get the events of buckets.", TABLES(&api_webhook_rows)},
    {"queues", "Background work.", TABLES(&api_queue_rows)},
};
const size_t api_own_group_count = ARRAY_SIZE(api_own_groups);

/* Fills `groups`, which has room for GROUPS_MAX, and returns how many there are. */
static size_t list_groups(struct rest_group *groups, const struct room *const *rooms, size_t count)
{
    BUG_ON(api_own_group_count + count > GROUPS_MAX);
    memcpy(groups, api_own_groups, sizeof(api_own_groups));
    for (size_t i = 0; i < count; i++)
        groups[api_own_group_count + i] =
            (struct rest_group){.name = rooms[i]->name, .tables = rooms[i]->routes};
    return api_own_group_count + count;
}

void api_openapi(struct buf *out, const struct room *const *rooms, size_t count)
{
    struct rest_group groups[GROUPS_MAX];

    rest_openapi(out, groups, list_groups(groups, rooms, count));
}

void api_write_openapi(const struct command_table *table, FILE *out)
{
    struct buf text = {0};

    api_openapi(&text, table->rooms, table->room_count);
    fwrite(text.p, 1, text.len, out);
    buf_release(&text);
}

/* --- docs/api.md --- */

/* Writes the text of a table's cell; a '|' is escaped, because it would end the cell. */
static void page_cell(FILE *out, const char *text)
{
    for (; *text; text++)
        fprintf(out, "%s%c", *text == '|' ? "\\" : "", *text);
}

static void page_choices(FILE *out, const struct rest_field *f)
{
    const char *before = "";

    for (const char *const *choice = f->choices; *choice; choice++) {
        if (**choice) {
            fprintf(out, "%s`%s`", before, *choice);
            before = ", ";
        }
    }
}

static void page_type(FILE *out, const struct rest_field *f)
{
    static const char *const words[] = {
        [REST_STRING] = "text",
        [REST_INTEGER] = "whole number",
        [REST_NUMBER] = "number",
        [REST_BOOLEAN] = "true or false",
        [REST_TIME] = "time",
        [REST_DURATION] = "duration",
        [REST_STRINGS] = "list of texts",
        [REST_OBJECT] = "object",
        [REST_OBJECTS] = "list of objects",
        [REST_MAP] = "object of texts",
        [REST_ANY] = "any value",
    };

    if (f->choices)
        page_choices(out, f);
    else
        fputs(words[f->type], out);
}

/* Writes the row of a field, and those of its members: `name`, `parent.name`, `list[].name`. */
static void page_field(FILE *out, const char *in, struct str before, const struct rest_field *f)
{
    struct buf inside = BUF_INIT(4096);

    fprintf(out, "| %s | `" STR_FMT "%s` | ", in, STR_ARG(before), f->name);
    page_type(out, f);
    fprintf(out, "%s%s%s%s | ", f->required ? ", required" : "",
            f->sometimes ? ", may be absent" : "", f->nullable ? ", may be null" : "",
            f->secret ? ", secret" : "");
    page_cell(out, f->doc);
    fputs(" |\n", out);
    buf_appendf(&inside, STR_FMT "%s%s.", STR_ARG(before), f->name,
                f->type == REST_OBJECTS ? "[]" : "");
    for (const struct rest_field *m = f->members; m && m->name; m++)
        page_field(out, in, buf_str(&inside), m);
    buf_release(&inside);
}

static void page_fields(FILE *out, const char *in, const struct rest_field *fields)
{
    for (const struct rest_field *f = fields; f && f->name; f++)
        page_field(out, in, STR_EMPTY, f);
}

static void page_list(FILE *out, const struct rest_row *row)
{
    struct buf before = BUF_INIT(256);

    buf_appendf(&before, "%s[].", row->list);
    for (const struct rest_field *f = row->items; f && f->name; f++)
        page_field(out, "answer", buf_str(&before), f);
    buf_release(&before);
}

/* Writes who may call the row, the statuses of success, and what is not JSON. */
static void page_facts(FILE *out, const struct rest_row *row)
{
    static const char *const callers[] = {
        [REST_NOT_SAID] = "administrators",
        [REST_ADMIN] = "administrators",
        [REST_ANYONE] = "anyone",
        [REST_TOKEN] = "who has the token",
        [REST_USER] = "users",
    };
    struct buf id = BUF_INIT(256), text = BUF_INIT(4096);

    rest_operation_id(&id, row);
    buf_appendf(&text, "For %s. Status %d", callers[row->access], row->status ? row->status : 200);
    if (row->other_status)
        buf_appendf(&text, " or %d", row->other_status);
    buf_append_z(&text, ".");
    if (row->media)
        buf_appendf(&text, " The answer has the type `%s`.", row->media);
    if (row->raw_body || row->stream_body)
        buf_appendf(&text, " Body: %s", row->raw_body ? row->raw_body : row->stream_body);
    if (row->list)
        buf_appendf(&text, " A list with pages of %zu, and of %zu at most.",
                    row->page_usual ? row->page_usual : REST_PAGE_USUAL,
                    row->page_max ? row->page_max : REST_PAGE_MAX);
    buf_appendf(&text, " operationId `%s`.", id.p);
    help_paragraphs(out, text.p, PAGE_WIDTH);
    buf_release(&text);
    buf_release(&id);
}

static void page_row(FILE *out, const struct rest_row *row)
{
    fprintf(out, "\n### `%s %s`\n\n", http_method_name(row->method), row->path);
    help_paragraphs(out, row->doc, PAGE_WIDTH);
    fputs("\n", out);
    page_facts(out, row);
    if (!row->in_path && !row->query && !row->body && !row->answer && !row->list)
        return;
    fputs("\n| in | name | type | |\n|---|---|---|---|\n", out);
    page_fields(out, "path", row->in_path);
    page_fields(out, "query", row->query);
    page_fields(out, "body", row->body);
    page_fields(out, "answer", row->answer);
    if (row->list)
        page_list(out, row);
}

static bool has_own_table(const struct rest_group *group)
{
    for (const struct rest_table *const *t = group->tables; t && *t; t++)
        if (!(*t)->dialect)
            return true;
    return false;
}

static void page_group(FILE *out, const struct rest_group *group)
{
    if (!has_own_table(group))
        return;
    fprintf(out, "\n## %s\n", group->name);
    if (group->doc)
        fprintf(out, "\n%s\n", group->doc);
    for (const struct rest_table *const *t = group->tables; *t; t++)
        for (const struct rest_row *row = (*t)->rows; row < (*t)->rows + (*t)->count; row++)
            if (!(*t)->dialect)
                page_row(out, row);
}

void api_write_page(const struct command_table *table, FILE *out)
{
    struct rest_group groups[GROUPS_MAX];
    size_t count = list_groups(groups, table->rooms, table->room_count);

    fputs("# The calls of the API\n\n"
          "Written by `weir help --api`; a test fails when this page is stale. `weir help "
          "--openapi` and\n"
          "`GET /api/v1/openapi.json` give the same as an OpenAPI document for programs. "
          "[management.md](management.md) has\n"
          "the rules that hold for all calls. The API of lakeFS, which weir serves on the same "
          "port, is described in\n"
          "[lake-rest.md](lake-rest.md).\n\n"
          "The answer of a list also has `next`, and its query takes `after`, the `next` of the "
          "page before, and `limit`, how\n"
          "many items to answer. Members of objects are written as `object.member`, and those of "
          "the items of a list as\n"
          "`list[].member`. `*` stands for members whose names are not fixed.\n",
          out);
    for (size_t i = 0; i < count; i++)
        page_group(out, &groups[i]);
}
