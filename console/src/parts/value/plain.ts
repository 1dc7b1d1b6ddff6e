// Control characters that change the direction of text, and could make a text look like another one.
const turning = /[\u202a-\u202e\u2066-\u2069]/g;

/**
 * Replaces characters that change the text direction by U+FFFD, so that text from other users is safe to show. React escapes
 * markup.
 */
export const plain = (text: string): string => text.replace(turning, "\ufffd");
