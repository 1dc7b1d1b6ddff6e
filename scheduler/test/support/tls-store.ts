import { type ChildProcess, execFileSync } from "node:child_process";
import { chmodSync, chownSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { mortal } from "@carillon/zookeeper/testing";
import pg from "pg";
import { startOwn } from "./own-postgres.ts";

const fresh = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];

/**
 * A PostgreSQL that accepts only TLS. Its certificate is for the name `localhost`, from an authority created for the test. The user
 * `certified` signs in with a certificate instead of a password.
 */
export class TlsStore {
  readonly folder: string;
  readonly port: number;
  readonly #password: string;
  readonly #child: ChildProcess;

  private constructor(folder: string, url: string, child: ChildProcess) {
    this.folder = folder;
    const { port, password } = new URL(url);
    this.port = Number(port);
    this.#password = password;
    this.#child = mortal(child);
  }

  static async start(): Promise<TlsStore> {
    const { url, child, folder, conditions } = await startOwn("tls");
    makeCertificates(folder);
    const { uid, gid } = conditions.user;
    if (uid !== undefined && gid !== undefined) chownSync(join(folder, "localhost.key"), uid, gid);
    const admin = new pg.Client(url);
    await admin.connect();
    try {
      const files = { ssl_cert_file: "localhost.pem", ssl_key_file: "localhost.key", ssl_ca_file: "authority.pem" };
      for (const [name, file] of Object.entries(files))
        await admin.query(`alter system set ${name} = '${join(folder, file)}'`);
      await admin.query("alter system set ssl = on");
      await admin.query("create role certified login");
      await admin.query("grant create on database postgres to certified");
      const rules = ["hostssl all certified all cert", "hostssl all all all scram-sha-256"];
      writeFileSync(join(folder, "data", "pg_hba.conf"), `${rules.join("\n")}\n`);
      await admin.query("select pg_reload_conf()");
    } finally {
      await admin.end();
    }
    return new TlsStore(folder, url, child);
  }

  file(name: string): string {
    return join(this.folder, name);
  }

  /**
   * Returns a connection URL.
   * @param query the text after the `?`
   * @param hosts host names, all with the port of this server
   */
  url(query: string, hosts = ["localhost"], user = `carillon:${this.#password}`): string {
    return `postgres://${user}@${hosts.map((host) => `${host}:${this.port}`)}/postgres?${query}`;
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = new Promise<void>((resolve) => this.#child.once("exit", () => resolve()));
    this.#child.kill("SIGQUIT");
    await gone;
  }
}

/**
 * Creates keys and certificates in a folder, as `NAME.key` and `NAME.pem`. `authority` and `stranger` sign themselves; `authority` signs
 * `localhost` and `certified`.
 */
export function makeCertificates(folder: string): void {
  for (const name of ["authority", "stranger"])
    openssl(folder, ["-x509", ...fresh, "-subj", `/CN=${name}`, "-keyout", `${name}.key`, "-out", `${name}.pem`]);
  const signed = (name: string, more: string[]) =>
    openssl(folder, [
      ...["-x509", ...fresh, "-CA", "authority.pem", "-CAkey", "authority.key", "-subj", `/CN=${name}`],
      ...["-keyout", `${name}.key`, "-out", `${name}.pem`, ...more],
    ]);
  signed("localhost", ["-addext", "subjectAltName=DNS:localhost"]);
  signed("certified", []);
  for (const name of ["localhost", "certified"]) chmodSync(join(folder, `${name}.key`), 0o600);
}

/** Runs `openssl req`, which creates a key and a certificate. @throws with the output of openssl if it fails */
function openssl(cwd: string, args: string[]): void {
  execFileSync("openssl", ["req", ...args], { cwd, stdio: "pipe" });
}
