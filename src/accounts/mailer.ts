import type { RefusalLog } from '../audit/refusals.ts';
import type { Language } from '../contract/values.ts';
import type { Database } from '../db/database.ts';
import { isGenuine, makeLinkToken, readLinkClaim } from '../lib/crypto.ts';
import { startDispatcher } from '../lib/dispatcher.ts';
import {
  type AccountRow,
  findAccountByEmail,
  findEmailChange,
  forgetOldMails,
  getAccount,
  isEmailTaken,
  type QueuedMail,
  settleMail,
  takeDueMails,
} from './queries.ts';
import type { Clock, WallMs } from '../lib/clock-readings.ts';

/** The outcome; `again`: a later attempt may work. */
type SendMail = (
  mail: MailText & { id: number; recipient: string },
) => Promise<'sent' | 'again' | 'never'>;

type MailerOptions = {
  db: Database;
  clock: Clock;
  /** The time to use for deleting mails, ms; null if the clock is in doubt. Default: `clock`. */
  believedTs?: () => WallMs | null;
  sendMail: SendMail;
  linkKeys: readonly Buffer[];
  /** Where links lead, without a slash at the end. */
  publicUrl: () => string;
  refusals: Pick<RefusalLog, 'note'>;
  pollIntervalMs: number;
  onError: (error: unknown) => void;
  /** Called each time it looks for mails. */
  tend: () => void;
};

const parallel = 4;
/** Longer than sending takes. */
const leaseMs = 60_000;
/** A link is valid for 30 minutes: a mail that waits longer than this is of little use. */
const giveUpAfterMs = 10 * 60_000;
const againMs = 5_000;
const forgetEveryMs = 60_000;

/**
 * Sends queued mails. It looks for them at intervals, so that its work for existing accounts does not affect the time
 * of any answer.
 *
 * Account mails have a table of their own, not rows of `notification`: a stranger may ask for one, so it must be queued
 * in the same way whether there is such an account or not; its link is not stored; and it expires after minutes.
 */
export function startMailer(options: MailerOptions): { close: () => Promise<void> } {
  const { db, clock, believedTs = clock, pollIntervalMs, onError } = options;
  let forgotTs = 0;

  async function claim({ mail: limit = 0 }: { mail?: number }): Promise<Job[]> {
    options.tend();
    const nowTs = believedTs();
    if (nowTs !== null && nowTs - forgotTs > forgetEveryMs) {
      await forgetOldMails(db, nowTs);
      forgotTs = nowTs;
    }
    const mails = await takeDueMails(db, { nowTs: clock(), limit, leaseMs });
    return mails.map((mail) => ({ ...mail, lane: 'mail' }));
  }

  return startDispatcher<Job>({
    places: { mail: parallel },
    claim,
    work: (mail) => deliver(options, mail),
    pollIntervalMs,
    onError,
  });
}

type Job = QueuedMail & { lane: 'mail' };

async function deliver(options: MailerOptions, mail: QueuedMail): Promise<void> {
  const { db, clock, sendMail } = options;
  const isTooLate = () => clock() - mail.createdTs >= giveUpAfterMs;
  // This also covers a restored database: mails that waited then must not be sent now.
  const composed = isTooLate() ? null : await compose(options, mail);
  const outcome = composed ? await sendMail({ id: mail.id, ...composed }) : 'sent';
  const nowTs = clock();
  const dueTs = outcome === 'again' && !isTooLate() ? nowTs + againMs * mail.attempts : null;
  await settleMail(db, mail.id, { nowTs, dueTs });
}

type Composed = MailText & { recipient: string };

/** Null if there is nobody to write to. */
async function compose(options: MailerOptions, mail: QueuedMail): Promise<Composed | null> {
  const { db } = options;
  const { kind, accountId, recipient } = mail;
  if (kind === 'reset') return composeReset(options, mail);
  if (accountId === null) return null;
  const { language, email } = await getAccount(db, accountId);
  const words = mailWordsOf(language);
  switch (kind) {
    case 'password-reset':
      return { recipient, ...words.passwordReset() };
    case 'email-changed':
      return { recipient, ...words.emailChanged(email) };
    case 'confirm-email':
      return composeConfirmation(options, { accountId, recipient, language });
  }
}

async function composeReset(
  { db, linkKeys, publicUrl, clock, refusals }: MailerOptions,
  { recipient, address, attempts }: QueuedMail,
): Promise<Composed | null> {
  const account = await findAccountByEmail(db, recipient);
  if (!account || account.isDisabled) return null;
  const { accountId, email } = account;
  const actor = { by: 'nobody', sessionId: null, address } as const;
  if (attempts === 1) refusals.note(accountId, 'password-reset-asked', actor);
  const { language } = await getAccount(db, accountId);
  const link = `${publicUrl()}/reset?token=${makeResetToken(linkKeys, account, clock())}`;
  return { recipient: email, ...mailWordsOf(language).reset(link) };
}

async function composeConfirmation(
  { db, linkKeys, publicUrl }: MailerOptions,
  {
    accountId,
    recipient,
    language,
  }: { accountId: number; recipient: string; language: Language | null },
): Promise<Composed | null> {
  const change = await findEmailChange(db, { accountId });
  // Another address has been requested since, or somebody else has this one.
  if (change?.email !== recipient || (await isEmailTaken(db, accountId, recipient))) return null;
  const link = `${publicUrl()}/confirm-email?token=${makeEmailToken(linkKeys, change)}`;
  return { recipient, ...mailWordsOf(language).confirmEmail(link) };
}

/** The texts of mails to accounts. */
type Words = Record<'reset' | 'confirmEmail', (link: string) => MailText> & {
  passwordReset: () => MailText;
  emailChanged: (email: string) => MailText;
};
type MailText = { title: string; body: string };

const words: Record<Language, Words> = {
  en: {
    reset: (link) => ({
      title: 'Set a new password',
      body:
        'Somebody asked to set a new password for your account. If it was you, open this link ' +
        `within 30 minutes:\n\n${link}\n\nIf it was not you, ignore this e-mail. Your password ` +
        'stays the same.',
    }),
    confirmEmail: (link) => ({
      title: 'Confirm your new address',
      body:
        'Somebody asked to use this address for an account. If it was you, open this link ' +
        `within 30 minutes and press the button:\n\n${link}\n\nIf it was not you, ignore this ` +
        'e-mail.',
    }),
    passwordReset: () => ({
      title: 'Your password was changed',
      body:
        'Your account has a new password. It was set with a link that we sent to this address. ' +
        'All sessions have ended. If it was not you, somebody can read your e-mail: change the ' +
        'password of your mailbox first, then set a new one here.',
    }),
    emailChanged: (email) => ({
      title: 'Your address was changed',
      body:
        `Your account now uses the e-mail address ${email}. We will send nothing more to this ` +
        'address. All sessions have ended. If it was not you, somebody knows your password: ' +
        'contact the operator of this service.',
    }),
  },
  de: {
    reset: (link) => ({
      title: 'Neues Passwort festlegen',
      body:
        'Jemand möchte für Ihr Konto ein neues Passwort festlegen. Wenn Sie das waren, öffnen ' +
        `Sie innerhalb von 30 Minuten diesen Link:\n\n${link}\n\nWenn nicht, brauchen Sie ` +
        'nichts zu tun. Ihr Passwort bleibt unverändert.',
    }),
    confirmEmail: (link) => ({
      title: 'Bitte die neue Adresse bestätigen',
      body:
        'Jemand möchte diese E-Mail-Adresse für ein Konto verwenden. Wenn Sie das waren, ' +
        'öffnen Sie innerhalb von 30 Minuten diesen Link und klicken Sie auf die ' +
        `Schaltfläche:\n\n${link}\n\nWenn nicht, brauchen Sie nichts zu tun.`,
    }),
    passwordReset: () => ({
      title: 'Ihr Passwort wurde geändert',
      body:
        'Ihr Konto hat ein neues Passwort. Es wurde mit einem Link festgelegt, der an diese ' +
        'Adresse ging. Alle Sitzungen sind beendet. Wenn Sie das nicht waren, liest jemand ' +
        'Ihre E-Mails mit: Ändern Sie zuerst das Passwort Ihres Postfachs und legen Sie dann ' +
        'hier ein neues fest.',
    }),
    emailChanged: (email) => ({
      title: 'Ihre Adresse wurde geändert',
      body:
        `Ihr Konto verwendet ab jetzt die E-Mail-Adresse ${email}. An diese Adresse senden wir ` +
        'nichts mehr. Alle Sitzungen sind beendet. Wenn Sie das nicht waren, kennt jemand Ihr ' +
        'Passwort: Wenden Sie sich an den Betreiber dieses Dienstes.',
    }),
  },
};

/** English if no language is set. */
const mailWordsOf = (language: Language | null): Words => words[language ?? 'en'];

/** How long links to set a password or to confirm an address are valid. */
export const linkLifetimeMs = 30 * 60_000;

type ResetOwner = Pick<AccountRow, 'accountUuid' | 'passwordHash' | 'email'>;

/**
 * The token of a link to set a new password. It is bound to the account's current password and address: it works once,
 * and no longer after either has changed.
 */
export function makeResetToken(
  keys: readonly Buffer[],
  account: ResetOwner,
  nowTs: WallMs,
): string {
  const claim = { uuid: account.accountUuid, expiresTs: nowTs + linkLifetimeMs };
  return makeLinkToken(keys, 'reset', claim, boundOf(account));
}

/** Whether the token was made for the account in its current state. */
export function isResetToken(keys: readonly Buffer[], account: ResetOwner, token: string): boolean {
  return isGenuine(keys, 'reset', token, boundOf(account));
}

const boundOf = ({ passwordHash, email }: ResetOwner) => JSON.stringify([passwordHash, email]);

/** The token of a link to confirm a new address. It works once, because confirming deletes the change. */
function makeEmailToken(
  keys: readonly Buffer[],
  change: { uuid: string; expiresTs: number },
): string {
  return makeLinkToken(keys, 'email', change);
}

/** The change of address that the token confirms; null if it has expired, or is for another purpose. */
export function readEmailToken(
  keys: readonly Buffer[],
  token: string,
  nowTs: WallMs,
): string | null {
  const claim = readLinkClaim(token, nowTs, linkLifetimeMs);
  return claim && isGenuine(keys, 'email', token) ? claim.uuid : null;
}
