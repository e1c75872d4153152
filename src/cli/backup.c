/* weir backup: copies all data of a running weir. */
#include "cli/commands.h"
#include "command/manage.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* Writes the call's body. The server accepts only absolute paths; a relative path is made absolute
 * from the current folder. */
static int backup_fill(struct json_out *w, const struct invocation *inv, struct err *err)
{
    struct buf path = BUF_INIT(PATH_MAX);
    const char *dir = inv->args.items[0];
    char here[PATH_MAX];

    (void)err;
    if (dir[0] != '/' && getcwd(here, sizeof(here)))
        buf_appendf(&path, "%s/", here);
    buf_append_z(&path, dir);
    while (path.len > 1 && path.p[path.len - 1] == '/')
        path.p[--path.len] = '\0';
    json_out_member_str(w, "dir", buf_str(&path));
    buf_release(&path);
    return 0;
}

static int backup_run(struct api_client *r, const struct invocation *inv, struct output *none,
                      struct err *err)
{
    static const struct manage_call call = {"POST", "/api/v1/backup", .fill = backup_fill};
    json_t *answer = NULL;
    int code = manage_send(r, inv, &call, &answer, err);
    struct str dir = json_get_str(answer, "dir", STR_EMPTY);

    (void)none;
    if (code == 0 && invocation_flag(inv, "json"))
        manage_print_json(answer);
    else if (code == 0)
        printf("backed up to " STR_FMT "\nto start on it: weir serve --data " STR_FMT "\n",
               STR_ARG(dir), STR_ARG(dir));
    json_decref(answer);
    return code;
}

int command_backup(struct invocation *inv)
{
    static const struct manage_call call = {.run = backup_run};

    return manage(inv, &call);
}
