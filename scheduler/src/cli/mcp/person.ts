/** Asks the person at the client to agree to an act, by elicitation, where the client can do that. */
import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  type InputRequiredResult,
  inputRequired,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { CarillonError } from "../../base/errors.ts";

export interface Person {
  /** The confirmation that the person was asked about; undefined: the person has not been asked yet. */
  token: string | undefined;
  agrees: boolean;
}

const question = "confirm";
const shownCharacters = 2_000;

/** @returns undefined if the client has no way to ask */
export function personAt(
  { envelope, inputResponses, requestState }: ServerContext["mcpReq"],
  atStart: ClientCapabilities | undefined,
): Person | undefined {
  // Newer clients name their capabilities in each request, others once, at the start.
  const inRequest = (envelope as Record<string, ClientCapabilities> | undefined)?.[CLIENT_CAPABILITIES_META_KEY];
  const { elicitation } = inRequest ?? atStart ?? {};
  // A client that names no form of asking has the one by a form.
  if (!elicitation || (elicitation.url !== undefined && elicitation.form === undefined)) return undefined;
  const reply = inputResponses?.[question] as { action?: unknown } | undefined;
  return { token: reply === undefined ? undefined : requestState<string>(), agrees: reply?.action === "accept" };
}

/** @param given the arguments, which the person sees as they are */
export function asking(name: string, given: object, would: string, token: string): InputRequiredResult {
  const text = JSON.stringify(given);
  const shown =
    text.length <= shownCharacters ? text : `${text.slice(0, shownCharacters)}… (${text.length} characters)`;
  return inputRequired({
    inputRequests: {
      [question]: inputRequired.elicit({
        message: `Carillon: ${name} ${shown}\n${would} Do it?`,
        requestedSchema: { type: "object", properties: {} },
      }),
    },
    requestState: token,
  });
}

export const declined = (): CarillonError =>
  new CarillonError("CONFIRMATION_REFUSED", "the person did not agree; nothing was changed", {
    hint: "Ask the person what to do instead.",
  });
