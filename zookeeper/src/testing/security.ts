import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Authority, type Certificate, createAuthority } from "./certificates.ts";

/** A client's TLS material: PEM texts for `node:tls`, and files for Java. */
export interface ClientTls {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  /** The authority that issued the certificates; it can issue more that the servers trust. */
  readonly authority: Authority;
  /** System properties with which a Java client uses these files. */
  readonly javaProperties: Readonly<Record<string, string>>;
}

/** Writes the TLS files of an ensemble as .pem files, which ZooKeeper accepts as key and trust stores. */
export function writeTls(folder: string): ClientTls {
  const authority = createAuthority();
  const write = (name: string, { key, cert }: Certificate) => writeFileSync(join(folder, name), key + cert);
  const client = authority.issue("client");
  write("server.pem", authority.issue("server"));
  write("client.pem", client);
  writeFileSync(join(folder, "authority.pem"), authority.cert);
  const javaProperties = {
    "zookeeper.client.secure": "true",
    "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
    "zookeeper.ssl.keyStore.location": join(folder, "client.pem"),
    "zookeeper.ssl.trustStore.location": join(folder, "authority.pem"),
  };
  return { ca: authority.cert, ...client, authority, javaProperties };
}

/** Returns the zoo.cfg settings of a server with TLS. @param clientAuth need, want or none */
export function serverTls(folder: string, clientAuth: string): Record<string, string> {
  return {
    serverCnxnFactory: "org.apache.zookeeper.server.NettyServerCnxnFactory",
    "ssl.keyStore.location": join(folder, "server.pem"),
    "ssl.trustStore.location": join(folder, "authority.pem"),
    "ssl.clientAuth": clientAuth,
  };
}

/** Returns the zoo.cfg settings for SASL. @param required true if the server refuses clients without a login */
export function saslConfig(required: boolean): Record<string, string | boolean> {
  return {
    "authProvider.sasl": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
    ...(required ? { sessionRequireClientSASLAuth: true } : {}),
  };
}

const loginModule = "org.apache.zookeeper.server.auth.DigestLoginModule required";

/** Writes the login file of a server that accepts these users; returns the system properties that refer to it. */
export function serverLogins(folder: string, users: Readonly<Record<string, string>>): Record<string, string> {
  const known = Object.entries(users).map(([name, password]) => `user_${name}=${JSON.stringify(password)}`);
  return writeLogin(join(folder, "server-jaas.conf"), "Server", known);
}

/** Writes the login file of a Java client; returns the system properties that refer to it. */
export function clientLogin(folder: string, user: string, password: string): Record<string, string> {
  const words = [`username=${JSON.stringify(user)}`, `password=${JSON.stringify(password)}`];
  return writeLogin(join(folder, `client-${user}-jaas.conf`), "Client", words);
}

function writeLogin(path: string, section: string, words: readonly string[]): Record<string, string> {
  writeFileSync(path, `${section} {\n  ${[loginModule, ...words].join("\n  ")};\n};\n`);
  return { "java.security.auth.login.config": path };
}

/** Returns the system properties that give the user `super` with this password all permissions. */
export function superUser(password: string): Record<string, string> {
  const digest = createHash("sha1").update(`super:${password}`).digest("base64");
  return { "zookeeper.DigestAuthenticationProvider.superDigest": `super:${digest}` };
}
