import type { signIn as en } from '../en/sign-in.ts';

export const signIn: Record<keyof typeof en, string> = {
  'signIn.title': 'Anmelden',
  'signIn.welcome': 'Das erste Konto anlegen',
  'signIn.welcomeHint': 'Hier gibt es noch kein Konto. Das erste ist Ihres.',
  'signIn.registerTitle': 'Ein Konto anlegen',
  'signIn.email': 'E-Mail-Adresse',
  'signIn.password': 'Passwort',
  'signIn.passwordHint': '8 bis 128 Zeichen',
  'signIn.enter': 'Anmelden',
  'signIn.register': 'Konto anlegen',
  'signIn.toRegister': 'Ein Konto anlegen',
  'signIn.toSignIn': 'Stattdessen anmelden',
  'signIn.showPassword': 'Passwort zeigen',
  'signIn.hidePassword': 'Passwort verbergen',
  'signIn.forgotten': 'Passwort vergessen?',
  'signIn.forgottenTitle': 'Neues Passwort setzen',
  'signIn.forgottenHint':
    'An diese Adresse geht eine Mail mit einem Link, wenn sie hier ein Konto hat.',
  'signIn.sendMail': 'Mail senden',
  'signIn.mailSent': 'Wenn {email} hier ein Konto hat, ist eine Mail mit einem Link unterwegs.',
  'signIn.wrong': 'Die E-Mail-Adresse oder das Passwort ist falsch.',
  'signIn.taken': 'Es gibt schon ein Konto mit dieser Adresse. Bitte anmelden.',
  'signIn.badEmail': 'Diese E-Mail-Adresse kann hier nicht verwendet werden.',
  'signIn.wait': 'Zu viele Versuche. Noch {seconds} s warten.',
  'signIn.about': 'Ihre Geräte, was sie messen und was Sie wissen müssen.',
};
