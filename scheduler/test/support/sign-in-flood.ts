import { hashPassword } from "../../src/access/password.ts";
import { carillon } from "../../src/library/carillon.ts";
import { postgres } from "./servers.ts";
import { openStage, until } from "./store-stage.ts";

const password = "nine owls over Kyoto";

export interface Tried {
  status: number;
  ms: number;
}

export interface Flooded {
  /** The owner's sign-in before the flood. */
  before: Tried;
  /** The owner's requests during the flood, by name. */
  tries: Record<string, Tried>;
  /** By HTTP status: the number of guesses with this status. */
  statuses: Map<number, number>;
}

/** Lets the owner sign in and change the password during a flood of up to 200 wrong guesses a second from many addresses. */
export async function floodSignIn(): Promise<Flooded> {
  const stage = await openStage(postgres());
  const { schema } = stage;
  const store = postgres().url;
  const listen = "127.0.0.1:0";
  const tower = carillon({ store, schema, listen, behindProxy: true, worker: false, handleSignals: false });
  let flooding = true;
  try {
    await tower.start();
    const { access } = (await tower.open()).store;
    const change = { author: "test", reason: "", nowMs: Date.now() };
    await access.createUser({ name: "ann", hash: await hashPassword(password), role: "admin" }, change);
    const post = (path: string, body: object, headers: Record<string, string>) =>
      fetch(`http://${tower.listening}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
      });
    const signIn = (given: string, address: string, cookie = "") =>
      post("/v1/sign-in", { name: "ann", password: given }, { "x-forwarded-for": address, cookie });
    let cookies: string[] = [];
    const timed = async (asked: () => Promise<Response>): Promise<Tried> => {
      const began = performance.now();
      const { status, headers } = await asked();
      cookies = cookies.length > 0 ? cookies : headers.getSetCookie().map((text) => text.split(";")[0] as string);
      return { status, ms: performance.now() - began };
    };
    const before = await timed(() => signIn(password, "192.0.2.1"));
    const known = cookies.find((text) => text.includes("-known=")) as string;
    const guesses: Promise<unknown>[] = [];
    const statuses = new Map<number, number>();
    const flood = (async () => {
      for (let n = 0; flooding; n++) {
        const address = `10.${(n % 10_000) >> 8}.${n % 256}.7`;
        guesses.push(
          signIn(`guess ${n} of it`, address).then(async (response) => {
            await response.arrayBuffer();
            statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
          }),
        );
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    })();
    await until("the line of strangers is full", () => (statuses.get(429) ?? 0) > 100);
    const tries = {
      "from an address that she signed in from": await timed(() => signIn(password, "192.0.2.1")),
      "from another, in a browser that she signed in with": await timed(() => signIn(password, "10.0.0.7", known)),
      "to change the password": await timed(() =>
        post("/v1/me/password", { present: password, next: `${password} again` }, { cookie: cookies.join("; ") }),
      ),
    };
    flooding = false;
    await flood;
    await Promise.all(guesses);
    return { before, tries, statuses };
  } finally {
    flooding = false;
    await tower.stop();
    await stage.close();
  }
}
