/* The AWS SDK for JavaScript v3: what a program in Node does. */
const assert = require("assert");
const s3 = require("@aws-sdk/client-s3");
const { Upload } = require("@aws-sdk/lib-storage");
const { createPresignedPost } = require("@aws-sdk/s3-presigned-post");
const { getSignedUrl } = require("@aws-sdk/s3-request-presigner");
const lab = require("./lab.cjs");

const client = new s3.S3Client({
    endpoint: lab.endpoint.href, region: "us-east-1", forcePathStyle: true, maxAttempts: 1,
    credentials: { accessKeyId: lab.access, secretAccessKey: lab.secret },
});
const Bucket = lab.bucket;
const ask = (name, input) => client.send(new s3[name + "Command"]({ Bucket, ...input }));
const read = async (Key, more) => lab.gather((await ask("GetObject", { Key, ...more })).Body);

async function objects() {
    await ask("PutObject", { Key: lab.KEY, Body: "hello", ContentType: "text/plain", Metadata: { a: "b" } });
    const got = await ask("GetObject", { Key: lab.KEY });
    assert.equal(await got.Body.transformToString(), "hello");
    assert.deepEqual([got.ContentType, got.Metadata], ["text/plain", { a: "b" }]);
    assert.equal((await ask("HeadObject", { Key: lab.KEY })).ContentLength, 5);
    assert.deepEqual((await ask("ListObjectsV2", { Prefix: "folder/" })).Contents.map((o) => o.Key), [lab.KEY]);
    await assert.rejects(ask("GetObject", { Key: "none" }), { name: "NoSuchKey" });
    const url = await getSignedUrl(client, new s3.GetObjectCommand({ Bucket, Key: lab.KEY }), { expiresIn: 60 });
    assert.equal(await (await fetch(url)).text(), "hello");
}

async function large() {
    const upload = new Upload({ client, params: { Bucket, Key: "big", Body: lab.drip(lab.BIG) }, partSize: 8 << 20 });
    await upload.done();
    assert((await read("big")).equals(lab.BIG));
    assert((await read("big", { Range: "bytes=100-299" })).equals(lab.BIG.subarray(100, 300)));
    await ask("CopyObject", { Key: "copy", CopySource: `${Bucket}/big` });
    assert((await read("copy")).equals(lab.BIG));
    if (!lab.has("part copies")) return;
    const { UploadId } = await ask("CreateMultipartUpload", { Key: "parts" });
    const { CopyPartResult } = await ask("UploadPartCopy", { Key: "parts", UploadId, PartNumber: 1, CopySource: `${Bucket}/big` });
    const Parts = [{ PartNumber: 1, ETag: CopyPartResult.ETag }];
    await ask("CompleteMultipartUpload", { Key: "parts", UploadId, MultipartUpload: { Parts } });
    assert((await read("parts")).equals(lab.BIG));
}

async function forms() {
    const { url, fields } = await createPresignedPost(client, { Bucket, Key: "posted", Conditions: [["content-length-range", 0, 100]] });
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.append(name, value);
    form.append("file", new Blob(["posted!"]));
    assert.equal((await fetch(url, { method: "POST", body: form })).status, 204);
    assert.equal((await read("posted")).toString(), "posted!");
}

async function versions() {
    await ask("PutBucketVersioning", { VersioningConfiguration: { Status: "Enabled" } });
    const first = await ask("PutObject", { Key: "v", Body: "1" });
    await ask("PutObject", { Key: "v", Body: "2" });
    await ask("DeleteObject", { Key: "v" });
    assert.equal((await read("v", { VersionId: first.VersionId })).toString(), "1");
    const { Versions, DeleteMarkers } = await ask("ListObjectVersions", { Prefix: "v" });
    assert.deepEqual([Versions.length, DeleteMarkers.length], [2, 1]);
}

async function clear() {
    const { Versions = [], DeleteMarkers = [] } = lab.has("versions") ? await ask("ListObjectVersions", {}) :
        { Versions: (await ask("ListObjectsV2", {})).Contents.map(({ Key }) => ({ Key })) };
    const Objects = [...Versions, ...DeleteMarkers].map(({ Key, VersionId }) => ({ Key, VersionId }));
    const { Errors } = await ask("DeleteObjects", { Delete: { Objects } });
    assert(!Errors || Errors.length === 0, JSON.stringify(Errors));
    await ask("DeleteBucket", {});
}

lab.run(async () => {
    await ask("CreateBucket", {});
    await objects();
    await large();
    await forms();
    if (lab.has("versions")) await versions();
    await clear();
});
