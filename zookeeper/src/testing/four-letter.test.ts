import { expect, it } from "vitest";
import { ephemeralsIn } from "./four-letter.ts";

/** An answer of ZooKeeper 3.9 to `dump`, in which the second session owned a node that has been deleted. */
const dump = `SessionTracker dump:
Session Sets (1)/(2):
2 expire at Fri Nov 27 18:48:23 UTC 2026:
	0x10000fae56e0001
	0x10000fae56e0000
ephemeral nodes dump:
Sessions with Ephemerals (2):
0x10000fae56e0000:
	/a
	/b c
0x10000fae56e0001:
Connections dump:
Connections Sets (2)/(3):
2 expire at Fri Nov 27 18:48:24 UTC 2026:
	ip: /127.0.0.1:56920 sessionId: 0x10000fae56e0000
	ip: /127.0.0.1:56934 sessionId: 0x10000fae56e0001
1 expire at Fri Nov 27 18:48:34 UTC 2026:
	ip: /127.0.0.1:56946 sessionId: 0x0
`;

it("ephemeral nodes are read from their own section of a dump, by session", () => {
  expect(ephemeralsIn(dump)).toEqual(new Map([["0x10000fae56e0000", ["/a", "/b c"]]]));
  // If no session has a node, a connection in the next section must not be taken for a node.
  expect(ephemeralsIn(dump.replace("\t/a\n\t/b c\n", ""))).toEqual(new Map());
});
