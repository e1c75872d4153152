/* What the scripts share: the endpoint from the environment, a key that needs escaping, a large body. */
const crypto = require("crypto");
const { Readable } = require("stream");

const endpoint = new URL(process.env.ENDPOINT);

module.exports = {
    endpoint,
    access: process.env.ACCESS,
    secret: process.env.SECRET,
    bucket: process.env.BUCKET,
    KEY: process.env.KEY,
    has: (feature) => !process.env.LACKS.split(",").includes(feature),
    BIG: crypto.randomBytes(17 * 1024 * 1024),
    /* A stream of unknown length. */
    drip: (bytes) => Readable.from((function* () {
        for (let at = 0; at < bytes.length; at += 65536) yield bytes.subarray(at, at + 65536);
    })()),
    async gather(stream) {
        const pieces = [];
        for await (const piece of stream) pieces.push(piece);
        return Buffer.concat(pieces);
    },
    run(main) {
        main().then(() => console.log("ok"), (error) => { console.error(error); process.exit(1); });
    },
};
