import { useState } from 'preact/hooks';
import { changeAccount } from '../../api/account.ts';
import type { ApiError } from '../../api/request.ts';
import { Preferences } from '../../app/preferences.tsx';
import { accountOf, changeSessionAccount } from '../../app/session.ts';
import { Field, Form, Submit } from '../../parts/form.tsx';
import { say } from '../../parts/toast.tsx';
import { isWrong, textOf, useForm, type Refusal } from '../../parts/use-form.ts';
import { formatFullTime } from '../../text/format.ts';
import { clock } from '../../app/now.ts';
import { t } from '../../text/t.ts';

/** What the account is called, and in which words, times and colours it is shown. */
export function ProfileSection() {
  const account = accountOf();
  const form = useForm(async (values) => {
    const change = {
      name: textOf(values, 'name').trim(),
      timeZone: textOf(values, 'timeZone').trim(),
    };
    await changeAccount(change);
    changeSessionAccount(change);
    say(t('account.saved'));
  }, explain);
  return (
    <>
      <section class="panel">
        <Form form={form}>
          <Field
            form={form}
            name="name"
            label={t('account.name')}
            hint={t('account.nameHint')}
            input={{ defaultValue: account?.name ?? '', autocomplete: 'name', maxLength: 200 }}
          />
          <TimeZone form={form} />
          <div>
            <Submit form={form}>{t('account.save')}</Submit>
          </div>
        </Form>
      </section>
      <section class="panel" aria-label={t('account.look')}>
        <Preferences />
        <p class="fine account-note">{t('account.lookHint')}</p>
      </section>
    </>
  );
}

function TimeZone({ form }: { form: ReturnType<typeof useForm> }) {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const kept = accountOf()?.timeZone ?? 'UTC';
  const [zone, setZone] = useState(kept);
  return (
    <>
      <Field
        form={form}
        name="timeZone"
        label={t('account.timeZone')}
        hint={t('account.timeZoneHint', { time: formatFullTime(clock.value) })}
        input={{
          value: zone,
          onInput: ({ currentTarget }) => setZone(currentTarget.value),
          list: 'time-zones',
          autocomplete: 'off',
          spellcheck: false,
          required: true,
          maxLength: 64,
        }}
      >
        {zone !== own && (
          <button type="button" class="button" onClick={() => setZone(own)}>
            {t('account.ownZone')}
          </button>
        )}
      </Field>
      <datalist id="time-zones">
        {Intl.supportedValuesOf('timeZone').map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
    </>
  );
}

function explain(error: ApiError): Refusal | null {
  return isWrong(error, 'timeZone') ? { field: 'timeZone', text: t('account.badZone') } : null;
}
