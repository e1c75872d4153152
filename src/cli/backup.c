/* weir backup: a copy of all data of the running weir. */
#include "cli/commands.h"
#include "base/clock.h"
#include "command/client.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

enum { TIMEOUT_MS = MS_PER_HOUR }; /* a large folder to another disk */

/* The server takes absolute paths only; a relative one is relative to where we are. */
static void absolute(struct buf *out, const char *dir)
{
    char here[PATH_MAX];

    if (dir[0] != '/' && getcwd(here, sizeof(here)))
        buf_appendf(out, "%s/", here);
    buf_append_z(out, dir);
    while (out->len > 1 && out->p[out->len - 1] == '/')
        out->p[--out->len] = '\0';
}

static int ask(struct api_client *r, const char *dir, struct err *err)
{
    struct client_response response;
    struct buf body = {0};
    struct json_out w;
    int code;

    json_out_init(&w, &body);
    json_out_open(&w, '{');
    json_out_member_str(&w, "dir", str_z(dir));
    json_out_close(&w, '}');
    code = api_client_call(r, &response, "/api/v1/backup", body.p, err);
    if (code == 0 && response.status != 200)
        code = api_client_error(r, &response, err);
    buf_release(&body);
    return code;
}

static void print_result(const char *dir, bool json)
{
    struct buf text = {0};
    struct json_out w;

    if (json) {
        json_out_init(&w, &text);
        json_out_open(&w, '{');
        json_out_member_str(&w, "dir", str_z(dir));
        json_out_close(&w, '}');
        printf("%s\n", text.p);
    } else {
        printf("backed up to %s\nto start on it: weir serve --data %s\n", dir, dir);
    }
    buf_release(&text);
}

int command_backup(struct invocation *inv)
{
    struct conf *conf = NULL;
    struct api_client remote;
    struct buf dir = BUF_INIT(PATH_MAX);
    struct err err = {0};
    int code, status = invocation_conf(inv, &conf);

    if (status != 0)
        return status;
    absolute(&dir, inv->args.items[0]);
    code = api_client_connect(&remote, inv, conf, TIMEOUT_MS, &err);
    if (code == 0) {
        code = ask(&remote, dir.p, &err);
        api_client_close(&remote);
    }
    if (code < 0)
        status = complain(EXIT_FAILED, "backup: %s", err.text);
    else
        print_result(dir.p, invocation_flag(inv, "json"));
    buf_release(&dir);
    conf_unref(conf);
    return status;
}
