import type { Language } from '../contract/language.ts';
import type { PageText } from '../http/html-page.ts';

type Words = {
  invalid: PageText;
  askPassword: (email: string) => PageText & { tooShort: string };
  passwordSet: PageText;
  askAddress: (email: string) => PageText;
  addressSet: (email: string) => PageText;
  /** Leads on to the console, where there is one. */
  signIn: string;
};

/** What the pages say that links in mails to accounts lead to. */
export const recoveryWords: Record<Language, Words> = {
  en: {
    invalid: {
      title: 'This link is not valid',
      text: 'It is older than 30 minutes, was used already, or was cut off. Ask for another one.',
    },
    askPassword: (email) => ({
      title: 'A new password',
      text: `For the account ${email}. All its sessions end.`,
      password: 'New password, 8 to 128 characters',
      button: 'Set the password',
      tooShort: 'The password needs 8 to 128 characters.',
    }),
    passwordSet: { title: 'The password was set', text: 'Log in with it from now on.' },
    askAddress: (email) => ({
      title: 'Confirm this address',
      text: `The account is to have the address ${email}. All its sessions end.`,
      button: 'Confirm',
    }),
    addressSet: (email) => ({
      title: 'Confirmed',
      text: `The account has the address ${email} from now on. Log in with it.`,
    }),
    signIn: 'Sign in',
  },
  de: {
    invalid: {
      title: 'Dieser Link gilt nicht',
      text: 'Er ist älter als 30 Minuten, wurde schon benutzt oder ist unvollständig. Fordern Sie einen neuen an.',
    },
    askPassword: (email) => ({
      title: 'Ein neues Passwort',
      text: `Für das Konto ${email}. Alle seine Sitzungen enden.`,
      password: 'Neues Passwort, 8 bis 128 Zeichen',
      button: 'Passwort setzen',
      tooShort: 'Das Passwort braucht 8 bis 128 Zeichen.',
    }),
    passwordSet: {
      title: 'Das Passwort wurde gesetzt',
      text: 'Melden Sie sich von jetzt an damit an.',
    },
    askAddress: (email) => ({
      title: 'Diese Adresse bestätigen',
      text: `Das Konto soll die Adresse ${email} bekommen. Alle seine Sitzungen enden.`,
      button: 'Bestätigen',
    }),
    addressSet: (email) => ({
      title: 'Bestätigt',
      text: `Das Konto hat von jetzt an die Adresse ${email}. Melden Sie sich damit an.`,
    }),
    signIn: 'Anmelden',
  },
};
