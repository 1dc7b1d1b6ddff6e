import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";

/** A certificate in a file that this process uses, and the times between which it is valid. */
export interface Certificate {
  file: string;
  beginsMs: number;
  endsMs: number;
}

/** A file of NODE_EXTRA_CA_CERTS with more certificates than this is the operating system's list of authorities. */
const ownMost = 20;
/** The most certificates that a process reports, those that expire first. */
const reportedMost = 10;

const pem = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * Returns the certificates in files that this process uses: the client certificate and the authorities in the store's URL (`sslcert`,
 * `sslrootcert`), and the authorities of NODE_EXTRA_CA_CERTS. An authority that has expired is left out if its file has one that is valid. A
 * file that cannot be read, or holds no certificate, is left out: the connection that needs it fails with a message of its own.
 * @param store the URL of the store
 * @param extra the value of NODE_EXTRA_CA_CERTS
 * @param nowMs the present time
 */
export function certificatesOf(store: string | undefined, extra: string | undefined, nowMs: number): Certificate[] {
  const parameters = new URLSearchParams(store?.split(/\?([\s\S]*)/)[1] ?? "");
  const named = [parameters.get("sslcert"), parameters.get("sslrootcert")];
  const own = extra && read(extra).length > ownMost ? undefined : extra;
  return [...new Set([...named, own])]
    .flatMap((file) => (file ? certificatesIn(file, nowMs) : []))
    .sort((a, b) => a.endsMs - b.endsMs)
    .slice(0, reportedMost);
}

function certificatesIn(file: string, nowMs: number): Certificate[] {
  const all = read(file);
  const ends = ({ validTo }: X509Certificate) => Date.parse(validTo);
  const hasValid = all.some((one) => one.ca && ends(one) > nowMs);
  return all
    .filter((one) => !(one.ca && hasValid && ends(one) <= nowMs))
    .map((one) => ({ file, beginsMs: Date.parse(one.validFrom), endsMs: ends(one) }));
}

function read(file: string): X509Certificate[] {
  try {
    return (readFileSync(file, "utf8").match(pem) ?? []).map((one) => new X509Certificate(one));
  } catch {
    return [];
  }
}
