/**
 * Floods a server with connections until the process is ended: node flood.mjs HOST PORT SLOW FAST. SLOW connections send the head of a
 * request byte by byte; FAST connections request /livez about once a second. Both reconnect when they are closed. They come from some
 * thousand addresses of this machine (Linux). Each second the process prints the number of open connections and the number of responses.
 */
import { connect } from "node:net";

const [host, port, slow, fast] = process.argv.slice(2);
const everyMs = 1_000;
const retryMs = 500;
let [open, answers, next] = [0, 0, 0];

function connected(begin, isFast) {
  const n = next++ % 1_000;
  const socket = connect({ host, port: Number(port), localAddress: `127.1.${n >> 8}.${n & 255 || 1}` });
  const timer = setInterval(() => socket.writable && socket.write(isFast ? ask : "x"), everyMs + (n % 100));
  let wasOpen = false;
  socket.once("connect", () => {
    wasOpen = true;
    open++;
    socket.write(begin);
  });
  socket.on("data", () => answers++);
  socket.on("error", () => undefined);
  socket.once("close", () => {
    clearInterval(timer);
    if (wasOpen) open--;
    setTimeout(connected, retryMs, begin, isFast);
  });
}
const ask = "GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n";
for (let n = 0; n < Number(slow); n++) setTimeout(connected, n / 2, "GET /livez HTTP/1.1\r\nx: ", false);
for (let n = 0; n < Number(fast); n++) setTimeout(connected, n / 2, ask, true);
setInterval(() => process.stdout.write(`${JSON.stringify({ open, answers })}\n`), 1_000);
