import type { signInEn } from "../en/sign-in.ts";

export const signInZh: Record<keyof typeof signInEn, string> = {
  "signIn.by": "使用 {provider} 登录",
  "signIn.or": "或使用密码",
  "signIn.own": "设置您自己的密码",
  "signIn.ownTold": "{user}，您当前的密码由他人交付，他人见过该密码。更换之前无法使用其他功能。",
  "provided.SIGN_IN_REFUSED": "未能登录。",
  "provided.PROVIDER_UNREACHABLE": "登录服务没有应答。请重试，或使用密码登录。",
  "provided.TOO_MANY_ATTEMPTS": "从此处登录失败次数过多。请稍候。",
  "provided.USER_NAME_TAKEN": "此用户名已被他人使用。请联系管理员。",
  "provided.other": "登录未成功。请重试。",
  "provided.why.attempt": "登录在其他标签页开始，或已超过 10 分钟。请重新开始。",
  "provided.why.answer": "应答与此浏览器的请求不符。请重新开始。",
  "provided.why.nobody": "登录服务未放行。是否在那里取消了？",
  "provided.why.invalid": "登录服务的应答无效；原因见服务器日志。",
  "provided.why.rule": "登录服务认识您，但没有规则授予您在此处的权限。请联系管理员。",
  "provided.why.name": "登录服务没有提供您的名称。请联系管理员。",
  "provided.why.locked": "您已被锁定。请联系管理员。",
};
