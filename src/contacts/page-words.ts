import type { Language } from '../contract/language.ts';
import type { PageText } from '../http/html-page.ts';
import type { LinkPurpose } from './links.ts';

type Words = { invalid: PageText } & Record<
  LinkPurpose,
  Record<'ask' | 'done', (address: string) => PageText>
>;

/** What the pages say that links in mails to contacts lead to. */
export const contactPageWords: Record<Language, Words> = {
  en: {
    invalid: {
      title: 'This link is not valid',
      text: 'It is too old, was cut off, or its address was removed since it was sent.',
    },
    confirm: {
      ask: (address) => ({
        title: 'Confirm this address',
        text: `Messages about devices are to be sent to ${address}.`,
        button: 'Confirm',
      }),
      done: (address) => ({
        title: 'Confirmed',
        text: `Messages are sent to ${address} from now on.`,
      }),
    },
    unsubscribe: {
      ask: (address) => ({
        title: 'Unsubscribe',
        text: `No more messages are to be sent to ${address}.`,
        button: 'Unsubscribe',
      }),
      done: (address) => ({ title: 'Unsubscribed', text: `Nothing more is sent to ${address}.` }),
    },
  },
  de: {
    invalid: {
      title: 'Dieser Link gilt nicht',
      text: 'Er ist zu alt, unvollständig, oder seine Adresse wurde inzwischen entfernt.',
    },
    confirm: {
      ask: (address) => ({
        title: 'Diese Adresse bestätigen',
        text: `Nachrichten über Geräte sollen an ${address} gehen.`,
        button: 'Bestätigen',
      }),
      done: (address) => ({
        title: 'Bestätigt',
        text: `Von jetzt an gehen Nachrichten an ${address}.`,
      }),
    },
    unsubscribe: {
      ask: (address) => ({
        title: 'Abbestellen',
        text: `An ${address} sollen keine Nachrichten mehr gehen.`,
        button: 'Abbestellen',
      }),
      done: (address) => ({ title: 'Abbestellt', text: `An ${address} geht nichts mehr.` }),
    },
  },
};
