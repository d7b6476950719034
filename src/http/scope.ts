/** What a key of an account may be used for. */
export const scopes = [
  'devices:read',
  'devices:write',
  'purposes:read',
  'purposes:write',
  'data:read',
  'data:write',
  'alarms:read',
  'alarms:write',
] as const;
export type Scope = (typeof scopes)[number];

/** What a key may do. `labels`: only with devices that have one of these; empty: with all of the account. */
export type KeyRights = { keyId: string; scopes: readonly Scope[]; labels: readonly string[] };
