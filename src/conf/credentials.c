/* Finds, makes and stores the first administrator's keys. The file has two lines, and only its
 * owner can read it. */
#include "conf/credentials.h"
#include "base/ids.h"
#include "os/file.h"

#include <openssl/evp.h>

enum { BASIC_MAX = 512 };

static void path_of(const char *data, struct buf *out)
{
    buf_appendf(out, "%s/credentials", data);
}

static void credential_copy(char to[CREDENTIALS_MAX + 1], struct str from)
{
    size_t len = size_min(from.len, CREDENTIALS_MAX);

    memset(to, 0, CREDENTIALS_MAX + 1);
    if (len)
        memcpy(to, from.p, len);
}

static int credentials_parse(struct credentials *out, struct str text, const char *path,
                             struct err *err)
{
    struct str line;

    while (str_token(&text, "\n", &line)) {
        struct str name, value;
        str_cut(line, '=', &name, &value);
        if (value.len > CREDENTIALS_MAX)
            break;
        if (str_eq(name, STR("access_key")))
            credential_copy(out->access_key, value);
        else if (str_eq(name, STR("secret_key")))
            credential_copy(out->secret_key, value);
    }
    if (!*out->access_key || !*out->secret_key)
        return err_set(err, ERR_CORRUPT, "%s does not hold access_key=... and secret_key=...",
                       path);
    return 0;
}

static int credentials_read_file(struct credentials *out, const char *data, struct err *err)
{
    struct buf path = BUF_INIT(8192), text = BUF_INIT(4096);
    struct credentials found = {0};
    int code;

    path_of(data, &path);
    code = file_make_private(path.p, err);
    if (code == 0)
        code = file_read(path.p, &text, err);
    if (code == 0)
        code = credentials_parse(&found, buf_str(&text), path.p, err);
    if (code == 0)
        *out = found;
    if (text.p)
        secure_zero(text.p, text.cap);
    credentials_release(&found);
    buf_release(&text);
    buf_release(&path);
    return code;
}

int credentials_find(struct credentials *out, const struct conf *conf, struct err *err)
{
    if (!*conf->access_key)
        return credentials_read_file(out, conf->data, err);
    credential_copy(out->access_key, str_z(conf->access_key));
    credential_copy(out->secret_key, str_z(conf->secret_key));
    return 0;
}

void credentials_make(struct credentials *out)
{
    credentials_release(out);
    id_access_key(out->access_key, CREDENTIALS_ACCESS_LEN);
    id_secret(out->secret_key, CREDENTIALS_SECRET_LEN);
}

int credentials_keep(const struct credentials *c, const char *data, struct err *err)
{
    struct buf path = BUF_INIT(8192), text = BUF_INIT(1024);
    struct credentials kept = {0};
    int code = credentials_read_file(&kept, data, NULL);

    if (code == 0 && memcmp(&kept, c, sizeof(kept)) == 0)
        goto out;
    path_of(data, &path);
    buf_appendf(&text, "access_key=%s\nsecret_key=%s\n", c->access_key, c->secret_key);
    code = file_write_durable(path.p, buf_str(&text), 0600, err);
    secure_zero(text.p, text.cap);
out:
    credentials_release(&kept);
    buf_release(&path);
    buf_release(&text);
    return code;
}

void credentials_basic(struct buf *out, const struct credentials *c)
{
    struct buf plain = BUF_INIT(BASIC_MAX);
    unsigned char token[2 * BASIC_MAX];

    buf_appendf(&plain, "%s:%s", c->access_key, c->secret_key);
    EVP_EncodeBlock(token, (const unsigned char *)plain.p, (int)plain.len);
    buf_appendf(out, "Basic %s", token);
    secure_zero(plain.p, plain.cap);
    secure_zero(token, sizeof(token));
    buf_release(&plain);
}

void credentials_release(struct credentials *c)
{
    secure_zero(c, sizeof(*c));
}
