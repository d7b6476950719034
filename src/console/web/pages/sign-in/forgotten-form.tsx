import { useState } from 'preact/hooks';
import { forgotPassword } from '../../api/session.ts';
import { describeProblem, useRetryAfter } from '../../parts/problem.tsx';
import { t } from '../../text/t.ts';
import { textOf } from './credentials-form.tsx';

/** Asks for a mail with a link; the answer does not tell whether there is such an account. */
export function ForgottenForm() {
  const [sentTo, setSentTo] = useState('');
  const [error, setError] = useState<unknown>(null);
  const left = useRetryAfter(error);
  const send = async (event: SubmitEvent) => {
    event.preventDefault();
    const email = textOf(new FormData(event.currentTarget as HTMLFormElement), 'email').trim();
    try {
      await forgotPassword(email);
      setSentTo(email);
    } catch (thrown) {
      setError(thrown);
    }
  };
  if (sentTo !== '')
    return (
      <p class="form-done" role="status">
        {t('signIn.mailSent', { email: sentTo })}
      </p>
    );
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
      <button type="submit" class="button button-main" disabled={left > 0}>
        {t('signIn.sendMail')}
      </button>
    </form>
  );
}
