/**
 * `npm run pin-images`: in deploy/, adds to the tag of each foreign image the digest that its registry has for the tag now (docker buildx).
 * A build then uses the reviewed image even if the tag is moved. Run this again to use a tag's new image.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./ready.mjs";
import { showsUsage } from "./usage.mjs";

const files = ["deploy/Dockerfile", "deploy/compose.yaml", "deploy/kubernetes/carillon.yaml"];
const named = /^(FROM +|[ -]*image: *)([a-z\d./-]+:[\w.-]+)(?:@sha256:[\da-f]{64})?(?=\s|$)/gm;

/** Images that this repository or users of deploy/ build themselves. */
const built = /^(?:carillon|my-tasks):/;

/**
 * Returns the text with a digest after each image, except images that are built by this repository or by users.
 * @param {string} text @param {(image: string) => string} digestOf returns the digest (sha256:…) of an image with its tag
 */
export const pinned = (text, digestOf) =>
  text.replace(named, (_, before, image) =>
    built.test(image) ? `${before}${image}` : `${before}${image}@${digestOf(image)}`,
  );

/** @param {string} image @returns {string} */
function askRegistry(image) {
  const args = ["buildx", "imagetools", "inspect", image, "--format", "{{.Manifest.Digest}}"];
  const { status, stdout, stderr, error } = spawnSync("docker", args, { encoding: "utf8" });
  const digest = stdout?.trim();
  if (status === 0 && /^sha256:[\da-f]{64}$/.test(digest)) return digest;
  throw new Error(`no digest of ${image}: ${error?.message ?? stderr}`);
}

if (process.argv[1]?.endsWith("pin-images.mjs") && !showsUsage("scripts/pin-images.mjs")) {
  const digests = new Map();
  const digestOf = (/** @type {string} */ image) => {
    if (!digests.has(image)) digests.set(image, askRegistry(image));
    return digests.get(image);
  };
  const written = files.map((file) => ({ file, text: pinned(readFileSync(join(root, file), "utf8"), digestOf) }));
  for (const { file, text } of written) writeFileSync(join(root, file), text);
  for (const [image, digest] of digests) process.stdout.write(`${image} ${digest}\n`);
}
