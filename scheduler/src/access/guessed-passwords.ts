/**
 * Words that guessed passwords often contain, and keyboard rows. Words are removed from the password in this order, so a word stands
 * before its own beginnings: "qwertyuiop" before "qwerty".
 */
const common =
  "passwort password passw0rd p@ssword p@ssw0rd kennwort welcome willkommen letmein qwertyuiop qwertzuiop qwerty qwertz asdfghjkl asdfgh " +
  "zxcvbnm yxcvbnm 1q2w3e4r5t 1q2w3e4r 1qaz2wsx qazwsx abc123 abcdefghijklmnopqrstuvwxyz abcdefghijkl abcdefgh abcdef abcd iloveyou monkey dragon " +
  "sunshine princess football baseball basketball superman batman starwars trustno1 whatever computer internet michael jordan shadow master " +
  "killer charlie secret changeme changeit default administrator admin root login access hello freedom ninja mustang hunter ashley bailey " +
  "jennifer jessica andrew thomas daniel michelle nicole summer winter spring autumn january february november december monday " +
  "carillon scheduler correct horse battery staple";
const words = common.split(" ");
const sequences = /0123|1234|2345|3456|4567|5678|6789|7890|9876|8765|7654|6543|5432|4321/g;
/** A password made of common words needs at least this number of further letters: see `isCommonPassword`. */
const leastOwn = 5;

/**
 * True if a password consists mostly of common words, keyboard rows, digit sequences such as 1234 and repeated characters: without
 * these, and without all digits and signs, fewer than `leastOwn` letters are left. A password that contains none of these is accepted,
 * even one of irregular digits only.
 */
export function isCommonPassword(password: string): boolean {
  let rest = password.normalize("NFKC").toLowerCase();
  for (const word of words) rest = rest.replaceAll(word, " ");
  rest = rest.replace(sequences, " ").replace(/(.)\1+/gu, "$1");
  return rest.replace(/[^\p{L}\p{N}]/gu, "").replace(/\d/g, "").length < leastOwn && rest !== password.toLowerCase();
}
