/* The client of npm's bittorrent-tracker: two of them meet over one tracker, which is scraped as they come, finish and go. Says what
 * it was told, a line of JSON each. Its package has no form for require(), and NODE_PATH does not count for import. */
import { register } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

/* For trackers over WebSocket it loads WebRTC, a library whose binary is not in the package; nothing here uses it. */
register("data:text/javascript," + encodeURIComponent(`
    const none = "export default {}; export const RTCPeerConnection = 0, RTCSessionDescription = 0, RTCIceCandidate = 0;";
    export const resolve = (name, context, next) => name === "webrtc-polyfill"
        ? { url: "data:text/javascript," + encodeURIComponent(none), shortCircuit: true }
        : next(name, context);`));

const at = path.join(process.env.NPM, "bittorrent-tracker/client.js");
const { default: Client } = await import(pathToFileURL(at));
const announce = [process.env.ANNOUNCE];
const infoHash = process.env.INFO_HASH;
const told = (what, values) => console.log(JSON.stringify({ what, ...values }));

const failed = (error) => {
    console.error(error);
    process.exit(1);
};

function made(number) {
    const client = new Client({ infoHash, peerId: Buffer.from(`-WW0000-${String(number).padStart(12, "0")}`), announce, port: number });
    client.on("error", failed);
    client.on("warning", failed);
    return client;
}

/* What the tracker answers to the call, and the peers in it. */
function answer(client, call, options) {
    return new Promise((resolve) => {
        const peers = [];
        const peer = (address) => peers.push(address);
        client.on("peer", peer);
        client.once("update", (data) => setImmediate(() => {
            client.removeListener("peer", peer);
            resolve({ complete: data.complete, incomplete: data.incomplete, peers });
        }));
        client[call](options);
    });
}

const scrape = (client) => new Promise((resolve) => {
    client.once("scrape", resolve);
    client.scrape();
});

const seeder = made(6881);
const leecher = made(6882);
told("seeder", await answer(seeder, "start", { left: 0 }));
told("leecher", await answer(leecher, "start", { left: 100 }));
told("scrape", await scrape(seeder));
told("completed", await answer(leecher, "complete", { left: 0, downloaded: 100 }));
told("stopped", await answer(leecher, "stop", { left: 0, downloaded: 100 }));
told("scrape", await scrape(seeder));
seeder.destroy(() => leecher.destroy(() => process.exit(0)));
