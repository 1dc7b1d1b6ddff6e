import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";

/** A file with certificates, and the time at which the first of them expires. */
export interface Certificate {
  file: string;
  endsMs: number;
}

const pem = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * Returns the certificates in files that this process uses: the client certificate and the authorities in the store's URL (`sslcert`,
 * `sslrootcert`), and the authorities of NODE_EXTRA_CA_CERTS. A file that cannot be read, or holds no certificate, is left out: the
 * connection that needs it fails with a message of its own.
 * @param store the URL of the store
 */
export function certificatesOf(store: string | undefined, extra: string | undefined): Certificate[] {
  const parameters = new URLSearchParams(store?.split(/\?([\s\S]*)/)[1] ?? "");
  const files = [parameters.get("sslcert"), parameters.get("sslrootcert"), extra].filter((file) => file);
  return [...new Set(files as string[])].flatMap((file) => {
    const ends = endsIn(file);
    return ends.length === 0 ? [] : [{ file, endsMs: Math.min(...ends) }];
  });
}

function endsIn(file: string): number[] {
  try {
    return (readFileSync(file, "utf8").match(pem) ?? []).map((one) => Date.parse(new X509Certificate(one).validTo));
  } catch {
    return [];
  }
}
