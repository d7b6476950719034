import type { Language } from '../contract/language.ts';

/** The texts of mails to accounts. */
type Words = Record<'reset' | 'confirmEmail', (link: string) => MailText> & {
  passwordReset: () => MailText;
  emailChanged: (email: string) => MailText;
};
export type MailText = { title: string; body: string };

const words: Record<Language, Words> = {
  en: {
    reset: (link) => ({
      title: 'A new password',
      body:
        'Somebody wants to set a new password for your account. If it was you, open this link within ' +
        `30 minutes:\n\n${link}\n\nIf not, nothing needs to be done: the password stays as it is.`,
    }),
    confirmEmail: (link) => ({
      title: 'Confirm your new address',
      body:
        'An account is to have this e-mail address. If that is yours, open this link within 30 minutes ' +
        `and press the button:\n\n${link}\n\nIf not, nothing needs to be done.`,
    }),
    passwordReset: () => ({
      title: 'Your password was changed',
      body:
        'Your account has a new password, set by a link that was sent to this address. All sessions have ' +
        'ended. If it was not you, somebody reads your mail: change its password, then set a new one here.',
    }),
    emailChanged: (email) => ({
      title: 'Your address was changed',
      body:
        `Your account has the e-mail address ${email} from now on, and mails no longer come here. All ` +
        'sessions have ended. If it was not you, somebody knows your password: ask the operator of this service.',
    }),
  },
  de: {
    reset: (link) => ({
      title: 'Ein neues Passwort',
      body:
        'Jemand möchte ein neues Passwort für Ihr Konto setzen. Wenn Sie das waren, öffnen Sie innerhalb ' +
        `von 30 Minuten diesen Link:\n\n${link}\n\nSonst brauchen Sie nichts zu tun: Das Passwort bleibt, wie es ist.`,
    }),
    confirmEmail: (link) => ({
      title: 'Bitte die neue Adresse bestätigen',
      body:
        'Ein Konto soll diese E-Mail-Adresse bekommen. Wenn es Ihres ist, öffnen Sie innerhalb von 30 ' +
        `Minuten diesen Link und drücken Sie den Knopf:\n\n${link}\n\nSonst brauchen Sie nichts zu tun.`,
    }),
    passwordReset: () => ({
      title: 'Ihr Passwort wurde geändert',
      body:
        'Ihr Konto hat ein neues Passwort, gesetzt mit einem Link, der an diese Adresse ging. Alle ' +
        'Sitzungen sind beendet. Wenn Sie das nicht waren, liest jemand Ihre Post: Ändern Sie deren Passwort, dann dieses.',
    }),
    emailChanged: (email) => ({
      title: 'Ihre Adresse wurde geändert',
      body:
        `Ihr Konto hat ab jetzt die E-Mail-Adresse ${email}; hierher kommt nichts mehr. Alle Sitzungen ` +
        'sind beendet. Wenn Sie das nicht waren, kennt jemand Ihr Passwort: Wenden Sie sich an den Betreiber.',
    }),
  },
};

/** English where no language is set. */
export const mailWordsOf = (language: Language | null): Words => words[language ?? 'en'];
