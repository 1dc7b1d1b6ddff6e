/** The paths of mailboxes, and the one step that decides which member gets a letter. */
import { isZooKeeperError, ZooKeeperError } from "../../base/errors.ts";
import { checkPath } from "../../base/paths.ts";
import type { Session, ZooKeeper } from "../../operations/session.ts";
import { backOffMs, isPassing } from "../base/follow.ts";
import { createContainers, deleteSurely } from "../base/protect.ts";
import { pause } from "../base/waiting.ts";

/**
 * `members/<member>`: ephemeral, while the member lives. `assign/<member>/<id>`: an unclaimed letter. `claims/<member>/<id>`: the
 * mark of its claimer, for a moment. `sent/<id>`: the receipt of its sending, for a moment, ephemeral.
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
 * Claims a letter: deletes its node, and in the same transaction leaves a mark with the claimer's life. The client that deletes
 * the node has the letter; no other client can. If the answer is lost, the mark shows the result, in the next session as well: it
 * is persistent, because a letter that was claimed without the claimer's knowledge would be lost.
 * @param life of the claimer: unique to this start of this process
 * @returns false if the letter was another's: reclaimed, or claimed
 * @throws errors that do not pass by themselves; CLOSED, and then the result is unknown
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
      // Nothing may throw from here once a claim is unsure, save what ends the client.
      if (isZooKeeperError(error, "NO_NODE") && error.path === letter) return false;
      if (isZooKeeperError(error, "NO_NODE")) missing = true;
      // Under an id that came back: the mark of an earlier letter, about to go. Were it ours, it would have been seen.
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
