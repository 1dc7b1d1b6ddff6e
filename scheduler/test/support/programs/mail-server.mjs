/**
 * A mail server that a test may kill with signal 9: node mail-server.mjs PORT FILE. It appends each mail to the file, and accepts the mail
 * only after that. Port 0: a free port. It prints its port once it listens.
 */
import { appendFileSync } from "node:fs";
import { SMTPServer } from "smtp-server";

const [port, file] = process.argv.slice(2);
const server = new SMTPServer({
  authOptional: true,
  disabledCommands: ["STARTTLS"],
  onData(stream, _session, done) {
    let text = "";
    stream.on("data", (chunk) => {
      text += chunk;
    });
    stream.on("end", () => {
      appendFileSync(file, `${JSON.stringify(text)}\n`, { flush: true });
      done();
    });
  },
});
server.on("error", () => undefined);
server.listen(Number(port), "127.0.0.1", () => process.stdout.write(`${server.server.address().port}\n`));
