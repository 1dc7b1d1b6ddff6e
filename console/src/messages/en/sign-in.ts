export const signInEn = {
  "signIn.by": "Sign in with {provider}",
  "signIn.or": "or with a password",
  "signIn.own": "Choose your own password",
  "signIn.ownTold":
    "{user}, your present password was handed over to you, so somebody else has seen it. Nothing else is open until you replace it.",
  "provided.SIGN_IN_REFUSED": "You were not signed in.",
  "provided.PROVIDER_UNREACHABLE": "The sign-in provider does not answer. Try again, or sign in with a password.",
  "provided.TOO_MANY_ATTEMPTS": "Too many sign-ins from here came to nothing. Wait a moment.",
  "provided.USER_NAME_TAKEN": "Somebody else has this user name here. Ask an admin.",
  "provided.other": "The sign-in came to nothing. Try again.",
  "provided.why.attempt": "It was begun in another tab, or more than 10 minutes ago. Begin again.",
  "provided.why.answer": "The answer was not to what this browser asked. Begin again.",
  "provided.why.nobody": "The provider let nobody in. Was it cancelled there?",
  "provided.why.invalid": "The provider's answer does not hold; the server's log says why.",
  "provided.why.rule": "You are known there, but no rule says what you may do here. Ask an admin.",
  "provided.why.name": "The provider does not tell your name. Ask an admin.",
  "provided.why.locked": "You are locked out here. Ask an admin.",
} as const;
