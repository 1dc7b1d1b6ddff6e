import { systemClock } from "../../base/clock.ts";
import { CarillonError } from "../../base/errors.ts";
import { checkNames } from "../../base/nearest.ts";
import type { PayloadStore } from "../../settings/payload-store.ts";

export interface S3Credentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
}

export interface S3Options {
  bucket: string;
  /** Default "us-east-1". */
  region?: string;
  /** The endpoint for path-style addresses, such as "https://minio.example:9000"; default: Amazon's endpoint of the region. */
  endpoint?: string;
  /** A prefix of each key, such as "carillon/". Default: none. */
  prefix?: string;
  /** A function is called for each request, because credentials of a role are valid only for hours. */
  credentials: S3Credentials | (() => S3Credentials | Promise<S3Credentials>);
}

const answerMs = 30_000;
const tries = 4;
const shownLength = 300;

/**
 * Payloads as objects of a bucket of Amazon S3, or of a store with its API, such as MinIO or R2. Requests are signed by AWS Signature
 * Version 4; those answered by 429 or 5xx are sent again, four times in all. @throws OPTION_INVALID
 */
export function s3Payloads(options: S3Options): PayloadStore {
  checkNames("s3Payloads", options, ["bucket", "region", "endpoint", "prefix", "credentials"]);
  const { bucket, region = "us-east-1", endpoint = `https://s3.${region}.amazonaws.com`, prefix = "" } = options;
  const { credentials } = options;
  if (typeof bucket !== "string" || bucket === "") throw wrong("bucket", "there is no bucket", "Name one.");
  if (!URL.canParse(endpoint))
    throw wrong("endpoint", "endpoint is no URL", 'Give one such as "https://minio.example:9000".');
  if (!credentials)
    throw wrong("credentials", "there are no credentials", "Give { accessKeyId, secretAccessKey }, or a function.");
  const base = `${endpoint.replace(/\/$/, "")}/${encodeURIComponent(bucket)}/`;
  /** Signing keys by day. */
  const cache = new Map<string, ArrayBuffer>();

  const ask = async (method: "GET" | "PUT", key: string, body?: string): Promise<Response> => {
    const { AwsClient } = await import("aws4fetch");
    const own = typeof credentials === "function" ? await credentials() : credentials;
    const client = new AwsClient({ ...own, service: "s3", region, cache, retries: tries - 1 });
    const headers = { "content-type": "application/json" };
    const url = base + `${prefix}${key}`.split("/").map(encodeURIComponent).join("/");
    const over = new AbortController();
    const late = () => over.abort(new Error(`there was no answer within ${answerMs / 1_000} s`));
    const cancel = systemClock.after(answerMs, late);
    const more = body === undefined ? {} : { body, headers };
    return client.fetch(url, { method, ...more, signal: over.signal }).finally(cancel);
  };
  const refused = async (what: string, response: Response) =>
    new Error(`the object could not be ${what}: ${response.status} ${(await response.text()).slice(0, shownLength)}`);

  return {
    async put(key, text) {
      const response = await ask("PUT", key, text);
      if (!response.ok) throw await refused("written", response);
      await response.arrayBuffer();
    },
    async get(key) {
      const response = await ask("GET", key);
      if (response.ok) return response.text();
      const error = await refused("read", response);
      // A missing object is null, but a missing bucket is an error.
      if (response.status === 404 && !error.message.includes("NoSuchBucket")) return null;
      throw error;
    },
  };
}

const wrong = (path: string, what: string, hint: string) =>
  new CarillonError("OPTION_INVALID", `s3Payloads: ${what}`, { path, hint });
