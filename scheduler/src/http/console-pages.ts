/**
 * Serves the files of the console from the package @carillon/console, which `npm run build` creates. File names contain a hash of the
 * content, so browsers may cache them indefinitely. Compressible files are stored only in brotli; other encodings are computed at the first
 * request and cached. Over plain HTTP browsers accept gzip but not brotli. If a browser requests a page at a path without a route, it gets
 * the console's single page, which selects the view by the path.
 */
import { randomBytes } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, extname, sep } from "node:path";
import { promisify } from "node:util";
import { brotliDecompress, gzip } from "node:zlib";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { messageOf } from "../base/errors.ts";
import type { ServedSettings } from "../settings/served.ts";

/** The folder of the built console, ending in a slash; null if the package is not installed or not built. */
function builtFolder(): string | null {
  try {
    return dirname(createRequire(import.meta.url).resolve("@carillon/console")) + sep;
  } catch {
    return null; // `page` then answers that the console is missing
  }
}

const kinds: Record<string, string> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".woff2": "font/woff2",
};
const unpack = promisify(brotliDecompress);
const zip = promisify(gzip);
const packedEnd = ".br";

/** The value of the header `content-encoding`; "" if the body is not encoded. */
type Encoding = "br" | "gzip" | "";
const encodings: readonly Encoding[] = ["br", "gzip"];
/** Matches the placeholder in the built page, which each response replaces by its own nonce. */
const noncePlace = /CARILLON-NONCE/g;

/** The places in the built page where the base path stands: in a meta element for the page's code, and before the addresses of files. */
const basePlace = /CARILLON-BASE|(?<=")\.(?=\/assets\/)/g;

/** The content security policy: scripts only from this server and none inline; style elements need the response's nonce. */
const policy = (nonce: string, frameAncestors: readonly string[]) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "worker-src 'self'",
    `frame-ancestors ${frameAncestors.join(" ") || "'none'"}`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");

const missing = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Carillon</title>
<h1>This server has no console</h1>
<p>It runs from a source tree in which the console was not built. <code>npm run build</code> builds it; then start the server
again. The API is at <code>/v1</code> all the same.</p></html>
`;

/** A screen of the console: the path of its route, such as `/tasks/$task`, and the files that it needs beside those of the page. */
interface ScreenFiles {
  path: string;
  files: string[];
}

/**
 * Elements that have the browser request the files of a screen together with the page's own, before its code asks for them. Stylesheets
 * are applied at once and not only preloaded: to a user who has to sign in first, the browser would report preloaded ones as unused.
 */
const linksTo = (files: readonly string[]): string =>
  files
    .map((file) => {
      const rel = file.endsWith(".css") ? "stylesheet" : "modulepreload";
      return `<link rel="${rel}" crossorigin href="./${file}" nonce="CARILLON-NONCE">`;
    })
    .join("\n    ");

/** Returns `otherwise` if the file does not exist. */
const unlessMissing = (reading: Promise<string>, otherwise: string): Promise<string> =>
  reading.catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return otherwise;
    throw error;
  });

export class ConsolePages {
  readonly #files = new Map<string, Promise<Buffer>>();
  readonly #folder: string | null;
  readonly #served: ServedSettings;
  #names = new Set<string>();
  /** The HTML of the console's page; null: the console is not built. */
  #page: string | null = null;
  /** The HTML of each screen: the page with the files of the screen. */
  #screens: { path: RegExp; page: string }[] = [];

  /** @param folder the folder of the built console, ending in a slash; null if it is not built */
  constructor(served: ServedSettings, folder: string | null = builtFolder()) {
    this.#served = served;
    this.#folder = folder;
  }

  /** Registers the route of the files. Their names are listed once, so that names in requests are never used as paths unless listed. */
  async register(app: FastifyInstance): Promise<void> {
    if (this.#folder !== null) {
      const [page, screens] = await Promise.all([
        readFile(`${this.#folder}index.html`, "utf8"),
        // Older builds of the console have no such file.
        unlessMissing(readFile(`${this.#folder}screens.json`, "utf8"), "[]"),
      ]);
      const made = (links: string) =>
        page.replace("</head>", `${links}\n  </head>`).replace(basePlace, this.#served.basePath);
      this.#page = made("");
      this.#screens = (JSON.parse(screens) as ScreenFiles[]).map(({ path, files }) => ({
        path: new RegExp(`^${path.replaceAll(/\$\w+/g, "[^/]+")}(?:\\?|$)`),
        page: made(linksTo(files)),
      }));
      this.#names = new Set(await readdir(`${this.#folder}assets`));
    }
    const config = { policy: "anyone" as const, touches: "nothing" as const };
    app.get("/assets/:file", { config, compress: false }, (request, reply) =>
      this.#asset((request.params as { file: string }).file, request, reply),
    );
  }

  /** True if a browser requests a page; false for a request by a program or for the API. */
  isPage({ method, url, headers }: FastifyRequest): boolean {
    return (
      (method === "GET" || method === "HEAD") &&
      !/^\/(?:v1|assets|metrics)(?:[/?]|$)/.test(url) &&
      /\btext\/html\b/.test(headers.accept ?? "")
    );
  }

  page({ url }: FastifyRequest, reply: FastifyReply): FastifyReply {
    const nonce = randomBytes(16).toString("base64");
    const { frameAncestors } = this.#served;
    reply.headers({
      "content-security-policy": policy(nonce, frameAncestors),
      "content-type": "text/html; charset=utf-8",
    });
    // This older header cannot name origins. A browser that knows the policy ignores the header.
    if (frameAncestors.length > 0) reply.removeHeader("x-frame-options");
    if (this.#page === null) return reply.code(503).send(missing);
    const page = this.#screens.find(({ path }) => path.test(url))?.page ?? this.#page;
    return reply.code(200).send(page.replace(noncePlace, nonce));
  }

  async #asset(name: string, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const type = kinds[extname(name)];
    const isPacked = this.#names.has(`${name}${packedEnd}`);
    if (type === undefined || !(isPacked || this.#names.has(name))) {
      // After an update, an open page may request a file that no longer exists; on this answer, the page reloads itself.
      reply.callNotFound();
      return reply;
    }
    const taken = String(request.headers["accept-encoding"] ?? "");
    const encoding = (isPacked && encodings.find((one) => new RegExp(`\\b${one}\\b`).test(taken))) || "";
    try {
      const body = await (isPacked ? this.#encoded(name, encoding) : this.#kept(name, () => this.#read(name)));
      reply.headers({
        "content-type": type,
        "cache-control": "public, max-age=31536000, immutable",
        vary: "accept-encoding",
      });
      if (encoding !== "") reply.header("content-encoding", encoding);
      return reply.send(body);
    } catch (error) {
      request.log.warn({ error: messageOf(error), name }, "a file of the console could not be read");
      reply.callNotFound();
      return reply;
    }
  }

  /** Returns a file in the given encoding. @param name a file that is stored in brotli */
  #encoded(name: string, encoding: Encoding): Promise<Buffer> {
    const packed = () => this.#kept(`${name} br`, () => this.#read(`${name}${packedEnd}`));
    if (encoding === "br") return packed();
    return this.#kept(`${name} ${encoding}`, async () => {
      const plain = await unpack(await packed());
      return encoding === "gzip" ? zip(plain, { level: 9 }) : plain;
    });
  }

  #read(name: string): Promise<Buffer> {
    return readFile(`${this.#folder}assets/${name}`);
  }

  /**
   * Calls `make` once per key, again only after a failure, and caches the result without limit: there are only a few dozen small
   * files.
   */
  #kept(key: string, make: () => Promise<Buffer>): Promise<Buffer> {
    const known = this.#files.get(key);
    if (known) return known;
    const making = make();
    this.#files.set(key, making);
    making.catch(() => this.#files.delete(key));
    return making;
  }
}
