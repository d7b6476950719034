import type { RefusalLog } from '../audit/refusals.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import type { Sessions } from '../sessions/sessions.ts';
import type { DeleteAccountDeps } from './delete-account.ts';
import type { CountLogin } from './login-rates.ts';
import type { Passwords } from './passwords.ts';
import type { WorkQueue } from './work-queue.ts';
import type { CountLinkMail, CountRegistration } from './registration-limit.ts';
import type { LoginThrottle } from './throttle.ts';

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
  onDevicesRemoved: DeleteAccountDeps['onDevicesRemoved'];
  /** The account's push tokens are others than before; told within the transaction that changes them. */
  onPushTokens?: (tx: Sql, accountId: number, nowMs: number) => Promise<void>;
  /** What links in mails are signed with, newest first. */
  linkKeys: readonly Buffer[];
  /** Whether mails can be sent; what only they can do is refused otherwise. */
  hasMail: boolean;
  /** Whether the console is served: pages then lead on to it. */
  hasConsole?: boolean;
};

export type AccountsDeps = AccountsOptions & {
  exclusively: WorkQueue;
  revokeSession: Sessions['revoke'];
  revokeSessions: Sessions['revokeAll'];
};
