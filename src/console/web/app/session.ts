import { effect, signal } from '@preact/signals';
import { forgetAll, reload } from '../api/cache.ts';
import { watchUnauthenticated } from '../api/request.ts';
import {
  type Credentials,
  endSession,
  getSession,
  register,
  type SessionAccount,
  signIn,
  updateAccount,
} from '../api/account.ts';
import type { SessionView } from '../api/types.ts';
import { language, type Language, speak } from '../text/t.ts';
import { navigate } from './router.ts';

type Session = { state: 'opening' } | { state: 'failed'; error: unknown } | Opened;
type Opened = {
  state: 'open';
  view: Omit<SessionView, 'timestamp'>;
  /** Whose session has ended while the page was open: what was typed stays until somebody signs in. */
  ended?: SessionAccount;
};

/** Who is signed in. It contains no token: that is in the cookie, which no script can read. */
export const session = signal<Session>({ state: 'opening' });

/** Informs other tabs about signing in and out, because they share the cookie. */
const tabs = new BroadcastChannel('sensorium-session');
tabs.addEventListener('message', () => void openSession());

export const accountOf = (): SessionAccount | undefined =>
  session.value.state === 'open' ? session.value.view.account : undefined;

export async function openSession(): Promise<void> {
  try {
    const view = await getSession();
    if (view.account) await speak(view.account.language);
    take(view);
  } catch (error) {
    session.value = { state: 'failed', error };
  }
}

function take(view: Opened['view']): void {
  const { value } = session;
  const ended = value.state === 'open' ? value.ended : undefined;
  const before = (accountOf() ?? ended)?.accountAuthUuid;
  const isSame = view.account?.accountAuthUuid === before;
  // Nothing of one person may be shown to another.
  if (!isSame) {
    forgetAll();
    if (before !== undefined) forgetKept(before);
  }
  session.value = { state: 'open', view };
  if (isSame && ended) reload('');
}

/** What pages keep of an account in this browser has keys that begin so. */
export const keptPrefix = (accountAuthUuid: string): string => `sensorium-kept/${accountAuthUuid}/`;

function forgetKept(accountAuthUuid: string): void {
  // The browser may refuse storage; then nothing was kept.
  try {
    for (const key of Object.keys(localStorage))
      if (key.startsWith(keptPrefix(accountAuthUuid))) localStorage.removeItem(key);
  } catch {}
}

const endHere = () => {
  const { value } = session;
  if (value.state === 'open') take({ ...value.view, account: undefined, firstRun: false });
};

/** Nobody signs in again: what the ended session showed goes. */
export const forgetEnded = endHere;

watchUnauthenticated(() => {
  const { value } = session;
  const account = accountOf();
  if (value.state !== 'open' || !account) return;
  const view = { ...value.view, account: undefined, firstRun: false };
  session.value = { state: 'open', view, ended: account };
});

effect(() => {
  document.documentElement.lang = language.value;
});

export async function enter(credentials: Credentials): Promise<void> {
  const { account } = await signIn(credentials);
  await speak(account.language);
  enterAs(account);
  tabs.postMessage('entered');
}

/** Creates an account with this browser's language and time zone, and signs in. */
export async function enterNew(credentials: Credentials): Promise<void> {
  await register(credentials);
  const { account } = await signIn(credentials);
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  await updateAccount({ timeZone, language: language.value }).catch(() => undefined);
  enterAs({ ...account, timeZone, language: language.value });
  tabs.postMessage('entered');
}

function enterAs(account: SessionAccount): void {
  const { value } = session;
  const view = value.state === 'open' ? value.view : { openRegistration: false, mail: false };
  take({ ...view, account, firstRun: false });
}

export async function leave(): Promise<void> {
  await endSession();
  endHere();
  tabs.postMessage('left');
}

/** Shows changes to the account from now on. */
export function changeSessionAccount(change: { name?: string; timeZone?: string }): void {
  const account = accountOf();
  if (account) enterAs({ ...account, ...change });
}

/** The account is gone, and all its sessions with it. */
export async function forgetSession(): Promise<void> {
  tabs.postMessage('left');
  navigate('');
  await openSession();
}

export async function chooseLanguage(value: Language): Promise<void> {
  await speak(value);
  const account = accountOf();
  if (!account) return;
  enterAs({ ...account, language: value });
  await updateAccount({ language: value });
}
