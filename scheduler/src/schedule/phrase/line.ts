/** The tokens of a phrase and the current position. This is the base class of the parser's parts. */
import { nearestWord, refusal, type Token } from "./words.ts";

export const range = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, at) => first + at);
/** Returns the values from first to last. If the last value is less than the first, the range wraps around the end of the cycle. */
export const around = (first: number, last: number, cycle: number, from = 0) =>
  Array.from({ length: ((last - first + cycle) % cycle) + 1 }, (_, at) => ((first - from + at) % cycle) + from);

export class PhraseLine {
  protected readonly phrase: string;
  protected readonly tokens: Token[];
  protected at = 0;

  constructor(phrase: string, tokens: Token[]) {
    this.phrase = phrase;
    this.tokens = tokens;
  }

  protected peek(ahead = 0): Token | undefined {
    return this.tokens[this.at + ahead];
  }

  protected next(): Token | undefined {
    return this.tokens[this.at++];
  }

  protected word(text: string, ahead = 0): boolean {
    const token = this.peek(ahead);
    return token?.kind === "word" && token.text === text;
  }

  protected eat(text: string): boolean {
    if (!this.word(text)) return false;
    this.at++;
    return true;
  }

  protected eats(kind: Token["kind"]): boolean {
    if (this.peek()?.kind !== kind) return false;
    this.at++;
    return true;
  }

  protected must(text: string): void {
    if (!this.eat(text))
      throw this.refuse(
        `${JSON.stringify(text)} is missing${this.peek() ? ` before ${JSON.stringify(this.peek()?.text)}` : ""}`,
      );
  }

  /**
   * Consumes a comma, "and", or both, if the list continues after it.
   * @param goesOn receives the token after the separator and its offset from the current token, and returns true if the list continues
   */
  protected separator(goesOn: (next: Token | undefined, ahead: number) => boolean): boolean {
    let ahead = 0;
    if (this.peek(ahead)?.kind === "comma") ahead++;
    if (this.word("and", ahead)) ahead++;
    if (ahead === 0 || !goesOn(this.peek(ahead), ahead)) return false;
    this.at += ahead;
    return true;
  }

  protected number(first: number, last: number): number {
    const token = this.next();
    if (token?.kind !== "number") throw this.refuse(`a number from ${first} to ${last} is missing`);
    if (token.value < first || token.value > last) throw this.refuse(`${token.value} is not from ${first} to ${last}`);
    return token.value;
  }

  /** Parses a list such as "1, 5 and 10 to 14". @param cycle the number of values after which ranges wrap around; 0 if they do not wrap */
  protected numbers(first: number, last: number, cycle = 0, from = 0): number[] {
    const values: number[] = [];
    do {
      const one = this.number(first, last);
      if (this.word("to") && this.peek(1)?.kind === "number") {
        this.at++;
        const end = this.number(first, last);
        if (end < one && cycle === 0) throw this.refuse(`${one} to ${end} goes backwards`);
        values.push(...(end < one ? around(one, end, cycle, from) : range(one, end)));
      } else values.push(one);
    } while (this.separator((next) => next?.kind === "number"));
    return values;
  }

  protected add(values: number[], more: number[]): boolean {
    values.push(...more);
    return true;
  }

  protected unknown(token: Token | undefined): Error {
    if (!token) return this.refuse("it ends too early");
    const meant = token.kind === "word" ? nearestWord(token.text) : undefined;
    const better =
      meant && meant !== token.text ? [this.phrase.replace(new RegExp(`\\b${token.text}\\b`, "i"), meant)] : [];
    return this.refuse(`${JSON.stringify(token.text)} is not understood here`, better);
  }

  protected refuse(why: string, suggestions: readonly string[] = []) {
    return refusal(this.phrase, why, suggestions);
  }
}
