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
  /** Default: "us-east-1". */
  region?: string;
  /**
   * The service's URL, such as "https://minio.example:9000"; the bucket is added to its path. Default: Amazon's endpoint for the region.
   */
  endpoint?: string;
  /** A prefix of each key, such as "carillon/". Default: none. */
  prefix?: string;
  /** Static credentials, or a function that is called for each request, because temporary credentials of a role expire within hours. */
  credentials: S3Credentials | (() => S3Credentials | Promise<S3Credentials>);
}

const answerMs = 30_000;
const tries = 4;
const shownLength = 300;

/**
 * Stores payloads as objects in a bucket of Amazon S3, or of a service with the same API, such as MinIO or R2. Requests are signed with AWS
 * Signature Version 4. A request that gets status 429 or 5xx is sent up to four times in total.
 * @throws OPTION_INVALID
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
  /** The signing keys, one per day and secret key, which aws4fetch fills and reads. */
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
      // A missing object is reported as null; a missing bucket, which has the status 404 too, is reported as an error.
      if (response.status === 404 && !error.message.includes("NoSuchBucket")) return null;
      throw error;
    },
  };
}

const wrong = (path: string, what: string, hint: string) =>
  new CarillonError("OPTION_INVALID", `s3Payloads: ${what}`, { path, hint });
