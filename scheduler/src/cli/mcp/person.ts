/** Asks the user of the MCP client to agree to a call, by elicitation, if the client supports elicitation. */
import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  type InputRequiredResult,
  inputRequired,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { CarillonError } from "../../base/errors.ts";

export interface Person {
  /** The token that came back with the user's reply; undefined if this request contains no reply yet. */
  token: string | undefined;
  agrees: boolean;
}

const question = "confirm";
const shownCharacters = 2_000;

/** Returns the user's reply, if any. @returns undefined if the client cannot ask its user */
export function personAt(
  { envelope, inputResponses, requestState }: ServerContext["mcpReq"],
  atStart: ClientCapabilities | undefined,
): Person | undefined {
  // Newer clients send their capabilities with each request, older ones once at the start.
  const inRequest = (envelope as Record<string, ClientCapabilities> | undefined)?.[CLIENT_CAPABILITIES_META_KEY];
  const { elicitation } = inRequest ?? atStart ?? {};
  // A client that lists no mode of elicitation supports the form mode.
  if (!elicitation || (elicitation.url !== undefined && elicitation.form === undefined)) return undefined;
  const reply = inputResponses?.[question] as { action?: unknown } | undefined;
  return { token: reply === undefined ? undefined : requestState<string>(), agrees: reply?.action === "accept" };
}

/** Creates the question for the user. @param given the arguments of the call, which are shown to the user (cut if they are long) */
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
