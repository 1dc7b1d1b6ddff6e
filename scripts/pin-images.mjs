/**
 * `npm run pin-images`: writes the digest of each foreign image behind its tag, in deploy/, as its registry has it now (docker buildx). A
 * build then uses the image that was reviewed, even if the tag is moved later. Run it again to use a tag's new image.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./ready.mjs";
import { showsUsage } from "./usage.mjs";

const files = ["deploy/Dockerfile", "deploy/compose.yaml", "deploy/kubernetes/carillon.yaml"];
const named = /^(FROM +|[ -]*image: *)([a-z\d./-]+:[\w.-]+)(?:@sha256:[\da-f]{64})?(?=\s|$)/gm;

/** Images that are built here, or by users of deploy/. */
const built = /^(?:carillon|my-tasks):/;

/**
 * Pins each image of a file except those that are built.
 * @param {string} text @param {(image: string) => string} digestOf of an image with its tag: sha256:…
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
