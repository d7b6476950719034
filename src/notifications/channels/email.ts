import { createTransport } from 'nodemailer';
import { z } from 'zod';
import { mailboxOf } from '../../lib/address.ts';
import type { WallMs } from '../../lib/clock-readings.ts';
import { isGenuine, makeLinkToken as makeToken, readLinkClaim } from '../../lib/crypto.ts';
import { escapeHtml } from '../../lib/text.ts';
import { wordsOf } from '../text.ts';
import {
  type Asking,
  type Channel,
  type ChannelDeps,
  type ContactOptions,
  type Counted,
  type Delivery,
  DeliveryError,
  type Limited,
  type MessageQuotas,
  messagesPerDay,
  type OpenChannel,
  perRecipient,
} from './channel.ts';
import { reasonOfCode, withoutSecrets } from './post.ts';

/** E-mail, to contacts that have confirmed their address. */
export const email: Channel = {
  reaches: 'contacts',
  daily: messagesPerDay,
  limitsOf: (message, quotas) => [
    perRecipient(message, quotas),
    ...(message.confirmation ? confirmationLimits(message, message.confirmation, quotas) : []),
  ],
  unconfigured: 'no-mail-server',
  mask: (address) => `${address.slice(0, 1)}…${address.slice(address.indexOf('@'))}`,
  places: () => ({ email: 6 }),
};

// For all accounts together: anybody can register accounts, and must not be able to flood an inbox with them.
const confirmationsPerAddress = 5;
/** Share of `messagesPerDay`: nobody can use this service's mail server to write to many strangers. */
const confirmationsPart = 1 / 10;
/** For an account that nobody vouches for: enough for its own address and a few attempts. */
const confirmationsOfUnknown = 5;
/** Share of the installation's limit that accounts nobody vouches for may use; the rest is left for the others. */
const partOfUnknown = 1 / 2;

function confirmationLimits(
  { accountId, recipient }: Counted,
  { network, isKnown }: Asking,
  quotas: MessageQuotas,
): Limited[] {
  const { messagesPerDay: perDay, confirmationsPerNetwork, confirmationsPerInstallation } = quotas;
  const ofAccount = Math.ceil(confirmationsPart * perDay);
  return [
    {
      kind: 'confirmation',
      accountId: 0,
      key: mailboxOf(recipient),
      limit: confirmationsPerAddress,
      reason: 'confirmations-per-address',
    },
    {
      kind: 'confirmations',
      accountId,
      key: '',
      limit: isKnown ? ofAccount : Math.min(confirmationsOfUnknown, ofAccount),
      reason: 'confirmations-per-account',
    },
    {
      kind: 'confirmations-network',
      accountId: 0,
      key: network,
      limit: confirmationsPerNetwork,
      reason: 'confirmations-per-network',
    },
    {
      kind: 'confirmations-all',
      accountId: 0,
      key: '',
      limit: Math.ceil((isKnown ? 1 : partOfUnknown) * confirmationsPerInstallation),
      reason: 'confirmations-per-installation',
    },
  ];
}

/** Mail settings besides the server, which `SMTP_URL` names. */
export const emailSettings = z
  .strictObject({
    from: z.string().min(3).max(320).nullable().default(null),
    timeoutMs: z.int().min(1_000).max(30_000).default(15_000),
  })
  .prefault({});

export type EmailOptions = NonNullable<ContactOptions['email']>;

/** Null if no mail server is configured. */
export function openEmail(deps: ChannelDeps): OpenChannel | null {
  const { email: options } = deps;
  if (!options) return null;
  const driver = emailDriver(options);
  return {
    via: 'smtp',
    timeoutMs: options.timeoutMs,
    send: (delivery) => driver.send(mailOf(deps, delivery)),
    close: async () => driver.close(),
  };
}

/** Links are made when the mail is sent. A mail about devices ends with the URLs of their pages. */
function mailOf(deps: ChannelDeps, delivery: Delivery): OutgoingMail {
  const { id, createdTs, recipient, type, title, body, language, deviceUuid } = delivery;
  const { pages = [`devices/${deviceUuid}`] } = delivery;
  const words = wordsOf(language);
  const text =
    type === 'confirm'
      ? { title: words.confirmTitle, body: words.confirmBody(linkTo('confirm', deps, delivery)) }
      : { title, body };
  if (deps.hasConsole && deviceUuid !== null && type !== 'confirm')
    text.body += pages.map((page) => `\n${deps.publicUrl()}/console/${page}`).join('');
  const unsubscribeUrl = linkTo('unsubscribe', deps, delivery);
  return { id, createdTs, recipient, ...text, unsubscribeUrl, unsubscribe: words.unsubscribe };
}

function linkTo(
  purpose: LinkPurpose,
  { publicUrl, linkKeys, clock }: ChannelDeps,
  { contactUuid }: Delivery,
): string {
  const of = { contactUuid: contactUuid ?? '', nowTs: clock() };
  return `${publicUrl()}/${purpose}?token=${makeContactToken(linkKeys, purpose, of)}`;
}

/** What a link in a mail does; a token for one purpose does not work for the other. */
export type LinkPurpose = 'confirm' | 'unsubscribe';

const dayMs = 86_400_000;
/** People unsubscribe long after a mail arrived, and must still be able to. */
const lifetimesMs: Record<LinkPurpose, number> = { confirm: 7 * dayMs, unsubscribe: 400 * dayMs };

/** A token for a link: the contact's uuid and the time it expires, signed for this purpose only. */
export function makeContactToken(
  keys: readonly Buffer[],
  purpose: LinkPurpose,
  { contactUuid: uuid, nowTs }: { contactUuid: string; nowTs: WallMs },
): string {
  return makeToken(keys, purpose, { uuid, expiresTs: nowTs + lifetimesMs[purpose] });
}

/** The contact's uuid and when the token was made (ms); null if it has expired or is for another purpose. */
export function readLinkToken(
  keys: readonly Buffer[],
  purpose: LinkPurpose,
  { token, nowTs }: { token: string; nowTs: WallMs },
): { contactUuid: string; madeTs: number } | null {
  // A link to unsubscribe works even if a clock that ran ahead made it.
  const longestMs = purpose === 'unsubscribe' ? Infinity : lifetimesMs[purpose];
  const claim = readLinkClaim(token, nowTs, longestMs);
  if (!claim || !isGenuine(keys, purpose, token)) return null;
  return { contactUuid: claim.uuid, madeTs: claim.expiresTs - lifetimesMs[purpose] };
}

/**
 * A mail. With `createdTs` (ms) its `Message-ID` is that of each copy. `unsubscribeUrl`: a page that also accepts a
 * mail client's post (RFC 8058); `unsubscribe`: that link's text.
 */
type OutgoingMail = {
  id: number;
  createdTs?: number;
  recipient: string;
  title: string;
  body: string;
  unsubscribeUrl?: string;
  unsubscribe?: string;
};

type EmailDriver = { send: (mail: OutgoingMail) => Promise<void>; close: () => void };

/**
 * Sends mail by SMTP, over a new connection for each mail. A mail server on this machine may present any certificate:
 * mail to it crosses no network, and many such servers are installed with a self-signed one.
 */
export function emailDriver({ smtpUrl, from, timeoutMs }: EmailOptions): EmailDriver {
  const transport = createTransport({
    url: withTrust(smtpUrl),
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    dnsTimeout: timeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  const secrets = secretsOf(smtpUrl);
  return {
    send: async (mail) => {
      const sending = transport.sendMail(compose(mail, from));
      await withinMs(sending, timeoutMs).catch((error: unknown) => {
        throw failureOf(error, secrets);
      });
    },
    close: () => transport.close(),
  };
}

function compose(
  { id, createdTs, recipient, title, body, unsubscribeUrl: url, unsubscribe = '' }: OutgoingMail,
  from: string,
) {
  const ending = url === undefined ? '' : `\n-- \n${unsubscribe}: ${url}\n`;
  const html =
    `<!doctype html><html><body><p><strong>${escapeHtml(title)}</strong></p>` +
    `<p>${linked(escapeHtml(body)).replaceAll('\n', '<br>')}</p>` +
    (url === undefined
      ? ''
      : `<p><a href="${escapeHtml(url)}">${escapeHtml(unsubscribe)}</a></p>`) +
    '</body></html>';
  const domain = /@([\w.[\]:-]+)/.exec(from)?.[1] ?? 'sensorium.invalid';
  return {
    from,
    ...(createdTs === undefined ? {} : { messageId: `<sensorium.${id}.${createdTs}@${domain}>` }),
    // As an object, so that nodemailer does not parse it as a list of addresses.
    to: { name: '', address: recipient },
    subject: title.replaceAll(/\s+/g, ' '),
    text: `${body}\n${ending}`,
    html,
    headers: {
      ...(url === undefined
        ? {}
        : {
            'List-Unsubscribe': { prepared: true, value: `<${url}>` },
            'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
          }),
      'Auto-Submitted': 'auto-generated',
      'X-Notification-Id': String(id),
    },
  };
}

const linked = (text: string) =>
  text.replaceAll(/https?:\/\/\S+/g, (url) => `<a href="${url}">${url}</a>`);

/** Each of the timeouts above covers one step; a server that sends a byte now and then never exceeds them. */
async function withinMs<T>(work: Promise<T>, ms: number): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`No answer within ${ms} ms`)), ms);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** The URL, with certificate checks turned off for a server on this machine unless the URL says otherwise. */
function withTrust(smtpUrl: string): string {
  const url = new URL(smtpUrl);
  const isHere = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
  if (!isHere || url.searchParams.has('tls.rejectUnauthorized')) return smtpUrl;
  url.searchParams.set('tls.rejectUnauthorized', 'false');
  return url.href;
}

/** The password in every form in which it is sent (RFC 4616, AUTH LOGIN), because servers may repeat it. */
function secretsOf(smtpUrl: string): string[] {
  const url = new URL(smtpUrl);
  const [user, password] = [url.username, url.password].map((text) => decodeURIComponent(text));
  if (!user || !password) return [];
  const base64 = (text: string) => Buffer.from(text).toString('base64').replaceAll('=', '');
  return [password, url.password, base64(password), base64(`\0${user}\0${password}`)];
}

/** RFC 4954 section 6: the login is missing or was refused. */
const loginCodes = [530, 534, 535, 538];
/** A refusal of these commands concerns this mail; a refusal of any other concerns this service. */
const aboutTheMail = ['RCPT TO', 'DATA'];

type SmtpError = Partial<{
  code: string;
  originalCode: string;
  command: string;
  responseCode: number;
  permanent: boolean;
  message: string;
}>;

/**
 * RFC 5321 section 4.2.1: 4yz may pass, 5yz is permanent. The operator can fix a refusal that does not concern the
 * mail, such as of the login or the sender; whatever still waits is then sent.
 */
function failureOf(error: unknown, secrets: readonly string[]): DeliveryError {
  const {
    code = '',
    originalCode,
    command = '',
    responseCode,
    permanent,
    message,
  } = error as SmtpError;
  const isLogin =
    ['EAUTH', 'ENOAUTH', 'EOAUTH2'].includes(code) || loginCodes.includes(responseCode ?? 0);
  const said = withoutSecrets(message ?? String(error), secrets);
  // An answer to a login may repeat it in a form that we did not expect, so log only its codes (RFC 2034).
  const codes = /\b[45]\d\d(?:[ -][45]\.\d{1,3}\.\d{1,3})?/.exec(said)?.[0] ?? code;
  const text = isLogin && responseCode !== undefined ? `The login was refused: ${codes}` : said;
  // Not the error itself: its message and stack contain the unredacted answer.
  const cause = Object.assign(new Error(text), { code: originalCode ?? code });
  const failure = (verdict: 'again' | 'never', reason: DeliveryError['reason']) =>
    new DeliveryError(verdict, reason, text, { cause });
  if (isLogin) return failure('again', 'provider-login');
  if (responseCode !== undefined) {
    if (permanent !== true) return failure('again', 'provider-busy');
    return aboutTheMail.includes(command)
      ? failure('never', 'provider-refused')
      : failure('again', 'provider-login');
  }
  if (code === 'ETLS') return failure('again', 'tls-failed');
  if (code === 'EPROTOCOL') return failure('again', 'bad-answer');
  if (code === 'EMESSAGE') return failure('never', 'provider-refused');
  return failure('again', reasonOfCode(originalCode));
}
