import { z } from 'zod';
import { EmailAddress } from '../contract/email-address.ts';
import { Labels } from '../contract/label.ts';
import { timestamp } from '../http/schema.ts';

const maxAfterMs = 7 * 86_400_000;
/** Far more than the quota `contacts` gives anybody; what a request may bring to be looked at. */
const maxEntries = 1_000;

const WebhookUrl = z
  .url({ protocol: /^https?$/, error: 'expected a URL of http or https' })
  .max(2_048)
  .refine((text) => !text.includes('\0') && text.isWellFormed(), 'expected text without NUL')
  .refine((text) => {
    const url = URL.parse(text);
    return url?.username === '' && url.password === '';
  }, 'expected a URL without user name and password');

const suiting = {
  labels: Labels.default([]).meta({
    description: 'Only of devices that have one of these labels; empty: of all.',
  }),
  afterMs: z.int().min(0).max(maxAfterMs).default(0).meta({
    description:
      '0: told at once. Else told of alarms only, once of each, and only if it is still open and not acknowledged so many milliseconds after people were told of it.',
  }),
  whenOver: z.boolean().default(false).meta({
    description:
      'Also when an alarm that it was told of is over. Webhooks hear of every closing, mail only that the cause is gone.',
  }),
};

const EmailContact = z
  .object({ address: EmailAddress, ...suiting })
  .meta({ id: 'EmailContactEntry' });

const WebhookContact = z
  .object({ url: WebhookUrl, ...suiting })
  .meta({ id: 'WebhookContactEntry' });

/** The body of PUT /v2/accounts/contacts: both lists as they are from now on. */
export const ContactsUpdate = z
  .object({
    emails: z.array(EmailContact).max(maxEntries).default([]),
    webhooks: z.array(WebhookContact).max(maxEntries).default([]),
  })
  .superRefine(({ emails, webhooks }, context) => {
    const lists = {
      emails: emails.map(({ address }) => normalAddress('email', address)),
      webhooks: webhooks.map(({ url }) => normalAddress('webhook', url)),
    };
    for (const [list, keys] of Object.entries(lists)) {
      const member = list === 'emails' ? 'address' : 'url';
      for (const [index, key] of keys.entries())
        if (keys.indexOf(key) < index)
          context.addIssue({
            code: 'custom',
            path: [list, index, member],
            message: 'stands in the list already',
          });
    }
  });
export type ContactsUpdate = z.infer<typeof ContactsUpdate>;

export type ContactKind = 'email' | 'webhook';

/** What an entry is known by, however it is written. */
export function normalAddress(kind: ContactKind, address: string): string {
  return kind === 'email' ? address.toLowerCase() : (URL.parse(address)?.href ?? address);
}

const lastDelivery = z
  .object({ timestamp, state: z.string(), reason: z.string().optional() })
  .meta({ id: 'LastDelivery' })
  .optional()
  .meta({ description: 'How the last attempt to deliver to it ended.' });

/** The answer of GET and PUT /v2/accounts/contacts. */
export const Contacts = z.object({
  emails: z.array(
    EmailContact.extend({
      confirmed: z.boolean().meta({ description: 'Nothing else is sent there before.' }),
      unsubscribed: z.boolean().optional().meta({
        description: 'Its owner wants no mail. Removed and added again it can be confirmed.',
      }),
      last: lastDelivery,
    }).meta({ id: 'EmailContact' }),
  ),
  webhooks: z.array(
    WebhookContact.extend({
      webhookId: z.guid(),
      secret: z.string().meta({
        description: 'What messages are signed with, as Standard Webhooks has it.',
        example: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
      }),
      last: lastDelivery,
    }).meta({ id: 'WebhookContact' }),
  ),
  pushTokens: z.int().meta({
    description: 'How many telephones apps have added: in `apn` of Update Account, and one by one.',
  }),
  channels: z
    .object({ push: z.boolean(), sms: z.boolean(), email: z.boolean(), webhook: z.boolean() })
    .meta({
      id: 'Channels',
      description: 'Which of them a process that delivers has. An SMS log is none.',
    }),
  timestamp,
});
export type Contacts = z.infer<typeof Contacts>;

/** The answer of POST /v2/accounts/contacts/test. */
export const TrialAnswer = z.object({
  messages: z.array(
    z
      .object({
        address: z.string().optional(),
        url: z.string().optional(),
        type: z.enum(['test', 'confirm']).meta({
          description: 'confirm: the link is sent again to an address that is not confirmed.',
        }),
        state: z.enum(['queued', 'held-back']),
        reason: z.string().optional(),
      })
      .meta({ id: 'TrialMessage' }),
  ),
  timestamp,
});
export type TrialAnswer = z.infer<typeof TrialAnswer>;

/** The body of PUT /v2/devices/{deviceAuthUuid}/labels. */
export const LabelsUpdate = z.object({ labels: Labels });
