import { createHmac } from "node:crypto";
import { expect, it } from "vitest";
import { signedAs } from "../../../test/support/rfc9421.ts";
import type { HttpTaskOptions } from "../../settings/settings.ts";
import { runHeaders, signed, signingKeys } from "./signature.ts";

const marks = { schedule: "", run: "42", slot: "", attempt: "2", fence: "7" };
const told = ["carillon-task", "carillon-run", "carillon-attempt", "carillon-fence"];
const [body, seconds] = ['{"a":1}', 1_800_000_000];

/** The headers with which a run of the task would be sent. */
function headersOf(task: string, options: HttpTaskOptions): Record<string, string> {
  const message = { method: "POST", url: new URL("https://api.test/settle"), body: Buffer.from(body) };
  return runHeaders(
    message,
    { task, ...marks },
    signingKeys(options, () => undefined)(task, message.url.hostname),
    seconds,
  );
}

it("signs as in RFC 9421 (B.2.5)", () => {
  const secret = Buffer.from(
    "uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ==",
    "base64",
  );
  const components: [string, string][] = [
    ["date", "Tue, 20 Apr 2021 02:07:55 GMT"],
    ["@authority", "example.com"],
    ["content-type", "application/json"],
  ];
  expect(signed(components, { secret, keyId: "test-shared-secret" }, 1618884473)).toEqual({
    input: '("date" "@authority" "content-type");created=1618884473;keyid="test-shared-secret"',
    signature: "pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8=",
  });
});

it("signs with the namespace's own secret, or with the cluster's, for which it warns once", () => {
  const options = { secret: "of all", namespaceSecrets: { billing: "of billing" } };
  const isSigned = (headers: Record<string, string>, keyId: string, secret: string) => {
    const came = { method: "POST", url: "/settle", headers: { ...headers, host: "api.test" }, raw: body };
    expect(headers).toMatchObject(signedAs(came, told, keyId, secret));
  };
  const ours = headersOf("billing/settle", options);
  isSigned(ours, "namespace:billing", "of billing");
  for (const task of ["ops/clean", "billings", "settle"]) isSigned(headersOf(task, options), "cluster", "of all");

  const legacy = createHmac("sha256", "of all").update(`${seconds}\n42\n\n2\n7\n${body}`).digest("hex");
  expect(ours["carillon-signature"], "receivers that know the cluster's secret alone go on").toBe(`v1=${legacy}`);
  expect(headersOf("billing/settle", { ...options, legacySignature: false })["carillon-signature"]).toBeUndefined();
  const unsigned = headersOf("ops/clean", { namespaceSecrets: options.namespaceSecrets });
  expect(Object.keys(unsigned).sort()).toEqual([...told, "carillon-timestamp"].sort());

  const warned: string[] = [];
  const keysFor = signingKeys(options, (message) => void warned.push(message));
  for (const task of ["billing/settle", "ops/clean", "ops/sweep", "billings", "ops/clean"]) keysFor(task, "api.test");
  expect(warned).toEqual([expect.stringContaining("namespace ops "), expect.stringContaining("namespace default ")]);
});

it.each<object>([{ billing: "" }, { "a b": "s3cret" }, { billing: 7 }])(
  "refuses the namespace secrets %j",
  (namespaceSecrets) => {
    const made = () => headersOf("t", { namespaceSecrets: namespaceSecrets as Record<string, string> });
    expect(made).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
    expect(made).not.toThrow(/s3cret/);
  },
);
