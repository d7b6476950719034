import type { Contacts, ContactsUpdate } from '../../api/types.ts';

type Last = NonNullable<Contacts['emails'][number]['last']>;

/** One of the account's contacts, of whatever kind. */
export type Entry = {
  kind: 'email' | 'webhook';
  /** An e-mail address, or a URL. */
  address: string;
  labels: string[];
  afterMs: number;
  whenOver: boolean;
  /** A webhook needs no confirmation. */
  state: 'confirmed' | 'waiting' | 'unsubscribed';
  /** What a webhook's messages are signed with. */
  secret?: string;
  last?: Last | undefined;
};

export function entriesOf({ emails, webhooks }: Contacts): Entry[] {
  return [
    ...emails.map(({ confirmed, unsubscribed, ...rest }): Entry => {
      const state = confirmed ? 'confirmed' : unsubscribed ? 'unsubscribed' : 'waiting';
      return { ...rest, kind: 'email', state };
    }),
    ...webhooks.map(({ url, ...rest }): Entry => ({
      ...rest,
      kind: 'webhook',
      address: url,
      state: 'confirmed',
    })),
  ];
}

/** Both lists, as they are sent: with nothing that the service alone knows. */
export function listsOf(entries: Entry[]): ContactsUpdate {
  const of = (kind: Entry['kind']) => entries.filter((entry) => entry.kind === kind);
  return {
    emails: of('email').map(({ address, labels, afterMs, whenOver }) => {
      return { address, labels, afterMs, whenOver };
    }),
    webhooks: of('webhook').map(({ address: url, labels, afterMs, whenOver }) => {
      return { url, labels, afterMs, whenOver };
    }),
  };
}
