import { useState } from 'preact/hooks';
import type { Credentials } from '../../api/session.ts';
import { describeProblem, useRetryAfter } from '../../parts/problem.tsx';
import { t } from '../../text/t.ts';

type FormProps = { isNew: boolean; submit: (credentials: Credentials) => Promise<void> };

/** E-mail address and password, to sign in or to make an account. */
export function CredentialsForm({ isNew, submit }: FormProps) {
  const [isShown, setIsShown] = useState(false);
  const [isBusy, setIsBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const left = useRetryAfter(error);
  const send = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    setIsBusy(true);
    try {
      await submit({ email: textOf(form, 'email').trim(), password: textOf(form, 'password') });
    } catch (thrown) {
      setError(thrown);
      setIsBusy(false);
    }
  };
  return (
    <form class="form" onSubmit={(event) => void send(event)}>
      {error !== null && (
        <p class="form-error" role="alert">
          {left > 0 ? t('signIn.wait', { seconds: left }) : describeProblem(error)}
        </p>
      )}
      <label class="field">
        <span>{t('signIn.email')}</span>
        <input name="email" type="email" autocomplete="username" required autofocus />
      </label>
      <div class="field">
        <label for="password">{t('signIn.password')}</label>
        <div class="with-button">
          <input
            // The two types have different attributes to preact; these are of both.
            {...({ type: isShown ? 'text' : 'password' } as { type: 'password' })}
            id="password"
            name="password"
            autocomplete={isNew ? 'new-password' : 'current-password'}
            aria-describedby={isNew ? 'password-hint' : undefined}
            minLength={isNew ? 8 : undefined}
            required
          />
          <button
            type="button"
            class="button"
            aria-label={t(isShown ? 'signIn.hidePassword' : 'signIn.showPassword')}
            onClick={() => setIsShown(!isShown)}
          >
            {t(isShown ? 'common.hide' : 'common.reveal')}
          </button>
        </div>
        {isNew && (
          <p class="fine" id="password-hint">
            {t('signIn.passwordHint')}
          </p>
        )}
      </div>
      <button type="submit" class="button button-main" disabled={isBusy || left > 0}>
        {t(isNew ? 'signIn.register' : 'signIn.enter')}
      </button>
    </form>
  );
}

export function textOf(form: FormData, name: string): string {
  const value = form.get(name);
  return typeof value === 'string' ? value : '';
}
