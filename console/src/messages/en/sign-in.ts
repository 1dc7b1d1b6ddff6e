export const signInEn = {
  "signIn.by": "Sign in with {provider}",
  "signIn.or": "or with a password",
  "signIn.own": "Choose your own password",
  "signIn.ownTold":
    "{user}, another person gave you your present password and has seen it. Nothing else is open until you replace it.",
  "provided.SIGN_IN_REFUSED": "You were not signed in.",
  "provided.PROVIDER_UNREACHABLE": "The sign-in provider does not answer. Try again, or sign in with a password.",
  "provided.TOO_MANY_ATTEMPTS": "Too many sign-ins from here came to nothing. Wait a moment.",
  "provided.USER_NAME_TAKEN": "Another user has this name here. Ask an admin.",
  "provided.other": "The sign-in came to nothing. Try again.",
  "provided.why.attempt": "The sign-in was begun in another tab, or more than 10 minutes ago. Begin again.",
  "provided.why.answer": "The provider's answer does not belong to this browser's request. Begin again.",
  "provided.why.nobody": "The provider refused the sign-in. Was it cancelled there?",
  "provided.why.invalid": "The provider's answer is not valid; the server's log has the reason.",
  "provided.why.rule": "The provider accepted you, but no rule gives you a role here. Ask an admin.",
  "provided.why.name": "The provider does not send your name. Ask an admin.",
  "provided.why.locked": "You are locked out here. Ask an admin.",
} as const;
