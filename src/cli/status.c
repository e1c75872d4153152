/* weir status: shows the state of a running weir as a table. */
#include "cli/commands.h"
#include "base/clock.h"
#include "command/output.h"
#include "command/client.h"

#include <stdlib.h>

/* A weir that does not answer within this time is not ready. */
enum { TIMEOUT_MS = MS_PER_MINUTE };

enum unit { COUNT, BYTES, SECONDS };

/* The metrics that are shown, by their full names. */
static const struct shown {
    const char *metric, *name;
    enum unit unit;
} shown[] = {
    {"weir_uptime_seconds", "uptime", SECONDS},
    {"process_resident_memory_bytes", "memory", BYTES},
    {"process_threads", "threads", COUNT},
    {"process_open_fds", "open files", COUNT},
    {"weir_http_connections{server=\"api\"}", "api connections", COUNT},
    {"weir_http_requests_total{server=\"api\"}", "api requests", COUNT},
    {"weir_http_connections{server=\"s3\"}", "s3 connections", COUNT},
    {"weir_http_requests_total{server=\"s3\"}", "s3 requests", COUNT},
    {"weir_db_changes_total", "db changes", COUNT},
    {"weir_db_disk_bytes", "db on disk", BYTES},
    {"weir_lake_repositories", "repositories", COUNT},
    {"weir_lake_collections_running", "collections running", COUNT},
    {"weir_lake_collections_total", "collections", COUNT},
    {"weir_lake_collected_bytes_total", "collected", BYTES},
};

static void status_add(struct output *table, const char *name, struct str value)
{
    output_cell(table, str_z(name));
    output_cell(table, value);
}

static void status_add_metric(struct output *table, const struct shown *row, struct str number)
{
    char *text = str_dup(number);
    double value = strtod(text, NULL);

    output_cell(table, str_z(row->name));
    if (row->unit == BYTES)
        output_cellf(table, "%.1f MiB", value / (double)MIB);
    else if (row->unit == SECONDS)
        output_cellf(table, "%.0f s", value);
    else
        output_cellf(table, "%.0f", value);
    free(text);
}

static void status_add_metrics(struct output *table, struct str text)
{
    struct str line;

    while (str_token(&text, "\n", &line)) {
        for (size_t i = 0; i < ARRAY_SIZE(shown); i++) {
            struct str name = str_z(shown[i].metric);
            if (str_starts(line, name) && line.len > name.len && line.p[name.len] == ' ')
                status_add_metric(table, &shown[i], str_skip(line, name.len + 1));
        }
    }
}

/* Adds a row for each part in `body`, the answer of /readyz. Returns whether every part is
 * ready. */
static bool status_add_parts(struct output *table, struct str body)
{
    json_t *object = NULL, *parts;
    bool ready = false;

    if (json_read(&object, body, NULL) < 0)
        return false;
    ready = json_get_bool(object, "ready", false);
    status_add(table, "ready", ready ? STR("yes") : STR("no"));
    parts = json_object_get(object, "parts");
    for (void *at = json_object_iter(parts); at; at = json_object_iter_next(parts, at))
        status_add(table, json_object_iter_key(at),
                   str_z(json_string_value(json_object_iter_value(at))));
    json_decref(object);
    return ready;
}

static int status_gather(struct api_client *r, struct output *table, bool *ready, struct err *err)
{
    struct client_response parts, metrics;
    int code = api_client_call(r, "/readyz", NULL, &parts, err);

    if (code == 0)
        code = api_client_call(r, "/metrics", NULL, &metrics, err);
    if (code == 0 && metrics.status != 200)
        code = api_client_error(r, &metrics, err);
    if (code < 0)
        return code;
    status_add(table, "api", str_z(r->url));
    *ready = status_add_parts(table, parts.body);
    status_add_metrics(table, metrics.body);
    return 0;
}

int command_status(struct invocation *inv)
{
    static const struct output_column columns[] = {{"what"}, {"value"}};
    struct conf *conf = NULL;
    struct api_client remote;
    struct output table;
    struct err err = {0};
    bool ready = false;
    int code, status = invocation_conf(inv, &conf);

    if (status != 0)
        return status;
    output_init(&table, columns, ARRAY_SIZE(columns));
    code = api_client_connect(&remote, inv, conf, TIMEOUT_MS, &err);
    if (code == 0) {
        code = status_gather(&remote, &table, &ready, &err);
        api_client_close(&remote);
    }
    if (code < 0)
        status = complain(EXIT_FAILED, "status: %s", err.text);
    else if (invocation_flag(inv, "json"))
        output_print_json(&table, stdout);
    else
        output_print(&table, stdout);
    if (code == 0 && !ready)
        status = EXIT_FAILED;
    output_release(&table);
    conf_unref(conf);
    return status;
}
