/** The paths of mailboxes, and the transaction that decides which member gets a letter. */
import { isZooKeeperError, ZooKeeperError } from "../../base/errors.ts";
import { checkPath } from "../../base/paths.ts";
import type { Session, ZooKeeper } from "../../operations/session.ts";
import { backOffMs, isPassing } from "../base/follow.ts";
import { createContainers, deleteSurely } from "../base/protect.ts";
import { pause } from "../base/waiting.ts";

/**
 * `members/<member>`: ephemeral node while the member lives. `assign/<member>/<id>`: an unclaimed letter. `claims/<member>/<id>`:
 * the claimer's mark, short-lived. `sent/<id>`: the sender's receipt, short-lived and ephemeral.
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
 * Claims a letter: deletes its node and, in the same transaction, creates a mark with the claimer's life. Only the client that
 * deletes the node has the letter. If the answer is lost, the mark shows the result, also in the next session: the mark is
 * persistent, because a letter that was claimed without the claimer's knowledge would be lost.
 * @param life of the claimer: an id that is unique to this mailbox object
 * @returns false if the letter was already reclaimed, or claimed by another client
 * @throws errors that do not pass by themselves; CLOSED: then the result is unknown
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
      // Once the result of a claim is unknown, only the client's end may throw from here.
      if (isZooKeeperError(error, "NO_NODE") && error.path === letter) return false;
      if (isZooKeeperError(error, "NO_NODE")) missing = true;
      // The mark belongs to an earlier letter with the same id and is about to be deleted: this claim's own mark would have been
      // found above.
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
