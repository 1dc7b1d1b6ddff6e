import { CarillonError } from "../base/errors.ts";

/** Encodes payloads and results before they are stored, for example by encryption, and decodes them afterwards. */
export interface PayloadCodec {
  /**
   * @param text JSON
   * @param of the name of the run's task
   * @returns a text from which `decode` restores the JSON in any process
   */
  encode(text: string, of: { task: string }): string | Promise<string>;
  decode(encoded: string, of: { task: string }): string | Promise<string>;
}

/** Validates the option `codec`. @throws OPTION_INVALID */
export function checkCodec(codec: PayloadCodec | undefined): PayloadCodec | null {
  if (codec === undefined) return null;
  for (const name of ["encode", "decode"] as const)
    if (typeof codec[name] !== "function")
      throw new CarillonError("OPTION_INVALID", `codec has no ${name}`, {
        path: "codec",
        hint: "Give an object with the functions encode and decode.",
      });
  return codec;
}
