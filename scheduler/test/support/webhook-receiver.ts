import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";

export interface Posted {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  raw: string;
  /** The HTTP status of the response; null: the request got no response. */
  status: number | null;
  body: {
    kind: string;
    rule: string;
    total: number;
    news: number;
    text: string;
    subjects: { task: string; count: number; text: string }[];
    moreSubjects: number;
  };
}

/** A server that receives webhooks; a test sets its responses. */
export class WebhookReceiver {
  readonly posted: Posted[] = [];
  /** The HTTP status of the responses; null: requests get no response. */
  status: number | null = 200;
  readonly #server: Server = createServer((request, response) => {
    let raw = "";
    request.on("data", (chunk) => {
      raw += chunk;
    });
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      this.posted.push({ method, url, headers, raw, status: this.status, body: JSON.parse(raw) });
      if (this.status !== null) response.writeHead(this.status).end();
    });
  });

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/hook`;
  }

  kinds(rule: string): string[] {
    return this.posted.filter(({ body }) => body.rule === rule).map(({ body }) => body.kind);
  }

  close(): Promise<void> {
    this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }
}
