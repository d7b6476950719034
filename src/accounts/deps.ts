import type { RefusalLog } from '../audit/refusals.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import type { Sessions } from '../sessions/sessions.ts';
import type { DeleteAccountDeps } from './delete-account.ts';
import type { FairQueue } from './fair-queue.ts';
import type { CountLogin } from './login-rates.ts';
import type { Passwords } from './passwords.ts';
import type { CountLinkMail, CountRegistration } from './registration-limit.ts';
import type { LoginThrottle } from './login-limits.ts';

export type AccountsOptions = {
  db: Database;
  sessions: Sessions;
  passwords: Passwords;
  throttle: LoginThrottle;
  countLogin: CountLogin;
  /** Where refused logins are written down. */
  refusals: Pick<RefusalLog, 'note'>;
  /** How long a refused login (429, 503) waits for its answer; 1,000. */
  refusalPauseMs?: number | undefined;
  /** false: accounts are made by an administrator, from the command line. */
  openRegistration: boolean;
  countRegistration: CountRegistration;
  countLinkMail: CountLinkMail;
  forgetPersons: DeleteAccountDeps['forgetPersons'];
  onAccountRemoved: DeleteAccountDeps['onAccountRemoved'];
  /** The account's push tokens are others than before; told within the transaction that changes them. */
  onPushTokens?: (tx: Sql, accountId: number, nowMs: number) => Promise<void>;
  /** The quota `pushTokens`. */
  pushTokensOf: (accountId: number) => number;
  /** What links in mails are signed with, newest first. */
  linkKeys: readonly Buffer[];
  /** Whether mails can be sent; what only they can do is refused otherwise. */
  hasMail: boolean;
  /** Whether the console is served: pages then lead on to it. */
  hasConsole?: boolean;
};

export type AccountsDeps = AccountsOptions & {
  /** For what ends all sessions of an account: a few at a time, in turns of addresses and accounts. */
  inTurn: FairQueue;
  revokeSession: Sessions['revoke'];
  revokeSessions: Sessions['revokeAll'];
};
