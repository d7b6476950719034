import { useState } from 'preact/hooks';
import type { SessionView } from '../../api/types.ts';
import { Preferences } from '../../app/preferences.tsx';
import { enter, enterNew } from '../../app/session.ts';
import { Icon } from '../../parts/icon.tsx';
import { t } from '../../text/t.ts';
import { CredentialsForm } from './credentials-form.tsx';
import { ForgottenForm } from './forgotten-form.tsx';

type Mode = 'sign-in' | 'register' | 'forgotten';
type View = Omit<SessionView, 'timestamp'>;

/** The way in; where nobody has an account yet, the first one is made. */
export function SignInPage({ view }: { view: View }) {
  const { firstRun, openRegistration, mail } = view;
  const [mode, setMode] = useState<Mode>(firstRun && openRegistration ? 'register' : 'sign-in');
  const others: Mode[] = [
    ...(mode === 'sign-in' ? [] : (['sign-in'] as const)),
    ...(openRegistration && mode === 'sign-in' ? (['register'] as const) : []),
    ...(mail && mode === 'sign-in' ? (['forgotten'] as const) : []),
  ];
  return (
    <main class="gate">
      <div class="gate-card">
        <p class="brand">
          <span class="brand-mark">
            <Icon name="pulse" />
          </span>
          {t('app.name')}
        </p>
        <h1>{titleOf(mode, firstRun)}</h1>
        <p class="gate-hint">{hintOf(mode, firstRun)}</p>
        <Form key={mode} mode={mode} />
        {others.length > 0 && (
          <p class="gate-others">
            {others.map((other) => (
              <button key={other} type="button" class="link" onClick={() => setMode(other)}>
                {t(linkTexts[other])}
              </button>
            ))}
          </p>
        )}
      </div>
      <Preferences />
    </main>
  );
}

const linkTexts = {
  'sign-in': 'signIn.toSignIn',
  register: 'signIn.toRegister',
  forgotten: 'signIn.forgotten',
} as const;

function Form({ mode }: { mode: Mode }) {
  if (mode === 'forgotten') return <ForgottenForm />;
  const isNew = mode === 'register';
  return <CredentialsForm isNew={isNew} submit={isNew ? enterNew : enter} />;
}

function titleOf(mode: Mode, firstRun: boolean): string {
  if (mode === 'forgotten') return t('signIn.forgottenTitle');
  if (mode === 'sign-in') return t('signIn.title');
  return t(firstRun ? 'signIn.welcome' : 'signIn.registerTitle');
}

function hintOf(mode: Mode, firstRun: boolean): string {
  if (mode === 'forgotten') return t('signIn.forgottenHint');
  return t(mode === 'register' && firstRun ? 'signIn.welcomeHint' : 'signIn.about');
}
