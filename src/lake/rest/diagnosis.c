/* A call that lakeFS does not have: an archive for administrators that describes the state of the
 * lake. */
#include "lake/diagnose.h"
#include "lake/rest/web.h"

static rest_fn diagnosis_show;

static const struct rest_row diagnosis_rows[] = {
    {HTTP_GET, "/api/v1/lake/diagnosis", REST_USER,
     "A tar archive about the state of the lake, without secrets, for administrators. It is not "
     "part of lakeFS's API.",
     diagnosis_show, WEB_OP("weirDiagnose"), .media = "application/x-tar"},
};
const struct rest_table web_diagnosis_rows = WEB_ROWS(diagnosis_rows);

static int diagnosis_show(struct rest_call *c, struct err *err)
{
    struct lake_diagnose_options o = {.version = WEIR_VERSION};
    struct buf tar = BUF_INIT(2 * LAKE_DIAGNOSIS_MAX);
    struct user *users;
    int code = web_need_admin(c, err);

    if (code == 0)
        code = users_list(web_of(c)->services->users, c->arena, &users, &o.users, err);
    if (code == 0)
        code = lake_diagnose(web_of(c)->lake, &o, &tar, err);
    if (code == 0)
        code = rest_send(c, buf_str(&tar));
    buf_release(&tar);
    return code;
}
