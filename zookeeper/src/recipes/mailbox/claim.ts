/** The paths of mailboxes, and the transaction that decides which client gets a letter. */
import { isZooKeeperError, ZooKeeperError } from "../../base/errors.ts";
import { checkPath } from "../../base/paths.ts";
import type { Session, ZooKeeper } from "../../operations/session.ts";
import { backOffMs, isPassing } from "../base/follow.ts";
import { createContainers, deleteSurely } from "../base/protect.ts";
import { pause } from "../base/waiting.ts";

/**
 * The nodes of the mailboxes: `members/<member>` is ephemeral and exists while the member is live. `assign/<member>/<id>` is an unclaimed
 * letter. `claims/<member>/<id>` is a short-lived mark of the client that claimed a letter. `sent/<id>` is a sender's receipt, ephemeral
 * and short-lived.
 */
export class MailPaths {
  readonly root: string;

  /** @throws PATH_INVALID */
  constructor(root: string) {
    checkPath(root);
    this.root = root === "/" ? "" : root;
  }

  get members(): string {
    return `${this.root}/members`;
  }

  get boxes(): string {
    return `${this.root}/assign`;
  }

  get receipts(): string {
    return `${this.root}/sent`;
  }

  member(member: string): string {
    return `${this.members}/${oneName(member, "member")}`;
  }

  box(member: string): string {
    return `${this.boxes}/${oneName(member, "member")}`;
  }

  letter(member: string, id: string): string {
    return `${this.box(member)}/${oneName(id, "letter's id")}`;
  }

  marks(member: string): string {
    return `${this.root}/claims/${oneName(member, "member")}`;
  }

  mark(member: string, id: string): string {
    return `${this.marks(member)}/${id}`;
  }

  receipt(id: string): string {
    return `${this.receipts}/${id}`;
  }
}

function oneName(name: string, what: string): string {
  checkPath(`/${name}`);
  if (!name.includes("/")) return name;
  throw new ZooKeeperError("PATH_INVALID", `the ${what} ${JSON.stringify(name)} has a slash in it`, {
    path: name,
    hint: "give it one name, without slashes",
  });
}

/**
 * Claims a letter: in one transaction, deletes its node and creates a mark with the id of the mailbox object. Only the client that deletes
 * the node gets the letter. If the answer is lost, the mark shows the result. The mark is persistent, so that it can be read in the next
 * session too: a letter that was claimed without the client's knowledge would be lost.
 * @param life the random id of the mailbox object
 * @returns false if a sender has reclaimed the letter, or another client has claimed it
 * @throws permanent errors; CLOSED, after which the result is unknown
 */
export async function claimLetter(
  zk: ZooKeeper,
  paths: MailPaths,
  member: string,
  id: string,
  life: string,
): Promise<boolean> {
  const [letter, mark] = [paths.letter(member, id), paths.mark(member, id)];
  let [unsure, missing, stale] = [false, false, false];
  for (let failures = 0; ; ) {
    const session = await zk.established();
    try {
      if (unsure) {
        await session.sync(mark);
        if (await isMarkedBy(session, mark, life)) return true;
      }
      if (missing) await createContainers(session, paths.marks(member));
      if (stale) await deleteSurely(session, mark);
      [missing, stale] = [false, false];
      await session.multi([
        { type: "delete", path: letter },
        { type: "create", path: mark, data: life },
      ]);
      return true;
    } catch (error) {
      // While the result of a claim is unknown, an error may be thrown only if it is permanent or the client has been closed.
      if (isZooKeeperError(error, "NO_NODE") && error.path === letter) return false;
      if (isZooKeeperError(error, "NO_NODE")) missing = true;
      // The mark belongs to an earlier letter with the same id and would soon be deleted. If it were this claim's own mark, it would
      // have been found above.
      else if (isZooKeeperError(error, "NODE_EXISTS")) stale = true;
      else if (zk.signal.aborted || (session.live && !isPassing(error))) throw error;
      else {
        unsure = true;
        await pause(backOffMs(failures++, Math.random()), zk.signal);
      }
    }
  }
}

async function isMarkedBy(session: Session, mark: string, life: string): Promise<boolean> {
  try {
    return (await session.get(mark)).data.toString() === life;
  } catch (error) {
    if (isZooKeeperError(error, "NO_NODE")) return false;
    throw error;
  }
}
