import type { Examples } from "./example.ts";
import { hookExamples } from "./hooks.ts";

export const accessExamples = {
  setSecret: {
    given: { secret: "bank", value: "a password of the bank", tasks: ["settle"], reason: "new" },
    answer: {
      name: "bank",
      version: 1,
      key: "9edc5d3000a207db",
      author: "admin",
      reason: "new",
      changed: "2026-11-30T01:06:00.000Z",
      tasks: ["settle"],
    },
  },
  getSecret: {
    given: { secret: "bank" },
    answer: {
      name: "bank",
      version: 1,
      key: "9edc5d3000a207db",
      author: "admin",
      reason: "new",
      changed: "2026-11-30T01:06:00.000Z",
      tasks: ["settle"],
      versions: [
        {
          version: 1,
          key: "9edc5d3000a207db",
          author: "admin",
          reason: "new",
          changed: "2026-11-30T01:06:00.000Z",
          kept: true,
        },
      ],
    },
  },
  listSecrets: {
    answer: {
      items: [
        {
          name: "bank",
          version: 1,
          key: "9edc5d3000a207db",
          author: "admin",
          reason: "new",
          changed: "2026-11-30T01:06:00.000Z",
          tasks: ["settle"],
        },
      ],
      next: null,
    },
  },
  ...hookExamples,
  rewrapSecrets: { given: { reason: "a new key" }, answer: { key: "9edc5d3000a207db", rewrapped: 0, left: 0 } },
  removeSecret: { given: { secret: "bank", reason: "the bank has gone" } },
  createUser: {
    given: {
      name: "ann",
      password: "seven bells at noon",
      role: null,
      grants: [{ namespace: "billing", role: "editor" }],
    },
    answer: {
      name: "ann",
      role: null,
      grants: [{ role: "editor", namespace: "billing" }],
      created: "2026-11-30T01:06:00.000Z",
      createdBy: "admin",
      disabled: null,
      provided: false,
      temporary: false,
      secondFactor: null,
      version: 1,
    },
  },
  changeUser: {
    given: { user: "ann", role: "viewer", reason: "also to see the rest" },
    ifVersion: 1,
    answer: {
      name: "ann",
      role: "viewer",
      grants: [
        { namespace: "*", role: "viewer" },
        { role: "editor", namespace: "billing" },
      ],
      created: "2026-11-30T01:06:00.000Z",
      createdBy: "admin",
      disabled: null,
      provided: false,
      temporary: false,
      secondFactor: null,
      version: 2,
    },
  },
  getUser: {
    given: { user: "ann" },
    answer: {
      name: "ann",
      role: "viewer",
      grants: [
        { namespace: "*", role: "viewer" },
        { role: "editor", namespace: "billing" },
      ],
      created: "2026-11-30T01:06:00.000Z",
      createdBy: "admin",
      disabled: null,
      provided: false,
      temporary: false,
      secondFactor: null,
      version: 2,
    },
  },
  listUsers: {
    given: { limit: 1 },
    answer: {
      items: [
        {
          name: "admin",
          role: "admin",
          grants: [{ namespace: "*", role: "admin" }],
          created: "2026-11-30T01:06:00.000Z",
          createdBy: "the first start",
          disabled: null,
          provided: false,
          temporary: false,
          secondFactor: null,
          version: 1,
        },
      ],
      next: "WyJhZG1pbiJd",
    },
  },
  listSignInsOf: {
    given: { user: "ann" },
    answer: {
      items: [
        {
          signIn: 3,
          begun: "2026-11-30T01:06:00.000Z",
          seen: "2026-11-30T01:06:00.000Z",
          expires: "2026-11-30T05:06:00.000Z",
          address: "127.0.0.1",
          agent: "Mozilla/5.0 (X11; Linux x86_64)",
          present: false,
        },
        {
          signIn: 2,
          begun: "2026-11-30T01:06:00.000Z",
          seen: "2026-11-30T01:06:00.000Z",
          expires: "2026-11-30T05:06:00.000Z",
          address: "127.0.0.1",
          agent: "Mozilla/5.0 (X11; Linux x86_64)",
          present: false,
        },
      ],
      next: null,
    },
  },
  endSignInOf: { given: { user: "ann", signIn: 2, reason: "a laptop is lost" } },
  endSignInsOf: { given: { user: "ann", reason: "a telephone, too" }, answer: { ended: 1 } },
  createToken: {
    given: { name: "ci", role: "editor", scopes: ["tasks:write"], namespaces: ["billing"], expiresIn: "30d" },
    answer: {
      name: "ci",
      user: "admin",
      role: "editor",
      scopes: ["tasks:write"],
      namespaces: ["billing"],
      created: "2026-11-30T01:06:00.000Z",
      expires: "2026-12-30T01:06:00.000Z",
      revoked: null,
      secret: "ct_5_only-shown-here",
    },
  },
  getToken: {
    given: { token: "ci" },
    answer: {
      name: "ci",
      user: "admin",
      role: "editor",
      scopes: ["tasks:write"],
      namespaces: ["billing"],
      created: "2026-11-30T01:06:00.000Z",
      expires: "2026-12-30T01:06:00.000Z",
      revoked: null,
    },
  },
  listTokens: {
    given: { limit: 1 },
    answer: {
      items: [
        {
          name: "ci",
          user: "admin",
          role: "editor",
          scopes: ["tasks:write"],
          namespaces: ["billing"],
          created: "2026-11-30T01:06:00.000Z",
          expires: "2026-12-30T01:06:00.000Z",
          revoked: null,
        },
      ],
      next: "WzVd",
    },
  },
  revokeToken: { given: { token: "ci", reason: "it is not used" } },
  revokeWorkerKey: {
    given: { key: "finance", reason: "its machine is gone" },
    answer: {
      name: "finance",
      groups: ["finance"],
      created: "2026-11-30T01:06:00.000Z",
      by: "admin",
      expires: "2027-02-28T01:06:00.000Z",
      revoked: "2026-11-30T01:06:00.000Z",
    },
  },
  listAudit: {
    given: { about: "task", named: "settle", limit: 1 },
    answer: {
      items: [
        {
          entry: 17,
          at: "2026-11-30T01:06:00.000Z",
          who: "admin",
          act: "resume",
          about: "task",
          named: "settle",
          task: null,
          before: { paused: { by: "admin", why: "the bank is closed", until: "2090-01-02T06:00:00.000Z" } },
          after: { paused: null },
          why: "it is open",
        },
      ],
      next: "WzE3XQ",
    },
  },
  getAuditChain: {
    answer: {
      head: "41:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
      anchor: "0:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
      olderRows: 0,
      unchained: 0,
    },
  },
  listAuditRows: {
    given: { part: "chain", limit: 1 },
    answer: {
      items: [
        {
          seq: 1,
          hash: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
          content:
            '{"at": 1796000763771, "act": "create", "who": "the first start", "why": "there was no user", "about": "user", "after": {"name": "admin", "role": "admin", "disabled": false}, "entry": 1, "named": "admin", "before": null}',
        },
      ],
      next: "WzFd",
    },
  },
  beginSecondFactor: {
    given: { password: "nine herons at the weir" },
    answer: {
      secret: "ONLYSHOWNHERE234",
      uri: "otpauth://totp/Carillon:admin?issuer=Carillon&secret=ONLYSHOWNHERE234",
    },
  },
  confirmSecondFactor: {
    given: { code: "123456" },
    answer: { recoveryCodes: ["yf64gs-bj4xxu-sdcpfs-8ejsug", "4n6y9e-6v5rmj-2faa2v-uj43t3"] },
  },
  getSecondFactor: { answer: { enrolled: "2026-11-30T01:06:00.000Z", recoveryCodes: 10 } },
  removeSecondFactor: { given: { password: "nine herons at the weir", code: "yf64gs-bj4xxu-sdcpfs-8ejsug" } },
  resetSecondFactor: { given: { user: "ann", reason: "her telephone is lost" } },
  listSignIns: {
    answer: {
      items: [
        {
          signIn: 5,
          begun: "2026-11-30T01:06:00.000Z",
          seen: "2026-11-30T01:06:00.000Z",
          expires: "2026-11-30T05:06:00.000Z",
          address: "127.0.0.1",
          agent: "Mozilla/5.0 (X11; Linux x86_64)",
          present: false,
        },
        {
          signIn: 1,
          begun: "2026-11-30T01:06:00.000Z",
          seen: "2026-11-30T01:06:00.000Z",
          expires: "2026-11-30T05:06:00.000Z",
          address: "127.0.0.1",
          agent: "Mozilla/5.0 (X11; Linux x86_64)",
          present: true,
        },
      ],
      next: null,
    },
  },
  endSignIn: { given: { signIn: 5 } },
  endOtherSignIns: { answer: { ended: 1 } },
  changePassword: { given: { present: "nine herons at the weir", next: "ten herons at the weir" } },
  removeUser: {
    given: { user: "ann", reason: "she has left" },
    answer: {
      name: "ann",
      role: "viewer",
      grants: [
        { namespace: "*", role: "viewer" },
        { role: "editor", namespace: "billing" },
      ],
      created: "2026-11-30T01:06:00.000Z",
      createdBy: "admin",
      disabled: null,
      provided: false,
      temporary: false,
      secondFactor: null,
      version: 2,
    },
  },
  removeTask: { given: { task: "settle", reason: "the bank has gone" } },
  removeCalendar: { given: { calendar: "bank", reason: "the bank has gone" } },
  signOut: {},
} satisfies Examples;
