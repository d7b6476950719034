import type { RefusalLog } from '../audit/refusals.ts';
import type { Database } from '../db/database.ts';
import type { Language } from '../contract/language.ts';
import { findEmailChange, isEmailTaken } from './email-change-queries.ts';
import { makeEmailToken, makeResetToken } from './links.ts';
import { forgetOldMails, settleMail, takeDueMails, type QueuedMail } from './mail-queries.ts';
import { mailWordsOf, type MailText } from './mail-words.ts';
import { findAccountByEmail, getAccount } from './find-account.ts';

/** How sending ended: `again` may get through later. */
export type SendMail = (
  mail: MailText & { id: number; recipient: string },
) => Promise<'sent' | 'again' | 'never'>;

export type MailerOptions = {
  db: Database;
  clock: () => number;
  /** The time by which mails may be forgotten, ms; null: not now. Absent: `clock`. */
  believedTs?: () => number | null;
  sendMail: SendMail;
  linkKeys: readonly Buffer[];
  /** Where links lead, without a slash at the end. */
  publicUrl: () => string;
  refusals: Pick<RefusalLog, 'note'>;
  pollIntervalMs: number;
  onError: (error: unknown) => void;
  /** Called each time that it looks for mails. */
  tend: () => void;
};

const parallel = 4;
/** Longer than sending takes. */
const leaseMs = 60_000;
/** A link is good for 30 minutes: what waits longer than this is of little use. */
const giveUpAfterMs = 10 * 60_000;
const againMs = 5_000;
const forgetEveryMs = 60_000;

/**
 * Sends the mails that wait. It looks for them at its own times, so that what it does for an account that
 * exists is no part of the time of any answer.
 */
export function startMailer(options: MailerOptions): { close: () => Promise<void> } {
  const { db, clock, believedTs = clock, pollIntervalMs, onError } = options;
  let forgotTs = 0;
  let working: Promise<void> | null = null;

  async function work(): Promise<void> {
    options.tend();
    const nowMs = believedTs();
    if (nowMs !== null && nowMs - forgotTs > forgetEveryMs) {
      await forgetOldMails(db, nowMs);
      forgotTs = nowMs;
    }
    for (;;) {
      const mails = await takeDueMails(db, { nowMs: clock(), limit: parallel, leaseMs });
      await Promise.all(mails.map((mail) => deliver(options, mail)));
      if (mails.length < parallel) return;
    }
  }

  const timer = setInterval(() => {
    working ??= work()
      .catch(onError)
      .finally(() => (working = null));
  }, pollIntervalMs);
  return {
    async close() {
      clearInterval(timer);
      await working;
    },
  };
}

async function deliver(options: MailerOptions, mail: QueuedMail): Promise<void> {
  const { db, clock, sendMail } = options;
  const isTooLate = () => clock() - mail.createdTs >= giveUpAfterMs;
  // Too late also in a database that was restored: what waited then is not sent to anybody now.
  const composed = isTooLate() ? null : await compose(options, mail);
  const outcome = composed ? await sendMail({ id: mail.id, ...composed }) : 'sent';
  const nowMs = clock();
  const dueTs = outcome === 'again' && !isTooLate() ? nowMs + againMs * mail.attempts : null;
  await settleMail(db, mail.id, { nowMs, dueTs });
}

type Composed = MailText & { recipient: string };

/** Null where there is nobody to write to. */
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
  // Another address was asked for since, or somebody has this one.
  if (change?.email !== recipient || (await isEmailTaken(db, accountId, recipient))) return null;
  const link = `${publicUrl()}/confirm-email?token=${makeEmailToken(linkKeys, change)}`;
  return { recipient, ...mailWordsOf(language).confirmEmail(link) };
}
