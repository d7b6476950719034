import type { AccountsOptions } from '../accounts/deps.ts';
import { startMailer } from '../accounts/mailer.ts';
import type { RefusalLog } from '../audit/refusals.ts';
import { asDeliveryError } from '../notifications/channels/channel.ts';
import { emailDriver, type EmailOptions } from '../notifications/channels/email.ts';
import { createUndeliveredLog } from '../notifications/log.ts';
import { startRefusals } from './audit.ts';
import { mailOptions } from './contacts.ts';
import type { Shared } from './shared.ts';

/** What links and mails to accounts need. Sends the mails from this process, where it has a mail server. */
export function startAccountMail(
  shared: Shared,
): Pick<AccountsOptions, 'refusals' | 'linkKeys' | 'hasMail' | 'hasConsole'> {
  const refusals = startRefusals(shared);
  const options = mailOptions(shared);
  if (options) startSending(shared, options, refusals);
  const hasConsole = shared.config.console.enabled;
  return { refusals, linkKeys: shared.keys.mailLinks, hasMail: options !== null, hasConsole };
}

function startSending(
  shared: Shared,
  options: EmailOptions,
  refusals: Pick<RefusalLog, 'note'>,
): void {
  const { config, db, clock, keys, publicUrl, releases } = shared;
  const log = shared.log.child({ component: 'accounts' });
  const driver = emailDriver(options);
  const onError = (err: unknown) =>
    log.warn(
      { event: 'accounts.mail-failed', err },
      'Mails to accounts could not be read or written; it is tried again.',
    );
  const undelivered = createUndeliveredLog(
    (fields) =>
      log.warn(
        { event: 'accounts.mail-undelivered', ...fields },
        'Mails to accounts could not be delivered.',
      ),
    clock,
  );
  const mailer = startMailer({
    db,
    clock,
    believedTs: shared.believed.believedTs,
    linkKeys: keys.mailLinks,
    publicUrl: publicUrl.get,
    refusals,
    pollIntervalMs: config.notifications.pollIntervalMs,
    onError,
    async sendMail(mail) {
      try {
        await driver.send(mail);
        return 'sent';
      } catch (error) {
        const failure = asDeliveryError(error);
        const again = failure.verdict === 'again';
        undelivered.note({ about: { mailId: mail.id }, host: null, via: 'email', failure, again });
        return again ? 'again' : 'never';
      }
    },
    tend: () => undelivered.flush(),
  });
  releases.add('mails to accounts', async () => {
    await mailer.close();
    undelivered.flush({ isEnd: true });
    driver.close();
  });
}
